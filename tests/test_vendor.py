"""The records: well formed, and right about the models we have facts of."""

from __future__ import annotations

import dataclasses
import re
from datetime import date
from urllib.parse import urlsplit

import pytest

from aeye.descriptor import has_descriptor_family
from aeye.provider import WIRES
from aeye.request import Request
from aeye.vendor import (
    ANTHROPIC,
    GOOGLE,
    OPENAI,
    OPENROUTER,
    VENDORS,
    Vendor,
    find_facts,
    get_vendor,
)
from aeye.wire import ModelFacts

ROWS = {field.name for field in dataclasses.fields(ModelFacts)}
FIELDS = {field.name for field in dataclasses.fields(Request)}


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_record(vendor: Vendor) -> None:
    """A record names real rows, patterns, formats, dialects and addresses."""
    facts = [vendor.facts, *(find_facts(vendor, m) for m in (vendor.example, "x"))]

    assert re.fullmatch("[a-z]+", vendor.name)
    for url in (vendor.base_url, *(form for _, form in vendor.url_forms)):
        filled = re.sub(r"^\{[A-Z_]+\}", "https://x", url)
        assert urlsplit(filled).scheme in ("http", "https")
        assert not re.search(r"[{}]", re.sub(r"\{([A-Z_]+|model)\}", "", url))
    assert {name for name, _ in vendor.url_forms} <= set(vendor.formats)
    assert vendor.keyless or vendor.key_names
    assert set(vendor.formats) <= set(WIRES)
    for rule in vendor.models:
        re.compile(rule.pattern)
        assert set(rule.facts) <= ROWS
    for found in facts:
        assert found.family is None or has_descriptor_family(found.family)
        assert (found.refuses | found.refuses_thinking) <= FIELDS
        assert found.family is not None or not found.strict_tools
        assert hash(found) == hash(dataclasses.replace(found))


def test_names_are_unique() -> None:
    """Each vendor has a name of its own, by which it is found."""
    assert len({vendor.name for vendor in VENDORS}) == len(VENDORS)
    assert all(get_vendor(vendor.name) is vendor for vendor in VENDORS)
    assert get_vendor("nobody") is None


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("gpt-4o-mini", {"thinks": False, "reasoning": None, "strict_output": True}),
        ("gpt-4.1", {"thinks": False, "system_role": "system"}),
        ("gpt-4", {"structured_output": False, "strict_tools": False}),
        ("gpt-4-turbo", {"structured_output": False, "context_window": 128_000}),
        ("gpt-3.5-turbo", {"structured_output": False}),
        ("gpt-5", {"thinks": True, "system_role": "developer"}),
        ("gpt-5-mini", {"thinks": True, "tools_need_no_reasoning": False}),
        ("gpt-5-chat-latest", {"thinks": False}),
        ("gpt-5.2", {"thinks": False}),
        ("gpt-5.5", {"thinks": True, "tools_need_no_reasoning": True}),
        ("gpt-5.6-sol", {"thinks": True, "cache_mark": "prompt_cache_breakpoint"}),
        ("gpt-5.2-pro", {"thinks": True}),
        ("o3", {"thinks": True, "refuses": frozenset({"stop"})}),
        ("o1-mini", {"tools": False}),
        ("my-own-model", {"token_cap": "max_tokens", "family": None}),
        ("llama-3-o3", {"family": None}),
    ],
)
def test_openai_models(model: str, rows: dict[str, object]) -> None:
    """What is known of OpenAI's models, and that nothing is of others."""
    found = find_facts(OPENAI, model)

    assert {name: getattr(found, name) for name in rows} == rows


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("claude-fable-5-1", {"efforts": ("low", "medium", "high", "xhigh", "max")}),
        ("claude-opus-5-5", {"tool_choices": frozenset({"auto", "none"})}),
        ("claude-sonnet-5-5", {"reasoning": "between_tools", "thinks": True}),
        ("claude-haiku-5-5", {"refuses": frozenset({"temperature", "top_p"})}),
        ("claude-opus-5", {"reasoning": "reasoning_effort", "strict_tools": True}),
        ("claude-opus-4-8", {"thinks": False, "context_window": None}),
        ("claude-opus-4-6", {"refuses": frozenset(), "thinks": False}),
        ("claude-sonnet-4-5-20250929", {"reasoning": "budget_tokens"}),
        ("claude-opus-4-1", {"max_output_tokens": 32_000, "strict_output": True}),
        ("claude-opus-4-20250514", {"strict_output": False}),
        ("claude-sonnet-4-20250514", {"structured_output": False}),
        ("claude-3-7-sonnet-latest", {"reasoning": "budget_tokens"}),
        ("claude-3-5-haiku-latest", {"reasoning": None, "max_output_tokens": 4096}),
        ("my-own-model", {"family": None, "refuses": frozenset()}),
    ],
)
def test_anthropic_models(model: str, rows: dict[str, object]) -> None:
    """Newer models take efforts and no sampling, older ones numbers and both."""
    found = find_facts(ANTHROPIC, model, "messages")

    assert {name: getattr(found, name) for name in rows} == rows
    assert find_facts(ANTHROPIC, model, "chat").cache_mark is None


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("gemini-3.6-flash", {"reasoning": "thinkingLevel", "strict_tools": True}),
        ("gemini-3.1-pro-preview", {"efforts": ("low", "medium", "high", "xhigh")}),
        ("gemini-flash-latest", {"output_with_tools": True}),
        ("gemini-2.5-flash", {"reasoning": "thinkingBudget", "thinks": True}),
        ("gemini-2.5-pro", {"efforts": ("minimal", "low", "medium", "high")}),
        ("gemini-2.0-flash", {"reasoning": None, "strict_tools": False}),
        ("gemma-3-27b-it", {"family": None}),
    ],
)
def test_google_models(model: str, rows: dict[str, object]) -> None:
    """Newer models take efforts, older ones numbers; the newest want signatures."""
    found = find_facts(GOOGLE, model, "gemini")

    assert {name: getattr(found, name) for name in rows} == rows
    newest = found.reasoning == "thinkingLevel"
    assert ("thoughtSignature" in found.echoes) == newest
    assert "thoughtSignature" not in find_facts(GOOGLE, model, "chat").echoes


def test_models_behind_a_router() -> None:
    """A router's models are of the family of who made them."""
    assert find_facts(OPENROUTER, "openai/gpt-4o").family == "openai"
    assert find_facts(OPENROUTER, "anthropic/claude-sonnet-4.5").family is None


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_sources(vendor: Vendor) -> None:
    """A record says where and when it was read, and so do the facts of its models."""
    sources = [vendor.source, *([vendor.models_source] if vendor.models else [])]

    for url, day in sources:
        assert urlsplit(url).scheme == "https" and urlsplit(url).path
        assert date(2026, 11, 1) <= date.fromisoformat(day)
    assert bool(vendor.models) == bool(vendor.models_source[0])


def test_marks_that_are_counted() -> None:
    """A bound on marks is known only where there are marks."""
    found = find_facts(ANTHROPIC, "claude-opus-5", "messages")

    assert (found.cache_mark, found.max_cache_marks) == ("cache_control", 4)
    assert find_facts(OPENAI, "gpt-5.6").max_cache_marks is None


@pytest.mark.parametrize("name", ["groq", "ollama", "vllm", "fireworks", "lmstudio"])
def test_hosts_of_open_models(name: str) -> None:
    """Their thoughts may stand in the text; those of a vendor's own models do not."""
    vendor = get_vendor(name)

    assert vendor is not None and find_facts(vendor, "x").think_tags
    assert not find_facts(OPENAI, "my-own-model").think_tags
