"""What a JSON Schema means: a graph of nodes, one class for each construct.

JSON Schema lets one thing be said in many ways: null by a type array or a branch, a
map by ``additionalProperties`` or ``patternProperties``, an object in the pieces of
an ``allOf``. Emitting, decoding and budgeting want to know what is meant, so it is
worked out once per schema, for all dialects:

>>> graph = graph_of(Schema({"type": ["integer", "null"], "minimum": 1}))
>>> graph.root
Scalar(path='$', notes={}, checks={'minimum': 1}, nullable=True, type='integer')

Definitions are nodes of their own, reached by ``Ref``: a graph is as large as its
schema, however often a definition is used. Which references close a cycle is decided
here too, so that every part of the layer breaks a cycle at the same place.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import (
    Any,
    Callable,
    ClassVar,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Optional,
    Set,
    Tuple,
    TypeVar,
)

from .descriptor import FormatDescriptor
from .emit_merge import (
    ANNOTATIONS,
    TYPE_KEYWORDS,
    hidden_parts,
    infer_types,
    json_type,
    merge_flat,
    split_schema,
)
from .schema import Schema
from .schema_pattern import runnable

__all__ = [
    "AllOf",
    "Anything",
    "Array",
    "Choice",
    "Flaw",
    "Graph",
    "Literal",
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
    "as_schema",
    "children",
    "graph_of",
    "remember",
]

# The key of the root among a graph's nodes.
ROOT = "#"
# Nodes within nodes, not counting through references. Deeper ones are "any".
_MAX_DEPTH = 60
# Pieces of ``allOf`` and ``anyOf`` put together before the rest stays as it is.
_MAX_MERGES = 500
# A definition up to this size is written out where a reference carries notes.
_MAX_SMALL = 200
# What a dialect without ``$defs`` is sent at most.
MAX_INLINE_NODES = 5000
# Derived results kept per schema: nine dialects, a few results each.
_MAX_REMEMBERED = 256

_NEVER: Tuple[Any, ...] = ({"not": {}}, {"not": True})

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
    # Nothing but ``{"type": "object"}``.
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
        if self.sizes[ROOT] > MAX_INLINE_NODES:
            return "placeholder"
        return "inline"

    def is_small(self, key: str) -> bool:
        """Say whether a definition may be written out beside its ``$defs`` entry."""
        return key in self.acyclic and self.sizes[key] <= _MAX_SMALL

    def target(self, node: Node) -> Node:
        """Follow *node* to what is not a reference."""
        while isinstance(node, Ref):
            node = self.nodes[node.target]
        return node

    def admits_null(self, node: Node) -> bool:
        """Say whether null is a value of *node*."""
        return self._admits_null(node, frozenset())

    def _admits_null(self, node: Node, seen: FrozenSet[str]) -> bool:
        if node.nullable or isinstance(node, (Anything, Null)):
            return True
        if isinstance(node, Ref):
            if node.target in seen:
                return False
            seen = seen | {node.target}
            return self._admits_null(self.nodes[node.target], seen)
        if isinstance(node, Choice):
            return any(self._admits_null(branch, seen) for branch in node.branches)
        if isinstance(node, AllOf):
            return all(self._admits_null(member, seen) for member in node.members)
        return False

    def walk(self) -> Iterator[Node]:
        """Yield every node once, in the order of the source, the root first."""
        for start in self.nodes.values():
            stack = [start]
            while stack:
                node = stack.pop()
                yield node
                stack.extend(reversed(children(node)))


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


def graph_of(schema: Schema) -> Graph:
    """Work out what *schema* means; the same object for the same schema."""
    return remember(schema, "graph", lambda: _Builder(schema.json).graph())


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


@dataclass(frozen=True)
class _Place:
    """Where a node is built: its path, the definition around it, its depth."""

    path: str
    owner: str
    depth: int = 0

    def below(self, *keys: Any) -> _Place:
        steps = "".join(f".{key}" for key in keys)
        return _Place(self.path + steps, self.owner, self.depth + 1)


class _Builder:
    """Reads one schema."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._nodes: Dict[str, Node] = {}
        self._names: Dict[str, str] = {}
        self._edges: Dict[str, List[str]] = {}
        self._own_sizes: Dict[str, int] = {}
        self._flaws: Dict[Flaw, None] = {}
        self._merges = 0
        self._pending: List[str] = []
        # A root that is only a reference is what it refers to.
        self._root_names: Set[str] = {ROOT}

    def graph(self) -> Graph:
        source: Any = self._source
        notes: Dict[str, Any] = {}
        while isinstance(source, dict) and "$ref" in source:
            own, combinators, flat = split_schema(source)
            target = self._look_up(source["$ref"])
            if flat or set(combinators) != {"$ref"} or target is None:
                break
            if source["$ref"] in self._root_names:
                source = True
                break
            self._root_names.add(source["$ref"])
            notes = {**own, **notes}
            source = target
        self._start(ROOT)
        root = self._build(source, _Place("$", ROOT))
        self._nodes[ROOT] = dataclasses.replace(root, notes={**root.notes, **notes})
        while self._pending:
            key = self._pending.pop(0)
            self._start(key)
            place = _Place(f"${key[1:].replace('/', '.')}", key)
            self._nodes[key] = self._build(self._look_up(key), place)
        return self._finish()

    def _start(self, key: str) -> None:
        self._edges[key] = []
        self._own_sizes[key] = 0

    def _finish(self) -> Graph:
        enter, leave, order = _number(self._edges)
        back = frozenset(
            (owner, target)
            for owner, targets in self._edges.items()
            for target in targets
            if enter[target] <= enter[owner] and leave[target] >= leave[owner]
        )
        sizes: Dict[str, int] = {}
        acyclic: Set[str] = set()
        for key in order:
            onward = [t for t in self._edges[key] if (key, t) not in back]
            sizes[key] = self._own_sizes[key] + sum(sizes[t] for t in onward)
            if len(onward) == len(self._edges[key]) and acyclic.issuperset(onward):
                acyclic.add(key)
        return Graph(
            nodes=self._nodes,
            names=self._names,
            back=back,
            order=tuple(order),
            sizes=sizes,
            acyclic=frozenset(acyclic),
            flaws=tuple(self._flaws),
        )

    # References

    def _look_up(self, ref: str) -> Any:
        """Give what a local pointer points at, or None."""
        node = self._source
        for step in ref.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and step.isdigit() and int(step) < len(node):
                node = node[int(step)]
            elif isinstance(node, dict) and step in node:
                node = node[step]
            else:
                return None
        return node

    def _resolve(self, ref: str) -> tuple[str | None, dict[str, Any]]:
        """Follow aliases; give the key at their end (None: nothing) and notes."""
        notes: Dict[str, Any] = {}
        seen: Set[str] = set()
        while ref not in self._root_names:
            target = self._look_up(ref)
            if target is None or ref in seen:
                return None, notes
            seen.add(ref)
            own, combinators, flat = split_schema(target)
            if flat or set(combinators) != {"$ref"}:
                return ref, notes
            notes = {**own, **notes}
            ref = combinators["$ref"]
        return ROOT, notes

    def _ref(self, ref: str, notes: dict[str, Any], place: _Place) -> Node:
        key, more = self._resolve(ref)
        notes = {**more, **notes}
        if key is None:
            self._flaw(place, "lost", f"{ref!r} leads nowhere; taken as any value")
            return Anything(place.path, notes)
        if key not in self._names:
            self._names[key] = key.rsplit("/", 1)[-1]
            if key != ROOT:
                self._pending.append(key)
        self._edges[place.owner].append(key)
        return Ref(place.path, notes, owner=place.owner, target=key)

    # Any schema

    def _build(self, source: Any, place: _Place) -> Node:
        self._own_sizes[place.owner] += 1
        if source is False or source in _NEVER:
            return Never(place.path)
        if not isinstance(source, dict) or not source:
            return Anything(place.path)
        notes, combinators, flat = split_schema(source)
        if place.depth > _MAX_DEPTH:
            self._flaw(place, "lost", "nested too deeply; taken as any value")
            return Anything(place.path, notes)
        if not combinators:
            return self._flat(flat, notes, place)
        if not flat and len(combinators) == 1:
            (word, value), *_ = combinators.items()
            if word == "$ref":
                return self._ref(value, notes, place)
            if word in ("anyOf", "oneOf"):
                return self._choice(word, value, notes, place)
        return self._conjunction(source, notes, place)

    def _choice(
        self, word: str, sources: list[Any], notes: dict[str, Any], place: _Place
    ) -> Node:
        branches = [
            self._build(source, place.below(word, index))
            for index, source in enumerate(sources)
        ]
        return self._join(branches, word == "oneOf", notes, place)

    def _join(
        self, branches: list[Node], exclusive: bool, notes: dict[str, Any], at: _Place
    ) -> Node:
        """Make one node of several, null and impossible ones taken out."""
        nullable = any(isinstance(b, Null) or b.nullable for b in branches)
        left = [
            dataclasses.replace(b, nullable=False) if b.nullable else b
            for b in branches
            if not isinstance(b, (Null, Never))
        ]
        if len(left) > 1:
            return Choice(
                at.path,
                notes,
                nullable=nullable,
                branches=tuple(left),
                exclusive=exclusive,
            )
        if left:
            only = left[0]
            return dataclasses.replace(
                only, notes={**only.notes, **notes}, nullable=nullable
            )
        return Null(at.path, notes) if nullable else Never(at.path, notes)

    # Several schemas at once

    def _conjunction(
        self, source: dict[str, Any], notes: dict[str, Any], place: _Place
    ) -> Node:
        flats: List[Any] = []
        choices: List[Tuple[str, List[Any]]] = []
        self._merges += 1
        merged: Any = None
        whole = self._gather(source, flats, choices, frozenset())
        if whole and self._merges <= _MAX_MERGES:
            merged = {}
            for flat in flats:
                merged = merge_flat(merged, flat)
                if merged is None:
                    break
        if merged is None:
            return self._apart(source, notes, place)
        if merged is False:
            return Never(place.path, notes)
        notes = {**{k: v for k, v in merged.items() if k in ANNOTATIONS}, **notes}
        flat = {k: v for k, v in merged.items() if k not in ANNOTATIONS}
        self._absorb_narrowing(flat, choices)
        if not choices:
            return self._flat(flat, notes, place)
        (word, sources), *others = choices
        around = [flat] if flat else []
        beside = [{other: branches} for other, branches in others]
        branches = [
            self._build(
                {"allOf": [*around, branch, *beside]} if around or beside else branch,
                place.below(word, index),
            )
            for index, branch in enumerate(sources)
        ]
        return self._join(branches, word == "oneOf", notes, place)

    def _gather(
        self,
        source: Any,
        flats: list[Any],
        choices: list[tuple[str, list[Any]]],
        seen: FrozenSet[str],
    ) -> bool:
        """Collect what *source* asks for at once; False where that has no end."""
        if not isinstance(source, dict):
            if source is False:
                flats.append(False)
            return True
        if len(seen) > _MAX_DEPTH or len(flats) > _MAX_MERGES:
            return False
        notes, combinators, flat = split_schema(source)
        if seen and "unevaluatedProperties" in flat:
            return False  # it would see more properties than it is meant to
        if flat or notes:
            flats.append({**flat, **notes})
        choices.extend(
            (word, combinators[word])
            for word in ("anyOf", "oneOf")
            if word in combinators
        )
        parts = list(combinators.get("allOf", ()))
        if "$ref" in combinators:
            key, _ = self._resolve(combinators["$ref"])
            if key is None or key in seen or key == ROOT:
                return False
            if not self._gather(self._look_up(key), flats, choices, seen | {key}):
                return False
        marked = seen | {f"{len(seen)}"}
        return all(self._gather(part, flats, choices, marked) for part in parts)

    def _absorb_narrowing(
        self, flat: dict[str, Any], choices: list[tuple[str, list[Any]]]
    ) -> None:
        """Keep as a check a choice that only says which properties must be there.

        Spelling it out would repeat the whole object once per branch.
        """
        for word, branches in list(choices):
            plain = all(
                isinstance(branch, dict) and hidden_parts(branch) for branch in branches
            )
            if plain and word not in flat and ("properties" in flat):
                flat[word] = branches
                choices.remove((word, branches))

    def _apart(
        self, source: dict[str, Any], notes: dict[str, Any], place: _Place
    ) -> Node:
        """Keep the pieces of *source* as they are."""
        _, combinators, flat = split_schema(source)
        parts = [flat] if flat else []
        parts += [
            {word: value} for word, value in combinators.items() if word != "allOf"
        ]
        parts += combinators.get("allOf", ())
        members = [
            self._build(part, place.below("allOf", index))
            for index, part in enumerate(parts)
        ]
        members = [m for m in members if not isinstance(m, Anything) or m.checks]
        if len(members) == 1:
            only = members[0]
            return dataclasses.replace(only, notes={**only.notes, **notes})
        if not members:
            return Anything(place.path, notes)
        return AllOf(place.path, notes, members=tuple(members))

    # One schema without combinators

    def _flat(self, flat: dict[str, Any], notes: dict[str, Any], place: _Place) -> Node:
        if "enum" in flat or "const" in flat:
            return self._literal(flat, notes, place)
        said = flat.get("type")
        types = [said] if isinstance(said, str) else list(said or ())
        nullable = "null" in types
        left = [name for name in types if name != "null"]
        if "number" in left and "integer" in left:
            left.remove("integer")
        if not types:
            left = infer_types(flat)
            if len(left) != 1:
                if left:
                    self._flaw(place, "lost", "says no type; taken as any value")
                return Anything(place.path, notes, _checks(flat, None))
            self._flaw(place, "ambiguous", f"says no type; taken as {left[0]}")
        if not left:
            return Null(place.path, notes)
        if len(left) == 1:
            node = self._typed(left[0], flat, notes, place)
            return dataclasses.replace(node, nullable=True) if nullable else node
        branches = [self._typed(name, flat, {}, place) for name in left]
        if nullable:
            branches.append(Null(place.path))
        return self._join(branches, False, notes, place)

    def _typed(
        self, name: str, flat: dict[str, Any], notes: dict[str, Any], place: _Place
    ) -> Node:
        if name == "object":
            return self._object(flat, notes, place)
        if name == "array":
            return self._array(flat, notes, place)
        return Scalar(place.path, notes, _checks(flat, name), type=name)

    def _literal(
        self, flat: dict[str, Any], notes: dict[str, Any], place: _Place
    ) -> Node:
        values = list(flat["enum"]) if "enum" in flat else [flat["const"]]
        if "enum" in flat and "const" in flat:
            values = [v for v in values if _same(v, flat["const"])]
        said = flat.get("type")
        types = [said] if isinstance(said, str) else list(said or ())
        if types:
            values = [v for v in values if _has_type(v, types)]
        kept: List[Any] = []
        for value in values:
            if not any(_same(value, other) for other in kept):
                kept.append(value)
        nullable = None in kept
        kept = [v for v in kept if v is not None]
        if not kept:
            return Null(place.path, notes) if nullable else Never(place.path, notes)
        found = {json_type(v) for v in kept}
        if found == {"integer", "number"}:
            found = {"number"}
        named = [name for name in types if name != "null"]
        name = found.pop() if len(found) == 1 else None
        if name == "integer" and named == ["number"]:
            name = "number"
        return Literal(
            place.path,
            notes,
            _checks(flat, name),
            nullable,
            type=None if name in ("object", "array") else name,
            values=tuple(kept),
            const="const" in flat and len(kept) == 1 and not nullable,
            typed=bool(named),
            scalar=not any(isinstance(v, (dict, list)) for v in kept),
        )

    def _object(
        self, flat: dict[str, Any], notes: dict[str, Any], place: _Place
    ) -> Node:
        declared = flat.get("properties", {})
        required = list(flat.get("required", ()))
        other = flat.get("additionalProperties")
        patterns = tuple(
            (pattern, self._build(source, place.below("patternProperties", pattern)))
            for pattern, source in flat.get("patternProperties", {}).items()
        )
        beside = (
            None
            if other is None or other is True
            else self._build(other, place.below("additionalProperties"))
        )
        tail = self._tail(patterns, beside, place)
        properties = []
        for name, source in declared.items():
            node = self._build(source, place.below("properties", name))
            if isinstance(node, Never):
                self._flaw(place.below("properties", name), "lost", "is never there")
                continue
            properties.append(Property(name, node, name in required))
        for name in dict.fromkeys(required):
            held = self._undeclared(name, patterns, beside, place)
            if name not in declared and not isinstance(held, Never):
                properties.append(Property(name, held, True))
        checks = _checks(flat, "object")
        is_map = not ("properties" in flat and other is None) and other is not False
        if not properties and (patterns or is_map):
            return self._record(flat, notes, place, patterns, beside, checks)
        return Object(
            place.path,
            notes,
            checks,
            properties=tuple(properties),
            tail=tail,
            closed=other is False and not patterns,
            open=other is True,
            patterns=patterns,
            beside=beside,
        )

    def _record(
        self,
        flat: dict[str, Any],
        notes: dict[str, Any],
        place: _Place,
        patterns: tuple[tuple[str, Node], ...],
        beside: Node | None,
        checks: dict[str, Any],
    ) -> Node:
        tail = self._tail(patterns, beside, place)
        names = checks.pop("propertyNames", None)
        key: Optional[Node] = None
        if isinstance(names, dict):
            key = self._build({"type": "string", **names}, place.below("propertyNames"))
        elif len(patterns) == 1 and (beside is None or isinstance(beside, Never)):
            key = Scalar(place.path, checks={"pattern": patterns[0][0]})
        structural = {"additionalProperties", "patternProperties", "propertyNames"}
        return Record(
            place.path,
            notes,
            checks,
            key=key,
            value=tail or Anything(f"{place.path}.additionalProperties"),
            bare=not structural & set(flat),
            patterns=patterns,
            beside=beside,
        )

    def _undeclared(
        self,
        name: str,
        patterns: tuple[tuple[str, Node], ...],
        beside: Node | None,
        place: _Place,
    ) -> Node:
        """Say what a key holds that is required, but no property."""
        matching = []
        for pattern, node in patterns:
            known = runnable(pattern)
            if known is not None and re.search(known, name):
                matching.append(node)
        if len(matching) == 1:
            return matching[0]
        if matching or beside is None:
            return Anything(f"{place.path}.properties.{name}")
        return beside

    def _tail(
        self,
        patterns: tuple[tuple[str, Node], ...],
        beside: Node | None,
        place: _Place,
    ) -> Node | None:
        """Say what a key that is no property holds; None where nothing is said."""
        nodes = [node for _, node in patterns]
        if beside is not None:
            nodes.append(beside)
        if all(isinstance(node, Never) for node in nodes):
            return None
        return self._join(nodes, False, {}, place.below("additionalProperties"))

    def _array(
        self, flat: dict[str, Any], notes: dict[str, Any], place: _Place
    ) -> Node:
        checks = _checks(flat, "array")
        most = flat.get("maxItems")
        first = flat.get("prefixItems", [])
        if most is not None and most < len(first):
            first = first[: int(most)]
        rest = flat.get("items", True)
        if not first:
            items = False if most == 0 else rest
            node = self._build(items, place.below("items"))
            return Array(place.path, notes, checks, items=node)
        items = tuple(
            self._build(source, place.below("prefixItems", index))
            for index, source in enumerate(first)
        )
        ends = rest is False or (most is not None and most <= len(first))
        said = "items" in flat and rest is not True
        return TupleNode(
            place.path,
            notes,
            checks,
            items=items,
            rest=self._build(rest, place.below("items")) if said and not ends else None,
            open=not said and not ends,
            least=min(int(flat.get("minItems", 0)), len(items)),
        )

    def _flaw(self, place: _Place, kind: str, message: str) -> None:
        self._flaws[Flaw(place.path, kind, message)] = None


