"""The fluent door: settings, events, limits, retries, usage, single use."""

from __future__ import annotations

import json
import threading
from typing import Any, Iterator

import pytest

from aeye.agent import Agent
from aeye.agent_event import AgentErrorStreamEvent, AgentStreamOptions
from aeye.callback import attempt
from aeye.context import Abort
from aeye.errors import (
    AbortedError,
    IncompatibleError,
    MaxTurnsError,
    PromptCancelledError,
    PromptSuspend,
    RateLimitError,
    RefusalError,
    ServerError,
    StatusError,
    ToolInterrupt,
    TruncatedError,
)
from aeye.message import Message, Part, Reasoning, ReasoningDetail, ToolCall
from aeye.prompt import Prompt
from aeye.prompt_request import PromptRequest
from aeye.response import Chunk, Response, ToolCallDelta
from aeye.retry import CompletionRetryOptions
from aeye.testing import ScriptedModel, calls, pieces
from aeye.tools import Tool, tool
from aeye.usage import Usage


def U(input: int, output: int) -> Usage:
    return Usage.of(input=input, output=output)


def user(text: str) -> Message:
    return Message("user", text)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent(*replies: Any, tools: Any = (add,), **options: Any) -> Agent[str]:
    return Agent(
        "Be kind.", ScriptedModel(*replies).context(), tools=list(tools), **options
    )


def told(request: PromptRequest[Any], **options: Any) -> tuple[list[Any], Any]:
    """Read a stream to its end: its events, and what it raised."""
    events, stream = [], request.stream(**options)
    while True:
        event, error = attempt(next, stream)
        if error is None:
            events.append(event)
            continue
        with pytest.raises(StopIteration):
            next(stream)
        return events, None if isinstance(error, StopIteration) else error


def types(events: list[Any]) -> list[str]:
    return [event.type for event in events]


def only(events: list[Any], type: str) -> list[Any]:
    return [event for event in events if event.type == type]


ROUND = calls(("add", {"a": 1, "b": 2}, "c1"))


class TestMakingOne:
    """What is said, and how a request is set up."""

    def test_text(self) -> None:
        """A text becomes a user message, after the instructions."""
        model = ScriptedModel("hello")

        response = Agent("Be kind.", model.context()).prompt("hi").send()

        assert response.output == response.parsed == "hello"
        assert response.messages == (user("hi"), Message("assistant", "hello"))
        assert model.requests[0].messages == (
            Message("system", "Be kind."),
            user("hi"),
        )

    def test_transcript(self) -> None:
        """The last of several messages is the prompt, the others are history."""
        model = ScriptedModel("fine")
        said = [user("hi"), Message("assistant", "hello"), user("how are you?")]

        response = Agent("", model.context()).prompt(said).send()

        assert model.requests[0].messages == tuple(said)
        assert response.messages == (said[-1], Message("assistant", "fine"))

    @pytest.mark.parametrize("wrong", [[], (), None, 7, [7], ["hi"], iter(())])
    def test_what_is_no_prompt(self, wrong: Any) -> None:
        """Anything but a text, a message or a transcript is refused at once."""
        with pytest.raises(TypeError):
            agent("x").prompt(wrong)

    def test_settings_return_the_request(self) -> None:
        """Every setting returns the object it was called on."""
        request = agent("x").prompt("hi")
        with pytest.warns(DeprecationWarning, match="with_hook"):
            assert request.request_hook({}) is request
        with pytest.warns(DeprecationWarning, match="with_middleware"):
            assert request.with_tool_middleware({}) is request
        with pytest.warns(DeprecationWarning, match="with_middlewares"):
            assert request.with_tool_middlewares([{}]) is request

        same = (
            request.max_turns(3)
            .with_completion_retries()
            .with_hook({})
            .with_tool_concurrency(2)
            .with_middleware({})
            .with_middlewares([{}, {}])
            .with_trace(name="n")
            .approvals(lambda request: True)
        )

        assert same is request

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("max_turns", -1, ValueError),
            ("max_turns", True, TypeError),
            ("max_turns", 1.0, TypeError),
            ("with_tool_concurrency", 0, ValueError),
            ("with_tool_concurrency", "2", TypeError),
            ("with_hook", 7, TypeError),
            ("with_hook", {"on_nothing": print}, TypeError),
            ("with_middleware", object(), TypeError),
            ("approvals", 7, TypeError),
            ("approvals", None, TypeError),
            ("with_trace", "x", TypeError),
            ("with_completion_retries", 5, TypeError),
            ("with_completion_retries", {"max_attempts": 0}, ValueError),
            ("with_completion_retries", {"attempts": 2}, TypeError),
        ],
    )
    def test_wrong_settings(self, name: str, value: Any, error: type) -> None:
        """A setting that cannot be is refused when it is made."""
        request = agent("x").prompt("hi")

        with pytest.raises(error):
            getattr(request, name)(value)

        assert request.send().output == "x"

    def test_retry_options_in_three_spellings(self) -> None:
        """Retry options are a record, a dict, or fields by name; the last wins."""
        request = agent("x").prompt("hi").with_completion_retries(max_attempts=9)

        found = [
            request.with_completion_retries(*args, **fields).settings.retries
            for args, fields in [
                ((CompletionRetryOptions(5),), {}),
                (({"max_attempts": 5},), {}),
                ((), {"max_attempts": 5}),
                ((CompletionRetryOptions(),), {"max_attempts": 5}),
            ]
        ]

        assert found == [CompletionRetryOptions(5)] * 4

    def test_settings_are_refused_after_the_start(self) -> None:
        """What a run does cannot be changed while it runs or after."""
        request = agent(pieces("a", "b")).prompt("hi")
        stream = request.stream()
        next(stream)

        with pytest.raises(RuntimeError, match="running"):
            request.max_turns(1)
        list(stream)
        with pytest.raises(RuntimeError, match="completed"):
            request.with_hook({})


