"""The Anthropic Messages format from the server's side.

The mirror of what a client's codec does: a request's JSON is read, a response's is
written. https://platform.claude.com/docs/en/api/messages, read 2026-11.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from .errors import AeyeError, StatusError, StreamCutError
from .message import Json, Message, Part, Reasoning, ToolCall
from .request import Reason, Request, ResponseFormat, ToolDefinition
from .response import Chunk, Collector, Response
from .schema import Schema
from .usage import Usage

__all__ = [
    "decode_messages",
    "encode_messages",
    "encode_messages_error",
    "encode_messages_events",
]

# What a signature is to prove, nobody checks here.
_SIGNATURE = "bG9jYWw="
_FINISH = {
    "content_filter": "refusal",
    "length": "max_tokens",
    "refusal": "refusal",
    "stop": "end_turn",
    "tool_calls": "tool_use",
}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_CHOICES = {"any": "required", "auto": "auto", "none": "none"}


def decode_messages(body: Json) -> Request:
    """Read a request's body.

    The schemas are taken as they were sent: what dialect they are written in is
    not known here.

    Raises:
        KeyError, TypeError, ValueError: the body is no such request.
    """
    given = {k: body[k] for k in ("temperature", "top_p") if body.get(k) is not None}
    messages = [Message("system", text) for text in _texts(body.get("system"))]
    for value in body["messages"]:
        messages += _messages(value)
    config = body.get("output_config") or {}
    wanted = config.get("format")
    if wanted is not None:
        given["response_format"] = ResponseFormat(
            Schema(wanted["schema"]), strict=True, schema_delivery="structured"
        )
    choice = body.get("tool_choice") or {}
    return Request(
        tuple(messages),
        body["model"],
        tools=tuple(map(_tool, body.get("tools") or ())),
        tool_choice=_choice(choice),
        tools_one_at_a_time=choice.get("disable_parallel_tool_use") is True,
        max_tokens=body["max_tokens"],
        stop=tuple(body.get("stop_sequences") or ()),
        user_key=(body.get("metadata") or {}).get("user_id"),
        reason=_reason(body.get("thinking") or {}, config.get("effort")),
        **given,
    )


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [block["text"] for block in value or ()]


def _messages(value: Json) -> list[Message]:
    """Read one message, in which several of ours may be: the replies to calls."""
    content = value["content"]
    if isinstance(content, str):
        return [Message(value["role"], content)]
    if value["role"] == "assistant":
        return [_assistant(content)]
    replies = [block for block in content if block["type"] == "tool_result"]
    rest = [_part(block) for block in content if block["type"] != "tool_result"]
    found = [
        Message("tool", _result(reply), tool_call_id=reply["tool_use_id"])
        for reply in replies
    ]
    return [*found, Message("user", _joined(rest))] if rest else found


def _assistant(blocks: List[Json]) -> Message:
    thoughts = [b["thinking"] for b in blocks if b["type"] == "thinking"]
    made = (
        ToolCall(block["id"], block["name"], arguments=json.dumps(block["input"]))
        for block in blocks
        if block["type"] == "tool_use"
    )
    return Message(
        "assistant",
        "".join(block["text"] for block in blocks if block["type"] == "text"),
        tool_calls=tuple(made),
        reasoning=Reasoning("".join(thoughts)) if thoughts else None,
    )


def _result(block: Json) -> Union[str, Tuple[Part, ...]]:
    content = block.get("content") or ""
    return content if isinstance(content, str) else _joined(map(_part, content))


def _joined(parts: Iterable[Part]) -> Union[str, Tuple[Part, ...]]:
    """Return parts as plain text where they are one text."""
    found = tuple(parts)
    if len(found) == 1 and found[0].type == "text":
        return str(found[0].data)
    return found


def _part(block: Json) -> Part:
    if block["type"] == "text":
        return Part.text(block["text"])
    source = block["source"]
    if source["type"] == "url":
        url = source["url"]
    elif source["type"] == "text":
        url = f"data:{source['media_type']},{source['data']}"
    else:
        url = f"data:{source['media_type']};base64,{source['data']}"
    if block["type"] == "image":
        return Part.image(url)
    if block["type"] == "document":
        return Part.file(url)
    raise ValueError(f"a block of type {block['type']!r}")


def _tool(value: Json) -> ToolDefinition:
    return ToolDefinition(
        value["name"],
        value.get("description") or "",
        parameters=Schema(value["input_schema"]),
        strict=bool(value.get("strict")),
    )


def _choice(value: Json) -> Union[str, Dict[str, str], None]:
    if not value:
        return None
    if value["type"] == "tool":
        return {"tool": value["name"]}
    return _CHOICES[value["type"]]


def _reason(thinking: Json, effort: Optional[str]) -> Optional[Reason]:
    if thinking.get("type") in ("disabled", "between_tools"):
        return Reason("none")
    tokens = thinking.get("budget_tokens")
    return None if effort is None and tokens is None else Reason(effort, tokens)


def encode_messages(response: Response, body: Json) -> Json:
    """Return the body that says *response*."""
    content: List[Json] = []
    if response.reasoning is not None:
        content.append(_thinking(response.reasoning.text, _SIGNATURE))
    if response.content:
        content.append({"type": "text", "text": response.content})
    content += (_use(call, read=True) for call in response.tool_calls)
    return {
        **_head(response.model, body),
        "content": content,
        **_end(response.finish_reason, response.refusal),
        "usage": _usage(response.usage),
    }


def encode_messages_events(chunks: Iterable[Chunk], body: Json) -> Iterator[bytes]:
    """Yield the events of a stream that says *chunks*.

    Chunks without a finish reason make a stream without its end, as a host that
    breaks off would send it.
    """
    writer = _Writer()
    collector = Collector()
    # What is counted last stands here too, and is put right at the end.
    start = {**_head(None, body), "content": [], **_NO_END, "usage": _usage(Usage())}
    yield _event("message_start", message=start)
    try:
        for given in chunks:
            if given.restart:
                writer = _Writer()
                yield _event("message_start", message=start)
            yield from writer.write(collector.add(given))
    except StreamCutError:
        raise
    except AeyeError as exc:
        status = getattr(exc, "status", None) or 500
        yield _event("error", **encode_messages_error(exc, int(status)))
        return
    yield from writer.close()
    if collector.finish_reason is None:
        return
    end = _end(collector.finish_reason, collector.refusal)
    usage = _usage(collector.usage or Usage())
    yield _event("message_delta", delta=end, usage=usage)
    yield _event("message_stop")


class _Writer:
    """Writes blocks, one after the other."""

    def __init__(self) -> None:
        self._index = -1
        # What the open block is of: "text", "thinking", or a call.
        self._open: Optional[str] = None
        # The arguments of each call that were sent.
        self._sent: Dict[str, str] = {}

    def write(self, chunk: Chunk) -> Iterator[bytes]:
        if chunk.reasoning is not None:
            yield from self._begin("thinking", _thinking("", ""))
            yield self._add("thinking_delta", thinking=chunk.reasoning.text)
        if chunk.content:
            yield from self._begin("text", {"type": "text", "text": ""})
            yield self._add("text_delta", text=chunk.content)
        piece = chunk.tool_call_arguments
        if chunk.tool_call_named is not None:
            yield from self._call(chunk.tool_call_named)
        if piece is not None:
            before = self._sent.get(piece.id, "") if piece.mode == "append" else ""
            text = before + piece.arguments
            yield from self._call(ToolCall(piece.id, piece.name, arguments=text))
        if chunk.tool_call is not None:
            yield from self._call(chunk.tool_call)

    def close(self) -> Iterator[bytes]:
        if self._open is None:
            return
        if self._open == "thinking":
            yield self._add("signature_delta", signature=_SIGNATURE)
        self._open = None
        yield _event("content_block_stop", index=self._index)

    def _begin(self, what: str, block: Json) -> Iterator[bytes]:
        if self._open == what:
            return
        yield from self.close()
        self._index += 1
        self._open = what
        yield _event("content_block_start", index=self._index, content_block=block)

    def _call(self, call: ToolCall) -> Iterator[bytes]:
        """Send of *call* what was not sent yet."""
        before = self._sent.get(call.id)
        if before == call.arguments:
            return
        if before is not None and self._open != f"call {call.id}":
            raise ValueError("the blocks of an answer cannot be sent in turns")
        if not call.arguments.startswith(before or ""):
            raise ValueError("what was sent of a call's arguments cannot be replaced")
        yield from self._begin(f"call {call.id}", _use(call))
        self._sent[call.id] = call.arguments
        rest = call.arguments[len(before or "") :]
        if rest:
            yield self._add("input_json_delta", partial_json=rest)

    def _add(self, kind: str, **said: str) -> bytes:
        delta = {"type": kind, **said}
        return _event("content_block_delta", index=self._index, delta=delta)


def encode_messages_error(error: AeyeError, status: int) -> Json:
    """Return the body that tells of *error*."""
    usual = _ERRORS[400] if status < 500 else "api_error"
    kind = error.code if isinstance(error, StatusError) else None
    if kind not in (*_ERRORS.values(), "api_error", "billing_error"):
        kind = _ERRORS.get(status, usual)
    said = {"type": kind, "message": error.message}
    return {"type": "error", "error": said, "request_id": "req_local"}


_NO_END: Json = {"stop_reason": None, "stop_sequence": None, "stop_details": None}


def _head(model: Optional[str], body: Json) -> Json:
    return {
        "id": "msg_local",
        "type": "message",
        "role": "assistant",
        "model": model or body.get("model") or "local",
    }


def _end(reason: str, refusal: Optional[str]) -> Json:
    end = {**_NO_END, "stop_reason": _FINISH[reason]}
    if end["stop_reason"] == "refusal":
        end["stop_details"] = {
            "type": "refusal",
            "category": None,
            "explanation": refusal,
        }
    return end


def _thinking(text: str, signature: str) -> Json:
    return {"type": "thinking", "thinking": text, "signature": signature}


def _use(call: ToolCall, read: bool = False) -> Json:
    given = json.loads(call.arguments) if read else {}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _usage(usage: Usage) -> Json:
    cached = usage.cached_input_tokens
    written = usage.cache_creation_input_tokens
    thought = usage.reasoning.output if usage.reasoning else 0
    return {
        "input_tokens": max(usage.input_tokens - cached - written, 0),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": thought or 0},
    }


def _event(kind: str, **said: Any) -> bytes:
    data = json.dumps({"type": kind, **said}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode("utf-8", "replace")
