"""The Gemini codec: requests out, answers and streams in, errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.delivery import apply_plan
from aeye.errors import (
    AeyeError,
    CapabilityError,
    ContextLengthError,
    ProtocolError,
    ServerError,
    StatusError,
    StreamCutError,
)
from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.request import Reason, Request, ResponseFormat, ToolDefinition
from aeye.response import Chunk, Response, ToolCallDelta, join
from aeye.schema import Schema
from aeye.usage import Usage
from aeye.vendor import GOOGLE, find_facts
from aeye.wire import ModelFacts, status_error
from aeye.wire_gemini import GEMINI

FACTS = ModelFacts()
NEWER = find_facts(GOOGLE, "gemini-3.6-flash", "gemini")
OLDER = find_facts(GOOGLE, "gemini-2.5-flash", "gemini")
HI = Message("user", "Hi")
PLACE = Schema({"type": "object", "properties": {"city": {"type": "string"}}})
TOOL = ToolDefinition("weather", "Weather.", parameters=PLACE)
CALL = ToolCall("call_1", "weather", arguments='{"city": "Paris"}')
PARIS = {"name": "weather", "args": {"city": "Paris"}}


def encode(
    *messages: Message, facts: ModelFacts = FACTS, **fields: Any
) -> dict[str, Any]:
    """Plan and encode, and check that the body is JSON."""
    request = apply_plan(Request(messages or (HI,), model="m", **fields), facts)
    body = GEMINI.encode(request, facts, False)
    assert json.loads(json.dumps(body, allow_nan=False)) == body
    return body


def turns(*messages: Message, facts: ModelFacts = FACTS) -> Any:
    return encode(*messages, facts=facts)["contents"]


def config(facts: ModelFacts = FACTS, **fields: Any) -> Any:
    return encode(facts=facts, **fields).get("generationConfig")


def turn(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def native(*items: Any) -> dict[str, Any]:
    return {"format": "gemini", "items": list(items)}


# Requests.


@pytest.mark.parametrize(
    ("model", "stream", "path"),
    [
        ("gemini-x", False, "/v1beta/models/gemini-x:generateContent"),
        ("gemini-x", True, "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"),
        ("tunedModels/a b?", False, "/v1beta/tunedModels/a%20b%3F:generateContent"),
    ],
)
def test_path(model: str, stream: bool, path: str) -> None:
    """The path names the model and says whether to stream."""
    assert GEMINI.path(model, stream) == path


def test_plain_request() -> None:
    """System messages have a place of their own; what is not said is not sent."""
    body = encode(Message("system", "A"), HI, Message("system", "B"))

    assert body == {
        "contents": [turn("user", {"text": "Hi"})],
        "systemInstruction": {"parts": [{"text": "A"}, {"text": "B"}]},
    }
    assert encode() == {"contents": [turn("user", {"text": "Hi"})]}


def test_replies_to_one_turn_are_one_turn() -> None:
    """Replies name the call's function; malformed arguments go as an empty object."""
    calls = (CALL, ToolCall("call_2", "now", arguments="{"))

    found = turns(
        HI,
        Message("assistant", "Let me see.", tool_calls=calls),
        Message("tool", "21", tool_call_id="call_1"),
        Message("tool", "noon", tool_call_id="call_2"),
        Message("user", "And?"),
        Message("assistant", ""),
        Message("assistant", "", refusal="No."),
    )

    def reply(name: str, text: str) -> Any:
        return {"functionResponse": {"name": name, "response": {"output": text}}}

    assert found == [
        turn("user", {"text": "Hi"}),
        turn(
            "model",
            {"text": "Let me see."},
            {"functionCall": PARIS},
            {"functionCall": {"name": "now", "args": {}}},
        ),
        turn("user", reply("weather", "21"), reply("now", "noon")),
        turn("user", {"text": "And?"}),
        turn("model", {"text": "No."}),
    ]


