"""What schemas mean: pieces put together, types found, cycles broken."""

from __future__ import annotations

from typing import Any, Dict

import pytest

from aeye.descriptor import ANTHROPIC_STRICT, GOOGLE_STRICT, LENIENT, OPENAI_STRICT
from aeye.emit import to_json_schema
from aeye.emit_merge import merge_flat
from aeye.emit_node import AllOf, Never, Null, Object, Record, Scalar, remember
from aeye.emit_read import graph_of
from aeye.schema import Schema

Json = Dict[str, Any]
TEXT: Json = {"type": "string"}


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ({"minimum": 1}, {"minimum": 2}, {"minimum": 2}),
        ({"maxItems": 1}, {"maxItems": 2}, {"maxItems": 1}),
        ({"exclusiveMaximum": 1}, {"exclusiveMaximum": 2}, {"exclusiveMaximum": 1}),
        ({"uniqueItems": False}, {"uniqueItems": True}, {"uniqueItems": True}),
        ({"multipleOf": 4}, {"multipleOf": 6}, {"multipleOf": 12}),
        ({"multipleOf": 0.5}, {"multipleOf": 0.3}, None),
        ({"enum": [1, 2]}, {"enum": [2, True]}, {"enum": [2]}),
        ({"enum": [1]}, {"enum": [True]}, False),
        ({"const": 1}, {"const": True}, None),
        ({"const": 1}, {"const": 1.0}, {"const": 1}),
        ({"type": ["string", "null"]}, {"type": "null"}, {"type": "null"}),
        ({"type": ["string", "number"]}, {"type": ["integer", "string"]},
         {"type": ["string", "integer"]}),
        ({"type": "string"}, {"type": "null"}, False),
        ({"format": "date"}, {"format": "time"}, None),
        ({"not": {}}, {"not": {}}, {"not": {}}),
        ({"required": ["a"]}, {"required": ["b", "a"]}, {"required": ["a", "b"]}),
        ({"title": "A"}, {"title": "B"}, {"title": "A"}),
        (False, {}, False),
        ({"items": TEXT}, {"items": True}, {"items": TEXT}),
        ({"items": TEXT}, {"items": {"minLength": 1}},
         {"items": {"allOf": [TEXT, {"minLength": 1}]}}),
        ({"minItems": 1}, {"items": TEXT}, {"minItems": 1, "items": TEXT}),
        ({"items": TEXT}, {"minItems": 1}, {"items": TEXT, "minItems": 1}),
        ({"prefixItems": [TEXT]}, {"items": TEXT}, None),
        ({"prefixItems": [TEXT]}, {"prefixItems": [TEXT]}, {"prefixItems": [TEXT]}),
        ({"patternProperties": {"a": TEXT}}, {"properties": {"b": TEXT}}, None),
    ],
)  # fmt: skip
def test_two_schemas_as_one(one: Any, two: Any, expected: Any) -> None:
    """False where nothing fits both, None where one schema cannot say it."""
    assert merge_flat(one, two) == expected


def test_objects_as_one() -> None:
    """A property that one side does not name is what that side says of other keys."""
    closed = {"properties": {"a": TEXT, "b": TEXT}, "additionalProperties": False}
    tailed = {
        "properties": {"b": {"minLength": 1}, "c": True},
        "additionalProperties": {"maxLength": 5},
    }

    assert merge_flat(closed, tailed) == {
        "properties": {
            "a": {"allOf": [TEXT, {"maxLength": 5}]},
            "b": {"allOf": [TEXT, {"minLength": 1}]},
            "c": False,
        },
        "additionalProperties": False,
    }
    both = merge_flat({"additionalProperties": True}, {"additionalProperties": True})
    assert both["additionalProperties"] is True


