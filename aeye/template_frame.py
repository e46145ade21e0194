"""Where a rendering stands: ``this``, ``..``, ``@x`` and block parameters.

Also what a helper gets to see of it. Frames are made while a template is rendered,
one for each context that is entered, and nothing keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Sequence, Tuple

from .template_value import MISSING

__all__ = [
    "Body",
    "Data",
    "Evaluate",
    "Frame",
    "HelperOptions",
    "Part",
    "Step",
    "Write",
    "captured",
]


class Data:
    """The ``@`` variables of one level, and the level above."""

    __slots__ = ("outer", "values")

    def __init__(self, values: Dict[str, object], outer: Data | None) -> None:
        self.values = values
        self.outer = outer


class Frame:
    """What ``this``, ``..``, ``@x`` and block parameters mean at one place."""

    __slots__ = ("context", "data", "level", "locals", "outer")

    def __init__(
        self,
        context: object,
        outer: Frame | None,
        data: Data,
        local: Dict[str, object],
        level: int,
    ) -> None:
        self.context = context
        self.outer = outer
        self.data = data
        self.locals = local
        # How deep the partial that is being rendered is nested.
        self.level = level

    def enter(
        self,
        context: object,
        data: Data,
        params: Tuple[str, ...],
        values: Sequence[Any],
    ) -> Frame:
        """Make the frame of a block with its own ``this``.

        As in Handlebars, ``..`` counts contexts and not blocks: one that is the
        same as before opens no level.
        """
        outer = self.outer if _is_same(context, self.context) else self
        local = {**self.locals, **_bind(params, values)} if params else self.locals
        return Frame(context, outer, data, local, self.level)


def _is_same(one: object, other: object) -> bool:
    # Identity alone would depend on which numbers and texts Python shares.
    return one is other or (
        isinstance(one, (str, int, float)) and type(one) is type(other) and one == other
    )


def _bind(params: Tuple[str, ...], values: Sequence[Any]) -> Dict[str, object]:
    bound: Dict[str, object] = dict.fromkeys(params, MISSING)
    bound.update(zip(params, values))
    return bound


Write = Callable[[str], None]
Part = Callable[[Frame, Write], None]
# Renders if it applies, and tells; otherwise the next link of the chain is tried.
Step = Callable[[Frame, Write], bool]
Evaluate = Callable[[Frame], Any]


@dataclass(frozen=True)
class Body:
    """The inside of a block, and the names of its parameters."""

    params: Tuple[str, ...]
    parts: Tuple[Part, ...]


class HelperOptions:
    """What a helper with a parameter ``options`` is given beside its arguments.

    Valid while the helper runs.
    """

    __slots__ = ("_body", "_frame", "_inverse", "name")

    def __init__(
        self, name: str, frame: Frame, body: Body | None, inverse: Part | None
    ) -> None:
        # The name it was called by.
        self.name = name
        self._frame = frame
        self._body = body
        self._inverse = inverse

    @property
    def is_block(self) -> bool:
        """Whether it was called as ``{{#name}}…{{/name}}``."""
        return self._body is not None

    @property
    def context(self) -> object:
        """What ``this`` is where the helper is called."""
        return self._frame.context

    @property
    def data(self) -> Mapping[str, object]:
        """The ``@`` variables there, ``root`` and in a loop ``index``, read-only."""
        return MappingProxyType(self._frame.data.values)

    def fn(
        self,
        context: object = MISSING,
        *,
        data: Mapping[str, object] | None = None,
        params: Sequence[object] = (),
    ) -> str:
        """Render the block, with *context* as ``this`` if it is given.

        *data* adds ``@`` variables and *params* are the values of the block
        parameters, in order. Not a block: the empty string.
        """
        if self._body is None:
            return ""
        frame = self._frame
        below = frame.data
        if data is not None:
            below = Data({**below.values, **data}, below)
        chosen = frame.context if context is MISSING else context
        inner = frame.enter(chosen, below, self._body.params, params)
        return captured(self._body.parts, inner)

    def inverse(self, context: object = MISSING) -> str:
        """Render what follows ``{{else}}``; without one, the empty string."""
        if self._inverse is None:
            return ""
        frame = self._frame
        if context is not MISSING:
            frame = frame.enter(context, frame.data, (), ())
        return captured((self._inverse,), frame)


def captured(parts: Sequence[Part], frame: Frame) -> str:
    """Render *parts* to a text of their own."""
    written: List[str] = []
    for part in parts:
        part(frame, written.append)
    return "".join(written)
