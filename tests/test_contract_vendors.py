"""The promises that hold for every vendor, in every format it speaks.

Each is asked through ``connect`` as a user would ask it, at its own address; an adapter
of ``requests`` takes what is sent to a server on this machine, which answers in the
same format, and notes where it was to go.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterator, List, Optional

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from aeye.connection import connect
from aeye.context import Context
from aeye.errors import (
    AuthError,
    CapabilityError,
    ContextLengthError,
    OutputError,
    RateLimitError,
    RefusalError,
    ServerError,
    StatusError,
    StreamCutError,
    TruncatedError,
)
from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.prompt import Prompt
from aeye.request import Request, ResponseFormat
from aeye.response import Chunk, Response, join
from aeye.schema import Schema
from aeye.testing import LocalServer, ScriptedModel, calls
from aeye.tools import Tool
from aeye.usage import Usage
from aeye.vendor import VENDORS, Vendor

KEY = "sk-of-the-contract"
BEARER = {"authorization": f"Bearer {KEY}"}
SOMEWHERE = "https://models.example.com/v1"
# The model that is asked, as the vendor's own example; and where it is to be asked.
PLACES: Dict[str, Dict[str, str]] = {
    "openai": {
        "responses": "https://api.openai.com/v1/responses",
        "chat": "https://api.openai.com/v1/chat/completions",
    },
    "anthropic": {
        "messages": "https://api.anthropic.com/v1/messages",
        "chat": "https://api.anthropic.com/v1/chat/completions",
    },
    "google": {
        "gemini": "https://generativelanguage.googleapis.com/v1beta/models/"
        "gemini-3.6-flash:generateContent",
        "chat": "https://generativelanguage.googleapis.com/v1beta/openai/"
        "chat/completions",
    },
    "azure": {
        "chat": "https://my.openai.azure.com/openai/v1/chat/completions",
        "responses": "https://my.openai.azure.com/openai/v1/responses",
    },
    "openrouter": {
        "chat": "https://openrouter.ai/api/v1/chat/completions",
        "responses": "https://openrouter.ai/api/v1/responses",
        "messages": "https://openrouter.ai/api/v1/messages",
    },
    "ollama": {
        "chat": "http://localhost:11434/v1/chat/completions",
        "responses": "http://localhost:11434/v1/responses",
        "messages": "http://localhost:11434/v1/messages",
    },
    "groq": {"chat": "https://api.groq.com/openai/v1/chat/completions"},
    "deepseek": {
        "chat": "https://api.deepseek.com/chat/completions",
        "responses": "https://api.deepseek.com/responses",
    },
    "xai": {
        "chat": "https://api.x.ai/v1/chat/completions",
        "responses": "https://api.x.ai/v1/responses",
    },
    "mistral": {"chat": "https://api.mistral.ai/v1/chat/completions"},
    "together": {"chat": "https://api.together.xyz/v1/chat/completions"},
    "fireworks": {"chat": "https://api.fireworks.ai/inference/v1/chat/completions"},
    "cerebras": {"chat": "https://api.cerebras.ai/v1/chat/completions"},
    "deepinfra": {"chat": "https://api.deepinfra.com/v1/openai/chat/completions"},
    "cloudflare": {
        "chat": "https://api.cloudflare.com/client/v4/accounts/a1/ai/v1/"
        "chat/completions",
        "responses": "https://api.cloudflare.com/client/v4/accounts/a1/ai/v1/responses",
    },
    "lmstudio": {
        "chat": "http://localhost:1234/v1/chat/completions",
        "responses": "http://localhost:1234/v1/responses",
        "messages": "http://localhost:1234/v1/messages",
    },
    "llamacpp": {
        "chat": "http://localhost:8080/v1/chat/completions",
        "responses": "http://localhost:8080/v1/responses",
        "messages": "http://localhost:8080/v1/messages",
    },
    "vllm": {
        "chat": "http://localhost:8000/v1/chat/completions",
        "responses": "http://localhost:8000/v1/responses",
        "messages": "http://localhost:8000/v1/messages",
    },
    "somewhere": {"chat": f"{SOMEWHERE}/chat/completions"},
}
# What carries the key, where it is not a bearer.
CARRIERS: Dict[str, Dict[str, str]] = {
    "azure": {"api-key": KEY},
    "google gemini": {"x-goog-api-key": KEY},
    "lmstudio": {},
    "llamacpp": {},
}
# Chat completions has two names for the greatest number of tokens.
NEWER_CAP = ("openai", "azure", "xai", "groq", "cerebras")
# These get the shape of an answer in words: they have no place for a schema.
IN_WORDS = (
    "deepseek chat",
    "deepseek responses",
    "llamacpp messages",
    "llamacpp responses",
)
# These hold an answer to its schema.
STRICT = ("openai", "azure", "anthropic", "google", "xai")
# These have a switch for one call at a time.
NO_SWITCH = ("google", "ollama", "deepseek", "cerebras")
# Where a thought beside calls goes back as text under this key of chat completions.
THOUGHT_BACK = (
    *("deepseek", "together", "fireworks", "deepinfra", "cloudflare", "lmstudio"),
    *("llamacpp", "vllm", "somewhere", "anthropic", "google"),
)


@dataclass(frozen=True)
class Case:
    """One vendor in one format."""

    name: str
    format: str
    url: str

    @property
    def id(self) -> str:
        return f"{self.name} {self.format}"

    def is_in(self, names: Any) -> bool:
        return self.name in names or self.id in names


CASES = [
    Case(name, format, url)
    for name, formats in PLACES.items()
    for format, url in formats.items()
]
ALL = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


def test_every_vendor_is_here() -> None:
    """No record, and no format of one, is without its contract."""
    found = {vendor.name: set(vendor.formats) for vendor in VENDORS}
    here = {name: set(formats) for name, formats in PLACES.items()}

    assert here == {**found, "somewhere": {"chat"}}


@dataclass
class Sent:
    """A request as it was to go out."""

    url: str
    headers: Dict[str, str]
    body: Any


class Detour(HTTPAdapter):
    """Takes what is for anybody to *server*, if there is one; else *canned* answers."""

    def __init__(self, server: Optional[LocalServer], path: str) -> None:
        super().__init__()
        self.server, self.path = server, path
        self.sent: List[Sent] = []
        self.responses: List[requests.Response] = []
        self.canned: List[HTTPResponse] = []

    def send(self, request: Any, *args: Any, **options: Any) -> requests.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.sent.append(Sent(request.url, headers, json.loads(request.body)))
        if self.server is None:
            response = self.build_response(request, self.canned.pop(0))
        else:
            root = self.server.url.partition("/v1")[0]
            there = request.copy()
            there.url = root + (self.path or request.path_url)
            response = super().send(there, *args, **{**options, "proxies": {}})
        self.responses.append(response)
        return response


@dataclass
class Line:
    """A context made by ``connect``, and what became of what it sent."""

    case: Case
    ctx: Context
    detour: Detour
    server: Optional[LocalServer] = None

    @property
    def sent(self) -> List[Sent]:
        return self.detour.sent

    @property
    def whole(self) -> Context:
        return self.ctx.replace(stream=None)

    @property
    def streaming(self) -> Context:
        return self.ctx.replace(execute=None)

    def execute(self, request: Request) -> Response:
        assert self.ctx.execute is not None
        return self.ctx.execute(request, self.ctx)

    def stream(self, request: Request) -> Iterator[Chunk]:
        assert self.ctx.stream is not None
        return self.ctx.stream(request, self.ctx)

    def check_nothing_left(self) -> None:
        assert all(response.raw.closed for response in self.detour.responses)


PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "",
}


def vendor_of(case: Case) -> Optional[Vendor]:
    return next((v for v in VENDORS if v.name == case.name), None)


def key_name(case: Case) -> str:
    vendor = vendor_of(case)
    names = ("OPENAI_API_KEY",) if vendor is None else vendor.key_names
    return names[0] if names else ""


def dial(case: Case, detour: Detour) -> Context:
    """Connect as a user does: by name, with the key in the environment."""
    session = requests.Session()
    session.mount("https://", detour)
    session.mount("http://", detour)
    vendor = vendor_of(case)
    options: Any = {"session": session, "max_retries": 0}
    if vendor is None:
        return connect("openai:my-model", base_url=SOMEWHERE, **options)
    name = f"{vendor.name}:{vendor.example}"
    preferred = vendor.formats[0] == case.format
    return connect(name, format=None if preferred else case.format, **options)


@pytest.fixture(scope="module")
def servers() -> Iterator[Any]:
    """One server for each format; a test gives it a model."""
    started = {name: LocalServer(ScriptedModel(""), format=name) for name in PATHS}
    yield started
    for server in started.values():
        server.close()


@pytest.fixture
def line(case: Case, servers: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function that makes a line to a model with the replies given."""
    settle(case, monkeypatch)

    def start(*replies: Any) -> Line:
        server = servers[case.format]
        server.model = ScriptedModel(*replies, usage=USAGE)
        server.requests.clear()
        server.errors.clear()
        detour = Detour(server, PATHS[case.format])
        return Line(case, dial(case, detour), detour, server)

    yield start
    assert servers[case.format].errors == []


