"""Tables and transcripts in docs/ say what the code says.

Between ``<!-- table: NAME -->`` and ``<!-- end -->`` a page holds what the function
NAME of this file gives. ``python tests/test_tables.py --write`` renews all of them.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import inspect
import json
import re
import sys
import threading
import typing
import uuid
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Tuple,
    TypedDict,
)

import pytest

import aeye
from aeye import errors
from aeye.event import PromptEvent
from aeye.testing import ScriptedModel, calls, pieces
from aeye.vendor import VENDORS

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARKED = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

TABLES: Dict[str, Callable[[], str]] = {}


def table(fn: Callable[[], str]) -> Callable[[], str]:
    """Make *fn* known as what fills the places that bear its name."""
    TABLES[fn.__name__] = fn
    return fn


def in_columns(head: Tuple[str, ...], rows: List[Tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def summary(cls: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring, in one line, as Markdown."""
    first = (cls.__doc__ or "").split("\n\n")[0]
    return " ".join(first.split()).replace("``", "`")


# Events and errors


@table
def events() -> str:
    rows = []
    for cls in typing.get_args(PromptEvent):
        said = [f.name for f in dataclasses.fields(cls) if not f.name.startswith("_")]
        said += [
            name for name, value in vars(cls).items() if isinstance(value, property)
        ]
        names = ", ".join(f"`{name}`" for name in said if name != "request")
        rows.append((f"`{cls.type}`", names, summary(cls)))
    return in_columns(("type", "fields besides `request`", "when"), rows)


@table
def tree() -> str:
    text = (errors.__doc__ or "").split("::\n\n", 1)[1].split("\n\nThree kinds")[0]
    lines = [line[4:] for line in text.splitlines()]
    return "\n".join(["```text", *lines, "```"])


# Transcripts

Scenario = Tuple["aeye.Prompt[Any]", aeye.Context, Callable[[Any], object]]
SCENARIOS: List[Callable[[], Scenario]] = []


