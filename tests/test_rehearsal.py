"""The offline model."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Dict,
    List,
    Literal,
    NamedTuple,
    Optional,
    Set,
    Tuple,
    TypedDict,
    Union,
)
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye import ask, connect
from aeye.context import Abort, Context
from aeye.decode import decode_wire, unwrap_root
from aeye.descriptor import get_descriptor_by_id
from aeye.errors import SchemaError
from aeye.message import Message, ToolCall
from aeye.rehearsal import Rehearsal, connect_rehearsal
from aeye.request import Request, ResponseFormat, ToolDefinition
from aeye.response import Response, join
from aeye.schema import Field, Schema
from aeye.testing import LocalServer
from aeye.usage import Usage

PERSON = Schema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "minimum": 36, "maximum": 36},
            "nick": {"type": "string"},
            "tags": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "required": ["name", "age"],
    }
)
WEATHER = ToolDefinition(
    "weather",
    "The weather.",
    parameters=Schema(
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "units": {"type": "string", "default": "celsius"},
            },
            "required": ["city"],
        }
    ),
)
TIME = ToolDefinition("time", "The time.", parameters=Schema({"type": "object"}))
ASKED = (Message("system", "Plan a trip to Paris."), Message("user", "Begin."))
TARGETS = ["lenient", "openai", "anthropic", "google", "xai"]


def after(request: Request, response: Response, *results: str) -> Request:
    """The request that follows *response*, whose calls returned *results*."""
    replies = (
        Message("tool", text, tool_call_id=call.id)
        for call, text in zip(response.tool_calls, results)
    )
    return replace(
        request, messages=(*request.messages, response.to_message(), *replies)
    )


def value_of(text: str, request: Request) -> Any:
    """What an answer means, read in the dialect it was asked in."""
    wanted = request.response_format
    assert isinstance(wanted, ResponseFormat)
    value = json.loads(text)
    if wanted.descriptor is None:
        return value
    return decode_wire(wanted.schema, value, get_descriptor_by_id(wanted.descriptor))


def test_each_tool_once_then_text() -> None:
    """Every tool is called in the first turn; the answer says what this is."""
    model = Rehearsal()
    request = Request(ASKED, tools=(WEATHER, TIME))

    first = model.execute(request)
    second = model.execute(after(request, first, "sunny", "noon"))

    arguments = '{"city": "example city", "units": "celsius"}'
    assert first == Response(
        "",
        (
            ToolCall("call_1", "weather", arguments=arguments),
            ToolCall("call_2", "time", arguments="{}"),
        ),
        finish_reason="tool_calls",
        usage=Usage.of(input=7, output=12),
        model="rehearsal:lenient",
    )
    assert second.content == (
        "This is a rehearsal: no model was asked.\n"
        'The prompt begins: "Plan a trip to Paris."\n'
        'The last message is: "Begin."\n'
        'weather returned: "sunny"\n'
        'time returned: "noon"'
    )


def test_long_texts_are_shortened() -> None:
    """The echo shows the beginning of a long text."""
    said = Rehearsal().execute(Request((Message("user", "word " * 50),)))

    assert said.content.endswith('word word word word…"')
    assert max(map(len, said.content.splitlines())) < 110


def test_nothing_to_echo() -> None:
    """An empty request gets the bare statement; a stray reply is shown as one."""
    model = Rehearsal()
    stray = Message("tool", "x", tool_call_id="gone")

    assert model.execute(Request()).content == (
        "This is a rehearsal: no model was asked."
    )
    assert model.execute(Request((stray,))).content.endswith('A tool returned: "x"')


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"tool_choice": "none"}, []),
        ({"tool_choice": "required"}, ["weather", "time"]),
        ({"tool_choice": {"tool": "time"}}, ["time"]),
        ({"tools_one_at_a_time": True}, ["weather"]),
        ({"tools": ()}, []),
    ],
)
def test_tool_choice(changes: Any, names: Any) -> None:
    """The choice of tools, and one at a time, are obeyed."""
    request = Request(ASKED, tools=(WEATHER, TIME))

    response = Rehearsal().execute(replace(request, **changes))

    assert [call.name for call in response.tool_calls] == names


def test_required_is_required_for_good() -> None:
    """When every tool was called and a call is required, one is called again."""
    model = Rehearsal()
    request = Request(ASKED, tools=(WEATHER, TIME), tool_choice="required")

    first = model.execute(request)
    second = model.execute(after(request, first, "a", "b"))

    assert [(call.id, call.name) for call in second.tool_calls] == [
        ("call_3", "weather")
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_answers_in_the_dialect_of_the_target(target: str) -> None:
    """Arguments and answer are spelled as the target wants them, and decode back."""
    model = Rehearsal(target)
    request = Request(ASKED, tools=(WEATHER,), response_format=ResponseFormat(PERSON))

    sent = model.prepare(request)
    first = model.execute(sent)
    answer = model.execute(after(sent, first, "sunny"))

    call = first.tool_calls[0]
    assert call.descriptor == sent.tools[0].descriptor is not None
    dialect = get_descriptor_by_id(call.descriptor)
    arguments = decode_wire(WEATHER.parameters, json.loads(call.arguments), dialect)
    assert arguments["city"] == "example city"
    assert not list(PERSON.find(value_of(answer.content, sent)))
    assert answer.model == f"rehearsal:{target}"


def test_the_wire_differs_where_the_dialect_does() -> None:
    """OpenAI's strict dialect spells a map as a list of pairs."""
    request = Request(ASKED, response_format=ResponseFormat(PERSON))
    found = {}
    for target in ("openai", "lenient"):
        model = Rehearsal(target)
        text = model.execute(model.prepare(request)).content
        found[target] = type(json.loads(text)["tags"])

    assert found == {"openai": list, "lenient": dict}


