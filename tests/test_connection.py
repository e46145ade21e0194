"""``connect``: names, keys, addresses, and what is wrong with them."""

from __future__ import annotations

import os
import pickle
from typing import Any, Iterator

import pytest
import requests

from aeye.connection import connect, default_context
from aeye.context import Context
from aeye.errors import NoModelError
from aeye.provider import Provider
from aeye.vendor import VENDORS


@pytest.fixture
def environ() -> Iterator[Any]:
    """Sets variables, and takes them back."""
    before = dict(os.environ)
    yield os.environ
    os.environ.clear()
    os.environ.update(before)


def provider(ctx: Context) -> Provider:
    found: Any = ctx.execute.__self__  # type: ignore[union-attr]
    assert ctx.stream.__self__ is found and ctx.prepare.__self__ is found
    return found


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_every_vendor(vendor: Any, environ: Any) -> None:
    """Each vendor's example connects with a key, in the format it prefers."""
    places = {"CLOUDFLARE_ACCOUNT_ID": "a1", "AZURE_OPENAI_ENDPOINT": "https://my.com/"}
    environ.update(places)

    found = provider(connect(f"{vendor.name}:{vendor.example}", api_key="k"))

    address = vendor.base_url
    for name, value in places.items():
        address = address.replace(f"{{{name}}}", value.rstrip("/"))
    assert (found.vendor, found.model) == (vendor, vendor.example)
    assert found.base_url == address
    assert found.wire.name == vendor.formats[0]


@pytest.mark.parametrize(
    ("options", "format"),
    [
        ({}, "responses"),
        ({"format": "chat"}, "chat"),
        ({"base_url": "http://localhost/v1"}, "chat"),
        ({"base_url": "http://localhost/v1", "format": "responses"}, "responses"),
        ({"base_url": "https://api.openai.com/v1/"}, "responses"),
    ],
)
def test_format(options: Any, format: str) -> None:
    """OpenAI itself is asked in its newer format, whoever imitates it in the older."""
    assert provider(connect("openai:m", api_key="k", **options)).wire.name == format


@pytest.mark.parametrize(
    ("name", "options", "format", "url"),
    [
        ("anthropic:m", {}, "messages", "https://api.anthropic.com"),
        ("anthropic:m", {"base_url": "https://x"}, "messages", "https://x"),
        ("anthropic:m", {"format": "chat"}, "chat", "https://api.anthropic.com/v1"),
        (
            "google:m",
            {"format": "chat"},
            "chat",
            "https://generativelanguage.googleapis.com/v1beta/openai",
        ),
        ("google:m", {"base_url": "https://x/v1beta"}, "gemini", "https://x/v1beta"),
        ("vllm:m", {"format": "messages"}, "messages", "http://localhost:8000/v1"),
    ],
)
def test_formats_of_other_vendors(
    name: str, options: Any, format: str, url: str
) -> None:
    """A vendor with a format of its own is asked in it, at any address."""
    found = provider(connect(name, api_key="k", **options))

    assert (found.wire.name, found.base_url) == (format, url)


def test_format_at_an_address_from_the_environment(environ: Any) -> None:
    """An address in the environment is somebody else's as well."""
    environ["OPENAI_BASE_URL"] = "http://localhost/v1"

    assert provider(connect("openai:m", api_key="k")).wire.name == "chat"


def test_addresses_of_azure(environ: Any) -> None:
    """With a version the deployment is in the path, where the format has such a one."""
    environ["AZURE_OPENAI_ENDPOINT"] = "https://my.openai.azure.com/"
    plain = provider(connect("azure:m", api_key="k")).base_url
    environ["OPENAI_API_VERSION"] = "2026-01-01"
    chat = provider(connect("azure:m", api_key="k")).base_url
    other = provider(connect("azure:m", api_key="k", format="responses")).base_url

    assert plain == other == "https://my.openai.azure.com/openai/v1"
    assert chat == (
        "https://my.openai.azure.com/openai/deployments/{model}?api-version=2026-01-01"
    )


