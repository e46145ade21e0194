"""Recorded traffic decodes to what its manifest says, whole, streamed and cut up.

The recordings are not part of the repository; without them there is nothing to do.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any, Iterator

import pytest

from aeye.errors import ContextLengthError, ProviderError, StatusError
from aeye.message import Message
from aeye.provider import WIRES, ApiKey, Provider
from aeye.request import Request
from aeye.response import Chunk, Response, join
from aeye.sse import EventReader, ServerEvent
from aeye.transport import Retry
from aeye.vendor import OPENAI
from aeye.wire import Wire

WIRE = Path(__file__).resolve().parents[2] / "shared" / "wire"
ENTRIES = (
    json.loads((WIRE / "MANIFEST.json").read_text("utf-8")) if WIRE.is_dir() else []
)
# What the manifest calls a format, where we call it otherwise.
NAMES = {"anthropic": "messages"}
STREAMS = [entry for entry in ENTRIES if entry["streaming"]]
WHOLE = [e for e in ENTRIES if not e["streaming"] and e["status"] == 200]
FAULTS = [entry for entry in ENTRIES if entry["status"] != 200]
ALL_CUTS = bool(os.environ.get("AEYE_ONDEMAND"))

pytestmark = pytest.mark.skipif(not WIRE.is_dir(), reason="no recordings here")


class Canned:
    """A transport and its reply: the bytes of a file, in the pieces given."""

    def __init__(self, entry: dict[str, Any], pieces: list[bytes]) -> None:
        self.status = entry["status"]
        self.headers = {k.lower(): v for k, v in (entry.get("headers") or {}).items()}
        self.pieces = pieces
        self.closed = 0

    def open(self, url: str, headers: Any, body: bytes, signal: Any = None) -> Canned:
        return self

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)

    def close(self, drain: float = 0.0) -> None:
        self.closed += 1


def wire_of(entry: dict[str, Any]) -> Wire:
    return WIRES[NAMES.get(entry["api"], entry["api"])]


def provider(entry: dict[str, Any], pieces: list[bytes]) -> Provider:
    wire = wire_of(entry)
    return Provider(
        OPENAI,
        wire,
        ApiKey("k", ()),
        "https://api.openai.com/v1",
        model="my-model",
        transport=Canned(entry, pieces),
        retry=Retry(0),
    )


REQUEST = Request((Message("user", "Hi"),))


def body(entry: dict[str, Any]) -> bytes:
    return (WIRE / entry["file"]).read_bytes()


def read(entry: dict[str, Any], pieces: list[bytes]) -> tuple[Response, str]:
    """Return what was joined, and the error that ended it."""
    chunks: list[Chunk] = []
    try:
        for chunk in provider(entry, pieces).stream(REQUEST):
            chunks.append(chunk)
    except ProviderError as exc:
        return join(chunks), str(exc)
    return join(chunks), ""


def arguments(text: str) -> Any:
    """Arguments as the manifest has them: as they came, if they were cut."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def said(response: Response) -> dict[str, Any]:
    """What the manifest speaks of, in its words."""
    reasoning = response.reasoning
    return {
        "text": response.content,
        "tool_calls": [
            {"name": call.name, "arguments": arguments(call.arguments)}
            for call in response.tool_calls
        ],
        "reasoning": reasoning.text if reasoning is not None else "",
        "refusal": response.refusal,
    }


def expected(entry: dict[str, Any]) -> dict[str, Any]:
    found = entry["expected"]
    return {
        "text": found.get("text") or "",
        "tool_calls": [
            {
                "name": call["name"],
                "arguments": call.get("arguments_raw", call["arguments"]),
            }
            for call in found.get("tool_calls") or []
        ],
        "reasoning": found.get("reasoning") or "",
        "refusal": found.get("refusal"),
    }


def check_rest(entry: dict[str, Any], response: Response) -> None:
    found = entry["expected"]
    if found["finish"] != "unknown":
        assert response.finish_reason == found["finish"]
    calls = zip(response.tool_calls, found.get("tool_calls") or [])
    for number, (call, theirs) in enumerate(calls, 1):
        assert call.id == theirs.get("id", f"call_{number}")
    usage = found.get("usage") or {}
    sent, output = spent(entry["api"], usage)
    assert response.usage.input_tokens == sent
    assert response.usage.output_tokens == output
    assert response.usage.cached_input_tokens == usage.get("cached", 0)
    if "total" in usage:
        assert response.usage.total_tokens == usage["total"]
    for opaque in found.get("opaque") or []:
        assert opaque in json.dumps(response.native)


