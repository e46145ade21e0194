"""Prompts and agents inside calls: isolated contexts, and what they cost is told."""

from __future__ import annotations

import pickle
from typing import Any, Iterator

import pytest

from aeye.agent import Agent
from aeye.context import Context
from aeye.errors import MaxTurnsError, OutputError, PromptSuspend, ToolCallError
from aeye.message import Message
from aeye.prompt import Prompt
from aeye.response import Response
from aeye.testing import ScriptedModel, calls
from aeye.tools import Tool, tool
from aeye.usage import Usage

MODES = ["sequential", "parallel", "immediate"]


def cost(n: int) -> Usage:
    return Usage.of(input=n, output=1)


def total(*costs: int) -> Usage:
    return sum(map(cost, costs), Usage.empty())


class Models:
    """One context for many prompts: each has its own script, by the prompt's name.

    A reply of the *n*-th prompt costs 10 to the power of *n* tokens of input.
    """

    def __init__(self, **scripts: Any) -> None:
        self.models = {
            name: ScriptedModel(*replies, usage=cost(10**n))
            for n, (name, replies) in enumerate(scripts.items())
        }

    def stream(self, request: Any, ctx: Any) -> Any:
        return self.models[request.name].stream(request, ctx)

    def context(self, **fields: Any) -> Context:
        return Context(stream=self.stream, **fields)

    def requests(self, name: str) -> list[Any]:
        return self.models[name].requests


def ask(*names: str) -> Response:
    """Call each of the prompts that are tools."""
    return calls(*((name, {"prompt": "go"}, f"to_{name}") for name in names))


def costs(events: list[Any]) -> dict[str, Any]:
    """What the events of calls say that runs within cost, by type and call."""
    return {
        f"{event.type} {event.tool_call_id}": event.usage
        for event in events
        if event.type in ("tool_output", "tool_error", "tool_suspend", "tool_interrupt")
    }


def last_usage(events: list[Any]) -> tuple[Usage, Any]:
    (found,) = [event for event in events if event.type == "usage"]
    return found.usage, found.nested


@pytest.mark.parametrize("mode", MODES)
def test_what_children_cost_is_told(mode: Any) -> None:
    """A call's event says what runs within it cost, ``usage`` the sum, own apart."""
    models = Models(p=[ask("a", "b"), "done"], a=["1"], b=['{"x": 1}', '{"v": 1}'])
    shape = {"type": "object", "properties": {"v": {}}, "required": ["v"]}
    kids = [Prompt("a", "").as_tool(), Prompt("b", "", schema=shape).as_tool()]
    prompt = Prompt("p", "", tools=kids, tool_execution=mode)

    stream = prompt.run({}, models.context())
    events = list(stream)

    assert costs(events) == {
        "tool_output to_a": total(10),
        "tool_output to_b": total(100, 100),
    }
    assert last_usage(events) == (total(1, 1), total(10, 100, 100))
    assert (stream.usage, stream.nested_usage) == last_usage(events)


def test_without_children_nothing_is_said() -> None:
    """Runs whose tools ask no model say nothing of others' cost."""
    prompt = Prompt("p", "", tools=[Tool("a", lambda given: 1, schema={})])

    events = list(prompt.run({}, Models(p=[ask("a"), "done"]).context()))

    assert costs(events) == {"tool_output to_a": None}
    assert last_usage(events) == (total(1, 1), None)
    (said,) = [event.to_dict() for event in events if event.type == "usage"]
    assert "nested" not in said


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("depth", [2, 4])
def test_all_the_way_down(mode: Any, depth: int) -> None:
    """Each level is told of all that runs below it, once."""
    names = [f"p{n}" for n in range(depth + 1)]
    scripts = {name: [ask(below), "up"] for name, below in zip(names, names[1:])}
    models = Models(**scripts, **{names[-1]: ["bottom"]})
    seen: dict[str, Any] = {}
    prompt: Prompt[Any] = Prompt(names[-1], "")
    for name in reversed(names[:-1]):
        below = prompt.as_tool()
        prompt = Listening(seen, name, "", tools=[below], tool_execution=mode)

    prompt({}, models.context())

    spent = [total(10**n, 10**n) for n in range(depth)] + [total(10**depth)]
    assert seen == {
        names[n]: (spent[n], sum(spent[n + 1 :], Usage.empty())) for n in range(depth)
    }


