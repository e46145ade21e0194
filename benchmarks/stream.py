"""Measure a streamed answer of 2,000 chunks with aeye and with the official client.

    python benchmarks/stream.py [--rounds N]

Both run with this interpreter, which needs the package ``openai``, and read the same
bytes from a server in a process of its own. Prints CPU time of the client, and the
share of the official client's that aeye took; the goal is half of it.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

CHUNKS = 2000
FORMATS = ("chat", "responses")
WHO = {
    "openai": "the official client",
    "prompt": "aeye, a prompt's stream_content",
    "model": "aeye, the model alone",
}


def of_openai(format: str, url: str) -> Callable[[], int]:
    import openai

    client = openai.OpenAI(api_key="none", base_url=url)
    said: Any = [{"role": "user", "content": "Go."}]

    def chat() -> int:
        stream = client.chat.completions.create(
            model="chunks", messages=said, stream=True
        )
        return sum(1 for c in stream if c.choices and c.choices[0].delta.content)

    def responses() -> int:
        stream = client.responses.create(model="chunks", input=said, stream=True)
        return sum(1 for e in stream if e.type == "response.output_text.delta")

    return chat if format == "chat" else responses


def of_prompt(format: str, url: str) -> Callable[[], int]:
    import aeye

    ctx = aeye.connect("openai:chunks", base_url=url, api_key="none", format=format)
    prompt = aeye.Prompt("chunks", "", user_turn="Go.")
    return lambda: sum(1 for piece in prompt.get("stream_content", {}, ctx) if piece)


def of_model(format: str, url: str) -> Callable[[], int]:
    import aeye

    ctx = aeye.connect("openai:chunks", base_url=url, api_key="none", format=format)
    request = aeye.Request((aeye.Message("user", "Go."),))
    return lambda: sum(1 for chunk in ctx.stream(request, ctx) if chunk.content)


MADE = {"openai": of_openai, "prompt": of_prompt, "model": of_model}


def measure(who: str, format: str, url: str) -> float:
    """Return the median of milliseconds of CPU that one answer takes."""
    ask = MADE[who](format, url)
    spent = []
    for turn in range(23):
        gc.collect()
        started = time.process_time()
        found = ask()
        if found != CHUNKS:
            raise SystemExit(f"{who}, {format}: {found} chunks instead of {CHUNKS}")
        if turn >= 3:  # the first ones only warm up
            spent.append(1000 * (time.process_time() - started))
    return statistics.median(spent)


@contextmanager
def served(format: str) -> Iterator[str]:
    command = [sys.executable, os.path.join(HERE, "server.py"), format]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def figure(who: str, format: str, url: str) -> float:
    """Measure in a fresh process."""
    command = [sys.executable, os.path.abspath(__file__), "--of", who, format, url]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{who} could not be measured")
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--of", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.of:
        print(measure(*options.of))
        return
    for wire in FORMATS:
        found: dict[str, list[float]] = {who: [] for who in WHO}
        with served(wire) as url:
            for _ in range(options.rounds):
                # In turn: a slow minute of the machine then slows all of them.
                for who in WHO:
                    found[who].append(figure(who, wire, url))
        print(f"\n{wire}, {CHUNKS} chunks{'CPU ms':>25}{'share':>9}   goal")
        for who, what in WHO.items():
            best = min(found[who])  # noise only ever adds
            share = best / min(found["openai"])
            goal = "" if who == "openai" else "0.50"
            print(f"{what:36}{best:9.1f}{share:9.2f}   {goal}".rstrip())


if __name__ == "__main__":
    main()
