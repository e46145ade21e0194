"""What is written of runs: through the fluent door, and through the other."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import threading
from pathlib import Path
from typing import Any, Iterator

import pytest

import aeye
from aeye.agent import Agent
from aeye.callback import attempt
from aeye.errors import PromptSuspend, ServerError
from aeye.message import Message, Part
from aeye.prompt import Prompt
from aeye.request import Request
from aeye.response import Response
from aeye.testing import LocalServer, ScriptedModel, calls, pieces
from aeye.tools import Tool, tool
from aeye.trace_recorder import TraceRecorder
from aeye.trace_value import Spelling
from aeye.usage import Usage

ROUND = calls(("add", {"a": 1, "b": 2}, "c1"))


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def read(file: io.StringIO) -> list[Any]:
    """Return the records in *file*, without those of their times that vary."""
    found = [json.loads(line) for line in file.getvalue().splitlines()]
    times = [record["time"] for record in found]
    assert times == sorted(times)
    return found


def bare(records: list[Any]) -> list[Any]:
    """Return what *records* say, with ids and times as short names."""
    names: dict[str, str] = {}
    kinds = {"run_start": "run", "model_start": "model", "tool_start": "tool"}
    for record in records:
        kind = kinds.get(record["event"])
        known = record["run"] if kind == "run" else record.get("id")
        if kind is not None:
            names[known] = f"{kind}{sum(n[:-1] == kind for n in names.values()) + 1}"
    drop = ("time", "began", "ended", "thread", "first")
    return [
        {
            name: names.get(value, value) if isinstance(value, str) else value
            for name, value in record.items()
            if name not in drop
        }
        for record in records
    ]


def agent(file: Any, *replies: Any, **options: Any) -> Agent[Any]:
    recorder = TraceRecorder(file)
    options = {"tools": [add], **options}
    return Agent("", ScriptedModel(*replies).context(), observers=[recorder], **options)


SPENT = {"input": 10, "output": 5}
TOOLS = [
    {
        "name": "add",
        "description": "Add two numbers.",
        "descriptor": None,
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    }
]
CALL = {"id": "c1", "name": "add", "arguments": '{"a": 1, "b": 2}'}


def test_a_round() -> None:
    """Runs, model calls and tools are written as they begin and end."""
    file = io.StringIO()

    agent(file, ROUND, "3").prompt("1 + 2?").send()

    said = {"role": "user", "content": "1 + 2?"}
    records = bare(read(file))
    parameters = records[2]["request"]["tools"][0].pop("parameters")
    assert parameters["properties"] == TOOLS[0]["parameters"]["properties"]  # type: ignore[index]
    assert records == [
        {"event": "trace", "format": 1},
        {"event": "run_start", "run": "run1", "agent": "agent", "prompt": said},
        {
            "event": "model_start",
            "run": "run1",
            "id": "model1",
            "turn": 1,
            "request": {
                "kept": 0,
                "messages": [said],
                "tools": [{k: v for k, v in TOOLS[0].items() if k != "parameters"}],
                "response_format": "text",
                "name": "agent",
            },
        },
        {
            "event": "model_end",
            "run": "run1",
            "id": "model1",
            "response": {
                "content": "",
                "tool_calls": [CALL],
                "finish_reason": "tool_calls",
            },
            "usage": SPENT,
        },
        {
            "event": "tool_start",
            "run": "run1",
            "id": "tool1",
            "turn": 1,
            "tool": "add",
            "call": "c1",
            "args": '{"a": 1, "b": 2}',
        },
        {"event": "tool_end", "run": "run1", "id": "tool1", "result": "3"},
        {
            "event": "model_start",
            "run": "run1",
            "id": "model2",
            "turn": 2,
            "request": {
                "kept": 1,
                "messages": [
                    {"role": "assistant", "content": "", "tool_calls": [CALL]},
                    {
                        "role": "tool",
                        "content": "3",
                        "name": "add",
                        "tool_call_id": "c1",
                    },
                ],
                "name": "agent",
            },
        },
        {
            "event": "model_end",
            "run": "run1",
            "id": "model2",
            "response": {"content": "3", "finish_reason": "stop"},
            "usage": SPENT,
        },
        {
            "event": "run_end",
            "run": "run1",
            "status": "completed",
            "output": "3",
            "usage": {"input": 20, "output": 10},
        },
    ]


def test_both_doors_write_the_same() -> None:
    """A prompt's events give the lines that its run through an agent gives."""
    files = [io.StringIO(), io.StringIO()]
    prompt = Prompt("sums", "Add up.", tools=[add], schema={"type": "integer"})
    replies = (ROUND, '"?"', '"3"', "3")
    ctx = ScriptedModel(*replies).context(messages=[Message("user", "hi")])

    stream = prompt.run({}, ctx)
    seen = list(TraceRecorder(files[0]).watch(stream))
    recorder = TraceRecorder(files[1])
    made = Agent(prompt, ScriptedModel(*replies).context(), observers=[recorder])
    made.prompt("hi").send()

    ours, theirs = (bare(read(file)) for file in files)
    # What one door does not know, and the type of the output.
    said = theirs[1].pop("prompt")
    for record in theirs:
        record.get("response", {}).pop("finish_reason", None)
    theirs[-1]["output"] = int(theirs[-1]["output"])
    args = [record for record in ours if record["event"] == "tool_start"]
    assert [record["args"] for record in args] == ['{"a": 1, "b": 2}']
    assert ours == theirs
    assert said == {"role": "user", "content": "hi"}
    assert (seen[-1].type, stream.output) == ("complete", 3)


