"""What OpenAI Responses answers: whole, streamed, and where it failed.

Recorded traffic of OpenAI, OpenRouter, DeepSeek and llama.cpp, gathered 2026-11-30.
https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from .errors import ProtocolError, StatusError
from .message import Json, Reasoning, ToolCall
from .response import Chunk, FinishReason, Response
from .usage import Usage
from .wire import (
    Fault,
    ModelFacts,
    check_object,
    cut_error,
    read_count,
    read_json,
    read_objects,
    read_usage,
    status_error,
    text_chunk,
)
from .wire_call import CallAssembler
from .wire_fault import read_fault

__all__ = ["Decoder", "decode", "decode_error", "read_items"]


@dataclass
class _Said:
    """What items say, in our words."""

    text: str = ""
    refusal: str = ""
    thought: str = ""
    calls: Tuple[ToolCall, ...] = ()


def read_items(items: list[Json]) -> _Said:
    """Return what items say together."""
    thoughts = [text for item in items for text in _thoughts(item)]
    calls = [_call_fields(i) for i in items if i.get("type") == "function_call"]
    return _Said(
        "".join(_joined(item, "output_text", "text") for item in items),
        "".join(_joined(item, "refusal", "refusal") for item in items),
        "\n\n".join(thoughts),
        tuple(ToolCall(key, name, text or "{}") for key, name, text in calls),
    )


def _joined(item: Json, kind: str, key: str) -> str:
    """Return the text of a message's parts of one kind."""
    if item.get("type") != "message":
        return ""
    parts = read_objects(item.get("content"))
    return "".join(_str(p.get(key)) for p in parts if p.get("type") == kind)


def _thoughts(item: Json) -> list[str]:
    """Return the texts of a reasoning item: summaries, then the thought itself."""
    if item.get("type") != "reasoning":
        return []
    parts = read_objects(item.get("summary")) + read_objects(item.get("content"))
    return [text for text in (_str(part.get("text")) for part in parts) if text]


def _call_fields(item: Json) -> tuple[str, str, str]:
    arguments = item.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    text = arguments or ""
    return _str(item.get("call_id")), _str(item.get("name")), text.strip() and text


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""


def decode(body: Any, facts: ModelFacts) -> Response:
    """Read a whole answer.

    Raises:
        ProtocolError: it is none.
        StatusError: it says that the vendor failed.
    """
    body = check_object(body, "an answer")
    _check_status(body)
    output = body.get("output")
    if not isinstance(output, list):
        raise ProtocolError(f"an answer without output: {body!r:.200}")
    items = read_objects(output)
    if not (items or body.get("status")):
        raise ProtocolError(f"an answer with neither output nor status: {body!r:.200}")
    said = read_items(items)
    nameless = [call for call in said.calls if not call.name]
    if nameless:
        raise ProtocolError(f"a tool call without a name: {nameless[0]!r:.200}")
    return Response(
        said.text,
        said.calls,
        finish_reason=_finish(body, bool(said.calls), bool(said.refusal)),
        refusal=said.refusal or None,
        reasoning=Reasoning(said.thought) if said.thought else None,
        usage=_read_usage(body) or Usage(),
        model=_str(body.get("model")) or None,
        extra=_extra(body, items),
        native=_native(body, items),
        cut_note=_note(body),
    )


def _check_status(body: Json) -> None:
    """Raise for a response that holds no answer."""
    status = body.get("status")
    if body.get("error") or status in ("failed", "cancelled"):
        raise _failure(body)
    if status in ("queued", "in_progress"):
        raise ProtocolError(
            f"the response is {status}; an answer made in the background is not "
            "waited for"
        )


def _failure(response: Json) -> StatusError:
    """Return the error of a response, or of an event that tells of one."""
    error = response.get("error")
    if not error:
        flat = {k: response[k] for k in ("code", "message") if response.get(k)}
        error = flat or f"the response is {response.get('status') or 'failed'}"
    failure = status_error(read_fault({"error": error}), body=response)
    failure.usage = _read_usage(response)
    return failure


def _finish(response: Json, called: bool, refused: bool) -> FinishReason:
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        # Any other limit cuts the answer, too.
        return "content_filter" if reason == "content_filter" else "length"
    return "tool_calls" if called else "refusal" if refused else "stop"


