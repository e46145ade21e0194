"""Quick dataclasses behave as frozen dataclasses do."""

from __future__ import annotations

import copy
import inspect
import pickle
import typing
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any, Dict, List

import pytest

from aeye import event, message, request, response, usage
from aeye.quick import quick


@dataclass(frozen=True)
class Plain:
    a: int
    b: List[int] = field(default_factory=list)
    values: Any = None
    c: str = "c"

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("a")
        object.__setattr__(self, "c", self.c * 2)


@quick
@dataclass(frozen=True)
class Quick(Plain):
    d: Dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Slow(Plain):
    d: Dict[str, int] = field(default_factory=dict)


@pytest.mark.parametrize("cls", [Quick, Slow])
def test_it_is_made_like_any_other(cls: Any) -> None:
    """By position and by name, with defaults, factories and ``__post_init__``."""
    made = cls(1, values=2)

    assert vars(made) == {"a": 1, "b": [], "values": 2, "c": "cc", "d": {}}
    assert cls(1).b is not cls(1).b
    assert list(vars(cls(1, [2], 3, "x", {"y": 4})).values()) == [
        1,
        [2],
        3,
        "xx",
        {"y": 4},
    ]
    assert replace(made, a=3) == cls(3, [], 2, "cc")
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
    with pytest.raises(FrozenInstanceError):
        made.a = 2
    with pytest.raises(ValueError, match="a"):
        cls(-1)
    for bad in ((), (1, [], 2, "c", {}, 6)):
        with pytest.raises(TypeError, match=f"{cls.__name__}.__init__|__init__"):
            cls(*bad)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        cls(1, z=2)


def test_it_says_what_it_takes() -> None:
    """The signature and its annotations are those that ``dataclass`` wrote."""
    assert str(inspect.signature(Quick)) == str(inspect.signature(Slow))
    assert typing.get_type_hints(Quick.__init__) == typing.get_type_hints(Slow.__init__)


MODULES = (event, message, request, response, usage)
VALUES = [
    value
    for module in MODULES
    for value in vars(module).values()
    if isinstance(value, type)
    and value.__module__ == module.__name__
    and getattr(getattr(value, "__dataclass_params__", None), "frozen", False)
]


@pytest.mark.parametrize("cls", VALUES)
def test_ours_take_their_fields_in_order(cls: Any) -> None:
    """The parameters of our values are their fields, and have their defaults."""
    parameters = inspect.signature(cls).parameters

    assert list(parameters) == [item.name for item in fields(cls)]
    assert typing.get_type_hints(cls.__init__)["return"] is type(None)
    for item in fields(cls):
        given = parameters[item.name].default
        assert repr(given) == "<factory>" or given in (item.default, inspect._empty)
