"""What is found in a value, and in which words a model hears of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import time
from typing import Any, Dict, List, Optional, Union

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeye.errors import SchemaError
from aeye.schema import Finding, Schema
from aeye.schema_format import CHECKERS
from aeye.schema_valid import quick_check

CAT = {"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}}
DOG = {"properties": {"kind": {"enum": ["dog"]}, "bark": {"type": "boolean"}}}
PETS = {
    "anyOf": [
        {"type": "object", **CAT, "required": ["kind", "lives"]},
        {"type": "object", **DOG, "required": ["kind"]},
        {"type": "null"},
    ]
}

# schema, value, findings as (path, message)
CASES: dict[str, tuple[Any, Any, list[tuple[str, str]]]] = {
    "type": ({"type": "integer"}, "a", [("", "expected integer, got string")]),
    "types": (
        {"type": ["integer", "null"]},
        [],
        [("", "expected integer or null, got array")],
    ),
    "true is no number": (
        {"type": "number"},
        True,
        [("", "expected number, got boolean")],
    ),
    "null": ({"type": "object"}, None, [("", "expected object, got null")]),
    "fraction": ({"type": "integer"}, 1.5, [("", "expected integer, got number")]),
    "whole float": ({"type": "integer"}, 1.0, []),
    "path": (
        {"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}}},
        {"a": [{}, {"b": 1}]},
        [("a.1.b", "expected string, got integer")],
    ),
    "enum": ({"enum": ["a", 1, None]}, "b", [("", 'expected one of "a", 1, null')]),
    "enum of one": ({"enum": ["a"]}, "b", [("", 'expected "a"')]),
    "true is not 1": ({"enum": [1]}, True, [("", "expected 1")]),
    "long enum": (
        {"enum": [f"value-{n}" for n in range(100)]},
        "b",
        [
            (
                "",
                "expected one of "
                + ", ".join(f'"value-{n}"' for n in range(10))
                + " and 90 more",
            )
        ],
    ),
    "const": ({"const": {"a": 1}}, {}, [("", 'expected {"a": 1}')]),
    "only the type": (
        {"type": "string", "enum": ["a"], "minLength": 1},
        1,
        [("", "expected string, got integer")],
    ),
    "required": (
        {"type": "object", "required": ["a", "b", "c"]},
        {"b": 1},
        [("", 'missing required properties "a", "c"')],
    ),
    "one required": (
        {"properties": {"x": {"required": ["a"]}}},
        {"x": {}},
        [("x", 'missing required property "a"')],
    ),
    "additional": (
        {"properties": {"a": {}, "b": {}}, "additionalProperties": False},
        {"c": 1, "a": 2},
        [("", 'unexpected property "c"; allowed: "a", "b"')],
    ),
    "several additional": (
        {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {"^x": True},
        },
        {"c": 1, "d": 1, "x1": 1},
        [("", 'unexpected properties "c", "d"')],
    ),
    "typed tail": (
        {"additionalProperties": {"type": "string"}},
        {"a": 1},
        [("a", "expected string, got integer")],
    ),
    "lengths": (
        {"items": {"minLength": 2, "maxLength": 3}},
        ["a", "abcd", "é😀"],
        [
            ("0", "expected at least 2 characters, got 1"),
            ("1", "expected at most 3 characters, got 4"),
        ],
    ),
    "items": ({"minItems": 1}, [], [("", "expected at least 1 item, got 0")]),
    "many items": ({"maxItems": 1}, [1, 2], [("", "expected at most 1 item, got 2")]),
    "properties": (
        {"minProperties": 1},
        {},
        [("", "expected at least 1 property, got 0")],
    ),
    "many properties": (
        {"maxProperties": 2},
        {"a": 1, "b": 1, "c": 1},
        [("", "expected at most 2 properties, got 3")],
    ),
    "bounds": (
        {"items": {"minimum": 1, "exclusiveMaximum": 3}},
        [0, 3, 2],
        [("0", "expected at least 1"), ("1", "expected less than 3")],
    ),
    "more bounds": (
        {"items": {"exclusiveMinimum": 1, "maximum": 3}},
        [1, 4, 2],
        [("0", "expected more than 1"), ("1", "expected at most 3")],
    ),
    "multiple": (
        {"items": {"multipleOf": 0.1}},
        [0.3, 0.35, 1e308, 10**400, "x"],
        [("1", "expected a multiple of 0.1")],
    ),
    "pattern": (
        {"pattern": r"^\d+$"},
        "a",
        [("", r"expected text that matches ^\d+$")],
    ),
    "format": (
        {"format": "date"},
        "1.5.2024",
        [("", "expected a date like 2024-05-31")],
    ),
    "format without example": (
        {"format": "ipv4"},
        "1",
        [("", "expected an ipv4")],
    ),
    "format of no text": ({"format": "date"}, 5, []),
    "unknown format": ({"format": "colour"}, "x", []),
    "unique": (
        {"items": {"uniqueItems": True}},
        [[1, True, "1"], [{"a": [1]}, {"a": [1.0]}], [[], {}]],
        [("1", "expected no item twice")],
    ),
    "not unique": ({"uniqueItems": False}, [1, 1], []),
    "contains": (
        {"contains": {"const": 1}},
        [2],
        [("", "no item is of the kind that must be among them")],
    ),
    "names": (
        {"propertyNames": {"pattern": "^[a-z]+$"}},
        {"a": 1, "B": 2},
        [("", 'property name "B": expected text that matches ^[a-z]+$')],
    ),
    "a property called propertyNames": (
        {"properties": {"propertyNames": {"type": "string"}}},
        {"propertyNames": 1},
        [("propertyNames", "expected string, got integer")],
    ),
    "dependent": (
        {"dependentRequired": {"a": ["b", "c"], "x": ["y"]}},
        {"a": 1, "b": 2},
        [("", 'with "a" there must also be "c"')],
    ),
    "dependent schema": (
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {"a": 1},
        [("", 'missing required property "b"')],
    ),
    "not": ({"not": {"type": "null"}}, None, [("", "is what the schema rules out")]),
    "never": (
        {"properties": {"a": False}},
        {"a": 1},
        [("a", "nothing is allowed here")],
    ),
    "never at all": (False, 1, [("", "nothing is allowed here")]),
    "condition": (
        {
            "if": {"properties": {"a": {"const": 1}}},
            "then": {"required": ["b"]},
            "else": {"required": ["c"]},
        },
        {"a": 1},
        [("", 'missing required property "b"')],
    ),
    "tuple": (
        {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
        [1, "a"],
        [
            ("0", "expected string, got integer"),
            ("1", "expected integer, got string"),
        ],
    ),
    "closed tuple": (
        {"prefixItems": [{}], "items": False},
        [1, 2, 3],
        [("", "expected at most 1 item, got 3")],
    ),
    "tuple of no list": ({"prefixItems": [{"type": "string"}], "items": {}}, "x", []),
    "unevaluated": (
        {
            "$ref": "#/$defs/a",
            "properties": {"b": {}},
            "unevaluatedProperties": False,
            "$defs": {"a": {"properties": {"a": {}}}},
        },
        {"a": 1, "b": 2},
        [],
    ),
    "what the validator says best": (
        {"contains": {"const": 1}, "maxContains": 1},
        [1, 1],
        [("", "Too many items match the given schema (expected at most 1)")],
    ),
    "reference": (
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "string"}}},
        ["a", 1],
        [("1", "expected string, got integer")],
    ),
    "reference to never": (
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": False}},
        [1],
        [("0", "nothing is allowed here")],
    ),
    "a property called $id beside a reference": (
        {
            "properties": {"$id": {"type": "string"}, "a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"type": "string"}},
        },
        {"a": 1, "$id": "x"},
        [("a", "expected string, got integer")],
    ),
    "same finding twice": (
        {"allOf": [{"type": "string"}, {"type": "string"}]},
        1,
        [("", "expected string, got integer")],
    ),
    "union of types": (
        PETS,
        5,
        [("", "expected object or null, got integer")],
    ),
    "union by constant": (
        PETS,
        {"kind": "dog", "bark": 1},
        [("bark", "expected boolean, got integer")],
    ),
    "union without its constant": (
        PETS,
        {"kind": "cow"},
        [("kind", 'expected one of "cat", "dog"')],
    ),
    "union by closest fit": (
        {
            "anyOf": [
                {"type": "object", "required": ["a", "b"]},
                {
                    "type": "object",
                    "required": ["a"],
                    "properties": {"a": {"type": "null"}},
                },
            ]
        },
        {"a": 1},
        [("", 'missing required property "b"')],
    ),
    "union in a union": (
        {"anyOf": [{"anyOf": [{"type": "string"}, {"const": 1}]}, {"type": "null"}]},
        [],
        [("", "expected string, 1 or null, got array")],
    ),
    "union of anything": (
        {"anyOf": [{"not": {}}, False]},
        1,
        [("", "integer fits none of the alternatives")],
    ),
    "union with references": (
        {
            "items": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "boolean"}]},
            "$defs": {
                "a": {"oneOf": [{"type": "string"}, {"type": ["null", "array"]}]}
            },
        },
        [1],
        [("0", "expected string, null, array or boolean, got integer")],
    ),
    "only one": (
        {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
        3,
        [("", "fits more than one of the alternatives, must fit one")],
    ),
    "one branch is meant": (
        {"oneOf": [{"type": "string", "minLength": 2}, {"type": "null"}]},
        "a",
        [("", "expected at least 2 characters, got 1")],
    ),
    "NaN": (
        {},
        {"a": [float("nan")]},
        [("a.0", "NaN is not JSON; give a finite number")],
    ),
    "infinity": (
        {},
        float("-inf"),
        [("", "-Infinity is not JSON; give a finite number")],
    ),
    "no JSON": ({}, [(1,)], [("0", "tuple is not JSON")]),
    "number as a key": ({}, {1: 2}, [("", "keys must be strings, got 1")]),
}


@dataclass
class Deep:
    below: Optional[Deep]


def told(schema: Schema, value: Any) -> list[tuple[str, str]]:
    return [(finding.path, finding.message) for finding in schema.find(value)]


@pytest.mark.parametrize("case", CASES)
def test_findings(case: str) -> None:
    """A model is told what was expected and what it gave, in one short line."""
    source, value, expected = CASES[case]

    assert told(Schema(source), value) == expected


def test_finding_prints_as_a_line() -> None:
    """A finding prints with its path, and shows values that are short."""
    assert str(Finding("a.b", "is wrong", "x")) == "- a.b: is wrong (input: x)"
    assert str(Finding("a", "is wrong", False)) == "- a: is wrong (input: false)"
    assert str(Finding("", "is wrong")) == "- is wrong"


def test_finding_holds_short_values_only() -> None:
    """Long text is cut; objects, lists, null and huge numbers are left out."""
    schema = Schema({"items": {"type": "boolean"}})

    values = [f.value for f in schema.find(["x" * 500, {}, [], None, 10**500, 7])]

    assert values == ["x" * 99 + "…", None, None, None, None, 7]


def test_messages_are_bounded() -> None:
    """However long what a schema says, a message stays under 200 characters."""
    schema = Schema({"items": {"const": "y" * 1000, "pattern": "z" * 1000}})

    assert max(len(f.message) for f in schema.find(["x"])) == 200


def test_findings_are_bounded() -> None:
    """A hundred findings are enough, however wrong the value is."""
    assert len(list(Schema({"items": {"type": "null"}}).find([1] * 1000))) == 100


def test_deep_values_are_findings() -> None:
    """Nesting beyond 200 is a finding; less than that never breaks the check."""
    tree = {"items": {"$ref": "#"}, "type": "array"}
    for depth in (10, 150, 199, 250, 100_000):
        value: Any = []
        for _ in range(depth):
            value = [value]
        findings = told(Schema(tree), value)
        assert len(findings) <= 1
        assert bool(findings) or depth < 200
        assert all("deep" in message for _, message in findings)
        assert bool(Schema(tree).load(value)[1]) == bool(findings)


def test_deep_unions_are_findings_at_worst() -> None:
    """Where the validator needs more room than there is, the value is not checked."""
    tree = {
        "anyOf": [
            {"type": "array", "items": {"allOf": [{"$ref": "#"}]}},
            {"type": "object", "additionalProperties": {"allOf": [{"$ref": "#"}]}},
            {"type": "null"},
        ]
    }
    alias = Dict[str, Any]
    value: Any = None
    for _ in range(190):
        value = {"a": value}

    assert told(Schema(tree), value) == [("", "nests too deeply to be checked")]
    assert Schema(tree).load(value)[0] is None
    assert Schema(alias).load(value) == (value, [])


def test_deep_types_are_findings_at_worst() -> None:
    """The same while building: deep trees of classes load or are found too deep."""
    told_deep = 0
    for depth in (10, 100, 190):
        value: Any = {"below": None}
        for _ in range(depth):
            value = {"below": value}
        built, findings = Schema(Deep).load(value)
        assert (built is None) == bool(findings)
        told_deep += bool(findings)
    assert told_deep < 3


def test_a_value_that_contains_itself_is_a_finding() -> None:
    """Even what no JSON can be ends."""
    value: list[Any] = []
    value.append(value)

    assert told(Schema(True), value) == [("", "nests more than 200 levels deep")]


UNREADABLE = r"^\p{L}+$"
ENDLESS = "^(a+)+$"


@pytest.mark.parametrize("pattern", [UNREADABLE, ENDLESS])
@pytest.mark.parametrize(
    ("source", "good"),
    [
        ({"pattern": "PATTERN"}, ["a" * 50 + "!"]),
        ({"not": {"pattern": "PATTERN"}}, ["x"]),
        ({"if": {"pattern": "PATTERN"}, "then": False}, ["x"]),
        ({"oneOf": [{"pattern": "PATTERN"}, {"type": "string"}]}, ["x"]),
        ({"anyOf": [True], "oneOf": [{"pattern": "PATTERN"}, True]}, ["x"]),
        ({"contains": {"pattern": "PATTERN"}, "maxContains": 1}, [["x", "y"]]),
        (
            {
                "not": {"items": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"pattern": "PATTERN"}},
            },
            [1],
        ),
        ({"patternProperties": {"PATTERN": {"type": "null"}}}, [{"aa": 1}]),
        (
            {"patternProperties": {"PATTERN": {}}, "additionalProperties": False},
            [{"aa": 1}],
        ),
        ({"propertyNames": {"pattern": "PATTERN"}}, [{"a" * 40 + "!": 1}]),
    ],
)
def test_patterns_that_are_not_run_refuse_nothing(
    pattern: str, source: Any, good: list[Any]
) -> None:
    """A pattern that Python cannot read, or might never finish, is left unchecked."""
    text = json.dumps(source).replace('"PATTERN"', json.dumps(pattern))
    schema = Schema(json.loads(text))

    assert [told(schema, value) for value in good] == [[]] * len(good)


def test_patterns_beside_an_unread_one_count() -> None:
    """The other patterns of the object are still checked."""
    schema = Schema(
        {
            "patternProperties": {ENDLESS: {"type": "null"}, "^b$": {"type": "null"}},
            "not": {"required": ["c"]},
        }
    )

    assert told(schema, {"b": 1, "a": 1}) == [("b", "expected null, got integer")]
    assert told(schema, {"c": 1}) == [("", "is what the schema rules out")]


def test_python_types_take_what_they_hold() -> None:
    """A time without an offset is a time for Python, not for RFC 3339."""
    strict = Schema({"type": "string", "format": "time"})
    assert told(strict, "10:00:00") == [("", "expected a time like 14:30:00Z")]
    assert Schema(time).load("10:00:00") == (time(10), [])


def test_jsonschema_is_imported_late() -> None:
    """Making schemas and checking plain valid values needs no third party."""
    code = (
        "import sys, aeye.schema as s\n"
        "x = s.Schema({'type': 'object', 'properties': {'a': {'type': 'string'}}})\n"
        "assert x.load({'a': 'b'}) == ({'a': 'b'}, [])\n"
        "assert 'jsonschema' not in sys.modules and 'requests' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "a", "b", "2024-01-01", 1, 2, 1.0, 10**30])
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from("abc") | st.text(max_size=2), inner, max_size=3
        )
    ),
    max_leaves=8,
)
WORDS = st.fixed_dictionaries(
    {},
    optional={
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "minimum": st.integers(-1, 2),
        "exclusiveMaximum": st.sampled_from([0, 1.5, 2]),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "pattern": st.sampled_from(["^a", "b$", "(a+)+$", r"\p{L}"]),
        "format": st.sampled_from(["date", "email", "colour"]),
        "enum": st.lists(JSON.filter(lambda v: v == v), max_size=3),
        "const": st.sampled_from([1, "a", None, True, [1]]),
        "required": st.lists(st.sampled_from("abc"), max_size=2),
        "title": st.just("t"),
    },
)
TYPES = ["string", "integer", "number", "boolean", "null", "object", "array"]


def _grown(inner: Any) -> Any:
    return st.one_of(
        st.builds(
            lambda words, props, rest: {
                "type": "object",
                "properties": props,
                **words,
                **({} if rest is None else {"additionalProperties": rest}),
            },
            st.fixed_dictionaries(
                {}, optional={"required": st.lists(st.sampled_from("abc"), max_size=2)}
            ),
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.none() | st.booleans() | inner,
        ),
        st.builds(
            lambda words, item: {"type": "array", "items": item, **words},
            st.fixed_dictionaries({}, optional={"maxItems": st.integers(0, 2)}),
            inner,
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: {"anyOf": some}),
    )


LEAVES = st.builds(
    lambda words, kind: {**words, **({} if kind is None else {"type": kind})},
    WORDS,
    st.none() | st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1),
) | st.sampled_from(
    [{"type": kind} for kind in TYPES]
    + [{"type": "string", "enum": ["a", "b"]}, {"type": "string", "format": "date"}]
    + [{"$ref": "#/$defs/a"}, {"$ref": "#"}]
)
SCHEMAS = st.recursive(LEAVES, _grown, max_leaves=6).map(
    lambda node: {**node, "$defs": {"a": {"type": "integer", "minimum": 1}}}
)


@settings(max_examples=2 * settings.default.max_examples)
@given(SCHEMAS, JSON)
def test_any_value_can_be_checked(source: Any, value: Any) -> None:
    """Whatever the schema and the value: findings or none, and never an exception."""
    try:
        schema = Schema(source)
    except SchemaError:
        return
    findings = list(schema.find(value))
    built, again = schema.load(value)

    assert again == findings
    assert all(len(finding.message) <= 200 and str(finding) for finding in findings)
    assert built is None or not findings


@settings(max_examples=2 * settings.default.max_examples)
@given(SCHEMAS, JSON)
def test_quick_check_is_never_wrong(source: Any, value: Any) -> None:
    """What the quick check calls valid is valid for the validator."""
    try:
        schema = Schema(
            {"anyOf": [source, {"$ref": "#/$defs/x"}], "$defs": {"x": False}}
        )
        node = Schema(source).json
    except SchemaError:
        return
    quick = quick_check(node, node, CHECKERS)
    if quick is not None and quick(value):
        # A branch that is never quick makes the whole go to the validator.
        assert told(schema, value) == []


def test_quick_check_knows_its_limits() -> None:
    """What goes beyond plain objects is not compiled."""
    beyond = [
        {"type": "array", "uniqueItems": True},
        {"type": ["string", "null"], "minLength": 1},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"enum": [1], "const": 1},
        {"type": "array", "enum": [[]]},
        {"not": {}},
        {"type": "object", "properties": {"a": False}},
    ]
    assert [quick_check(node, node, {}) for node in beyond] == [None] * len(beyond)


def test_shared_definitions_cost_once() -> None:
    """A chain of definitions that use the next one twice is no explosion."""
    chain: dict[str, Any] = {
        f"d{n}": {
            "type": "object",
            "properties": {
                "a": {"$ref": f"#/$defs/d{n + 1}"},
                "b": {"$ref": f"#/$defs/d{n + 1}"},
            },
        }
        for n in range(60)
    }
    chain["d60"] = {"type": "integer"}
    schema = Schema({"$ref": "#/$defs/d0", "$defs": chain})

    assert told(schema, {"a": {"b": {}}}) == []
    assert told(schema, {"a": {"b": 1}}) == [("a.b", "expected object, got integer")]


def test_long_chains_of_definitions_are_checked() -> None:
    """Definitions may refer to one another a thousand deep: the value does not."""
    chain: dict[str, Any] = {
        f"d{n}": {
            "properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}},
            "maxProperties": 1,
        }
        for n in range(1000)
    }
    chain["d1000"] = {"type": "integer"}
    schema = Schema({"$ref": "#/$defs/d0", "$defs": chain})

    assert told(schema, {"a": {"a": {}}}) == []
    assert told(schema, {"a": {"a": {"b": 1, "c": 2}}}) == [
        ("a.a", "expected at most 1 property, got 2")
    ]


def test_unevaluated_properties_follow_references() -> None:
    """What a reference declares is evaluated, on every version of the validator."""
    schema = Schema(
        {
            "$ref": "#/$defs/a",
            "anyOf": [{"required": ["x"]}, {"properties": {"b": {"default": 3}}}],
            "unevaluatedProperties": False,
            "$defs": {"a": {"properties": {"a": {"type": "integer"}}}},
        }
    )

    assert schema.load({"a": 1}) == ({"a": 1, "b": 3}, [])
    assert told(schema, {"a": "x"})[0] == ("a", "expected integer, got string")
    assert "'c'" in next(iter(schema.find({"a": 1, "c": 1}))).message


def test_schema_is_a_value() -> None:
    """Equal by JSON, whatever the order of keys, and by type; copies are the same."""
    import copy
    import pickle

    one = Schema({"type": "object", "properties": {"a": {}, "b": {}}})
    two = Schema({"properties": {"b": {}, "a": {}}, "type": "object"})
    typed = Schema(int)

    assert one == two
    assert hash(one) == hash(two)
    assert typed != Schema({"type": "integer"})
    assert one != 5
    assert copy.deepcopy(one) is copy.copy(one) is one
    assert pickle.loads(pickle.dumps(typed)) == typed == Schema(typed)
    assert repr(typed) == "Schema(<class 'int'>)"
    assert repr(one) == 'Schema({"properties":{"a":{},"b":{}},"type":"object"})'


def test_schema_is_frozen_and_apart_from_its_source() -> None:
    """Nothing of a schema can be set, and later changes of the source do not count."""
    source = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = Schema(source)
    source["properties"]["a"]["type"] = "null"  # type: ignore[index]  # a dict

    assert told(schema, {"a": "x"}) == []
    with pytest.raises(AttributeError, match="cannot be changed"):
        schema.json = {}
    with pytest.raises(AttributeError, match="cannot be changed"):
        del schema.name


def test_names_and_kinds() -> None:
    """The name is the title or the class's; the two flags say what the root is."""
    facts = [
        (schema.name, schema.is_text, schema.is_object)
        for schema in (
            Schema({"type": "object", "title": "T"}),
            Schema({"type": "string", "description": "d"}),
            Schema({"type": "string", "minLength": 1}),
            Schema({"type": "object", "anyOf": [{}]}),
            Schema(str, name="answer"),
            Schema(time),
            Schema(Optional[str]),
            Schema(List[int]),
            Schema(Schema({"title": "T"}), name="other"),
            Schema(Schema({"title": "T"})),
        )
    ]

    assert facts == [
        ("T", False, True),
        (None, True, False),
        (None, False, False),
        (None, False, False),
        ("answer", True, False),
        ("time", False, False),
        (None, False, False),
        (None, False, False),
        ("other", False, False),
        ("T", False, False),
    ]


