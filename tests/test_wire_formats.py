"""Rules that hold for all four formats: ends, hostile answers, nothing dropped."""

from __future__ import annotations

import copy
import json
from typing import Any, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.context import Context
from aeye.errors import (
    AeyeError,
    CapabilityError,
    ProtocolError,
    StreamCutError,
    TruncatedError,
)
from aeye.message import Message, Part
from aeye.prompt import Prompt
from aeye.provider import WIRES
from aeye.request import Request, ToolDefinition
from aeye.response import Response, join
from aeye.schema import Schema
from aeye.testing import Recorded, ReplayTransport
from aeye.wire import ModelFacts

MODELS = {
    "chat": "openai:gpt-4o",
    "responses": "openai:gpt-5",
    "messages": "anthropic:claude-opus-5",
    "gemini": "google:gemini-3.6-flash",
}
FORMATS = sorted(MODELS)
HI = Message("user", "Hi")
PLACE = Schema({"type": "object", "properties": {"city": {"type": "string"}}})
TAKES_ALL = ModelFacts(
    echoes=frozenset(
        (
            *("reasoning_details", "reasoning_content", "extra_content"),
            *("thoughtSignature", "<think>", "refusal"),
        )
    )
)
ASK = Request((HI,), tools=(ToolDefinition("weather", "Weather.", PLACE),))

# Answers with a bit of everything: a thought, text, two calls, and what they cost.

ARGUMENTS = '{"city": "Oslo"}'
CHAT_CALLS = [
    {
        "index": n,
        "id": f"c{n}",
        "type": "function",
        "function": {"name": "weather", "arguments": ARGUMENTS},
        "extra_content": {"google": {"thought_signature": "s"}},
    }
    for n in range(2)
]
CHAT_USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 5,
    "total_tokens": 14,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 1},
    "cost": 0.5,
}
CHAT_THOUGHT = {
    "reasoning_content": "Hm.",
    "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "index": 0}],
}
CHAT_WHOLE = {
    "id": "x",
    "model": "m-1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "I see.",
                "refusal": None,
                "tool_calls": CHAT_CALLS,
                "annotations": [{"type": "url_citation"}],
                **CHAT_THOUGHT,
            },
        }
    ],
    "usage": CHAT_USAGE,
}


def chat_chunk(finish: Any = None, **delta: Any) -> Any:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "model": "m-1", "choices": [choice]}


CHAT_EVENTS = [
    chat_chunk(role="assistant", content=""),
    chat_chunk(**CHAT_THOUGHT),
    chat_chunk(content="I see."),
    *(chat_chunk(tool_calls=[call]) for call in CHAT_CALLS),
    chat_chunk("tool_calls"),
    {"choices": [], "usage": CHAT_USAGE},
]

ITEMS: list[Any] = [
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
        "encrypted_content": "s",
    },
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "output_text", "text": "I see.", "annotations": [{"type": "u"}]}
        ],
    },
    *(
        {
            "id": f"fc_{n}",
            "type": "function_call",
            "call_id": f"c{n}",
            "name": "weather",
            "arguments": ARGUMENTS,
        }
        for n in range(2)
    ),
]
RESPONSES_WHOLE: Any = {
    "id": "resp_1",
    "status": "completed",
    "model": "m-1",
    "error": None,
    "incomplete_details": None,
    "output": ITEMS,
    "usage": {
        "input_tokens": 9,
        "output_tokens": 5,
        "total_tokens": 14,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 1},
    },
}


def item_event(kind: str, place: int, **said: Any) -> Any:
    about = {"output_index": place, "item_id": ITEMS[place]["id"]}
    return {"type": f"response.{kind}", **about, **said}


