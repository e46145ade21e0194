"""The declarative door: start-up, text, structured output, modes, limits.

``E(…)`` below is a model that blocks, ``S(…)`` one that streams; the replies are
used in turn, the last for good.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

import aeye
from aeye.context import Context
from aeye.errors import (
    AbortedError,
    IncompatibleError,
    NoModelError,
    OutputError,
    PromptError,
    PromptSuspend,
    RefusalError,
    StatusError,
    TruncatedError,
)
from aeye.message import Message, Reasoning, ToolCall
from aeye.prompt import Prompt
from aeye.request import ResponseFormat
from aeye.response import Chunk, Response
from aeye.template import Template
from aeye.testing import ScriptedModel, calls, pieces
from aeye.tools import Tool, tool
from aeye.usage import Usage


@dataclass
class V:
    v: int


def E(*replies: Any) -> ScriptedModel:
    return ScriptedModel(*replies, mode="execute")


def S(*replies: Any) -> ScriptedModel:
    return ScriptedModel(*replies, mode="stream")


def types(stream: Any) -> list[str]:
    return [event.type for event in stream]


def said(model: ScriptedModel, n: int = 0) -> list[tuple[str, str]]:
    """What request *n* said: roles and texts."""
    return [(m.role, m.text) for m in model.requests[n].messages]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


# Start-up and request


def test_no_model_raises_when_first_read() -> None:
    """Without a model nothing happens until the run is read, and then it raises."""
    prompt = Prompt("p", "x")
    stream = prompt.run({}, {})

    with pytest.raises(NoModelError, match="No executor or streamer available") as e:
        next(stream)
    with pytest.raises(NoModelError):
        prompt.get("result", {}, {})
    assert "AEYE_MODEL" in str(e.value)
    assert e.value.prompt_name == "p"


@pytest.mark.parametrize("mode", ["result", "tools"])
def test_either_function_serves_every_mode(mode: Any) -> None:
    """A context with only ``stream`` serves the blocking modes."""
    model = S("hello")

    got = Prompt("p", "x").get(mode, {}, model.context())

    assert got == ("hello" if mode == "result" else [])


def test_only_execute_serves_streaming() -> None:
    """A context with only ``execute`` serves the streaming modes."""
    stream = Prompt("p", "x").get("stream_content", {}, E("hello").context())

    assert list(stream) == ["hello"]


def test_content_is_rendered_into_the_system_message() -> None:
    """``input`` makes the template's variables of what the caller gives."""
    model = E("hi")
    prompt = Prompt("p", "Hello {{name}}!", input=lambda given: {"name": given["who"]})

    prompt({"who": "Alice"}, model.context())

    assert said(model)[0] == ("system", "Hello Alice!")


def test_template_blocks() -> None:
    """Blocks, else, and the standalone-line rule hold in a prompt."""
    model = E("hi")
    text = "Items:\n{{#each l}}\n- {{this}}\n{{/each}}\n{{#if z}}yes{{else}}no{{/if}}"

    Prompt("p", text)({"l": ["A", "B"], "z": 0}, model.context())

    assert said(model)[0] == ("system", "Items:\n- A\n- B\nno")


def test_nothing_is_escaped() -> None:
    """A variable is not HTML-escaped, and never read as a template."""
    model = E("hi")

    Prompt("p", "{{x}}{{{x}}}")({"x": "<&>{{y}}"}, model.context())

    assert said(model)[0] == ("system", "<&>{{y}}<&>{{y}}")


def test_a_user_turn_is_added_where_there_is_none() -> None:
    """A request with nothing but a system message gets a user turn."""
    model = E("hi")

    Prompt("p", "x")({}, model.context())

    assert said(model) == [("system", "x"), ("user", "Begin.")]


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (None, "Go"),
        ("P {{n}}", "P 1"),
        (Template("T {{n}}"), "T 1"),
        ("", None),
        (False, None),
    ],
)
def test_user_turn_chain(turn: Any, expected: str | None) -> None:
    """The prompt's user turn wins over the context's; "" and False turn it off."""
    model = E("hi")

    Prompt("p", "x", user_turn=turn)({"n": 1}, model.context(user_turn="Go"))

    assert said(model)[1:] == ([("user", expected)] if expected else [])


def test_history_follows_the_system_message() -> None:
    """The context's messages follow in order, and no user turn is added."""
    model = E("hi")
    history = [Message("user", "a"), Message("assistant", "b"), Message("user", "c")]

    Prompt("p", "x")({}, model.context(messages=history))

    assert said(model) == [
        ("system", "x"),
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
    ]


def test_exclude_messages() -> None:
    """``exclude_messages`` leaves the context's messages out."""
    model = E("hi")
    ctx = model.context(messages=[Message("user", "a")])

    Prompt("p", "x", exclude_messages=True)({}, ctx)

    assert said(model) == [("system", "x"), ("user", "Begin.")]


def test_a_saved_system_message_is_replaced() -> None:
    """A history that begins with a system message does not give a second one."""
    model = E("hi")
    history = [Message("system", "old"), Message("user", "a")]

    Prompt("p", "new")({}, model.context(messages=history))

    assert said(model) == [("system", "new"), ("user", "a")]


def test_empty_content_sends_no_system_message() -> None:
    """An empty template sends no system message at all."""
    model = E("hi")

    Prompt("p", "")({}, model.context())

    assert said(model) == [("user", "Begin.")]


