"""Agents: defaults, children as tools, runs that wait and go on."""

from __future__ import annotations

import json
import pickle
from typing import Any, Iterator

import pytest

from aeye.agent import Agent
from aeye.agent_event import AgentToolEvent
from aeye.callback import attempt
from aeye.context import Abort, Context, Result
from aeye.errors import (
    MaxTurnsError,
    PromptCancelledError,
    PromptSuspend,
    ToolApprovalRequiredError,
)
from aeye.hooks import cancel_prompt
from aeye.memory import InMemoryStore
from aeye.message import Message
from aeye.prompt import Prompt
from aeye.response import Response
from aeye.testing import ScriptedModel, calls, pieces
from aeye.tools import Tool, tool
from aeye.usage import Usage


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def user(text: str) -> Message:
    return Message("user", text)


def told(request: Any, **options: Any) -> tuple[list[Any], Any]:
    """Read a stream to its end: its events, and what it raised."""
    events, stream = [], request.stream(**options)
    while True:
        event, error = attempt(next, stream)
        if error is not None:
            return events, None if isinstance(error, StopIteration) else error
        events.append(event)


def types(events: list[Any]) -> list[str]:
    return [event.type for event in events]


def inner(events: list[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, AgentToolEvent)]


class TestMakingOne:
    """An agent is a prompt with defaults."""

    def test_instructions_are_no_template(self) -> None:
        """Text is said as it is, braces and all."""
        model = ScriptedModel("x")

        Agent("Use {{braces}} & <tags>.", model.context()).prompt("hi").send()

        assert model.requests[0].system == "Use {{braces}} & <tags>."

    def test_a_prompt_and_its_input(self) -> None:
        """A prompt's template is filled with the agent's input, updated per request."""
        model = ScriptedModel("x")
        prompt = Prompt("guide", "{{a}} {{b}}", description="Guides.")
        agent = Agent(prompt, model.context(), input={"a": 1, "b": 2})

        agent.prompt("hi").send()
        agent.prompt("hi", input={"b": 3}).send()

        assert [r.system for r in model.requests] == ["1 2", "1 3"]
        assert (agent.kind, agent.name, agent.id, agent.description) == (
            "agent",
            "guide",
            "guide",
            "Guides.",
        )

    def test_input_that_is_no_dict(self) -> None:
        """An input of another kind replaces the agent's."""

        class Where:
            def __init__(self, town: str) -> None:
                self.town = town

        model = ScriptedModel("x")
        agent = Agent(Prompt("p", "{{town}}"), model.context(), input=Where("Paris"))

        agent.prompt("hi").send()
        agent.prompt("hi", input=Where("Rome")).send()

        assert [r.system for r in model.requests] == ["Paris", "Rome"]

    def test_names(self) -> None:
        """Id, name and description may be given; tools are added to the prompt's."""
        prompt = Prompt("p", "x", tools=[add])
        more = Tool("more", lambda args: 1, schema={})

        agent = Agent(prompt, id="a1", name="Ann", description="Adds.", tools=[more])

        assert (agent.id, agent.name, agent.description) == ("a1", "Ann", "Adds.")
        assert [t.name for t in agent.tools] == ["add", "more"]
        assert repr(agent) == "<Agent Ann, tools=['add', 'more']>"
        assert repr(Agent("x")) == "<Agent agent>"

    def test_says_messages_although_the_prompt_excludes_them(self) -> None:
        """An agent is talked to, whatever its prompt does with messages."""
        model = ScriptedModel("x")
        prompt = Prompt("p", "x", exclude_messages=True)

        Agent(prompt, model.context()).prompt("hi").send()

        assert model.requests[0].messages[-1] == user("hi")

    def test_context(self) -> None:
        """A dict is a context; its messages come before what is said."""
        model = ScriptedModel("x")
        ctx = {"execute": model.execute, "messages": [user("a")]}

        response = Agent("", ctx).prompt("b").send()

        assert model.requests[0].messages == (user("a"), user("b"))
        assert response.messages[0] == user("b")

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({"prompt": 7}, TypeError),
            ({"input": {}}, TypeError),
            ({"max_turns": -1}, ValueError),
            ({"max_turns": "many"}, TypeError),
            ({"hook": 7}, TypeError),
            ({"middlewares": [7]}, TypeError),
            ({"approvals": 7}, TypeError),
            ({"memory": 7}, TypeError),
            ({"observers": [7]}, TypeError),
            ({"tools": [print]}, TypeError),
            ({"ctx": 7}, TypeError),
        ],
    )
    def test_wrong_arguments(self, options: Any, error: type) -> None:
        """What cannot be is refused when the agent is made."""
        with pytest.raises(error):
            Agent(**{"prompt": "x", **options})

    def test_requests_are_independent(self) -> None:
        """What one request is told does not reach the next, nor the agent."""
        agent = Agent(
            "", ScriptedModel(calls(("add", {"a": 1, "b": 2}))).context(), tools=[add]
        )

        agent.prompt("hi").max_turns(1)

        assert agent.prompt("hi").settings.max_turns == 20
        assert agent.prompt("hi").settings == agent.prompt("ho").settings


