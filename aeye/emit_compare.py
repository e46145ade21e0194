"""Two nodes on one wire: can a value be both, and would it be read differently?

Both questions are answered on the safe side: ``apart`` says True only when no value
can be both, ``is_harmful`` says False only when it does not matter.
"""

from __future__ import annotations

from typing import Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple

from .descriptor import FormatDescriptor
from .emit_match import Matcher, is_capped, is_numbered, means_any
from .emit_merge import json_type, same_json
from .emit_node import (
    AllOf,
    Array,
    Choice,
    Literal,
    Node,
    Object,
    Property,
    Record,
    Ref,
    Scalar,
    TupleNode,
    children,
)

__all__ = ["all_apart", "apart", "find_unnatural", "is_harmful", "tags_of"]

# Nodes on the way down from the two that are compared, and pairs of nodes compared in
# all for one schema and dialect; beyond, the answer is the safe one.
_MAX_LEVELS = 30
_MAX_PAIRS = 20_000
_MAX_BRANCHES = 64


def all_apart(nodes: Sequence[Node], matcher: Matcher) -> bool:
    """Say whether no value on the wire fits two of *nodes*."""
    if len(nodes) > _MAX_BRANCHES:
        return tags_of(nodes, matcher) is not None
    return all(
        apart(one, two, matcher)
        for index, one in enumerate(nodes)
        for two in nodes[index + 1 :]
    )


def tags_of(
    nodes: Sequence[Node], matcher: Matcher
) -> tuple[str, dict[str, Node]] | None:
    """Find the property whose constant text names the branch, if there is one.

    Returns:
        The property's name and the branch for each of its values; None when not
        every branch is an object with such a property, or two share a value.
    """
    objects: List[Object] = []
    for node in nodes:
        target = matcher.graph.target(node)
        if not isinstance(target, Object):
            return None
        objects.append(target)
    for name in [entry.name for entry in objects[0].properties if entry.required]:
        tags: Dict[str, Node] = {}
        for node, target in zip(nodes, objects):
            values = _texts_of(target, name, matcher)
            if not values or not tags.keys().isdisjoint(values):
                break
            tags.update(dict.fromkeys(values, node))
        else:
            return name, tags
    return None


def _texts_of(node: Object, name: str, matcher: Matcher) -> list[str]:
    """List the texts a required property may be; none unless they are constants."""
    for entry in node.properties:
        if entry.name == name and entry.required:
            held = matcher.graph.target(entry.node)
            if isinstance(held, Literal) and held.type == "string":
                d = matcher.descriptor
                if not held.nullable and not is_capped(held, d):
                    return list(held.values)
    return []


def find_unnatural(
    matcher: Matcher, also: Callable[[Node], bool] | None = None
) -> frozenset[int]:
    """Give the ids of nodes below which the wire differs from the source's shape.

    What is not among them is decoded by leaving it alone. *also* may add nodes that
    are to be looked at for another reason.
    """
    graph = matcher.graph
    found = set()
    changed = True
    while changed:  # until nothing new is reached: references may form cycles
        changed = False
        for key in graph.order:
            for node in reversed(list(_below(graph.nodes[key]))):
                if id(node) not in found and (
                    _is_unnatural(node, matcher)
                    or (also is not None and also(node))
                    or any(id(child) in found for child in children(node))
                    or (isinstance(node, Ref) and id(graph.target(node)) in found)
                ):
                    found.add(id(node))
                    changed = True
    return frozenset(found)


def _below(node: Node) -> list[Node]:
    nodes = [node]
    for each in nodes:  # grows while it is read
        nodes.extend(children(each))
    return nodes


def _is_unnatural(node: Node, matcher: Matcher) -> bool:
    d = matcher.descriptor
    if means_any(node, d):
        return d.any_encoding == "recursive-strict"
    if isinstance(node, Record):
        return d.record_encoding == "array-of-pairs"
    if isinstance(node, TupleNode):
        return is_numbered(node, d)
    if isinstance(node, Object):
        return any(
            matcher.nulls_absent(entry) or _null_is_default(entry, matcher)
            for entry in node.properties
        )
    return False


def _null_is_default(entry: Property, matcher: Matcher) -> bool:
    d = matcher.descriptor
    return (
        d.strict
        and matcher.has_default(entry)
        and not matcher.graph.admits_null(entry.node)
    )


def apart(one: Node, two: Node, matcher: Matcher, level: int = 0) -> bool:
    """Say whether it is certain that no value on the wire fits both nodes."""
    graph, known = matcher.graph, matcher.apart
    if graph.admits_null(one) and graph.admits_null(two):
        return False
    one, two = graph.target(one), graph.target(two)
    pair = (id(one), id(two))
    if pair not in known:
        if level > _MAX_LEVELS or len(known) > _MAX_PAIRS:
            return False
        known[pair] = False  # should the question come up again on the way
        known[pair] = _find_apart(one, two, matcher, level + 1)
    return known[pair]


def _find_apart(one: Node, two: Node, matcher: Matcher, level: int) -> bool:
    d = matcher.descriptor
    for a, b in ((one, two), (two, one)):
        if isinstance(a, Choice):
            return all(apart(branch, b, matcher, level) for branch in a.branches)
        if isinstance(a, AllOf):
            return any(apart(member, b, matcher, level) for member in a.members)
    types = _wire_types(one, d), _wire_types(two, d)
    if types[0] is None or types[1] is None:
        return False
    if types[0].isdisjoint(types[1]):
        return True
    if isinstance(one, Literal) and isinstance(two, Literal):
        if is_capped(one, d) or is_capped(two, d):
            return False
        return not any(same_json(a, b) for a in one.values for b in two.values)
    return _objects_apart(one, two, matcher, level)


