"""What is said of a run before it happens, and how such a thing is thrown."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .dice import Dice


class Said:
    """A value whose repr has only what is not as usual."""

    def __repr__(self) -> str:
        given = ((f, getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]  # mixed into dataclasses
        said = [f"{f.name}={value!r}" for f, value in given if value != f.default]
        return f"{type(self).__name__}({', '.join(said)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # what Hypothesis prints where a script fails


@dataclass(frozen=True, repr=False)
class CallPlan(Said):
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


@dataclass(frozen=True, repr=False)
class Answer(Said):
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
    # Whether the answer begins anew after so many chunks.
    restart_after: Optional[int] = None


@dataclass(frozen=True, repr=False)
class Reader(Said):
    """Who reads the run: to the end, or until event *at*."""

    # "all", "close", "drop", "abort"
    does: str = "all"
    at: int = 0
    pause: int = 0


Pairs = Tuple[Tuple[str, Any], ...]


@dataclass(frozen=True, repr=False)
class Script(Said):
    """Everything that happens in a run."""

    answers: Tuple[Answer, ...] = ()
    # What runs within tools are answered, in the order in which they ask.
    inner: Tuple[Answer, ...] = ()
    execution: str = "immediate"
    streaming: bool = True
    reader: Reader = Reader()
    history: str = "none"
    schema: bool = False
    # Options of the Prompt, of the Context and of the Policy.
    options: Pairs = ()
    limits: Pairs = ()
    door: Pairs = ()
    # What reconfig wishes, round by round.
    wishes: Tuple[Any, ...] = ()
    intercept: Optional[str] = None
    present: Optional[str] = None
    # Names that retool gives in each round, with ``dynamic``; "no": incompatible.
    offers: Tuple[Any, ...] = ()
    foreign_signal: bool = False
    latest_first: bool = False


# The words of scripts

MODES = ("immediate", "parallel", "sequential")
# Tools by what is special about them; see ``tools``.
TOOLS = ("work", "timed", "here", "asked", "fatal", "steps", "odd")
NESTED = ("child", "agent", "live", "late")
DEEDS = (
    "text",
    "steps",
    "none",
    "zero",
    "object",
    "dict",
    "odd keys",
    "ring",
    "deep",
    "part",
    "broken steps",
    "raise",
    "mute",
    "stop iteration",
    "suspend",
    "interrupt",
    "abort",
    "ctrl-c",
)
ERRORS = (
    "own",
    "overflow",
    "bad request",
    "server",
    "cut",
    "cut, paid",
    "capability",
    "ctrl-c",
)
HISTORIES = ("none", "user", "saved", "dangling", "orphans", "long")
REFUSAL = "No."

_USUAL = ("text",) * 12 + ("steps",) * 4
_WRITTEN = ("", "{", '{"n": "x"}', '{"o": "{}"}', '{"o": "{"}', "null")
_TEXTS = ('{"v": 1}', '{"v": 1}', '{"v": 3}', '{"v": "x"}', "bad", "no", "")


def twenty(message: object) -> int:
    """What each message costs, in tokens."""
    return 20


OPTIONS: Dict[str, Sequence[Any]] = {
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
    "config": ["required", "work", "one", "short"],
}
# What ``config`` is, by word.
CONFIGS = {
    "required": {"tool_choice": "required"},
    "work": {"tool_choice": {"tool": "work"}},
    "one": {"tools_one_at_a_time": True},
    "short": {"max_tokens": 9},
}
LIMITS: Dict[str, Sequence[Any]] = {
    "context_window": [50, 120],
    "max_output_tokens": [10],
    "estimate_usage": [twenty],
    "output_retries": [0],
    "tool_retries": [0],
}
_NARROW = (("context_window", 50), ("estimate_usage", twenty))
_STEPS = ["answer", "refuse", "raise", "interrupt", "suspend", "abort"]
DOORS: Dict[str, Sequence[Any]] = {
    "max_turns": [0, 1, 2, 3],
    "tool_concurrency": [1, 2],
    "admit": _STEPS,
    "before": _STEPS,
    "after": ["raise", "abort"],
}
_WISHES = (
    None,
    {},
    *({"max_iterations": n} for n in (0, 1, 2)),
    {"tool_retries": 0},
    {"output_retries": 1},
    {"forget_retries": 2},
    {"config": {"temperature": 1, "messages": ()}},
    "raise",
)
_OFFERS = (("work", "steps"), (), ("work",), "no", TOOLS)


# Throwing them

CALL = 9
ANSWER = 16 + 4 * CALL
SCRIPT = 40 + 6 * ANSWER


def throw_script(dice: Dice) -> Script:
    """Return any script at all."""
    answers = dice.several(throw_answer, ANSWER, (1, 2, 3, 3, 4, 4))
    nested = dice.seldom((True,), 4)
    inner = dice.several(_throw_inner, ANSWER, (1, 2))
    if nested:
        answers = (_calling_inwards(answers[0], dice), *answers[1:])
    limits = some(dice.cut(8), LIMITS, (0, 0, 0, 1, 2))
    if dice.seldom((True,), 12):
        answers, limits = _crowded(answers), _NARROW
    return Script(
        answers=answers,
        inner=inner if nested else (),
        execution=dice.of(MODES),
        streaming=dice.of((True, True, False)),
        reader=throw_reader(dice.cut(4)),
        history=dice.seldom(HISTORIES, 3) or "none",
        schema=dice.of((False, True)),
        options=some(dice.cut(8), OPTIONS),
        limits=limits,
        door=some(dice.cut(8), DOORS, (0, 0, 0, 1, 2)),
        wishes=tuple(dice.of(_WISHES) for _ in range(dice.of((0, 0, 0, 1, 2)))),
        intercept=dice.seldom(("dict", "raise", "suspend", "interrupt", "none")),
        present=dice.seldom(("echo", "none", "dict", "mute", "ring", "suspend")),
        offers=(dice.of(_OFFERS),) if dice.seldom((True,), 8) else (),
        foreign_signal=dice.of((False, True)),
        latest_first=dice.of((False, True)),
    )


def throw_answer(dice: Dice) -> Answer:
    """Return any answer at all."""
    calls = dice.several(throw_call, CALL, (0, 1, 1, 2, 2, 3, 4))
    return Answer(
        text=dice.of(((),) * 4 + tuple((text,) for text in _TEXTS)),
        calls=calls,
        finish=dice.of(
            ("auto",) * 40 + (None, None, "length", "content_filter", "refusal")
        ),
        thought=dice.of((False, False, True)),
        refusal=dice.seldom((REFUSAL,), 64),
        usage=dice.of(((5,), (5,), (), (5, 7), (90,))),
        error=dice.seldom(ERRORS, 16),
        error_after=dice.of((0, 0, 0, 1, 2, 3, 4, 5)),
        abort_after=dice.seldom((0, 1, 3), 40),
        restart_after=dice.seldom((1, 2, 4), 32),
    )


def throw_call(dice: Dice) -> CallPlan:
    """Return any call at all."""
    return CallPlan(
        tool=dice.of(("work",) * 6 + ("timed",) * 4 + TOOLS + ("zz",)),
        do=dice.of((*_USUAL, *DEEDS)),
        seconds=dice.of((0, 0, 1, 3, 5)),
        written=dice.seldom(_WRITTEN, 12),
        id=dice.of(("", "", "x", "y", "h1")),
        style=dice.of(("whole", "pieces", "bare")),
        pause=dice.of((0, 0, 1, 2)),
    )


def throw_reader(dice: Dice) -> Reader:
    """Return a reader, most of whom read to the end."""
    return Reader(
        does=dice.of(("all",) * 9 + ("close", "drop", "abort")),
        at=dice.of(range(40)),
        pause=dice.of((0, 0, 1)),
    )


def some(
    dice: Dice, choices: Dict[str, Sequence[Any]], counts: Sequence[int] = (0, 0, 1, 2)
) -> Pairs:
    """Return a few of *choices*, as pairs."""
    found: Dict[str, Any] = {}
    for _ in range(dice.of(counts)):
        name = dice.of(list(choices))
        found[name] = dice.of(choices[name])
    return tuple(found.items())


def _crowded(answers: Sequence[Answer]) -> Tuple[Answer, ...]:
    """Return *answers* that call on and on, until nothing fits any more, twice."""
    calling = [
        replace(a, calls=a.calls or (CallPlan(),), error=None, finish="auto")
        for a in answers
    ]
    full = Answer(error="overflow")
    return (*calling[:1], *calling[-2:], full, *calling[1:2], full, *calling[:1], full)


def _throw_inner(dice: Dice) -> Answer:
    """Return an answer to a run within a tool: its calls are told apart by us."""
    answer = throw_answer(dice)
    known = ("work", "timed", "here", "asked")
    calls = [
        replace(call, id="", tool=call.tool if call.tool in known else "work")
        for call in answer.calls[:2]
    ]
    return replace(answer, calls=tuple(calls))


def _calling_inwards(answer: Answer, dice: Dice) -> Answer:
    """Return *answer* with calls to tools that run prompts and agents."""
    calls: List[CallPlan] = [
        CallPlan(tool=dice.of(NESTED), pause=dice.of((0, 1)))
        for _ in range(dice.of((1, 1, 2)))
    ]
    at = dice.of((0, 9))
    mixed = (*answer.calls[:at][:2], *calls, *answer.calls[at:][:1])
    return replace(answer, calls=mixed, error=None, finish="auto")


# Runs that wait


def throw_waiting(dice: Dice) -> Script:
    """Return a script in which calls wait, of the run or of runs within."""
    nested = dice.of((False, True))
    answers = dice.several(_throw_waiting_answer, ANSWER, (1, 2))
    inner = dice.several(_throw_waiting_answer, ANSWER, (1, 2))
    if nested:
        calls = [*answers[0].calls, CallPlan(tool=dice.of(NESTED[:3]))]
        calls += [CallPlan(tool=dice.of(NESTED[:3]))] * dice.of((0, 0, 1))
        answers = (replace(answers[0], calls=tuple(calls)), *answers[1:])
        kept = ("work", "asked", "here", "timed")
        inner = tuple(
            replace(
                answer,
                calls=tuple(
                    replace(c, id="", tool=c.tool if c.tool in kept else "asked")
                    for c in answer.calls[:2]
                ),
            )
            for answer in inner
        )
    return Script(
        answers=answers,
        inner=inner if nested else (),
        execution=dice.of(MODES),
        streaming=dice.of((True, False)),
        schema=dice.of((False, True)),
        options=some(
            dice.cut(8),
            {"tools_complete": [False], "tool_retries": [0], "tools_max": [1]},
        ),
        latest_first=dice.of((False, True)),
    )


def _throw_waiting_answer(dice: Dice) -> Answer:
    return Answer(
        calls=dice.several(_throw_waiting_call, CALL, (1, 1, 2, 3)),
    )


def _throw_waiting_call(dice: Dice) -> CallPlan:
    return CallPlan(
        tool=dice.of(("asked", "asked", "work", "here", "timed", "steps")),
        do=dice.of(("suspend", "suspend", "text", "text", "raise", "interrupt")),
        seconds=dice.of((0, 1, 3)),
        id=dice.of(("", "x")),
    )


# Runs that stream and block alike


def throw_plain(dice: Dice) -> Script:
    """Return a script in which nothing depends on when something is said."""
    return Script(
        answers=dice.several(_throw_plain_answer, ANSWER, (0, 1, 2, 3)),
        execution=dice.of(MODES),
        schema=dice.of((False, True)),
        history=dice.of(HISTORIES),
        options=some(dice.cut(8), OPTIONS, (0, 1, 2, 3)),
        limits=some(dice.cut(8), LIMITS),
        present=dice.seldom(("echo", "none", "dict", "mute"), 4),
        latest_first=dice.of((False, True)),
    )


def _throw_plain_answer(dice: Dice) -> Answer:
    answer = throw_answer(dice)
    plain = ("work", "here", "fatal", "steps", "odd")
    stops = ("suspend", "interrupt", "abort", "ctrl-c")
    calls = [
        replace(
            call,
            do="text" if call.do in stops else call.do,
            tool=call.tool if call.tool in plain else "work",
            style="pieces" if call.style == "bare" else call.style,
        )
        for call in answer.calls
    ]
    finish = answer.finish if answer.finish in ("auto", None) else "auto"
    usage = answer.usage if answer.usage != (90,) else ()
    return replace(
        answer,
        calls=tuple(calls),
        finish=finish,
        usage=usage,
        refusal=None,
        error=None,
        abort_after=None,
    )
