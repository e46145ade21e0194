"""Template text → tree. The language is a subset of Handlebars 4.7.

Every function takes the text and a position and returns what it read and the
position behind it. The rules for tokens, for ``~`` and for tags that stand alone
on their line are those of handlebars.js, oddities included, and are checked
against it (``tests/test_template_handlebars.py``). What a name means is not
decided here: the tree knows calls and paths, not helpers and variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, NamedTuple, Optional, Tuple

from .errors import TemplateError
from .template_tree import (
    MAX_DEPTH,
    SPACES,
    Block,
    Call,
    Comment,
    Expression,
    Include,
    Link,
    Literal,
    Node,
    Output,
    Path,
    Section,
    Strip,
    blank_after,
    blank_before,
    error_at,
    tidy,
    trim_link,
)
from .template_value import number_text

__all__ = ["parse"]

_S = f"[{SPACES}]"
_TAG = re.compile(
    rf"""\{{\{{~?(?:
      (?P<else>   \^{_S}*~?\}}\}} | {_S}*else{_S}*~?\}}\}} )
    | (?P<chain>  {_S}*else(?![A-Za-z0-9_]) )
    | (?P<open>   \#> | \#\*? | [>/^{{&!*] | )
    )""",
    re.VERBOSE,
)
# A name ends before one of these, or it is not a name.
_END_OF_NAME = rf"(?=[=~}}/.)|]|{_S})"
_END_OF_LITERAL = rf"(?=[~}})]|{_S})"
_NAME = re.compile(rf"[^!-,./;->@\[-^`{{-~{SPACES}]+{_END_OF_NAME}")
_TOKEN = re.compile(
    rf"""{_S}*(?:
      (?P<open>     \( )
    | (?P<shut>     \) )
    | (?P<raw_end>  \}}\}}\}}\}} )
    | (?P<equals>   = )
    | (?P<dots>     \.\. | \.{_END_OF_NAME} )
    | (?P<slash>    [/.] )
    | (?P<end3>     \}}~?\}}\}} )
    | (?P<end>      ~?\}}\}} )
    | (?P<string>   "(?:\\"|[^"])*" | '(?:\\'|[^'])*' )
    | (?P<at>       @ )
    | (?P<word>     (?:true|false|undefined|null){_END_OF_LITERAL} )
    | (?P<number>   -?[0-9]+(?:\.[0-9]+)?{_END_OF_LITERAL} )
    | (?P<params>   as{_S}+\| )
    | (?P<pipe>     \| )
    | (?P<name>     {_NAME.pattern} )
    | (?P<bracket>  \[(?:\\\]|[^\]])*\] )
    )""",
    re.VERBOSE,
)
_RAW_CLOSE = re.compile(rf"\{{\{{\{{\{{/([^!-,./;->@\[-^`{{-~{SPACES}]+)\}}\}}\}}\}}")
_COMMENT_END = re.compile(r"\}\}")
_LONG_COMMENT_END = re.compile(r"--~?\}\}")
_ESCAPED = re.compile(r"\\([\\\]])")
_WORDS = {"true": True, "false": False, "null": None, "undefined": None}
_IDS = ("name", "dots", "bracket")
_OPERANDS = (*_IDS, "string", "number", "word", "at")


def parse(text: str) -> Tuple[Node, ...]:
    """Read a template.

    Raises:
        TemplateError: *text* is not a template; it says where and why.
    """
    root = Section()
    stack: List[_OpenBlock] = []
    section, pos = root, 0
    while True:
        pos = _read_text(text, pos, section)
        if pos == len(text):
            break
        if text.startswith("{{{{", pos):
            pos = _read_raw_block(text, pos, section, len(stack))
        else:
            pos = _read_tag(text, pos, section, stack)
            section = stack[-1].current if stack else root
    if stack:
        opening = stack[-1].links[0].call
        raise error_at(
            text, stack[-1].at, f"the block '{opening.name.original}' is never closed"
        )
    tidy(root, at_root=True)
    return tuple(root.nodes)


@dataclass
class _OpenLink:
    call: Call
    params: Tuple[str, ...]
    strip: Strip
    section: Section = field(default_factory=Section)


@dataclass
class _OpenBlock:
    """A block whose closing tag has not been read."""

    at: int
    # The section that it will be a node of.
    outer: Section
    inverted: bool
    links: List[_OpenLink]
    otherwise: Optional[Section] = None
    otherwise_strip: Strip = field(default_factory=Strip)

    @property
    def current(self) -> Section:
        return self.links[-1].section if self.otherwise is None else self.otherwise


class _Token(NamedTuple):
    kind: str
    at: int
    end: int


# Text and tags


def _read_text(text: str, pos: int, section: Section) -> int:
    """Read up to a tag that is not escaped; give its position, or the end."""
    while True:
        brace = text.find("{{", pos)
        if brace < 0:
            section.add_text(text[pos:])
            return len(text)
        if not text.startswith("\\", brace - 1) or brace == pos:
            section.add_text(text[pos:brace])
            return brace
        section.add_text(text[pos : brace - 1])
        if brace - 1 > pos and text[brace - 2] == "\\":
            return brace
        pos = _end_of_escaped(text, brace)
        section.add_text(text[brace:pos])


def _end_of_escaped(text: str, brace: int) -> int:
    """Find where the text behind an escaped ``{{`` ends: before the next one."""
    least = brace + 2
    following = text.find("{{", least)
    if following < 0:
        return len(text)
    for _ in range(2):
        if following > least and text[following - 1] == "\\":
            following -= 1
    return following


def _read_tag(text: str, pos: int, section: Section, stack: List[_OpenBlock]) -> int:
    match = _TAG.match(text, pos)
    assert match is not None  # the last alternative is empty
    inner, depth = match.end(), len(stack)
    if match["else"] is not None:
        _begin_else(text, pos, _strip_of(match.group()), stack)
        return inner
    if match["chain"] is not None:
        return _read_else_chain(text, pos, inner, stack)
    kind = match["open"]
    if kind in ("#", "^"):
        return _read_block_open(text, pos, inner, section, stack)
    if kind == "/":
        return _read_block_close(text, pos, inner, stack)
    if kind == "!":
        return _read_comment(text, pos, inner, section)
    if kind == ">":
        return _read_include(text, pos, inner, section, depth)
    if kind in ("#>", "#*", "*"):
        what = "partial blocks" if kind == "#>" else "decorators and inline partials"
        raise error_at(text, pos, f"{what} are not supported")
    call, token = _read_call(text, inner, depth)
    _expect(text, token, "end3" if kind == "{" else "end")
    section.add(Output(call), _strip_of(text[pos : token.end]))
    return token.end


def _read_comment(text: str, pos: int, inner: int, section: Section) -> int:
    end = _LONG_COMMENT_END if text.startswith("--", inner) else _COMMENT_END
    match = end.search(text, inner)
    if match is None:
        raise error_at(text, pos, "the comment is never closed")
    strip = _strip_of(text[pos : match.end()])
    section.add(Comment(), strip._replace(alone=True))
    return match.end()


def _read_include(text: str, pos: int, inner: int, section: Section, depth: int) -> int:
    token = _next_token(text, inner)
    if token.kind == "open":
        name, after = _read_operand(text, token, depth)
    else:
        name, after = _read_name(text, token)
    args, named, token = _read_arguments(text, after, depth)
    _expect(text, token, "end")
    if len(args) > 1:
        raise error_at(text, pos, f"a partial takes one context, not {len(args)}")
    context = args[0] if args else None
    strip = _strip_of(text[pos : token.end])._replace(alone=True)
    section.add(Include(pos, name, context, named), strip)
    return token.end


def _read_raw_block(text: str, pos: int, section: Section, depth: int) -> int:
    _check_depth(text, pos, depth + 1)
    call, token = _read_call(text, pos + 4, depth + 1)
    _expect(text, token, "raw_end")
    body, level, at = Section(), 1, token.end
    while True:
        close = _RAW_CLOSE.match(text, at)
        if close is not None:
            level -= 1
            if level == 0:
                break
            following = close.end()
        elif text.startswith("{{{{", at) and text[at + 4 : at + 5] not in ("", "/"):
            level += 1
            following = at + 4
        else:
            following = text.find("{{{{", at + 1)
            if following < 0:
                raise error_at(
                    text, pos, f"the raw block '{call.name.original}' is never closed"
                )
        body.add_text(text[at:following])
        at = following
    if _closing_key(call.name) != (True, close[1]):
        raise _mismatch(text, at, pos, call.name.original, close[1])
    links = [_OpenLink(call, (), Strip(), body)]
    _finish_block(_OpenBlock(pos, section, False, links), Strip())
    return close.end()


# Blocks


def _read_block_open(
    text: str, pos: int, inner: int, outer: Section, stack: List[_OpenBlock]
) -> int:
    _check_depth(text, pos, len(stack) + 1)
    inverted = text[inner - 1] == "^"
    link, end = _read_link(text, pos, inner, len(stack) + 1)
    stack.append(_OpenBlock(pos, outer, inverted, [link]))
    return end


def _read_else_chain(text: str, pos: int, inner: int, stack: List[_OpenBlock]) -> int:
    if not stack or stack[-1].otherwise is not None or stack[-1].inverted:
        raise error_at(text, pos, "{{else …}} has no block to belong to here")
    link, end = _read_link(text, pos, inner, len(stack))
    stack[-1].links.append(link)
    return end


def _begin_else(text: str, pos: int, strip: Strip, stack: List[_OpenBlock]) -> None:
    if not stack or stack[-1].otherwise is not None:
        raise error_at(text, pos, "{{else}} has no block to belong to here")
    stack[-1].otherwise = Section()
    stack[-1].otherwise_strip = strip


def _read_link(text: str, pos: int, inner: int, depth: int) -> Tuple[_OpenLink, int]:
    call, token = _read_call(text, inner, depth)
    params: List[str] = []
    if token.kind == "params":
        token = _next_token(text, token.end)
        while token.kind in _IDS:
            params.append(_unbracketed(text, token))
            token = _next_token(text, token.end)
        if token.kind != "pipe" or not params:
            raise error_at(text, token.at, "block parameters are written as |name …|")
        token = _next_token(text, token.end)
    _expect(text, token, "end")
    return _OpenLink(call, tuple(params), _strip_of(text[pos : token.end])), token.end


def _read_block_close(text: str, pos: int, inner: int, stack: List[_OpenBlock]) -> int:
    name, after = _read_name(text, _next_token(text, inner))
    token = _next_token(text, after)
    _expect(text, token, "end")
    if not stack:
        raise error_at(text, pos, f"there is no block '{name.original}' to close here")
    block = stack[-1]
    opened = block.links[0].call.name
    if _closing_key(opened) != _closing_key(name):
        raise _mismatch(text, pos, block.at, opened.original, name.original)
    stack.pop()
    _finish_block(block, _strip_of(text[pos : token.end]))
    return token.end


def _closing_key(name: Path | Literal) -> Tuple[bool, str]:
    """Tell names apart as closing tags do: ``1`` is ``1.0`` and is not ``"1"``."""
    quoted = isinstance(name, Path) or isinstance(name.value, str)
    return quoted, name.original


def _mismatch(
    text: str, at: int, opened_at: int, opened: str, closed: str
) -> TemplateError:
    line = text.count("\n", 0, opened_at) + 1
    return error_at(
        text, at, f"'{closed}' closes the block '{opened}' that line {line} opens"
    )


def _check_depth(text: str, pos: int, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise error_at(text, pos, f"templates nest at most {MAX_DEPTH} deep")


def _finish_block(block: _OpenBlock, end: Strip) -> None:
    """Trim the white space inside a block and hand it to its outer section."""
    sections = [link.section for link in block.links]
    if block.otherwise is not None:
        sections.append(block.otherwise)
    for section in sections:
        tidy(section)
    bodies = [tuple(section.nodes) for section in sections]
    edges = bodies[:2]
    if block.inverted:
        edges.reverse()
    tags = [*(link.strip for link in block.links), block.otherwise_strip]
    for n in reversed(range(len(block.links))):
        # In handlebars.js the third link of a chain, and any later one, ends with
        # the tag that it begins with.
        behind = end if n < 2 else tags[n]
        pair = edges if n == 0 else bodies[n : n + 2]
        trim_link(pair, tags[n], tags[n + 1], behind)
    if block.inverted:
        bodies = [() if len(bodies) == 1 else bodies[1], bodies[0]]
    chained = len(block.links) > 1
    strip = Strip(
        block.links[0].strip.open,
        end.close,
        first=edges[0],
        first_alone=blank_after(edges[0], -1),
        # handlebars.js takes the second section's end for the last one's, and
        # does not trim it in a chain.
        last=() if chained else edges[-1],
        last_alone=blank_before(edges[-1], len(edges[-1])),
    )
    links = [Link(k.call, k.params, body) for k, body in zip(block.links, bodies)]
    otherwise = bodies[-1] if len(bodies) > len(links) else ()
    block.outer.add(Block(tuple(links), otherwise), strip)


def _strip_of(tag: str) -> Strip:
    return Strip(open=tag[2] == "~", close=tag[-3] == "~")


# Inside a tag


def _next_token(text: str, pos: int) -> _Token:
    match = _TOKEN.match(text, pos)
    if match is not None:
        kind = str(match.lastgroup)
        return _Token(kind, match.start(kind), match.end())
    at = pos
    while at < len(text) and text[at] in SPACES:
        at += 1
    if at == len(text):
        raise error_at(text, text.rfind("{{", 0, pos), "the tag is never closed")
    raise error_at(text, at, f"unexpected {text[at]!r} in a tag")


def _expect(text: str, token: _Token, kind: str) -> None:
    if token.kind == kind:
        return
    wanted = {"end": "}}", "end3": "}}}", "raw_end": "}}}}", "shut": ")"}[kind]
    found = text[token.at : token.end]
    message = f"expected '{wanted}', found {found!r}"
    if kind == "end" and token.kind in ("end3", "raw_end"):
        message += "; write '~}}}' for a brace right behind a tag"
    raise error_at(text, token.at, message)


def _read_call(text: str, pos: int, depth: int) -> Tuple[Call, _Token]:
    """Read a name and its arguments; give the token that ended them as well."""
    token = _next_token(text, pos)
    name, after = _read_name(text, token)
    args, named, end = _read_arguments(text, after, depth)
    return Call(token.at, name, args, named), end


def _read_arguments(
    text: str, pos: int, depth: int
) -> Tuple[Tuple[Expression, ...], Tuple[Tuple[str, Expression], ...], _Token]:
    args: List[Expression] = []
    # A name given twice has its last value, at its first place.
    named: Dict[str, Expression] = {}
    token = _next_token(text, pos)
    while token.kind == "open" or token.kind in _OPERANDS:
        equals = _next_token(text, token.end) if token.kind in _IDS else token
        if equals.kind == "equals":
            value, pos = _read_operand(text, _next_token(text, equals.end), depth)
            named[_unbracketed(text, token)] = value
        elif named:
            raise error_at(
                text, token.at, "positional arguments come before named ones"
            )
        else:
            value, pos = _read_operand(text, token, depth)
            args.append(value)
        token = _next_token(text, pos)
    return tuple(args), tuple(named.items()), token


def _read_operand(text: str, token: _Token, depth: int) -> Tuple[Expression, int]:
    if token.kind != "open":
        return _read_name(text, token)
    _check_depth(text, token.at, depth + 1)
    call, end = _read_call(text, token.end, depth + 1)
    _expect(text, end, "shut")
    return call, end.end


def _read_name(text: str, token: _Token) -> Tuple[Path | Literal, int]:
    raw = text[token.at : token.end]
    if token.kind in _IDS or token.kind == "at":
        return _read_path(text, token)
    if token.kind == "string":
        value = raw[1:-1].replace("\\" + raw[0], raw[0])
        return Literal(token.at, value, value), token.end
    if token.kind == "number":
        # int() refuses very long texts; JavaScript rounds all to doubles anyway.
        exact = "." not in raw and len(raw) < 4000
        number = int(raw) if exact else float(raw)
        return Literal(token.at, number_text(number), number), token.end
    if token.kind == "word":
        return Literal(token.at, raw, _WORDS[raw]), token.end
    raise error_at(text, token.at, f"expected a name, found {raw!r}")


def _read_path(text: str, token: _Token) -> Tuple[Path, int]:
    at, data = token.at, token.kind == "at"
    if data:
        token = _next_token(text, token.end)
    scoped = token.kind == "dots" or text[token.at : token.end] == "this"
    written, parts, depth = "@" if data else "", [], 0
    while token.kind in _IDS:
        part = _unbracketed(text, token)
        written += part
        if token.kind == "bracket" or part not in ("..", ".", "this"):
            parts.append(part)
        elif parts:
            raise error_at(text, token.at, f"'{part}' must come first in a path")
        elif part == "..":
            depth += 1
        following = _next_token(text, token.end)
        if following.kind != "slash":
            if data and not parts:
                raise error_at(text, token.at, "expected the name of an @ variable")
            return Path(at, written, tuple(parts), depth, data, scoped), token.end
        written += text[following.at]
        token = _next_segment(text, following.end)
    found = text[token.at : token.end]
    raise error_at(text, token.at, f"expected a name, found {found!r}")


def _next_segment(text: str, pos: int) -> _Token:
    """Read what follows a dot: ``0`` and ``true`` are names there, not literals."""
    token = _next_token(text, pos)
    if token.kind not in ("number", "word"):
        return token
    name = _NAME.match(text, token.at)
    return token if name is None else _Token("name", token.at, name.end())


def _unbracketed(text: str, token: _Token) -> str:
    raw = text[token.at : token.end]
    return _ESCAPED.sub(r"\1", raw)[1:-1] if token.kind == "bracket" else raw