@pytest.mark.parametrize(
    ("name", "variable"),
    [("azure", "AZURE_OPENAI_ENDPOINT"), ("cloudflare", "CLOUDFLARE_ACCOUNT_ID")],
)
def test_address_that_lacks_a_name(name: str, variable: str, environ: Any) -> None:
    """An address that cannot be filled in is an error with both ways out."""
    environ.pop(variable, None)

    with pytest.raises(ValueError, match=f"set {variable}, or pass base_url="):
        connect(f"{name}:m", api_key="k")


def test_colons_in_a_model() -> None:
    """Only the first colon parts vendor and model."""
    assert provider(connect("ollama:llama3:8b")).model == "llama3:8b"


@pytest.mark.parametrize("vendor", [v for v in VENDORS if not v.keyless])
def test_missing_key(vendor: Any) -> None:
    """A missing key is an error at once, which names the variable."""
    with pytest.raises(ValueError, match=vendor.key_names[0]):
        connect(f"{vendor.name}:m")


def test_key_from_the_environment(environ: Any) -> None:
    """The vendor's variable holds the key; blanks around it are dropped."""
    environ["GROQ_API_KEY"] = " k\n"

    assert provider(connect("groq:m")).key.get() == "k"


def test_headers_instead_of_a_key() -> None:
    """Whoever brings headers may have a key of another kind in them."""
    assert provider(connect("openai:m", headers={"api-key": "k"})).key.get() is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openia:gpt-5", "did you mean 'openai:gpt-5'"),
        ("rehersal", "did you mean 'rehearsal'"),
        ("rehearsel:openai", "did you mean 'rehearsal:openai'"),
        ("opnai", "did you mean 'openai:gpt-5-mini'"),
        ("OpenAI/gpt-5-mini", "did you mean 'openai:gpt-5-mini'"),
        ("zzz:m", "there is no vendor 'zzz'"),
        ("gpt-5-mini", "did you mean 'openai:gpt-5-mini'"),
        ("o3", "did you mean 'openai:o3'"),
        ("claude-opus-5", "did you mean 'anthropic:claude-opus-5'"),
        ("gemini-3.6-flash", "did you mean 'google:gemini-3.6-flash'"),
        ("grok-4", "did you mean 'xai:grok-4'"),
        ("mistral-large-latest", "did you mean 'mistral:mistral-large-latest'"),
        ("deepseek-chat", "did you mean 'deepseek:deepseek-chat'"),
        ("gemini:gemini-2.5-pro", "did you mean 'google:gemini-2.5-pro'"),
        ("claude:opus", "did you mean 'anthropic:claude-sonnet-5-5'"),
        ("gpt:5", "did you mean 'openai:gpt-5-mini'"),
        ("llama.cpp:x", "did you mean 'llamacpp:x'"),
        ("llama3.2", "say 'VENDOR:llama3.2', with one of openai, "),
        (":gpt-5", "did you mean 'openai:gpt-5'"),
        (":", "say 'VENDOR:', with one of openai"),
        ("openai:", "names no model"),
        ("openai", "names no model: say 'openai:gpt-5-mini'"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    """A wrong name is an error that says what to write."""
    with pytest.raises(ValueError, match=message):
        connect(name, api_key="k")


def test_no_name() -> None:
    """Without a name the error says both ways out."""
    with pytest.raises(NoModelError, match="AEYE_MODEL"):
        connect()
    assert default_context() is None


def test_name_from_the_environment(environ: Any) -> None:
    """AEYE_MODEL names the model; its Context is made once."""
    environ["AEYE_MODEL"] = "ollama:a"
    first = default_context()
    environ["AEYE_MODEL"] = "ollama:b"
    other = default_context()
    environ["AEYE_MODEL"] = "ollama:a"

    assert first is default_context()
    assert other is not first
    assert provider(connect()).model == "a"
    for i in range(20):
        environ["AEYE_MODEL"] = f"ollama:m{i}"
        default_context()
    environ["AEYE_MODEL"] = "ollama:a"
    assert default_context() is not first


def test_address(environ: Any) -> None:
    """An address is given, in the environment, or the vendor's own, in this order."""
    environ["OPENAI_BASE_URL"] = "http://env/v1"

    assert provider(connect("openai:m", api_key="k")).base_url == "http://env/v1"
    found = connect("openai:m", api_key="k", base_url="http://given/v1/?v=1")
    assert provider(found).base_url == "http://given/v1/?v=1"


@pytest.mark.parametrize(
    "url",
    [
        "api.openai.com",
        "ftp://x",
        "http://",
        "https://me:pw@x/v1",
        "ftp://me:pw@x",
        "ftp://x/?key=pw",
        "me:pw@x",
        "http://[x/v1?pw",
        "http://x:1:2/v1#pw",
    ],
)
def test_wrong_addresses(url: str) -> None:
    """An address is http(s) and holds no password; the error shows nothing secret."""
    with pytest.raises(ValueError, match="base_url") as caught:
        connect("openai:m", api_key="k", base_url=url)

    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "end",
    ["/chat/completions", "/responses/", "/messages", "/models/m:generateContent"],
)
def test_addresses_with_their_path(end: str) -> None:
    """An address that was copied whole is refused, with what to leave out."""
    with pytest.raises(ValueError, match="base_url is the address before"):
        connect("openai:m", api_key="k", base_url=f"https://x/v1{end}")


