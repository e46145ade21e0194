"""Print what the fluent door costs beside the bare prompt that it drives.

    python benchmarks/agent.py

Each line is the same run through both doors: the same requests, answers and tools, a
model in the process, rounds in turn, the best of many. The goal: a turn of an agent
under 1.3 times one of a prompt.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from typing import Any, Callable

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import aeye
from aeye.response import Chunk, Response
from aeye.testing import calls
from aeye.usage import Usage

CHUNKS = 200
TURNS = 10
# Short ones: some of them are not disturbed.
ROUNDS = 300
USAGE = Usage.of(input=10, output=5)
ANSWER = Response("Hello.", usage=USAGE)


@aeye.tool
def step(n: int) -> str:
    """One step."""
    return f"step {n} ok"


def turns(request: Any, ctx: Any) -> Response:
    """Ask for a step, until there were enough."""
    n = sum(message.role == "tool" for message in request.messages)
    return calls(("step", {"n": n}, f"c{n}")) if n < TURNS else ANSWER


def chunks(request: Any, ctx: Any) -> Any:
    word = Chunk("word ")
    for _ in range(CHUNKS):
        yield word
    yield Chunk(finish_reason="stop", usage=USAGE)


def once(run: Callable[[], Any], number: int) -> float:
    gc.collect()
    started = time.thread_time()
    for _ in range(number):
        run()
    return (time.thread_time() - started) / number


def compare(
    what: str, prompt: Callable[[], Any], agent: Callable[[], Any], parts: int = 1
) -> None:
    """Print the best of several rounds of both, a part, and their ratio."""
    prompt(), agent()
    number = max(1, int(0.001 / once(prompt, 3)))
    bare, fluent = [], []
    for _ in range(ROUNDS):
        bare.append(once(prompt, number))
        fluent.append(once(agent, number))
    least = [1e6 * min(rounds) / parts for rounds in (bare, fluent)]
    print(f"{what:32}{least[0]:12.2f}{least[1]:12.2f}{least[1] / least[0]:10.2f}")


def main() -> None:
    print(f"{'':32}{'prompt, µs':>12}{'agent, µs':>12}{'ratio':>10}")
    said = aeye.Context(execute=lambda request, ctx: ANSWER)
    text = aeye.Prompt("p", "Be kind.", user_turn="{{said}}")
    kind = aeye.Agent("Be kind.", said)
    compare(
        "an answer",
        lambda: text({"said": "Say hello."}, said),
        lambda: kind.prompt("Say hello.").send(),
    )
    looping = aeye.Context(execute=turns)
    tools = aeye.Prompt(
        "t",
        "Be kind.",
        user_turn="Go.",
        tools=[step],
        tool_iterations=TURNS + 2,
        tool_execution="sequential",
    )
    agent = aeye.Agent("Be kind.", looping, tools=[step])
    compare(
        "a turn with one call",
        lambda: tools({}, looping),
        lambda: agent.prompt("Go.").send(),
        TURNS,
    )
    streaming = aeye.Context(stream=chunks)
    teller = aeye.Agent("Be kind.", streaming)

    def read() -> None:
        for _ in text.run({"said": "Say hello."}, streaming):
            pass

    def stream() -> None:
        for _ in teller.prompt("Say hello.").stream():
            pass

    compare("a streamed chunk", read, stream, CHUNKS)


if __name__ == "__main__":
    main()
