"""Values made up to fit a JSON Schema: the same ones for the same seed.

They are plausible rather than random: an ``examples`` or ``default`` is taken as it
is, text names the property that it stands for, and numbers lie within their bounds.
Every value is checked against its schema before it is handed out. What cannot be
made up, such as text for a hard ``pattern``, is an error that says where.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Callable, Dict, List, Set, Tuple

from .errors import SchemaError
from .sampling_text import of_base64, of_format, of_pattern, read_words
from .schema import Schema, canonical_json
from .schema_pattern import runnable

__all__ = ["sample"]

# How often a value is made anew, with other choices, until one fits.
_TRIES = 24
# From this try on, ``examples`` and ``default`` are not believed any more.
_TRUSTING = 6
# Beyond this depth, or this many nodes, only what is required is made.
_DEPTH = 6
_NODES = 400
# How often one reference may be open inside itself.
_NESTED = 3
# More items or entries than this are not made up.
_LONGEST = 1000


def sample(schema: Any, *, seed: int = 0) -> Any:
    """Return a JSON value that is valid under *schema*, any source of a schema.

    If that is a type, a value of it can be built from the JSON.

    >>> sample({"type": "object", "properties": {"city": {"type": "string"}}})
    {'city': 'example city'}
    >>> sample({"type": "integer", "minimum": 3, "maximum": 3})
    3

    Raises:
        SchemaError: no value could be made; ``error.path`` says for what.
    """
    source = Schema(schema)
    wary: Set[str] = set()
    problem = "no value fits this schema", "$"
    for attempt in range(_TRIES):
        maker = _Maker(source.json, seed, attempt, wary)
        try:
            value = maker.make(source.json, _Spot())
        except _ImpossibleError as exc:
            problem = str(exc), exc.path
            continue
        # A type may refuse what its schema cannot: a date too early, say.
        found = source.load(value)[1][:8]
        if not found:
            return value
        wary.update(finding.path for finding in found)
        place = maker.paths.get(found[0].path, "$")
        problem = f"no value was found ({found[0].message:.120})", place
    raise SchemaError(f"{problem[0]}; name some with 'examples'", path=problem[1])


class _ImpossibleError(Exception):
    """No value can be made at *path*; perhaps another branch has one."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True)
class _Spot:
    """Where in the schema and in the value we are."""

    # In the schema: $.properties.age
    path: str = "$"
    # In the value: ("age",)
    keys: Tuple[Any, ...] = ()
    # References that were followed on the way.
    refs: Tuple[str, ...] = ()
    # Tells the tries for one item apart.
    salt: int = 0

    def inside(self, path: str, key: Any) -> _Spot:
        return replace(self, path=f"{self.path}.{path}", keys=(*self.keys, key), salt=0)

    @property
    def where(self) -> str:
        return ".".join(str(key) for key in self.keys)

    @property
    def words(self) -> str:
        """Text that names the value: its property, or the array's that it is in."""
        names = [key for key in self.keys if isinstance(key, str)] or ["text"]
        spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", names[-1]).strip().lower()
        number = [key + 1 for key in self.keys[-1:] if isinstance(key, int)]
        if number and spaced.endswith("s"):
            spaced = spaced[:-1]
        if self.salt:
            number.append(self.salt + 1)
        return " ".join(["example", spaced or "text", *map(str, number)])


