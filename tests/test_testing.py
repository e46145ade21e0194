"""The models for tests."""

from __future__ import annotations

import threading

import pytest

from aeye.context import Context
from aeye.errors import ServerError
from aeye.prompt import Prompt
from aeye.response import Chunk, Response, join
from aeye.testing import Recorded, ReplayTransport, ScriptedModel, Sent, calls, pieces
from aeye.usage import Usage

COST = Usage.of(input=10, output=5)


def test_replies_in_turn_and_the_last_for_good() -> None:
    """Replies are used in order; the last one answers every further request."""
    model = ScriptedModel("one", "two")

    said = [model.execute(n).content for n in "abc"]

    assert (said, model.requests, model.calls) == (
        ["one", "two", "two"],
        ["a", "b", "c"],
        3,
    )


@pytest.mark.parametrize(
    "reply",
    [
        "hello",
        Response("hello", usage=COST),
        pieces("hel", "lo", usage=COST),
        tuple(pieces("hel", "lo", usage=COST)),
        lambda request: "hello",
        lambda request, ctx: iter(pieces("hel", "lo", usage=COST)),
    ],
)
def test_every_kind_of_reply_works_both_ways(reply: object) -> None:
    """A blocking and a streamed call give the same response for every kind."""
    model = ScriptedModel(reply)

    whole, streamed = model.execute("r"), join(model.stream("r"))

    assert whole == streamed == Response("hello", usage=COST)


def test_exceptions_are_raised() -> None:
    """An exception is raised, as a reply, from a function and among chunks."""
    model = ScriptedModel(
        KeyError("a"),
        lambda request: KeyError("b"),
        [Chunk("text"), KeyError("c")],
    )
    arrived = []

    with pytest.raises(KeyError, match="a"):
        model.execute("r")
    with pytest.raises(KeyError, match="b"):
        next(model.stream("r"))
    with pytest.raises(KeyError, match="c"):
        for chunk in model.stream("r"):
            arrived.append(chunk)
    assert arrived == [Chunk("text")]


def test_generator_replies_are_read_lazily_and_may_return_a_response() -> None:
    """A generator is advanced as its chunks are read; its return value passes on."""
    seen = []

    def reply(request: object):  # type: ignore[no-untyped-def]  # a generator of anything
        seen.append(request)
        yield Chunk("a")
        seen.append("after")
        return Response("whole")

    stream = ScriptedModel(reply).stream("r")
    first = next(stream)
    before = list(seen)
    with pytest.raises(StopIteration) as end:
        next(stream)

    assert (first, before, seen, end.value.value) == (
        Chunk("a"),
        ["r"],
        ["r", "after"],
        Response("whole"),
    )


def test_call_ids_are_unique_over_the_life_of_the_model() -> None:
    """Ids that are not given are numbered, and skip those that are."""
    model = ScriptedModel(
        calls(("a", {}), ("b", {"x": 1}, "call_2"), ("c", "{"), text="hm"),
        calls(("a", {})),
    )

    found = [model.execute("r") for _ in range(3)]

    assert [[c.id for c in r.tool_calls] for r in found] == [
        ["call_1", "call_2", "call_3"],
        ["call_4"],
        ["call_5"],
    ]
    assert (found[0].content, found[0].usage) == ("hm", COST)


def test_mode_decides_what_the_context_has() -> None:
    """A model of one mode gives a context that can do no other."""
    has = {}
    for mode in ("both", "execute", "stream"):
        ctx = ScriptedModel("x", mode=mode).context(max_output_tokens=7)
        has[mode] = (ctx.execute is not None, ctx.stream is not None)
        assert isinstance(ctx, Context)
        assert ctx.max_output_tokens == 7

    assert has == {
        "both": (True, True),
        "execute": (True, False),
        "stream": (False, True),
    }


def test_pieces_without_an_end() -> None:
    """With neither finish nor usage the stream has no last chunk."""
    assert pieces("a", finish=None) == [Chunk("a")]


