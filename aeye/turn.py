"""One model call: what the model says, as events, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import AbstractSet, Any, Callable, Iterable, List, Optional

from .dispatch import Batch, Events, Setup
from .event import (
    ReasonPartialEvent,
    TextPartialEvent,
    TextResetEvent,
    ToolParseArgumentsEvent,
    ToolParseNameEvent,
)
from .message import Message, Reasoning
from .model_call import in_dialect
from .request import Request
from .response import Chunk, Collector
from .usage import Usage

__all__ = ["Turn"]


class Turn:
    """One model call and what came of it.

    *taken* are ids of calls that the run has had; *hear_call* gives what a door says
    of a chunk that speaks of a call.
    """

    def __init__(
        self,
        request: Request,
        setup: Setup,
        taken: AbstractSet[str] = frozenset(),
        hear_call: Callable[[Chunk], Iterable[Any]] = lambda chunk: (),
    ) -> None:
        # As it was sent.
        self.request = request
        self.collector = Collector(taken)
        self.batch = Batch(setup, request)
        self.aborted = False
        # Whether a chunk was handed out, and whether its message was appended.
        self.spoke = False
        self.said = False
        # What a model that answers at once reported, read to its end or not.
        self.paid: Optional[Usage] = None
        self._setup = setup
        self._door_hears = hear_call
        self._thoughts: List[Reasoning] = []

    @property
    def content(self) -> str:
        """The text so far."""
        return self.collector.content

    def pay(self, usage: Usage) -> None:
        """Note what an answer that came whole has cost."""
        self.paid = usage or None

    def hear(self, chunk: Chunk) -> Events:
        """Tell what *chunk* says, in the one order that holds for all vendors."""
        request = self.request
        if chunk.restart:
            self._thoughts = []  # anew: an event may still hold the old list
            if not self.batch.calls:
                self.batch = Batch(self._setup, request)
            if not self.content:  # text is not taken back
                yield TextResetEvent(request, "request-error")
        if chunk.content:
            yield TextPartialEvent(request, chunk.content)
        if chunk.refusal:
            yield TextPartialEvent(request, chunk.refusal)
        if chunk.reasoning:
            self._thoughts.append(chunk.reasoning)
            yield ReasonPartialEvent(
                request, chunk.reasoning, self._thoughts, len(self._thoughts)
            )
        if chunk.tool_call_named or chunk.tool_call_arguments or chunk.tool_call:
            yield from self._hear_call(chunk)
        if (
            self.batch.calls
            and self._setup.mode == "immediate"
            and chunk.finish_reason is None
        ):
            yield from self.batch.tick()

    def _hear_call(self, chunk: Chunk) -> Events:
        named, delta = chunk.tool_call_named, chunk.tool_call_arguments
        if named is not None:
            self.batch.foresee(named.name)
            tool = self._setup.tools.get(named.name)
            if tool is not None:
                yield ToolParseNameEvent(self.request, tool, named.id)
        if delta is not None:
            tool = self._setup.tools.get(delta.name)
            if tool is not None:
                pieces = self.collector.pieces(delta.id)
                yield ToolParseArgumentsEvent(
                    self.request, tool, delta.id, delta.arguments, pieces, len(pieces)
                )
        if chunk.tool_call is not None:
            self.batch.add(in_dialect(chunk.tool_call, self.request))
        yield from self._door_hears(chunk)

    def so_far(self) -> Message:
        """Return the message for an answer that is not whole; batch its calls."""
        calls = tuple(
            in_dialect(call, self.request) for call in self.collector.complete_calls
        )
        self.batch.complete(calls)
        whole = replace(self.collector.response(), tool_calls=calls, native=None)
        return whole.to_message()
