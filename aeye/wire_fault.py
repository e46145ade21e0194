"""Error bodies, read: what went wrong, in our words.

The shapes are OpenAI's and those of the hosts that imitate it more or less. Recorded
bodies and server sources, gathered 2026-11-30; the wordings of an overflow also after
pi-mono's and litellm's lists.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .message import Json
from .wire import Fault, read_count, read_objects

__all__ = ["read_fault"]

_OVERFLOW = re.compile(
    r"maximum context length|exceeds the context window"
    r"|reduce the length of the messages|maximum prompt length is \d"
    r"|\[input_too_large\]|too large for model with \d+ maximum context length"
    r"|exceeds the available context size|greater than the context length"
    r"|exceeded model token limit|context window exceeds limit"
    r"|longer than the model's context length|range of input length should be"
    r"|current length is .* while limit is|prompt token count .* exceeds the limit"
    r"|exceed context limit|prompt is too long",
    re.IGNORECASE,
)
_SCHEMA = re.compile(r"invalid schema for|invalid_json_schema", re.IGNORECASE)
_KEY = re.compile(r"api key not valid|(invalid|incorrect) api key", re.IGNORECASE)
_CODES = {
    "content_filter": "content_filter",
    "context_length_exceeded": "context_overflow",
    "exceed_context_size_error": "context_overflow",
    "insufficient_quota": "quota",
    "invalid_api_key": "auth",
    "invalid_function_parameters": "schema_rejected",
    "invalid_json_schema": "schema_rejected",
    "rate_limit_exceeded": "rate_limit",
    "server_error": "server",
    "internal_server_error": "server",
    "api_error": "server",
    "overloaded_error": "server",
    "unavailable_error": "server",
}


def read_fault(body: Any, status: int | None = None) -> Fault:
    """Read an error body: JSON, or text, of a dozen shapes that hosts invented.

    *status* is that of the answer; without it, as in a stream, the body may name one.

    >>> read_fault({"error": "no such model", "code": "not_found"}, 404).message
    'no such model'
    """
    if isinstance(body, list) and body:  # Gemini
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    said: Json = error if isinstance(error, dict) else {}
    message = _error_message(error, body)
    words = [said.get("code"), said.get("type")]
    if isinstance(body, dict):
        words.append(body.get("code"))
    names = [word for word in words if isinstance(word, str)]
    if status is None:
        numbers = [said.get("status_code"), said.get("status"), said.get("code")]
        codes = [read_count(number) for number in numbers]
        status = next((code for code in codes if code and 400 <= code < 600), None)
    return Fault(
        message[:2000] or f"an error without a message: {body!r:.200}",
        code=names[0] if names else None,
        kind=_kind(message, names, status),
        status=status,
    )


def _error_message(error: Any, body: Any) -> str:
    if isinstance(error, str):
        return error.strip()
    if not isinstance(error, dict):
        return ""
    detail = error.get("detail")
    if isinstance(detail, list):  # FastAPI: Mistral, vLLM
        lines = []
        for item in read_objects(detail):
            path = item.get("loc")
            place = ".".join(map(str, path)) if isinstance(path, list) else ""
            lines.append(f"{place}: {item.get('msg')}" if place else item.get("msg"))
        return "; ".join(map(str, lines))
    message = error.get("message") or detail
    text = message if isinstance(message, str) else ""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if raw:  # OpenRouter: what the host behind it said
        text += f" ({raw if isinstance(raw, str) else json.dumps(raw)})"
    return text


def _kind(message: str, names: list[str], status: int | None) -> str:
    passing = status is None or status >= 500
    for name in names:
        kind = _CODES.get(name)
        if kind is not None and (kind != "server" or passing):
            return kind
    if status in (401, 403):
        return "auth"
    if status == 429:
        return "rate_limit"
    if status == 413 or _OVERFLOW.search(message):
        return "context_overflow"
    if _SCHEMA.search(message):
        return "schema_rejected"
    if _KEY.search(message):
        return "auth"
    return "server" if passing and status is not None else "other"