class TestSingleUse:
    """A request is used once."""

    def test_after_the_end(self) -> None:
        """A request that was used is refused, however it ended."""
        request = agent("x").prompt("hi")
        request.send()

        with pytest.raises(RuntimeError, match="already been used"):
            request.send()
        with pytest.raises(RuntimeError, match="already been used"):
            next(request.stream())

    def test_while_it_runs(self) -> None:
        """A second use does not disturb the first."""
        request = agent(pieces("a", "b")).prompt("hi")
        stream = request.stream()
        next(stream)

        with pytest.raises(RuntimeError, match="already running"):
            next(request.stream())
        with pytest.raises(RuntimeError, match="already running"):
            request.send()

        assert [event.type for event in stream][-1] == "final"

    def test_a_stream_that_is_not_read(self) -> None:
        """Asking for a stream starts nothing and uses nothing up."""
        model = ScriptedModel("x")
        request = Agent("", model.context()).prompt("hi")

        unread = request.stream()

        assert (model.calls, request.state, repr(request)) == (
            0,
            "idle",
            "<PromptRequest, idle>",
        )
        assert request.send().output == "x"
        unread.close()
        assert list(unread) == []

    def test_only_one_of_two_threads(self) -> None:
        """Two threads that send one request at once run it once."""
        gate, inside = threading.Event(), threading.Event()

        def reply(request: Any) -> str:
            inside.set()
            assert gate.wait(10)
            return "x"

        request = agent(reply).prompt("hi")
        done: list[str] = []
        first = threading.Thread(target=lambda: done.append(request.send().output))
        first.start()
        assert inside.wait(10)

        with pytest.raises(RuntimeError, match="already running"):
            request.send()
        gate.set()
        first.join()

        assert done == ["x"]

    @pytest.mark.parametrize(
        ("reply", "state"),
        [("x", "completed"), (KeyError("x"), "errored")],
    )
    def test_state(self, reply: Any, state: str) -> None:
        """The state says how the run ended."""
        request = agent(reply).prompt("hi")

        told(request)

        assert request.state == state


