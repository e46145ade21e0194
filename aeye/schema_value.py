"""JSON values and the Python values that have a JSON form.

What needs no more than a look at the value, or at a plain schema: copying, dumping
by type, and filling in defaults where no Python type says how to build the value.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import math
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any, Callable, Dict, Iterable, Tuple
from uuid import UUID

from .schema_format import (
    read_date,
    read_datetime,
    read_duration,
    read_time,
    write_datetime,
    write_duration,
    write_time,
)
from .schema_pattern import runnable

__all__ = [
    "ABSENT",
    "CODECS",
    "Finding",
    "KINDS",
    "Valid",
    "canonical_json",
    "copy_json",
    "dump_order",
    "fill",
    "kind_of",
    "parse_json",
    "plain_number",
    "to_json",
]

# Asks whether a value fits a node of the schema being built from.
Valid = Callable[[Any, Any], bool]


class _Absent(enum.Enum):
    """No default; an enum member because that stays itself when pickled."""

    ABSENT = "absent"


ABSENT = _Absent.ABSENT


@dataclass(frozen=True)
class Finding:
    """One way in which a value does not fit its schema.

    >>> print(Finding("age", "expected integer, got string", "ten"))
    - age: expected integer, got string (input: ten)
    """

    # Dotted, as "items.0.name"; "" is the value itself.
    path: str
    message: str
    # The offending JSON value.
    value: Any = None

    def __str__(self) -> str:
        given = where = ""
        if isinstance(self.value, (str, bool, int, float)):
            value = self.value
            text = value if isinstance(value, str) else json.dumps(value)
            given = f" (input: {text if len(text) <= 100 else text[:100] + '…'})"
        if self.path:
            where = f"{self.path}: "
        return f"- {where}{self.message}{given}"

    def under(self, key: Any) -> Finding:
        """The same finding, seen from the container that holds the value as *key*."""
        path = f"{key}.{self.path}" if self.path else str(key)
        return Finding(path, self.message, self.value)


def _read_decimal(text: str) -> Decimal:
    return Decimal(text)


def _write_decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueError(f"{value!r} has no JSON form")
    return format(value, "f")


def _read_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError as exc:
        raise ValueError("expected base64 text") from exc


def _write_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


# Python type → how it is read from text and written. A subclass follows its base.
CODECS: Dict[type, Tuple[Callable[[str], Any], Callable[[Any], str]]] = {
    datetime: (read_datetime, write_datetime),
    date: (read_date, date.isoformat),
    time: (read_time, write_time),
    timedelta: (read_duration, write_duration),
    UUID: (UUID, str),
    Decimal: (_read_decimal, _write_decimal),
    bytes: (_read_bytes, _write_bytes),
    PurePath: (PurePath, str),
    int: (int, str),
}


def canonical_json(value: Any) -> str:
    """Write JSON compactly with sorted keys, for hashing and comparing.

    >>> canonical_json({"b": 1.0, "a": [True, None]})
    '{"a":[true,null],"b":1.0}'
    """
    return json.dumps(
        value,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def parse_json(text: str | bytes) -> Any:
    """Read JSON that a model wrote, at a bounded cost.

    Strict, and the same on every Python: NaN, Infinity and numbers that overflow are
    refused, and so are integers of more than 4,300 digits, nesting of more than 200
    levels and lone surrogates, which could not be sent or stored later. Of a repeated
    key the last value counts.

    >>> parse_json('{"a": 1, "a": 2}')
    {'a': 2}
    >>> parse_json("[NaN]")
    Traceback (most recent call last):
    ValueError: NaN is not JSON

    Raises:
        ValueError: it is not JSON, or more than that.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")  # a UnicodeDecodeError is a ValueError
    try:
        value = _DECODER.decode(text)
    except RecursionError as exc:
        raise ValueError(_TOO_DEEP) from exc
    # Few brackets cannot nest deeply, and counting is cheap.
    if text.count("[") + text.count("{") > _MAX_DEPTH and _is_deep([value]):
        raise ValueError(_TOO_DEEP)
    if not text.isascii() or "\\ud" in text or "\\uD" in text:
        _check_surrogates(value)
    return value


_MAX_DEPTH = 200
_MAX_DIGITS = 4300
_TOO_DEEP = f"nests more than {_MAX_DEPTH} levels deep"


def _read_integer(text: str) -> int:
    # The limit of CPython 3.11; older ones would take quadratic time.
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"an integer of {len(text)} digits is too long")
    return int(text)


def _read_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text:.40} is out of range")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    parse_int=_read_integer, parse_float=_read_float, parse_constant=_refuse_constant
)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ValueError(
            "half of a surrogate pair: escape the character as a pair or write it out"
        ) from exc


def kind_of(value: Any) -> str:
    """Name the JSON type of *value*; every number is a number.

    >>> kind_of(True), kind_of(1), kind_of(None)
    ('boolean', 'number', 'null')
    """
    return _KINDS_OF.get(type(value), "unknown")


