"""Whatever a model, its tools and its reader do, a run keeps its promises.

Random scripts are played in ``machine``, where nothing is left to chance, and held
against the promises. ``AEYE_EXAMPLES`` says how many; the gate plays 4,000 and
``AEYE_ONDEMAND=1`` 50,000, ``test_machine_talk`` included.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from machine.dice import played, thrown
from machine.play import Play, Trace, calls_that_wait, play, prompt_of, saved
from machine.promises import check, unanswered
from machine.script import (
    ANSWER,
    SCRIPT,
    Answer,
    Script,
    throw_answer,
    throw_plain,
    throw_script,
    throw_waiting,
)

from aeye.context import Result
from aeye.decision import nest

scripts = thrown(throw_script, SCRIPT)
answers = thrown(throw_answer, ANSWER)


@played(0.4)
@given(scripts)
def test_a_run_keeps_its_promises(script: Script) -> None:
    """Every promise holds for every script."""
    check(play(script))


verdicts = st.sampled_from([True, True, "no", False, Result({"a": 1}), None])


@played(0.05)
@given(
    thrown(throw_waiting, SCRIPT),
    st.lists(st.lists(verdicts, min_size=4, max_size=4), max_size=3),
)
def test_a_run_that_waits_goes_on(script: Script, rounds: list[list[Any]]) -> None:
    """Saved as JSON and resumed, every promise holds; a call runs where it may."""
    trace = play(script)
    check(trace)
    for n, said in enumerate([*rounds, ["no"] * 9], 1):
        if trace.last != "suspend":
            return
        messages = saved(trace.events[-1].messages)
        children = {path: saved(inner) for path, inner in trace.children.items()}
        waits = calls_that_wait(messages, children)
        decisions = {
            name: verdict for name, verdict in zip(waits, said) if verdict is not None
        }
        before = set(trace.world.runs)
        trace = play(
            script, messages=messages, decisions=nest(decisions, children), round=n
        )
        check(trace)
        again = before & set(trace.world.runs)
        may = {path.rpartition("/")[2] for path in waits if decisions.get(path) is True}
        assert again <= may, "a call ran again, and nobody said so"
        if not trace.world.requests and trace.last == "suspend":
            left = unanswered(trace.events[-1].messages)
            assert set(left) <= {path.partition("/")[0] for path in waits}


# Equal traffic, equal runs


def outcome(trace: Trace) -> Any:
    """What a run came to, however it got there."""
    error = None if trace.error is None else (type(trace.error), str(trace.error))
    texts = [event.content for event in trace.of("text", "text_complete")]
    return (trace.output, error, trace.messages, trace.world.usage, texts)


@played(0.025)
@given(thrown(throw_plain, SCRIPT))
def test_streaming_and_blocking_agree(script: Script) -> None:
    """The same answers, in pieces or whole, give the same run."""
    streamed = play(script)
    whole = play(replace(script, streaming=False))

    check(streamed)
    check(whole)
    assert outcome(streamed) == outcome(whole)


def told(trace: Trace) -> Any:
    """Everything that a run told; of what children told, the kinds.

    Their runs and calls have ids that are never given twice.
    """
    said = []
    for event in trace.events:
        child = getattr(getattr(event, "value", None), "event", None)
        known = (event.type, event.tool_call_id, child.type) if child else None
        said.append(known or event.to_dict())
    return said, outcome(trace)


@played(0.025)
@given(scripts, st.lists(answers, max_size=3).map(tuple), st.integers(1, 5))
def test_runs_of_one_prompt_do_not_see_each_other(
    script: Script, others: tuple[Answer, ...], stride: int
) -> None:
    """Two runs read by turns are as they are alone; and a script plays again."""
    other = replace(script, answers=others)
    prompt = prompt_of(script)
    first, second = Play(script, prompt), Play(other, prompt)
    going = [first, second]
    while going:
        going = [p for p in going if all(p.step() for _ in range(stride))]

    for playing, alone in ((first, script), (second, other)):
        trace = playing.end()
        check(trace)
        assert told(trace) == told(play(alone))
