"""A server on this machine that speaks a vendor's format for a model in the process.

For tests that want a real socket, and for asking a scripted model or a rehearsal with
some other client. It serves what the clients need and checks nothing else: a key may
be anything.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Optional,
    Pattern,
    Protocol,
    Set,
    Union,
)

from .context import Abort, Context
from .errors import AeyeError, RateLimitError, StatusError, StreamCutError
from .message import Json
from .request import Request
from .response import Chunk, Response
from .testing_anthropic import (
    decode_messages,
    encode_messages,
    encode_messages_error,
    encode_messages_events,
)
from .testing_chat import (
    decode_chat,
    encode_chat,
    encode_chat_error,
    encode_chat_events,
)
from .testing_gemini import (
    decode_gemini,
    encode_gemini,
    encode_gemini_error,
    encode_gemini_events,
)
from .testing_responses import (
    decode_responses,
    encode_responses,
    encode_responses_error,
    encode_responses_events,
)

__all__ = ["LocalServer", "Model", "ServerFormat"]


class Model(Protocol):
    """What can be served: ``ScriptedModel``, ``Rehearsal`` or anything like them."""

    def execute(self, request: Request, ctx: Context) -> Response:
        """Answer whole."""
        ...

    def stream(self, request: Request, ctx: Context) -> Iterable[Chunk]:
        """Answer in chunks."""
        ...


@dataclass(frozen=True)
class ServerFormat:
    """One vendor's format, from the server's side."""

    # What the base URL ends in, and the whole paths that are served. What its named
    # groups match is added to the body.
    base: str
    path: Pattern[str]
    decode: Callable[[Json], Request]
    # Whether a request for this path and body is to be streamed.
    is_streamed: Callable[[str, Json], bool]
    # Both get the request's body, which says what is wanted beside the answer.
    encode: Callable[[Response, Json], Json]
    encode_events: Callable[[Iterable[Chunk], Json], Iterator[bytes]]
    encode_error: Callable[[AeyeError, int], Json]


_FORMATS: Dict[str, ServerFormat] = {
    "chat": ServerFormat(
        "/v1",
        re.compile(r"/v1/chat/completions"),
        decode=decode_chat,
        is_streamed=lambda path, body: body.get("stream") is True,
        encode=encode_chat,
        encode_events=encode_chat_events,
        encode_error=encode_chat_error,
    ),
    "responses": ServerFormat(
        "/v1",
        re.compile(r"/v1/responses"),
        decode=decode_responses,
        is_streamed=lambda path, body: body.get("stream") is True,
        encode=encode_responses,
        encode_events=encode_responses_events,
        encode_error=encode_responses_error,
    ),
    "messages": ServerFormat(
        "",
        re.compile(r"/v1/messages"),
        decode=decode_messages,
        is_streamed=lambda path, body: body.get("stream") is True,
        encode=encode_messages,
        encode_events=encode_messages_events,
        encode_error=encode_messages_error,
    ),
    "gemini": ServerFormat(
        "",
        re.compile(
            r"/v1(?:beta)?/(?:models/)?(?P<model>[^:]+):(stream)?[gG]enerateContent"
        ),
        decode=decode_gemini,
        is_streamed=lambda path, body: path.endswith(":streamGenerateContent"),
        encode=encode_gemini,
        encode_events=encode_gemini_events,
        encode_error=encode_gemini_error,
    ),
}


class LocalServer:
    """Serves *model* on a free port of 127.0.0.1, from when it is made until closed.

    An ``AeyeError`` that the model raises is sent as the vendor would send it, with
    its status where it has one; a ``StreamCutError`` breaks the connection off. Any
    other exception does, too, and is kept in ``errors``.

    >>> from aeye.testing import ScriptedModel
    >>> with LocalServer(ScriptedModel("Hello.")) as server:
    ...     server.url.startswith("http://127.0.0.1:"), server.stats["requests"]
    (True, 0)
    """

    def __init__(self, model: Model, *, format: str = "chat") -> None:
        if format not in _FORMATS:
            raise ValueError(f"format is one of {sorted(_FORMATS)}, not {format!r}")
        self.model = model
        # What was asked, decoded and as it came.
        self.requests: List[Request] = []
        self.bodies: List[Json] = []
        # Exceptions of the model that were none of ours.
        self.errors: List[BaseException] = []
        self._format = _FORMATS[format]
        self._abort = Abort()
        self._http = _Http(self)
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The base URL, as clients want it."""
        return f"http://127.0.0.1:{self._http.server_port}{self._format.base}"

    @property
    def stats(self) -> Dict[str, int]:
        """Requests answered, connections opened, and streams a client broke off."""
        return dict(self._http.counts)

    def close(self) -> None:
        """Stop serving; connections that are still open are shut."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self._http.drop_connections()

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, owner: LocalServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner
        self.format = owner._format
        self.context = Context(signal=owner._abort)
        self.counts = {"requests": 0, "connections": 0, "broken_off": 0}
        self.lock = threading.Lock()
        # Connections that are open, and the threads that serve them.
        self.open: Set[socket.socket] = set()
        self.threads: List[threading.Thread] = []

    def count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1

    def process_request(self, request: Any, client_address: Any) -> None:
        # The standard library keeps no record of daemon threads; close() joins ours.
        thread = threading.Thread(
            target=self.process_request_thread,
            args=(request, client_address),
            daemon=True,
        )
        self.threads = [t for t in self.threads if t.is_alive()] + [thread]
        thread.start()

    def drop_connections(self) -> None:
        """Shut every connection and wait for their threads."""
        with self.lock:
            for connection in self.open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:  # the client was quicker
                    continue
        self.owner._abort.set()
        for thread in self.threads:
            thread.join(5)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Called inside the except block of socketserver.
        import sys

        problem = sys.exc_info()[1]
        if problem is not None and not isinstance(problem, (_CutError, OSError)):
            self.owner.errors.append(problem)


class _CutError(Exception):
    """Break the connection off, as a failing network does."""


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    # An event is one write; it must not wait for the acknowledgement of the last.
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.open.add(self.connection)
        self.server.count("connections")

    def finish(self) -> None:
        # Before it is closed: its number may be another connection's by then.
        with self.server.lock:
            self.server.open.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the client's side is what is of interest."""

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        spoken = self.server.format
        path = self.path.partition("?")[0]
        found = spoken.path.fullmatch(path)
        if found is None:
            self._fail(StatusError(f"there is no {path} here", status=404))
            return
        try:
            body = json.loads(data)
            asked = {**body, **found.groupdict()}
            request = spoken.decode(asked)
        except (ValueError, TypeError, KeyError, AttributeError) as exc:
            problem = f"the request cannot be read: {exc!r}"
            self._fail(StatusError(problem, status=400, code="invalid_request"))
            return
        self.server.owner.bodies.append(body)
        self.server.owner.requests.append(request)
        self.server.count("requests")
        if spoken.is_streamed(path, body):
            self._stream(request, asked)
        else:
            self._answer(request, asked)

    def do_GET(self) -> None:
        self._fail(StatusError(f"there is no {self.path} here", status=404))

    def _answer(self, request: Request, body: Json) -> None:
        try:
            response = self.server.owner.model.execute(request, self.server.context)
        except AeyeError as exc:
            self._fail(exc)
            return
        self._send_json(200, self.server.format.encode(response, body), {})

    def _stream(self, request: Request, body: Json) -> None:
        model = self.server.owner.model
        chunks = iter(model.stream(request, self.server.context))
        try:
            # Until something has arrived, an error can still be a status.
            start = next(chunks, None)
        except AeyeError as exc:
            self._fail(exc)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for event in self.server.format.encode_events(_from(start, chunks), body):
                self._write_chunk(event)
        except StreamCutError as exc:
            raise _CutError from exc
        except AeyeError as exc:
            error = self.server.format.encode_error(exc, _status(exc))
            self._write_chunk(b"data: " + json.dumps(error).encode() + b"\n\n")
        except OSError:
            self.server.count("broken_off")
            raise
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
        self.wfile.write(b"0\r\n\r\n")

    def _write_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _fail(self, error: AeyeError) -> None:
        if isinstance(error, StreamCutError):
            raise _CutError from error
        headers = {}
        if isinstance(error, RateLimitError) and error.retry_after is not None:
            headers["Retry-After"] = f"{error.retry_after:g}"
        status = _status(error)
        self._send_json(status, self.server.format.encode_error(error, status), headers)

    def _send_json(self, status: int, value: Json, headers: Dict[str, str]) -> None:
        # Half a surrogate pair becomes a question mark, as UTF-8 has no place for it.
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


def _from(start: Optional[Chunk], rest: Iterator[Chunk]) -> Iterator[Chunk]:
    if start is not None:
        yield start
        yield from rest


def _status(error: Union[AeyeError, StatusError]) -> int:
    status = getattr(error, "status", None)
    if status is None:
        status = 429 if isinstance(error, RateLimitError) else 500
    return int(status)
