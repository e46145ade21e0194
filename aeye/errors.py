"""Every exception and signal of aeye.

::

    AeyeError                                       .messages
    ├── TemplateError               (ValueError)    .line .column .source
    ├── SchemaError                 (ValueError)    .path
    ├── ProviderError                               .provider .retryable .partial
    │   ├── TransportError          (OSError)       no usable HTTP answer
    │   ├── StatusError                             .status .body .request_id
    │   │   ├── AuthError                           401, 403
    │   │   ├── RateLimitError                      429; .retry_after
    │   │   ├── ContextLengthError                  the request does not fit the model
    │   │   └── ServerError                         5xx
    │   ├── ProtocolError           (ValueError)    an answer that cannot be read
    │   ├── StreamCutError                          ended without its end mark
    │   └── CapabilityError                         the model cannot do what was asked
    ├── ToolError                                   .tool
    │   ├── ToolNotFoundError       (LookupError)
    │   ├── ToolArgumentError       (ValueError)    .path
    │   └── ToolCallError                           __cause__ is the tool's exception
    └── PromptError                                 .prompt_name .messages .usage
        ├── NoModelError                            nothing to ask: no model in reach
        ├── IncompatibleError                       config or retool said False
        ├── AbortedError                            ctx.signal was set
        ├── RefusalError                            .refusal
        ├── TruncatedError                          .partial .limit
        ├── OutputError             (ValueError)    .issues
        ├── MaxTurnsError                           .max_turns .chat_history .prompt
        ├── PromptCancelledError                    .chat_history .reason
        └── ToolApprovalRequiredError               .request
    Signal
    ├── ToolInterrupt
    └── PromptSuspend

Three kinds, kept apart. Misuse of the API is a builtin ``TypeError`` or
``ValueError``. What the world did is an ``AeyeError``. What a tool *says* is a
``Signal``, which ``except AeyeError`` lets by. ``args`` is the bare message
alone, so that every error survives ``pickle`` and ``copy``; where it happened is
added when it is printed. No error holds a key, a header or a live object.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence, Tuple

from .message import Message
from .usage import Usage

__all__ = [
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
]


class AeyeError(Exception):
    """What went wrong outside the caller's own code."""

    # The new messages of the run that the error left, if it left one; every tool
    # call in them is answered.
    messages: Tuple[Message, ...] = ()

    @property
    def message(self) -> str:
        """The bare message, without the place."""
        return str(self.args[0]) if self.args else ""


