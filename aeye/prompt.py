"""The declarative door: a template, a schema and tools make a ``Prompt``."""

from __future__ import annotations

import dataclasses
from collections import deque
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
    cast,
    overload,
)

from .call import Execution
from .callback import Bound, bind
from .context import Context, inside
from .decision import nest, where_it_waits
from .errors import AbortedError, IncompatibleError, PromptSuspend
from .event import CompleteEvent, PromptEvent, SuspendEvent
from .event_stream import (
    EventStream,
    PromptToolOutput,
    pick_nothing,
    pick_text,
    pick_tool_output,
)
from .loop import Run
from .message import Message, Part
from .output import Check
from .prompt_options import check_options, check_tools
from .recipe import Plan, Policy, Recipe
from .request import Request, ResponseFormat, SchemaDelivery, ToolDefinition
from .schema import Schema
from .template import Template
from .tools import Tool, fitting_name
from .usage import Usage
from .window import DEFAULT_MAX_OUTPUT, message_costs, trim

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .prompt_options import PromptOptions
    from .prompt_request import PromptRequest

__all__ = ["ASKED", "Prompt", "ask"]

T = TypeVar("T")

Mode = Literal["result", "tools", "stream", "stream_tools", "stream_content"]

# The arguments of a prompt or an agent that is a tool.
ASKED = {
    "type": "object",
    "properties": {
        "prompt": {"type": "string", "description": "What it is asked to do."}
    },
    "required": ["prompt"],
}
_MODES = ("result", "tools", "stream", "stream_tools", "stream_content")


@dataclass(frozen=True)
class _Offer:
    """What a run has but for its messages."""

    request: Request
    tools: Mapping[str, Tool[Any]]
    # What the system message says of the tools.
    instructions: str
    check: Check


