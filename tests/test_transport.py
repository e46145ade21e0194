"""HTTP over real sockets: reuse, retries, time-outs, aborts, cut bodies."""

from __future__ import annotations

import copy
import gzip
import json
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
import traceback
import zlib
from typing import Any, Callable, Iterator

import pytest
import requests

from aeye.connection import connect
from aeye.context import Abort, Context
from aeye.errors import (
    AbortedError,
    AeyeError,
    ProtocolError,
    RateLimitError,
    ServerError,
    StatusError,
    StreamCutError,
    TransportError,
)
from aeye.message import Message
from aeye.request import Request
from aeye.response import join
from aeye.transport import HttpTransport, Retry, read_body, retry_after

REQUEST = Request((Message("user", "Hi"),))
ANSWER = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
DONE = b"data: [DONE]\n\n"


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    value = {"choices": [{"delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def reply(body: Any = ANSWER, status: int = 200, **headers: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = {"Content-Type": "application/json", "Content-Length": str(len(data))}
    head.update({k.replace("_", "-"): v for k, v in headers.items()})
    lines = [f"HTTP/1.1 {status} X", *(f"{k}: {v}" for k, v in head.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Server:
    """Answers each request with what *script* yields next; counts what comes.

    A piece of a script is bytes to send, a number of seconds to wait for the client
    to hang up, an event to wait for, or None to hang up.
    """

    def __init__(self, *scripts: Any) -> None:
        self.scripts = list(scripts)
        self.connections = 0
        self.requests: list[tuple[dict[str, str], bytes]] = []
        # Set when a script has been played to its end, or the client has hung up.
        self.played = threading.Event()
        self.hung_up = threading.Event()
        self.waiting = threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/v1"
        self.open: list[socket.socket] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                conn = self.socket.accept()[0]
            except OSError:
                return
            self.connections += 1
            self.open.append(conn)
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn: socket.socket) -> None:
        with conn, conn.makefile("rb") as file:
            try:
                while self.answer(conn, file):
                    pass
            except OSError:
                self.hung_up.set()

    def answer(self, conn: socket.socket, file: Any) -> bool:
        headers: dict[str, str] = {}
        if not file.readline():
            self.hung_up.set()
            return False
        for line in iter(file.readline, b"\r\n"):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", 0)))
        self.requests.append((headers, body))
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        for piece in [script] if isinstance(script, bytes) else script:
            if piece is None:
                conn.shutdown(socket.SHUT_RDWR)
                self.hung_up.set()
                return False
            if isinstance(piece, threading.Event):
                self.waiting.set()
                piece.wait(10)
            else:
                conn.sendall(piece)
        self.played.set()
        return True

    def close(self) -> None:
        self.socket.close()
        for conn in self.open:
            conn.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*scripts: Any) -> Server:
        servers.append(Server(*scripts))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def model(server: Server, **options: Any) -> Context:
    options.setdefault("max_retries", 0)
    return connect("openai:m", api_key="sk-secret", base_url=server.url, **options)


def waits() -> tuple[list[float], Retry]:
    """A retry policy that waits for nothing and notes what it would have."""
    found: list[float] = []
    return found, Retry(2, wait=lambda s, signal: found.append(s), random=lambda: 0.5)


def with_retry(server: Server, retry: Retry) -> Any:
    ctx = model(server)
    provider = ctx.execute.__self__
    return type(provider)(**{**vars(provider), "retry": retry})


def test_one_connection_for_all_calls(serve: Any) -> None:
    """Calls after one another, blocking and streamed, share a connection."""
    body = chunk(event({"content": "Hi"}, "stop") + DONE) + chunk(b"")
    server = serve(reply(), STREAM + body, reply(), STREAM + body, reply())
    ctx = model(server)

    said = [
        ctx.execute(REQUEST, ctx).content,
        join(ctx.stream(REQUEST, ctx)).content,
        ctx.execute(REQUEST, ctx).content,
        join(ctx.stream(REQUEST, ctx)).content,
        ctx.execute(REQUEST, ctx).content,
    ]

    assert said == ["Hello", "Hi", "Hello", "Hi", "Hello"]
    assert server.connections == 1
    ctx.close()
    assert server.hung_up.wait(5)


def test_idle_connection_that_the_host_closed(serve: Any) -> None:
    """A connection that was closed meanwhile is not used, and costs no retry."""
    server = serve([reply(), None], reply())
    ctx = model(server)

    ctx.execute(REQUEST, ctx)
    assert server.hung_up.wait(5)

    assert ctx.execute(REQUEST, ctx).content == "Hello"
    assert server.connections == 2


def test_what_is_sent(serve: Any) -> None:
    """One POST with the key, and a JSON body of the right length."""
    server = serve(reply())
    ctx = model(server, headers={"X-Mine": "1"})

    ctx.execute(REQUEST, ctx)

    headers, body = server.requests[0]
    assert headers["authorization"] == "Bearer sk-secret"
    assert headers["content-type"] == "application/json"
    assert headers["x-mine"] == "1"
    assert json.loads(body) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
    }


def test_end_mark_ends_a_stream_that_stays_open(serve: Any) -> None:
    """After [DONE] the finish is handed on first, and a body without end dropped."""
    never = threading.Event()
    server = serve([STREAM + chunk(event({"content": "Hi"}, "stop") + DONE), never])
    ctx = model(server)

    chunks = ctx.stream(REQUEST, ctx)
    first = [next(chunks), next(chunks)]
    rest = list(chunks)

    assert [c.content for c in first] == ["Hi", None]
    assert first[1].finish_reason == "stop"
    assert rest == []
    never.set()
    assert server.hung_up.wait(5)


def test_late_end_of_body_keeps_the_connection(serve: Any) -> None:
    """What comes shortly after the end mark is read, so the connection is kept."""
    server = serve(
        [
            STREAM + chunk(event({"content": "Hi"}, "stop") + DONE),
            chunk(b"x"),
            chunk(b""),
        ],
        reply(),
    )
    ctx = model(server)

    join(ctx.stream(REQUEST, ctx))
    ctx.execute(REQUEST, ctx)

    assert server.connections == 1


def test_early_close_closes_the_connection(serve: Any) -> None:
    """Closing the iterator hangs up; the next call works on a new connection."""
    never = threading.Event()
    server = serve([STREAM + chunk(event({"content": "Hi"})), never], reply())
    ctx = model(server)

    chunks = ctx.stream(REQUEST, ctx)
    next(chunks)
    chunks.close()
    never.set()

    assert ctx.execute(REQUEST, ctx).content == "Hello"
    assert server.hung_up.wait(5)
    assert server.connections == 2


@pytest.mark.parametrize("end", [[chunk(b"")], [None]])
def test_cut_stream(serve: Any, end: list[Any]) -> None:
    """A body that ends or breaks off without an end mark is an error with the text."""
    server = serve([STREAM + chunk(event({"content": "Hel"})), *end])
    ctx = model(server)
    found = []

    with pytest.raises(StreamCutError) as caught:
        found.extend(ctx.stream(REQUEST, ctx))

    assert [c.content for c in found] == ["Hel"]
    assert caught.value.partial == "Hel"
    assert caught.value.provider == "openai"
    assert caught.value.retryable == (end == [None])


def test_cut_after_the_finish_is_no_cut(serve: Any) -> None:
    """What breaks off after a finish reason had said all."""
    server = serve([STREAM + chunk(event({"content": "Hi"}, "stop")), None])
    ctx = model(server)

    assert join(ctx.stream(REQUEST, ctx)).content == "Hi"


def test_cut_answer(serve: Any) -> None:
    """A blocking answer that breaks off is an error that says how far it came."""
    cut = reply().replace(b"Content-Length: ", b"Content-Length: 9")
    server = serve([cut, None])
    ctx = model(server)

    with pytest.raises(TransportError, match="bytes of the answer"):
        ctx.execute(REQUEST, ctx)


@pytest.mark.parametrize("streaming", [False, True])
def test_gzip(serve: Any, streaming: bool) -> None:
    """A compressed body is read."""
    data = gzip.compress(json.dumps(ANSWER).encode())
    server = serve(reply(data, Content_Encoding="gzip"))
    ctx = model(server)

    found = join(ctx.stream(REQUEST, ctx)) if streaming else ctx.execute(REQUEST, ctx)

    assert found.content == "Hello"


def test_body_without_length(serve: Any) -> None:
    """A body that only the end of the connection ends is streamed all the same."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    go = threading.Event()
    server = serve(
        [head + event({"content": "Hel"}), go, event({"content": "lo"}, "stop"), None]
    )
    ctx = model(server)

    chunks = ctx.stream(REQUEST, ctx)
    first = next(chunks).content
    go.set()

    assert (first, join(chunks).content) == ("Hel", "lo")


def test_retry_of_statuses(serve: Any) -> None:
    """429 and 5xx are tried again, after what the host asks or a random while."""
    server = serve(
        reply({"error": {"message": "slow"}}, 429, Retry_After="7"),
        reply({"error": {"message": "down"}}, 503),
        reply(),
    )
    seconds, retry = waits()
    provider = with_retry(server, retry)

    assert provider.execute(REQUEST).content == "Hello"
    assert seconds == [7.0, 0.5]


@pytest.mark.parametrize(
    ("answer", "error", "retry_after"),
    [
        (reply({"error": {"message": "x"}}, 429, Retry_After="61"), RateLimitError, 61),
        (
            reply({"error": {"message": "x", "code": "insufficient_quota"}}, 429),
            RateLimitError,
            None,
        ),
        (reply({"error": {"message": "x"}}, 400), StatusError, None),
        (
            reply({"error": {"message": "x"}}, 500, x_should_retry="false"),
            ServerError,
            None,
        ),
        (reply(b"", 302, Location="http://127.0.0.1/x?key=1"), StatusError, None),
    ],
)
def test_no_retry(serve: Any, answer: bytes, error: Any, retry_after: Any) -> None:
    """What does not pass, or only after too long, fails at once."""
    server = serve(answer)
    seconds, retry = waits()
    provider = with_retry(server, retry)

    with pytest.raises(error) as caught:
        provider.execute(REQUEST)

    assert caught.value.retry_after == retry_after
    assert (len(server.requests), seconds) == (1, [])
    assert "key=1" not in str(caught.value)


def test_retries_run_out(serve: Any) -> None:
    """The last failure is raised after as many retries as were allowed."""
    server = serve(reply({"error": {"message": "down"}}, 500))
    seconds, retry = waits()
    provider = with_retry(server, retry)

    with pytest.raises(ServerError, match="openai: down \\(HTTP 500\\)"):
        list(provider.stream(REQUEST))

    assert (len(server.requests), seconds) == (3, [0.25, 0.5])


def test_retry_of_connections(serve: Any) -> None:
    """A connection that breaks before the first byte is tried again."""
    server = serve([None], reply())
    seconds, retry = waits()

    assert with_retry(server, retry).execute(REQUEST).content == "Hello"
    assert seconds == [0.25]


def test_nobody_listens() -> None:
    """Without a server the error says where and why, and holds no key."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    ctx = connect("openai:m", api_key="sk-secret", base_url=url, max_retries=0)

    with pytest.raises(TransportError) as caught:
        ctx.execute(REQUEST, ctx)

    assert "127.0.0.1" in str(caught.value)
    assert "refused" in str(caught.value).lower()
    cause: Any = caught.value.__cause__
    assert cause.request is None
    assert "sk-secret" not in str(caught.value) + repr(cause)


def test_an_address_with_a_key_in_it() -> None:
    """What lies under the error quotes the address, and not the query's key."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1?key=sk-secret and {{more}}"
    ctx = connect("openai:m", api_key="k", base_url=url, max_retries=0)

    with pytest.raises(TransportError) as caught:
        ctx.execute(REQUEST, ctx)

    error = caught.value
    told = traceback.format_exception(TransportError, error, error.__traceback__)
    assert "url: /v1/chat/completions?…" in "".join(told)
    assert "sk-secret" not in "".join(told)


@pytest.mark.parametrize(
    ("scheme", "answer", "message", "again"),
    [
        ("http", b"hello\r\n\r\n", "BadStatusLine hello", True),
        ("https", b"hello\r\n\r\n", "SSL", False),
    ],
)
def test_what_is_no_http(
    serve: Any, scheme: str, answer: bytes, message: str, again: bool
) -> None:
    """Something else at the other end is an error that says so; TLS faults stay."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def reply_once() -> None:
            conn = listener.accept()[0]
            with conn:
                conn.recv(1)
                conn.sendall(answer)

        thread = threading.Thread(target=reply_once)
        thread.start()
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(TransportError, match=message) as caught:
            HttpTransport().open(url, {}, b"{}")
        thread.join()

    assert caught.value.retryable == again


def test_read_time_out_is_not_retried(serve: Any) -> None:
    """A host that is still at work is not given the work twice."""
    never = threading.Event()
    server = serve([never])
    seconds, retry = waits()
    provider = with_retry(server, retry)
    provider.transport.timeout = (5, 0.05)

    with pytest.raises(TransportError) as caught:
        provider.execute(REQUEST)

    never.set()
    assert caught.value.retryable
    assert (len(server.requests), seconds) == (1, [])


@pytest.mark.parametrize("own_session", [False, True])
@pytest.mark.parametrize(
    "length", [b"Transfer-Encoding: chunked", b"Connection: close"]
)
def test_abort_wakes_a_stalled_stream(
    serve: Any, length: bytes, own_session: bool
) -> None:
    """Setting the signal ends the wait for the next byte."""
    never = threading.Event()
    piece = event({"content": "Hi"})
    piece = chunk(piece) if b"chunked" in length else piece
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + length
    server = serve([head + b"\r\n\r\n" + piece, never])
    signal = Abort()
    session = requests.Session() if own_session else None
    ctx = model(server, signal=signal, session=session)

    chunks = ctx.stream(REQUEST, ctx)
    assert next(chunks).content == "Hi"
    assert server.waiting.wait(5)
    timer = threading.Timer(0.05, signal.set)
    timer.start()
    start = time.monotonic()
    with pytest.raises(AbortedError):
        next(chunks)

    assert time.monotonic() - start < 5
    timer.join()
    never.set()


@pytest.mark.parametrize("streaming", [False, True])
def test_abort_wakes_a_wait_for_the_answer(serve: Any, streaming: bool) -> None:
    """Setting the signal ends the wait for the head of an answer, too."""
    never = threading.Event()
    server = serve([never])
    signal = Abort()
    ctx = model(server, signal=signal, max_retries=2)

    def stop() -> None:
        server.waiting.wait(5)
        signal.set()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(AbortedError):
        if streaming:
            next(ctx.stream(REQUEST, ctx))
        else:
            ctx.execute(REQUEST, ctx)

    thread.join(5)
    never.set()
    assert len(server.requests) == 1


def test_foreign_signal_is_looked_at_between_chunks(serve: Any) -> None:
    """Anything with is_set() ends a stream at the next chunk."""
    signal = threading.Event()
    go = threading.Event()
    server = serve(
        [STREAM + chunk(event({"content": "a"})), go, chunk(event({"content": "b"}))]
    )
    ctx = model(server, signal=signal)

    chunks = ctx.stream(REQUEST, ctx)
    assert next(chunks).content == "a"
    signal.set()
    go.set()
    with pytest.raises(AbortedError):
        next(chunks)


def test_abort_before_the_call(serve: Any) -> None:
    """Nothing is sent when the signal is set already."""
    server = serve(reply())
    signal = Abort()
    signal.set()
    ctx = model(server, signal=signal)

    with pytest.raises(AbortedError):
        ctx.execute(REQUEST, ctx)

    assert server.requests == []


def test_abort_ends_a_wait_before_a_retry(serve: Any) -> None:
    """The wait before a retry ends when the signal is set, and nothing is sent."""
    server = serve(reply({"error": {"message": "x"}}, 429, Retry_After="50"))
    signal = Abort()
    ctx = model(server, signal=signal, max_retries=1)
    timer = threading.Timer(0.1, signal.set)
    timer.start()

    with pytest.raises(AbortedError):
        ctx.execute(REQUEST, ctx)

    timer.join()
    assert len(server.requests) == 1


def test_foreign_signal_ends_a_wait() -> None:
    """The wait looks at a signal that cannot wake it a few times a second."""
    signal = threading.Event()
    timer = threading.Timer(0.05, signal.set)
    timer.start()
    start = time.monotonic()

    Retry().wait(30, signal)
    Retry().wait(0.001, None)

    timer.join()
    assert time.monotonic() - start < 10


def test_body_too_large(serve: Any) -> None:
    """A body beyond the bound is refused, by its announced size or as it comes."""
    transport = HttpTransport()
    server = serve(reply(b"x" * 100), STREAM + chunk(b"x" * 100) + chunk(b""))

    for _ in range(2):
        found = transport.open(server.url, {}, b"{}")
        with pytest.raises(ProtocolError, match="bytes"):
            read_body(found, 99)


def test_sessions_of_the_caller(serve: Any) -> None:
    """A session that is given is used, with its headers, and not closed."""
    server = serve(reply())
    session = requests.Session()
    session.headers["X-Session"] = "mine"
    ctx = model(server, session=session)

    ctx.execute(REQUEST, ctx)
    ctx.close()
    ctx.execute(REQUEST, ctx)

    assert [h["x-session"] for h, _ in server.requests] == ["mine", "mine"]
    assert server.connections == 1
    session.close()


def test_threads_have_connections_of_their_own(serve: Any) -> None:
    """Calls at the same time do not share a session; afterwards they are idle."""
    both = threading.Barrier(2)
    server = serve(reply())
    transport = HttpTransport()

    def call() -> None:
        found = transport.open(server.url, {}, b"{}")
        both.wait(5)
        read_body(found, 1000)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert server.connections == 2
    assert repr(transport) == "<HttpTransport, 2 idle>"
    transport.close()
    assert repr(transport) == "<HttpTransport, 0 idle>"


def test_closed_while_in_use(serve: Any) -> None:
    """A connection that comes back after close() is closed, not kept."""
    server = serve(reply())
    transport = HttpTransport()

    found = transport.open(server.url, {}, b"{}")
    transport.close()
    read_body(found, 1000)
    found.close()

    assert repr(transport) == "<HttpTransport, 0 idle>"
    assert server.hung_up.wait(5)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_copies_have_no_connections(serve: Any, copied: Any) -> None:
    """Pickles and deep copies start with no connection."""
    server = serve(reply())
    transport = HttpTransport((3, 4))
    read_body(transport.open(server.url, {}, b"{}"), 1000)

    found = copied(transport)

    assert (repr(found), found.timeout) == ("<HttpTransport, 0 idle>", (3, 4))
    transport.close()


def test_pickle_loses_a_session() -> None:
    """A session of the caller's is not pickled, and the error says so."""
    transport = HttpTransport(session=requests.Session())

    found = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(transport))))

    with pytest.raises(ValueError, match="not pickled"):
        found.open("http://127.0.0.1:1", {}, b"{}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_has_connections_of_its_own(serve: Any) -> None:
    """A child does not use its parent's sockets; the parent goes on with its own."""
    server = serve(reply())
    transport = HttpTransport()
    read_body(transport.open(server.url, {}, b"{}"), 1000)

    pid = os.fork()
    if pid == 0:
        try:
            read_body(transport.open(server.url, {}, b"{}"), 1000)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    read_body(transport.open(server.url, {}, b"{}"), 1000)

    assert (server.connections, len(server.requests)) == (2, 3)
    transport.close()


def test_no_thread_is_left(serve: Any) -> None:
    """Asking starts no thread."""
    server = serve(reply())
    ctx = model(server)
    before = threading.active_count()

    ctx.execute(REQUEST, ctx)

    # The server has one for the connection.
    assert threading.active_count() <= before + 1
    ctx.close()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "20", "retry-after": "9"}, 0.02),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 60.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "garbage"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds or a date; garbage is nothing."""
    assert retry_after(headers, 40.0) == seconds


BOMB = """
import resource, sys
from aeye.errors import ProtocolError
from aeye.transport import HttpTransport, read_body

