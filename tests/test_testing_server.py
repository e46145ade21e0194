"""The local server, asked by plain ``http.client``."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any, Iterator
from urllib.parse import urlsplit

import pytest

from aeye import ask, connect
from aeye.errors import RateLimitError, ServerError, StreamCutError
from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import Chunk, Response, ToolCallDelta
from aeye.schema import Schema
from aeye.testing import LocalServer, ScriptedModel, calls, pieces
from aeye.usage import Usage

ASK = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}


class Client:
    """One keep-alive connection."""

    def __init__(self, server: LocalServer) -> None:
        address = urlsplit(server.url)
        self.base = address.path
        self.http = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)

    def post(self, body: Any, path: str = "/chat/completions") -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.http.request("POST", self.base + path, data)
        reply = self.http.getresponse()
        return reply.status, dict(reply.headers), reply.read()

    def ask(self, **fields: Any) -> Any:
        return json.loads(self.post({**ASK, **fields})[2])

    def events(self, **fields: Any) -> list[Any]:
        text = self.post({**ASK, "stream": True, **fields})[2].decode()
        lines = [line[6:] for line in text.split("\n\n") if line]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]


def deltas(events: list[Any]) -> list[Any]:
    return [
        e["choices"][0]["delta"] for e in events if e != "[DONE]" and e.get("choices")
    ]


@pytest.fixture
def serve() -> Iterator[Any]:
    started: list[Any] = []

    def start(*replies: Any) -> Client:
        server = LocalServer(ScriptedModel(*replies))
        client = Client(server)
        client.server = server  # type: ignore[attr-defined]  # for the asserts
        started.append(client)
        return client

    yield start
    for client in started:
        client.http.close()
        client.server.close()


def test_text(serve: Any) -> None:
    """A blocking answer has the shape of a chat completion, and its usage."""
    client = serve("Hello.")

    status, headers, data = client.post(ASK)

    assert (status, headers["Content-Type"], json.loads(data)) == (
        200,
        "application/json",
        {
            "id": "chatcmpl-local",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": "Hello.",
                        "refusal": None,
                    },
                    "finish_reason": "stop",
                    "logprobs": None,
                }
            ],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
        },
    )


def test_calls_refusal_and_reasoning(serve: Any) -> None:
    """Calls go beside text; a refusal finishes with stop; thoughts have a field."""
    client = serve(
        calls(("f", {"a": 1}), text="Well"),
        Response("", refusal="No.", finish_reason="refusal"),
        Response("Yes.", reasoning=Reasoning("Hm.")),
    )

    found = [client.ask()["choices"][0] for _ in range(3)]

    assert [(c["message"], c["finish_reason"]) for c in found] == [
        (
            {
                "role": "assistant",
                "content": "Well",
                "refusal": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a": 1}'},
                    }
                ],
            },
            "tool_calls",
        ),
        ({"role": "assistant", "content": None, "refusal": "No."}, "stop"),
        (
            {
                "role": "assistant",
                "content": "Yes.",
                "refusal": None,
                "reasoning_content": "Hm.",
            },
            "stop",
        ),
    ]


def test_stream_of_text(serve: Any) -> None:
    """Chunks become events; usage comes when asked for, and then [DONE]."""
    usage = Usage.of(input=2, output=1)
    client = serve(
        [
            Chunk(reasoning=Reasoning("Hm."), model="big"),
            *pieces("he", "llo", usage=usage),
        ]
    )

    events = client.events(stream_options={"include_usage": True})
    without = client.events()

    assert deltas(events) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Hm."},
        {"content": "he"},
        {"content": "llo"},
        {},
    ]
    assert [e.get("model") for e in events[:2]] == ["m", "big"]
    assert events[-2]["usage"]["total_tokens"] == 3
    assert events[-1] == without[-1] == "[DONE]"
    assert len(without) == len(events) - 1


def test_stream_of_calls(serve: Any) -> None:
    """However calls are chunked, each piece of arguments is sent once."""
    a, b = ToolCall("a", "f"), ToolCall("b", "g", arguments='{"x":1}')
    client = serve(
        [
            Chunk(tool_call_named=ToolCall("a", "f", arguments="")),
            Chunk(tool_call_arguments=ToolCallDelta("a", "f", arguments="{")),
            Chunk(tool_call_arguments=ToolCallDelta(arguments="}")),
            Chunk(tool_call=a),
            Chunk(tool_call_arguments=ToolCallDelta("b", "g", arguments='{"x"')),
            Chunk(tool_call=b, finish_reason="tool_calls"),
        ],
        calls(("f", {})),
    )

    separate, whole = deltas(client.events()), deltas(client.events())

    def start(index: int, id: str, name: str) -> Any:
        function = {"name": name, "arguments": ""}
        call = {"index": index, "id": id, "type": "function", "function": function}
        return {"tool_calls": [call]}

    def more(index: int, text: str) -> Any:
        return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}

    assert separate[1:] == [
        start(0, "a", "f"),
        more(0, "{"),
        more(0, "}"),
        start(1, "b", "g"),
        more(1, '{"x"'),
        more(1, ":1}"),
        {},
    ]
    assert whole[1:] == [start(0, "call_1", "f"), more(0, "{}"), {}]


def test_requests_are_decoded(serve: Any) -> None:
    """What the client asked for is there as a Request, schemas as they were sent."""
    client = serve("ok")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    body = {
        "model": "m",
        "temperature": 0.5,
        "max_completion_tokens": 9,
        "reasoning_effort": "low",
        "stop": "END",
        "parallel_tool_calls": False,
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": "F.",
                    "parameters": schema,
                    "strict": True,
                },
            },
            {"type": "function", "function": {"name": "g"}},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "p", "schema": schema, "strict": True},
        },
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}},
                    {
                        "type": "input_audio",
                        "input_audio": {"data": "AA", "format": "wav"},
                    },
                    {"type": "file", "file": {"file_data": "data:a/b;base64,AA"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ],
    }

    client.post(body)

    assert client.server.bodies == [body]
    assert client.server.requests == [
        Request(
            (
                Message("system", "Be brief."),
                Message(
                    "user",
                    (
                        Part.text("Look:"),
                        Part.image("https://e.org/a.png"),
                        Part.audio("AA", "wav"),
                        Part.file("data:a/b;base64,AA"),
                    ),
                ),
                Message("assistant", tool_calls=(ToolCall("c", "f"),)),
                Message("tool", "1", tool_call_id="c"),
            ),
            "m",
            name="p",
            tools=(
                ToolDefinition("f", "F.", parameters=Schema(schema), strict=True),
                ToolDefinition(
                    "g", "", parameters=Schema({"type": "object"}), strict=False
                ),
            ),
            tool_choice={"tool": "f"},
            tools_one_at_a_time=True,
            response_format=ResponseFormat(
                Schema(schema), strict=True, schema_delivery="structured"
            ),
            temperature=0.5,
            max_tokens=9,
            stop=("END",),
            reason=Reason("low"),
        )
    ]


def test_json_object_mode(serve: Any) -> None:
    """JSON without a schema is asked for as any object."""
    client = serve("{}")

    client.ask(response_format={"type": "json_object"}, tool_choice="none")

    request = client.server.requests[0]
    assert request.response_format == ResponseFormat(Schema({"type": "object"}))
    assert request.tool_choice == "none"


@pytest.mark.parametrize("stream", [False, True])
def test_errors_before_anything_was_sent(serve: Any, stream: bool) -> None:
    """An error of ours is an HTTP status with the vendor's JSON, streaming or not."""
    client = serve(RateLimitError("slow down", retry_after=1.5, code="rate"))

    status, headers, data = client.post({**ASK, "stream": stream})

    assert (status, headers["Retry-After"], json.loads(data)) == (
        429,
        "1.5",
        {
            "error": {
                "message": "slow down",
                "type": "invalid_request_error",
                "param": None,
                "code": "rate",
            }
        },
    )


