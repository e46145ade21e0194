"""From a dialect's spelling of a value back to the source's, and the other way.

>>> from aeye.descriptor import OPENAI_STRICT
>>> prices = {"type": "object", "additionalProperties": {"type": "number"}}
>>> encode_wire(prices, {"tea": 2.5}, OPENAI_STRICT)
[{'key': 'tea', 'value': 2.5}]
>>> decode_wire(prices, [{"key": "tea", "value": 2.5}], OPENAI_STRICT)
{'tea': 2.5}

Decoding follows the value, not the schema; it never raises and never validates: what
does not have the shape that was asked for comes back as it is, for the source schema
to complain about. Most schemas need no decoding in most dialects, and then it is one
look-up and no walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Optional,
    Tuple,
)

from .descriptor import FormatDescriptor, ToJSONSchemaOptions, resolve_descriptor
from .emit import JSONSchema, to_json_schema
from .emit_compare import find_unnatural, tags_of
from .emit_match import (
    MAX_VALUE_DEPTH,
    Matcher,
    Memo,
    Mode,
    is_numbered,
    is_pair_list,
    matcher_of,
    means_any,
)
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
    TupleNode,
    as_schema,
    remember,
)
from .emit_read import graph_of
from .schema import Finding, Schema

__all__ = [
    "StrictSchema",
    "decode_wire",
    "encode_wire",
    "strictify",
    "unwrap_root",
    "wrap_root",
]

# How a branch is chosen: for decoding, what the model was told to write comes first;
# for encoding, a branch that names every key, since others may have no place.
_READINGS: Tuple[Mode, ...] = ("wire", "declared", "source")
_SPELLINGS: Tuple[Mode, ...] = ("declared", "source")

# A value, how many levels may still be entered, and the matcher's memo.
_Decode = Callable[[Any, int, Memo], Any]


def decode_wire(schema: Any, value: Any, descriptor: ToJSONSchemaOptions) -> Any:
    """Read *value* as the dialect spells it; give it as *schema* means it.

    A value that already has the source's shape stays what it is. Where nothing has
    to change, parts of *value* are shared with the result, or it is *value* itself;
    *value* is never modified.
    """
    schema = as_schema(schema)
    decode = _decoder(schema, resolve_descriptor(descriptor)).decode
    if decode is None:
        return value
    try:
        return decode(value, MAX_VALUE_DEPTH, {})
    except RecursionError:
        return value  # called with little stack left; validation will say so


def encode_wire(schema: Any, value: Any, descriptor: ToJSONSchemaOptions) -> Any:
    """Spell *value*, which fits *schema*, as a model would in the dialect.

    The inverse of ``decode_wire``, for values that fit the source; others are given
    back unchanged where they do not fit.
    """
    schema = as_schema(schema)
    encoder = _encoder(schema, resolve_descriptor(descriptor))
    try:
        return encoder.encode(value)
    except RecursionError:
        return value  # deeper than any value that would be valid


@dataclass(frozen=True)
class StrictSchema:
    """A schema bound to a dialect."""

    schema: Schema
    descriptor: FormatDescriptor

    @property
    def json_schema(self) -> JSONSchema:
        """What goes on the wire; a dictionary of the caller's own."""
        return to_json_schema(self.schema, self.descriptor)

    def decode(self, value: Any) -> Any:
        """Give *value* as the source means it."""
        return decode_wire(self.schema, value, self.descriptor)

    def encode(self, value: Any) -> Any:
        """Give *value* as the dialect spells it."""
        return encode_wire(self.schema, value, self.descriptor)

    def validate(self, value: Any) -> Iterator[Finding]:
        """Decode *value* and yield what is wrong with it under the source.

        So both shapes are accepted, and every constraint counts that the dialect
        could not say.
        """
        return self.schema.find(self.decode(value))


