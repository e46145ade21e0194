"""A template's tree → closures: text, blocks, partials.

A compiled text is a tuple of functions that are given a frame and write. Nothing in
it ever changes, so that any number of threads may run it. One level of nesting costs
two frames of Python's stack, or six where a helper stands between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Callable, Dict, List, Sequence, Tuple

from .errors import TemplateError
from .template_expression import (
    Edge,
    Helper,
    Program,
    Scope,
    arguments_of,
    as_path,
    called,
    check_arguments,
    compiled,
    helper_call,
    helper_name,
    looked_up,
    lookup_call,
    may_be_root,
    named_arguments,
    no_helper,
)
from .template_frame import Body, Data, Evaluate, Frame, Part, Step, Write, captured
from .template_syntax import parse
from .template_tree import (
    MAX_DEPTH,
    Block,
    Call,
    Expression,
    Include,
    Link,
    Node,
    Output,
    Path,
    Text,
)
from .template_value import (
    CircularError,
    Merged,
    entries,
    is_empty,
    is_true,
    items_of,
    text_of,
)

__all__ = ["compile_program"]


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
        program.parts = _parts(_parse(program), Scope(program))
    return main


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


def _parts(nodes: Sequence[Node], scope: Scope) -> Tuple[Part, ...]:
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
    def text(_frame: Frame, write: Write) -> None:
        write(value)

    return text


def _output_part(call: Call, scope: Scope) -> Part:
    evaluate = called(call, scope)
    program = scope.program

    def output(frame: Frame, write: Write) -> None:
        value = evaluate(frame)
        write(value if type(value) is str else _printed(value, program, call.at))

    return output


def _printed(value: object, program: Program, at: int) -> str:
    try:
        return text_of(value)
    except CircularError as exc:
        raise program.error(at, f"cannot print it: {exc}") from None


def _block_part(block: Block, scope: Scope) -> Part:
    steps: List[Step] = []
    otherwise: List[Part] = []

    def chain(frame: Frame, write: Write, start: int = 0) -> None:
        for n in range(start, len(steps)):
            if steps[n](frame, write):
                return
        for part in otherwise:
            part(frame, write)

    inner = replace(scope, depth=scope.depth + 1)
    for n, link in enumerate(block.links):

        def rest(frame: Frame, write: Write, start: int = n + 1) -> None:
            chain(frame, write, start)

        if inner.depth > MAX_DEPTH:
            message = f"a chain has at most {MAX_DEPTH} helpers"
            raise scope.program.error(link.call.at, message)
        name = helper_name(as_path(link.call.name), scope)
        steps.append(_step(link, name, inner, rest))
        if name in scope.program.helpers:
            # What follows is rendered while this helper runs.
            inner = replace(inner, depth=inner.depth + 1)
    otherwise.extend(_parts(block.otherwise, inner))
    return chain


def _step(link: Link, name: str, scope: Scope, rest: Part) -> Step:
    call = link.call
    if name in ("if", "unless"):
        return _condition_step(link, scope, wanted=name == "if")
    if name == "each":
        check_arguments(call, scope)
        return _each_step(compiled(call.args[0], scope), _entered(link, scope))
    if name == "with":
        return _with_step(link, scope)
    if name == "lookup":
        return _printing_step(lookup_call(call, scope), call, scope)
    if name in scope.program.helpers:
        return _helper_step(link, name, scope, rest)
    path = as_path(call.name)
    if call.args or call.named:
        raise no_helper(call, path, scope)
    return _plain_step(looked_up(path, scope), _perhaps_entered(link, scope))


def _body(link: Link, scope: Scope, at_root: Tuple[bool, ...]) -> Body:
    params = scope.params.union(link.params)
    inner = replace(scope, params=params, at_root=at_root)
    return Body(link.params, _parts(link.body, inner))


def _entered(link: Link, scope: Scope) -> Body:
    """Compile the body of a block whose ``this`` is another value."""
    return _body(link, scope, (False, *scope.at_root))


def _perhaps_entered(link: Link, scope: Scope, *, as_root: bool = False) -> Body:
    """Compile the body of a block whose ``this`` may also be the same as outside."""
    above = (as_root, *scope.at_root)
    return _body(link, scope, tuple(map(any, zip(above, (*scope.at_root, False)))))


def _condition_step(link: Link, scope: Scope, *, wanted: bool) -> Step:
    check_arguments(link.call, scope, named=("includeZero",))
    test = compiled(link.call.args[0], scope)
    named = dict(link.call.named)
    zero = compiled(named["includeZero"], scope) if named else None
    body = _body(link, scope, scope.at_root)
    params, parts = body.params, body.parts

    def condition(frame: Frame, write: Write) -> bool:
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


def _each_step(subject: Evaluate, body: Body) -> Step:
    def each(frame: Frame, write: Write) -> bool:
        return _loop(entries(subject(frame)), body, frame, write)

    return each


def _loop(
    found: Sequence[Tuple[object, object]], body: Body, frame: Frame, write: Write
) -> bool:
    """Render *body* for each pair of a key and an item; tell whether there was one."""
    parts, params = body.parts, body.params
    # One level of ``@`` variables for the whole loop, as nothing outlives a turn.
    values = dict(frame.data.values)
    data = Data(values, frame.data)
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


def _with_step(link: Link, scope: Scope) -> Step:
    check_arguments(link.call, scope)
    argument = link.call.args[0]
    subject = compiled(argument, scope)
    if isinstance(argument, Path) and (argument.data or not argument.parts):
        body = _perhaps_entered(link, scope, as_root=_names_root(argument, scope))
    else:
        body = _entered(link, scope)
    params, parts = body.params, body.parts

    def with_(frame: Frame, write: Write) -> bool:
        value = subject(frame)
        if is_empty(value):
            return False
        inner = frame.enter(value, frame.data, params, (value,))
        for part in parts:
            part(inner, write)
        return True

    return with_


def _plain_step(subject: Evaluate, body: Body) -> Step:
    """Compile ``{{#x}}``: a condition, a loop or a ``with``, as *x* turns out."""
    params, parts = body.params, body.parts

    def plain(frame: Frame, write: Write) -> bool:
        value = subject(frame)
        if value is None or value is False:
            return False
        if items_of(value) is not None:
            return _loop(entries(value), body, frame, write)
        context = frame.context if value is True else value
        inner = frame.enter(context, frame.data, params, (value,))
        for part in parts:
            part(inner, write)
        return True

    return plain


def _helper_step(link: Link, name: str, scope: Scope, rest: Part) -> Step:
    arguments = arguments_of(link.call, scope, scope.program.helpers[name])
    if not arguments.options:
        message = f"the helper '{name}' is no block: it has no parameter 'options'"
        raise scope.program.error(link.call.at, message)
    body = _perhaps_entered(link, scope)
    return _printing_step(helper_call(name, arguments, body, rest), link.call, scope)


def _printing_step(evaluate: Evaluate, call: Call, scope: Scope) -> Step:
    program = scope.program

    def printing(frame: Frame, write: Write) -> bool:
        write(_printed(evaluate(frame), program, call.at))
        return True

    return printing


def _include_part(node: Include, scope: Scope) -> Part:
    program, level, indent = scope.program, scope.depth + 1, node.indent
    target_of = _partial_of(node, scope)
    context_of = None if node.context is None else compiled(node.context, scope)
    named = named_arguments(node.named, scope)

    def include(frame: Frame, write: Write) -> None:
        target = target_of(frame)
        depth = frame.level + level
        if depth > MAX_DEPTH:
            raise program.error(node.at, f"partials nest more than {MAX_DEPTH} deep")
        context = frame.context if context_of is None else context_of(frame)
        if named:
            over = {key: value(frame) for key, value in named}
            context = Merged(over, context)
        inner = Frame(context, None, frame.data, {}, depth)
        if indent:
            write(_indented(captured(target.parts, inner), indent))
            return
        for part in target.parts:
            part(inner, write)

    return include


def _partial_of(node: Include, scope: Scope) -> Callable[[Frame], Program]:
    program = scope.program
    _note_include(node, scope)
    if isinstance(node.name, Call):
        name_of = called(node.name, scope, nested=True)

        def computed(frame: Frame) -> Program:
            name = text_of(name_of(frame))
            if name not in program.partials:
                raise program.error(node.at, f"there is no partial '{name}'")
            return program.partials[name]

        return computed

    name = node.name.original
    if name not in program.partials:
        raise program.error(node.at, f"there is no partial '{name}'")
    target = program.partials[name]

    def fixed(_frame: Frame) -> Program:
        return target

    return fixed


def _note_include(node: Include, scope: Scope) -> None:
    """Remember the partial, for `Program.mentions`."""
    name = "" if isinstance(node.name, Call) else node.name.original
    context = node.context
    inherits = may_be_root(0, scope) if context is None else _names_root(context, scope)
    named = frozenset(key for key, _ in node.named)
    scope.program.includes.add(Edge(name, inherits, named))


def _names_root(expression: Expression, scope: Scope) -> bool:
    """Whether *expression* is a way to say the context that the program was given."""
    if not isinstance(expression, Path):
        return False
    if expression.data:
        return expression.parts == ("root",)
    return not expression.parts and may_be_root(expression.depth, scope)


def _indented(text: str, indent: str) -> str:
    if not text:
        return ""
    end = "\n" if text.endswith("\n") else ""
    body = text[: len(text) - len(end)]
    return indent + body.replace("\n", "\n" + indent) + end
