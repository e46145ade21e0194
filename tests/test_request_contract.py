"""Names, fields, defaults and errors of the fluent door: what others build on."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import MISSING, fields
from typing import Any, Union, get_args, get_type_hints

import pytest

import aeye
from aeye import agent_event, prompt_request
from aeye.agent_event import AgentEvent
from aeye.errors import PromptError
from aeye.prompt_request import PromptRequest, PromptResponse
from aeye.retry import CompletionRetryContext, CompletionRetryOptions
from aeye.usage import Usage

REQUIRED: Any = MISSING

# By event: its word, and what it says, with the default where that may be left out.
EVENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "AgentTurnStartEvent": (
        "turn_start",
        {"turn": REQUIRED, "prompt": REQUIRED, "history": REQUIRED},
    ),
    "AgentTextDeltaEvent": ("text_delta", {"turn": REQUIRED, "delta": REQUIRED}),
    "AgentReasoningDeltaEvent": (
        "reasoning_delta",
        {
            "turn": REQUIRED,
            "delta": REQUIRED,
            "id": None,
            "content_type": None,
            "signature": None,
        },
    ),
    "AgentToolCallDeltaEvent": (
        "tool_call_delta",
        {
            "turn": REQUIRED,
            "id": REQUIRED,
            "call_id": None,
            "name": None,
            "arguments_delta": None,
            "arguments_mode": None,
            "signature": None,
        },
    ),
    "AgentToolCallEvent": ("tool_call", {"turn": REQUIRED, "tool_call": REQUIRED}),
    "AgentToolResultEvent": (
        "tool_result",
        {
            "turn": REQUIRED,
            "tool_name": REQUIRED,
            "tool_call_id": REQUIRED,
            "internal_call_id": REQUIRED,
            "args": REQUIRED,
            "result": REQUIRED,
        },
    ),
    "AgentToolEvent": (
        "agent_tool_event",
        {
            "turn": REQUIRED,
            "tool_name": REQUIRED,
            "tool_call_id": REQUIRED,
            "internal_call_id": REQUIRED,
            "agent_id": REQUIRED,
            "agent_name": REQUIRED,
            "event": REQUIRED,
        },
    ),
    "AgentTurnEndEvent": ("turn_end", {"turn": REQUIRED, "response": REQUIRED}),
    "AgentFinalEvent": (
        "final",
        {
            "run_id": REQUIRED,
            "output": REQUIRED,
            "usage": REQUIRED,
            "messages": REQUIRED,
            "trace": None,
            "nested": None,
        },
    ),
    "AgentErrorStreamEvent": ("error", {"error": REQUIRED, "usage": REQUIRED}),
}
METHODS = {
    "max_turns": ["max_turns"],
    "with_completion_retries": ["options", "fields"],
    "with_hook": ["hook"],
    "request_hook": ["hook"],
    "with_tool_concurrency": ["concurrency"],
    "with_middleware": ["middleware"],
    "with_middlewares": ["middlewares"],
    "with_tool_middleware": ["middleware"],
    "with_tool_middlewares": ["middlewares"],
    "with_trace": ["options", "fields"],
    "approvals": ["options"],
    "send": [],
    "stream": ["options", "include_tool_call_deltas"],
    "readable_stream": ["options", "include_tool_call_deltas"],
}


def said(cls: Any) -> dict[str, Any]:
    return {item.name: item.default for item in fields(cls)}


def members(union: Any) -> set[Any]:
    """Return the classes of a union, of unions within it too."""
    return set(get_args(union))


@pytest.mark.parametrize("name", EVENTS)
def test_events(name: str) -> None:
    """Each event has its word, its fields in their order, and their defaults."""
    event = getattr(aeye, name)

    assert (event.type, said(event)) == EVENTS[name]
    assert list(said(event)) == list(EVENTS[name][1])
    assert issubclass(event, AgentEvent)


def test_unions() -> None:
    """A child tells no child's events; without deltas there is none of these."""
    every = {getattr(aeye, name) for name in EVENTS}
    child, delta = aeye.AgentToolEvent, aeye.AgentToolCallDeltaEvent

    assert members(aeye.AgentStreamEvent) == every
    assert members(aeye.AgentChildStreamEvent) == every - {child}
    assert members(aeye.AgentStreamEventWithoutToolCallDeltas) == every - {delta}
    without = aeye.AgentChildStreamEventWithoutToolCallDeltas
    assert members(without) == every - {child, delta}
    assert aeye.AgentStreamEventWithToolCallDeltas is aeye.AgentStreamEvent
    assert aeye.AgentChildStreamEventWithToolCallDeltas is aeye.AgentChildStreamEvent
    hints = get_type_hints(child, vars(agent_event))
    assert hints["event"] == aeye.AgentChildStreamEvent
    mode = get_type_hints(delta, vars(agent_event))["arguments_mode"]
    assert get_args(get_args(mode)[0]) == ("append", "replace")
    kinds = get_type_hints(aeye.AgentReasoningDeltaEvent)["content_type"]
    known = ("text", "summary", "encrypted", "redacted")
    assert get_args(get_args(kinds)[0]) == known


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    """Each method takes what it takes."""
    found = list(inspect.signature(getattr(PromptRequest, name)).parameters)

    assert found == ["self", *METHODS[name]]