class TestEvents:
    """What a stream tells, in which order."""

    def test_text(self) -> None:
        """Text comes in pieces between the turn's start and its end."""
        events, error = told(agent(pieces("hel", "lo")).prompt("hi"))

        assert error is None
        assert types(events) == [
            "turn_start",
            "text_delta",
            "text_delta",
            "turn_end",
            "final",
        ]
        assert [e.delta for e in only(events, "text_delta")] == ["hel", "lo"]
        assert events[-1].output == events[-2].response.content == "hello"

    def test_tools_alone(self) -> None:
        """A run for its tools alone may end without a word."""
        prompt = Prompt("p", "x", tools=[add], tools_only=True, tools_max=1)

        response = Agent(prompt, ScriptedModel(ROUND).context()).prompt("hi").send()

        assert response.output == ""
        assert [m.role for m in response.messages] == ["user", "assistant", "tool"]

    def test_a_tool_round(self) -> None:
        """Tools run after their turn's end; their results carry its number."""
        named = ToolCall("c1", "add", "")
        parts = ['{"a": 1,', ' "b": 2}']
        deltas = [
            Chunk(tool_call_arguments=ToolCallDelta("c1", "add", part))
            for part in parts
        ]
        whole = ToolCall("c1", "add", "".join(parts))
        model = ScriptedModel(
            [
                Chunk("Let me see."),
                Chunk(tool_call_named=named),
                *deltas,
                Chunk(tool_call=whole),
                Chunk(finish_reason="tool_calls"),
            ],
            [Chunk(reasoning=Reasoning("Hm")), *pieces("3")],
        )

        events, _ = told(Agent("", model.context(), tools=[add]).prompt("1 + 2?"))

        assert types(events) == [
            "turn_start",
            "text_delta",
            "tool_call_delta",
            "tool_call_delta",
            "tool_call_delta",
            "tool_call",
            "turn_end",
            "tool_result",
            "turn_start",
            "reasoning_delta",
            "text_delta",
            "turn_end",
            "final",
        ]
        named_delta, first, second = only(events, "tool_call_delta")
        assert (named_delta.name, named_delta.arguments_delta) == ("add", None)
        assert [first.arguments_delta, second.arguments_delta] == parts
        assert {d.arguments_mode for d in (named_delta, first, second)} == {None}
        result = events[7]
        assert (result.turn, result.tool_name, result.tool_call_id) == (1, "add", "c1")
        assert (result.args, result.result) == (whole.arguments, "3")
        assert model.requests[1].messages[-2:] == (
            Message("assistant", "Let me see.", tool_calls=(whole,)),
            Message("tool", "3", name="add", tool_call_id="c1"),
        )
        answer = Message("assistant", "Let me see.", tool_calls=(whole,))
        assert events[8].prompt == model.requests[1].messages[-1]
        assert events[8].history == (user("1 + 2?"), answer)

    def test_history_is_what_was_said_before(self) -> None:
        """A turn's history leaves the instructions out."""
        said = [user("a"), Message("assistant", "b"), user("c")]

        events, _ = told(agent("d").prompt(said))

        assert (events[0].prompt, events[0].history) == (said[-1], tuple(said[:-1]))

    def test_replacing_deltas(self) -> None:
        """A piece that stands for all of the arguments says so; the last one holds."""
        deltas = [
            ToolCallDelta(
                "c1", "add", text, mode="replace", call_id="x1", signature="s"
            )
            for text in ('{"a"', '{"a": 1, "b": 2}')
        ]
        events, _ = told(
            agent(
                [
                    *(Chunk(tool_call_arguments=delta) for delta in deltas),
                    Chunk(finish_reason="tool_calls"),
                ],
                "done",
            ).prompt("hi")
        )

        first, second = only(events, "tool_call_delta")
        assert (first.name, second.name) == ("add", None)
        assert (second.arguments_mode, second.call_id, second.signature) == (
            "replace",
            "x1",
            "s",
        )
        assert [e.tool_call.arguments for e in only(events, "tool_call")] == [
            '{"a": 1, "b": 2}'
        ]
        assert only(events, "tool_result")[0].result == "3"

    def test_without_tool_call_deltas(self) -> None:
        """Leaving the provisional events out changes nothing else."""
        events, _ = told(agent(ROUND, "3").prompt("hi"), include_tool_call_deltas=False)

        assert types(events) == [
            "turn_start",
            "tool_call",
            "turn_end",
            "tool_result",
            "turn_start",
            "text_delta",
            "turn_end",
            "final",
        ]

    @pytest.mark.parametrize(
        ("args", "fields", "seen"),
        [
            ((), {}, True),
            ((AgentStreamOptions(),), {}, True),
            ((AgentStreamOptions(include_tool_call_deltas=False),), {}, False),
            (({"include_tool_call_deltas": False},), {}, False),
            ((), {"include_tool_call_deltas": True}, True),
        ],
    )
    def test_options(self, args: Any, fields: Any, seen: bool) -> None:
        """Stream options are a record, a dict, or by name."""
        events = list(agent(ROUND, "3").prompt("hi").stream(*args, **fields))

        assert ("tool_call_delta" in types(events)) is seen
        with pytest.raises(TypeError):
            agent("x").prompt("hi").stream(7)  # type: ignore[call-overload]  # on purpose

    def test_reasoning(self) -> None:
        """Pieces of reasoning say what kind they are, where the vendor does."""
        details = (
            ReasoningDetail(id="r1", type="reasoning.summary", summary="short"),
            ReasoningDetail(text="long", type="reasoning.text", signature="sig"),
            ReasoningDetail(data="xyz", type="reasoning.encrypted"),
            ReasoningDetail(summary="?"),
        )
        model = [
            Chunk(reasoning=Reasoning("", details)),
            Chunk(reasoning=Reasoning("said", (ReasoningDetail(signature="end"),))),
            *pieces("ok"),
        ]

        events, _ = told(agent(model).prompt("hi"))

        found = [
            (e.delta, e.id, e.content_type, e.signature)
            for e in only(events, "reasoning_delta")
        ]
        assert found == [
            ("short", "r1", "summary", None),
            ("long", None, "text", "sig"),
            ("xyz", None, "encrypted", None),
            ("?", None, "summary", None),
            ("said", None, None, "end"),
        ]

    @pytest.mark.parametrize("mode", ["execute", "stream"])
    def test_either_function_serves_both(self, mode: Any) -> None:
        """A model that only blocks can be streamed, one that only streams be sent."""
        events, _ = told(
            Agent("", ScriptedModel("hello", mode=mode).context()).prompt("hi")
        )
        response = (
            Agent("", ScriptedModel("hello", mode=mode).context()).prompt("hi").send()
        )

        assert [e.delta for e in only(events, "text_delta")] == ["hello"]
        assert response.output == "hello"

    def test_send_and_stream_agree(self) -> None:
        """The same run gives the same response either way."""
        sent = agent(ROUND, "3").prompt("hi").send()
        stream = agent(ROUND, "3").prompt("hi").stream()
        events = list(stream)

        assert stream.response == sent
        final = events[-1]
        assert (final.output, final.usage, final.messages, final.trace) == (
            sent.output,
            sent.usage,
            sent.messages,
            None,
        )

    def test_no_response_before_the_end(self) -> None:
        """A stream has its response when it was read to the end."""
        stream = agent("x").prompt("hi").stream()
        with pytest.raises(RuntimeError, match="to its end"):
            _ = stream.response
        assert repr(stream) == "<AgentStream, not ended>"

        list(stream)

        assert (stream.response.output, repr(stream)) == ("x", "<AgentStream, ended>")

    def test_an_empty_answer(self) -> None:
        """An answer that says nothing is an answer."""
        assert agent("").prompt("hi").send().output == ""

    def test_typed_answers(self) -> None:
        """``parsed`` is the checked value; a bad answer is asked for again."""
        model = ScriptedModel("nonsense", '{"v": 7}')
        prompt = Prompt(
            "p",
            "Give v.",
            schema={
                "type": "object",
                "properties": {"v": {"type": "integer"}},
                "required": ["v"],
            },
        )

        stream = Agent(prompt, model.context()).prompt("hi").stream()
        events = list(stream)

        assert stream.response.parsed == {"v": 7}
        assert stream.response.output == '{"v": 7}'
        assert types(events).count("turn_start") == 2
        assert [m.role for m in stream.response.messages] == [
            "user",
            "assistant",
            "user",
            "assistant",
        ]

    def test_parts(self) -> None:
        """A tool's picture stays a part in its reply; the event says it as JSON."""
        picture = Part.image("https://example.com/x.png")
        look = Tool("look", lambda args: [Part.text("see"), picture], schema={})

        events, _ = told(agent(calls(("look", {})), "nice", tools=[look]).prompt("hi"))

        result = only(events, "tool_result")[0].result
        assert result.split("\n")[0] == "see"
        assert json.loads(result.split("\n")[1]) == picture.to_dict()
        assert only(events, "final")[0].messages[2].content[1] == picture

    def test_generator_tools_have_no_event(self) -> None:
        """What a generator tool yields on its way is for observers, not a stream."""

        def steps(args: Any) -> Iterator[str]:
            yield "half"
            return "done"

        slow = Tool("slow", steps, schema={})
        events, _ = told(agent(calls(("slow", {})), "x", tools=[slow]).prompt("hi"))

        assert types(events).count("tool_result") == 1
        assert only(events, "tool_result")[0].result == "done"


