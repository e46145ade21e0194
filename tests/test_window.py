"""Histories: repair gives pairs, trimming and forgetting keep them."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.context import Context
from aeye.errors import ContextLengthError
from aeye.message import Message, ToolCall
from aeye.prompt import Prompt
from aeye.request import Request
from aeye.testing import ScriptedModel, calls
from aeye.tools import tool
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


@given(
    st.lists(messages, max_size=6), st.lists(messages, max_size=6), st.integers(-5, 99)
)
def test_trim_keeps_what_was_asked(
    before: list[Message], run: list[Message], limit: int
) -> None:
    """The last user message that a run was given stays, whatever it said itself."""
    history = repair(before)
    said = [Message("user", f"wrong: {m.text}") if m.role == "user" else m for m in run]
    whole = repair([*history, *said])
    costs = [10] * len(whole)

    kept = trim(whole, costs, limit, history)

    assert paired(kept)
    asked = [m for m in history if m.role == "user"]
    assert not asked or asked[-1] in kept
    corrections = [m for m in whole if m.role == "user" and m not in history]
    assert not corrections or corrections[-1] in kept
    must = {id(m) for m in (*asked[-1:], *corrections[-1:])}
    loose = [m for m in kept if m.role == "user" and id(m) not in must]
    if sum(costs[: len(kept)]) > limit and asked:
        assert len(loose) <= (kept[-1].role == "user")


def test_trim_keeps_the_user_turn() -> None:
    """Where a run was given no user message, its user turn is what was asked."""
    turn, wrong = Message("user", "Begin."), Message("user", "The output was invalid")
    answer = Message("assistant", "{")
    whole = [Message("system", "s"), turn, answer, wrong, answer, wrong]

    assert trim(whole, [10] * 6, 0, ()) == (whole[0], turn, wrong)
    assert trim([answer, wrong, answer, wrong], [10] * 4, 0, ()) == (wrong,)


# Forgetting in a run

QUESTION = Message("user", "What is the answer?")
OLD = [Message("user", "Hello."), Message("assistant", "Hi.")]


@tool
def look(n: int) -> str:
    """Look."""
    return f"saw {n}"


class Plain(Prompt[Any]):
    """A prompt that notes what was forgotten, in lists of its own."""

    def forget(self, request: Request, ctx: Context, usage: Usage | None) -> Any:
        copies = [Message.from_dict(m.to_dict()) for m in request.messages]
        kept = self.shorten(request.with_messages(copies), ctx, usage)
        ctx.forgotten.append((request.messages, kept))
        return iter(kept)

    def shorten(self, request: Request, ctx: Context, usage: Usage | None) -> Any:
        return super().forget(request, ctx, usage)


class Summary(Plain):
    """A prompt that puts words in the place of what is old, careless of pairs."""

    def shorten(self, request: Request, ctx: Context, usage: Usage | None) -> Any:
        if request.messages[-1] == QUESTION:
            return request.messages
        system, last = request.messages[0], request.messages[-2:]
        return [system, Message("user", "So far: nothing."), QUESTION, *last]


def send(prompt: Prompt[Any], ctx: Context) -> Any:
    return prompt.request({}, ctx).max_turns(50).send().parsed


def call(prompt: Prompt[Any], ctx: Context) -> Any:
    return prompt({}, ctx)


@pytest.mark.parametrize("kind", [Plain, Summary])
@pytest.mark.parametrize("door", [call, send])
@given(
    st.lists(st.sampled_from(["call", "two", "bad"]), max_size=12),
    st.integers(10, 90),
    st.booleans(),
)
def test_a_long_loop_keeps_the_question(
    door: Callable[..., Any],
    kind: type[Plain],
    turns: list[str],
    window: int,
    sent: bool,
) -> None:
    """However long a run calls tools and is corrected, the question is not forgotten.

    What is sent after an overflow is paired, keeps the order, and holds the question
    and the last correction, although both are user messages.
    """
    replies: dict[str, Any] = {
        "call": calls(("look", {"n": 1})),
        "two": calls(("look", {"n": 1}), ("look", {"n": 2})),
        "bad": '{"v": "no number"}',
    }
    overflow = ContextLengthError("too long", status=400)
    model = ScriptedModel(*map(replies.get, turns), overflow, '{"v": 3}')
    ctx = model.context(
        messages=[*OLD, QUESTION] if sent else (),
        user_turn=QUESTION.text,
        context_window=window + 5,
        max_output_tokens=5,
        estimate_usage=lambda message: 5,
        forgotten=[],
    )
    prompt = kind(
        "p",
        "System.",
        tools=[look],
        schema={"type": "object", "properties": {"v": {"type": "number"}}},
        output_retries=20,
        tool_iterations=20,
        tool_execution="sequential",
    )

    try:
        assert door(prompt, ctx) == {"v": 3}
    except ContextLengthError:
        before, kept = ctx.forgotten[-1]
        assert list(before) == list(kept)
        return
    before, after = model.requests[-2].messages, model.requests[-1].messages
    assert paired(after)
    assert QUESTION in after
    assert [m for m in after if m.role == "system"] == [before[0]]
    if kind is Plain:
        assert after[-1] == before[-1]
        assert [m for m in before if m.role == "user"][-1] in after
        rest = iter(before)
        assert all(any(m == old for old in rest) for m in after)


@pytest.mark.parametrize("given", [None, ["text"], Message("user", "text")])
def test_forget_gives_messages(given: Any) -> None:
    """A forget that gives anything else is named."""

    class Odd(Prompt[str]):
        def forget(self, request: Any, ctx: Any, usage: Any) -> Any:
            return given

    ctx = ScriptedModel("ok").context(messages=[QUESTION])
    if isinstance(given, Message):
        assert Odd("odd", "x")({}, ctx) == "ok"
        return
    with pytest.raises(TypeError, match="forget of prompt 'odd' gives Message values"):
        Odd("odd", "x")({}, ctx)


def test_a_forgotten_system_message_is_written_anew() -> None:
    """A dynamic prompt replaces its system message alone, where there is one."""

    class Without(Prompt[str]):
        def forget(self, request: Any, ctx: Any, usage: Any) -> Any:
            return request.messages[1:]

    model = ScriptedModel(calls(("look", {"n": 1})), "ok")
    prompt = Without("p", "System.", tools=[look], dynamic=True)

    prompt({}, model.context(messages=[QUESTION]))

    assert [m.role for m in model.requests[0].messages] == ["user"]
    roles = [m.role for m in model.requests[1].messages]
    assert roles == ["system", "user", "assistant", "tool"]


def test_costs() -> None:
    """A message's own number first, then the estimate, then an equal share."""
    said = [Message("user", "x", tokens=5), Message("user", "y"), Message("user", "z")]

    assert message_costs(said, None, Usage.of(input=11)) == [5, 3, 3]
    assert message_costs(said, lambda m: {"text": {"input": 2}}, None) == [5, 2, 2]
    assert message_costs(said, lambda m: Usage.of(input=1), None) == [5, 1, 1]
    assert message_costs(said, None, None) is None


def test_a_correction_that_was_said_before_is_not_what_was_asked() -> None:
    """What was asked stays, though a correction says the same as one before it."""
    asked, wrong = Message("user", "more"), Message("assistant", "?")
    given = [Message("user", "Mend it."), wrong, asked]
    messages = [*given, wrong, Message("user", "Mend it."), wrong]

    kept = trim(messages, [10] * len(messages), 1, given)

    assert asked in kept
