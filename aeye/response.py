"""What came back: a whole response, or its chunks; ``join`` and ``split`` between them.

``join(split(response)) == response``. Call ids are made present and unique here,
whoever made the chunks: some hosts send none, some send one twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import (
    AbstractSet,
    Any,
    Iterable,
    Literal,
    Optional,
    Tuple,
    TypeVar,
)

from .message import Json, Message, Reasoning, Sparse, ToolCall, as_calls
from .quick import quick
from .usage import Usage

__all__ = [
    "Chunk",
    "Collector",
    "FinishReason",
    "Response",
    "ToolCallDelta",
    "WINDOW_FULL",
    "join",
    "split",
]

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "refusal"]

# A ``cut_note``: the vendor says that it was the end of the window that cut the answer.
WINDOW_FULL = (
    "the answer was cut where the model's window was full; forget some of the history, "
    "or ask for less"
)
_V = TypeVar("_V")
_NOTHING = Usage()
_FINISHES = ("stop", "length", "tool_calls", "content_filter", "refusal")


@quick
@dataclass(frozen=True, repr=False)
class ToolCallDelta(Sparse):
    """A piece of a call's arguments."""

    # The call's id; empty: the call named last.
    id: str = ""
    name: str = ""
    arguments: str = ""
    # "append" continues the text so far, "replace" gives it anew.
    mode: Literal["append", "replace"] = "append"
    # A vendor's second id of the call, where it has one.
    call_id: Optional[str] = None
    signature: Optional[str] = None


@quick
@dataclass(frozen=True, repr=False)
class Chunk(Sparse):
    """A piece of a response. What is None was not said."""

    content: Optional[str] = None
    # A call has begun: its id and name are known, its arguments are not.
    tool_call_named: Optional[ToolCall] = None
    tool_call_arguments: Optional[ToolCallDelta] = None
    # A call is complete and may be run.
    tool_call: Optional[ToolCall] = None
    finish_reason: Optional[FinishReason] = None
    refusal: Optional[str] = None
    reasoning: Optional[Reasoning] = None
    usage: Optional[Usage] = None
    model: Optional[str] = None
    native: Optional[Json] = None
    # Why an answer was cut, where the limit of tokens is not why; see Response.
    cut_note: Optional[str] = None
    # The host has begun its answer anew: what it thought does not count, nor do calls
    # that are not complete. Text and complete calls are not taken back.
    restart: bool = False

    def __post_init__(self) -> None:
        content: object = self.content
        if content is not None and not isinstance(content, str):
            raise TypeError(f"Chunk content is a str, not {content!r:.80}")


@quick
@dataclass(frozen=True, repr=False)
class Response(Sparse):
    """One answer of a model.

    The order of the fields is a contract; name everything after the second.
    """

    content: str = ""
    tool_calls: Tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    refusal: Optional[str] = None
    reasoning: Optional[Reasoning] = None
    usage: Usage = _NOTHING
    model: Optional[str] = None
    # What the vendor said besides, by the vendor's names.
    extra: Optional[Json] = None
    # The vendor's own items of the turn: {"format": …, "items": […]}.
    native: Optional[Json] = None
    # Beside the finish reason "length": why, and what helps, where it is not the limit
    # of tokens that cut the answer.
    cut_note: Optional[str] = None

    def __post_init__(self) -> None:
        if self.tool_calls != ():
            object.__setattr__(self, "tool_calls", as_calls(self.tool_calls))
        content: object = self.content
        if not isinstance(content, str):
            raise TypeError(f"Response content is a str, not {content!r:.80}")
        if self.finish_reason not in _FINISHES:
            raise ValueError(
                f"finish_reason is one of {_FINISHES}, not {self.finish_reason!r}"
            )

    def to_message(self) -> Message:
        """Return the assistant message that stands for this answer in a history."""
        return Message(
            "assistant",
            self.content,
            tool_calls=self.tool_calls,
            refusal=self.refusal,
            reasoning=self.reasoning,
            native=self.native,
        )


@dataclass
class _Call:
    """A call being assembled."""

    # The id as it came, and the id it got.
    raw: str
    call: ToolCall
    pieces: list[str] = field(default_factory=list)
    done: bool = False
    # The vendor's second id, which the whole call may come under.
    call_id: str | None = None

    def finished(self) -> ToolCall:
        if self.done or not self.pieces:
            return self.call
        return replace(self.call, arguments="".join(self.pieces))


