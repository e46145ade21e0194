"""What the tests with the vendors' own clients share.

Requests of every kind that a model takes, as they leave for the network; and a server
that says given bytes, so that two clients can be asked to read the same.
"""

from __future__ import annotations

import json
import threading
import urllib.request
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterator

from hypothesis import strategies as st

from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.provider import WIRES, ApiKey, Provider
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import Chunk, Response, join, split
from aeye.schema import Schema
from aeye.testing import LocalServer
from aeye.transport import Retry
from aeye.usage import Usage
from aeye.vendor import get_vendor
from aeye.wire import ModelFacts

PNG = b"\x89PNG\r\n\x1a\n"
WAV = b"RIFF\0\0\0\0WAVEfmt "
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
STOP = {
    "type": "object",
    "description": "A stop.",
    "properties": {
        "city": {"type": "string", "minLength": 1, "pattern": "^[A-Z]"},
        "day": {"type": "string", "format": "date"},
        "kind": {"enum": ["museum", "park", None], "default": "park"},
        "hours": {"type": "integer", "minimum": 1, "maximum": 24, "default": 2},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
    "required": ["city"],
}
OBJECTS = [
    {"type": "object", "properties": {}},
    CITY,
    {**CITY, "required": ["city"], "additionalProperties": False},
    STOP,
    {"type": "object", "additionalProperties": {"type": "number"}},
    {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    },
    {
        "type": "object",
        "properties": {
            "what": {
                "anyOf": [
                    {**CITY, "properties": {"kind": {"const": "a"}}},
                    {**STOP, "title": "Stop"},
                ]
            },
            "pair": {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
                "minItems": 2,
            },
        },
        "required": ["what", "pair"],
    },
]
OUTPUTS = [
    *OBJECTS,
    {"type": "array", "items": STOP},
    {"enum": ["yes", "no"]},
    {"type": "number", "exclusiveMinimum": 0},
]
STRICT = st.sampled_from([True, False, 1, 0, 5])
WORDS = st.sampled_from(["", "Hi.", "Grüße 👋", 'a "quoted" \\ line\nand more'])
SAID = st.sampled_from(["Hi.", "Grüße 👋", 'a "quoted" \\ line\nand more'])
NAMES = ("weather", "plain", "Find_It-2")


# Requests.


def sent(name: str, format: str, request: Request, stream: bool) -> Any:
    """Return the body that ``vendor:model`` is sent, read back from its bytes."""
    vendor, _, model = name.partition(":")
    network = Network()
    provider = Provider(
        get_vendor(vendor),
        WIRES[format],
        ApiKey("k", ()),
        "http://127.0.0.1",
        model=model,
        transport=network,
    )
    try:
        next(provider.stream(request)) if stream else provider.execute(request)
    except Sent as exc:
        return json.loads(exc.body)
    raise AssertionError("nothing was sent")


class Sent(Exception):
    def __init__(self, body: bytes) -> None:
        self.body = body


class Network:
    """A transport that goes no further."""

    def open(self, url: str, headers: Any, body: bytes, signal: Any = None) -> Any:
        raise Sent(body)


def facts_of(name: str, format: str) -> ModelFacts:
    """Return what is known of ``vendor:model``."""
    vendor, _, model = name.partition(":")
    provider = Provider(get_vendor(vendor), WIRES[format], ApiKey("k", ()), "http://x")
    return provider.facts_of(model)


@st.composite
def requests(draw: Any, name: str, format: str) -> Request:
    """Draw what this model takes in this format."""
    facts = facts_of(name, format)
    reason = draw(reasons(facts, format))
    effort = None if reason is None else reason.effort
    tools: tuple[ToolDefinition, ...] = ()
    if facts.tools and (effort == "none" or not facts.tools_need_no_reasoning):
        tools = draw(toolboxes())
    output: Any = "text"
    if draw(st.booleans()):
        schema = Schema(draw(st.sampled_from(OUTPUTS)))
        strict = draw(STRICT if facts.strict_output else st.sampled_from([1, False]))
        delivery = draw(st.sampled_from(["auto", "auto", "prompt"]))
        output = ResponseFormat(schema, strict=strict, schema_delivery=delivery)
    if not facts.strict_tools:
        tools = tuple(t for t in tools if t.strict is not True)
    fields = draw(settings(facts, format, effort, reason is not None))
    if tools:
        fields["tool_choice"] = draw(choices(tools, facts, fields, reason))
        fields["tools_one_at_a_time"] = draw(st.booleans())
    return Request(
        draw(histories(format, facts)),
        name=draw(st.sampled_from(["", "travel advisor"])),
        tools=tools,
        response_format=output,
        reason=reason,
        **fields,
    )


@st.composite
def reasons(draw: Any, facts: ModelFacts, format: str) -> Any:
    if facts.reasoning is None:
        return draw(st.sampled_from([None, Reason("none")]))
    efforts = facts.efforts or ("low", "high")
    drawn = [None, Reason(), *(Reason(effort) for effort in efforts)]
    counted = ("budget_tokens", "thinkingBudget")
    if facts.reasoning in (*counted, "reasoning" if format != "messages" else ""):
        drawn.append(Reason(max_tokens=2000))
    return draw(st.sampled_from(drawn))


@st.composite
def toolboxes(draw: Any) -> tuple[ToolDefinition, ...]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    return tuple(
        ToolDefinition(
            name,
            draw(st.sampled_from(["", "What it does."])),
            parameters=Schema(draw(st.sampled_from(OBJECTS))),
            strict=draw(STRICT),
        )
        for name in names
    )


def choices(tools: Any, facts: ModelFacts, fields: Any, reason: Any) -> Any:
    found = [None, "auto", "none", "required", {"tool": tools[0].name}]
    named = {"required", "tool"} & facts.tool_choices
    thinks = facts.reasoning == "budget_tokens" and reason not in (None, Reason())
    if not named or (thinks and reason.effort != "none"):
        found = found[:3]
    elif "required" not in named:
        found.remove("required")
    return st.sampled_from(found)


@st.composite
def settings(
    draw: Any, facts: ModelFacts, format: str, effort: Any, asked: bool
) -> dict[str, Any]:
    values = {
        "temperature": [0, 0.5, 1],
        "top_p": [0.5],
        "max_tokens": [16_000],
        "stop": [("END",), ("a", "b")],
        "frequency_penalty": [0.5],
        "presence_penalty": [-0.5],
        "logit_bias": [{"50256": -100}],
        "log_probabilities": [True, 2],
        "cache_key": ["c"],
        "user_key": ["u"],
    }
    refused = facts.refuses | WIRES[format].lacks
    if effort != "none" and (asked or facts.thinks):
        refused |= facts.refuses_thinking
    names = draw(st.sets(st.sampled_from(sorted(set(values) - refused))))
    return {name: draw(st.sampled_from(values[name])) for name in sorted(names)}


@st.composite
def histories(draw: Any, format: str, facts: ModelFacts) -> tuple[Message, ...]:
    """Draw a conversation that ends where it is the model's turn."""
    messages = []
    # A mark for the vendor's cache, of which there may be few.
    mark = draw(st.sampled_from([None, {}, {"type": "ephemeral"}]))
    if draw(st.booleans()):
        content = draw(st.sampled_from(["Be brief.", ("Be", Part.text(" brief."))]))
        messages.append(Message("system", content, cache=mark))
    messages.append(draw(questions(format, facts)))
    for turn in range(draw(st.integers(0, 2))):
        said = draw(answers(format, turn))
        messages.append(said)
        for call in said.tool_calls:
            content = draw(replies(format))
            messages.append(Message("tool", content, tool_call_id=call.id))
        if not said.tool_calls or draw(st.booleans()):
            messages.append(draw(questions(format, facts)))
    return (*messages[:-1], replace(messages[-1], cache=mark))


@st.composite
def questions(draw: Any, format: str, facts: ModelFacts) -> Message:
    name = draw(st.sampled_from([None, "ada"])) if format == "chat" else None
    if draw(st.booleans()):
        return Message("user", draw(SAID), name=name)
    parts = [Part.text("See:"), Part.file(b"a,b", "csv")]
    if "image" in facts.inputs:
        parts += [Part.image(PNG), Part.image("data:image/jpeg;base64,AAAA")]
        if facts.image_urls:
            parts.append(Part.image("https://example.com/a.webp"))
    if "file" in facts.inputs:
        parts += [Part.file("data:application/pdf;name=a%20b.pdf;base64,JVBERg==")]
        parts += [Part.file(b"%PDF-1.7"), Part.file("data:,plain%20text")]
        if facts.file_urls or format != "chat":
            parts.append(Part.file("https://example.com/a.pdf"))
    if "audio" in facts.inputs - WIRES[format].lacks and format != "messages":
        parts += [Part.audio(WAV), Part.audio(b"ID3\x04", "mp3")]
    drawn = draw(st.lists(st.sampled_from(parts), min_size=1, max_size=4))
    return Message("user", tuple(drawn), name=name)


def replies(format: str) -> Any:
    texts = [("one", Part.text("two")), "21 °C", '{"a": 1}']
    if format == "chat":
        return st.sampled_from(texts)
    return st.sampled_from([*texts, ("See:", Part.image(PNG))])


@st.composite
def answers(draw: Any, format: str, turn: int) -> Message:
    """Draw what a model said: made by hand, or as its vendor had it."""
    text = draw(WORDS)
    refusal = draw(st.sampled_from([None, None, None, "No."]))
    count = 0 if refusal else draw(st.integers(0, 3))
    arguments = st.sampled_from(["{}", '{"city": "Zürich"}', '{"city": "Par'])
    calls = [
        ToolCall(f"call_{turn}_{i}", draw(st.sampled_from(NAMES)), draw(arguments))
        for i in range(count)
    ]
    if refusal or not (text or calls) or draw(st.booleans()):
        return Message("assistant", text, tool_calls=tuple(calls), refusal=refusal)
    calls = [c if c.arguments[-1] == "}" else ToolCall(c.id, c.name) for c in calls]
    found = WIRES[format].decode(_NATIVE[format](text, calls), ModelFacts())
    return Message(
        "assistant",
        found.content,
        tool_calls=found.tool_calls,
        reasoning=found.reasoning,
        native=found.native,
    )


def _native_chat(text: str, calls: list[ToolCall]) -> Any:
    detail = {
        "type": "reasoning.text",
        "text": "Hm.",
        "signature": "c2ln",
        "index": 0,
        "format": "x-v1",
    }
    message = {
        "role": "assistant",
        "content": text,
        "reasoning_content": "Hm.",
        "reasoning_details": [detail],
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
                "extra_content": {"google": {"thought_signature": "c2ln"}},
            }
            for call in calls
        ],
    }
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def _native_responses(text: str, calls: list[ToolCall]) -> Any:
    items: list[Any] = [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "secret",
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    ]
    items[1]["action"] = {"type": "search", "query": "q", "queries": ["q"]}
    if text:
        said = {"type": "output_text", "text": text, "annotations": []}
        message = {"type": "message", "id": "msg_1", "role": "assistant"}
        told = {"status": "completed", "phase": "commentary", "content": [said]}
        items.append({**message, **told})
    for i, call in enumerate(calls):
        made = {"type": "function_call", "id": f"fc_{i}", "call_id": call.id}
        told = {"name": call.name, "arguments": call.arguments}
        items.append({**made, **told, "status": "completed"})
    return {"object": "response", "status": "completed", "output": items}


