"""Text made up to fit a format or a regular expression."""

from __future__ import annotations

import base64
import json
import re
import string
from random import Random
from typing import Any, Callable, Dict, List, Tuple

from .schema_pattern import runnable

__all__ = ["of_base64", "of_format", "of_pattern", "read_words"]

# A node of a pattern: ("set", characters), ("all", nodes), ("any", nodes) or
# ("repeat", node, least, most).
_Node = Tuple[Any, ...]

_TRIES = 30
# Characters, and nodes of the pattern, that one text may take.
_LONGEST = 20_000
_DIGITS = string.digits
_WORD = string.ascii_letters + string.digits + "_"
_VISIBLE = _WORD + " -.,:;/@#+!"
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": " "}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_QUANTIFIER = re.compile(r"[*+?]|\{(\d+)(,(\d*))?\}")
_GROUP = re.compile(r"\?(:|P?<\w+>|=|!|<=|<!)")


def of_format(name: str, rng: Random) -> str | None:
    """Return text in the format *name* of JSON Schema, or None for an unknown one.

    >>> of_format("date", Random(0))
    '2026-07-25'
    """
    made = _FORMATS.get(name)
    return None if made is None else made(rng)


def of_pattern(
    pattern: str, rng: Random, length: tuple[int, int], first: str = ""
) -> str | None:
    r"""Return text in which *pattern* is found and whose length is within *length*.

    *first* is returned when it will do. What assertions (``(?=…)``, ``\b``) ask for
    is met by luck or not at all; then, and for what cannot be read, the answer is
    None. A pattern that must not be run is followed, but the text is not checked.

    >>> of_pattern("^[A-C]{2}-\\d{3}$", Random(0), (0, 80))
    'AB-475'
    >>> of_pattern(r"(a)\1", Random(0), (0, 80)) is None
    True
    """
    least, most = length
    try:
        tree = _Reader(pattern).alternatives()
    except (ValueError, IndexError, RecursionError):
        return None
    checked = runnable(pattern)

    def fits(text: str) -> bool:
        if not least <= len(text) <= most:
            return False
        return checked is None or re.search(checked, text) is not None

    if checked is not None and fits(first):
        return first
    for more in range(_TRIES):
        text = _write(tree, rng, more)
        if len(text) < least and not pattern.endswith("$"):
            text += "x" * (least - len(text))
        if fits(text):
            return text
    return None


