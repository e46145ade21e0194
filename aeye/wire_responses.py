"""OpenAI Responses: items in, items out.

Nothing is kept at the vendor's (``store`` is false), so what a model thought travels
with the history: encrypted reasoning is asked for, and the items of an earlier turn
are sent back as they came. Facts from the official client's types and recorded traffic
of OpenAI, OpenRouter, DeepSeek and llama.cpp, gathered 2026-11-30.
https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from .descriptor import get_descriptor_by_id
from .emit import to_json_schema
from .errors import CapabilityError, ProtocolError, StatusError
from .message import Json, Message, Part, Reasoning, ToolCall
from .request import Request, ResponseFormat, ToolDefinition
from .response import Chunk, FinishReason, Response
from .usage import Usage
from .wire import (
    Fault,
    ModelFacts,
    Wire,
    check_name,
    cut_error,
    merge_extra,
    read_count,
    read_json,
    read_objects,
    read_usage,
    split_data_url,
    status_error,
    text_chunk,
)
from .wire_call import CallAssembler
from .wire_fault import read_fault

__all__ = ["RESPONSES"]

_LACKS = frozenset(
    {"stop", "frequency_penalty", "presence_penalty", "logit_bias", "audio"}
)
_PLAIN = ("application/json", "application/xml")


def _path(model: str, stream: bool) -> str:
    return "/responses"


# Encoding.


def _encode(request: Request, facts: ModelFacts, stream: bool) -> Json:
    _check(request)
    extra = request.extra or {}
    stored = bool(extra.get("store"))
    instructions, messages = _split_system(request.messages)
    body: Json = {"model": request.model}
    if instructions:
        body["instructions"] = instructions
    body["input"] = [
        item for message in messages for item in _items(message, facts, stored)
    ]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = _tool_choice(request.tool_choice)
        if request.tools_one_at_a_time and facts.parallel_switch:
            body["parallel_tool_calls"] = False
    output = request.response_format
    if isinstance(output, ResponseFormat) and output.schema_delivery != "prompt":
        body["text"] = {"format": _text_format(output, request.name)}
    _encode_settings(request, facts, body)
    body["store"] = False
    _encode_include(request, facts, stored, body)
    if stream:
        body["stream"] = True
    # "text" and "reasoning" hold several settings, of which some are ours.
    return merge_extra(body, extra)


def _check(request: Request) -> None:
    """Refuse what the format has no place for; ``prepare`` has, where it was called."""
    for name in sorted(_LACKS - {"audio"}):
        if getattr(request, name) not in (None, ()):
            raise CapabilityError(f"Responses has no place for {name}")
    for message in request.messages:
        check_name(message, "Responses")


def _split_system(
    messages: tuple[Message, ...],
) -> tuple[str, tuple[Message, ...]]:
    """Return the instructions, and the messages that are not in them."""
    first = messages[0] if messages else None
    # A mark for the cache needs a part to stand on, which instructions do not have.
    if first is None or first.role != "system" or first.cache is not None:
        return "", messages
    if any(part.type != "text" for part in first.content if isinstance(part, Part)):
        return "", messages
    return first.text, messages[1:]


def _encode_settings(request: Request, facts: ModelFacts, body: Json) -> None:
    for name, value in (
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("max_output_tokens", request.max_tokens),
        (facts.user_key, request.user_key),
        (facts.cache_key, request.cache_key),
    ):
        if name is not None and value is not None:
            body[name] = value
    reason = request.reason
    if reason is None:
        return
    if reason.max_tokens is not None and facts.reasoning != "reasoning":
        raise CapabilityError(
            "Responses has no number of reasoning tokens here; say reason={'effort': …}"
        )
    said = {"effort": reason.effort, "max_tokens": reason.max_tokens}
    # A summary is not asked for: OpenAI answers 400 "Your organization must be
    # verified to generate reasoning summaries" to everybody who is not.
    # https://github.com/BerriAI/litellm/issues/16032, read 2026-11-30
    found = {k: v for k, v in said.items() if v is not None}
    if found:
        body["reasoning"] = found


def _encode_include(
    request: Request, facts: ModelFacts, stored: bool, body: Json
) -> None:
    include = []
    if not stored and _thinks(request, facts):
        # Models that do not think answer 400 "Encrypted content is not supported
        # with this model". https://github.com/NousResearch/hermes-agent/pull/24234,
        # read 2026-11-30
        include.append("reasoning.encrypted_content")
    if request.log_probabilities:
        include.append("message.output_text.logprobs")
        if request.log_probabilities is not True:
            body["top_logprobs"] = request.log_probabilities
    if include:
        body["include"] = include


def _thinks(request: Request, facts: ModelFacts) -> bool:
    reason = request.reason
    if facts.reasoning is None:
        return False
    if reason is None or (reason.effort is None and reason.max_tokens is None):
        return facts.thinks
    return reason.effort != "none"


# The same tools go out with every turn.
@lru_cache(maxsize=512)
def _tool(tool: ToolDefinition) -> Json:
    dialect = get_descriptor_by_id(tool.descriptor)
    said: Json = {"type": "function", "name": tool.name}
    if tool.description:
        said["description"] = tool.description
    said["parameters"] = to_json_schema(tool.parameters, dialect, describe_dropped=True)
    # Left out, it would count as true.
    said["strict"] = dialect.strict
    return said


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return choice
    return {"type": "function", "name": choice["tool"]}


@lru_cache(maxsize=128)
def _text_format(output: ResponseFormat, name: str) -> Json:
    dialect = get_descriptor_by_id(output.descriptor)
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", name or output.schema.name or "")[:64]
    return {
        "type": "json_schema",
        "name": name or "output",
        "schema": to_json_schema(output.schema, dialect, describe_dropped=True),
        "strict": dialect.strict,
    }


def _items(message: Message, facts: ModelFacts, stored: bool) -> list[Json]:
    if message.role == "assistant":
        return _assistant(message, stored)
    content = _content(message, facts)
    if message.role == "tool":
        if message.tool_call_id is None:
            raise ValueError("a message with role 'tool' needs a tool_call_id")
        return [_reply(message.tool_call_id, content)]
    role = facts.system_role if message.role == "system" else message.role
    return [{"role": role, "content": content}]


def _reply(call_id: str, output: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _content(message: Message, facts: ModelFacts) -> Any:
    marked = message.cache is not None and facts.cache_mark is not None
    if isinstance(message.content, str):
        if not marked:
            return message.content
        parts: List[Json] = [_text_part(message.content)]
    else:
        parts = [_part(part) for part in message.content]
    if marked and parts and facts.cache_mark == "prompt_cache_breakpoint":
        mark = {k: v for k, v in (message.cache or {}).items() if k != "type"}
        parts[-1]["prompt_cache_breakpoint"] = {"mode": "explicit", **mark}
    return parts


def _text_part(text: str) -> Json:
    return {"type": "input_text", "text": text}


def _part(part: Part) -> Json:
    url = str(part.data)
    if part.type == "text":
        return _text_part(url)
    if part.type == "image":
        return {"type": "input_image", "detail": "auto", "image_url": url}
    if part.type == "audio":
        raise CapabilityError("Responses takes no audio")
    if not url.startswith("data:"):
        return {"type": "input_file", "file_url": url}
    kind, data, name = split_data_url(url)
    if kind.startswith("text/") or kind in _PLAIN:
        text = base64.b64decode(data).decode("utf-8", "replace")
        return _text_part(f"{name}:\n{text}" if name else text)
    return {
        "type": "input_file",
        "filename": name or "file.pdf",
        "file_data": f"data:{kind};base64,{data}",
    }


def _assistant(message: Message, stored: bool) -> list[Json]:
    theirs = _native_items(message)
    if theirs:
        return _echo(theirs, message.tool_calls, stored)
    if any(part.type != "text" for part in message.content if isinstance(part, Part)):
        raise CapabilityError("Responses takes nothing but text from the assistant")
    said = [text for text in (message.text, message.refusal) if text]
    if not said and not message.tool_calls:
        said = [""]
    items: List[Json] = [{"role": "assistant", "content": text} for text in said]
    for call in message.tool_calls:
        items.append(
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            }
        )
    return items


def _native_items(message: Message) -> list[Json]:
    """Return the vendor's own items of the message, if they still say the same."""
    native = message.native
    if native is None or native.get("format") != "responses":
        return []
    items = native.get("items")
    items = read_objects(list(items) if isinstance(items, tuple) else items)
    said = _read_items(items)
    theirs = [(call.name, call.arguments) for call in said.calls]
    ours = [(call.name, call.arguments) for call in message.tool_calls]
    same = said.text == message.text and said.refusal == (message.refusal or "")
    return items if same and theirs == ours else []


