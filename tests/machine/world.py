"""The model, and what a run has touched."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional, Set, Tuple

from aeye import errors
from aeye.callback import attempt
from aeye.context import Abort, Context
from aeye.message import Reasoning, ToolCall
from aeye.response import Chunk, Response, ToolCallDelta, join
from aeye.usage import Usage

from .clock import Clock, Scheduler
from .script import NESTED, Answer, CallPlan, Script


class Injected(Exception):
    """What the script makes somebody raise."""


class Mute(Injected):
    """An exception that cannot even be printed."""

    def __str__(self) -> str:
        raise Injected("no words")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, by script."""


_ERRORS: Dict[str, Callable[[], BaseException]] = {
    "own": lambda: Injected("model"),
    "overflow": lambda: errors.ContextLengthError("too long", status=400),
    "bad request": lambda: errors.StatusError("no", status=400),
    "server": lambda: errors.ServerError("down", status=503),
    "cut": lambda: errors.StreamCutError("cut", partial="?"),
    "cut, paid": lambda: errors.StreamCutError("cut", usage=Usage.of(input=3)),
    "capability": lambda: errors.CapabilityError("cannot"),
    "ctrl-c": Interrupted,
}
ENDS = ("tool_output", "tool_error", "tool_interrupt", "tool_suspend")
# The name of the prompt that is played; all others are run within its tools.
OUTER = "p"


class World:
    """What one run can touch, and what it did."""

    def __init__(
        self, script: Script, clock: Clock | None = None, *, round: int = 0
    ) -> None:
        self.script = script
        self.clock = clock or Scheduler(latest_first=script.latest_first)
        # How often the run has gone on after it waited.
        self.round = round
        self.signal: Any = threading.Event() if script.foreign_signal else Abort()
        self.events: List[Any] = []
        # Ids of the calls whose tools have been entered, in that order.
        self.runs: List[str] = []
        # Those of them that need consent, and the calls that have it beforehand.
        self.consenting: List[str] = []
        self.consented: Set[str] = set()
        # Those that had been told to have ended by then.
        self.late: List[str] = []
        # What was asked, and by runs within.
        self.requests: List[Any] = []
        self.inner_requests: List[Any] = []
        # Whether an answer is on its way, the whole calls of it so far, and those of
        # them that came before the latest chunk.
        self.speaking = False
        self.whole = self.ripe = 0
        # Runs within tools.
        self.inner_runs: List[Any] = []
        # What the run cost, and runs within it.
        self.usage = self.inner_usage = Usage.empty()
        # Streams of the model: kept, so that only a close() closes them.
        self.streams: List[Iterator[Chunk]] = []
        self.opened = self.closed = 0
        self.stats: List[Any] = []
        # How many events had been told when the signal was set.
        self.aborted_at: Optional[int] = None
        # What was asked of the model after that.
        self.after_abort: List[str] = []
        # Requests before and after something was forgotten.
        self.forgotten: List[Tuple[Any, Any]] = []
        # Calls of runs within, so far.
        self._inner_calls = 0

    def abort(self) -> None:
        """Set the signal of the run."""
        if self.aborted_at is None:
            self.aborted_at = len(self.events)
        self.signal.set()

    # The model

    def stream(self, request: Any, ctx: Any) -> Iterator[Chunk]:
        """Answer in chunks."""
        self.streams.append(self._stream(request))
        return self.streams[-1]

    def _stream(self, request: Any) -> Generator[Chunk, None, None]:
        self.opened += 1
        try:
            yield from self._chunks(request)
        finally:
            self.closed += 1

    def execute(self, request: Any, ctx: Any) -> Response:
        """Answer at once."""
        before = self.usage
        response, error = attempt(join, self._chunks(request))
        if error is not None:  # what came before it was not handed over
            spent = getattr(error, "usage", None)
            if request.name == OUTER:
                self.usage = before + (spent or Usage.empty())
            raise error
        return response

    def _chunks(self, request: Any) -> Iterator[Chunk]:
        if request.name != OUTER:
            yield from self._said(request, ours=False)
            return
        self.speaking, self.whole, self.ripe = True, 0, 0
        try:
            for chunk in self._said(request, ours=True):
                self.ripe = self.whole
                self.whole += chunk.tool_call is not None
                yield chunk
        finally:
            self.speaking = False

    def _said(self, request: Any, *, ours: bool) -> Iterator[Chunk]:
        (self.requests if ours else self.inner_requests).append(request)
        if self.signal.is_set():
            self.after_abort.append("a request" if ours else "a request within")
        answer = self._answer() if ours else self._inner_answer()
        said = False
        for n, (pause, chunk) in enumerate(chunks_of(answer)):
            if answer.abort_after == n:
                self.abort()
            if answer.error is not None and answer.error_after <= n:
                break
            if pause:
                self.clock.pause(pause)
            if chunk.usage is not None and ours:
                self.usage, said = self.usage + chunk.usage, True
            yield chunk
        if answer.error is not None:
            error = _ERRORS[answer.error]()
            spent = getattr(error, "usage", None)
            if spent is not None and not said and ours:
                self.usage = self.usage + spent
            raise error

    def _answer(self) -> Answer:
        n = len(self.requests) - 1
        if n < len(self.script.answers):
            return self.script.answers[n]
        return Answer(('{"v": 1}',))

    def _inner_answer(self) -> Answer:
        n = len(self.inner_requests) - 1
        if n >= len(self.script.inner):
            return Answer(("inner",))
        answer = self.script.inner[n]
        calls = []
        for plan in answer.calls:
            self._inner_calls += 1
            calls.append(replace(plan, id=f"i{self.round}_{self._inner_calls}"))
        return replace(answer, calls=tuple(calls))

    # The tools

    def enter(self, ctx: Context, *, consent: bool = False) -> None:
        """Note that a tool was entered, and whether that needs *consent*."""
        name = str(ctx.tool_call_id)
        self.runs.append(name)
        self.consenting += [name] * consent
        ends = (event for event in self.events if event.type in ENDS)
        self.late += [name for event in ends if event.tool_call_id == name]


