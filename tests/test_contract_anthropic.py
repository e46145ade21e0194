"""Anthropic's own client: its types take our requests, it reads our local server.

Without it there is nothing to do: ``pip install anthropic``.
"""

from __future__ import annotations

from typing import Any, Iterator

import pytest

from aeye.delivery import apply_plan
from aeye.errors import RateLimitError
from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import Chunk, Response
from aeye.schema import Schema
from aeye.testing import LocalServer, ScriptedModel
from aeye.usage import Usage
from aeye.vendor import ANTHROPIC, find_facts
from aeye.wire_anthropic import MESSAGES

anthropic = pytest.importorskip("anthropic")
pydantic = pytest.importorskip("pydantic")
params = pytest.importorskip("anthropic.types.message_create_params")

PLACE = Schema({"type": "object", "properties": {"city": {"type": "string"}}})
TOOL = ToolDefinition("weather", "Weather.", parameters=PLACE)
CALL = ToolCall("toolu_1", "weather", arguments='{"city": "Paris"}')
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "P"}}
# Parameters that older models take, and the client's types no longer name.
GONE = {"temperature", "top_p", "top_k"}
HI = Message("user", "Hi")
HISTORY = (
    Message("system", "Be brief.", cache={"ttl": "1h"}),
    Message(
        "user",
        (
            Part.text("Look:"),
            Part.image("data:image/png;base64,aWNvbg=="),
            Part.image("https://example.com/a.png"),
            Part.file("data:application/pdf;name=a.pdf;base64,JVBERg=="),
            Part.file("data:text/plain;base64,YQ=="),
        ),
        cache={},
    ),
    Message(
        "assistant",
        "Let me see.",
        tool_calls=(CALL,),
        native={
            "format": "messages",
            "items": [
                THOUGHT,
                {"type": "redacted_thinking", "data": "eA=="},
                {"type": "text", "text": "Let me see."},
                {**USE, "input": {"city": "Paris"}},
            ],
        },
    ),
    Message("tool", "21", tool_call_id="toolu_1"),
    Message("user", "And?"),
)
REQUESTS = [
    Request((HI,)),
    Request(HISTORY),
    Request(
        HISTORY,
        tools=(TOOL,),
        tool_choice="auto",
        tools_one_at_a_time=True,
        response_format=ResponseFormat(PLACE),
        reason=Reason("high"),
        stop=("END",),
        user_key="u",
    ),
    Request((HI,), tools=(TOOL,), tool_choice={"tool": "weather"}, temperature=0.5),
    Request((HI,), tools=(TOOL,), tool_choice="required", reason=Reason("none")),
    Request((HI,), reason=Reason(None, 2000)),
]


def drained(value: Any) -> Any:
    """Return *value* with its lazy sequences read, which is what checks them."""
    if isinstance(value, dict):
        return {k: drained(v) for k, v in value.items()}
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return value
    return [drained(item) for item in value]


def lost(ours: Any, theirs: Any, path: str = "$") -> Iterator[str]:
    """Yield the places that the client's types do not know."""
    if isinstance(ours, dict):
        for key, value in ours.items():
            if key not in theirs:
                yield f"{path}.{key}"
            else:
                yield from lost(value, theirs[key], f"{path}.{key}")
    elif isinstance(ours, list):
        for i, (mine, other) in enumerate(zip(ours, theirs)):
            yield from lost(mine, other, f"{path}[{i}]")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("request_", REQUESTS)
def test_requests_are_of_the_official_types(request_: Request, stream: bool) -> None:
    """Every key that we send is one that the vendor's own client knows."""
    older = request_.reason == Reason(None, 2000)
    model = "claude-sonnet-4-5" if older else "claude-opus-4-6"
    facts = find_facts(ANTHROPIC, model, "messages")
    kinds = (
        params.MessageCreateParamsNonStreaming,
        params.MessageCreateParamsStreaming,
    )
    planned = apply_plan(Request(**{**vars(request_), "model": model}), facts)

    body = MESSAGES.encode(planned, facts, stream)
    adapter = pydantic.TypeAdapter(kinds[stream])  # must outlive its lazy sequences
    read = drained(adapter.validate_python(body))

    assert [p for p in lost(body, read) if p.rpartition(".")[2] not in GONE] == []


REPLY = Response(
    "On it.",
    (CALL,),
    finish_reason="tool_calls",
    reasoning=Reasoning("Hm."),
    usage=Usage.of(input=30, output=9, cached=10),
)


@pytest.fixture
def serve() -> Iterator[Any]:
    servers: list[LocalServer] = []

    def start(*replies: Any) -> Any:
        servers.append(LocalServer(ScriptedModel(*replies), format="messages"))
        return anthropic.Anthropic(api_key="x", base_url=servers[-1].url, max_retries=0)

    yield start
    for server in servers:
        server.close()


ASK = {
    "model": "claude-opus-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hi"}],
}


def check(message: Any) -> None:
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    thought, text, use = message.content
    assert (thought.thinking, text.text) == ("Hm.", "On it.")
    assert (use.id, use.name, use.input) == ("toolu_1", "weather", {"city": "Paris"})
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (20, 9)
    assert message.usage.cache_read_input_tokens == 10


def test_official_client_reads_a_whole_answer(serve: Any) -> None:
    """The vendor's client reads what the local server says."""
    check(serve(REPLY).messages.create(**ASK))


def test_official_client_reads_a_stream(serve: Any) -> None:
    """The vendor's client puts the local server's stream together."""
    with serve(REPLY).messages.stream(**ASK) as stream:
        check(stream.get_final_message())


def test_official_client_reads_errors(serve: Any) -> None:
    """Errors are those of the vendor, whole and within a stream."""
    error = RateLimitError("Slow.", status=429)
    client = serve(error, [Chunk("x"), error])

    with pytest.raises(anthropic.RateLimitError):
        client.messages.create(**ASK)
    with (
        client.messages.stream(**ASK) as stream,
        pytest.raises(anthropic.APIStatusError, match="Slow"),
    ):
        stream.get_final_message()
