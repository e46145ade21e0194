"""The page that a trace is shown on: its style, its script and the frame of both.

One file that loads nothing: no font, no picture, no library. The rows are HTML and can
be read without the script, which only fills in the details that somebody opens, from
the JSON at the end of the page. It makes text nodes and never HTML out of them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any, Sequence

from .wire import mend_text

__all__ = ["page"]


def page(title: str, body: str, details: Sequence[Any]) -> str:
    """Return the page: *body* is HTML, *details* what its rows show when opened."""
    data = json.dumps(details, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(_SCRIPT.encode()).digest()
    made = _FRAME.format(
        title=escape(title),
        hash=base64.b64encode(digest).decode(),
        style=_STYLE,
        body=body,
        # Nothing in a text may end the element.
        data=data.replace("<", "\\u003c"),
        script=_SCRIPT,
    )
    return mend_text(made)  # half a character has no UTF-8


_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src 'sha256-{hash}'; img-src data:">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script type="application/json" id="details">{data}</script>
<script>{script}</script>
</body>
</html>
"""

_STYLE = """
:root {
  --paper: #f4f4f1; --card: #ffffff; --line: #deded8; --grid: #ecece7;
  --ink: #1d1d24; --soft: #5b5b66; --model: #3d40b8; --wait: #8082e2;
  --tool: #0a6d5e; --run: #6d6a78; --bad: #b3201c; --bad-soft: #fde9e7;
  --warn: #7d4e00; --warn-soft: #fdf0d5; --good: #1c6b34; --good-soft: #e4f3e7;
  --code: #f7f7f4; --focus: #2f6fed;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #121217; --card: #1b1b22; --line: #34343f; --grid: #26262e;
    --ink: #ececf2; --soft: #a9a8b8; --model: #8d90ff; --wait: #6063c0;
    --tool: #3fbfa8; --run: #8b8998; --bad: #ff8d85; --bad-soft: #3d1d1d;
    --warn: #f5c56b; --warn-soft: #382b12; --good: #7fd397; --good-soft: #17301f;
    --code: #15151b; --focus: #86a8ff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 2rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 var(--sans); font-variant-numeric: tabular-nums;
}
.page { max-width: 78rem; margin: 0 auto; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere; }
.sub { color: var(--soft); margin: .35rem 0 1.25rem; overflow-wrap: anywhere; }
a { color: var(--model); }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
.tiles {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr));
  gap: .75rem; margin: 0 0 1.25rem;
}
.tiles > div {
  background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: .7rem .9rem;
}
.tiles dt { color: var(--soft); font-size: .82rem; }
.tiles dd { margin: 0; font-size: 1.3rem; font-weight: 600; white-space: nowrap; }
.tiles small {
  display: block; font-size: .8rem; font-weight: 400; color: var(--soft);
  white-space: normal; line-height: 1.3;
}
.tiles .bad dd { color: var(--bad); }
.tiles .warn dd { color: var(--warn); }
.told {
  background: var(--warn-soft); color: var(--warn); border-radius: 10px;
  padding: .6rem .9rem; margin: 0 0 1.25rem;
}
.problems {
  background: var(--bad-soft); border-radius: 10px; padding: .7rem .9rem;
  margin: 0 0 1.25rem;
}
.problems h2 { font-size: .95rem; margin: 0 0 .2rem; color: var(--bad); }
.problems ul { margin: 0; padding-left: 1.2rem; }
.problems a { color: inherit; overflow-wrap: anywhere; }
.key {
  display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; list-style: none; padding: 0;
  margin: 0 0 .75rem; color: var(--soft); font-size: .85rem;
}
.key i {
  display: inline-block; width: .8rem; height: .8rem; border-radius: 3px;
  margin-right: .4rem; vertical-align: -1px; background: var(--model);
}
.key li i:not(:first-child) { margin-left: .4rem; }
.key .waits { background: var(--wait); }
.key .tool { background: var(--tool); }
.key .nested { background: none; border: 2px solid var(--run); }
.key .failed { background: var(--bad); }
.card {
  background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  margin: 0 0 1rem; overflow: clip; content-visibility: auto;
  contain-intrinsic-size: auto 24rem;
}
.card > summary {
  padding: .85rem 1rem; cursor: pointer; display: flex; flex-wrap: wrap;
  align-items: baseline; gap: .15rem .7rem;
}
.card > summary h2 { font-size: 1.1rem; margin: 0; overflow-wrap: anywhere; }
.card > summary .facts { color: var(--soft); font-size: .9rem; }
summary { list-style: none; }
summary::-webkit-details-marker { display: none; }
summary::before {
  content: ""; flex: none; width: 0; height: 0; border-left: 6px solid var(--soft);
  border-top: 4px solid transparent; border-bottom: 4px solid transparent;
  transition: transform .12s; display: inline-block; margin-right: .1rem;
}
details[open] > summary::before { transform: rotate(90deg); }
@media (prefers-reduced-motion: reduce) { summary::before { transition: none; } }
.chart { border-top: 1px solid var(--line); padding-bottom: .4rem; }
.axis, .row > summary {
  display: grid; column-gap: .9rem; align-items: center; padding: .28rem 1rem;
  grid-template-columns: minmax(12rem, 24rem) minmax(0, 1fr) 5.2rem 9.5rem;
}
.axis {
  color: var(--soft); font-size: .78rem; padding-top: .45rem; background: var(--card);
  position: sticky; top: 0; z-index: 1;
}
.axis .ticks { grid-column: 2; position: relative; height: 1.2em; }
.axis .ticks span {
  position: absolute; transform: translateX(-50%); white-space: nowrap;
}
.axis .ticks span:first-child { transform: none; }
.axis .last { text-align: right; }
.turn {
  color: var(--soft); font-size: .8rem; font-weight: 600; padding: .5rem 1rem .1rem;
  padding-left: calc(1rem + var(--depth, 0) * 1.25rem);
}
.row, .row > summary { scroll-margin-top: 2.5rem; }
.row > summary { cursor: pointer; min-height: 2.1rem; }
.row > summary::before { display: none; }
.row > summary:hover { background: var(--grid); }
.row[open] > summary { background: var(--grid); }
.name {
  min-width: 0; display: flex; align-items: baseline; flex-wrap: wrap; gap: 0 .45rem;
  padding-left: calc(var(--depth, 0) * 1.25rem);
}
.name::before {
  content: ""; flex: none; border-left: 6px solid var(--soft); align-self: center;
  border-top: 4px solid transparent; border-bottom: 4px solid transparent;
  transition: transform .12s;
}
.row[open] > summary .name::before { transform: rotate(90deg); }
.name b { font-weight: 600; overflow-wrap: anywhere; }
.row.model .name b { color: var(--model); }
.row.tool .name b { color: var(--tool); }
.name .hint {
  color: var(--soft); font: .8rem/1.6 var(--mono); overflow: hidden; flex: 1 1 4rem;
  text-overflow: ellipsis; white-space: nowrap; min-width: 0;
}
.badge {
  font-size: .74rem; font-weight: 600; border-radius: 99px; padding: .05rem .5rem;
  white-space: nowrap; background: var(--grid); color: var(--soft);
}
.row > summary:hover .badge, .row[open] > summary .badge { background: var(--card); }
.badge.bad, .row > summary:hover .badge.bad, .row[open] > summary .badge.bad {
  background: var(--bad-soft); color: var(--bad);
}
.badge.warn, .row > summary:hover .badge.warn, .row[open] > summary .badge.warn {
  background: var(--warn-soft); color: var(--warn);
}
.badge.good, .row > summary:hover .badge.good, .row[open] > summary .badge.good {
  background: var(--good-soft); color: var(--good);
}
.track {
  position: relative; height: 1.35rem; border-radius: 4px;
  background-image: linear-gradient(to right, var(--line) 1px, transparent 1px);
  background-size: var(--step) 100%;
}
.bar {
  position: absolute; top: 2px; bottom: 2px; min-width: 3px; border-radius: 4px;
  background: var(--model); overflow: hidden;
}
.bar i { position: absolute; inset: 0 auto 0 0; background: var(--wait); }
.tool .bar { background: var(--tool); }
.nested .bar { background: none; border: 2px solid var(--run); }
.failed .bar, .failed .bar i { background: var(--bad); }
.open-end .bar {
  -webkit-mask-image: linear-gradient(to right, #000 60%, transparent);
  mask-image: linear-gradient(to right, #000 60%, transparent);
}
.mark {
  position: absolute; top: 50%; width: .55rem; height: .55rem; background: var(--warn);
  transform: translate(-50%, -50%) rotate(45deg); border: 1px solid var(--card);
}
.time { text-align: right; font-size: .88rem; white-space: nowrap; }
.tokens { font-size: .82rem; color: var(--soft); line-height: 1.25; }
.meter { display: flex; height: 4px; margin-top: 2px; }
.meter i { background: var(--model); min-width: 0; }
.meter .cached { background: var(--wait); }
.meter .output { background: var(--tool); margin-left: 1px; }
.body {
  padding: .6rem 1rem 1.1rem; background: var(--card);
  padding-left: calc(2.2rem + var(--depth, 0) * 1.25rem);
}
.body h3 {
  font-size: .8rem; margin: 1rem 0 .35rem; color: var(--soft); font-weight: 600;
}
.body h3:first-child { margin-top: .2rem; }
.facts-list {
  display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1rem .9rem;
  margin: 0; font-size: .88rem;
}
.code + .facts-list, .said + .facts-list, .text + .facts-list { margin-top: .5rem; }
.facts-list dt { color: var(--soft); }
.facts-list dd { margin: 0; overflow-wrap: anywhere; }
.said { border-left: 3px solid var(--line); padding: 0 0 0 .75rem; margin: .5rem 0; }
.said.user { border-color: var(--run); }
.said.assistant { border-color: var(--model); }
.said.tool { border-color: var(--tool); }
.who { font-size: .78rem; font-weight: 600; color: var(--soft); margin-top: .3rem; }
.said > .who:first-child { margin-top: 0; }
.body details { margin: .45rem 0; }
.body details > summary {
  cursor: pointer; font-size: .85rem; color: var(--soft); display: flex;
  align-items: baseline; gap: .45rem;
}
.text, .code {
  margin: .15rem 0; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 26rem;
  overflow: auto; font: inherit; max-width: 62rem;
}
.code {
  font: .82rem/1.55 var(--mono); background: var(--code); border-radius: 8px;
  border: 1px solid var(--line); padding: .5rem .7rem; tab-size: 2;
}
.code.bad { border-color: var(--bad); color: var(--bad); background: var(--bad-soft); }
footer { color: var(--soft); font-size: .82rem; margin-top: 1.5rem; }
@media (max-width: 46rem) {
  body { padding: 1.1rem .75rem 3rem; }
  .tiles { grid-template-columns: repeat(2, 1fr); gap: .5rem; }
  .axis, .axis .ticks { display: block; }
  .row > summary {
    grid-template: "name time" auto "track track" auto "tokens tokens" auto / 1fr auto;
    row-gap: .1rem; padding: .45rem .75rem; border-top: 1px solid var(--grid);
  }
  .name { grid-area: name; padding-left: calc(var(--depth, 0) * .8rem); }
  .track { grid-area: track; }
  .time { grid-area: time; align-self: start; }
  .tokens:empty { display: none; }
  .tokens { grid-area: tokens; margin-left: calc(var(--depth, 0) * .8rem); }
  .meter { max-width: 9rem; }
  .body { padding-left: calc(.75rem + var(--depth, 0) * .8rem); padding-right: .75rem; }
  .turn { padding-left: calc(.75rem + var(--depth, 0) * .8rem); }
  .axis { padding: .45rem .75rem .1rem; }
}
@media print { .card { content-visibility: visible; break-inside: avoid; } }
"""

