"""Gemini's generateContent: what is asked. ``wire_gemini_read`` reads the answers.

Facts from the vendor's documentation, the official client's types and recorded
traffic, gathered 2026-11-30. https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import base64
import mimetypes
from functools import lru_cache
from typing import Dict, List, Mapping
from urllib.parse import quote, urlsplit

from .descriptor import get_descriptor_by_id
from .emit import to_json_schema
from .errors import CapabilityError
from .message import Json, Message, Part
from .request import Reason, Request, ResponseFormat, ToolDefinition
from .wire import (
    ModelFacts,
    Wire,
    check_name,
    merge_extra,
    read_arguments,
    read_objects,
    split_data_url,
)
from .wire_gemini_read import NAME, Decoder, decode, decode_error, said_parts

__all__ = ["GEMINI"]

# Newer models refuse a call in the history without its signature. This word, in the
# place of one, lets calls pass that another model made.
# https://ai.google.dev/gemini-api/docs/thought-signatures, read 2026-11.
_SIGNATURE = "thoughtSignature"
_NO_SIGNATURE = "skip_thought_signature_validator"
# Tokens of thinking that an effort stands for, where a model wants a number: those of
# the vendor's own translation. https://ai.google.dev/gemini-api/docs/openai, 2026-11.
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576}


def _path(model: str, stream: bool) -> str:
    name = model if "/" in model else f"models/{model}"
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/{quote(name)}:{verb}"


def _encode(request: Request, facts: ModelFacts, stream: bool) -> Json:
    body: Json = {"contents": _contents(request, facts)}
    system = [
        part
        for message in request.messages
        if message.role == "system"
        for part in _parts(message)
    ]
    if system:
        body["systemInstruction"] = {"parts": system}
    if request.tools:
        declared = [_declaration(tool) for tool in request.tools]
        body["tools"] = [{"functionDeclarations": declared}]
        calling = _calling(request)
        if calling:
            body["toolConfig"] = {"functionCallingConfig": calling}
    config = _config(request, facts)
    if config:
        body["generationConfig"] = config
    return merge_extra(body, request.extra)


def _config(request: Request, facts: ModelFacts) -> Json:
    config: Json = {}
    for name, value in (
        ("temperature", request.temperature),
        ("topP", request.top_p),
        ("maxOutputTokens", request.max_tokens),
        ("stopSequences", list(request.stop) or None),
        ("frequencyPenalty", request.frequency_penalty),
        ("presencePenalty", request.presence_penalty),
    ):
        if value is not None:
            config[name] = value
    if request.log_probabilities:
        config["responseLogprobs"] = True
        if request.log_probabilities is not True:
            config["logprobs"] = request.log_probabilities
    reason = request.reason
    if reason is not None and reason != Reason():
        config["thinkingConfig"] = _thinking(reason, request.model, facts)
    output = request.response_format
    if isinstance(output, ResponseFormat) and output.schema_delivery != "prompt":
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = _output_schema(output)
    return config


def _thinking(reason: Reason, model: str | None, facts: ModelFacts) -> Json:
    """Say how much to think: older models take a number, newer ones a word too."""
    effort, tokens = reason.effort, reason.max_tokens
    if effort is not None and tokens is not None:
        raise CapabilityError("reason takes an effort or a number of tokens, not both")
    if facts.reasoning == "thinkingBudget" and effort is not None:
        tokens = _BUDGETS.get(effort)
    if tokens is not None:
        said: Json = {"thinkingBudget": tokens}
        return {"includeThoughts": True, **said} if tokens else said
    if effort == "none" or facts.reasoning == "thinkingBudget":
        raise CapabilityError(f"{model} has no effort {effort!r}")
    return {"includeThoughts": True, "thinkingLevel": str(effort).upper()}


# The same tools go out with every turn.
@lru_cache(maxsize=512)
def _declaration(tool: ToolDefinition) -> Json:
    dialect = get_descriptor_by_id(tool.descriptor)
    said: Json = {"name": tool.name}
    if tool.description:
        said["description"] = tool.description
    said["parametersJsonSchema"] = to_json_schema(
        tool.parameters, dialect, describe_dropped=True
    )
    return said


def _calling(request: Request) -> Json:
    choice = request.tool_choice
    if isinstance(choice, Mapping):
        return {"mode": "ANY", "allowedFunctionNames": [choice["tool"]]}
    if choice == "none":
        return {"mode": "NONE"}
    if choice == "required":
        return {"mode": "ANY"}
    # It compiles all tools of the request to one grammar, and refuses large ones: so
    # only for who insists on it.
    if any(tool.strict is True for tool in request.tools):
        return {"mode": "VALIDATED"}
    return {} if choice is None else {"mode": "AUTO"}


@lru_cache(maxsize=128)
def _output_schema(output: ResponseFormat) -> Json:
    dialect = get_descriptor_by_id(output.descriptor)
    return to_json_schema(output.schema, dialect, describe_dropped=True)


def _contents(request: Request, facts: ModelFacts) -> list[Json]:
    """Return the turns; the replies to the calls of one turn are one turn."""
    turns: List[Json] = []
    # Name and, where the vendor gave one, id of the calls so far, by our id.
    called: Dict[str, Json] = {}
    before = ""
    for message in request.messages:
        check_name(message, "Gemini")
        if message.role == "system":
            continue
        if message.role == "assistant":
            parts = _assistant(message, facts)
            calls = read_objects([part.get("functionCall") for part in parts])
            called.update(zip((call.id for call in message.tool_calls), calls))
        elif message.role == "tool":
            parts = [_reply(message, called)]
        else:
            parts = _parts(message)
        if message.role == before == "tool":
            turns[-1]["parts"] += parts
        elif parts:  # an empty turn is refused, and says nothing
            role = "model" if message.role == "assistant" else "user"
            turns.append({"role": role, "parts": parts})
            before = message.role
    return turns


def _reply(message: Message, called: Mapping[str, Json]) -> Json:
    if message.tool_call_id is None:
        raise ValueError("a message with role 'tool' needs a tool_call_id")
    call = called.get(message.tool_call_id) or {}
    name = call.get("name") or message.name
    if not name:
        raise ValueError(
            f"a reply to the call {message.tool_call_id!r}, which nobody made; Gemini "
            "wants its name"
        )
    said: Json = {"name": name, "response": {"output": message.text}}
    if call.get("id"):
        said["id"] = call["id"]
    if not isinstance(message.content, str):
        media = [_part(p, "tool") for p in message.content if p.type != "text"]
        if media:
            said["parts"] = media
    return {"functionResponse": said}


def _parts(message: Message) -> list[Json]:
    """Return the parts of content; empty text is refused, and left out."""
    content = message.content
    if isinstance(content, str):
        content = (Part.text(content),)
    said = (part for part in content if part.type != "text" or part.data)
    return [_part(part, message.role) for part in said]


def _part(part: Part, role: str) -> Json:
    if part.type == "text":
        return {"text": part.data}
    if role == "system":
        raise CapabilityError(f"Gemini takes no {part.type} in a system message")
    url = str(part.data)
    if not url.startswith("data:"):
        said: Json = {"fileUri": url}
        kind = part.format if part.format and "/" in part.format else None
        kind = kind or mimetypes.guess_type(urlsplit(url).path, strict=False)[0]
        return {"fileData": {"mimeType": kind, **said} if kind else said}
    kind, data, name = split_data_url(url)
    if kind.startswith("text/") or kind in ("application/json", "application/xml"):
        text = base64.b64decode(data).decode("utf-8", "replace")
        return {"text": f"{name}:\n{text}" if name else text}
    return {"inlineData": {"mimeType": kind, "data": data}}


def _assistant(message: Message, facts: ModelFacts) -> list[Json]:
    """Return the vendor's own parts, if they still say what the message says."""
    native = message.native or {}
    items = native.get("items")
    if native.get("format") == NAME and isinstance(items, (list, tuple)):
        parts = read_objects(list(items))
        if _says(parts, message):
            return parts
    parts = _said(message)
    if _SIGNATURE in facts.echoes:
        for part in parts:
            if "functionCall" in part:  # of several calls at once only the first
                part[_SIGNATURE] = _NO_SIGNATURE
                break
    return parts


def _said(message: Message) -> list[Json]:
    """Return the parts that the fields of an assistant message make."""
    said = _parts(message) or said_parts(message.refusal or "", ())
    return said + said_parts("", message.tool_calls)


def _says(parts: List[Json], message: Message) -> bool:
    """Whether the vendor's *parts* say what the fields of *message* say."""
    text = (p["text"] for p in parts if "text" in p and not p.get("thought"))
    calls = read_objects([part.get("functionCall") for part in parts])
    if "".join(map(str, text)) != message.text:
        return False
    return len(calls) == len(message.tool_calls) and all(
        theirs.get("name") == ours.name
        and (theirs.get("args") or {}) == read_arguments(ours.arguments)
        and theirs.get("id") in (None, "", ours.id)
        for theirs, ours in zip(calls, message.tool_calls)
    )


GEMINI = Wire(
    name=NAME,
    path=_path,
    encode=_encode,
    decode=decode,
    decoder=Decoder,
    decode_error=decode_error,
    lacks=frozenset({"logit_bias"}),
)
