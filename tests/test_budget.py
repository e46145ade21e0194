"""What fits into a dialect, why not, and who goes strict."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Dict

import pytest

from aeye.budget import (
    EnumFeature,
    Reason,
    Remaining,
    SchemaBudget,
    SchemaFeatures,
    analyze_schema,
    can_express,
    check_schema_size_limits,
    explain,
    strict_priority,
    strictest_of,
)
from aeye.descriptor import (
    ANTHROPIC_NON_STRICT,
    ANTHROPIC_STRICT,
    GOOGLE_STRICT,
    LENIENT,
    OPENAI_STRICT,
    XAI_STRICT,
    SchemaSizeLimits,
)
from aeye.schema import Schema

Json = Dict[str, Any]
TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
PRICES: Json = {"type": "object", "additionalProperties": NUMBER}


def thing(properties: Json, required: Any = None, **more: Any) -> Json:
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, **more}


def reasons(schema: Any, dialect: Any) -> list[tuple[str, str]]:
    return [(reason.kind, reason.path) for reason in explain(schema, dialect)]


def test_features_of_one_schema() -> None:
    """Everything is counted at every level, a definition once."""
    source = thing(
        {
            "a": {"$ref": "#/$defs/D"},
            "b": {"$ref": "#/$defs/D"},
            "c": {"enum": ["x", "yy", None]},
            "d": {"const": "fixed"},
            "e": {"type": ["string", "integer"]},
            "f": {"enum": ["s", 1]},
            "g": {"type": "array", "prefixItems": [TEXT, NUMBER], "items": False},
            "h": {"type": "string", "default": "q"},
        },
        ["a"],
    )
    source["$defs"] = {"D": thing({"m": PRICES, "up": {"$ref": "#/$defs/D"}}, [])}

    assert analyze_schema(source) == SchemaFeatures(
        has_recursion=True,
        optional_parameter_count=9,
        union_type_count=4,
        record_count=1,
        tuple_count=1,
        enums=(EnumFeature(2, 3), EnumFeature(2, 1)),
        object_property_count=8 + 2 + 2 + 2,
        max_nesting_depth=4,
        string_size_chars=8 + 3 + 8 + 2 + 3 + 5 + 1,
    )


def test_analysis_is_kept_with_the_schema() -> None:
    """The same object for the same Schema."""
    schema = Schema(thing({"a": TEXT}))

    assert analyze_schema(schema) is analyze_schema(schema)


def test_shared_definitions_are_walked_once() -> None:
    """Sixty levels of two references each are sixty definitions, not 2**60."""
    definitions: Json = {
        f"D{n}": thing({key: {"$ref": f"#/$defs/D{n + 1}"} for key in "ab"})
        for n in range(60)
    }
    definitions["D60"] = TEXT
    source = thing({"a": {"$ref": "#/$defs/D0"}}, **{"$defs": definitions})

    found = analyze_schema(source)

    assert found.object_property_count == 121
    assert found.max_nesting_depth == 61
    assert not can_express(source, GOOGLE_STRICT)
    assert can_express(source, ANTHROPIC_STRICT)
    assert ("strict", "$.properties.a") in reasons(source, GOOGLE_STRICT)


def test_every_limit_is_checked() -> None:
    """All that are broken are named, in one order."""
    tiny = replace(
        OPENAI_STRICT, id="tiny", schema_size_limits=SchemaSizeLimits(1, 1, 1, 1, 1, 1)
    )
    source = thing({"aa": {"enum": ["x", "yy"]}, "b": thing({"c": thing({})})})

    problems = check_schema_size_limits(source, tiny)

    assert [problem.split(":")[0] for problem in problems] == [
        "max_object_properties",
        "max_nesting_depth",
        "max_total_string_chars",
        "max_total_enum_values",
        "max_large_enum_string_chars",
    ]
    assert (
        problems[0] == "max_object_properties: 3 object properties, at most 1 allowed"
    )
    assert check_schema_size_limits(source, LENIENT) == []


@pytest.mark.parametrize(
    ("node", "dialect", "expected"),
    [
        ({"allOf": [{"pattern": "^a"}, {"pattern": "b$"}]}, OPENAI_STRICT, False),
        (
            {
                "allOf": [
                    {"type": "object", "patternProperties": {"^a": TEXT}},
                    {"type": "object", "patternProperties": {"^b": TEXT}},
                ]
            },
            ANTHROPIC_STRICT,
            False,
        ),
        ({"allOf": [thing({"a": TEXT}), thing({"b": TEXT})]}, OPENAI_STRICT, True),
        ({"enum": [[1], [2]]}, ANTHROPIC_STRICT, False),
        ({"enum": [[1], [2]]}, LENIENT, True),
        ({"type": ["string", "null"]}, GOOGLE_STRICT, True),
        (thing({"a": NUMBER}, additionalProperties=TEXT), OPENAI_STRICT, True),
        (
            thing({}, additionalProperties={"type": ["string", "number"]}),
            GOOGLE_STRICT,
            False,
        ),
    ],
)
def test_can_express(node: Json, dialect: Any, expected: bool) -> None:
    """Unions, intersections and any value, wherever they stand."""
    assert can_express(thing({"x": node}), dialect) is expected


def test_cycles() -> None:
    """At the root and elsewhere; a tool may have what an output may not."""
    at_root = thing({"next": {"$ref": "#"}}, [])
    inside = thing({"n": {"$ref": "#/$defs/N"}}, **{"$defs": {"N": {}}})
    inside["$defs"]["N"] = thing({"next": {"$ref": "#/$defs/N"}}, [])

    table = {
        d.id: (can_express(at_root, d), can_express(inside, d))
        for d in (LENIENT, OPENAI_STRICT, ANTHROPIC_STRICT, GOOGLE_STRICT, XAI_STRICT)
    }

    assert table == {
        "lenient": (True, True),
        "openai-strict": (True, True),
        "anthropic-strict": (False, False),
        "google-strict": (True, False),
        "xai-strict": (False, False),
    }
    assert ("output", "$.properties.next") in reasons(at_root, XAI_STRICT)
    assert ("strict", "$.properties.next") in reasons(at_root, ANTHROPIC_STRICT)
    assert SchemaBudget(XAI_STRICT).allocate_tool(inside, True) is XAI_STRICT
    assert SchemaBudget(XAI_STRICT).allocate_output(inside, True).id == "xai-non-strict"


def test_never_cannot_be_said() -> None:
    """A schema that nothing fits has no strict spelling."""
    assert not can_express(False, OPENAI_STRICT)
    assert can_express(False, LENIENT)


def test_a_root_that_is_no_object_is_not_strict() -> None:
    """A map at the root would be an array on the wire."""
    assert ("strict", "$") in reasons(PRICES, OPENAI_STRICT)
    assert SchemaBudget(True).allocate_tool(PRICES, True).id == "openai-non-strict"
    assert not can_express(PRICES, ANTHROPIC_STRICT)
    assert SchemaBudget(GOOGLE_STRICT).allocate_tool(PRICES, True) is GOOGLE_STRICT


def test_reasons_have_a_path_and_a_kind() -> None:
    """What keeps a schema from going strict comes first."""
    source = thing(
        {
            "x": {"anyOf": [TEXT, NUMBER]},
            "code": {"type": "string", "pattern": "^(a+)+$", "minLength": 2},
        }
    )

    found = list(explain(source, GOOGLE_STRICT))

    assert found[0] == Reason("$.properties.x", "strict", "google-strict has no anyOf")
    assert str(found[0]) == "strict: google-strict has no anyOf (at $.properties.x)"
    assert [(reason.kind, reason.path) for reason in found[1:]] == [
        ("lost", "$.properties.x"),
        ("lost", "$.properties.code"),
        ("lost", "$.properties.code"),
        ("pattern", "$.properties.code"),
    ]
    assert found[3].message == "google-strict has no word for minLength 2"


def test_nothing_to_explain() -> None:
    """A schema that a dialect says in full."""
    assert reasons(thing({"a": TEXT}), OPENAI_STRICT) == []


def test_limits_are_reasons() -> None:
    """A schema that alone asks for more than a request may."""
    many = thing({f"p{n}": TEXT for n in range(25)}, [])
    unions = thing({f"p{n}": {"type": ["string", "null"]} for n in range(17)})
    big = thing({"e": {"enum": [f"v{n}" for n in range(1001)]}})

    assert reasons(many, ANTHROPIC_STRICT) == [("strict", "$")]
    assert reasons(unions, ANTHROPIC_STRICT) == [("strict", "$")]
    assert ("strict", "$") in reasons(big, OPENAI_STRICT)
    assert not can_express(many, ANTHROPIC_STRICT)
    assert SchemaBudget(True).allocate_tool(big, True).id == "openai-non-strict"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"type": "string"}, []),
        ({"allOf": [{"type": "string"}]}, []),
        ({}, [("ambiguous", "$.allOf.0"), ("ambiguous", "$.allOf.1")]),
        ({"type": "string", "anyOf": [{"minLength": 1}, {"maxLength": 9}]}, []),
    ],
)
def test_a_type_beside_counts(source: Json, expected: Any) -> None:
    """Pieces need not repeat it, and are named as they stand in the source."""
    pieces = [{"pattern": "^a"}, {"pattern": "b$"}, *source.get("allOf", ())]

    assert reasons({**source, "allOf": pieces}, LENIENT) == expected


TUPLE: Json = {"type": "array", "prefixItems": [TEXT, NUMBER], "items": False}


@pytest.mark.parametrize(
    ("node", "dialect", "expected"),
    [
        pytest.param({}, OPENAI_STRICT, True, id="any in pairs"),
        pytest.param({}, XAI_STRICT, False, id="any as it is"),
        pytest.param(
            thing({"a": TEXT}, additionalProperties=NUMBER),
            OPENAI_STRICT,
            True,
            id="a tail that is closed",
        ),
        pytest.param(
            thing({"a": TEXT}, additionalProperties=NUMBER),
            XAI_STRICT,
            False,
            id="a tail that stays",
        ),
        pytest.param(
            thing({"a": TEXT}, additionalProperties=True),
            ANTHROPIC_STRICT,
            True,
            id="an open object that is closed",
        ),
        pytest.param(
            {"type": "array", "prefixItems": [TEXT]}, OPENAI_STRICT, True, id="open"
        ),
        pytest.param(
            {
                "type": "array",
                "prefixItems": [TEXT, {"type": ["string", "null"]}],
                "items": False,
            },
            OPENAI_STRICT,
            True,
            id="null at the end of a tuple",
        ),
        pytest.param(
            {"properties": {"a": TEXT}}, LENIENT, True, id="an object by its keywords"
        ),
        pytest.param(
            {"minLength": 1, "minimum": 1}, LENIENT, False, id="a schema of no type"
        ),
        pytest.param(
            {"anyOf": [PRICES, {"type": "array", "items": NUMBER}]},
            OPENAI_STRICT,
            True,
            id="[] is a map or a list",
        ),
        pytest.param(
            {"anyOf": [PRICES, {"type": "array", "items": NUMBER}]},
            GOOGLE_STRICT,
            False,
            id="not where maps are objects",
        ),
        pytest.param(
            {"anyOf": [PRICES, TEXT, {"type": "integer"}]},
            OPENAI_STRICT,
            False,
            id="types apart",
        ),
        pytest.param(
            {"anyOf": [thing({"a": PRICES}), thing({"b": PRICES})]},
            OPENAI_STRICT,
            False,
            id="keys apart",
        ),
        pytest.param(
            {
                "anyOf": [
                    thing({"k": {"const": 1}, "m": PRICES}),
                    thing({"k": {"const": 2}, "m": TUPLE}),
                ]
            },
            OPENAI_STRICT,
            False,
            id="constants apart",
        ),
        pytest.param(
            {"anyOf": [thing({"m": PRICES}), thing({"m": TUPLE})]},
            OPENAI_STRICT,
            False,
            id="types below apart",
        ),
        pytest.param(
            {
                "anyOf": [
                    thing({"m": {"type": "array", "items": PRICES}}),
                    thing({"m": {"type": "array", "items": TUPLE}}),
                ]
            },
            OPENAI_STRICT,
            False,
            id="items apart: [] is [] either way",
        ),
        pytest.param(
            {
                "anyOf": [
                    thing({"m": {"type": "object", "additionalProperties": PRICES}}),
                    thing({"m": {"type": "object", "additionalProperties": TUPLE}}),
                ]
            },
            OPENAI_STRICT,
            False,
            id="values apart",
        ),
        pytest.param(
            {
                "anyOf": [
                    thing({"a": TEXT, "b": TEXT}, ["a"]),
                    thing({"a": TEXT, "b": TEXT}, ["b"]),
                ]
            },
            OPENAI_STRICT,
            False,
            id="the same keys, null not in both",
        ),
        pytest.param(
            {
                "anyOf": [
                    thing({"a": TEXT}, []),
                    thing({"a": {"type": ["string", "null"]}}),
                ]
            },
            OPENAI_STRICT,
            True,
            id="null is absent in one and null in the other",
        ),
        pytest.param(
            {"anyOf": [thing({"a": PRICES}, []), thing({"b": TEXT}, [])]},
            ANTHROPIC_STRICT,
            True,
            id="{} fits both, and more may",
        ),
        pytest.param(
            {"anyOf": [thing({}, []), thing({"b": TEXT}, [])]},
            XAI_STRICT,
            False,
            id="alike, but nothing is rewritten",
        ),
        pytest.param(
            {"anyOf": [TUPLE, thing({"0": TEXT, "1": NUMBER})]},
            OPENAI_STRICT,
            True,
            id="an object of numbers",
        ),
        pytest.param(
            {"anyOf": [TUPLE, thing({"a": TEXT})]},
            OPENAI_STRICT,
            False,
            id="or of other keys",
        ),
        pytest.param(
            {"anyOf": [{"anyOf": [PRICES, TEXT]}, {"type": "array", "items": TEXT}]},
            OPENAI_STRICT,
            True,
            id="a choice in a choice",
        ),
        pytest.param(
            {"anyOf": [thing({f"k{n}": PRICES}) for n in range(65)]},
            OPENAI_STRICT,
            True,
            id="too many to compare",
        ),
        pytest.param(
            {
                "anyOf": [
                    thing({"a": TEXT, "z": {"enum": [f"v{n}" for n in range(41)]}}, []),
                    thing({"a": NUMBER, "z": {"enum": ["w"]}}, []),
                ]
            },
            replace(OPENAI_STRICT, id="capped", max_enum_values=40),
            False,
            id="both optional and nothing rewritten differently",
        ),
    ],
)
def test_ambiguities(node: Json, dialect: Any, expected: bool) -> None:
    """What cannot be told apart on the wire is said, and only that."""
    found = [reason.kind for reason in explain(thing({"x": node}), dialect)]

    assert ("ambiguous" in found) is expected


def test_recursive_branches_are_compared() -> None:
    """Comparing ends, and what it cannot settle counts as alike."""
    source = thing({"x": {"$ref": "#/$defs/A"}})
    source["$defs"] = {
        "A": {"anyOf": [thing({"m": PRICES, "n": {"$ref": "#/$defs/A"}}), PRICES]},
    }
    twins = thing({"x": {"anyOf": [{"$ref": "#/$defs/L"}, {"$ref": "#/$defs/R"}]}})
    twins["$defs"] = {
        name: thing({"m": PRICES, "n": {"$ref": f"#/$defs/{name}"}}, ["m"])
        for name in "LR"
    }

    assert ("ambiguous", "$.$defs.A") not in reasons(source, OPENAI_STRICT)
    assert ("ambiguous", "$.properties.x") not in reasons(twins, OPENAI_STRICT)


def test_reference_leading_nowhere_does_not_get_here() -> None:
    """Flaws of a schema are reasons too."""
    deep: Json = TEXT
    for _ in range(80):
        deep = {"type": "array", "items": deep}
    loose = thing({"x": {"minLength": 1, "minimum": 1}, "n": False}, ["x"])

    assert any(
        path.count("items") > 50 for _, path in reasons(thing({"d": deep}), True)
    )
    assert ("lost", "$.properties.x") in reasons(loose, LENIENT)
    assert ("lost", "$.properties.n") in reasons(loose, LENIENT)


def test_priorities() -> None:
    """A bool is never a number here."""
    given = [True, False, None, 3, 0, -1, 0.5]

    assert [strict_priority(each) for each in given] == [
        math.inf,
        -math.inf,
        0,
        3,
        0,
        0,
        0.5,
    ]
    with pytest.raises(TypeError, match="strict: a bool, a number or None"):
        strict_priority("yes")  # type: ignore[arg-type]  # what is tested


def test_the_stricter_of_two() -> None:
    """Strict before non-strict, then the smaller sum of limits, then the first."""
    small = replace(OPENAI_STRICT, id="small", max_strict_tools=1)
    all_small = replace(ANTHROPIC_STRICT, id="all-small", max_strict_tools=1)

    assert strictest_of(LENIENT, OPENAI_STRICT) is OPENAI_STRICT
    assert strictest_of(OPENAI_STRICT, LENIENT) is OPENAI_STRICT
    assert strictest_of(LENIENT, ANTHROPIC_NON_STRICT) is LENIENT
    assert strictest_of(OPENAI_STRICT, ANTHROPIC_STRICT) is ANTHROPIC_STRICT
    assert strictest_of(ANTHROPIC_STRICT, all_small) is all_small
    assert strictest_of(OPENAI_STRICT, small) is OPENAI_STRICT


def test_each_counter_is_as_small_as_the_smaller() -> None:
    """Limits of tools and of output bind in different places, and all of them do."""
    tools = replace(OPENAI_STRICT, id="t", max_strict_tools=1)
    output = replace(OPENAI_STRICT, id="o", max_strict_optional_params=5)

    assert SchemaBudget(tools, output).remaining() == Remaining(1, 5, None)
    assert SchemaBudget(LENIENT, LENIENT).remaining() == Remaining(None, None, None)
    assert SchemaBudget(LENIENT, output).remaining() == Remaining(None, 5, None)


def test_slots_run_out() -> None:
    """A number needs a slot, True takes one all the same."""
    budget = SchemaBudget(replace(ANTHROPIC_STRICT, max_strict_tools=1))
    schema = thing({"a": TEXT})

    given = [budget.allocate_tool(schema, strict).id for strict in (5, 5, True)]

    assert given == ["anthropic-strict", "anthropic-non-strict", "anthropic-strict"]
    assert budget.remaining() == Remaining(-1, 24, 16)


def test_an_output_that_is_always_strict_is_counted() -> None:
    """Whatever is asked for, since the vendor counts it too."""
    budget = SchemaBudget(ANTHROPIC_STRICT)

    given = budget.allocate_output(thing({"a": TEXT}, []), False)

    assert given is ANTHROPIC_STRICT
    assert budget.remaining() == Remaining(20, 23, 16)


def test_not_asked_for_is_not_strict() -> None:
    """False, None and numbers up to 0 give the family's non-strict dialect."""
    budget = SchemaBudget(XAI_STRICT)

    given = {
        budget.allocate_output(thing({"a": TEXT}), strict).id
        for strict in (False, None, 0, -1)
    }

    assert given == {"xai-non-strict"}


def test_a_family_without_a_non_strict_dialect_degrades_to_lenient() -> None:
    """There is always something to fall back to."""
    lone = replace(OPENAI_STRICT, id="lone-strict", family="lone")

    assert SchemaBudget(lone).allocate_tool(thing({}), False) is LENIENT


def test_dialects_must_be_said() -> None:
    """Every door takes the same words for a dialect, and needs them."""
    for call in (can_express, check_schema_size_limits):
        with pytest.raises(TypeError, match="descriptor"):
            call(TEXT, None)
    with pytest.raises(TypeError, match="descriptor"):
        list(explain(TEXT, "openai"))  # type: ignore[arg-type]  # what is tested
