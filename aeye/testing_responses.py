"""The Responses format from the server's side.

The mirror of what a client's codec does: a request's JSON is read, a response's is
written. https://platform.openai.com/docs/api-reference/responses, read 2026-11.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import (
    Any,
    Dict,
    Generator,
    Iterable,
    Iterator,
    List,
    Optional,
    Tuple,
    Union,
)

from .errors import AeyeError, StatusError
from .message import Json, Message, Part, Reasoning, ToolCall
from .request import Reason, Request, ResponseFormat, ToolDefinition
from .response import Chunk, Collector, Response, split
from .schema import Schema
from .usage import Usage

__all__ = [
    "decode_responses",
    "encode_responses",
    "encode_responses_error",
    "encode_responses_events",
]

# What the fields of a request are called here, where only the name differs.
_FIELDS = {
    "model": "model",
    "temperature": "temperature",
    "top_p": "top_p",
    "max_output_tokens": "max_tokens",
    "prompt_cache_key": "cache_key",
    "user": "user_key",
    "safety_identifier": "user_key",
}
# What a response repeats of its request.
_REPEATED: Json = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
}


def decode_responses(body: Json) -> Request:
    """Read a request's body.

    The schemas are taken as they were sent: what dialect they are written in is
    not known here. Items that stand for one turn of the assistant are one message.

    Raises:
        KeyError, TypeError, ValueError: the body is no such request.
    """
    given = {ours: body[k] for k, ours in _FIELDS.items() if body.get(k) is not None}
    wanted = (body.get("text") or {}).get("format") or {"type": "text"}
    if wanted["type"] == "json_schema":
        given["name"] = wanted["name"]
        given["response_format"] = ResponseFormat(
            Schema(wanted["schema"]),
            strict=bool(wanted.get("strict")),
            schema_delivery="structured",
        )
    elif wanted["type"] == "json_object":
        given["response_format"] = ResponseFormat(Schema({"type": "object"}))
    effort = (body.get("reasoning") or {}).get("effort")
    if effort is not None:
        given["reason"] = Reason(effort)
    return Request(
        tuple(_messages(body)),
        tools=tuple(map(_tool, body.get("tools") or ())),
        tool_choice=_choice(body.get("tool_choice")),
        tools_one_at_a_time=body.get("parallel_tool_calls") is False,
        **given,
    )


def _messages(body: Json) -> Iterator[Message]:
    if body.get("instructions"):
        yield Message("system", body["instructions"])
    items = body["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    turn: List[Json] = []
    for item in items:
        if item.get("role") == "assistant" or _kind(item) in _OF_THE_ASSISTANT:
            turn.append(item)
            continue
        if turn:
            yield _assistant(turn)
            turn = []
        yield _message(item)
    if turn:
        yield _assistant(turn)


_OF_THE_ASSISTANT = ("function_call", "reasoning")


def _kind(item: Json) -> str:
    return str(item.get("type") or "message")


def _message(item: Json) -> Message:
    if _kind(item) == "function_call_output":
        return Message("tool", _content(item["output"]), tool_call_id=item["call_id"])
    if _kind(item) != "message":
        raise ValueError(f"an item of type {_kind(item)!r}")
    role: Any = "system" if item["role"] == "developer" else item["role"]
    return Message(role, _content(item["content"]))


def _content(content: Union[str, List[Json]]) -> Union[str, Tuple[Part, ...]]:
    return content if isinstance(content, str) else tuple(map(_part, content))


def _part(value: Json) -> Part:
    kind = value["type"]
    if kind == "input_text":
        return Part.text(value["text"])
    if kind == "input_image":
        return Part.image(value["image_url"])
    if kind == "input_file":
        return Part.file(value.get("file_url") or value["file_data"])
    raise ValueError(f"a part of type {kind!r}")


def _assistant(items: List[Json]) -> Message:
    """Return the one message that the items of a turn are."""
    text, refusal, thoughts, made = "", "", [], []
    for item in items:
        if _kind(item) == "function_call":
            call = ToolCall(item["call_id"], item["name"], arguments=item["arguments"])
            made.append(call)
        elif _kind(item) == "reasoning":
            thoughts += [part["text"] for part in item["summary"]]
        elif isinstance(item["content"], str):
            text += item["content"]
        else:
            text += "".join(part.get("text", "") for part in item["content"])
            refusal += "".join(part.get("refusal", "") for part in item["content"])
    return Message(
        "assistant",
        text,
        tool_calls=tuple(made),
        refusal=refusal or None,
        reasoning=Reasoning("\n\n".join(thoughts)) if thoughts else None,
    )


def _tool(value: Json) -> ToolDefinition:
    return ToolDefinition(
        value["name"],
        value.get("description") or "",
        parameters=Schema(value.get("parameters") or {"type": "object"}),
        strict=bool(value.get("strict", True)),
    )


def _choice(value: Any) -> Union[str, Dict[str, str], None]:
    if isinstance(value, dict):
        return {"tool": value["name"]}
    return value  # type: ignore[no-any-return]  # Request checks it


def encode_responses(response: Response, body: Json) -> Json:
    """Return the body that says *response*."""
    writer = _Writer(body)
    for chunk in split(response):
        list(writer.write(chunk))
    return writer.response(response.finish_reason)


def encode_responses_events(chunks: Iterable[Chunk], body: Json) -> Iterator[bytes]:
    """Yield the events of a stream that says *chunks*.

    Chunks without a finish reason make a stream without its end, as a host that
    breaks off would send it.
    """
    writer = _Writer(body)
    for number, event in enumerate(writer.events(chunks)):
        event["sequence_number"] = number
        data = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
        yield b"event: %b\ndata: %b\n\n" % (event["type"].encode(), data)


def encode_responses_error(error: AeyeError, status: int) -> Json:
    """Return the body that tells of *error*."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    code = error.code if isinstance(error, StatusError) else None
    said: Json = {"message": error.message, "type": kind, "param": None, "code": code}
    return {"error": said}


