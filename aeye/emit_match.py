"""Which values fit a node: as the source means it, or as a dialect spells it.

A reply is decoded branch by branch, so the branch must be known before the value is
whole again. ``Matcher`` answers by shape, constants, keys and bounds, without running
a validator; what it leaves out (``not``, ``if``, formats) only ever makes it say yes
too often, and validation against the source has the last word.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Optional, Pattern, Tuple
from typing import Literal as TypingLiteral

from .descriptor import LENIENT, FormatDescriptor
from .emit_merge import has_type, same_json
from .emit_node import (
    AllOf,
    Anything,
    Array,
    Choice,
    Graph,
    Literal,
    Node,
    Object,
    Property,
    Record,
    Ref,
    Scalar,
    TupleNode,
    children,
    remember,
)
from .emit_read import graph_of
from .schema import Schema
from .schema_pattern import runnable

__all__ = [
    "MAX_VALUE_DEPTH",
    "Matcher",
    "Memo",
    "Mode",
    "is_capped",
    "is_numbered",
    "is_pair_list",
    "matcher_of",
    "means_any",
    "usable_default",
]

# Containers within containers of a value; nothing deeper is looked into.
MAX_VALUE_DEPTH = 200
# Longer texts are not tried against a pattern just to choose a branch.
_MAX_PATTERN_TEXT = 2000

# As what a value may fit: as the source means it; the same, but without keys that
# the source does not name; or as the dialect spells it.
Mode = TypingLiteral["source", "declared", "wire"]

# (id of a value, id of a node, mode) → (the value, kept alive, and the answer)
Memo = Dict[Tuple[int, int, Mode], Tuple[Any, bool]]


def matcher_of(schema: Schema, descriptor: FormatDescriptor) -> Matcher:
    """Give the matcher of a schema and a dialect."""
    return remember(
        schema, ("match", descriptor), lambda: Matcher(graph_of(schema), descriptor)
    )


def means_any(node: Node, descriptor: FormatDescriptor) -> bool:
    """Say whether a dialect spells *node* as "any JSON value"."""
    if isinstance(node, Literal) and not node.scalar:
        return descriptor.strict  # vendors document enums of scalars only
    return isinstance(node, Anything)


def is_pair_list(value: Any) -> bool:
    """Say whether *value* is a non-empty list of ``{"key": text, "value": …}``.

    >>> is_pair_list([{"key": "a", "value": 1}]), is_pair_list([])
    (True, False)
    """
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(entry, dict)
            and len(entry) == 2
            and "value" in entry
            and isinstance(entry.get("key"), str)
            for entry in value
        )
    )


def usable_default(graph: Graph, entry: Property) -> bool:
    """Say whether a property's default is one of its values.

    Many are not: ``"default": null`` on a string is common, and means "optional". Nor
    is an object that would hold the same default again, and so on without end.
    """
    notes = _notes_of(graph, entry.node)
    if "default" not in notes:
        return False
    default = notes["default"]
    if isinstance(default, (dict, list)) and _leads_to_cycle(graph, entry.node):
        return False
    try:
        return Matcher(graph, LENIENT).fits(entry.node, default, {})
    except RecursionError:
        return False  # a thousand definitions, each a choice of the next


def _leads_to_cycle(graph: Graph, node: Node) -> bool:
    if isinstance(node, Ref):
        return node.target not in graph.acyclic
    return any(_leads_to_cycle(graph, child) for child in children(node))


def _notes_of(graph: Graph, node: Node) -> dict[str, Any]:
    if isinstance(node, Ref) and "default" not in node.notes:
        return graph.target(node).notes
    return node.notes


class Matcher:
    """Fits values to the nodes of one graph, by shape."""

    def __init__(self, graph: Graph, descriptor: FormatDescriptor) -> None:
        self.graph = graph
        self.descriptor = descriptor
        # What ``emit_compare`` found out about pairs of nodes, by their ids.
        self.apart: Dict[Tuple[int, int], bool] = {}
        self.harmful: Dict[Tuple[int, int], bool] = {}
        self._patterns: Dict[str, Optional[Pattern[str]]] = {}
        self._defaults: Dict[int, bool] = {}
        self._tests: Dict[str, Callable[[Any, Any, Memo, Mode, int], bool]] = {
            "any": lambda *_: True,
            "never": lambda *_: False,
            "null": lambda *_: False,
            "scalar": self._fits_scalar,
            "literal": self._fits_literal,
            "object": self._fits_object,
            "record": self._fits_record,
            "array": self._fits_array,
            "tuple": self._fits_tuple,
            "choice": self._fits_choice,
            "all_of": self._fits_all,
            "ref": self._fits_ref,
        }

    def has_default(self, entry: Property) -> bool:
        """Say whether an absent property takes a default."""
        known = self._defaults.get(id(entry))
        if known is None:
            known = usable_default(self.graph, entry)
            self._defaults[id(entry)] = known
        return known

    def default(self, entry: Property) -> Any:
        """Give the default of a property that has one."""
        return _notes_of(self.graph, entry.node)["default"]

    def nulls_absent(self, entry: Property) -> bool:
        """Say whether null stands for absence of a property on the wire."""
        d = self.descriptor
        return (
            d.optional_as_nullable
            and not entry.required
            and not self.has_default(entry)
            and not self.graph.admits_null(entry.node)
        )

    def fits(
        self, node: Node, value: Any, memo: Memo, mode: Mode = "source", depth: int = 0
    ) -> bool:
        """Say whether *value* fits, as the source means it or as *mode* says.

        *memo* spares looking at one place twice; use a new one for each reply.
        """
        if value is None:
            return self.graph.admits_null(node)
        if depth > MAX_VALUE_DEPTH:
            return True
        test = self._tests[node.kind]
        if not isinstance(value, (dict, list)):
            return test(node, value, memo, mode, depth)
        key = (id(value), id(node), mode)
        known = memo.get(key)
        if known is None:
            known = (value, test(node, value, memo, mode, depth))
            memo[key] = known
        return known[1]

    def _wire(self, mode: Mode) -> FormatDescriptor | None:
        return self.descriptor if mode == "wire" else None

    def _fits_ref(
        self, node: Ref, value: Any, memo: Memo, mode: Mode, depth: int
    ) -> bool:
        d = self._wire(mode)
        if d is not None and self.graph.spelling(node, d) == "placeholder":
            mode = "source"  # what follows is not spelled differently
        return self.fits(self.graph.target(node), value, memo, mode, depth)

    def _fits_choice(
        self, node: Choice, value: Any, memo: Memo, mode: Mode, depth: int
    ) -> bool:
        for branch in node.branches:
            if self.fits(branch, value, memo, mode, depth):
                return True
        return False

    def _fits_all(
        self, node: AllOf, value: Any, memo: Memo, mode: Mode, depth: int
    ) -> bool:
        for member in node.members:
            if not self.fits(member, value, memo, mode, depth):
                return False
        return True

    def _fits_literal(
        self, node: Literal, value: Any, memo: Memo, mode: Mode, depth: int
    ) -> bool:
        d = self._wire(mode)
        if d is not None:
            if means_any(node, d):
                return True
            if is_capped(node, d):
                return node.type is None or has_type(value, node.type)
        return any(same_json(value, known) for known in node.values)

    def _fits_scalar(
        self, node: Scalar, value: Any, memo: Memo, mode: Mode, depth: int
    ) -> bool:
        if not has_type(value, node.type):
            return False
        if not node.checks:
            return True
        if isinstance(value, str):
            return self._fits_text(node.checks, value)
        return node.type == "boolean" or _fits_number(node.checks, value)

    def _fits_text(self, checks: dict[str, Any], value: str) -> bool:
        size = len(value)
        if size < checks.get("minLength", 0) or size > checks.get("maxLength", size):
            return False
        if "pattern" not in checks or size > _MAX_PATTERN_TEXT:
            return True
        pattern = self._pattern(checks["pattern"])
        return pattern is None or pattern.search(value) is not None

    def _pattern(self, text: str) -> Pattern[str] | None:
        """Compile a pattern; None where it is not to be run."""
        if text not in self._patterns:
            known = runnable(text)
            self._patterns[text] = None if known is None else re.compile(known)
        return self._patterns[text]

    def _fits_object(
        self, node: Object, value: Any, memo: Memo, mode: Mode, depth: int
    ) -> bool:
        if not isinstance(value, dict):
            return False
        d = self._wire(mode)
        everything = d is not None and d.object_all_fields_required
        for entry in node.properties:
            if entry.name not in value:
                if entry.required or everything:
                    return False
                continue
            held = value[entry.name]
            if held is None and d is not None and self.nulls_absent(entry):
                continue
            if not self.fits(entry.node, held, memo, mode, depth + 1):
                return False
        names = {entry.name for entry in node.properties}
        others = [held for name, held in value.items() if name not in names]
        tail = node.tail
        closed = node.closed or (mode == "declared" and tail is None)
        if others and (closed or (d is not None and d.object_closed_by_default)):
            return False
        return tail is None or all(
            self.fits(tail, held, memo, mode, depth + 1) for held in others
        )

    def _fits_record(
        self, node: Record, value: Any, memo: Memo, mode: Mode, depth: int
    ) -> bool:
        d = self._wire(mode)
        if d is not None and d.record_encoding == "array-of-pairs":
            if value != [] and not is_pair_list(value):
                return False
            entries = [(pair["key"], pair["value"]) for pair in value]
        elif isinstance(value, dict):
            entries = list(value.items())
        else:
            return False
        for key, held in entries:
            if node.key is not None and not self.fits(node.key, key, memo):
                return False
            if not self.fits(node.value, held, memo, mode, depth + 1):
                return False
        return True

    def _fits_array(
        self, node: Array, value: Any, memo: Memo, mode: Mode, depth: int
    ) -> bool:
        if not isinstance(value, list) or not _fits_size(node.checks, len(value)):
            return False
        return all(self.fits(node.items, item, memo, mode, depth + 1) for item in value)

    def _fits_tuple(
        self, node: TupleNode, value: Any, memo: Memo, mode: Mode, depth: int
    ) -> bool:
        d = self._wire(mode)
        if d is not None and is_numbered(node, d):
            return self._fits_numbered(node, value, memo, depth)
        if not isinstance(value, list) or not _fits_size(node.checks, len(value)):
            return False
        known = len(node.items)
        ends = node.rest is None and not node.open
        if len(value) < node.least or (ends and len(value) > known):
            return False
        for index, held in enumerate(value):
            place = node.items[index] if index < known else node.rest
            if place is None:
                break
            if not self.fits(place, held, memo, mode, depth + 1):
                return False
        return True

    def _fits_numbered(
        self, node: TupleNode, value: Any, memo: Memo, depth: int
    ) -> bool:
        if not isinstance(value, dict) or len(value) != len(node.items):
            return False
        for index, item in enumerate(node.items):
            if str(index) not in value:
                return False
            held = value[str(index)]
            if held is None and index >= node.least:
                continue
            if not self.fits(item, held, memo, "wire", depth + 1):
                return False
        return True


def is_capped(node: Literal, descriptor: FormatDescriptor) -> bool:
    """Say whether an enum has more values than a dialect takes."""
    most = descriptor.max_enum_values
    return most is not None and not node.const and len(node.values) > most


def is_numbered(node: TupleNode, descriptor: FormatDescriptor) -> bool:
    """Say whether a dialect spells a tuple as an object with keys "0", "1", ….

    One with further items cannot be: it has no last key.
    """
    return descriptor.tuple_encoding == "object-numeric-keys" and node.rest is None


def _fits_size(checks: dict[str, Any], size: int) -> bool:
    return bool(checks.get("minItems", 0) <= size <= checks.get("maxItems", size))


def _fits_number(checks: dict[str, Any], value: Any) -> bool:
    if value < checks.get("minimum", value) or value > checks.get("maximum", value):
        return False
    if "exclusiveMinimum" in checks and value <= checks["exclusiveMinimum"]:
        return False
    if "exclusiveMaximum" in checks and value >= checks["exclusiveMaximum"]:
        return False
    step = checks.get("multipleOf")
    if step is None or not step:
        return True
    if isinstance(step, int) and isinstance(value, int):
        return value % step == 0
    try:
        ratio = value / step
        return bool(int(ratio) == ratio)
    except (OverflowError, ValueError):
        return True
