"""Reading a trace, and the page that is made of it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from functools import lru_cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.__main__ import main
from aeye.agent import Agent
from aeye.testing import ScriptedModel, calls
from aeye.tools import tool
from aeye.trace_reader import read_trace
from aeye.trace_recorder import TraceRecorder
from aeye.trace_report import render

HOSTILE = "</script><script>alert(1)</script><!-- <b>'\"&"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def recorded() -> list[str]:
    """Return the lines of a run with a nested one, a tool and hostile texts."""
    return list(_recorded())


@lru_cache
def _recorded() -> tuple[str, ...]:
    file = io.StringIO()
    recorder = TraceRecorder(file)
    child = Agent("", ScriptedModel("ok").context(), name="child", observers=[recorder])
    both = calls(("add", {"a": 1, "b": 2}, "a"), ("child", {"prompt": HOSTILE}, "b"))
    tools = [add, child.as_tool()]
    ctx = ScriptedModel(both, HOSTILE).context()
    made = Agent("", ctx, name="parent", tools=tools, observers=[recorder])
    made.prompt(HOSTILE).send()
    return tuple(file.getvalue().splitlines())


def details(page: str) -> list[Any]:
    """Return the JSON that the page holds."""
    found = re.search(r'<script type="application/json".*?>(.*?)</script>', page, re.S)
    assert found is not None
    data: list[Any] = json.loads(found.group(1))
    return data


def words(page: str) -> str:
    """Return the text that is shown before anything is opened."""
    body = page[page.index("<body>") : page.index('<script type="application/json"')]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_runs_are_put_together() -> None:
    """Model calls and tools stand in their runs, nested runs in their calls."""
    trace = read_trace(recorded())

    (parent,) = trace.runs
    assert (parent.agent, parent.status, parent.output) == (
        "parent",
        "completed",
        HOSTILE,
    )
    assert [call.turn for call in parent.calls] == [1, 2]
    assert [(tool.name, tool.result) for tool in parent.tools] == [
        ("add", "3"),
        ("child", "ok"),
    ]
    (child,) = parent.tools[1].runs
    assert [run.agent for run in parent.walk()] == ["parent", "child"]
    assert parent.tools[1].start <= child.start <= child.end <= parent.tools[1].end
    assert parent.calls[1].usage == {"input": 10, "output": 5}
    assert parent.calls[1].before is parent.calls[0]
    assert trace.damage == ""


def test_a_cut_trace_is_read() -> None:
    """Wherever a trace is cut, what came before is read and the cut line noted."""
    lines = recorded()
    text = "\n".join(lines)

    for size in range(60, len(text), 97):
        left = text[:size].split("\n")
        trace = read_trace(left)
        cut = left[-1] not in ("", lines[len(left) - 1])
        assert trace.damaged == ([len(left)] if cut else [])
        if trace.runs:
            assert trace.runs[0].status == "unfinished"
        assert "<main>" in render(trace, "t")


def test_what_has_no_end_is_unfinished() -> None:
    """A run that was cut says so, and lasts until it was last heard of."""
    page = words(render(read_trace(recorded()[:-3]), "t"))

    assert "parent unfinished" in page


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "7",
        '{"a": 1}',
        '{"event": "run_start", "time": 1}',
        '{"event": "model_end", "time": 1, "id": "nowhere", "response": {}}',
        '{"event": "tool_start", "time": NaN, "run": "r"}',
        '{"event": "run_start", "time": 1, "run": [], "agent": 7}',
        '{"event": ["trace"], "time": 1}',
        '{"event": "later_kind", "time": 1}',
        "[" * 100_000,
        "\x00",
        '{"event": "trace", "time": 1e999, "format": 1}',
    ],
)
def test_odd_lines_are_left_out(line: str) -> None:
    """A line that is no event is left out; the others are read."""
    lines = recorded()

    trace = read_trace([lines[0], line, *lines[1:]])

    assert trace.damaged == ([2] if line else [])
    assert trace.runs[0].status == "completed"


KEYS = ("event", "time", "run", "id", "turn", "request", "response", "usage", "name")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.data())
def test_any_change_is_survived(data: st.DataObject) -> None:
    """Whatever a trace's fields hold, it is read or refused, and can be shown."""
    lines = recorded()
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(lines) - 1))
        record = json.loads(lines[place])
        field = data.draw(st.sampled_from(sorted(record)))
        record[field] = data.draw(VALUES)
        lines[place] = json.dumps(record)

    try:
        trace = read_trace(lines)
    except ValueError:
        return
    assert "<main>" in render(trace, "t")


