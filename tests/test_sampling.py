"""Values made up to fit a schema."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeye.emit_words import describe_checks
from aeye.errors import SchemaError
from aeye.sampling import sample
from aeye.sampling_text import read_words
from aeye.schema import Schema

sys.path.insert(0, str(Path(__file__).parent))

from strategies_schema import schemas

SHARED = Path(__file__).resolve().parents[2] / "shared"

TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["name", "children"],
}


def fits(schema: Any, value: Any) -> bool:
    return not list(Schema(schema).find(value))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": None}, None),
        ({"type": "string"}, "example text"),
        (True, "example text"),
        ({"type": "string", "examples": ["Paris"], "default": "Rome"}, "Paris"),
        ({"type": "string", "default": "Rome"}, "Rome"),
        ({"type": ["string", "null"], "default": None}, "example text"),
        ({"enum": ["only"]}, "only"),
        ({"type": "null"}, None),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "example text"),
        ({"type": "integer", "minimum": 3, "exclusiveMaximum": 4}, 3),
        ({"type": "integer", "exclusiveMinimum": 3, "maximum": 4}, 4),
        ({"type": "number", "minimum": 0.5, "maximum": 0.5}, 0.5),
        ({"type": "number", "minimum": 0.3, "maximum": 0.5, "multipleOf": 0.2}, 0.4),
        ({"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 7}, 7),
        ({"type": "integer", "minimum": 4, "maximum": 8, "multipleOf": 2.5}, 5),
        ({"type": "string", "maxLength": 4}, "text"),
        ({"type": "string", "minLength": 14}, "example textxx"),
        ({"type": "array"}, []),
        (
            {"type": "array", "items": {"type": "string"}},
            ["example text 1", "example text 2"],
        ),
        ({"type": "array", "items": {"enum": ["a"]}, "uniqueItems": True}, ["a"]),
        ({"type": "array", "items": False}, []),
        ({"prefixItems": [{"const": 1}, {"const": "b"}]}, [1, "b"]),
        ({"type": "array", "contains": {"const": 5}}, [5]),
        ({"type": "object"}, {}),
        ({"type": "object", "additionalProperties": {"const": 1}}, {"key_1": 1}),
        (
            {"minProperties": 2, "additionalProperties": {"const": 1}},
            {"key_1": 1, "key_2": 1},
        ),
        (
            {"propertyNames": {"enum": ["a"]}, "additionalProperties": {"const": 1}},
            {"a": 1},
        ),
        ({"patternProperties": {"^x$": {"const": 1}}}, {"x": 1}),
        (
            {
                "properties": {"xa": {"type": "string"}, "no": False},
                "patternProperties": {"^x": {"const": "p"}},
                "required": ["xb"],
            },
            {"xa": "p", "xb": "p"},
        ),
        (
            {"properties": {"a": {"const": 1}, "b": {}}, "maxProperties": 1},
            {"a": 1},
        ),
        (
            {"properties": {"firstName": {}, "tags": {"items": {}}}},
            {
                "firstName": "example first name",
                "tags": ["example tag 1", "example tag 2"],
            },
        ),
        ({"allOf": [{"type": "integer", "minimum": 4}, {"maximum": 4}]}, 4),
        ({"allOf": [{"type": "number"}, {"type": "integer", "enum": [2]}]}, 2),
        ({"allOf": [{"type": "integer"}, {"type": "number", "const": 2}]}, 2),
        ({"allOf": [{"enum": [1, 2]}, {"enum": [2, 3]}]}, 2),
        ({"allOf": [True, {"const": 1}]}, 1),
        ({"oneOf": [{"const": 1}, False]}, 1),
        (
            {"anyOf": [False, {"const": 1}], "allOf": [{"anyOf": [{"maximum": 3}]}]},
            1,
        ),
        (
            {"if": {"type": "string"}, "then": {"const": "s"}, "else": False},
            "s",
        ),
        (
            {
                "properties": {"a": {"const": 1}},
                "dependentRequired": {"a": ["b"], "z": ["y"]},
                "dependentSchemas": {
                    "a": {"properties": {"b": {"const": 2}}},
                    "z": {"required": ["x"]},
                },
            },
            {"a": 1, "b": 2},
        ),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"const": 1}}}, 1),
        ({"$ref": "#/allOf/0", "allOf": [{"const": 1}]}, 1),
        ({"type": "string", "not": {"const": "example text"}, "enum": ["a"]}, "a"),
    ],
)
def test_what_is_made(schema: Any, expected: Any) -> None:
    """What a schema names is taken; else text names its place and numbers fit."""
    assert sample(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "default": 5},
        {"type": "object", "properties": {"a": {"type": "integer", "examples": ["x"]}}},
        {"type": "integer", "maximum": -4},
        {"type": "integer", "maximum": 8},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001},
        {"type": "number", "minimum": 1e300},
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
        {"items": {"type": "string"}, "minItems": 5, "uniqueItems": True},
        {"items": {"type": "string", "maxLength": 1}, "uniqueItems": True},
        {"prefixItems": [{}], "items": {"type": "integer"}, "minItems": 3},
        {"type": "array", "contains": {"const": 1}, "minContains": 2, "minItems": 3},
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object",
         "properties": {"a": {}, "b": {}}},
        {"oneOf": [{"type": "integer"}, {"type": "number", "maximum": 3}]},
        {"minProperties": 3, "propertyNames": {"pattern": "^k[0-9]$"}},
        {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]},
         "properties": {"a": {"enum": [1, 2]}}, "type": "object"},
        TREE,
        {"$ref": "#/$defs/n",
         "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}},
        {"$defs": {"n": {"anyOf": [{"properties": {"n": {"$ref": "#/$defs/n"}},
                                    "required": ["n"]}, {"type": "null"}]}},
         "$ref": "#/$defs/n"},
    ],
)  # fmt: skip
def test_what_is_made_fits(schema: Any) -> None:
    """Bad examples, bounds, unique items, exclusive branches and recursion are met."""
    for seed in range(5):
        assert fits(schema, sample(schema, seed=seed))


@pytest.mark.parametrize(
    "name",
    [
        *("date", "time", "date-time", "duration", "email", "idn-email", "hostname"),
        *("idn-hostname", "ipv4", "ipv6", "uri", "iri", "uri-reference"),
        *("iri-reference", "uri-template", "uuid", "json-pointer"),
        *("relative-json-pointer", "regex", "binary", "byte"),
    ],
)
def test_formats(name: str) -> None:
    """Text in every format we know is right for the format, and for its bounds."""
    made = sample({"type": "string", "format": name})

    assert made != "example text"
    assert fits({"type": "string", "format": name}, made)


@pytest.mark.parametrize(
    "pattern",
    [
        "^[A-Z]{2}-\\d{4}$",
        "^(red|green)$",
        "^[^a-z]+$",
        "^\\w+@\\w+\\.com$",
        "^a?b*c+d{2}e{1,3}f{2,}$",
        "^(?:x|y)(?<name>z)$",
        "(?=.*[A-Z])^[A-Z]{3}$",
        "^\\x41\\u0042\\/\\-\\.\\t$",
        "^[\\d_\\-]{3}$",
        "^[\\x41-C-]+$",
        "^[]a]+$",
        "^\\S+\\s\\D\\W$",
        "^.{3,5}$",
        "\\bword\\b",
        "example",
        "^(a+)+$",
        "^a+?b*$",
        "^[!-/]$",
        "^#",
    ],
)
def test_patterns(pattern: str) -> None:
    """Text is made for patterns that need no looking around."""
    schema = {"type": "string", "pattern": pattern}

    for seed in range(5):
        assert fits(schema, sample(schema, seed=seed))


def test_patterns_with_a_length() -> None:
    """The bounds of the length hold for text that has a pattern, too."""
    schemas = [
        {"type": "string", "pattern": "^[a-z]+$", "minLength": 8, "maxLength": 9},
        {"type": "string", "pattern": "^#", "minLength": 40},
    ]

    assert [fits(schema, sample(schema)) for schema in schemas] == [True, True]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"properties": {"code": {"type": "string", "pattern": "(a)\\1"}},
          "required": ["code"]}, "$.properties.code"),
        ({"pattern": "(?i)x"}, "$"),
        ({"pattern": "a{99999}"}, "$"),
        ({"pattern": "^(?=b)a$"}, "$"),
        ({"minLength": 200_000}, "$"),
        ({"items": {"type": "string", "pattern": "\\1"}, "minItems": 1}, "$.items"),
        ({"type": "array", "minItems": 2000}, "$"),
        ({"type": "object", "minProperties": 2000}, "$"),
        ({"minProperties": 1, "additionalProperties": False}, "$.additionalProperties"),
        ({"minProperties": 2, "propertyNames": {"const": "a"}, "required": []}, "$"),
        ({"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True},
         "$.items"),
        ({"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1}, "$"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "$"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "$"),
        ({"allOf": [{"const": 1}, {"const": 2}]}, "$"),
        ({"allOf": [{"type": "string"}, False]}, "$"),
        ({"not": {}}, "$"),
        ({"properties": {"a": {"allOf": [{"pattern": "^a"}, {"pattern": "z$"}]}},
          "required": ["a"]}, "$.properties.a"),
        ({"properties": {"n": {"$ref": "#"}}, "required": ["n"]},
         "$.properties.n.properties.n.properties.n.properties.n"),
    ],
)  # fmt: skip
def test_what_cannot_be_made(schema: Any, path: str) -> None:
    """The error names the place and asks for examples."""
    with pytest.raises(SchemaError, match="examples") as caught:
        sample(schema)

    assert caught.value.path == path


def test_examples_are_the_way_out() -> None:
    """Where a pattern is too hard, an example is used."""
    hard = {"type": "string", "pattern": "^(a)\\1$"}

    assert sample({**hard, "examples": ["aa"]}) == "aa"


def test_the_seed_decides() -> None:
    """Equal seeds make equal values; a neighbour does not change a value."""
    number = {"type": "integer"}
    one = {"type": "object", "properties": {"a": number}}
    two = {"type": "object", "properties": {"b": number, "a": number}}

    made = {sample(one, seed=seed)["a"] for seed in range(20)}

    assert len(made) > 5
    assert sample(one, seed=3) == sample(one, seed=3)
    assert sample(one, seed=3)["a"] == sample(two, seed=3)["a"]


def test_bushy_recursion_is_bounded() -> None:
    """A schema that branches into itself many times does not explode."""
    node = {
        "type": "object",
        "properties": {
            f"p{i}": {"type": "array", "items": {"$ref": "#/$defs/n"}} for i in range(9)
        },
    }

    made = sample({"$ref": "#/$defs/n", "$defs": {"n": node}})

    assert len(json.dumps(made)) < 20_000


@settings(
    max_examples=settings.default.max_examples // 2,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(schemas())
def test_odd_schemas(schema: Any) -> None:
    """Whatever people write: a value that is valid, or a clear error."""
    try:
        source = Schema(schema)
        made = sample(source)
    except SchemaError as exc:
        assert exc.path is not None
        return

    assert not list(source.find(made))


def _schemas() -> st.SearchStrategy[Any]:
    integers = st.integers(-20, 20)
    scalars = st.one_of(
        st.builds(lambda v: {"const": v}, st.none() | st.booleans() | integers),
        st.builds(lambda v: {"enum": v}, st.lists(st.text(max_size=3), min_size=1)),
        st.builds(
            lambda a, n: {"type": "integer", "minimum": a, "maximum": a + n},
            integers,
            st.integers(0, 9),
        ),
        st.builds(
            lambda a, n: {"type": "number", "exclusiveMinimum": a, "maximum": a + n},
            integers,
            st.integers(1, 9),
        ),
        st.builds(
            lambda a, n: {"type": "string", "minLength": a, "maxLength": a + n},
            st.integers(0, 20),
            st.integers(0, 9),
        ),
        st.sampled_from(["date", "email", "uuid", "ipv6", "uri"]).map(
            lambda name: {"type": "string", "format": name}
        ),
        st.sampled_from([{}, True, {"type": "boolean"}, {"type": ["null", "string"]}]),
    )
    return st.recursive(scalars, _containers, max_leaves=12)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.text("abc", min_size=1, max_size=3)

    def closed(properties: Any, n: int) -> Any:
        return {
            "type": "object",
            "properties": properties,
            "required": sorted(properties)[:n],
            "additionalProperties": False,
        }

    small = st.integers(0, 3)
    return st.one_of(
        st.builds(closed, st.dictionaries(names, inner, max_size=4), small),
        st.builds(
            lambda v, n: {
                "type": "object",
                "additionalProperties": v,
                "minProperties": n,
            },
            inner,
            small,
        ),
        st.builds(
            lambda v, n, m: {
                "type": "array",
                "items": v,
                "minItems": n,
                "maxItems": n + m,
            },
            inner,
            small,
            small,
        ),
        st.builds(
            lambda v: {"type": "array", "prefixItems": v, "minItems": len(v)},
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda v: {"anyOf": v}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda v: {"allOf": [v, {"description": "d"}]}, inner),
    )


@given(_schemas(), st.integers(0, 1000))
def test_every_sample_is_valid(schema: Any, seed: int) -> None:
    """What is made is valid under its schema and plain JSON."""
    made = sample(schema, seed=seed)

    assert fits(schema, made)
    assert json.loads(json.dumps(made, allow_nan=False)) == made


@pytest.mark.skipif(not (SHARED / "cases").is_dir(), reason="the corpus is not here")
def test_corpus() -> None:
    """For real schemas of the world a value is made, or a clear error is raised."""
    lines = (SHARED / "cases" / "corpus.jsonl").read_text("utf-8").splitlines()
    assert len(lines) > 300
    if not os.environ.get("AEYE_ONDEMAND"):
        lines = lines[::4]
    made, refused = 0, 0
    for line in lines:
        case = json.loads(line)
        try:
            assert fits(case["schema"], sample(case["schema"])), case["id"]
            made += 1
        except SchemaError as exc:
            assert exc.path, case["id"]
            refused += 1

    assert made + refused == len(lines)
    assert refused <= len(lines) // 50


_CHECKS = st.fixed_dictionaries(
    {},
    optional={
        "minimum": st.integers(-9, 9) | st.floats(-1e9, 1e9),
        "maximum": st.integers(-9, 9),
        "exclusiveMinimum": st.floats(0, 1e-9),
        "exclusiveMaximum": st.integers(-9, 9),
        "minLength": st.integers(1, 9),
        "maxLength": st.integers(10, 99),
        "minItems": st.integers(1, 9),
        "maxItems": st.integers(9, 99),
        "maxProperties": st.integers(0, 9),
        "multipleOf": st.integers(1, 9),
        "pattern": st.sampled_from([r"^-?[0-9]+(\.[0-9]+)?$", "a. b", "^[A-Z]{2}.$"]),
        "format": st.just("date-time"),
        "contentEncoding": st.just("base64"),
        "uniqueItems": st.just(True),
    },
)


@given(_CHECKS)
def test_what_a_description_says_is_heeded(checks: Any) -> None:
    """Keywords that a dialect drops and says in words are read back from them."""
    said = " ".join(["Her name. It matters.", *describe_checks(checks)])

    assert read_words(said) == checks


def test_descriptions_are_only_hints() -> None:
    """What somebody wrote of another thing does not keep a value from being made."""
    odd = {"type": "integer", "maximum": 3, "description": "At least 7. Format: date."}

    assert fits(odd, sample(odd))
