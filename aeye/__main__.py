"""The command line: ``python -m aeye``, or ``aeye``.

Exit codes: 0 done, 1 the run failed, 2 usage. An error is one line on standard error;
``--debug`` shows the traceback. What the terminal cannot show is printed escaped.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Dict, List, NoReturn, Sequence, TextIO

if TYPE_CHECKING:
    from .context import Context
    from .event import PromptEvent
    from .message import Part
    from .prompt import Prompt
    from .request import Request
    from .schema import Schema
    from .tools import Tool
    from .usage import Usage
    from .vendor import Vendor
    from .wire import ModelFacts

__all__ = ["main"]

_FAMILIES = ("openai", "anthropic", "google", "xai")
_TOOL = re.compile(r"[\w.]+:[\w.]+")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    try:
        options = parser.parse_args(argv)
    except SystemExit as exc:  # argparse has said why
        return int(exc.code or 0)
    if options.version:
        options.command = _version
    if options.command is None:
        parser.print_help()
        return 2
    try:
        return _run(options)
    except KeyboardInterrupt:
        return 130
    except SystemExit as exc:  # a tool of the user's; its code would pass for ours
        print(f"aeye: a tool ended the program: {exc!r}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever read us has left. What is buffered must not be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


class _UsageError(Exception):
    """An argument that cannot be used."""


class _FailedError(Exception):
    """A run that ended without a result, and without an error of its own."""


class _Parser(argparse.ArgumentParser):
    """Tells of an error in one line, where the original prints its usage as well."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"aeye: {' '.join(message.split())} (see {self.prog} --help)\n")


def _run(options: argparse.Namespace) -> int:
    from .callback import attempt

    # Modules and tools of the user's may raise anything; none of it is a traceback.
    code, error = attempt(_all_of, options)
    if isinstance(error, BrokenPipeError):
        raise error
    if error is None:
        return int(code)
    if options.debug:
        import traceback

        traceback.print_exception(type(error), error, error.__traceback__)
    else:
        print(f"aeye: {_one_line(error)}", file=sys.stderr)
    return 2 if isinstance(error, _UsageError) else 1


def _all_of(options: argparse.Namespace) -> int:
    """Run the command; what cannot be written is an error of it, not of the exit."""
    code = options.command(options)
    if sys.stdout is not None:  # as it is where it was closed
        sys.stdout.flush()
    return int(code)


def _one_line(error: BaseException) -> str:
    from .errors import AeyeError

    said = " ".join(str(error).split())
    plain = isinstance(error, (_UsageError, _FailedError, AeyeError))
    # Of an exception that is none of ours, the name is half of the message.
    return said if plain and said else f"{type(error).__name__}: {said}".rstrip(": ")


def _parser() -> argparse.ArgumentParser:
    common = _Parser(add_help=False)
    common.add_argument(
        "--debug", action="store_true", help="show the traceback of an error"
    )
    parser = _Parser("aeye", description="Run prompts from the command line.")
    parser.set_defaults(command=None, debug=False)
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    demo = commands.add_parser(
        "demo", parents=[common], help="show what it does, without a model"
    )
    demo.set_defaults(command=_demo)
    demo.add_argument("-m", "--model", help="ask this model instead of rehearsing")
    demo.add_argument(
        "--no-delay", action="store_true", help="do not wait for the eye to follow"
    )

    _add_ask(commands.add_parser("ask", parents=[common], help="ask a model"))

    schema = commands.add_parser(
        "schema", parents=[common], help="print a schema as a vendor is sent it"
    )
    schema.set_defaults(command=_schema)
    schema.add_argument(
        "source", metavar="FILE|module:Type", help="or module:function: its arguments"
    )
    schema.add_argument("--for", dest="family", choices=_FAMILIES, required=True)
    strict = schema.add_mutually_exclusive_group()
    strict.add_argument(
        "--strict", action="store_true", help="fail if it cannot go strict"
    )
    strict.add_argument("--non-strict", action="store_true")

    trace = commands.add_parser(
        "trace", parents=[common], help="make a page of what a TraceRecorder wrote"
    )
    trace.set_defaults(command=_trace)
    trace.add_argument("file", metavar="FILE", help="lines of JSON")
    trace.add_argument(
        "-o", "--output", metavar="HTML", help="else FILE's name with .html; - prints"
    )

    models = commands.add_parser(
        "models", parents=[common], help="list vendors, keys and what models can do"
    )
    models.set_defaults(command=_models)
    models.add_argument(
        "name", nargs="?", metavar="VENDOR[:MODEL]", help="one of them; else all"
    )
    return parser


