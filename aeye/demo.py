"""The main job, in a terminal: what ``python -m aeye demo`` shows.

One prompt is run and told as it happens: its template, the text as it arrives, two
tools at the same time, a wrong answer and its repair, and the typed result. Without a
model it is a rehearsal, and says so.
"""

from __future__ import annotations

import re
import textwrap
import time
from dataclasses import dataclass, fields
from typing import Annotated, Any, Callable, Dict, List

from .context import Context
from .event import PromptEvent
from .prompt import Prompt
from .schema import Field
from .tools import tool
from .usage import Usage

__all__ = ["Trip", "run"]

_WIDTH = 78
_PARTS = re.compile(r"\n|[^\S\n]+|\S+")
_TEMPLATE = """\
Plan {{days}} days in {{city}}. These people travel:
{{#each who}}
- {{this}}
{{/each}}
Ask weather and trains before you answer.
"""
_INPUT = {"city": "Lisbon", "days": 3, "who": ["Ada", "Grace"]}

_City = Annotated[str, Field("The city's name.", examples=("Lisbon",))]


@dataclass
class Trip:
    """A plan for a few days."""

    city: _City
    days: Annotated[int, Field("How many days.", ge=1, examples=(3,))]
    by_train: Annotated[bool, Field("Whether to go by train.", examples=(True,))]
    packing: Annotated[
        List[str],
        Field("What to take along.", examples=(["sun cream", "walking shoes"],)),
    ]


def run(
    ctx: Context, *, model: str | None, delay: float, write: Callable[..., Any]
) -> None:
    """Run the demonstration with the model of *ctx*, and tell of it through *write*.

    *model* is its name, or None for the rehearsal that is its own; *delay* is what the
    tools take, in seconds.
    """
    story = _Story(write)
    write("aeye demo\n\n")
    if model is None:
        story.say(
            "This is a rehearsal: no model is asked, and nothing leaves this machine. "
            "'aeye demo --model openai:gpt-5-mini' runs the same for real."
        )
    else:
        story.say(f"The model that is asked is {model}.")
    greeting = Prompt("greeting", "Wish {{who.[0]}} a good journey to {{city}}.")
    trip = Prompt("trip", _TEMPLATE, tools=_tools(delay), schema=Trip)
    story.title("A template is filled")
    story.say("From")
    story.block(_TEMPLATE)
    story.say(f"and {_INPUT} comes")
    story.block(trip.preview(_INPUT, ctx).system)
    story.title("Text streams as it arrives")
    with greeting.get("stream_content", _INPUT, ctx) as pieces:
        for piece in pieces:
            story.piece(piece)
        usage = pieces.usage
    story.end_line()
    with trip.run(_INPUT, ctx) as events:
        for event in events:
            story.tell(event)
        story.end_line()
        story.result(events.output, usage + events.usage)


def _tools(delay: float) -> list[Any]:
    @tool
    def weather(city: _City) -> Dict[str, Any]:
        """Tell the weather of the coming days."""
        time.sleep(delay)
        return {"city": city, "sky": "clear", "celsius": 24}

    @tool
    def trains(city: _City) -> Dict[str, Any]:
        """Tell how long the train takes."""
        time.sleep(delay)
        return {"city": city, "hours": 9.5}

    return [weather, trains]


class _Story:
    """Tells events as plain lines, none wider than the page."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        self._write = write
        self._chapters = 0
        self._column = 0
        # Space that is written once a word follows it.
        self._space = ""
        # Whether the last line is empty.
        self._empty = True
        self._requests = 0
        self._answers = 0
        self._answering = False
        # When the first call started, and how many there are.
        self._started = 0.0
        self._calls = 0

    def title(self, text: str) -> None:
        self.gap()
        self._chapters += 1
        self._line(f"{self._chapters}. {text}")
        self.gap()

    def say(self, text: str) -> None:
        """Write a paragraph."""
        self.piece(text)
        self.end_line()

    def block(self, text: str, mark: str = "") -> None:
        """Write lines of somebody else's, broken where they are too long."""
        self.gap()
        for line in text.strip().splitlines():
            for part in textwrap.wrap(line, _WIDTH - len(mark) - 8):
                self._line(f"        {mark}{part}")
        self.gap()

    def piece(self, text: str) -> None:
        """Write a piece of running text, and break the line where it is full."""
        for part in _PARTS.findall(text):
            if part == "\n":
                self.end_line()
            elif part.isspace():
                self._space += part if self._column else ""
            else:
                if self._column + len(self._space) + len(part) > _WIDTH:
                    self.end_line()
                if not self._column:
                    self._space = "    "
                self._write(self._space + part)
                self._column += len(self._space) + len(part)
                self._space = ""

    def end_line(self) -> None:
        if self._column:
            self._write("\n")
            self._empty = False
        self._column, self._space = 0, ""

    def gap(self) -> None:
        """Write an empty line, unless the last one is empty."""
        self.end_line()
        if not self._empty:
            self._write("\n")
        self._empty = True

    def _line(self, text: str) -> None:
        self._write(f"{text}\n")
        self._empty = False

    def tell(self, event: PromptEvent) -> None:
        if event.type == "request":
            self._requests += 1
            self._answering = False
        elif event.type == "tool_start":
            if not self._calls:
                self.title("Tools run at the same time")
                self._started = time.monotonic()
            self._calls += 1
            args = ", ".join(f"{k}={v!r}" for k, v in dict(event.args).items())
            self._call(f"{event.tool.name}({args}) starts")
        elif event.type == "tool_output":
            self._call(f"{event.tool.name} returns {event.result}")
        elif event.type == "tool_error":
            self._call(f"a call fails: {event.to_model}")
        elif event.type == "text_partial":
            self._answer(event.content)
        elif event.type == "message" and event.message.role == "user":
            self.gap()
            self.say("That does not fit, so the model is told:")
            self.block(event.message.text, "> ")

    def _answer(self, piece: str) -> None:
        if not self._answering:
            self._answering = True
            self._answers += 1
            if self._answers == 1:
                self.title("The answer is checked against your type")
        self.piece(piece)

    def _call(self, text: str) -> None:
        line = f"    {time.monotonic() - self._started:4.2f} s  {text}"
        self._line(line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…")

    def result(self, output: Any, usage: Usage) -> None:
        self.title("Your code gets a value, not text")
        self._line(f"    {type(output).__name__}(")
        for field in fields(output):
            self._line(f"        {field.name}={getattr(output, field.name)!r},")
        self._line("    )")
        self.gap()
        # One more: the greeting.
        self.say(
            f"{self._requests + 1} requests, {usage.input_tokens} tokens in, "
            f"{usage.output_tokens} out, {usage.total_tokens} in all."
        )
