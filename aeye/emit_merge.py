"""JSON Schema keywords: what each is about, and two schemas said as one."""

from __future__ import annotations

import math
from typing import Any, Dict, FrozenSet, List, Tuple

__all__ = [
    "ANNOTATIONS",
    "COMBINATORS",
    "TYPE_KEYWORDS",
    "has_type",
    "infer_types",
    "json_type",
    "merge_flat",
    "same_json",
    "says_presence_only",
    "split_schema",
]

# Keywords that say something to a reader and nothing about the value. Unknown
# keywords count as such: see ``split_schema``.
ANNOTATIONS: FrozenSet[str] = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
    }
)
COMBINATORS: FrozenSet[str] = frozenset({"$ref", "allOf", "anyOf", "oneOf"})

# Keywords that mean something for values of one type only.
TYPE_KEYWORDS: Dict[str, FrozenSet[str]] = {
    "object": frozenset(
        {
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "dependentRequired",
            "dependentSchemas",
            "unevaluatedProperties",
        }
    ),
    "array": frozenset(
        {
            "items",
            "prefixItems",
            "minItems",
            "maxItems",
            "uniqueItems",
            "contains",
            "minContains",
            "maxContains",
            "unevaluatedItems",
        }
    ),
    "string": frozenset(
        {
            "minLength",
            "maxLength",
            "pattern",
            "format",
            "contentEncoding",
            "contentMediaType",
            "contentSchema",
        }
    ),
    "number": frozenset(
        {
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        }
    ),
}

_GENERIC = frozenset({"type", "enum", "const", "not", "if", "then", "else"})
_ASSERTIONS = _GENERIC.union(*TYPE_KEYWORDS.values())
# Never passed on: they name and bind, and nothing here has a name of its own.
_IDENTIFIERS = frozenset(
    {
        "$schema",
        "$id",
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "$comment",
        "$defs",
        "$vocabulary",
        "definitions",
    }
)
# Keywords that say which keys there are, but not what they hold.
_PRESENCE = frozenset(
    {"required", "not", "dependentRequired", "minProperties", "maxProperties", "type"}
)
_OBJECT_STRUCTURE = ("properties", "additionalProperties", "patternProperties")


def split_schema(
    source: Any,
) -> Tuple[Dict[str, Any], Dict[str, Any], Dict[str, Any]]:
    """Split a schema into annotations, combinators and everything else.

    >>> split_schema({"title": "T", "anyOf": [True], "type": "string", "$id": "x"})
    ({'title': 'T'}, {'anyOf': [True]}, {'type': 'string'})
    """
    notes: Dict[str, Any] = {}
    combinators: Dict[str, Any] = {}
    flat: Dict[str, Any] = {}
    if isinstance(source, dict):
        for keyword, value in source.items():
            if keyword in COMBINATORS:
                combinators[keyword] = value
            elif keyword in _ASSERTIONS:
                flat[keyword] = value
            elif keyword not in _IDENTIFIERS:
                notes[keyword] = value
    return notes, combinators, flat


def says_presence_only(branch: dict[str, Any]) -> bool:
    """Say whether *branch* speaks only of which keys are there.

    >>> says_presence_only({"required": ["a"]}), says_presence_only({"properties": {}})
    (True, False)
    """
    _, combinators, flat = split_schema(branch)
    typed = flat.get("type", "object")
    return not combinators and typed == "object" and set(flat) <= _PRESENCE


def infer_types(flat: dict[str, Any]) -> list[str]:
    """Name the types whose keywords *flat* uses.

    >>> infer_types({"minLength": 1}), infer_types({"not": {}})
    (['string'], [])
    """
    return [name for name, words in TYPE_KEYWORDS.items() if not words.isdisjoint(flat)]


def json_type(value: Any) -> str:
    """Name the JSON type of *value*, ``integer`` for an int.

    >>> [json_type(v) for v in (True, 1, 1.5, None, "x", [], {})]
    ['boolean', 'integer', 'number', 'null', 'string', 'array', 'object']
    """
    if isinstance(value, bool):
        return "boolean"
    for kind, name in (
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
        (dict, "object"),
    ):
        if isinstance(value, kind):
            return name
    return "null"


def has_type(value: Any, name: str) -> bool:
    """Say whether *value* is of a type, as JSON Schema counts: 1.0 is an integer.

    >>> has_type(1.0, "integer"), has_type(1, "number"), has_type(True, "integer")
    (True, True, False)
    """
    found = json_type(value)
    if found == name or (name == "number" and found == "integer"):
        return True
    return name == "integer" and found == "number" and float(value).is_integer()