def test_error_in_the_middle_of_a_stream(serve: Any) -> None:
    """Once text was sent an error is an event, and there is no end mark."""
    client = serve([Chunk("a"), ServerError("broke", status=503)])

    events = client.events()

    assert deltas(events)[1:] == [{"content": "a"}]
    assert events[-1]["error"]["message"] == "broke"


def test_stream_without_a_finish_has_no_end_mark(serve: Any) -> None:
    """Chunks without a finish reason make a body that just ends."""
    client = serve(pieces("a", finish=None), [])

    assert deltas(client.events())[1:] == [{"content": "a"}]
    assert deltas(client.events()) == [{"role": "assistant", "content": ""}]


@pytest.mark.parametrize("stream", [False, True])
def test_connections_that_break(serve: Any, stream: bool) -> None:
    """A cut, and an exception that is none of ours, drop the connection."""
    problem = KeyError("mine")
    client = serve(StreamCutError("cut"), problem, [Chunk("a"), StreamCutError("cut")])

    for _ in range(2):
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            client.post({**ASK, "stream": stream})
        client.http.close()
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        client.post({**ASK, "stream": stream})

    assert client.server.errors == [problem]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/elsewhere", b"{}", 404),
        ("/chat/completions", b"{", 400),
        ("/chat/completions", b"{}", 400),
        ("/chat/completions", b"[]", 400),
        ("/chat/completions", b'{"messages": [{"role": "nobody"}]}', 400),
        (
            "/chat/completions",
            b'{"messages": [{"role": "user", "content": [{"type": "smell"}]}]}',
            400,
        ),
    ],
)
def test_requests_that_cannot_be_served(
    serve: Any, path: str, body: bytes, status: int
) -> None:
    """What is no such request is refused with a status, and not recorded."""
    client = serve("ok")

    found = client.post(body, path)

    assert found[0] == status
    assert set(json.loads(found[2])) == {"error"}
    assert client.server.requests == []


