"""Anthropic Messages, as Anthropic and the servers that imitate it speak it.

Facts from the vendor's documentation, the official client's types and recorded
traffic, gathered 2026-11-30. https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, List, Mapping

from .descriptor import get_descriptor_by_id
from .emit import to_json_schema
from .errors import CapabilityError, ProtocolError, StreamCutError
from .message import Json, Message, Part, Reasoning, ToolCall
from .request import Request, ResponseFormat, ToolDefinition
from .response import Chunk, FinishReason, Response
from .usage import Usage
from .wire import (
    WINDOW_FULL,
    Fault,
    ModelFacts,
    Wire,
    check_name,
    cut_error,
    merge_extra,
    read_arguments,
    read_count,
    read_json,
    read_objects,
    split_data_url,
    status_error,
    text_chunk,
)
from .wire_call import CallAssembler
from .wire_fault import read_fault

__all__ = ["MESSAGES"]

# Newer versions refuse parameters that older models take, and answer alike.
# https://platform.claude.com/docs/en/api/versioning, read 2026-11.
_VERSION = "2023-06-01"
# An answer is given room for this many tokens where nobody says how many: what is
# longer should be streamed, and asked for.
_ROOM = 32_000
# What every model can give.
_LEAST_ROOM = 4096
# Tokens of thinking that an effort stands for, where a model wants a number, and the
# least that it takes.
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384}
_LEAST_BUDGET = 1024
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
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


def _path(model: str, stream: bool) -> str:
    return "/v1/messages"


def _headers(request: Request, facts: ModelFacts) -> Mapping[str, str]:
    return {"anthropic-version": _VERSION}


# Encoding.


def _encode(request: Request, facts: ModelFacts, stream: bool) -> Json:
    body: Json = {"model": request.model, "max_tokens": _room(request, facts)}
    system = _system(request, facts)
    if system:
        body["system"] = system
    body["messages"] = _messages(request, facts)
    tools = [_tool(tool) for tool in request.tools] or _past_tools(request)
    if tools:
        body["tools"] = tools
        choice = _tool_choice(request, facts)
        if choice:
            body["tool_choice"] = choice
    config: Json = {}
    output = request.response_format
    if isinstance(output, ResponseFormat) and output.schema_delivery != "prompt":
        config["format"] = _format(output)
    _encode_reason(request, facts, body, config)
    if config:
        body["output_config"] = config
    for name, value in (
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("stop_sequences", list(request.stop) or None),
    ):
        if value is not None:
            body[name] = value
    if request.user_key is not None and facts.user_key is not None:
        body["metadata"] = {"user_id": request.user_key}
    if stream:
        body["stream"] = True
    return merge_extra(body, request.extra)


def _room(request: Request, facts: ModelFacts) -> int:
    """Return how many tokens an answer may have, which has to be said."""
    if request.max_tokens is not None:
        return request.max_tokens
    thought = 0 if request.reason is None else request.reason.max_tokens or 0
    return min(facts.max_output_tokens or _LEAST_ROOM, _ROOM + thought)


def _encode_reason(
    request: Request, facts: ModelFacts, body: Json, config: Json
) -> None:
    """Say how much to think: a number of tokens to older models, an effort to newer."""
    reason = request.reason
    if reason is None or (reason.effort is None and reason.max_tokens is None):
        return
    if reason.effort is not None and reason.max_tokens is not None:
        raise CapabilityError("reason takes an effort or a number of tokens, not both")
    if reason.effort == "none":
        off = "between_tools" if facts.reasoning == "between_tools" else "disabled"
        body["thinking"] = {"type": off}
    elif facts.reasoning == "budget_tokens":
        budget = _budget(reason.effort, reason.max_tokens, body["max_tokens"])
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
        if body.get("tool_choice", {}).get("type") in ("any", "tool"):
            raise CapabilityError(
                f"{request.model} cannot be made to call a tool while it thinks"
            )
    elif reason.max_tokens is not None:
        raise CapabilityError(
            f"{request.model} takes no number of reasoning tokens; "
            "say reason={'effort': …}"
        )
    else:
        # Without the word the newest models think and do not show it.
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        config["effort"] = reason.effort


def _budget(effort: str | None, tokens: int | None, room: int) -> int:
    budget = tokens
    if budget is None:
        wanted = _BUDGETS.get(str(effort), _BUDGETS["high"])
        budget = max(min(wanted, room // 2), _LEAST_BUDGET)
    if not _LEAST_BUDGET <= budget < room:
        raise CapabilityError(
            f"thinking takes at least {_LEAST_BUDGET} tokens and fewer than "
            f"max_tokens, which is {room}; not {budget}"
        )
    return budget


# The same tools go out with every turn.
@lru_cache(maxsize=512)
def _tool(tool: ToolDefinition) -> Json:
    dialect = get_descriptor_by_id(tool.descriptor)
    said: Json = {"name": tool.name}
    if tool.description:
        said["description"] = tool.description
    said["input_schema"] = to_json_schema(
        tool.parameters, dialect, describe_dropped=True
    )
    if dialect.strict:
        said["strict"] = True
    return said


def _past_tools(request: Request) -> list[Json]:
    """Return definitions of the tools that were called and are no longer offered.

    A history with calls is refused where no tool is defined.
    """
    calls = (call for message in request.messages for call in message.tool_calls)
    names = dict.fromkeys(call.name for call in calls)
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def _tool_choice(request: Request, facts: ModelFacts) -> Json:
    choice = request.tool_choice
    if not request.tools or choice == "none":
        return {"type": "none"}
    said: Json = {}
    if isinstance(choice, Mapping):
        said = {"type": "tool", "name": choice["tool"]}
    elif choice is not None:
        said = {"type": "any" if choice == "required" else choice}
    if request.tools_one_at_a_time and facts.parallel_switch:
        said = {"type": "auto", **said, "disable_parallel_tool_use": True}
    return said


@lru_cache(maxsize=128)
def _format(output: ResponseFormat) -> Json:
    dialect = get_descriptor_by_id(output.descriptor)
    schema = to_json_schema(output.schema, dialect, describe_dropped=True)
    return {"type": "json_schema", "schema": schema}


def _system(request: Request, facts: ModelFacts) -> Any:
    """Return what the system messages say, wherever they stand: they have one place."""
    blocks: List[Json] = []
    for message in request.messages:
        if message.role == "system":
            blocks += _mark(_blocks(message), message, facts)
    if any("cache_control" in block for block in blocks):
        return blocks
    return "\n\n".join(block["text"] for block in blocks)


def _messages(request: Request, facts: ModelFacts) -> list[Json]:
    """Return the turns: what one side says in a row is one message.

    So the replies to the calls of one turn come in one message, as they must.
    """
    turns: List[Json] = []
    for message in request.messages:
        if message.role == "system":
            continue
        blocks = _mark(_blocks(message), message, facts)
        role = "assistant" if message.role == "assistant" else "user"
        if not blocks:  # an empty turn is refused, and says nothing
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    for turn in turns:
        blocks = turn["content"]
        if len(blocks) == 1 and set(blocks[0]) == {"type", "text"}:
            turn["content"] = blocks[0]["text"]
    return turns


def _mark(blocks: List[Json], message: Message, facts: ModelFacts) -> list[Json]:
    """Put the message's cache mark on the last block that can bear one."""
    if message.cache is None or facts.cache_mark is None:
        return blocks
    marked = list(blocks)
    for i in reversed(range(len(blocks))):
        if blocks[i].get("type") not in ("thinking", "redacted_thinking"):
            mark = {"type": "ephemeral", **message.cache}
            marked[i] = {**blocks[i], "cache_control": mark}
            break
    return marked


