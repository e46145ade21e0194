"""``connect``: a name becomes a Context with a model in it."""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import threading
from typing import Any, Dict, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .context import Context
from .errors import NoModelError
from .provider import WIRES, Provider
from .request import Request
from .secret import ApiKey, bare_url
from .transport import HttpTransport, Retry, Timeout
from .vendor import VENDORS, Vendor, get_vendor
from .wire import ModelFacts, Wire

__all__ = ["connect", "default_context", "find_model"]

_REHEARSAL = "rehearsal"
_FACTS = {field.name for field in dataclasses.fields(ModelFacts)}
_OPTIONS: Tuple[str, ...] = (
    "api_key",
    "base_url",
    "format",
    "timeout",
    "max_retries",
    "session",
    "headers",
    "facts",
)
_REHEARSAL_OPTIONS = ("seed", "mistakes", "delay")
# What one call is asked. The names of a Context's own fields are not among them, nor
# is "name", which an application may well have a use for.
_SETTINGS = {field.name for field in dataclasses.fields(Request)}
_SETTINGS -= {"messages", "model", "name"}


def connect(  # noqa: PLR0913  # the public function's names are the contract
    model: str | None = None,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    format: str | None = None,
    timeout: float | Timeout = (10, 600),
    max_retries: int = 2,
    session: Any = None,
    headers: Mapping[str, str] | None = None,
    facts: Mapping[str, Any] | None = None,
    **context: Any,
) -> Context:
    """Return a Context whose model is *model*, written ``"vendor:model"``.

    Nothing is sent and nothing imported that talks to a network until the model is
    asked. Without *model* the environment's ``AEYE_MODEL`` names it.

    The key comes from *api_key* or the vendor's environment variable. *base_url* names
    another address that speaks the vendor's format. *timeout* is in seconds: to
    connect, and between two bytes; one number means both. *max_retries* is how often a
    call is repeated after a failure that may pass. *session*, a ``requests.Session``,
    is used instead of our own connections. *facts* are rows of ``ModelFacts`` for a
    model we describe wrongly. Everything else goes to the ``Context``, if it is not
    called almost as one of these is. ``"rehearsal"`` uses none of them.

    Raises:
        NoModelError: neither *model* nor ``AEYE_MODEL`` names one.
        ValueError: an unknown vendor, a missing key, or an address that is none.
        TypeError: an option that seems to be misspelt, or belongs into ``config=``.
    """
    name = model if model is not None else os.environ.get("AEYE_MODEL", "").strip()
    if not name:
        raise NoModelError(
            "no model: say connect('vendor:model'), such as 'openai:gpt-5-mini', or "
            "set AEYE_MODEL"
        )
    for what, value in (("model", name), ("base_url", base_url), ("api_key", api_key)):
        if not isinstance(value, (str, type(None))):
            raise TypeError(f"{what} is a text, not a {type(value).__name__}")
    if session is not None and not callable(getattr(session, "send", None)):
        raise TypeError(f"session is a requests.Session, not {session!r:.80}")
    name = name.strip()
    rehearses = name.partition(":")[0].strip().lower() == _REHEARSAL
    _check_names(context, rehearses)
    pause, retry = _timeout(timeout), Retry(_count("max_retries", max_retries))
    given, rows = _headers(headers), _facts(facts)
    if rehearses:
        # What a real model would not take is not taken here either.
        _check_url(base_url)
        _check_format(format)
        return _rehearse(name.partition(":")[2], context)
    vendor, model = find_model(name)
    key = _key(vendor, api_key, headers)
    address = _base_url(vendor, base_url, format)
    provider = Provider(
        vendor,
        _wire(vendor, format, address),
        key,
        address,
        model=model,
        facts=rows,
        headers=given,
        transport=HttpTransport(pause, session),
        retry=retry,
    )
    known = provider.facts_of(model)
    context.setdefault("context_window", known.context_window)
    ctx = Context(
        execute=provider.execute,
        stream=provider.stream,
        prepare=provider.prepare,
        **context,
    )
    return ctx.replace(_close=provider.close)


# One Context for each value of AEYE_MODEL, so that connections are shared.
_defaults: Dict[str, Context] = {}
_lock = threading.Lock()
_MAX_DEFAULTS = 16


def default_context() -> Context | None:
    """Return the Context that ``AEYE_MODEL`` names, or None where it is not set."""
    name = os.environ.get("AEYE_MODEL", "").strip()
    if not name:
        return None
    with _lock:
        if name not in _defaults:
            while len(_defaults) >= _MAX_DEFAULTS:
                _defaults.pop(next(iter(_defaults))).close()
            _defaults[name] = connect(name)
        return _defaults[name]