def test_watching_hands_everything_on() -> None:
    """What is watched is what would be seen otherwise, output and error included."""
    prompt = Prompt("sums", "Add up.", tools=[add])
    recorder = TraceRecorder(io.StringIO())

    def types(stream: Any) -> list[str]:
        return [event.type for event in stream]

    plain = types(prompt.run({}, ScriptedModel(ROUND, "3").context()))
    watched = recorder.watch(prompt.run({}, ScriptedModel(ROUND, "3").context()))
    boom = KeyError("x")
    failing = recorder.watch(prompt.run({}, ScriptedModel(boom).context()))

    found = []
    while True:
        event, error = attempt(next, watched)
        if error is not None:
            break
        found.append(event.type)
    assert found == plain
    assert isinstance(error, StopIteration)
    assert error.value == "3"
    assert attempt(types, failing)[1] is boom
    with pytest.raises(TypeError, match=r"watch takes what prompt\.run"):
        recorder.watch([1])  # type: ignore[arg-type]


@pytest.mark.parametrize("door", ["agent", "prompt"])
def test_failures(door: str) -> None:
    """Failed model calls, tools and runs are written with the error and its kind."""
    file = io.StringIO()
    broken = Tool("broken", lambda args: 1 / 0, schema={})
    recorder = TraceRecorder(file)
    replies = (
        calls(("broken", {}), ("broken", "no JSON")),
        calls(("nothing", {})),
        ServerError("busy", status=503),
    )
    ctx = ScriptedModel(*replies).context()

    if door == "agent":
        made = Agent("", ctx, tools=[broken], observers=[recorder])
        attempt(made.prompt("hi").send)
    else:
        stream = Prompt("p", "x", tools=[broken]).run({}, ctx)
        attempt(list, recorder.watch(stream))

    records = read(file)
    errors = [record for record in records if "error" in record]
    errors[:2] = sorted(errors[:2], key=lambda r: r["error"]["type"])
    assert [(r["event"], r["error"]["type"]) for r in errors] == [
        ("tool_error", "ToolArgumentError"),
        ("tool_error", "ZeroDivisionError"),
        ("tool_error", "ToolNotFoundError"),
        ("model_error", "ServerError"),
        ("run_error", "ServerError"),
    ]
    assert "traceback" not in errors[-1]["error"]
    assert "1 / 0" in errors[1]["error"]["traceback"]
    assert errors[-1]["error"]["status"] == 503
    assert errors[-1]["status"] == "failed"
    started = [r["id"] for r in records if r["event"] == "tool_start"]
    assert sorted(started) == sorted(r["id"] for r in errors[:3])


