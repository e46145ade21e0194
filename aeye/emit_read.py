"""From a schema's text to what it means: the graph of ``emit_node``.

JSON Schema lets one thing be said in many ways: null by a type array or a branch, a
map by ``additionalProperties`` or ``patternProperties``, an object in the pieces of
an ``allOf``. Emitting, decoding and budgeting want to know what is meant, so it is
worked out once per schema, for all dialects:

>>> graph = graph_of(Schema({"type": ["integer", "null"], "minimum": 1}))
>>> graph.root
Scalar(path='$', notes={}, checks={'minimum': 1}, nullable=True, type='integer')
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Set, Tuple

from .emit_merge import (
    ANNOTATIONS,
    TYPE_KEYWORDS,
    has_type,
    infer_types,
    json_type,
    merge_flat,
    same_json,
    says_presence_only,
    split_schema,
)
from .emit_node import (
    ROOT,
    AllOf,
    Anything,
    Array,
    Choice,
    Flaw,
    Graph,
    Literal,
    Never,
    Node,
    Null,
    Object,
    Property,
    Record,
    Ref,
    Scalar,
    TupleNode,
    admits_null,
    remember,
)
from .schema import Schema
from .schema_pattern import runnable

__all__ = ["graph_of"]

# Nodes within nodes, not counting through references. Deeper ones are "any".
_MAX_DEPTH = 60
# Pieces of ``allOf`` and ``anyOf`` put together before the rest stays as it is.
_MAX_MERGES = 500
# Definitions put together in one place.
_MAX_PIECES = 50
# How often a definition is put together with something inside of itself.
_MAX_UNFOLDED = 3
# Where the name begins in the key of a definition.
_NAME = len("#/$defs/")

# What beside ``type`` leaves no question which type is meant.
_SAYS_TYPE = frozenset({"type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf"})
_NEVER: Tuple[Any, ...] = ({"not": {}}, {"not": True})


def graph_of(schema: Schema) -> Graph:
    """Work out what *schema* means; the same object for the same schema."""
    return remember(schema, "graph", lambda: _Builder(schema.json).graph())


@dataclass(frozen=True)
class _Place:
    """Where a node is built: its path, the definition around it, its depth."""

    path: str
    owner: str
    depth: int = 0
    # Definitions that are being put together with something around this place.
    merging: Tuple[str, ...] = ()

    def below(self, *keys: Any) -> _Place:
        steps = "".join(f".{key}" for key in keys)
        return replace(self, path=self.path + steps, depth=self.depth + 1)


@dataclass
class _Pieces:
    """What a schema asks for at once."""

    flats: List[Any] = field(default_factory=list)
    choices: List[Tuple[str, List[Any]]] = field(default_factory=list)
    # The definitions it was found in.
    keys: List[str] = field(default_factory=list)
    # Whether nothing changes its meaning when it is put together.
    whole: bool = True


class _Builder:
    """Reads one schema."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._nodes: Dict[str, Node] = {}
        self._names: Dict[str, str] = {}
        self._edges: Dict[str, List[str]] = {}
        self._own_sizes: Dict[str, int] = {}
        self._own_depths: Dict[str, int] = {}
        self._flaws: Dict[Flaw, None] = {}  # a set that keeps its order
        self._merges = 0
        self._pending: List[str] = []

    def graph(self) -> Graph:
        self._start(ROOT)
        self._nodes[ROOT] = self._build(self._source, _Place("$", ROOT))
        for key in self._pending:  # grows while it is read
            self._start(key)
            place = _Place(f"${key[1:].replace('/', '.')}", key)
            self._nodes[key] = self._build(self._look_up(key), place)
        return self._finish()

    def _start(self, key: str) -> None:
        self._edges[key] = []
        self._own_sizes[key] = 0
        self._own_depths[key] = 0

    def _finish(self) -> Graph:
        enter, leave, order = _number(self._edges)
        back = frozenset(
            (owner, target)
            for owner, targets in self._edges.items()
            for target in targets
            if enter[target] <= enter[owner] and leave[target] >= leave[owner]
        )
        sizes: Dict[str, int] = {}
        depths: Dict[str, int] = {}
        acyclic: Set[str] = set()
        for key in order:
            onward = [t for t in self._edges[key] if (key, t) not in back]
            sizes[key] = self._own_sizes[key] + sum(sizes[t] for t in onward)
            below = max((depths[t] for t in onward), default=0)
            depths[key] = self._own_depths[key] + below
            if len(onward) == len(self._edges[key]) and acyclic.issuperset(onward):
                acyclic.add(key)
        return Graph(
            nodes=self._nodes,
            names=self._names,
            back=back,
            order=tuple(order),
            sizes=sizes,
            depths=depths,
            null_keys=self._find_null_keys(order),
            acyclic=frozenset(acyclic),
            flaws=tuple(self._flaws),
        )

    def _find_null_keys(self, order: list[str]) -> frozenset[str]:
        found: Set[str] = set()
        before = -1
        while before < len(found):  # a choice may be in terms of later definitions
            before = len(found)
            found.update(key for key in order if admits_null(self._nodes[key], found))
        return frozenset(found)

    # References

    def _look_up(self, key: str) -> Any:
        return self._source if key == ROOT else self._source["$defs"][key[_NAME:]]

    def _ref(self, key: str, notes: dict[str, Any], place: _Place) -> Node:
        while key != ROOT:  # a definition may be another name for one
            own, combinators, flat = split_schema(self._look_up(key))
            if flat or set(combinators) != {"$ref"}:
                break
            notes = {**own, **notes}
            key = combinators["$ref"]
        if key not in self._names:
            self._names[key] = key[_NAME:]
            if key != ROOT:
                self._pending.append(key)
        self._edges[place.owner].append(key)
        return Ref(place.path, notes, owner=place.owner, target=key)

    # Any schema

    def _build(self, source: Any, place: _Place) -> Node:
        self._own_sizes[place.owner] += 1
        deepest = max(self._own_depths[place.owner], place.depth + 1)
        self._own_depths[place.owner] = deepest
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
            replace(b, nullable=False) if b.nullable else b
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
            return replace(only, notes={**only.notes, **notes}, nullable=nullable)
        return Null(at.path, notes) if nullable else Never(at.path, notes)

    # Several schemas at once

    def _conjunction(
        self, source: dict[str, Any], notes: dict[str, Any], place: _Place
    ) -> Node:
        self._merges += 1
        found = _Pieces()
        self._gather(source, found, inner=False)
        merged: Any = {}
        if self._merges > _MAX_MERGES or not found.whole:
            merged = None
        for key in found.keys:
            if place.merging.count(key) >= _MAX_UNFOLDED:
                merged = None
        for flat in found.flats:
            merged = None if merged is None else merge_flat(merged, flat)
        if merged is None:
            return self._apart(source, notes, place)
        if merged is False:
            return Never(place.path, notes)
        notes = {**{k: v for k, v in merged.items() if k in ANNOTATIONS}, **notes}
        flat = {k: v for k, v in merged.items() if k not in ANNOTATIONS}
        place = replace(place, merging=(*place.merging, *found.keys))
        _absorb_narrowing(flat, found.choices)
        if not found.choices:
            return self._flat(flat, notes, place)
        (word, sources), *others = found.choices
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

    def _gather(self, source: Any, found: _Pieces, inner: bool) -> None:
        """Collect what *source* asks for at once."""
        if len(found.keys) > _MAX_PIECES:
            found.whole = False
            return
        if not isinstance(source, dict):
            if source is False:
                found.flats.append(False)
            return
        notes, combinators, flat = split_schema(source)
        if inner and "unevaluatedProperties" in flat:
            found.whole = False  # it would see more properties than it is meant to
        if flat or notes:
            found.flats.append({**flat, **notes})
        for word in ("anyOf", "oneOf"):
            if word in combinators:
                found.choices.append((word, combinators[word]))
        if "$ref" in combinators:
            key = combinators["$ref"]
            found.keys.append(key)
            self._gather(self._look_up(key), found, inner=True)
        for part in combinators.get("allOf", ()):
            self._gather(part, found, inner=True)

    def _apart(
        self, source: dict[str, Any], notes: dict[str, Any], place: _Place
    ) -> Node:
        """Keep the pieces of *source* as they are."""
        _, combinators, flat = split_schema(source)
        pieces = combinators.pop("allOf", [])
        said = _said_type([flat, *pieces])
        beside: List[Any] = [flat] if flat else []
        for word, value in combinators.items():
            branches = word != "$ref"
            held = [_with_type(one, said) for one in value] if branches else value
            beside.append({word: held})
        members = [self._build(part, place.below()) for part in beside]
        members += [
            self._build(_with_type(piece, said), place.below("allOf", index))
            for index, piece in enumerate(pieces)
        ]
        members = [m for m in members if not isinstance(m, Anything) or m.checks]
        if len(members) == 1:
            only = members[0]
            return replace(only, notes={**only.notes, **notes})
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
            return replace(node, nullable=True) if nullable else node
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
            values = [v for v in values if same_json(v, flat["const"])]
        said = flat.get("type")
        types = [said] if isinstance(said, str) else list(said or ())
        if types:
            values = [v for v in values if any(has_type(v, name) for name in types)]
        kept = _distinct(values)
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
        return Record(
            place.path,
            notes,
            checks,
            key=key,
            value=tail or Anything(f"{place.path}.additionalProperties"),
            bare=not patterns and (beside is None or _says_nothing(beside)),
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


def _said_type(pieces: list[Any]) -> Any:
    """Give the type that one of *pieces* says for all of them."""
    for piece in pieces:
        if isinstance(piece, dict) and "type" in piece:
            return piece["type"]
    return None


def _with_type(piece: Any, said: Any) -> Any:
    """Say the type in *piece*, where it stands in another that holds as well."""
    if said is None or not isinstance(piece, dict) or piece.keys() & _SAYS_TYPE:
        return piece
    return {"type": said, **piece} if infer_types(piece) else piece


def _distinct(values: list[Any]) -> list[Any]:
    """Drop what was there before; true is not 1, and 1.0 is."""
    kept: List[Any] = []
    scalars: Set[Tuple[bool, Any]] = set()
    for value in values:
        if isinstance(value, (dict, list)):
            if any(same_json(value, other) for other in kept):
                continue
        elif (value is True or value is False, value) in scalars:
            continue
        else:
            scalars.add((value is True or value is False, value))
        kept.append(value)
    return kept


def _says_nothing(node: Node) -> bool:
    return isinstance(node, Anything) and not node.checks and not node.notes


def _absorb_narrowing(
    flat: dict[str, Any], choices: list[tuple[str, list[Any]]]
) -> None:
    """Keep as a check a choice that only says which properties must be there.

    Spelling it out would repeat the whole object once per branch.
    """
    for word, branches in list(choices):
        plain = all(
            isinstance(branch, dict) and says_presence_only(branch)
            for branch in branches
        )
        if plain and word not in flat and "properties" in flat:
            flat[word] = branches
            choices.remove((word, branches))


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
