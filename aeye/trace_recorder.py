"""Writing down what happens in runs: one JSON object a line, as it happens.

``TraceRecorder`` is an observer for the fluent door, and its ``watch`` does the same
for the events of ``prompt.run``. docs/traces.md says what the lines mean; the command
``aeye trace`` makes a page of them.
"""

from __future__ import annotations

import os
from typing import Callable, Generator, Optional, TextIO, TypeVar, Union

from .callback import attempt
from .event_stream import EventStream
from .observer import AgentObserver, ObservedRun
from .trace_file import TraceFile
from .trace_run import TracedRun, WatchedRun, within
from .trace_value import Spelling

__all__ = ["TraceRecorder"]

E = TypeVar("E")
T = TypeVar("T")


class TraceRecorder(AgentObserver):
    """Writes what happens in runs to a file, a line of JSON for each thing.

    *file* is a path, which is appended to, or a text file, which stays open. Each line
    is flushed, so that what was written survives a crash. Any number of runs and
    threads may share a recorder.

    Texts are cut after *max_text* characters; *redact* is given each text first and
    returns the one to write. Keys of vendors that the environment holds are covered.

    Raises:
        TypeError, ValueError: an argument cannot be what it must be.
        OSError: the file cannot be opened.
    """

    def __init__(
        self,
        file: Union[str, os.PathLike[str], TextIO],
        *,
        max_text: int = 100_000,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        given: object = max_text
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise ValueError(f"max_text is a number of characters, not {given!r}")
        if redact is not None and not callable(redact):
            raise TypeError(f"redact is a function of a text, not {redact!r:.80}")
        self._file = TraceFile(file, Spelling(max_text, redact))

    def __enter__(self) -> TraceRecorder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<TraceRecorder to {self._file!r}>"

    def close(self) -> None:
        """Write nothing more; close the file if it was given as a path."""
        self._file.close()

    def start_run(self, args: ObservedRun) -> TracedRun:
        """A run of the fluent door begins."""
        return TracedRun.of(self._file, args)

    def watch(self, stream: EventStream[E, T]) -> Generator[E, None, Optional[T]]:
        """Yield the events of *stream*, from ``prompt.run``, and write them down.

        The generator returns the run's output. Leaving it early closes the stream. What
        cannot be written is left out: the run is not hurt.

        Raises:
            TypeError: *stream* is no stream of events.
        """
        if not isinstance(stream, EventStream):
            raise TypeError(f"watch takes what prompt.run(…) gives, not {stream!r:.80}")
        return self._watched(stream)

    def _watched(self, stream: EventStream[E, T]) -> Generator[E, None, Optional[T]]:
        run = WatchedRun(self._file)
        ended: Optional[BaseException] = None
        try:
            while True:
                with within(run.id):
                    event, error = attempt(next, stream)
                if isinstance(error, StopIteration):
                    return error.value  # type: ignore[no-any-return]  # the stream's output
                if error is not None:
                    raise error
                attempt(run.hear, event, stream.usage)
                yield event
        except BaseException as exc:
            ended = exc
            raise
        finally:
            stream.close()
            attempt(run.end, ended, stream.usage)
