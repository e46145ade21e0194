"""What happens in runs, as OpenTelemetry spans.

The spans and their attributes are those of the GenAI semantic conventions 0.1.0
(https://github.com/open-telemetry/semantic-conventions-genai/tree/v0.1.0/docs/gen-ai,
read 2026-12-01): ``invoke_agent {agent}`` for a run, and in it ``chat {model}`` for
each model call, retries included, and ``execute_tool {tool}`` for each tool call. What
was said is not in them unless it is asked for.

The package opentelemetry-api is needed when an observer is made, and only then.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ContextManager, Dict, Mapping, Optional, Union

from .agent_event import AgentEvent, AgentTraceInfo
from .callback import attempt
from .errors import PromptSuspend, ToolApprovalRequiredError
from .hooks import (
    RunEndArgs,
    RunErrorArgs,
    ToolCallArgs,
    ToolErrorArgs,
    ToolResultArgs,
)
from .message import Json, Message
from .observer import (
    AgentObserver,
    GenerationObserver,
    ObservedGeneration,
    ObservedRun,
    RunEvent,
    RunObserver,
    ToolObserver,
)
from .request import Request, ResponseFormat
from .response import Response
from .trace_value import Spelling, numbers
from .usage import Usage
from .wire import mend_text

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

__all__ = ["OpenTelemetryObserver"]

# Well-known values of gen_ai.provider.name that are not our vendor's name.
_PROVIDERS = {
    "azure": "azure.ai.openai",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
# Fields of a request that have an attribute.
_REQUEST = {
    "model": "gen_ai.request.model",
    "max_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "stop": "gen_ai.request.stop_sequences",
    "name": "gen_ai.prompt.name",
}
# The attribute of each number of a usage.
_USAGE = {
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "cached": "gen_ai.usage.cache_read.input_tokens",
    "cache_write": "gen_ai.usage.cache_write.input_tokens",
    "reasoning": "gen_ai.usage.reasoning.output_tokens",
}


class OpenTelemetryObserver(AgentObserver):
    """Makes spans of what happens in runs of the fluent door.

    *tracer_provider* is the global one if it is None. *capture_content* puts messages,
    arguments, results and the words of errors into the spans; they may be private.
    *provider* is who is asked where the context has functions of the caller's.

    A run is a child of the span that is current where it begins; while a tool runs, its
    span is current in its thread, so that what the tool does is its child. The trace's
    id is in ``response.trace``.

    Raises:
        ImportError: opentelemetry-api is not installed.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        capture_content: bool = False,
        provider: str = "_OTHER",
    ) -> None:
        try:
            from opentelemetry import trace
        except ImportError as exc:
            raise ImportError(
                "OpenTelemetryObserver needs the package opentelemetry-api: "
                "pip install opentelemetry-sdk"
            ) from exc
        tracer = trace.get_tracer("aeye", tracer_provider=tracer_provider)
        self._spans = _Spans(tracer, Spelling() if capture_content else None, provider)

    def start_run(self, args: ObservedRun) -> _RunSpan:
        """A run begins."""
        return _RunSpan(self._spans, args)


@dataclass(frozen=True)
class _Spans:
    """What all spans of an observer share."""

    tracer: Tracer
    # None: what was said is not told.
    spelling: Optional[Spelling]
    provider: str

    def start(
        self,
        name: str,
        kind: str,
        attributes: Mapping[str, Any],
        parent: Optional[Span],
    ) -> Span:
        """Begin a span; without *parent*, in the one that is current."""
        from opentelemetry import trace

        return self.tracer.start_span(
            name,
            context=None if parent is None else trace.set_span_in_context(parent),
            kind=trace.SpanKind[kind],
            attributes=_said(attributes),
        )

    def within(self, span: Span) -> ContextManager[Any]:
        """Make *span* the current one; it does not end by that."""
        from opentelemetry import trace

        return trace.use_span(  # type: ignore[no-any-return, unused-ignore]  # Any where the package is absent
            span, record_exception=False, set_status_on_exception=False
        )

    def fail(self, span: Span, error: BaseException) -> None:
        """End *span* with *error*."""
        from opentelemetry import trace

        words = str(error) if self.spelling is not None else None
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(trace.Status(trace.StatusCode.ERROR, words))
        span.end()


class _RunSpan(RunObserver):
    """The span of a run."""

    def __init__(self, spans: _Spans, args: ObservedRun) -> None:
        self._spans = spans
        name = args.agent_name or args.agent_id
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": name,
            "gen_ai.agent.description": args.agent_description,
            "gen_ai.agent.version": args.trace.version,
            "gen_ai.conversation.id": args.trace.session_id,
        }
        self._span = spans.start(
            f"invoke_agent {name}".rstrip(), "INTERNAL", attributes, None
        )
        about = self._span.get_span_context()
        if about.is_valid:
            self.trace = AgentTraceInfo(
                f"{about.trace_id:032x}", f"{about.span_id:016x}"
            )
        # Spans of the last model call, and of tool calls by their id.
        self._last: Optional[Span] = None
        self._tools: Dict[str, Span] = {}

    def start_generation(self, args: ObservedGeneration) -> _GenerationSpan:
        """The model is about to be asked."""
        vendor = args.vendor or self._spans.provider
        asked = {
            "gen_ai.provider.name": _PROVIDERS.get(vendor, vendor),
            "gen_ai.request.model": args.request.model,
        }
        if self._last is None:
            self._span.set_attributes(_said(asked))
        made = _GenerationSpan(self._spans, args.request, self._span, asked)
        self._last = made.span
        return made

    def start_tool(self, args: ToolCallArgs) -> _ToolSpan:
        """A tool is about to be called."""
        made = _ToolSpan(self._spans, args, self._span)
        self._tools[args.internal_call_id] = made.span
        return made

    def event(self, args: RunEvent) -> None:
        """Something happened: it is told on the span that it is about."""
        span: Optional[Span] = None
        if args.name == "completion.retry":
            span = self._last
        elif "internal_call_id" in args.attributes:
            span = self._tools.get(args.attributes["internal_call_id"])
        (span or self._span).add_event(args.name, _said(args.attributes))

    def end(self, args: RunEndArgs) -> None:
        """The run has its result."""
        self._span.set_attributes(_spent(args.usage))
        self._span.end()

    def error(self, args: RunErrorArgs) -> None:
        """The run has failed, or waits for somebody, which is no failure."""
        self._span.set_attributes(_spent(args.usage))
        if isinstance(args.error, (PromptSuspend, ToolApprovalRequiredError)):
            self._span.add_event("suspended")
            self._span.end()
        else:
            self._spans.fail(self._span, args.error)


