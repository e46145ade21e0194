"""Schemas and values that fit them, for the tests of the schema layer.

Two generators. ``schemas()`` draws JSON Schemas made of everything that people write;
``instance()`` makes a value for any schema, drawn or found, and does not know how the
library reads schemas: a validator decides whether the value fits.
"""

from __future__ import annotations

import functools
import json
import random
import re
from typing import Any

from hypothesis import strategies as st

# A strategy costs more to make than to draw from.
kept = functools.lru_cache(maxsize=None)

NAMES = ("a", "b", "c", "kind", "key", "value", "0", "1")
TEXTS = ("", "a", "A", "Zz", "user", "x-1", "2026-11-30", "é", "0", "null")
PATTERNS = ("^[a-z]+$", "^A", "[0-9]", "^x-", "z$", "(?=a)a", "^[a-z]+(-[0-9]+)?$")
FORMATS = ("date", "date-time", "email", "uri", "uuid", "idn-email", "int32", "regex")
_GUESSES = (
    *TEXTS,
    *("ab", "abc", "x", "Az", "aZ", "0a", "zz", "12", "007", "1.0.0", "v1", "#fff"),
    *("a@b.co", "http://example.org/a", "2026-11-30T00:00:00Z", "12:00:00"),
    *("00000000-0000-4000-8000-000000000000", "AAAA", "abc-def", "en", "USD", "+441"),
    *("x" * 12, "1" * 10, "a_b", "A1", "foo.bar", "/a/b", "10.0.0.1", "::1", "$x"),
)


class Unmade(Exception):
    """No value was found for a schema."""


# Schemas


@st.composite
def schemas(draw: Any) -> dict[str, Any]:
    """Draw a schema: an object mostly, with definitions it may refer to."""
    count = draw(st.sampled_from((0, 0, 1, 2)))
    names = tuple(f"#/$defs/D{index}" for index in range(count))
    refs = (*names, "#") if draw(st.integers(0, 3)) == 0 else names
    root = draw(_nodes(refs, 3) if draw(st.integers(0, 4)) == 0 else _objects(refs, 3))
    root = dict(root)
    if count:
        root["$defs"] = {f"D{n}": draw(_nodes((*refs, "#"), 2)) for n in range(count)}
    return root


def answers() -> Any:
    """Draw a schema of any kind: maps, lists, unions and scalars."""
    return _nodes((), 2)


@kept
def _nodes(refs: tuple[str, ...], depth: int) -> Any:
    plain = [_texts(), _numbers(), _literals(), _small()]
    if refs:
        plain += [_references(refs)] * 2
    if depth == 0:
        return st.one_of(*plain)
    below = depth - 1
    return st.one_of(
        *plain,
        _objects(refs, below),
        _objects(refs, below),
        _records(refs, below),
        _arrays(refs, below),
        _tuples(refs, below),
        _nullables(refs, below),
        _unions(refs, below),
        _tagged(refs, below),
        _intersections(refs, below),
    )


_SMALL = (
    {"type": "boolean"},
    {"type": "string"},
    {"type": "integer"},
    {"type": "null"},
    {"type": ["string", "integer"]},
    {"type": ["string", "array", "null"], "items": {"type": "integer"}},
    {"type": "object", "properties": {}},
    {"type": "object", "properties": {}, "additionalProperties": False},
)
_ANY = (
    {},
    {"description": "Anything."},
    {"type": "object"},
    {"type": "object", "additionalProperties": True},
    {"not": {"type": "null"}},
)


@kept
@st.composite
def _small(draw: Any) -> dict[str, Any]:
    return draw(st.sampled_from(_ANY if draw(st.integers(0, 24)) == 0 else _SMALL))


def _noted(draw: Any, node: dict[str, Any]) -> dict[str, Any]:
    node = dict(node)
    if draw(st.integers(0, 3)) == 0:
        node["description"] = draw(st.sampled_from(("What it is.", "A thing")))
    if draw(st.integers(0, 7)) == 0:
        node["title"] = "Title"
    if draw(st.integers(0, 9)) == 0:
        node["x-note"] = {"any": [1]}
    return node


