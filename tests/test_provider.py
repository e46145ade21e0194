"""``prepare``, ``execute`` and ``stream`` of a provider, over a canned transport."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator

import pytest

from aeye.context import Abort, Context
from aeye.errors import (
    AbortedError,
    AuthError,
    CapabilityError,
    ProtocolError,
    ProviderError,
    ServerError,
    StatusError,
    StreamCutError,
    TransportError,
)
from aeye.message import Message, Part
from aeye.provider import WIRES, ApiKey, Provider
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import join
from aeye.schema import Schema
from aeye.transport import Retry
from aeye.vendor import (
    ANTHROPIC,
    DEEPSEEK,
    GOOGLE,
    GROQ,
    LLAMACPP,
    MISTRAL,
    OLLAMA,
    OPENAI,
    XAI,
    Vendor,
)
from aeye.wire_chat import CHAT

CITY = Schema(
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }
)
NODE = Schema(
    {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {"type": "object", "properties": {"n": {"$ref": "#/$defs/node"}}}
        },
    }
)
OPEN = Schema({"type": "object", "additionalProperties": {"type": "string"}})
ANSWER = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
TEXT = "JSON object conforming to this schema"


class Canned:
    """A transport that gives canned replies, and notes what was sent."""

    def __init__(
        self, *pieces: Any, status: int = 200, kind: str = "application/json"
    ) -> None:
        self.pieces = pieces or (json.dumps(ANSWER).encode(),)
        self.status = status
        self.headers = {"content-type": kind, "x-request-id": "req-1"}
        self.sent: list[Any] = []
        self.closed: list[float] = []

    def open(self, url: str, headers: Any, body: bytes, signal: Any = None) -> Canned:
        self.sent.append((url, headers, json.loads(body)))
        return self

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def close(self, drain: float = 0.0) -> None:
        self.closed.append(drain)


def provider(
    vendor: Vendor = OPENAI, transport: Any = None, model: str = "m", **fields: Any
) -> Provider:
    fields.setdefault("key", ApiKey("sk-secret", vendor.key_names))
    fields.setdefault("base_url", vendor.base_url)
    return Provider(
        vendor,
        CHAT,
        model=model,
        transport=transport or Canned(),
        retry=Retry(0),
        **fields,
    )


def ask(*messages: Message, **fields: Any) -> Request:
    return Request(messages or (Message("user", "Hi"),), **fields)


def tool(name: str = "f", schema: Schema = CITY, **fields: Any) -> ToolDefinition:
    return ToolDefinition(name, "", schema, **fields)


def event(delta: Any, finish: Any = None) -> bytes:
    value = {"choices": [{"delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


# Preparing.


def test_model_is_filled_in() -> None:
    """The request's model counts, else the provider's; one there must be."""
    assert provider().prepare(ask()).model == "m"
    assert provider().prepare(ask(model="n")).model == "n"
    with pytest.raises(ValueError, match="no model"):
        provider(model=None).prepare(ask())  # type: ignore[arg-type]


def test_dialects() -> None:
    """Tools and output get the dialect of the model's family, strict where it goes."""
    request = ask(
        tools=(tool("a"), tool("b", OPEN), tool("c", strict=False)),
        response_format=ResponseFormat(CITY),
    )

    strict = provider(model="gpt-5").prepare(request)
    unknown = provider().prepare(request)

    assert [t.descriptor for t in strict.tools] == [
        "openai-strict",
        "openai-non-strict",
        "openai-non-strict",
    ]
    assert strict.response_format.descriptor == "openai-strict"  # type: ignore[union-attr]
    assert [t.descriptor for t in unknown.tools] == ["lenient"] * 3
    assert unknown.response_format.descriptor == "lenient"  # type: ignore[union-attr]
    assert request.tools[0].descriptor is None


def test_preparing_twice_changes_nothing() -> None:
    """A prepared request stays as it is, whichever way its schema goes."""
    output = ResponseFormat(Schema({"type": "integer"}))
    for delivery in ("auto", "structured", "prompt"):
        request = ask(
            tools=(tool(),),
            response_format=replace(output, schema_delivery=delivery),
        )
        model = provider(model="gpt-4o")

        once = model.prepare(request)

        assert model.prepare(once) == once


def test_root_is_wrapped() -> None:
    """A root that is no object goes out as {"value": …}."""
    output = ResponseFormat(Schema({"type": "array", "items": {"type": "string"}}))

    found: Any = provider().prepare(ask(response_format=output)).response_format

    assert found.schema.json["properties"]["value"]["type"] == "array"