def _native_messages(text: str, calls: list[ToolCall]) -> Any:
    blocks: list[Any] = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "q"},
        },
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [
                {
                    "type": "web_search_result",
                    "url": "https://example.com",
                    "title": "T",
                    "encrypted_content": "eA==",
                    "page_age": None,
                }
            ],
        },
    ]
    blocks += [{"type": "text", "text": text}] if text.strip() else []
    for call in calls:
        given = json.loads(call.arguments)
        made = {"type": "tool_use", "id": call.id, "name": call.name, "input": given}
        blocks.append(made)
    return {"type": "message", "content": blocks, "stop_reason": "end_turn"}


def _native_gemini(text: str, calls: list[ToolCall]) -> Any:
    parts: list[Any] = [{"text": "Hm.", "thought": True}]
    parts += [{"text": text, "thoughtSignature": "c2ln"}] if text else []
    for i, call in enumerate(calls):
        made = {"id": call.id, "name": call.name, "args": json.loads(call.arguments)}
        parts.append({"functionCall": made})
        if i == 0:
            parts[-1]["thoughtSignature"] = "c2ln"
    content = {"role": "model", "parts": parts}
    return {"candidates": [{"content": content, "finishReason": "STOP"}]}


_NATIVE = {
    "chat": _native_chat,
    "responses": _native_responses,
    "messages": _native_messages,
    "gemini": _native_gemini,
}


