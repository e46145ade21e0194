"""The nine dialects and their registry."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from typing import Any

import pytest

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
    SchemaSizeLimits,
    check_descriptor_consistency,
    get_descriptor,
    get_descriptor_by_id,
    has_descriptor_family,
    json_fallback_instruction,
    register_descriptor,
    resolve_descriptor,
)

BUILT_IN = (
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


def custom(id: str, **changes: Any) -> FormatDescriptor:
    return replace(LENIENT, id=id, **{"family": id, **changes})


@pytest.mark.parametrize("descriptor", BUILT_IN, ids=lambda d: d.id)
def test_built_ins_are_consistent_and_registered(descriptor: FormatDescriptor) -> None:
    """Every built-in is found by its id and by family and strictness."""
    assert check_descriptor_consistency(descriptor) == []
    assert get_descriptor_by_id(descriptor.id) is descriptor
    assert get_descriptor(descriptor.family, descriptor.strict) is descriptor


@pytest.mark.parametrize(
    "descriptor", (OPENAI_NON_STRICT, ANTHROPIC_NON_STRICT, XAI_NON_STRICT)
)
def test_non_strict_variants_are_lenient(descriptor: FormatDescriptor) -> None:
    """Non-strict variants differ from LENIENT in their names only."""
    assert replace(descriptor, id="lenient", family="lenient") == LENIENT


def test_google_non_strict_differs_where_google_does() -> None:
    """Google's differs in the spelling of any, the cap, the text and propertyNames."""
    assert (
        replace(
            LENIENT,
            id="google-non-strict",
            family="google",
            any_encoding="unconstrained",
            max_enum_values=40,
            json_fallback_instruction=GOOGLE_STRICT.json_fallback_instruction,
            omitted_keywords=frozenset({"propertyNames"}),
        )
        == GOOGLE_NON_STRICT
    )


def test_unknown_names_mean_lenient() -> None:
    """An unknown id, family or variant is LENIENT; None is no family."""
    register_descriptor(custom("only-strict", strict=True))

    assert get_descriptor_by_id("nobody") is LENIENT
    assert get_descriptor_by_id(None) is LENIENT
    assert get_descriptor("nobody", True) is LENIENT
    assert get_descriptor("only-strict", False) is LENIENT
    assert has_descriptor_family("lenient")
    assert has_descriptor_family("only-strict")
    assert not has_descriptor_family("nobody")
    assert not has_descriptor_family(None)


def test_a_later_registration_replaces() -> None:
    """Of two with one id, or in one place, the later counts, under its own family."""
    register_descriptor(custom("first", family="moving"))
    register_descriptor(custom("second", family="moving"))
    assert get_descriptor("moving", False).id == "second"

    moved = custom("second", family="elsewhere")
    register_descriptor(moved)

    assert get_descriptor("moving", False).id == "first"
    assert get_descriptor("elsewhere", False) is moved


def test_the_place_of_lenient_is_not_taken() -> None:
    """Something else under the family ``lenient`` warns and changes nothing."""
    with pytest.warns(UserWarning, match="'impostor'.*lenient"):
        register_descriptor(custom("impostor", family="lenient"))

    assert get_descriptor("lenient", False) is LENIENT


def test_problems_warn_one_by_one() -> None:
    """Each problem is a warning that names the descriptor; it is indexed anyway."""
    odd = custom("odd", allow_any_of=False, max_enum_values=0)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        register_descriptor(odd)

    assert [str(warning.message) for warning in caught] == [
        "descriptor 'odd': any_encoding 'recursive-open' needs allow_any_of",
        "descriptor 'odd': max_enum_values 0 is not an integer above 0",
    ]
    assert get_descriptor_by_id("odd") is odd


def test_only_descriptors_are_registered() -> None:
    """Anything else is refused, with its type."""
    with pytest.raises(TypeError, match="a FormatDescriptor, not str"):
        register_descriptor("openai")  # type: ignore[arg-type]  # what is tested


def test_the_registry_is_bounded() -> None:
    """A program that registers without end is told so."""
    program = (
        "from dataclasses import replace\n"
        "from aeye.descriptor import LENIENT, register_descriptor\n"
        "for n in range(1001):\n"
        "    register_descriptor(replace(LENIENT, id=f'bound-{n}', family='bound'))\n"
    )

    done = subprocess.run(  # a process of its own: the registry is the process's
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert "ValueError: 1000 descriptors are registered already" in done.stderr


@pytest.mark.parametrize(
    ("options", "id"),
    [
        (True, "openai-strict"),
        (False, "lenient"),
        (XAI_STRICT, "xai-strict"),
        ({"strict": True}, "openai-strict"),
        ({"strict": False}, "openai-non-strict"),
        ({"strict": True, "format": "anthropic"}, "anthropic-strict"),
        ({"strict": True, "format": None}, "openai-strict"),
        ({"strict": True, "format": "nobody"}, "lenient"),
    ],
)
def test_options_name_a_dialect(options: Any, id: str) -> None:
    """A descriptor, a bool, or strict and format."""
    assert resolve_descriptor(options).id == id


@pytest.mark.parametrize(
    "options", (None, 1, "openai", {}, {"strict": 1}, {"strict": True, "fmt": "x"})
)
def test_a_dialect_must_be_said(options: Any) -> None:
    """There is no default, and a misspelt key is not passed over."""
    with pytest.raises(TypeError, match="descriptor: a FormatDescriptor, True, False"):
        resolve_descriptor(options)


def test_fallback_instruction() -> None:
    """Google has words of its own, everybody else the same ones."""
    own = json_fallback_instruction(GOOGLE_STRICT)
    shared = json_fallback_instruction(OPENAI_STRICT)

    assert own != shared == json_fallback_instruction(False)
    for text in (own, shared):
        assert "schema above" in text and "fences" in text


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"any_encoding": "what"}, "any_encoding 'what' is none of"),
        ({"supports_recursion": False}, "'recursive-open' needs supports_recursion"),
        ({"record_encoding": "what"}, "record_encoding 'what' is not known"),
        ({"tuple_encoding": "what"}, "tuple_encoding 'what' is not known"),
        (
            {
                "tuple_encoding": "items-union",
                "allow_any_of": False,
                "any_encoding": "none",
            },
            "tuple_encoding 'items-union' needs allow_any_of",
        ),
        ({"object_all_fields_required": True}, "needs optional_as_nullable"),
        ({"allow_pattern": False}, "allow_multiple_patterns needs"),
        ({"structured_output_always_strict": True}, "that is not strict"),
        ({"max_enum_values": True}, "max_enum_values True"),
        ({"max_strict_tools": 0}, "max_strict_tools 0"),
        (
            {"schema_size_limits": SchemaSizeLimits(1, 1, 1, 2, 1, 1)},
            "schema_size_limits on a descriptor that is not strict",
        ),
    ],
)
def test_contradictions_are_named(changes: dict[str, Any], problem: str) -> None:
    """Each contradiction is one sentence with the fields involved."""
    problems = check_descriptor_consistency(custom("odd", **changes))

    assert len(problems) == 1
    assert problem in problems[0]


def test_equal_fields_are_one_dialect() -> None:
    """Descriptors are values: caches keyed by them never serve another's results."""
    same, other = replace(OPENAI_STRICT), replace(OPENAI_STRICT, allow_pattern=False)

    assert same == OPENAI_STRICT and hash(same) == hash(OPENAI_STRICT)
    assert other != OPENAI_STRICT
