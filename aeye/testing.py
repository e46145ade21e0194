"""Models for tests: scripted ones, and servers and transports that pretend.

A prompt is tested by giving it a context whose model says what the test needs::

    model = ScriptedModel(calls(("add", {"a": 1, "b": 2})), "The sum is 3.")
    answer = prompt({}, model.context())
    assert [m.role for m in model.requests[1].messages][-1] == "tool"

Nothing here is imported by the rest of the package.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generator,
    Iterable,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Set,
    Tuple,
    Union,
)

from .callback import Bound, bind
from .context import Context
from .message import ToolCall
from .provider import WIRES, ApiKey, Provider
from .response import Chunk, FinishReason, Response, join, split
from .testing_server import LocalServer
from .transport import Retry
from .usage import Usage
from .vendor import get_vendor

if TYPE_CHECKING:
    from .request import Request

__all__ = [
    "LocalServer",
    "Mode",
    "Recorded",
    "ReplayTransport",
    "Reply",
    "ScriptedModel",
    "Sent",
    "calls",
    "pieces",
]

Mode = Literal["both", "execute", "stream"]
# What a model may be told to answer. Chunks may have an exception among them, which
# is raised when its turn comes; a function gets the request (and ``ctx``, if it has
# such a parameter) and returns any of the others, or is a generator of chunks.
Reply = Union[
    str,
    Response,
    Iterable[Union[Chunk, BaseException]],
    BaseException,
    Callable[..., Any],
]

_MODES = ("both", "execute", "stream")
_USAGE = Usage.of(input=10, output=5)


class ScriptedModel:
    """A model that gives the replies it was made with, in turn; the last for good.

    Each reply works for a blocking call and for a streamed one. Text and responses
    that report no usage cost *usage*. Calls without an id are numbered ``call_1``
    and so on, through the model's whole life. Chunks are handed on as they are.

    One model may serve several threads.
    """

    def __init__(
        self, *replies: Reply, mode: Mode = "both", usage: Usage = _USAGE
    ) -> None:
        if not replies:
            raise TypeError("a ScriptedModel needs at least one reply")
        if mode not in _MODES:
            raise ValueError(f"mode is one of {_MODES}, not {mode!r}")
        self.mode = mode
        # Every request it was sent, in order.
        self.requests: List[Request] = []
        self._replies = [_reply(reply) for reply in replies]
        self._usage = usage
        self._lock = threading.Lock()
        self._numbered = 0
        self._ids: Set[str] = set()

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return len(self.requests)

    def context(self, **fields: Any) -> Context:
        """Return a Context that asks this model; *fields* are the Context's."""
        if self.mode != "stream":
            fields.setdefault("execute", self.execute)
        if self.mode != "execute":
            fields.setdefault("stream", self.stream)
        return Context(**fields)

    def execute(self, request: Request, ctx: Any = None) -> Response:
        """Answer *request* whole."""
        reply = self._next(request, ctx)
        if isinstance(reply, Response):
            return reply
        return join(_raising(reply))

    def stream(
        self, request: Request, ctx: Any = None
    ) -> Generator[Chunk, None, Optional[Response]]:
        """Answer *request* in chunks.

        The generator's return value is that of the reply, when that is a generator.
        """
        reply = self._next(request, ctx)
        if isinstance(reply, Response):
            yield from split(reply)
            return None
        done = yield from _raising(reply)
        return done

    def _next(
        self, request: Request, ctx: Any
    ) -> Response | Iterable[Chunk | BaseException]:
        with self._lock:
            reply = self._replies[min(len(self.requests), len(self._replies) - 1)]
            self.requests.append(request)
        # Outside the lock: a function may wait for another call of this model.
        made = _reply(reply(request, {"ctx": ctx})) if callable(reply) else reply
        if isinstance(made, BaseException):
            raise made
        if isinstance(made, str):
            return Response(made, usage=self._usage)
        if isinstance(made, Response):
            return self._complete(made)
        if callable(made):
            raise TypeError(f"a reply function returned a function: {made!r:.80}")
        return made

    def _complete(self, response: Response) -> Response:
        """Fill in usage and the ids of calls."""
        with self._lock:
            self._ids.update(call.id for call in response.tool_calls if call.id)
            made = tuple(
                call if call.id else replace(call, id=self._new_id())
                for call in response.tool_calls
            )
        usage = response.usage or self._usage
        return replace(response, tool_calls=made, usage=usage)

    def _new_id(self) -> str:
        while True:
            self._numbered += 1
            made = f"call_{self._numbered}"
            if made not in self._ids:
                return made


@dataclass(frozen=True)
class Recorded:
    """An HTTP answer to be played back."""

    # One piece, or the pieces in which it arrives.
    body: Union[bytes, Tuple[bytes, ...]] = b""
    status: int = 200
    # Names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict)
    # Raised when the body has been read: a connection that broke.
    error: Optional[BaseException] = None


@dataclass(frozen=True)
class Sent:
    """A request that a ``ReplayTransport`` was given."""

    url: str
    # A key is among them.
    headers: Mapping[str, str] = field(repr=False)
    body: bytes

    @property
    def json(self) -> Any:
        """The body's value."""
        return json.loads(self.body)


