"""What a run tells: one frozen class per event.

Every event has ``type``, its snake_case word, and ``request``: the request that was
sent in this iteration; on ``message`` and ``suspend`` events its messages are the
transcript at that moment. ``to_dict`` gives a JSON form for logs; there only the
``request`` and ``suspend`` events spell the request out.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Mapping, Optional, Sequence, Tuple, Union

from .callback import attempt, words
from .message import Json, Message, Reasoning
from .quick import quick
from .request import Request
from .tools import Tool
from .usage import Usage

__all__ = [
    "CompleteEvent",
    "Event",
    "MessageEvent",
    "PromptEvent",
    "ReasonEvent",
    "ReasonPartialEvent",
    "RefusalEvent",
    "RequestEvent",
    "RequestUsageEvent",
    "ResetReason",
    "ResponseTokensEvent",
    "SuspendEvent",
    "TextCompleteEvent",
    "TextEvent",
    "TextPartialEvent",
    "TextResetEvent",
    "ToolArgRepairAttemptEvent",
    "ToolErrorEvent",
    "ToolInterruptEvent",
    "ToolOutputEvent",
    "ToolParseArgumentsEvent",
    "ToolParseNameEvent",
    "ToolProgressEvent",
    "ToolStartEvent",
    "ToolSuspendEvent",
    "UsageEvent",
]

# Levels of a tool's arguments or result that a JSON form goes down.
_MAX_DEPTH = 50

ResetReason = Literal[
    "length", "json-parsing", "schema-parsing", "validation", "request-error"
]


@dataclass(frozen=True)
class Event:
    """What all events have."""

    type: ClassVar[str] = ""
    request: Request = field(repr=False)

    def to_dict(self) -> Json:
        """Return a JSON form: the type and what this event says."""
        value: Json = {"type": self.type}
        for item in dataclasses.fields(self):
            if item.name != "request" and not item.name.startswith("_"):
                said = getattr(self, item.name)
                if said is not None:
                    value[item.name] = _plain(said)
        return value


@quick
@dataclass(frozen=True)
class RequestEvent(Event):
    """The model is about to be asked."""

    type: ClassVar[Literal["request"]] = "request"
    # Counts from 0; a retry after a length finish repeats the number.
    iterations: int

    def to_dict(self) -> Json:
        """Return a JSON form, with the messages and the tools' names."""
        return {**super().to_dict(), **_request(self.request)}


@quick
@dataclass(frozen=True)
class RequestUsageEvent(Event):
    """The run's first report of usage."""

    type: ClassVar[Literal["request_usage"]] = "request_usage"
    usage: Usage


@quick
@dataclass(frozen=True)
class TextPartialEvent(Event):
    """A piece of text as it arrives; a refusal's text too."""

    type: ClassVar[Literal["text_partial"]] = "text_partial"
    content: str


@quick
@dataclass(frozen=True)
class TextEvent(Event):
    """The whole text of one answer that had any."""

    type: ClassVar[Literal["text"]] = "text"
    content: str


@quick
@dataclass(frozen=True)
class TextCompleteEvent(Event):
    """The run's text, without what a ``text_reset`` threw away. Once, at the end."""

    type: ClassVar[Literal["text_complete"]] = "text_complete"
    content: str


@quick
@dataclass(frozen=True)
class TextResetEvent(Event):
    """The text of this iteration does not count; whoever showed it takes it back."""

    type: ClassVar[Literal["text_reset"]] = "text_reset"
    reason: ResetReason


@quick
@dataclass(frozen=True)
class RefusalEvent(Event):
    """The model refused, or a filter cut its answer."""

    type: ClassVar[Literal["refusal"]] = "refusal"
    content: str


@quick
@dataclass(frozen=True)
class ReasonPartialEvent(Event):
    """A piece of reasoning; ``reasoning`` is all of it so far, joined when read."""

    type: ClassVar[Literal["reason_partial"]] = "reason_partial"
    delta: Reasoning
    _so_far: Sequence[Reasoning] = field(repr=False)
    _count: int = field(repr=False)

    @property
    def reasoning(self) -> Reasoning:
        """All reasoning of this iteration up to here."""
        return Reasoning.join(self._so_far[: self._count])


@quick
@dataclass(frozen=True)
class ReasonEvent(Event):
    """All reasoning of one answer that had any."""

    type: ClassVar[Literal["reason"]] = "reason"
    reasoning: Reasoning


@quick
@dataclass(frozen=True)
class ToolParseNameEvent(Event):
    """The model has begun to call a tool."""

    type: ClassVar[Literal["tool_parse_name"]] = "tool_parse_name"
    tool: Tool[Any]
    tool_call_id: str


@quick
@dataclass(frozen=True)
class ToolParseArgumentsEvent(Event):
    """A piece of a call's arguments; ``args`` is all of it so far, joined when read."""

    type: ClassVar[Literal["tool_parse_arguments"]] = "tool_parse_arguments"
    tool: Tool[Any]
    tool_call_id: str
    delta: str
    _so_far: Sequence[str] = field(repr=False)
    _count: int = field(repr=False)

    @property
    def args(self) -> str:
        """The arguments' text up to here."""
        return "".join(self._so_far[: self._count])


@quick
@dataclass(frozen=True)
class ToolArgRepairAttemptEvent(Event):
    """Fields arrived as JSON inside a string; ``success``: they could be read."""

    type: ClassVar[Literal["tool_arg_repair_attempt"]] = "tool_arg_repair_attempt"
    tool: Tool[Any]
    tool_call_id: str
    fields: Tuple[str, ...]
    success: bool


