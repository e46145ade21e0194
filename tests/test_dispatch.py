"""Calling tools: order, modes, errors, replies. Barriers and events, never sleeps."""

from __future__ import annotations

import contextvars
import gc
import json
import queue
import threading
import weakref
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generator

import pytest

import aeye
from aeye.call import Call
from aeye.callback import attempt
from aeye.context import Abort, Context
from aeye.errors import (
    MaxTurnsError,
    PromptError,
    PromptSuspend,
    RefusalError,
    ToolCallError,
    ToolInterrupt,
    TruncatedError,
)
from aeye.event_stream import EventStream, PromptToolOutput
from aeye.message import Message, Part
from aeye.prompt import Prompt
from aeye.recipe import Policy
from aeye.response import Chunk, Response, ToolCall, ToolCallDelta
from aeye.testing import ScriptedModel, calls
from aeye.tools import Tool, tool
from aeye.workers import Workers

LIMIT = 10  # seconds after which a test that waits has failed


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def ping() -> str:
    """Say pong."""
    return "pong"


def model_of(*replies: Any, mode: Any = "execute") -> ScriptedModel:
    return ScriptedModel(*replies, mode=mode)


def events_of(prompt: Prompt[Any], model: ScriptedModel, **fields: Any) -> list[Any]:
    return list(prompt.run({}, model.context(**fields)))


def about(events: list[Any], *words: str) -> list[str]:
    """The events about calls, as 'word name'."""
    found = []
    for event in events:
        if event.type.startswith("tool_") and "parse" not in event.type:
            name = event.tool.name if event.tool else "?"
            found.append(f"{event.type[5:]} {name}")
    return [x for x in found if not words or x.split()[0] in words]


def replies(model: ScriptedModel, n: int = -1) -> list[str]:
    return [m.text for m in model.requests[n].messages if m.role == "tool"]


def threads() -> int:
    return sum(t.name == "aeye-tool" for t in threading.enumerate())


def gate() -> tuple[Tool[Any], Tool[Any], threading.Event]:
    """Two tools: ``slow`` ends only after ``fast`` has."""
    done = threading.Event()

    @tool
    def slow() -> str:
        """Wait for the other."""
        assert done.wait(LIMIT)
        return "slow"

    @tool
    def fast() -> str:
        """Let the other go on."""
        done.set()
        return "fast"

    return slow, fast, done


def test_a_tool_is_called_and_answered() -> None:
    """The model's call is run, and its reply goes back under the call's id."""
    model = model_of(calls(("add", {"a": 5, "b": 3}, "id1")), "8")

    assert Prompt("p", "x", tools=[add])({}, model.context()) == "8"

    assistant, reply = model.requests[1].messages[-2:]
    assert [(c.id, c.name) for c in assistant.tool_calls] == [("id1", "add")]
    assert reply == Message("tool", "8", name="add", tool_call_id="id1")


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    tags: Any = ()


CONTENT = [
    ("text", "text"),
    ({"a": 1, "b": "é"}, '{"a":1,"b":"é"}'),
    (0, "0"),
    (False, "false"),
    ("", ""),
    (None, "[no result]"),
    ([1, 2], "[1,2]"),
    (Point(1, {2}), '{"x":1,"tags":[2]}'),
    ({Colour.RED: 1} and Colour.RED, '"red"'),
    (object, "\"<class 'object'>\""),
]


@pytest.mark.parametrize(("result", "content"), CONTENT)
def test_what_a_reply_says(result: Any, content: str) -> None:
    """Text as it is, all else as compact JSON; 0, False and '' are results."""
    model = model_of(calls(("t", {})), "ok")
    made = Tool("t", lambda given: result, schema={"type": "object"})

    Prompt("p", "x", tools=[made])({}, model.context())

    assert replies(model) == [content]


def test_parts_stay_parts() -> None:
    """A picture that a tool returns stays a part of the reply."""
    picture = Part.image(b"\x89PNG", "image/png")
    model = model_of(calls(("t", {})), "ok")
    made = Tool("t", lambda given: [picture], schema={"type": "object"})

    Prompt("p", "x", tools=[made])({}, model.context())

    assert model.requests[1].messages[-1].content == (picture,)


def test_sequential_order() -> None:
    """Sequential: each call ends before the next starts, in the caller's thread."""
    seen: list[Any] = []

    @tool
    def note(n: int) -> int:
        """Note the thread."""
        seen.append(threading.current_thread())
        return n

    model = model_of(calls(("note", {"n": 1}), ("note", {"n": 2})), "ok")
    prompt = Prompt("p", "x", tools=[note], tool_execution="sequential")

    events = events_of(prompt, model)

    assert about(events) == ["start note", "output note"] * 2
    assert set(seen) == {threading.current_thread()}


@pytest.mark.parametrize("mode", ["parallel", "immediate"])
def test_parallel_order(mode: Any) -> None:
    """Side by side: outputs as they end, messages in the order of the calls."""
    slow, fast, _ = gate()
    model = model_of(calls(("slow", {}), ("fast", {})), "ok")
    prompt = Prompt("p", "x", tools=[slow, fast], tool_execution=mode)

    events = events_of(prompt, model)

    assert about(events) == ["start slow", "start fast", "output fast", "output slow"]
    assert replies(model) == ["slow", "fast"]
    order = [e.type for e in events]
    last_output = max(i for i, t in enumerate(order) if t == "tool_output")
    said = [
        i
        for i, e in enumerate(events)
        if e.type == "message" and e.message.role == "tool"
    ]
    assert last_output < min(said)
    assert threads() == 0


def test_immediate_starts_while_streaming() -> None:
    """Immediate: a call starts once the next chunk shows that more is to come."""
    started = threading.Event()

    @tool
    def early() -> str:
        """Say that it runs."""
        started.set()
        return "early"

    def stream(request: Any) -> Any:
        if len(request.messages) > 2:
            yield Chunk("ok", finish_reason="stop")
            return
        first, second = ToolCall("1", "early"), ToolCall("2", "ping")
        yield Chunk(tool_call_named=first, tool_call=first)
        yield Chunk(tool_call_named=second)
        assert started.wait(LIMIT)  # the tool runs before the stream ends
        yield Chunk(tool_call=second)
        yield Chunk(finish_reason="tool_calls")

    prompt = Prompt("p", "x", tools=[early, ping])
    events = list(prompt.run({}, Context(stream=stream)))

    order = [e.type for e in events]
    assert order.index("tool_start") < order.index("message")
    assert about(events, "start") == ["start early", "start ping"]


def test_immediate_leaves_the_last_call_to_the_caller() -> None:
    """The last call, and a call alone, run in the caller's thread."""
    seen: dict[str, Any] = {}

    @tool
    def where(n: str) -> str:
        """Note the thread."""
        seen[n] = threading.current_thread()
        return n

    model = model_of(calls(("where", {"n": "a"}), ("where", {"n": "b"})), "ok")

    Prompt("p", "x", tools=[where])({}, model.context())

    ours = threading.current_thread()
    assert {n: t is ours for n, t in seen.items()} == {"a": False, "b": True}


