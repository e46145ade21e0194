"""Bytes, paths and addresses to URLs."""

from __future__ import annotations

import base64
import io
import os
from dataclasses import replace
from pathlib import Path

import pytest

from aeye.connection import connect
from aeye.media import media_type, resolve, resolve_messages
from aeye.message import Message, Part
from aeye.prompt import Prompt
from aeye.testing import LocalServer, ScriptedModel, calls
from aeye.tools import tool

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
        (b"x", "", "text/csv; charset=utf-8", "text/csv"),
        (b"x", "", "text/csv,\r\n", None),
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
        (Part.image("data:image/png;base64,AA!A"), "bad base64"),
        (Part.image("data:image/png;base64,"), "is empty"),
        (Part.file("data:,"), "is empty"),
        (Part.file(b""), "the file is empty"),
        (Part.image(b"x" * 101), "101 bytes; at most 100"),
        (Part.image(url("image/png", b"x" * 200)), "200 bytes; at most 100"),
        (Part.file("data:," + "x" * 101), "101 bytes; at most 100"),
        (Part.file(b"abc"), "not known; say format="),
        (Part.file(b"abc", "nonsense"), "format='nonsense' is none; say format="),
        (Part.image(b"%PDF-1.7"), r"type application/pdf; send it as Part\.file"),
        (Part.image(b"ID3\x04"), r"type audio/mpeg; send it as Part\.audio"),
        (Part.audio(PNG), r"type image/png; send it as Part\.image"),
        (Part.audio(url("text/plain", b"x")), r"send it as Part\.file"),
    ],
)
def test_what_cannot_be_sent(part: Part, message: str) -> None:
    """What no vendor could read is refused before anything is sent."""
    with pytest.raises(ValueError, match=message):
        resolve(part, limit=100)


def test_upper_case() -> None:
    """A data: URL in upper case goes out in lower case, as all codecs expect it."""
    found = resolve(Part.image("DATA:image/png;base64,AAAA"))

    assert found == Part.image("data:image/png;base64,AAAA")


def test_files_that_cannot_be_sent(tmp_path: Path) -> None:
    """A file's size is looked at before it is read; a missing one is an OSError."""
    large, odd, empty = tmp_path / "a.png", tmp_path / "noext", tmp_path / "e.txt"
    large.write_bytes(b"x" * 101)
    odd.write_bytes(b"abc")
    empty.touch()
    link = tmp_path / "link.png"

    with pytest.raises(ValueError, match=r"a\.png' has 101 bytes"):
        resolve(Part.image(large), limit=100)
    with pytest.raises(ValueError, match="noext': it is not known; say format="):
        resolve(Part.file(odd))
    with pytest.raises(ValueError, match=r"e\.txt' is empty"):
        resolve(Part.file(empty))
    with pytest.raises(ValueError, match="no regular file"):
        resolve(Part.file(tmp_path))
    with pytest.raises(FileNotFoundError):
        resolve(Part.file(tmp_path / "missing.pdf"))
    link.symlink_to(link)
    with pytest.raises(OSError, match="link"):
        resolve(Part.image(link))


def test_wrong_ending(tmp_path: Path) -> None:
    """The first bytes count more than the name, and a name alone is not believed."""
    wrong, lying = tmp_path / "a.jpg", tmp_path / "b.png"
    wrong.write_bytes(PNG)
    lying.write_bytes(b"<html>")

    assert resolve(Part.image(wrong)).format == "image/png"
    with pytest.raises(ValueError, match="does not begin like one"):
        resolve(Part.image(lying))
    assert resolve(Part.image(lying, "image/png")).format == "image/png"


def test_links_are_followed(tmp_path: Path) -> None:
    """A link to a file is that file, under the name of the link."""
    (tmp_path / "a").write_bytes(PNG)
    link = tmp_path / "b.png"
    link.symlink_to(tmp_path / "a")

    assert resolve(Part.image(link)).data == url("image/png", PNG, "b.png")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files here")
def test_files_without_end(tmp_path: Path) -> None:
    """What may be endless, or wait for a writer, is not opened."""
    fifo = tmp_path / "a.png"
    os.mkfifo(fifo)

    for path in (fifo, Path("/dev/zero")):
        with pytest.raises(ValueError, match="no regular file"):
            resolve(Part.image(path))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no such files here")
def test_files_of_unknown_size() -> None:
    """Where no size is told, no more is read than may be sent."""
    path = Path("/proc/self/maps")

    assert resolve(Part.file(path, "txt")).format == "text/plain"
    with pytest.raises(ValueError, match="has 101 bytes; at most 100"):
        resolve(Part.file(path, "txt"), limit=100)


def test_open_files(tmp_path: Path) -> None:
    """What is open for bytes is read at once, from where it stands, and not closed."""
    path = tmp_path / "a"
    path.write_bytes(b"x" + PNG)

    with path.open("rb") as file, path.open("rb", buffering=0) as raw:
        file.read(1)
        found = Part.image(file), Part.image(io.BytesIO(PNG)), Part.file(raw, "png")
        still_open = not file.closed

    assert still_open
    assert [part.data for part in found] == [PNG, PNG, b"x" + PNG]


class Endless(io.RawIOBase):
    """A file without end."""

    name = "endless"

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return bytes(size)


def test_open_files_that_cannot_be_sent(tmp_path: Path) -> None:
    """Text, a file read already, a closed one and one without end are refused."""
    path = tmp_path / "a.png"
    path.write_bytes(PNG)

    with path.open(encoding="latin-1") as text, path.open("rb") as file:
        with pytest.raises(TypeError, match=r"a\.png' gives str.*mode 'rb'"):
            Part.image(text)
        with pytest.raises(TypeError, match=r"Part\.image\(…\) takes an open file"):
            Part("image", file)  # type: ignore[arg-type]  # the point of the test
        Part.image(file)
        with pytest.raises(ValueError, match=r"nothing left to read; seek\(0\)"):
            Part.image(file)
    with pytest.raises(ValueError, match="closed file"):
        Part.image(file)
    with pytest.raises(ValueError, match="'endless' has more than the 52428800 bytes"):
        Part.file(Endless())


@pytest.mark.parametrize("start", ["", "file://"])
def test_no_word_opens_a_file(tmp_path: Path, start: str) -> None:
    """What a tool gives for a picture opens no file, if it is but text."""
    path = tmp_path / "secret.png"
    path.write_bytes(PNG + b"secret")

    @tool
    def draw(where: str) -> Part:
        """Draw."""
        return Part.image(where)

    model = ScriptedModel(calls(("draw", {"where": f"{start}{path}"})), "Done.")
    prompt = Prompt("draw", "Draw.", tools=[draw])
    with LocalServer(model, format="messages") as server:
        ctx = connect("anthropic:claude-opus-5", api_key="k", base_url=server.url)
        with ctx, pytest.raises(ValueError, match="not the text"):
            prompt({}, ctx)

        assert len(server.requests) == 1


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
