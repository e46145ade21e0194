"""Patterns: translated from ECMA 262, and which ones are not run."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.schema_pattern import runnable, unsafe_pattern

UNSAFE = [
    "(a+)+",
    "(a*)*b",
    "^(a|b+)*$",
    "(a|a)*",
    "(foo|foobar)+",
    "(a|)*",
    r"(\w+\s?)*",
    "(-a*a*)*",
    "(-a?a*)*",
    "(.*,)*",
    "((ab)*)*",
    "(a{2,3})*",
    "^([a-z]{1,10})+$",
    "(a+){2,}",
    "(a+){30}",
    "(?=(a+)+)x",
    "(?<n>a+)+",
    r"(\1+x?)*",
    r"(\x61+a)*",
    r"(\u0061+a)*",
    r"(\u00e9+é)*",
    r"(\xzz+a)*",
    "([^b]+c)*",
    r"([\d-z]+-)*",
    "(a+)*?",
    "a(b(c+)+d)e",
    "(" * 60 + ")" * 60,
    r"([\w.]+\.)+",
    "^([^a](a?)?)*bb$",
    "^(-(a?){1,3})*b+$",
    "^(((a)+){1,3}){1,3}$",
    "((((.){2,}){1,3})?){1,3}a",
    r"((\w*){1,3}b){1,3}",
    "((.[ab]+){1,3}){1,3}",
    "(-(a*b?a*)?)*",
    "(a+b?)*",
    "(a(b?){1}(b?){1})*",
    "(d(bc?){2}c?)*",
    "(a?b?)*",
]
SAFE = [
    "",
    "^a+$",
    "^[a-z0-9]+(-[a-z0-9]+)*$",
    "([a-z]+,)*",
    r"^\d+(\.\d+)*$",
    "^(?:[A-Z][a-z]*)+$",
    "(ab?)*",
    "(foo|bar|for)*",
    r"(\.[a-z]+|\[\d+\])*",
    "((a|b)c+)*",
    "(ab)*(cd)*",
    "(a{2}){3,}",
    "(a{2,3}){4}",
    "x{,3}y{2}{}",
    "(?i)abc",
    r"^[^@\s]+@[^@\s]+$",
    "a|b+|c*",
    "((a+)b)+",
    r"^(\d+-\d+)(,\d+-\d+){0,5}$",
    r"(x(\d+|[a-z]+)){1,3}",
    "([a-z]{2,3}){1,2}",
    "(?:a+b+)*",
    "(-(a|ab)?c?)*",
    "(-(a+|a*b))*c",
    r"^[a-zA-Z]+(?:(?:\s+|-)[a-zA-Z]+)*$",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    r"^v(?:-(?:0|[1-9]\d*|\d*[a-z-][0-9a-z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-z-][0-9a-z-]*))*)?$",
    "^(a*b?a*)?$",
    r"([]a]b)*",
    r"([^]a]b)*",
    r"([\b]a)*",
    r"(\ba+-)*",
    "(x(?=y)z)*",
    r"(\t+a)*",
    r"([+--]\d+)*",
    "(a++b)*",
    "\\",
    "(",
    "[",
    "[a",
    "[\\",
]


@pytest.mark.parametrize("pattern", UNSAFE)
def test_nested_repeats_are_unsafe(pattern: str) -> None:
    """A repeat in a repeat that can share a text in many ways is found and not run."""
    assert unsafe_pattern(pattern)
    assert runnable(pattern) is None


@pytest.mark.parametrize("pattern", SAFE)
def test_marked_repeats_are_safe(pattern: str) -> None:
    """Repeats whose rounds are marked off by a character of their own are harmless."""
    assert not unsafe_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^a$", ["a"], ["a\n", "b"]),
        (r"^\d$", ["7"], ["٧"]),
        (r"^[\d-]+$", ["1-2"], ["٧"]),
        (r"^\D$", ["٧"], ["7"]),
        (r"^[\D]$", ["x"], ["7"]),
        ("^(?<year>[0-9]{4})$", ["2024"], ["20"]),
        (r"^\/a\-b$", ["/a-b"], ["a-b"]),
        ("^[[a]$", ["[", "a"], ["b"]),
        ("^[^[]$", ["a"], ["["]),
        ("^[a&&b]$", ["a", "&", "b"], ["c"]),
        (r"^\$\u0061$", ["$a"], ["$"]),
        ("(?<=a)b", ["ab"], ["b"]),
        ("(?i)^A$", ["a"], ["b"]),
    ],
)
def test_pattern_means_what_javascript_means(
    pattern: str, good: list[str], bad: list[str]
) -> None:
    """Anchors, digits, groups and sets are read as ECMA 262 reads them."""
    told = runnable(pattern)
    assert told is not None
    assert [text for text in good if not re.search(told, text)] == []
    assert [text for text in bad if re.search(told, text)] == []


@pytest.mark.parametrize(
    "pattern", [r"\p{L}", "(", "[", "a(?i)b", "*", "x{99999999999}", "[b-a]", "(?<"]
)
def test_unreadable_pattern_is_not_run(pattern: str) -> None:
    """What Python cannot compile gives None; no error and no warning escapes."""
    assert runnable(pattern) is None


@given(st.text("ab\\[](){}|*+?^$.-,:=!<>P0129dwsuxi") | st.text())
def test_any_text_is_a_pattern_or_not(pattern: str) -> None:
    """Whatever a schema calls a pattern, looking at it raises nothing."""
    assert unsafe_pattern(pattern) in (True, False)
    told = runnable(pattern)
    assert told is None or re.compile(told)


@given(st.sampled_from(SAFE), st.text("ab-.,:1@ \n", max_size=200))
def test_safe_patterns_end(pattern: str, text: str) -> None:
    """A pattern that is run comes to an end on any text."""
    told = runnable(pattern)
    if told is not None:
        re.search(told, text)
