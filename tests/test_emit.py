"""Schemas in the vendors' dialects: what the case file does not pin."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional

import pytest

from aeye.budget import explain
from aeye.decode import decode_wire
from aeye.descriptor import (
    ANTHROPIC_STRICT,
    GOOGLE_NON_STRICT,
    GOOGLE_STRICT,
    LENIENT,
    OPENAI_STRICT,
    XAI_STRICT,
    FormatDescriptor,
)
from aeye.emit import to_json_schema
from aeye.schema import Schema

Json = Dict[str, Any]
TEXT: Json = {"type": "string"}


@dataclass
class Stop:
    city: str
    nights: int = 1
    hotel: Optional[str] = None


@dataclass
class Trip:
    stops: List[Stop]


def inside(node: Any, dialect: FormatDescriptor, **options: Any) -> Any:
    """Emit *node* as the one property of an object; give what became of it."""
    source = {"type": "object", "properties": {"x": node}, "required": ["x"]}
    if isinstance(node, dict) and "$defs" in node:
        source["$defs"] = node.pop("$defs")
    return to_json_schema(source, dialect, **options)["properties"]["x"]


def test_a_dataclass_in_openais_dialect() -> None:
    """The whole of a typical output schema."""

    emitted = to_json_schema(Trip, OPENAI_STRICT)

    stop = next(iter(emitted.get("$defs", {"": None}).values()))
    if stop is None:
        stop = emitted["properties"]["stops"]["items"]
    assert emitted["required"] == ["stops"]
    assert stop["required"] == ["city", "nights", "hotel"]
    assert stop["additionalProperties"] is False
    assert stop["properties"]["nights"]["description"].endswith("Default: 1.")
    assert {"type": "null"} in stop["properties"]["hotel"]["anyOf"]


def test_each_call_gives_a_dictionary_of_its_own() -> None:
    """Neither the source nor a later result changes with what a caller does."""
    source = {"type": "object", "properties": {"x": {"enum": ["a"], "default": "a"}}}
    schema = Schema(copy.deepcopy(source))
    first = to_json_schema(schema, LENIENT)
    kept = copy.deepcopy(first)

    first["properties"]["x"]["enum"].append("b")
    first["required"].append("x")

    assert to_json_schema(schema, LENIENT) == kept
    assert schema.json == Schema(source).json


def test_a_dialect_must_be_said() -> None:
    """There is no default dialect."""
    with pytest.raises(TypeError, match="descriptor"):
        to_json_schema(TEXT, None)  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize(
    ("node", "dialect", "expected"),
    [
        pytest.param(
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            OPENAI_STRICT,
            {"anyOf": [TEXT, {"type": "integer"}, {"type": "null"}]},
            id="null joins a union",
        ),
        pytest.param(
            {"type": ["string", "null"], "description": "D", "title": "T"},
            OPENAI_STRICT,
            {"anyOf": [TEXT, {"type": "null"}], "description": "D", "title": "T"},
            id="annotations stand outside of the null branch",
        ),
        pytest.param(
            {"type": ["string", "null"], "enum": ["a", "b", None]},
            GOOGLE_STRICT,
            {"type": ["string", "null"], "enum": ["a", "b", None]},
            id="without anyOf null joins the enum",
        ),
        pytest.param(
            {"anyOf": [{"enum": ["a", 1]}, {"type": "null"}]},
            GOOGLE_STRICT,
            {},
            id="a nullable without a type is any",
        ),
        pytest.param(
            {"const": "a"},
            GOOGLE_STRICT,
            {"type": "string", "enum": ["a"]},
            id="const is an enum of one",
        ),
        pytest.param(
            {"const": True},
            GOOGLE_STRICT,
            {"type": "boolean"},
            id="no enum of booleans for Google",
        ),
        pytest.param(
            {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 4.5},
            GOOGLE_STRICT,
            {"type": "integer", "minimum": 1, "maximum": 4},
            id="exclusive bounds of integers",
        ),
        pytest.param(
            {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
            GOOGLE_STRICT,
            {"type": "number"},
            id="other exclusive bounds are dropped",
        ),
        pytest.param(
            {"enum": ["a", 1, "b"]},
            OPENAI_STRICT,
            {
                "anyOf": [
                    {"type": "string", "enum": ["a", "b"]},
                    {"type": "integer", "enum": [1]},
                ]
            },
            id="an enum of several types is a union",
        ),
        pytest.param(
            {"enum": ["a", 1]}, LENIENT, {"enum": ["a", 1]}, id="but not in LENIENT"
        ),
        pytest.param(
            {"enum": [[1], {"a": 1}]},
            GOOGLE_STRICT,
            {},
            id="vendors take enums of scalars only",
        ),
        pytest.param(
            {"type": "string", "pattern": "^(?=a)"},
            OPENAI_STRICT,
            TEXT,
            id="a look-ahead is dropped",
        ),
        pytest.param(
            {"type": "string", "pattern": "[0-9]"},
            XAI_STRICT,
            TEXT,
            id="xAI would read it as anchored",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": True, "properties": {"a": TEXT}},
            XAI_STRICT,
            {
                "type": "object",
                "properties": {"a": TEXT},
                "required": [],
                "additionalProperties": True,
            },
            id="xAI takes silence for closed",
        ),
        pytest.param(
            {
                "type": "object",
                "properties": {"a": TEXT},
                "patternProperties": {"^x-": {"type": "integer"}},
                "additionalProperties": False,
            },
            LENIENT,
            {
                "type": "object",
                "properties": {"a": TEXT},
                "required": [],
                "patternProperties": {"^x-": {"type": "integer"}},
                "additionalProperties": False,
            },
            id="patternProperties stay in LENIENT",
        ),
        pytest.param(
            {
                "type": "object",
                "patternProperties": {"^x-": {"type": "integer"}},
                "additionalProperties": TEXT,
            },
            LENIENT,
            {
                "type": "object",
                "patternProperties": {"^x-": {"type": "integer"}},
                "additionalProperties": TEXT,
            },
            id="of a record too",
        ),
        pytest.param(
            {"type": "object", "patternProperties": {"^x-": {"type": "integer"}}},
            ANTHROPIC_STRICT,
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "key": {"type": "string", "pattern": "^x-"},
                        "value": {"type": "integer"},
                    },
                    "required": ["key", "value"],
                    "additionalProperties": False,
                },
            },
            id="the pattern of a key goes with the key",
        ),
        pytest.param(
            {"type": "object"}, LENIENT, {"type": "object"}, id="a bare object"
        ),
        pytest.param(
            {"type": "object"},
            GOOGLE_STRICT,
            {"type": "object", "additionalProperties": {}},
            id="a bare object is a map where silence loses it",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": TEXT, "never": False}},
            OPENAI_STRICT,
            {
                "type": "object",
                "properties": {"a": {"anyOf": [TEXT, {"type": "null"}]}},
                "required": ["a"],
                "additionalProperties": False,
            },
            id="a property that cannot be there is left out",
        ),
        pytest.param(
            {"type": "array", "items": {}, "maxItems": 0},
            XAI_STRICT,
            {"type": "array", "items": {"type": "null"}, "maxItems": 0},
            id="an array without items",
        ),
        pytest.param(
            {"type": "array", "prefixItems": [TEXT, TEXT], "items": TEXT},
            LENIENT,
            {"type": "array", "items": TEXT},
            id="a tuple of one shape is an array",
        ),
        pytest.param(
            {
                "type": "array",
                "prefixItems": [TEXT],
                "items": {"type": "integer"},
                "minItems": 3,
            },
            XAI_STRICT,
            {
                "type": "array",
                "prefixItems": [TEXT],
                "items": {"type": "integer"},
                "minItems": 3,
            },
            id="what follows a tuple is in items",
        ),
        pytest.param(
            {
                "type": "array",
                "prefixItems": [TEXT],
                "items": {"type": "integer"},
            },
            OPENAI_STRICT,
            {"type": "array", "items": {"anyOf": [TEXT, {"type": "integer"}]}},
            id="a tuple without an end has no last key",
        ),
        pytest.param(
            {
                "type": "array",
                "prefixItems": [TEXT, TEXT],
                "minItems": 1,
                "items": False,
            },
            OPENAI_STRICT,
            {
                "type": "object",
                "properties": {"0": TEXT, "1": {"anyOf": [TEXT, {"type": "null"}]}},
                "required": ["0", "1"],
                "additionalProperties": False,
            },
            id="an item that may be missing is null",
        ),
        pytest.param(
            {"type": "string", "format": "int32", "x-hint": 1, "examples": ["a"]},
            LENIENT,
            {"type": "string", "x-hint": 1, "examples": ["a"]},
            id="annotations pass in LENIENT, odd formats nowhere",
        ),
        pytest.param(
            {"type": "string", "x-hint": 1, "examples": ["a"], "deprecated": True},
            XAI_STRICT,
            TEXT,
            id="and not in strict dialects",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, "uniqueItems": True},
            LENIENT,
            {"type": "array", "items": TEXT, "uniqueItems": True},
            id="narrowing keywords pass in LENIENT",
        ),
        pytest.param(
            {"not": {"type": "null"}},
            LENIENT,
            {"not": {"type": "null"}},
            id="a check alone",
        ),
        pytest.param(
            {"anyOf": [{"not": {"type": "null"}}, {"type": "null"}]},
            LENIENT,
            {"anyOf": [{"not": {"type": "null"}}, {"type": "null"}]},
            id="a check that null would fail",
        ),
        pytest.param(
            {"description": "D"},
            OPENAI_STRICT,
            {"anyOf": [{"$ref": "#/$defs/Any"}], "description": "D"},
            id="nothing beside a reference to any",
        ),
        pytest.param(
            {"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 5}]},
            GOOGLE_STRICT,
            {"type": "integer", "minimum": 1, "maximum": 5},
            id="bounds of an allOf are put together",
        ),
        pytest.param(
            {"allOf": [{"type": "string", "pattern": "^A"}, {"pattern": "Z$"}]},
            OPENAI_STRICT,
            {"type": "string", "pattern": "^A"},
            id="the first of several patterns",
        ),
        pytest.param(
            {"anyOf": [{"type": "string"}, {"type": "string"}]},
            OPENAI_STRICT,
            TEXT,
            id="branches that are alike are one",
        ),
        pytest.param(
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            XAI_STRICT,
            {"oneOf": [TEXT, {"type": "integer"}]},
            id="oneOf stays where branches are plainly apart",
        ),
        pytest.param(
            {"oneOf": [{"type": "string", "format": "date"}, {"type": "string"}]},
            LENIENT,
            {"anyOf": [{"type": "string", "format": "date"}, TEXT]},
            id="and is anyOf where formats alone tell them apart",
        ),
        pytest.param(
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            GOOGLE_STRICT,
            {},
            id="no union for Google: any value, rather than a wrong one",
        ),
    ],
)
def test_nodes(node: Json, dialect: FormatDescriptor, expected: Json) -> None:
    """What one node becomes."""
    assert inside(node, dialect) == expected


def test_pieces_of_an_object_are_one_object() -> None:
    """Closed dialects cannot close the members of an allOf one by one."""
    source = {
        "allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"b": TEXT}}],
        "required": ["b"],
        "description": "Both.",
        "$defs": {
            "Base": {
                "type": "object",
                "properties": {"a": TEXT},
                "required": ["a"],
                "description": "Base.",
            }
        },
    }

    assert to_json_schema(source, ANTHROPIC_STRICT) == {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "required": ["a", "b"],
        "additionalProperties": False,
        "description": "Both.",
    }


def test_branches_take_what_stands_beside_them() -> None:
    """Properties beside a oneOf belong to every branch of it."""
    source = {
        "type": "object",
        "properties": {"id": TEXT},
        "required": ["id"],
        "oneOf": [
            {"properties": {"k": {"const": "a"}}, "required": ["k"]},
            {"properties": {"k": {"const": "b"}}, "required": ["k"]},
        ],
    }

    emitted = to_json_schema(source, OPENAI_STRICT)

    assert emitted == {
        "anyOf": [
            {
                "type": "object",
                "properties": {"id": TEXT, "k": {"type": "string", "const": tag}},
                "required": ["id", "k"],
                "additionalProperties": False,
            }
            for tag in ("a", "b")
        ]
    }


def test_choices_of_required_keys_stay_checks() -> None:
    """An object is not repeated for each set of keys it may have."""
    source = {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }

    assert "anyOf" not in to_json_schema(source, OPENAI_STRICT)
    assert to_json_schema(source, LENIENT)["anyOf"] == source["anyOf"]


NODE = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "next": {"$ref": "#/$defs/Node", "description": "The next one."},
    },
    "required": ["name"],
}
LIST = {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}}


def test_a_root_that_is_a_reference_is_its_target() -> None:
    """The root is an object, and refers to itself as the root."""
    assert to_json_schema(LIST, OPENAI_STRICT) == {
        "type": "object",
        "properties": {
            "name": TEXT,
            "next": {
                "anyOf": [{"$ref": "#"}, {"type": "null"}],
                "description": "The next one.",
            },
        },
        "required": ["name", "next"],
        "additionalProperties": False,
    }


def test_a_cycle_ends_in_a_placeholder() -> None:
    """Where there is no recursion, one more level of the shape, named in words."""
    dialect = replace(ANTHROPIC_STRICT, id="flat", any_encoding="flat")

    emitted = to_json_schema({**LIST, "title": "Chain"}, dialect)

    assert emitted["properties"]["next"] == {
        "type": "object",
        "additionalProperties": True,
        "description": "The next one. Recursive: the same shape as Chain.",
    }


def test_a_required_null_of_the_root_for_google() -> None:
    """Null needs a type to stand beside, and a reference has none."""
    source = {
        "type": "object",
        "properties": {"up": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["up"],
    }

    assert to_json_schema(source, GOOGLE_STRICT)["properties"]["up"] == {
        "type": ["object", "null"],
        "additionalProperties": True,
        "description": "Recursive: the same shape as the root.",
    }


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"type": "string"}, {"type": "string"}),
        ({"type": "array", "prefixItems": [TEXT]}, {"type": "array"}),
        ({"type": "array", "items": TEXT}, {"type": "array", "items": TEXT}),
        (
            {"type": "array", "items": {"type": "array", "items": TEXT}},
            {"type": "array", "items": {"type": "array"}},
        ),
        ({"enum": ["a", 1]}, {"anyOf": [TEXT, {"type": "integer"}]}),
    ],
)
def test_placeholders_keep_one_level(target: Json, expected: Json) -> None:
    """A placeholder has the outline of what it stands for."""
    dialect = replace(ANTHROPIC_STRICT, id="flat", any_encoding="flat")
    loop = {"type": "object", "properties": {"d": {"$ref": "#/$defs/D"}}}
    source = {
        "type": "object",
        "properties": {"d": {"$ref": "#/$defs/D"}},
        "required": ["d"],
        "$defs": {"D": {"anyOf": [target, {**loop, "required": ["d"]}]}},
    }

    emitted = to_json_schema(source, dialect)

    inner = emitted["$defs"]["D"]["anyOf"][-1]["properties"]["d"]
    first = inner["anyOf"][0]
    if "enum" in target:
        assert {"type": "object", "additionalProperties": True} in inner["anyOf"]
    elif "items" in expected and "items" not in first:
        assert first == {"type": "array"}  # a branch is a level already
    else:
        assert first == expected or first == {"type": expected["type"]}


def test_definitions_are_written_once_and_named_plainly() -> None:
    """Names need no escaping, do not clash, and leave ``Any`` to any value."""
    definition = {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}
    source = {
        "type": "object",
        "properties": {
            "one": {"$ref": "#/$defs/Any"},
            "two": {"$ref": "#/$defs/Any"},
            "three": {"$ref": "#/$defs/Any_"},
            "four": {},
        },
        "required": ["one", "two", "three", "four"],
        "$defs": {"Any": definition, "Any_": definition, "Unused": TEXT},
    }

    emitted = to_json_schema(source, OPENAI_STRICT)

    refs = [held["$ref"] for held in emitted["properties"].values()]
    assert refs[0] == refs[1] == "#/$defs/Any_"
    assert refs[2] not in refs[:2]
    assert refs[3] == "#/$defs/Any"
    assert set(emitted["$defs"]) == {ref.split("/")[-1] for ref in refs}


def test_a_described_reference_is_written_out() -> None:
    """Nothing may stand beside a reference; a small definition is repeated."""
    source = {
        "type": "object",
        "properties": {"home": {"$ref": "#/$defs/A", "description": "Home."}},
        "required": ["home"],
        "$defs": {
            "A": {"type": "object", "properties": {"l": TEXT}, "required": ["l"]}
        },
    }

    assert to_json_schema(source, OPENAI_STRICT)["properties"]["home"] == {
        "type": "object",
        "properties": {"l": TEXT},
        "required": ["l"],
        "additionalProperties": False,
        "description": "Home.",
    }


def test_a_described_recursive_reference_is_wrapped() -> None:
    """What cannot be written out goes into an anyOf of one."""
    source = copy.deepcopy(LIST)
    source["$defs"]["Node"]["required"] = ["name", "next"]

    assert to_json_schema(source, LENIENT)["properties"]["next"] == {
        "anyOf": [{"$ref": "#"}],
        "description": "The next one.",
    }
    assert to_json_schema(source, GOOGLE_STRICT)["properties"]["next"] == {"$ref": "#"}


def test_written_out_definitions_are_bounded() -> None:
    """Without $defs a small schema may stand for a huge one; it is cut short."""
    definitions = {
        f"D{n}": {
            "type": "object",
            "properties": {
                "a": {"$ref": f"#/$defs/D{n + 1}"},
                "b": {"$ref": f"#/$defs/D{n + 1}"},
            },
        }
        for n in range(60)
    }
    source = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/D0"}},
        "$defs": {**definitions, "D60": TEXT},
    }

    assert len(str(to_json_schema(source, GOOGLE_STRICT))) < 1000
    assert len(str(to_json_schema(source, OPENAI_STRICT))) < 30000


def test_conjunctions_without_end_are_bounded() -> None:
    """Pieces that ask for ever more pieces are left apart at some point."""
    source = {
        "allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
        "$defs": {
            name: {
                "type": "object",
                "properties": {
                    "x": {"$ref": f"#/$defs/{name}"},
                    "y": {"$ref": f"#/$defs/{name}"},
                },
            }
            for name in "AB"
        },
    }

    assert to_json_schema(source, LENIENT)["type"] == "object"


def chain(node: Any, length: int = 1200) -> Json:
    """Definitions, each made of the next by *node*."""
    definitions = {
        f"D{n}": node(f"#/$defs/D{n + 1}", f"c{n}") for n in range(length - 1)
    }
    definitions[f"D{length - 1}"] = TEXT
    return {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/D0", "default": "c"}},
        "$defs": definitions,
    }


HOSTILE = {
    "objects": lambda ref, name: {
        "type": "object",
        "properties": {"x": {"$ref": ref}},
    },
    "described": lambda ref, name: {
        "type": "object",
        "properties": {"x": {"$ref": ref, "description": "D"}},
        "required": ["x"],
    },
    "choices": lambda ref, name: {"anyOf": [{"const": name}, {"$ref": ref}]},
    "nulls": lambda ref, name: {"oneOf": [{"type": "null"}, {"$ref": ref}]},
    "lists": lambda ref, name: {"type": "array", "items": {"$ref": ref}},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_long_chains_of_definitions(kind: str) -> None:
    """However many definitions lie in a row, there is no recursion error."""
    schema = Schema(chain(HOSTILE[kind]))

    for dialect in (LENIENT, OPENAI_STRICT, GOOGLE_STRICT):
        emitted = to_json_schema(schema, dialect)
        reasons = list(explain(schema, dialect))

        assert emitted["type"] == "object"
        assert all(reason.path.startswith("$") for reason in reasons)
        assert decode_wire(schema, {"x": "c"}, dialect) == {"x": "c"}


def test_pieces_made_of_pieces_are_bounded() -> None:
    """Each definition asks for the next one twice: 2**40 pieces, if all were put."""
    definitions: Json = {
        f"D{n}": {"allOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 2} for n in range(40)
    }
    definitions["D40"] = {"type": "object", "properties": {"a": TEXT}}
    source = {"$ref": "#/$defs/D0", "$defs": definitions}

    assert len(str(to_json_schema(source, LENIENT))) < 10_000


def test_deep_schemas_end_in_any() -> None:
    """Nesting that nobody writes by hand costs no recursion error."""
    deep: Json = TEXT
    for _ in range(90):
        deep = {"type": "array", "items": deep}

    emitted = to_json_schema({"type": "object", "properties": {"d": deep}}, LENIENT)

    assert emitted["$defs"].keys() == {"Any"}


def test_the_cap_lists_every_value() -> None:
    """Over the cap an enum is a description, at it still an enum."""
    values = [f"v{n}" for n in range(41)]

    over = inside({"enum": values, "description": "Pick."}, GOOGLE_STRICT)
    at = inside({"enum": values[:40]}, GOOGLE_STRICT)

    assert over == {
        "type": "string",
        "description": f"Pick. One of these 41 values: {', '.join(values)}.",
    }
    assert at == {"type": "string", "enum": values[:40]}


@pytest.mark.parametrize(
    ("values", "dialect", "expected"),
    [
        (range(41), GOOGLE_STRICT, {"type": "number"}),
        ([*range(41), "x"], GOOGLE_STRICT, {}),
        (
            [*range(41), "x"],
            GOOGLE_NON_STRICT,
            {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        ),
    ],
)
def test_the_cap_keeps_a_type(
    values: Any, dialect: FormatDescriptor, expected: Json
) -> None:
    """What an enum's values have in common is kept."""
    emitted = inside({"enum": list(values)}, dialect)

    assert emitted.pop("description").startswith("One of these")
    assert emitted == expected