class TestTools:
    """The tools of one turn."""

    def test_events_as_they_finish_messages_in_call_order(self) -> None:
        """Results are told as they come; the model reads them in call order."""
        fast_done = threading.Event()

        @tool
        def slow() -> str:
            """Wait for the other."""
            assert fast_done.wait(10)
            return "slow"

        @tool
        def fast() -> str:
            """Wait for nobody."""
            return "fast"

        model = ScriptedModel(calls(("slow", {}, "s"), ("fast", {}, "f")), "done")
        stream = (
            Agent("", model.context(), tools=[slow, fast])
            .prompt("hi")
            .with_tool_concurrency(2)
            .stream()
        )
        order = []
        for event in stream:
            if event.type == "tool_result":
                order.append(event.tool_name)
                fast_done.set()

        assert order == ["fast", "slow"]
        assert [m.text for m in model.requests[1].messages[-2:]] == ["slow", "fast"]

    def test_concurrency_is_a_limit(self) -> None:
        """With 2, exactly two of five calls run at once."""
        lock, running, most = threading.Lock(), [0], [0]
        pair = threading.Barrier(2)

        @tool
        def work(n: int) -> int:
            """Do some."""
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            if n < 4:
                pair.wait(10)
            with lock:
                running[0] -= 1
            return n

        many = calls(*(("work", {"n": n}) for n in range(5)))
        agent(many, "x", tools=[work]).prompt("hi").with_tool_concurrency(2).send()

        assert most == [2]

    def test_one_by_one_in_the_callers_thread(self) -> None:
        """By default tools run in order, in the thread that reads."""
        seen = []

        @tool
        def work(n: int) -> int:
            """Do some."""
            seen.append((n, threading.current_thread()))
            return n

        many = calls(*(("work", {"n": n}) for n in range(3)))
        agent(many, "x", tools=[work]).prompt("hi").send()

        assert seen == [(n, threading.current_thread()) for n in range(3)]

    @pytest.mark.parametrize(
        ("name", "args", "says"),
        [
            ("boom", {}, "bad luck"),
            ("nope", {}, "Tool not found"),
            ("add", {"a": "x", "b": 1}, "a: "),
            ("add", '{"a": ', "Error parsing"),
        ],
    )
    def test_failures_are_for_the_model(self, name: str, args: Any, says: str) -> None:
        """A tool's failure is its result; the hook hears of it once."""

        @tool
        def boom() -> None:
            """Fail."""
            raise KeyError("bad luck")

        errors: list[Any] = []
        hook = {"on_tool_error": lambda args: errors.append(args.error)}
        model = ScriptedModel(calls((name, args)), "sorry")
        request = Agent("", model.context(), tools=[boom, add]).prompt("hi")

        events, error = told(request.with_hook(hook))

        assert error is None
        assert says in only(events, "tool_result")[0].result
        assert model.requests[1].messages[-1].text == (
            only(events, "tool_result")[0].result
        )
        assert len(errors) == 1

    def test_calls_that_were_not_run_are_told(self) -> None:
        """A call beside an unknown one is answered; the stream says with what."""
        both = calls(("add", {"a": 1, "b": 2}, "c1"), ("nope", {}, "c2"))

        events, _ = told(agent(both, "sorry").prompt("hi"))

        results = only(events, "tool_result")
        assert sorted(r.tool_call_id for r in results) == ["c1", "c2"]
        assert {r.turn for r in results} == {1}
        assert types(events).index("final") == len(events) - 1

    def test_an_interrupt_ends_the_run(self) -> None:
        """A tool that interrupts is answered, and the run ends with what was said."""

        @tool
        def stop() -> None:
            """Stop."""
            raise ToolInterrupt

        events, error = told(
            agent(calls(("stop", {}), text="Bye."), tools=[stop]).prompt("hi")
        )

        assert error is None
        assert types(events)[-2:] == ["tool_result", "final"]
        assert events[-1].output == "Bye."

    def test_a_suspension_is_raised(self) -> None:
        """A tool that suspends ends the run; the error has where to resume."""

        @tool
        def wait() -> None:
            """Wait."""
            raise PromptSuspend

        events, error = told(agent(calls(("wait", {}, "w")), tools=[wait]).prompt("hi"))

        assert isinstance(error, PromptSuspend)
        assert [m.role for m in error.messages] == ["user", "assistant"]
        assert types(events)[-1] == "error"


