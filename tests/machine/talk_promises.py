"""What every request of an agent promises, held against what came of a talk."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List

from aeye import errors
from aeye.decision import unanswered
from aeye.window import repair

from .promises import (
    check_consent,
    check_forgotten,
    check_inner_runs,
    pairs,
    past_replies,
)
from .script import NESTED, REFUSAL
from .talk import WAITS, TalkTrace
from .world import Injected, Interrupted

_EXPECTED = (
    Injected,
    Interrupted,
    TypeError,  # what a callback returned was none of what it may return
    errors.PromptError,
    errors.PromptSuspend,
    errors.ProviderError,
    errors.ToolCallError,
)


def check_talk(trace: TalkTrace) -> None:
    """Hold *trace* against all that is promised of a request."""
    check_end(trace)
    check_messages(trace)
    check_events(trace)
    check_tools(trace)
    check_hook(trace)
    check_watchers(trace)
    check_store(trace)
    check_spent(trace)
    check_inner_runs(trace.world)
    check_forgotten(trace.world)
    world = trace.world
    assert world.opened == world.closed, "a stream of the model stayed open"
    world.clock.check()


def check_end(trace: TalkTrace) -> None:
    """One outcome: a response or an exception, told as the last event."""
    kinds = [event.type for event in trace.events]
    assert kinds.count("final") + kinds.count("error") <= 1, "two ends"
    for kind in ("final", "error"):
        assert kind not in kinds[:-1], f"something after {kind}"
    if trace.state == "idle":
        return
    last = kinds[-1] if kinds else ""
    if trace.left:
        ended = {"final": "completed", "error": "errored"}.get(last)
        assert trace.state in (ended, "cancelled"), trace.state
        return
    if isinstance(trace.error, Interrupted):
        assert trace.state in ("cancelled", "errored")
        assert not {"final", "error"} & set(kinds)
        return
    if trace.said.way == "send":
        assert (trace.response is None) != (trace.error is None)
        failed = trace.error is not None
    else:
        assert last in ("final", "error"), "a stream ended without an end"
        failed = last == "error"
    if not failed:
        assert trace.state == "completed"
        assert trace.error is None
        return
    error = trace.error
    assert error is None or isinstance(error, _EXPECTED), repr(error)
    cancelled = isinstance(error, errors.PromptCancelledError)
    if trace.said.way == "lines":
        assert error is None, "a readable stream raised"
        name = trace.events[-1].said["error"]["name"]
        cancelled = name == "PromptCancelledError"
    elif trace.said.way != "send":
        assert trace.events[-1].error is error, "another exception was raised"
        assert isinstance(trace.after, StopIteration), "something after the exception"
    assert trace.state == ("cancelled" if cancelled else "errored")


def check_messages(trace: TalkTrace) -> None:
    """Every list of messages that leaves is whole."""
    for request in trace.world.requests:
        assert pairs(request.messages), "a request was sent that is not whole"
    new = {"messages": (), "chat_history": ()}
    for name in new:
        new[name] = getattr(trace.error, name, ())
    if isinstance(trace.error, WAITS):
        waits = frozenset(call.id for call in unanswered(new["messages"]))
        assert waits, "nothing waits"
        assert pairs(new["messages"], waits=waits)
        children = getattr(trace.error, "children", {})
        script = trace.said.script
        if not (trace.talk.hook or script.intercept or script.present):
            for call in unanswered(new["messages"]):
                within = call.name not in NESTED or call.id in children
                assert within, "where a run within waits is lost"
        for path, said in children.items():
            assert path.partition("/")[0] in waits, "nobody waits for this run"
            assert pairs(said, waits=frozenset(c.id for c in unanswered(said)))
            assert unanswered(said), "a run within waits for nothing"
        return
    lacking = _may_lack(trace)
    # A hook may put an error in the place of one that says where calls wait.
    waited = isinstance(getattr(trace.error, "__cause__", None), WAITS)
    for name, said in new.items():
        waits = frozenset(c.id for c in unanswered(said)) if waited else frozenset()
        whole = pairs(past_replies(said), waits=waits)
        assert lacking or whole, f"{name} of {trace.error!r}"
    if trace.response is None:
        return
    said = trace.response.messages
    assert lacking or pairs(past_replies(said)), "a response that is not whole"
    if trace.said.way == "send" or trace.said.way == "lines":
        return
    final = trace.events[-1]
    assert (final.messages, final.output, final.usage) == (
        said,
        trace.response.output,
        trace.response.usage,
    )


def _may_lack(trace: TalkTrace) -> bool:
    """Whether replies may be missing: that was asked for."""
    return dict(trace.said.script.options).get("tools_complete") is False


def check_events(trace: TalkTrace) -> None:
    """Turns follow each other; what a turn shows is what it says at its end."""
    if trace.said.way == "lines":
        return
    turn, text, calls = 0, "", []
    for event in trace.events:
        if event.type == "turn_start":
            assert event.turn - turn in (0, 1), "a turn was left out"
            turn, text, calls = event.turn, "", []
            whole = pairs((*event.history, event.prompt))
            assert whole or _may_lack(trace)
        elif event.type == "text_delta" and event.delta != REFUSAL:
            text += event.delta
        elif event.type == "tool_call":
            calls.append(event.tool_call.id)
        elif event.type == "turn_end":
            assert event.turn == turn
            assert event.response.content == text, "another text than was shown"
            ids = [call.id for call in event.response.tool_calls]
            # They are told of as they are complete, which may be another order.
            assert sorted(ids) == sorted(calls), "other calls than were told of"
    deltas = trace.of("tool_call_delta")
    assert trace.said.way != "quiet" or not deltas


def check_tools(trace: TalkTrace) -> None:
    """A call has one result, and its tool runs once, if nobody was against it."""
    seen = Counter(event.tool_call_id for event in trace.of("tool_result"))
    assert not seen or max(seen.values()) == 1, "a call had two results"
    runs = Counter(trace.world.runs)
    assert not runs or max(runs.values()) == 1, "a tool was entered twice for one call"
    check_consent(trace.world, trace.notes.approved)
    barred = set(trace.notes.barred) & set(runs)
    assert not barred, "a tool was run that was not to be run"
    children: Dict[str, List[str]] = {}
    for event in trace.of("agent_tool_event"):
        if trace.said.way == "lines":
            kind, call = event.said["event"]["type"], event.said["tool_call_id"]
        else:
            kind, call = event.event.type, event.tool_call_id
        assert trace.said.way != "quiet" or kind != "tool_call_delta"
        children.setdefault(call, []).append(kind)
    for kinds in children.values():
        ends = [kind for kind in kinds if kind in ("final", "error")]
        assert len(ends) <= 1, "a child ended twice"
        assert not ends or kinds[-1] == ends[0], "a child told more after its end"


def check_hook(trace: TalkTrace) -> None:
    """A hook is told once that the run begins, and once how it ends."""
    told = [name for name, _ in trace.notes.hooks]
    count = Counter(told)
    if trace.state == "idle":
        assert not told
        return
    assert count["on_run_start"] <= 1
    assert not set(told) - {"on_run_error"} or told[0] == "on_run_start"
    assert count["on_run_end"] <= 1
    assert count["on_run_error"] == (trace.state != "completed"), "the end, not once"
    assert told[-1] == ("on_run_end" if trace.state == "completed" else "on_run_error")
    for name, args in trace.notes.hooks:
        if name in ("on_run_end", "on_run_error") and not _may_lack(trace):
            whole = args.messages
            waits = frozenset(call.id for call in unanswered(whole))
            assert not waits or name == "on_run_error"
            assert pairs(past_replies(whole), waits=waits), f"{name} is not whole"
    for name in ("on_tool_call", "on_tool_result", "on_tool_error"):
        calls = Counter(a.tool_call_id for n, a in trace.notes.hooks if n == name)
        assert not calls or max(calls.values()) == 1, f"{name} twice for a call"
    turns = [args.turn for name, args in trace.notes.hooks if name == "on_turn_start"]
    assert all(b - a in (0, 1) for a, b in zip([0, *turns], turns))
    assert not turns or turns[-1] <= trace.talk.turns, "more turns than allowed"


def check_watchers(trace: TalkTrace) -> None:
    """What an observer was told to have begun is told to have ended, once."""
    for watcher in trace.notes.watchers:
        ends = watcher.told.count("end") + watcher.told.count("error")
        assert ends == 1 or watcher.failed, f"{watcher.kind}: {watcher.told}"
        ended = watcher.told[-1] in ("end", "error")
        assert ended or watcher.failed, f"{watcher.kind}: {watcher.told}"


def check_store(trace: TalkTrace) -> None:
    """A session holds whole groups, and grows by what the run said."""
    held, before = trace.held, trace.before
    assert held[: len(before)] == before, "a session was changed"
    assert pairs(held), "a session that is not whole"
    if not trace.talk.session:
        assert not held
        return
    if trace.response is not None and not trace.resumed:
        assert held == (*before, *repair(trace.response.messages))
    if trace.state in ("errored", "cancelled"):
        assert len(trace.recorded) == 1, "a failure was not recorded once"
    else:
        assert not trace.recorded


def check_spent(trace: TalkTrace) -> None:
    """What was reported was counted, and no model was asked too often."""
    world, last = trace.world, trace.events[-1:]
    if trace.response is not None:
        assert trace.response.usage == world.usage
    for event in last:
        if event.type == "error" and trace.said.way != "lines":
            assert event.usage == world.usage, "other usage than was reported"
    if isinstance(trace.error, errors.PromptError) and trace.error.usage is not None:
        assert trace.error.usage == world.usage
    options, limits = dict(trace.said.script.options), dict(trace.said.script.limits)
    again = int(options.get("forget_retries", limits.get("forget_retries", 1)))
    again += sum((wish or {}).get("forget_retries", 0) for wish in _wishes(trace))
    turns = (trace.talk.turns + again) * trace.talk.attempts
    assert len(world.requests) <= turns, "more requests than allowed"
    late = world.after_abort
    assert not late, f"{late} after the abort"


def _wishes(trace: TalkTrace) -> List[Any]:
    return [w for w in trace.said.script.wishes if isinstance(w, dict)]