def test_a_root_that_is_no_object() -> None:
    """The answer is wrapped as ``prepare`` has wrapped its schema."""
    model = Rehearsal("openai")
    numbers = Schema({"type": "array", "items": {"type": "integer"}})
    request = model.prepare(Request(ASKED, response_format=ResponseFormat(numbers)))

    answer = json.loads(model.execute(request).content)

    assert list(answer) == ["value"]
    assert not list(numbers.find(unwrap_root(numbers, answer)))


@pytest.mark.parametrize("kept", [True, False])
def test_a_schema_sent_as_text(kept: bool) -> None:
    """A schema in the system message is obeyed, as it is when it comes over HTTP."""
    model = Rehearsal("openai")
    wanted = ResponseFormat(PERSON, schema_delivery="prompt")
    request = model.prepare(Request(ASKED, response_format=wanted))
    if not kept:
        request = replace(request, response_format="text")

    answer = json.loads(model.execute(request).content)

    assert not list(PERSON.find(answer))


def test_text_that_only_looks_like_a_schema() -> None:
    """A fence that holds no schema is ordinary text."""
    text = "An object conforming to this schema:\n```json\n{oops\n```"

    said = Rehearsal().execute(Request((Message("system", text),))).content

    assert said.startswith("This is a rehearsal")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mistakes", [1, 2])
def test_mistakes_come_first(target: str, mistakes: int) -> None:
    """So many answers are wrong, whatever else is in the history; then one is right."""
    model = Rehearsal(target, mistakes=mistakes)
    request = model.prepare(
        Request(ASKED, tools=(TIME,), response_format=ResponseFormat(PERSON))
    )
    first = model.execute(request)
    request = after(request, first, "noon")

    wrong = []
    for _ in range(mistakes + 1):
        answer = model.execute(request)
        wrong.append(bool(list(PERSON.find(value_of(answer.content, request)))))
        again = Message("user", "The output was an invalid format")
        request = after(request, answer)
        request = replace(request, messages=(*request.messages, again))

    assert wrong == [True] * mistakes + [False]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "const": 5}, '"not a number"'),
        ({"type": "boolean", "const": True}, '"not sure"'),
        ({"type": "string", "const": "a"}, "12345"),
        ({"type": "array", "items": {"const": 5}}, '["not a number", 5]'),
        (
            {
                "properties": {
                    "s": {"const": "a"},
                    "n": {"type": "integer", "const": 5},
                },
                "type": "object",
            },
            '{"s": "a", "n": "not a number"}',
        ),
        (
            {
                "type": "object",
                "properties": {"a": {}, "b": {"type": "null"}},
                "required": ["b"],
            },
            '{"a": "example a"}',
        ),
        (True, "This rehearsal was asked to make a mistake: here is no JSON."),
        (
            {"type": "array", "items": {}, "const": []},
            "This rehearsal was asked to make a mistake: here is no JSON.",
        ),
    ],
)
def test_a_mistake_can_be_seen(schema: Any, expected: str) -> None:
    """A mistake is one value of the wrong type, a missing key, or no JSON at all."""
    request = Request(ASKED, response_format=ResponseFormat(Schema(schema)))

    assert Rehearsal(mistakes=1).execute(request).content == expected


def test_text_has_no_mistakes() -> None:
    """A request for text is answered with text at once."""
    assert Rehearsal(mistakes=3).execute(Request(ASKED)).content.startswith("This is")


