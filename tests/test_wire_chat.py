"""The chat completions codec: requests out, answers and streams in, errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Iterable

import pytest

from aeye.errors import (
    AuthError,
    CapabilityError,
    ContextLengthError,
    ProtocolError,
    RateLimitError,
    ServerError,
    StatusError,
    StreamCutError,
)
from aeye.message import Message, Part, Reasoning, ReasoningDetail, ToolCall
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import Chunk, Response, ToolCallDelta, join
from aeye.schema import Schema
from aeye.usage import Usage
from aeye.wire import ModelFacts, split_data_url, status_error
from aeye.wire_chat import CHAT

FACTS = ModelFacts()
OPENAI = ModelFacts(
    family="openai",
    token_cap="max_completion_tokens",
    system_role="developer",
    user_key="safety_identifier",
    cache_key="prompt_cache_key",
    echoes=frozenset({"refusal"}),
)
PLACE = Schema({"type": "object", "properties": {"city": {"type": "string"}}})


def encode(
    *messages: Message, facts: ModelFacts = FACTS, stream: bool = False, **fields: Any
) -> dict[str, Any]:
    """Encode, and check that the body is JSON."""
    request = Request(messages, model="m", **fields)
    body = CHAT.encode(request, facts, stream)
    assert json.loads(json.dumps(body, allow_nan=False)) == body
    return body


def sent(message: Message, facts: ModelFacts = FACTS) -> Any:
    return encode(Message("user", "Hi"), message, facts=facts)["messages"][1]


def decode(message: Any, finish: Any = "stop", **body: Any) -> Response:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return CHAT.decode({"choices": [choice], **body}, FACTS)


def feed(*events: Any, end: bool = True) -> list[Chunk]:
    """Feed events: dicts are written as JSON, and "[DONE]" ends them."""
    decoder = CHAT.decoder(FACTS)
    chunks: list[Chunk] = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        chunks += decoder.feed(data, "")
    if end and not decoder.ended:
        chunks += decoder.end()
    return chunks


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def calls(*items: Any, finish: str | None = None) -> dict[str, Any]:
    return delta(finish, tool_calls=list(items))


def piece(index: Any = None, id: Any = None, name: Any = None, args: Any = None) -> Any:
    function = {"name": name, "arguments": args}
    said = {"index": index, "id": id, "type": "function"}
    found = {k: v for k, v in said.items() if v is not None}
    found["function"] = {k: v for k, v in function.items() if v is not None}
    return found


# Requests.


def test_path() -> None:
    """The format has one address."""
    assert CHAT.path("any", True) == "/chat/completions"


def test_plain_request() -> None:
    """What was not said is not sent."""
    body = encode(Message("system", "Be brief."), Message("user", "Hi"))

    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
        ],
    }


def test_all_settings() -> None:
    """Each setting has its name on the wire, which the host may have its own for."""
    body = encode(
        Message("system", "S"),
        facts=OPENAI,
        stream=True,
        temperature=0.0,
        top_p=0.5,
        max_tokens=7,
        stop=("END",),
        frequency_penalty=0.1,
        presence_penalty=0.2,
        logit_bias={"5": -100},
        log_probabilities=3,
        reason=Reason("low"),
        cache_key="c",
        user_key="u",
        extra={"seed": 1, "temperature": 0.3},
    )

    assert body == {
        "model": "m",
        "messages": [{"role": "developer", "content": "S"}],
        "temperature": 0.3,
        "top_p": 0.5,
        "max_completion_tokens": 7,
        "stop": ["END"],
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "logit_bias": {"5": -100},
        "logprobs": True,
        "top_logprobs": 3,
        "reasoning_effort": "low",
        "prompt_cache_key": "c",
        "safety_identifier": "u",
        "stream": True,
        "stream_options": {"include_usage": True},
        "seed": 1,
    }


def test_host_without_usage_or_keys() -> None:
    """What a host does not know is not sent to it."""
    facts = ModelFacts(stream_usage=False, user_key=None)

    body = encode(facts=facts, stream=True, user_key="u", cache_key="c")

    assert body == {"model": "m", "messages": [], "stream": True}


@pytest.mark.parametrize(
    ("form", "reason", "found"),
    [
        ("reasoning_effort", Reason("high"), {"reasoning_effort": "high"}),
        ("reasoning_effort", Reason(), {}),
        ("reasoning", Reason("high"), {"reasoning": {"effort": "high"}}),
        ("reasoning", Reason(max_tokens=9), {"reasoning": {"max_tokens": 9}}),
        ("thinking", Reason("none"), {"thinking": {"type": "disabled"}}),
        ("thinking", Reason(), {"thinking": {"type": "enabled"}}),
        (
            "thinking",
            Reason("high"),
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        ),
    ],
)
def test_reason(form: str, reason: Reason, found: Any) -> None:
    """Each host has its own way to be told how much to think."""
    body = encode(facts=ModelFacts(reasoning=form), reason=reason)

    assert body == {"model": "m", "messages": [], **found}


def test_reason_tokens_have_no_place() -> None:
    """A number of tokens is not made an effort."""
    with pytest.raises(CapabilityError, match="effort"):
        encode(reason=Reason(max_tokens=100))


def test_tools() -> None:
    """A tool goes out in the dialect that was chosen for it; strict where that is."""
    tools = (
        ToolDefinition("a", "Does a.", PLACE, descriptor="openai-strict"),
        ToolDefinition("b", "", PLACE, descriptor="lenient"),
    )

    body = encode(tools=tools, tool_choice={"tool": "a"}, tools_one_at_a_time=True)

    strict, plain = (tool["function"] for tool in body["tools"])
    assert [tool["type"] for tool in body["tools"]] == ["function", "function"]
    assert (strict["name"], strict["description"]) == ("a", "Does a.")
    assert strict["strict"] is True
    assert strict["parameters"]["additionalProperties"] is False
    assert strict["parameters"]["required"] == ["city"]
    assert plain == {"name": "b", "parameters": plain["parameters"]}
    assert not plain["parameters"].get("required")
    assert body["tool_choice"] == {"type": "function", "function": {"name": "a"}}
    assert body["parallel_tool_calls"] is False


@pytest.mark.parametrize("choice", ["auto", "none", "required"])
def test_tool_choice_words(choice: str) -> None:
    """A word is sent as it is, and only beside tools."""
    tools = (ToolDefinition("a", "", PLACE, descriptor="lenient"),)
    facts = ModelFacts(parallel_switch=False)

    body = encode(
        tools=tools, tool_choice=choice, tools_one_at_a_time=True, facts=facts
    )

    assert body["tool_choice"] == choice
    assert "parallel_tool_calls" not in body
    assert "tool_choice" not in encode(tool_choice=choice, tools_one_at_a_time=True)


def test_response_format() -> None:
    """The answer's schema goes out under the prompt's name, cleaned."""
    output = ResponseFormat(PLACE, descriptor="openai-strict")

    found = encode(response_format=output, name="my prompt: é")["response_format"]

    assert found["type"] == "json_schema"
    assert found["json_schema"]["name"] == "my_prompt_"
    assert found["json_schema"]["strict"] is True
    assert found["json_schema"]["schema"]["required"] == ["city"]


def test_response_format_lenient_and_as_text() -> None:
    """Without a strict dialect the flag is left out; as text nothing is sent."""
    lenient = ResponseFormat(PLACE, descriptor="lenient")
    text = ResponseFormat(PLACE, schema_delivery="prompt")

    found = encode(response_format=lenient)["response_format"]["json_schema"]

    assert set(found) == {"name", "schema"}
    assert "response_format" not in encode(response_format=text)


def test_messages_of_a_tool_turn() -> None:
    """Calls go out as they came, malformed arguments included; replies by id."""
    messages = (
        Message("user", "Hi", name="ada"),
        Message("assistant", "", tool_calls=(ToolCall("c1", "f", '{"a": '),)),
        Message("tool", "no JSON", tool_call_id="c1", name="f"),
        Message("assistant", "Done", name="bot"),
    )

    assert encode(*messages)["messages"] == [
        {"role": "user", "content": "Hi", "name": "ada"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"a": '},
                }
            ],
        },
        {"role": "tool", "content": "no JSON", "tool_call_id": "c1"},
        {"role": "assistant", "content": "Done", "name": "bot"},
    ]


def test_reply_without_an_id() -> None:
    """A reply must say what it answers."""
    with pytest.raises(ValueError, match="tool_call_id"):
        encode(Message("tool", "x"))


def test_refusal_in_history() -> None:
    """A refusal goes back in its field where there is one, else as text."""
    message = Message("assistant", "", refusal="No.")

    assert sent(message, OPENAI) == {
        "role": "assistant",
        "content": "",
        "refusal": "No.",
    }
    assert sent(message) == {"role": "assistant", "content": "No."}
    assert sent(replace(message, content="But")) == {
        "role": "assistant",
        "content": "But",
    }


def test_parts() -> None:
    """Pictures by address or data, sounds by data, documents as files or text."""
    parts = (
        Part.text("See:"),
        Part.image("https://example.com/a.png"),
        Part.image("data:image/png;base64,AAAA"),
        Part.audio("data:audio/mpeg;base64,AAAA"),
        Part.file("data:application/pdf;name=my%20report.pdf;base64,JVBERg=="),
        Part.file("data:application/pdf;base64,JVBERg=="),
        Part.file("data:text/csv;name=t.csv;base64,YSxi"),
        Part.file("data:application/json;base64,e30="),
    )

    assert encode(Message("user", parts))["messages"][0]["content"] == [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {
            "type": "file",
            "file": {
                "filename": "my report.pdf",
                "file_data": "data:application/pdf;base64,JVBERg==",
            },
        },
        {
            "type": "file",
            "file": {
                "filename": "file.pdf",
                "file_data": "data:application/pdf;base64,JVBERg==",
            },
        },
        {"type": "text", "text": "t.csv:\na,b"},
        {"type": "text", "text": "{}"},
    ]


def test_files_by_address() -> None:
    """A file may be named by its address at the hosts that fetch it."""
    message = Message("user", (Part.file("https://example.com/a.pdf"),))

    body = encode(message, facts=ModelFacts(file_urls=True))

    assert body["messages"][0]["content"][0]["file"]["file_data"] == (
        "https://example.com/a.pdf"
    )
    with pytest.raises(CapabilityError, match="by its address"):
        encode(message)


def test_parts_in_other_messages() -> None:
    """Only a user shows pictures; parts of text may stand anywhere."""
    image = Part.image("https://example.com/a.png")
    text = Message("tool", (Part.text("a"), Part.text("b")), tool_call_id="c")

    assert sent(text)["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    with pytest.raises(CapabilityError, match="'tool'"):
        sent(Message("tool", (image,), tool_call_id="c"))
    with pytest.raises(CapabilityError, match="nothing but text from the assistant"):
        sent(Message("assistant", (Part.text("Look:"), image)))


@pytest.mark.parametrize(
    ("mark", "cache", "found"),
    [
        ("cache_control", {}, {"type": "ephemeral"}),
        ("cache_control", {"ttl": "1h"}, {"type": "ephemeral", "ttl": "1h"}),
        ("prompt_cache_breakpoint", {"type": "ephemeral"}, {"mode": "explicit"}),
    ],
)
def test_cache_mark(mark: str, cache: Any, found: Any) -> None:
    """A mark stands on the last part, in the host's word; others never see it."""
    message = Message("system", "Long.", cache=cache)

    body = encode(message, facts=ModelFacts(cache_mark=mark))

    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "Long.", mark: found}
    ]
    assert encode(message)["messages"][0]["content"] == "Long."


