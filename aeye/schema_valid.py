"""A schema as the validator is handed it, and a quick check before it.

The schema people see says what they meant; what runs on a model's answer must also
be safe. ``prepare`` translates patterns and leaves out those that cannot or must not
run, and turns references into plain links between dicts, so that no resolver of any
version has a say. ``quick_check`` compiles the plain part of JSON Schema to a
function that only ever says "valid": on anything else it says False, and the
validator decides.
"""

from __future__ import annotations

import math
import re
from copy import copy
from typing import Any, Callable, Dict, Mapping, Optional, Set, Tuple

from .schema_normal import ANNOTATIONS, Json, subschemas, walk
from .schema_pattern import runnable

__all__ = [
    "Check",
    "LINK",
    "PATTERN",
    "has_unevaluated",
    "prepare",
    "quick_check",
]

# Holds the very node that a reference leads to.
LINK = "aeye:link"
# Holds a pattern as it was written.
PATTERN = "aeye:pattern"

# Where False says that there is no more, and the validator tells how much.
_CLOSING = frozenset(
    {"additionalProperties", "items", "unevaluatedItems", "unevaluatedProperties"}
)

Check = Callable[[Any], bool]


def prepare(root: Json, *, link: bool = True) -> Dict[int, Json]:
    """Copy a normalised schema for the validator.

    Gives the copy of each of its nodes by ``id``. Without *link* references stay as
    they are, and the copy of *root* has its ``$defs``.
    """
    return _Copier(root, link).copies


def has_unevaluated(root: Json) -> bool:
    """Whether the validator itself must be able to follow references.

    It does so to find out what ``unevaluatedItems`` and its twin apply to.
    """
    return any(
        "unevaluatedItems" in node or "unevaluatedProperties" in node
        for node in walk(root)
    )