class TemplateError(AeyeError, ValueError):
    """A template that cannot be read or rendered."""

    def __init__(
        self,
        message: str = "",
        *,
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(message)
        # Both count from 1; the column counts characters.
        self.line = line
        self.column = column
        # The text of that line.
        self.source = source

    def __str__(self) -> str:
        if self.line is None:
            return self.message
        place = f"{self.message} (line {self.line}, column {self.column})"
        if self.source is None:
            return place
        return f"{place}\n  {self.source}\n  {' ' * ((self.column or 1) - 1)}^"


class SchemaError(AeyeError, ValueError):
    """A schema, or a type it is made from, that cannot be used."""

    def __init__(self, message: str = "", *, path: str | None = None) -> None:
        super().__init__(message)
        # Where, as ``$.properties.age``.
        self.path = path

    def __str__(self) -> str:
        return f"{self.message} (at {self.path})" if self.path else self.message


class ProviderError(AeyeError):
    """The model could not be asked, or its answer could not be used."""

    # Whether asking again may help.
    retryable = False
    # The text that had arrived when a stream failed.
    partial = ""

    def __init__(
        self,
        message: str = "",
        *,
        provider: str | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        # What the failed attempt cost, where the vendor said it.
        self.usage = usage

    def __str__(self) -> str:
        return f"{self.provider}: {self.message}" if self.provider else self.message


class TransportError(ProviderError, OSError):
    """No usable HTTP answer: no connection, a time-out, a body that broke off."""

    retryable = True

    def __str__(self) -> str:  # OSError would print its own way
        return ProviderError.__str__(self)


class StatusError(ProviderError):
    """The vendor answered with an error status."""

    def __init__(
        self,
        message: str = "",
        *,
        provider: str | None = None,
        usage: Usage | None = None,
        status: int | None = None,
        body: Any = None,
        request_id: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, provider=provider, usage=usage)
        self.status = status
        # The decoded body, or its text; cut to a sensible size.
        self.body = body
        self.request_id = request_id
        # The vendor's own word for the fault, such as "model_not_found".
        self.code = code
        # Seconds the vendor asks to wait.
        self.retry_after = retry_after

    def __str__(self) -> str:
        notes = []
        if self.status is not None:
            notes.append(f"HTTP {self.status}")
        if self.request_id:
            notes.append(f"request {self.request_id}")
        place = f" ({', '.join(notes)})" if notes else ""
        return super().__str__() + place


class AuthError(StatusError):
    """The key is missing, wrong, or not allowed to do this."""


class RateLimitError(StatusError):
    """Too many requests, or a quota used up."""

    retryable = True


class ContextLengthError(StatusError):
    """The request does not fit the model's window."""


class ServerError(StatusError):
    """The vendor failed."""

    retryable = True


class ProtocolError(ProviderError, ValueError):
    """An answer that cannot be read."""


class StreamCutError(ProviderError):
    """A stream that ended without its format's end mark."""

    def __init__(
        self,
        message: str = "",
        *,
        provider: str | None = None,
        usage: Usage | None = None,
        partial: str = "",
    ) -> None:
        super().__init__(message, provider=provider, usage=usage)
        self.partial = partial


class CapabilityError(ProviderError):
    """The model, or the format it is asked in, cannot do what was asked."""


class ToolError(AeyeError):
    """A tool could not be run, or failed."""

    def __init__(self, message: str = "", *, tool: str | None = None) -> None:
        super().__init__(message)
        # The tool's name.
        self.tool = tool


class ToolNotFoundError(ToolError, LookupError):
    """The model called a tool that was not offered."""

    def __str__(self) -> str:
        return self.message


class ToolArgumentError(ToolError, ValueError):
    """Arguments that do not fit the tool."""

    def __init__(
        self, message: str = "", *, tool: str | None = None, path: str | None = None
    ) -> None:
        super().__init__(message, tool=tool)
        self.path = path


class ToolCallError(ToolError):
    """The tool raised; ``__cause__`` is its exception."""


class PromptError(AeyeError):
    """A run that ended without a result."""

    def __init__(
        self,
        message: str = "",
        *,
        prompt_name: str | None = None,
        messages: Sequence[Message] = (),
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.prompt_name = prompt_name
        self.messages = tuple(messages)
        # What the run had cost by then, failed attempts included.
        self.usage = Usage.empty() if usage is None else usage


class NoModelError(PromptError):
    """There is no model to ask."""


class IncompatibleError(PromptError):
    """``config`` or ``retool`` said that the prompt does not fit this context."""


class AbortedError(PromptError):
    """``ctx.signal`` was set before there was a result."""


class RefusalError(PromptError):
    """The model refused, or a filter cut its answer."""

    def __init__(
        self,
        message: str = "",
        *,
        prompt_name: str | None = None,
        messages: Sequence[Message] = (),
        usage: Usage | None = None,
        refusal: str | None = None,
    ) -> None:
        super().__init__(
            message, prompt_name=prompt_name, messages=messages, usage=usage
        )
        # The model's own words, where it said any.
        self.refusal = refusal


class TruncatedError(PromptError):
    """The answer was cut by a length limit."""

    def __init__(
        self,
        message: str = "",
        *,
        prompt_name: str | None = None,
        messages: Sequence[Message] = (),
        usage: Usage | None = None,
        partial: str = "",
        limit: int | None = None,
    ) -> None:
        super().__init__(
            message, prompt_name=prompt_name, messages=messages, usage=usage
        )
        self.partial = partial
        # Output tokens that were allowed, where known.
        self.limit = limit


class OutputError(PromptError, ValueError):
    """The answer never had the shape that was asked for."""

    def __init__(
        self,
        message: str = "",
        *,
        prompt_name: str | None = None,
        messages: Sequence[Message] = (),
        usage: Usage | None = None,
        issues: Sequence[str] = (),
    ) -> None:
        super().__init__(
            message, prompt_name=prompt_name, messages=messages, usage=usage
        )
        # One line for each fault of the last answer.
        self.issues: Tuple[str, ...] = tuple(issues)


class MaxTurnsError(PromptError):
    """The run asked for one model call more than it may make."""

    def __init__(
        self,
        message: str = "",
        *,
        prompt_name: str | None = None,
        messages: Sequence[Message] = (),
        usage: Usage | None = None,
        max_turns: int = 0,
        chat_history: Sequence[Message] = (),
        prompt: Message | None = None,
    ) -> None:
        super().__init__(
            message, prompt_name=prompt_name, messages=messages, usage=usage
        )
        self.max_turns = max_turns
        # The history that was given and all new messages.
        self.chat_history: Tuple[Message, ...] = tuple(chat_history)
        # The message that opened the last turn.
        self.prompt = prompt


class PromptCancelledError(PromptError):
    """A hook or middleware ended the run."""

    def __init__(
        self,
        message: str = "",
        *,
        prompt_name: str | None = None,
        messages: Sequence[Message] = (),
        usage: Usage | None = None,
        chat_history: Sequence[Message] = (),
        reason: str = "",
    ) -> None:
        super().__init__(
            message, prompt_name=prompt_name, messages=messages, usage=usage
        )
        self.chat_history: Tuple[Message, ...] = tuple(chat_history)
        self.reason = reason


class ToolApprovalRequiredError(PromptError):
    """A tool call waits for a person's decision."""

    def __init__(
        self,
        message: str = "",
        *,
        prompt_name: str | None = None,
        messages: Sequence[Message] = (),
        usage: Usage | None = None,
        request: Any = None,
        children: Mapping[str, Sequence[Message]] | None = None,
    ) -> None:
        super().__init__(
            message, prompt_name=prompt_name, messages=messages, usage=usage
        )
        # What waits, a ``ToolApprovalRequest``: the tool's name, the arguments, …
        self.request = request
        # As those of ``PromptSuspend``.
        self.children = {k: tuple(v) for k, v in (children or {}).items()}


class Signal(Exception):
    """What a tool says to the run. Not an error: ``except AeyeError`` lets it by."""


class ToolInterrupt(Signal):
    """Raised by a tool: stop the run here, the call is answered ``[interrupted]``."""

    def __init__(self, message: str = "Tool execution interrupted") -> None:
        super().__init__(message)


class PromptSuspend(Signal):
    """Raised by a tool: stop the run and leave the call open, to be resumed later."""

    def __init__(
        self,
        message: str = "Prompt execution suspended",
        *,
        messages: Sequence[Message] = (),
        children: Mapping[str, Sequence[Message]] | None = None,
        request: Any = None,
    ) -> None:
        super().__init__(message)
        # The transcript to resume from, set where the signal leaves a run.
        self.messages: Tuple[Message, ...] = tuple(messages)
        # By call id, the same of runs inside calls that wait; "a/b" is inside "a".
        self.children = {k: tuple(v) for k, v in (children or {}).items()}
        # The ``ToolApprovalRequest``, where somebody's consent is waited for.
        self.request = request
