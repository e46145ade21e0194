"""What a validator says → what a model can act on.

An error of the validator is met by its attributes alone. Messages are short, name
what was expected and what was given, and never quote more than a model needs. Of a
union only the branch that was meant is explained: the one whose constants match,
else the one that comes closest.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Callable, Dict, Iterator, List, Tuple

from .schema_valid import LINK, PATTERN
from .schema_value import Finding

__all__ = [
    "explain",
    "scan",
]

_MAX_DEPTH = 200
_MAX_MESSAGE = 200
_SHAPES = {
    "date": "like 2024-05-31",
    "date-time": "like 2024-05-31T14:30:00Z",
    "duration": "like P1DT2H30M",
    "email": "like ann@example.com",
    "time": "like 14:30:00Z",
    "uri": "like https://example.com/",
    "uuid": "like 123e4567-e89b-12d3-a456-426614174000",
}


def scan(value: Any) -> Finding | None:
    """Find the first thing in *value* that is not JSON or nests more than 200 deep.

    >>> scan({"a": [1, float("nan")]})
    Finding(path='a.1', message='NaN is not JSON; give a finite number', value=None)
    """
    stack: List[Tuple[Tuple[Any, ...], Any]] = [((), value)]
    while stack:
        path, value = stack.pop()
        if value is None or isinstance(value, (str, int)):
            continue
        strange = _strange(value)
        if strange:
            return _found(path, strange)
        if isinstance(value, float):
            continue
        if len(path) >= _MAX_DEPTH:
            return Finding("", f"nests more than {_MAX_DEPTH} levels deep")
        children = value.items() if isinstance(value, dict) else enumerate(value)
        stack.extend(((*path, key), child) for key, child in children)
    return None


def _strange(value: Any) -> str:
    """Say what is not JSON about *value* itself."""
    if isinstance(value, float):
        if math.isfinite(value):
            return ""
        return f"{json.dumps(value)} is not JSON; give a finite number"
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                return f"keys must be strings, got {key!r:.60}"
        return ""
    return "" if isinstance(value, list) else f"{type(value).__name__} is not JSON"


def list_extras(schema: Dict[str, Any], value: Dict[str, Any]) -> List[str]:
    """Name the properties of *value* that *schema*, ready to run, does not declare."""
    declared = schema.get("properties", ())
    patterns = schema.get("patternProperties", ())
    return [
        name
        for name in value
        if name not in declared and not any(re.search(p, name) for p in patterns)
    ]


def explain(error: Any) -> Iterator[Finding]:
    """Turn one error of the validator into findings."""
    value, keyword = error.instance, error.validator
    schema = error.schema if isinstance(error.schema, dict) else {}
    if keyword != "type" and not _is_of(value, schema.get("type")):
        return  # said by the error of the type
    if keyword in ("anyOf", "oneOf"):
        yield from _explain_union(error)
        return
    tell = _MESSAGES.get(keyword)
    if tell is not None:
        message = tell(error.validator_value, value, schema)
    else:
        message = error.message
    if not message:
        return
    if _is_name(error):
        message = f"property name {_json(value)}: {message}"
        value = None
    yield _found(tuple(error.absolute_path), message, value)


def _explain_union(error: Any) -> Iterator[Finding]:
    path, value = tuple(error.absolute_path), error.instance
    if not error.context:  # oneOf, and more than one fits
        yield _found(path, "fits more than one of the alternatives, must fit one")
        return
    fitting = [errors for errors in _branches(error) if not _is_misfit(errors)]
    if not fitting:
        yield _found(path, _expected(error), value)
        return
    meant = [errors for errors in fitting if not _constants(errors)]
    if not meant and len(fitting) > 1:
        yield from _explain_constants(fitting)
        return
    for inner in min(meant or fitting, key=len):
        yield from explain(inner)


def _branches(error: Any) -> List[List[Any]]:
    """Group what is wrong with each branch of a union."""
    found: Dict[Any, List[Any]] = {}
    for inner in error.context:
        found.setdefault(inner.relative_schema_path[0], []).append(inner)
    return list(found.values())


def _is_misfit(errors: List[Any]) -> bool:
    """Whether a branch is for another type of value."""
    return any(map(_is_of_type, errors))


def _is_of_type(error: Any) -> bool:
    wanted, keyword = error.validator_value, error.validator
    if error.relative_path:
        return False
    if keyword in ("anyOf", "oneOf"):
        return bool(error.context) and all(map(_is_misfit, _branches(error)))
    if keyword in ("const", "enum"):
        values = [wanted] if keyword == "const" else wanted
        return _kind(error.instance) not in map(_kind, values)
    return keyword == "type" or (keyword == "not" and not wanted)


def _constants(errors: List[Any]) -> List[Any]:
    """The errors that say that another branch of the union was meant."""
    return [
        error
        for error in errors
        if len(error.relative_path) <= 1
        and (
            error.validator == "const"
            or (error.validator == "enum" and len(error.validator_value) == 1)
        )
    ]


def _explain_constants(branches: List[List[Any]]) -> Iterator[Finding]:
    """Say which values of the property that tells branches apart there are."""
    allowed: Dict[Tuple[Any, ...], List[Any]] = {}
    values: Dict[Tuple[Any, ...], Any] = {}
    for errors in branches:
        error = _constants(errors)[0]
        wanted = error.validator_value
        path = tuple(error.absolute_path)
        allowed.setdefault(path, []).extend(
            wanted if error.validator == "enum" else [wanted]
        )
        values[path] = error.instance
    path, wanted = max(allowed.items(), key=lambda item: len(item[1]))
    yield _found(path, _one_of(wanted), values[path])


def _expected(error: Any) -> str:
    """Sum up a union none of whose branches is for this type of value."""
    wanted: List[str] = []
    for branch in error.validator_value:
        for kind in _kinds(branch):
            if kind not in wanted:
                wanted.append(kind)
    given = _kind(error.instance)
    if not wanted:
        return f"{given} fits none of the alternatives"
    listed = wanted[0]
    if len(wanted) > 1:
        listed = f"{', '.join(wanted[:-1])} or {wanted[-1]}"
    return f"expected {listed}, got {given}"


def _kinds(branch: Any, depth: int = 0) -> List[str]:
    """Name what a branch of a union is for: its types, or its few values."""
    while isinstance(branch, dict) and LINK in branch:
        branch = branch[LINK]
    if not isinstance(branch, dict) or depth > 4:
        return []
    for key in ("anyOf", "oneOf"):
        if key in branch:
            return [kind for child in branch[key] for kind in _kinds(child, depth + 1)]
    values = branch.get("enum", [branch["const"]] if "const" in branch else [])
    if values and len(values) <= 5:
        return [_json(value) for value in values]
    named = branch.get("type", [])
    return [named] if isinstance(named, str) else list(named)


def _is_name(error: Any) -> bool:
    """Whether the error is about the name of a property, not about a value."""
    path = list(error.relative_schema_path)
    n = 0
    while n < len(path):
        if path[n] == "propertyNames":
            return True
        mapped = path[n] in ("properties", "patternProperties", "dependentSchemas")
        n += 2 if mapped else 1
    return False


def _is_of(value: Any, wanted: Any) -> bool:
    """Whether *value* has the type that ``type`` asks for."""
    if wanted is None:
        return True
    names = [wanted] if isinstance(wanted, str) else wanted
    kind = _kind(value)
    if kind in names or (kind == "integer" and "number" in names):
        return True
    return kind == "number" and "integer" in names and value.is_integer()


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for cls, name in (
        (str, "string"),
        (int, "integer"),
        (float, "number"),
        (dict, "object"),
        (list, "array"),
    ):
        if isinstance(value, cls):
            return name
    return type(value).__name__


def _tell_type(wanted: Any, value: Any, schema: Any) -> str:
    names = wanted if isinstance(wanted, str) else " or ".join(wanted)
    return f"expected {names}, got {_kind(value)}"


def _tell_required(wanted: Any, value: Any, schema: Any) -> str:
    missing = [name for name in wanted if name not in value]
    several = len(missing) > 1
    return f"missing required propert{'ies' if several else 'y'} {_listed(missing)}"


def _tell_dependent(wanted: Any, value: Any, schema: Any) -> str:
    for name, needed in wanted.items():
        missing = [other for other in needed if other not in value]
        if name in value and missing:
            return f"with {_json(name)} there must also be {_listed(missing)}"
    return ""


def _tell_additional(wanted: Any, value: Any, schema: Any) -> str:
    allowed = list(schema.get("properties", ()))
    strange = list_extras(schema, value)
    several = len(strange) > 1
    said = f"unexpected propert{'ies' if several else 'y'} {_listed(strange, 80)}"
    return f"{said}; allowed: {_listed(allowed)}" if allowed else said


def _tell_not(wanted: Any, value: Any, schema: Any) -> str:
    return "is what the schema rules out" if wanted else "nothing is allowed here"


def _tell_items(wanted: Any, value: Any, schema: Any) -> str:
    most = len(schema.get("prefixItems", ()))
    return _count("at most", "item")(most, value, schema)


def _tell_pattern(wanted: Any, value: Any, schema: Any) -> str:
    return f"expected text that matches {schema.get(PATTERN, wanted)}"


def _tell_format(wanted: Any, value: Any, schema: Any) -> str:
    article = "an" if wanted[:1] in "aeio" else "a"
    return f"expected {article} {wanted} {_SHAPES.get(wanted, '')}".strip()


def _count(word: str, one: str, many: str = "") -> Callable[[Any, Any, Any], str]:
    def tell(wanted: Any, value: Any, schema: Any) -> str:
        unit = one if wanted == 1 else many or f"{one}s"
        return f"expected {word} {wanted} {unit}, got {len(value)}"

    return tell


def _bound(word: str) -> Callable[[Any, Any, Any], str]:
    def tell(wanted: Any, value: Any, schema: Any) -> str:
        return f"expected {word} {wanted}"

    return tell


def _fixed(message: str) -> Callable[[Any, Any, Any], str]:
    def tell(wanted: Any, value: Any, schema: Any) -> str:
        return message

    return tell


def _one_of(wanted: List[Any]) -> str:
    if len(wanted) == 1:
        return f"expected {_json(wanted[0])}"
    return f"expected one of {_listed(wanted)}"


_MESSAGES: Dict[Any, Callable[[Any, Any, Any], str]] = {
    "additionalProperties": _tell_additional,
    "const": lambda wanted, value, schema: _one_of([wanted]),
    "contains": _fixed("no item is of the kind that must be among them"),
    "dependentRequired": _tell_dependent,
    "enum": lambda wanted, value, schema: _one_of(wanted),
    "exclusiveMaximum": _bound("less than"),
    "exclusiveMinimum": _bound("more than"),
    "format": _tell_format,
    "items": _tell_items,
    "maxItems": _count("at most", "item"),
    "maxLength": _count("at most", "character"),
    "maxProperties": _count("at most", "property", "properties"),
    "maximum": _bound("at most"),
    "minItems": _count("at least", "item"),
    "minLength": _count("at least", "character"),
    "minProperties": _count("at least", "property", "properties"),
    "minimum": _bound("at least"),
    "multipleOf": _bound("a multiple of"),
    "not": _tell_not,
    "pattern": _tell_pattern,
    "required": _tell_required,
    "type": _tell_type,
    "uniqueItems": _fixed("expected no item twice"),
}


def _found(path: Tuple[Any, ...], message: str, value: Any = None) -> Finding:
    if len(message) > _MAX_MESSAGE:
        message = message[: _MAX_MESSAGE - 1] + "…"
    huge = isinstance(value, int) and value.bit_length() > 333
    if huge or not isinstance(value, (str, bool, int, float)):
        value = None
    elif isinstance(value, str) and len(value) > 100:
        value = value[:99] + "…"
    return Finding(".".join(map(str, path)), message, value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _listed(values: List[Any], room: int = 120) -> str:
    """List JSON values within *room* characters."""
    shown: List[str] = []
    for value in values:
        text = _json(value)
        room -= len(text) + 2
        if room < 0 and shown:
            return f"{', '.join(shown)} and {len(values) - len(shown)} more"
        shown.append(text)
    return ", ".join(shown)