def _wire_types(node: Node, d: FormatDescriptor) -> Optional[FrozenSet[str]]:
    """Name the types of a node's values on the wire, null aside; None: any."""
    if means_any(node, d):
        return None
    if isinstance(node, Scalar):
        return frozenset({_widened(node.type)})
    if isinstance(node, Literal):
        return frozenset(_widened(json_type(value)) for value in node.values)
    if isinstance(node, Object):
        return frozenset({"object"})
    if isinstance(node, Record):
        pairs = d.record_encoding == "array-of-pairs"
        return frozenset({"array" if pairs else "object"})
    if isinstance(node, TupleNode):
        return frozenset({"object" if is_numbered(node, d) else "array"})
    if isinstance(node, Array):
        return frozenset({"array"})
    return frozenset()


def _widened(name: str) -> str:
    return "number" if name == "integer" else name  # 1.0 is both


# What an object holds on the wire: (node, whether it must be there, whether null
# may stand for its absence) by key, and whether there may be other keys.
_Keys = Tuple[Dict[str, Tuple[Node, bool, bool]], bool]


def _keys_of(node: Node, matcher: Matcher) -> _Keys | None:
    d = matcher.descriptor
    if isinstance(node, TupleNode) and is_numbered(node, d):
        items = enumerate(node.items)
        return {str(i): (item, True, i >= node.least) for i, item in items}, False
    if not isinstance(node, Object):
        return None
    keys = {
        entry.name: (
            entry.node,
            entry.required or d.object_all_fields_required,
            matcher.nulls_absent(entry),
        )
        for entry in node.properties
    }
    return keys, not (node.closed or d.object_closed_by_default)


def _objects_apart(one: Node, two: Node, matcher: Matcher, level: int) -> bool:
    ours, theirs = _keys_of(one, matcher), _keys_of(two, matcher)
    if ours is None or theirs is None:
        return False
    for (mine, _), (other, other_open) in ((ours, theirs), (theirs, ours)):
        for name, (node, required, null) in mine.items():
            if not required:
                continue
            if name not in other:
                if not other_open:
                    return True
                continue
            there, there_required, there_null = other[name]
            nulls = [
                null or matcher.graph.admits_null(node),
                there_null or matcher.graph.admits_null(there),
            ]
            if there_required and not all(nulls) and apart(node, there, matcher, level):
                return True
    return False


def is_harmful(
    one: Node, two: Node, matcher: Matcher, unnatural: FrozenSet[int], level: int = 0
) -> bool:
    """Say whether some value on the wire fits both and may be read in two ways.

    *unnatural* is what ``find_unnatural`` found.
    """
    one, two = matcher.graph.target(one), matcher.graph.target(two)
    if one is two or (id(one) not in unnatural and id(two) not in unnatural):
        return False
    known, pair = matcher.harmful, (id(one), id(two))
    if pair not in known:
        if level > _MAX_LEVELS or len(known) > _MAX_PAIRS:
            return True
        known[pair] = False  # going round in a circle adds no harm
        known[pair] = not apart(one, two, matcher) and _find_harm(
            one, two, matcher, unnatural, level + 1
        )
    return known[pair]


def _find_harm(
    one: Node, two: Node, matcher: Matcher, unnatural: FrozenSet[int], level: int
) -> bool:
    for a, b in ((one, two), (two, one)):
        if isinstance(a, Choice):
            return any(
                is_harmful(branch, b, matcher, unnatural, level)
                for branch in a.branches
            )
    for node in (one, two):
        types = _wire_types(node, matcher.descriptor)
        if types is not None and types.isdisjoint({"array", "object"}):
            return False  # texts, numbers and the like are never rewritten
    if isinstance(one, Array) and isinstance(two, Array):
        return is_harmful(one.items, two.items, matcher, unnatural, level)
    if isinstance(one, Record) and isinstance(two, Record):
        return is_harmful(one.value, two.value, matcher, unnatural, level)
    if isinstance(one, Object) and isinstance(two, Object):
        return _objects_harmful(one, two, matcher, unnatural, level)
    return True


def _objects_harmful(
    one: Object, two: Object, matcher: Matcher, unnatural: FrozenSet[int], level: int
) -> bool:
    ours = {entry.name: entry for entry in one.properties}
    theirs = {entry.name: entry for entry in two.properties}
    if one.tail is not None or two.tail is not None:
        return True
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        a, b = ours.get(name), theirs.get(name)
        if a is None or b is None:
            only = a or b
            if only is None or _is_rewritten(only, matcher, unnatural):
                return True
        elif _null_readings_differ(a, b, matcher) or is_harmful(
            a.node, b.node, matcher, unnatural, level
        ):
            return True
    return False


def _is_rewritten(entry: Property, matcher: Matcher, unnatural: FrozenSet[int]) -> bool:
    return id(entry.node) in unnatural or matcher.nulls_absent(entry)


def _null_readings_differ(a: Property, b: Property, matcher: Matcher) -> bool:
    """Say whether null may stand in both places, and means two things."""
    absent = matcher.nulls_absent(a), matcher.nulls_absent(b)
    if absent[0] == absent[1]:
        return False
    other = b if absent[0] else a
    return matcher.graph.admits_null(other.node)
