"""An agent: a prompt with a model and defaults, to be talked to."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Generic,
    Iterable,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
    cast,
    overload,
)

from .agent_event import AgentStreamEvent, AgentToolEvent, ChildEvent
from .callback import listed
from .conduct import Settings
from .context import Context, inside
from .decision import nest, where_it_waits
from .errors import PromptSuspend, ToolApprovalRequiredError
from .hooks import bind_approvals, bind_hook
from .memory import MemoryContext, MemoryOptions
from .message import Message
from .middleware import bind_middleware
from .observer import check_observer
from .prompt import ASKED, Prompt
from .prompt_request import PromptRequest
from .tools import Tool, fitting_name

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class AgentOptions(TypedDict, total=False):
        """What ``Agent`` takes besides the prompt and the context."""

        input: Any
        id: str | None
        name: str | None
        description: str | None
        tools: Sequence[Tool[Any]]
        max_turns: int
        hook: object
        middlewares: Iterable[object]
        approvals: object
        observers: Iterable[object]
        memory: Any


__all__ = ["Agent", "Session"]

T = TypeVar("T")


class Agent(Generic[T]):
    """A prompt, a model and defaults; *T* is what the prompt makes of its answer.

    *prompt* is a ``Prompt``, or instructions as plain text (no template). *input*
    fills the prompt's template; *tools* are added to the prompt's own. The rest are
    the defaults of each request: see ``PromptRequest`` for what they do. *memory* is a
    store or ``MemoryOptions`` and is needed by ``session``.

    An agent holds no state of a run: one object serves any number of threads.

    Raises:
        TypeError, ValueError: an argument cannot be what it must be.
    """

    kind: Literal["agent"] = "agent"

    if TYPE_CHECKING:

        @overload
        def __init__(
            self: Agent[str],
            prompt: str,
            ctx: Context | Mapping[str, Any] | None = None,
            **options: Unpack[AgentOptions],
        ) -> None: ...
        @overload
        def __init__(
            self,
            prompt: Prompt[T],
            ctx: Context | Mapping[str, Any] | None = None,
            **options: Unpack[AgentOptions],
        ) -> None: ...

    def __init__(  # noqa: PLR0913  # the public constructor's names are the contract
        self,
        prompt: Union[Prompt[Any], str],
        ctx: Context | Mapping[str, Any] | None = None,
        *,
        input: Any = None,
        id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        tools: Sequence[Tool[Any]] = (),
        max_turns: int = 20,
        hook: object = None,
        middlewares: Iterable[object] = (),
        approvals: object = None,
        observers: Iterable[object] = (),
        memory: Any = None,
    ) -> None:
        if isinstance(prompt, str):
            if input is not None:
                raise TypeError(
                    "input fills a template, and instructions as text are none: give "
                    "a Prompt"
                )
            prompt = _instructed(name or "agent", prompt)
        if not isinstance(prompt, Prompt):
            raise TypeError(
                f"prompt is a Prompt or instructions as text, not {prompt!r:.80}"
            )
        # What a request says is a message: a prompt that hides them would hear nothing.
        self._prompt: Prompt[T] = prompt.replace(
            tools=[*prompt.tools, *listed(tools, "tools")], exclude_messages=False
        )
        self.name = name or prompt.name
        self.id = id or self.name
        self.description = description or prompt.description
        self.tools: Tuple[Tool[Any], ...] = self._prompt.tools
        self._own_ctx = ctx is not None
        self._ctx = Context.of(ctx)
        self._input = input
        self._settings = Settings(
            agent_id=self.id,
            agent_name=self.name,
            agent_description=self.description or None,
            hook=bind_hook(hook),
            middlewares=tuple(
                bind_middleware(given) for given in listed(middlewares, "middlewares")
            ),
            approvals=None if approvals is None else bind_approvals(approvals),
            observers=tuple(
                check_observer(given) for given in listed(observers, "observers")
            ),
            memory=None if memory is None else MemoryOptions.of(memory),
        )
        # A request checks the number, so that there is one place that does.
        request = self._request(self._ctx, (), None, self._settings)
        self._settings = request.max_turns(max_turns).settings

    def __repr__(self) -> str:
        tools = f", tools={[tool.name for tool in self.tools]}" if self.tools else ""
        return f"<Agent {self.name}{tools}>"

    def prompt(
        self, prompt: str | Message | Sequence[Message], *, input: Any = None
    ) -> PromptRequest[T]:
        """Return a request that says *prompt*: a text, a message, or a transcript.

        The last message of a transcript is the prompt, the others are history.
        *input* updates the agent's, or replaces it where one of them is no dict.

        Raises:
            TypeError: *prompt* is none of them, or an empty transcript.
        """
        said = (
            (_said(prompt),)
            if isinstance(prompt, (str, Message))
            else _transcript(prompt)
        )
        return self._request(self._ctx, said, input, self._settings)

    def session(
        self,
        id: str,
        *,
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session[T]:
        """Return the session *id*: what is said in it is kept in the agent's store.

        Raises:
            TypeError: *id* says nothing, or *user_id* is no str.
            ValueError: the agent has no memory.
        """
        given: Any = id
        if not isinstance(given, str) or not given.strip():
            raise TypeError(f"a session's id is a str that says something, not {id!r}")
        if self._settings.memory is None:
            raise ValueError(
                f"agent {self.name!r} has no memory: make it with "
                "memory=InMemoryStore() or another store"
            )
        return Session(self, MemoryContext(id.strip(), user_id, dict(metadata or {})))

    def resume(
        self,
        messages: Sequence[Message] | ToolApprovalRequiredError | PromptSuspend,
        decisions: Mapping[str, Any],
        *,
        input: Any = None,
    ) -> PromptRequest[T]:
        """Return a request that goes on where a run waits.

        *messages* is the error that was raised, or its messages, which can be saved
        and read. *decisions* say for each call that waits, by its id: True to run it
        with the arguments it has, a text to refuse it, or ``Result(value)`` to answer
        it; ``"a/b"`` is the call ``b`` of a child agent inside the call ``a``. Calls
        that nothing was said about go on waiting.
        """
        return self._resume(messages, decisions, input, self._settings)

    def as_tool(
        self,
        name: str | None = None,
        description: str | None = None,
        max_turns: int | None = None,
        stream: bool = False,
    ) -> Tool[Any]:
        """Return a tool that runs this agent: one text in, its output out.

        The child has its own hook, limits and session-less history; of the run that
        calls it it gets only the signal, and the model where it has none of its own.
        With *stream* that run's stream shows the child's events too.

        Raises:
            TypeError, ValueError: an argument cannot be what it must be.
        """
        if max_turns is not None:  # now, not when a model calls it
            self._request(self._ctx, (), None, self._settings).max_turns(max_turns)

        def ask(args: Mapping[str, str], ctx: Context) -> str:
            try:
                return self._child(args["prompt"], ctx, max_turns).send().output
            except ToolApprovalRequiredError as exc:
                raise _waiting(exc) from exc

        def tell(args: Mapping[str, str], ctx: Context) -> Any:
            try:
                with self._child(args["prompt"], ctx, max_turns).stream() as events:
                    for event in events:
                        yield self._forwarded(event)
            except ToolApprovalRequiredError as exc:
                raise _waiting(exc) from exc
            return events.response.output

        return Tool(
            name or fitting_name(self.name),
            tell if stream else ask,
            description=description or self.description or _about(self.name),
            schema=ASKED,
        )

    def _resume(
        self,
        place: Any,
        decisions: Mapping[str, Any],
        input: Any,
        settings: Settings,
    ) -> PromptRequest[T]:
        saved, children = where_it_waits(place)
        ctx = self._ctx.replace(decisions=nest(decisions, children))
        base = ctx.messages
        if saved[: len(base)] == base:  # the context's own are there already
            saved = saved[len(base) :]
        else:
            ctx = ctx.replace(messages=())
        return self._request(ctx, _transcript(saved), input, settings)

    def _child(
        self, text: str, ctx: Context, max_turns: Optional[int]
    ) -> PromptRequest[T]:
        own = self._ctx if self._own_ctx else ctx.replace(metadata={})
        said: Tuple[Message, ...] = (_said(text),)
        if ctx.decisions is not None:  # it goes on where it waited
            own, said = own.replace(messages=()), ctx.messages
        elif not self._own_ctx:
            own = own.replace(messages=())
        request = self._request(inside(own, ctx), said, None, self._settings)
        return request if max_turns is None else request.max_turns(max_turns)

    def _forwarded(self, event: AgentStreamEvent) -> ChildEvent:
        """Return what the calling run is told; a grandchild's event as its own."""
        if isinstance(event, AgentToolEvent):
            return ChildEvent(event.agent_id, event.agent_name, event.event)
        return ChildEvent(self.id, self.name, event)

    def _request(
        self,
        ctx: Context,
        said: Sequence[Message],
        input: Any,
        settings: Settings,
    ) -> PromptRequest[T]:
        return PromptRequest(
            self._prompt.start,
            _merged(self._input, input),
            ctx,
            messages=said,
            settings=settings,
        )