def test_reply_without_its_call() -> None:
    """A reply needs the name of what was called."""
    named = Message("tool", "21", name="weather", tool_call_id="lost")

    found = turns(HI, named)

    assert found[1]["parts"][0]["functionResponse"]["name"] == "weather"
    with pytest.raises(ValueError, match="wants its name"):
        turns(HI, replace(named, name=None))
    with pytest.raises(ValueError, match="needs a tool_call_id"):
        turns(HI, Message("tool", "21"))


def test_parts() -> None:
    """Media go as bytes or by address, with their type; text files as text."""
    found = turns(
        Message(
            "user",
            (
                Part.text(""),
                Part.image("data:image/png;base64,aWNvbg=="),
                Part.audio("data:audio/wav;base64,UklG"),
                Part.file("data:application/pdf;base64,JVBERg=="),
                Part.file("data:text/csv;name=a.csv;base64,YSxi"),
                Part.file("data:application/json;base64,e30="),
                Part.image("https://x/y.png?size=1"),
                Part.file("https://x/files/abc", "video/mp4"),
                Part.file("https://x/files/abc", "mp4"),
            ),
        )
    )

    assert found[0]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "aWNvbg=="}},
        {"inlineData": {"mimeType": "audio/wav", "data": "UklG"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
        {"text": "a.csv:\na,b"},
        {"text": "{}"},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png?size=1"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://x/files/abc"}},
        {"fileData": {"fileUri": "https://x/files/abc"}},
    ]
    with pytest.raises(CapabilityError, match="system message"):
        turns(HI, Message("system", (Part.image("https://x/y.png"),)))


def test_parts_of_a_reply() -> None:
    """A tool may reply with pictures beside its text."""
    picture = Part.image("data:image/png;base64,aWNvbg==")
    asked = (HI, Message("assistant", tool_calls=(CALL,)))

    found = turns(*asked, Message("tool", ("Here:", picture), tool_call_id="call_1"))
    plain = turns(*asked, Message("tool", ("Here:",), tool_call_id="call_1"))

    said = {"name": "weather", "response": {"output": "Here:"}}
    media = {"inlineData": {"mimeType": "image/png", "data": "aWNvbg=="}}
    assert found[2]["parts"] == [{"functionResponse": {**said, "parts": [media]}}]
    assert plain[2]["parts"] == [{"functionResponse": said}]


@pytest.mark.parametrize(
    ("choice", "strict", "calling"),
    [
        (None, 1, None),
        ("auto", 1, {"mode": "AUTO"}),
        ("none", True, {"mode": "NONE"}),
        ("required", True, {"mode": "ANY"}),
        (
            {"tool": "weather"},
            1,
            {"mode": "ANY", "allowedFunctionNames": ["weather"]},
        ),
        (None, True, {"mode": "VALIDATED"}),
        ("auto", True, {"mode": "VALIDATED"}),
    ],
)
def test_tools_and_their_choice(choice: Any, strict: Any, calling: Any) -> None:
    """Each choice has its word; who insists on strict gets the mode that checks."""
    tool = replace(TOOL, strict=strict)

    body = encode(facts=NEWER, tools=(tool,), tool_choice=choice)

    declared = body["tools"][0]["functionDeclarations"]
    assert declared[0]["name"] == "weather"
    assert declared[0]["description"] == "Weather."
    assert declared[0]["parametersJsonSchema"]["type"] == "object"
    assert body.get("toolConfig", {}).get("functionCallingConfig") == calling


def test_tool_without_a_description() -> None:
    """What is not said is not sent."""
    body = encode(tools=(replace(TOOL, description=""),))

    declared = body["tools"][0]["functionDeclarations"][0]
    assert set(declared) == {"name", "parametersJsonSchema"}


def test_structured_output() -> None:
    """A schema goes out as JSON Schema; in words it is no business of ours."""
    output = ResponseFormat(PLACE)

    found = config(NEWER, response_format=output)

    assert found["responseMimeType"] == "application/json"
    assert found["responseJsonSchema"]["properties"] == {"city": {"type": "string"}}
    worded = replace(output, schema_delivery="prompt")
    assert config(NEWER, response_format=worded) is None


