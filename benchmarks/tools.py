"""Print what calling tools costs: side by side, within a stream, over many turns.

    python benchmarks/tools.py

The goals: eight tools at once take little more than one, a stream hides the tools
that it starts, and a turn costs the same however many came before it, apart from a
model's own work.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Callable, Iterator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import aeye
from aeye.response import Chunk, Response, ToolCall

TOOLS = 8
TOOL = 0.05
STREAM = 0.4
TURNS = (250, 500, 1000)


@aeye.tool
def slow(n: int) -> int:
    """Take some time."""
    time.sleep(TOOL)
    return n


@aeye.tool
def step(n: int) -> str:
    """Take one step."""
    return f"step {n} ok"


def calls_of(name: str, numbers: range) -> list[ToolCall]:
    return [ToolCall(f"c{n}", name, f'{{"n": {n}}}') for n in numbers]


def best(run: Callable[[], Any], rounds: int = 5) -> float:
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return min(found)


def streaming(seconds: float) -> aeye.Context:
    """Return a model whose first answer takes so many *seconds*: calls, then text."""

    def stream(request: Any) -> Iterator[Chunk]:
        if request.messages[-1].role == "tool":
            yield Chunk("done", finish_reason="stop")
            return
        for call in calls_of("slow", range(TOOLS)):
            time.sleep(0.8 * seconds / TOOLS)
            yield Chunk(tool_call_named=call, tool_call=call)
        for _ in range(TOOLS):
            time.sleep(0.2 * seconds / TOOLS)
            yield Chunk("word ")
        yield Chunk(finish_reason="tool_calls")

    return aeye.Context(stream=stream)


def side_by_side() -> None:
    print(f"{TOOLS} tools of {TOOL * 1000:.0f} ms")
    for mode in ("sequential", "parallel", "immediate"):
        prompt = aeye.Prompt("p", "Go.", tools=[slow], tool_execution=mode)
        took = best(lambda prompt=prompt: prompt({}, streaming(0)))
        print(f"  {mode:12} {1000 * took:7.1f} ms  {took / TOOL:5.2f} of one")
    print(f"the same in a stream of {STREAM * 1000:.0f} ms")
    for mode in ("parallel", "immediate"):
        prompt = aeye.Prompt("p", "Go.", tools=[slow], tool_execution=mode)

        def run(prompt: Any = prompt) -> None:
            for _ in prompt.run({}, streaming(STREAM)):
                pass

        took = best(run, 3)
        hidden = took - STREAM
        print(
            f"  {mode:12} {1000 * took:7.1f} ms  {took / STREAM:5.2f} of the stream, "
            f"{hidden / TOOL:5.2f} of one tool after it"
        )


def many_turns() -> None:
    print("turns with one call each, in one run")
    first = 0.0
    for turns in TURNS:
        n = 0

        def execute(request: Any, turns: int = turns) -> Response:
            nonlocal n
            n += 1
            if n > turns:
                return Response("done")
            return Response("", calls_of("step", range(n, n + 1)))

        def run(turns: int = turns, execute: Any = execute) -> None:
            nonlocal n
            n = 0
            prompt = aeye.Prompt("p", "Go.", tools=[step], tool_iterations=turns + 1)
            prompt({}, aeye.Context(execute=execute))

        took = best(run, 3) / turns
        first = first or took
        print(
            f"  {turns:5} turns  {1e6 * took:8.1f} µs a turn  {took / first:5.2f} of "
            f"what {TURNS[0]} turns cost"
        )


def long_history() -> None:
    print("one turn after so many messages")
    first = 0.0
    model = aeye.Context(execute=lambda request: Response("ok"))
    for size in TURNS:
        history = [
            aeye.Message("user" if n % 2 else "assistant", f"message {n}")
            for n in range(size)
        ]
        ctx = model.replace(messages=history)
        prompt = aeye.Prompt("p", "Go.")
        took = best(lambda ctx=ctx, prompt=prompt: prompt({}, ctx), 20)
        first = first or took
        print(
            f"  {size:5} messages  {1e6 * took:8.1f} µs  {took / first:5.2f} of "
            f"what {TURNS[0]} cost"
        )


if __name__ == "__main__":
    side_by_side()
    print()
    many_turns()
    print()
    long_history()
