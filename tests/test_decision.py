"""Calls that wait: the declarative door, and decisions about calls inside calls."""

from __future__ import annotations

from typing import Any

import pytest

from aeye.context import Result, Resume
from aeye.decision import decided, nest, unanswered
from aeye.descriptor import OPENAI_STRICT
from aeye.errors import PromptSuspend
from aeye.message import Message, ToolCall
from aeye.prompt import Prompt
from aeye.testing import ScriptedModel, calls
from aeye.tools import Tool, tool

ONE, TWO = ToolCall("c1", "f"), ToolCall("c2", "f")
ASKED = Message("assistant", "", tool_calls=[ONE, TWO])


def paying(*replies: Any, **options: Any) -> tuple[Prompt[str], Any, list[str]]:
    ran: list[str] = []

    @tool(approval=lambda args: args["to"] != "me")
    def pay(to: str) -> str:
        """Pay."""
        ran.append(to)
        return f"paid {to}"

    prompt = Prompt("p", "Pay.", tools=[pay], **options)
    return prompt, ScriptedModel(*replies), ran


@pytest.mark.parametrize("execution", ["sequential", "parallel", "immediate"])
def test_the_declarative_door_waits(execution: Any) -> None:
    """A call that needs consent suspends the run; other calls do not."""
    prompt, model, ran = paying(
        calls(("pay", {"to": "me"}, "c1"), ("pay", {"to": "Ann"}, "c2")),
        "done",
        tool_execution=execution,
    )

    events = list(prompt.run({}, model.context()))
    assert (ran, events[-1].type) == (["me"], "suspend")
    output = prompt.resume(events[-1], {"c2": True}, {}, model.context())

    assert (ran, output) == (["me", "Ann"], "done")
    assert [m.text for m in model.requests[-1].messages[-2:]] == ["paid me", "paid Ann"]


def test_resuming_what_was_raised() -> None:
    """Calling a prompt raises where ``run`` suspends; both can be resumed."""
    prompt, model, ran = paying(calls(("pay", {"to": "Ann"}, "c1")), "done")

    with pytest.raises(PromptSuspend) as caught:
        prompt({}, model.context())
    with pytest.raises(PromptSuspend):
        prompt.resume(caught.value, {}, {}, model.context())
    output = prompt.resume(caught.value.messages, {"c1": "no"}, {}, model.context())

    assert (ran, output) == ([], "done")


def test_results_are_presented() -> None:
    """A result that is given passes what the tool's own would."""
    prompt, model, _ = paying(
        calls(("pay", {"to": "Ann"}, "c1")),
        "done",
        on_tool_result=lambda event: f"<{event.result}>",
    )
    with pytest.raises(PromptSuspend) as caught:
        prompt({}, model.context())

    prompt.resume(caught.value, {"c1": Result(7)}, {}, model.context())

    assert model.requests[-1].messages[-1].text == "<7>"


