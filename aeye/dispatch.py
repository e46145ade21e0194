"""Run the calls of one turn, inline or on workers; what happens comes out as events.

Only the caller's thread yields. Workers run tools, the interceptor and the result
presenter, and put what came of it on a queue; replies are kept by the call's place,
so that messages are in call order whatever finishes first. Nothing here knows of
the model or of the run's limits.
"""

from __future__ import annotations

import contextvars
import inspect
import queue
import threading
from collections import deque
from collections.abc import Generator as GeneratorABC
from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    Deque,
    Dict,
    Generator,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
    cast,
)

from .call import (
    INTERRUPTED,
    NOT_RUN,
    Call,
    Execution,
    Status,
    ToolResult,
    content_of,
    to_content,
)
from .callback import Bound, attempt, words
from .context import Abort, Context, Result, Resume, charge
from .errors import (
    PromptSuspend,
    Signal,
    ToolInterrupt,
    ToolNotFoundError,
)
from .event import (
    Event,
    ToolArgRepairAttemptEvent,
    ToolErrorEvent,
    ToolInterruptEvent,
    ToolOutputEvent,
    ToolProgressEvent,
    ToolStartEvent,
    ToolSuspendEvent,
)
from .message import Message, ToolCall
from .quick import quick
from .request import Request
from .tools import RepairAttempt, Tool, ToolApproval
from .usage import Usage
from .workers import Workers

__all__ = ["Batch", "Setup", "suspend"]

Events = Generator[Event, None, None]


def suspend(call: Call, wish: ToolApproval) -> Any:
    """Let *call* wait for somebody's consent."""
    raise PromptSuspend


@quick
@dataclass(frozen=True)
class Setup:
    """What all batches of a run share."""

    tools: Mapping[str, Tool[Any]]
    ctx: Context
    abort: Abort
    workers: Workers
    mode: Execution = "immediate"
    concurrency: int = 32
    intercept: Optional[Bound] = None
    # One presenter for all tools, or one by tool name.
    present: Union[Bound, Mapping[str, Bound], None] = None
    truncate: Callable[[str], str] = str
    # These are asked in the caller's thread when a call is about to start: ``admit``
    # (it may change the arguments' text), then the arguments are read, ``before``,
    # and ``approve`` where the tool asks for consent. A text is the reply of a call
    # that is not run, a ``Result`` stands for the tool's; an exception that is no
    # signal ends the run.
    admit: Optional[Callable[[Call], Any]] = None
    before: Callable[[Call], Any] = lambda call: None
    approve: Callable[[Call, ToolApproval], Any] = suspend
    # Told in the caller's thread when a call's outcome is known; what it gives is
    # handed out before the call's own event.
    after: Callable[[Call], Iterable[Any]] = lambda call: ()


