"""The command line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

import aeye
from aeye.__main__ import main
from aeye.rehearsal import Rehearsal
from aeye.testing import LocalServer

ROOT = Path(__file__).resolve().parents[1]

# What a user's module may hold.
MODULE = '''
from dataclasses import dataclass
from typing import Annotated, Any
import aeye
from aeye.errors import PromptSuspend

@dataclass
class Person:
    """Somebody."""
    name: str
    age: int

class Box:
    Inner = Person

class Odd:
    pass

def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

@aeye.tool
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()

@dataclass
class Tree:
    """A tree."""
    size: int
    left: "Tree"

def grow(tree: Tree) -> str:
    """Grow it."""
    return "ok"

@aeye.tool(on_error="raise")
def broken(text: str) -> str:
    """Fail."""
    raise KeyError(text)

@aeye.tool
def wait(text: str) -> str:
    """Wait for somebody."""
    raise PromptSuspend("later")

async def later(text: str) -> str:
    """Answer later."""

NUMBER = {"type": "integer"}
SLIP = {"typ": "integer"}
HARD = {"type": "string", "pattern": "^(a)\\\\1$"}
EITHER = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
RECURSIVE = {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": []}
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of the user's, as the current one."""
    (tmp_path / "usermod.py").write_text(MODULE, "utf-8")
    (tmp_path / "badmod.py").write_text("1 / 0", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    yield tmp_path
    sys.modules.pop("usermod", None)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(argv)
    out, err = capsys.readouterr()
    return code, out, err


def process(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    given = {"input": "", "timeout": 60, "cwd": ROOT, **options}
    command = [sys.executable, "-m", "aeye", *argv]
    return subprocess.run(command, capture_output=True, text=True, **given)


def test_demo(capsys: Any) -> None:
    """The demonstration shows the whole main job, in lines that fit a page."""
    code, out, err = run(capsys, "demo", "--no-delay")

    assert (code, err) == (0, "")
    assert [line[3:] for line in out.splitlines() if line[1:3] == ". "] == [
        "A template is filled",
        "Text streams as it arrives",
        "Tools run at the same time",
        "The answer is checked against your type",
        "Your code gets a value, not text",
    ]
    for said in (
        "no model is asked",
        "{{#each who}}",
        "Plan 3 days in Lisbon.",
        "weather(city='Lisbon') starts",
        "> - days: ",
        "packing=['sun cream', 'walking shoes'],",
        "4 requests, ",
    ):
        assert said in out
    assert max(map(len, out.splitlines())) <= 80
    assert "\n\n\n" not in out


def test_demo_runs_both_tools_at_once(capsys: Any) -> None:
    """Both calls have started before either has ended."""
    _, out, _ = run(capsys, "demo", "--no-delay")
    told = [line for line in out.splitlines() if " s  " in line]

    assert [line.endswith("starts") for line in told] == [True, True, False, False]


def test_demo_with_a_model_named(capsys: Any) -> None:
    """With --model the same is run against that one, rehearsals included."""
    code, out, _ = run(capsys, "demo", "--no-delay", "--model", "rehearsal:google")

    assert code == 0
    assert "The model that is asked is rehearsal:google." in out
    assert "> " not in out
    assert "Trip(" in out


def test_demo_over_a_socket(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rehearsal that is served in a vendor's format gives the same story."""
    with LocalServer(Rehearsal("openai", mistakes=1)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        code, out, err = run(capsys, "demo", "--no-delay", "-m", "openai:gpt-5-mini")

    assert (code, err) == (0, "")
    assert "> - days: " in out
    assert "packing=" in out
    assert server.stats["requests"] == 4


def test_ask_for_text(here: Path, capsys: Any) -> None:
    """A text is answered on standard output."""
    assert run(capsys, "ask", "Hi.", "-m", "rehearsal") == (
        0,
        'This is a rehearsal: no model was asked.\nThe last message is: "Hi."\n',
        "",
    )


def test_ask_with_the_model_of_the_environment(
    here: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without -m the environment names the model."""
    monkeypatch.setenv("AEYE_MODEL", "rehearsal")

    assert run(capsys, "ask", "Hi.")[0] == 0


@pytest.mark.parametrize("name", ["usermod:Person", "usermod:Box.Inner"])
def test_ask_for_a_type(here: Path, capsys: Any, name: str) -> None:
    """A typed answer is printed as JSON."""
    code, out, _ = run(capsys, "ask", "Who?", "-m", "rehearsal", "--schema", name)

    assert (code, sorted(json.loads(out))) == (0, ["age", "name"])


def test_ask_for_a_schema_in_a_file(here: Path, capsys: Any) -> None:
    """A schema may be a JSON file; a root that is no object is unwrapped again."""
    (here / "n.json").write_text('{"type": "integer", "const": 7}', "utf-8")

    found = run(capsys, "ask", "?", "-m", "rehearsal:openai", "--schema", "n.json")

    assert found == (0, "7\n", "")


def test_ask_as_json(here: Path, capsys: Any) -> None:
    """--json prints one line with the output and the usage."""
    code, out, _ = run(capsys, "ask", "Hi.", "-m", "rehearsal", "--json")

    assert (code, out.count("\n")) == (0, 1)
    assert sorted(json.loads(out)) == ["output", "usage"]
    assert json.loads(out)["output"].startswith("This is a rehearsal")


def test_ask_streaming(here: Path, capsys: Any) -> None:
    """Text goes to standard output as it comes, what else happens to the other."""
    argv = ["ask", "Hi.", "-m", "rehearsal", "--stream", "--tool", "usermod:shout"]

    code, out, err = run(capsys, *argv)

    assert code == 0
    assert out.endswith('shout returned: "EXAMPLE TEXT"\n')
    assert err == "aeye: shout {'text': 'example text'}\n"


def test_ask_streaming_events(here: Path, capsys: Any) -> None:
    """--stream with --json prints every event as a line."""
    code, out, _ = run(capsys, "ask", "Hi.", "-m", "rehearsal", "--stream", "--json")

    types = [json.loads(line)["type"] for line in out.splitlines()]
    assert (code, types[0], types[-1]) == (0, "request", "complete")


def test_ask_with_a_plain_function(here: Path, capsys: Any) -> None:
    """A function without a decorator becomes a tool."""
    code, out, _ = run(
        capsys, "ask", "Sum?", "-m", "rehearsal", "--tool", "usermod:add"
    )

    assert code == 0
    assert "add returned: " in out


@pytest.mark.parametrize(
    "argv",
    [
        ["Sum?", "--tool", "usermod:add", "usermod:shout"],
        ["Sum?", "--tool", "usermod:add", "--tool", "usermod:shout"],
        ["--tool", "usermod:add", "usermod:shout", "Sum?"],
        ["--tool", "usermod:add", "usermod:shout", "--", "Sum?"],
        ["--tool", "usermod:add", "--tool", "usermod:shout", "Sum?"],
    ],
)
def test_ask_with_several_tools(here: Path, capsys: Any, argv: list[str]) -> None:
    """One --tool takes several functions, and may stand before or after the text."""
    code, out, _ = run(capsys, "ask", "-m", "rehearsal", *argv)

    assert code == 0
    assert 'The last message is: "Sum?"' in out
    assert "add returned: " in out
    assert "shout returned: " in out


@pytest.mark.parametrize("options", [[], ["--json"], ["--stream"], ["--dry-run"]])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_cannot_be_shown_is_escaped(
    here: Path, options: list[str], encoding: str
) -> None:
    """Half a surrogate pair, or a letter the terminal lacks, breaks no output."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)

    with contextlib.redirect_stdout(stream):
        code = main(["ask", "-m", "rehearsal", "caf\u00e9 \udcff \U0001f600", *options])

    assert code == 0
    written = stream.buffer.getvalue().decode(encoding)
    assert "\\udcff" in written
    if "--dry-run" in options:
        said = json.loads(written)["messages"][0]["content"]
        assert said == "caf\u00e9 \udcff \U0001f600"


def test_ask_reads_what_is_piped(here: Path) -> None:
    """Standard input is added to the text, or is the text."""
    both = process("ask", "Sum up:", "-m", "rehearsal", input="one\ntwo\n")
    alone = process("ask", "-m", "rehearsal", input="one\n")

    assert both.stdout.endswith('The last message is: "Sum up: one two"\n')
    assert alone.stdout.endswith('The last message is: "one"\n')


def test_ask_dry_run(here: Path, capsys: Any) -> None:
    """--dry-run prints what would be asked and asks nobody."""
    argv = ["ask", "Hi.", "-m", "rehearsal:openai", "--tool", "usermod:add"]

    code, out, _ = run(capsys, *argv, "--schema", "usermod:Person", "--dry-run")

    found = json.loads(out)
    assert code == 0
    assert found["messages"] == [{"role": "user", "content": "Hi."}]
    assert [tool["name"] for tool in found["tools"]] == ["add"]
    assert found["tools"][0]["descriptor"] == "openai-strict"
    assert found["tools"][0]["parameters"]["additionalProperties"] is False
    assert found["response_format"]["descriptor"] == "openai-strict"
    assert sorted(found["response_format"]["schema"]["properties"]) == ["age", "name"]


def test_ask_dry_run_of_text(here: Path, capsys: Any) -> None:
    """Without tools and schema there is nothing but the messages."""
    _, out, _ = run(capsys, "ask", "Hi.", "-m", "rehearsal", "--dry-run")

    assert json.loads(out) == {
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": [],
    }


def test_ask_with_files(here: Path, capsys: Any) -> None:
    """Pictures and sounds go as such, text as text, the rest as documents."""
    (here / "a.png").write_bytes(b"\x89PNG")
    (here / "a.wav").write_bytes(b"RIFF")
    (here / "a.pdf").write_bytes(b"%PDF\xff")
    (here / "a.bin7").write_bytes(b"\xff")
    (here / "a.txt").write_text("Dear Ada", "utf-8")
    names = ["a.png", "a.wav", "a.pdf", "a.bin7", "a.txt"]
    argv = [word for name in names for word in ("--file", name)]

    code, out, _ = run(capsys, "ask", "Look", "-m", "rehearsal", "--dry-run", *argv)

    assert code == 0
    parts = json.loads(out)["messages"][0]["content"]
    assert [part["type"] for part in parts] == [
        *("text", "image", "audio", "file", "file", "text")
    ]
    assert parts[-1]["data"] == "a.txt:\n\nDear Ada"


def test_schema(here: Path, capsys: Any) -> None:
    """A schema is printed as it goes on the wire; what it cannot say is named."""
    code, out, err = run(capsys, "schema", "usermod:Person", "--for", "openai")
    wrapped = run(capsys, "schema", "usermod:NUMBER", "--for", "google", "--non-strict")

    assert (code, err) == (0, "")
    assert json.loads(out)["required"] == ["name", "age"]
    assert list(json.loads(wrapped[1])["properties"]) == ["value"]


@pytest.mark.parametrize("name", ["usermod:add", "usermod:shout"])
def test_schema_of_a_function(here: Path, capsys: Any, name: str) -> None:
    """Of a function or a tool, what its arguments are is printed."""
    code, out, err = run(capsys, "schema", name, "--for", "openai")

    required = {"usermod:add": ["a", "b"], "usermod:shout": ["text"]}[name]
    assert (code, err) == (0, "")
    assert json.loads(out)["required"] == required


def test_schema_that_goes_strict_for_a_tool_only(here: Path, capsys: Any) -> None:
    """What is no hindrance to a tool is none for a function's arguments."""
    tool = run(capsys, "schema", "usermod:grow", "--for", "xai", "--strict")
    answer = run(capsys, "schema", "usermod:Tree", "--for", "xai", "--strict")

    assert (tool[0], answer[0]) == (0, 1)
    assert "output" not in tool[2]
    assert "output: xai-strict" in answer[2]


def test_version(capsys: Any) -> None:
    """--version prints the version of the package."""
    assert run(capsys, "--version") == (0, f"aeye {aeye.__version__}\n", "")


def test_schema_that_cannot_go_strict(here: Path, capsys: Any) -> None:
    """Every reason is told with its place; with --strict that is a failure."""
    argv = ["schema", "usermod:RECURSIVE", "--for", "anthropic"]

    plain, strict = run(capsys, *argv), run(capsys, *argv, "--strict")

    assert (plain[0], strict[0], strict[1]) == (0, 1, "")
    assert "(at $" in strict[2]
    assert plain[2] == strict[2] + "aeye: so this is anthropic-non-strict\n"
    assert json.loads(plain[1])["type"] == "object"


def test_models(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vendors are listed with their key variables, which are never shown."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    code, out, _ = run(capsys, "models")

    assert code == 0
    assert "key: OPENAI_API_KEY (set)\n" in out
    assert "sk-secret" not in out
    assert "rehearsal" in out


def test_models_by_name(capsys: Any) -> None:
    """A vendor is shown alone, and a model with what it has and what it refuses."""
    vendor = run(capsys, "models", "groq")
    model = run(capsys, "models", "anthropic:claude-opus-5")

    assert (vendor[0], vendor[1].splitlines()[0]) == (0, "groq:openai/gpt-oss-120b")
    assert "anthropic" not in vendor[1] and "rehearsal" not in vendor[1]
    assert model[0] == 0
    assert "    efforts: none, low, medium, high, xhigh, max\n" in model[1]
    assert model[1].endswith("    takes no: temperature, top_p\n")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("claude-opus-5", "did you mean 'anthropic:claude-opus-5'?"),
        ("opnai:gpt-5", "did you mean 'openai:gpt-5'?"),
        ("openai:", "names no model"),
    ],
)
def test_models_by_a_wrong_name(capsys: Any, name: str, said: str) -> None:
    """A name that names nothing is an error with what was perhaps meant."""
    code, out, err = run(capsys, "models", name)

    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["ask", "Hi."], "no model: give one"),
        (["ask"], "nothing to ask"),
        (["ask", "Hi.", "-m", "martian:x"], "there is no vendor 'martian'"),
        (["ask", "Hi.", "-m", "openai:x"], "OPENAI_API_KEY"),
        (["ask", "Hi.", "--schema", "nothing"], "no such file"),
        (["ask", "Hi.", "--schema", "usermod:"], "no such file"),
        (["ask", "Hi.", "--schema", "usermod:Nobody"], "Nobody"),
        (["ask", "Hi.", "--schema", "nomodule:X"], "nomodule"),
        (["ask", "Hi.", "--schema", "badmod:X"], "division by zero"),
        (["ask", "Hi.", "--schema", "bad.json"], "bad.json is not JSON"),
        (["ask", "Hi.", "-m", "rehearsal", "--file", "gone.png"], "no file gone.png"),
        (["schema", "nothing", "--for", "openai"], "no such file"),
        (["schema", "usermod:Odd", "--for", "xai"], "Odd has no JSON form"),
        (["schema", "usermod:later", "--for", "xai"], "async def"),
        (["ask", "Hi.", "--schema", "gone.json"], "gone.json: there is no such file"),
        (["ask", "Hi.", "--schema", "five.json"], "five.json: a schema is made from"),
        (["ask", "Hi.", "--schema", "latin.json"], "latin.json is not JSON"),
        (["ask", "Hi.", "--schema", "deep.json"], "deep.json is not JSON"),
        (["ask", "Hi.", "--schema", "slip.json"], "slip.json: 'typ' is no keyword"),
        (["ask", "Hi.", "--schema", "usermod:SLIP"], "'typ' is no keyword"),
        (["ask", "Hi.", "--schema", "usermod:Odd"], "Odd has no JSON form"),
        (["ask", "Hi.", "--schema", "usermod:add"], "usermod:add is a function"),
        (["ask", "Hi.", "--tool", "usermod:later"], "async def"),
        (["ask", "Hi.", "--tool", "usermod:NUMBER"], "usermod:NUMBER: @tool decorates"),
        (["ask", "Hi.", "--tool", "usermod:gone"], "gone"),
        (["ask", "Hi.", "--tool", "usermod:add", "no"], "'no' is no module:function"),
        (["ask", "Hi.", "--tool", *["usermod:add"] * 2], "two tools named 'add'"),
        (["ask", "Hi.", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["schema", "usermod:Person"], "required: --for"),
    ],
)
def test_usage_errors(here: Path, capsys: Any, argv: Any, said: str) -> None:
    """What was said wrongly is one line on standard error, and exit code 2."""
    (here / "bad.json").write_text("{", "utf-8")
    (here / "five.json").write_text("5", "utf-8")
    (here / "slip.json").write_text('{"typ": "string"}', "utf-8")
    (here / "deep.json").write_text("[" * 10**5, "utf-8")
    (here / "latin.json").write_bytes(b'"\xe9"')

    code, out, err = run(capsys, *argv)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("aeye: ")
    assert said in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["ask", "?", "-m", "rehearsal", "--schema", "usermod:HARD"], "examples"),
        (["ask", "?", "-m", "rehearsal", "--tool", "usermod:broken"], "example text"),
        (["ask", "?", "-m", "rehearsal", "--tool", "usermod:wait"], "without a result"),
    ],
)
def test_runs_that_fail(here: Path, capsys: Any, argv: Any, said: str) -> None:
    """What went wrong is one line on standard error, and exit code 1."""
    code, out, err = run(capsys, *argv)

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("aeye: ")
    assert said in err


