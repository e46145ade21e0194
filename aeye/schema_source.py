"""Python types and signatures → JSON Schema, with the shape that builds values back.

The JSON of a class is made in one walk together with its ``Shape``; the two never
part. Classes and enums become entries of ``$defs`` first, so that recursion and
sharing need no thought; those used once are then put in place.
"""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import enum
import inspect
import typing
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union
from uuid import UUID

from .errors import SchemaError
from .schema_build import (
    Anything,
    Chosen,
    Fixed,
    Foreign,
    Later,
    Many,
    Mapped,
    Record,
    Scalar,
    Shape,
    Slot,
    Text,
    Variant,
)
from .schema_field import Field, apply_note, dumped, flat_notes
from .schema_hint import (
    class_hints,
    class_scope,
    docstring_parts,
    function_scope,
    plain_function,
    resolve_hint,
    type_hints,
)
from .schema_normal import (
    ANNOTATIONS,
    Json,
    def_name,
    hoist_root,
    normalise,
    plain,
    rename_refs,
    walk,
)
from .schema_value import ABSENT, kind_of, to_json

__all__ = [
    "describe",
    "describe_function",
    "is_type",
]

_Described = Tuple[Json, Shape]


_SCALARS: Dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_TEXTS: Dict[Any, Json] = {
    datetime: {"format": "date-time"},
    date: {"format": "date"},
    time: {"format": "time"},
    timedelta: {"format": "duration"},
    UUID: {"format": "uuid"},
    Decimal: {"pattern": r"^-?[0-9]+(\.[0-9]+)?$"},
    bytes: {"contentEncoding": "base64"},
}
_MANY: Dict[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}
_MAPS = (
    dict,
    collections.OrderedDict,
    collections.abc.Mapping,
    collections.abc.MutableMapping,
)
_WRAPPERS = ("Required", "NotRequired", "ReadOnly", "Final")


def is_type(source: Any) -> bool:
    """Whether *source* is a type at all, and not a value."""
    return (
        source is None
        or source is Any
        or isinstance(source, (type, typing.TypeVar))
        or typing.get_origin(source) is not None
        or hasattr(source, "__supertype__")
        or type(source).__name__ == "TypeAliasType"
        or getattr(source, "__module__", "") in ("typing", "typing_extensions")
    )


def describe(source: Any) -> _Described:
    """Give the JSON Schema and the shape of a Python type.

    Raises:
        SchemaError: the type, or one in it, has no JSON form.
    """
    reader = _Reader()
    try:
        node, shape = reader.read(source, "$")
    except RecursionError as exc:
        raise SchemaError("the type nests too deeply", path="$") from exc
    return reader.finish(node), shape


def describe_function(fn: Callable[..., Any], skip: Iterable[str]) -> _Described:
    """Give the schema and the shape of the arguments of *fn*, an object by name."""
    reader = _Reader()
    node, shape = reader.read_function(fn, frozenset(skip))
    return reader.finish(node), shape


