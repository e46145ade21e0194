"""Promises of the codec for every answer: cuts; streamed against whole; nonsense."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.errors import AeyeError, StreamCutError
from aeye.message import Message
from aeye.provider import ApiKey, Provider
from aeye.request import Request
from aeye.response import Response, join
from aeye.transport import Retry
from aeye.vendor import OPENAI
from aeye.wire import ModelFacts
from aeye.wire_call import CallAssembler
from aeye.wire_chat import CHAT

REQUEST = Request((Message("user", "Hi"),))
FACTS = ModelFacts()


class Canned:
    """A transport that is its own reply."""

    status = 200

    def __init__(self, pieces: list[bytes], kind: str) -> None:
        self.pieces = pieces
        self.headers = {"content-type": kind}

    def open(self, url: str, headers: Any, body: bytes, signal: Any = None) -> Canned:
        return self

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)

    def close(self, drain: float = 0.0) -> None:
        pass


def provider(pieces: list[bytes], kind: str = "text/event-stream") -> Provider:
    transport = Canned(pieces, kind)
    return Provider(
        OPENAI,
        CHAT,
        ApiKey("k", ()),
        "http://x",
        model="m",
        transport=transport,
        retry=Retry(0),
    )


NAMES = st.sampled_from(["f", "g", "get_weather"])
IDS = st.sampled_from(["", "a", "b", "call_1", "call_2"])
VALUES = st.dictionaries(
    st.text(max_size=3), st.integers() | st.text(max_size=5), max_size=3
)
ARGUMENTS = st.one_of(VALUES.map(json.dumps), st.just(""), st.just('{"cut": '))
CALLS = st.lists(st.tuples(IDS, NAMES, ARGUMENTS), max_size=4)
FINISHES = st.sampled_from(["stop", "tool_calls", "length", "content_filter", "", None])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
MESSAGES = st.fixed_dictionaries(
    {"content": TEXTS},
    optional={"refusal": st.text("No.", max_size=5), "reasoning_content": TEXTS},
)
COUNTS = st.integers(0, 10**6)
USAGES = st.fixed_dictionaries({"prompt_tokens": COUNTS, "completion_tokens": COUNTS})


def pieces_of(draw: Any, text: str) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    edges = [0, *cuts, len(text)]
    return [text[a:b] for a, b in zip(edges, edges[1:])]


@st.composite
def answers(draw: Any) -> tuple[dict[str, Any], bytes]:
    """An answer as one body, and the same as a stream."""
    message = draw(MESSAGES)
    finish, usage = draw(FINISHES), draw(USAGES)
    calls = draw(CALLS)
    deltas: list[dict[str, Any]] = []
    for key in ("reasoning_content", "refusal", "content"):
        for piece in pieces_of(draw, message.get(key) or ""):
            deltas.append({key: piece})
    for i, (id, name, arguments) in enumerate(calls):
        first, *rest = pieces_of(draw, arguments)
        head = {"id": id, "function": {"name": name, "arguments": first}}
        deltas.append({"tool_calls": [{"index": i, **head}]})
        for piece in rest:
            tail = {"index": i, "function": {"arguments": piece}}
            deltas.append({"tool_calls": [tail]})
    body = dict(message)
    if calls:
        body["tool_calls"] = [
            {"id": id, "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in calls
        ]
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [{"model": "m-1", "choices": [choice]} for choice in choices]
    events.append({"model": "m-1", "choices": [], "usage": usage})
    ascii_only = draw(st.booleans())
    lines = [f"data: {json.dumps(e, ensure_ascii=ascii_only)}\n\n" for e in events]
    stream = "".join([*lines, "data: [DONE]\n\n"]).encode()
    whole = {
        "model": "m-1",
        "choices": [{"index": 0, "message": body, "finish_reason": finish}],
        "usage": usage,
    }
    return whole, stream


@given(answers())
def test_streamed_equals_whole(answer: Any) -> None:
    """A streamed answer joins to what the whole one says; neither says nothing."""
    whole, stream = answer

    blocking = provider([json.dumps(whole).encode()], "application/json")
    streaming = provider([stream])

    try:
        found = blocking.execute(REQUEST)
    except AeyeError:
        with pytest.raises(StreamCutError, match="neither content nor a finish"):
            list(streaming.stream(REQUEST))
    else:
        assert join(streaming.stream(REQUEST)) == found


@given(answers(), st.data())
def test_cuts_change_no_chunk(answer: Any, data: st.DataObject) -> None:
    """However the bytes are cut, the chunks are the same."""
    stream = answer[1]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]

    whole = outcome([stream])
    parts = [stream[a:b] for a, b in zip(edges, edges[1:])]
    bytewise = [stream[i : i + 1] for i in range(len(stream))]

    assert outcome(parts) == whole
    assert outcome(bytewise) == whole


def outcome(pieces: list[bytes]) -> list[Any]:
    """The chunks of a stream, and the text of the error that ended it, if one did."""
    found: list[Any] = []
    try:
        found.extend(provider(pieces).stream(REQUEST))
    except AeyeError as exc:
        found.append(str(exc))
    return found


@given(answers(), st.data())
def test_early_end_is_an_error(answer: Any, data: st.DataObject) -> None:
    """A stream cut anywhere before its finish is no answer; after it, it is one."""
    stream = answer[1]
    end = data.draw(st.integers(0, len(stream)))
    try:
        found = join(provider([stream[:end]]).stream(REQUEST))
    except AeyeError:
        assert b"[DONE]" not in stream[:end]
    else:
        assert isinstance(found, Response)
        assert b'"finish_reason"' in stream[:end]


PIECES = st.tuples(
    st.none() | st.integers(0, 2), IDS, st.sampled_from(["", "f", "g"]), ARGUMENTS
)


@given(st.lists(PIECES, max_size=12))
def test_calls_are_announced_once_and_completed_once(pieces: Any) -> None:
    """Whatever is fed, each call is named, then filled, then completed, once each."""
    assembler = CallAssembler()
    chunks: list[Any] = []
    try:
        for key, id, name, arguments in pieces:
            chunks += assembler.add(key, id, name, arguments)
        chunks += assembler.end()
    except AeyeError:
        return
    named = [c.tool_call_named for c in chunks if c.tool_call_named]
    whole = [c.tool_call for c in chunks if c.tool_call]
    written = "".join(
        c.tool_call_arguments.arguments for c in chunks if c.tool_call_arguments
    )

    done = [call for call, _ in assembler.done()]
    assert [(c.id, c.name) for c in done] == [(c.id, c.name) for c in named]
    assert sorted(done, key=repr) == sorted(whole, key=repr)
    assert [replace(c, id="") for c in join(chunks).tool_calls] == (
        [replace(c, id="") for c in done]
    )
    assert len(written) <= sum(len(p[3]) for p in pieces)
    assert len({c.id for c in join(chunks).tool_calls}) == len(whole)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "message",
                        "delta",
                        "content",
                        "tool_calls",
                        "function",
                        "name",
                        "arguments",
                        "id",
                        "index",
                        "usage",
                        "error",
                        "finish_reason",
                        "reasoning_details",
                        "detail",
                        "metadata",
                        "raw",
                        "code",
                        "text",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_nonsense_is_an_error_or_an_answer(value: Any) -> None:
    """Whatever JSON comes, decoding ends in an answer or in an error of ours."""
    for call in (
        lambda: CHAT.decode({"choices": [{"message": value}]}, FACTS),
        lambda: CHAT.decode(value, FACTS),
        lambda: CHAT.decoder(FACTS).feed(json.dumps(value), ""),
        lambda: CHAT.decoder(FACTS).feed(
            json.dumps({"choices": [{"delta": value}], "usage": value}), ""
        ),
    ):
        try:
            call()
        except AeyeError:
            continue
    assert CHAT.decode_error(400, {}, value).message
