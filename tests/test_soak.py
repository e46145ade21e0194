"""The promises of a run on real threads and a real clock, in many seeded runs.

What ``test_machine`` plays in order happens here as it may: several threads run one
prompt, tools really overlap, and what comes first is up to the machine.
``AEYE_ONDEMAND=1`` makes 2,000 runs.
"""

from __future__ import annotations

import os
import queue
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from machine.clock import Clock
from machine.play import Play, prompt_of
from machine.promises import check
from machine.script import MODES, NESTED, TOOLS, Answer, CallPlan, Reader, Script

from aeye.prompt import Prompt
from aeye.testing import ScriptedModel, calls
from aeye.tools import tool
from aeye.workers import Workers

RUNS = 2000 if os.environ.get("AEYE_ONDEMAND") == "1" else 48
# Threads that run one prompt at the same time.
READERS = 4
# A second of a script takes so long here.
SECOND = 0.002
LIMIT = 60


class RealWorkers(Workers):
    """Workers as they are, on a clock that runs faster."""

    def __init__(self) -> None:
        super().__init__()
        # How they were ended: with the word for ``wait``, each time.
        self.closed: list[bool] = []

    def now(self) -> float:
        return time.monotonic() / SECOND

    def wait(self, said: queue.SimpleQueue[Any], until: float | None) -> Any:
        if until is None:
            return said.get(timeout=LIMIT)
        return said.get(timeout=max(until - self.now(), 0) * SECOND)

    def close(self, *, wait: bool) -> None:
        self.closed.append(wait)
        super().close(wait=wait)


class RealClock(Clock):
    """The time as it is, but faster."""

    def __init__(self) -> None:
        self.given: list[RealWorkers] = []

    def workers(self) -> Workers:
        self.given.append(RealWorkers())
        return self.given[-1]

    def pause(self, seconds: float) -> None:
        time.sleep(seconds * SECOND)

    def finish(self) -> None:
        """Nothing: what runs on its own ends on its own."""

    def check(self) -> None:
        """The workers of the run were ended once; those of a late one may work."""
        assert all(len(workers.closed) <= 1 for workers in self.given)


def script_of(rng: random.Random) -> Script:
    """Return a script; not so wild that most runs end at once."""

    def call() -> CallPlan:
        return CallPlan(
            tool=rng.choice([*TOOLS, "work", "work"]),
            do=rng.choice(["text"] * 8 + ["raise", "steps", "suspend", "interrupt"]),
            seconds=rng.choice([0, 0, 1, 4]),
            id=rng.choice(["", "x", "y"]),
            style=rng.choice(["whole", "pieces"]),
            pause=rng.choice([0, 0, 1, 2]),
        )

    def answer(inward: bool = False) -> Answer:
        nested = [CallPlan(tool=rng.choice(NESTED[:3]))] * inward
        return Answer(
            text=rng.choice([(), ("so",), ('{"v": 1}',)]),
            calls=(*nested, *(call() for _ in range(rng.randrange(6)))),
            error=rng.choice([None] * 9 + ["server", "cut"]),
            error_after=rng.randrange(6),
            abort_after=rng.choice([None] * 9 + [2]),
        )

    inward = rng.random() < 0.3
    return Script(
        answers=tuple(answer(inward) for _ in range(3)),
        # One answer a world: who of several asks first is up to the machine.
        inner=(Answer(calls=(CallPlan(seconds=1), CallPlan())),) if inward else (),
        execution=rng.choice([*MODES, "immediate"]),
        streaming=rng.random() < 0.8,
        reader=Reader(
            rng.choice(["all", "all", "all", "close", "drop", "abort"]),
            at=rng.randrange(30),
            pause=rng.choice([0, 0, 1]),
        ),
        options=(("tool_concurrency", rng.choice([1, 2, 32])),),
        foreign_signal=rng.random() < 0.5,
    )


def read(script: Script, prompt: Prompt[Any]) -> Any:
    playing = Play(script, prompt, clock=RealClock())
    while playing.step():
        pass
    return playing.end()


def gone(names: str = "aeye-tool") -> bool:
    """Whether every worker ends, though it may take a moment."""
    end = time.monotonic() + LIMIT
    for thread in threading.enumerate():
        if thread.name == names:
            thread.join(max(end - time.monotonic(), 0))
    return not any(thread.name == names for thread in threading.enumerate())


@pytest.mark.parametrize("seed", range(RUNS // READERS))
def test_runs_on_threads_keep_their_promises(seed: int) -> None:
    """Several threads run one prompt at once; every run keeps every promise."""
    rng = random.Random(seed)
    first = script_of(rng)
    scripts = [first]
    for _ in range(READERS - 1):
        other = script_of(rng)
        scripts.append(
            replace(
                other,
                options=first.options,
                execution=first.execution,
                inner=first.inner,
            )
        )
    prompt = prompt_of(first)

    with ThreadPoolExecutor(READERS) as pool:
        traces = list(pool.map(read, scripts, [prompt] * READERS))

    for trace in traces:
        check(trace)
    assert gone()


@pytest.mark.parametrize("seed", range(max(RUNS // 200, 2)))
def test_nested_runs_end(seed: int) -> None:
    """Runs inside tools of runs, on threads at every depth, all come to their end."""
    rng = random.Random(seed)

    def nest(depth: int) -> Prompt[str]:
        @tool
        def go(n: int) -> str:
            """Go down."""
            time.sleep(rng.random() * SECOND)
            if depth == 0:
                return str(n)
            batch = [("go", {"n": i}) for i in range(3)]
            return nest(depth - 1)({}, ScriptedModel(calls(*batch), "up").context())

        mode: Any = rng.choice(["parallel", "immediate"])
        width = rng.choice([1, 2, 8])
        return Prompt("p", "x", tools=[go], tool_execution=mode, tool_concurrency=width)

    model = ScriptedModel(calls(*[("go", {"n": 1})] * 3), "top")

    assert nest(2)({}, model.context()) == "top"
    assert [m.text for m in model.requests[1].messages[3:]] == ["up"] * 3
    assert gone()