@dataclass(frozen=True)
class _Form:
    """How one kind of text is written."""

    # The type of the item it stands in, the list of parts there, and an empty part.
    item: str
    parts: str
    part: Json
    # The part's key for the text, and the names of the events of both.
    key: str
    event: str
    part_event: str
    # What the events of the text have besides.
    besides: Tuple[Tuple[str, Any], ...] = ()


_TEXT = _Form(
    "message",
    "content",
    {"type": "output_text", "text": "", "annotations": [], "logprobs": []},
    key="text",
    event="output_text",
    part_event="content_part",
    besides=(("logprobs", []),),
)
_REFUSAL = _Form(
    "message",
    "content",
    {"type": "refusal", "refusal": ""},
    key="refusal",
    event="refusal",
    part_event="content_part",
)
_THOUGHT = _Form(
    "reasoning",
    "summary",
    {"type": "summary_text", "text": ""},
    key="text",
    event="reasoning_summary_text",
    part_event="reasoning_summary_part",
)


@dataclass
class _Open:
    """An output item that is being written: text of one form, or a call."""

    place: int
    item: Json
    form: Optional[_Form] = None
    done: bool = False

    def event(self, kind: str, **said: Any) -> Json:
        """Return an event about what is in the item."""
        about: Json = {"item_id": self.item["id"], "output_index": self.place}
        if self.form is not None:
            about["summary_index" if self.form is _THOUGHT else "content_index"] = 0
        return {"type": f"response.{kind}", **about, **said}

    def item_event(self, kind: str) -> Json:
        """Return an event that tells of the item as it is now."""
        item = json.loads(json.dumps(self.item))
        kind = f"response.output_item.{kind}"
        return {"type": kind, "output_index": self.place, "item": item}

    def complete(self) -> None:
        self.done = True
        if "status" in self.item:
            self.item["status"] = "completed"


