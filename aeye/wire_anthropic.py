"""Anthropic Messages: what is asked. ``wire_anthropic_read`` reads the answers.

Facts from the vendor's documentation, the official client's types and recorded
traffic, gathered 2026-11-30. https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any, List, Mapping

from .descriptor import get_descriptor_by_id
from .emit import to_json_schema
from .errors import CapabilityError
from .message import Json, Message, Part
from .request import Request, ResponseFormat, ToolDefinition
from .wire import (
    ModelFacts,
    Wire,
    check_name,
    merge_extra,
    read_objects,
    split_data_url,
)
from .wire_anthropic_read import (
    NAME,
    Decoder,
    call_id,
    decode,
    decode_error,
    said_blocks,
)

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


def _path(model: str, stream: bool) -> str:
    return "/v1/messages"


def _headers(request: Request, facts: ModelFacts) -> Mapping[str, str]:
    return {"anthropic-version": _VERSION}


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
    key = call_id(message.tool_call_id)
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
    if any(part.type != "text" for part in message.content if isinstance(part, Part)):
        raise CapabilityError(
            "Anthropic Messages takes nothing but text from the assistant"
        )
    said = said_blocks(message)
    native = message.native or {}
    items = native.get("items")
    if native.get("format") != NAME or not isinstance(items, (list, tuple)):
        return said
    # An interrupted turn has fewer calls than its blocks, an edited one another text.
    items = read_objects(list(items))
    if _spoken(items) != _spoken(said):
        return said
    # What the vendor says and refuses to hear: text of blanks alone.
    return [b for b in items if b.get("type") != "text" or str(b.get("text")).strip()]


def _spoken(blocks: List[Json]) -> tuple[str, list[Any]]:
    """Return what blocks say, apart from how they are cut: the text and the calls."""
    text = "".join(str(b.get("text")) for b in blocks if b.get("type") == "text")
    keys = ("id", "name", "input")
    uses = (block for block in blocks if block.get("type") == "tool_use")
    return text.strip(), [[use.get(key) for key in keys] for use in uses]


MESSAGES = Wire(
    name=NAME,
    path=_path,
    encode=_encode,
    decode=decode,
    decoder=Decoder,
    decode_error=decode_error,
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
