"""The Anthropic Messages codec: requests out, answers and streams in, errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.delivery import apply_plan
from aeye.errors import (
    AeyeError,
    CapabilityError,
    ProtocolError,
    RateLimitError,
    ServerError,
    StreamCutError,
)
from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import Chunk, Response, ToolCallDelta, join
from aeye.schema import Schema
from aeye.usage import Usage
from aeye.vendor import ANTHROPIC, find_facts
from aeye.wire import ModelFacts
from aeye.wire_anthropic import MESSAGES

FACTS = ModelFacts()
CLAUDE = find_facts(ANTHROPIC, "claude-opus-5", "messages")
OLDER = find_facts(ANTHROPIC, "claude-sonnet-4-5", "messages")
HI = Message("user", "Hi")
PLACE = Schema({"type": "object", "properties": {"city": {"type": "string"}}})
TOOL = ToolDefinition("weather", "Weather.", parameters=PLACE)
CALL = ToolCall("toolu_1", "weather", arguments='{"city": "Paris"}')
USE = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "weather",
    "input": {"city": "Paris"},
}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}


def encode(
    *messages: Message, facts: ModelFacts = FACTS, stream: bool = False, **fields: Any
) -> dict[str, Any]:
    """Plan and encode, and check that the body is JSON."""
    request = apply_plan(Request(messages or (HI,), model="m", **fields), facts)
    body = MESSAGES.encode(request, facts, stream)
    assert json.loads(json.dumps(body, allow_nan=False)) == body
    return body


def turns(*messages: Message, facts: ModelFacts = FACTS) -> Any:
    return encode(*messages, facts=facts)["messages"]


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def native(*items: Any) -> dict[str, Any]:
    return {"format": "messages", "items": list(items)}


# Requests.


def test_plain_request() -> None:
    """Text goes out as text; the room for the answer is always said."""
    body = encode(Message("system", "Be brief."), HI)

    assert body == {
        "model": "m",
        "max_tokens": 4096,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hi"}],
    }
    assert encode(stream=True)["stream"] is True
    assert MESSAGES.path("m", True) == MESSAGES.path("m", False) == "/v1/messages"
    assert MESSAGES.headers(Request(), FACTS) == {"anthropic-version": "2023-06-01"}


def test_room_for_the_answer() -> None:
    """It is what was asked, else what the model gives, up to a bound."""
    assert encode(max_tokens=7)["max_tokens"] == 7
    assert encode(facts=ModelFacts(max_output_tokens=8192))["max_tokens"] == 8192
    assert encode(facts=CLAUDE)["max_tokens"] == 32_000
    thinking = encode(facts=OLDER, reason=Reason(None, 20_000))
    assert thinking["max_tokens"] == 52_000


def test_system_messages_have_one_place() -> None:
    """All system messages are said at the top; a mark makes blocks of them."""
    body = encode(Message("system", "A"), HI, Message("system", "B"))
    marked = encode(
        Message("system", "A"),
        Message("system", "B", cache={"ttl": "1h"}),
        HI,
        facts=CLAUDE,
    )

    assert body["system"] == "A\n\nB"
    assert body["messages"] == [{"role": "user", "content": "Hi"}]
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert marked["system"] == [text("A"), text("B", cache_control=mark)]


def test_replies_to_one_turn_are_one_message() -> None:
    """Replies, and what the user says then, are one message: replies first."""
    calls = (CALL, ToolCall("b.2", "weather", arguments="{"))

    found = turns(
        HI,
        Message("assistant", "Let me see.", tool_calls=calls),
        Message("tool", "21", tool_call_id="toolu_1"),
        Message("tool", "", tool_call_id="b.2"),
        Message("user", "And?"),
    )

    assert found == [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": [
                text("Let me see."),
                USE,
                # An id has letters, digits, _ and - only; input is an object.
                {"type": "tool_use", "id": "b_2", "name": "weather", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "21"},
                {"type": "tool_result", "tool_use_id": "b_2", "content": ""},
                text("And?"),
            ],
        },
    ]


def test_reply_without_a_call() -> None:
    """A reply has to say what it replies to."""
    with pytest.raises(ValueError, match="needs a tool_call_id"):
        encode(HI, Message("tool", "21"))


def test_empty_turns_are_left_out() -> None:
    """The vendor refuses empty text; a refusal stands for the text it replaced."""
    found = turns(
        HI,
        Message("assistant", " \n"),
        Message("user", (Part.text(""), Part.text("there"))),
        Message("assistant", "", refusal="No."),
    )

    assert found == [
        {"role": "user", "content": [text("Hi"), text("there")]},
        {"role": "assistant", "content": "No."},
    ]


def test_parts() -> None:
    """Pictures and documents go as bytes or by address, text files as text."""
    found = turns(
        Message(
            "user",
            (
                Part.text("Look:"),
                Part.image("data:image/png;base64,aWNvbg=="),
                Part.image("https://x/y.png"),
                Part.file("data:application/pdf;name=a%20b.pdf;base64,JVBERg=="),
                Part.file("data:text/csv;base64,YSxi"),
                Part.file("data:image/gif;base64,R0lG"),
                Part.file("https://x/y.pdf"),
            ),
        )
    )

    png = {"type": "base64", "media_type": "image/png", "data": "aWNvbg=="}
    gif = {"type": "base64", "media_type": "image/gif", "data": "R0lG"}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
    csv = {"type": "text", "media_type": "text/plain", "data": "a,b"}
    assert found[0]["content"] == [
        text("Look:"),
        {"type": "image", "source": png},
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        {"type": "document", "source": pdf, "title": "a b.pdf"},
        {"type": "document", "source": csv},
        {"type": "image", "source": gif},
        {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
    ]


def test_parts_of_a_reply() -> None:
    """A tool may reply with pictures."""
    picture = Part.image("data:image/png;base64,aWNvbg==")

    found = turns(
        HI,
        Message("assistant", tool_calls=(CALL,)),
        Message("tool", (Part.text("Here:"), picture), tool_call_id="toolu_1"),
    )

    content = found[2]["content"][0]["content"]
    assert [block["type"] for block in content] == ["text", "image"]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Message("system", (Part.image("https://x/y.png"),)), "role 'system'"),
        (Message("user", (Part.audio("data:audio/wav;base64,UklG"),)), "no audio"),
        (Message("user", (Part.image("data:image/bmp;base64,Qk0="),)), "image/bmp"),
        (Message("user", (Part.file("data:x/y;base64,Qk0="),)), "PDF or text"),
    ],
)
def test_parts_without_a_place(message: Message, words: str) -> None:
    """What the vendor has no place for is an error, not left out."""
    with pytest.raises(CapabilityError, match=words):
        encode(message)


def test_tools_and_their_choice() -> None:
    """Tools go out in their dialect; one at a time is part of the choice."""
    body = encode(facts=CLAUDE, tools=(TOOL,))
    plain = encode(facts=CLAUDE, tools=(replace(TOOL, strict=False, description=""),))

    assert body["tools"] == [
        {
            "name": "weather",
            "description": "Weather.",
            "input_schema": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": [],
                "additionalProperties": False,
            },
            "strict": True,
        }
    ]
    assert "tool_choice" not in body
    assert set(plain["tools"][0]) == {"name", "input_schema"}


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": {"tool": "weather"}}, {"type": "tool", "name": "weather"}),
        ({"tool_choice": "none", "tools_one_at_a_time": True}, {"type": "none"}),
        (
            {"tools_one_at_a_time": True},
            {"type": "auto", "disable_parallel_tool_use": True},
        ),
        (
            {"tool_choice": "required", "tools_one_at_a_time": True},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
    ],
)
def test_tool_choice(fields: Any, choice: Any) -> None:
    """Each choice has its word."""
    assert encode(tools=(TOOL,), **fields)["tool_choice"] == choice


def test_history_with_calls_and_no_tools() -> None:
    """Tools that were withdrawn are still defined, and cannot be called."""
    body = encode(
        HI,
        Message("assistant", tool_calls=(CALL, replace(CALL, id="toolu_2"))),
        Message("tool", "21", tool_call_id="toolu_1"),
        Message("tool", "22", tool_call_id="toolu_2"),
    )

    assert body["tools"] == [{"name": "weather", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}


def test_structured_output() -> None:
    """A schema goes out as output_config, beside the effort."""
    output = ResponseFormat(PLACE)
    body = encode(facts=CLAUDE, response_format=output, reason=Reason("high"))
    worded = replace(output, schema_delivery="prompt")

    schema = body["output_config"]["format"].pop("schema")
    assert body["output_config"] == {
        "format": {"type": "json_schema"},
        "effort": "high",
    }
    assert schema["additionalProperties"] is False
    assert "output_config" not in encode(facts=CLAUDE, response_format=worded)


def test_parameters() -> None:
    """Other parameters have their names; extra goes over all."""
    body = encode(
        temperature=0.5,
        top_p=0.9,
        stop=("END",),
        user_key="u1",
        extra={"metadata": {"trace": "t"}, "top_k": 5, "max_tokens": 9},
    )

    assert body == {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u1", "trace": "t"},
        "top_k": 5,
    }
    assert "metadata" not in encode(user_key="u1", facts=ModelFacts(user_key=None))


@pytest.mark.parametrize(
    ("model", "reason", "thinking", "effort"),
    [
        ("claude-opus-5", Reason(), None, None),
        ("claude-opus-5", Reason("none"), {"type": "disabled"}, None),
        (
            "claude-opus-5",
            Reason("max"),
            {"type": "adaptive", "display": "summarized"},
            "max",
        ),
        ("claude-sonnet-5-5", Reason("none"), {"type": "between_tools"}, None),
        (
            "claude-sonnet-4-5",
            Reason("high"),
            {"type": "enabled", "budget_tokens": 16_000},
            None,
        ),
        (
            "claude-sonnet-4-5",
            Reason("low"),
            {"type": "enabled", "budget_tokens": 2048},
            None,
        ),
        (
            "claude-sonnet-4-5",
            Reason(None, 5000),
            {"type": "enabled", "budget_tokens": 5000},
            None,
        ),
    ],
)
def test_thinking(model: str, reason: Reason, thinking: Any, effort: Any) -> None:
    """How much to think is said in the form that the model knows."""
    facts = find_facts(ANTHROPIC, model, "messages")

    body = encode(facts=facts, reason=reason)

    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort


@pytest.mark.parametrize(
    ("facts", "fields", "words"),
    [
        (CLAUDE, {"reason": Reason("low", 2000)}, "not both"),
        (CLAUDE, {"reason": Reason(None, 2000)}, "no number of reasoning tokens"),
        (OLDER, {"reason": Reason(None, 500)}, "at least 1024"),
        (OLDER, {"reason": Reason(None, 2000), "max_tokens": 2000}, "fewer than"),
        (OLDER, {"reason": Reason("low"), "max_tokens": 1000}, "max_tokens"),
        (
            OLDER,
            {"reason": Reason("low"), "tools": (TOOL,), "tool_choice": "required"},
            "while it thinks",
        ),
    ],
)
def test_thinking_that_cannot_be(facts: ModelFacts, fields: Any, words: str) -> None:
    """Contradictions and limits are told, not bent."""
    with pytest.raises(CapabilityError, match=words):
        encode(facts=facts, **fields)


def test_cache_mark_stands_on_the_last_block() -> None:
    """A mark stands on a message's last block, but never on a thought."""
    turn = Message(
        "assistant",
        "Yes.",
        cache={},
        native=native(text("Yes."), THOUGHT),
    )
    parts = Message("user", (Part.text("a"), Part.text("b")), cache={"ttl": "1h"})
    mark = {"type": "ephemeral"}

    found = turns(parts, turn, facts=CLAUDE)

    assert found[0]["content"] == [
        text("a"),
        text("b", cache_control={**mark, "ttl": "1h"}),
    ]
    assert found[1]["content"] == [text("Yes.", cache_control=mark), THOUGHT]
    assert turns(parts)[0]["content"] == [text("a"), text("b")]
    only = Message("assistant", "", cache={}, native=native(THOUGHT))
    assert turns(HI, only, facts=CLAUDE)[1]["content"] == [THOUGHT]


