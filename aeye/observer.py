"""Observers: what tracing systems are told of a run of the fluent door.

An observer may be any object with some of the methods. What it raises is swallowed,
unless it is strict or the run's trace options say ``fail_on_observer_error``.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import (
    Any,
    Callable,
    ContextManager,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from .agent_event import AgentEvent, AgentTraceInfo
from .callback import attempt, refuse_async
from .context import Context
from .hooks import (
    RunEndArgs,
    RunErrorArgs,
    ToolCallArgs,
    ToolErrorArgs,
    ToolResultArgs,
)
from .message import Message
from .request import Request
from .response import Response
from .retry import CompletionRetryContext, status_of

__all__ = [
    "AgentObserver",
    "AgentTraceOptions",
    "GenerationObserver",
    "ObservedGeneration",
    "ObservedRun",
    "RunEvent",
    "RunObserver",
    "ToolObserver",
    "Watch",
    "check_observer",
    "retry_event",
]


@dataclass(frozen=True)
class AgentTraceOptions:
    """What a run tells its observers about itself."""

    name: Optional[str] = None
    user_id: Optional[str] = None
    session_id: Optional[str] = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: Tuple[str, ...] = ()
    version: Optional[str] = None
    trace_id: Optional[str] = None
    # Let what an observer raises fail the run.
    fail_on_observer_error: bool = False


@dataclass(frozen=True)
class ObservedRun:
    """A run that begins."""

    run_id: str
    agent_id: str
    agent_name: Optional[str]
    agent_description: Optional[str]
    trace: AgentTraceOptions
    # None: a prompt that is run without messages says its user turn later.
    prompt: Optional[Message]
    # As the caller gave it; a session's messages are not loaded yet.
    history: Tuple[Message, ...]
    max_turns: int


@dataclass(frozen=True)
class ObservedGeneration:
    """A model call that begins; its retries are part of it."""

    turn: int
    # As it is sent.
    request: Request
    # Who is asked, as ``connect`` names them; None: a function of the caller's.
    vendor: Optional[str] = None


@dataclass(frozen=True)
class RunEvent:
    """Something worth a note. It holds no message and no error's words.

    ``completion.retry``: a model call failed and is made again.
    ``completion.reset``: an answer does not count and the model is asked again.
    ``tool.approval``: somebody was asked for consent and has decided.
    """

    name: str
    level: str
    attributes: Mapping[str, Any]


class GenerationObserver:
    """Told about one model call; either ``end`` or ``error`` comes last."""

    def inside(self) -> ContextManager[Any]:
        """Return what the model is to be asked in: once for each piece it answers."""
        return nullcontext()

    def update(self, turn: int, delta: AgentEvent) -> None:
        """A piece of text or reasoning, or a call, was streamed."""

    def end(
        self, turn: int, response: Response, first_delta_ms: float | None = None
    ) -> None:
        """The model has answered; middleware has not been at the response."""

    def error(self, turn: int, error: BaseException) -> None:
        """The model call has failed, or was given up."""


class ToolObserver:
    """Told about one tool call; either ``end`` or ``error`` comes last."""

    def inside(self) -> ContextManager[Any]:
        """Return what the tool's own code is to run in.

        The one method that is called, and entered, in the thread that the tool runs
        in: once for a function, once a step for a generator. A ``ContextVar`` that is
        set in it tells runs that the tool begins where they belong.
        """
        return nullcontext()

    def stream_event(self, event: Any) -> None:
        """The tool told something while it ran: a child agent's event, or a value."""

    def end(self, args: ToolResultArgs) -> None:
        """The call has its result."""

    def error(self, args: ToolErrorArgs) -> None:
        """The call has failed, or was given up."""


class RunObserver:
    """Told about one run; either ``end`` or ``error`` comes last."""

    trace: Optional[AgentTraceInfo] = None

    def start_generation(self, args: ObservedGeneration) -> Any:
        """The model is about to be asked; return a ``GenerationObserver`` or None."""

    def start_tool(self, args: ToolCallArgs) -> Any:
        """A tool is about to be called; return a ``ToolObserver`` or None."""

    def event(self, args: RunEvent) -> None:
        """Something happened that is worth a note."""

    def end(self, args: RunEndArgs) -> None:
        """The run has its result."""

    def error(self, args: RunErrorArgs) -> None:
        """The run has failed, or was cancelled."""