def test_schema_as_text() -> None:
    """Prompt delivery adds the schema to the system message, exactly once."""
    output = ResponseFormat(CITY, schema_delivery="prompt")
    request = ask(Message("system", "Be brief."), Message("user", "Hi"))
    request = replace(request, response_format=output)
    model = provider(model="gpt-5")

    found = model.prepare(model.prepare(request))

    system = found.messages[0].text
    before, _, rest = system.partition("```json\n")
    schema, _, after = rest.partition("\n```")
    assert before.startswith("Be brief.\n\n")
    assert system.count(TEXT) == 1
    assert json.loads(schema)["required"] == ["city"]
    assert schema == json.dumps(json.loads(schema), indent=2)
    assert after.strip()
    assert found.response_format == output
    assert found.messages[1:] == request.messages[1:]


@pytest.mark.parametrize(
    ("messages", "count"),
    [
        ((Message("user", "Hi"),), 2),
        ((Message("system", ""), Message("user", "Hi")), 2),
        ((Message("system", (Part.text("Be"),)), Message("user", "Hi")), 2),
        ((Message("user", "Hi"), Message("system", "Late")), 2),
    ],
)
def test_places_for_the_text(messages: Any, count: int) -> None:
    """The text goes to the first system message there is, or before all others."""
    output = ResponseFormat(CITY, schema_delivery="prompt")
    model = provider()

    found = model.prepare(model.prepare(ask(*messages, response_format=output)))

    assert len(found.messages) == count
    assert sum(TEXT in message.text for message in found.messages) == 1


@pytest.mark.parametrize(
    ("vendor", "model", "tools", "delivery"),
    [
        (OPENAI, "gpt-4", 0, "prompt"),
        (OPENAI, "gpt-4o", 0, "auto"),
        (GROQ, "llama-3.1-8b", 0, "prompt"),
        (GROQ, "openai/gpt-oss-20b", 0, "auto"),
        (GROQ, "openai/gpt-oss-20b", 1, "prompt"),
        (LLAMACPP, "m", 1, "prompt"),
        (DEEPSEEK, "deepseek-chat", 0, "prompt"),
    ],
)
def test_delivery(vendor: Vendor, model: str, tools: int, delivery: str) -> None:
    """A schema goes as text where the model takes none, or none beside tools."""
    request = ask(tools=(tool(),) * tools, response_format=ResponseFormat(CITY))

    found: Any = provider(vendor, model=model).prepare(request).response_format

    assert found.schema_delivery == delivery
    assert (found.descriptor is None) == (delivery == "prompt")


def test_schema_the_dialect_cannot_say() -> None:
    """A schema beyond the family's dialect goes as text."""
    both = {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {"type": "object", "properties": {"b": {"type": "string"}}},
        ]
    }
    output = ResponseFormat(Schema({"type": "object", "properties": {"x": both}}))

    found: Any = provider(model="gpt-4o").prepare(ask(response_format=output))

    assert found.response_format.schema_delivery in ("auto", "prompt")