def _blocks(message: Message) -> list[Json]:
    check_name(message, "Anthropic Messages")
    if message.role == "assistant":
        return _assistant(message)
    if message.role != "tool":
        return _parts(message)
    if message.tool_call_id is None:
        raise ValueError("a message with role 'tool' needs a tool_call_id")
    content: Any = message.content
    if not isinstance(content, str):
        content = _parts(message)
    key = _call_id(message.tool_call_id)
    return [{"type": "tool_result", "tool_use_id": key, "content": content}]


def _parts(message: Message) -> list[Json]:
    """Return the blocks of content; empty text is refused, and left out."""
    content = message.content
    if isinstance(content, str):
        content = (Part.text(content),)
    said = (part for part in content if part.type != "text" or str(part.data).strip())
    return [_part(part, message.role) for part in said]


def _part(part: Part, role: str) -> Json:
    if part.type == "text":
        return {"type": "text", "text": part.data}
    if role == "system" or part.type == "audio":
        raise CapabilityError(
            f"Anthropic Messages takes no {part.type} in a message with role {role!r}"
        )
    url = str(part.data)
    if not url.startswith("data:"):
        kind = "image" if part.type == "image" else "document"
        return {"type": kind, "source": {"type": "url", "url": url}}
    kind, data, name = split_data_url(url)
    if kind in _IMAGES:
        source = {"type": "base64", "media_type": kind, "data": data}
        return {"type": "image", "source": source}
    if part.type == "image":
        raise CapabilityError(
            f"Anthropic Messages takes pictures as {', '.join(_IMAGES)}, not as {kind}"
        )
    said: Json = {"type": "document", "source": _document(kind, data)}
    return {**said, "title": name} if name else said


