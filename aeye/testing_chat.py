"""The chat completions format from the server's side.

The mirror of what a client's codec does: a request's JSON is read, a response's is
written. https://platform.openai.com/docs/api-reference/chat, read 2026-11.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, Optional, Tuple, Union

from .errors import AeyeError, StatusError
from .message import Json, Message, Part, ToolCall
from .request import Reason, Request, ResponseFormat, ToolDefinition
from .response import Chunk, Collector, Response
from .schema import Schema
from .usage import Usage

__all__ = [
    "decode_chat",
    "encode_chat",
    "encode_chat_error",
    "encode_chat_events",
]

# What the fields of a request are called here, where only the name differs.
_FIELDS = {
    "model": "model",
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "stop": "stop",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "logit_bias": "logit_bias",
    "prompt_cache_key": "cache_key",
    "user": "user_key",
    "safety_identifier": "user_key",
}


def decode_chat(body: Json) -> Request:
    """Read a request's body.

    The schemas are taken as they were sent: what dialect they are written in is
    not known here.

    Raises:
        KeyError, TypeError, ValueError: the body is no such request.
    """
    given = {ours: body[k] for k, ours in _FIELDS.items() if body.get(k) is not None}
    wanted = body.get("response_format") or {"type": "text"}
    if wanted["type"] == "json_schema":
        given["name"] = wanted["json_schema"]["name"]
        given["response_format"] = ResponseFormat(
            Schema(wanted["json_schema"]["schema"]),
            strict=bool(wanted["json_schema"].get("strict")),
            schema_delivery="structured",
        )
    elif wanted["type"] == "json_object":
        given["response_format"] = ResponseFormat(Schema({"type": "object"}))
    if body.get("reasoning_effort") is not None:
        given["reason"] = Reason(body["reasoning_effort"])
    return Request(
        tuple(map(_message, body["messages"])),
        tools=tuple(map(_tool, body.get("tools") or ())),
        tool_choice=_choice(body.get("tool_choice")),
        tools_one_at_a_time=body.get("parallel_tool_calls") is False,
        **given,
    )


def _message(value: Json) -> Message:
    role: Any = "system" if value["role"] == "developer" else value["role"]
    content = value.get("content") or ""
    if not isinstance(content, str):
        content = tuple(map(_part, content))
    made = (
        ToolCall(
            call["id"],
            call["function"]["name"],
            arguments=call["function"]["arguments"],
        )
        for call in value.get("tool_calls") or ()
    )
    return Message(
        role,
        content,
        name=value.get("name"),
        tool_call_id=value.get("tool_call_id"),
        tool_calls=tuple(made),
        refusal=value.get("refusal"),
    )


def _part(value: Json) -> Part:
    kind = value["type"]
    if kind == "text":
        return Part.text(value["text"])
    if kind == "image_url":
        return Part.image(value["image_url"]["url"])
    if kind == "input_audio":
        sound = value["input_audio"]
        return Part.audio(sound["data"], sound["format"])
    if kind == "file":
        return Part.file(value["file"]["file_data"])
    raise ValueError(f"a part of type {kind!r}")


def _tool(value: Json) -> ToolDefinition:
    function = value["function"]
    return ToolDefinition(
        function["name"],
        function.get("description") or "",
        parameters=Schema(function.get("parameters") or {"type": "object"}),
        strict=bool(function.get("strict")),
    )


def _choice(value: Any) -> Union[str, Dict[str, str], None]:
    if isinstance(value, dict):
        return {"tool": value["function"]["name"]}
    return value  # type: ignore[no-any-return]  # Request checks it


def encode_chat(response: Response, body: Json) -> Json:
    """Return the body that says *response*."""
    message: Json = {
        "role": "assistant",
        "content": response.content or None,
        "refusal": response.refusal,
    }
    if response.reasoning is not None:
        message["reasoning_content"] = response.reasoning.text
    if response.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in response.tool_calls
        ]
    elif response.refusal is None:
        message["content"] = response.content
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": _finish(response.finish_reason),
        "logprobs": None,
    }
    return {
        **_head("chat.completion", response.model, body),
        "choices": [choice],
        "usage": _usage(response.usage),
    }


def encode_chat_events(chunks: Iterable[Chunk], body: Json) -> Iterator[bytes]:
    """Yield the events of a stream that says *chunks*.

    Chunks without a finish reason make a stream without its end, as a host that
    breaks off would send it.
    """
    head = _head("chat.completion.chunk", None, body)
    sent = _Sent()
    collector = Collector()
    yield _event(head, {"role": "assistant", "content": ""})
    for given in chunks:
        if given.restart:
            raise ValueError("what was sent cannot be taken back here")
        chunk = collector.add(given)
        head["model"] = chunk.model or head["model"]
        if chunk.reasoning is not None:
            yield _event(head, {"reasoning_content": chunk.reasoning.text})
        for key, text in (("content", chunk.content), ("refusal", chunk.refusal)):
            if text:
                yield _event(head, {key: text})
        for delta in sent.deltas(chunk):
            yield _event(head, {"tool_calls": [delta]})
    if collector.finish_reason is None:
        return
    yield _event(head, {}, _finish(collector.finish_reason))
    if (body.get("stream_options") or {}).get("include_usage"):
        usage = _usage(collector.usage or Usage())
        yield _line({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


@dataclass
class _Sent:
    """What of each call was sent: its place, and its arguments so far."""

    calls: Dict[str, Tuple[int, str]] = field(default_factory=dict)

    def deltas(self, chunk: Chunk) -> Iterator[Json]:
        piece = chunk.tool_call_arguments
        if chunk.tool_call_named is not None:
            yield from self._write(chunk.tool_call_named)
        if piece is not None:
            before = ""
            if piece.mode == "append" and piece.id in self.calls:
                before = self.calls[piece.id][1]
            text = before + piece.arguments
            yield from self._write(ToolCall(piece.id, piece.name, arguments=text))
        if chunk.tool_call is not None:
            yield from self._write(chunk.tool_call)

    def _write(self, call: ToolCall) -> Iterator[Json]:
        """Send of *call* what was not sent yet."""
        if call.id not in self.calls:
            index = len(self.calls)
            self.calls[call.id] = (index, "")
            start = {"name": call.name, "arguments": ""}
            yield {"index": index, "id": call.id, "type": "function", "function": start}
        index, before = self.calls[call.id]
        if not call.arguments.startswith(before):
            raise ValueError("what was sent of a call's arguments cannot be replaced")
        self.calls[call.id] = (index, call.arguments)
        rest = call.arguments[len(before) :]
        if rest:
            yield {"index": index, "function": {"arguments": rest}}


def encode_chat_error(error: AeyeError, status: int) -> Json:
    """Return the body that tells of *error*."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    code = error.code if isinstance(error, StatusError) else None
    said: Json = {"message": error.message, "type": kind, "param": None, "code": code}
    return {"error": said}


def _head(kind: str, model: Optional[str], body: Json) -> Json:
    return {
        "id": "chatcmpl-local",
        "object": kind,
        "created": 0,
        "model": model or body.get("model") or "local",
    }


def _event(head: Json, delta: Json, finish: Optional[str] = None) -> bytes:
    return _line(
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    )


def _line(value: Json) -> bytes:
    # Half a surrogate pair becomes a question mark, as UTF-8 has no place for it.
    data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    return b"data: " + data + b"\n\n"


def _finish(reason: str) -> str:
    # A refusal is a finished message here, told by its own field.
    return "stop" if reason == "refusal" else reason


def _usage(usage: Usage) -> Json:
    thought = usage.reasoning.output if usage.reasoning else 0
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": thought or 0},
    }
