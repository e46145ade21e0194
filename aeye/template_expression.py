"""Paths, literals and calls → functions of a frame.

All that is known without data is settled here, once: which names are helpers, which
are block parameters, how many levels up a path starts. What a function made here
does not find, it gives as None, or raises if the template is strict.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Set, Tuple

from .errors import TemplateError
from .template_frame import (
    Body,
    Data,
    Evaluate,
    Frame,
    HelperOptions,
    Part,
    captured,
)
from .template_tree import Call, Expression, Literal, Path, error_at
from .template_value import MISSING, is_true, look_up, text_of

__all__ = [
    "Arguments",
    "BUILT_IN",
    "Edge",
    "Helper",
    "Program",
    "Scope",
    "arguments_of",
    "as_path",
    "called",
    "check_arguments",
    "compiled",
    "helper_call",
    "helper_name",
    "looked_up",
    "lookup_call",
    "may_be_root",
    "named_arguments",
    "no_helper",
]

Helper = Callable[..., Any]

BUILT_IN = ("each", "if", "lookup", "unless", "with")


@dataclass(frozen=True)
class Edge:
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
    includes: Set[Edge] = field(default_factory=set)

    def render(self, context: object) -> str:
        """Fill the text from *context*."""
        root = Data({"root": context}, None)
        return captured(self.parts, Frame(context, None, root, {}, 0))

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


@dataclass(frozen=True)
class Scope:
    """What is known of a place in a text before there is any data."""

    program: Program
    depth: int = 0
    # Names of block parameters in reach.
    params: FrozenSet[str] = frozenset()
    # For ``this``, ``..`` and so on: whether it may be the program's context.
    at_root: Tuple[bool, ...] = (True,)


def compiled(expression: Expression, scope: Scope) -> Evaluate:
    """Compile an argument."""
    if isinstance(expression, Call):
        return called(expression, scope, nested=True)
    if isinstance(expression, Path):
        return looked_up(expression, scope)
    constant = expression.value

    def literal(_frame: Frame) -> object:
        return constant

    return literal


def called(call: Call, scope: Scope, *, nested: bool = False) -> Evaluate:
    """Compile ``{{name …}}`` or ``(name …)``: a helper, or else a variable."""
    path = as_path(call.name)
    name = helper_name(path, scope)
    if name == "lookup":
        return lookup_call(call, scope)
    if name in BUILT_IN:
        raise scope.program.error(call.at, f"'{name}' is a block: {{{{#{name} …}}}}")
    if name in scope.program.helpers:
        helper = scope.program.helpers[name]
        return helper_call(name, arguments_of(call, scope, helper), None, None)
    if call.args or call.named or nested:
        raise no_helper(call, path, scope)
    return looked_up(path, scope)


def as_path(name: Path | Literal) -> Path:
    """Read ``{{"a b"}}`` as ``{{[a b]}}``."""
    if isinstance(name, Path):
        return name
    return Path(name.at, name.original, (name.original,))


def helper_name(path: Path, scope: Scope) -> str:
    """Give the name by which *path* may mean a helper, or the empty string."""
    if len(path.parts) != 1 or path.depth or path.scoped or path.data:
        return ""
    return "" if path.parts[0] in scope.params else path.parts[0]


def no_helper(call: Call, path: Path, scope: Scope) -> TemplateError:
    """Make the error for arguments given to what cannot be called."""
    return scope.program.error(call.at, f"there is no helper '{path.original}'")


def looked_up(path: Path, scope: Scope) -> Evaluate:
    """Compile a path that is a variable."""
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

    def variable(frame: Frame) -> object:
        context = frame.context
        if type(context) is dict and name in context:  # the usual case, at once
            value = context[name]
            return absent() if callable(value) else value
        value = look_up(context, name)
        return absent() if value is MISSING else value

    return variable


def _walked(path: Path, scope: Scope, absent: Callable[[], object]) -> Evaluate:
    start, steps = _start_of(path, scope)

    def walked(frame: Frame) -> object:
        value = start(frame)
        for step in steps:
            value = look_up(value, step)
        return absent() if value is MISSING else value

    return walked


def _start_of(path: Path, scope: Scope) -> Tuple[Evaluate, Tuple[str, ...]]:
    """Find where a path starts, and the steps that remain."""
    parts, depth = path.parts, path.depth
    name = parts[0] if parts else ""
    if path.data:
        return _data_start(name, depth), parts[1:]
    if name in scope.params and not depth and not path.scoped:

        def parameter(frame: Frame) -> object:
            value = frame.locals[name]
            return MISSING if callable(value) else value

        return parameter, parts[1:]

    def context(frame: Frame) -> object:
        at: Optional[Frame] = frame
        for _ in range(depth):
            if at is None:
                return MISSING
            at = at.outer
        return MISSING if at is None else at.context

    return context, parts


def _data_start(name: str, depth: int) -> Evaluate:
    def variable(frame: Frame) -> object:
        at: Optional[Data] = frame.data
        for _ in range(depth):
            if at is None:
                return MISSING
            at = at.outer
        return MISSING if at is None else at.values.get(name, MISSING)

    return variable


def _note_look_up(path: Path, scope: Scope) -> None:
    """Remember a name that is looked up in the data, for `Template.mentions`."""
    if path.data:
        if path.parts[:1] == ("root",):
            scope.program.absolute.update(path.parts[1:2])
        return
    name = path.parts[0] if path.parts else ""
    is_param = name in scope.params and not path.depth and not path.scoped
    if path.parts and not is_param and may_be_root(path.depth, scope):
        scope.program.relative.add(name)


def may_be_root(depth: int, scope: Scope) -> bool:
    """Whether the context *depth* levels up may be what the program was given."""
    return depth < len(scope.at_root) and scope.at_root[depth]


def lookup_call(call: Call, scope: Scope) -> Evaluate:
    """Compile ``lookup value key``."""
    program = scope.program
    check_arguments(call, scope, count=2)
    base_of, key_of = (compiled(arg, scope) for arg in call.args)
    base, key = call.args
    if isinstance(base, Path) and isinstance(key, Literal):
        _note_look_up(replace(base, parts=(*base.parts, key.original)), scope)

    def lookup(frame: Frame) -> object:
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


def check_arguments(
    call: Call, scope: Scope, *, count: int = 1, named: Tuple[str, ...] = ()
) -> None:
    """Refuse arguments that a built-in helper does not take."""
    name = call.name.original
    if len(call.args) != count:
        wanted = "exactly one argument" if count == 1 else f"exactly {count} arguments"
        message = f"'{name}' takes {wanted}, not {len(call.args)}"
        raise scope.program.error(call.at, message)
    for key, _ in call.named:
        if key not in named:
            raise scope.program.error(call.at, f"'{name}' takes no '{key}='")


@dataclass(frozen=True)
class Arguments:
    """A helper, and how to work out what it is given."""

    helper: Helper
    args: Tuple[Evaluate, ...]
    named: Tuple[Tuple[str, Evaluate], ...]
    # Whether it wants to be given `HelperOptions`.
    options: bool


def arguments_of(call: Call, scope: Scope, helper: Helper) -> Arguments:
    """Compile what *helper* is given by *call*."""
    inner = replace(scope, depth=scope.depth + 1)
    args = tuple(compiled(arg, inner) for arg in call.args)
    named = named_arguments(call.named, inner)
    options = _takes_options(helper)
    if options and any(key == "options" for key, _ in named):
        message = f"'{call.name.original}' is given its 'options' by aeye"
        raise scope.program.error(call.at, message)
    return Arguments(helper, args, named, options)


def named_arguments(
    named: Tuple[Tuple[str, Expression], ...], scope: Scope
) -> Tuple[Tuple[str, Evaluate], ...]:
    """Compile named arguments. As in handlebars.js, ``key=undefined`` is none."""
    return tuple(
        (key, compiled(value, scope))
        for key, value in named
        if value != Literal(value.at, "undefined", None)
    )


def _takes_options(helper: Helper) -> bool:
    try:
        found = inspect.signature(helper).parameters.get("options")
    except (TypeError, ValueError):  # some built-in functions have none to read
        return False
    return found is not None and found.kind in (
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )


def helper_call(
    name: str, arguments: Arguments, body: Body | None, inverse: Part | None
) -> Evaluate:
    """Compile the call of a helper; *body* and *inverse* are those of a block."""
    helper, args, named = arguments.helper, arguments.args, arguments.named
    with_options = arguments.options

    def called(frame: Frame) -> object:
        values = [value(frame) for value in args]
        words = {key: value(frame) for key, value in named}
        if with_options:
            words["options"] = HelperOptions(name, frame, body, inverse)
        return helper(*values, **words)

    return called