def test_inline_stays_in_the_callers_thread() -> None:
    """``inline=True`` keeps a tool in the caller's thread in every mode."""
    seen: list[Any] = []

    @tool(inline=True)
    def here() -> str:
        """Note the thread."""
        seen.append(threading.current_thread())
        return "ok"

    for mode in ("sequential", "parallel", "immediate"):
        model = model_of(calls(("here", {}), ("here", {}), ("ping", {})), "ok")
        prompt = Prompt("p", "x", tools=[here, ping], tool_execution=mode)
        prompt({}, model.context())

    assert set(seen) == {threading.current_thread()}
    with pytest.raises(ValueError, match="inline"):
        tool(lambda: 1, name="t", inline=True, timeout=1)


def test_concurrency_is_bounded() -> None:
    """No more calls run at once than ``tool_concurrency`` allows; all are run."""
    lock = threading.Lock()
    running, most = 0, 0
    pair = threading.Barrier(2)

    @tool
    def busy() -> str:
        """Count who runs."""
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        pair.wait(LIMIT)
        with lock:
            running -= 1
        return "ok"

    model = model_of(calls(*[("busy", {})] * 6), "done")
    prompt = Prompt(
        "p", "x", tools=[busy], tool_execution="parallel", tool_concurrency=2
    )

    prompt({}, model.context())

    assert (most, replies(model)) == (2, ["ok"] * 6)


@pytest.mark.parametrize("mode", ["sequential", "parallel", "immediate"])
def test_context_variables_are_visible(mode: Any) -> None:
    """A tool sees the caller's context variables, whichever thread it runs in."""
    var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="unset")

    @tool
    def read() -> str:
        """Read the variable."""
        return var.get()

    model = model_of(calls(("read", {}), ("read", {})), "ok")
    var.set("mine")

    Prompt("p", "x", tools=[read], tool_execution=mode)({}, model.context())

    assert replies(model) == ["mine", "mine"]


def test_every_event_names_its_call() -> None:
    """Events about a call have the tool, the call's id and the arguments."""
    model = model_of(calls(("add", {"a": 1, "b": 2}, "c1"), ("zz", {}, "c2")), "ok")
    second = model_of(calls(("add", {"a": 1, "b": 2}, "c1")), "ok")
    prompt = Prompt("p", "x", tools=[add])

    lost = next(e for e in events_of(prompt, model) if e.type == "tool_error")
    events = [e for e in events_of(prompt, second) if e.type.startswith("tool_")]

    assert (lost.tool, lost.tool_call_id) == (None, "c2")
    assert [(e.type, e.tool, e.tool_call_id) for e in events] == [
        (kind, add, "c1")
        for kind in (
            "tool_parse_name",
            "tool_parse_arguments",
            "tool_start",
            "tool_output",
        )
    ]
    assert [e.args for e in events[2:]] == [{"a": 1, "b": 2}] * 2
    assert json.loads(events[1].args) == {"a": 1, "b": 2}


@pytest.mark.parametrize("mode", ["sequential", "parallel", "immediate"])
def test_bad_arguments_do_not_stop_the_others(mode: Any) -> None:
    """Arguments that do not fit are told to the model; the other calls run."""
    model = model_of(
        calls(("add", {"a": "x", "b": 1}), ("add", {"a": 1, "b": 2})), "ok"
    )
    prompt = Prompt("p", "x", tools=[add], tool_execution=mode)

    events = events_of(prompt, model)

    error = next(e for e in events if e.type == "tool_error")
    assert (json.loads(error.raw_args), error.args) == ({"a": "x", "b": 1}, None)
    assert isinstance(error.error, aeye.ToolArgumentError)
    first, second = replies(model)
    assert first.startswith("Error parsing tool arguments: - a: ")
    assert (second, about(events, "output")) == ("3", ["output add"])


@pytest.mark.parametrize("text", ["", "  ", "{"])
def test_no_arguments(text: str) -> None:
    """No arguments at all: the model is told so; broken ones are shown to it."""
    model = model_of(calls(("add", text)), "ok")

    Prompt("p", "x", tools=[add])({}, model.context())

    (reply,) = replies(model)
    assert reply.startswith("Error parsing tool arguments:")
    assert ("NO arguments" in reply) is not bool(text.strip())


def test_blank_arguments_are_none() -> None:
    """A tool without required arguments runs when it is given none."""
    model = model_of(calls(("ping", "")), "ok")

    Prompt("p", "x", tools=[ping])({}, model.context())

    assert replies(model) == ["pong"]


def test_a_tool_that_raises() -> None:
    """What a tool raises is told to the model in one line; the run goes on."""

    @tool
    def bad() -> None:
        """Fail."""
        raise KeyError("boom")

    model = model_of(calls(("bad", {})), "sorry")
    events = events_of(Prompt("p", "x", tools=[bad]), model)

    error = next(e for e in events if e.type == "tool_error")
    assert isinstance(error.error, KeyError)
    assert error.to_model == "Error executing tool: KeyError: 'boom', args: {}"
    assert replies(model) == [error.to_model]
    assert events[-1].output == "sorry"


def test_results_without_a_json_form() -> None:
    """A result that is no JSON is an error of the tool, and the run goes on."""
    made = Tool("t", lambda given: {(1, 2): 3}, schema={"type": "object"})
    model = model_of(calls(("t", {})), "ok")

    Prompt("p", "x", tools=[made])({}, model.context())

    assert replies(model)[0].startswith(
        "Error executing tool: the result has no JSON form: "
    )


def test_arguments_without_a_json_form() -> None:
    """What a parse of the user's makes is shown as it prints."""
    loop: list[Any] = []
    loop.append(loop)

    def bad(given: Any) -> None:
        raise ValueError("boom")

    made = Tool("t", bad, schema={"type": "object"}, parse=lambda raw: loop)
    model = model_of(calls(("t", {})), "ok")

    Prompt("p", "x", tools=[made])({}, model.context())

    assert replies(model) == ["Error executing tool: boom, args: [[...]]"]


def test_bad_arguments_do_not_end_a_run() -> None:
    """``on_error="raise"`` is about what the tool raises, not the model's slips."""
    strict = tool(add.call.fn, name="add", on_error="raise")
    model = model_of(calls(("add", {})), calls(("add", {"a": 1, "b": 1})), "ok")

    assert Prompt("p", "x", tools=[strict])({}, model.context()) == "ok"


def test_on_error_raise() -> None:
    """``on_error="raise"`` ends the run; the transcript on the error is paired."""

    @tool(on_error="raise")
    def bad() -> None:
        """Fail."""
        raise KeyError("boom")

    model = model_of(calls(("bad", {}), ("ping", {})), "never")

    with pytest.raises(ToolCallError, match="bad: 'boom'") as e:
        Prompt("p", "x", tools=[bad, ping])({}, model.context())

    assert isinstance(e.value.__cause__, KeyError)
    assert [m.role for m in e.value.messages] == ["assistant", "tool", "tool"]
    assert model.calls == 1