def test_own_blocks_are_sent_back_unchanged() -> None:
    """Thoughts and the vendor's tools go back as they came, in their order."""
    search = {"type": "server_tool_use", "id": "s1", "name": "web", "input": {"q": 1}}
    blocks = [THOUGHT, text("Let me"), search, text(" see."), USE]
    message = Message(
        "assistant", "Let me see.", tool_calls=(CALL,), native=native(*blocks)
    )

    found = turns(HI, message)

    assert found[1]["content"] == blocks


@pytest.mark.parametrize(
    "message",
    [
        Message("assistant", "Other.", native=native(THOUGHT, text("Yes."))),
        Message("assistant", "Other.", native=native(text("Other."), USE)),
        Message("assistant", "Other.", native={"format": "messages"}),
        Message(
            "assistant", "Other.", native={"format": "chat", "items": [text("Other.")]}
        ),
    ],
)
def test_blocks_that_say_something_else_are_not_sent(message: Message) -> None:
    """An edited turn, or another vendor's, is made from its fields."""
    assert turns(HI, message)[1] == {"role": "assistant", "content": "Other."}


# Answers.


def answer(*blocks: Any, stop: Any = "end_turn", **body: Any) -> Response:
    said = {"type": "message", "role": "assistant", "model": "claude-x"}
    return MESSAGES.decode(
        {**said, "content": list(blocks), "stop_reason": stop, **body}, FACTS
    )


