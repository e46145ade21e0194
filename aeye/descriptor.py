"""What a vendor's schema compiler accepts: one record per dialect, and their registry.

A dialect is data. Emitting, decoding and budgeting look at the fields of a
:class:`FormatDescriptor` and at nothing else, so a new vendor is a new record:

>>> acme = dataclasses.replace(OPENAI_STRICT, id="acme-strict", family="acme")
>>> register_descriptor(acme)
>>> get_descriptor("acme", True).id
'acme-strict'
>>> get_descriptor("acme", False).id
'lenient'
"""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Optional, Union

__all__ = [
    "ANTHROPIC_NON_STRICT",
    "ANTHROPIC_STRICT",
    "DEFINED_FORMATS",
    "DescriptorFamily",
    "FormatDescriptor",
    "GOOGLE_NON_STRICT",
    "GOOGLE_STRICT",
    "LENIENT",
    "OPENAI_NON_STRICT",
    "OPENAI_STRICT",
    "SchemaSizeLimits",
    "ToJSONSchemaOptions",
    "XAI_NON_STRICT",
    "XAI_STRICT",
    "check_descriptor_consistency",
    "get_descriptor",
    "get_descriptor_by_id",
    "has_descriptor_family",
    "json_fallback_instruction",
    "register_descriptor",
    "resolve_descriptor",
]

# "openai", "anthropic", "google", "xai", "lenient", or a name of your own.
DescriptorFamily = str

# What the formats of JSON Schema 2020-12 are, but ``regex``: some hosts answer
# "Unknown format: regex", and no model writes one.
DEFINED_FORMATS: FrozenSet[str] = frozenset(
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "idn-email",
        "idn-hostname",
        "ipv4",
        "ipv6",
        "iri",
        "iri-reference",
        "json-pointer",
        "relative-json-pointer",
        "time",
        "uri",
        "uri-reference",
        "uri-template",
        "uuid",
    }
)

# https://ai.google.dev/gemini-api/docs/structured-output, read 2026-11.
_GOOGLE_FORMATS = frozenset({"date", "date-time", "time"})
# https://developers.openai.com/api/docs/guides/structured-outputs, read 2026-11.
_OPENAI_FORMATS = _GOOGLE_FORMATS | {
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
}
# https://platform.claude.com/docs/en/build-with-claude/structured-outputs, 2026-11.
_ANTHROPIC_FORMATS = _OPENAI_FORMATS | {"uri"}
# The list that xAI enforces; it takes others as hints.
# https://docs.x.ai/developers/model-capabilities/text/structured-outputs, 2026-11.
_XAI_FORMATS = _GOOGLE_FORMATS | {"email", "ipv4", "ipv6", "uri", "uuid"}

_FALLBACK = (
    "Reply with one raw JSON object that fits the schema above: no code fences, no "
    "text before or after it, and do not repeat the schema."
)
_GOOGLE_FALLBACK = (
    "Your whole reply must be one raw JSON object that fits the schema above. Do not "
    "put it in code fences, do not add prose, do not echo the schema."
)

_ANY_ENCODINGS = (
    "recursive-strict",
    "recursive-open",
    "flat",
    "unconstrained",
    "none",
)


@dataclass(frozen=True)
class SchemaSizeLimits:
    """Ceilings that one schema must keep to; a dialect publishes all or none."""

    max_object_properties: int
    max_nesting_depth: int
    max_total_string_chars: int
    max_total_enum_values: int
    # An enum of more values than this …
    large_enum_value_count: int
    # … may spend at most this many characters on them.
    max_large_enum_string_chars: int


