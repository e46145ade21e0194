"""OpenAI's own package as the judge: of our requests, and of our local servers.

It is no dependency, and without it there is nothing to do here.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

openai = pytest.importorskip("openai")
pydantic = pytest.importorskip("pydantic")
# Its types warn of their own fields, and we of schemas that cannot go out strictly.
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore:.*strict=True"),
]

# What some hosts know beyond what OpenAI's types do.
ECHOES = {
    "$.messages[].reasoning_content",
    "$.messages[].reasoning_details",
    "$.messages[].tool_calls[].extra_content",
}
BEYOND = {
    "openrouter": {
        "$.messages[].content[].cache_control",
        "$.messages[].reasoning_details",
        "$.reasoning",
        "$.reasoning.max_tokens",
    },
    "deepseek": {"$.messages[].reasoning_content", "$.thinking"},
    "google": ECHOES,
    "vllm": ECHOES,
}
MODELS = [
    ("chat", "openai:gpt-4.1"),
    ("chat", "openai:gpt-5"),
    ("chat", "openai:gpt-5.6"),
    ("chat", "azure:gpt-4o"),
    ("chat", "deepseek:deepseek-reasoner"),
    ("chat", "google:gemini-3.6-flash"),
    ("chat", "groq:openai/gpt-oss-120b"),
    ("chat", "mistral:mistral-medium-latest"),
    ("chat", "ollama:llama3.2"),
    ("chat", "openrouter:anthropic/claude-sonnet-4.5"),
    ("chat", "vllm:Qwen/Qwen3-8B"),
    ("chat", "xai:grok-4"),
    ("responses", "openai:gpt-4.1"),
    ("responses", "openai:gpt-5"),
    ("responses", "openai:gpt-5.6"),
    ("responses", "openrouter:openai/gpt-5"),
    ("responses", "vllm:Qwen/Qwen3-8B"),
]
# What all models of a format together are to be asked for; else the draw is too thin.
COMMON = {
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "safety_identifier",
    "stream",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
}
EVERYTHING = {
    "chat": COMMON
    | {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "messages",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "stop",
        "stream_options",
    },
    "responses": COMMON
    | {
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "reasoning",
        "store",
        "text",
    },
}


@functools.cache
def types_of(format: str, stream: bool) -> Any:
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses

    kind = "Streaming" if stream else "NonStreaming"
    if format == "chat":
        return pydantic.TypeAdapter(getattr(chat, f"CompletionCreateParams{kind}"))
    return pydantic.TypeAdapter(getattr(responses, f"ResponseCreateParams{kind}"))


@pytest.mark.parametrize(("format", "name"), MODELS)
@given(data=st.data())
def test_requests(format: str, name: str, data: st.DataObject) -> None:
    """The official types take our body, and know each key of it at every depth."""
    request = data.draw(requests(name, format))
    stream = data.draw(st.booleans())

    body = sent(name, format, request, stream)
    read = drained(types_of(format, stream).validate_python(body))

    assert set(lost(body, read)) <= BEYOND.get(name.partition(":")[0], set())


@pytest.mark.parametrize("format", EVERYTHING)
def test_requests_are_of_every_kind(format: str) -> None:
    """What is drawn above leaves out no parameter that OpenAI's models are sent."""
    names = [n for f, n in MODELS if f == format and n.startswith("openai:")]
    keys: set[str] = set()

    @given(st.data())
    def draw(data: st.DataObject) -> None:
        for name in names:
            keys.update(sent(name, format, data.draw(requests(name, format)), True))

    draw()

    assert EVERYTHING[format] <= keys


CALLS = (ToolCall("c1", "weather", '{"city": "Oslo"}'), ToolCall("c2", "plain"))
FULL = Response(
    "Hi there.",
    CALLS,
    finish_reason="tool_calls",
    reasoning=Reasoning("Hm."),
    usage=Usage.of(input=3, output=4, cached=1, reasoning=2, total=7),
    model="m-1",
)


@pytest.fixture(params=["chat", "responses"])
def served(request: Any) -> Iterator[Any]:
    """Start a server, and an official client of it."""
    made: list[Any] = []

    def start(*replies: Any) -> tuple[Any, LocalServer]:
        server = LocalServer(ScriptedModel(*replies), format=request.param)
        client = openai.OpenAI(api_key="x", base_url=server.url, max_retries=0)
        made.extend((client, server))
        return client, server

    start.format = request.param  # type: ignore[attr-defined]  # told to the test
    yield start
    for one in made:
        one.close()


def ask(client: Any, format: str, **fields: Any) -> Any:
    if format == "chat":
        said = {"messages": [{"role": "user", "content": "Hi"}], **fields}
        return client.chat.completions.create(model="m", **said)
    return client.responses.create(model="m", input="Hi", **fields)


def told(answer: Any, format: str) -> tuple[str, list[Any], int]:
    """Return text, calls and tokens, as the official client has them."""
    if format == "chat":
        message = answer.choices[0].message
        made = [
            (c.id, c.function.name, c.function.arguments) for c in message.tool_calls
        ]
        return message.content, made, answer.usage.total_tokens
    items = [item for item in answer.output if item.type == "function_call"]
    made = [(c.call_id, c.name, c.arguments) for c in items]
    return answer.output_text, made, answer.usage.total_tokens


EXPECTED = ("Hi there.", [(c.id, c.name, c.arguments) for c in CALLS], 7)


def test_answer(served: Any) -> None:
    """The official client reads our server's answer, and its types take it."""
    client, _ = served(FULL)

    answer = ask(client, served.format)

    assert told(answer, served.format) == EXPECTED
    type(answer).model_validate(answer.model_dump())