def test_short_ids_of_calls() -> None:
    """A host that takes ids of nine characters only gets such, for call and reply."""
    made = (ToolCall("call_1", "f"), ToolCall("aB3456789", "g"))
    messages = (
        Message("assistant", tool_calls=made),
        Message("tool", "1", tool_call_id="call_1"),
        Message("tool", "2", tool_call_id="aB3456789"),
    )

    said = encode(*messages, facts=ModelFacts(short_call_ids=True))["messages"]

    first, second = (call["id"] for call in said[0]["tool_calls"])
    assert len(first) == 9
    assert first.isalnum()
    assert second == "aB3456789"
    assert [reply["tool_call_id"] for reply in said[1:]] == [first, second]
    assert encode(*messages)["messages"][1]["tool_call_id"] == "call_1"


# What a host wants to see again.


def with_native(item: Any, **fields: Any) -> Message:
    fields.setdefault("content", "Yes")
    native = {"format": "chat", "items": [item]}
    return Message("assistant", native=native, **fields)


def test_echo_of_details() -> None:
    """Reasoning details go back unchanged to a host that gave them."""
    details = [{"type": "reasoning.encrypted", "data": "x", "index": 0}]
    item = {"content": "Yes", "reasoning_details": details}

    assert sent(with_native(item))["reasoning_details"] == details
    assert "reasoning_details" not in sent(with_native(item), OPENAI)
    assert "reasoning_details" not in sent(with_native(item, content="No"))