def strictify(schema: Any, descriptor: ToJSONSchemaOptions) -> StrictSchema:
    """Bind *schema* to a dialect; the same object for the same two."""
    source, dialect = as_schema(schema), resolve_descriptor(descriptor)
    return remember(
        source, ("strictify", dialect), lambda: StrictSchema(source, dialect)
    )


def wrap_root(schema: Any) -> Schema:
    """Make the root an object, as vendors want it: ``{"value": …}`` around others.

    A map is wrapped too, since some dialects spell it as a list; what is wrapped is
    the same in every dialect. Gives a Schema that is an object with properties as it
    is. Read a reply with
    ``decode_wire(schema, unwrap_root(schema, reply), descriptor)``.
    """
    source = as_schema(schema)
    if _is_plain_object(source):
        return source
    return remember(source, "wrapped", lambda: Schema(_wrapped(source.json)))


def unwrap_root(schema: Any, value: Any) -> Any:
    """Take a value out of the object that ``wrap_root`` put around it.

    A bare value, as models sometimes send it, is given as it is.

    >>> unwrap_root({"type": "integer"}, {"value": 3}), unwrap_root(int, 3)
    (3, 3)
    """
    source = as_schema(schema)
    if _is_plain_object(source):
        return value
    if isinstance(value, dict) and value.keys() == {"value"}:
        inner = value["value"]
        # A map may have the key "value" of its own; what it wraps is no scalar.
        if not source.is_object or isinstance(inner, (dict, list)):
            return inner
    return value


def _is_plain_object(schema: Schema) -> bool:
    return schema.is_object and isinstance(graph_of(schema).root, Object)


def _wrapped(source: JSONSchema) -> JSONSchema:
    definitions = dict(source.get("$defs", {}))
    inner = {keyword: held for keyword, held in source.items() if keyword != "$defs"}
    if _refers_to_root(source):
        name = "Root"
        while name in definitions:
            name += "_"
        pointer = f"#/$defs/{name}"
        definitions[name] = inner
        definitions = {
            key: _redirect(held, pointer) for key, held in definitions.items()
        }
        inner = {"$ref": pointer}
    wrapped: JSONSchema = {
        "type": "object",
        "properties": {"value": inner},
        "required": ["value"],
        "additionalProperties": False,
    }
    return {**wrapped, "$defs": definitions} if definitions else wrapped


def _refers_to_root(node: Any) -> bool:
    if isinstance(node, dict):
        return node.get("$ref") == "#" or any(map(_refers_to_root, node.values()))
    return isinstance(node, list) and any(map(_refers_to_root, node))


def _redirect(node: Any, pointer: str) -> Any:
    if isinstance(node, dict):
        return {
            key: pointer if key == "$ref" and held == "#" else _redirect(held, pointer)
            for key, held in node.items()
        }
    return (
        [_redirect(held, pointer) for held in node] if isinstance(node, list) else node
    )


def _decoder(schema: Schema, descriptor: FormatDescriptor) -> _Decoder:
    return remember(
        schema,
        ("decode", descriptor),
        lambda: _Decoder(matcher_of(schema, descriptor), descriptor),
    )


