"""Annotations are resolved where they were written; docstrings are read."""

from __future__ import annotations

import functools
import sys
import typing
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Dict, List, Optional

import pytest

from aeye.errors import SchemaError
from aeye.schema import docstring_parts, type_hints

if TYPE_CHECKING:
    from collections import OrderedDict as Hidden


@dataclass
class Base:
    a: int
    c: ClassVar[int] = 3


@dataclass
class Derived(Base):
    b: Optional[Derived] = None
    i: InitVar[List[int]] = ()


def plain(a: int, b: "List[str]" = (), *rest: str, **more: Annotated[int, "n"]) -> None:  # type: ignore[assignment]  # noqa: UP037
    pass


def test_hints_of_a_function() -> None:
    """Text is evaluated in the function's module, notes kept."""
    assert type_hints(plain) == {
        "a": int,
        "b": List[str],
        "rest": str,
        "more": Annotated[int, "n"],
        "return": type(None),
    }


def test_hints_of_a_class() -> None:
    """A class has its bases' annotations, and ClassVar and InitVar are kept."""
    hints = type_hints(Derived)

    assert list(hints) == ["a", "c", "b", "i"]
    assert hints["a"] is int
    assert hints["b"] == Optional[Derived]
    assert hints["c"] == ClassVar[int]
    assert hints["i"].type == List[int]


def test_a_default_of_none_adds_nothing() -> None:
    """On no version does a default change the annotation."""

    def fn(a: int = None) -> None:  # type: ignore[assignment]  # noqa: RUF013
        pass

    assert type_hints(fn)["a"] is int


class Callable:
    def __call__(self, a: int) -> str:
        return ""

    def method(self, b: float) -> None:
        pass


@functools.wraps(plain)
def wrapped(*args: Any, **kwargs: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("fn", "name"),
    [
        (Callable(), "a"),
        (Callable().method, "b"),
        (functools.partial(plain, 1), "a"),
        (functools.partial(functools.partial(plain, 1), 2), "b"),
        (wrapped, "more"),
    ],
)
def test_hints_of_other_callables(fn: Any, name: str) -> None:
    """Methods, partials, wrapped functions and callable objects have hints too."""
    assert name in type_hints(fn)


def test_a_closure_is_in_reach() -> None:
    """What the function itself refers to from an enclosing one can be named."""

    class Inner:
        pass

    def uses(a: Inner) -> Inner:
        return Inner()

    def forgets(a: Inner) -> None:
        pass

    assert type_hints(uses)["a"] is Inner
    with pytest.raises(SchemaError, match=r"forgets\.a: 'Inner' is not known"):
        type_hints(forgets)


def test_a_closure_that_is_not_filled_yet() -> None:
    """A name that gets its value later is an unknown name."""

    def uses(a: Late) -> None:
        Late()

    with pytest.raises(SchemaError, match="'Late' is not known"):
        type_hints(uses)

    class Late:
        pass

    assert type_hints(uses)["a"] is Late


def test_a_name_for_type_checkers_only_is_named() -> None:
    """The error names the annotation that cannot be resolved, and what to do."""

    def fn(ctx: Hidden, a: int) -> None:
        pass

    with pytest.raises(
        SchemaError, match=r"'Hidden' is not known.*import it at run time"
    ):
        type_hints(fn)
    assert type_hints(fn, skip=["ctx"])["a"] is int


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ("List[", "cannot resolve 'List\\['"),
        ("typing.Nothing", "cannot resolve"),
        ("3 + 'x'", "is not a type"),
        ("typing.Optional[int, str]", "is not a type"),
    ],
)
def test_what_is_no_annotation_is_refused(hint: str, message: str) -> None:
    """Bad syntax and things that are no types are SchemaErrors."""

    def fn(a: Any) -> None:
        pass

    fn.__annotations__ = {"a": hint}
    with pytest.raises(SchemaError, match=message):
        type_hints(fn)


def test_new_unions_on_old_pythons() -> None:
    """``int | None`` is read where Python can, else the error says how to write it."""

    def fn(a: int | None) -> None:
        pass

    if sys.version_info >= (3, 10):
        assert type_hints(fn)["a"] == Optional[int]
    else:
        with pytest.raises(SchemaError, match=r"write Optional\[\.\.\.\]"):
            type_hints(fn)


def test_a_class_that_is_not_in_a_module() -> None:
    """A class made from nowhere still has annotations."""
    made = type("Made", (), {"__annotations__": {"a": int}, "__module__": "nowhere"})

    assert type_hints(made) == {"a": int}
    assert type_hints(typing.cast(Any, len)) == {}


DOCS: Dict[str, tuple[str, str, dict[str, str]]] = {
    "none": ("", "", {}),
    "summary": ("One line.", "One line.", {}),
    "google": (
        """Do it.

        More text
        of it.

        Args:
            a: The a.
            b (int, optional): The b,
                and more.
            *rest: The rest.
            **more (Dict[str, Tuple[int]]): More.
                Note: even more.

            c: After a gap.
            d:
                Alone.
            e:

        Returns:
            x: Not a parameter.

        Tail.
        """,
        "Do it.\n\nMore text\nof it.",
        {
            "a": "The a.",
            "b": "The b, and more.",
            "rest": "The rest.",
            "more": "More. Note: even more.",
            "c": "After a gap.",
            "d": "Alone.",
        },
    ),
    "numpy": (
        """Do it.

        Parameters
        ----------
        a : int
            The a.
        b, c : {1, 2}, optional
            The b
            and c.
        *args
            Rest.
        d : str

        Returns
        -------
        x : int
            Not one.

        Notes
        -----
        Nothing.
        """,
        "Do it.",
        {"a": "The a.", "b": "The b and c.", "c": "The b and c.", "args": "Rest."},
    ),
    "rest": (
        """Do it.

        :param a: The a.
        :param int b: The b
            and more.
        :type a: int
        :param dict[str, int] c: The c.
        :returns: x
        :raises ValueError: never
        """,
        "Do it.",
        {"a": "The a.", "b": "The b and more.", "c": "The c."},
    ),
    "attributes": (
        """A thing.

        Attributes:
            a: The a.
        """,
        "A thing.",
        {"a": "The a."},
    ),
    "a section with nothing in it": ("Do it.\n\n    Args:\n    ", "Do it.", {}),
    "words that look like a section": (
        """Example of a thing.

        Example
        of another: thing.
        """,
        "Example of a thing.\n\nExample\nof another: thing.",
        {},
    ),
    "text before the first entry": (
        """Do it.

        Args:
            the arguments
            a: The a.
        """,
        "Do it.",
        {"a": "The a."},
    ),
}


@pytest.mark.parametrize("case", DOCS)
def test_docstrings(case: str) -> None:
    """Google, NumPy and reST docstrings give a summary and a text per parameter."""
    doc, summary, parameters = DOCS[case]

    def fn() -> None:
        pass

    fn.__doc__ = doc
    assert docstring_parts(fn) == (summary, parameters)


def test_no_docstring() -> None:
    """A docstring that is missing, or is no text, is empty."""

    def fn() -> None:
        pass

    assert docstring_parts(fn) == ("", {})
