"""The Responses codec: requests out, answers and streams in, errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.errors import (
    AeyeError,
    CapabilityError,
    ContextLengthError,
    ProtocolError,
    RateLimitError,
    ServerError,
    StatusError,
    StreamCutError,
)
from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.provider import ApiKey, Provider
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import Chunk, Response, ToolCallDelta, join
from aeye.schema import Schema
from aeye.testing import ReplayTransport
from aeye.usage import Usage
from aeye.vendor import OPENAI
from aeye.wire import ModelFacts, status_error
from aeye.wire_responses import RESPONSES

FACTS = ModelFacts()
THINKING = ModelFacts(
    family="openai",
    system_role="developer",
    user_key="safety_identifier",
    cache_key="prompt_cache_key",
    cache_mark="prompt_cache_breakpoint",
    thinks=True,
)
PLACE = Schema({"type": "object", "properties": {"city": {"type": "string"}}})
ENCRYPTED = "reasoning.encrypted_content"


def encode(
    *messages: Message, facts: ModelFacts = FACTS, stream: bool = False, **fields: Any
) -> dict[str, Any]:
    """Encode, and check that the body is JSON."""
    request = Request(messages, model="m", **fields)
    body = RESPONSES.encode(request, facts, stream)
    assert json.loads(json.dumps(body, allow_nan=False)) == body
    return body


def sent(*messages: Message, facts: ModelFacts = FACTS, **fields: Any) -> Any:
    """Return the input items."""
    return encode(*messages, facts=facts, **fields)["input"]


def message(*parts: Any, id: str = "msg_1", **fields: Any) -> dict[str, Any]:
    made = [
        {"type": "output_text", "text": part, "annotations": []}
        if isinstance(part, str)
        else part
        for part in parts
    ]
    said = {"type": "message", "id": id, "role": "assistant", "status": "completed"}
    return {**said, "content": made, **fields}


def call(
    name: str = "f", arguments: Any = "{}", call_id: str = "call_1", **fields: Any
) -> dict[str, Any]:
    said = {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name}
    return {**said, "arguments": arguments, "status": "completed", **fields}


def thought(*summary: str, id: str = "rs_1", **fields: Any) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": id, "summary": parts, **fields}


NO = {"type": "refusal", "refusal": "No."}


def decode(*output: Any, **body: Any) -> Response:
    return RESPONSES.decode(
        {"status": "completed", "output": list(output), **body}, FACTS
    )


def feed(*events: Any, end: bool = True) -> list[Chunk]:
    """Feed events: dicts are written as JSON, and "[DONE]" ends them."""
    decoder = RESPONSES.decoder(FACTS)
    chunks: list[Chunk] = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        chunks += decoder.feed(data, "")
    if end and not decoder.ended:
        chunks += decoder.end()
    return chunks


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def last(*output: Any, kind: str = "completed", **fields: Any) -> dict[str, Any]:
    return event(kind, response={"status": kind, "output": list(output), **fields})


# Requests.


def test_path() -> None:
    """The format has one address."""
    assert RESPONSES.path("any", True) == "/responses"


def test_plain_request() -> None:
    """What was not said is not sent, and nothing is kept at the vendor's."""
    body = encode(Message("system", "Be brief."), Message("user", "Hi"))

    assert body == {
        "model": "m",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "Hi"}],
        "store": False,
    }


def test_all_settings() -> None:
    """Each setting has its name on the wire."""
    body = encode(
        Message("user", "Hi"),
        facts=THINKING,
        stream=True,
        temperature=0.0,
        top_p=0.5,
        max_tokens=70,
        log_probabilities=3,
        reason=Reason("low"),
        cache_key="c",
        user_key="u",
        extra={
            "reasoning": {"summary": "auto"},
            "text": {"verbosity": "low"},
            "temperature": 0.3,
        },
    )

    assert body == {
        "model": "m",
        "input": [{"role": "user", "content": "Hi"}],
        "temperature": 0.3,
        "top_p": 0.5,
        "max_output_tokens": 70,
        "prompt_cache_key": "c",
        "safety_identifier": "u",
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low"},
        "store": False,
        "include": [ENCRYPTED, "message.output_text.logprobs"],
        "top_logprobs": 3,
        "stream": True,
    }


