"""What a trace says of requests, messages, errors and whatever tools return: JSON.

A trace must take any value and stay small: long text is cut, bytes are counted instead
of written, and what has no JSON form is shown by its ``repr``.
"""

from __future__ import annotations

import dataclasses
import math
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional

from .callback import attempt, words
from .descriptor import get_descriptor_by_id
from .emit import emission_of
from .message import Json, Message, Part
from .request import Request, ResponseFormat, ToolDefinition
from .response import Response
from .schema import Schema
from .usage import Usage

__all__ = ["Spelling", "numbers"]

# Levels and members of a value that are written.
_MAX_DEPTH = 20
_MAX_ITEMS = 1000
# Characters of what is shown by its ``repr``, and of an address.
_MAX_REPR = 1000
_MAX_URL = 200
# Frames of a tool's traceback: the last ones.
_FRAMES = 8
# Fields of a request that are written by rules of their own.
_OWN_RULES = frozenset({"messages", "tools", "response_format"})


def numbers(usage: Usage) -> Dict[str, Any]:
    """Return what *usage* reports, as flat numbers; nothing where there is nothing.

    >>> numbers(Usage.of(input=10, output=5, reasoning=2))
    {'input': 10, 'output': 5, 'reasoning': 2}
    """
    thought = usage.reasoning.output if usage.reasoning else None
    said = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cached": usage.cached_input_tokens,
        "cache_write": usage.cache_creation_input_tokens,
        "reasoning": thought or 0,
        "cost": usage.cost or 0,
    }
    return {name: number for name, number in said.items() if number}