def test_get_is_not_found(serve: Any) -> None:
    """There is nothing to GET."""
    client = serve("ok")
    client.http.request("GET", "/v1/models")

    assert client.http.getresponse().status == 404


def test_one_connection_for_many_requests(serve: Any) -> None:
    """Connections are kept alive."""
    client = serve("ok")

    for _ in range(3):
        client.ask()
        client.events()

    assert client.server.stats == {"requests": 6, "connections": 1, "broken_off": 0}


def test_a_client_that_goes_away_ends_the_stream(serve: Any) -> None:
    """The model's generator is closed when nobody listens any more."""
    closed = threading.Event()

    def endless(request: Any) -> Iterator[Chunk]:
        try:
            while True:
                yield Chunk("x" * 10_000)
        finally:
            closed.set()

    client = serve(endless)
    client.http.request(
        "POST", "/v1/chat/completions", json.dumps({**ASK, "stream": True})
    )
    with client.http.getresponse() as reply:
        reply.read(10)
    client.http.close()

    assert closed.wait(10)
    client.server.close()
    assert client.server.stats["broken_off"] == 1


def test_closing_ends_every_connection_and_thread() -> None:
    """After close no thread is left, idle connections and running streams included."""
    started = threading.Event()

    def waiting(request: Any, ctx: Any) -> Iterator[Chunk]:
        yield Chunk("a")
        started.set()
        ctx.signal.wait(30)
        yield Chunk("b")

    before = threading.active_count()
    with LocalServer(ScriptedModel("ok", waiting)) as server:
        idle, busy = Client(server), Client(server)
        idle.ask()
        busy.http.request(
            "POST", "/v1/chat/completions", json.dumps({**ASK, "stream": True})
        )
        assert started.wait(10)

    assert threading.active_count() == before
    with pytest.raises(http.client.IncompleteRead), busy.http.getresponse() as reply:
        reply.read()
    idle.http.close()
    busy.http.close()


def test_an_unknown_format_is_refused() -> None:
    """The formats there are are named."""
    with pytest.raises(ValueError, match=r"one of \['chat', .*\], not 'smoke'"):
        LocalServer(ScriptedModel("ok"), format="smoke")


@pytest.mark.parametrize(
    ("format", "model"),
    [
        ("chat", "openai:gpt-5-mini"),
        ("responses", "openai:gpt-5-mini"),
        ("messages", "anthropic:claude-sonnet-4-5"),
        ("gemini", "google:gemini-2.5-flash"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_half_a_surrogate_pair(format: Any, model: str, stream: bool) -> None:
    """What UTF-8 has no place for is sent as a question mark, in every format."""
    with LocalServer(ScriptedModel("a \ud800 b"), format=format) as server:
        url = server.url
        with connect(model, base_url=url, api_key="none", format=format) as ctx:
            answer = ask("Hi.", ctx if stream else ctx.replace(stream=None))

    assert (answer, server.errors) == ("a ? b", [])