class _Reader:
    """One walk over a type and all that it refers to."""

    def __init__(self) -> None:
        self.defs: Dict[str, Json] = {}
        self.known: Dict[Any, Tuple[str, Shape]] = {}
        # What text and type variables mean in the class being read.
        self.scope: Dict[str, Any] = {}
        self.bound: Dict[Any, Any] = {}

    def read(self, hint: Any, path: str) -> _Described:
        hint = _substituted(hint, self.bound)
        if hint is None:
            hint = type(None)
        if hint is Any or hint is object:
            return {}, Anything()
        if isinstance(hint, (str, typing.ForwardRef)):
            return self.read(resolve_hint(hint, self.scope, path), path)
        if isinstance(hint, typing.TypeVar):
            return self.read(_stand_in(hint), path)
        if hasattr(hint, "__supertype__"):  # NewType
            return self.read(hint.__supertype__, path)
        origin = typing.get_origin(hint)
        if type(origin or hint).__name__ == "TypeAliasType":  # a type statement
            return self.read_alias(hint, path)
        if origin is not None:
            return self.read_generic(hint, origin, typing.get_args(hint), path)
        return self.read_plain(hint, path)

    def read_plain(self, hint: Any, path: str) -> _Described:
        if isinstance(hint, type):
            if hint in _SCALARS:
                return {"type": _SCALARS[hint]}, Scalar(hint)
            if hint in _TEXTS:
                return {"type": "string", **_TEXTS[hint]}, Text(hint)
            if issubclass(hint, PurePath):
                return {"type": "string"}, Text(hint)
            if hint is tuple:
                return {"type": "array"}, Many(Anything(), tuple)
            if hint in _MANY or hint in _MAPS:
                return self.read_generic(hint, hint, (), path)
            if issubclass(hint, enum.Enum):
                return self.read_enum(hint, path)
            found = self.read_class(hint, (), path)
            if found is not None:
                return found
        elif getattr(hint, "__name__", getattr(hint, "_name", "")) == "LiteralString":
            return {"type": "string"}, Scalar(str)
        raise SchemaError(
            f"{_called(hint)} has no JSON form; a dataclass, a TypedDict or a type "
            "made of them has",
            path=path,
        )

    def read_generic(
        self, hint: Any, origin: Any, args: Tuple[Any, ...], path: str
    ) -> _Described:
        if hasattr(hint, "__metadata__"):
            return self.read_annotated(hint, path)
        if origin is typing.Literal:
            return _literal(args, path)
        if origin is Union or type(hint).__name__ == "UnionType":
            return self.read_union(args, path)
        if origin is tuple:
            return self.read_tuple(args, path)
        if origin in _MANY:
            node, shape = self.read(args[0] if args else Any, f"{path}.items")
            make = _MANY[origin]
            told: Json = {"type": "array", "items": node}
            if make in (set, frozenset):
                told["uniqueItems"] = True
            return told, Many(shape, make)
        if origin in _MAPS:
            return self.read_map(args or (str, Any), path)
        if getattr(origin, "_name", getattr(origin, "__name__", "")) in _WRAPPERS:
            return self.read(args[0], path)
        found = self.read_class(origin, args, path)
        if found is None:
            raise SchemaError(f"{_called(hint)} has no JSON form", path=path)
        return found

    def read_union(self, args: Tuple[Any, ...], path: str) -> _Described:
        members = [self.read(arg, f"{path}.anyOf.{n}") for n, arg in enumerate(args)]
        return {"anyOf": [node for node, _ in members]}, Variant(tuple(members))

    def read_tuple(self, args: Tuple[Any, ...], path: str) -> _Described:
        if len(args) == 2 and args[1] is ...:
            node, shape = self.read(args[0], f"{path}.items")
            return {"type": "array", "items": node}, Many(shape, tuple)
        if args == ((),):  # 3.9, 3.10: the empty tuple
            args = ()
        members = [
            self.read(arg, f"{path}.prefixItems.{n}") for n, arg in enumerate(args)
        ]
        told: Json = {"type": "array"}
        if members:
            told["prefixItems"] = [node for node, _ in members]
        told.update(minItems=len(args), maxItems=len(args))
        return told, Fixed(tuple(shape for _, shape in members))

    def read_map(self, args: Tuple[Any, ...], path: str) -> _Described:
        key, key_shape = self.read(args[0], f"{path}.propertyNames")
        value, value_shape = self.read(args[1], f"{path}.additionalProperties")
        if key == {"type": "integer"}:
            key, key_shape = {"pattern": "^-?[0-9]+$"}, Text(int)
        elif not key:
            key_shape = Scalar(str)
        elif key_shape.kinds != {"string"}:
            raise SchemaError(
                f"the keys of a JSON object are text, not {_called(args[0])}",
                path=f"{path}.propertyNames",
            )
        told: Json = {"type": "object"}
        if value:
            told["additionalProperties"] = value
        if key and key != {"type": "string"}:
            told["propertyNames"] = key
        return told, Mapped(key_shape, value_shape)

    def read_alias(self, hint: Any, path: str) -> _Described:
        """Read an alias made by the type statement; it may refer to itself."""
        origin = typing.get_origin(hint) or hint
        found = self.find_known(hint)
        if found is not None:
            return found
        later = Later()
        name = self.make_known(hint, origin.__name__, later)
        outer = self.bound, self.scope
        self.bound = dict(zip(origin.__type_params__, typing.get_args(hint)))
        self.scope = class_scope(origin)
        try:
            value = origin.__value__
        except NameError as exc:
            raise SchemaError(f"{origin.__name__}: {exc}", path=path) from exc
        node, later.shape = self.read(value, path)
        self.bound, self.scope = outer
        self.defs[name].update(node)
        return {"$ref": f"#/$defs/{name}"}, later

    def read_annotated(self, hint: Any, path: str) -> _Described:
        node, shape = self.read(hint.__origin__, path)
        for note in flat_notes(hint.__metadata__):
            if isinstance(note, str):
                node["description"] = note
            else:
                shape = apply_note(node, shape, note, path)
        return node, shape

    def read_enum(self, cls: Any, path: str) -> _Described:
        found = self.find_known(cls)
        if found is not None:
            return found
        pairs = [(member.value, member) for member in cls]
        for value, member in pairs:
            if not isinstance(value, (str, int, float, type(None))):
                raise SchemaError(f"the value of {member} is not JSON", path=path)
        if not pairs:
            raise SchemaError(f"{_called(cls)} has no members", path=path)
        node, shape = _one_of(pairs, path)
        doc = _own_doc(cls)
        if doc:
            node["description"] = doc
        name = self.make_known(cls, cls.__name__, shape)
        self.defs[name].update(node)
        return {"$ref": f"#/$defs/{name}"}, shape

    def read_class(
        self, cls: Any, args: Tuple[Any, ...], path: str
    ) -> _Described | None:
        """Read a class with fields; None for other classes."""
        if not isinstance(cls, type):
            return None
        key = (cls, args) if args else cls
        found = self.find_known(key)
        if found is not None:
            return found
        if hasattr(cls, "model_json_schema") and hasattr(cls, "model_validate"):
            return self.read_foreign(cls, cls.model_json_schema())
        if hasattr(cls, "schema") and hasattr(cls, "parse_obj"):
            return self.read_foreign(cls, cls.schema())
        if dataclasses.is_dataclass(cls):
            members = _dataclass_members
        elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
            members = _namedtuple_members
        elif issubclass(cls, dict) and hasattr(cls, "__total__"):
            members = _typeddict_members
        else:
            return None
        shape = Record(dict if issubclass(cls, dict) else cls)
        shown = "_".join([cls.__name__, *(_called(arg) for arg in args)])
        name = self.make_known(key, shown, shape)
        self.fill_record(self.defs[name], shape, members(cls), (cls, args, path))
        doc = _own_doc(cls)
        if doc:
            self.defs[name]["description"] = doc
        return {"$ref": f"#/$defs/{name}"}, shape

    def fill_record(
        self,
        node: Json,
        shape: Record,
        members: List[_Member],
        place: Tuple[Any, Tuple[Any, ...], str],
    ) -> None:
        cls, args, path = place
        hints = class_hints(cls)
        bindings = _bindings(cls, args)
        texts = docstring_parts(cls)[1]
        outer = self.bound, self.scope
        properties: List[Tuple[_Member, _Described]] = []
        for member in members:
            hint, base = hints.get(member.name, (Any, cls))
            if isinstance(hint, dataclasses.InitVar):
                hint = hint.type
            self.bound, self.scope = bindings.get(base, {}), class_scope(base, cls)
            member = dataclasses.replace(
                member, description=member.description or texts.get(member.name)
            )
            way = f"{path}.properties.{member.name}"
            properties.append((member, self.read_member(hint, member, way)))
        self.bound, self.scope = outer
        _set_properties(node, shape, properties)

    def read_member(self, hint: Any, member: _Member, path: str) -> _Described:
        node, shape = self.read(hint, path)
        default = member.default
        if isinstance(default, Field):
            raise SchemaError(
                f"a Field is no default: write {member.name}: Annotated[..., Field()]",
                path=path,
            )
        if default is None and not _admits_null(node):
            # Everybody who writes "n: int = None" means Optional.
            node, shape = _optional(node, shape)
        if member.description and "description" not in node:
            node["description"] = member.description
        if default is not ABSENT:
            told = dumped(shape, default)
            if told is not ABSENT and not member.is_made:
                node["default"] = told
            elif isinstance(told, (list, dict)):
                # A factory of plain containers; others may give new values each time.
                node["default"] = told
            else:
                node.pop("default", None)
        return node, shape

    def read_foreign(self, cls: Any, told: Any) -> _Described:
        root = normalise(told)
        definitions = root.pop("$defs", {})
        shape = Foreign(cls)
        name = self.make_known(cls, cls.__name__, shape)
        names = {"#": f"#/$defs/{name}"}
        for old in definitions:
            new = def_name(old, self.defs)
            names[f"#/$defs/{old}"] = f"#/$defs/{new}"
            self.defs[new] = {}
        for old, node in definitions.items():
            if not isinstance(node, dict):
                node = {} if node else {"not": {}}
            rename_refs(node, names)
            self.defs[names[f"#/$defs/{old}"][len("#/$defs/") :]] = node
        rename_refs(root, names)
        self.defs[name].update(root)
        return {"$ref": f"#/$defs/{name}"}, shape

    def read_function(self, fn: Callable[..., Any], skip: frozenset[str]) -> _Described:
        node: Json = {}
        shape = Record(dict)
        # A class is called with what its __init__ takes.
        hinted = vars(fn).get("__init__", fn) if isinstance(fn, type) else fn
        hints = type_hints(hinted, skip=skip)
        self.scope = function_scope(plain_function(fn))
        texts = docstring_parts(fn)[1]
        properties: List[Tuple[_Member, _Described]] = []
        try:
            parameters = inspect.signature(fn).parameters
        except ValueError as exc:  # some builtins have none
            raise SchemaError(f"{fn!r} has no readable signature", path="$") from exc
        for name, parameter in parameters.items():
            if name in skip or parameter.kind is parameter.VAR_POSITIONAL:
                continue
            path = f"$.properties.{name}"
            hint = hints.get(name, Any)
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise SchemaError(
                    f"{name} is positional-only, and arguments are passed by name",
                    path=path,
                )
            if parameter.kind is parameter.VAR_KEYWORD:
                if name in hints:
                    rest, shape.rest = self.read(hint, "$.additionalProperties")
                    node["additionalProperties"] = rest or True
                continue
            bare = parameter.default is parameter.empty
            member = _Member(
                name, ABSENT if bare else parameter.default, bare, texts.get(name)
            )
            properties.append((member, self.read_member(hint, member, path)))
        _set_properties(node, shape, properties)
        return node, shape

    def find_known(self, key: Any) -> _Described | None:
        found = self.known.get(_hashable(key))
        return ({"$ref": f"#/$defs/{found[0]}"}, found[1]) if found else None

    def make_known(self, key: Any, wanted: str, shape: Shape) -> str:
        name = def_name(wanted, self.defs)
        self.defs[name] = {}
        self.known[_hashable(key)] = name, shape
        return name

    def finish(self, node: Json) -> Json:
        """Put definitions that are used once in place, the rest under ``$defs``."""
        uses: Dict[str, List[Json]] = {}
        for tree in [node, *self.defs.values()]:
            for user in walk(tree):
                if "$ref" in user:
                    uses.setdefault(user["$ref"], []).append(user)
        # From the inside out: a definition is used later than it is made.
        for name in reversed(list(self.defs)):
            users = uses.get(f"#/$defs/{name}", ())
            if len(users) == 1:
                # In place: the shape of a union holds its nodes.
                user = users[0]
                notes = {key: user.pop(key) for key in list(user) if key != "$ref"}
                del user["$ref"]
                user.update({**self.defs.pop(name), **notes})
        if self.defs:
            node["$defs"] = self.defs
        return hoist_root(node)