@quick
@dataclass(frozen=True)
class ToolStartEvent(Event):
    """A call's arguments are good and it is about to run."""

    type: ClassVar[Literal["tool_start"]] = "tool_start"
    tool: Tool[Any]
    tool_call_id: str
    # As the tool gets them.
    args: Any


@quick
@dataclass(frozen=True)
class ToolProgressEvent(Event):
    """A generator tool yielded something."""

    type: ClassVar[Literal["tool_progress"]] = "tool_progress"
    tool: Tool[Any]
    tool_call_id: str
    value: Any


@quick
@dataclass(frozen=True)
class ToolOutputEvent(Event):
    """A call has succeeded."""

    type: ClassVar[Literal["tool_output"]] = "tool_output"
    tool: Tool[Any]
    tool_call_id: str
    args: Any
    # What the tool returned, and what ``on_tool_result`` made of it for the model.
    result: Any
    to_model: Any
    # What runs within the call have cost; None where there were none.
    usage: Optional[Usage] = None


@quick
@dataclass(frozen=True)
class ToolInterruptEvent(Event):
    """The tool raised ``ToolInterrupt``: the run will end after this batch."""

    type: ClassVar[Literal["tool_interrupt"]] = "tool_interrupt"
    tool: Tool[Any]
    tool_call_id: str
    args: Any
    # What the tool said when it raised.
    reason: str = ""
    # What runs within the call have cost; None where there were none.
    usage: Optional[Usage] = None


@quick
@dataclass(frozen=True)
class ToolSuspendEvent(Event):
    """The call waits to be resumed: the tool raised ``PromptSuspend``."""

    type: ClassVar[Literal["tool_suspend"]] = "tool_suspend"
    tool: Tool[Any]
    tool_call_id: str
    args: Any
    # What the tool said when it raised.
    reason: str = ""
    # What runs within the call have cost; None where there were none.
    usage: Optional[Usage] = None


@quick
@dataclass(frozen=True)
class ToolErrorEvent(Event):
    """A call has failed; the model is told ``to_model``."""

    type: ClassVar[Literal["tool_error"]] = "tool_error"
    # None: the model made the name up.
    tool: Optional[Tool[Any]]
    tool_call_id: str
    error: Exception
    to_model: str
    # None where the arguments could not be read.
    args: Any = None
    # The arguments as the model wrote them, where they could not be read.
    raw_args: Optional[str] = None
    # Where the tool itself succeeded and ``on_tool_result`` failed.
    result: Any = None
    has_result: bool = False
    # What runs within the call have cost; None where there were none.
    usage: Optional[Usage] = None


@quick
@dataclass(frozen=True)
class MessageEvent(Event):
    """The run appended a message: an answer, a tool's reply or a corrective turn."""

    type: ClassVar[Literal["message"]] = "message"
    message: Message


@quick
@dataclass(frozen=True)
class ResponseTokensEvent(Event):
    """Output tokens of the last answer, where they are known."""

    type: ClassVar[Literal["response_tokens"]] = "response_tokens"
    tokens: int


@quick
@dataclass(frozen=True)
class UsageEvent(Event):
    """What the run's own model calls cost. Once, at the end."""

    type: ClassVar[Literal["usage"]] = "usage"
    usage: Usage
    # What runs within its calls cost, all the way down; None where there were none.
    nested: Optional[Usage] = None


@quick
@dataclass(frozen=True)
class SuspendEvent(Event):
    """The run waits; ``request.messages`` is where to resume. The last event."""

    type: ClassVar[Literal["suspend"]] = "suspend"
    # By call id, where runs inside calls that wait are to resume.
    children: Mapping[str, Tuple[Message, ...]] = field(default_factory=dict)

    @property
    def messages(self) -> Tuple[Message, ...]:
        """Where to resume from."""
        return self.request.messages

    def to_dict(self) -> Json:
        """Return a JSON form, with the messages to resume from."""
        return {**super().to_dict(), **_request(self.request)}


@quick
@dataclass(frozen=True)
class CompleteEvent(Event):
    """The run has its result. The last event."""

    type: ClassVar[Literal["complete"]] = "complete"
    output: Any


PromptEvent = Union[
    RequestEvent,
    RequestUsageEvent,
    TextPartialEvent,
    TextEvent,
    TextCompleteEvent,
    TextResetEvent,
    RefusalEvent,
    ReasonPartialEvent,
    ReasonEvent,
    ToolParseNameEvent,
    ToolParseArgumentsEvent,
    ToolArgRepairAttemptEvent,
    ToolStartEvent,
    ToolProgressEvent,
    ToolOutputEvent,
    ToolInterruptEvent,
    ToolSuspendEvent,
    ToolErrorEvent,
    MessageEvent,
    ResponseTokensEvent,
    UsageEvent,
    SuspendEvent,
    CompleteEvent,
]


def _request(request: Request) -> Json:
    return {
        "name": request.name,
        "model": request.model,
        "messages": [message.to_dict() for message in request.messages],
        "tools": [definition.name for definition in request.tools],
    }


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a JSON form of what an event says; what has none is shown as text.

    A log must take whatever tools return: what nests too deep, or cannot be shown, is
    named by its class.
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if depth == _MAX_DEPTH:
        return f"<{type(value).__name__}>"
    if isinstance(value, Tool):
        return value.name
    if isinstance(value, (Message, Reasoning, Usage)):
        return value.to_dict()
    if isinstance(value, Exception):
        return {"type": type(value).__name__, "message": words(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [item.name for item in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name), depth + 1) for name in names}
    text, error = attempt(str, value)
    return f"<{type(value).__name__}>" if error is not None else text