@kept
@st.composite
def _texts(draw: Any) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "string"}
    if draw(st.booleans()):
        return _noted(draw, node)
    low = draw(st.integers(0, 2))
    extra = draw(st.sampled_from(("size", "pattern", "format", "encoding")))
    if extra == "size":
        node.update(minLength=low, maxLength=low + draw(st.integers(0, 4)))
    elif extra == "pattern":
        node["pattern"] = draw(st.sampled_from(PATTERNS))
    elif extra == "format":
        node["format"] = draw(st.sampled_from(FORMATS))
    else:
        node["contentEncoding"] = "base64"
    return _noted(draw, node)


@kept
@st.composite
def _numbers(draw: Any) -> dict[str, Any]:
    node: dict[str, Any] = {"type": draw(st.sampled_from(("integer", "number")))}
    low = draw(st.integers(-3, 3))
    for keyword, value in (
        ("minimum", low),
        ("exclusiveMinimum", low - 1),
        ("maximum", low + 4),
        ("exclusiveMaximum", low + 3.5),
        ("multipleOf", draw(st.sampled_from((1, 2, 0.5)))),
    ):
        if draw(st.integers(0, 4)) == 0:
            node[keyword] = value
    return _noted(draw, node)


@kept
@st.composite
def _literals(draw: Any) -> dict[str, Any]:
    pool = st.sampled_from(
        ("red", "green", "RED", 1, 2, 0, True, False, None, 1.5, [1], {"k": "v"})
    )
    if draw(st.integers(0, 6)) == 0:
        count = draw(st.sampled_from((39, 40, 41, 45)))
        return {"type": "string", "enum": [f"v{n}" for n in range(count)]}
    kind = draw(st.sampled_from(("const", "enum", "text", "mixed")))
    if kind == "const":
        return {"const": draw(pool)}
    if kind == "text":
        names = st.sampled_from(("red", "green", "blue"))
        return {
            "type": "string",
            "enum": draw(st.lists(names, min_size=1, unique=True)),
        }
    if draw(st.booleans()):
        pool = st.sampled_from(("red", "RED", 1, 2, None))
    node = {"enum": draw(st.lists(pool, min_size=1, max_size=4, unique_by=json.dumps))}
    return _noted(draw, node)


@kept
@st.composite
def _references(draw: Any, refs: tuple[str, ...]) -> dict[str, Any]:
    return _noted(draw, {"$ref": draw(st.sampled_from(refs))})


@kept
@st.composite
def _objects(draw: Any, refs: tuple[str, ...], depth: int) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    properties: dict[str, Any] = {}
    for name in names:
        node = dict(draw(_nodes(refs, depth)))
        if "$ref" not in node and draw(st.integers(0, 4)) == 0:
            node["default"] = _defaults(draw, node)
        properties[name] = node
    node = {"type": "object", "properties": properties}
    node["required"] = [name for name in names if draw(st.booleans())]
    if draw(st.integers(0, 19)) == 0:
        node["required"].append("extra")
    tail = draw(st.sampled_from((*[None] * 7, *[False] * 7, True, "typed", "by")))
    if tail == "typed":
        node["additionalProperties"] = draw(_nodes(refs, 0))
    elif tail == "by":
        node["patternProperties"] = {"^x-": draw(_nodes(refs, 0))}
    elif tail is not None:
        node["additionalProperties"] = tail
    if names and draw(st.integers(0, 9)) == 0:
        node["anyOf"] = [{"required": [name]} for name in names]
    if draw(st.integers(0, 12)) == 0:
        node["minProperties"] = 1
    if draw(st.integers(0, 15)) == 0:
        node["not"] = {"required": ["zzz"]}
    return _noted(draw, node)


def _defaults(draw: Any, node: dict[str, Any]) -> Any:
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from((None, "user", 0, [], {})))
    try:
        return instance({**node}, random.Random(draw(st.integers(0, 99))), node)
    except (Unmade, LookupError):
        return None


