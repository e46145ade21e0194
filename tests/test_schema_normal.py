"""Old drafts, OpenAPI and mixtures become self-contained 2020-12."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.errors import SchemaError
from aeye.schema import Schema
from aeye.schema_normal import normalise, walk

SHARED = Path(__file__).resolve().parents[2] / "shared"
D3 = "http://json-schema.org/draft-03/schema#"
D4 = "http://json-schema.org/draft-04/schema#"
D7 = "http://json-schema.org/draft-07/schema#"
NULL = {"type": "null"}
TEXT = {"type": "string"}
INT = {"type": "integer"}

CASES = {
    "true": (True, {}),
    "false": (False, {"not": {}}),
    "empty": ({}, {}),
    "boolean exclusive bounds": (
        {
            "minimum": 1,
            "exclusiveMinimum": True,
            "maximum": 9,
            "exclusiveMaximum": False,
        },
        {"exclusiveMinimum": 1, "maximum": 9},
    ),
    "exclusive without a bound": ({"exclusiveMinimum": True}, {}),
    "list of items": (
        {"items": [TEXT, {}], "additionalItems": False},
        {"prefixItems": [TEXT, {}], "items": False},
    ),
    "empty list of items": ({"items": [], "additionalItems": INT}, {"items": INT}),
    "additionalItems alone": ({"items": INT, "additionalItems": False}, {"items": INT}),
    "dependencies": (
        {"dependencies": {"a": ["b", "b"], "c": {"required": ["d"]}, "e": "f"}},
        {
            "dependentRequired": {"a": ["b"], "e": ["f"]},
            "dependentSchemas": {"c": {"required": ["d"]}},
        },
    ),
    "dependentRequired": (
        {"dependentRequired": {"a": ["b", "b"]}},
        {"dependentRequired": {"a": ["b"]}},
    ),
    "required in the property": (
        {
            "$schema": D3,
            "properties": {
                "a": {"required": True},
                "b": {"required": False},
                "c": True,
            },
        },
        {
            "type": "object",
            "properties": {"a": {}, "b": {}, "c": True},
            "required": ["a"],
        },
    ),
    "required both ways": (
        {"type": "object", "required": ["a"], "properties": {"b": {"required": True}}},
        {"type": "object", "required": ["a", "b"], "properties": {"b": {}}},
    ),
    "extends one": ({"extends": INT}, {"allOf": [INT]}),
    "extends many": (
        {"extends": [INT, {"minimum": 1}]},
        {"allOf": [INT, {"minimum": 1}]},
    ),
    "disallow": ({"disallow": "string"}, {"not": TEXT}),
    "disallow schemas": (
        {"disallow": ["null", {"enum": [1]}], "not": INT},
        {"not": INT, "allOf": [{"not": {"anyOf": [NULL, {"enum": [1]}]}}]},
    ),
    "divisibleBy": ({"divisibleBy": 2}, {"multipleOf": 2}),
    "type any": ({"type": "any"}, {}),
    "type any among others": ({"type": ["string", "any"]}, {}),
    "schemas in type": (
        {"type": ["string", {"minimum": 3}]},
        {"anyOf": [TEXT, {"minimum": 3}]},
    ),
    "one schema in type": ({"type": [{"minimum": 3}]}, {"allOf": [{"minimum": 3}]}),
    "types twice": ({"type": ["string", "string"]}, TEXT),
    "types": ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    "old formats": ({"format": "ip-address"}, {"format": "ipv4"}),
    "nullable": ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    "nullable types": (
        {"type": ["string", "null"], "nullable": True},
        {"type": ["string", "null"]},
    ),
    "nullable null": ({"type": "null", "nullable": True}, NULL),
    "nullable enum": (
        {"type": "string", "enum": ["a"], "nullable": True},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    "nullable enum with null": (
        {"type": "string", "enum": ["a", None], "nullable": True},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    "nullable const": (
        {"type": "string", "const": "a", "nullable": True},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    "nullable combination": (
        {"allOf": [TEXT], "nullable": True, "description": "d"},
        {"description": "d", "anyOf": [{"allOf": [TEXT]}, NULL]},
    ),
    "nullable anything": ({"nullable": True}, {}),
    "not nullable": ({"type": "string", "nullable": False}, TEXT),
    "example": ({"type": "string", "example": "a"}, {**TEXT, "examples": ["a"]}),
    "identity goes": (
        {"$schema": D7, "$id": "http://x/y", "$comment": "c", "type": "string"},
        TEXT,
    ),
    "notes of the wrong type go": (
        {"title": None, "description": 3, "examples": "x", "deprecated": "no"},
        {},
    ),
    "notes stay": (
        {"title": "t", "default": None, "deprecated": True, "x-note": {"a": [1]}},
        {"title": "t", "default": None, "deprecated": True, "x-note": {"a": [1]}},
    ),
    "whole floats": ({"minLength": 2.0}, {"minLength": 2}),
    "required twice": ({"required": ["a", "a"]}, {"required": ["a"]}),
    "nothing required": ({"required": []}, {}),
    "no branches": ({"anyOf": []}, {}),
    "root without type": (
        {"properties": {"a": INT}},
        {"type": "object", "properties": {"a": INT}},
    ),
    "tuples are lists": ({"enum": (1, (2,))}, {"enum": [1, [2]]}),
    "keywords as names": (
        {"type": "object", "properties": {"$ref": TEXT, "$id": TEXT, "items": INT}},
        {"type": "object", "properties": {"$ref": TEXT, "$id": TEXT, "items": INT}},
    ),
    "keywords as data": (
        {"const": {"$ref": "http://x", "$id": "http://y"}, "default": {"$id": "#z"}},
        {"const": {"$ref": "http://x", "$id": "http://y"}, "default": {"$id": "#z"}},
    ),
}

REFERENCES = {
    "definitions": (
        {"items": {"$ref": "#/definitions/a"}, "definitions": {"a": INT, "b": {}}},
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": INT}},
    ),
    "a property": (
        {"properties": {"a": INT, "b": {"$ref": "#/properties/a"}}},
        {
            "type": "object",
            "properties": {"a": INT, "b": {"$ref": "#/$defs/a"}},
            "$defs": {"a": INT},
        },
    ),
    "an item": (
        {"anyOf": [INT, {"items": {"$ref": "#/anyOf/0"}}]},
        {"anyOf": [INT, {"items": {"$ref": "#/$defs/anyOf"}}], "$defs": {"anyOf": INT}},
    ),
    "escapes": (
        {"items": {"$ref": "#/$defs/a~1b%20c%25"}, "$defs": {"a/b c%": INT}},
        {"items": {"$ref": "#/$defs/a_b_c"}, "$defs": {"a_b_c": INT}},
    ),
    "names that collide": (
        {
            "prefixItems": [
                {"$ref": "#/$defs/a~1"},
                {"$ref": "#/$defs/a b"},
                {"$ref": "#/x/a_b"},
            ],
            "$defs": {"a/": INT, "a b": TEXT},
            "x": {"a_b": NULL},
        },
        {
            "prefixItems": [
                {"$ref": "#/$defs/a"},
                {"$ref": "#/$defs/a_b"},
                {"$ref": "#/$defs/a_b_2"},
            ],
            "$defs": {"a": INT, "a_b": TEXT, "a_b_2": NULL},
            "x": {"a_b": NULL},
        },
    ),
    "anchors": (
        {"items": {"$ref": "#n"}, "$defs": {"a": {"$anchor": "n", **INT}}},
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": INT}},
    ),
    "old anchors": (
        {"$schema": D4, "items": {"$ref": "#n"}, "definitions": {"a": {"id": "#n"}}},
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {}}},
    ),
    "old anchors without a draft": (
        {"items": {"$ref": "#n"}, "definitions": {"a": {"id": "#n"}, "b": {"id": "x"}}},
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {}}},
    ),
    "dynamic": (
        {"items": {"$dynamicRef": "#n"}, "$defs": {"a": {"$dynamicAnchor": "n"}}},
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {}}},
    ),
    "recursive": (
        {"$recursiveAnchor": True, "items": {"$recursiveRef": "#"}},
        {"items": {"$ref": "#"}},
    ),
    "embedded resources": (
        {
            "$id": "http://x/root.json",
            "prefixItems": [
                {"$ref": "a.json"},
                {"$ref": "a.json#n"},
                {"$ref": "http://x/root.json"},
                {"$ref": "/root.json#/$defs/b"},
            ],
            "$defs": {
                "a": {
                    "$id": "a.json",
                    "items": {"$ref": "#/$defs/c"},
                    "$defs": {"c": {"$anchor": "n", "type": "null"}},
                },
                "b": TEXT,
            },
        },
        {
            "prefixItems": [
                {"$ref": "#/$defs/a"},
                {"$ref": "#/$defs/c"},
                {"$ref": "#"},
                {"$ref": "#/$defs/b"},
            ],
            "$defs": {"a": {"items": {"$ref": "#/$defs/c"}}, "c": NULL, "b": TEXT},
        },
    ),
    "anchor in an id": (
        {
            "$schema": D7,
            "$id": "http://x/r",
            "items": {"$ref": "s#n"},
            "definitions": {"a": {"$id": "s#n", "type": "integer"}},
        },
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": INT}},
    ),
    "a pointer from the root in spite of an id": (
        {
            "properties": {"a": {"$id": "http://x/a", "items": {"$ref": "#/$defs/b"}}},
            "$defs": {"b": INT},
        },
        {
            "type": "object",
            "properties": {"a": {"items": {"$ref": "#/$defs/b"}}},
            "$defs": {"b": INT},
        },
    ),
    "id without a draft": (
        {
            "id": "http://x/r",
            "items": {"$ref": "http://x/r#/definitions/a"},
            "definitions": {"a": INT},
        },
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": INT}},
    ),
    "urn": (
        {"$id": "urn:x:y", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": INT}},
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": INT}},
    ),
    "root reference": (
        {
            "$ref": "#/$defs/Node",
            "description": "d",
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {"n": {"$ref": "#/$defs/Node"}},
                }
            },
        },
        {
            "type": "object",
            "properties": {"n": {"$ref": "#"}},
            "description": "d",
        },
    ),
    "root reference to true": ({"$ref": "#/$defs/a", "$defs": {"a": True}}, {}),
    "root reference to false": (
        {"$ref": "#/$defs/a", "$defs": {"a": False}},
        {"not": {}},
    ),
    "chain of root references": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": INT}},
        INT,
    ),
    "root reference with more": (
        {"$ref": "#/$defs/a", "minimum": 1, "$defs": {"a": INT}},
        {"$ref": "#/$defs/a", "minimum": 1, "$defs": {"a": INT}},
    ),
    "siblings up to draft 7": (
        {
            "$schema": D7,
            "items": {"$ref": "#/definitions/a", "minimum": 3, "title": "t"},
            "definitions": {"a": INT},
        },
        {"items": {"$ref": "#/$defs/a", "title": "t"}, "$defs": {"a": INT}},
    ),
    "siblings since": (
        {"items": {"$ref": "#/$defs/a", "minimum": 3}, "$defs": {"a": INT}},
        {"items": {"$ref": "#/$defs/a", "minimum": 3}, "$defs": {"a": INT}},
    ),
    "definition in a definition": (
        {
            "items": {"$ref": "#/$defs/a"},
            "$defs": {
                "a": {"items": {"$ref": "#/$defs/a/$defs/b"}, "$defs": {"b": {}}}
            },
        },
        {
            "items": {"$ref": "#/$defs/a"},
            "$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {}},
        },
    ),
    "unused and broken": (
        {"type": "integer", "definitions": {"a": {"$ref": "http://x"}, "b": 3}},
        INT,
    ),
}

REFUSED = {
    "a number": (3, "must be a dict", "$"),
    "a list": ([], "must be a dict", "$"),
    "another document": (
        {"items": {"$ref": "http://x/y.json"}},
        "never fetched",
        "$.items.$ref",
    ),
    "a file": ({"items": {"$ref": "y.json#/a"}}, "never fetched", "$.items.$ref"),
    "a meta-schema": ({"items": {"$ref": D4}}, "never fetched", "$.items.$ref"),
    "no address": ({"items": {"$ref": "http://["}}, "never fetched", "$.items.$ref"),
    "nowhere": ({"items": {"$ref": "#/$defs/a"}}, "leads nowhere", "$.items.$ref"),
    "no such item": (
        {"anyOf": [{"$ref": "#/anyOf/7"}]},
        "leads nowhere",
        "$.anyOf.0.$ref",
    ),
    "no such anchor": ({"items": {"$ref": "#a"}}, "leads nowhere", "$.items.$ref"),
    "a reference to a number": (
        {"items": {"$ref": "#/minimum"}, "minimum": 3},
        "object or a boolean",
        "$.minimum",
    ),
    "no text": ({"$ref": 3}, "must be a string", "$.$ref"),
    "itself": ({"$ref": "#"}, "refers to itself", "$"),
    "itself in a branch": ({"anyOf": [INT, {"$ref": "#"}]}, "refers to itself", "$"),
    "each other": (
        {
            "items": {"$ref": "#/$defs/a"},
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}},
        },
        "refers to itself",
        "$.$defs.a",
    ),
    "root loop": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        "refers to itself",
        "$",
    ),
    "unknown type": ({"type": "text"}, "unknown type 'text'", "$.type"),
    "no type": ({"type": []}, "type must be", "$.type"),
    "type of a number": ({"type": 3}, "object or a boolean", "$.type.0"),
    "schema of a number": (
        {"properties": {"a": 3}},
        "object or a boolean, got int",
        "$.properties.a",
    ),
    "schema of null": ({"not": None}, "got null", "$.not"),
    "properties": ({"properties": []}, "object of schemas", "$.properties"),
    "allOf": ({"allOf": {}}, "list of schemas", "$.allOf"),
    "minimum": ({"minimum": "0"}, "minimum must be a number", "$.minimum"),
    "boolean minimum": ({"minimum": True}, "minimum must be a number", "$.minimum"),
    "multipleOf": ({"multipleOf": 0}, "more than 0", "$.multipleOf"),
    "minLength": ({"minLength": -1}, "whole number", "$.minLength"),
    "maxItems": ({"maxItems": 1.5}, "whole number", "$.maxItems"),
    "pattern": ({"pattern": 3}, "a string", "$.pattern"),
    "required": ({"required": "a"}, "list of names", "$.required"),
    "enum": ({"enum": {}}, "a list", "$.enum"),
    "uniqueItems": ({"uniqueItems": 1}, "true or false", "$.uniqueItems"),
    "dependencies": ({"dependencies": []}, "an object", "$.dependencies"),
    "dependency": ({"dependencies": {"a": [1]}}, "list of names", "$.dependencies.a"),
    "dependentRequired": (
        {"dependentRequired": {"a": "b"}},
        "lists of names",
        "$.dependentRequired",
    ),
    "key": ({"properties": {1: {}}}, "keys must be text", "$.properties"),
    "NaN": ({"const": float("nan")}, "nan is not JSON", "$.const"),
    "object": ({"default": {1, 2}}, "is not JSON", "$.default"),
}


@pytest.mark.parametrize("case", CASES)
def test_old_spellings(case: str) -> None:
    """Each old spelling has one new one; the source stays as it was."""
    source, expected = CASES[case]
    before = copy.deepcopy(source)

    assert normalise(source) == expected
    assert source == before


@pytest.mark.parametrize("case", REFERENCES)
def test_references(case: str) -> None:
    """References are "#" and "#/$defs/…" only; what nothing refers to is gone."""
    source, expected = REFERENCES[case]

    assert normalise(source) == expected


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """What is no schema, or none that stands alone, is an error with its place."""
    source, message, path = REFUSED[case]

    with pytest.raises(SchemaError, match=message) as caught:
        normalise(source)

    assert caught.value.path == path


def test_depth_is_bounded() -> None:
    """A schema that nests without end, or contains itself, is refused."""
    deep: dict = {}
    for _ in range(1000):
        deep = {"items": deep}
    looped: dict = {}
    looped["items"] = looped

    for source in (deep, looped):
        with pytest.raises(SchemaError, match="nests"):
            normalise(source)


def test_long_chains_are_no_recursion() -> None:
    """A chain of a thousand definitions is fine: nothing nests."""
    chain = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(1000)}
    chain["d1000"] = {"type": "integer"}

    told = normalise({"items": {"$ref": "#/$defs/d0"}, "$defs": chain})

    assert len(told["$defs"]) == 1001


@pytest.mark.parametrize("case", [*CASES, *REFERENCES])
def test_normalising_twice_changes_nothing(case: str) -> None:
    """What is normal stays as it is."""
    source, _ = {**CASES, **REFERENCES}[case]
    once = normalise(source)

    assert normalise(once) == once


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/#~%$", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "items",
                    "properties",
                    "$ref",
                    "$defs",
                    "definitions",
                    "enum",
                    "id",
                    "required",
                    "anyOf",
                    "extends",
                    "disallow",
                    "dependencies",
                    "nullable",
                    "minimum",
                    "exclusiveMinimum",
                    "$id",
                    "$anchor",
                    "not",
                    "const",
                    "a",
                ]
            ),
            inner | st.sampled_from(["#", "#/$defs/a", "#/items", "string", "object"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_refused(source: object) -> None:
    """Whatever is given, the result is usable or the error is a SchemaError."""
    try:
        schema = Schema(source if isinstance(source, (dict, bool)) else {"not": source})
    except SchemaError as exc:
        assert exc.path
        return
    for value in (None, 1, "a", [1], {"a": 1}):
        list(schema.find(value))
    for node in walk(schema.json):
        assert not {"$id", "id", "$anchor", "definitions"} & node.keys()


@pytest.mark.skipif(not SHARED.exists(), reason="needs the collected schemas")
def test_collected_schemas_compile() -> None:
    """Real schemas of all drafts compile, but for the few that are no schemas."""
    lines = (SHARED / "cases" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 300
    refused = []
    for line in lines:
        entry = json.loads(line)
        try:
            schema = Schema(entry["schema"])
        except SchemaError as exc:
            assert exc.path
            refused.append(f"{entry['id']}: {exc}")
            continue
        list(schema.find({}))
        for node in walk(schema.json):
            assert node.get("$ref", "#") == "#" or node["$ref"].startswith("#/$defs/")

    assert refused == []
