"""Events: their words, their JSON form, their short reprs."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from aeye import event as module
from aeye.event import Event, PromptEvent
from aeye.message import Reasoning
from aeye.prompt import Prompt
from aeye.response import Chunk, Response
from aeye.testing import ScriptedModel, calls
from aeye.tools import tool

CLASSES = get_args(PromptEvent)


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def a_run() -> list[Event]:
    """Events of a run with everything in it."""
    model = ScriptedModel(
        [Chunk(reasoning=Reasoning("hm")), *pieces_of_a_call()],
        calls(("add", {"a": "x", "b": 2}), ("zz", {})),
        "nope",
        '{"v": 1}',
        mode="stream",
    )
    schema = {"type": "object", "required": ["v"]}
    return list(Prompt("p", "x", schema=schema, tools=[add]).run({}, model.context()))


def pieces_of_a_call() -> list[Chunk]:
    response = Response("so", calls(("add", {"a": 1, "b": 2})).tool_calls)
    from aeye.response import split

    return split(response)


def test_every_class_is_in_the_union() -> None:
    """``PromptEvent`` names every event class, and each has a word of its own."""
    named = {getattr(module, n) for n in module.__all__ if n.endswith("Event")}

    assert set(CLASSES) == named - {Event, PromptEvent}
    assert len({c.type for c in CLASSES}) == len(CLASSES)


@pytest.mark.parametrize("cls", CLASSES)
def test_words_follow_the_class(cls: type[Event]) -> None:
    """``ToolStartEvent`` is ``tool_start``."""
    words = "".join("_" + c.lower() if c.isupper() else c for c in cls.__name__)

    assert cls.type == words[1 : -len("_event")]


def test_json_forms() -> None:
    """Every event has a JSON form that begins with its word."""
    events = a_run()

    forms = [event.to_dict() for event in events]

    assert json.loads(json.dumps(forms)) == forms
    assert [f["type"] for f in forms] == [e.type for e in events]
    by_type = {f["type"]: f for f in forms}
    assert by_type["request"]["messages"][0] == {"role": "system", "content": "x"}
    assert by_type["request"]["tools"] == ["add"]
    assert by_type["tool_output"]["tool"] == "add"
    assert by_type["tool_error"]["error"]["type"] == "ToolNotFoundError"
    assert by_type["reason"]["reasoning"] == {"content": "hm"}


def test_reprs_are_short() -> None:
    """An event prints what it says, not the request it belongs to."""
    for event in a_run():
        assert "request=" not in repr(event)
        assert len(repr(event)) < 600


def test_only_messages_so_far() -> None:
    """The request on a ``message`` event has the transcript up to that message."""
    for event in a_run():
        if event.type == "message":
            assert event.request.messages[-1] == event.message
