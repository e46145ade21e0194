"""Calling the user's functions with what their parameters ask for.

The first parameter gets the subject by position; any further one is filled by its
name. A sole parameter that is named ``ctx`` or annotated ``Context`` gets the
context. A class, or a callable whose signature cannot be read, gets the subject
only. All of that is found out once, when the function is handed over.
"""

from __future__ import annotations

import inspect
from types import GeneratorType
from typing import Any, Callable, Generator, Iterable, Mapping, TypeVar

from .errors import Signal

__all__ = [
    "Bound",
    "ask",
    "attempt",
    "attempt_all",
    "bind",
    "check_unread",
    "is_context",
    "listed",
    "refuse_async",
    "words",
]

T = TypeVar("T")
R = TypeVar("R")

Bound = Callable[[Any, Mapping[str, Any]], Any]

_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def bind(fn: Callable[..., Any], what: str, names: Iterable[str] = ("ctx",)) -> Bound:
    """Return ``call(subject, by_name)`` that gives *fn* what it asks for.

    *what* names the argument in errors; *names* are those that a caller of the
    result promises to have in *by_name*.

    >>> call = bind(lambda value, ctx: (value, ctx), "validate")
    >>> call(1, {"ctx": "the context"})
    (1, 'the context')

    Raises:
        TypeError: *fn* is not callable, is an ``async def``, or has a required
            parameter that nobody can fill.
    """
    if not callable(fn):
        raise TypeError(f"{what} is a function, not {fn!r:.80}")
    refuse_async(fn, what)
    known = tuple(names)
    if inspect.isclass(fn):
        return lambda subject, by_name: fn(subject)
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return lambda subject, by_name: fn(subject)
    return _bound(fn, what, known, parameters)


def attempt(fn: Callable[..., Any], *args: Any) -> tuple[Any, Exception | None]:
    """Call *fn* of the user's, which may fail without ending the run.

    >>> attempt(int, "7")
    (7, None)
    """
    try:
        return fn(*args), None
    except Exception as exc:  # noqa: BLE001  # the one broad catch: code that is not ours
        return None, exc


def attempt_all(
    steps: Generator[T, None, R],
) -> Generator[T, None, tuple[R | None, Exception | None]]:
    """Hand on what *steps* yields; return what it returns and what it raised."""
    try:
        return (yield from steps), None
    except Exception as exc:  # noqa: BLE001  # as above, for code that yields
        return None, exc


def words(error: Exception) -> str:
    """Return what *error* says; its class too, where that alone says nothing.

    >>> words(ValueError("too big")), words(KeyError("city")), words(ValueError())
    ('too big', "KeyError: 'city'", 'ValueError')
    """
    text, failed = attempt(str, error)
    name = type(error).__name__
    if failed is not None or not text:
        return name
    return f"{name}: {text}" if isinstance(error, KeyError) else str(text)


def ask(fn: Bound, subject: Any, ctx: Any) -> tuple[Any, Exception | None]:
    """Call a parse or validate of the user's, which objects by raising or returning.

    Signals pass through: they are for the run, no objection.
    """
    result, error = attempt(fn, subject, {"ctx": ctx})
    if isinstance(error, Signal):
        raise error
    if isinstance(result, Exception):
        return None, result
    return result, error


def _bound(
    fn: Callable[..., Any],
    what: str,
    known: tuple[str, ...],
    parameters: list[inspect.Parameter],
) -> Bound:
    if not parameters:
        return lambda subject, by_name: fn()
    first, rest = parameters[0], parameters[1:]
    takes_subject = first.kind in (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL)
    named = rest if takes_subject else parameters
    wanted = [p.name for p in named if p.name in known and _by_name(p)]
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in named):
        wanted = [name for name in known if name != first.name or not takes_subject]
    for p in named:
        if p.default is p.empty and p.name not in wanted and not _variadic(p):
            raise TypeError(
                f"{what}: {_name(fn)} asks for {p.name!r}, which nobody can fill; "
                f"after the first parameter the names are {sorted(known)}"
            )
    if takes_subject and not wanted and len(parameters) == 1 and _is_context(first):
        return lambda subject, by_name: fn(by_name["ctx"])
    return _caller(fn, takes_subject, wanted)


def _caller(fn: Callable[..., Any], takes_subject: bool, wanted: list[str]) -> Bound:
    if not takes_subject:
        return lambda subject, by_name: fn(**{k: by_name[k] for k in wanted})
    if not wanted:
        return lambda subject, by_name: fn(subject)
    if wanted == ["ctx"]:
        return lambda subject, by_name: fn(subject, ctx=by_name["ctx"])
    return lambda subject, by_name: fn(subject, **{k: by_name[k] for k in wanted})


def listed(given: Iterable[T], what: str) -> tuple[T, ...]:
    """Return what *given*, the argument named *what*, holds.

    >>> listed(3, "observers")
    Traceback (most recent call last):
    TypeError: observers is a list, not 3
    """
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"{what} is a list, not {given!r:.80}")
    return tuple(given)


def check_unread(events: object) -> None:
    """Raise RuntimeError where *events* are being read, here or by another thread."""
    if isinstance(events, GeneratorType) and events.gi_running:
        raise RuntimeError(
            "the stream is being read, by another thread or by what called this: set "
            "the signal of the context to end the run from here"
        )


def refuse_async(fn: object, what: str) -> None:
    """Raise TypeError when calling *fn* would give something to await."""
    call = getattr(type(fn), "__call__", None)  # noqa: B004  # an instance's own __call__
    inner = getattr(fn, "func", fn)  # functools.partial
    if any(
        inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f)
        for f in (fn, inner, call)
    ):
        raise TypeError(
            f"{what}: {_name(fn)} is an 'async def'; aeye is synchronous and awaits "
            "nothing: give a plain function"
        )


def is_context(annotation: object) -> bool:
    """Whether *annotation* names ``Context``, as a class or in text."""
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].strip("'\"") == "Context"
    # The class lives in a module that needs this one, and so is known by its mark.
    return getattr(annotation, "is_aeye_context", False) is True


def _is_context(p: inspect.Parameter) -> bool:
    return p.name == "ctx" or is_context(p.annotation)


def _by_name(p: inspect.Parameter) -> bool:
    return p.kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    )


def _variadic(p: inspect.Parameter) -> bool:
    return p.kind in (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    )


def _name(fn: object) -> str:
    return str(getattr(fn, "__qualname__", None) or repr(fn)[:80])