@kept
@st.composite
def _records(draw: Any, refs: tuple[str, ...], depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "object"}
    value = draw(_nodes(refs, depth))
    how = draw(st.sampled_from(("plain", "keys", "pattern", "by", "several")))
    if how == "by":
        node["patternProperties"] = {"^x-": value}
        node["additionalProperties"] = draw(st.sampled_from((False, True)))
    elif how == "several":
        node["patternProperties"] = {"^x-": value, "^A": draw(_nodes(refs, 0))}
        node["additionalProperties"] = draw(st.sampled_from((False, {"type": "null"})))
    else:
        node["additionalProperties"] = value
    if how == "keys":
        node["propertyNames"] = {"enum": ["en", "fr"]}
    elif how == "pattern":
        node["propertyNames"] = {"pattern": "^[a-z]+$"}
    return _noted(draw, node)


@kept
@st.composite
def _arrays(draw: Any, refs: tuple[str, ...], depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "array", "items": draw(_nodes(refs, depth))}
    if draw(st.integers(0, 2)) == 0:
        low = draw(st.integers(0, 1))
        node.update(minItems=low, maxItems=low + draw(st.integers(0, 2)))
    if draw(st.integers(0, 5)) == 0:
        node["uniqueItems"] = True
    if draw(st.integers(0, 29)) == 0:
        del node["items"]
    return _noted(draw, node)


@kept
@st.composite
def _tuples(draw: Any, refs: tuple[str, ...], depth: int) -> dict[str, Any]:
    items = draw(st.lists(_nodes(refs, depth), min_size=1, max_size=3))
    node: dict[str, Any] = {"type": "array", "prefixItems": items}
    how = draw(
        st.sampled_from(("fixed", "fixed", "closed", "closed", "rest", "short", "open"))
    )
    if how == "fixed":
        node.update(minItems=len(items), maxItems=len(items))
    elif how == "closed":
        node.update(items=False, minItems=draw(st.integers(0, len(items))))
    elif how == "rest":
        node.update(items=draw(_nodes(refs, 0)), minItems=draw(st.integers(0, 1)))
    elif how == "short":
        node.update(maxItems=draw(st.integers(0, len(items))))
    return _noted(draw, node)


@kept
@st.composite
def _nullables(draw: Any, refs: tuple[str, ...], depth: int) -> dict[str, Any]:
    inner = draw(_nodes(refs, depth))
    word = draw(st.sampled_from(("anyOf", "anyOf", "oneOf")))
    return _noted(draw, {word: [inner, {"type": "null"}]})


@kept
@st.composite
def _unions(draw: Any, refs: tuple[str, ...], depth: int) -> dict[str, Any]:
    branches = draw(st.lists(_nodes(refs, depth), min_size=1, max_size=3))
    word = draw(st.sampled_from(("anyOf", "oneOf")))
    return _noted(draw, {word: branches})


@kept
@st.composite
def _tagged(draw: Any, refs: tuple[str, ...], depth: int) -> dict[str, Any]:
    branches = []
    for tag in draw(st.sampled_from((("cat", "dog"), ("x", "y", "z")))):
        node = dict(draw(_objects(refs, depth)))
        node["properties"] = {**node["properties"], "kind": {"const": tag}}
        node["required"] = [*(n for n in node["required"] if n != "kind"), "kind"]
        branches.append(node)
    return {draw(st.sampled_from(("anyOf", "oneOf"))): branches}


@kept
@st.composite
def _intersections(draw: Any, refs: tuple[str, ...], depth: int) -> dict[str, Any]:
    how = draw(st.sampled_from(("objects", "patterns", "one", "bounds", "mixed")))
    if how == "objects":
        pieces = draw(st.lists(_objects(refs, depth), min_size=2, max_size=2))
        pieces = [{k: v for k, v in p.items() if v is not False} for p in pieces]
        return {"allOf": pieces}
    if how == "patterns":
        return {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "z$"}]}
    if how == "bounds":
        return {"type": "integer", "minimum": 0, "allOf": [{"maximum": 9}]}
    if how == "mixed":
        base = draw(_objects(refs, 0))
        return {**base, "oneOf": [draw(_objects(refs, 0)), draw(_objects(refs, 0))]}
    return _noted(draw, {"allOf": [draw(_nodes(refs, depth))]})


