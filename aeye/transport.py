"""One POST over HTTP. The only module that knows ``requests``.

The seam for tests is ``Transport``: an object with one method, ``open``, that sends a
body and returns a ``Reply``. What is built on it here — reading a body within bounds,
asking again after a failure — works with any of them.
"""

from __future__ import annotations

import contextlib
import copy
import email.utils
import errno
import os
import random
import re
import socket
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import (
    Any,
    Callable,
    Deque,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Protocol,
    Tuple,
)
from urllib.parse import urlsplit

from .context import Abort
from .errors import AbortedError, ProtocolError, TransportError

__all__ = [
    "HttpTransport",
    "Reply",
    "Retry",
    "Timeout",
    "Transport",
    "check_abort",
    "read_body",
    "retry_after",
]

# Seconds to connect, and seconds between two bytes.
Timeout = Tuple[Optional[float], Optional[float]]

# Idle connections a transport keeps.
_MAX_IDLE = 32


class Reply(Protocol):
    """An answer whose head has arrived and whose body has not been read."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by name in lower case."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield the body as it arrives, decompressed.

        Raises:
            TransportError: it broke off.
        """

    def close(self, drain: float = 0.0) -> None:
        """Let go of the connection. Calling it again does nothing.

        The connection can be used again if the body has been read to its end, for
        which the rest is read for at most *drain* seconds.
        """


class Transport(Protocol):
    """Sends one request."""

    def open(
        self, url: str, headers: Mapping[str, str], body: bytes, signal: Any = None
    ) -> Reply:
        """POST *body* and return the answer, whatever its status.

        *headers* is the same object for equal headers, so that what is made of them
        can be kept. When *signal* is an ``Abort``, setting it wakes whoever waits
        for the answer or reads it.

        Raises:
            TransportError: there is no answer. It is asked for again unless
                ``retryable`` is false or ``errno`` is ``ETIMEDOUT``: a host that is
                still at work is not given the work twice.
        """


def _wait(seconds: float, signal: Any) -> None:
    if isinstance(signal, Abort):
        signal.wait(seconds)
        return
    end = time.monotonic() + seconds
    while seconds > 0 and not (signal is not None and signal.is_set()):
        time.sleep(seconds if signal is None else min(seconds, 0.05))
        seconds = end - time.monotonic()


def _random() -> float:
    # Not random.random itself: a pickle would carry the state of its generator.
    return random.random()


@dataclass(frozen=True)
class Retry:
    """Whether to ask again after a failure, and when."""

    max_retries: int = 2
    # The longest wait a host may ask for; beyond it the call fails at once.
    cap: float = 60.0
    # ``wait(seconds, signal)`` returns early when the signal is set.
    wait: Callable[[float, Any], None] = _wait
    # A number from 0 to 1.
    random: Callable[[], float] = _random

    def delay(self, attempt: int, asked: float | None) -> float:
        """Return seconds to wait after *attempt* (0 for the first) has failed.

        A host that says how long gets it; else it is a random part of half a second,
        doubled for each attempt, so that many clients do not come back together.
        """
        if asked is not None:
            return asked
        return self.random() * min(8.0, 0.5 * 2.0**attempt)

    def allows(self, status: int, headers: Mapping[str, str]) -> bool:
        """Whether a status may pass if the request is sent again."""
        said = headers.get("x-should-retry")
        if said in ("true", "false"):
            return said == "true"
        return status in (408, 409, 429) or status >= 500


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds a host asks to wait, or None; *now* is the time of day.

    >>> retry_after({"retry-after-ms": "250"}, 0.0)
    0.25
    >>> retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 0.0)
    60.0
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < 1e9:  # neither nan nor inf
            return seconds
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
        return max(date.timestamp() - now, 0.0)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError):
        return None


def check_abort(signal: Any) -> None:
    """Raise AbortedError if *signal* is set."""
    if signal is not None and signal.is_set():
        raise AbortedError("the run was aborted")