transport = HttpTransport()
transport.open(sys.argv[1], {}, b"{}").close()  # what is imported does not count
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_body(transport.open(sys.argv[1], {}, b"{}"), 4 * 1024 * 1024)
except ProtocolError as exc:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units")
@pytest.mark.parametrize("chunked", [False, True])
def test_memory_of_a_compressed_body(serve: Any, chunked: bool) -> None:
    """What a body takes in memory is bounded, whatever it would be decompressed."""
    data = gzip.compress(bytes(256 * 1024 * 1024), 9)
    head = STREAM.replace(b"text/event-stream", b"x/y\r\nContent-Encoding: gzip")
    server = serve(
        head + chunk(data) + chunk(b"")
        if chunked
        else reply(data, Content_Encoding="gzip")
    )

    done = subprocess.run(
        [sys.executable, "-c", BOMB, server.url],
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )

    assert int(done.stdout) < 64 * 1024  # KiB


def test_body_compressed_twice(serve: Any) -> None:
    """A second compression, by which little becomes much, is not read."""
    server = serve(reply(b"x", Content_Encoding="gzip, gzip"))

    with pytest.raises(ProtocolError, match="twice"):
        read_body(HttpTransport().open(server.url, {}, b"{}"), 99)


def test_stream_with_a_length(serve: Any) -> None:
    """Events come one by one, also where the length of all of them was said."""
    first, last = event({"content": "Hel"}), event({"content": "lo"}, "stop")
    go = threading.Event()
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Content-Length: %d\r\n\r\n" % len(first + last)
    )
    server = serve([head + first, go, last])
    ctx = model(server)

    chunks = ctx.stream(REQUEST, ctx)
    text = next(chunks).content
    go.set()

    assert (text, join(chunks).content) == ("Hel", "lo")