@dataclass(frozen=True)
class _Member:
    """One field of a class, or one parameter."""

    name: str
    default: Any
    required: bool
    description: Optional[str] = None
    # The default comes from a factory.
    is_made: bool = False
    readable: bool = True


def _dataclass_members(cls: Any) -> List[_Member]:
    # Unlike dataclasses.fields, this has what goes to __post_init__ alone.
    members = []
    known = {member.name for member in dataclasses.fields(cls)}
    for name, member in cls.__dataclass_fields__.items():
        init_var = isinstance(member.type, dataclasses.InitVar) or (
            isinstance(member.type, str) and "InitVar" in member.type
        )
        if not member.init or (name not in known and not init_var):
            continue
        is_made = member.default_factory is not dataclasses.MISSING
        default = member.default_factory() if is_made else member.default
        bare = default is dataclasses.MISSING
        text = member.metadata.get("description")
        members.append(
            _Member(
                name, ABSENT if bare else default, bare, text, is_made, name in known
            )
        )
    return members


def _namedtuple_members(cls: Any) -> List[_Member]:
    defaults = cls._field_defaults
    return [
        _Member(name, defaults.get(name, ABSENT), name not in defaults)
        for name in cls._fields
    ]


def _typeddict_members(cls: Any) -> List[_Member]:
    # Written in text, Required and NotRequired are not seen by TypedDict itself.
    members = []
    for name, (hint, _) in class_hints(cls).items():
        required = name in cls.__required_keys__
        while typing.get_origin(hint) is not None:
            origin = typing.get_origin(hint)
            word = getattr(origin, "_name", getattr(origin, "__name__", ""))
            if word not in _WRAPPERS and not hasattr(hint, "__metadata__"):
                break
            if word in ("Required", "NotRequired"):
                required = word == "Required"
            hint = typing.get_args(hint)[0]
        members.append(_Member(name, ABSENT, required))
    return members