def test_whole_answer() -> None:
    """Text, thoughts and calls; what the fields cannot say is kept to be sent back."""
    found = answer(
        THOUGHT,
        text("Let me "),
        text("see."),
        USE,
        stop="tool_use",
        id="msg_1",
        stop_sequence=None,
        usage={
            "input_tokens": 10,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "output_tokens": 50,
            "output_tokens_details": {"thinking_tokens": 30},
        },
    )

    assert found == Response(
        "Let me see.",
        (CALL,),
        finish_reason="tool_calls",
        reasoning=Reasoning("Hm."),
        usage=Usage.of(input=130, output=50, cached=100, cache_write=20, reasoning=30),
        model="claude-x",
        extra={"stop_reason": "tool_use", "id": "msg_1"},
        native=native(THOUGHT, text("Let me "), text("see."), USE),
    )


def test_plain_answer_needs_no_blocks() -> None:
    """What the fields say alone is not kept twice."""
    assert answer(text("Yes."), USE, stop="tool_use").native is None
    assert answer(text("Yes.")).native is None


@pytest.mark.parametrize(
    ("stop", "blocks", "finish"),
    [
        ("end_turn", [], "stop"),
        ("stop_sequence", [], "stop"),
        ("end_turn", [USE], "tool_calls"),
        ("tool_use", [], "stop"),
        ("max_tokens", [USE], "length"),
        ("model_context_window_exceeded", [], "length"),
        ("pause_turn", [], "length"),
        ("refusal", [], "refusal"),
        (None, [USE], "tool_calls"),
        ({"odd": 1}, [], "stop"),
    ],
)
def test_finish(stop: Any, blocks: Any, finish: str) -> None:
    """The reason is the vendor's, but whether a tool was called is seen."""
    assert answer(*blocks, stop=stop).finish_reason == finish


