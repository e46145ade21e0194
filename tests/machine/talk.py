"""Requests of an agent, one after the other, as a script says them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Tuple

from aeye.agent import Agent
from aeye.callback import attempt
from aeye.errors import PromptSuspend, ToolApprovalRequiredError
from aeye.hooks import (
    ToolApprovalDecision,
    cancel_prompt,
    request_tool_approval,
    skip_tool,
)
from aeye.memory import InMemoryStore, MemoryContext, MemoryOptions
from aeye.message import Message
from aeye.response import Response

from .dice import Dice
from .play import calls_that_wait, context_of, prompt_of, saved
from .script import SCRIPT, Said, Script, throw_script, throw_waiting
from .tools import do
from .world import Injected, Interrupted, World

HOOKS = (
    "on_tool_call",
    "on_tool_result",
    "on_tool_error",
    "on_turn_start",
    "on_turn_end",
    "on_completion_call",
    "on_completion_response",
    "on_completion_error",
    "on_run_start",
    "on_run_end",
    "on_run_error",
)
_DEEDS = (*("skip", "approval") * 3, "cancel", "raise", "abort", "junk")
_MIDDLEWARE = (
    "on_completion_request",
    "on_completion_response",
    "on_tool_input",
    "on_tool_output",
    "on_result",
)
_CHANGES = (*("other", "odd") * 3, "junk", "raise", "abort")


@dataclass(frozen=True, repr=False)
class Round(Said):
    """One request of a talk."""

    script: Script
    # How it is read: "stream", "send", "lines", or "quiet": without deltas of calls.
    way: str = "stream"
    # What is decided about calls that wait, if the round before left some.
    verdicts: Tuple[Any, ...] = ()


@dataclass(frozen=True, repr=False)
class Talk(Said):
    """An agent, and what is said to it."""

    rounds: Tuple[Round, ...] = ()
    session: bool = False
    policy: str = "turn"
    # What callbacks of the hook and of each middleware do: (name, deed, which time).
    hook: Tuple[Tuple[str, str, int], ...] = ()
    middlewares: Tuple[Tuple[str, str, int], ...] = ()
    # None: nobody is asked.
    approvals: Optional[str] = None
    # How often the model is asked, and whether after any error at all.
    attempts: int = 1
    stubborn: bool = False
    turns: int = 20
    width: int = 1
    # What an observer raises at, if there is one, and whether that counts.
    observer: Optional[str] = None
    strict: bool = False
    # What the store raises at, and at which time.
    fault: Tuple[str, int] = ("", 0)


ROUND = 8 + SCRIPT
TALK = 40 + 2 * ROUND


def throw_talk(dice: Dice) -> Talk:
    """Return any talk at all."""
    rounds = dice.several(_throw_round, ROUND, (1, 1, 2, 2))
    same = rounds[0].script
    kept = ("execution", "schema", "options", "wishes", "offers", "intercept")
    shared = {name: getattr(same, name) for name in (*kept, "present", "inner")}
    return Talk(
        rounds=tuple(
            replace(said, script=replace(said.script, **shared)) for said in rounds
        ),
        session=dice.of((False, True)),
        policy=dice.of(("turn", "message", "run")),
        hook=_places(dice.cut(6), HOOKS, _DEEDS),
        middlewares=_places(dice.cut(6), _MIDDLEWARE, _CHANGES),
        approvals=dice.of((*(None, "yes", "no") * 4, "words", "raise", "abort")),
        attempts=dice.of((1, 2, 3)),
        stubborn=dice.of((False, True)),
        turns=dice.of((20,) * 20 + (4, 3, 2, 1, 0)),
        width=dice.of((1, 2, 8)),
        observer=dice.of((None, *("nothing",) * 8, *_WATCHED)),
        strict=dice.of((False, False, True)),
        fault=(dice.seldom(("load", "append", "start"), 12) or "", dice.of((0, 1))),
    )


def _throw_round(dice: Dice) -> Round:
    way = dice.of(("stream", "stream", "send", "lines", "quiet"))
    verdicts = tuple(dice.of((True, True, "no", False, None)) for _ in range(4))
    throw = dice.of((throw_script, throw_script, throw_waiting))
    script = throw(dice.cut(SCRIPT))
    return Round(replace(script, door=()), way, verdicts)


def _places(
    dice: Dice, names: Tuple[str, ...], deeds: Tuple[str, ...]
) -> Tuple[Tuple[str, str, int], ...]:
    """Return where something is done, what, and at which time."""
    return tuple(
        (dice.of(names), dice.of(deeds), dice.of((0, 0, 0, 1)))
        for _ in range(dice.of((0, 0, 0, 0, 1, 2)))
    )


# What is hung into it


class Notes:
    """What the hook, the middleware, the observers and the store were told."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.hooks: List[Tuple[str, Any]] = []
        # Ids of the calls that were skipped or refused, and of those with consent.
        self.barred: List[str] = []
        self.approved: List[str] = []
        # Whom the observers were: what each was told, and whether it raised.
        self.watchers: List[Watcher] = []

    def hook(self, talk: Talk) -> Dict[str, Any]:
        """Return a hook that notes everything, and does what it is to do."""
        held = any(name == "on_completion_response" for name, _, _ in talk.hook)
        names = [n for n in HOOKS if held or n != "on_completion_response"]
        return {name: self._callback(name, talk.hook) for name in names}

    def _callback(self, name: str, said: Any) -> Any:
        def call(args: Any) -> Any:
            number = sum(told == name for told, _ in self.hooks)
            self.hooks.append((name, args))
            for place, deed, when in said:
                if place == name and when == number:
                    return self._answer(name, deed, args)
            return None

        return call

    def _answer(self, name: str, deed: str, args: Any) -> Any:
        if deed == "cancel":
            return cancel_prompt("enough")
        if deed == "approval":
            return request_tool_approval("sure?", "not so")
        if name == "on_tool_call" and deed in ("skip", "cancel", "abort"):
            self.barred.append(args.tool_call_id)
        if deed == "skip":
            return skip_tool("skipped")
        if deed == "junk":
            return 7
        do(self.world, deed)
        return None

    def middleware(self, name: str, deed: str, when: int) -> Dict[str, Any]:
        """Return middleware with one callback."""
        count = [0]

        def call(args: Any) -> Any:
            number, count[0] = count[0], count[0] + 1
            if number != when:
                return None
            if deed in ("raise", "abort"):
                do(self.world, deed)
                return None
            return 7 if deed == "junk" else _change(name, deed, args)

        return {name: call}

    def approve(self, how: str) -> Any:
        """Return an approval handler."""

        def handler(request: Any) -> Any:
            if how in ("raise", "abort"):
                do(self.world, how)
            yes = how not in ("no", "words")
            if how == "abort":  # it came before the consent
                self.barred.append(request.tool_call_id)
            (self.approved if yes else self.barred).append(request.tool_call_id)
            return ToolApprovalDecision(False, "words") if how == "words" else yes

        return handler