# Values


def instance(node: Any, rng: random.Random, root: Any, depth: int = 0) -> Any:
    """Make a value that probably fits *node*, without undeclared keys.

    Raises:
        Unmade: there is none, or it is too hard to find.
    """
    if node is False or depth > 14:
        raise Unmade
    if node is True or not node:
        return rng.choice((1, "text", None, True, [1, "x"], {"k": [1]}, 2.5))
    if "$ref" in node:
        target = root
        for step in node["$ref"].split("/")[1:]:
            target = target[step.replace("~1", "/").replace("~0", "~")]
        rest = {key: held for key, held in node.items() if key != "$ref"}
        merged = {**target, **rest} if isinstance(target, dict) and rest else target
        return instance(merged, rng, root, depth + 1)
    for word in ("anyOf", "oneOf"):
        if word in node:
            return _one_of(word, node, rng, root, depth)
    if "allOf" in node:
        return instance(_together(node, root), rng, root, depth + 1)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return rng.choice(node["enum"])
    return _typed(node, rng, root, depth)


def _one_of(
    word: str, node: dict[str, Any], rng: random.Random, root: Any, depth: int
) -> Any:
    rest = {key: held for key, held in node.items() if key != word}
    branches = list(node[word])
    rng.shuffle(branches)
    if depth > 5:  # out of recursion by the shortest way
        branches.sort(key=lambda branch: len(json.dumps(branch)))
    for branch in branches:
        try:
            both = {"allOf": [rest, branch]} if rest else branch
            return instance(both, rng, root, depth + 1)
        except Unmade:
            continue
    raise Unmade


def _together(node: dict[str, Any], root: Any, depth: int = 0) -> dict[str, Any]:
    """Put the pieces of an ``allOf`` side by side, roughly."""
    if depth > 20:
        raise Unmade  # it asks for itself
    merged = {key: held for key, held in node.items() if key != "allOf"}
    for piece in (_followed(piece, root) for piece in node["allOf"]):
        if piece is False:
            raise Unmade
        if piece is True:
            continue
        piece = _together(piece, root, depth + 1) if "allOf" in piece else piece
        _add_piece(merged, piece)
    if "allOf" in merged and merged["allOf"] == node["allOf"]:
        raise Unmade
    return merged


def _followed(piece: Any, root: Any) -> Any:
    for _ in range(9):
        if not (isinstance(piece, dict) and "$ref" in piece):
            break
        target = root
        for step in piece["$ref"].split("/")[1:]:
            target = target[step.replace("~1", "/").replace("~0", "~")]
        rest = {key: held for key, held in piece.items() if key != "$ref"}
        piece = {**target, **rest} if isinstance(target, dict) else target
    return piece


def _add_piece(merged: dict[str, Any], piece: dict[str, Any]) -> None:
    for key, held in piece.items():
        if key == "properties":
            merged[key] = {**merged.get(key, {}), **held}
        elif key == "required":
            merged[key] = [*merged.get(key, []), *held]
        elif key == "type" and isinstance(held, str) and "type" in merged:
            merged[key] = held
        elif key in ("anyOf", "oneOf") and key in merged:
            merged.setdefault("allOf", []).append({key: held})
        else:
            merged.setdefault(key, held)


def _typed(node: dict[str, Any], rng: random.Random, root: Any, depth: int) -> Any:
    kind = node.get("type")
    if isinstance(kind, list):
        kind = rng.choice(kind)
    if kind is None:
        kind = _guess_type(node)
    if kind == "object":
        return _object(node, rng, root, depth)
    if kind == "array":
        return _array(node, rng, root, depth)
    if kind == "string":
        return _text(node, rng)
    if kind in ("integer", "number"):
        return _number(node, kind, rng)
    return rng.choice((True, False)) if kind == "boolean" else None