# What a client's types make of a body.


def drained(value: Any) -> Any:
    """Return *value* with its lazy lists read, which is when they are checked."""
    if hasattr(value, "model_dump"):  # some types take answers for questions
        return value.model_dump()
    if isinstance(value, dict):
        return {key: drained(item) for key, item in value.items()}
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return value
    return [drained(item) for item in value]


def lost(ours: Any, theirs: Any, path: str = "$") -> Iterator[str]:
    """Yield the places of *ours* that are not in what the types made of it."""
    if isinstance(ours, dict):
        for key, value in ours.items():
            if key not in theirs:
                yield f"{path}.{key}"
            else:
                yield from lost(value, theirs[key], f"{path}.{key}")
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), path
        for mine, other in zip(ours, theirs):
            yield from lost(mine, other, f"{path}[]")


# Answers.


@st.composite
def responses(draw: Any, refusals: bool = True) -> Response:
    """Draw an answer as any vendor could give it."""
    text = draw(st.text(st.characters(codec="utf-8"), max_size=40).map(str.strip))
    arguments = st.sampled_from(["{}", '{"city": "Zürich \\"x\\"", "n": [1, 2.5]}'])
    calls = tuple(
        ToolCall(f"call_{i}", draw(st.sampled_from(NAMES)), draw(arguments))
        for i in range(draw(st.integers(0, 3)))
    )
    thought = draw(st.sampled_from(["", "Hm.", "Grüße\n\n👋"]))
    counts = st.integers(1, 9)
    usage = Usage.of(
        input=10 * draw(counts),
        output=10 * draw(counts),
        cached=draw(counts),
        reasoning=draw(counts) if thought else None,
    )
    finish = "tool_calls" if calls else draw(st.sampled_from(["stop", "length"]))
    refusal = None
    if refusals and not (text or calls) and draw(st.booleans()):
        refusal, finish = "No. 🙅", "refusal"
    elif not (text or calls):
        text = "Hi."
    return Response(
        text,
        calls,
        finish_reason=finish,
        refusal=refusal,
        reasoning=Reasoning(thought) if thought and not refusal else None,
        usage=usage,
        model="m-1",
    )


