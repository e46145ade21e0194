"""Streamed calls put together, for formats that say more than chat completions."""

from __future__ import annotations

import pytest

from aeye.message import ToolCall
from aeye.response import Chunk, ToolCallDelta
from aeye.wire import CallAssembler, merge_extra, read_arguments


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
