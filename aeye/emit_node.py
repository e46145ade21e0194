"""What a JSON Schema means: a graph of nodes, one class for each construct.

Definitions are nodes of their own, reached by ``Ref``: a graph is as large as its
schema, however often a definition is used. Which references close a cycle is decided
here too, so that every part of the layer breaks a cycle at the same place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import (
    AbstractSet,
    Any,
    Callable,
    ClassVar,
    Dict,
    FrozenSet,
    Iterator,
    Optional,
    Tuple,
    TypeVar,
)

from .descriptor import FormatDescriptor
from .schema import Schema

__all__ = [
    "AllOf",
    "Anything",
    "Array",
    "Choice",
    "Flaw",
    "Graph",
    "Literal",
    "MAX_INLINE_DEPTH",
    "MAX_INLINE_NODES",
    "Never",
    "Node",
    "Null",
    "Object",
    "Property",
    "ROOT",
    "Record",
    "Ref",
    "Scalar",
    "TupleNode",
    "admits_null",
    "as_schema",
    "children",
    "remember",
]

# The key of the root among a graph's nodes.
ROOT = "#"
# A definition up to this size is written out where a reference carries notes.
_MAX_SMALL = 200
_MAX_SMALL_DEPTH = 20
# What a dialect without ``$defs`` is sent at most: nodes, and nodes within nodes.
MAX_INLINE_NODES = 5000
MAX_INLINE_DEPTH = 60
# Derived results kept per schema: nine dialects, a few results each.
_MAX_REMEMBERED = 256

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Node:
    """One place of a schema.

    ``notes`` are annotations; ``checks`` are keywords that only narrow, in the
    source's words. Both are read-only.
    """

    kind: ClassVar[str] = ""

    path: str
    notes: Dict[str, Any] = field(default_factory=dict)
    checks: Dict[str, Any] = field(default_factory=dict)
    nullable: bool = False


@dataclass(frozen=True, eq=False)
class Anything(Node):
    """Any JSON value."""

    kind = "any"


@dataclass(frozen=True, eq=False)
class Never(Node):
    """No value at all."""

    kind = "never"


@dataclass(frozen=True, eq=False)
class Null(Node):
    """Null and nothing else."""

    kind = "null"


@dataclass(frozen=True, eq=False)
class Scalar(Node):
    """A string, number, integer or boolean."""

    kind = "scalar"

    type: str = "string"


@dataclass(frozen=True, eq=False)
class Literal(Node):
    """One of some values; null among them is ``nullable`` instead."""

    kind = "literal"

    # None when the values have several types.
    type: Optional[str] = None
    values: Tuple[Any, ...] = ()
    # Written as ``const``.
    const: bool = False
    # The source itself says the type.
    typed: bool = False
    # No list or dict among the values.
    scalar: bool = True


@dataclass(frozen=True, eq=False)
class Property:
    """One property of an object."""

    name: str
    node: Node
    required: bool


@dataclass(frozen=True, eq=False)
class Object(Node):
    """An object with named properties."""

    kind = "object"

    properties: Tuple[Property, ...] = ()
    # What other keys hold, where the source says so.
    tail: Optional[Node] = None
    closed: bool = False
    # ``additionalProperties: true`` in so many words.
    open: bool = False
    patterns: Tuple[Tuple[str, Node], ...] = ()
    # The source's ``additionalProperties`` beside ``patterns``.
    beside: Optional[Node] = None


@dataclass(frozen=True, eq=False)
class Record(Node):
    """A map from keys to values."""

    kind = "record"

    key: Optional[Node] = None
    value: Node = field(default_factory=lambda: Anything("$"))
    # Nothing is said about the values, as in ``{"type": "object"}``.
    bare: bool = False
    patterns: Tuple[Tuple[str, Node], ...] = ()
    beside: Optional[Node] = None


@dataclass(frozen=True, eq=False)
class Array(Node):
    """A list of any length."""

    kind = "array"

    items: Node = field(default_factory=lambda: Anything("$"))


@dataclass(frozen=True, eq=False)
class TupleNode(Node):
    """A list whose first items have places of their own."""

    kind = "tuple"

    items: Tuple[Node, ...] = ()
    # What further items are; None when there are none.
    rest: Optional[Node] = None
    # Further items are allowed, though the source says nothing about them.
    open: bool = False
    # How many of the items must be there.
    least: int = 0


@dataclass(frozen=True, eq=False)
class Choice(Node):
    """One of several shapes, null not among them."""

    kind = "choice"

    branches: Tuple[Node, ...] = ()
    # Written as ``oneOf``.
    exclusive: bool = False


@dataclass(frozen=True, eq=False)
class AllOf(Node):
    """Several shapes at once that could not be put together into one."""

    kind = "all_of"

    members: Tuple[Node, ...] = ()


@dataclass(frozen=True, eq=False)
class Ref(Node):
    """Another node of the graph, by its key."""

    kind = "ref"

    # The definition (or root) in which the reference stands, and the one it names.
    owner: str = ROOT
    target: str = ROOT


@dataclass(frozen=True)
class Flaw:
    """Where the graph means less, or more, than the schema says."""

    path: str
    # "ambiguous": some valid values do not fit. "lost": some invalid ones do.
    kind: str
    message: str


@dataclass(frozen=True, eq=False)
class Graph:
    """A schema's nodes: the root and every definition that it reaches."""

    nodes: Dict[str, Node]
    # Key of a definition → the name it had.
    names: Dict[str, str]
    # References that lead back to where they stand, as (owner, target).
    back: FrozenSet[Tuple[str, str]]
    # Keys, definitions before what uses them (cycles aside).
    order: Tuple[str, ...]
    # How many nodes a key stands for when its references are written out.
    sizes: Dict[str, int]
    # And how deep it then is.
    depths: Dict[str, int]
    # Keys whose node null is a value of.
    null_keys: FrozenSet[str]
    # Keys from which no cycle is reached.
    acyclic: FrozenSet[str]
    flaws: Tuple[Flaw, ...]

    @property
    def root(self) -> Node:
        """The node of the schema itself."""
        return self.nodes[ROOT]

    def spelling(self, ref: Ref, descriptor: FormatDescriptor) -> str:
        """Say how *ref* is written: ``root``, ``defs``, ``inline``, ``placeholder``."""
        is_root = ref.target == ROOT
        if (ref.owner, ref.target) in self.back:
            allowed = (
                descriptor.allow_root_ref if is_root else descriptor.allow_defs_ref
            )
            if not (descriptor.supports_recursion and allowed):
                return "placeholder"
        if is_root:
            return "root"
        if descriptor.allow_defs_ref:
            return "defs"
        if (
            self.sizes[ROOT] <= MAX_INLINE_NODES
            and self.depths[ROOT] <= MAX_INLINE_DEPTH
        ):
            return "inline"
        return "placeholder"

    def is_small(self, key: str) -> bool:
        """Say whether a definition may be written out beside its ``$defs`` entry."""
        return (
            key in self.acyclic
            and self.sizes[key] <= _MAX_SMALL
            and self.depths[key] <= _MAX_SMALL_DEPTH
        )

    def target(self, node: Node) -> Node:
        """Follow *node* to what is not a reference."""
        while isinstance(node, Ref):
            node = self.nodes[node.target]
        return node

    def admits_null(self, node: Node) -> bool:
        """Say whether null is a value of *node*."""
        return admits_null(node, self.null_keys)

    def walk(self) -> Iterator[Node]:
        """Yield every node once, in the order of the source, the root first."""
        for start in self.nodes.values():
            stack = [start]
            while stack:
                node = stack.pop()
                yield node
                stack.extend(reversed(children(node)))