def named_tools() -> list[Tool[Any]]:
    return [
        Tool(name, lambda given: "ok", schema={"type": "object"}, instructions=text)
        for name, text in (("a", "A"), ("b", "B"))
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hi", "hi\n\n<tools>\nA\n\nB\n</tools>"),
        ("{{tools}}!", "A\n\nB!"),
        ("{{ tools }}!", "A\n\nB!"),
    ],
)
def test_tool_instructions_are_appended_once(content: str, expected: str) -> None:
    """Instructions stand in <tools> at the end, or where the template wants them."""
    model = E("hi")
    given = {"x": 1}

    Prompt("p", content, tools=named_tools())(given, model.context())

    assert said(model)[0][1] == expected
    assert given == {"x": 1}


def test_tools_without_instructions_are_offered_all_the_same() -> None:
    """A tool needs no instructions; then no <tools> section is made."""
    model = E("hi")

    Prompt("p", "hi", tools=[add])({}, model.context())

    assert said(model)[0][1] == "hi"
    assert [d.name for d in model.requests[0].tools] == ["add"]


def test_config_gives_fields_of_the_request() -> None:
    """``config`` sets fields; the context's limit holds where it says none."""
    model = E("hi")
    config = {"temperature": 0.5, "max_tokens": 100}

    Prompt("p", "x", config=config)({}, model.context(max_output_tokens=7))
    Prompt("p", "x")({}, model.context(max_output_tokens=7))

    assert [(r.temperature, r.max_tokens) for r in model.requests] == [
        (0.5, 100),
        (None, 7),
    ]


def test_config_may_be_a_function() -> None:
    """``config`` as a function follows the input, and may ask for the context."""
    model = E("hi")
    prompt = Prompt(
        "p", "x", config=lambda given, ctx: {"temperature": given["t"], "model": ctx.m}
    )

    prompt({"t": 0.1}, model.context(m="mm"))

    assert (model.requests[0].temperature, model.requests[0].model) == (0.1, "mm")


def test_config_cannot_replace_messages_tools_or_shape() -> None:
    """``messages``, ``tools`` and ``response_format`` in config are ignored."""
    model = E("hi")
    config = {"messages": (), "tools": (), "response_format": "text", "name": "n"}

    Prompt("p", "x", config=config, tools=[add])({}, model.context())

    request = model.requests[0]
    assert (len(request.messages), len(request.tools), request.name) == (2, 1, "n")


def test_config_refuses_unknown_names() -> None:
    """A key that Request does not have is a slip, and is refused by name."""
    with pytest.raises(TypeError, match="temprature"):
        Prompt("p", "x", config={"temprature": 1})
    later = Prompt("p", "x", config=lambda given: {"temprature": 1})
    with pytest.raises(TypeError, match="temprature"):
        later({}, E("hi").context())


@pytest.mark.parametrize("wish", [False, lambda given: False])
@pytest.mark.parametrize("name", ["config", "retool"])
def test_incompatible(name: str, wish: Any) -> None:
    """False from config or retool: nothing happens, and a call raises."""
    model = E("hi")
    prompt: Prompt[str] = Prompt("p", "x", **{name: wish})
    ctx = model.context()

    assert list(prompt.run({}, ctx)) == []
    assert prompt.get("result", {}, ctx) is None
    assert prompt.get("tools", {}, ctx) == []
    assert not prompt.applicable(ctx)
    assert model.calls == 0
    with pytest.raises(IncompatibleError):
        prompt({}, ctx)
    with pytest.raises(IncompatibleError):
        prompt.preview({}, ctx)


@pytest.mark.parametrize("schema", [False, lambda given: False, lambda given: None])
def test_schema_false_means_text(schema: Any) -> None:
    """A schema that is False, also one that a function returns, means plain text."""
    model = E("hello")
    prompt: Prompt[Any] = Prompt("p", "x", schema=schema)

    assert prompt({}, model.context()) == "hello"
    assert model.requests[0].response_format == "text"
    assert prompt.applicable(model.context())


def test_required_tools_must_be_there() -> None:
    """A forced tool choice without tools is refused before the model is asked."""
    model = E("hi")
    prompt = Prompt("p", "x", config={"tool_choice": "required"})

    with pytest.raises(PromptError, match="is configured to require tools"):
        prompt({}, model.context())
    assert model.calls == 0


@pytest.mark.parametrize("schema", [None, str, {"type": "string"}])
def test_a_bare_string_schema_is_text(schema: Any) -> None:
    """No schema, or a bare string, asks for text."""
    model = E("hi")

    Prompt("p", "x", schema=schema)({}, model.context())

    assert model.requests[0].response_format == "text"


def test_a_schema_is_a_response_format() -> None:
    """A schema goes out with strict 1 and delivery auto by default."""
    model = E('{"v": 1}')

    Prompt("p", "x", schema=V)({}, model.context())

    shape = model.requests[0].response_format
    assert isinstance(shape, ResponseFormat)
    assert (shape.strict, shape.schema_delivery) == (1, "auto")
    assert shape.schema.python_type is V


