"""What chat completions answers: whole, streamed, and where it failed.

Hosts differ here more than in what they take; the quirks are those of recorded traffic
of some twenty hosts, gathered 2026-11-30.
https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Mapping, Optional

from .errors import ProtocolError, StatusError
from .message import Json, Reasoning, ReasoningDetail, ToolCall
from .response import WINDOW_FULL, Chunk, FinishReason, Response
from .usage import Usage
from .wire import (
    Fault,
    ModelFacts,
    check_object,
    cut_error,
    read_count,
    read_json,
    read_objects,
    read_usage,
    status_error,
    text_chunk,
)
from .wire_call import CallAssembler
from .wire_fault import read_fault
from .wire_text import TagReader, split_tags

__all__ = ["Decoder", "call_fields", "decode", "decode_error", "encode_call"]

_FINISH: Dict[str, FinishReason] = {
    "content_filter": "content_filter",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral
}
_NOTES = {"model_length": WINDOW_FULL}


def decode(body: Any, facts: ModelFacts) -> Response:
    """Read a whole answer.

    Raises:
        ProtocolError: it is none.
        StatusError: it says that the vendor failed.
    """
    body = check_object(body, "an answer")
    if body.get("error"):
        raise status_error(read_fault(body), body=body)
    choice = _first_choice(body)
    if choice is None:
        raise ProtocolError(f"an answer without choices: {body!r:.200}")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ProtocolError(f"a choice without a message: {choice!r:.200}")
    text, thought = _read_content(message.get("content"))
    tagged, text = split_tags(text) if facts.think_tags else ("", text)
    raw_calls = _read_calls(message.get("tool_calls"))
    calls = tuple(map(_read_call, raw_calls))
    refusal = _read_word(message.get("refusal"))
    echo = _Echo()
    echo.add(message, whole=True)
    extras = [call.get("extra_content") for call in raw_calls]
    reasoning = _read_reasoning(message, thought)
    if tagged:
        reasoning = (reasoning or Reasoning()) + Reasoning(tagged)
    finish = choice.get("finish_reason")
    if not (finish or text or calls or refusal or reasoning):
        raise ProtocolError(
            f"an answer with neither content nor a finish reason: {choice!r:.200}"
        )
    return Response(
        text,
        calls,
        finish_reason=_finish(finish, bool(calls), bool(refusal)),
        refusal=refusal,
        reasoning=reasoning,
        usage=_read_usage(body) or Usage(),
        model=_read_word(body.get("model")),
        extra=_extra(body, choice, message),
        native=echo.native(text, list(zip(calls, extras))),
        cut_note=_note(finish),
    )


def _first_choice(body: Json) -> Json | None:
    """Return the choice with index 0, raising for an error that stands in it."""
    for choice in read_objects(body.get("choices")):
        if choice.get("error"):
            raise status_error(read_fault(choice), body=choice)
        if not choice.get("index"):
            return choice
    return None


def _read_content(content: Any) -> tuple[str, str]:
    """Return text and thought; Mistral gives a list that has both."""
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, list):
        raise ProtocolError(f"content that is no text: {content!r:.200}")
    text: list[str] = []
    thought: list[str] = []
    for item in content:
        if isinstance(item, str):
            text.append(item)
        elif isinstance(item, dict) and item.get("type") == "thinking":
            inner = item.get("thinking")
            thought.append(_read_content(inner)[0])
        elif isinstance(item, dict) and isinstance(item.get("text"), str):
            text.append(item["text"])
    return "".join(text), "".join(thought)


def _read_word(value: Any) -> str | None:
    return value if value and isinstance(value, str) else None


def _read_calls(value: Any) -> list[Json]:
    """Return what stands for calls; whatever else stands there is not left out."""
    calls = read_objects(value)
    if value and (not isinstance(value, list) or len(calls) < len(value)):
        raise ProtocolError(f"tool calls that are no list of objects: {value!r:.200}")
    return calls


def _read_call(call: Json) -> ToolCall:
    key, name, arguments, _ = call_fields(call)
    if not name:
        raise ProtocolError(f"a tool call without a name: {call!r:.200}")
    return ToolCall(key, name, arguments if arguments.strip() else "{}")


def call_fields(call: Json) -> tuple[str, str, str, Any]:
    """Return id, name, arguments and extra content; what is not said is empty."""
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):  # Ollama's own form
        arguments = json.dumps(arguments)
    key, name = call.get("id"), function.get("name")
    return (
        key if isinstance(key, str) else "",
        name if isinstance(name, str) else "",
        arguments,
        call.get("extra_content"),
    )


def _read_reasoning(message: Json, thought: str) -> Reasoning | None:
    for key in ("reasoning_content", "reasoning"):
        value = message.get(key)
        if not thought and isinstance(value, str):
            thought = value
    details = tuple(map(_read_detail, read_objects(message.get("reasoning_details"))))
    return Reasoning(thought, details) if thought or details else None


def _read_detail(raw: Json) -> ReasoningDetail:
    texts = ("id", "type", "format", "summary", "text", "signature", "data")
    found = {k: raw[k] for k in texts if isinstance(raw.get(k), str)}
    return ReasoningDetail(index=read_count(raw.get("index")), **found)


def _finish(raw: Any, called: bool, refused: bool) -> FinishReason:
    if raw == "error":
        fault = Fault("the model stopped with an error", kind="server")
        raise status_error(fault)
    found = _FINISH.get(raw) if isinstance(raw, str) else None
    if found is not None:
        return found
    # What a host calls the end is not to be trusted where it called a tool.
    return "tool_calls" if called else "refusal" if refused else "stop"


def _note(raw: Any) -> str | None:
    return _NOTES.get(raw) if isinstance(raw, str) else None


def _read_usage(body: Json) -> Usage | None:
    return read_usage(body, "prompt", "completion")


def _extra(body: Json, choice: Json, message: Json) -> Json | None:
    """What else was said, by the host's names."""
    known = ("choices", "usage", "object", "model", "created", "error")
    extra = {k: v for k, v in body.items() if k not in known and v is not None}
    for source, keys in (
        (choice, ("logprobs", "native_finish_reason", "content_filter_results")),
        (message, ("annotations", "audio")),
    ):
        found = {k: source[k] for k in keys if source.get(k) not in (None, [])}
        extra.update(found)
    return extra or None