def test_what_is_no_trace() -> None:
    """A file without an event is refused, and so is a later format."""
    for lines in ([], ["x"], ["{}", "[]"], [b"\xff\x00"]):
        with pytest.raises(ValueError, match="it is not a trace"):
            read_trace(lines)
    with pytest.raises(ValueError, match="a trace of format 2, and this version"):
        read_trace(['{"event":"trace","time":0,"format":2}'])


def test_text_cannot_leave_its_place() -> None:
    """No text of a trace is markup, in the rows or in the details."""
    page = render(read_trace(recorded()), f"{HOSTILE}.jsonl")

    assert page.count("<script") == page.count("</script>") == 2
    assert "<b>'" not in page
    assert "<!--" not in page
    data = details(page)
    assert data[0]["prompt"]["content"] == HOSTILE
    assert data[-1]["response"]["content"] == HOSTILE


def test_half_a_character() -> None:
    """A trace may hold half of a character; the page cannot."""
    lines = [line.replace("ok", "\\ud83d") for line in recorded()]

    render(read_trace(lines), "t").encode()


def test_the_page_is_whole_by_itself() -> None:
    """The page names no other file and no address."""
    page = render(read_trace(recorded()), "t")

    assert re.findall(r"https?:|\bsrc=|@import|url\(", page) == []
    assert re.findall(r'href="([^#"]*)"', page) == ["data:,"]


def test_what_a_reader_sees_first() -> None:
    """The sums and the rows can be read without opening anything."""
    page = words(render(read_trace(recorded()), "t.jsonl"))

    for said in (
        "parent t.jsonl",
        "Runs 1 1 nested",
        "Model calls 3 2 tool calls",
        "Tokens in 30",
        "Tokens out 15",
        "Failures 0",
        "parent completed",
        "Turn 1",
        'add {"a": 1, "b": 2}',
        "child completed",
        "Turn 2",
        "10 in · 5 out",
    ):
        assert said in page


def line(event: str, time: float, **fields: Any) -> str:
    return json.dumps({"event": event, "time": time, "run": "r", **fields})


def test_failures_and_notes_are_seen_first() -> None:
    """What failed is listed once, and notes stand beside what they are about."""
    error = {"type": "ServerError", "message": "busy"}
    note = {"level": "WARNING", "name": "completion.retry", "id": "m"}
    asked = {"level": "INFO", "name": "tool.approval", "id": "m"}
    lines = [
        line("trace", 0, format=1),
        line("run_start", 1, agent="a"),
        line("model_start", 2, id="m", turn=1, request={}),
        line("note", 2.5, **note, attributes={"error_name": "TransportError"}),
        line("note", 2.6, level="INFO", name="mine", attributes={}),
        line("tool_start", 3, id="t", turn=1, tool="", call="c", args=""),
        line(
            "note", 3, **asked, attributes={"internal_call_id": "t", "approved": True}
        ),
        line("tool_end", 4, id="t", result="no", skipped=True, began=3.1, ended=3.2),
        line("tool_start", 4, id="u", turn=1, tool="pay", call="d", args=""),
        line(
            "note", 4, **asked, attributes={"internal_call_id": "u", "approved": False}
        ),
        line("model_error", 5, id="m", error=error),
        line("run_error", 6, status="failed", error=error, usage={"cost": 1.25}),
    ]

    page = words(render(read_trace(lines), "t"))

    assert "1 failure model – ServerError: busy" in page
    assert "Retries 1" in page
    assert "model asked again after TransportError ServerError" in page
    assert "unknown tool approved not run" in page
    assert "pay refused unfinished" in page
    assert "the run mine ServerError" in page


