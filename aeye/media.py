"""Pictures, documents and sounds: from bytes, paths and addresses to URLs.

``resolve`` gives a part the one form that every codec reads: an ``http(s):`` or
``data:`` URL. It is called when a request is sent, and it is the only code that opens
a file for a message: a ``pathlib.Path``, which a program makes. Text that looks like a
path may have come from a model and is refused.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import os
from dataclasses import replace
from pathlib import Path
from typing import Tuple
from urllib.parse import quote

from .message import Message, Part

__all__ = ["LIMIT", "media_type", "resolve", "resolve_messages"]

# Bytes of one part. No vendor takes more in a request.
LIMIT = 50 * 1024 * 1024

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
        return said if "/" in said else _SHORT.get(said.lower().lstrip("."))
    for start, magic, kind in _MAGIC:
        if data.startswith(magic, start):
            return kind
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    return _SHORT.get(suffix) or mimetypes.guess_type(name, strict=False)[0]


def resolve(part: Part, limit: int = LIMIT) -> Part:
    """Return *part* with an ``http(s):`` or ``data:`` URL as its data.

    Raises:
        ValueError: the data is no such thing, too large, or of an unknown type.
        OSError: the file cannot be read.
    """
    if part.type == "text":
        return part
    if isinstance(part.data, str):
        _check_url(part, limit)
        return part
    if isinstance(part.data, bytes):
        data, name = part.data, ""
        _check_size(part.type, len(data), limit)
    else:
        data, name = _read(part, Path(part.data), limit)
    kind = media_type(data, name, part.format)
    if kind is None:
        what = f"of {name!r}" if name else f"of {len(data)} bytes"
        raise ValueError(
            f"the type {what} is not known: say format= for the {part.type}, "
            f"such as 'image/png' or one of {sorted(_SHORT)}"
        )
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


def _check_url(part: Part, limit: int) -> None:
    url = str(part.data)
    start = url[:8].lower()
    if start.startswith(("http://", "https://")):
        return
    if not start.startswith("data:"):
        raise ValueError(
            f"{part.type} data is an http(s): or data: URL, bytes or a pathlib.Path, "
            f"not the text {url!r:.80}; to send a file say Part.{part.type}(Path(…))"
        )
    head, comma, data = url.partition(",")
    if not comma:
        raise ValueError(f"a data: URL without a comma: {url!r:.80}")
    _check_size(part.type, len(data) * 3 // 4, limit)
    if head.endswith(";base64"):
        try:
            binascii.a2b_base64(data.encode("ascii"))
        except (binascii.Error, UnicodeEncodeError) as exc:
            raise ValueError(f"bad base64 in a data: URL: {url!r:.80}") from exc


def _read(part: Part, path: Path, limit: int) -> tuple[bytes, str]:
    _check_size(f"{part.type} {os.fspath(path)!r}", path.stat().st_size, limit)
    return path.read_bytes(), path.name


def _check_size(what: str, size: int, limit: int) -> None:
    if size > limit:
        raise ValueError(f"{what} has {size} bytes; at most {limit} can be sent")
