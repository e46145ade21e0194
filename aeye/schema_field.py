"""``Field``, and what else people put into ``Annotated``.

A note is read by its attributes, so that the constraints of annotated-types, msgspec
and pydantic count as well as ours, and none of them is imported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Iterable, List, Optional, Tuple

from .errors import SchemaError
from .message import Sparse
from .schema_build import Limited, Shape, Text, Variant
from .schema_normal import Json, check_pattern, plain
from .schema_value import ABSENT, to_json

__all__ = [
    "Field",
    "apply_note",
    "dumped",
    "flat_notes",
]


@dataclass(frozen=True, repr=False)
class Field(Sparse):
    """What a schema says about one value, for use inside ``Annotated``.

    >>> from typing import Annotated
    >>> Percent = Annotated[int, Field("How full, in percent.", ge=0, le=100)]

    A *default* makes the property optional where its class gives it none.
    """

    description: Optional[str] = None
    title: Optional[str] = None
    default: Any = ...
    ge: Any = None
    gt: Any = None
    le: Any = None
    lt: Any = None
    multiple_of: Any = None
    # Characters of text, items of an array, properties of an object.
    min_length: Optional[int] = None
    max_length: Optional[int] = None
    pattern: Any = None
    format: Optional[str] = None
    examples: Iterable[Any] = ()

    def __post_init__(self) -> None:
        for name in ("description", "title", "format"):
            if not isinstance(getattr(self, name), (str, type(None))):
                raise TypeError(
                    f"Field: {name} must be text, got {getattr(self, name)!r}"
                )
        if isinstance(self.examples, (str, bytes)):
            raise TypeError(f"Field: examples must be a list, got {self.examples!r}")
        object.__setattr__(self, "examples", tuple(self.examples))

    def __hash__(self) -> int:  # defaults and examples need not be hashable
        return hash(repr(self))


# Annotated-types attribute → keyword and the types it applies to.
_BOUNDS = {
    "ge": ("minimum", ">="),
    "gt": ("exclusiveMinimum", ">"),
    "le": ("maximum", "<="),
    "lt": ("exclusiveMaximum", "<"),
}
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}


def apply_note(node: Json, shape: Shape, note: Any, path: str) -> Shape:
    """Apply one object of an ``Annotated`` to a node, in place; give the new shape.

    Raises:
        SchemaError: a constraint does not fit the type.
    """
    if isinstance(note, type):
        return shape
    for source, key in (
        ("description", "description"),
        ("documentation", "description"),
        ("title", "title"),
    ):
        text = getattr(note, source, None)
        if isinstance(text, str):
            node[key] = text
    shape = _set_bounds(node, shape, note, path)
    _set_lengths(node, note, path)
    _set_words(node, note, path)
    examples = getattr(note, "examples", None)
    if isinstance(examples, (list, tuple)) and examples:
        node["examples"] = [_example(shape, example) for example in examples]
    if isinstance(note, Field) and note.default is not ...:
        told = dumped(shape, note.default)
        if told is ABSENT:
            raise SchemaError(
                f"the default {note.default!r} does not fit the type", path=path
            )
        node["default"] = told
    return shape


def _set_bounds(node: Json, shape: Shape, note: Any, path: str) -> Shape:
    bounds: List[Tuple[str, Any]] = []
    for name, (keyword, operator) in _BOUNDS.items():
        limit = getattr(note, name, None)
        if limit is None or callable(limit):
            continue
        is_number = isinstance(limit, (int, float))
        if is_number and _set_on(node, ("integer", "number"), {keyword: limit}):
            continue
        if not _is_text(shape):
            raise SchemaError(f"{name}={limit!r} does not fit the type", path=path)
        bounds.append((operator, limit))
    # What text stands for is compared when it has been built.
    return Limited(shape, tuple(bounds)) if bounds else shape


def _is_text(shape: Shape) -> bool:
    if isinstance(shape, Variant):
        return any(_is_text(member) for _, member in shape.members)
    return isinstance(shape, (Text, Limited))


def _set_lengths(node: Json, note: Any, path: str) -> None:
    for name, prefix in (("min_length", "min"), ("max_length", "max")):
        length = getattr(note, name, None)
        if not isinstance(length, int) or (name == "min_length" and length == 0):
            continue
        fits = [
            _set_on(node, (kind,), {prefix + suffix: length})
            for kind, suffix in _LENGTHS.items()
        ]
        if not any(fits):
            raise SchemaError(f"{name} fits nothing that has a length", path=path)


def _set_words(node: Json, note: Any, path: str) -> None:
    pattern = getattr(note, "pattern", None)
    if isinstance(pattern, re.Pattern):
        pattern = pattern.pattern
    if isinstance(pattern, str):
        check_pattern(pattern, path)
    for key, value in (("pattern", pattern), ("format", getattr(note, "format", None))):
        if isinstance(value, str) and not _set_on(node, ("string",), {key: value}):
            raise SchemaError(f"{key} fits text only", path=path)
    step = getattr(note, "multiple_of", None)
    if isinstance(step, (int, float)) and not _set_on(
        node, ("integer", "number"), {"multipleOf": step}
    ):
        raise SchemaError("multiple_of fits numbers only", path=path)


def _set_on(node: Json, kinds: Tuple[str, ...], keywords: Json) -> bool:
    """Add *keywords* to every branch of *node* that is of one of *kinds*."""
    if "anyOf" in node:
        found = [_set_on(branch, kinds, keywords) for branch in node["anyOf"]]
        return any(found)
    if "$ref" in node or node.get("type", kinds[0]) in kinds:
        node.update(keywords)
        return True
    return False


def flat_notes(notes: Iterable[Any]) -> Iterable[Any]:
    """Take pydantic's field objects apart: they keep constraints in a list."""
    for note in notes:
        yield note
        inner = getattr(note, "metadata", None)
        if isinstance(inner, (list, tuple)):
            yield from inner


def _example(shape: Shape, example: Any) -> Any:
    told = dumped(shape, example)
    return to_json(example) if told is ABSENT else told


def dumped(shape: Shape, value: Any) -> Any:
    """Give the JSON of a default, ``ABSENT`` if it has none."""
    try:
        return plain(shape.dump(value))
    except (TypeError, ValueError, RecursionError):
        return ABSENT
