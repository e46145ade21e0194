"""One schema, spelled as each vendor's validator wants it.

>>> from aeye.descriptor import GOOGLE_STRICT, OPENAI_STRICT
>>> tags = {"type": "object", "additionalProperties": {"type": "number"}}
>>> to_json_schema(tags, GOOGLE_STRICT)
{'type': 'object', 'additionalProperties': {'type': 'number'}}
>>> to_json_schema(tags, OPENAI_STRICT)["items"]["properties"]["value"]
{'type': 'number'}

What a dialect cannot say is left out, never bent: an emitted schema lets through
whatever the source lets through (as ``decode`` spells it), so that a reply is only
ever refused by the source itself.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Set, Tuple, Union

from .descriptor import (
    DEFINED_FORMATS,
    FormatDescriptor,
    ToJSONSchemaOptions,
    resolve_descriptor,
)
from .emit_compare import all_apart
from .emit_match import (
    Matcher,
    is_capped,
    is_numbered,
    matcher_of,
    means_any,
    usable_default,
)
from .emit_merge import json_type
from .emit_node import (
    AllOf,
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
    as_schema,
    remember,
)
from .emit_read import graph_of
from .emit_words import describe_checks, list_values
from .schema import Schema

__all__ = [
    "Emission",
    "JSONSchema",
    "JSONSchemaType",
    "Loss",
    "emission_of",
    "to_json_schema",
]

JSONSchema = Dict[str, Any]
# The value of ``type``: one name or several.
JSONSchemaType = Union[str, List[str]]

# The name that the definition of "any JSON value" has to itself.
_ANY = "Any"
_NULL: JSONSchema = {"type": "null"}

# Keyword → the field of the descriptor that lets it through.
_GATES = {
    "minLength": "allow_min_max_length",
    "maxLength": "allow_min_max_length",
    "contentEncoding": "allow_min_max_length",
    "pattern": "allow_pattern",
    "minItems": "allow_min_max_items",
    "maxItems": "allow_min_max_items",
    "minimum": "allow_minimum_maximum",
    "maximum": "allow_minimum_maximum",
    "exclusiveMinimum": "allow_minimum_maximum",
    "exclusiveMaximum": "allow_minimum_maximum",
    "multipleOf": "allow_minimum_maximum",
}

# What vendors' grammars cannot read: look-around, back-references, word boundaries,
# named and atomic groups, inline flags, Unicode classes. Anthropic and xAI document
# it (URLs in ``descriptor``); OpenAI refuses look-around too.
_HARD_PATTERN = re.compile(r"\(\?(?!:)|\\[1-9bBpPkAzZG]|[*+?}]\+")


@dataclass(frozen=True)
class Loss:
    """Something the source asks for and an emitted schema does not say."""

    path: str
    keyword: str
    message: str


@dataclass(frozen=True)
class Emission:
    """A schema in one dialect, and what was lost on the way."""

    # Read-only: copy before handing it out.
    wire: JSONSchema
    losses: Tuple[Loss, ...]


def to_json_schema(
    schema: Any, descriptor: ToJSONSchemaOptions, *, describe_dropped: bool = False
) -> JSONSchema:
    """Spell *schema* in a dialect.

    Args:
        schema: anything that ``Schema`` takes.
        descriptor: the dialect; True is OpenAI strict, False is lenient, and
            ``{"strict": …, "format": family}`` names a family's.
        describe_dropped: say in descriptions what the dialect has no keyword for
            (``At most 5 items.``).

    Returns:
        A dictionary of the caller's own.
    """
    dialect = resolve_descriptor(descriptor)
    emission = emission_of(as_schema(schema), dialect, describe_dropped)
    wire: JSONSchema = _copy(emission.wire)
    return wire


def emission_of(
    schema: Schema, descriptor: FormatDescriptor, describe_dropped: bool = False
) -> Emission:
    """Emit once per schema and dialect; the result is shared and read-only."""
    return remember(
        schema,
        ("emit", descriptor, describe_dropped),
        lambda: _Emitter(
            graph_of(schema),
            descriptor,
            matcher_of(schema, descriptor),
            describe_dropped,
        ).emission(),
    )


def _copy(value: Any) -> Any:
    # ``copy.deepcopy`` takes five times as long.
    if isinstance(value, dict):
        return {key: _copy(held) for key, held in value.items()}
    if isinstance(value, list):
        return [_copy(held) for held in value]
    return value


class _Emitter:
    """Writes one schema in one dialect."""

    def __init__(
        self,
        graph: Graph,
        descriptor: FormatDescriptor,
        matcher: Matcher,
        describe_dropped: bool,
    ) -> None:
        self._graph = graph
        self._d = descriptor
        self._matcher = matcher
        self._describe = describe_dropped
        self._losses: Dict[Loss, None] = {}
        self._names = _name_definitions(graph, descriptor)
        self._wanted: List[str] = []
        self._referred: Set[str] = set()
        self._uses_any = False
        self._bodies: Dict[str, Callable[[Any, List[str]], JSONSchema]] = {
            "any": self._any,
            "never": lambda *_: {"not": {}},
            "null": lambda *_: dict(_NULL),
            "scalar": self._scalar,
            "literal": self._literal,
            "object": self._object,
            "record": self._record,
            "array": self._array,
            "tuple": self._tuple,
            "choice": self._choice,
            "all_of": self._all_of,
        }

    def emission(self) -> Emission:
        wire = self._node(self._graph.root)
        definitions: JSONSchema = {}
        for key in self._wanted:  # grows while it is read
            definitions[self._names[key]] = self._node(self._graph.nodes[key])
        if self._uses_any:
            definitions[_ANY] = self._any_definition()
        if definitions:
            wire = {**wire, "$defs": definitions}
        return Emission(wire, tuple(self._losses))

    # Any node

    def _node(self, node: Node, or_null: bool = False) -> JSONSchema:
        """Write *node*; with *or_null*, so that it lets null through as well."""
        if isinstance(node, Ref):
            return self._ref(node, or_null)
        said: List[str] = []
        if means_any(node, self._d):
            body = self._any(node, said)
            # Any value includes null, unless checks stand in its place.
            bare = self._d.strict or not node.checks
            wants_null = node.nullable and not bare
            return self._finish(body, self._notes(node, said), wants_null)
        body = self._bodies[node.kind](node, said)
        wants_null = node.nullable or (or_null and not self._graph.admits_null(node))
        if node.kind == "null":
            wants_null = False
        return self._finish(body, self._notes(node, said), wants_null)

    def _finish(
        self, body: JSONSchema, notes: JSONSchema, wants_null: bool
    ) -> JSONSchema:
        """Add a null branch and annotations, where the dialect lets them stand."""
        if wants_null:
            body = self._with_null(body)
        if "$ref" in body:
            # Nothing may stand beside a reference: OpenAI and Gemini answer 400.
            notes = {k: v for k, v in notes.items() if k != "title"}
            if not notes or not self._d.allow_any_of:
                return body
            body = {"anyOf": [body]}
        return {**body, **notes}

    def _with_null(self, body: JSONSchema) -> JSONSchema:
        if self._d.allow_any_of:
            for word in ("anyOf", "oneOf"):
                if set(body) == {word}:
                    return {word: [*body[word], dict(_NULL)]}
            return {"anyOf": [body, dict(_NULL)]}
        if "type" not in body:
            return self._any_body()
        body = {**body, "type": [body["type"], "null"]}
        if "enum" in body:
            body["enum"] = [*body["enum"], None]
        return body

    def _notes(self, node: Node, said: list[str]) -> JSONSchema:
        notes = {
            keyword: _copy(value)
            for keyword, value in node.notes.items()
            if keyword not in self._d.omitted_keywords
            and (not self._d.strict or keyword in ("title", "description", "default"))
        }
        default = node.notes.get("default")
        if "default" in self._d.omitted_keywords and self._is_worth_saying(node):
            said = [*said, f"Default: {json.dumps(default, ensure_ascii=False)}."]
        if said:
            described = notes.get("description")
            notes["description"] = " ".join([described, *said] if described else said)
        return notes

    def _is_worth_saying(self, node: Node) -> bool:
        default = node.notes.get("default")
        entry = Property("", node, required=False)
        return default is not None and usable_default(self._graph, entry)

    # Any JSON value

    def _any(self, node: Node, said: list[str]) -> JSONSchema:
        if isinstance(node, Literal):
            self._lose(node, "enum", "values of an enum that are lists or objects")
        if not self._d.strict and node.checks:
            checks = self._keep(node, said)
            if checks:
                return checks
        else:
            self._keep(node, said)
        return self._any_body()

    def _any_body(self) -> JSONSchema:
        encoding = self._d.any_encoding
        if encoding in ("recursive-strict", "recursive-open"):
            self._uses_any = True
            return {"$ref": f"#/$defs/{_ANY}"}
        if encoding == "flat":
            return {
                "anyOf": [
                    *_plain_types(),
                    {"type": "array"},
                    {"type": "object", "additionalProperties": True},
                ]
            }
        return {}

    def _any_definition(self) -> JSONSchema:
        again = {"$ref": f"#/$defs/{_ANY}"}
        if self._d.any_encoding == "recursive-strict":
            last = _pairs({"type": "string"}, dict(again))
        else:
            last = {"type": "object", "additionalProperties": dict(again)}
        branches = [*_plain_types(), {"type": "array", "items": again}, last]
        return {"anyOf": branches}

    # References

    def _ref(self, node: Ref, or_null: bool) -> JSONSchema:
        target = self._graph.nodes[node.target]
        wants_null = (node.nullable or or_null) and not self._graph.admits_null(target)
        how = self._graph.spelling(node, self._d)
        if how == "inline" or means_any(target, self._d):
            return self._written_out(node, target, or_null)
        if how == "placeholder" or (
            wants_null and how == "root" and not self._d.allow_any_of
        ):
            return self._placeholder(node, target, wants_null)
        notes = self._notes(node, [])
        alone = not wants_null and set(notes) - {"title"}
        if alone and how == "defs" and self._graph.is_small(node.target):
            return self._written_out(node, target, or_null)
        if how == "root":
            return self._finish({"$ref": "#"}, notes, wants_null)
        if node.target not in self._referred:
            self._referred.add(node.target)
            self._wanted.append(node.target)
        body = {"$ref": f"#/$defs/{self._names[node.target]}"}
        return self._finish(body, notes, wants_null)

    def _written_out(self, node: Ref, target: Node, or_null: bool) -> JSONSchema:
        there = dataclasses.replace(
            target,
            notes={**target.notes, **node.notes},
            nullable=target.nullable or node.nullable,
        )
        return self._node(there, or_null)

    def _placeholder(self, node: Ref, target: Node, wants_null: bool) -> JSONSchema:
        name = self._names.get(node.target) or target.notes.get("title", "the root")
        self._lose(node, "$ref", f"what is inside of {name}, from here on")
        where = f"#/$defs/{name}" if self._d.allow_defs_ref else name
        if node.target not in self._names:
            where = name
        said = [f"Recursive: the same shape as {where}."]
        body = self._outline(target, 2)
        if body == {}:
            wants_null = False
        return self._finish(body, self._notes(node, said), wants_null)

    def _outline(self, node: Node, levels: int) -> JSONSchema:
        """Write one level of a shape, for a place that cannot say more."""
        node = self._graph.target(node)
        if isinstance(node, (Scalar, Literal)) and node.type and not node.nullable:
            return {"type": node.type}
        if isinstance(node, (Object, Record, AllOf)):
            return {"type": "object", "additionalProperties": True}
        if isinstance(node, TupleNode):
            return {"type": "array"}
        if isinstance(node, Array):
            if levels < 2:
                return {"type": "array"}
            return {"type": "array", "items": self._outline(node.items, levels - 1)}
        if isinstance(node, Choice) and levels == 2:
            shapes = _distinct([self._outline(b, levels - 1) for b in node.branches])
            if len(shapes) == 1:
                return shapes[0]
            if self._d.allow_any_of:
                return {"anyOf": shapes}
        return self._any_body()

    # Keywords that narrow

    def _keep(self, node: Node, said: list[str], name: str = "") -> JSONSchema:
        """Give the checks that the dialect takes; note, and say, the others."""
        checks = node.checks
        if not checks:
            return {}
        if name == "integer":
            checks = _inclusive(checks, self._d)
        kept: JSONSchema = {}
        dropped: JSONSchema = {}
        for keyword, value in checks.items():
            if keyword == "format" and value not in DEFINED_FORMATS:
                continue  # a name of somebody's own, which no validator knows
            if self._takes(keyword, value):
                kept[keyword] = _copy(value)
            else:
                dropped[keyword] = value
                self._lose(node, keyword, f"{keyword} {json.dumps(value)[:80]}")
        if self._describe and dropped:
            said += describe_checks(dropped)
        return kept

    def _takes(self, keyword: str, value: Any) -> bool:
        if keyword in self._d.omitted_keywords:
            return False
        if keyword == "format":
            formats = self._d.supported_string_formats
            return formats == "all" or value in formats
        if keyword == "pattern" and not self._takes_pattern(value):
            return False
        gate = _GATES.get(keyword)
        if gate is not None:
            return bool(getattr(self._d, gate))
        # Definitions may go by other names here, and be wider than they were.
        return not self._d.strict and not _has_ref(value)

    def _takes_pattern(self, pattern: str) -> bool:
        if self._d.strict and _HARD_PATTERN.search(pattern):
            return False
        if not self._d.patterns_anchored:
            return True
        return pattern.startswith("^") and pattern.endswith("$") and "|" not in pattern

    def _lose(self, node: Node, keyword: str, message: str) -> None:
        self._losses[Loss(node.path, keyword, message)] = None

    # One method for each kind of node

    def _scalar(self, node: Scalar, said: list[str]) -> JSONSchema:
        return {"type": node.type, **self._keep(node, said, node.type)}

    def _literal(self, node: Literal, said: list[str]) -> JSONSchema:
        d = self._d
        body: JSONSchema = {} if node.type is None else {"type": node.type}
        checks = {} if d.strict else self._keep(node, said)
        values = [_copy(value) for value in node.values]
        if is_capped(node, d):
            self._lose(node, "enum", f"an enum of {len(values)} values")
            said.append(f"One of these {len(values)} values: {list_values(values)}.")
            if not node.typed and node.type == "integer":
                return {"type": "number"}
            if node.type is not None or not d.allow_any_of:
                return body
            names = dict.fromkeys(json_type(value) for value in values)
            return {"anyOf": [{"type": name} for name in names]}
        if "const" in d.omitted_keywords and any(isinstance(v, bool) for v in values):
            # Where there is no const, enums are of texts and numbers only.
            self._lose(node, "enum", "an enum with booleans")
            return body or self._any_body()
        if node.const and "const" not in d.omitted_keywords:
            return {**body, "const": values[0], **checks}
        if node.type is None and d.strict and d.allow_any_of:
            return {"anyOf": _by_type(values)}
        return {**body, "enum": values, **checks}

    def _array(self, node: Array, said: list[str]) -> JSONSchema:
        if node.items.kind == "never":
            bounds = {"maxItems": 0} if self._d.allow_min_max_items else {}
            return {"type": "array", "items": dict(_NULL), **bounds}
        items = self._node(node.items)
        return {"type": "array", "items": items, **self._keep(node, said)}

    def _choice(self, node: Choice, said: list[str]) -> JSONSchema:
        exclusive = node.exclusive and self._d.allow_one_of
        if exclusive and not all_apart(node.branches, self._matcher):
            exclusive = False
        if node.exclusive and not exclusive:
            self._lose(node, "oneOf", "that only one branch may fit")
        if not (self._d.allow_any_of or exclusive):
            self._lose(node, "anyOf", "which shapes a value may have")
            return self._any_body()
        branches = _distinct([self._node(branch) for branch in node.branches])
        if len(branches) == 1 and "$ref" not in branches[0]:
            return branches[0]
        return {"oneOf" if exclusive else "anyOf": branches}

    def _all_of(self, node: AllOf, said: list[str]) -> JSONSchema:
        if self._d.allow_all_of:
            return {"allOf": [self._node(member) for member in node.members]}
        for member in node.members[1:]:
            self._lose(member, "allOf", "one of several shapes at once")
        return self._node(node.members[0])

    def _record(self, node: Record, said: list[str]) -> JSONSchema:
        d = self._d
        if d.record_encoding == "array-of-pairs":
            key = self._node(node.key) if node.key is not None else {"type": "string"}
            pairs = _pairs(key, self._node(node.value))
            self._keep(node, said)
            return pairs
        checks = self._keep(node, said)
        body: JSONSchema = {"type": "object"}
        if not d.strict and node.patterns:
            body.update(self._by_pattern(node))
        elif d.strict or not node.bare:
            body["additionalProperties"] = self._node(node.value)
        if node.key is not None and not (node.patterns and not d.strict):
            key = self._node(node.key)
            if "propertyNames" in d.omitted_keywords:
                self._lose(node, "propertyNames", "which keys there may be")
                said += _describe_keys(node.key)
            elif key != {"type": "string"}:
                body["propertyNames"] = key
        return {**body, **checks}

    def _by_pattern(self, node: Record | Object) -> JSONSchema:
        body: JSONSchema = {
            "patternProperties": {
                pattern: self._node(below) for pattern, below in node.patterns
            }
        }
        if node.beside is not None:
            never = node.beside.kind == "never"
            body["additionalProperties"] = False if never else self._node(node.beside)
        return body

    def _object(self, node: Object, said: list[str]) -> JSONSchema:
        d = self._d
        body: JSONSchema = {
            "type": "object",
            "properties": {
                entry.name: self._property(entry) for entry in node.properties
            },
            "required": [
                entry.name
                for entry in node.properties
                if entry.required or d.object_all_fields_required
            ],
        }
        if d.emit_property_ordering:
            body["propertyOrdering"] = [entry.name for entry in node.properties]
        checks = self._keep(node, said)
        if d.object_closed_by_default or node.closed:
            body["additionalProperties"] = False
            if not node.closed and (node.tail is not None or node.open):
                self._lose(node, "additionalProperties", "keys besides the properties")
        elif node.patterns and not d.strict:
            body.update(self._by_pattern(node))
        elif node.tail is not None:
            body["additionalProperties"] = self._node(node.tail)
        elif node.open and d.closed_unless_said:
            body["additionalProperties"] = True
        return {**body, **checks}

    def _property(self, entry: Property) -> JSONSchema:
        nullable = self._matcher.nulls_absent(entry)
        return self._node(entry.node, or_null=nullable)

    def _tuple(self, node: TupleNode, said: list[str]) -> JSONSchema:
        d = self._d
        if is_numbered(node, d):
            self._keep(node, said)
            return self._numbered(node)
        items = [self._node(item) for item in node.items]
        rest = None if node.rest is None else self._node(node.rest)
        checks = self._keep(node, said)
        if d.allow_min_max_items:
            checks.pop("minItems", None)
            least = max(node.least, int(node.checks.get("minItems", 0)))
            checks = {**({"minItems": least} if least else {}), **checks}
            if rest is None and not node.open:
                checks["maxItems"] = len(items)
        shapes = _distinct(items if rest is None else [*items, rest])
        if node.open and d.tuple_encoding != "prefix-items":
            self._lose(node, "items", "items after the last that is described")
        listed = d.tuple_encoding != "prefix-items"
        if len(shapes) == 1 and not (node.open and not listed):
            return {"type": "array", "items": shapes[0], **checks}
        if listed:
            return {"type": "array", "items": {"anyOf": shapes}, **checks}
        body: JSONSchema = {"type": "array", "prefixItems": items}
        if rest is not None:
            body["items"] = rest
        return {**body, **checks}

    def _numbered(self, node: TupleNode) -> JSONSchema:
        if node.open:
            self._lose(node, "items", "items after the last that is described")
        keys = [str(index) for index in range(len(node.items))]
        return {
            "type": "object",
            "properties": {
                key: self._node(item, or_null=index >= node.least)
                for index, (key, item) in enumerate(zip(keys, node.items))
            },
            "required": keys,
            "additionalProperties": False,
        }


def _name_definitions(graph: Graph, descriptor: FormatDescriptor) -> dict[str, str]:
    """Give each definition its name, but leave ``Any`` to any JSON value."""
    taken = set()
    if descriptor.any_encoding in ("recursive-strict", "recursive-open"):
        taken.add(_ANY)
    names: Dict[str, str] = {}
    for key, name in graph.names.items():
        if key not in graph.nodes or key == "#":
            continue
        unique = name
        while unique in taken:
            unique += "_"
        taken.add(unique)
        names[key] = unique
    return names


def _plain_types() -> list[JSONSchema]:
    return [{"type": name} for name in ("string", "number", "boolean", "null")]


def _pairs(key: JSONSchema, value: JSONSchema) -> JSONSchema:
    return {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"key": key, "value": value},
            "required": ["key", "value"],
            "additionalProperties": False,
        },
    }


def _distinct(schemas: list[JSONSchema]) -> list[JSONSchema]:
    # By their text: to Python, {"const": 1} equals {"const": True}.
    return list({json.dumps(schema): schema for schema in schemas}.values())


def _by_type(values: list[Any]) -> list[JSONSchema]:
    groups: Dict[str, List[Any]] = {}
    for value in values:
        groups.setdefault(json_type(value), []).append(value)
    return [{"type": name, "enum": group} for name, group in groups.items()]


def _inclusive(checks: dict[str, Any], d: FormatDescriptor) -> dict[str, Any]:
    """Say exclusive bounds of an integer as inclusive ones, where only those go."""
    checks = dict(checks)
    if "exclusiveMinimum" in d.omitted_keywords and "exclusiveMinimum" in checks:
        least = math.floor(checks.pop("exclusiveMinimum")) + 1
        checks["minimum"] = max(least, checks.get("minimum", least))
    if "exclusiveMaximum" in d.omitted_keywords and "exclusiveMaximum" in checks:
        most = math.ceil(checks.pop("exclusiveMaximum")) - 1
        checks["maximum"] = min(most, checks.get("maximum", most))
    return checks


def _describe_keys(key: Node) -> list[str]:
    if isinstance(key, Literal):
        return [f"Keys: {list_values(list(key.values))}."]
    if isinstance(key, Scalar) and "pattern" in key.checks:
        return [f"Keys match {key.checks['pattern']}."]
    return []


def _has_ref(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "$ref" in value or any(_has_ref(held) for held in value.values())
    return isinstance(value, list) and any(_has_ref(held) for held in value)
