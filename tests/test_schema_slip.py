"""What is written wrongly in a dict schema is refused, what is one's own is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.errors import SchemaError
from aeye.schema import Field, Schema
from aeye.schema_slip import is_one_edit, meant_keyword, pattern_problem

SHARED = Path(__file__).resolve().parents[2] / "shared"
KEYWORDS = [
    *("type", "enum", "const", "properties", "required", "additionalProperties"),
    *("items", "prefixItems", "anyOf", "minLength", "pattern", "$ref", "$defs"),
]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("schema", "path", "meant"),
    [
        ({"requried": ["a"]}, "$.requried", "required"),
        ({"proprties": {}}, "$.proprties", "properties"),
        ({"properties": {"a": {"typ": "string"}}}, "$.properties.a.typ", "type"),
        ({"items": {"anyOf": [{}, {"enmu": []}]}}, "$.items.anyOf.1.enmu", "enum"),
        ({"minlength": 3}, "$.minlength", "minLength"),
        ({"ref": "#"}, "$.ref", "$ref"),
        ({"$deffs": {}}, "$.$deffs", "$defs"),
        ({"nott": {"type": "null"}}, "$.nott", "not"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"tpye": "null"}}}, "$.$defs.a.tpye", 0),
    ],
)
def test_slips_are_refused(schema: Any, path: str, meant: Any) -> None:
    """The error names the place, the word as written and the one that is meant."""
    with pytest.raises(SchemaError) as caught:
        Schema(schema)

    assert caught.value.path == path
    assert repr(path.rpartition(".")[2]) in caught.value.message
    assert repr(meant or "type") in caught.value.message


@pytest.mark.parametrize(
    "key",
    [
        *("x-typ", "_type", "@type", "$type", "_uniqueItems", "x-enum"),
        *("readonly", "require", "definition", "note", "link", "name", "unit", "in"),
        *("schema", "comment", "markdownDescription", "propertyOrdering", "typing"),
    ],
)
def test_words_of_ones_own_are_kept(key: str) -> None:
    """A word that is no letter from a keyword, or bears a sign of its own, stays."""
    assert Schema({"type": "string", key: "x"}).json == {"type": "string", key: "x"}


def test_names_of_properties_are_no_keywords() -> None:
    """Only where a schema stands is a word taken for a keyword."""
    names = {"typ": {}, "requried": {}, "itmes": {"enum": [{"typ": 1}]}}
    source = {"type": "object", "properties": names, "examples": [{"typ": 1}]}

    assert Schema(source).json == source


@given(st.sampled_from(KEYWORDS), st.data())
def test_every_slip_is_found(keyword: str, data: Any) -> None:
    """One letter added, dropped or changed, or two swapped, lead back to a keyword."""
    at = data.draw(st.integers(keyword[0] == "$", len(keyword) - 2))
    letter = data.draw(st.sampled_from(LETTERS))
    slip = data.draw(
        st.sampled_from(
            [
                keyword[:at] + letter + keyword[at:],
                keyword[:at] + keyword[at + 1 :],
                keyword[:at] + letter + keyword[at + 1 :],
                keyword[:at] + keyword[at + 1] + keyword[at] + keyword[at + 2 :],
            ]
        )
    )

    assert is_one_edit(slip, keyword)
    assert is_one_edit(keyword, slip)
    assert (meant_keyword(slip, {}) is None) == (slip in (keyword, "id", "cost"))


@pytest.mark.skipif(not SHARED.exists(), reason="no collected schemas")
def test_collected_schemas_have_no_slips() -> None:
    """What people have published is not refused for its spelling."""
    lines = (SHARED / "cases" / "corpus.jsonl").read_text("utf-8").splitlines()
    sources = [json.loads(line) for line in lines]

    assert len(sources) > 300
    assert all(Schema(source["schema"]).json for source in sources)


BROKEN = [
    *("(", ")", "a(b", "a)b", "[a", "\\", "*", "+a", "a**", "a++", "^*", "a{2}{3}"),
    *("|?", "a{3,1}", "[z-a]", r"\b+", "(?<=a)*", "(?", "(?z)", "(?>a)", "a|{1}"),
]
READABLE = [
    *("", "a|", "()", "[]]", "[^]", "a{,5}", "{", "}", "]", "a{1,2}?", "(?=a)*"),
    *(r"\p{L}+", r"[\p{L}-z]", r"[\u{61}-z]", r"[\w-.]", r"[+-]", r"[a\-z]", r"\-"),
    *("(?<year>[0-9]{4})", "(?P<year>[0-9]+)(?P=year)", "(?i)a", "(?i:a)", "[\\]-a]"),
]


@pytest.mark.parametrize("pattern", BROKEN)
@pytest.mark.parametrize("key", ["pattern", "patternProperties"])
def test_broken_patterns_are_refused(key: str, pattern: str) -> None:
    """What no dialect reads could never be checked; the error says what is wrong."""
    source = {key: pattern if key == "pattern" else {pattern: {}}}

    with pytest.raises(SchemaError, match="is no regular expression: ") as caught:
        Schema(source)

    assert caught.value.path is not None
    assert caught.value.path.startswith(f"$.{key}")


def test_broken_patterns_of_a_field_are_refused() -> None:
    """A type is held to the same; the path names its property."""

    class Box:
        def __init__(self, code: Annotated[str, Field(pattern="(")]) -> None: ...

    with pytest.raises(SchemaError) as caught:
        Schema.of_function(Box)

    assert caught.value.path == "$.properties.code"


@pytest.mark.parametrize("pattern", READABLE)
def test_patterns_are_kept_as_written(pattern: str) -> None:
    """What ECMAScript reads is kept, whether Python can run it or not."""
    assert pattern_problem(pattern) is None
    assert Schema({"pattern": pattern}).json == {"pattern": pattern}


@given(st.text("ab1,-^$.|*+?(){}[]\\<=!:dbpu", max_size=12))
def test_any_pattern_is_read(pattern: str) -> None:
    """Reading ends, and what is quoted is never found at fault."""
    quoted = "".join(f"\\{c}" if not c.isalnum() else c for c in pattern)

    assert pattern_problem(pattern) is None or pattern_problem(pattern)
    assert pattern_problem(quoted) is None


@pytest.mark.parametrize(
    ("source", "path", "name"),
    [
        ({"a": str}, "$.a", "str"),
        ({"a": List[int]}, "$.a", "List"),
        ({"properties": {"a": {"type": int}}}, "$.properties.a.type", "int"),
    ],
)
def test_types_in_a_dict_are_refused(source: Any, path: str, name: str) -> None:
    """A dict is JSON Schema; whoever puts a type in it wants a class of fields."""
    with pytest.raises(SchemaError, match="dataclass or a TypedDict") as caught:
        Schema(source)

    assert caught.value.path == path
    assert name in caught.value.message


def test_a_field_prints_what_it_says() -> None:
    """What is at its default is not printed; None as a default is one."""
    assert repr(Field("Age.", ge=0)) == "Field(description='Age.', ge=0)"
    assert repr(Field(default=None)) == "Field(default=None)"
    assert repr(Field()) == "Field()"