def test_unknown_tool() -> None:
    """A name nobody knows is answered with the names there are."""
    model = model_of(calls(("zz", {})), "ok")

    events = events_of(Prompt("p", "x", tools=[add, ping]), model)

    assert replies(model) == ["Tool not found: zz. The tools are: add, ping"]
    assert about(events) == ["error ?"]
    assert "tool_parse_name" not in [e.type for e in events]


@pytest.mark.parametrize("mode", ["sequential", "parallel", "immediate"])
def test_an_unknown_tool_stops_the_batch(mode: Any) -> None:
    """A call beside an unknown name is not run, and told to come again."""
    model = model_of(calls(("zz", {}), ("ping", {})), "ok")
    prompt = Prompt("p", "x", tools=[ping], tool_execution=mode)

    events = events_of(prompt, model)

    assert replies(model)[1] == (
        "[not run: another call in this batch was invalid; call it again]"
    )
    assert about(events) == ["error ?"]


def test_reading_goes_on_after_an_unknown_name() -> None:
    """Text, usage and calls after an unknown name are not lost."""
    first, second = ToolCall("1", "zz"), ToolCall("2", "ping")
    usage = aeye.Usage.of(input=3, output=4)
    chunks = [
        Chunk(tool_call_named=first, tool_call=first),
        Chunk("text"),
        Chunk(tool_call_named=second, tool_call=second),
        Chunk(usage=usage, finish_reason="tool_calls"),
    ]
    model = model_of(chunks, "ok", mode="stream")

    events = events_of(Prompt("p", "x", tools=[ping]), model)

    assistant = model.requests[1].messages[2]
    assert (assistant.text, len(assistant.tool_calls)) == ("text", 2)
    total = next(e for e in events if e.type == "usage").usage
    assert total == usage + aeye.Usage.of(input=10, output=5)


def test_only_a_mark_of_deltas_completes_a_call() -> None:
    """A stream that gives names and argument pieces only is complete at its end."""
    chunks = [
        Chunk(tool_call_named=ToolCall("1", "add", "")),
        Chunk(tool_call_arguments=ToolCallDelta("1", arguments='{"a": 1,')),
        Chunk(tool_call_arguments=ToolCallDelta("", arguments='"b": 2}')),
        Chunk(finish_reason="tool_calls"),
    ]
    model = model_of(chunks, "ok", mode="stream")

    events = events_of(Prompt("p", "x", tools=[add]), model)

    parts = [e for e in events if e.type == "tool_parse_arguments"]
    assert [e.delta for e in parts] == ['{"a": 1,', '"b": 2}']
    assert [e.args for e in parts] == ['{"a": 1,', '{"a": 1,"b": 2}']
    assert replies(model) == ["3"]


def failing() -> Tool[Any]:
    @tool
    def bad() -> None:
        """Fail."""
        raise ValueError("boom")

    return bad


def test_tools_are_withdrawn_when_retries_are_spent() -> None:
    """A round with errors costs one retry; when none is left the tools go, for good."""
    round_ = calls(("bad", {}), ("bad", {}))
    model = model_of(calls(("bad", {})), calls(("bad", {})), calls(("ping", {})), "ok")
    config = {"tool_choice": "auto", "tools_one_at_a_time": True}
    prompt = Prompt(
        "p", "x", tools=[failing(), ping], tool_retries=1, config=config, dynamic=True
    )

    prompt({}, model.context())

    assert [len(r.tools) for r in model.requests] == [2, 2, 0, 0]
    last = model.requests[-1]
    assert (last.tool_choice, last.tools_one_at_a_time) == (None, False)
    assert replies(model)[-1] == "[not run: the tools were withdrawn]"
    assert round_.tool_calls


def test_tools_max() -> None:
    """After ``tools_max`` successes the tools go and the model answers."""
    model = model_of(calls(("ping", {})), "ok")

    assert Prompt("p", "x", tools=[ping], tools_max=1)({}, model.context()) == "ok"
    assert [len(r.tools) for r in model.requests] == [1, 0]


@pytest.mark.parametrize(("bad", "choice"), [(False, None), (True, "required")])
def test_a_forced_choice_is_released(bad: bool, choice: Any) -> None:
    """A forced choice is released after a success without a bad call beside it."""
    extra = [("add", {"a": "x"})] if bad else []
    model = model_of(calls(("ping", {}), *extra), "ok")
    prompt = Prompt("p", "x", tools=[ping, add], config={"tool_choice": "required"})

    prompt({}, model.context())

    assert [r.tool_choice for r in model.requests] == ["required", choice]


def test_get_tools() -> None:
    """``get("tools")`` gives raw results, and ends when the model calls no more."""
    model = model_of(calls(("add", {"a": 1, "b": 2}), ("ping", {})), "text")
    prompt = Prompt("p", "x", tools=[add, ping], tool_execution="sequential")

    found = prompt.get("tools", {}, model.context())

    assert found == [PromptToolOutput("add", 3), PromptToolOutput("ping", "pong")]
    assert found[0].tool == "add"


def test_stream_tools() -> None:
    """``stream_tools`` yields results as they come; the output is the text."""
    model = model_of(calls(("ping", {})), "text")
    stream = Prompt("p", "x", tools=[ping]).get("stream_tools", {}, model.context())

    assert (list(stream), stream.output) == ([("ping", "pong")], "text")


def test_tools_only() -> None:
    """``tools_only``: the output is None, and complete says so."""
    model = model_of(calls(("ping", {})), "text")
    prompt = Prompt("p", "x", tools=[ping], tools_only=True)

    events = events_of(prompt, model)

    assert (events[-1].type, events[-1].output) == ("complete", None)


def test_tools_only_raises_where_nothing_was_done() -> None:
    """A refusal raises, unless a tool had succeeded by then."""
    prompt = Prompt("p", "x", tools=[ping])
    no = Response(refusal="No.")

    with pytest.raises(aeye.RefusalError):
        prompt.get("tools", {}, model_of(no).context())
    assert prompt.get("tools", {}, model_of(calls(("ping", {})), no).context()) == [
        ("ping", "pong")
    ]


def test_tools_only_with_a_forced_choice_ends() -> None:
    """A forced choice with tools only ends after a round without errors."""
    model = model_of(calls(("ping", {})))
    prompt = Prompt("p", "x", tools=[ping], config={"tool_choice": "required"})

    assert prompt.get("tools", {}, model.context()) == [("ping", "pong")]
    assert model.calls == 1


@pytest.mark.parametrize(
    "reply", [calls(("ping", {})), Response(finish_reason="tool_calls")]
)
def test_endless_rounds_end(reply: Response) -> None:
    """Nine requests by default: retries of all kinds, three tool rounds and one."""
    model = model_of(reply)

    with pytest.raises(PromptError, match=r"Maximum iterations \(9\)") as e:
        Prompt("p", "x", tools=[ping])({}, model.context())

    assert model.calls == 9
    assert e.value.usage.total_tokens == 9 * 15 or reply.finish_reason == "tool_calls"