class Session(Generic[T]):
    """A conversation that is kept: what was said comes before what is said next.

    Two requests of one session at a time do not see each other's messages.
    """

    def __init__(self, agent: Agent[T], context: MemoryContext) -> None:
        self._agent = agent
        self.context = context

    def __repr__(self) -> str:
        return f"<Session {self.context.session_id} of {self._agent.name}>"

    def prompt(self, prompt: str | Message, *, input: Any = None) -> PromptRequest[T]:
        """Return a request that says *prompt* after what the session holds.

        Raises:
            TypeError: *prompt* is a transcript, which a session has already.
        """
        if not isinstance(prompt, (str, Message)):
            raise TypeError(
                "a session keeps its own transcript: give a text or one Message, "
                f"not {prompt!r:.80}"
            )
        agent = self._agent
        return agent._request(agent._ctx, (_said(prompt),), input, self._settings)

    def resume(
        self,
        messages: Sequence[Message] | ToolApprovalRequiredError | PromptSuspend,
        decisions: Mapping[str, Any],
        *,
        input: Any = None,
    ) -> PromptRequest[T]:
        """Return a request that goes on where a run of this session waits.

        As ``Agent.resume``; what was said and is not held yet is saved with the rest.
        """
        return self._agent._resume(messages, decisions, input, self._settings)

    def messages(self) -> tuple[Message, ...]:
        """Return what the session holds."""
        return tuple(self._options.store.load(self.context))

    def clear(self) -> None:
        """Forget the session."""
        self._options.store.clear(self.context)

    @property
    def _options(self) -> MemoryOptions:
        return cast(MemoryOptions, self._agent._settings.memory)

    @property
    def _settings(self) -> Settings:
        return replace(self._agent._settings, session=self.context)


