"""Asking a model again: how often, after what wait, and which errors pass by.

These retries are on top of the transport's own, and off until asked for. They
repeat one model call, never tools, hooks or the run.
"""

from __future__ import annotations

import errno
import math
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional

from .callback import bind
from .errors import ProviderError

__all__ = [
    "CompletionRetryContext",
    "CompletionRetryOptions",
    "is_transient",
    "status_of",
]

# Seconds. A vendor that asks to wait longer is not asked again.
MAX_RETRY_AFTER = 60.0
_MAX_MS = 2**31 - 1

_STATUSES = frozenset((408, 409, 425, 429))
# Class names, so that the errors of SDKs are known without importing them.
_NEVER = frozenset(
    (
        "AbortError",
        "AbortedError",
        "CancelledError",
        "InvalidURL",
        "MissingSchema",
        "SSLError",
    )
)
_PASSING = frozenset(
    (
        "APIConnectionError",
        "APIConnectionTimeoutError",
        "APITimeoutError",
        "ChunkedEncodingError",
        "ConnectionError",
        "Timeout",
        "TimeoutError",
        "timeout",  # socket.timeout, before Python 3.10
    )
)
_CODES = frozenset(
    (
        "DEADLINE_EXCEEDED",
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ECONNRESET",
        "EHOSTUNREACH",
        "ENETDOWN",
        "ENETUNREACH",
        "EPIPE",
        "ETIMEDOUT",
        "RESOURCE_EXHAUSTED",
        "UNAVAILABLE",
        "UND_ERR_CONNECT_TIMEOUT",
        "UND_ERR_HEADERS_TIMEOUT",
        "UND_ERR_SOCKET",
    )
)
# gRPC: deadline exceeded, resource exhausted, unavailable.
_GRPC = frozenset((4, 8, 14))
_ERRNOS = frozenset((errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH))


@dataclass(frozen=True)
class CompletionRetryContext:
    """What a classifier of one's own is asked about."""

    error: Exception
    # The attempt that failed, from 1; each turn counts anew.
    attempt: int
    max_attempts: int
    turn: int
    streaming: bool


@dataclass(frozen=True)
class CompletionRetryOptions:
    """When a model call is made again.

    Attempt *k* is followed by a wait between 0 and ``initial_delay_ms`` * 2^(k-1),
    at most ``max_delay_ms``.

    Raises:
        ValueError: a number out of its range, or a first delay above the greatest.
        TypeError: *should_retry* cannot be called.
    """

    # The first call included.
    max_attempts: int = 3
    initial_delay_ms: float = 100
    max_delay_ms: float = 1000
    # ``should_retry(context) -> bool``; it replaces ``is_transient``.
    should_retry: Optional[Callable[..., Any]] = None

    def __post_init__(self) -> None:
        attempts: Any = self.max_attempts
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ValueError(
                f"max_attempts is a whole number of at least 1, not {attempts!r}"
            )
        for name in ("initial_delay_ms", "max_delay_ms"):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or not 0 <= value <= _MAX_MS:
                raise ValueError(
                    f"{name} is a number from 0 to {_MAX_MS}, not {value!r}"
                )
        if self.initial_delay_ms > self.max_delay_ms:
            raise ValueError(
                f"initial_delay_ms ({self.initial_delay_ms}) is above max_delay_ms "
                f"({self.max_delay_ms}): raise the latter too"
            )
        if self.should_retry is not None:
            bind(self.should_retry, "should_retry", ())

    def delay_ms(self, attempt: int, luck: float) -> float:
        """Return the wait after failed *attempt*; *luck* is from 0 to 1.

        >>> options = CompletionRetryOptions(max_delay_ms=250)
        >>> [options.delay_ms(k, 0.5) for k in (1, 2, 3, 4)]
        [50.0, 100.0, 125.0, 125.0]
        """
        grown = self.initial_delay_ms * 2.0 ** min(attempt - 1, 40)
        return luck * min(self.max_delay_ms, grown)

    def wants(self, context: CompletionRetryContext) -> bool:
        """Whether to ask again after *context*; the number of attempts is not asked."""
        if self.should_retry is not None:
            return bool(bind(self.should_retry, "should_retry", ())(context, {}))
        return is_transient(context.error)


def is_transient(error: BaseException) -> bool:
    """Whether asking again may help: by type, status and code, never by message.

    The first HTTP status of the error or its causes decides alone; without one, any
    time-out or connection failure among them.

    >>> is_transient(ConnectionResetError()), is_transient(ValueError("timed out"))
    (True, False)
    """
    chain = list(_chain(error))
    if any(_names(found) & _NEVER for found in chain):
        return False
    for found in chain:
        status = status_of(found)
        if status is not None:
            return (
                status in _STATUSES or 500 <= status <= 599
            ) and not _asks_for_patience(found)
    return any(_passes(found) for found in chain)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that *error* carries, where it does."""
    response = getattr(error, "response", None)
    for holder, name in (
        (error, "status"),
        (error, "status_code"),
        (response, "status_code"),
    ):
        value = _number(getattr(holder, name, None))
        if value is not None:
            return value
    code = _number(getattr(error, "code", None))
    return code if code is not None and 100 <= code <= 599 else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it came from, each once."""
    seen = set()
    at: Optional[BaseException] = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        context = None if at.__suppress_context__ else at.__context__
        at = at.__cause__ or context


def _names(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}


def _asks_for_patience(error: BaseException) -> bool:
    wait = getattr(error, "retry_after", None)
    return isinstance(wait, (int, float)) and wait > MAX_RETRY_AFTER


def _passes(error: BaseException) -> bool:
    if isinstance(error, ProviderError):
        return error.retryable
    if isinstance(error, (ConnectionError, TimeoutError)) or _names(error) & _PASSING:
        return True
    code = getattr(error, "code", None)
    if isinstance(code, str) and code.upper() in _CODES:
        return True
    if _number(code) in _GRPC:
        return True
    return isinstance(error, OSError) and _passing_errno(error)


def _passing_errno(error: OSError) -> bool:
    if error.errno in _ERRNOS:
        return True
    import socket

    return isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