class Batch:
    """The calls of one turn.

    ``add`` them as they become complete; in immediate mode ``tick`` starts what may
    start while the answer still streams. ``finish`` runs the rest and returns when
    every started call has been reported; ``replies`` are then the tool messages.
    """

    def __init__(self, setup: Setup, request: Request) -> None:
        self.calls: List[Call] = []
        # What a door raised while the calls were run: it ends the run.
        self.fatal: Optional[Exception] = None
        self._setup = setup
        self._request = request
        self._outcomes: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._running = 0
        # Why nothing more may start: a key of NOT_RUN.
        self._halt: Optional[str] = None
        # Calls that were complete before the last chunk, those of them that were
        # looked at, and those that may start while the answer streams.
        self._ripe = self._looked = 0
        self._early: Deque[Call] = deque()
        # Running calls that have a deadline.
        self._timed: List[Call] = []

    @property
    def started(self) -> bool:
        """Whether any tool has been started."""
        return any(call.started for call in self.calls)

    def foresee(self, name: str) -> None:
        """Hear that a call to *name* is on its way."""
        if name not in self._setup.tools:
            self._halt = self._halt or "invalid"

    def complete(self, calls: Sequence[ToolCall]) -> None:
        """Take in all *calls* of the finished answer, in their order."""
        known = {made.call.id: made for made in self.calls}
        self.calls = []
        for call in calls:
            made = known.get(call.id)
            changed = made is not None and made.call != call
            if made is None or (changed and made.status == "waiting"):
                self.add(call)
            else:
                self.calls.append(made)

    def add(self, call: ToolCall, decision: Any = None) -> Call:
        """Take in a complete call; nothing is started yet."""
        tool = self._setup.tools.get(call.name)
        offered = (o.parameters for o in self._request.tools if o.name == call.name)
        schema = next(offered, None)
        made = Call(call, tool, schema, decision=decision)
        self.calls.append(made)
        if tool is None:
            names = ", ".join(sorted(self._setup.tools)) or "none"
            text = f"Tool not found: {call.name}. The tools are: {names}"
            text = self._setup.truncate(text)
            made.error = ToolNotFoundError(text, tool=call.name)
            made.reply = text
            self._halt = self._halt or "invalid"
        elif schema is None:
            made.settle("not_run", NOT_RUN["withdrawn"])
        elif self._request.tools_one_at_a_time and len(self.calls) > 1:
            made.settle("not_run", NOT_RUN["one"])
        return made

    def tick(self) -> Events:
        """Start what was complete before the chunk just read, report what is done."""
        fresh = self.calls[self._looked : self._ripe]
        self._looked, self._ripe = self._ripe, len(self.calls)
        self._early.extend(filter(_may_start_early, fresh))
        while self._early and self._running < self._setup.concurrency:
            if self._halt is not None or self._setup.abort.is_set():
                break
            yield from self._launch(self._early.popleft())
        while not self._outcomes.empty():
            yield from self._take(self._outcomes.get())

    def finish(self) -> Events:
        """Run what is left, wait for what runs; every call is settled afterwards."""
        for call in self.calls:
            if call.tool is None:
                yield from self._tell_error(call, "error", call.reply)
        if self._halt is None and self._setup.mode == "sequential":
            yield from self._in_turn()
        elif self._halt is None:
            yield from self._side_by_side()
        yield from self._await_all()
        failed = self.fatal is not None or any(call.fails for call in self.calls)
        self._settle_rest(over=failed)

    def stop(self, why: str) -> Events:
        """End with the run, for the reason *why*; wait for what runs.

        A door may raise meanwhile, which ``fatal`` then is.
        """
        self._halt = self._halt or why
        yield from self._await_all()
        self._settle_rest(over=True)

    def leave(self) -> None:
        """End with a run that nobody reads on: wait for nothing, tell nobody."""
        self._halt = self._halt or "cancelled"
        while not self._outcomes.empty():
            call, what, value = self._outcomes.get()
            if what == "done" and not call.settled:
                self._record(call, value)
        for call in self.calls:
            if call.status == "running":
                call.settle("not_run", INTERRUPTED)
        self._settle_rest(over=True)

    def replies(self) -> Iterator[Tuple[Call, Message]]:
        """Yield the tool message of every call but suspended ones, in call order."""
        for call in self.calls:
            if call.status != "suspended":
                yield (
                    call,
                    Message(
                        "tool",
                        call.reply,
                        name=call.call.name,
                        tool_call_id=call.call.id,
                    ),
                )

    def _in_turn(self) -> Events:
        for call in self.calls:
            if call.status != "waiting":
                continue
            if self._stopped():
                return
            yield from self._run_here_or_wait(call)

    def _run_here_or_wait(self, call: Call) -> Events:
        tool = cast("Tool[Any]", call.tool)
        if tool.timeout is None:
            yield from self._run_here(call)
        else:
            yield from self._launch(call)
            yield from self._await_all()

    def _side_by_side(self) -> Events:
        for call in self.calls:
            if call.status == "waiting" and self._may_parse_early(call):
                yield from self._parse(call)
        waiting = [call for call in self.calls if call.status == "waiting"]
        alone = len(waiting) == 1
        here: List[Call] = []
        beside: Deque[Call] = deque()
        for call in waiting:
            (here if _stays_here(call, alone) else beside).append(call)
        while beside and not self._stopped():
            if self._running < self._setup.concurrency:
                yield from self._launch(beside.popleft())
            else:
                yield from self._await_one()
        for call in here:
            if self._stopped():
                return
            yield from self._run_here(call)
            while not self._outcomes.empty():
                yield from self._take(self._outcomes.get())

    def _may_parse_early(self, call: Call) -> bool:
        return not call.parsed and self._setup.admit is None and call.decision is None

    def _stopped(self) -> bool:
        if self._halt is None and self._setup.abort.is_set():
            self._halt = "aborted"
        return self._halt is not None

    def _settle_rest(self, *, over: bool) -> None:
        """Say why calls were not run; where it is all *over*, of those that wait too.

        Nobody comes back to a call of a run that fails or is aborted.
        """
        self._stopped()
        for call in self.calls:
            if call.tool is None and not call.settled:
                call.settle("error", call.reply)
            elif not call.settled:
                call.settle("not_run", NOT_RUN[self._halt or "cancelled"])
            elif call.status == "suspended" and over:
                call.settle("not_run", NOT_RUN["cancelled"])

    def _parse(self, call: Call) -> Generator[Event, None, bool]:
        """Read the arguments; on failure tell it and return False."""
        call.parsed = True
        tool, written = cast("Tool[Any]", call.tool), call.call
        repairs: List[RepairAttempt] = []
        call.args, error = attempt(
            tool.parse,
            self._ctx(call),
            written.arguments,
            call.schema,
            written.descriptor,
            repairs.append,
        )
        for repair in repairs:
            yield ToolArgRepairAttemptEvent(
                self._request, tool, written.id, repair.fields, repair.success
            )
        if error is None:
            return True
        if isinstance(error, Signal):  # a validate of the user's has a say in the run
            yield from self._outcome(call, error)
            return False
        if written.arguments.strip():
            text = f"Error parsing tool arguments: {error}, args: {written.arguments}"
        else:
            text = (
                f"Error parsing tool arguments: {tool.name} was called with NO "
                f"arguments; call it again with the required fields.\n{error}"
            )
        call.error = error
        yield from self._tell_error(call, "invalid", self._setup.truncate(text))
        return False

    def _ctx(self, call: Call) -> Context:
        if call.ctx is None:
            call.ctx = self._ctx_of(call)
        return call.ctx

    def _ctx_of(self, call: Call) -> Context:
        inner, around = call.decision, self._setup.ctx

        def charged(usage: Usage) -> None:
            call.charges.append(usage)
            charge(around, [usage])

        own: Dict[str, Any] = {"tool_call_id": call.call.id, "_charge": charged}
        if isinstance(inner, Resume):
            own.update(messages=inner.messages, decisions=inner.decisions)
        if call.abort is not None:
            own["signal"] = call.abort
        return around.replace(**own)

    def _launch(self, call: Call) -> Events:
        """Start *call* beside the caller."""
        if not (yield from self._ready(call)):
            return
        timeout = cast("Tool[Any]", call.tool).timeout
        if timeout is not None:
            call.deadline = self._setup.workers.now() + timeout
            call.abort, _ = Abort.linked(self._setup.abort)
            call.ctx = None  # its signal is another now
            self._timed.append(call)
        self._running += 1
        context = contextvars.copy_context()
        self._setup.workers.submit(lambda: context.run(self._work, call))

    def _ready(self, call: Call) -> Generator[Event, None, bool]:
        """Bring *call* to where its tool runs; return False where it does not."""
        if call.decision is not None and not call.consented:
            yield from self._heed(call, call.decision, None)
            return False
        if self._setup.admit is not None:
            answer, error = attempt(self._setup.admit, call)
            if answer is not None or error is not None:
                yield from self._heed(call, answer, error)
                return False
        if not call.parsed and not (yield from self._parse(call)):
            return False
        answer, error = attempt(self._permit, call)
        if answer is not None or error is not None:
            yield from self._heed(call, answer, error)
            return False
        if self._setup.abort.is_set():  # while somebody was asked, or told
            call.settle("not_run", NOT_RUN["aborted"])
            yield from self._after(call)
            return False
        call.status, call.started = "running", True
        tool = cast("Tool[Any]", call.tool)
        yield ToolStartEvent(self._request, tool, call.call.id, call.args)
        return True

    def _permit(self, call: Call) -> Any:
        answer = self._setup.before(call)
        tool = cast("Tool[Any]", call.tool)
        if answer is not None or tool.approval is None or call.consented:
            return answer
        wish = tool.needs_approval(call.args, self._ctx(call))
        return None if wish is None else self._setup.approve(call, wish)

    def _heed(self, call: Call, answer: Any, error: Optional[Exception]) -> Events:
        """Do what was said about *call* instead of running it."""
        if isinstance(error, Signal):
            yield from self._outcome(call, error)
        elif error is not None:
            self._fail(error)
        elif isinstance(answer, Result):
            yield from self._settle(call, self._present(call, answer.value, None))
        else:
            call.settle("not_run", to_content(answer))
            yield from self._after(call)

    def _after(self, call: Call) -> Events:
        steps, error = attempt(lambda: iter(self._setup.after(call)))
        while error is None:
            event, error = attempt(next, steps)
            if error is None:
                yield event
        if not isinstance(error, StopIteration):
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Start nothing more; the first failure is the one that ends the run."""
        self.fatal = self.fatal or error
        self._halt = self._halt or "cancelled"

    def _work(self, call: Call) -> None:
        """What a worker does: run the call, put what came of it on the queue."""
        call.thread = threading.current_thread()
        if call.settled:  # given up before it began
            return
        try:
            result, error = attempt(call.inside, self._invoke, call)
            if error is None and isinstance(result, GeneratorABC):
                result, error = attempt(self._drain, call, result)
            presented = self._present(call, result, error)
        except BaseException as exc:  # noqa: BLE001  # raised again in the caller's thread
            self._outcomes.put((call, "fatal", exc))
        else:
            self._outcomes.put((call, "done", presented))

    def _drain(self, call: Call, steps: Generator[Any, Any, Any]) -> Any:
        while not call.settled:  # given up: a generator can be stopped between steps
            try:
                value = call.inside(next, steps)
            except StopIteration as stop:
                return stop.value
            self._outcomes.put((call, "progress", value))
        return call.inside(steps.close)

    def _run_here(self, call: Call) -> Events:
        """Run *call* in the caller's thread; a generator's steps come out at once."""
        if not (yield from self._ready(call)):
            return
        result, error = attempt(call.inside, self._invoke, call)
        if error is None and isinstance(result, GeneratorABC):
            steps, result = result, None
            try:
                while error is None:
                    value, error = attempt(call.inside, next, steps)
                    if error is None:
                        yield self._progress(call, value)
            finally:  # whoever leaves here leaves, whatever the generator says to it
                attempt(call.inside, steps.close)
            if isinstance(error, StopIteration):
                result, error = error.value, None
        yield from self._settle(call, self._present(call, result, error))

    def _invoke(self, call: Call) -> Any:
        tool, ctx = cast("Tool[Any]", call.tool), self._ctx(call)
        if self._setup.intercept is not None:
            named = {"args": call.args, "ctx": ctx, "call": call.call}
            answer = self._setup.intercept(tool, named)
            if answer is not None and answer is not False:
                return answer
        result = tool.run(call.args, ctx)
        if inspect.isawaitable(result):
            close = getattr(result, "close", None)
            if close is not None:  # a coroutine: it would warn that nobody awaited it
                close()
            raise TypeError(
                f"{tool.name} returned something to await; aeye is synchronous and "
                "awaits nothing"
            )
        return result

    def _present(
        self, call: Call, result: Any, error: Optional[Exception]
    ) -> Tuple[Any, Any, Optional[Exception], Optional[Exception]]:
        """Return result, what the model gets, the tool's and the presenter's error."""
        if error is not None:
            return None, None, error, None
        present: Any = self._setup.present
        if isinstance(present, Mapping):
            present = present.get(call.call.name)
        shown = result
        if present is not None:
            about = ToolResult(
                cast("Tool[Any]", call.tool),
                call.call.id,
                result,
                call.args,
                self._request,
            )
            shown, error = attempt(present, about, {"ctx": self._ctx(call)})
        if error is None:
            shown_content, error = attempt(content_of, result, shown)
            return result, (shown, shown_content), None, error
        return result, None, None, error

    def _settle(self, call: Call, presented: Any) -> Events:
        """Settle *call* by what came of it, and tell."""
        self._record(call, presented)
        yield from self._after(call)
        tool, named = cast("Tool[Any]", call.tool), (call.call.id, call.args)
        request, usage = self._request, call.usage
        if call.status == "success":
            yield ToolOutputEvent(
                request, tool, *named, call.result, call.to_model, usage=usage
            )
        elif call.status == "suspended":
            yield ToolSuspendEvent(request, tool, *named, str(call.signal), usage=usage)
        elif call.status == "interrupted":
            yield ToolInterruptEvent(
                request, tool, *named, str(call.signal), usage=usage
            )
        else:
            yield self._error_event(call)

    def _record(self, call: Call, presented: Any) -> None:
        """Settle *call* by what came of it."""
        result, shown, error, failed = presented
        if error is not None:
            self._record_error(call, error)
            return
        call.result, call.has_result = result, True
        if failed is None:
            call.to_model, content = shown
            call.settle("success", content)
            return
        call.error = failed
        fault = "Error transforming tool result"
        if self._setup.present is None:
            fault = "Error executing tool: the result has no JSON form"
        call.settle("error", self._setup.truncate(f"{fault}: {words(failed)}"))

    def _outcome(self, call: Call, error: Exception) -> Events:
        """Settle *call* that raised, and tell."""
        yield from self._settle(call, (None, None, error, None))

    def _record_error(self, call: Call, error: Exception) -> None:
        if isinstance(error, PromptSuspend):
            call.signal = error
            call.settle("suspended", "")
            self._hold()
        elif isinstance(error, ToolInterrupt):
            call.signal = error
            call.settle("interrupted", INTERRUPTED)
            self._hold()
        else:
            call.error = error
            args, odd = attempt(to_content, call.args)
            if odd is not None:  # made by a parse of the user's: not JSON
                args, odd = attempt(repr, call.args)
            text = f"Error executing tool: {words(error)}, args: {args}"
            call.settle("error", self._setup.truncate(text))
            if call.fails:
                self._hold("cancelled")

    def _hold(self, why: str = "stopped") -> None:
        """In turn, nothing runs after a call that ends the run; side by side all do.

        So what is run never depends on which call is the quicker.
        """
        if self._setup.mode == "sequential":
            self._halt = self._halt or why

    def _tell_error(self, call: Call, status: Status, text: Any) -> Events:
        call.settle(status, text)
        yield from self._after(call)
        yield self._error_event(call)

    def _error_event(self, call: Call) -> Event:
        unread = call.status == "invalid"
        return ToolErrorEvent(
            self._request,
            call.tool,
            call.call.id,
            cast(Exception, call.error),
            cast(str, call.reply),
            args=None if unread else call.args,
            raw_args=call.call.arguments if unread else None,
            result=call.result,
            has_result=call.has_result,
            usage=call.usage,
        )

    def _progress(self, call: Call, value: Any) -> Event:
        tool = cast("Tool[Any]", call.tool)
        return ToolProgressEvent(self._request, tool, call.call.id, value)

    def _await_all(self) -> Events:
        while self._running:
            yield from self._await_one()

    def _await_one(self) -> Events:
        """Take the next thing that a worker says, or give up a call that is late."""
        self._timed = [call for call in self._timed if call.status == "running"]
        ends = [cast(float, call.deadline) for call in self._timed]
        workers = self._setup.workers
        try:
            item = workers.wait(self._outcomes, min(ends, default=None))
        except queue.Empty:
            now = workers.now()
            for call, end in zip(self._timed, ends):
                if end <= now:
                    yield from self._give_up(call)
            return
        yield from self._take(item)

    def _give_up(self, call: Call) -> Events:
        self._running -= 1
        timeout = cast("Tool[Any]", call.tool).timeout
        late = TimeoutError(f"timed out after {timeout:g} seconds")
        events = list(self._outcome(call, late))
        cast(Abort, call.abort).set()
        if call.thread is not None:
            self._setup.workers.abandon(call.thread)
        yield from events

    def _take(self, item: Tuple[Call, str, Any]) -> Events:
        call, what, value = item
        if call.settled:  # given up: what it still says is not heard
            return
        if what == "progress":
            yield self._progress(call, value)
            return
        self._running -= 1
        if what == "fatal":
            # It has begun: nobody may think that it did not.
            call.settle("error", INTERRUPTED)
            raise value
        yield from self._settle(call, value)


def _may_start_early(call: Call) -> bool:
    """Whether *call* may start before the answer is whole."""
    tool = call.tool
    return (
        call.status == "waiting"
        and tool is not None
        and not tool.inline
        and tool.approval is None
    )


def _stays_here(call: Call, alone: bool) -> bool:
    """Whether *call* runs in the caller's thread: it must, or it is the only one."""
    tool = cast("Tool[Any]", call.tool)
    return tool.inline or (alone and tool.timeout is None)
