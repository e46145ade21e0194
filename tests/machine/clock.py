"""Workers on a clock of their own, so that every order of events can be played."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from math import inf
from typing import Any, Callable, List, Optional

from aeye.workers import Workers


class Clock:
    """On whose time everybody in a world is busy."""

    def workers(self) -> Workers:
        """Return the workers of one more run."""
        raise NotImplementedError

    def pause(self, seconds: float) -> None:
        """Be busy for *seconds*."""
        raise NotImplementedError

    def finish(self) -> None:
        """Let everything come to its end."""
        raise NotImplementedError

    def check(self) -> None:
        """Hold what was done with the workers against what is promised."""
        raise NotImplementedError


@dataclass(eq=False)
class _Task:
    """A job that was given to a worker."""

    job: Callable[[], object]
    owner: Hands
    # Its place among those that go on at the same time.
    place: int
    # When it goes on, at the latest, and what it waits for.
    wake: float
    ready: Callable[[], bool]
    # Held while it must not move.
    gate: threading.Lock
    thread: Optional[threading.Thread] = None
    done: bool = False
    abandoned: bool = False


def _never() -> bool:
    return False


class Scheduler(Clock):
    """One moves at a time, the earliest first.

    There is a thread for each task, and the one that plays the script. A lock is
    handed from one to the other; nobody ever waits for the real time to pass.
    """

    def __init__(self, *, latest_first: bool = False) -> None:
        self.time = 0.0
        self.hands: List[Hands] = []
        self.tasks: List[_Task] = []
        self._latest_first = latest_first
        self._current: Optional[_Task] = None
        self._baton = threading.Lock()
        self._baton.acquire()

    def workers(self) -> Workers:
        """Return the workers of one more run."""
        self.hands.append(Hands(self))
        return self.hands[-1]

    def pause(self, seconds: float) -> None:
        """Be busy for *seconds*: the others move meanwhile."""
        self.block(_never, self.time + seconds)

    def finish(self) -> None:
        """Let everything come to its end."""
        self.block(lambda: all(task.done for task in self.tasks))

    def check(self) -> None:
        """All workers were ended once, those that did something at least."""
        for hands in self.hands:
            assert len(hands.closed) <= 1, "workers were ended twice"
            worked = any(task.owner is hands for task in self.tasks)
            assert hands.closed or not worked, "workers were left alone"
            assert not hands.after, "workers were given something after their end"

    def add(self, job: Callable[[], object], owner: Hands) -> None:
        """Take *job* in; it begins when somebody waits."""
        place = len(self.tasks)
        place = -place if self._latest_first else place
        gate = threading.Lock()
        gate.acquire()
        self.tasks.append(_Task(job, owner, place, self.time, _never, gate))

    def block(self, ready: Callable[[], bool], until: float = inf) -> None:
        """Let the others move until *ready*, or until the time has come."""
        task = self._current
        if task is None:
            self._lead(ready, until)
        elif not ready():
            task.ready, task.wake = ready, until
            self._baton.release()
            task.gate.acquire()

    def _lead(self, ready: Callable[[], bool], until: float) -> None:
        while not ready():
            task = min(
                (task for task in self.tasks if not task.done),
                key=lambda task: (self._when(task), task.place),
                default=None,
            )
            when = inf if task is None else self._when(task)
            if until < when or (until == when < inf and self._latest_first):
                self.time = max(self.time, until)
                return
            assert task is not None and when < inf, "all wait for what cannot come"
            self._step(task, when)

    def _when(self, task: _Task) -> float:
        return self.time if task.ready() else task.wake

    def _step(self, task: _Task, when: float) -> None:
        """Let *task* move until it waits or ends."""
        self.time = max(self.time, when)
        self._current = task
        if task.thread is None:
            task.thread = threading.Thread(target=self._run, args=(task,), daemon=True)
            task.thread.start()
        else:
            task.gate.release()
        self._baton.acquire()
        self._current = None

    def _run(self, task: _Task) -> None:
        task.job()
        task.done = True
        self._baton.release()


class Hands(Workers):
    """The workers of one run."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        # How they were ended: with the word for ``wait``, each time.
        self.closed: List[bool] = []
        # What was given to them after that.
        self.after: List[object] = []
        self._scheduler = scheduler

    def submit(self, job: Callable[[], object]) -> None:
        """Take *job* in."""
        if self.closed:
            self.after.append(job)
        self._scheduler.add(job, self)

    def now(self) -> float:
        """Return the time that the script has come to."""
        return self._scheduler.time

    def wait(self, said: queue.SimpleQueue[Any], until: float | None) -> Any:
        """Return what a job *said* next, or raise where none did *until* then."""
        self._scheduler.block(lambda: not said.empty(), inf if until is None else until)
        return said.get_nowait()

    def abandon(self, thread: threading.Thread) -> None:
        """Do not wait for *thread*."""
        for task in self._scheduler.tasks:
            task.abandoned = task.abandoned or task.thread is thread

    def close(self, *, wait: bool) -> None:
        """Note that the run has ended; *wait* for those that nobody gave up."""
        self.closed.append(wait)
        if wait:
            mine = [task for task in self._scheduler.tasks if task.owner is self]
            self._scheduler.block(
                lambda: all(task.done or task.abandoned for task in mine)
            )