def _checks(flat: dict[str, Any], name: str | None) -> dict[str, Any]:
    """Pick the narrowing keywords that apply to a type (None: to any)."""
    others = {
        keyword
        for other, keywords in TYPE_KEYWORDS.items()
        if other != ("number" if name == "integer" else name)
        for keyword in keywords
    }
    structure = {
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "items",
        "prefixItems",
    }
    return {k: v for k, v in flat.items() if k not in others and k not in structure}


def _same(a: Any, b: Any) -> bool:
    """Compare as JSON does: true is not 1, but 1.0 is."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b)


def _has_type(value: Any, types: list[str]) -> bool:
    name = json_type(value)
    if name in types or (name == "integer" and "number" in types):
        return True
    return name == "number" and "integer" in types and float(value).is_integer()


def _number(
    edges: dict[str, list[str]],
) -> tuple[dict[str, int], dict[str, int], list[str]]:
    """Walk depth first; say when each key was entered and left, and in what order."""
    enter: Dict[str, int] = {ROOT: 0}
    leave: Dict[str, int] = {}
    order: List[str] = []
    clock = 1
    stack = [(ROOT, iter(edges[ROOT]))]
    while stack:
        key, targets = stack[-1]
        for target in targets:
            if target not in enter:
                enter[target] = clock
                clock += 1
                stack.append((target, iter(edges[target])))
                break
        else:
            stack.pop()
            leave[key] = clock
            clock += 1
            order.append(key)
    return enter, leave, order