@dataclass(frozen=True)
class FormatDescriptor:
    """One dialect of JSON Schema, as a vendor's validator understands it.

    The defaults describe plain JSON Schema 2020-12. Two descriptors with equal
    fields are the same dialect; ``id`` is what travels with a request, so that its
    reply is read in the dialect it was asked in.
    """

    id: str
    family: DescriptorFamily
    strict: bool
    # Every property is listed in ``required``.
    object_all_fields_required: bool = False
    # Every object says ``additionalProperties: false``, whatever the source says.
    object_closed_by_default: bool = False
    # "open-record" or "array-of-pairs": how a map of keys to values is spelled.
    record_encoding: str = "open-record"
    # "prefix-items", "object-numeric-keys" or "items-union".
    tuple_encoding: str = "prefix-items"
    allow_all_of: bool = True
    allow_any_of: bool = True
    allow_one_of: bool = True
    # ``{"$ref": "#"}``.
    allow_root_ref: bool = True
    # ``$defs`` and references to it; without it definitions are written out in place.
    allow_defs_ref: bool = True
    emit_property_ordering: bool = False
    # "all" means the formats that JSON Schema 2020-12 defines.
    supported_string_formats: Union[str, FrozenSet[str]] = "all"
    allow_pattern: bool = True
    allow_multiple_patterns: bool = True
    allow_min_max_length: bool = True
    allow_min_max_items: bool = True
    allow_minimum_maximum: bool = True
    # An optional property goes out as "T or null", and null means absent.
    optional_as_nullable: bool = False
    # How "any JSON value" is spelled: see ``check_descriptor_consistency``.
    any_encoding: str = "recursive-open"
    supports_recursion: bool = True
    # The family has no non-strict structured output.
    structured_output_always_strict: bool = False
    # Per request, over all of its strict schemas.
    max_strict_tools: Optional[int] = None
    max_strict_optional_params: Optional[int] = None
    max_strict_union_types: Optional[int] = None
    # Per schema.
    schema_size_limits: Optional[SchemaSizeLimits] = None
    # Per enum; beyond it the values are listed in the description instead.
    max_enum_values: Optional[int] = None
    json_fallback_instruction: Optional[str] = None
    # Keywords that the validator refuses or ignores, so that they are never emitted.
    # What they say goes into the description, or is only checked after decoding.
    omitted_keywords: FrozenSet[str] = frozenset()
    # A pattern is read as if ``^`` and ``$`` stood around it.
    patterns_anchored: bool = False
    # An object that says nothing of other keys is taken as closed.
    closed_unless_said: bool = False
    # Texts of enums may come back in another capitalisation.
    enum_case_varies: bool = False

    def __hash__(self) -> int:
        # Caches are keyed by descriptors: equal ones have equal ids.
        return hash(self.id)


# What the doors take for a descriptor: one of ours, a bool, or strict and format.
ToJSONSchemaOptions = Union[FormatDescriptor, bool, Mapping[str, Any]]

LENIENT = FormatDescriptor("lenient", "lenient", False)

OPENAI_STRICT = FormatDescriptor(
    id="openai-strict",
    family="openai",
    strict=True,
    object_all_fields_required=True,
    object_closed_by_default=True,
    record_encoding="array-of-pairs",
    tuple_encoding="object-numeric-keys",
    allow_all_of=False,
    allow_one_of=False,
    supported_string_formats=_OPENAI_FORMATS,
    allow_multiple_patterns=False,
    # Documented as supported today, but not for fine-tuned models.
    allow_min_max_length=False,
    allow_min_max_items=False,
    allow_minimum_maximum=False,
    optional_as_nullable=True,
    any_encoding="recursive-strict",
    # Raised in July 2025 from 100 properties, 15,000 characters, 500 values and
    # 7,500 characters: https://developers.openai.com/api/docs/guides/
    # structured-outputs, read 2026-11.
    schema_size_limits=SchemaSizeLimits(
        max_object_properties=5000,
        max_nesting_depth=10,
        max_total_string_chars=120000,
        max_total_enum_values=1000,
        large_enum_value_count=250,
        max_large_enum_string_chars=15000,
    ),
    # "'default' is not permitted", and Azure says so too.
    omitted_keywords=frozenset({"default"}),
)

OPENAI_NON_STRICT = dataclasses.replace(
    LENIENT, id="openai-non-strict", family="openai"
)

# https://platform.claude.com/docs/en/build-with-claude/structured-outputs ("JSON
# Schema limitations", "Schema complexity limits"), read 2026-11.
ANTHROPIC_STRICT = FormatDescriptor(
    id="anthropic-strict",
    family="anthropic",
    strict=True,
    object_closed_by_default=True,
    record_encoding="array-of-pairs",
    tuple_encoding="items-union",
    allow_one_of=False,
    allow_root_ref=False,
    supported_string_formats=_ANTHROPIC_FORMATS,
    allow_multiple_patterns=False,
    allow_min_max_length=False,
    allow_min_max_items=False,
    allow_minimum_maximum=False,
    any_encoding="none",
    supports_recursion=False,
    structured_output_always_strict=True,
    max_strict_tools=20,
    max_strict_optional_params=24,
    max_strict_union_types=16,
    enum_case_varies=True,
)

ANTHROPIC_NON_STRICT = dataclasses.replace(
    LENIENT, id="anthropic-non-strict", family="anthropic"
)

