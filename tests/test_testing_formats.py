"""The local server in Anthropic's and Google's formats: asked by our own client."""

from __future__ import annotations

import http.client
import json
from typing import Any, Iterator, Optional
from urllib.parse import urlsplit

import pytest

from aeye import connect
from aeye.__main__ import main
from aeye.errors import (
    AeyeError,
    ProtocolError,
    RateLimitError,
    ServerError,
    StatusError,
    StreamCutError,
    TransportError,
)
from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.provider import WIRES
from aeye.rehearsal import Rehearsal
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import Chunk, Response, ToolCallDelta, join
from aeye.schema import Schema
from aeye.testing import LocalServer, ScriptedModel, calls, pieces
from aeye.usage import Usage
from aeye.vendor import ANTHROPIC, GOOGLE, find_facts

MODELS = {"messages": "anthropic:claude-opus-4-6", "gemini": "google:gemini-3.6-flash"}
KEYS = {"anthropic": "ANTHROPIC", "google": "GOOGLE"}
FORMATS = pytest.mark.parametrize("format", sorted(MODELS))
HI = Message("user", "Hi")
USAGE = Usage.of(input=30, output=9, cached=10, reasoning=4)
PLACE = Schema(
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
)
CALL = ToolCall("call_1", "weather", arguments='{"city": "Paris"}')


class Pair:
    """A server of a scripted model, and a context that asks it."""

    def __init__(self, format: str, model: Any) -> None:
        self.server = LocalServer(model, format=format)
        self.ctx = connect(
            MODELS[format], api_key="key", base_url=self.server.url, max_retries=0
        )

    def execute(self, *messages: Message, **fields: Any) -> Response:
        asked = Request(messages or (HI,), **fields)
        found: Response = self.ctx.execute(asked, self.ctx)
        return found

    def stream(self, *messages: Message, **fields: Any) -> Response:
        return join(self.ctx.stream(Request(messages or (HI,), **fields), self.ctx))

    def close(self) -> None:
        self.ctx.close()
        self.server.close()


@pytest.fixture
def serve() -> Iterator[Any]:
    started: list[Pair] = []

    def start(format: str, *replies: Any, model: Any = None) -> Pair:
        started.append(Pair(format, model or ScriptedModel(*replies)))
        return started[-1]

    yield start
    for pair in started:
        pair.close()


def counts(usage: Usage) -> tuple[int, ...]:
    """The numbers; formats differ in which of them they leave out when 0."""
    return usage.input_tokens, usage.cached_input_tokens, usage.output_tokens


def without_native(response: Response) -> dict[str, Any]:
    said = {**vars(response), "usage": counts(response.usage)}
    del said["native"], said["extra"]
    return said


@FORMATS
@pytest.mark.parametrize(
    "reply",
    [
        Response("Hello, wörld.", usage=USAGE),
        Response("", finish_reason="length", usage=USAGE),
        Response("Yes.", reasoning=Reasoning("Hm."), usage=USAGE),
        Response("On it.", (CALL,), finish_reason="tool_calls", usage=USAGE),
        Response(
            "",
            (CALL, ToolCall("call_2", "now")),
            finish_reason="tool_calls",
            usage=USAGE,
        ),
    ],
)
def test_answers_come_as_they_were_given(
    serve: Any, format: str, reply: Response
) -> None:
    """Whole and streamed, what the model said is what the client reads."""
    pair = serve(format, reply)
    given = {**without_native(reply), "model": MODELS[format].partition(":")[2]}

    whole, streamed = pair.execute(), pair.stream()

    assert without_native(whole) == given
    assert without_native(streamed) == given
    assert pair.server.errors == []


@FORMATS
def test_refusals(serve: Any, format: str) -> None:
    """A refusal, or a filter, is told with its reason."""
    finish = {"messages": "refusal", "gemini": "content_filter"}[format]
    pair = serve(
        format, *[Response("", finish_reason=finish, refusal="No.", model="m")] * 2
    )

    for found in (pair.execute(), pair.stream()):
        assert (found.finish_reason, found.refusal) == (finish, "No.")


