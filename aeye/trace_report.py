"""A trace as a page: what happened when, side by side, and every word on demand."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import dataclass, field
from html import escape
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from .message import Json
from .trace_page import page
from .trace_reader import ModelSpan, RunSpan, Span, ToolSpan, Trace

__all__ = ["render"]

# Runs that are shown opened, and failures that are listed on top.
_OPEN_RUNS = 5
_MAX_PROBLEMS = 50
# Characters of what a row shows of arguments and answers.
_HINT = 160
# Seconds between the marks of an axis.
_STEPS: Tuple[float, ...] = (
    *(n * 10.0**power for power in range(-6, 0) for n in (1, 2, 5)),
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400),
)
# What happened, as a badge says it: the words and the kind.
_STATUS = {
    "completed": "good",
    "failed": "bad",
    "cancelled": "warn",
    "suspended": "warn",
    "stopped": "warn",
    "unfinished": "warn",
}
_SUMS = ("input", "output", "cached", "reasoning", "cost")
_KEY = """<ul class="key" aria-label="Colours">
<li><i class="waits"></i>waiting for the model</li><li><i></i>model answers</li>
<li><i class="tool"></i>tool</li><li><i class="nested"></i>nested run</li>
<li><i class="failed"></i>failed</li>
<li>tokens: <i class="waits"></i>cached <i></i>read <i class="tool"></i>written</li>
</ul>"""


def render(trace: Trace, name: str) -> str:
    """Return *trace*, which was read from the file *name*, as an HTML page."""
    writer = _Writer(_peak(trace))
    runs = [
        writer.run(run, opened=place < _OPEN_RUNS)
        for place, run in enumerate(trace.runs)
    ]
    title = trace.runs[0].agent if len(trace.runs) == 1 else name
    body = "\n".join(
        [
            '<div class="page">',
            *_head(trace, title or name, name, writer.failures),
            *writer.list_problems(),
            _KEY,
            "<main>",
            *runs,
            "</main>",
            "<footer>Written by aeye trace. This page loads nothing.</footer>",
            "</div>",
        ]
    )
    return page(f"Trace: {title or name}", body, writer.details)


def seconds(span: float) -> str:
    """Return a length of time as people say it.

    >>> seconds(0.0004), seconds(0.0123), seconds(2.5), seconds(75), seconds(3725)
    ('0.4 ms', '12 ms', '2.50 s', '1m 15s', '1h 2m')
    """
    if span < 0.00995:
        return f"{span * 1000:.1f} ms"
    if span < 0.9995:
        return f"{span * 1000:.0f} ms"
    if span < 59.995:
        return f"{span:.2f} s"
    minutes, rest = divmod(round(span), 60)
    if minutes < 60:
        return f"{minutes}m {rest}s" if rest else f"{minutes}m"
    return f"{minutes // 60}h {minutes % 60}m"


def count(number: float) -> str:
    """Return a number of tokens.

    >>> count(12345), count(32_800_000)
    ('12,345', '32.8 M')
    """
    return f"{number:,.0f}" if number < 1e6 else f"{number / 1e6:.1f} M"


def money(cost: float) -> str:
    """Return a sum of US dollars, small ones with the digits that matter.

    >>> money(1.5), money(0.00213)
    ('$1.50', '$0.0021')
    """
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


def tick_step(span: float) -> float:
    """Return the seconds between the marks of an axis of *span* seconds.

    >>> tick_step(0.0023), tick_step(2.3), tick_step(75), tick_step(5000)
    (0.0005, 0.5, 15, 900)
    """
    for step in _STEPS:
        if step * 6 >= span:
            return step
    return 86400.0 * math.ceil(span / 6 / 86400)


def tick_label(moment: float) -> str:
    """Return what stands at a mark.

    >>> tick_label(0.0005), tick_label(0.25), tick_label(1.5), tick_label(90)
    ('0.5 ms', '250 ms', '1.5 s', '1m 30s')
    """
    if moment < 0.9995:
        return f"{moment * 1000:.3g} ms"
    return f"{moment:.3g} s" if moment < 60 else seconds(moment)


@dataclass
class _Axis:
    """The time that a run's rows share."""

    start: float
    length: float

    def left(self, moment: float) -> float:
        """Return where *moment* is, in percent."""
        place = 100 * (moment - self.start) / self.length
        return round(min(max(place, 0.0), 100.0), 3)

    def bar(self, start: float, end: float) -> str:
        """Return the opening tag of the bar from *start* to *end*."""
        left = self.left(start)
        said = f"from {seconds(start - self.start)} to {seconds(end - self.start)}"
        width = round(self.left(end) - left, 3)
        return f'<span class="bar" title="{said}" style="left:{left}%;width:{width}%">'


