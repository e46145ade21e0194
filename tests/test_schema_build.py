"""Values are built from JSON and dumped again, and the two are inverse."""

from __future__ import annotations

import copy
import enum
import json
import math
import pickle
import uuid
from collections import OrderedDict
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import (
    Annotated,
    Any,
    Dict,
    FrozenSet,
    Generic,
    List,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    Set,
    Tuple,
    TypedDict,
    TypeVar,
    Union,
)

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeye.schema import Field, Schema

T = TypeVar("T")
Pair = NewType("Pair", Annotated[Union[Tuple[int, int], Tuple[str, str]], "a pair"])
Late = Annotated[date, Field(ge=date(2024, 1, 1))]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    y: float = 1.5


class Options(TypedDict, total=False):
    size: int
    when: date


@dataclass(frozen=True)
class Cat:
    kind: Literal["cat"]
    lives: int


@dataclass(frozen=True)
class Dog:
    kind: Literal["dog"]
    bark: bool = True


@dataclass
class Node:
    name: str
    kids: List[Node] = field(default_factory=list)
    pet: Union[Cat, Dog, None] = None

    def __post_init__(self) -> None:
        if self.name == "bad":
            raise ValueError("no node is called\n bad")
        if self.name == "worse":
            raise TypeError


@dataclass
class Box(Generic[T]):
    item: T


@dataclass
class Everything:
    text: str
    flag: bool
    count: int
    ratio: float
    color: Color
    levels: List[Level]
    moment: datetime
    day: date
    clock: time
    span: timedelta
    key: uuid.UUID
    price: Decimal
    raw: bytes
    place: PurePosixPath
    pair: Tuple[int, Optional[str]]
    many: Tuple[Color, ...]
    names: Set[str]
    cats: FrozenSet[Cat]
    by_number: Dict[int, List[bool]]
    by_color: Dict[Color, date]
    point: Point
    options: Options
    node: Node
    mixed: Union[bool, int, float, str, List[int], List[str], Point, None]
    anything: Any
    boxed: Box[date]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
INTS = st.integers(-(10**20), 10**20)
PETS = st.builds(Cat, st.just("cat"), INTS) | st.builds(
    Dog, st.just("dog"), st.booleans()
)
JSON = st.recursive(
    st.none() | st.booleans() | INTS | FLOATS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2)
    ),
    max_leaves=4,
)
NODES = st.recursive(
    st.builds(Node, TEXTS.filter(lambda name: name not in ("bad", "worse"))),
    lambda inner: st.builds(
        Node, st.just("n"), st.lists(inner, max_size=2), st.none() | PETS
    ),
    max_leaves=4,
)
ZONES = st.none() | st.integers(-1439, 1439).map(
    lambda n: timezone(timedelta(minutes=n))
)
POINTS = st.builds(Point, INTS, FLOATS)
EVERYTHING = st.builds(
    Everything,
    text=TEXTS,
    flag=st.booleans(),
    count=INTS,
    ratio=FLOATS,
    color=st.sampled_from(Color),
    levels=st.lists(st.sampled_from(Level), max_size=2),
    moment=st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES).map(
        lambda moment: moment.replace(fold=0)  # which no text can say
    ),
    day=st.dates(),
    clock=st.times().map(lambda value: value.replace(fold=0)),
    span=st.timedeltas(),
    key=st.uuids(),
    price=st.decimals(allow_nan=False, allow_infinity=False, places=3),
    raw=st.binary(max_size=5),
    place=st.sampled_from([PurePosixPath("/a/b"), PurePosixPath("c.txt")]),
    pair=st.tuples(INTS, st.none() | TEXTS),
    many=st.lists(st.sampled_from(Color), max_size=2).map(tuple),
    names=st.sets(TEXTS, max_size=3),
    cats=st.frozensets(st.builds(Cat, st.just("cat"), INTS), max_size=2),
    by_number=st.dictionaries(INTS, st.lists(st.booleans(), max_size=1), max_size=2),
    by_color=st.dictionaries(st.sampled_from(Color), st.dates(), max_size=2),
    point=POINTS,
    options=st.fixed_dictionaries({}, optional={"size": INTS, "when": st.dates()}),
    node=NODES,
    mixed=st.none()
    | st.booleans()
    | INTS
    | FLOATS
    | TEXTS
    | st.lists(INTS, min_size=1, max_size=2)
    | st.lists(TEXTS, min_size=1, max_size=2)
    | POINTS,
    anything=JSON,
    boxed=st.builds(Box, st.dates()),
)
ALL = Schema(Everything)