class Listening(Prompt[Any]):
    """A prompt that notes what its runs say that they cost."""

    def __init__(self, seen: dict[str, Any], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seen = seen

    def __call__(self, input: Any = None, ctx: Any = None) -> Any:
        stream = self.run(input, ctx)
        events = list(stream)
        self._seen[self.name] = last_usage(events)
        return stream.output


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("on_error", ["report", "raise"])
def test_a_child_that_fails_has_cost_all_the_same(mode: Any, on_error: Any) -> None:
    """What a failed child cost is told on the error's event, and in the sum."""
    child = Prompt("a", "", schema=int, output_retries=1)
    made = Tool(
        "a", lambda given, ctx: child({}, ctx), schema={}, on_error=on_error, timeout=9
    )
    models = Models(p=[ask("a"), "done"], a=["one", "two"])
    prompt = Prompt("p", "", tools=[made], tool_execution=mode)
    stream, events = prompt.run({}, models.context()), []

    try:
        events += stream
    except ToolCallError as exc:
        assert (on_error, type(exc.__cause__)) == ("raise", OutputError)
    else:
        assert on_error == "report"
        assert last_usage(events) == (total(1, 1), total(10, 10))
    assert stream.nested_usage == total(10, 10)


@pytest.mark.parametrize("mode", MODES)
def test_a_child_that_waits_costs_once(mode: Any) -> None:
    """A suspended child's cost is told then; a resumed one's is what came after."""

    @tool(approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    models = Models(p=[ask("a"), "done"], a=[calls(("pay", {}, "c1")), "kid done"])
    kid = Prompt("a", "", tools=[pay])
    prompt = Prompt("p", "", tools=[kid.as_tool()], tool_execution=mode)
    ctx = models.context()

    events = list(prompt.run({}, ctx))

    assert costs(events) == {"tool_suspend to_a": total(10)}
    assert last_usage(events) == (total(1), total(10))

    seen: dict[str, Any] = {}
    resumed = Listening(seen, "p", "", tools=[kid.as_tool()], tool_execution=mode)
    assert resumed.resume(events[-1], {"to_a/c1": True}, {}, ctx) == "done"
    assert seen == {"p": (total(1), total(10))}


def test_any_run_with_the_calls_context_counts() -> None:
    """Not only ``as_tool``: a function may run prompts, blocking or read half."""
    one, two = Prompt("a", ""), Prompt("b", "")

    @tool
    def both(ctx: Context) -> Iterator[str]:
        """Run two prompts."""
        one({}, ctx)
        with two.run({}, ctx) as events:
            yield next(event.type for event in events if event.type == "text")
        return "both"

    models = Models(p=[calls(("both", {}, "c1")), "done"], a=["1"], b=["2"])

    events = list(Prompt("p", "", tools=[both]).run({}, models.context()))

    assert costs(events) == {"tool_output c1": total(10, 100)}
    assert last_usage(events) == (total(1, 1), total(10, 100))


def test_judges_count_where_they_judge() -> None:
    """A prompt that checks arguments or answers is a child of who asked it."""
    judge = Prompt("a", "")

    def refuse(given: Any, ctx: Context) -> bool:
        return judge({}, ctx) == "yes"

    made = Tool("t", lambda given: 1, schema={}, validate=refuse)
    models = Models(p=[calls(("t", {}, "c1")), "done"], a=["no", "yes"])
    prompt = Prompt("p", "", tools=[made], validate=refuse)

    events = list(prompt.run({}, models.context()))

    assert costs(events) == {"tool_error c1": total(10)}
    assert last_usage(events) == (total(1, 1), total(10, 10))


def test_a_model_function_says_itself_what_it_costs() -> None:
    """A run within a model function is not told of: its answer's usage says it."""
    inner = Prompt("a", "")
    models = Models(x=["-"], a=["inner"])
    plain = models.context()

    def execute(request: Any, ctx: Context) -> Response:
        nested = ctx.replace(execute=None, stream=plain.stream)
        return Response(inner({}, nested), usage=cost(7))

    events = list(Prompt("p", "").run({}, Context(execute=execute)))

    assert last_usage(events) == (cost(7), None)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_an_agent_inside_a_prompt(own: bool, stream: bool) -> None:
    """An agent's cost is told too, whether it brings its own model or not."""
    models = Models(p=[ask("a"), "done"], a=["kid"])
    agent = Agent(Prompt("a", ""), models.context() if own else None)

    prompt = Prompt("p", "", tools=[agent.as_tool(stream=stream)])
    events = list(prompt.run({}, models.context()))

    assert costs(events) == {"tool_output to_a": total(10)}
    assert last_usage(events) == (total(1, 1), total(10))


@pytest.mark.parametrize("fails", [True, False])
def test_a_prompt_inside_an_agent(fails: bool) -> None:
    """The fluent door's usage is its own turns' and attempts'; a child's is apart."""
    models = Models(p=[ask("a"), "done"], a=["kid"])
    agent = Agent(Prompt("p", "", tools=[Prompt("a", "").as_tool()]), models.context())
    request = agent.prompt("go").max_turns(1 if fails else 2)

    if fails:
        with pytest.raises(MaxTurnsError) as caught:
            request.send()
        assert caught.value.usage == total(1)
    else:
        response = request.send()
        assert (response.usage, response.nested) == (total(1, 1), total(10))


@pytest.mark.parametrize("stream", [True, False])
def test_what_agents_inside_agents_cost(stream: bool) -> None:
    """``final`` and the response tell what runs below cost, however deep they are."""
    models = Models(p=[ask("a"), "done"], a=[ask("b"), "kid"], b=["grandkid"])
    agent = Agent(Prompt("b", ""), models.context())
    for name in ("a", "p"):
        tools = [agent.as_tool(stream=stream)]
        agent = Agent(Prompt(name, "", tools=tools), models.context())

    *_, final = agent.prompt("go").stream()

    below = total(10, 10, 100)
    assert (final.usage, final.nested) == (total(1, 1), below)
    assert final.to_dict()["nested"] == below.to_dict()
    alone = Agent("", ScriptedModel("x").context()).prompt("go").send()
    assert alone.nested is None


def test_a_run_that_is_closed_early() -> None:
    """What a child has cost until its caller left is known."""
    models = Models(p=[ask("a"), "done"], a=["kid"])
    prompt = Prompt("p", "", tools=[Prompt("a", "").as_tool()])

    with prompt.run({}, models.context()) as stream:
        next(event for event in stream if event.type == "tool_output")

    assert (stream.usage, stream.nested_usage) == (total(1), total(10))


def test_contexts_are_isolated() -> None:
    """A child sees the caller's own fields, and neither its messages nor its call."""
    seen = []

    def look(value: str, ctx: Context) -> None:
        seen.append((ctx.tool_call_id, ctx.customer, ctx.decisions))

    models = Models(p=[ask("a"), "done"], a=["kid"])
    ctx = models.context(customer="ada", messages=[Message("user", "secret")])
    kid = Prompt("a", "A.", validate=look).as_tool()

    Prompt("p", "P.", tools=[kid])({}, ctx)

    assert seen == [(None, "ada", None)]
    (request,) = models.requests("a")
    assert request.messages == (Message("system", "A."), Message("user", "go"))
    assert ctx.messages == (Message("user", "secret"),)


def test_a_context_in_a_pickle_owes_nobody() -> None:
    """A copy of a call's context that went elsewhere tells nobody of its cost."""
    kept: list[bytes] = []

    @tool
    def keep(ctx: Context) -> str:
        """Keep the context."""
        kept.append(pickle.dumps(ctx.replace(stream=None, signal=None)))
        return "kept"

    models = Models(p=[calls(("keep", {}, "c1")), "done"], a=["later"])
    stream = Prompt("p", "", tools=[keep]).run({}, models.context())
    list(stream)

    later: Context = pickle.loads(kept[0])
    Prompt("a", "")({}, later.replace(stream=models.stream))

    assert later.tool_call_id == "c1"
    assert stream.nested_usage == Usage.empty()


def test_a_waiting_child_is_raised_by_a_call_too() -> None:
    """Calling a prompt raises the child's wait, wherever the cost is told."""
    made = Tool("a", waits, schema={})
    models = Models(p=[ask("a")])

    with pytest.raises(PromptSuspend, match="later"):
        Prompt("p", "", tools=[made])({}, models.context())


def waits(given: Any) -> None:
    raise PromptSuspend("later")
