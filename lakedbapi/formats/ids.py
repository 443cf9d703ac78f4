"""Numbers for what formats know by name or UUID: the same ones for as long as the process lives."""

from __future__ import annotations

import itertools
import threading

_numbers = itertools.count(1)
_known: dict[tuple[str, str], int] = {}
_lock = threading.Lock()


def number_of(path: str, id: str = "") -> int:
    """The number of the directory `path`, or of the table with the metadata id `id` in it."""
    with _lock:
        found = _known.get((path, id))
        if found is None:
            found = _known[path, id] = next(_numbers)
        return found
