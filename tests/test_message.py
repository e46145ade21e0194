"""Messages: what they hold, and that their JSON form loses nothing."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.message import Message, Part, Reasoning, ReasoningDetail, ToolCall

text = st.text(max_size=20)
maybe = st.none() | text
plain = st.dictionaries(text, st.none() | st.booleans() | st.integers() | text)
parts = (
    st.builds(Part.text, text)
    | st.builds(Part.image, text | st.binary(max_size=9), maybe)
    | st.builds(Part.file, text.map(lambda t: Path("x" + t.replace("\0", ""))), maybe)
    | st.builds(Part.audio, st.binary(max_size=9), maybe)
)
details = st.builds(
    ReasoningDetail,
    id=maybe,
    type=maybe,
    format=maybe,
    index=st.none() | st.integers(),
    summary=maybe,
    text=maybe,
    signature=maybe,
    data=maybe,
)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=text | st.lists(parts, max_size=3),
    name=maybe,
    tool_call_id=maybe,
    tool_calls=st.lists(st.builds(ToolCall, text, text, text, maybe), max_size=3),
    refusal=maybe,
    reasoning=st.none() | st.builds(Reasoning, text, st.lists(details, max_size=2)),
    tokens=st.none() | st.integers(),
    cache=st.none() | plain,
    native=st.none() | plain,
)


@given(messages)
def test_json_form_loses_nothing(message: Message) -> None:
    """``from_dict(to_dict(m)) == m``, also through JSON text and pickle."""
    through_json = json.loads(json.dumps(message.to_dict()))

    assert Message.from_dict(message.to_dict()) == message
    assert Message.from_dict(through_json) == message
    assert pickle.loads(pickle.dumps(message)) == message


def test_json_form_is_sparse() -> None:
    """What was not said has no key."""
    assert Message("user", "hi").to_dict() == {"role": "user", "content": "hi"}


BAD = [
    ({}, "lacks"),
    ([], "read from an object"),
    ({"role": "user", "text": "hi"}, "text"),
    ({"role": "user", "content": 5}, "content"),
    ({"role": "judge"}, "judge"),
    ({"role": "user", "content": [{"type": "text"}]}, "data"),
    ({"role": "user", "content": [{"type": "text", "data": 5}]}, "5"),
    ({"role": "user", "content": [{"type": "image", "data": {"x": 1}}]}, "x"),
    ({"role": "user", "tool_calls": [{"id": "1"}]}, "name"),
]


@pytest.mark.parametrize(("value", "words"), BAD)
def test_what_is_no_message_is_refused(value: Any, words: str) -> None:
    """``from_dict`` raises ValueError for whatever it cannot read, and says why."""
    with pytest.raises(ValueError, match=words):
        Message.from_dict(value)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: Message("user", 5), TypeError),
        (lambda: Message("user", [5]), TypeError),
        (lambda: Message("nobody", ""), ValueError),
        (lambda: Part("text", b"x"), TypeError),
        (lambda: Part("film", "x"), ValueError),
        (lambda: Part.image(5), TypeError),
    ],
)
def test_bad_values_are_refused(make: Any, kind: type[Exception]) -> None:
    """What cannot be is refused when it is made."""
    with pytest.raises(kind):
        make()


def test_text_of_parts() -> None:
    """``text`` is the text, whatever else stands beside it."""
    message = Message("user", ["a", Part.image(bytearray(b"x")), Part.text("b")])

    assert message.text == "ab"
    assert message.content[1] == Part.image(b"x")


def test_reasoning_continues() -> None:
    """Text is appended as it is; details join by id, else index, else type."""
    a = ReasoningDetail(id="1", text="a")
    by_index = ReasoningDetail(index=0, summary="s")

    total = (
        Reasoning("a ", (a,))
        + Reasoning("a ", (ReasoningDetail(id="1", text="b", signature="z"),))
        + Reasoning("", (by_index,))
        + Reasoning("", (ReasoningDetail(index=0, summary="t"),))
        + Reasoning("", (ReasoningDetail(type="x"),))
    )

    assert total == Reasoning(
        "a a ",
        (
            ReasoningDetail(id="1", text="ab", signature="z"),
            ReasoningDetail(index=0, summary="st"),
            ReasoningDetail(type="x"),
        ),
    )
    assert Reasoning("", (a, by_index)).text == "a\n\ns"
    assert (bool(Reasoning()), total.text) == (False, "a a ")


def test_repr_is_short() -> None:
    """A value prints what it says; bytes and long texts are cut."""
    assert repr(Message("user", "hi")) == "Message(role='user', content='hi')"
    assert repr(Part.image(b"x" * 99)) == "Part(type='image', data=<99 bytes>)"
    assert len(repr(Message("user", "x" * 9999))) < 2100