def test_refusal() -> None:
    """A refusal says why, where the vendor says it."""
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}

    found = answer(stop="refusal", stop_details=details)

    assert (found.finish_reason, found.refusal) == ("refusal", "No.")
    assert answer(stop="refusal").refusal is None
    odd = {"explanation": ["No."]}
    assert answer(stop="refusal", stop_details=odd).refusal is None
    assert answer(stop="end_turn", stop_details=details).refusal is None


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"content": "text"},
        {"content": [{"type": "tool_use", "id": "a", "input": {}}]},
        {"content": ["text"], "stop_reason": "end_turn"},
        {"content": [], "stop_reason": None},
    ],
)
def test_answers_that_cannot_be_read(body: Any) -> None:
    """What is no answer is an error of ours, whatever it is."""
    with pytest.raises(ProtocolError):
        MESSAGES.decode(body, FACTS)


def test_answer_that_is_an_error() -> None:
    """A gateway may say 200 and mean it not."""
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}

    with pytest.raises(ServerError, match="Busy") as caught:
        MESSAGES.decode(body, FACTS)

    assert (caught.value.status, caught.value.body) == (529, body)


# Streams.


def start(**message: Any) -> dict[str, Any]:
    said = {"type": "message", "role": "assistant", "content": [], "model": "claude-x"}
    return {"type": "message_start", "message": {**said, **message}}


def begin(index: Any, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: Any, kind: str, **said: Any) -> dict[str, Any]:
    inner = {"type": kind, **said}
    return {"type": "content_block_delta", "index": index, "delta": inner}