class TestTurnLimit:
    """``max_turns`` is a number of model calls."""

    def test_reached(self) -> None:
        """The last answer's calls are not run, but answered."""
        ran = []

        @tool
        def work() -> str:
            """Do it."""
            ran.append(1)
            return "ok"

        model = ScriptedModel(calls(("work", {})), usage=U(3, 1))
        request = Agent("", model.context(), tools=[work]).prompt("hi").max_turns(2)

        events, error = told(request)

        assert isinstance(error, MaxTurnsError)
        assert (model.calls, len(ran), error.max_turns) == (2, 1, 2)
        assert events[-1].usage == error.usage == U(6, 2)
        assert error.prompt == error.chat_history[2]
        assert [m.role for m in error.chat_history] == [
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool",
        ]
        assert error.chat_history[-1].text == "[not run: turn limit]"
        assert error.messages == error.chat_history

    def test_enough(self) -> None:
        """A run whose last permitted answer asks for nothing is a success."""
        assert agent(ROUND, "3").prompt("hi").max_turns(2).send().output == "3"

    def test_none(self) -> None:
        """0 raises without a model call."""
        model = ScriptedModel("x")

        with pytest.raises(MaxTurnsError) as caught:
            Agent("", model.context()).prompt("hi").max_turns(0).send()

        assert (model.calls, caught.value.prompt) == (0, user("hi"))
        assert caught.value.chat_history == (user("hi"),)

    def test_holds_whatever_the_prompt_wishes(self) -> None:
        """A ``reconfig`` may lower the number, and not raise it."""
        model = ScriptedModel(ROUND)
        prompt = Prompt(
            "p", "x", tools=[add], reconfig=lambda stats: {"max_iterations": 9}
        )

        with pytest.raises(MaxTurnsError):
            Agent(prompt, model.context()).prompt("hi").max_turns(2).send()

        assert model.calls == 2

    def test_lifts_the_prompts_own_limits(self) -> None:
        """Twelve tool rounds fit in the default of twenty turns."""
        rounds = [calls(("add", {"a": n, "b": 1})) for n in range(12)]

        assert agent(*rounds, "done").prompt("hi").send().output == "done"


