"""Whatever happens in a run, every list of messages that leaves it is whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeye.agent import Agent
from aeye.callback import attempt
from aeye.errors import PromptSuspend, ToolApprovalRequiredError, ToolInterrupt
from aeye.hooks import cancel_prompt, request_tool_approval, skip_tool
from aeye.memory import InMemoryStore, MemoryOptions
from aeye.message import Message
from aeye.testing import ScriptedModel, calls
from aeye.tools import Tool, tool


@tool
def good() -> str:
    """Work."""
    return "ok"


def _bad(args: Any) -> None:
    raise LookupError("bad")


def _stop(args: Any) -> None:
    raise ToolInterrupt


def _wait(args: Any) -> None:
    raise PromptSuspend


TOOLS = [
    good,
    Tool("bad", _bad, schema={}),
    Tool("stop", _stop, schema={}),
    Tool("wait", _wait, schema={}),
    Tool("guarded", lambda args: "ok", schema={}, approval=True),
]
NAMES = [*(made.name for made in TOOLS), "unknown"]
PLACES = ["on_tool_call", "on_tool_error", "on_tool_result"]
ACTIONS: list[Any] = [
    None,
    cancel_prompt("enough"),
    skip_tool("no"),
    request_tool_approval(),
    LookupError("hook"),
]


def check(messages: Any, *, waits: bool) -> None:
    """Every call is answered once, in order, right behind it; or still waits."""
    for at, message in enumerate(messages, start=1):
        asked = [call.id for call in message.tool_calls]
        replies = []
        for reply in messages[at : at + len(asked)]:
            if reply.role == "tool":
                replies.append(reply.tool_call_id)
        last = at + len(replies) == len(messages)
        if waits and last:
            assert replies == [name for name in asked if name in replies]
        else:
            assert replies == asked
    ids = [m.tool_call_id for m in messages if m.role == "tool"]
    assert len(ids) == len(set(ids))


@settings(max_examples=2 * settings.default.max_examples)
@given(
    batches=st.lists(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
        min_size=1,
        max_size=2,
    ),
    place=st.sampled_from(PLACES),
    action=st.sampled_from(ACTIONS),
    after=st.integers(0, 2),
    width=st.integers(1, 3),
    limit=st.sampled_from([1, 3]),
    policy=st.sampled_from(["message", "turn", "run"]),
    handler=st.sampled_from([None, True, False]),
    read=st.sampled_from([None, None, 4, 9]),
)
def test_every_call_is_answered_once(
    batches: list[list[str]],
    place: str,
    action: Any,
    after: int,
    width: int,
    limit: int,
    policy: Any,
    handler: bool | None,
    read: int | None,
) -> None:
    """Answers, errors, events and stores hold whole histories, come what may."""
    asked = 0

    def hook(args: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked <= after:
            return None
        if isinstance(action, Exception):
            raise action
        return action

    replies = [calls(*((name, {}) for name in names)) for names in batches]
    agent = Agent(
        "",
        ScriptedModel(*replies, "done").context(),
        tools=TOOLS,
        hook={place: hook},
        approvals=None if handler is None else lambda request: handler,
        memory=MemoryOptions(InMemoryStore(), policy),
    )
    chat = agent.session("s")
    request = chat.prompt("hi").max_turns(limit).with_tool_concurrency(width)

    events: list[Any] = []
    error: Any = None
    with request.stream() as stream:
        while error is None and (read is None or len(events) < read):
            event, error = attempt(next, stream)
            if error is None:
                events.append(event)

    check(chat.messages(), waits=False)
    for event in events:
        if event.type == "turn_start":
            check([*event.history, event.prompt], waits=False)
        elif event.type == "final":
            check(event.messages, waits=False)
    waits = isinstance(error, (ToolApprovalRequiredError, PromptSuspend))
    if not isinstance(error, StopIteration):
        check(getattr(error, "chat_history", ()), waits=waits)
        check(getattr(error, "messages", ()), waits=waits)
    assert request.state in ("completed", "errored", "cancelled")


def test_the_check_checks() -> None:
    """What is not whole does not pass."""
    call = calls(("good", {}, "c1")).to_message()
    reply = Message("tool", "ok", tool_call_id="c1")

    check([call, reply], waits=False)
    check([call], waits=True)
    for wrong in ([call], [call, reply, reply], [reply, call]):
        with pytest.raises(AssertionError):
            check(wrong, waits=False)
