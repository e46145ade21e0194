"""What Gemini's generateContent answers: whole, streamed, and where it failed.

Recorded traffic of the developer API and of Vertex, gathered 2026-11-30.
https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from .errors import ProtocolError
from .message import Json, Reasoning, ToolCall
from .response import Chunk, FinishReason, Response, join
from .usage import Usage
from .wire import (
    Fault,
    ModelFacts,
    check_object,
    cut_error,
    read_arguments,
    read_count,
    read_json,
    read_objects,
    status_error,
    text_chunk,
)
from .wire_call import CallAssembler
from .wire_fault import read_fault

__all__ = ["Decoder", "NAME", "decode", "decode_error", "said_parts"]

# The format's name, also in what is kept to be sent back.
NAME = "gemini"
_FINISH: Dict[str, FinishReason] = {
    "BLOCKLIST": "content_filter",
    "CONTINUATION": "length",
    "ESCALATION": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "LANGUAGE": "content_filter",
    "MAX_TOKENS": "length",
    "MODEL_ARMOR": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "PUP_LIMITED_DISABLED": "content_filter",
    "RECITATION": "content_filter",
    "SAFETY": "content_filter",
    "SPII": "content_filter",
}
_NOTES = {
    "CONTINUATION": "the answer was cut where the vendor goes on in another request "
    "only (CONTINUATION); ask for less",
}
# The model failed, and what it said so far is no answer. Asking again may help, but
# where the history lacks something.
_FAILED = {
    "IMAGE_OTHER": "server",
    "MALFORMED_FUNCTION_CALL": "server",
    "MALFORMED_RESPONSE": "server",
    "MISSING_THOUGHT_SIGNATURE": "other",
    "NO_IMAGE": "server",
    "OTHER": "server",
    "TOO_MANY_TOOL_CALLS": "server",
    "UNEXPECTED_TOOL_CALL": "server",
}
_OVERFLOW = re.compile(r"token count .*exceeds the maximum number", re.IGNORECASE)
_SCHEMA = re.compile(
    r"too many states|unknown name .*(schema|parameters|function_declarations)"
    r"|response_?(json_?)?schema|parameters_?json_?schema",
    re.IGNORECASE,
)


def decode(body: Any, facts: ModelFacts) -> Response:
    """Read a whole answer.

    Raises:
        ProtocolError: it is none.
        StatusError: it says that the vendor failed.
    """
    # A host that streams an array, for want of "alt=sse", is understood too.
    bodies = read_objects(body if isinstance(body, list) else [body])
    decoder = Decoder(facts)
    chunks = [chunk for said in bodies for chunk in decoder.take(said)]
    if not decoder.answered:
        raise ProtocolError(
            f"an answer with neither content nor a finish reason: {body!r:.200}"
        )
    response = join([*chunks, *decoder.last()])
    return replace(response, extra=_extra(bodies[-1]))


def _extra(body: Json) -> Json | None:
    """What else was said, by the vendor's names."""
    known = ("candidates", "usageMetadata", "modelVersion", "content", "index")
    candidate = _first_candidate(body) or {}
    said = {**body, **candidate}.items()
    return {k: v for k, v in said if k not in known and v is not None} or None


def _first_candidate(body: Json) -> Json | None:
    found = read_objects(body.get("candidates"))
    return next((one for one in found if not one.get("index")), None)


def _text(value: Any) -> str | None:
    return value if value and isinstance(value, str) else None