def test_metadata_is_merged_for_each_call() -> None:
    """The model sees the caller's metadata, updated by the prompt's, anew per call."""
    seen = []
    count = iter(range(9))

    def execute(request: Any, ctx: Context, metadata: Any) -> Response:
        seen.append((dict(ctx.metadata), dict(metadata)))
        return Response("nope" if len(seen) == 1 else '{"v": 1}')

    prompt = Prompt(
        "p",
        "x",
        schema=V,
        metadata={"a": 1, "b": 1},
        metadata_fn=lambda given, ctx: {"b": next(count), "i": given["i"]},
    )
    prompt({"i": 7}, Context(execute=execute, metadata={"a": 0, "c": 2}))

    first = {"a": 1, "b": 0, "c": 2, "i": 7}
    assert seen == [(first, first), ({**first, "b": 1},) * 2]


def test_metadata_without_arguments_is_the_fixed_one() -> None:
    """``metadata()`` gives what was fixed; with an input the function is asked too."""
    prompt = Prompt("p", "x", metadata={"a": 1}, metadata_fn=lambda given: {"b": given})

    assert (prompt.metadata(), prompt.metadata(2)) == ({"a": 1}, {"a": 1, "b": 2})
    assert Prompt("p", "x").metadata() == {}


# Text


def test_text_and_its_events() -> None:
    """One answer: the events, in order."""
    stream = Prompt("p", "x").run({}, E("hello").context())

    assert types(stream) == [
        "request",
        "request_usage",
        "text_partial",
        "text",
        "message",
        "text_complete",
        "response_tokens",
        "usage",
        "complete",
    ]
    assert stream.output == "hello"
    assert stream.messages == (Message("assistant", "hello"),)


def test_streamed_content_and_return_value() -> None:
    """``stream_content`` yields the pieces; its StopIteration carries the output."""
    model = S(pieces("he", "llo"))

    def outer() -> Any:
        return (yield from Prompt("p", "x").get("stream_content", {}, model.context()))

    stream = outer()
    got = [next(stream), next(stream)]
    with pytest.raises(StopIteration) as stop:
        next(stream)

    assert (got, stop.value.value) == (["he", "llo"], "hello")


def test_usage_is_reported_once_and_summed() -> None:
    """The first report is an event of its own; the total adds up every chunk."""
    one, two = Usage.of(input=3, output=1), Usage.of(input=4, output=2)
    model = S([Chunk("a", usage=one), Chunk("b", usage=two, finish_reason="stop")])

    events = list(Prompt("p", "x").run({}, model.context()))

    by_type = {event.type: event for event in events}
    assert types(events).count("request_usage") == 1
    assert by_type["request_usage"].usage == one
    assert by_type["usage"].usage == Usage.of(input=7, output=3)
    assert by_type["response_tokens"].tokens == 3


def test_reasoning() -> None:
    """Reasoning comes in pieces, once before the text, and stays on the message."""
    model = S(
        [
            Chunk(reasoning=Reasoning("hm ")),
            Chunk(reasoning=Reasoning("so")),
            Chunk("ok", finish_reason="stop"),
        ]
    )

    events = list(Prompt("p", "x").run({}, model.context()))

    assert types(events)[:6] == [
        "request",
        "reason_partial",
        "reason_partial",
        "text_partial",
        "reason",
        "text",
    ]
    partial = [e.reasoning.content for e in events if e.type == "reason_partial"]
    assert partial == ["hm ", "hm so"]
    message = next(e.message for e in events if e.type == "message")
    assert message.reasoning == Reasoning("hm so")


def test_text_without_finish_reason_is_finished() -> None:
    """From a caller's own function, text without a finish reason is an answer."""
    model = S([Chunk("hello")])

    assert Prompt("p", "x")({}, model.context()) == "hello"
    assert model.calls == 1


@pytest.mark.parametrize(
    ("response", "content", "why"),
    [
        (Response(refusal="No."), "No.", "No."),
        (Response(finish_reason="refusal"), "unspecified", "Model refused to answer."),
        (
            Response(finish_reason="content_filter"),
            "Content filtered by AI model",
            "Model response was filtered due to content policy.",
        ),
    ],
)
def test_refusals_raise(response: Response, content: str, why: str) -> None:
    """A refusal is one request, one event, no message, and an exception."""
    model = E(response)
    events = []

    with pytest.raises(RefusalError) as e:
        for event in Prompt("p", "x").run({}, model.context()):
            events.append(event)

    assert str(e.value) == f"Prompt p failed: {why}"
    assert [x.content for x in events if x.type == "refusal"] == [content]
    assert "message" not in types(events)
    assert (model.calls, e.value.messages, e.value.usage) == (
        1,
        (),
        Usage.of(input=10, output=5),
    )


def test_validate_runs_for_text_too() -> None:
    """A result is only ever a value that passed ``validate``, text included."""

    def short(text: str) -> None:
        if len(text) > 3:
            raise ValueError("too long")

    model = E("hello", "hi")

    assert Prompt("p", "x", validate=short)({}, model.context()) == "hi"
    assert said(model, 1)[-1] == ("user", "The output failed validation:\ntoo long")


# Structured output


@pytest.mark.parametrize(
    "text",
    [
        '{"v":1}',
        '```json\n{"v": 1}\n```',
        'Sure: {"v": 1} Bye.',
        'I think {this} is it: {"v": 1}',
        '```\n{"v": 1}\n```\nand `{"v": 2}` too',
    ],
)
def test_json_is_found(text: str) -> None:
    """JSON is found in a fence or amid prose, in one request."""
    model = E(text)

    assert Prompt("p", "x", schema=V)({}, model.context()) == V(1)
    assert model.calls == 1