@pytest.mark.parametrize("head", [STREAM, reply(b"x" * 9)[:-9]])
def test_answer_that_never_came(serve: Any, head: bytes) -> None:
    """A host that hangs up behind the head has said nothing, and the error says so."""
    ctx = model(serve([head, None]))

    with pytest.raises(
        AeyeError, match="the connection broke before any of the answer"
    ):
        list(ctx.stream(REQUEST, ctx))


def test_long_error_body(serve: Any) -> None:
    """An error is asked again as its status says, however long its body is."""
    long = STREAM.replace(b"200", b"503") + chunk(b"x" * 2_000_000)
    server = serve([long, None], reply())
    retry = waits()[1]

    assert with_retry(server, retry).execute(REQUEST).content == "Hello"
    assert len(server.requests) == 2


HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
)
STALLS = {
    "the head": [b"HTTP/1.1 200"],
    "between headers": [b"HTTP/1.1 200 OK\r\nX-A: 1\r\n"],
    "the body": [HEAD],
    "within the body": [HEAD + b'{"choices"'],
    "the size of a chunk": [STREAM + b"1"],
    "within a chunk": [STREAM + b"9\r\ndata"],
    "within an event": [STREAM + chunk(b'data: {"choi')],
}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("place", STALLS)
def test_stalls_end(serve: Any, place: str, streaming: bool) -> None:
    """Wherever a host falls silent, the read time-out ends the wait, asking once."""
    never = threading.Event()
    server = serve([*STALLS[place], never])
    ctx = model(server, timeout=(5, 0.1), max_retries=2)

    with pytest.raises(AeyeError) as caught:
        if streaming:
            join(ctx.stream(REQUEST, ctx))
        else:
            ctx.execute(REQUEST, ctx)

    never.set()
    assert "timed out" in str(caught.value).lower()
    assert len(server.requests) == 1


