"""Cases of the prompt loop that the other tests leave out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import aeye
from aeye.context import Abort, Context
from aeye.errors import OutputError
from aeye.message import Message, ToolCall
from aeye.prompt import Prompt
from aeye.recipe import Policy
from aeye.response import Chunk, Response
from aeye.testing import ReplayTransport, ScriptedModel, calls
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


# Structured output


@dataclass
class V:
    v: int


def test_an_empty_answer_is_not_parsed() -> None:
    """``parse`` is called for the answer that has a value, and only then."""
    seen: list[Any] = []
    model = ScriptedModel("", '{"v": 1}', mode="execute")
    prompt: Prompt[Any] = Prompt("p", "x", schema=V, parse=seen.append)

    events = list(prompt.run({}, model.context()))

    assert [e.reason for e in events if e.type == "text_reset"] == ["json-parsing"]
    assert seen == [{"v": 1}]


def test_a_schema_in_words_is_said_once() -> None:
    """Delivered as text, the schema stands once in each request's system."""
    bodies = [
        b'{"choices": [{"message": {"content": "no"}, "finish_reason": "stop"}]}',
        b'{"choices": [{"message": {"content": "{\\"v\\": 1}"},'
        b' "finish_reason": "stop"}]}',
    ]
    transport = ReplayTransport(*bodies)
    ctx = transport.context("openai:gpt-5-mini", format="chat")
    prompt = Prompt("p", "x", schema=V, schema_delivery="prompt", dynamic=True)

    assert prompt({}, ctx) == V(1)
    for sent in transport.sent:
        said = sent.json["messages"][0]["content"]
        assert said.count("JSON object conforming to this schema") == 1
        assert "response_format" not in sent.json


# Tools


def test_a_round_with_errors_costs_one_retry() -> None:
    """Two failing calls in one batch cost one of ``tool_retries``."""

    @tool
    def bad() -> None:
        """Fail."""
        raise ValueError("boom")

    twice = calls(("bad", {}), ("bad", {}))
    model = ScriptedModel(twice, twice, "ok", mode="execute")

    Prompt("p", "x", tools=[bad], tool_retries=1)({}, model.context())

    assert [len(request.tools) for request in model.requests] == [1, 1, 0]


@pytest.mark.parametrize(
    ("inner", "success", "words"),
    [
        ('{"a": 1}', True, "ok"),
        ('{"a": ', False, "as a JSON object directly"),
        ('{"a": "x"}', False, "Error parsing tool arguments: - o: "),
    ],
)
def test_repairs_are_told(inner: str, success: bool, words: str) -> None:
    """A field that is JSON in a string is told of, mended or not."""
    seen: list[Any] = []
    shape = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"o": shape}}
    made = Tool("t", lambda given: seen.append(given) or "ok", schema=schema)
    model = ScriptedModel(calls(("t", {"o": inner}, "c")), "done")

    events = list(Prompt("p", "x", tools=[made]).run({}, model.context()))

    told = [e for e in events if e.type == "tool_arg_repair_attempt"]
    assert [(e.fields, e.success, e.tool_call_id) for e in told] == [
        (("o",), success, "c")
    ]
    assert seen == ([{"o": {"a": 1}}] if success else [])
    assert words in model.requests[1].messages[-1].text


def test_too_long_arguments_are_told() -> None:
    """Arguments over ``max_args_length`` are refused, and the model told."""
    made = Tool("t", lambda given: "ok", schema={}, max_args_length=100)
    model = ScriptedModel(calls(("t", {"a": "x" * 200})), "done")

    Prompt("p", "x", tools=[made])({}, model.context())

    assert "exceeded the configured size limit" in model.requests[1].messages[-1].text


def test_without_a_presenter_the_model_gets_the_result() -> None:
    """``to_model`` is the result where nobody says otherwise."""
    made = Tool("t", lambda given: {"a": [1]}, schema={})
    model = ScriptedModel(calls(("t", {})), "done")

    events = list(Prompt("p", "x", tools=[made]).run({}, model.context()))

    (output,) = [e for e in events if e.type == "tool_output"]
    assert output.result == output.to_model == {"a": [1]}


def _raising(error: Exception) -> Tool[Any]:
    def stop(given: Any) -> Any:
        raise error

    return Tool("stop", stop, schema={})