def test_formats_elsewhere() -> None:
    """At another address a vendor may speak what it does not speak at its own."""
    ctx = connect("openai:m", api_key="k", base_url="https://x", format="gemini")

    assert provider(ctx).wire.name == "gemini"


def test_blanks_around_names() -> None:
    """Blanks around a name are none of it."""
    found = provider(connect(" openai : gpt-5 ", api_key="k"))

    assert (found.vendor.name, found.model) == ("openai", "gpt-5")


def test_vendors_in_capitals() -> None:
    """A vendor's name is known however it is written; a model's is as it is."""
    assert provider(connect("OpenAI:GPT-5", api_key="k")).model == "GPT-5"
    assert connect("Rehearsal").execute is not None


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"format": "grpc"}, ValueError, "format is one of"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"timeout": (1, 2, 3)}, ValueError, "timeout"),
        ({"timeout": "10"}, ValueError, "timeout"),
        ({"max_retries": -1}, ValueError, "max_retries"),
        ({"max_retries": True}, ValueError, "max_retries"),
        ({"api_key": " "}, ValueError, "api_key"),
        ({"api_key": "schlüssel"}, ValueError, "api_key"),
        ({"api_key": "Bearer sk-secret"}, ValueError, "no 'Bearer'"),
        ({"headers": {"X": 1}}, TypeError, "headers"),
        ({"headers": [("X", "1")]}, TypeError, "headers is a dict, not a list"),
        ({"facts": [1]}, TypeError, "facts is a dict"),
        ({"session": "s"}, TypeError, "session is a requests.Session"),
        ({"format": "gemini"}, ValueError, "openai speaks responses and chat, not gem"),
        ({"headers": {"X": "sk-secret\n"}}, ValueError, "the header 'X'"),
        ({"headers": {"X": "é"}}, ValueError, "the header 'X'"),
        ({"facts": {"strict": True}}, TypeError, "facts has no 'strict'"),
        ({"signall": None}, TypeError, "did you mean 'signal'"),
    ],
)
def test_wrong_options(options: Any, kind: Any, message: str) -> None:
    """A wrong option is an error at the door with its name; no key is shown."""
    with pytest.raises(kind, match=message) as caught:
        connect("openai:m", **{"api_key": "sk-secret", **options})

    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("what", ["model", "base_url", "api_key"])