def _change(name: str, deed: str, args: Any) -> Any:
    """Return what middleware makes of what passes."""
    odd = deed == "odd"
    if name == "on_completion_request":
        made: Any = replace(args.request, temperature=1)
        return {"request": made} if odd else made
    if name == "on_completion_response":
        said: Response = args.response
        if odd:  # calls that the model did not make
            return replace(said, tool_calls=(*said.tool_calls, *said.tool_calls))
        return {"response": replace(said, content="changed", tool_calls=())}
    if name == "on_tool_input":
        return "{" if odd else {"args": {"do": "none"}}
    if name == "on_result":
        return "changed"
    return {"structured_result": [1]} if odd else "changed"


# What a request raises that waits.
WAITS = (PromptSuspend, ToolApprovalRequiredError)
_WATCHED = ("start_run", "start_generation", "start_tool", "end", "error", "event")


class Watcher:
    """An observer of one thing, and all observers at once: of a run, a call, a tool."""

    def __init__(self, notes: Notes, fault: str, strict: bool, kind: str) -> None:
        self.notes = notes
        self.fault = fault
        self.strict = strict
        self.kind = kind
        self.told: List[str] = []
        self.failed = False

    def _tell(self, name: str) -> None:
        self.told.append(name)
        if name == self.fault:
            self.failed = True
            raise Injected("observer")

    def _part(self, name: str, kind: str) -> Watcher:
        self._tell(name)
        made = Watcher(self.notes, self.fault, self.strict, kind)
        self.notes.watchers.append(made)
        return made

    def start_run(self, args: Any) -> Watcher:
        return self._part("start_run", "run")

    def start_generation(self, args: Any) -> Watcher:
        return self._part("start_generation", "generation")

    def start_tool(self, args: Any) -> Watcher:
        return self._part("start_tool", "tool")

    def event(self, *args: Any) -> None:
        self._tell("event")

    def stream_event(self, *args: Any) -> None:
        self._tell("event")

    def update(self, *args: Any) -> None:
        self._tell("event")

    def end(self, *args: Any) -> None:
        self._tell("end")

    def error(self, *args: Any) -> None:
        self._tell("error")