@pytest.mark.parametrize(
    "native",
    [
        None,
        {"format": "other", "items": [{"content": "Yes", "extra_content": 1}]},
        {"format": "chat", "items": []},
        {"format": "chat", "items": "x"},
        {"format": "chat", "items": ["x"]},
        {"format": "chat"},
    ],
)
def test_native_of_no_use(native: Any) -> None:
    """Another format's items, or a broken record, leave no trace."""
    message = Message("assistant", "Yes", native=native)

    assert sent(message) == {"role": "assistant", "content": "Yes"}


def test_echo_of_thought_beside_calls() -> None:
    """A thought goes back with the calls of the running turn, and nowhere else."""
    call = ToolCall("c", "f")
    thought = Message("assistant", "", tool_calls=(call,), reasoning=Reasoning("Hm."))
    reply = Message("tool", "1", tool_call_id="c")

    running = encode(Message("user", "Hi"), thought, reply)["messages"]
    over = encode(Message("user", "Hi"), thought, reply, Message("user", "And?"))

    assert running[1]["reasoning_content"] == "Hm."
    assert "reasoning_content" not in over["messages"][1]
    assert "reasoning_content" not in sent(replace(thought, tool_calls=()))
    assert "reasoning_content" not in sent(replace(thought, reasoning=None))


def test_echo_of_signatures() -> None:
    """A signature on a call goes back on that call, whatever id it has got."""
    function = {"name": "f", "arguments": "{}"}
    item = {
        "content": "",
        "extra_content": {"google": {"thought_signature": "m"}},
        "tool_calls": [
            {"id": "", "function": function, "extra_content": {"google": 1}},
            {"id": "", "function": function},
        ],
    }
    twice = (ToolCall("call_1", "f"), ToolCall("call_2", "f"))

    found = sent(with_native(item, content="", tool_calls=twice))

    assert found["extra_content"] == {"google": {"thought_signature": "m"}}
    assert [call.get("extra_content") for call in found["tool_calls"]] == [
        {"google": 1},
        None,
    ]


