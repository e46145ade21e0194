"""What may be hung into a run of the fluent door: hooks and approval handlers.

A *hook* looks and may stop things; an *approval handler* says whether a tool may run.
A hook is a class derived from ``PromptHook``, any object with some of its methods,
or a dict of functions. Every callback gets one record of arguments; nothing is
awaited.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import (
    Any,
    Callable,
    Iterable,
    Literal,
    Mapping,
    Optional,
    Tuple,
    Union,
)

from .callback import Bound, bind
from .decision import REJECTED
from .message import Message
from .response import Response
from .usage import Usage

__all__ = [
    "CompletionCallArgs",
    "CompletionErrorArgs",
    "CompletionResponseArgs",
    "HookAction",
    "PromptHook",
    "RunControl",
    "RunEndArgs",
    "RunErrorArgs",
    "RunStartArgs",
    "ToolApprovalDecision",
    "ToolApprovalRequest",
    "ToolApprovalRun",
    "ToolApprovalsOptions",
    "ToolCallArgs",
    "ToolControl",
    "ToolErrorArgs",
    "ToolResultArgs",
    "TurnEndArgs",
    "TurnStartArgs",
    "bind_approvals",
    "bind_callbacks",
    "bind_hook",
    "cancel_prompt",
    "create_hook",
    "names_of",
    "request_tool_approval",
    "skip_tool",
]


@dataclass(frozen=True)
class HookAction:
    """What a hook wants; made by the functions below or by a control."""

    type: Literal["continue", "terminate", "skip", "approval_request"]
    reason: Optional[str] = None
    # What the model reads where consent is refused.
    reject_message: Optional[str] = None


def cancel_prompt(reason: str) -> HookAction:
    """End the run: it raises ``PromptCancelledError`` with *reason*."""
    return HookAction("terminate", reason)


def skip_tool(reason: str) -> HookAction:
    """Do not run the tool: the model reads *reason* as its result."""
    return HookAction("skip", reason)


def request_tool_approval(
    reason: str | None = None, reject_message: str | None = None
) -> HookAction:
    """Ask the approval handler first, whatever the tool's own policy says."""
    return HookAction("approval_request", reason, reject_message=reject_message)


class RunControl:
    """What callbacks about the run may answer: their second parameter ``run``."""

    def continue_(self) -> HookAction:
        """Go on; returning None says the same."""
        return HookAction("continue")

    def cancel(self, reason: str) -> HookAction:
        """End the run: it raises ``PromptCancelledError`` with *reason*."""
        return cancel_prompt(reason)


class ToolControl:
    """What callbacks about a tool call may answer: their second parameter ``tool``."""

    def run(self) -> HookAction:
        """Go on; returning None says the same."""
        return HookAction("continue")

    def skip(self, reason: str) -> HookAction:
        """Do not run the tool: the model reads *reason* as its result."""
        return skip_tool(reason)

    def cancel(self, reason: str) -> HookAction:
        """End the run: it raises ``PromptCancelledError`` with *reason*."""
        return cancel_prompt(reason)

    def request_approval(
        self, *, reason: str | None = None, reject_message: str | None = None
    ) -> HookAction:
        """Ask the approval handler first, whatever the tool's own policy says."""
        return request_tool_approval(reason, reject_message)


@dataclass(frozen=True)
class RunStartArgs:
    """The run begins."""

    prompt: Message
    # What was said before it.
    history: Tuple[Message, ...]
    max_turns: int


@dataclass(frozen=True)
class TurnStartArgs:
    """A turn, which is one model call, begins."""

    turn: int
    prompt: Message
    history: Tuple[Message, ...]


@dataclass(frozen=True)
class CompletionCallArgs:
    """The model is about to be asked."""

    turn: int
    prompt: Message
    history: Tuple[Message, ...]


@dataclass(frozen=True)
class CompletionResponseArgs:
    """The model has answered; middleware has been at the response."""

    turn: int
    prompt: Message
    response: Response


@dataclass(frozen=True)
class CompletionErrorArgs:
    """The model call has failed for good."""

    turn: int
    prompt: Message
    error: Exception


@dataclass(frozen=True)
class TurnEndArgs:
    """A turn's answer is complete; its tools have not been run."""

    turn: int
    response: Response


@dataclass(frozen=True)
class ToolCallArgs:
    """A tool is about to be called."""

    turn: int
    tool_name: str
    tool_call_id: str
    # Unique over all runs.
    internal_call_id: str
    # JSON text.
    args: str


@dataclass(frozen=True)
class ToolErrorArgs(ToolCallArgs):
    """The arguments were no good, or the tool raised."""

    error: Exception


@dataclass(frozen=True)
class ToolResultArgs(ToolCallArgs):
    """What the model will read."""

    result: str
    # The value that *result* spells, where it is no text.
    structured_result: Any = None
    # Whether the tool was not run: a hook skipped it, or consent was refused.
    skipped: bool = False


@dataclass(frozen=True)
class RunEndArgs:
    """The run has its result."""

    output: str
    usage: Usage
    messages: Tuple[Message, ...]


@dataclass(frozen=True)
class RunErrorArgs:
    """The run has failed, or was cancelled."""

    error: BaseException
    usage: Usage
    # The history and the run's new messages.
    messages: Tuple[Message, ...]


