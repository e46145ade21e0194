"""Google's own client: its types take our requests, it reads our local server.

Without it there is nothing to do: ``pip install google-genai``.
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

from official import Replay, Told, bytes_of, requests, responses, sent, summed_up

genai = pytest.importorskip("google.genai")
types = pytest.importorskip("google.genai.types")
# We warn of schemas that cannot go out strictly.
pytestmark = pytest.mark.filterwarnings("ignore:.*strict=True")

CALL = ToolCall("x1", "weather", arguments='{"city": "Paris"}')
MODELS = [
    "google:gemini-2.0-flash",
    "google:gemini-2.5-flash",
    "google:gemini-2.5-pro",
    "google:gemini-3-pro",
    "google:gemini-3.6-flash",
]
# What all models together are to be asked for; else the draw is too thin.
EVERYTHING = {
    "contents",
    "frequencyPenalty",
    "logprobs",
    "maxOutputTokens",
    "presencePenalty",
    "responseJsonSchema",
    "responseLogprobs",
    "responseMimeType",
    "stopSequences",
    "systemInstruction",
    "temperature",
    "thinkingConfig",
    "toolConfig",
    "tools",
    "topP",
}


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
def test_requests(name: str, data: st.DataObject) -> None:
    """The official types take our body, know each key of it, and lose nothing."""
    request = data.draw(requests(name, "gemini"))

    body = sent(name, "gemini", request, data.draw(st.booleans()))
    contents = body.pop("contents")
    config = {**body.pop("generationConfig", {}), **body}

    assert contents
    for content in contents:
        assert written(types.Content.model_validate(content)) == content
    assert written(types.GenerateContentConfig.model_validate(config)) == config


def written(value: Any) -> Any:
    """Return how the official client writes what it has read."""
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True)


def test_requests_are_of_every_kind() -> None:
    """What is drawn above leaves out no parameter that we know of."""
    keys: set[str] = set()

    @given(st.sampled_from(MODELS), st.data())
    def draw(name: str, data: st.DataObject) -> None:
        body = sent(name, "gemini", data.draw(requests(name, "gemini")), False)
        keys.update(body.pop("generationConfig", {}), body)

    draw()

    assert keys == EVERYTHING


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


def read_answers(client: Any, stream: bool) -> dict[str, Any]:
    """Ask, put together what comes, and return what can be compared."""
    if stream:
        answers = list(client.models.generate_content_stream(**ASK))
    else:
        answers = [client.models.generate_content(**ASK)]
    contents = [a.candidates[0].content for a in answers]
    parts = [p for c in contents if c is not None for p in c.parts or ()]
    calls = [part.function_call for part in parts if part.function_call]
    length = answers[-1].candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    usage = answers[-1].usage_metadata
    output = usage.candidates_token_count + (usage.thoughts_token_count or 0)
    return {
        "text": "".join(p.text or "" for p in parts if not p.thought),
        "refusal": "",
        "calls": [(call.id, call.name, call.args) for call in calls],
        "finish": "tool_calls" if calls else "length" if length else "stop",
        "thought": "".join(p.text or "" for p in parts if p.thought),
        "tokens": (
            usage.prompt_token_count,
            output,
            usage.cached_content_token_count,
        ),
    }


@pytest.mark.parametrize("stream", [False, True])
def test_both_read_the_same(stream: bool) -> None:
    """From the same bytes, cut anywhere, both make the same answer."""
    model, replay = Told(), Replay()
    options = types.HttpOptions(base_url=replay.url)
    client = genai.Client(api_key="x", http_options=options)
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}

    @given(responses(refusals=False))
    def check(response: Response) -> None:
        model.response = response
        replay.answer = bytes_of(server, f"/v1beta/models/m:{verb}", body)

        ours = summed_up(replay.ask("gemini", stream))
        theirs = read_answers(client, stream)

        assert ours == theirs == summed_up(response)

    with LocalServer(model, format="gemini") as server:
        check()
    client.close()
    replay.close()


def test_official_client_reads_errors(serve: Any) -> None:
    """Errors are those of the vendor, whole and within a stream."""
    error = RateLimitError("Slow.", status=429, retry_after=2.0)
    client = serve(error, [Chunk("x"), error])

    with pytest.raises(genai.errors.ClientError) as caught:
        client.models.generate_content(**ASK)
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
    with pytest.raises(genai.errors.APIError, match="Slow"):
        list(client.models.generate_content_stream(**ASK))
