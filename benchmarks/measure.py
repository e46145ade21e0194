"""How long things take: one of them, or one module's scenarios.

PYTHON benchmarks/measure.py MODULE URL [--quick] [--scenarios abcde]

prints the figures of those as JSON; run.py starts it.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import statistics
import sys
import time
from typing import Any, Callable

# Rounds to warm up, and rounds that count.
ROUNDS = {"a": (20, 200), "b": (5, 40), "c": (3, 20), "d": (3, 20), "e": (10, 100)}
EXPECTED: dict[str, Any] = {
    "a": "Hello, world.",
    "b": "done after 10",
    "c": "done [" + ", ".join(f"slept {i}" for i in range(8)) + "]",
    "d": 2000,
    "e": ("Ada", 36),
}


def best(run: Callable[[], Any]) -> float:
    """Return the seconds that *run* takes, in the best of several rounds."""
    run()
    started = time.perf_counter()
    run()
    once = max(time.perf_counter() - started, 1e-7)
    number = max(1, int(0.05 / once))
    least = float("inf")
    gc.collect()
    for _ in range(7):
        started = time.perf_counter()
        for _ in range(number):
            run()
        least = min(least, (time.perf_counter() - started) / number)
    return least


def measure(scenario: Callable[[], Any], rounds: tuple[int, int]) -> dict[str, float]:
    for _ in range(rounds[0]):
        scenario()
    gc.collect()
    wall, cpu = [], []
    for _ in range(rounds[1]):
        started = time.process_time(), time.perf_counter()
        scenario()
        cpu.append(time.process_time() - started[0])
        wall.append(time.perf_counter() - started[1])
    return {
        "wall_ms": 1000 * statistics.median(wall),
        "cpu_ms": 1000 * statistics.median(cpu),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("url")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--scenarios", default="abcde")
    options = parser.parse_args()
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    scenarios = importlib.import_module(options.module).setup(options.url)
    found: dict[str, Any] = {}
    for name in options.scenarios:
        if name not in scenarios:
            continue
        answer = scenarios[name]()
        if answer != EXPECTED[name]:
            raise SystemExit(f"{options.module} {name}: wrong answer {answer!r:.200}")
        rounds = (1, 3) if options.quick else ROUNDS[name]
        found[name] = measure(scenarios[name], rounds)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