def _add_ask(ask: argparse.ArgumentParser) -> None:
    ask.set_defaults(command=_ask)
    ask.add_argument("text", nargs="?", help="what to ask; what is piped in is added")
    ask.add_argument("-m", "--model", help="as openai:gpt-5-mini; else AEYE_MODEL")
    ask.add_argument(
        "--schema", metavar="FILE|module:Type", help="the shape of the answer"
    )
    ask.add_argument(
        "--tool",
        action="extend",
        nargs="+",
        default=[],
        metavar="module:function",
        help="functions that the model may call; may be repeated",
    )
    ask.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="PATH",
        help="a picture, sound or document to send along; may be repeated",
    )
    ask.add_argument(
        "--json", action="store_true", help="print output and usage as one JSON object"
    )
    ask.add_argument("--stream", action="store_true", help="print as it arrives")
    ask.add_argument(
        "--dry-run", action="store_true", help="print what would be asked, as JSON"
    )


def _version(options: argparse.Namespace) -> int:
    _write(f"aeye {sys.modules[__package__ or 'aeye'].__version__}\n")
    return 0


def _demo(options: argparse.Namespace) -> int:
    from .connection import connect
    from .demo import run

    pause = 0.0 if options.no_delay else 0.03
    if options.model:
        ctx = _connect(options.model)
    else:
        ctx = connect("rehearsal:openai", mistakes=1, delay=pause)
    with ctx:
        run(ctx, model=options.model, delay=20 * pause or 0.1, write=_write)
    return 0


def _connect(model: str | None, **context: Any) -> Context:
    """Return the Context of *model*, or of the one that the environment names."""
    from .connection import connect
    from .errors import NoModelError

    try:
        return connect(model, **context)
    except NoModelError as exc:
        raise _UsageError(
            "no model: give one, as in -m openai:gpt-5-mini, or set AEYE_MODEL"
        ) from exc
    except ValueError as exc:
        raise _UsageError(str(exc)) from exc


def _write(text: str) -> None:
    # Half a surrogate pair, or all but ASCII on some terminals.
    out = _stdout()
    encoding = out.encoding or "utf-8"
    out.write(text.encode(encoding, "backslashreplace").decode(encoding))
    out.flush()


def _stdout() -> TextIO:
    if sys.stdout is None:
        raise _FailedError("there is nowhere to print to: standard output is closed")
    return sys.stdout


def _ask(options: argparse.Namespace) -> int:
    from .message import Message, Part

    text, names = _text_and_tools(options)
    if sys.stdin is not None and not sys.stdin.isatty():
        try:
            piped = sys.stdin.read().strip()
        except UnicodeDecodeError as exc:
            raise _UsageError(f"what is piped in is no text: {exc}") from exc
        text = "\n\n".join(part for part in (text, piped) if part)
    if not text:
        raise _UsageError("nothing to ask: give a text, or pipe one in")
    schema = _schema_of(options.schema) if options.schema else None
    prompt = _prompt(schema, [_tool(name) for name in names])
    parts = [_part(path) for path in options.file]
    said = Message("user", (Part.text(text), *parts) if parts else text)
    with _connect(options.model, messages=[said]) as ctx:
        if options.dry_run:
            _print_json(_request(prompt.preview(None, ctx)))
            return 0
        last = ""
        with prompt.run(None, ctx) as events:
            for event in events:
                last = event.type
                if options.stream:
                    _tell(event, options.json)
        if last != "complete":
            raise _FailedError(f"the run ended without a result ({last})")
        output = events.output if schema is None else schema.dump(events.output)
        if not options.stream:
            _print_output(output, events.usage, options.json)
    return 0


def _text_and_tools(options: argparse.Namespace) -> tuple[str, List[str]]:
    """Tell the text from the tools: after --tool, argparse takes it for one more."""
    names = list(options.tool)
    if options.text is None and names and not _TOOL.fullmatch(names[-1]):
        return names.pop(), names
    return options.text or "", names


def _prompt(schema: Schema | None, tools: List[Tool[Any]]) -> Prompt[Any]:
    from .prompt import Prompt

    try:
        return Prompt("ask", "", schema=schema, tools=tools)
    except (TypeError, ValueError) as exc:  # two tools of one name
        raise _UsageError(str(exc)) from exc


def _print_output(output: Any, usage: Usage, as_json: bool) -> None:
    if as_json:
        _write_line({"output": output, "usage": usage.to_dict()})
    elif isinstance(output, str):
        _write(f"{output}\n")
    else:
        _print_json(output)


def _tell(event: PromptEvent, as_json: bool) -> None:
    """Print what has just happened: text as text, the rest beside it."""
    if as_json:
        _write_line(event.to_dict())
    elif event.type == "text_partial":
        _write(event.content)
    elif event.type == "text_reset":
        _write("\n")
        print(f"aeye: asked again: {event.reason}", file=sys.stderr)
    elif event.type == "tool_start":
        print(f"aeye: {event.tool.name} {event.args}", file=sys.stderr)
    elif event.type == "complete":
        _write("\n")