def test_pieces_of_details_without_numbers() -> None:
    """Details without index and id are joined to the last one of their type."""
    text = {"type": "reasoning.text", "text": "A"}
    events = [
        delta(reasoning_details=[text, {"type": "reasoning.text", "text": "B"}]),
        delta(reasoning_details=[{"type": "x", "id": "i", "data": "d"}]),
        delta(reasoning_details=[{"type": "x", "id": "i", "data": None}, text, "?"]),
    ]

    found: Any = join(feed(*events, "[DONE]")).native

    assert found["items"][0]["reasoning_details"] == [
        {"type": "reasoning.text", "text": "AB"},
        {"type": "x", "id": "i", "data": "d"},
        {"type": "reasoning.text", "text": "A"},
    ]


# Answers.


def test_decode_text() -> None:
    """Text, usage, model, and the rest under the host's names."""
    found = decode(
        {"role": "assistant", "content": "Hi", "refusal": None, "annotations": []},
        id="x",
        object="chat.completion",
        model="m-1",
        usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        citations=["u"],
    )

    assert found == Response(
        "Hi",
        model="m-1",
        usage=Usage.of(input=3, output=2, total=5),
        extra={"id": "x", "citations": ["u"]},
    )


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("", "{}"),
        (" \n", "{}"),
        (None, "{}"),
        ({"a": 1}, '{"a": 1}'),
        ('{"a": ', '{"a": '),
    ],
)
def test_decode_arguments(arguments: Any, found: str) -> None:
    """Nothing means no arguments; an object is written as text; malformed stays."""
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}

    whole = decode({"content": None, "tool_calls": [call]}, "stop")
    streamed = join(feed(calls({"index": 0, **call}), "[DONE]"))

    expected = Response("", (ToolCall("c", "f", found),), finish_reason="tool_calls")
    assert whole == expected
    assert streamed == expected


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "stop"),
        ("", "stop"),
        (None, "stop"),
        ("eos_token", "stop"),
        (7, "stop"),
    ],
)
def test_finish(raw: Any, found: str) -> None:
    """Unknown and missing reasons are a stop; without calls there is no call."""
    assert decode({"content": "x"}, raw).finish_reason == found


def test_finish_at_the_end_of_the_window() -> None:
    """What cut an answer, if not the limit of tokens, is said."""
    whole = decode({"content": "x"}, "model_length")

    assert "the model's window was full" in str(whole.cut_note)
    assert join(feed(delta("model_length", content="x"))) == whole
    assert decode({"content": "x"}, "length").cut_note is None


@pytest.mark.parametrize("raw", ["stop", "function_call", "tool_calls", "", None])
def test_calls_win_over_stop(raw: Any) -> None:
    """Where there are calls, the reason is the calls, but not over a cut."""
    message = {"tool_calls": [{"id": "c", "function": {"name": "f"}}]}

    assert decode(message, raw).finish_reason == "tool_calls"
    assert decode(message, "length").finish_reason == "length"


def test_refusal() -> None:
    """A refusal is a finish of its own, whole and streamed."""
    whole = decode({"content": None, "refusal": "No."}, "stop")
    streamed = join(feed(delta(refusal="N"), delta(refusal="o."), delta("stop")))

    assert whole == Response(finish_reason="refusal", refusal="No.")
    assert streamed == whole


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning(key: str) -> None:
    """Thought comes under two names."""
    whole = decode({"content": "4", key: "2+2"})
    streamed = join(
        feed(delta(**{key: "2+"}), delta(content="4", **{key: "2"}), "[DONE]")
    )

    assert (whole.reasoning, whole.content) == (Reasoning("2+2"), "4")
    assert (streamed.reasoning, streamed.content) == (Reasoning("2+2"), "4")


def test_content_lists() -> None:
    """Mistral's lists hold thought and text; what is neither is left out."""
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Y"},
        "es",
        {"type": "reference", "reference_ids": [1]},
        7,
    ]

    whole = decode({"content": content})
    streamed = join(feed(delta(content=content), delta(content=""), "[DONE]"))

    expected = Response("Yes", reasoning=Reasoning("Hm."))
    assert whole == expected
    assert streamed == expected


def test_reasoning_details() -> None:
    """Details are read, joined, and kept as they came for the host to see again."""
    parts = [
        {"type": "reasoning.text", "text": "A", "index": 0, "signature": ""},
        {"type": "reasoning.text", "text": "B", "index": 0},
        {"type": "reasoning.text", "signature": "s", "index": 0, "x": 1},
        {"type": "reasoning.encrypted", "data": "d", "index": 1},
    ]

    found = join(
        feed(*(delta(content="", reasoning_details=[p]) for p in parts), "[DONE]")
    )

    detail = ReasoningDetail(type="reasoning.text", index=0, text="AB", signature="s")
    other = ReasoningDetail(type="reasoning.encrypted", index=1, data="d")
    assert found.reasoning == Reasoning("", (detail, other))
    assert found.native == {
        "format": "chat",
        "items": [
            {
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "text": "AB",
                        "index": 0,
                        "signature": "s",
                        "x": 1,
                    },
                    parts[3],
                ],
                "content": "",
            }
        ],
    }


