"""The scenarios with the official ``openai`` client and a loop by hand."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

import floor
import openai
import pydantic


class Person(pydantic.BaseModel):
    name: str
    age: int


def setup(url: str) -> dict[str, Callable[[], Any]]:
    client = openai.OpenAI(api_key="none", base_url=url)
    create = client.chat.completions.create
    pool = ThreadPoolExecutor(8)

    def text() -> Any:
        messages: Any = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Say hello."},
        ]
        return create(model="text", messages=messages).choices[0].message.content

    def loop(model: str, tool: Any, fn: Callable[..., str]) -> Any:
        messages: Any = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Go."},
        ]
        while True:
            reply = create(model=model, messages=messages, tools=[tool])
            message = reply.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message)
            results = pool.map(
                lambda call: fn(**json.loads(call.function.arguments)),
                message.tool_calls,
            )
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": result}
                for call, result in zip(message.tool_calls, results)
            ]

    def chunks() -> int:
        messages: Any = [{"role": "user", "content": "Go."}]
        stream = create(model="chunks", messages=messages, stream=True)
        return sum(1 for c in stream if c.choices and c.choices[0].delta.content)

    def structured() -> tuple[str, int]:
        messages: Any = [{"role": "user", "content": "Who?"}]
        wanted = {"name": "person", "strict": True, "schema": floor.PERSON}
        shape: Any = {"type": "json_schema", "json_schema": wanted}
        while True:
            reply = create(model="structured", messages=messages, response_format=shape)
            message = reply.choices[0].message
            try:
                found = Person.model_validate_json(message.content or "")
            except pydantic.ValidationError as exc:
                messages += [message, {"role": "user", "content": str(exc)}]
            else:
                return found.name, found.age

    return {
        "a": text,
        "b": lambda: loop("turns", floor.STEP, floor.step),
        "c": lambda: loop("parallel", floor.SLEEPY, floor.sleepy),
        "d": chunks,
        "e": structured,
    }
