"""Bytes, paths and addresses to URLs."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from aeye.media import media_type, resolve, resolve_messages
from aeye.message import Message, Part

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def url(kind: str, data: bytes, name: str = "") -> str:
    label = f";name={name}" if name else ""
    return f"data:{kind}{label};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize(
    ("data", "name", "said", "found"),
    [
        (PNG, "", None, "image/png"),
        (b"\xff\xd8\xff\xe0", "x.png", None, "image/jpeg"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "", None, "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "", None, "audio/wav"),
        (b"%PDF-1.7", "", None, "application/pdf"),
        (b"ID3\x04", "", None, "audio/mpeg"),
        (b"a,b", "t.CSV", None, "text/csv"),
        (
            b"x",
            "a.docx",
            None,
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (PNG, "", "image/x", "image/x"),
        (b"", "", ".JPG", "image/jpeg"),
        (b"", "", "nonsense", None),
        (b"abc", "", None, None),
        (b"abc", "noext", None, None),
    ],
)
def test_media_type(data: bytes, name: str, said: str | None, found: str) -> None:
    """What is said counts, then the first bytes, then the name."""
    assert media_type(data, name, said) == found


def test_bytes() -> None:
    """Bytes become a data: URL of the type they have."""
    assert resolve(Part.image(PNG)) == Part.image(url("image/png", PNG), "image/png")


def test_path(tmp_path: Path) -> None:
    """A Path is read, and its name kept."""
    path = tmp_path / "my report.pdf"
    path.write_bytes(b"%PDF-1.7")

    found = resolve(Part.file(path))

    name = "my%20report.pdf"
    assert found == Part.file(
        url("application/pdf", b"%PDF-1.7", name), "application/pdf"
    )


@pytest.mark.parametrize(
    "part",
    [
        Part.text("../secret"),
        Part.image("https://example.com/a.png"),
        Part.image("HTTP://example.com/a.png"),
        Part.image(url("image/png", PNG)),
        Part.file("data:,plain%20text"),
    ],
)
def test_what_is_ready(part: Part) -> None:
    """Text and URLs are left as they are."""
    assert resolve(part) is part


@pytest.mark.parametrize(
    "data", ["/etc/passwd", "~/x.png", "file:///etc/passwd", "C:\\x.png", "x.png", ""]
)
def test_text_is_no_path(data: str) -> None:
    """Text never opens a file: it may have come from a model."""
    with pytest.raises(ValueError, match=r"say Part\.image"):
        resolve(Part.image(data))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Part.image("data:image/png;base64"), "without a comma"),
        (Part.image("data:image/png;base64,é"), "bad base64"),
        (Part.image("data:image/png;base64,A"), "bad base64"),
        (Part.image(b"x" * 101), "101 bytes; at most 100"),
        (Part.image(url("image/png", b"x" * 200)), "at most 100"),
        (Part.file(b"abc"), "say format="),
        (Part.file(b"abc", "nonsense"), "say format="),
    ],
)
def test_what_cannot_be_sent(part: Part, message: str) -> None:
    """Broken, too large or unknown data is refused before anything is sent."""
    with pytest.raises(ValueError, match=message):
        resolve(part, limit=100)


def test_files_that_cannot_be_sent(tmp_path: Path) -> None:
    """A file's size is looked at before it is read; a missing one is an OSError."""
    large, odd = tmp_path / "a.png", tmp_path / "noext"
    large.write_bytes(b"x" * 101)
    odd.write_bytes(b"abc")

    with pytest.raises(ValueError, match=r"a\.png' has 101 bytes"):
        resolve(Part.image(large), limit=100)
    with pytest.raises(ValueError, match="'noext' is not known"):
        resolve(Part.file(odd))
    with pytest.raises(FileNotFoundError):
        resolve(Part.file(tmp_path / "missing.pdf"))


def test_messages() -> None:
    """Messages without parts are the same object; others are copied."""
    plain = (Message("user", "Hi"),)
    shown = (*plain, Message("user", (Part.text("See"), Part.image(PNG))))

    found = resolve_messages(shown)

    assert resolve_messages(plain) is plain
    assert found == (
        plain[0],
        replace(shown[1], content=(Part.text("See"), resolve(Part.image(PNG)))),
    )
    assert shown[1].content[1] == Part.image(PNG)
