"""Finding JSON in an answer."""

from __future__ import annotations

import json
from typing import Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.context import Context
from aeye.decode import wrap_root
from aeye.output import Accepted, Check, find_json, truncate
from aeye.request import ResponseFormat
from aeye.schema import Schema

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
prose = st.text(alphabet="abc .,:'!?\n", max_size=20)


@given(values)
def test_json_is_itself(value: object) -> None:
    """Text that is JSON is read as it is, with any space around it."""
    assert find_json(f" {json.dumps(value)}\n") == value


@given(st.dictionaries(st.text(max_size=5), values, max_size=3), prose, prose)
def test_objects_amid_prose(value: object, before: str, after: str) -> None:
    """An object is found in a fence or amid prose."""
    text = json.dumps(value)

    assert find_json(f"{before}{text}{after}", want_object=True) == value
    assert find_json(f"{before}\n```json\n{text}\n```\n{after}") == value


def test_arrays_amid_prose() -> None:
    """An array is found too, unless an object is wanted."""
    assert find_json("Here: [1, 2].") == [1, 2]
    assert find_json('See [1]: {"a": 1}', want_object=True) == {"a": 1}
    assert find_json("as `{this}`: ```[1]```") == [1]


@pytest.mark.parametrize("text", ["", "  ", "no", '{"a": ', "[1, 2", "{{{{", '{"a'])
def test_what_is_no_json(text: str) -> None:
    """What has no JSON in it raises ValueError."""
    with pytest.raises(ValueError):
        find_json(text)


@pytest.mark.parametrize("unit", ["{", "[", '{"a":', '{"', "[\\"])
def test_hostile_text_costs_little(unit: str) -> None:
    """Brackets without end are given up after a bounded number of tries."""
    with pytest.raises(ValueError):
        find_json(unit * 100_000)


def test_truncate() -> None:
    """A cut text says how much is missing; a limit of 0 or less never cuts."""
    assert truncate("abcdef", 3) == "abc… (3 more characters)"
    assert (truncate("abc", 3), truncate("abc", 0), truncate("abc", -1)) == ("abc",) * 3


@pytest.mark.parametrize("dialect", ["openai-strict", "anthropic-strict", "lenient"])
def test_a_map_in_any_shape(dialect: str) -> None:
    """A map is read as it was asked for, bare, and in the source's own spelling."""
    schema = Schema(Dict[str, int])
    sent = ResponseFormat(wrap_root(schema), descriptor=dialect)
    texts = ['{"value": {"a": 1}}', '{"a": 1}']
    if dialect != "lenient":
        texts.append('{"value": [{"key": "a", "value": 1}]}')
        texts.append('[{"key": "a", "value": 1}]')

    for text in texts:
        assert Check(schema)(text, sent, Context()) == Accepted({"a": 1})


def test_a_bare_answer_is_decoded_too() -> None:
    """Where the root went out wrapped, a bare answer is brought back all the same."""
    schema = Schema(list[Dict[str, int]])
    sent = ResponseFormat(wrap_root(schema), descriptor="openai-strict")
    inner = '[[{"key": "a", "value": 1}]]'

    for text in (inner, f'{{"value": {inner}}}'):
        assert Check(schema)(text, sent, Context()) == Accepted([{"a": 1}])