def test_braces_in_strings() -> None:
    """Braces inside strings do not end the value."""
    schema = {"type": "object", "properties": {"s": {"type": "string"}}}

    got = Prompt("p", "x", schema=schema)({}, E('see {"s": "a}\\"{b"} end').context())

    assert got == {"s": 'a}"{b'}


RETRY = [
    ("nope", "json-parsing", "The output was not valid JSON:\n"),
    ("", "json-parsing", "The output was not valid JSON:\n"),
    ('{"v": "x"}', "schema-parsing", "The output was an invalid format:\n- v: "),
]


@pytest.mark.parametrize(("bad", "reason", "words"), RETRY)
def test_a_bad_answer_is_asked_for_again(bad: str, reason: str, words: str) -> None:
    """A bad answer: a text_reset, a corrective user turn, one more request."""
    model = E(bad, '{"v": 2}')
    stream = Prompt("p", "x", schema=V).run({}, model.context())

    events = list(stream)

    assert stream.output == V(2)
    kinds = types(events)
    at = kinds.index("text_reset")
    assert events[at].reason == reason
    assert kinds[at : at + 3] == ["text_reset", "message", "request"]
    assert events[at + 1].message.role == "user"
    assert events[at + 1].message.text.startswith(words)
    complete = next(e for e in events if e.type == "text_complete")
    assert complete.content == '{"v": 2}'


def test_validate_objects() -> None:
    """``validate`` objects by raising; the model hears its words."""
    model = E('{"v": 1}', '{"v": 2}')

    def even(value: V) -> None:
        if value.v % 2:
            raise ValueError("v must be even")

    stream = Prompt("p", "x", schema=V, validate=even).run({}, model.context())
    events = list(stream)

    assert stream.output == V(2)
    assert [e.reason for e in events if e.type == "text_reset"] == ["validation"]
    assert said(model, 1)[-1][1] == "The output failed validation:\nv must be even"


@pytest.mark.parametrize("validate", [None, lambda value: 1 / 0])
def test_no_retries_left(validate: Any) -> None:
    """Without retries the first fault raises; no value that failed gets out."""
    model = E("nope" if validate is None else '{"v": 1}')
    prompt = Prompt("p", "x", schema=V, validate=validate, output_retries=0)
    events = []

    with pytest.raises(OutputError, match=r"^Prompt p failed: The output") as e:
        for event in prompt.run({}, model.context()):
            events.append(event)

    assert "text_reset" not in types(events)
    assert len(e.value.issues) == 1
    assert e.value.messages == (Message("assistant", model_text(model)),)


def model_text(model: ScriptedModel) -> str:
    return model.execute(model.requests[0]).content


def test_two_retries_by_default() -> None:
    """Two retries: two bad answers, and the third is the result."""
    model = E("nope", "no", '{"v": 3}')

    assert Prompt("p", "x", schema=V)({}, model.context()) == V(3)
    assert model.calls == 3


def test_retries_chain() -> None:
    """The prompt's number of retries wins over the context's."""
    model = E("nope")

    for prompt in (
        Prompt("p", "x", schema=V),
        Prompt("q", "", schema=V, output_retries=0),
    ):
        with pytest.raises(OutputError):
            prompt({}, model.context(output_retries=1))

    assert model.calls == 2 + 1


def test_parse_replaces_validation() -> None:
    """With ``parse`` the schema is not enforced: what parse returns is the result."""
    model = E('{"v": "not a number"}')
    prompt: Prompt[str] = Prompt("p", "x", schema=V, parse=lambda raw: raw["v"])

    assert prompt({}, model.context()) == "not a number"


class Odd(Exception):
    pass


@pytest.mark.parametrize("raises", [True, False])
def test_parse_objects(raises: bool) -> None:
    """An error that parse raises or returns is told in its own words alone."""

    def parse(raw: Any) -> Any:
        if raises:
            raise Odd("odd thing")
        return Odd("odd thing")

    prompt = Prompt("p", "x", schema=V, parse=parse, output_retries=0)

    with pytest.raises(OutputError) as e:
        prompt({}, E('{"v": 1}').context())
    assert str(e.value) == "Prompt p failed: odd thing"


@pytest.mark.parametrize("value", [5, [1], None, V(9)])
def test_parse_may_return_anything(value: Any) -> None:
    """Whatever parse returns is the output, None too, and what validate sees."""
    seen = []
    prompt: Prompt[Any] = Prompt(
        "p", "x", schema=V, parse=lambda raw: value, validate=seen.append
    )

    assert prompt({}, E('{"v": 1}').context()) == value
    assert seen == [value]


def test_parse_gets_the_natural_shape() -> None:
    """Where the request named a dialect, parse gets the value decoded from it."""
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    wire = '{"value": [{"key": "a", "value": 1}]}'
    pinned = Prompt(
        "p", "x", schema={"type": "object", "properties": {"value": schema}}
    )
    seen: list[Any] = []

    def prepare(request: Any) -> Any:
        shape = request.response_format
        pin = ResponseFormat(shape.schema, descriptor="openai-strict")
        return request.with_config({"response_format": pin})

    for ctx in (E(wire).context(prepare=prepare), E(wire).context()):
        pinned.replace(parse=seen.append)({}, ctx)

    assert seen == [{"value": {"a": 1}}, {"value": [{"key": "a", "value": 1}]}]


