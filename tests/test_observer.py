"""Observers: what they are told, and that they cannot hurt a run."""

from __future__ import annotations

import contextlib
import threading
from contextvars import ContextVar
from typing import Any, Iterator

import pytest

from aeye.agent import Agent
from aeye.agent_event import AgentTraceInfo
from aeye.callback import attempt
from aeye.connection import connect
from aeye.errors import PromptCancelledError, ServerError
from aeye.observer import (
    AgentObserver,
    AgentTraceOptions,
    GenerationObserver,
    RunObserver,
    ToolObserver,
)
from aeye.prompt import Prompt
from aeye.prompt_request import PromptRequest
from aeye.testing import LocalServer, ScriptedModel, calls, pieces
from aeye.tools import Tool, tool

ROUND = calls(("add", {"a": 1, "b": 2}, "c1"))


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Recorder:
    """An observer that notes what it is told, all parts in one list."""

    def __init__(self, trace: Any = None) -> None:
        self.seen: list[str] = []
        self.args: dict[str, list[Any]] = {}
        self.trace = trace

    def note(self, name: str, *args: Any) -> None:
        self.seen.append(name)
        self.args.setdefault(name, []).append(args)

    def start_run(self, args: Any) -> Any:
        self.note("run_start", args)
        return _Run(self)


class _Run:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.trace = recorder.trace

    def start_generation(self, args: Any) -> Any:
        self.recorder.note("generation_start", args)
        return _Part(self.recorder, "generation")

    def start_tool(self, args: Any) -> Any:
        self.recorder.note("tool_start", args)
        return _Part(self.recorder, "tool")

    def event(self, args: Any) -> None:
        self.recorder.note("event", args)

    def end(self, args: Any) -> None:
        self.recorder.note("run_end", args)

    def error(self, args: Any) -> None:
        self.recorder.note("run_error", args)


class _Part:
    def __init__(self, recorder: Recorder, kind: str) -> None:
        for name in ("end", "error", "update", "stream_event"):
            setattr(
                self,
                name,
                lambda *args, name=name: recorder.note(f"{kind}_{name}", *args),
            )


class Failing:
    """An observer whose every part fails at one method."""

    def __init__(self, place: str, strict: bool = False) -> None:
        self.place = place
        self.strict = strict

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "trace":
            raise AttributeError(name)

        def method(*args: Any) -> Any:
            if name == self.place:
                raise LookupError(name)
            return self

        return method


def request(*replies: Any, tools: Any = (add,), **options: Any) -> PromptRequest[str]:
    model = ScriptedModel(*replies)
    return Agent("", model.context(), tools=list(tools), **options).prompt("hi")


def test_order() -> None:
    """A tool round, as it is told."""
    seen = Recorder()

    request(ROUND, "3", observers=[seen]).send()

    assert seen.seen == [
        "run_start",
        "generation_start",
        "generation_end",
        "tool_start",
        "tool_end",
        "generation_start",
        "generation_end",
        "run_end",
    ]
    run = seen.args["run_start"][0][0]
    assert (run.agent_name, run.prompt.text, run.history, run.max_turns) == (
        "agent",
        "hi",
        (),
        20,
    )
    assert seen.args["generation_end"][1][1].content == "3"
    assert seen.args["tool_end"][0][0].result == "3"
    assert seen.args["run_end"][0][0].output == "3"


def test_streaming() -> None:
    """A streamed model call is told piece by piece, with the first one's time."""
    seen = Recorder()

    list(request(ROUND, pieces("a", "b"), observers=[seen]).stream())

    updates = [delta.type for _, delta in seen.args["generation_update"]]
    assert updates == ["tool_call", "text_delta", "text_delta"]
    assert seen.args["generation_end"][1][2] >= 0


def test_one_last_word_each() -> None:
    """A tool that fails is told as failed, and not as ended too."""
    seen = Recorder()
    broken = Tool("broken", lambda args: 1 / 0, schema={})

    request(calls(("broken", {})), "x", tools=[broken], observers=[seen]).send()

    assert [name for name in seen.seen if name.startswith("tool")] == [
        "tool_start",
        "tool_error",
    ]


def test_a_failing_call() -> None:
    """A model call that fails is told once, then the run."""
    seen = Recorder()
    boom = KeyError("x")

    attempt(request(boom, observers=[seen]).send)

    assert seen.seen == [
        "run_start",
        "generation_start",
        "generation_error",
        "run_error",
    ]
    assert seen.args["run_error"][0][0].error is boom