def _note(response: Json) -> str | None:
    """Say why an answer was cut, where it was not the limit of tokens."""
    if response.get("status") != "incomplete":
        return None
    details = response.get("incomplete_details")
    reason = _str(details.get("reason")) if isinstance(details, dict) else ""
    if reason in ("", "content_filter", "max_output_tokens", "max_tokens"):
        return None
    return f"the answer was cut, and the vendor's reason is {reason!r}"


def _read_usage(response: Json) -> Usage | None:
    return read_usage(response, "input", "output")


def _extra(body: Json, items: list[Json]) -> Json | None:
    """What else was said, by the vendor's names; not what it repeats of the request."""
    keys = ("id", "incomplete_details", "service_tier")
    extra: Json = {key: body[key] for key in keys if body.get(key) is not None}
    parts = [part for item in items for part in read_objects(item.get("content"))]
    for key in ("annotations", "logprobs"):
        found = [one for part in parts for one in read_objects(part.get(key))]
        if found:
            extra[key] = found
    return extra or None


def _native(response: Json, items: list[Json]) -> Json | None:
    """Return the items to be sent back, where they say more than our fields.

    Those of an answer that was cut are not: a thought without what followed is refused.
    """
    plain = all(
        item.get("type") in ("message", "function_call") and not item.get("phase")
        for item in items
    )
    if plain or response.get("status") == "incomplete":
        return None
    return {"format": "responses", "items": items}


# Streams.

# Events with a piece of text: what it is a piece of, and in which kind of item.
_DELTAS = {
    "response.output_text.delta": ("text", "message"),
    "response.refusal.delta": ("refusal", "message"),
    "response.reasoning_summary_text.delta": ("summary_index", "reasoning"),
    "response.reasoning_text.delta": ("content_index", "reasoning"),
    "response.function_call_arguments.delta": ("arguments", "function_call"),
}
_ENDS = ("response.completed", "response.incomplete", "response.failed")


@dataclass
class _Item:
    """An output item that is being streamed."""

    # Its number in the order of arrival, and its place as the vendor counts.
    key: int
    place: int
    # As it was announced or, when it is done, as it is.
    value: Json
    # Whether a piece of its text has been handed on; whether it is complete.
    sent: bool = False
    done: bool = False


