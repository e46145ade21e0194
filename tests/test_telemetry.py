"""Runs as OpenTelemetry spans, where its SDK is installed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import pytest

import aeye
from aeye.agent import Agent
from aeye.callback import attempt
from aeye.errors import ServerError
from aeye.message import Message, Part, Reasoning
from aeye.prompt import Prompt
from aeye.response import Response
from aeye.telemetry import OpenTelemetryObserver
from aeye.testing import LocalServer, ScriptedModel, calls, pieces
from aeye.tools import Tool, tool
from aeye.usage import Usage


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_the_package_works_without_it() -> None:
    """Nothing but the observer itself asks for OpenTelemetry, and it says how."""
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import aeye, aeye.telemetry\n"
        "try: aeye.OpenTelemetryObserver()\n"
        "except ImportError as error: print(error)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "needs the package opentelemetry-api" in done.stdout


try:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
        InMemorySpanExporter,
    )
except ImportError:
    needs_sdk: Any = pytest.mark.skip("needs opentelemetry-sdk")
else:
    needs_sdk = pytest.mark.filterwarnings("error")


class Spans:
    """An observer, and what it has made."""

    def __init__(self, **options: Any) -> None:
        self.provider = TracerProvider()
        self._memory = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.tracer = self.provider.get_tracer("test")
        self.observer = OpenTelemetryObserver(self.provider, **options)

    def tree(self) -> list[Any]:
        """Return the names of the ended spans as a tree, in the order they began."""
        found = sorted(self._memory.get_finished_spans(), key=lambda s: s.start_time)

        def below(parent: Any) -> list[Any]:
            named = []
            for span in found:
                of = None if span.parent is None else span.parent.span_id
                if of == parent:
                    inner = below(span.context.span_id)
                    named.append((span.name, inner) if inner else span.name)
            return named

        return below(None)

    def __getitem__(self, name: str) -> Any:
        """Return the one ended span of that name."""
        (span,) = (s for s in self._memory.get_finished_spans() if s.name == name)
        return span

    def attributes(self, name: str) -> dict[str, Any]:
        return dict(self[name].attributes)


def request(spans: Spans, *replies: Any, **options: Any) -> Any:
    options = {"tools": [add], "observers": [spans.observer], **options}
    return Agent("", ScriptedModel(*replies).context(), **options).prompt("hi")


ROUND = calls(("add", {"a": 1, "b": 2}, "c1"))


@needs_sdk
def test_names_and_nesting() -> None:
    """A run holds its model calls and tools; it begins in the current span."""
    spans = Spans()

    with spans.tracer.start_as_current_span("web request"):
        response = request(spans, ROUND, "3", name="sums").send()

    run = ("invoke_agent sums", ["chat", "execute_tool add", "chat"])
    assert spans.tree() == [("web request", [run])]
    about = spans["invoke_agent sums"].context
    assert response.trace.trace_id == f"{about.trace_id:032x}"
    assert response.trace.observation_id == f"{about.span_id:016x}"


@needs_sdk
def test_attributes() -> None:
    """What the conventions ask for is said, and nothing of what was said."""
    spans = Spans()
    usage = Usage.of(input=9, output=5, cached=4, cache_write=2, reasoning=3)
    answer = Response("the secret", usage=usage, model="m-1")
    config = {
        "model": "m",
        "temperature": 0.5,
        "max_tokens": 99,
        "stop": ["END"],
        "reason": {"effort": "low"},
    }
    prompt = Prompt("sums", "The secret.", tools=[add], config=config)
    ctx = ScriptedModel(ROUND, answer).context()
    agent = Agent(
        prompt, ctx, name="adder", description="It adds.", observers=[spans.observer]
    )

    agent.prompt("the secret").with_trace(session_id="s1", version="2").send()

    cost = {
        "gen_ai.usage.input_tokens": 19,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_write.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 3,
    }
    assert spans.attributes("invoke_agent adder") == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "adder",
        "gen_ai.agent.description": "It adds.",
        "gen_ai.agent.version": "2",
        "gen_ai.conversation.id": "s1",
        "gen_ai.provider.name": "_OTHER",
        "gen_ai.request.model": "m",
        **cost,
    }
    first, last = (s for s in spans._memory.get_finished_spans() if s.name == "chat m")
    assert dict(last.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "_OTHER",
        "gen_ai.request.model": "m",
        "gen_ai.request.max_tokens": 99,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.request.reasoning.level": "low",
        "gen_ai.prompt.name": "sums",
        "gen_ai.response.model": "m-1",
        "gen_ai.response.finish_reasons": ("stop",),
        **cost,
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 5,
    }
    assert first.attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert (first.kind, spans["execute_tool add"].kind) == (
        trace.SpanKind.CLIENT,
        trace.SpanKind.INTERNAL,
    )
    assert spans.attributes("execute_tool add") == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
    }


@needs_sdk
def test_content_where_it_is_asked_for() -> None:
    """Messages, instructions, tools, arguments and results have the shapes told of."""
    spans = Spans(capture_content=True)
    answer = Response("3 \ud83d", reasoning=Reasoning("Hm."), finish_reason="stop")
    prompt = Prompt("sums", "Be brief.", tools=[add], schema=str)
    ctx = ScriptedModel(ROUND, answer).context()
    picture = Part.image(b"1234", "image/png")
    agent = Agent(prompt, ctx, name="adder", observers=[spans.observer])

    agent.prompt(Message("user", [Part.text("1 + 2?"), picture])).send()

    last = max(
        (s for s in spans._memory.get_finished_spans() if s.name == "chat"),
        key=lambda span: span.start_time,
    )
    said = {
        name: json.loads(value)
        for name, value in last.attributes.items()
        if name.endswith(("messages", "instructions", "definitions"))
    }
    definitions = said.pop("gen_ai.tool.definitions")
    assert said == {
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        "gen_ai.input.messages": [
            {
                "role": "user",
                "parts": [
                    {"type": "text", "content": "1 + 2?"},
                    {"type": "image", "format": "image/png", "data": "<4 bytes>"},
                ],
            },
            {
                "role": "assistant",
                "parts": [
                    {
                        "type": "tool_call",
                        "id": "c1",
                        "name": "add",
                        "arguments": {"a": 1, "b": 2},
                    }
                ],
            },
            {
                "role": "tool",
                "parts": [{"type": "tool_call_response", "id": "c1", "response": "3"}],
            },
        ],
        "gen_ai.output.messages": [
            {
                "role": "assistant",
                "finish_reason": "stop",
                "parts": [
                    {"type": "reasoning", "content": "Hm."},
                    {"type": "text", "content": "3 \ufffd"},
                ],
            }
        ],
    }
    assert (definitions[0]["type"], definitions[0]["name"]) == ("function", "add")
    called = spans.attributes("execute_tool add")
    assert json.loads(called["gen_ai.tool.call.arguments"]) == {"a": 1, "b": 2}
    assert called["gen_ai.tool.call.result"] == "3"


@needs_sdk
@pytest.mark.parametrize("concurrency", [1, 4])
def test_nesting_across_threads(concurrency: int) -> None:
    """What a tool does, on whatever thread, is a child of its own call."""
    spans = Spans()
    together = threading.Barrier(2, timeout=10)

    def work(args: Any) -> str:
        if concurrency > 1:
            together.wait()
        with spans.tracer.start_as_current_span(f"work {args['n']}"):
            return "done"

    def steps(args: Any) -> Any:
        with spans.tracer.start_as_current_span("step"):
            pass
        yield "half"
        with spans.tracer.start_as_current_span("step"):
            pass
        return "done"

    child = Agent(
        "", ScriptedModel("ok").context(), name="child", observers=[spans.observer]
    )
    tools = [
        Tool("work", work, schema={}),
        Tool("steps", steps, schema={}),
        child.as_tool(),
    ]
    batch = calls(
        ("work", {"n": 1}),
        ("work", {"n": 2}),
        ("steps", {}),
        ("child", {"prompt": "x"}),
    )

    request(spans, batch, "x", tools=tools).with_tool_concurrency(concurrency).send()

    ((name, inner),) = spans.tree()
    assert name == "invoke_agent agent"
    assert (inner[0], inner[-1]) == ("chat", "chat")
    assert sorted(inner[1:-1]) == [
        ("execute_tool child", [("invoke_agent child", ["chat"])]),
        ("execute_tool steps", ["step", "step"]),
        ("execute_tool work", ["work 1"]),
        ("execute_tool work", ["work 2"]),
    ]
    assert not trace.get_current_span().get_span_context().is_valid


@needs_sdk
@pytest.mark.parametrize("streamed", [True, False])
def test_nesting_of_what_asks_the_model(streamed: bool) -> None:
    """What a model's function does is a child of the model call."""
    spans = Spans()

    def model(request: Any) -> Any:
        for piece in ("a", "b"):
            with spans.tracer.start_as_current_span("HTTP"):
                yield aeye.Chunk(piece)

    made = request(spans, model)
    list(made.stream()) if streamed else made.send()

    (((_, [chat]),),) = [spans.tree()]
    assert chat == ("chat", ["HTTP", "HTTP"])
    assert not trace.get_current_span().get_span_context().is_valid


