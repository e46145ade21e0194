"""What a wire format is, what it must know of a model, and streamed calls put together.

A format is one frozen ``Wire``: pure functions between our values and a vendor's
JSON, no sockets. What differs between the hosts and models that speak one format is
not code but ``ModelFacts``, a record that ``vendor`` fills and a codec reads.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections import deque
from dataclasses import dataclass, field
from typing import (
    Any,
    Callable,
    Counter,
    Deque,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Protocol,
    Tuple,
    Type,
)
from urllib.parse import unquote_to_bytes

from .errors import (
    AuthError,
    ContextLengthError,
    ProtocolError,
    RateLimitError,
    ServerError,
    StatusError,
)
from .message import Json, ToolCall
from .request import Request
from .response import Chunk, Response, ToolCallDelta

__all__ = [
    "CallAssembler",
    "Fault",
    "ModelFacts",
    "StreamDecoder",
    "Wire",
    "map_texts",
    "may_be_halved",
    "mend_all",
    "mend_text",
    "merge_extra",
    "no_headers",
    "read_answer",
    "read_arguments",
    "read_count",
    "read_json",
    "read_objects",
    "split_data_url",
    "status_error",
    "text_chunk",
]

_EVERYTHING = frozenset({"image", "file", "audio"})
_CHOICES = frozenset({"auto", "none", "required", "tool"})


@dataclass(frozen=True)
class ModelFacts:
    """What a host and a model take. The defaults are those of an unknown model.

    A codec reads the rows it has a use for. ``connect(facts={…})`` changes rows for
    a model that we describe wrongly or not at all.
    """

    # Whose schema dialect the model's validator speaks; None: plain JSON Schema.
    family: Optional[str] = None
    # Whether functions are taken, and whether their schemas can be enforced.
    tools: bool = True
    strict_tools: bool = False
    # Whether a JSON schema is taken for the answer, enforced, and beside tools.
    structured_output: bool = True
    strict_output: bool = False
    output_with_tools: bool = True
    # Forms of tool choice: "auto", "none", "required", "tool" (one by name).
    tool_choices: FrozenSet[str] = _CHOICES
    # Whether there is a switch for one call at a time.
    parallel_switch: bool = True
    # Function tools are refused unless the effort is "none".
    tools_need_no_reasoning: bool = False
    # How thinking is asked for: the vendor's own word for the form; None: not at all.
    reasoning: Optional[str] = "reasoning_effort"
    # The efforts there are; empty: not known.
    efforts: Tuple[str, ...] = ()
    # Fields of Request that are refused; always, and while the model thinks.
    refuses: FrozenSet[str] = frozenset()
    refuses_thinking: FrozenSet[str] = frozenset()
    # Whether it thinks when it is not told.
    thinks: bool = False
    # What may stand in a message besides text; whether pictures and files may be
    # named by their address.
    inputs: FrozenSet[str] = _EVERYTHING
    image_urls: bool = True
    file_urls: bool = False
    # Names of parameters; None: there is none, and nothing is sent.
    token_cap: str = "max_tokens"
    system_role: str = "system"
    user_key: Optional[str] = "user"
    cache_key: Optional[str] = None
    cache_mark: Optional[str] = None
    stream_usage: bool = True
    # Keys of an assistant message that the host wants to see again.
    echoes: FrozenSet[str] = frozenset(
        {"reasoning_details", "reasoning_content", "extra_content"}
    )
    # Whether the ids of calls must be nine letters and digits.
    short_call_ids: bool = False
    # Tokens.
    context_window: Optional[int] = None
    max_output_tokens: Optional[int] = None


@dataclass(frozen=True)
class Fault:
    """What a vendor's error body says, in our words."""

    message: str
    # The vendor's own word, such as "model_not_found".
    code: Optional[str] = None
    # "context_overflow", "schema_rejected", "auth", "rate_limit", "quota",
    # "content_filter", "server" or "other".
    kind: str = "other"
    # The status the body itself names, which a stream has no other place for.
    status: Optional[int] = None
    # Seconds to wait, where the body says it.
    retry_after: Optional[float] = None


class StreamDecoder(Protocol):
    """Turns the events of one stream into chunks. One object per stream."""

    @property
    def ended(self) -> bool:
        """Whether the format's end mark has been seen: what follows is not read."""

    @property
    def finished(self) -> bool:
        """Whether a complete answer has been seen, the end mark perhaps not."""

    def feed(self, data: str, name: str) -> Iterable[Chunk]:
        """Return the chunks of one event: its data and its name ("" for none).

        Raises:
            ProtocolError: the event cannot be read.
            StatusError: the event says that the vendor failed.
        """

    def end(self, reason: str = "") -> Iterable[Chunk]:
        """Return what is left when the body has ended, for whatever *reason*.

        Raises:
            StreamCutError: it ended too soon.
        """