@pytest.mark.parametrize(
    ("vendor", "model", "fields", "message"),
    [
        (OPENAI, "gpt-5", {"temperature": 0.0}, "no temperature"),
        (OPENAI, "gpt-5", {"log_probabilities": 2}, "no log_probabilities"),
        (OPENAI, "o3", {"stop": ("x",)}, "no stop"),
        (OPENAI, "gpt-4o", {"reason": Reason("low")}, "how much to think"),
        (OPENAI, "o1-mini", {"tools": (tool(),)}, "takes no tools"),
        (OPENAI, "gpt-5.6", {"tools": (tool(),)}, "without reasoning"),
        (OPENAI, "m", {"tools": (tool(strict=True),)}, "no strict mode"),
        (OPENAI, "m", {"response_format": ResponseFormat(CITY, True)}, "strict=True"),
        (
            OPENAI,
            "gpt-4",
            {"response_format": ResponseFormat(CITY, schema_delivery="structured")},
            "takes no schema for its answer;",
        ),
        (
            LLAMACPP,
            "m",
            {
                "tools": (tool(),),
                "response_format": ResponseFormat(CITY, schema_delivery="structured"),
            },
            "beside tools",
        ),
        (
            OLLAMA,
            "m",
            {"tools": (tool(),), "tool_choice": "required"},
            "made to call a tool",
        ),
        (
            OLLAMA,
            "m",
            {"tools": (tool(),), "tool_choice": {"tool": "f"}},
            "made to call 'f'",
        ),
        (XAI, "grok-4", {"presence_penalty": 1.0}, "no presence_penalty"),
    ],
)
def test_what_cannot_be_had(
    vendor: Vendor, model: str, fields: Any, message: str
) -> None:
    """What a model has no place for is refused before anything is sent."""
    transport = Canned()
    with pytest.raises(CapabilityError, match=message) as caught:
        provider(vendor, transport, model=model).execute(ask(**fields))

    assert caught.value.provider == vendor.name
    assert transport.sent == []


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("gpt-5.2", {"temperature": 0.5}),
        ("gpt-5.2", {"temperature": 0.5, "reason": Reason("none")}),
        ("gpt-5", {"log_probabilities": False, "stop": ()}),
        ("gpt-5.6", {"tools": (tool(),), "reason": Reason("none")}),
        ("gpt-4o", {"tools": (tool(strict=True),)}),
    ],
)
def test_what_can_be_had(model: str, fields: Any) -> None:
    """The same is sent where the model takes it."""
    assert provider(model=model).execute(ask(**fields)).content == "Hello"


def test_thinking_turns_sampling_off() -> None:
    """A model that may think takes no temperature while it does."""
    request = ask(temperature=0.5, reason=Reason("low"))

    with pytest.raises(CapabilityError, match="temperature"):
        provider(model="gpt-5.2").prepare(request)


def test_efforts() -> None:
    """An effort that a model has not is refused, with those it has."""
    model = provider(facts=(("efforts", ("low", "high")),))

    assert model.prepare(ask(reason=Reason("low"))).reason == Reason("low")
    assert model.prepare(ask(reason=Reason())).reason == Reason()
    with pytest.raises(CapabilityError, match="low"):
        model.prepare(ask(reason=Reason("xhigh")))


def test_no_effort_needs_no_word() -> None:
    """A model that cannot think need not be told not to."""
    assert provider(MISTRAL).prepare(ask(reason=Reason("none"))).reason is None


def test_tool_choices() -> None:
    """A choice the host has no word for is put in other words where that works."""
    tools = (tool("a"), tool("b"))
    words = provider(LLAMACPP)
    none = provider(facts=(("tool_choices", frozenset({"required"})),))

    named = words.prepare(ask(tools=tools, tool_choice={"tool": "b"}))
    without = none.prepare(ask(tools=tools, tool_choice="none"))
    auto = none.prepare(ask(tools=tools, tool_choice="auto"))
    kept = provider().prepare(ask(tools=tools, tool_choice={"tool": "b"}))

    assert ([t.name for t in named.tools], named.tool_choice) == (["b"], "required")
    assert (without.tools, without.tool_choice) == ((), None)
    assert (len(auto.tools), auto.tool_choice) == (2, None)
    assert (len(kept.tools), kept.tool_choice) == (2, {"tool": "b"})
    with pytest.raises(ValueError, match=r"'c', the tools are \['a', 'b'\]"):
        provider().prepare(ask(tools=tools, tool_choice={"tool": "c"}))


def test_strict_that_cannot_be_is_warned_of() -> None:
    """strict=True with a schema that cannot go strict degrades, and says why.

    Each prompt is told, by the line that asked and with the names of what is meant.
    """
    model = provider(model="gpt-4o")
    tools = (tool(schema=OPEN, strict=True),)

    for name in ("a", "b"):
        with pytest.warns(UserWarning, match=f"'{name}', tool 'f': strict") as caught:
            found = model.prepare(ask(name=name, tools=tools))

        assert found.tools[0].descriptor == "openai-non-strict"
        assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("vendor", "schema", "reason"),
    [(XAI, NODE, "has no recursion"), (DEEPSEEK, CITY, "takes no schema")],
)
def test_strict_answer_as_text_is_warned_of(
    vendor: Vendor, schema: Schema, reason: str
) -> None:
    """strict=True for an answer whose schema goes out as text says that it does."""
    output = ResponseFormat(schema, strict=True)

    with pytest.warns(UserWarning, match=f"output: strict=True.*{reason}"):
        found = provider(vendor, model="gpt-4o").prepare(ask(response_format=output))

    assert found.response_format.schema_delivery == "prompt"  # type: ignore[union-attr]  # it is no "text"


