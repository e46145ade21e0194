"""The server of the scenarios: prints its URL and serves until its input ends.

    python benchmarks/server.py [FORMAT]

What it answers depends on the request's model and messages alone, so that any client
can be measured against it. ``GET`` is not served; nothing is counted here.
"""

from __future__ import annotations

import os
import sys
from typing import Iterator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from aeye.request import Request
from aeye.response import Chunk, Response, split
from aeye.testing import LocalServer, calls
from aeye.usage import Usage

TURNS = 10
PARALLEL = 8
CHUNKS = 2000
USAGE = Usage.of(input=10, output=5)
GOOD = '{"name": "Ada", "age": 36}'
BAD = '{"name": "Ada", "age": "thirty-six"}'


class Scenarios:
    """One model for each scenario, told apart by the name that is asked for."""

    def execute(self, request: Request, ctx: object = None) -> Response:
        """Answer whole."""
        results = [m.text for m in request.messages if m.role == "tool"]
        answered = sum(m.role == "assistant" for m in request.messages)
        content = "Hello, world."
        if request.model == "turns":
            n = len(results)
            if n < TURNS:
                return _called(("step", {"n": n}, f"call_{n}"))
            content = f"done after {n}"
        elif request.model == "parallel":
            if not results:
                wanted = (("sleepy", {"i": i}, f"call_{i}") for i in range(PARALLEL))
                return _called(*wanted)
            content = "done [" + ", ".join(results) + "]"
        elif request.model == "structured":
            content = GOOD if answered else BAD
        return Response(content, usage=USAGE, model=request.model)

    def stream(self, request: Request, ctx: object = None) -> Iterator[Chunk]:
        """Answer in chunks: 2,000 of them to the model ``chunks``."""
        if request.model != "chunks":
            yield from split(self.execute(request))
            return
        word = Chunk("word ")
        for _ in range(CHUNKS):
            yield word
        yield Chunk(finish_reason="stop", usage=USAGE)


def _called(*wanted: tuple[str, object, str]) -> Response:
    response = calls(*wanted)
    return Response("", response.tool_calls, finish_reason="tool_calls", usage=USAGE)


if __name__ == "__main__":
    with LocalServer(Scenarios(), format=(*sys.argv[1:], "chat")[0]) as server:
        # A process that only serves need not be shared out fairly.
        sys.setswitchinterval(0.05)
        print(server.url, flush=True)
        sys.stdin.read()
