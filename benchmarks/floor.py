"""The floor: the scenarios by hand, with requests, json and jsonschema.

What a library built on these could at best cost. Connections are kept, validators are
compiled once, and nothing is general.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

import jsonschema
import requests

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def _function(name: str, argument: str) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {argument: {"type": "integer"}},
        "required": [argument],
    }
    function = {"name": name, "description": "A tool.", "parameters": parameters}
    return {"type": "function", "function": function}


STEP = _function("step", "n")
SLEEPY = _function("sleepy", "i")


def step(n: int) -> str:
    return f"step {n} ok"


def sleepy(i: int) -> str:
    time.sleep(0.05)
    return f"slept {i}"


class ByHand:
    def __init__(self, url: str) -> None:
        self.url = f"{url}/chat/completions"
        self.session = requests.Session()
        self.session.headers["Authorization"] = "Bearer none"
        self.pool = ThreadPoolExecutor(8)
        self.person = jsonschema.Draft202012Validator(PERSON)

    def post(self, **body: Any) -> Any:
        reply = self.session.post(self.url, json=body, timeout=30)
        reply.raise_for_status()
        return reply.json()["choices"][0]["message"]

    def text(self) -> str:
        messages = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Say hello."},
        ]
        return str(self.post(model="text", messages=messages)["content"])

    def loop(self, model: str, tool: Any, fn: Callable[..., str]) -> str:
        messages: list[Any] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Go."},
        ]
        parameters = tool["function"]["parameters"]
        validator = jsonschema.Draft202012Validator(parameters)

        def run(call: Any) -> str:
            arguments = json.loads(call["function"]["arguments"])
            validator.validate(arguments)
            return fn(**arguments)

        while True:
            message = self.post(model=model, messages=messages, tools=[tool])
            wanted = message.get("tool_calls")
            if not wanted:
                return str(message["content"])
            messages.append(message)
            several = len(wanted) > 1
            results = (self.pool.map if several else map)(run, wanted)
            messages += [
                {"role": "tool", "tool_call_id": call["id"], "content": text}
                for call, text in zip(wanted, results)
            ]

    def chunks(self) -> int:
        messages = [{"role": "user", "content": "Go."}]
        body = {"model": "chunks", "stream": True, "messages": messages}
        count, rest = 0, b""
        with self.session.post(self.url, json=body, stream=True, timeout=30) as reply:
            for part in reply.iter_content(chunk_size=None):
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: ") and line != b"data: [DONE]":
                        choices = json.loads(line[6:])["choices"]
                        count += bool(choices and choices[0]["delta"].get("content"))
        return count

    def structured(self) -> tuple[str, int]:
        messages: list[Any] = [{"role": "user", "content": "Who?"}]
        wanted = {"name": "person", "strict": True, "schema": PERSON}
        shape = {"type": "json_schema", "json_schema": wanted}
        while True:
            message = self.post(
                model="structured", messages=messages, response_format=shape
            )
            value = json.loads(message["content"])
            problem = next(self.person.iter_errors(value), None)
            if problem is None:
                return value["name"], value["age"]
            again = {"role": "user", "content": f"Invalid: {problem.message}"}
            messages += [message, again]


def setup(url: str) -> dict[str, Callable[[], Any]]:
    floor = ByHand(url)
    return {
        "a": floor.text,
        "b": lambda: floor.loop("turns", STEP, step),
        "c": lambda: floor.loop("parallel", SLEEPY, sleepy),
        "d": floor.chunks,
        "e": floor.structured,
    }
