"""A whole world to run prompts in: its own clock, models, tools and readers.

A ``Script`` says everything that happens in one run: what the model answers and how
fast, what the tools do, who stops the run and when. ``play`` plays it and returns a
``Trace``; ``check`` holds the trace against what every run promises. Nothing here is
left to chance: workers are threads of which one at a time moves, on a clock that
nobody waits for, so that a script always plays the same.
"""

from __future__ import annotations

import copy
import inspect
import queue
import threading
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional, Tuple

from aeye import errors
from aeye.callback import attempt
from aeye.context import Abort, Context, Result
from aeye.dispatch import Workers
from aeye.errors import PromptSuspend, ToolInterrupt
from aeye.loop import Policy
from aeye.message import Message, Part, Reasoning, ToolCall
from aeye.prompt import EventStream, Prompt
from aeye.response import Chunk, Response, ToolCallDelta, join
from aeye.tools import Tool
from aeye.usage import Usage


class Injected(Exception):
    """What the script makes somebody raise."""


class Mute(Injected):
    """An exception that cannot even be printed."""

    def __str__(self) -> str:
        raise Injected("no words")


class Thing:
    """What a tool may return: no JSON, but words."""

    def __str__(self) -> str:
        return "a thing"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, by script."""


# The clock


@dataclass
class _Task:
    job: Callable[[], object]
    # When it goes on, and its place among those that go on at the same time.
    wake: float
    place: int
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    thread: Optional[threading.Thread] = None
    done: bool = False
    abandoned: bool = False


class Clock(Workers):
    """Workers that a run is watched by, and on whose clock everybody is busy."""

    def __init__(self) -> None:
        super().__init__()
        # How it was closed: with the word for ``wait``, each time.
        self.closed: List[bool] = []

    def pause(self, seconds: float) -> None:
        """Be busy for *seconds*."""
        raise NotImplementedError

    def finish(self) -> None:
        """Let everything come to its end."""
        raise NotImplementedError


class Scheduler(Clock):
    """Workers on a clock of their own: one moves at a time, the earliest first."""

    def __init__(self, *, latest_first: bool = False) -> None:
        super().__init__()
        self.clock = 0.0
        self._tasks: List[_Task] = []
        self._sign = -1 if latest_first else 1
        self._current: Optional[_Task] = None
        self._baton = threading.Semaphore(0)

    def submit(self, job: Callable[[], object]) -> None:
        """Take *job* in; it begins when somebody waits."""
        place = self._sign * len(self._tasks)
        self._tasks.append(_Task(job, self.clock, place))

    def now(self) -> float:
        """Return the time that the script has come to."""
        return self.clock

    def wait(self, said: queue.SimpleQueue[Any], until: float | None) -> Any:
        """Let the others move until one *said* something, or the time has come."""
        while said.empty():
            task = self._next()
            if until is not None and (task is None or task.wake >= until):
                self.clock = max(self.clock, until)
                raise queue.Empty
            assert task is not None, "the run waits for something that cannot come"
            self._step(task)
        return said.get()

    def pause(self, seconds: float) -> None:
        """Be busy for *seconds*: the others move meanwhile."""
        task, wake = self._current, self.clock + seconds
        if task is None:
            self._move(wake)
            return
        task.wake = wake
        self._baton.release()
        task.go.acquire()

    def abandon(self, thread: threading.Thread) -> None:
        """Do not wait for *thread*."""
        for task in self._tasks:
            task.abandoned = task.abandoned or task.thread is thread

    def close(self, *, wait: bool) -> None:
        """Note that the run has ended."""
        self.closed.append(wait)
        if wait:
            self._finish(lambda task: not task.abandoned)

    def finish(self) -> None:
        """Let everything come to its end."""
        self._finish(lambda task: True)

    def _finish(self, wanted: Callable[[_Task], bool]) -> None:
        while any(wanted(task) and not task.done for task in self._tasks):
            task = self._next()
            assert task is not None
            self._step(task)

    def _next(self) -> _Task | None:
        waiting = [task for task in self._tasks if not task.done]
        return min(waiting, key=lambda task: (task.wake, task.place), default=None)

    def _move(self, until: float) -> None:
        while True:
            task = self._next()
            if task is None or task.wake > until:
                break
            self._step(task)
        self.clock = max(self.clock, until)

    def _step(self, task: _Task) -> None:
        """Let *task* move until it pauses or ends."""
        self.clock = max(self.clock, task.wake)
        self._current = task
        if task.thread is None:
            task.thread = threading.Thread(target=self._run, args=(task,), daemon=True)
            task.thread.start()
        else:
            task.go.release()
        self._baton.acquire()
        self._current = None

    def _run(self, task: _Task) -> None:
        task.job()
        task.done = True
        self._baton.release()


# The script


@dataclass(frozen=True)
class CallPlan:
    """One call of an answer: to what, with which arguments, streamed how."""

    tool: str = "work"
    do: str = "text"
    # How many seconds the tool takes.
    seconds: int = 0
    # Text in place of the arguments that say the above.
    written: Optional[str] = None
    id: str = ""
    # "whole": one chunk; "pieces": name, pieces, mark; "bare": no mark of the end.
    style: str = "whole"
    pause: int = 0


@dataclass(frozen=True)
class Answer:
    """One answer of the model."""

    text: Tuple[str, ...] = ()
    calls: Tuple[CallPlan, ...] = ()
    # "auto": the one that fits, None: none.
    finish: Optional[str] = "auto"
    thought: bool = False
    refusal: Optional[str] = None
    # Tokens reported, by so many chunks.
    usage: Tuple[int, ...] = (5,)
    # What is raised after so many chunks.
    error: Optional[str] = None
    error_after: int = 0
    # Whether the signal is set after so many chunks.
    abort_after: Optional[int] = None


@dataclass(frozen=True)
class Reader:
    """Who reads the run: to the end, or until event *at*."""

    # "all", "close", "drop", "abort"
    does: str = "all"
    at: int = 0
    pause: int = 0


@dataclass(frozen=True)
class Script:
    """Everything that happens in a run."""

    answers: Tuple[Answer, ...] = ()
    execution: str = "immediate"
    streaming: bool = True
    reader: Reader = Reader()
    history: str = "none"
    schema: bool = False
    # Options of the Prompt, of the Context and of the Policy.
    options: Tuple[Tuple[str, Any], ...] = ()
    limits: Tuple[Tuple[str, Any], ...] = ()
    door: Tuple[Tuple[str, Any], ...] = ()
    # What reconfig wishes, round by round.
    wishes: Tuple[Any, ...] = ()
    intercept: Optional[str] = None
    present: Optional[str] = None
    # Names that retool gives in each round, with ``dynamic``; "no": incompatible.
    offers: Tuple[Any, ...] = ()
    foreign_signal: bool = False
    latest_first: bool = False


SHAPE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}},
    "required": ["v"],
}

REFUSAL = "No."
ERRORS: Dict[str, Callable[[], BaseException]] = {
    "own": lambda: Injected("model"),
    "overflow": lambda: errors.ContextLengthError("too long", status=400),
    "bad request": lambda: errors.StatusError("no", status=400),
    "server": lambda: errors.ServerError("down", status=503),
    "cut": lambda: errors.StreamCutError("cut", partial="?"),
    "cut, paid": lambda: errors.StreamCutError("cut", usage=Usage.of(input=3)),
    "capability": lambda: errors.CapabilityError("cannot"),
    "ctrl-c": Interrupted,
}


# The world


class World:
    """What one run can touch, and what it did."""

    def __init__(self, script: Script, clock: Clock | None = None) -> None:
        self.script = script
        self.clock = clock or Scheduler(latest_first=script.latest_first)
        self.signal: Any = threading.Event() if script.foreign_signal else Abort()
        self.events: List[Any] = []
        # Ids of the calls whose tools have been entered, in that order.
        self.runs: List[str] = []
        # Those of them that had been told to have ended by then.
        self.late: List[str] = []
        self.requests: List[Any] = []
        self.usage = Usage.empty()
        self.opened = self.closed = 0
        self.stats: List[Any] = []
        # How many events had been told when the signal was set.
        self.aborted_at: Optional[int] = None
        # Requests before and after something was forgotten.
        self.forgotten: List[Tuple[Any, Any]] = []

    def abort(self) -> None:
        if self.aborted_at is None:
            self.aborted_at = len(self.events)
        self.signal.set()

    # The model

    def stream(self, request: Any, ctx: Any) -> Generator[Chunk, None, None]:
        self.opened += 1
        try:
            yield from self._chunks(request)
        finally:
            self.closed += 1

    def execute(self, request: Any, ctx: Any) -> Response:
        before = self.usage
        response, error = attempt(join, self._chunks(request))
        if error is not None:  # what came before it was not handed over
            self.usage = before + (getattr(error, "usage", None) or Usage.empty())
            raise error
        return response

    def _chunks(self, request: Any) -> Iterator[Chunk]:
        self.requests.append(request)
        answer, before = self._answer(), self.usage
        for n, (pause, chunk) in enumerate(chunks_of(answer)):
            if answer.abort_after == n:
                self.abort()
            if answer.error is not None and answer.error_after <= n:
                break
            if pause:
                self.clock.pause(pause)
            if chunk.usage is not None:
                self.usage = self.usage + chunk.usage
            yield chunk
        if answer.error is not None:
            error = ERRORS[answer.error]()
            spent = getattr(error, "usage", None)
            if spent is not None and self.usage == before:
                self.usage = before + spent
            raise error

    def _answer(self) -> Answer:
        n = len(self.requests) - 1
        if n < len(self.script.answers):
            return self.script.answers[n]
        return Answer(('{"v": 1}',))

    # The tools

    def act(self, do: str, seconds: int, ctx: Context) -> Any:
        name = str(ctx.tool_call_id)
        self.runs.append(name)
        ends = (event for event in self.events if event.type in ENDS)
        self.late += [name for event in ends if event.tool_call_id == name]
        if seconds:
            self.clock.pause(seconds)
        return self.do(do)

    def do(self, what: str) -> Any:
        if what == "abort":
            self.abort()
        deed = DEEDS[what]
        return deed() if callable(deed) else deed

    def intercept(self, tool: Any, args: Any, ctx: Context) -> Any:
        said = self.script.intercept
        return None if said is None else self.do(said)

    def present(self, about: Any) -> Any:
        said = self.script.present
        return about.result if said in (None, "echo") else self.do(said)


def _raise(kind: Callable[[], BaseException]) -> Callable[[], Any]:
    def deed() -> Any:
        raise kind()

    return deed


def _ring() -> Any:
    ring: List[Any] = []
    ring.append(ring)
    return ring


def _deep() -> Any:
    deep: List[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


def _steps() -> Generator[int, None, str]:
    yield 1
    yield 2
    return "stepped"


def _broken_steps() -> Generator[int, None, str]:
    yield 1
    raise Injected("steps")


DEEDS: Dict[str, Any] = {
    "text": "done",
    "none": None,
    "zero": 0,
    "object": lambda: Thing(),
    "dict": {"a": [1, {"b": None}]},
    "odd keys": {(1, 2): 3},
    "ring": _ring,
    "deep": _deep,
    "part": Part.image("https://example.com/a.png"),
    "steps": _steps,
    "broken steps": _broken_steps,
    "raise": _raise(lambda: Injected("tool")),
    "mute": _raise(Mute),
    "suspend": _raise(PromptSuspend),
    "interrupt": _raise(ToolInterrupt),
    "stop iteration": _raise(StopIteration),
    "ctrl-c": _raise(Interrupted),
    "abort": "aborted",
}


def _call(args: Any, ctx: Context) -> Any:
    return ctx.world.act(args.get("do", "text"), args.get("n", 0), ctx)


def _call_odd(args: Any, ctx: Context) -> Any:
    return _call(args["said", 1], ctx)


def _call_steps(args: Any, ctx: Context) -> Generator[int, None, Any]:
    yield 0
    made = _call(args, ctx)
    if inspect.isgenerator(made):
        made = yield from made
    yield 1
    return made


_ARGS = {
    "type": "object",
    "properties": {
        "do": {"enum": list(DEEDS)},
        "n": {"type": "integer"},
        "o": {"type": "object"},
    },
}
TOOLS: List[Tool[Any]] = [
    Tool("work", _call, schema=_ARGS, instructions="Work."),
    Tool("here", _call, schema=_ARGS, inline=True),
    Tool("timed", _call, schema=_ARGS, timeout=2),
    Tool("asked", _call, schema=_ARGS, approval=lambda args: args.get("n", 0) > 0),
    Tool("fatal", _call, schema=_ARGS, on_error="raise"),
    Tool("steps", _call_steps, schema=_ARGS),
    Tool("odd", _call_odd, schema=_ARGS, parse=lambda args: {("said", 1): args}),
]
NAMES = [made.name for made in TOOLS]


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
    return found


def _call_chunks(plan: CallPlan) -> List[Tuple[int, Chunk]]:
    written = plan.written
    if written is None:
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


def histories() -> Dict[str, List[Message]]:
    """Return what a caller may bring along, whole and broken."""
    asked = Message(
        "assistant", tool_calls=(ToolCall("h1", "work"), ToolCall("h2", "work"))
    )
    reply = Message("tool", "one", tool_call_id="h1")
    user = Message("user", "u", tokens=20)
    old = [
        message
        for name in ("h3", "h4")
        for message in (
            Message("user", "old", tokens=40),
            Message("assistant", tool_calls=(ToolCall(name, "work"),), tokens=40),
            Message("tool", "r", tool_call_id=name, tokens=40),
        )
    ]
    return {
        "none": [],
        "user": [user],
        "saved": [Message("system", "old"), user, Message("assistant", "a"), user],
        "dangling": [user, asked, reply, user],
        "orphans": [reply, user, reply, asked, user, reply, reply],
        "long": [*old, user],
    }


# Playing it


class Door(Policy):
    """A policy that does what the script says."""

    def __init__(self, world: World, said: Dict[str, Any]) -> None:
        self.world = world
        self.said = said
        self.workers = world.clock
        self.max_turns = said.get("max_turns")
        self.tool_concurrency = said.get("tool_concurrency")
        if "admit" in said:
            self.admit = self._admit

    def _admit(self, call: Any) -> Any:
        return self._say("admit")

    def before_tool(self, call: Any) -> Any:
        return self._say("before")

    def after_tool(self, call: Any) -> Any:
        self._say("after")
        return ()

    def _say(self, place: str) -> Any:
        what = self.said.get(place)
        if what == "answer":
            return Result("answered")
        if what == "refuse":
            return "refused"
        return None if what is None else self.world.do(what)


@dataclass
class Trace:
    """What came of a script."""

    script: Script
    world: World
    events: List[Any]
    error: Optional[BaseException]
    output: Any
    # The run's new messages; what was given, before and after.
    messages: Tuple[Message, ...]
    given: Tuple[Message, ...]
    children: Any = None
    # Whether the reader left early.
    left: bool = False
    changed: bool = False
    # Whether decisions were brought along.
    resumed: bool = False

    def of(self, *kinds: str) -> List[Any]:
        return [event for event in self.events if event.type in kinds]

    @property
    def last(self) -> str:
        return self.events[-1].type if self.events else ""


def prompt_of(script: Script) -> Prompt[Any]:
    """Return the prompt of *script*; it holds nothing of a run."""
    options = dict(script.options)
    if script.wishes:
        options["reconfig"] = _reconfig
    if script.offers:
        options["retool"] = _retool
    if script.intercept is not None:
        options["on_tool_intercept"] = lambda t, args, ctx: ctx.world.intercept(
            t, args, ctx
        )
    if script.present is not None:
        options["on_tool_result"] = lambda about, ctx: ctx.world.present(about)
    return Watched(
        "p",
        "Do {{x}}.",
        tools=TOOLS,
        tool_execution=script.execution,
        schema=SHAPE if script.schema else None,
        validate=_validate,
        **options,
    )


class Watched(Prompt[Any]):
    """A prompt that notes what it forgets."""

    def forget(self, request: Any, ctx: Context, usage: Any) -> Any:
        kept = super().forget(request, ctx, usage)
        ctx.world.forgotten.append((request.messages, kept))
        return kept


def _validate(value: Any) -> None:
    if value in ("bad", {"v": 3}):
        raise ValueError("bad")


def _reconfig(stats: Any, ctx: Context) -> Any:
    seen = ctx.world.stats
    seen.append(stats)
    wishes = ctx.world.script.wishes
    wish = wishes[len(seen) - 1] if len(seen) <= len(wishes) else None
    if wish == "raise":
        raise Injected("reconfig")
    return wish


def _retool(given: Any, ctx: Context) -> Any:
    offers = ctx.world.script.offers
    now = offers[min(len(ctx.world.requests), len(offers) - 1)]
    return False if now == "no" else now


class Play:
    """One run of a script, event by event."""

    def __init__(
        self,
        script: Script,
        prompt: Prompt[Any] | None = None,
        *,
        messages: List[Message] | None = None,
        decisions: Dict[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.script = script
        self.world = world = World(script, clock)
        given = histories()[script.history] if messages is None else messages
        self.input = {"x": {"y": [1]}}
        self.metadata = {"m": [1]}
        self.ctx = Context(
            messages=given,
            signal=world.signal,
            world=world,
            metadata=self.metadata,
            decisions=decisions,
            **(
                {"stream": world.stream}
                if script.streaming
                else {"execute": world.execute}
            ),
            **dict(script.limits),
        )
        self._before = copy.deepcopy((self.input, self.metadata, given, decisions))
        self._given = (self.input, self.metadata, given, decisions)
        self.door = Door(world, dict(script.door))
        self.run = (prompt or prompt_of(script)).start(self.input, self.ctx, self.door)
        self.run.streaming = script.streaming
        self.stream: Any = EventStream(self.run, lambda event: event)
        self.error: Optional[BaseException] = None
        self.output: Any = None
        self.over = self.left = False

    def step(self) -> bool:
        """Read one event and do what the reader does; return whether to go on."""
        reader, events = self.script.reader, self.world.events
        if reader.does in ("close", "drop") and len(events) >= reader.at:
            self._leave(reader.does)
            return False
        try:
            event, error = attempt(next, self.stream)
        except Interrupted as exc:
            event, error = None, exc
        if error is not None:
            self.over = True
            if isinstance(error, StopIteration):
                self.output = error.value
            else:
                self.error = error
            return False
        events.append(event)
        if reader.pause:
            self.world.clock.pause(reader.pause)
        if reader.does == "abort" and len(events) == reader.at:
            self.world.abort()
        return True

    def _leave(self, how: str) -> None:
        self.left = True
        if how == "close":
            self.stream.close()

    def end(self) -> Trace:
        """Return what came of it, everything having come to its end."""
        run, self.stream = self.run, None  # the stream is dropped here
        trace = Trace(
            self.script,
            self.world,
            self.world.events,
            self.error,
            self.output,
            messages=tuple(run.messages),
            given=tuple(self._given[2]),
            children=run.children,
            left=self.left,
            resumed=self.ctx.decisions is not None,
        )
        self.world.clock.finish()
        trace.changed = self._given != self._before
        return trace


def play(script: Script, prompt: Prompt[Any] | None = None, **given: Any) -> Trace:
    """Play *script* from its beginning to its end."""
    playing = Play(script, prompt, **given)
    while playing.step():
        pass
    return playing.end()


# What every run promises

ENDS = ("tool_output", "tool_error", "tool_interrupt", "tool_suspend")
EXPECTED = (Injected, Interrupted, errors.PromptError, errors.ProviderError)


def check(trace: Trace) -> None:
    """Hold *trace* against all that is promised of a run."""
    check_pairing(trace)
    check_calls(trace)
    check_order(trace)
    check_end(trace)
    check_abort(trace)
    check_budget(trace)
    check_text(trace)
    check_forgotten(trace)
    world = trace.world
    assert world.opened == world.closed, "a stream of the model stayed open"
    if world.opened or world.events:
        assert len(world.clock.closed) == 1, "the workers were not closed once"
    assert not trace.changed, "a value of the caller was changed"


def pairs(
    messages: Any, *, waits: frozenset[str] = frozenset(), growing: bool = False
) -> bool:
    """Whether every call is answered once, in order, right behind it.

    Calls in *waits* have no reply, at the end. A list that is *growing* may lack the
    last replies.
    """
    at = 0
    seen: List[str] = []
    while at < len(messages):
        message = messages[at]
        at += 1
        if message.role == "tool":
            return False
        asked = [call.id for call in message.tool_calls]
        seen += asked
        found = []
        while at < len(messages) and messages[at].role == "tool":
            found.append(messages[at].tool_call_id)
            at += 1
        if at == len(messages) and growing:
            left = [name for name in asked if name in found]
            if found != left:
                return False
            continue
        if at == len(messages):
            asked = [name for name in asked if name in found or name not in waits]
        if found != asked:
            return False
    return len(seen) == len(set(seen)) and "" not in seen


def check_pairing(trace: Trace) -> None:
    waits = frozenset(event.tool_call_id for event in trace.of("tool_suspend"))
    waits |= {name for name in unanswered(trace.given) if trace.resumed}
    for request in trace.world.requests:
        assert pairs(request.messages), "a request was sent that is not whole"
    for event in trace.events:
        if event.type == "request":
            assert pairs(event.request.messages)
        elif event.type == "suspend":
            assert pairs(event.messages, waits=waits)
            assert unanswered(event.messages), "nothing waits"
        else:
            assert pairs(event.request.messages, growing=True)
    may_lack = dict(trace.script.options).get("tools_complete") is False and (
        trace.world.aborted_at is not None
        or trace.left
        or isinstance(trace.error, Interrupted)
        or bool(trace.of("tool_interrupt"))
    )
    new = trace.messages
    while new and new[0].role == "tool":  # replies to calls that were brought along
        new = new[1:]
    if not may_lack:
        # A reader may leave while the end of a run that waits is being told.
        ended = trace.last == "suspend" or bool(
            trace.left and trace.of("text_complete")
        )
        assert pairs(new, waits=waits if ended else frozenset())
        for name in ("messages", "chat_history"):
            left = getattr(trace.error, name, ())
            while left and left[0].role == "tool":
                left = left[1:]
            assert pairs(left), f"{name} of {trace.error!r}"
    told = [event.message for event in trace.of("message")]
    rest = iter(trace.messages)
    assert all(message in rest for message in told)
    assert trace.left or trace.error or told == list(trace.messages)


def unanswered(messages: Any) -> List[str]:
    """Return the ids of calls without a reply."""
    answered = {m.tool_call_id for m in messages}
    return [c.id for m in messages for c in m.tool_calls if c.id not in answered]


def check_calls(trace: Trace) -> None:
    """A call starts once, ends once, in that order; its tool is entered once."""
    state: Dict[str, str] = {}
    may_answer = trace.resumed or "answer" in dict(trace.script.door).values()
    for event in trace.events:
        if event.type == "tool_start":
            assert event.tool_call_id not in state, "a call started twice"
            state[event.tool_call_id] = "started"
        elif event.type == "tool_progress":
            assert state[event.tool_call_id] == "started"
        elif event.type in ENDS:
            was = state.get(event.tool_call_id)
            assert was != "ended", "a call ended twice"
            if event.type == "tool_output" and not may_answer:
                assert was == "started", "an output without a start"
            state[event.tool_call_id] = "ended"
    runs = trace.world.runs
    assert len(runs) == len(set(runs)), "a tool was entered twice for one call"
    assert set(runs) <= set(state), "a tool was entered without a start"
    assert not trace.world.late, "a tool was entered after its call had ended"
    finished = trace.last in ("complete", "suspend", "usage") and not trace.left
    if finished:
        assert set(state.values()) <= {"ended"}, "a call started and did not end"


def check_order(trace: Trace) -> None:
    """Ends come before replies; sequential calls do not overlap."""
    running: List[str] = []
    one_by_one = trace.script.execution == "sequential"
    width = dict(trace.script.door).get("tool_concurrency")
    if width is not None:
        one_by_one = width == 1
    most = width or dict(trace.script.options).get("tool_concurrency", 32)
    for event in trace.events:
        if event.type == "tool_start":
            running.append(event.tool_call_id)
            # The caller's own thread runs a call too: one that must run there, or
            # that is left alone when others were started within the stream.
            here = event.tool.name == "here" or trace.script.execution == "immediate"
            assert len(running) <= (1 if one_by_one else most + here)
        elif event.type in ENDS and event.tool_call_id in running:
            running.remove(event.tool_call_id)
        elif event.type == "message" and event.message.role == "tool":
            assert not running, "a reply before its batch had ended"
        elif event.type in ("request", "complete", "suspend", "text_complete"):
            assert not running


def check_end(trace: Trace) -> None:
    """One outcome, and nothing after it."""
    kinds = [event.type for event in trace.events]
    for kind in ("complete", "suspend", "text_complete", "usage", "request_usage"):
        assert kinds.count(kind) <= 1, f"{kind} twice"
    if trace.left:
        return
    for kind in ("complete", "suspend"):
        assert kind not in kinds[:-1], f"something after {kind}"
    if trace.error is not None:
        assert isinstance(trace.error, (*EXPECTED, errors.ToolCallError)), trace.error
        assert not {"complete", "suspend"} & set(kinds)
        return
    if trace.last == "complete":
        assert trace.events[-1].output == trace.output
        only = dict(trace.script.options).get("tools_only")
        if trace.output is None:
            assert only or trace.of("tool_interrupt")
        elif trace.script.schema:
            assert trace.output == {"v": 1}
        else:
            assert isinstance(trace.output, str)
        return
    assert trace.output is None
    if trace.last == "suspend":
        return
    if kinds:
        assert trace.last == "usage"
        assert trace.world.aborted_at is not None, "a quiet end without an abort"


def check_abort(trace: Trace) -> None:
    """After an abort nothing is asked and nothing starts."""
    at = trace.world.aborted_at
    if at is not None:
        late = {event.type for event in trace.events[at:]}
        assert not late & {"request", "tool_start"}, "started after the abort"


def check_budget(trace: Trace) -> None:
    """No more requests than the retries and rounds allow, at any time."""
    options, limits = dict(trace.script.options), dict(trace.script.limits)

    def number(name: str, default: int) -> int:
        return int(options.get(name, limits.get(name, default)))

    budget = 1 + number("output_retries", 2) + number("forget_retries", 1)
    budget += number("tool_iterations", 3) + number("tool_retries", 2)
    turns = dict(trace.script.door).get("max_turns")
    if turns is not None:
        budget = turns
    again = number("forget_retries", 1)
    stats = iter(trace.world.stats)
    wishes = iter(trace.script.wishes)
    told = next(stats, None)
    before = -1
    # Requests that are made again, under the same number, with less.
    pairs_of = zip(trace.events, trace.events[1:])
    resets = [b for a, b in pairs_of if getattr(a, "reason", None) == "length"]
    for event in trace.of("request"):
        now = event.iterations
        while told is not None and told.iteration < now:
            assert told.max_iterations == budget
            wish = next(wishes, None) or {}
            limit = wish.get("max_iterations")
            budget = budget if limit is None else told.iteration + limit
            again += wish.get("forget_retries", 0)
            told = next(stats, None)
        assert now < budget, "more requests than allowed"
        assert now - before == (0 if event in resets else 1)
        again -= now == before
        assert again >= 0, "more requests again than allowed"
        before = now


def check_text(trace: Trace) -> None:
    """``text_complete`` is what was shown and not taken back; usage is the sum."""
    shown: List[str] = []
    now = ""
    for event in trace.events:
        if event.type == "request":
            shown.append(now)
            now = ""
        elif event.type == "text_partial" and event.content != REFUSAL:
            now += event.content
        elif event.type in ("text_reset", "refusal"):
            now = ""
        elif event.type == "text" and event.content:
            now = event.content
        elif event.type == "text_complete":
            assert event.content == "".join((*shown, now))
        elif event.type == "usage":
            assert event.usage == trace.world.usage


def check_forgotten(trace: Trace) -> None:
    """Forgetting keeps system messages, the last user turn and the latest group."""
    for before, kept in trace.world.forgotten:
        assert pairs(kept, waits=frozenset(unanswered(trace.given)))
        rest = iter(before)
        assert all(any(m is k for m in rest) for k in kept), "not a part of it"
        for message in before:
            assert message.role != "system" or message in kept
        users = [m for m in before if m.role == "user"]
        assert not users or any(m is users[-1] for m in kept)
        start = len(before) - 1
        while start > 0 and before[start].role == "tool":
            start -= 1
        assert list(kept[-(len(before) - start) :]) == list(before[start:])
