"""A vendor, a transport and a wire format: something to ask a model with.

``prepare`` decides what is sent and sends nothing; ``execute`` and ``stream`` send what
they are given, and prepare it first if nobody has.
"""

from __future__ import annotations

import copy
import errno
import json
import os
import re
import time
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple
from urllib.parse import quote

from .context import Context
from .delivery import apply_plan, is_planned
from .errors import (
    AeyeError,
    AuthError,
    CapabilityError,
    ProtocolError,
    ProviderError,
    StatusError,
    StreamCutError,
    TransportError,
)
from .media import resolve_messages
from .message import ToolCall
from .request import Request
from .response import Chunk, Collector, Response, split
from .secret import ApiKey, Mask, bare_url, public_url
from .sse import EventReader
from .transport import (
    HttpTransport,
    Reply,
    Retry,
    Transport,
    check_abort,
    read_body,
    retry_after,
)
from .vendor import Vendor, find_facts
from .wire import ModelFacts, StreamDecoder, Wire, read_answer, status_error
from .wire_anthropic import MESSAGES
from .wire_chat import CHAT
from .wire_gemini import GEMINI
from .wire_responses import RESPONSES
from .wire_text import MendingDecoder

__all__ = ["ApiKey", "Provider", "WIRES"]

# The formats there are, by name.
WIRES: Mapping[str, Wire] = {
    wire.name: wire for wire in (CHAT, RESPONSES, MESSAGES, GEMINI)
}

# Bytes of one answer, or of one event of a stream; and of a whole stream, in which
# each word is wrapped in a few hundred bytes.
_LIMIT = 64 * 1024 * 1024
_STREAM_LIMIT = 1024 * 1024 * 1024
# Bytes of an error's body.
_ERROR_LIMIT = 1024 * 1024
# Seconds to read on after the end mark, so that the connection can be used again.
_DRAIN = 0.2
# Headers that name a request, by vendor.
_REQUEST_IDS = ("x-request-id", "request-id")

_VERSION = re.compile(r"/v\d\w*$")

