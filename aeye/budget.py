"""What a dialect has room for: whether a schema fits, and who goes strict.

>>> from aeye.descriptor import ANTHROPIC_STRICT
>>> budget = SchemaBudget(ANTHROPIC_STRICT)
>>> budget.allocate_tool({"type": "object", "properties": {}}, 1).id
'anthropic-strict'
>>> budget.remaining().strict_tools
19
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from .descriptor import (
    FormatDescriptor,
    ToJSONSchemaOptions,
    get_descriptor,
    resolve_descriptor,
)
from .emit import emission_of
from .emit_compare import find_unnatural, is_harmful
from .emit_match import Matcher, is_numbered, matcher_of, means_any
from .emit_merge import json_type
from .emit_node import (
    ROOT,
    AllOf,
    Array,
    Choice,
    Graph,
    Literal,
    Never,
    Node,
    Object,
    Record,
    Ref,
    TupleNode,
    as_schema,
    children,
    remember,
)
from .emit_read import graph_of
from .schema import Schema, unsafe_pattern

__all__ = [
    "EnumFeature",
    "Reason",
    "Remaining",
    "SchemaBudget",
    "SchemaFeatures",
    "analyze_schema",
    "can_express",
    "check_schema_size_limits",
    "explain",
    "strict_priority",
    "strictest_of",
]

# What a tool or prompt says of strictness: always, never, or how much it matters.
Requested = Union[bool, int, float, None]


@dataclass(frozen=True)
class EnumFeature:
    """How much one enum takes."""

    value_count: int
    # Characters of its texts.
    string_value_chars: int


@dataclass(frozen=True)
class SchemaFeatures:
    """What a schema asks of any dialect, rounded up to the widest spelling."""

    has_recursion: bool
    # Properties that may be absent, at every level.
    optional_parameter_count: int
    # Places with several types, nullable ones included.
    union_type_count: int
    record_count: int
    tuple_count: int
    enums: Tuple[EnumFeature, ...]
    # A record counts for two, a tuple for each of its items.
    object_property_count: int
    # Containers below the root; a record counts for two.
    max_nesting_depth: int
    # Property names and constant texts.
    string_size_chars: int


@dataclass(frozen=True)
class Reason:
    """Something that a dialect cannot do for a schema."""

    path: str
    # "strict": it cannot go out strict. "output": it can as a tool's arguments, its
    # cycles cut short, but not as structured output. "lost": the emitted schema does
    # not say it; it is checked when the value has come back. "ambiguous": a value has
    # no place on the wire, or may be read from it in two ways. "pattern": a pattern
    # that is not run, because it may take exponential time.
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message} (at {self.path})"


@dataclass(frozen=True)
class Remaining:
    """What is left of a request's budget; None is without limit."""

    strict_tools: Optional[int]
    optional_params: Optional[int]
    union_types: Optional[int]


def analyze_schema(schema: Any) -> SchemaFeatures:
    """Measure *schema*; a definition counts once, however often it is used."""
    source = as_schema(schema)
    return remember(source, "features", lambda: _measure(graph_of(source)))


def check_schema_size_limits(schema: Any, descriptor: ToJSONSchemaOptions) -> list[str]:
    """Name every size limit of the dialect that *schema* breaks."""
    limits = resolve_descriptor(descriptor).schema_size_limits
    if limits is None:
        return []
    found = analyze_schema(schema)
    values = sum(enum.value_count for enum in found.enums)
    measured = [
        ("max_object_properties", "object properties", found.object_property_count),
        ("max_nesting_depth", "levels of nesting", found.max_nesting_depth),
        ("max_total_string_chars", "characters of names", found.string_size_chars),
        ("max_total_enum_values", "enum values", values),
    ]
    problems = [
        f"{name}: {size} {what}, at most {getattr(limits, name)} allowed"
        for name, what, size in measured
        if size > getattr(limits, name)
    ]
    problems += [
        f"max_large_enum_string_chars: {enum.string_value_chars} characters in an enum "
        f"of {enum.value_count} values, at most {limits.max_large_enum_string_chars} "
        f"allowed above {limits.large_enum_value_count} values"
        for enum in found.enums
        if enum.value_count > limits.large_enum_value_count
        and enum.string_value_chars > limits.max_large_enum_string_chars
    ]
    return problems


