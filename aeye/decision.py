"""What was decided about tool calls that wait."""

from __future__ import annotations

from typing import AbstractSet, Any, Dict, Iterable, Mapping, Sequence, Tuple

from .context import Result, Resume
from .message import Message, ToolCall

__all__ = [
    "REJECTED",
    "approved",
    "decided",
    "nest",
    "still_waits",
    "unanswered",
    "where_it_waits",
]

# What the model reads where consent was refused without a word.
REJECTED = "Tool approval was rejected."


def unanswered(messages: Sequence[Message]) -> list[ToolCall]:
    """Return the calls of a last assistant message that have no reply.

    >>> answer = Message("assistant", tool_calls=[ToolCall("c1", "pay")])
    >>> [call.id for call in unanswered([answer])]
    ['c1']
    """
    answered = set()
    for message in reversed(messages):
        if message.role != "tool":
            return [call for call in message.tool_calls if call.id not in answered]
        answered.add(message.tool_call_id)
    return []


def decided(
    calls: Sequence[ToolCall], decisions: Mapping[str, Any], known: AbstractSet[str]
) -> dict[str, Any]:
    """Return what *decisions* say about which of *calls*, checked.

    *known* are the ids of all calls of the history.

    Raises:
        ValueError: a decision about a call that nobody made.
        TypeError: a decision that is none.
    """
    unknown = sorted(set(decisions) - known)
    if unknown:
        raise ValueError(
            f"decisions: no call of the history has the id {unknown[0]!r}; those "
            f"that wait are {[call.id for call in calls]}"
        )
    found = {}
    for call in calls:
        said = decisions.get(call.id)
        if said is None:
            continue
        if said is not True and not isinstance(said, (bool, str, Result, Resume)):
            raise TypeError(
                f"decisions[{call.id!r}] is True, the text of a refusal or a Result, "
                f"not {said!r:.80}"
            )
        found[call.id] = REJECTED if said is False else said
    return found


def where_it_waits(
    place: Any,
) -> tuple[tuple[Message, ...], Mapping[str, Tuple[Message, ...]]]:
    """Return the messages to resume from, and those of runs inside calls.

    *place* is what a run raised or told when it began to wait, or messages.

    Raises:
        TypeError: it is something else.
    """
    messages = getattr(place, "messages", place)
    if not isinstance(messages, Iterable):
        raise TypeError(
            f"messages is the error that was raised or its messages, not {place!r:.80}"
        )
    return tuple(messages), getattr(place, "children", {})


def nest(
    decisions: Mapping[str, Any], children: Mapping[str, Tuple[Message, ...]]
) -> dict[str, Any]:
    """Return *decisions* with those about calls inside calls put in a ``Resume``.

    A run inside that nothing was said about has one too, which keeps where it waits.

    >>> nest({"a": True, "b/c": False}, {"b": (), "d": ()})
    {'a': True, 'b': Resume(messages=(), decisions={'c': False}), \
'd': Resume(messages=(), decisions={})}

    Raises:
        TypeError: *decisions* is no dict.
        ValueError: a decision about a call that no run inside one made.
    """
    if not isinstance(decisions, Mapping):
        raise TypeError(
            f"decisions is a dict of call id → decision, not {decisions!r:.80}"
        )
    found: Dict[str, Any] = {}
    inner: Dict[str, Dict[str, Any]] = {}
    for path, said in decisions.items():
        outer, slash, rest = path.partition("/")
        if slash and path not in children and outer in children:
            inner.setdefault(outer, {})[rest] = said
        else:
            found[path] = said
    for outer in children:
        if "/" in outer or outer in found:
            continue
        _check_inner(outer, inner.get(outer, {}), children[outer])
        below = {
            path.partition("/")[2]: messages
            for path, messages in children.items()
            if path.startswith(f"{outer}/")
        }
        found[outer] = Resume(children[outer], nest(inner.get(outer, {}), below))
    return found


def _check_inner(
    outer: str, said: Mapping[str, Any], messages: Sequence[Message]
) -> None:
    """Object here, where a caller hears it: in the call itself the model would."""
    known = {call.id for message in messages for call in message.tool_calls}
    for path in said if known else ():
        if path not in known and path.partition("/")[0] not in known:
            waiting = [f"{outer}/{call.id}" for call in unanswered(messages)]
            raise ValueError(
                f"decisions: no call inside {outer!r} has the id {path!r}; those that "
                f"wait are {waiting}"
            )


def still_waits(said: Any) -> bool:
    """Whether *said* only keeps where a run inside a call waits."""
    return isinstance(said, Resume) and all(map(still_waits, said.decisions.values()))


def approved(call_id: str, said: Any) -> list[str]:
    """Return the paths of the calls that *said*, about one, wants to be run.

    >>> approved("a", Resume((), {"b": True, "c": "no"})), approved("a", True)
    (['a/b'], ['a'])
    """
    if not isinstance(said, Resume):
        return [call_id] if said is True else []
    return [
        path
        for name, about in said.decisions.items()
        for path in approved(f"{call_id}/{name}", about)
    ]
