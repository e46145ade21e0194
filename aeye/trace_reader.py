"""Reading a trace: lines of JSON become runs with their model calls and tools.

A trace may have been cut while it was written, and edited since: a line that cannot be
read is left out and noted. Nothing in a trace is trusted to be of its type.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Union

from .message import Json
from .trace_file import FORMAT

__all__ = ["ModelSpan", "RunSpan", "Span", "ToolSpan", "Trace", "read_trace"]


@dataclass
class Span:
    """Something that took time. Times are in seconds since 1970."""

    id: str
    start: float
    # None: the trace does not say, because it was cut or goes on.
    end: Optional[float] = None
    # As it was written: type, message and so on. None: it did not fail.
    error: Optional[Json] = None
    # What is worth a note, as it was written.
    notes: List[Json] = field(default_factory=list)


@dataclass
class ModelSpan(Span):
    """One model call, its retries included."""

    turn: int = 0
    vendor: str = ""
    request: Json = field(default_factory=dict)
    # None where there is none yet, or never.
    response: Optional[Json] = None
    usage: Dict[str, float] = field(default_factory=dict)
    # Seconds to the first piece of a streamed answer.
    first: Optional[float] = None
    # The run's model call before this one, whose messages the request begins with.
    before: Optional[ModelSpan] = None

    @property
    def model(self) -> str:
        """The model that answered, else the one that was asked."""
        answered = (self.response or {}).get("model")
        return str(answered or self.request.get("model") or "")


@dataclass
class ToolSpan(Span):
    """One tool call."""

    turn: int = 0
    name: str = ""
    call: str = ""
    args: str = ""
    result: Optional[str] = None
    skipped: bool = False
    # The thread that the tool ran in, where that is known.
    thread: str = ""
    progress: List[Any] = field(default_factory=list)
    # Runs that the tool began.
    runs: List[RunSpan] = field(default_factory=list)


@dataclass
class RunSpan(Span):
    """One run."""

    agent: str = ""
    # What was said about it when it began.
    about: Json = field(default_factory=dict)
    # "completed", "failed", "cancelled", "suspended", "stopped" or "unfinished".
    status: str = "unfinished"
    output: Any = None
    usage: Dict[str, float] = field(default_factory=dict)
    calls: List[ModelSpan] = field(default_factory=list)
    tools: List[ToolSpan] = field(default_factory=list)
    # Runs that began in it, and in no tool that is known.
    runs: List[RunSpan] = field(default_factory=list)
    # When the trace last said something of it.
    heard: float = 0.0

    def walk(self) -> Iterator[RunSpan]:
        """Yield this run and all that began in it."""
        yield self
        for tool in self.tools:
            for run in tool.runs:
                yield from run.walk()
        for run in self.runs:
            yield from run.walk()


@dataclass
class Trace:
    """All that a trace tells."""

    # Those that began in no other one, in the order they began.
    runs: List[RunSpan] = field(default_factory=list)
    # Numbers of the lines that could not be read; they count from 1.
    damaged: List[int] = field(default_factory=list)

    @property
    def damage(self) -> str:
        """What to tell of that; nothing where nothing is damaged."""
        if not self.damaged:
            return ""
        lines = ", ".join(map(str, self.damaged[:5]))
        more = " and more" if len(self.damaged) > 5 else ""
        plural = "" if len(self.damaged) == 1 else "s"
        return f"left out {len(self.damaged)} damaged line{plural}: {lines}{more}"


def read_trace(lines: Iterable[Union[str, bytes]]) -> Trace:
    """Read a trace from its *lines*.

    >>> trace = read_trace(['{"event":"trace","time":0,"format":1}', '{"eve'])
    >>> trace.runs, trace.damaged
    ([], [2])

    Raises:
        ValueError: it is no trace, or one of a later format.
    """
    reading = _Reading()
    for number, line in enumerate(lines, 1):
        if line.strip():
            reading.take(number, line)
    if not reading.known:
        raise ValueError("it is not a trace: no line of it is an event of a run")
    return reading.trace


class _Reading:
    """A trace as far as it was read."""

    def __init__(self) -> None:
        self.trace = Trace()
        # Lines that were understood.
        self.known = 0
        self._runs: Dict[str, RunSpan] = {}
        self._calls: Dict[str, ModelSpan] = {}
        self._tools: Dict[str, ToolSpan] = {}

    def take(self, number: int, line: Union[str, bytes]) -> None:
        """Read one line."""
        try:
            record = json.loads(line)
            moment, take = _time(record["time"]), _EVENTS[record["event"]]
            take(self, record, moment)
            run = self._runs.get(record.get("run"))
            if run is not None:
                run.heard = max(run.heard, moment)
            self.known += 1
        except _Later as later:
            raise ValueError(str(later)) from None
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
            self.trace.damaged.append(number)

    def _header(self, record: Json, moment: float) -> None:
        if record["format"] != FORMAT:
            raise _Later(
                f"it is a trace of format {record['format']!r:.20}, and this version "
                f"of aeye reads format {FORMAT}"
            )

    def _run_start(self, record: Json, moment: float) -> None:
        about = {k: v for k, v in record.items() if k not in _PLACE}
        agent = str(about.pop("agent", ""))
        name = _text(record, "run")
        run = RunSpan(name, moment, agent=agent, about=about, heard=moment)
        self._runs[run.id] = run
        parent = record.get("parent")
        if parent in self._tools:
            self._tools[parent].runs.append(run)
        elif parent in self._runs and parent != run.id:
            self._runs[parent].runs.append(run)
        else:
            self.trace.runs.append(run)

    def _run_end(self, record: Json, moment: float) -> None:
        run = self._runs[record["run"]]
        run.status, run.end = str(record["status"]), moment
        run.output, run.usage = record.get("output"), _usage(record)
        run.error = _object(record, "error")

    def _model_start(self, record: Json, moment: float) -> None:
        run, request = self._runs[record["run"]], record["request"]
        call = ModelSpan(
            _text(record, "id"),
            moment,
            turn=int(record["turn"]),
            vendor=str(record.get("vendor", "")),
            request=dict(request),
            before=run.calls[-1] if run.calls else None,
        )
        run.calls.append(call)
        self._calls[call.id] = call

    def _model_end(self, record: Json, moment: float) -> None:
        call = self._calls[record["id"]]
        call.end, call.response = moment, dict(record["response"])
        call.usage = _usage(record)
        if "first" in record:
            call.first = _number(record["first"])

    def _model_error(self, record: Json, moment: float) -> None:
        call = self._calls[record["id"]]
        call.end, call.error = moment, dict(record["error"])
        call.response = _object(record, "response")

    def _tool_start(self, record: Json, moment: float) -> None:
        tool = ToolSpan(
            _text(record, "id"),
            moment,
            turn=int(record["turn"]),
            name=str(record["tool"]),
            call=str(record["call"]),
            args=str(record["args"]),
        )
        self._runs[record["run"]].tools.append(tool)
        self._tools[tool.id] = tool

    def _tool_progress(self, record: Json, moment: float) -> None:
        self._tools[record["id"]].progress.append(record["value"])

    def _tool_end(self, record: Json, moment: float) -> None:
        tool = self._tools[record["id"]]
        # The thread that reads may hear of it late; the tool's own clock is better.
        tool.start = _time(record.get("began", tool.start))
        tool.end = _time(record.get("ended", moment))
        tool.thread = str(record.get("thread", ""))
        tool.skipped = record.get("skipped") is True
        tool.error = _object(record, "error")
        if "result" in record:
            tool.result = str(record["result"])

    def _note(self, record: Json, moment: float) -> None:
        note = {"name": str(record["name"]), "level": str(record["level"])}
        said = dict(record["attributes"])
        about: Any = self._tools.get(said.get("internal_call_id", ""))
        about = about or self._calls.get(record.get("id", ""))
        about = about or self._runs[record["run"]]
        about.notes.append({**note, "time": moment, "attributes": said})


class _Later(Exception):  # noqa: N818  # never leaves this module
    """The trace is of a format that came later."""


# The year 5138: what is later was not written by a clock.
_END_OF_TIME = 1e11
# What places a run, and is not about it.
_PLACE = frozenset({"event", "time", "run", "parent"})

_EVENTS: Dict[str, Callable[[_Reading, Json, float], None]] = {
    "trace": _Reading._header,
    "run_start": _Reading._run_start,
    "run_end": _Reading._run_end,
    "run_error": _Reading._run_end,
    "model_start": _Reading._model_start,
    "model_end": _Reading._model_end,
    "model_error": _Reading._model_error,
    "tool_start": _Reading._tool_start,
    "tool_progress": _Reading._tool_progress,
    "tool_end": _Reading._tool_end,
    "tool_error": _Reading._tool_end,
    "note": _Reading._note,
}


def _object(record: Json, name: str) -> Optional[Json]:
    return dict(record[name]) if name in record else None


def _usage(record: Json) -> Dict[str, float]:
    return {str(name): _number(n) for name, n in record.get("usage", {}).items()}


def _text(record: Json, name: str) -> str:
    if not isinstance(record[name], str):
        raise TypeError(f"{name} is a text, not {record[name]!r:.80}")
    return record[name]  # type: ignore[no-any-return]  # looked at a line before


def _time(value: Any) -> float:
    moment = _number(value)
    if not 0 <= moment < _END_OF_TIME:
        raise ValueError(f"{value!r} is no time")
    return moment


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is no time and no count")
    return number
