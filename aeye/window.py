"""Histories: mending one that came from outside, and forgetting what no longer fits.

Pure functions over messages. A *group* is a message and the tool replies right
after it; a call and its replies are kept or forgotten together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import AbstractSet, Any, Callable, Mapping, Optional, Sequence

from .message import Message, ToolCall
from .usage import Usage

__all__ = [
    "DEFAULT_MAX_OUTPUT",
    "guess_tokens",
    "message_costs",
    "repair",
    "trim",
    "with_ids",
]

# Output tokens set aside where nobody says how many may be written.
DEFAULT_MAX_OUTPUT = 4096

INTERRUPTED = "[interrupted]"


def repair(
    messages: Sequence[Message],
    *,
    pending: AbstractSet[str] = frozenset(),
    strict: bool = False,
) -> tuple[Message, ...]:
    """Return *messages* with every tool call answered exactly once, right after it.

    Replies are moved behind their call; replies to nothing and second replies are
    dropped; calls of one message that share an id, or have none, get one each; a call
    without a reply is answered ``[interrupted]``, unless its id is in
    *pending*. The messages themselves are not changed.

    Raises:
        ValueError: *strict*, and something would have to be mended.
    """
    if not any(m.tool_calls or m.role == "tool" for m in messages):
        return tuple(messages)
    replies = _replies(messages)
    mended: list[Message] = []
    for at, message in enumerate(messages):
        if message.role == "tool":
            continue
        calls = with_ids(message.tool_calls)
        mended.append(
            message
            if calls == message.tool_calls
            else replace(message, tool_calls=calls, native=None)
        )
        for place, call in enumerate(calls):
            reply = replies.get((at, place))
            if reply is not None:
                same = reply.tool_call_id == call.id
                mended.append(reply if same else replace(reply, tool_call_id=call.id))
            elif call.id not in pending:
                mended.append(
                    Message("tool", INTERRUPTED, name=call.name, tool_call_id=call.id)
                )
    if strict and mended != list(messages):
        at = next(
            (i for i, pair in enumerate(zip(mended, messages)) if pair[0] != pair[1]),
            min(len(mended), len(messages)),
        )
        raise ValueError(
            f"messages: the history is broken at message {at}: a tool call is not "
            "answered exactly once, right after it (strict_history is set)"
        )
    return tuple(mended)


def with_ids(
    calls: tuple[ToolCall, ...], known: AbstractSet[str] = frozenset()
) -> tuple[ToolCall, ...]:
    """Return *calls* with ids that are there and differ, from those *known* too."""
    found: list[ToolCall] = []
    taken = set(known)
    for n, call in enumerate(calls, 1):
        fresh = call.id
        while not fresh or fresh in taken:
            fresh = f"{call.id or 'call'}_{n}"
            n += 1
        taken.add(fresh)
        found.append(call if fresh == call.id else replace(call, id=fresh))
    return tuple(found)


def _replies(messages: Sequence[Message]) -> dict[tuple[int, int], Message]:
    """Return the reply to each call, by the places of its message and in it.

    Replies to calls of one id are taken in their order.
    """
    found: dict[tuple[int, int], Message] = {}
    waiting: dict[str, list[tuple[int, int]]] = {}
    early: dict[str, Message] = {}
    for at, message in enumerate(messages):
        fresh: dict[str, list[tuple[int, int]]] = {}
        for place, call in enumerate(message.tool_calls):
            fresh.setdefault(call.id, []).append((at, place))
        for key, places in fresh.items():
            if key in early:
                found[places.pop(0)] = early.pop(key)
        waiting.update(fresh)
        if message.role == "tool" and message.tool_call_id is not None:
            key = message.tool_call_id
            if key not in waiting:
                early.setdefault(key, message)
            elif waiting[key]:
                found[waiting[key].pop(0)] = message
    return found


def message_costs(
    messages: Sequence[Message],
    estimate: Callable[[Message], Any] | None,
    usage: Usage | None,
) -> list[int] | None:
    """Return what each message costs in tokens, or None where that is unknown.

    A message's own ``tokens`` count first, then *estimate*, then an equal share of
    the input tokens that *usage* reports for all of them.
    """
    known: list[Optional[int]] = [
        message.tokens
        if message.tokens is not None
        else _tokens(estimate(message))
        if estimate is not None
        else None
        for message in messages
    ]
    unknown = known.count(None)
    if not unknown:
        return [cost or 0 for cost in known]
    reported = usage.input_tokens if usage is not None else 0
    if not reported:
        return None
    rest = max(reported - sum(cost or 0 for cost in known), 0)
    share = -(-rest // unknown)
    return [share if cost is None else cost for cost in known]


def _tokens(said: Any) -> int:
    """Read what ``estimate_usage`` gives: a Usage, its dict, or a number."""
    if isinstance(said, Mapping):
        said = Usage.from_dict(said)
    return said.total_tokens if isinstance(said, Usage) else int(said)


def guess_tokens(message: Message) -> int:
    """Return about how many tokens *message* is: one for four letters, four around it.

    >>> guess_tokens(Message("user", "How are you today?"))
    8
    """
    letters = len(message.text) + sum(len(c.arguments) for c in message.tool_calls)
    return 4 + letters // 4


def trim(
    messages: Sequence[Message],
    costs: Sequence[int],
    limit: int,
    given: Sequence[Message] | None = None,
) -> tuple[Message, ...]:
    """Forget the oldest groups until the rest costs at most *limit* tokens.

    System messages, the last user message and the latest group always stay. Where
    *given* are the messages that a run began with, what was asked stays too: the last
    user message that is among them, or the user turn where none is. For what a run
    itself says as a user is only what was wrong with an answer. When nothing else is
    left, what remains is returned although it does not fit.
    """
    excess = sum(costs) - limit
    groups = _groups(messages)
    users = [at for at, m in enumerate(messages) if m.role == "user"]
    kept = {*users[-1:], -1 if given is None else _asked(messages, given)}
    dropped: set[int] = set()
    for group in groups[:-1]:
        if excess <= 0:
            break
        if messages[group[0]].role == "system" or group[0] in kept:
            continue
        dropped.update(group)
        excess -= sum(costs[at] for at in group)
    return tuple(m for at, m in enumerate(messages) if at not in dropped)


def _asked(messages: Sequence[Message], given: Sequence[Message]) -> int:
    """Return the place of what was asked; -1 where nothing was."""
    # The very same first: a correction may say what another said in the history.
    same = {id(message) for message in given}
    users = [at for at, m in enumerate(messages) if m.role == "user"]
    for at in reversed(users):
        if id(messages[at]) in same:
            return at
    for at in reversed(users):
        if messages[at] in reversed(given):
            return at
    turn = next((at for at, m in enumerate(messages) if m.role != "system"), -1)
    return turn if turn >= 0 and messages[turn].role == "user" else -1


def _groups(messages: Sequence[Message]) -> list[list[int]]:
    groups: list[list[int]] = []
    for at, message in enumerate(messages):
        if message.role == "tool" and groups:
            before = messages[groups[-1][0]]
            if before.tool_calls or before.role == "tool":
                groups[-1].append(at)
                continue
        groups.append([at])
    return groups
