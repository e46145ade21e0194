"""In which dialect each schema of a request goes out, and by which way.

``plan`` is a pure function of the tools, the output and what the model can do. Its
result is kept, since a prompt asks for the same tools and the same output at every
turn.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import List, Literal, Optional, Tuple, Union

from .budget import SchemaBudget, can_express, explain, strict_priority
from .decode import wrap_root
from .descriptor import (
    LENIENT,
    FormatDescriptor,
    get_descriptor,
    json_fallback_instruction,
)
from .emit import to_json_schema
from .errors import CapabilityError
from .message import Message, Part
from .request import Request, ResponseFormat, ToolDefinition
from .schema import Schema
from .wire import ModelFacts

__all__ = ["apply_plan", "is_planned"]

_Output = Union[Literal["text"], ResponseFormat]

_MARK = "JSON object conforming to this schema"


@dataclass(frozen=True)
class _Plan:
    tools: Tuple[ToolDefinition, ...]
    output: _Output
    # What the system message must say, when the schema goes out as text.
    text: Optional[str] = None
    # Why what was to be strict is not.
    warnings: Tuple[str, ...] = ()


def is_planned(request: Request) -> bool:
    """Whether *request* has been through ``apply_plan``."""
    if any(tool.descriptor is None for tool in request.tools):
        return False
    output = request.response_format
    if not isinstance(output, ResponseFormat) or output.descriptor is not None:
        return True
    return output.schema_delivery == "prompt" and _MARK in request.system


def apply_plan(request: Request, facts: ModelFacts) -> Request:
    """Return *request* with its dialects chosen and its schema where it is to stand.

    Raises:
        CapabilityError: ``strict=True`` or ``schema_delivery="structured"`` was asked
            of a model that has no such thing.
    """
    # Equal values may differ in ``strict``: True is more than 1.
    stricts = tuple(tool.strict is True for tool in request.tools)
    output = request.response_format
    firm = isinstance(output, ResponseFormat) and output.strict is True
    plan = _plan(request.tools, output, facts, (*stricts, firm))
    for warning in plan.warnings:
        where = f"prompt {request.name!r}, " if request.name else ""
        warnings.warn(where + warning, stacklevel=_level_of_caller())
    messages = request.messages
    if plan.text is not None:
        messages = _with_text(messages, plan.text)
    return replace(
        request,
        messages=messages,
        tools=plan.tools,
        response_format=plan.output,
    )


@lru_cache(maxsize=256)
def _plan(
    tools: Tuple[ToolDefinition, ...],
    output: _Output,
    facts: ModelFacts,
    stricts: Tuple[bool, ...],
) -> _Plan:
    tool_dialect = _dialect(facts, facts.strict_tools)
    output_dialect = _dialect(facts, facts.strict_output)
    text = None
    said: List[Optional[str]] = []
    # What wants a strict slot: the output first among equals, since a wrong answer
    # costs a turn and wrong arguments cost one too but are likelier to be right.
    wanting: List[Tuple[float, Optional[int]]] = []
    if isinstance(output, ResponseFormat) and output.descriptor is None:
        output = replace(output, schema=wrap_root(output.schema))
        if _as_text(output, facts, bool(tools)):
            dialect = _dialect(facts, strict=True)
            text = _schema_text(output.schema, dialect)
            output = replace(output, schema_delivery="prompt")
            said.append(_warning_of_text(output, facts))
        else:
            _check_strict("the output", output.strict, output_dialect)
            wanting.append((strict_priority(output.strict), None))
    for i, tool in enumerate(tools):
        if tool.descriptor is None:
            _check_strict(f"the tool {tool.name!r}", tool.strict, tool_dialect)
            wanting.append((strict_priority(tool.strict), i))
    budget = SchemaBudget(tool_dialect, output_dialect)
    planned = list(tools)
    for _, place in sorted(wanting, key=lambda pair: -pair[0]):
        if place is not None:
            tool = tools[place]
            chosen = budget.allocate_tool(tool.parameters, tool.strict)
            what = f"tool {tool.name!r}"
            said.append(
                _warning(what, tool.parameters, tool.strict, chosen, tool_dialect)
            )
            planned[place] = replace(tool, descriptor=chosen.id)
        elif isinstance(output, ResponseFormat):
            chosen = budget.allocate_output(output.schema, output.strict)
            said.append(
                _warning("output", output.schema, output.strict, chosen, output_dialect)
            )
            output = replace(output, descriptor=chosen.id)
    return _Plan(tuple(planned), output, text, tuple(filter(None, said)))


def _dialect(facts: ModelFacts, strict: bool) -> FormatDescriptor:
    return get_descriptor(facts.family, strict) if facts.family else LENIENT


def _as_text(output: ResponseFormat, facts: ModelFacts, tools: bool) -> bool:
    """Whether the schema goes out as text in the system message."""
    delivery = output.schema_delivery
    if delivery == "prompt":
        return True
    able = facts.structured_output and (facts.output_with_tools or not tools)
    if delivery == "structured":
        if not able:
            raise CapabilityError(
                "the model takes no schema for its answer"
                f"{' beside tools' if facts.structured_output else ''}; "
                "schema_delivery='auto' sends it as text"
            )
        return False
    dialect = _dialect(facts, strict=True)
    return not able or not can_express(output.schema, dialect)


def _check_strict(what: str, strict: object, dialect: FormatDescriptor) -> None:
    if strict is True and not dialect.strict:
        raise CapabilityError(
            f"strict=True for {what}, but the model has no strict mode; strict=1 "
            "takes one where there is one"
        )


def _warning(
    what: str,
    schema: Schema,
    strict: object,
    chosen: FormatDescriptor,
    dialect: FormatDescriptor,
) -> str | None:
    """Say why a schema that was to be strict is not."""
    if strict is not True or chosen.strict:
        return None
    reasons = "; ".join(str(reason) for reason in explain(schema, dialect))
    return (
        f"{what}: strict=True, but the schema cannot go out as {dialect.id}: "
        f"{reasons or 'the limits of a request are reached'}"
    )


def _warning_of_text(output: ResponseFormat, facts: ModelFacts) -> str | None:
    """Say why a schema that was to be strict goes out as text."""
    if output.strict is not True:
        return None
    dialect = _dialect(facts, strict=True)
    reasons = "; ".join(str(reason) for reason in explain(output.schema, dialect))
    if not facts.structured_output or can_express(output.schema, dialect):
        reasons = "the model takes no schema here, or was not to get one"
    return f"output: strict=True, but the schema goes out as text: {reasons}"


_PACKAGE = str(Path(__file__).parent)


def _level_of_caller() -> int:
    """Return the stack level, for whoever calls this, of the first line not ours."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    return level


def _schema_text(schema: Schema, dialect: FormatDescriptor) -> str:
    wire = to_json_schema(schema, LENIENT, describe_dropped=True)
    shown = json.dumps(wire, indent=2, ensure_ascii=False)
    return (
        f"Answer with a {_MARK}:\n\n```json\n{shown}\n```\n\n"
        f"{json_fallback_instruction(dialect)}"
    )


def _with_text(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Add *text* to the first system message, or put one before the rest."""
    for i, message in enumerate(messages):
        if message.role != "system":
            continue
        if text in message.text:
            return messages
        if isinstance(message.content, str):
            joined = f"{message.content}\n\n{text}" if message.content else text
            message = replace(message, content=joined)
        else:
            message = replace(message, content=(*message.content, Part.text(text)))
        return (*messages[:i], message, *messages[i + 1 :])
    return (Message("system", text), *messages)