def test_pieces_that_cannot_fit_together() -> None:
    """Nothing fits them all, or they stay apart."""
    contradiction = {"allOf": [{"type": "string"}, {"type": "null"}]}
    forbidden = {"allOf": [TEXT, False]}
    apart = {"type": "string", "pattern": "^a", "allOf": [{"pattern": "z$"}]}
    hidden = {
        "allOf": [
            {"type": "object", "properties": {"a": TEXT}},
            {"properties": {"b": TEXT}, "unevaluatedProperties": False},
        ]
    }

    assert isinstance(graph_of(Schema(contradiction)).root, Never)
    assert isinstance(graph_of(Schema(forbidden)).root, Never)
    assert isinstance(graph_of(Schema(apart)).root, AllOf)
    assert isinstance(graph_of(Schema(hidden)).root, AllOf)


def test_pieces_that_say_nothing_vanish() -> None:
    """True and what is left of it are no pieces."""
    one = {"allOf": [True, {"type": "string", "minLength": 1}], "title": "T"}
    two = {"allOf": [{"not": {"const": 1}}, {"not": {"const": 2}}, {"type": "string"}]}
    kept = graph_of(Schema(two)).root

    assert to_json_schema(one, LENIENT) == {**TEXT, "minLength": 1, "title": "T"}
    assert isinstance(kept, AllOf) and len(kept.members) == 3


def test_several_choices_at_once() -> None:
    """One choice is made inside of the other."""
    source = {
        "allOf": [
            {"anyOf": [{"minimum": 1}, {"maximum": 0}]},
            {"anyOf": [{"multipleOf": 2}, {"multipleOf": 3}]},
        ],
        "type": "integer",
    }

    outer = to_json_schema(source, LENIENT)["anyOf"]

    assert [each["anyOf"] for each in outer] == [
        [
            {"type": "integer", "minimum": 1, "multipleOf": 2},
            {"type": "integer", "minimum": 1, "multipleOf": 3},
        ],
        [
            {"type": "integer", "maximum": 0, "multipleOf": 2},
            {"type": "integer", "maximum": 0, "multipleOf": 3},
        ],
    ]


def test_branches_that_cannot_be_are_left_out() -> None:
    """So are null branches, which make the rest nullable."""
    source = {
        "type": ["string", "null"],
        "anyOf": [{"minLength": 1}, {"type": "integer"}, {"type": "null"}],
    }
    only_null = {"anyOf": [{"type": "null"}, False]}
    nothing = {"anyOf": [False, {"not": True}]}

    assert to_json_schema(source, LENIENT) == {
        "anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]
    }
    assert isinstance(graph_of(Schema(only_null)).root, Null)
    assert isinstance(graph_of(Schema(nothing)).root, Never)


def test_a_type_array_is_one_branch_per_type() -> None:
    """Each keyword goes where it applies, null to the end."""
    source = {
        "type": ["string", "array", "null"],
        "minLength": 1,
        "items": TEXT,
        "maxItems": 3,
    }

    assert to_json_schema(source, LENIENT) == {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": TEXT, "maxItems": 3},
            {"type": "null"},
        ]
    }


def test_keys_that_are_required_but_no_properties() -> None:
    """They are what a pattern or the tail says, and are declared on the wire."""
    patterned = {
        "type": "object",
        "required": ["x-a", "b"],
        "patternProperties": {"^x-": TEXT, r"\p{L}": TEXT},
        "additionalProperties": {"type": "integer"},
    }
    twice = {
        "type": "object",
        "required": ["x-a"],
        "patternProperties": {"^x-": TEXT, "a$": TEXT},
    }
    impossible = {
        "type": "object",
        "properties": {"a": TEXT},
        "required": ["a", "b"],
        "additionalProperties": False,
    }

    assert to_json_schema(patterned, GOOGLE_STRICT)["properties"] == {
        "x-a": TEXT,
        "b": {"type": "integer"},
    }
    assert to_json_schema(twice, GOOGLE_STRICT)["properties"] == {"x-a": {}}
    assert to_json_schema(impossible, OPENAI_STRICT)["required"] == ["a"]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"type": "object"}, Record),
        ({"type": "object", "additionalProperties": False}, Object),
        ({"type": "object", "properties": {}}, Object),
        ({"type": "object", "properties": {}, "additionalProperties": TEXT}, Record),
        ({"type": "object", "propertyNames": {"pattern": "a"}}, Record),
        ({"type": "object", "required": ["a"]}, Object),
        ({"minLength": 1}, Scalar),
    ],
)
def test_kinds(source: Json, kind: type) -> None:
    """A map is an object whose keys are not known."""
    assert isinstance(graph_of(Schema(source)).root, kind)