@given(EVERYTHING)
def test_load_inverts_dump(value: Everything) -> None:
    """What is dumped is plain JSON, and loads to an equal value of equal types."""
    told = ALL.dump(value)
    again, findings = ALL.load(json.loads(json.dumps(told, allow_nan=False)))

    assert findings == []
    assert again == value
    assert [type(item) for item in vars(again).values()] == [
        type(item) for item in vars(value).values()
    ]


@settings(max_examples=settings.default.max_examples // 4)
@given(EVERYTHING)
def test_a_pickled_schema_builds_the_same(value: Everything) -> None:
    """A pickle keeps how values are built, unions included."""
    schema = pickle.loads(pickle.dumps(ALL))

    assert schema == ALL
    assert schema.load(ALL.dump(value)) == ALL.load(ALL.dump(value))


@given(JSON, st.data())
def test_any_json_is_loaded_or_found_wrong(value: Any, data: Any) -> None:
    """Whatever a model answers, load gives a value or findings, and raises nothing."""
    hint = data.draw(
        st.sampled_from(
            [
                Everything,
                Node,
                Point,
                Options,
                Union[Cat, Dog],
                Dict[int, date],
                Decimal,
                bytes,
                timedelta,
                uuid.UUID,
                Path,
                Set[str],
                Level,
                Box[int],
            ]
        )
    )
    schema = Schema(hint)
    built, findings = schema.load(value)

    assert (built is None) or not findings
    if not findings:
        assert schema.load(schema.dump(built)) == (built, [])


# type, JSON, Python
LOADS: Dict[str, Tuple[Any, Any, Any]] = {
    "whole float": (int, 1.0, 1),
    "integer for a float": (float, 1, 1.0),
    "whole float of an IntEnum": (Level, 2.0, Level.HIGH),
    "bare tuple": (tuple, [1, [2]], (1, [2])),
    "negative keys": (Dict[int, str], {"-5": "a"}, {-5: "a"}),
    "unknown keys": (Point, {"x": 1, "z": 2}, Point(1)),
    "unknown keys of a TypedDict": (Options, {"size": 1, "z": 2}, {"size": 1}),
    "int before float": (Union[float, int], 1, 1),
    "float before int": (Union[int, float], 1.0, 1.0),
    "bool before int": (Union[int, bool], True, True),
    "date first": (Union[date, str], "2024-01-02", date(2024, 1, 2)),
    "text first": (Union[str, date], "2024-01-02", "2024-01-02"),
    "enum or text": (Union[Color, str], "red", Color.RED),
    "text where the enum has it not": (Union[Color, str], "green", "green"),
    "the class that knows all keys": (
        Union[Point, Node],
        {"name": "a", "x": 1, "kids": []},
        Node("a"),
    ),
    "by constant": (Union[Cat, Dog], {"kind": "dog"}, Dog("dog")),
    "by items": (Union[List[int], List[Cat]], [{"kind": "cat", "lives": 9}], None),
    "tuples by their items": (Union[Pair, None], ["a", "b"], ("a", "b")),
    "dicts by their values": (
        Union[Dict[str, int], Dict[str, float]],
        {"a": 1.0},
        {"a": 1.0},
    ),
    "bounds by their dates": (Union[Late, str], "2024-01-01", date(2024, 1, 1)),
    "text where no date fits": (Union[Late, str], "2023-01-01", "2023-01-01"),
    "Literal with None": (Literal["a", None], None, None),
    "Literal of a member": (Literal[Color.RED], "red", Color.RED),
    "offset": (
        datetime,
        "2024-01-02T03:04:05Z",
        datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
    ),
    "no offset": (datetime, "2024-01-02T03:04:05", datetime(2024, 1, 2, 3, 4, 5)),
    "None": (None, None, None),
    "within bounds": (Annotated[date, Field(ge=date(2024, 1, 1))], "2024-01-01", None),
    "no value has no bounds": (
        Annotated[Optional[date], Field(ge=date(2024, 1, 1))],
        None,
        None,
    ),
    "Decimal": (Annotated[Decimal, Field(gt=1)], "1.10", Decimal("1.10")),
    "default of a note": (
        Dict[str, Annotated[int, Field(default=1)]],
        {"a": 2},
        {"a": 2},
    ),
}


@pytest.mark.parametrize("case", LOADS)
def test_loading(case: str) -> None:
    """The value has the type that was asked for."""
    hint, value, expected = LOADS[case]

    built, findings = Schema(hint).load(value)

    assert findings == []
    if expected is not None:
        assert built == expected
        assert type(built) is type(expected)


# type, JSON, findings
FAILS: Dict[str, Tuple[Any, Any, List[str]]] = {
    "post init": (Node, {"name": "bad"}, ["- no node is called bad"]),
    "post init without words": (Node, {"name": "worse"}, ["- TypeError"]),
    "several": (
        Node,
        {"name": "a", "kids": [{"name": "bad"}, {"name": "b"}, {"name": "bad"}]},
        ["- kids.0: no node is called bad", "- kids.2: no node is called bad"],
    ),
    "in a dict": (
        Dict[str, Tuple[Node, int]],
        {"a": [{"name": "bad"}, 1]},
        ["- a.0: no node is called bad"],
    ),
    "in a union": (
        Union[Node, int],
        {"name": "bad"},
        ["- no node is called bad"],
    ),
    "impossible date": (
        date,
        "2023-02-29",
        ["- expected a date like 2024-05-31 (input: 2023-02-29)"],
    ),
    "months": (
        timedelta,
        "P1M",
        ["- expected a duration like P1DT2H30M (input: P1M)"],
    ),
    "base64": (bytes, "a", ["- expected base64 text (input: a)"]),
    "base64 of no ASCII": (bytes, "é", ["- expected base64 text (input: é)"]),
    "null in a path": (int, None, ["- expected integer, got null"]),
    "bound": (
        Annotated[date, Field(ge=date(2024, 1, 1))],
        "2023-01-01",
        ["- must be >= 2024-01-01 (input: 2023-01-01)"],
    ),
    "bound of another kind": (
        Annotated[datetime, Field(lt=datetime(2024, 1, 1))],
        "2023-01-01T00:00:00Z",
        [
            "- can't compare offset-naive and offset-aware datetimes "
            "(input: 2023-01-01T00:00:00Z)"
        ],
    ),
    "bound of something unreadable": (
        Annotated[bytes, Field(gt=b"a", le=b"b")],
        "!",
        ["- expected base64 text (input: !)"],
    ),
    "Decimal bound": (
        Annotated[Decimal, Field(gt=1)],
        "1.0",
        ["- must be > 1 (input: 1.0)"],
    ),
    "large float": (
        float,
        10**400,
        ["- the number is too large for a float"],
    ),
    "what a set cannot hold": (
        Set[Node],
        [{"name": "a"}],
        ["- unhashable type: 'Node'"],
    ),
    "rest of a function": (
        "function",
        {"a": 1, "b": "QQ", "c": "!"},
        [
            "- b: expected base64 text (input: QQ)",
            "- c: expected base64 text (input: !)",
        ],
    ),
}


def _takes_bytes(a: int, **more: bytes) -> None:
    pass


@pytest.mark.parametrize("case", FAILS)
def test_what_only_python_finds(case: str) -> None:
    """What the schema cannot say is found while building, each with its path."""
    hint, value, expected = FAILS[case]
    schema = Schema.of_function(_takes_bytes) if hint == "function" else Schema(hint)

    built, findings = schema.load(value)

    assert built is None
    assert [str(finding) for finding in findings] == expected


# type, value, error
REFUSED: Dict[str, Tuple[Any, Any, str]] = {
    "another class": (Node, Cat("cat", 1), "expected Node, got Cat"),
    "a dict for a class": (Node, {"name": "a"}, "expected Node, got"),
    "bool for int": (int, True, "expected int, got True"),
    "text for int": (int, "1", "expected int"),
    "inner": (Node, Node(1), "name: expected str, got 1"),  # type: ignore[arg-type]
    "NaN": (float, math.nan, "nan has no JSON form"),
    "infinite Decimal": (Decimal, Decimal("Infinity"), "no JSON form"),
    "datetime for date": (date, datetime(2024, 1, 1), "expected date"),
    "set for list": (List[int], {1}, "expected list"),
    "list for set": (Set[int], [1], "expected set"),
    "list for dict": (Dict[str, int], [], "expected a mapping"),
    "long tuple": (Tuple[int, int], (1, 2, 3), "expected a tuple of 2"),
    "no member": (Color, "red", "expected one of red, blue"),
    "of no branch": (Union[int, str], 1.5, "no member of the union fits 1.5"),
    "inner of no branch": (Union[List[int], None], ["a"], "no member of the union"),
    "missing key": (TypedDict("Needs", {"a": int}), {}, "expected a dict of its keys"),
    "object": (Any, object(), "has no JSON form"),
    "class": (Any, Node, "has no JSON form"),
    "key": (Any, {None: 1}, "cannot be a key"),
    "bool key": (Any, {True: 1}, "cannot be a key"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_dump_refuses_what_is_not_of_the_type(case: str) -> None:
    """A value of another type is a TypeError or ValueError that shows it."""
    hint, value, message = REFUSED[case]

    with pytest.raises((TypeError, ValueError), match=message):
        Schema(hint).dump(value)


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (Union[Pair, None], ("a", "b"), ["a", "b"]),
        (Union[int, Pair], (1, 2), [1, 2]),
        (Union[Dict[str, int], Dict[str, str]], {"a": "b"}, {"a": "b"}),
        (Union[Late, None], date(2024, 1, 2), "2024-01-02"),
        (Union[Literal["a"], int], "a", "a"),
        (Union[Options, Point], {"size": 1}, {"size": 1}),
        (Union[Options, Dict[str, int]], {"other": 1}, {"other": 1}),
        (Union[Set[int], List[int], Tuple[int, ...]], (1, 2), [1, 2]),
        (Union[float, int], 1, 1),
        (Union[Any, int], 1, 1),
        (Union[date, datetime], datetime(2024, 1, 2), "2024-01-02T00:00:00"),
        (Union[bytes, str], "a", "a"),
    ],
)
def test_unions_dump_the_member_that_holds_the_value(
    hint: Any, value: Any, expected: Any
) -> None:
    """The member of the very type of the value comes first, then any that takes it."""
    assert Schema(hint).dump(value) == expected


def test_values_that_contain_themselves() -> None:
    """An endless value is a ValueError, with and without a type."""
    node = Node("a")
    node.kids.append(node)
    endless: List[Any] = []
    endless.append(endless)

    with pytest.raises(ValueError, match="contains itself"):
        Schema(Node).dump(node)
    with pytest.raises(ValueError, match="contains itself"):
        Schema({}).dump(endless)


class Text(str):
    pass


@dataclass
class Plain:
    a: Any
    b: int = field(default=1, init=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Text("a"), "a"),
        (Level.LOW, 1),
        (Color.RED, "red"),
        ((1, [2.5, None, True]), [1, [2.5, None, True]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", None, 1}), None),
        (OrderedDict(a=1), {"a": 1}),
        ({Color.RED: 1, 2: 3}, {"red": 1, "2": 3}),
        (Plain(Plain(date(2024, 1, 2))), {"a": {"a": "2024-01-02"}}),
        (Point(1), {"x": 1, "y": 1.5}),
        (b"ab", "YWI="),
        (Path("a/b"), str(Path("a/b"))),
        (Decimal("1E+3"), "1000"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (timedelta(hours=1), "PT1H"),
        (time(1), "01:00:00"),
        (datetime(2024, 1, 2), "2024-01-02T00:00:00"),
    ],
)
def test_dump_without_a_type_goes_by_the_value(value: Any, expected: Any) -> None:
    """A dict schema, and Any, dump whatever has a JSON form."""
    for schema in (Schema({}), Schema(Any)):
        told = schema.dump(value)
        json.dumps(told)
        assert expected is None or told == expected


def test_subclasses_are_dumped_as_their_base() -> None:
    """Text and numbers of a subclass become plain ones; bytes become base64."""
    told = Schema(List[Union[str, int]]).dump([Text("a"), Level.LOW])

    assert told == ["a", 1]
    assert [type(item) for item in told] == [str, int]


def test_init_var_goes_in_only() -> None:
    """An InitVar is loaded and not dumped."""

    @dataclass
    class Made:
        a: int = 0
        double: InitVar[int] = 0

        def __post_init__(self, double: int) -> None:
            self.a += 2 * double

    schema = Schema(Made)

    assert schema.load({"double": 2})[0] == Made(4)
    assert schema.dump(Made(1)) == {"a": 1}


# Without a Python type


FILLS: Dict[str, Tuple[Any, Any, Any]] = {
    "properties": (
        {
            "properties": {
                "a": {"default": [1]},
                "b": {"$ref": "#/$defs/b"},
                "c": {"default": None, "type": "null"},
                "d": {},
                "e": True,
                "f": {"$ref": "#/$defs/f"},
            },
            "$defs": {"b": {"default": 2}, "f": False},
        },
        {"a": 5},
        {"a": 5, "b": 2, "c": None},
    ),
    "nested": (
        {
            "properties": {"a": {"properties": {"b": {"default": 1}}}},
            "additionalProperties": {"properties": {"c": {"default": 2}}},
        },
        {"a": {}, "x": {}, "y": 3},
        {"a": {"b": 1}, "x": {"c": 2}, "y": 3},
    ),
    "items": (
        {
            "prefixItems": [{"properties": {"a": {"default": 1}}}],
            "items": {"properties": {"b": {"default": 2}}},
        },
        [{}, {}],
        [{"a": 1}, {"b": 2}],
    ),
    "by pattern": (
        {
            "patternProperties": {"^x": {"properties": {"a": {"default": 1}}}},
            "additionalProperties": {"properties": {"b": {"default": 2}}},
        },
        {"x": {}, "y": {}},
        {"x": {"a": 1}, "y": {"b": 2}},
    ),
    "by a pattern that is not run": (
        {
            "patternProperties": {"(a+)+": {"properties": {"a": {"default": 1}}}},
            "additionalProperties": {"properties": {"b": {"default": 2}}},
        },
        {"a": {}},
        {"a": {}},
    ),
    "all branches": (
        {
            "allOf": [
                {"properties": {"a": {"default": 1}}},
                {"properties": {"b": {"default": 2}}},
            ]
        },
        {},
        {"a": 1, "b": 2},
    ),
    "the branch that fits": (
        {
            "anyOf": [
                {"properties": {"k": {"const": 1}, "a": {"default": 1}}},
                {"properties": {"k": {"const": 2}, "b": {"default": 2}}},
            ]
        },
        {"k": 2},
        {"k": 2, "b": 2},
    ),
    "conditions": (
        {
            "items": {
                "if": {"required": ["k"]},
                "then": {"properties": {"a": {"default": 1}}},
                "else": {"properties": {"b": {"default": 2}}},
            }
        },
        [{"k": 1}, {}],
        [{"k": 1, "a": 1}, {"b": 2}],
    ),
    "condition without else": ({"if": False, "then": True}, {"a": 1}, {"a": 1}),
    "whole floats": (
        {"items": {"type": ["integer", "null"]}},
        [1.0, None],
        [1, None],
    ),
    "floats of numbers": (
        {"prefixItems": [{"type": "number"}, {"type": ["number", "integer"]}, {}]},
        [1.0, 1.0, 1.0],
        [1.0, 1.0, 1.0],
    ),
    "recursive": (
        {"properties": {"n": {"$ref": "#"}, "a": {"default": 1}}},
        {"n": {"n": {}}},
        {"n": {"n": {"a": 1}, "a": 1}, "a": 1},
    ),
    "unknown keys stay": ({"properties": {"a": {}}}, {"b": [1]}, {"b": [1]}),
}


@pytest.mark.parametrize("case", FILLS)
def test_defaults_are_filled_in(case: str) -> None:
    """Without a type the value is a copy, with what is absent filled in."""
    source, value, expected = FILLS[case]
    before = copy.deepcopy(value)

    built, findings = Schema(source).load(value)

    assert (built, findings) == (expected, [])
    assert json.dumps(built, sort_keys=True) == json.dumps(expected, sort_keys=True)
    assert value == before


def test_what_is_loaded_is_apart_from_everything() -> None:
    """Neither the input nor the schema's defaults are shared with the result."""
    schema = Schema({"properties": {"a": {"default": [1]}, "b": {}}})
    value = {"b": [1]}
    first, second = schema.load(value)[0], schema.load(value)[0]
    first["a"].append(2)
    first["b"].append(2)

    assert value == {"b": [1]}
    assert second == {"a": [1], "b": [1]}
    plain = Schema({"type": "object", "additionalProperties": {"type": "array"}})
    loaded = plain.load(value)[0]
    assert loaded == value
    assert loaded["b"] is not value["b"]


# Models of other libraries


class Wrong(ValueError):
    def errors(self) -> List[Dict[str, Any]]:
        return [
            {"loc": ("a", 0), "msg": "Value error, too odd", "input": 3},
            {"loc": ("__root__",), "msg": "all wrong"},
        ]


class NewModel:
    """What pydantic 2 looks like from outside."""

    def __init__(self, a: List[int]) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NewModel) and self.a == other.a

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def model_json_schema(cls) -> Dict[str, Any]:
        return {
            "$ref": "#/$defs/NewModel",
            "$defs": {
                "NewModel": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                        "never": {"$ref": "#/$defs/never"},
                        "always": {"$ref": "#/$defs/always"},
                        "more": {"$ref": "#/$defs/NewModel"},
                        "again": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                    },
                    "required": ["a"],
                },
                "Node": {"type": "integer"},
                "never": False,
                "always": True,
            },
        }

    @classmethod
    def model_validate(cls, value: Dict[str, Any]) -> NewModel:
        if value["a"] == [3]:
            raise Wrong
        if value["a"] == [4]:
            raise ValueError("no four")
        return cls(value["a"])

    def model_dump(self, *, mode: str, by_alias: bool) -> Dict[str, Any]:
        return {"a": self.a}


