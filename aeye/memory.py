"""Sessions: where their messages are kept, and when they are saved.

A store is any object with ``load``, ``append`` and ``clear``, and perhaps
``record_error`` and ``start_call``. Two are here: one in memory, one in an SQLite
file.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
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

if TYPE_CHECKING:
    import os
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


@dataclass(frozen=True)
class MemoryContext:
    """Which session it is; the same id of two users is two sessions."""

    session_id: str
    user_id: Optional[str] = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

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


_TABLES = """
CREATE TABLE IF NOT EXISTS aeye_messages (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    turn INTEGER NOT NULL,
    message TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS aeye_sessions ON aeye_messages (session_id, user_id);
CREATE TABLE IF NOT EXISTS aeye_errors (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    error TEXT NOT NULL,
    messages TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS aeye_calls (
    session_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    PRIMARY KEY (session_id, user_id, tool_call_id)
);
"""


class SQLiteStore:
    """Sessions in an SQLite file, one row a message.

    Each call opens the file anew, so that the store may be shared by threads and
    processes, survives a fork and holds nothing open.

    Raises:
        ValueError: *path* is ``":memory:"``, which would be empty every time.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if str(path) in (":memory:", ""):
            raise ValueError("an SQLiteStore needs a file; use InMemoryStore instead")
        self.path = str(path)
        self._ready = False

    def load(self, context: MemoryContext) -> Sequence[Message]:
        """Return the session's messages, oldest first."""
        rows = self._run(
            "SELECT message FROM aeye_messages "
            "WHERE session_id = ? AND user_id = ? ORDER BY id",
            [context.key],
        )
        return tuple(Message.from_dict(json.loads(text)) for (text,) in rows)

    def append(
        self,
        context: MemoryContext,
        run_id: str,
        turn: int,
        messages: Sequence[Message],
    ) -> None:
        """Add *messages*, all or none."""
        self._run(
            "INSERT INTO aeye_messages (session_id, user_id, run_id, turn, message) "
            "VALUES (?, ?, ?, ?, ?)",
            [(*context.key, run_id, turn, _json(m.to_dict())) for m in messages],
        )

    def clear(self, context: MemoryContext) -> None:
        """Forget the session, its errors too."""
        for table in ("aeye_messages", "aeye_errors", "aeye_calls"):
            self._run(
                f"DELETE FROM {table} WHERE session_id = ? AND user_id = ?",
                [context.key],
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
        self._run(
            "INSERT INTO aeye_errors (session_id, user_id, run_id, error, messages) "
            "VALUES (?, ?, ?, ?, ?)",
            [(*context.key, run_id, f"{type(error).__name__}: {error}", said)],
        )

    def start_call(self, context: MemoryContext, tool_call_id: str) -> bool:
        """Note that a call is run that had waited; False where that was noted."""
        connection = self._open()
        try:
            with connection:
                done = connection.execute(
                    "INSERT OR IGNORE INTO aeye_calls VALUES (?, ?, ?)",
                    (*context.key, tool_call_id),
                )
                return done.rowcount == 1
        finally:
            connection.close()

    def _run(self, sql: str, rows: Sequence[Tuple[Any, ...]]) -> List[Any]:
        """Execute *sql* for each of *rows* in one transaction; return what it gives."""
        found: List[Any] = []
        connection = self._open()
        try:
            with connection:
                for row in rows:
                    found += connection.execute(sql, row).fetchall()
        finally:
            connection.close()
        return found

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        connection = sqlite3.connect(self.path, timeout=30)
        try:
            if not self._ready:
                connection.executescript(_TABLES)
                self._ready = True
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def __repr__(self) -> str:
        return f"<SQLiteStore {self.path}>"


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
        """
        held = self.load()
        asked = next((m for m in reversed(said) if m.tool_calls), None)
        if asked is not None and asked in held:
            return held
        last = held[-1] if held else None
        at = max((i for i, m in enumerate(said) if m == last), default=-1)
        for message in said[at + 1 :]:
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
        """The run has its result."""
        self._save()

    def fail(self, error: BaseException, messages: Sequence[Message]) -> None:
        """The run has failed; a store that fails too does not hide that."""
        record = getattr(self._store, "record_error", None)
        if record is not None:
            attempt(record, self._context, self._run_id, error, tuple(messages))

    def _save(self) -> None:
        if self._pending and not self._open:
            group, self._pending = tuple(self._pending), []
            self._store.append(self._context, self._run_id, self._turn, group)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