def _part(path: str) -> Part:
    """Return the file as a part of a message; what is text is sent as text."""
    import mimetypes
    from pathlib import Path

    from .message import Part

    kind = mimetypes.guess_type(path)[0] or ""
    file = Path(path)
    if not file.is_file():
        raise _UsageError(f"--file: there is no file {path}")
    family = kind.partition("/")[0]
    if family == "image":
        return Part.image(file, kind)
    if family == "audio":
        return Part.audio(file, kind)
    try:
        text = file.read_text("utf-8")
    except ValueError:
        return Part.file(file, kind or None)
    return Part.text(f"{file.name}:\n\n{text}")


def _schema_of(name: str) -> Schema:
    """Return the schema that *name* names: a JSON file's, or a Python object's."""
    from .schema import Schema

    try:
        return Schema(_source(name))
    except (TypeError, ValueError) as exc:  # a SchemaError is a ValueError
        raise _UsageError(f"{name}: {exc}") from exc


def _source(name: str) -> Any:
    from .tools import Tool

    if not os.path.isfile(name):
        found = _imported(name)
        if isinstance(found, Tool) or _is_function(found):
            raise _UsageError(
                f"{name} is a function: name a type, or offer it with --tool {name}"
            )
        return found
    try:
        with open(name, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, RecursionError, ValueError) as exc:
        raise _UsageError(f"{name} is not JSON: {exc}") from exc


def _tool(name: str) -> Tool[Any]:
    from .tools import Tool, tool

    if not _TOOL.fullmatch(name):
        raise _UsageError(f"--tool: {name!r:.80} is no module:function")
    found = _imported(name)
    try:
        return found if isinstance(found, Tool) else tool(found)
    except (TypeError, ValueError) as exc:
        raise _UsageError(f"{name}: {exc}") from exc


def _is_function(found: Any) -> bool:
    import inspect

    return inspect.isroutine(found)


def _imported(name: str) -> Any:
    """Return the object that ``module:name`` names; modules may lie right here."""
    import importlib
    from operator import attrgetter

    from .callback import attempt

    module, colon, path = name.partition(":")
    if not colon or not path:
        raise _UsageError(f"{name}: there is no such file, and it is no module:name")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found, error = attempt(importlib.import_module, module)
    except SystemExit as exc:  # a script without `if __name__ == "__main__"`
        raise _UsageError(f"{name}: importing it ended in {exc!r}") from exc
    if error is None:
        found, error = attempt(attrgetter(path), found)
    if error is not None:
        raise _UsageError(f"{name}: {error}") from error
    return found


def _request(request: Request) -> Dict[str, Any]:
    """Return a prepared request as JSON, with the schemas as they are sent."""
    from .descriptor import get_descriptor_by_id
    from .emit import to_json_schema
    from .request import ResponseFormat

    def wire(schema: Schema, descriptor: str | None) -> Any:
        dialect = get_descriptor_by_id(descriptor)
        return to_json_schema(schema, dialect, describe_dropped=True)

    found: Dict[str, Any] = {
        "messages": [message.to_dict() for message in request.messages],
        "tools": [
            {
                "name": offered.name,
                "description": offered.description,
                "descriptor": offered.descriptor,
                "parameters": wire(offered.parameters, offered.descriptor),
            }
            for offered in request.tools
        ],
    }
    shape = request.response_format
    if isinstance(shape, ResponseFormat):
        found["response_format"] = {
            "delivery": shape.schema_delivery,
            "descriptor": shape.descriptor,
            "schema": wire(shape.schema, shape.descriptor),
        }
    return found


def _schema(options: argparse.Namespace) -> int:
    from .budget import explain
    from .decode import wrap_root
    from .descriptor import get_descriptor
    from .emit import to_json_schema

    arguments = _arguments(options.source)
    schema = arguments or wrap_root(_schema_of(options.source))
    dialect = get_descriptor(options.family, not options.non_strict)
    reasons = list(explain(schema, dialect))
    if arguments is not None:  # what keeps an answer from going strict is none here
        reasons = [reason for reason in reasons if reason.kind != "output"]
    keeps = [reason for reason in reasons if reason.kind in ("strict", "output")]
    for reason in reasons:
        print(f"aeye: {dialect.id}: {reason}", file=sys.stderr)
    if keeps and dialect.strict:
        if options.strict:
            return 1
        dialect = get_descriptor(options.family, False)
        print(f"aeye: so this is {dialect.id}", file=sys.stderr)
    _print_json(to_json_schema(schema, dialect, describe_dropped=True))
    return 0


