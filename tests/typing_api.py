"""The public API as a user's type checker sees it. Checked by mypy, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional

import aeye


@dataclass
class Advice:
    text: str


@aeye.tool
def plain(city: str) -> int:
    return len(city)


@aeye.tool(name="other", timeout=3)
def named(city: str) -> List[str]:
    return [city]


def tools() -> None:
    one: int = plain("Paris")
    many: List[str] = named("Paris")
    made: aeye.Tool[float] = aeye.Tool("t", lambda given: 1.5, schema={})
    wrong: str = plain("Paris")  # type: ignore[assignment]  # a Tool knows its result
    print(one, many, made, wrong)


def parse(raw: Any) -> float:
    return float(raw)


def outputs(ctx: aeye.Context) -> None:
    text = aeye.Prompt("p", "x")
    typed = aeye.Prompt("p", "x", schema=Advice, tools=[plain, named])
    listed = aeye.Prompt("p", "x", schema=List[int])
    parsed = aeye.Prompt("p", "x", schema=Advice, parse=parse, strict=True)
    free = aeye.Prompt("p", "x", schema={"type": "object"})

    a: str = text({}, ctx)
    b: Advice = typed({}, ctx)
    c: Optional[Advice] = typed.get("result", {}, ctx)
    d: List[int] = listed({}, ctx)
    e: float = parsed({}, ctx)
    f: Any = free({}, ctx)
    g: int = typed({}, ctx)  # type: ignore[assignment]  # a Prompt knows its output
    print(a, b, c, d, e, f, g)
    aeye.Prompt("p", "x", tool=[plain])  # type: ignore[call-overload]  # a slip


def modes(ctx: aeye.Context) -> None:
    prompt = aeye.Prompt("p", "x", schema=Advice, tools=[plain])
    results: List[aeye.PromptToolOutput] = prompt.get("tools", {}, ctx)
    for piece in prompt.get("stream_content", {}, ctx):
        shown: str = piece
    for name, _ in prompt.get("stream_tools", {}, ctx):
        called: str = name
    stream = prompt.run({}, ctx)
    for event in stream:
        if event.type == "text_partial":
            content: str = event.content
        elif event.type == "tool_start":
            print(event.tool.name, event.args)
        elif event.type == "usage":
            total: int = event.usage.total_tokens
    output: Optional[Advice] = stream.output
    print(results, shown, called, content, total, output)


def asks(ctx: aeye.Context) -> None:
    text: str = aeye.ask("x", ctx)
    rivers: List[str] = aeye.ask("x", ctx, schema=List[str])
    advice: Advice = aeye.ask("x", ctx, schema=Advice, tools=[plain])
    print(text, rivers, advice)


def contexts() -> None:
    with aeye.connect("rehearsal", user="ann") as ctx:
        print(ctx.user, ctx.replace(user="bob").max_output_tokens)


def agents(ctx: aeye.Context) -> None:
    plainly = aeye.Agent("Be kind.", ctx, tools=[plain], max_turns=3)
    typed = aeye.Agent(aeye.Prompt("p", "x", schema=Advice), ctx, name="adviser")

    said: str = plainly.prompt("hi").max_turns(2).send().output
    text: Optional[str] = plainly.prompt("hi").send().parsed
    request = typed.prompt([aeye.Message("user", "hi")]).with_tool_concurrency(2)
    advice: Optional[Advice] = request.with_completion_retries().send().parsed
    wrong: int = request.send().parsed  # type: ignore[assignment]  # an Agent knows
    for event in typed.session("s").prompt("hi").stream():
        if event.type == "text_delta":
            delta: str = event.delta
        elif event.type == "agent_tool_event" and event.event.type == "final":
            output: str = event.event.output
    for line in plainly.prompt("hi").readable_stream():
        size: int = len(line)
    bare = aeye.Prompt("p", "x", schema=Advice).request({}, ctx).send()
    also: Optional[Advice] = bare.parsed
    child: aeye.Tool[Any] = plainly.as_tool(stream=True)
    print(said, text, advice, wrong, delta, output, size, also, child)
    aeye.Agent("x", ctx, tool=[plain])  # type: ignore[call-overload]  # a slip


def traces(ctx: aeye.Context) -> None:
    prompt = aeye.Prompt("p", "x", schema=Advice)
    with aeye.TraceRecorder("trace.jsonl", redact=str.upper) as recorder:
        for event in recorder.watch(prompt.run({}, ctx)):
            if event.type == "text_partial":
                content: str = event.content
        observers = [recorder, aeye.OpenTelemetryObserver(capture_content=True)]
        request = prompt.request({}, ctx).with_observers(observers)
        advice: Optional[Advice] = request.send().parsed
    print(content, advice)