def test_streaming_gives_the_same() -> None:
    """The chunks of a stream are small, and join to the blocking answer."""
    model = Rehearsal("openai")
    request = model.prepare(Request(ASKED, tools=(WEATHER, TIME)))
    followed = after(request, model.execute(request), "sunny", "noon")

    for asked in (request, followed):
        chunks = list(model.stream(asked))
        assert join(chunks) == model.execute(asked)
        assert len(chunks) > 5


def test_seeds() -> None:
    """The seed decides what is made up."""
    schema = Schema({"type": "object", "properties": {"n": {"type": "integer"}}})
    request = Request(ASKED, response_format=ResponseFormat(schema))

    made = [Rehearsal(seed=n).execute(request).content for n in (1, 1, 2, 3)]

    assert made[0] == made[1]
    assert len(set(made)) > 1


def test_an_answer_that_was_refused_is_varied() -> None:
    """What fits the schema and is asked for again comes out otherwise."""
    model = Rehearsal()
    schema = Schema({"type": "object", "properties": {"n": {"type": "integer"}}})
    request = Request(ASKED, response_format=ResponseFormat(schema))

    found = set()
    for _ in range(5):
        answer = model.execute(request)
        found.add(answer.content)
        request = after(request, answer)

    assert len(found) > 3


@pytest.mark.parametrize("of_tool", [True, False])
def test_what_cannot_be_made_up(of_tool: bool) -> None:
    """The error says whose schema it is, where, and what helps."""
    hard = Schema(
        {
            "type": "object",
            "properties": {"code": {"type": "string", "pattern": "^(a)\\1$"}},
            "required": ["code"],
        }
    )
    request = (
        Request(ASKED, tools=(ToolDefinition("post", "", parameters=hard),))
        if of_tool
        else Request(ASKED, response_format=ResponseFormat(hard))
    )

    with pytest.raises(SchemaError, match="examples") as caught:
        Rehearsal().execute(request)

    whose = "tool 'post'" if of_tool else "the output"
    assert caught.value.message.startswith(whose)
    assert caught.value.path == "$.properties.code"


def test_a_context() -> None:
    """What is connected has all three functions, and the caller's fields."""
    ctx = connect_rehearsal("openai", seed=2, mistakes=1, max_output_tokens=9, user=7)

    answers = {fn.__self__ for fn in (ctx.prepare, ctx.execute, ctx.stream)}
    assert answers == {Rehearsal("openai", seed=2, mistakes=1)}
    assert (ctx.max_output_tokens, ctx.user) == (9, 7)


def test_one_function_can_be_taken_away() -> None:
    """A context that only blocks is asked for by leaving the stream out."""
    assert connect_rehearsal(stream=None).stream is None


