"""Print what ``import aeye`` costs, as a share of ``import requests``.

    python benchmarks/imports.py

The goal is a tenth. Each is the median of fresh interpreters, less a bare one.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
ROUNDS = 15


def seconds(code: str) -> float:
    environment = {**os.environ, "PYTHONPATH": ROOT}
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return time.perf_counter() - started


def main() -> None:
    codes = {
        "pass": "a bare interpreter",
        "import aeye": "the root, as a script meets it",
        "import requests": "for comparison",
        "import aeye; aeye.Prompt; aeye.tool": "what a prompt needs",
        "import aeye; aeye.connect('rehearsal')": "what a first run needs",
    }
    taken: dict[str, list[float]] = {code: [] for code in codes}
    for _ in range(ROUNDS + 1):  # interleaved; the first fills the caches
        for code in codes:
            taken[code].append(seconds(code))
    median = {code: statistics.median(times[1:]) for code, times in taken.items()}
    bare, peer = median["pass"], median["import requests"] - median["pass"]
    for code, what in codes.items():
        cost = median[code] - bare if code != "pass" else bare
        print(f"{code:40} {1000 * cost:7.1f} ms {cost / peer:6.2f} × requests   {what}")


if __name__ == "__main__":
    main()