def test_retries_resets_and_consent() -> None:
    """What is worth a note is written, with the model call that it is about."""
    file = io.StringIO()
    asking = Tool("asking", lambda args: "done", schema={}, approval=True)
    prompt = Prompt("p", "x", tools=[asking], schema={"type": "integer"})
    down = ServerError("the secret words", status=503)
    ctx = ScriptedModel(down, calls(("asking", {})), "{", "7").context()
    made = Agent(prompt, ctx, observers=[TraceRecorder(file)])

    made.prompt("hi").with_completion_retries(initial_delay_ms=0).approvals(
        lambda request: True
    ).send()

    notes = [record for record in bare(read(file)) if record["event"] == "note"]
    assert [(note["id"], note["name"]) for note in notes] == [
        ("model1", "completion.retry"),
        ("model1", "tool.approval"),
        ("model2", "completion.reset"),
    ]
    assert notes[2]["attributes"] == {"turn": 2, "reason": "json-parsing"}
    assert "secret words" not in file.getvalue()


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("streamed", [True, False])
def test_nested_runs(concurrency: int, streamed: bool) -> None:
    """A run that a tool begins belongs to that call, in whatever thread it runs."""
    file = io.StringIO()
    recorder = TraceRecorder(file)
    child = Agent("", ScriptedModel("ok").context(), name="child", observers=[recorder])
    both = calls(("child", {"prompt": "a"}, "a"), ("child", {"prompt": "b"}, "b"))
    parent = Agent(
        "",
        ScriptedModel(both, "done").context(),
        tools=[child.as_tool(stream=streamed)],
        observers=[recorder],
    )

    parent.prompt("hi").with_tool_concurrency(concurrency).send()
    Agent("", ScriptedModel("ok").context(), observers=[recorder]).prompt("x").send()

    records = read(file)
    runs = [record for record in records if record["event"] == "run_start"]
    tools = {
        r["id"]: json.loads(r["args"]) for r in records if r["event"] == "tool_start"
    }
    placed = [(tools.get(r.get("parent")), r["prompt"]["content"]) for r in runs]
    assert placed[0] == (None, "hi")
    assert sorted(placed[1:3], key=str) == [
        ({"prompt": "a"}, "a"),
        ({"prompt": "b"}, "b"),
    ]
    assert placed[3] == (None, "x")
    ended = [r for r in records if r["event"] == "tool_end"]
    for record in ended:
        assert record["began"] <= record["ended"] <= record["time"]
        assert (record["thread"] == "aeye-tool") == (concurrency > 1)
    assert not any(record["event"] == "tool_progress" for record in records)


def test_runs_within_a_watched_one() -> None:
    """A run that begins while a watched one goes on belongs to that."""
    file = io.StringIO()
    recorder = TraceRecorder(file)
    child = Agent("", ScriptedModel("ok").context(), name="child", observers=[recorder])
    both = calls(("child", {"prompt": "a"}, "a"), ("child", {"prompt": "b"}, "b"))
    prompt = Prompt("outer", "x", tools=[child.as_tool()])

    list(recorder.watch(prompt.run({}, ScriptedModel(both, "done").context())))

    runs = [record for record in read(file) if record["event"] == "run_start"]
    assert [run["agent"] for run in runs] == ["outer", "child", "child"]
    assert [run.get("parent") for run in runs] == [None] + [runs[0]["run"]] * 2


def test_what_tools_tell() -> None:
    """What a generator tool yields is written with its call, through both doors."""
    file = io.StringIO()

    def steps(args: Any) -> Iterator[Any]:
        yield {"done": 0.5}
        return

    slow = Tool("slow", steps, schema={})
    recorder = TraceRecorder(file)
    models = [ScriptedModel(calls(("slow", {})), "x") for _ in range(2)]
    made = Agent("", models[0].context(), tools=[slow], observers=[recorder])
    made.prompt("hi").send()
    list(recorder.watch(Prompt("p", "x", tools=[slow]).run({}, models[1].context())))

    told = [record for record in read(file) if record["event"] == "tool_progress"]
    assert [record["value"] for record in told] == [{"done": 0.5}] * 2


@pytest.mark.parametrize("door", ["agent", "prompt"])
def test_a_run_that_is_left(door: str) -> None:
    """A stream that is left early is written as cancelled, and so is what was open."""
    file = io.StringIO()
    recorder = TraceRecorder(file)
    ctx = ScriptedModel(pieces("a", "b")).context()

    if door == "agent":
        with Agent("", ctx, observers=[recorder]).prompt("hi").stream() as stream:
            next(event for event in stream if event.type == "text_delta")
    else:
        watched = recorder.watch(Prompt("p", "x").run({}, ctx))
        next(event for event in watched if event.type == "text_partial")
        watched.close()

    records = read(file)
    assert [record["event"] for record in records[-2:]] == ["model_error", "run_error"]
    assert records[-1]["status"] == "cancelled"


