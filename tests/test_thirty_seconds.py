"""The first program of the documentation, as it is written, offline and over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

import aeye
from aeye.testing import LocalServer

PROGRAM = '''
from dataclasses import dataclass
import aeye

@aeye.tool
def get_weather(city: str, units: str = "celsius") -> dict:
    """Current weather for a city.

    Args:
        city: City name.
    """
    return {"city": city, "temperature": 21, "units": units}

@dataclass
class Advice:
    recommendations: list[str]
    packing_list: list[str]

advisor = aeye.Prompt(
    "travel_advisor",
    "Plan a trip to {{destination}}. Use get_weather to check conditions.",
    tools=[get_weather],
    schema=Advice,
)

advice = advisor({"destination": "Paris"}, ctx)
again = advisor.get("result", {"destination": "Paris"}, ctx)

seen = []
for event in advisor.run({"destination": "Paris"}, ctx):
    if event.type == "text_partial":
        seen.append(event.content)
    elif event.type == "tool_start":
        seen.append((event.tool.name, sorted(event.args)))

agent = aeye.Agent(advisor, ctx, input={"destination": "Paris"})
response = agent.prompt("In May?").max_turns(4).with_completion_retries().send()

rivers = aeye.ask("Name three rivers of France.", ctx, schema=list[str])
'''


def check(program: Any, ctx: aeye.Context) -> None:
    names = program(PROGRAM, ctx=ctx)
    advice = names["Advice"]
    assert isinstance(names["advice"], advice)
    assert isinstance(names["again"], advice)
    assert ("get_weather", ["city", "units"]) in names["seen"]
    assert "recommendations" in "".join(p for p in names["seen"] if isinstance(p, str))
    assert names["response"].output
    assert names["response"].usage.total_tokens > 0
    assert all(isinstance(river, str) for river in names["rivers"])


@pytest.mark.parametrize("target", ["rehearsal", "rehearsal:openai"])
def test_offline(program: Any, target: str) -> None:
    """It runs as written with the offline model."""
    check(program, aeye.connect(target))


@pytest.mark.parametrize("target", ["rehearsal", "rehearsal:openai"])
def test_over_http(program: Any, target: str) -> None:
    """It runs as written against a server that speaks chat completions."""
    with LocalServer(aeye.connect(target)) as server:
        ctx = aeye.connect("openai:any", base_url=server.url, api_key="x")
        check(program, ctx)
        ctx.close()


def test_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a context AEYE_MODEL names the model."""
    monkeypatch.setenv("AEYE_MODEL", "rehearsal")

    assert isinstance(aeye.ask("A number", schema=int), int)