@pytest.mark.parametrize(
    "error", [ValueError("boom"), aeye.PromptSuspend(), aeye.ToolInterrupt()]
)
def test_a_presenter_sees_results_only(error: Exception) -> None:
    """``on_tool_result`` is not asked about what is no result."""
    seen: list[Any] = []
    model = ScriptedModel(calls(("stop", {})), "done")
    prompt = Prompt("p", "x", tools=[_raising(error)], on_tool_result=seen.append)

    list(prompt.run({}, model.context()))

    assert seen == []


@pytest.mark.parametrize(
    ("error", "kind", "reply"),
    [
        (aeye.ToolInterrupt(), "tool_interrupt", ["[interrupted]"]),
        (aeye.PromptSuspend(), "tool_suspend", []),
        (
            ValueError("boom"),
            "tool_error",
            ["Error executing tool: boom, args: {}"],
        ),
    ],
)
def test_what_an_interceptor_raises(
    error: Exception, kind: str, reply: list[str]
) -> None:
    """An interceptor that raises is as a tool that raises."""

    def intercept(about: Any) -> Any:
        raise error

    model = ScriptedModel(calls(("ping", {})), "done")
    prompt = Prompt("p", "x", tools=[ping], on_tool_intercept=intercept)

    events = list(prompt.run({}, model.context()))

    assert kind in types(events)
    said = [e.message for e in events if e.type == "message"]
    assert [m.text for m in said if m.role == "tool"] == reply


@tool(name="other")
def other() -> str:
    """Be another."""
    return "other"


@tool(name="absent", applicable=lambda ctx: False)
def absent() -> str:
    """Never be there."""
    return "absent"


@pytest.mark.parametrize(
    ("wish", "names"),
    [
        (None, ["ping", "wait"]),
        (["wait"], ["wait"]),
        (["wait", "ping"], ["ping", "wait"]),
        ([other], ["other"]),
        (["wait", other], ["wait", "other"]),
        ([other, absent], ["other"]),
        ([], []),
        (lambda given: ["ping"], ["ping"]),
        (["absent", "ping"], ["ping"]),
    ],
)
def test_retool(wish: Any, names: list[str]) -> None:
    """Names pick from the prompt's tools, tools are added behind them."""
    model = ScriptedModel("ok")
    prompt = Prompt("p", "x", tools=[ping, wait, absent], retool=wish)

    prompt({}, model.context())

    assert [offer.name for offer in model.requests[0].tools] == names


# reconfig and dynamic


def test_reconfig_may_always_ask_for_one_more() -> None:
    """Two rounds from here, said each time, is one more each time."""
    wishes: list[Any] = [{"max_iterations": 2}] * 12
    model = ScriptedModel(calls(("ping", {})))
    prompt = Prompt(
        "p", "x", tools=[ping], reconfig=lambda stats: wishes.pop() if wishes else None
    )

    with pytest.raises(aeye.PromptError, match=r"Maximum iterations \(13\)"):
        prompt({}, model.context())
    assert model.calls == 13


def test_reconfig_may_take_the_tools_away() -> None:
    """No tool retries left, by reconfig, takes the tools away at once."""
    model = ScriptedModel(calls(("ping", {})), "ok")
    prompt = Prompt("p", "x", tools=[ping], reconfig=lambda stats: {"tool_retries": 0})

    prompt({}, model.context())

    assert [len(request.tools) for request in model.requests] == [1, 0]


def test_reconfig_may_give_more_tries() -> None:
    """Two output retries, given after the first failure, are two more tries."""
    given: list[Any] = [{"output_retries": 2}]
    model = ScriptedModel("no")
    prompt = Prompt(
        "p",
        "x",
        schema=V,
        output_retries=1,
        reconfig=lambda stats: given.pop() if given else None,
    )

    with pytest.raises(OutputError):
        prompt({}, model.context())
    assert model.calls == 4


def test_dynamic_offers_other_tools() -> None:
    """With ``dynamic`` the tools are chosen again before each request."""
    rounds = iter([["ping"], ["wait"], []])
    model = ScriptedModel(calls(("ping", {})), calls(("ping", {})), "ok")
    prompt = Prompt(
        "p", "x", tools=[ping, wait], dynamic=True, retool=lambda given: next(rounds)
    )

    prompt({}, model.context())

    offered = [[offer.name for offer in r.tools] for r in model.requests]
    assert offered == [["ping"], ["wait"], []]
    assert model.requests[2].messages[-1].text.startswith("Tool not found: ping")


