"""The one wrapper around JSON Schema: from any source, findings, values and back.

``Schema`` takes what a caller has (a dict of any draft, a Python type, a pydantic
model, a function's signature) and holds plain, self-contained JSON Schema 2020-12.
It checks JSON values against it, builds the Python values and dumps them again. How
a schema must be spelled for a vendor is not known here.

The modules ``schema_*`` hold the parts: ``schema_normal`` (old spellings),
``schema_source`` (Python types), ``schema_valid`` and ``schema_finding`` (checking),
``schema_build`` (values). Only this one imports ``jsonschema``, at first use.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, Iterator, Optional

from .errors import SchemaError
from .schema_build import Failed, Later, Scalar, Shape
from .schema_field import Field
from .schema_finding import explain, list_extras, scan
from .schema_format import CHECKERS, READERS
from .schema_hint import docstring_parts, type_hints
from .schema_normal import IN_PLACE, normalise, walk
from .schema_pattern import unsafe_pattern
from .schema_source import describe, describe_function, is_type
from .schema_valid import LINK, Check, has_unevaluated, prepare, quick_check
from .schema_value import Finding, canonical_json, copy_json, fill, parse_json, to_json

__all__ = [
    "Field",
    "Finding",
    "Schema",
    "canonical_json",
    "docstring_parts",
    "parse_json",
    "type_hints",
    "unsafe_pattern",
]

# More findings than this help no model.
_MAX_FINDINGS = 100
_TOO_DEEP = Finding("", "nests too deeply to be checked")


class Schema:
    """JSON Schema 2020-12 in a frozen wrapper, made from any source.

    >>> pair = Schema({"type": "array", "items": [{"type": "integer"}, {}]})
    >>> pair.json
    {'type': 'array', 'prefixItems': [{'type': 'integer'}, {}]}
    >>> for finding in pair.find(["x", None]):
    ...     print(finding)
    - 0: expected integer, got string (input: x)

    Equal when the JSON is equal, whatever the order of its keys, and the Python type
    is the same. Copies are the same object; a pickle holds no compiled validator.

    Raises:
        SchemaError: the source cannot be a schema; ``path`` says where.
        TypeError: it is nothing that a schema could be made from.
    """

    __slots__ = (
        "__weakref__",
        "_canonical",
        "_checker",
        "_identity",
        "_shape",
        "cache",
        "is_object",
        "is_text",
        "json",
        "name",
        "python_type",
    )

    # Self-contained: no reference but "#" and "#/$defs/…". Read-only.
    json: Dict[str, Any]
    # The title, or the name of the class.
    name: Optional[str]
    # None for a dict.
    python_type: Any
    # Whether a value is plain text: nothing but ``str``.
    is_text: bool
    # Whether every value is an object and the root says so itself.
    is_object: bool
    # For what others derive from the schema; no part of its value.
    cache: Dict[Any, Any]
    # How Python values are built; None for a dict.
    _shape: Optional[Shape]
    # What two schemas must share, besides the JSON, to be equal.
    _identity: Any
    _canonical: str
    _checker: Optional[_Checks]

    def __init__(self, source: Any, *, name: str | None = None) -> None:
        if isinstance(source, Schema):
            self._set(source.json, source._shape, source.python_type, source._identity)
            object.__setattr__(self, "name", name or source.name)
        elif isinstance(source, (Mapping, bool)):
            given = source if isinstance(source, bool) else dict(source)
            self._set(normalise(given), None, None, None)
            object.__setattr__(self, "name", name or self.json.get("title"))
        elif is_type(source):
            node, shape = describe(source)
            kind = type(None) if source is None else source
            self._set(node, shape, kind, kind)
            called = name or node.get("title") or _class_name(source)
            object.__setattr__(self, "name", called)
        else:
            raise TypeError(_no_source(source))

    @classmethod
    def of_function(cls, fn: Callable[..., Any], *, skip: Iterable[str] = ()) -> Schema:
        """Describe the arguments of *fn*: an object with a property for each parameter.

        ``load`` gives a dict of built arguments by name, defaults that have a JSON form
        included. Parameters named in *skip* are left out and their annotations not
        resolved; so is ``*args``. ``**kwargs`` admits further properties if it is
        annotated.

        >>> def greet(name: str, times: int = 1): ...
        >>> Schema.of_function(greet).load({"name": "Ann"})
        ({'name': 'Ann', 'times': 1}, [])

        Raises:
            SchemaError: an annotation cannot be resolved or has no JSON form, or a
                parameter is positional-only.
            TypeError: *fn* cannot be called.
        """
        if not callable(fn):
            raise TypeError(f"expected a function, got {fn!r:.80}")
        node, shape = describe_function(fn, skip)
        self = cls.__new__(cls)
        # The function itself may not survive a pickle: a decorator takes its name.
        self._set(node, shape, None, repr(shape))
        object.__setattr__(self, "name", getattr(fn, "__name__", None))
        return self

    def _set(
        self, node: Dict[str, Any], shape: Shape | None, kind: Any, identity: Any
    ) -> None:
        for key, value in (
            ("json", node),
            ("python_type", kind),
            ("is_text", _is_text(node, shape)),
            ("is_object", _is_object(node)),
            ("cache", {}),
            ("_shape", shape),
            ("_identity", identity),
            ("_canonical", canonical_json(node)),
            ("_checker", None),
        ):
            object.__setattr__(self, key, value)

    def resolve(self, node: Any) -> Any:
        """Follow the references of *node* to a node that is none.

        What stands beside a reference is not merged in.
        """
        while isinstance(node, dict) and "$ref" in node:
            ref = node["$ref"]
            # It ends: a schema that refers to itself in place is refused.
            node = self.json if ref == "#" else self.json["$defs"][ref[8:]]
        return node

    def find(self, value: Any) -> Iterator[Finding]:
        """Yield what is wrong with the JSON *value*, a hundred findings at most.

        Yields:
            Findings in the order of the schema; none if the value is valid.
        """
        if not self._checks.is_surely_valid(value):
            yield from self._find_slowly(value)

    def load(self, value: Any) -> tuple[Any, list[Finding]]:
        """Check the JSON *value* and build the Python value of it.

        Gives the value and no findings, or None and findings. Without a Python type
        the value is a copy of the JSON with defaults filled in.
        """
        checks = self._checks
        if checks.is_surely_valid(value):
            if self._shape is None and not checks.has_defaults:
                return copy_json(value), []
        else:
            findings = list(self._find_slowly(value))
            if findings:
                return None, findings
        try:
            if self._shape is None:
                return fill(self.json, value, self.resolve, checks.fits), []
            built = self._shape.build(value, checks.fits)
        except RecursionError:
            return None, [_TOO_DEEP]
        if built.__class__ is Failed:
            return None, list(built.findings)
        return built, []

    def dump(self, value: Any) -> Any:
        """Give the JSON value of a Python value; the inverse of ``load``.

        Raises:
            TypeError: *value* is not of the schema's type, or has no JSON form.
            ValueError: it has none because of what it holds, such as NaN.
        """
        if self._shape is None:
            return to_json(value)
        try:
            return self._shape.dump(value)
        except RecursionError as exc:
            raise ValueError("the value nests too deeply or contains itself") from exc

    def _find_slowly(self, value: Any) -> Iterator[Finding]:
        strange = scan(value)
        if strange is not None:
            yield strange
            return
        seen = set()
        try:
            for error in self._checks.validator.iter_errors(value):
                for finding in explain(error):
                    if (finding.path, finding.message) in seen:
                        continue
                    seen.add((finding.path, finding.message))
                    yield finding
                    if len(seen) >= _MAX_FINDINGS:
                        return
        except RecursionError:
            yield _TOO_DEEP

    @property
    def _checks(self) -> _Checks:
        checks = self._checker
        if checks is None:
            checks = _Checks(self.json, is_typed=self._shape is not None)
            object.__setattr__(self, "_checker", checks)
        return checks

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self is other or (
            self._canonical == other._canonical
            and bool(self._identity == other._identity)
        )

    def __hash__(self) -> int:
        return hash(self._canonical)

    def __repr__(self) -> str:
        if self.python_type is None:
            shown = canonical_json(self.json)
        else:
            shown = _class_name(self.python_type) or str(self.python_type)
        return f"Schema({shown[:77] + '...' if len(shown) > 80 else shown})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Schema cannot be changed: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Schema cannot be changed: {name}")

    def __copy__(self) -> Schema:
        return self

    def __deepcopy__(self, memo: Any) -> Schema:
        return self

    def __getstate__(self) -> Any:
        # The JSON and the shape go together: a union's shape holds nodes of it.
        return self.json, self._shape, self.python_type, self._identity, self.name

    def __setstate__(self, state: Any) -> None:
        node, shape, kind, identity, name = state
        self._set(node, shape, kind, identity)
        object.__setattr__(self, "name", name)


class _Checks:
    """What is compiled from a schema when it is first used."""

    def __init__(self, root: Dict[str, Any], *, is_typed: bool) -> None:
        self.root = root
        self.is_typed = is_typed
        # A Python type takes what it can hold, such as a time without an offset.
        self.formats = READERS if is_typed else CHECKERS
        self.quick = quick_check(root, root, self.formats)
        self.has_defaults = any("default" in node for node in walk(root))
        self._copies: Dict[int, Any] = {}
        self._validator: Any = None
        self._quick_parts: Dict[int, Optional[Check]] = {}

    def is_surely_valid(self, value: Any) -> bool:
        return self.quick is not None and self.quick(value)

    @property
    def validator(self) -> Any:
        if self._validator is None:
            self._validator = self._compile()
        return self._validator

    def _compile(self) -> Any:
        made, checkers = _validator_class()
        if not self.is_typed:
            _check_schema(made, prepare(self.root, link=False)[id(self.root)])
        self._copies = prepare(self.root, link=not has_unevaluated(self.root))
        copy = self._copies[id(self.root)]
        return made(copy, format_checker=checkers[self.is_typed])

    def fits(self, node: Any, value: Any) -> bool:
        """Whether *value* is valid under *node*, a part of the schema."""
        if isinstance(node, bool):
            return node
        key = id(node)
        if key not in self._quick_parts:
            self._quick_parts[key] = quick_check(node, self.root, self.formats)
        quick = self._quick_parts[key]
        if quick is not None and quick(value):
            return True
        validator = self.validator
        return bool(validator.evolve(schema=self._copies[key]).is_valid(value))


def _check_schema(validator_class: Any, schema: Dict[str, Any]) -> None:
    import jsonschema

    try:
        validator_class.check_schema(schema)
    except jsonschema.SchemaError as exc:
        path = ".".join(["$", *map(str, exc.absolute_path)])
        raise SchemaError(exc.message[:200], path=path) from exc


@lru_cache(maxsize=1)
def _validator_class() -> Any:
    """Make our validator class and its two format checkers, once."""
    import jsonschema

    base = jsonschema.Draft202012Validator
    made = jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # it is
        base,
        {
            LINK: _follow,
            "additionalProperties": _check_additional,
            "items": _check_items,
            "multipleOf": _check_multiple,
            "prefixItems": _check_first_items,
            "uniqueItems": _check_unique,
            # jsonschema 4.0 asks any value for its keys, or for its items.
            **{
                name: _only(kind, base.VALIDATORS[name])
                for name, kind in (
                    ("unevaluatedItems", list),
                    ("unevaluatedProperties", dict),
                )
            },
        },
    )
    checkers = []
    for formats in (CHECKERS, READERS):
        checker = jsonschema.FormatChecker(formats=())
        for name, fits in formats.items():
            checker.checks(name)(_strings_only(fits))
        checkers.append(checker)
    return made, tuple(checkers)


def _only(kind: type, check: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(validator: Any, rule: Any, value: Any, schema: Any) -> Any:
        return check(validator, rule, value, schema) if isinstance(value, kind) else ()

    return guarded


def _follow(validator: Any, target: Any, value: Any, schema: Any) -> Iterator[Any]:
    yield from validator.descend(value, target)


# jsonschema's own joins the patterns, and some cannot be joined.
def _check_additional(
    validator: Any, rest: Any, value: Any, schema: Any
) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    extras = list_extras(schema, value)
    if rest is False and extras:
        yield _error("unexpected properties")
        return
    for name in extras:
        yield from validator.descend(value[name], rest, path=name)


# Up to 4.3 jsonschema's own give wrong paths for tuples.
def _check_first_items(
    validator: Any, firsts: Any, value: Any, schema: Any
) -> Iterator[Any]:
    if isinstance(value, list):
        for n, (item, first) in enumerate(zip(value, firsts)):
            yield from validator.descend(item, first, path=n, schema_path=n)


def _check_items(validator: Any, rest: Any, value: Any, schema: Any) -> Iterator[Any]:
    start = len(schema.get("prefixItems", ()))
    if not isinstance(value, list) or len(value) <= start:
        return
    if rest is False:
        yield _error("too many items")
        return
    for n in range(start, len(value)):
        yield from validator.descend(value[n], rest, path=n)


# jsonschema's own overflows up to 4.2, and finds that 0.3 is no multiple of 0.1.
def _check_multiple(
    validator: Any, step: Any, value: Any, schema: Any
) -> Iterator[Any]:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and _exact(value) % _exact(step):
        yield _error("not a multiple")


def _exact(number: float) -> Any:
    """Give the number that was written, not the nearest binary one."""
    from fractions import Fraction

    return Fraction(number if isinstance(number, int) else repr(number))


# jsonschema's own compares each with each.
def _check_unique(
    validator: Any, wanted: Any, value: Any, schema: Any
) -> Iterator[Any]:
    is_list = wanted and isinstance(value, list)
    if is_list and len(set(map(_hashable, value))) < len(value):
        yield _error("not unique")


def _hashable(value: Any) -> Any:
    """Give what is equal for equal JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return dict, frozenset((key, _hashable(child)) for key, child in value.items())
    if isinstance(value, list):
        return list, tuple(map(_hashable, value))
    return isinstance(value, bool), value


