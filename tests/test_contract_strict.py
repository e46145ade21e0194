"""OpenAI's own conversion to strict schemas beside ours, rule by rule.

Its package does it for pydantic models. Neither is a dependency, and without them
there is nothing to do here. Where the two differ, ``docs/schemas.md`` says why.
"""

from __future__ import annotations

import enum
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Dict, List, Literal, Optional, Set, Tuple, Union
from uuid import UUID

import pytest

from aeye.descriptor import OPENAI_STRICT
from aeye.emit import to_json_schema

openai = pytest.importorskip("openai")
pydantic = pytest.importorskip("pydantic", minversion="2")
# Its types warn of their own fields.
pytestmark = pytest.mark.filterwarnings("default")

PAGE = Path(__file__).resolve().parents[1] / "docs" / "schemas.md"


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Stop(pydantic.BaseModel):
    """A place on the way."""

    city: str
    level: Level


class Node(pydantic.BaseModel):
    size: int
    next: Optional[Node] = None


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    age: int


class Loose(pydantic.BaseModel):
    model_config = {"extra": "allow"}

    size: int


Field = pydantic.Field
# Rule → the fields of a model that keeps to it.
AGREED: Dict[str, Dict[str, Any]] = {
    "every property is required": {"a": (str, ...), "b": (Optional[int], None)},
    "every object is closed": {"a": (Stop, ...), "b": (List[Stop], ...)},
    "an empty object is closed": {"a": (pydantic.create_model("Empty"), ...)},
    "a default of null is dropped": {"a": (Optional[str], Field(None, title="A"))},
    "what has notes is no reference": {
        "a": (Stop, Field(description="The first.")),
        "b": (Stop, ...),
    },
    "unions are anyOf": {
        "a": (Union[int, str, None], ...),
        "b": (Optional[Union[Cat, Dog]], ...),
        "c": (List[Union[Cat, Dog]], ...),
    },
    "enums and constants stay": {
        "a": (Literal["a", "b"], ...),
        "b": (Literal[1], ...),
        "c": (Level, ...),
        "d": (Optional[Level], None),
    },
    "recursion stays": {"a": (Node, ...), "b": (List[Node], ...)},
    "dates and times keep their format": {
        "a": (datetime, ...),
        "b": (date, ...),
        "c": (time, ...),
        "d": (timedelta, ...),
        "e": (UUID, ...),
    },
    "patterns stay": {"a": (str, Field(pattern="^[a-z]+$"))},
    "descriptions and titles stay": {"a": (int, Field(title="T", description="D."))},
}

_INTEGER = {"type": "integer"}
_ONE_CAT, _ONE_DOG = (
    {
        "type": "object",
        "properties": {"kind": {"type": "string", "const": kind}, name: _INTEGER},
        "required": ["kind", name],
        "additionalProperties": False,
    }
    for kind, name in (("cat", "lives"), ("dog", "age"))
)
# As the page calls it → a field, what ours says of it, and what theirs says.
DIFFERENT: Dict[str, Tuple[Any, Any, Any]] = {
    "a default": (
        (int, 3),
        {"type": "integer", "description": "Default: 3."},
        {"type": "integer", "default": 3},
    ),
    "a factory": (
        (List[int], Field(default_factory=list)),
        {"anyOf": [{"type": "array", "items": _INTEGER}, {"type": "null"}]},
        {"type": "array", "items": _INTEGER},
    ),
    "a map": (
        (Dict[str, int], ...),
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"key": {"type": "string"}, "value": _INTEGER},
                "required": ["key", "value"],
                "additionalProperties": False,
            },
        },
        {"type": "object", "additionalProperties": _INTEGER},
    ),
    "a tuple": (
        (Tuple[int, int], ...),
        {
            "type": "object",
            "properties": {"0": _INTEGER, "1": _INTEGER},
            "required": ["0", "1"],
            "additionalProperties": False,
        },
        {
            "type": "array",
            "prefixItems": [_INTEGER, _INTEGER],
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    "bounds and lengths": (
        (int, Field(ge=1)),
        _INTEGER,
        {"type": "integer", "minimum": 1},
    ),
    "a set": (
        (Set[int], ...),
        {"type": "array", "items": _INTEGER},
        {"type": "array", "items": _INTEGER, "uniqueItems": True},
    ),
    "other formats": (
        (Path, ...),
        {"type": "string"},
        {"type": "string", "format": "path"},
    ),
    "examples": (
        (str, Field(examples=["a"])),
        {"type": "string"},
        {"type": "string", "examples": ["a"]},
    ),
    "a discriminated union": (
        (Union[Cat, Dog], Field(discriminator="kind")),
        {"anyOf": [_ONE_CAT, _ONE_DOG]},
        {
            "oneOf": [_ONE_CAT, _ONE_DOG],
            "discriminator": {
                "propertyName": "kind",
                "mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"},
            },
        },
    ),
    "extra keys": (
        (Loose, ...),
        {
            "type": "object",
            "properties": {"size": _INTEGER},
            "required": ["size"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"size": _INTEGER},
            "required": ["size"],
            "additionalProperties": True,
        },
    ),
    "null in an enum": (
        (Literal["a", None], ...),
        {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
        {"enum": ["a", None]},
    ),
    "notes of a class or null": (
        (Optional[Stop], ...),
        {
            "description": "A place on the way.",
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string"},
                        "level": {"type": "string", "enum": ["low", "high"]},
                    },
                    "required": ["city", "level"],
                    "additionalProperties": False,
                },
                {"type": "null"},
            ],
        },
        {
            "anyOf": [
                {
                    "type": "object",
                    "description": "A place on the way.",
                    "properties": {
                        "city": {"type": "string"},
                        "level": {"type": "string", "enum": ["low", "high"]},
                    },
                    "required": ["city", "level"],
                    "additionalProperties": False,
                },
                {"type": "null"},
            ],
        },
    ),
}


