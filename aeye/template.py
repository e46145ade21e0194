"""Text with ``{{…}}`` in it, filled from data: a subset of Handlebars 4.7.

A `Template` is compiled once, to a tuple of closures, and never changes: any
number of threads may render it. Nothing is escaped, inserted values are never read
as template text again, and a template can call nothing but the helpers it was
given. ``docs/templates.md`` describes the language.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Dict, Tuple

from .template_expression import BUILT_IN, Helper, Program
from .template_frame import HelperOptions
from .template_program import compile_program

__all__ = ["HelperOptions", "Template"]


class Template:
    """A text with ``{{…}}`` in it, ready to be rendered.

    *helpers* maps a name to a function that ``{{name arg key=value}}`` calls with
    ``(arg, key=value)``; one with a parameter ``options`` is given `HelperOptions`
    and may be used as a block. *partials* maps a name to the text, or the
    `Template`, that ``{{> name}}`` inserts; a text uses the helpers, partials and
    strictness of this template, a `Template` its own. With *strict*, a look-up that
    finds nothing raises instead of rendering as nothing.

    >>> Template("Hello {{name}}, {{#each xs}}<{{this}}>{{/each}}").render(
    ...     {"name": "Ada", "xs": [1, 2.0]})
    'Hello Ada, <1><2>'

    Raises:
        TemplateError: the text or a partial cannot be read, or names a helper or
            partial that does not exist; with line and column.
    """

    __slots__ = ("_helpers", "_partials", "_program", "_strict", "_text")

    def __init__(
        self,
        text: str,
        *,
        helpers: Mapping[str, Helper] | None = None,
        partials: Mapping[str, str | Template] | None = None,
        strict: bool = False,
    ) -> None:
        _check_type("text", text, str)
        _check_type("strict", strict, bool)
        self._text = text
        self._strict = strict
        self._helpers = MappingProxyType(_checked_helpers(helpers))
        self._partials = MappingProxyType(_checked_partials(partials))
        programs = {
            name: partial if isinstance(partial, str) else partial._program
            for name, partial in self._partials.items()
        }
        self._program: Program = compile_program(text, self._helpers, programs, strict)

    @property
    def text(self) -> str:
        """The text it was made from."""
        return self._text

    @property
    def helpers(self) -> Mapping[str, Helper]:
        """The helpers by name, read-only."""
        return self._helpers

    @property
    def partials(self) -> Mapping[str, str | Template]:
        """The partials by name, read-only."""
        return self._partials

    @property
    def strict(self) -> bool:
        """Whether a look-up that finds nothing raises."""
        return self._strict

    def render(self, data: object = None) -> str:
        """Fill the template from *data*, a mapping or any object with attributes.

        What a property of *data* or a helper raises comes through as it is.

        Raises:
            TemplateError: strict, and a look-up found nothing; a partial's name that
                is computed names none; partials nest too deep; a printed value
                contains itself.
        """
        return self._program.render(data)

    def mentions(self, name: str) -> bool:
        """Whether the template looks *name* up in the data itself, in any spelling.

        ``{{x}}``, ``{{#if x.y}}``, ``{{@root.x}}`` and, one level down, ``{{../x}}``
        do; ``{{x}}`` within ``{{#each …}}`` does not, as it asks the item. Partials
        count. Where only the data can tell, the answer is True.

        >>> Template("{{#each xs}}{{x}}{{/each}}").mentions("x")
        False
        """
        _check_type("name", name, str)
        return self._program.mentions(name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Template):
            return NotImplemented
        return self._state() == other._state()

    def __hash__(self) -> int:
        # Helpers may be unhashable: equal ones have equal names.
        helpers, partials = frozenset(self._helpers), frozenset(self._partials.items())
        return hash((self._text, helpers, partials, self._strict))

    def __repr__(self) -> str:
        shown = self._text if len(self._text) <= 60 else self._text[:57] + "..."
        said = [repr(shown)]
        for key in ("helpers", "partials"):
            names = getattr(self, key)
            if names:
                said.append(f"{key}={{{', '.join(map(repr, names))}}}")
        if self._strict:
            said.append("strict=True")
        return f"Template({', '.join(said)})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return _rebuild, self._state()

    def _state(self) -> Tuple[str, Dict[str, Helper], Dict[str, Any], bool]:
        return self._text, dict(self._helpers), dict(self._partials), self._strict


def _rebuild(
    text: str, helpers: Dict[str, Helper], partials: Dict[str, Any], strict: bool
) -> Template:
    return Template(text, helpers=helpers, partials=partials, strict=strict)


def _check_type(name: str, value: object, wanted: type) -> None:
    if not isinstance(value, wanted):
        kind = type(value).__name__
        raise TypeError(f"{name} is a {wanted.__name__}, not {kind}")


def _checked_helpers(helpers: Mapping[str, Helper] | None) -> Dict[str, Helper]:
    for name, helper in _checked_names("helpers", helpers).items():
        if name in BUILT_IN:
            raise ValueError(f"helpers: {name!r} is built in; choose another name")
        if not callable(helper):
            raise TypeError(
                f"helpers[{name!r}] is a function, not {type(helper).__name__}"
            )
        if inspect.iscoroutinefunction(helper):
            raise TypeError(
                f"helpers[{name!r}] is an async function; nothing is awaited here"
            )
    return dict(helpers or {})


def _checked_partials(
    partials: Mapping[str, str | Template] | None,
) -> Dict[str, str | Template]:
    for name, partial in _checked_names("partials", partials).items():
        if not isinstance(partial, (str, Template)):
            raise TypeError(
                f"partials[{name!r}] is a str or a Template, "
                f"not {type(partial).__name__}"
            )
    return dict(partials or {})


def _checked_names(what: str, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} is a mapping, not {type(given).__name__}")
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"{what} are named by a str, not {name!r}")
        if not name:
            raise ValueError(f"{what} need names that are not empty")
    return given