class TestFailures:
    """Errors are told, then raised: the same object."""

    def test_the_same_object(self) -> None:
        """A provider's own exception comes in the event and then as itself."""
        boom = KeyError("boom")

        events, error = told(agent(boom).prompt("hi"))

        assert types(events) == ["turn_start", "error"]
        assert error is events[-1].error is boom
        assert events[-1] == AgentErrorStreamEvent(boom, Usage.empty())
        with pytest.raises(KeyError) as caught:
            agent(boom).prompt("hi").send()
        assert caught.value is boom

    def test_the_cost_of_a_failed_call(self) -> None:
        """A failure that says what it cost is counted, once."""
        boom = ServerError("down", status=503, usage=U(7, 2))

        events, _ = told(agent(boom).prompt("hi"))

        assert events[-1].usage == U(7, 2)

    def test_earlier_turns_count(self) -> None:
        """What earlier turns cost is not lost when a later one fails."""
        model = ScriptedModel(ROUND, KeyError("x"), usage=U(8, 2))

        events, _ = told(Agent("", model.context(), tools=[add]).prompt("hi"))

        assert events[-1].usage == U(8, 2)

    def test_usage_adds_up(self) -> None:
        """Every turn is counted, sent or streamed."""

        def made() -> PromptRequest[str]:
            first = Response("", ROUND.tool_calls, "tool_calls", usage=U(3, 1))
            return agent(first, Response("3", usage=U(4, 2))).prompt("hi")

        events, _ = told(made())

        assert events[-1].usage == made().send().usage == U(7, 3)

    @pytest.mark.parametrize(
        ("reply", "kind"),
        [
            (Response("", refusal="no"), RefusalError),
            (Response("cut", finish_reason="length"), TruncatedError),
        ],
    )
    def test_answers_that_are_none(self, reply: Response, kind: type) -> None:
        """A refusal and a cut answer are failures that carry the messages."""
        _, error = told(agent(reply).prompt("hi"))

        assert isinstance(error, kind)
        assert error.messages[0] == user("hi")

    def test_incompatible(self) -> None:
        """A prompt that does not fit says so."""
        prompt = Prompt("p", "x", config=False)

        with pytest.raises(IncompatibleError, match="does not fit"):
            Agent(prompt, ScriptedModel("x").context()).prompt("hi").send()

    def test_aborted(self) -> None:
        """A signal that was set ends the run as an error."""
        abort = Abort()
        abort.set()

        with pytest.raises(AbortedError, match="aborted"):
            Agent("", ScriptedModel("x").context(signal=abort)).prompt("hi").send()