def test_parameters() -> None:
    """Other parameters have their names; extra goes over all."""
    body = encode(
        temperature=0.5,
        top_p=0.9,
        max_tokens=9,
        stop=("END",),
        frequency_penalty=0.1,
        presence_penalty=0.2,
        log_probabilities=True,
        user_key="u1",
        cache_key="c1",
        extra={"generationConfig": {"topK": 5}, "labels": {"a": "b"}},
    )

    assert body["generationConfig"] == {
        "temperature": 0.5,
        "topP": 0.9,
        "maxOutputTokens": 9,
        "stopSequences": ["END"],
        "frequencyPenalty": 0.1,
        "presencePenalty": 0.2,
        "responseLogprobs": True,
        "topK": 5,
    }
    assert set(body) == {"contents", "generationConfig", "labels"}
    assert config(log_probabilities=3) == {"responseLogprobs": True, "logprobs": 3}


@pytest.mark.parametrize(
    ("facts", "reason", "thinking"),
    [
        (NEWER, Reason(), None),
        (NEWER, Reason("low"), {"includeThoughts": True, "thinkingLevel": "LOW"}),
        (
            NEWER,
            Reason(None, 99),
            {"includeThoughts": True, "thinkingBudget": 99},
        ),
        (OLDER, Reason("none"), {"thinkingBudget": 0}),
        (
            OLDER,
            Reason("medium"),
            {"includeThoughts": True, "thinkingBudget": 8192},
        ),
        (FACTS, Reason("high"), {"includeThoughts": True, "thinkingLevel": "HIGH"}),
    ],
)
def test_thinking(facts: ModelFacts, reason: Reason, thinking: Any) -> None:
    """How much to think is said in the form that the model knows."""
    assert (config(facts, reason=reason) or {}).get("thinkingConfig") == thinking


@pytest.mark.parametrize(
    ("facts", "reason", "words"),
    [
        (NEWER, Reason("low", 9), "not both"),
        (NEWER, Reason("none"), "no effort 'none'"),
        (OLDER, Reason("huge"), "no effort 'huge'"),
    ],
)
def test_thinking_that_cannot_be(facts: ModelFacts, reason: Reason, words: str) -> None:
    """Contradictions, and words that the model has not, are told."""
    with pytest.raises(CapabilityError, match=words):
        encode(facts=facts, reason=reason)


def test_own_parts_are_sent_back_unchanged() -> None:
    """Signatures stay on their parts, in their order; replies repeat the call's id."""
    parts = [
        {"text": "Hm.", "thought": True},
        {"text": "Let me", "thoughtSignature": "s1"},
        {"executableCode": {"code": "1"}},
        {"text": " see."},
        {"functionCall": {**PARIS, "id": "x1"}, "thoughtSignature": "s2"},
    ]
    call = replace(CALL, id="x1")
    message = Message(
        "assistant", "Let me see.", tool_calls=(call,), native=native(*parts)
    )

    found = turns(HI, message, Message("tool", "21", tool_call_id="x1"), facts=NEWER)

    assert found[1]["parts"] == parts
    assert found[2]["parts"][0]["functionResponse"]["id"] == "x1"


@pytest.mark.parametrize(
    "items",
    [
        [{"text": "Other.", "thoughtSignature": "s"}],
        [{"text": "Yes.", "thoughtSignature": "s"}],
        [{"text": "Yes."}, {"functionCall": {"name": "now"}}],
        [{"text": "Yes."}, {"functionCall": {**PARIS, "args": {}}}],
        [{"text": "Yes."}, {"functionCall": {**PARIS, "id": "other"}}],
        "odd",
    ],
)
def test_parts_that_say_something_else_are_not_sent(items: Any) -> None:
    """An edited turn is made from its fields, with the word that lets it pass."""
    message = Message(
        "assistant",
        "Yes.",
        tool_calls=(CALL, CALL),
        native={"format": "gemini", "items": items},
    )

    newer = turns(HI, message, facts=NEWER)[1]["parts"]
    older = turns(HI, message, facts=OLDER)[1]["parts"]

    pass_ = {"thoughtSignature": "skip_thought_signature_validator"}
    assert older == [{"text": "Yes."}, {"functionCall": PARIS}, {"functionCall": PARIS}]
    assert newer == [older[0], {**older[1], **pass_}, older[2]]
    assert turns(HI, Message("assistant", "Yes."), facts=NEWER)[1] == turn(
        "model", {"text": "Yes."}
    )


