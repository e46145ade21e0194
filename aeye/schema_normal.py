"""Any spelling of JSON Schema → plain, self-contained 2020-12.

``normalise`` takes what people have: drafts 3 to 7 and 2019-09, OpenAPI's
``nullable``, and the mixtures found in the wild. What it gives has no ``$id``, no
anchors and no reference but ``#`` and ``#/$defs/…``; definitions that nothing refers
to are gone. A reference that leads out of the document is refused, never fetched.
"""

from __future__ import annotations

import math
import re
from typing import Any, Dict, Iterator, List, Tuple, Union
from urllib.parse import unquote, urljoin

from .errors import SchemaError
from .schema_slip import meant_keyword, pattern_problem

__all__ = [
    "ANNOTATIONS",
    "IN_PLACE",
    "Json",
    "TYPES",
    "check_pattern",
    "def_name",
    "hoist_root",
    "normalise",
    "plain",
    "rename_refs",
    "subschemas",
    "walk",
]

Json = Dict[str, Any]
_Path = Tuple[Union[str, int], ...]

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
# Keywords that say something about a value but forbid none.
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated"}
    | {"readOnly", "writeOnly", "$comment", "discriminator"}
)
_ONE = frozenset(
    {"additionalProperties", "propertyNames", "items", "contains", "not", "if"}
    | {"then", "else", "unevaluatedProperties", "unevaluatedItems", "contentSchema"}
)
_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAP = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})
# Keywords whose schemas apply to the value itself, not to a part of it.
IN_PLACE = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}
)
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"}
    | {"minProperties", "maxProperties"}
)
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_TEXTS = frozenset({"pattern", "format", "contentEncoding", "contentMediaType"})
_DROPPED = frozenset(
    {"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"}
    | {"$vocabulary", "$comment", "definitions", "$defs", "nullable", "additionalItems"}
    | {"divisibleBy", "extends", "disallow", "dependencies", "example"}
)
_REFERENCES = ("$ref", "$recursiveRef", "$dynamicRef")
_OLD_FORMATS = {"ip-address": "ipv4", "host-name": "hostname"}
_MAX_DEPTH = 200


def normalise(source: Any) -> Json:
    """Rewrite *source*, a dict or bool, as self-contained 2020-12; a fresh copy.

    >>> normalise({"type": "number", "minimum": 0, "exclusiveMinimum": True})
    {'type': 'number', 'exclusiveMinimum': 0}
    >>> normalise({"$ref": "https://example.com/person.json"})
    Traceback (most recent call last):
    aeye.errors.SchemaError: 'https://example.com/person.json' is another document, \
and those are never fetched: put the definition under $defs (at $.$ref)

    Raises:
        SchemaError: it is not a schema, or not one that stands alone.
    """
    if isinstance(source, bool):
        return {} if source else {"not": {}}
    try:
        root = _Reader(plain(source)).read()
    except RecursionError as exc:
        raise SchemaError("the schema nests too deeply", path="$") from exc
    root = hoist_root(root)
    if "properties" in root and not (
        root.keys() & (IN_PLACE | {"type", "$ref", "enum", "const"})
    ):
        # Everybody who leaves the type out at the root means an object.
        root = {"type": "object", **root}
    _check_progress(root)
    return root


def plain(value: Any, path: str = "$", depth: int = 0) -> Any:
    """Copy *value* if it is JSON; tuples become lists.

    Raises:
        SchemaError: it is not, or it nests more than 200 deep.
    """
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if depth > _MAX_DEPTH:
        raise SchemaError("the schema nests more than 200 deep", path=path[:200])
    if isinstance(value, float):
        if not math.isfinite(value):
            raise SchemaError(f"{value!r} is not JSON", path=path)
        return value
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise SchemaError(f"keys must be text, got {key!r}", path=path)
        return {
            key: plain(child, f"{path}.{key}", depth + 1)
            for key, child in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain(child, f"{path}.{n}", depth + 1) for n, child in enumerate(value)]
    if isinstance(value, type) or hasattr(value, "__origin__"):
        raise SchemaError(
            f"{getattr(value, '__name__', value)!s:.80} is a Python type, and a dict "
            "is JSON Schema: use a dataclass or a TypedDict, or write "
            '{"type": "object", "properties": …}',
            path=path,
        )
    raise SchemaError(f"{value!r:.80} is not JSON", path=path)


