"""One schema, nine dialects, and back: the property that the layer stands on."""

from __future__ import annotations

import functools
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from aeye.budget import SchemaBudget, can_express, explain
from aeye.decode import decode_wire, encode_wire, unwrap_root, wrap_root
from aeye.descriptor import (
    ANTHROPIC_NON_STRICT,
    ANTHROPIC_STRICT,
    GOOGLE_NON_STRICT,
    GOOGLE_STRICT,
    LENIENT,
    OPENAI_NON_STRICT,
    OPENAI_STRICT,
    XAI_NON_STRICT,
    XAI_STRICT,
    FormatDescriptor,
)
from aeye.emit import to_json_schema
from aeye.errors import SchemaError
from aeye.schema import Schema

sys.path.insert(0, str(Path(__file__).parent))

from schema_lint import lint
from strategies_schema import (
    Unmade,
    answers,
    are_same,
    instance,
    schemas,
    without_undeclared,
)

SHARED = Path(__file__).resolve().parents[2] / "shared"
CORPUS = SHARED / "cases" / "corpus.jsonl"

DIALECTS = (
    LENIENT,
    OPENAI_STRICT,
    OPENAI_NON_STRICT,
    ANTHROPIC_STRICT,
    ANTHROPIC_NON_STRICT,
    GOOGLE_STRICT,
    GOOGLE_NON_STRICT,
    XAI_STRICT,
    XAI_NON_STRICT,
)
ONDEMAND = os.environ.get("AEYE_ONDEMAND") == "1"
EXAMPLES = int(os.environ.get("AEYE_EXAMPLES", "3000" if ONDEMAND else "60"))


