"""Tools: made from functions or by hand; their arguments' check and repair."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass
from typing import Any, Dict, List, Literal, Optional, Tuple

import pytest

import aeye
from aeye.context import Context
from aeye.errors import SchemaError, ToolArgumentError
from aeye.message import ToolCall
from aeye.schema import Finding, Schema
from aeye.tools import RepairAttempt, Tool, find_issues, natural_arguments, tool

OBJECT = {"type": "object"}
NESTED = {
    "type": "object",
    "properties": {"f": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    "required": ["f"],
}


def echo(given: Any) -> Any:
    return given


def made(**options: Any) -> Tool[Any]:
    return Tool("t", echo, **{"schema": OBJECT, **options})


@tool
def shout(text: str, times: int = 1, *, end: Optional[str] = None) -> str:
    """Say it loud.

    Args:
        text: What to say.
        times: How often.
    """
    return text.upper() * times + (end or "")


@dataclass
class Point:
    x: int
    y: int = 0


@tool(name="move-to", strict=False)
def move(to: Point, mode: Literal["walk", "run"] = "walk", *, ctx: Any = None) -> str:
    """Move."""
    return f"{type(to).__name__} {to.x} {mode} {ctx is not None}"


def test_decorated_function() -> None:
    """The name, description and schema come from the function; it is still called."""
    text, definition = shout.compile(Context())

    assert (text, definition.name, definition.description) == (
        "",
        "shout",
        "Say it loud.",
    )
    properties = definition.parameters.json["properties"]
    assert list(properties) == ["text", "times", "end"]
    assert properties["text"]["description"] == "What to say."
    assert definition.parameters.json["required"] == ["text"]
    assert shout("a", 2, end="!") == "AA!"
    assert (shout.__name__, shout.__doc__[:12], shout.kind) == (
        "shout",
        "Say it loud.",
        "tool",
    )


def test_arguments_are_built() -> None:
    """The function gets what its annotations say, defaults filled in, and the ctx."""
    ctx = Context()
    value = move.parse(ctx, '{"to": {"x": 1}}')

    assert move.run(value, ctx) == "Point 1 walk True"
    assert move.name == "move-to"
    assert "ctx" not in move.schema.json["properties"]


def test_the_context_is_never_shown() -> None:
    """A parameter annotated Context, also an optional one, or named ctx, is filled."""

    @tool
    def who(a: Context, b: Optional[Context] = None, ctx=None) -> list[bool]:  # type: ignore[no-untyped-def]
        """Say which arrived."""
        return [given is here for given in (a, b, ctx)]

    here = Context()

    assert who.schema.json.get("properties", {}) == {}
    assert who.run({}, here) == [True, True, True]


def test_positional_only_parameters_are_refused() -> None:
    """Arguments are passed by name, so a positional-only parameter is refused."""

    def pos(a: int, /) -> int:
        """Fail."""
        return a

    with pytest.raises(SchemaError, match="positional-only"):
        tool(pos)


def test_by_hand() -> None:
    """A tool by hand gets the checked arguments, and the ctx where it asks for it."""
    both = Tool("t", lambda given, ctx: (given, ctx.user), schema=OBJECT)
    built = Tool("t", echo, schema=Point)

    assert both.run({"a": 1}, {"user": "ann"}) == ({"a": 1}, "ann")
    assert built.run(built.parse(Context(), '{"x": 1}')) == Point(1)
    assert both({"a": 1}, Context(user="bob")) == ({"a": 1}, "bob")


def test_functions_of_the_context() -> None:
    """Description, instructions, schema and metadata may follow the context."""
    follows = made(
        description=lambda ctx: f"for {ctx.user}",
        instructions="Ask {{who}}.",
        input=lambda ctx: {"who": ctx.user},
        schema=lambda ctx: OBJECT if ctx.user else None,
        metadata=lambda ctx: {"user": ctx.user},
    )
    ctx = Context(user="ann")

    text, definition = follows.compile(ctx)

    assert (text, definition.description) == ("Ask ann.", "for ann")
    assert follows.metadata(ctx) == {"user": "ann"}
    assert (follows.applicable(ctx), follows.applicable({"user": ""})) == (True, False)
    assert follows.compile(Context(user="")) is None
    assert (follows.description, follows.schema, follows.fixed) == ("", None, None)


def test_instructions_are_literal_without_input() -> None:
    """Without ``input`` braces in instructions are just braces."""
    assert made(instructions="Use {{x}}").compile(Context())[0] == "Use {{x}}"


def test_applicable_decides_alone() -> None:
    """An own ``applicable`` decides; such a tool is not fixed."""
    choosy = made(applicable=lambda ctx: ctx.on)

    assert (choosy.applicable({"on": 1}), choosy.applicable({"on": 0})) == (True, False)
    assert choosy.fixed is None


def refused(one: Tool[Any], text: str, **given: Any) -> str:
    with pytest.raises(ToolArgumentError) as e:
        one.parse(Context(), text, **given)
    assert e.value.tool == one.name
    return str(e.value)


def test_size_limit() -> None:
    """Arguments over the limit are refused before anything reads them."""
    limited = made(max_args_length=10)

    text = refused(limited, "x" * 11)

    assert "exceeded the configured size limit of 10" in text and "11" in text
    assert limited.parse(Context(), '{"a": 1}') == {"a": 1}


def test_bad_json() -> None:
    """Text that is no JSON is refused."""
    assert refused(made(), "{")


def test_own_parse_and_validate() -> None:
    """``parse`` makes something else of the value; ``validate`` objects to it."""

    def check(value: Any) -> None:
        if value < 2:
            raise RuntimeError("too small")

    own = made(parse=lambda given: given["n"], validate=check)

    assert own.parse(Context(), '{"n": 5}') == 5
    assert refused(own, '{"n": 1}') == "too small"
    assert refused(made(parse=lambda given: ValueError("no")), "{}") == "no"


def test_the_dialect_is_undone_first() -> None:
    """With a dialect, arguments are decoded before anybody sees them."""
    wire = '{"m": [{"key": "a", "value": 1}]}'
    schema = {
        "type": "object",
        "properties": {"m": {"type": "object", "additionalProperties": {}}},
    }
    natural = {"m": {"a": 1}}

    assert (
        made(schema=schema).parse(Context(), wire, descriptor="openai-strict")
        == natural
    )
    assert made(schema=schema, parse=echo).parse(Context(), wire)["m"] != {"a": 1}


def test_repair() -> None:
    """A field that arrived as JSON in a string is taken apart."""
    seen: list[RepairAttempt] = []

    got = made(schema=NESTED).parse(
        Context(), '{"f": "{\\"n\\": 1}"}', on_repair=seen.append
    )

    assert (got, seen) == ({"f": {"n": 1}}, [RepairAttempt(("f",), True)])


@pytest.mark.parametrize(
    ("inner", "words"),
    [("{broken", "as a JSON object directly"), ('{\\"n\\": \\"x\\"}', "f: ")],
)
def test_failed_repair(inner: str, words: str) -> None:
    """Broken inner JSON is named; inner JSON that does not fit: the original error."""
    seen: list[RepairAttempt] = []

    text = refused(made(schema=NESTED), f'{{"f": "{inner}"}}', on_repair=seen.append)

    assert words in text
    assert seen == [RepairAttempt(("f",), False)]


def test_valid_arguments_are_left_alone() -> None:
    """Text that looks like JSON stays text where text is wanted."""
    schema = {"type": "object", "properties": {"f": {"type": "string"}}}
    seen: list[RepairAttempt] = []

    got = made(schema=schema).parse(Context(), '{"f": "{}"}', on_repair=seen.append)

    assert (got, seen) == ({"f": "{}"}, [])


def test_no_schema_no_arguments() -> None:
    """A tool whose schema is not to be had cannot read arguments."""
    gone = made(schema=lambda ctx: None)

    assert "Not able to build a schema" in refused(gone, "{}")


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"name": "my tool!"}, ValueError, "my tool!"),
    ({"name": ""}, ValueError, "1 to 64"),
    ({"name": "x" * 65}, ValueError, "1 to 64"),
    ({"name": 5}, TypeError, "5"),
    ({"timeout": "5"}, TypeError, "timeout"),
    ({"timeout": -1}, ValueError, "timeout"),
    ({"timeout": True}, TypeError, "timeout"),
    ({"strict": "yes"}, TypeError, "strict"),
    ({"strict": None}, TypeError, "strict"),
    ({"max_args_length": "9"}, TypeError, "max_args_length"),
    ({"inline": "no"}, TypeError, "inline"),
    ({"inline": True, "timeout": 1}, ValueError, "inline"),
    ({"description": 5}, TypeError, "description"),
    ({"call": 5}, TypeError, "call"),
    ({"on_error": "shrug"}, ValueError, "shrug"),
    ({"schema": {"type": "objet"}}, SchemaError, "objet"),
    ({"validate": lambda a, b: None}, TypeError, "'b'"),
]


@pytest.mark.parametrize(("change", "kind", "words"), BAD)
def test_bad_tools_are_refused(
    change: dict[str, Any], kind: type[Exception], words: str
) -> None:
    """What cannot be is refused when the tool is made, by name and value."""
    with pytest.raises(kind, match=words):
        Tool(**{"name": "t", "call": echo, "schema": OBJECT, **change})


async def later(x: int) -> int:
    return x


@pytest.mark.parametrize("fn", [later, 5, shout])
def test_what_cannot_be_decorated(fn: Any) -> None:
    """@tool takes a plain function: no coroutine, no value, no tool."""
    with pytest.raises(TypeError):
        tool(fn)


def test_methods_in_a_class_body_are_refused() -> None:
    """In a class body nobody can give ``self``; a bound method is fine."""

    class Weather:
        def get(self, city: str) -> str:
            """Weather."""
            return city

    with pytest.raises(TypeError, match=r"the_object\.get"):
        tool(Weather.get)
    assert tool(Weather().get).run({"city": "Paris"}) == "Paris"


def test_unresolvable_annotations_are_named() -> None:
    """An annotation whose name cannot be found is an error at definition."""

    def broken(x: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
        """Fail."""
        return 1

    with pytest.raises((SchemaError, NameError), match="Nowhere"):
        tool(broken)


def test_tools_are_values() -> None:
    """A module-level tool pickles by name; copies are the tool itself."""
    assert pickle.loads(pickle.dumps(shout)) is shout
    assert copy.deepcopy(shout) is copy.copy(shout) is shout
    with pytest.raises(TypeError, match="module-level"):
        pickle.dumps(Tool("t", lambda given: 1, schema=OBJECT))
    assert repr(shout) == "<Tool shout>"


def test_issues_are_lines() -> None:
    """Findings are told one a line, short values shown."""
    findings = [
        Finding("a.0", "wrong", True),
        Finding("", "bad", {}),
        Finding("b", "c", "x" * 200),
    ]

    assert find_issues(findings).split("\n") == [
        "- a.0: wrong (input: true)",
        "- bad",
        f"- b: c (input: {'x' * 100}…)",
    ]


def test_schema_objects_are_taken() -> None:
    """A Schema that was made before is used as it is."""
    schema = Schema(Point)

    assert made(schema=schema).schema is schema


# What doors see of arguments in a vendor's dialect


@tool
def book(
    guests: Dict[str, int], seat: Tuple[int, str], note: Optional[str] = None
) -> str:
    """Book."""
    return f"{guests} {seat} {note}"


WRITTEN = '{"guests": [{"key": "Ada", "value": 2}], "seat": {"0": 1, "1": "a"}}'
NATURAL = '{"guests": {"Ada": 2}, "seat": [1, "a"]}'


def test_arguments_in_their_natural_shape() -> None:
    """A dialect is undone; what is in none, or can be read in none, stays as it is."""
    assert book.schema is not None

    def shown(text: str, descriptor: str | None) -> str:
        return natural_arguments(ToolCall("c", "book", text, descriptor), book.schema)

    assert shown(WRITTEN, "openai-strict") == NATURAL
    assert shown(WRITTEN, None) == WRITTEN
    assert shown('{ "seat" :[1,"a"]}', "openai-strict") == '{ "seat" :[1,"a"]}'
    for broken in ("", "{", "[" * 10_000, "7", '{"guests": NaN}', "\ud800"):
        assert shown(broken, "openai-strict") == broken
    assert natural_arguments(ToolCall("c", "x", WRITTEN, "openai-strict"), None)


@pytest.mark.parametrize("vendor", ["openai", "anthropic", "google", "xai"])
@pytest.mark.parametrize("change", [False, True])
def test_doors_see_no_dialect(vendor: str, change: bool) -> None:
    """Hooks, middleware, approvals and results see arguments as the source schema has
    them, whoever the model is; what middleware writes is read the same way."""
    seen: List[Any] = []
    other = '{"guests": {"Bob": 1}, "seat": [2, "b"]}'

    class Look:
        def on_tool_call(self, args: Any) -> Any:
            seen.append(args.args)
            return aeye.request_tool_approval("?")

        def on_tool_input(self, args: Any) -> Any:
            seen.append(args.args)
            return other if change else None

    def consent(request: Any) -> bool:
        seen.append(request.raw_args)
        return True

    ctx = aeye.connect(f"rehearsal:{vendor}")
    agent = aeye.Agent(
        aeye.Prompt("p", "x", tools=[book]),
        ctx,
        hook=Look(),
        middlewares=[Look()],
        approvals=consent,
    )
    events = list(agent.prompt("go").stream())

    (call,) = [e.tool_call for e in events if e.type == "tool_call"]
    (result,) = [e for e in events if e.type == "tool_result"]
    assert book.schema is not None
    natural = natural_arguments(call, book.schema)
    used = other if change else natural
    assert seen == [natural, natural, used]
    assert result.args == used
    value = json.loads(used)
    assert isinstance(value["guests"], dict)
    assert result.result == f"{value['guests']} {tuple(value['seat'])} " + str(
        value.get("note")
    )