def _set_properties(
    node: Json,
    shape: Record,
    properties: List[Tuple[_Member, _Described]],
) -> None:
    rest = node.pop("additionalProperties", None)
    node["type"] = "object"
    node["properties"] = {member.name: told for member, (told, _) in properties}
    slots, required = [], []
    for member, (told, inner) in properties:
        # A class fills in its own defaults.
        own = member.required or shape.cls is dict
        default = told.get("default", ABSENT) if own else ABSENT
        needed = member.required and "default" not in told
        if needed:
            required.append(member.name)
        slots.append(Slot(member.name, inner, default, member.readable, needed))
    if required:
        node["required"] = required
    if rest is not None:
        node["additionalProperties"] = rest
    shape.slots = tuple(slots)


def _literal(args: Tuple[Any, ...], path: str) -> _Described:
    pairs = []
    for value in args:
        told = value.value if isinstance(value, enum.Enum) else value
        if not isinstance(told, (str, int, type(None))):
            raise SchemaError(f"Literal[{value!r}] is not JSON", path=path)
        pairs.append((told, value))
    return _one_of(pairs, path)


def _one_of(pairs: List[Tuple[Any, Any]], path: str) -> _Described:
    """Describe a choice of scalars."""
    values = [plain(to_json(told), path) for told, _ in pairs]
    shape = Chosen(
        tuple(zip(values, (member for _, member in pairs))),
        frozenset(map(kind_of, values)),
    )
    others = [value for value in values if value is not None]
    if not others:
        return {"type": "null"}, shape
    node: Json = {}
    names = {_SCALARS[type(value)] for value in others}
    if names == {"integer", "number"}:
        names = {"number"}
    if len(names) == 1:
        node["type"] = names.pop()
    node.update({"const": others[0]} if len(others) == 1 else {"enum": others})
    if len(others) < len(values):
        return {"anyOf": [node, {"type": "null"}]}, shape
    return node, shape


