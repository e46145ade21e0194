"""The Responses format from the server's side, by itself and asked by our client."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, List

import pytest

import aeye
from aeye.errors import RateLimitError, ServerError, StreamCutError
from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import Chunk, Response, ToolCallDelta, join
from aeye.schema import Schema
from aeye.testing import LocalServer, ScriptedModel, calls, pieces
from aeye.testing_responses import (
    decode_responses,
    encode_responses,
    encode_responses_error,
    encode_responses_events,
)
from aeye.usage import Usage

OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}}


def events(chunks: Any, **body: Any) -> list[Any]:
    """Return the events of a stream; the lines' form is checked on the way."""
    found = []
    for i, block in enumerate(encode_responses_events(chunks, body)):
        name, data, *rest = block.decode().split("\n")
        value = json.loads(data[6:])
        assert (name, data[:6], rest) == (f"event: {value['type']}", "data: ", ["", ""])
        assert value.pop("sequence_number") == i
        found.append(value)
    return found


def kinds(found: list[Any]) -> list[str]:
    return [event["type"].partition(".")[2] for event in found]


# Requests.


def test_plain_request() -> None:
    """A text is what the user says."""
    assert decode_responses({"model": "m", "input": "Hi"}) == Request(
        (Message("user", "Hi"),), model="m"
    )


def test_whole_request() -> None:
    """Every setting is read, and both forms of instructions are."""
    found = decode_responses(
        {
            "model": "m",
            "instructions": "Be brief.",
            "input": [{"role": "developer", "content": "Now."}],
            "tools": [
                {
                    "type": "function",
                    "name": "f",
                    "parameters": OBJECT,
                    "strict": False,
                },
                {"type": "function", "name": "g", "description": "G."},
            ],
            "tool_choice": {"type": "function", "name": "f"},
            "parallel_tool_calls": False,
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "out",
                    "schema": OBJECT,
                    "strict": True,
                }
            },
            "reasoning": {"effort": "low"},
            "temperature": 0.5,
            "top_p": 0.5,
            "max_output_tokens": 50,
            "prompt_cache_key": "c",
            "safety_identifier": "u",
        }
    )

    assert found == Request(
        (Message("system", "Be brief."), Message("system", "Now.")),
        model="m",
        name="out",
        tools=(
            ToolDefinition("f", "", Schema(OBJECT), strict=False),
            ToolDefinition("g", "G.", Schema({"type": "object"}), strict=True),
        ),
        tool_choice={"tool": "f"},
        tools_one_at_a_time=True,
        response_format=ResponseFormat(
            Schema(OBJECT), strict=True, schema_delivery="structured"
        ),
        temperature=0.5,
        top_p=0.5,
        max_tokens=50,
        reason=Reason("low"),
        cache_key="c",
        user_key="u",
    )


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"type": "text"}, "text"),
        ({"type": "json_object"}, ResponseFormat(Schema({"type": "object"}))),
        (None, "text"),
    ],
)
def test_other_formats(form: Any, expected: Any) -> None:
    """Without a schema the answer is text, or any object."""
    found = decode_responses({"input": "Hi", "text": {"format": form}})

    assert found.response_format == expected