class Collector:
    """Puts chunks together, one at a time.

    ``add`` gives each chunk back with the ids its calls got, so that whoever reads
    along and whoever reads the result see the same ids. *taken* are ids that an
    earlier turn has used.
    """

    def __init__(self, taken: AbstractSet[str] = frozenset()) -> None:
        # Not copied: a long run has many.
        self._taken = taken
        self._ids: set[str] = set()
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []
        self.cut_note: str | None = None
        # None until anything was reported; the chunks' numbers are summed.
        self.usage: Usage | None = None
        self._thoughts: list[Reasoning] = []
        self.finish_reason: FinishReason | None = None
        self._model: str | None = None
        self._native: Json | None = None

    @property
    def content(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def refusal(self) -> str | None:
        """The refusal so far, or None."""
        return "".join(self._refusal) if self._refusal else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls so far, with the arguments that have arrived."""
        return tuple([entry.finished() for entry in self._calls])

    @property
    def reasoning(self) -> Reasoning | None:
        """The reasoning so far, or None."""
        return Reasoning.join(self._thoughts) if self._thoughts else None

    @property
    def complete_calls(self) -> tuple[ToolCall, ...]:
        """The calls that were said to be complete."""
        return tuple(entry.call for entry in self._calls if entry.done)

    @property
    def open_calls(self) -> bool:
        """Whether there are calls that nobody said to be complete."""
        return any(not entry.done for entry in self._calls)

    def pieces(self, call_id: str) -> list[str]:
        """Return the live list of argument pieces of a call, in order of arrival."""
        for entry in reversed(self._calls):
            if entry.call.id == call_id:
                return entry.pieces
        return []

    def add(self, chunk: Chunk) -> Chunk:
        """Take *chunk* in; return it with its calls' final ids."""
        if chunk.restart:
            self._restart()
        if chunk.content:
            self._text.append(chunk.content)
        if chunk.refusal:
            self._refusal.append(chunk.refusal)
        if chunk.reasoning:
            self._thoughts.append(chunk.reasoning)
        if chunk.usage is not None:
            old_usage = self.usage
            self.usage = chunk.usage if old_usage is None else old_usage + chunk.usage
        if chunk.finish_reason is not None:
            self.finish_reason = chunk.finish_reason
            self.cut_note = chunk.cut_note
        if chunk.model is not None:
            self._model = chunk.model
        if chunk.native is not None:
            self._native = chunk.native
        if chunk.tool_call_named or chunk.tool_call_arguments or chunk.tool_call:
            return self._add_call(chunk)
        return chunk

    def _restart(self) -> None:
        self._thoughts = []
        self._ids -= {entry.call.id for entry in self._calls if not entry.done}
        self._calls = [entry for entry in self._calls if entry.done]

    def _add_call(self, chunk: Chunk) -> Chunk:
        named, delta, call = (
            chunk.tool_call_named,
            chunk.tool_call_arguments,
            chunk.tool_call,
        )
        if named is not None:
            named = self._open(named).call
        if delta is not None:
            entry = self._find(delta) or self._open(ToolCall(delta.id, delta.name))
            if delta.mode == "replace":
                entry.pieces = []  # anew: an event may still hold the old list
            entry.pieces.append(delta.arguments)
            entry.call_id = entry.call_id or delta.call_id
            delta = _with(delta, id=entry.call.id, name=entry.call.name)
        if call is not None:
            entry = self._find(call, whole=True) or self._open(call)
            call = entry.call = _with(call, id=entry.call.id)
            entry.done = True
        return _with(
            chunk, tool_call_named=named, tool_call_arguments=delta, tool_call=call
        )

    def _find(
        self, said: ToolCall | ToolCallDelta, whole: bool = False
    ) -> _Call | None:
        """Return the open call that *said* speaks of; an empty id means any.

        Of several it is one with the name that is said, if there is one; a piece goes
        to the last of them, a whole call to the one that it completes.
        """
        last = named = None
        for entry in reversed(self._calls):
            known = ("", entry.raw, entry.call.id, entry.call_id)
            if entry.done or said.id not in known:
                continue
            last = last or entry
            if said.name and entry.call.name not in ("", said.name):
                continue
            if not whole or "".join(entry.pieces) == said.arguments:
                return entry
            named = entry
        return named or last

    def _open(self, call: ToolCall) -> _Call:
        given = call.id
        if not given or self._is_taken(given):
            n = len(self._calls) + 1
            while self._is_taken(f"call_{n}"):
                n += 1
            call = replace(call, id=f"call_{n}")
        self._ids.add(call.id)
        entry = _Call(given, call)
        self._calls.append(entry)
        return entry

    def _is_taken(self, call_id: str) -> bool:
        return call_id in self._ids or call_id in self._taken

    def response(self) -> Response:
        """Return what the chunks so far amount to."""
        calls = self.tool_calls
        finish: FinishReason = "tool_calls" if calls else "stop"
        return Response(
            self.content,
            calls,
            finish_reason=self.finish_reason or finish,
            refusal=self.refusal,
            reasoning=self.reasoning,
            usage=_NOTHING if self.usage is None else self.usage,
            model=self._model,
            native=self._native,
            cut_note=self.cut_note,
        )


def _with(value: _V, **changes: Any) -> _V:
    """Return *value* with *changes*; itself where they change nothing."""
    if all(getattr(value, name) is new for name, new in changes.items()):
        return value
    return replace(value, **changes)  # type: ignore[type-var]  # a dataclass, all of them


def join(chunks: Iterable[Chunk]) -> Response:
    """Put *chunks* together.

    The last finish reason, model and native items win; text, refusal, reasoning and
    usage add up. Without a finish reason it is "tool_calls" when there are calls,
    else "stop".

    >>> join([Chunk("Hel"), Chunk("lo.", finish_reason="stop")]).content
    'Hello.'
    """
    collector = Collector()
    for chunk in chunks:
        collector.add(chunk)
    return collector.response()


def split(response: Response) -> list[Chunk]:
    """Return chunks that ``join`` would put together to *response*.

    What the model thought comes first, then the text, then the calls; usage and the
    finish reason come last, beside the text where there are no calls. ``extra`` has
    no place in a chunk and is lost.
    """
    calls = response.tool_calls
    chunks: list[Chunk] = []
    if response.refusal is not None or response.reasoning is not None:
        chunks.append(Chunk(refusal=response.refusal, reasoning=response.reasoning))
    if response.content and calls:
        chunks.append(Chunk(response.content))
    for call in calls:
        delta = ToolCallDelta(call.id, call.name, call.arguments, mode="replace")
        named = replace(call, arguments="")
        chunks.append(
            Chunk(tool_call_named=named, tool_call_arguments=delta, tool_call=call)
        )
    last = Chunk(
        None if calls else response.content or None,
        finish_reason=response.finish_reason,
        usage=response.usage if response.usage else None,
        model=response.model,
        native=response.native,
        cut_note=response.cut_note,
    )
    chunks.append(last)
    return chunks
