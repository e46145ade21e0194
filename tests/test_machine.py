"""Whatever a model, its tools and its reader do, a run keeps its promises.

Random scripts are played in ``machine``, where nothing is left to chance, and held
against the promises. ``AEYE_ONDEMAND=1`` plays more of them, ``AEYE_EXAMPLES`` says
how many.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import machine
from machine import Answer, CallPlan, Play, Reader, Script, Trace, check, play

from aeye.context import Result
from aeye.message import Message

ONDEMAND = os.environ.get("AEYE_ONDEMAND") == "1"
EXAMPLES = int(os.environ.get("AEYE_EXAMPLES", "20000" if ONDEMAND else "250"))


def examples(share: float) -> Any:
    """Settings for a test that plays its *share* of the scripts."""
    return settings(
        max_examples=max(int(EXAMPLES * share), 1),
        derandomize=not ONDEMAND,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


WRITTEN = [None] * 18 + ["", "{", '{"n": "x"}', '{"o": "{}"}', '{"o": "{"}', "null"]
MODES = ["sequential", "parallel", "immediate"]

call_plans = st.builds(
    CallPlan,
    tool=st.sampled_from([*machine.NAMES, *["work", "timed"] * 4, "zz"]),
    do=st.sampled_from([*machine.DEEDS, *["text", "steps"] * 8]),
    seconds=st.sampled_from([0, 0, 1, 3, 5]),
    written=st.sampled_from(WRITTEN),
    id=st.sampled_from(["", "", "x", "y", "h1"]),
    style=st.sampled_from(["whole", "pieces", "bare"]),
    pause=st.sampled_from([0, 0, 1, 2]),
)
TEXTS = ['{"v": 1}', '{"v": 1}', '{"v": 3}', '{"v": "x"}', "bad", "no", ""]
texts = st.lists(st.sampled_from(TEXTS), max_size=1).map(tuple)
answers = st.builds(
    Answer,
    text=texts,
    calls=st.lists(call_plans, max_size=4).map(tuple),
    finish=st.sampled_from(
        ["auto"] * 12 + [None, "length", "content_filter", "refusal", "tool_calls"]
    ),
    thought=st.sampled_from([False, False, True]),
    refusal=st.sampled_from([None] * 19 + [machine.REFUSAL]),
    usage=st.sampled_from([(5,), (5,), (), (5, 7), (90,)]),
    error=st.sampled_from([None] * 24 + list(machine.ERRORS)),
    error_after=st.integers(0, 5),
    abort_after=st.sampled_from([None] * 24 + [0, 1, 3]),
)
readers = st.builds(
    Reader,
    does=st.sampled_from(["all", "all", "all", "close", "drop", "abort"]),
    at=st.integers(0, 25),
    pause=st.sampled_from([0, 0, 1]),
)


def some(choices: dict[str, list[Any]]) -> Any:
    """A few of *choices*, as pairs."""
    pairs = [(name, value) for name, values in choices.items() for value in values]
    chosen = st.lists(st.sampled_from(pairs), max_size=4, unique_by=lambda p: p[0])
    return chosen.map(tuple)


OPTIONS = {
    "tool_concurrency": [1, 1, 2, 2, 3],
    "tool_retries": [0, 1],
    "tool_iterations": [0, 1],
    "tools_max": [1, 2],
    "tools_only": [True],
    "tools_complete": [False],
    "output_retries": [0, 1],
    "forget_retries": [0, 2],
    "validation_error_max_length": [0, 20],
    "dynamic": [True],
    "exclude_messages": [True],
    "runtime_schema_fallback": [False],
    "config": [
        {"tool_choice": "required"},
        {"tool_choice": {"tool": "work"}},
        {"tools_one_at_a_time": True},
        {"max_tokens": 9},
    ],
}
LIMITS = {
    "context_window": [50, 120],
    "max_output_tokens": [10],
    "estimate_usage": [lambda message: 20],
    "output_retries": [0],
    "tool_retries": [0],
}
STEPS = ["answer", "refuse", "raise", "interrupt", "suspend"]
DOORS = {
    "max_turns": [0, 1, 2],
    "tool_concurrency": [1, 2],
    "admit": STEPS,
    "before": STEPS,
    "after": ["raise", "abort"],
}
WISHES = [
    None,
    {},
    *({"max_iterations": n} for n in (0, 1, 2)),
    {"tool_retries": 0},
    {"output_retries": 1},
    {"forget_retries": 2},
    {"config": {"temperature": 1, "messages": ()}},
    "raise",
]
OFFERS = [["work", "steps"], [], ["work"], "no", machine.NAMES]


def seldom(*values: Any) -> Any:
    return st.sampled_from([None] * 12 + list(values))


scripts = st.builds(
    Script,
    answers=st.lists(answers, min_size=1, max_size=4).map(tuple),
    execution=st.sampled_from(MODES),
    streaming=st.sampled_from([True, True, False]),
    reader=readers,
    history=st.sampled_from(["none"] * 4 + [*machine.histories()]),
    schema=st.booleans(),
    options=some(OPTIONS),
    limits=st.one_of(st.just(()), some(LIMITS)),
    door=st.one_of(st.just(()), st.just(()), some(DOORS)),
    wishes=st.lists(st.sampled_from(WISHES), max_size=2).map(tuple),
    intercept=seldom("dict", "raise", "suspend", "interrupt", "none"),
    present=seldom("echo", "none", "dict", "mute", "ring", "suspend"),
    offers=st.lists(st.sampled_from(OFFERS), max_size=1).map(tuple),
    foreign_signal=st.booleans(),
    latest_first=st.booleans(),
)


@examples(0.8)
@given(scripts)
def test_a_run_keeps_its_promises(script: Script) -> None:
    """Every promise holds for every script."""
    check(play(script))


# Going on where a run waits

waiting_calls = st.builds(
    CallPlan,
    tool=st.sampled_from(["work", "asked", "asked", "here", "timed", "steps"]),
    do=st.sampled_from(["suspend", "suspend", "text", "raise", "interrupt"]),
    seconds=st.sampled_from([0, 1, 3]),
    id=st.sampled_from(["", "x"]),
)
waiting = st.builds(
    Script,
    answers=st.lists(
        st.builds(
            Answer, calls=st.lists(waiting_calls, min_size=1, max_size=3).map(tuple)
        ),
        min_size=1,
        max_size=2,
    ).map(tuple),
    execution=st.sampled_from(MODES),
    streaming=st.booleans(),
    schema=st.booleans(),
    options=some({"tools_complete": [False], "tool_retries": [0], "tools_max": [1]}),
)
verdicts = st.sampled_from([True, True, "no", False, Result({"a": 1}), None])


@examples(0.1)
@given(waiting, st.lists(st.lists(verdicts, min_size=3, max_size=3), max_size=3))
def test_a_run_that_waits_goes_on(script: Script, rounds: list[list[Any]]) -> None:
    """Saved as JSON and resumed, every promise holds; a call runs where it may."""
    trace = play(script)
    check(trace)
    for said in [*rounds, ["no"] * 3]:
        if trace.last != "suspend":
            return
        saved = json.dumps([m.to_dict() for m in trace.events[-1].messages])
        messages = [Message.from_dict(m) for m in json.loads(saved)]
        waits = machine.unanswered(messages)
        decisions = {
            name: verdict for name, verdict in zip(waits, said) if verdict is not None
        }
        before = set(trace.world.runs)
        trace = play(script, messages=messages, decisions=decisions)
        check(trace)
        again = before & set(trace.world.runs)
        assert again <= {name for name in waits if decisions.get(name) is True}
        if not trace.world.requests and trace.last == "suspend":
            assert set(machine.unanswered(trace.events[-1].messages)) <= set(waits)


# Equal traffic, equal runs

plain_calls = call_plans.map(
    lambda plan: replace(
        plan,
        do="text"
        if plan.do in ("suspend", "interrupt", "abort", "ctrl-c")
        else plan.do,
        tool="work" if plan.tool in ("zz", "timed", "asked") else plan.tool,
        style="pieces" if plan.style == "bare" else plan.style,
    )
)
plain_answers = st.builds(
    Answer,
    text=texts,
    calls=st.lists(plain_calls, max_size=3).map(tuple),
    finish=st.sampled_from(["auto", "auto", None]),
    thought=st.booleans(),
    usage=st.sampled_from([(), (5,), (5, 7)]),
)
plain = st.builds(
    Script,
    answers=st.lists(plain_answers, max_size=3).map(tuple),
    execution=st.sampled_from(MODES),
    schema=st.booleans(),
    history=st.sampled_from([*machine.histories()]),
    options=some(OPTIONS),
    limits=some(LIMITS),
    present=seldom("echo", "none", "dict", "mute"),
    latest_first=st.booleans(),
)


def outcome(trace: Trace) -> Any:
    """What a run came to, however it got there."""
    error = None if trace.error is None else (type(trace.error), str(trace.error))
    texts = [event.content for event in trace.of("text", "text_complete")]
    return (trace.output, error, trace.messages, trace.world.usage, texts)


@examples(0.05)
@given(plain)
def test_streaming_and_blocking_agree(script: Script) -> None:
    """The same answers, in pieces or whole, give the same run."""
    streamed = play(script)
    whole = play(replace(script, streaming=False))

    check(streamed)
    check(whole)
    assert outcome(streamed) == outcome(whole)


def told(trace: Trace) -> Any:
    """Everything that a run told."""
    return [event.to_dict() for event in trace.events], outcome(trace)


@examples(0.05)
@given(scripts, st.lists(answers, max_size=3).map(tuple), st.integers(1, 5))
def test_runs_of_one_prompt_do_not_see_each_other(
    script: Script, others: tuple[Answer, ...], stride: int
) -> None:
    """Two runs read by turns are as they are alone; and a script plays again."""
    other = replace(script, answers=others)
    prompt = machine.prompt_of(script)
    first, second = Play(script, prompt), Play(other, prompt)
    going = [first, second]
    while going:
        going = [p for p in going if all(p.step() for _ in range(stride))]

    for playing, alone in ((first, script), (second, other)):
        trace = playing.end()
        check(trace)
        assert told(trace) == told(play(alone))