class Prompt(Generic[T]):
    """A prompt: what to say, what to ask for, what may be called; *T* is the output.

    *content* is the system message, as a template; *user_turn* a first user message
    where the context has none. *input* makes the template's variables of what the
    caller gives. *schema* is the shape of the answer (a type, a JSON Schema, or a
    function of the input; None or False: text), *parse* makes something else of a
    checked shape, *validate* objects to a value by raising. *tools* are what the
    model may call. ``config`` gives fields of ``Request`` (a dict, or a function of
    the input). The functions may take further parameters by name: ``ctx``, ``input``.

    A Prompt holds no state of a run: one object serves any number of threads.

    Raises:
        TypeError, ValueError: an argument cannot be what it must be; the message
            names it, the value and the fix.
        TemplateError, SchemaError: *content* or *schema* is none.
    """

    kind: Literal["prompt"] = "prompt"

    if TYPE_CHECKING:

        @overload
        def __init__(
            self: Prompt[str],
            name: str,
            content: str | Template,
            *,
            schema: Literal[False] | None = None,
            **options: Unpack[PromptOptions],
        ) -> None: ...
        @overload
        def __init__(
            self,
            name: str,
            content: str | Template,
            *,
            schema: Any,
            parse: Callable[..., T],
            **options: Unpack[PromptOptions],
        ) -> None: ...
        @overload
        def __init__(
            self,
            name: str,
            content: str | Template,
            *,
            schema: type[T],
            **options: Unpack[PromptOptions],
        ) -> None: ...
        @overload
        def __init__(
            self: Prompt[Any],
            name: str,
            content: str | Template,
            *,
            schema: Any,
            **options: Unpack[PromptOptions],
        ) -> None: ...

    def __init__(  # noqa: PLR0913  # the public constructor's names are the contract
        self,
        name: str,
        content: str | Template,
        *,
        description: str = "",
        user_turn: str | Template | Literal[False] | None = None,
        input: Callable[..., Any] | None = None,
        schema: Any = None,
        parse: Callable[..., Any] | None = None,
        validate: Callable[..., Any] | None = None,
        strict: bool | float = 1,
        schema_delivery: SchemaDelivery = "auto",
        config: Any = None,
        reconfig: Callable[..., Any] | None = None,
        tools: Sequence[Tool[Any]] = (),
        tool_execution: Execution = "immediate",
        tool_concurrency: int = 32,
        tool_retries: int | None = None,
        tool_iterations: int = 3,
        tools_max: int | None = None,
        tools_only: bool = False,
        tools_complete: bool = True,
        output_retries: int | None = None,
        forget_retries: int | None = None,
        validation_error_max_length: int = 4096,
        retool: Any = None,
        dynamic: bool = False,
        exclude_messages: bool = False,
        on_tool_result: Callable[..., Any]
        | Mapping[str, Callable[..., Any]]
        | None = None,
        on_tool_intercept: Callable[..., Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        metadata_fn: Callable[..., Any] | None = None,
        applicable: Callable[..., Any] | None = None,
        runtime_schema_fallback: bool = True,
    ) -> None:
        given = {k: v for k, v in locals().items() if k != "self"}
        check_options(given)
        self._given = given
        self.name = name
        self.description = description
        self.strict = strict
        self.schema_delivery = schema_delivery
        self.tools: Tuple[Tool[Any], ...] = tuple(tools)
        self._template = content if isinstance(content, Template) else Template(content)
        self._user_turn: Any = (
            Template(user_turn) if isinstance(user_turn, str) else user_turn
        )
        what = f"prompt {name!r}: "
        names = ("ctx", "input")
        self._input = _bound(input, what + "input", names)
        self._schema = _source(schema, what + "schema")
        self._config = _source_of_dict(config, what + "config")
        self._retool = _source_of_dict(retool, what + "retool")
        self._metadata = dict(metadata or {})
        self._metadata_fn = _bound(metadata_fn, what + "metadata_fn", names)
        self._applicable = _bound(applicable, what + "applicable", ("ctx",))
        self._parse = _bound(parse, what + "parse", names)
        self._validate = _bound(validate, what + "validate", names)
        # Where nothing about it depends on the input or the context.
        self._fixed: Optional[_Offer] = self._fixed_offer()
        self._recipe = Recipe(
            name=name,
            resolve=self._resolve,
            metadata=self._call_metadata,
            forget=self.forget,
            execution=tool_execution,
            concurrency=tool_concurrency,
            tool_retries=tool_retries,
            tool_iterations=tool_iterations,
            tools_max=tools_max,
            tools_only=tools_only,
            tools_complete=tools_complete,
            output_retries=output_retries,
            forget_retries=forget_retries,
            error_max_length=validation_error_max_length,
            exclude_messages=exclude_messages,
            dynamic=dynamic,
            fallback=runtime_schema_fallback,
            reconfig=_bound(reconfig, what + "reconfig", ("ctx",)),
            intercept=_bound(
                on_tool_intercept, what + "on_tool_intercept", ("args", "ctx", "call")
            ),
            present=_presenter(on_tool_result, what + "on_tool_result"),
        )

    @property
    def content(self) -> str:
        """The template's text."""
        return self._template.text

    @property
    def schema(self) -> Schema | None:
        """The shape of the answer; None for text, or where it is a function."""
        return self._schema if isinstance(self._schema, Schema) else None

    def __repr__(self) -> str:
        tools = f", tools={[tool.name for tool in self.tools]}" if self.tools else ""
        return f"<Prompt {self.name}{tools}>"

    def replace(self, **changes: Any) -> Prompt[Any]:
        """Return a prompt like this one with *changes*, named as in the constructor."""
        return type(self)(**{**self._given, **changes})

    def __reduce__(self) -> Any:
        return _made, (type(self), self._given)

    def __call__(
        self, input: Any = None, ctx: Context | Mapping[str, Any] | None = None
    ) -> T:
        """Run the prompt and return its output.

        Raises:
            PromptError: there is none; the subclass says why.
            PromptSuspend: a tool call waits; its ``messages`` are where to resume.
            ProviderError: the model could not be asked.
        """
        run = self._run(input, ctx, streaming=False)
        ends = deque(run.events(), maxlen=1)
        last = ends[-1] if ends else None
        if isinstance(last, CompleteEvent):
            return cast("T", last.output)
        if isinstance(last, SuspendEvent):
            words = (run.waits_because,) if run.waits_because else ()
            raise PromptSuspend(
                *words, messages=last.request.messages, children=run.children
            )
        kind, why = (
            (IncompatibleError, "config or retool said that it does not fit here")
            if run.incompatible
            else (AbortedError, "the run was aborted")
        )
        raise kind(
            f"Prompt {self.name} has no result: {why}",
            prompt_name=self.name,
            messages=run.messages,
            usage=run.usage,
        )

    def run(
        self, input: Any = None, ctx: Context | Mapping[str, Any] | None = None
    ) -> EventStream[PromptEvent, T]:
        """Return the run's events; nothing happens until the first is read."""
        return EventStream(self._run(input, ctx), lambda event: event)

    @overload
    def get(
        self,
        mode: Literal["result"] = "result",
        input: Any = None,
        ctx: Context | Mapping[str, Any] | None = None,
    ) -> T | None: ...
    @overload
    def get(
        self,
        mode: Literal["tools"],
        input: Any = None,
        ctx: Context | Mapping[str, Any] | None = None,
    ) -> list[PromptToolOutput]: ...
    @overload
    def get(
        self,
        mode: Literal["stream"],
        input: Any = None,
        ctx: Context | Mapping[str, Any] | None = None,
    ) -> EventStream[PromptEvent, T]: ...
    @overload
    def get(
        self,
        mode: Literal["stream_tools"],
        input: Any = None,
        ctx: Context | Mapping[str, Any] | None = None,
    ) -> EventStream[PromptToolOutput, T]: ...
    @overload
    def get(
        self,
        mode: Literal["stream_content"],
        input: Any = None,
        ctx: Context | Mapping[str, Any] | None = None,
    ) -> EventStream[str, T]: ...
    def get(
        self,
        mode: str = "result",
        input: Any = None,
        ctx: Context | Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the prompt and return what *mode* asks for.

        ``"result"``: the output, or None when the run was suspended, aborted or does
        not fit the context. ``"tools"``: what the tools returned, in the order they
        finished; the run ends when the model stops calling them. ``"stream"``,
        ``"stream_tools"``, ``"stream_content"``: events, tool results, or pieces of
        text, as they come. A run that fails raises, in every mode.
        """
        if mode not in _MODES:
            raise ValueError(f"mode is one of {_MODES}, not {mode!r}")
        if mode == "stream":
            return self.run(input, ctx)
        if mode == "stream_tools":
            return EventStream(self._run(input, ctx), pick_tool_output)
        if mode == "stream_content":
            return EventStream(self._run(input, ctx), pick_text)
        only = mode == "tools"
        run = self._run(input, ctx, streaming=False, tools_only=only)
        pick = pick_tool_output if only else pick_nothing
        stream: EventStream[PromptToolOutput, T] = EventStream(run, pick)
        found = list(stream)
        return found if only else stream.output

    def applicable(self, ctx: Context | Mapping[str, Any] | None = None) -> bool:
        """Whether the prompt fits *ctx*: no ``config`` or ``retool`` says False."""
        ctx = Context.of(ctx)
        if self._applicable is not None:
            return bool(self._applicable(ctx, {"ctx": ctx}))
        named = {"ctx": ctx, "input": None}
        return not any(
            _ask(wish, None, named) is False for wish in (self._config, self._retool)
        )

    def metadata(
        self, input: Any = None, ctx: Context | Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Return the metadata: the fixed one, updated by ``metadata_fn``.

        Without arguments ``metadata_fn`` is not asked.
        """
        if input is None and ctx is None:
            return dict(self._metadata)
        return self._own_metadata(input, Context.of(ctx))

    def preview(
        self, input: Any = None, ctx: Context | Mapping[str, Any] | None = None
    ) -> Request:
        """Return the first request as it would be sent; the model is not asked.

        Raises:
            IncompatibleError: ``config`` or ``retool`` says False.
        """
        run = self._run(input, ctx)
        for event in run.events():
            if event.type == "request":
                return event.request
        raise IncompatibleError(
            f"Prompt {self.name} does not fit this context: config or retool said so",
            prompt_name=self.name,
        )

    def start(self, input: Any, ctx: Context, policy: Policy) -> Run:
        """Return a run under *policy*, not begun: every door makes its runs here."""
        return Run(self._recipe, {} if input is None else input, ctx, policy)

    def request(
        self, input: Any = None, ctx: Context | Mapping[str, Any] | None = None
    ) -> PromptRequest[T]:
        """Return a request for one run, to be set up by chained calls.

        The last of the context's messages is its prompt, the others are history.
        """
        from .conduct import Settings
        from .prompt_request import PromptRequest

        ctx = Context.of(ctx)
        return PromptRequest(
            self.start,
            input,
            ctx.replace(messages=()),
            messages=ctx.messages,
            settings=Settings(
                agent_id=self.name,
                agent_name=self.name,
                agent_description=self.description or None,
            ),
        )

    def resume(
        self,
        messages: Sequence[Message] | PromptSuspend | SuspendEvent,
        decisions: Mapping[str, Any],
        input: Any = None,
        ctx: Context | Mapping[str, Any] | None = None,
    ) -> T:
        """Go on where a run waits, and return its output as calling the prompt does.

        *messages* is the ``PromptSuspend``, the ``suspend`` event, or the messages of
        either. *decisions* say for each call that waits, by its id: True to run it
        with the arguments it has, a text to refuse it, or ``Result(value)`` to answer
        it; ``"a/b"`` is the call ``b`` of a run inside the call ``a``. Calls that
        nothing was said about go on waiting. For the events, ``run`` with both on the
        context does the same.
        """
        saved, children = where_it_waits(messages)
        said = nest(decisions, children)
        return self(input, Context.of(ctx).replace(messages=saved, decisions=said))

    def as_tool(
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        schema: Any = None,
    ) -> Tool[T]:
        """Return a tool that runs this prompt; its output is the result.

        *schema* is the shape of the input, which the model then gives. Without one
        the tool takes a text, which is said to the prompt. The run gets the context
        of the run around it without that one's messages; where it waits, both do.
        """

        def run(given: Any, ctx: Context) -> T:
            said = [] if schema is not None else [Message("user", given["prompt"])]
            # Without decisions it begins; else it goes on where it waited.
            own = ctx.replace(messages=said) if ctx.decisions is None else ctx
            return self(None if schema is None else given, inside(own, ctx))

        return Tool(
            name or fitting_name(self.name),
            run,
            description=description or self.description,
            schema=ASKED if schema is None else schema,
        )

    def forget(
        self, request: Request, ctx: Context, usage: Usage | None
    ) -> Sequence[Message]:
        """Return the messages of *request* that may stay; override to summarise.

        Called before the first request of a run that was given messages, and when
        the model's window was exceeded. Whole groups go, oldest first; what was asked
        and the last correction of an answer stay: see ``window.trim``. Calls and
        replies that an override tears apart are mended.
        """
        messages = request.messages
        window = ctx.context_window or (usage.total_tokens if usage else 0)
        if not window:
            return messages
        ask_cost = ctx.bound("estimate_usage")
        estimate = None if ask_cost is None else (lambda m: ask_cost(m, {}))
        costs = message_costs(messages, estimate, usage)
        if costs is None:
            return messages
        spare = request.max_tokens or ctx.max_output_tokens or DEFAULT_MAX_OUTPUT
        return trim(messages, costs, window - spare, ctx.messages)

    def _run(
        self,
        input: Any,
        ctx: Context | Mapping[str, Any] | None,
        *,
        streaming: bool = True,
        tools_only: bool = False,
    ) -> Run:
        if isinstance(input, Context):
            raise TypeError(
                f"prompt {self.name!r}: the first argument is the input, the second "
                "the context: give {} where there is no input"
            )
        run = self.start(input, Context.of(ctx), Policy())
        run.streaming = streaming
        if tools_only:
            run.recipe = dataclasses.replace(run.recipe, tools_only=True)
        return run

    def _own_metadata(self, input: Any, ctx: Context) -> Dict[str, Any]:
        found = dict(self._metadata)
        if self._metadata_fn is not None:
            named = {"ctx": ctx, "input": input}
            found.update(self._metadata_fn(input, named) or {})
        return found

    def _call_metadata(self, input: Any, ctx: Context) -> Mapping[str, Any]:
        return {**ctx.metadata, **self._own_metadata(input, ctx)}

    def _resolve(self, input: Any, ctx: Context) -> Plan | None:
        """Ask the user's functions what this run is; None where it cannot be."""
        named = {"ctx": ctx, "input": input}
        offer = self._fixed or self._offer(input, ctx, named)
        if offer is None:
            return None
        made = input if self._input is None else self._input(input, named)
        variables = _variables(input if made is None else made)
        if offer.tools:
            variables["tools"] = offer.instructions
        content = self._template.render(variables)
        if offer.instructions and not self._template.mentions("tools"):
            content += f"\n\n<tools>\n{offer.instructions}\n</tools>"
        turn = self._user_turn
        if isinstance(turn, Template):
            turn = turn.render(variables)
        return Plan(
            offer.request,
            system=(Message("system", content),) if content else (),
            tools=offer.tools,
            check=offer.check,
            user_turn="" if turn is False else turn,
        )

    def _offer(
        self, input: Any, ctx: Context, named: Mapping[str, Any]
    ) -> _Offer | None:
        config = _ask(self._config, input, named)
        schema = _as_schema(_ask(self._schema, input, named))
        wish = _ask(self._retool, input, named)
        if config is False or wish is False:
            return None
        offered = []
        for tool in self._chosen(wish):
            made = tool.compile(ctx) if tool.applicable(ctx) else None
            if made is not None:
                offered.append((tool, *made))
        return self._offer_of(config, schema, offered)

    def _fixed_offer(self) -> _Offer | None:
        tools = [(tool, tool.fixed) for tool in self.tools]
        asks = (self._config, self._retool, self._schema)
        if any(callable(it) and not isinstance(it, Schema) for it in asks):
            return None
        if self._config is False or self._retool is not None:
            return None
        offered = [(tool, *made) for tool, made in tools if made is not None]
        if len(offered) < len(tools):
            return None
        return self._offer_of(self._config, _as_schema(self._schema), offered)

    def _offer_of(
        self,
        config: Any,
        schema: Schema | None,
        offered: Sequence[Tuple[Tool[Any], str, ToolDefinition]],
    ) -> _Offer:
        shape: Union[Literal["text"], ResponseFormat] = "text"
        if schema is not None:
            shape = ResponseFormat(
                schema, strict=self.strict, schema_delivery=self.schema_delivery
            )
        request = Request(
            name=self.name,
            tools=tuple(definition for _, _, definition in offered),
            response_format=shape,
        )
        if config:
            ours = ("messages", "tools", "response_format")
            said = {k: v for k, v in config.items() if k not in ours}
            request = request.with_config(said)
        return _Offer(
            request,
            tools={tool.name: tool for tool, _, _ in offered},
            instructions="\n\n".join(text for _, text, _ in offered if text),
            check=Check(schema, self._parse if schema else None, self._validate),
        )

    def _chosen(self, wish: Any) -> Sequence[Tool[Any]]:
        """Return the tools that ``retool`` asks for: ours by name, then its own."""
        if wish is None:
            return self.tools
        names = [item for item in wish if isinstance(item, str)]
        unknown = sorted(set(names) - {tool.name for tool in self.tools})
        if unknown:
            raise ValueError(
                f"prompt {self.name!r}: retool asks for {unknown!r}; the tools are "
                f"{[tool.name for tool in self.tools]}"
            )
        own = [item for item in wish if not isinstance(item, str)]
        chosen = [*(tool for tool in self.tools if tool.name in names), *own]
        check_tools(chosen, f"prompt {self.name!r}: retool")
        return chosen


@overload
def ask(
    text: str,
    ctx: Context | Mapping[str, Any] | None = None,
    *,
    schema: Literal[False] | None = None,
    tools: Sequence[Tool[Any]] = (),
    files: Iterable[Any] = (),
) -> str: ...
@overload
def ask(
    text: str,
    ctx: Context | Mapping[str, Any] | None = None,
    *,
    schema: type[T],
    tools: Sequence[Tool[Any]] = (),
    files: Iterable[Any] = (),
) -> T: ...
@overload
def ask(
    text: str,
    ctx: Context | Mapping[str, Any] | None = None,
    *,
    schema: Any,
    tools: Sequence[Tool[Any]] = (),
    files: Iterable[Any] = (),
) -> Any: ...
def ask(
    text: str,
    ctx: Context | Mapping[str, Any] | None = None,
    *,
    schema: Any = None,
    tools: Sequence[Tool[Any]] = (),
    files: Iterable[Any] = (),
) -> Any:
    """Ask a model once: *text* is the user's message as it is, no template.

    *files* are paths, URLs or ``Part`` values, sent beside the text.

    Raises:
        PromptError, ProviderError: as calling a ``Prompt``.
    """
    ctx = Context.of(ctx)
    if isinstance(files, (str, bytes)):
        raise TypeError(f"files is a list of paths, URLs or Parts, not {files!r:.80}")
    parts = [_part(file) for file in files]
    content = text if not parts else (Part.text(text), *parts)
    prompt: Prompt[Any] = Prompt("ask", "", schema=schema, tools=tools)
    said = Message("user", content)
    return prompt(None, ctx.replace(messages=(*ctx.messages, said)))


def _part(file: Any) -> Part:
    """Return *file* as a part, its kind by the name's ending."""
    if isinstance(file, Part):
        return file
    import mimetypes

    kind, _ = mimetypes.guess_type(str(file))
    family = (kind or "").partition("/")[0]
    if family == "image":
        make = Part.image
    elif family == "audio":
        make = Part.audio
    else:
        make = Part.file
    if isinstance(file, str) and "://" not in file and not file.startswith("data:"):
        from pathlib import Path

        file = Path(file)
    return make(file, kind)


def _made(cls: type[Prompt[Any]], given: Dict[str, Any]) -> Prompt[Any]:
    return cls(**given)


def _bound(
    fn: Callable[..., Any] | None, what: str, names: Iterable[str]
) -> Bound | None:
    return None if fn is None else bind(fn, what, names)


def _source(schema: Any, what: str) -> Any:
    """Return a Schema, a function of the input, or None for text."""
    if schema is None or schema is False:
        return None
    if callable(schema) and hasattr(schema, "__code__"):
        return bind(schema, what, ("ctx", "input"))
    return schema if isinstance(schema, Schema) else Schema(schema)


def _source_of_dict(value: Any, what: str) -> Any:
    """Return a value, or a function of the input, bound."""
    return bind(value, what, ("ctx", "input")) if callable(value) else value


def _presenter(given: Any, what: str) -> Any:
    names = ("ctx", "input")[:1]
    if isinstance(given, Mapping):
        return {k: bind(fn, f"{what}[{k!r}]", names) for k, fn in given.items()}
    return _bound(given, what, names)


def _ask(value: Any, input: Any, named: Mapping[str, Any]) -> Any:
    if callable(value) and not isinstance(value, Schema):
        return value(input, named)
    return value


def _as_schema(source: Any) -> Schema | None:
    """Return the schema of a structured answer, or None where it is text."""
    if source is None or source is False:
        return None
    schema = source if isinstance(source, Schema) else Schema(source)
    return None if schema.is_text else schema


def _variables(data: Any) -> Dict[str, Any]:
    """Return the template's variables as a dict of our own."""
    if isinstance(data, Mapping):
        return dict(data)
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        return {f.name: getattr(data, f.name) for f in dataclasses.fields(data)}
    if hasattr(data, "_asdict"):
        return dict(data._asdict())
    if hasattr(data, "__dict__"):
        return dict(vars(data))
    raise TypeError(
        f"input is a dict or an object whose attributes are the template's "
        f"variables, not {data!r:.80}; an 'input' function can make one of it"
    )