# Answers.


def piece(*parts: Any, finish: Any = None, **body: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if finish is not None:
        said["finishReason"] = finish
    return {"candidates": [said], **body}


def decode(*parts: Any, finish: Any = "STOP", **body: Any) -> Response:
    return GEMINI.decode(piece(*parts, finish=finish, **body), FACTS)


def test_whole_answer() -> None:
    """Text, thoughts and calls; what the fields cannot say is kept to be sent back."""
    parts = [
        {"text": "Hm.", "thought": True},
        {"text": "Let me "},
        {"text": "see."},
        {"functionCall": PARIS, "thoughtSignature": "s"},
        {"functionCall": {**PARIS, "id": "x2"}},
    ]

    found = decode(
        *parts,
        finish="STOP",
        modelVersion="gemini-x",
        responseId="r1",
        usageMetadata={
            "promptTokenCount": 10,
            "cachedContentTokenCount": 4,
            "toolUsePromptTokenCount": 5,
            "candidatesTokenCount": 6,
            "thoughtsTokenCount": 7,
            "totalTokenCount": 28,
        },
    )

    assert found == Response(
        "Let me see.",
        (CALL, replace(CALL, id="x2")),
        finish_reason="tool_calls",
        reasoning=Reasoning("Hm."),
        usage=Usage.of(input=15, output=13, cached=4, reasoning=7, total=28),
        model="gemini-x",
        extra={"finishReason": "STOP", "responseId": "r1"},
        native=native(parts[0], {"text": "Let me see."}, *parts[3:]),
    )


def test_plain_answer_needs_no_parts() -> None:
    """What the fields say alone is not kept twice."""
    assert decode({"text": "Yes."}, {"functionCall": PARIS}).native is None
    assert decode({"text": ""}).native is None


@pytest.mark.parametrize(
    ("raw", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("CONTINUATION", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("SOMETHING_NEW", "stop"),
        ("FINISH_REASON_UNSPECIFIED", "stop"),
        (None, "stop"),
        (7, "stop"),
    ],
)
def test_finish(raw: Any, finish: str) -> None:
    """The vendor's reasons are many, ours are few."""
    assert decode({"text": ""}, finish=raw).finish_reason == finish
    called = decode({"functionCall": {"name": "now"}}, finish=raw).finish_reason
    assert called == ("tool_calls" if finish == "stop" else finish)


@pytest.mark.parametrize(
    ("raw", "cls"),
    [
        ("MALFORMED_FUNCTION_CALL", ServerError),
        ("OTHER", ServerError),
        ("MISSING_THOUGHT_SIGNATURE", StatusError),
    ],
)
def test_answer_that_failed(raw: str, cls: type[StatusError]) -> None:
    """A model that broke off its answer has given none."""
    body = piece(finish=raw, usageMetadata={"promptTokenCount": 3})
    body["candidates"][0]["finishMessage"] = "call(x"

    with pytest.raises(cls, match=f"{raw}: call") as caught:
        GEMINI.decode(body, FACTS)

    assert type(caught.value) is cls
    assert (caught.value.code, caught.value.usage) == (raw, Usage.of(input=3))
    with pytest.raises(cls, match=f"with {raw}"):
        decode(finish=raw)


def test_answer_that_was_filtered() -> None:
    """The vendor's words say why, where there are any."""
    body: Any = piece(finish="SAFETY")
    body["candidates"][0].update(content={}, finishMessage="Unsafe.")

    assert GEMINI.decode(body, FACTS).refusal == "Unsafe."
    assert decode(finish="SAFETY").refusal is None


def test_prompt_that_was_blocked() -> None:
    """A blocked prompt has no answer, and says so."""
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
    because = {"blockReason": "OTHER", "blockReasonMessage": "Bad words."}

    found = [
        GEMINI.decode(body, FACTS)
        for body in (blocked, {"promptFeedback": because, "candidates": []})
    ]

    assert [(r.finish_reason, r.refusal) for r in found] == [
        ("content_filter", None),
        ("content_filter", "Bad words."),
    ]


def test_array_of_pieces() -> None:
    """A stream that came as one array is understood."""
    found = GEMINI.decode(
        [piece({"text": "Hel"}), piece({"text": "lo."}, finish="STOP")], FACTS
    )

    assert (found.content, found.extra) == ("Hello.", {"finishReason": "STOP"})


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"candidates": []},
        {"candidates": [{"index": 1}], "promptFeedback": []},
        {"promptFeedback": {}},
        piece(),
        piece(finish="FINISH_REASON_UNSPECIFIED"),
        piece({"functionCall": {"args": {"a": 1}}}),
    ],
)
def test_answers_that_cannot_be_read(body: Any) -> None:
    """What is no answer is an error of ours, whatever it is."""
    with pytest.raises(ProtocolError):
        GEMINI.decode(body, FACTS)