class _Decoder:
    """Functions that decode, one for each node that needs it, made when first met."""

    def __init__(self, matcher: Matcher, descriptor: FormatDescriptor) -> None:
        self._matcher = matcher
        self._graph = matcher.graph
        self._d = descriptor
        self._unnatural = find_unnatural(matcher, self._has_loose_case)
        self._made: Dict[int, Optional[_Decode]] = {}
        self.decode: Optional[_Decode] = self._make(self._graph.root)

    def _make(self, node: Node) -> _Decode | None:
        """Give the function for *node*, or None where nothing ever changes."""
        if id(node) not in self._unnatural:
            return None
        if id(node) not in self._made:
            self._made[id(node)] = self._make_new(node)
        return self._made[id(node)]

    def _make_new(self, node: Node) -> _Decode | None:
        if means_any(node, self._d):
            return _decode_any
        if isinstance(node, Ref):
            return self._follow(node)
        if isinstance(node, Object):
            return self._object(node)
        if isinstance(node, Record):
            return self._record(node)
        if isinstance(node, Array):
            return self._array(node)
        if isinstance(node, TupleNode):
            return self._tuple(node)
        if isinstance(node, Choice):
            return self._choice(node)
        if isinstance(node, Literal):
            return self._literal(node)
        return self._all_of(node) if isinstance(node, AllOf) else None

    def _has_loose_case(self, node: Node) -> bool:
        texts = isinstance(node, Literal) and node.type == "string"
        return texts and self._d.enum_case_varies

    def _literal(self, node: Literal) -> _Decode:
        known = frozenset(node.values)
        folded = _unique_folds(node.values)

        def decode(value: Any, levels: int, memo: Memo) -> Any:
            if not isinstance(value, str) or value in known:
                return value
            return folded.get(value.casefold(), value)

        return decode

    def _follow(self, node: Ref) -> _Decode:
        target = self._graph.target(node)

        def decode(value: Any, levels: int, memo: Memo) -> Any:
            # Made on the way, since definitions may be in terms of themselves.
            inner = self._make(target)
            return inner(value, levels, memo) if inner else value

        return decode

    def _object(self, node: Object) -> _Decode:
        plan = [self._plan(entry) for entry in node.properties]
        steps = [step for step in plan if step[1] or step[2] != "keep"]
        tail = self._make(node.tail) if node.tail is not None else None
        names = frozenset(entry.name for entry in node.properties)

        def decode(value: Any, levels: int, memo: Memo) -> Any:
            if not isinstance(value, dict) or not levels:
                return value
            decoded = dict(value)
            for name, inner, on_null, default in steps:
                held = decoded.get(name)
                if held is not None:
                    if inner is not None:
                        decoded[name] = inner(held, levels - 1, memo)
                elif name in decoded and on_null == "drop":
                    del decoded[name]
                elif name in decoded and on_null == "default":
                    decoded[name] = _copy(default)
            if tail is not None:
                for name in decoded.keys() - names:
                    decoded[name] = tail(decoded[name], levels - 1, memo)
            return decoded

        return decode

    def _plan(self, entry: Property) -> tuple[str, _Decode | None, str, Any]:
        """Say what becomes of a property: its value, and null in its place."""
        inner = self._make(entry.node)
        if self._matcher.nulls_absent(entry):
            return entry.name, inner, "drop", None
        admits_null = self._graph.admits_null(entry.node)
        if self._matcher.has_default(entry) and not admits_null:
            return entry.name, inner, "default", self._matcher.default(entry)
        return entry.name, inner, "keep", None

    def _record(self, node: Record) -> _Decode:
        inner = self._make(node.value)
        pairs = self._d.record_encoding == "array-of-pairs"

        def decode(value: Any, levels: int, memo: Memo) -> Any:
            if not levels:
                return value
            if isinstance(value, dict):
                entries = value
            elif pairs and isinstance(value, list):
                entries = _from_pairs(value)
                if value and not entries:
                    return value  # a list of something else
            else:
                return value
            if inner is None:
                return dict(entries)
            return {key: inner(held, levels - 1, memo) for key, held in entries.items()}

        return decode

    def _array(self, node: Array) -> _Decode:
        inner = self._make(node.items)

        def decode(value: Any, levels: int, memo: Memo) -> Any:
            if not isinstance(value, list) or not levels or inner is None:
                return value
            return [inner(item, levels - 1, memo) for item in value]

        return decode

    def _tuple(self, node: TupleNode) -> _Decode:
        places = [self._make(item) for item in node.items]
        rest = self._make(node.rest) if node.rest is not None else None
        numbered = is_numbered(node, self._d)
        # From here on, a trailing null means that the item is not there.
        null_ends = [
            index >= node.least and not self._graph.admits_null(item)
            for index, item in enumerate(node.items)
        ]

        def decode(value: Any, levels: int, memo: Memo) -> Any:
            if not levels:
                return value
            if numbered and isinstance(value, dict):
                items = _from_numbered(value, len(places))
                if items is None:
                    return value
                while items and items[-1] is None and null_ends[len(items) - 1]:
                    items.pop()
            elif isinstance(value, list):
                items = value
            else:
                return value
            decoded = []
            for index, item in enumerate(items):
                inner = places[index] if index < len(places) else rest
                decoded.append(inner(item, levels - 1, memo) if inner else item)
            return decoded

        return decode

    def _choice(self, node: Choice) -> _Decode:
        tagged = tags_of(node.branches, self._matcher)
        if tagged is not None:
            return self._tagged(*tagged)
        branches = [(branch, self._make(branch)) for branch in node.branches]
        fits = self._matcher.fits

        def decode(value: Any, levels: int, memo: Memo) -> Any:
            if not levels or not isinstance(value, (dict, list)):
                return value  # nothing else is ever spelled differently
            for mode in _READINGS:
                for branch, inner in branches:
                    if not fits(branch, value, memo, mode):
                        continue
                    decoded = inner(value, levels, memo) if inner else value
                    # A new memo: decoded values are new, and so are their ids.
                    if fits(branch, decoded, {}):
                        return decoded
            return value

        return decode

    def _tagged(self, name: str, tags: dict[str, Node]) -> _Decode:
        made = {tag: self._make(branch) for tag, branch in tags.items()}
        folded = _unique_folds(tags) if self._d.enum_case_varies else {}

        def decode(value: Any, levels: int, memo: Memo) -> Any:
            if not isinstance(value, dict):
                return value
            tag = value.get(name)
            if not isinstance(tag, str):
                return value
            if tag not in made:
                tag = folded.get(tag.casefold(), tag)
            inner = made.get(tag)
            return inner(value, levels, memo) if inner else value

        return decode

    def _all_of(self, node: AllOf) -> _Decode:
        made = [self._make(member) for member in node.members]

        def decode(value: Any, levels: int, memo: Memo) -> Any:
            for inner in made:
                if inner is not None:
                    value = inner(value, levels, memo)
            return value

        return decode