@pytest.mark.parametrize("source", [5, "string", [1], len, object(), b"", lambda a: a])
def test_nonsense_is_a_type_error(source: Any) -> None:
    """What is neither a dict nor a type is refused with what to give instead."""
    with pytest.raises(TypeError, match=r"made from a dict|of_function"):
        Schema(source)


def test_resolve_follows_references() -> None:
    """A node that is a reference leads to one that is none."""
    schema = Schema(
        {
            "type": "array",
            "items": {"$ref": "#/$defs/a"},
            "$defs": {
                "a": {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#"}]},
                "b": True,
            },
        }
    )
    first, second = schema.resolve(schema.json["items"])["anyOf"]

    assert schema.resolve(first) is True
    assert schema.resolve(second) is schema.json


def test_unions_are_told_apart_by_the_whole_schema() -> None:
    """A union of lists is decided by what is in them, nested references included."""
    schema = Schema(Union[List[int], List[str], None])

    assert schema.load(["a"]) == (["a"], [])
    assert schema.load([1.0]) == ([1], [])
    assert schema.load(None) == (None, [])


@pytest.mark.parametrize("keyword", ["unevaluatedProperties", "unevaluatedItems"])
def test_unevaluated_is_about_containers(keyword: str) -> None:
    """What is no object has no unevaluated properties, and what is no list no items."""
    schema = Schema({"anyOf": [{"type": "null"}, {"minLength": 1}], keyword: False})

    assert [list(schema.find(value)) for value in (None, "x", 3)] == [[], [], []]
