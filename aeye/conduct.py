"""One run of the fluent door: a policy for the loop, and what it tells.

The loop asks the policy; the policy asks hooks, middleware, approvals, observers and
the session's journal, and turns the loop's events into the door's. All of that
happens in the caller's thread.
"""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import (
    Any,
    Callable,
    Dict,
    Generator,
    Generic,
    Iterable,
    Iterator,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Type,
    TypeVar,
    cast,
)

from .agent_event import (
    AgentErrorStreamEvent,
    AgentEvent,
    AgentFinalEvent,
    AgentTextDeltaEvent,
    AgentToolCallDeltaEvent,
    AgentToolCallEvent,
    AgentToolEvent,
    AgentToolResultEvent,
    AgentTraceInfo,
    AgentTurnEndEvent,
    AgentTurnStartEvent,
    ChildEvent,
    reasoning_deltas,
)
from .call import Call
from .callback import Bound, attempt, attempt_all
from .context import Context
from .decision import approved, unanswered
from .errors import (
    AbortedError,
    CapabilityError,
    IncompatibleError,
    PromptCancelledError,
    PromptError,
    PromptSuspend,
    ToolApprovalRequiredError,
)
from .event import (
    Event,
    MessageEvent,
    ReasonPartialEvent,
    RequestEvent,
    SuspendEvent,
    TextPartialEvent,
    TextResetEvent,
    ToolProgressEvent,
)
from .hooks import (
    CompletionCallArgs,
    CompletionErrorArgs,
    CompletionResponseArgs,
    HookAction,
    RunControl,
    RunEndArgs,
    RunErrorArgs,
    RunStartArgs,
    ToolApprovalRequest,
    ToolApprovalRun,
    ToolCallArgs,
    ToolControl,
    ToolErrorArgs,
    TurnEndArgs,
    TurnStartArgs,
)
from .loop import Run
from .memory import Journal, MemoryContext, MemoryOptions
from .message import Message, ToolCall
from .middleware import Pipeline, text_of
from .observer import AgentTraceOptions, ObservedRun, RunEvent, Watch, retry_event
from .recipe import Policy
from .request import Request
from .response import Chunk, Response
from .retry import (
    CompletionRetryContext,
    CompletionRetryOptions,
)
from .schema import Schema
from .tools import ToolApproval, natural_arguments
from .usage import Usage
from .window import repair

__all__ = ["Conduct", "Events", "PromptResponse", "Settings", "Start"]

# Makes a run of some prompt, to be driven under a policy.
Start = Callable[[Any, Context, Policy], Run]
Events = Generator[AgentEvent, None, "PromptResponse[Any]"]
# Makes this door's events of one of the loop's.
Translation = Callable[[Any], Sequence[AgentEvent]]

T = TypeVar("T")

# What the model reads where a call that had waited was begun by an earlier run.
_STARTED = "[not run: it was started before, and what came of it is not known]"
_CONTROLS = {"run": RunControl(), "tool": ToolControl()}
# What a hook may want, and what it may want besides when a tool is about to be called.
_ABOUT_RUNS = ("continue", "terminate")
_ABOUT_CALLS = (*_ABOUT_RUNS, "skip", "approval_request")


@dataclass(frozen=True)
class Settings:
    """What a request has been told to do."""

    agent_id: str = ""
    agent_name: Optional[str] = None
    agent_description: Optional[str] = None
    max_turns: int = 20
    tool_concurrency: int = 1
    # Callbacks by name.
    hook: Mapping[str, Bound] = field(default_factory=dict)
    middlewares: Tuple[Mapping[str, Bound], ...] = ()
    # Gives None for consent, else what the model reads. None: nobody to ask.
    approvals: Optional[Callable[[ToolApprovalRequest], Optional[str]]] = None
    observers: Tuple[Any, ...] = ()
    retries: Optional[CompletionRetryOptions] = None
    trace: AgentTraceOptions = field(default_factory=AgentTraceOptions)
    memory: Optional[MemoryOptions] = None
    session: Optional[MemoryContext] = None

    @cached_property
    def pipeline(self) -> Pipeline:
        """The middleware, in order."""
        return Pipeline(self.middlewares)

    @cached_property
    def attended(self) -> bool:
        """Whether anybody is told of turns and calls, be it not the reader."""
        return bool(self.hook or self.middlewares or self.observers)

    @cached_property
    def holds_back(self) -> bool:
        """Whether text waits until hooks and middleware have been asked."""
        place = "on_completion_response"
        return place in self.hook or self.pipeline.has(place)


