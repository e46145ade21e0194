"""Sessions outlive the processes that hold them, however those end."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Iterable, Iterator, Sequence

import pytest

from aeye.agent import Agent
from aeye.callback import attempt
from aeye.context import Context
from aeye.memory import InMemoryStore, MemoryContext, MemoryOptions, SQLiteStore
from aeye.message import Message

sys.path.insert(0, str(Path(__file__).parent))

from crash_child import Unsynced, answer, note

POLICIES = ["message", "turn", "run"]
KILLS = 200 if os.environ.get("AEYE_ONDEMAND") == "1" else 20
# Processes that hold one conversation at a time.
SPEAKERS = ["ann", "bob"]
ME = MemoryContext("s")

needs_kill = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="no fork and no SIGKILL here"
)


class Nursery:
    """The program that makes processes, as a context; see ``crash_child``."""

    def __enter__(self) -> Nursery:
        script = Path(__file__).with_name("crash_child.py")
        self._program = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *exc: object) -> None:
        _, self.said = self._program.communicate()

    def start(self, jobs: Sequence[Any]) -> Iterator[list[str]]:
        """Begin *jobs*; yield what they say, as words, until all are gone."""
        assert self._program.stdin is not None and self._program.stdout is not None
        self._program.stdin.write(json.dumps(jobs) + "\n")
        self._program.stdin.flush()
        for line in self._program.stdout:
            words = line.split()
            if words[1] == "over":
                return
            yield words
        raise AssertionError(self._program.communicate()[1])


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as made:
        yield made
    assert made.said == ""


def held(path: Path, policy: str) -> tuple[Message, ...]:
    return tuple(Unsynced(path).load(MemoryContext(policy)))


def turns_of(messages: Iterable[Message]) -> dict[str, list[str]]:
    """Return, by what was said, what came of it; fail where that is out of order."""
    found: dict[str, list[str]] = {}
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id == waiting.pop(0)
            about, what = message.text.split(" ", 1)[1], "tool"
        else:
            assert waiting == []
            waiting = [call.id for call in message.tool_calls]
            about, what = message.text, message.role
            if waiting:
                about, what = waiting[0][:-2], "calls"
            elif message.role == "assistant":
                about = about.split(" ", 1)[1]
        found.setdefault(about, []).append(what)
    assert waiting == []
    return found


WHOLE = ["user", "calls", "tool", "tool", "assistant"]
# What a turn may have come to when its process was killed.
PARTS = {
    "message": [WHOLE[:1], WHOLE[:4], WHOLE],
    "turn": [WHOLE[:4], WHOLE],
    "run": [WHOLE],
}


def check(messages: Sequence[Message], policy: str, kept: Iterable[str]) -> None:
    """All that was *kept* is there, whole and in order; nothing is in pieces."""
    turns = turns_of(messages)

    assert [about for about in kept if turns.get(about) != WHOLE] == []
    assert [said for said in turns.values() if said not in PARTS[policy]] == []
    for speaker in SPEAKERS:
        numbers = [int(a.split()[1]) for a in turns if a.split()[0] == speaker]
        assert numbers == sorted(numbers)


def talk_on(path: Path, policy: str) -> None:
    """A conversation goes on in this process."""
    agent = Agent(
        "",
        Context(execute=answer),
        tools=[note],
        memory=MemoryOptions(Unsynced(path), policy),  # type: ignore[arg-type]  # a str
    )
    assert agent.session(policy).prompt("me 1").send().output == "done me 1"


def job(path: Path, policy: str, speaker: str = "ann", **more: Any) -> dict[str, Any]:
    return {"path": str(path), "policy": policy, "speaker": speaker, "first": 1, **more}


@needs_kill
def test_killed_at_any_moment(nursery: Nursery, tmp_path: Path) -> None:
    """No turn that was told of is lost, and no call is left without its reply.

    Two processes hold one conversation; each is killed at a moment of its own, and
    the next two go on where they were.
    """
    rng = random.Random(11)
    path = tmp_path / "s.db"
    kept: dict[str, list[str]] = {policy: [] for policy in POLICIES}
    for at in range(KILLS // len(SPEAKERS)):
        policy = POLICIES[at % 3]
        # How many lines each may say before it is killed.
        left = {name: rng.randrange(1, 6) for name in SPEAKERS}
        jobs = [job(path, policy, name, first=100 * at) for name in SPEAKERS]
        for pid, what, who, *rest in nursery.start(jobs):
            if what == "ended":
                assert int(who) == signal.SIGKILL
                continue
            if what == "kept":
                kept[policy].append(f"{who} {rest[0]}")
            left[who] -= 1
            if left[who] == 0:
                time.sleep(0.02 * rng.random())  # somewhere within what comes next
                os.kill(int(pid), signal.SIGKILL)
        check(held(path, policy), policy, kept[policy])
    for policy in POLICIES:
        talk_on(path, policy)
        check(held(path, policy), policy, [*kept[policy], "me 1"])


@needs_kill
@pytest.mark.parametrize("policy", POLICIES)
def test_killed_before_any_statement(
    nursery: Nursery, tmp_path: Path, policy: str
) -> None:
    """Wherever in its SQL a process dies, the file is whole and can be gone on with."""
    survived, first = False, 1
    while not survived:
        paths = {str(n): tmp_path / f"{n}.db" for n in range(first, first + 8)}
        jobs = [
            job(path, policy, speaker=n, turns=1, statement=int(n))
            for n, path in paths.items()
        ]
        said = list(nursery.start(jobs))
        for n, path in paths.items():
            kept = [f"{n} 1" for _, what, who, *_ in said if (what, who) == ("kept", n)]
            check(held(path, policy), policy, kept)
            talk_on(path, policy)
            check(held(path, policy), policy, [*kept, "me 1"])
            survived = survived or bool(kept)
        first += 8
    assert first > 20  # the tables, and a turn


@needs_kill
@pytest.mark.parametrize("policy", POLICIES)
def test_side_by_side(nursery: Nursery, tmp_path: Path, policy: str) -> None:
    """Processes that begin together lose nothing, and their turns do not mix."""
    path = tmp_path / "s.db"
    jobs = [job(path, policy, name, turns=5) for name in ("ann", "bob", "cid")]

    said = list(nursery.start(jobs))

    kept = [" ".join(rest) for _, what, *rest in said if what == "kept"]
    assert len(kept) == 15
    check(held(path, policy), policy, kept)


class Faulty(sqlite3.Connection):
    """A connection that fails at the statement of a number, from 1."""

    left: Any

    def _count(self) -> None:
        self.left[0] -= 1
        if self.left[0] == 0:
            raise sqlite3.OperationalError("disk I/O error")

    def execute(self, *args: Any) -> Any:
        self._count()
        return super().execute(*args)

    def executemany(self, *args: Any) -> Any:
        self._count()
        return super().executemany(*args)


class FaultyStore(SQLiteStore):
    def __init__(self, path: Path, statement: int) -> None:
        super().__init__(path, timeout=0)
        self.left = [statement]

    def connect(self) -> Any:
        made = sqlite3.connect(self.path, isolation_level=None, factory=Faulty)
        made.executescript("PRAGMA synchronous = OFF")  # not counted
        made.left = self.left  # type: ignore[attr-defined]  # a Faulty
        return made


@pytest.mark.parametrize("policy", POLICIES)
def test_failing_at_any_statement(tmp_path: Path, policy: Any) -> None:
    """A statement that fails fails the run, leaves no lock and nothing in pieces."""
    done, statement = None, 0
    while done is None:
        statement += 1
        path = tmp_path / f"{statement}.db"
        store = FaultyStore(path, statement)
        memory = MemoryOptions(store, policy)
        agent = Agent("", Context(execute=answer), tools=[note], memory=memory)

        done, error = attempt(agent.session(policy).prompt("ann 1").send)

        # Where only writing ahead was refused, the run has gone on without it.
        if error is not None:
            assert isinstance(error, sqlite3.OperationalError)
            assert str(path) in str(error)
            done = None
        elif store.left[0] <= 0:
            done = None
        check(held(path, policy), policy, [])
        talk_on(path, policy)
    check(held(path, policy), policy, ["ann 1", "me 1"])
    assert statement > 10


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("policy", POLICIES)
def test_threads(tmp_path: Path, policy: Any, kind: str) -> None:
    """Threads that share a store lose nothing, and their turns do not mix."""
    store = InMemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "s.db")
    memory = MemoryOptions(store, policy)
    chat = Agent("", Context(execute=answer), tools=[note], memory=memory).session("s")
    gate = threading.Barrier(len(SPEAKERS))

    def speak(who: str) -> None:
        gate.wait(10)
        for n in range(5):
            chat.prompt(f"{who} {n}").send()

    threads = [threading.Thread(target=speak, args=[who]) for who in SPEAKERS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    check(chat.messages(), policy, [f"{who} {n}" for who in SPEAKERS for n in range(5)])


class TestFile:
    """What a store makes of the file that it is given."""

    def test_readers_do_not_wait_for_a_writer(self, tmp_path: Path) -> None:
        """While somebody writes, a session can be read; so it is for the next, too."""
        store = SQLiteStore(tmp_path / "s.db", timeout=0)
        store.append(ME, "r", 1, [Message("user", "a")])
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM aeye_messages")

        assert store.load(ME) == (Message("user", "a"),)
        other.close()

    @pytest.mark.parametrize("method", ["append", "clear", "record_error", "start"])
    def test_a_locked_file(self, tmp_path: Path, method: str) -> None:
        """Who cannot write in time is told which file it is, and why."""
        store = SQLiteStore(tmp_path / "s.db", timeout=0.01)
        store.load(ME)
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        act = {
            "append": lambda: store.append(ME, "r", 1, [Message("user", "a")]),
            "clear": lambda: store.clear(ME),
            "record_error": lambda: store.record_error(ME, "r", KeyError(), []),
            "start": lambda: store.start_call(ME, "c"),
        }[method]

        with pytest.raises(
            sqlite3.OperationalError, match=r"s\.db: database is locked"
        ):
            act()
        other.close()
        act()

    def test_a_file_that_cannot_be_written(self, tmp_path: Path) -> None:
        """It can be read; saving to it says why not."""

        class ReadOnly(SQLiteStore):
            def connect(self) -> Any:
                name = f"file:{self.path}?mode=ro"
                return sqlite3.connect(name, uri=True, isolation_level=None)

        first = SQLiteStore(tmp_path / "s.db")
        first.append(ME, "r", 1, [Message("user", "a")])
        store = ReadOnly(first.path)

        assert store.load(ME) == first.load(ME)
        with pytest.raises(sqlite3.OperationalError, match=r"s\.db: .*readonly"):
            store.append(ME, "r", 1, [Message("user", "b")])

    def test_no_folder(self, tmp_path: Path) -> None:
        """A file in a folder that is not there is named."""
        store = SQLiteStore(tmp_path / "no" / "s.db")

        with pytest.raises(sqlite3.OperationalError, match=r"s\.db: unable to open"):
            store.load(ME)

    @pytest.mark.parametrize("version", [0, 2, 17])
    def test_another_version(self, tmp_path: Path, version: int) -> None:
        """A file that is kept in another way is refused, and not changed."""
        store = SQLiteStore(tmp_path / "s.db")
        store.append(ME, "r", 1, [Message("user", "a")])
        with sqlite3.connect(store.path) as other:
            other.execute("UPDATE aeye_schema SET version = ?", [version])
        other.close()

        for act in (
            lambda: store.load(ME),
            lambda: SQLiteStore(store.path).append(ME, "r", 1, [Message("user", "b")]),
        ):
            with pytest.raises(ValueError, match=f"as version {version} .* version 1"):
                act()

        with sqlite3.connect(store.path) as other:
            other.execute("UPDATE aeye_schema SET version = 1")
        other.close()
        assert store.load(ME) == (Message("user", "a"),)

    def test_a_file_of_somebody_else(self, tmp_path: Path) -> None:
        """A store lives beside other tables and leaves them alone."""
        path = tmp_path / "app.db"
        with sqlite3.connect(path) as other:
            other.execute("PRAGMA user_version = 7")
            other.execute("CREATE TABLE users (name)")
        other.close()

        SQLiteStore(path).append(ME, "r", 1, [Message("user", "a")])

        with sqlite3.connect(path) as other:
            tables = other.execute("SELECT name FROM sqlite_master WHERE type='table'")
            names = sorted(name for (name,) in tables)
            assert other.execute("PRAGMA user_version").fetchone() == (7,)
        other.close()
        made = ["aeye_calls", "aeye_errors", "aeye_messages", "aeye_schema"]
        assert names == [*made, "users"]

    def test_a_file_that_was_removed(self, tmp_path: Path) -> None:
        """A store whose file is gone begins a new one."""
        store = SQLiteStore(tmp_path / "s.db")
        store.append(ME, "r", 1, [Message("user", "a")])
        Path(store.path).unlink()

        assert store.load(ME) == ()

    def test_the_path_is_what_it_was(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A program that goes to another folder keeps its sessions."""
        monkeypatch.chdir(tmp_path)
        store = SQLiteStore("s.db")
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        store.append(ME, "r", 1, [Message("user", "a")])

        assert (tmp_path / "s.db").exists()

    def test_what_is_no_file(self) -> None:
        """A path is a text or a path, and a time is finite."""
        with pytest.raises(TypeError):
            SQLiteStore(None)  # type: ignore[arg-type]  # on purpose
        for wrong in (-1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="timeout"):
                SQLiteStore("s.db", timeout=wrong)