def test_details_in_one_place() -> None:
    """Details of two kinds are two, whatever index they have; whole ones stay whole."""
    summary = {"type": "reasoning.summary", "summary": "A", "index": 0}
    secret = {"type": "reasoning.encrypted", "data": "d", "index": 0, "id": "rs_1"}
    bare = [{"type": "reasoning.text", "text": text} for text in ("A", "B")]

    whole = decode({"content": "", "reasoning_details": [summary, secret]})
    streamed = join(
        feed(*(delta(reasoning_details=[d]) for d in (summary, secret)), delta("stop"))
    )
    plain = decode({"content": "", "reasoning_details": bare})

    assert whole.native is not None and plain.native is not None
    assert whole.native["items"][0]["reasoning_details"] == [summary, secret]
    assert streamed == whole
    assert plain.native["items"][0]["reasoning_details"] == bare


def test_native_goes_round() -> None:
    """What a host said beside its calls comes back to it, whole or streamed."""
    call = {
        "id": "",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "s"}},
    }
    message = {"content": "", "reasoning_content": "Hm.", "tool_calls": [call]}

    whole = decode(message)
    streamed = join(feed(delta(**message), "[DONE]"))

    assert streamed.native == whole.native
    echoed = sent(streamed.to_message())
    assert echoed["reasoning_content"] == "Hm."
    assert echoed["tool_calls"][0]["extra_content"] == call["extra_content"]


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        (None, Usage()),
        ({}, Usage()),
        ("many", Usage()),
        ({"prompt_tokens": "3"}, Usage()),
        ({"prompt_tokens": 3.0, "completion_tokens": True}, Usage.of(input=3)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
                "completion_tokens_details": {"reasoning_tokens": 3},
                "cost": 0.5,
            },
            Usage.of(
                input=10,
                output=5,
                total=15,
                cached=4,
                cache_write=2,
                reasoning=3,
                cost=0.5,
            ),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 18,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage.of(input=10, output=8, total=18, reasoning=3),
        ),
        ({"prompt_tokens": 3, "cost": float("nan")}, Usage.of(input=3)),
        ({"prompt_tokens": 3, "cost": 10**400}, Usage.of(input=3)),
        ({"prompt_tokens": 3, "cost": True}, Usage.of(input=3)),
        ({"prompt_tokens": -3, "completion_tokens": 10**30}, Usage()),
        (
            {
                "prompt_tokens": 10,
                "prompt_cache_hit_tokens": 6,
                "prompt_tokens_details": None,
                "completion_tokens_details": None,
            },
            Usage.of(input=10, cached=6),
        ),
    ],
)
def test_usage(usage: Any, found: Usage) -> None:
    """Numbers are read where they are numbers; xAI's reasoning comes on top."""
    assert decode({"content": "x"}, usage=usage).usage == found
    assert join(feed(delta("stop", content="x"), {"usage": usage})).usage == found


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        {},
        {"choices": []},
        {"choices": [7]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {"content": 7}}]},
        {"choices": [{"message": {"tool_calls": [{"id": "c"}]}}]},
    ],
)
def test_answers_that_cannot_be_read(body: Any) -> None:
    """An answer without what makes it one is refused, and shown."""
    with pytest.raises(ProtocolError, match=r"an? (answer|choice|tool)|content"):
        CHAT.decode(body, FACTS)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "bad", "code": 502}},
        {"choices": [{"error": {"message": "bad", "code": 502}, "delta": {}}]},
    ],
)
def test_error_inside_an_answer(body: Any) -> None:
    """An error may come with status 200: beside the choices or in one."""
    for call in (lambda: CHAT.decode(body, FACTS), lambda: feed(body)):
        with pytest.raises(ServerError, match="bad") as caught:
            call()
        assert caught.value.status == 502


def test_finish_reason_error() -> None:
    """A finish that says error is one."""
    with pytest.raises(ServerError):
        decode({"content": "x"}, "error")
    with pytest.raises(ServerError):
        feed(delta("error", content="x"))


def test_other_choices_are_left_out() -> None:
    """Only the first answer is read, though several were asked for."""
    choices = [
        {"index": 1, "message": {"content": "b"}, "delta": {"content": "b"}},
        {"index": 0, "message": {"content": "a"}, "delta": {"content": "a"}},
    ]

    assert CHAT.decode({"choices": choices}, FACTS).content == "a"
    assert join(feed({"choices": choices}, "[DONE]")).content == "a"


# Streams.


def test_stream_of_text() -> None:
    """Text comes as it arrives; what is known at the end comes last."""
    found = feed(
        {"choices": [], "id": "", "model": "", "prompt_filter_results": []},
        {"model": "m-1", **delta(role="assistant", content="")},
        {"model": "m-1", **delta(content="Hel")},
        "",
        delta(content="lo", role=None, refusal="", tool_calls=None),
        {"choices": [{"delta": None}]},
        {"choices": None},
        {**delta("stop"), "usage": None},
        {**delta("stop", content=""), "usage": {"prompt_tokens": 1}},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        "[DONE]",
    )

    assert found == [
        Chunk("Hel"),
        Chunk("lo"),
        Chunk(finish_reason="stop"),
        Chunk(usage=Usage.of(input=3, output=2), model="m-1"),
    ]


