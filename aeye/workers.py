"""Threads that run tools, and the time that a run goes by."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, Callable, List, Optional

__all__ = ["Workers"]


class Workers:
    """Daemon threads, made when first needed and ended with the run.

    They are no ``ThreadPoolExecutor`` because that one's threads hold up the exit of
    the interpreter while a tool hangs. All that a run knows of time and of waiting is
    here too: a subclass without threads can play every order of events, and play it
    again.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Optional[Callable[[], object]]] = (
            queue.SimpleQueue()
        )
        self._lock = threading.Lock()
        self._idle = 0
        self._threads: List[threading.Thread] = []
        # Those that nobody waits for.
        self._left: List[threading.Thread] = []

    def submit(self, job: Callable[[], object]) -> None:
        """Run *job* on a thread that is free, or on a new one."""
        with self._lock:
            free = self._idle > 0
            if free:
                self._idle -= 1
        if free:
            self._jobs.put(job)
            return
        # It has its first job with it: one thread less that has to be woken up.
        thread = threading.Thread(
            target=self._work, args=([job],), name="aeye-tool", daemon=True
        )
        thread.start()
        self._threads.append(thread)

    def _work(self, first: List[Callable[[], object]]) -> None:
        job: Optional[Callable[[], object]] = first.pop()  # the thread keeps the list
        while job is not None:
            job()
            job = None  # do not keep a call's values alive while idle
            with self._lock:
                if threading.current_thread() in self._left:
                    return
                self._idle += 1
            job = self._jobs.get()

    def now(self) -> float:
        """Return the time, in seconds since some moment."""
        return time.monotonic()

    def wait(self, said: queue.SimpleQueue[Any], until: float | None) -> Any:
        """Return what a job *said* next.

        Raises:
            queue.Empty: no job said anything *until* then.
        """
        return said.get(timeout=None if until is None else max(until - self.now(), 0))

    def abandon(self, thread: threading.Thread) -> None:
        """Do not wait for *thread*: it ends when its job does."""
        with self._lock:
            if thread in self._threads:
                self._threads.remove(thread)
                self._left.append(thread)

    def close(self, *, wait: bool) -> None:
        """End the threads as they become free; *wait* until they are gone."""
        if not self._threads and not self._left:
            return
        threads, self._threads = self._threads, []
        for _ in (*threads, *self._left):  # one that was left may be idle by now
            self._jobs.put(None)
        ours = threading.current_thread()
        for thread in threads:
            if wait and thread is not ours:
                thread.join()
