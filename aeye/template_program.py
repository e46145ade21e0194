"""A template's tree → closures → text: what names mean, and rendering.

Compiling settles all that is known without data: which names are helpers, which
are block parameters, how many levels up a path starts. What remains is a tuple of
functions that are given a frame and write; nothing in it ever changes, so that any
number of threads may run it. One level of nesting costs one Python frame, or three
where a helper stands between.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    List,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from .errors import TemplateError
from .template_syntax import (
    MAX_DEPTH,
    Block,
    Call,
    Expression,
    Include,
    Link,
    Literal,
    Node,
    Output,
    Path,
    Text,
    error_at,
    parse,
)
from .template_value import (
    MISSING,
    CircularError,
    Merged,
    entries,
    is_empty,
    is_true,
    items_of,
    look_up,
    text_of,
)

__all__ = ["BUILT_IN", "Helper", "HelperOptions", "Program", "compile_program"]

Helper = Callable[..., Any]

BUILT_IN = ("each", "if", "lookup", "unless", "with")


# At run time: where a rendering stands.


class _Data:
    """The ``@`` variables of one level, and the level above."""

    __slots__ = ("outer", "values")

    def __init__(self, values: Dict[str, object], outer: _Data | None) -> None:
        self.values = values
        self.outer = outer


class _Frame:
    """What ``this``, ``..``, ``@x`` and block parameters mean at one place."""

    __slots__ = ("context", "data", "level", "locals", "outer")

    def __init__(
        self,
        context: object,
        outer: _Frame | None,
        data: _Data,
        local: Dict[str, object],
        level: int,
    ) -> None:
        self.context = context
        self.outer = outer
        self.data = data
        self.locals = local
        # How deep the partial that is being rendered is nested.
        self.level = level

    def enter(
        self,
        context: object,
        data: _Data,
        params: Tuple[str, ...],
        values: Sequence[Any],
    ) -> _Frame:
        """Make the frame of a block with its own ``this``.

        As in Handlebars, ``..`` counts contexts and not blocks: one that is the
        same as before opens no level.
        """
        outer = self.outer if _is_same(context, self.context) else self
        local = {**self.locals, **_bind(params, values)} if params else self.locals
        return _Frame(context, outer, data, local, self.level)


def _is_same(one: object, other: object) -> bool:
    # Identity alone would depend on which numbers and texts Python shares.
    return one is other or (
        isinstance(one, (str, int, float)) and type(one) is type(other) and one == other
    )


def _bind(params: Tuple[str, ...], values: Sequence[Any]) -> Dict[str, object]:
    bound: Dict[str, object] = dict.fromkeys(params, MISSING)
    bound.update(zip(params, values))
    return bound


Write = Callable[[str], None]
Part = Callable[[_Frame, Write], None]
# Renders if it applies, and tells; otherwise the next link of the chain is tried.
Step = Callable[[_Frame, Write], bool]
Evaluate = Callable[[_Frame], Any]


class HelperOptions:
    """What a helper with a parameter ``options`` is given beside its arguments.

    Valid while the helper runs.
    """

    __slots__ = ("_body", "_frame", "_inverse", "name")

    def __init__(
        self, name: str, frame: _Frame, body: _Body | None, inverse: Part | None
    ) -> None:
        #: The name it was called by.
        self.name = name
        self._frame = frame
        self._body = body
        self._inverse = inverse

    @property
    def is_block(self) -> bool:
        """Whether it was called as ``{{#name}}…{{/name}}``."""
        return self._body is not None

    @property
    def context(self) -> object:
        """What ``this`` is where the helper is called."""
        return self._frame.context

    @property
    def data(self) -> Mapping[str, object]:
        """The ``@`` variables there, ``root`` and in a loop ``index``, read-only."""
        return MappingProxyType(self._frame.data.values)

    def fn(
        self,
        context: object = MISSING,
        *,
        data: Mapping[str, object] | None = None,
        params: Sequence[object] = (),
    ) -> str:
        """Render the block, with *context* as ``this`` if it is given.

        *data* adds ``@`` variables and *params* are the values of the block
        parameters, in order. Not a block: the empty string.
        """
        if self._body is None:
            return ""
        frame = self._frame
        below = frame.data
        if data is not None:
            below = _Data({**below.values, **data}, below)
        chosen = frame.context if context is MISSING else context
        inner = frame.enter(chosen, below, self._body.params, params)
        return _captured(self._body.parts, inner)

    def inverse(self, context: object = MISSING) -> str:
        """Render what follows ``{{else}}``; without one, the empty string."""
        if self._inverse is None:
            return ""
        frame = self._frame
        if context is not MISSING:
            frame = frame.enter(context, frame.data, (), ())
        return _captured((self._inverse,), frame)


def _captured(parts: Sequence[Part], frame: _Frame) -> str:
    written: List[str] = []
    for part in parts:
        part(frame, written.append)
    return "".join(written)


# Compiling: tree → closures.


@dataclass(frozen=True)
class _Edge:
    """A partial that a program inserts; the name is empty if it is computed."""

    name: str
    # Whether it may be given the data as its context.
    inherits: bool
    named: FrozenSet[str]


@dataclass(eq=False)
class Program:
    """One compiled text. Filled by `compile_program`, then never changed."""

    text: str
    # The partial that it is, for error messages.
    label: str
    helpers: Mapping[str, Helper]
    # Every partial by name, shared by a template and the texts given with it.
    partials: Dict[str, Program]
    strict: bool
    parts: Tuple[Part, ...] = ()
    # Names looked up in the context it is given, and through ``@root``.
    relative: Set[str] = field(default_factory=set)
    absolute: Set[str] = field(default_factory=set)
    includes: Set[_Edge] = field(default_factory=set)

    def render(self, context: object) -> str:
        """Fill the text from *context*."""
        root = _Data({"root": context}, None)
        return _captured(self.parts, _Frame(context, None, root, {}, 0))

    def mentions(self, name: str) -> bool:
        """Whether *name* may be looked up in the data itself, partials included."""
        # A program, and whether its context may be the data.
        pending: List[Tuple[Program, bool]] = [(self, True)]
        seen: Set[Tuple[int, bool]] = set()
        while pending:
            program, at_root = pending.pop()
            if (id(program), at_root) in seen:
                continue
            seen.add((id(program), at_root))
            if name in program.absolute or (at_root and name in program.relative):
                return True
            for edge in program.includes:
                inherits = at_root and edge.inherits and name not in edge.named
                keys = (edge.name,) if edge.name else tuple(program.partials)
                pending.extend((program.partials[key], inherits) for key in keys)
        return False

    def error(self, at: int, message: str) -> TemplateError:
        """Make the error for position *at*."""
        where = f"partial '{self.label}': " if self.label else ""
        return error_at(self.text, at, where + message)


def compile_program(
    text: str,
    helpers: Mapping[str, Helper],
    partials: Mapping[str, str | Program],
    strict: bool,
) -> Program:
    """Compile *text* and those partials that are texts.

    Raises:
        TemplateError: one of them cannot be read, or names what does not exist.
    """
    programs: Dict[str, Program] = {}
    main = Program(text, "", helpers, programs, strict)
    texts = [main]
    for name, partial in partials.items():
        if isinstance(partial, str):
            partial = Program(partial, name, helpers, programs, strict)
            texts.append(partial)
        programs[name] = partial
    for program in texts:
        program.parts = _parts(_parse(program), _Scope(program))
    return main


@dataclass(frozen=True)
class _Scope:
    """What is known of a place in a text before there is any data."""

    program: Program
    depth: int = 0
    # Names of block parameters in reach.
    params: FrozenSet[str] = frozenset()
    # For ``this``, ``..`` and so on: whether it may be the program's context.
    at_root: Tuple[bool, ...] = (True,)


@dataclass(frozen=True)
class _Body:
    params: Tuple[str, ...]
    parts: Tuple[Part, ...]


def _parse(program: Program) -> Tuple[Node, ...]:
    try:
        return parse(program.text)
    except TemplateError as exc:
        if not program.label:
            raise
        message = f"partial '{program.label}': {exc.message}"
        raise TemplateError(
            message, line=exc.line, column=exc.column, source=exc.source
        ) from None


def _parts(nodes: Sequence[Node], scope: _Scope) -> Tuple[Part, ...]:
    parts: List[Part] = []
    for node in nodes:
        if isinstance(node, Text):
            if node.value:
                parts.append(_text_part(node.value))
        elif isinstance(node, Output):
            parts.append(_output_part(node.call, scope))
        elif isinstance(node, Include):
            parts.append(_include_part(node, scope))
        elif isinstance(node, Block):
            parts.append(_block_part(node, scope))
    return tuple(parts)


def _text_part(value: str) -> Part:
    def text(_frame: _Frame, write: Write) -> None:
        write(value)

    return text


def _output_part(call: Call, scope: _Scope) -> Part:
    evaluate = _called(call, scope)
    program = scope.program

    def output(frame: _Frame, write: Write) -> None:
        value = evaluate(frame)
        write(value if type(value) is str else _printed(value, program, call.at))

    return output


def _printed(value: object, program: Program, at: int) -> str:
    try:
        return text_of(value)
    except CircularError as exc:
        raise program.error(at, f"cannot print it: {exc}") from None


# Expressions


def _value(expression: Expression, scope: _Scope) -> Evaluate:
    if isinstance(expression, Call):
        return _called(expression, scope, nested=True)
    if isinstance(expression, Path):
        return _looked_up(expression, scope)
    constant = expression.value

    def literal(_frame: _Frame) -> object:
        return constant

    return literal


def _called(call: Call, scope: _Scope, *, nested: bool = False) -> Evaluate:
    """Compile ``{{name …}}`` or ``(name …)``: a helper, or else a variable."""
    path = _as_path(call.name)
    name = _helper_name(path, scope)
    if name == "lookup":
        return _lookup_call(call, scope)
    if name in BUILT_IN:
        raise scope.program.error(call.at, f"'{name}' is a block: {{{{#{name} …}}}}")
    if name in scope.program.helpers:
        helper = scope.program.helpers[name]
        return _helper_call(name, _arguments(call, scope, helper), None, None)
    if call.args or call.named or nested:
        raise _no_helper(call, path, scope)
    return _looked_up(path, scope)


def _as_path(name: Path | Literal) -> Path:
    """Read ``{{"a b"}}`` as ``{{[a b]}}``."""
    if isinstance(name, Path):
        return name
    return Path(name.at, name.original, (name.original,))


def _helper_name(path: Path, scope: _Scope) -> str:
    """Give the name by which *path* may mean a helper, or the empty string."""
    if len(path.parts) != 1 or path.depth or path.scoped or path.data:
        return ""
    return "" if path.parts[0] in scope.params else path.parts[0]


def _no_helper(call: Call, path: Path, scope: _Scope) -> TemplateError:
    return scope.program.error(call.at, f"there is no helper '{path.original}'")


def _looked_up(path: Path, scope: _Scope) -> Evaluate:
    program, parts = scope.program, path.parts
    _note_look_up(path, scope)

    def absent() -> object:
        if program.strict:
            raise program.error(path.at, f"there is no '{path.original}'")
        return None

    if path.data or path.depth or path.scoped or len(parts) != 1:
        return _walked(path, scope, absent)
    name = parts[0]
    if name in scope.params:
        return _walked(path, scope, absent)

    def variable(frame: _Frame) -> object:
        context = frame.context
        if type(context) is dict and name in context:  # the usual case, at once
            value = context[name]
            return absent() if callable(value) else value
        value = look_up(context, name)
        return absent() if value is MISSING else value

    return variable


def _walked(path: Path, scope: _Scope, absent: Callable[[], object]) -> Evaluate:
    start, steps = _start_of(path, scope)

    def walked(frame: _Frame) -> object:
        value = start(frame)
        for step in steps:
            value = look_up(value, step)
        return absent() if value is MISSING else value

    return walked


def _start_of(path: Path, scope: _Scope) -> Tuple[Evaluate, Tuple[str, ...]]:
    """Find where a path starts, and the steps that remain."""
    parts, depth = path.parts, path.depth
    name = parts[0] if parts else ""
    if path.data:
        return _data_start(name, depth), parts[1:]
    if name in scope.params and not depth and not path.scoped:

        def parameter(frame: _Frame) -> object:
            value = frame.locals[name]
            return MISSING if callable(value) else value

        return parameter, parts[1:]

    def context(frame: _Frame) -> object:
        at: Optional[_Frame] = frame
        for _ in range(depth):
            if at is None:
                return MISSING
            at = at.outer
        return MISSING if at is None else at.context

    return context, parts


def _data_start(name: str, depth: int) -> Evaluate:
    def variable(frame: _Frame) -> object:
        at: Optional[_Data] = frame.data
        for _ in range(depth):
            if at is None:
                return MISSING
            at = at.outer
        return MISSING if at is None else at.values.get(name, MISSING)

    return variable


def _note_look_up(path: Path, scope: _Scope) -> None:
    """Remember a name that is looked up in the data, for `Template.mentions`."""
    if path.data:
        if path.parts[:1] == ("root",):
            scope.program.absolute.update(path.parts[1:2])
        return
    name = path.parts[0] if path.parts else ""
    is_param = name in scope.params and not path.depth and not path.scoped
    if path.parts and not is_param and _may_be_root(path.depth, scope):
        scope.program.relative.add(name)


def _may_be_root(depth: int, scope: _Scope) -> bool:
    return depth < len(scope.at_root) and scope.at_root[depth]


def _lookup_call(call: Call, scope: _Scope) -> Evaluate:
    program = scope.program
    _check_arguments(call, scope, count=2)
    base_of, key_of = (_value(arg, scope) for arg in call.args)
    base, key = call.args
    if isinstance(base, Path) and isinstance(key, Literal):
        _note_look_up(replace(base, parts=(*base.parts, key.original)), scope)

    def lookup(frame: _Frame) -> object:
        value, name = base_of(frame), key_of(frame)
        found = _look_up_key(value, name) if is_true(value) else value
        if found is not MISSING and (found is not None or is_true(value)):
            return found
        if program.strict:
            raise program.error(call.at, f"there is no '{text_of(name)}'")
        return None

    return lookup


def _look_up_key(value: object, key: object) -> object:
    if isinstance(value, Mapping) and not isinstance(key, str):
        try:
            found = value.get(key, MISSING)
        except TypeError:  # unhashable
            found = MISSING
        if found is not MISSING:
            return MISSING if callable(found) else found
    return MISSING if key is None else look_up(value, text_of(key))


def _check_arguments(
    call: Call, scope: _Scope, *, count: int = 1, named: Tuple[str, ...] = ()
) -> None:
    name = call.name.original
    if len(call.args) != count:
        wanted = "exactly one argument" if count == 1 else f"exactly {count} arguments"
        message = f"'{name}' takes {wanted}, not {len(call.args)}"
        raise scope.program.error(call.at, message)
    for key, _ in call.named:
        if key not in named:
            raise scope.program.error(call.at, f"'{name}' takes no '{key}='")


@dataclass(frozen=True)
class _Arguments:
    """A helper, and how to work out what it is given."""

    helper: Helper
    args: Tuple[Evaluate, ...]
    named: Tuple[Tuple[str, Evaluate], ...]
    # Whether it wants to be given `HelperOptions`.
    options: bool


def _arguments(call: Call, scope: _Scope, helper: Helper) -> _Arguments:
    inner = replace(scope, depth=scope.depth + 1)
    args = tuple(_value(arg, inner) for arg in call.args)
    named = tuple((key, _value(arg, inner)) for key, arg in call.named)
    options = _takes_options(helper)
    if options and any(key == "options" for key, _ in named):
        message = f"'{call.name.original}' is given its 'options' by aeye"
        raise scope.program.error(call.at, message)
    return _Arguments(helper, args, named, options)


def _takes_options(helper: Helper) -> bool:
    try:
        found = inspect.signature(helper).parameters.get("options")
    except (TypeError, ValueError):  # some built-in functions have none to read
        return False
    return found is not None and found.kind in (
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )


def _helper_call(
    name: str, arguments: _Arguments, body: _Body | None, inverse: Part | None
) -> Evaluate:
    helper, args, named = arguments.helper, arguments.args, arguments.named
    with_options = arguments.options

    def called(frame: _Frame) -> object:
        values = [value(frame) for value in args]
        words = {key: value(frame) for key, value in named}
        if with_options:
            words["options"] = HelperOptions(name, frame, body, inverse)
        return helper(*values, **words)

    return called


# Blocks and partials


def _block_part(block: Block, scope: _Scope) -> Part:
    steps: List[Step] = []
    otherwise: List[Part] = []

    def chain(frame: _Frame, write: Write, start: int = 0) -> None:
        for n in range(start, len(steps)):
            if steps[n](frame, write):
                return
        for part in otherwise:
            part(frame, write)

    inner = replace(scope, depth=scope.depth + 1)
    for n, link in enumerate(block.links):

        def rest(frame: _Frame, write: Write, start: int = n + 1) -> None:
            chain(frame, write, start)

        name = _helper_name(_as_path(link.call.name), scope)
        if name in scope.program.helpers and name not in BUILT_IN:
            # The next link is rendered while this one's helper runs.
            inner = replace(inner, depth=inner.depth + 1)
            if inner.depth > MAX_DEPTH + 1:
                message = f"at most {MAX_DEPTH} helpers follow each other in a chain"
                raise scope.program.error(link.call.at, message)
        steps.append(_step(link, name, inner, rest))
    otherwise.extend(_parts(block.otherwise, inner))
    return chain


def _step(link: Link, name: str, scope: _Scope, rest: Part) -> Step:
    call = link.call
    if name in ("if", "unless"):
        return _condition_step(link, scope, wanted=name == "if")
    if name == "each":
        _check_arguments(call, scope)
        return _each_step(_value(call.args[0], scope), _entered(link, scope))
    if name == "with":
        return _with_step(link, scope)
    if name == "lookup":
        return _printing_step(_lookup_call(call, scope), call, scope)
    if name in scope.program.helpers:
        return _helper_step(link, name, scope, rest)
    path = _as_path(call.name)
    if call.args or call.named:
        raise _no_helper(call, path, scope)
    return _plain_step(_looked_up(path, scope), _perhaps_entered(link, scope))


def _body(link: Link, scope: _Scope, at_root: Tuple[bool, ...]) -> _Body:
    params = scope.params.union(link.params)
    inner = replace(scope, params=params, at_root=at_root)
    return _Body(link.params, _parts(link.body, inner))


def _entered(link: Link, scope: _Scope) -> _Body:
    """Compile the body of a block whose ``this`` is another value."""
    return _body(link, scope, (False, *scope.at_root))


def _perhaps_entered(link: Link, scope: _Scope, *, may_be_root: bool = False) -> _Body:
    """Compile the body of a block whose ``this`` may also be the same as outside."""
    above = (may_be_root, *scope.at_root)
    return _body(link, scope, tuple(map(any, zip(above, (*scope.at_root, False)))))


def _condition_step(link: Link, scope: _Scope, *, wanted: bool) -> Step:
    _check_arguments(link.call, scope, named=("includeZero",))
    test = _value(link.call.args[0], scope)
    named = dict(link.call.named)
    zero = _value(named["includeZero"], scope) if named else None
    body = _body(link, scope, scope.at_root)
    params, parts = body.params, body.parts

    def condition(frame: _Frame, write: Write) -> bool:
        value = test(frame)
        counts = value is True or not is_empty(value)
        if counts and not is_true(value):  # only zero is false without being empty
            counts = zero is not None and is_true(zero(frame))
        if counts is not wanted:
            return False
        if params:
            frame = frame.enter(frame.context, frame.data, params, ())
        for part in parts:
            part(frame, write)
        return True

    return condition


def _each_step(subject: Evaluate, body: _Body) -> Step:
    params, parts = body.params, body.parts

    def each(frame: _Frame, write: Write) -> bool:
        found = entries(subject(frame))
        # One level of ``@`` variables for the whole loop, as nothing outlives a turn.
        values = dict(frame.data.values)
        data = _Data(values, frame.data)
        last = len(found) - 1
        for index, (key, item) in enumerate(found):
            values["key"] = key
            values["index"] = index
            values["first"] = index == 0
            values["last"] = index == last
            inner = frame.enter(item, data, params, (item, key))
            for part in parts:
                part(inner, write)
        return bool(found)

    return each


def _with_step(link: Link, scope: _Scope) -> Step:
    _check_arguments(link.call, scope)
    argument = link.call.args[0]
    subject = _value(argument, scope)
    may_be_root = isinstance(argument, Path) and (
        argument.parts == ("root",)
        if argument.data
        else not argument.parts and _may_be_root(argument.depth, scope)
    )
    body = _perhaps_entered(link, scope, may_be_root=may_be_root)
    params, parts = body.params, body.parts

    def with_(frame: _Frame, write: Write) -> bool:
        value = subject(frame)
        if is_empty(value):
            return False
        inner = frame.enter(value, frame.data, params, (value,))
        for part in parts:
            part(inner, write)
        return True

    return with_


def _plain_step(subject: Evaluate, body: _Body) -> Step:
    """Compile ``{{#x}}``: a condition, a loop or a ``with``, as *x* turns out."""
    params, parts = body.params, body.parts

    def plain(frame: _Frame, write: Write) -> bool:
        value = subject(frame)
        if value is None or value is False:
            return False
        if items_of(value) is not None:
            return _each_step(lambda _frame: value, body)(frame, write)
        context = frame.context if value is True else value
        inner = frame.enter(context, frame.data, params, (value,))
        for part in parts:
            part(inner, write)
        return True

    return plain


def _helper_step(link: Link, name: str, scope: _Scope, rest: Part) -> Step:
    arguments = _arguments(link.call, scope, scope.program.helpers[name])
    if not arguments.options:
        message = f"the helper '{name}' is no block: it has no parameter 'options'"
        raise scope.program.error(link.call.at, message)
    body = _perhaps_entered(link, scope)
    return _printing_step(_helper_call(name, arguments, body, rest), link.call, scope)


def _printing_step(evaluate: Evaluate, call: Call, scope: _Scope) -> Step:
    program = scope.program

    def printing(frame: _Frame, write: Write) -> bool:
        write(_printed(evaluate(frame), program, call.at))
        return True

    return printing


def _include_part(node: Include, scope: _Scope) -> Part:
    program, level, indent = scope.program, scope.depth + 1, node.indent
    target_of = _partial_of(node, scope)
    context_of = None if node.context is None else _value(node.context, scope)
    named = tuple((key, _value(value, scope)) for key, value in node.named)

    def include(frame: _Frame, write: Write) -> None:
        target = target_of(frame)
        depth = frame.level + level
        if depth > MAX_DEPTH:
            raise program.error(node.at, f"partials nest more than {MAX_DEPTH} deep")
        context = frame.context if context_of is None else context_of(frame)
        if named:
            over = {key: value(frame) for key, value in named}
            context = Merged(over, context)
        inner = _Frame(context, None, frame.data, {}, depth)
        if indent:
            write(_indented(_captured(target.parts, inner), indent))
            return
        for part in target.parts:
            part(inner, write)

    return include


def _partial_of(node: Include, scope: _Scope) -> Callable[[_Frame], Program]:
    program = scope.program
    _note_include(node, scope)
    if isinstance(node.name, Call):
        name_of = _called(node.name, scope, nested=True)

        def computed(frame: _Frame) -> Program:
            name = text_of(name_of(frame))
            if name not in program.partials:
                raise program.error(node.at, f"there is no partial '{name}'")
            return program.partials[name]

        return computed

    name = node.name.original
    if name not in program.partials:
        raise program.error(node.at, f"there is no partial '{name}'")
    target = program.partials[name]

    def fixed(_frame: _Frame) -> Program:
        return target

    return fixed


def _note_include(node: Include, scope: _Scope) -> None:
    name = "" if isinstance(node.name, Call) else node.name.original
    context = node.context
    if context is None:
        inherits = _may_be_root(0, scope)
    elif isinstance(context, Path) and context.data:
        inherits = context.parts == ("root",)
    else:
        inherits = (
            isinstance(context, Path)
            and not context.parts
            and _may_be_root(context.depth, scope)
        )
    named = frozenset(key for key, _ in node.named)
    scope.program.includes.add(_Edge(name, inherits, named))


def _indented(text: str, indent: str) -> str:
    if not text:
        return ""
    end = "\n" if text.endswith("\n") else ""
    body = text[: len(text) - len(end)]
    return indent + body.replace("\n", "\n" + indent) + end