RESPONSES_EVENTS = [
    {"type": "response.created", "response": {"id": "resp_1", "status": "queued"}},
    item_event("output_item.added", 0, item={**ITEMS[0], "summary": [], "content": []}),
    item_event("reasoning_summary_text.delta", 0, summary_index=0, delta="Hm."),
    item_event("output_item.done", 0, item=ITEMS[0]),
    item_event("output_item.added", 1, item={**ITEMS[1], "content": []}),
    item_event("output_text.delta", 1, content_index=0, delta="I see."),
    item_event("output_item.done", 1, item=ITEMS[1]),
    item_event("output_item.added", 2, item={**ITEMS[2], "arguments": ""}),
    item_event("function_call_arguments.delta", 2, delta=ARGUMENTS),
    item_event("output_item.done", 2, item=ITEMS[2]),
    item_event("output_item.added", 3, item={**ITEMS[3], "arguments": ""}),
    item_event("output_item.done", 3, item=ITEMS[3]),
    {"type": "response.completed", "response": RESPONSES_WHOLE},
]

USES = [
    {"type": "tool_use", "id": f"c{n}", "name": "weather", "input": {"city": "Oslo"}}
    for n in range(2)
]
MESSAGES_WHOLE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m-1",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "I see.", "citations": None},
        *USES,
    ],
    "stop_reason": "tool_use",
    "stop_details": None,
    "usage": {
        "input_tokens": 5,
        "cache_read_input_tokens": 4,
        "output_tokens": 5,
        "output_tokens_details": {"thinking_tokens": 1},
    },
}


def block_events(index: int, block: Any, **delta: Any) -> Iterator[Any]:
    about = {"index": index}
    yield {"type": "content_block_start", **about, "content_block": block}
    yield {"type": "content_block_delta", **about, "delta": delta}
    yield {"type": "content_block_stop", **about}


MESSAGES_EVENTS = [
    {"type": "message_start", "message": {**MESSAGES_WHOLE, "content": []}},
    {"type": "ping"},
    *block_events(
        0,
        {"type": "thinking", "thinking": "", "signature": "s"},
        type="thinking_delta",
        thinking="Hm.",
    ),
    *block_events(1, {"type": "text", "text": ""}, type="text_delta", text="I see."),
    *(
        event
        for n, use in enumerate(USES, 2)
        for event in block_events(
            n, {**use, "input": {}}, type="input_json_delta", partial_json=ARGUMENTS
        )
    ),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 5},
    },
    {"type": "message_stop"},
]

GEMINI_PARTS = [
    {"text": "Hm.", "thought": True},
    {"text": "I see.", "thoughtSignature": "s"},
    {"functionCall": {"id": "c0", "name": "weather", "args": {"city": "Oslo"}}},
    {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}},
]
GEMINI_USAGE = {
    "promptTokenCount": 9,
    "candidatesTokenCount": 4,
    "thoughtsTokenCount": 1,
    "cachedContentTokenCount": 4,
    "totalTokenCount": 14,
}


def gemini_piece(*parts: Any, **said: Any) -> Any:
    candidate = {"index": 0, "content": {"role": "model", "parts": list(parts)}, **said}
    return {
        "candidates": [candidate],
        "usageMetadata": GEMINI_USAGE,
        "modelVersion": "m-1",
    }


GEMINI_STREAMED = {
    "name": "weather",
    "partialArgs": [{"jsonPath": "$.city", "stringValue": "Oslo"}],
    "willContinue": True,
}
GEMINI_EVENTS = [
    *map(gemini_piece, GEMINI_PARTS[:3]),
    gemini_piece({"functionCall": GEMINI_STREAMED}),
    gemini_piece({"functionCall": {}}),
    gemini_piece({"text": ""}, finishReason="STOP"),
]