def settle(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://my.openai.azure.com/")
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", "a1")
    if key_name(case):
        monkeypatch.setenv(key_name(case), KEY)


USAGE = Usage.of(input=30, output=9)
HI = Message("user", "Hi")
PARIS = '{"city": "Paris"}'


@dataclass
class Trip:
    """Where to go."""

    city: str
    days: Optional[int] = None


@dataclass
class Asked:
    """What the tool was called with."""

    cities: List[str] = field(default_factory=list)

    def tool(self) -> Tool[Any]:
        def weather(given: Any) -> str:
            self.cities.append(given["city"])
            return f"21 in {given['city']}"

        place = {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        }
        return Tool("weather", weather, description="Weather.", schema=place)


def settled(response: Response) -> Response:
    """Return what is the same, whole and streamed: all but ``extra``."""
    return replace(response, extra=None)


def cap_of(case: Case, body: Any) -> Any:
    """Return the greatest number of tokens, which stands where the format has it."""
    if case.format == "gemini":
        return body["generationConfig"]["maxOutputTokens"]
    if case.format == "responses":
        return body["max_output_tokens"]
    newer = case.format == "chat" and case.is_in(NEWER_CAP)
    return body["max_completion_tokens" if newer else "max_tokens"]


@ALL
def test_text(case: Case, line: Any) -> None:
    """A question goes to its address, with its key; whole and streamed are equal."""
    there = line("Hello, wörld.")
    request = Request((Message("system", "Be brief."), HI), max_tokens=500)

    whole = there.execute(request)
    streamed = join(there.stream(request))

    if case.name == "mistral":  # it is not asked to tell, and tells all the same
        streamed = replace(streamed, usage=whole.usage)
    assert streamed == settled(whole)
    assert (whole.content, whole.finish_reason) == ("Hello, wörld.", "stop")
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (30, 9)
    first, second = there.sent
    assert first.url == case.url
    assert second.url == case.url.replace(
        ":generateContent", ":streamGenerateContent?alt=sse"
    )
    carriers = CARRIERS.get(case.id, CARRIERS.get(case.name, BEARER))
    for sent in (first, second):
        names = ("authorization", "api-key", "x-api-key", "x-goog-api-key")
        carried = {k: v for k, v in sent.headers.items() if k in names}
        assert carried == carriers
        version = sent.headers.get("anthropic-version")
        assert (version is not None) == (case.format == "messages")
        assert cap_of(case, sent.body) == 500
    if case.format != "gemini":
        assert second.body["stream"] is True
        assert first.body["model"] == there.ctx.execute.__self__.model
    wants_usage = case.format == "chat" and case.name != "mistral"
    assert ("stream_options" in second.body) == wants_usage
    there.check_nothing_left()


@ALL
def test_one_tool(case: Case, line: Any) -> None:
    """A call is run, its reply goes back under its id, and the answer is had."""
    transcripts = []
    for mode in ("whole", "streaming"):
        there = line(calls(("weather", PARIS, "call_9")), "Mild.")
        asked = Asked()
        prompt = Prompt("trip", "Weather?", tools=[asked.tool()])
        stream = prompt.run({}, getattr(there, mode))
        for _ in stream:
            pass

        assert (stream.output, asked.cities) == ("Mild.", ["Paris"])
        transcripts.append(stream.messages)
        call, reply = there.server.requests[1].messages[-2:]
        assert reply.text == "21 in Paris"
        if case.format != "gemini":
            assert reply.tool_call_id == call.tool_calls[0].id
        assert there.server.requests[0].tools[0].name == "weather"
        there.check_nothing_left()

    assert transcripts[0] == transcripts[1]


@ALL
def test_parallel_tools(case: Case, line: Any) -> None:
    """Several calls are answered together, in their order."""
    both = [("weather", PARIS, "call_1"), ("weather", '{"city": "Oslo"}', "call_2")]
    transcripts = []
    for mode in ("whole", "streaming"):
        there = line(calls(*both, text="Let me see."), "Mild.")
        asked = Asked()
        prompt = Prompt("trip", "Weather?", tools=[asked.tool()])
        stream = prompt.run({}, getattr(there, mode))
        for _ in stream:
            pass

        assert stream.output == "Mild."
        assert sorted(asked.cities) == ["Oslo", "Paris"]
        transcripts.append(stream.messages)
        replies = [m for m in there.server.requests[1].messages if m.role == "tool"]
        assert [m.text for m in replies] == ["21 in Paris", "21 in Oslo"]

    assert transcripts[0] == transcripts[1]


@ALL
def test_one_tool_at_a_time(case: Case, line: Any) -> None:
    """The wish for one call at a time is sent where there is a switch for it."""
    there = line("Mild.")
    prompt = Prompt(
        "trip",
        "Weather?",
        tools=[Asked().tool()],
        config={"tools_one_at_a_time": True},
    )

    prompt({}, there.whole)

    body = there.sent[0].body
    asked = body.get("parallel_tool_calls") is False
    asked = asked or "disable_parallel_tool_use" in body.get("tool_choice", {})
    assert asked != case.is_in(NO_SWITCH)


def schema_of(case: Case, body: Any) -> Any:
    """Return the answer's schema and whether it is enforced, or None in words."""
    if case.format == "chat" and "response_format" in body:
        said = body["response_format"]["json_schema"]
        return said["schema"], bool(said.get("strict"))
    if case.format == "responses" and "text" in body:
        return body["text"]["format"]["schema"], body["text"]["format"]["strict"]
    if case.format == "messages" and "output_config" in body:
        schema = body["output_config"]["format"]["schema"]
        return schema, schema.get("additionalProperties") is False
    if case.format == "gemini" and "generationConfig" in body:
        return body["generationConfig"]["responseJsonSchema"], True
    return None


@ALL
def test_typed_answer(case: Case, line: Any) -> None:
    """A dataclass is had from a schema where there is a place for one, else words."""
    for mode in ("whole", "streaming"):
        there = line('{"city": "Oslo", "days": null}')

        found = Prompt("trip", "Where to?", schema=Trip)({}, getattr(there, mode))

        assert found == Trip("Oslo")
        said = schema_of(case, there.sent[0].body)
        if case.is_in(IN_WORDS):
            assert said is None
            assert "conforming to this schema" in json.dumps(there.sent[0].body)
            continue
        schema, strict = said
        assert set(schema["properties"]) == {"city", "days"}
        assert strict == case.is_in(STRICT)
        if strict and case.name in ("openai", "azure"):
            assert schema["required"] == ["city", "days"]


@ALL
def test_refused_schema(case: Case, line: Any) -> None:
    """A host that refuses the schema is asked once more, in words."""
    refused = StatusError("Invalid schema for response_format 'trip'", status=400)
    there = line(refused, '{"city": "Oslo"}')
    prompt = Prompt("trip", "Where to?", schema=Trip)

    if case.is_in(IN_WORDS):  # there are no other words
        with pytest.raises(StatusError, match="Invalid schema"):
            prompt({}, there.whole)
        assert len(there.sent) == 1
        return
    assert prompt({}, there.whole) == Trip("Oslo")
    bodies = [sent.body for sent in there.sent]
    assert [schema_of(case, body) is None for body in bodies] == [False, True]
    assert "conforming to this schema" in json.dumps(bodies[1])


@ALL
def test_refusal(case: Case, line: Any) -> None:
    """A refusal is an error with the model's words."""
    refused = Response("", finish_reason="refusal", refusal="I won't.")
    for mode in ("whole", "streaming"):
        there = line(refused)

        with pytest.raises(RefusalError) as caught:
            Prompt("p", "Hi")({}, getattr(there, mode))

        assert caught.value.refusal == "I won't."
        there.check_nothing_left()


@ALL
def test_length(case: Case, line: Any) -> None:
    """An answer that was cut is an error with what there is, and never bad JSON."""
    for mode in ("whole", "streaming"):
        there = line(Response('{"city": "Os', finish_reason="length"))

        with pytest.raises(TruncatedError, match="max_tokens") as caught:
            Prompt("p", "Hi", schema=Trip)({}, getattr(there, mode))

        assert caught.value.partial == '{"city": "Os'
        assert len(there.sent) == 1


THOUGHTFUL = Response(
    "",
    (ToolCall("call_9", "weather", arguments=PARIS),),
    finish_reason="tool_calls",
    reasoning=Reasoning("Hm, the weather."),
)


def thought_back(case: Case, body: Any) -> bool:
    """Whether the model's thought went back with its call, in the format's form."""
    if case.format == "chat":
        turn = next(m for m in body["messages"] if m["role"] == "assistant")
        return bool(turn.get("reasoning_content") == "Hm, the weather.")
    if case.format == "responses":
        kinds = [item.get("type") for item in body["input"]]
        return "reasoning" in kinds
    if case.format == "messages":
        turn = next(m for m in body["messages"] if m["role"] == "assistant")
        return bool(turn["content"][0]["type"] == "thinking")
    return any(p.get("thought") for turn in body["contents"] for p in turn["parts"])


@ALL
def test_thoughts_go_back(case: Case, line: Any) -> None:
    """A thought goes back where it is wanted, also from a history that was kept."""
    there = line(THOUGHTFUL, THOUGHTFUL, "Mild.")
    reply = Message("tool", "21", tool_call_id="call_9", name="weather")

    whole = there.execute(Request((HI,))).to_message()
    streamed = join(there.stream(Request((HI,)))).to_message()
    kept = Message.from_dict(json.loads(json.dumps(whole.to_dict())))
    for turn in (whole, streamed, kept):
        assert turn.reasoning == THOUGHTFUL.reasoning
        there.execute(Request((HI, turn, reply)))

    bodies = [sent.body for sent in there.sent[2:]]
    assert bodies[1:] == bodies[:1] * 2
    wanted = case.format in ("messages", "gemini")
    if case.format == "chat":
        wanted = case.is_in(THOUGHT_BACK)
    if case.format == "responses":  # kept there or nowhere: it must be asked for
        wanted = "include" in there.sent[0].body
        assert wanted == (case.name in ("openai", "xai"))
    assert thought_back(case, bodies[0]) == wanted


# How each is told to think a little; None: it cannot be told.
EFFORTS: Dict[str, Any] = {
    "openrouter chat": {"reasoning": {"effort": "low"}},
    "deepseek chat": {"thinking": {"type": "enabled"}, "reasoning_effort": "low"},
    "mistral": None,
    "azure": None,
    "google gemini": {
        "generationConfig": {
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"}
        }
    },
}
BY_FORMAT: Dict[str, Any] = {
    "chat": {"reasoning_effort": "low"},
    "responses": {"reasoning": {"effort": "low"}},
    "messages": {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "low"},
    },
}


