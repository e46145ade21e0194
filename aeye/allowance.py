"""What a run may still do: model calls and retries that are left."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, TypeVar

from .call import Call
from .context import Context
from .recipe import Recipe, Stats

__all__ = ["Allowance", "first_given"]

T = TypeVar("T")


@dataclass
class Allowance:
    """Model calls and retries that are left, and how calls of tools have gone."""

    # Model calls that may be made in all, and what a door lets it be at most.
    calls: int
    most: Optional[int]
    # Retries that are left.
    output: int
    forget: int
    tools: int
    _counts: Dict[str, int] = field(
        default_factory=lambda: {"invalid": 0, "error": 0, "success": 0}
    )
    _called: List[str] = field(default_factory=list)

    @classmethod
    def of(cls, recipe: Recipe, ctx: Context, max_turns: int | None) -> Allowance:
        """Return what *recipe*, else *ctx*, allows; *max_turns* lifts the sum of it."""
        output = first_given(recipe.output_retries, ctx.output_retries, 2)
        forget = first_given(recipe.forget_retries, ctx.forget_retries, 1)
        tools = first_given(recipe.tool_retries, ctx.tool_retries, 2)
        calls = output + forget + recipe.tool_iterations + tools + 1
        if max_turns is not None:
            calls = max_turns
        return cls(calls, max_turns, output, forget, tools)

    @property
    def successes(self) -> int:
        """How many calls of tools have succeeded."""
        return self._counts["success"]

    def note(self, call: Call) -> bool:
        """Count how *call* has ended; return whether it failed."""
        if call.call.name not in self._called:
            self._called.append(call.call.name)
        if call.status not in self._counts:
            return False
        self._counts[call.status] += 1
        return call.status != "success"

    def stats(self, iteration: int) -> Stats:
        """Return how the run is going, for ``reconfig``."""
        return Stats(
            iteration=iteration,
            max_iterations=self.calls,
            tool_parse_errors=self._counts["invalid"],
            tool_call_errors=self._counts["error"],
            tool_successes=self._counts["success"],
            tool_retries=self.tools,
            output_retries=self.output,
            forget_retries=self.forget,
            tools=tuple(self._called),
        )

    def change(self, wish: Mapping[str, Any], iteration: int) -> bool:
        """Take what ``reconfig`` wishes; return whether to go on."""
        limit = wish.get("max_iterations")
        if limit is not None and limit >= 0:
            most = sys.maxsize if self.most is None else self.most
            self.calls = min(iteration + limit, most)
            if limit == 0:
                return False
        self.output = first_given(wish.get("output_retries"), self.output)
        self.forget = first_given(wish.get("forget_retries"), self.forget)
        self.tools = first_given(wish.get("tool_retries"), self.tools)
        return True


def first_given(*values: Optional[T]) -> T:
    """Return the first of *values* that is not None; the last is a default.

    >>> first_given(None, 0, 2)
    0
    """
    return next(value for value in values if value is not None)