def test_parse_needs_a_schema() -> None:
    """``parse`` without a schema would never be called, and is refused."""
    with pytest.raises(ValueError, match="give a schema too"):
        Prompt("p", "x", parse=lambda raw: raw)  # type: ignore[call-overload]


@pytest.mark.parametrize(("limit", "cut"), [(10, True), (0, False), (4096, False)])
def test_corrections_are_cut(limit: int, cut: bool) -> None:
    """Corrective texts are cut to a limit that says how much is missing; 0: never."""
    model = E("nope", '{"v": 1}')
    prompt = Prompt("p", "x", schema=V, validation_error_max_length=limit)

    prompt({}, model.context())

    text = said(model, 1)[-1][1]
    assert (text[:10] == "The output") and (text.endswith(" more characters)") is cut)
    assert text[10:12] == "… " if cut else "not valid JSON" in text


def deliveries(model: ScriptedModel) -> list[str]:
    return [
        r.response_format.schema_delivery
        for r in model.requests
        if isinstance(r.response_format, ResponseFormat)
    ]


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        (["", '{"v": 1}'], ["auto", "prompt"]),
        (["", "", '{"v": 1}'], ["auto", "prompt", "prompt"]),
        (['{"v": ""}', '{"v": 1}'], ["auto", "auto"]),
    ],
)
def test_unparseable_answers_change_the_delivery(
    replies: list[str], expected: list[str]
) -> None:
    """An answer without JSON turns the shape into words; a wrong shape does not."""
    model = E(*replies)

    Prompt("p", "x", schema=V)({}, model.context())

    assert deliveries(model) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"schema_delivery": "structured"}, ["structured"] * 2),
        ({"schema_delivery": "prompt"}, ["prompt"] * 2),
        ({"runtime_schema_fallback": False}, ["auto"] * 2),
    ],
)
def test_a_chosen_delivery_stays(options: Any, expected: list[str]) -> None:
    """A delivery that was asked for is never changed."""
    model = E("", '{"v": 1}')

    Prompt("p", "x", schema=V, **options)({}, model.context())

    assert deliveries(model) == expected


def test_a_refused_request_falls_back() -> None:
    """A request that fails under auto is made once more with the shape in words."""
    model = E(RuntimeError("no schemas here"), '{"v": 1}')
    stream = Prompt("p", "x", schema=V).run({}, model.context())

    events = list(stream)

    assert deliveries(model) == ["auto", "prompt"]
    assert types(events)[:3] == ["request", "text_reset", "request"]
    assert [e.reason for e in events if e.type == "text_reset"] == ["request-error"]
    assert said(model, 1) == [("system", "x"), ("user", "Begin.")]


def test_a_second_failure_passes_through() -> None:
    """The fallback is tried once; the second error is the caller's."""
    model = E(RuntimeError("one"), RuntimeError("two"))

    with pytest.raises(RuntimeError, match="two"):
        Prompt("p", "x", schema=V)({}, model.context())
    assert model.calls == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"schema": V, "schema_delivery": "structured"}, RuntimeError("e")),
        ({}, RuntimeError("e")),
        ({"schema": V}, aeye.errors.AuthError("e", status=401)),
        ({"schema": V}, aeye.errors.RateLimitError("e", status=429)),
        ({"schema": V}, StatusError("e", status=404)),
        ({"schema": V, "output_retries": 0}, RuntimeError("e")),
    ],
)
def test_other_failures_pass_through(options: Any, error: Exception) -> None:
    """No fallback where it cannot help: the error is the caller's, after one call."""
    model = E(error)

    with pytest.raises(type(error)):
        Prompt("p", "x", **options)({}, model.context())
    assert model.calls == 1


def test_an_array_is_a_fine_answer() -> None:
    """A root that is no object is accepted bare."""
    got = Prompt("p", "x", schema=list[int])({}, E("Here: [1, 2]").context())

    assert got == [1, 2]


# Limits and the window


def test_a_cut_answer_is_one_request() -> None:
    """A length finish is never taken for bad JSON; the error says what to raise."""
    model = E(Response('{"v"', finish_reason="length"))
    prompt = Prompt("p", "x", schema=V, config={"max_tokens": 5})

    with pytest.raises(TruncatedError, match="raise max_tokens") as e:
        prompt({}, model.context())

    assert (model.calls, e.value.partial, e.value.limit) == (1, '{"v"', 5)


def long_history() -> list[Message]:
    return [
        Message("user", "u1", tokens=20),
        Message("assistant", "a1", tokens=20),
        Message("user", "u2", tokens=20),
        Message("assistant", "a2", tokens=20),
        Message("user", "u3", tokens=20),
    ]


def test_history_is_trimmed_before_the_first_request() -> None:
    """A history that does not fit loses its oldest groups, not the last user turn."""
    model = E("ok")
    ctx = model.context(
        messages=long_history(),
        context_window=100,
        max_output_tokens=50,
        estimate_usage=lambda message: 20,
    )

    Prompt("p", "x")({}, ctx)

    assert said(model) == [("system", "x"), ("user", "u3")]


def test_overflow_is_retried_once_with_less() -> None:
    """The vendor says it does not fit: forget, reset, ask again, the number kept."""
    overflow = aeye.errors.ContextLengthError("too long", status=400)
    model = E(overflow, "ok")

    class Half(Prompt[str]):
        def forget(self, request: Any, ctx: Any, usage: Any) -> Any:
            return request.messages if model.calls == 0 else request.messages[-1:]

    events = list(Half("p", "x").run({}, model.context(messages=long_history())))

    assert [e.iterations for e in events if e.type == "request"] == [0, 0]
    assert [e.reason for e in events if e.type == "text_reset"] == ["length"]
    assert said(model, 1) == [("user", "u3")]