def spread(node: Any, root: Any, around: Tuple[str, ...] = ()) -> Any:
    """Write references out, up to where they lead back."""
    if isinstance(node, list):
        return [spread(held, root, around) for held in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        pointer = node["$ref"]
        if pointer in around:
            return f"{len(around) - around.index(pointer)} up"
        target = root
        for step in pointer.split("/")[1:]:
            target = target[step]
        return spread(target, root, (*around, pointer))
    return {
        key: spread(held, root, around) for key, held in node.items() if key != "$defs"
    }


def without_titles(node: Any) -> Any:
    if isinstance(node, list):
        return [without_titles(held) for held in node]
    if not isinstance(node, dict):
        return node
    return {
        key: without_titles(held)
        for key, held in node.items()
        if key != "title" or not isinstance(held, str)
    }


def convert_both(**fields: Any) -> Tuple[Any, Any]:
    """Convert a model with *fields* in our way and in theirs."""
    model = pydantic.create_model("Model", **fields)
    ours = to_json_schema(model, OPENAI_STRICT)
    theirs = openai.pydantic_function_tool(model)["function"]["parameters"]
    return spread(ours, ours), spread(theirs, theirs)


@pytest.mark.parametrize("rule", AGREED)
def test_where_both_agree(rule: str) -> None:
    """Once references are written out, both give the same schema."""
    ours, theirs = convert_both(**AGREED[rule])

    assert ours == theirs


@pytest.mark.parametrize("name", DIFFERENT)
def test_where_they_differ(name: str) -> None:
    """The differences are those that are listed, and no others."""
    field, expected, expected_of_theirs = DIFFERENT[name]

    ours, theirs = convert_both(value=field)

    assert without_titles(ours["properties"]["value"]) == expected
    assert without_titles(theirs["properties"]["value"]) == expected_of_theirs


def test_any_value_differs() -> None:
    """What may be anything is spelled out by ours, and left open by theirs."""
    model = pydantic.create_model("Model", value=(Any, ...))

    ours = to_json_schema(model, OPENAI_STRICT)
    theirs = openai.pydantic_function_tool(model)["function"]["parameters"]

    assert ours["properties"]["value"] == {"$ref": "#/$defs/Any"}
    assert theirs["properties"]["value"] == {"title": "Value"}


@pytest.mark.parametrize("name", [*DIFFERENT, "any value"])
def test_the_page_lists_the_differences(name: str) -> None:
    """Each difference has a row of its own that says why."""
    assert f"\n| {name} | " in PAGE.read_text(encoding="utf-8")
