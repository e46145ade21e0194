"""The offline model: it answers from the request's own tools and schema.

It shows whether a prompt is wired up, without a network or a key. It knows nothing:
it calls each tool that it is offered once, with arguments made up to fit the tool's
schema, and then answers with a value made up to fit the output schema, or with text
that says what it is. The same request and seed give the same answer.

What was called already, and how many wrong answers were given, it reads from the
messages, so that one rehearsal serves any number of runs and threads.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterator, List, Optional

from .context import Context
from .decode import decode_wire, encode_wire
from .delivery import apply_plan
from .descriptor import (
    FormatDescriptor,
    get_descriptor_by_id,
    has_descriptor_family,
)
from .errors import SchemaError
from .message import ToolCall
from .request import Request, ResponseFormat, ToolDefinition
from .response import Chunk, Response, ToolCallDelta
from .sampling import sample
from .schema import Schema, parse_json
from .usage import Usage
from .wire import ModelFacts

__all__ = ["Rehearsal", "connect_rehearsal"]

# A piece of streamed text: a word with the space after it, in short lengths.
_PIECE = re.compile(r"\S{1,12}\s*|\s+")
# A schema that was sent as text in the system message.
_AS_TEXT = re.compile(r"conforming to this schema.*?```json\n(.*?)\n```", re.DOTALL)


@dataclass(frozen=True)
class Rehearsal:
    """A model that only pretends. ``prepare``, ``execute`` and ``stream`` as usual."""

    # The family of dialects it is spoken to in: "openai", "anthropic", …
    target: str = "lenient"
    seed: int = 0
    # How many answers to a request for a value are wrong before one is right.
    mistakes: int = 0
    # Seconds before each streamed chunk.
    delay: float = 0.0

    def __post_init__(self) -> None:
        if not has_descriptor_family(self.target):
            raise ValueError(
                f"target is the family of a dialect, such as 'openai', 'anthropic', "
                f"'google', 'xai' or 'lenient', not {self.target!r}"
            )
        for name in ("mistakes", "delay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is not negative, as {getattr(self, name)} is")

    @property
    def model(self) -> str:
        """The name that its responses bear."""
        return f"rehearsal:{self.target}"

    def context(self, **fields: Any) -> Context:
        """Return a Context that asks this model; *fields* are the Context's."""
        for name in ("prepare", "execute", "stream"):
            fields.setdefault(name, getattr(self, name))
        return Context(**fields)

    def prepare(self, request: Request, ctx: Any = None) -> Request:
        """Choose the dialect of each tool and of the output, as for a real model."""
        facts = ModelFacts(self.target, strict_output=True, strict_tools=True)
        return apply_plan(request, facts)

    def execute(self, request: Request, ctx: Any = None) -> Response:
        """Answer whole.

        Raises:
            SchemaError: a tool or the output asks for what cannot be made up;
                ``error.path`` says what, and ``examples`` there are the way out.
        """
        calls = self._calls(request)
        text = "" if calls else self._text(request)
        written = text + "".join(call.arguments for call in calls)
        return Response(
            text,
            calls,
            finish_reason="tool_calls" if calls else "stop",
            usage=Usage.of(input=_tokens(_heard(request)), output=_tokens(written)),
            model=self.model,
        )

    def stream(self, request: Request, ctx: Any = None) -> Iterator[Chunk]:
        """Answer in small pieces, and raise what ``execute`` does."""
        response = self.execute(request, ctx)
        for chunk in _pieces(response):
            self._wait(ctx)
            yield chunk

    def _wait(self, ctx: Any) -> None:
        if not self.delay:
            return
        signal = getattr(ctx, "signal", None)
        wait = getattr(signal, "wait", time.sleep)
        wait(self.delay)

    def _calls(self, request: Request) -> tuple[ToolCall, ...]:
        """Return the calls to make now: of the tools that were not called yet."""
        made = [call for message in request.messages for call in message.tool_calls]
        called = {call.name for call in made}
        tools = [tool for tool in request.tools if tool.name not in called]
        choice = request.tool_choice
        if choice == "none":
            return ()
        if isinstance(choice, dict):
            tools = [tool for tool in request.tools if tool.name == choice["tool"]]
        elif choice == "required" and not tools:
            tools = list(request.tools[:1])
        if request.tools_one_at_a_time:
            tools = tools[:1]
        return tuple(
            ToolCall(
                f"call_{len(made) + n}",
                tool.name,
                arguments=self._arguments(tool),
                descriptor=tool.descriptor,
            )
            for n, tool in enumerate(tools, 1)
        )

    def _arguments(self, tool: ToolDefinition) -> str:
        what = f"tool {tool.name!r}"
        value = _made(tool.parameters, tool.descriptor, what, self.seed)
        return json.dumps(value, ensure_ascii=False)

    def _text(self, request: Request) -> str:
        schema, descriptor = _wanted(request)
        if schema is None:
            return _report(request)
        answers = [
            message.text
            for message in request.messages
            if message.role == "assistant" and not message.tool_calls
        ]
        right = sum(_fits(schema, text, descriptor) for text in answers)
        # What fits and is asked for again was refused for another reason: vary it.
        value = _made(schema, descriptor, "the output", self.seed + right)
        if len(answers) - right < self.mistakes:
            return _mistaken(schema, value, descriptor)
        return json.dumps(value, ensure_ascii=False)


