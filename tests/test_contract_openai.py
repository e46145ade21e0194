"""OpenAI's own package as the judge: of our requests, and of our local servers.

It is no dependency, and without it there is nothing to do here.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator

import pytest

from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import Chunk, Response
from aeye.schema import Schema
from aeye.testing import LocalServer, ScriptedModel
from aeye.usage import Usage
from aeye.vendor import OPENAI, find_facts
from aeye.wire_chat import CHAT
from aeye.wire_responses import RESPONSES

openai = pytest.importorskip("openai")
pydantic = pytest.importorskip("pydantic")
# Its types warn of their own fields.
pytestmark = pytest.mark.filterwarnings("default")

PLACE = Schema({"type": "object", "properties": {"city": {"type": "string"}}})
TOOLS = (
    ToolDefinition("weather", "Of a city.", PLACE, descriptor="openai-strict"),
    ToolDefinition("plain", "", PLACE, descriptor="openai-lenient"),
)
OUTPUT = ResponseFormat(PLACE, descriptor="openai-strict")
CALLS = (ToolCall("c1", "weather", '{"city": "Oslo"}'), ToolCall("c2", "plain"))
HISTORY = (
    Message("system", "Be brief."),
    Message(
        "user",
        (
            Part.text("See"),
            Part.image("https://example.com/a.png"),
            Part.file("data:application/pdf;name=a.pdf;base64,JVBERg=="),
        ),
        cache={"ttl": "30m"},
    ),
    Message("assistant", "Let me see.", tool_calls=CALLS),
    Message("tool", "cold", tool_call_id="c1"),
    Message("tool", (Part.text("nothing"),), tool_call_id="c2"),
    Message("assistant", refusal="No."),
    Message("system", "Again."),
    Message("user", "Please."),
)
NATIVE = [
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "secret",
    },
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "So.", "annotations": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c9",
        "name": "plain",
        "arguments": "{}",
        "status": "completed",
    },
]
ECHOED = (
    *HISTORY,
    Message(
        "assistant",
        "So.",
        tool_calls=(ToolCall("c9", "plain"),),
        native={"format": "responses", "items": NATIVE},
    ),
    Message("tool", "1", tool_call_id="c9"),
)
REQUESTS = [
    Request(HISTORY, model="gpt-5.6"),
    Request(
        HISTORY,
        model="gpt-5.6",
        tools=TOOLS,
        tool_choice={"tool": "weather"},
        tools_one_at_a_time=True,
        response_format=OUTPUT,
        max_tokens=100,
        reason=Reason("low"),
        cache_key="c",
        user_key="u",
    ),
    Request(
        HISTORY[-1:],
        model="gpt-4.1",
        tools=TOOLS,
        tool_choice="required",
        temperature=0.5,
        top_p=0.5,
        log_probabilities=2,
    ),
    Request(ECHOED, model="gpt-5.6", tools=TOOLS),
]


def drained(value: Any) -> Any:
    """Return *value* with its lazy lists read, which is when they are checked."""
    if isinstance(value, dict):
        return {key: drained(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [drained(item) for item in value]
    return value


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("request_", REQUESTS)
def test_responses_request(request_: Request, stream: bool) -> None:
    """The official types take our body, and know each key of it at every depth."""
    from openai.types.responses import response_create_params as params

    kind = "Streaming" if stream else "NonStreaming"
    adapter = pydantic.TypeAdapter(getattr(params, f"ResponseCreateParams{kind}"))
    facts = find_facts(OPENAI, str(request_.model), "responses")
    body = RESPONSES.encode(request_, facts, stream)

    assert drained(adapter.validate_python(body)) == body


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("request_", REQUESTS)
def test_chat_request(request_: Request, stream: bool) -> None:
    """The same for chat completions."""
    from openai.types.chat import completion_create_params as params

    kind = "Streaming" if stream else "NonStreaming"
    adapter = pydantic.TypeAdapter(getattr(params, f"CompletionCreateParams{kind}"))
    facts = find_facts(OPENAI, str(request_.model), "chat")
    body = CHAT.encode(request_, facts, stream)

    assert drained(adapter.validate_python(body)) == body


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