def check_pattern(pattern: str, path: str) -> None:
    """Refuse text that is no regular expression.

    Raises:
        SchemaError: it is none, in ECMAScript or in Python.
    """
    problem = pattern_problem(pattern)
    if problem is not None:
        raise SchemaError(
            f"{pattern!r:.80} is no regular expression: {problem}", path=path
        )


def subschemas(node: Json) -> Iterator[tuple[Tuple[Any, ...], Any]]:
    """Yield the schemas directly in a normalised *node*, with the way there."""
    for key, value in node.items():
        if key in _ONE:
            yield (key,), value
        elif key in _LIST:
            for n, child in enumerate(value):
                yield (key, n), child
        elif key in _MAP:
            for name, child in value.items():
                yield (key, name), child


def walk(root: Json) -> Iterator[Json]:
    """Yield every dict node of a normalised schema; references are not followed."""
    stack: List[Any] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack.extend(child for _, child in subschemas(node))


def rename_refs(root: Json, names: Dict[str, str]) -> None:
    """Replace references in place, by a table of whole references."""
    for node in walk(root):
        if node.get("$ref") in names:
            node["$ref"] = names[node["$ref"]]


def hoist_root(root: Json) -> Json:
    """Put the definition that a bare root reference names in the root's place."""
    seen = set()
    while root.get("$ref", "#") != "#" and root["$ref"] not in seen:
        if root.keys() - ANNOTATIONS - {"$ref", "$defs"}:
            return root
        ref = root["$ref"]
        seen.add(ref)
        definitions = root["$defs"]
        target = definitions.pop(ref[len("#/$defs/") :])
        notes = {key: root[key] for key in root if key in ANNOTATIONS}
        if not isinstance(target, dict):
            target = {} if target else {"not": {}}
        root.clear()
        # In place: what was built from the definition still holds it.
        target.update(notes)
        if definitions:
            target["$defs"] = definitions
        rename_refs(target, {ref: "#"})
        root = target
    return root


def def_name(wanted: str, taken: Any) -> str:
    """Make a key for ``$defs`` that needs no escaping and is not *taken*.

    >>> def_name("Page[int]", {"Page_int": {}})
    'Page_int_2'
    """
    base = re.sub(r"[^A-Za-z0-9_.-]+", "_", wanted).strip("_") or "schema"
    name, n = base, 1
    while name in taken:
        n += 1
        name = f"{base}_{n}"
    return name


