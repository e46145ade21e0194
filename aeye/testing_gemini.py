"""Gemini's generateContent from the server's side.

The mirror of what a client's codec does: a request's JSON is read, a response's is
written. https://ai.google.dev/api/generate-content, read 2026-11.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from .errors import AeyeError, RateLimitError, StatusError, StreamCutError
from .message import Json, Message, Part, ToolCall
from .request import Reason, Request, ResponseFormat, ToolDefinition
from .response import Chunk, Collector, Response
from .schema import Schema
from .usage import Usage

__all__ = [
    "decode_gemini",
    "encode_gemini",
    "encode_gemini_error",
    "encode_gemini_events",
]

# What the fields of a request are called here, where only the name differs.
_FIELDS = {
    "temperature": "temperature",
    "topP": "top_p",
    "maxOutputTokens": "max_tokens",
    "stopSequences": "stop",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
}
_MODES = {
    "ANY": "required",
    "AUTO": "auto",
    "MODE_UNSPECIFIED": "auto",
    "NONE": "none",
    "VALIDATED": "auto",
}
_FINISH = {
    "content_filter": "SAFETY",
    "length": "MAX_TOKENS",
    "refusal": "SAFETY",
    "stop": "STOP",
    "tool_calls": "STOP",
}
_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def decode_gemini(body: Json) -> Request:
    """Read a request's body, to which the model was added: the path names it.

    The schemas are taken as they were sent: what dialect they are written in is
    not known here.

    Raises:
        KeyError, TypeError, ValueError: the body is no such request.
    """
    config = body.get("generationConfig") or {}
    given = {
        ours: config[k] for k, ours in _FIELDS.items() if config.get(k) is not None
    }
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    if config.get("responseMimeType") == "application/json":
        given["response_format"] = ResponseFormat(
            Schema(schema or {"type": "object"}), schema_delivery="structured"
        )
    if config.get("responseLogprobs"):
        given["log_probabilities"] = config.get("logprobs") or True
    system = (body.get("systemInstruction") or {}).get("parts") or ()
    messages = [Message("system", part["text"]) for part in system]
    names: Dict[str, int] = {}
    for content in body["contents"]:
        messages += _messages(content, names)
    declared = [
        _tool(value)
        for group in body.get("tools") or ()
        for value in group.get("functionDeclarations") or ()
    ]
    return Request(
        tuple(messages),
        body.get("model"),
        tools=tuple(declared),
        tool_choice=_choice(body.get("toolConfig") or {}),
        reason=_reason(config.get("thinkingConfig") or {}),
        **given,
    )


def _messages(content: Json, numbers: Dict[str, int]) -> list[Message]:
    """Read one turn. Calls without an id, and their replies, are numbered by name."""
    parts = [part for part in content["parts"] if not part.get("thought")]
    if content.get("role") == "model":
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        texts = (part["text"] for part in parts if "text" in part)
        made = (
            ToolCall(
                _id(call, numbers, "call"),
                call["name"],
                arguments=json.dumps(call.get("args") or {}),
            )
            for call in calls
        )
        return [Message("assistant", "".join(texts), tool_calls=tuple(made))]
    found = []
    for part in parts:
        if "functionResponse" in part:
            reply = part["functionResponse"]
            key = _id(reply, numbers, "reply")
            found.append(Message("tool", _said(reply["response"]), tool_call_id=key))
    rest = [_part(part) for part in parts if "functionResponse" not in part]
    return [*found, Message("user", _joined(rest))] if rest else found


def _id(value: Json, numbers: Dict[str, int], what: str) -> str:
    if value.get("id"):
        return str(value["id"])
    key = f"{what} {value['name']}"
    numbers[key] = numbers.get(key, 0) + 1
    return f"{value['name']}_{numbers[key]}"


def _said(response: Json) -> str:
    """Return a reply's text, which has a key of its own or is the whole object."""
    text = response.get("output", response.get("error", response))
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def _joined(parts: List[Part]) -> Union[str, Tuple[Part, ...]]:
    """Return parts as plain text where they are one text."""
    if len(parts) == 1 and parts[0].type == "text":
        return str(parts[0].data)
    return tuple(parts)


def _part(value: Json) -> Part:
    if "text" in value:
        return Part.text(value["text"])
    if "inlineData" in value:
        media = value["inlineData"]
        url = f"data:{media['mimeType']};base64,{media['data']}"
    else:
        media = value["fileData"]
        url = media["fileUri"]
    kind = (media.get("mimeType") or "").partition("/")[0]
    make = {"image": Part.image, "audio": Part.audio}.get(kind, Part.file)
    return make(url, media.get("mimeType"))