def _instructed(name: str, instructions: str) -> Prompt[Any]:
    """Return a prompt whose system message is *instructions* as they are."""
    return Prompt(
        name,
        "{{{instructions}}}" if instructions else "",
        input=partial(_put, instructions),
    )


def _put(instructions: str, given: Any) -> Dict[str, str]:
    return {"instructions": instructions}


def _said(prompt: str | Message) -> Message:
    return prompt if isinstance(prompt, Message) else Message("user", prompt)


def _transcript(messages: Any) -> tuple[Message, ...]:
    if not isinstance(messages, (list, tuple)) or not messages:
        raise TypeError(
            f"a prompt is a text, a Message or a list of some, not {messages!r:.80}"
        )
    for message in messages:
        if not isinstance(message, Message):
            raise TypeError(f"a transcript holds Message values, not {message!r:.80}")
    return tuple(messages)


def _merged(own: Any, given: Any) -> Any:
    if given is None:
        return own
    if isinstance(own, Mapping) and isinstance(given, Mapping):
        return {**own, **given}
    return given


def _waiting(error: ToolApprovalRequiredError) -> PromptSuspend:
    """Return the signal that makes the run around a child that waits wait too."""
    return PromptSuspend(
        messages=error.messages, children=error.children, request=error.request
    )


def _about(name: str) -> str:
    return f"Ask the agent {name} to do something and get its answer."