WHOLE: dict[str, Any] = {
    "chat": CHAT_WHOLE,
    "responses": RESPONSES_WHOLE,
    "messages": MESSAGES_WHOLE,
    "gemini": gemini_piece(*GEMINI_PARTS, finishReason="STOP"),
}
EVENTS: dict[str, list[Any]] = {
    "chat": CHAT_EVENTS,
    "responses": RESPONSES_EVENTS,
    "messages": MESSAGES_EVENTS,
    "gemini": GEMINI_EVENTS,
}
FAULTS: list[Any] = [
    {"error": {"message": "No.", "type": "t", "code": "c", "param": None}},
    {"error": "No.", "code": "c"},
    {"object": "error", "message": "No.", "code": 422},
    {"detail": [{"loc": ["body", 1], "msg": "No."}]},
    [{"error": {"code": 429, "message": "No.", "status": "S", "details": [{}]}}],
    {"error": {"message": "No.", "metadata": {"raw": '{"error": 1}'}}},
]


def context(format: str, *bodies: bytes, kind: str = "json") -> Context:
    types = {"json": "application/json", "sse": "text/event-stream"}
    headers = {"content-type": types[kind]}
    answers = [Recorded(body, headers=headers) for body in bodies]
    return ReplayTransport(*answers).context(MODELS[format], format=format)


def sse(lines: list[str]) -> bytes:
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def read(format: str, data: bytes, *, streams: bool) -> Response:
    ctx = context(format, data, kind="sse" if streams else "json")
    if streams:
        assert ctx.stream is not None
        return join(ctx.stream(ASK, ctx))
    assert ctx.execute is not None
    return ctx.execute(ASK, ctx)


def done(format: str) -> list[str]:
    return ["[DONE]"] if format == "chat" else []


@pytest.mark.parametrize("format", FORMATS)
def test_samples(format: str) -> None:
    """The answers that are mutated below are good ones, whole and streamed."""
    whole = read(format, json.dumps(WHOLE[format]).encode(), streams=False)
    lines = [json.dumps(event) for event in EVENTS[format]] + done(format)
    streamed = read(format, sse(lines), streams=True)

    for found in (whole, streamed):
        calls = [(call.name, json.loads(call.arguments)) for call in found.tool_calls]
        assert calls == [("weather", {"city": "Oslo"})] * 2
        assert (found.content, found.model) == ("I see.", "m-1")
        assert found.reasoning is not None and "Hm." in found.reasoning.text
        assert found.usage.input_tokens == 9
        assert found.finish_reason == "tool_calls"


# Ends.


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "body", [b"", b"\n", b": ping\n\n", b"data: [DONE]\n\n", b"data:\n\n"]
)
def test_streams_of_nothing(format: str, body: bytes) -> None:
    """A stream that ends, or says that it does, without an answer is cut."""
    with pytest.raises(StreamCutError, match="after 0 characters of text"):
        read(format, body, streams=True)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("body", [b"", b" ", b"null", b"{}", b"[]", b'"x"', b"[1]"])
def test_whole_answers_of_nothing(format: str, body: bytes) -> None:
    """A body with status 200 that holds no answer is an error that shows it."""
    with pytest.raises(ProtocolError, match=r"an (empty )?answer"):
        read(format, body, streams=False)


@pytest.mark.parametrize("format", FORMATS)
def test_done_after_an_answer(format: str) -> None:
    """A gateway's end mark does no harm where a format has another one, or none."""
    lines = [json.dumps(event) for event in EVENTS[format]]
    cut = [json.dumps(event) for event in EVENTS[format][:-1]]

    whole = read(format, sse([*lines, "[DONE]"]), streams=True)
    assert read(format, sse([*lines, *done(format)]), streams=True) == whole
    assert read(format, sse([*cut, "[DONE]"]), streams=True).content == "I see."


NOTED = {
    "chat": ("model_length", "window was full"),
    "responses": ("max_tool_calls", "max_tool_calls"),
    "messages": ("pause_turn", "goes on when its message is sent back"),
    "gemini": ("CONTINUATION", "CONTINUATION"),
}


def cut_answer(format: str, word: str) -> Any:
    """Return an answer of text alone that was cut, for the reason *word*."""
    if format == "chat":
        choice = {"message": {"content": "So"}, "finish_reason": word}
        return {"choices": [choice]}
    if format == "messages":
        return {"content": [{"type": "text", "text": "So"}], "stop_reason": word}
    if format == "gemini":
        return gemini_piece({"text": "So"}, finishReason=word)
    return {
        "status": "incomplete",
        "incomplete_details": {"reason": word},
        "output": [ITEMS[1]],
    }