@dataclass
class _Writer:
    """Makes rows, and gathers what they show when they are opened."""

    # Tokens of the model call that had most of them.
    peak: float
    details: List[Json] = field(default_factory=list)
    # Links to what failed.
    problems: List[str] = field(default_factory=list)
    failures: int = 0
    # The place in *details* of each model call.
    _places: Dict[str, int] = field(default_factory=dict)

    def run(self, run: RunSpan, *, opened: bool) -> str:
        """Return a run that began in no other, with an axis of its own."""
        end = _last(run)
        axis = _Axis(run.start, max(end - run.start, 1e-6))
        step = tick_step(axis.length)
        marks = "".join(
            f'<span style="left:{axis.left(run.start + n * step)}%">'
            f"{tick_label(n * step) if n else '0'}</span>"
            for n in range(7)
            if n * step <= axis.length * 0.97
        )
        return "\n".join(
            [
                f'<details class="card"{" open" if opened else ""}><summary>'
                f"<h2>{escape(run.agent or 'run')}</h2>"
                f"{_badge(run.status, _STATUS.get(run.status, ''))}"
                f'<span class="facts">{_facts(run, end)}</span></summary>',
                f'<div class="chart" style="--step:{100 * step / axis.length:.4f}%">',
                f'<div class="axis" aria-hidden="true"><span class="ticks">{marks}'
                "</span></div>",
                self._whole(run, axis, 0),
                *self._rows(run, axis, 0),
                "</div></details>",
            ]
        )

    def list_problems(self) -> Iterator[str]:
        """Yield the list of what failed; nothing where nothing did."""
        if not self.problems:
            return
        yield f'<nav class="problems"><h2>{_count(self.failures, "failure")}</h2><ul>'
        yield from self.problems[:_MAX_PROBLEMS]
        if self.failures > _MAX_PROBLEMS:
            yield f"<li>and {self.failures - _MAX_PROBLEMS} more</li>"
        yield "</ul></nav>"

    def _rows(self, run: RunSpan, axis: _Axis, depth: int) -> Iterator[str]:
        """Yield the rows of what happened in *run*, turn by turn."""
        spans: List[Span] = [*run.calls, *run.tools, *run.runs]
        turn = None
        for span in sorted(spans, key=lambda span: _order(span, run)):
            of = _turn(span, run)
            if of != turn:
                turn = of
                label = f"Turn {turn}" if turn else "Resumed"
                yield f'<div class="turn" style="--depth:{depth}">{label}</div>'
            if isinstance(span, ModelSpan):
                yield self._model(span, run, axis, depth)
            elif isinstance(span, ToolSpan):
                yield self._tool(span, run, axis, depth)
                for child in span.runs:
                    yield self._whole(child, axis, depth + 1)
                    yield from self._rows(child, axis, depth + 1)
            elif isinstance(span, RunSpan):
                yield self._whole(span, axis, depth + 1)
                yield from self._rows(span, axis, depth + 1)

    def _model(self, call: ModelSpan, run: RunSpan, axis: _Axis, depth: int) -> str:
        before = call.before
        detail = {
            "vendor": call.vendor,
            "request": call.request,
            "response": call.response,
            "first": None if call.first is None else seconds(call.first),
            "before": None if before is None else self._places.get(before.id),
        }
        self._places[call.id] = len(self.details)
        end = _end(call, run)
        wait = ""
        if call.first is not None and end > call.start:
            share = min(100 * call.first / (end - call.start), 100)
            wait = f'<i style="width:{share:.1f}%"></i>'
        return self._row(
            "model",
            call,
            detail,
            name=call.model or "model",
            hint=_answer(call.response),
            bar=axis.bar(call.start, end),
            inner=wait,
            marks=[axis.left(note["time"]) for note in call.notes],
            badges=[_note(note) for note in call.notes],
            length=end - call.start,
            tokens=self._meter(call.usage),
            depth=depth,
        )

    def _tool(self, tool: ToolSpan, run: RunSpan, axis: _Axis, depth: int) -> str:
        detail = {
            "args": tool.args,
            "result": tool.result,
            "skipped": tool.skipped,
            "progress": tool.progress,
            "call": tool.call,
            "thread": tool.thread,
        }
        end = _end(tool, run)
        badges = [_note(note) for note in tool.notes]
        if tool.skipped:
            badges.append(_badge("not run", "warn"))
        return self._row(
            "tool",
            tool,
            detail,
            name=tool.name or "unknown tool",
            hint=_short(tool.args),
            bar=axis.bar(tool.start, end),
            badges=badges,
            length=end - tool.start,
            depth=depth,
        )

    def _whole(self, run: RunSpan, axis: _Axis, depth: int) -> str:
        end = _last(run)
        about = {k: v for k, v in run.about.items() if k != "prompt"}
        facts = [["id", run.id], ["began", _date(run.start)]]
        facts += [[name, _text(value)] for name, value in about.items()]
        detail = {
            "prompt": run.about.get("prompt"),
            "output": run.output,
            "facts": facts,
        }
        badges = [_note(note) for note in run.notes]
        if depth:
            badges.append(_badge(run.status, _STATUS.get(run.status, "")))
        return self._row(
            "run",
            run,
            detail,
            name=run.agent or "run" if depth else "the run",
            hint=_short(_prompt(run)),
            bar=axis.bar(run.start, end),
            badges=badges,
            length=end - run.start,
            tokens=self._meter(run.usage, scaled=False),
            depth=depth,
        )

    def _row(  # noqa: PLR0913  # the cells of a row, each by its name
        self,
        kind: str,
        span: Span,
        detail: Json,
        *,
        name: str,
        hint: str,
        bar: str,
        badges: List[str],
        length: float,
        depth: int,
        inner: str = "",
        marks: Iterable[float] = (),
        tokens: str = "",
    ) -> str:
        place = len(self.details)
        self.details.append(
            {"kind": kind, "error": span.error, "notes": span.notes, **detail}
        )
        classes = ["row", kind]
        if kind == "run":
            classes.append("nested")
        if span.error is not None:
            classes.append("failed")
            badges = [*badges, _badge(str(span.error.get("type", "failed")), "bad")]
            if not isinstance(span, RunSpan) or _is_news(span):
                self._add_problem(place, name, span.error)
        if span.end is None:
            classes.append("open-end")
            if kind != "run":
                badges = [*badges, _badge("unfinished", "warn")]
        diamonds = "".join(
            f'<span class="mark" style="left:{left}%"></span>' for left in marks
        )
        return (
            f'<details class="{" ".join(classes)}" id="r{place}" data-n="{place}" '
            f'style="--depth:{depth}"><summary>'
            f'<span class="name"><b>{escape(name)}</b>{"".join(badges)}'
            f'<span class="hint">{escape(hint)}</span></span>'
            f'<span class="track" aria-hidden="true">{bar}{inner}</span>{diamonds}'
            "</span>"
            f'<span class="time">{seconds(length)}</span>'
            f'<span class="tokens">{tokens}</span></summary>'
            '<div class="body"></div></details>'
        )

    def _add_problem(self, place: int, name: str, error: Json) -> None:
        self.failures += 1
        if len(self.problems) < _MAX_PROBLEMS:
            said = _short(f"{error.get('type', '')}: {error.get('message', '')}")
            link = f'<a href="#r{place}">{escape(name)}</a>'
            self.problems.append(f"<li>{link} – {escape(said)}</li>")

    def _meter(self, usage: Dict[str, float], *, scaled: bool = True) -> str:
        read, wrote = usage.get("input", 0), usage.get("output", 0)
        if not read and not wrote:
            return ""
        words = f"{count(read)} in · {count(wrote)} out"
        if not scaled or not self.peak:
            return words
        cached = min(usage.get("cached", 0), read)
        bars = "".join(
            f'<i class="{kind}" style="width:{100 * n / self.peak:.2f}%"></i>'
            for kind, n in (("cached", cached), ("", read - cached), ("output", wrote))
            if n
        )
        title = ", ".join(f"{n:,.0f} {kind}" for kind, n in usage.items() if n >= 1)
        return (
            f'{words}<span class="meter" title="{escape(title)}" aria-hidden="true">'
            f"{bars}</span>"
        )