def test_stream_without_finish() -> None:
    """[DONE] ends a stream that named no reason."""
    assert feed(delta(content="x"), "[DONE]") == [
        Chunk("x"),
        Chunk(finish_reason="stop"),
    ]


def test_stream_without_end_mark() -> None:
    """Without a reason and without [DONE] it is cut; the error has the text."""
    with pytest.raises(StreamCutError, match="7 characters") as caught:
        feed(delta(content="partial"), {"usage": {"prompt_tokens": 3}})

    assert caught.value.partial == "partial"
    assert caught.value.usage == Usage.of(input=3)


def test_stream_error() -> None:
    """An error ends the stream, by its key or by the event's name."""
    decoder = CHAT.decoder(FACTS)
    decoder.feed(json.dumps({"choices": [], "usage": {"prompt_tokens": 3}}), "")

    with pytest.raises(StatusError, match="tool use") as caught:
        decoder.feed('{"message": "tool use", "status_code": 400}', "error")

    assert (caught.value.status, caught.value.usage) == (400, Usage.of(input=3))


@pytest.mark.parametrize(
    "data", ["{", "7", "[]", "[" * 100_000, '{"a": ' * 5000, "nonsense"]
)
def test_events_that_cannot_be_read(data: str) -> None:
    """What is no JSON object is refused, however deep it goes."""
    with pytest.raises(ProtocolError):
        feed(data, end=False)


def named(id: str, name: str) -> Chunk:
    return Chunk(tool_call_named=ToolCall(id, name, ""))


def args(id: str, name: str, text: str) -> Chunk:
    return Chunk(tool_call_arguments=ToolCallDelta(id, name, text))


def whole(id: str, name: str, text: str) -> Chunk:
    return Chunk(tool_call=ToolCall(id, name, text))


def test_streamed_calls() -> None:
    """A call is complete when the next begins, the last one at the finish."""
    found = feed(
        calls(piece(0, "c1", "f", "")),
        calls(piece(0, args='{"a":')),
        calls(piece(0, args="1}")),
        calls(piece(1, "c2", "g", "{}")),
        delta("tool_calls"),
        "[DONE]",
    )

    assert found == [
        named("c1", "f"),
        args("c1", "f", '{"a":'),
        args("c1", "f", "1}"),
        whole("c1", "f", '{"a":1}'),
        named("c2", "g"),
        args("c2", "g", "{}"),
        whole("c2", "g", "{}"),
        Chunk(finish_reason="tool_calls"),
    ]


def test_interleaved_calls() -> None:
    """Calls announced first and filled in turns are complete at the end only."""
    found = feed(
        calls(piece(0, "c1", "f", ""), piece(1, "c2", "f", "")),
        calls(piece(0, args='{"a":'), piece(1, args='{"b":')),
        calls(piece(1, args="2}"), piece(0, args="1}")),
        delta("stop"),
    )

    assert found[-3:] == [
        whole("c1", "f", '{"a":1}'),
        whole("c2", "f", '{"b":2}'),
        Chunk(finish_reason="tool_calls"),
    ]
    assert all(chunk.tool_call is None for chunk in found[:-3])


@pytest.mark.parametrize(
    ("events", "found"),
    [
        # No index, no type, the whole call in the finish chunk (Mistral).
        (
            [calls(piece(None, "c1", "f", "{}"), finish="tool_calls")],
            [("c1", "f", "{}")],
        ),
        # No index, and what has no id belongs to the last call.
        (
            [
                calls(piece(None, "c1", "f", '{"a"')),
                calls(piece(None, None, None, ":1}")),
                calls(piece(None, "c2", "g", "")),
                calls(piece(None, "c2", None, "{}")),
            ],
            [("c1", "f", '{"a":1}'), ("c2", "g", "{}")],
        ),
        # Neither index nor ids, each call whole.
        (
            [calls(piece(None, None, "f", '{"a":1}'), piece(None, None, "f", "{}"))],
            [("call_1", "f", '{"a":1}'), ("call_2", "f", "{}")],
        ),
        # The index starts at 1, and a piece without anything comes last.
        (
            [
                calls(piece(1, "c1", "f", "")),
                calls(piece(1, args="{}")),
                calls(piece(1)),
            ],
            [("c1", "f", "{}")],
        ),
        # Id and name in every piece.
        (
            [calls(piece(0, "c1", "f", t)) for t in ('{"a"', ": {}", "}")],
            [("c1", "f", '{"a": {}}')],
        ),
        # Id and name empty in later pieces.
        (
            [calls(piece(0, "c1", "f", "{")), calls(piece(0, "", "", "}"))],
            [("c1", "f", "{}")],
        ),
        # All at index 0: the id decides.
        (
            [calls(piece(0, f"c{i}", "f", '{"i": 0}')) for i in range(3)],
            [(f"c{i}", "f", '{"i": 0}') for i in range(3)],
        ),
        # All at index 0 and no ids: a name after a whole call begins another.
        (
            [calls(piece(0, "", "f", '{"i": 0}')) for _ in range(3)],
            [(f"call_{i}", "f", '{"i": 0}') for i in (1, 2, 3)],
        ),
        # The name after the first arguments.
        (
            [calls(piece(0, "c1", None, '{"a"')), calls(piece(0, None, "f", ":1}"))],
            [("c1", "f", '{"a":1}')],
        ),
        # Arguments missing, null or empty.
        (
            [calls(piece(0, "c1", "f"), piece(1, "c2", "g", ""))],
            [("c1", "f", "{}"), ("c2", "g", "{}")],
        ),
        # Two calls under one id, at an index each, in turns.
        (
            [
                calls(piece(0, "c", "f", "")),
                calls(piece(1, "c", "f", "")),
                calls(piece(1, None, None, '{"i": 2}')),
                calls(piece(0, None, None, '{"i": 1}')),
            ],
            [("c", "f", '{"i": 1}'), ("call_2", "f", '{"i": 2}')],
        ),
        # A call without a name or arguments is none.
        ([calls(piece(0, "c1", "f", "{}"), piece(1, "c2"))], [("c1", "f", "{}")]),
        # Blanks after a whole call.
        (
            [
                calls(piece(0, "c1", "f", "{}")),
                calls(piece(1, "c2", "f", "{}")),
                calls(piece(0, None, None, " ")),
            ],
            [("c1", "f", "{}"), ("c2", "f", "{}")],
        ),
        # Calls after the finish.
        (
            [delta("stop"), calls(piece(0, "c1", "f", "{}"))],
            [("c1", "f", "{}")],
        ),
    ],
)
def test_call_quirks(events: list[Any], found: list[Any]) -> None:
    """However hosts cut their calls, they are put together again."""
    response = join(feed(*events, "[DONE]"))

    assert [(c.id, c.name, c.arguments) for c in response.tool_calls] == found
    assert response.finish_reason == "tool_calls"