@pytest.mark.parametrize("format", FORMATS)
def test_answers_cut_by_something_else(format: str) -> None:
    """An answer that no limit of tokens cut says why, and not to raise the limit."""
    word, note = NOTED[format]
    body = json.dumps(cut_answer(format, word)).encode()

    with pytest.raises(TruncatedError, match=note) as caught:
        Prompt("p", "Hi", output_retries=0)({}, context(format, body))
    assert "max_tokens" not in str(caught.value)
    assert caught.value.partial in ("So", "I see.")


@pytest.mark.parametrize(
    ("format", "word"),
    [("chat", "model_length"), ("messages", "model_context_window_exceeded")],
)
def test_answers_cut_by_the_window(format: str, word: str) -> None:
    """Where the vendor says that the window is full, the oldest is forgotten."""
    usage = {"usage": WHOLE[format]["usage"]}
    bodies = [cut_answer(format, word), cut_answer(format, "stop")]
    ctx = context(format, *(json.dumps({**body, **usage}).encode() for body in bodies))
    history = (Message("user", "One"), Message("assistant", "1"))
    ctx = ctx.replace(messages=(*history, Message("user", "Two")))
    prompt = Prompt("p", "Count.", exclude_messages=False)

    told = list(prompt.run({}, ctx))

    sent = [event.request.messages for event in told if event.type == "request"]
    assert [[m.text for m in messages] for messages in sent] == [
        ["Count.", "One", "1", "Two"],
        ["Count.", "Two"],
    ]
    assert told[-1].output == "So"


def test_answers_that_begin_anew() -> None:
    """Who reads along is told that a thought does not count; the run has the second."""
    begun = [
        {"type": "message_start", "message": {}},
        *block_events(
            0,
            {"type": "thinking", "thinking": ""},
            type="thinking_delta",
            thinking="Hm.",
        ),
    ]
    text = block_events(1, {"type": "text", "text": ""}, type="text_delta", text="Yes.")
    ends = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}]
    lines = [json.dumps(event) for event in [*begun, *begun, *text, *ends]]
    ctx = context("messages", sse(lines), kind="sse")

    told = list(Prompt("p", "Hi").run({}, ctx))

    types = [
        event.type for event in told if "reas" in event.type or "text" in event.type
    ]
    assert types[:3] == ["reason_partial", "text_reset", "reason_partial"]
    thoughts = [event for event in told if event.type in ("reason_partial", "reason")]
    assert [event.reasoning.text for event in thoughts] == ["Hm.", "Hm.", "Hm."]
    assert told[-1].type == "complete" and told[-1].output == "Yes."


# What has no place.


@pytest.mark.parametrize("format", FORMATS)
def test_pictures_of_the_assistant(format: str) -> None:
    """What an assistant showed is sent, or refused; it is not left out in silence."""
    picture = Part.image("https://example.com/a.png")
    shown = Message("assistant", (Part.text("Look:"), picture))
    wire = WIRES[format]
    request = Request((HI, shown, HI), "m")

    if format == "gemini":
        assert "a.png" in json.dumps(wire.encode(request, ModelFacts(), False))
        return
    with pytest.raises(CapabilityError, match="nothing but text"):
        wire.encode(request, ModelFacts(), False)


@pytest.mark.parametrize("format", FORMATS)
def test_names_of_speakers(format: str) -> None:
    """Who speaks is said where there is a place for it, else it is refused."""
    request = Request((Message("user", "Hi", name="Ada"),), "m")
    wire = WIRES[format]

    if format == "chat":
        assert "Ada" in json.dumps(wire.encode(request, ModelFacts(), False))
        return
    with pytest.raises(CapabilityError, match="no place for the name 'Ada'"):
        wire.encode(request, ModelFacts(), False)


