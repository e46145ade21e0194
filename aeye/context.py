"""What a run carries: the model, a history, limits, a signal and the caller's own."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Dict, Iterable, Mapping, Optional, Tuple

from .callback import Bound, bind
from .message import Message
from .schema_slip import is_one_edit
from .usage import Usage

__all__ = ["Abort", "Context", "Result", "Resume", "charge", "inside"]


@dataclass(frozen=True)
class Result:
    """In ``ctx.decisions``: answer the call with *value* instead of running it."""

    value: Any = None


@dataclass(frozen=True)
class Resume:
    """In ``ctx.decisions``: the run inside the call goes on, from *messages*.

    *decisions* are about that run's own calls. The tool is run again and finds both
    on its context.
    """

    messages: Tuple[Message, ...]
    decisions: Mapping[str, Any]


class Abort:
    """A flag that ends runs, and whatever they wait for.

    Anything with ``is_set()``, such as a ``threading.Event``, can be a
    ``ctx.signal`` and is looked at between chunks, calls and retries. An ``Abort``
    also wakes what is blocked: a stalled stream, a wait before a retry.
    """

    def __init__(self) -> None:
        self._set = False
        # Made when somebody waits: most runs never do.
        self._event: Optional[threading.Event] = None
        # Re-entrant: a signal handler may call set() while this thread holds it.
        self._lock = threading.RLock()
        self._watchers: Dict[object, Callable[[], object]] = {}
        self._parent: Any = None

    @classmethod
    def linked(cls, signal: Any) -> tuple[Abort, Callable[[], None]]:
        """Return an Abort that *signal* sets too, and a function that unlinks it."""
        child = cls()
        if signal is None:
            return child, _nothing
        if isinstance(signal, Abort):
            # A signal that is foreign to it tells nobody: that is looked at here too.
            child._parent = signal._parent
            return child, signal.watch(child.set)
        child._parent = signal
        return child, _nothing

    def set(self) -> None:
        """End everything that carries this signal. Calling it again does nothing."""
        with self._lock:
            if self._set:
                return
            self._set = True
            if self._event is not None:
                self._event.set()
            watchers = list(self._watchers.values())
            self._watchers.clear()
        for watcher in watchers:
            watcher()

    def is_set(self) -> bool:
        """Whether this, or the signal it is linked to, has been set."""
        if self._set:
            return True
        return self._parent is not None and bool(self._parent.is_set())

    def wait(self, timeout: float) -> bool:
        """Sleep for *timeout* seconds or until set; return whether it is set."""
        with self._lock:
            event = self._event = self._event or threading.Event()
            if self._set:
                event.set()
        if self._parent is None:
            return event.wait(timeout)
        # A foreign signal cannot wake us: look at it a few times a second.
        while timeout > 0 and not self.is_set():
            event.wait(min(timeout, 0.05))
            timeout -= 0.05
        return self.is_set()

    def watch(self, call: Callable[[], object]) -> Callable[[], None]:
        """Have *call* called once when set, at once if it is; return an undo."""
        key = object()
        with self._lock:
            if not self._set:
                self._watchers[key] = call
                return lambda: self._forget(key)
        call()
        return _nothing

    def _forget(self, key: object) -> None:
        with self._lock:
            self._watchers.pop(key, None)

    def __repr__(self) -> str:
        return f"<Abort {'set' if self.is_set() else 'not set'}>"

    def __reduce__(self) -> tuple[Callable[[bool], Abort], tuple[bool]]:
        return _abort, (self.is_set(),)


def _nothing() -> None:
    return None


def _abort(was_set: bool) -> Abort:
    abort = Abort()
    if was_set:
        abort.set()
    return abort


class Context:
    """What a run is given. Read-only; ``replace`` makes a changed copy.

    Whatever else is passed by name becomes an attribute: tools, hooks and templates'
    ``input`` functions find the caller's database or user there. A name that is one
    edit away from one of ours is refused, since it is most likely a slip.
    """

    is_aeye_context: ClassVar[bool] = True

    # Tuples of Message; a list is taken. Seen by the model after the system message.
    messages: Tuple[Message, ...]
    # ``execute(request, ctx) -> Response`` and ``stream(request, ctx) -> chunks``
    # send what they are given; ``prepare(request, ctx) -> Request`` is pure.
    execute: Optional[Callable[..., Any]]
    stream: Optional[Callable[..., Any]]
    prepare: Optional[Callable[..., Any]]
    # Anything with ``is_set()``.
    signal: Any
    # ``estimate_usage(message) -> Usage | dict | int``, tokens of one message.
    estimate_usage: Optional[Callable[..., Any]]
    # Tokens.
    max_output_tokens: Optional[int]
    context_window: Optional[int]
    output_retries: Optional[int]
    forget_retries: Optional[int]
    tool_retries: Optional[int]
    user_turn: Any
    metadata: Mapping[str, Any]
    # {call id: True | "why not" | Result(value) | Resume(…)} for calls that wait.
    decisions: Optional[Mapping[str, Any]]
    # Refuse a broken history instead of repairing it.
    strict_history: bool
    # Inside a tool: the id of the call it runs for.
    tool_call_id: Optional[str]

    def __init__(  # noqa: PLR0913  # the public constructor's names are the contract
        self,
        *,
        messages: Iterable[Message] = (),
        execute: Callable[..., Any] | None = None,
        stream: Callable[..., Any] | None = None,
        prepare: Callable[..., Any] | None = None,
        signal: Any = None,
        estimate_usage: Callable[..., Any] | None = None,
        max_output_tokens: int | None = None,
        context_window: int | None = None,
        output_retries: int | None = None,
        forget_retries: int | None = None,
        tool_retries: int | None = None,
        user_turn: Any = None,
        metadata: Mapping[str, Any] | None = None,
        decisions: Mapping[str, Any] | None = None,
        strict_history: bool = False,
        tool_call_id: str | None = None,
        **app: Any,
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "app")}
        given["messages"] = _messages(messages)
        given["metadata"] = dict(metadata or {})
        for name in app:
            _check_name(name)
        for name in _COUNTS:
            _check_count(name, given[name])
        if signal is not None and not callable(getattr(signal, "is_set", None)):
            raise TypeError(f"signal has is_set(); {signal!r:.80} has not")
        self.__dict__.update(given, **app)
        self.__dict__[_CALLS] = _bind_all(given)
        self.__dict__[_CHARGE] = None

    @classmethod
    def of(cls, value: Context | Mapping[str, Any] | None) -> Context:
        """Return *value* as a Context: itself, one made of a dict, or an empty one."""
        if isinstance(value, Context):
            return value
        if value is None:
            return cls()
        if isinstance(value, Mapping):
            return cls(**value)
        raise TypeError(f"ctx is a Context or a dict, not {value!r:.80}")

    def replace(self, **changes: Any) -> Context:
        """Return a copy with *changes*; this one stays as it is."""
        for name in changes:
            if name not in _NAMES and name not in self.__dict__:
                _check_name(name)
        if "messages" in changes:
            changes["messages"] = _messages(changes["messages"])
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(changes)
        if not _FUNCTIONS.keys().isdisjoint(changes):
            copy.__dict__[_CALLS] = _bind_all(copy.__dict__)
        return copy

    def bound(self, name: str) -> Bound | None:
        """Return the function *name* of this context, ready to be called, or None."""
        found: Dict[str, Bound] = self.__dict__[_CALLS]
        return found.get(name)

    def close(self) -> None:
        """Close idle connections to the model, if this context has any.

        The context can still be used: connections are opened again when needed.
        """
        closing = self.__dict__.get(_CLOSE)
        if closing is not None:
            closing()

    def __getstate__(self) -> Dict[str, Any]:
        ours = (_CALLS, _CHARGE)
        return {k: v for k, v in self.__dict__.items() if k not in ours}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__[_CALLS] = _bind_all(state)
        self.__dict__[_CHARGE] = None

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"a Context is read-only: ctx.replace({name}=…) makes a changed copy"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Context is read-only: {name!r} cannot be deleted")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"this Context has no {name!r}: pass it when the context is made, "
            f"or add it with ctx.replace({name}=…)"
        )

    def __repr__(self) -> str:
        # App fields by name only: a key or a password may be among them.
        said = []
        for name in sorted(self.__dict__):
            value = self.__dict__[name]
            if name == "messages":
                said += [f"messages=<{len(value)}>"] if value else []
            elif name in _PLAIN and value not in (None, False):
                said.append(f"{name}={value!r}")
            elif name not in _NAMES or (name in _FUNCTIONS and value is not None):
                said += [] if name in (_CLOSE, _CALLS, _CHARGE) else [f"{name}=…"]
        return f"Context({', '.join(said)})"


def inside(ctx: Context, outer: Context) -> Context:
    """Return *ctx* for a run within a call of the run that *outer* is of.

    It ends when that run does, goes on where it waited, and what it costs is told
    there; all else is its own.
    """
    return ctx.replace(
        signal=outer.signal,
        decisions=outer.decisions,
        tool_call_id=None,
        _charge=outer.__dict__[_CHARGE],
    )


def charge(ctx: Context, usages: Iterable[Usage]) -> None:
    """Tell the run around the one that *ctx* was given to what that one cost."""
    tell = ctx.__dict__[_CHARGE]
    if tell is not None:
        for usage in filter(None, usages):
            tell(usage)


_CLOSE = "_close"
_CALLS = "_calls"
# Is told what a run with this context has cost.
_CHARGE = "_charge"
# Our functions, and what each may ask for by name.
_FUNCTIONS: Dict[str, Tuple[str, ...]] = {
    "execute": ("ctx", "metadata", "signal"),
    "stream": ("ctx", "metadata", "signal"),
    "prepare": ("ctx", "metadata", "signal"),
    "estimate_usage": (),
}
_COUNTS = (
    "max_output_tokens",
    "context_window",
    "output_retries",
    "forget_retries",
    "tool_retries",
)
_PLAIN = frozenset(_COUNTS) | {"user_turn", "strict_history", "tool_call_id"}
_NAMES = frozenset(Context.__annotations__) - {"is_aeye_context"}


def _bind_all(given: Mapping[str, Any]) -> Dict[str, Bound]:
    return {
        name: bind(given[name], name, names)
        for name, names in _FUNCTIONS.items()
        if given[name] is not None
    }


def _messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    found = tuple(messages)
    for message in found:
        if not isinstance(message, Message):
            raise TypeError(
                f"messages holds Message values, not {message!r:.80}; "
                "Message.from_dict reads the JSON form"
            )
    return found


def _check_count(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r:.80}")
    if value < 0:
        raise ValueError(f"{name} is not negative, as {value!r} is")


def _check_name(name: str) -> None:
    for ours in _NAMES:
        if abs(len(ours) - len(name)) <= 1 and is_one_edit(name, ours):
            raise TypeError(
                f"Context has no {name!r}: did you mean {ours!r}? "
                "(a name of your own must differ by more than one letter)"
            )
