"""Python types and signatures become JSON Schema."""

from __future__ import annotations

import collections
import enum
import sys
import typing
from collections import abc
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import (
    Annotated,
    Any,
    ClassVar,
    Dict,
    FrozenSet,
    Generic,
    List,
    Literal,
    Mapping,
    NamedTuple,
    NewType,
    Optional,
    Sequence,
    Set,
    Tuple,
    TypedDict,
    TypeVar,
    Union,
)
from uuid import UUID

import pytest

from aeye.errors import SchemaError
from aeye.schema import Field, Schema

# Not a dependency of ours, but what many write their types with.
typing_extensions = pytest.importorskip("typing_extensions")

T = TypeVar("T")
Bound = TypeVar("Bound", bound=int)
Chosen = TypeVar("Chosen", int, str)
UserId = NewType("UserId", str)
NULL = {"type": "null"}
TEXT = {"type": "string"}
INT = {"type": "integer"}


class Color(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"
    CRIMSON = "red"  # noqa: PIE796  # an alias is what is tested


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Odd(enum.Enum):
    NOTHING = None
    HALF = 0.5
    ONE = 1


class Bad(enum.Enum):
    PAIR = (1, 2)


class Empty(enum.Enum):
    pass


class Word(str, enum.Enum):
    YES = "yes"


class Point(NamedTuple):
    """A point.

    Attributes:
        x: To the right.
    """

    x: int
    y: float = 1.5


class Options(TypedDict, total=False):
    size: int
    tags: List[str]


class MoreOptions(Options):
    name: str


class Marked(typing_extensions.TypedDict):
    a: typing_extensions.Required[int]
    b: typing_extensions.NotRequired[Annotated[str, "the b"]]
    c: typing_extensions.ReadOnly[typing_extensions.NotRequired[int]]
    d: Annotated[int, Field(default=4)]


@dataclass
class Node:
    """A node of a tree."""

    name: str
    kids: List[Node] = field(default_factory=list)


@dataclass
class Left:
    right: Optional[Right] = None


@dataclass
class Right:
    left: Left
    others: List[Left]


@dataclass
class Page(Generic[T]):
    items: List[T]
    following: Optional[Page[T]] = None


@dataclass
class Numbered(Page[int], Generic[T]):
    extra: Optional[T] = None


@dataclass
class Pair(Generic[Bound, Chosen]):
    a: Bound
    b: Chosen


@dataclass
class Defaults:
    """Defaults.

    Attributes:
        a: The a.
        b: Not used: the metadata says it.
    """

    a: int = 3
    b: Color = field(default=Color.RED, metadata={"description": "The b."})
    c: List[int] = field(default_factory=lambda: [1])
    d: float = float("nan")
    e: datetime = field(default_factory=datetime.now)
    f: Optional[int] = None
    g: int = None  # type: ignore[assignment]
    h: Annotated[int, Field(description="The h.")] = None  # type: ignore[assignment]
    i: Any = None
    j: Annotated[int, Field(default=7)] = 8
    k: Set[int] = field(default_factory=lambda: {2, 1})
    counted: ClassVar[int] = 0
    m: int = field(default=1, init=False)
    n: InitVar[int] = 2
    p: InitVar[int] = 3


def obj(required: Sequence[str] = (), **properties: Any) -> Any:
    told = {"type": "object", "properties": properties}
    return {**told, "required": list(required)} if required else told


CASES: Dict[str, Tuple[Any, Any]] = {
    "str": (str, TEXT),
    "int": (int, INT),
    "float": (float, {"type": "number"}),
    "bool": (bool, {"type": "boolean"}),
    "None": (None, NULL),
    "Any": (Any, {}),
    "object": (object, {}),
    "NewType": (UserId, TEXT),
    "LiteralString": (typing_extensions.LiteralString, TEXT),
    "datetime": (datetime, {**TEXT, "format": "date-time"}),
    "date": (date, {**TEXT, "format": "date"}),
    "time": (time, {**TEXT, "format": "time"}),
    "timedelta": (timedelta, {**TEXT, "format": "duration"}),
    "UUID": (UUID, {**TEXT, "format": "uuid"}),
    "Decimal": (Decimal, {**TEXT, "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}),
    "bytes": (bytes, {**TEXT, "contentEncoding": "base64"}),
    "Path": (Path, TEXT),
    "PurePosixPath": (PurePosixPath, TEXT),
    "list": (list, {"type": "array", "items": {}}),
    "list of": (List[int], {"type": "array", "items": INT}),
    "builtin list of": (list[int], {"type": "array", "items": INT}),
    "Sequence": (Sequence[int], {"type": "array", "items": INT}),
    "abc.Sequence": (abc.Sequence, {"type": "array", "items": {}}),
    "set": (Set[int], {"type": "array", "items": INT, "uniqueItems": True}),
    "frozenset": (FrozenSet[int], {"type": "array", "items": INT, "uniqueItems": True}),
    "abc.Set": (abc.Set[int], {"type": "array", "items": INT, "uniqueItems": True}),
    "tuple": (tuple, {"type": "array"}),
    "tuple of": (Tuple[int, ...], {"type": "array", "items": INT}),
    "fixed tuple": (
        Tuple[int, str],
        {"type": "array", "prefixItems": [INT, TEXT], "minItems": 2, "maxItems": 2},
    ),
    "empty tuple": (Tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
    "builtin empty tuple": (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
    "dict": (dict, {"type": "object"}),
    "dict of any": (Dict[str, Any], {"type": "object"}),
    "dict of": (Dict[str, int], {"type": "object", "additionalProperties": INT}),
    "Mapping": (Mapping[str, int], {"type": "object", "additionalProperties": INT}),
    "OrderedDict": (collections.OrderedDict, {"type": "object"}),
    "dict by any": (Dict[Any, int], {"type": "object", "additionalProperties": INT}),
    "dict by int": (
        Dict[int, str],
        {
            "type": "object",
            "additionalProperties": TEXT,
            "propertyNames": {"pattern": "^-?[0-9]+$"},
        },
    ),
    "dict by enum": (
        Dict[Literal["a", "b"], int],
        {
            "type": "object",
            "additionalProperties": INT,
            "propertyNames": {"type": "string", "enum": ["a", "b"]},
        },
    ),
    "dict by date": (
        Dict[date, Any],
        {"type": "object", "propertyNames": {"type": "string", "format": "date"}},
    ),
    "Optional": (Optional[int], {"anyOf": [INT, NULL]}),
    "Union": (Union[int, str], {"anyOf": [INT, TEXT]}),
    "Literal": (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    "Literal of one": (Literal["a"], {"type": "string", "const": "a"}),
    "Literal of numbers": (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
    "Literal of bools": (Literal[True], {"type": "boolean", "const": True}),
    "mixed Literal": (Literal["a", 1], {"enum": ["a", 1]}),
    "Literal with None": (
        Literal["a", None],
        {"anyOf": [{"type": "string", "const": "a"}, NULL]},
    ),
    "Literal of None": (Literal[None], NULL),
    "Literal of a member": (Literal[Color.RED], {"type": "string", "const": "red"}),
    "Enum": (
        Color,
        {"type": "string", "enum": ["red", "blue"], "description": "A colour."},
    ),
    "IntEnum": (Level, {"type": "integer", "enum": [1, 2]}),
    "str Enum": (Word, {"type": "string", "const": "yes"}),
    "odd Enum": (Odd, {"anyOf": [{"type": "number", "enum": [0.5, 1]}, NULL]}),
    "NamedTuple": (
        Point,
        {
            "type": "object",
            "description": "A point.",
            "properties": {
                "x": {**INT, "description": "To the right."},
                "y": {"type": "number", "default": 1.5},
            },
            "required": ["x"],
        },
    ),
    "namedtuple": (collections.namedtuple("Plain", "a b"), obj(["a", "b"], a={}, b={})),
    "TypedDict": (
        MoreOptions,
        obj(["name"], size=INT, tags={"type": "array", "items": TEXT}, name=TEXT),
    ),
    "marked TypedDict": (
        Marked,
        obj(
            ["a"],
            a=INT,
            b={**TEXT, "description": "the b"},
            c=INT,
            d={**INT, "default": 4},
        ),
    ),
    "recursive": (
        Node,
        {
            **obj(
                ["name"],
                name=TEXT,
                kids={"type": "array", "items": {"$ref": "#"}, "default": []},
            ),
            "description": "A node of a tree.",
        },
    ),
    "mutually recursive": (
        Left,
        obj(
            right={
                "anyOf": [
                    obj(
                        ["left", "others"],
                        left={"$ref": "#"},
                        others={"type": "array", "items": {"$ref": "#"}},
                    ),
                    NULL,
                ],
                "default": None,
            }
        ),
    ),
    "list of recursive": (
        List[Left],
        {
            "type": "array",
            "items": {"$ref": "#/$defs/Left"},
            "$defs": {
                "Left": obj(
                    right={
                        "anyOf": [
                            obj(
                                ["left", "others"],
                                left={"$ref": "#/$defs/Left"},
                                others={
                                    "type": "array",
                                    "items": {"$ref": "#/$defs/Left"},
                                },
                            ),
                            NULL,
                        ],
                        "default": None,
                    }
                )
            },
        },
    ),
    "shared": (
        Tuple[Level, Level],
        {
            "type": "array",
            "prefixItems": [{"$ref": "#/$defs/Level"}, {"$ref": "#/$defs/Level"}],
            "minItems": 2,
            "maxItems": 2,
            "$defs": {"Level": {"type": "integer", "enum": [1, 2]}},
        },
    ),
    "generic": (
        Page[int],
        obj(
            ["items"],
            items={"type": "array", "items": INT},
            following={"anyOf": [{"$ref": "#"}, NULL], "default": None},
        ),
    ),
    "generic without arguments": (
        Page,
        obj(
            ["items"],
            items={"type": "array", "items": {}},
            following={"anyOf": [{"$ref": "#/$defs/Page_T"}, NULL], "default": None},
        ),
    ),
    "generic base": (
        Numbered[str],
        {
            **obj(
                ["items"],
                items={"type": "array", "items": INT},
                following={
                    "anyOf": [{"$ref": "#/$defs/Page_int"}, NULL],
                    "default": None,
                },
                extra={"anyOf": [TEXT, NULL], "default": None},
            ),
            "$defs": {
                "Page_int": obj(
                    ["items"],
                    items={"type": "array", "items": INT},
                    following={
                        "anyOf": [{"$ref": "#/$defs/Page_int"}, NULL],
                        "default": None,
                    },
                )
            },
        },
    ),
    "bounded variables": (Pair, obj(["a", "b"], a=INT, b={"anyOf": [INT, TEXT]})),
    "defaults": (
        Defaults,
        {
            **obj(
                a={**INT, "description": "The a.", "default": 3},
                b={
                    "type": "string",
                    "enum": ["red", "blue"],
                    "description": "The b.",
                    "default": "red",
                },
                c={"type": "array", "items": INT, "default": [1]},
                d={"type": "number"},
                e={"type": "string", "format": "date-time"},
                f={"anyOf": [INT, NULL], "default": None},
                g={"anyOf": [INT, NULL], "default": None},
                h={"anyOf": [INT, NULL], "default": None, "description": "The h."},
                i={"default": None},
                j={**INT, "default": 8},
                k={
                    "type": "array",
                    "items": INT,
                    "uniqueItems": True,
                    "default": [1, 2],
                },
                n={**INT, "default": 2},
                p={**INT, "default": 3},
            ),
            "description": "Defaults.",
        },
    ),
    "description": (Annotated[int, "how many"], {**INT, "description": "how many"}),
    "bounds": (
        Annotated[int, Field(ge=1, lt=5, multiple_of=2)],
        {**INT, "minimum": 1, "exclusiveMaximum": 5, "multipleOf": 2},
    ),
    "more bounds": (
        Annotated[float, Field(gt=1), Field(le=5)],
        {"type": "number", "exclusiveMinimum": 1, "maximum": 5},
    ),
    "bounds on an Optional": (
        Annotated[Optional[int], Field("n", ge=1)],
        {"anyOf": [{**INT, "minimum": 1}, NULL], "description": "n"},
    ),
    "lengths": (
        Annotated[str, Field(min_length=1, max_length=3, pattern="^a", format="email")],
        {**TEXT, "minLength": 1, "maxLength": 3, "pattern": "^a", "format": "email"},
    ),
    "lengths of lists": (
        Annotated[List[int], Field(min_length=1)],
        {"type": "array", "items": INT, "minItems": 1},
    ),
    "lengths of dicts": (
        Annotated[Dict[str, Any], Field(max_length=3)],
        {"type": "object", "maxProperties": 3},
    ),
    "notes": (
        Annotated[
            date, Field(title="T", description="d", examples=[date(2024, 1, 2), "x"])
        ],
        {
            **TEXT,
            "format": "date",
            "title": "T",
            "description": "d",
            "examples": ["2024-01-02", "x"],
        },
    ),
    "bounds on a date": (
        Annotated[date, Field(ge=date(2024, 1, 1))],
        {**TEXT, "format": "date"},
    ),
    "notes on an alias used twice": (
        Tuple[Annotated[Color, "one"], Annotated[Color, "two"]],
        {
            "type": "array",
            "prefixItems": [
                {"$ref": "#/$defs/Color", "description": "one"},
                {"$ref": "#/$defs/Color", "description": "two"},
            ],
            "minItems": 2,
            "maxItems": 2,
            "$defs": {
                "Color": {
                    "type": "string",
                    "enum": ["red", "blue"],
                    "description": "A colour.",
                }
            },
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_types(case: str) -> None:
    """Each kind of type has one schema."""
    source, expected = CASES[case]

    told = Schema(source).json

    if case == "generic without arguments":  # the inner page is a page of anything
        assert told["properties"].keys() == expected["properties"].keys()
    else:
        assert told == expected


class Interval:
    """Bounds as other libraries write them."""

    ge = 1
    gt = None
    le = None
    lt = 5


class Described:
    documentation = "how many"
    metadata = (Interval(),)


class Predicate:
    def ge(self) -> None:
        pass

    min_length = 0
    max_length = None
    pattern = __import__("re").compile("^a")


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        (Interval(), {**INT, "minimum": 1, "exclusiveMaximum": 5}),
        (
            Described(),
            {**INT, "minimum": 1, "exclusiveMaximum": 5, "description": "how many"},
        ),
        (Interval, INT),
        (object(), INT),
        (3, INT),
    ],
)
def test_notes_of_others(note: Any, expected: Any) -> None:
    """Any object with the attributes of annotated-types counts; others are ignored."""
    assert Schema(Annotated[int, note]).json == expected


def test_patterns_may_be_compiled() -> None:
    """A compiled pattern counts, and methods that are named like bounds do not."""
    assert Schema(Annotated[str, Predicate()]).json == {**TEXT, "pattern": "^a"}


REFUSED: Dict[str, Tuple[Any, str, str]] = {
    "class": (complex, "complex has no JSON form", "$"),
    "inner class": (
        Dict[str, List[complex]],
        "complex has no JSON form",
        "$.additionalProperties.items",
    ),
    "callable": (typing.Callable[[int], int], "has no JSON form", "$"),
    "generic of no class": (typing.Type[int], "has no JSON form", "$"),
    "never": (typing.NoReturn, "NoReturn has no JSON form", "$"),
    "tuple keys": (
        Dict[Tuple[int, int], int],
        "keys of a JSON object are text",
        "$.propertyNames",
    ),
    "bool keys": (Dict[bool, int], "are text, not bool", "$.propertyNames"),
    "number keys": (Dict[Level, int], "are text, not Level", "$.propertyNames"),
    "enum of pairs": (Bad, "the value of Bad.PAIR is not JSON", "$"),
    "empty enum": (Empty, "Empty has no members", "$"),
    "literal of bytes": (Literal[b"x"], "is not JSON", "$"),
    "bound on text": (Annotated[str, Field(ge=1)], "ge=1 does not fit", "$"),
    "length of a number": (Annotated[int, Field(min_length=1)], "min_length fits", "$"),
    "pattern of a number": (
        Annotated[int, Field(pattern="a")],
        "pattern fits text",
        "$",
    ),
    "step of text": (Annotated[str, Field(multiple_of=1)], "multiple_of fits", "$"),
    "default of another type": (
        Annotated[int, Field(default="x")],
        "default 'x' does not fit",
        "$",
    ),
    "text out of context": (List["Nowhere"], "'Nowhere' is not known", ""),  # type: ignore[name-defined]  # noqa: F821
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """A type that has no JSON form is an error that names it and its place."""
    source, message, path = REFUSED[case]

    with pytest.raises(SchemaError, match=message) as caught:
        Schema(source)

    assert (caught.value.path or "") == path


def test_a_field_is_no_default() -> None:
    """Who writes Field where pydantic has it is told where it goes here."""

    @dataclass
    class Wrong:
        a: int = Field(ge=1)  # type: ignore[assignment]

    with pytest.raises(SchemaError, match=r"write a: Annotated\[\.\.\., Field\(\)\]"):
        Schema(Wrong)


def test_field_checks_its_words() -> None:
    """Field refuses what is no text, and one text for many examples."""
    with pytest.raises(TypeError, match="title must be text, got 3"):
        Field(title=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="examples must be a list"):
        Field(examples="abc")
    assert hash(Field(default=[1])) == hash(Field(default=[1]))
    assert Field(examples=["a"]) == Field(examples=("a",))


def test_a_factory_is_called_once() -> None:
    """One call at definition shows the default; each value gets its own."""
    calls: List[int] = []

    def make() -> List[int]:
        calls.append(1)
        return [len(calls)]

    @dataclass
    class Made:
        a: List[int] = field(default_factory=make)

    schema = Schema(Made)

    assert schema.json["properties"]["a"]["default"] == [1]
    assert len(calls) == 1
    first, second = schema.load({})[0], schema.load({})[0]
    assert first.a is not second.a


def test_classes_of_one_name_are_kept_apart() -> None:
    """Two classes of the same name have two definitions."""

    def make(hint: Any) -> Any:
        return dataclass(type("Same", (), {"__annotations__": {"a": hint}}))

    one, two = make(int), make(str)
    schema = Schema(Tuple[one, one, two, two])  # type: ignore[valid-type]

    assert schema.json["$defs"] == {
        "Same": obj(["a"], a=INT),
        "Same_2": obj(["a"], a=TEXT),
    }


def test_local_classes() -> None:
    """A class in a function works, and may refer to itself by name."""

    @dataclass
    class Local:
        again: Optional[Local] = None

    told = Schema(Local).json

    assert told["properties"]["again"]["anyOf"] == [{"$ref": "#"}, NULL]


def test_aliases() -> None:
    """Aliases of the type statement are followed, recursive and generic ones too."""
    Tree = typing_extensions.TypeAliasType("Tree", "Union[int, List[Tree]]")
    Many = typing_extensions.TypeAliasType("Many", List[T], type_params=(T,))
    Tree.__module__ = __name__  # where its text is resolved
    globals()["Tree"] = Tree
    try:
        tree = Schema(Tree)
        both = Schema(Tuple[Tree, Tree])
    finally:
        del globals()["Tree"]

    assert tree.json == {"anyOf": [INT, {"type": "array", "items": {"$ref": "#"}}]}
    assert tree.load([1, [2.0]]) == ([1, [2]], [])
    assert tree.dump([1, [2]]) == [1, [2]]
    assert list(both.json["$defs"]) == ["Tree"]
    assert Schema(Many[int]).json == {"type": "array", "items": INT}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs the type statement")
def test_the_type_statement() -> None:
    """What 3.12 writes as ``type`` and ``class A[T]`` works."""
    scope: Dict[str, Any] = {"dataclass": dataclass, "__name__": __name__}
    exec(
        "type Json = dict[str, Json] | list[Json] | str | None\n"
        "type Broken = Nothing\n"
        "@dataclass\n"
        "class Box[T]:\n    item: T\n",
        scope,
    )

    schema = Schema(scope["Json"])
    assert schema.load({"a": [{"b": None}]}) == ({"a": [{"b": None}]}, [])
    assert Schema(scope["Box"][int]).json == obj(["item"], item=INT)
    with pytest.raises(SchemaError, match="Nothing"):
        Schema(scope["Broken"])


@pytest.mark.skipif(sys.version_info < (3, 10), reason="needs new unions")
def test_new_unions() -> None:
    """``int | None`` is Optional[int]."""
    assert Schema(eval("int | None")).json == {"anyOf": [INT, NULL]}


def test_endless_types_are_refused() -> None:
    """A type that nests too deeply is a SchemaError."""
    hint: Any = int
    for _ in range(2000):
        hint = list[hint]
    with pytest.raises(SchemaError, match="too deeply"):
        Schema(hint)


# Functions


def test_signature() -> None:
    """A parameter is a property, documented by the docstring."""

    def search(
        query: str, limit: int = 10, *rest: int, mode: Literal["a", "b"] = "a"
    ) -> None:
        """Search.

        Args:
            query: What for.
            rest: Ignored.
        """

    schema = Schema.of_function(search)

    assert schema.name == "search"
    assert schema.is_object
    assert schema.python_type is None
    assert schema.json == obj(
        ["query"],
        query={**TEXT, "description": "What for."},
        limit={**INT, "default": 10},
        mode={"type": "string", "enum": ["a", "b"], "default": "a"},
    )
    assert schema.load({"query": "x", "strange": 1}) == (
        {"query": "x", "limit": 10, "mode": "a"},
        [],
    )


def test_signature_without_annotations() -> None:
    """What is not annotated can be anything; what cannot be JSON shows no default."""
    sentinel = object()

    def fn(a, b=sentinel, **more):  # type: ignore[no-untyped-def]
        pass

    schema = Schema.of_function(fn)

    assert schema.json == obj(["a"], a={}, b={})
    assert schema.load({"a": [1], "c": 2}) == ({"a": [1]}, [])


def test_annotated_keywords_are_open() -> None:
    """``**kwargs`` with an annotation admits any property of that type."""

    def fn(a: int, **more: date) -> None:
        pass

    schema = Schema.of_function(fn)

    assert schema.json["additionalProperties"] == {"type": "string", "format": "date"}
    built, _ = schema.load({"a": 1, "b": "2024-01-02"})
    assert built == {"a": 1, "b": date(2024, 1, 2)}
    assert schema.dump(built) == {"a": 1, "b": "2024-01-02"}
    assert Schema.of_function(lambda **more: 0).json == obj()

    def anything(**more: Any) -> None:
        pass

    assert Schema.of_function(anything).json["additionalProperties"] is True


class Caller:
    def __init__(self, first: int = 1) -> None:
        pass

    def __call__(self, x: int) -> None:
        pass

    def method(self, y: str) -> None:
        pass

    @classmethod
    def made(cls, z: int) -> Caller:
        return cls()

    @staticmethod
    def still(w: int) -> None:
        pass


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (Caller, obj(first={**INT, "default": 1})),
        (Caller(), obj(["x"], x=INT)),
        (Caller().method, obj(["y"], y=TEXT)),
        (Caller.made, obj(["z"], z=INT)),
        (Caller.still, obj(["w"], w=INT)),
        (Node, obj(["name"], name=TEXT, kids={"type": "array", "items": {}})),
    ],
)
def test_other_callables(fn: Any, expected: Any) -> None:
    """Classes, methods and callable objects have signatures."""
    told = Schema.of_function(fn).json
    if fn is Node:
        assert list(told["properties"]) == ["name", "kids"]
    else:
        assert told == expected


def test_skipped_parameters_are_not_resolved() -> None:
    """A parameter that is left out may be annotated with anything."""

    def fn(ctx: Unknown, a: int) -> None:  # type: ignore[name-defined]  # noqa: F821
        pass

    assert Schema.of_function(fn, skip=["ctx"]).json == obj(["a"], a=INT)
    with pytest.raises(SchemaError, match=r"fn\.ctx: 'Unknown' is not known"):
        Schema.of_function(fn)


def test_what_cannot_be_called_by_name() -> None:
    """Positional-only parameters, builtins without signature and non-callables."""
    scope: Dict[str, Any] = {}
    exec("def fn(a, /): pass", scope)
    with pytest.raises(SchemaError, match="a is positional-only"):
        Schema.of_function(scope["fn"])
    with pytest.raises(SchemaError, match="no readable signature"):
        Schema.of_function(iter)
    with pytest.raises(TypeError, match="expected a function, got 3"):
        Schema.of_function(3)  # type: ignore[arg-type]


def test_functions_with_equal_json_may_differ() -> None:
    """Two functions are equal when their arguments are built alike."""

    def one(a: Path) -> None:
        pass

    def two(a: str) -> None:
        pass

    def three(a: str) -> None:
        pass

    assert Schema.of_function(one) != Schema.of_function(two)
    assert Schema.of_function(three) == Schema.of_function(two)
