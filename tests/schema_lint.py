"""What vendors' schema compilers refuse, as their documentation says it.

https://developers.openai.com/api/docs/guides/structured-outputs,
https://platform.claude.com/docs/en/build-with-claude/structured-outputs,
https://ai.google.dev/gemini-api/docs/structured-output and
https://docs.x.ai/developers/model-capabilities/text/structured-outputs,
all read 2026-11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_COMMON = {"type", "title", "description", "properties", "required", "items", "enum"}
_OPENAI = _COMMON | {
    *("additionalProperties", "const", "anyOf", "$ref", "$defs", "pattern", "format"),
    *("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minItems", "maxItems"),
}
_ANTHROPIC = _COMMON | {
    *("additionalProperties", "const", "anyOf", "allOf", "$ref", "$defs", "default"),
    *("pattern", "format"),
}
_GOOGLE = _COMMON | {
    *("additionalProperties", "prefixItems", "minItems", "maxItems", "minimum"),
    *("maximum", "format", "propertyOrdering", "$ref"),
}
_XAI = _COMMON | {
    *("additionalProperties", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs"),
    *("default", "pattern", "format", "minLength", "maxLength", "minItems", "maxItems"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("prefixItems", "propertyNames", "contentEncoding"),
}
_KEYWORDS = {
    "openai": _OPENAI,
    "anthropic": _ANTHROPIC,
    "google": _GOOGLE,
    "xai": _XAI,
}
_PLAIN_FORMATS = {"date-time", "time", "date"}
_OPENAI_FORMATS = _PLAIN_FORMATS | {
    *("duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
}
_FORMATS = {
    "openai": _OPENAI_FORMATS,
    "anthropic": _OPENAI_FORMATS | {"uri"},
    "google": _PLAIN_FORMATS,
    "xai": _PLAIN_FORMATS | {"email", "uuid", "ipv4", "ipv6", "uri"},
}


def lint(schema: dict[str, Any], family: str, strict: bool) -> list[str]:
    """Name what a vendor would refuse in an emitted schema."""
    problems = list(_references(schema, family, strict))
    for path, node in nodes(schema):
        problems += [f"{path}: {problem}" for problem in _any_vendor(node)]
        if not strict:
            problems += [f"{path}: {p}" for p in _non_strict(node, family)]
            continue
        unknown = node.keys() - _KEYWORDS[family]
        if unknown:
            problems.append(f"{path}: {sorted(unknown)} not supported")
        if node.get("format", "date") not in _FORMATS[family]:
            problems.append(f"{path}: format {node['format']!r}")
        problems += [f"{path}: {p}" for p in _RULES[family](node)]
    return problems


def nodes(schema: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema in an emitted schema, with its path."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for word in ("properties", "$defs", "patternProperties"):
        for name, below in schema.get(word, {}).items():
            yield from nodes(below, f"{path}.{word}.{name}")
    for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for index, below in enumerate(schema.get(word, ())):
            yield from nodes(below, f"{path}.{word}.{index}")
    for word in ("items", "additionalProperties", "propertyNames"):
        yield from nodes(schema.get(word), f"{path}.{word}")


def _any_vendor(node: dict[str, Any]) -> Iterator[str]:
    if "$ref" in node and node.keys() - {"$ref", "$defs"}:
        yield "keywords beside $ref"
    for word in ("$id", "$schema", "$comment", "nullable", "definitions"):
        if word in node:
            yield word
    for word in ("enum", "anyOf", "oneOf", "allOf"):
        if word in node and not node[word]:
            yield f"empty {word}"
    if any(isinstance(held, bool) for held in node.get("properties", {}).values()):
        yield "a property that is a boolean"
    if node.get("format") == "regex":
        yield "format regex"
    if node.get("propertyNames") == {"type": "string"}:
        yield "propertyNames that say nothing"


def _non_strict(node: dict[str, Any], family: str) -> Iterator[str]:
    if family == "google":
        if "propertyNames" in node:
            yield "propertyNames"
        if len(node.get("enum", ())) > 40:
            yield "more than 40 enum values"
    if isinstance(node.get("type"), list):
        yield "a list of types"


def _openai(node: dict[str, Any]) -> Iterator[str]:
    yield from _closed(node)
    if node.get("type") == "object" and node["required"] != list(node["properties"]):
        yield "not every property is required"
    if isinstance(node.get("type"), list):
        yield "a list of types"
    if not node.keys() & {"type", "anyOf", "$ref"}:
        yield "no type"
    yield from _plain_pattern(node)


def _anthropic(node: dict[str, Any]) -> Iterator[str]:
    yield from _closed(node)
    if not node:
        yield "an empty schema"
    if any("$ref" in part for part in node.get("allOf", ())):
        yield "$ref inside allOf"
    if any(isinstance(value, (dict, list)) for value in node.get("enum", ())):
        yield "an enum of something but scalars"
    yield from _plain_pattern(node)


def _google(node: dict[str, Any]) -> Iterator[str]:
    if node.get("propertyOrdering", []) != list(node.get("properties", ())):
        yield "propertyOrdering differs from properties"
    kind = node.get("type")
    if isinstance(kind, list) and (len(kind) != 2 or kind[1] != "null"):
        yield "a list of types that is not T or null"
    values = node.get("enum", ())
    if len([value for value in values if value is not None]) > 40:
        yield "more than 40 enum values"
    if any(isinstance(value, (bool, dict, list)) for value in values):
        yield "an enum of something but texts and numbers"
    if None in values and "null" not in (kind or ()):
        yield "null in an enum whose type forbids it"


def _xai(node: dict[str, Any]) -> Iterator[str]:
    if len(node.get("allOf", ())) > 1:
        yield "allOf of several schemas"
    yield from _plain_pattern(node)


_RULES = {
    "openai": _openai,
    "anthropic": _anthropic,
    "google": _google,
    "xai": _xai,
}


def _closed(node: dict[str, Any]) -> Iterator[str]:
    if (
        "object" in str(node.get("type"))
        and node.get("additionalProperties") is not False
    ):
        yield "an open object"
    if node.get("type") == "object" and not {"properties", "required"} <= node.keys():
        yield "an object without properties or required"


def _plain_pattern(node: dict[str, Any]) -> Iterator[str]:
    pattern = node.get("pattern", "")
    if any(hard in pattern for hard in ("(?=", "(?!", "(?<", "\\b", "\\1", "\\p")):
        yield f"pattern {pattern}"


def _references(schema: dict[str, Any], family: str, strict: bool) -> Iterator[str]:
    definitions = schema.get("$defs", {})
    edges: dict[str, set[str]] = {}
    for path, node in nodes(schema):
        if "$ref" not in node:
            continue
        ref = node["$ref"]
        owner = path.split(".")[2] if path.startswith("$.$defs.") else "#"
        edges.setdefault(owner, set()).add(ref.rsplit("/", 1)[-1])
        if ref != "#" and ref[len("#/$defs/") :] not in definitions:
            yield f"{path}: {ref} leads nowhere"
        if strict and family == "google" and ref != "#":
            yield f"{path}: {ref}"
        if strict and family in ("anthropic", "xai") and ref == "#":
            yield f"{path}: {ref}"
    used = set().union(*edges.values()) if edges else set()
    if definitions.keys() - used:
        yield f"unused definitions: {sorted(definitions.keys() - used)}"
    if strict and family in ("anthropic", "xai") and _has_cycle(edges):
        yield "recursion"


def _has_cycle(edges: dict[str, set[str]]) -> bool:
    left = dict(edges)
    while left:
        leaves = [name for name, targets in left.items() if not targets & left.keys()]
        if not leaves:
            return True
        for name in leaves:
            del left[name]
    return False