def test_google_says_keys_in_words() -> None:
    """propertyNames is a 400 for Google; the description says it."""
    by_name = {"type": "object", "propertyNames": {"enum": ["en", "fr"]}}
    by_pattern = {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}
    by_size = {"type": "object", "propertyNames": {"maxLength": 3}}

    for dialect in (GOOGLE_STRICT, GOOGLE_NON_STRICT):
        assert inside(dict(by_name), dialect)["description"] == "Keys: en, fr."
        assert (
            inside(dict(by_pattern), dialect)["description"] == "Keys match ^[a-z]+$."
        )
        assert "description" not in inside(dict(by_size), dialect)


def test_defaults_are_said_where_they_cannot_be_emitted() -> None:
    """A default that is none of the values is not worth saying."""
    good = {"type": "string", "default": "user", "description": "Role."}
    bad = {"type": "string", "default": 5}

    assert inside(good, OPENAI_STRICT)["description"] == 'Role. Default: "user".'
    assert inside(good, ANTHROPIC_STRICT)["default"] == "user"
    assert inside(bad, OPENAI_STRICT) == TEXT


def test_what_is_dropped_can_be_said() -> None:
    """``describe_dropped`` puts constraints without a keyword into words."""
    source = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 3},
            "low": {"type": "number", "minimum": 1},
            "high": {"type": "number", "maximum": 1},
            "open": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "s": {"type": "string", "minLength": 1, "maxLength": 3, "format": "uri"},
            "b": {"type": "string", "minLength": 1, "contentEncoding": "base64"},
            "l": {"type": "array", "items": TEXT, "maxItems": 5, "uniqueItems": True},
            "e": {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2},
            "p": {"type": "string", "pattern": r"\bx"},
        },
        "minProperties": 1,
        "required": ["n", "low", "high", "open", "s", "b", "l", "e", "p"],
    }

    emitted = to_json_schema(source, OPENAI_STRICT, describe_dropped=True)

    assert emitted["description"] == "At least 1 key."
    assert {k: v["description"] for k, v in emitted["properties"].items()} == {
        "n": "Between 1 and 10. A multiple of 3.",
        "low": "At least 1.",
        "high": "At most 1.",
        "open": "Greater than 0. Less than 1.",
        "s": "1 to 3 characters. Format: uri.",
        "b": "At least 1 character. Encoding: base64.",
        "l": "At most 5 items. No item twice.",
        "e": "Exactly 2 items.",
        "p": r"Matches the pattern \bx.",
    }