def connect_rehearsal(
    target: str = "lenient",
    *,
    seed: int = 0,
    mistakes: int = 0,
    delay: float = 0.0,
    **context: Any,
) -> Context:
    """Return a Context whose model is a ``Rehearsal``; *context* are its fields.

    Raises:
        ValueError: *target* is no family of dialects, or a number is negative.
    """
    model = Rehearsal(target, seed=seed, mistakes=mistakes, delay=delay)
    return model.context(**context)


def _made(schema: Schema, descriptor: str | None, what: str, seed: int) -> Any:
    """Return a value for *schema* as it is written in the dialect *descriptor*."""
    try:
        value = sample(schema, seed=seed)
    except SchemaError as exc:
        raise SchemaError(f"{what}: {exc.message}", path=exc.path) from exc
    dialect = _dialect(descriptor)
    return value if dialect is None else encode_wire(schema, value, dialect)


def _dialect(descriptor: str | None) -> FormatDescriptor | None:
    return None if descriptor is None else get_descriptor_by_id(descriptor)


def _wanted(request: Request) -> tuple[Schema | None, str | None]:
    """Return the schema of the answer and its dialect, where one was asked for."""
    wanted = request.response_format
    if isinstance(wanted, ResponseFormat):
        return wanted.schema, wanted.descriptor
    found = _AS_TEXT.search(request.system)
    if found is None:
        return None, None
    try:
        return Schema(json.loads(found.group(1))), None
    except ValueError:
        return None, None


def _fits(schema: Schema, text: str, descriptor: str | None) -> bool:
    """Whether an answer's *text* is a value of *schema*."""
    try:
        value = parse_json(text)
    except ValueError:
        return False
    dialect = _dialect(descriptor)
    if dialect is not None:
        value = decode_wire(schema, value, dialect)
    return next(iter(schema.find(value)), None) is None


def _mistaken(schema: Schema, value: Any, descriptor: str | None) -> str:
    """Return *value* with one thing wrong with it."""
    for wrong in _slips(value):
        text = json.dumps(wrong, ensure_ascii=False)
        if not _fits(schema, text, descriptor):
            return text
    return "This rehearsal was asked to make a mistake: here is no JSON."


def _slips(value: Any) -> Iterator[Any]:
    """Yield copies of *value*, each with one part of the wrong type or missing."""
    if isinstance(value, list):
        for i, item in enumerate(value[:3]):
            yield from ([*value[:i], slip, *value[i + 1 :]] for slip in _slips(item))
    elif isinstance(value, dict):
        # The scalars first: their mistakes are the easiest to read.
        keys = sorted(value, key=lambda key: isinstance(value[key], (str, list, dict)))
        for key in keys:
            yield from ({**value, key: slip} for slip in _slips(value[key]))
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
    elif isinstance(value, str):
        yield 12345
    elif value is not None:
        yield "not sure" if isinstance(value, bool) else "not a number"


def _report(request: Request) -> str:
    """Say what this is, and what was heard."""
    said = ["This is a rehearsal: no model was asked."]
    if request.system:
        said.append(f"The prompt begins: {_short(request.system)}")
    users = [m.text for m in request.messages if m.role == "user"]
    if users:
        said.append(f"The last message is: {_short(users[-1])}")
    names: Dict[Optional[str], str] = {}
    for message in request.messages:
        names.update((call.id, call.name) for call in message.tool_calls)
        if message.role == "tool":
            name = names.get(message.tool_call_id, "A tool")
            said.append(f"{name} returned: {_short(message.text)}")
    return "\n".join(said)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return f'"{line[:79]}…"' if len(line) > 80 else f'"{line}"'


def _heard(request: Request) -> str:
    said: List[str] = []
    for message in request.messages:
        said.append(message.text)
        said += (call.arguments for call in message.tool_calls)
    return "".join(said)


def _tokens(text: str) -> int:
    # Nobody counts here; four characters a token is the usual rule of thumb.
    return -(-len(text) // 4)


def _pieces(response: Response) -> Iterator[Chunk]:
    for piece in _PIECE.findall(response.content):
        yield Chunk(piece)
    for call in response.tool_calls:
        yield Chunk(tool_call_named=replace(call, arguments=""))
        for piece in _PIECE.findall(call.arguments):
            yield Chunk(
                tool_call_arguments=ToolCallDelta(call.id, call.name, arguments=piece)
            )
        yield Chunk(tool_call=call)
    yield Chunk(
        finish_reason=response.finish_reason,
        usage=response.usage,
        model=response.model,
    )
