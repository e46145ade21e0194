"""A function that a model may call: its schema, its instructions, its arguments' check.

``@tool`` makes a ``Tool`` of a typed function; ``Tool(…)`` says everything by hand.
A Tool is a value: it holds no state of a run and may be shared by prompts and
threads.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from dataclasses import dataclass, fields
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generic,
    Iterable,
    Literal,
    Mapping,
    Optional,
    Tuple,
    TypeVar,
    Union,
    get_args,
    overload,
)

from .callback import Bound, ask, bind, is_context, refuse_async, words
from .context import Context
from .decode import decode_wire
from .descriptor import FormatDescriptor, get_descriptor_by_id
from .errors import ToolArgumentError
from .message import ToolCall
from .request import ToolDefinition
from .schema import Finding, Schema, docstring_parts, parse_json, type_hints
from .template import Template

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class ToolOptions(TypedDict, total=False):
        """What ``@tool`` takes besides the function."""

        name: str
        description: str | Callable[..., str | None]
        instructions: str | Callable[..., str | None]
        input: Callable[..., Any]
        schema: Any
        strict: bool | float
        parse: Callable[..., Any]
        validate: Callable[..., Any]
        max_args_length: int
        applicable: Callable[..., Any]
        approval: Any
        inline: bool
        timeout: float
        on_error: Literal["report", "raise"]
        metadata: Any


__all__ = [
    "RepairAttempt",
    "Tool",
    "ToolApproval",
    "find_issues",
    "fitting_name",
    "natural_arguments",
    "tool",
]

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNSET: Any = object()


@dataclass(frozen=True)
class RepairAttempt:
    """Fields that arrived as text with JSON in it, and whether that was mended."""

    fields: Tuple[str, ...]
    success: bool


@dataclass(frozen=True)
class ToolApproval:
    """When a call needs somebody's consent, and what is said about it.

    Each may be a function of the checked arguments, which may take ``ctx`` too; the
    texts are asked for only when consent is needed. None of it is shown to the model
    but *reject_message*, where consent is refused.
    """

    when: Union[bool, Callable[..., Any]] = True
    reason: Union[str, Callable[..., Optional[str]], None] = None
    reject_message: Union[str, Callable[..., Optional[str]], None] = None

    def __post_init__(self) -> None:
        # What is neither might mean that nobody is asked.
        if not isinstance(self.when, bool) and not callable(self.when):
            raise TypeError(f"when is True, False or a function, not {self.when!r:.80}")


class Tool(Generic[T]):
    """What a model may call; *T* is what the function returns.

    *call* gets the checked arguments: a dict, or whatever *schema* or *parse* makes
    of them; a further parameter named ``ctx`` gets the context. *description*,
    *instructions*, *schema* and *metadata* may be functions of the context; a schema
    function that gives None takes the tool out of the run. *instructions* is
    literal text; with *input*, a function of the context that gives its variables,
    it is a template. *approval* is True, a function of the checked arguments that
    says whether somebody must consent, or a ``ToolApproval``.

    Raises:
        TypeError, ValueError: an argument cannot be what it must be; the message
            names it.
        SchemaError: *schema* is none.
    """

    kind: Literal["tool"] = "tool"

    def __init__(  # noqa: PLR0913  # the public constructor's names are the contract
        self,
        name: str,
        call: Callable[..., T],
        *,
        schema: Any,
        description: str | Callable[..., str | None] = "",
        instructions: str | Callable[..., str | None] = "",
        input: Callable[..., Any] | None = None,
        strict: bool | float = 1,
        parse: Callable[..., Any] | None = None,
        validate: Callable[..., Any] | None = None,
        max_args_length: int | None = None,
        applicable: Callable[..., Any] | None = None,
        approval: Any = None,
        inline: bool = False,
        timeout: float | None = None,
        on_error: Literal["report", "raise"] = "report",
        metadata: Any = None,
    ) -> None:
        _check(locals())
        self.name = name
        self.call = call
        self.strict = strict
        self.max_args_length = max_args_length
        # None: never asked for.
        self.approval = _approval(approval, f"tool {name!r}: approval")
        self.inline = inline
        self.timeout = timeout
        self.on_error = on_error
        what = f"tool {name!r}: "
        self._spread = call if isinstance(call, _Spread) else None
        self._call = bind(call, what + "call", ("ctx",))
        self._description = _maybe(description, what + "description")
        self._instructions = _maybe(instructions, what + "instructions")
        self._metadata = _maybe({} if metadata is None else metadata, what + "metadata")
        self._input = _bound(input, what + "input")
        self._parse = _bound(parse, what + "parse")
        self._validate = _bound(validate, what + "validate")
        self._applicable = _bound(applicable, what + "applicable")
        self._schema: Union[Bound, Schema, None] = _schema(schema, what + "schema")
        self._fixed = self._compile_fixed()
        self.__doc__ = description if isinstance(description, str) else None
        self.__name__ = name

    @property
    def description(self) -> str:
        """The description, where it is not a function of the context."""
        return "" if callable(self._description) else str(self._description or "")

    @property
    def schema(self) -> Schema | None:
        """The schema of the arguments, where it is not a function of the context."""
        return self._schema if isinstance(self._schema, Schema) else None

    @property
    def fixed(self) -> tuple[str, ToolDefinition] | None:
        """What ``compile`` gives in every context; None where the context has a say."""
        return self._fixed if self._applicable is None else None

    def __call__(self, *args: Any, **kwargs: Any) -> T:
        """Call the function as it was before it became a tool."""
        return self.call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def __reduce__(self) -> Any:
        # A decorated function is found under its name in its module, as this Tool.
        fn = self._spread.fn if self._spread else self.call
        module, name = getattr(fn, "__module__", ""), getattr(fn, "__qualname__", "")
        if _look_up(module, name) is self:
            return _look_up, (module, name)
        return super().__reduce__()

    def __getstate__(self) -> Any:
        raise TypeError(
            f"tool {self.name!r} cannot be pickled: it is not a module-level @tool"
        )

    def __copy__(self) -> Tool[T]:
        return self

    def __deepcopy__(self, memo: Any) -> Tool[T]:
        return self  # a value: nothing in it changes

    def compile(self, ctx: Context) -> tuple[str, ToolDefinition] | None:
        """Return the instructions and the definition for *ctx*, or None without one."""
        if self._fixed is not None:
            return self._fixed
        schema = self._schema_for(ctx)
        if schema is None:
            return None
        text = str(self._ask(self._instructions, ctx) or "")
        if text and self._input is not None:
            text = Template(text).render(self._input(ctx, {"ctx": ctx}) or {})
        description = str(self._ask(self._description, ctx) or "")
        return text, ToolDefinition(self.name, description, schema, strict=self.strict)

    def applicable(self, ctx: Context | Mapping[str, Any] | None = None) -> bool:
        """Whether the tool may be offered in *ctx*."""
        ctx = Context.of(ctx)
        if self._applicable is not None:
            return bool(self._applicable(ctx, {"ctx": ctx}))
        return self._schema_for(ctx) is not None

    def metadata(self, ctx: Context | Mapping[str, Any] | None = None) -> Any:
        """Return the metadata; where it is a function, what that gives for *ctx*."""
        return self._ask(self._metadata, Context.of(ctx))

    def needs_approval(self, value: Any, ctx: Context) -> ToolApproval | None:
        """Return what to say where a call with checked *value* needs consent."""
        if self.approval is None or not _told(self.approval.when, value, ctx):
            return None
        return ToolApproval(
            reason=_told(self.approval.reason, value, ctx),
            reject_message=_told(self.approval.reject_message, value, ctx),
        )

    def parse(
        self,
        ctx: Context,
        arguments: str,
        schema: Schema | None = None,
        descriptor: FormatDescriptor | str | None = None,
        on_repair: Callable[[RepairAttempt], Any] | None = None,
    ) -> Any:
        """Check a model's *arguments* and return what the function is called with.

        *schema* defaults to the tool's own. With a *descriptor* the arguments are
        first brought back from that dialect. Fields that arrived as JSON inside a
        string are taken apart, after the plain reading has failed.

        Raises:
            ToolArgumentError: they do not fit; the message is for the model.
        """
        if self.max_args_length is not None and len(arguments) > self.max_args_length:
            raise self._bad(
                f"the arguments are {len(arguments)} characters long and exceeded the "
                f"configured size limit of {self.max_args_length}"
            )
        schema = schema or self._schema_for(ctx)
        if schema is None:
            raise self._bad(
                f"Not able to build a schema to parse arguments for {self.name}"
            )
        try:
            value = parse_json(arguments if arguments.strip() else "{}")
        except ValueError as exc:
            raise self._bad(str(exc)) from exc
        if descriptor is not None:
            if isinstance(descriptor, str):
                descriptor = get_descriptor_by_id(descriptor)
            value = decode_wire(schema, value, descriptor)
        if self._parse is not None:
            value = self._custom(self._parse, value, ctx)
        else:
            value = self._load(schema, value, on_repair)
        if self._validate is not None:
            verdict = self._custom(self._validate, value, ctx)
            if verdict is False:
                raise self._bad("the arguments were refused")
        return value

    def run(self, value: Any, ctx: Context | Mapping[str, Any] | None = None) -> Any:
        """Call the function with checked arguments; what it raises passes through."""
        ctx = Context.of(ctx)
        if self._spread is not None:
            return self._spread.run(value, ctx)
        return self._call(value, {"ctx": ctx})

    def _bad(self, text: str, path: str | None = None) -> ToolArgumentError:
        return ToolArgumentError(text, tool=self.name, path=path)

    def _ask(self, value: Any, ctx: Context) -> Any:
        return value(ctx, {"ctx": ctx}) if callable(value) else value

    def _schema_for(self, ctx: Context) -> Schema | None:
        if self._schema is None or isinstance(self._schema, Schema):
            return self._schema
        found = self._schema(ctx, {"ctx": ctx})
        if found is None or found is False:
            return None
        return found if isinstance(found, Schema) else Schema(found)

    def _compile_fixed(self) -> tuple[str, ToolDefinition] | None:
        """What ``compile`` gives where no part of it depends on the context."""
        parts = (self._schema, self._description, self._instructions)
        if self._input is not None or any(
            callable(part) and not isinstance(part, Schema) for part in parts
        ):
            return None
        if not isinstance(self._schema, Schema):
            return None
        made = ToolDefinition(
            self.name, str(self._description), self._schema, strict=self.strict
        )
        return str(self._instructions), made

    def _custom(self, fn: Bound, value: Any, ctx: Context) -> Any:
        result, error = ask(fn, value, ctx)
        if error is not None:
            raise self._bad(words(error)) from error
        return result

    def _load(
        self,
        schema: Schema,
        value: Any,
        on_repair: Callable[[RepairAttempt], Any] | None,
    ) -> Any:
        made, findings = schema.load(value)
        if not findings:
            return made
        fields = _looks_encoded(value)
        if not fields:
            raise self._bad(find_issues(findings), findings[0].path)
        inner = {name: _parsed(value[name]) for name in fields}
        mended = {k: v for k, v in inner.items() if v is not _UNSET}
        made, still = schema.load({**value, **mended}) if mended else (None, findings)
        if on_repair is not None:
            names = tuple(mended) if mended else tuple(fields)
            on_repair(RepairAttempt(names, success=not still))
        if not still:
            return made
        if not mended:
            names_text = ", ".join(repr(name) for name in fields)
            raise self._bad(
                f"{names_text} arrived as a JSON-encoded string whose inner JSON is "
                "malformed; send the value as a JSON object directly"
            )
        raise self._bad(find_issues(findings), findings[0].path)


def natural_arguments(call: ToolCall, schema: Schema | None) -> str:
    """Return the arguments of *call* as JSON text in the shape that *schema* has.

    A vendor's dialect may write a dict as a list of pairs, or null for what is
    absent. What is no JSON, or in no dialect, stays as it is written.
    """
    if call.descriptor is None or schema is None:
        return call.arguments
    try:
        written = parse_json(call.arguments)
    except ValueError:
        return call.arguments
    value = decode_wire(schema, written, get_descriptor_by_id(call.descriptor))
    if value == written:
        return call.arguments
    return json.dumps(value, ensure_ascii=False)


def find_issues(findings: Iterable[Finding]) -> str:
    """Write *findings* for a model, one line each.

    >>> find_issues([Finding("a.b", "expected integer, got string", "x")])
    '- a.b: expected integer, got string (input: x)'
    """
    return "\n".join(map(str, findings))


class _Spread:
    """A typed function, called with its arguments by name."""

    def __init__(self, fn: Callable[..., Any], contexts: Tuple[str, ...]) -> None:
        self.fn = fn
        self.contexts = contexts

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def run(self, value: Mapping[str, Any], ctx: Context) -> Any:
        return self.fn(**value, **dict.fromkeys(self.contexts, ctx))


@overload
def tool(fn: Callable[..., T], /, **options: Unpack[ToolOptions]) -> Tool[T]: ...
@overload
def tool(
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[..., T]], Tool[T]]: ...
def tool(fn: Optional[Callable[..., Any]] = None, /, **options: Any) -> Any:
    """Make a ``Tool`` of a typed function; the result can still be called.

    The schema comes from the annotations and defaults, descriptions from the
    docstring (Google, NumPy and reST styles). A parameter annotated ``Context`` gets
    the run's context and is never shown to the model. With *options*, which are
    those of ``Tool``, write ``@tool(name="…")``.

    >>> @tool
    ... def add(a: int, b: int = 1) -> int:
    ...     \"\"\"Add two numbers.\"\"\"
    ...     return a + b
    >>> add, add(2, b=3)
    (<Tool add>, 5)

    Raises:
        TypeError: *fn* is no function, or an ``async def``.
        SchemaError: an annotation that has no JSON form, or a name that cannot be
            found; the message names the parameter.
    """
    if fn is None:
        return lambda given: tool(given, **options)
    _refuse_method(fn)
    given: Any = fn
    if not callable(given) or isinstance(given, Tool):
        raise TypeError(f"@tool decorates a function, not {fn!r:.80}")
    refuse_async(fn, "@tool")
    contexts = _context_parameters(fn)
    summary, _ = docstring_parts(fn)
    name = options.pop("name", None) or getattr(fn, "__name__", type(fn).__name__)
    options.setdefault("description", summary)
    if "schema" not in options:
        options["schema"] = Schema.of_function(fn, skip=contexts)
    made: Tool[Any] = Tool(name, _Spread(fn, contexts), **options)
    made.__doc__ = fn.__doc__
    made.__wrapped__ = fn  # type: ignore[attr-defined]  # for inspect and help()
    made.__module__ = fn.__module__
    return made


def fitting_name(name: str) -> str:
    """Return *name* made to fit a tool.

    >>> fitting_name("Travel advisor (EU)")
    'Travel_advisor_EU'
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "tool"