def test_schemas_inside_of_checks_pass_only_without_references() -> None:
    """A definition may be wider on the wire, and ``not`` of it narrower."""
    source = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/D"}},
        "required": ["a"],
        "not": {"properties": {"a": {"$ref": "#/$defs/D"}}},
        "if": {"required": ["a"]},
        "$defs": {"D": TEXT},
    }

    emitted = to_json_schema(source, LENIENT)

    assert "not" not in emitted
    assert emitted["if"] == {"required": ["a"]}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (False, {"not": {}}),
        (True, {"anyOf": [{"$ref": "#/$defs/Any"}]}),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, {"not": {}}),
        ({"enum": [1], "type": "string"}, {"not": {}}),
        ({"enum": [None]}, {"type": "null"}),
        ({"type": "null"}, {"type": "null"}),
        ({"enum": ["a", "b"], "const": "b"}, {"type": "string", "const": "b"}),
        ({"enum": [1.0, 2], "type": "number"}, {"type": "number", "enum": [1.0, 2]}),
        ({"enum": [1], "type": "number"}, {"type": "number", "enum": [1]}),
        ({"enum": [1, 1.0, True]}, {"enum": [1, True]}),
        ({"type": ["integer", "number"]}, {"type": "number"}),
    ],
)
def test_odd_roots(source: Any, expected: Json) -> None:
    """Any, nothing, null and constants in LENIENT."""
    emitted = to_json_schema(source, LENIENT)

    if source is True:
        assert emitted["$ref"] == "#/$defs/Any"
    else:
        assert emitted == expected
