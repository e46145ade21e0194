"""Processes that hold conversations in a store until they are killed.

``test_crash`` starts this program once, since an interpreter takes long to start. It
reads jobs, a JSON list of them a line, makes a process of each, and says ``ended``
when all of them are gone. A job is the arguments of ``talk``. Each line that a process
says begins with its pid; what it has said is past when it is killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from aeye.agent import Agent
from aeye.context import Context
from aeye.memory import MemoryOptions, SQLiteStore
from aeye.message import ToolCall
from aeye.response import Response
from aeye.tools import tool

# Seconds after which a process is stuck.
LIMIT = 60


def say(*words: object) -> None:
    """Write a line at once and whole, whoever else writes."""
    line = " ".join(map(str, (os.getpid(), *words)))
    os.write(1, f"{line}\n".encode())


@tool
def note(about: str, part: int) -> str:
    """Note something."""
    return f"noted {about}"


def answer(request: Any) -> Response:
    """Ask for two notes about what was said last; then say that it is done."""
    last = request.messages[-1]
    if last.role == "tool":
        return Response(last.text.replace("noted", "done"))
    about = [json.dumps({"about": last.text, "part": part}) for part in (1, 2)]
    asked = [ToolCall(f"{last.text} {n}", "note", args) for n, args in enumerate(about)]
    return Response("", asked)


class Unsynced(SQLiteStore):
    """A store that does not wait for the disk: the system outlives its processes."""

    def connect(self) -> Any:
        connection = super().connect()
        connection.execute("PRAGMA synchronous = OFF")
        return connection


class Mortal(Unsynced):
    """A store whose process is killed before the statement of a number, from 1."""

    def __init__(self, path: str, statement: int) -> None:
        super().__init__(path)
        self.left = statement

    def connect(self) -> Any:
        connection = super().connect()
        connection.set_trace_callback(self.count)
        return connection

    def count(self, statement: str) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def talk(
    path: str,
    policy: Any,
    speaker: str,
    first: int,
    turns: int | None = None,
    statement: int = 0,
) -> None:
    """Have *turns* turns, or turns without end, and say the number of each."""
    memory = MemoryOptions(Mortal(path, statement), policy)
    agent = Agent("", Context(execute=answer), tools=[note], memory=memory)
    chat = agent.session(policy)
    say("begins", speaker)
    number = first
    while turns is None or number < first + turns:
        chat.prompt(f"{speaker} {number}").send()
        say("kept", speaker, number)
        number += 1


def main() -> None:
    for line in sys.stdin:
        pids = []
        for job in json.loads(line):
            pid = os.fork()
            if pid == 0:
                signal.alarm(LIMIT)
                try:
                    talk(**job)
                finally:
                    sys.stderr.flush()
                    os._exit(0 if sys.exc_info()[0] is None else 1)
            pids.append(pid)
        for pid in pids:
            _, status = os.waitpid(pid, 0)
            killed = os.WIFSIGNALED(status)
            say("ended", os.WTERMSIG(status) if killed else 0, status)
        say("over")


if __name__ == "__main__":
    main()
