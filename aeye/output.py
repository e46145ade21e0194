"""Find, decode and check the answer; the corrective message where it does not fit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Iterator, Literal, Optional, Tuple, Union

from .callback import Bound, ask, words
from .context import Context
from .decode import decode_wire, unwrap_root
from .descriptor import get_descriptor_by_id
from .quick import quick
from .request import ResponseFormat
from .schema import Schema, parse_json
from .tools import find_issues

__all__ = ["Accepted", "Check", "Rejected", "find_json", "truncate"]

# Starts of a JSON value that are tried in a text with none that fits: a bound on work.
_MAX_STARTS = 64
_MAX_UNCLOSED = 4
# A whole string, or to the end of the text; or a bracket.
_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]]', re.DOTALL)


@quick
@dataclass(frozen=True)
class Accepted:
    """The answer's value."""

    value: Any


@dataclass(frozen=True)
class Rejected:
    """Why the answer is no good, in words for the model."""

    reason: Literal["json-parsing", "schema-parsing", "validation"]
    text: str
    issues: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """How the answers of one prompt are checked."""

    # None: plain text.
    schema: Optional[Schema] = None
    parse: Optional[Bound] = None
    validate: Optional[Bound] = None

    def __call__(
        self, text: str, sent: Union[str, ResponseFormat], ctx: Context
    ) -> Union[Accepted, Rejected]:
        """Check the *text* of an answer to a request that asked for *sent*.

        The dialect that *sent* names is undone first, then the root's wrapper; the
        value is checked against the source schema, built, and shown to ``validate``.
        """
        if self.schema is None:
            return self._validated(text, ctx)
        try:
            value = find_json(text, want_object=self.schema.is_object)
        except ValueError as exc:
            return Rejected(
                "json-parsing", f"The output was not valid JSON:\n{exc}", (str(exc),)
            )
        value = self._natural(self.schema, value, sent)
        if self.parse is not None:
            value, fault = ask(self.parse, value, ctx)
            if fault is not None:
                return Rejected("schema-parsing", words(fault), (words(fault),))
            return self._validated(value, ctx)
        made, findings = self.schema.load(value)
        if findings:
            issues = find_issues(findings)
            return Rejected(
                "schema-parsing",
                f"The output was an invalid format:\n{issues}",
                tuple(issues.split("\n")),
            )
        return self._validated(made, ctx)

    def _natural(
        self, schema: Schema, value: Any, sent: Union[str, ResponseFormat]
    ) -> Any:
        if isinstance(sent, ResponseFormat):
            if sent.schema is not schema:
                value = unwrap_root(schema, value)
            if sent.descriptor is not None:
                dialect = get_descriptor_by_id(sent.descriptor)
                value = decode_wire(schema, value, dialect)
        return value

    def _validated(self, value: Any, ctx: Context) -> Union[Accepted, Rejected]:
        if self.validate is None:
            return Accepted(value)
        verdict, fault = ask(self.validate, value, ctx)
        if fault is None and verdict is False:
            fault = ValueError("the value was refused")
        if fault is None:
            return Accepted(value)
        text = f"The output failed validation:\n{words(fault)}"
        return Rejected("validation", text, (words(fault),))


def truncate(text: str, limit: int) -> str:
    """Cut *text* to *limit* characters and say how many were cut; 0 or less: never.

    >>> truncate("abcdefghij", 4)
    'abcd… (6 more characters)'
    """
    if limit <= 0 or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"


def find_json(text: str, *, want_object: bool = False) -> Any:
    """Return the JSON value in *text*: all of it, in a code fence, or amid prose.

    With *want_object* only an object will do where prose stands around it.

    >>> find_json('Sure! {"a": [1]} Anything else?')
    {'a': [1]}

    Raises:
        ValueError: there is none; the message says what is wrong with what is there.
    """
    stripped = text.strip()
    if not stripped:
        raise ValueError("the answer is empty")
    try:
        return parse_json(stripped)
    except ValueError as exc:
        first = exc
    for candidate in _candidates(stripped, "{" if want_object else "{["):
        try:
            return parse_json(candidate)
        except ValueError:
            continue
    raise first


def _candidates(text: str, openers: str) -> Iterator[str]:
    parts = text.split("```")
    for fenced in parts[1::2][:_MAX_STARTS]:
        _, newline, body = fenced.partition("\n")
        yield body if newline else fenced
    pos = unclosed = 0
    for _ in range(_MAX_STARTS):
        starts = [at for at in (text.find(c, pos) for c in openers) if at >= 0]
        if not starts:
            return
        start = min(starts)
        end = _balanced(text, start)
        if end is not None:
            yield text[start:end]
        else:  # each such search reads the whole text
            unclosed += 1
            if unclosed == _MAX_UNCLOSED:
                return
        pos = start + 1


def _balanced(text: str, start: int) -> Optional[int]:
    """Return where the bracket at *start* is closed, strings being passed over."""
    depth = 0
    for found in _MARKS.finditer(text, start):
        mark = found.group()
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                return found.end()
    return None