def _echo(items: list[Json], calls: tuple[ToolCall, ...], stored: bool) -> list[Json]:
    """Return the vendor's items as it is to see them again.

    A thought that is kept nowhere, neither there nor in the item, cannot be sent, and
    what followed it is refused under its id: 400 "… was provided without its required
    'reasoning' item". It is then sent without an id.
    """
    kept = [item for item in items if stored or _can_be_sent(item)]
    bare = len(kept) < len(items)
    ids = iter(calls)
    echoed: List[Json] = []
    for item in kept:
        if bare and item.get("type") in ("message", "function_call"):
            item = {k: v for k, v in item.items() if k != "id"}
        if item.get("type") == "function_call":
            # Where a response was put together, ids were made present and unique.
            item = {**item, "call_id": next(ids).id}
        echoed.append(item)
    return echoed


def _can_be_sent(item: Json) -> bool:
    if item.get("type") != "reasoning":
        return True
    return bool(item.get("encrypted_content") or item.get("content"))


# Decoding.


@dataclass
class _Said:
    """What items say, in our words."""

    text: str = ""
    refusal: str = ""
    thought: str = ""
    calls: Tuple[ToolCall, ...] = ()


def _read_items(items: list[Json]) -> _Said:
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


def _decode(body: Any, facts: ModelFacts) -> Response:
    if not isinstance(body, dict):
        raise ProtocolError(f"an answer that is no object: {body!r:.200}")
    _check_status(body)
    output = body.get("output")
    if not isinstance(output, list):
        raise ProtocolError(f"an answer without output: {body!r:.200}")
    items = read_objects(output)
    if not (items or body.get("status")):
        raise ProtocolError(f"an answer with neither output nor status: {body!r:.200}")
    said = _read_items(items)
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
class _Decoder:
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
        if data.startswith("[DONE]"):
            return self._close({})
        if not data.strip():  # perhaps cut off: its name alone says nothing
            return ()
        event = read_json(data)
        if not isinstance(event, dict):
            raise ProtocolError(f"an event that is no object: {data!r:.200}")
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
        said = _read_items([value])
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


def _decode_error(status: int, headers: Mapping[str, str], body: Any) -> Fault:
    return read_fault(body, status)


RESPONSES = Wire(
    name="responses",
    path=_path,
    encode=_encode,
    decode=_decode,
    decoder=lambda facts: _Decoder(),
    decode_error=_decode_error,
    lacks=_LACKS,
)
