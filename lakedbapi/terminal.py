"""A line in a terminal that tells how far long work is."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from lakedbapi.model.progress import Progress

_WIDTH = 30
_SECONDS = 0.1
"""Between two changes of the line: a terminal is slow."""
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Shows each `Progress` that it is called with where `stream` (default: stderr) is a terminal, else nothing.

    The line is cleared when a task is done.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shown = 0.0

    def __call__(self, progress: Progress) -> None:
        if not self._stream.isatty():
            return
        if progress.total is not None and progress.done >= progress.total:
            self._write(_CLEAR)
            self._shown = 0.0
        elif time.monotonic() - self._shown >= _SECONDS:
            self._write(_CLEAR + _line(progress))
            self._shown = time.monotonic()

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _line(progress: Progress) -> str:
    if not progress.total:
        return f"{progress.task}: {progress.done:,} {progress.unit}"
    filled = _WIDTH * progress.done // progress.total
    bar = "█" * filled + "░" * (_WIDTH - filled)
    return f"{progress.task} {bar} {progress.done:,} of {progress.total:,} {progress.unit}"