def test_parts_a_model_does_not_take() -> None:
    """Kinds of media, and pictures by address, are refused where they do not go."""
    picture = Message("user", (Part.text("x"), Part.image("https://x/a.png")))
    deaf = provider(facts=(("inputs", frozenset({"image"})),))

    assert deaf.prepare(ask(picture)).messages == (picture,)
    with pytest.raises(CapabilityError, match="no audio"):
        deaf.prepare(ask(Message("user", (Part.audio(b"x", "wav"),))))
    with pytest.raises(CapabilityError, match="no picture by its address"):
        provider(OLLAMA).prepare(ask(picture))


# Sending.


def test_what_is_sent() -> None:
    """The address, the headers and the body; equal headers are one object."""
    transport = Canned()
    model = provider(transport=transport, headers={"X-A": "1"})

    model.execute(ask())
    list(model.stream(ask()))

    (url, headers, body), (_, again, streamed) = transport.sent
    assert url == "https://api.openai.com/v1/chat/completions"
    assert headers == {
        "Content-Type": "application/json",
        "Authorization": "Bearer sk-secret",
        "X-A": "1",
    }
    assert again is headers
    assert body == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    assert streamed["stream"] is True


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://x/v1/", "https://x/v1/chat/completions"),
        ("https://x/d?api-version=1", "https://x/d/chat/completions?api-version=1"),
    ],
)
def test_addresses(base: str, url: str) -> None:
    """The path is put behind the base, before its query."""
    transport = Canned()

    provider(transport=transport, base_url=base).execute(ask())

    assert transport.sent[0][0] == url


def test_files_are_read_when_sent(tmp_path: Path) -> None:
    """A path is opened for the sending, not in preparing; the request keeps it."""
    path = tmp_path / "a.png"
    transport = Canned()
    model = provider(transport=transport)
    request = model.prepare(ask(Message("user", (Part.image(path),))))
    path.write_bytes(b"\x89PNG\r\n\x1a\n")

    model.execute(request)

    sent = transport.sent[0][2]["messages"][0]["content"][0]["image_url"]["url"]
    assert sent.startswith("data:image/png;name=a.png;base64,")
    assert request.messages[0].content[0] == Part.image(path)


def test_calls_carry_their_dialect() -> None:
    """Each call says in which dialect its arguments are, whole and streamed."""
    calls = [
        {"index": i, "id": "c", "function": {"name": name, "arguments": "{}"}}
        for i, name in enumerate(("f", "other"))
    ]
    answer = {"choices": [{"message": {"tool_calls": calls}}]}
    events = event({"tool_calls": calls}, "tool_calls") + b"data: [DONE]\n\n"
    request = ask(tools=(tool(),))

    whole = provider(transport=Canned(json.dumps(answer).encode()), model="gpt-4o")
    streamed = provider(
        transport=Canned(events, kind="text/event-stream"), model="gpt-4o"
    )

    first = whole.execute(request).tool_calls
    assert [(c.id, c.name, c.descriptor) for c in first] == [
        ("c", "f", "openai-strict"),
        ("call_2", "other", None),
    ]
    assert join(streamed.stream(request)).tool_calls == first


def test_host_that_does_not_stream() -> None:
    """A whole answer to a streaming request is given in chunks."""
    assert join(provider().stream(ask())).content == "Hello"


def test_host_that_always_streams() -> None:
    """A stream in answer to a blocking request is joined."""
    transport = Canned(event({"content": "Hi"}, "stop"), kind="text/event-stream")

    assert provider(transport=transport).execute(ask()).content == "Hi"


def test_end_mark_in_the_middle() -> None:
    """What follows the end mark is not read; the rest is drained shortly."""
    data = (
        event({"content": "Hi"}, "stop") + b"data: [DONE]\n\n" + event({"content": "x"})
    )
    transport = Canned(data, TransportError("never read"), kind="text/event-stream")

    assert join(provider(transport=transport).stream(ask())).content == "Hi"
    assert transport.closed == [0.2]


def test_error_after_the_finish() -> None:
    """A body that breaks off after the finish reason had said all."""
    transport = Canned(
        event({"content": "Hi"}, "stop"), TransportError("broke"), kind="x/y"
    )

    assert join(provider(transport=transport).stream(ask())).content == "Hi"