@pytest.mark.parametrize("marks", [4, 5])
def test_marks_for_the_cache(marks: int) -> None:
    """More marks than the vendor takes are refused before anything is sent."""
    ctx = context("messages", json.dumps(WHOLE["messages"]).encode())
    messages = tuple(Message("user", str(n), cache={}) for n in range(marks))
    assert ctx.prepare is not None

    if marks == 4:
        assert ctx.prepare(Request(messages), ctx).messages == messages
        return
    with pytest.raises(CapabilityError, match=r"at most 4 messages .* not 5"):
        ctx.prepare(Request(messages), ctx)


# Hostile answers.

# Stand for what JSON can say and ``json.dumps`` cannot, or not everywhere.
RAW = {
    "@digits": "9" * 5000,
    "@deep": "[" * 10_000 + "]" * 10_000,
    "@deeper": '{"a":' * 400 + "1" + "}" * 400,
    "@half": '"\\ud83d"',
    "@nan": "NaN",
    "@minus": "-Infinity",
    "@huge": "1e999",
    "@long": json.dumps("x" * 100_000),
    "@twice": '{"id": 1, "id": "c9", "name": 3, "name": "weather"}',
}
VALUES: list[Any] = [
    *RAW,
    *(None, True, False, 0, 1, 7, -1, 1.5, 1e18, 10**30, -(10**30)),
    *("", " ", "x", "weather", "{", "{}", "[1]", '{"city": 1}', "null"),
    *([], {}, [[]], [None], [{}], {"": ""}, {"type": "x"}, {"error": {}}),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in *value*."""
    yield path
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, item in pairs:
        yield from places(item, (*path, key))


def mutated(draw: Any, value: Any) -> Any:
    """Return *value* with some of what is in it replaced, dropped or doubled."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from([p for p in places(value) if p] or [(0,)]))
        node = value
        for key in path:
            node = node[key]
        if not node:
            continue
        how = draw(st.sampled_from(["set", "set", "set", "drop", "double", "swap"]))
        if how == "set":
            node[last] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        elif how == "drop":
            del node[last]
        elif isinstance(node, list):
            other = draw(st.integers(0, len(node) - 1))
            if how == "double":
                node.insert(other, node[last])
            else:
                node[last], node[other] = node[other], node[last]
    return value


def written(value: Any) -> str:
    text = json.dumps(value)
    for word, raw in RAW.items():
        text = text.replace(f'"{word}"', raw)
    return text


def check_sound(format: str, response: Response) -> None:
    """What was read can be printed, kept, loaded again and sent back."""
    message = response.to_message()
    kept = json.dumps(message.to_dict(), ensure_ascii=False).encode()
    assert Message.from_dict(json.loads(kept)) == message
    assert len({call.id for call in message.tool_calls}) == len(message.tool_calls)
    replies = [
        Message("tool", "21", tool_call_id=call.id) for call in message.tool_calls
    ]
    request = Request((HI, message, *replies), "m")
    body = WIRES[format].encode(request, ModelFacts(), False)
    assert json.dumps(body, allow_nan=False)


def check_outcome(format: str, data: bytes, *, streams: bool) -> None:
    try:
        response = read(format, data, streams=streams)
    except AeyeError as exc:
        assert len(str(exc)) < 5000
        return
    check_sound(format, response)


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_hostile_answers(format: str, data: st.DataObject) -> None:
    """Whatever stands in an answer, it is read or it is an error of ours."""
    value = mutated(data.draw, WHOLE[format])

    check_outcome(format, written(value).encode(), streams=False)


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_hostile_streams(format: str, data: st.DataObject) -> None:
    """Whatever stands in a stream, in whatever order, it is read or it is an error."""
    events = mutated(data.draw, EVENTS[format])
    lines = [written(event) for event in events] + done(format)

    check_outcome(format, sse(lines), streams=True)


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data(), status=st.sampled_from([400, 401, 404, 422, 429, 500, 529]))
def test_hostile_errors(format: str, data: st.DataObject, status: int) -> None:
    """Whatever stands in an error's body, there is an error with a message."""
    body = written(mutated(data.draw, data.draw(st.sampled_from(FAULTS))))
    ctx = ReplayTransport(Recorded(body.encode(), status=status)).context(
        MODELS[format], format=format
    )
    assert ctx.execute is not None

    with pytest.raises(AeyeError) as caught:
        ctx.execute(ASK, ctx)
    assert getattr(caught.value, "status", status) == status
    assert 0 < len(str(caught.value)) < 5000


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_hostile_histories(format: str, data: st.DataObject) -> None:
    """A vendor's own items that were kept and have suffered are sent, or left out."""
    body = json.dumps(WHOLE[format]).encode()
    kept = read(format, body, streams=False).to_message().to_dict()
    native = mutated(data.draw, kept["native"])
    message = Message.from_dict({**kept, "native": native})
    replies = [Message("tool", "21", tool_call_id=c.id) for c in message.tool_calls]

    for facts in (ModelFacts(), TAKES_ALL):
        request = Request((HI, message, *replies), "m")
        sent = WIRES[format].encode(request, facts, False)
        assert "weather" in json.dumps(sent)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("word", sorted(RAW))
