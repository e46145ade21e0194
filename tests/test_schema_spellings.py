"""The same model written three ways: emission is the same in every dialect.

pydantic is no dependency, and what compares with it is skipped where it is absent.
``title`` is pydantic's own, and it writes a default of null that a TypedDict cannot
have: both are left out of the comparison.
"""

from __future__ import annotations

import enum
import uuid
from dataclasses import field, make_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Dict,
    List,
    Literal,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypedDict,
    Union,
)

import pytest

from aeye.descriptor import (
    ANTHROPIC_NON_STRICT,
    ANTHROPIC_STRICT,
    GOOGLE_NON_STRICT,
    GOOGLE_STRICT,
    LENIENT,
    OPENAI_NON_STRICT,
    OPENAI_STRICT,
    XAI_NON_STRICT,
    XAI_STRICT,
)
from aeye.emit import to_json_schema
from aeye.schema import Field, Schema

try:
    import pydantic
except ImportError:
    pydantic = None

DIALECTS = (
    LENIENT,
    OPENAI_STRICT,
    OPENAI_NON_STRICT,
    ANTHROPIC_STRICT,
    ANTHROPIC_NON_STRICT,
    GOOGLE_STRICT,
    GOOGLE_NON_STRICT,
    XAI_STRICT,
    XAI_NON_STRICT,
)
PAGE = Path(__file__).resolve().parents[1] / "docs" / "schemas.md"
MAJOR = int(pydantic.VERSION.split(".")[0]) if pydantic is not None else 0

needs_pydantic = pytest.mark.skipif(MAJOR == 0, reason="pydantic is not here")
needs_v1 = pytest.mark.skipif(MAJOR != 1, reason="pydantic v1 is not here")
needs_v2 = pytest.mark.skipif(MAJOR != 2, reason="pydantic v2 is not here")


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Point(NamedTuple):
    x: float
    y: float


class Only(enum.Enum):
    ONE = "one"