def test_bad_scripts_are_refused_at_the_door() -> None:
    """What is no reply is a TypeError that says what a reply is."""

    async def later(request: object) -> str:
        return "x"

    with pytest.raises(TypeError, match="at least one reply"):
        ScriptedModel()
    with pytest.raises(TypeError, match="a reply is a str"):
        ScriptedModel(3)
    with pytest.raises(TypeError, match="holds Chunk values"):
        ScriptedModel(["text"])
    with pytest.raises(TypeError, match="async def"):
        ScriptedModel(later)
    with pytest.raises(ValueError, match="mode is one of"):
        ScriptedModel("x", mode="neither")
    with pytest.raises(TypeError, match="returned a function"):
        ScriptedModel(lambda request: lambda r: "x").execute("r")


def test_several_threads() -> None:
    """Each request of several threads gets a reply of its own."""
    model = ScriptedModel(*(str(n) for n in range(40)))
    gate = threading.Barrier(4)
    said = []

    def ask() -> None:
        gate.wait(10)
        said.extend(model.execute("r").content for _ in range(10))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert sorted(said, key=int) == [str(n) for n in range(40)]


def test_recorded_answers_are_played_in_turn() -> None:
    """Each request is recorded and answered with the next answer; the last repeats."""
    transport = ReplayTransport(
        Recorded((b"a", b"", b"b"), status=429, headers={"retry-after": "1"}),
        ConnectionError("down"),
        b"ok",
    )

    first = transport.open("u", {"x": "1"}, b'{"n": 1}')
    with pytest.raises(ConnectionError, match="down"):
        transport.open("u", {}, b"")
    last = [list(transport.open("v", {}, b"")) for _ in range(2)]

    assert (first.status, first.headers, list(first), last) == (
        429,
        {"retry-after": "1"},
        [b"a", b"b"],
        [[b"ok"], [b"ok"]],
    )
    assert transport.sent == [
        Sent("u", {"x": "1"}, b'{"n": 1}'),
        Sent("u", {}, b""),
        Sent("v", {}, b""),
        Sent("v", {}, b""),
    ]
    assert transport.sent[0].json == {"n": 1}


def test_a_body_that_breaks_off() -> None:
    """The error of a recording comes after its body."""
    reply = ReplayTransport(Recorded(b"a", error=ConnectionError("cut"))).open(
        "", {}, b""
    )
    body = iter(reply)

    assert next(body) == b"a"
    with pytest.raises(ConnectionError, match="cut"):
        next(body)


def test_replies_that_were_not_closed_are_counted() -> None:
    """A test can see whether every answer was let go of."""
    transport = ReplayTransport(b"")
    replies = [transport.open("", {}, b"") for _ in range(2)]

    replies[0].close(drain=0.2)
    before = transport.unclosed
    replies[1].close()
    transport.close()

    assert (before, transport.unclosed) == (1, 0)


def test_a_recorded_request_does_not_show_its_headers() -> None:
    """A key is in the headers, and must not end up in a log."""
    assert "secret" not in repr(Sent("u", {"authorization": "secret"}, b""))


def test_bad_recordings_are_refused_at_the_door() -> None:
    """What is no answer is a TypeError that says what is."""
    with pytest.raises(TypeError, match="at least one answer"):
        ReplayTransport()
    with pytest.raises(TypeError, match="an answer is bytes"):
        ReplayTransport("text")


def test_a_vendor_can_be_played_back() -> None:
    """A recorded body of a vendor's goes through the vendor's own codec."""
    body = (
        b'{"choices": [{"message": {"role": "assistant", "content": "Hello."},'
        b' "finish_reason": "stop"}]}'
    )
    transport = ReplayTransport(body, Recorded(b"{}", status=500))
    ctx = transport.context("openai:gpt-5-mini", format="chat", max_output_tokens=5)
    prompt = Prompt("greet", "Be brief.", user_turn="Hello?")

    answer = prompt({}, ctx)
    with pytest.raises(ServerError):
        prompt({}, ctx)

    assert answer == "Hello."
    assert transport.sent[0].url == "https://api.openai.com/v1/chat/completions"
    assert transport.sent[0].json["messages"][-1] == {
        "role": "user",
        "content": "Hello?",
    }
    assert (len(transport.sent), transport.unclosed) == (2, 0)


@pytest.mark.parametrize("model", ["gpt-5-mini", "martian:m", "openai:"])
def test_a_vendor_has_to_be_named(model: str) -> None:
    """A model is given with its vendor."""
    with pytest.raises(ValueError, match="model is 'vendor:model'"):
        ReplayTransport(b"").context(model)