@pytest.mark.parametrize(
    ("fields", "facts", "included"),
    [
        ({}, THINKING, True),
        ({"reason": Reason()}, THINKING, True),
        ({"reason": Reason("none")}, THINKING, False),
        ({"reason": Reason("high")}, FACTS, True),
        ({}, FACTS, False),
        ({"extra": {"store": True}}, THINKING, False),
        ({"reason": Reason()}, replace(THINKING, reasoning=None), False),
    ],
)
def test_encrypted_thoughts_are_asked_for(
    fields: Any, facts: ModelFacts, included: bool
) -> None:
    """They are where the model thinks and nobody keeps what it thought."""
    assert (ENCRYPTED in encode(facts=facts, **fields).get("include", ())) == included


def test_log_probabilities_without_a_number() -> None:
    """True asks for the tokens' own, and for no alternatives."""
    body = encode(log_probabilities=True)

    assert body["include"] == ["message.output_text.logprobs"]
    assert "top_logprobs" not in body


def test_reason() -> None:
    """A number of tokens goes to hosts that know one, and is not made an effort."""
    router = ModelFacts(reasoning="reasoning")

    assert encode(facts=router, reason=Reason(max_tokens=9))["reasoning"] == {
        "max_tokens": 9
    }
    assert "reasoning" not in encode(reason=Reason())
    with pytest.raises(CapabilityError, match="effort"):
        encode(reason=Reason(max_tokens=9))


@pytest.mark.parametrize(
    "field",
    [
        {"stop": ("x",)},
        {"frequency_penalty": 0.1},
        {"presence_penalty": 0.1},
        {"logit_bias": {"5": 1}},
    ],
)
def test_what_has_no_place(field: Any) -> None:
    """What the format cannot carry is an error, by the codec as by ``prepare``."""
    name = next(iter(field))
    request = Request((Message("user", "Hi"),), model="m", **field)
    provider = Provider(OPENAI, RESPONSES, ApiKey("k", ()), "http://x")

    with pytest.raises(CapabilityError, match=name):
        RESPONSES.encode(request, FACTS, False)
    with pytest.raises(CapabilityError, match=name):
        provider.prepare(request)


def test_sounds_and_names_have_no_place() -> None:
    """Nor have a sound and the name of who speaks; a tool's name is not needed."""
    with pytest.raises(CapabilityError, match="audio"):
        sent(Message("user", (Part.audio("data:audio/wav;base64,AA=="),)))
    with pytest.raises(CapabilityError, match="'ada'"):
        sent(Message("user", "Hi", name="ada"))
    assert sent(Message("tool", "1", name="f", tool_call_id="c"))
    assert "audio" in RESPONSES.lacks


def test_tools() -> None:
    """Tools are flat, and always say whether they are strict."""
    tools = (
        ToolDefinition("a", "Does a.", PLACE, descriptor="openai-strict"),
        ToolDefinition("b", "", PLACE, descriptor="lenient"),
    )

    body = encode(tools=tools, tool_choice={"tool": "a"}, tools_one_at_a_time=True)

    strict, plain = body["tools"]
    assert (strict["type"], strict["name"]) == ("function", "a")
    assert (strict["description"], strict["strict"]) == ("Does a.", True)
    assert strict["parameters"]["additionalProperties"] is False
    assert strict["parameters"]["required"] == ["city"]
    assert set(plain) == {"type", "name", "parameters", "strict"}
    assert plain["strict"] is False
    assert body["tool_choice"] == {"type": "function", "name": "a"}
    assert body["parallel_tool_calls"] is False


def test_tool_choice_words() -> None:
    """A word is sent as it is, and only beside tools."""
    tools = (ToolDefinition("a", "", PLACE, descriptor="lenient"),)
    facts = ModelFacts(parallel_switch=False)

    body = encode(
        tools=tools, tool_choice="none", tools_one_at_a_time=True, facts=facts
    )

    assert body["tool_choice"] == "none"
    assert "parallel_tool_calls" not in body
    assert "tool_choice" not in encode(tools=tools)
    assert "tool_choice" not in encode(tool_choice="none")


def test_text_format() -> None:
    """The answer's schema goes out under the prompt's name; as text, nothing does."""
    strict = ResponseFormat(PLACE, descriptor="openai-strict")
    plain = ResponseFormat(PLACE, descriptor="lenient")
    text = ResponseFormat(PLACE, schema_delivery="prompt")

    found = encode(response_format=strict, name="my prompt: é")["text"]["format"]

    assert (found["type"], found["name"]) == ("json_schema", "my_prompt_")
    assert found["strict"] is True
    assert found["schema"]["required"] == ["city"]
    assert encode(response_format=plain)["text"]["format"]["strict"] is False
    assert encode(response_format=plain)["text"]["format"]["name"] == "output"
    assert "text" not in encode(response_format=text)