def test_answer_that_is_an_error() -> None:
    """A gateway may say 200 and mean it not."""
    error = {"code": 400, "status": "INVALID_ARGUMENT", "message": "Bad."}

    for body in ({"error": error}, [{"error": error}]):
        with pytest.raises(StatusError, match="Bad") as caught:
            GEMINI.decode(body, FACTS)
        assert (caught.value.status, caught.value.code) == (400, "INVALID_ARGUMENT")


# Streams.


def feed(*events: Any, end: bool = True) -> list[Chunk]:
    decoder = GEMINI.decoder(FACTS)
    chunks: list[Chunk] = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        chunks += decoder.feed(data, "")
    assert not decoder.ended
    return chunks + list(decoder.end()) if end else chunks


def test_streamed_text() -> None:
    """Text comes in pieces; of the numbers the last ones count."""
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 2}

    found = feed(
        piece({"text": "Hm.", "thought": True}, usageMetadata={"promptTokenCount": 3}),
        piece({"text": "Hel"}, finish="STOP"),
        piece({"text": "lo."}, usageMetadata=usage),
        "",
        piece({"text": ""}, finish="MAX_TOKENS", usageMetadata={"trafficType": "X"}),
        {"usageMetadata": [], "modelVersion": "gemini-x"},
    )

    thought = {"text": "Hm.", "thought": True}
    assert found == [
        Chunk(reasoning=Reasoning("Hm.")),
        Chunk("Hel"),
        Chunk("lo."),
        Chunk(
            finish_reason="length",
            usage=Usage.of(input=3, output=2),
            model="gemini-x",
            native=native(thought, {"text": "Hello."}),
        ),
    ]


def test_streamed_calls() -> None:
    """A call comes whole and may be run at once."""
    found = feed(
        piece({"functionCall": PARIS}, {"functionCall": {"name": "now", "id": "x2"}}),
        piece(finish="STOP"),
    )

    arguments = ToolCallDelta("", "weather", '{"city": "Paris"}')
    assert found == [
        Chunk(tool_call_named=ToolCall("", "weather", arguments="")),
        Chunk(tool_call_arguments=arguments),
        Chunk(tool_call=replace(CALL, id="")),
        Chunk(tool_call_named=ToolCall("x2", "now", arguments="")),
        Chunk(tool_call_arguments=ToolCallDelta("x2", "now", "{}")),
        Chunk(tool_call=ToolCall("x2", "now")),
        Chunk(
            finish_reason="tool_calls",
            native=native(
                {"functionCall": PARIS},
                {"functionCall": {"name": "now", "id": "x2", "args": {}}},
            ),
        ),
    ]


def partial(*pieces: Any, more: bool = True, **call: Any) -> dict[str, Any]:
    said = {**call, "partialArgs": list(pieces)} if pieces else dict(call)
    if more:
        said["willContinue"] = True
    return piece({"functionCall": said})