class Patience:
    """A signal that is never set and counts how it is waited for."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def is_set(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return False


def test_delay_waits_on_the_signal() -> None:
    """Before each chunk there is a pause that an abort can end."""
    signal = Patience()
    model = Rehearsal(delay=5)

    chunks = list(model.stream(Request(ASKED), Context(signal=signal)))
    aborted = Abort()
    aborted.set()
    at_once = list(model.stream(Request(ASKED), Context(signal=aborted)))

    assert signal.waits == [5] * len(chunks)
    assert at_once == chunks


def test_delay_without_a_signal() -> None:
    """Without anything to wait on, it sleeps."""
    model = Rehearsal(delay=1e-6)

    assert join(model.stream(Request(ASKED))) == model.execute(Request(ASKED))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"target": "martian"}, "target is the family of a dialect"),
        ({"mistakes": -1}, "mistakes is not negative, as -1 is"),
        ({"delay": float("nan")}, "delay is not negative, as nan is"),
    ],
)
def test_bad_arguments(fields: Any, problem: str) -> None:
    """What cannot be is refused when the model is made."""
    with pytest.raises(ValueError, match=problem):
        connect_rehearsal(**fields)


_SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": -5, "maximum": 5},
        {"type": "number"},
        {"type": "boolean"},
        {"enum": ["a", "b"]},
        {"type": "string", "format": "date"},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
    ]
)


def _containers(inner: Any) -> Any:
    objects = st.builds(
        lambda properties, n: {
            "type": "object",
            "properties": properties,
            "required": sorted(properties)[:n],
            "additionalProperties": False,
        },
        st.dictionaries(st.text("abc", min_size=1), inner, min_size=1, max_size=3),
        st.integers(0, 3),
    )
    maps = inner.map(lambda v: {"type": "object", "additionalProperties": v})
    arrays = inner.map(lambda v: {"type": "array", "items": v})
    return objects | maps | arrays


@given(
    st.recursive(_SCALARS, _containers, max_leaves=8),
    st.sampled_from(TARGETS),
    st.integers(0, 99),
)
def test_every_answer_is_right(schema: Any, target: str, seed: int) -> None:
    """For any schema and target, what was answered decodes to a valid value."""
    source = Schema(schema)
    model = Rehearsal(target, seed=seed)
    request = model.prepare(Request(ASKED, response_format=ResponseFormat(source)))

    value = unwrap_root(source, value_of(model.execute(request).content, request))

    assert not list(source.find(value))


class Pair(NamedTuple):
    left: int
    right: bytes = b""


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Entry(TypedDict):
    number: int
    blob: Optional[bytes]


@dataclass
class Tree:
    value: int
    below: List[Tree]
    left: Optional[Tree] = None


@dataclass
class Everything:
    blob: bytes
    place: Path
    price: Decimal
    key: UUID
    span: timedelta
    day: date
    hour: time
    moment: datetime
    kinds: Set[Level]
    pair: Tuple[int, str]
    named: Pair
    entry: Entry
    by_number: Dict[int, bytes]
    either: Union[int, bytes]
    words: List[Literal["a", "b"]]
    code: Annotated[str, Field(pattern="^[A-Z]{2}-[0-9]+$", min_length=5)]
    few: Annotated[int, Field(ge=3, le=4)]
    tree: Tree
    anything: Any


TYPES = [
    *(bytes, Path, Decimal, UUID, timedelta, date, time, datetime, Level, Pair, Entry),
    *(Tree, Everything, Any, Set[int], Set[bytes], Tuple[int, str], Tuple[bytes, ...]),
    *(Dict[int, str], Dict[date, int], Optional[bytes], Union[int, bytes], List[Tree]),
    *(List[Literal["a", "b"]], Annotated[str, Field(min_length=3, max_length=5)]),
    *(Annotated[int, Field(gt=3, lt=5)], Annotated[bytes, Field(min_length=30)]),
    *(Annotated[List[int], Field(min_length=4)], Annotated[bytes, Field(max_length=9)]),
]


@pytest.mark.parametrize("target", ["", ":openai", ":anthropic", ":google", ":xai"])
def test_a_value_of_every_type(target: str) -> None:
    """Of whatever has a JSON form, a rehearsal makes a value, in every dialect."""
    with connect(f"rehearsal{target}") as ctx:
        made = [ask("x", ctx, schema=kind) for kind in TYPES]

    for kind, value in zip(TYPES, made):
        assert Schema(kind).load(Schema(kind).dump(value)) == (value, []), kind


@pytest.mark.parametrize("target", TARGETS)
def test_a_value_of_every_type_over_http(target: str) -> None:
    """So does one that is served: what the dialect drops, the description says."""
    with LocalServer(Rehearsal(target)) as server:
        url = server.url
        with connect("openai:gpt-5-mini", base_url=url, api_key="none") as ctx:
            made = [ask("x", ctx, schema=kind) for kind in TYPES]

    for kind, value in zip(TYPES, made):
        assert Schema(kind).load(Schema(kind).dump(value)) == (value, []), kind


@pytest.mark.parametrize(
    ("name", "format", "target"),
    [
        ("openai:gpt-5-mini", "chat", "openai"),
        ("openai:gpt-5-mini", "responses", "openai"),
        ("anthropic:claude-sonnet-4-5", "messages", "anthropic"),
        ("google:gemini-2.5-flash", "gemini", "google"),
    ],
)
def test_maps_go_structured(name: str, format: str, target: str) -> None:
    """A map is an answer like any other: its root is wrapped, in strict mode too."""
    with LocalServer(Rehearsal(target), format=format) as server:
        options: Any = {} if format == "gemini" else {"format": format}
        with connect(name, base_url=server.url, api_key="none", **options) as ctx:
            made = ask("x", ctx, schema=Dict[str, int])
        sent = [request.response_format for request in server.requests]
        faults = server.errors

    assert (faults, set(map(type, made.values()))) == ([], {int})
    assert [type(shape) for shape in sent] == [ResponseFormat]
    assert [[*shape.schema.json["properties"]] for shape in sent] == [["value"]]


def test_what_only_the_type_refuses() -> None:
    """A bound that JSON Schema cannot say is an error that names the place."""

    @dataclass
    class Trip:
        start: Annotated[date, Field(ge=date(2100, 1, 1))]

    with connect("rehearsal") as ctx, pytest.raises(SchemaError) as caught:
        ask("x", ctx, schema=Trip)

    assert caught.value.path == "$.properties.start"
    assert "must be >= 2100-01-01" in caught.value.message
