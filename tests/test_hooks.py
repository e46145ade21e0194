"""Hooks and approvals: who is asked when, and what that does."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from aeye.agent import Agent
from aeye.callback import attempt
from aeye.context import Abort
from aeye.errors import (
    AbortedError,
    CapabilityError,
    PromptCancelledError,
    ServerError,
    ToolApprovalRequiredError,
)
from aeye.hooks import (
    HookAction,
    PromptHook,
    ToolApprovalDecision,
    ToolApprovalsOptions,
    cancel_prompt,
    create_hook,
    request_tool_approval,
    skip_tool,
)
from aeye.message import Message
from aeye.prompt_request import PromptRequest
from aeye.testing import ScriptedModel, calls
from aeye.tools import Tool, ToolApproval, tool
from aeye.usage import Usage


def U(input: int, output: int) -> Usage:
    return Usage.of(input=input, output=output)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


ROUND = calls(("add", {"a": 1, "b": 2}, "c1"))


def request(*replies: Any, tools: Any = (add,), **options: Any) -> PromptRequest[str]:
    model = ScriptedModel(*replies, usage=U(1, 1))
    return Agent("", model.context(), tools=list(tools), **options).prompt("hi")


def told(request: PromptRequest[Any]) -> tuple[list[Any], Any]:
    """Read a stream to its end: its events, and what it raised."""
    events, stream = [], request.stream()
    while True:
        event, error = attempt(next, stream)
        if error is not None:
            return events, None if isinstance(error, StopIteration) else error
        events.append(event)


def types(events: list[Any]) -> list[str]:
    return [event.type for event in events]


def roles(messages: Any) -> list[str]:
    return [message.role for message in messages]


class Recording:
    """An object whose callbacks note their names and go on."""

    def __init__(self, **answers: Any) -> None:
        self.seen: list[str] = []
        self.args: dict[str, list[Any]] = {}
        self.answers = answers

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_") or name == "on_result":
            raise AttributeError(name)

        def callback(args: Any) -> Any:
            self.seen.append(name)
            self.args.setdefault(name, []).append(args)
            return self.answers.get(name)

        return callback


class TestHooks:
    """A hook looks, and may stop things."""

    def test_order(self) -> None:
        """The callbacks of a tool round, in order."""
        hook = Recording()

        request(ROUND, "3").with_hook(hook).send()

        assert hook.seen == [
            "on_run_start",
            "on_turn_start",
            "on_completion_call",
            "on_completion_response",
            "on_turn_end",
            "on_tool_call",
            "on_tool_result",
            "on_turn_start",
            "on_completion_call",
            "on_completion_response",
            "on_turn_end",
            "on_run_end",
        ]

    def test_arguments(self) -> None:
        """Each callback gets what is known at its place."""
        hook = Recording()
        said = [Message("user", "a"), Message("assistant", "b"), Message("user", "c")]
        model = ScriptedModel(ROUND, "3", usage=U(1, 1))

        Agent("x", model.context(), tools=[add], hook=hook).prompt(said).send()

        start = hook.args["on_run_start"][0]
        assert (start.prompt, start.history) == (said[-1], tuple(said[:-1]))
        assert start.max_turns == 20
        called, result = hook.args["on_tool_call"][0], hook.args["on_tool_result"][0]
        assert (called.tool_name, called.tool_call_id, called.turn) == ("add", "c1", 1)
        assert called.internal_call_id == result.internal_call_id
        assert json.loads(called.args) == {"a": 1, "b": 2}
        assert (result.result, result.structured_result, result.skipped) == (
            "3",
            3,
            False,
        )
        assert hook.args["on_turn_start"][1].prompt.role == "tool"
        end = hook.args["on_run_end"][0]
        assert (end.output, end.usage) == ("3", U(2, 2))
        assert roles(end.messages) == ["user", "assistant", "tool", "assistant"]

    @pytest.mark.parametrize(
        ("place", "seen", "asked"),
        [
            ("on_run_start", ["error"], 0),
            ("on_turn_start", ["turn_start", "error"], 0),
            ("on_completion_call", ["turn_start", "error"], 0),
            ("on_completion_response", ["turn_start", "error"], 1),
            ("on_turn_end", ["turn_start", "text_delta", "error"], 1),
            ("on_run_end", ["turn_start", "text_delta", "turn_end", "error"], 1),
        ],
    )
    def test_cancelling(self, place: str, seen: list[str], asked: int) -> None:
        """A hook ends the run from wherever it is asked; the cost is kept."""
        failed: list[Any] = []
        hook = {
            place: lambda args: cancel_prompt("enough"),
            "on_run_error": lambda args: failed.append(args),
        }
        made = request("x").with_hook(hook)

        events, error = told(made)

        assert isinstance(error, PromptCancelledError)
        assert (error.reason, made.state) == ("enough", "cancelled")
        assert types(events) == seen
        assert events[-1].usage == error.usage
        assert error.usage.total_tokens == 2 * asked
        assert error.chat_history[0] == Message("user", "hi")
        assert failed[0].error is error
        assert failed[0].messages == error.chat_history

    def test_cancelling_before_a_tool(self) -> None:
        """The tool is not run, and its call is answered in the history."""
        ran: list[int] = []

        @tool
        def work() -> None:
            """Do it."""
            ran.append(1)

        hook = {"on_tool_call": lambda args, tool: tool.cancel("no")}
        events, error = told(
            request(calls(("work", {})), "x", tools=[work]).with_hook(hook)
        )

        assert (ran, error.reason) == ([], "no")
        assert types(events)[-2:] == ["turn_end", "error"]
        assert roles(error.chat_history) == ["user", "assistant", "tool"]
        assert error.chat_history[-1].text == "[not run: cancelled]"

    def test_cancelling_after_a_tool(self) -> None:
        """The tool did run; its result is in the history, the next never starts."""
        ran: list[int] = []

        @tool
        def work(n: int) -> int:
            """Do it."""
            ran.append(n)
            return n

        def look(args: Any) -> Any:
            return cancel_prompt("two is enough") if args.result == "1" else None

        many = calls(*(("work", {"n": n}) for n in range(3)))
        events, error = told(
            request(many, "x", tools=[work]).with_hook({"on_tool_result": look})
        )

        assert ran == [0, 1]
        assert types(events).count("tool_result") == 1
        assert [m.text for m in error.chat_history[2:]] == [
            "0",
            "1",
            "[not run: cancelled]",
        ]

    def test_cancelling_beside_running_tools(self) -> None:
        """What runs is finished and reported; nothing more is started."""
        ran: list[int] = []
        pair = threading.Barrier(2)

        @tool
        def work(n: int) -> int:
            """Do it."""
            pair.wait(10)
            ran.append(n)
            return n

        many = calls(*(("work", {"n": n}) for n in range(4)))
        made = request(many, "x", tools=[work]).with_tool_concurrency(2)
        _, error = told(
            made.with_hook({"on_tool_result": lambda args: cancel_prompt("stop")})
        )

        assert sorted(ran) == [0, 1]
        assert [m.text for m in error.chat_history[2:]] == [
            "0",
            "1",
            "[not run: cancelled]",
            "[not run: cancelled]",
        ]

    def test_cancelling_on_a_tool_error(self) -> None:
        """A tool's failure may end the run."""
        hook = {"on_tool_error": lambda args: cancel_prompt(str(args.error))}
        broken = Tool("broken", lambda args: 1 / 0, schema={})

        _, error = told(request(calls(("broken", {})), tools=[broken]).with_hook(hook))

        assert error.reason == "division by zero"

    def test_skipping(self) -> None:
        """A skipped call is answered with the reason, as middleware leaves it."""
        hook = Recording(on_tool_call=skip_tool("not today"))
        middleware = Recording()
        middleware.answers["on_tool_output"] = None
        made = request(ROUND, "x").with_hook(hook).with_middleware(middleware)

        events, error = told(made)

        assert error is None
        result = next(e for e in events if e.type == "tool_result")
        assert result.result == "not today"
        assert hook.args["on_tool_result"][0].skipped is True
        assert middleware.args["on_tool_output"][0].result == "not today"
        assert "on_tool_input" not in middleware.seen

    def test_a_hook_replaces_the_agents(self) -> None:
        """The request's hook is asked in place of the agent's, not beside it."""
        skip = {"on_tool_call": lambda args: skip_tool("no")}
        run = {"on_tool_call": lambda args, tool: tool.run()}

        kept = request(ROUND, "x", hook=skip).send()
        replaced = request(ROUND, "x", hook=skip).with_hook(run).send()
        with pytest.warns(DeprecationWarning):
            old = request(ROUND, "x", hook=skip).request_hook(run).send()

        assert [r.messages[2].text for r in (kept, replaced, old)] == ["no", "3", "3"]

    def test_completion_error(self) -> None:
        """Cancelling there replaces the provider's error, which is the cause."""
        down = ServerError("down", status=503)
        seen: list[Any] = []
        hook = {
            "on_completion_error": lambda args, run: run.cancel("give up"),
            "on_run_error": lambda args: seen.append(args.error),
        }

        _, error = told(request(down).with_hook(hook))

        assert isinstance(error, PromptCancelledError)
        assert (error.__cause__, seen) == (down, [error])

    def test_completion_error_is_not_about_capabilities(self) -> None:
        """What a model cannot do is no failed call."""
        seen: list[Any] = []
        hook = {"on_completion_error": lambda args: seen.append(args)}

        _, error = told(request(CapabilityError("no tools")).with_hook(hook))

        assert isinstance(error, CapabilityError)
        assert seen == []

    def test_run_error(self) -> None:
        """Cancelling there replaces the error, which stays the cause."""
        boom = KeyError("x")
        hook = {"on_run_error": lambda args: cancel_prompt("hidden")}

        events, error = told(request(boom).with_hook(hook))

        assert (error.reason, error.__cause__) == ("hidden", boom)
        assert events[-1].error is error

    def test_a_run_error_that_raises(self) -> None:
        """A hook that fails while a failure is told does not hide it."""
        boom = KeyError("x")

        def fail(args: Any) -> None:
            raise ValueError("hook")

        events, error = told(request(boom).with_hook({"on_run_error": fail}))

        assert error is boom is events[-1].error

    @pytest.mark.parametrize(
        "place", ["on_run_start", "on_turn_start", "on_tool_call", "on_tool_result"]
    )
    def test_a_hook_that_raises(self, place: str) -> None:
        """It fails the run with its own exception."""
        boom = LookupError("mine")

        def fail(args: Any) -> None:
            raise boom

        made = request(ROUND, "x").with_hook({place: fail})
        _, error = told(made)

        assert (error, made.state) == (boom, "errored")

    def test_wrong_answers(self) -> None:
        """A hook that answers something else is told what it may answer."""
        _, error = told(request("x").with_hook({"on_run_start": lambda args: "no"}))

        assert isinstance(error, TypeError)
        assert "cancel_prompt" in str(error)

    @pytest.mark.parametrize("place", ["on_turn_start", "on_tool_result", "on_run_end"])
    @pytest.mark.parametrize("wish", [skip_tool("no"), request_tool_approval()])
    def test_wishes_that_come_too_late(self, place: str, wish: Any) -> None:
        """Only a call that is about to start can be skipped or asked about."""
        made = request(ROUND, "x").with_hook({place: lambda args: wish})
        _, error = told(made)

        assert isinstance(error, TypeError)
        assert f"hook {place} returns None or cancel_prompt(…), not" in str(error)

    def test_kinds_of_hooks(self) -> None:
        """A class of one's own, any object, a dict, or functions by name."""
        seen: list[str] = []

        class Mine(PromptHook):
            def on_run_end(self, args: Any) -> HookAction | None:
                seen.append(args.output)
                return None

        def note(args: Any, run: Any) -> Any:
            seen.append(args.output)
            return run.continue_()

        for hook in (
            Mine(),
            SimpleNamespace(on_run_end=note),
            {"on_run_end": note, "on_run_start": None},
            create_hook(on_run_end=note),
            PromptHook(),
        ):
            request("x").with_hook(hook).send()

        assert seen == ["x"] * 4

    def test_what_is_no_hook(self) -> None:
        """A hook has names that are known, and awaits nothing."""

        async def later(args: Any) -> None: ...

        for wrong in (
            7,
            object(),
            PromptHook,
            {"on_typo": print},
            {"on_run_end": later},
            {"on_run_end": lambda args, other: None},
        ):
            with pytest.raises(TypeError, match="hook"):
                request("x").with_hook(wrong)
        with pytest.raises(TypeError, match="on_typo"):
            create_hook(on_typo=print)