class AgentObserver:
    """Told that runs begin."""

    # Let what this observer and its parts raise fail the run.
    strict: bool = False

    def start_run(self, args: ObservedRun) -> Any:
        """A run begins; return a ``RunObserver`` or None."""


def check_observer(observer: object) -> object:
    """Return *observer*, or raise TypeError where it has no use."""
    if isinstance(observer, type):
        raise TypeError(f"an observer is an object: make one of {observer.__name__}")
    begin = getattr(observer, "start_run", None)
    if not callable(begin):
        raise TypeError(f"an observer has start_run(args); {observer!r:.80} has not")
    refuse_async(begin, "observer start_run")
    return observer


class _Part:
    """One observer's object for a run, a model call or a tool call."""

    def __init__(self, inner: Any, strict: bool) -> None:
        self.inner = inner
        self.strict = strict

    def tell(self, name: str, *args: Any, safe: bool = False) -> Any:
        method = getattr(self.inner, name, None)
        if method is None:
            return None
        result, error = attempt(method, *args)
        if error is not None and self.strict and not safe:
            raise error
        return result

    def start(self, name: str, *args: Any) -> List[_Part]:
        inner = self.tell(name, *args)
        return [] if inner is None else [_Part(inner, self.strict)]


class Watch:
    """All observers of one run as one; it keeps what has begun and not ended."""

    def __init__(self, observers: Sequence[Any], trace: AgentTraceOptions) -> None:
        self._given = observers
        self._options = trace
        self._runs: List[_Part] = []
        self._generation: List[_Part] = []
        self._tools: Dict[str, Tuple[ToolCallArgs, List[_Part]]] = {}
        self._turn = 0

    @property
    def trace(self) -> AgentTraceInfo | None:
        """The first trace that an observer has, else what the options name."""
        for run in self._runs:
            info = getattr(run.inner, "trace", None)
            if info is not None:
                return info  # type: ignore[no-any-return]  # the observer's own
        found = self._options.trace_id
        return None if found is None else AgentTraceInfo(found)

    def start_run(self, args: ObservedRun) -> None:
        """The run begins."""
        for observer in self._given:
            strict = self._options.fail_on_observer_error or bool(
                getattr(observer, "strict", False)
            )
            self._runs += _Part(observer, strict).start("start_run", args)

    def start_generation(self, turn: int, request: Request, ctx: Context) -> None:
        """The model that *ctx* has is about to be asked."""
        self._turn = turn
        if self._runs:
            args = ObservedGeneration(turn, request, vendor=_vendor(ctx))
            self._start(self._generation, "start_generation", args)

    def update(self, delta: AgentEvent) -> None:
        """A piece of the answer was streamed."""
        for part in self._generation:
            part.tell("update", self._turn, delta)

    def end_generation(self, response: Response, first_delta_ms: float | None) -> None:
        """The model has answered."""
        _end(self._generation, "end", self._turn, response, first_delta_ms)

    def fail_generation(self, error: BaseException) -> None:
        """The model call has failed. Never raises: that would hide why."""
        _end(self._generation, "error", self._turn, error, safe=True)

    def start_tool(self, args: ToolCallArgs) -> None:
        """A tool is about to be called."""
        if self._runs:
            begun = self._tools[args.internal_call_id] = args, []
            self._start(begun[1], "start_tool", args)

    def inside(self, internal_call_id: str) -> Callable[[], ContextManager[Any]] | None:
        """Return what makes that which a tool's code is to run in; None for nothing."""
        return _inside(self._tools.get(internal_call_id, (None, []))[1])

    def asking(self, chunks: Iterator[Any]) -> Callable[[], Any]:
        """Return what takes the next of *chunks* where the observers want it to be."""
        around = _inside(self._generation)
        if around is None:
            return chunks.__next__

        def pull() -> Any:
            with around():
                return next(chunks)

        return pull

    def tool_event(self, internal_call_id: str, event: Any) -> None:
        """A tool told something while it ran."""
        for part in self._tools.get(internal_call_id, (None, []))[1]:
            part.tell("stream_event", event)

    def end_tool(self, args: ToolResultArgs) -> None:
        """A call has its result."""
        _, parts = self._tools.get(args.internal_call_id, (None, []))
        _end(parts, "end", args)
        self._tools.pop(args.internal_call_id, None)

    def fail_tool(self, args: ToolErrorArgs, *, safe: bool = False) -> None:
        """A call has failed; one to a tool that does not exist has not begun before."""
        if args.internal_call_id not in self._tools:
            known = {k: v for k, v in vars(args).items() if k != "error"}
            self.start_tool(ToolCallArgs(**known))
        _, parts = self._tools.get(args.internal_call_id, (None, []))
        _end(parts, "error", args, safe=safe)
        self._tools.pop(args.internal_call_id, None)

    def event(self, args: RunEvent) -> None:
        """Something happened that is worth a note."""
        for run in self._runs:
            run.tell("event", args)

    def end(self, args: RunEndArgs) -> None:
        """The run has its result."""
        _end(self._runs, "end", args)

    def fail(self, args: RunErrorArgs) -> None:
        """The run has failed; what had begun has failed with it. Never raises."""
        self.fail_generation(args.error)
        for begun, _ in list(self._tools.values()):
            fields = vars(begun)
            self.fail_tool(ToolErrorArgs(**fields, error=args.error), safe=True)  # type: ignore[arg-type]  # a BaseException where the run was interrupted
        _end(self._runs, "error", args, safe=True)

    def _start(self, parts: List[_Part], name: str, args: Any) -> None:
        for run in self._runs:  # one by one: what has begun before one fails must end
            parts += run.start(name, args)


