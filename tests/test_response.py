"""Responses and chunks: split and join, and the ids of calls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.message import Reasoning, ToolCall
from aeye.response import Chunk, Collector, Response, ToolCallDelta, join, split
from aeye.usage import Usage

text = st.text(max_size=9)
calls = st.lists(
    st.builds(ToolCall, st.text(min_size=1, max_size=3), text, text),
    max_size=3,
    unique_by=lambda call: call.id,
)
responses = st.builds(
    Response,
    content=text,
    tool_calls=calls,
    finish_reason=st.sampled_from(["stop", "length", "tool_calls", "refusal"]),
    refusal=st.none() | st.text(min_size=1, max_size=5),
    reasoning=st.none() | st.builds(Reasoning, st.text(min_size=1, max_size=5)),
    usage=st.just(Usage()) | st.builds(lambda n: Usage.of(input=n), st.integers(0, 9)),
    model=st.none() | text,
    native=st.none() | st.just({"format": "x"}),
    cut_note=st.none() | st.just("The window is full."),
)


@given(responses)
def test_split_and_join(response: Response) -> None:
    """``join(split(r)) == r``, where the ids are present and unique."""
    assert join(split(response)) == response


def test_text_alone_is_one_chunk() -> None:
    """A plain answer is one chunk."""
    assert split(Response("hi")) == [Chunk("hi", finish_reason="stop")]


def test_text_comes_before_calls() -> None:
    """Text stands before calls, each call in one chunk, the finish last."""
    call = ToolCall("1", "a", "{}")

    chunks = split(Response("hi", (call,), finish_reason="tool_calls"))

    assert [c.content for c in chunks] == ["hi", None, None]
    assert [c.tool_call for c in chunks] == [None, call, None]
    assert [c.finish_reason for c in chunks] == [None, None, "tool_calls"]


@given(st.lists(st.sampled_from(["", "x", "call_1", "call_2"]), max_size=6))
def test_ids_are_made_unique(ids: list[str]) -> None:
    """Whatever ids come, those that go out are present and unique."""
    collector = Collector(taken={"call_2"})
    for n, given_id in enumerate(ids):
        call = ToolCall(given_id, f"t{n}", f"{n}")
        collector.add(Chunk(tool_call_named=call, tool_call=call))

    made = collector.response().tool_calls

    assert [c.name for c in made] == [f"t{n}" for n in range(len(ids))]
    assert len({c.id for c in made} - {"", "call_2"}) == len(ids)


def test_argument_pieces() -> None:
    """Pieces append or replace; an empty id means the last call."""
    collector = Collector()
    for chunk in (
        Chunk(tool_call_named=ToolCall("a", "f", "")),
        Chunk(tool_call_arguments=ToolCallDelta("a", arguments="junk")),
        Chunk(tool_call_arguments=ToolCallDelta("", arguments='{"x"', mode="replace")),
        Chunk(tool_call_arguments=ToolCallDelta("a", arguments=": 1}")),
    ):
        collector.add(chunk)

    assert collector.tool_calls == (ToolCall("a", "f", '{"x": 1}'),)
    assert collector.complete_calls == ()
    assert collector.pieces("a") == ['{"x"', ": 1}"]
    assert collector.pieces("none") == []


def test_a_call_without_its_beginning() -> None:
    """A complete call that was never named is taken all the same."""
    response = join([Chunk(tool_call=ToolCall("", "f"))])

    assert response.tool_calls == (ToolCall("call_1", "f"),)
    assert response.finish_reason == "tool_calls"
    assert response.to_message().tool_calls == response.tool_calls


@pytest.mark.parametrize("names", [("f", "g"), ("f", "f")])
def test_two_open_calls_with_one_id(names: tuple[str, str]) -> None:
    """A whole call completes the one that it names, or that has its arguments."""
    first, last = names
    chunks = [
        Chunk(tool_call_named=ToolCall("a", first)),
        Chunk(tool_call_named=ToolCall("a", last)),
        Chunk(tool_call=ToolCall("a", first, '{"x": 1}')),
        Chunk(tool_call=ToolCall("a", last, '{"y": 2}')),
    ]

    found = join(chunks).tool_calls

    assert [(call.name, call.arguments) for call in found] == [
        (first, '{"x": 1}'),
        (last, '{"y": 2}'),
    ]


def test_pieces_of_two_open_calls_with_one_id() -> None:
    """A piece goes to the call that it names."""
    chunks = [
        Chunk(tool_call_named=ToolCall("a", "f")),
        Chunk(tool_call_named=ToolCall("a", "g")),
        Chunk(tool_call_arguments=ToolCallDelta("a", "f", "1")),
        Chunk(tool_call_arguments=ToolCallDelta("a", "g", "2")),
    ]

    found = join(chunks).tool_calls

    assert [(call.name, call.arguments) for call in found] == [("f", "1"), ("g", "2")]


def test_a_call_with_two_ids() -> None:
    """A whole call may come under the second id that its pieces told of."""
    chunks = [
        Chunk(tool_call_arguments=ToolCallDelta("item", "f", "[1", call_id="call")),
        Chunk(tool_call_arguments=ToolCallDelta("item", "f", "]", call_id="call")),
        Chunk(tool_call=ToolCall("call", "f", "[1]")),
    ]

    assert join(chunks).tool_calls == (ToolCall("item", "f", "[1]"),)


def test_an_answer_that_begins_anew() -> None:
    """Thoughts and open calls are dropped, and their ids are free again."""
    open_call, whole = ToolCall("1", "a"), ToolCall("2", "b", "{}")
    chunks = [
        Chunk("So: ", reasoning=Reasoning("Hm.")),
        Chunk(tool_call_named=whole, tool_call=whole),
        Chunk(tool_call_named=open_call),
        Chunk(restart=True),
        Chunk(reasoning=Reasoning("Oh.")),
        Chunk(tool_call=replace(open_call, arguments="[]")),
    ]

    assert join(chunks) == Response(
        "So: ",
        (whole, replace(open_call, arguments="[]")),
        finish_reason="tool_calls",
        reasoning=Reasoning("Oh."),
    )