def test_items() -> None:
    """The items of one turn are one message, and parts are parts."""
    part = {"type": "output_text", "text": "Well", "annotations": []}
    made = {"type": "function_call", "name": "f", "arguments": "{}"}
    summary = [{"type": "summary_text", "text": text} for text in ("A.", "B.")]
    items = [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See"},
                {"type": "input_image", "image_url": "https://x/a.png"},
                {"type": "input_file", "file_url": "https://x/a.pdf"},
                {"type": "input_file", "file_data": "data:,x"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": summary},
        {"type": "message", "role": "assistant", "content": [part]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {**made, "call_id": "a"},
        {**made, "call_id": "b"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {
            "type": "function_call_output",
            "call_id": "b",
            "output": [{"type": "input_text", "text": "2"}],
        },
        {"role": "assistant", "content": "Done."},
    ]

    assert decode_responses({"input": items}).messages == (
        Message(
            "user",
            (
                Part.text("See"),
                Part.image("https://x/a.png"),
                Part.file("https://x/a.pdf"),
                Part.file("data:,x"),
            ),
        ),
        Message(
            "assistant",
            "Well",
            refusal="No.",
            reasoning=Reasoning("A.\n\nB."),
            tool_calls=(ToolCall("a", "f"), ToolCall("b", "f")),
        ),
        Message("tool", "1", tool_call_id="a"),
        Message("tool", (Part.text("2"),), tool_call_id="b"),
        Message("assistant", "Done."),
    )


@pytest.mark.parametrize(
    "item",
    [
        {"type": "item_reference", "id": "x"},
        {"role": "user", "content": [{"type": "input_audio"}]},
    ],
)
def test_items_that_are_not_known(item: Any) -> None:
    """What is not known is an error, which the server answers with 400."""
    with pytest.raises(ValueError, match="of type"):
        decode_responses({"input": [item]})


# Answers.


def test_answer() -> None:
    """Thoughts, text and calls are items; usage has its details."""
    response = Response(
        "Hi.",
        (ToolCall("c1", "f", '{"a": 1}'), ToolCall("c2", "g", "")),
        finish_reason="tool_calls",
        reasoning=Reasoning("Hm."),
        usage=Usage.of(input=9, output=5, cached=4, cache_write=1, reasoning=2),
        model="m-1",
    )

    found = encode_responses(
        response, {"model": "m", "include": ["reasoning.encrypted_content"]}
    )

    assert (found["status"], found["model"]) == ("completed", "m-1")
    assert (found["tools"], found["parallel_tool_calls"]) == ([], True)
    text = {"type": "output_text", "text": "Hi.", "annotations": [], "logprobs": []}
    made = {"type": "function_call", "status": "completed"}
    assert found["output"] == [
        {
            "id": "rs_0",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "local 0",
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        },
        {**made, "id": "fc_2", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
        {**made, "id": "fc_3", "call_id": "c2", "name": "g", "arguments": ""},
    ]
    assert found["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 14,
    }


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_finish(finish: Any, status: str, reason: Any) -> None:
    """What was cut is incomplete, and the reason says why."""
    found = encode_responses(Response("x", finish_reason=finish), {})

    details = None if reason is None else {"reason": reason}
    assert (found["status"], found["incomplete_details"]) == (status, details)


def test_error() -> None:
    """An error has a type, and a code where there is one."""
    slow = RateLimitError("Slow.", status=429, code="rate_limit_exceeded")

    assert encode_responses_error(slow, 429) == {
        "error": {
            "message": "Slow.",
            "type": "invalid_request_error",
            "param": None,
            "code": "rate_limit_exceeded",
        }
    }
    assert encode_responses_error(StreamCutError("?"), 500)["error"]["code"] is None


# Streams.


def test_stream_of_text() -> None:
    """An item is announced, filled and completed; the last event has it all."""
    found = events(pieces("He", "llo", usage=Usage.of(input=1, output=2)), model="m")

    assert kinds(found) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert found[0]["response"]["status"] == "in_progress"
    assert found[2]["item"]["content"] == []
    assert found[3]["part"]["text"] == ""
    assert found[4] == {
        "type": "response.output_text.delta",
        "item_id": "msg_0",
        "output_index": 0,
        "content_index": 0,
        "delta": "He",
        "logprobs": [],
    }
    last = found[-1]["response"]
    assert last["output"] == [found[-2]["item"]]
    assert last["output"][0]["content"][0]["text"] == "Hello"
    assert last["usage"]["total_tokens"] == 3


def test_stream_of_everything() -> None:
    """Each kind of text has an item of its own, calls may be made side by side."""
    chunks = [
        Chunk(reasoning=Reasoning("Hm.")),
        Chunk("Well."),
        Chunk(refusal="No."),
        Chunk(tool_call_named=ToolCall("a", "f", "")),
        Chunk(tool_call_named=ToolCall("b", "g", "")),
        Chunk(tool_call_arguments=ToolCallDelta("b", "g", "{")),
        Chunk(tool_call_arguments=ToolCallDelta("a", "f", "{}")),
        Chunk(tool_call_arguments=ToolCallDelta("b", "g", '{"x": 1}', mode="replace")),
        Chunk(tool_call=ToolCall("a", "f", "{}")),
        Chunk(tool_call=ToolCall("a", "f", "{}")),
        Chunk("More.", finish_reason="tool_calls", model="m-2"),
    ]

    found = events(chunks)

    done = [e for e in found if e["type"] == "response.output_item.done"]
    assert [e["output_index"] for e in done] == [0, 1, 2, 3, 5, 4, 6]
    assert found[-1]["response"]["model"] == "m-2"
    output = found[-1]["response"]["output"]
    assert [item["id"] for item in output] == [
        *("rs_0", "msg_1", "msg_2", "fc_3", "fc_4", "fc_5", "msg_6")
    ]
    assert [i.get("arguments") for i in output[3:6]] == ["{}", '{"x": 1}', "{}"]
    arguments = [e["delta"] for e in found if e["type"].endswith("arguments.delta")]
    assert arguments == ["{", "{}", '"x": 1}', "{}"]


def test_arguments_cannot_be_taken_back() -> None:
    """What has been sent has been sent."""
    chunks = [
        Chunk(tool_call_arguments=ToolCallDelta("a", "f", "{}")),
        Chunk(tool_call_arguments=ToolCallDelta("a", "f", "[]", mode="replace")),
    ]

    with pytest.raises(ValueError, match="cannot be replaced"):
        events(chunks)


def test_stream_that_was_cut() -> None:
    """Without a finish reason there is no end."""
    found = events(pieces("He", finish=None))

    assert kinds(found)[-1] == "output_text.delta"


# Our client against it.


@dataclass
class Advice:
    text: str
    scores: List[int]


@aeye.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def connect(server: LocalServer, **fields: Any) -> aeye.Context:
    fields = {"format": "responses", "api_key": "none", "max_retries": 0, **fields}
    return aeye.connect("openai:gpt-5-mini", base_url=server.url, **fields)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_run_over_a_socket(blocking: bool) -> None:
    """Tools, a typed answer and the thoughts of earlier turns pass through both."""
    thinking = calls(("add", {"a": 1, "b": 2}, "c1"), text="Let me see.")
    model = ScriptedModel(
        Response(
            thinking.content,
            thinking.tool_calls,
            finish_reason="tool_calls",
            reasoning=Reasoning("I should add."),
        ),
        '{"text": "Three.", "scores": [3]}',
    )
    prompt = aeye.Prompt("sum", "Add.", tools=[add], schema=Advice)

    with LocalServer(model, format="responses") as server, connect(server) as ctx:
        answer = prompt({}, ctx.replace(**{"stream" if blocking else "execute": None}))

    assert answer == Advice("Three.", [3])
    assert server.errors == []
    first, second = server.bodies
    assert first["instructions"] == "Add."
    assert (first["store"], first.get("stream", False)) == (False, not blocking)
    assert first["tools"][0]["strict"] is True
    assert [item.get("type") for item in second["input"]] == [
        *(None, "reasoning", "message", "function_call", "function_call_output")
    ]
    assert second["input"][1]["encrypted_content"] == "local 0"
    assert second["input"][4] == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "3",
    }
    assert server.requests[1].messages[2].reasoning == Reasoning("I should add.")


def test_streaming_and_blocking_say_the_same() -> None:
    """Whichever way the server answers, the response is the same."""
    response = Response(
        "Hi.",
        (ToolCall("c1", "f", '{"a": 1}'),),
        finish_reason="tool_calls",
        reasoning=Reasoning("Hm."),
        usage=Usage.of(input=3, output=4, cached=0, reasoning=1, total=7),
        model="m-1",
    )
    request = Request((Message("user", "Hi"),))

    with LocalServer(ScriptedModel(response), format="responses") as server:
        ctx = connect(server)
        whole, streamed = ctx.execute(request, ctx), join(ctx.stream(request, ctx))
        ctx.close()

    assert (whole.content, whole.tool_calls) == (response.content, response.tool_calls)
    assert whole.reasoning == response.reasoning
    assert (streamed.usage, streamed.native) == (whole.usage, whole.native)
    assert streamed.tool_calls == whole.tool_calls
    assert streamed.finish_reason == whole.finish_reason


def test_errors_over_a_socket() -> None:
    """Errors keep their kind, before a stream and inside it."""
    model = ScriptedModel(
        RateLimitError("Slow.", status=429, retry_after=3.0),
        [Chunk("He"), ServerError("Oh.", status=500, code="server_error")],
        [Chunk("He"), StreamCutError("gone")],
    )
    request = Request((Message("user", "Hi"),))

    with LocalServer(model, format="responses") as server:
        ctx = connect(server)
        with pytest.raises(RateLimitError) as limited:
            ctx.execute(request, ctx)
        with pytest.raises(ServerError, match=r"Oh\."):
            list(ctx.stream(request, ctx))
        with pytest.raises(StreamCutError) as cut:
            list(ctx.stream(request, ctx))
        ctx.close()

    assert limited.value.retry_after == 3.0
    assert cut.value.partial == "He"
