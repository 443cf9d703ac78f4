"""Many file actions of commits, read into columns at once."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from lakedbapi.formats.delta.columns import TEXT_MAP, log_name, map_offsets

_MIN_BLOCK = 1 << 20


def read_lines(kind: str, lines: Sequence[bytes], versions: Sequence[int], schema: pa.Schema) -> pa.Table | None:
    """The actions `{"<kind>": {…}}` of `lines` in the columns of `schema`; None when some line is unusual: it has a
    field that others do not have, a value of another type, or is damaged. Those have to be read one by one."""
    if not lines:
        return schema.empty_table()
    try:
        first = json.loads(lines[0])[kind]
        known = {log_name(column.name): _json_type(column, first) for column in schema if column.name != "version"}
        # Allowed, and of no use here.
        known = {"stats": pa.string(), "tags": _text_struct(first.get("tags") or {}), **known}
        parsed = pj.read_json(
            io.BytesIO(b"\n".join(lines)),
            read_options=pj.ReadOptions(block_size=max(_MIN_BLOCK, 2 * max(map(len, lines)))),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([pa.field(kind, pa.struct(list(known.items())))]),
                unexpected_field_behavior="error",
            ),
        )
    except (ValueError, KeyError, AttributeError, pa.ArrowException):
        return None
    if parsed.num_rows != len(lines):
        return None
    chunks = parsed[kind].chunks
    columns = [
        pa.array(versions, pa.int64())
        if column.name == "version"
        else pa.chunked_array([_column(chunk.field(log_name(column.name)), column) for chunk in chunks], column.type)
        for column in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _json_type(column: pa.Field, first: dict[str, Any]) -> pa.DataType:
    """Maps are read as structs, with the keys that the first action has."""
    return _text_struct(first.get(log_name(column.name)) or {}) if column.type == TEXT_MAP else column.type


def _text_struct(keys: dict[str, Any]) -> pa.DataType:
    return pa.struct([pa.field(key, pa.string()) for key in keys])


def _column(array: pa.Array, column: pa.Field) -> pa.Array:
    return _map(array, with_nulls=column.name == "partition_values") if column.type == TEXT_MAP else array


def _map(structs: pa.StructArray, *, with_nulls: bool) -> pa.MapArray:
    """Structs of texts as maps; a NULL field is a NULL value, or without `with_nulls` no entry."""
    count, width = len(structs), structs.type.num_fields
    valid = structs.is_valid().to_numpy(zero_copy_only=False)
    entries = np.repeat(valid, width)
    names = pa.array([field.name for field in structs.type], pa.string())
    if width:
        order = np.arange(count * width).reshape(width, count).T.ravel()
        values = pa.concat_arrays([structs.field(number) for number in range(width)]).take(pa.array(order))
        if not with_nulls:
            entries &= values.is_valid().to_numpy(zero_copy_only=False)
    else:
        values = pa.array([], pa.string())
    keys = names.take(pa.array(np.tile(np.arange(width), count)))
    lengths = entries.reshape(count, width).sum(axis=1) if width else np.zeros(count, np.int64)
    mask = pa.array(entries)
    return pa.MapArray.from_arrays(map_offsets(lengths, ~valid), keys.filter(mask), values.filter(mask))
