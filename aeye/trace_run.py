"""One run as a trace tells it, from what observers are told or from its events."""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Callable, Dict, Iterator, List, Optional, Union

from .agent_event import AgentEvent, ChildEvent
from .errors import PromptCancelledError, PromptSuspend, ToolApprovalRequiredError
from .event import (
    CompleteEvent,
    Event,
    MessageEvent,
    ReasonPartialEvent,
    RefusalEvent,
    RequestEvent,
    SuspendEvent,
    TextPartialEvent,
    TextResetEvent,
    ToolErrorEvent,
    ToolInterruptEvent,
    ToolOutputEvent,
    ToolParseNameEvent,
    ToolProgressEvent,
    ToolStartEvent,
    ToolSuspendEvent,
)
from .hooks import (
    RunEndArgs,
    RunErrorArgs,
    ToolCallArgs,
    ToolErrorArgs,
    ToolResultArgs,
)
from .message import Json
from .observer import (
    GenerationObserver,
    ObservedGeneration,
    ObservedRun,
    RunEvent,
    RunObserver,
    ToolObserver,
)
from .request import Request
from .response import Response
from .trace_file import TraceFile
from .trace_value import numbers
from .usage import Usage

__all__ = ["TracedRun", "WatchedRun", "within"]

# The id of the tool call, or of the watched run, whose code is running: a run that
# begins there belongs to it.
_WITHIN: ContextVar[Optional[str]] = ContextVar("aeye_trace_within", default=None)


@contextmanager
def within(place: str) -> Iterator[None]:
    """Let runs that begin here belong to *place*, the id of a call or of a run."""
    token = _WITHIN.set(place)
    try:
        yield
    finally:
        _WITHIN.reset(token)


class TracedRun(RunObserver):
    """One run as it is written; observers of the fluent door tell it."""

    def __init__(self, file: TraceFile, run_id: str) -> None:
        self.file = file
        self.spelling = file.spelling
        self.id = run_id
        self._before: Optional[Request] = None
        self._asked = 0
        # The id of the last model call.
        self._last: Optional[str] = None

    @classmethod
    def of(cls, file: TraceFile, args: ObservedRun) -> TracedRun:
        """Return the run that begins, and write that it does."""
        run = cls(file, args.run_id)
        about: Json = {"agent": args.agent_name or args.agent_id}
        if args.agent_description is not None:
            about["description"] = args.agent_description
        if args.prompt is not None:
            about["prompt"] = run.spelling.message(args.prompt)
        options = run.spelling.value(args.trace)
        options.pop("fail_on_observer_error")
        about.update({name: said for name, said in options.items() if said})
        run.begin(about)
        return run

    def write(self, event: str, **fields: Any) -> None:
        """Write a line about this run."""
        self.file.write(event, run=self.id, **fields)

    def begin(self, about: Json, moment: float | None = None) -> None:
        """Write that the run begins."""
        parent = _WITHIN.get()
        placed = about if parent is None else {"parent": parent, **about}
        self.file.write("run_start", moment, run=self.id, **placed)

    def ask(self, request: Request, turn: int, vendor: str | None = None) -> str:
        """Write that the model is asked; return the id of that."""
        self._asked += 1
        self._last = f"{self.id}:{self._asked}"
        self.write(
            "model_start",
            id=self._last,
            turn=turn,
            **({} if vendor is None else {"vendor": vendor}),
            request=self.spelling.request(request, self._before),
        )
        self._before = request
        return self._last

    def answer(self, asked: str, response: Json, usage: Json, **more: float) -> None:
        """Write what the model answered."""
        self.write("model_end", id=asked, response=response, usage=usage, **more)

    def call(self, args: ToolCallArgs) -> None:
        """Write that a tool is called."""
        self.write(
            "tool_start",
            id=args.internal_call_id,
            turn=args.turn,
            tool=args.tool_name,
            call=args.tool_call_id,
            args=self.spelling.text(args.args),
        )

    def note(self, name: str, level: str, attributes: Any) -> None:
        """Write something about the last model call, or the run."""
        about = {} if self._last is None else {"id": self._last}
        said = self.spelling.value(attributes)
        self.write("note", **about, name=name, level=level, attributes=said)

    def fail(self, error: BaseException, usage: Usage) -> None:
        """Write that the run has no result."""
        status = "failed"
        if isinstance(error, (PromptCancelledError, GeneratorExit)):
            status = "cancelled"
        elif isinstance(error, (ToolApprovalRequiredError, PromptSuspend)):
            status = "suspended"
        said = self.spelling.error(error)
        self.write("run_error", status=status, error=said, usage=numbers(usage))

    def start_generation(self, args: ObservedGeneration) -> _Generation:
        """The model is about to be asked."""
        return _Generation(self, self.ask(args.request, args.turn, args.vendor))

    def start_tool(self, args: ToolCallArgs) -> _ToolCall:
        """A tool is about to be called."""
        self.call(args)
        return _ToolCall(self, args.internal_call_id)

    def event(self, args: RunEvent) -> None:
        """Something happened that is worth a note."""
        self.note(args.name, args.level, args.attributes)

    def end(self, args: RunEndArgs) -> None:
        """The run has its result."""
        self.finish("completed", self.spelling.text(args.output), args.usage)

    def finish(self, status: str, output: Any, usage: Usage) -> None:
        """Write how the run ended, where it did not fail."""
        said = {} if output is None else {"output": output}
        self.write("run_end", status=status, **said, usage=numbers(usage))

    def error(self, args: RunErrorArgs) -> None:
        """The run has failed, or was cancelled."""
        self.fail(args.error, args.usage)


