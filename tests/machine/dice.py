"""Choices out of bytes: the same bytes, the same choices.

Drawing one text of bytes costs a property test a hundredth of what drawing a tree of
values costs. What is chosen first is the plainest, and stands at a place of its own:
so a failing script shrinks byte by byte without becoming another one.
"""

from __future__ import annotations

import os
from typing import Callable, Sequence, Tuple, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

T = TypeVar("T")


class Dice:
    """Bytes that are used up choice by choice; where none is left, all are 0."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def of(self, values: Sequence[T]) -> T:
        """Return one of *values*; the smaller the byte, the earlier."""
        at, self._at = self._at, self._at + 1
        byte = self._data[at] if at < len(self._data) else 0
        return values[byte * len(values) >> 8]

    def seldom(self, values: Sequence[T], once_in: int = 16) -> T | None:
        """Return one of *values* once in a while, else None."""
        return self.of(values) if self.of(range(once_in)) == once_in - 1 else None

    def cut(self, size: int) -> Dice:
        """Return dice of the next *size* bytes alone."""
        at, self._at = self._at, self._at + size
        return Dice(self._data[at : at + size])

    def several(
        self, throw: Callable[[Dice], T], size: int, counts: Sequence[int]
    ) -> Tuple[T, ...]:
        """Return some things, as many as one of *counts*, of *size* bytes each.

        The bytes of all that there might be are used, so that what comes after stays
        the same when there are fewer.
        """
        count = self.of(counts)
        blocks = [self.cut(size) for _ in range(max(counts))]
        return tuple(throw(block) for block in blocks[:count])


def thrown(throw: Callable[[Dice], T], size: int) -> st.SearchStrategy[T]:
    """Return a strategy for what *throw* makes of *size* bytes."""
    return st.binary(min_size=size, max_size=size).map(lambda data: throw(Dice(data)))


_ONDEMAND = os.environ.get("AEYE_ONDEMAND") == "1"
_EXAMPLES = int(os.environ.get("AEYE_EXAMPLES", "50000" if _ONDEMAND else "4000"))


def played(share: float) -> settings:
    """Return settings for a test that plays its *share* of the scripts.

    The gate plays the same ones each time; on demand there are new ones.
    """
    return settings(
        max_examples=max(int(_EXAMPLES * share), 1),
        derandomize=not _ONDEMAND,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
