"""Contexts and Abort: read-only, helpful, and heard from anywhere."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import pytest

from aeye.context import Abort, Context
from aeye.message import Message
from aeye.response import Response


def answer(request: Any) -> Response:
    return Response("hi")


def test_app_fields_are_attributes() -> None:
    """Whatever else is passed becomes an attribute; others are named in the error."""
    ctx = Context(db={"a": 1})

    assert ctx.db == {"a": 1}
    with pytest.raises(AttributeError, match="no 'user'"):
        _ = ctx.user


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("message", "messages"),
        ("mesages", "messages"),
        ("signals", "signal"),
        ("steam", "stream"),
        ("exceute", "execute"),
        ("user_turns", "user_turn"),
    ],
)
def test_slips_are_refused(name: str, ours: str) -> None:
    """A name one edit away from one of ours is refused, and the right one named."""
    with pytest.raises(TypeError, match=f"did you mean '{ours}'"):
        Context(**{name: 1})
    with pytest.raises(TypeError, match=ours):
        Context().replace(**{name: 1})


def test_read_only() -> None:
    """A context cannot be changed, only copied with changes."""
    ctx = Context(user="ann")

    with pytest.raises(AttributeError, match=r"ctx.replace\(user=…\)"):
        ctx.user = "bob"
    with pytest.raises(AttributeError):
        del ctx.user
    other = ctx.replace(user="bob", messages=[Message("user", "x")])

    assert (ctx.user, other.user, len(other.messages)) == ("ann", "bob", 1)


async def later(request: Any) -> Response:
    return Response("hi")


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"execute": 5}, TypeError, "execute is a function"),
        ({"execute": later}, TypeError, "async def"),
        ({"messages": ["hi"]}, TypeError, "Message.from_dict"),
        ({"signal": object()}, TypeError, "is_set"),
        ({"output_retries": -1}, ValueError, "output_retries"),
        ({"context_window": "8k"}, TypeError, "context_window"),
    ],
)
def test_bad_fields(fields: Any, kind: type[Exception], words: str) -> None:
    """What cannot be is refused at the door, by name."""
    with pytest.raises(kind, match=words):
        Context(**fields)


def test_of() -> None:
    """A dict or None is taken wherever a Context is; anything else is refused."""
    ctx = Context()

    assert Context.of(ctx) is ctx
    assert Context.of({"user": 1}).user == 1
    assert Context.of(None).messages == ()
    with pytest.raises(TypeError, match="ctx is a Context or a dict"):
        Context.of(5)  # type: ignore[arg-type]


def test_repr_shows_no_secret() -> None:
    """App fields are shown by name only: a password may be among them."""
    ctx = Context(token="sk-123", execute=answer, output_retries=1, user_turn="Go")

    assert repr(ctx) == "Context(execute=…, output_retries=1, token=…, user_turn='Go')"


def test_copies() -> None:
    """A context can be pickled and copied, and still works."""
    ctx = Context(execute=answer, signal=Abort(), user="ann")

    for twin in (pickle.loads(pickle.dumps(ctx)), copy.deepcopy(ctx), copy.copy(ctx)):
        assert (twin.user, twin.bound("execute")(None, {}).content) == ("ann", "hi")


def test_closing() -> None:
    """``close`` and ``with`` are there for every context."""
    closed: list[bool] = []

    with Context().replace(_close=lambda: closed.append(True)):
        pass
    Context().close()

    assert closed == [True]


def test_abort_is_heard_once() -> None:
    """Watchers are called once, late ones at once; an undo takes one back."""
    abort, heard = Abort(), []
    abort.watch(lambda: heard.append("a"))
    undo = abort.watch(lambda: heard.append("b"))

    undo()
    abort.set()
    abort.set()
    abort.watch(lambda: heard.append("c"))()

    assert (heard, abort.is_set(), repr(abort)) == (["a", "c"], True, "<Abort set>")


@pytest.mark.parametrize("signal", [Abort(), threading.Event()])
def test_linked_aborts(signal: Any) -> None:
    """A linked Abort follows its parent, whatever kind that is, and not the reverse."""
    child, unlink = Abort.linked(signal)
    other, _ = Abort.linked(signal)

    other.set()
    assert (child.is_set(), signal.is_set()) == (False, False)
    signal.set()

    assert child.is_set() and child.wait(5)
    unlink()


@pytest.mark.parametrize("signal", [Abort(), threading.Event()])
def test_aborts_linked_to_linked_ones(signal: Any) -> None:
    """A run inside a run inside a run hears the signal that the first was given."""
    outer, _ = Abort.linked(signal)
    inner, _ = Abort.linked(outer)
    inmost, _ = Abort.linked(inner)

    signal.set()

    assert inmost.is_set() and inmost.wait(5)


def test_waiting() -> None:
    """``wait`` ends early when another thread sets the abort."""
    abort = Abort()
    threading.Timer(0.01, abort.set).start()

    assert abort.wait(30)
    assert not Abort().wait(0)
    assert pickle.loads(pickle.dumps(abort)).is_set()
