"""Sessions: where their messages are kept, and when they are saved.

A store is any object with ``load``, ``append`` and ``clear``, and perhaps
``record_error`` and ``start_call``. Two are here: one in memory, one in an SQLite
file.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Set,
    Tuple,
)

from .callback import attempt, refuse_async
from .message import Message
from .window import repair

if TYPE_CHECKING:
    import sqlite3


__all__ = [
    "InMemoryStore",
    "Journal",
    "MemoryContext",
    "MemoryOptions",
    "MemoryStore",
    "SQLiteStore",
    "SavePolicy",
]

SavePolicy = Literal["message", "turn", "run"]

_POLICIES = ("message", "turn", "run")
# Seconds; SQLite counts milliseconds in 32 bits.
MAX_TIMEOUT = 1_000_000


@dataclass(frozen=True)
class MemoryContext:
    """Which session it is; the same id of two users is two sessions."""

    session_id: str
    user_id: Optional[str] = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A store that takes 0 for nobody, or 7 for "7", would mix up users.
        given: Any = self.user_id
        if given is not None and not isinstance(given, str):
            raise TypeError(f"a session's user_id is a str, not {given!r:.80}")

    @property
    def key(self) -> Tuple[str, str]:
        """What tells this session from all others."""
        return self.session_id, self.user_id or ""


class MemoryStore(Protocol):
    """What an agent asks of a store. It may fail the run by raising."""

    def load(self, context: MemoryContext) -> Sequence[Message]:
        """Return the session's messages, oldest first."""

    def append(
        self,
        context: MemoryContext,
        run_id: str,
        turn: int,
        messages: Sequence[Message],
    ) -> None:
        """Add *messages*, which belong together."""

    def clear(self, context: MemoryContext) -> None:
        """Forget the session."""


@dataclass(frozen=True)
class MemoryOptions:
    """A store, and when a run saves to it.

    ``"message"``: as messages are made; ``"turn"``: when a turn is finished;
    ``"run"``: when the run has its result. A run that fails keeps what was saved. An
    answer with tool calls is always saved together with its replies.
    """

    store: MemoryStore
    save_policy: SavePolicy = "turn"

    def __post_init__(self) -> None:
        if self.save_policy not in _POLICIES:
            raise ValueError(
                f"save_policy is one of {_POLICIES}, not {self.save_policy!r}"
            )
        lacking = [
            name
            for name in ("load", "append", "clear")
            if not callable(getattr(self.store, name, None))
        ]
        for name in ("load", "append", "clear", "record_error", "start_call"):
            refuse_async(getattr(self.store, name, None), f"memory store {name}")
        if lacking:
            raise TypeError(
                f"a memory store has load, append and clear; {self.store!r:.80} "
                f"lacks {lacking}"
            )

    @classmethod
    def of(cls, value: Any) -> MemoryOptions:
        """Return *value* as options: itself, its dict, or those of a bare store."""
        if isinstance(value, MemoryOptions):
            return value
        return cls(**value) if isinstance(value, Mapping) else cls(value)


class InMemoryStore:
    """Sessions in this process; they end with it. May be shared by threads."""

    def __init__(self) -> None:
        self._messages: Dict[Tuple[str, str], List[Message]] = {}
        self._started: Dict[Tuple[str, str], Set[str]] = {}
        self._lock = threading.Lock()

    def load(self, context: MemoryContext) -> Sequence[Message]:
        """Return the session's messages, oldest first."""
        with self._lock:
            return tuple(self._messages.get(context.key, ()))

    def append(
        self,
        context: MemoryContext,
        run_id: str,
        turn: int,
        messages: Sequence[Message],
    ) -> None:
        """Add *messages*."""
        with self._lock:
            self._messages.setdefault(context.key, []).extend(messages)

    def clear(self, context: MemoryContext) -> None:
        """Forget the session."""
        with self._lock:
            self._messages.pop(context.key, None)
            self._started.pop(context.key, None)

    def start_call(self, context: MemoryContext, tool_call_id: str) -> bool:
        """Note that a call is run that had waited; False where that was noted."""
        with self._lock:
            started = self._started.setdefault(context.key, set())
            first = tool_call_id not in started
            started.add(tool_call_id)
            return first


