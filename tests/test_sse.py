"""Bytes to server-sent events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.errors import ProtocolError
from aeye.sse import EventReader, ServerEvent


def events(*pieces: bytes, limit: int = 10_000) -> list[ServerEvent]:
    reader = EventReader(limit)
    found = [event for piece in pieces for event in reader.feed(piece)]
    return found + reader.end()


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r", ["a", "b"]),
        (b"data: a\r\n\ndata: b\n\r\n", ["a", "b"]),
        (b"data:a\n\n", ["a"]),
        (b"data:  a \n\n", [" a "]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data\ndata\n\n", ["\n"]),
        (b"data\n\n", [""]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", ["a"]),
        (b": comment\n\ndata: a\nid: 7\nretry: 9\n\n: bye\n\n", ["a"]),
        (b" data: no field of ours\ndata: a\n\n", ["a"]),
        (b"data: a\n\ndata: b", ["a", "b"]),
        (b"data: a\n\ndata: b\n", ["a", "b"]),
        (b"\n\n\n", []),
        (b"", []),
        ("data: né\x85\u2028 日本\n\n".encode(), ["né\x85\u2028 日本"]),
        (b"data: \xff\n\n", ["\ufffd"]),
    ],
)
def test_data(body: bytes, found: list[str]) -> None:
    """Lines end with LF, CR or CRLF and nothing else, as the standard says."""
    assert [event.data for event in events(body)] == found
    assert [e.data for e in events(*(body[i : i + 1] for i in range(len(body))))] == (
        found
    )


def test_names() -> None:
    """An event has the name given before its blank line; the next starts without."""
    body = b"event: error\ndata: a\n\ndata: b\n\nevent: lost\n\ndata: c\n\n"

    assert events(body) == [
        ServerEvent("a", "error"),
        ServerEvent("b"),
        ServerEvent("c"),
    ]


LINES = st.sampled_from(
    [
        b"data: x",
        b"data:",
        "data: é日".encode(),
        b"event: e",
        b": c",
        b"id: 1",
        b"",
        b"",
        b"\xef\xbb\xbf",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
BODIES = st.lists(st.tuples(LINES, ENDS), max_size=12).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


@given(BODIES, st.data())
def test_cuts_change_nothing(body: bytes, data: st.DataObject) -> None:
    """Every cut in two, every byte alone and any other cut give equal events."""
    whole = events(body)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    edges = [0, *cuts, len(body)]

    for i in range(len(body) + 1):
        assert events(body[:i], body[i:]) == whole
    assert events(*(body[i : i + 1] for i in range(len(body)))) == whole
    assert events(*(body[a:b] for a, b in zip(edges, edges[1:]))) == whole


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("line", [b"data: ", b": ", b"data: x\ndata: "])
def test_event_too_large(line: bytes, size: int) -> None:
    """An event beyond the limit is refused, however it comes."""
    body = line + b"x" * 300 + b"\n\n"

    with pytest.raises(ProtocolError, match="larger than 100 bytes"):
        events(*(body[i : i + size] for i in range(0, len(body), size)), limit=100)


def test_limit_is_for_one_event() -> None:
    """Many events may be larger than the limit together."""
    body = b": ping\n\ndata: 123456789\n\n" * 50

    pieces = [body[i : i + 11] for i in range(0, len(body), 11)]

    assert len(events(*pieces, limit=40)) == 50
