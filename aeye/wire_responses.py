"""OpenAI Responses: what is asked. ``wire_responses_read`` reads the answers.

Nothing is kept at the vendor's (``store`` is false), so what a model thought travels
with the history: encrypted reasoning is asked for, and the items of an earlier turn
are sent back as they came. Facts from the official client's types and recorded traffic
of OpenAI, OpenRouter, DeepSeek and llama.cpp, gathered 2026-11-30.
https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import Any, List

from .descriptor import get_descriptor_by_id
from .emit import to_json_schema
from .errors import CapabilityError
from .message import Json, Message, Part, ToolCall
from .request import Request, ResponseFormat, ToolDefinition
from .wire import (
    ModelFacts,
    Wire,
    check_name,
    merge_extra,
    read_objects,
    split_data_url,
)
from .wire_responses_read import Decoder, decode, decode_error, read_items

__all__ = ["RESPONSES"]

_LACKS = frozenset(
    {"stop", "frequency_penalty", "presence_penalty", "logit_bias", "audio"}
)
_PLAIN = ("application/json", "application/xml")


def _path(model: str, stream: bool) -> str:
    return "/responses"


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
    # Without its type, llama.cpp answers 400 "Cannot determine type of 'item'".
    made: Json = {"type": "message", "role": "assistant"}
    items: List[Json] = [{**made, "content": text} for text in said]
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
    said = read_items(items)
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


def _decoder(facts: ModelFacts) -> Decoder:
    return Decoder()


RESPONSES = Wire(
    name="responses",
    path=_path,
    encode=_encode,
    decode=decode,
    decoder=_decoder,
    decode_error=decode_error,
    lacks=_LACKS,
)
