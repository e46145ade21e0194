"""A template's tree, and the rules for white space around its tags.

The nodes say what was written and not what it means: they know calls and paths, not
helpers and variables. White space is settled when a block, or the whole template,
has been read: ``~`` takes all of it away on its side, and a tag that stands alone on
its line takes the line away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import List, NamedTuple, Optional, Sequence, Tuple, Union

from .errors import TemplateError

__all__ = [
    "Block",
    "Call",
    "Comment",
    "Expression",
    "Include",
    "Link",
    "Literal",
    "MAX_DEPTH",
    "Node",
    "Output",
    "Path",
    "SPACES",
    "Section",
    "Strip",
    "Text",
    "blank_after",
    "blank_before",
    "error_at",
    "tidy",
    "trim_link",
]

# How deep blocks, sub-expressions and partials nest, all together. A level costs up
# to six frames of the stack, of which Python has a thousand.
MAX_DEPTH = 100


@dataclass(frozen=True)
class Path:
    """A look-up: ``a.b``, ``../x``, ``this``, ``@index``."""

    at: int
    # The path as written, with the brackets gone: what a closing tag repeats.
    original: str
    parts: Tuple[str, ...]
    # How many levels up it starts.
    depth: int = 0
    # It begins with ``@``.
    data: bool = False
    # It begins with ``this`` or ``.``, and so cannot be a helper.
    scoped: bool = False


@dataclass(frozen=True)
class Literal:
    """A string, number, true, false, null or undefined."""

    at: int
    original: str
    value: Union[str, int, float, bool, None]


@dataclass(frozen=True)
class Call:
    """A name with its arguments; as an argument itself, a sub-expression."""

    at: int
    name: Union[Path, Literal]
    args: Tuple[Expression, ...] = ()
    named: Tuple[Tuple[str, Expression], ...] = ()


Expression = Union[Path, Literal, Call]


@dataclass
class Text:
    """Text between tags. Mutable until its template is read to the end."""

    original: str
    value: str
    # Whether a tag on that side has taken white space away.
    cut_start: bool = False
    cut_end: bool = False


@dataclass(frozen=True)
class Output:
    """``{{…}}``."""

    call: Call


@dataclass(frozen=True)
class Comment:
    """``{{! … }}``: prints nothing, but parts the texts on its sides."""


@dataclass(frozen=True)
class Include:
    """``{{> name context key=value}}``."""

    at: int
    name: Expression
    context: Optional[Expression]
    named: Tuple[Tuple[str, Expression], ...]
    # What stands before a partial that is alone on its line.
    indent: str = ""


@dataclass(frozen=True)
class Link:
    """One ``{{#…}}`` or ``{{else …}}`` of a block and what follows it."""

    call: Call
    params: Tuple[str, ...]
    body: Tuple[Node, ...]


@dataclass(frozen=True)
class Block:
    """A chain of links, tried in turn, and what is left when none applies."""

    links: Tuple[Link, ...]
    otherwise: Tuple[Node, ...]


Node = Union[Text, Output, Comment, Include, Block]

# ECMAScript's white space, which is not quite Python's.
SPACES = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
    "\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)

_LINE_REST = re.compile(r"[ \t]*\r?\n?")


def error_at(text: str, at: int, message: str) -> TemplateError:
    """Make the error for position *at* of *text*."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return TemplateError(
        message,
        line=text.count("\n", 0, at) + 1,
        column=at - start + 1,
        source=text[start : len(text) if end < 0 else end].rstrip("\r"),
    )


class Strip(NamedTuple):
    """What a tag, or a whole block, does to the white space around it."""

    # A ``~`` on the left, on the right.
    open: bool = False
    close: bool = False
    # It prints nothing of its own: its line goes if nothing else is on it.
    alone: bool = False
    # The same for the lines of a block's first and last tag, and what they enclose.
    first_alone: bool = False
    last_alone: bool = False
    first: Tuple[Node, ...] = ()
    last: Tuple[Node, ...] = ()


@dataclass
class Section:
    """The nodes between two tags of a block, while they are being read."""

    nodes: List[Node] = field(default_factory=list)
    strips: List[Optional[Strip]] = field(default_factory=list)

    def add(self, node: Node, strip: Strip | None = None) -> None:
        """Append a node; *strip* is None for text."""
        self.nodes.append(node)
        self.strips.append(strip)

    def add_text(self, value: str) -> None:
        """Append a text of its own, unless it is empty."""
        if value:
            self.add(Text(value, value))


# White space. The rules and their order are those of handlebars.js:
# https://github.com/handlebars-lang/handlebars.js/blob/v4.7.8/lib/handlebars/compiler/whitespace-control.js


def trim_link(
    bodies: Sequence[Sequence[Node]], before: Strip, between: Strip, behind: Strip
) -> None:
    """Let the tags around one or two bodies of a block trim what they enclose."""
    main, last = bodies[0], bodies[-1]
    if before.close:
        _trim_start(main, 0, everything=True)
    if len(bodies) > 1:
        if between.open:
            _trim_end(main, len(main) - 1, everything=True)
        if between.close:
            _trim_start(last, 0, everything=True)
    if behind.open:
        _trim_end(last, len(last) - 1, everything=True)
    alone = blank_before(main, len(main)) and blank_after(last, -1)
    if len(bodies) > 1 and alone:
        _trim_end(main, len(main) - 1)
        _trim_start(last, 0)


def tidy(section: Section, *, at_root: bool = False) -> None:
    """Apply ``~`` and take away the lines that hold nothing but a tag."""
    nodes = section.nodes
    for n, strip in enumerate(section.strips):
        if strip is None:
            continue
        before = blank_before(nodes, n, at_root=at_root)
        after = blank_after(nodes, n, at_root=at_root)
        if strip.close:
            _trim_start(nodes, n + 1, everything=True)
        if strip.open:
            _trim_end(nodes, n - 1, everything=True)
        if strip.alone and before and after:
            _trim_start(nodes, n + 1)
            indent = _trim_end(nodes, n - 1)
            node = nodes[n]
            if indent and isinstance(node, Include):
                nodes[n] = replace(node, indent=indent)
        if strip.first_alone and before:
            _trim_start(strip.first, 0)
            _trim_end(nodes, n - 1)
        if strip.last_alone and after:
            _trim_start(nodes, n + 1)
            _trim_end(strip.last, len(strip.last) - 1)


def _text_at(nodes: Sequence[Node], n: int) -> Text | None:
    node = nodes[n] if 0 <= n < len(nodes) else None
    return node if isinstance(node, Text) else None


def blank_before(nodes: Sequence[Node], n: int, *, at_root: bool = False) -> bool:
    """Whether only blanks stand between the node and the start of its line."""
    if n == 0:
        return at_root
    text = _text_at(nodes, n - 1)
    if text is None:
        return False
    tail = text.original[len(text.original.rstrip(SPACES)) :]
    return "\n" in tail or (at_root and n == 1 and tail == text.original)


def blank_after(nodes: Sequence[Node], n: int, *, at_root: bool = False) -> bool:
    """Whether only blanks stand between the node and the end of its line."""
    if n == len(nodes) - 1:
        return at_root
    text = _text_at(nodes, n + 1)
    if text is None:
        return False
    head = text.original[: len(text.original) - len(text.original.lstrip(SPACES))]
    return "\n" in head or (at_root and n == len(nodes) - 2 and head == text.original)


def _trim_start(nodes: Sequence[Node], n: int, *, everything: bool = False) -> None:
    """Take away blanks and one line end, or all white space."""
    text = _text_at(nodes, n)
    if text is None or (text.cut_start and not everything):
        return
    if everything:
        value = text.value.lstrip(SPACES)
    else:
        match = _LINE_REST.match(text.value)
        value = text.value[match.end() if match else 0 :]
    text.cut_start = value != text.value
    text.value = value


def _trim_end(nodes: Sequence[Node], n: int, *, everything: bool = False) -> str:
    """Take away blanks, or all white space; give what went."""
    text = _text_at(nodes, n)
    if text is None or (text.cut_end and not everything):
        return ""
    value = text.value.rstrip(SPACES if everything else " \t")
    gone = text.value[len(value) :]
    text.cut_end = bool(gone)
    text.value = value
    return gone
