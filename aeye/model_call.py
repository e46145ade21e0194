"""Calling the model that a context has, in the way that is wanted or that there is.

A plain function of the caller's is met here: what it gives is checked, and a whole
response is handed on as chunks, so that the loop knows one way only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Iterable, Iterator, Mapping, cast

from .callback import Bound
from .context import Context
from .errors import NoModelError
from .message import ToolCall
from .request import Request
from .response import Chunk, Response, split
from .usage import Usage

__all__ = ["by_name", "checked", "in_dialect", "open_model", "with_model"]


def by_name(ctx: Context) -> Mapping[str, Any]:
    """Return what a model function may ask for by name."""
    return {"ctx": ctx, "metadata": ctx.metadata, "signal": ctx.signal}


def with_model(ctx: Context, name: str) -> Context:
    """Return *ctx*, with the model that the environment names where it has none."""
    if ctx.execute is not None or ctx.stream is not None:
        return ctx
    # Here, so that a run with a model of its own loads no codec and no transport.
    from .connection import default_context

    default = default_context()
    if default is None:
        raise NoModelError(
            f"No executor or streamer available in context for prompt {name}: give "
            "it aeye.connect('vendor:model'), or name one in the environment as "
            "AEYE_MODEL; 'rehearsal' needs no key",
            prompt_name=name,
        )
    limits = {
        key: getattr(default, key)
        for key in ("max_output_tokens", "context_window")
        if getattr(ctx, key) is None
    }
    return ctx.replace(
        execute=default.execute,
        stream=default.stream,
        prepare=default.prepare,
        **limits,
    )


def open_model(
    request: Request, ctx: Context, streaming: bool, pay: Callable[[Usage], None]
) -> Iterable[Chunk]:
    """Ask the model in the way that is wanted, or in the way that there is.

    *pay* is told at once what a whole response cost: its last chunk, which says it
    too, is not read where the run is aborted before.
    """
    stream, execute = ctx.bound("stream"), ctx.bound("execute")
    if stream is not None and (streaming or execute is None):
        return _streamed(stream, request, ctx, pay)
    return _executed(cast(Bound, execute), request, ctx, pay)


def _executed(
    execute: Bound, request: Request, ctx: Context, pay: Callable[[Usage], None]
) -> Iterator[Chunk]:
    response = execute(request, by_name(ctx))
    if not isinstance(response, Response):
        raise TypeError(
            f"execute gives a Response, not {response!r:.80}: wrap text as "
            "Response('…')"
        )
    pay(response.usage)
    yield from split(response)


def _streamed(
    stream: Bound, request: Request, ctx: Context, pay: Callable[[Usage], None]
) -> Iterator[Chunk]:
    """Hand on the chunks; a Response that the generator returns stands for none."""
    spoke = False
    given = stream(request, by_name(ctx))
    if not isinstance(given, Iterable):
        raise TypeError(f"stream gives an iterator of Chunk, not {given!r:.80}")
    source = iter(given)
    try:
        while True:
            try:
                chunk = next(source)
            except StopIteration as stop:
                if not spoke and isinstance(stop.value, Response):
                    pay(stop.value.usage)
                    yield from split(stop.value)
                return
            spoke = True
            yield chunk
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            close()


def checked(chunk: Any) -> Chunk:
    """Return *chunk* if it is one."""
    if not isinstance(chunk, Chunk):
        raise TypeError(f"stream yields Chunk values, not {chunk!r:.80}")
    return chunk


def in_dialect(call: ToolCall, request: Request) -> ToolCall:
    """Note on *call* the dialect that its tool was offered in."""
    if call.descriptor is None:
        for offer in request.tools:
            if offer.name == call.name and offer.descriptor is not None:
                return replace(call, descriptor=offer.descriptor)
    return call
