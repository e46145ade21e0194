# ruff: noqa: D102  # the methods are documented in Shape
"""JSON values ↔ Python values.

A ``Shape`` is the Python side of one schema node: it builds a value from JSON that
the schema has already accepted, and dumps it back. ``build`` never raises for what
a model wrote; what only Python can find out (a ``__post_init__`` that objects, a
date that does not exist) comes back as ``Failed``. ``dump`` raises TypeError or
ValueError for what is not a value of the type.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import PurePath
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Optional, Tuple

from .schema_value import (
    ABSENT,
    CODECS,
    KINDS,
    Finding,
    Valid,
    copy_json,
    dump_order,
    kind_of,
    plain_number,
    to_json,
)

__all__ = [
    "Anything",
    "Chosen",
    "Failed",
    "Fixed",
    "Foreign",
    "Later",
    "Limited",
    "Many",
    "Mapped",
    "Record",
    "Scalar",
    "Shape",
    "Slot",
    "Text",
    "Variant",
]


@dataclass(frozen=True)
class Failed:
    """What ``build`` gives when there is no value."""

    findings: Tuple[Finding, ...]


class Shape:
    """How one kind of Python value looks in JSON."""

    # The JSON types of its values; empty is any.
    kinds: FrozenSet[str] = frozenset()

    def build(self, value: Any, valid: Valid) -> Any:
        """Make the Python value, or give ``Failed``."""
        raise NotImplementedError

    def dump(self, value: Any) -> Any:
        """Make the JSON value."""
        raise NotImplementedError

    def holds(self, value: Any) -> bool:
        """Whether *value* looks like one of its values."""
        raise NotImplementedError

    def is_exact(self, value: Any) -> bool:
        """Whether *value* is of its very type, not of a subclass."""
        return self.holds(value)

    def count_strange(self, value: Any) -> int:
        """Count what of the JSON *value* would be lost or changed by building."""
        return 0


@dataclass(frozen=True)
class Anything(Shape):
    """Any JSON value; any Python value that has a JSON form."""

    def build(self, value: Any, valid: Valid) -> Any:
        return copy_json(value)

    def dump(self, value: Any) -> Any:
        return to_json(value)

    def holds(self, value: Any) -> bool:
        return True

    def is_exact(self, value: Any) -> bool:
        return False


@dataclass(frozen=True)
class Scalar(Shape):
    """Text, numbers, true and false, null."""

    cls: type

    @property
    def kinds(self) -> FrozenSet[str]:  # type: ignore[override]  # of the instance
        return _SCALAR_KINDS[self.cls]

    def build(self, value: Any, valid: Valid) -> Any:
        if value.__class__ is self.cls:
            return value
        try:
            return self.cls(value)  # 1.0 where an integer is wanted, 1 for a float
        except OverflowError:
            return _failed("the number is too large for a float")

    def dump(self, value: Any) -> Any:
        if not self.holds(value):
            raise TypeError(f"expected {self.cls.__name__}, got {value!r:.80}")
        if value is None or isinstance(value, bool):
            return value
        if self.cls is str:
            return str.__str__(value)
        return plain_number(value)

    def holds(self, value: Any) -> bool:
        if isinstance(value, bool):
            return self.cls is bool
        if self.cls is float:
            return isinstance(value, (int, float))
        return isinstance(value, self.cls)

    def is_exact(self, value: Any) -> bool:
        return type(value) is self.cls

    def count_strange(self, value: Any) -> int:
        return int(type(value) is not self.cls)


_SCALAR_KINDS: Dict[type, FrozenSet[str]] = {
    str: frozenset({"string"}),
    bool: frozenset({"boolean"}),
    type(None): frozenset({"null"}),
    int: frozenset({"number"}),
    float: frozenset({"number"}),
}


@dataclass(frozen=True)
class Text(Shape):
    """A Python type that is text in JSON: dates, UUID, Decimal, bytes, paths."""

    cls: Any
    kinds: FrozenSet[str] = frozenset({"string"})

    def build(self, value: Any, valid: Valid) -> Any:
        try:
            if issubclass(self.cls, PurePath):
                return self.cls(value)
            return CODECS[self.cls][0](value)
        except (ValueError, ArithmeticError) as exc:
            return _failed(_one_line(exc), value)

    def dump(self, value: Any) -> Any:
        if not self.holds(value):
            raise TypeError(f"expected {self.cls.__name__}, got {value!r:.80}")
        key = PurePath if issubclass(self.cls, PurePath) else self.cls
        return CODECS[key][1](value)

    def holds(self, value: Any) -> bool:
        if self.cls is date:
            return isinstance(value, date) and not isinstance(value, datetime)
        return isinstance(value, self.cls) and not isinstance(value, bool)

    def is_exact(self, value: Any) -> bool:
        return type(value) is self.cls


@dataclass(frozen=True)
class Chosen(Shape):
    """One of some values: an Enum, a Literal."""

    # Pairs of JSON and Python.
    members: Tuple[Tuple[Any, Any], ...]
    kinds: FrozenSet[str] = frozenset()

    def build(self, value: Any, valid: Valid) -> Any:
        for told, member in self.members:
            if type(told) is type(value) and told == value:
                return member
        for told, member in self.members:
            if told == value and kind_of(told) == kind_of(value):
                return member  # 1.0 for 1
        return _failed(f"expected one of {self._listed()}", value)

    def dump(self, value: Any) -> Any:
        for told, member in self.members:
            if type(member) is type(value) and member == value:
                return told
        raise TypeError(f"expected one of {self._listed()}, got {value!r:.80}")

    def holds(self, value: Any) -> bool:
        return any(
            type(member) is type(value) and member == value
            for _, member in self.members
        )

    def _listed(self) -> str:
        return ", ".join(str(told) for told, _ in self.members)[:100]


@dataclass(frozen=True)
class Many(Shape):
    """A list, set, frozenset or tuple of one kind of item."""

    item: Shape
    make: Callable[[Iterable[Any]], Any]
    kinds: FrozenSet[str] = frozenset({"array"})

    def build(self, value: Any, valid: Valid) -> Any:
        built = [self.item.build(child, valid) for child in value]
        failed = _gather(enumerate(built))
        if failed is not None:
            return failed
        try:
            return built if self.make is list else self.make(built)
        except TypeError as exc:  # an item that cannot be in a set
            return _failed(_one_line(exc))

    def dump(self, value: Any) -> Any:
        if not self.holds(value):
            raise TypeError(f"expected {_name(self.make)}, got {value!r:.80}")
        told = [self.item.dump(child) for child in value]
        if isinstance(value, Set):
            told.sort(key=dump_order)  # so that equal sets look equal
        return told

    def holds(self, value: Any) -> bool:
        if self.make in (set, frozenset):
            return isinstance(value, (set, frozenset))
        return isinstance(value, (list, tuple))

    def is_exact(self, value: Any) -> bool:
        return type(value) is self.make

    def count_strange(self, value: Any) -> int:
        return sum(map(self.item.count_strange, value))


@dataclass(frozen=True)
class Fixed(Shape):
    """A tuple with a type for each place."""

    items: Tuple[Shape, ...]
    kinds: FrozenSet[str] = frozenset({"array"})

    def build(self, value: Any, valid: Valid) -> Any:
        built = tuple(
            item.build(child, valid) for item, child in zip(self.items, value)
        )
        return _gather(enumerate(built)) or built

    def dump(self, value: Any) -> Any:
        if not self.holds(value):
            raise TypeError(f"expected a tuple of {len(self.items)}, got {value!r:.80}")
        return [item.dump(child) for item, child in zip(self.items, value)]

    def holds(self, value: Any) -> bool:
        return isinstance(value, (tuple, list)) and len(value) == len(self.items)

    def is_exact(self, value: Any) -> bool:
        return type(value) is tuple and len(value) == len(self.items)

    def count_strange(self, value: Any) -> int:
        return sum(item.count_strange(child) for item, child in zip(self.items, value))


@dataclass(frozen=True)
class Mapped(Shape):
    """A dict from keys that can be written as text to one kind of value."""

    key: Shape
    value: Shape
    kinds: FrozenSet[str] = frozenset({"object"})

    def build(self, value: Any, valid: Valid) -> Any:
        keys = [self.key.build(key, valid) for key in value]
        built = [self.value.build(child, valid) for child in value.values()]
        failed = _gather([*zip(value, keys), *zip(value, built)])
        return failed or dict(zip(keys, built))

    def dump(self, value: Any) -> Any:
        if not self.holds(value):
            raise TypeError(f"expected a mapping, got {value!r:.80}")
        return {
            self.key.dump(key): self.value.dump(child) for key, child in value.items()
        }

    def holds(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def is_exact(self, value: Any) -> bool:
        return type(value) is dict

    def count_strange(self, value: Any) -> int:
        return sum(map(self.value.count_strange, value.values()))


@dataclass(frozen=True)
class Slot:
    """One property of a record."""

    name: str
    shape: Shape
    # JSON; only what the class does not fill in by itself.
    default: Any = ABSENT
    # An InitVar goes in and does not come out.
    readable: bool = True
    required: bool = False


@dataclass(eq=False)
class Record(Shape):
    """An object with named properties: a dataclass, NamedTuple or TypedDict.

    Not frozen: the record of a recursive class is needed before its slots are known.
    """

    # dict for a TypedDict and for the arguments of a function.
    cls: Any
    slots: Tuple[Slot, ...] = ()
    # The shape of properties that are not declared; None drops them.
    rest: Optional[Shape] = None
    kinds: FrozenSet[str] = field(default=frozenset({"object"}), repr=False)

    def build(self, value: Any, valid: Valid) -> Any:
        built: Dict[str, Any] = {}
        failed: List[Finding] = []
        for slot in self.slots:
            child = value.get(slot.name, slot.default)
            if child is ABSENT:
                continue
            made = slot.shape.build(child, valid)
            if made.__class__ is Failed:
                failed += [finding.under(slot.name) for finding in made.findings]
            built[slot.name] = made
        if self.rest is not None:
            self._build_rest(value, valid, built, failed)
        if failed:
            return Failed(tuple(failed))
        if self.cls is dict:
            return built
        try:
            return self.cls(**built)
        except (ValueError, TypeError) as exc:
            return _failed(_one_line(exc))

    def _build_rest(
        self, value: Any, valid: Valid, built: Dict[str, Any], failed: List[Finding]
    ) -> None:
        assert self.rest is not None
        known = {slot.name for slot in self.slots}
        for name, child in value.items():
            if name not in known:
                made = self.rest.build(child, valid)
                if made.__class__ is Failed:
                    failed += [finding.under(name) for finding in made.findings]
                built[name] = made

    def dump(self, value: Any) -> Any:
        if not self.holds(value):
            what = "a dict of its keys" if self.cls is dict else self.cls.__name__
            raise TypeError(f"expected {what}, got {value!r:.80}")
        if self.cls is dict:
            given = value
        else:
            given = {
                slot.name: getattr(value, slot.name)
                for slot in self.slots
                if slot.readable
            }
        told = {
            slot.name: _dump_at(slot.name, slot.shape, given[slot.name])
            for slot in self.slots
            if slot.name in given
        }
        if self.rest is not None:
            for name in given:
                if name not in told:
                    told[name] = self.rest.dump(given[name])
        return told

    def holds(self, value: Any) -> bool:
        if self.cls is dict:
            return isinstance(value, Mapping) and all(
                slot.name in value for slot in self.slots if slot.required
            )
        return isinstance(value, self.cls)

    def is_exact(self, value: Any) -> bool:
        if self.cls is dict:
            return self.holds(value) and not self.count_strange(value)
        return type(value) is self.cls

    def count_strange(self, value: Any) -> int:
        known = {slot.name: slot.shape for slot in self.slots}
        return sum(
            known[name].count_strange(child) if name in known else 1
            for name, child in value.items()
        )


@dataclass(eq=False)
class Variant(Shape):
    """A Union: several shapes, each with its schema node."""

    # Pairs of node and shape, in the order of the source.
    members: Tuple[Tuple[Any, Shape], ...]

    def __post_init__(self) -> None:
        kinds = [shape.kinds for _, shape in self.members]
        self.kinds = frozenset().union(*kinds) if all(kinds) else frozenset()
        # By the type of the JSON value: most unions are told apart by that alone.
        self._by_kind = {
            kind: tuple(
                pair
                for pair in self.members
                if not pair[1].kinds or kind in pair[1].kinds
            )
            for kind in KINDS
        }

    def build(self, value: Any, valid: Valid) -> Any:
        fitting = self._by_kind[kind_of(value)]
        if len(fitting) > 1:
            # A stable sort: where several fit equally well the first one counts.
            fitting = tuple(
                sorted(
                    (pair for pair in fitting if valid(pair[0], value)),
                    key=lambda pair: pair[1].count_strange(value),
                )
            )
        made: Any = _failed("no member of the union fits", value)
        for _, shape in fitting:
            made = shape.build(value, valid)
            if made.__class__ is not Failed:
                break
        return made

    def dump(self, value: Any) -> Any:
        shapes = [shape for _, shape in self.members if shape.holds(value)]
        shapes.sort(key=lambda shape: not shape.is_exact(value))
        for shape in shapes:
            try:
                return shape.dump(value)
            except (TypeError, ValueError):
                continue
        raise TypeError(f"no member of the union fits {value!r:.80}")

    def holds(self, value: Any) -> bool:
        return any(shape.holds(value) for _, shape in self.members)

    def is_exact(self, value: Any) -> bool:
        return any(shape.is_exact(value) for _, shape in self.members)


@dataclass(eq=False)
class Later(Shape):
    """A stand-in for a recursive alias, completed when the alias is."""

    shape: Optional[Shape] = None

    @property
    def kinds(self) -> FrozenSet[str]:  # type: ignore[override]  # of the instance
        return frozenset()  # asking would not end

    @property
    def _shape(self) -> Shape:
        assert self.shape is not None, "completed before use"
        return self.shape

    def build(self, value: Any, valid: Valid) -> Any:
        return self._shape.build(value, valid)

    def dump(self, value: Any) -> Any:
        return self._shape.dump(value)

    def holds(self, value: Any) -> bool:
        return self._shape.holds(value)

    def is_exact(self, value: Any) -> bool:
        return self._shape.is_exact(value)


@dataclass(frozen=True)
class Limited(Shape):
    """A shape with bounds that JSON Schema cannot say, such as the earliest date."""

    shape: Shape
    # Pairs of an operator (">=", ">", "<=", "<") and a bound.
    bounds: Tuple[Tuple[str, Any], ...]

    @property
    def kinds(self) -> FrozenSet[str]:  # type: ignore[override]  # of the instance
        return self.shape.kinds

    def build(self, value: Any, valid: Valid) -> Any:
        made = self.shape.build(value, valid)
        if made is None or made.__class__ is Failed:
            return made  # None where the type has it is within all bounds
        for operator, bound in self.bounds:
            try:
                if not _COMPARE[operator](made, bound):
                    return _failed(f"must be {operator} {bound}", value)
            except TypeError as exc:  # with and without a time zone
                return _failed(_one_line(exc), value)
        return made

    def dump(self, value: Any) -> Any:
        return self.shape.dump(value)

    def holds(self, value: Any) -> bool:
        return self.shape.holds(value)

    def is_exact(self, value: Any) -> bool:
        return self.shape.is_exact(value)

    def count_strange(self, value: Any) -> int:
        return self.shape.count_strange(value)


_COMPARE: Dict[str, Callable[[Any, Any], bool]] = {
    ">=": lambda value, bound: bool(value >= bound),
    ">": lambda value, bound: bool(value > bound),
    "<=": lambda value, bound: bool(value <= bound),
    "<": lambda value, bound: bool(value < bound),
}


@dataclass(frozen=True)
class Foreign(Shape):
    """A class that validates and dumps by itself, as pydantic's models do."""

    cls: Any

    def build(self, value: Any, valid: Valid) -> Any:
        make = getattr(self.cls, "model_validate", None) or self.cls.parse_obj
        try:
            return make(copy_json(value))
        except ValueError as exc:
            if not hasattr(exc, "errors"):
                return _failed(_one_line(exc))
            return Failed(tuple(_told(error) for error in exc.errors()))

    def dump(self, value: Any) -> Any:
        if not self.holds(value):
            raise TypeError(f"expected {self.cls.__name__}, got {value!r:.80}")
        return to_json(value)

    def holds(self, value: Any) -> bool:
        return isinstance(value, self.cls)

    def is_exact(self, value: Any) -> bool:
        return type(value) is self.cls


def _told(error: Dict[str, Any]) -> Finding:
    path = ".".join(str(part) for part in error.get("loc", ()) if part != "__root__")
    message = str(error.get("msg", "invalid"))
    for prefix in ("Value error, ", "Assertion failed, "):
        message = message[len(prefix) :] if message.startswith(prefix) else message
    return Finding(path, message[:200], error.get("input"))


def _failed(message: str, value: Any = None) -> Failed:
    return Failed((Finding("", message, value),))


def _one_line(exc: BaseException) -> str:
    text = " ".join(str(exc).split())
    return text[:200] or type(exc).__name__


def _gather(built: Iterable[Tuple[Any, Any]]) -> Failed | None:
    findings = [
        finding.under(key)
        for key, made in built
        if made.__class__ is Failed
        for finding in made.findings
    ]
    return Failed(tuple(findings)) if findings else None


def _dump_at(name: str, shape: Shape, value: Any) -> Any:
    try:
        return shape.dump(value)
    except (TypeError, ValueError) as exc:
        raise type(exc)(f"{name}: {exc}") from exc


def _name(make: Any) -> str:
    return str(getattr(make, "__name__", make))
