"""Stores, save policies and sessions."""

from __future__ import annotations

import gc
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from aeye.agent import Agent
from aeye.callback import attempt
from aeye.errors import ServerError, ToolApprovalRequiredError, ToolInterrupt
from aeye.hooks import cancel_prompt
from aeye.memory import (
    InMemoryStore,
    MemoryContext,
    MemoryOptions,
    SQLiteStore,
)
from aeye.message import Message, Part, Reasoning
from aeye.prompt import Prompt
from aeye.testing import ScriptedModel, calls
from aeye.tools import Tool, tool

ROUND = calls(("add", {"a": 1, "b": 2}, "c1"))
ME = MemoryContext("s1", "u1")


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def user(text: str) -> Message:
    return Message("user", text)


def roles(messages: Any) -> list[str]:
    return [message.role for message in messages]


class Spy(InMemoryStore):
    """A store that notes what is appended and which runs failed."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[tuple[int, list[str]]] = []
        self.errors: list[tuple[Any, list[str]]] = []

    def append(self, context: Any, run_id: str, turn: int, messages: Any) -> None:
        self.groups.append((turn, roles(messages)))
        super().append(context, run_id, turn, messages)

    def record_error(
        self, context: Any, run_id: str, error: Any, messages: Any
    ) -> None:
        self.errors.append((error, roles(messages)))


def agent(store: Any, *replies: Any, **options: Any) -> Agent[str]:
    options.setdefault("tools", [add])
    return Agent("", ScriptedModel(*replies).context(), memory=store, **options)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: Any, tmp_path: Path) -> Any:
    if request.param == "memory":
        return InMemoryStore()
    return SQLiteStore(tmp_path / "sessions.db")


class TestStores:
    """Both stores keep the same promises."""

    def test_keeps_messages(self, store: Any) -> None:
        """What is appended is loaded again, equal and in order."""
        said = [
            Message("user", [Part.text("look"), Part.image(b"\x00", "image/png")]),
            Message("assistant", "é", reasoning=Reasoning("hm")),
        ]
        store.append(ME, "r1", 1, said)
        store.append(ME, "r2", 1, [user("more")])

        assert list(store.load(ME)) == [*said, user("more")]

    def test_sessions_are_apart(self, store: Any) -> None:
        """Another id, or the same of another user, is another session."""
        store.append(ME, "r", 1, [user("mine")])
        others = [
            MemoryContext("s2", "u1"),
            MemoryContext("s1", "u2"),
            MemoryContext("s1"),
        ]

        assert [list(store.load(other)) for other in others] == [[], [], []]
        for other in others:
            store.clear(other)
        assert list(store.load(ME)) == [user("mine")]

    def test_clear(self, store: Any) -> None:
        """A cleared session is empty, and can be used again."""
        store.append(ME, "r", 1, [user("a")])
        store.start_call(ME, "c1")

        store.clear(ME)

        assert list(store.load(ME)) == []
        assert store.start_call(ME, "c1") is True

    def test_a_call_is_started_once(self, store: Any) -> None:
        """Only the first of any number of threads may run a call."""
        gate = threading.Barrier(4)
        firsts: list[bool] = []

        def start() -> None:
            gate.wait(10)
            firsts.append(store.start_call(ME, "c1"))

        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(firsts) == [False, False, False, True]

    def test_sqlite_keeps_for_the_next_process(self, tmp_path: Path) -> None:
        """Another store on the same file finds what was kept; errors are noted."""
        first = SQLiteStore(tmp_path / "s.db")
        first.append(ME, "r", 1, [user("a")])
        first.record_error(ME, "r", ValueError("x"), [user("b")])

        again = SQLiteStore(str(tmp_path / "s.db"))

        assert list(again.load(ME)) == [user("a")]
        assert repr(again) == f"<SQLiteStore {tmp_path / 's.db'}>"

    def test_sqlite_needs_a_file(self) -> None:
        """A database in memory would be empty every time it is opened."""
        with pytest.raises(ValueError, match="InMemoryStore"):
            SQLiteStore(":memory:")

    def test_options(self) -> None:
        """A store needs its three methods, and a policy is one of three."""
        with pytest.raises(TypeError, match="load, append and clear"):
            MemoryOptions(object())  # type: ignore[arg-type]  # on purpose

        class Later(InMemoryStore):
            async def load(self, context: Any) -> Any: ...  # type: ignore[override]  # on purpose

        with pytest.raises(TypeError, match="async def"):
            MemoryOptions(Later())  # type: ignore[arg-type]  # on purpose
        with pytest.raises(ValueError, match="save_policy"):
            MemoryOptions(InMemoryStore(), "often")  # type: ignore[arg-type]  # on purpose


class TestSavePolicies:
    """When a run's messages reach the store."""

    @pytest.mark.parametrize(
        ("policy", "groups"),
        [
            (
                "message",
                [
                    (1, ["user"]),
                    (1, ["assistant", "tool"]),
                    (2, ["assistant"]),
                ],
            ),
            ("turn", [(1, ["user", "assistant", "tool"]), (2, ["assistant"])]),
            ("run", [(2, ["user", "assistant", "tool", "assistant"])]),
        ],
    )
    def test_groups(self, policy: Any, groups: Any) -> None:
        """An answer with calls is saved with its replies, whatever the policy."""
        spy = Spy()

        agent({"store": spy, "save_policy": policy}, ROUND, "3").session("s").prompt(
            "hi"
        ).send()

        assert spy.groups == groups

    def test_the_default_is_by_turn(self) -> None:
        """A bare store saves turn by turn."""
        spy = Spy()

        agent(spy, ROUND, "3").session("s").prompt("hi").send()

        assert [turn for turn, _ in spy.groups] == [1, 2]

    @pytest.mark.parametrize(
        ("policy", "kept"),
        [
            ("message", ["user", "assistant", "tool"]),
            ("turn", ["user", "assistant", "tool"]),
            ("run", []),
        ],
    )
    def test_a_failure_keeps_what_was_saved(self, policy: Any, kept: Any) -> None:
        """A run that fails in its second turn keeps the first; the error is noted."""
        spy, boom = Spy(), KeyError("x")
        session = agent(MemoryOptions(spy, policy), ROUND, boom).session("s")

        attempt(session.prompt("hi").send)

        assert roles(session.messages()) == kept
        assert spy.errors == [(boom, ["user", "assistant", "tool"])]

    def test_a_first_turn_that_fails(self) -> None:
        """By turn, a failed first turn leaves nothing; by message, the prompt."""
        for policy, kept in (("turn", []), ("message", ["user"])):
            spy = Spy()
            session = agent(MemoryOptions(spy, policy), KeyError("x")).session("s")  # type: ignore[arg-type]  # a str

            attempt(session.prompt("hi").send)

            assert roles(session.messages()) == kept

    @pytest.mark.parametrize("policy", ["message", "turn", "run"])
    def test_cancelling_at_the_end(self, policy: Any) -> None:
        """By run, a run that is cancelled at its end stores nothing."""
        spy = Spy()
        hook = {"on_run_end": lambda args: cancel_prompt("no")}
        session = agent(MemoryOptions(spy, policy), "x", hook=hook).session("s")

        attempt(session.prompt("hi").send)

        kept = [] if policy == "run" else ["user", "assistant"]
        assert roles(session.messages()) == kept
        assert len(spy.errors) == 1

    @pytest.mark.parametrize("policy", ["message", "turn", "run"])
    def test_cancelled_calls_never_dangle(self, policy: Any) -> None:
        """Whatever is stored answers every call."""
        hook = {"on_tool_call": lambda args: cancel_prompt("no")}
        session = agent(MemoryOptions(Spy(), policy), ROUND, hook=hook).session("s")

        attempt(session.prompt("hi").send)

        held = session.messages()
        calls_made = [call.id for m in held for call in m.tool_calls]
        assert calls_made == [m.tool_call_id for m in held if m.role == "tool"]

    def test_retries_write_once(self) -> None:
        """A retried call is saved once."""
        spy = Spy()
        session = agent(
            MemoryOptions(spy, "message"), ServerError("x", status=503), "ok"
        ).session("s")

        session.prompt("hi").with_completion_retries(initial_delay_ms=0).send()

        assert [group for _, group in spy.groups] == [["user"], ["assistant"]]

    @pytest.mark.parametrize("method", ["load", "append"])
    def test_a_store_that_fails(self, method: str) -> None:
        """It fails the run like anything else."""
        boom = OSError("full")

        def fail(*args: Any) -> None:
            raise boom

        spy = Spy()
        setattr(spy, method, fail)

        _, error = attempt(agent(spy, "x").session("s").prompt("hi").send)

        assert error is boom

    def test_a_store_that_fails_at_a_failure(self) -> None:
        """It does not hide what went wrong."""
        boom = KeyError("x")

        class Broken(Spy):
            def record_error(self, *args: Any) -> None:
                raise OSError("full")

        _, error = attempt(agent(Broken(), boom).session("s").prompt("hi").send)

        assert error is boom


