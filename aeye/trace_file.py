"""The file of a trace: whole lines of JSON, each written when it happens."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any, Optional, TextIO, Union

from .secret import Mask
from .trace_value import Spelling
from .vendor import VENDORS

__all__ = ["FORMAT", "TraceFile"]

# The first line of a trace says it; a reader refuses a higher one.
FORMAT = 1


class TraceFile:
    """Where the lines of a trace go; any number of threads may share it.

    A path is opened here and closed here; a text file stays the caller's.
    """

    def __init__(
        self, file: Union[str, os.PathLike[str], TextIO], spelling: Spelling
    ) -> None:
        self.spelling = spelling
        self._owned = isinstance(file, (str, os.PathLike))
        self._file: Optional[TextIO] = None
        if isinstance(file, (str, os.PathLike)):
            self._file = _appending(file)
        elif callable(getattr(file, "write", None)):
            self._file = file
        else:
            raise TypeError(f"file is a path or a text file, not {file!r:.80}")
        self._encode = json.JSONEncoder(
            ensure_ascii=not self._owned,  # who knows how their file is encoded
            separators=(",", ":"),
            allow_nan=False,
        ).encode
        self._mask = _mask()
        self._lock = threading.Lock()
        # Times are those of the wall clock now, and go on evenly whatever is done to
        # that clock.
        self._offset = time.time() - time.monotonic()
        self.write("trace", format=FORMAT)

    def __repr__(self) -> str:
        if self._file is None:
            return "<TraceFile, closed>"
        return f"<TraceFile {getattr(self._file, 'name', 'of the caller')}>"

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return round(self._offset + time.monotonic(), 6)

    def write(self, event: str, moment: float | None = None, **fields: Any) -> None:
        """Write one line; nothing once it is closed."""
        moment = self.now() if moment is None else moment
        text = self._encode({"event": event, "time": moment, **fields})
        line = self._mask.hide(text) + "\n"
        with self._lock:
            if self._file is not None:
                self._file.write(line)
                self._file.flush()

    def close(self) -> None:
        """Write nothing more. Twice is once."""
        with self._lock:
            file, self._file = self._file, None
            if file is not None and self._owned:
                file.close()


def _appending(path: Union[str, os.PathLike[str]]) -> TextIO:
    """Open *path* at its end, on a new line: what is there may have been cut."""
    file = open(path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115  # it stays open
    if file.tell() > 0:
        with open(path, "rb") as there:
            there.seek(-1, os.SEEK_END)
            if there.read(1) != b"\n":
                file.write("\n")
    return file


def _mask() -> Mask:
    """Return what covers the vendors' keys that the environment holds."""
    names = [name for vendor in VENDORS for name in vendor.key_names]
    found = {name: os.environ.get(name, "").strip() for name in names}
    return Mask(None, found, "")