def _tool(value: Json) -> ToolDefinition:
    schema = value.get("parametersJsonSchema") or value.get("parameters")
    return ToolDefinition(
        value["name"],
        value.get("description") or "",
        parameters=Schema(schema or {"type": "object"}),
    )


def _choice(value: Json) -> Union[str, Dict[str, str], None]:
    calling = value.get("functionCallingConfig")
    if not calling:
        return None
    only = list(calling.get("allowedFunctionNames") or ())
    if len(only) == 1:
        return {"tool": only[0]}
    return _MODES[calling.get("mode") or "AUTO"]


def _reason(value: Json) -> Optional[Reason]:
    level, budget = value.get("thinkingLevel"), value.get("thinkingBudget")
    if budget == 0:
        return Reason("none")
    if level is None and budget is None:
        return None
    return Reason(level.lower() if level else None, budget)


def encode_gemini(response: Response, body: Json) -> Json:
    """Return the body that says *response*."""
    parts: List[Json] = []
    if response.reasoning is not None:
        parts.append({"text": response.reasoning.text, "thought": True})
    if response.content:
        parts.append({"text": response.content})
    parts += map(_call, response.tool_calls)
    end = _end(response.finish_reason, response.refusal)
    return {
        "candidates": [_candidate(parts, end)],
        **_tail(response.model, response.usage, body),
    }


def encode_gemini_events(chunks: Iterable[Chunk], body: Json) -> Iterator[bytes]:
    """Yield the events of a stream that says *chunks*; calls come whole here.

    Chunks without a finish reason make a stream without its end, as a host that
    breaks off would send it.
    """
    collector = Collector()
    # Of the calls, those that were sent.
    sent: List[str] = []
    try:
        for given in chunks:
            if given.restart:
                raise ValueError("what was sent cannot be taken back here")
            chunk = collector.add(given)
            parts: List[Json] = []
            if chunk.reasoning is not None:
                parts.append({"text": chunk.reasoning.text, "thought": True})
            if chunk.content:
                parts.append({"text": chunk.content})
            if chunk.tool_call is not None:
                sent.append(chunk.tool_call.id)
                parts.append(_call(chunk.tool_call))
            if parts:
                yield _event({"candidates": [_candidate(parts, {})]})
    except StreamCutError:
        raise
    except AeyeError as exc:
        status = getattr(exc, "status", None) or 500
        yield _event(encode_gemini_error(exc, int(status)))
        return
    if collector.finish_reason is None:
        return
    response = collector.response()
    rest = [_call(call) for call in response.tool_calls if call.id not in sent]
    end = _end(collector.finish_reason, collector.refusal)
    candidates = [_candidate(rest or [{"text": ""}], end)]
    tail = _tail(response.model, response.usage, body)
    yield _event({"candidates": candidates, **tail})


def encode_gemini_error(error: AeyeError, status: int) -> Json:
    """Return the body that tells of *error*."""
    usual = "INTERNAL" if status >= 500 else _ERRORS[400]
    code = error.code if isinstance(error, StatusError) else None
    if code is None or not code.isupper():
        code = _ERRORS.get(status, usual)
    said: Json = {"code": status, "message": error.message, "status": code}
    if isinstance(error, RateLimitError) and error.retry_after is not None:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        delay = f"{error.retry_after:g}s"
        said["details"] = [{"@type": kind, "retryDelay": delay}]
    return {"error": said}


def _call(call: ToolCall) -> Json:
    args: Any = json.loads(call.arguments)
    return {"functionCall": {"id": call.id, "name": call.name, "args": args}}


def _candidate(parts: List[Json], end: Json) -> Json:
    return {"content": {"role": "model", "parts": parts}, **end, "index": 0}


def _end(reason: str, refusal: Optional[str]) -> Json:
    said = {"finishReason": _FINISH[reason]}
    return said if refusal is None else {**said, "finishMessage": refusal}


def _tail(model: Optional[str], usage: Usage, body: Json) -> Json:
    thought = (usage.reasoning.output if usage.reasoning else 0) or 0
    counts = {
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cached_input_tokens,
        "candidatesTokenCount": usage.output_tokens - thought,
        "thoughtsTokenCount": thought,
        "totalTokenCount": usage.total_tokens,
    }
    return {
        "usageMetadata": counts,
        "modelVersion": model or body.get("model") or "local",
        "responseId": "local",
    }


def _event(value: Json) -> bytes:
    data = json.dumps(value, ensure_ascii=False)
    return f"data: {data}\r\n\r\n".encode("utf-8", "replace")