def test_one_at_a_time() -> None:
    """With ``tools_one_at_a_time`` only the first call of a batch is run."""
    model = model_of(calls(("ping", {}), ("ping", {})), "ok")
    config = {"tools_one_at_a_time": True}

    Prompt("p", "x", tools=[ping], config=config)({}, model.context())

    assert replies(model) == ["pong", "[not run: one tool at a time; call it again]"]


# What is put between the tool and the model


def test_on_tool_result() -> None:
    """``on_tool_result`` says what the model reads; the event keeps both."""

    def present(event: Any, ctx: Any) -> Any:
        return {"tool": event.tool.name, "n": event.result, "id": ctx.tool_call_id}

    model = model_of(calls(("add", {"a": 1, "b": 2}, "c")), "ok")
    prompt = Prompt("p", "x", tools=[add], on_tool_result=present)

    output = next(e for e in events_of(prompt, model) if e.type == "tool_output")

    assert (output.result, output.to_model) == (3, {"tool": "add", "n": 3, "id": "c"})
    assert replies(model) == ['{"tool":"add","n":3,"id":"c"}']


@pytest.mark.parametrize(
    ("shown", "content"),
    [("as text", "as text"), (None, "null"), ({"a": 1}, '{"a":1}'), ("", "")],
)
def test_what_a_presenter_may_return(shown: Any, content: str) -> None:
    """What the presenter returns decides: None is null where there was a result."""
    model = model_of(calls(("ping", {})), "ok")
    handlers = {"ping": lambda event: shown}

    Prompt("p", "x", tools=[ping], on_tool_result=handlers)({}, model.context())

    assert replies(model) == [content]


def test_a_presenter_may_answer_for_nothing() -> None:
    """A presenter may say something where the tool returned None."""
    model = model_of(calls(("t", {})), "ok")
    made = Tool("t", lambda given: None, schema={"type": "object"})
    prompt = Prompt("p", "x", tools=[made], on_tool_result=lambda event: "done")

    prompt({}, model.context())

    assert replies(model) == ["done"]


def test_a_presenter_that_raises() -> None:
    """A presenter that raises: an error that still has the raw result."""

    def broken(event: Any) -> Any:
        raise ValueError("boom")

    model = model_of(calls(("ping", {})), "ok")
    prompt = Prompt("p", "x", tools=[ping], on_tool_result=broken)

    events = events_of(prompt, model)

    error = next(e for e in events if e.type == "tool_error")
    assert (error.result, error.has_result) == ("pong", True)
    assert replies(model) == ["Error transforming tool result: boom"]
    assert about(events, "output") == []
    again = model_of(calls(("ping", {})), "ok")
    assert prompt.get("tools", {}, again.context()) == [("ping", "pong")]


@pytest.mark.parametrize("answer", [None, False])
def test_an_interceptor_may_let_it_run(answer: Any) -> None:
    """None and False from ``on_tool_intercept`` run the tool."""
    seen = []

    def intercept(tool: Any, args: Any, ctx: Any, call: Any) -> Any:
        seen.append((tool, args, ctx.tool_call_id, call.id))
        return answer

    model = model_of(calls(("add", {"a": 1, "b": 2}, "c")), "ok")
    prompt = Prompt("p", "x", tools=[add], on_tool_intercept=intercept)

    prompt({}, model.context())

    assert (seen, replies(model)) == ([(add, {"a": 1, "b": 2}, "c", "c")], ["3"])


@pytest.mark.parametrize(("answer", "content"), [({}, "{}"), ([], "[]"), (7, "7")])
def test_an_interceptor_may_answer(answer: Any, content: str) -> None:
    """Anything else is the result, and the presenter sees it."""
    model = model_of(calls(("ping", {})), "ok")
    prompt = Prompt(
        "p",
        "x",
        tools=[ping],
        on_tool_intercept=lambda tool: answer,
        on_tool_result=lambda event: event.result,
    )

    prompt({}, model.context())

    assert replies(model) == [content]


def test_ctx_of_a_tool() -> None:
    """A tool gets the run's context: the caller's names and its own call's id."""

    @tool
    def who(n: int, ctx: Context) -> str:
        """Say who asks."""
        return f"{ctx.user} {ctx.tool_call_id} {n}"

    model = model_of(calls(("who", {"n": 1}, "c1"), ("who", {"n": 2}, "c2")), "ok")

    Prompt("p", "x", tools=[who])({}, model.context(user="ann"))

    assert replies(model) == ["ann c1 1", "ann c2 2"]
    assert "ctx" not in who.schema.json["properties"]


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_generator_tools(mode: Any) -> None:
    """A generator's steps are progress, its return value the result."""

    @tool
    def steps(n: int) -> Generator[int, None, str]:
        """Go in steps."""
        yield from range(n)
        return "end"

    model = model_of(calls(("steps", {"n": 2}), ("steps", {"n": 1})), "ok")
    prompt = Prompt("p", "x", tools=[steps], tool_execution=mode)

    events = events_of(prompt, model)

    progress = [(e.tool_call_id, e.value) for e in events if e.type == "tool_progress"]
    assert sorted(progress) == [("call_1", 0), ("call_1", 1), ("call_2", 0)]
    assert replies(model) == ["end", "end"]


def test_a_generator_that_raises() -> None:
    """What a generator raises between its steps is an error like any other."""

    @tool
    def steps() -> Generator[int, None, None]:
        """Fail after a step."""
        yield 1
        raise ValueError("boom")

    model = model_of(calls(("steps", {})), "ok")

    events = events_of(Prompt("p", "x", tools=[steps]), model)

    assert about(events) == ["start steps", "progress steps", "error steps"]


# Stopping


def stopper(kind: type[Exception]) -> Tool[Any]:
    @tool
    def stop() -> None:
        """Stop the run."""
        raise kind()

    return stop


def test_suspend() -> None:
    """A suspended call is left open, at the end of the transcript to resume from."""
    model = model_of(calls(("stop", {}, "c1")), "never")
    prompt = Prompt("p", "x", tools=[stopper(PromptSuspend)])

    events = events_of(prompt, model)

    assert [e.type for e in events][-5:] == [
        "tool_suspend",
        "text_complete",
        "response_tokens",
        "usage",
        "suspend",
    ]
    last = events[-1].request.messages[-1]
    assert [c.id for c in last.tool_calls] == ["c1"]
    assert prompt.get("result", {}, model_of(calls(("stop", {}))).context()) is None
    with pytest.raises(PromptSuspend) as e:
        prompt({}, model_of(calls(("stop", {}))).context())
    assert e.value.messages[-1].role == "assistant"


