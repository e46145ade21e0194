"""Annotations and docstrings of the user's functions and classes.

Annotations are resolved one at a time, in the module they were written in, so that
the error can name the one that cannot be: they may be text (``from __future__
import annotations``), name a class of an enclosing function, or use spellings that
the running Python does not know.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import types
import typing
from typing import Any, Callable, Dict, Iterable, List, Tuple

from .errors import SchemaError

__all__ = [
    "class_hints",
    "class_scope",
    "docstring_parts",
    "function_scope",
    "plain_function",
    "resolve_hint",
    "type_hints",
]

_INIT_VAR = re.compile(r"(?:dataclasses\.)?InitVar\[(.*)\]\s*", re.DOTALL)


def type_hints(obj: Any, *, skip: Iterable[str] = ()) -> Dict[str, Any]:
    """Resolve the annotations of a function or class, ``Annotated`` included.

    Names in *skip* are left out unresolved. Unlike ``typing.get_type_hints``, a
    default of None adds no Optional, on no version.

    Raises:
        SchemaError: an annotation cannot be resolved; the message names it.
    """
    skipped = set(skip)
    if isinstance(obj, type):
        return {
            name: hint for name, (hint, _) in class_hints(obj, skip=skipped).items()
        }
    fn = plain_function(obj)
    scope = function_scope(fn)
    return {
        name: resolve_hint(hint, scope, _place(fn, name))
        for name, hint in _own_annotations(fn).items()
        if name not in skipped
    }


def class_hints(cls: type, *, skip: Iterable[str] = ()) -> Dict[str, Tuple[Any, type]]:
    """Resolve the annotations of a class, each with the base that it comes from."""
    hints: Dict[str, Tuple[Any, type]] = {}
    for base in reversed(cls.__mro__):
        scope = class_scope(base, cls)
        for name, hint in _own_annotations(base).items():
            if name not in skip:
                hints[name] = resolve_hint(hint, scope, _place(cls, name)), base
    return hints


def resolve_hint(hint: Any, scope: Dict[str, Any], place: str) -> Any:
    """Evaluate *hint* if it is text, and the forward references within it."""
    if isinstance(hint, str):
        found = _INIT_VAR.fullmatch(hint)
        if found:  # 3.9, 3.10: typing takes no InitVar in text
            return dataclasses.InitVar(resolve_hint(found[1], scope, place))
    if isinstance(hint, dataclasses.InitVar):
        return dataclasses.InitVar(resolve_hint(hint.type, scope, place))
    # A class, because ClassVar and its like are refused elsewhere.
    holder = type("holder", (), {"__annotations__": {"hint": hint}})
    try:
        return typing.get_type_hints(holder, scope, {}, include_extras=True)["hint"]
    except NameError as exc:
        name = getattr(exc, "name", None) or str(exc).split("'")[1]
        raise SchemaError(
            f"{place}: {name!r} is not known where the annotation {hint!r} is "
            "resolved: import it at run time, or define it at module level"
        ) from exc
    except TypeError as exc:
        if "|" in str(hint) and sys.version_info < (3, 10):
            raise SchemaError(
                f"{place}: Python {sys.version_info[0]}.{sys.version_info[1]} cannot "
                f"read {hint!r}: write Optional[...] or Union[...] of typing"
            ) from exc
        raise SchemaError(f"{place}: {hint!r} is not a type: {exc}") from exc
    except (AttributeError, SyntaxError) as exc:
        raise SchemaError(f"{place}: cannot resolve {hint!r}: {exc}") from exc


def class_scope(cls: Any, owner: type | None = None) -> Dict[str, Any]:
    """Give the names that annotations in *cls*, a class or an alias, may use."""
    module = sys.modules.get(cls.__module__ or "")
    scope = dict(vars(module)) if module else {}
    # A local class can at least refer to itself.
    for known in (cls, owner):
        if known is not None:
            scope.setdefault(known.__name__, known)
    return {**scope, **_type_parameters(cls)}


def _type_parameters(obj: Any) -> Dict[str, Any]:
    """The T of ``class Page[T]`` and ``def first[T](…)``, which 3.12 knows."""
    return {param.__name__: param for param in getattr(obj, "__type_params__", ())}


def plain_function(obj: Any) -> Any:
    """Find the function whose annotations describe the callable *obj*."""
    while hasattr(obj, "func") and not inspect.isroutine(obj):  # functools.partial
        obj = obj.func
    obj = inspect.unwrap(obj)
    if isinstance(obj, types.MethodType):
        return obj.__func__
    if not inspect.isroutine(obj) and not isinstance(obj, type) and callable(obj):
        return type(obj).__call__
    return obj


def _own_annotations(obj: Any) -> Dict[str, Any]:
    if isinstance(obj, type) and sys.version_info < (3, 10):
        # 3.9: a plain look-up may find a base's.
        return vars(obj).get("__annotations__") or {}
    try:
        return getattr(obj, "__annotations__", None) or {}
    except NameError as exc:  # from 3.14 on they are evaluated here
        raise SchemaError(f"{_place(obj, 'annotations')}: {exc}") from exc


def function_scope(fn: Any) -> Dict[str, Any]:
    """Give the names that annotations of *fn* may use, its closure's included."""
    scope = {**getattr(fn, "__globals__", {}), **_type_parameters(fn)}
    code = getattr(fn, "__code__", None)
    cells = getattr(fn, "__closure__", None) or ()
    for name, cell in zip(code.co_freevars if code else (), cells):
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return scope


