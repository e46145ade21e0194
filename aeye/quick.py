"""Frozen dataclasses that are made quickly.

``dataclass(frozen=True)`` writes an ``__init__`` that calls ``object.__setattr__`` for
each field. A streamed answer is thousands of such values, and what they are made of
is most of what reading it costs.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Dict, Type, TypeVar

__all__ = ["quick"]

_C = TypeVar("_C")


class _Made:
    """Stands for what a factory makes, as the default of a parameter."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Made()


def quick(cls: Type[_C]) -> Type[_C]:
    """Give the frozen dataclass *cls* an ``__init__`` that does the same, sooner.

    It puts all fields where ``object.__setattr__`` would, into ``__dict__``.

    >>> @quick
    ... @dataclasses.dataclass(frozen=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(y=2, x=1) == Point(1, 2)
    (Point(x=1, y=0), True)
    """
    made: Any = cls
    defaults: Dict[str, Any] = {}
    factories: Dict[str, Any] = {}
    parameters, lines = ["self"], ["__values = self.__dict__"]
    for field in dataclasses.fields(made):
        name = value = field.name
        if field.default_factory is not dataclasses.MISSING:
            factories[name] = field.default_factory
            parameters.append(f"{name}=_MADE")
            value = f"_factories[{name!r}]() if {name} is _MADE else {name}"
        elif field.default is not dataclasses.MISSING:
            defaults[name] = field.default
            parameters.append(f"{name}=_defaults[{name!r}]")
        else:
            parameters.append(name)
        lines.append(f"__values[{name!r}] = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    inner = f"def __init__({', '.join(parameters)}):\n  " + "\n  ".join(lines)
    text = f"def make(_MADE, _defaults, _factories):\n {inner}\n return __init__"
    names: Dict[str, Any] = {}
    exec(text, vars(sys.modules[cls.__module__]), names)
    init = names["make"](_MADE, defaults, factories)
    init.__qualname__ = made.__init__.__qualname__
    init.__annotations__ = made.__init__.__annotations__
    made.__init__ = init
    return cls