@FORMATS
def test_pieces(serve: Any, format: str) -> None:
    """Chunks of every kind make one answer."""
    pair = serve(
        format,
        [
            Chunk(reasoning=Reasoning("H")),
            Chunk(reasoning=Reasoning("m.")),
            *pieces("Let me see."),
            Chunk(tool_call_named=ToolCall("call_1", "weather", arguments="")),
            Chunk(tool_call_arguments=ToolCallDelta("call_1", "weather", '{"city": ')),
            Chunk(tool_call_arguments=ToolCallDelta("call_1", "weather", '"Paris"}')),
            Chunk(tool_call=CALL),
            Chunk(tool_call=ToolCall("call_2", "now")),
            Chunk(finish_reason="tool_calls", usage=USAGE, model="m"),
        ],
    )

    found = pair.stream()

    assert (found.content, found.finish_reason) == ("Let me see.", "tool_calls")
    assert found.reasoning == Reasoning("Hm.")
    assert found.tool_calls == (CALL, ToolCall("call_2", "now"))
    assert counts(found.usage) == counts(USAGE)


@FORMATS
def test_call_that_is_never_said_to_be_complete(serve: Any, format: str) -> None:
    """The end completes a call of which pieces came."""
    delta = ToolCallDelta("call_1", "weather", '{"city": "Paris"}', mode="replace")
    pair = serve(
        format, [Chunk(tool_call_arguments=delta), Chunk(finish_reason="tool_calls")]
    )

    assert pair.stream().tool_calls == (CALL,)


@FORMATS
def test_requests_are_read(serve: Any, format: str) -> None:
    """What was asked is what the model is asked."""
    pair = serve(format, "ok")
    tool = ToolDefinition("weather", "Weather.", parameters=PLACE)
    picture = Part.image("data:image/png;base64,aWNvbg==")
    messages = (
        Message("system", "Be brief."),
        Message("user", (Part.text("Look:"), picture)),
        Message("assistant", "On it.", tool_calls=(CALL,)),
        Message("tool", "21", tool_call_id="call_1"),
        Message("user", "And?"),
    )

    pair.execute(
        *messages,
        tools=(tool,),
        tool_choice="required",
        response_format=ResponseFormat(PLACE),
        max_tokens=500,
        temperature=0.5,
        top_p=0.5,
        stop=("END",),
    )

    request = pair.server.requests[0]
    key = request.messages[2].tool_calls[0].id
    assert [(m.role, m.text) for m in request.messages] == [
        (m.role, m.text) for m in messages
    ]
    assert request.messages[1].content[1].data == picture.data
    assert request.messages[3].tool_call_id == key
    assert json.loads(request.messages[2].tool_calls[0].arguments) == {"city": "Paris"}
    assert request.model == MODELS[format].partition(":")[2]
    assert [t.name for t in request.tools] == ["weather"]
    assert request.tool_choice == "required"
    assert isinstance(request.response_format, ResponseFormat)
    assert (request.max_tokens, request.temperature, request.top_p) == (500, 0.5, 0.5)
    assert request.stop == ("END",)


def encoded(format: str, request: Request) -> Request:
    """Return *request* as the local server reads it from our codec's JSON."""
    vendor = {"messages": ANTHROPIC, "gemini": GOOGLE}[format]
    model = MODELS[format].partition(":")[2]
    facts = find_facts(vendor, model, format)
    pair = Pair(format, ScriptedModel("ok"))
    try:
        url = urlsplit(pair.server.url)
        connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=10)
        body = WIRES[format].encode(request, facts, False)
        path = WIRES[format].path(model, False)
        connection.request("POST", path, json.dumps(body))
        assert connection.getresponse().status == 200
        connection.close()
        return pair.server.requests[0]
    finally:
        pair.close()


TOOL = ToolDefinition(
    "weather", "Weather.", parameters=PLACE, descriptor="anthropic-strict"
)


@FORMATS
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tools": (TOOL,), "tool_choice": {"tool": "weather"}},
        {"tools": (TOOL,), "tool_choice": "none"},
        {"tools": (TOOL,), "tool_choice": "auto"},
        {"reason": Reason("high")},
    ],
)
def test_fields_are_read(format: str, fields: Any) -> None:
    """Choices and efforts come back as they were said."""
    found = encoded(format, Request((HI,), "m", **fields))

    assert found.tool_choice == fields.get("tool_choice")
    assert found.reason == fields.get("reason")


