r"""The ``pattern`` keyword: from ECMA 262 to Python, and which ones not to run.

JSON Schema writes patterns in JavaScript's dialect, and the text they run on comes
from a model. Two things follow. ``runnable`` rewrites a pattern so that Python reads
it as meant (``$`` is the very end, ``\d`` an ASCII digit, ``(?<name>…)`` a group) and
gives None for what Python cannot read at all. ``unsafe_pattern`` finds nested
unbounded repeats such as ``(a+)+``, on which a short text can take years.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import FrozenSet, Iterator, List, Optional, Tuple

__all__ = [
    "runnable",
    "unsafe_pattern",
]

# Characters are looked at as ASCII codes; 128 stands for all others.
_ALL: FrozenSet[int] = frozenset(range(129))
_DIGIT = frozenset(range(48, 58))
_WORD = frozenset(n for n in range(128) if chr(n).isalnum() or n == 95) | {128}
_SPACE = frozenset(b" \t\n\r\f\v") | {128}
_SETS = {
    "d": _DIGIT,
    "D": _ALL - _DIGIT,
    "w": _WORD,
    "W": (_ALL - _WORD) | {128},
    "s": _SPACE,
    "S": (_ALL - _SPACE) | {128},
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
# Escapes that match a position, not a character.
_POSITIONS = frozenset("bBAZz")
_REPEAT = re.compile(r"[*+?]|\{([0-9]*)(,?)([0-9]*)\}")
_GROUP = re.compile(r"\(\?(?:P?<[A-Za-z_]\w*>|[:=!]|<[=!]|[a-zA-Z-]*[:)])|\(")
# Deeper patterns than this are not looked into.
_MAX_DEPTH = 50


@lru_cache(maxsize=512)
def runnable(pattern: str) -> str | None:
    r"""Give *pattern* as Python must be told it, None if it must not be run.

    >>> runnable(r"^\d+$")
    '^[0-9]+\\Z'
    >>> runnable(r"\p{Letter}") is None
    True
    """
    if unsafe_pattern(pattern):
        return None
    translated = _translate(pattern)
    if re.search(r"(?<!^)\(\?[a-zA-Z]+\)", translated):
        return None  # flags inside a pattern are an error from 3.11 on
    try:
        re.compile(translated)
    except (re.error, OverflowError, RecursionError):
        return None
    return translated


@lru_cache(maxsize=512)
def unsafe_pattern(pattern: str) -> bool:
    r"""Say whether *pattern* has nested unbounded repeats that can run for ever.

    A repeat within a repeat is harmless when each round is marked off by a
    character that the inner repeat cannot match. What cannot be shown to be
    harmless counts as unsafe.

    >>> unsafe_pattern("^(a+)+$")
    True
    >>> unsafe_pattern("^[a-z0-9]+(-[a-z0-9]+)*$")
    False
    """
    try:
        return _Reader(pattern).read_choice(0).unsafe
    except _TooDeepError:
        return True


def _translate(pattern: str) -> str:
    pieces: List[str] = []
    pos, inside = 0, False
    while pos < len(pattern):
        char = pattern[pos]
        pair = pattern[pos : pos + 2]
        if char == "\\":
            pieces.append(_translate_escape(pair, inside))
            pos += 2
            continue
        if inside:
            # Python warns of "[" and doubled signs: sets may one day nest.
            doubled = pair in ("--", "&&", "||", "~~")
            pieces.append(f"\\{char}" if char == "[" or doubled else char)
            inside = char != "]"
        elif char == "[":
            pieces.append(char)
            inside = True
            if pattern[pos + 1 : pos + 2] == "^":
                pieces.append("^")
                pos += 1
        elif char == "$":
            pieces.append("\\Z")
        elif pattern.startswith("(?<", pos) and pattern[pos + 3 : pos + 4] not in "=!":
            pieces.append("(?P<")
            pos += 2
        else:
            pieces.append(char)
        pos += 1
    return "".join(pieces)


def _translate_escape(pair: str, inside: bool) -> str:
    if pair == "\\d":
        return "0-9" if inside else "[0-9]"
    if pair == "\\D" and not inside:
        return "[^0-9]"
    return pair


class _TooDeepError(ValueError):
    """The pattern nests deeper than we look."""


@dataclass(frozen=True)
class _Piece:
    """What one part of a pattern can match."""

    # Every character that occurs in a match of it.
    chars: FrozenSet[int] = frozenset()
    unsafe: bool = False
    # Whether it can match one text in several ways. Once that is harmless; each
    # round of a repeat multiplies the ways.
    murky: bool = False
    # Whether it can match nothing.
    empty: bool = False
    # Whether its matches differ in length, or in what is where.
    varies: bool = False
    # The parts of a sequence, or the branches of a choice; neither in an atom.
    parts: Optional[Tuple[_Piece, ...]] = None
    branches: Optional[Tuple[_Piece, ...]] = None


class _Reader:
    """Reads a pattern in either dialect; what it does not know, it takes literally."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.pos = 0

    def read_choice(self, depth: int) -> _Piece:
        """Read up to the closing bracket of a group, or to the end."""
        if depth > _MAX_DEPTH:
            raise _TooDeepError
        branches = [self.read_sequence(depth)]
        while self.pattern.startswith("|", self.pos):
            self.pos += 1
            branches.append(self.read_sequence(depth))
        if len(branches) == 1:
            return branches[0]
        return _choice(tuple(branches))

    def read_sequence(self, depth: int) -> _Piece:
        parts: List[_Piece] = []
        while self.pos < len(self.pattern) and self.pattern[self.pos] not in "|)":
            atom = self.read_atom(depth)
            if atom is None:
                continue
            repeated = self.read_repeat(atom)
            if repeated.parts is not None:
                parts.extend(repeated.parts)
            else:
                parts.append(repeated)
        return _sequence(tuple(parts))

    def read_atom(self, depth: int) -> _Piece | None:
        char = self.pattern[self.pos]
        if char == "(":
            return self.read_group(depth)
        if char == "[":
            return _Piece(self.read_class())
        if char == "\\":
            return self.read_escape()
        self.pos += 1
        if char in "^$":
            return None
        return _Piece(_ALL if char == "." else _codes(char))

    def read_group(self, depth: int) -> _Piece | None:
        opening = _GROUP.match(self.pattern, self.pos)
        head = opening[0] if opening else "("
        self.pos += len(head)
        if head.startswith("(?") and head.endswith(")"):
            return None  # flags alone
        inner = self.read_choice(depth + 1)
        self.pos += 1
        if head in ("(?=", "(?!", "(?<=", "(?<!"):
            return _Piece(unsafe=inner.unsafe, empty=True)
        return inner

    def read_escape(self) -> _Piece | None:
        chars = self.read_escaped()
        return None if chars is None else _Piece(chars)

    def read_escaped(self) -> FrozenSet[int] | None:
        """Read what a backslash stands for; None for a position."""
        char = self.pattern[self.pos + 1 : self.pos + 2]
        width = {"x": 4, "u": 6, "U": 10}.get(char, 2)
        start, self.pos = self.pos, self.pos + width
        if char in _POSITIONS and char:
            return None
        if char in _SETS:
            return _SETS[char]
        if char in _CONTROLS:
            return _codes(_CONTROLS[char])
        if width > 2:
            try:
                return _codes(chr(int(self.pattern[start + 2 : start + width], 16)))
            except (ValueError, OverflowError):
                return _ALL
        # Backreferences and \p can be anything.
        return _ALL if char.isalnum() or not char else _codes(char)

    def read_class(self) -> FrozenSet[int]:
        self.pos += 1
        negated = self.pattern.startswith("^", self.pos)
        self.pos += negated
        chars: FrozenSet[int] = frozenset()
        first = True
        while self.pos < len(self.pattern) and (first or self.pattern[self.pos] != "]"):
            first = False
            chars |= self.read_range()
        self.pos += 1
        if not negated:
            return chars
        # Some other non-ASCII character is always left.
        return (_ALL - chars) | {128}

    def read_range(self) -> FrozenSet[int]:
        low = self.read_class_char()
        after = self.pattern[self.pos + 1 : self.pos + 2]
        if not self.pattern.startswith("-", self.pos) or after in ("]", ""):
            return low
        self.pos += 1
        high = self.read_class_char()
        if len(low) > 1 or len(high) > 1:
            return low | high | {45}
        return frozenset(range(min(low), max(high) + 1))

    def read_class_char(self) -> FrozenSet[int]:
        if self.pattern[self.pos] == "\\":
            return self.read_escaped() or _codes("\b")
        self.pos += 1
        return _codes(self.pattern[self.pos - 1])

    def read_repeat(self, atom: _Piece) -> _Piece:
        """Read the quantifiers behind an atom."""
        piece = atom
        while True:
            match = _REPEAT.match(self.pattern, self.pos)
            if match is None or match[0] in ("{}", "{,}"):
                return piece
            self.pos = match.end()
            least, most = _bounds(match)
            if self.pattern[self.pos : self.pos + 1] in ("?", "+"):
                self.pos += 1  # lazy or possessive
            piece = _repeated(piece, least, most)


