"""Middleware of the fluent door: functions that what passes goes through.

Middleware is a class derived from ``AgentMiddleware``, any object with some of its
methods, or a dict of functions. It is no onion: all are asked left to right, for what
goes to the model and for what comes back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from .call import Call, to_content
from .callback import Bound
from .hooks import ToolCallArgs, ToolResultArgs, bind_callbacks, names_of
from .message import Part
from .request import Request
from .response import Response

__all__ = [
    "AgentMiddleware",
    "CompletionRequestArgs",
    "MiddlewareResponseArgs",
    "Pipeline",
    "ToolInputArgs",
    "ToolMiddleware",
    "ToolOutputArgs",
    "bind_middleware",
    "text_of",
]


@dataclass(frozen=True)
class CompletionRequestArgs:
    """A request on its way to the model."""

    turn: int
    # As the middleware before this one left it.
    request: Request
    original_request: Request


@dataclass(frozen=True)
class MiddlewareResponseArgs:
    """A response on its way from the model."""

    turn: int
    # As it was sent.
    request: Request
    # As the middleware before this one left it.
    response: Response
    original_response: Response


@dataclass(frozen=True)
class ToolInputArgs:
    """Arguments on their way to a tool, as JSON text."""

    turn: int
    tool_name: str
    tool_call_id: str
    internal_call_id: str
    args: str
    original_args: str


@dataclass(frozen=True)
class ToolOutputArgs(ToolInputArgs):
    """A result on its way to the model."""

    result: str
    original_result: str
    # The value that the text spells, where it is no text.
    structured_result: Any = None
    original_structured_result: Any = None


class AgentMiddleware:
    """Functions that what passes goes through, in order; override some.

    The agent's come first, then the request's, each seeing what the one before left.
    None keeps what is there. One that raises fails the run.
    """

    def on_completion_request(
        self, args: CompletionRequestArgs
    ) -> Request | Mapping[str, Request] | None:
        """Return the request to send. The run's messages do not change by it."""

    def on_completion_response(
        self, args: MiddlewareResponseArgs
    ) -> Response | Mapping[str, Response] | None:
        """Return the response to go on with; a stream's text waits for it."""

    def on_tool_input(self, args: ToolInputArgs) -> Any:
        """Return other arguments: JSON text, any JSON value, or ``{"args": …}``."""

    def on_tool_output(self, args: ToolOutputArgs) -> Any:
        """Return another result: text, or a dict.

        Of the dict, ``result`` is a text and ``structured_result`` a JSON value; one
        without the other replaces both.
        """


class ToolMiddleware(AgentMiddleware):
    """The older form, with ``on_result(args) -> str | None``; see AgentMiddleware."""

    def on_result(self, args: ToolOutputArgs) -> str | None:
        """Return another text; asked right after this object's ``on_tool_output``."""


def bind_middleware(middleware: object) -> Mapping[str, Bound]:
    """Return the callbacks that *middleware* has, by name.

    Raises:
        TypeError: it has none, a name that middleware does not have, or an
            ``async def``.
    """
    known = (*names_of(AgentMiddleware), "on_result")
    return bind_callbacks(middleware, ToolMiddleware, "middleware", (), known)


class Pipeline:
    """The middleware of one run, in order."""

    def __init__(self, stages: Sequence[Mapping[str, Bound]]) -> None:
        self._stages = stages

    def has(self, name: str) -> bool:
        """Whether any of it has the callback *name*."""
        return any(name in stage for stage in self._stages)

    def request(self, turn: int, request: Request) -> Request:
        """Return the request to send."""
        original = request
        for fn in self._named("on_completion_request"):
            said = fn(CompletionRequestArgs(turn, request, original), {})
            request = _replacement(said, request, "request", Request)
        return request

    def response(self, turn: int, request: Request, response: Response) -> Response:
        """Return the response to go on with."""
        original = response
        for fn in self._named("on_completion_response"):
            args = MiddlewareResponseArgs(turn, request, response, original)
            response = _replacement(fn(args, {}), response, "response", Response)
        return response

    def arguments(self, about: ToolCallArgs) -> str:
        """Return the arguments to use, as JSON text."""
        args = about.args
        for fn in self._named("on_tool_input"):
            known = {**vars(about), "args": args}
            args = _arguments(
                fn(ToolInputArgs(**known, original_args=about.args), {}), args
            )
        return args

    def result(
        self, call: Call, about: ToolCallArgs, original_args: str
    ) -> ToolResultArgs:
        """Return what the model reads; it is noted on *call*."""
        text = original = text_of(call.reply)
        value: Any = None if isinstance(call.to_model, str) else call.to_model
        original_value = value
        for fn in self._named("on_tool_output", "on_result"):
            args = ToolOutputArgs(
                **vars(about),
                original_args=original_args,
                result=text,
                original_result=original,
                structured_result=value,
                original_structured_result=original_value,
            )
            text, value = _result(fn(args, {}), text, value)
        if text != original:
            call.reply, call.to_model = text, text if value is None else value
        return ToolResultArgs(
            **vars(about),
            result=text,
            structured_result=value,
            skipped=call.status == "not_run",
        )

    def _named(self, *names: str) -> Sequence[Bound]:
        if not self._stages:
            return ()
        return [stage[n] for stage in self._stages for n in names if n in stage]


def text_of(content: Any) -> str:
    """Return a message's content as text: parts of text by lines, others as JSON."""
    if isinstance(content, str):
        return content
    parts: Sequence[Part] = content
    return "\n".join(
        str(part.data) if part.type == "text" else json.dumps(part.to_dict())
        for part in parts
    )


def _replacement(said: Any, current: Any, name: str, kind: type) -> Any:
    """Return what middleware made of *current*: a bare value, or a one-key record."""
    if isinstance(said, Mapping) and set(said) == {name}:
        said = said[name]
    if said is None:
        return current
    if not isinstance(said, kind):
        raise TypeError(
            f"middleware on_completion_{name} returns None or a {kind.__name__}, "
            f"not {said!r:.80}"
        )
    return said


def _arguments(said: Any, current: str) -> str:
    if isinstance(said, Mapping) and set(said) == {"args"}:
        said = said["args"]
    if said is None:
        return current
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


def _result(said: Any, text: str, value: Any) -> tuple[str, Any]:
    """Return the text and the value that output middleware left."""
    if said is None:
        return text, value
    if isinstance(said, str):
        return said, None
    keys = {"result", "structured_result"}
    if not isinstance(said, Mapping) or not said or set(said) - keys:
        raise TypeError(
            "middleware on_tool_output returns None, a text or a dict with some of "
            f"{sorted(keys)}, not {said!r:.80}"
        )
    value = said.get("structured_result")
    if "result" not in said:
        return text_of(to_content(value)), value
    if not isinstance(said["result"], str):
        raise TypeError(
            "middleware on_tool_output: result is the text that the model reads, not "
            f"{said['result']!r:.80}; other values are for structured_result"
        )
    return said["result"], value
