"""Reading JSON that a model wrote, and writing it canonically."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.schema import canonical_json, parse_json

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab\u00e9"), inner),
    max_leaves=25,
)


@given(JSON, st.booleans())
def test_parsing_inverts_writing(value: Any, escaped: bool) -> None:
    """What json.dumps writes is read as it was."""
    assert parse_json(json.dumps(value, ensure_ascii=escaped)) == value
    assert parse_json(canonical_json(value).encode()) == value


@given(st.text() | st.text('{}[]":,\\u0123dD8ce-+.naNInfity ') | st.binary())
def test_any_text_is_read_or_a_value_error(text: Any) -> None:
    """Whatever a model writes: plain JSON, or a ValueError."""
    try:
        value = parse_json(text)
    except ValueError:
        return
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NaN", "NaN is not JSON"),
        ('{"a": [-Infinity]}', "-Infinity is not JSON"),
        ("1e999", "1e999 is out of range"),
        ("9" * 5000, "an integer of 5000 digits is too long"),
        ("[" * 201 + "]" * 201, "nests more than 200 levels deep"),
        ('{"a":' * 100_000, "nests more than 200 levels deep"),
        ("[" * 100_000, "nests more than 200 levels deep"),
        ('["\\ud800"]', "half of a surrogate pair"),
        ('{"\\uDEAD": 1}', "half of a surrogate pair"),
        ('"\ud800"', "half of a surrogate pair"),
        ("", "Expecting value"),
        ('{"a": 1', "Expecting"),
        ("1 2", "Extra data"),
        (b"\xff", "utf-8"),
    ],
)
def test_hostile_text_is_a_clear_error(text: Any, message: str) -> None:
    """Each kind of bad text has its own short message."""
    with pytest.raises(ValueError, match=message) as caught:
        parse_json(text)

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ('"\\\\ud800"', "\\ud800"),
        ("9" * 4300, int("9" * 4300)),
        ("-0.0", -0.0),
        ("1e-999", 0.0),
        ("[" * 200 + "]" * 200, None),
        ("[" + "[]," * 300 + "[]]", [[]] * 301),
        (" [1] ", [1]),
    ],
)
def test_unusual_text_is_read(text: str, value: Any) -> None:
    """Unusual is not bad: repeated keys, pairs, long numbers, many brackets."""
    read = parse_json(text)

    assert value is None or read == value


def test_types_stay_apart() -> None:
    """Canonical text tells 1, 1.0 and true apart, and not the order of keys."""
    assert [canonical_json(value) for value in (1, 1.0, True)] == ["1", "1.0", "true"]
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        canonical_json(math.nan)