def test_what_a_stopping_tool_says_is_kept() -> None:
    """The words of a suspend or an interrupt are on the event and what is raised."""

    @tool
    def ask_boss() -> None:
        """Wait."""
        raise PromptSuspend("ask the boss")

    model = model_of(calls(("ask_boss", {})))
    prompt = Prompt("p", "x", tools=[ask_boss])

    event = next(e for e in events_of(prompt, model) if e.type == "tool_suspend")

    assert event.reason == "ask the boss"
    with pytest.raises(PromptSuspend, match="ask the boss"):
        prompt({}, model.context())


@pytest.mark.parametrize("mode", ["sequential", "parallel", "immediate"])
def test_finished_siblings_of_a_suspended_call_are_kept(mode: Any) -> None:
    """The replies of calls that finished are there; the suspended call has none."""
    model = model_of(calls(("ping", {}, "a"), ("stop", {}, "b")), "never")
    tools = [ping, stopper(PromptSuspend)]

    events = events_of(Prompt("p", "x", tools=tools, tool_execution=mode), model)

    roles = [(m.role, m.tool_call_id) for m in events[-1].request.messages[2:]]
    assert roles == [("assistant", None), ("tool", "a")]


def test_resume_by_history() -> None:
    """A run that is given the transcript and the missing reply goes on."""
    model = model_of(calls(("stop", {}, "c1")), "done")
    prompt = Prompt("p", "x", tools=[stopper(PromptSuspend)])
    saved = [m.to_dict() for m in events_of(prompt, model)[-1].request.messages]

    messages = [Message.from_dict(m) for m in json.loads(json.dumps(saved))]
    answer = Message("tool", "yes", tool_call_id="c1")
    ctx = model.context(messages=[*messages, answer])

    assert prompt({}, ctx) == "done"
    assert [m.role for m in model.requests[-1].messages] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]


@pytest.mark.parametrize("schema", [None, dict])
def test_interrupt(schema: Any) -> None:
    """An interrupt ends the run after one request, with or without a schema."""
    said = Response(
        "so far", calls(("stop", {})).tool_calls, finish_reason="tool_calls"
    )
    model = model_of(said, "never")
    prompt: Prompt[Any] = Prompt(
        "p", "x", tools=[stopper(ToolInterrupt)], schema=schema
    )

    events = events_of(prompt, model)

    assert events[-1].output == ("so far" if schema is None else None)
    reply = [e.message for e in events if e.type == "message"][-1]
    assert (reply.text, model.calls) == ("[interrupted]", 1)


def test_sequential_stops_at_an_interrupt() -> None:
    """Sequential: after an interrupt the rest of the batch is not run."""
    model = model_of(calls(("stop", {}), ("ping", {})), "never")
    tools = [stopper(ToolInterrupt), ping]
    prompt = Prompt("p", "x", tools=tools, tool_execution="sequential")

    events = events_of(prompt, model)

    texts = [e.message.text for e in events if e.type == "message"][1:]
    assert texts == [
        "[interrupted]",
        "[not run: the batch was stopped; call it again]",
    ]


@pytest.mark.parametrize("complete", [True, False])
def test_abort_between_calls(complete: bool) -> None:
    """After an abort nothing is started; what was not run is answered, or left out."""
    abort = aeye.Abort()

    @tool
    def quit_now() -> str:
        """Abort the run."""
        abort.set()
        return "quit"

    model = model_of(calls(("quit_now", {}), ("ping", {})), "never")
    prompt = Prompt(
        "p",
        "x",
        tools=[quit_now, ping],
        tool_execution="sequential",
        tools_complete=complete,
    )

    events = events_of(prompt, model, signal=abort)

    texts = [e.message.text for e in events if e.type == "message"][1:]
    assert texts[0] == "quit"
    assert [t.startswith("[aborted:") for t in texts[1:]] == [True] * complete
    assert (events[-1].type, model.calls) == ("usage", 1)


def test_started_calls_are_finished_after_an_abort() -> None:
    """Side by side: a call that runs is waited for, and its real result reported."""
    abort = aeye.Abort()
    running = threading.Barrier(2)

    @tool
    def slow(ctx: Context) -> str:
        """Wait for the abort."""
        running.wait(LIMIT)
        assert ctx.signal.wait(LIMIT)
        return "slow"

    @tool
    def fast() -> str:
        """Abort."""
        running.wait(LIMIT)
        abort.set()
        return "fast"

    model = model_of(calls(("slow", {}), ("fast", {})), "never")
    prompt = Prompt("p", "x", tools=[slow, fast], tool_execution="parallel")

    events = events_of(prompt, model, signal=abort)

    texts = [e.message.text for e in events if e.type == "message"][1:]
    assert texts == ["slow", "fast"]


def test_timeout() -> None:
    """A tool that outlives its time-out is given up, and not heard any more."""
    release = threading.Event()

    @tool(timeout=0.02)
    def hang() -> str:
        """Hang."""
        release.wait(LIMIT)
        return "late"

    model = model_of(calls(("hang", {})), "ok")

    events = events_of(Prompt("p", "x", tools=[hang]), model)
    release.set()

    assert replies(model) == [
        "Error executing tool: timed out after 0.02 seconds, args: {}"
    ]
    error = next(e for e in events if e.type == "tool_error")
    assert isinstance(error.error, TimeoutError)
    assert events[-1].output == "ok"


class Late(Workers):
    """Workers whose time is over once a job says that it has begun."""

    def __init__(self, began: threading.Event) -> None:
        super().__init__()
        self.began = began
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def wait(self, said: Any, until: float | None) -> Any:
        if until is None:
            return super().wait(said, None)
        assert self.began.wait(LIMIT)
        self.time = until
        raise queue.Empty


def test_a_tool_that_was_given_up_is_told() -> None:
    """Its signal is set, so that a run within it ends too; the run's own is not."""
    began, told = threading.Event(), threading.Event()

    def hang(args: Any, ctx: Context) -> None:
        ctx.signal.watch(told.set)
        began.set()
        assert told.wait(LIMIT)

    policy = Policy()
    policy.workers = Late(began)
    model = model_of(calls(("hang", {})), "ok")
    prompt = Prompt("p", "x", tools=[Tool("hang", hang, schema={}, timeout=5)])

    events = list(under(prompt, model.context(), policy))

    assert told.wait(LIMIT)
    assert events[-1].output == "ok"


def test_started_calls_are_reported_when_the_stream_fails() -> None:
    """A stream that breaks after a tool ran: the real results are in the transcript."""
    first, second = ToolCall("1", "ping"), ToolCall("2", "ping")

    def stream(request: Any) -> Any:
        yield Chunk("so")
        yield Chunk(tool_call_named=first, tool_call=first)
        yield Chunk(tool_call_named=second)
        raise aeye.StreamCutError("cut", partial="so")

    events = []
    with pytest.raises(aeye.StreamCutError) as e:
        for event in Prompt("p", "x", tools=[ping]).run({}, Context(stream=stream)):
            events.append(event)

    assert about(events) == ["start ping", "output ping"]
    assert [(m.role, m.text) for m in e.value.messages] == [
        ("assistant", "so"),
        ("tool", "pong"),
    ]
    assert [c.id for c in e.value.messages[0].tool_calls] == ["1"]