@dataclass
class _Writer:
    """Writes chunks as output items, and tells of it in events."""

    body: Json
    _items: List[_Open] = field(default_factory=list)
    _calls: Dict[str, _Open] = field(default_factory=dict)
    _collector: Collector = field(default_factory=Collector)
    _model: Optional[str] = None

    def events(self, chunks: Iterable[Chunk]) -> Iterator[Json]:
        """Yield the events of a stream; without a finish reason it has no end."""
        for kind in ("created", "in_progress"):
            yield {"type": f"response.{kind}", "response": self.response(None)}
        for chunk in chunks:
            yield from self.write(chunk)
        finish = self._collector.finish_reason
        if finish is None:
            return
        for entry in self._items:
            yield from self._end(entry)
        response = self.response(finish)
        yield {"type": f"response.{response['status']}", "response": response}

    def write(self, given: Chunk) -> Iterator[Json]:
        """Take a chunk in; yield the events that tell of it."""
        if given.restart:
            raise ValueError("what was sent cannot be taken back here")
        chunk = self._collector.add(given)
        self._model = chunk.model or self._model
        thought = "" if chunk.reasoning is None else chunk.reasoning.text
        for form, text in (
            (_THOUGHT, thought),
            (_TEXT, chunk.content),
            (_REFUSAL, chunk.refusal),
        ):
            if text:
                yield from self._say(form, text)
        piece = chunk.tool_call_arguments
        if chunk.tool_call_named is not None:
            yield from self._call(chunk.tool_call_named)
        if piece is not None:
            before = ""
            if piece.mode == "append" and piece.id in self._calls:
                before = self._calls[piece.id].item["arguments"]
            text = before + piece.arguments
            yield from self._call(ToolCall(piece.id, piece.name, arguments=text))
        if chunk.tool_call is not None:
            yield from self._call(chunk.tool_call)
            yield from self._end(self._calls[chunk.tool_call.id])

    def response(self, finish: Optional[str]) -> Json:
        """Return the response as it is; *finish* is None while it is being made."""
        reason = _CUT.get(finish or "")
        status = "completed" if reason is None else "incomplete"
        made: Json = {
            "id": "resp_local",
            "object": "response",
            "created_at": 0,
            "status": "in_progress" if finish is None else status,
            "error": None,
            "incomplete_details": None if reason is None else {"reason": reason},
            "model": self._model or self.body.get("model") or "local",
            "output": [],
            "usage": None,
            **{key: self.body.get(key, value) for key, value in _REPEATED.items()},
        }
        if finish is not None:
            for entry in self._items:
                entry.complete()
            made["output"] = [entry.item for entry in self._items]
            made["usage"] = _usage(self._collector.usage or Usage())
        return made

    def _say(self, form: _Form, text: str) -> Iterator[Json]:
        """Write text, into the item that is open if it is of the same form."""
        entry = self._items[-1] if self._items else None
        if entry is None or entry.done or entry.form is not form:
            yield from self._end_text()
            entry = yield from self._begin(form)
        entry.item[form.parts][0][form.key] += text
        yield entry.event(f"{form.event}.delta", delta=text, **dict(form.besides))

    def _begin(self, form: _Form) -> Generator[Json, None, _Open]:
        place = len(self._items)
        if form is _THOUGHT:
            item: Json = {"id": f"rs_{place}", "type": "reasoning", "summary": []}
            if "reasoning.encrypted_content" in (self.body.get("include") or ()):
                item["encrypted_content"] = f"local {place}"
        else:
            item = {"id": f"msg_{place}", "type": "message", "role": "assistant"}
            item.update(status="in_progress", content=[])
        entry = _Open(place, item, form)
        self._items.append(entry)
        yield entry.item_event("added")
        item[form.parts].append(dict(form.part))
        yield entry.event(f"{form.part_event}.added", part=form.part)
        return entry

    def _call(self, call: ToolCall) -> Iterator[Json]:
        """Send of *call* what was not sent yet."""
        if call.id not in self._calls:
            yield from self._end_text()
            place = len(self._items)
            item = {"id": f"fc_{place}", "type": "function_call", "call_id": call.id}
            item.update(name=call.name, arguments="", status="in_progress")
            entry = self._calls[call.id] = _Open(place, item)
            self._items.append(entry)
            yield entry.item_event("added")
        entry = self._calls[call.id]
        before = entry.item["arguments"]
        if not call.arguments.startswith(before):
            raise ValueError("what was sent of a call's arguments cannot be replaced")
        entry.item["arguments"] = call.arguments
        rest = call.arguments[len(before) :]
        if rest:
            yield entry.event("function_call_arguments.delta", delta=rest)

    def _end_text(self) -> Iterator[Json]:
        """Complete the text that is open; calls may be made side by side."""
        last = self._items[-1] if self._items else None
        if last is not None and last.form is not None:
            yield from self._end(last)

    def _end(self, entry: _Open) -> Iterator[Json]:
        """Tell that an item is complete, if that was not told."""
        if entry.done:
            return
        entry.complete()
        form = entry.form
        if form is None:
            said = {key: entry.item[key] for key in ("name", "arguments")}
            yield entry.event("function_call_arguments.done", **said)
        else:
            part = entry.item[form.parts][0]
            said = {form.key: part[form.key], **dict(form.besides)}
            yield entry.event(f"{form.event}.done", **said)
            yield entry.event(f"{form.part_event}.done", part=part)
        yield entry.item_event("done")


_CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}


def _usage(usage: Usage) -> Json:
    thought = usage.reasoning.output if usage.reasoning else 0
    written = usage.text.cache_write if usage.text else 0
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input_tokens,
            "cache_write_tokens": written or 0,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": thought or 0},
        "total_tokens": usage.total_tokens,
    }