class _Generation(GenerationObserver):
    """One model call as it is written."""

    def __init__(self, run: TracedRun, asked: str) -> None:
        self._run = run
        self._asked = asked
        self._streamed = False

    def update(self, turn: int, delta: AgentEvent) -> None:
        self._streamed = True

    def end(
        self, turn: int, response: Response, first_delta_ms: float | None = None
    ) -> None:
        more = {}
        if self._streamed and first_delta_ms is not None:
            more["first"] = round(first_delta_ms / 1000, 6)
        said = self._run.spelling.response(response)
        self._run.answer(self._asked, said, numbers(response.usage), **more)

    def error(self, turn: int, error: BaseException) -> None:
        said = self._run.spelling.error(error)
        self._run.write("model_error", id=self._asked, error=said)


class _ToolCall(ToolObserver):
    """One tool call as it is written."""

    def __init__(self, run: TracedRun, call: str) -> None:
        self._run = run
        self._call = call
        # When and where the tool's own code ran.
        self._ran: Json = {}

    @contextmanager
    def inside(self) -> Iterator[None]:
        now = self._run.file.now
        self._ran.setdefault("began", now())
        self._ran["thread"] = threading.current_thread().name
        with within(self._call):
            yield
        self._ran["ended"] = now()

    def stream_event(self, event: Any) -> None:
        if not isinstance(event, AgentEvent):  # a child's are its own observers' matter
            said = self._run.spelling.value(event)
            self._run.write("tool_progress", id=self._call, value=said)

    def end(self, args: ToolResultArgs) -> None:
        more = {**self._ran, **({"skipped": True} if args.skipped else {})}
        said = self._run.spelling.text(args.result)
        self._run.write("tool_end", id=self._call, result=said, **more)

    def error(self, args: ToolErrorArgs) -> None:
        said = self._run.spelling.error(args.error, frames=True)
        self._run.write("tool_error", id=self._call, error=said, **self._ran)