def can_express(schema: Any, descriptor: ToJSONSchemaOptions) -> bool:
    """Say whether *schema* may go out as structured output in the dialect.

    Bounds, formats and patterns that are dropped do not matter: they are checked
    when the value has come back.
    """
    source, d = as_schema(schema), resolve_descriptor(descriptor)
    return remember(source, ("can_express", d), lambda: [_expresses(source, d)])[0]


def explain(schema: Any, descriptor: ToJSONSchemaOptions) -> Iterator[Reason]:
    """Yield every way in which the dialect falls short of *schema*.

    First what keeps it from going strict, then what the emitted schema does not say,
    then what cannot be told apart on the wire.
    """
    source, d = as_schema(schema), resolve_descriptor(descriptor)
    blocks = dict.fromkeys(_blocks(source, d, False))
    yield from blocks
    for reason in _blocks(source, d, True):
        if reason not in blocks:
            yield replace(reason, kind="output")
    yield from _root_problems(source, d)
    yield from _limits(source, d)
    for loss in emission_of(source, d).losses:
        yield Reason(loss.path, "lost", f"{d.id} has no word for {loss.message}")
    for flaw in graph_of(source).flaws:
        yield Reason(flaw.path, flaw.kind, flaw.message)
    yield from _ambiguities(source, d)
    yield from _patterns(source)


def strict_priority(requested: Requested) -> float:
    """Rank what a tool asks for: sort by it, highest first, before allocating.

    >>> sorted([1, False, True, None, 5], key=strict_priority, reverse=True)
    [True, 5, 1, None, False]
    """
    if isinstance(requested, bool):
        return math.inf if requested else -math.inf
    if requested is None:
        return 0.0
    if not isinstance(requested, (int, float)):
        raise TypeError(f"strict: a bool, a number or None, not {requested!r:.200}")
    return float(requested) if requested > 0 else 0.0


def strictest_of(a: FormatDescriptor, b: FormatDescriptor) -> FormatDescriptor:
    """Give the descriptor that leaves a request less room; *a* when they are equal."""
    if a.strict != b.strict:
        return a if a.strict else b
    return b if a.strict and sum(_room(b)) < sum(_room(a)) else a


def _room(d: FormatDescriptor) -> list[float]:
    limits = (
        d.max_strict_tools,
        d.max_strict_optional_params,
        d.max_strict_union_types,
    )
    return [math.inf if limit is None else limit for limit in limits]


class SchemaBudget:
    """Deals out one request's strict slots.

    Ask for tools and output in the order of ``strict_priority``: what is given is
    not taken back.
    """

    def __init__(
        self, tool: ToJSONSchemaOptions, output: ToJSONSchemaOptions | None = None
    ) -> None:
        self._tool = resolve_descriptor(tool)
        self._output = self._tool if output is None else resolve_descriptor(output)
        # Each counter by itself: two vendors' limits may bind in different places.
        rooms = [_room(d) for d in (self._tool, self._output) if d.strict]
        self._left = [min(room) for room in zip(*rooms)] if rooms else [math.inf] * 3

    def allocate_tool(self, schema: Any, requested: Requested) -> FormatDescriptor:
        """Give the dialect for a tool's arguments, and take what it needs."""
        return self._allocate(as_schema(schema), requested, self._tool, True)

    def allocate_output(self, schema: Any, requested: Requested) -> FormatDescriptor:
        """Give the dialect for the output, and take what it needs."""
        return self._allocate(as_schema(schema), requested, self._output, False)

    def remaining(self) -> Remaining:
        """Say what is left; below zero where ``strict=True`` took more."""
        return Remaining(*(None if n == math.inf else int(n) for n in self._left))

    def _allocate(
        self, schema: Schema, requested: Requested, d: FormatDescriptor, is_tool: bool
    ) -> FormatDescriptor:
        priority = strict_priority(requested)
        if not d.strict:
            return d
        found = analyze_schema(schema)
        needs = (
            int(is_tool),
            found.optional_parameter_count,
            found.union_type_count,
        )
        always = not is_tool and d.structured_output_always_strict
        if not always:
            plain = get_descriptor(d.family, False)
            if priority <= 0 or not _may_go_strict(schema, d, not is_tool):
                return plain
            lacks = any(left < need for left, need in zip(self._left, needs))
            if priority < math.inf and lacks:
                return plain
        self._left = [left - need for left, need in zip(self._left, needs)]
        return d