def no_headers(request: Request, facts: ModelFacts) -> Mapping[str, str]:
    """Return no headers: most formats need none of their own."""
    return {}


@dataclass(frozen=True)
class Wire:
    """One wire format."""

    name: str
    # ``path(model, stream)``: what follows the base URL.
    path: Callable[[str, bool], str]
    # ``encode(request, facts, stream)``: the body. The request has been prepared and
    # its media are http(s) or data: URLs. Nothing in it is repaired or dropped.
    encode: Callable[[Request, ModelFacts, bool], Json]
    # ``decode(body, facts)``: the whole answer.
    decode: Callable[[Any, ModelFacts], Response]
    # ``decoder(facts)``: a fresh reader of a stream.
    decoder: Callable[[ModelFacts], StreamDecoder]
    # ``decode_error(status, headers, body)``; the body is JSON, text or None, and the
    # headers' names are in lower case.
    decode_error: Callable[[int, Mapping[str, str], Any], Fault]
    # ``headers(request, facts)``: headers that the format itself asks for.
    headers: Callable[[Request, ModelFacts], Mapping[str, str]] = no_headers
    # Fields of Request, and kinds of Part, that the format has no place for.
    lacks: FrozenSet[str] = frozenset()


def read_answer(data: bytes) -> Any:
    """Read the JSON of a whole body. What is no UTF-8, or half a character, is U+FFFD.

    Raises:
        ProtocolError: as ``read_json``.
    """
    text = data.decode("utf-8-sig", "replace")
    value = read_json(text)
    if not may_be_halved(text):
        return value
    return mend_all(value)


def read_json(text: str) -> Any:
    """Read a vendor's JSON.

    Raises:
        ProtocolError: it is none, nests too deeply, or has a number too long.
    """
    try:
        if text[:1] == "{":
            # As json.loads, without its look for blanks, of which events have none.
            value, end = _scan(text)
            if end == len(text):
                return value
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        if not text.strip():
            raise ProtocolError("an empty answer, where JSON was expected") from exc
        raise ProtocolError(f"an answer that is no JSON: {text[:200]!r}") from exc


def read_arguments(text: str) -> Json:
    """Return a call's arguments as the object that some formats want.

    What is no object, or has a number that JSON does not know, goes out as ``{}``: the
    model reads in the reply to the call what was wrong with it.

    >>> read_arguments('{"city": "Paris"}'), read_arguments('{"city": "Par')
    ({'city': 'Paris'}, {})
    """
    try:
        value = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number of JSON's")
    return number


def merge_extra(body: Json, extra: Mapping[str, Any] | None) -> Json:
    """Return *body* with *extra* over it; objects that both have are joined.

    >>> merge_extra({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}, "c": None})
    {'a': {'b': 1, 'd': 3}, 'c': None}
    """
    joined = dict(body)
    for name, value in (extra or {}).items():
        ours: Any = body.get(name)
        both = isinstance(ours, dict) and isinstance(value, dict)
        joined[name] = {**ours, **value} if both else value
    return joined