def test_more_of_text_joins_the_format() -> None:
    """What the caller adds to an object of ours does not push it out."""
    output = ResponseFormat(PLACE, descriptor="lenient")

    found = encode(response_format=output, extra={"text": {"verbosity": "low"}})["text"]

    assert set(found) == {"format", "verbosity"}


def test_system_messages() -> None:
    """The first is the instructions; later ones stay in their place."""
    first = Message("system", (Part.text("A"), Part.text("B")))
    later = Message("system", "C")

    body = encode(first, Message("user", "Hi"), later, facts=THINKING)

    assert body["instructions"] == "AB"
    assert body["input"][1] == {"role": "developer", "content": "C"}


def test_cache_marks() -> None:
    """A mark stands on the last part, which instructions do not have."""
    marked = Message("system", "S", cache={"type": "ephemeral", "ttl": "30m"})
    user = Message("user", (Part.text("a"), Part.text("b")), cache={})

    body = encode(marked, user, facts=THINKING)

    point = {"mode": "explicit"}
    assert "instructions" not in body
    assert body["input"] == [
        {
            "role": "developer",
            "content": [
                {
                    "type": "input_text",
                    "text": "S",
                    "prompt_cache_breakpoint": {**point, "ttl": "30m"},
                }
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "a"},
                {"type": "input_text", "text": "b", "prompt_cache_breakpoint": point},
            ],
        },
    ]
    assert sent(user)[0]["content"][1] == {"type": "input_text", "text": "b"}
    other = ModelFacts(cache_mark="cache_control")
    assert sent(user, facts=other)[0]["content"][1] == {
        "type": "input_text",
        "text": "b",
    }


def test_parts() -> None:
    """Pictures and files go by address or with their bytes; plain text as text."""
    parts = (
        Part.text("See"),
        Part.image("https://x/a.png"),
        Part.file("https://x/a.pdf"),
        Part.file("data:application/pdf;name=a.pdf;base64,JVBERg=="),
        Part.file("data:application/pdf;base64,JVBERg=="),
        Part.file("data:text/csv;name=a.csv;base64,YSxi"),
        Part.file("data:application/json;base64,e30="),
    )
    pdf = {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERg=="}

    assert sent(Message("user", parts))[0]["content"] == [
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "detail": "auto", "image_url": "https://x/a.png"},
        {"type": "input_file", "file_url": "https://x/a.pdf"},
        {**pdf, "filename": "a.pdf"},
        {**pdf, "filename": "file.pdf"},
        {"type": "input_text", "text": "a.csv:\na,b"},
        {"type": "input_text", "text": "{}"},
    ]


def test_pictures_elsewhere() -> None:
    """A tool may answer with a picture; a system message with one is an item."""
    picture = (Part.image("https://x/a.png"),)
    shown = {"type": "input_image", "detail": "auto", "image_url": "https://x/a.png"}

    system, reply = sent(
        Message("system", picture), Message("tool", picture, tool_call_id="c")
    )

    assert system == {"role": "system", "content": [shown]}
    assert reply == {
        "type": "function_call_output",
        "call_id": "c",
        "output": [shown],
    }
    with pytest.raises(CapabilityError, match="assistant"):
        sent(Message("assistant", picture))


def test_messages_of_a_tool_turn() -> None:
    """Text, refusal and calls are items of their own; replies name their call."""
    turn = Message(
        "assistant",
        "Well",
        refusal="No.",
        tool_calls=(ToolCall("c1", "f", '{"a": '), ToolCall("c2", "g")),
    )
    replies = [Message("tool", text, tool_call_id=id) for text, id in ("1a", "2b")]

    items = sent(turn, *replies, Message("assistant"))

    made = {"type": "function_call"}
    assert items == [
        {"type": "message", "role": "assistant", "content": "Well"},
        {"type": "message", "role": "assistant", "content": "No."},
        {**made, "call_id": "c1", "name": "f", "arguments": '{"a": '},
        {**made, "call_id": "c2", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"type": "message", "role": "assistant", "content": ""},
    ]
    with pytest.raises(ValueError, match="tool_call_id"):
        sent(Message("tool", "1"))


# What is sent back as it came.

OPAQUE = thought("Hm.", encrypted_content="secret")


def answered(*output: Any) -> Message:
    return decode(*output).to_message()