class Decoder:
    """Reads the answers of one stream, each a piece of the whole."""

    def __init__(self, facts: ModelFacts) -> None:
        # There is no end mark: the body ends.
        self.ended = False
        self.finished = False
        # Whether there was content, or a word on why there is none.
        self.answered = False
        self._calls = CallAssembler()
        self._open: Optional[_OpenCall] = None
        self._said = _Said()
        self._text: List[str] = []
        self._usage: Json = {}
        self._model: Optional[str] = None
        # Older models give a reason with every piece: the last one counts.
        self._finish: FinishReason = "stop"
        self._note: Optional[str] = None
        self._refusal: Optional[str] = None

    def feed(self, data: str, name: str = "") -> Iterable[Chunk]:
        """Return the chunks of one event; see ``StreamDecoder.feed``."""
        if data.startswith("[DONE]"):  # not Google's, but some gateways'
            if not self.answered:
                raise cut_error("", "with neither content nor a finish reason")
            self.ended = True
            return self.last()
        body = read_json(data) if data.strip() else {}
        if isinstance(body, list) and body:
            body = body[0]
        return self.take(check_object(body, "an event", data))

    def take(self, body: Json) -> list[Chunk]:
        """Return the chunks of one piece."""
        if body.get("error"):
            raise self._failed(_fault(body), body)
        usage = body.get("usageMetadata")
        if isinstance(usage, dict) and _read_usage(usage):
            self._usage = usage
        self._model = _text(body.get("modelVersion")) or self._model
        feedback = body.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            self.answered = self.finished = True
            self._finish = "content_filter"
            self._refusal = _text(feedback.get("blockReasonMessage"))
        candidate = _first_candidate(body)
        if candidate is None:
            return []
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        chunks: List[Chunk] = []
        for part in read_objects(parts):
            self.answered = True
            chunks += self._take_part(part)
        self._take_finish(candidate, body)
        return chunks

    def _take_part(self, part: Json) -> list[Chunk]:
        call, text = part.get("functionCall"), _text(part.get("text"))
        if call is not None:
            return self._take_call(part, check_object(call, "a tool call"))
        self._said.add(part)
        if text is None:
            return []
        if part.get("thought"):
            return [Chunk(reasoning=Reasoning(text))]
        self._text.append(text)
        return [text_chunk(text)]

    def _take_call(self, part: Json, call: Json) -> list[Chunk]:
        """Take a call, or a piece of one: only Vertex sends pieces."""
        chunks: List[Chunk] = []
        pieces = call.get("partialArgs")
        if _text(call.get("name")):
            chunks += self._close()
            begun = {k: v for k, v in call.items() if k not in _STREAMING}
            self._open = _OpenCall(begun)
            self._said.add({**part, "functionCall": begun})
            if not (pieces or call.get("willContinue")):
                self._open.whole = call.get("args") or {}
        elif self._open is None and call.get("args"):
            raise ProtocolError(f"a tool call without a name: {call!r:.200}")
        if self._open is None:  # the end of a call that ended already
            return chunks
        self._open.add(read_objects(pieces))
        return chunks if call.get("willContinue") else chunks + self._close()

    def _close(self) -> list[Chunk]:
        """Complete the call that is open, if one is."""
        if self._open is None:
            return []
        call, args = self._open.begun, self._open.arguments()
        self._open = None
        call["args"] = args
        key, place = _text(call.get("id")) or "", object()
        text = json.dumps(args, ensure_ascii=False)
        chunks = self._calls.add(place, key, call["name"], text)
        return chunks + self._calls.finish(place)

    def _take_finish(self, candidate: Json, body: Json) -> None:
        raw = _text(candidate.get("finishReason"))
        if raw is None or raw == "FINISH_REASON_UNSPECIFIED":
            return
        self.answered = self.finished = True
        message = _text(candidate.get("finishMessage"))
        if raw in _FAILED:
            why = f"the model stopped with {raw}{message and ': '}{message or ''}"
            raise self._failed(Fault(why, code=raw, kind=_FAILED[raw]), body)
        self._finish = _FINISH.get(raw, "stop")
        self._note = _NOTES.get(raw)
        if self._finish == "content_filter":
            self._refusal = message

    def end(self, reason: str = "") -> Iterable[Chunk]:
        """Return what is left; see ``StreamDecoder.end``."""
        if not self.finished:
            how, usage = "without a finish reason", _read_usage(self._usage)
            raise cut_error("".join(self._text), how, reason, usage)
        return self.last()

    def last(self) -> list[Chunk]:
        """Return what is known at the end only."""
        chunks = self._close() + self._calls.end()
        finish = self._finish
        if finish == "stop" and self._calls.any:
            finish = "tool_calls"
        calls = tuple(call for call, _ in self._calls.done())
        parts = self._said.parts()
        said = bool(parts) and parts != said_parts("".join(self._text), calls)
        last = Chunk(
            finish_reason=finish,
            refusal=self._refusal,
            usage=_read_usage(self._usage) or None,
            model=self._model,
            native={"format": NAME, "items": parts} if said else None,
            cut_note=self._note,
        )
        return [*chunks, last]

    def _failed(self, fault: Fault, body: Json) -> Exception:
        error = status_error(fault, body=body)
        error.usage = _read_usage(self._usage)
        return error


def said_parts(text: str, calls: Iterable[ToolCall]) -> list[Json]:
    """Return the parts that a text and calls make."""
    parts: List[Json] = [{"text": text}] if text else []
    for call in calls:
        made = {"name": call.name, "args": read_arguments(call.arguments)}
        parts.append({"functionCall": made})
    return parts


class _Said:
    """The parts of an answer as they are to be sent back.

    Pieces of plain text are joined. A part with a signature stays as it is, and so do
    its neighbours.
    """

    def __init__(self) -> None:
        # Each part, and its text in pieces where it is plain.
        self._parts: List[Tuple[Json, Optional[List[str]]]] = []

    def add(self, part: Json) -> None:
        text = part.get("text")
        plain = isinstance(text, str) and set(part) <= {"text", "thought"}
        if not plain:
            self._parts.append((part, None))
        elif text:
            last, pieces = self._parts[-1] if self._parts else ({}, None)
            if pieces is not None and last.get("thought") == part.get("thought"):
                pieces.append(str(text))
            else:
                self._parts.append((part, [str(text)]))

    def parts(self) -> list[Json]:
        return [
            part if pieces is None else {**part, "text": "".join(pieces)}
            for part, pieces in self._parts
        ]


