"""A run that is read as it goes."""

from __future__ import annotations

from typing import (
    Any,
    Callable,
    Generator,
    Generic,
    Iterator,
    NamedTuple,
    Optional,
    TypeVar,
    cast,
)

from .callback import check_unread
from .event import Event, TextPartialEvent, ToolErrorEvent, ToolOutputEvent
from .loop import Run
from .message import Message
from .usage import Usage

__all__ = [
    "EventStream",
    "PromptToolOutput",
    "pick_nothing",
    "pick_text",
    "pick_tool_output",
]

T = TypeVar("T")
E = TypeVar("E", covariant=True)

_SKIP: Any = object()


class PromptToolOutput(NamedTuple):
    """What a tool returned, with the tool's name."""

    tool: str
    result: Any


class EventStream(Generic[E, T]):
    """A run that is read as it goes: an iterator that is also a context manager.

    When it is exhausted, ``output``, ``messages`` and ``usage`` say how the run
    ended; its StopIteration carries the output too. ``close``, or leaving ``with``,
    ends the run early and waits for tools that are running. Reading it from two
    threads at once is an error.
    """

    def __init__(self, run: Run, pick: Callable[[Event], Any]) -> None:
        self._run = run
        self._pick = pick
        self._events: Generator[Event, None, Any] = run.events()
        self._output: Any = _SKIP
        # How it went, once it is over and was not closed early.
        self._ending: Optional[str] = None

    def __iter__(self) -> Iterator[E]:
        return self

    def __next__(self) -> E:
        check_unread(self._events)
        while True:
            try:
                event = next(self._events)
            except StopIteration as stop:
                if self._ending is None and not self._run.closing:
                    self._ending, self._output = "ended", stop.value
                raise
            except BaseException:  # whatever it is, the run is over
                self._ending = "failed"
                raise
            item = self._pick(event)
            if item is not _SKIP:
                return cast(E, item)

    def __enter__(self) -> EventStream[E, T]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the run; wait for tools that are running. Twice is once."""
        check_unread(self._events)
        self._run.closing = True
        self._events.close()

    @property
    def output(self) -> T | None:
        """The result; None where the run was suspended, aborted or incompatible.

        Raises:
            RuntimeError: the stream has not been read to its end.
        """
        if self._output is _SKIP:
            why = {
                "failed": "the run has failed",
                "closed": "the run was closed before it had one",
            }.get(self._state(), "read the stream to its end")
            raise RuntimeError(f"there is no output: {why}")
        return cast("T | None", self._output)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that the run has appended so far."""
        return tuple(self._run.messages)

    @property
    def usage(self) -> Usage:
        """What the run's own model calls have cost so far."""
        return self._run.usage

    @property
    def nested_usage(self) -> Usage:
        """What runs within its calls, such as a prompt that is a tool, have cost."""
        return self._run.nested

    def __repr__(self) -> str:
        return f"<EventStream of {self._run.recipe.name!r}, {self._state()}>"

    def _state(self) -> str:
        return self._ending or ("closed" if self._run.closing else "not ended")


def pick_tool_output(event: Event) -> Any:
    """Pick what a tool returned."""
    if isinstance(event, ToolOutputEvent):
        return PromptToolOutput(event.tool.name, event.result)
    if isinstance(event, ToolErrorEvent) and event.has_result and event.tool:
        return PromptToolOutput(event.tool.name, event.result)
    return _SKIP


def pick_text(event: Event) -> Any:
    """Pick the pieces of text."""
    return event.content if isinstance(event, TextPartialEvent) else _SKIP


def pick_nothing(event: Event) -> Any:
    """Pick nothing: the run is read for its end."""
    return _SKIP
