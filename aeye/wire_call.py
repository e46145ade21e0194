"""Streamed calls put together, whatever their pieces look like."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Counter, Deque, Dict, List, Optional, Tuple

from .errors import ProtocolError
from .message import ToolCall
from .response import Chunk, ToolCallDelta

__all__ = ["CallAssembler"]


@dataclass
class _Open:
    """A call that is being assembled."""

    id: str
    name: str = ""
    # Its place in the answer, None where that was not said.
    key: Any = None
    pieces: List[str] = field(default_factory=list)
    # What the vendor keeps with the call, for the codec to see again.
    extra: Any = None
    # Pieces handed on so far.
    sent: int = 0
    named: bool = False
    done: bool = False
    # How often the arguments were looked at and were not whole.
    looks: int = 0

    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces, self.sent = ["".join(self.pieces)], min(self.sent, 1)
        return self.pieces[0] if self.pieces else ""

    def whole(self) -> ToolCall:
        # A tool without parameters is called with nothing by some hosts.
        text = self.text()
        return ToolCall(self.id, self.name, text if text.strip() else "{}")


class CallAssembler:
    """Puts streamed calls together and says when one has begun and is complete.

    A call has begun once its name is known. It is complete when the next one begins
    and its arguments are whole JSON, so that a tool can start while the stream goes
    on; otherwise at the end, since some hosts announce several calls first and send
    the pieces of their arguments in turns.

    Two calls under one id, or under none, cannot be told apart by whoever reads the
    chunks: the second is then held back until the first is complete.
    """

    def __init__(self) -> None:
        self._calls: List[_Open] = []
        # The latest call by place, by id and name (and id alone), and the last of all.
        self._by_key: Dict[Any, _Open] = {}
        self._by_id: Dict[Tuple[str, str], _Open] = {}
        self._last: Optional[_Open] = None
        # Calls that wait to be named, and ids of those that are named and not done.
        self._waiting: Deque[_Open] = deque()
        self._busy: Counter[str] = Counter()
        # How many there were when ``end`` was called.
        self._ended = 0

    @property
    def any(self) -> bool:
        """Whether there has been a call."""
        return bool(self._calls)

    def done(self) -> list[tuple[ToolCall, Any]]:
        """Return the calls that are complete, each with its extra."""
        calls = (call for call in self._calls if call.done and call.name)
        return [(call.whole(), call.extra) for call in calls]

    def add(
        self, key: Any, id: str, name: str, arguments: str, extra: Any = None
    ) -> list[Chunk]:
        """Take a piece of a call in; return what can be handed on.

        *key* is the call's place in the answer (None: not said), and the other
        values are empty where the piece does not say them.
        """
        call = self._find(key, id, name, arguments)
        chunks: list[Chunk] = []
        if call is None:
            chunks = self._complete_last()
            call = self._last = self._by_key[key] = _Open(id, key=key)
            self._calls.append(call)
            self._waiting.append(call)
        if id:
            self._by_id[id, ""] = call
        if call.done:  # nothing may follow whole JSON but blanks
            return chunks
        call.extra = extra or call.extra
        if not call.named:  # what has been said of a call is not taken back
            call.id = call.id or id
            call.name = call.name or name
        if id and call.name:
            self._by_id[id, call.name] = call
        if arguments:
            call.pieces.append(arguments)
        return chunks + (self._hand_on(call) if call.named else self._announce())

    def finish(self, key: Any, arguments: str | None = None) -> list[Chunk]:
        """The vendor says that the call at *key* is complete; return what that gives.

        *arguments* are all of them, where the vendor repeats them. A call that has to
        wait for another's end is completed by ``end``.
        """
        call = self._by_key.get(key)
        if call is None or call.done:
            return []
        chunks = self._announce()
        if arguments is not None and arguments != call.text():
            call.pieces, call.sent = [arguments], 1 if call.named else 0
            if call.named:
                delta = ToolCallDelta(call.id, call.name, arguments, mode="replace")
                chunks.append(Chunk(tool_call_arguments=delta))
        return chunks + self._complete(call) if call.named else chunks

    def end(self) -> list[Chunk]:
        """No more calls: return what completes those that are open.

        Raises:
            ProtocolError: a call has arguments and never got a name.
        """
        chunks: list[Chunk] = []
        for call in self._calls[self._ended :]:
            if not call.done:
                chunks += self._complete(call)
        self._ended = len(self._calls)
        self._waiting.clear()
        return chunks

    def _find(self, key: Any, id: str, name: str, arguments: str) -> _Open | None:
        """Return the call a piece belongs to, or None for a new one."""
        if key is None:
            if not id:
                return None if name else self._last
            same = self._find_by_id(id, name)
            return None if same is None or (same.done and name) else same
        call = self._by_key.get(key)
        if call is None:
            return None
        if id and call.id and id != call.id:
            # Some hosts have one index for all: the id decides.
            same = self._find_by_id(id, name)
            return None if same is None or same.done or same.key != key else same
        begins = name and (call.done or arguments.startswith("{"))
        if begins and not id and (call.done or _whole(call)):
            return None  # and some have no ids either
        return call

    def _find_by_id(self, id: str, name: str) -> _Open | None:
        """Return the latest call with this id; of two names, two calls."""
        latest = self._by_id.get((id, ""))
        if latest is None or not name or not latest.name:
            return latest
        return self._by_id.get((id, name))

    def _announce(self) -> list[Chunk]:
        """Name the calls that wait for it, in their order, as far as that goes."""
        chunks: list[Chunk] = []
        while self._waiting and self._may_be_named(self._waiting[0]):
            chunks += self._hand_on(self._waiting.popleft())
        return chunks

    def _may_be_named(self, call: _Open) -> bool:
        # An id may come in a later piece than the name, but not after arguments.
        if not call.name or not (call.id or call.pieces):
            return False
        return not (self._busy[""] or self._busy[call.id])

    def _hand_on(self, call: _Open) -> list[Chunk]:
        """Return what is new of a call that has been, or may be, named."""
        chunks: list[Chunk] = []
        if not call.named:
            call.named = True
            self._busy[call.id] += 1
            named = ToolCall(call.id, call.name, "")
            chunks.append(Chunk(tool_call_named=named))
        for piece in call.pieces[call.sent :]:
            delta = ToolCallDelta(call.id, call.name, piece)
            chunks.append(Chunk(tool_call_arguments=delta))
        call.sent = len(call.pieces)
        return chunks

    def _complete_last(self) -> list[Chunk]:
        """Complete the last call if its arguments are whole: a new one begins."""
        last = self._last
        if last is None or last.done or not _whole(last):
            return []
        chunks = [] if last.named else self._announce()
        return chunks + self._complete(last) if last.named else chunks

    def _complete(self, call: _Open) -> list[Chunk]:
        call.done = True
        if call.name:
            chunks = [*self._hand_on(call), Chunk(tool_call=call.whole())]
            self._busy[call.id] -= 1
            return chunks
        if call.text().strip():
            raise ProtocolError(f"a tool call without a name: {call.text()!r:.80}")
        return []


# A call is looked at this often, so that no answer can make it costly.
_MAX_LOOKS = 8


def _whole(call: _Open) -> bool:
    """Whether the arguments so far are complete. Cheap where they are not."""
    if not call.pieces or not call.pieces[-1].rstrip().endswith("}"):
        return False
    call.looks += 1
    if call.looks > _MAX_LOOKS:
        return False
    try:
        return isinstance(json.loads(call.text()), dict)
    except (ValueError, RecursionError):
        return False