def test_closing_waits_for_running_tools() -> None:
    """``close`` tells running tools, waits for them, and leaves no thread."""
    running, told = threading.Event(), []

    @tool
    def slow(ctx: Context) -> str:
        """Wait to be told."""
        running.set()
        told.append(ctx.signal.wait(LIMIT))
        return "slow"

    model = model_of(calls(("slow", {}), ("slow", {}), ("ping", {})), "never")
    prompt = Prompt("p", "x", tools=[slow, ping], tool_execution="parallel")

    with prompt.run({}, model.context()) as events:
        for event in events:
            if event.type == "tool_output" or running.is_set():
                break

    assert set(told) == {True}
    assert threads() == 0


def test_dropping_a_run_signals_its_tools() -> None:
    """A run that is dropped unfinished tells its tools and waits for nothing."""
    running, told = threading.Event(), threading.Event()

    @tool
    def slow(ctx: Context) -> str:
        """Wait to be told."""
        running.set()
        if ctx.signal.wait(LIMIT):
            told.set()
        return "slow"

    model = model_of(calls(("slow", {}), ("slow", {})), "never")
    events = Prompt("p", "x", tools=[slow], tool_execution="parallel").run(
        {}, model.context()
    )
    for event in events:
        if event.type == "tool_start" and event.tool_call_id == "call_2":
            break  # the first call has been started
    assert running.wait(LIMIT)

    del events, event
    gc.collect()

    assert told.wait(LIMIT)


class Stop(BaseException):
    pass


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_what_is_no_exception_reaches_the_caller(mode: Any) -> None:
    """SystemExit and its like pass through a tool to the caller, from any thread."""

    @tool
    def out() -> None:
        """Leave."""
        raise Stop("out")

    model = model_of(calls(("out", {}), ("ping", {})), "never")

    with pytest.raises(Stop):
        Prompt("p", "x", tools=[out, ping], tool_execution=mode)({}, model.context())


@pytest.mark.parametrize("mode", ["sequential", "parallel", "immediate"])
def test_what_was_begun_is_not_said_to_be_not_run(mode: Any) -> None:
    """A call that SystemExit and its like came out of has begun, and is told so."""

    @tool
    def out() -> None:
        """Leave, with the work half done."""
        raise Stop("out")

    model = model_of(calls(("out", {}), ("ping", {})), "never")
    stream = Prompt("p", "x", tools=[out, ping], tool_execution=mode).run(
        {}, model.context()
    )

    with pytest.raises(Stop):
        list(stream)

    assert [m.text for m in stream.messages][1] == "[interrupted]"
    assert paired(stream.messages)


def test_nested_runs_do_not_wait_for_each_other() -> None:
    """A tool may run a prompt with tools of its own, at any width and depth."""

    def nest(depth: int) -> Prompt[str]:
        @tool
        def go(n: int) -> str:
            """Go down."""
            if depth == 0:
                return "bottom"
            model = model_of(calls(("go", {"n": 1}), ("go", {"n": 2})), str(depth))
            return nest(depth - 1)({}, model.context())

        return Prompt("p", "x", tools=[go], tool_concurrency=2)

    model = model_of(calls(("go", {"n": 1}), ("go", {"n": 2})), "top")

    assert nest(3)({}, model.context()) == "top"
    assert replies(model) == ["3", "3"]
    assert threads() == 0


def test_attempt() -> None:
    """``attempt`` gives the value or the exception."""
    value, error = attempt(int, "x")

    assert (value, type(error)) == (None, ValueError)


# Left in the middle


@pytest.mark.parametrize("mode", ["sequential", "parallel", "immediate"])
@pytest.mark.parametrize("stop", ["tool_start", "tool_output", "message", "request"])
def test_a_run_that_is_left_is_paired(mode: Any, stop: str) -> None:
    """Wherever a reader stops, every call in ``messages`` is answered once."""
    model = model_of(calls(("ping", {}), ("ping", {}), ("ping", {})), "done")
    prompt = Prompt("p", "x", tools=[ping], tool_execution=mode)

    with prompt.run({}, model.context()) as events:
        for event in events:
            if event.type == stop:
                break

    called = [c.id for m in events.messages for c in m.tool_calls]
    assert [m.tool_call_id for m in events.messages if m.role == "tool"] == called
    assert threads() == 0


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_what_leaves_from_a_tool_leaves_a_paired_history(mode: Any) -> None:
    """What is no exception leaves at once; the history is paired all the same."""

    @tool
    def out() -> None:
        """Leave."""
        raise Stop("out")

    model = model_of(calls(("ping", {}), ("out", {}), ("ping", {})), "never")
    events = Prompt("p", "x", tools=[out, ping], tool_execution=mode).run(
        {}, model.context()
    )

    with pytest.raises(Stop):
        list(events)

    assert [m.role for m in events.messages] == ["assistant", "tool", "tool", "tool"]


@pytest.mark.parametrize("mode", ["parallel", "immediate"])
def test_a_call_that_stops_does_not_stop_those_beside_it(mode: Any) -> None:
    """Side by side, what is run never depends on which call is the quicker."""
    batch = calls(("stop", {}), ("ping", {}), ("ping", {}), ("ping", {}))
    tools = [stopper(PromptSuspend), ping]

    for _ in range(20):
        events = events_of(
            Prompt("p", "x", tools=tools, tool_execution=mode), model_of(batch)
        )
        assert about(events, "output") == ["output ping"] * 3


def test_every_call_that_needs_consent_waits() -> None:
    """Two calls that need consent wait together; the others are run."""
    pay = tool(ping.call.fn, name="pay", approval=True)
    batch = calls(("pay", {}, "a"), ("ping", {}, "b"), ("pay", {}, "c"))

    for mode in ("parallel", "immediate"):
        prompt = Prompt("p", "x", tools=[pay, ping], tool_execution=mode)
        last = events_of(prompt, model_of(batch))[-1]
        answered = [m.tool_call_id for m in last.request.messages if m.role == "tool"]
        assert (last.type, answered) == ("suspend", ["b"])


@pytest.mark.parametrize("kind", [PromptSuspend, ToolInterrupt])
def test_a_validate_may_stop_the_run(kind: type[Exception]) -> None:
    """A signal from a tool's validate is heard as one from the tool."""

    def check(args: Any) -> None:
        raise kind("because")

    made = Tool("t", lambda given: "no", schema={"type": "object"}, validate=check)

    events = events_of(Prompt("p", "x", tools=[made]), model_of(calls(("t", {}))))

    stopped = [e for e in events if e.type in ("tool_suspend", "tool_interrupt")]
    assert [e.reason for e in stopped] == ["because"]
    assert "tool_error" not in [e.type for e in events]


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_without_words() -> None:
    """An exception that cannot be printed is told by its class."""

    @tool
    def bad() -> None:
        """Fail."""
        raise Mute

    model = model_of(calls(("bad", {})), "ok")

    events = events_of(Prompt("p", "x", tools=[bad]), model)

    assert replies(model) == ["Error executing tool: Mute, args: {}"]
    assert [e.to_dict() for e in events]