class TestRetries:
    """``with_completion_retries`` repeats one model call."""

    def test_the_same_request_again(self) -> None:
        """A failure that passes is invisible; its cost is not."""
        down = ServerError("down", status=503, usage=U(4, 1))
        model = ScriptedModel(down, Response("ok", usage=U(6, 3)))
        request = Agent("", model.context()).prompt("hi")

        events, error = told(request.with_completion_retries(initial_delay_ms=0))

        assert error is None
        assert "error" not in types(events)
        assert events[-1].usage == U(10, 4)
        assert model.requests[0] is model.requests[1]

    def test_off_by_default(self) -> None:
        """Nobody asked, nothing is repeated."""
        model = ScriptedModel(ServerError("down", status=503), "ok")

        with pytest.raises(ServerError):
            Agent("", model.context()).prompt("hi").send()

        assert model.calls == 1

    def test_exhausted(self) -> None:
        """The last error is raised; the hooks are asked once."""
        asked: list[str] = []
        errors = [ServerError(str(n), status=503) for n in range(3)]
        model = ScriptedModel(*errors)
        hook = {
            "on_completion_call": lambda args: asked.append("call"),
            "on_completion_error": lambda args: asked.append(str(args.error)),
        }
        request = Agent("", model.context(), hook=hook).prompt("hi")

        with pytest.raises(ServerError) as caught:
            request.with_completion_retries(initial_delay_ms=0).send()

        assert (model.calls, caught.value) == (3, errors[2])
        assert asked == ["call", str(errors[2])]

    @pytest.mark.parametrize("status", [400, 401, 403, 404])
    def test_what_does_not_pass(self, status: int) -> None:
        """An error that will not pass is not retried."""
        model = ScriptedModel(StatusError("no", status=status), "ok")

        with pytest.raises(StatusError):
            Agent("", model.context()).prompt("x").with_completion_retries().send()

        assert model.calls == 1

    def test_a_wait_that_is_too_long(self) -> None:
        """A vendor that asks for more patience than a minute is not asked again."""
        limit = RateLimitError("slow down", status=429, retry_after=3600)
        model = ScriptedModel(limit, "ok")

        with pytest.raises(RateLimitError):
            Agent("", model.context()).prompt("x").with_completion_retries().send()

        assert model.calls == 1

    def test_a_classifier_of_ones_own(self) -> None:
        """It replaces the built-in one and is not asked about the last attempt."""
        seen: list[Any] = []
        model = ScriptedModel(KeyError("odd"))

        def always(context: Any) -> bool:
            seen.append(
                (context.attempt, context.max_attempts, context.turn, context.streaming)
            )
            return True

        request = Agent("", model.context()).prompt("hi")
        with pytest.raises(KeyError):
            request.with_completion_retries(
                max_attempts=2, initial_delay_ms=0, should_retry=always
            ).send()

        assert (model.calls, seen) == (2, [(1, 2, 1, False)])

    def test_after_a_tool_round(self) -> None:
        """A retry in a later turn repeats no tool, no middleware, no hook."""
        counts = {"tool": 0, "middleware": 0, "call": 0, "error": 0}

        def count(name: str) -> None:
            counts[name] += 1

        @tool
        def work() -> str:
            """Do it."""
            count("tool")
            return "ok"

        model = ScriptedModel(
            calls(("work", {})), ServerError("down", status=503), "done"
        )
        request = (
            Agent("", model.context(), tools=[work])
            .prompt("hi")
            .with_middleware(
                {"on_completion_request": lambda args: count("middleware")}
            )
            .with_hook(
                {
                    "on_completion_call": lambda args: count("call"),
                    "on_completion_error": lambda args: count("error"),
                }
            )
            .with_completion_retries(initial_delay_ms=0)
        )

        events, _ = told(request)

        assert counts == {"tool": 1, "middleware": 2, "call": 2, "error": 0}
        assert only(events, "turn_end")[-1].turn == 2
        assert [m.role for m in events[-1].messages].count("tool") == 1

    @pytest.mark.parametrize(
        "first", [Chunk("hal"), Chunk(usage=U(1, 0)), Chunk(model="m")]
    )
    def test_not_after_a_chunk(self, first: Chunk) -> None:
        """Once the provider said anything, a failure is a failure."""
        model = ScriptedModel([first, ServerError("down", status=503)], "ok")
        request = Agent("", model.context()).prompt("hi").with_completion_retries()

        _, error = told(request)

        assert isinstance(error, ServerError)
        assert model.calls == 1

    def test_an_abort_ends_the_wait(self) -> None:
        """A run that is aborted while it waits asks no more."""
        abort = Abort()
        model = ScriptedModel(ServerError("down", status=503))

        def stop(context: Any) -> bool:
            threading.Timer(0.01, abort.set).start()
            return True

        request = Agent("", model.context(signal=abort)).prompt("hi")
        with pytest.raises(AbortedError):
            request.with_completion_retries(
                initial_delay_ms=2**31 - 1, max_delay_ms=2**31 - 1, should_retry=stop
            ).send()

        assert model.calls == 1


class TestReadable:
    """``readable_stream`` is the events as lines."""

    def test_lines(self) -> None:
        """Each line is one event's JSON; a retry leaves no trace."""
        model = ScriptedModel(ServerError("down", status=503), "hé")
        request = Agent("", model.context()).prompt("hi")
        stream = request.with_completion_retries(initial_delay_ms=0).readable_stream()

        lines = list(stream)

        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
        found = [json.loads(line) for line in lines]
        assert [event["type"] for event in found] == [
            "turn_start",
            "text_delta",
            "turn_end",
            "final",
        ]
        assert "hé".encode() in lines[1]
        assert found[-1]["output"] == "hé"
        assert stream.response.output == "hé"

    def test_a_failure_is_one_line(self) -> None:
        """A failing run ends with one error line: a name and a message, no more."""
        request = agent(KeyError("secret path")).prompt("hi")

        lines = list(request.readable_stream())

        assert [json.loads(line)["type"] for line in lines] == ["turn_start", "error"]
        assert json.loads(lines[-1])["error"] == {
            "name": "KeyError",
            "message": "'secret path'",
        }

    def test_odd_text(self) -> None:
        """A lone surrogate is escaped, and reads back as it was."""
        lines = list(agent("\udc80").prompt("hi").readable_stream())

        assert json.loads(lines[-1])["output"] == "\udc80"

    def test_without_deltas(self) -> None:
        """The provisional events can be left out here too."""
        request = agent(ROUND, "x").prompt("hi")

        lines = list(request.readable_stream(include_tool_call_deltas=False))

        assert not any(b"tool_call_delta" in line for line in lines)