# As the page writes them. The second: whether pydantic v1 agrees as well.
SAME: Dict[str, Tuple[Any, bool]] = {
    "str": (str, True),
    "int": (int, True),
    "float": (float, True),
    "bool": (bool, True),
    "None": (None, False),
    "Any": (Any, True),
    "Optional[int]": (Optional[int], False),
    "Union[int, str]": (Union[int, str], True),
    "Union[int, str, None]": (Union[int, str, None], False),
    'Literal["a", "b"]': (Literal["a", "b"], True),
    'Literal["a"]': (Literal["a"], False),
    "Literal[1, 2]": (Literal[1, 2], True),
    "Enum": (Level, False),
    "IntEnum": (Size, False),
    "list": (list, True),
    "list[int]": (List[int], True),
    "list[list[str]]": (List[List[str]], True),
    "list[Optional[str]]": (List[Optional[str]], False),
    "Sequence[int]": (Sequence[int], True),
    "set[int]": (set[int], True),
    "frozenset[str]": (frozenset[str], True),
    "tuple[int, str]": (Tuple[int, str], True),
    "tuple[int, ...]": (Tuple[int, ...], True),
    "dict": (dict, True),
    "dict[str, int]": (Dict[str, int], True),
    "dict[str, Any]": (Dict[str, Any], True),
    "dict[str, list[int]]": (Dict[str, List[int]], True),
    "dict[str, Optional[int]]": (Dict[str, Optional[int]], False),
    "Mapping[str, float]": (Mapping[str, float], True),
    "datetime": (datetime, True),
    "date": (date, True),
    "time": (time, True),
    "timedelta": (timedelta, False),
    "UUID": (uuid.UUID, True),
}
# Constraints, as arguments of our Field and of pydantic's.
CONSTRAINED: Dict[str, Tuple[Any, Dict[str, Any]]] = {
    "ge": (int, {"ge": 1}),
    "gt": (float, {"gt": 0}),
    "le": (int, {"le": 9}),
    "lt": (float, {"lt": 1}),
    "multiple_of": (int, {"multiple_of": 5}),
    "min_length": (str, {"min_length": 2}),
    "max_length": (List[int], {"max_length": 3}),
    "pattern": (str, {"pattern": "^[a-z]+$"}),
    "description": (str, {"description": "Where to go."}),
    "examples": (str, {"examples": ["Oslo"]}),
    "default": (int, {"default": 3}),
}
# By their libraries' own choice: what ours says, and what pydantic v2 says.
DIFFERENT: Dict[str, Tuple[Any, Dict[str, Any], Dict[str, Any]]] = {
    "Decimal": (
        Decimal,
        {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"},
        {"anyOf": [{"type": "number"}, {"type": "string"}]},
    ),
    "bytes": (
        bytes,
        {"type": "string", "contentEncoding": "base64"},
        {"type": "string", "format": "binary"},
    ),
    "Path": (Path, {"type": "string"}, {"type": "string", "format": "path"}),
    "dict[int, str]": (
        Dict[int, str],
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "propertyNames": {"pattern": "^-?[0-9]+$"},
        },
        {"type": "object", "additionalProperties": {"type": "string"}},
    ),
    "NamedTuple": (
        Point,
        {
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
            "required": ["x", "y"],
        },
        {
            "type": "array",
            "prefixItems": [{"type": "number"}, {"type": "number"}],
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    'Literal["a", None]': (
        Literal["a", None],
        {"anyOf": [{"type": "string", "const": "a"}, {"type": "null"}]},
        {"enum": ["a", None]},
    ),
    "an enum of one": (
        Only,
        {"type": "string", "const": "one"},
        {"type": "string", "enum": ["one"]},
    ),
}


def plain(node: Any) -> Any:
    """Take out titles and null defaults."""
    if isinstance(node, list):
        return [plain(held) for held in node]
    if not isinstance(node, dict):
        return node
    return {
        key: plain(held)
        for key, held in node.items()
        if not (key == "title" and isinstance(held, str))
        and not (key == "default" and held is None)
    }


def in_every_way(
    members: Dict[str, Tuple[Any, Dict[str, Any]]], foreign: bool
) -> Tuple[Schema, ...]:
    """Write a model with *members*: name → type and what a Field says.

    As a dataclass, as a TypedDict and, if *foreign*, as a pydantic model.
    """
    given = {name: (kind, dict(said)) for name, (kind, said) in members.items()}
    dataclass_members: List[Any] = []
    for name, (kind, said) in sorted(
        given.items(), key=lambda entry: "default" in entry[1][1]
    ):
        notes = {key: held for key, held in said.items() if key != "default"}
        told = Annotated[kind, Field(**notes)] if notes else kind
        if "default" in said:
            dataclass_members.append((name, told, field(default=said["default"])))
        else:
            dataclass_members.append((name, told))
    typed = {
        name: Annotated[kind, Field(**said)] if said else kind
        for name, (kind, said) in given.items()
    }
    schemas = (
        Schema(make_dataclass("Model", dataclass_members)),
        Schema(TypedDict("Model", typed)),  # type: ignore[operator]  # made at run time
    )
    if not foreign:
        return schemas
    told = {
        name: (kind, pydantic.Field(**said) if said else ...)
        for name, (kind, said) in given.items()
    }
    return (*schemas, Schema(pydantic.create_model("Model", **told)))


def check_same(schemas: Tuple[Schema, ...]) -> None:
    for dialect in DIALECTS:
        ours, *others = [plain(to_json_schema(s, dialect)) for s in schemas]
        for other in others:
            assert other == ours, dialect.id


@pytest.mark.parametrize("name", SAME)
def test_types_are_spelled_alike(name: str) -> None:
    """A field of the type is emitted alike for all three ways of writing a model."""
    kind, in_v1 = SAME[name]

    schemas = in_every_way({"value": (kind, {})}, MAJOR == 2 or (MAJOR == 1 and in_v1))

    check_same(schemas)


@pytest.mark.parametrize("name", CONSTRAINED)
def test_constraints_are_spelled_alike(name: str) -> None:
    """What a Field says comes out alike, whoever's Field it is."""
    schemas = in_every_way({"value": CONSTRAINED[name]}, MAJOR == 2)

    check_same(schemas)


def test_all_at_once() -> None:
    """Many fields, some of them constrained, are a model like any other."""
    members: Dict[str, Tuple[Any, Dict[str, Any]]] = {
        f"same{n}": (kind, {}) for n, (kind, _) in enumerate(SAME.values())
    }
    members.update(CONSTRAINED)

    schemas = in_every_way(members, MAJOR == 2)

    assert len(schemas[0].json["properties"]) == len(SAME) + len(CONSTRAINED)
    check_same(schemas)


# Classes in terms of others, without what the ways of writing them differ in.
TRIP = """
import dataclasses, enum, typing
from typing import Dict, List, Optional, TypedDict, Union

class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"

{mark}
class Stop({base}):
    '''A place on the way.'''
    city: str
    level: Level

{mark}
class Ends({base}):
    start: Stop
    end: Stop

{mark}
class Leg(Ends{last}):
    back: Optional["Leg"]{none}

{mark}
class Trip({base}):
    '''A journey.'''
    legs: List[Leg]
    by_day: Dict[str, Stop]
    first: Union[Stop, Leg]
"""
WAYS = {
    "dataclass": {
        "mark": "@dataclasses.dataclass",
        "base": "",
        "last": "",
        "none": " = None",
    },
    "TypedDict": {
        "mark": "",
        "base": "TypedDict",
        "last": ", total=False",
        "none": "",
    },
    "pydantic": {
        "mark": "import pydantic",
        "base": "pydantic.BaseModel",
        "last": "",
        "none": " = None",
    },
}


@pytest.mark.parametrize("way", ["TypedDict", pytest.param("pydantic", marks=needs_v2)])
def test_classes_in_terms_of_others(way: str, program: Any) -> None:
    """Shared, inherited, nested and recursive classes are emitted alike."""
    ours = Schema(program(TRIP.format(**WAYS["dataclass"]))["Trip"])

    theirs = Schema(program(TRIP.format(**WAYS[way]))["Trip"])

    check_same((ours, theirs))


@needs_v2
@pytest.mark.parametrize("name", DIFFERENT)
def test_types_that_differ(name: str) -> None:
    """What the libraries say for themselves, neither of them is bent to the other."""
    kind, ours, theirs = DIFFERENT[name]

    schemas = in_every_way({"value": (kind, {})}, True)

    written = [plain(schema.json["properties"]["value"]) for schema in schemas]
    assert written == [ours, ours, theirs]


@needs_v2
def test_factories_differ() -> None:
    """A dataclass's factory of a list says a default; pydantic's says none."""
    ours = make_dataclass("Model", [("a", List[int], field(default_factory=list))])
    theirs = pydantic.create_model(
        "Model", a=(List[int], pydantic.Field(default_factory=list))
    )

    written = [plain(Schema(kind).json["properties"]["a"]) for kind in (ours, theirs)]

    items = {"type": "array", "items": {"type": "integer"}}
    assert written == [{**items, "default": []}, items]


@needs_v1
def test_v1_says_no_null() -> None:
    """In the old pydantic's schemas an optional value cannot be null."""
    model = pydantic.create_model("Model", value=(Optional[int], ...))

    assert plain(Schema(model).json["properties"]["value"]) == {"type": "integer"}


@pytest.mark.parametrize("name", [*SAME, *DIFFERENT, *CONSTRAINED])
def test_the_page_names_them(name: str) -> None:
    """The page lists what is the same and what differs."""
    page = PAGE.read_text(encoding="utf-8")
    _, _, section = page.partition("## One model, three spellings\n")
    section, _, _ = section.partition("\n## ")

    assert f"`{name}`" in section or f"| {name} |" in section
