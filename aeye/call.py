"""One call of a tool: what is known of it so far, and what its reply says."""

from __future__ import annotations

import dataclasses
import json
import threading
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import (
    Any,
    Callable,
    ContextManager,
    List,
    Literal,
    Mapping,
    Optional,
    Tuple,
    Union,
)

from .context import Abort, Context, Resume
from .errors import Signal
from .message import Part, ToolCall
from .request import Request
from .schema import Schema
from .tools import Tool, natural_arguments
from .usage import Usage

__all__ = [
    "Call",
    "Execution",
    "INTERRUPTED",
    "NOT_RUN",
    "Status",
    "ToolResult",
    "content_of",
    "to_content",
]

Execution = Literal["sequential", "parallel", "immediate"]
Status = Literal[
    "waiting",
    "running",
    "success",
    "invalid",
    "error",
    "interrupted",
    "suspended",
    "not_run",
]

# What the model reads where a call was not run.
NOT_RUN = {
    "invalid": "[not run: another call in this batch was invalid; call it again]",
    "stopped": "[not run: the batch was stopped; call it again]",
    "one": "[not run: one tool at a time; call it again]",
    "withdrawn": "[not run: the tools were withdrawn]",
    "limit": "[not run: turn limit]",
    "cancelled": "[not run: cancelled]",
    "aborted": "[aborted: the run was aborted before this call was run]",
}
INTERRUPTED = "[interrupted]"
NO_RESULT = "[no result]"


@dataclass(frozen=True)
class ToolResult:
    """What ``on_tool_result`` is asked about."""

    tool: Tool[Any]
    tool_call_id: str
    result: Any
    args: Any
    request: Request


@dataclass(eq=False)
class Call:
    """One call of a batch: what is known of it so far."""

    call: ToolCall
    tool: Optional[Tool[Any]]
    # That of the arguments, as it was offered.
    schema: Optional[Schema] = None
    status: Status = "waiting"
    args: Any = None
    parsed: bool = False
    started: bool = False
    result: Any = None
    has_result: bool = False
    to_model: Any = None
    # The content of the reply, once it is settled.
    reply: Union[str, Tuple[Part, ...]] = ""
    error: Optional[Exception] = None
    # What the caller has decided: True, the text of a refusal, a ``Result`` or a
    # ``Resume``.
    decision: Any = None
    # What it raised, where that stops the run.
    signal: Optional[Signal] = None
    # What the user's functions get about it, once one was called.
    ctx: Optional[Context] = None
    # When a running call is given up, on the clock of the workers.
    deadline: Optional[float] = None
    # Set when it is given up: a run within it is to end then.
    abort: Optional[Abort] = None
    # The worker that runs it.
    thread: Optional[threading.Thread] = None
    # What runs within it have cost; appended to by any thread.
    charges: List[Usage] = field(default_factory=list)
    # Gives what the tool's own code is to run in, for each piece of it.
    around: Optional[Callable[[], ContextManager[Any]]] = None

    @property
    def settled(self) -> bool:
        """Whether nothing more will happen to the call."""
        return self.status not in ("waiting", "running")

    @property
    def arguments(self) -> str:
        """The arguments as JSON text, in no vendor's dialect."""
        return natural_arguments(self.call, self.schema)

    def rewrite(self, arguments: str) -> None:
        """Give the call other *arguments*, in no vendor's dialect."""
        self.call = replace(self.call, arguments=arguments, descriptor=None)

    @property
    def usage(self) -> Optional[Usage]:
        """What runs within it have cost so far; None where there were none."""
        return sum(self.charges, Usage.empty()) if self.charges else None

    @property
    def fails(self) -> bool:
        """Whether its tool has failed, and is one whose failure ends the run."""
        failed = self.status == "error" and not self.has_result
        return failed and self.tool is not None and self.tool.on_error == "raise"

    @property
    def consented(self) -> bool:
        """Whether the caller has decided that the call is to run."""
        return self.decision is True or isinstance(self.decision, Resume)

    def inside(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Call *fn*, a piece of the tool's own code, where the door wants it to run."""
        if self.around is None:
            return fn(*args)
        with self.around():
            return fn(*args)

    def settle(self, status: Status, reply: Any) -> None:
        """Say what became of the call and what the model reads."""
        self.status = status
        self.reply = reply


def to_content(value: Any) -> Union[str, Tuple[Part, ...]]:
    """Return what a tool's *value* is in its reply: text as it is, parts, else JSON.

    >>> to_content({"a": 1}), to_content("as it is"), to_content(None)
    ('{"a":1}', 'as it is', 'null')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Part):
        return (value,)
    if (
        isinstance(value, (list, tuple))
        and value
        and all(isinstance(part, Part) for part in value)
    ):
        return tuple(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def content_of(result: Any, shown: Any) -> Union[str, Tuple[Part, ...]]:
    """Return what the reply of a call says whose *result* is *shown* to the model."""
    return NO_RESULT if result is None and shown is None else to_content(shown)


def _plain(value: Any) -> Any:
    """Return a JSON form of what ``json`` does not know."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [item.name for item in dataclasses.fields(value)]
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return str(value)