# The window


def _old(tokens: int | None) -> list[Message]:
    names = ["u1", "a1", "u2"]
    roles: list[Any] = ["user", "assistant", "user"]
    return [Message(r, n, tokens=tokens) for r, n in zip(roles, names)]


@pytest.mark.parametrize(
    ("tokens", "limits"),
    [
        (20, {}),
        (None, {"context_window": 10, "max_output_tokens": 5}),
        (20, {"context_window": 100, "max_output_tokens": 10, "estimate_usage": len}),
    ],
)
def test_a_history_that_fits_is_left_alone(tokens: int | None, limits: Any) -> None:
    """No window, unknown costs, or room enough: nothing is forgotten."""
    if "estimate_usage" in limits:
        limits = {**limits, "estimate_usage": lambda message: 20}
    model = ScriptedModel("ok")

    Prompt("p", "x")({}, model.context(messages=_old(tokens), **limits))

    assert [m.text for m in model.requests[0].messages] == ["x", "u1", "a1", "u2"]


def test_a_length_finish_of_a_full_window_is_retried_once() -> None:
    """Forget, reset and ask again under the same number; then it raises."""
    full = Response("cut", finish_reason="length", usage=Usage.of(input=90, output=10))
    model = ScriptedModel(full, full, mode="execute")
    ctx = model.context(messages=_old(None), context_window=100, max_output_tokens=60)
    events: list[Any] = []

    with pytest.raises(aeye.TruncatedError):
        for event in Prompt("p", "x").run({}, ctx):
            events.append(event)

    assert [e.iterations for e in events if e.type == "request"] == [0, 0]
    assert [e.reason for e in events if e.type == "text_reset"] == ["length"]
    assert [m.text for m in model.requests[1].messages] == ["x", "u2"]
    assert [e.content for e in events if e.type == "text_complete"] == ["cut"]


def test_an_estimate_changes_no_message() -> None:
    """What a message costs is not written on the caller's messages."""
    given = _old(None)
    before = list(given)
    ctx = ScriptedModel("ok").context(
        messages=given, context_window=50, max_output_tokens=10, estimate_usage=_twenty
    )

    Prompt("p", "x")({}, ctx)

    assert given == before
    assert all(a is b for a, b in zip(given, before))


def _twenty(message: Message) -> int:
    return 20


# Calls that wait beside others


def test_a_failure_that_ends_the_run_answers_the_call_that_waits() -> None:
    """``on_error="raise"`` beside a call that waits: nobody comes back to that."""

    @tool(on_error="raise")
    def bad() -> None:
        """Fail."""
        raise ValueError("boom")

    model = ScriptedModel(calls(("wait", {}, "a"), ("bad", {}, "b")))
    prompt = Prompt("p", "x", tools=[wait, bad], tool_execution="parallel")

    with pytest.raises(aeye.ToolCallError) as e:
        prompt({}, model.context())

    assert whole(e.value.messages)
    assert e.value.messages[1].text == "[not run: cancelled]"


def test_a_run_left_between_replies_keeps_their_order() -> None:
    """What a reader who leaves has not heard is put where it belongs."""
    model = ScriptedModel(calls(("wait", {}, "a"), ("ping", {}, "b")))
    prompt = Prompt("p", "x", tools=[wait, ping], tool_execution="parallel")

    with prompt.run({}, model.context()) as stream:
        for event in stream:
            if event.type == "message" and event.message.role == "tool":
                break

    assert [m.tool_call_id for m in stream.messages[1:]] == ["a", "b"]


def test_a_policy_that_raises_when_asked_ends_the_run_whole() -> None:
    """``after_tool`` may fail at once or between its events: the replies are there."""

    class Strict(Policy):
        def after_tool(self, call: Any) -> Any:
            raise LookupError("no")

    model = ScriptedModel(calls(("ping", {}), ("ping", {})))
    prompt = Prompt("p", "x", tools=[ping], tools_complete=False)
    run = prompt.start({}, model.context(), Strict())

    with pytest.raises(LookupError):
        list(run.events())

    assert len(run.messages) == 3
    assert whole(run.messages)