@pytest.mark.parametrize(
    "output",
    [
        [OPAQUE, message("Hi.", phase="commentary"), call()],
        [thought(content=[{"type": "reasoning_text", "text": "Hm."}]), call()],
        [message("Hi.", phase="final_answer")],
        [message("Hi."), {"type": "web_search_call", "id": "ws_1"}],
        [OPAQUE, message(NO)],
    ],
)
def test_items_are_echoed(output: list[Any]) -> None:
    """Items that say more than our fields are sent back unchanged and in order."""
    said = answered(*output)

    assert sent(said) == output
    saved = Message.from_dict(json.loads(json.dumps(said.to_dict())))
    assert sent(saved) == output
    assert sent(replace(said, native={**said.native, "items": tuple(output)})) == output


@pytest.mark.parametrize(
    "changes",
    [
        {"content": "Changed."},
        {"refusal": "No."},
        {"tool_calls": ()},
        {"tool_calls": (ToolCall("call_1", "f", '{"a": 1}'),)},
        {"native": {"format": "chat", "items": []}},
        {"native": {"format": "responses"}},
    ],
)
def test_items_that_say_something_else_are_not(changes: Any) -> None:
    """Once the message was changed, its fields are what is sent."""
    said = answered(OPAQUE, message("Hi."), call())

    items = sent(replace(said, **changes))

    assert all(item.get("type") != "reasoning" and "id" not in item for item in items)


def test_plain_items_are_built_anew() -> None:
    """What our fields say in full is not kept twice."""
    assert decode(message("Hi."), call()).native is None


def test_echoed_calls_have_our_ids() -> None:
    """Ids that were made unique hold in the echo as well."""
    said = answered(OPAQUE, call(call_id=""), call("g", call_id="x"))
    made = tuple(
        replace(one, id=id) for one, id in zip(said.tool_calls, ("call_1", "call_2"))
    )

    items = sent(replace(said, tool_calls=made))

    assert [item.get("call_id") for item in items] == [None, "call_1", "call_2"]


def test_a_thought_that_is_kept_nowhere() -> None:
    """It is left out, and with it the ids by which the vendor would ask for it."""
    said = answered(thought("Hm."), message("Hi."), call())

    first, second = sent(said)

    assert first == {k: v for k, v in message("Hi.").items() if k != "id"}
    assert second == {k: v for k, v in call().items() if k != "id"}
    kept = sent(said, extra={"store": True})
    assert kept == [thought("Hm."), message("Hi."), call()]


# Answers.


def test_answer() -> None:
    """Text, refusal, thoughts, calls, usage and what else there is."""
    logprobs = [{"token": "Hi", "logprob": -0.1}]
    note = {"type": "url_citation", "url": "https://x"}
    text = {
        "type": "output_text",
        "text": "Hi",
        "annotations": [note],
        "logprobs": logprobs,
    }
    output = [
        thought("One.", "Two.", encrypted_content="e"),
        thought(id="rs_2", content=[{"type": "reasoning_text", "text": "Three."}]),
        message(text, " there."),
        call("f", '{"a": 1}', "c1"),
        call("g", "", "c2"),
        call("h", {"b": 2}, "c3"),
    ]

    found = decode(
        *output,
        id="resp_1",
        model="m-1",
        service_tier="default",
        tools=[],
        usage={
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 17,
            "cost": 0.5,
        },
    )

    assert found == Response(
        "Hi there.",
        (
            ToolCall("c1", "f", '{"a": 1}'),
            ToolCall("c2", "g", "{}"),
            ToolCall("c3", "h", '{"b": 2}'),
        ),
        finish_reason="tool_calls",
        reasoning=Reasoning("One.\n\nTwo.\n\nThree."),
        usage=Usage.of(
            input=10,
            output=7,
            cached=4,
            cache_write=2,
            reasoning=3,
            total=17,
            cost=0.5,
        ),
        model="m-1",
        extra={
            "id": "resp_1",
            "service_tier": "default",
            "annotations": [note],
            "logprobs": logprobs,
        },
        native={"format": "responses", "items": output},
    )


@pytest.mark.parametrize(
    ("body", "finish"),
    [
        ({"output": [message("Hi")]}, "stop"),
        ({"output": [message(NO)]}, "refusal"),
        ({"output": [message(NO), call()]}, "tool_calls"),
        ({"output": [call()], "status": "incomplete"}, "length"),
        (
            {
                "output": [],
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            },
            "length",
        ),
        (
            {
                "output": [],
                "status": "incomplete",
                "incomplete_details": {"reason": "content_filter"},
            },
            "content_filter",
        ),
    ],
)
def test_finish(body: Any, finish: str) -> None:
    """What cut the answer comes first, then what the answer holds."""
    assert RESPONSES.decode(body, FACTS).finish_reason == finish


