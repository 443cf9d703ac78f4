"""The columns of file actions, wherever they are held in memory: one row an action."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

TEXT_MAP = pa.map_(pa.string(), pa.string())
DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)

FILES = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", TEXT_MAP),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("stats", pa.string()),
        ("tags", TEXT_MAP),
        ("deletion_vector", DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("clustering_provider", pa.string()),
        ("version", pa.int64()),
    ]
)
"""Live files of a table. `path` is the text of the log, byte for byte; `version` is the commit that added the file in
this form, NULL where only a checkpoint tells of it; the rest is named as in the log."""

ADDS = FILES.append(pa.field("data_change", pa.bool_()))

REMOVES = pa.schema(
    [
        ("path", pa.string()),
        ("deletion_timestamp", pa.int64()),
        ("data_change", pa.bool_()),
        ("extended_file_metadata", pa.bool_()),
        ("partition_values", TEXT_MAP),
        ("size", pa.int64()),
        ("deletion_vector", DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("version", pa.int64()),
    ]
)

CDC = pa.schema([("path", pa.string()), ("partition_values", TEXT_MAP), ("size", pa.int64()), ("version", pa.int64())])


def as_adds(actions: pa.Table) -> pa.Table:
    """File actions in the columns of `ADDS`, with NULL for what they do not have."""
    columns = [
        actions[field.name] if field.name in actions.schema.names else pa.nulls(actions.num_rows, field.type)
        for field in ADDS
    ]
    return pa.Table.from_arrays(columns, schema=ADDS)


def log_name(column: str) -> str:
    """The name in the log: `partition_values` is `partitionValues` there."""
    first, *rest = column.split("_")
    return first + "".join(word.capitalize() for word in rest)


def from_json(actions: list[dict[str, Any]], versions: list[int], schema: pa.Schema) -> pa.Table:
    """File actions as the JSON of the log has them, each with the version of its commit. KeyError or TypeError for one
    without what each must have."""
    if not actions:
        return schema.empty_table()
    for action in actions:
        _check(action)
    arrays = []
    for column in schema:
        if column.name == "version":
            arrays.append(pa.array(versions, pa.int64()))
            continue
        name = log_name(column.name)
        values: list[Any] = [action.get(name) for action in actions]
        if column.type == TEXT_MAP:
            values = [None if value is None else list(value.items()) for value in values]
        arrays.append(pa.array(values, column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _check(action: dict[str, Any]) -> None:
    if not isinstance(action["path"], str):
        raise TypeError(f"its path is {action['path']!r}")
    vector = action.get("deletionVector")
    if vector is not None:
        missing = {"storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"} - vector.keys()
        if missing:
            raise KeyError(f"deletionVector has no {min(missing)}")


def from_struct(structs: pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    """File actions as a checkpoint has them: a struct column, whose NULL rows are other actions."""
    present = pa.chunked_array([_valid(chunk) for chunk in structs.chunks], structs.type)
    names = {field.name for field in structs.type}
    arrays = []
    for column in schema:
        name = log_name(column.name)
        if name not in names:
            arrays.append(pa.nulls(len(present), column.type))
            continue
        chunks = [_conformed(chunk.field(name), column.type) for chunk in present.chunks]
        arrays.append(pa.chunked_array(chunks, column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _valid(array: pa.StructArray) -> pa.StructArray:
    """Without NULLs: not copied where they lie at the ends, as they do in checkpoints."""
    numbers = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    if not len(numbers):
        return array.slice(0, 0)
    first, count = int(numbers[0]), len(numbers)
    whole = int(numbers[-1]) - first + 1 == count
    return array.slice(first, count) if whole else array.take(pa.array(numbers))


def _conformed(array: pa.Array, type: pa.DataType) -> pa.Array:
    """`array` in the type used here: writers differ in field names, order and widths."""
    if array.type == type:
        return array
    if pa.types.is_map(type):
        offsets = _offsets(array)
        return pa.MapArray.from_arrays(offsets, array.keys.cast(pa.string()), array.items.cast(pa.string()))
    if pa.types.is_struct(type):
        children = {field.name: array.field(i) for i, field in enumerate(array.type)}
        parts = [
            _conformed(children[field.name], field.type) if field.name in children else pa.nulls(len(array), field.type)
            for field in type
        ]
        return pa.StructArray.from_arrays(parts, fields=list(type), mask=array.is_null())
    return array.cast(type)


def _offsets(array: pa.MapArray) -> pa.Array:
    """Offsets of a map array, NULL where a map is NULL."""
    null = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pa.array(array.offsets.to_numpy(), pa.int32(), mask=null.to_numpy(zero_copy_only=False))


def map_offsets(lengths: Any, null: Any) -> pa.Array:
    """Offsets for a map array whose maps have these lengths, NULL where `null` (arrays)."""
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    return pa.array(offsets, pa.int32(), mask=np.append(null, False))