class Store(InMemoryStore):
    """A store that fails when it is to, and keeps what it was given by whom."""

    def __init__(self, fault: Tuple[str, int]) -> None:
        super().__init__()
        self._fault = fault
        self._counts: Dict[str, int] = {}
        self.errors: List[BaseException] = []

    def _fail(self, name: str) -> None:
        number = self._counts.get(name, 0)
        self._counts[name] = number + 1
        if (name, number) == self._fault:
            raise Injected("store")

    def load(self, context: MemoryContext) -> Any:
        self._fail("load")
        return super().load(context)

    def append(self, context: MemoryContext, *args: Any) -> None:
        self._fail("append")
        super().append(context, *args)

    def start_call(self, context: MemoryContext, tool_call_id: str) -> bool:
        self._fail("start")
        return super().start_call(context, tool_call_id)

    def record_error(self, context: Any, run_id: str, error: Any, said: Any) -> None:
        self.errors.append(error)

    @property
    def held(self) -> Tuple[Message, ...]:
        """What the session holds."""
        return tuple(super().load(WHERE))


WHERE = MemoryContext("s")


# Playing it


@dataclass
class TalkTrace:
    """What came of one request."""

    talk: Talk
    said: Round
    world: World
    notes: Notes
    # What was told, and what came after an ``error``.
    events: List[Any] = field(default_factory=list)
    error: Optional[BaseException] = None
    after: Optional[BaseException] = None
    response: Any = None
    state: str = ""
    left: bool = False
    resumed: bool = False
    # The store before and after, if the talk is a session.
    before: Tuple[Message, ...] = ()
    held: Tuple[Message, ...] = ()
    recorded: List[BaseException] = field(default_factory=list)

    def of(self, *kinds: str) -> List[Any]:
        """Return the events of these *kinds*."""
        return [event for event in self.events if event.type in kinds]


