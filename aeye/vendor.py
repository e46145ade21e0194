"""Who speaks which format where, and what their models can do: one record per company.

Adding a vendor is adding a record. What a record does not say is what an unknown model
is taken to be, see ``wire.ModelFacts``. Each record names where it was read and when;
where one of its facts came from elsewhere, the line says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Dict, FrozenSet, Mapping, Optional, Tuple

from .wire import ModelFacts

__all__ = ["ModelRule", "VENDORS", "Vendor", "find_facts", "get_vendor"]


@dataclass(frozen=True)
class ModelRule:
    """What is different about the models whose names match."""

    # A regular expression; it must match from the start of the name.
    pattern: str
    # Rows of ModelFacts. Of several rules that match, later ones win.
    facts: Mapping[str, Any]
    # The wire format it holds for; None: for all.
    format: Optional[str] = None


@dataclass(frozen=True)
class Vendor:
    """One company, or one server to run at home."""

    name: str
    # ``{NAME}`` in an address is taken from the environment variable of that name, and
    # ``{model}`` is the model that is asked.
    base_url: str
    # Environment variables that hold the key, in order; the first is named in errors.
    key_names: Tuple[str, ...] = ()
    # A key may be missing: a server at home.
    keyless: bool = False
    # Environment variables that hold another address.
    url_names: Tuple[str, ...] = ()
    # (format, address): instead of ``base_url``, where all its variables are set.
    url_forms: Tuple[Tuple[str, str], ...] = ()
    # Wire formats spoken, the preferred one first.
    formats: Tuple[str, ...] = ("chat",)
    # The header that carries the key, and what stands before the key there.
    key_header: Tuple[str, str] = ("Authorization", "Bearer ")
    # (format, header): instead of that one.
    key_forms: Tuple[Tuple[str, Tuple[str, str]], ...] = ()
    # Constant headers, and headers taken from the environment where it has them.
    headers: Tuple[Tuple[str, str], ...] = ()
    header_names: Tuple[Tuple[str, str], ...] = ()
    facts: ModelFacts = field(default_factory=ModelFacts)
    models: Tuple[ModelRule, ...] = ()
    # A model to show in messages, and how the names of its own models begin.
    example: str = "MODEL"
    prefixes: Tuple[str, ...] = ()
    # Where it is documented, and the day these facts were gathered; the same of models.
    source: Tuple[str, str] = ("", "")
    models_source: Tuple[str, str] = ("", "")

    def __hash__(self) -> int:
        return hash(self.name)


_SAMPLING = frozenset(
    {
        "temperature",
        "top_p",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "log_probabilities",
    }
)
_NOTHING: FrozenSet[str] = frozenset()
_WORDS = frozenset({"auto", "none", "required"})
# Open models write their thoughts between tags, and a host without a reader for the
# model hands that on as text. All read 2026-12-01:
# https://docs.vllm.ai/en/v0.7.3/features/reasoning_outputs.html (if not told of one)
# https://fireworks.ai/docs/deepseek/general-deepseek
# https://inference-docs.cerebras.ai/capabilities/reasoning (Qwen)
# https://reference.langchain.com/python/langchain-groq/chat_models/ChatGroq (Groq)
_OPEN_MODELS = ModelFacts(think_tags=True)

# Read from the recorded errors and the official client; which models think by default:
# pydantic-ai's profiles, checked live there in 2026-07.
_OPENAI: Dict[str, Any] = {
    "family": "openai",
    "strict_tools": True,
    "strict_output": True,
    "token_cap": "max_completion_tokens",
    "cache_key": "prompt_cache_key",
    "user_key": "safety_identifier",
    "echoes": frozenset({"refusal"}),
}
_OPENAI_MODELS = (
    ModelRule(r"gpt-|o\d|chatgpt-", _OPENAI),
    ModelRule(r"gpt-4o|gpt-4-turbo", {"context_window": 128_000, "reasoning": None}),
    ModelRule(r"gpt-4\.1", {"reasoning": None}),
    ModelRule(
        r"gpt-3\.5|gpt-4(-|$)",
        {
            "strict_tools": False,
            "strict_output": False,
            "structured_output": False,
            "reasoning": None,
        },
    ),
    ModelRule(
        r"o\d|gpt-[5-9]",
        {"refuses_thinking": _SAMPLING, "system_role": "developer"},
    ),
    ModelRule(
        r"o\d|gpt-5(-(?!chat)|$)|gpt-5\.[56]|gpt-.*-pro|gpt-5\.1-codex",
        {"thinks": True},
    ),
    ModelRule(r"o3|o4-mini", {"refuses": frozenset({"stop"})}),
    ModelRule(r"o1-mini", {"system_role": "user", "tools": False}),
    ModelRule(r"gpt-5\.6", {"cache_mark": "prompt_cache_breakpoint"}),
    # 400 "Function tools with reasoning_effort are not supported … in
    # /v1/chat/completions", also when no effort is said.
    ModelRule(r"gpt-5\.[56]", {"tools_need_no_reasoning": True}, format="chat"),
)

OPENAI = Vendor(
    name="openai",
    base_url="https://api.openai.com/v1",
    key_names=("OPENAI_API_KEY",),
    url_names=("OPENAI_BASE_URL",),
    header_names=(
        ("OpenAI-Organization", "OPENAI_ORG_ID"),
        ("OpenAI-Project", "OPENAI_PROJECT_ID"),
    ),
    # The first is spoken at the address above, and chat completions at any other: the
    # newest models take function tools on Responses only, while hosts that imitate
    # OpenAI are likelier to know the older format.
    formats=("responses", "chat"),
    models=_OPENAI_MODELS,
    example="gpt-5-mini",
    prefixes=("gpt", "chatgpt", "o1", "o3", "o4"),
    source=("https://github.com/openai/openai-python (3.57.0)", "2026-11-30"),
    models_source=("https://github.com/pydantic/pydantic-ai (4fda389)", "2026-11-30"),
)

AZURE = Vendor(
    name="azure",
    # https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle, and the
    # official client: with a version, the model (there: deployment) is in the path.
    base_url="{AZURE_OPENAI_ENDPOINT}/openai/v1",
    url_forms=(
        (
            "chat",
            "{AZURE_OPENAI_ENDPOINT}/openai/deployments/{model}"
            "?api-version={OPENAI_API_VERSION}",
        ),
    ),
    key_names=("AZURE_OPENAI_API_KEY",),
    key_header=("api-key", ""),
    formats=("chat", "responses"),
    # A deployment is most often named after its model.
    models=(*_OPENAI_MODELS, ModelRule(r"", {"user_key": "user"})),
    example="gpt-4o",
    source=(
        "https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle",
        "2026-11-30",
    ),
    models_source=("https://github.com/pydantic/pydantic-ai (4fda389)", "2026-11-30"),
)

# Which models take what: pydantic-ai's profiles, checked live there in 2026-07, and for
# the newest https://platform.claude.com/docs/en/build-with-claude/thinking and
# …/about-claude/models/overview, as quoted by their readers in 2026-10.
_CLAUDE_SAMPLING = frozenset({"temperature", "top_p"})
_CLAUDE_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_CLAUDE_MODELS = (
    # The newest think unless told not to, in their own measure, and take no sampling.
    ModelRule(
        r"claude-",
        {
            "family": "anthropic",
            "strict_tools": True,
            "strict_output": True,
            "efforts": ("none", *_CLAUDE_EFFORTS),
            "refuses": _CLAUDE_SAMPLING,
            "thinks": True,
            "context_window": 1_000_000,
            "max_output_tokens": 128_000,
        },
    ),
    # https://platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11.
    ModelRule(
        r"claude-",
        {"cache_mark": "cache_control", "max_cache_marks": 4},
        format="messages",
    ),
    # These cannot be made to call a tool, nor, but for one, to stop thinking.
    ModelRule(
        r"claude-(fable|mythos)|claude-(opus|sonnet)-5-5",
        {"tool_choices": frozenset({"auto", "none"}), "efforts": _CLAUDE_EFFORTS},
    ),
    ModelRule(
        r"claude-sonnet-5-5",
        {"reasoning": "between_tools", "efforts": ("none", *_CLAUDE_EFFORTS)},
    ),
    ModelRule(
        r"claude-(opus|sonnet)-4-[678]", {"thinks": False, "context_window": None}
    ),
    ModelRule(
        r"claude-(opus|sonnet)-4-6",
        {
            "efforts": ("none", "low", "medium", "high", "max"),
            "refuses": _NOTHING,
            "refuses_thinking": _CLAUDE_SAMPLING,
            "max_output_tokens": 64_000,
        },
    ),
    # Older models are told how many tokens to think.
    ModelRule(
        r"claude-(opus|sonnet|haiku)-4(-[015]\b|-2|@|$)|claude-[23i]",
        {
            "reasoning": "budget_tokens",
            "efforts": ("none", "minimal", "low", "medium", "high"),
            "refuses": _NOTHING,
            "refuses_thinking": _CLAUDE_SAMPLING,
            "thinks": False,
            "context_window": 200_000,
            "max_output_tokens": 64_000,
        },
    ),
    ModelRule(r"claude-opus-4(-[01]\b|-2|@|$)", {"max_output_tokens": 32_000}),
    ModelRule(
        r"claude-(opus|sonnet)-4(-0|-2|@|$)|claude-[23i]",
        {"strict_tools": False, "strict_output": False, "structured_output": False},
    ),
    ModelRule(
        r"claude-3-[05]|claude-3-[a-z]|claude-[2i]",
        {"reasoning": None, "max_output_tokens": 4096},
    ),
)

ANTHROPIC = Vendor(
    name="anthropic",
    base_url="https://api.anthropic.com",
    url_forms=(("chat", "https://api.anthropic.com/v1"),),
    key_names=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    url_names=("ANTHROPIC_BASE_URL",),
    # The official client sends keys as Bearer since its version 2, tokens ever since.
    formats=("messages", "chat"),
    facts=ModelFacts(inputs=frozenset({"image", "file"}), file_urls=True),
    models=_CLAUDE_MODELS,
    example="claude-sonnet-5-5",
    prefixes=("claude",),
    source=("https://platform.claude.com/docs/en/api/messages", "2026-11-30"),
    models_source=(
        "https://platform.claude.com/docs/en/about-claude/models/overview",
        "2026-11-30",
    ),
)

# https://ai.google.dev/gemini-api/docs/thinking and …/function-calling, and
# pydantic-ai's profiles; read 2026-11.
_GEMINI_NEW = r"gemini-([3-9]|(pro|flash)\S*-latest)"
GOOGLE = Vendor(
    name="google",
    base_url="https://generativelanguage.googleapis.com",
    url_forms=(("chat", "https://generativelanguage.googleapis.com/v1beta/openai"),),
    key_names=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    key_header=("x-goog-api-key", ""),
    key_forms=(("chat", ("Authorization", "Bearer ")),),
    url_names=("GOOGLE_GEMINI_BASE_URL",),
    formats=("gemini", "chat"),
    facts=ModelFacts(parallel_switch=False, file_urls=True, user_key=None),
    models=(
        ModelRule(
            r"gemini-",
            {
                "family": "google",
                "strict_output": True,
                # "Function calling with a response mime type … is unsupported".
                "output_with_tools": False,
                "reasoning": None,
                "context_window": 1_048_576,
            },
        ),
        ModelRule(
            rf"gemini-2\.5|{_GEMINI_NEW}",
            {"strict_tools": True, "thinks": True, "max_output_tokens": 65_536},
        ),
        ModelRule(
            r"gemini-2\.5",
            {
                "reasoning": "thinkingBudget",
                "efforts": ("none", "minimal", "low", "medium", "high"),
            },
        ),
        ModelRule(
            r"gemini-2\.5-pro", {"efforts": ("minimal", "low", "medium", "high")}
        ),
        ModelRule(
            _GEMINI_NEW,
            {
                "output_with_tools": True,
                "reasoning": "thinkingLevel",
                "efforts": ("minimal", "low", "medium", "high", "xhigh"),
            },
        ),
        ModelRule(
            r"gemini-([3-9][\d.]*-pro|pro-latest)",
            {"efforts": ("low", "medium", "high", "xhigh")},
        ),
        ModelRule(
            _GEMINI_NEW,
            {"echoes": frozenset({"thoughtSignature"})},
            format="gemini",
        ),
    ),
    example="gemini-3.6-flash",
    prefixes=("gemini", "gemma"),
    source=("https://ai.google.dev/api/generate-content", "2026-11-30"),
    models_source=("https://ai.google.dev/gemini-api/docs/thinking", "2026-11-30"),
)

OPENROUTER = Vendor(
    name="openrouter",
    base_url="https://openrouter.ai/api/v1",
    key_names=("OPENROUTER_API_KEY",),
    formats=("chat", "responses", "messages"),
    facts=ModelFacts(
        reasoning="reasoning",
        cache_mark="cache_control",
        max_cache_marks=4,  # Anthropic's, to which they go
        file_urls=True,
        echoes=frozenset({"reasoning_details"}),
    ),
    models=(
        ModelRule(
            r"openai/(gpt-4o|gpt-4\.1|gpt-5|o\d)",
            {"family": "openai", "strict_tools": True, "strict_output": True},
        ),
    ),
    example="anthropic/claude-sonnet-4.5",
    source=("https://openrouter.ai/docs/api-reference/overview", "2026-11-30"),
    models_source=("https://github.com/pydantic/pydantic-ai (4fda389)", "2026-11-30"),
)

OLLAMA = Vendor(
    name="ollama",
    base_url="http://localhost:11434/v1",
    key_names=("OLLAMA_API_KEY",),
    keyless=True,
    url_names=("OLLAMA_BASE_URL",),
    formats=("chat", "responses", "messages"),
    # Its chat endpoint has neither tool_choice nor parallel_tool_calls and takes no
    # picture by its address: server source, commit fb30760.
    facts=ModelFacts(
        tool_choices=frozenset({"auto", "none"}),
        parallel_switch=False,
        image_urls=False,
        user_key=None,
        think_tags=True,
        echoes=_NOTHING,
    ),
    example="llama3.2",
    source=("https://docs.ollama.com/api/openai-compatibility", "2026-12-01"),
)

GROQ = Vendor(
    name="groq",
    base_url="https://api.groq.com/openai/v1",
    key_names=("GROQ_API_KEY",),
    facts=ModelFacts(
        token_cap="max_completion_tokens", think_tags=True, echoes=_NOTHING
    ),
    models=(
        # Only some take a JSON schema, and none beside tools: 400 "json mode cannot be
        # combined with tool/function calling".
        ModelRule(r"", {"structured_output": False}),
        ModelRule(
            r"openai/gpt-oss|moonshotai/kimi|meta-llama/llama-4",
            {"structured_output": True, "output_with_tools": False},
        ),
    ),
    example="openai/gpt-oss-120b",
    source=("https://console.groq.com/docs/openai", "2026-11-30"),
    models_source=(
        "https://github.com/vercel/ai/pull/16540",
        "2026-12-01",
    ),
)

DEEPSEEK = Vendor(
    name="deepseek",
    base_url="https://api.deepseek.com",
    key_names=("DEEPSEEK_API_KEY",),
    formats=("chat", "responses"),
    facts=ModelFacts(
        structured_output=False,
        parallel_switch=False,
        reasoning="thinking",
        user_key=None,
        echoes=frozenset({"reasoning_content"}),
        context_window=131_072,  # as its own error says
    ),
    models=(
        ModelRule(
            r"deepseek-reasoner|deepseek-v4",
            {"tool_choices": frozenset({"auto", "none"}), "thinks": True},
        ),
    ),
    example="deepseek-chat",
    prefixes=("deepseek",),
    source=("https://api-docs.deepseek.com/guides/thinking_mode", "2026-11-30"),
    models_source=("https://api-docs.deepseek.com/guides/thinking_mode", "2026-11-30"),
)

XAI = Vendor(
    name="xai",
    base_url="https://api.x.ai/v1",
    key_names=("XAI_API_KEY",),
    formats=("chat", "responses"),
    facts=ModelFacts(
        family="xai",
        strict_tools=True,
        strict_output=True,
        token_cap="max_completion_tokens",
        echoes=_NOTHING,
    ),
    models=(
        ModelRule(
            r"grok-3-mini|grok-4",
            {
                "refuses_thinking": frozenset(
                    {"stop", "frequency_penalty", "presence_penalty"}
                ),
                "thinks": True,
            },
        ),
    ),
    example="grok-4",
    prefixes=("grok",),
    source=(
        "https://docs.x.ai/developers/model-capabilities/text/comparison.md",
        "2026-12-01",
    ),
    models_source=("https://github.com/pydantic/pydantic-ai (4fda389)", "2026-11-30"),
)

MISTRAL = Vendor(
    name="mistral",
    base_url="https://api.mistral.ai/v1",
    key_names=("MISTRAL_API_KEY",),
    # It answers 422 to any field it does not know, and 400 "Tool call id was … but must
    # be a-z, A-Z, 0-9, with a length of 9" to an id that another vendor made.
    # https://github.com/langchain-ai/langchain/pull/24668, read 2026-11-30
    facts=ModelFacts(
        user_key=None,
        reasoning=None,
        stream_usage=False,
        echoes=_NOTHING,
        short_call_ids=True,
    ),
    models=(ModelRule(r"magistral", {"thinks": True}),),
    example="mistral-medium-latest",
    prefixes=("mistral", "magistral", "ministral", "codestral", "devstral"),
    source=("https://github.com/mistralai/client-python (05629d2)", "2026-11-30"),
    models_source=(
        "https://github.com/mistralai/client-python (05629d2)",
        "2026-11-30",
    ),
)

TOGETHER = Vendor(
    name="together",
    base_url="https://api.together.xyz/v1",
    key_names=("TOGETHER_API_KEY",),
    facts=_OPEN_MODELS,
    example="meta-llama/Llama-3.3-70B-Instruct-Turbo",
    source=(
        "https://docs.together.ai/docs/inference/openai-compatibility",
        "2026-12-01",
    ),
)

FIREWORKS = Vendor(
    name="fireworks",
    base_url="https://api.fireworks.ai/inference/v1",
    key_names=("FIREWORKS_API_KEY",),
    facts=_OPEN_MODELS,
    example="accounts/fireworks/models/kimi-k2-instruct",
    source=(
        "https://www.developersdigest.tech/reference/api-compatibility/fireworks",
        "2026-12-01",
    ),
)

CEREBRAS = Vendor(
    name="cerebras",
    base_url="https://api.cerebras.ai/v1",
    key_names=("CEREBRAS_API_KEY",),
    facts=ModelFacts(
        parallel_switch=False,
        refuses=frozenset({"frequency_penalty", "presence_penalty", "logit_bias"}),
        token_cap="max_completion_tokens",
        think_tags=True,
        echoes=_NOTHING,
    ),
    # It gives its thoughts apart and wants them back in tags.
    # https://github.com/anomalyco/opencode/pull/26763, read 2026-12-01
    models=(ModelRule(r"zai-glm", {"echoes": frozenset({"<think>"})}),),
    example="gpt-oss-120b",
    source=("https://inference-docs.cerebras.ai/resources/openai", "2026-12-01"),
    models_source=(
        "https://inference-docs.cerebras.ai/capabilities/reasoning",
        "2026-12-01",
    ),
)

DEEPINFRA = Vendor(
    name="deepinfra",
    # https://deepinfra.com/docs/advanced/openai_api, read 2026-11-30
    base_url="https://api.deepinfra.com/v1/openai",
    key_names=("DEEPINFRA_API_KEY", "DEEPINFRA_API_TOKEN"),
    facts=_OPEN_MODELS,
    example="meta-llama/Llama-3.3-70B-Instruct-Turbo",
    source=("https://deepinfra.com/docs/advanced/openai_api", "2026-11-30"),
)

CLOUDFLARE = Vendor(
    name="cloudflare",
    # https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility,
    # read 2026-11-30
    base_url="https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1",
    key_names=("CLOUDFLARE_API_KEY", "CLOUDFLARE_API_TOKEN"),
    formats=("chat", "responses"),
    facts=_OPEN_MODELS,
    example="@cf/meta/llama-3.3-70b-instruct-fp8-fast",
    source=(
        "https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility",
        "2026-11-30",
    ),
)

LMSTUDIO = Vendor(
    name="lmstudio",
    base_url="http://localhost:1234/v1",
    keyless=True,
    url_names=("LMSTUDIO_BASE_URL",),
    formats=("chat", "responses", "messages"),
    facts=_OPEN_MODELS,
    example="qwen/qwen3-8b",
    source=("https://lmstudio.ai/docs/api/openai-api", "2026-12-01"),
)

LLAMACPP = Vendor(
    name="llamacpp",
    base_url="http://localhost:8080/v1",
    keyless=True,
    url_names=("LLAMACPP_BASE_URL",),
    formats=("chat", "responses", "messages"),
    # Of tool_choice it honours the words only, and one grammar cannot serve both tools
    # and an answer; what the newer formats say of a schema it does not read: run with
    # b11434.
    facts=ModelFacts(tool_choices=_WORDS, output_with_tools=False, think_tags=True),
    models=(
        ModelRule(r"", {"structured_output": False}, format="responses"),
        ModelRule(r"", {"structured_output": False}, format="messages"),
    ),
    example="default",
    source=("https://github.com/ggml-org/llama.cpp (b11434)", "2026-11-30"),
    models_source=(
        "https://github.com/ggml-org/llama.cpp/blob/b11434/tools/server/server-chat.cpp",
        "2026-12-01",
    ),
)

VLLM = Vendor(
    name="vllm",
    base_url="http://localhost:8000/v1",
    key_names=("VLLM_API_KEY",),
    keyless=True,
    url_names=("VLLM_BASE_URL",),
    formats=("chat", "responses", "messages"),
    facts=_OPEN_MODELS,
    example="Qwen/Qwen3-8B",
    source=(
        "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
        "2026-11-30",
    ),
)

VENDORS: Tuple[Vendor, ...] = (
    OPENAI,
    ANTHROPIC,
    GOOGLE,
    AZURE,
    OPENROUTER,
    OLLAMA,
    GROQ,
    DEEPSEEK,
    XAI,
    MISTRAL,
    TOGETHER,
    FIREWORKS,
    CEREBRAS,
    DEEPINFRA,
    CLOUDFLARE,
    LMSTUDIO,
    LLAMACPP,
    VLLM,
)


def get_vendor(name: str) -> Optional[Vendor]:
    """Return the record called *name*, in capitals or not, or None."""
    return next((vendor for vendor in VENDORS if vendor.name == name.lower()), None)


@lru_cache(maxsize=256)
def find_facts(vendor: Vendor, model: str, format: str = "chat") -> ModelFacts:
    """Return what is known of *model* at *vendor*, asked in the wire format *format*.

    >>> find_facts(OPENAI, "gpt-5-mini").token_cap
    'max_completion_tokens'
    >>> find_facts(OPENAI, "my-own-model") == ModelFacts()
    True
    """
    changes: Dict[str, Any] = {}
    for rule in vendor.models:
        if rule.format in (None, format) and re.match(rule.pattern, model):
            changes.update(rule.facts)
    return replace(vendor.facts, **changes)