class _Reader:
    """Reads one document, the definitions it turns out to need included."""

    def __init__(self, document: Any) -> None:
        if not isinstance(document, dict):
            raise SchemaError(
                f"a schema must be a dict or a bool, got {_kind(document)}", path="$"
            )
        self.document = document
        self.draft = _draft(document)
        # Where each embedded resource, anchor and base URI is.
        self.resources: Dict[str, _Path] = {"": ()}
        self.anchors: Dict[Tuple[str, str], _Path] = {}
        self.bases: Dict[_Path, str] = {}
        self.names: Dict[_Path, str] = {(): "#"}
        self.taken: Dict[str, _Path] = {}
        self.waiting: List[_Path] = []

    def read(self) -> Json:
        self.index(self.document, (), "", 0)
        root: Json = self.node(self.document, ())
        definitions: Json = {}
        while self.waiting:
            path = self.waiting.pop(0)
            name = self.names[path][len("#/$defs/") :]
            definitions[name] = self.node(self.at(path), path)
        if definitions:
            root["$defs"] = definitions
        return root

    def index(self, node: Any, path: _Path, base: str, depth: int) -> None:
        """Note every base URI and anchor, in whatever keyword it is nested."""
        if isinstance(node, list):
            for n, child in enumerate(node):
                self.index(child, (*path, n), base, depth + 1)
        if not isinstance(node, dict):
            return
        in_map = bool(path) and path[-1] in (_MAP | {"definitions"})
        if not in_map or (len(path) > 1 and path[-2] in _MAP):
            base = self.note_ids(node, path, base)
        self.bases[path] = base
        for key, child in node.items():
            if in_map or key not in ("enum", "const", "default", "examples"):
                self.index(child, (*path, key), base, depth + 1)

    def note_ids(self, node: Json, path: _Path, base: str) -> str:
        own = node.get("$id")
        old = node.get("id")
        if own is None and isinstance(old, str):
            # Without a draft, "id" is ours only if it cannot be anything else.
            undated = "$schema" not in self.document and old.startswith("#")
            own = old if self.draft < 6 or undated else None
        if isinstance(own, str) and ("$ref" not in node or self.draft > 7):
            if own.startswith("#"):
                self.anchors[base, own[1:]] = path
            else:
                base, _, anchor = _join(base, own).partition("#")
                self.resources.setdefault(base, path)
                if anchor:
                    self.anchors[base, anchor] = path
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(key), str):
                self.anchors[base, node[key]] = path
        return base

    def node(self, node: Any, path: _Path) -> Any:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            raise SchemaError(
                f"a schema must be an object or a boolean, got {_kind(node)}",
                path=_shown(path),
            )
        out: Json = {}
        for key in _REFERENCES:
            if key in node:
                out["$ref"] = self.reference(node[key], (*path, key))
        for key, value in node.items():
            if "$ref" in node and self.draft <= 7 and key not in ANNOTATIONS:
                continue  # up to draft 7 a reference stands alone
            if key not in _DROPPED and key not in _REFERENCES:
                _check_spelling(key, value, (*path, key))
                self.keyword(out, key, value, (*path, key))
        if not ("$ref" in node and self.draft <= 7):
            self.old_spellings(out, node, path)
        return out

    def keyword(self, out: Json, key: str, value: Any, path: _Path) -> None:
        if key in _ONE:
            self.one(out, key, value, path)
        elif key in _LIST:
            _need(isinstance(value, list), key, "a list of schemas", value, path)
            if value:
                out[key] = [
                    self.node(child, (*path, n)) for n, child in enumerate(value)
                ]
        elif key in _MAP:
            _need(isinstance(value, dict), key, "an object of schemas", value, path)
            for name in value if key == "patternProperties" else ():
                check_pattern(name, _shown((*path, name)))
            out[key] = {
                name: self.node(child, (*path, name)) for name, child in value.items()
            }
            if key == "properties":
                _add_required(out, _required_members(value))
        elif key == "type":
            self.types(out, value, path)
        else:
            _set_plain(out, key, value, path)

    def one(self, out: Json, key: str, value: Any, path: _Path) -> None:
        if key != "items" or not isinstance(value, list):
            out[key] = self.node(value, path)
            return
        # Before 2020-12 a list of items was what prefixItems is now.
        if value:
            out["prefixItems"] = [
                self.node(child, (*path, n)) for n, child in enumerate(value)
            ]
        rest = (*path[:-1], "additionalItems")
        parent = self.at(path[:-1])
        if "additionalItems" in parent:
            out["items"] = self.node(parent["additionalItems"], rest)

    def types(self, out: Json, value: Any, path: _Path) -> None:
        given = value if isinstance(value, list) else [value]
        _need(bool(given), "type", "a type", value, path)
        if "any" in given:
            return
        names = [name for name in given if isinstance(name, str)]
        for name in names:
            if name not in TYPES:
                raise SchemaError(f"unknown type {name!r}", path=_shown(path))
        names = list(dict.fromkeys(names))
        if len(names) == len(given) or all(isinstance(name, str) for name in given):
            out["type"] = names[0] if len(names) == 1 else names
            return
        # Draft 3 mixes schemas into the list.
        branches: List[Any] = [{"type": name} for name in names]
        branches += [
            self.node(child, (*path, n))
            for n, child in enumerate(given)
            if not isinstance(child, str)
        ]
        _also(out, {"anyOf": branches} if len(branches) > 1 else branches[0])

    def old_spellings(self, out: Json, node: Json, path: _Path) -> None:
        for side in ("Minimum", "Maximum"):
            flag, bound = f"exclusive{side}", side.lower()
            if node.get(flag) is True and bound in out:
                out[flag] = out.pop(bound)
        if "divisibleBy" in node:
            _set_plain(out, "multipleOf", node["divisibleBy"], (*path, "divisibleBy"))
        if "example" in node and "examples" not in out:
            out["examples"] = [node["example"]]
        if "extends" in node:
            for child, way in _each(node["extends"], (*path, "extends")):
                _also(out, self.node(child, way))
        if "disallow" in node:
            banned: Json = {}
            self.types(banned, node["disallow"], (*path, "disallow"))
            _also(out, {"not": banned})
        if "dependencies" in node:
            self.dependencies(out, node["dependencies"], (*path, "dependencies"))
        if node.get("nullable") is True:
            _admit_null(out)

    def dependencies(self, out: Json, value: Any, path: _Path) -> None:
        _need(isinstance(value, dict), "dependencies", "an object", value, path)
        for name, child in value.items():
            if isinstance(child, str):
                child = [child]
            if isinstance(child, list):
                _need(_are_names(child), name, "a list of names", child, (*path, name))
                out.setdefault("dependentRequired", {})[name] = list(
                    dict.fromkeys(child)
                )
            else:
                way = (*path, name)
                out.setdefault("dependentSchemas", {})[name] = self.node(child, way)

    def reference(self, ref: Any, path: _Path) -> str:
        """Find the schema that *ref* means and give its place in the result."""
        _need(isinstance(ref, str), "$ref", "a string", ref, path)
        target = self.locate(ref, path)
        if target not in self.names:
            named = [part for part in target if isinstance(part, str)]
            name = def_name(named[-1] if named else "schema", self.taken)
            self.taken[name] = target
            self.names[target] = f"#/$defs/{name}"
            self.waiting.append(target)
        return self.names[target]

    def locate(self, ref: str, path: _Path) -> _Path:
        base = self.base_of(path)
        document, _, fragment = (ref if ref[:1] == "#" else _join(base, ref)).partition(
            "#"
        )
        if ref[:1] == "#":
            document = base
        if document not in self.resources:
            raise SchemaError(
                f"{ref!r} is another document, and those are never fetched: "
                "put the definition under $defs",
                path=_shown(path),
            )
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            found = self.anchors.get((document, fragment))
        else:
            parts = [
                part.replace("~1", "/").replace("~0", "~")
                for part in fragment.split("/")[1:]
            ]
            found = self.follow(self.resources[document], parts)
            if found is None:  # a pointer from the root, in spite of an $id between
                found = self.follow((), parts)
        if found is None:
            raise SchemaError(f"{ref!r} leads nowhere", path=_shown(path))
        return found

    def follow(self, start: _Path, parts: List[str]) -> _Path | None:
        node, path = self.at(start), start
        for part in parts:
            step: Union[str, int] = part
            if isinstance(node, list) and part.isdecimal() and int(part) < len(node):
                step = int(part)
            elif not isinstance(node, dict) or part not in node:
                return None
            node = node[step]
            path = (*path, step)
        return path

    def base_of(self, path: _Path) -> str:
        while path not in self.bases:
            path = path[:-1]
        return self.bases[path]

    def at(self, path: _Path) -> Any:
        node: Any = self.document
        for part in path:
            node = node[part]
        return node