def test_call_without_a_name() -> None:
    """Arguments for nothing are refused."""
    with pytest.raises(ProtocolError, match="without a name"):
        feed(calls(piece(0, "c1", None, '{"a": 1}')), "[DONE]")


def test_many_looks_at_arguments() -> None:
    """Arguments that seem whole again and again are looked at a few times only."""
    pieces = [piece(0, "", "f", t) for t in ["{", "}}"] + ["{", "}"] * 20]

    found = join(feed(*map(calls, pieces), "[DONE]")).tool_calls

    assert [call.arguments for call in found] == ["{}}" + "{}" * 20]


def test_json_with_blanks() -> None:
    """Blanks around an event's JSON do no harm."""
    assert join(feed(json.dumps(delta(content="x")) + " \n", "[DONE]")).content == "x"
    assert join(feed(" " + json.dumps(delta(content="x")), "[DONE]")).content == "x"


def test_data_urls() -> None:
    """A data: URL is taken apart; what is none is refused."""
    assert split_data_url("data:;base64,QQ==") == ("text/plain", "QQ==", "")
    for url in ("https://example.com", "data:text/plain", "x,data:"):
        with pytest.raises(ValueError, match="not a data: URL"):
            split_data_url(url)


# Errors.


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (400, {"error": {"message": "m", "type": "t", "code": None}}, StatusError, "m"),
        (401, {"error": {"message": "m"}}, AuthError, "m"),
        (403, {"error": "m"}, AuthError, "m"),
        (400, {"error": {"message": "API key not valid."}}, AuthError, "API key"),
        (413, None, ContextLengthError, "without a message"),
        (429, {"code": "x", "error": "m"}, RateLimitError, "m"),
        (
            429,
            {"error": {"message": "maximum context length; tokens per min"}},
            RateLimitError,
            "per min",
        ),
        (400, {"error": {"code": "context_length_exceeded"}}, ContextLengthError, ""),
        (
            400,
            {"error": {"message": "This model's maximum context length is 9"}},
            ContextLengthError,
            "is 9",
        ),
        (
            400,
            {
                "error": {
                    "message": "Provider returned error",
                    "metadata": {"raw": '{"message": "prompt is too long: 9 > 8"}'},
                }
            },
            ContextLengthError,
            "too long",
        ),
        (
            502,
            {"error": {"message": "up", "metadata": {"raw": {"a": 1}}}},
            ServerError,
            'up ({"a": 1})',
        ),
        (
            422,
            {"detail": [{"loc": ["body", "x"], "msg": "no"}, {"msg": "and"}]},
            StatusError,
            "body.x: no; and",
        ),
        (422, {"detail": "text"}, StatusError, "text"),
        (422, {"object": "error", "message": "flat"}, StatusError, "flat"),
        (400, [{"error": {"message": "in a list"}}], StatusError, "in a list"),
        (400, [], StatusError, "without a message"),
        (500, "  plain  ", ServerError, "plain"),
        (503, {"error": {"type": "unavailable_error"}}, ServerError, ""),
        (400, {"error": {"message": "m", "type": "api_error"}}, StatusError, "m"),
        (404, {"error": {"message": 7}}, StatusError, "without a message"),
    ],
)
def test_errors(status: int, body: Any, kind: Any, message: str) -> None:
    """Every shape of error body gives a message and its kind."""
    fault = CHAT.decode_error(status, {}, body)

    error = status_error(fault, status=status)

    assert type(error) is kind
    assert message in error.message


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        ({"error": {"message": "m", "code": "insufficient_quota"}}, "quota", None),
        (
            {"error": {"message": "Invalid schema for function 'f'"}},
            "schema_rejected",
            "",
        ),
        ({"error": {"code": "content_filter", "message": "x"}}, "content_filter", None),
        (
            {"error": {"code": 400, "type": "BadRequestError"}},
            "other",
            "BadRequestError",
        ),
    ],
)
def test_kinds(body: Any, kind: str, code: Any) -> None:
    """The kinds that no status tells."""
    fault = CHAT.decode_error(400, {}, body)

    assert fault.kind == kind
    if code != "":
        assert fault.code == (code or body["error"]["code"])