def _expresses(schema: Schema, d: FormatDescriptor) -> bool:
    if any(_blocks(schema, d, True)):
        return False
    if not d.structured_output_always_strict:
        return True
    return not any(_root_problems(schema, d)) and not any(_limits(schema, d))


def _may_go_strict(schema: Schema, d: FormatDescriptor, is_output: bool) -> bool:
    reasons = chain(
        _blocks(schema, d, is_output), _root_problems(schema, d), _limits(schema, d)
    )
    return not any(reasons)


# Why not strict


def _blocks(schema: Schema, d: FormatDescriptor, is_output: bool) -> Iterator[Reason]:
    """Yield what the dialect has no spelling for.

    A tool may have cycles that the dialect lacks, cut off by a placeholder; an output
    may not.
    """
    graph = graph_of(schema)
    for node in graph.walk():
        message = _blocking(node, graph, d, is_output)
        if message:
            yield Reason(node.path, "strict", f"{d.id} {message}")


def _blocking(
    node: Node, graph: Graph, d: FormatDescriptor, is_output: bool
) -> str | None:
    if isinstance(node, Choice) and not d.allow_any_of:
        return "has no anyOf"
    if isinstance(node, AllOf):
        if not d.allow_all_of:
            return "has no allOf"
        if d.object_closed_by_default and _holds_containers(node):
            return "closes every object, so no value fits several of them"
    if means_any(node, d) and d.any_encoding == "none":
        return "has no spelling for any JSON value"
    if isinstance(node, Never) and d.strict and node is graph.root:
        return "has no spelling for no value at all"
    if isinstance(node, Ref) and graph.spelling(node, d) == "placeholder":
        if (node.owner, node.target) not in graph.back:
            return "has no $defs, and the schema is too large without them"
        if is_output or d.any_encoding == "none":
            return "has no recursion" if not d.supports_recursion else "has no $defs"
    return None


def _root_problems(schema: Schema, d: FormatDescriptor) -> Iterator[Reason]:
    """Yield why the root would be refused: every vendor wants an object there.

    ``wrap_root`` makes one of any answer; the arguments of a tool go out as they are,
    and a dialect without maps spells a map as an array.
    """
    if d.strict and emission_of(schema, d).wire.get("type") != "object":
        message = f"{d.id} wants an object with properties at the root"
        yield Reason("$", "strict", message)


def _holds_containers(node: AllOf) -> bool:
    return any(
        not isinstance(member, Literal) and member.kind != "scalar"
        for member in node.members
    )


def _limits(schema: Schema, d: FormatDescriptor) -> Iterator[Reason]:
    """Yield the limits that *schema* breaks all by itself."""
    for problem in check_schema_size_limits(schema, d):
        yield Reason("$", "strict", f"{d.id} {problem}")
    found = analyze_schema(schema)
    for name, count, most in (
        (
            "optional properties",
            found.optional_parameter_count,
            d.max_strict_optional_params,
        ),
        ("places with several types", found.union_type_count, d.max_strict_union_types),
    ):
        if most is not None and count > most:
            yield Reason("$", "strict", f"{d.id} allows {most} {name}, not {count}")


# What is ambiguous


def _ambiguities(schema: Schema, d: FormatDescriptor) -> Iterator[Reason]:
    graph, matcher = graph_of(schema), matcher_of(schema, d)
    unnatural = find_unnatural(matcher)
    for node in graph.walk():
        message = _ambiguity(node, graph, matcher)
        if message is None and isinstance(node, Choice):
            message = _likeness(node, matcher, unnatural)
        if message is not None:
            yield Reason(node.path, "ambiguous", message)