def test_definitions_that_are_other_names() -> None:
    """A reference goes to what is really defined, with notes on the way."""
    source = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}},
        "required": ["a", "b"],
        "$defs": {
            "A": {"$ref": "#/$defs/B", "description": "Alias."},
            "B": {"type": "object", "properties": {"b": {"$ref": "#/$defs/A"}}},
        },
    }

    emitted = to_json_schema(source, LENIENT)

    assert emitted["$defs"].keys() == {"B"}
    assert emitted["properties"]["b"] == {"$ref": "#/$defs/B"}
    assert emitted["properties"]["a"] == {
        "anyOf": [{"$ref": "#/$defs/B"}],
        "description": "Alias.",
    }


def test_a_definition_that_is_any_is_no_reference() -> None:
    """Any value is spelled in place, whatever it was called."""
    source = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Json"}},
        "required": ["a"],
        "$defs": {"Json": {"description": "Any."}},
    }

    assert to_json_schema(source, GOOGLE_STRICT)["properties"]["a"] == {
        "description": "Any."
    }


def test_null_through_a_reference() -> None:
    """A definition that admits null is not made nullable again."""
    source = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}},
        "$defs": {
            "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "integer"}]},
            "B": {"type": ["string", "null"]},
            "C": {"allOf": [{"$ref": "#/$defs/B"}, {"not": {"const": 1}}]},
        },
    }

    assert to_json_schema(source, OPENAI_STRICT)["properties"] == {
        "a": {"$ref": "#/$defs/A"},
        "b": {"$ref": "#/$defs/B"},
    }


def test_null_is_added_once() -> None:
    """A reference to null, or to what admits it, needs no null beside it."""
    either = {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}
    source = {
        "type": "object",
        "properties": {
            "n": either,
            "m": {"anyOf": [{"$ref": "#/$defs/M"}, {"type": "null"}]},
        },
        "required": ["n", "m"],
        "$defs": {"N": {"type": "null"}, "M": {"type": ["string", "null"]}},
    }

    assert to_json_schema(source, GOOGLE_STRICT)["properties"] == {
        "n": {"type": "null"},
        "m": {"type": ["string", "null"]},
    }
    assert to_json_schema(source, OPENAI_STRICT)["properties"] == {
        "n": {"$ref": "#/$defs/N"},
        "m": {"$ref": "#/$defs/M"},
    }


def test_pieces_of_a_recursive_schema_end() -> None:
    """A definition is put together with itself a few times, and then stands apart."""
    source = {
        "$ref": "#/$defs/A",
        "$defs": {
            "A": {
                "type": "object",
                "properties": {
                    "x": {"allOf": [{"$ref": "#/$defs/A"}, {"required": ["x"]}]},
                    "y": {"allOf": [{"$ref": "#/$defs/A"}, {"required": ["y"]}]},
                },
            }
        },
    }

    assert len(str(to_json_schema(source, LENIENT))) < 50_000
    assert to_json_schema(source, ANTHROPIC_STRICT)["type"] == "object"


def test_derived_results_are_bounded() -> None:
    """A schema that is asked for ever more things does not grow without end."""
    schema = Schema(TEXT)

    for n in range(1000):
        assert remember(schema, ("test", n), lambda n=n: [n]) == [n]

    assert len(schema.cache) <= 256
