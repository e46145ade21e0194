"""Streamed calls put together, for formats that say more than chat completions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.errors import ProtocolError
from aeye.message import Reasoning, ReasoningDetail, ToolCall
from aeye.response import Chunk, Response, ToolCallDelta, join
from aeye.wire import (
    mend_text,
    merge_extra,
    read_answer,
    read_arguments,
)
from aeye.wire_call import CallAssembler
from aeye.wire_text import MendingDecoder


def named(id: str, name: str) -> Chunk:
    return Chunk(tool_call_named=ToolCall(id, name, ""))


def args(id: str, name: str, text: str, mode: str = "append") -> Chunk:
    delta = ToolCallDelta(id, name, text, mode=mode)  # type: ignore[arg-type]
    return Chunk(tool_call_arguments=delta)


def whole(id: str, name: str, text: str) -> Chunk:
    return Chunk(tool_call=ToolCall(id, name, text))


def test_a_call_that_is_said_to_be_complete() -> None:
    """A call is complete when the vendor says so, once, before any other begins."""
    calls = CallAssembler()

    found = [
        calls.add(0, "c", "f", ""),
        calls.add(0, "", "", '{"a": 1}'),
        calls.finish(0),
        calls.finish(0),
        calls.finish(7),
        calls.end(),
    ]

    assert found == [
        [named("c", "f")],
        [args("c", "f", '{"a": 1}')],
        [whole("c", "f", '{"a": 1}')],
        [],
        [],
        [],
    ]


def test_arguments_that_are_repeated() -> None:
    """What the vendor says at the end counts, and replaces the pieces if it differs."""
    calls = CallAssembler()

    same = [*calls.add(0, "c", "f", "{}"), *calls.finish(0, "{}")]
    other = [*calls.add(1, "d", "g", "{"), *calls.finish(1, '{"b": 2}')]

    assert same == [named("c", "f"), args("c", "f", "{}"), whole("c", "f", "{}")]
    assert other == [
        named("d", "g"),
        args("d", "g", "{"),
        args("d", "g", '{"b": 2}', "replace"),
        whole("d", "g", '{"b": 2}'),
    ]
    assert [call for call, _ in calls.done()] == [
        ToolCall("c", "f", "{}"),
        ToolCall("d", "g", '{"b": 2}'),
    ]


def test_a_call_that_has_to_wait() -> None:
    """A second call under the same id is completed after the first, though said so."""
    calls = CallAssembler()

    first = calls.add(0, "c", "f", "")
    second = [*calls.add(1, "c", "g", ""), *calls.finish(1, "{}")]
    rest = calls.end()

    assert (first, second) == ([named("c", "f")], [])
    assert rest == [
        whole("c", "f", "{}"),
        named("c", "g"),
        args("c", "g", "{}"),
        whole("c", "g", "{}"),
    ]


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", '{"a": NaN}', '{"a": 1e999}', "[" * 100_000]
)
def test_arguments_that_are_no_object_become_an_empty_one(text: str) -> None:
    """A format that needs an object gets one whatever the model wrote."""
    assert read_arguments(text) == {}


def test_extra_joins_objects_one_level_deep() -> None:
    """What both have is joined where both are objects; neither value is changed."""
    body = {"config": {"seed": 1, "deep": {"a": 1}}, "model": "m"}

    found = merge_extra(body, {"config": {"deep": {"b": 2}}, "user": "u"})

    assert found == {
        "config": {"seed": 1, "deep": {"b": 2}},
        "model": "m",
        "user": "u",
    }
    assert body == {"config": {"seed": 1, "deep": {"a": 1}}, "model": "m"}
    assert merge_extra(body, None) == body


def join_pieces(*pieces: Any) -> list[tuple[str, str, str]]:
    """Feed pieces (key, id, name, arguments); return what the calls are in the end."""
    calls = CallAssembler()
    chunks = [chunk for piece in pieces for chunk in calls.add(*piece)]
    found = join([*chunks, *calls.end()])
    return [(call.id, call.name, call.arguments) for call in found.tool_calls]


@pytest.mark.parametrize("ids", [("", ""), ("c", "c")])
@pytest.mark.parametrize("keys", [(0, 1), (1, 0)])
def test_one_id_twice_with_places(ids: Any, keys: Any) -> None:
    """Two open calls with one id are told by their places."""
    found = join_pieces(
        (keys[0], "c", "f", '{"x": '),
        (keys[1], "c", "g", '{"y": '),
        (keys[0], ids[0], "", "1}"),
        (keys[1], ids[1], "", "2}"),
    )

    assert found == [("c", "f", '{"x": 1}'), ("call_2", "g", '{"y": 2}')]


def test_one_id_twice_without_places() -> None:
    """Where no place is said, two names under one id are two calls."""
    found = join_pieces(
        (None, "c", "f", '{"x": '),
        (None, "c", "g", '{"y": '),
        (None, "c", "f", "1}"),
        (None, "c", "g", "2}"),
    )

    assert found == [("c", "f", '{"x": 1}'), ("call_2", "g", '{"y": 2}')]


def test_two_ids_in_one_place() -> None:
    """Where all calls have one place, pieces go by their ids, whatever the order."""
    found = join_pieces(
        (0, "a", "f", '{"x": '),
        (0, "b", "g", '{"y": '),
        (0, "a", "", "1}"),
        (0, "b", "", "2}"),
    )

    assert found == [("a", "f", '{"x": 1}'), ("b", "g", '{"y": 2}')]


class Halves:
    """A decoder whose events are the chunks it was made with."""

    ended = finished = False

    def __init__(self, *chunks: Chunk) -> None:
        self.chunks = list(chunks)

    def feed(self, data: str, name: str = "") -> list[Chunk]:
        return [self.chunks.pop(0)]

    def end(self, reason: str = "") -> list[Chunk]:
        return []


def mended(*chunks: Chunk) -> Response:
    decoder = MendingDecoder(Halves(*chunks))
    found = [chunk for _ in chunks for chunk in decoder.feed("\\ud83d")]
    return join([*found, *decoder.end()])


def test_halves_in_calls() -> None:
    """Arguments are joined call by call, though their pieces come in turns."""
    found = mended(
        named("a", "f"),
        named("b", "g"),
        args("a", "f", '{"x": "\ud83d'),
        args("b", "g", '{"y": "\ud83d'),
        args("a", "f", '\ude00"}'),
        args("b", "g", '"}'),
        whole("a", "f", '{"x": "\ud83d\ude00"}'),
        whole("b", "g", '{"y": "\ud83d"}'),
    )

    assert [call.arguments for call in found.tool_calls] == [
        '{"x": "\U0001f600"}',
        '{"y": "\ufffd"}',
    ]


def test_halves_in_details_and_native_items() -> None:
    """Reasoning details and a vendor's own items hold whole characters as well."""
    first = ReasoningDetail(index=0, text="a\ud83d")
    last = ReasoningDetail(index=0, text="\ude00", signature="s")

    found = mended(
        Chunk(reasoning=Reasoning("", (first,))),
        Chunk(reasoning=Reasoning("", (last,))),
        Chunk(native={"items": [{"text": "\ud83d\ude00\ud83d"}]}),
    )

    assert found.reasoning == Reasoning(
        "", (ReasoningDetail(index=0, text="a\U0001f600", signature="s"),)
    )
    assert found.native == {"items": [{"text": "\U0001f600\ufffd"}]}


@given(
    st.lists(st.sampled_from(["a", "\ud83d", "\ude00", "\ud83d\ude00"]), max_size=8),
    st.data(),
)
def test_cuts_change_no_text(letters: list[str], data: st.DataObject) -> None:
    """However a text is cut, it is mended to the same, which can be encoded."""
    text = "".join(letters)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    edges = [0, *cuts, len(text)]

    found = mended(*(Chunk(text[a:b]) for a, b in zip(edges, edges[1:])))

    assert found.content == mend_text(text)
    found.content.encode()


def test_answers_that_nest_too_deeply() -> None:
    """Depth is an error of ours wherever it is found."""
    deep = b'{"a": ' * 2_000 + b'"\\ud83d"' + b"}" * 2_000
    for body in (deep, b"[" * 200_000):
        with pytest.raises(ProtocolError):
            read_answer(body)
