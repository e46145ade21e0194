"""Calling the user's functions with what they ask for."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from aeye.callback import ask, bind
from aeye.context import Context
from aeye.errors import ToolInterrupt

NAMED = {"ctx": "the ctx", "input": "the input"}


class Callable:
    def __call__(self, value: Any, *, input: Any) -> Any:
        return value, input

    def method(self, ctx: Any) -> Any:
        return ctx


class AsyncCallable:
    async def __call__(self, value: Any) -> Any:
        return value


def annotated(given: Context) -> Any:
    return given


def annotated_text(given: Context) -> Any:
    return given


FUNCTIONS: list[tuple[Any, Any]] = [
    (lambda value: value, "subject"),
    (lambda: "nothing", "nothing"),
    (lambda value, ctx: (value, ctx), ("subject", "the ctx")),
    (
        lambda value, input, ctx=1: (value, input, ctx),
        ("subject", "the input", "the ctx"),
    ),
    (lambda value, other=5: (value, other), ("subject", 5)),
    (lambda ctx: ctx, "the ctx"),
    (lambda *, ctx: ctx, "the ctx"),
    (lambda value, **rest: (value, rest), ("subject", NAMED)),
    (lambda *args: args, ("subject",)),
    (lambda ctx, input: (ctx, input), ("subject", "the input")),
    (annotated, "the ctx"),
    (annotated_text, "the ctx"),
    (Callable(), ("subject", "the input")),
    (Callable().method, "the ctx"),
    (functools.partial(lambda a, value: (a, value), 1), (1, "subject")),
    (str, "subject"),
    (len, 7),
    (dict.fromkeys, dict.fromkeys("subject")),
]


@pytest.mark.parametrize(("fn", "expected"), FUNCTIONS)
def test_functions_get_what_they_ask_for(fn: Any, expected: Any) -> None:
    """The first parameter gets the subject, others by name, a sole ctx the ctx."""
    assert bind(fn, "fn", ("ctx", "input"))("subject", NAMED) == expected


def test_unknown_names_are_refused_at_definition() -> None:
    """A required parameter that nobody can fill is an error that names it."""
    with pytest.raises(TypeError, match="'wat', which nobody can fill"):
        bind(lambda value, wat: 1, "validate", ("ctx",))
    with pytest.raises(TypeError, match="validate is a function"):
        bind(5, "validate")  # type: ignore[arg-type]


async def later(value: Any) -> Any:
    return value


async def stream(value: Any) -> Any:
    yield value


@pytest.mark.parametrize(
    "fn", [later, stream, AsyncCallable(), functools.partial(later)]
)
def test_async_is_refused(fn: Any) -> None:
    """Whatever would have to be awaited is refused, in all its disguises."""
    with pytest.raises(TypeError, match="async def"):
        bind(fn, "validate")


def test_asking() -> None:
    """An objection is raised or returned; a signal passes through."""

    def stop(value: Any) -> None:
        raise ToolInterrupt

    error = ValueError("no")

    assert ask(bind(lambda v: v + 1, "fn"), 1, None) == (2, None)
    assert ask(bind(lambda v: error, "fn"), 1, None) == (None, error)
    assert isinstance(ask(bind(lambda v: v / 0, "fn"), 1, None)[1], ZeroDivisionError)
    with pytest.raises(ToolInterrupt):
        ask(bind(stop, "fn"), 1, None)