# What a file says of itself, so that a later layout is not taken for this one.
_VERSION = 1
_CREATE = (
    "CREATE TABLE IF NOT EXISTS aeye_messages ("
    "id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, user_id TEXT NOT NULL, "
    "run_id TEXT NOT NULL, turn INTEGER NOT NULL, message TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS aeye_sessions ON aeye_messages (session_id, user_id)",
    "CREATE TABLE IF NOT EXISTS aeye_errors ("
    "id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, user_id TEXT NOT NULL, "
    "run_id TEXT NOT NULL, error TEXT NOT NULL, messages TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS aeye_calls ("
    "session_id TEXT NOT NULL, user_id TEXT NOT NULL, tool_call_id TEXT NOT NULL, "
    "PRIMARY KEY (session_id, user_id, tool_call_id))",
    "CREATE TABLE aeye_schema (version INTEGER NOT NULL)",
    f"INSERT INTO aeye_schema VALUES ({_VERSION})",
)


class SQLiteStore:
    """Sessions in an SQLite file, one row a message.

    Each call opens the file anew and is one transaction, so that the store may be
    shared by threads and processes, survives a fork and a crash, and holds nothing
    open. The file may hold tables of others: those of a store begin with ``aeye_``.
    *timeout* is how many seconds to wait for others that write.

    What goes wrong with the file is an ``sqlite3.Error`` that names it.

    Raises:
        ValueError: *path* is ``":memory:"``, which would be empty every time, or
            *timeout* is no length of time. When it is used: the file was written by
            another version of aeye, which kept it differently.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise TypeError(f"path is that of a file, not {path!r:.80}")
        name = os.fsdecode(path)
        if name in (":memory:", ""):
            raise ValueError("an SQLiteStore needs a file; use InMemoryStore instead")
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
            raise TypeError(f"timeout is a number of seconds, not {timeout!r:.80}")
        if not 0 <= timeout <= MAX_TIMEOUT:
            raise ValueError(
                f"timeout is a number of seconds up to {MAX_TIMEOUT}, not {timeout!r}"
            )
        # As it is now: a program may go to another folder.
        self.path = os.path.abspath(name)
        self.timeout = timeout

    def connect(self) -> sqlite3.Connection:
        """Return a new connection to the file; a subclass may open it in other ways."""
        import sqlite3

        return sqlite3.connect(self.path, timeout=self.timeout, isolation_level=None)

    def load(self, context: MemoryContext) -> Sequence[Message]:
        """Return the session's messages, oldest first."""
        with self._opened() as connection:
            rows = connection.execute(
                "SELECT message FROM aeye_messages "
                "WHERE session_id = ? AND user_id = ? ORDER BY id",
                context.key,
            ).fetchall()
        return tuple(Message.from_dict(json.loads(text)) for (text,) in rows)

    def append(
        self,
        context: MemoryContext,
        run_id: str,
        turn: int,
        messages: Sequence[Message],
    ) -> None:
        """Add *messages*, all or none."""
        rows = [(*context.key, run_id, turn, _json(m.to_dict())) for m in messages]
        with self._writing() as connection:
            connection.executemany(
                "INSERT INTO aeye_messages "
                "(session_id, user_id, run_id, turn, message) VALUES (?, ?, ?, ?, ?)",
                rows,
            )

    def clear(self, context: MemoryContext) -> None:
        """Forget the session, its errors too."""
        with self._writing() as connection:
            for table in ("aeye_messages", "aeye_errors", "aeye_calls"):
                connection.execute(
                    f"DELETE FROM {table} WHERE session_id = ? AND user_id = ?",
                    context.key,
                )

    def record_error(
        self,
        context: MemoryContext,
        run_id: str,
        error: BaseException,
        messages: Sequence[Message],
    ) -> None:
        """Note how a run failed, and its new messages."""
        said = _json([message.to_dict() for message in messages])
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO aeye_errors "
                "(session_id, user_id, run_id, error, messages) VALUES (?, ?, ?, ?, ?)",
                (*context.key, run_id, f"{type(error).__name__}: {error}", said),
            )

    def start_call(self, context: MemoryContext, tool_call_id: str) -> bool:
        """Note that a call is run that had waited; False where that was noted."""
        with self._writing() as connection:
            done = connection.execute(
                "INSERT OR IGNORE INTO aeye_calls VALUES (?, ?, ?)",
                (*context.key, tool_call_id),
            )
            return done.rowcount == 1

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Give a connection within a transaction; it is kept if nothing is raised."""
        with self._opened() as connection:
            _log_ahead(connection)
            # Not the default, which takes the lock when it first writes: what was
            # read before would be old by then.
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Give a connection to a file that is ours; closing it undoes what is open."""
        import sqlite3

        try:
            with closing(self.connect()) as connection:
                version = _version(connection)
                if version is None:
                    version = _create(connection)
                if version != _VERSION:
                    raise ValueError(
                        f"the sessions in {self.path} are kept as version {version} of "
                        f"the file, and this aeye reads version {_VERSION}: use the "
                        "aeye that wrote it, or another file"
                    )
                yield connection
        except sqlite3.Error as exc:
            raise type(exc)(f"the sessions in {self.path}: {exc}") from exc

    def __repr__(self) -> str:
        return f"<SQLiteStore {self.path}>"


