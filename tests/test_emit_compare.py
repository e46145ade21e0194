"""Which branches can be told apart on the wire, seen by when ``oneOf`` may stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List

import pytest

from aeye.budget import explain
from aeye.descriptor import (
    GOOGLE_NON_STRICT,
    LENIENT,
    OPENAI_STRICT,
    XAI_STRICT,
    FormatDescriptor,
)
from aeye.emit import to_json_schema

Json = Dict[str, Any]
TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
PRICES: Json = {"type": "object", "additionalProperties": NUMBER}
PAIRS = replace(LENIENT, id="pairs", record_encoding="array-of-pairs")
NUMBERED = replace(LENIENT, id="numbered", tuple_encoding="object-numeric-keys")


def thing(properties: Json, required: Any = None, **more: Any) -> Json:
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, **more}


def tagged(tag: Any, **more: Any) -> Json:
    return thing({"k": {"const": tag}}, **more)


MANY = [f"v{n}" for n in range(50)]


@pytest.mark.parametrize(
    ("branches", "dialect", "apart"),
    [
        ([TEXT, NUMBER], LENIENT, True),
        ([{"type": "integer"}, NUMBER], LENIENT, False),
        ([{"enum": ["a", 1]}, {"enum": [True, "b"]}], LENIENT, True),
        ([{"enum": [1]}, {"enum": [1.0, "b"]}], LENIENT, False),
        ([{"enum": MANY}, {"enum": ["x", "y"]}], LENIENT, True),
        ([{"enum": MANY}, {"enum": ["x", "y"]}], GOOGLE_NON_STRICT, False),
        ([{"enum": ["a"]}, TEXT], LENIENT, False),
        ([{}, TEXT], LENIENT, False),
        ([tagged("a"), tagged("b")], LENIENT, True),
        ([tagged("a"), tagged("a")], LENIENT, False),
        ([tagged(f"t{n}") for n in range(70)], LENIENT, True),
        ([*[tagged(f"t{n}") for n in range(70)], TEXT], LENIENT, False),
        ([tagged(n) for n in range(70)], LENIENT, False),
        ([thing({"k": {"enum": [f"{n}", None]}}) for n in range(70)], LENIENT, False),
        ([thing({"k": {"const": "a"}}, []), tagged("b")], LENIENT, False),
        ([thing({"a": TEXT}), thing({"b": TEXT})], LENIENT, False),
        (
            [
                thing({"a": TEXT}, additionalProperties=False),
                thing({"b": TEXT}, additionalProperties=False),
            ],
            LENIENT,
            True,
        ),
        (
            [
                thing({"a": {"type": ["string", "null"]}}),
                thing({"a": {"type": ["integer", "null"]}}),
            ],
            LENIENT,
            False,
        ),
        ([PRICES, thing({"a": TEXT})], LENIENT, False),
        ([PRICES, thing({"a": TEXT})], PAIRS, True),
        ([PRICES, {"type": "array", "items": TEXT}], PAIRS, False),
        ([{"type": "array", "prefixItems": [TEXT]}, PRICES], LENIENT, True),
        (
            [{"type": "array", "prefixItems": [TEXT], "items": False}, tagged("a")],
            NUMBERED,
            True,
        ),
        (
            [
                {"type": "array", "prefixItems": [TEXT], "items": False},
                {"type": "array", "prefixItems": [NUMBER], "items": False},
            ],
            NUMBERED,
            False,
        ),
        (
            [
                {"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}]},
                NUMBER,
            ],
            LENIENT,
            True,
        ),
        ([{"anyOf": [TEXT, NUMBER]}, {"type": "boolean"}], LENIENT, True),
        ([{"anyOf": [TEXT, NUMBER]}, {"type": "integer"}], LENIENT, False),
        ([{"type": ["string", "null"]}, NUMBER], XAI_STRICT, True),
    ],
)
def test_one_of_stays_where_branches_are_apart(
    branches: List[Json], dialect: FormatDescriptor, apart: bool
) -> None:
    """What the dialect drops can then make no two of them fit."""
    emitted = to_json_schema(thing({"x": {"oneOf": branches}}), dialect)

    assert ("oneOf" in emitted["properties"]["x"]) is apart


def nest(node: Json, levels: int) -> Json:
    for _ in range(levels):
        node = thing({"n": node})
    return node


def test_comparing_is_bounded() -> None:
    """However deep and wide branches are, the answer comes, on the safe side."""
    deep = {"oneOf": [nest(tagged("a"), 40), nest(tagged("b"), 40)]}
    wide: Json = TEXT
    for _ in range(3):
        wide = {
            "anyOf": [
                thing({"a": wide, "m": PRICES, f"o{n}": TEXT}, ["a"]) for n in range(7)
            ]
        }

    assert "anyOf" in to_json_schema(thing({"x": deep}), LENIENT)["properties"]["x"]
    open_pairs = replace(PAIRS, id="open-pairs")
    kinds = {reason.kind for reason in explain(thing({"x": wide}), open_pairs)}
    assert "ambiguous" in kinds


@pytest.mark.parametrize(
    ("branches", "ambiguous"),
    [
        ([thing({"a": TEXT, "m": PRICES}), thing({"a": TEXT}, [])], True),
        ([thing({"a": TEXT, "m": PRICES}), thing({"a": TEXT, "m": PRICES})], False),
        ([thing({"m": PRICES}), thing({"m": {"type": "array", "items": TEXT}})], True),
        ([thing({"a": TEXT}, additionalProperties=PRICES), thing({"a": TEXT})], True),
        ([PRICES, PRICES], False),
        (
            [
                {"type": "object", "additionalProperties": PRICES},
                {"type": "object", "additionalProperties": {"type": "array"}},
            ],
            True,
        ),
        ([{"type": "array", "items": PRICES}, {"type": "array", "items": TEXT}], False),
        ([{}, thing({"m": PRICES})], True),
        ([{}, TEXT], False),
        (
            [
                {"type": "array", "prefixItems": [PRICES], "minItems": 1},
                {"type": "array", "items": TEXT},
            ],
            True,
        ),
    ],
)
def test_branches_that_are_read_differently(
    branches: List[Json], ambiguous: bool
) -> None:
    """Only what two branches would read differently is ambiguous."""
    reasons = explain(thing({"x": {"anyOf": branches}}), PAIRS)

    assert (any(reason.kind == "ambiguous" for reason in reasons)) is ambiguous


def test_any_in_pairs_beside_an_object() -> None:
    """Any value of OpenAI's dialect may be a list of pairs, and so may a map."""
    reasons = list(explain(thing({"x": {"anyOf": [{}, PRICES]}}), OPENAI_STRICT))

    assert "branches 0 and 1 may look the same on the wire" in [
        reason.message for reason in reasons
    ]