def test_what_had_begun_fails_with_the_run() -> None:
    """A stream that is left early ends every part that is open."""
    seen = Recorder()

    def steps(args: Any) -> Any:
        yield "half"
        return "done"

    slow = Tool("slow", steps, schema={})

    def cancel(args: Any) -> None:
        raise LookupError("mine")

    made = request(
        calls(("slow", {})),
        tools=[slow],
        observers=[seen],
        hook={"on_tool_call": cancel},
    )
    attempt(made.send)
    assert seen.seen[-3:] == ["tool_start", "tool_error", "run_error"]

    with request(pieces("a", "b"), observers=[seen]).stream() as stream:
        for event in stream:
            if event.type == "text_delta":
                break
    assert seen.seen[-2:] == ["generation_error", "run_error"]
    assert isinstance(seen.args["run_error"][-1][0].error, PromptCancelledError)


def test_what_tools_yield() -> None:
    """What a generator tool yields is told."""
    seen = Recorder()

    def steps(args: Any) -> Any:
        yield "half"
        return "done"

    slow = Tool("slow", steps, schema={})
    request(calls(("slow", {})), "x", tools=[slow], observers=[seen]).send()

    assert seen.args["tool_stream_event"] == [("half",)]


def test_retries() -> None:
    """A retry is told with what it is about, but not with the error's words."""
    seen = Recorder()
    down = ServerError("the secret", status=503, code="busy")
    made = request(down, "x", observers=[seen])

    made.with_completion_retries(initial_delay_ms=0).send()

    event = seen.args["event"][0][0]
    assert (event.name, event.level) == ("completion.retry", "WARNING")
    assert event.attributes == {
        "turn": 1,
        "attempt": 1,
        "next_attempt": 2,
        "max_attempts": 3,
        "delay_ms": 0.0,
        "streaming": False,
        "error_name": "ServerError",
        "status_code": 503,
        "error_code": "busy",
    }
    assert "generation_error" not in seen.seen


def test_an_answer_that_does_not_count() -> None:
    """That the model is asked again is told, with the reason."""
    seen = Recorder()
    prompt = Prompt("p", "x", schema={"type": "integer"})
    model = ScriptedModel("{", "7")

    Agent(prompt, model.context(), observers=[seen]).prompt("hi").send()

    event = seen.args["event"][0][0]
    assert (event.name, event.level) == ("completion.reset", "WARNING")
    assert event.attributes == {"turn": 1, "reason": "json-parsing"}


@pytest.mark.parametrize("approved", [True, False])
def test_consent(approved: bool) -> None:
    """What was decided about a call is told."""
    seen = Recorder()
    asking = Tool("asking", lambda args: "done", schema={}, approval=True)
    made = request(calls(("asking", {})), "x", tools=[asking], observers=[seen])

    made.approvals(lambda request: approved).send()

    event = seen.args["event"][0][0]
    assert (event.name, event.level) == ("tool.approval", "INFO")
    assert event.attributes == {
        "tool_name": "asking",
        "internal_call_id": seen.args["tool_start"][0][0].internal_call_id,
        "approved": approved,
    }


def test_a_tool_that_does_not_exist() -> None:
    """A call that names no tool begins and fails."""
    seen = Recorder()

    request(calls(("nothing", {}, "c1")), "x", observers=[seen]).send()

    assert [name for name in seen.seen if name.startswith("tool")] == [
        "tool_start",
        "tool_error",
    ]
    begun = seen.args["tool_start"][0][0]
    assert (begun.tool_name, begun.tool_call_id) == ("nothing", "c1")


MARK: ContextVar[str] = ContextVar("MARK", default="")


class Marking:
    """An observer that marks where the code of tools runs."""

    def start_run(self, args: Any) -> Any:
        return self

    def start_tool(self, args: Any) -> Any:
        return _Marked(args.tool_name)