_KINDS_OF = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
    dict: "object",
    list: "array",
}
KINDS = frozenset(_KINDS_OF.values())


def copy_json(value: Any) -> Any:
    """Copy a JSON value; much faster than ``copy.deepcopy``."""
    if value.__class__ is dict:
        return {key: copy_json(child) for key, child in value.items()}
    if value.__class__ is list:
        return [copy_json(child) for child in value]
    return value


def to_json(value: Any) -> Any:
    """Give the JSON form of a Python value, going by the value alone.

    >>> to_json({"when": date(2024, 5, 31), "sizes": {2, 1}})
    {'when': '2024-05-31', 'sizes': [1, 2]}

    Raises:
        TypeError: it has none.
        ValueError: it is not finite, or it contains itself.
    """
    try:
        return _to_json(value)
    except RecursionError as exc:
        raise ValueError("the value nests too deeply or contains itself") from exc


def _to_json(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return _to_json(value.value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return plain_number(value)
    if isinstance(value, Mapping):
        return {_key(key): _to_json(child) for key, child in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            member.name: _to_json(getattr(value, member.name))
            for member in dataclasses.fields(value)
            if member.init
        }
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _to_json(value._asdict())
    if isinstance(value, (list, tuple)):
        return [_to_json(child) for child in value]
    if isinstance(value, Set):
        return sorted(map(_to_json, value), key=dump_order)
    return _object_to_json(value)


def plain_number(value: Any) -> Any:
    """Strip a number of its subclass; what is not finite has no JSON form."""
    if not isinstance(value, float):
        return int(value)
    if not math.isfinite(value):
        raise ValueError(f"{value!r} has no JSON form")
    return float(value)


def _object_to_json(value: Any) -> Any:
    for cls, (_, write) in CODECS.items():
        if isinstance(value, cls):
            return write(value)
    if not isinstance(value, type):
        if hasattr(value, "model_dump"):
            return value.model_dump(mode="json", by_alias=True)
        if hasattr(value, "parse_obj"):
            return json.loads(value.json(by_alias=True))
    raise TypeError(f"{value!r:.80} has no JSON form")


def _key(key: Any) -> str:
    told = _to_json(key)
    if isinstance(told, bool) or not isinstance(told, (str, int)):
        raise TypeError(f"{key!r:.80} cannot be a key of a JSON object")
    return str(told)


def fill(node: Any, value: Any, resolve: Callable[[Any], Any], valid: Valid) -> Any:
    """Copy a valid *value*, filling in what the schema *node* has defaults for."""
    if value.__class__ not in (dict, list, float):
        return value
    while isinstance(node, dict):
        value = _fill_parts(node, value, resolve, valid)
        for branch in _branches(node, value, valid):
            value = fill(branch, value, resolve, valid)
        if "$ref" not in node:
            return value
        node = resolve(node)
    return copy_json(value)


def _fill_parts(
    node: Dict[str, Any], value: Any, resolve: Callable[[Any], Any], valid: Valid
) -> Any:
    if value.__class__ is float:
        wanted = node.get("type", ())
        whole = "integer" in wanted and "number" not in wanted and value.is_integer()
        return int(value) if whole else value
    if value.__class__ is list:
        first = node.get("prefixItems", ())
        rest = node.get("items")
        return [
            fill(first[n] if n < len(first) else rest, child, resolve, valid)
            for n, child in enumerate(value)
        ]
    if value.__class__ is not dict:
        return value
    properties = node.get("properties", {})
    filled = {
        name: fill(
            properties[name] if name in properties else _undeclared(node, name),
            child,
            resolve,
            valid,
        )
        for name, child in value.items()
    }
    for name, child in properties.items():
        if name not in filled and isinstance(child, dict):
            default = _default(child, resolve)
            if default is not ABSENT:
                filled[name] = copy_json(default)
    return filled


def _undeclared(node: Dict[str, Any], name: str) -> Any:
    for pattern, child in node.get("patternProperties", {}).items():
        told = runnable(pattern)
        if told is None or re.search(told, name):
            return child if told is not None else True
    return node.get("additionalProperties", True)


def _default(node: Dict[str, Any], resolve: Callable[[Any], Any]) -> Any:
    if "default" in node or "$ref" not in node:
        return node.get("default", ABSENT)
    target = resolve(node)
    return target.get("default", ABSENT) if isinstance(target, dict) else ABSENT


def _branches(node: Dict[str, Any], value: Any, valid: Valid) -> Iterable[Any]:
    """The schemas in *node* that say more about *value* itself."""
    yield from node.get("allOf", ())
    for key in ("anyOf", "oneOf"):
        for branch in node.get(key, ()):
            if valid(branch, value):
                yield branch
                break
    if "if" in node:
        met = valid(node["if"], value)
        yield node.get("then" if met else "else", True)


def dump_order(value: Any) -> Tuple[str, Any]:
    """A sort key for JSON values of any mixture of types."""
    if isinstance(value, (bool, type(None), dict, list)):
        return type(value).__name__, repr(value)
    return kind_of(value), value
