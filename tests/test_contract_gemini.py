"""Google's own client: its types take our requests, it reads our local server.

Without it there is nothing to do: ``pip install google-genai``.
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
from aeye.vendor import GOOGLE, find_facts
from aeye.wire_gemini import GEMINI

genai = pytest.importorskip("google.genai")
types = pytest.importorskip("google.genai.types")

PLACE = Schema({"type": "object", "properties": {"city": {"type": "string"}}})
TOOL = ToolDefinition("weather", "Weather.", parameters=PLACE)
CALL = ToolCall("x1", "weather", arguments='{"city": "Paris"}')
HI = Message("user", "Hi")
HISTORY = (
    Message("system", "Be brief."),
    Message(
        "user",
        (
            Part.text("Look:"),
            Part.image("data:image/png;base64,aWNvbg=="),
            Part.file("https://example.com/a.pdf"),
        ),
    ),
    Message(
        "assistant",
        "Let me see.",
        tool_calls=(CALL,),
        native={
            "format": "gemini",
            "items": [
                {"text": "Hm.", "thought": True},
                {"text": "Let me see.", "thoughtSignature": "c2ln"},
                {
                    "functionCall": {
                        "id": "x1",
                        "name": "weather",
                        "args": {"city": "Paris"},
                    },
                    "thoughtSignature": "c2ln",
                },
            ],
        },
    ),
    Message("tool", "21", tool_call_id="x1"),
    Message("assistant", tool_calls=(ToolCall("c", "weather"),)),
    Message("tool", ("22", Part.image("data:image/png;base64,aWNv")), tool_call_id="c"),
)
REQUESTS = [
    Request((HI,)),
    Request(HISTORY),
    Request(
        HISTORY,
        tools=(TOOL,),
        tool_choice="auto",
        response_format=ResponseFormat(PLACE),
        reason=Reason("high"),
        stop=("END",),
        temperature=0.5,
        top_p=0.5,
        max_tokens=9,
        frequency_penalty=0.5,
        presence_penalty=0.5,
        log_probabilities=2,
    ),
    Request(
        (HI,),
        tools=(ToolDefinition("weather", "", parameters=PLACE, strict=True),),
    ),
    Request((HI,), tools=(TOOL,), tool_choice={"tool": "weather"}),
    Request((HI,), tools=(TOOL,), tool_choice="none", reason=Reason(None, 99)),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_requests_are_of_the_official_types(request_: Request) -> None:
    """Every key that we send is one that the vendor's own client knows."""
    model = "gemini-3.6-flash"
    facts = find_facts(GOOGLE, model, "gemini")
    planned = apply_plan(Request(**{**vars(request_), "model": model}), facts)

    body = GEMINI.encode(planned, facts, False)
    contents = [types.Content.model_validate(c) for c in body.pop("contents")]
    config = types.GenerateContentConfig.model_validate(
        {**body.pop("generationConfig", {}), **body}
    )

    assert contents
    assert (config.tools is None) == (not request_.tools)


REPLY = Response(
    "On it.",
    (CALL,),
    finish_reason="tool_calls",
    reasoning=Reasoning("Hm."),
    usage=Usage.of(input=30, output=9, cached=10, reasoning=4),
)


@pytest.fixture
def serve() -> Iterator[Any]:
    servers: list[LocalServer] = []

    def start(*replies: Any) -> Any:
        servers.append(LocalServer(ScriptedModel(*replies), format="gemini"))
        options = types.HttpOptions(base_url=servers[-1].url)
        return genai.Client(api_key="x", http_options=options)

    yield start
    for server in servers:
        server.close()


ASK = {"model": "gemini-3.6-flash", "contents": "Hi"}


def check(answers: list[Any]) -> None:
    parts = [p for a in answers for p in a.candidates[0].content.parts]
    said = [p for p in parts if p.text or p.function_call]
    assert [(p.text, p.thought) for p in said[:2]] == [("Hm.", True), ("On it.", None)]
    call = said[2].function_call
    assert (call.id, call.name, call.args) == ("x1", "weather", {"city": "Paris"})
    last = answers[-1]
    assert last.candidates[0].finish_reason == types.FinishReason.STOP
    usage = last.usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count) == (30, 5)
    assert (usage.thoughts_token_count, usage.total_token_count) == (4, 39)


def test_official_client_reads_a_whole_answer(serve: Any) -> None:
    """The vendor's client reads what the local server says."""
    client = serve(REPLY)

    check([client.models.generate_content(**ASK)])


def test_official_client_reads_a_stream(serve: Any) -> None:
    """The vendor's client reads the local server's stream."""
    client = serve(REPLY)

    check(list(client.models.generate_content_stream(**ASK)))


def test_official_client_reads_errors(serve: Any) -> None:
    """Errors are those of the vendor, whole and within a stream."""
    error = RateLimitError("Slow.", status=429, retry_after=2.0)
    client = serve(error, [Chunk("x"), error])

    with pytest.raises(genai.errors.ClientError) as caught:
        client.models.generate_content(**ASK)
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
    with pytest.raises(genai.errors.APIError, match="Slow"):
        list(client.models.generate_content_stream(**ASK))