# https://ai.google.dev/gemini-api/docs/structured-output and the field comment of
# ``responseJsonSchema`` in googleapis' generative_service.proto, read 2026-11. The
# API takes anyOf and $defs by now; this dialect is tighter on purpose.
GOOGLE_STRICT = FormatDescriptor(
    id="google-strict",
    family="google",
    strict=True,
    allow_all_of=False,
    allow_any_of=False,
    allow_one_of=False,
    allow_defs_ref=False,
    emit_property_ordering=True,
    supported_string_formats=_GOOGLE_FORMATS,
    allow_pattern=False,
    allow_multiple_patterns=False,
    allow_min_max_length=False,
    any_encoding="unconstrained",
    # A floor under a measured edge: 90 real identifiers passed a forced tool call,
    # 93 failed with an opaque 400.
    max_enum_values=40,
    json_fallback_instruction=_GOOGLE_FALLBACK,
    omitted_keywords=frozenset(
        {
            "const",
            "default",
            "exclusiveMaximum",
            "exclusiveMinimum",
            "multipleOf",
            "propertyNames",
        }
    ),
)

GOOGLE_NON_STRICT = dataclasses.replace(
    LENIENT,
    id="google-non-strict",
    family="google",
    any_encoding="unconstrained",
    max_enum_values=40,
    json_fallback_instruction=_GOOGLE_FALLBACK,
    # A 400 even for a plain enum of keys.
    omitted_keywords=frozenset({"propertyNames"}),
)

# https://docs.x.ai/developers/model-capabilities/text/structured-outputs, 2026-11.
XAI_STRICT = FormatDescriptor(
    id="xai-strict",
    family="xai",
    strict=True,
    allow_all_of=False,
    allow_root_ref=False,
    supported_string_formats=_XAI_FORMATS,
    allow_multiple_patterns=False,
    any_encoding="flat",
    supports_recursion=False,
    patterns_anchored=True,
    closed_unless_said=True,
)

XAI_NON_STRICT = dataclasses.replace(LENIENT, id="xai-non-strict", family="xai")

