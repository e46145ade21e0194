"""Run prompts from synchronous Python.

``Prompt`` fills a template, asks a model, lets the model call your functions, checks
that the answer has the shape you asked for and asks again when it has not;
``connect`` names the model, ``tool`` makes a function callable by it, ``ask`` is all
of that in one line. Everything public can be imported from here; each name is
loaded when it is first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agent import Agent as Agent
    from .agent import Session as Session
    from .agent_event import AgentChildStreamEvent as AgentChildStreamEvent
    from .agent_event import (
        AgentChildStreamEventWithoutToolCallDeltas,
        AgentChildStreamEventWithToolCallDeltas,
        AgentStreamEventWithoutToolCallDeltas,
        AgentStreamEventWithToolCallDeltas,
    )
    from .agent_event import AgentErrorStreamEvent as AgentErrorStreamEvent
    from .agent_event import AgentEvent as AgentEvent
    from .agent_event import AgentFinalEvent as AgentFinalEvent
    from .agent_event import AgentReasoningDeltaEvent as AgentReasoningDeltaEvent
    from .agent_event import AgentStreamEvent as AgentStreamEvent
    from .agent_event import AgentStreamOptions as AgentStreamOptions
    from .agent_event import AgentTextDeltaEvent as AgentTextDeltaEvent
    from .agent_event import AgentToolCallDeltaEvent as AgentToolCallDeltaEvent
    from .agent_event import AgentToolCallEvent as AgentToolCallEvent
    from .agent_event import AgentToolEvent as AgentToolEvent
    from .agent_event import AgentToolResultEvent as AgentToolResultEvent
    from .agent_event import AgentTraceInfo as AgentTraceInfo
    from .agent_event import AgentTurnEndEvent as AgentTurnEndEvent
    from .agent_event import AgentTurnStartEvent as AgentTurnStartEvent
    from .budget import SchemaBudget as SchemaBudget
    from .budget import SchemaFeatures as SchemaFeatures
    from .budget import analyze_schema as analyze_schema
    from .budget import can_express as can_express
    from .budget import check_schema_size_limits as check_schema_size_limits
    from .budget import explain as explain
    from .budget import strict_priority as strict_priority
    from .budget import strictest_of as strictest_of
    from .call import ToolResult as ToolResult
    from .connection import connect as connect
    from .context import Abort as Abort
    from .context import Context as Context
    from .context import Result as Result
    from .context import Resume as Resume
    from .decode import StrictSchema as StrictSchema
    from .decode import decode_wire as decode_wire
    from .decode import encode_wire as encode_wire
    from .decode import strictify as strictify
    from .descriptor import ANTHROPIC_NON_STRICT as ANTHROPIC_NON_STRICT
    from .descriptor import ANTHROPIC_STRICT as ANTHROPIC_STRICT
    from .descriptor import DEFINED_FORMATS as DEFINED_FORMATS
    from .descriptor import GOOGLE_NON_STRICT as GOOGLE_NON_STRICT
    from .descriptor import GOOGLE_STRICT as GOOGLE_STRICT
    from .descriptor import LENIENT as LENIENT
    from .descriptor import OPENAI_NON_STRICT as OPENAI_NON_STRICT
    from .descriptor import OPENAI_STRICT as OPENAI_STRICT
    from .descriptor import XAI_NON_STRICT as XAI_NON_STRICT
    from .descriptor import XAI_STRICT as XAI_STRICT
    from .descriptor import DescriptorFamily as DescriptorFamily
    from .descriptor import FormatDescriptor as FormatDescriptor
    from .descriptor import SchemaSizeLimits as SchemaSizeLimits
    from .descriptor import ToJSONSchemaOptions as ToJSONSchemaOptions
    from .descriptor import check_descriptor_consistency as check_descriptor_consistency
    from .descriptor import get_descriptor as get_descriptor
    from .descriptor import get_descriptor_by_id as get_descriptor_by_id
    from .descriptor import has_descriptor_family as has_descriptor_family
    from .descriptor import json_fallback_instruction as json_fallback_instruction
    from .descriptor import register_descriptor as register_descriptor
    from .descriptor import resolve_descriptor as resolve_descriptor
    from .emit import JSONSchema as JSONSchema
    from .emit import JSONSchemaType as JSONSchemaType
    from .emit import to_json_schema as to_json_schema
    from .errors import AbortedError as AbortedError
    from .errors import AeyeError as AeyeError
    from .errors import AuthError as AuthError
    from .errors import CapabilityError as CapabilityError
    from .errors import ContextLengthError as ContextLengthError
    from .errors import IncompatibleError as IncompatibleError
    from .errors import MaxTurnsError as MaxTurnsError
    from .errors import NoModelError as NoModelError
    from .errors import OutputError as OutputError
    from .errors import PromptCancelledError as PromptCancelledError
    from .errors import PromptError as PromptError
    from .errors import PromptSuspend as PromptSuspend
    from .errors import ProtocolError as ProtocolError
    from .errors import ProviderError as ProviderError
    from .errors import RateLimitError as RateLimitError
    from .errors import RefusalError as RefusalError
    from .errors import SchemaError as SchemaError
    from .errors import ServerError as ServerError
    from .errors import Signal as Signal
    from .errors import StatusError as StatusError
    from .errors import StreamCutError as StreamCutError
    from .errors import TemplateError as TemplateError
    from .errors import ToolApprovalRequiredError as ToolApprovalRequiredError
    from .errors import ToolArgumentError as ToolArgumentError
    from .errors import ToolCallError as ToolCallError
    from .errors import ToolError as ToolError
    from .errors import ToolInterrupt as ToolInterrupt
    from .errors import ToolNotFoundError as ToolNotFoundError
    from .errors import TransportError as TransportError
    from .errors import TruncatedError as TruncatedError
    from .event import CompleteEvent as CompleteEvent
    from .event import Event as Event
    from .event import MessageEvent as MessageEvent
    from .event import PromptEvent as PromptEvent
    from .event import ReasonEvent as ReasonEvent
    from .event import ReasonPartialEvent as ReasonPartialEvent
    from .event import RefusalEvent as RefusalEvent
    from .event import RequestEvent as RequestEvent
    from .event import RequestUsageEvent as RequestUsageEvent
    from .event import ResetReason as ResetReason
    from .event import ResponseTokensEvent as ResponseTokensEvent
    from .event import SuspendEvent as SuspendEvent
    from .event import TextCompleteEvent as TextCompleteEvent
    from .event import TextEvent as TextEvent
    from .event import TextPartialEvent as TextPartialEvent
    from .event import TextResetEvent as TextResetEvent
    from .event import ToolArgRepairAttemptEvent as ToolArgRepairAttemptEvent
    from .event import ToolErrorEvent as ToolErrorEvent
    from .event import ToolInterruptEvent as ToolInterruptEvent
    from .event import ToolOutputEvent as ToolOutputEvent
    from .event import ToolParseArgumentsEvent as ToolParseArgumentsEvent
    from .event import ToolParseNameEvent as ToolParseNameEvent
    from .event import ToolProgressEvent as ToolProgressEvent
    from .event import ToolStartEvent as ToolStartEvent
    from .event import ToolSuspendEvent as ToolSuspendEvent
    from .event import UsageEvent as UsageEvent
    from .event_stream import EventStream as EventStream
    from .event_stream import PromptToolOutput as PromptToolOutput
    from .hooks import HookAction as HookAction
    from .hooks import PromptHook as PromptHook
    from .hooks import ToolApprovalDecision as ToolApprovalDecision
    from .hooks import ToolApprovalRequest as ToolApprovalRequest
    from .hooks import ToolApprovalRun as ToolApprovalRun
    from .hooks import ToolApprovalsOptions as ToolApprovalsOptions
    from .hooks import cancel_prompt as cancel_prompt
    from .hooks import create_hook as create_hook
    from .hooks import request_tool_approval as request_tool_approval
    from .hooks import skip_tool as skip_tool
    from .loop import DEFAULT_USER_TURN as DEFAULT_USER_TURN
    from .memory import InMemoryStore as InMemoryStore
    from .memory import MemoryContext as MemoryContext
    from .memory import MemoryOptions as MemoryOptions
    from .memory import MemoryStore as MemoryStore
    from .memory import SQLiteStore as SQLiteStore
    from .message import Json as Json
    from .message import Message as Message
    from .message import Part as Part
    from .message import PartType as PartType
    from .message import Reasoning as Reasoning
    from .message import ReasoningDetail as ReasoningDetail
    from .message import Role as Role
    from .message import ToolCall as ToolCall
    from .middleware import AgentMiddleware as AgentMiddleware
    from .middleware import ToolMiddleware as ToolMiddleware
    from .observer import AgentObserver as AgentObserver
    from .observer import AgentTraceOptions as AgentTraceOptions
    from .observer import GenerationObserver as GenerationObserver
    from .observer import RunObserver as RunObserver
    from .observer import ToolObserver as ToolObserver
    from .prompt import Prompt as Prompt
    from .prompt import ask as ask
    from .prompt_request import AgentStream as AgentStream
    from .prompt_request import PromptRequest as PromptRequest
    from .prompt_request import PromptResponse as PromptResponse
    from .recipe import Stats as Stats
    from .request import Reason as Reason
    from .request import Request as Request
    from .request import ResponseFormat as ResponseFormat
    from .request import SchemaDelivery as SchemaDelivery
    from .request import ToolChoice as ToolChoice
    from .request import ToolDefinition as ToolDefinition
    from .response import Chunk as Chunk
    from .response import FinishReason as FinishReason
    from .response import Response as Response
    from .response import ToolCallDelta as ToolCallDelta
    from .response import join as join
    from .response import split as split
    from .retry import CompletionRetryContext as CompletionRetryContext
    from .retry import CompletionRetryOptions as CompletionRetryOptions
    from .schema import Field as Field
    from .schema import Finding as Finding
    from .schema import Schema as Schema
    from .telemetry import OpenTelemetryObserver as OpenTelemetryObserver
    from .template import HelperOptions as HelperOptions
    from .template import Template as Template
    from .tools import Tool as Tool
    from .tools import ToolApproval as ToolApproval
    from .tools import tool as tool
    from .trace_recorder import TraceRecorder as TraceRecorder
    from .usage import AudioUsage as AudioUsage
    from .usage import EmbeddingUsage as EmbeddingUsage
    from .usage import ImageOutput as ImageOutput
    from .usage import ImageUsage as ImageUsage
    from .usage import ReasoningUsage as ReasoningUsage
    from .usage import TextUsage as TextUsage
    from .usage import Usage as Usage

__version__ = "0.1.0"

__all__ = [
    "ANTHROPIC_NON_STRICT",
    "ANTHROPIC_STRICT",
    "Abort",
    "AbortedError",
    "AeyeError",
    "Agent",
    "AgentChildStreamEvent",
    "AgentChildStreamEventWithToolCallDeltas",
    "AgentChildStreamEventWithoutToolCallDeltas",
    "AgentErrorStreamEvent",
    "AgentEvent",
    "AgentFinalEvent",
    "AgentMiddleware",
    "AgentObserver",
    "AgentReasoningDeltaEvent",
    "AgentStream",
    "AgentStreamEvent",
    "AgentStreamEventWithToolCallDeltas",
    "AgentStreamEventWithoutToolCallDeltas",
    "AgentStreamOptions",
    "AgentTextDeltaEvent",
    "AgentToolCallDeltaEvent",
    "AgentToolCallEvent",
    "AgentToolEvent",
    "AgentToolResultEvent",
    "AgentTraceInfo",
    "AgentTraceOptions",
    "AgentTurnEndEvent",
    "AgentTurnStartEvent",
    "AudioUsage",
    "AuthError",
    "CapabilityError",
    "Chunk",
    "CompleteEvent",
    "CompletionRetryContext",
    "CompletionRetryOptions",
    "Context",
    "ContextLengthError",
    "DEFAULT_USER_TURN",
    "DEFINED_FORMATS",
    "DescriptorFamily",
    "EmbeddingUsage",
    "Event",
    "EventStream",
    "Field",
    "Finding",
    "FinishReason",
    "FormatDescriptor",
    "GOOGLE_NON_STRICT",
    "GOOGLE_STRICT",
    "GenerationObserver",
    "HelperOptions",
    "HookAction",
    "ImageOutput",
    "ImageUsage",
    "InMemoryStore",
    "IncompatibleError",
    "JSONSchema",
    "JSONSchemaType",
    "Json",
    "LENIENT",
    "MaxTurnsError",
    "MemoryContext",
    "MemoryOptions",
    "MemoryStore",
    "Message",
    "MessageEvent",
    "NoModelError",
    "OPENAI_NON_STRICT",
    "OPENAI_STRICT",
    "OpenTelemetryObserver",
    "OutputError",
    "Part",
    "PartType",
    "Prompt",
    "PromptCancelledError",
    "PromptError",
    "PromptEvent",
    "PromptHook",
    "PromptRequest",
    "PromptResponse",
    "PromptSuspend",
    "PromptToolOutput",
    "ProtocolError",
    "ProviderError",
    "RateLimitError",
    "Reason",
    "ReasonEvent",
    "ReasonPartialEvent",
    "Reasoning",
    "ReasoningDetail",
    "ReasoningUsage",
    "RefusalError",
    "RefusalEvent",
    "Request",
    "RequestEvent",
    "RequestUsageEvent",
    "ResetReason",
    "Response",
    "ResponseFormat",
    "ResponseTokensEvent",
    "Result",
    "Resume",
    "Role",
    "RunObserver",
    "SQLiteStore",
    "Schema",
    "SchemaBudget",
    "SchemaDelivery",
    "SchemaError",
    "SchemaFeatures",
    "SchemaSizeLimits",
    "ServerError",
    "Session",
    "Signal",
    "Stats",
    "StatusError",
    "StreamCutError",
    "StrictSchema",
    "SuspendEvent",
    "Template",
    "TemplateError",
    "TextCompleteEvent",
    "TextEvent",
    "TextPartialEvent",
    "TextResetEvent",
    "TextUsage",
    "ToJSONSchemaOptions",
    "Tool",
    "ToolApproval",
    "ToolApprovalDecision",
    "ToolApprovalRequest",
    "ToolApprovalRequiredError",
    "ToolApprovalRun",
    "ToolApprovalsOptions",
    "ToolArgRepairAttemptEvent",
    "ToolArgumentError",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallError",
    "ToolChoice",
    "ToolDefinition",
    "ToolError",
    "ToolErrorEvent",
    "ToolInterrupt",
    "ToolInterruptEvent",
    "ToolMiddleware",
    "ToolNotFoundError",
    "ToolObserver",
    "ToolOutputEvent",
    "ToolParseArgumentsEvent",
    "ToolParseNameEvent",
    "ToolProgressEvent",
    "ToolResult",
    "ToolStartEvent",
    "ToolSuspendEvent",
    "TraceRecorder",
    "TransportError",
    "TruncatedError",
    "Usage",
    "UsageEvent",
    "XAI_NON_STRICT",
    "XAI_STRICT",
    "__version__",
    "analyze_schema",
    "ask",
    "can_express",
    "cancel_prompt",
    "check_descriptor_consistency",
    "check_schema_size_limits",
    "connect",
    "create_hook",
    "decode_wire",
    "encode_wire",
    "explain",
    "get_descriptor",
    "get_descriptor_by_id",
    "has_descriptor_family",
    "join",
    "json_fallback_instruction",
    "register_descriptor",
    "request_tool_approval",
    "resolve_descriptor",
    "skip_tool",
    "split",
    "strict_priority",
    "strictest_of",
    "strictify",
    "to_json_schema",
    "tool",
]

# Where each name lives.
_MODULES = {
    "agent": (
        "Agent",
        "Session",
    ),
    "agent_event": (
        "AgentChildStreamEvent",
        "AgentChildStreamEventWithToolCallDeltas",
        "AgentChildStreamEventWithoutToolCallDeltas",
        "AgentErrorStreamEvent",
        "AgentEvent",
        "AgentFinalEvent",
        "AgentReasoningDeltaEvent",
        "AgentStreamEvent",
        "AgentStreamEventWithToolCallDeltas",
        "AgentStreamEventWithoutToolCallDeltas",
        "AgentStreamOptions",
        "AgentTextDeltaEvent",
        "AgentToolCallDeltaEvent",
        "AgentToolCallEvent",
        "AgentToolEvent",
        "AgentToolResultEvent",
        "AgentTraceInfo",
        "AgentTurnEndEvent",
        "AgentTurnStartEvent",
    ),
    "budget": (
        "SchemaBudget",
        "SchemaFeatures",
        "analyze_schema",
        "can_express",
        "check_schema_size_limits",
        "explain",
        "strict_priority",
        "strictest_of",
    ),
    "call": ("ToolResult",),
    "connection": ("connect",),
    "context": (
        "Abort",
        "Context",
        "Result",
        "Resume",
    ),
    "decode": (
        "StrictSchema",
        "decode_wire",
        "encode_wire",
        "strictify",
    ),
    "descriptor": (
        "ANTHROPIC_NON_STRICT",
        "ANTHROPIC_STRICT",
        "DEFINED_FORMATS",
        "DescriptorFamily",
        "FormatDescriptor",
        "GOOGLE_NON_STRICT",
        "GOOGLE_STRICT",
        "LENIENT",
        "OPENAI_NON_STRICT",
        "OPENAI_STRICT",
        "SchemaSizeLimits",
        "ToJSONSchemaOptions",
        "XAI_NON_STRICT",
        "XAI_STRICT",
        "check_descriptor_consistency",
        "get_descriptor",
        "get_descriptor_by_id",
        "has_descriptor_family",
        "json_fallback_instruction",
        "register_descriptor",
        "resolve_descriptor",
    ),
    "emit": (
        "JSONSchema",
        "JSONSchemaType",
        "to_json_schema",
    ),
    "errors": (
        "AbortedError",
        "AeyeError",
        "AuthError",
        "CapabilityError",
        "ContextLengthError",
        "IncompatibleError",
        "MaxTurnsError",
        "NoModelError",
        "OutputError",
        "PromptCancelledError",
        "PromptError",
        "PromptSuspend",
        "ProtocolError",
        "ProviderError",
        "RateLimitError",
        "RefusalError",
        "SchemaError",
        "ServerError",
        "Signal",
        "StatusError",
        "StreamCutError",
        "TemplateError",
        "ToolApprovalRequiredError",
        "ToolArgumentError",
        "ToolCallError",
        "ToolError",
        "ToolInterrupt",
        "ToolNotFoundError",
        "TransportError",
        "TruncatedError",
    ),
    "event": (
        "CompleteEvent",
        "Event",
        "MessageEvent",
        "PromptEvent",
        "ReasonEvent",
        "ReasonPartialEvent",
        "RefusalEvent",
        "RequestEvent",
        "RequestUsageEvent",
        "ResetReason",
        "ResponseTokensEvent",
        "SuspendEvent",
        "TextCompleteEvent",
        "TextEvent",
        "TextPartialEvent",
        "TextResetEvent",
        "ToolArgRepairAttemptEvent",
        "ToolErrorEvent",
        "ToolInterruptEvent",
        "ToolOutputEvent",
        "ToolParseArgumentsEvent",
        "ToolParseNameEvent",
        "ToolProgressEvent",
        "ToolStartEvent",
        "ToolSuspendEvent",
        "UsageEvent",
    ),
    "event_stream": ("EventStream", "PromptToolOutput"),
    "hooks": (
        "HookAction",
        "PromptHook",
        "ToolApprovalDecision",
        "ToolApprovalRequest",
        "ToolApprovalRun",
        "ToolApprovalsOptions",
        "cancel_prompt",
        "create_hook",
        "request_tool_approval",
        "skip_tool",
    ),
    "loop": ("DEFAULT_USER_TURN",),
    "memory": (
        "InMemoryStore",
        "MemoryContext",
        "MemoryOptions",
        "MemoryStore",
        "SQLiteStore",
    ),
    "message": (
        "Json",
        "Message",
        "Part",
        "PartType",
        "Reasoning",
        "ReasoningDetail",
        "Role",
        "ToolCall",
    ),
    "middleware": (
        "AgentMiddleware",
        "ToolMiddleware",
    ),
    "observer": (
        "AgentObserver",
        "AgentTraceOptions",
        "GenerationObserver",
        "RunObserver",
        "ToolObserver",
    ),
    "prompt": ("Prompt", "ask"),
    "prompt_request": (
        "AgentStream",
        "PromptRequest",
        "PromptResponse",
    ),
    "recipe": ("Stats",),
    "request": (
        "Reason",
        "Request",
        "ResponseFormat",
        "SchemaDelivery",
        "ToolChoice",
        "ToolDefinition",
    ),
    "response": (
        "Chunk",
        "FinishReason",
        "Response",
        "ToolCallDelta",
        "join",
        "split",
    ),
    "retry": (
        "CompletionRetryContext",
        "CompletionRetryOptions",
    ),
    "schema": (
        "Field",
        "Finding",
        "Schema",
    ),
    "telemetry": ("OpenTelemetryObserver",),
    "template": (
        "HelperOptions",
        "Template",
    ),
    "tools": (
        "Tool",
        "ToolApproval",
        "tool",
    ),
    "trace_recorder": ("TraceRecorder",),
    "usage": (
        "AudioUsage",
        "EmbeddingUsage",
        "ImageOutput",
        "ImageUsage",
        "ReasoningUsage",
        "TextUsage",
        "Usage",
    ),
}
_WHERE = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name, or one of the modules, when it is first asked for."""
    from importlib import import_module

    if name in _WHERE:
        found: object = getattr(import_module("." + _WHERE[name], __name__), name)
    elif name in _MODULES or name == "testing":
        found = import_module("." + name, __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