def test_some_of_several() -> None:
    """Decided calls are run; the run goes on waiting for the others."""

    def wait(args: Any, ctx: Any) -> str:
        raise PromptSuspend

    @tool(approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    both = Prompt("p", "", tools=[Tool("wait", wait, schema={}), pay])
    said = [
        Message("user", "go"),
        Message(
            "assistant",
            "",
            tool_calls=[ToolCall("c1", "wait"), ToolCall("c2", "pay")],
        ),
    ]
    model = ScriptedModel("done")

    with pytest.raises(PromptSuspend) as caught:
        both.resume(said, {"c2": True}, None, model.context())
    assert model.calls == 0
    assert [m.tool_call_id for m in caught.value.messages[2:]] == ["c2"]
    output = both.resume(caught.value, {"c1": Result("ok")}, None, model.context())

    assert output == "done"
    assert [m.tool_call_id for m in model.requests[0].messages[2:]] == ["c1", "c2"]


def test_recorded_arguments_are_read_in_their_dialect() -> None:
    """A call is run with what the model wrote, as the dialect it wrote in means it."""

    @tool(approval=True)
    def pay(to: str, amount: int = 5) -> str:
        """Pay."""
        return f"{to}: {amount}"

    written = '{"to": "Ann", "amount": null}'
    call = ToolCall("c1", "pay", written, descriptor=OPENAI_STRICT.id)
    said = [Message("user", "go"), Message("assistant", "", tool_calls=[call])]
    model = ScriptedModel("done")

    Prompt("p", "", tools=[pay]).resume(said, {"c1": True}, None, model.context())

    assert model.requests[0].messages[-1].text == "Ann: 5"


def test_a_run_inside_a_tool_has_its_own_decisions() -> None:
    """Decisions about a run's calls are not seen by runs inside its tools."""
    inner = Prompt("inner", "", user_turn="go")

    @tool(approval=True)
    def ask(ctx: Any) -> str:
        """Ask another prompt."""
        return inner(None, ctx.replace(messages=()))

    outer = Prompt("outer", "", user_turn="go", tools=[ask])
    model = ScriptedModel(calls(("ask", {}, "c1")), "inner", "outer")
    with pytest.raises(PromptSuspend) as caught:
        outer(None, model.context())

    assert outer.resume(caught.value, {"c1": True}, None, model.context()) == "outer"


@pytest.mark.parametrize("schema", [None, {"type": "object"}])
def test_a_prompt_as_a_tool_waits_with_its_caller(schema: Any) -> None:
    """A prompt inside a tool that waits makes its caller wait, and goes on inside."""
    inner, model, ran = paying(calls(("pay", {"to": "Ann"}, "p1")), "inner done")
    tool_of = inner.as_tool("ask", "Asks.", schema=schema)
    given = {"prompt": "pay Ann"}

    def reply(request: Any) -> Any:
        if request.name == "p":
            return model.execute(request)
        answered = request.messages[-1].role == "tool"
        return "outer done" if answered else calls(("ask", given, "k1"))

    outer = Prompt("outer", "", user_turn="go", tools=[tool_of])
    ctx = ScriptedModel(reply).context()
    with pytest.raises(PromptSuspend) as caught:
        outer(None, ctx)
    assert list(caught.value.children) == ["k1"]

    output = outer.resume(caught.value, {"k1/p1": True}, None, ctx)

    assert (ran, output) == (["Ann"], "outer done")
    begun = model.requests[0].messages[-1].text
    assert begun == ("Begin." if schema else "pay Ann")
    assert model.requests[1].messages[-1].text == "paid Ann"


def test_a_prompt_as_a_tool_gets_its_input() -> None:
    """With a schema the model gives the prompt's input."""
    inner = Prompt("Say it!", "Say {{word}}.", description="Says it.")
    made = inner.as_tool(schema={"type": "object", "properties": {"word": {}}})
    model = ScriptedModel(calls(("Say_it", {"word": "hi"})), "hi", "done")
    outer = Prompt("outer", "", user_turn="go", tools=[made])

    assert outer(None, model.context()) == "done"
    assert (made.name, made.description) == ("Say_it", "Says it.")
    assert model.requests[1].system == "Say hi."


def test_without_decisions_a_dangling_call_is_mended() -> None:
    """A history that ends in calls is answered, where nobody decided."""
    prompt, model, ran = paying("done")
    said = [Message("assistant", "", tool_calls=[ToolCall("c1", "pay")])]

    prompt({}, model.context(messages=[Message("user", "x"), *said]))

    assert (ran, model.requests[0].messages[-1].text) == ([], "[interrupted]")


def test_decisions_without_calls_that_wait() -> None:
    """Decisions about calls that are answered change nothing."""
    prompt, model, ran = paying("done")
    said = [
        Message("user", "x"),
        Message("assistant", "", tool_calls=[ToolCall("c1", "pay")]),
        Message("tool", "ok", name="pay", tool_call_id="c1"),
    ]

    assert prompt.resume(said, {"c1": True}, {}, model.context()) == "done"
    assert ran == []


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        ([Message("user", "x")], []),
        ([ASKED], [ONE, TWO]),
        ([ASKED, Message("tool", "x", tool_call_id="c1")], [TWO]),
        ([ASKED, Message("user", "x")], []),
        ([Message("tool", "x", tool_call_id="c1")], []),
    ],
)
def test_unanswered(messages: Any, expected: Any) -> None:
    """Calls wait that the last assistant message made and nobody answered."""
    assert unanswered(messages) == expected


def test_decided() -> None:
    """Calls that nothing was said about are left out; False is a refusal."""
    said = {"c1": False, "c2": None, "old": True}

    assert decided([ONE, TWO], said, {"c1", "c2", "old"}) == {
        "c1": "Tool approval was rejected."
    }


def test_nesting() -> None:
    """Paths become decisions inside decisions, with where each run waits.

    A run inside that nothing was said about goes on waiting where it did.
    """
    m = (Message("user", "x"),)
    children = {"a": m, "a/b": m, "d": m}

    found = nest({"a/b/c": True, "a/e": "no", "x": True, "x/y": True}, children)

    assert found == {
        "a": Resume(m, {"b": Resume(m, {"c": True}), "e": "no"}),
        "d": Resume(m, {}),
        "x": True,
        "x/y": True,
    }