def test_a_cut_answer_is_not_echoed() -> None:
    """A thought without what followed it would be refused."""
    found = decode(OPAQUE, status="incomplete")

    assert (found.finish_reason, found.native) == ("length", None)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ([], ProtocolError, "no object"),
        ({"choices": []}, ProtocolError, "without output"),
        ({"output": [], "status": "queued"}, ProtocolError, "background"),
        ({"output": [call("")]}, ProtocolError, "without a name"),
        ({"output": [], "status": "failed"}, StatusError, "the response is failed"),
        ({"output": [], "status": "cancelled"}, StatusError, "is cancelled"),
        (
            {"status": "failed", "error": {"code": "server_error", "message": "Oh."}},
            ServerError,
            "Oh.",
        ),
        ({"error": {"message": "Bad."}}, StatusError, "Bad."),
    ],
)
def test_no_answer(body: Any, kind: Any, words: str) -> None:
    """What holds no answer is an error that says why."""
    with pytest.raises(kind, match=words):
        RESPONSES.decode(body, FACTS)


def test_usage_of_a_failure() -> None:
    """What a failed answer cost is on the error."""
    usage = {"input_tokens": 5, "output_tokens": 0, "cost": "much"}

    with pytest.raises(StatusError) as caught:
        decode(status="failed", usage=usage)

    assert caught.value.usage == Usage.of(input=5, output=0)


# Streams.


def test_text_stream() -> None:
    """Pieces are handed on as they come; the last event has the rest."""
    item = message("Hello.")
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}

    chunks = feed(
        event("created", response={}),
        event("output_item.added", output_index=0, item={**item, "content": []}),
        event("output_text.delta", delta="Hel", **place),
        event("output_text.delta", delta="", **place),
        event("output_text.delta", delta="lo.", **place),
        event("output_text.done", text="Hello.", **place),
        event("output_item.done", output_index=0, item=item),
        last(item, model="m-1", usage={"input_tokens": 1, "output_tokens": 2}),
    )

    assert chunks == [
        Chunk("Hel"),
        Chunk("lo."),
        Chunk(finish_reason="stop", usage=Usage.of(input=1, output=2), model="m-1"),
    ]


def test_refusal_stream() -> None:
    """A refusal comes in pieces too."""
    chunks = feed(
        event("refusal.delta", item_id="msg_1", delta="No"),
        event("refusal.delta", item_id="msg_1", delta="."),
        event("output_item.done", item=message(NO)),
        last(message(NO)),
    )

    assert chunks == [
        Chunk(refusal="No"),
        Chunk(refusal="."),
        Chunk(finish_reason="refusal"),
    ]


def test_thoughts_are_set_off() -> None:
    """Parts of a thought, and thoughts, have a blank line between them."""
    pieces = [
        ("reasoning_summary_text", {"item_id": "r1", "summary_index": 0}, "On"),
        ("reasoning_summary_text", {"item_id": "r1", "summary_index": 0}, "e."),
        ("reasoning_summary_text", {"item_id": "r1", "summary_index": 1}, "Two."),
        ("reasoning_text", {"item_id": "r2", "content_index": 0}, "Three."),
    ]
    events = [
        event(f"{kind}.delta", delta=piece, **place) for kind, place, piece in pieces
    ]

    found = join(feed(*events, last()))

    assert found.reasoning == Reasoning("One.\n\nTwo.\n\nThree.")


def test_call_stream() -> None:
    """A call is named, filled and completed by the event that says so."""
    place = {"item_id": "fc_1", "output_index": 0}

    chunks = feed(
        event("output_item.added", output_index=0, item=call(arguments="")),
        event("function_call_arguments.delta", delta='{"a":', **place),
        event("function_call_arguments.delta", delta="1}", **place),
        event("function_call_arguments.done", arguments='{"a":1}', **place),
        event("output_item.done", output_index=0, item=call(arguments='{"a":1}')),
        event("output_item.done", output_index=0, item=call(arguments='{"a":1}')),
        last(call(arguments='{"a":1}')),
    )

    assert chunks == [
        Chunk(tool_call_named=ToolCall("call_1", "f", "")),
        Chunk(tool_call_arguments=ToolCallDelta("call_1", "f", '{"a":')),
        Chunk(tool_call_arguments=ToolCallDelta("call_1", "f", "1}")),
        Chunk(tool_call=ToolCall("call_1", "f", '{"a":1}')),
        Chunk(finish_reason="tool_calls"),
    ]


