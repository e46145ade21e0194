"""What Anthropic Messages answers: whole, streamed, and where it failed.

Recorded traffic of Anthropic, of gateways and of servers that imitate it, gathered
2026-11-30. https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterable, List, Mapping

from .errors import ProtocolError, StreamCutError
from .message import Json, Message, Reasoning, ToolCall
from .response import WINDOW_FULL, Chunk, FinishReason, Response
from .usage import Usage
from .wire import (
    Fault,
    ModelFacts,
    check_object,
    cut_error,
    read_arguments,
    read_count,
    read_json,
    read_objects,
    status_error,
    text_chunk,
)
from .wire_call import CallAssembler
from .wire_fault import read_fault

__all__ = ["Decoder", "NAME", "call_id", "decode", "decode_error", "said_blocks"]

# The format's name, also in what is kept to be sent back.
NAME = "messages"
_FINISH: Dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refusal",
}
_NOTES = {
    "model_context_window_exceeded": WINDOW_FULL,
    "pause_turn": "the answer was paused, since the vendor's own tools had run as "
    "often as they may in one request; it goes on when its message is sent back",
}
# An error that comes inside a stream has lost its status, and names it by its type.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_SCHEMA = re.compile(
    r"json schema is invalid|input_schema|output_config\.format|compiled grammar"
    r"|schema is too complex|additionalproperties|too many (strict|optional|union)",
    re.IGNORECASE,
)


def decode(body: Any, facts: ModelFacts) -> Response:
    """Read a whole answer.

    Raises:
        ProtocolError: it is none.
        StatusError: it says that the vendor failed.
    """
    body = check_object(body, "an answer")
    if body.get("type") == "error" or body.get("error"):
        raise status_error(_fault(body), body=body)
    content = body.get("content")
    blocks = read_objects(content)
    if not isinstance(content, list) or len(blocks) < len(content):
        raise ProtocolError(f"an answer without content: {body!r:.200}")
    if not (blocks or body.get("stop_reason")):
        raise ProtocolError(
            f"an answer with neither content nor a stop reason: {body!r:.200}"
        )
    calls = tuple(_read_call(b) for b in blocks if b.get("type") == "tool_use")
    text = _joined(blocks, "text")
    thought = _joined(blocks, "thinking")
    known = ("content", "usage", "model", "role", "type")
    extra = {k: v for k, v in body.items() if k not in known and v is not None}
    return Response(
        text,
        calls,
        finish_reason=_finish(body.get("stop_reason"), bool(calls)),
        refusal=_refusal(body),
        reasoning=Reasoning(thought) if thought else None,
        usage=_read_usage(body.get("usage")),
        model=_text(body.get("model")),
        extra=extra or None,
        native=_native(blocks, text, calls),
        cut_note=_note(body.get("stop_reason")),
    )


def _joined(blocks: List[Json], kind: str) -> str:
    """Return the texts of the blocks of a kind, whose key is called as they are."""
    found = (block.get(kind) for block in blocks if block.get("type") == kind)
    return "".join(text for text in found if isinstance(text, str))


def _read_call(block: Json) -> ToolCall:
    name, given = _text(block.get("name")), block.get("input")
    if name is None:
        raise ProtocolError(f"a tool call without a name: {block!r:.200}")
    arguments = "{}" if given is None else json.dumps(given, ensure_ascii=False)
    return ToolCall(_text(block.get("id")) or "", name, arguments)


def _finish(raw: Any, called: bool) -> FinishReason:
    found = _FINISH.get(raw) if isinstance(raw, str) else None
    return found or ("tool_calls" if called else "stop")


def _note(raw: Any) -> str | None:
    return _NOTES.get(raw) if isinstance(raw, str) else None


def _refusal(said: Json) -> str | None:
    details = said.get("stop_details")
    if said.get("stop_reason") != "refusal" or not isinstance(details, dict):
        return None
    return _text(details.get("explanation"))


def _text(value: Any) -> str | None:
    return value if value and isinstance(value, str) else None


def _read_usage(usage: Any) -> Usage:
    """Read the numbers. What the cache gave and took is not in the input here."""
    if not isinstance(usage, dict):
        return Usage()
    fresh = read_count(usage.get("input_tokens"))
    cached = read_count(usage.get("cache_read_input_tokens"))
    written = read_count(usage.get("cache_creation_input_tokens"))
    details = usage.get("output_tokens_details")
    details = details if isinstance(details, dict) else {}
    said = [number for number in (fresh, cached, written) if number is not None]
    return Usage.of(
        input=sum(said) if said else None,
        output=read_count(usage.get("output_tokens")),
        cached=cached,
        cache_write=written,
        reasoning=read_count(details.get("thinking_tokens")),
    )


def _native(
    blocks: List[Json], text: str, calls: Iterable[ToolCall]
) -> Dict[str, Any] | None:
    """Return the blocks to send back, or None where the fields make the same ones."""
    message = Message("assistant", text, tool_calls=tuple(calls))
    if not blocks or blocks == said_blocks(message):
        return None
    return {"format": NAME, "items": blocks}


def said_blocks(message: Message) -> list[Json]:
    """Return the blocks that the fields of an assistant message make."""
    text = message.text if message.text.strip() else message.refusal or ""
    blocks: List[Json] = [{"type": "text", "text": text}] if text.strip() else []
    for call in message.tool_calls:
        blocks.append(
            {
                "type": "tool_use",
                "id": call_id(call.id),
                "name": call.name,
                "input": read_arguments(call.arguments),
            }
        )
    return blocks


def call_id(key: str) -> str:
    """Return *key* with the characters that an id may have: others make other ids."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", key)