class TestClosing:
    """A stream that is left early."""

    def test_everything_stops(self) -> None:
        """The provider's stream is closed, no tool starts, the run is cancelled."""
        closed, failed = [], []

        def reply(request: Any) -> Iterator[Chunk]:
            try:
                yield Chunk("a")
                yield Chunk("b")
            finally:
                closed.append(True)

        hook = {"on_run_error": lambda args: failed.append(args.error)}
        request = agent(reply, hook=hook).prompt("hi")

        with request.stream() as stream:
            for event in stream:
                if event.type == "text_delta":
                    break

        assert closed == [True]
        assert request.state == "cancelled"
        assert isinstance(failed[0], PromptCancelledError)
        assert failed[0].chat_history == (user("hi"),)
        assert list(stream) == []

    def test_forgetting_it_is_enough(self) -> None:
        """A stream that nobody holds any more ends its run."""
        request = agent(pieces("a", "b")).prompt("hi")
        for _ in request.stream():
            break

        assert request.state == "cancelled"

    def test_closing_waits_for_tools(self) -> None:
        """Tools that are running are waited for."""
        going, finished = threading.Event(), []

        @tool
        def work(n: int) -> int:
            """Do it."""
            if n:
                assert going.wait(10)
                finished.append(n)
            return n

        both = calls(("work", {"n": 0}), ("work", {"n": 1}))
        stream = (
            agent(both, "x", tools=[work])
            .prompt("hi")
            .with_tool_concurrency(2)
            .stream()
        )
        for event in stream:
            if event.type == "tool_result":
                break
        threading.Timer(0.05, going.set).start()

        stream.close()

        assert finished == [1]

    def test_after_the_final_event(self) -> None:
        """A run whose final event was read is complete, read on or not."""
        request = agent("x").prompt("hi")
        for event in request.stream():
            if event.type == "final":
                break

        assert request.state == "completed"


class TestOfAPrompt:
    """``prompt.request`` gives any prompt the fluent settings."""

    def test_without_messages(self) -> None:
        """The prompt's user turn is what was said."""
        response = (
            Prompt("p", "Say {{word}}.", user_turn="Now!")
            .request({"word": "hi"}, ScriptedModel("hi").context())
            .max_turns(1)
            .send()
        )

        assert response.messages == (user("Now!"), Message("assistant", "hi"))

    def test_with_messages(self) -> None:
        """The context's last message is the prompt, the others are history."""
        said = [user("a"), Message("assistant", "b"), user("c")]
        request = Prompt("p", "x").request(
            None, ScriptedModel("d").context(messages=said)
        )

        events, _ = told(request)

        assert events[0].history == tuple(said[:-1])
        assert events[-1].messages == (user("c"), Message("assistant", "d"))

    def test_with_nothing_but_instructions(self) -> None:
        """A prompt that says nothing but its instructions has an empty prompt."""
        prompt = Prompt("p", "Say hi.", user_turn=False)

        events, _ = told(prompt.request(None, ScriptedModel("hi").context()))

        assert (events[0].prompt, events[0].history) == (user(""), ())
        assert events[-1].messages == (Message("assistant", "hi"),)


@pytest.mark.parametrize("door", ["prompt", "agent"])
def test_a_stream_that_is_being_read(door: str) -> None:
    """Who reads or closes it meanwhile is told so; the run goes on unharmed."""
    errors = []

    @tool(inline=True)
    def meddle() -> str:
        """Do what another thread might."""
        for act in (lambda: next(stream), lambda: stream.close()):
            errors.append(attempt(act)[1])
        return "done"

    ctx = ScriptedModel(calls(("meddle", {})), "ok").context()
    stream: Any
    if door == "agent":
        stream = Agent("", ctx, tools=[meddle]).prompt("x").stream()
    else:
        stream = Prompt("p", "x", tools=[meddle]).run({}, ctx)
    last = list(stream)[-1]

    assert [type(error) for error in errors] == [RuntimeError] * 2
    assert all("the stream is being read" in str(error) for error in errors)
    assert last.output == "ok"
    assert (stream.response if door == "agent" else stream).output == "ok"