def test_calls_side_by_side() -> None:
    """Pieces of several calls may come in turns."""
    first, second = call("f", "", "a"), call("g", "", "b", id="fc_2")

    found = join(
        feed(
            event("output_item.added", output_index=0, item=first),
            event("output_item.added", output_index=1, item=second),
            event("function_call_arguments.delta", output_index=1, delta='{"b"'),
            event("function_call_arguments.delta", output_index=0, delta='{"a":1}'),
            event("function_call_arguments.delta", output_index=1, delta=":2}"),
            last(),
        )
    )

    assert found.tool_calls == (
        ToolCall("a", "f", '{"a":1}'),
        ToolCall("b", "g", '{"b":2}'),
    )


def test_item_ids_that_change() -> None:
    """A gateway that changes ids is understood by the places."""
    item = call(arguments="", id="x1")

    found = join(
        feed(
            event("output_item.added", output_index=0, item=item),
            event(
                "function_call_arguments.delta",
                output_index=0,
                item_id="x2",
                delta='{"a":1}',
            ),
            event(
                "output_item.done",
                output_index=0,
                item=call(arguments='{"a":1}', id="x3"),
            ),
            last(call(arguments='{"a":1}', id="x4")),
        )
    )

    assert found.tool_calls == (ToolCall("call_1", "f", '{"a":1}'),)


def test_items_without_places_or_ids() -> None:
    """llama.cpp names no places, and a call's item by the id of the call."""
    item = {k: v for k, v in call(arguments="").items() if k != "id"}

    found = join(
        feed(
            event("output_text.delta", delta="Hi"),
            event("output_text.delta", delta="."),
            event("output_item.added", item=item),
            event("function_call_arguments.delta", item_id="call_1", delta="{}"),
            event("output_item.done", item={**item, "arguments": "{}"}),
            last(message("Hi."), {**item, "arguments": "{}"}),
        )
    )

    assert found == Response(
        "Hi.", (ToolCall("call_1", "f", "{}"),), finish_reason="tool_calls"
    )


def test_items_that_come_whole() -> None:
    """What was not streamed is taken from the event that completes it."""
    output = [OPAQUE, message("Hi.", NO), call(arguments='{"a":1}')]
    done = [
        event("output_item.done", output_index=i, item=item)
        for i, item in enumerate(output)
    ]
    expected = replace(decode(*output), extra=None)

    assert join(feed(*done, last())) == expected
    assert join(feed(last(*output))) == expected


def test_an_item_that_is_announced_again() -> None:
    """It is one item still; after its end, it is another."""
    added = event("output_item.added", item=call(arguments=""))
    done = event("output_item.done", item=call())

    found = join(feed(added, added, done, added, last()))

    assert [c.id for c in found.tool_calls] == ["call_1", "call_2"]


def test_an_item_that_the_last_event_completes() -> None:
    """An item begun and not completed is completed by the last event."""
    added = event("output_item.added", output_index=0, item=call(arguments=""))
    unknown = message("not heard of")

    found = join(feed(added, last(call(arguments='{"a":1}'), unknown)))

    assert found.tool_calls == (ToolCall("call_1", "f", '{"a":1}'),)
    assert found.content == ""


def test_name_in_the_end() -> None:
    """A call may be named by the event that completes it."""
    found = join(
        feed(
            event("function_call_arguments.delta", item_id="fc_1", delta='{"a":1}'),
            event("output_item.done", item=call(arguments='{"a":1}')),
            last(),
        )
    )

    assert found.tool_calls == (ToolCall("call_1", "f", '{"a":1}'),)
    with pytest.raises(ProtocolError, match="without a name"):
        feed(event("function_call_arguments.delta", delta="{}"), last())


def test_kept_items() -> None:
    """Items are kept as the last event has them, else as they were completed."""
    item = call(arguments="{}")
    early = {**OPAQUE, "encrypted_content": "not whole"}
    later = {**OPAQUE, "encrypted_content": "newest"}
    events = [
        event("output_item.added", output_index=1, item={**item, "arguments": ""}),
        event("output_item.added", output_index=0, item=early),
        event("output_item.done", output_index=1, item=item),
        event("output_item.done", output_index=0, item=OPAQUE),
    ]

    without, repeated = feed(*events, last())[-1], feed(*events, last(later, item))[-1]

    assert without.native == {"format": "responses", "items": [OPAQUE, item]}
    assert repeated.native == {"format": "responses", "items": [later, item]}