def chunks_of(answer: Answer) -> List[Tuple[int, Chunk]]:
    """Return the chunks of *answer*, each with the seconds before it."""
    found: List[Tuple[int, Chunk]] = []
    if answer.thought:
        found += [
            (0, Chunk(reasoning=Reasoning("h"))),
            (0, Chunk(reasoning=Reasoning("m"))),
        ]
    found += [(0, Chunk(text)) for text in answer.text]
    if answer.refusal is not None:
        found.append((0, Chunk(refusal=answer.refusal)))
    for plan in answer.calls:
        found += _call_chunks(plan)
    finish: Any = answer.finish
    if finish == "auto":
        finish = "tool_calls" if answer.calls else "stop"
    reports = [Usage.of(input=n, output=1) for n in answer.usage]
    found += [(0, Chunk(usage=usage)) for usage in reports[1:]]
    if finish is not None or reports:
        usage = reports[0] if reports else None
        found.append((0, Chunk(finish_reason=finish, usage=usage)))
    if answer.restart_after is not None:
        found.insert(answer.restart_after, (0, Chunk(restart=True)))
    return found


def _call_chunks(plan: CallPlan) -> List[Tuple[int, Chunk]]:
    written = plan.written
    if written is None and plan.tool in NESTED:
        written = '{"prompt": "go"}'
    elif written is None:
        written = f'{{"do": "{plan.do}", "n": {plan.seconds}}}'
    call = ToolCall(plan.id, plan.tool, written)
    named = replace(call, arguments="")
    if plan.style == "whole":
        return [(plan.pause, Chunk(tool_call_named=named, tool_call=call))]
    half = len(written) // 2
    pieces = [
        ToolCallDelta(plan.id, plan.tool, part)
        for part in (written[:half], written[half:])
    ]
    found = [(plan.pause, Chunk(tool_call_named=named))]
    found += [(0, Chunk(tool_call_arguments=piece)) for piece in pieces]
    if plan.style == "pieces":
        found.append((0, Chunk(tool_call=call)))
    return found
