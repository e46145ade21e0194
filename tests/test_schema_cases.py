"""The rules of the schema layer, case by case, where the case file is at hand."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from aeye import descriptor as descriptors
from aeye.budget import (
    SchemaBudget,
    analyze_schema,
    can_express,
    check_schema_size_limits,
)
from aeye.decode import decode_wire
from aeye.descriptor import (
    FormatDescriptor,
    SchemaSizeLimits,
    check_descriptor_consistency,
)
from aeye.emit import to_json_schema

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases" / "schema.json"


def load() -> list[Any]:
    if not CASES.exists():
        return []
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    assert len(cases) > 100, "the case file is nearly empty"
    return [pytest.param(case, id=case["id"]) for case in cases]


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def named(value: Any) -> FormatDescriptor:
    """A built-in by name, or one with some of its fields replaced."""
    if isinstance(value, str):
        built_in: FormatDescriptor = getattr(descriptors, value)
        return built_in
    changes = {snake(key): held for key, held in value["overrides"].items()}
    limits = changes.get("schema_size_limits")
    if limits is not None:
        bounds = {snake(key): held for key, held in limits.items()}
        changes["schema_size_limits"] = SchemaSizeLimits(**bounds)
    return dataclasses.replace(named(value["base"]), **changes)


def matches(expected: Any, actual: Any) -> bool:
    """Compare deeply; a text may be given by what it has and lacks."""
    if isinstance(expected, dict) and expected.keys() & {"$contains", "$excludes"}:
        return (
            isinstance(actual, str)
            and all(part in actual for part in expected.get("$contains", ()))
            and not any(part in actual for part in expected.get("$excludes", ()))
        )
    if isinstance(expected, dict):
        return (
            isinstance(actual, dict)
            and expected.keys() == actual.keys()
            and all(matches(held, actual[key]) for key, held in expected.items())
        )
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(expected) == len(actual)
            and all(map(matches, expected, actual))
        )
    return type(expected) is type(actual) and bool(expected == actual)


def emit(case: Any) -> bool:
    dialect = named(case["descriptor"])
    return matches(case["expect"], to_json_schema(case["schema"], dialect))


def decode(case: Any) -> bool:
    decoded = decode_wire(case["schema"], case["wire"], named(case["descriptor"]))
    return matches(case["expect"], decoded)


def express(case: Any) -> bool:
    found = can_express(case["schema"], named(case["descriptor"]))
    return matches(case["expect"], found)


def analyze(case: Any) -> bool:
    found = dataclasses.asdict(analyze_schema(case["schema"]))
    found["enums"] = [
        {
            "valueCount": enum["value_count"],
            "stringValueChars": enum["string_value_chars"],
        }
        for enum in found["enums"]
    ]
    return all(matches(held, found[snake(key)]) for key, held in case["expect"].items())


def size_limits(case: Any) -> bool:
    problems = check_schema_size_limits(case["schema"], named(case["descriptor"]))
    return [problem.split(":")[0] for problem in problems] == [
        snake(name) for name in case["expect"]
    ]


def budget(case: Any) -> bool:
    given = case["descriptor"]
    if isinstance(given, dict) and "tool" in given:
        deal = SchemaBudget(named(given["tool"]), named(given["output"]))
    else:
        deal = SchemaBudget(named(given))
    ids = []
    for item in case["items"]:
        tool = item["kind"] == "tool"
        allocate = deal.allocate_tool if tool else deal.allocate_output
        for _ in range(item["repeat"]):
            ids.append(allocate(item["schema"], item.get("strict")).id)
    expected = [id for id, count in case["expect"]["ids"] for _ in range(count)]
    left = dataclasses.asdict(deal.remaining())
    return ids == expected and all(
        left[snake(key)] == held
        for key, held in case["expect"].get("remaining", {}).items()
    )


def consistency(case: Any) -> bool:
    problems = check_descriptor_consistency(named(case["descriptor"]))
    return len(problems) == len(case["expect"]) and all(
        snake(name) in problem
        for problem, names in zip(problems, case["expect"])
        for name in names
    )


OPERATIONS = {
    "emit": emit,
    "decode": decode,
    "can_express": express,
    "analyze": analyze,
    "size_limits": size_limits,
    "budget": budget,
    "consistency": consistency,
}


@pytest.mark.skipif(not CASES.exists(), reason="the case file is not here")
@pytest.mark.parametrize("case", load())
def test_case(case: Any) -> None:
    """Each case says its rule in ``why``."""
    assert OPERATIONS[case["op"]](case), case["why"]