def _draft(document: Json) -> int:
    """Give the draft that ``$schema`` names: 3 to 7, else the year; 2020 if none."""
    found = re.search(
        r"draft(?:-0|/)([3-9]|20[0-9]+)", str(document.get("$schema", ""))
    )
    if found is None:
        return 5 if "$schema" not in document and "id" in document else 2020
    return int(found[1][:4])


def _join(base: str, ref: str) -> str:
    try:
        return urljoin(base, ref)
    except ValueError:
        return ref


def _set_plain(out: Json, key: str, value: Any, path: _Path) -> None:
    """Check a keyword that holds no schemas, and keep it."""
    if key in _BOUNDS or key == "multipleOf":
        if isinstance(value, bool) and key.startswith("exclusive"):
            return
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        above = fits and (key != "multipleOf" or value > 0)
        _need(above, key, "a number" if key in _BOUNDS else "more than 0", value, path)
    elif key in _COUNTS:
        whole = isinstance(value, int) or (
            isinstance(value, float) and value.is_integer()
        )
        counts = whole and not isinstance(value, bool) and value >= 0
        _need(counts, key, "a whole number", value, path)
        value = int(value)
    elif key in _TEXTS:
        _need(isinstance(value, str), key, "a string", value, path)
        value = _OLD_FORMATS.get(value, value) if key == "format" else value
        if key == "pattern":
            check_pattern(value, _shown(path))
    elif key == "required":
        if not isinstance(value, bool):  # of draft 3, and meant for the parent
            _need(_are_names(value), key, "a list of names", value, path)
            _add_required(out, value)
        return
    elif not _keep_plain(key, value, path):
        return
    out[key] = value