@pytest.mark.parametrize("door", ["agent", "prompt"])
def test_a_run_that_waits(door: str) -> None:
    """A run that waits for somebody is written as suspended."""
    file = io.StringIO()
    recorder = TraceRecorder(file)
    asking = Tool("asking", lambda args: "done", schema={}, approval=True)
    ctx = ScriptedModel(calls(("asking", {}, "c1"))).context()

    if door == "agent":
        made = Agent("", ctx, tools=[asking], observers=[recorder])
        attempt(made.prompt("hi").send)
    else:
        list(recorder.watch(Prompt("p", "x", tools=[asking]).run({}, ctx)))

    assert read(file)[-1]["status"] == "suspended"


def test_a_run_that_is_stopped() -> None:
    """A watched run without a result says so."""
    file = io.StringIO()
    abort = aeye.Abort()
    abort.set()

    stream = Prompt("p", "x").run({}, ScriptedModel("a").context(signal=abort))
    list(TraceRecorder(file).watch(stream))

    assert read(file)[-1]["status"] == "stopped"


def test_answers_that_are_no_message() -> None:
    """A refusal, and an answer cut by the window, end their model calls too."""
    file = io.StringIO()
    recorder = TraceRecorder(file)
    refused = Response("", refusal="I will not.", finish_reason="refusal")
    cut = Response(
        "Once upon", finish_reason="length", usage=Usage.of(input=90, output=10)
    )
    long = [Message("user", "a"), Message("assistant", "b"), Message("user", "c")]
    ctx = ScriptedModel(cut, "The end.").context(
        messages=long, context_window=100, max_output_tokens=50
    )

    attempt(
        list, recorder.watch(Prompt("p", "x").run({}, ScriptedModel(refused).context()))
    )
    attempt(list, recorder.watch(Prompt("p", "x").run({}, ctx)))

    ended = [record for record in read(file) if record["event"] == "model_end"]
    assert ended[0]["response"]["refusal"] == "I will not."
    assert ended[1]["response"]["content"] == "Once upon"
    assert ended[1]["usage"] == {"input": 90, "output": 10}


def test_times_of_a_stream() -> None:
    """A streamed answer says when its first piece came."""
    file = io.StringIO()

    list(agent(file, pieces("a", "b")).prompt("hi").stream())

    ended = [record for record in read(file) if record["event"] == "model_end"]
    assert 0 <= ended[0]["first"] < 60


def test_trace_options() -> None:
    """What ``with_trace`` says is written with the run; so are agents' descriptions."""
    file = io.StringIO()
    made = agent(file, "x", description="It adds.").prompt("hi")

    made.with_trace(name="n", tags=("a",), metadata={"k": object()}).send()

    start = read(file)[1]
    assert (start["name"], start["tags"], start["description"]) == (
        "n",
        ["a"],
        "It adds.",
    )
    assert start["metadata"]["k"].startswith("<object object")


def test_a_path_is_appended_to(tmp_path: Path) -> None:
    """A recorder goes on at the end of a file, on a new line where it was cut."""
    path = tmp_path / "trace.jsonl"
    path.write_text('{"event":"tra', encoding="utf-8")

    with TraceRecorder(path) as recorder:
        Agent("", ScriptedModel("Ü \ud83d").context(), observers=[recorder]).prompt(
            "☂"
        ).send()
        # It can be read while it is open.
        lines = path.read_text(encoding="utf-8").splitlines()
    Agent("", ScriptedModel("x").context(), observers=[recorder]).prompt("y").send()

    assert lines[0] == '{"event":"tra'
    assert [json.loads(line)["event"] for line in lines[1:]][:2] == [
        "trace",
        "run_start",
    ]
    assert "☂" in lines[2]
    assert path.read_text(encoding="utf-8").splitlines() == lines
    assert "closed" in repr(recorder)