def read_count(value: Any) -> int | None:
    """Return a number of tokens or an index, or None for whatever is none.

    >>> read_count(3), read_count(3.0), read_count(True), read_count("3")
    (3, 3, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < 1e18 and value == value // 1 else None


def read_objects(value: Any) -> list[Json]:
    """Return the objects of a list; none of whatever is no list."""
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


_scan = json.JSONDecoder().raw_decode


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return *value* with every text in it, keys included, changed.

    >>> map_texts({"a": ["b", 1], "c": ("d", None)}, str.upper)
    {'A': ['B', 1], 'C': ('D', None)}
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        pairs = value.items()
        return {map_texts(k, change): map_texts(v, change) for k, v in pairs}
    if type(value) in (list, tuple):
        return type(value)(map_texts(item, change) for item in value)
    return value


# Halves of a character beyond U+FFFF. JSON may hold one alone, UTF-8 may not: a text
# with one in it can be neither printed nor sent.
_HALF = re.compile("[\ud800-\udfff]")


def mend_text(text: str) -> str:
    r"""Join characters that are in two halves; what is half of none is U+FFFD.

    >>> mend_text("\ud83d\ude00") == "\U0001f600", mend_text("a\ud83db")
    (True, 'a\ufffdb')
    """
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mend_all(value: Any) -> Any:
    """Return JSON of a vendor's with all its texts mended.

    Raises:
        ProtocolError: it nests too deeply.
    """
    try:
        return map_texts(value, mend_text)
    except RecursionError:
        raise ProtocolError("an answer that nests too deeply") from None


def may_be_halved(json_text: str) -> bool:
    """Whether texts in this JSON may hold half a character.

    UTF-8 has no halves, so they can only have been written as escapes.
    """
    return "\\ud" in json_text or "\\uD" in json_text


def text_chunk(content: str) -> Chunk:
    """Return ``Chunk(content)``, in a third of the time.

    Most chunks hold text alone. The fields' defaults are attributes of the class, so a
    chunk that sets one field is as good as one that sets them all.

    >>> text_chunk("Hi") == Chunk("Hi")
    True
    """
    chunk = object.__new__(Chunk)
    chunk.__dict__["content"] = content
    return chunk


def status_error(
    fault: Fault,
    *,
    status: int | None = None,
    body: Any = None,
    request_id: str | None = None,
    retry_after: float | None = None,
) -> StatusError:
    """Return the exception that stands for *fault*."""
    status = fault.status if status is None else status
    server = fault.kind == "server" or (status is not None and status >= 500)
    cls = _KINDS.get(fault.kind) or (ServerError if server else StatusError)
    return cls(
        fault.message,
        status=status,
        body=body,
        request_id=request_id,
        code=fault.code,
        retry_after=fault.retry_after if retry_after is None else retry_after,
    )


_KINDS: Dict[str, Type[StatusError]] = {
    "auth": AuthError,
    "context_overflow": ContextLengthError,
    "quota": RateLimitError,
    "rate_limit": RateLimitError,
}


def split_data_url(url: str) -> tuple[str, str, str]:
    """Return the media type, the base64 text and the file name of a ``data:`` URL.

    >>> split_data_url("data:application/pdf;name=a.pdf;base64,JVBERg==")
    ('application/pdf', 'JVBERg==', 'a.pdf')
    >>> split_data_url("data:,hello%20there")
    ('text/plain', 'aGVsbG8gdGhlcmU=', '')

    Raises:
        ValueError: it is none.
    """
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:"):
        raise ValueError(f"not a data: URL: {url!r:.80}")
    kind, *options = head[5:].split(";")
    if "base64" not in options:
        data = base64.b64encode(unquote_to_bytes(data)).decode("ascii")
    names = [option[5:] for option in options if option.startswith("name=")]
    name = unquote_to_bytes(names[0]).decode("utf-8", "replace") if names else ""
    return kind or "text/plain", data, name


@dataclass
class _Open:
    """A call that is being assembled."""

    id: str
    name: str = ""
    # Its place in the answer, None where that was not said.
    key: Any = None
    pieces: List[str] = field(default_factory=list)
    # What the vendor keeps with the call, for the codec to see again.
    extra: Any = None
    # Pieces handed on so far.
    sent: int = 0
    named: bool = False
    done: bool = False
    # How often the arguments were looked at and were not whole.
    looks: int = 0

    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces, self.sent = ["".join(self.pieces)], min(self.sent, 1)
        return self.pieces[0] if self.pieces else ""

    def whole(self) -> ToolCall:
        # A tool without parameters is called with nothing by some hosts.
        text = self.text()
        return ToolCall(self.id, self.name, text if text.strip() else "{}")


class CallAssembler:
    """Puts streamed calls together and says when one has begun and is complete.

    A call has begun once its name is known. It is complete when the next one begins
    and its arguments are whole JSON, so that a tool can start while the stream goes
    on; otherwise at the end, since some hosts announce several calls first and send
    the pieces of their arguments in turns.

    Two calls under one id, or under none, cannot be told apart by whoever reads the
    chunks: the second is then held back until the first is complete.
    """

    def __init__(self) -> None:
        self._calls: List[_Open] = []
        # The latest call by place, by id and name (and id alone), and the last of all.
        self._by_key: Dict[Any, _Open] = {}
        self._by_id: Dict[Tuple[str, str], _Open] = {}
        self._last: Optional[_Open] = None
        # Calls that wait to be named, and ids of those that are named and not done.
        self._waiting: Deque[_Open] = deque()
        self._busy: Counter[str] = Counter()
        # How many there were when ``end`` was called.
        self._ended = 0

    @property
    def any(self) -> bool:
        """Whether there has been a call."""
        return bool(self._calls)

    def done(self) -> list[tuple[ToolCall, Any]]:
        """Return the calls that are complete, each with its extra."""
        calls = (call for call in self._calls if call.done and call.name)
        return [(call.whole(), call.extra) for call in calls]

    def add(
        self, key: Any, id: str, name: str, arguments: str, extra: Any = None
    ) -> list[Chunk]:
        """Take a piece of a call in; return what can be handed on.

        *key* is the call's place in the answer (None: not said), and the other
        values are empty where the piece does not say them.
        """
        call = self._find(key, id, name, arguments)
        chunks: list[Chunk] = []
        if call is None:
            chunks = self._complete_last()
            call = self._last = self._by_key[key] = _Open(id, key=key)
            self._calls.append(call)
            self._waiting.append(call)
        if id:
            self._by_id[id, ""] = call
        if call.done:  # nothing may follow whole JSON but blanks
            return chunks
        call.extra = extra or call.extra
        if not call.named:  # what has been said of a call is not taken back
            call.id = call.id or id
            call.name = call.name or name
        if id and call.name:
            self._by_id[id, call.name] = call
        if arguments:
            call.pieces.append(arguments)
        return chunks + (self._hand_on(call) if call.named else self._announce())

    def finish(self, key: Any, arguments: str | None = None) -> list[Chunk]:
        """The vendor says that the call at *key* is complete; return what that gives.

        *arguments* are all of them, where the vendor repeats them. A call that has to
        wait for another's end is completed by ``end``.
        """
        call = self._by_key.get(key)
        if call is None or call.done:
            return []
        chunks = self._announce()
        if arguments is not None and arguments != call.text():
            call.pieces, call.sent = [arguments], 1 if call.named else 0
            if call.named:
                delta = ToolCallDelta(call.id, call.name, arguments, mode="replace")
                chunks.append(Chunk(tool_call_arguments=delta))
        return chunks + self._complete(call) if call.named else chunks

    def end(self) -> list[Chunk]:
        """No more calls: return what completes those that are open.

        Raises:
            ProtocolError: a call has arguments and never got a name.
        """
        chunks: list[Chunk] = []
        for call in self._calls[self._ended :]:
            if not call.done:
                chunks += self._complete(call)
        self._ended = len(self._calls)
        self._waiting.clear()
        return chunks

    def _find(self, key: Any, id: str, name: str, arguments: str) -> _Open | None:
        """Return the call a piece belongs to, or None for a new one."""
        if key is None:
            if not id:
                return None if name else self._last
            same = self._find_by_id(id, name)
            return None if same is None or (same.done and name) else same
        call = self._by_key.get(key)
        if call is None:
            return None
        if id and call.id and id != call.id:
            # Some hosts have one index for all: the id decides.
            same = self._find_by_id(id, name)
            return None if same is None or same.done or same.key != key else same
        begins = name and (call.done or arguments.startswith("{"))
        if begins and not id and (call.done or _whole(call)):
            return None  # and some have no ids either
        return call

    def _find_by_id(self, id: str, name: str) -> _Open | None:
        """Return the latest call with this id; of two names, two calls."""
        latest = self._by_id.get((id, ""))
        if latest is None or not name or not latest.name:
            return latest
        return self._by_id.get((id, name))

    def _announce(self) -> list[Chunk]:
        """Name the calls that wait for it, in their order, as far as that goes."""
        chunks: list[Chunk] = []
        while self._waiting and self._may_be_named(self._waiting[0]):
            chunks += self._hand_on(self._waiting.popleft())
        return chunks

    def _may_be_named(self, call: _Open) -> bool:
        # An id may come in a later piece than the name, but not after arguments.
        if not call.name or not (call.id or call.pieces):
            return False
        return not (self._busy[""] or self._busy[call.id])

    def _hand_on(self, call: _Open) -> list[Chunk]:
        """Return what is new of a call that has been, or may be, named."""
        chunks: list[Chunk] = []
        if not call.named:
            call.named = True
            self._busy[call.id] += 1
            named = ToolCall(call.id, call.name, "")
            chunks.append(Chunk(tool_call_named=named))
        for piece in call.pieces[call.sent :]:
            delta = ToolCallDelta(call.id, call.name, piece)
            chunks.append(Chunk(tool_call_arguments=delta))
        call.sent = len(call.pieces)
        return chunks

    def _complete_last(self) -> list[Chunk]:
        """Complete the last call if its arguments are whole: a new one begins."""
        last = self._last
        if last is None or last.done or not _whole(last):
            return []
        chunks = [] if last.named else self._announce()
        return chunks + self._complete(last) if last.named else chunks

    def _complete(self, call: _Open) -> list[Chunk]:
        call.done = True
        if call.name:
            chunks = [*self._hand_on(call), Chunk(tool_call=call.whole())]
            self._busy[call.id] -= 1
            return chunks
        if call.text().strip():
            raise ProtocolError(f"a tool call without a name: {call.text()!r:.80}")
        return []


# A call is looked at this often, so that no answer can make it costly.
_MAX_LOOKS = 8


def _whole(call: _Open) -> bool:
    """Whether the arguments so far are complete. Cheap where they are not."""
    if not call.pieces or not call.pieces[-1].rstrip().endswith("}"):
        return False
    call.looks += 1
    if call.looks > _MAX_LOOKS:
        return False
    try:
        return isinstance(json.loads(call.text()), dict)
    except (ValueError, RecursionError):
        return False