def test_what_is_no_text(what: str) -> None:
    """Names, addresses and keys are texts; what was given is not shown."""
    wrong: Any = {"model": "openai:m", what: 5555}
    with pytest.raises(TypeError, match=f"{what} is a text, not a int") as caught:
        connect(**wrong)

    assert "5555" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("baseurl", "'base_url'"),
        ("baseUrl", "'base_url'"),
        ("api_keys", "'api_key'"),
        ("apikey", "'api_key'"),
        ("max_retry", "'max_retries'"),
        ("timeot", "'timeout'"),
        ("header", "'headers'"),
        ("temperature", r"config=\{'temperature'"),
        ("max_tokens", r"config=\{'max_tokens'"),
        ("temprature", "'temperature', which goes into config"),
    ],
)
def test_misspelt_options(option: str, meant: str) -> None:
    """What is nearly an option, or a setting of a request, is no field of one's own."""
    for name in ("ollama:m", "rehearsal"):
        with pytest.raises(TypeError, match=meant):
            connect(name, **{option: 0})


@pytest.mark.parametrize("option", ["sede", "seeds", "mistake", "delays"])
def test_misspelt_options_of_a_rehearsal(option: str) -> None:
    """A rehearsal's own options are looked at where there is a rehearsal."""
    with pytest.raises(TypeError, match="did you mean"):
        connect("rehearsal", **{option: 1})
    assert getattr(connect("ollama:m", **{option: 1}), option) == 1


def test_fields_of_ones_own() -> None:
    """Names that are near to nothing are fields of the Context."""
    ctx = connect("ollama:m", user=1, db=2, mode=3, name=4, seed=5, keys=6)

    assert (ctx.user, ctx.db, ctx.mode, ctx.name, ctx.seed, ctx.keys) == (*range(1, 7),)


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "x"},
        {"timeout": "5"},
        {"max_retries": -1},
        {"format": "grpc"},
        {"headers": {"X": "é"}},
    ],
)
def test_wrong_options_of_a_rehearsal(options: Any) -> None:
    """What no real model would take, a rehearsal does not take either."""
    with pytest.raises(ValueError, match=next(iter(options))[:6]):
        connect("rehearsal", **options)
    connect("rehearsal", base_url="http://x", timeout=5, max_retries=0, api_key="k")


def test_options() -> None:
    """Options reach the provider, everything else the Context."""
    session = requests.Session()
    ctx = connect(
        "openai:m",
        api_key="k",
        format="chat",
        timeout=5,
        max_retries=7,
        session=session,
        facts={"tools": False, "tool_choices": ["auto"], "efforts": ["low"]},
        user="ada",
        context_window=99,
    )
    found = provider(ctx)

    assert (ctx.user, ctx.context_window) == ("ada", 99)
    assert found.transport.timeout == (5, 5)  # type: ignore[attr-defined]
    assert found.retry.max_retries == 7
    facts = found.facts_of("m")
    assert (facts.tools, facts.tool_choices) == (False, frozenset({"auto"}))
    assert facts.efforts == ("low",)


def test_known_window() -> None:
    """The Context learns the model's window where it is known."""
    assert connect("openai:gpt-4o", api_key="k").context_window == 128_000
    assert connect("openai:m", api_key="k").context_window is None


def test_close() -> None:
    """A Context that was never used can be closed, and used as a ``with``."""
    with connect("ollama:m") as ctx:
        ctx.close()


def test_rehearsal() -> None:
    """The offline model needs no key."""
    assert connect("rehearsal", seed=1).execute is not None
    assert connect("rehearsal:openai").execute is not None


def test_no_key_in_a_repr() -> None:
    """Neither the Context nor the provider shows a key or a header."""
    ctx = connect("openai:m", api_key="sk-secret", headers={"X-Key": "sk-secret"})

    shown = (
        repr(ctx) + repr(provider(ctx)) + repr(provider(ctx).key) + repr(ctx.execute)
    )

    assert "sk-secret" not in shown
    assert "openai:m" in shown


@pytest.mark.parametrize("format", ["chat", "responses", "messages", "gemini"])
def test_what_connect_makes_can_be_pickled(format: Any) -> None:
    """A context goes into another process, whatever its model is asked in."""
    url = "https://example.org/v1"
    ctx = connect("vllm:m", api_key="sk-secret", base_url=url, format=format)

    data = pickle.dumps(ctx)

    assert b"sk-secret" not in data
    assert provider(pickle.loads(data)).wire == provider(ctx).wire