class _Copier:
    def __init__(self, root: Json, link: bool) -> None:
        self.root = root
        self.link = link
        # What references lead to first: a chain of them is no reason to recurse.
        targets = [root, *filter(_is_node, root.get("$defs", {}).values())]
        self.copies: Dict[int, Json] = {id(node): {} for node in targets}
        for node in targets:
            self.fill(node, self.copies[id(node)])

    def copy(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        if id(node) not in self.copies:
            self.copies[id(node)] = {}
            self.fill(node, self.copies[id(node)])
        return self.copies[id(node)]

    def fill(self, node: Json, out: Json) -> None:
        for key, value in node.items():
            if key == "$ref" and self.link:
                target = self.copy(_target(self.root, value))
                out[LINK] = {"not": {}} if target is False else target
            elif key == "pattern":
                _set_pattern(out, value)
            else:
                out[key] = value
        self.copy_parts(node, out)
        if self.link:
            out.pop("$defs", None)
        self.loosen(node, out)

    def copy_parts(self, node: Json, out: Json) -> None:
        """Put the copies of the subschemas in; containers are copied once."""
        fresh: Set[str] = set()
        for (key, *rest), child in subschemas(node):
            told = self.copy(child)
            if told is False and key not in _CLOSING:
                told = {"not": {}}  # 4.26 forgets the path of what False refuses
            if not rest:
                out[key] = told
                continue
            if key not in fresh:
                fresh.add(key)
                out[key] = copy(node[key])
            out[key][rest[0]] = told

    def loosen(self, node: Json, out: Json) -> None:
        """Make sure that what is left unchecked accepts more, never less."""
        if "patternProperties" in node:
            out["patternProperties"] = told = {}
            for pattern in node["patternProperties"]:
                readable = runnable(pattern)
                child = self.copy(node["patternProperties"][pattern])
                # One that cannot be run may match any name, so none is foreign.
                told["(?:)" if readable is None else readable] = (
                    True if readable is None else child
                )
        if "not" in node and self.is_unread(node["not"]):
            del out["not"]
        if "if" in node and self.is_unread(node["if"]):
            for key in ("if", "then", "else"):
                out.pop(key, None)
        if "contains" in node and self.is_unread(node["contains"]):
            out.pop("maxContains", None)
        if any(map(self.is_unread, node.get("oneOf", ()))):
            out["allOf"] = [*out.get("allOf", ()), {"anyOf": out.pop("oneOf")}]

    def is_unread(self, node: Any) -> bool:
        """Whether something that counts in *node* will not be checked."""
        seen: Dict[int, Any] = {}
        stack = [node]
        while stack:
            node = stack.pop()
            if not isinstance(node, dict) or id(node) in seen:
                continue
            seen[id(node)] = node
            patterns = [*node.get("patternProperties", ())]
            patterns += [node["pattern"]] if "pattern" in node else []
            if any(runnable(pattern) is None for pattern in patterns):
                return True
            stack.extend(child for _, child in subschemas(node))
            if "$ref" in node:
                stack.append(_target(self.root, node["$ref"]))
        return False


def _is_node(node: Any) -> bool:
    return isinstance(node, dict)


def _target(root: Json, ref: str) -> Any:
    return root if ref == "#" else root["$defs"][ref[len("#/$defs/") :]]


def _set_pattern(out: Json, pattern: str) -> None:
    readable = runnable(pattern)
    if readable is not None:
        out["pattern"] = readable
        out[PATTERN] = pattern


class _UnsureError(Exception):
    """The schema says something that the quick check does not know."""


def quick_check(
    node: Any, root: Json, formats: Mapping[str, Callable[[str], bool]]
) -> Check | None:
    """Compile *node* to a function that is True only for valid values.

    None where the schema goes beyond types, properties, items, enums, bounds and
    unions, or is recursive. False means no more than "ask the validator".
    """
    try:
        return _Compiler(root, formats).check(node)
    except (_UnsureError, RecursionError):
        return None


_SIMPLE: Dict[str, Check] = {
    "string": lambda value: value.__class__ is str,
    "integer": lambda value: value.__class__ is int,
    "boolean": lambda value: value.__class__ is bool,
    "null": lambda value: value is None,
    "number": lambda value: (
        value.__class__ is int or (value.__class__ is float and math.isfinite(value))
    ),
}
_STRING_WORDS = frozenset({"minLength", "maxLength", "pattern", "format"})
_NUMBER_WORDS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
_WORDS: Dict[str, frozenset[str]] = {
    "string": _STRING_WORDS,
    "integer": _NUMBER_WORDS,
    "number": _NUMBER_WORDS,
    "boolean": frozenset(),
    "null": frozenset(),
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
}
_SCALARS = frozenset({str, int, bool, type(None)})


class _Compiler:
    def __init__(
        self, root: Json, formats: Mapping[str, Callable[[str], bool]]
    ) -> None:
        self.root = root
        self.formats = formats
        # None while it is being compiled.
        self.made: Dict[str, Optional[Check]] = {}

    def check(self, node: Any) -> Check:
        if node is True or (isinstance(node, dict) and not node.keys() - ANNOTATIONS):
            # Any value, as long as a look shows that it is JSON.
            return lambda value: value.__class__ in _SCALARS
        if not isinstance(node, dict):
            raise _UnsureError
        words = node.keys() - ANNOTATIONS - {"$defs"}
        if words == {"$ref"}:
            return self.check_reference(node["$ref"])
        if words == {"anyOf"}:
            return _any_of(tuple(self.check(branch) for branch in node["anyOf"]))
        if words and words <= {"type", "enum", "const"} and words != {"type"}:
            return _member_of(node)
        kind = node.get("type")
        if not isinstance(kind, str) or words - {"type"} - _WORDS[kind]:
            raise _UnsureError
        if kind == "object":
            return self.check_object(node)
        if kind == "array":
            return self.check_array(node)
        if kind == "string":
            return self.check_string(node)
        return _check_bounds(_SIMPLE[kind], node)

    def check_reference(self, ref: str) -> Check:
        if ref not in self.made:
            self.made[ref] = None
            self.made[ref] = self.check(_target(self.root, ref))
        found = self.made[ref]
        if found is None:
            raise _UnsureError  # recursive
        return found

    def check_object(self, node: Json) -> Check:
        members = {
            name: self.check(child)
            for name, child in node.get("properties", {}).items()
        }
        required = frozenset(node.get("required", ()))
        rest = node.get("additionalProperties", True)
        # Undeclared properties of a record are for the validator to look at.
        other = None if rest is False or members else self.check(rest)
        get = members.get

        def check(value: Any) -> bool:
            if value.__class__ is not dict or not required <= value.keys():
                return False
            for name, child in value.items():
                inner = get(name, other)
                if inner is None or name.__class__ is not str or not inner(child):
                    return False
            return True

        return check

    def check_array(self, node: Json) -> Check:
        item = self.check(node.get("items", True))
        least = node.get("minItems", 0)
        most = node.get("maxItems", math.inf)

        def check(value: Any) -> bool:
            return (
                value.__class__ is list
                and least <= len(value) <= most
                and all(map(item, value))
            )

        return check

    def check_string(self, node: Json) -> Check:
        least = node.get("minLength", 0)
        most = node.get("maxLength", math.inf)
        fits = self.formats.get(node.get("format", ""))
        pattern: Optional[re.Pattern[str]] = None
        if "pattern" in node:
            readable = runnable(node["pattern"])
            pattern = None if readable is None else re.compile(readable)
        if not node.keys() & _STRING_WORDS:
            return _SIMPLE["string"]

        def check(value: Any) -> bool:
            return (
                value.__class__ is str
                and least <= len(value) <= most
                and (fits is None or fits(value))
                and (pattern is None or pattern.search(value) is not None)
            )

        return check


def _any_of(checks: Tuple[Check, ...]) -> Check:
    def check(value: Any) -> bool:
        # SIM110: a generator would cost more than the checks themselves
        for branch in checks:  # noqa: SIM110  # see above
            if branch(value):
                return True
        return False

    return check


def _member_of(node: Json) -> Check:
    values = node.get("enum", [node.get("const")])
    if "enum" in node and "const" in node:
        raise _UnsureError
    kind = node.get("type")
    fits = _SIMPLE.get(kind) if isinstance(kind, str) else None
    if kind is not None and fits is None:
        raise _UnsureError
    members = frozenset(
        (value.__class__, value)
        for value in values
        if value.__class__ in _SCALARS and (fits is None or fits(value))
    )

    def check(value: Any) -> bool:
        return value.__class__ in _SCALARS and (value.__class__, value) in members

    return check


def _check_bounds(fits: Check, node: Json) -> Check:
    if not node.keys() & _NUMBER_WORDS:
        return fits
    low, above = node.get("minimum", -math.inf), node.get("exclusiveMinimum")
    high, below = node.get("maximum", math.inf), node.get("exclusiveMaximum")

    def check(value: Any) -> bool:
        return (
            fits(value)
            and low <= value <= high
            and (above is None or value > above)
            and (below is None or value < below)
        )

    return check