@needs_sdk
@pytest.mark.parametrize("content", [True, False])
def test_failures(content: bool) -> None:
    """What fails says its class; its words only where content is captured."""
    spans = Spans(capture_content=content)
    broken = Tool("broken", lambda args: 1 / 0, schema={})
    down = ServerError("the secret", status=503)

    attempt(request(spans, calls(("broken", {})), down, tools=[broken]).send)

    failed = [s for s in spans._memory.get_finished_spans() if not s.status.is_ok]
    assert [(s.name, s.attributes["error.type"]) for s in failed] == [
        ("execute_tool broken", "ZeroDivisionError"),
        ("chat", "ServerError"),
        ("invoke_agent agent", "ServerError"),
    ]
    assert [s.status.description for s in failed][1:] == (
        ["the secret (HTTP 503)"] * 2 if content else [None, None]
    )


@needs_sdk
def test_retries_resets_and_consent() -> None:
    """A retry is part of its model call; what is worth a note is an event."""
    spans = Spans()
    asking = Tool("asking", lambda args: "done", schema={}, approval=True)
    prompt = Prompt("p", "x", tools=[asking], schema={"type": "integer"})
    down = ServerError("the secret", status=503)
    ctx = ScriptedModel(down, calls(("asking", {})), "{", "7").context()
    made = Agent(prompt, ctx, observers=[spans.observer]).prompt("hi")

    made.with_completion_retries(initial_delay_ms=0).approvals(lambda r: True).send()

    told = {
        event.name: (span.name, dict(event.attributes))
        for span in spans._memory.get_finished_spans()
        for event in span.events
    }
    assert [(name, told[name][0]) for name in sorted(told)] == [
        ("completion.reset", "invoke_agent p"),
        ("completion.retry", "chat"),
        ("tool.approval", "execute_tool asking"),
    ]
    assert told["completion.retry"][1]["status_code"] == 503
    assert spans["invoke_agent p"].status.is_ok
    names = [s.name for s in spans._memory.get_finished_spans()]
    assert names.count("chat") == 3
    shapes = {
        s.attributes.get("gen_ai.output.type")
        for s in spans._memory.get_finished_spans()
        if s.name == "chat"
    }
    assert shapes == {"json"}