@ALL
def test_effort(case: Case, line: Any) -> None:
    """How much to think is said in the vendor's own way, or refused at once."""
    there = line("Yes.")
    prompt = Prompt("p", "Hi", config={"reason": {"effort": "low"}})
    form = EFFORTS.get(case.id, EFFORTS.get(case.name, BY_FORMAT.get(case.format)))

    if form is None:
        with pytest.raises(CapabilityError, match="cannot be told how much to think"):
            prompt({}, there.whole)
        assert there.sent == []
        return
    assert prompt({}, there.whole) == "Yes."
    body = there.sent[0].body
    names = ("reasoning_effort", "reasoning", "thinking", "output_config")
    names = (*names, "generationConfig")
    assert {name: body[name] for name in names if name in body} == form


@ALL
def test_pictures(case: Case, line: Any) -> None:
    """A picture goes out as its bytes in every format."""
    there = line("A cat.")
    picture = Part.image(b"\x89PNG\r\n\x1a\n")
    message = Message("user", (Part.text("What is this?"), picture))

    found = there.execute(Request((message,)))

    assert found.content == "A cat."
    (asked,) = there.server.requests[0].messages
    assert [part.type for part in asked.content] == ["text", "image"]
    assert str(asked.content[1].data).startswith("data:image/png;base64,iVBOR")