def _ambiguity(node: Node, graph: Graph, matcher: Matcher) -> str | None:
    d = matcher.descriptor
    if means_any(node, d) and d.any_encoding == "recursive-strict":
        return "a list of keys and values may be meant as one, or as an object"
    if isinstance(node, Object):
        closes = d.object_closed_by_default and not node.closed
        if closes and (node.tail is not None or node.open):
            return "keys besides the properties have no place on the wire"
    if isinstance(node, TupleNode):
        if node.open and d.tuple_encoding != "prefix-items":
            return "items after the last that is described have no place on the wire"
        tail = node.items[node.least :]
        if is_numbered(node, d) and any(map(graph.admits_null, tail)):
            return "null may be an item at the end, or stand for none"
    return None


def _likeness(node: Choice, matcher: Matcher, unnatural: frozenset[int]) -> str | None:
    branches = node.branches
    if not any(id(branch) in unnatural for branch in branches):
        return None
    if len(branches) > 64:
        return f"{len(branches)} branches are too many to tell apart"
    for index, one in enumerate(branches):
        for later, two in enumerate(branches[index + 1 :], index + 1):
            if is_harmful(one, two, matcher, unnatural):
                return f"branches {index} and {later} may look the same on the wire"
    return None


def _patterns(schema: Schema) -> Iterator[Reason]:
    for node in graph_of(schema).walk():
        pattern = node.checks.get("pattern")
        if isinstance(pattern, str) and unsafe_pattern(pattern):
            yield Reason(
                node.path,
                "pattern",
                f"{pattern!r:.80} may take exponential time and is not checked here",
            )


# Measuring


def _measure(graph: Graph) -> SchemaFeatures:
    counts: Dict[str, int] = dict.fromkeys(
        ("optional", "union", "record", "tuple", "property", "chars"), 0
    )
    enums: List[EnumFeature] = []
    for node in graph.walk():
        _count(node, graph, counts)
        if isinstance(node, Literal) and not node.const:
            chars = sum(len(v) for v in node.values if isinstance(v, str))
            enums.append(EnumFeature(len(node.values), chars))
    return SchemaFeatures(
        has_recursion=bool(graph.back),
        optional_parameter_count=counts["optional"],
        union_type_count=counts["union"],
        record_count=counts["record"],
        tuple_count=counts["tuple"],
        enums=tuple(enums),
        object_property_count=counts["property"],
        max_nesting_depth=_depth(graph),
        string_size_chars=counts["chars"],
    )


def _count(node: Node, graph: Graph, counts: dict[str, int]) -> None:
    several = isinstance(node, Choice)
    if isinstance(node, Object):
        counts["property"] += len(node.properties)
        counts["chars"] += sum(len(entry.name) for entry in node.properties)
        counts["optional"] += sum(not entry.required for entry in node.properties)
    elif isinstance(node, Record):
        counts["record"] += 1
        counts["property"] += 2
        counts["chars"] += len("keyvalue")
    elif isinstance(node, TupleNode):
        size = len(node.items)
        counts["tuple"] += 1
        counts["property"] += size
        counts["chars"] += size
        # One anyOf of its items, in the dialects that list them.
        several = size > 1 or node.rest is not None
    elif isinstance(node, Literal):
        counts["chars"] += sum(len(v) for v in node.values if isinstance(v, str))
        several = len({json_type(value) for value in node.values}) > 1
    elif isinstance(node, Ref):
        # A reference with notes is put into an anyOf where it is not written out.
        noted = set(node.notes) - {"title"}
        several = bool(noted) and not graph.is_small(node.target)
    counts["union"] += several or node.nullable


def _depth(graph: Graph) -> int:
    """Count the containers on the longest way down, each cycle gone round once."""
    below: Dict[str, int] = {}
    for key in graph.order:
        deepest = 0
        stack = [(graph.nodes[key], 0)]
        while stack:
            node, level = stack.pop()
            if isinstance(node, Ref):
                level += below.get(node.target, 0)
            elif isinstance(node, (Object, Array, TupleNode)):
                level += 1
            elif isinstance(node, Record):
                level += 2
            deepest = max(deepest, level)
            stack.extend((child, level) for child in children(node))
        below[key] = deepest
    return below[ROOT]