@pytest.mark.parametrize(
    ("pieces", "cause"),
    [
        ([event({"content": "Hel"}), TransportError("broke off")], TransportError),
        ([event({"content": "Hel"}) + b'data: {"cho'], type(None)),
        ([event({"content": "Hel"})], type(None)),
    ],
)
def test_cuts(pieces: Any, cause: Any) -> None:
    """A stream that ends early is an error with the text, whatever ended it."""
    transport = Canned(*pieces, kind="text/event-stream")

    with pytest.raises(StreamCutError) as caught:
        list(provider(transport=transport).stream(ask()))

    assert caught.value.partial == "Hel"
    assert isinstance(caught.value.__cause__, cause)
    assert caught.value.provider == "openai"
    assert transport.closed == [0.0]


def test_last_event_without_its_end() -> None:
    """An event that the end of the body completes counts."""
    transport = Canned(
        event({"content": "Hi"}), event({}, "stop")[:-2], kind="text/event-stream"
    )

    assert join(provider(transport=transport).stream(ask())).content == "Hi"
    done = Canned(event({"content": "Hi"}) + b"data: [DONE]", kind="text/event-stream")
    assert join(provider(transport=done).stream(ask())).content == "Hi"


def test_answers_that_cannot_be_read() -> None:
    """What is no JSON is an error that shows how it begins."""
    with pytest.raises(ProtocolError, match="<html>") as caught:
        provider(transport=Canned(b"<html>")).execute(ask())

    assert caught.value.provider == "openai"


def test_early_close() -> None:
    """Closing the iterator closes the reply at once; unstarted, nothing is sent."""
    transport = Canned(event({"content": "Hi"}), event({}), kind="text/event-stream")
    model = provider(transport=transport)

    model.stream(ask()).close()  # type: ignore[attr-defined]
    assert transport.sent == []
    chunks: Any = model.stream(ask())
    next(chunks)
    chunks.close()

    assert transport.closed == [0.0]


def test_abort_between_chunks() -> None:
    """A signal is looked at before each read."""
    signal = Abort()
    transport = Canned(event({"content": "Hi"}), event({}), kind="text/event-stream")
    chunks = provider(transport=transport).stream(ask(), Context(signal=signal))

    next(chunks)
    signal.set()
    with pytest.raises(AbortedError):
        next(chunks)

    assert transport.closed == [0.0]


def test_abort_breaks_a_read() -> None:
    """What breaks because of the signal is no transport error."""

    class Shut(Canned):
        def __iter__(self) -> Iterator[bytes]:
            signal.set()
            raise TransportError("shut")
            yield b""

    for ask_it in (
        lambda m, c: m.execute(ask(), c),
        lambda m, c: list(m.stream(ask(), c)),
    ):
        signal = Abort()
        model = provider(transport=Shut(kind="text/event-stream"))
        with pytest.raises(AbortedError):
            ask_it(model, {"signal": signal})


def test_read_errors_of_a_whole_answer() -> None:
    """A blocking answer that breaks off is a transport error."""
    with pytest.raises(TransportError, match="openai: broke"):
        provider(transport=Canned(b"{", TransportError("broke"))).execute(ask())


def test_errors_hold_what_helps() -> None:
    """Status, body, request id, code and vendor; neither key nor header."""
    body = {"error": {"message": "no such model", "code": "model_not_found"}}
    transport = Canned(json.dumps(body).encode(), status=404)

    with pytest.raises(StatusError) as caught:
        provider(transport=transport).execute(ask())

    error = caught.value
    assert (error.status, error.code, error.request_id) == (
        404,
        "model_not_found",
        "req-1",
    )
    assert (error.body, error.provider) == (body, "openai")
    assert "sk-secret" not in repr(error) + str(vars(error))


def test_error_page() -> None:
    """An error body that is no JSON is kept as text, cut."""
    transport = Canned(b"<html>" + b"x" * 9000, status=502)

    with pytest.raises(StatusError) as caught:
        provider(transport=transport).execute(ask())

    assert len(caught.value.body) == 2000
    assert caught.value.message.startswith("<html>")


# Keys.