def _admits_null(node: Json) -> bool:
    if not node.keys() - ANNOTATIONS or node.get("type") == "null":
        return True
    return any(map(_admits_null, node.get("anyOf", ())))


def _optional(node: Json, shape: Shape) -> _Described:
    notes = {key: node.pop(key) for key in list(node) if key in ANNOTATIONS}
    null: Json = {"type": "null"}
    told = {"anyOf": [node, null], **notes}
    return told, Variant(((node, shape), (null, Scalar(type(None)))))


def _own_doc(cls: Any) -> str:
    """The summary that somebody wrote for *cls*, not one that was made up."""
    doc = vars(cls).get("__doc__")
    made_up = (
        not isinstance(doc, str)
        or doc == "An enumeration."
        or doc.startswith(f"{cls.__name__}(")
    )
    return "" if made_up else docstring_parts(cls)[0]


def _bindings(cls: Any, args: Tuple[Any, ...]) -> Dict[Any, Dict[Any, Any]]:
    """Say what the type variables of *cls* and of each of its bases stand for."""
    bound = dict(zip(getattr(cls, "__parameters__", ()), args))
    found = {cls: bound}
    bases = vars(cls).get("__orig_bases__", cls.__bases__)
    for base in bases:
        origin = typing.get_origin(base) or base
        if isinstance(origin, type) and origin not in (typing.Generic, object):
            inner = tuple(_substituted(arg, bound) for arg in typing.get_args(base))
            for key, value in _bindings(origin, inner).items():
                found.setdefault(key, value)
    return found


def _substituted(hint: Any, bound: Dict[Any, Any]) -> Any:
    if isinstance(hint, typing.TypeVar):
        return bound.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    if not bound or not parameters or typing.get_origin(hint) is None:
        return hint
    return hint[tuple(bound.get(parameter, parameter) for parameter in parameters)]


def _stand_in(variable: Any) -> Any:
    """What a type variable without a value means."""
    if variable.__constraints__:
        return Union[variable.__constraints__]
    return Any if variable.__bound__ is None else variable.__bound__


def _hashable(key: Any) -> Any:
    try:
        hash(key)
    except TypeError:
        return repr(key)
    return key


def _called(hint: Any) -> str:
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        return hint.__name__
    return str(hint).replace("typing.", "")