class TestChildren:
    """An agent as another's tool."""

    def child(self, *replies: Any, **options: Any) -> Agent[str]:
        model = ScriptedModel(*replies, usage=Usage.of(input=100, output=100))
        return Agent("I am a child.", model.context(), id="c", name="Kid", **options)

    def parent(self, child: Any, **options: Any) -> Agent[str]:
        model = ScriptedModel(
            calls((child.name, {"prompt": "do it"}, "p1")),
            "done",
            usage=Usage.of(input=1, output=1),
        )
        return Agent("I am a parent.", model.context(), tools=[child], **options)

    def test_its_answer_is_the_result(self) -> None:
        """The child hears the text only; its cost is its own."""
        model = ScriptedModel("I did it.")
        kid = Agent("I am a child.", model.context(), name="Kid: small!").as_tool()

        response = self.parent(kid).prompt("hi").send()

        assert (kid.name, kid.description) == (
            "Kid_small",
            "Ask the agent Kid: small! to do something and get its answer.",
        )
        assert response.messages[2].text == "I did it."
        assert [m.text for m in model.requests[0].messages] == [
            "I am a child.",
            "do it",
        ]
        assert response.usage == Usage.of(input=2, output=2)

    def test_names(self) -> None:
        """The tool has the agent's name and description, or those that are given."""
        agent = Agent("x", name="Kid", description="Does it.")

        own, given = agent.as_tool(), agent.as_tool("kid", "Does all.")

        assert (own.name, own.description) == ("Kid", "Does it.")
        assert (given.name, given.description) == ("kid", "Does all.")
        assert Agent("x", name="é!").as_tool().name == "tool"

    def test_streamed(self) -> None:
        """The child's events come between the turn's end and the result."""
        kid = self.child(pieces("I ", "did.")).as_tool(stream=True)

        events, error = told(self.parent(kid).prompt("hi"))

        assert error is None
        at = types(events).index("turn_end")
        assert types(events)[at:] == [
            "turn_end",
            *["agent_tool_event"] * 5,
            "tool_result",
            "turn_start",
            "text_delta",
            "turn_end",
            "final",
        ]
        assert types([e.event for e in inner(events)]) == [
            "turn_start",
            "text_delta",
            "text_delta",
            "turn_end",
            "final",
        ]
        result = events[at + 6]
        assert result.result == "I did."
        assert {
            (e.agent_id, e.agent_name, e.turn, e.tool_name, e.internal_call_id)
            for e in inner(events)
        } == {("c", "Kid", 1, "Kid", result.internal_call_id)}
        assert json.loads(json.dumps(events[at + 1].to_dict()))["event"]["type"] == (
            "turn_start"
        )

    def test_streamed_under_send(self) -> None:
        """Sent, the child runs the same; nobody hears of it."""
        kid = self.child("I did.").as_tool(stream=True)

        assert self.parent(kid).prompt("hi").send().messages[2].text == "I did."

    def test_beside_others(self) -> None:
        """Streaming children run beside each other too."""
        kid = self.child("I did.").as_tool(stream=True)
        two = calls(("Kid", {"prompt": "a"}), ("Kid", {"prompt": "b"}))
        agent = Agent("", ScriptedModel(two, "x").context(), tools=[kid])

        events, error = told(agent.prompt("hi").with_tool_concurrency(2))

        assert error is None
        assert {e.tool_call_id for e in inner(events)} == {"call_1", "call_2"}

    def test_without_deltas(self) -> None:
        """Leaving provisional events out leaves the child's out too."""
        kid = self.child(calls(("add", {"a": 1, "b": 2})), "3", tools=[add]).as_tool(
            stream=True
        )

        events, _ = told(self.parent(kid).prompt("hi"), include_tool_call_deltas=False)

        assert "tool_call_delta" not in types(events)
        found = types([e.event for e in inner(events)])
        assert "tool_call_delta" not in found
        assert "tool_call" in found

    @pytest.mark.parametrize("stream", [True, False])
    def test_failing(self, stream: bool) -> None:
        """A child's failure is the tool's; the parent goes on."""
        kid = self.child(KeyError("oops")).as_tool(stream=stream)

        events, error = told(self.parent(kid).prompt("hi"))

        assert error is None
        result = next(e for e in events if e.type == "tool_result")
        assert "oops" in result.result
        assert events[-1].usage == Usage.of(input=2, output=2)
        if stream:
            assert types([e.event for e in inner(events)])[-1] == "error"

    @pytest.mark.parametrize(
        "options",
        [
            {"max_turns": 0},
            {"hook": {"on_run_start": lambda args: cancel_prompt("no")}},
        ],
    )
    def test_its_own_limits(self, options: Any) -> None:
        """The child's own limits and hook hold, and fail it like anything else."""
        kid = self.child("x", **options).as_tool()

        response = self.parent(kid).prompt("hi").send()

        assert response.output == "done"
        assert response.messages[2].text.startswith("Error executing tool")

    def test_max_turns_of_the_tool(self) -> None:
        """The tool may set another limit than the agent's."""
        kid = self.child("x").as_tool(max_turns=0)

        assert "turns" in self.parent(kid).prompt("hi").send().messages[2].text

    def test_a_wrong_limit_of_the_tool(self) -> None:
        """It is refused when the tool is made, not when a model calls it."""
        with pytest.raises(ValueError, match="max_turns"):
            self.child("x").as_tool(max_turns=-1)

    def test_grandchildren(self) -> None:
        """A grandchild's events are told as its own, never one inside the other."""
        grandchild = Agent(
            "", ScriptedModel("deep").context(), id="g", name="Grand"
        ).as_tool(stream=True)
        kid = self.child(
            calls(("Grand", {"prompt": "deeper"})), "ok", tools=[grandchild]
        ).as_tool(stream=True)

        events, _ = told(self.parent(kid).prompt("hi"))

        assert not any(e.event.type == "agent_tool_event" for e in inner(events))
        deep = [e for e in inner(events) if e.agent_id == "g"]
        assert types([e.event for e in deep])[-1] == "final"
        assert {(e.tool_name, e.tool_call_id) for e in inner(events)} == {("Kid", "p1")}

    def test_the_parents_model(self) -> None:
        """A child without a context asks its parent's model, and says nothing else."""
        seen: list[Any] = []

        def reply(request: Any) -> Any:
            seen.append([m.text for m in request.messages])
            if request.name == "Kid":
                return "I did."
            return calls(("Kid", {"prompt": "x"})) if len(seen) == 1 else "done"

        kid = Agent("Child.", name="Kid").as_tool()
        ctx = ScriptedModel(reply).context(messages=[user("before")])

        Agent("Parent.", ctx, tools=[kid]).prompt("hi").send()

        assert seen[1] == ["Child.", "x"]

    @pytest.mark.parametrize("stream", [True, False])
    def test_aborting(self, stream: bool) -> None:
        """A parent that is aborted aborts its child."""
        abort = Abort()

        def reply(request: Any) -> Iterator[Any]:
            abort.set()
            yield from pieces("never", "told")

        model = ScriptedModel(reply)
        kid = Agent("", model.context(), name="Kid").as_tool(stream=stream)
        parent = self.parent(kid)
        made = Agent(
            "",
            ScriptedModel(calls(("Kid", {"prompt": "x"}))).context(signal=abort),
            tools=[kid],
        ).prompt("hi")

        _, error = told(made)

        assert type(error).__name__ == "AbortedError"
        assert parent.name == "agent"