def test_what_groq_says_aside() -> None:
    """Beside the choices Groq has its numbers, and why a stream stopped early."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    last = {**delta("stop"), "x_groq": {"id": "req_1", "usage": usage}}
    stopped = {**delta("stop"), "x_groq": {"error": "over capacity"}}

    found = join(feed({**delta(content="Hi"), "x_groq": {"id": "req_1"}}, last))

    assert found == Response("Hi", usage=Usage.of(input=3, output=2))
    with pytest.raises(StatusError, match="over capacity"):
        feed(delta(content="Hi"), stopped)
    assert feed({**delta("stop"), "x_groq": 7}, end=False)


# Thoughts in tags.

TAGGED = ModelFacts(think_tags=True)


def tagged(text: str, cuts: Iterable[int] = ()) -> list[Response]:
    """Return what *text* decodes to, whole and in a stream that is cut there."""
    edges = [0, *sorted(cuts), len(text)]
    decoder = CHAT.decoder(TAGGED)
    chunks: list[Chunk] = []
    for start, end in zip(edges, edges[1:]):
        chunks += decoder.feed(json.dumps(delta(content=text[start:end])), "")
    chunks += decoder.feed(json.dumps(delta("stop")), "")
    chunks += decoder.end()
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return [CHAT.decode({"choices": [choice]}, TAGGED), join(chunks)]


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>Hm.</think>\n\nYes.", "Hm.", "Yes."),
        ("\n<think>\nHm.\n</think>Yes.", "\nHm.\n", "Yes."),
        ("<think>< <think> </th</think>Yes.</think>", "< <think> </th", "Yes.</think>"),
        ("<think>Hm.", "Hm.", ""),
        ("<think>Hm.</th", "Hm.</th", ""),
        ("<think></think>Yes.", "", "Yes."),
        ("<thin", "", "<thin"),
        ("  ", "", "  "),
        ("", "", ""),
        ("Yes: <think>Hm.</think>", "", "Yes: <think>Hm.</think>"),
        ("<thinking>Hm.</thinking>", "", "<thinking>Hm.</thinking>"),
        (" " * 99 + "<think>a</think>", "", " " * 99 + "<think>a</think>"),
    ],
)
def test_thoughts_in_tags(text: str, thought: str, answer: str) -> None:
    """What stands between tags before the answer is thought, however it is cut."""
    for cuts in [(), range(1, len(text)), *((n,) for n in range(len(text)))]:
        for found in tagged(text, cuts):
            said = found.reasoning.text if found.reasoning else ""
            assert (said, found.content) == (thought, answer)


def test_thoughts_of_both_kinds() -> None:
    """A thought under its own key stands before one in tags, whole and streamed."""
    message = {"reasoning_content": "A.", "content": "<think>B.</think>C."}
    choice = {"message": message, "finish_reason": "stop"}
    decoder = CHAT.decoder(TAGGED)
    chunks = [
        chunk
        for event in (delta(**message), delta("stop"))
        for chunk in decoder.feed(json.dumps(event), "")
    ]

    whole = CHAT.decode({"choices": [choice]}, TAGGED)

    assert whole == Response("C.", reasoning=Reasoning("A.B."))
    assert join([*chunks, *decoder.end()]) == whole


def test_tags_elsewhere_are_text() -> None:
    """A host that is not known to mix them gets its text as it is."""
    assert decode({"content": "<think>a</think>b"}).content == "<think>a</think>b"


def test_tags_in_a_stream_that_ends() -> None:
    """An end mark alone completes what was held back."""
    decoder = CHAT.decoder(TAGGED)
    chunks = [*decoder.feed(json.dumps(delta(content="<thi")), "")]

    assert chunks == []
    assert join(decoder.feed("[DONE]", "")).content == "<thi"


def test_echo_of_thoughts_in_tags() -> None:
    """A host that wants thoughts back in tags gets those of the running turn."""
    facts = ModelFacts(echoes=frozenset({"<think>"}))
    old, new = (
        Message("assistant", text, reasoning=Reasoning("Hm.")) for text in ("a", "b")
    )
    body = encode(Message("user", "1"), old, Message("user", "2"), new, facts=facts)

    said = [message["content"] for message in body["messages"]]
    assert said == ["1", "a", "2", "<think>Hm.</think>b"]