def _error(message: str) -> Any:
    import jsonschema

    return jsonschema.ValidationError(message)


def _strings_only(fits: Callable[[str], bool]) -> Check:
    def check(value: Any) -> bool:
        return not isinstance(value, str) or fits(value)

    return check


def _is_text(node: Dict[str, Any], shape: Shape | None) -> bool:
    while isinstance(shape, Later) and shape.shape is not None:
        shape = shape.shape
    return (
        node.get("type") == "string"
        and node.keys() <= {"type", "title", "description"}
        and (shape is None or shape == Scalar(str))
    )


def _is_object(node: Dict[str, Any]) -> bool:
    return node.get("type") == "object" and not node.keys() & (IN_PLACE | {"$ref"})


def _class_name(source: Any) -> str | None:
    """The name that somebody gave the type; ``str`` and ``list[int]`` have none."""
    given = getattr(source, "__module__", "builtins") not in ("builtins", "typing")
    # 3.9: what NewType makes is a function of typing.
    named = typing.get_origin(source) is None and (
        given or hasattr(source, "__supertype__")
    )
    return getattr(source, "__name__", None) if named else None


def _no_source(source: Any) -> str:
    if callable(source):
        return (
            f"{source!r:.80} is a function: Schema.of_function describes its arguments"
        )
    return (
        "a schema is made from a dict, a bool or a type such as a dataclass, "
        f"got {source!r:.80}"
    )