class TestResuming:
    """A run that waits for somebody's consent goes on later."""

    def paying(
        self, *replies: Any, tools: Any = ()
    ) -> tuple[Agent[str], ScriptedModel, list[str]]:
        ran: list[str] = []

        @tool(approval=True)
        def pay(to: str) -> str:
            """Pay."""
            ran.append(to)
            return f"paid {to}"

        model = ScriptedModel(*replies)
        agent = Agent("Be kind.", model.context(), tools=[pay, add, *tools])
        return agent, model, ran

    def waiting(self, agent: Agent[str]) -> ToolApprovalRequiredError:
        with pytest.raises(ToolApprovalRequiredError) as caught:
            agent.prompt("pay").send()
        return caught.value

    def test_consent(self) -> None:
        """The call itself is run; the model is not asked to make it again."""
        agent, model, ran = self.paying(calls(("pay", {"to": "Ann"}, "p1")), "done")
        error = self.waiting(agent)
        assert (error.request.tool_call_id, ran) == ("p1", [])

        events, problem = told(agent.resume(error, {"p1": True}))

        assert problem is None
        assert ran == ["Ann"]
        assert types(events) == [
            "tool_result",
            "turn_start",
            "text_delta",
            "turn_end",
            "final",
        ]
        assert (events[0].turn, events[0].result) == (0, "paid Ann")
        assert model.requests[1].messages == (
            Message("system", "Be kind."),
            *error.messages,
            Message("tool", "paid Ann", name="pay", tool_call_id="p1"),
        )
        assert [m.role for m in events[-1].messages] == ["tool", "assistant"]

    @pytest.mark.parametrize(
        ("decision", "reply"),
        [
            ("too dear", "too dear"),
            (False, "Tool approval was rejected."),
            (Result("somebody paid"), "somebody paid"),
        ],
    )
    def test_other_decisions(self, decision: Any, reply: str) -> None:
        """A refusal or a result stands for the tool, which is not run."""
        agent, _, ran = self.paying(calls(("pay", {"to": "Ann"}, "p1")), "done")
        error = self.waiting(agent)

        response = agent.resume(error.messages, {"p1": decision}).send()

        assert (ran, response.messages[0].text) == ([], reply)

    def test_a_failure_tells_everything_in_order(self) -> None:
        """The reply that came late stands where its call stood among the others."""
        batch = calls(("pay", {"to": "Ann"}, "p1"), ("add", {"a": 1, "b": 1}, "a1"))
        agent, _, _ = self.paying(batch, KeyError("down"))
        error = self.waiting(agent)
        seen: list[Any] = []

        def note(args: Any) -> Any:
            seen.append(args.messages)
            return cancel_prompt("enough")

        request = agent.resume(error, {"p1": True}).with_hook({"on_run_error": note})
        _, failure = attempt(request.send)

        assert [m.tool_call_id for m in seen[0][-2:]] == ["p1", "a1"]
        assert isinstance(failure, PromptCancelledError)
        assert failure.chat_history == seen[0]

    def test_from_saved_messages(self) -> None:
        """The messages can be written down and read in between; so can the error."""
        agent, _, ran = self.paying(calls(("pay", {"to": "Ann"}, "p1")), "done")
        error = self.waiting(agent)
        text = json.dumps([m.to_dict() for m in error.messages])
        copy = pickle.loads(pickle.dumps(error))

        saved = [Message.from_dict(m) for m in json.loads(text)]
        agent.resume(saved, {"p1": True}).send()

        assert ran == ["Ann"]
        assert (copy.request, copy.messages) == (error.request, error.messages)

    def test_siblings(self) -> None:
        """What ran before keeps its reply, in call order; what did not is told so."""
        agent, model, _ran = self.paying(
            calls(
                ("add", {"a": 1, "b": 2}, "a1"),
                ("pay", {"to": "Ann"}, "p1"),
                ("add", {"a": 3, "b": 4}, "a2"),
            ),
            "done",
        )
        error = self.waiting(agent)

        agent.resume(error, {"p1": True}).send()

        replies = [m for m in model.requests[1].messages if m.role == "tool"]
        assert [(m.tool_call_id, m.text) for m in replies] == [
            ("a1", "3"),
            ("p1", "paid Ann"),
            ("a2", "[not run: the batch was stopped; call it again]"),
        ]

    def test_messages_that_the_context_brings(self) -> None:
        """What the context says is not said twice, whole history or trimmed."""
        agent, model, _ = self.paying(calls(("pay", {"to": "Ann"}, "p1")), "done")
        before = [user("a"), Message("assistant", "b")]
        agent = Agent("", model.context(messages=before), tools=agent.tools)
        error = self.waiting(agent)
        trimmed = error.messages[2:]

        agent.resume(error, {"p1": True}).send()
        agent.resume(trimmed, {"p1": True}).send()

        assert [m.text for m in model.requests[1].messages][:3] == ["a", "b", "pay"]
        assert [m.text for m in model.requests[2].messages][:1] == ["pay"]

    def test_nothing_decided(self) -> None:
        """A call that nothing was said about goes on waiting, the model unasked."""
        agent, model, ran = self.paying(calls(("pay", {"to": "Ann"}, "p1")), "done")
        error = self.waiting(agent)

        _, again = told(agent.resume(error, {}))

        assert isinstance(again, PromptSuspend)
        assert (again.messages, ran, model.calls) == (error.messages, [], 1)

    def test_wrong_decisions(self) -> None:
        """A decision about no call, or that is none, is refused with what waits."""
        agent, _, _ = self.paying(calls(("pay", {"to": "Ann"}, "p1")), "done")
        error = self.waiting(agent)

        for decisions, kind, match in (
            ({"p2": True}, ValueError, r"\['p1'\]"),
            ({"p1/x": True}, ValueError, "p1/x"),
            ({"p1": 7}, TypeError, "p1"),
        ):
            with pytest.raises(kind, match=match):
                agent.resume(error, decisions).send()
        with pytest.raises(TypeError):
            agent.resume([], {})

    def test_an_answer_that_is_there(self) -> None:
        """Where the reply is in the history already, nothing is run."""
        agent, _model, ran = self.paying(calls(("pay", {"to": "Ann"}, "p1")), "done")
        error = self.waiting(agent)
        reply = Message("tool", "paid by hand", name="pay", tool_call_id="p1")

        response = agent.resume([*error.messages, reply], {"p1": True}).send()
        other = agent.prompt([*error.messages, reply]).send()

        assert (ran, response.output, other.output) == ([], "done", "done")

    def test_hooks_and_middleware_see_the_call(self) -> None:
        """A resumed call passes hooks and middleware, but is not asked about again."""
        agent, _, ran = self.paying(calls(("pay", {"to": "Ann"}, "p1")), "done")
        error = self.waiting(agent)
        seen: list[Any] = []

        def ask(args: Any, tool: Any) -> Any:
            seen.append(args.turn)
            return tool.request_approval()

        made = agent.resume(error, {"p1": True}).with_hook({"on_tool_call": ask})
        made.with_middleware({"on_tool_output": lambda args: args.result.upper()})

        assert made.send().messages[0].text == "PAID ANN"
        assert (seen, ran) == ([0], ["Ann"])

    def test_a_turn_limit(self) -> None:
        """Running the calls that waited is no turn."""
        agent, _, ran = self.paying(
            calls(("pay", {"to": "A"}, "p1")), calls(("pay", {"to": "B"}, "p2"))
        )
        error = self.waiting(agent)

        with pytest.raises(MaxTurnsError):
            agent.resume(error, {"p1": True}).max_turns(1).send()

        assert ran == ["A"]

    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize("depth", [1, 2])
    def test_inside_children(self, stream: bool, depth: int) -> None:
        """A child that waits makes its parents wait, and goes on inside them."""
        agent, model, ran = self.paying(
            calls(("pay", {"to": "Ann"}, "p1")), "child done"
        )
        outer = [model]
        path = "p1"
        for level in range(depth):
            kid = agent.as_tool(f"kid{level}", stream=stream)
            asked = f"k{level}"
            above = ScriptedModel(
                calls((kid.name, {"prompt": "go"}, asked)), "parent done"
            )
            outer.append(above)
            agent = Agent("", above.context(), tools=[kid])
            path = f"{asked}/{path}"
        error = self.waiting(agent)
        assert error.request.tool_call_id == path
        assert len(error.children) == depth

        response = agent.resume(error, {path: True}).send()

        assert (ran, response.output) == (["Ann"], "parent done")
        assert [m.calls for m in outer] == [2] * (depth + 1)

    def test_a_wrong_path(self) -> None:
        """A call that no child made is told to the caller; the child still waits."""
        child, model, ran = self.paying(
            calls(("pay", {"to": "Ann"}, "p1")), "child done"
        )
        above = ScriptedModel(calls(("kid", {"prompt": "go"}, "k1")), "parent done")
        agent = Agent("", above.context(), tools=[child.as_tool("kid")])
        error = self.waiting(agent)

        with pytest.raises(ValueError, match="no call inside 'k1' has the id 'p9'"):
            agent.resume(error, {"k1/p9": True})
        with pytest.raises(ValueError, match=r"those that wait are \['k1/p1'\]"):
            agent.resume(error, {"k1/p1": True, "k1/p9": True})
        assert (model.calls, above.calls, ran) == (1, 1, [])
        assert agent.resume(error, {"k1/p1": True}).send().output == "parent done"
        assert ran == ["Ann"]

    def test_beside_a_child_that_waits(self) -> None:
        """Of a batch, the call that asked first is the one that the error names."""
        child, _, ran = self.paying(calls(("pay", {"to": "Ann"}, "p1")), "child done")
        kid = child.as_tool("kid")
        both = calls(("pay", {"to": "Bob"}, "p1"), ("kid", {"prompt": "go"}, "k1"))
        agent, _, _ = self.paying(both, "done", tools=[kid])
        request = agent.prompt("pay").with_tool_concurrency(2)
        with pytest.raises(ToolApprovalRequiredError) as caught:
            request.send()
        assert caught.value.request.args == {"to": "Bob"}

        decisions = {"p1": True, "k1/p1": True}
        response = agent.resume(caught.value, decisions).send()

        assert response.output == "done"
        assert ran == ["Ann"]

    def several(self, *answers: Any, **options: Any) -> Agent[str]:
        """An agent that pays itself and by its child."""
        child, _, _ = self.paying(*answers)
        batch = calls(("pay", {"to": "Bo"}, "p1"), ("child", {"prompt": "x"}, "k1"))
        agent, _, _ = self.paying(batch, "done")
        ctx = ScriptedModel(batch, "done").context()
        return Agent("", ctx, tools=[*agent.tools, child.as_tool("child")], **options)

    def test_a_child_that_goes_on_waiting(self) -> None:
        """What nothing was said about can still be decided on, inside a child too."""
        agent = self.several(calls(("pay", {"to": "Ann"}, "p1")), "paid by a child")
        request = agent.prompt("hi").with_tool_concurrency(2)
        _, error = attempt(request.send)

        _, again = attempt(agent.resume(error, {"p1": True}).send)
        response = agent.resume(again, {"k1/p1": True}).send()

        assert [m.text for m in response.messages] == ["paid by a child", "done"]

    def test_a_child_that_waits_twice(self) -> None:
        """A store that knows which calls were begun lets a child go on each time."""
        agent = self.several(
            calls(("pay", {"to": "Ann"}, "p1")),
            calls(("pay", {"to": "Eve"}, "p2")),
            "paid both",
            memory=InMemoryStore(),
        )
        chat = agent.session("s")
        _, error = attempt(chat.prompt("hi").with_tool_concurrency(2).send)

        _, again = attempt(chat.resume(error, {"p1": True, "k1/p1": True}).send)
        response = chat.resume(again, {"k1/p2": True}).send()

        assert [m.text for m in response.messages] == ["paid both", "done"]

    def test_children_that_wait_for_something_else(self) -> None:
        """A child's tool that suspends makes the parent wait too."""

        def wait(args: Any, ctx: Context) -> str:
            raise PromptSuspend

        later = Tool("later", wait, schema={})
        kid = Agent(
            "",
            ScriptedModel(calls(("later", {}, "l1")), "ok").context(),
            name="Kid",
            tools=[later],
        )
        model = ScriptedModel(calls(("Kid", {"prompt": "x"}, "k1")), "done")
        parent = Agent("", model.context(), tools=[kid.as_tool()])

        _, error = attempt(parent.prompt("hi").send)
        assert isinstance(error, PromptSuspend)
        response = parent.resume(error, {"k1/l1": Result("now")}).send()

        assert [m.text for m in response.messages] == ["ok", "done"]