def encode_call(call: ToolCall) -> Json:
    """Return a call as a host would say it."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


class _Echo:
    """Collects what a host may want to see again."""

    def __init__(self) -> None:
        self._thought: List[str] = []
        self._details: List[Json] = []
        self._extra: Any = None

    def add(self, message: Json, *, whole: bool = False) -> None:
        thought = message.get("reasoning_content")
        if thought and isinstance(thought, str):
            self._thought.append(thought)
        for detail in read_objects(message.get("reasoning_details")):
            if whole:
                self._details.append(detail)
            else:
                self._add_detail(detail)
        if message.get("extra_content"):
            self._extra = message["extra_content"]

    def _add_detail(self, new: Json) -> None:
        """Join a piece to its item: the one with its index or id, and its type."""
        key = next((k for k in ("index", "id") if new.get(k) is not None), "type")
        recent = self._details[-1:] if key == "type" else self._details[-4:]
        kind = new.get("type")
        same = [
            old
            for old in recent
            if old.get(key) == new.get(key)
            and (kind is None or old.get("type") in (None, kind))
        ]
        if not same:
            self._details.append(dict(new))
            return
        old = same[-1]
        for name, value in new.items():
            if name in ("text", "summary", "data") and isinstance(old.get(name), str):
                old[name] += value if isinstance(value, str) else ""
            elif value not in (None, ""):
                old[name] = value

    def native(self, text: str, calls: list[tuple[ToolCall, Any]]) -> Json | None:
        item: Json = {}
        if self._thought and calls:
            item["reasoning_content"] = "".join(self._thought)
        if self._details:
            item["reasoning_details"] = self._details
        if self._extra is not None:
            item["extra_content"] = self._extra
        if not item and not any(extra for _, extra in calls):
            return None
        item["content"] = text
        if calls:
            item["tool_calls"] = [_native_call(*call) for call in calls]
        return {"format": "chat", "items": [item]}


def _native_call(call: ToolCall, extra: Any) -> Json:
    said = encode_call(call)
    return {**said, "extra_content": extra} if extra else said


class Decoder:
    """Reads one stream of chat completion chunks."""

    def __init__(self, facts: ModelFacts) -> None:
        self.ended = False
        self.finished = False
        self._calls = CallAssembler()
        self._echo = _Echo()
        self._tags = TagReader() if facts.think_tags else None
        self._text: List[str] = []
        self._refused = False
        # Whether anything was handed on.
        self._spoke = False
        # The body that had the last usage: some report it anew in every chunk.
        self._usage: Json = {}
        self._model: Optional[str] = None

    def feed(self, data: str, name: str = "") -> Iterable[Chunk]:
        """Return the chunks of one event; see ``StreamDecoder.feed``."""
        if data.startswith("[DONE]"):
            self.ended = True
            return self._last()
        body = read_json(data) if data.strip() else {}
        body = check_object(body, "an event", data)
        if name == "error" or body.get("error"):
            raise self._failed(body)
        if body.get("usage"):
            self._usage = body
        if "x_groq" in body:
            self._take_aside(body["x_groq"])
        if self._model is None:
            self._model = _read_word(body.get("model"))
        choice = _first_choice(body) if body.get("choices") else None
        if choice is None:
            return ()
        chunks: List[Chunk] = []
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._take(delta, chunks)
            self._spoke = self._spoke or bool(chunks)
        finish = choice.get("finish_reason")
        if finish and not self.finished:
            chunks += [*self._untagged(), *self._calls.end()]
            reason = self._reason(finish)
            chunks.append(Chunk(finish_reason=reason, cut_note=_note(finish)))
            self.finished = True
        return chunks

    def _take_aside(self, said: Any) -> None:
        """Take what Groq says beside the choices: the numbers, or why it stopped early.

        https://github.com/groq/groq-python, types of 2f14acf, read 2026-12-01
        """
        if isinstance(said, dict):
            if said.get("error"):
                raise self._failed(said)
            if said.get("usage"):
                self._usage = said

    def _take(self, delta: Json, chunks: list[Chunk]) -> None:
        content = delta.get("content")
        thought = ""
        if content and not isinstance(content, str):
            content, thought = _read_content(content)
        if not content or thought or len(delta) > 1:
            reasoning = _read_reasoning(delta, thought)
            if reasoning is not None:
                chunks.append(Chunk(reasoning=reasoning))
            self._echo.add(delta)
            refusal = _read_word(delta.get("refusal"))
            if refusal:
                self._refused = True
                chunks.append(Chunk(refusal=refusal))
        if content and self._tags is not None:
            more, content = self._tags.feed(content)
            if more:
                chunks.append(Chunk(reasoning=Reasoning(more)))
        if content:
            self._text.append(content)
            chunks.append(text_chunk(content))
        calls = delta.get("tool_calls")
        if calls:
            for call in _read_calls(calls):
                place = read_count(call.get("index"))
                chunks += self._calls.add(place, *call_fields(call))

    def _untagged(self) -> list[Chunk]:
        """Return what was held back of a text that might have gone on as a tag."""
        thought, text = ("", "") if self._tags is None else self._tags.end()
        self._text.append(text)
        if thought:
            return [Chunk(reasoning=Reasoning(thought))]
        return [text_chunk(text)] if text else []

    def end(self, reason: str = "") -> Iterable[Chunk]:
        """Return what is left; see ``StreamDecoder.end``."""
        if not self.finished:
            how = "without a finish reason or [DONE]"
            usage = _read_usage(self._usage)
            raise cut_error("".join(self._text), how, reason, usage)
        return self._last()

    def _last(self) -> list[Chunk]:
        """Return what is known at the end only, the finish if nobody said it."""
        chunks = [*self._untagged(), *self._calls.end()]
        if not (self.finished or self._spoke or chunks):
            raise cut_error("", "with neither content nor a finish reason")
        said = self.finished and not chunks
        self.finished = True
        echo = self._echo.native("".join(self._text), self._calls.done())
        last = Chunk(
            finish_reason=None if said else self._reason(None),
            usage=_read_usage(self._usage),
            model=self._model,
            native=echo,
        )
        return chunks if last == _NOTHING else [*chunks, last]

    def _reason(self, raw: Any) -> FinishReason:
        return _finish(raw, self._calls.any, self._refused)

    def _failed(self, body: Json) -> StatusError:
        error = status_error(read_fault(body), body=body)
        error.usage = _read_usage(self._usage)
        return error


_NOTHING = Chunk()


def decode_error(status: int, headers: Mapping[str, str], body: Any) -> Fault:
    """Read the body of an error."""
    return read_fault(body, status)
