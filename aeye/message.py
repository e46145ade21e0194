"""What is said: messages, their parts, tool calls and reasoning.

Values only. Equal content means an equal value; nothing here knows of sockets,
tools or storage. ``to_dict``/``from_dict`` give the JSON form that sessions and
suspended runs are saved in: absent keys mean "not said", and
``Message.from_dict(m.to_dict()) == m`` for every message.
"""

from __future__ import annotations

import base64
import os
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import (
    Any,
    BinaryIO,
    Dict,
    Iterable,
    Literal,
    Mapping,
    Optional,
    Tuple,
    Union,
    cast,
)

from .quick import quick

__all__ = [
    "Json",
    "LIMIT",
    "Message",
    "Part",
    "PartType",
    "Reasoning",
    "ReasoningDetail",
    "Role",
    "Sparse",
    "ToolCall",
    "as_calls",
]

# 3.9: aliases that are evaluated at run time cannot use ``X | Y``.
Json = Dict[str, Any]
Role = Literal["system", "user", "assistant", "tool"]
PartType = Literal["text", "image", "file", "audio"]

# Bytes of one part. No vendor takes more in a request.
LIMIT = 50 * 1024 * 1024

_ROLES = ("system", "user", "assistant", "tool")
_PART_TYPES = ("text", "image", "file", "audio")


class Sparse:
    """A dataclass that prints what it says: fields that are not at their default."""

    def __repr__(self) -> str:
        said = []
        for item in fields(self):  # type: ignore[arg-type]  # every subclass is one
            value = getattr(self, item.name)
            if item.default is MISSING or value != item.default:
                said.append(f"{item.name}={_shown(value)}")
        return f"{type(self).__name__}({', '.join(said)})"


@quick
@dataclass(frozen=True, repr=False)
class Part(Sparse):
    """One piece of a message: text, or a picture, document or sound.

    Make one with ``Part.text``, ``Part.image``, ``Part.file`` or ``Part.audio``.
    """

    type: PartType
    # The text; or where the bytes are: an ``http(s):`` or ``data:`` URL, the bytes
    # themselves, or a path. A path is opened only when the request is sent.
    data: Union[str, bytes, os.PathLike[str]]
    # Media type ("image/png") or the short format a vendor wants ("wav").
    format: Optional[str] = None

    def __post_init__(self) -> None:
        if self.type not in _PART_TYPES:
            raise ValueError(f"Part type is one of {_PART_TYPES}, not {self.type!r}")
        if self.type == "text" and not isinstance(self.data, str):
            kind = type(self.data).__name__
            raise TypeError(f"the data of a text part is a str, not {kind}")
        data: object = self.data
        if isinstance(data, (bytearray, memoryview)):
            object.__setattr__(self, "data", bytes(data))
        elif isinstance(data, os.PathLike):
            object.__setattr__(self, "data", Path(data))
        elif not isinstance(data, (str, bytes)):
            kind = type(data).__name__
            hint = ""
            if hasattr(data, "read"):
                hint = f"; Part.{self.type}(…) takes an open file"
            raise TypeError(f"Part data is a str, bytes or a path, not {kind}{hint}")

    @classmethod
    def text(cls, text: str) -> Part:
        """Text as a part, to stand beside other parts."""
        return cls("text", text)

    @classmethod
    def image(
        cls,
        data: str | bytes | os.PathLike[str] | BinaryIO,
        format: str | None = None,
    ) -> Part:
        """A picture: URL, ``data:`` URL, bytes, path or a file open for bytes.

        The type is known by the first bytes and by the name of a path; where neither
        tells it, name the *format*. A path is opened when a request is sent; an open
        file is read now, since a message is sent at every turn.
        """
        return cls("image", _read(data), format=format)

    @classmethod
    def file(
        cls,
        data: str | bytes | os.PathLike[str] | BinaryIO,
        format: str | None = None,
    ) -> Part:
        """A document; *data* and *format* are as for ``image``."""
        return cls("file", _read(data), format=format)

    @classmethod
    def audio(
        cls,
        data: str | bytes | os.PathLike[str] | BinaryIO,
        format: str | None = None,
    ) -> Part:
        """A sound; *data* and *format* are as for ``image``, without addresses."""
        return cls("audio", _read(data), format=format)

    def to_dict(self) -> Json:
        """Return the JSON form; bytes become ``{"base64": …}``."""
        data: Any = self.data
        if isinstance(data, bytes):
            data = {"base64": base64.b64encode(data).decode("ascii")}
        elif not isinstance(data, str):
            data = {"path": os.fspath(data)}
        found: Json = {"type": self.type, "data": data}
        if self.format is not None:
            found["format"] = self.format
        return found

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Part:
        """Read the JSON form.

        Raises:
            ValueError: *value* is not one; the message says what is wrong.
        """
        _check_keys("Part", value, {"type", "data", "format"}, {"type", "data"})
        data = value["data"]
        if isinstance(data, Mapping):
            if set(data) == {"base64"}:
                data = base64.b64decode(data["base64"], validate=True)
            elif set(data) == {"path"}:
                data = Path(data["path"])
            else:
                raise ValueError(f"Part data has the keys {sorted(data)!r}")
        elif not isinstance(data, str):
            raise ValueError(f"Part data is text or an object, not {data!r:.80}")
        return cls(value["type"], data, format=value.get("format"))