def _unique_folds(texts: Iterable[str]) -> dict[str, str]:
    """Map texts without their case to the texts, where that leaves no doubt."""
    folded: Dict[str, List[str]] = {}
    for text in texts:
        folded.setdefault(text.casefold(), []).append(text)
    return {fold: same[0] for fold, same in folded.items() if len(same) == 1}


def _decode_any(value: Any, levels: int, memo: Memo) -> Any:
    """Turn the pair lists of "any JSON value" into objects, however deep."""
    if not levels:
        return value
    if is_pair_list(value):
        return {
            entry["key"]: _decode_any(entry["value"], levels - 1, memo)
            for entry in value
        }
    if isinstance(value, list):
        return [_decode_any(item, levels - 1, memo) for item in value]
    if isinstance(value, dict):
        return {key: _decode_any(held, levels - 1, memo) for key, held in value.items()}
    return value


def _from_pairs(value: list[Any]) -> dict[str, Any]:
    """Read key and value pairs; skip what is none, and let the last of a key win."""
    return {
        entry["key"]: entry["value"]
        for entry in value
        if isinstance(entry, dict)
        and "value" in entry
        and isinstance(entry.get("key"), str)
    }


def _from_numbered(value: dict[str, Any], size: int) -> list[Any] | None:
    """Read the keys "0", "1", … as a list; None when there are other keys.

    Only declared places count: ``{"999999999": 0}`` does not make a huge list.
    """
    places = {str(index): index for index in range(size)}
    if not value or not value.keys() <= places.keys():
        return None
    items: List[Any] = [None] * (max(places[key] for key in value) + 1)
    for key, held in value.items():
        items[places[key]] = held
    return items


def _encoder(schema: Schema, descriptor: FormatDescriptor) -> _Encoder:
    return remember(
        schema,
        ("encode", descriptor),
        lambda: _Encoder(matcher_of(schema, descriptor), descriptor),
    )


