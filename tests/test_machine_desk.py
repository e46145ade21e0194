"""Several runs of one prompt at a time, begun, read, left and resumed in any order."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, List

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

sys.path.insert(0, str(Path(__file__).parent))

from machine.dice import played, thrown
from machine.play import Play, Trace, calls_that_wait, prompt_of, saved
from machine.promises import check
from machine.script import SCRIPT, Script, throw_script, throw_waiting

from aeye.decision import nest

scripts = thrown(throw_script, SCRIPT)
waiting = thrown(throw_waiting, SCRIPT)
# What all runs of a desk have in common: their prompt.
SHARED = (
    "inner",
    "execution",
    "schema",
    "options",
    "wishes",
    "offers",
    "intercept",
    "present",
)
# Which of the runs at hand, counted round.
which = st.integers(0, 7)


class Desk(RuleBasedStateMachine):
    """Somebody who reads several runs by turns; each keeps its promises."""

    def __init__(self) -> None:
        super().__init__()
        self.going: List[Play] = []
        self.waits: List[Trace] = []

    @initialize(script=st.one_of(scripts, waiting))
    def choose(self, script: Script) -> None:
        """Choose the prompt."""
        self.script = script
        self.prompt = prompt_of(script)

    @rule(script=st.one_of(scripts, waiting))
    def begin(self, script: Script) -> None:
        """Begin a run, with a model of its own."""
        kept = {name: getattr(self.script, name) for name in SHARED}
        self.going.append(Play(replace(script, **kept), self.prompt))

    @precondition(lambda self: self.going)
    @rule(at=which, steps=st.integers(1, 12))
    def read(self, at: int, steps: int) -> None:
        """Read some events of a run."""
        playing = self.going[at % len(self.going)]
        if not all(playing.step() for _ in range(steps)):
            self.end(playing)

    @precondition(lambda self: self.going)
    @rule(at=which, how=st.sampled_from(["close", "drop"]))
    def leave(self, at: int, how: str) -> None:
        """Leave a run where it is."""
        playing = self.going[at % len(self.going)]
        playing.leave(how)
        self.end(playing)

    @precondition(lambda self: self.going)
    @rule(at=which)
    def abort(self, at: int) -> None:
        """Abort a run, and read on."""
        self.going[at % len(self.going)].world.abort()

    @precondition(lambda self: self.waits)
    @rule(at=which, said=st.sampled_from([True, "no", False]))
    def resume(self, at: int, said: Any) -> None:
        """Go on with a run that waits, all calls being decided alike."""
        trace = self.waits.pop(at % len(self.waits))
        messages = saved(trace.events[-1].messages)
        children = {path: saved(inner) for path, inner in trace.children.items()}
        waits = calls_that_wait(messages, children)
        decisions = nest(dict.fromkeys(waits, said), children)
        again = trace.world.round + 1
        self.going.append(
            Play(
                trace.script,
                self.prompt,
                messages=messages,
                decisions=decisions,
                round=again,
            )
        )

    def end(self, playing: Play) -> None:
        """A run is over: what came of it is what was promised."""
        self.going.remove(playing)
        trace = playing.end()
        check(trace)
        if trace.last == "suspend" and not trace.left:
            self.waits.append(trace)

    def teardown(self) -> None:
        """Read what is left to its end."""
        for playing in list(self.going):
            while playing.step():
                pass
            self.end(playing)


def test_runs_by_turns_keep_their_promises() -> None:
    """Whatever a reader does with several runs of one prompt, in any order."""
    run_state_machine_as_test(
        Desk, settings=settings(played(0.02), stateful_step_count=15)
    )