def scenario(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Add a run to the transcripts: its docstring is the heading and a sentence."""
    SCENARIOS.append(fn)
    return fn


@table
def transcripts() -> str:
    told = []
    for make in SCENARIOS:
        title, sentence = (make.__doc__ or "").strip().split("\n\n", 1)
        sentence = "\n".join(line.strip() for line in sentence.splitlines())
        told.append(f"### {title}\n\n{sentence}\n\n```text\n{transcript(*make())}\n```")
    return "\n" + "\n\n".join(told) + "\n"


def transcript(
    prompt: aeye.Prompt[Any],
    ctx: aeye.Context,
    hear: Callable[[Any], object] = lambda event: None,
) -> str:
    """Run *prompt* and return a line for each event; *hear* gets each of them."""
    lines = []
    stream = prompt.run({}, ctx)
    try:
        for event in stream:
            lines.append(f"{event.type:<24}{said(event)}".rstrip())
            hear(event)
    except aeye.AeyeError as error:
        lines.append(f"raises {type(error).__name__}")
    else:
        ended = lines and lines[-1].split()[0] in ("complete", "suspend")
        lines += [] if ended else [f"ends with the output {stream.output}"]
    return "\n".join(lines)


def said(event: Any) -> str:
    """Return what *event* says, in one line."""
    words = []
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if field.name == "request" or field.name.startswith("_") or value in (None, {}):
            continue
        if field.name == "iterations":
            words.append(f"#{value}")
        elif field.name == "success":
            words.append("mended" if value else "not mended")
        elif field.name not in ("has_result", "to_model", "raw_args"):
            words.append(shown(value))
    return " ".join(words)


def shown(value: Any) -> str:
    if isinstance(value, aeye.Tool):
        return value.name
    if isinstance(value, aeye.Usage):
        return f"{value.input_tokens} in, {value.output_tokens} out"
    if isinstance(value, aeye.Reasoning):
        return repr(value.content)
    if isinstance(value, Exception):
        return type(value).__name__
    if isinstance(value, aeye.Message):
        words = [value.role]
        words += [f"for {value.tool_call_id}"] if value.tool_call_id else []
        named = ", ".join(f"{call.name} ({call.id})" for call in value.tool_calls)
        words += [f"calls {named}"] if named else []
        return " ".join([*words, repr(value.text)] if value.text else words)
    if isinstance(value, str):
        return (
            value
            if re.fullmatch(r"call_\d+|[a-z]+-[a-z]+|length", value)
            else repr(value)
        )
    return repr(value)


@aeye.tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"clear in {city}"


@aeye.tool
def trains(city: str) -> str:
    """Tell when trains go."""
    return f"at 9 to {city}"


@aeye.tool
def fail(city: str) -> str:
    """Fail."""
    raise OSError("no connection")


@aeye.tool
def wait(city: str) -> str:
    """Leave the call open."""
    raise aeye.PromptSuspend


@aeye.tool
def stop(city: str) -> str:
    """Stop the run."""
    raise aeye.ToolInterrupt


@aeye.tool
def search(city: str) -> Iterator[str]:
    """Search, and say how it goes."""
    yield "half done"
    return "3 hotels"


@aeye.tool
def book(city: str, guests: List[str]) -> str:
    """Book a room."""
    return f"booked for {len(guests)}"


@dataclasses.dataclass
class Trip:
    city: str
    days: int


OSLO = {"city": "Oslo"}
GOOD, BAD = '{"city": "Oslo", "days": 3}', '{"city": "Oslo", "days": "three"}'


def trip(**options: Any) -> aeye.Prompt[Any]:
    return aeye.Prompt("trip", "Plan a trip.", **options)


def blocking(*replies: Any, **fields: Any) -> aeye.Context:
    """Return a context whose model answers whole."""
    return ScriptedModel(*replies, mode="execute").context(**fields)


@scenario
def text() -> Any:
    """Text from a function that answers whole

    One `text_partial` holds all of it.
    """
    return trip(), blocking("Go to Oslo.")


@scenario
def streamed() -> Any:
    """Text that streams, after some reasoning

    The vendor sends the usage where it likes, here at the end.
    """
    usage = aeye.Usage.of(input=10, output=5)
    thought = aeye.Chunk(reasoning=aeye.Reasoning("Somewhere cool."))
    chunks = [thought, *pieces("Go to ", "Oslo.", usage=usage)]
    return trip(), ScriptedModel(chunks).context()


@scenario
def structured() -> Any:
    """A typed answer

    `complete` holds the value that `run(…).output` and a call return.
    """
    return trip(schema=Trip), blocking(GOOD)


@scenario
def repaired() -> Any:
    """A typed answer that does not fit at first

    The corrective `message` is part of the transcript.
    The text of the first answer does not count.
    """
    return trip(schema=Trip), blocking(BAD, GOOD)


@scenario
def exhausted() -> Any:
    """A typed answer that never fits

    With `output_retries=0` nothing is asked again, and the text that is there counts.
    """
    return trip(schema=Trip, output_retries=0), blocking(BAD)


@scenario
def one_tool() -> Any:
    """One tool

    The call's `message` stands between its arguments and its start.
    """
    return trip(tools=[weather]), blocking(calls(("weather", OSLO)), "Take a coat.")


@scenario
def sequential() -> Any:
    """Two tools, sequential

    The second starts when the first has ended; both reply afterwards.
    """
    prompt = trip(tools=[weather, trains], tool_execution="sequential")
    both = calls(("weather", OSLO), ("trains", OSLO))
    return prompt, blocking(both, "Go at 9.")


@scenario
def parallel() -> Any:
    """Two tools, parallel, the first slower

    Outputs come as they are ready, replies in the order of the calls.
    """
    ready = threading.Event()

    @aeye.tool(name="weather")
    def slow(city: str) -> str:
        ready.wait(10)
        return f"clear in {city}"

    prompt = trip(tools=[slow, trains], tool_execution="parallel")
    both = calls(("weather", OSLO), ("trains", OSLO))
    return prompt, blocking(both, "Go at 9."), when("tool_output", ready.set)


@scenario
def immediate() -> Any:
    """Two tools, immediate, while the answer streams

    This is the default.
    A complete call starts as soon as more of the answer has arrived.
    So it may end before the assistant's `message`.
    """
    told = threading.Event()
    text = '{"city": "Oslo"}'

    def slowly(request: Any) -> Iterator[aeye.Chunk]:
        yield aeye.Chunk("Let me see.")
        for call in ("call_1", "weather"), ("call_2", "trains"):
            yield aeye.Chunk(tool_call_named=aeye.ToolCall(*call, arguments=""))
            while call[0] == "call_2" and not told.wait(0.001):
                yield aeye.Chunk()  # nothing new, but the stream goes on
            yield aeye.Chunk(
                tool_call_arguments=aeye.ToolCallDelta(*call, arguments=text)
            )
            yield aeye.Chunk(tool_call=aeye.ToolCall(*call, arguments=text))
        usage = aeye.Usage.of(input=10, output=5)
        yield aeye.Chunk(finish_reason="tool_calls", usage=usage)

    model = ScriptedModel(slowly, "Go at 9.")
    hear = when("tool_output", told.set)
    return trip(tools=[weather, trains]), model.context(), hear


@scenario
def generator() -> Any:
    """A tool that is a generator

    What it yields is told; what it returns is its result.
    """
    return trip(tools=[search]), blocking(calls(("search", OSLO)), "There are three.")


@scenario
def bad_arguments() -> Any:
    """Arguments that do not fit

    The tool is not started; its sibling is run all the same.
    """
    prompt = trip(tools=[weather, trains], tool_execution="parallel")
    both = calls(("weather", {"city": 7}), ("trains", OSLO))
    return prompt, blocking(both, "Go at 9.")


@scenario
def mended() -> Any:
    """Arguments with JSON inside a string

    A field that should have been a list came as text, could be read, and then fitted.
    """
    given = {"city": "Oslo", "guests": '["Ada", "Grace"]'}
    return trip(tools=[book]), blocking(calls(("book", given)), "Booked.")


@scenario
def raised() -> Any:
    """A tool that raises

    The model reads the error and goes on.
    """
    return trip(tools=[fail]), blocking(calls(("fail", OSLO)), "No idea.")


@scenario
def unknown() -> Any:
    """A tool that does not exist

    Nothing of that turn is run, because the model has lost its way.
    """
    both = calls(("wether", OSLO), ("trains", OSLO))
    return trip(tools=[weather, trains]), blocking(both, "Sorry.")


@scenario
def suspended() -> Any:
    """A tool that suspends

    The siblings that had started are finished and reply; the open call does not.
    `event.request.messages` of `suspend` is where to resume.
    """
    prompt = trip(tools=[trains, wait], tool_execution="sequential")
    return prompt, blocking(calls(("trains", OSLO), ("wait", OSLO)))


@scenario
def resumed() -> Any:
    """The same run, resumed with an answer

    The run begins at the call, not at the model.
    """
    prompt = trip(tools=[trains, wait], tool_execution="sequential")
    model = ScriptedModel(calls(("trains", OSLO), ("wait", OSLO)), mode="execute")
    *_, last = prompt.run({}, model.context())
    decisions = {"call_2": aeye.Result("the boss says yes")}
    history = last.request.messages
    return prompt, blocking("Go at 9.", messages=history, decisions=decisions)


@scenario
def interrupted() -> Any:
    """A tool that interrupts

    The run ends, and the text of that turn is the output; with a schema it is None.
    """
    return trip(tools=[stop]), blocking(calls(("stop", OSLO), text="One moment."))


@scenario
def refused() -> Any:
    """A refusal

    A filter that cuts the answer looks the same.
    """
    refusal = aeye.Response(finish_reason="refusal", refusal="I cannot.")
    return trip(), blocking(refusal)


@scenario
def trimmed() -> Any:
    """A window that is full

    The oldest messages are forgotten.
    The model is asked again, under the same number.
    """
    old = [aeye.Message(role, "Oslo.", tokens=9) for role in ("user", "assistant")]
    full = aeye.Response(
        "Go", finish_reason="length", usage=aeye.Usage.of(input=95, output=5)
    )
    fields = {"context_window": 100, "max_output_tokens": 20}
    now = aeye.Message("user", "Where?", tokens=70)
    prompt = trip(config={"max_tokens": 10})
    return prompt, blocking(full, "Go to Oslo.", messages=[*old, now], **fields)


@scenario
def cut() -> Any:
    """An answer that is too long

    Nothing can be forgotten, so the run ends with what has arrived.
    """
    long = aeye.Response("Go to", finish_reason="length")
    return trip(config={"max_tokens": 2}), blocking(long)


@scenario
def fallback() -> Any:
    """A request that the vendor refuses because of its schema

    The schema is sent again as words in the system message.
    """
    error = aeye.StatusError("invalid schema", status=400)
    return trip(schema=Trip), blocking(error, GOOD)


@scenario
def aborted() -> Any:
    """A run that is aborted while the answer streams

    `ctx.signal` was set by whoever read the first piece.
    """
    abort = aeye.Abort()
    model = ScriptedModel(pieces("Go to ", "Oslo."))
    return trip(), model.context(signal=abort), when("text_partial", abort.set)


@scenario
def aborted_before() -> Any:
    """A run that is aborted before it starts

    The model is not asked.
    """
    abort = aeye.Abort()
    abort.set()
    return trip(), blocking("Go to Oslo.", signal=abort)


@scenario
def incompatible() -> Any:
    """A prompt that does not fit its context

    `config` or `retool` gave False, so nothing happens.
    A call raises `IncompatibleError`.
    """
    return trip(config=lambda input: False), blocking("Go to Oslo.")


def when(type: str, call: Callable[[], object]) -> Callable[[Any], object]:
    """Return a function that does *call* when it hears an event of *type*."""
    return lambda event: call() if event.type == type else None


# What the model reads


@table
def replies() -> str:
    ready = threading.Event()

    @aeye.tool(name="slow", timeout=0.01)
    def slow(city: str) -> str:
        ready.wait(10)
        return "late"

    tools = [weather, trains, fail, wait, stop, search, slow, _tool("nothing", None)]
    tools += [_tool("some", {"sky": "clear"}), _tool("trip", Trip("Oslo", 3))]
    rows = [
        ("a `str` was returned", _read(tools, ("weather", OSLO))),
        ("anything else was returned", _read(tools, ("some", OSLO))),
        ("a dataclass was returned", _read(tools, ("trip", OSLO))),
        ("None was returned", _read(tools, ("nothing", OSLO))),
        ("a generator returned", _read(tools, ("search", OSLO))),
        (
            "`on_tool_result` returned",
            _read(tools, ("some", OSLO), on_tool_result=lambda it: it.result["sky"]),
        ),
        (
            "`on_tool_result` raised",
            _read(tools, ("some", OSLO), on_tool_result=lambda it: it.result + 1),
        ),
        ("the arguments do not fit", _read(tools, ("weather", {"city": 7}))),
        ("no arguments were sent", _read(tools, ("weather", ""))),
        ("the tool raised", _read(tools, ("fail", OSLO))),
        ("the tool timed out", _read(tools, ("slow", OSLO))),
        ("the tool raised `ToolInterrupt`", _read(tools, ("stop", OSLO))),
        ("the tool raised `PromptSuspend`", _read(tools, ("wait", OSLO))),
        ("there is no such tool", _read([weather, trains], ("wether", OSLO))),
        ("a sibling was no tool", _read(tools, ("zz", {}), ("weather", OSLO))),
        ("a sibling ended the batch", _read(tools, ("stop", OSLO), ("weather", OSLO))),
        ("the tools were withdrawn", _read_late(tools)),
        ("only one call at a time", _read_one(tools)),
        ("consent was refused", _read_refused()),
        ("the run was aborted before it", _read_aborted()),
    ]
    ready.set()
    return in_columns(("what happened", "what the model reads"), rows)


def _tool(name: str, result: Any) -> aeye.Tool[Any]:
    return aeye.Tool(name, lambda given: result, schema={"type": "object"})


def _read(tools: List[Any], *pairs: Any, ctx: Any = None, **options: Any) -> str:
    """Return the last reply that a run with these calls ends up with."""
    options.setdefault("tool_execution", "sequential")
    prompt = trip(tools=tools, **options)
    model = ScriptedModel(calls(*pairs), "Done.", mode="execute")
    return _last_reply(prompt, ctx or model.context())


def _last_reply(prompt: aeye.Prompt[Any], ctx: aeye.Context) -> str:
    stream = prompt.run({}, ctx)
    list(stream)
    found = [m.text for m in stream.messages if m.role == "tool"]
    return (
        f"`{found[-1]}`".replace("\n", "` `")
        if found
        else "nothing, until it is resumed"
    )


def _read_late(tools: List[Any]) -> str:
    first, late = calls(("weather", OSLO)), calls(("trains", OSLO))
    prompt = trip(tools=tools, tools_max=1)
    return _last_reply(prompt, blocking(first, late, "Done."))


def _read_one(tools: List[Any]) -> str:
    config = {"tools_one_at_a_time": True}
    return _read(tools, ("weather", OSLO), ("trains", OSLO), config=config)


def _read_refused() -> str:
    careful = aeye.Tool(
        "pay", lambda given: 1, schema={"type": "object"}, approval=True
    )
    prompt = trip(tools=[careful])
    *_, last = prompt.run({}, blocking(calls(("pay", {}))))
    fields = {"messages": last.request.messages, "decisions": {"call_1": False}}
    return _last_reply(prompt, blocking("Done.", **fields))


def _read_aborted() -> str:
    abort = aeye.Abort()
    halt = aeye.Tool("halt", lambda given: abort.set(), schema={"type": "object"})
    ctx = blocking(calls(("halt", {}), ("weather", OSLO)), signal=abort)
    return _read([halt, weather], ctx=ctx)


# Vendors


@table
def vendors() -> str:
    head = ("name", "address", "key", "formats", "example", "documented, as of")
    rows = []
    for vendor in VENDORS:
        keys = ", ".join(f"`{name}`" for name in vendor.key_names) or "none"
        if vendor.keyless and vendor.key_names:
            keys += " (if it asks for one)"
        url, day = vendor.source
        row = (
            f"`{vendor.name}`",
            vendor.base_url,
            keys,
            ", ".join(vendor.formats),
            f"`{vendor.name}:{vendor.example}`",
            f"[{day}]({url.split()[0]})",
        )
        rows.append(row)
    return in_columns(head, rows)


# Types


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Movie(TypedDict, total=False):
    title: str


class Point(NamedTuple):
    x: float
    y: float = 0.0


TYPES: List[Tuple[str, Any]] = [
    ("int", 3),
    ("float", 3),
    ("bool", True),
    ("Optional[int]", None),
    ("Union[int, str]", "3"),
    ("Literal['low', 'high']", "low"),
    ("Level", "low"),
    ("list[int]", [1, 2]),
    ("set[int]", [1, 2]),
    ("tuple[int, str]", [1, "a"]),
    ("dict[str, int]", {"a": 1}),
    ("Trip", {"city": "Oslo", "days": 3}),
    ("Movie", {"title": "Alien"}),
    ("Point", {"x": 1.5}),
    ("datetime", "2026-05-01T09:00:00Z"),
    ("date", "2026-05-01"),
    ("time", "09:30:00"),
    ("timedelta", "PT90M"),
    ("UUID", "12345678-1234-5678-1234-567812345678"),
    ("Decimal", "19.90"),
    ("bytes", "aGVsbG8="),
    ("Annotated[int, Field(ge=1, le=5)]", 3),
    ("Any", {"a": [1]}),
]


@table
def types() -> str:
    known = {**vars(typing), **vars(datetime), **vars(decimal), **vars(uuid)}
    known.update(globals(), Field=aeye.Field, datetime=datetime.datetime)
    rows = []
    for written, answer in TYPES:
        schema = aeye.Schema(eval(written, known))
        value, findings = schema.load(answer)
        assert not findings, (written, findings)
        wire = json.dumps(schema.json)
        rows.append((f"`{written}`", f"`{wire}`", f"`{value!r}`"))
    return in_columns(("type", "JSON Schema", "what an answer becomes"), rows)


# Dialects


def _of(node: Any, **more: Any) -> Any:
    return {"type": "object", "properties": {"p": node}, "required": ["p"], **more}


def _text(**more: Any) -> Any:
    return _of({"type": "string", **more})


def _whole(**more: Any) -> Any:
    return _of({"type": "integer", **more})


def _list(**more: Any) -> Any:
    return _of({"type": "array", "items": {"type": "string"}, **more})


def _map(**more: Any) -> Any:
    number = {"type": "number"}
    return _of({"type": "object", "additionalProperties": number, **more})


_CHOICE = [{"type": "string"}, {"type": "integer"}]
_BOTH = [{"type": "string", "pattern": text} for text in ("^a", "b$")]
_INNER = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
_NODE = {
    "type": "object",
    "properties": {"all": {"type": "array", "items": {"$ref": "#/$defs/T"}}},
    "required": ["all"],
}
# What is asked for → a schema that asks for it at ``p``.
PROBES: Dict[str, Any] = {
    "an optional property": {**_text(), "required": []},
    "`default`": {**_text(default="x"), "required": []},
    "a property that may be null": _of({"type": ["string", "null"]}),
    "`additionalProperties: false`": _of({**_INNER, "additionalProperties": False}),
    "a map (`dict[str, …]`)": _map(),
    "`propertyNames`": _map(propertyNames={"enum": ["a", "b"]}),
    "`patternProperties`": _of(
        {"type": "object", "patternProperties": {"^a": {"type": "number"}}}
    ),
    "`minProperties`": _map(minProperties=1),
    "`minItems`, `maxItems`": _list(minItems=1, maxItems=3),
    "`uniqueItems`": _list(uniqueItems=True),
    "`contains`": _list(contains={"const": "a"}),
    "`prefixItems` (a tuple)": _of(
        {"type": "array", "prefixItems": _CHOICE, "minItems": 2, "maxItems": 2}
    ),
    "`minLength`, `maxLength`": _text(minLength=1, maxLength=3),
    "`pattern`": _text(pattern="^a+$"),
    "`format: date`": _text(format="date"),
    "`format: email`": _text(format="email"),
    "`format: uri`": _text(format="uri"),
    "`contentEncoding` (`bytes`)": _text(contentEncoding="base64"),
    "`minimum`, `maximum`": _whole(minimum=1, maximum=9),
    "`exclusiveMinimum`": _whole(exclusiveMinimum=1),
    "`multipleOf`": _whole(multipleOf=2),
    "`enum`": _of({"enum": ["a", "b"]}),
    "`const`": _of({"const": "a"}),
    "`anyOf` (a union)": _of({"anyOf": _CHOICE}),
    "`oneOf`": _of({"oneOf": _CHOICE}),
    "`allOf`": _of({"allOf": _BOTH}),
    "`not`": _text(**{"not": {"enum": ["x"]}}),
    "`if`, `then`, `else`": _whole(**{"if": {"minimum": 3}, "then": {"maximum": 9}}),
    "`$ref` to `$defs`": _of({"$ref": "#/$defs/T"}, **{"$defs": {"T": _INNER}}),
    "recursion": _of({"$ref": "#/$defs/T"}, **{"$defs": {"T": _NODE}}),
    "any JSON value (`Any`)": _of({}),
    "`title`": _text(title="x"),
    "`examples`": _text(examples=["x"]),
}
ALL = (
    aeye.LENIENT,
    aeye.OPENAI_NON_STRICT,
    aeye.ANTHROPIC_NON_STRICT,
    aeye.XAI_NON_STRICT,
    aeye.GOOGLE_NON_STRICT,
    aeye.OPENAI_STRICT,
    aeye.ANTHROPIC_STRICT,
    aeye.GOOGLE_STRICT,
    aeye.XAI_STRICT,
)


@table
def dialects() -> str:
    columns: Dict[Tuple[str, ...], List[str]] = {}
    for dialect in ALL:
        cells = tuple(_cell(probe, dialect) for probe in PROBES.values())
        columns.setdefault(cells, []).append(dialect.id)
    heads = [f"`{ids[0]}`" for ids in columns.values()]
    rows = list(zip((str(name) for name in PROBES), *columns))
    made = in_columns(("asked for", *heads), rows)
    for ids in columns.values():
        if len(ids) > 1:
            others = ", ".join(f"`{id}`" for id in ids[1:])
            made += f"\n\nThe column `{ids[0]}` holds for {others} too."
    return made


def _cell(probe: Any, dialect: aeye.FormatDescriptor) -> str:
    """Say what becomes of *probe* in *dialect*."""
    reasons = {reason.kind for reason in aeye.explain(probe, dialect)}
    if "strict" in reasons:
        return "**not strict**"
    if "output" in reasons:
        return "**tools only**"
    wire = aeye.to_json_schema(probe, dialect, describe_dropped=True)
    node, plain = (
        found["properties"]["p"]
        for found in (wire, aeye.to_json_schema(probe, aeye.LENIENT))
    )
    words = [_spelling(node, plain)]
    if "description" in node:
        words.append("said")
    elif "lost" in reasons:
        words.append("checked")
    if "ambiguous" in reasons:
        words.append("ambiguous")
    found = ", ".join(word for word in words if word)
    return found or ("yes" if node.keys() >= plain.keys() else "left out")


def _spelling(node: Any, plain: Any) -> Optional[str]:
    """Name the other way in which something is spelled, if it is one."""
    new = node.keys() - plain.keys() - {"description"}
    if "items" in new:
        return "any of the items" if "anyOf" in str(node) else "list of pairs"
    if "properties" in new:
        return "in place" if "$ref" in plain else 'object `"0"`, `"1"`'
    if "type" in new and isinstance(node["type"], list):
        return "`type: [T, null]`"
    if "anyOf" in new and "oneOf" not in plain:
        return (
            "T or null" if "null" in str(node) and len(node["anyOf"]) == 2 else "listed"
        )
    other = sorted(new - {"type", "propertyOrdering", "additionalProperties"})
    if other:
        return f"as `{other[0]}`"
    return "no constraint" if not node and plain else None


@table
def limits() -> str:
    names = [
        "max_strict_tools",
        "max_strict_optional_params",
        "max_strict_union_types",
        "max_enum_values",
    ]
    sizes = [field.name for field in dataclasses.fields(aeye.SchemaSizeLimits)]
    rows = []
    for name in [*names, *sizes]:
        found = [
            getattr(d, name)
            if name in names
            else getattr(d.schema_size_limits, name, None)
            for d in ALL
        ]
        bound = [f"{n:,} (`{d.id}`)" for n, d in zip(found, ALL) if n is not None]
        rows.append((f"`{name}`", ", ".join(bound)))
    return in_columns(("limit", "at most"), rows)


FUNCTIONS = [
    "to_json_schema",
    "decode_wire",
    "encode_wire",
    "strictify",
    "explain",
    "can_express",
    "analyze_schema",
    "check_schema_size_limits",
    "SchemaBudget",
    "strict_priority",
    "strictest_of",
    "get_descriptor",
    "get_descriptor_by_id",
    "has_descriptor_family",
    "resolve_descriptor",
    "register_descriptor",
    "check_descriptor_consistency",
]


@table
def schema_functions() -> str:
    rows = []
    for name in FUNCTIONS:
        found = getattr(aeye, name)
        names = [str(p.replace(annotation=p.empty)) for p in parameters(found)]
        rows.append((f"`{name}({', '.join(names)})`", summary(found)))
    return in_columns(("name", "what it does"), rows)


def parameters(fn: Callable[..., Any]) -> List[inspect.Parameter]:
    return list(inspect.signature(fn).parameters.values())


# The pages


PLACES = [
    pytest.param(page, place.group(2), id=f"{page.stem}-{place.group(2)}")
    for page in sorted(DOCS.glob("*.md"))
    for place in MARKED.finditer(page.read_text(encoding="utf-8"))
    if place.group(2) in TABLES
]


def test_every_table_has_a_place() -> None:
    """A table that no page shows has been forgotten, or its mark is misspelt."""
    assert {param.values[1] for param in PLACES} == set(TABLES)


@pytest.mark.parametrize(("page", "name"), PLACES)
def test_page_shows_what_the_code_says(page: Path, name: str) -> None:
    """What stands between the marks is what its function gives."""
    for place in MARKED.finditer(page.read_text(encoding="utf-8")):
        if place.group(2) == name:
            assert place.group(3) == TABLES[name]() + "\n"


def test_errors_page_names_every_class() -> None:
    """For each error and signal the page says when it comes and what to do."""
    page = MARKED.sub("", (DOCS / "errors.md").read_text(encoding="utf-8"))
    rows = "".join(line for line in page.splitlines() if line.startswith("| `"))

    missing = {name for name in errors.__all__ if f"`{name}`" not in rows}
    assert missing == {"Signal"}


def test_transcripts_show_every_event() -> None:
    """There is no event that no scenario has."""
    shown = {line.split()[0] for line in transcripts().splitlines() if line.split()}

    assert [c.type for c in typing.get_args(PromptEvent) if c.type not in shown] == []


class Printed:
    """Stands for ``print`` in a page and notes what each of its lines prints."""

    def __init__(self) -> None:
        self.lines: Dict[int, str] = {}

    def __call__(
        self, *words: object, sep: str = " ", end: str = "\n", **_: Any
    ) -> None:
        at = sys._getframe(1).f_lineno
        self.lines[at] = self.lines.get(at, "") + sep.join(map(str, words)) + end


@pytest.mark.parametrize("name", sorted(page.stem for page in DOCS.glob("*.md")))
def test_comments_say_what_is_printed(
    name: str, program: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A comment behind or right under a print shows its output; … stands for more."""
    monkeypatch.setenv("AEYE_MODEL", "rehearsal")
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    lines, print_ = text.splitlines(), Printed()
    for block in BLOCK.finditer(text):
        before = "\n" * (text[: block.start()].count("\n") + 1)
        program(before + block.group(1), name, print=print_)
    shown = {at: _comment(lines, at) for at in print_.lines}
    wrong = {
        at: (shown[at], made)
        for at, made in print_.lines.items()
        if shown[at] and not _shows(shown[at], made)
    }

    assert wrong == {}


def _comment(lines: List[str], at: int) -> List[str]:
    """Return the comment behind line *at* and those on the lines under it."""
    found = [line for _, mark, line in [lines[at - 1].partition("  # ")] if mark]
    for line in lines[at:]:
        if not line.lstrip().startswith("# "):
            break
        found.append(line.lstrip()[2:])
    return found


def _shows(shown: List[str], made: str) -> bool:
    pattern = "\n".join(re.escape(line) for line in shown).replace("…", "(.|\n)*")
    return re.fullmatch(pattern, made.rstrip("\n")) is not None


def test_pages_are_short() -> None:
    """No page has more than 200 lines beside what is printed into it."""
    long = {}
    for page in DOCS.glob("*.md"):
        written = MARKED.sub("", page.read_text(encoding="utf-8"))
        long[page.name] = written.count("\n")

    assert {name: count for name, count in long.items() if count > 200} == {}


def write() -> None:
    """Renew every marked place."""
    for page in sorted(DOCS.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = MARKED.sub(_renewed, before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print("renewed", page.name)


def _renewed(place: Any) -> str:
    opening, name, _, closing = place.groups()
    if name not in TABLES:
        return str(place.group())
    return f"{opening}{TABLES[name]()}\n{closing}"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/test_tables.py --write")
    write()
