"""The fluent door: one run of a prompt, set up by chained calls.

A request is made by ``agent.prompt(…)``, ``session.prompt(…)`` or
``prompt.request(…)``, used once, and knows nothing of what made it: it is given a
function that starts a run. All that a package needs to speak of requests can be
imported from here, without agents and prompts.
"""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generic,
    Iterable,
    Iterator,
    Literal,
    Mapping,
    Optional,
    Sequence,
    TypeVar,
    overload,
)

from .agent_event import (
    AgentChildStreamEvent,
    AgentChildStreamEventWithoutToolCallDeltas,
    AgentChildStreamEventWithToolCallDeltas,
    AgentErrorStreamEvent,
    AgentEvent,
    AgentStreamEvent,
    AgentStreamEventWithoutToolCallDeltas,
    AgentStreamEventWithToolCallDeltas,
    AgentStreamOptions,
    AgentToolCallDeltaEvent,
    AgentToolEvent,
)
from .callback import check_unread, listed
from .conduct import Conduct, Events, PromptResponse, Settings, Start
from .context import Context
from .errors import MaxTurnsError, PromptCancelledError, ToolApprovalRequiredError
from .hooks import bind_approvals, bind_hook
from .message import Message
from .middleware import bind_middleware
from .observer import AgentTraceOptions, check_observer
from .retry import CompletionRetryContext, CompletionRetryOptions

__all__ = [
    "AgentChildStreamEvent",
    "AgentChildStreamEventWithToolCallDeltas",
    "AgentChildStreamEventWithoutToolCallDeltas",
    "AgentErrorStreamEvent",
    "AgentStream",
    "AgentStreamEvent",
    "AgentStreamEventWithToolCallDeltas",
    "AgentStreamEventWithoutToolCallDeltas",
    "AgentStreamOptions",
    "AgentToolCallDeltaEvent",
    "CompletionRetryContext",
    "CompletionRetryOptions",
    "MaxTurnsError",
    "PromptCancelledError",
    "PromptRequest",
    "PromptResponse",
    "ToolApprovalRequiredError",
]

T = TypeVar("T")
E = TypeVar("E", covariant=True)

_SKIP: Any = object()


