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

import machine
from machine import Answer, CallPlan, Play, Reader, Script, check, prompt_of

from aeye.prompt import Prompt
from aeye.testing import ScriptedModel, calls
from aeye.tools import tool

RUNS = 2000 if os.environ.get("AEYE_ONDEMAND") == "1" else 48
# Threads that run one prompt at the same time.
READERS = 4
# A second of a script takes so long here.
SECOND = 0.002
LIMIT = 60


class RealClock(machine.Clock):
    """Workers as they are, on a clock that runs faster."""

    def now(self) -> float:
        return time.monotonic() / SECOND

    def wait(self, said: queue.SimpleQueue[Any], until: float | None) -> Any:
        if until is None:
            return said.get(timeout=LIMIT)
        return said.get(timeout=max(until - self.now(), 0) * SECOND)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds * SECOND)

    def close(self, *, wait: bool) -> None:
        self.closed.append(wait)
        super().close(wait=wait)

    def finish(self) -> None:
        """Nothing: what runs on its own ends on its own."""


def script_of(rng: random.Random) -> Script:
    """Return a script; not so wild that most runs end at once."""

    def call() -> CallPlan:
        return CallPlan(
            tool=rng.choice([*machine.NAMES, "work", "work"]),
            do=rng.choice(["text"] * 8 + ["raise", "steps", "suspend", "interrupt"]),
            seconds=rng.choice([0, 0, 1, 4]),
            id=rng.choice(["", "x", "y"]),
            style=rng.choice(["whole", "pieces"]),
            pause=rng.choice([0, 0, 1, 2]),
        )

    def answer() -> Answer:
        return Answer(
            text=rng.choice([(), ("so",), ('{"v": 1}',)]),
            calls=tuple(call() for _ in range(rng.randrange(6))),
            error=rng.choice([None] * 9 + ["server", "cut"]),
            error_after=rng.randrange(6),
            abort_after=rng.choice([None] * 9 + [2]),
        )

    return Script(
        answers=tuple(answer() for _ in range(3)),
        execution=rng.choice(["sequential", "parallel", "immediate", "immediate"]),
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
    kept = {"options": first.options, "execution": first.execution}
    scripts = [first, *(replace(script_of(rng), **kept) for _ in range(READERS - 1))]
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