def _codes(char: str) -> FrozenSet[int]:
    return frozenset({min(ord(char), 128)})


def _bounds(match: re.Match[str]) -> tuple[int, int | None]:
    if match[0] in "*+?":
        return int(match[0] == "+"), 1 if match[0] == "?" else None
    least = int(match[1] or 0)
    if not match[2]:
        return least, least
    return least, int(match[3]) if match[3] else None


def _merged(pieces: Tuple[_Piece, ...]) -> _Piece:
    return _Piece(
        frozenset().union(*(piece.chars for piece in pieces)),
        unsafe=any(piece.unsafe for piece in pieces),
        murky=any(piece.murky for piece in pieces),
    )


def _sequence(parts: Tuple[_Piece, ...]) -> _Piece:
    merged = _merged(parts)
    return replace(
        merged,
        parts=parts,
        empty=all(part.empty for part in parts),
        varies=any(part.varies for part in parts),
        murky=merged.murky or any(map(_overlaps, _tails(parts))),
    )


def _tails(parts: Tuple[_Piece, ...]) -> Iterator[Tuple[_Piece, ...]]:
    return (parts[n:] for n, part in enumerate(parts) if part.varies)


def _overlaps(parts: Tuple[_Piece, ...]) -> bool:
    """Whether the first part, which varies, can take from what a later one matches."""
    first = parts[0].chars
    for part in parts[1:]:
        if not part.varies:
            if part.chars and not part.chars & first:
                return False  # it marks where the first part ends
        elif part.chars & first:
            return True
    return False