def test_pickle_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pickle holds neither key nor headers; the environment is asked again."""
    transport = Canned()
    data = pickle.dumps(replace(provider(), transport=None))

    assert b"sk-secret" not in data
    found = replace(pickle.loads(data), transport=transport)
    with pytest.raises(AuthError, match="OPENAI_API_KEY"):
        found.execute(ask())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    found.execute(ask())
    assert transport.sent[0][1]["Authorization"] == "Bearer sk-env"


def test_pickle_has_no_headers() -> None:
    """Headers may hold a secret: they are not pickled, and missed when asked."""
    model = replace(provider(headers={"X-Key": "sk-secret"}), transport=None)
    data = pickle.dumps(model)

    assert b"sk-secret" not in data
    found = pickle.loads(pickle.dumps(pickle.loads(data)))
    with pytest.raises(ValueError, match=r"\['X-Key'\] given to connect"):
        found.execute(ask())


def test_deep_copy_keeps_the_key() -> None:
    """A copy in this process asks with the same key and headers."""
    found = copy.deepcopy(provider(headers={"X-Key": "1"}))
    found.execute(ask())
    transport: Any = found.transport

    headers = transport.sent[0][1]
    assert (headers["Authorization"], headers["X-Key"]) == ("Bearer sk-secret", "1")


def test_server_without_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server at home is asked without a key, and told what the environment says."""
    transport = Canned()
    provider(OLLAMA, transport, key=ApiKey(None, ())).execute(ask())
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    provider(OPENAI, transport).execute(ask())

    assert "Authorization" not in transport.sent[0][1]
    assert transport.sent[1][1]["OpenAI-Organization"] == "org-1"


def test_close_of_a_foreign_transport() -> None:
    """A transport that is not ours is not ours to close."""
    provider().close()


def test_key_that_a_host_repeats() -> None:
    """A key in an error body is taken out."""
    body = b'{"error": {"message": "Incorrect API key provided: sk-secret."}}'
    transport = Canned(body, status=401)

    with pytest.raises(AuthError) as caught:
        provider(transport=transport).execute(ask())

    assert caught.value.message == (
        "Incorrect API key provided: [key]. (the key was given as api_key=)"
    )
    assert "sk-secret" not in str(caught.value.body)


def test_hints_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error says where a refused key came from, and what was not found where."""
    body = json.dumps({"error": {"message": "No."}}).encode()
    unknown = ApiKey(None, ("A_KEY", "B_KEY"))

    def message(status: int, **fields: Any) -> str:
        transport = Canned(body, status=status)
        with pytest.raises(StatusError) as caught:
            provider(OLLAMA, transport, **fields).execute(ask())
        return caught.value.message

    assert message(401, key=unknown) == (
        "No. (there is no key: set A_KEY or B_KEY, or pass api_key=)"
    )
    monkeypatch.setenv("B_KEY", "k")
    assert message(403, key=unknown) == "No. (the key is from B_KEY)"
    assert message(401, key=ApiKey(None, ()), headers={"X": "y"}) == "No."
    assert message(404, base_url="http://x/v1?key=k") == (
        "No. (asked for 'm' at http://x/v1/chat/completions)"
    )


@pytest.mark.parametrize(
    ("vendor", "format", "base", "url", "header"),
    [
        (
            ANTHROPIC,
            "messages",
            "https://x",
            "https://x/v1/messages",
            ("Authorization", "Bearer sk-test"),
        ),
        (
            ANTHROPIC,
            "messages",
            "https://x/anthropic/v1/",
            "https://x/anthropic/v1/messages",
            ("Authorization", "Bearer sk-test"),
        ),
        (
            GOOGLE,
            "gemini",
            "https://x/v1beta?a=b",
            "https://x/v1beta/models/m:generateContent?a=b",
            ("x-goog-api-key", "sk-test"),
        ),
        (
            GOOGLE,
            "chat",
            "https://x/v1beta/openai",
            "https://x/v1beta/openai/chat/completions",
            ("Authorization", "Bearer sk-test"),
        ),
    ],
)
def test_address_and_key_of_a_format(
    vendor: Any, format: str, base: str, url: str, header: tuple[str, str]
) -> None:
    """The API's version stands once in a URL; the key goes as the format has it."""
    transport = Canned(b"no", status=400, kind="text/plain")
    model = replace(
        provider(vendor, transport, base_url=base, key=ApiKey("sk-test", ())),
        wire=WIRES[format],
    )

    with pytest.raises(StatusError):
        model.execute(ask())

    assert transport.sent[0][0] == url
    assert transport.sent[0][1][header[0]] == header[1]


