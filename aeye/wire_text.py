"""Text that hosts cut or mix: halves of characters, and thoughts in tags."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, Iterable, List, Tuple

from .message import Reasoning, ReasoningDetail, ToolCall
from .response import Chunk, ToolCallDelta
from .wire import StreamDecoder, may_be_halved, mend_all, mend_text

__all__ = ["MendingDecoder", "TagReader", "split_tags"]

_NOTHING = Chunk()


class MendingDecoder:
    """A ``StreamDecoder`` whose texts are whole characters, whatever the codec.

    JSON can escape a character beyond U+FFFF as two halves, and a host that cuts its
    text anywhere sends them in two events. The first is held back until the text it
    belongs to goes on.
    """

    def __init__(self, decoder: StreamDecoder) -> None:
        self._decoder = decoder
        # Nothing is looked at before there may have been a half.
        self._mends = False
        # By text: the half at its end, and what makes a chunk of that text.
        self._held: Dict[Tuple[Any, ...], Tuple[str, Callable[[str], Chunk]]] = {}

    @property
    def ended(self) -> bool:
        """Whether the end mark has been seen."""
        return self._decoder.ended

    @property
    def finished(self) -> bool:
        """Whether what would count as a complete answer has been seen."""
        return self._decoder.finished

    def feed(self, data: str, name: str = "") -> Iterable[Chunk]:
        """Return the chunks of one event; see ``StreamDecoder.feed``."""
        chunks = self._decoder.feed(data, name)
        if not self._mends and may_be_halved(data):
            self._mends = True
        return self._mended(chunks) if self._mends else chunks

    def end(self, reason: str = "") -> Iterable[Chunk]:
        """Return what is left; see ``StreamDecoder.end``."""
        return [*self._mended(self._decoder.end(reason)), *self._flush()]

    def _mended(self, chunks: Iterable[Chunk]) -> List[Chunk]:
        found: List[Chunk] = []
        for chunk in chunks:
            if chunk.restart:
                self._held.clear()
            if chunk.finish_reason is not None:
                found += self._flush()
            elif chunk.tool_call is not None:
                found += self._flush(("arguments", chunk.tool_call.id))
            chunk = self._mend(chunk)
            if chunk != _NOTHING:
                found.append(chunk)
        return [*found, *self._flush()] if self.ended else found

    def _mend(self, chunk: Chunk) -> Chunk:
        delta = chunk.tool_call_arguments
        thought = chunk.reasoning
        return replace(
            chunk,
            content=self._take(("content",), chunk.content, Chunk),
            refusal=self._take(
                ("refusal",), chunk.refusal, lambda text: Chunk(refusal=text)
            ),
            reasoning=None if thought is None else self._think(thought),
            tool_call_named=_mend_call(chunk.tool_call_named),
            tool_call_arguments=None if delta is None else self._fill(delta),
            tool_call=_mend_call(chunk.tool_call),
            native=chunk.native and mend_all(chunk.native),
        )

    def _take(
        self,
        key: Tuple[Any, ...],
        text: str | None,
        make: Callable[[str], Chunk],
    ) -> str | None:
        """Return what can be handed on of a piece of text."""
        if not text:
            return text
        if key in self._held:
            text = self._held.pop(key)[0] + text
        if "\ud800" <= text[-1] <= "\udbff":
            self._held[key] = text[-1], make
            text = text[:-1]
        return mend_text(text) or None

    def _think(self, thought: Reasoning) -> Reasoning | None:
        def make(text: str) -> Chunk:
            return Chunk(reasoning=Reasoning(text))

        text = self._take(("thought",), thought.content, make)
        details = tuple(map(self._detail, thought.details))
        return Reasoning(text or "", details) if text or details else None

    def _detail(self, detail: ReasoningDetail) -> ReasoningDetail:
        changes: Dict[str, Any] = {}
        for name in ("text", "summary"):

            def make(text: str, name: str = name) -> Chunk:
                only: Dict[str, Any] = {"text": None, "summary": None, name: text}
                rest = replace(detail, **only)
                return Chunk(reasoning=Reasoning("", (rest,)))

            key = ("detail", name, detail.index, detail.id, detail.type)
            changes[name] = self._take(key, getattr(detail, name), make)
        return replace(detail, **changes)

    def _fill(self, delta: ToolCallDelta) -> ToolCallDelta:
        key = ("arguments", delta.id)
        delta = replace(delta, id=mend_text(delta.id), name=mend_text(delta.name))

        def make(text: str) -> Chunk:
            rest = replace(delta, arguments=text, mode="append")
            return Chunk(tool_call_arguments=rest)

        if delta.mode == "replace":
            self._held.pop(key, None)
        text = self._take(key, delta.arguments, make)
        return replace(delta, arguments=text or "")

    def _flush(self, key: Tuple[Any, ...] | None = None) -> List[Chunk]:
        """Hand on the halves that nothing came for: all, or that of one text."""
        keys = [k for k in self._held if key in (None, k)]
        held = [self._held.pop(k) for k in keys]
        return [make(mend_text(half)) for half, make in held]


def _mend_call(call: ToolCall | None) -> ToolCall | None:
    if call is None:
        return None
    return replace(
        call,
        id=mend_text(call.id),
        name=mend_text(call.name),
        arguments=mend_text(call.arguments),
    )


_OPEN, _CLOSE = "<think>", "</think>"
# So many blanks before a tag are waited for.
_MAX_BLANKS = 64


class TagReader:
    r"""Tells thought from text where both come as text, the thought in tags.

    Only what begins with the tag is thought: later in a text it may be anything.

    >>> reader = TagReader()
    >>> [reader.feed(piece) for piece in ("<thi", "nk>Hm.</th", "ink>\n", "\nYes.")]
    [('', ''), ('Hm.', ''), ('', ''), ('', 'Yes.')]
    """

    def __init__(self) -> None:
        self._where = "start"
        # What cannot be told yet.
        self._held = ""

    def feed(self, piece: str) -> Tuple[str, str]:
        """Return what is new of the thought and of the text."""
        if self._where == "text":
            return "", piece
        self._held += piece
        if self._where == "start":
            self._begin()
        thought = self._take_thought() if self._where == "thought" else ""
        if self._where == "answer":  # blanks before it belong to the tag
            self._held = self._held.lstrip()
            self._where = "text" if self._held else "answer"
        text = ""
        if self._where == "text":
            text, self._held = self._held, ""
        return thought, text

    def end(self) -> Tuple[str, str]:
        """Return what was held back: the text has ended."""
        rest, self._held = self._held, ""
        return (rest, "") if self._where == "thought" else ("", rest)

    def _begin(self) -> None:
        said = self._held.lstrip()
        if len(self._held) - len(said) > _MAX_BLANKS:
            self._where = "text"
        elif said.startswith(_OPEN):
            self._where, self._held = "thought", said[len(_OPEN) :]
        elif not _OPEN.startswith(said):
            self._where = "text"

    def _take_thought(self) -> str:
        thought, closed, rest = self._held.partition(_CLOSE)
        if closed:
            self._where, self._held = "answer", rest
            return thought
        # The end may be the tag's beginning.
        sizes = range(min(len(_CLOSE) - 1, len(thought)), 0, -1)
        kept = next((n for n in sizes if _CLOSE.startswith(thought[-n:])), 0)
        cut = len(thought) - kept
        self._held = thought[cut:]
        return thought[:cut]


def split_tags(text: str) -> Tuple[str, str]:
    """Return the thought in tags that *text* begins with, and the rest.

    >>> split_tags("<think>Hm.</think> Yes.")
    ('Hm.', 'Yes.')
    """
    reader = TagReader()
    (thought, said), (more, rest) = reader.feed(text), reader.end()
    return thought + more, said + rest
