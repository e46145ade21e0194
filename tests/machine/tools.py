"""The tools of a world, and runs within them."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Dict, Generator, List

from aeye.agent import Agent
from aeye.context import Context
from aeye.errors import PromptSuspend, ToolInterrupt
from aeye.message import Message, Part
from aeye.prompt import Prompt
from aeye.recipe import Policy
from aeye.tools import Tool

from .script import DEEDS
from .world import OUTER, Injected, Interrupted, Mute


class Thing:
    """What a tool may return: no JSON, but words."""

    def __str__(self) -> str:
        return "a thing"


def do(world: Any, what: str) -> Any:
    """Do what the script says, in whoever's place it says it."""
    if what == "abort":
        world.abort()
    deed = _DEEDS[what]
    return deed() if callable(deed) else deed


def _raise(kind: Callable[[], BaseException]) -> Callable[[], Any]:
    def deed() -> Any:
        raise kind()

    return deed


def _ring() -> Any:
    ring: List[Any] = []
    ring.append(ring)
    return ring


@functools.cache
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


_DEEDS: Dict[str, Any] = {
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
    ctx.world.enter(ctx)
    return _work(args, ctx)


def _call_asked(args: Any, ctx: Context) -> Any:
    ctx.world.enter(ctx, consent=_wants_consent(args))
    return _work(args, ctx)


def _wants_consent(args: Any) -> bool:
    return bool(args.get("n", 0) > 0)


def _work(args: Any, ctx: Context) -> Any:
    world, seconds = ctx.world, args.get("n", 0)
    if seconds:
        world.clock.pause(seconds)
    return do(world, args.get("do", "text"))


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
PLAIN: List[Tool[Any]] = [
    Tool("work", _call, schema=_ARGS, instructions="Work."),
    Tool("here", _call, schema=_ARGS, inline=True),
    Tool("timed", _call, schema=_ARGS, timeout=2),
    Tool("asked", _call_asked, schema=_ARGS, approval=_wants_consent),
    Tool("fatal", _call, schema=_ARGS, on_error="raise"),
    Tool("steps", _call_steps, schema=_ARGS),
    Tool("odd", _call_odd, schema=_ARGS, parse=lambda args: {("said", 1): args}),
]


class Watched(Prompt[Any]):
    """A prompt whose runs are on the world's clock, and that notes what it forgets."""

    def start(self, input: Any, ctx: Context, policy: Policy) -> Any:
        """Return a run, with workers that the world schedules."""
        world = ctx.world
        if policy.workers is None:
            policy.workers = world.clock.workers()
        run = super().start(input, ctx, policy)
        if self.name != OUTER:
            world.inner_runs.append(run)
        return run

    def forget(self, request: Any, ctx: Context, usage: Any) -> Any:
        """Forget what is to be forgotten, and note it."""
        kept = super().forget(request, ctx, usage)
        ctx.world.forgotten.append((request.messages, kept, ctx.messages))
        return kept


@functools.cache
def nested(execution: Any) -> List[Tool[Any]]:
    """Return tools that run prompts and agents: ``script.NESTED``, in that order."""
    made = Watched("inner", "Inner.", tools=PLAIN, tool_execution=execution)

    def late(args: Any, ctx: Context) -> Any:
        said = [Message("user", args["prompt"])]
        return made({}, ctx.replace(messages=said, tool_call_id=None))

    asked = {"type": "object", "properties": {"prompt": {"type": "string"}}}
    return [
        made.as_tool("child"),
        Agent(made, approvals=lambda request: True, max_turns=3).as_tool("agent"),
        Agent(made, max_turns=2).as_tool("live", stream=True),
        Tool("late", late, schema=asked, timeout=2),
    ]