def spent(api: str, usage: dict[str, int]) -> tuple[int, int]:
    """Tokens in and out: formats differ in what they count where."""
    sent, output = usage.get("input", 0), usage.get("output", 0)
    thought = usage.get("reasoning", 0)
    if api == "anthropic":  # what the cache gave and took is counted apart
        return sent + usage.get("cached", 0) + usage.get("cache_write", 0), output
    if api == "gemini":  # and so are thoughts, and what its own tools read
        output += thought
        return usage.get("total", sent + output) - output, output
    if usage and sent + output + thought == usage["total"]:
        output += thought
    return sent, output


def ids(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["file"] for entry in entries]


def test_recordings_were_found() -> None:
    """A manifest that lists nothing must not pass; every file in it is looked at."""
    files = {str(path.relative_to(WIRE).as_posix()) for path in WIRE.glob("*/*")}

    assert len(STREAMS) > 20
    assert len(WHOLE) > 10
    assert len(FAULTS) > 10
    assert sorted(ids([*STREAMS, *WHOLE, *FAULTS])) == sorted(files)


@pytest.mark.parametrize("entry", WHOLE, ids=ids(WHOLE))
def test_whole_answer(entry: dict[str, Any]) -> None:
    """A blocking answer says what the manifest says."""
    model = provider(entry, [body(entry)])

    response = model.execute(REQUEST)

    assert said(response) == expected(entry)
    check_rest(entry, response)


@pytest.mark.parametrize("entry", STREAMS, ids=ids(STREAMS))
def test_streamed_answer(entry: dict[str, Any]) -> None:
    """A streamed answer says what the manifest says, errors included."""
    response, error = read(entry, [body(entry)])

    assert said(response) == expected(entry)
    fault = entry["expected"].get("error")
    assert (fault["message"] in error) if fault else error == ""
    if not fault:
        check_rest(entry, response)


@pytest.mark.parametrize("entry", FAULTS, ids=ids(FAULTS))
def test_error_answer(entry: dict[str, Any]) -> None:
    """An error becomes an exception of its kind, with the vendor's words."""
    model = provider(entry, [body(entry)])
    found = entry["expected"]

    with pytest.raises(StatusError) as caught:
        list(model.stream(REQUEST))

    assert caught.value.status == entry["status"]
    if isinstance(found["error"], dict):
        assert found["error"]["message"][:200] in caught.value.message
        code = found["error"].get("code")
        assert not isinstance(code, str) or caught.value.code == code
    words = (found.get("error_kind"), dict(found["error"] or {}).get("type"))
    overflow = bool({"context_overflow", "exceed_context_size_error"} & set(words))
    assert isinstance(caught.value, ContextLengthError) == overflow
    kind = wire_of(entry).decode_error(entry["status"], {}, caught.value.body).kind
    assert (kind == "schema_rejected") == ("schema_rejected" in words)


def events(pieces: list[bytes]) -> list[ServerEvent]:
    reader = EventReader()
    found = [event for piece in pieces for event in reader.feed(piece)]
    return found + reader.end()


@pytest.mark.parametrize("entry", STREAMS, ids=ids(STREAMS))
def test_every_cut_gives_equal_events(entry: dict[str, Any]) -> None:
    """Wherever the bytes are cut in two, and byte by byte, the events are the same."""
    data = body(entry)
    data = data if ALL_CUTS else data[:1200] + data[-400:]
    whole = events([data])

    assert events([data[i : i + 1] for i in range(len(data))]) == whole
    for cut in range(len(data)):
        assert events([data[:cut], data[cut:]]) == whole


@pytest.mark.parametrize("entry", STREAMS, ids=ids(STREAMS))
def test_cut_bytes_give_equal_answers(entry: dict[str, Any]) -> None:
    """The whole way from bytes to a response does not depend on the cuts."""
    data = body(entry)
    rng = random.Random(entry["file"])
    cuts = [rng.randrange(len(data)) for _ in range(20)]
    whole = read(entry, [data])

    assert read(entry, [data[i : i + 1] for i in range(len(data))]) == whole
    for cut in range(len(data)) if ALL_CUTS else cuts:
        assert read(entry, [data[:cut], data[cut:]]) == whole
    # CRLF for LF is no cut, but it is the framing too.
    if b"\r" not in data:
        assert read(entry, [data.replace(b"\n", b"\r\n")]) == whole