def stop(index: Any) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def finish(reason: Any = "end_turn", **said: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, **said}


STOP = {"type": "message_stop"}
USES = begin(0, type="tool_use", id="toolu_1", name="weather", input={})


def feed(*events: Any, end: bool = True) -> list[Chunk]:
    """Feed events; without the end mark the body just ends."""
    decoder = MESSAGES.decoder(FACTS)
    chunks: list[Chunk] = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        chunks += decoder.feed(data, "")
    if end and not decoder.ended:
        chunks += decoder.end()
    return chunks


def test_streamed_text() -> None:
    """Text comes in pieces; the numbers are those so far, the last ones count."""
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 2}

    found = feed(
        {"type": "ping"},
        start(usage=usage),
        begin(0, type="text", text=""),
        delta(0, "text_delta", text="Hel"),
        {"type": "something_new"},
        delta(0, "text_delta", text="lo."),
        delta(0, "something_new", text="lo."),
        stop(0),
        finish(usage={"input_tokens": 12, "output_tokens": 5, "other": None}),
        finish(),
        STOP,
    )

    assert found == [
        Chunk("Hel"),
        Chunk("lo."),
        Chunk(finish_reason="stop"),
        Chunk(usage=Usage.of(input=14, output=5, cached=2), model="claude-x"),
    ]


def test_streamed_calls() -> None:
    """A call is complete when its block ends; no arguments are an empty object."""
    found = feed(
        start(),
        USES,
        delta(0, "input_json_delta", partial_json=""),
        delta(0, "input_json_delta", partial_json='{"city": '),
        delta(0, "input_json_delta", partial_json='"Paris"}'),
        stop(0),
        begin(1, type="tool_use", id="toolu_2", name="now", input={}),
        stop(1),
        begin(2, type="tool_use", id="toolu_3", name="now", input={"a": 1}),
        stop(2),
        finish("tool_use"),
        STOP,
    )

    calls = (
        CALL,
        ToolCall("toolu_2", "now"),
        ToolCall("toolu_3", "now", arguments='{"a": 1}'),
    )
    assert found[:4] == [
        Chunk(tool_call_named=ToolCall("toolu_1", "weather", arguments="")),
        Chunk(tool_call_arguments=ToolCallDelta("toolu_1", "weather", '{"city": ')),
        Chunk(tool_call_arguments=ToolCallDelta("toolu_1", "weather", '"Paris"}')),
        Chunk(tool_call=CALL),
    ]
    assert join(found) == Response(
        "", calls, finish_reason="tool_calls", model="claude-x"
    )


def test_streamed_thoughts_and_other_blocks() -> None:
    """Streamed blocks are kept as a whole answer would have had them."""
    search = {"type": "server_tool_use", "id": "s1", "name": "web", "input": {"q": 1}}
    result = {"type": "web_result", "tool_use_id": "s1", "content": []}

    found = join(
        feed(
            start(),
            begin(0, type="thinking", thinking="", signature=""),
            delta(0, "thinking_delta", thinking="Hm"),
            delta(0, "thinking_delta", thinking="."),
            delta(0, "signature_delta", signature="sig"),
            stop(0),
            begin(1, type="redacted_thinking", data="xyz"),
            stop(1),
            begin(2, **{**search, "input": {}}),
            delta(2, "input_json_delta", partial_json='{"q"'),
            delta(2, "input_json_delta", partial_json=": 1}"),
            stop(2),
            begin(3, **result),
            stop(3),
            begin(4, type="text", text="A"),
            delta(4, "text_delta", text="B"),
            delta(4, "citations_delta", citation={"n": 1}),
            delta(4, "citations_delta", citation={"n": 2}),
            stop(4),
            finish(),
            STOP,
        )
    )

    cited = text("AB", citations=[{"n": 1}, {"n": 2}])
    redacted = {"type": "redacted_thinking", "data": "xyz"}
    blocks = [THOUGHT, redacted, search, result, cited]
    assert found.reasoning == Reasoning("Hm.")
    assert found.native == native(*blocks)
    assert found == replace(answer(*blocks), extra=None)


def test_streamed_refusal() -> None:
    """A refusal comes with the end."""
    details = {"type": "refusal", "explanation": "No."}
    end = {"type": "message_delta", "delta": {"stop_reason": "refusal"}}
    end["delta"]["stop_details"] = details

    found = join(feed(start(), end, STOP))

    assert (found.finish_reason, found.refusal) == ("refusal", "No.")