@dataclass
class Decoder:
    """Reads one stream of response events.

    An item is told by its id, else by its place: some gateways change the id between
    its first event and its last, and llama.cpp names no places.
    """

    ended: bool = False
    finished: bool = False
    _items: List[_Item] = field(default_factory=list)
    _by_id: Dict[str, _Item] = field(default_factory=dict)
    _by_place: Dict[int, _Item] = field(default_factory=dict)
    _calls: CallAssembler = field(default_factory=CallAssembler)
    _text: List[str] = field(default_factory=list)
    _refused: bool = False
    # The item and the part of it that the last piece of a thought belonged to.
    _thought: Optional[Tuple[Any, ...]] = None

    def feed(self, data: str, name: str = "") -> Iterable[Chunk]:
        """Return the chunks of one event; see ``StreamDecoder.feed``."""
        if data.startswith("[DONE]"):
            return self._close({})
        if not data.strip():  # perhaps cut off: its name alone says nothing
            return ()
        event = check_object(read_json(data), "an event", data)
        kind = _str(event.get("type")) or name
        if kind in _DELTAS:
            return self._take_piece(event, *_DELTAS[kind])
        if kind == "error" or event.get("error"):
            raise _failure(event)
        if kind in _ENDS:
            response = event.get("response")
            response = response if isinstance(response, dict) else {}
            if response.get("status") != "incomplete":
                response = {**response, "status": kind.partition(".")[2]}
            return self._close(response)
        item = event.get("item")
        if not isinstance(item, dict):
            return ()
        if kind == "response.output_item.added":
            return self._begin(event, item)
        return self._complete(event, item) if kind == _ITEM_DONE else ()

    def end(self, reason: str = "") -> Iterable[Chunk]:
        """Return what is left; see ``StreamDecoder.end``."""
        raise cut_error("".join(self._text), "without its last event", reason)

    def _find(self, event: Json, value: Json) -> _Item | None:
        """Return the item an event is about, or None for one not heard of."""
        # llama.cpp calls a function's item by the id of the call.
        names = (event.get("item_id"), value.get("id"), value.get("call_id"))
        known = [self._by_id[name] for name in map(_str, names) if name in self._by_id]
        place = read_count(event.get("output_index"))
        if known:
            return known[0]
        if place is not None:
            return self._by_place.get(place)
        unnamed = not any(map(_str, names))
        return self._items[-1] if unnamed and self._items else None

    def _open(self, event: Json, value: Json) -> _Item:
        key = len(self._items)
        place = read_count(event.get("output_index"))
        item = _Item(key, key if place is None else place, value)
        self._items.append(item)
        self._by_place[item.place] = item
        for name in (event.get("item_id"), value.get("id"), value.get("call_id")):
            if _str(name):
                self._by_id[_str(name)] = item
        return item

    def _begin(self, event: Json, value: Json) -> list[Chunk]:
        item = self._by_id.get(_str(value.get("id")))
        if item is None or item.done:
            item = self._open(event, value)
        return self._name(item)

    def _name(self, item: _Item) -> list[Chunk]:
        if item.value.get("type") != "function_call":
            return []
        call_id, name, _ = _call_fields(item.value)
        return self._calls.add(item.key, call_id, name, "")

    def _take_piece(self, event: Json, what: str, kind: str) -> Iterable[Chunk]:
        piece = event.get("delta")
        if not piece or not isinstance(piece, str):
            return ()
        item = self._by_id.get(_str(event.get("item_id")))
        if item is None:
            item = self._find(event, {}) or self._open(event, {"type": kind})
        if what == "arguments":
            return self._calls.add(item.key, "", "", piece)
        item.sent = True
        if what == "text":
            self._text.append(piece)
            return (text_chunk(piece),)
        if what == "refusal":
            self._refused = True
            return (Chunk(refusal=piece),)
        return (self._think(piece, (item.key, what, event.get(what))),)

    def _think(self, piece: str, place: Tuple[Any, ...]) -> Chunk:
        """Hand on a piece of a thought, set off from the part before."""
        new = self._thought is not None and self._thought != place
        self._thought = place
        return Chunk(reasoning=Reasoning(f"\n\n{piece}" if new else piece))

    def _complete(self, event: Json, value: Json) -> list[Chunk]:
        """Take an item as it is in the end; return what had not been handed on."""
        known = self._find(event, value)
        item = known or self._open(event, value)
        if item.done:
            return []
        named = known is not None and bool(known.value.get("name"))
        item.value, item.done = value, True
        if value.get("type") == "function_call":
            chunks = [] if named else self._name(item)
            arguments = _call_fields(value)[2]
            return chunks + self._calls.finish(item.key, arguments or None)
        if item.sent:
            return []
        said = read_items([value])
        chunks = []
        if said.thought:
            chunks.append(self._think(said.thought, (item.key,)))
        if said.text:
            self._text.append(said.text)
            chunks.append(text_chunk(said.text))
        if said.refusal:
            self._refused = True
            chunks.append(Chunk(refusal=said.refusal))
        return chunks

    def _close(self, response: Json) -> list[Chunk]:
        """The last event: return what is known at the end only."""
        if response:
            _check_status(response)
        if not (self._items or isinstance(response.get("output"), list)):
            raise cut_error("", "without any output", "", _read_usage(response))
        chunks: List[Chunk] = []
        output = read_objects(response.get("output"))
        heard = bool(self._items)
        for place, value in enumerate(output):
            event = {"output_index": place}
            if not heard or self._find(event, value) is not None:
                chunks += self._complete(event, value)
        chunks += self._calls.end()
        self.ended = self.finished = True
        last = Chunk(
            finish_reason=_finish(response, self._calls.any, self._refused),
            usage=_read_usage(response),
            model=_str(response.get("model")) or None,
            native=_native(response, self._final(output)),
            cut_note=_note(response),
        )
        return [*chunks, last]

    def _final(self, output: list[Json]) -> list[Json]:
        """Return the items as they are in the end.

        The last event repeats them, except where it leaves them out. As they were
        announced they are not to be kept: their encrypted content is not whole.
        """
        done = [item for item in self._items if item.done]
        if len(output) >= len(done):
            return output
        return [item.value for item in sorted(done, key=lambda item: item.place)]


_ITEM_DONE = "response.output_item.done"


def decode_error(status: int, headers: Mapping[str, str], body: Any) -> Fault:
    """Read the body of an error."""
    return read_fault(body, status)
