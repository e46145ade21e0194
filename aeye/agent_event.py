"""What the fluent door tells: one frozen class per event of a request's stream.

Every event has ``type``, its snake_case word, and ``to_dict``, its JSON form; what is
None was not said and is left out there. A stream ends with one ``final`` or one
``error`` event.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Dict, Literal, Optional, Tuple, Union

from .message import Json, Message, Reasoning, ReasoningDetail, ToolCall
from .response import Response
from .usage import Usage

__all__ = [
    "AgentChildStreamEvent",
    "AgentChildStreamEventWithToolCallDeltas",
    "AgentChildStreamEventWithoutToolCallDeltas",
    "AgentErrorStreamEvent",
    "AgentEvent",
    "AgentFinalEvent",
    "AgentReasoningDeltaEvent",
    "AgentStreamEvent",
    "AgentStreamEventWithToolCallDeltas",
    "AgentStreamEventWithoutToolCallDeltas",
    "AgentStreamOptions",
    "AgentTextDeltaEvent",
    "AgentToolCallDeltaEvent",
    "AgentToolCallEvent",
    "AgentToolEvent",
    "AgentToolResultEvent",
    "AgentTraceInfo",
    "AgentTurnEndEvent",
    "AgentTurnStartEvent",
    "ChildEvent",
    "reasoning_deltas",
]


@dataclass(frozen=True)
class AgentTraceInfo:
    """Where a run can be found in the system that observed it."""

    trace_id: Optional[str] = None
    observation_id: Optional[str] = None


@dataclass(frozen=True)
class AgentEvent:
    """What all events have."""

    type: ClassVar[str] = ""

    def to_dict(self) -> Json:
        """Return the JSON form."""
        found: Json = {"type": self.type}
        for item in dataclasses.fields(self):
            said = getattr(self, item.name)
            if said is not None:
                found[item.name] = _plain(said)
        return found


@dataclass(frozen=True)
class AgentTurnStartEvent(AgentEvent):
    """A turn, which is one model call, begins."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"
    turn: int
    # The newest message, and all before it; instructions are not among them.
    prompt: Message
    history: Tuple[Message, ...]


@dataclass(frozen=True)
class AgentTextDeltaEvent(AgentEvent):
    """A piece of text."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    turn: int
    delta: str


@dataclass(frozen=True)
class AgentReasoningDeltaEvent(AgentEvent):
    """A piece of reasoning."""

    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"
    turn: int
    delta: str
    id: Optional[str] = None
    content_type: Optional[Literal["text", "summary", "encrypted", "redacted"]] = None
    signature: Optional[str] = None


@dataclass(frozen=True)
class AgentToolCallDeltaEvent(AgentEvent):
    """A piece of a call; provisional, as middleware may still take the call away."""

    type: ClassVar[Literal["tool_call_delta"]] = "tool_call_delta"
    turn: int
    id: str
    call_id: Optional[str] = None
    name: Optional[str] = None
    arguments_delta: Optional[str] = None
    # None: append. "replace": the piece is all of the arguments so far.
    arguments_mode: Optional[Literal["append", "replace"]] = None
    signature: Optional[str] = None


@dataclass(frozen=True)
class AgentToolCallEvent(AgentEvent):
    """A call is complete."""

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    turn: int
    tool_call: ToolCall


@dataclass(frozen=True)
class AgentToolResultEvent(AgentEvent):
    """A call has its result; *turn* is the one that asked for it, 0 when resumed."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    turn: int
    tool_name: str
    tool_call_id: str
    # Unique over all runs.
    internal_call_id: str
    # The JSON text that was used, and what the model reads.
    args: str
    result: str


@dataclass(frozen=True)
class AgentToolEvent(AgentEvent):
    """A child agent that runs as a tool has told something."""

    type: ClassVar[Literal["agent_tool_event"]] = "agent_tool_event"
    turn: int
    tool_name: str
    tool_call_id: str
    internal_call_id: str
    agent_id: str
    agent_name: Optional[str]
    # Never one of this class: a grandchild's event is told as its own.
    event: AgentChildStreamEvent


