"""Rows that wait in memory follow their table when its columns change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.model.arrow import arrow_schema, arrow_type
from lakedbapi.model.changes import RowChanges
from lakedbapi.model.types import Field, List, Map, Schema, Struct

Fill = Callable[[Field], pa.Scalar]
"""The value that a new field has in rows that are there already."""


def evolved(rows: RowChanges, old: Schema, new: Schema, fill: Fill) -> RowChanges:
    """The row changes with the staged rows in the columns of `new`, matched by field id.

    Staged files need nothing: they are matched by field id when they are read.
    """
    if not rows.rows or old == new:
        return rows
    return replace(rows, rows=tuple(replace(staged, rows=_table(staged.rows, old, new, fill)) for staged in rows.rows))


def evolved_value(value: pa.Scalar, old: Field, new: Field, fill: Fill) -> pa.Scalar:
    """A value of `old` as a value of `new`, whose fields are matched by id."""
    return _array(pa.repeat(value, 1), old, new, fill)[0]


def _table(rows: pa.Table, old: Schema, new: Schema, fill: Fill) -> pa.Table:
    by_id = {field.id: (number, field) for number, field in enumerate(old.fields)}
    columns = []
    for field in new.fields:
        if field.id in by_id:
            number, before = by_id[field.id]
            columns.append(_array(rows.column(number).combine_chunks(), before, field, fill))
        else:
            columns.append(pa.repeat(fill(field), rows.num_rows))
    return pa.table(columns, schema=arrow_schema(new))


def _array(array: pa.Array | pa.ChunkedArray, old: Field, new: Field, fill: Fill) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    type = arrow_type(new.type)
    if array.type == type and old == new:
        return array
    if isinstance(new.type, Struct) and isinstance(old.type, Struct):
        parts = _children(array, old.type, new.type, fill)
        return pa.StructArray.from_arrays(parts, fields=list(type), mask=array.is_null())
    if isinstance(new.type, List) and isinstance(old.type, List):
        items = _array(array.flatten(), old.type.element, new.type.element, fill)
        return pa.ListArray.from_arrays(_offsets(array, pc.list_value_length(array)), items, type=type)
    if isinstance(new.type, Map) and isinstance(old.type, Map):
        array = array.take(pa.array(range(len(array)), pa.int64()))  # without the entries that a slice leaves out
        keys = _array(array.keys, old.type.key, new.type.key, fill)
        items = _array(array.items, old.type.value, new.type.value, fill)
        lengths = pc.subtract(array.offsets[1:], array.offsets[:-1])
        return pa.MapArray.from_arrays(_offsets(array, lengths), keys, items, type=type)
    return array.cast(type)


def _children(array: pa.Array, old: Struct, new: Struct, fill: Fill) -> list[pa.Array]:
    by_id = {field.id: (number, field) for number, field in enumerate(old.fields)}
    flat = array.flatten()
    return [
        _array(flat[by_id[field.id][0]], by_id[field.id][1], field, fill)
        if field.id in by_id
        else pa.repeat(fill(field), len(array))
        for field in new.fields
    ]


def _offsets(array: pa.Array, lengths: pa.Array) -> pa.Array:
    """Where each list, which has `lengths` items, starts among the items of all; NULL for a list that is NULL."""
    ends = pc.cumulative_sum(pc.fill_null(lengths, 0).cast(pa.int32()))
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    is_null = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(is_null, pa.scalar(None, pa.int32()), starts)
