"""Long lists that change by few rows at a time, in several pieces of memory, so that little is copied."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_PIECES = 64
"""Pieces that a list may consist of."""
_FEW = 1000
"""Up to so many rows it is one piece: to copy them costs less than each look at several."""
_CUTS = 8
"""Up to so many rows that go leave the rest where it is."""

Rows = TypeVar("Rows", pa.Table, pa.ChunkedArray)


def joined(old: Rows, new: Rows) -> Rows:
    """Both, in few enough pieces."""
    rows = _concatenated([old, new])
    count = (rows.column(0) if isinstance(rows, pa.Table) else rows).num_chunks
    if count <= (1 if len(rows) <= _FEW else _PIECES):
        return rows
    whole = rows.combine_chunks()
    return whole if isinstance(whole, pa.Table) else pa.chunked_array([whole])


def without(rows: Rows, gone: npt.NDArray[np.int64]) -> Rows:
    """The rows but for those at `gone` (ascending)."""
    if not len(gone):
        return rows
    if len(gone) > _CUTS or len(rows) <= _FEW:
        stay = np.ones(len(rows), np.bool_)
        stay[gone] = False
        return rows.filter(pa.array(stay))
    edges = [-1, *gone.tolist(), len(rows)]
    return _concatenated([rows.slice(before + 1, after - before - 1) for before, after in pairwise(edges)])


def taken(rows: pa.Table, numbers: npt.NDArray[np.int64]) -> pa.Table:
    """The rows at `numbers`. `Table.take` would copy all pieces of a text column first."""
    batches = rows.to_batches()
    if len(batches) < 2:
        return rows.take(pa.array(numbers))
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    places = np.searchsorted(starts, numbers, side="right") - 1
    order = np.argsort(places, kind="stable")
    found = [
        batches[place].take(pa.array(numbers[places == place] - starts[place])) for place in np.unique(places).tolist()
    ]
    return pa.Table.from_batches(found, rows.schema).take(pa.array(np.argsort(order, kind="stable")))


def _concatenated(parts: list[Rows]) -> Rows:
    full = [part for part in parts if len(part)] or parts[:1]
    if isinstance(full[0], pa.Table):
        return pa.concat_tables(full)
    return pa.chunked_array([chunk for part in full for chunk in part.chunks], full[0].type)
