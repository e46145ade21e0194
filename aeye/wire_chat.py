"""OpenAI chat completions: what is asked. ``wire_chat_read`` reads the answers.

Facts from the vendors' documentation, the official client's types and recorded
traffic, gathered 2026-11-30. https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from typing import Any, List

from .descriptor import get_descriptor_by_id
from .emit import to_json_schema
from .errors import CapabilityError
from .message import Json, Message, Part
from .request import Request, ResponseFormat, ToolDefinition
from .wire import ModelFacts, Wire, read_objects, split_data_url
from .wire_chat_read import Decoder, call_fields, decode, decode_error, encode_call

__all__ = ["CHAT"]

# Keys of an assistant message that some host wants to see again.
_ECHOED = ("reasoning_details", "reasoning_content", "extra_content")


def _path(model: str, stream: bool) -> str:
    return "/chat/completions"


def _encode(request: Request, facts: ModelFacts, stream: bool) -> Json:
    body: Json = {"model": request.model, "messages": _messages(request, facts)}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = _tool_choice(request.tool_choice)
        if request.tools_one_at_a_time and facts.parallel_switch:
            body["parallel_tool_calls"] = False
    output = request.response_format
    if isinstance(output, ResponseFormat) and output.schema_delivery != "prompt":
        body["response_format"] = _response_format(output, request.name)
    _encode_sampling(request, facts, body)
    if stream:
        body["stream"] = True
        if facts.stream_usage:
            body["stream_options"] = {"include_usage": True}
    if request.extra:
        body.update(request.extra)
    return body


def _encode_sampling(request: Request, facts: ModelFacts, body: Json) -> None:
    for name, value in (
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("frequency_penalty", request.frequency_penalty),
        ("presence_penalty", request.presence_penalty),
        ("logit_bias", request.logit_bias),
        (facts.token_cap, request.max_tokens),
        (facts.user_key, request.user_key),
        (facts.cache_key, request.cache_key),
    ):
        if name is not None and value is not None:
            body[name] = value
    if request.stop:
        body["stop"] = list(request.stop)
    if request.log_probabilities:
        body["logprobs"] = True
        if request.log_probabilities is not True:
            body["top_logprobs"] = request.log_probabilities
    if request.reason is not None:
        body.update(_reason(request.reason.effort, request.reason.max_tokens, facts))


def _reason(effort: str | None, tokens: int | None, facts: ModelFacts) -> Json:
    """Say how much to think, in the form the host knows."""
    if facts.reasoning == "reasoning":  # OpenRouter
        said = {"effort": effort, "max_tokens": tokens}
        return {"reasoning": {k: v for k, v in said.items() if v is not None}}
    if tokens is not None:
        raise CapabilityError(
            "chat completions has no number of reasoning tokens here; "
            "say reason={'effort': …}"
        )
    if facts.reasoning == "thinking":  # DeepSeek, Z.AI
        if effort == "none":
            return {"thinking": {"type": "disabled"}}
        thinking: Json = {"thinking": {"type": "enabled"}}
        return thinking if effort is None else {**thinking, "reasoning_effort": effort}
    return {} if effort is None else {"reasoning_effort": effort}


# The same tools go out with every turn.
@lru_cache(maxsize=512)
def _tool(tool: ToolDefinition) -> Json:
    dialect = get_descriptor_by_id(tool.descriptor)
    function: Json = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = to_json_schema(
        tool.parameters, dialect, describe_dropped=True
    )
    if dialect.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return choice
    return {"type": "function", "function": {"name": choice["tool"]}}


@lru_cache(maxsize=128)
def _response_format(output: ResponseFormat, name: str) -> Json:
    dialect = get_descriptor_by_id(output.descriptor)
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", name or output.schema.name or "")[:64]
    schema: Json = {
        "name": name or "output",
        "schema": to_json_schema(output.schema, dialect, describe_dropped=True),
    }
    if dialect.strict:
        schema["strict"] = True
    return {"type": "json_schema", "json_schema": schema}


def _messages(request: Request, facts: ModelFacts) -> list[Json]:
    messages = request.messages
    # The turn that is going on starts with the last thing the user said.
    turn = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1)
    return [_message(m, facts, i > turn) for i, m in enumerate(messages)]


def _message(message: Message, facts: ModelFacts, running: bool) -> Json:
    if message.role == "assistant":
        return _assistant(message, facts, running)
    role = facts.system_role if message.role == "system" else message.role
    said: Json = {"role": role, "content": _content(message, facts)}
    if message.role == "tool":
        if message.tool_call_id is None:
            raise ValueError("a message with role 'tool' needs a tool_call_id")
        said["tool_call_id"] = _call_id(message.tool_call_id, facts)
    elif message.name is not None:
        said["name"] = message.name
    return said


def _content(message: Message, facts: ModelFacts) -> Any:
    mark = message.cache if facts.cache_mark else None
    if isinstance(message.content, str):
        if mark is None:
            return message.content
        parts: List[Json] = [{"type": "text", "text": message.content}]
    else:
        parts = [_part(part, message.role, facts) for part in message.content]
    if mark is not None and facts.cache_mark and parts:
        kind = {"type": "ephemeral"}
        if facts.cache_mark == "prompt_cache_breakpoint":
            kind, mark = {"mode": "explicit"}, {**mark}
            mark.pop("type", None)
        parts[-1] = {**parts[-1], facts.cache_mark: {**kind, **mark}}
    return parts


def _part(part: Part, role: str, facts: ModelFacts) -> Json:
    if part.type == "text":
        return {"type": "text", "text": part.data}
    if role != "user":
        raise CapabilityError(
            f"chat completions takes {part.type} parts in user messages only, "
            f"not in one with role {role!r}"
        )
    url = str(part.data)
    if part.type == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    if not url.startswith("data:"):
        if part.type == "file" and facts.file_urls:
            return {"type": "file", "file": {"filename": "file", "file_data": url}}
        raise CapabilityError(
            f"chat completions takes no {part.type} by its address; give the bytes "
            "or a pathlib.Path"
        )
    kind, data, name = split_data_url(url)
    if part.type == "audio":
        audio = {"data": data, "format": _sound(kind)}
        return {"type": "input_audio", "input_audio": audio}
    if kind.startswith("text/") or kind in ("application/json", "application/xml"):
        text = base64.b64decode(data).decode("utf-8", "replace")
        return {"type": "text", "text": f"{name}:\n{text}" if name else text}
    plain = f"data:{kind};base64,{data}"
    return {
        "type": "file",
        "file": {"filename": name or "file.pdf", "file_data": plain},
    }


def _sound(kind: str) -> str:
    name = kind.partition("/")[2]
    return {"mpeg": "mp3", "x-wav": "wav", "wave": "wav"}.get(name, name)


def _assistant(message: Message, facts: ModelFacts, running: bool) -> Json:
    if any(part.type != "text" for part in message.content if isinstance(part, Part)):
        raise CapabilityError(
            "chat completions takes nothing but text from the assistant"
        )
    # null is refused by some hosts, "" by none that we know.
    said: Json = {"role": "assistant", "content": message.text}
    if message.name is not None:
        said["name"] = message.name
    if message.refusal:
        if "refusal" in facts.echoes:
            said["refusal"] = message.refusal
        elif not message.text:
            said["content"] = message.refusal
    if message.tool_calls:
        calls = [encode_call(call) for call in message.tool_calls]
        for call in calls:
            call["id"] = _call_id(call["id"], facts)
        said["tool_calls"] = calls
    _add_echo(message, facts, running, said)
    return said


def _call_id(given: str, facts: ModelFacts) -> str:
    """Return the id of a call, or one in its place where the host takes no such."""
    if not facts.short_call_ids or re.fullmatch(r"[A-Za-z0-9]{9}", given):
        return given
    return hashlib.sha256(given.encode("utf-8", "replace")).hexdigest()[:9]


def _add_echo(message: Message, facts: ModelFacts, running: bool, said: Json) -> None:
    """Add what the host itself said of this turn and wants to see again."""
    native = _native_item(message)
    for key in _ECHOED:
        if key in native and key in facts.echoes and key != "reasoning_content":
            said[key] = native[key]
    # Only beside calls and only while the turn goes on; DeepSeek answers 400 without
    # it there, and older models with it elsewhere.
    # https://api-docs.deepseek.com/guides/thinking_mode, read 2026-11.
    if "reasoning_content" in facts.echoes and running and message.tool_calls:
        thought = native.get("reasoning_content")
        if thought is None and message.reasoning is not None:
            thought = message.reasoning.text
        if thought:
            said["reasoning_content"] = thought
    if "<think>" in facts.echoes and running and message.reasoning is not None:
        said["content"] = f"<think>{message.reasoning.text}</think>{said['content']}"
    if "extra_content" in facts.echoes:
        theirs = read_objects(native.get("tool_calls"))
        for call, item in zip(said.get("tool_calls", ()), theirs):
            if "extra_content" in item:
                call["extra_content"] = item["extra_content"]


def _native_item(message: Message) -> Json:
    """Return the host's own form of the message, if it still says the same."""
    native = message.native
    if native is None or native.get("format") != "chat":
        return {}
    items = native.get("items")
    if not isinstance(items, (list, tuple)) or not items:
        return {}
    item = items[0] if isinstance(items[0], dict) else {}
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    theirs = [call_fields(c)[1:3] for c in read_objects(item.get("tool_calls"))]
    same = item.get("content") == message.text and theirs == calls
    return item if same else {}


CHAT = Wire(
    name="chat",
    path=_path,
    encode=_encode,
    decode=decode,
    decoder=Decoder,
    decode_error=decode_error,
)