async def later() -> str:
    return "late"


def test_what_would_have_to_be_awaited() -> None:
    """A function that gives a coroutine is an error that says so."""
    made = Tool("t", lambda given: later(), schema={"type": "object"})
    model = model_of(calls(("t", {})), "ok")

    Prompt("p", "x", tools=[made])({}, model.context())

    assert "aeye is synchronous" in replies(model)[0]


def test_a_call_that_was_cut_is_not_run() -> None:
    """A stream that ends inside a call, without a finish, is cut: nothing is run."""
    chunks = [
        Chunk("so"),
        Chunk(tool_call_named=ToolCall("a", "ping", "")),
        Chunk(tool_call_arguments=ToolCallDelta("a", arguments="{}")),
    ]
    model = model_of(chunks, mode="stream")

    with pytest.raises(aeye.StreamCutError, match="middle of a tool call") as e:
        Prompt("p", "x", tools=[ping])({}, model.context())

    assert e.value.partial == "so"


def test_replies_are_left_out_only_at_the_end() -> None:
    """Without ``tools_complete`` a model that is asked again still gets every reply."""
    model = model_of(calls(("zz", {}), ("ping", {})), "ok")

    Prompt("p", "x", tools=[ping], tools_complete=False)({}, model.context())

    assert len(replies(model)) == 2


def test_long_names_are_cut() -> None:
    """A made-up name of any length costs no more than other errors."""
    model = model_of(calls(("z" * 10_000, {})), "ok")

    Prompt("p", "x", tools=[ping], validation_error_max_length=100)({}, model.context())

    assert len(replies(model)[0]) < 200


def test_a_stream_that_raises_when_closed() -> None:
    """What a stream raises when it is closed is nobody's business."""

    def stream(request: Any) -> Any:
        try:
            yield Chunk("a")
            yield Chunk("b")
        finally:
            raise RuntimeError("on close")

    with Prompt("p", "x").run({}, Context(stream=stream)) as events:
        for event in events:
            if event.type == "text_partial":
                break


@pytest.mark.parametrize("late", [True, False])
def test_a_worker_that_was_given_up_is_not_counted_on(late: bool) -> None:
    """A job after a worker was given up runs, whether that one has ended or not."""
    workers = Workers()
    given: list[threading.Thread] = []
    started, release, done = threading.Event(), threading.Event(), threading.Event()

    def hang() -> None:
        given.append(threading.current_thread())
        started.set()
        release.wait(LIMIT)

    workers.submit(hang)
    assert started.wait(LIMIT)
    workers.abandon(given[0])
    if late:
        release.set()
        given[0].join(LIMIT)
    workers.submit(done.set)

    assert done.wait(LIMIT)
    release.set()
    workers.close(wait=True)
    given[0].join(LIMIT)
    assert threads() == 0


# What doors raise, and when


class Objection(Exception):
    """What a door raises."""


class Objecting(Policy):
    """A door that raises in one of its methods, for the call ``at``."""

    def __init__(self, method: str, at: str, **fields: Any) -> None:
        self.method, self.at = method, at
        self.asked: list[str] = []
        vars(self).update(fields)
        self.admit = self._admit

    def _about(self, method: str, call: Call) -> None:
        if method == self.method:
            self.asked.append(call.call.id)
            if call.call.id == self.at:
                raise Objection(method)

    def _admit(self, call: Call) -> None:
        self._about("admit", call)

    def before_tool(self, call: Call) -> None:
        self._about("before_tool", call)

    def approve(self, call: Call, wish: Any) -> None:
        self._about("approve", call)

    def after_tool(self, call: Call) -> Any:
        self._about("after_tool", call)
        return ()


def under(prompt: Prompt[Any], ctx: Context, policy: Policy) -> EventStream[Any, Any]:
    return EventStream(prompt.start({}, ctx, policy), lambda event: event)


def paired(messages: Any) -> bool:
    called = [call.id for m in messages for call in m.tool_calls]
    return [m.tool_call_id for m in messages if m.role == "tool"] == called


@pytest.mark.parametrize("mode", ["sequential", "parallel", "immediate"])
@pytest.mark.parametrize("method", ["admit", "before_tool", "approve", "after_tool"])
@pytest.mark.parametrize("at", ["c1", "c2"])
def test_what_a_door_raises_ends_the_run(mode: Any, method: str, at: str) -> None:
    """Whatever a door is asked, its exception is the run's; all calls are answered."""

    @tool(approval=method == "approve")
    def guarded() -> str:
        """Do it."""
        return "done"

    model = model_of(calls(*(("guarded", {}, f"c{n}") for n in (1, 2, 3))), "never")
    prompt = Prompt("p", "x", tools=[guarded], tool_execution=mode)
    door = Objecting(method, at)
    stream, events = under(prompt, model.context(), door), []

    with pytest.raises(Objection, match=method):
        events += stream

    assert model.calls == 1
    assert paired(stream.messages)
    assert threads() == 0
    if method != "after_tool" or mode == "sequential":
        assert door.asked[-1] == at
    if mode == "sequential":
        ran = [m.text for m in stream.messages[1:] if "not run" not in m.text]
        assert ran == ["done"] * (int(at[1]) - (method != "after_tool"))


def immediate(end: Any, **fields: Any) -> tuple[Prompt[Any], Context]:
    """A prompt whose tool runs from the second chunk on until *end* lets it end.

    *end* is called where the last chunk would come; it gives the chunk, or raises.
    """
    release = threading.Event()

    @tool
    def slow() -> str:
        """Wait for the answer's end."""
        assert release.wait(LIMIT)
        return "slow"

    def stream(request: Any) -> Any:
        call = ToolCall("c1", "slow")
        yield Chunk("so", tool_call_named=call, tool_call=call)
        yield Chunk(" far")
        release.set()
        yield end()

    return Prompt("p", "x", tools=[slow]), Context(stream=stream, **fields)


def cut() -> Chunk:
    raise aeye.StreamCutError("cut", partial="so far")


ENDINGS: list[Any] = [
    (cut, aeye.StreamCutError, {}),
    (lambda: Chunk(refusal="no", finish_reason="refusal"), RefusalError, {}),
    (lambda: Chunk(finish_reason="content_filter"), RefusalError, {}),
    (lambda: Chunk(finish_reason="length"), TruncatedError, {}),
    (lambda: Chunk(finish_reason="tool_calls"), MaxTurnsError, {"max_turns": 1}),
]