class PromptHook:
    """Callbacks of a run; override some.

    Each returns None to go on, or a ``HookAction``. A second parameter named ``run``
    (``tool`` on those about a tool) is filled with a control that makes them. A hook
    that raises fails the run with that exception. One that has
    ``on_completion_response`` holds a stream's text back until it has been asked.
    """

    def on_run_start(self, args: RunStartArgs) -> HookAction | None:
        """The run begins: after the session was loaded, before the first turn."""

    def on_turn_start(self, args: TurnStartArgs) -> HookAction | None:
        """A turn begins."""

    def on_completion_call(self, args: CompletionCallArgs) -> HookAction | None:
        """The model is about to be asked; not for retries."""

    def on_completion_response(self, args: CompletionResponseArgs) -> HookAction | None:
        """The model has answered."""

    def on_completion_error(self, args: CompletionErrorArgs) -> HookAction | None:
        """The model call has failed for good."""

    def on_turn_end(self, args: TurnEndArgs) -> HookAction | None:
        """The answer is complete; its tools have not been run."""

    def on_tool_call(self, args: ToolCallArgs) -> HookAction | None:
        """A tool is about to be called; here it may be skipped."""

    def on_tool_error(self, args: ToolErrorArgs) -> HookAction | None:
        """The arguments were no good, or the tool raised."""

    def on_tool_result(self, args: ToolResultArgs) -> HookAction | None:
        """The call has its result."""

    def on_run_end(self, args: RunEndArgs) -> HookAction | None:
        """The run has its result; cancelling here takes it away."""

    def on_run_error(self, args: RunErrorArgs) -> HookAction | None:
        """The run has failed; cancelling here replaces the error."""


@dataclass(frozen=True)
class ToolApprovalRun:
    """The run that wants consent."""

    agent_id: str
    run_id: str
    session_id: Optional[str] = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolApprovalRequest:
    """A tool call that waits for consent."""

    tool_name: str
    # Checked, as the tool would get them.
    args: Any
    # The same as JSON text.
    raw_args: str
    tool_call_id: str
    internal_call_id: str
    run: ToolApprovalRun
    reason: Optional[str] = None
    reject_message: Optional[str] = None


@dataclass(frozen=True)
class ToolApprovalDecision:
    """What an approval handler may return instead of True or False."""

    approved: bool
    reason: Optional[str] = None
    # What the model reads where *approved* is False; else the reason, else the
    # request's own.
    reject_message: Optional[str] = None

    def __post_init__(self) -> None:
        # "no" is true, and must not mean yes.
        if not isinstance(self.approved, bool):
            raise TypeError(f"approved is True or False, not {self.approved!r:.80}")


@dataclass(frozen=True)
class ToolApprovalsOptions:
    """Who is asked for consent; the handler may block as long as it likes."""

    handler: Callable[..., Union[bool, ToolApprovalDecision, Mapping[str, Any]]]


def create_hook(**callbacks: Callable[..., Any]) -> Mapping[str, Callable[..., Any]]:
    """Return a hook made of functions by name.

    >>> hook = create_hook(on_run_end=lambda args: None)

    Raises:
        TypeError: a name that hooks do not have.
    """
    bind_hook(callbacks)
    return callbacks


def bind_hook(hook: object) -> Mapping[str, Bound]:
    """Return the callbacks that *hook* has, by name.

    Raises:
        TypeError: it has none, a name that hooks do not have, or an ``async def``.
    """
    if hook is None:
        return {}
    names = ("run", "tool")
    return bind_callbacks(hook, PromptHook, "hook", names, names_of(PromptHook))


def bind_approvals(options: object) -> Callable[[ToolApprovalRequest], Optional[str]]:
    """Return ``decide(request)``: None for consent, else what the model reads.

    *options* is a ``ToolApprovalsOptions``, its dict, or the handler itself.
    """
    if isinstance(options, Mapping):
        options = ToolApprovalsOptions(**options)
    handler = options.handler if isinstance(options, ToolApprovalsOptions) else options
    bound = bind(handler, "approvals handler", ())  # type: ignore[arg-type]  # bind says what is wrong with it
    return lambda request: _decision(bound(request, {}), request)


def names_of(base: type) -> tuple[str, ...]:
    """Return the names of the callbacks that *base* has."""
    return tuple(name for name in vars(base) if name.startswith("on_"))


def bind_callbacks(
    given: object, base: type, what: str, filled: Iterable[str], known: tuple[str, ...]
) -> dict[str, Bound]:
    """Return those of the *known* callbacks that *given* has, ready to be called.

    What it has from *base*, whose methods do nothing, is not there. *filled* are
    names that further parameters may have.
    """
    if isinstance(given, type):
        raise TypeError(f"a {what} is an object: make one of {given.__name__}")
    if isinstance(given, Mapping):
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise TypeError(f"a {what} has no {unknown[0]!r}; it has {sorted(known)}")
        found = dict(given)
    else:
        found = {name: getattr(given, name, None) for name in known}
    made = {}
    for name, fn in found.items():
        if fn is None or _inherited(fn, base):
            continue
        made[name] = bind(fn, f"{what} {name}", filled)
    if not made and not isinstance(given, (Mapping, *base.__mro__[:-1])):
        raise TypeError(
            f"a {what} is an object with some of {sorted(known)}, not {given!r:.80}"
        )
    return made


def _decision(said: Any, request: ToolApprovalRequest) -> Optional[str]:
    if isinstance(said, Mapping):
        said = ToolApprovalDecision(**said)
    if isinstance(said, bool):
        said = ToolApprovalDecision(said)
    if not isinstance(said, ToolApprovalDecision):
        raise TypeError(
            "an approval handler returns True, False or a ToolApprovalDecision, "
            f"not {said!r:.80}"
        )
    if said.approved:
        return None
    return said.reject_message or said.reason or request.reject_message or REJECTED


def _inherited(fn: object, base: type) -> bool:
    """Whether *fn* is a method that a base class of ours has and nobody overrode."""
    plain = getattr(fn, "__func__", fn)
    return any(
        plain is vars(b).get(plain.__name__)
        for b in base.__mro__[:-1]
        if hasattr(plain, "__name__")
    )