def guarded(**policy: Any) -> Tool[Any]:
    policy.setdefault("when", lambda args: args["amount"] > 100)

    @tool(approval=ToolApproval(**policy))
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    return pay


def paying(amount: Any, **policy: Any) -> PromptRequest[str]:
    once = calls(("pay", {"amount": amount}, "p1"))
    return request(once, "done", tools=[guarded(**policy)])


class TestApprovals:
    """A tool may want somebody's consent."""

    def test_only_when_it_is_needed(self) -> None:
        """The tool's policy decides by the arguments whether to ask."""
        asked: list[Any] = []

        def decide(request: Any) -> bool:
            asked.append(request)
            return True

        small = paying(50).approvals(decide).send()
        big = paying(250).approvals(ToolApprovalsOptions(decide)).send()

        assert [r.messages[2].text for r in (small, big)] == ["paid 50", "paid 250"]
        assert [(r.tool_name, r.args, r.tool_call_id) for r in asked] == [
            ("pay", {"amount": 250}, "p1")
        ]
        assert json.loads(asked[0].raw_args) == {"amount": 250}

    @pytest.mark.parametrize(
        ("decision", "policy", "text"),
        [
            (False, {}, "Tool approval was rejected."),
            (False, {"reject_message": "too much"}, "too much"),
            (
                False,
                {"reject_message": lambda args: f"{args['amount']} is too much"},
                "250 is too much",
            ),
            ({"approved": False, "reason": "r"}, {"reject_message": "x"}, "r"),
            (
                ToolApprovalDecision(False, "r", reject_message="m"),
                {"reject_message": "x"},
                "m",
            ),
        ],
    )
    def test_refused(self, decision: Any, policy: Any, text: str) -> None:
        """A refusal is the call's result, in the words that are nearest."""
        hook = Recording()
        made = paying(250, **policy).approvals({"handler": lambda request: decision})

        events, error = told(made.with_hook(hook))

        assert error is None
        assert next(e for e in events if e.type == "tool_result").result == text
        assert hook.args["on_tool_result"][0].skipped is True

    def test_reasons(self) -> None:
        """What the policy says reaches the handler, asked for when needed."""
        seen: list[Any] = []

        def decide(request: Any) -> bool:
            seen.append((request.reason, request.reject_message, request.run.agent_id))
            return True

        paying(250, reason=lambda args, ctx: f"{args['amount']}!").approvals(
            decide
        ).send()

        assert seen == [("250!", None, "agent")]

    def test_nobody_to_ask(self) -> None:
        """Without a handler the run fails, and says what waits and where to resume."""
        made = paying(250)

        events, error = told(made)

        assert isinstance(error, ToolApprovalRequiredError)
        assert types(events)[-2:] == ["turn_end", "error"]
        waiting = error.request
        assert (waiting.tool_name, waiting.args) == ("pay", {"amount": 250})
        assert json.loads(waiting.raw_args) == {"amount": 250}
        assert waiting.run.run_id
        assert roles(error.messages) == ["user", "assistant"]
        assert made.state == "errored"

    def test_the_requests_handler_replaces_the_agents(self) -> None:
        """The agent's handler is not asked where the request has one."""
        once = calls(("pay", {"amount": 250}))
        made = request(once, "x", tools=[guarded()], approvals=lambda request: False)

        assert made.approvals(lambda request: True).send().messages[2].text == (
            "paid 250"
        )

    @pytest.mark.parametrize(("answer", "text"), [(True, "3"), (False, "hands off")])
    def test_a_hook_asks_for_it(self, answer: bool, text: str) -> None:
        """A hook may ask for consent to any tool, with its own words."""
        seen: list[Any] = []
        hook = {
            "on_tool_call": lambda args, tool: tool.request_approval(
                reason="sure?", reject_message="hands off"
            )
        }

        def decide(request: Any) -> bool:
            seen.append(request.reason)
            return answer

        response = request(ROUND, "x").with_hook(hook).approvals(decide).send()

        assert (response.messages[2].text, seen) == (text, ["sure?"])

    def test_a_hook_stands_for_the_tools_policy(self) -> None:
        """Where a hook asks, the tool's own policy is not asked again."""
        seen: list[Any] = []
        hook = {"on_tool_call": lambda args: request_tool_approval("mine")}

        def decide(request: Any) -> bool:
            seen.append(request.reason)
            return True

        paying(250, reason="the tool's").with_hook(hook).approvals(decide).send()

        assert seen == ["mine"]

    def test_bad_arguments_are_not_asked_about(self) -> None:
        """Arguments that do not fit are the model's mistake, not a question."""
        asked: list[Any] = []

        response = paying("lots").approvals(lambda r: asked.append(r)).send()

        assert asked == []
        assert response.messages[2].text.startswith("Error parsing")

    def test_after_middleware(self) -> None:
        """Whoever consents sees the arguments that will be used."""
        seen: list[Any] = []

        def decide(request: Any) -> bool:
            seen.append((request.args, request.raw_args))
            return True

        made = paying(50).with_middleware(
            {"on_tool_input": lambda args: {"amount": 500}}
        )
        made.approvals(decide).send()

        assert seen == [({"amount": 500}, '{"amount": 500}')]

    def test_wrong_decisions(self) -> None:
        """A handler that returns nothing has not decided."""
        _, error = told(paying(250).approvals(lambda request: None))

        assert isinstance(error, TypeError)
        assert "True, False" in str(error)

    @pytest.mark.parametrize("place", ["handler", "when"])
    def test_one_that_raises(self, place: str) -> None:
        """It fails the run with its own exception."""
        boom = LookupError("mine")

        def fail(subject: Any) -> bool:
            raise boom

        made = paying(250, when=fail) if place == "when" else paying(250)
        _, error = told(made.approvals(fail))

        assert error is boom

    def test_spellings(self) -> None:
        """True, a function of the arguments, and a dict are policies too."""
        seen: list[str] = []
        policies: list[Any] = [
            True,
            lambda args: True,
            {"when": True, "reason": "r"},
            False,
            None,
        ]
        for policy in policies:
            ask = Tool("ask", lambda args: "ok", schema={}, approval=policy)
            made = request(calls(("ask", {})), "x", tools=[ask])

            def decide(request: Any) -> bool:
                seen.append(request.reason or "-")
                return True

            made.approvals(decide).send()

        assert seen == ["-", "-", "r"]
        with pytest.raises(TypeError, match="approval"):
            Tool("ask", print, schema={}, approval=7)