class _Maker:
    """One attempt at a value."""

    def __init__(self, root: Any, seed: int, attempt: int, wary: Set[str]) -> None:
        self.root = root
        self.seed = f"{seed}/{attempt}"
        # Places in the value where an earlier attempt was wrong.
        self.wary = wary
        self.trusting = attempt < _TRUSTING
        # What is left out is often what two branches of a oneOf have in common.
        self.lean = attempt % 3 == 2
        self.made = 0
        # Places in the value, and those in the schema that they were made from.
        self.paths: Dict[str, str] = {}

    def make(self, node: Any, spot: _Spot) -> Any:
        self.made += 1
        self.paths[spot.where] = spot.path
        node, spot = self._flat(node, spot)
        if node is False:
            raise _ImpossibleError("nothing is valid here", spot.path)
        if self.trusting:
            # What a dialect has no keyword for is said in the description.
            node = {**read_words(node.get("description")), **node}
        if "const" in node:
            return node["const"]
        given = self._given(node, spot)
        if given:
            return self._rng(spot).choice(given)
        options = _options(node)
        if options:
            return self._branch(options, spot)
        return self._typed(node, spot)

    def _typed(self, node: Any, spot: _Spot) -> Any:
        kinds = _kinds(node)
        if not kinds:
            raise _ImpossibleError("no type is left that a value could have", spot.path)
        if "null" in kinds and (kinds[0] == "null" or self._deep(spot)):
            return None
        if kinds[0] == "boolean":
            return self._rng(spot).random() < 0.5
        makers: Dict[str, Callable[[Any, _Spot], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._number,
            "number": self._number,
        }
        return makers[kinds[0]]({**node, "type": kinds[0]}, spot)

    def _rng(self, spot: _Spot) -> random.Random:
        # One for each spot: what is made here does not depend on what else there is.
        return random.Random(f"{self.seed}:{spot.where}:{spot.salt}")

    def _deep(self, spot: _Spot) -> bool:
        again = len(set(spot.refs)) < len(spot.refs)
        return self.lean or again or len(spot.keys) > _DEPTH or self.made > _NODES

    def _given(self, node: Any, spot: _Spot) -> list[Any]:
        """Return the values that the schema itself names."""
        here = spot.where
        blamed = any(
            path == here or not here or path.startswith(f"{here}.")
            for path in self.wary
        )
        if self.trusting and not blamed:
            examples = node.get("examples")
            if isinstance(examples, list) and examples:
                return examples
            if node.get("default") is not None:
                return [node["default"]]
        return list(node.get("enum", ()))

    def _flat(self, node: Any, spot: _Spot) -> tuple[Any, _Spot]:
        """Resolve the references of *node*, and merge what holds at the same time."""
        if isinstance(node, bool):
            return {} if node else False, spot
        while "$ref" in node:
            ref = node["$ref"]
            if spot.refs.count(ref) >= _NESTED:
                raise _ImpossibleError(
                    "the schema refers to itself without an end", spot.path
                )
            spot = replace(spot, refs=(*spot.refs, ref))
            rest = {k: v for k, v in node.items() if k != "$ref"}
            node = _merge(rest, self._target(ref, spot))
            if node is False:
                return False, spot
        parts = list(node.get("allOf", ()))
        named = (*node.get("properties", ()), *node.get("required", ()))
        for key, part in node.get("dependentSchemas", {}).items():
            parts += [part] if key in named else []
        if not parts:
            return node, spot
        drop = ("allOf", "dependentSchemas")
        node = {k: v for k, v in node.items() if k not in drop}
        for part in parts:
            part, spot = self._flat(part, spot)
            node = _merge(node, part)
        return self._flat(node, spot)

    def _target(self, ref: str, spot: _Spot) -> Any:
        target = self.root
        try:
            if not ref.startswith("#"):
                raise KeyError(ref)
            for key in ref[1:].split("/")[1:]:
                key = key.replace("~1", "/").replace("~0", "~")
                target = target[int(key) if isinstance(target, list) else key]
        except (LookupError, TypeError, ValueError) as exc:
            raise SchemaError(f"{ref!r} leads nowhere", path=spot.path) from exc
        return target

    def _branch(self, options: list[Any], spot: _Spot) -> Any:
        """Make a value for one of *options*: the first that has one."""
        order = list(options)
        self._rng(spot).shuffle(order)
        order.sort(key=_weight if self._deep(spot) else _is_null)
        problem = _ImpossibleError("no branch is possible", spot.path)
        for option in order:
            try:
                return self.make(option, spot)
            except _ImpossibleError as exc:
                problem = exc
        raise problem

    def _object(self, node: Any, spot: _Spot) -> Any:
        required = _required(node)
        spare = node.get("maxProperties", _LONGEST) - len(required)
        value: Dict[str, Any] = {}
        for key in dict.fromkeys([*node.get("properties", ()), *required]):
            must = key in required
            if not must and (spare < 1 or self._deep(spot)):
                continue
            try:
                below = spot.inside(f"properties.{key}", key)
                value[key] = self.make(_of_property(node, key), below)
            except _ImpossibleError:
                if must:
                    raise
                continue
            spare -= not must
        self._entries(node, value, spot)
        return value

    def _entries(self, node: Any, value: Dict[str, Any], spot: _Spot) -> None:
        """Add entries that no property names, where there ought to be some."""
        least = node.get("minProperties", 0)
        if least > _LONGEST:
            raise _ImpossibleError(
                f"{least} entries are too many to make up", spot.path
            )
        is_record = not node.get("properties") and (
            isinstance(node.get("additionalProperties"), dict)
            or "patternProperties" in node
        )
        wanted = max(least, 1 if is_record and not self._deep(spot) else 0)
        wanted = min(wanted, node.get("maxProperties", wanted))
        problem = _ImpossibleError("there are too few names for its entries", spot.path)
        for n in range(4 * wanted):
            if len(value) >= wanted:
                return
            try:
                key = self._key(node, replace(spot, salt=n))
                below = spot.inside("additionalProperties", key)
                value.setdefault(key, self.make(_of_property(node, key), below))
            except _ImpossibleError as exc:
                problem = exc
        if len(value) < least:
            raise problem

    def _key(self, node: Any, spot: _Spot) -> str:
        names: Any = {"type": "string"}
        patterns = list(node.get("patternProperties", ()))
        if patterns:
            names["pattern"] = patterns[spot.salt % len(patterns)]
        below = replace(spot.inside("propertyNames", "key"), salt=spot.salt)
        given = node.get("propertyNames", True)
        if given is True and not patterns:
            return f"key_{spot.salt + 1}"
        return str(self.make(_merge(names, given), below))

    def _array(self, node: Any, spot: _Spot) -> Any:
        prefix, rest = node.get("prefixItems", ()), node.get("items", True)
        needed = node.get("minContains", 1) if "contains" in node else 0
        least = max(node.get("minItems", 0), needed)
        if least > _LONGEST:
            raise _ImpossibleError(f"{least} items are too many to make up", spot.path)
        wanted = len(prefix)
        if "items" in node and rest is not False and not prefix:
            wanted = 0 if self._deep(spot) else 2
        wanted = min(max(wanted, least), node.get("maxItems", _LONGEST))
        made: List[Any] = []
        for i in range(wanted):
            item = prefix[i] if i < len(prefix) else rest
            if i < needed:
                item = {"allOf": [item, node["contains"]]}
            part = f"prefixItems.{i}" if i < len(prefix) else "items"
            others = made if node.get("uniqueItems") else []
            try:
                made.append(self._item(item, spot.inside(part, i), others))
            except _ImpossibleError:
                if i < least:
                    raise
                break
        return made

    def _item(self, item: Any, spot: _Spot, others: list[Any]) -> Any:
        """Make an item that is not among *others*."""
        taken = {canonical_json(other) for other in others}
        for salt in range(40):
            value = self.make(item, replace(spot, salt=salt))
            if canonical_json(value) not in taken:
                return value
        raise _ImpossibleError("no further item is unlike those before it", spot.path)

    def _string(self, node: Any, spot: _Spot) -> str:
        rng = self._rng(spot)
        least, most = node.get("minLength", 0), node.get("maxLength", 10**6)
        if least > 10**5:
            raise _ImpossibleError(
                f"{least} characters are too many to make up", spot.path
            )
        formatted = of_format(node.get("format", ""), rng)
        text = spot.words if formatted is None else formatted
        if "pattern" in node:
            found = of_pattern(node["pattern"], rng, (least, most), text)
            if found is None:
                pattern = node["pattern"]
                raise _ImpossibleError(
                    f"no text was found for {pattern!r:.80}", spot.path
                )
            return found
        if formatted is None and node.get("contentEncoding") == "base64":
            encoded = of_base64(text, (least, most))
            if encoded is None:
                raise _ImpossibleError("no base64 text is of this length", spot.path)
            return encoded
        if formatted is None:
            # The end of the text is kept: it tells the items of an array apart.
            text = text[max(0, len(text) - most) :].strip()
            text += "x" * (least - len(text))
        return text

    def _number(self, node: Any, spot: _Spot) -> int | float:
        whole = node["type"] == "integer"
        step = _step(node, whole)
        low, high = _bounds(node, step or 1)
        rng = self._rng(spot)
        candidates: List[Any]
        if step:
            first, last = math.ceil(low / step), math.floor(high / step)
            some = rng.randint(first, last) if first <= last else first
            found = (n * step for n in (some, first, first + 1, last, last - 1))
            candidates = [int(n) if n == int(n) else float(n) for n in found]
        else:
            exact = rng.uniform(float(low), float(high))
            middle = float(low) + (float(high) - float(low)) / 2
            candidates = [round(exact, 1), round(exact, 3), exact, middle, float(low)]
        for number in candidates:
            if _within(node, number):
                return number  # type: ignore[no-any-return]  # an int or a float
        raise _ImpossibleError("the bounds leave no number", spot.path)


def _merge(a: Any, b: Any) -> Any:
    """Return a schema for what is valid under both, as far as one node can say it."""
    if a is False or b is False:
        return False
    if a is True or b is True:
        return b if a is True else a
    found = dict(a)
    for key, theirs in b.items():
        ours = found.get(key)
        if key not in found or ours == theirs:
            found[key] = theirs
        elif key in _BOTH:
            found[key] = _BOTH[key](ours, theirs)
            if found[key] is None:
                return False
    return found


def _both_types(a: Any, b: Any) -> Any:
    left, right = _listed(a), _listed(b)
    if "number" in left and "integer" in right:
        left = [*left, "integer"]
    if "number" in right and "integer" in left:
        right = [*right, "integer"]
    return [kind for kind in left if kind in right] or None


def _both_schemas(a: Any, b: Any) -> Any:
    return {"allOf": [a, b]}


def _both_maps(a: Any, b: Any) -> Any:
    shared = {key: _both_schemas(a[key], b[key]) for key in a if key in b}
    return {**a, **b, **shared}


def _both_options(a: Any, b: Any) -> Any:
    pairs = itertools.product(a, b)
    return [_both_schemas(x, y) for x, y in itertools.islice(pairs, 64)]


# How two keywords say one thing; what is missing keeps the first, and the check of
# the whole value decides. None: nothing can be valid.
_BOTH: Dict[str, Callable[[Any, Any], Any]] = {
    "type": _both_types,
    "enum": lambda a, b: [value for value in a if value in b] or None,
    "const": lambda a, b: None,
    "required": lambda a, b: list(dict.fromkeys([*a, *b])),
    "properties": _both_maps,
    "patternProperties": _both_maps,
    "dependentSchemas": _both_maps,
    "additionalProperties": _both_schemas,
    "propertyNames": _both_schemas,
    "items": _both_schemas,
    "contains": _both_schemas,
    "allOf": lambda a, b: [*a, *b],
    "anyOf": _both_options,
    "oneOf": _both_options,
    "uniqueItems": lambda a, b: a or b,
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
}


def _options(node: Any) -> list[Any]:
    """Return the schemas that *node* leaves to choose from, if it does."""
    for word in ("oneOf", "anyOf"):
        if word in node:
            rest = {k: v for k, v in node.items() if k != word}
            return [{"allOf": [rest, option]} for option in node[word]]
    if "if" in node:
        rest = {k: v for k, v in node.items() if k not in ("if", "then", "else")}
        met = [rest, node["if"], node.get("then", True)]
        return [{"allOf": met}, {"allOf": [rest, node.get("else", True)]}]
    return []


def _is_null(option: Any) -> bool:
    return bool(option["allOf"][-1] == {"type": "null"})


def _weight(option: Any) -> int:
    """Order branches by how soon they come to an end."""
    text = canonical_json(option["allOf"][-1])
    return (not _is_null(option)) + 2 * ("$ref" in text) + ("properties" in text)


_KINDS = ("object", "array", "string", "integer", "number", "boolean", "null")
# What a schema without a type is about.
_HINTS = {
    "object": ("properties", "required", "additionalProperties", "minProperties"),
    "array": ("items", "prefixItems", "contains", "minItems"),
    "string": ("pattern", "format", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "multipleOf"),
}


def _kinds(node: Any) -> list[str]:
    """Return the types to try, null last."""
    if "type" in node:
        kinds = [kind for kind in _listed(node["type"]) if kind in _KINDS]
        return sorted(kinds, key=lambda kind: kind == "null")
    if "patternProperties" in node or "propertyNames" in node:
        return ["object"]
    for kind, words in _HINTS.items():
        if any(word in node for word in words):
            return [kind]
    return ["string"]


def _listed(kinds: Any) -> list[Any]:
    return list(kinds) if isinstance(kinds, list) else [kinds]


def _required(node: Any) -> list[str]:
    """Return what is required, and what that requires."""
    found = list(node.get("required", ()))
    present = dict.fromkeys([*node.get("properties", ()), *found])
    for key, others in node.get("dependentRequired", {}).items():
        found += others if key in present else []
    return list(dict.fromkeys(found))


def _of_property(node: Any, key: str) -> Any:
    """Return what holds for the property *key*."""
    parts = [node["properties"][key]] if key in node.get("properties", {}) else []
    for pattern, part in node.get("patternProperties", {}).items():
        checked = runnable(pattern)
        parts += [part] if checked and re.search(checked, key) else []
    if not parts:
        return node.get("additionalProperties", True)
    return parts[0] if len(parts) == 1 else {"allOf": parts}


def _step(node: Any, whole: bool) -> Decimal:
    """Return what the number is a multiple of; zero for anything."""
    step = Decimal(str(node.get("multipleOf", 1 if whole else 0)))
    # The whole multiples of p/q, in lowest terms, are those of p.
    return Decimal(Fraction(step).numerator) if whole else step


def _bounds(node: Any, step: Any) -> tuple[Decimal, Decimal]:
    """Return the least and the greatest number to choose from."""
    lows = [node[k] for k in ("minimum", "exclusiveMinimum") if k in node]
    highs = [node[k] for k in ("maximum", "exclusiveMaximum") if k in node]
    span = 100 * max(Decimal(1), Decimal(step))
    if lows:
        low = Decimal(str(max(lows)))
        return low, Decimal(str(min(highs))) if highs else low + span
    if highs:
        high = Decimal(str(min(highs)))
        return (Decimal(1) if high > 1 else high - span), high
    return Decimal(1), span


def _within(node: Any, number: Any) -> bool:
    return bool(
        node.get("minimum", number) <= number <= node.get("maximum", number)
        and node.get("exclusiveMinimum", -math.inf) < number
        and number < node.get("exclusiveMaximum", math.inf)
    )