def _document(kind: str, data: str) -> Json:
    if kind == "application/pdf":
        return {"type": "base64", "media_type": kind, "data": data}
    if kind.startswith("text/") or kind in ("application/json", "application/xml"):
        text = base64.b64decode(data).decode("utf-8", "replace")
        return {"type": "text", "media_type": "text/plain", "data": text}
    raise CapabilityError(
        f"Anthropic Messages takes documents as PDF or text, not as {kind}"
    )


def _assistant(message: Message) -> list[Json]:
    """Return the vendor's own blocks, if they still say what the message says."""
    said = _said(message)
    native = message.native or {}
    items = native.get("items")
    if native.get("format") != MESSAGES.name or not isinstance(items, (list, tuple)):
        return said
    # An interrupted turn has fewer calls than its blocks, an edited one another text.
    items = read_objects(list(items))
    if _spoken(items) != _spoken(said):
        return said
    # What the vendor says and refuses to hear: text of blanks alone.
    return [b for b in items if b.get("type") != "text" or str(b.get("text")).strip()]


def _said(message: Message) -> list[Json]:
    """Return the blocks that the fields of an assistant message make."""
    if any(part.type != "text" for part in message.content if isinstance(part, Part)):
        raise CapabilityError(
            "Anthropic Messages takes nothing but text from the assistant"
        )
    text = message.text if message.text.strip() else message.refusal or ""
    blocks: List[Json] = [{"type": "text", "text": text}] if text.strip() else []
    for call in message.tool_calls:
        blocks.append(
            {
                "type": "tool_use",
                "id": _call_id(call.id),
                "name": call.name,
                "input": read_arguments(call.arguments),
            }
        )
    return blocks


def _spoken(blocks: List[Json]) -> tuple[str, list[Any]]:
    """Return what blocks say, apart from how they are cut: the text and the calls."""
    text = "".join(str(b.get("text")) for b in blocks if b.get("type") == "text")
    keys = ("id", "name", "input")
    uses = (block for block in blocks if block.get("type") == "tool_use")
    return text.strip(), [[use.get(key) for key in keys] for use in uses]


def _call_id(key: str) -> str:
    """Return *key* with the characters that an id may have: others make other ids."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", key)


# Decoding.


def _decode(body: Any, facts: ModelFacts) -> Response:
    if not isinstance(body, dict):
        raise ProtocolError(f"an answer that is no object: {body!r:.200}")
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
    if not blocks or blocks == _said(message):
        return None
    return {"format": MESSAGES.name, "items": blocks}


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


class _Decoder:
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
        if data.startswith("[DONE]"):  # not Anthropic's, but some gateways'
            return self._stop({})
        event = read_json(data) if data.strip() else {}
        if not isinstance(event, dict):
            raise ProtocolError(f"an event that is no object: {data!r:.200}")
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


_TAKES: Dict[str, Callable[[_Decoder, Json], List[Chunk]]] = {
    "message_start": _Decoder._begin_message,
    "content_block_start": _Decoder._begin_block,
    "content_block_delta": _Decoder._add_to_block,
    "content_block_stop": _Decoder._end_block,
    "message_delta": _Decoder._end_message,
    "message_stop": _Decoder._stop,
}


# Errors.


def _decode_error(status: int, headers: Mapping[str, str], body: Any) -> Fault:
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


MESSAGES = Wire(
    name="messages",
    path=_path,
    encode=_encode,
    decode=_decode,
    decoder=_Decoder,
    decode_error=_decode_error,
    headers=_headers,
    lacks=frozenset(
        {
            "audio",
            "frequency_penalty",
            "log_probabilities",
            "logit_bias",
            "presence_penalty",
        }
    ),
)
