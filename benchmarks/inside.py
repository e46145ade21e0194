"""Print what the library itself costs: no network, no process, a model in reach.

    python benchmarks/inside.py

The goals: a prompt under 50 µs, a chunk under 3 µs.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any, Callable

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from measure import best

import aeye
from aeye.response import Chunk, Response
from aeye.testing import calls
from aeye.usage import Usage

CHUNKS = 2000
USAGE = Usage.of(input=10, output=5)
ANSWER = Response("Hello.", usage=USAGE)


@dataclass
class Person:
    name: str
    age: int


@aeye.tool
def step(n: int) -> str:
    """One step."""
    return f"step {n} ok"


def timed(what: str, run: Callable[[], Any], parts: int = 1) -> None:
    """Print the best of several rounds, divided by *parts*."""
    print(f"{what:44} {1e6 * best(run) / parts:9.2f} µs")


def loop() -> None:
    text = aeye.Context(execute=lambda request, ctx: ANSWER)
    prompt = aeye.Prompt("p", "Say hello to {{name}}.")
    timed("a prompt", lambda: prompt({"name": "Ada"}, text))

    def stream(request: Any, ctx: Any) -> Any:
        word = Chunk("word ")
        for _ in range(CHUNKS):
            yield word
        yield Chunk(finish_reason="stop", usage=USAGE)

    streaming = aeye.Context(stream=stream)

    def read() -> None:
        for _ in prompt.get("stream_content", {"name": "Ada"}, streaming):
            pass

    timed("a streamed chunk", read, CHUNKS)

    def turns(request: Any, ctx: Any) -> Response:
        n = sum(message.role == "tool" for message in request.messages)
        return calls(("step", {"n": n}, f"c{n}")) if n < 10 else ANSWER

    tools = aeye.Prompt("t", "Go.", tools=[step], tool_iterations=12)
    looping = aeye.Context(execute=turns)
    timed("a turn with one call", lambda: tools({}, looping), 10)
    right = Response('{"name": "Ada", "age": 36}', usage=USAGE)
    typed = aeye.Prompt("s", "Who?", schema=Person)
    answering = aeye.Context(execute=lambda request, ctx: right)
    timed("a prompt with a typed answer", lambda: typed({}, answering))


def layers() -> None:
    from aeye.decode import decode_wire
    from aeye.emit import to_json_schema
    from aeye.schema import Schema
    from aeye.template import Template

    source = "Hello {{name}}!\n{{#each items}}\n- {{this}} ({{@index}})\n{{/each}}\n"
    template = Template(source)
    values = {"name": "Ada", "items": ["a", "b", "c", "d"]}
    timed("parse a template", lambda: Template(source))
    timed("render a template of four rows", lambda: template.render(values))

    schema = Schema(Person)
    value = {"name": "Ada", "age": 36}
    wide = {
        "type": "object",
        "properties": {f"p{i}": {"type": "string"} for i in range(100)},
    }
    timed("a schema from a dataclass", lambda: Schema(Person))
    timed("check a value and build a dataclass", lambda: schema.load(value))
    timed("emit a schema, a property", lambda: to_json_schema(wide, True), 100)
    timed("decode a value", lambda: decode_wire(schema, value, True))


if __name__ == "__main__":
    loop()
    print()
    layers()