def of_base64(text: str, length: tuple[int, int]) -> str | None:
    """Return *text* in base64, made to fit the *length*; None if none can.

    >>> of_base64("example", (0, 80)), of_base64("example", (3, 5))
    ('ZXhhbXBsZQ==', 'ZXhh')
    """
    least, most = length
    # Every three bytes are four characters.
    fewest, room = -(-least // 4) * 3, most // 4 * 3
    data = text.encode()[:room].ljust(fewest, b"x")
    encoded = base64.b64encode(data).decode()
    return encoded if least <= len(encoded) <= most else None


_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
_UNITS = {"character": "Length", "item": "Items", "key": "Properties"}
_SIZED = re.compile(
    r"(?:(Exactly|At least|At most) ([0-9]+)|([0-9]+) to ([0-9]+)) "
    r"(character|item|key)s?\."
)
_WORDS = tuple(
    (re.compile(rf"(?:^|(?<=\s)){words}\.(?=\s|$)"), keywords)
    for words, keywords in (
        (f"Between {_NUMBER} and {_NUMBER}", ("minimum", "maximum")),
        (f"At least {_NUMBER}", ("minimum",)),
        (f"At most {_NUMBER}", ("maximum",)),
        (f"Greater than {_NUMBER}", ("exclusiveMinimum",)),
        (f"Less than {_NUMBER}", ("exclusiveMaximum",)),
        (f"A multiple of {_NUMBER}", ("multipleOf",)),
    )
)
_PATTERN = re.compile(
    r"Matches the pattern (.+?)\.(?=$|\n| Format: | Encoding: | No item twice\.)"
)
_NAMED = (
    (re.compile(r"\bFormat: ([\w-]+)\."), "format"),
    (re.compile(r"\bEncoding: ([\w-]+)\."), "contentEncoding"),
)


def read_words(description: Any) -> Dict[str, Any]:
    """Read the keywords out of a description that says them in words.

    So a rehearsal heeds what a real model would: a dialect's schema says there what
    the dialect has no keyword for.

    >>> read_words("Her age. Between 3 and 4.")
    {'minimum': 3, 'maximum': 4}
    >>> read_words("At most 5 items. No item twice.")
    {'maxItems': 5, 'uniqueItems': True}
    """
    found: Dict[str, Any] = {}
    if not isinstance(description, str):
        return found
    for sized in _SIZED.finditer(description):
        word, size, low, high, unit = sized.groups()
        if word in ("Exactly", "At least") or low:
            found[f"min{_UNITS[unit]}"] = int(low or size)
        if word in ("Exactly", "At most") or high:
            found[f"max{_UNITS[unit]}"] = int(high or size)
    for words, keywords in _WORDS:
        for match in words.finditer(description):
            found.update(zip(keywords, map(json.loads, match.groups())))
    for words, keyword in ((_PATTERN, "pattern"), *_NAMED):
        found.update((keyword, match[1]) for match in words.finditer(description))
    if "No item twice." in description:
        found["uniqueItems"] = True
    return found


class _Reader:
    """Reads a regular expression into nodes; raises ValueError at what it cannot."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.pos = 0

    def peek(self) -> str:
        return self.pattern[self.pos : self.pos + 1]

    def next(self) -> str:
        self.pos += 1
        return self.pattern[self.pos - 1]  # at the end: an IndexError

    def alternatives(self) -> _Node:
        found = [self.sequence()]
        while self.peek() == "|":
            self.pos += 1
            found.append(self.sequence())
        return ("any", found)

    def sequence(self) -> _Node:
        found: List[_Node] = []
        while self.peek() not in ("", "|", ")"):
            node = self.atom()
            quantifier = _QUANTIFIER.match(self.pattern, self.pos)
            if quantifier:
                self.pos = quantifier.end()
                self.pos += self.peek() == "?"
                node = ("repeat", node, *_counts(quantifier))
            found.append(node)
        return ("all", found)

    def atom(self) -> _Node:
        char = self.next()
        if char == "(":
            return self.group()
        if char == "[":
            return self.one_of()
        if char == "\\":
            return ("set", self.escaped())
        if char in "^$":
            return ("all", [])
        return ("set", _VISIBLE if char == "." else char)

    def group(self) -> _Node:
        opening = _GROUP.match(self.pattern, self.pos)
        if self.peek() == "?" and not opening:
            raise ValueError("flags and conditions")
        self.pos = opening.end() if opening else self.pos
        node = self.alternatives()
        self.pos += 1
        asserts = opening and opening.group(1) in ("=", "!", "<=", "<!")
        return ("all", []) if asserts else node

    def escaped(self) -> str:
        char = self.next()
        if char.lower() in _CLASSES:
            inside = _CLASSES[char.lower()]
            return inside if char.islower() else _but(inside)
        if char in "xu":
            digits = 2 if char == "x" else 4
            self.pos += digits
            return chr(int(self.pattern[self.pos - digits : self.pos], 16))
        if char in "bBAZ":
            return ""
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isalnum():
            raise ValueError("a reference to a group, or an escape of its own")
        return char

    def one_of(self) -> _Node:
        negated = self.peek() == "^"
        self.pos += negated
        found: List[str] = []
        start = self.pos
        while self.peek() != "]" or self.pos == start:
            char = self.next()
            if char == "\\":
                char = self.escaped()
            ends = self.pattern[self.pos + 1 : self.pos + 2]
            if self.peek() == "-" and ends != "]" and len(char) == 1:
                self.pos += 1
                last = self.next()
                last = self.escaped() if last == "\\" else last
                span = range(ord(char), min(ord(last), ord(char) + 200) + 1)
                char = "".join(map(chr, span))
            found.append(char)
        self.pos += 1
        chars = "".join(found)
        return ("set", _but(chars) if negated else _preferred(chars))


def _counts(quantifier: re.Match[str]) -> tuple[int, int]:
    signs = {"*": (0, _LONGEST), "+": (1, _LONGEST), "?": (0, 1)}
    if quantifier.group() in signs:
        return signs[quantifier.group()]
    least = int(quantifier.group(1))
    if least > _LONGEST:
        raise ValueError("too long")
    if quantifier.group(2) is None:
        return least, least
    return least, int(quantifier.group(3) or _LONGEST)


def _but(chars: str) -> str:
    """Return what is not among *chars*; letters and digits if there are any left."""
    return _preferred("".join(c for c in _VISIBLE if c not in chars))


def _preferred(chars: str) -> str:
    plain = "".join(c for c in chars if c in _WORD and c != "_")
    return plain or chars


def _write(tree: _Node, rng: Random, more: int) -> str:
    """Return text for *tree*; *more* lets repeated parts be repeated more often."""
    written: List[str] = []
    left = [_LONGEST]

    def write(node: _Node) -> None:
        left[0] -= 1
        if left[0] < 0:
            return
        kind, inner = node[0], node[1]
        if kind == "set":
            written.append(rng.choice(inner) if inner else "")
        elif kind == "any":
            write(rng.choice(inner))
        elif kind == "all":
            for part in inner:
                write(part)
        else:
            least, most = node[2], node[3]
            count = rng.randint(max(least, min(1, most)), min(most, least + 1 + more))
            for _ in range(count):
                write(inner)

    write(tree)
    return "".join(written)


def _date(rng: Random) -> str:
    return f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _time(rng: Random) -> str:
    return f"{rng.randint(8, 18):02}:{rng.randint(0, 59):02}:00Z"


def _uuid(rng: Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return (
        f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
    )


# Names and addresses that are set aside for examples (RFC 2606, 5737, 3849).
_FORMATS: Dict[str, Callable[[Random], str]] = {
    "date": _date,
    "time": _time,
    "date-time": lambda rng: f"{_date(rng)}T{_time(rng)}",
    "duration": lambda rng: f"PT{rng.randint(1, 23)}H",
    "email": lambda rng: f"person{rng.randint(1, 99)}@example.com",
    "idn-email": lambda rng: f"person{rng.randint(1, 99)}@example.com",
    "hostname": lambda rng: f"host{rng.randint(1, 99)}.example.com",
    "idn-hostname": lambda rng: f"host{rng.randint(1, 99)}.example.com",
    "ipv4": lambda rng: f"192.0.2.{rng.randint(1, 254)}",
    "ipv6": lambda rng: f"2001:db8::{rng.randint(1, 9999)}",
    "uri": lambda rng: f"https://example.com/{rng.randint(1, 99)}",
    "iri": lambda rng: f"https://example.com/{rng.randint(1, 99)}",
    "uri-reference": lambda rng: f"/{rng.randint(1, 99)}",
    "iri-reference": lambda rng: f"/{rng.randint(1, 99)}",
    "uri-template": lambda rng: f"https://example.com/{rng.randint(1, 99)}/{{id}}",
    "uuid": _uuid,
    "json-pointer": lambda rng: f"/items/{rng.randint(0, 9)}",
    "relative-json-pointer": lambda rng: f"{rng.randint(0, 9)}/items",
    "regex": lambda rng: f"[a-z]{{{rng.randint(1, 9)}}}",
    "binary": lambda rng: "example",
    "byte": lambda rng: "ZXhhbXBsZQ==",
}
