"""Rows held in memory, in few parts however many statements made them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakedbapi.model.changes import StagedRows


def appended(staged: tuple[StagedRows, ...], new: StagedRows) -> tuple[StagedRows, ...]:
    """`staged` with `new` behind the rows of its kind (with or without row ids).

    Parts of one kind at least double in size from the last to the first, so a transaction of n single-row statements
    has log n parts and copies each row log n times.
    """
    parts = list(staged)
    place = len(parts)
    for index in range(len(parts) - 1, -1, -1):
        if (parts[index].row_ids is None) != (new.row_ids is None):
            continue
        if parts[index].rows.num_rows >= 2 * new.rows.num_rows:
            break
        new, place = combined((parts.pop(index), new)), index
    parts.insert(place, new)
    return tuple(parts)


def combined(parts: Sequence[StagedRows]) -> StagedRows:
    """Parts of one kind as one, with the rows in order."""
    if len(parts) == 1:
        return parts[0]
    rows = pa.concat_tables([part.rows for part in parts]).combine_chunks()
    if parts[0].row_ids is None:
        return StagedRows(rows)
    row_ids = pa.concat_arrays([chunk for part in parts for chunk in _chunks(part.row_ids)])
    if all(part.row_versions is None for part in parts):
        return StagedRows(rows, row_ids)
    versions = [chunk for part in parts for chunk in _chunks(_versions(part))]
    return StagedRows(rows, row_ids, pa.concat_arrays(versions))


def _versions(part: StagedRows) -> pa.Array | pa.ChunkedArray:
    return pa.nulls(part.rows.num_rows, pa.int64()) if part.row_versions is None else part.row_versions


def _chunks(array: pa.Array | pa.ChunkedArray | None) -> list[pa.Array]:
    if array is None:
        return []
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]