def _context_parameters(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameters of *fn* that get the context."""
    parameters = inspect.signature(fn).parameters.values()
    if not any(p.name == "ctx" or is_context(p.annotation) for p in parameters):
        plain = [p.annotation for p in parameters if not isinstance(p.annotation, str)]
        if len(plain) == len(parameters):
            return ()
    hints = type_hints(fn)
    return tuple(
        p.name
        for p in parameters
        if _is_context(hints.get(p.name))
        or (p.name == "ctx" and hints.get("ctx", Any) is Any)
    )


def _is_context(hint: Any) -> bool:
    """Whether *hint* is ``Context``, or ``Optional[Context]``."""
    return hint is Context or Context in get_args(hint)


def _refuse_method(fn: Any) -> None:
    """Refuse a function in a class body: nobody could give its ``self``."""
    name = getattr(fn, "__qualname__", "")
    within = name.rpartition(".")[0]
    if not within or within.endswith("<locals>") or not inspect.isfunction(fn):
        return
    first = next(iter(inspect.signature(fn).parameters), "")
    if first in ("self", "cls"):
        raise TypeError(
            f"@tool cannot decorate the method {name}: make the tool of an object's "
            f"method, aeye.tool(the_object.{fn.__name__})"
        )


def _check(given: Mapping[str, Any]) -> None:
    """Refuse arguments that cannot be what they must be."""
    _check_name(given["name"])
    what = f"tool {given['name']!r}: "
    if given["on_error"] not in ("report", "raise"):
        raise ValueError(
            f"{what}on_error is 'report' or 'raise', not {given['on_error']!r}"
        )
    for key in ("description", "instructions"):
        if not isinstance(given[key], str) and not callable(given[key]):
            raise TypeError(
                f"{what}{key} is a str or a function, not {given[key]!r:.80}"
            )
    if not isinstance(given["inline"], bool):
        raise TypeError(f"{what}inline is True or False, not {given['inline']!r:.80}")
    numbers: Tuple[Any, ...] = (int, float)
    kinds = {"strict": numbers, "timeout": numbers, "max_args_length": (int,)}
    for key, kind in kinds.items():
        value = given[key]
        if value is None and key != "strict":
            continue
        is_flag = isinstance(value, bool) and key != "strict"
        if is_flag or not isinstance(value, kind):
            raise TypeError(f"{what}{key} is a number, not {value!r:.80}")
        if key != "strict" and value <= 0:
            raise ValueError(f"{what}{key} is more than 0, not {value!r}")
    if given["inline"] and given["timeout"] is not None:
        raise ValueError(
            f"{what}an inline call runs in the caller's thread, where no timeout can "
            "end it; give one of inline and timeout"
        )


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"a tool's name is a str, not {name!r:.80}")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"tool name {name!r:.100} is not 1 to 64 letters, digits, '_' or '-'; "
            "give one with name=…"
        )


def _maybe(value: Any, what: str) -> Any:
    """Return *value*, bound when it is a function of the context."""
    return bind(value, what, ("ctx",)) if callable(value) else value


def _bound(fn: Optional[Callable[..., Any]], what: str) -> Optional[Bound]:
    return None if fn is None else bind(fn, what, ("ctx",))


def _approval(given: Any, what: str) -> Optional[ToolApproval]:
    """Return the approval policy with its functions bound, or None."""
    if given is None or given is False:
        return None
    if isinstance(given, Mapping):
        given = ToolApproval(**given)
    elif given is True or callable(given):
        given = ToolApproval(given)
    if not isinstance(given, ToolApproval):
        raise TypeError(
            f"{what} is True, a function or a ToolApproval, not {given!r:.80}"
        )
    return ToolApproval(
        *(_maybe(getattr(given, f.name), f"{what}.{f.name}") for f in fields(given))
    )


def _told(said: Any, value: Any, ctx: Context) -> Any:
    return said(value, {"ctx": ctx}) if callable(said) else said


def _schema(source: Any, what: str) -> Union[Bound, Schema, None]:
    """Return a Schema, or a function of the context; a class is a source."""
    if source is None or isinstance(source, Schema):
        return source
    if inspect.isfunction(source) or inspect.ismethod(source):
        return bind(source, what, ("ctx",))
    return Schema(source)


def _look_up(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    if found is None and module:
        __import__(module)
        found = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _looks_encoded(value: Any) -> list[str]:
    """Return the top-level fields whose text begins like JSON."""
    if not isinstance(value, dict):
        return []
    return [
        name
        for name, field in value.items()
        if isinstance(field, str) and field.lstrip()[:1] in ("{", "[")
    ]


def _parsed(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return _UNSET
