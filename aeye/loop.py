"""Ask, run calls, check, again: one generator and its policy.

This is the only model-and-tools loop. What a prompt is comes in as a ``Recipe``;
what a door adds (turn limits, retries, hooks) is asked of a ``Policy`` whose methods
do nothing by default. A run's state lives in its ``Run`` and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import (
    Any,
    Dict,
    FrozenSet,
    Generator,
    Iterable,
    List,
    Mapping,
    NoReturn,
    Optional,
    Sequence,
    Set,
    Tuple,
    cast,
)

from .allowance import Allowance, first_given
from .call import Call, Execution
from .callback import Bound, attempt
from .context import Abort, Context, Resume, charge
from .decision import decided, still_waits, unanswered
from .dispatch import Batch, Events, Setup
from .errors import (
    AeyeError,
    ContextLengthError,
    MaxTurnsError,
    OutputError,
    PromptError,
    PromptSuspend,
    ProviderError,
    RefusalError,
    StatusError,
    StreamCutError,
    ToolCallError,
    TruncatedError,
)
from .event import (
    CompleteEvent,
    Event,
    MessageEvent,
    ReasonEvent,
    RefusalEvent,
    RequestEvent,
    RequestUsageEvent,
    ResponseTokensEvent,
    SuspendEvent,
    TextCompleteEvent,
    TextEvent,
    TextResetEvent,
    UsageEvent,
)
from .message import Message
from .model_call import by_name, checked, in_dialect, open_model, with_model
from .output import Accepted, Rejected, truncate
from .recipe import Plan, Policy, Recipe
from .request import Request, ResponseFormat
from .response import WINDOW_FULL, Response
from .turn import Turn
from .usage import TextUsage, Usage
from .window import guess_tokens, repair, with_ids
from .workers import Workers

__all__ = ["DEFAULT_USER_TURN", "Run"]

# Some vendors refuse a request that has nothing but a system message.
DEFAULT_USER_TURN = "Begin."

_UNSET: Any = object()


class Run:
    """One run of a prompt: its state, and ``events`` that moves it on."""

    def __init__(
        self,
        recipe: Recipe,
        input: Any,
        ctx: Context,
        policy: Policy,
        *,
        streaming: bool = True,
    ) -> None:
        self.recipe = recipe
        self.execution: Execution = recipe.execution
        self.concurrency = recipe.concurrency
        if policy.tool_concurrency is not None:
            self.concurrency = policy.tool_concurrency
            self.execution = "sequential" if self.concurrency == 1 else "parallel"
        self.input = input
        self.policy = policy
        self.streaming = streaming
        self.given = ctx
        # The run's new messages, and what its own model calls cost so far.
        self.messages: List[Message] = []
        self.usage = Usage.empty()
        # What runs within its calls cost; appended to by any thread.
        self._charges: List[Usage] = []
        self.incompatible = False
        # By call id, where runs inside calls that wait are to resume.
        self.children: Dict[str, Tuple[Message, ...]] = {}
        # Set before the generator is closed by hand: then the end waits for tools.
        self.closing = False
        self._done = False
        self._transcript: List[Message] = []
        # Of all calls that the run has seen, forgotten ones too.
        self._ids: Set[str] = set()
        # By id, the places of calls whose replies may come late: they go in order.
        self._places: Dict[Optional[str], int] = {}
        # The model call that is being made, and the message that opened it.
        self._turn: Optional[Turn] = None
        self._opening: Optional[Message] = None
        self._texts: List[str] = []
        self._last_usage: Optional[Usage] = None
        self._iteration = 0
        self._result: Any = _UNSET
        self._error: Optional[PromptError] = None
        self._suspended = False
        # What the first call that waits said.
        self.waits_because = ""
        # Whether the budget of iterations was used up.
        self._spent = False
        self._withdrawn = False
        self._promoted = False
        self._workers = policy.workers or Workers()

    @property
    def nested(self) -> Usage:
        """What runs within its calls have cost so far, all the way down."""
        return sum(self._charges, Usage.empty())

    def events(self) -> Generator[Event, None, Any]:
        """Yield everything that happens; return the output."""
        ctx = with_model(self.given, self.recipe.name)
        self.abort, unlink = Abort.linked(ctx.signal)
        # Decisions are about this run's calls: a run within a tool has its own.
        self.ctx = ctx.replace(
            signal=self.abort, decisions=None, _charge=self._charges.append
        )
        wait = True
        try:
            plan = self.recipe.resolve(self.input, self.ctx)
            if plan is None:
                self.incompatible = True
                return None
            self._begin(plan)
            self.policy.open(self._transcript)
            going = yield from self._resume()
            while (
                going and self._iteration < self._left.calls and not self.abort.is_set()
            ):
                going = yield from self._iterate()
            self._spent = going and not self.abort.is_set()
            return (yield from self._conclude())
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            # A finaliser may run in a worker, and Ctrl-C is in a hurry: only a
            # close() by hand waits for tools that run.
            wait = self.closing
            raise
        finally:
            unlink()
            if not self._done:
                self.abort.set()  # whatever still runs is told
            try:
                self._workers.close(wait=wait)
            finally:  # who waits for tools may lose patience
                self._mend()
                charge(self.given, (self.usage, *self._charges))

    def _begin(self, plan: Plan) -> None:
        recipe, ctx = self.recipe, self.ctx
        self._left = Allowance.of(recipe, ctx, self.policy.max_turns)
        self._adopt(plan)
        choice = self._request.tool_choice
        self._forced = choice is not None and choice not in ("auto", "none")
        if self._forced and not self._request.tools:
            raise PromptError(
                f"Prompt {recipe.name} is configured to require tools, "
                "but no tools are available.",
                prompt_name=recipe.name,
            )
        self._transcript = [*plan.system, *self._history(plan)]
        self._ids = {call.id for m in self._transcript for call in m.tool_calls}
        if not all(m.role == "system" for m in self._transcript):
            self._transcript = self._forget(self.ctx, None)
            return
        turn = first_given(plan.user_turn, ctx.user_turn, DEFAULT_USER_TURN)
        if turn:
            self._transcript.append(Message("user", str(turn)))

    def _history(self, plan: Plan) -> Sequence[Message]:
        """Return the caller's messages, mended, without a saved system message."""
        given = self.ctx.messages
        resumes = self.given.decisions is not None  # then they are the run's own
        if not given or (self.recipe.exclude_messages and not resumes):
            return ()
        if given[0].role == "system" and plan.system:
            given = given[1:]
        pending: FrozenSet[str] = frozenset()
        if resumes:
            pending = frozenset(call.id for call in unanswered(given))
        return repair(given, pending=pending, strict=self.ctx.strict_history)

    def _resume(self) -> Generator[Event, None, bool]:
        """Begin with calls that wait, as far as they were decided about."""
        if self.given.decisions is None:
            return True
        calls = unanswered(self._transcript)
        found = decided(calls, self.given.decisions, self._ids)
        if not calls:
            return True
        request = self._request.with_messages(self._transcript)
        turn = self._turn = Turn(request, self._setup)
        for call in calls:
            said = found.get(call.id)
            if isinstance(said, Resume) and still_waits(said):
                self._keep_child(call.id, said)
            elif said is not None:
                turn.batch.add(call, said)
        asked = next(m for m in reversed(self._transcript) if m.tool_calls)
        self._places = {call.id: n for n, call in enumerate(asked.tool_calls)}
        yield from turn.batch.finish()
        going = yield from self._ran(turn, "")
        waiting = bool(unanswered(self._transcript))
        self._suspended = self._suspended or waiting
        return going and not waiting

    def _adopt(self, plan: Plan) -> None:
        """Go on with *plan*; what was taken away for good stays away."""
        self._plan = plan
        self._request = plan.request
        limit = self.ctx.max_output_tokens
        if limit is not None and self._request.max_tokens is None:
            self._request = replace(self._request, max_tokens=limit)
        if self._withdrawn:
            self._withdraw_tools()
        if self._promoted:
            self._promote()
        self._setup = Setup(
            tools=plan.tools,
            ctx=self.ctx,
            abort=self.abort,
            workers=self._workers,
            mode=self.execution,
            concurrency=self.concurrency,
            intercept=self.recipe.intercept,
            present=self.recipe.present,
            truncate=self._truncate,
            admit=self.policy.admit,
            before=self.policy.before_tool,
            approve=self.policy.approve,
            after=self.policy.after_tool,
        )

    def _iterate(self) -> Generator[Event, None, bool]:
        """Ask once and act on the answer; return whether to go on."""
        number = self._iteration + 1
        self._opening = self._transcript[-1] if self._transcript else None
        yield from self.policy.begin(number, self._transcript)
        request, ctx = self._prepared(number)
        hear_call = partial(self.policy.hear_call, number)
        turn = Turn(request, self._setup, self._ids, hear_call)
        self._turn = turn
        yield RequestEvent(request, self._iteration)
        error = yield from self._read(turn, ctx)
        if error is not None:
            return (yield from self._failed(turn, error))
        if turn.collector.reasoning:
            yield ReasonEvent(request, turn.collector.reasoning)
        if turn.aborted:
            return (yield from self._aborted(turn))
        if turn.collector.finish_reason is None and turn.collector.open_calls:
            error = StreamCutError(
                "the stream ended in the middle of a tool call",
                partial=turn.content,
            )
            return (yield from self._failed(turn, error))
        response = self._complete(turn)
        if response.finish_reason in ("refusal", "content_filter") or response.refusal:
            return (yield from self._refused(turn, response))
        if response.finish_reason == "length":
            return (yield from self._too_long(turn, None))
        if response.content:
            yield TextEvent(request, response.content)
        yield self._append(response.to_message())
        yield from self.policy.end(number, request, response)
        if response.tool_calls or response.finish_reason == "tool_calls":
            going = yield from self._run_calls(turn, response)
        else:
            going = yield from self._answered(turn, response)
        return going and self._next()

    def _prepared(self, number: int) -> Tuple[Request, Context]:
        """Return what is sent, and what the model function gets beside it."""
        request = self._request.with_messages(self._transcript)
        request = self.policy.map_request(number, request)
        # What a model function costs is what its answer says: no run within is told.
        ctx = self.ctx.replace(
            metadata=self.recipe.metadata(self.input, self.ctx), _charge=None
        )
        prepare = ctx.bound("prepare")
        if prepare is not None:
            request, error = attempt(prepare, request, by_name(ctx))
            if error is not None:
                self._blame(error)
                raise error
        return request, ctx

    def _read(
        self, turn: Turn, ctx: Context
    ) -> Generator[Event, None, Optional[Exception]]:
        """Read the answer; return what the model, not the reader, raised."""
        call = self.policy.call(
            self._iteration + 1,
            turn.request,
            lambda: open_model(turn.request, ctx, self.streaming, turn.pay),
        )
        chunks = iter(call)
        try:
            while not self.abort.is_set():
                chunk, error = attempt(next, chunks)
                if error is not None:
                    ended = isinstance(error, StopIteration)
                    return None if ended else error
                turn.spoke = True
                chunk = turn.collector.add(checked(chunk))
                if chunk.usage is not None and self._last_usage is None:
                    self._last_usage = chunk.usage
                    yield RequestUsageEvent(turn.request, chunk.usage)
                yield from turn.hear(chunk)
            turn.aborted = True
            return None
        finally:
            self._count(turn.collector.usage or turn.paid)
            close = getattr(chunks, "close", None)
            if close is not None:
                attempt(close)  # the answer is had, or not wanted any more

    def _complete(self, turn: Turn) -> Response:
        """Return the whole answer, as the policy lets it stand."""
        response = turn.collector.response()
        if response.tool_calls:
            calls = tuple(in_dialect(c, turn.request) for c in response.tool_calls)
            response = replace(response, tool_calls=calls)
        made = self.policy.map_response(self._iteration + 1, turn.request, response)
        if made is not response:  # a door's own calls may have any ids
            calls = with_ids(made.tool_calls, self._ids)
            made = replace(made, tool_calls=calls)
        turn.batch.complete(made.tool_calls)
        return made

    def _failed(self, turn: Turn, error: Exception) -> Generator[Event, None, bool]:
        """The model call raised."""
        spent = getattr(error, "usage", None)
        if isinstance(spent, Usage) and turn.collector.usage is None:
            self._count(spent)
        if self.abort.is_set() and isinstance(error, AeyeError):
            return (yield from self._aborted(turn))
        if isinstance(error, ContextLengthError) and not turn.spoke:
            return (yield from self._too_long(turn, error))
        if self._may_fall_back(turn, error):
            self._left.output -= 1
            self._promote()
            yield TextResetEvent(turn.request, "request-error")
            self._iteration += 1
            return True
        if turn.batch.started:
            yield from self._cut_short(turn, "cancelled")
        self._lose(turn, error)

    def _aborted(self, turn: Turn) -> Generator[Event, None, bool]:
        yield from self._cut_short(turn, "aborted")
        self._heed_door(turn)
        return False

    def _lose(self, turn: Turn, error: Exception) -> NoReturn:
        """Raise *error*, which the model call has failed with for good."""
        self._blame(error)
        self.policy.failed(self._iteration + 1, error)
        self._heed_door(turn, error)
        raise error

    def _heed_door(self, turn: Turn, because: Optional[Exception] = None) -> None:
        """Raise what a door raised while calls were run, or waited for.

        The run may have been ending *because* of something else by then.
        """
        fatal = turn.batch.fatal
        if fatal is None:
            return
        self._blame(fatal)
        if because is not None and fatal.__cause__ is None:
            fatal.__cause__ = because
        raise fatal

    def _may_fall_back(self, turn: Turn, error: Exception) -> bool:
        """Whether asking for the shape in words may help where the request failed."""
        if not self._can_promote() or self._left.output <= 0 or turn.spoke:
            return False
        sent = turn.request.response_format
        if isinstance(sent, ResponseFormat) and sent.schema_delivery == "prompt":
            return False  # it was asked in words
        if isinstance(error, StatusError):
            return error.status in (400, 422) and type(error) is StatusError
        return not isinstance(error, AeyeError)

    def _can_promote(self) -> bool:
        shape = self._request.response_format
        return (
            self.recipe.fallback
            and not self._promoted
            and isinstance(shape, ResponseFormat)
            and shape.schema_delivery == "auto"
        )

    def _promote(self) -> None:
        """From now on, say the shape in words instead of as a response format."""
        self._promoted = True
        shape = self._request.response_format
        if isinstance(shape, ResponseFormat):
            shape = replace(shape, schema_delivery="prompt", descriptor=None)
            self._request = replace(self._request, response_format=shape)

    def _refused(self, turn: Turn, response: Response) -> Generator[Event, None, bool]:
        if response.finish_reason == "content_filter" and not response.refusal:
            said = "Content filtered by AI model"
            why = "Model response was filtered due to content policy."
        else:
            said = response.refusal or "unspecified"
            why = response.refusal or "Model refused to answer."
        yield RefusalEvent(turn.request, said)
        self._error = RefusalError(self._text(why), refusal=response.refusal)
        if turn.batch.started:
            yield from self._cut_short(turn, "cancelled")
            self._heed_door(turn, self._error)
        return False

    def _too_long(
        self, turn: Turn, error: Optional[ContextLengthError]
    ) -> Generator[Event, None, bool]:
        """The answer was cut by a limit, or the vendor said that nothing would fit."""
        if turn.batch.started:
            yield from self._cut_short(turn, "cancelled")
        elif self._left.forget > 0 and (
            error is not None or self._window_exceeded(turn)
        ):
            if error is None:
                kept = self._forget(self.ctx, self._last_usage)
            else:
                kept = self._forget(*self._overflow(turn))
            if kept != self._transcript:
                self._left.forget -= 1
                self._transcript = kept
                yield TextResetEvent(turn.request, "length")
                return True
        if error is not None:
            self._lose(turn, error)
        if turn.content and not turn.batch.started:
            self._texts.append(turn.content)
        limit = turn.request.max_tokens
        what = f"the limit of {limit} tokens" if limit else "the model's own limit"
        why = turn.collector.cut_note or (
            f"the answer was cut at {what}; raise max_tokens (config, or "
            "max_output_tokens on the context), or ask for less"
        )
        self._error = TruncatedError(
            self._text(why),
            partial=turn.content,
            limit=limit,
        )
        self._heed_door(turn, self._error)
        return False

    def _window_exceeded(self, turn: Turn) -> bool:
        window, used = self.ctx.context_window, self._last_usage
        if turn.collector.cut_note == WINDOW_FULL:
            return True
        return bool(window and used and used.total_tokens >= window)

    def _overflow(self, turn: Turn) -> Tuple[Context, Usage]:
        """Return what to forget by where the vendor says only that it is too much.

        What was sent has cost no less than the window then, than what was sent before,
        or than its text by the rule of thumb. Where nobody says how large the window
        is, it is taken for half of that.
        """
        before, ctx = self._last_usage, self.ctx
        tokens = max(
            ctx.context_window or 0,
            before.total_tokens if before else 0,
            sum(map(guess_tokens, turn.request.messages)),
        )
        if not ctx.context_window:
            ctx = ctx.replace(context_window=tokens // 2)
        return ctx, Usage(text=TextUsage(input=tokens))

    def _forget(self, ctx: Context, usage: Optional[Usage]) -> List[Message]:
        """Return the messages that may stay; a call and its replies stay together."""
        request = self._request.with_messages(self._transcript)
        given: Any = self.recipe.forget(request, ctx, usage)
        kept = list(given) if isinstance(given, Iterable) else [given]
        if kept == self._transcript:
            return kept
        for message in kept:
            if not isinstance(message, Message):
                raise TypeError(
                    f"forget of prompt {self.recipe.name!r} gives Message values, "
                    f"not {message!r:.80}"
                )
        pending = frozenset(call.id for call in unanswered(self._transcript))
        return list(repair(kept, pending=pending))

    def _cut_short(self, turn: Turn, why: str) -> Events:
        """End a turn whose answer is not whole: keep what was said and what ran.

        The calls that were not complete are left out; those that were and did not
        start are answered with the reason.
        """
        said = turn.so_far()
        if turn.content:
            yield TextEvent(turn.request, turn.content)
            self._texts.append(turn.content)
        if said.content or said.tool_calls:
            yield self._append(said)
        yield from turn.batch.stop(why)
        yield from self._append_replies(turn)

    def _run_calls(
        self, turn: Turn, response: Response
    ) -> Generator[Event, None, bool]:
        """Run the calls of the answer; return whether the model is to be told."""
        batch = turn.batch
        if response.content:
            self._texts.append(response.content)
        last = self.policy.max_turns
        if last is not None and self._iteration + 1 >= last:
            yield from batch.stop("limit")
            yield from self._append_replies(turn)
            self._heed_door(turn)
            raise self._turn_limit(last)
        yield from batch.finish()
        return (yield from self._ran(turn, response.content))

    def _ran(self, turn: Turn, text: str) -> Generator[Event, None, bool]:
        """Tell what came of the calls; return whether the model is to be told."""
        batch = turn.batch
        errors = yield from self._append_replies(turn)
        self._heed_door(turn)
        for call in batch.calls:
            self._raise_if_wanted(call)
        statuses = [call.status for call in batch.calls]
        if "suspended" in statuses:
            for call in batch.calls:
                self._adopt_child(call)
            waiting = (c.signal for c in batch.calls if c.status == "suspended")
            self.waits_because = str(next(waiting))
            self._suspended = True
            return False
        if "interrupted" in statuses:
            self._result = text if self._plan.check.schema is None else None
            return False
        if self.abort.is_set():
            return False
        return self._after_tools(batch, errors)

    def _keep_child(self, path: str, waits: Resume) -> None:
        """Keep where the run inside the call *path* waits, and those inside that."""
        self.children[path] = waits.messages
        for name, inner in waits.decisions.items():
            self._keep_child(f"{path}/{name}", inner)

    def _adopt_child(self, call: Call) -> None:
        """Keep where the run inside *call*, if there is one, is to resume."""
        if isinstance(call.signal, PromptSuspend) and call.signal.messages:
            within = call.call.id
            self.children[within] = call.signal.messages
            for name, messages in call.signal.children.items():
                self.children[f"{within}/{name}"] = messages

    def _after_tools(self, batch: Batch, errors: int) -> bool:
        """Apply the limits on tools; return whether to go on."""
        recipe = self.recipe
        successes, most = self._left.successes, recipe.tools_max
        enough = bool(most) and successes >= cast(int, most)
        if errors and self.policy.max_turns is None:
            if self._left.tools > 0:
                self._left.tools -= 1
            else:
                self._withdraw_tools()
        if recipe.tools_only:
            done = self._forced and self._left.successes > 0 and not errors
            if enough or done or not batch.calls:
                return False
        elif enough:
            self._withdraw_tools()
        parsed = all(call.status != "invalid" for call in batch.calls)
        if self._forced and self._left.successes > 0 and parsed:
            self._request = replace(self._request, tool_choice=None)
        return True

    def _withdraw_tools(self) -> None:
        self._withdrawn = True
        self._request = replace(
            self._request, tools=(), tool_choice=None, tools_one_at_a_time=False
        )

    def _append_replies(self, turn: Turn) -> Generator[Event, None, int]:
        """Append the tool messages; return how many calls failed."""
        statuses = {call.status for call in turn.batch.calls}
        ends = self.abort.is_set() or "interrupted" in statuses
        ends = ends and "suspended" not in statuses
        for call, reply in turn.batch.replies():
            unfinished = call.status in ("not_run", "interrupted")
            # A model that is asked again refuses a call without a reply, and who
            # resumes a run would have to say something about it.
            if self.recipe.tools_complete or not (ends and unfinished):
                yield self._append(reply)
        return sum(self._left.note(call) for call in turn.batch.calls)

    def _mend(self) -> None:
        """Answer the calls of a run that was left in the middle of a batch."""
        turn = self._turn
        if self._done or turn is None:
            return
        if not turn.said and turn.batch.started:
            self._keep(turn.so_far())
        lacking = {call.id for call in unanswered(self._transcript)}
        turn.batch.leave()
        for n, call in enumerate(turn.batch.calls):
            self._places.setdefault(call.call.id, n)
        for call, reply in turn.batch.replies():
            finished = call.status != "not_run" or self.recipe.tools_complete
            if call.call.id in lacking and finished:
                self._keep(reply)

    def _raise_if_wanted(self, call: Call) -> None:
        if not call.fails:
            return
        name = call.call.name
        error = ToolCallError(f"{name}: {call.error}", tool=name)
        self._blame(error)
        raise error from call.error

    def _answered(self, turn: Turn, response: Response) -> Generator[Event, None, bool]:
        """Check an answer without calls; return whether to ask again."""
        if self.recipe.tools_only:
            self._texts.append(response.content)
            return False
        checked = self._plan.check(
            response.content, turn.request.response_format, self.ctx
        )
        if isinstance(checked, Accepted):
            self._texts.append(response.content)
            self._result = checked.value
            return False
        return (yield from self._rejected(turn, checked))

    def _rejected(self, turn: Turn, rejected: Rejected) -> Generator[Event, None, bool]:
        text = self._truncate(rejected.text)
        if rejected.reason == "json-parsing" and self._can_promote():
            self._promote()
        if self._left.output <= 0:
            self._texts.append(turn.content)
            self._error = OutputError(self._text(text), issues=rejected.issues)
            return False
        self._left.output -= 1
        yield TextResetEvent(turn.request, rejected.reason)
        yield self._append(Message("user", text))
        return True

    def _next(self) -> bool:
        """Prepare the next iteration; return whether there is one."""
        if self.recipe.reconfig is not None and not self._reconfigure():
            return False
        if self.recipe.dynamic:
            plan = self.recipe.resolve(self.input, self.ctx)
            if plan is None:
                return False
            system = self._system
            self._adopt(plan)
            self._transcript[:system] = plan.system
        self._iteration += 1
        return True

    def _reconfigure(self) -> bool:
        reconfig = cast(Bound, self.recipe.reconfig)
        wish = reconfig(self._left.stats(self._iteration), {"ctx": self.ctx})
        if not wish:
            return True
        unknown = set(wish) - _WISHES
        if unknown:
            raise TypeError(
                f"reconfig gave {sorted(unknown)!r}; it may give {sorted(_WISHES)}"
            )
        config = {
            k: v for k, v in (wish.get("config") or {}).items() if k != "messages"
        }
        self._request = self._request.with_config(config)
        if not self._left.change(wish, self._iteration):
            return False
        if wish.get("tool_retries") == 0:
            self._withdraw_tools()
        return True

    def _conclude(self) -> Generator[Event, None, Any]:
        """Tell how the run ended; return its output or raise why there is none."""
        self._done = True
        request = self._sent()
        yield TextCompleteEvent(request, "".join(self._texts))
        tokens = self._last_usage.output_tokens if self._last_usage else 0
        if tokens > 0:
            yield ResponseTokensEvent(request, tokens)
        yield UsageEvent(request, self.usage, self.nested if self._charges else None)
        if self._suspended:
            yield SuspendEvent(request, self.children)
            return None
        tools_only = self.recipe.tools_only
        if self._result is _UNSET and self.abort.is_set() and self._error is None:
            return None
        if self._result is _UNSET and not (tools_only and self._may_be_empty()):
            raise self._final_error()
        output = None if self._result is _UNSET else self._result
        yield CompleteEvent(request, output)
        return output

    def _may_be_empty(self) -> bool:
        """Whether a run for its tools alone may end without more."""
        if self._left.successes > 0:
            return True
        return self._error is None and not self._spent

    def _final_error(self) -> PromptError:
        limit = self._left.calls
        if self.policy.max_turns is not None and self._error is None:
            return self._turn_limit(limit)
        if self._error is not None:
            error = self._error
        elif self._spent:
            error = PromptError(
                self._text(
                    f"Maximum iterations ({limit}) reached without a valid response."
                )
            )
        else:
            name = self.recipe.name
            error = PromptError(
                self._text(f"Prompt {name} failed without a specified error.")
            )
        self._blame(error)
        return error

    def _turn_limit(self, limit: int) -> MaxTurnsError:
        history = self._transcript[self._system :]
        error = MaxTurnsError(
            self._text(f"the limit of {limit} turns was reached"),
            max_turns=limit,
            chat_history=history,
            prompt=self._opening or (history[-1] if history else None),
        )
        self._blame(error)
        return error

    @property
    def _system(self) -> int:
        """How many messages of the transcript are the prompt's own: 1, or 0.

        One that ``forget`` has written anew is the prompt's own too.
        """
        first = self._transcript[0].role if self._transcript else ""
        return len(self._plan.system) if first == "system" else 0

    def _text(self, why: str) -> str:
        return f"Prompt {self.recipe.name} failed: {why}"

    def _blame(self, error: Exception) -> None:
        """Put the run's name, transcript and cost on *error*."""
        if isinstance(error, PromptError):
            error.prompt_name = self.recipe.name
            error.usage = self.usage
        if isinstance(error, (PromptError, ProviderError, ToolCallError)):
            error.messages = tuple(self.messages)

    def _truncate(self, text: str) -> str:
        return truncate(text, self.recipe.error_max_length)

    def _append(self, message: Message) -> MessageEvent:
        self._keep(message)
        return MessageEvent(self._sent(), message)

    def _keep(self, message: Message) -> None:
        if message.role == "assistant" and self._turn is not None:
            self._turn.said = True
        for kept in (self._transcript, self.messages):
            kept.insert(_place(kept, message, self._places), message)
        self._ids.update([call.id for call in message.tool_calls])

    def _sent(self) -> Request:
        """Return the request of this iteration with the transcript as it is now."""
        request = self._request if self._turn is None else self._turn.request
        return request.with_messages(self._transcript)

    def _count(self, usage: Optional[Usage]) -> None:
        if usage is not None:
            self.usage = self.usage + usage
            self._last_usage = usage


_WISHES = frozenset(
    ("config", "max_iterations", "output_retries", "forget_retries", "tool_retries")
)


def _place(
    kept: Sequence[Message], message: Message, places: Mapping[Optional[str], int]
) -> int:
    """Return where *message* belongs in *kept*: a reply before those to later calls."""
    at, place = len(kept), places.get(message.tool_call_id, -1)
    while at and 0 <= place < places.get(kept[at - 1].tool_call_id, -1):
        at -= 1
    return at