@needs_sdk
def test_streams() -> None:
    """A streamed call says so, with the time to its first piece in seconds."""
    spans = Spans()

    list(request(spans, pieces("a", "b")).stream())

    said = spans.attributes("chat")
    assert said["gen_ai.request.stream"] is True
    assert 0 <= said["gen_ai.response.time_to_first_chunk"] < 60


@needs_sdk
def test_every_span_ends_once(caplog: pytest.LogCaptureFixture) -> None:
    """Whether a run is left, aborted, cancelled or waits: its spans end, once."""
    asking = Tool("asking", lambda args: "done", schema={}, approval=True)

    def left(spans: Spans) -> None:
        with request(spans, pieces("a", "b")).stream() as stream:
            next(event for event in stream if event.type == "text_delta")

    def aborted(spans: Spans) -> None:
        abort = aeye.Abort()
        stop = Tool("stop", lambda args: abort.set(), schema={})
        ctx = ScriptedModel(calls(("stop", {}), ("add", {"a": 1, "b": 1}))).context(
            signal=abort
        )
        Agent("", ctx, tools=[stop, add], observers=[spans.observer]).prompt("x").send()

    def cancelled(spans: Spans) -> None:
        hook = {"on_tool_call": lambda args: aeye.cancel_prompt("no")}
        request(spans, ROUND, hook=hook).send()

    def waiting(spans: Spans) -> None:
        request(spans, calls(("asking", {})), tools=[asking]).send()

    ends = {}
    for run in (left, aborted, cancelled, waiting):
        spans = Spans()
        attempt(run, spans)
        ended = spans._memory.get_finished_spans()
        assert len({span.context.span_id for span in ended}) == len(ended)
        assert [s.name for s in ended if s.end_time is None] == []
        assert ended[-1].name == "invoke_agent agent"
        ends[run.__name__] = ended[-1].attributes.get("error.type")

    assert ends == {
        "left": "PromptCancelledError",
        "aborted": "AbortedError",
        "cancelled": "PromptCancelledError",
        "waiting": None,
    }
    # The SDK complains in its log about a span that ends twice.
    assert caplog.records == []


@needs_sdk
def test_vendors_have_their_known_names() -> None:
    """A vendor is called what the conventions call it."""
    spans = Spans()
    with LocalServer(ScriptedModel("Hi.")) as server:
        ctx = aeye.connect("xai:m", base_url=server.url, api_key="a-secret-key")
        with ctx:
            Agent("", ctx, observers=[spans.observer]).prompt("hi").send()

    assert spans.attributes("chat m")["gen_ai.provider.name"] == "x_ai"


@needs_sdk
def test_without_a_provider() -> None:
    """Where no SDK is set up, runs are the same and have no trace."""
    model = ScriptedModel("x")
    agent = Agent("", model.context(), observers=[OpenTelemetryObserver()])

    response = agent.prompt("hi").send()

    assert (response.output, response.trace) == ("x", None)
