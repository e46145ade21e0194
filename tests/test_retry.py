"""Which errors pass by themselves, and what options can be."""

from __future__ import annotations

import errno
import math
import socket
from typing import Any

import pytest

from aeye.errors import (
    AbortedError,
    ProtocolError,
    RateLimitError,
    StatusError,
    TransportError,
)
from aeye.retry import (
    CompletionRetryContext,
    CompletionRetryOptions,
    is_transient,
    status_of,
)


def error(cls: Any = Exception, **fields: Any) -> BaseException:
    """Return an exception with attributes, as SDKs make them."""
    made = cls("x") if isinstance(cls, type) else cls
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def named(name: str, *bases: type) -> BaseException:
    return type(name, bases or (Exception,), {})("x")


def caused(outer: BaseException, inner: BaseException) -> BaseException:
    outer.__cause__ = inner
    return outer


def during(outer: BaseException, inner: BaseException, hide: bool) -> BaseException:
    outer.__context__ = inner
    outer.__suppress_context__ = hide
    return outer


def looped() -> BaseException:
    a, b = Exception("a"), Exception("b")
    a.__cause__, b.__cause__ = b, a
    return a


class Answer:
    status_code = 503


RESET = ConnectionResetError()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        *((error(status=n), True) for n in (408, 409, 425, 429, 500, 503, 599)),
        *((error(status=n), False) for n in (400, 401, 403, 404, 422, 499, 600)),
        (error(status_code=503), True),
        (error(code=503), True),
        (error(response=Answer()), True),
        (error(status="503"), False),
        (error(status=True), False),
        (error(code="503"), False),
        (error(code=5), False),
        (error(code=14), True),
        (error(code="econnreset"), True),
        (error(code="EWHATEVER"), False),
        (RESET, True),
        (BrokenPipeError(), True),
        (TimeoutError(), True),
        (socket.timeout(), True),
        (OSError(errno.EHOSTUNREACH, "x"), True),
        (OSError(errno.ENOENT, "x"), False),
        (socket.gaierror(socket.EAI_AGAIN, "x"), True),
        (socket.gaierror(socket.EAI_NONAME, "x"), False),
        (named("APIConnectionError"), True),
        (named("ReadTimeout", type("Timeout", (Exception,), {})), True),
        (named("SSLError", type("ConnectionError", (Exception,), {})), False),
        (named("AbortError"), False),
        (error(named("AbortError"), status=503), False),
        (AbortedError("x"), False),
        (TransportError("x"), True),
        (ProtocolError("x"), False),
        (StatusError("x", status=503), True),
        (RateLimitError("x", status=429, retry_after=60), True),
        (RateLimitError("x", status=429, retry_after=61), False),
        (ValueError("Request timed out"), False),
        (caused(ValueError(), RESET), True),
        (caused(ValueError(), error(status=503)), True),
        (caused(error(status=400), RESET), False),
        (caused(error(status=503), named("AbortError")), False),
        (during(ValueError(), RESET, hide=False), True),
        (during(ValueError(), RESET, hide=True), False),
        (looped(), False),
    ],
)
def test_what_passes(given: BaseException, expected: bool) -> None:
    """Types, statuses and codes decide, never the words of a message."""
    assert is_transient(given) is expected


def test_status() -> None:
    """A status is a whole number of HTTP's range, wherever SDKs keep it."""
    found = [
        status_of(error(**fields))
        for fields in (
            {"status": 500},
            {"status_code": 404},
            {"response": Answer()},
            {"code": 429},
            {"code": 14},
            {},
        )
    ]

    assert found == [500, 404, 503, 429, None, None]


@pytest.mark.parametrize(
    "fields",
    [
        {"max_attempts": 0},
        {"max_attempts": 1.5},
        {"max_attempts": True},
        {"initial_delay_ms": -1},
        {"initial_delay_ms": math.nan},
        {"initial_delay_ms": "100"},
        {"max_delay_ms": math.inf},
        {"max_delay_ms": 2**31},
        {"initial_delay_ms": 200, "max_delay_ms": 100},
        {"initial_delay_ms": 2000},
    ],
)
def test_numbers_out_of_range(fields: Any) -> None:
    """Options that cannot be are refused when they are made."""
    with pytest.raises(ValueError, match=next(iter(fields))):
        CompletionRetryOptions(**fields)


def test_a_classifier_is_a_function() -> None:
    """A flag, or a coroutine function, is none."""

    async def later(context: Any) -> bool:
        return True

    for wrong in (True, later):
        with pytest.raises(TypeError, match="should_retry"):
            CompletionRetryOptions(should_retry=wrong)  # type: ignore[arg-type]  # on purpose


def test_waits() -> None:
    """The cap doubles up to the greatest delay; luck is where below it."""
    options = CompletionRetryOptions(max_delay_ms=250)

    waits = [options.delay_ms(k, 1.0) for k in (1, 2, 3, 4, 10_000)]

    assert waits == [100, 200, 250, 250, 250]
    assert options.delay_ms(3, 0.0) == 0


def test_the_classifier_replaces_the_built_in_one() -> None:
    """What it returns is taken as true or false."""
    context = CompletionRetryContext(
        ValueError("x"), attempt=1, max_attempts=3, turn=1, streaming=False
    )

    wants = [
        CompletionRetryOptions(should_retry=fn).wants(context)
        for fn in (None, lambda context: "yes", lambda context: None)
    ]

    assert wants == [False, True, False]
