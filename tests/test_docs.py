"""Every Python block in README.md and docs/ runs, offline and without a key."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from pathlib import Path
from typing import Any

import pytest

import aeye

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


@pytest.mark.parametrize("name", ["agents", "hooks", "sessions"])
def test_page_says_what_it_prints(
    name: str,
    program: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Behind a print, or below a loop, a page's comments are what comes out."""
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / f"{name}.md"
    printed = re.compile(r"(?:print\(.*\)|^ +)  *# (.*)$", re.MULTILINE)
    for code in BLOCK.findall(page.read_text(encoding="utf-8")):
        program(code, str(page))

        out = capsys.readouterr().out
        assert out.splitlines() == printed.findall(code)


@pytest.mark.parametrize(
    ("typed", "result"),
    [("y", "Transferred to"), ("n", "Tool approval was rejected."), ("", "rejected")],
)
def test_the_program_at_the_terminal(
    program: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    typed: str,
    result: str,
) -> None:
    """What ``docs/sessions.md`` calls a whole program asks and does what it is told."""
    asked = at_the_terminal(monkeypatch, tmp_path, typed)

    said = program(the_program(), "pay.py")["main"](["Pay Bob."])

    assert result in said
    assert [question.partition(" {")[0] for question in asked] == ["transfer"]


@pytest.mark.parametrize(
    ("typed", "result"), [("no", "The owner said no."), ("Yes", "Transferred to")]
)
def test_the_program_in_two_processes(
    program: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    typed: str,
    result: str,
) -> None:
    """It can end where a decision is needed; run anew, it finds all it needs."""
    asked = at_the_terminal(monkeypatch, tmp_path, typed)

    waits = program(the_program(), "pay.py")["main"](["--later", "Pay Bob."])
    assert (waits[:17], asked) == ("Waiting: transfer", [])
    again = program(the_program(), "pay.py")["main"]

    assert result in again(["--decide"])
    assert len(asked) == 1
    with pytest.raises(ValueError, match="nothing waits any more"):
        again(["--decide"])


def the_program() -> str:
    page = (ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")
    return next(b for b in BLOCK.findall(page) if "__main__" in b)


def at_the_terminal(
    monkeypatch: pytest.MonkeyPatch, folder: Path, typed: str
) -> list[str]:
    """Let *typed* be what is typed in that folder; return what is asked."""
    asked: list[str] = []

    def input(question: str) -> str:
        asked.append(question)
        return typed

    monkeypatch.setenv("AEYE_MODEL", "rehearsal")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("builtins.input", input)
    return asked


def test_readme_is_short() -> None:
    """The README has at most 120 lines, and its first example stands by line 12."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()

    assert len(lines) <= 120
    assert lines.index("```python") < 12


def test_names_the_right_package() -> None:
    """No page tells to install the unrelated package that is called aeye."""
    wrong = re.compile(r"pip install (-\S+ )*aeye(?!-sync)\b")

    assert [p.name for p in PAGES if wrong.search(p.read_text(encoding="utf-8"))] == []


def test_every_option_of_a_prompt_is_explained() -> None:
    """No option of `Prompt` is left for its reader to guess."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    options = inspect.signature(aeye.Prompt.__init__).parameters

    missing = [n for n in options if not re.search(rf"\b{n}\b", text)]
    assert [name for name in missing if name != "self"] == []