class TalkPlay:
    """A talk, round by round."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.store = Store(talk.fault)
        self._last: Optional[TalkTrace] = None

    def play(self, n: int) -> TalkTrace:
        """Play round *n*."""
        talk, said = self.talk, self.talk.rounds[n]
        world = World(said.script, round=n)
        trace = TalkTrace(talk, said, world, Notes(world))
        trace.before = self.store.held
        request = self._request(trace)
        trace.events = world.events
        if said.way == "send":
            _send(request, trace)
        else:
            _read(request, trace)
        world.clock.finish()
        trace.state = request.state
        _use_again(request, trace)
        trace.held = self.store.held
        trace.recorded, self.store.errors = self.store.errors, []
        self._last = trace
        return trace

    def _request(self, trace: TalkTrace) -> Any:
        talk, notes, script = self.talk, trace.notes, trace.said.script
        agent: Agent[Any] = Agent(
            prompt_of(script),
            context_of(trace.world, [], {"m": [1]}),
            input={"x": 1},
            hook=notes.hook(talk),
            middlewares=[notes.middleware(*said) for said in talk.middlewares],
            approvals=None if talk.approvals is None else notes.approve(talk.approvals),
            observers=[Watcher(notes, talk.observer, talk.strict, "all")]
            if talk.observer
            else [],
            memory=MemoryOptions(self.store, talk.policy),  # type: ignore[arg-type]  # thrown
        )
        request = self._said(agent, trace)
        retries: Dict[str, Any] = {"initial_delay_ms": 0, "max_delay_ms": 0}
        if talk.stubborn:
            retries["should_retry"] = lambda context: True
        return (
            request.max_turns(talk.turns)
            .with_tool_concurrency(talk.width)
            .with_completion_retries(max_attempts=talk.attempts, **retries)
        )

    def _said(self, agent: Agent[Any], trace: TalkTrace) -> Any:
        """Return the request: a new one, or one that goes on where a call waits."""
        place: Any = agent.session("s") if self.talk.session else agent
        last = self._last
        error: Any = None if last is None else last.error
        if isinstance(error, WAITS):
            error.messages = saved(error.messages)
            error.children = {k: saved(said) for k, said in error.children.items()}
            waits = calls_that_wait(error.messages, error.children)
            said = zip(waits, trace.said.verdicts)
            decisions = {k: v for k, v in said if v is not None}
            trace.resumed = True
            trace.world.consented = {k for k, v in decisions.items() if v is True}
            return place.resume(error, decisions)
        if self.talk.session or last is None or last.response is None:
            return place.prompt("hi")
        return place.prompt([*last.response.messages, Message("user", "more")])


def _send(request: Any, trace: TalkTrace) -> None:
    try:
        trace.response, trace.error = attempt(request.send)
    except Interrupted as exc:
        trace.error = exc


def _read(request: Any, trace: TalkTrace) -> None:
    """Read a request as its reader does."""
    way, reader, events = trace.said.way, trace.said.script.reader, trace.events
    if way == "lines":
        stream = request.readable_stream()
    else:
        stream = request.stream(include_tool_call_deltas=way == "stream")
    while True:
        if reader.does in ("close", "drop") and len(events) >= reader.at:
            trace.left = True
            if reader.does == "close":
                stream.close()
            return
        try:
            event, error = attempt(next, stream)
        except Interrupted as exc:
            event, error = None, exc
        if error is not None:
            break
        events.append(Line(event) if way == "lines" else event)
        if reader.pause:
            trace.world.clock.pause(reader.pause)
        if reader.does == "abort" and len(events) == reader.at:
            trace.world.abort()
    if not isinstance(error, StopIteration):
        trace.error = error
        _, trace.after = attempt(next, stream)
        return
    made, _ = attempt(lambda: stream.response)
    trace.response = made


class Line:
    """A line of a readable stream, read like an event."""

    def __init__(self, text: bytes) -> None:
        assert text.endswith(b"\n") and text.count(b"\n") == 1, "no line"
        self.said: Dict[str, Any] = json.loads(text)
        self.type: str = self.said["type"]
        self.tool_call_id = self.said.get("tool_call_id")


def _use_again(request: Any, trace: TalkTrace) -> None:
    """A request that was begun is used up."""
    if request.state == "idle":
        assert trace.left and not trace.events, "it was read, and is idle"
        return
    for use in (request.send, lambda: request.max_turns(1)):
        _, error = attempt(use)
        assert isinstance(error, RuntimeError), "a request was used twice"
