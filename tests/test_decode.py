"""Values read back from a dialect, and spelled in it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Dict

import pytest

from aeye.decode import decode_wire, encode_wire, strictify, unwrap_root, wrap_root
from aeye.descriptor import (
    ANTHROPIC_STRICT,
    GOOGLE_STRICT,
    LENIENT,
    OPENAI_NON_STRICT,
    OPENAI_STRICT,
    XAI_STRICT,
)
from aeye.emit import to_json_schema
from aeye.schema import Schema

Json = Dict[str, Any]
TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
PRICES: Json = {"type": "object", "additionalProperties": NUMBER}
PAIR: Json = {
    "type": "array",
    "prefixItems": [TEXT, NUMBER],
    "minItems": 2,
    "maxItems": 2,
}


def thing(properties: Json, required: Any = None, **more: Any) -> Json:
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, **more}


def trip(node: Json, value: Any, wire: Any, dialect: Any = OPENAI_STRICT) -> None:
    """*value* goes out as *wire* and comes back."""
    assert encode_wire(node, value, dialect) == wire
    assert decode_wire(node, wire, dialect) == value


def test_a_map_is_a_list_of_pairs() -> None:
    """At every level, under keys and in lists."""
    trip(
        thing({"m": {"type": "object", "additionalProperties": PRICES}}),
        {"m": {"a": {"x": 1}, "b": {}}},
        {
            "m": [
                {"key": "a", "value": [{"key": "x", "value": 1}]},
                {"key": "b", "value": []},
            ]
        },
    )


def test_pairs_that_are_none_are_skipped() -> None:
    """The last of a key wins; a list without any pair is left for validation."""
    wire = [
        {"key": "a", "value": 1},
        {"key": "a", "value": 2},
        {"key": "b"},
        {"key": 5, "value": 5},
        "c",
    ]

    assert decode_wire(PRICES, wire, OPENAI_STRICT) == {"a": 2}
    assert decode_wire(PRICES, ["a", "b"], OPENAI_STRICT) == ["a", "b"]
    assert decode_wire(PRICES, "text", OPENAI_STRICT) == "text"


def test_values_in_the_sources_shape_are_taken_too() -> None:
    """Models that ignore the dialect are understood all the same."""
    schema = thing({"m": PRICES, "t": PAIR, "o": TEXT}, ["m", "t"])
    value = {"m": {"a": 1}, "t": ["x", 1]}

    assert decode_wire(schema, value, OPENAI_STRICT) == value


def test_a_tuple_is_an_object_of_numbers() -> None:
    """Items that may be missing are null; a gap is null."""
    node = {"type": "array", "prefixItems": [TEXT, PRICES], "items": False}

    trip(node, ["a", {"k": 1}], {"0": "a", "1": [{"key": "k", "value": 1}]})
    trip(node, ["a"], {"0": "a", "1": None})
    assert decode_wire(node, {"1": []}, OPENAI_STRICT) == [None, {}]


@pytest.mark.parametrize("wire", ({"999999999": 0}, {"2": 0}, {"01": 0}, {}, {"a": 1}))
def test_other_keys_are_no_tuple(wire: Json) -> None:
    """Only declared places count, so no answer makes a huge list."""
    assert decode_wire(PAIR, wire, OPENAI_STRICT) == wire


def test_a_tuple_with_more_items_is_a_list() -> None:
    """Each item is read by its place, those after the last by the rest."""
    node = {"type": "array", "prefixItems": [PRICES], "items": PAIR}

    trip(node, [{"a": 1}, ["x", 2]], [[{"key": "a", "value": 1}], {"0": "x", "1": 2}])
    trip(node, [{"a": 1}], [[{"key": "a", "value": 1}]], ANTHROPIC_STRICT)
    assert decode_wire(node, 5, OPENAI_STRICT) == 5


def test_more_items_than_declared_pass() -> None:
    """Decoding does not judge."""
    node = {**PAIR, "prefixItems": [PRICES, PRICES]}

    assert decode_wire(node, [[], [], 3], ANTHROPIC_STRICT) == [{}, {}, 3]
    assert encode_wire(node, [{}, {}, 3], ANTHROPIC_STRICT) == [[], [], 3]


def test_null_means_absent_default_or_null() -> None:
    """What null means is decided by the source."""
    schema = thing(
        {
            "absent": TEXT,
            "null": {"type": ["string", "null"]},
            "any": {},
            "role": {"type": "string", "default": "user"},
            "list": {"type": "array", "items": TEXT, "default": ["a"]},
            "both": {"type": ["string", "null"], "default": "x"},
            "odd": {"type": "string", "default": None},
        },
        [],
    )
    wire = dict.fromkeys(schema["properties"])

    decoded = decode_wire(schema, wire, OPENAI_STRICT)

    assert decoded == {
        "null": None,
        "any": None,
        "role": "user",
        "list": ["a"],
        "both": None,
    }
    decoded["list"].append("b")
    assert decode_wire(schema, wire, OPENAI_STRICT)["list"] == ["a"]


def test_null_for_a_default_in_any_strict_dialect() -> None:
    """Null cannot be meant where it is not allowed; non-strict replies are as is."""
    schema = thing({"role": {"type": "string", "default": "user"}, "o": TEXT}, [])

    for dialect in (ANTHROPIC_STRICT, GOOGLE_STRICT, XAI_STRICT):
        decoded = decode_wire(schema, {"role": None, "o": None}, dialect)
        assert decoded == {"role": "user", "o": None}
    for dialect in (LENIENT, OPENAI_NON_STRICT):
        assert decode_wire(schema, {"role": None}, dialect) == {"role": None}


def test_absent_properties_are_filled_in_on_the_wire() -> None:
    """All are required there: with a default, or with null."""
    schema = thing({"a": TEXT, "b": {"type": "integer", "default": 3}}, [])

    assert encode_wire(schema, {}, OPENAI_STRICT) == {"a": None, "b": 3}
    assert encode_wire(schema, {"a": "x"}, ANTHROPIC_STRICT) == {"a": "x"}


def test_a_default_without_end_is_none() -> None:
    """An object that holds itself by default is null on the wire instead."""
    node = thing({"name": {"type": "string", "default": ""}}, [])
    node["properties"]["next"] = {"$ref": "#", "default": {}}

    assert to_json_schema(node, OPENAI_STRICT)["properties"]["next"] == {
        "anyOf": [{"$ref": "#"}, {"type": "null"}]
    }
    trip(
        node,
        {"name": "a", "next": {"name": "b"}},
        {"name": "a", "next": {"name": "b", "next": None}},
    )


def test_identity_is_not_even_copied() -> None:
    """A schema that is spelled as it is costs nothing to read."""
    schema = Schema(thing({"a": {"type": "array", "items": TEXT}}))
    value = {"a": ["x"]}

    assert decode_wire(schema, value, OPENAI_STRICT) is value
    assert decode_wire(schema, value, LENIENT) is value


def test_nothing_is_modified() -> None:
    """The value stays what it was, and encoding shares nothing with it."""
    schema = thing({"m": PRICES, "x": {"type": "array", "items": TEXT}})
    wire = {"m": [{"key": "a", "value": 1}], "x": ["y"]}
    before = copy.deepcopy(wire)

    decoded = decode_wire(schema, wire, OPENAI_STRICT)
    encoded = encode_wire(schema, decoded, OPENAI_STRICT)

    assert wire == before
    assert encoded == wire
    assert encoded["x"] is not decoded["x"]


def test_undeclared_keys_pass() -> None:
    """As they are, or as the tail says where the source has one."""
    plain = thing({"m": PRICES})
    tailed = thing({"a": TEXT}, additionalProperties=PAIR)
    open_pairs = replace(ANTHROPIC_STRICT, id="p", object_closed_by_default=False)

    assert decode_wire(plain, {"m": [], "z": [1]}, OPENAI_STRICT) == {"m": {}, "z": [1]}
    assert encode_wire(plain, {"m": {}, "z": [1]}, OPENAI_STRICT) == {"m": [], "z": [1]}
    dialect = replace(open_pairs, tuple_encoding="object-numeric-keys")
    trip(
        tailed,
        {"a": "x", "more": ["y", 1]},
        {"a": "x", "more": {"0": "y", "1": 1}},
        dialect,
    )


CAT = thing({"kind": {"const": "cat"}, "m": PRICES})
DOG = thing({"kind": {"enum": ["dog", "wolf"]}, "m": PAIR})


@pytest.mark.parametrize("word", ("anyOf", "oneOf"))
def test_constants_choose_the_branch(word: str) -> None:
    """A constant decides, even where the rest is wrong; then errors are about it."""
    node = {word: [CAT, DOG]}

    trip(
        node, {"kind": "wolf", "m": ["a", 1]}, {"kind": "wolf", "m": {"0": "a", "1": 1}}
    )
    assert decode_wire(
        node, {"kind": "cat", "m": [{"key": "a", "value": "no"}]}, OPENAI_STRICT
    ) == {"kind": "cat", "m": {"a": "no"}}
    for other in ({"kind": "cow", "m": []}, {"kind": ["cat"]}, "cat"):
        assert decode_wire(node, other, OPENAI_STRICT) == other


def test_shapes_choose_the_branch() -> None:
    """Without constants: keys, types, bounds and patterns."""
    node = {
        "anyOf": [
            thing({"a": TEXT, "m": PRICES}),
            thing({"b": TEXT, "m": PRICES}),
            {"type": "array", "items": PAIR, "minItems": 1},
            {**PRICES, "propertyNames": {"pattern": "^n"}},
            {"type": "integer"},
        ]
    }

    trip(node, {"b": "x", "m": {"k": 1}}, {"b": "x", "m": [{"key": "k", "value": 1}]})
    trip(node, [["a", 1]], [{"0": "a", "1": 1}])
    trip(node, {"nk": 2}, [{"key": "nk", "value": 2}])
    trip(node, 5, 5)
    natural = {"a": "x", "m": {"k": 1}}
    assert decode_wire(node, natural, OPENAI_STRICT) == natural
    assert decode_wire(node, {"z": []}, OPENAI_STRICT) == {"z": []}


def test_what_the_model_was_told_to_write_comes_first() -> None:
    """An object of numbers is the tuple it stands for, not the map it looks like."""
    node = {"anyOf": [PRICES, {**PAIR, "prefixItems": [NUMBER, NUMBER]}]}

    trip(node, [1, 2], {"0": 1, "1": 2})
    trip(node, {"0": 1, "1": 2}, [{"key": "0", "value": 1}, {"key": "1", "value": 2}])


@pytest.mark.parametrize(
    ("first", "value", "fits"),
    [
        ({"type": "integer"}, 2.0, True),
        ({"type": "integer"}, True, False),
        ({"type": "integer"}, 2.5, False),
        ({"type": "number", "minimum": 3}, 2, False),
        ({"type": "number", "exclusiveMinimum": 2}, 2, False),
        ({"type": "number", "exclusiveMaximum": 2}, 2, False),
        ({"type": "integer", "multipleOf": 2}, 3, False),
        ({"type": "number", "multipleOf": 0.5}, 1.5, True),
        ({"type": "number", "multipleOf": 0.5}, 1e308, True),
        ({"type": "number", "multipleOf": 1e-300}, 1e300, True),
        ({"type": "number", "multipleOf": 3}, 2.5, False),
        ({"type": "string", "minLength": 3}, "ab", False),
        ({"type": "string", "maxLength": 1}, "ab", False),
        ({"type": "string", "pattern": "^b"}, "ab", False),
        ({"type": "string", "pattern": "(a+)+$"}, "b", True),
        ({"type": "string", "pattern": "^b"}, "a" * 3000, True),
        ({"enum": [1, "a"]}, True, False),
        ({"enum": [True]}, True, True),
        ({"enum": [1]}, 1.0, True),
        ({"type": "null"}, None, True),
        ({"type": "null"}, "a", False),
        ({"type": "array", "items": TEXT, "maxItems": 1}, ["a", "b"], False),
        ({"type": "array", "items": TEXT}, ["a", 1], False),
        ({"type": "boolean"}, True, True),
        ({"type": "object", "properties": {}, "additionalProperties": False}, {}, True),
        (thing({"q": TEXT}, additionalProperties=NUMBER), {"q": "", "r": "x"}, False),
        ({"type": "array", "prefixItems": [TEXT], "maxItems": 1}, ["a", "b"], False),
        ({"type": "array", "prefixItems": [TEXT]}, [1], False),
        (
            {"allOf": [{"pattern": "^a"}, {"pattern": "z$"}], "type": "string"},
            "b",
            False,
        ),
        (
            {"allOf": [{"pattern": "^a"}, {"pattern": "z$"}], "type": "string"},
            "az",
            True,
        ),
    ],
)
def test_bounds_choose_the_branch(first: Json, value: Any, fits: bool) -> None:
    """The first branch is taken where its bounds hold, else the second."""
    node = {
        "anyOf": [
            thing({"v": first, "m": PRICES}),
            thing({"v": {}, "m": PAIR}),
        ]
    }
    dialect = replace(OPENAI_STRICT, id="plain", any_encoding="flat", allow_all_of=True)
    m: Any = {"k": 1} if fits else ["k", 1]

    wire = encode_wire(node, {"v": value, "m": m}, dialect)

    assert decode_wire(node, wire, dialect) == {"v": value, "m": m}
    assert isinstance(wire["m"], list if fits else dict)


CAPPED = replace(OPENAI_STRICT, id="capped", max_enum_values=1)
FLAT = replace(OPENAI_STRICT, id="flat", any_encoding="flat")


@pytest.mark.parametrize(
    ("first", "value", "wire", "dialect"),
    [
        pytest.param(
            thing({"a": TEXT, "b": TEXT}, ["a"]),
            {"a": "x"},
            {"a": "x", "b": None},
            OPENAI_STRICT,
            id="null for what is absent",
        ),
        pytest.param(
            thing({"a": {"type": "array", "prefixItems": [TEXT], "items": False}}),
            {"a": []},
            {"a": {"0": None}},
            OPENAI_STRICT,
            id="null for an item that is missing",
        ),
        pytest.param(
            thing({"e": {"enum": ["a", "b"]}, "m": PRICES}),
            {"e": "b", "m": {}},
            {"e": "b", "m": []},
            CAPPED,
            id="an enum over the cap",
        ),
        pytest.param(
            thing({"e": {"enum": ["a", 1]}, "m": PRICES}),
            {"e": 1, "m": {}},
            {"e": 1, "m": []},
            CAPPED,
            id="of several types",
        ),
        pytest.param(
            thing({"e": {"enum": [{"k": 1}, [2]]}, "m": PRICES}),
            {"e": [2], "m": {}},
            {"e": [2], "m": []},
            FLAT,
            id="an enum of something else",
        ),
        pytest.param(
            {"type": "array", "prefixItems": [PRICES], "items": TEXT, "minItems": 1},
            [{"a": 1}, "x"],
            [[{"key": "a", "value": 1}], "x"],
            OPENAI_STRICT,
            id="a tuple without an end",
        ),
        pytest.param(
            {"type": "array", "items": PRICES, "minItems": 1},
            [{"a": 1}],
            [[{"key": "a", "value": 1}]],
            OPENAI_STRICT,
            id="a list",
        ),
    ],
)
def test_the_wire_chooses_the_branch(
    first: Json, value: Any, wire: Any, dialect: Any
) -> None:
    """Whatever stands before or after it in the choice."""
    others = [
        {**PRICES, "propertyNames": {"pattern": "^never$"}, "minProperties": 1},
        {"type": "array", "items": thing({"q": TEXT, "r": PRICES}), "minItems": 1},
        {
            "type": "array",
            "prefixItems": [NUMBER, PRICES],
            "items": False,
            "minItems": 2,
        },
        thing({"q": TEXT, "m": PRICES}),
    ]

    trip({"anyOf": [first, *others]}, value, wire, dialect)
    trip({"anyOf": [*others, first]}, value, wire, dialect)


@pytest.mark.parametrize(
    "wire",
    [
        [{"key": "k", "value": 1}],
        [{"key": "never", "value": "x"}],
        {"0": 1, "2": []},
        {"0": "x", "1": []},
        {"q": 1, "m": []},
        {"q": "x", "m": [], "z": 1},
        [1],
        [],
        "text",
    ],
)
def test_what_fits_no_branch_is_left_alone(wire: Any) -> None:
    """There is nothing to read it as."""
    node = {
        "anyOf": [
            {**PRICES, "propertyNames": {"pattern": "^never$"}},
            {"type": "array", "prefixItems": [NUMBER, PRICES], "items": False,
             "minItems": 2},
            thing({"q": TEXT, "m": PRICES}),
        ]
    }  # fmt: skip
    if wire == []:
        assert decode_wire(node, wire, OPENAI_STRICT) == {}
    else:
        assert decode_wire(node, wire, OPENAI_STRICT) == wire


def test_any_value_in_pairs() -> None:
    """Objects inside of any value are pairs for OpenAI, at every level."""
    node = thing({"data": {}})
    value = {"data": {"a": [1, {"b": None}], "c": {"d": {}}}}

    wire = encode_wire(node, value, OPENAI_STRICT)

    assert wire["data"][0] == {"key": "a", "value": [1, [{"key": "b", "value": None}]]}
    decoded = decode_wire(node, wire, OPENAI_STRICT)
    assert decoded["data"]["a"] == [1, {"b": None}]
    natural = {"data": {"a": {"b": [{"key": "k", "value": 1, "x": 2}]}}}
    assert decode_wire(node, natural, OPENAI_STRICT) == natural
    assert encode_wire(node, value, XAI_STRICT) == value


def test_values_of_enums_that_are_objects_are_any() -> None:
    """They are spelled like any value, and come back."""
    node = thing({"e": {"enum": [{"a": 1}, [2]]}})

    trip(node, {"e": {"a": 1}}, {"e": [{"key": "a", "value": 1}]})
    trip(node, {"e": {"a": 1}}, {"e": {"a": 1}}, LENIENT)


def test_recursion_follows_the_value() -> None:
    """At every level, in both directions; cut short where the dialect cuts it."""
    node = {
        "$ref": "#/$defs/N",
        "$defs": {"N": thing({"m": PRICES, "next": {"$ref": "#/$defs/N"}}, ["m"])},
    }
    cut = replace(ANTHROPIC_STRICT, id="cut", any_encoding="flat")
    value = {"m": {"a": 1}, "next": {"m": {}}}

    trip(
        node,
        value,
        {"m": [{"key": "a", "value": 1}], "next": {"m": [], "next": None}},
    )
    trip(node, value, {"m": [{"key": "a", "value": 1}], "next": {"m": {}}}, cut)


def test_members_of_an_intersection_are_read_in_turn() -> None:
    """Pieces that could not be put together each do their part."""
    a = {"type": "object", "patternProperties": {"^a": PAIR}}
    b = {"type": "object", "patternProperties": {"^b": NUMBER}}
    dialect = replace(LENIENT, id="num", tuple_encoding="object-numeric-keys")

    trip(
        {"allOf": [b, a]},
        {"a1": ["x", 1]},
        {"a1": {"0": "x", "1": 1}},
        dialect,
    )


def nested(depth: int, leaf: Any = 1) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


@pytest.mark.parametrize("dialect", (OPENAI_STRICT, ANTHROPIC_STRICT, LENIENT))
def test_hostile_depth_comes_back(dialect: Any) -> None:
    """A value nested 10,000 deep costs no recursion error."""
    tree = {
        "$defs": {
            "T": {
                "anyOf": [
                    PRICES,
                    {"type": "array", "items": {"$ref": "#/$defs/T"}},
                    {"type": "array", "prefixItems": [{"$ref": "#/$defs/T"}]},
                ]
            },
            "O": thing({"o": {"$ref": "#/$defs/O"}}, []),
            "R": {"type": "object", "additionalProperties": {"$ref": "#/$defs/R"}},
        },
        **thing({"t": {"$ref": "#/$defs/T"}, "any": {}, "o": {}, "r": {}}, []),
    }
    tree["properties"]["o"] = {"$ref": "#/$defs/O"}
    tree["properties"]["r"] = {"$ref": "#/$defs/R"}
    objects: Any = {}
    records: Any = []
    for _ in range(10_000):
        objects = {"o": objects}
        records = [{"key": "k", "value": records}]
    value = {"t": nested(10_000), "any": nested(10_000), "o": objects, "r": records}

    decoded = decode_wire(tree, value, dialect)

    assert decoded.keys() == value.keys()


def test_many_alike_branches_cost_bounded_time() -> None:
    """Nested choices are looked at once per place, not once per way there."""
    branch = {"$ref": "#/$defs/T"}
    schema = Schema(
        {
            "type": "object",
            "properties": {"t": branch},
            "$defs": {
                "T": {
                    "anyOf": [
                        thing({"next": branch, "m": PRICES, "end": {"enum": [n]}})
                        for n in range(6)
                    ]
                }
            },
        }
    )
    value: Any = {"next": None, "m": [], "end": 99}
    for _ in range(60):
        value = {"next": value, "m": [], "end": 5}

    assert decode_wire(schema, {"t": value}, OPENAI_STRICT) == {"t": value}


def test_a_bound_schema() -> None:
    """``strictify`` binds a schema to a dialect, once."""
    schema = Schema(thing({"m": PRICES, "n": {"type": "integer", "minimum": 3}}))
    bound = strictify(schema, True)
    wire = {"m": [{"key": "a", "value": 1}], "n": 1}

    assert bound is strictify(schema, OPENAI_STRICT)
    assert bound.json_schema == to_json_schema(schema, OPENAI_STRICT)
    assert bound.decode(wire) == {"m": {"a": 1}, "n": 1}
    assert bound.encode({"m": {"a": 1}, "n": 1}) == wire
    assert len(list(bound.validate(wire))) == 1
    assert list(bound.validate({"m": {"a": 1}, "n": 3})) == []


def test_an_object_root_is_not_wrapped() -> None:
    """The same Schema, and the same value."""
    schema = Schema(thing({"value": TEXT}))

    assert wrap_root(schema) is schema
    assert unwrap_root(schema, {"value": "x"}) == {"value": "x"}


def test_another_root_is_wrapped() -> None:
    """Definitions are lifted; a bare value is taken as well."""
    schema = Schema(
        {
            "type": "array",
            "items": {"$ref": "#/$defs/A"},
            "$defs": {"A": thing({"a": TEXT})},
        }
    )

    wrapped = wrap_root(schema)

    assert wrapped.json == {
        **thing({"value": {"type": "array", "items": {"$ref": "#/$defs/A"}}}),
        "additionalProperties": False,
        "$defs": {"A": thing({"a": TEXT})},
    }
    assert wrap_root(schema) is wrapped
    assert wrap_root(wrapped) is wrapped
    assert unwrap_root(schema, {"value": [1]}) == [1]
    assert unwrap_root(schema, [1]) == [1]
    assert unwrap_root(schema, {"value": [1], "more": 2}) == {"value": [1], "more": 2}


@pytest.mark.parametrize(
    "source",
    [
        PRICES,
        {"type": "object"},
        {"type": "object", "patternProperties": {"^a": TEXT}},
        {"type": "object", "enum": [{"a": 1}, {"a": 2}]},
    ],
)
def test_a_map_is_wrapped(source: Json) -> None:
    """In all dialects alike, since some of them spell a map as a list."""
    schema = Schema(source)

    wrapped = wrap_root(schema)

    assert wrapped.json == {
        **thing({"value": source}),
        "additionalProperties": False,
    }
    for dialect in (LENIENT, OPENAI_STRICT, ANTHROPIC_STRICT, GOOGLE_STRICT):
        assert to_json_schema(wrapped, dialect)["type"] == "object"


def test_a_map_may_have_a_key_called_value() -> None:
    """A wrapped map is told from a bare one by what is in it."""
    numbers, maps = Schema(PRICES), Schema({"type": "object"})
    pairs = [{"key": "a", "value": 1}]

    assert unwrap_root(numbers, {"value": {"a": 1}}) == {"a": 1}
    assert unwrap_root(numbers, {"value": pairs}) == pairs
    assert unwrap_root(numbers, {"value": 3}) == {"value": 3}
    assert unwrap_root(numbers, {"a": 1, "value": {}}) == {"a": 1, "value": {}}
    assert unwrap_root(maps, {"value": None}) == {"value": None}


def test_a_root_that_refers_to_itself_becomes_a_definition() -> None:
    """References to the root keep meaning what was the root."""
    source = {
        "anyOf": [{"type": "number"}, {"type": "array", "items": {"$ref": "#"}}],
        "$defs": {},
    }
    schema = Schema(source)

    wrapped = wrap_root(schema).json

    root = {"$ref": "#/$defs/Root"}
    assert wrapped["properties"]["value"] == root
    assert wrapped["$defs"] == {
        "Root": {"anyOf": [{"type": "number"}, {"type": "array", "items": root}]}
    }


def test_the_wrapper_takes_a_free_name() -> None:
    """A definition that is called ``Root`` stays another."""
    schema = Schema(
        {
            "type": "array",
            "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/Root"}]},
            "$defs": {"Root": TEXT},
        }
    )

    wrapped = wrap_root(schema)

    assert len(wrapped.json["$defs"]) == 2
    assert list(wrapped.find({"value": ["a", [["b"]]]})) == []
    assert list(wrapped.find({"value": "a"})) != []


@dataclass
class Point:
    x: float
    y: float = 0.0


def test_the_case_of_constants_is_mended() -> None:
    """Anthropic does not promise it; where two differ in case only, nothing is."""
    node = thing(
        {
            "color": {"enum": ["Red", "green"]},
            "twin": {"enum": ["a", "A"]},
            "pet": {"anyOf": [thing({"kind": {"const": "Cat"}}), DOG]},
            "n": {"enum": [1, 2]},
        },
    )
    wire = {
        "color": "RED",
        "twin": "Á",
        "pet": {"kind": "cat"},
        "n": 1,
    }

    decoded = decode_wire(node, wire, ANTHROPIC_STRICT)

    assert decoded == {**wire, "color": "Red", "pet": {"kind": "Cat"}}
    for same in ({"color": "green"}, {"color": 5}, {"pet": {"kind": 1}}):
        assert decode_wire(node, same, ANTHROPIC_STRICT) == same
    assert decode_wire(node, {"color": "RED"}, XAI_STRICT) == {"color": "RED"}


def test_any_source_of_a_schema_is_taken() -> None:
    """Types, dicts and Schemas alike."""
    assert decode_wire(Point, {"x": 1.0, "y": None}, True) == {"x": 1.0, "y": 0.0}
    assert encode_wire(Point, {"x": 1.0}, {"strict": True}) == {"x": 1.0, "y": 0.0}
