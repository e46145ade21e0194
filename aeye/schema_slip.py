"""Slips of the pen in a dict schema: keywords and patterns that nobody meant.

JSON Schema ignores what it does not know, and so a misspelled keyword makes a schema
that takes anything. What is one letter from a keyword is refused; what is not stays an
annotation of somebody's own.
"""

from __future__ import annotations

import re
from typing import Any, List, Tuple

__all__ = ["is_one_edit", "meant_keyword", "pattern_problem"]

# JSON Schema from draft 3 to 2020-12, and what OpenAPI adds.
_KEYWORDS = (
    *("type", "enum", "const", "properties", "required", "additionalProperties"),
    *("patternProperties", "propertyNames", "minProperties", "maxProperties"),
    *("dependentRequired", "dependentSchemas", "dependencies"),
    *("unevaluatedProperties", "unevaluatedItems", "items", "prefixItems"),
    *("additionalItems", "contains", "minContains", "maxContains", "minItems"),
    *("maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "format"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("divisibleBy", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
    *("extends", "disallow", "contentEncoding", "contentMediaType", "contentSchema"),
    *("title", "description", "default", "examples", "example", "deprecated"),
    *("readOnly", "writeOnly", "nullable", "discriminator", "externalDocs", "xml"),
    *("definitions", "id", "$ref", "$defs", "$id", "$schema", "$anchor", "$comment"),
    *("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"),
    "$vocabulary",
)
_KNOWN = frozenset(_KEYWORDS)
# Near a keyword, and yet no slip: words of their own that people do write there.
_OWN_WORDS = frozenset(
    # Editors and forms read these spellings; like readOnly they forbid nothing.
    {"readonly", "writeonly"}
    # Says what a value needs besides itself; not required, which lists names.
    | {"require"}
    # A text that defines the value; beside definitions, which holds schemas.
    | {"definition"}
    # English words.
    | {"cost", "tile", "when", "than"}
)
_SHORT = frozenset({"not", "if"})
_LETTERS = re.compile(r"\$?[A-Za-z]+")
_WITHOUT_SIGN = {"ref": "$ref", "defs": "$defs"}


def meant_keyword(key: str, value: Any) -> str | None:
    """Name the keyword that *key* is a slip of; None for a keyword or another word.

    A slip is a letter added, dropped or changed, or two swapped; what begins with
    ``x-``, ``_`` or ``@`` is somebody's own. *value* matters for the shortest keywords,
    which are near many words: theirs is a schema.

    >>> meant_keyword("requried", [])
    'required'
    >>> meant_keyword("note", "say it"), meant_keyword("nott", {})
    (None, 'not')
    >>> meant_keyword("_format", "date") is None
    True
    """
    if key in _KNOWN or key in _OWN_WORDS or not _LETTERS.fullmatch(key):
        return None
    if key in _WITHOUT_SIGN:
        return _WITHOUT_SIGN[key]
    for keyword in _KEYWORDS:
        if len(keyword) < 4 and not (keyword in _SHORT and isinstance(value, dict)):
            continue
        # A sign is no letter: "$type" is somebody's own, and so is "comment".
        alike = (keyword[0] == "$") == (key[0] == "$")
        if alike and is_one_edit(key, keyword):
            return keyword
    return None


def is_one_edit(a: str, b: str) -> bool:
    """Whether one letter added, dropped or changed, or two swapped, make *b* of *a*.

    >>> is_one_edit("proprties", "properties"), is_one_edit("tipe", "typed")
    (True, False)
    """
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    left, right = a[start:], b[start:]
    swapped = left[:2] == right[:2][::-1] and left[2:] == right[2:]
    return swapped or left[1:] == right or left == right[1:] or left[1:] == right[1:]


_ESCAPE = re.compile(
    r"\\(?:u\{[0-9A-Fa-f]+\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[pP]\{[^}]*\}|c[A-Za-z]|.)",
    re.DOTALL,
)
_REPEAT = re.compile(r"(?:[*+?]|\{([0-9]+)(?:(,)([0-9]*))?\})\??")
# The openings of ECMAScript, and those of Python that patterns written for it have.
_GROUP = re.compile(
    r"\((?:\?(?::|=|!|<=|<!|P?<[^\W\d][\w$]*>|[a-z]*(?:-[a-z]+)?:)|(?!\?))"
)
_FLAGS = re.compile(r"\(\?(?:[aiLmsux]+|P=\w+|#[^)]*)\)")
# Anchors, and the assertions that hold a group, cannot be repeated.
_ANCHORS = ("\\b", "\\B")
_BEHIND = ("(?<=", "(?<!")


def pattern_problem(pattern: str) -> str | None:
    r"""Say why *pattern* is no regular expression; None if it is one.

    Goes by the syntax of ECMAScript as web browsers take it, ``(?P<name>…)``, ``(?i)``
    and comments of Python's besides. Whether Python can run it is another question.

    >>> pattern_problem("(a|b"), pattern_problem("+1")
    ('a ( has no )', 'there is nothing that + repeats')
    >>> pattern_problem(r"^\p{Letter}+(?<rest>.*)$") is None
    True
    """
    reader = _Reader(pattern)
    while reader.pos < len(pattern) and reader.problem is None:
        reader.step()
    if reader.problem is None and reader.groups:
        return "a ( has no )"
    return reader.problem


class _Reader:
    """Reads a regular expression, piece by piece, as far as its syntax goes."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.pos = 0
        self.problem: str | None = None
        # Of each open group, whether it can be repeated once it is closed.
        self.groups: List[bool] = []
        # Whether what was read last can be.
        self.repeatable = False

    def step(self) -> None:
        char = self.pattern[self.pos]
        repeat = _REPEAT.match(self.pattern, self.pos)
        if repeat is not None:
            self.read_repeat(repeat)
        elif char == "\\":
            self.repeatable = self.read_escape() not in _ANCHORS
        elif char == "[":
            self.read_set()
        elif char == "(":
            self.read_opening()
        else:
            if char == ")" and not self.groups:
                self.problem = "a ) has no ("
            closes = char == ")" and bool(self.groups)
            self.repeatable = self.groups.pop() if closes else char not in "^$|"
            self.pos += 1

    def read_repeat(self, found: re.Match[str]) -> None:
        low, comma, high = found.groups()
        if not self.repeatable:
            self.problem = f"there is nothing that {found[0]} repeats"
        elif comma and high and int(low[:9]) > int(high[:9]):
            self.problem = f"the numbers of {found[0]} are out of order"
        self.repeatable = False
        self.pos = found.end()

    def read_escape(self) -> str:
        found = _ESCAPE.match(self.pattern, self.pos)
        if found is None:
            self.problem = "a lone backslash ends it"
            self.pos += 1
            return "\\"
        self.pos = found.end()
        return found[0]

    def read_opening(self) -> None:
        flags = _FLAGS.match(self.pattern, self.pos)
        opening = _GROUP.match(self.pattern, self.pos)
        if flags is not None:
            self.pos, self.repeatable = flags.end(), flags[0].startswith("(?P")
        elif opening is None:
            self.problem = f"{self.pattern[self.pos : self.pos + 3]} begins no group"
        else:
            self.groups.append(opening[0] not in _BEHIND)
            self.pos, self.repeatable = opening.end(), False

    def read_set(self) -> None:
        self.pos += 1 + self.pattern.startswith("^", self.pos + 1)
        before: Tuple[str, str] = ("", "")
        while self.pos < len(self.pattern) and self.pattern[self.pos] != "]":
            start = self.pos
            char = self.read_member()
            # A range: a character, a hyphen and another one, as their codes stand.
            if before[1] == "-" and before[0] and char and before[0] > char:
                told = self.pattern[start - 2 : self.pos]
                self.problem = f"the range {told} is out of order"
            ranged = before[1] == "-" and before[0]
            before = ("", "") if ranged else (before[1], char)
        if self.pos >= len(self.pattern):
            self.problem = self.problem or "a [ has no ]"
        self.repeatable = True
        self.pos += 1

    def read_member(self) -> str:
        """Read one member of a set; give the character that it surely is, or nothing.

        An escaped hyphen is none that makes a range.
        """
        if self.pattern[self.pos] == "\\":
            told = self.read_escape()[1:]
            return told if not told.isalnum() and told != "-" and len(told) == 1 else ""
        self.pos += 1
        return self.pattern[self.pos - 1]
