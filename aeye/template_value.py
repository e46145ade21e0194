"""What a Python value is to a template: its text, its truth, its parts.

Templates speak JavaScript's dialect here, because the language is Handlebars':
an empty string is false and an empty mapping is true, ``1.0`` prints as ``1``,
and a list prints its items joined by commas. Mappings and dataclasses are the
exception: they print as compact JSON.

Data is somebody else's. Nothing here recurses with its depth, calls a method that
a template names, reads an attribute that starts with an underscore, or writes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence, Set, ValuesView
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from json.encoder import encode_basestring
from numbers import Number
from types import (
    AsyncGeneratorType,
    CodeType,
    CoroutineType,
    FrameType,
    GeneratorType,
    ModuleType,
    TracebackType,
)
from typing import Any, Callable, Collection, Iterable, Iterator, List, Tuple

__all__ = [
    "CircularError",
    "MISSING",
    "Merged",
    "entries",
    "is_empty",
    "is_true",
    "items_of",
    "look_up",
    "number_text",
    "text_of",
]

# What a look-up gives that finds nothing; None is a value that was found.
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()

# A template that could read these would read the program that renders it:
# a generator's ``gi_frame`` leads to every global.
_OPAQUE = (
    ModuleType,
    FrameType,
    TracebackType,
    CodeType,
    GeneratorType,
    CoroutineType,
    AsyncGeneratorType,
)
_BYTES = (bytes, bytearray)
_NOT_A_LIST = (str, bytes, bytearray, memoryview, Enum)
_LISTS = (Sequence, Set, ValuesView, deque)
_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,17})\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")

# The text before an item, and the item.
_Piece = Tuple[str, object]


class CircularError(ValueError):
    """Data that contains itself has no text."""


class Merged(Mapping[str, object]):
    """A context with some names laid over it, for partials with named arguments."""

    def __init__(self, over: Mapping[str, object], base: object) -> None:
        self._over = over
        self._base = base

    def __getitem__(self, name: object) -> object:
        if not isinstance(name, str):  # whoever asks for 0 asks for "0" as well
            raise KeyError(name)
        found = self._over.get(name, MISSING)
        if found is MISSING:
            found = look_up(self._base, name)
        if found is MISSING:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        base = _mapping_of(self._base)
        return iter({**(base if base is not None else {}), **self._over})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def look_up(value: object, name: str) -> object:
    """Read one step of a path: a key, an index, ``length`` or an attribute.

    A callable is never found: no template gets hold of a method.

    >>> look_up({"_id": 7}, "_id"), look_up(["a"], "0"), look_up("abc", "length")
    (7, 'a', 3)
    >>> look_up("abc", "upper"), look_up(3, "real")
    (MISSING, MISSING)
    """
    if isinstance(value, Mapping):
        found = value.get(name, MISSING)
        if found is MISSING and _INDEX.match(name):
            found = value.get(int(name), MISSING)
    elif isinstance(value, Enum):
        found = _attribute(value, name)
    elif isinstance(value, str) or items_of(value) is not None:
        found = _element(value, name)
        if found is MISSING and type(value) not in (str, list, tuple):
            found = _attribute(value, name)
    elif isinstance(value, (int, float, complex, *_BYTES)):
        found = MISSING
    else:
        found = _attribute(value, name)
    return MISSING if callable(found) else found


def is_true(value: object) -> bool:
    """Whether JavaScript takes *value* for true.

    >>> [is_true(v) for v in ({}, [], "0", 0, "", float("nan"), None)]
    [True, True, True, False, False, False, False]
    """
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, (str, *_BYTES)):
        return len(value) > 0
    if value is None or value is MISSING:
        return False
    if isinstance(value, Number):
        return value == value and bool(value)  # NaN is not itself
    if isinstance(value, (Mapping, *_LISTS)):
        return True
    # Objects are true, unless they say otherwise: numpy's booleans do.
    return bool(value) if hasattr(type(value), "__bool__") else True


def is_empty(value: object) -> bool:
    """Whether ``#with`` and ``#if`` take *value* for nothing: zero is something.

    >>> [is_empty(v) for v in ([], "", False, None, {}, 0)]
    [True, True, True, True, False, False]
    """
    items = items_of(value)
    if items is not None:
        return len(items) == 0
    if is_true(value):
        return False
    if isinstance(value, Enum):
        value = value.value
    return isinstance(value, bool) or not isinstance(value, Number) or value != value


def items_of(value: object) -> Collection[Any] | None:
    """Give *value* back if it is a list to a template, else None.

    Lists are sequences, sets, deques, ranges and views; text and bytes are not.
    """
    if type(value) is list:
        return value
    if isinstance(value, _LISTS) and not isinstance(value, _NOT_A_LIST):
        return value
    return None


def entries(value: object) -> List[Tuple[object, object]]:
    """List what ``#each`` walks over: pairs of a key or an index, and an item.

    >>> entries(["a", "b"]), entries({"x": 1}), entries("text")
    ([(0, 'a'), (1, 'b')], [('x', 1)], [])
    """
    if type(value) is dict:
        return list(value.items())
    if items_of(value) is not None or (
        hasattr(type(value), "__iter__")
        and not isinstance(value, (Mapping, *_NOT_A_LIST))
        and not _has_fields(value)
    ):
        found: Iterable[Any] = value  # type: ignore[assignment]  # it has __iter__
        return list(enumerate(found))
    mapping = _mapping_of(value)
    return [] if mapping is None else list(mapping.items())


def text_of(value: object) -> str:
    """Print *value* as a template does.

    >>> text_of([1.0, [True, None], {"a": "é"}])
    '1,true,,{"a":"é"}'

    Raises:
        CircularError: *value* contains itself.
    """
    kind = type(value)
    if kind is int or kind is float or kind is bool:  # the usual cases, at once
        return _scalar_text(value)
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return value
    if value is None or callable(value):
        return ""
    items = items_of(value)
    if items is not None:
        return "".join(_walk(value, _open_joined, text_of))
    if _mapping_of(value) is not None:
        return "".join(_walk(value, _open_json, _json_scalar))
    return _scalar_text(value)


def number_text(value: int | float) -> str:
    """Print a number as JavaScript does, an int exactly.

    >>> [number_text(n) for n in (1.0, 1e21, 1e-7, 0.00001, -0.0, 2**64)]
    ['1', '1e+21', '1e-7', '0.00001', '0', '18446744073709551616']
    """
    if isinstance(value, int):
        try:
            return int.__repr__(value)
        except ValueError:  # 3.11 and newer: more digits than str() gives
            return format(Decimal(value), "f")
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    mantissa, _, exponent = float.__repr__(value).partition("e")
    if not exponent:
        whole = mantissa[:-2] if mantissa.endswith(".0") else mantissa
        return "0" if whole == "-0" else whole
    return _scientific_text(mantissa, int(exponent))


def _scientific_text(mantissa: str, power: int) -> str:
    # https://tc39.es/ecma262/#sec-numeric-types-number-tostring, read 2026-11:
    # plain digits from 1e-6 up to 1e21, an exponent without padding elsewhere.
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    if 0 < power < 21:
        return sign + digits.ljust(power + 1, "0")
    if -7 < power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    if mantissa.endswith(".0"):  # pragma: no cover  # repr writes 1e+21, not 1.0e+21
        mantissa = mantissa[:-2]
    return f"{mantissa}e{power:+d}"


def _element(items: Any, name: str) -> object:
    if name == "length":
        return len(items)
    if isinstance(items, (Sequence, deque)) and _INDEX.match(name):
        index = int(name)
        return items[index] if index < len(items) else MISSING
    return MISSING


def _attribute(value: object, name: str) -> object:
    if name.startswith("_") or isinstance(value, _OPAQUE) or callable(value):
        return MISSING
    # What a property raises is the caller's, but for "there is none".
    return getattr(value, name, MISSING)


def _has_fields(value: object) -> bool:
    kind = type(value)
    return is_dataclass(kind) or callable(getattr(kind, "model_dump", None))


def _mapping_of(value: object) -> Mapping[Any, Any] | None:
    """View *value* as a mapping: itself, a dataclass's fields, a model's dump."""
    if isinstance(value, Mapping):
        return value
    if not _has_fields(value):
        return None
    if not is_dataclass(value):
        dump: Any = value
        return dict(dump.model_dump())
    names = (f.name for f in fields(value) if not f.name.startswith("_"))
    return {k: getattr(value, k) for k in names if hasattr(value, k)}


def _scalar_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, _BYTES):
        return value.decode("utf-8", "replace")
    return str(value)


def _walk(
    value: object,
    open_container: Callable[[object], Tuple[str, Iterator[_Piece], str] | None],
    scalar: Callable[[object], str],
) -> Iterator[str]:
    """Yield the text of *value*, with a stack of our own: data may be deep."""
    # The container that is open, the rest of its items, its closing text.
    stack: List[Tuple[object, Iterator[_Piece], str]] = [
        (None, iter([("", value)]), "")
    ]
    inside = set()
    while stack:
        container, pieces, closing = stack[-1]
        for lead, item in pieces:
            yield lead
            opened = open_container(item)
            if opened is None:
                yield scalar(item)
                continue
            if id(item) in inside:
                raise CircularError("the value contains itself")
            inside.add(id(item))
            opening, inner, end = opened
            yield opening
            stack.append((item, inner, end))
            break
        else:
            stack.pop()
            inside.discard(id(container))
            yield closing


def _open_joined(value: object) -> Tuple[str, Iterator[_Piece], str] | None:
    items = items_of(value)
    if items is None:
        return None
    return "", (("," if n else "", item) for n, item in enumerate(items)), ""


def _open_json(value: object) -> Tuple[str, Iterator[_Piece], str] | None:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str) or callable(value):
        return None
    items = items_of(value)
    if items is not None:
        return "[", (("," if n else "", item) for n, item in enumerate(items)), "]"
    mapping = _mapping_of(value)
    return None if mapping is None else ("{", _members(mapping), "}")


def _members(mapping: Mapping[Any, Any]) -> Iterator[_Piece]:
    comma = ""
    for key, item in mapping.items():
        if not callable(item):
            yield f"{comma}{_quote(_key_text(key))}:", item
            comma = ","


def _key_text(key: object) -> str:
    return "null" if key is None else text_of(key)


def _json_scalar(value: object) -> str:
    if isinstance(value, Enum):
        value = value.value
    if value is None or callable(value):
        return "null"
    if isinstance(value, (int, float)):
        text = _scalar_text(value)
        return "null" if text in ("NaN", "Infinity", "-Infinity") else text
    return _quote(value if isinstance(value, str) else _scalar_text(value))


def _quote(text: str) -> str:
    quoted = encode_basestring(text)
    if text.isascii():
        return quoted
    # A lone surrogate has no UTF-8: JSON.stringify escapes it.
    return _SURROGATE.sub(lambda m: f"\\u{ord(m.group()):04x}", quoted)