def test_options_and_defaults() -> None:
    """What may be left out has the value that is promised."""
    assert said(CompletionRetryOptions) == {
        "max_attempts": 3,
        "initial_delay_ms": 100,
        "max_delay_ms": 1000,
        "should_retry": None,
    }
    assert list(said(CompletionRetryContext)) == [
        "error",
        "attempt",
        "max_attempts",
        "turn",
        "streaming",
    ]
    assert said(aeye.AgentStreamOptions) == {"include_tool_call_deltas": True}
    assert list(said(PromptResponse)) == [
        "output",
        "usage",
        "messages",
        "trace",
        "parsed",
        "nested",
    ]
    assert said(PromptResponse)["trace"] is None
    assert said(aeye.AgentTraceInfo) == {"trace_id": None, "observation_id": None}
    flat = ("input", "output", "total", "cached_input", "cache_creation_input")
    nothing = Usage.empty()
    assert [getattr(nothing, f"{name}_tokens") for name in flat] == [0] * 5


def test_errors() -> None:
    """The errors carry what a caller needs to go on."""
    turns = aeye.MaxTurnsError("x")
    cancelled = aeye.PromptCancelledError("x")
    waiting = aeye.ToolApprovalRequiredError("x")

    assert (turns.max_turns, turns.chat_history, turns.prompt) == (0, (), None)
    assert (cancelled.chat_history, cancelled.reason) == ((), "")
    assert waiting.request is None
    assert all(isinstance(e, PromptError) for e in (turns, cancelled, waiting))


def test_without_agents() -> None:
    """One module has all of it, and brings no agent, prompt or provider along."""
    code = (
        "import sys, aeye.prompt_request as m; print(*m.__all__);"
        "print(*(n for n in sys.modules if n.startswith('aeye.')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    names, modules = (set(line.split()) for line in ran.stdout.splitlines())

    apart = {"agent", "prompt", "connection", "provider", "transport", "rehearsal"}
    assert modules & {f"aeye.{name}" for name in apart} == set()
    for name in names:
        assert getattr(prompt_request, name) is getattr(aeye, name)
    assert names >= {"PromptRequest", "PromptResponse", "AgentStreamEvent"}


def test_unions_can_be_read_at_run_time() -> None:
    """The aliases are real unions on every Python: tools that read hints need that."""
    for name in prompt_request.__all__:
        found = getattr(aeye, name)
        assert isinstance(found, type) or found.__origin__ is Union