def admits_null(node: Node, null_keys: AbstractSet[str]) -> bool:
    """Say whether null is a value of *node*, given of which definitions it is."""
    if node.nullable or isinstance(node, Null):
        return True
    if isinstance(node, Anything):
        return not node.checks  # which may well say "not null"
    if isinstance(node, Ref):
        return node.target in null_keys
    if isinstance(node, Choice):
        return any(admits_null(branch, null_keys) for branch in node.branches)
    if isinstance(node, AllOf):
        return all(admits_null(member, null_keys) for member in node.members)
    return False


def as_schema(source: Any) -> Schema:
    """Wrap *source*, unless it is a Schema already."""
    return source if isinstance(source, Schema) else Schema(source)


def remember(schema: Schema, key: Any, build: Callable[[], _T]) -> _T:
    """Give what *build* made for *schema* under *key*, making it when it is new."""
    cache = schema.cache
    found: Optional[_T] = cache.get(key)
    if found is None:
        found = build()
        if len(cache) >= _MAX_REMEMBERED:
            cache.clear()
        cache[key] = found
    return found


def children(node: Node) -> list[Node]:
    """List the nodes directly below *node*, references not followed."""
    if isinstance(node, Object):
        below = [entry.node for entry in node.properties]
        return below if node.tail is None else [*below, node.tail]
    if isinstance(node, Record):
        return [node.value] if node.key is None else [node.key, node.value]
    if isinstance(node, Array):
        return [node.items]
    if isinstance(node, TupleNode):
        return [*node.items] if node.rest is None else [*node.items, node.rest]
    if isinstance(node, Choice):
        return [*node.branches]
    if isinstance(node, AllOf):
        return [*node.members]
    return []