def test_fields_of_one_format() -> None:
    """What only one format has is read there."""
    messages = encoded(
        "messages",
        Request(
            (HI,), "m", tools=(TOOL,), tools_one_at_a_time=True, user_key="u", name="n"
        ),
    )
    off = encoded("messages", Request((HI,), "m", reason=Reason("none")))
    gemini = encoded(
        "gemini",
        Request(
            (HI,),
            "m",
            log_probabilities=2,
            frequency_penalty=0.5,
            reason=Reason(None, 0),
        ),
    )
    budget = encoded("gemini", Request((HI,), "m", reason=Reason(None, 9)))
    logs = encoded("gemini", Request((HI,), "m", log_probabilities=True))

    assert (messages.tools_one_at_a_time, messages.user_key) == (True, "u")
    assert messages.tools[0].strict is True
    assert off.reason == Reason("none")
    assert (gemini.log_probabilities, gemini.frequency_penalty) == (2, 0.5)
    assert gemini.reason == Reason("none")
    assert budget.reason == Reason(None, 9)
    assert logs.log_probabilities is True


@FORMATS
def test_parts_are_read(format: str) -> None:
    """Media come back with their kind and address; replies may hold them."""
    png = "data:image/png;base64,aWNvbg=="
    pdf = "data:application/pdf;base64,JVBERg=="
    reply = Message("tool", (Part.text("21"),), tool_call_id="call_1")
    picture = Message("tool", (Part.text("21"), Part.image(png)), tool_call_id="call_2")
    calls = (CALL, ToolCall("call_2", "weather"))

    found = encoded(
        format,
        Request(
            (
                Message("system", "A", cache={}),
                Message(
                    "user",
                    (
                        Part.image(png),
                        Part.file(pdf),
                        Part.file("data:text/plain;base64,YQ=="),
                        Part.image("https://x/y.png"),
                    ),
                ),
                Message("assistant", tool_calls=calls),
                reply,
                picture,
            ),
            "m",
        ),
    )

    parts: Any = found.messages[1].content
    kinds = [(part.type, part.data) for part in parts]
    assert kinds[:2] == [("image", png), ("file", pdf)]
    assert kinds[3] == ("image", "https://x/y.png")
    assert [m.text for m in found.messages[3:]] == ["21", "21"]
    assert found.messages[0].text == "A"


@FORMATS
@pytest.mark.parametrize(
    ("error", "cls"),
    [
        (StatusError("Bad.", status=400), StatusError),
        (StatusError("Odd.", status=418), StatusError),
        (StatusError("Busy.", status=529, code="overloaded_error"), ServerError),
        (StatusError("Busy.", status=503, code="UNAVAILABLE"), ServerError),
        (ServerError("Oops."), ServerError),
        (ProtocolError("Oops."), ServerError),
        (RateLimitError("Slow.", status=429, retry_after=2.0), RateLimitError),
        (RateLimitError("Slow.", status=429), RateLimitError),
    ],
)
def test_errors(serve: Any, format: str, error: AeyeError, cls: Any) -> None:
    """An error is told as the vendor would tell it, before a stream and within."""
    pair = serve(format, error, error, [Chunk("Hel"), error])

    caught = []
    for ask in (pair.execute, pair.stream, pair.stream):
        with pytest.raises(cls, match=error.message) as info:
            ask()
        caught.append(info.value)

    assert all(isinstance(exc, cls) for exc in caught)
    wait: Optional[float] = getattr(error, "retry_after", None)
    assert [getattr(exc, "retry_after", None) for exc in caught[:2]] == [wait, wait]


@FORMATS
def test_streams_that_break_off(serve: Any, format: str) -> None:
    """A stream without its end, or that is cut, is cut for the client too."""
    pair = serve(format, [Chunk("Hel")], [Chunk("Hel"), StreamCutError("cut")])

    for _ in range(2):
        with pytest.raises(StreamCutError) as caught:
            pair.stream()
        assert caught.value.partial == "Hel"


@FORMATS
def test_arguments_that_are_no_json_cannot_be_sent_whole(
    serve: Any, format: str
) -> None:
    """These formats have objects where chat completions has text."""
    pair = serve(format, calls(("f", "{")))

    with pytest.raises(TransportError):
        pair.execute()

    assert [type(exc) for exc in pair.server.errors] == [json.JSONDecodeError]


