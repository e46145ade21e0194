"""Middleware: what it sees, what it may change, in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeye.agent import Agent
from aeye.callback import attempt
from aeye.message import Message, Reasoning, ToolCall
from aeye.middleware import AgentMiddleware, ToolMiddleware
from aeye.prompt_request import PromptRequest
from aeye.response import Chunk, Response
from aeye.testing import ScriptedModel, calls
from aeye.tools import tool
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


class Stage(AgentMiddleware):
    """Writes its letter behind everything that passes."""

    def __init__(self, letter: str, originals: list[Any]) -> None:
        self.letter = letter
        self.originals = originals

    def on_completion_request(self, args: Any) -> Any:
        self.originals.append(args.original_request)
        first = args.request.messages[0]
        changed = Message("system", first.text + self.letter)
        return args.request.with_messages((changed, *args.request.messages[1:]))

    def on_completion_response(self, args: Any) -> Any:
        self.originals.append(args.original_response)
        content = args.response.content + self.letter
        return Response(content, args.response.tool_calls, args.response.finish_reason)

    def on_tool_input(self, args: Any) -> Any:
        self.originals.append(args.original_args)
        given = json.loads(args.args)
        return {"text": given["text"] + self.letter}

    def on_tool_output(self, args: Any) -> Any:
        self.originals.append(args.original_result)
        return args.result + self.letter


class TestMiddleware:
    """Middleware changes what passes, left to right."""

    def test_order(self) -> None:
        """The agent's come first, at every place; originals never change."""
        originals: list[Any] = []
        a, b, c = (Stage(letter, originals) for letter in "ABC")

        @tool
        def echo(text: str) -> str:
            """Say it."""
            return text + "."

        model = ScriptedModel(calls(("echo", {"text": "hi"})), "bye")
        agent = Agent("S", model.context(), tools=[echo], middlewares=[a, b])

        events, error = told(agent.prompt("go").with_middleware(c))

        assert error is None
        assert [r.messages[0].text for r in model.requests] == ["SABC", "SABC"]
        result = next(e for e in events if e.type == "tool_result")
        assert (json.loads(result.args), result.result) == (
            {"text": "hiABC"},
            "hiABC.ABC",
        )
        assert events[-1].output == "byeABC"
        assert events[-1].messages[2].text == "hiABC.ABC"
        requests = originals[0:3]
        assert requests[0] is requests[1] is requests[2]
        assert originals[6:12] == ['{"text": "hi"}'] * 3 + ["hiABC."] * 3

    def test_held_back(self) -> None:
        """With response middleware only the text as changed is streamed."""
        middleware = {
            "on_completion_response": lambda args: {
                "response": Response(
                    args.response.content.upper(),
                    reasoning=args.response.reasoning,
                )
            }
        }
        hook = Recording()
        call = ToolCall("c1", "add", "{}")
        made = request(
            [
                Chunk(reasoning=Reasoning("Hm")),
                Chunk("he"),
                Chunk("llo"),
                Chunk(tool_call_named=call),
                Chunk(tool_call=call),
                Chunk(finish_reason="stop"),
            ]
        )

        events, _ = told(made.with_middleware(middleware).with_hook(hook))

        assert types(events) == [
            "turn_start",
            "tool_call_delta",
            "reasoning_delta",
            "text_delta",
            "turn_end",
            "final",
        ]
        assert events[3].delta == events[-1].output == "HELLO"
        assert hook.args["on_completion_response"][0].response.content == "HELLO"

    def test_holding_back_keeps_calls(self) -> None:
        """Calls of a turn that is held back are told once, before its end."""
        events, _ = told(request(ROUND, "3").with_hook(Recording()))

        assert types(events)[:4] == [
            "turn_start",
            "tool_call_delta",
            "tool_call_delta",
            "tool_call",
        ]
        assert types(events).count("tool_call") == 1

    @pytest.mark.parametrize(
        ("said", "text", "value"),
        [
            (None, "3", 3),
            ("three", "three", None),
            ({"result": "three"}, "three", None),
            ({"structured_result": {"n": 3}}, '{"n":3}', {"n": 3}),
            ({"result": "three", "structured_result": [3]}, "three", [3]),
        ],
    )
    def test_results(self, said: Any, text: str, value: Any) -> None:
        """A text clears the value, a value spells the text anew."""
        hook = Recording()
        middleware = {"on_tool_output": lambda args: said}

        response = (
            request(ROUND, "x").with_hook(hook).with_middleware(middleware).send()
        )

        assert response.messages[2].text == text
        result = hook.args["on_tool_result"][0]
        assert (result.result, result.structured_result) == (text, value)

    @pytest.mark.parametrize(
        ("said", "seen"),
        [
            (None, 3),
            ('{"a": 5, "b": 5}', 10),
            ({"a": 2, "b": 5}, 7),
            ({"args": {"a": 1, "b": 1}}, 2),
            ({"args": None}, 3),
        ],
    )
    def test_arguments(self, said: Any, seen: int) -> None:
        """Arguments are replaced by text, a value, or a record of one."""
        response = (
            request(ROUND, "x")
            .with_middleware({"on_tool_input": lambda args: said})
            .send()
        )

        assert response.messages[2].text == str(seen)

    def test_arguments_may_be_mended(self) -> None:
        """Middleware sees arguments before they are checked, and can mend them."""
        bad = calls(("add", '{"a": 1, "b": '))
        mend = {"on_tool_input": lambda args: args.args + "2}"}

        assert request(bad, "x").with_middleware(mend).send().messages[2].text == "3"

    @pytest.mark.parametrize("name", ["c1", ""])
    @pytest.mark.parametrize("width", [1, 2])
    def test_calls_of_its_own(self, name: str, width: int) -> None:
        """Calls that middleware makes get ids that differ, whatever it gave them."""

        def twice(args: Any) -> Response:
            if args.turn > 1:
                return Response("done")
            call = ToolCall(name, "add", '{"a": 1, "b": 2}')
            return Response(tool_calls=(*args.response.tool_calls, call, call))

        made = request(
            ROUND, "ok", middlewares=[{"on_completion_response": twice}]
        ).with_tool_concurrency(width)

        asked, *replies = made.send().messages[1:-1]

        ids = [call.id for call in asked.tool_calls]
        assert len(set(ids)) == 3
        assert [(m.tool_call_id, m.text) for m in replies] == [(i, "3") for i in ids]

    def test_the_older_form(self) -> None:
        """``on_result`` runs in its place among the newer ones."""

        class Old(ToolMiddleware):
            def on_result(self, args: Any) -> str:
                return args.result + ":old"

        def new(name: str) -> Any:
            return {"on_tool_output": lambda args: f"{args.result}:{name}"}

        made = request(ROUND, "x", middlewares=[new("agent")]).with_middleware(new("a"))
        with pytest.warns(DeprecationWarning):
            made.with_tool_middleware(Old())
        with pytest.warns(DeprecationWarning):
            made.with_tool_middlewares([new("b")])

        assert made.send().messages[2].text == "3:agent:a:old:b"

    @pytest.mark.parametrize(
        "place",
        [
            "on_completion_request",
            "on_completion_response",
            "on_tool_input",
            "on_tool_output",
        ],
    )
    def test_one_that_raises(self, place: str) -> None:
        """It fails the run; a call that was made is paid for."""
        boom = LookupError("mine")

        def fail(args: Any) -> None:
            raise boom

        events, error = told(request(ROUND, "x").with_middleware({place: fail}))

        assert error is boom
        spent = U(0, 0) if place == "on_completion_request" else U(1, 1)
        assert events[-1].usage.total_tokens == spent.total_tokens

    @pytest.mark.parametrize(
        ("place", "said"),
        [
            ("on_completion_request", "x"),
            ("on_completion_response", {"response": 7}),
            ("on_tool_output", 7),
            ("on_tool_output", {}),
            ("on_tool_output", {"text": "x"}),
            ("on_tool_output", {"result": 7}),
        ],
    )
    def test_wrong_answers(self, place: str, said: Any) -> None:
        """What middleware may return is said where it returned something else."""
        _, error = told(request(ROUND, "x").with_middleware({place: lambda args: said}))

        assert isinstance(error, TypeError)
        assert "middleware" in str(error)

    def test_what_is_no_middleware(self) -> None:
        """Names must be known; an object must have some of them."""
        for wrong in (7, {"on_run_start": print}):
            with pytest.raises(TypeError, match="middleware"):
                request("x").with_middleware(wrong)