def _keep_plain(key: str, value: Any, path: _Path) -> bool:
    if key == "enum":
        _need(isinstance(value, list), key, "a list", value, path)
    elif key == "uniqueItems":
        _need(isinstance(value, bool), key, "true or false", value, path)
    elif key == "dependentRequired":
        fits = isinstance(value, dict) and all(map(_are_names, value.values()))
        _need(fits, key, "an object of lists of names", value, path)
        for names in value.values():
            names[:] = dict.fromkeys(names)
    elif key in ("title", "description"):
        return isinstance(value, str)  # notes of the wrong type are no loss
    elif key == "examples":
        return isinstance(value, list)
    elif key in ("deprecated", "readOnly", "writeOnly"):
        return isinstance(value, bool)
    return True


def _need(fits: bool, key: str, what: str, value: Any, path: _Path) -> None:
    if not fits:
        raise SchemaError(f"{key} must be {what}, got {value!r:.80}", path=_shown(path))


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _add_required(out: Json, names: List[str]) -> None:
    merged = list(dict.fromkeys([*out.get("required", ()), *names]))
    if merged or names:
        out["required"] = merged


def _required_members(properties: Json) -> List[str]:
    return [
        name
        for name, child in properties.items()
        if isinstance(child, dict) and child.get("required") is True
    ]


def _check_spelling(key: str, value: Any, path: _Path) -> None:
    meant = meant_keyword(key, value)
    if meant is not None:
        raise SchemaError(
            f"{key!r} is no keyword: {meant!r} is meant, or else begin a word of your "
            "own with 'x-'",
            path=_shown(path),
        )


def _each(value: Any, path: _Path) -> Iterator[tuple[Any, _Path]]:
    if isinstance(value, list):
        for n, child in enumerate(value):
            yield child, (*path, n)
    else:
        yield value, path


def _also(out: Json, schema: Any) -> None:
    """Add *schema* to what *out* demands."""
    free = isinstance(schema, dict) and not (schema.keys() & out.keys())
    if free and len(schema) == 1 and schema.keys() & {"anyOf", "not"}:
        out.update(schema)
    else:
        out["allOf"] = [*out.get("allOf", ()), schema]


def _admit_null(out: Json) -> None:
    if isinstance(out.get("type"), str) and not out.keys() & (IN_PLACE | {"$ref"}):
        if out["type"] != "null":
            out["type"] = [out["type"], "null"]
    elif "type" in out and not out.keys() & (IN_PLACE | {"$ref"}):
        out["type"] = list(dict.fromkeys([*out["type"], "null"]))
    else:
        rest = {key: out.pop(key) for key in list(out) if key not in ANNOTATIONS}
        if rest:
            out["anyOf"] = [rest, {"type": "null"}]
        return
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    if "const" in out:
        out["enum"] = [out.pop("const"), None]


def _check_progress(root: Json) -> None:
    """Refuse a schema that refers to itself without going into the value."""
    targets: Json = {"#": root}
    for name, node in root.get("$defs", {}).items():
        targets[f"#/$defs/{name}"] = node
    done: Dict[int, bool] = {}
    for start, node in targets.items():
        if isinstance(node, dict):
            _visit(node, start, targets, done)


def _visit(start: Json, ref: str, targets: Json, done: Dict[int, bool]) -> None:
    stack: List[Tuple[Json, bool]] = [(start, False)]
    while stack:
        node, left = stack.pop()
        if left:
            done[id(node)] = True
        elif id(node) not in done:
            done[id(node)] = False
            stack.append((node, True))
            for child in _same_value(node, targets):
                if done.get(id(child)) is False:
                    raise SchemaError(
                        "the schema refers to itself without going into the value",
                        path="$" + ref[1:].replace("/", "."),
                    )
                stack.append((child, False))


def _same_value(node: Json, targets: Json) -> Iterator[Json]:
    if "$ref" in node and isinstance(targets[node["$ref"]], dict):
        yield targets[node["$ref"]]
    for way, child in subschemas(node):
        if way[0] in IN_PLACE and isinstance(child, dict):
            yield child


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _shown(path: _Path) -> str:
    return ".".join(["$", *map(str, path)])