@pytest.mark.parametrize(
    "chunks",
    [
        [
            Chunk(tool_call_named=ToolCall("a", "f", arguments="")),
            Chunk(tool_call_named=ToolCall("b", "g", arguments="")),
            Chunk(tool_call_arguments=ToolCallDelta("a", "f", "{}")),
        ],
        [
            Chunk(tool_call_arguments=ToolCallDelta("a", "f", "{}")),
            Chunk(tool_call_arguments=ToolCallDelta("a", "f", "[]", mode="replace")),
        ],
    ],
)
def test_blocks_come_one_after_the_other(serve: Any, chunks: Any) -> None:
    """What Messages has no way to say is an error of the script."""
    pair = serve("messages", [*chunks, Chunk(finish_reason="tool_calls")])

    with pytest.raises(AeyeError):
        pair.stream()

    assert [type(exc) for exc in pair.server.errors] == [ValueError]


@FORMATS
@pytest.mark.parametrize("body", ["[]", "{", "{}", '{"messages": 5, "contents": 5}'])
def test_requests_that_cannot_be_read(serve: Any, format: str, body: str) -> None:
    """Nonsense is answered with a 400 of the format."""
    pair = serve(format, "ok")
    url = urlsplit(pair.server.url)
    connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=10)

    connection.request("POST", WIRES[format].path("m", False), body)
    reply = connection.getresponse()
    said = json.loads(reply.read())
    connection.close()

    assert reply.status == 400
    assert "cannot be read" in said["error"]["message"]


def test_odd_requests() -> None:
    """What a client may leave out or spell in another way is understood."""
    gemini = {
        "contents": [
            {"parts": [{"text": "Hi"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Hm.", "thought": True},
                    {"functionCall": {"name": "f"}},
                    {"functionCall": {"name": "f", "args": {"a": 1}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {"error": "no"}}},
                    {"functionResponse": {"name": "f", "response": {"b": [1]}}},
                    {"text": "And?"},
                ],
            },
        ],
        "tools": [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}],
        "toolConfig": {"functionCallingConfig": {}},
        "generationConfig": {"responseMimeType": "application/json"},
    }
    with LocalServer(ScriptedModel("ok"), format="gemini") as server:
        url = urlsplit(server.url)
        connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=10)
        connection.request("POST", "/v1/models/m:generateContent", json.dumps(gemini))
        assert connection.getresponse().status == 200
        connection.close()
        request = server.requests[0]

    said = [(m.role, m.text, m.tool_call_id) for m in request.messages]
    assert said == [
        ("user", "Hi", None),
        ("assistant", "", None),
        ("tool", "no", "f_1"),
        ("tool", '{"b": [1]}', "f_2"),
        ("user", "And?", None),
    ]
    assert [call.id for call in request.messages[1].tool_calls] == ["f_1", "f_2"]
    assert (request.model, request.tool_choice) == ("m", None)


def test_messages_with_blocks_of_other_kinds() -> None:
    """Thoughts in a history are read; blocks that nobody knows are refused."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    replied = {"type": "tool_result", "tool_use_id": "a"}
    asked = {
        "model": "m",
        "max_tokens": 5,
        "system": [{"type": "text", "text": "A"}],
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [thought, {"type": "text", "text": "B"}]},
            {"role": "user", "content": [replied]},
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    odd = {**asked, "messages": [{"role": "user", "content": [
        {"type": "odd", "source": {"type": "url", "url": "https://x"}}
    ]}]}  # fmt: skip
    with LocalServer(ScriptedModel("ok"), format="messages") as server:
        url = urlsplit(server.url)
        connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=10)
        statuses = []
        for body in (asked, odd):
            connection.request("POST", "/v1/messages", json.dumps(body))
            reply = connection.getresponse()
            reply.read()
            statuses.append(reply.status)
        connection.close()
        request = server.requests[0]

    assert statuses == [200, 400]
    assert request.messages[2].reasoning == Reasoning("Hm.")
    assert request.messages[3].text == ""
    assert request.reason == Reason(None, 1024)


@FORMATS
def test_demo_over_http(
    format: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The demonstration goes through the codecs and a real socket."""
    name = MODELS[format]
    before = KEYS[name.partition(":")[0]]
    address = {"ANTHROPIC": "ANTHROPIC_BASE_URL", "GOOGLE": "GOOGLE_GEMINI_BASE_URL"}
    with LocalServer(Rehearsal("lenient", mistakes=1), format=format) as server:
        monkeypatch.setenv(f"{before}_API_KEY", "key")
        monkeypatch.setenv(address[before], server.url)

        code = main(["demo", "--no-delay", "--model", name])

        assert server.errors == []
        assert server.stats["requests"] == 4
    out = capsys.readouterr().out
    assert code == 0
    assert "Trip(" in out
    assert "weather returns" in out