_BUILT_IN = (
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

# One registry for the process, as names on the wire are; it only ever grows by
# ``register_descriptor``, up to a bound.
_by_id: Dict[str, FormatDescriptor] = {d.id: d for d in _BUILT_IN}
_MAX_REGISTERED = 1000


def register_descriptor(descriptor: FormatDescriptor) -> None:
    """Make *descriptor* known by its id, and by its family and strictness.

    An id registered before is replaced, also where it was the descriptor of another
    family. Of several ids in one place the last registered counts; the place of
    ``LENIENT`` is not taken. Problems are warnings, not errors: the descriptor is
    registered all the same.

    Raises:
        TypeError: *descriptor* is not a FormatDescriptor.
        ValueError: there are 1,000 already.
    """
    if not isinstance(descriptor, FormatDescriptor):
        raise TypeError(
            f"descriptor: a FormatDescriptor, not {type(descriptor).__name__}"
        )
    for problem in check_descriptor_consistency(descriptor):
        warnings.warn(f"descriptor {descriptor.id!r}: {problem}", stacklevel=2)
    if descriptor.id not in _by_id and len(_by_id) >= _MAX_REGISTERED:
        raise ValueError(f"{_MAX_REGISTERED} descriptors are registered already")
    # Taken out first, so that the newest stands last: look-ups read from the end.
    _by_id.pop(descriptor.id, None)
    _by_id[descriptor.id] = descriptor


def get_descriptor(family: DescriptorFamily, strict: bool) -> FormatDescriptor:
    """Give a family's strict or non-strict dialect, or ``LENIENT`` if it has none.

    >>> get_descriptor("xai", True).id
    'xai-strict'
    >>> get_descriptor("nobody", True).id
    'lenient'
    """
    if family != LENIENT.family:
        for descriptor in reversed(list(_by_id.values())):
            if descriptor.family == family and descriptor.strict == strict:
                return descriptor
    return LENIENT


def get_descriptor_by_id(id: str | None) -> FormatDescriptor:
    """Give the dialect called *id*, or ``LENIENT``."""
    return _by_id.get(id or "", LENIENT)


def has_descriptor_family(family: DescriptorFamily | None) -> bool:
    """Say whether anything is registered under *family*."""
    return any(d.family == family for d in list(_by_id.values()))


def resolve_descriptor(options: ToJSONSchemaOptions) -> FormatDescriptor:
    """Give the dialect that a caller means.

    Args:
        options: a descriptor; True (OpenAI strict) or False (lenient); or a mapping
            with ``strict`` and, unless OpenAI is meant, ``format``.

    Raises:
        TypeError: it is none of these. There is no default: which dialect a schema
            goes out in is never to be guessed.

    >>> resolve_descriptor({"strict": True, "format": "google"}).id
    'google-strict'
    >>> resolve_descriptor({"strict": False}).id
    'openai-non-strict'
    """
    if isinstance(options, FormatDescriptor):
        return options
    if isinstance(options, bool):
        return OPENAI_STRICT if options else LENIENT
    given: Any = options  # whatever a caller wrote
    if isinstance(given, Mapping) and isinstance(given.get("strict"), bool):
        family = given.get("format") or "openai"
        if given.keys() <= {"strict", "format"} and isinstance(family, str):
            return get_descriptor(family, given["strict"])
    raise TypeError(
        "descriptor: a FormatDescriptor, True, False or "
        f'{{"strict": bool, "format": family}}, not {options!r:.200}'
    )


def json_fallback_instruction(descriptor: ToJSONSchemaOptions) -> str:
    """Give the sentence that follows a schema sent as prompt text."""
    return resolve_descriptor(descriptor).json_fallback_instruction or _FALLBACK


def check_descriptor_consistency(descriptor: FormatDescriptor) -> list[str]:
    """Name what in *descriptor* contradicts itself; an empty list is the good answer.

    >>> odd = dataclasses.replace(
    ...     LENIENT, id="odd", family="odd", allow_any_of=False
    ... )
    >>> check_descriptor_consistency(odd)
    ["any_encoding 'recursive-open' needs allow_any_of"]
    """
    if descriptor.any_encoding not in _ANY_ENCODINGS:
        known = ", ".join(_ANY_ENCODINGS)
        return [f"any_encoding {descriptor.any_encoding!r} is none of {known}"]
    problems: List[str] = []
    problems += _find_encoding_problems(descriptor)
    problems += _find_flag_problems(descriptor)
    problems += _find_limit_problems(descriptor)
    return problems


def _find_encoding_problems(d: FormatDescriptor) -> Iterator[str]:
    recursive = d.any_encoding in ("recursive-strict", "recursive-open")
    needs = {
        "allow_any_of": recursive or d.any_encoding == "flat",
        "allow_defs_ref": recursive,
        "supports_recursion": recursive,
    }
    for flag, needed in needs.items():
        if needed and not getattr(d, flag):
            yield f"any_encoding {d.any_encoding!r} needs {flag}"
    if d.record_encoding not in ("open-record", "array-of-pairs"):
        yield f"record_encoding {d.record_encoding!r} is not known"
    if d.tuple_encoding not in ("prefix-items", "object-numeric-keys", "items-union"):
        yield f"tuple_encoding {d.tuple_encoding!r} is not known"
    if d.tuple_encoding == "items-union" and not d.allow_any_of:
        yield "tuple_encoding 'items-union' needs allow_any_of"


def _find_flag_problems(d: FormatDescriptor) -> Iterator[str]:
    if d.object_all_fields_required and not d.optional_as_nullable:
        yield "object_all_fields_required needs optional_as_nullable"
    if d.allow_multiple_patterns and not (d.allow_all_of and d.allow_pattern):
        yield "allow_multiple_patterns needs allow_all_of and allow_pattern"
    if d.structured_output_always_strict and not d.strict:
        yield "structured_output_always_strict on a descriptor that is not strict"
    if d.family == LENIENT.family and d.id != LENIENT.id:
        yield f"family {d.family!r} always means the descriptor {LENIENT.id!r}"


def _find_limit_problems(d: FormatDescriptor) -> Iterator[str]:
    if d.max_enum_values is not None and not _is_bound(d.max_enum_values):
        yield f"max_enum_values {d.max_enum_values!r} is not an integer above 0"
    limits = d.schema_size_limits
    if limits is not None:
        if not d.strict:
            yield "schema_size_limits on a descriptor that is not strict"
        for field in dataclasses.fields(limits):
            bound = getattr(limits, field.name)
            if not _is_bound(bound):
                yield (
                    f"schema_size_limits.{field.name} {bound!r} is not an integer "
                    "above 0"
                )
        if limits.large_enum_value_count >= limits.max_total_enum_values:
            yield (
                "schema_size_limits.large_enum_value_count is not below "
                "max_total_enum_values, so the rule for large enums can never apply"
            )
    for name in (
        "max_strict_tools",
        "max_strict_optional_params",
        "max_strict_union_types",
    ):
        bound = getattr(d, name)
        if bound is not None and not _is_bound(bound):
            yield f"{name} {bound!r} is not an integer above 0"


def _is_bound(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