@dataclass
class _Block:
    """A block that is being streamed: how it began, and its text or JSON so far."""

    begun: Json
    pieces: List[str] = field(default_factory=list)

    @property
    def kind(self) -> Any:
        return self.begun.get("type")

    def whole(self) -> Json:
        text = "".join(self.pieces)
        if self.kind in ("text", "thinking"):
            return {**self.begun, self.kind: text}
        if not text.strip():
            return self.begun
        return {**self.begun, "input": read_arguments(text)}


class Decoder:
    """Reads one stream of message events."""

    def __init__(self, facts: ModelFacts) -> None:
        self.ended = False
        self.finished = False
        # Whether anything was handed on.
        self._spoke = False
        self._begin({})

    def _begin(self, message: Json) -> None:
        self._calls = CallAssembler()
        # The blocks in their order, and the latest at each index.
        self._blocks: List[_Block] = []
        self._by_index: Dict[Any, _Block] = {}
        usage = message.get("usage")
        self._usage: Json = dict(usage) if isinstance(usage, dict) else {}
        self._model = _text(message.get("model"))

    def feed(self, data: str, name: str = "") -> Iterable[Chunk]:
        """Return the chunks of one event; see ``StreamDecoder.feed``."""
        if data.startswith("[DONE]"):  # not Anthropic's, but some gateways'
            return self._stop({})
        event = read_json(data) if data.strip() else {}
        event = check_object(event, "an event", data)
        kind = event.get("type") or name
        if kind == "error" or event.get("error"):
            error = status_error(_fault(event), body=event)
            error.usage = _read_usage(self._usage)
            raise error
        take = _TAKES.get(kind) if isinstance(kind, str) else None
        chunks = [] if take is None else take(self, event)
        self._spoke = self._spoke or bool(chunks)
        return chunks

    def end(self, reason: str = "") -> Iterable[Chunk]:
        """Return what is left; see ``StreamDecoder.end``."""
        if not self.finished:
            raise self._cut("without a stop reason", reason)
        return self._last()

    def _cut(self, how: str, reason: str = "") -> StreamCutError:
        text = _joined([block.whole() for block in self._blocks], "text")
        return cut_error(text, how, reason, _read_usage(self._usage))

    def _begin_message(self, event: Json) -> list[Chunk]:
        """Begin; some gateways ask again behind the curtain, and begin anew.

        Text and whole calls that were handed on cannot be taken back: a tool may have
        run. Thoughts and pieces of a call can.
        """
        text = any(b.kind == "text" and b.pieces for b in self._blocks)
        if text or self._calls.done() or self.finished:
            error = self._cut("without a stop reason", "the host began its answer anew")
            error.retryable = True
            raise error
        message = event.get("message")
        self._begin(message if isinstance(message, dict) else {})
        return [Chunk(restart=True)] if self._spoke else []

    def _begin_block(self, event: Json) -> list[Chunk]:
        begun = event.get("content_block")
        block = _Block(dict(begun) if isinstance(begun, dict) else {})
        index = read_count(event.get("index"))
        self._blocks.append(block)
        self._by_index[index] = block
        if block.kind == "tool_use":
            key, name = _text(block.begun.get("id")), _text(block.begun.get("name"))
            return self._calls.add(index, key or "", name or "", "")
        return self._say(block, block.begun.get(str(block.kind)))

    def _add_to_block(self, event: Json) -> list[Chunk]:
        index, delta = read_count(event.get("index")), event.get("delta")
        block = self._by_index.get(index)
        if block is None or not isinstance(delta, dict):
            return []
        kind = delta.get("type")
        if kind == "text_delta":
            return self._say(block, delta.get("text"))
        if kind == "thinking_delta":
            return self._say(block, delta.get("thinking"))
        if kind == "input_json_delta":
            piece = delta.get("partial_json")
            if isinstance(piece, str) and piece:
                block.pieces.append(piece)
                if block.kind == "tool_use":
                    return self._calls.add(index, "", "", piece)
        elif kind == "signature_delta":
            block.begun["signature"] = delta.get("signature")
        elif kind == "citations_delta":
            before = block.begun.get("citations") or []
            block.begun["citations"] = [*before, delta.get("citation")]
        return []

    def _say(self, block: _Block, text: Any) -> list[Chunk]:
        if not text or not isinstance(text, str):
            return []
        block.pieces.append(text)
        if block.kind == "thinking":
            return [Chunk(reasoning=Reasoning(text))]
        return [text_chunk(text)] if block.kind == "text" else []

    def _end_block(self, event: Json) -> list[Chunk]:
        index = read_count(event.get("index"))
        block = self._by_index.get(index)
        if block is None or block.kind != "tool_use":
            return []
        chunks: List[Chunk] = []
        given = block.begun.get("input")
        if given and not block.pieces:  # some hosts send it whole
            text = json.dumps(given, ensure_ascii=False)
            chunks += self._calls.add(index, "", "", text)
        return chunks + self._calls.finish(index)

    def _end_message(self, event: Json) -> list[Chunk]:
        usage, delta = event.get("usage"), event.get("delta")
        if isinstance(usage, dict):  # these are the numbers so far, not more of them
            self._usage.update((k, v) for k, v in usage.items() if v is not None)
        if not isinstance(delta, dict) or not delta.get("stop_reason") or self.finished:
            return []
        self.finished = True
        chunks = self._calls.end()
        refusal = _refusal(delta)
        finish = _finish(delta["stop_reason"], self._calls.any)
        note = _note(delta["stop_reason"])
        last = Chunk(finish_reason=finish, refusal=refusal, cut_note=note)
        return [*chunks, last]

    def _stop(self, event: Json) -> list[Chunk]:
        if not (self.finished or self._blocks):
            raise self._cut("with neither content nor a stop reason")
        self.ended = True
        return self._last()

    def _last(self) -> list[Chunk]:
        """Return what is known at the end only, the finish if nobody said it."""
        chunks = self._calls.end()
        said = self.finished and not chunks
        self.finished = True
        blocks = [block.whole() for block in self._blocks]
        calls = [call for call, _ in self._calls.done()]
        usage = _read_usage(self._usage)
        last = Chunk(
            finish_reason=None if said else _finish(None, self._calls.any),
            usage=usage or None,
            model=self._model,
            native=_native(blocks, _joined(blocks, "text"), calls),
        )
        return [*chunks, last]


_TAKES: Dict[str, Callable[[Decoder, Json], List[Chunk]]] = {
    "message_start": Decoder._begin_message,
    "content_block_start": Decoder._begin_block,
    "content_block_delta": Decoder._add_to_block,
    "content_block_stop": Decoder._end_block,
    "message_delta": Decoder._end_message,
    "message_stop": Decoder._stop,
}


# Errors.


def decode_error(status: int, headers: Mapping[str, str], body: Any) -> Fault:
    """Read the body of an error."""
    return _fault(body, status)


def _fault(body: Any, status: int | None = None) -> Fault:
    error = body.get("error") if isinstance(body, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    if status is None:
        status = _STATUS.get(kind) if isinstance(kind, str) else None
    fault = read_fault(body, status)
    if status == 402:
        return replace(fault, kind="quota")
    if fault.kind == "other" and _SCHEMA.search(fault.message):
        return replace(fault, kind="schema_rejected")
    return fault