@dataclass(frozen=True)
class AgentTurnEndEvent(AgentEvent):
    """The answer is complete; its tools have not been run."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"
    turn: int
    response: Response


@dataclass(frozen=True)
class AgentFinalEvent(AgentEvent):
    """The run has its result. The last event."""

    type: ClassVar[Literal["final"]] = "final"
    run_id: str
    output: str
    usage: Usage
    # The run's new messages, the prompt first.
    messages: Tuple[Message, ...]
    trace: Optional[AgentTraceInfo] = None
    # What runs within its calls cost, beside *usage*; None where there were none.
    nested: Optional[Usage] = None


@dataclass(frozen=True)
class AgentErrorStreamEvent(AgentEvent):
    """The run has failed. The last event; reading on raises *error* itself."""

    type: ClassVar[Literal["error"]] = "error"
    error: Exception
    # What was spent, failed attempts included as far as they said it.
    usage: Usage


AgentChildStreamEvent = Union[
    AgentTurnStartEvent,
    AgentTextDeltaEvent,
    AgentReasoningDeltaEvent,
    AgentToolCallDeltaEvent,
    AgentToolCallEvent,
    AgentToolResultEvent,
    AgentTurnEndEvent,
    AgentFinalEvent,
    AgentErrorStreamEvent,
]
AgentStreamEvent = Union[AgentChildStreamEvent, AgentToolEvent]

# The same for a stream without provisional events, and the long names of the above.
AgentChildStreamEventWithoutToolCallDeltas = Union[
    AgentTurnStartEvent,
    AgentTextDeltaEvent,
    AgentReasoningDeltaEvent,
    AgentToolCallEvent,
    AgentToolResultEvent,
    AgentTurnEndEvent,
    AgentFinalEvent,
    AgentErrorStreamEvent,
]
AgentStreamEventWithoutToolCallDeltas = Union[
    AgentChildStreamEventWithoutToolCallDeltas, AgentToolEvent
]
AgentChildStreamEventWithToolCallDeltas = AgentChildStreamEvent
AgentStreamEventWithToolCallDeltas = AgentStreamEvent


@dataclass(frozen=True)
class AgentStreamOptions:
    """How a stream tells."""

    # False leaves the provisional ``tool_call_delta`` events out, of children too.
    include_tool_call_deltas: bool = True


@dataclass(frozen=True)
class ChildEvent:
    """What a streaming child agent hands to the run that it is a tool of."""

    agent_id: str
    agent_name: Optional[str]
    event: AgentChildStreamEvent


_CONTENT_TYPES: Dict[str, Literal["text", "summary", "encrypted", "redacted"]] = {
    "reasoning.text": "text",
    "text": "text",
    "thinking": "text",
    "reasoning.summary": "summary",
    "summary": "summary",
    "reasoning.encrypted": "encrypted",
    "encrypted": "encrypted",
    "redacted": "redacted",
    "redacted_thinking": "redacted",
}


def reasoning_deltas(turn: int, said: Reasoning) -> list[AgentReasoningDeltaEvent]:
    """Return the events of a piece of reasoning: one, or one for each item.

    >>> reasoning_deltas(1, Reasoning("Hm"))
    [AgentReasoningDeltaEvent(turn=1, delta='Hm', id=None, content_type=None, \
signature=None)]
    """
    if not said.details:
        return [AgentReasoningDeltaEvent(turn, said.content)]
    made = [_reasoning_delta(turn, detail) for detail in said.details]
    if said.content and not any(event.delta for event in made):
        made[0] = dataclasses.replace(made[0], delta=said.content)
    return made


def _reasoning_delta(turn: int, detail: ReasoningDetail) -> AgentReasoningDeltaEvent:
    kind = _CONTENT_TYPES.get(detail.type or "")
    if kind is None and detail.summary is not None:
        kind = "summary"
    return AgentReasoningDeltaEvent(
        turn,
        detail.text or detail.summary or detail.data or "",
        id=detail.id,
        content_type=kind,
        signature=detail.signature,
    )


def _plain(value: Any) -> Any:
    """Return the JSON form of what an event says."""
    if isinstance(value, (Message, ToolCall, Reasoning, Usage, AgentEvent)):
        return value.to_dict()
    if isinstance(value, BaseException):
        # No traceback: it may show what nobody outside should see.
        return {"name": type(value).__name__, "message": str(value)}
    if isinstance(value, (Response, AgentTraceInfo)):
        found = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {k: _plain(v) for k, v in found.items() if v is not None}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
