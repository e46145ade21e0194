"""What a schema's keywords say, in words a model reads."""

from __future__ import annotations

import json
from typing import Any, Iterator, List

__all__ = ["describe_checks", "list_values"]


def list_values(values: list[Any]) -> str:
    """List JSON scalars, texts bare.

    >>> list_values(["a", 1, True, None])
    'a, 1, true, null'
    """
    return ", ".join(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in values
    )


def describe_checks(checks: dict[str, Any]) -> list[str]:
    """Say in short sentences what *checks* ask for; skip what has no short form.

    >>> describe_checks({"minimum": 1, "maximum": 10, "multipleOf": 2})
    ['Between 1 and 10.', 'A multiple of 2.']
    >>> describe_checks({"maxItems": 5, "not": {"type": "null"}})
    ['At most 5 items.']
    """
    return list(_sentences(checks))


_RANGES = (
    ("minLength", "maxLength", "character"),
    ("minItems", "maxItems", "item"),
    ("minProperties", "maxProperties", "key"),
)


def _sentences(checks: dict[str, Any]) -> Iterator[str]:
    yield from _bounds(checks)
    for low, high, unit in _RANGES:
        yield from _sizes(checks.get(low), checks.get(high), unit)
    if "multipleOf" in checks:
        yield f"A multiple of {checks['multipleOf']}."
    if "pattern" in checks:
        yield f"Matches the pattern {checks['pattern']}."
    if "format" in checks:
        yield f"Format: {checks['format']}."
    if "contentEncoding" in checks:
        yield f"Encoding: {checks['contentEncoding']}."
    if checks.get("uniqueItems"):
        yield "No item twice."


def _bounds(checks: dict[str, Any]) -> Iterator[str]:
    low, high = checks.get("minimum"), checks.get("maximum")
    if low is not None and high is not None:
        yield f"Between {low} and {high}."
    elif low is not None:
        yield f"At least {low}."
    elif high is not None:
        yield f"At most {high}."
    if "exclusiveMinimum" in checks:
        yield f"Greater than {checks['exclusiveMinimum']}."
    if "exclusiveMaximum" in checks:
        yield f"Less than {checks['exclusiveMaximum']}."


def _sizes(low: Any, high: Any, unit: str) -> Iterator[str]:
    words: List[str] = []
    if low and low == high:
        words = [f"Exactly {low}"]
    elif low and high is not None:
        words = [f"{low} to {high}"]
    elif low:
        words = [f"At least {low}"]
    elif high is not None:
        words = [f"At most {high}"]
    last = high if high is not None else low
    for word in words:
        yield f"{word} {unit}{'' if last == 1 else 's'}."