def _old_model() -> Any:
    class Old:
        def __init__(self, a: int) -> None:
            self.a = a

        @classmethod
        def schema(cls) -> Dict[str, Any]:
            return {"type": "object", "properties": {"a": {"type": "integer"}}}

        @classmethod
        def parse_obj(cls, value: Dict[str, Any]) -> Any:
            return cls(value["a"])

        def json(self, *, by_alias: bool) -> str:
            return json.dumps({"a": self.a})

    return Old


@dataclass
class Holder:
    node: Node
    model: NewModel


def test_new_models() -> None:
    """A class with model_validate is asked for its schema and builds itself."""
    schema = Schema(NewModel)

    assert schema.name == "NewModel"
    assert schema.json["properties"]["more"] == {"$ref": "#"}
    assert schema.load({"a": [1]}) == (NewModel([1]), [])
    assert schema.dump(NewModel([1])) == {"a": [1]}
    assert [str(f) for f in schema.load({"a": [3]})[1]] == [
        "- a.0: too odd (input: 3)",
        "- all wrong",
    ]
    assert [str(f) for f in schema.load({"a": [4]})[1]] == ["- no four"]
    with pytest.raises(TypeError, match="expected NewModel"):
        schema.dump(3)


def test_models_in_classes() -> None:
    """A model within a dataclass brings its definitions, renamed if need be."""
    schema = Schema(Holder)

    assert set(schema.json["$defs"]) >= {"Node", "NewModel", "Node_2"}
    value, findings = schema.load({"node": {"name": "a"}, "model": {"a": [1]}})
    assert findings == []
    assert value == Holder(Node("a"), NewModel([1]))
    assert schema.dump(value)["model"] == {"a": [1]}
    assert Schema(Union[Point, NewModel, None]).dump(NewModel([1])) == {"a": [1]}
    assert [str(f) for f in schema.find({"node": {"name": "a"}, "model": {"a": ["x"]}})]


def test_old_models() -> None:
    """A class with parse_obj works the same way."""
    old = _old_model()
    schema = Schema(List[old])

    built, findings = schema.load([{"a": 1}])

    assert findings == []
    assert built[0].a == 1
    assert schema.dump(built) == [{"a": 1}]
