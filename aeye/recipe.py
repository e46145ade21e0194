"""What the loop is given: a prompt's recipe, and what a door may change about a run.

Values and an interface, and nothing that runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    Iterable,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from .call import Call, Execution
from .callback import Bound
from .context import Context
from .dispatch import suspend
from .message import Message
from .output import Check
from .quick import quick
from .request import Request
from .response import Chunk, Response
from .tools import Tool, ToolApproval
from .usage import Usage
from .workers import Workers

__all__ = ["Plan", "Policy", "Recipe", "Stats"]


@quick
@dataclass(frozen=True)
class Plan:
    """What a prompt has become for one input and context."""

    # Without messages.
    request: Request
    # The system message, where there is one.
    system: Tuple[Message, ...]
    tools: Mapping[str, Tool[Any]]
    check: Check
    # The text of a first user turn; "" for none, None for the default.
    user_turn: Optional[str] = None


@dataclass(frozen=True)
class Stats:
    """How a run is going, for ``reconfig``."""

    # Counts from 0.
    iteration: int
    max_iterations: int
    tool_parse_errors: int
    tool_call_errors: int
    tool_successes: int
    # What is left.
    tool_retries: int
    output_retries: int
    forget_retries: int
    # Names of the tools called so far, each once, in the order of their first call.
    tools: Tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """What a prompt tells the loop: how to make a plan, and its limits.

    None for a number of retries means the context's, else the default.
    """

    name: str
    # (input, ctx) -> Plan, or None where the prompt does not fit the context.
    resolve: Callable[[Any, Context], Optional[Plan]]
    # (input, ctx) -> the metadata of one model call.
    metadata: Callable[[Any, Context], Mapping[str, Any]]
    # (request, ctx, usage) -> fewer messages.
    forget: Callable[[Request, Context, Optional[Usage]], Sequence[Message]]
    execution: Execution = "immediate"
    concurrency: int = 32
    tool_retries: Optional[int] = None
    tool_iterations: int = 3
    tools_max: Optional[int] = None
    tools_only: bool = False
    tools_complete: bool = True
    output_retries: Optional[int] = None
    forget_retries: Optional[int] = None
    error_max_length: int = 4096
    exclude_messages: bool = False
    dynamic: bool = False
    fallback: bool = True
    reconfig: Optional[Bound] = None
    intercept: Optional[Bound] = None
    present: Union[Bound, Mapping[str, Bound], None] = None


class Policy:
    """What a door may change about a run. By default: nothing.

    All methods are called in the caller's thread.
    """

    # Model calls that may be made; lifts the iteration and tool-retry budgets.
    max_turns: Optional[int] = None
    # How many calls run at once, in place of the prompt's own ways; 1: one by one,
    # in the caller's thread.
    tool_concurrency: Optional[int] = None
    # Runs the jobs instead of threads of the run's own: tests schedule with it.
    workers: Optional[Workers] = None
    # Asked about a call before its arguments are read, which it may change.
    admit: Optional[Callable[[Call], Any]] = None

    def open(self, messages: Sequence[Message]) -> None:
        """The run begins with these *messages*."""

    def begin(self, turn: int, messages: Sequence[Message]) -> Iterable[Any]:
        """A turn begins; *turn* counts from 1. What it gives is handed out as it is."""
        return ()

    def map_request(self, turn: int, request: Request) -> Request:
        """Return the request to prepare and send."""
        return request

    def call(
        self, turn: int, request: Request, call: Callable[[], Iterable[Chunk]]
    ) -> Iterable[Chunk]:
        """Open the model; a retry may open it again until a chunk was handed out."""
        return call()

    def hear_call(self, turn: int, chunk: Chunk) -> Iterable[Any]:
        """A chunk spoke of a tool call. What it gives is handed out as it is."""
        return ()

    def failed(self, turn: int, error: Exception) -> None:
        """The model call failed for good; *error* will be raised."""

    def map_response(self, turn: int, request: Request, response: Response) -> Response:
        """Return the response to go on with."""
        return response

    def end(self, turn: int, request: Request, response: Response) -> Iterable[Any]:
        """The assistant's message was appended; its calls have not been run."""
        return ()

    def before_tool(self, call: Call) -> Any:
        """A call is about to start; other than None answers it instead."""
        return None

    def approve(self, call: Call, wish: ToolApproval) -> Any:
        """The tool wants consent to the call; other than None answers it instead."""
        return suspend(call, wish)

    def after_tool(self, call: Call) -> Iterable[Any]:
        """A call's outcome is known."""
        return ()
