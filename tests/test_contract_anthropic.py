"""Anthropic's own client: its types take our requests, it reads our local server.

Without it there is nothing to do: ``pip install anthropic``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.errors import RateLimitError
from aeye.message import Reasoning, ToolCall
from aeye.response import Chunk, Response
from aeye.testing import LocalServer, ScriptedModel
from aeye.usage import Usage

sys.path.insert(0, str(Path(__file__).parent))

from official import (
    Replay,
    Told,
    bytes_of,
    drained,
    lost,
    requests,
    responses,
    sent,
    summed_up,
)

anthropic = pytest.importorskip("anthropic")
pydantic = pytest.importorskip("pydantic")
params = pytest.importorskip("anthropic.types.message_create_params")
# We warn of schemas that cannot go out strictly.
pytestmark = pytest.mark.filterwarnings("ignore:.*strict=True")

CALL = ToolCall("toolu_1", "weather", arguments='{"city": "Paris"}')
# Parameters that older models take, and the client's types no longer name.
GONE = {"$.temperature", "$.top_p"}
MODELS = [
    "anthropic:claude-3-5-haiku-latest",
    "anthropic:claude-fable-5",
    "anthropic:claude-opus-4-6",
    "anthropic:claude-opus-5",
    "anthropic:claude-sonnet-4-5",
    "anthropic:claude-sonnet-5-5",
    "llamacpp:default",
]
# What all models together are to be asked for; else the draw is too thin.
EVERYTHING = {
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_p",
}
# They must outlive the lazy sequences that they make.
TYPES = [
    pydantic.TypeAdapter(params.MessageCreateParamsNonStreaming),
    pydantic.TypeAdapter(params.MessageCreateParamsStreaming),
]


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
def test_requests(name: str, data: st.DataObject) -> None:
    """The official types take our body, and know each key of it at every depth."""
    request = data.draw(requests(name, "messages"))
    stream = data.draw(st.booleans())

    body = sent(name, "messages", request, stream)
    read = drained(TYPES[stream].validate_python(body))

    assert set(lost(body, read)) <= GONE


def test_requests_are_of_every_kind() -> None:
    """What is drawn above leaves out no parameter that we know of."""
    keys: set[str] = set()

    @given(st.sampled_from(MODELS), st.data())
    def draw(name: str, data: st.DataObject) -> None:
        request = data.draw(requests(name, "messages"))
        keys.update(sent(name, "messages", request, True))

    draw()

    assert keys == EVERYTHING


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


FINISHES = {
    "end_turn": "stop",
    "max_tokens": "length",
    "refusal": "refusal",
    "tool_use": "tool_calls",
}


def read_message(client: Any, stream: bool) -> dict[str, Any]:
    """Ask, and return what can be compared."""
    if stream:
        with client.messages.stream(**ASK) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**ASK)
    found: dict[str, list[Any]] = {"text": [], "thinking": [], "tool_use": []}
    for block in message.content:
        found[block.type].append(block)
    usage = message.usage
    cached = usage.cache_read_input_tokens
    return {
        "text": "".join(block.text for block in found["text"]),
        "refusal": message.stop_reason == "refusal",
        "calls": [(b.id, b.name, b.input) for b in found["tool_use"]],
        "finish": FINISHES[message.stop_reason],
        "thought": "".join(block.thinking for block in found["thinking"]),
        "tokens": (usage.input_tokens + cached, usage.output_tokens, cached),
    }


@pytest.mark.parametrize("stream", [False, True])
def test_both_read_the_same(stream: bool) -> None:
    """From the same bytes, cut anywhere, both make the same answer."""
    model, replay = Told(), Replay()
    client = anthropic.Anthropic(api_key="x", base_url=replay.url, max_retries=0)

    @given(responses(refusals=False))
    def check(response: Response) -> None:
        model.response = response
        body = {**ASK, "stream": stream}
        replay.answer = bytes_of(server, "/v1/messages", body)

        ours = summed_up(replay.ask("messages", stream))
        theirs = read_message(client, stream)

        assert {**ours, "refusal": bool(ours["refusal"])} == theirs
        assert ours == summed_up(response)

    with client, LocalServer(model, format="messages") as server:
        check()
    replay.close()


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
