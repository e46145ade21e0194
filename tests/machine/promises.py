"""What every run promises, held against what came of a script."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Sequence

from aeye import errors
from aeye.message import Message

from .play import Trace
from .script import NESTED, REFUSAL
from .world import ENDS, Injected, Interrupted, World

EXPECTED = (
    Injected,
    Interrupted,
    errors.PromptError,
    errors.ProviderError,
    errors.ToolCallError,
)


def check(trace: Trace) -> None:
    """Hold *trace* against all that is promised of a run."""
    check_pairing(trace)
    check_calls(trace)
    check_order(trace)
    check_end(trace)
    check_abort(trace)
    check_budget(trace)
    check_text(trace)
    check_forgotten(trace.world)
    check_inner(trace)
    check_leaks(trace)
    assert not trace.changed, "a value of the caller was changed"


def check_leaks(trace: Trace) -> None:
    """No stream and no worker stays."""
    world = trace.world
    assert world.opened == world.closed, "a stream of the model stayed open"
    world.clock.check()


def check_inner(trace: Trace) -> None:
    """Runs within tools answer their calls too; where one waits, the run waits."""
    check_inner_runs(trace.world)
    waiting = {event.tool_call_id for event in trace.of("tool_suspend")}
    waiting.update(unanswered(trace.given) if trace.resumed else ())
    for path, messages in trace.children.items():
        assert path.partition("/")[0] in waiting, "nobody waits for this run"
        assert unanswered(messages), "a run within waits for nothing"
        assert pairs(messages, waits=frozenset(unanswered(messages)))
    script = trace.script
    stopped = script.door or script.intercept or script.present
    if trace.last == "suspend" and not stopped:
        asked = next(m for m in reversed(trace.events[-1].messages) if m.tool_calls)
        left = unanswered(trace.events[-1].messages)
        inner = {c.id for c in asked.tool_calls if c.id in left and c.name in NESTED}
        assert inner <= set(trace.children), "where a run within waits is lost"
    check_child_events(trace.of("tool_progress"))


def check_inner_runs(world: World) -> None:
    """Runs within tools answer their calls too."""
    for request in world.inner_requests:
        assert pairs(request.messages), "a run within sent what is not whole"
    for run in world.inner_runs:
        waits = frozenset(unanswered(run.messages))
        assert pairs(past_replies(run.messages), waits=waits)


def check_child_events(told: Sequence[Any]) -> None:
    """A child agent tells its turns in order and ends once, if it ends."""
    kinds: Dict[str, List[str]] = {}
    for event in told:
        inner = getattr(event.value, "event", None)
        if inner is not None:
            kinds.setdefault(event.tool_call_id, []).append(inner.type)
    for seen in kinds.values():
        ends = [kind for kind in seen if kind in ("final", "error")]
        assert len(ends) <= 1, "a child ended twice"
        assert not ends or seen[-1] == ends[0], "a child told more after its end"


def pairs(
    messages: Sequence[Message],
    *,
    waits: FrozenSet[str] = frozenset(),
    growing: bool = False,
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
    new = past_replies(trace.messages)
    if not may_lack:
        # A reader may leave while the end of a run that waits is being told.
        ended = trace.last == "suspend" or bool(
            trace.left and trace.of("text_complete")
        )
        assert pairs(new, waits=waits if ended else frozenset())
        for name in ("messages", "chat_history"):
            left = past_replies(getattr(trace.error, name, ()))
            assert pairs(left), f"{name} of {trace.error!r}"
    told = [event.message for event in trace.of("message")]
    rest = iter(trace.messages)
    assert all(message in rest for message in told)
    assert trace.left or trace.error or told == list(trace.messages)


def past_replies(messages: Sequence[Message]) -> Sequence[Message]:
    """Return *messages* without first ones to calls that were brought along."""
    while messages and messages[0].role == "tool":
        messages = messages[1:]
    return messages


def unanswered(messages: Sequence[Message]) -> List[str]:
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
    ours = {name for name in runs if not is_inner(name)}
    assert ours <= set(state), "a tool was entered without a start"
    assert not trace.hasty, "the last call was started while the answer came"
    assert not trace.world.late, "a tool was entered after its call had ended"
    check_consent(trace.world, ())
    finished = trace.last in ("complete", "suspend", "usage") and not trace.left
    if finished:
        assert set(state.values()) <= {"ended"}, "a call started and did not end"


def check_consent(world: World, approved: Sequence[str]) -> None:
    """What needs consent is run with it only; runs within may have their own."""
    ours = {name for name in world.consenting if not is_inner(name)}
    assert ours <= {*world.consented, *approved}, "a tool was run without consent"


def is_inner(name: str) -> bool:
    """Whether a call of this id is one of a run within."""
    return name.startswith("i")


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
        assert isinstance(trace.error, EXPECTED), trace.error
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
    assert not trace.world.after_abort, trace.world.after_abort
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
            if limit is not None:
                budget = told.iteration + limit
                budget = budget if turns is None else min(budget, turns)
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


def check_forgotten(world: World) -> None:
    """Forgetting keeps system messages, the last user turn and the latest group."""
    for before, kept, given in world.forgotten:
        assert pairs(kept, waits=frozenset(unanswered(given)))
        rest = iter(before)
        assert all(any(m is k for m in rest) for k in kept), "not a part of it"
        for message in before:
            assert message.role != "system" or message in kept
        users = [m for m in before if m.role == "user"]
        assert not users or any(m is users[-1] for m in kept)
        asked = [m for m in given if m.role == "user"]
        lost = asked and asked[-1] in before and asked[-1] not in kept
        assert not lost, "what was asked was forgotten"
        start = len(before) - 1
        while start > 0 and before[start].role == "tool":
            start -= 1
        assert list(kept[-(len(before) - start) :]) == list(before[start:])