class _Marked:
    def __init__(self, name: str) -> None:
        self.name = name

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        token = MARK.set(MARK.get() + self.name)
        yield
        MARK.reset(token)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_where_tools_run(concurrency: int) -> None:
    """A tool, each step of a generator too, runs in what its observers give."""
    marks: dict[str, list[Any]] = {"plain": [], "steps": [], "threads": []}

    def plain(args: Any) -> str:
        marks["plain"].append(MARK.get())
        marks["threads"].append(threading.current_thread().name)
        return "done"

    def steps(args: Any) -> Any:
        marks["steps"].append(MARK.get())
        yield "half"
        marks["steps"].append(MARK.get())
        return "done"

    tools = [Tool("plain", plain, schema={}), Tool("steps", steps, schema={})]
    made = request(
        calls(("plain", {}), ("steps", {})), "x", tools=tools, observers=[Marking()]
    )
    made.with_tool_concurrency(concurrency).send()

    assert marks["plain"] == ["plain"]
    assert marks["steps"] == ["steps"] * 2
    assert (marks["threads"] == ["aeye-tool"]) == (concurrency == 2)
    assert MARK.get() == ""


@pytest.mark.parametrize("place", ["inside", "nothing", "__enter__", "__exit__"])
def test_what_tools_run_in_cannot_hurt(place: str) -> None:
    """A failing observer leaves tool and model alone, and hears of no errors here."""
    heard: list[Any] = []

    class Around:
        def __enter__(self) -> None:
            if place == "__enter__":
                raise LookupError(place)

        def __exit__(self, *exc: object) -> bool:
            heard.append(exc)
            if place == "__exit__":
                raise LookupError(place)
            return True

    class Odd:
        def start_run(self, args: Any) -> Any:
            return self

        def start_tool(self, args: Any) -> Any:
            return self

        start_generation = start_tool

        def inside(self) -> Any:
            if place == "inside":
                raise LookupError(place)
            return None if place == "nothing" else Around()

    broken = Tool("broken", lambda args: 1 / 0, schema={})
    made = request(calls(("broken", {})), "x", tools=[broken], observers=[Odd()])

    response = made.send()

    assert "division by zero" in response.messages[2].text
    assert set(heard) == ({(None, None, None)} if place == "__exit__" else set())


def test_observers_of_a_request() -> None:
    """A request may have observers of its own, beside the agent's."""
    both = [Recorder(), Recorder()]
    model = ScriptedModel("x")

    Prompt("p", "Hi.").request({}, model.context()).with_observers(both).send()
    made = request("x", observers=[both[0]]).with_observers([both[1]])
    made.send()

    assert [len(seen.args["run_end"]) for seen in both] == [2, 2]
    with pytest.raises(TypeError, match="observer"):
        request("x").with_observers([7])


def test_who_is_asked() -> None:
    """A model call is told with the vendor, where the context is a vendor's."""
    seen = Recorder()
    with LocalServer(ScriptedModel("Hi.")) as server:
        ctx = connect("groq:m", base_url=server.url, api_key="a-secret-key")
        with ctx:
            Agent("", ctx, observers=[seen]).prompt("hi").send()
    request("x", observers=[seen]).send()

    vendors = [args[0].vendor for args in seen.args["generation_start"]]
    assert vendors == ["groq", None]


def test_trace() -> None:
    """The response carries the first observer's trace, else the one that is named."""
    found = AgentTraceInfo("t1", "o1")
    both = [Recorder(), Recorder(found), Recorder(AgentTraceInfo("t2"))]

    events = list(request("x", observers=both).stream())
    named = request("x").with_trace({"trace_id": "mine"}).send()
    none = request("x").with_trace(AgentTraceOptions(name="n")).send()

    assert events[-1].trace == found
    assert events[-1].to_dict()["trace"] == {"trace_id": "t1", "observation_id": "o1"}
    assert (named.trace, none.trace) == (AgentTraceInfo("mine"), None)


def test_trace_options_reach_observers() -> None:
    """What ``with_trace`` says is passed on."""
    seen = Recorder()

    request("x", observers=[seen]).with_trace(user_id="u", tags=("a",)).send()

    assert seen.args["run_start"][0][0].trace == AgentTraceOptions(
        user_id="u", tags=("a",)
    )


PLACES = ["start_run", "start_generation", "start_tool", "update", "end"]


@pytest.mark.parametrize("place", [*PLACES, "error", "event", "stream_event"])
def test_a_failing_observer_is_ignored(place: str) -> None:
    """What an observer raises does not reach the run."""
    stream = request(ROUND, "3", observers=[Failing(place)]).stream()
    list(stream)

    assert stream.response.output == "3"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", ["observer", "run"])
