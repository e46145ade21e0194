"""Measure aeye against the hand-written floor, and other libraries beside it.

    python benchmarks/run.py [--quick] [--scenarios abcde] [--rounds N]
                             [--peer NAME=PYTHON ...]

Prints ratios to the floor: figures of one machine say little about another.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import Any, Iterator

HERE = os.path.dirname(os.path.abspath(__file__))
WHAT = {
    "a": ("one prompt", 1.3),
    "b": ("10 tool turns", 1.5),
    "c": ("8 tools of 50 ms", None),
    "d": ("2,000 chunks", 1.6),
    "e": ("an answer and its repair", 1.4),
}

Figures = dict[str, dict[str, float]]


@contextmanager
def served() -> Iterator[str]:
    """Run the server in a process of its own; give its URL."""
    command = [sys.executable, os.path.join(HERE, "server.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise SystemExit("the server did not start")
        yield url
        process.stdin.close()


def figures(python: str, module: str, url: str, options: Any) -> Figures | None:
    """Measure one module in a fresh process, or say why that did not work."""
    command = [python, os.path.join(HERE, "measure.py"), module, url]
    command += ["--scenarios", options.scenarios]
    command += ["--quick"] if options.quick else []
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as exc:
        print(f"{module}: not measured ({exc})", file=sys.stderr)
        return None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        print(f"{module}: not measured ({last})", file=sys.stderr)
        return None
    found: Figures = json.loads(done.stdout)
    return found


def best(rounds: list[Figures]) -> Figures:
    """Return the lowest figure of several rounds: noise only ever adds."""
    return {
        name: {
            kind: min(figures[name][kind] for figures in rounds)
            for kind in ("wall_ms", "cpu_ms")
        }
        for name in rounds[0]
    }


def show(name: str, found: Figures, floor: Figures) -> None:
    print(f"\n{name:28}{'CPU ms':>9}{'× floor':>9}{'wall ms':>11}{'× floor':>9}   goal")
    for key, figure in found.items():
        what, goal = WHAT[key]
        cpu, wall = figure["cpu_ms"], figure["wall_ms"]
        said = "" if goal is None else f"CPU {goal} ×"
        if key == "c":
            said = f"wall 54 ms, this is {wall - 50:.1f} over 50"
        print(
            f"{key}: {what:25}{cpu:9.2f}{cpu / floor[key]['cpu_ms']:9.2f}"
            f"{wall:11.2f}{wall / floor[key]['wall_ms']:9.2f}   "
            f"{said if name == 'aeye' else ''}".rstrip()
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three runs of each")
    parser.add_argument("--scenarios", default="abcde")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    options = parser.parse_args()
    modules = {"floor": (sys.executable, "floor"), "aeye": (sys.executable, "ours")}
    for peer in options.peer:
        name, _, python = peer.partition("=")
        modules[name] = (python or sys.executable, f"peer_{name}")
    found: dict[str, list[Figures]] = {}
    with served() as url:
        for _ in range(1 if options.quick else options.rounds):
            # Interleaved: a slow minute of the machine then slows all of them.
            for name, (python, module) in list(modules.items()):
                figure = figures(python, module, url, options)
                if figure is None:
                    del modules[name]
                else:
                    found.setdefault(name, []).append(figure)
    if "floor" not in found:
        raise SystemExit("without the floor there is nothing to compare with")
    for name, rounds in found.items():
        show(name, best(rounds), best(found["floor"]))


if __name__ == "__main__":
    main()