def read_body(
    reply: Reply, limit: int, signal: Any = None, *, cut: bool = False
) -> bytes:
    """Read all of a body and close the reply; with *cut*, as much as can be had.

    Raises:
        ProtocolError: there are more than *limit* bytes.
        TransportError: the body broke off.
        AbortedError: *signal* was set meanwhile.
    """
    pieces: List[bytes] = []
    size = 0
    try:
        said = reply.headers.get("content-length", "")
        if said.isdigit() and int(said) > limit and not cut:
            raise ProtocolError(f"a body of {said} bytes; at most {limit} are read")
        for piece in reply:
            size += len(piece)
            pieces.append(piece)
            check_abort(signal)
            if size > limit:
                break
    except TransportError:
        if not cut:
            raise
    finally:
        reply.close()
    if size > limit and not cut:
        raise ProtocolError(f"a body of more than {limit} bytes")
    return b"".join(pieces)[:limit]


class HttpTransport:
    """A stack of ``requests`` sessions.

    A call takes a session and gives it back when its answer has been read, so that
    connections are used again and no two threads share a session. After a fork, and
    in a pickle or a deep copy, the stack is empty. With a *session* of the caller's
    there is no stack: that one is used for every call, with its own headers,
    proxies and adapters, and never closed.
    """

    def __init__(
        self,
        timeout: Timeout = (10, 600),
        session: Any = None,
    ) -> None:
        self.timeout = timeout
        self._session = session
        # A pickle has lost the caller's session.
        self._lost = False
        self._idle: List[_Line] = []
        self._pid = os.getpid()

    def open(
        self, url: str, headers: Mapping[str, str], body: bytes, signal: Any = None
    ) -> Reply:
        """POST *body*; see ``Transport.open``."""
        line = self._take()
        unwatch = signal.watch(line.shut) if isinstance(signal, Abort) else _nothing
        try:
            response = line.send(url, headers, body, self.timeout)
        except BaseException as exc:
            unwatch()
            line.drop()
            if isinstance(exc, _network_errors()):
                check_abort(signal)
                raise _error(exc, url) from exc
            raise
        line.response = response

        def free() -> None:
            unwatch()
            line.response = None
            self._give(line)

        reply = _HttpReply(response, free)
        if signal is not None and signal.is_set():  # it may have been too early to shut
            reply.close()
            check_abort(signal)
        return reply

    def close(self) -> None:
        """Close idle connections; those in use are closed when they come back."""
        lines, self._idle = self._idle, []
        for line in lines:
            line.drop()

    def _take(self) -> _Line:
        if self._lost:
            raise ValueError(
                "a session given to connect() is not pickled; connect() anew"
            )
        if self._session is not None:
            return _Line(self._session, None)
        if self._pid != os.getpid():  # the parent goes on using those sockets
            self._idle, self._pid = [], os.getpid()
        # Another thread may take the last one between a look and a pop.
        try:
            return self._idle.pop()
        except IndexError:
            return _new_line(self._idle)

    def _give(self, line: _Line) -> None:
        if line.home is self._idle and len(self._idle) < _MAX_IDLE:
            self._idle.append(line)
        else:
            line.drop()

    def __getstate__(self) -> Dict[str, Any]:
        lost = self._lost or self._session is not None
        return {"timeout": self.timeout, "lost": lost}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(state["timeout"])  # type: ignore[misc]  # a fresh stack, made in one place
        self._lost = state["lost"]

    def __deepcopy__(self, memo: Dict[int, Any]) -> HttpTransport:
        return HttpTransport(self.timeout, self._session)

    def __repr__(self) -> str:
        return f"<HttpTransport, {len(self._idle)} idle>"


def _nothing() -> None:
    return None


def _new_line(home: list[_Line]) -> _Line:
    import requests

    line = _Line(requests.Session(), home)
    for adapter in line.session.adapters.values():
        manager: Any = adapter.poolmanager
        manager.pool_classes_by_scheme = {
            scheme: partial(_new_pool, cls, line.connections)
            for scheme, cls in manager.pool_classes_by_scheme.items()
        }
    return line


