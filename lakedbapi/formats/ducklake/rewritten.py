"""Rows that a copy-on-write commit only copied, told by their row ids and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.formats.ducklake.values import default_array
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.scan import ROW_ID_FIELD, RowGroup
from lakedbapi.model.types import Field, Schema
from lakedbapi.storage.filesystem import Storage
from lakedbapi.storage.parquet import read_fields

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FileRows:
    """Some rows of one data file. `row_id_start` is the id of the file's first row, where no ids are embedded."""

    path: str
    row_id_start: int | None
    positions: Positions
    encryption_key: str | None = None


def unchanged_rows(
    storage: Storage, schema: Schema, old: Sequence[FileRows], new: Sequence[FileRows | RowGroup]
) -> tuple[list[Positions], list[Positions]]:
    """The positions of rows that are in `old` and in `new` with one row id and equal values, for each file or group.

    Only the columns of `schema`, which groups have in order, count. Only files with embedded row ids can have copied
    rows.
    """
    copies = [
        _in_memory(rows, schema) if isinstance(rows, RowGroup) else _read(storage, rows, schema, embedded_only=True)
        for rows in new
    ]
    if not any(len(contents.ids) for contents in copies):
        return [rows.positions[:0] for rows in old], [contents.positions[:0] for contents in copies]
    originals = [_read(storage, rows, schema) for rows in old]
    old_ids, new_ids = (np.concatenate([contents.ids for contents in side]) for side in (originals, copies))
    _, first, second = np.intersect1d(old_ids, new_ids, return_indices=True)
    equal = np.ones(len(first), np.bool_)
    for field in schema.fields:
        equal &= _equal(_column(originals, field.id, first), _column(copies, field.id, second))
    return _split(originals, first[equal]), _split(copies, second[equal])


@dataclass(frozen=True)
class _Contents:
    """Rows of a file that have an id: their positions, ids and values by field id."""

    positions: Positions
    ids: Positions
    columns: Mapping[int, pa.ChunkedArray]


def _read(storage: Storage, rows: FileRows, schema: Schema, *, embedded_only: bool = False) -> _Contents:
    ids = read_fields(storage, rows.path, [ROW_ID_FIELD], rows.encryption_key).get(ROW_ID_FIELD)
    if ids is None and (embedded_only or rows.row_id_start is None):
        return _Contents(rows.positions[:0], rows.positions[:0], {})
    chosen = pa.array(rows.positions)
    found = read_fields(storage, rows.path, [field.id for field in schema.fields], rows.encryption_key)
    columns = {
        field.id: _typed(found[field.id].take(chosen), field)
        if field.id in found
        else pa.chunked_array([default_array(field, len(chosen))])
        for field in schema.fields
    }
    return _Contents(rows.positions, _row_ids(rows, ids), columns)


def _row_ids(rows: FileRows, embedded: pa.ChunkedArray | None) -> Positions:
    """NULL is embedded for a row that has the id of its place; without any id it is like no other row."""
    first = rows.row_id_start
    of_place = rows.positions + first if first is not None else -1 - rows.positions
    if embedded is None:
        return of_place
    ids: Positions = pc.coalesce(embedded.take(pa.array(rows.positions)), pa.array(of_place)).to_numpy()
    return ids


def _in_memory(group: RowGroup, schema: Schema) -> _Contents:
    assert group.row_ids is not None
    positions = np.arange(group.rows.num_rows)
    columns = {field.id: _typed(column, field) for field, column in zip(schema.fields, group.rows.columns, strict=True)}
    return _Contents(positions, np.asarray(group.row_ids), columns)


def _typed(column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    """In the type that the column has today, as older files may have narrower ones; else as it is."""
    try:
        return column.cast(arrow_type(field.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return column


def _column(files: Sequence[_Contents], field_id: int, rows: Positions) -> pa.ChunkedArray | None:
    """The values of rows that are numbered through all files; None if these have several types."""
    columns = [file.columns[field_id] for file in files if len(file.ids)]
    if len({column.type for column in columns}) != 1:
        return None
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks]).take(pa.array(rows))


def _equal(before: pa.ChunkedArray | None, after: pa.ChunkedArray | None) -> npt.NDArray[np.bool_]:
    """Row by row; NULL equals NULL and NaN equals NaN."""
    if before is None or after is None or before.type != after.type:
        return np.zeros(1, np.bool_)
    try:
        same = pc.fill_null(pc.equal(before, after), False)
    except pa.ArrowNotImplementedError:  # Nested types.
        pairs = zip(before.to_pylist(), after.to_pylist(), strict=True)
        return np.fromiter((old == new for old, new in pairs), np.bool_, count=len(before))
    same = pc.or_(same, pc.and_(before.is_null(), after.is_null()))
    if pa.types.is_floating(before.type):
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(before), pc.is_nan(after)), False))
    result: npt.NDArray[np.bool_] = same.to_numpy()
    return result


def _split(files: Sequence[_Contents], chosen: Positions) -> list[Positions]:
    """Rows that are numbered through all files, as positions in each file."""
    ends = np.cumsum([len(file.ids) for file in files])
    return [
        file.positions[chosen[(chosen >= end - len(file.ids)) & (chosen < end)] - (end - len(file.ids))]
        for file, end in zip(files, ends.tolist(), strict=True)
    ]
