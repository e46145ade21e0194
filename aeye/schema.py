"""JSON Schema from Python types and signatures; findings; values built back."""

from __future__ import annotations

import copy
import dataclasses
import enum
import json
import typing
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from .errors import SchemaError

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


@dataclass(frozen=True)
class Finding:
    """One way in which a value does not fit its schema."""

    path: str
    message: str
    value: Any = None

    def __str__(self) -> str:
        shown = isinstance(self.value, (str, bool, int, float))
        given = f" (input: {self.value})" if shown else ""
        return f"- {self.path}: {self.message}{given}"


@dataclass(frozen=True)
class Field:
    """What a schema says about one value, for use inside ``Annotated``."""

    description: Optional[str] = None
    title: Optional[str] = None
    default: Any = ...
    ge: Any = None
    gt: Any = None
    le: Any = None
    lt: Any = None
    multiple_of: Any = None
    min_length: Optional[int] = None
    max_length: Optional[int] = None
    pattern: Optional[str] = None
    format: Optional[str] = None
    examples: Tuple[Any, ...] = ()


class Schema:
    """A JSON Schema in a frozen wrapper."""

    json: Dict[str, Any]
    name: Optional[str]
    python_type: Any
    cache: Dict[Any, Any]

    def __init__(self, source: Any, *, name: str | None = None) -> None:
        self.python_type = None
        if isinstance(source, Schema):
            self.python_type, node = source.python_type, source.json
        elif isinstance(source, bool):
            node = {} if source else {"not": {}}
        elif isinstance(source, dict):
            node = copy.deepcopy(source)
        else:
            self.python_type, node = source, _describe(source)
        self.json = node
        self.name = name or node.get("title") or getattr(source, "__name__", None)
        self.cache = {}
        self._validator: Any = None

    @property
    def is_text(self) -> bool:
        """Whether the schema is a bare string."""
        return self.json.get("type") == "string" and set(self.json) <= {
            "type",
            "title",
            "description",
        }

    @property
    def is_object(self) -> bool:
        """Whether the root is an object schema without combinators."""
        return self.json.get("type") == "object" and not (
            {"anyOf", "oneOf", "allOf", "not", "if", "$ref"} & set(self.json)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(canonical_json(self.json))

    def _key(self) -> Any:
        return canonical_json(self.json), self.python_type

    def resolve(self, node: Any) -> Any:
        """Follow the local references of *node*."""
        seen = set()
        while isinstance(node, dict) and "$ref" in node and node["$ref"] not in seen:
            seen.add(node["$ref"])
            target: Any = self.json
            for key in node["$ref"].split("/")[1:]:
                target = target[key.replace("~1", "/").replace("~0", "~")]
            node = target
        return node

    def find(self, value: Any) -> Iterator[Finding]:
        """Yield what is wrong with *value*."""
        if self._validator is None:
            import jsonschema

            self._validator = jsonschema.Draft202012Validator(self.json)
        for error in self._validator.iter_errors(value):
            path = ".".join(str(part) for part in error.absolute_path)
            yield Finding(path, error.message, error.instance)

    def load(self, value: Any) -> tuple[Any, list[Finding]]:
        """Validate *value* and build the Python value."""
        findings = list(self.find(value))
        if findings:
            return None, findings
        if dataclasses.is_dataclass(self.python_type):
            return typing.cast(Any, self.python_type)(**value), []
        return copy.deepcopy(value), []

    def dump(self, value: Any) -> Any:
        """Turn a Python value into JSON."""
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.asdict(value)
        return copy.deepcopy(value)

    @classmethod
    def of_function(cls, fn: Callable[..., Any], *, skip: Any = ()) -> Schema:
        """Describe the arguments of *fn*."""
        import inspect

        hints = type_hints(fn)
        properties, required = {}, []
        for key, parameter in inspect.signature(fn).parameters.items():
            if key in skip:
                continue
            properties[key] = _describe(hints.get(key, Any))
            if parameter.default is parameter.empty:
                required.append(key)
            else:
                properties[key]["default"] = parameter.default
        for key, text in docstring_parts(fn)[1].items():
            if key in properties:
                properties[key]["description"] = text
        node = {"type": "object", "properties": properties, "required": required}
        return cls(node, name=fn.__name__)


def type_hints(obj: Any) -> dict[str, Any]:
    """Resolve the annotations of a function or class."""
    try:
        return typing.get_type_hints(obj, include_extras=True)
    except NameError as exc:
        raise SchemaError(f"{obj!r}: {exc}") from exc


def docstring_parts(fn: Any) -> tuple[str, dict[str, str]]:
    """Split a docstring into its summary and its parameters."""
    return (fn.__doc__ or "").strip().split("\n\n")[0], {}


def canonical_json(value: Any) -> str:
    """Write *value* compactly with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse_json(text: str) -> Any:
    """Read the JSON text of a model."""
    return json.loads(text)


def unsafe_pattern(pattern: str) -> bool:
    """Say whether *pattern* may take exponential time."""
    return False


_SCALARS: Any = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _describe(source: Any) -> dict[str, Any]:
    origin, args = typing.get_origin(source), typing.get_args(source)
    if source is Any:
        return {}
    if source is None or source is type(None):
        return {"type": "null"}
    if source in _SCALARS:
        return {"type": _SCALARS[source]}
    if dataclasses.is_dataclass(source):
        hints = type_hints(source)
        needed = [
            field.name
            for field in dataclasses.fields(source)
            if field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ]
        return {
            "type": "object",
            "properties": {key: _describe(hint) for key, hint in hints.items()},
            "required": needed,
        }
    if isinstance(source, type) and issubclass(source, enum.Enum):
        return {"enum": [member.value for member in source]}
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin is typing.Union:
        return {"anyOf": [_describe(arg) for arg in args]}
    if source is list or origin is list:
        return {"type": "array", "items": _describe(args[0]) if args else {}}
    if source is dict or origin is dict:
        return {"type": "object", "additionalProperties": _describe(args[1])}
    raise SchemaError(f"{source!r} has no JSON Schema", path="$")