def test_debug_shows_the_traceback(here: Path, capsys: Any) -> None:
    """--debug is the way to see where an error came from."""
    code, _, err = run(capsys, "ask", "--debug")

    assert code == 2
    assert err.startswith("Traceback")


def test_arguments_that_argparse_refuses(capsys: Any) -> None:
    """Usage errors, help and no command at all have their exit codes."""
    codes = [main(argv) for argv in (["nonsense"], [], ["--help"], ["demo", "-h"])]
    out, err = capsys.readouterr()

    assert codes == [2, 2, 0, 0]
    assert "invalid choice" in err
    assert "usage: aeye" in out


def test_interrupting(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends it quietly with the shell's code for it."""

    class Keyboard:
        def isatty(self) -> bool:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Keyboard())

    assert run(capsys, "ask", "Hi.") == (130, "", "")


def test_interrupting_a_process() -> None:
    """A signal in the middle of the demonstration shows no traceback."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        command = [sys.executable, "-m", "aeye", "demo", "--model", "openai:gpt-4.1"]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": address},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as started:
            # It is asking now, and goes on asking: nothing answers.
            asking, _ = silent.accept()
            with asking:
                started.send_signal(signal.SIGINT)
                _, err = started.communicate(timeout=30)

    assert (started.returncode, err) == (130, "")


def test_a_reader_that_leaves() -> None:
    """A broken pipe is no error to talk about."""
    command = [sys.executable, "-m", "aeye", "demo", "--no-delay"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None and started.stderr is not None
        started.stdout.readline()
        started.stdout.close()
        err = started.stderr.read()
        started.wait(30)

    assert (started.returncode, err) == (1, "")


def test_as_a_module() -> None:
    """``python -m aeye`` is the same command."""
    done = process("models")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("openai:")


def shell(line: str, here: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which ``$AEYE`` is the command."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "AEYE_MODEL": "rehearsal"}
    env["AEYE"] = f"{sys.executable} -m aeye"
    return subprocess.run(
        ["sh", "-c", line],
        cwd=here,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("$AEYE --version >&-", 1, "standard output is closed"),
        ("$AEYE ask hi --json >&-", 1, "standard output is closed"),
        ("$AEYE ask <&-", 2, "nothing to ask"),
        (r"printf '\377' | PYTHONIOENCODING=utf-8 $AEYE ask", 2, "is no text"),
        ("$AEYE ask hi --schema leaves:T", 2, "importing it ended in SystemExit(5)"),
        ("$AEYE ask hi --tool leave:leave", 1, "ended the program: SystemExit(3)"),
    ],
)
def test_streams_and_programs_that_end(
    tmp_path: Path, line: str, code: int, said: str
) -> None:
    """Closed streams, bytes that are no text and ``sys.exit`` are one line each."""
    (tmp_path / "leaves.py").write_text("raise SystemExit(5)\n")
    (tmp_path / "leave.py").write_text("def leave():\n    raise SystemExit(3)\n")

    done = shell(line, tmp_path)

    assert (done.returncode, len(done.stderr.splitlines())) == (code, bool(said))
    assert said in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
@pytest.mark.parametrize("command", ["--version", "models", "ask hi"])
def test_a_full_disk(tmp_path: Path, command: str) -> None:
    """What cannot be written is told in one line, and the run has failed."""
    done = shell(f"$AEYE {command} >/dev/full", tmp_path)

    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "No space left" in done.stderr


@pytest.mark.parametrize("name", ["rehearsal", "rehearsal:openai"])
def test_models_of_the_rehearsal(capsys: Any, name: str) -> None:
    """What the list ends with can be asked for by its name."""
    assert main(["models", name]) == 0

    assert capsys.readouterr().out.startswith("rehearsal, rehearsal:openai")


@pytest.mark.parametrize("command", ["demo", "ask", "schema", "models", "trace"])
def test_the_page_names_every_option(capsys: Any, command: str) -> None:
    """What ``--help`` lists is explained in ``docs/command.md``."""
    page = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")

    assert main([command, "--help"]) == 0

    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert f"`aeye {command}" in page
    assert sorted(name for name in options if name not in page) == []