@pytest.mark.parametrize("place", STALLS)
def test_abort_wakes_every_stall(serve: Any, place: str) -> None:
    """Wherever a host falls silent, an abort ends the wait at once."""
    never = threading.Event()
    server = serve([*STALLS[place], never])
    signal = Abort()
    ctx = model(server, signal=signal)

    def stop() -> None:
        server.waiting.wait(5)
        signal.set()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(AbortedError):
        ctx.execute(REQUEST, ctx)

    thread.join(5)
    never.set()


def test_interim_answers(serve: Any) -> None:
    """A 100 Continue before the answer is no answer."""
    ctx = model(serve(b"HTTP/1.1 100 Continue\r\n\r\n" + reply()))

    assert ctx.execute(REQUEST, ctx).content == "Hello"


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nX-A: " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-A: 1\r\n" * 200 + b"\r\n",
    ],
    ids=["long", "many"],
)
def test_huge_heads(serve: Any, head: bytes) -> None:
    """A head without bound is refused, and does not fill the memory."""
    ctx = model(serve([head, None]))

    with pytest.raises(TransportError):
        ctx.execute(REQUEST, ctx)


@pytest.mark.parametrize("body", [b"zz\r\n", b"5\r\nab", chunk(b"ab") + b"-1\r\n"])
def test_broken_chunks(serve: Any, body: bytes) -> None:
    """A body whose chunks are broken never passes for a whole one."""
    ctx = model(serve([STREAM + body, None]))

    with pytest.raises((TransportError, StreamCutError)):
        join(ctx.stream(REQUEST, ctx))