def _check_names(given: Mapping[str, Any], rehearses: bool) -> None:
    """Refuse what would be the application's own, but is hardly meant to be."""
    ours = _OPTIONS + (_REHEARSAL_OPTIONS if rehearses else ())
    for name in given:
        if name in _SETTINGS:
            raise TypeError(
                f"connect() has no {name!r}: it goes into config={{{name!r}: …}} of "
                "a prompt"
            )
        if name in ours:
            continue
        for option in ours:
            if _is_near(_plain(name), _plain(option)):
                raise TypeError(
                    f"connect() has no {name!r}: did you mean {option!r}? "
                    "(a name of your own must differ by more than one letter)"
                )
        for setting in _SETTINGS:
            # A short word is near to too many others.
            if len(setting) > 6 and _is_near(_plain(name), _plain(setting)):
                raise TypeError(
                    f"connect() has no {name!r}: did you mean {setting!r}, which "
                    f"goes into config={{{setting!r}: …}} of a prompt?"
                )


def _plain(name: str) -> str:
    """Return *name* without what is easily mistaken: case, underscores, plural."""
    name = name.lower().replace("_", "")
    return name[:-3] + "y" if name.endswith("ies") else name.rstrip("s")


def _is_near(a: str, b: str) -> bool:
    """Whether one letter added, dropped or changed, or two swapped, make *b* of *a*.

    >>> _is_near("sede", "seed"), _is_near("timeot", "timeout"), _is_near("a", "bc")
    (True, True, False)
    """
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    left, right = a[start:], b[start:]
    swapped = left[:2] == right[:2][::-1] and left[2:] == right[2:]
    return swapped or left[1:] == right or left == right[1:] or left[1:] == right[1:]


def _rehearse(target: str, options: Dict[str, Any]) -> Context:
    from .rehearsal import connect_rehearsal

    return connect_rehearsal(target or "lenient", **options)


def find_model(name: str) -> tuple[Vendor, str]:
    """Return the vendor and the model that *name* names.

    Raises:
        ValueError: it names none; the message says what was perhaps meant.
    """
    before, _, model = (part.strip() for part in name.partition(":"))
    vendor = get_vendor(before)
    if vendor is not None and model:
        return vendor, model
    if vendor is not None:
        raise ValueError(
            f"{name!r} names no model: say '{vendor.name}:{vendor.example}', "
            "for example"
        )
    known = ", ".join(vendor.name for vendor in VENDORS)
    if before and model:
        meant = _meant(before, model)
        hint = f"did you mean {meant!r}? " if meant else ""
        raise ValueError(
            f"there is no vendor {before!r} (in {name!r}): {hint}the vendors are "
            f"{known} and {_REHEARSAL}; another host that speaks one of their formats "
            "is named with base_url="
        )
    meant = _meant_alone(before or model)
    if meant:
        raise ValueError(
            f"{name!r} does not say who runs the model: did you mean {meant!r}?"
        )
    raise ValueError(
        f"{name!r} does not say who runs the model: say 'VENDOR:{before or model}', "
        f"with one of {known}"
    )


def _near(word: str, cutoff: float) -> str | None:
    names = [*(vendor.name for vendor in VENDORS), _REHEARSAL]
    near = difflib.get_close_matches(word.lower(), names, 1, cutoff)
    return near[0] if near else None


def _maker(model: str) -> Vendor | None:
    """Return the vendor whose own models have names like *model*."""
    return next((v for v in VENDORS if model.lower().startswith(v.prefixes)), None)


def _meant(before: str, model: str) -> str | None:
    """Return what *before*, which is no vendor, was perhaps to be, with its model."""
    vendor = _maker(before)
    if vendor is not None:
        own = model.lower().startswith(vendor.prefixes)
        return f"{vendor.name}:{model if own else vendor.example}"
    near = _near(before, 0.6)
    return f"{near}:{model}" if near else None


def _meant_alone(name: str) -> str | None:
    """Return what *name*, which has no colon, was perhaps to be."""
    before, slash, model = name.partition("/")
    if not slash:
        vendor = _maker(name)
        if vendor is not None:
            return f"{vendor.name}:{name}"
    near = _near(before, 0.75)
    if near is None or (slash and model):
        return near and f"{near}:{model}"
    vendor = get_vendor(near)
    return near if vendor is None else f"{near}:{vendor.example}"