class _GenerationSpan(GenerationObserver):
    """The span of a model call."""

    def __init__(
        self, spans: _Spans, request: Request, parent: Span, asked: Json
    ) -> None:
        self._spans = spans
        self._streamed = False
        attributes = {
            "gen_ai.operation.name": "chat",
            **{key: getattr(request, name) for name, key in _REQUEST.items()},
            **asked,
            "gen_ai.request.reasoning.level": getattr(request.reason, "effort", None),
        }
        if isinstance(request.response_format, ResponseFormat):
            attributes["gen_ai.output.type"] = "json"
        if spans.spelling is not None:
            attributes.update(_request_content(request, spans.spelling))
        name = f"chat {request.model or ''}".rstrip()
        self.span = spans.start(name, "CLIENT", attributes, parent)

    def inside(self) -> ContextManager[Any]:
        return self._spans.within(self.span)

    def update(self, turn: int, delta: AgentEvent) -> None:
        self._streamed = True

    def end(
        self, turn: int, response: Response, first_delta_ms: float | None = None
    ) -> None:
        attributes: Json = {
            "gen_ai.response.model": response.model,
            "gen_ai.response.finish_reasons": (response.finish_reason,),
            **_spent(response.usage),
        }
        if self._streamed and first_delta_ms is not None:
            attributes["gen_ai.request.stream"] = True
            attributes["gen_ai.response.time_to_first_chunk"] = first_delta_ms / 1000
        if self._spans.spelling is not None:
            said = _message(response.to_message(), self._spans.spelling)
            said["finish_reason"] = response.finish_reason
            attributes["gen_ai.output.messages"] = _json([said])
        self.span.set_attributes(_said(attributes))
        self.span.end()

    def error(self, turn: int, error: BaseException) -> None:
        self._spans.fail(self.span, error)


class _ToolSpan(ToolObserver):
    """The span of a tool call."""

    def __init__(self, spans: _Spans, args: ToolCallArgs, parent: Span) -> None:
        self._spans = spans
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": args.tool_name,
            "gen_ai.tool.call.id": args.tool_call_id,
            "gen_ai.tool.type": "function",
        }
        if spans.spelling is not None:
            attributes["gen_ai.tool.call.arguments"] = spans.spelling.text(args.args)
        name = f"execute_tool {args.tool_name}"
        self.span = spans.start(name, "INTERNAL", attributes, parent)

    def inside(self) -> ContextManager[Any]:
        return self._spans.within(self.span)

    def end(self, args: ToolResultArgs) -> None:
        if self._spans.spelling is not None:
            said = self._spans.spelling.text(args.result)
            self.span.set_attributes(_said({"gen_ai.tool.call.result": said}))
        self.span.end()

    def error(self, args: ToolErrorArgs) -> None:
        self._spans.fail(self.span, args.error)


def _said(attributes: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the attributes that say something, without halves of characters."""
    found = {k: v for k, v in attributes.items() if v is not None and v not in ("", ())}
    return {
        name: mend_text(value) if isinstance(value, str) else value
        for name, value in found.items()
    }


def _spent(usage: Usage) -> Dict[str, Union[int, float]]:
    found = numbers(usage)
    return {key: found[name] for name, key in _USAGE.items() if name in found}


def _request_content(request: Request, spelling: Spelling) -> Json:
    """Return what was said and offered, as JSON text: spans have no objects."""
    first = 1 if request.system else 0
    found: Json = {
        "gen_ai.input.messages": _json(
            [_message(said, spelling) for said in request.messages[first:]]
        )
    }
    if request.system:
        text = spelling.text(request.system)
        found["gen_ai.system_instructions"] = _json([{"type": "text", "content": text}])
    if request.tools:
        found["gen_ai.tool.definitions"] = _json(
            [
                {
                    "type": "function",
                    "name": offer.name,
                    "description": spelling.text(offer.description),
                    "parameters": spelling.value(offer.parameters.json),
                }
                for offer in request.tools
            ]
        )
    return found


def _message(message: Message, spelling: Spelling) -> Json:
    """Return *message* in the conventions' form: a role and typed parts."""
    said = spelling.message(message)
    if message.role == "tool":
        reply = {"type": "tool_call_response", "response": said["content"]}
        return {"role": "tool", "parts": [{**reply, "id": message.tool_call_id}]}
    parts = []
    if "reasoning" in said:
        parts.append({"type": "reasoning", "content": said["reasoning"]})
    content = said["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    for part in content:
        text = part["type"] == "text"
        parts.append({"type": "text", "content": part["text"]} if text else part)
    for call in said.get("tool_calls", ()):
        arguments, error = attempt(json.loads, call["arguments"])
        if error is None:
            call["arguments"] = arguments
        parts.append({"type": "tool_call", **call})
    return {"role": message.role, "parts": parts}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