# Keys that only a call in pieces has.
_STREAMING = ("partialArgs", "willContinue")
_Step = Union[str, int]
# The steps of a path: .name, [0], ['name'] or ["name"].
_STEP = re.compile(
    r"""\.([^.\[\]]+) | \[(\d{1,9})\] | \['([^']*)'\] | \["([^"]*)"\]""", re.VERBOSE
)


@dataclass
class _OpenCall:
    """A call whose arguments come in pieces: each a path, and what stands there."""

    begun: Json
    # The arguments, where they came at once.
    whole: Any = None
    # Text comes in pieces, everything else at once.
    values: Dict[str, Any] = field(default_factory=dict)
    texts: Dict[str, List[str]] = field(default_factory=dict)

    def add(self, pieces: List[Json]) -> None:
        for piece in pieces:
            path = str(piece.get("jsonPath"))
            if isinstance(piece.get("stringValue"), str):
                self.texts.setdefault(path, []).append(piece["stringValue"])
                self.values.setdefault(path, "")
                continue
            keys = ("numberValue", "boolValue")
            found = (piece[key] for key in keys if key in piece)
            self.values[path] = next(found, None)

    def arguments(self) -> Any:
        if self.whole is not None:
            return self.whole
        made: Json = {}
        for path, value in self.values.items():
            text = self.texts.get(path)
            _put(made, _steps(path), value if text is None else "".join(text))
        return made


def _steps(path: str) -> list[_Step]:
    """Return the steps of a JSON path.

    >>> _steps("$.rows[0]['first name']")
    ['rows', 0, 'first name']
    """
    steps: List[_Step] = []
    place = 1
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None:
            break
        number = found[2]
        steps.append(int(number) if number else found[1] or found[3] or found[4] or "")
        place = found.end()
    if not path.startswith("$") or place != len(path) or not steps:
        raise ProtocolError(f"a piece of arguments at no place: {path!r:.80}")
    return steps


def _put(made: Json, steps: List[_Step], value: Any) -> None:
    """Put *value* where *steps* lead, making what is on the way."""
    node: Any = made
    for i, step in enumerate(steps):
        ahead = steps[i + 1] if i + 1 < len(steps) else None
        new = value if ahead is None else [] if isinstance(ahead, int) else {}
        if isinstance(step, int) and isinstance(node, list) and step <= len(node):
            if step == len(node):
                node.append(new)
        elif isinstance(step, str) and isinstance(node, dict):
            node.setdefault(step, new)
        else:
            raise ProtocolError(f"pieces of arguments that do not fit: {steps!r:.80}")
        if ahead is not None:
            node = node[step]


def _read_usage(usage: Json) -> Usage:
    """Read the numbers. Thoughts are not in the candidates' tokens here."""

    def total(*names: str) -> int | None:
        counts = [read_count(usage.get(name)) for name in names]
        said = [count for count in counts if count is not None]
        return sum(said) if said else None

    return Usage.of(
        input=total("promptTokenCount", "toolUsePromptTokenCount"),
        output=total("candidatesTokenCount", "thoughtsTokenCount"),
        cached=total("cachedContentTokenCount"),
        reasoning=total("thoughtsTokenCount"),
        total=total("totalTokenCount"),
    )


# Errors.


def decode_error(status: int, headers: Mapping[str, str], body: Any) -> Fault:
    """Read the body of an error."""
    return _fault(body, status)


def _fault(body: Any, status: int | None = None) -> Fault:
    fault = read_fault(body, status)
    first = body[0] if isinstance(body, list) and body else body
    error = first.get("error") if isinstance(first, dict) else None
    if not isinstance(error, dict):
        return fault
    code = error.get("status")
    details = read_objects(error.get("details"))
    kind = fault.kind
    if _OVERFLOW.search(fault.message):
        kind = "context_overflow"
    elif kind == "other" and _SCHEMA.search(fault.message):
        kind = "schema_rejected"
    elif kind == "rate_limit" and "PerDay" in json.dumps(details):
        kind = "quota"  # asking again today is of no use
    return replace(
        fault,
        code=code if isinstance(code, str) else fault.code,
        kind=kind,
        retry_after=_delay(details),
    )


def _delay(details: List[Json]) -> float | None:
    """Return the seconds to wait, which no header says."""
    for detail in details:
        found = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)s", str(detail.get("retryDelay")))
        if found:
            return float(found[1])
    return None