def _arguments(name: str) -> Schema | None:
    """Return the schema of a function's arguments; None if *name* names none."""
    from .tools import Tool

    if os.path.isfile(name):
        return None
    found = _imported(name)
    if not isinstance(found, Tool) and not _is_function(found):
        return None
    schema = _tool(name).schema
    if schema is None:
        raise _UsageError(f"{name}: its schema depends on the context of a run")
    return schema


def _trace(options: argparse.Namespace) -> int:
    from pathlib import Path

    from .trace_reader import read_trace
    from .trace_report import render

    file = Path(options.file)
    try:
        with open(file, "rb") as lines:
            trace = read_trace(lines)
    except (OSError, ValueError) as exc:
        raise _UsageError(f"{options.file}: {_reason(exc)}") from exc
    output = options.output or str(file.with_suffix(".html"))
    if output != "-" and Path(output).resolve() == file.resolve():
        raise _UsageError(f"{options.file} is the trace: name another file with -o")
    if trace.damage:
        print(f"aeye: {trace.damage}", file=sys.stderr)
    page = render(trace, file.name).encode()
    if output == "-":
        _stdout().buffer.write(page)
        return 0
    try:
        Path(output).write_bytes(page)
    except OSError as exc:
        raise _UsageError(f"-o {output}: {_reason(exc)}") from exc
    print(f"aeye: wrote {output}", file=sys.stderr)
    return 0


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _models(options: argparse.Namespace) -> int:
    from .connection import find_model
    from .vendor import VENDORS, get_vendor

    if options.name and options.name.partition(":")[0] == "rehearsal":
        _print_rehearsal()
        return 0
    one = get_vendor(options.name) if options.name else None
    if options.name is not None and one is None:
        try:
            _print_model(*find_model(options.name))
        except ValueError as exc:
            raise _UsageError(str(exc)) from exc
        return 0
    for vendor in VENDORS if one is None else (one,):
        _print_vendor(vendor, vendor.example)
        base = _abilities(vendor.facts)
        print(f"    models: {', '.join(base)}")
        for rule in vendor.models:
            facts = dataclasses.replace(vendor.facts, **rule.facts)
            more = [word for word in _abilities(facts) if word not in base]
            if rule.facts.get("output_with_tools"):
                more.append("both beside each other")
            if rule.pattern and more:
                print(f"    those that match {rule.pattern}: {', '.join(more)}")
    if one is None:
        _print_rehearsal()
    return 0


def _print_rehearsal() -> None:
    print("rehearsal, rehearsal:openai and so on")
    print("    on this machine, without a key: answers made up from your schemas")


def _print_vendor(vendor: Vendor, model: str) -> None:
    keys = (f"{k} (set)" if os.environ.get(k) else k for k in vendor.key_names)
    key = " or ".join(keys) or "not needed"
    if vendor.keyless and vendor.key_names:
        key += ", if it wants one"
    print(f"{vendor.name}:{model}")
    print(f"    at {vendor.base_url}, format {' or '.join(vendor.formats)}")
    print(f"    key: {key}")


def _print_model(vendor: Vendor, model: str) -> None:
    """Print what one model can do, in the format that its vendor prefers."""
    from .vendor import find_facts

    facts = find_facts(vendor, model, vendor.formats[0])
    _print_vendor(vendor, model)
    print(f"    it has: {', '.join(_abilities(facts))}")
    for what, names in (
        ("efforts", facts.efforts),
        ("takes no", sorted(facts.refuses)),
        ("takes no, while it thinks", sorted(facts.refuses_thinking)),
    ):
        if names:
            print(f"    {what}: {', '.join(names)}")


def _abilities(facts: ModelFacts) -> List[str]:
    """Say what a model can do, as far as a caller would notice."""
    tools = "tools" if facts.tools else "no tools"
    output = "typed answers" if facts.structured_output else "typed answers by prompt"
    said = [
        f"strict {tools}" if facts.tools and facts.strict_tools else tools,
        f"strict {output}" if facts.strict_output else output,
    ]
    if not facts.output_with_tools:
        said.append("not beside tools")
    if facts.thinks:
        said.append("thinks by itself")
    if facts.context_window is not None:
        said.append(f"{facts.context_window:,} tokens")
    return said


def _print_json(value: Any) -> None:
    _write(_json(value, indent=2) + "\n")


def _write_line(value: Any) -> None:
    _write(_json(value) + "\n")


def _json(value: Any, indent: int | None = None) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        text.encode(_stdout().encoding or "utf-8")
    except UnicodeEncodeError:  # as JSON itself escapes it
        return json.dumps(value, indent=indent)
    return text


if __name__ == "__main__":
    sys.exit(main())