class TestSessions:
    """A conversation that is kept."""

    def test_goes_on(self, store: Any) -> None:
        """What was said comes before what is said next; a response has its own."""
        model = ScriptedModel("hello", "fine")
        chat = Agent("Be kind.", model.context(), memory=store).session(" s ")

        chat.prompt("hi").send()
        response = chat.prompt(user("how are you?")).send()

        assert roles(model.requests[1].messages) == [
            "system",
            "user",
            "assistant",
            "user",
        ]
        assert roles(response.messages) == ["user", "assistant"]
        assert roles(chat.messages()) == ["user", "assistant"] * 2
        assert chat.context.session_id == "s"
        chat.clear()
        assert chat.messages() == ()
        assert repr(chat) == "<Session s of agent>"

    def test_what_is_no_session(self) -> None:
        """A session needs an id and a memory, and takes no transcript."""
        with pytest.raises(ValueError, match="no memory"):
            Agent("", ScriptedModel("x").context()).session("s")
        for wrong in ("", "  ", None, 7):
            with pytest.raises(TypeError, match="id"):
                agent(InMemoryStore(), "x").session(wrong)  # type: ignore[arg-type]  # on purpose
        with pytest.raises(TypeError, match="transcript"):
            agent(InMemoryStore(), "x").session("s").prompt([user("a")])  # type: ignore[arg-type]  # on purpose

    def test_who_asks_for_consent(self) -> None:
        """An approval handler is told which session it is."""
        seen: list[Any] = []

        def decide(request: Any) -> bool:
            seen.append((request.run.session_id, dict(request.run.metadata)))
            return True

        ask = Tool("ask", lambda args: "ok", schema={}, approval=True)
        made = agent(InMemoryStore(), calls(("ask", {})), "x", tools=[ask])

        made.session("s", user_id="u", metadata={"k": 1}).prompt("hi").approvals(
            decide
        ).send()

        assert seen == [("s", {"k": 1})]

    def test_resuming(self, store: Any) -> None:
        """A run that waited goes on later; then the session holds all of it."""
        ran: list[str] = []

        @tool(approval=True)
        def pay(to: str) -> str:
            """Pay."""
            ran.append(to)
            return "paid"

        few_shot = [user("before"), Message("assistant", "yes?")]
        model = ScriptedModel("hello", calls(("pay", {"to": "Ann"}, "p1")), "done")
        ctx = model.context(messages=few_shot)
        chat = Agent("", ctx, tools=[pay], memory=store).session("s")
        chat.prompt("hi").send()
        with pytest.raises(ToolApprovalRequiredError) as caught:
            chat.prompt("pay Ann").send()
        assert roles(chat.messages()) == ["user", "assistant"]

        response = chat.resume(caught.value, {"p1": True}).send()

        assert (ran, response.output) == (["Ann"], "done")
        assert roles(response.messages) == ["tool", "assistant"]
        assert roles(chat.messages()) == [
            "user",
            "assistant",
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
        assert model.requests[-1].messages == (
            *few_shot,
            *chat.messages()[:-1],
        )

    def test_resuming_what_has_ended(self, store: Any) -> None:
        """A decision that comes a second time asks nobody and adds nothing."""

        @tool(approval=True)
        def pay() -> str:
            """Pay."""
            return "paid"

        model = ScriptedModel(calls(("pay", {}, "p1")), "done")
        chat = Agent("", model.context(), tools=[pay], memory=store).session("s")
        _, error = attempt(chat.prompt("pay").send)
        assert isinstance(error, ToolApprovalRequiredError)
        chat.resume(error, {"p1": True}).send()
        held = chat.messages()

        with pytest.raises(ValueError, match="nothing waits any more"):
            chat.resume(error, {"p1": True}).send()

        assert (model.calls, chat.messages()) == (2, held)

    def test_resuming_after_others(self, store: Any) -> None:
        """What was said while a run waited stays, and nothing is held twice."""

        @tool(approval=True)
        def pay() -> str:
            """Pay."""
            return "paid"

        model = ScriptedModel("hello", calls(("pay", {}, "p1")), "fine", "done")
        chat = Agent("", model.context(), tools=[pay], memory=store).session("s")
        chat.prompt("hi").send()
        _, error = attempt(chat.prompt("pay").send)
        assert isinstance(error, ToolApprovalRequiredError)
        chat.prompt("how are you?").send()

        chat.resume(error, {"p1": True}).send()

        assert [m.text for m in chat.messages()] == [
            *("hi", "hello"),
            *("how are you?", "fine"),
            *("pay", "", "paid", "done"),
        ]

    @pytest.mark.parametrize("policy", ["message", "turn", "run"])
    def test_resuming_one_of_several(self, store: Any, policy: Any) -> None:
        """Replies are held in the order of the calls, whichever came last."""

        @tool(approval=True)
        def pay() -> str:
            """Pay."""
            return "paid"

        @tool
        def look() -> str:
            """Look."""
            return "seen"

        batch = calls(("pay", {}, "p1"), ("look", {}, "l1"))
        model = ScriptedModel(batch, "done")
        memory = MemoryOptions(store, policy)
        agent = Agent("", model.context(), tools=[pay, look], memory=memory)
        chat = agent.session("s")
        _, error = attempt(chat.prompt("go").send)

        chat.resume(error, {"p1": True}).send()

        held = [m.tool_call_id for m in chat.messages() if m.role == "tool"]
        assert held == ["p1", "l1"]

    def test_replies_that_were_not_wanted(self, store: Any) -> None:
        """What a stopped run says without replies is held with them."""

        @tool
        def stop() -> str:
            """Stop."""
            raise ToolInterrupt

        model = ScriptedModel(calls(("stop", {}, "s1")))
        prompt = Prompt("p", "", tools=[stop], tools_complete=False)
        chat = Agent(prompt, model.context(), memory=store).session("s")

        response = chat.prompt("go").send()

        assert roles(response.messages) == ["user", "assistant"]
        assert roles(chat.messages()) == ["user", "assistant", "tool"]
        assert chat.messages()[-1].text == "[interrupted]"

    @pytest.mark.parametrize(
        ("policy", "replies"),
        [
            # The reply was saved: the run goes on behind it.
            ("turn", ["done"]),
            ("message", ["done"]),
            # It was not: nobody knows what came of the call.
            (
                "run",
                [
                    "[not run: it was started before, and what came of it is not "
                    "known]",
                    "done",
                ],
            ),
        ],
    )
    def test_resuming_twice(self, store: Any, policy: Any, replies: Any) -> None:
        """A call that was begun once is not begun again."""
        ran: list[int] = []

        @tool(approval=True)
        def pay() -> str:
            """Pay."""
            ran.append(1)
            return "paid"

        model = ScriptedModel(calls(("pay", {}, "p1")), KeyError("down"), "done")
        memory = MemoryOptions(store, policy)
        chat = Agent("", model.context(), tools=[pay], memory=memory).session("s")
        _, error = attempt(chat.prompt("pay").send)
        assert isinstance(error, ToolApprovalRequiredError)
        attempt(chat.resume(error, {"p1": True}).send)

        response = chat.resume(error.messages, {"p1": True}).send()

        assert ran == [1]
        assert [m.text for m in response.messages] == replies
        assert roles(chat.messages()) == ["user", "assistant", "tool", "assistant"]


def test_a_file_that_is_no_database_leaves_nothing_open(tmp_path: Path) -> None:
    """A file that is no database is refused, and its connection closed."""
    path = tmp_path / "notes.txt"
    path.write_text("no database " * 100)

    with pytest.raises(sqlite3.DatabaseError):
        SQLiteStore(str(path)).load(ME)
    gc.collect()  # an open connection would warn, and warnings are errors


@pytest.mark.parametrize("user_id", [0, 7, b"7", True])
def test_a_user_is_a_text(user_id: Any) -> None:
    """No number stands for nobody, or for the text that looks like it."""
    model = ScriptedModel("never").context()
    agent = Agent("", model, memory=InMemoryStore())

    with pytest.raises(TypeError, match="user_id is a str, not "):
        agent.session("s1", user_id=user_id)
    with pytest.raises(TypeError, match="user_id is a str, not "):
        MemoryContext("s1", user_id)


def test_a_store_says_what_it_cannot_use(tmp_path: Path) -> None:
    """A path that is none and a time-out that is none are named."""
    path: Any
    for path in (3, None):
        with pytest.raises(TypeError, match=f"path is that of a file, not {path}"):
            SQLiteStore(path)
    timeout: Any
    for timeout in ("3", None, True):
        with pytest.raises(TypeError, match="timeout is a number of seconds, not "):
            SQLiteStore(tmp_path / "s.db", timeout=timeout)


def test_a_text_that_is_no_unicode_is_kept(tmp_path: Path) -> None:
    """Half of a surrogate pair spoils no run and no session."""
    half = Tool("half", lambda given: "\ud800 é", schema={})
    model = ScriptedModel(calls(("half", {})), "ok")
    store = SQLiteStore(tmp_path / "s.db")
    chat = Agent("", model.context(), tools=[half], memory=store).session("s")

    response = chat.prompt("x").send()

    assert response.output == "ok"
    assert chat.messages() == response.messages
    assert chat.messages()[2].text == "\ud800 é"