def test_ends() -> None:
    """The end mark, or a reason to stop, make an answer whole; nothing else does."""
    begun = [start(usage={"output_tokens": 3}), begin(0, type="text", text="Hel")]

    assert join(feed(*begun, finish())).content == "Hel"
    assert join(feed(*begun, STOP)).finish_reason == "stop"
    assert join(feed(*begun, "[DONE]")).finish_reason == "stop"
    for end in (STOP, "[DONE]"):
        with pytest.raises(StreamCutError, match="neither content nor"):
            feed(start(), end)
    for unfinished in ([], [finish(None)], [{"type": "message_delta"}]):
        with pytest.raises(StreamCutError, match="after 3 characters") as caught:
            feed(*begun, *unfinished)
        assert caught.value.partial == "Hel"
        assert caught.value.usage == Usage.of(output=3)


def test_call_that_is_cut_by_the_limit() -> None:
    """Arguments that were cut stay as they came, and the answer is too long."""
    found = join(
        feed(
            start(),
            USES,
            delta(0, "input_json_delta", partial_json='{"city": "Pa'),
            finish("max_tokens"),
            STOP,
        )
    )

    assert found.finish_reason == "length"
    assert found.tool_calls == (replace(CALL, arguments='{"city": "Pa'),)


def test_answer_that_begins_anew() -> None:
    """What was not handed on is forgotten; what was cannot be taken back."""
    begun = [start(), begin(0, type="text", text="")]
    rest = [delta(0, "text_delta", text="Yes."), finish(), STOP]

    assert join(feed(*begun, *begun, *rest)).content == "Yes."
    with pytest.raises(StreamCutError, match="began its answer anew") as caught:
        feed(*begun, delta(0, "text_delta", text="No."), *begun)
    assert caught.value.retryable
    assert caught.value.partial == "No."


def test_thoughts_and_pieces_are_taken_back() -> None:
    """Before any text or whole call, an answer that begins anew replaces the first."""
    first = [
        start(),
        begin(0, type="thinking", thinking=""),
        delta(0, "thinking_delta", thinking="Hm."),
        begin(1, type="tool_use", id="t1", name="f", input={}),
        delta(1, "input_json_delta", partial_json='{"a'),
    ]
    again = [start(), begin(0, type="tool_use", id="t1", name="g", input={}), STOP]

    chunks = feed(*first, *again)

    assert [chunk.restart for chunk in chunks].count(True) == 1
    assert join(chunks) == join(feed(*again))
    whole = {"type": "content_block_stop", "index": 1}
    rest = delta(1, "input_json_delta", partial_json='": 1}')
    with pytest.raises(StreamCutError, match="began its answer anew"):
        feed(*first, rest, whole, *again)


def test_errors_in_a_stream() -> None:
    """An error's type says what its status would have been."""
    for kind, cls in (
        ("overloaded_error", ServerError),
        ("rate_limit_error", RateLimitError),
    ):
        error = {"type": "error", "error": {"type": kind, "message": "Busy."}}
        with pytest.raises(cls, match="Busy") as caught:
            feed(start(usage={"input_tokens": 3}), error)
        assert caught.value.usage == Usage.of(input=3)
    with pytest.raises(AeyeError, match="Busy"):
        feed({"error": {"message": "Busy."}})


@pytest.mark.parametrize("data", ["[]", "1", "{"])
def test_events_that_cannot_be_read(data: str) -> None:
    """An event is an object."""
    with pytest.raises(ProtocolError):
        feed(data)


def test_events_with_nothing_in_them() -> None:
    """Events that lack what they should have say nothing."""
    found = feed(
        "",
        {"type": "message_start"},
        {"type": ["odd"]},
        {"type": "content_block_start", "index": [], "content_block": None},
        delta(7, "text_delta", text="lost"),
        {"type": "content_block_delta", "index": 0},
        stop(7),
        begin(0, type="text"),
        delta(0, "text_delta", text=None),
        delta(0, "input_json_delta", partial_json="{}"),
        begin(1, type="tool_use", id=5, name=None),
        STOP,
    )

    assert found == [Chunk(finish_reason="tool_calls", native=found[0].native)]


# Promises.