def test_calls_in_pieces() -> None:
    """Arguments may come by their paths, until the call ends or another begins."""

    def text(path: str, value: str) -> Any:
        return {"jsonPath": path, "stringValue": value, "willContinue": True}

    found = join(
        feed(
            partial(name="book", id="b"),
            partial(text("$.rows[0].name", "A")),
            partial(text("$.rows[0].name", "da")),
            partial({"jsonPath": "$.rows[0]['is in']", "boolValue": False}),
            partial({"jsonPath": '$.rows[1]["age"]', "numberValue": 36}),
            partial({"jsonPath": "$.note", "nullValue": "NULL_VALUE"}, more=False),
            partial(more=False),
            partial(name="now"),
            piece({"functionCall": {**PARIS, "id": "p"}}),
            partial({"jsonPath": "$.a", "numberValue": 1}, name="last"),
            piece(finish="STOP"),
        )
    )

    rows = [{"name": "Ada", "is in": False}, {"age": 36}]
    assert [(call.name, json.loads(call.arguments)) for call in found.tool_calls] == [
        ("book", {"rows": rows, "note": None}),
        ("now", {}),
        ("weather", {"city": "Paris"}),
        ("last", {"a": 1}),
    ]
    assert found.finish_reason == "tool_calls"
    made = found.native["items"][0] if found.native else None
    assert made == {
        "functionCall": {
            "name": "book",
            "id": "b",
            "args": {"rows": rows, "note": None},
        }
    }


@pytest.mark.parametrize(
    "paths",
    [
        ["x"],
        ["$"],
        ["$..a"],
        ["$.a["],
        ["$.a[1]"],
        ["$[0]"],
        ["$.a", "$.a.b"],
        ["$.a[0]", "$.a.b"],
        [None],
    ],
)
def test_pieces_at_no_place(paths: Any) -> None:
    """Paths that lead nowhere are an error of ours."""
    pieces = [{"jsonPath": path, "numberValue": 1} for path in paths]

    with pytest.raises(ProtocolError):
        feed(partial(*pieces, name="f", more=False))


def test_signed_parts_stay_as_they_are() -> None:
    """Text with a signature is not joined with its neighbours."""
    signed = {"text": "b", "thoughtSignature": "s"}
    empty = {"text": "", "thoughtSignature": "t"}

    found = join(
        feed(
            piece({"text": "a"}),
            piece(signed),
            piece({"text": "c"}),
            piece({"text": "d"}),
            piece(empty, finish="STOP"),
        )
    )

    assert found.content == "abcd"
    assert found.native == native({"text": "a"}, signed, {"text": "cd"}, empty)


def test_stream_that_is_cut() -> None:
    """Without a reason to stop the stream is cut, and no open call is complete."""
    events = [
        piece({"text": "Hel"}, usageMetadata={"promptTokenCount": 3}),
        partial(name="f"),
    ]

    assert Chunk(tool_call=ToolCall("", "f")) not in feed(*events, end=False)
    with pytest.raises(StreamCutError, match="after 3 characters") as caught:
        feed(*events)
    assert caught.value.partial == "Hel"
    assert caught.value.usage == Usage.of(input=3)


@pytest.mark.parametrize("data", ["1", "[]", "{", '"x"'])
def test_events_that_cannot_be_read(data: str) -> None:
    """An event is an object."""
    with pytest.raises(ProtocolError):
        feed(data)


def test_errors_in_a_stream() -> None:
    """An error in a stream is an error, and tells what was spent."""
    error = {"error": {"code": 503, "status": "UNAVAILABLE", "message": "Busy."}}

    for event in (error, [error]):
        with pytest.raises(ServerError, match="Busy") as caught:
            feed(piece(usageMetadata={"promptTokenCount": 3}), event)
        assert caught.value.usage == Usage.of(input=3)


# Promises.


PARTS = st.one_of(
    st.text("ab", max_size=3).map(lambda t: {"text": t}),
    st.text("ab", max_size=3).map(lambda t: {"text": t, "thought": True}),
    st.text("ab", max_size=3).map(lambda t: {"text": t, "thoughtSignature": "s"}),
    st.dictionaries(st.text("xy", max_size=2), st.integers(), max_size=2).map(
        lambda given: {"functionCall": {"name": "f", "args": given}}
    ),
    st.just({"functionCall": {"name": "g", "id": "x"}, "thoughtSignature": "s"}),
    st.just({"executableCode": {"code": "1"}}),
)


