"""One run of a prompt, as a script says it."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from aeye.callback import attempt
from aeye.context import Context, Result
from aeye.decision import unanswered
from aeye.event_stream import EventStream
from aeye.message import Message, ToolCall
from aeye.prompt import Prompt
from aeye.recipe import Policy

from .clock import Clock
from .script import CONFIGS, Script
from .tools import PLAIN, Watched, do, nested
from .world import OUTER, Injected, Interrupted, World

SHAPE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}},
    "required": ["v"],
}


class Door(Policy):
    """A policy that does what the script says."""

    def __init__(self, world: World, said: Dict[str, Any]) -> None:
        self.world = world
        self.said = said
        self.max_turns = said.get("max_turns")
        self.tool_concurrency = said.get("tool_concurrency")
        if "admit" in said:
            self.admit = self._admit

    def _admit(self, call: Any) -> Any:
        return self._say("admit")

    def before_tool(self, call: Any) -> Any:
        """A call is about to start."""
        return self._say("before")

    def after_tool(self, call: Any) -> Any:
        """A call's outcome is known."""
        self._say("after")
        return ()

    def _say(self, place: str) -> Any:
        what = self.said.get(place)
        if what == "answer":
            return Result("answered")
        if what == "refuse":
            return "refused"
        return None if what is None else do(self.world, what)


@dataclass
class Trace:
    """What came of a script."""

    script: Script
    world: World
    events: List[Any]
    error: Optional[BaseException]
    output: Any
    # The run's new messages; what was given.
    messages: Tuple[Message, ...]
    given: Tuple[Message, ...]
    # Where runs within calls that wait are to resume, by call.
    children: Mapping[str, Tuple[Message, ...]]
    # Whether the reader left early.
    left: bool = False
    # Whether a value of the caller is not what it was.
    changed: bool = False
    # Whether decisions were brought along.
    resumed: bool = False
    # Calls that were started while nobody could know that they were not the last.
    hasty: Sequence[str] = ()

    def of(self, *kinds: str) -> List[Any]:
        """Return the events of these *kinds*."""
        return [event for event in self.events if event.type in kinds]

    @property
    def last(self) -> str:
        """The kind of the last event."""
        return self.events[-1].type if self.events else ""


class Play:
    """One run of a script, event by event."""

    def __init__(
        self,
        script: Script,
        prompt: Prompt[Any] | None = None,
        *,
        messages: Sequence[Message] | None = None,
        decisions: Dict[str, Any] | None = None,
        clock: Clock | None = None,
        round: int = 0,
    ) -> None:
        self.script = script
        self.world = world = World(script, clock, round=round)
        given = history(script.history) if messages is None else messages
        self.input = {"x": {"y": [1]}}
        self.metadata = {"m": [1]}
        self.ctx = context_of(world, given, self.metadata, decisions)
        # Messages are frozen: a list of the same ones is the same.
        self._before = (tuple(given), dict(decisions or {}))
        self._given = (given, {} if decisions is None else decisions)
        world.consented = {k for k, v in self._given[1].items() if v is True}
        door = Door(world, dict(script.door))
        self.run = (prompt or prompt_of(script)).start(self.input, self.ctx, door)
        self.run.streaming = script.streaming
        self.stream: Any = EventStream(self.run, lambda event: event)
        self.error: Optional[BaseException] = None
        self.output: Any = None
        self.left = False
        # Calls started since the last request; those of them that were not yet ripe.
        self.started = 0
        self.hasty: List[str] = []

    def step(self) -> bool:
        """Read one event and do what the reader does; return whether to go on."""
        reader, events = self.script.reader, self.world.events
        if reader.does in ("close", "drop") and len(events) >= reader.at:
            self.leave(reader.does)
            return False
        try:
            event, error = attempt(next, self.stream)
        except Interrupted as exc:
            event, error = None, exc
        if error is not None:
            if isinstance(error, StopIteration):
                self.output = error.value
            else:
                self.error = error
            return False
        events.append(event)
        self._count(event)
        if reader.pause:
            self.world.clock.pause(reader.pause)
        if reader.does == "abort" and len(events) == reader.at:
            self.world.abort()
        return True

    def _count(self, event: Any) -> None:
        """Count what has been started of an answer that is on its way."""
        world = self.world
        if event.type == "request":
            self.started = 0
        elif event.type == "tool_start":
            self.started += 1
            if world.speaking and self.started > world.ripe:
                self.hasty.append(event.tool_call_id)

    def leave(self, how: str) -> None:
        """Read no more: "close" the stream, or "drop" it."""
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
            given=tuple(self._given[0]),
            children=run.children,
            left=self.left,
            resumed=self.ctx.decisions is not None,
            hasty=self.hasty,
        )
        self.world.clock.finish()
        same = (self.input, self.metadata) == ({"x": {"y": [1]}}, {"m": [1]})
        messages, decisions = self._given
        trace.changed = not same or (tuple(messages), decisions) != self._before
        return trace