def test_path_with_a_query() -> None:
    """A format's own query and that of the address are put together."""
    transport = Canned()
    wire = replace(
        CHAT,
        path=lambda model, stream: f"/{model}:go?alt=sse",
        headers=lambda request, facts: {"X-Version": "1"},
    )
    model = replace(
        provider(transport=transport, base_url="https://x/v1?a=b"), wire=wire
    )

    model.execute(ask())
    model.execute(ask())

    assert transport.sent[0][0] == "https://x/v1/m:go?alt=sse&a=b"
    assert transport.sent[0][1]["X-Version"] == "1"
    assert transport.sent[1][1] is transport.sent[0][1]


# Secrets.

SECRET = "sk-secret-123"
QUOTA = {"error": {"message": f"quota {SECRET}", "code": SECRET}}


def everything(error: BaseException) -> str:
    """All that can be seen of an error and of those it came from."""
    said = ""
    at: Any = error
    while at is not None:
        said += f"{at} {at!r} {vars(at)} {getattr(at, 'strerror', '')}"
        at = at.__cause__ or at.__context__
    return said


def answers_with_a_secret() -> Iterator[Any]:
    """Replies in which a host repeats *SECRET*."""
    stream = "text/event-stream"
    yield Canned(json.dumps(QUOTA).encode())
    yield Canned(json.dumps(QUOTA).encode(), status=400)
    yield Canned(b"data: " + json.dumps(QUOTA).encode() + b"\n\n", kind=stream)
    yield Canned(b"<html>" + SECRET.encode())
    yield Canned(b"<html>" + b"x" * 190 + SECRET.encode())
    yield Canned(json.dumps({"no": SECRET}).encode())
    yield Canned(json.dumps([SECRET]).encode())
    yield Canned(b"data: {" + SECRET.encode() + b"\n\n", kind=stream)
    yield Canned(TransportError(f"broke at /v1?key={SECRET}"))
    named = Canned(b"{}", status=400)
    named.headers["x-request-id"] = SECRET
    yield named


@pytest.mark.parametrize("reply", answers_with_a_secret())
@pytest.mark.parametrize(
    "fields",
    [
        {"key": ApiKey(SECRET, ())},
        {"headers": {"X-Key": SECRET}},
        {"headers": {"Authorization": f"Bearer {SECRET}"}},
        {"base_url": f"https://x/v1?key={SECRET}"},
    ],
    ids=["key", "header", "bearer", "query"],
)
def test_secrets_that_a_host_repeats(reply: Any, fields: Any) -> None:
    """No error shows a key, a caller's header or an address's query, in any part."""
    model = provider(transport=reply, **fields)

    for call in (model.execute, lambda request: list(model.stream(request))):
        with pytest.raises(ProviderError) as caught:
            call(ask())

        assert SECRET[:-1] not in everything(caught.value)


def test_address_in_a_pickle() -> None:
    """What is secret in an address is in no pickle, and missed; a version is kept."""
    url = "https://x/v1?api-version=1"
    plain = replace(provider(base_url=url), transport=None)
    secret = replace(provider(base_url=f"{url}&key={SECRET}"), transport=None)

    data = pickle.dumps(secret)
    assert SECRET.encode() not in data
    assert SECRET not in repr(secret)
    for found in (pickle.loads(data), copy.deepcopy(pickle.loads(data))):
        with pytest.raises(ValueError, match="connect\\(\\) anew"):
            found.execute(ask())
    assert pickle.loads(pickle.dumps(plain)).base_url == url


# Answers that are not what they should be.


def test_errors_in_a_stream_have_the_text_so_far() -> None:
    """Whatever ends a stream early, its error has what had come."""
    failed = (
        event({"content": "hello wor"}) + b'data: {"error": {"message": "down"}}\n\n'
    )
    garbled = event({"content": "hello wor"}) + b"data: {\n\n"
    for body in (failed, garbled):
        model = provider(transport=Canned(body, kind="text/event-stream"))
        for call in (model.execute, lambda r, m=model: list(m.stream(r))):  # type: ignore[misc]  # a default binds the loop's value
            with pytest.raises(ProviderError) as caught:
                call(ask())
            assert caught.value.partial == "hello wor"


@pytest.mark.parametrize("end", [[], [TransportError("broke")]])
def test_long_and_broken_error_bodies(end: Any) -> None:
    """An error status stays one, however long its body is, and wherever it ends."""
    reply = Canned(b"busy" * 500_000, *end, status=503)

    with pytest.raises(ServerError) as caught:
        provider(transport=reply).execute(ask())

    assert (caught.value.status, len(caught.value.body)) == (503, 2000)