def _choice(branches: Tuple[_Piece, ...]) -> _Piece:
    merged = _merged(branches)
    apart = _told_apart(branches) or all(
        _differ(one, other)
        for n, one in enumerate(branches)
        for other in branches[n + 1 :]
    )
    return replace(
        merged,
        branches=branches,
        empty=any(branch.empty for branch in branches),
        varies=any(branch.varies for branch in branches) or not _told_apart(branches),
        murky=merged.murky or not apart,
    )


def _differ(one: _Piece, other: _Piece) -> bool:
    """Whether no text is a match of both branches."""
    left, right = one.parts or (), other.parts or ()
    return (
        any(_is_alien(part, right[0].chars) for part in left[:1] if right)
        and not right[0].empty
    ) or (
        any(_is_alien(part, other.chars) for part in left)
        or any(_is_alien(part, one.chars) for part in right)
    )


def _disjoint(pieces: List[_Piece]) -> bool:
    return not any(
        piece.chars & other.chars
        for n, piece in enumerate(pieces)
        for other in pieces[n + 1 :]
    )


def _repeated(piece: _Piece, least: int, most: int | None) -> _Piece:
    if least == most == 1:
        return piece
    # Twenty rounds of a repeat are as bad as any number.
    endless = most is None or most > 20
    several = most is None or most > 1
    settled = _settled(piece)
    return _Piece(
        piece.chars,
        unsafe=piece.unsafe or (endless and not settled) or (several and piece.murky),
        murky=piece.murky
        or (several and not settled)
        or (piece.empty and (several or least == 0)),
        empty=piece.empty or least == 0,
        varies=piece.varies or least != most,
    )


def _settled(piece: _Piece) -> bool:
    """Whether a text can be cut into rounds of *piece* in one way only."""
    if piece.branches is not None:
        return _told_apart(piece.branches)
    if piece.parts is None:
        return not piece.varies
    varying = [part for part in piece.parts if part.varies]
    # Parts may vary if none can take from another, and if each is marked off in every
    # round by a part that it cannot match.
    return _disjoint(varying) and all(
        any(_is_alien(part, one.chars) for part in piece.parts) for one in varying
    )


def _is_alien(part: _Piece, chars: FrozenSet[int]) -> bool:
    """Whether every match of *part* has a character that is not among *chars*."""
    return not part.empty and bool(part.chars) and not part.chars & chars


def _told_apart(branches: Tuple[_Piece, ...]) -> bool:
    """Whether a look at the text shows which of *branches* a round is."""
    if not any(branch.varies for branch in branches):
        return all(
            any(
                not left.chars & right.chars
                for left, right in zip(one.parts or (), other.parts or ())
            )
            for n, one in enumerate(branches)
            for other in branches[n + 1 :]
        )
    starts = [(branch.parts or (_Piece(_ALL),))[0] for branch in branches]
    varying = [
        part for branch in branches for part in branch.parts or () if part.varies
    ]
    return (
        all(_settled(branch) for branch in branches)
        and not any(start.varies for start in starts)
        and not any(
            start.chars & other.chars
            for n, start in enumerate(starts)
            for other in [*starts[n + 1 :], *varying]
        )
    )