class _Encoder:
    """Spells values of one schema in one dialect."""

    def __init__(self, matcher: Matcher, descriptor: FormatDescriptor) -> None:
        self._matcher = matcher
        self._graph = matcher.graph
        self._d = descriptor
        self._unnatural: FrozenSet[int] = find_unnatural(matcher)

    def encode(self, value: Any) -> Any:
        return self._encode(self._graph.root, value, {})

    def _encode(self, node: Node, value: Any, memo: Memo) -> Any:
        if value is None or not self._changes(node):
            return _copy(value)
        if means_any(node, self._d):
            return _encode_any(value) if self._is_unnatural(node) else _copy(value)
        if isinstance(value, dict):
            if isinstance(node, Object):
                return self._object(node, value, memo)
            if isinstance(node, Record):
                return self._record(node, value, memo)
        if isinstance(value, list):
            if isinstance(node, Array):
                return [self._encode(node.items, item, memo) for item in value]
            if isinstance(node, TupleNode):
                return self._tuple(node, value, memo)
        inner = self._inner(node, value, memo)
        return _copy(value) if inner is None else self._encode(inner, value, memo)

    def _inner(self, node: Node, value: Any, memo: Memo) -> Node | None:
        """Give the node that says how to spell *value* in the place of *node*."""
        if isinstance(node, Ref):
            cut = self._graph.spelling(node, self._d) == "placeholder"
            return None if cut else self._graph.target(node)
        if isinstance(node, Choice):
            for mode in _SPELLINGS:
                for branch in node.branches:
                    if self._matcher.fits(branch, value, memo, mode):
                        return branch
        if isinstance(node, AllOf):
            for member in node.members:
                if self._is_unnatural(member):
                    return member
        return None

    def _is_unnatural(self, node: Node) -> bool:
        return id(node) in self._unnatural

    def _changes(self, node: Node) -> bool:
        # All fields are required: an absent one is filled in, decoded or not.
        return self._is_unnatural(node) or self._d.object_all_fields_required

    def _object(self, node: Object, value: dict[str, Any], memo: Memo) -> Any:
        encoded: Dict[str, Any] = {}
        names = set()
        for entry in node.properties:
            names.add(entry.name)
            if entry.name in value:
                held = self._encode(entry.node, value[entry.name], memo)
            elif not self._d.object_all_fields_required:
                continue
            elif self._matcher.has_default(entry):
                held = self._encode(entry.node, self._matcher.default(entry), memo)
            else:
                held = None
            encoded[entry.name] = held
        for name, held in value.items():
            if name not in names:
                tail = node.tail
                encoded[name] = (
                    _copy(held) if tail is None else self._encode(tail, held, memo)
                )
        return encoded

    def _record(self, node: Record, value: dict[str, Any], memo: Memo) -> Any:
        entries: List[Tuple[str, Any]] = [
            (key, self._encode(node.value, held, memo)) for key, held in value.items()
        ]
        if self._d.record_encoding == "array-of-pairs":
            return [{"key": key, "value": held} for key, held in entries]
        return dict(entries)

    def _tuple(self, node: TupleNode, value: list[Any], memo: Memo) -> Any:
        known = len(node.items)
        encoded = []
        for index, item in enumerate(value):
            place = node.items[index] if index < known else node.rest
            encoded.append(
                _copy(item) if place is None else self._encode(place, item, memo)
            )
        if not is_numbered(node, self._d):
            return encoded
        encoded += [None] * (known - len(encoded))
        return {str(index): item for index, item in enumerate(encoded)}


def _encode_any(value: Any) -> Any:
    if isinstance(value, dict):
        return [{"key": key, "value": _encode_any(held)} for key, held in value.items()]
    return [_encode_any(item) for item in value] if isinstance(value, list) else value


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(held) for key, held in value.items()}
    return [_copy(held) for held in value] if isinstance(value, list) else value