def _head(trace: Trace, title: str, name: str, failures: int) -> Iterator[str]:
    """Yield the title and the sums."""
    runs = [run for root in trace.runs for run in root.walk()]
    models = list(dict.fromkeys(c.model for run in runs for c in run.calls if c.model))
    about = [name] if title != name else []
    about += [_date(trace.runs[0].start)] if trace.runs else []
    about += [", ".join(models[:4]) + (" and more" if len(models) > 4 else "")]
    yield f"<header><h1>{escape(title)}</h1>"
    yield f'<p class="sub">{escape(" · ".join(filter(None, about)))}</p>'
    yield '<dl class="tiles">'
    for label, number, more, kind in _tiles(trace, runs, failures):
        small = f"<small>{escape(more)}</small>" if more else ""
        shown = f"<dd>{escape(number)}{small}</dd>"
        yield f'<div class="{kind}"><dt>{label}</dt>{shown}</div>'
    yield "</dl></header>"
    if trace.damage:
        yield f'<p class="told">{escape(trace.damage.capitalize())}.</p>'


def _tiles(
    trace: Trace, runs: List[RunSpan], failures: int
) -> Iterator[Tuple[str, str, str, str]]:
    """Yield label, number, what is small beside it, and kind."""
    calls = [call for run in runs for call in run.calls]
    tools = [tool for run in runs for tool in run.tools]
    total = {name: sum(c.usage.get(name, 0) for c in calls) for name in _SUMS}
    notes = [note["name"] for call in calls for note in call.notes]
    took = sum(_last(root) - root.start for root in trace.runs)
    nested = len(runs) - len(trace.runs)
    yield "Runs", str(len(trace.runs)), f"{nested} nested" if nested else "", ""
    yield "Duration", seconds(took), "", ""
    yield "Model calls", f"{len(calls):,}", _count(len(tools), "tool call"), ""
    cached = f"{count(total['cached'])} cached" if total["cached"] else ""
    yield "Tokens in", count(total["input"]), cached, ""
    thought = f"{count(total['reasoning'])} reasoning" if total["reasoning"] else ""
    yield "Tokens out", count(total["output"]), thought, ""
    if total["cost"]:
        yield "Cost", money(total["cost"]), "", ""
    again, resets = notes.count("completion.retry"), notes.count("completion.reset")
    asked = f"{_count(resets, 'answer')} did not count" if resets else ""
    yield "Retries", str(again), asked, "warn" if again else ""
    yield "Failures", str(failures), "", "bad" if failures else ""