def _guess_type(node: dict[str, Any]) -> str:
    for kind, words in (
        ("object", ("properties", "additionalProperties", "patternProperties")),
        ("array", ("items", "prefixItems")),
        ("string", ("pattern", "minLength", "maxLength", "format")),
        ("integer", ("minimum", "maximum")),
    ):
        if any(word in node for word in words):
            return kind
    return "null"


def _object(node: dict[str, Any], rng: random.Random, root: Any, depth: int) -> Any:
    made: dict[str, Any] = {}
    required = set(node.get("required", ()))
    for name, below in node.get("properties", {}).items():
        if name in required:
            made[name] = instance(below, rng, root, depth + 1)
        elif depth < 6 and rng.random() < 0.6:
            try:
                made[name] = instance(below, rng, root, depth + 1)
            except Unmade:
                continue
    tail = node.get("additionalProperties")
    for name in required - made.keys():
        made[name] = instance(True if tail is None else tail, rng, root, depth + 1)
    if depth <= 5:
        _add_others(made, node, rng, root, depth)
    names = node.get("propertyNames")
    if not isinstance(names, dict):
        return made
    allowed, pattern = names.get("enum"), names.get("pattern", "")
    return {
        key: held
        for key, held in made.items()
        if (allowed is None or key in allowed) and re.search(pattern, key)
    }


def _add_others(
    made: dict[str, Any],
    node: dict[str, Any],
    rng: random.Random,
    root: Any,
    depth: int,
) -> None:
    """Add keys that are no properties, where the schema says what they hold."""
    tail = node.get("additionalProperties")
    if tail is True and (node.get("properties") or node.get("patternProperties")):
        tail = None  # those would be undeclared
    keys = [key for key in (*TEXTS, "en", "fr", "x-9") if key not in made]
    for _ in range(rng.randrange(3)):
        key = rng.choice(keys)
        for pattern, below in node.get("patternProperties", {}).items():
            if re.search(pattern, key):
                made.setdefault(key, instance(below, rng, root, depth + 1))
        named = key in made or key in node.get("properties", {})
        if not named and tail:
            try:
                made[key] = instance(tail, rng, root, depth + 1)
            except Unmade:
                continue


def _array(node: dict[str, Any], rng: random.Random, root: Any, depth: int) -> Any:
    first = node.get("prefixItems", [])
    low = node.get("minItems", 0)
    high = node.get("maxItems", max(low, len(first)) + 2)
    rest = node.get("items", True)
    if first and ("items" not in node or rest is True or rest is False):
        high = min(high, len(first))  # further ones would be undeclared
    if rest is False:
        high = min(high, len(first))
    if depth > 5:
        high = low
    made = []
    for index in range(rng.randint(low, max(low, high))):
        below = first[index] if index < len(first) else rest
        try:
            made.append(instance(below, rng, root, depth + 1))
        except Unmade:
            if index < low:
                raise
            break
    return made


def _text(node: dict[str, Any], rng: random.Random) -> str:
    low, high = node.get("minLength", 0), node.get("maxLength", 99)
    guesses = [text for text in _GUESSES if low <= len(text) <= high]
    if not guesses and low <= high:
        guesses = ["x" * low]
    if "pattern" in node:
        try:
            guesses = [text for text in guesses if re.search(node["pattern"], text)]
        except re.error:
            raise Unmade from None
    if not guesses:
        raise Unmade
    return rng.choice(guesses)


