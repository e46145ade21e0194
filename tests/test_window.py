"""Histories: repair gives pairs, trimming keeps them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.message import Message, ToolCall
from aeye.usage import Usage
from aeye.window import message_costs, repair, trim

ids = st.sampled_from("abc")
messages = st.one_of(
    st.builds(lambda t: Message("user", t), st.sampled_from("xy")),
    st.builds(lambda: Message("system", "s")),
    st.builds(
        lambda found: Message(
            "assistant", "", tool_calls=tuple(ToolCall(i, "t") for i in found)
        ),
        st.lists(ids | st.just(""), max_size=3),
    ),
    st.builds(lambda i: Message("tool", "r" + i, tool_call_id=i), ids),
)


def paired(history: Any) -> bool:
    """Whether every call, and nothing else, is answered once, right after it."""
    rest = list(history)
    while rest:
        message = rest.pop(0)
        if message.role == "tool":
            return False
        if len({call.id for call in message.tool_calls} - {""}) < len(
            message.tool_calls
        ):
            return False
        for call in message.tool_calls:
            if not rest or rest.pop(0).tool_call_id != call.id:
                return False
    return True


@given(st.lists(messages, max_size=9))
def test_repair_pairs(history: list[Message]) -> None:
    """Whatever comes in, what goes out is paired; mending twice is mending once."""
    before = list(history)

    mended = repair(history)

    assert paired(mended)
    assert repair(mended) == mended
    assert history == before
    spoken = [m.text for m in history if m.role != "tool"]
    assert [m.text for m in mended if m.role != "tool"] == spoken


@given(st.lists(messages, max_size=9))
def test_strict_raises_where_repair_would_mend(history: list[Message]) -> None:
    """A strict reading raises exactly where repair would change something."""
    if repair(history) == tuple(history):
        assert repair(history, strict=True) == tuple(history)
    else:
        with pytest.raises(ValueError, match="strict_history"):
            repair(history, strict=True)


def test_calls_of_one_id_are_told_apart() -> None:
    """Calls that share an id get one each; their replies are taken in order."""
    call = Message("assistant", tool_calls=(ToolCall("", "a"), ToolCall("", "b")))
    replies = [Message("tool", text, tool_call_id="") for text in ("1", "2", "3")]

    mended = repair([call, *replies])

    ids = [c.id for c in mended[0].tool_calls]
    assert [m.tool_call_id for m in mended[1:]] == ids
    assert [m.text for m in mended[1:]] == ["1", "2"]


def test_pending_calls_stay_open() -> None:
    """A call that waits for a decision is not answered."""
    call = Message("assistant", tool_calls=(ToolCall("a", "t"), ToolCall("b", "t")))

    mended = repair([call], pending={"a"})

    assert [m.tool_call_id for m in mended[1:]] == ["b"]
    assert mended[1].text == "[interrupted]"


@given(st.lists(messages, max_size=12), st.integers(-5, 200))
def test_trim_keeps_what_must_stay(history: list[Message], limit: int) -> None:
    """System messages, the last user message and the latest group always stay."""
    whole = repair(history)
    costs = [10] * len(whole)

    kept = trim(whole, costs, limit)

    assert paired(kept)
    systems = [m for m in whole if m.role == "system"]
    assert [m for m in kept if m.role == "system"] == systems
    users = [m for m in whole if m.role == "user"]
    assert not users or users[-1] in kept
    assert not whole or kept[-1] == whole[-1]
    if sum(costs) <= limit:
        assert kept == whole


def test_trim_forgets_the_oldest_first() -> None:
    """Groups go oldest first, and only as many as needed."""
    history = [
        Message("system", "s"),
        Message("user", "u1"),
        Message("assistant", "", tool_calls=(ToolCall("a", "t"),)),
        Message("tool", "r", tool_call_id="a"),
        Message("user", "u2"),
        Message("assistant", "a2"),
        Message("user", "u3"),
    ]

    assert [m.text for m in trim(history, [10] * 7, 40)] == ["s", "u2", "a2", "u3"]


def test_costs() -> None:
    """A message's own number first, then the estimate, then an equal share."""
    said = [Message("user", "x", tokens=5), Message("user", "y"), Message("user", "z")]

    assert message_costs(said, None, Usage.of(input=11)) == [5, 3, 3]
    assert message_costs(said, lambda m: {"text": {"input": 2}}, None) == [5, 2, 2]
    assert message_costs(said, lambda m: Usage.of(input=1), None) == [5, 1, 1]
    assert message_costs(said, None, None) is None
