"""Bytes to server-sent events.

Incremental: feed what arrives, get the events that are complete. Lines end with LF,
CR or CRLF, also when the two bytes of a CRLF come in different reads, and nothing
else ends a line. Text is decoded line by line, as UTF-8 whatever a header says, so a
character may be cut anywhere.

The rules are those of https://html.spec.whatwg.org/multipage/server-sent-events.html
(read 2026-11) with one difference: an event that the end of the body completes, for
want of its blank line, is an event; several hosts leave that line out.
"""

from __future__ import annotations

from typing import List, NamedTuple

from .errors import ProtocolError

__all__ = ["EventReader", "ServerEvent"]

_BOM = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event: its data, and its name where it has one."""

    data: str
    name: str = ""


class EventReader:
    r"""Reads one body.

    An event of more than *limit* bytes is refused, so that a broken host cannot
    fill the memory.

    >>> reader = EventReader()
    >>> reader.feed(b'data: {"a"'), reader.feed(b': 1}\n\n')
    ([], [ServerEvent(data='{"a": 1}', name='')])
    """

    def __init__(self, limit: int = 64 * 1024 * 1024) -> None:
        self._limit = limit
        # The pieces of a line whose end has not come yet.
        self._tail: List[bytes] = []
        self._tail_size = 0
        # The event so far: its data lines, and the size of all its lines.
        self._data: List[str] = []
        self._size = 0
        self._name = ""
        self._started = False
        # The last read ended with CR: an LF at the start of the next belongs to it.
        self._after_cr = False
        # The last read ended with a whole event.
        self._between = False

    def feed(self, data: bytes) -> list[ServerEvent]:
        """Take in what arrived; return the events it completed.

        Raises:
            ProtocolError: an event is larger than the limit.
        """
        size = len(data)
        if (
            data.startswith(b"data: ")
            and data.find(b"\n") == size - 2
            and data.endswith(b"\n\n")
            and b"\r" not in data
            and self._between
            and size <= self._limit
        ):  # what nearly every read is: one event of one line, and no more
            return [ServerEvent(data[6:-2].decode("utf-8", "replace"))]
        self._between = False
        if self._after_cr and data:
            self._after_cr = False
            if data[0] == 0x0A:
                data = data[1:]
        if b"\r" in data:
            self._after_cr = data[-1] == 0x0D
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._tail:
            self._tail.append(lines[0])
            lines[0] = b"".join(self._tail)
            self._tail.clear()
            self._tail_size = 0
        events: list[ServerEvent] = []
        for line in lines:
            self._take(line, events)
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
            self._check(self._size + self._tail_size)
        waits = self._tail_size or self._size or self._name or self._after_cr
        self._between = self._started and not waits
        return events

    def end(self) -> list[ServerEvent]:
        """The body has ended: return the event that lacked its blank line, if any."""
        events: list[ServerEvent] = []
        if self._tail:
            self._take(b"".join(self._tail), events)
            self._tail.clear()
        self._take(b"", events)
        return events

    def _take(self, line: bytes, events: list[ServerEvent]) -> None:
        if not self._started:
            self._started = True
            line = line[3:] if line.startswith(_BOM) else line
        if not line:
            if self._data:
                events.append(ServerEvent("\n".join(self._data), self._name))
                self._data = []
            self._name = ""
            self._size = 0
            return
        self._size += len(line)
        self._check(self._size)
        if line.startswith(b"data: "):  # nearly every line there is
            self._data.append(line[6:].decode("utf-8", "replace"))
        else:
            self._take_field(line)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise ProtocolError(f"an event is larger than {self._limit} bytes")

    def _take_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field not in (b"data", b"event"):  # a comment, an id, a retry time
            return
        if value.startswith(b" "):
            value = value[1:]
        text = value.decode("utf-8", "replace")
        if field == b"data":
            self._data.append(text)
        else:
            self._name = text