def test_many_failures_are_cut() -> None:
    """The list of failures stays short."""
    lines = [line("trace", 0, format=1), line("run_start", 0, agent="a")]
    for n in range(60):
        about = {"id": str(n), "turn": 1}
        lines.append(line("tool_start", n, tool="t", call="c", args="", **about))
        lines.append(line("tool_error", n, id=str(n), error={"type": "E"}))

    page = words(render(read_trace(lines), "t"))

    assert "60 failures" in page
    assert "and 10 more" in page


def test_resumed_calls_and_costs() -> None:
    """Calls of a resumed run come first; costs are summed."""
    usage = {"input": 2_000_000, "output": 1, "cached": 3, "reasoning": 4, "cost": 0.5}
    lines = [
        line("trace", 0, format=1),
        line("run_start", 0, agent="a"),
        line("tool_start", 1, id="t", turn=0, tool="t", call="c", args=""),
        line("tool_end", 2, id="t", result="x"),
        line("model_start", 2, id="m", turn=1, request={"model": "m"}),
        line("model_end", 3, id="m", first=2, response={}, usage=usage),
        line("run_start", 3, run="s", parent="r", agent="inner"),
    ]

    page = words(render(read_trace(lines), "t"))

    assert page.index("Resumed") < page.index("Turn 1")
    for said in ("Cost $0.5000", "2.0 M 3 cached", "1 4 reasoning", "inner unfinished"):
        assert said in page


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a trace, as the current one."""
    (tmp_path / "trace.jsonl").write_text("\n".join(recorded()), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_command(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``aeye trace FILE`` writes the page beside the trace, or where it is told."""
    assert main(["trace", "trace.jsonl"]) == 0
    assert main(["trace", "trace.jsonl", "-o", "other.html"]) == 0

    page = (here / "trace.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert (here / "other.html").read_text("utf-8") == page
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["aeye: wrote trace.html", "aeye: wrote other.html"]


def test_command_prints(here: Path) -> None:
    """``-o -`` prints the page, whatever the terminal's encoding is."""
    done = subprocess.run(
        [sys.executable, "-m", "aeye", "trace", "trace.jsonl", "-o", "-"],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii"},
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("utf-8").startswith("<!doctype html>")


def test_command_tells_of_damage(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cut line is reported and left out."""
    text = (here / "trace.jsonl").read_text("utf-8")
    (here / "trace.jsonl").write_text(text[:-20], encoding="utf-8")

    assert main(["trace", "trace.jsonl"]) == 0

    number = text.count("\n") + 1
    told = f"left out 1 damaged line: {number}"
    assert capsys.readouterr().err.splitlines()[0] == f"aeye: {told}"
    assert told.capitalize() in words((here / "trace.html").read_text("utf-8"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl: No such file or directory"),
        (["."], ".: Is a directory"),
        (["other.txt"], "other.txt: it is not a trace: no line of it is an event"),
        (
            ["trace.jsonl", "-o", "trace.jsonl"],
            "trace.jsonl is the trace: name another",
        ),
        (["trace.jsonl", "-o", "no/where.html"], "-o no/where.html: No such file"),
    ],
)
def test_command_refuses(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """What is no trace, and what cannot be written, is one line and code 2."""
    (here / "other.txt").write_text("Dear reader,\n\nno trace.\n", encoding="utf-8")

    assert main(["trace", *arguments]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"aeye: {said}")
    assert err.count("\n") == 1