_SCRIPT = """
"use strict";
let details = null;

function el(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

function heading(box, text) { box.append(el("h3", "", text)); }

function scrolls(made, label) {
  // What scrolls must be reachable without a mouse.
  made.tabIndex = 0;
  made.setAttribute("role", "region");
  made.setAttribute("aria-label", label);
  return made;
}

function code(value, label, bad) {
  const made = el("pre", bad ? "code bad" : "code", pretty(value));
  return scrolls(made, label);
}

function pretty(value) {
  if (typeof value !== "string") return indented(value);
  if (/^\\s*[[{]/.test(value)) {
    try { return indented(JSON.parse(value)); } catch (e) { /* no JSON */ }
  }
  return value;
}

function indented(value) {
  const tall = JSON.stringify(value, null, 2);
  const flat = tall.replace(/\\n */g, " ");
  return flat.length <= 76 ? flat : tall;
}

function text(value, label) {
  if (typeof value === "string" && !/^\\s*[[{]/.test(value)) {
    return scrolls(el("div", "text", value), label);
  }
  return code(value, label);
}

function folded(label, fill) {
  const made = el("details");
  made.append(el("summary", "", label));
  made.addEventListener("toggle", () => fill(made), { once: true });
  return made;
}

function facts(pairs) {
  const list = el("dl", "facts-list");
  for (const [name, value] of pairs) {
    if (value === undefined || value === null || value === "") continue;
    list.append(el("dt", "", name), el("dd", "", String(value)));
  }
  return list;
}

function parts(box, content, label) {
  const all = typeof content === "string" ? [{ type: "text", text: content }] : content;
  for (const part of all || []) {
    if (part && part.text === "") continue;
    const plain = part && part.type === "text";
    box.append(plain ? text(part.text, label) : code(part, label));
  }
}

function said(box, message) {
  if (message.reasoning) {
    const thoughts = text(message.reasoning, "Reasoning");
    box.append(folded("Reasoning", (into) => into.append(thoughts)));
  }
  parts(box, message.content, "Text");
  if (message.refusal) box.append(code(message.refusal, "Refusal", true));
  for (const call of message.tool_calls || []) {
    box.append(el("div", "who", "calls " + call.name + " (" + call.id + ")"));
    box.append(code(call.arguments, "Arguments of " + call.name));
  }
}

function message(of) {
  const role = String(of.role);
  const box = el("div", "said " + role);
  let who = role;
  if (of.name) who += " " + of.name;
  if (of.tool_call_id) who += " (" + of.tool_call_id + ")";
  box.append(el("div", "who", who));
  said(box, of);
  return box;
}

function messagesOf(number) {
  // A request says how many messages of the one before it begins with.
  const chain = [];
  for (let at = number; at !== null && at !== undefined; at = details[at].before) {
    chain.push(details[at].request);
  }
  let all = [];
  for (const request of chain.reverse()) {
    all = all.slice(0, request.kept || 0).concat(request.messages || []);
  }
  return all;
}

function inherited(number, name) {
  for (let at = number; at !== null && at !== undefined; at = details[at].before) {
    if (details[at].request[name] !== undefined) return details[at].request[name];
  }
  return undefined;
}

function count(n, what) { return n + " " + what + (n === 1 ? "" : "s"); }

function offered(box, tool) {
  const dialect = tool.descriptor ? " (" + tool.descriptor + ")" : "";
  box.append(el("div", "who", tool.name + dialect));
  if (tool.description) box.append(text(tool.description, "Description"));
  box.append(code(tool.parameters, "Schema of " + tool.name));
}

function fillModel(box, detail, number) {
  const request = detail.request;
  heading(box, "Asked");
  const own = ["kept", "messages", "tools", "response_format"];
  const rest = Object.entries(request).filter(([name]) => !own.includes(name));
  box.append(facts([["vendor", detail.vendor], ...rest.map(([name, value]) => [
    name.replace(/_/g, " "),
    typeof value === "object" ? JSON.stringify(value) : value,
  ])]));
  const all = messagesOf(number);
  const old = all.length - (request.messages || []).length;
  if (old > 0) {
    box.append(folded(count(old, "earlier message"), (into) => {
      all.slice(0, old).forEach((of) => into.append(message(of)));
    }));
  }
  all.slice(old).forEach((of) => box.append(message(of)));
  const tools = inherited(number, "tools") || [];
  if (tools.length) {
    const names = tools.map((tool) => tool.name).join(", ");
    box.append(folded(count(tools.length, "tool") + " offered: " + names, (into) => {
      tools.forEach((tool) => offered(into, tool));
    }));
  }
  const shape = inherited(number, "response_format");
  if (shape && shape !== "text") {
    box.append(folded("Shape of the answer", (into) => {
      into.append(code(shape, "Shape of the answer"));
    }));
  }
  if (detail.response) {
    heading(box, "Answered");
    const answer = el("div", "said assistant");
    said(answer, detail.response);
    box.append(answer);
    box.append(facts([["model", detail.response.model],
      ["finish reason", detail.response.finish_reason],
      ["first piece after", detail.first]]));
  }
}

function fillTool(box, detail) {
  heading(box, "Arguments");
  box.append(code(detail.args, "Arguments"));
  if (detail.progress.length) {
    box.append(folded(detail.progress.length + " told while it ran", (into) => {
      detail.progress.forEach((value) => into.append(text(value, "Progress")));
    }));
  }
  if (detail.result !== null) {
    heading(box, detail.skipped ? "Not run; the model reads" : "Result");
    box.append(text(detail.result, "Result"));
  }
  box.append(facts([["call", detail.call], ["thread", detail.thread]]));
}

function fillRun(box, detail) {
  if (detail.prompt) { heading(box, "Said"); box.append(message(detail.prompt)); }
  if (detail.output !== null && detail.output !== undefined) {
    heading(box, "Output");
    box.append(text(detail.output, "Output"));
  }
  box.append(facts(detail.facts));
}

const FILL = { model: fillModel, tool: fillTool, run: fillRun };

function fill(row) {
  const number = Number(row.dataset.n);
  const box = row.lastElementChild;
  if (box.childElementCount) return;
  if (details === null) {
    details = JSON.parse(document.getElementById("details").textContent);
  }
  const detail = details[number];
  if (detail.error) failed(box, detail.error);
  FILL[detail.kind](box, detail, number);
  if (detail.notes.length) {
    heading(box, "Notes");
    box.append(facts(detail.notes.map((note) => [note.name, listed(note.attributes)])));
  }
}

function failed(box, error) {
  heading(box, "Failed");
  box.append(code(error.type + ": " + error.message, "Error", true));
  if (error.cause) box.append(facts([["because of", error.cause]]));
  if (error.traceback) {
    box.append(folded("Where", (into) => {
      into.append(code(error.traceback, "Traceback"));
    }));
  }
}

function rounded(value) {
  return typeof value === "number" ? Math.round(value * 100) / 100 : value;
}

function listed(attributes) {
  return Object.entries(attributes)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => [name.replace(/_/g, " "), rounded(value)].join(" "))
    .join(", ");
}

document.addEventListener("toggle", (event) => {
  const row = event.target;
  if (row.open && row.dataset.n !== undefined) fill(row);
}, true);

function show() {
  // A link from the list of problems opens what it points at.
  const row = location.hash && document.getElementById(location.hash.slice(1));
  if (!row) return;
  for (let at = row; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") at.open = true;
  }
  row.scrollIntoView({ block: "center" });
}

addEventListener("hashchange", show);
show();
"""