@pytest.mark.parametrize(("end", "error", "fields"), ENDINGS)
@pytest.mark.parametrize("objects", [True, False])
def test_a_door_is_heard_while_a_run_ends(
    end: Any, error: Any, fields: Any, objects: bool
) -> None:
    """What a door raises about a call that a failing run waits for is not lost.

    It is raised, with what ended the run before as its cause where that has failed.
    """
    prompt, ctx = immediate(end)
    door = Objecting("after_tool", "c1" if objects else "none", **fields)
    stream = under(prompt, ctx, door)

    with pytest.raises((Objection, error)) as caught:
        list(stream)

    assert door.asked == ["c1"]
    assert [m.text for m in stream.messages] == ["so far", "slow"]
    assert isinstance(caught.value, Objection) is objects
    if objects and not fields:
        assert isinstance(caught.value.__cause__, error)


@pytest.mark.parametrize("objects", [True, False])
def test_a_door_is_heard_after_an_abort(objects: bool) -> None:
    """An abort ends a run without an exception; one of the door's is raised."""
    abort = Abort()

    def end() -> Chunk:
        abort.set()
        return Chunk(" and")

    prompt, ctx = immediate(end, signal=abort)
    stream = under(prompt, ctx, Objecting("after_tool", "c1" if objects else "none"))

    if objects:
        with pytest.raises(Objection):
            list(stream)
    else:
        assert [event.type for event in stream][-1] == "usage"
    assert paired(stream.messages)


def test_what_a_door_changes_is_run() -> None:
    """An answer that a door rewrote is what is run, also where it had streamed."""

    class Rewriting(Policy):
        def map_response(self, turn: int, request: Any, response: Response) -> Any:
            changed = [
                replace(call, arguments='{"a": 2, "b": 2}')
                for call in response.tool_calls
            ]
            return replace(response, tool_calls=changed)

    model = model_of(calls(("add", {"a": 1, "b": 1})), "ok", mode="stream")
    prompt = Prompt("p", "x", tools=[add], tool_execution="immediate")

    list(under(prompt, model.context(), Rewriting()))

    assert replies(model) == ["4"]


# Left, given up, in a hurry


class Idle(Workers):
    """Workers that begin nothing until they are told to, while time flies."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Any] = []
        self.time = 0.0

    def submit(self, job: Any) -> None:
        self.waiting.append(job)

    def now(self) -> float:
        self.time += 1
        return self.time

    def wait(self, said: Any, until: float | None) -> Any:
        raise queue.Empty


def test_a_job_that_was_given_up_before_it_began_does_not_begin() -> None:
    """A call whose time is over before a worker is free is never run."""
    ran = []

    @tool(timeout=0.5)
    def act() -> None:
        """Act."""
        ran.append(1)

    policy = Policy()
    policy.workers = workers = Idle()
    model = model_of(calls(("act", {})), "ok")

    events = list(under(Prompt("p", "x", tools=[act]), model.context(), policy))
    for job in workers.waiting:
        job()

    assert replies(model) == [
        "Error executing tool: timed out after 0.5 seconds, args: {}"
    ]
    assert about(events) == ["start act", "error act"]
    assert (len(workers.waiting), ran) == (1, [])


def test_a_generator_that_was_given_up_is_stopped() -> None:
    """A generator that ran out of time is closed at its next step."""
    release, closed = threading.Event(), threading.Event()
    policy, began = Policy(), threading.Event()
    policy.workers = Late(began)

    @tool(timeout=5)
    def endless() -> Generator[int, None, None]:
        """Go on for ever."""
        try:
            began.set()
            assert release.wait(LIMIT)
            while True:
                yield 1
        finally:
            closed.set()

    model = model_of(calls(("endless", {})), "ok")

    prompt = Prompt("p", "x", tools=[endless])
    for event in under(prompt, model.context(), policy):
        if event.type == "tool_error":
            release.set()

    assert closed.wait(LIMIT)


@pytest.mark.parametrize("how", ["yield", "raise"])
def test_a_generator_cannot_keep_a_reader(how: str) -> None:
    """Who leaves in the middle of a generator leaves, whatever it does then."""

    @tool(inline=True)
    def clingy() -> Generator[int, None, None]:
        """Hold on."""
        try:
            yield 1
        finally:
            if how == "raise":
                raise KeyError("stay")
            yield 2

    model = model_of(calls(("clingy", {})), "never")
    with Prompt("p", "x", tools=[clingy]).run({}, model.context()) as events:
        next(event for event in events if event.type == "tool_progress")

    assert [m.text for m in events.messages] == ["", "[interrupted]"]


class Hasty(Workers):
    """Workers that nobody has the patience to wait for."""

    def close(self, *, wait: bool) -> None:
        super().close(wait=False)
        if wait:
            raise KeyboardInterrupt


def test_an_interrupt_while_tools_are_waited_for() -> None:
    """Ctrl-C in ``close`` leaves at once, and the history is paired all the same."""
    release, policy = threading.Event(), Policy()
    policy.workers = Hasty()

    @tool
    def slow() -> None:
        """Take long."""
        release.wait(LIMIT)

    model = model_of(calls(("slow", {}), ("slow", {}), ("slow", {})), "never")
    prompt = Prompt("p", "x", tools=[slow], tool_execution="parallel")
    stream = under(prompt, model.context(), policy)
    for event in stream:
        if event.type == "tool_start" and event.tool_call_id == "call_2":
            break

    with pytest.raises(KeyboardInterrupt):
        stream.close()
    release.set()

    assert [m.role for m in stream.messages] == ["assistant", *["tool"] * 3]
    assert paired(stream.messages)


@pytest.mark.parametrize("mode", ["sequential", "parallel", "immediate"])
def test_what_runs_after_a_tool_that_ends_the_run(mode: Any) -> None:
    """In turn nothing runs after it; side by side the others do all the same."""

    @tool(on_error="raise")
    def bad() -> None:
        """Fail."""
        raise KeyError("boom")

    model = model_of(calls(("bad", {}), ("ping", {}), ("ping", {})), "never")

    with pytest.raises(ToolCallError) as caught:
        Prompt("p", "x", tools=[bad, ping], tool_execution=mode)({}, model.context())

    others = [m.text for m in caught.value.messages[2:]]
    alone = mode == "sequential"
    assert others == ["[not run: cancelled]" if alone else "pong"] * 2


def test_an_error_of_prepare_says_what_was_before() -> None:
    """What ``prepare`` raises leaves with the run's messages, all answered."""

    def prepare(request: Any) -> Any:
        if len(request.messages) > 2:
            raise aeye.CapabilityError("the model takes no tool results")
        return request

    model = model_of(calls(("ping", {})), "never")

    with pytest.raises(aeye.CapabilityError) as caught:
        Prompt("p", "x", tools=[ping])({}, model.context(prepare=prepare))

    assert [m.role for m in caught.value.messages] == ["assistant", "tool"]


def test_an_idle_worker_keeps_nothing_alive() -> None:
    """What a job held is free when it has ended, though its worker waits for more."""
    workers, gone = Workers(), threading.Event()

    class Job:
        def __call__(self) -> None:
            pass

    job = Job()
    weakref.finalize(job, gone.set)
    workers.submit(job)
    del job

    assert gone.wait(LIMIT)
    workers.close(wait=True)