_write = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, repr=False, eq=False)
class Provider:
    """One way to ask a vendor's models. May be used by any number of threads."""

    vendor: Vendor
    wire: Wire
    key: ApiKey
    base_url: str
    # The model asked where a request names none.
    model: Optional[str] = None
    # Rows of ModelFacts that the caller knows better.
    facts: Tuple[Tuple[str, Any], ...] = ()
    # The caller's own headers. They are in no pickle, since they may hold a secret.
    headers: Optional[Mapping[str, str]] = None
    transport: Transport = field(default_factory=HttpTransport)
    retry: Retry = field(default_factory=Retry)

    def prepare(self, request: Request, ctx: Any = None) -> Request:
        """Return *request* as it is to be sent: model, dialects, delivery, choice.

        Preparing a request twice changes nothing.

        Raises:
            CapabilityError: the model, or the format, has no place for something that
                was asked.
        """
        model = request.model or self.model
        if model is None:
            raise ValueError("the request names no model, and connect() named none")
        if model != request.model:
            request = replace(request, model=model)
        try:
            facts = self.facts_of(model)
            request = _fit(request, facts, self.wire)
            return request if is_planned(request) else apply_plan(request, facts)
        except AeyeError as exc:
            self._sign(exc)
            raise

    def facts_of(self, model: str) -> ModelFacts:
        """Return what is known of *model* here."""
        facts = find_facts(self.vendor, model, self.wire.name)
        return replace(facts, **dict(self.facts)) if self.facts else facts

    def execute(self, request: Request, ctx: Any = None) -> Response:
        """Ask and return the whole answer.

        Raises:
            ProviderError: see its subclasses; ``retryable`` says whether it may pass.
            AbortedError: ``ctx.signal`` was set.
        """
        request = self.prepare(request, ctx)
        signal = None if ctx is None else Context.of(ctx).signal
        facts = self.facts_of(str(request.model))
        try:
            reply = self._open(request, facts, False, signal)
            try:
                data = read_body(reply, _LIMIT, signal)
            except TransportError:
                check_abort(signal)
                raise
            if _kind(reply) == "events":
                response = _join(_chunks([data], self._decoder(facts), signal))
            else:
                response = self.wire.decode(read_answer(data), facts)
        except AeyeError as exc:
            self._sign(exc)
            raise
        if not response.tool_calls:
            return response
        dialects = _dialects(request)
        collector = Collector()  # it makes ids present and unique
        for call in response.tool_calls:
            collector.add(Chunk(tool_call=_marked(call, dialects)))
        return replace(response, tool_calls=collector.tool_calls)

    def stream(self, request: Request, ctx: Any = None) -> Iterator[Chunk]:
        """Ask and yield the answer as it comes. The request is sent by the first step.

        Closing the iterator closes the connection.

        Raises:
            StreamCutError: the stream ended too soon; what had come was yielded.
            ProviderError: as ``execute``.
            AbortedError: ``ctx.signal`` was set.
        """
        request = self.prepare(request, ctx)
        signal = None if ctx is None else Context.of(ctx).signal
        facts = self.facts_of(str(request.model))
        dialects = _dialects(request)
        drain = 0.0
        said: List[str] = []
        reply: Optional[Reply] = None
        try:
            reply = self._open(request, facts, True, signal)
            chunks = self._read(reply, facts, signal)
            for chunk in chunks:
                if dialects and (chunk.tool_call_named or chunk.tool_call):
                    chunk = _mark(chunk, dialects)
                if chunk.content:
                    said.append(chunk.content)
                yield chunk
            drain = _DRAIN
        except AeyeError as exc:
            self._sign(exc, "".join(said))
            raise
        finally:
            if reply is not None:
                reply.close(drain)

    def close(self) -> None:
        """Close idle connections. The provider can still be used."""
        if isinstance(self.transport, HttpTransport):
            self.transport.close()

    def _read(self, reply: Reply, facts: ModelFacts, signal: Any) -> Iterator[Chunk]:
        if _kind(reply) != "json":
            return _chunks(reply, self._decoder(facts), signal)
        # The host does not stream, and answers as if it had not been asked to.
        data = read_body(reply, _LIMIT, signal)
        return iter(split(self.wire.decode(read_answer(data), facts)))

    def _decoder(self, facts: ModelFacts) -> StreamDecoder:
        return MendingDecoder(self.wire.decoder(facts))

    def _open(
        self, request: Request, facts: ModelFacts, stream: bool, signal: Any
    ) -> Reply:
        """Send until there is a good answer or no hope."""
        messages = resolve_messages(request.messages)
        if messages is not request.messages:
            request = replace(request, messages=messages)
        body = _write(self.wire.encode(request, facts, stream)).encode("utf-8")
        url = self._url(str(request.model), stream)
        headers = self._headers(self.wire.headers(request, facts))
        attempt = 0
        while True:
            check_abort(signal)
            try:
                reply = self.transport.open(url, headers, body, signal)
            except TransportError as exc:
                again = exc.retryable and exc.errno != errno.ETIMEDOUT
                error: ProviderError = exc
                asked = None
            else:
                if 200 <= reply.status < 300:
                    return reply
                asked_for = f"{request.model!r} at {bare_url(url)}"
                error, again = self._failed(reply, asked_for, signal)
                asked = error.retry_after
            if not again or attempt >= self.retry.max_retries:
                raise error
            if asked is not None and asked > self.retry.cap:
                raise error
            self.retry.wait(self.retry.delay(attempt, asked), signal)
            attempt += 1

    def _failed(
        self, reply: Reply, asked_for: str, signal: Any
    ) -> tuple[StatusError, bool]:
        """Return the error a reply stands for, and whether to ask again."""
        status, headers = reply.status, reply.headers
        data = read_body(reply, _ERROR_LIMIT, signal, cut=True)
        # Now, since some hosts repeat a wrong key and what is cut is hard to find.
        text = self._mask().hide(data.decode("utf-8", "replace"))
        try:
            body = read_answer(text.encode("utf-8"))
        except ProtocolError:
            body = text[:2000]
        fault = self.wire.decode_error(status, headers, body)
        if 300 <= status < 400:
            host = _host(headers.get("location", ""))
            where = f" (to {host})" if host else ""
            fault = replace(
                fault,
                message=f"the address redirects{where}, which is not followed since "
                "the key would go along; give the right base_url",
            )
        elif fault.kind == "auth" and not (self.headers and self.key.get() is None):
            fault = replace(fault, message=f"{fault.message} ({self.key.origin})")
        elif status == 404:
            fault = replace(fault, message=f"{fault.message} (asked for {asked_for})")
        error = status_error(
            fault,
            status=status,
            body=body,
            request_id=next((headers[n] for n in _REQUEST_IDS if n in headers), None),
            retry_after=retry_after(headers, time.time()),
        )
        return error, fault.kind != "quota" and self.retry.allows(status, headers)

    def _url(self, model: str, stream: bool) -> str:
        path = self.wire.path(model, stream)
        base = self.base_url.replace("{model}", quote(model, safe=""))
        base, mark, query = base.partition("?")
        base = base.rstrip("/")
        # An address is written with the version of the API, or without it.
        if _VERSION.search(base):
            path = re.sub(r"^/v\d\w*(?=/)", "", path)
        if mark and "?" in path:  # Gemini's stream has a query of its own
            mark = "&"
        return f"{base}{path}{mark}{query}"

    def _headers(self, own: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers of a request; the same object for equal ones."""
        lost = self.__dict__.get("_lost")
        if lost:
            raise ValueError(
                f"{' and '.join(lost)} given to connect() are not pickled; "
                "connect() anew"
            )
        key = self.key.get()
        if key is None and not self.vendor.keyless and not self.headers:
            raise AuthError(
                f"there is no key: set {' or '.join(self.key.names)} (a key given to "
                "connect() is not pickled)"
            )
        known: Tuple[Any, ...] = (key, tuple(own.items()))
        made: Any = self.__dict__.get("_made")
        if made is None or made[0] != known:
            headers = {"Content-Type": "application/json", **dict(self.vendor.headers)}
            for name, variable in self.vendor.header_names:
                if os.environ.get(variable):
                    headers[name] = os.environ[variable]
            if key is not None:
                forms = dict(self.vendor.key_forms)
                name, before = forms.get(self.wire.name, self.vendor.key_header)
                headers[name] = before + key
            headers.update(own)
            headers.update(self.headers or {})
            made = known, headers
            self.__dict__["_made"] = made
        return made[1]  # type: ignore[no-any-return]  # kept beside the fields, which are frozen

    def _sign(self, exc: AeyeError, said: str = "") -> None:
        """Make *exc* fit to leave: with a name and what was *said*, without secrets."""
        if isinstance(exc, ProviderError):
            exc.provider = exc.provider or self.vendor.name
            exc.partial = said or exc.partial
        self._mask().clean(exc)

    def _mask(self) -> Mask:
        return Mask(self.key.get(), self.headers or {}, self.base_url)

    def __getstate__(self) -> Dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k != "_made"}
        lost = list(self.__dict__.get("_lost", ()))
        if self.headers:
            lost.append(f"the headers {list(self.headers)}")
        url = public_url(self.base_url)
        if url != self.base_url:
            lost.append("what is secret in the base_url")
        return {**state, "headers": None, "base_url": url, "_lost": tuple(lost)}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: Dict[int, Any]) -> Provider:
        made = replace(self, transport=copy.deepcopy(self.transport, memo))
        made.__dict__.update(_lost=self.__dict__.get("_lost", ()))
        return made

    def __repr__(self) -> str:
        host = _host(self.base_url)
        return f"<Provider {self.vendor.name}:{self.model} ({self.wire.name}, {host})>"


def _host(url: str) -> str:
    return bare_url(url).partition("://")[2].partition("/")[0]


def _join(chunks: Iterable[Chunk]) -> Response:
    """As ``join``; an error has the text so far."""
    collector = Collector()
    try:
        for chunk in chunks:
            collector.add(chunk)
    except ProviderError as exc:
        exc.partial = collector.content
        raise
    return collector.response()


def _chunks(pieces: Any, decoder: StreamDecoder, signal: Any) -> Iterator[Chunk]:
    """Bytes to chunks, up to the end mark."""
    reader = EventReader(_LIMIT)
    feed, decode = reader.feed, decoder.feed
    size = 0
    try:
        for piece in pieces:
            if signal is not None:
                check_abort(signal)
            size += len(piece)
            if size > _STREAM_LIMIT:
                raise ProtocolError(f"a stream of more than {_STREAM_LIMIT} bytes")
            for data, name in feed(piece):
                yield from decode(data, name)
                if decoder.ended:
                    return
    except TransportError as exc:
        broken: Optional[TransportError] = exc
    else:
        broken = None
    check_abort(signal)
    yield from _rest(reader, decoder, broken)


def _rest(
    reader: EventReader, decoder: StreamDecoder, broken: TransportError | None
) -> Iterator[Chunk]:
    """What the end of the body completes; *broken* says what ended it early."""
    reason = "" if broken is None else broken.message
    try:
        for data, name in reader.end():
            yield from decoder.feed(data, name)
    except ProtocolError:  # the last event was cut in its middle
        reason = reason or "it broke off inside an event"
    try:
        yield from () if decoder.ended else decoder.end(reason)
    except StreamCutError as exc:
        exc.retryable = broken is not None
        raise exc from broken


def _kind(reply: Reply) -> str:
    said = reply.headers.get("content-type", "").lower()
    if "event-stream" in said:
        return "events"
    return "json" if "json" in said and "ndjson" not in said else ""


def _dialects(request: Request) -> dict[str, str | None]:
    return {tool.name: tool.descriptor for tool in request.tools}


def _marked(call: ToolCall, dialects: Mapping[str, str | None]) -> ToolCall:
    """Note in which dialect the arguments were written."""
    found = dialects.get(call.name)
    return call if found is None else replace(call, descriptor=found)


def _mark(chunk: Chunk, dialects: Mapping[str, str | None]) -> Chunk:
    named, call = chunk.tool_call_named, chunk.tool_call
    return replace(
        chunk,
        tool_call_named=None if named is None else _marked(named, dialects),
        tool_call=None if call is None else _marked(call, dialects),
    )


# What a model takes.


def _fit(request: Request, facts: ModelFacts, wire: Wire) -> Request:
    """Check *request* against what the model takes; settle the tool choice."""
    refused = facts.refuses | wire.lacks
    if facts.refuses_thinking and _thinks(request, facts):
        refused |= facts.refuses_thinking
    for name in sorted(refused):
        value = getattr(request, name, None)
        if value is not None and value is not False and value != ():
            raise CapabilityError(f"{request.model} takes no {name} here")
    request = _fit_reason(request, facts)
    marks = sum(message.cache is not None for message in request.messages)
    if facts.cache_mark and marks > (facts.max_cache_marks or marks):
        raise CapabilityError(
            f"{request.model} takes at most {facts.max_cache_marks} messages that are "
            f"marked to be cached, not {marks}: keep the last marks"
        )
    if request.tools:
        request = _fit_tools(request, facts)
    for message in request.messages:
        if not isinstance(message.content, str):
            _check_parts(message.content, request.model, facts, wire)
    return request


def _thinks(request: Request, facts: ModelFacts) -> bool:
    reason = request.reason
    if reason is None or (reason.effort is None and reason.max_tokens is None):
        return facts.thinks
    return reason.effort != "none"


def _fit_reason(request: Request, facts: ModelFacts) -> Request:
    reason = request.reason
    if reason is None:
        return request
    if facts.reasoning is None:
        if reason.effort == "none":
            return replace(request, reason=None)
        raise CapabilityError(f"{request.model} cannot be told how much to think")
    if facts.efforts and reason.effort not in (None, *facts.efforts):
        raise CapabilityError(
            f"{request.model} has no effort {reason.effort!r}; it has {facts.efforts}"
        )
    return request


def _fit_tools(request: Request, facts: ModelFacts) -> Request:
    if not facts.tools:
        raise CapabilityError(f"{request.model} takes no tools")
    effort = None if request.reason is None else request.reason.effort
    if facts.tools_need_no_reasoning and effort != "none":
        raise CapabilityError(
            f"{request.model} takes tools on chat completions only without reasoning: "
            "say reason={'effort': 'none'}, or connect(…, format='responses')"
        )
    choice = request.tool_choice
    if isinstance(choice, Mapping):
        return _fit_named(request, str(choice["tool"]), facts)
    if choice is None or choice in facts.tool_choices:
        return request
    if choice == "none":
        return replace(request, tools=(), tool_choice=None)
    if choice == "auto":
        return replace(request, tool_choice=None)
    raise CapabilityError(f"{request.model} cannot be made to call a tool")


def _fit_named(request: Request, name: str, facts: ModelFacts) -> Request:
    only = tuple(tool for tool in request.tools if tool.name == name)
    if not only:
        names = sorted(tool.name for tool in request.tools)
        raise ValueError(f"tool_choice names {name!r}, the tools are {names}")
    if "tool" in facts.tool_choices:
        return request
    if "required" in facts.tool_choices:
        return replace(request, tools=only, tool_choice="required")
    raise CapabilityError(f"{request.model} cannot be made to call {name!r}")


def _check_parts(parts: Any, model: Any, facts: ModelFacts, wire: Wire) -> None:
    for part in parts:
        if part.type == "text":
            continue
        if part.type not in facts.inputs or part.type in wire.lacks:
            raise CapabilityError(f"{model} takes no {part.type} here")
        by_address = isinstance(part.data, str) and not part.data.startswith("data:")
        if part.type == "image" and by_address and not facts.image_urls:
            raise CapabilityError(
                f"{model} takes no picture by its address; give the bytes or a Path"
            )