@given(st.lists(st.lists(PARTS, max_size=3), max_size=4))
def test_streamed_equals_whole(groups: list[list[Any]]) -> None:
    """A streamed answer is the whole one; sent back, it says what it said."""
    parts = [part for group in groups for part in group]
    events = [piece(*group) for group in groups]

    streamed = join(feed(*events, piece(finish="STOP")))
    whole = decode(*parts)

    assert streamed == replace(whole, extra=None)
    if whole.native is not None:
        sent = turns(HI, whole.to_message())[1:]
        ids = [p["functionCall"].get("id") for p in parts if "functionCall" in p]
        if ids.count("x") < 2:  # one of two equal ids was changed
            assert [turn["parts"] for turn in sent] == [whole.native["items"]]


VALUES = st.sampled_from([None, 1, "a", [], {}, [1], {"text": 5}, True])
ODD = st.dictionaries(
    st.sampled_from(["text", "thought", "functionCall", "thoughtSignature"]), VALUES
)


@given(st.lists(ODD, max_size=3), VALUES)
def test_odd_answers_end_well(parts: list[Any], finish: Any) -> None:
    """Whatever the parts hold, there is an answer or an error of ours."""
    try:
        found = decode(*parts, finish=finish)
    except AeyeError:
        return
    json.dumps(found.native)


# Errors.


@pytest.mark.parametrize(
    ("status", "word", "message", "found"),
    [
        (400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum "
         "number of tokens allowed (8).", "context_overflow"),
        (400, "INVALID_ARGUMENT", "The specified schema produces a constraint that "
         "has too many states for serving.", "schema_rejected"),
        (400, "INVALID_ARGUMENT", 'Unknown name "x" at \'generation_config.'
         "response_schema'", "schema_rejected"),
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass one.", "auth"),
        (400, "FAILED_PRECONDITION", "no such thing", "other"),
        (403, "PERMISSION_DENIED", "no", "auth"),
        (404, "NOT_FOUND", "no such model", "other"),
        (429, "RESOURCE_EXHAUSTED", "slow down", "rate_limit"),
        (503, "UNAVAILABLE", "busy", "server"),
    ],
)  # fmt: skip
def test_faults(status: int, word: str, message: str, found: str) -> None:
    """An error's kind follows from its status and its words."""
    error = {"code": status, "status": word, "message": message}

    for body in ({"error": error}, [{"error": error}]):
        fault = GEMINI.decode_error(status, {}, body)
        assert (fault.kind, fault.code, fault.message) == (found, word, message)
        assert fault.retry_after is None


def test_overflow_is_an_error_of_its_own() -> None:
    """What does not fit the window can be told from other errors."""
    message = "The input token count (9) exceeds the maximum number of tokens (8)."

    fault = GEMINI.decode_error(400, {}, {"error": {"message": message}})

    assert isinstance(status_error(fault, status=400), ContextLengthError)


@pytest.mark.parametrize(
    ("details", "kind", "wait"),
    [
        ([{"@type": "x.RetryInfo", "retryDelay": "34.4s"}], "rate_limit", 34.4),
        ([{"@type": "x.Help"}, {"retryDelay": "7s"}], "rate_limit", 7.0),
        ([{"retryDelay": "soon"}], "rate_limit", None),
        ("odd", "rate_limit", None),
        (
            [{"violations": [{"quotaId": "RequestsPerDayPerProject"}]}],
            "quota",
            None,
        ),
    ],
)
def test_time_to_wait(details: Any, kind: str, wait: Any) -> None:
    """The body says how long to wait; what is used up for today is not asked again."""
    error = {"code": 429, "message": "Slow down.", "details": details}

    fault = GEMINI.decode_error(429, {}, {"error": error})

    assert (fault.kind, fault.retry_after, fault.code) == (kind, wait, None)


def test_fault_that_is_text() -> None:
    """A proxy's page is an error, too."""
    assert GEMINI.decode_error(502, {}, "Bad gateway").message == "Bad gateway"