@dataclass(frozen=True)
class Spelling:
    """How values are written: texts cut after *max_text* characters, and redacted."""

    max_text: int = 100_000
    redact: Optional[Callable[[str], str]] = None

    def text(self, text: str) -> str:
        """Return *text* as it may be written."""
        if self.redact is not None:
            text = str(self.redact(text))
        if len(text) <= self.max_text:
            return text
        return f"{text[: self.max_text]}…<{len(text)} characters>"

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return a JSON form of anything.

        >>> Spelling().value({"at": {1, 2}, "ok": True, "bytes": b"ab"})
        {'at': '{1, 2}', 'ok': True, 'bytes': '<2 bytes>'}
        """
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else repr(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f"<{len(value)} bytes>"
        if depth == _MAX_DEPTH:
            return f"<{type(value).__name__}>"
        return self._compound(value, depth + 1)

    def _compound(self, value: Any, depth: int) -> Any:
        if isinstance(value, Message):
            return self.message(value)
        if isinstance(value, Part):
            return self._part(value)
        if isinstance(value, BaseException):
            return self.error(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [item.name for item in dataclasses.fields(value)]
            value = {name: getattr(value, name) for name in names}
        if isinstance(value, Mapping):
            pairs = list(value.items())
            found = {
                self.text(str(k)): self.value(v, depth) for k, v in pairs[:_MAX_ITEMS]
            }
            if len(pairs) > _MAX_ITEMS:
                found["…"] = f"<{len(pairs)} members>"
            return found
        if isinstance(value, (list, tuple)):
            items = [self.value(item, depth) for item in value[:_MAX_ITEMS]]
            more = [f"…<{len(value)} items>"] if len(value) > _MAX_ITEMS else []
            return items + more
        shown, error = attempt(repr, value)
        if error is not None or not isinstance(shown, str):
            return f"<{type(value).__name__}>"
        cut = shown if len(shown) <= _MAX_REPR else f"{shown[:_MAX_REPR]}…"
        return self.text(cut)

    def message(self, message: Message) -> Json:
        """Return what was said, without the vendor's own items."""
        content: Any = message.content
        if isinstance(content, str):
            content = self.text(content)
        else:
            content = [self._part(part) for part in content]
        found: Json = {"role": message.role, "content": content}
        for name in ("name", "tool_call_id", "refusal"):
            if getattr(message, name) is not None:
                found[name] = self.text(getattr(message, name))
        return {**found, **self._said(message)}

    def response(self, response: Response) -> Json:
        """Return an answer, without the vendor's own items."""
        found: Json = {"content": self.text(response.content), **self._said(response)}
        found["finish_reason"] = response.finish_reason
        if response.refusal is not None:
            found["refusal"] = self.text(response.refusal)
        if response.model is not None:
            found["model"] = response.model
        return found

    def _said(self, said: Any) -> Json:
        """Return the reasoning and the calls of a message or a response."""
        found: Json = {}
        if said.reasoning:
            found["reasoning"] = self.text(said.reasoning.text)
        if said.tool_calls:
            found["tool_calls"] = [
                {"id": c.id, "name": c.name, "arguments": self.text(c.arguments)}
                for c in said.tool_calls
            ]
        return found

    def _part(self, part: Part) -> Json:
        if part.type == "text":
            return {"type": "text", "text": self.text(str(part.data))}
        found: Json = {"type": part.type}
        if part.format is not None:
            found["format"] = part.format
        if isinstance(part.data, bytes):
            found["data"] = f"<{len(part.data)} bytes>"
        else:
            where = str(part.data)
            found["data"] = self.text(where[:_MAX_URL])
            if len(where) > _MAX_URL:
                found["data"] += f"…<{len(where)} characters>"
        return found

    def request(self, request: Request, before: Request | None) -> Json:
        """Return a request as what is new since *before*, the run's last one.

        ``kept`` counts the messages of that one which this one begins with;
        ``messages`` are those after them. Tools and the shape of the answer are
        spelled out where they are not those of *before*.
        """
        earlier = before.messages if before is not None else ()
        kept = _common(earlier, request.messages)
        new = request.messages[kept:]
        found: Json = {"kept": kept, "messages": [self.message(said) for said in new]}
        if before is None or before.tools != request.tools:
            found["tools"] = [self._tool(offer) for offer in request.tools]
        shape = request.response_format
        if before is None or before.response_format != shape:
            found["response_format"] = (
                self._shape(shape) if isinstance(shape, ResponseFormat) else shape
            )
        for item in dataclasses.fields(request):
            said = getattr(request, item.name)
            if item.name not in _OWN_RULES and said != item.default:
                found[item.name] = self.value(said)
        return found

    def _tool(self, offer: ToolDefinition) -> Json:
        return {
            "name": offer.name,
            "description": self.text(offer.description),
            "descriptor": offer.descriptor,
            "parameters": self._schema(offer.parameters, offer.descriptor),
        }

    def _shape(self, shape: ResponseFormat) -> Json:
        return {
            "delivery": shape.schema_delivery,
            "descriptor": shape.descriptor,
            "schema": self._schema(shape.schema, shape.descriptor),
        }

    def _schema(self, schema: Schema, descriptor: Optional[str]) -> Any:
        """Return *schema* as it is sent in the dialect that was chosen for it."""
        if descriptor is None:
            return self.value(schema.json)
        dialect = get_descriptor_by_id(descriptor)
        return self.value(emission_of(schema, dialect, describe_dropped=True).wire)

    def error(self, error: BaseException, *, frames: bool = False) -> Json:
        """Return what is known of *error*; with *frames* also where it was raised."""
        said = words(error) if isinstance(error, Exception) else str(error)
        found: Json = {"type": type(error).__name__, "message": self.text(said)}
        status = getattr(error, "status", None)
        if isinstance(status, int):
            found["status"] = status
        if error.__cause__ is not None:
            found["cause"] = self.text(
                f"{type(error.__cause__).__name__}: {error.__cause__}"
            )
        if frames and error.__traceback__ is not None:
            lines = traceback.format_tb(error.__traceback__, -_FRAMES)
            found["traceback"] = self.text("".join(lines))
        return found


def _common(a: Any, b: Any) -> int:
    """Return how many items *a* and *b* begin with in common."""
    n = 0
    for one, other in zip(a, b):
        if one is not other and one != other:
            break
        n += 1
    return n
