"""Pictures, documents and sounds: from bytes, paths and addresses to URLs.

``resolve`` gives a part the one form that every codec reads: an ``http(s):`` or
``data:`` URL. It is called when a request is sent, and it is the only code that opens
a file for a message: a ``pathlib.Path``, which a program makes. Text that looks like a
path may have come from a model and is refused. What no vendor could read is refused
here, before anything is sent: what is empty, too large, or another thing than is said.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import os
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Tuple
from urllib.parse import quote

from .message import LIMIT, Message, Part

__all__ = ["LIMIT", "media_type", "resolve", "resolve_messages"]

# First bytes, where to find them, and what they begin.
_MAGIC: Tuple[Tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"%PDF-", "application/pdf"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"OggS", "audio/ogg"),
)
# Types that all begin in a way that is listed above.
_CERTAIN = frozenset(
    {"image/gif", "image/jpeg", "image/png", "image/webp", "application/pdf"}
)
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(;[ -~]*)?", re.ASCII)
# Short names people write for media types.
_SHORT = {
    "csv": "text/csv",
    "flac": "audio/flac",
    "gif": "image/gif",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webp": "image/webp",
    "xml": "application/xml",
}


def media_type(data: bytes, name: str = "", said: str | None = None) -> str | None:
    """Return the media type of *data*: as *said*, else by its start, else by *name*.

    >>> media_type(b"%PDF-1.7")
    'application/pdf'
    >>> media_type(b"a,b", "table.csv"), media_type(b"", said="jpg")
    ('text/csv', 'image/jpeg')
    """
    if said:
        if _MEDIA_TYPE.fullmatch(said):
            return said.partition(";")[0]
        return _SHORT.get(said.lower().lstrip("."))
    for start, magic, kind in _MAGIC:
        if data.startswith(magic, start):
            return kind
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    return _SHORT.get(suffix) or mimetypes.guess_type(name, strict=False)[0]


def resolve(part: Part, limit: int = LIMIT) -> Part:
    """Return *part* with an ``http(s):`` or ``data:`` URL as its data.

    Raises:
        ValueError: the data is no such thing, empty, too large, of an unknown type or
            of another than the part.
        OSError: the file cannot be read.
    """
    if part.type == "text":
        return part
    if isinstance(part.data, str):
        return _check_url(part, limit)
    if isinstance(part.data, bytes):
        data, name, what = part.data, "", f"the {part.type}"
    else:
        path = Path(part.data)
        what = f"the {part.type} {os.fspath(path)!r}"
        data, name = _read(what, path, limit), path.name
    _check_size(what, len(data), limit)
    kind = _kind(part, data, name, what)
    label = f";name={quote(name)}" if name else ""
    text = base64.b64encode(data).decode("ascii")
    return replace(part, data=f"data:{kind}{label};base64,{text}", format=kind)


def resolve_messages(
    messages: tuple[Message, ...], limit: int = LIMIT
) -> tuple[Message, ...]:
    """Resolve the parts of all messages; the same tuple where there are none."""
    if all(isinstance(message.content, str) for message in messages):
        return messages
    return tuple(
        message
        if isinstance(message.content, str)
        else replace(message, content=tuple(resolve(p, limit) for p in message.content))
        for message in messages
    )


def _check_url(part: Part, limit: int) -> Part:
    url = str(part.data)
    start = url[:8].lower()
    if start.startswith(("http://", "https://")):
        return part
    if not start.startswith("data:"):
        raise ValueError(
            f"{part.type} data is an http(s): or data: URL, bytes or a pathlib.Path, "
            f"not the text {url!r:.80}; to send a file say Part.{part.type}(Path(…))"
        )
    head, comma, data = url.partition(",")
    what = f"the {part.type} {url!r:.80}"
    if not comma:
        raise ValueError(f"{what} is a data: URL without a comma")
    size = len(data)
    if head.endswith(";base64"):
        _check_size(what, size * 3 // 4 - data[-2:].count("=") or 1, limit)
        try:
            size = len(base64.b64decode(data.encode("ascii"), validate=True))
        except (binascii.Error, UnicodeEncodeError) as exc:
            raise ValueError(f"{what} has bad base64") from exc
    _check_size(what, size, limit)
    kind = head[5:].partition(";")[0] or "text/plain"
    _check_family(part.type, kind, what)
    # In lower case, as everybody who reads it expects it.
    return part if head[:5] == "data:" else replace(part, data=f"data:{url[5:]}")


def _read(what: str, path: Path, limit: int) -> bytes:
    """Read a regular file: others may be without end, or wait for ever for a writer."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(
            f"{what} is no regular file; if it is meant, read it and give the bytes"
        )
    _check_size(what, found.st_size or 1, limit)  # some of /proc tell no size
    with path.open("rb") as file:
        return file.read(limit + 1)  # it may have grown meanwhile


def _kind(part: Part, data: bytes, name: str, what: str) -> str:
    """Return the media type of what is sent, which has to be a likely one."""
    kind = media_type(data, name, part.format)
    if kind is None:
        reason = f"format={part.format!r} is none" if part.format else "it is not known"
        raise ValueError(
            f"the type of {what}: {reason}; say format=, such as 'image/png' or one of "
            f"{sorted(_SHORT)}"
        )
    _check_family(part.type, kind, what)
    if kind in _CERTAIN and media_type(data) != kind and not part.format:
        raise ValueError(
            f"{what} is called {kind} by its name and does not begin like one; if it "
            f"is one say format={kind!r}"
        )
    return kind


def _check_family(type: str, kind: str, what: str) -> None:
    """Refuse a picture or a sound that is another thing."""
    family = kind.partition("/")[0].lower()
    if type in ("image", "audio") and family != type:
        fit = family if family in ("image", "audio") else "file"
        raise ValueError(f"{what} is of the type {kind}; send it as Part.{fit}(…)")


def _check_size(what: str, size: int, limit: int) -> None:
    if size == 0:
        raise ValueError(f"{what} is empty: there is nothing to send")
    if size > limit:
        raise ValueError(f"{what} has {size} bytes; at most {limit} can be sent")