@pytest.mark.parametrize(
    "known",
    [{}, {"context_window": 100}, {"context_window": 10**9}, {"max_output_tokens": 1}],
    ids=str,
)
def test_overflow_is_enough_to_forget(known: dict[str, Any]) -> None:
    """When the vendor says that it does not fit, nobody need know by how much."""
    model = E(aeye.errors.ContextLengthError("too long", status=400), "ok")

    answer = Prompt("p", "x")({}, model.context(messages=long_history(), **known))

    assert answer == "ok"
    assert len(said(model, 1)) < len(said(model, 0))
    if "context_window" not in known:  # half of it may go
        assert len(said(model, 1)) <= 1 + len(said(model, 0)) / 2
    assert (said(model, 1)[0], said(model, 1)[-1]) == (("system", "x"), ("user", "u3"))


def test_overflow_with_nothing_to_forget_raises() -> None:
    """Where forgetting removes nothing, the vendor's error is the caller's."""
    model = E(aeye.errors.ContextLengthError("too long", status=400))

    with pytest.raises(aeye.errors.ContextLengthError):
        Prompt("p", "x")({}, model.context())
    assert model.calls == 1


# reconfig and dynamic


def test_reconfig_sees_how_it_goes() -> None:
    """``reconfig`` is asked after every round that goes on, with what happened."""
    seen: list[Any] = []
    model = E(calls(("add", {"a": 1, "b": 2})), "bad", '{"v": 1}')

    Prompt("p", "x", schema=V, tools=[add], reconfig=seen.append)({}, model.context())

    assert [
        (s.iteration, s.max_iterations, s.tool_successes, s.output_retries, s.tools)
        for s in seen
    ] == [(0, 9, 1, 2, ("add",)), (1, 9, 1, 1, ("add",))]


def test_reconfig_changes_the_next_request() -> None:
    """``config`` from reconfig holds from the next request on, its messages ignored."""
    model = E("bad", '{"v": 1}')
    wish = {"config": {"temperature": 1, "messages": ()}, "output_retries": 5}

    Prompt("p", "x", schema=V, reconfig=lambda stats: wish)({}, model.context())

    assert [r.temperature for r in model.requests] == [None, 1]
    assert len(model.requests[1].messages) == 4


@pytest.mark.parametrize(
    ("limit", "requests", "why"),
    [(0, 1, "without a specified error"), (1, 1, r"Maximum iterations \(1\)")],
)
def test_reconfig_can_stop(limit: int, requests: int, why: str) -> None:
    """``max_iterations`` counts from this round: 0 leaves at once, 1 after it."""
    model = E("bad")
    prompt = Prompt(
        "p", "x", schema=V, reconfig=lambda stats: {"max_iterations": limit}
    )

    with pytest.raises(PromptError, match=why):
        prompt({}, model.context())
    assert model.calls == requests


def test_reconfig_refuses_unknown_wishes() -> None:
    """A wish that reconfig cannot have is refused by name."""
    prompt = Prompt("p", "x", schema=V, reconfig=lambda stats: {"retries": 1})

    with pytest.raises(TypeError, match="retries"):
        prompt({}, E("bad").context())


def test_dynamic_resolves_again() -> None:
    """``dynamic`` asks everything again before the next request, the schema too."""
    model = E("bad", '{"v": 1}')
    shapes = iter([{"type": "object", "required": ["w"]}, V])
    prompt: Prompt[Any] = Prompt(
        "p", "x{{n}}", schema=lambda given: next(shapes), dynamic=True
    )

    assert prompt({"n": 1}, model.context()) == V(1)
    assert said(model, 1)[0] == ("system", "x1")


def test_dynamic_may_become_incompatible() -> None:
    """A prompt that no longer fits ends without a result."""
    model = E("bad")
    fits = iter([{}, False])
    prompt = Prompt("p", "x", schema=V, config=lambda given: next(fits), dynamic=True)

    with pytest.raises(PromptError, match="without a specified error"):
        prompt({}, model.context())


# Abort


def test_aborted_before_the_start() -> None:
    """An abort that is already set: no request, two closing events, no exception."""
    abort = aeye.Abort()
    abort.set()
    model = E("hi")
    ctx = model.context(signal=abort)

    assert types(Prompt("p", "x").run({}, ctx)) == ["text_complete", "usage"]
    assert Prompt("p", "x").get("result", {}, ctx) is None
    with pytest.raises(AbortedError):
        Prompt("p", "x")({}, ctx)
    assert model.calls == 0


def test_abort_while_streaming() -> None:
    """An abort between chunks keeps what was said and ends quietly."""
    abort = aeye.Abort()
    model = S(pieces("he", "llo"))
    stream = Prompt("p", "x").run({}, model.context(signal=abort))
    seen = []

    for event in stream:
        seen.append(event.type)
        if event.type == "text_partial":
            abort.set()

    assert seen == [
        "request",
        "text_partial",
        "text",
        "message",
        "text_complete",
        "usage",
    ]
    assert stream.output is None