class Told:
    """A model that says what it is told to."""

    def __init__(self) -> None:
        self.response = Response("Hi.")

    def execute(self, request: Request, ctx: Any = None) -> Response:
        return self.response

    def stream(self, request: Request, ctx: Any = None) -> Iterator[Chunk]:
        return iter(split(self.response))


def summed_up(response: Response) -> dict[str, Any]:
    """Return what any client can be compared by."""
    usage, reasoning = response.usage, response.reasoning
    return {
        "text": response.content,
        "refusal": response.refusal or "",
        "calls": [(c.id, c.name, json.loads(c.arguments)) for c in response.tool_calls],
        "finish": response.finish_reason,
        "thought": "" if reasoning is None else reasoning.text,
        "tokens": (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens),
    }


@dataclass
class Bytes:
    """An answer as it went over the network."""

    status: int
    kind: str
    data: bytes


def bytes_of(server: LocalServer, path: str, body: Any) -> Bytes:
    """Ask *server* by hand and return what it says."""
    address = "/".join(server.url.split("/")[:3])
    asked = urllib.request.Request(address + path, json.dumps(body).encode())
    with urllib.request.urlopen(asked) as reply:
        return Bytes(reply.status, reply.headers["Content-Type"], reply.read())


class Replay:
    """Answers every POST with the same bytes, in pieces that cut where they like."""

    def __init__(self) -> None:
        self.answer = Bytes(500, "text/plain", b"")
        replay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = replay.answer
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.kind)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for at in range(0, len(answer.data), 97):
                    piece = answer.data[at : at + 97]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def ask(self, format: str, stream: bool) -> Response:
        """Let aeye read what was said."""
        provider = Provider(
            get_vendor("openai"),
            WIRES[format],
            ApiKey("k", ()),
            f"{self.url}/v1",
            model="m",
            retry=Retry(0),
        )
        request = Request((Message("user", "Hi"),))
        try:
            if stream:
                return join(provider.stream(request))
            return provider.execute(request)
        finally:
            provider.close()
