"""Cases of the prompt loop that the other tests leave out."""

from __future__ import annotations

from typing import Any

import pytest

import aeye
from aeye.context import Abort, Context
from aeye.message import ToolCall
from aeye.prompt import Prompt
from aeye.response import Chunk, Response
from aeye.testing import ScriptedModel, calls
from aeye.tools import Tool, tool
from aeye.usage import Usage


@tool
def ping() -> str:
    """Say pong."""
    return "pong"


def types(stream: Any) -> list[str]:
    return [event.type for event in stream]


def whole(messages: Any) -> bool:
    """Whether every call has its reply, in order, right behind it."""
    found = []
    for at, message in enumerate(messages):
        ids = [call.id for call in message.tool_calls]
        after = messages[at + 1 : at + 1 + len(ids)]
        found.append([reply.tool_call_id for reply in after] == ids)
    return all(found)


# Leaving a run in the middle


@pytest.mark.parametrize("returns", [False, True])
def test_a_whole_answer_is_paid_for_although_the_run_is_aborted(returns: bool) -> None:
    """What a model that answers at once reported counts, read to its end or not."""
    abort = Abort()
    usage = Usage.of(input=7, output=3)

    def execute(request: Any) -> Response:
        abort.set()
        return Response("hello", calls(("ping", {}, "c")).tool_calls, usage=usage)

    def stream(request: Any) -> Any:
        return execute(request)
        yield

    model: Any = {"stream": stream} if returns else {"execute": execute}
    events = Prompt("p", "x", tools=[ping]).run({}, Context(signal=abort, **model))

    assert types(events)[-1] == "usage"
    assert events.usage == usage


@pytest.mark.parametrize(
    ("batch", "config"),
    [
        ([("zz", {}), ("ping", {})], None),
        ([("ping", {}), ("ping", {})], {"tools_one_at_a_time": True}),
    ],
)
def test_calls_are_answered_where_the_model_is_asked_again(
    batch: Any, config: Any
) -> None:
    """``tools_complete=False`` leaves calls open only where the run ends there."""
    model = ScriptedModel(calls(*batch), "done")
    prompt = Prompt("p", "x", tools=[ping], tools_complete=False, config=config)

    assert prompt({}, model.context()) == "done"
    assert whole(model.requests[1].messages)


@tool
def wait() -> None:
    """Wait for somebody."""
    raise aeye.PromptSuspend


def _leave(stream: Any, kind: str) -> None:
    for event in stream:
        if event.type == kind:
            return


@pytest.mark.parametrize("at", ["message", "tool_start", "tool_output", "tool_suspend"])
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_run_that_is_left_has_whole_messages(mode: Any, at: str) -> None:
    """However early a reader leaves, every call of ``messages`` is answered."""
    model = ScriptedModel(calls(("ping", {}), ("wait", {}), ("zz", {}), ("ping", {})))
    if at != "message":
        model = ScriptedModel(calls(("ping", {}), ("wait", {}), ("ping", {})))
    prompt = Prompt("p", "x", tools=[ping, wait], tool_execution=mode)

    with prompt.run({}, model.context()) as stream:
        _leave(stream, at)

    assert stream.messages[0].tool_calls
    assert whole(stream.messages)


def test_a_call_that_waits_is_answered_where_the_run_is_aborted() -> None:
    """A run that ends without a ``suspend`` event leaves no call open."""
    abort = Abort()

    def stream(request: Any) -> Any:
        for name in ("wait", "ping", "ping"):
            yield Chunk(tool_call=ToolCall("", name))
        abort.set()
        yield Chunk("more")

    prompt = Prompt("p", "x", tools=[wait, ping], on_tool_result=lambda about: "ok")
    events = prompt.run({}, Context(stream=stream, signal=abort))

    assert "suspend" not in types(events)
    assert whole(events.messages)


def test_ctrl_c_leaves_whole_messages() -> None:
    """What the run holds after Ctrl-C in a tool is whole."""

    @tool
    def stop() -> None:
        """Be stopped."""
        raise KeyboardInterrupt

    model = ScriptedModel(calls(("ping", {}), ("stop", {}), ("ping", {})))
    prompt = Prompt("p", "x", tools=[ping, stop], tool_execution="sequential")
    stream = prompt.run({}, model.context())

    with pytest.raises(KeyboardInterrupt):
        list(stream)

    assert [m.text for m in stream.messages[1:]] == [
        "pong",
        "[interrupted]",
        "[not run: cancelled]",
    ]


def test_replies_to_calls_that_waited_take_their_place() -> None:
    """A call decided later is answered in its place, before its finished siblings."""
    model = ScriptedModel(calls(("wait", {}, "a"), ("ping", {}, "b")), "done")
    prompt = Prompt("p", "x", tools=[wait, ping], tool_execution="parallel")
    *_, suspended = prompt.run({}, model.context())

    ctx = model.context(messages=suspended.messages, decisions={"a": "no"})
    told = [e for e in prompt.run({}, ctx) if e.type == "message"]

    replies = [m.tool_call_id for m in told[0].request.messages if m.role == "tool"]
    assert replies == ["a", "b"]


@pytest.mark.parametrize("mode", ["sequential", "parallel", "immediate"])
def test_an_abort_while_a_call_is_prepared_keeps_it_from_starting(mode: Any) -> None:
    """Nothing starts after an abort, not even a call that is about to."""
    abort = Abort()
    schema = {"type": "object", "properties": {"o": {"type": "object"}}}
    made = Tool("t", lambda given: "ran", schema=schema)
    model = ScriptedModel(calls(("t", {"o": "{}"}), ("t", {"o": "{}"})))
    prompt = Prompt("p", "x", tools=[made], tool_execution=mode)
    stream = prompt.run({}, model.context(signal=abort))
    seen = []

    for event in stream:
        seen.append(event.type)
        if event.type == "tool_arg_repair_attempt":
            abort.set()

    assert "tool_start" not in seen
    assert {m.text[:9] for m in stream.messages[1:]} == {"[aborted:"}


def test_only_suspended_calls_of_a_run_that_waits_are_open() -> None:
    """``tools_complete=False`` leaves no other call to decide about."""

    @tool
    def stop() -> None:
        """Stop the run."""
        raise aeye.ToolInterrupt

    model = ScriptedModel(calls(("wait", {}, "a"), ("stop", {}, "b")))
    prompt = Prompt(
        "p", "x", tools=[wait, stop], tools_complete=False, tool_execution="parallel"
    )

    *_, suspended = prompt.run({}, model.context())

    assert [m.tool_call_id for m in suspended.messages[-1:]] == ["b"]


def test_a_cut_answer_is_said_once() -> None:
    """Text of an answer that was cut after a tool had started counts once."""

    def stream(request: Any) -> Any:
        yield Chunk("so")
        yield Chunk(tool_call=ToolCall("1", "ping"))
        yield Chunk(tool_call=ToolCall("2", "ping"))
        yield Chunk(finish_reason="length")

    events: list[Any] = []
    with pytest.raises(aeye.TruncatedError):
        for event in Prompt("p", "x", tools=[ping]).run({}, Context(stream=stream)):
            events.append(event)

    assert "tool_output" in types(events)
    assert [e.content for e in events if e.type == "text_complete"] == ["so"]