def test_a_file_stays_open() -> None:
    """A file that was given is flushed, never closed, and takes any encoding."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", newline="\n")
    recorder = TraceRecorder(file)

    Agent("", ScriptedModel("Ü").context(), observers=[recorder]).prompt("☂").send()
    recorder.close()

    assert not file.closed
    records = [json.loads(line) for line in raw.getvalue().splitlines()]
    assert records[1]["prompt"]["content"] == "☂"


def test_threads_share_a_recorder(tmp_path: Path) -> None:
    """Lines are whole, whatever writes at the same time."""
    path = tmp_path / "trace.jsonl"
    with TraceRecorder(path) as recorder:

        def work() -> None:
            for _ in range(5):
                model = ScriptedModel(ROUND, "x" * 5000)
                made = Agent("", model.context(), tools=[add], observers=[recorder])
                made.prompt("hi").send()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    events = [record["event"] for record in records]
    assert (len(events), events.count("run_end")) == (1 + 40 * 8, 40)


def test_arguments_are_checked(tmp_path: Path) -> None:
    """What is no file, no number and no function is refused at the door."""
    with pytest.raises(TypeError, match="file is a path or a text file, not 7"):
        TraceRecorder(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_text is a number of characters, not 0"):
        TraceRecorder(io.StringIO(), max_text=0)
    with pytest.raises(TypeError, match="redact is a function"):
        TraceRecorder(io.StringIO(), redact="x")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        TraceRecorder(tmp_path / "no" / "where.jsonl")


def test_no_secret_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A key is not written: of the environment, in a vendor's answer, in an error."""
    monkeypatch.setenv("GROQ_API_KEY", "gsk-in-the-environment")
    path = tmp_path / "trace.jsonl"
    dump = Tool("dump", lambda args: dict(os.environ), schema={})

    def echo(request: Request) -> Any:
        raise ServerError("bad key sk-given-by-hand", status=500)

    with TraceRecorder(path) as recorder:
        made = Agent(
            "",
            ScriptedModel(calls(("dump", {})), "x").context(),
            tools=[dump],
            observers=[recorder],
        )
        made.prompt("hi").send()
        with (
            LocalServer(ScriptedModel(echo)) as server,
            aeye.connect(
                "groq:m", base_url=server.url, api_key="sk-given-by-hand", max_retries=0
            ) as ctx,
        ):
            attempt(Agent("", ctx, observers=[recorder]).prompt("hi").send)

    text = path.read_text("utf-8")
    assert "GROQ_API_KEY" in text
    assert "bad key" in text
    assert "gsk-in-the-environment" not in text
    assert "sk-given-by-hand" not in text
    assert [json.loads(line) for line in text.splitlines()]


def test_redaction() -> None:
    """Every text goes through *redact*, wherever it stands."""
    file = io.StringIO()
    recorder = TraceRecorder(file, redact=lambda text: text.replace("Ann", "***"))
    greet = Tool("greet", lambda args: {"hello": ["Ann"]}, schema={})
    model = ScriptedModel(calls(("greet", {"who": "Ann"})), "Hi Ann.")
    made = Agent(
        "Be kind to Ann.", model.context(), tools=[greet], observers=[recorder]
    )

    made.prompt([Message("user", [Part.text("I am Ann.")])]).send()

    assert "Ann" not in file.getvalue()
    assert file.getvalue().count("***") >= 6


class Odd:
    def __repr__(self) -> str:
        raise ValueError("not shown")


@dataclasses.dataclass
class Point:
    x: float
    y: Any


def test_any_value_has_a_form() -> None:
    """What has no JSON form is shown, cut; bytes are counted."""
    loop: list[Any] = []
    loop.append(loop)
    spell = Spelling(max_text=5).value

    assert spell(Point(float("nan"), {1: b"abc"})) == {
        "x": "nan",
        "y": {"1": "<3 bytes>"},
    }
    assert spell(Odd()) == "<Odd>"
    assert spell("123456") == "12345…<6 characters>"
    assert spell(range(3)) == "range…<11 characters>"
    assert len(json.dumps(spell(loop))) < 200
    assert spell(list(range(1001)))[-1] == "…<1001 items>"
    assert spell({n: n for n in range(1001)})["…"] == "<1001 members>"
    assert spell(KeyError("x"))["type"] == "KeyError"


def test_parts_are_written_small() -> None:
    """Pictures are counted, addresses cut."""
    url = "data:image/png;base64," + "A" * 1000
    said = Message(
        "user",
        [Part.text("a"), Part.image(b"1234", "image/png"), Part.image(url)],
    )

    assert Spelling().message(said)["content"] == [
        {"type": "text", "text": "a"},
        {"type": "image", "format": "image/png", "data": "<4 bytes>"},
        {"type": "image", "data": f"{url[:200]}…<1022 characters>"},
    ]