def _inside(parts: Sequence[_Part]) -> Callable[[], ContextManager[Any]] | None:
    nowhere = (None, GenerationObserver.inside, ToolObserver.inside)
    observers = [
        part.inner
        for part in parts
        if getattr(type(part.inner), "inside", None) not in nowhere
    ]
    return (lambda: _Inside(observers)) if observers else None


def _end(parts: List[_Part], name: str, *args: Any, safe: bool = False) -> None:
    """Tell each of *parts* its ending; those that one fails before hear of another."""
    while parts:
        parts.pop(0).tell(name, *args, safe=safe)


class _Inside:
    """All that the observers of a call want its code to run in, one in the other.

    They do not hear how the code ended: what it raises is not theirs.
    """

    def __init__(self, observers: Sequence[Any]) -> None:
        self._observers = observers
        self._entered: List[Any] = []

    def __enter__(self) -> None:
        for observer in self._observers:
            made, error = attempt(_entered, observer)
            if error is None:
                self._entered.append(made)

    def __exit__(self, *exc: object) -> None:
        while self._entered:
            attempt(_leave, self._entered.pop())


def _entered(observer: Any) -> Any:
    made = observer.inside()
    made.__enter__()
    return made


def _leave(made: Any) -> None:
    made.__exit__(None, None, None)


def _vendor(ctx: Context) -> str | None:
    provider = getattr(ctx.execute or ctx.stream, "__self__", None)
    name = getattr(getattr(provider, "vendor", None), "name", None)
    return name if isinstance(name, str) else None


def retry_event(context: CompletionRetryContext, delay: float) -> RunEvent:
    """Return the note of a retry; an error's message may be private, so it is not."""
    error = context.error
    return RunEvent(
        "completion.retry",
        "WARNING",
        {
            "turn": context.turn,
            "attempt": context.attempt,
            "next_attempt": context.attempt + 1,
            "max_attempts": context.max_attempts,
            "delay_ms": delay,
            "streaming": context.streaming,
            "error_name": type(error).__name__,
            "status_code": status_of(error),
            "error_code": getattr(error, "code", None),
        },
    )