def test_a_stream_that_raises_on_abort_raises() -> None:
    """A caller's own stream that raises when aborted raises to the caller."""
    abort = aeye.Abort()

    def stream(request: Any) -> Any:
        yield Chunk("he")
        abort.set()
        raise Odd("stopped")

    with pytest.raises(Odd):
        list(Prompt("p", "x").run({}, Context(stream=stream, signal=abort)))


# Errors of the caller's own functions


def test_wrong_answers_of_a_model_function_are_named() -> None:
    """A model function that gives something else is told what to give."""
    with pytest.raises(TypeError, match="execute gives a Response"):
        Prompt("p", "x")({}, Context(execute=lambda request: "text"))
    with pytest.raises(TypeError, match="stream yields Chunk"):
        Prompt("p", "x")({}, Context(stream=lambda request: ["text"]))


def test_a_returned_response_stands_for_a_stream_without_chunks() -> None:
    """A stream's return value is used where it yielded nothing."""

    def stream(request: Any) -> Any:
        return Response("whole")
        yield

    assert Prompt("p", "x")({}, Context(stream=stream)) == "whole"


@pytest.mark.parametrize("name", ["config", "schema", "retool", "input", "metadata_fn"])
def test_errors_of_hooks_pass_through(name: str) -> None:
    """What config, schema, retool, input or metadata_fn raise is the caller's."""

    def broken(given: Any) -> Any:
        raise Odd(name)

    with pytest.raises(Odd, match=name):
        Prompt("p", "x", **{name: broken})({}, E("hi").context())


# The door


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"name": ""}, TypeError, "name"),
    ({"content": 5}, TypeError, "content"),
    ({"tools": [len]}, TypeError, "decorate the function with @aeye.tool"),
    ({"tools": add}, TypeError, "list of Tool"),
    ({"tools": [add, add]}, ValueError, "two tools named 'add'"),
    ({"tool_execution": "fast"}, ValueError, "fast"),
    ({"tool_concurrency": 0}, ValueError, "tool_concurrency"),
    ({"output_retries": -1}, ValueError, "output_retries"),
    ({"output_retries": True}, TypeError, "output_retries"),
    ({"schema": 5}, Exception, "5"),
    ({"on_tool_result": {"nope": len}}, ValueError, "nope"),
    ({"validate": lambda a, b: None}, TypeError, "'b'"),
    ({"schema_delivery": "fax", "schema": V}, ValueError, "fax"),
    ({"name": "Plan {{x}}"}, ValueError, r"Prompt\(name, content\)"),
    ({"config": {"temperature": "hot"}}, TypeError, "temperature"),
    ({"config": {"max_tokens": 0}}, ValueError, "max_tokens"),
    ({"config": {"tool_choice": "maybe"}}, ValueError, "maybe"),
    ({"config": [1]}, TypeError, "config"),
    ({"metadata": [1]}, TypeError, "metadata"),
    ({"strict": "yes"}, TypeError, "strict"),
    ({"dynamic": "no"}, TypeError, "dynamic"),
]


@pytest.mark.parametrize(("change", "kind", "words"), BAD)
def test_bad_arguments_are_refused(
    change: dict[str, Any], kind: type[Exception], words: str
) -> None:
    """What cannot be is refused when the prompt is made, by name, value and fix."""
    with pytest.raises(kind, match=words):
        Prompt(**{"name": "p", "content": "x", **change})


async def coro(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    "name", ["validate", "config", "input", "retool", "reconfig", "on_tool_result"]
)
def test_async_functions_are_refused(name: str) -> None:
    """Nothing is awaited, so an ``async def`` is refused by name."""
    with pytest.raises(TypeError, match="coro is an 'async def'"):
        Prompt("p", "x", **{name: coro})


def test_a_context_is_no_input() -> None:
    """The context given as the input is a slip, and is told as one."""
    ctx = E("hi").context()

    for call in (Prompt("p", "x"), Prompt("p", "x").run):
        with pytest.raises(TypeError, match="the first argument is the input"):
            call(ctx)
    with pytest.raises(TypeError, match="files is a list"):
        aeye.ask("x", ctx, files="a.png")


def test_validate_may_say_false() -> None:
    """A validate that gives False objects too."""
    model = E('{"v": 1}', '{"v": 9}')
    prompt = Prompt("p", "x", schema=V, validate=lambda value: value.v > 3)

    assert prompt({}, model.context()) == V(9)
    assert said(model, 1)[-1][1].endswith("the value was refused")


def test_what_a_prompt_is() -> None:
    """A prompt shows its template and its schema."""
    prompt = Prompt("p", "Hi {{x}}", schema=V)

    assert (prompt.content, prompt.schema.python_type) == ("Hi {{x}}", V)
    assert Prompt("p", "x", schema=lambda given: V).schema is None


def test_wrong_mode() -> None:
    """A mode that is none is refused with those there are."""
    with pytest.raises(ValueError, match="stream_content"):
        Prompt("p", "x").get("text", {}, {})  # type: ignore[call-overload]


def test_a_dict_is_taken_for_a_context() -> None:
    """A dict is accepted wherever a Context is."""
    assert Prompt("p", "x")({}, {"execute": lambda request: Response("hi")}) == "hi"