def test_unless_it_is_strict(place: str, how: str) -> None:
    """A strict observer, or a run that says so, fails with what it raises."""
    made = request(ROUND, "3", observers=[Failing(place, strict=how == "observer")])
    if how == "run":
        made.with_trace(fail_on_observer_error=True)

    events, stream = [], made.stream()
    while True:
        event, error = attempt(next, stream)
        if error is not None:
            break
        events.append(event)

    assert isinstance(error, LookupError)
    assert events[-1].error is error
    assert made.state == "errored"


def test_a_strict_failure_is_no_model_error() -> None:
    """What a strict observer raises ends a run that would ask again otherwise."""
    model = ScriptedModel('{"v": 1}')
    prompt = Prompt("p", "x", schema={"type": "object"})
    agent = Agent(
        prompt, model.context(), observers=[Failing("start_generation", strict=True)]
    )

    _, error = attempt(agent.prompt("hi").send)

    assert isinstance(error, LookupError)
    assert model.calls == 0


def test_strictness_is_not_catching() -> None:
    """One strict observer does not make the others strict."""
    both = [Failing("end"), Failing("nothing", strict=True)]

    assert request("x", observers=both).send().output == "x"


@pytest.mark.parametrize("kind", ["generation", "tool"])
@pytest.mark.parametrize("place", ["start", "end"])
def test_what_has_begun_is_told_an_ending(kind: str, place: str) -> None:
    """Where a strict observer fails, what others had begun ends all the same."""
    recorder = Recorder()
    name = f"start_{kind}" if place == "start" else "end"
    strict = Failing(name, strict=True)
    around = [recorder, strict] if place == "start" else [strict, recorder]

    _, error = attempt(request(ROUND, "x", observers=around).send)

    assert isinstance(error, LookupError)
    begun = recorder.seen.count(f"{kind}_start")
    endings = [recorder.seen.count(f"{kind}_{what}") for what in ("end", "error")]
    assert begun == sum(endings)
    assert recorder.seen[-1] == "run_error"


def test_failing_at_the_very_end() -> None:
    """Where a strict observer spoils a result, each is told one ending and no other."""

    class Ending:
        def __init__(self, fails: bool) -> None:
            self.strict = fails
            self.told: list[str] = []

        def start_run(self, args: Any) -> Any:
            return self

        def end(self, args: Any) -> None:
            self.told.append("end")
            if self.strict:
                raise LookupError("end")

        def error(self, args: Any) -> None:
            self.told.append("error")

    three = [Ending(False), Ending(True), Ending(False)]

    _, error = attempt(request("x", observers=three).send)

    assert isinstance(error, LookupError)
    assert [observer.told for observer in three] == [["end"], ["end"], ["error"]]


def test_errors_while_a_failure_is_told() -> None:
    """An observer that fails at the failure does not hide it, strict or not."""
    boom = KeyError("x")
    made = request(boom, observers=[Failing("error", strict=True)])

    _, error = attempt(made.send)
    assert error is boom
    assert made.state == "errored"


def test_what_is_no_observer() -> None:
    """An observer begins runs, and nothing of it is awaited."""

    class Later:
        async def start_run(self, args: Any) -> Any: ...

    for wrong in (7, Later(), AgentObserver):
        with pytest.raises(TypeError, match="observer"):
            request("x", observers=[wrong])


def test_bases_do_nothing() -> None:
    """The base classes have every method, and an observer may return None."""

    class Run(RunObserver):
        def start_generation(self, args: Any) -> Any:
            return GenerationObserver()

        def start_tool(self, args: Any) -> Any:
            return ToolObserver()

    class Mine(AgentObserver):
        strict = True

        def start_run(self, args: Any) -> Any:
            return Run()

    class Quiet(AgentObserver):
        strict = True

    def steps(args: Any) -> Any:
        yield "half"
        return 1 / 0

    slow = Tool("slow", steps, schema={})
    for observers in (
        [Mine()],
        [Quiet()],
        [type("Lazy", (Mine,), {"start_run": lambda s, a: RunObserver()})()],
    ):
        stream = (
            request(
                calls(("slow", {}), ("add", {"a": 1, "b": 1})),
                ServerError("x", status=503),
                "x",
                tools=[slow, add],
                observers=observers,
            )
            .with_completion_retries(initial_delay_ms=0)
            .stream()
        )
        list(stream)
        assert stream.response.output == "x"
        attempt(request(KeyError("x"), observers=observers).send)
