"""Keys, and taking whatever is secret out of errors and pickles."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Mapping
from urllib.parse import quote, unquote_plus

from .wire import map_texts, mend_text

__all__ = ["ApiKey", "Mask", "bare_url", "public_url"]

# What is shorter is a placeholder, or a word.
_SHORTEST = 8
# Parameters of an address that are no secret: Azure's and Gemini's.
_PUBLIC = frozenset({"alt", "api-version"})


class ApiKey:
    """A key, or the names of the environment variables that hold it.

    The key is in no repr and in no pickle: where a pickle is opened, the environment
    is asked again.
    """

    def __init__(self, value: str | None, names: tuple[str, ...]) -> None:
        self._value = value
        self.names = names

    def get(self) -> str | None:
        """Return the key, or None where there is none."""
        if self._value is not None:
            return self._value
        found = (os.environ.get(name, "").strip() for name in self.names)
        return next((value for value in found if value), None)

    @property
    def origin(self) -> str:
        """Where the key comes from, or what would be one: for a message."""
        if self._value is not None:
            return "the key was given as api_key="
        for name in self.names:
            if os.environ.get(name, "").strip():
                return f"the key is from {name}"
        names = " or ".join(self.names)
        return f"there is no key: {names and f'set {names}, or '}pass api_key="

    def __repr__(self) -> str:
        return f"ApiKey({self.names!r})"

    def __getstate__(self) -> Dict[str, Any]:
        return {"names": self.names}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self._value = None
        self.names = state["names"]

    def __deepcopy__(self, memo: Dict[int, Any]) -> ApiKey:
        return self


class Mask:
    """Takes the secrets of one provider out of what is to be shown.

    They are the key, the values of the caller's headers, and what stands in the query
    of the address or before its ``@``; each also as JSON and an address write it.
    """

    def __init__(
        self, key: str | None, headers: Mapping[str, str], base_url: str
    ) -> None:
        found: Dict[str, str] = {}
        for value in _secrets(headers.values(), base_url):
            found.update(dict.fromkeys(_forms(value), "[secret]"))
        if key is not None:
            found.update(dict.fromkeys(_forms(key), "[key]"))
        # The longest first: one may be part of another.
        self._marks = sorted(found.items(), key=lambda pair: -len(pair[0]))

    def hide(self, text: str) -> str:
        """Return *text* without secrets, fit to be printed."""
        text = mend_text(text)
        for secret, mark in self._marks:
            if secret[:_SHORTEST] in text:
                text = _cover(text.replace(secret, mark), secret, mark)
        return text

    def clean(self, error: BaseException) -> None:
        """Take the secrets out of *error* and of all errors that it came from."""
        seen = set()
        waiting: List[Any] = [error]
        while waiting:
            exc = waiting.pop()
            if not isinstance(exc, BaseException) or id(exc) in seen:
                continue
            seen.add(id(exc))
            waiting += (exc.__cause__, exc.__context__, getattr(exc, "reason", None))
            waiting += exc.args
            exc.args = tuple(map(self._changed, exc.args))
            for name, value in list(vars(exc).items()):
                if isinstance(value, (str, dict, list, tuple)):
                    exc.__dict__[name] = self._changed(value)
            if isinstance(exc, OSError) and isinstance(exc.strerror, str):
                exc.strerror = self.hide(exc.strerror)

    def _changed(self, value: Any) -> Any:
        try:
            return map_texts(value, self.hide)
        except RecursionError:
            return "[it nests too deeply]"


def _secrets(headers: Any, url: str) -> Iterator[str]:
    for value in headers:
        yield value
        yield value.rpartition(" ")[2]  # "Bearer …"
    user, at, _ = url.partition("://")[2].partition("/")[0].rpartition("@")
    if at:
        yield user
        yield from user.split(":", 1)
    for name, value in _query(url):
        if name not in _PUBLIC:
            yield value
            yield unquote_plus(value)


def _query(url: str) -> list[tuple[str, str]]:
    parts = url.partition("?")[2].split("&")
    pairs = (part.partition("=") for part in parts)
    # A parameter without a name is all value.
    return [(name, value) if mark else ("", name) for name, mark, value in pairs]


def _forms(secret: str) -> set[str]:
    """Return the ways to write *secret*; none if it is too short to be one."""
    if len(secret) < _SHORTEST:
        return set()
    as_json = json.dumps(secret)[1:-1]
    forms = (secret, as_json, as_json.replace("/", "\\/"), repr(secret)[1:-1])
    return {*forms, quote(secret, safe="")}


def _cover(text: str, secret: str, mark: str) -> str:
    """Cover what is left of *secret* where a quotation of it was cut."""
    at = text.find(secret[:_SHORTEST])
    while at >= 0:
        end = at + _SHORTEST
        while end < len(text) and secret.startswith(text[at : end + 1]):
            end += 1
        if text[end : end + 1] in ("", "'", '"', "…"):
            text = f"{text[:at]}{mark}{text[end:]}"
            end = at + len(mark)
        at = text.find(secret[:_SHORTEST], end)
    return text


def bare_url(url: str) -> str:
    """Return *url* without what may be secret in it, for a message.

    >>> bare_url("ftp://me:pw@host/v1?key=k"), bare_url("host:1")
    ('ftp://host/v1', 'host:1')
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "", url
    rest = rest.rpartition("@")[2].partition("?")[0].partition("#")[0]
    return f"{scheme.rpartition('@')[2]}{mark}{rest}"


def public_url(url: str) -> str:
    """Return *url* without what may be secret in it, still to be asked at.

    >>> public_url("https://host/v1?api-version=1&key=k")
    'https://host/v1?api-version=1'
    """
    known = [f"{name}={value}" for name, value in _query(url) if name in _PUBLIC]
    return bare_url(url) + (f"?{'&'.join(known)}" if known else "")