def test_requests_are_written_as_they_are_sent() -> None:
    """Schemas are spelled in the dialect that was chosen; unchanged ones once."""
    file = io.StringIO()
    prompt = Prompt(
        "p",
        "x",
        tools=[add],
        schema={"type": "object", "properties": {"n": {"type": "integer"}}},
        config={"temperature": 0.5},
    )
    ctx = aeye.connect("rehearsal:openai")

    Agent(prompt, ctx, observers=[TraceRecorder(file)]).prompt("hi").send()

    asked = [r["request"] for r in read(file) if r["event"] == "model_start"]
    assert asked[0]["tools"][0]["descriptor"] == "openai-strict"
    assert asked[0]["tools"][0]["parameters"]["additionalProperties"] is False
    assert asked[0]["response_format"]["schema"]["required"] == ["n"]
    assert asked[0]["temperature"] == 0.5
    assert "tools" not in asked[1]
    assert "response_format" not in asked[1]


def test_the_page_about_it_knows_every_event() -> None:
    """docs/traces.md lists all events and the fields that they have, and no others."""
    page = Path(__file__).resolve().parents[1] / "docs" / "traces.md"
    table = page.read_text("utf-8").partition("| `event` |")[2].partition("```")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)
    listed = {event: set(re.findall(r"`(\w+)`", fields)) for event, fields in rows}
    everywhere = {"event", "time", "run"}

    seen: dict[str, set[str]] = {}
    for record in everything():
        seen.setdefault(record["event"], set()).update(record)

    assert sorted(seen) == sorted(listed)
    for event, fields in seen.items():
        said = listed[event] | everywhere
        if event == "tool_error":  # and "the same times"
            said |= {"thread", "began", "ended"}
        assert fields <= said


def everything() -> list[Any]:
    """Return the records of runs in which all things happen."""
    file = io.StringIO()
    recorder = TraceRecorder(file)

    def steps(args: Any) -> Iterator[Any]:
        yield "half"
        raise KeyError("x")

    child = Agent("", ScriptedModel("ok").context(), name="child", observers=[recorder])
    slow = Tool("slow", steps, schema={})
    asking = Tool("asking", lambda args: "done", schema={}, approval=True)
    batch = calls(("slow", {}), ("child", {"prompt": "a"}), ("asking", {}))
    down = ServerError("busy", status=503)
    made = Agent(
        "",
        ScriptedModel(batch, pieces("a", "b"), down).context(),
        tools=[slow, child.as_tool(), asking],
        description="All.",
        observers=[recorder],
    )
    for _ in range(2):
        request = made.prompt("hi").approvals(lambda asked: False)
        attempt(list, request.stream())
    return read(file)


def test_a_disk_that_is_full() -> None:
    """What cannot be written does not hurt the run, through either door."""

    class Full(io.StringIO):
        full = False

        def write(self, text: str) -> int:
            if self.full:
                raise OSError("no space left on device")
            return super().write(text)

    file = Full()
    recorder = TraceRecorder(file)
    file.full = True
    model = ScriptedModel(ROUND, "3")

    made = Agent("", model.context(), tools=[add], observers=[recorder])
    stream = Prompt("p", "x", tools=[add]).run({}, ScriptedModel(ROUND, "3").context())
    list(recorder.watch(stream))

    assert made.prompt("hi").send().output == "3"
    assert stream.output == "3"


def test_a_tool_that_suspends_or_interrupts() -> None:
    """A watched call that stops the run is written with what it said."""
    file = io.StringIO()

    def wait(args: Any) -> Any:
        raise PromptSuspend("for the owner")

    def stop(args: Any) -> Any:
        raise aeye.ToolInterrupt("that is enough")

    for fn in (wait, stop):
        prompt = Prompt("p", "x", tools=[Tool("t", fn, schema={})])
        ctx = ScriptedModel(calls(("t", {}))).context()
        list(TraceRecorder(file).watch(prompt.run({}, ctx)))

    errors = [r["error"] for r in read(file) if r["event"] == "tool_error"]
    assert errors == [
        {"type": "tool_suspend", "message": "for the owner"},
        {"type": "tool_interrupt", "message": "that is enough"},
    ]