class WatchedRun:
    """One run as its events tell it, written as the fluent door's are."""

    def __init__(self, file: TraceFile) -> None:
        self.id = str(uuid.uuid4())
        self._run = TracedRun(file, self.id)
        self._spelling = file.spelling
        self._started = file.now()
        self._begun = False
        self._turn = 0
        # The model call that is not answered yet: its id, when it was asked, the
        # seconds to its first piece, and its pieces of text.
        self._open: Optional[str] = None
        self._asked = 0.0
        self._first: Optional[float] = None
        self._texts: List[str] = []
        # What the run has cost, and had when the model was asked.
        self._usage = Usage.empty()
        self._paid: Json = {}
        # By a call's own id, that of the trace.
        self._tools: Dict[str, str] = {}
        self._last: Optional[Event] = None

    def hear(self, event: Event, usage: Usage) -> None:
        """Write what *event* tells; *usage* is what the run has cost so far."""
        self._begin({"agent": event.request.name})
        self._last, self._usage = event, usage
        hear = _HEARD.get(type(event))
        if hear is not None:
            hear(self, event)

    def end(self, error: BaseException | None, usage: Usage) -> None:
        """Write how it ended: with *error*, or with the last event."""
        self._begin({})
        if error is not None:
            said = self._spelling.error(error)
            if self._open is not None:
                heard = {"content": self._spelling.text("".join(self._texts))}
                self._run.write(
                    "model_error", id=self._open, error=said, response=heard
                )
            for call in self._tools.values():
                self._run.write("tool_error", id=call, error=said)
            self._run.fail(error, usage)
        elif isinstance(self._last, CompleteEvent):
            output = self._spelling.value(self._last.output)
            self._run.finish("completed", output, usage)
        else:
            waits = isinstance(self._last, SuspendEvent)
            self._run.finish("suspended" if waits else "stopped", None, usage)

    def _begin(self, about: Json) -> None:
        if not self._begun:
            self._begun = True
            self._run.begin(about, self._started)

    def _request(self, event: RequestEvent) -> None:
        self._turn += 1
        self._open = self._run.ask(event.request, self._turn)
        self._asked, self._first, self._texts = self._run.file.now(), None, []

    def _piece(self, event: Event) -> None:
        if self._first is None:
            self._first = round(self._run.file.now() - self._asked, 6)
        if isinstance(event, TextPartialEvent):
            self._texts.append(event.content)

    def _message(self, event: MessageEvent) -> None:
        if event.message.role == "assistant":
            said = self._spelling.message(event.message)
            del said["role"]
            self._answer(said)

    def _refusal(self, event: RefusalEvent) -> None:
        self._answer({"content": "", "refusal": self._spelling.text(event.content)})

    def _reset(self, event: TextResetEvent) -> None:
        self._answer({"content": self._spelling.text("".join(self._texts))})
        about = {"turn": self._turn, "reason": event.reason}
        self._run.note("completion.reset", "WARNING", about)

    def _answer(self, response: Json) -> None:
        if self._open is None:
            return
        now = numbers(self._usage)
        spent = {name: now[name] - self._paid.get(name, 0) for name in now}
        more = {} if self._first is None else {"first": self._first}
        self._run.answer(self._open, response, spent, **more)
        self._open, self._paid = None, now

    def _start(self, event: ToolStartEvent) -> None:
        self._call(event.tool_call_id, event.tool.name, event.args)

    def _call(self, call_id: str, tool: str, args: Any) -> None:
        self._tools[call_id] = str(uuid.uuid4())
        self._run.call(
            ToolCallArgs(
                self._turn,
                tool_name=tool,
                tool_call_id=call_id,
                internal_call_id=self._tools[call_id],
                args=self._as_text(args),
            )
        )

    def _as_text(self, value: Any) -> str:
        if isinstance(value, str):
            return self._spelling.text(value)
        return json.dumps(self._spelling.value(value), ensure_ascii=False)

    def _progress(self, event: ToolProgressEvent) -> None:
        call = self._tools.get(event.tool_call_id)
        if not isinstance(event.value, ChildEvent):
            said = self._spelling.value(event.value)
            self._run.write("tool_progress", id=call, value=said)

    def _output(self, event: ToolOutputEvent) -> None:
        result = self._as_text(event.to_model)
        self._settle("tool_end", event.tool_call_id, result=result)

    def _stop(self, event: Union[ToolInterruptEvent, ToolSuspendEvent]) -> None:
        said = {"type": event.type, "message": self._spelling.text(event.reason)}
        self._settle("tool_error", event.tool_call_id, error=said)

    def _error(self, event: ToolErrorEvent) -> None:
        if event.tool_call_id not in self._tools:  # it has not even begun
            name = event.tool.name if event.tool is not None else ""
            self._call(event.tool_call_id, name, event.raw_args or event.args)
        said = self._spelling.error(event.error, frames=True)
        self._settle("tool_error", event.tool_call_id, error=said)

    def _settle(self, what: str, call_id: str, **fields: Any) -> None:
        call = self._tools.pop(call_id, None)
        if call is not None:
            self._run.write(what, id=call, **fields)


_HEARD: Dict[type, Callable[[WatchedRun, Any], None]] = {
    RequestEvent: WatchedRun._request,
    TextPartialEvent: WatchedRun._piece,
    ReasonPartialEvent: WatchedRun._piece,
    ToolParseNameEvent: WatchedRun._piece,
    MessageEvent: WatchedRun._message,
    RefusalEvent: WatchedRun._refusal,
    TextResetEvent: WatchedRun._reset,
    ToolStartEvent: WatchedRun._start,
    ToolProgressEvent: WatchedRun._progress,
    ToolOutputEvent: WatchedRun._output,
    ToolInterruptEvent: WatchedRun._stop,
    ToolSuspendEvent: WatchedRun._stop,
    ToolErrorEvent: WatchedRun._error,
}