def _base_url(vendor: Vendor, given: str | None, format: str | None) -> str:
    found = (os.environ.get(name, "").strip() for name in vendor.url_names)
    url = given or next((value for value in found if value), None)
    if url is None:
        if format is not None and format in WIRES and format not in vendor.formats:
            raise ValueError(
                f"{vendor.name} speaks {' and '.join(vendor.formats)}, not {format}; a "
                "host that does is named with base_url="
            )
        url = _own_url(vendor, format or vendor.formats[0])
    _check_url(url)
    return url


# How addresses end that were copied whole.
_PATHS = ("/chat/completions", "/v1/responses", "/v1/messages", ":generateContent")


def _check_url(url: str | None) -> None:
    if url is None:
        return
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.netloc)
        good = good and parts.port != 0  # which raises for one that is no number
    except ValueError:
        good = False
    if good and "@" in parts.netloc:
        raise ValueError(
            "base_url holds a user name or password; give them as headers="
        )
    path = parts.path.rstrip("/") if good else ""
    for end in _PATHS:
        if path.endswith(end):
            raise ValueError(
                f"base_url is the address before {end!r}, which is added: not "
                f"{bare_url(url)!r}"
            )
    if not good:
        # The original quotes the address, and secrets may be in it.
        raise ValueError(
            f"base_url is an http(s) address, not {bare_url(url)!r}"
        ) from None


# What an address takes from the environment.
_VARIABLE = re.compile(r"\{([A-Z0-9_]+)\}")


def _own_url(vendor: Vendor, format: str) -> str:
    """Return the vendor's own address for *format*, filled in."""
    forms = [url for name, url in vendor.url_forms if name == format]
    for url in (*forms, vendor.base_url):
        names = _VARIABLE.findall(url)
        missing = [name for name in names if not os.environ.get(name, "").strip()]
        if not missing:
            return _VARIABLE.sub(
                lambda found: os.environ[found[1]].strip().rstrip("/"), url
            )
    raise ValueError(
        f"no address for {vendor.name}: set {' and '.join(missing)}, or pass base_url="
    )


def _wire(vendor: Vendor, format: str | None, address: str) -> Wire:
    own = urlsplit(address).netloc == urlsplit(vendor.base_url).netloc
    usual = vendor.formats[0]
    if usual == "responses" and not own:
        # Behind another address, chat completions is likely all there is.
        usual = "chat"
    _check_format(format)
    return WIRES[usual if format is None else format]


def _check_format(format: str | None) -> None:
    if format is not None and format not in WIRES:
        raise ValueError(f"format is one of {sorted(WIRES)}, not {format!r}")


def _key(
    vendor: Vendor, given: str | None, headers: Mapping[str, str] | None
) -> ApiKey:
    if given is not None:
        given = given.strip()
        if not given or not given.isascii() or not given.isprintable():
            raise ValueError("api_key is printable ASCII text, and not empty")
        if " " in given:
            raise ValueError("api_key is the key alone: no 'Bearer', and no blanks")
    key = ApiKey(given, vendor.key_names)
    if key.get() is None and not vendor.keyless and not headers:
        raise ValueError(
            f"no key for {vendor.name}: set {' or '.join(vendor.key_names)}, or pass "
            "api_key="
        )
    return key


def _facts(given: Mapping[str, Any] | None) -> Tuple[Tuple[str, Any], ...]:
    found: Dict[str, Any] = {}
    if not isinstance(given, (Mapping, type(None))):
        raise TypeError(f"facts is a dict of rows, not {given!r:.80}")
    for name, value in (given or {}).items():
        if name not in _FACTS:
            raise TypeError(f"facts has no {name!r}; it has {sorted(_FACTS)}")
        if isinstance(value, (set, list)):
            value = frozenset(value) if name != "efforts" else tuple(value)
        found[name] = value
    return tuple(found.items())


def _headers(given: Mapping[Any, Any] | None) -> Optional[Dict[str, str]]:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise TypeError(f"headers is a dict, not a {type(given).__name__}")
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"headers are text, which {name!r} or its value is not")
        if not (name + value).isascii() or not (name + value).isprintable():
            raise ValueError(f"the header {name!r} is printable ASCII text")
    return dict(given)


def _timeout(given: Any) -> Timeout:
    pair: Any = given if isinstance(given, tuple) else (given, given)
    good = len(pair) == 2 and all(
        isinstance(n, (int, float)) and not isinstance(n, bool) and n > 0 for n in pair
    )
    if not good:
        raise ValueError(
            f"timeout is seconds, or (to connect, between bytes), not {given!r}"
        )
    connect, read = pair
    return connect, read


def _count(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f"{name} is a whole number from 0 on, not {value!r}")