@pytest.mark.parametrize("case", [Case("azure", "chat", "")], ids=["azure chat"])
def test_older_address_of_azure(
    case: Case, line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a version of its API, Azure's deployment stands in the path."""
    monkeypatch.setenv("OPENAI_API_VERSION", "2026-05-01")
    there = line("Yes.")

    there.execute(Request((HI,)))

    assert there.sent[0].url == (
        "https://my.openai.azure.com/openai/deployments/gpt-4o/chat/completions"
        "?api-version=2026-05-01"
    )


@pytest.mark.parametrize("case", [Case("openai", "responses", "")], ids=["openai"])
def test_organizations(case: Case, line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI is told the organization and the project of the environment."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    there = line("Yes.")

    there.execute(Request((HI,)))

    headers = there.sent[0].headers
    assert headers["openai-organization"] == "org-1"
    assert headers["openai-project"] == "proj-1"


# Failures.


def fault_body(case: Case, status: int, message: str) -> Any:
    """Return the body of an error as the vendor writes it."""
    if case.format == "gemini":
        return {"error": {"code": status, "message": message, "status": "S"}}
    if case.format == "messages":
        return {"type": "error", "error": {"type": "some_error", "message": message}}
    if case.id == "xai chat":
        return {"code": "some_error", "error": message}
    if case.name == "mistral":
        return {"object": "error", "message": message, "type": "t", "code": None}
    return {"error": {"message": message, "type": "some_error", "code": None}}


FAILURES: Any = [
    (400, "Invalid schema for response_format 'x': no.", StatusError),
    (400, "prompt is too long: 9 tokens > 8 maximum", ContextLengthError),
    (401, "No such key.", AuthError),
    (404, "No such model.", StatusError),
    (429, "Slow down.", RateLimitError),
    (500, "Out of order.", ServerError),
]


@ALL
@pytest.mark.parametrize("streams", [False, True])
def test_failures(case: Case, streams: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure has its type, who failed, the status, the request's id and a hint."""
    settle(case, monkeypatch)
    id_name = "request-id" if case.format == "messages" else "x-request-id"
    headers = {"content-type": "application/json", id_name: "req_7", "retry-after": "7"}
    name = "openai" if case.name == "somewhere" else case.name
    for status, message, cls in FAILURES:
        detour = Detour(None, "")
        ctx = dial(case, detour)
        body = json.dumps(fault_body(case, status, message)).encode()
        detour.canned.append(
            HTTPResponse(
                io.BytesIO(body), headers, status=status, preload_content=False
            )
        )
        there = Line(case, ctx, detour)

        with pytest.raises(StatusError) as caught:
            list(there.stream(Request((HI,)))) if streams else there.execute(
                Request((HI,))
            )

        error, text = caught.value, str(caught.value)
        assert type(error) is cls
        assert (error.provider, error.status) == (name, status)
        assert error.request_id == "req_7"
        assert text.startswith(f"{name}: {message}")
        assert f"(HTTP {status}, request req_7)" in text
        assert KEY not in text
        assert error.retry_after == 7
        if status == 401:
            hint = "pass api_key=" if not key_name(case) else key_name(case)
            assert hint in text
        if status == 404:
            assert case.url.partition(":gen")[0] in text
        there.check_nothing_left()


@ALL
def test_early_end(case: Case, line: Any) -> None:
    """A stream that the host breaks off is an error with what had come."""
    there = line([Chunk("Once "), Chunk("upon"), StreamCutError("gone")])

    with pytest.raises(StreamCutError) as caught:
        Prompt("p", "Hi")({}, there.streaming)

    assert caught.value.partial == "Once upon"
    assert caught.value.provider == ("openai" if vendor_of(case) is None else case.name)
    there.check_nothing_left()


@ALL
def test_early_close(case: Case, line: Any) -> None:
    """Whoever stops reading leaves no connection open."""
    endless = [Chunk("and so on ")] * 2000 + [Chunk(finish_reason="stop")]
    there = line(endless, endless)

    chunks: Any = there.stream(Request((HI,)))
    assert next(chunks).content == "and so on "
    chunks.close()
    there.check_nothing_left()
    with Prompt("p", "Hi").run({}, there.streaming) as events:
        for event in events:
            if event.type == "text_partial":
                break
    there.check_nothing_left()


@ALL
def test_answer_that_begins_anew(
    case: Case, servers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Messages has a way to take a thought back; there the second one counts."""
    settle(case, monkeypatch)
    said = [Chunk(reasoning=Reasoning(text)) for text in ("Hm.", "Oh.")]
    ends = [Chunk("Yes."), Chunk(finish_reason="stop")]
    server = servers[case.format]
    server.model = ScriptedModel([said[0], Chunk(restart=True), said[1], *ends])
    there = Line(case, dial(case, Detour(server, PATHS[case.format])), Detour(None, ""))

    if case.format == "messages":
        found = join(there.stream(Request((HI,))))
        assert (found.content, found.reasoning) == ("Yes.", Reasoning("Oh."))
        return
    with pytest.raises(StreamCutError):
        list(there.stream(Request((HI,))))
    assert isinstance(server.errors.pop(), ValueError)


@ALL
def test_bad_answer(case: Case, line: Any) -> None:
    """An answer of the wrong shape is asked for again, with what was wrong."""
    there = line('{"town": "Oslo"}', '{"city": "Oslo", "days": 3}', "{")
    prompt = Prompt("trip", "Where to?", schema=Trip)

    assert prompt({}, there.whole) == Trip("Oslo", 3)
    assert "city" in there.server.requests[1].messages[-1].text
    with pytest.raises(OutputError):
        prompt({}, there.streaming)


@ALL
def test_dry_run(case: Case, line: Any) -> None:
    """What would be sent can be seen without sending it."""
    there = line("")
    shape = ResponseFormat(Schema(Trip))
    assert there.ctx.prepare is not None

    prepared = there.ctx.prepare(Request((HI,), response_format=shape), there.ctx)

    assert there.ctx.prepare(prepared, there.ctx) == prepared
    assert there.sent == []