def _new_pool(cls: Any, seen: Deque[Any], *args: Any, **kwargs: Any) -> Any:
    """Make a urllib3 pool that remembers the connections it makes."""
    pool = cls(*args, **kwargs)
    make = pool.ConnectionCls

    def connection(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        seen.append(made)
        return made

    pool.ConnectionCls = connection
    return pool


class _Line:
    """A session and what was made for it. One call at a time has it."""

    def __init__(self, session: Any, home: list[_Line] | None) -> None:
        self.session = session
        # The stack it goes back to; None: the session is the caller's.
        self.home = home
        # The connections of a session of ours, for waking whoever waits on them.
        self.connections: Deque[Any] = deque(maxlen=4)
        self.response: Any = None
        # The last request's address and headers, and what was made of them.
        self._made: Tuple[Any, ...] = (None, None, None, None)

    def send(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: Timeout
    ) -> Any:
        if self.home is None:
            request, settings = self._prepare(url, headers, body)
        else:
            known_url, known_headers, template, settings = self._made
            if known_url != url or known_headers is not headers:
                template, settings = self._prepare(url, headers, b"")
                self._made = url, headers, template, settings
            request = copy.copy(template)
            request.headers = template.headers.copy()
            request.body = body
            request.headers["Content-Length"] = str(len(body))
        return self.session.send(
            request, timeout=timeout, allow_redirects=False, **settings
        )

    def _prepare(self, url: str, headers: Mapping[str, str], body: bytes) -> Any:
        import requests

        session = self.session
        if self.home is None:
            request = session.prepare_request(
                requests.Request("POST", url, headers=dict(headers), data=body)
            )
        else:
            # Not through the session: an entry in ~/.netrc would replace our key.
            request = requests.PreparedRequest()
            # Others can make gigabytes of a few bytes at once.
            own = {"Accept-Encoding": "gzip, deflate"}
            known = {**session.headers, **own, **headers}
            request.prepare("POST", url, headers=known, data=body)
        settings = session.merge_environment_settings(url, {}, True, None, None)
        return request, settings

    def drop(self) -> None:
        """Close the session, unless it is the caller's."""
        if self.home is not None:
            self.session.close()
            for connection in self.connections:  # urllib3 may leave it to the collector
                connection.close()

    def shut(self) -> None:
        """Wake whoever waits for or reads the answer."""
        holders = [*self.connections]
        response = self.response
        if response is not None:
            holders.append(getattr(response.raw, "connection", None))
            fp = getattr(response.raw, "_fp", None)
            holders.append(getattr(getattr(fp, "fp", None), "raw", None))
        for holder in holders:
            for name in ("sock", "_sock"):
                found = getattr(holder, name, None)
                if isinstance(found, socket.socket):
                    # Of the plain socket: the TLS layer would be changed under the
                    # reader's feet.
                    with contextlib.suppress(OSError):
                        socket.socket.shutdown(found, socket.SHUT_RDWR)


class _HttpReply:
    """A ``requests`` response as a ``Reply``."""

    def __init__(self, response: Any, free: Callable[[], None]) -> None:
        self.status = response.status_code
        self.headers = {k.lower(): v for k, v in response.headers.items()}
        self._response = response
        self._free = free
        self._closed = False
        self._read_whole = False
        self._pieces = self._read()

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def _read(self) -> Iterator[bytes]:
        size = 0
        try:
            for piece in _pieces(self._response):
                size += len(piece)
                yield piece
        except _network_errors() as exc:
            raise _error(exc, self._response.url, size) from exc
        self._read_whole = True

    def close(self, drain: float = 0.0) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            if drain > 0 and not self._read_whole:
                self._drain(time.monotonic() + drain)
            self._response.close()
        finally:
            self._free()

    def _drain(self, deadline: float) -> None:
        connection = getattr(self._response.raw, "connection", None)
        found = getattr(connection, "sock", None)
        with contextlib.suppress(TransportError, OSError):
            while found is not None and not self._read_whole:
                found.settimeout(max(deadline - time.monotonic(), 0.001))
                if next(self._pieces, None) is None or time.monotonic() > deadline:
                    return


# Bytes to read at once. gzip makes at most a thousand times as many of them.
_BLOCK = 16 * 1024


def _pieces(response: Any) -> Iterator[bytes]:
    """Yield the body as it arrives, in pieces of bounded size."""
    if "," in response.headers.get("content-encoding", ""):
        raise ProtocolError("a body that is compressed twice")
    raw = response.raw
    read1 = getattr(raw, "read1", None)
    if getattr(raw, "chunked", False):
        yield from response.iter_content(_BLOCK)
    elif read1 is None:  # urllib3 1: without chunks, whole blocks or single bytes
        streams = "event-stream" in response.headers.get("content-type", "")
        whole = "content-length" in response.headers and not streams
        raw.enforce_content_length = True  # else a body cut short passes for whole
        yield from response.iter_content(_BLOCK if whole else 1)
    else:
        while True:
            piece = read1(_BLOCK, decode_content=True)
            if not piece:
                return
            yield piece


def _network_errors() -> tuple[type[BaseException], ...]:
    from requests import exceptions

    # urllib3's own, which reach us where we read past requests.
    base: type[BaseException] = exceptions.BaseHTTPError  # type: ignore[attr-defined]  # there since requests 2.0, unknown to its stubs
    return (base, exceptions.RequestException, OSError)


def _error(exc: BaseException, url: str, size: int | None = None) -> TransportError:
    """Return the error that one of the network's stands for.

    *size* bytes of the body had come; None: not even the head had.
    """
    from requests.exceptions import ReadTimeout, RequestException, SSLError

    if isinstance(exc, RequestException):
        exc.request = exc.response = None  # they hold the key
    _hide_query(exc, urlsplit(url).query)
    host = urlsplit(url).netloc.rpartition("@")[2]
    cause = _cause(exc)
    if size:
        cause = f"the connection broke after {size} bytes of the answer ({cause})"
    elif size == 0:
        cause = f"the connection broke before any of the answer came ({cause})"
    error = TransportError(f"{host}: {cause}")
    if isinstance(exc, ReadTimeout):
        error.errno = errno.ETIMEDOUT
    if isinstance(exc, (SSLError, ValueError)):  # a certificate; an address or header
        error.retryable = False
    return error


def _hide_query(exc: BaseException, query: str) -> None:
    """Take *query* out of what *exc* and its causes say: there may be a key in it."""
    from requests.utils import requote_uri

    error: BaseException | None = exc
    while query and error is not None:
        said: List[object] = []
        for arg in error.args:
            if isinstance(arg, str):
                arg = arg.replace(requote_uri(query), "…").replace(query, "…")
            said.append(arg)
        error.args = tuple(said)
        error = error.__cause__ or error.__context__


# What urllib3 puts before its own messages.
_PREFIX = re.compile(r"^(<[^>]*>|HTTPS?Connection(Pool)?\([^)]*\)): ")


def _cause(exc: BaseException) -> str:
    """Return what the innermost error says."""
    inner: BaseException | None = exc
    text = ""
    while inner is not None:
        said = [arg for arg in inner.args if isinstance(arg, str)]
        if isinstance(inner, OSError) and inner.strerror:
            said = [inner.strerror]
        if said:
            text = _PREFIX.sub("", said[-1].strip())
        if len(text.split()) < 2:  # "hello", for a first line that is not HTTP
            text = f"{type(inner).__name__} {text}".strip()
        nested = (getattr(inner, "reason", None), *inner.args)
        inner = next((e for e in nested if isinstance(e, BaseException)), None)
    return text
