"""Every Python block in README.md and docs/ runs, offline and without a key."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_there_are_pages() -> None:
    """A glob that finds nothing must not pass."""
    assert len(PAGES) > 3


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_page_runs(
    page: Path, program: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A page's blocks run in order in one namespace; rehearsal is the model."""
    monkeypatch.setenv("AEYE_MODEL", "rehearsal")
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 1
        code = "\n" * line + block.group(1)
        with contextlib.redirect_stdout(io.StringIO()):
            program(code, str(page))


def test_readme_is_short() -> None:
    """The README has at most 120 lines, and its first example stands by line 12."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()

    assert len(lines) <= 120
    assert lines.index("```python") < 12


def test_names_the_right_package() -> None:
    """No page tells to install the unrelated package that is called aeye."""
    wrong = re.compile(r"pip install (-\S+ )*aeye(?!-sync)\b")

    assert [p.name for p in PAGES if wrong.search(p.read_text(encoding="utf-8"))] == []
