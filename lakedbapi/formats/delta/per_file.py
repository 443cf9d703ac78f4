"""`PerFile`: what is computed of each file of a table alone, kept for the files that stay when the table changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.formats.delta.pieces import joined, without


class PerFile:
    """Tables with a row for each of the first files of a list. Safe to share by threads."""

    def __init__(self, known: Mapping[Hashable, pa.Table] | None = None) -> None:
        self._known = dict(known or {})
        self._lock = threading.RLock()

    def of(self, key: Hashable, files: pa.Table, compute: Callable[[int], pa.Table]) -> pa.Table:
        """What `key` stands for, of all `files`; `compute(n)` gives it of those from number n on."""
        with self._lock:
            known = self._known.get(key)
            if known is None:
                self._known[key] = compute(0)
            elif known.num_rows < files.num_rows:
                self._known[key] = joined(known, compute(known.num_rows))
            return self._known[key]

    def after(self, gone: npt.NDArray[np.int64]) -> PerFile:
        """The same of the files without those at `gone` (ascending), which others follow now."""
        with self._lock:
            known = dict(self._known)
        return PerFile({key: without(rows, gone[gone < rows.num_rows]) for key, rows in known.items()})