def test_stream(served: Any) -> None:
    """The official client puts our server's stream together."""
    client, _ = served(FULL)

    if served.format == "chat":
        from openai.lib.streaming.chat import ChatCompletionStreamState

        state = ChatCompletionStreamState()
        options = {"stream_options": {"include_usage": True}}
        for chunk in ask(client, "chat", stream=True, **options):
            state.handle_chunk(chunk)
        final = state.get_final_completion()
    else:
        with client.responses.stream(model="m", input="Hi") as events:
            final = events.get_final_response()

    assert told(final, served.format) == EXPECTED


def from_chat(client: Any, stream: bool) -> dict[str, Any]:
    """Ask, and return what can be compared."""
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    if stream:
        options = {"include_usage": True}
        with client.chat.completions.stream(**asked, stream_options=options) as events:
            try:
                final = events.get_final_completion()
            except openai.LengthFinishReasonError as exc:  # how it says "length"
                final = exc.completion
    else:
        final = client.chat.completions.create(**asked)
    choice, usage = final.choices[0], final.usage
    message = choice.message
    calls = message.tool_calls or ()
    return {
        "text": message.content or "",
        "refusal": message.refusal or "",
        "calls": [
            (c.id, c.function.name, json.loads(c.function.arguments)) for c in calls
        ],
        "finish": "refusal" if message.refusal else choice.finish_reason,
        "thought": getattr(message, "reasoning_content", None) or "",
        "tokens": (
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.prompt_tokens_details.cached_tokens,
        ),
    }


ENDS = ("response.completed", "response.incomplete")


def from_responses(client: Any, stream: bool) -> dict[str, Any]:
    """Ask, and return what can be compared."""
    if stream:
        with client.responses.stream(model="m", input="Hi") as events:
            # Its own last word knows of no answer that was cut.
            ends = [e.response for e in events if e.type in ENDS]
        (final,) = ends
    else:
        final = client.responses.create(model="m", input="Hi")
    kinds: dict[str, list[Any]] = {"message": [], "reasoning": [], "function_call": []}
    for item in final.output:
        kinds[item.type].append(item)
    refusals = [p for m in kinds["message"] for p in m.content if p.type == "refusal"]
    refusal = "".join(part.refusal for part in refusals)
    calls = kinds["function_call"]
    ended = "refusal" if refusal else "tool_calls" if calls else "stop"
    usage = final.usage
    return {
        "text": final.output_text,
        "refusal": refusal,
        "calls": [(c.call_id, c.name, json.loads(c.arguments)) for c in calls],
        "finish": "length" if final.status == "incomplete" else ended,
        "thought": "".join(s.text for r in kinds["reasoning"] for s in r.summary),
        "tokens": (
            usage.input_tokens,
            usage.output_tokens,
            usage.input_tokens_details.cached_tokens,
        ),
    }


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("format", ["chat", "responses"])
def test_both_read_the_same(format: str, stream: bool) -> None:
    """From the same bytes, cut anywhere, both make the same answer."""
    model, replay = Told(), Replay()
    client = openai.OpenAI(api_key="x", base_url=f"{replay.url}/v1", max_retries=0)
    read = from_chat if format == "chat" else from_responses
    path = "/v1/chat/completions" if format == "chat" else "/v1/responses"
    asked = {"model": "m", "stream": stream, "stream_options": {"include_usage": True}}
    said = [{"role": "user", "content": "Hi"}]

    @given(responses())
    def check(response: Response) -> None:
        model.response = response
        body = {**asked, "messages": said, "input": said}
        replay.answer = bytes_of(server, path, body)

        ours, theirs = summed_up(replay.ask(format, stream)), read(client, stream)

        assert ours == theirs == summed_up(response)

    with client, LocalServer(model, format=format) as server:
        check()
    replay.close()


def test_events_of_responses() -> None:
    """The official types take each event of the stream."""
    refusal = Response(refusal="No.", finish_reason="refusal")
    cut = Response("Hi", finish_reason="length")
    model = ScriptedModel(FULL, refusal, cut)

    with LocalServer(model, format="responses") as server:
        client = openai.OpenAI(api_key="x", base_url=server.url, max_retries=0)
        kinds = []
        for _ in range(3):
            for event in ask(client, "responses", stream=True):
                kinds.append(event.type)
                type(event).model_validate(event.model_dump(warnings=False))
        client.close()

    assert {kind for kind in kinds if "delta" in kind} == {
        "response.reasoning_summary_text.delta",
        "response.output_text.delta",
        "response.refusal.delta",
        "response.function_call_arguments.delta",
    }
    assert kinds[-1] == "response.incomplete"


def test_typed_answer(served: Any) -> None:
    """A schema that the official client sends arrives as our own would."""
    client, server = served('{"city": "Oslo"}')
    place = pydantic.create_model("Place", city=(str, ...))

    if served.format == "chat":
        said = [{"role": "user", "content": "Hi"}]
        answer = client.chat.completions.parse(
            model="m", messages=said, response_format=place
        )
        found = answer.choices[0].message.parsed
    else:
        answer = client.responses.parse(model="m", input="Hi", text_format=place)
        found = answer.output_parsed

    assert found == place(city="Oslo")
    assert server.requests[0].name == "Place"
    assert server.requests[0].response_format.strict is True


def test_errors(served: Any) -> None:
    """Errors are of the official client's own kinds, in a stream too."""
    from aeye.errors import RateLimitError, ServerError

    failing = [Chunk("He"), ServerError("Oh.", status=500)]
    client, _ = served(RateLimitError("Slow.", status=429), failing)

    with pytest.raises(openai.RateLimitError, match="Slow"):
        ask(client, served.format)
    with pytest.raises(openai.APIError, match="Oh"):
        list(ask(client, served.format, stream=True))