def test_no_brotli_is_asked_for(serve: Any) -> None:
    """Only what is taken apart in pieces of bounded size is asked for."""
    server = serve(reply())
    ctx = model(server)

    ctx.execute(REQUEST, ctx)

    assert server.requests[0][0]["accept-encoding"] == "gzip, deflate"


def test_deflate(serve: Any) -> None:
    """Both compressions that are asked for are read."""
    data = zlib.compress(json.dumps(ANSWER).encode())
    ctx = model(serve(reply(data, Content_Encoding="deflate")))

    assert ctx.execute(REQUEST, ctx).content == "Hello"


def test_redirects_get_nothing(serve: Any) -> None:
    """Another host is asked nothing, so that no key can reach it."""
    other = serve(reply())
    server = serve(reply(b"", 307, Location=other.url))
    ctx = model(server)

    with pytest.raises(StatusError, match="redirects"):
        ctx.execute(REQUEST, ctx)

    assert (len(server.requests), other.connections) == (1, 0)


def test_proxy_of_the_environment(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual variables name a proxy, and a netrc entry replaces no key."""
    proxy = serve(reply())
    monkeypatch.setenv("http_proxy", proxy.url[:-3])
    monkeypatch.setenv("no_proxy", "")
    ctx = connect("openai:m", api_key="sk-secret", base_url="http://models.test/v1")

    with ctx:
        assert ctx.execute(REQUEST, ctx).content == "Hello"

    assert proxy.requests[0][0]["host"] == "models.test"
    assert proxy.requests[0][0]["authorization"] == "Bearer sk-secret"


def test_authorities_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """A bundle of certificates that is not there is an error that names it."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))

    with pytest.raises(TransportError, match=r"none\.pem"):
        HttpTransport().open("https://127.0.0.1:1", {}, b"{}")