@quick
@dataclass(frozen=True, repr=False)
class ToolCall(Sparse):
    """A model's wish to have a tool run."""

    id: str
    name: str
    # The JSON text as the model wrote it; it may be malformed.
    arguments: str = "{}"
    # Id of the schema dialect the arguments were written in; None: natural shape.
    descriptor: Optional[str] = None

    def __post_init__(self) -> None:
        for name in ("id", "name", "arguments"):
            value: object = getattr(self, name)
            if not isinstance(value, str):
                hint = "; json.dumps makes it" if name == "arguments" else ""
                raise TypeError(f"ToolCall {name} is a str, not {value!r:.80}{hint}")

    def to_dict(self) -> Json:
        """Return the JSON form."""
        return _sparse(self, keep=("id", "name", "arguments"))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ToolCall:
        """Read the JSON form, or raise ValueError."""
        return cls(**_known("ToolCall", cls, value, {"id", "name"}))


@quick
@dataclass(frozen=True, repr=False)
class ReasoningDetail(Sparse):
    """One item of structured reasoning, as far as vendors share a shape."""

    id: Optional[str] = None
    type: Optional[str] = None
    format: Optional[str] = None
    index: Optional[int] = None
    summary: Optional[str] = None
    text: Optional[str] = None
    signature: Optional[str] = None
    data: Optional[str] = None

    def to_dict(self) -> Json:
        """Return the JSON form."""
        return _sparse(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ReasoningDetail:
        """Read the JSON form, or raise ValueError."""
        return cls(**_known("ReasoningDetail", cls, value, set()))

    def _same(self, other: ReasoningDetail) -> bool:
        """Whether *other* continues this item (id, else index, else type)."""
        if None not in (self.type, other.type) and self.type != other.type:
            return False  # a summary and what is encrypted may have one place
        if self.id is not None and other.id is not None:
            return self.id == other.id
        if self.index is not None and other.index is not None:
            return self.index == other.index
        bare = (self.id, self.index, other.id, other.index) == (None,) * 4
        return bare and self.type == other.type

    def _join(self, other: ReasoningDetail) -> ReasoningDetail:
        changes: Json = {}
        for name in ("summary", "text", "data"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if theirs is not None:
                changes[name] = theirs if mine is None else mine + theirs
        for name in ("id", "type", "format", "index", "signature"):
            if getattr(other, name) is not None:
                changes[name] = getattr(other, name)
        return replace(self, **changes)


@quick
@dataclass(frozen=True, repr=False)
class Reasoning(Sparse):
    """What a model thought before it answered, where the vendor shows it.

    ``a + b`` continues *a* with *b*: text is appended, details that name the same
    item are joined, others are added.

    >>> Reasoning("First, ") + Reasoning("then.")
    Reasoning(content='First, then.')
    """

    content: str = ""
    details: Tuple[ReasoningDetail, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", tuple(self.details))

    def __add__(self, other: Reasoning) -> Reasoning:
        if not isinstance(other, Reasoning):
            return NotImplemented
        details = list(self.details)
        for new in other.details:
            for i, old in enumerate(details):
                if old._same(new):
                    details[i] = old._join(new)
                    break
            else:
                details.append(new)
        return Reasoning(self.content + other.content, tuple(details))

    @classmethod
    def join(cls, pieces: Iterable[Reasoning]) -> Reasoning:
        """Return the sum of *pieces*, at a cost that grows with their length alone."""
        texts: list[str] = []
        details = cls()
        for piece in pieces:
            texts.append(piece.content)
            if piece.details:
                details = details + Reasoning("", piece.details)
        return cls("".join(texts), details.details)

    def __bool__(self) -> bool:
        return bool(self.content or self.details)

    @property
    def text(self) -> str:
        """The thought to show: the content, else summaries and texts."""
        if self.content:
            return self.content
        found = (detail.summary or detail.text for detail in self.details)
        return "\n\n".join(text for text in found if text)

    def to_dict(self) -> Json:
        """Return the JSON form."""
        value: Json = {"content": self.content} if self.content else {}
        if self.details:
            value["details"] = [detail.to_dict() for detail in self.details]
        return value

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Reasoning:
        """Read the JSON form, or raise ValueError."""
        given = _known("Reasoning", cls, value, set())
        details = tuple(map(ReasoningDetail.from_dict, given.get("details", ())))
        return cls(given.get("content", ""), details)


def as_calls(calls: Iterable[Any]) -> tuple[ToolCall, ...]:
    """Return *calls* as a tuple.

    Raises:
        TypeError: one of them is none.
    """
    found = tuple(calls)
    for call in found:
        if not isinstance(call, ToolCall):
            raise TypeError(f"tool_calls holds ToolCall values, not {call!r:.80}")
    return found


@quick
@dataclass(frozen=True, repr=False)
class Message(Sparse):
    """One turn of a conversation.

    The order of the fields is a contract; name everything after the second.
    """

    role: Role
    # Text, or parts. A list is taken and kept as a tuple.
    content: Union[str, Tuple[Part, ...]] = ""
    name: Optional[str] = None
    # On a tool's reply: the id of the call it answers.
    tool_call_id: Optional[str] = None
    tool_calls: Tuple[ToolCall, ...] = ()
    refusal: Optional[str] = None
    reasoning: Optional[Reasoning] = None
    # What the message costs in the window, where known.
    tokens: Optional[int] = None
    # A cache mark for vendors that take one: {"type": "ephemeral"}, or {"ttl": "1h"}.
    cache: Optional[Json] = None
    # The vendor's own items of this turn: {"format": …, "items": […]}.
    native: Optional[Json] = None

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise ValueError(f"Message role is one of {_ROLES}, not {self.role!r}")
        if not isinstance(self.content, str):
            object.__setattr__(self, "content", _parts(self.content))
        if self.tool_calls != ():
            object.__setattr__(self, "tool_calls", as_calls(self.tool_calls))

    @property
    def text(self) -> str:
        """The text of the message; parts that are not text are left out."""
        if isinstance(self.content, str):
            return self.content
        return "".join(cast(str, p.data) for p in self.content if p.type == "text")

    def to_dict(self) -> Json:
        """Return the JSON form."""
        value = _sparse(self, keep=("role", "content"))
        if not isinstance(self.content, str):
            value["content"] = [part.to_dict() for part in self.content]
        if self.tool_calls:
            value["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        else:
            value.pop("tool_calls", None)
        if self.reasoning is not None:
            value["reasoning"] = self.reasoning.to_dict()
        return value

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Message:
        """Read the JSON form.

        Raises:
            ValueError: *value* is not one; the message says what is wrong.
        """
        given = _known("Message", cls, value, {"role"})
        content = given.get("content", "")
        if isinstance(content, (list, tuple)):
            given["content"] = tuple(map(Part.from_dict, content))
        elif not isinstance(content, str):
            raise ValueError(f"Message content is text or parts, not {content!r:.80}")
        given["tool_calls"] = tuple(
            map(ToolCall.from_dict, given.get("tool_calls", ()))
        )
        if given.get("reasoning") is not None:
            given["reasoning"] = Reasoning.from_dict(given["reasoning"])
        return cls(**given)


def _read(data: Any) -> Any:
    """Return *data*, or what is left in it where it is an open file."""
    read = getattr(data, "read", None)
    if not callable(read):
        return data
    name = f"the file {getattr(data, 'name', type(data).__name__)!r}"
    pieces: list[bytes] = []
    left = LIMIT
    while left >= 0:
        piece: object = read(min(left + 1, 1024 * 1024))
        if not piece and piece != "":
            break
        if not isinstance(piece, bytes):
            kind = type(piece).__name__
            raise TypeError(f"{name} gives {kind}, not bytes: open it with mode 'rb'")
        pieces.append(piece)
        left -= len(piece)
    else:
        raise ValueError(f"{name} has more than the {LIMIT} bytes that can be sent")
    if not pieces:
        raise ValueError(f"{name} has nothing left to read; seek(0) goes to its start")
    return b"".join(pieces)


def _shown(value: object) -> str:
    """Return the repr of *value*, cut where it is bytes or very long text."""
    if isinstance(value, bytes) and len(value) > 32:
        return f"<{len(value)} bytes>"
    if isinstance(value, str) and len(value) > 2000:
        return f"{value[:2000]!r}…<{len(value)} characters>"
    return repr(value)


def _parts(content: object) -> tuple[Part, ...]:
    if isinstance(content, Iterable) and not isinstance(content, (bytes, Mapping)):
        parts = tuple(
            Part.text(part) if isinstance(part, str) else part for part in content
        )
        if all(isinstance(part, Part) for part in parts):
            return cast("tuple[Part, ...]", parts)
    raise TypeError(f"Message content is a str or a list of Part, not {content!r:.80}")


def _sparse(value: Any, keep: tuple[str, ...] = ()) -> Json:
    """Return the fields of a dataclass that say something, shallowly."""
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    return {k: v for k, v in found.items() if v is not None or k in keep}


def _known(name: str, cls: type, value: object, needed: set[str]) -> Json:
    allowed = {field.name for field in fields(cls)}
    return dict(_check_keys(name, value, allowed, needed))


def _check_keys(
    name: str, value: object, allowed: set[str], needed: set[str]
) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is read from an object, not {value!r:.80}")
    if set(value) - allowed:
        unknown = sorted(set(value) - allowed, key=str)
        raise ValueError(f"{name} has no {unknown!r}; it has {sorted(allowed)}")
    if needed - set(value):
        raise ValueError(f"{name} lacks {sorted(needed - set(value))!r}")
    return value