def examples(share: int = 1) -> settings:
    """The same examples in every run of the gate; new ones where a count is given."""
    return settings(
        max_examples=max(EXAMPLES // share, 1),
        derandomize="AEYE_EXAMPLES" not in os.environ,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def only(kind: type, check: Any) -> Any:
    def guarded(validator: Any, rule: Any, value: Any, schema: Any) -> Any:
        return check(validator, rule, value, schema) if isinstance(value, kind) else ()

    return guarded


BASE = jsonschema.Draft202012Validator
# As it is, but for two keywords that jsonschema 4.0 asks of any value.
Validator = jsonschema.validators.extend(
    BASE,
    {
        name: only(kind, BASE.VALIDATORS[name])
        for name, kind in (("unevaluatedItems", list), ("unevaluatedProperties", dict))
    },
)


def validator(schema: dict[str, Any]) -> Any:
    return Validator(schema)


@functools.lru_cache(maxsize=200)
def check_schema(text: str) -> None:
    """Several dialects often spell one schema alike; checking is what takes time."""
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


def fits(schema: Schema, value: Any) -> bool:
    """Say whether *value* is valid and has no undeclared keys."""
    closed = without_undeclared(schema.json, schema.json)
    return validator(schema.json).is_valid(value) and validator(closed).is_valid(value)


def check_round_trip(schema: Schema, value: Any, dialect: FormatDescriptor) -> bool:
    """Send *value* there and back; False where the dialect is excused."""
    if not can_express(schema, dialect):
        return False
    if any(reason.kind == "ambiguous" for reason in explain(schema, dialect)):
        return False
    emitted = to_json_schema(schema, dialect)

    wire = encode_wire(schema, value, dialect)
    decoded = decode_wire(schema, wire, dialect)

    errors = [error.message for error in validator(emitted).iter_errors(wire)]
    shown = json.dumps(
        [dialect.id, schema.json, value, wire, emitted, decoded], indent=1
    )
    assert not errors, f"{errors}\n{shown}"
    assert are_same(schema.json, value, decoded, schema.json), shown
    return True


def check_emitted(schema: Schema, dialect: FormatDescriptor) -> None:
    """The emitted schema is one, and its vendor takes it, or it is not sent strict."""
    root = wrap_root(schema)
    emitted = to_json_schema(root, dialect)

    check_schema(json.dumps(emitted))
    given = SchemaBudget(dialect).allocate_tool(root, True)
    if dialect.structured_output_always_strict and not can_express(root, dialect):
        assert given != dialect
    if given == dialect:
        problems = lint(emitted, dialect.family, dialect.strict)
        assert not problems, json.dumps([dialect.id, problems, schema.json, emitted])
        assert not dialect.strict or emitted["type"] == "object"


def a_value(source: dict[str, Any], seed: int) -> tuple[Schema, Any]:
    """Return the schema and a value of it; the example counts only where it has one."""
    try:
        schema = Schema(source)
        value = instance(schema.json, random.Random(seed), schema.json)
    except (SchemaError, Unmade):
        reject()
    assume(fits(schema, value))
    return schema, value


@examples()
@given(schemas(), st.integers(0, 2**32))
def test_what_is_encoded_is_decoded(source: dict[str, Any], seed: int) -> None:
    """A value survives every dialect that can express its schema unambiguously."""
    schema, value = a_value(source, seed)

    done = [check_round_trip(schema, value, dialect) for dialect in DIALECTS]

    assert len(done) == 9


@examples(share=4)
@given(answers(), st.integers(0, 2**32))
def test_answers_come_back(source: dict[str, Any], seed: int) -> None:
    """Whatever the root is: it goes out wrapped, and the reply is unwrapped."""
    schema, value = a_value(source, seed)
    root = wrap_root(schema)
    answer = value if root is schema else {"value": value}

    for dialect in DIALECTS:
        if any(reason.kind == "ambiguous" for reason in explain(root, dialect)):
            continue
        if can_express(root, dialect):
            reply = unwrap_root(schema, encode_wire(root, answer, dialect))
            decoded = decode_wire(schema, reply, dialect)
            shown = json.dumps([dialect.id, schema.json, value, reply, decoded])
            assert are_same(schema.json, value, decoded, schema.json), shown


@examples(share=8)
@given(schemas())
def test_emitted_schemas_are_what_vendors_take(source: dict[str, Any]) -> None:
    """Every emitted schema is valid 2020-12 and keeps its vendor's rules."""
    try:
        schema = Schema(source)
    except SchemaError:
        assume(False)
        return
    before = json.dumps(schema.json)

    for dialect in DIALECTS:
        check_emitted(schema, dialect)

    assert json.dumps(schema.json) == before


@examples(share=4)
@given(
    schemas(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda below: (
            st.lists(below, max_size=3)
            | st.dictionaries(
                st.sampled_from(("a", "b", "key", "value", "0", "1")), below
            )
        ),
        max_leaves=12,
    ),
)
def test_decoding_never_raises(source: dict[str, Any], value: Any) -> None:
    """Whatever a model answers, decoding gives something, and changes nothing."""
    try:
        schema = Schema(source)
    except SchemaError:
        assume(False)
        return
    before = json.dumps(value)

    for dialect in DIALECTS:
        decode_wire(schema, value, dialect)
        encode_wire(schema, value, dialect)

    assert json.dumps(value) == before


def corpus() -> list[Any]:
    lines = CORPUS.read_text(encoding="utf-8").splitlines()
    assert len(lines) > 100, "the corpus is nearly empty"
    return [json.loads(line)["schema"] for line in lines[:: 1 if ONDEMAND else 16]]


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not here")
def test_schemas_found_in_the_wild() -> None:
    """Emission, its vendors' rules and the round trip hold for real schemas."""
    made = tried = 0

    for source in corpus():
        try:
            schema = Schema(source)
        except SchemaError:
            continue
        for dialect in DIALECTS:
            check_emitted(schema, dialect)
        for seed in range(8 if ONDEMAND else 2):
            try:
                value = instance(schema.json, random.Random(seed), schema.json)
            except Unmade:
                continue
            if fits(schema, value):
                made += 1
                tried += sum(check_round_trip(schema, value, d) for d in DIALECTS)

    assert made > 20
    assert tried > 100