def play(script: Script, prompt: Prompt[Any] | None = None, **given: Any) -> Trace:
    """Play *script* from its beginning to its end."""
    playing = Play(script, prompt, **given)
    while playing.step():
        pass
    return playing.end()


def context_of(
    world: World,
    messages: Sequence[Message],
    metadata: Dict[str, Any],
    decisions: Dict[str, Any] | None = None,
) -> Context:
    """Return the context of a run in *world*."""
    script = world.script
    model: Any = {"stream": world.stream, "execute": world.execute}
    del model["execute" if script.streaming else "stream"]
    return Context(
        messages=messages,
        signal=world.signal,
        world=world,
        metadata=metadata,
        decisions=decisions,
        **model,
        **dict(script.limits),
    )


def prompt_of(script: Script) -> Prompt[Any]:
    """Return the prompt of *script*; it holds nothing of a run."""
    functions = {
        "reconfig": _reconfig if script.wishes else None,
        "retool": _retool if script.offers else None,
        "on_tool_intercept": _intercept if script.intercept else None,
        "on_tool_result": _present if script.present else None,
    }
    return _prompt(
        script.execution,
        script.schema,
        bool(script.inner),
        (*script.options, *functions.items()),
    )


@functools.lru_cache(maxsize=512)
def _prompt(execution: Any, shaped: bool, nesting: bool, said: Any) -> Prompt[Any]:
    options = dict(said)
    if "config" in options:
        options["config"] = CONFIGS[options["config"]]
    return Watched(
        OUTER,
        "Do {{x}}.",
        tools=[*PLAIN, *(nested(execution) if nesting else ())],
        tool_execution=execution,
        schema=SHAPE if shaped else None,
        validate=_validate,
        **options,
    )


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


def _intercept(tool: Any, args: Any, ctx: Context) -> Any:
    return do(ctx.world, ctx.world.script.intercept)


def _present(about: Any, ctx: Context) -> Any:
    said = ctx.world.script.present
    return about.result if said == "echo" else do(ctx.world, said)


def history(name: str) -> List[Message]:
    """Return what a caller may bring along, whole or broken."""
    user = Message("user", "u", tokens=20)
    asked = Message(
        "assistant", tool_calls=(ToolCall("h1", "work"), ToolCall("h2", "work"))
    )
    reply = Message("tool", "one", tool_call_id="h1")
    if name == "user":
        return [user]
    if name == "saved":
        return [Message("system", "old"), user, Message("assistant", "a"), user]
    if name == "dangling":
        return [user, asked, reply, user]
    if name == "orphans":
        return [reply, user, reply, asked, user, reply, reply]
    if name == "long":
        return [*_old("h3"), *_old("h4"), user]
    return []


def _old(name: str) -> List[Message]:
    return [
        Message("user", "old", tokens=40),
        Message("assistant", tool_calls=(ToolCall(name, "work"),), tokens=40),
        Message("tool", "r", tool_call_id=name, tokens=40),
    ]


# Where a run waits


def saved(messages: Sequence[Message]) -> Tuple[Message, ...]:
    """Return *messages* as they are read after they were written."""
    text = json.dumps([message.to_dict() for message in messages])
    return tuple(Message.from_dict(message) for message in json.loads(text))


def calls_that_wait(
    messages: Sequence[Message], children: Mapping[str, Sequence[Message]]
) -> List[str]:
    """Return the paths of calls that wait, of the run and of those within."""
    found = [call.id for call in unanswered(messages) if call.id not in children]
    for path, inner in children.items():
        within = (f"{path}/{call.id}" for call in unanswered(inner))
        found += [name for name in within if name not in children]
    return found