def _version(connection: sqlite3.Connection) -> int | None:
    """Return the version of a file's layout; None where nothing of ours is in it."""
    made = "SELECT 1 FROM sqlite_master WHERE name = 'aeye_schema'"
    if connection.execute(made).fetchone() is None:
        return None
    (version,) = connection.execute("SELECT version FROM aeye_schema").fetchone()
    return int(version)


def _create(connection: sqlite3.Connection) -> int:
    """Make the tables, unless somebody else is quicker; return their version."""
    _log_ahead(connection)
    connection.execute("BEGIN IMMEDIATE")
    version = _version(connection)
    if version is None:
        for statement in _CREATE:
            connection.execute(statement)
        version = _VERSION
    connection.execute("COMMIT")
    return version


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Let readers and a writer work side by side from now on; mostly they do already.

    This does not wait for others that have the file open, and need not: who writes
    next asks again.
    """
    import sqlite3

    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")


class Journal:
    """Saves one run's new messages, when its policy says so."""

    def __init__(
        self, options: MemoryOptions, context: MemoryContext, run_id: str
    ) -> None:
        self._store = options.store
        self._policy = options.save_policy
        self._context = context
        self._run_id = run_id
        self._turn = 1
        # Messages that are not saved yet, and the calls among them without a reply.
        self._pending: List[Message] = []
        self._open: set[Optional[str]] = set()

    def load(self) -> Sequence[Message]:
        """Return what the session holds."""
        return tuple(self._store.load(self._context))

    def catch_up(self, said: Sequence[Message]) -> Sequence[Message]:
        """Return what a run goes on from that waited, *said* being where it did.

        That is what the session holds, where it got further; else *said*, of which
        the session takes in what it does not hold.

        Raises:
            ValueError: the session got to an answer: there is nothing to go on with.
        """
        held = self.load()
        asked = next((m for m in reversed(said) if m.tool_calls), None)
        if asked is not None and asked in held:
            if held[-1].role == "assistant":
                raise ValueError(
                    "nothing waits any more: the session holds what came of these "
                    "calls, and an answer after them; see session.messages()"
                )
            return held
        for message in said[_overlap(held, said) :]:
            self.message(message)
        return said

    def start(self, tool_call_id: str) -> bool:
        """Whether a call that had waited may be run: nobody has begun it before."""
        start = getattr(self._store, "start_call", None)
        return start is None or bool(start(self._context, tool_call_id))

    def message(self, message: Message) -> None:
        """The run has a new *message*."""
        self._pending.append(message)
        self._open.update(call.id for call in message.tool_calls)
        self._open.discard(message.tool_call_id)
        answer = message.role == "assistant" and not message.tool_calls
        if self._policy == "message" or (self._policy == "turn" and answer):
            self._save()

    def turn(self, number: int) -> None:
        """A turn begins: the one before it is finished."""
        answered = any(m.role == "assistant" for m in self._pending)
        if self._policy == "turn" and answered:
            self._save()
        self._turn = number

    def end(self) -> None:
        """The run has its result: calls that it left without a reply get one."""
        self._open.clear()
        self._save()

    def fail(self, error: BaseException, messages: Sequence[Message]) -> None:
        """The run has failed; a store that fails too does not hide that."""
        record = getattr(self._store, "record_error", None)
        if record is not None:
            attempt(record, self._context, self._run_id, error, tuple(messages))

    def _save(self) -> None:
        if self._pending and not self._open:
            # Replies in the order of the calls: some may have waited.
            group, self._pending = repair(self._pending), []
            self._store.append(self._context, self._run_id, self._turn, group)


def _overlap(held: Sequence[Message], said: Sequence[Message]) -> int:
    """Return how many messages *said* begins with that stand together in *held*.

    Others may come after them there: of runs that were made in the meantime.
    """
    ends = (
        sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(held[at:], said)))
        for at in range(len(held))
    )
    return max(ends, default=0)


def _json(value: Any) -> str:
    # Escaped: half of a surrogate pair, which a tool may return, has no UTF-8.
    return json.dumps(value, separators=(",", ":"))