def _number(node: dict[str, Any], kind: str, rng: random.Random) -> Any:
    low = node.get("minimum", node.get("exclusiveMinimum", -2))
    high = node.get("maximum", node.get("exclusiveMaximum", low + 7))
    for _ in range(30):
        step = node.get("multipleOf", 1 if kind == "integer" else 0.5)
        guess: Any = int(low // step) * step + step * rng.randint(0, 8)
        if guess < low or guess > high:
            continue
        if guess == node.get("exclusiveMinimum") or guess == node.get(
            "exclusiveMaximum"
        ):
            continue
        if kind == "integer":
            if guess != int(guess):
                continue
            guess = int(guess)
        return guess
    raise Unmade


def without_undeclared(node: Any, root: Any, in_place: bool = False) -> Any:
    """Close a schema where its pieces together name the keys there may be.

    A value drawn from one branch of a choice may be valid by another one, which does
    not name all of its keys: that is a value with undeclared keys. Branches are
    *in_place*: the node around them closes them.
    """
    if isinstance(node, list):
        return [without_undeclared(held, root, in_place) for held in node]
    if not isinstance(node, dict):
        return node
    combined = {"anyOf", "oneOf", "allOf"} & {k for k in node if node[k]}
    combined = {word for word in combined if isinstance(node[word], list)}
    closed = {
        key: held
        if key in ("enum", "const", "default", "required")
        else without_undeclared(held, root, key in combined)
        for key, held in node.items()
    }
    if combined and not in_place and _names_keys(node, root):
        closed["unevaluatedProperties"] = False
    return closed


def _names_keys(node: Any, root: Any, depth: int = 0) -> bool:
    node = _followed(node, root)
    if not isinstance(node, dict) or depth > 9:
        return False
    parts = [
        part for word in ("anyOf", "oneOf", "allOf") for part in node.get(word, ())
    ]
    return "properties" in node or any(_names_keys(p, root, depth + 1) for p in parts)


def are_same(node: Any, one: Any, two: Any, root: Any, depth: int = 0) -> bool:
    """Compare two values: defaults filled in, null of an optional taken as absent."""
    if type(one) is type(two) and one == two:
        return True
    if depth > 60 or not isinstance(node, dict):
        return False
    if "$ref" in node:
        target = root
        for step in node["$ref"].split("/")[1:]:
            target = target[step.replace("~1", "/").replace("~0", "~")]
        if are_same(target, one, two, root, depth + 1):
            return True
    for word in ("anyOf", "oneOf", "allOf"):
        for part in node.get(word, ()):
            if are_same(_around(node, word, part), one, two, root, depth + 1):
                return True
    if isinstance(one, dict) and isinstance(two, dict):
        return _same_objects(node, one, two, root, depth)
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        first = node.get("prefixItems", [])
        return all(
            are_same(
                first[index] if index < len(first) else node.get("items", True),
                *pair,
                root,
                depth + 1,
            )
            for index, pair in enumerate(zip(one, two))
        )
    return _number_like(one) and _number_like(two) and one == two


def _around(node: dict[str, Any], word: str, part: Any) -> Any:
    """Give a branch the properties that stand beside it."""
    pieces = [node, *node.get("allOf", ())] if word == "allOf" else [node]
    if not isinstance(part, dict):
        return part
    properties: dict[str, Any] = {}
    for piece in [*pieces, part]:
        if isinstance(piece, dict):
            properties.update(piece.get("properties", {}))
    return {**part, "properties": properties} if properties else part


def _same_objects(
    node: dict[str, Any], one: Any, two: Any, root: Any, depth: int
) -> bool:
    for name in one.keys() | two.keys():
        below = node.get("properties", {}).get(name)
        if below is None:
            below = node.get("additionalProperties", True)
            for pattern, held in node.get("patternProperties", {}).items():
                if re.search(pattern, name):
                    below = held
        if name in one and name in two:
            if not are_same(below, one[name], two[name], root, depth + 1):
                return False
            continue
        only = one.get(name, two.get(name))
        default = _default_of(below, root)
        if only is None and name not in node.get("required", ()):
            continue
        if default is None or not are_same(below, only, default[0], root, depth + 1):
            return False
    return True


def _default_of(node: Any, root: Any, depth: int = 0) -> Any:
    if not isinstance(node, dict) or depth > 9:
        return None
    if "default" in node:
        return [node["default"]]
    if "$ref" in node:
        target = root
        for step in node["$ref"].split("/")[1:]:
            target = target[step.replace("~1", "/").replace("~0", "~")]
        return _default_of(target, root, depth + 1)
    parts = [*node.get("allOf", ()), *node.get("anyOf", ()), *node.get("oneOf", ())]
    for part in parts:
        found = _default_of(part, root, depth + 1)
        if found is not None:
            return found
    return None


def _number_like(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