def test_prompts_are_values() -> None:
    """A prompt can be changed by copy, pickled and deep-copied."""
    model = E("hi")
    prompt = Prompt("p", "Hello {{name}}", tools=[add], config={"temperature": 1})

    for twin in (pickle.loads(pickle.dumps(prompt)), copy.deepcopy(prompt)):
        assert twin({"name": "A"}, model.context()) == "hi"
    other = prompt.replace(content="Bye {{name}}")

    assert other.preview({"name": "B"}, model.context()).system == "Bye B"
    assert repr(prompt) == "<Prompt p, tools=['add']>"


def test_preview_asks_nobody() -> None:
    """``preview`` shows the first request and does not send it."""
    model = E("hi")

    request = Prompt("p", "Hello {{n}}")
    preview = request.preview({"n": 1}, model.context())

    assert (preview.system, model.calls) == ("Hello 1", 0)


def test_closing_early() -> None:
    """Leaving ``with`` ends the run; the model's stream is closed."""
    closed = []

    def stream(request: Any) -> Any:
        try:
            yield Chunk("a")
            yield Chunk("b")
        finally:
            closed.append(True)

    with Prompt("p", "x").run({}, Context(stream=stream)) as events:
        for event in events:
            if event.type == "text_partial":
                break

    assert closed == [True]
    with pytest.raises(RuntimeError, match="closed before it had one"):
        _ = events.output
    unread = Prompt("p", "x").run({}, Context(stream=stream))
    with pytest.raises(RuntimeError, match="read the stream to its end"):
        _ = unread.output
    assert repr(events) == "<EventStream of 'p', closed>"


def test_callers_values_are_not_changed() -> None:
    """Input, context and messages of the caller are as they were afterwards."""
    history = [Message("user", "u")]
    given = {"x": {"y": 1}}
    metadata = {"m": 1}
    ctx = E("bad", '{"v": 1}').context(messages=history, metadata=metadata)
    before = copy.deepcopy((history, given, metadata))

    Prompt("p", "{{x}}", schema=V, tools=[add])(given, ctx)

    assert (history, given, metadata) == before
    assert ctx.messages == tuple(history)


def test_a_failed_run_has_no_output() -> None:
    """After a failure there is nothing more to read, and no output."""
    stream = Prompt("p", "x").run({}, E(Odd("no")).context())

    with pytest.raises(Odd):
        list(stream)

    assert list(stream) == []
    with pytest.raises(RuntimeError, match="has failed"):
        _ = stream.output
    assert repr(stream) == "<EventStream of 'p', failed>"


def test_ids_are_unique_over_a_run() -> None:
    """Ids that a model leaves out or repeats are made present and unique."""
    same = Response(
        tool_calls=(
            ToolCall("", "add", '{"a": 1, "b": 1}'),
            ToolCall("x", "add", '{"a": 2, "b": 2}'),
            ToolCall("x", "add", '{"a": 3, "b": 3}'),
        )
    )
    model = E(same, same, "done")

    Prompt("p", "x", tools=[add])({}, model.context())

    last = model.requests[-1].messages
    ids = [call.id for m in last for call in m.tool_calls]
    assert len(set(ids)) == 6
    assert [m.tool_call_id for m in last if m.role == "tool"] == ids
    assert [m.text for m in last if m.role == "tool"] == ["2", "4", "6"] * 2


def test_ask() -> None:
    """``ask`` sends the text as it is, and gives text or the shape asked for."""
    model = E("{{x}}", "[1, 2]")

    assert aeye.ask("Say {{x}}", model.context()) == "{{x}}"
    assert aeye.ask("Two numbers", model.context(), schema=list[int]) == [1, 2]
    assert said(model) == [("user", "Say {{x}}")]


def test_ask_sends_files() -> None:
    """Files go beside the text; their kind is told by the name."""
    model = E("ok")

    aeye.ask("See", model.context(), files=["a.png", "http://x.y/b.pdf", "c.wav"])

    parts = model.requests[0].messages[-1].content
    assert [(p.type, str(p.data), p.format) for p in parts] == [  # type: ignore[union-attr]
        ("text", "See", None),
        ("image", "a.png", "image/png"),
        ("file", "http://x.y/b.pdf", "application/pdf"),
        ("audio", "c.wav", "audio/x-wav"),
    ]


def test_an_answer_that_begins_anew_keeps_its_text() -> None:
    """Only what is taken back is said to be: an answer's text never is."""
    anew = Chunk(restart=True)

    def events_of(*chunks: Chunk) -> list[str]:
        ctx = Context(stream=lambda request: [*chunks, Chunk("b")])
        return [e.type for e in Prompt("p", "x").run({}, ctx)]

    assert "text_reset" not in events_of(Chunk("a"), anew)
    assert "text_reset" in events_of(Chunk(reasoning=Reasoning("h")), anew)


def test_a_prompt_without_history_goes_on_where_it_waits() -> None:
    """``exclude_messages`` is about the caller's messages, not about the run's own."""
    pay = Tool("pay", lambda args: "paid", schema={}, approval=True)
    model = ScriptedModel(calls(("pay", {}, "p1")), "done")
    prompt = Prompt("p", "x", tools=[pay], exclude_messages=True)
    ctx = model.context(messages=[Message("user", "before")])

    with pytest.raises(PromptSuspend) as caught:
        prompt({}, ctx)

    assert prompt.resume(caught.value, {"p1": True}, {}, ctx) == "done"
    assert [m.role for m in model.requests[1].messages][-2:] == ["assistant", "tool"]
    assert "before" not in [m.text for m in model.requests[1].messages]