class AgentStream(Generic[E, T]):
    """A request that is read as it goes: an iterator that is also a context manager.

    Nothing happens before the first read. ``close``, or leaving ``with``, ends the
    run early and waits for tools that are running. Reading it from two threads at
    once is an error.
    """

    def __init__(
        self,
        begin: Callable[[], tuple[Conduct, Events]],
        pick: Callable[[AgentEvent], Any],
        *,
        raises: bool = True,
    ) -> None:
        self._begin = begin
        self._pick = pick
        self._raises = raises
        self._run: Optional[Conduct] = None
        self._events: Optional[Events] = None
        self._told: Optional[PromptResponse[T]] = None
        self._closed = False

    def __iter__(self) -> Iterator[E]:
        return self

    def __next__(self) -> E:
        if self._events is None:
            if self._closed:
                raise StopIteration
            self._run, self._events = self._begin()
        check_unread(self._events)
        while True:
            try:
                event = next(self._events)
            except StopIteration as stop:
                self._told = stop.value or self._told
                raise
            item: E = self._pick(event)
            if not self._raises and event.type == "error":
                self.close()
            if item is not _SKIP:
                return item

    def __enter__(self) -> AgentStream[E, T]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the run; wait for tools that are running. Twice is once."""
        check_unread(self._events)
        self._closed = True
        if self._run is not None and self._events is not None:
            self._run.closing = True
            self._events.close()

    @property
    def response(self) -> PromptResponse[T]:
        """How the request ended.

        Raises:
            RuntimeError: the stream has not been read to its end, or it failed.
        """
        if self._told is None:
            raise RuntimeError("there is no response: read the stream to its end")
        return self._told

    def __repr__(self) -> str:
        return f"<AgentStream, {'ended' if self._told else 'not ended'}>"


class PromptRequest(Generic[T]):
    """One run to be; *T* is what the prompt makes of its answer.

    The settings return the request itself, the last of a kind wins (middleware adds
    up), and their order does not matter. Nothing runs until ``send`` or the first
    read of a stream; from then on settings are refused.
    """

    def __init__(
        self,
        start: Start,
        input: Any,
        ctx: Context,
        *,
        messages: Sequence[Message] = (),
        settings: Settings | None = None,
    ) -> None:
        self._start = start
        self._input = input
        self._ctx = ctx
        self._messages = tuple(messages)
        self._settings = Settings() if settings is None else settings
        self._lock = threading.Lock()
        self._run: Optional[Conduct] = None

    @property
    def state(self) -> str:
        """``idle``, ``running``, ``completed``, ``errored`` or ``cancelled``."""
        if self._run is None:
            return "idle"
        return self._run.outcome or "running"

    @property
    def settings(self) -> Settings:
        """What the request has been told so far."""
        return self._settings

    def __repr__(self) -> str:
        return f"<PromptRequest, {self.state}>"

    def max_turns(self, max_turns: int) -> PromptRequest[T]:
        """Make at most *max_turns* model calls.

        When the last of them asks for tools, these are not run: the request raises
        ``MaxTurnsError``. 0 raises without asking the model.
        """
        _check_count("max_turns", max_turns, 0)
        return self._set(max_turns=max_turns)

    def with_completion_retries(
        self,
        options: CompletionRetryOptions | Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> PromptRequest[T]:
        """Ask again where a model call failed before it said anything.

        Without options: three attempts, for errors that pass by themselves. Options
        are a ``CompletionRetryOptions``, its dict, or its fields by name.

        Raises:
            ValueError, TypeError: an option cannot be; see ``CompletionRetryOptions``.
        """
        return self._set(retries=_options(CompletionRetryOptions, options, fields))

    def with_hook(self, hook: object) -> PromptRequest[T]:
        """Use *hook* in place of the agent's."""
        return self._set(hook=bind_hook(hook))

    def request_hook(self, hook: object) -> PromptRequest[T]:
        """Use ``with_hook`` instead."""
        _deprecated("request_hook", "with_hook")
        return self.with_hook(hook)

    def with_tool_concurrency(self, concurrency: int) -> PromptRequest[T]:
        """Run up to *concurrency* tools of one turn at a time.

        1, the default, runs them one by one in the caller's thread.
        """
        _check_count("with_tool_concurrency", concurrency, 1)
        return self._set(tool_concurrency=concurrency)

    def with_middleware(self, middleware: object) -> PromptRequest[T]:
        """Add *middleware* after the agent's and what was added before."""
        return self.with_middlewares([middleware])

    def with_middlewares(self, middlewares: Iterable[object]) -> PromptRequest[T]:
        """Add several, in their order."""
        bound = tuple(
            bind_middleware(given) for given in listed(middlewares, "middlewares")
        )
        return self._set(middlewares=(*self._settings.middlewares, *bound))

    def with_tool_middleware(self, middleware: object) -> PromptRequest[T]:
        """Use ``with_middleware`` instead."""
        _deprecated("with_tool_middleware", "with_middleware")
        return self.with_middleware(middleware)

    def with_tool_middlewares(self, middlewares: Iterable[object]) -> PromptRequest[T]:
        """Use ``with_middlewares`` instead."""
        _deprecated("with_tool_middlewares", "with_middlewares")
        return self.with_middlewares(middlewares)

    def with_observers(self, observers: Iterable[object]) -> PromptRequest[T]:
        """Tell *observers* too, after the agent's and what was added before."""
        added = tuple(check_observer(given) for given in listed(observers, "observers"))
        return self._set(observers=(*self._settings.observers, *added))

    def with_trace(
        self,
        options: AgentTraceOptions | Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> PromptRequest[T]:
        """Say about the run what its observers are told."""
        return self._set(trace=_options(AgentTraceOptions, options, fields))

    def approvals(self, options: object) -> PromptRequest[T]:
        """Ask *options* for consent in place of the agent's handler.

        A ``ToolApprovalsOptions``, its dict, or the handler itself.
        """
        return self._set(approvals=bind_approvals(options))

    def send(self) -> PromptResponse[T]:
        """Run to the end and return the response.

        Raises:
            PromptError: there is none; the subclass says why.
            ProviderError: the model could not be asked; the provider's own exception
                where the context brings its own model.
            RuntimeError: the request is running or was used.
        """
        _, events = self._begin(streaming=False)
        while True:
            try:
                next(events)
            except StopIteration as stop:
                response: PromptResponse[T] = stop.value
                return response

    if TYPE_CHECKING:

        @overload
        def stream(
            self, options: None = None, *, include_tool_call_deltas: Literal[False]
        ) -> AgentStream[AgentStreamEventWithoutToolCallDeltas, T]: ...
        @overload
        def stream(
            self,
            options: AgentStreamOptions | Mapping[str, Any] | None = None,
            *,
            include_tool_call_deltas: bool | None = None,
        ) -> AgentStream[AgentStreamEvent, T]: ...

    def stream(
        self,
        options: AgentStreamOptions | Mapping[str, Any] | None = None,
        *,
        include_tool_call_deltas: bool | None = None,
    ) -> AgentStream[Any, T]:
        """Return the run's events; the last is ``final`` or ``error``.

        After ``error`` the next read raises the same exception. A second use of the
        request raises RuntimeError when it is first read. *include_tool_call_deltas*
        says the same as the option of that name.
        """
        keep = _picker(options, include_tool_call_deltas)
        return AgentStream(lambda: self._begin(streaming=True), keep)

    def readable_stream(
        self,
        options: AgentStreamOptions | Mapping[str, Any] | None = None,
        *,
        include_tool_call_deltas: bool | None = None,
    ) -> AgentStream[bytes, T]:
        """Return the events as bytes: one compact JSON object a line.

        Fit for a WSGI response or the body of an HTTP request. A failure is the last
        line, an ``error`` object with name and message; nothing is raised after it.
        """
        keep = _picker(options, include_tool_call_deltas)
        return AgentStream(
            lambda: self._begin(streaming=True),
            lambda event: _line(keep(event)),
            raises=False,
        )

    def _set(self, **changes: Any) -> PromptRequest[T]:
        with self._lock:
            if self._run is not None:
                raise RuntimeError(
                    f"the request is {self.state}: set it up before it is sent"
                )
            self._settings = replace(self._settings, **changes)
        return self

    def _begin(self, *, streaming: bool) -> tuple[Conduct, Events]:
        with self._lock:
            if self._run is not None:
                raise RuntimeError(
                    "PromptRequest is already running."
                    if self._run.outcome is None
                    else "PromptRequest has already been used."
                )
            run = self._run = Conduct(
                self._settings, self._input, self._ctx, self._messages
            )
        return run, run.events(self._start, streaming=streaming)


def _picker(options: Any, include: Optional[bool]) -> Callable[[AgentEvent], Any]:
    fields = {} if include is None else {"include_tool_call_deltas": include}
    made: AgentStreamOptions = _options(AgentStreamOptions, options, fields)
    return _keep if made.include_tool_call_deltas else _without_deltas


def _keep(event: AgentEvent) -> Any:
    return event


def _without_deltas(event: AgentEvent) -> Any:
    inner = event.event if isinstance(event, AgentToolEvent) else event
    return _SKIP if inner.type == "tool_call_delta" else event


def _line(event: Any) -> Any:
    if event is _SKIP:
        return _SKIP
    text = json.dumps(
        event.to_dict(), ensure_ascii=False, separators=(",", ":"), default=str
    )
    # A lone surrogate in a model's text has no UTF-8.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _options(cls: Any, options: Any, fields: Mapping[str, Any]) -> Any:
    """Return *cls* made of an instance, a dict or fields by name."""
    if isinstance(options, cls):
        return replace(options, **fields)
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(
            f"options is a {cls.__name__}, a dict or fields by name, "
            f"not {options!r:.80}"
        )
    return cls(**{**(options or {}), **fields})


def _check_count(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} takes a whole number, not {value!r:.80}")
    if value < least:
        raise ValueError(f"{name} takes {least} or more, not {value}")


def _deprecated(old: str, new: str) -> None:
    import warnings

    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=3)