def test_incomplete_stream() -> None:
    """A cut answer says so, whichever event it ends in."""
    text = event("output_text.delta", delta="Hi")
    details = {"reason": "content_filter"}

    cut = feed(text, last(kind="incomplete"))[-1]
    filtered = feed(
        text,
        event(
            "completed",
            response={"status": "incomplete", "incomplete_details": details},
        ),
    )[-1]
    bare = feed(text, event("incomplete"))[-1]

    assert cut == Chunk(finish_reason="length")
    assert filtered == Chunk(finish_reason="content_filter")
    assert bare == Chunk(finish_reason="length")


def test_done_without_a_last_event() -> None:
    """``[DONE]`` ends a stream as well."""
    chunks = feed(event("output_text.delta", delta="Hi"), "[DONE]")

    assert chunks == [Chunk("Hi"), Chunk(finish_reason="stop")]


def test_cut_stream() -> None:
    """Without its last event a stream is cut, whatever it has said."""
    with pytest.raises(StreamCutError, match="after 2 characters") as caught:
        feed(
            event("output_text.delta", delta="Hi", item_id="msg_1"),
            event("output_item.done", item=message("Hi")),
        )

    assert caught.value.partial == "Hi"
    with pytest.raises(StreamCutError, match="event: reset"):
        RESPONSES.decoder(FACTS).end("reset")


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ({"type": "error", "code": "server_error", "message": "A"}, ServerError, "A"),
        (
            {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "B"}},
            RateLimitError,
            "B",
        ),
        ({"error": {"message": "C", "code": 400}}, StatusError, "C"),
        (
            last(kind="failed", error={"code": "server_error", "message": "D"}),
            ServerError,
            "D",
        ),
        (
            last(
                kind="failed",
                error={"code": "context_length_exceeded", "message": "E"},
            ),
            ContextLengthError,
            "E",
        ),
        (event("failed"), StatusError, "the response is failed"),
        ([], ProtocolError, "no object"),
        ("{", ProtocolError, "no JSON"),
    ],
)
def test_errors_inside_a_stream(said: Any, kind: Any, words: str) -> None:
    """Errors come flat, nested, and as a response that failed."""
    with pytest.raises(kind, match=words):
        feed(event("output_text.delta", delta="Hi"), said)


def test_events_that_say_nothing() -> None:
    """Events of other kinds, and items that are none, are passed over."""
    chunks = feed(
        "",
        {"type": ["odd"]},
        event("output_item.added", item=None),
        event("content_part.added", item_id="x", part={}),
        event("web_search_call.searching", item={"id": "ws_1"}),
        event("output_text.delta", delta=None),
        event("output_item.added", item={"type": "web_search_call", "id": "ws_1"}),
        last(),
    )

    assert chunks == [Chunk(finish_reason="stop")]


def test_name_of_an_event() -> None:
    """The name counts where the data does not say its type."""
    decoder = RESPONSES.decoder(FACTS)

    assert list(decoder.feed('{"delta": "Hi"}', "response.output_text.delta")) == [
        Chunk("Hi")
    ]


def test_http_error() -> None:
    """An error's body is read as everywhere at OpenAI's."""
    body = {
        "error": {
            "code": "invalid_json_schema",
            "message": "Invalid schema for response_format 'x'",
            "param": "text.format.schema",
        }
    }

    fault = RESPONSES.decode_error(400, {}, body)

    assert (fault.kind, fault.code) == ("schema_rejected", "invalid_json_schema")
    assert isinstance(status_error(fault, status=400), StatusError)


# Promises for every answer.

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
ITEMS = st.lists(
    st.one_of(
        TEXTS.map(message),
        TEXTS.map(lambda text: message({"type": "refusal", "refusal": text})),
        st.lists(TEXTS, max_size=2).map(lambda texts: thought(*texts)),
        st.lists(TEXTS, min_size=1, max_size=2).map(
            lambda texts: thought(
                content=[{"type": "reasoning_text", "text": text} for text in texts]
            )
        ),
        st.tuples(
            st.sampled_from("fg"), st.sampled_from(["{}", '{"a": 1}', "", '{"a'])
        ).map(lambda pair: call(*pair)),
    ),
    max_size=4,
)