@dataclass(frozen=True)
class PromptResponse(Generic[T]):
    """How a request ended."""

    # The text of the last answer.
    output: str
    usage: Usage
    # The run's new messages, the prompt first; not what was said before.
    messages: Tuple[Message, ...]
    trace: Optional[AgentTraceInfo] = None
    # The prompt's own output: the checked value where it has a schema, else the text.
    parsed: Optional[T] = None
    # What runs within its calls cost, beside *usage*; None where there were none.
    nested: Optional[Usage] = None


@dataclass
class _ToolRecord:
    """What the door knows of one call."""

    about: ToolCallArgs
    # The arguments as the model wrote them.
    original: str
    # What a hook wants said where it asked for consent.
    wish: Optional[ToolApproval] = None


class Conduct(Policy):
    """Conducts one run: ``events`` moves it on, the rest is what the loop asks."""

    # "completed", "errored" or "cancelled" when the run has ended.
    outcome: Optional[str] = None
    # Set before the generator is closed by hand: then the end waits for tools.
    closing = False

    _run: Optional[Run] = None
    _journal: Optional[Journal] = None
    # Whether somebody reads the events; what nobody hears is not made.
    _streaming = False
    # Whether the run began at calls that waited: then its prompt is none of its own.
    _goes_on = False
    _turn = 0
    # The message that opened the turn.
    _prompt: Message
    _opened = 0.0
    _first_delta: Optional[float] = None
    # The calls of this turn that were told of, and the ids of those that were named
    # and of those with results.
    _announced: Dict[str, ToolCall]
    _named: Set[str]
    _reported: Set[str]
    _waiting: Optional[ToolApprovalRequest] = None
    _last: Optional[Event] = None

    def __init__(
        self, settings: Settings, input: Any, ctx: Context, said: Sequence[Message]
    ) -> None:
        self.max_turns = settings.max_turns
        self.tool_concurrency = settings.tool_concurrency
        self._settings = settings
        self._input = input
        self._ctx = ctx
        # The messages that the request was made with, the prompt last.
        self._said = self._began = tuple(said)
        self._watch = Watch(settings.observers, settings.trace)
        if settings.memory is not None and settings.session is not None:
            self._journal = Journal(settings.memory, settings.session, self.run_id)
        self._attended = settings.attended
        self._tools: Dict[str, _ToolRecord] = {}

    @cached_property
    def run_id(self) -> str:
        """What the run is called; unique."""
        return str(uuid.uuid4())

    @property
    def usage(self) -> Usage:
        """What the run has cost so far."""
        return Usage.empty() if self._run is None else self._run.usage

    @property
    def messages(self) -> tuple[Message, ...]:
        """The run's new messages so far, the prompt first."""
        fresh = () if self._goes_on else self._began[-1:]
        return fresh if self._run is None else (*fresh, *self._run.messages)

    @property
    def _history(self) -> tuple[Message, ...]:
        """What was said before the run's new messages."""
        return self._began if self._goes_on else self._began[:-1]

    def events(self, start: Start, *, streaming: bool) -> Events:
        """Run to the end; a failure is told as an event and then raised."""
        self._streaming = streaming
        if streaming:
            self._attended = True
        if self._attended:
            self._forget_calls()
        steps = self._tell(start)
        try:
            response, error = yield from attempt_all(steps)
            if response is not None:
                if streaming:
                    yield _final(self.run_id, response)
                return response
            error = self._lose(cast(Exception, error))
            yield AgentErrorStreamEvent(error, self.usage)
            raise error
        finally:
            if self.outcome is None:
                steps.close()
                self._lose(self._cancelled("the stream was closed"))

    def _tell(self, start: Start) -> Events:
        if self._settings.observers:
            self._watch.start_run(self._observed())
        said = self._said
        if self._journal is not None and self._ctx.decisions is not None:
            said = tuple(self._journal.catch_up(said))
        elif self._journal is not None:
            said = (*self._journal.load(), *said)
            for message in self._said[-1:]:
                self._journal.message(message)
        messages = (*self._ctx.messages, *said)
        run = self._run = start(self._input, self._ctx.replace(messages=messages), self)
        run.streaming = self._streaming
        steps = run.events()
        try:
            if self._attended or self._journal is not None:
                parsed = yield from self._translated(steps)
            else:
                parsed = self._drained(steps)
        finally:
            run.closing = self.closing
            steps.close()
        return self._finish(run, parsed)

    def _translated(
        self, steps: Generator[Any, None, Any]
    ) -> Generator[AgentEvent, None, Any]:
        """Yield what this door makes of the loop's events; return the output."""
        translations = self._translations()
        while True:
            try:
                event = next(steps)
            except StopIteration as stop:
                return stop.value
            translate = translations.get(type(event))
            if translate is not None:
                yield from translate(event)
            elif isinstance(event, AgentEvent):  # made by the policy
                yield event
                continue
            self._last = event

    def _drained(self, steps: Generator[Any, None, Any]) -> Any:
        """Return the output of a run that nobody hears of."""
        while True:
            try:
                self._last = next(steps)
            except StopIteration as stop:
                return stop.value

    def _observed(self) -> ObservedRun:
        settings = self._settings
        return ObservedRun(
            run_id=self.run_id,
            agent_id=settings.agent_id,
            agent_name=settings.agent_name,
            agent_description=settings.agent_description,
            trace=settings.trace,
            prompt=self._said[-1] if self._said else None,
            history=self._said[:-1],
            max_turns=settings.max_turns,
        )

    def _translations(self) -> Mapping[Type[Event], Translation]:
        """Return what makes this door's events of the loop's, where any come of it."""
        found: Dict[Type[Event], Translation] = {}
        if self._streaming and not self._settings.holds_back:
            found[TextPartialEvent] = self._text
            found[ReasonPartialEvent] = self._thought
        if self._attended:
            found[ToolProgressEvent] = self._progress
        if self._journal is not None:
            found[MessageEvent] = self._message
        if self._settings.observers:
            found[TextPartialEvent] = found[ReasonPartialEvent] = self._watched
            found[RequestEvent] = self._request
            found[TextResetEvent] = self._reset
        return found

    def _message(self, event: MessageEvent) -> Sequence[AgentEvent]:
        cast(Journal, self._journal).message(event.message)
        return ()

    def _request(self, event: RequestEvent) -> Sequence[AgentEvent]:
        ctx = cast(Run, self._run).ctx
        self._watch.start_generation(self._turn, event.request, ctx)
        return ()

    def _reset(self, event: TextResetEvent) -> Sequence[AgentEvent]:
        about = {"turn": self._turn, "reason": event.reason}
        self._watch.event(RunEvent("completion.reset", "WARNING", about))
        return ()

    def _text(self, event: TextPartialEvent) -> Sequence[AgentEvent]:
        return (AgentTextDeltaEvent(self._turn, event.content),)

    def _thought(self, event: ReasonPartialEvent) -> Sequence[AgentEvent]:
        return reasoning_deltas(self._turn, event.delta)

    def _watched(self, event: Any) -> Sequence[AgentEvent]:
        """Show the observers a piece, before or instead of the reader."""
        if self._first_delta is None:
            self._first_delta = (time.monotonic() - self._opened) * 1000
        text = isinstance(event, TextPartialEvent)
        deltas = self._text(event) if text else self._thought(event)
        for delta in deltas if self._streaming else ():
            self._watch.update(delta)
        return () if self._settings.holds_back else deltas

    def _progress(self, event: ToolProgressEvent) -> Sequence[AgentEvent]:
        about, child = self._tools[event.tool_call_id].about, event.value
        if not isinstance(child, ChildEvent):
            self._watch.tool_event(about.internal_call_id, child)
            return ()
        self._watch.tool_event(about.internal_call_id, child.event)
        return (
            AgentToolEvent(
                about.turn,
                tool_name=about.tool_name,
                tool_call_id=about.tool_call_id,
                internal_call_id=about.internal_call_id,
                agent_id=child.agent_id,
                agent_name=child.agent_name,
                event=child.event,
            ),
        )

    def _finish(self, run: Run, parsed: Any) -> PromptResponse[Any]:
        """The loop has ended without an exception: return what that means, or raise."""
        last = self._last
        if isinstance(last, SuspendEvent):
            raise self._suspension(last.request.messages)
        name = run.recipe.name
        if run.incompatible:
            raise IncompatibleError(
                f"Prompt {name} has no result: config or retool said that it does not "
                "fit here"
            )
        if last is None or last.type != "complete":
            raise AbortedError(f"Prompt {name} has no result: the run was aborted")
        called = len(run.messages) > 1  # an answer alone has nothing within it
        response = PromptResponse(
            _output(run.messages),
            run.usage,
            self.messages,
            trace=self._watch.trace,
            parsed=parsed,
            nested=run.nested or None if called else None,
        )
        about = response.output, response.usage, response.messages
        if self._settings.hook:
            self._ask("on_run_end", RunEndArgs, *about)
        if self._journal is not None:
            self._journal.end()
        if self._settings.observers:
            self._watch.end(RunEndArgs(*about))
        self.outcome = "completed"
        return response

    def _suspension(self, transcript: Sequence[Message]) -> Exception:
        """Return what a run raises that waits; its messages are where to resume."""
        messages = _visible(transcript)
        children = cast(Run, self._run).children
        if self._waiting is None:
            return PromptSuspend(messages=messages, children=children)
        return ToolApprovalRequiredError(
            f"Tool approval required for {self._waiting.tool_name}, but no approval "
            "handler is configured: give one with approvals(…), or decide later with "
            "agent.resume(error, {error.request.tool_call_id: True})",
            messages=messages,
            request=self._waiting,
            children=children,
        )

    def _lose(self, error: Exception) -> Exception:
        """Tell everybody that the run has failed; return the error to raise."""
        self._dress(error)
        args = RunErrorArgs(error, self.usage, self._whole())
        _, instead = attempt(self._ask, "on_run_error", lambda: args)
        if isinstance(instead, PromptCancelledError):
            instead.__cause__ = error
            self._dress(instead)
            error = instead
        cancelled = isinstance(error, PromptCancelledError)
        self.outcome = "cancelled" if cancelled else "errored"
        self._watch.fail(replace(args, error=error))
        if self._journal is not None:
            self._journal.fail(error, self.messages)
        return error

    def _whole(self) -> tuple[Message, ...]:
        """Return the history and the new messages, replies in the order of the calls.

        A run that goes on where calls wait replies after their finished siblings.
        """
        said = (*self._history, *self.messages)
        return repair(said, pending=frozenset(call.id for call in unanswered(said)))

    def _dress(self, error: Exception) -> None:
        """Put the run's messages and cost on *error*, as this door counts them."""
        if isinstance(error, PromptCancelledError):
            error.chat_history = self._whole()
        if isinstance(error, PromptError):
            error.usage = self.usage
            if self._run is not None:
                error.prompt_name = self._run.recipe.name
            if not isinstance(error, ToolApprovalRequiredError):
                error.messages = self.messages

    def _cancelled(self, reason: str) -> PromptCancelledError:
        return PromptCancelledError(f"Prompt cancelled: {reason}", reason=reason)

    def _ask(
        self, name: str, about: Callable[..., Any], *values: Any
    ) -> HookAction | None:
        """Ask the hook, if it has a say; a wish to cancel is raised."""
        hook = self._settings.hook.get(name)
        if hook is None:
            return None
        action = hook(about(*values), _CONTROLS)
        if action is None:
            return None
        about_call = name == "on_tool_call"
        known = _ABOUT_CALLS if about_call else _ABOUT_RUNS
        if not isinstance(action, HookAction) or action.type not in known:
            more = ", skip_tool(…), request_tool_approval(…)" if about_call else ""
            raise TypeError(
                f"hook {name} returns None or cancel_prompt(…){more}, "
                f"not {action!r:.80}"
            )
        if action.type == "terminate":
            raise self._cancelled(action.reason or "")
        return action

    # What the loop asks.

    def open(self, messages: Sequence[Message]) -> None:
        """The run begins: the transcript says what the prompt and the history are."""
        self._began = _visible(messages)
        self._goes_on = self._ctx.decisions is not None
        self._prompt = self._began[-1] if self._began else Message("user")
        if self._settings.hook:
            about = self._prompt, self._history, self._settings.max_turns
            self._ask("on_run_start", RunStartArgs, *about)

    def begin(self, turn: int, messages: Sequence[Message]) -> Iterable[AgentEvent]:
        """A turn begins."""
        if self._journal is not None:
            self._journal.turn(turn)
        if messages and messages[-1].role != "system":
            self._prompt = messages[-1]
        if self._attended:
            return self._begin(turn, messages)
        self._turn = turn
        return ()

    def _begin(self, turn: int, messages: Sequence[Message]) -> Iterator[AgentEvent]:
        if self._streaming:
            yield from self._unreported(messages)
        self._turn = turn
        self._forget_calls()
        history = _visible(messages)[:-1]
        if self._streaming:
            yield AgentTurnStartEvent(turn, prompt=self._prompt, history=history)
        about = turn, self._prompt, history
        self._ask("on_turn_start", TurnStartArgs, *about)
        self._ask("on_completion_call", CompletionCallArgs, *about)

    def _forget_calls(self) -> None:
        self._announced, self._named, self._reported = {}, set(), set()

    def _unreported(self, messages: Sequence[Message]) -> Iterator[AgentEvent]:
        """Tell the results of calls that were answered without being run."""
        replies = list(takewhile(lambda m: m.role == "tool", reversed(messages)))
        for reply in reversed(replies):
            call = self._announced.get(reply.tool_call_id or "")
            if call is not None and call.id not in self._reported:
                about = self._about(call, natural_arguments(call, self._shape(call)))
                yield AgentToolResultEvent(**vars(about), result=text_of(reply.content))

    def map_request(self, turn: int, request: Request) -> Request:
        """Send the request through the middleware."""
        return (
            self._settings.pipeline.request(turn, request)
            if self._attended
            else request
        )

    def call(
        self, turn: int, request: Request, call: Callable[[], Iterable[Chunk]]
    ) -> Iterable[Chunk]:
        """Open the model; a failure is told, or another attempt made of it."""
        if self._settings.retries is None and not self._settings.observers:
            return call()
        return self._attempts(turn, call)

    def _attempts(
        self, turn: int, call: Callable[[], Iterable[Chunk]]
    ) -> Iterator[Chunk]:
        """Open the model, again where it failed before it said anything."""
        self._opened, self._first_delta = time.monotonic(), None
        number = 1
        while True:
            spoke = False
            chunks = iter(call())
            pull = self._watch.asking(chunks)
            try:
                while True:
                    chunk, error = attempt(pull)
                    if error is not None:
                        break
                    spoke = True
                    yield chunk
            finally:
                _close(chunks)
            if isinstance(error, StopIteration):
                return
            if spoke or not self._retries(turn, number, error):
                self._watch.fail_generation(error)
                raise error
            number += 1

    def _retries(self, turn: int, number: int, error: Exception) -> bool:
        """Whether to ask again after attempt *number*; wait if so."""
        options, run = self._settings.retries, cast(Run, self._run)
        if options is None or number >= options.max_attempts or run.abort.is_set():
            return False
        context = CompletionRetryContext(
            error,
            attempt=number,
            max_attempts=options.max_attempts,
            turn=turn,
            streaming=self._streaming,
        )
        if not options.wants(context):
            return False
        spent = getattr(error, "usage", None)
        if isinstance(spent, Usage):
            run.usage = run.usage + spent
        delay = options.delay_ms(number, random.random())
        self._watch.event(retry_event(context, delay))
        if delay > 0 and run.abort.wait(delay / 1000):
            raise AbortedError("the run was aborted while it waited to ask again")
        return True

    def hear_call(self, turn: int, chunk: Chunk) -> Iterable[AgentEvent]:
        """Tell of a call as it arrives."""
        return self._call_deltas(turn, chunk) if self._streaming else ()

    def _call_deltas(self, turn: int, chunk: Chunk) -> Iterator[AgentEvent]:
        named, piece = chunk.tool_call_named, chunk.tool_call_arguments
        if named is not None:
            self._named.add(named.id)
            yield AgentToolCallDeltaEvent(turn, named.id, name=named.name)
        if piece is not None and (piece.arguments or piece.signature):
            unnamed = piece.id not in self._named
            self._named.add(piece.id)
            yield AgentToolCallDeltaEvent(
                turn,
                piece.id,
                call_id=piece.call_id,
                name=piece.name if unnamed else None,
                arguments_delta=piece.arguments,
                arguments_mode="replace" if piece.mode == "replace" else None,
                signature=piece.signature,
            )
        call = chunk.tool_call
        if call is not None and not self._settings.holds_back:
            yield from self._announce(turn, [call])

    def _announce(self, turn: int, calls: Iterable[ToolCall]) -> Iterator[AgentEvent]:
        for call in calls:
            if call.id not in self._announced:
                self._announced[call.id] = call
                event = AgentToolCallEvent(turn, call)
                self._watch.update(event)
                yield event

    def failed(self, turn: int, error: Exception) -> None:
        """The model call failed for good: ask the hook."""
        if isinstance(error, CapabilityError):
            return
        about = CompletionErrorArgs, turn, self._prompt, error
        _, instead = attempt(self._ask, "on_completion_error", *about)
        if instead is not None:
            raise instead from error

    def map_response(self, turn: int, request: Request, response: Response) -> Response:
        """Send the response through the middleware, then show it to the hook."""
        if not self._attended:
            return response
        self._watch.end_generation(response, self._first_delta)
        response = self._settings.pipeline.response(turn, request, response)
        about = CompletionResponseArgs, turn, self._prompt, response
        self._ask("on_completion_response", *about)
        self._ask("on_turn_end", TurnEndArgs, turn, response)
        return response

    def end(
        self, turn: int, request: Request, response: Response
    ) -> Iterable[AgentEvent]:
        """The answer was appended: tell what was held back, and that the turn ends."""
        return self._end(turn, response) if self._streaming else ()

    def _end(self, turn: int, response: Response) -> Iterator[AgentEvent]:
        if self._settings.holds_back and response.reasoning is not None:
            yield from reasoning_deltas(turn, response.reasoning)
        if self._settings.holds_back and response.content:
            yield AgentTextDeltaEvent(turn, response.content)
        yield from self._announce(turn, response.tool_calls)
        yield AgentTurnEndEvent(turn, response)

    def admit(self, call: Call) -> Any:
        """A call is about to start: the hook may stop it, middleware change it."""
        if self._turn == 0 and self._journal is not None:
            wanted = approved(call.call.id, call.decision)
            if not all(map(self._journal.start, wanted)):
                return _STARTED
        if not self._attended:
            return None
        record = self._record(call)
        self._watch.start_tool(record.about)
        call.around = self._watch.inside(record.about.internal_call_id)
        action = self._ask("on_tool_call", lambda: record.about)
        if action is not None and action.type == "skip":
            return action.reason or ""
        if action is not None and action.type == "approval_request":
            record.wish = ToolApproval(True, action.reason, action.reject_message)
        args = self._settings.pipeline.arguments(record.about)
        if args != record.original:
            record.about = replace(record.about, args=args)
            call.rewrite(args)
        return None

    def before_tool(self, call: Call) -> Any:
        """The arguments are good: ask for consent where a hook wants that."""
        wish = self._record(call).wish if self._attended else None
        if wish is None or call.consented:
            return None
        answer = self.approve(call, wish)
        if answer is None:
            call.decision = True  # the tool's own policy is not asked
        return answer

    def approve(self, call: Call, wish: ToolApproval) -> Any:
        """Ask for consent; None is consent."""
        about, session = self._record(call).about, self._settings.session
        request = ToolApprovalRequest(
            tool_name=about.tool_name,
            args=call.args,
            raw_args=about.args,
            tool_call_id=about.tool_call_id,
            internal_call_id=about.internal_call_id,
            run=ToolApprovalRun(
                self._settings.agent_id,
                self.run_id,
                session_id=session.session_id if session is not None else None,
                metadata=session.metadata if session is not None else {},
            ),
            reason=cast(Optional[str], wish.reason),
            reject_message=cast(Optional[str], wish.reject_message),
        )
        if self._settings.approvals is None:
            self._waiting = self._waiting or request  # the first of a batch
            raise PromptSuspend
        answer = self._settings.approvals(request)
        said = {
            "tool_name": about.tool_name,
            "internal_call_id": about.internal_call_id,
            "approved": answer is None,
        }
        self._watch.event(RunEvent("tool.approval", "INFO", said))
        return answer

    def after_tool(self, call: Call) -> Iterable[AgentEvent]:
        """A call has its outcome: middleware may change it, the hook sees it."""
        if call.status == "suspended":
            signal = call.signal
            inner = signal.request if isinstance(signal, PromptSuspend) else None
            if inner is not None:
                path = f"{call.call.id}/{inner.tool_call_id}"
                found = replace(inner, tool_call_id=path)
                self._waiting = self._waiting or found
            return ()
        return self._outcome(call) if self._attended else ()

    def _outcome(self, call: Call) -> Iterator[AgentEvent]:
        record = self._record(call)
        about = vars(record.about)
        if call.error is not None:
            failure = ToolErrorArgs(**about, error=call.error)
            _, fault = attempt(self._ask, "on_tool_error", lambda: failure)
            self._watch.fail_tool(failure)
            if fault is not None:
                raise fault
        result = self._settings.pipeline.result(call, record.about, record.original)
        _, fault = attempt(self._ask, "on_tool_result", lambda: result)
        self._watch.end_tool(result)
        if fault is not None:
            raise fault
        if self._streaming:
            self._reported.add(call.call.id)
            yield AgentToolResultEvent(**about, result=result.result)

    def _record(self, call: Call) -> _ToolRecord:
        record = self._tools.get(call.call.id)
        if record is None:
            about = self._about(call.call, call.arguments)
            record = self._tools[call.call.id] = _ToolRecord(about, about.args)
        return record

    def _shape(self, call: ToolCall) -> Schema | None:
        """Return what *call* was offered with, where it was."""
        offers = () if self._last is None else self._last.request.tools
        return next((o.parameters for o in offers if o.name == call.name), None)

    def _about(self, call: ToolCall, arguments: str) -> ToolCallArgs:
        return ToolCallArgs(
            self._turn,
            tool_name=call.name,
            tool_call_id=call.id,
            internal_call_id=str(uuid.uuid4()),
            args=arguments,
        )


def _visible(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return *messages* without the instructions."""
    at = 0
    while at < len(messages) and messages[at].role == "system":
        at += 1
    return tuple(messages[at:])


def _close(chunks: Any) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        close()


def _final(run_id: str, response: PromptResponse[Any]) -> AgentFinalEvent:
    return AgentFinalEvent(
        run_id,
        output=response.output,
        usage=response.usage,
        messages=response.messages,
        trace=response.trace,
        nested=response.nested,
    )


def _output(messages: Sequence[Message]) -> str:
    """Return the text of the last answer."""
    for message in reversed(messages):
        if message.role == "assistant":
            return text_of(message.content)
    return ""
