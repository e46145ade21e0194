"""What we ask a model: the request, the tools it may call, the shape of the answer."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Dict, Literal, Mapping, Optional, Sequence, Tuple, Union

from .message import Json, Message, Sparse
from .quick import quick
from .schema import Schema

__all__ = [
    "Reason",
    "Request",
    "ResponseFormat",
    "SchemaDelivery",
    "ToolChoice",
    "ToolDefinition",
]

SchemaDelivery = Literal["auto", "structured", "prompt"]
# A word, or the one tool to call: ``{"tool": name}``.
ToolChoice = Union[str, Dict[str, str]]

_DELIVERIES = ("auto", "structured", "prompt")
_CHOICES = ("auto", "none", "required")
_NUMBERS = (
    "temperature",
    "top_p",
    "max_tokens",
    "frequency_penalty",
    "presence_penalty",
)


@dataclass(frozen=True, repr=False)
class Reason(Sparse):
    """How much a model should think: an effort by name, or a number of tokens."""

    # "none", "minimal", "low", "medium", "high", … as the model knows them.
    effort: Optional[str] = None
    max_tokens: Optional[int] = None


@quick
@dataclass(frozen=True, repr=False)
class ToolDefinition(Sparse):
    """A tool as it is offered to a model."""

    name: str
    description: str
    # The source schema of the arguments; the dialect is chosen when it is sent.
    parameters: Schema
    # True, False, or a priority for the vendor's strict slots.
    strict: Union[bool, float] = 1
    # Id of the dialect that ``prepare`` chose; None: not chosen yet.
    descriptor: Optional[str] = None


@quick
@dataclass(frozen=True, repr=False)
class ResponseFormat(Sparse):
    """The shape of the answer."""

    # As it is sent: a root that is no object has been wrapped by ``prepare``.
    schema: Schema
    strict: Union[bool, float] = 1
    # "structured" goes out as a response format, "prompt" as text in the system
    # message; "auto" lets ``prepare`` decide.
    schema_delivery: SchemaDelivery = "auto"
    # Id of the dialect that ``prepare`` chose; None: not chosen, or sent as text.
    descriptor: Optional[str] = None

    def __post_init__(self) -> None:
        if self.schema_delivery not in _DELIVERIES:
            raise ValueError(
                f"schema_delivery is one of {_DELIVERIES}, not {self.schema_delivery!r}"
            )


@quick
@dataclass(frozen=True, repr=False)
class Request(Sparse):
    """Everything one model call is asked.

    The order of the fields is a contract; name everything after the second. None
    means "not said": the vendor's default holds.
    """

    messages: Tuple[Message, ...] = ()
    model: Optional[str] = None
    # The prompt's name; it also names the output schema on the wire.
    name: str = ""
    tools: Tuple[ToolDefinition, ...] = ()
    tool_choice: Optional[ToolChoice] = None
    tools_one_at_a_time: bool = False
    response_format: Union[Literal["text"], ResponseFormat] = "text"
    temperature: Optional[float] = None
    top_p: Optional[float] = None
    # Output tokens, reasoning included.
    max_tokens: Optional[int] = None
    stop: Tuple[str, ...] = ()
    frequency_penalty: Optional[float] = None
    presence_penalty: Optional[float] = None
    # Token id (as text) → bias.
    logit_bias: Optional[Dict[str, float]] = None
    # True, or how many alternatives to report for each token.
    log_probabilities: Union[bool, int] = False
    reason: Optional[Reason] = None
    cache_key: Optional[str] = None
    user_key: Optional[str] = None
    # Merged into the vendor's JSON as it is: the one hatch.
    extra: Optional[Json] = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "messages", tuple(self.messages))
        put(self, "tools", tuple(self.tools))
        stop: Any = self.stop
        put(self, "stop", (stop,) if isinstance(stop, str) else tuple(stop or ()))
        reason: Any = self.reason
        if isinstance(reason, Mapping):
            put(self, "reason", Reason(**reason))
        _check_choice(self.tool_choice)
        _check_numbers(self)

    @property
    def system(self) -> str:
        """The text of the leading system message; empty when there is none."""
        first = self.messages[0] if self.messages else None
        return first.text if first is not None and first.role == "system" else ""

    def with_messages(self, messages: Sequence[Message]) -> Request:
        """Return a copy with *messages*, quicker than ``dataclasses.replace``."""
        copy = object.__new__(Request)
        copy.__dict__.update(self.__dict__)
        copy.__dict__["messages"] = tuple(messages)
        return copy

    def with_config(self, config: Mapping[str, Any]) -> Request:
        """Return a copy with the fields of *config* set.

        Raises:
            TypeError: a key that is no field of ``Request``, with the names there are.
        """
        unknown = sorted(set(config) - _FIELDS, key=str)
        if unknown:
            raise TypeError(
                f"config has {unknown!r}, which Request has not; "
                f"it has {sorted(_FIELDS)}"
            )
        return replace(self, **config)


_FIELDS = frozenset(field.name for field in fields(Request))


def _check_numbers(request: Request) -> None:
    for name in _NUMBERS:
        value: Any = getattr(request, name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} is a number, not {value!r:.80}")
    limit: Any = request.max_tokens
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise ValueError(f"max_tokens is a whole number of at least 1, not {limit!r}")


def _check_choice(choice: object) -> None:
    if choice is None or choice in _CHOICES:
        return
    if isinstance(choice, Mapping) and set(choice) == {"tool"}:
        return
    raise ValueError(
        f"tool_choice is one of {_CHOICES} or {{'tool': name}}, not {choice!r}"
    )
