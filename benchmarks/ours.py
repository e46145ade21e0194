"""The scenarios with aeye."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any, Callable

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import floor

import aeye


@aeye.tool
def step(n: int) -> str:
    """A tool."""
    return floor.step(n)


@aeye.tool
def sleepy(i: int) -> str:
    """A tool."""
    return floor.sleepy(i)


@dataclass
class Person:
    name: str
    age: int


def setup(url: str) -> dict[str, Callable[[], Any]]:
    def connect(model: str) -> aeye.Context:
        name = f"openai:{model}"
        return aeye.connect(name, base_url=url, api_key="none", format="chat")

    text, turns, parallel, chunks, structured = map(
        connect, ("text", "turns", "parallel", "chunks", "structured")
    )
    brief = aeye.Prompt("brief", "Be brief.", user_turn="Say hello.")
    many = aeye.Prompt(
        "turns", "Be brief.", user_turn="Go.", tools=[step], tool_iterations=12
    )
    several = aeye.Prompt("parallel", "Be brief.", user_turn="Go.", tools=[sleepy])
    long = aeye.Prompt("chunks", "", user_turn="Go.")
    person = aeye.Prompt("person", "", user_turn="Who?", schema=Person)

    def count() -> int:
        return sum(1 for piece in long.get("stream_content", {}, chunks) if piece)

    def who() -> tuple[str, int]:
        found = person({}, structured)
        return found.name, found.age

    return {
        "a": lambda: brief({}, text),
        "b": lambda: many({}, turns),
        "c": lambda: several({}, parallel),
        "d": count,
        "e": who,
    }