def pieces_of(draw: Any, text: str) -> list[str]:
    cut = draw(st.integers(0, len(text)))
    return [piece for piece in (text[:cut], text[cut:]) if piece]


def events_of(draw: Any, place: int, item: Any) -> list[Any]:
    """Return the events that stream *item*."""
    about = {"output_index": place, "item_id": item["id"]}
    empty = {k: [] if isinstance(v, list) else v for k, v in item.items()}
    if "arguments" in item:
        empty["arguments"] = ""
    texts = [("function_call_arguments", {}, item.get("arguments") or "")]
    for key, name in (("summary", "reasoning_summary_text"), ("content", "")):
        for i, part in enumerate(item.get(key) or ()):
            index = {"summary_index" if key == "summary" else "content_index": i}
            text = part.get("text") or part.get("refusal")
            texts.append((name or part["type"], index, text))
    deltas = [
        event(f"{kind}.delta", delta=piece, **index, **about)
        for kind, index, text in texts
        for piece in pieces_of(draw, text)
    ]
    return [
        event("output_item.added", output_index=place, item=empty),
        *deltas,
        event("output_item.done", output_index=place, item=item),
    ]


@st.composite
def answers(draw: Any) -> tuple[dict[str, Any], bytes]:
    """An answer as one body, and the same as a stream."""
    output = [
        {**item, "id": f"i{i}", **({"call_id": f"c{i}"} if "call_id" in item else {})}
        for i, item in enumerate(draw(ITEMS))
    ]
    body = {
        "status": draw(st.sampled_from(["completed", "incomplete"])),
        "model": "m-1",
        "usage": {"input_tokens": draw(st.integers(0, 99)), "output_tokens": 3},
        "output": output,
    }
    events = [e for i, item in enumerate(output) for e in events_of(draw, i, item)]
    shown = body if draw(st.booleans()) else {**body, "output": []}
    events.append(event(str(body["status"]), response=shown))
    lines = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events]
    return body, "".join(lines).encode()


def provider(body: bytes) -> Provider:
    return Provider(
        OPENAI,
        RESPONSES,
        ApiKey("k", ()),
        "http://x",
        model="m",
        transport=ReplayTransport(body),
    )


REQUEST = Request((Message("user", "Hi"),))


@given(answers())
def test_streamed_equals_whole(answer: Any) -> None:
    """A streamed answer joins to what the whole one says, and so does its echo."""
    whole, stream = answer

    blocking = provider(json.dumps(whole).encode()).execute(REQUEST)
    streaming = join(provider(stream).stream(REQUEST))

    assert streaming == replace(blocking, extra=None)
    assert sent(streaming.to_message()) == sent(blocking.to_message())


@given(answers(), st.data())
def test_early_end_is_an_error(answer: Any, data: st.DataObject) -> None:
    """A stream cut anywhere before its last event is no answer."""
    stream = answer[1]
    end = data.draw(st.integers(0, stream.rindex(b"\ndata:") + 6))

    with pytest.raises(AeyeError):
        join(provider(stream[:end]).stream(REQUEST))


NAMES = [
    *("type", "output", "item", "item_id", "output_index", "content", "summary"),
    *("text", "call_id", "name", "arguments", "delta", "id", "response", "status"),
    *("usage", "error", "code", "message", "incomplete_details", "cost"),
]
NONSENSE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**400)
    | st.floats()
    | st.sampled_from(["message", "reasoning", "function_call", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=20,
)
KINDS = st.sampled_from(
    [
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "response.reasoning_text.delta",
        "response.completed",
        "response.failed",
        "error",
    ]
)


@given(NONSENSE, st.lists(st.tuples(KINDS, NONSENSE), max_size=4))
def test_nonsense_is_an_error_or_an_answer(value: Any, events: Any) -> None:
    """Whatever JSON comes, decoding ends in an answer or in an error of ours."""
    stream = [
        {**(said if isinstance(said, dict) else {"item": said}), "type": kind}
        for kind, said in events
    ]
    for read in (
        lambda: RESPONSES.decode(value, FACTS),
        lambda: RESPONSES.decode({"output": [value], "usage": value}, FACTS),
        lambda: feed(*stream),
        lambda: feed(*stream, {"type": "response.completed", "response": value}),
    ):
        try:
            read()
        except AeyeError:
            continue
    assert RESPONSES.decode_error(400, {}, value).message