def test_consent_that_comes_too_late() -> None:
    """A call that was asked about has a result, also where an abort came first."""
    signal, seen = Abort(), []

    def consent(request: Any) -> bool:
        signal.set()
        return True

    asked = Tool("asked", lambda args: "done", schema={}, approval=True)
    model = ScriptedModel(calls(("asked", {}, "c1")))
    agent = Agent("", model.context(signal=signal), tools=[asked], approvals=consent)

    with pytest.raises(AbortedError):
        agent.prompt("hi").with_hook({"on_tool_result": seen.append}).send()

    (told,) = seen
    assert (told.tool_call_id, told.skipped) == ("c1", True)
    assert told.result == "[aborted: the run was aborted before this call was run]"


@pytest.mark.parametrize("said", ["no", "false", 0, 1, None])
def test_consent_is_given_in_one_word_only(said: Any) -> None:
    """What is neither True nor False is no consent, and no refusal: it is an error."""
    ran: list[Any] = []
    ask = Tool("ask", ran.append, schema={}, approval=True)
    asking = request(calls(("ask", {})), "never", tools=[ask])

    with pytest.raises(TypeError, match="approved is True or False, not "):
        asking.approvals(lambda wish: {"approved": said}).send()
    with pytest.raises(TypeError, match="approved is True or False, not "):
        ToolApprovalDecision(said)
    assert ran == []


@pytest.mark.parametrize("when", ["", "false", 0, 1, None])
def test_when_consent_is_needed_is_said_clearly(when: Any) -> None:
    """A policy that might mean that nobody is asked cannot be made."""
    with pytest.raises(TypeError, match="when is True, False or a function, not "):
        ToolApproval(when=when)