EVENTS = st.sampled_from(
    [
        start(),
        begin(0, type="text", text="a"),
        begin(1, type="thinking", thinking=""),
        USES,
        begin(1, type="tool_use", id="toolu_1", name="g"),
        begin(2, type="server_tool_use", id="s", name="web", input={}),
        delta(0, "text_delta", text="b"),
        delta(0, "input_json_delta", partial_json='{"a": 1}'),
        delta(1, "input_json_delta", partial_json="{"),
        delta(1, "thinking_delta", thinking="c"),
        delta(1, "signature_delta", signature=None),
        stop(0),
        stop(1),
        finish(),
        finish("max_tokens", usage={"output_tokens": -1}),
        STOP,
        {"type": "message_delta", "delta": [], "usage": []},
    ]
)


@given(st.lists(EVENTS, max_size=12))
def test_any_order_of_events_ends_well(events: list[Any]) -> None:
    """Events in any order make an answer, or an error of ours."""
    try:
        found = join(feed(*events))
    except AeyeError:
        return
    assert Response(**vars(found)) == found


BLOCKS = st.lists(
    st.one_of(
        st.text("ab ", min_size=1, max_size=4).map(text),
        st.text("ab", max_size=4).map(lambda t: {**THOUGHT, "thinking": t}),
        st.dictionaries(st.text("xy", max_size=2), st.integers(), max_size=2).map(
            lambda given: {**USE, "input": given}
        ),
        st.just({"type": "redacted_thinking", "data": "xyz"}),
    ),
    max_size=5,
)


@given(BLOCKS, st.sampled_from(["end_turn", "tool_use", "max_tokens", "refusal"]))
def test_streamed_equals_whole(blocks: list[Any], reason: str) -> None:
    """A streamed answer is the whole one; sent back, it is what the vendor said."""
    blocks = [
        {**block, "id": f"toolu_{i}"} if block["type"] == "tool_use" else block
        for i, block in enumerate(blocks)
    ]
    events: list[Any] = [start()]
    for i, block in enumerate(blocks):
        kind = block["type"]
        if kind == "tool_use":
            events.append(begin(i, **{**block, "input": {}}))
            written = json.dumps(block["input"])
            for piece in (written[:3], written[3:]):
                events.append(delta(i, "input_json_delta", partial_json=piece))
        elif kind in ("text", "thinking"):
            events.append(begin(i, **{**block, kind: ""}))
            events.append(delta(i, f"{kind}_delta", **{kind: block[kind]}))
        else:
            events.append(begin(i, **block))
        events.append(stop(i))
    streamed = join(feed(*events, finish(reason), STOP))
    whole = answer(*blocks, stop=reason)

    assert streamed == replace(whole, extra=None)
    if whole.native is not None:
        # But for text of blanks alone, which the vendor does not take back.
        sent = [b for b in blocks if b["type"] != "text" or b["text"].strip()]
        found = turns(HI, whole.to_message())[1:]
        said = [turn["content"] for turn in found]
        plain = len(sent) == 1 and sent[0]["type"] == "text"
        assert said == ([sent[0]["text"]] if plain else [sent] if sent else [])


# Errors.


@pytest.mark.parametrize(
    ("status", "kind", "message", "found"),
    [
        (400, "invalid_request_error", "prompt is too long: 9", "context_overflow"),
        (400, "invalid_request_error", "input_schema: no", "schema_rejected"),
        (400, "invalid_request_error", "no such thing", "other"),
        (401, "authentication_error", "bad key", "auth"),
        (402, "billing_error", "pay", "quota"),
        (403, "permission_error", "no", "auth"),
        (413, "request_too_large", "large", "context_overflow"),
        (429, "rate_limit_error", "slow down", "rate_limit"),
        (500, "api_error", "oops", "server"),
        (529, "overloaded_error", "busy", "server"),
    ],
)
def test_faults(status: int, kind: str, message: str, found: str) -> None:
    """An error's kind follows from its status and its words."""
    body = {"type": "error", "error": {"type": kind, "message": message}}

    fault = MESSAGES.decode_error(status, {}, body)

    assert (fault.kind, fault.code, fault.message) == (found, kind, message)


def test_fault_that_is_text() -> None:
    """A proxy's page is an error, too."""
    assert MESSAGES.decode_error(502, {}, "Bad gateway").message == "Bad gateway"