class ReplayTransport:
    """A transport that answers with what was recorded, in turn; the last for good.

    An answer is a body, a ``Recorded``, or an exception that is raised instead. It
    stands where an ``HttpTransport`` would.

    >>> transport = ReplayTransport(b'{"ok": true}')
    >>> list(transport.open("https://example.com", {}, b"[1]")), transport.sent[0].json
    ([b'{"ok": true}'], [1])
    """

    def __init__(self, *answers: Union[bytes, Recorded, BaseException]) -> None:
        if not answers:
            raise TypeError("a ReplayTransport needs at least one answer")
        for answer in answers:
            if not isinstance(answer, (bytes, Recorded, BaseException)):
                raise TypeError(
                    "an answer is bytes, a Recorded or an exception, "
                    f"not {answer!r:.80}"
                )
        # Every request it was given, in order.
        self.sent: List[Sent] = []
        self._answers = answers
        self._replies: List[_Replay] = []
        self._lock = threading.Lock()

    @property
    def unclosed(self) -> int:
        """How many answers have been opened and not closed."""
        return sum(not reply.closed for reply in self._replies)

    def open(
        self, url: str, headers: Mapping[str, str], body: bytes, signal: Any = None
    ) -> _Replay:
        """Record the request and return the answer, or raise it."""
        with self._lock:
            answer = self._answers[min(len(self.sent), len(self._answers) - 1)]
            self.sent.append(Sent(url, dict(headers), body))
            if isinstance(answer, BaseException):
                raise answer
            reply = _Replay(Recorded(answer) if isinstance(answer, bytes) else answer)
            self._replies.append(reply)
        return reply

    def context(
        self, model: str, *, format: str | None = None, **fields: Any
    ) -> Context:
        """Return a Context that asks *model* (``"vendor:model"``) through this.

        It is what ``connect`` would give, with a key that is none and no repeated
        requests. *fields* are the Context's.
        """
        name, _, model = model.partition(":")
        vendor = get_vendor(name)
        if vendor is None or not model:
            raise ValueError(f"model is 'vendor:model', not {name!r} and {model!r}")
        provider = Provider(
            vendor,
            WIRES[format or vendor.formats[0]],
            ApiKey("no-key", ()),
            vendor.base_url,
            model=model,
            transport=self,
            retry=Retry(0),
        )
        for name in ("prepare", "execute", "stream"):
            fields.setdefault(name, getattr(provider, name))
        return Context(**fields)

    def close(self) -> None:
        """Do nothing: there are no connections."""


class _Replay:
    """The reply that plays a ``Recorded``."""

    def __init__(self, recorded: Recorded) -> None:
        body = recorded.body
        self.status = recorded.status
        self.headers: Mapping[str, str] = dict(recorded.headers)
        self.closed = False
        self._pieces = (body,) if isinstance(body, bytes) else body
        self._error = recorded.error

    def __iter__(self) -> Iterator[bytes]:
        yield from (piece for piece in self._pieces if piece)
        if self._error is not None:
            raise self._error

    def close(self, drain: float = 0.0) -> None:
        """Remember that this was called."""
        self.closed = True


def calls(
    *pairs: Union[Tuple[str, Any], Tuple[str, Any, str]],
    text: str = "",
    finish: FinishReason = "tool_calls",
) -> Response:
    """Return a response that calls tools.

    A pair is a tool's name and its arguments: a value, or the JSON text itself, which
    may be broken. A third item is the call's id; ``ScriptedModel`` fills in what is
    missing.

    >>> calls(("add", {"a": 1})).tool_calls[0].arguments
    '{"a": 1}'
    >>> calls(("add", '{"a": ', "c9")).tool_calls[0]
    ToolCall(id='c9', name='add', arguments='{"a": ')
    """
    made = []
    for name, arguments, *given in pairs:
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        made.append(ToolCall(given[0] if given else "", name, arguments=arguments))
    return Response(text, tuple(made), finish_reason=finish)


def pieces(
    *texts: str, finish: FinishReason | None = "stop", usage: Usage | None = None
) -> list[Chunk]:
    """Return chunks of text, and a last one with the finish reason and the usage.

    With *finish* and *usage* None there is no last one: a stream that was cut.

    >>> [chunk.content for chunk in pieces("he", "llo")]
    ['he', 'llo', None]
    """
    made = [Chunk(text) for text in texts]
    if finish is not None or usage is not None:
        made.append(Chunk(finish_reason=finish, usage=usage))
    return made


_Ready = Union[
    str, Response, BaseException, Iterable[Union[Chunk, BaseException]], Bound
]


def _reply(reply: object) -> _Ready:
    """Check *reply*; functions are bound to what their parameters ask for."""
    if isinstance(reply, (str, Response, BaseException)):
        return reply
    if isinstance(reply, (list, tuple)):
        for item in reply:
            if not isinstance(item, (Chunk, BaseException)):
                raise TypeError(
                    f"a list of chunks holds Chunk values and exceptions, "
                    f"not {item!r:.80}"
                )
        return tuple(reply)
    if isinstance(reply, Iterator):
        return reply
    if callable(reply):
        return bind(reply, "reply")
    raise TypeError(
        "a reply is a str, a Response, a list of Chunk, an exception or a function "
        f"that returns one of them, not {reply!r:.80}"
    )


def _raising(
    chunks: Iterable[Chunk | BaseException],
) -> Generator[Chunk, None, Optional[Response]]:
    """Hand on *chunks*; raise what is an exception; return what they return."""
    source = iter(chunks)
    while True:
        try:
            item = next(source)
        except StopIteration as end:
            done: Optional[Response] = end.value
            return done
        if isinstance(item, BaseException):
            raise item
        yield item