def _place(obj: Any, name: str) -> str:
    return f"{getattr(obj, '__qualname__', obj)}.{name}"


def docstring_parts(fn: Callable[..., Any]) -> Tuple[str, Dict[str, str]]:
    """Split a docstring into what it says, and what it says of each parameter.

    Reads Google, NumPy and reST style. The first part is the text before any
    section.

    >>> def area(width, height):
    ...     '''Area of a rectangle.
    ...
    ...     Args:
    ...         width: In metres.
    ...         height (float): In metres,
    ...             too.
    ...     '''
    >>> docstring_parts(area)
    ('Area of a rectangle.', {'width': 'In metres.', 'height': 'In metres, too.'})
    """
    doc = getattr(fn, "__doc__", None)
    if not isinstance(doc, str):
        return "", {}
    lines = inspect.cleandoc(doc).splitlines()
    parameters: Dict[str, str] = {}
    summary: List[str] = []
    n = 0
    in_head = True
    while n < len(lines):
        section, start = _section(lines, n)
        if section:
            in_head = False
            block, n = _block(lines, start, google=start == n + 1)
            if section in _PARAMETER_SECTIONS:
                parameters.update(
                    _entries(block, google=not _is_rule(lines, start - 1))
                )
            continue
        field = _REST_FIELD.match(lines[n])
        if field:
            in_head = False
            text, n = _rest_text(lines, n, field)
            if field[1]:
                parameters[field[1]] = text
            continue
        if in_head:
            summary.append(lines[n])
        n += 1
    return "\n".join(summary).strip(), parameters


_PARAMETER_SECTIONS = frozenset(
    {"args", "arguments", "parameters", "params", "attributes", "other parameters"}
    | {"keyword args", "keyword arguments"}
)
_OTHER_SECTIONS = frozenset(
    {"returns", "return", "yields", "yield", "raises", "raise", "example", "examples"}
    | {"note", "notes", "see also", "references", "warning", "warnings", "todo"}
    | {"warns", "methods", "receives", "exceptions"}
)
_REST_FIELD = re.compile(
    r":(?:(?:param|parameter|arg|argument|key|keyword|ivar|var)\s+(?:[^:]*?[\s])?"
    r"\*{0,2}(\w+)|[a-z]+(?:\s[^:]*)?):\s*(.*)"
)
_GOOGLE_ENTRY = re.compile(
    r"\*{0,2}(\w+)\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\s*:\s*(.*)"
)
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")


def _section(lines: List[str], n: int) -> Tuple[str, int]:
    """Name the section that begins at line *n*, and give its first line."""
    head = lines[n].strip()
    if lines[n][:1].isspace():
        return "", n
    name = head.rstrip(":").lower()
    if name not in _PARAMETER_SECTIONS | _OTHER_SECTIONS:
        return "", n
    if _is_rule(lines, n + 1):
        return name, n + 2
    return (name, n + 1) if head.endswith(":") else ("", n)


def _is_rule(lines: List[str], n: int) -> bool:
    return 0 <= n < len(lines) and re.fullmatch("-{3,}", lines[n].strip()) is not None


def _block(lines: List[str], start: int, *, google: bool) -> Tuple[List[str], int]:
    """Give the lines of a section and the number of the line after it."""
    end = start
    while end < len(lines):
        line = lines[end]
        flush = bool(line.strip()) and not line[:1].isspace()
        if flush and (google or _section(lines, end)[0]):
            break
        end += 1
    return lines[start:end], end


def _entries(block: List[str], *, google: bool) -> Dict[str, str]:
    filled = [line for line in block if line.strip()]
    if not filled:
        return {}
    indent = min(len(line) - len(line.lstrip()) for line in filled)
    pattern = _GOOGLE_ENTRY if google else _NUMPY_ENTRY
    texts: Dict[str, List[str]] = {}
    names: List[str] = []
    for line in filled:
        flush = len(line) - len(line.lstrip()) == indent
        found = pattern.fullmatch(line.strip()) if flush else None
        if found:
            names = [name.strip("* ") for name in found[1].split(",")]
            for name in names:
                texts[name] = [found[2]] if google else []
        else:
            for name in names:
                texts[name].append(line.strip())
    return {name: " ".join(text).strip() for name, text in texts.items() if any(text)}


def _rest_text(lines: List[str], n: int, found: re.Match[str]) -> Tuple[str, int]:
    text = [found[2]]
    n += 1
    while n < len(lines) and lines[n][:1].isspace() and lines[n].strip():
        text.append(lines[n].strip())
        n += 1
    return " ".join(text).strip(), n