@pytest.mark.parametrize(
    "pieces",
    [(b'"a\\ud83d', b'\\ude00"'), (b'"a\\uD83D\\uDE00"',)],
    ids=["halved", "whole"],
)
@pytest.mark.parametrize("key", ["content", "refusal", "reasoning_content"])
def test_halved_characters(pieces: Any, key: str) -> None:
    """A character in two halves is one again, wherever a host cuts its text."""
    texts = [piece.strip(b'"') for piece in pieces]
    body = b"".join(
        b'data: {"choices": [{"delta": {"%s": "%s"}}]}\n\n' % (key.encode(), text)
        for text in texts
    )
    transport = Canned(body, event({}, "stop"), kind="text/event-stream")

    found: Any = join(provider(transport=transport).stream(ask()))

    text = {
        "content": found.content,
        "refusal": found.refusal,
        "reasoning_content": found.reasoning and found.reasoning.content,
    }[key]
    assert text == "a\U0001f600"


def test_halves_of_nothing() -> None:
    """Half a character is U+FFFD, in an answer as in a stream of it, and in errors."""
    said = b'{"content": "a\\ud83d", "refusal": "\\ude00b", "reasoning": "\\ud83d"}'
    whole = Canned(b'{"choices": [{"message": %s, "finish_reason": "stop"}]}' % said)
    stream = Canned(
        b'data: {"choices": [{"delta": %s}]}\n\n' % said,
        event({}, "stop"),
        kind="text/event-stream",
    )
    wrong = Canned(
        b'data: {"error": {"message": "\\ud83d"}}\n\n', kind="x/event-stream"
    )

    first = provider(transport=whole).execute(ask())

    assert (first.content, first.refusal) == ("a\ufffd", "\ufffdb")
    assert first.reasoning is not None
    assert first.reasoning.content == "\ufffd"
    second = join(provider(transport=stream).stream(ask()))
    assert replace(second, finish_reason=first.finish_reason) == first
    with pytest.raises(StatusError, match="\ufffd"):
        provider(transport=wrong).execute(ask())


def test_bytes_that_are_no_text() -> None:
    """What is no UTF-8 costs a character, not the answer, streaming or not."""
    whole = b'{"choices": [{"message": {"content": "a\xff"}, "finish_reason": "stop"}]}'
    stream = b'data: {"choices": [{"delta": {"content": "a\xff"}}]}\n\ndata: [DONE]\n\n'

    for body, kind in ((whole, "application/json"), (stream, "text/event-stream")):
        assert provider(transport=Canned(body, kind=kind)).execute(ask()).content == (
            "a\ufffd"
        )


@pytest.mark.parametrize("delta", [None, {"role": "assistant"}, {"content": ""}])
def test_end_mark_alone(delta: Any) -> None:
    """An end mark makes no answer of nothing; a finish reason does."""
    body = b"" if delta is None else event(delta)
    done = Canned(body + b"data: [DONE]\n\n", kind="text/event-stream")
    finished = Canned(body, event({}, "stop"), kind="text/event-stream")

    with pytest.raises(StreamCutError, match="neither content nor a finish reason"):
        list(provider(transport=done).stream(ask()))
    assert join(provider(transport=finished).stream(ask())).content == ""
    assert (
        provider(
            transport=Canned(b'{"choices": [{"message": {}, "finish_reason": "stop"}]}')
        )
        .execute(ask())
        .content
        == ""
    )
    with pytest.raises(ProtocolError, match="neither content nor a finish reason"):
        provider(transport=Canned(b'{"choices": [{"message": {}}]}')).execute(ask())


@pytest.mark.parametrize("calls", ["x", [None], 5, [{"function": {}}, 1]])
def test_calls_that_are_none(calls: Any) -> None:
    """What stands for calls and is none is refused, not left out."""
    said = {"content": "Hi", "tool_calls": calls}
    whole = {"choices": [{"message": said, "finish_reason": "stop"}]}
    stream = Canned(event(said, "stop"), kind="text/event-stream")

    with pytest.raises(ProtocolError, match="no list of objects"):
        provider(transport=Canned(json.dumps(whole).encode())).execute(ask())
    with pytest.raises(ProtocolError, match="no list of objects"):
        list(provider(transport=stream).stream(ask()))
