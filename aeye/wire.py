"""What a wire format is, what it must know of a model, and how JSON is read with care.

A format is one frozen ``Wire``: pure functions between our values and a vendor's
JSON, no sockets. What differs between the hosts and models that speak one format is
not code but ``ModelFacts``, a record that ``vendor`` fills and a codec reads.
"""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    Mapping,
    Optional,
    Protocol,
    Tuple,
    Type,
)
from urllib.parse import unquote_to_bytes

from .errors import (
    AuthError,
    CapabilityError,
    ContextLengthError,
    ProtocolError,
    RateLimitError,
    ServerError,
    StatusError,
    StreamCutError,
)
from .message import Json, Message
from .request import Request
from .response import Chunk, Response
from .usage import Usage

__all__ = [
    "Fault",
    "ModelFacts",
    "StreamDecoder",
    "Wire",
    "check_name",
    "check_object",
    "cut_error",
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
    "read_price",
    "read_usage",
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
    # How many messages of a request may bear such a mark; None: not known.
    max_cache_marks: Optional[int] = None
    stream_usage: bool = True
    # Keys of an assistant message that the host wants to see again; "<think>": the
    # thought, as text between tags.
    echoes: FrozenSet[str] = frozenset(
        {"reasoning_details", "reasoning_content", "extra_content"}
    )
    # Whether thoughts may stand in the text, before the answer, between <think> and
    # </think>.
    think_tags: bool = False
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

    A number that JSON does not have, or that is too large for one, stays the text that
    it was written as: it may be sent back.

    Raises:
        ProtocolError: it is none, nests too deeply, or has a number too long.
    """
    try:
        if text[:1] == "{":
            # As json.loads, without its look for blanks, of which events have none.
            value, end = _scan(text)
            if end == len(text):
                return value
        return _DECODER.decode(text)
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


def check_object(value: Any, what: str, said: Any = None) -> Json:
    """Return *value*, which was read as *what*; *said* is the text it was read from.

    Raises:
        ProtocolError: it is no object.
    """
    if not isinstance(value, dict):
        shown = value if said is None else said
        raise ProtocolError(f"{what} that is no object: {shown!r:.200}")
    return value


def read_objects(value: Any) -> list[Json]:
    """Return the objects of a list; none of whatever is no list."""
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def read_price(value: Any) -> float | None:
    """Return what a call cost in money, or None for whatever is no price.

    >>> read_price(0.5), read_price(True), read_price(float("nan")), read_price("1")
    (0.5, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e9 else None


def read_usage(body: Json, sent: str, output: str) -> Usage | None:
    """Return the numbers of a body in one of OpenAI's formats, or None.

    *sent* and *output* are what the format calls the tokens of either way.

    >>> read_usage({"usage": {"input_tokens": 3}}, "input", "output").input_tokens
    3
    """
    usage = body.get("usage")
    if not isinstance(usage, dict) or not usage:
        return None
    read, written = (
        found if isinstance(found, dict) else {}
        for found in (usage.get(f"{way}_tokens_details") for way in (sent, output))
    )
    total = read_count(usage.get("total_tokens"))
    asked = read_count(usage.get(f"{sent}_tokens"))
    answered = read_count(usage.get(f"{output}_tokens"))
    reasoning = read_count(written.get("reasoning_tokens"))
    cached = read_count(read.get("cached_tokens"))
    if cached is None:
        cached = read_count(usage.get("prompt_cache_hit_tokens"))  # DeepSeek
    if reasoning and asked is not None and answered is not None:
        # xAI counts reasoning beside the output, everybody else in it.
        answered += reasoning if total == asked + answered + reasoning else 0
    return Usage.of(
        input=asked,
        output=answered,
        cached=cached,
        cache_write=read_count(read.get("cache_write_tokens")),
        reasoning=reasoning,
        total=total,
        cost=read_price(usage.get("cost")),  # OpenRouter
    )


def _number(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


_DECODER = json.JSONDecoder(parse_float=_number, parse_constant=str)
_scan = _DECODER.raw_decode


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


def cut_error(
    text: str, how: str, reason: str = "", usage: Usage | None = None
) -> StreamCutError:
    """Return the exception for a stream that ended too soon, after *text*.

    *how* says what was missing, and *reason* what ended it, where that is known.
    """
    return StreamCutError(
        f"the stream ended after {len(text)} characters of text, {how}"
        f"{reason and ': '}{reason}",
        usage=usage,
        partial=text,
    )


def check_name(message: Message, format: str) -> None:
    """Refuse the name of who speaks, in a format that has no place for it.

    Raises:
        CapabilityError: the message has one. A tool's reply may: it is the tool's.
    """
    if message.name is not None and message.role != "tool":
        raise CapabilityError(
            f"{format} has no place for the name {message.name!r} of who speaks; say "
            "it in the text"
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