def same_json(a: Any, b: Any) -> bool:
    """Compare as JSON does: true is not 1, but 1.0 is.

    >>> same_json(True, 1), same_json(1.0, 1)
    (False, True)
    """
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def merge_flat(one: Any, two: Any) -> Any:
    """Say two schemas without combinators as one.

    Gives False when no value can fit both, and None when one schema cannot say it.

    >>> merge_flat({"type": "integer", "minimum": 1}, {"type": "number", "minimum": 3})
    {'type': 'integer', 'minimum': 3}
    >>> merge_flat({"pattern": "^a"}, {"pattern": "z$"}) is None
    True
    """
    if one is False or two is False:
        return False
    merged = dict(one)
    if not _merge_objects(merged, one, two) or not _merge_arrays(merged, one, two):
        return None
    for keyword, value in two.items():
        if keyword in _OBJECT_STRUCTURE or keyword in ("items", "prefixItems"):
            continue
        if keyword not in merged:
            merged[keyword] = value
            continue
        joined = _merge_keyword(keyword, merged[keyword], value)
        if joined is None:
            return None
        if joined == [] and keyword in ("type", "enum"):
            return False
        merged[keyword] = joined
    return merged


def _merge_keyword(keyword: str, a: Any, b: Any) -> Any:
    if keyword in ANNOTATIONS or keyword not in _ASSERTIONS:
        return a
    if keyword == "type":
        return _merge_types(a, b)
    if keyword == "required":
        return list(dict.fromkeys([*a, *b]))
    if keyword == "enum":
        return [v for v in a if any(same_json(v, other) for other in b)]
    if keyword in ("minimum", "exclusiveMinimum") or keyword.startswith("min"):
        return max(a, b)
    if keyword in ("maximum", "exclusiveMaximum") or keyword.startswith("max"):
        return min(a, b)
    if keyword == "uniqueItems":
        return a or b
    if keyword == "multipleOf" and isinstance(a, int) and isinstance(b, int):
        return a * b // math.gcd(a, b)
    return a if same_json(a, b) else None


def _merge_types(a: Any, b: Any) -> Any:
    ones = [a] if isinstance(a, str) else list(a)
    twos = [b] if isinstance(b, str) else list(b)
    both: List[str] = [name for name in ones if name in twos]
    for wide, narrow in ((ones, twos), (twos, ones)):
        if "number" in wide and "integer" in narrow and "integer" not in both:
            both.append("integer")
    return both[0] if len(both) == 1 else both


def _merge_objects(merged: Dict[str, Any], one: Any, two: Any) -> bool:
    ours = {word for word in _OBJECT_STRUCTURE if word in one}
    theirs = {word for word in _OBJECT_STRUCTURE if word in two}
    if not theirs:
        return True
    if not ours:
        merged.update({word: two[word] for word in theirs})
        return True
    if "patternProperties" in ours | theirs:
        return all(one.get(word) == two.get(word) for word in ours | theirs)
    properties: Dict[str, Any] = {}
    first, second = one.get("properties", {}), two.get("properties", {})
    for name in [*first, *(name for name in second if name not in first)]:
        properties[name] = _both(
            first.get(name, one.get("additionalProperties", True)),
            second.get(name, two.get("additionalProperties", True)),
        )
    merged["properties"] = properties
    tail = _both(
        one.get("additionalProperties", True), two.get("additionalProperties", True)
    )
    if tail is not True or "additionalProperties" in ours & theirs:
        merged["additionalProperties"] = tail
    return True


def _merge_arrays(merged: Dict[str, Any], one: Any, two: Any) -> bool:
    ours = {word for word in ("items", "prefixItems") if word in one}
    theirs = {word for word in ("items", "prefixItems") if word in two}
    if not theirs:
        return True
    if not ours:
        merged.update({word: two[word] for word in theirs})
        return True
    if "prefixItems" in ours | theirs:
        return all(one.get(word) == two.get(word) for word in ours | theirs)
    merged["items"] = _both(one["items"], two["items"])
    return True


def _both(a: Any, b: Any) -> Any:
    """Ask for two schemas at once, as simply as possible."""
    if a is False or b is False:
        return False
    if a in (True, {}) or a == b:
        return b
    if b in (True, {}):
        return a
    return {"allOf": [a, b]}
