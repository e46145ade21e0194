"""What ``Prompt`` takes: its options for type checkers, and the check of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from .request import Request
from .template import Template
from .tools import Tool

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import TypedDict

    from .call import Execution
    from .request import SchemaDelivery

    class PromptOptions(TypedDict, total=False):
        """What ``Prompt`` takes besides name, content, schema and parse."""

        description: str
        user_turn: str | Template | Literal[False] | None
        input: Callable[..., Any] | None
        validate: Callable[..., Any] | None
        strict: bool | float
        schema_delivery: SchemaDelivery
        config: Any
        reconfig: Callable[..., Any] | None
        tools: Sequence[Tool[Any]]
        tool_execution: Execution
        tool_concurrency: int
        tool_retries: int | None
        tool_iterations: int
        tools_max: int | None
        tools_only: bool
        tools_complete: bool
        output_retries: int | None
        forget_retries: int | None
        validation_error_max_length: int
        retool: Any
        dynamic: bool
        exclude_messages: bool
        on_tool_result: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None
        on_tool_intercept: Callable[..., Any] | None
        metadata: Mapping[str, Any] | None
        metadata_fn: Callable[..., Any] | None
        applicable: Callable[..., Any] | None
        runtime_schema_fallback: bool


__all__ = ["check_options", "check_tools"]

_CLOSED_SETS = {
    "tool_execution": ("sequential", "parallel", "immediate"),
    "schema_delivery": ("auto", "structured", "prompt"),
}
_FLAGS = (
    "dynamic",
    "exclude_messages",
    "runtime_schema_fallback",
    "tools_complete",
    "tools_only",
)


def check_options(given: Mapping[str, Any]) -> None:
    """Refuse arguments that cannot be what they must be."""
    _check_name(given["name"])
    what = f"prompt {given['name']!r}: "
    for key in ("content", "user_turn"):
        value = given[key]
        if not isinstance(value, (str, Template)) and (key == "content" or value):
            raise TypeError(f"{what}{key} is a str or a Template, not {value!r:.80}")
    check_tools(given["tools"], what + "tools")
    if given["parse"] is not None and given["schema"] in (None, False):
        raise ValueError(
            f"{what}parse gets the value of a structured answer; give a schema too"
        )
    for key, words in _CLOSED_SETS.items():
        if given[key] not in words:
            raise ValueError(f"{what}{key} is one of {words}, not {given[key]!r}")
    _check_kinds(given, what)
    handlers = given["on_tool_result"]
    if isinstance(handlers, Mapping):
        known = {tool.name for tool in given["tools"]}
        unknown = sorted(set(handlers) - known)
        if unknown and given["retool"] is None:
            raise ValueError(
                f"{what}on_tool_result has {unknown!r}; the tools are {sorted(known)}"
            )
    _check_numbers(given, what)


def check_tools(tools: Any, what: str) -> None:
    """Refuse what is no list of tools of different names."""
    if isinstance(tools, (Tool, str)) or not isinstance(tools, (list, tuple)):
        raise TypeError(f"{what} is a list of Tool, not {tools!r:.80}")
    seen = set()
    for tool in tools:
        if not isinstance(tool, Tool):
            hint = "; decorate the function with @aeye.tool" if callable(tool) else ""
            raise TypeError(f"{what} holds Tool values, not {tool!r:.80}{hint}")
        if tool.name in seen:
            raise ValueError(f"{what} has two tools named {tool.name!r}")
        seen.add(tool.name)


def _check_kinds(given: Mapping[str, Any], what: str) -> None:
    config, metadata = given["config"], given["metadata"]
    if isinstance(config, Mapping):
        Request().with_config(config)  # refuses what Request does not have
    elif config not in (None, False) and not callable(config):
        raise TypeError(f"{what}config is a dict or a function, not {config!r:.80}")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"{what}metadata is a dict, not {metadata!r:.80}")
    if not isinstance(given["strict"], (bool, int, float)):
        raise TypeError(
            f"{what}strict is a bool or a number, not {given['strict']!r:.80}"
        )
    for key in _FLAGS:
        if not isinstance(given[key], bool):
            raise TypeError(f"{what}{key} is True or False, not {given[key]!r:.80}")


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"name is a str that says something, not {name!r:.80}")
    if "{{" in name or "\n" in name:
        raise ValueError(
            f"name is a short word for the prompt, not {name!r:.80}: the order is "
            "Prompt(name, content)"
        )


def _check_numbers(given: Mapping[str, Any], what: str) -> None:
    least = {"tool_concurrency": 1, "validation_error_max_length": None}
    for key in (
        "tool_concurrency",
        "tool_retries",
        "tool_iterations",
        "tools_max",
        "output_retries",
        "forget_retries",
        "validation_error_max_length",
    ):
        value, floor = given[key], least.get(key, 0)
        if value is None and key not in least and key != "tool_iterations":
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{what}{key} is a whole number, not {value!r:.80}")
        if floor is not None and value < floor:
            raise ValueError(f"{what}{key} is at least {floor}, not {value!r}")