def _facts(run: RunSpan, end: float) -> str:
    inner = list(run.walk())
    calls = sum(len(one.calls) for one in inner)
    tools = sum(len(one.tools) for one in inner)
    said = [seconds(end - run.start), _count(calls, "model call")]
    if tools:
        said.append(_count(tools, "tool call"))
    said.append(_date(run.start))
    return escape(" · ".join(said))


def _peak(trace: Trace) -> float:
    calls = (c for root in trace.runs for run in root.walk() for c in run.calls)
    sums = (c.usage.get("input", 0) + c.usage.get("output", 0) for c in calls)
    return max(sums, default=0)


def _last(run: RunSpan) -> float:
    """Return when *run* ended, or when it was last heard of."""
    if run.end is not None:
        return run.end
    return max(one.end or one.heard for one in run.walk())


def _end(span: Span, run: RunSpan) -> float:
    end = span.end if span.end is not None else _last(run)
    return max(end, span.start)


def _turn(span: Span, run: RunSpan) -> int:
    """Return the turn that *span* belongs to; a run's, that in which it began."""
    if isinstance(span, (ModelSpan, ToolSpan)):
        return span.turn
    begun = [call.turn for call in run.calls if call.start <= span.start]
    return begun[-1] if begun else 0


def _order(span: Span, run: RunSpan) -> Tuple[int, bool, float]:
    return _turn(span, run), not isinstance(span, ModelSpan), span.start


def _is_news(run: RunSpan) -> bool:
    """Whether *run* failed by itself, not with what it did."""
    parts: List[Span] = [*run.calls, *run.tools]
    return not any(part.error and part.error == run.error for part in parts)


def _note(note: Json) -> str:
    """Return the badge of something noted."""
    about = note["attributes"]
    if note["name"] == "completion.retry":
        why = about.get("status_code") or about.get("error_name") or ""
        return _badge(f"asked again after {why}", "warn")
    if note["name"] == "completion.reset":
        return _badge(f"does not count: {about.get('reason', '')}", "warn")
    if note["name"] == "tool.approval":
        agreed = about.get("approved") is True
        return _badge("approved" if agreed else "refused", "good" if agreed else "warn")
    return _badge(note["name"], "")


def _badge(words: str, kind: str) -> str:
    return f'<span class="badge {kind}">{escape(words)}</span>'


def _answer(response: Optional[Json]) -> str:
    if response is None:
        return ""
    calls = response.get("tool_calls")
    names = [
        _text(call.get("name"))
        for call in (calls if isinstance(calls, list) else [])
        if isinstance(call, dict)
    ]
    return _short(f"calls {', '.join(names)}" if names else response.get("content"))


def _prompt(run: RunSpan) -> Any:
    prompt = run.about.get("prompt")
    return prompt.get("content") if isinstance(prompt, dict) else ""


def _short(value: Any) -> str:
    text = " ".join(_text(value)[: 2 * _HINT].split())
    return text if len(text) <= _HINT else f"{text[:_HINT]}…"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _date(moment: float) -> str:
    when = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=moment)
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"