def one_word(request: Any, ctx: Any) -> Response:
    return Response(request.messages[0].text)


def test_pickle() -> None:
    """An agent goes into another process, as a prompt does."""
    agent = Agent("Be {{brief}}.", {"execute": one_word})

    twin = pickle.loads(pickle.dumps(agent))

    assert twin.prompt("Hi").send().output == "Be {{brief}}."


def test_a_forced_tool_is_forced_once() -> None:
    """A forced tool choice holds for one turn, or no run would ever end."""
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2})), "3")
    prompt = Prompt("p", "x", tools=[add], config={"tool_choice": "required"})

    Agent(prompt, model.context()).prompt("hi").send()

    assert [r.tool_choice for r in model.requests] == ["required", None]


def test_response_of_a_model_that_says_more() -> None:
    """A turn's end shows the response whole, as JSON too."""
    response = Response("x", reasoning=None, model="m", usage=Usage.of(input=1))

    events, _ = told(Agent("", ScriptedModel(response).context()).prompt("hi"))

    end = next(e for e in events if e.type == "turn_end")
    assert end.response == response
    assert end.to_dict() == {
        "type": "turn_end",
        "turn": 1,
        "response": {
            "content": "x",
            "tool_calls": [],
            "finish_reason": "stop",
            "usage": {"text": {"input": 1}},
            "model": "m",
        },
    }


@pytest.mark.parametrize("given", [3, None, "several", {"on_tool_call": print}])
def test_what_is_no_list_is_named(given: Any) -> None:
    """Where several are taken, one that is not in a list is refused by its name."""
    agent = Agent("", ScriptedModel("never").context())

    for name in ("tools", "middlewares", "observers"):
        with pytest.raises(TypeError, match=f"{name} is a list, not "):
            Agent("", **{name: given})
    with pytest.raises(TypeError, match="middlewares is a list, not "):
        agent.prompt("x").with_middlewares(given)
    with pytest.raises(TypeError, match="observers is a list, not "):
        agent.prompt("x").with_observers(given)


def test_where_a_run_goes_on_is_checked() -> None:
    """At every door, what is no place and what are no decisions are named."""
    agent = Agent("", ScriptedModel("never").context(), memory=InMemoryStore())
    bare = Prompt("p", "x")
    doors: Any = (agent.resume, agent.session("s").resume, bare.resume)

    for resume in doors:
        with pytest.raises(TypeError, match=r"messages is the error .* not 3"):
            resume(3, {})
        with pytest.raises(TypeError, match=r"decisions is a dict of .* not 3"):
            resume([user("x")], 3)