def test_every_place(format: str, word: str) -> None:
    """What JSON should not hold does no harm wherever it stands."""
    for path in places(WHOLE[format]):
        value = copy.deepcopy(WHOLE[format])
        node: Any = value
        for key in path[:-1]:
            node = node[key]
        if path:
            node[path[-1]] = word
        else:
            value = word
        check_outcome(format, written(value).encode(), streams=False)


# Wordings.


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8 tokens",
        "Your input exceeds the context window of this model",
        "Please reduce the length of the messages or completion",
        "This model's maximum prompt length is 8 but the request has 9",
        "[input_too_large] the prompt of 9 tokens exceeds budget",
        "Prompt contains 9 tokens, too large for model with 8 maximum context length",
        "the request (9 tokens) exceeds the available context size (8 tokens)",
        "The number of tokens to keep is greater than the context length",
        "Invalid request: Your request exceeded model token limit: 8",
        "invalid params, context window exceeds limit",
        "Input is longer than the model's context length",
        "Range of input length should be [1, 8]",
        "Please reduce the length. Current length is 9 while limit is 8",
        "prompt token count of 9 exceeds the limit of 8",
        "input length and `max_tokens` exceed context limit: 9 + 1 > 8",
        "prompt is too long: 9 tokens > 8 maximum",
    ],
)
def test_wordings_of_an_overflow(words: str) -> None:
    """However a host says that a request does not fit, it is heard."""
    for body in (
        {"error": {"message": words}},
        {"object": "error", "message": words},
        {"error": {"message": "Provider error", "metadata": {"raw": words}}},
    ):
        for format in FORMATS:
            fault = WIRES[format].decode_error(400, {}, body)
            assert fault.kind == "context_overflow"


@pytest.mark.parametrize(
    ("status", "code", "words", "kind"),
    [
        (
            429,
            None,
            "Request too large, maximum context length, tokens per min",
            "rate",
        ),
        (413, "rate_limit_exceeded", "Limit 8 tokens per min, requested 9", "rate"),
        (400, "string_above_max_length", "Expected a maximum length 8", "other"),
        (400, "json_validate_failed", "Failed to generate JSON", "other"),
        (400, "tool_use_failed", "Failed to call a function", "other"),
        (429, "insufficient_quota", "You exceeded your current quota", "quota"),
        (400, "content_filter", "The response was filtered", "content_filter"),
    ],
)
def test_wordings_of_no_overflow(
    status: int, code: str | None, words: str, kind: str
) -> None:
    """A limit on something else is not taken for the end of the window."""
    body = {"error": {"message": words, "code": code}}

    assert WIRES["chat"].decode_error(status, {}, body).kind.startswith(kind)
