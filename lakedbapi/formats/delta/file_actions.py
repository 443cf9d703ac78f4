"""File actions as the JSON of the log (protocol, "Add File and Remove File", "Add CDC File")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakedbapi.formats.delta.columns import FILES, log_name
from lakedbapi.formats.delta.paths import encode
from lakedbapi.formats.delta.texts import partition_array
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import WrittenFile

Row = Mapping[str, Any]
"""A row of `TableState.files`."""
Action = dict[str, Any]

_KEPT = ("path", "partition_values", "size", "deletion_vector", "base_row_id", "default_row_commit_version")


def add_again(row: Row, keys: Sequence[str]) -> Action:
    """The action that adds a live file as it is, for what the commit gives it then."""
    return {**add_of(row, keys, vector=_plain(row["deletion_vector"]), stats=row["stats"]), "dataChange": False}


def add_of(row: Row, keys: Sequence[str], *, vector: Mapping[str, Any] | None, stats: str | None) -> Action:
    """The action that gives a live file another deletion vector; all else of it stays.

    `keys` are the partition columns, some of which writers may have left out.
    """
    action = {log_name(name): _plain(row[name]) for name in FILES.names if name not in ("version", "deletion_vector")}
    values = action["partitionValues"] or {}
    action |= {"dataChange": True, "stats": stats, "partitionValues": {key: values.get(key) for key in keys}}
    if vector is not None:
        action["deletionVector"] = vector
    return {name: value for name, value in action.items() if value is not None}


def remove_of(row: Row, now: int, *, data_change: bool = True) -> Action:
    """The action that takes away a live file, with the deletion vector that it has. `now` in milliseconds."""
    action = {log_name(name): _plain(row[name]) for name in _KEPT}
    action |= {"deletionTimestamp": now, "dataChange": data_change, "extendedFileMetadata": True}
    return {name: value for name, value in action.items() if value is not None}


def new_file(file: WrittenFile, root: str, table: TableInfo, physical: Mapping[int, str]) -> Action:
    """What an `add` and a `cdc` action have in common, for a file below `root`."""
    return {
        "path": encode(file.path[len(root) :]),
        "partitionValues": _partition_values(file, table, physical),
        "size": file.file_size_bytes,
    }


def _partition_values(file: WrittenFile, table: TableInfo, physical: Mapping[int, str]) -> dict[str, str | None]:
    """DataError for a value that the log has no text for: the log could not be read any more."""
    keys = () if table.partitioning is None else table.partitioning.fields
    fields = {field.id: field for field in table.schema.fields}
    found = {}
    for key, value in zip(keys, file.partition_values, strict=True):
        field = fields[key.field_id]
        partition_array(pa.array([value], pa.string()), field.type, f"column {field.name!r} of {table.name!r}")
        found[physical.get(field.id, field.name)] = value
    return found


def _plain(value: Any) -> Any:
    """Maps come from Arrow as lists of pairs."""
    if isinstance(value, list):
        return dict(value)
    if isinstance(value, dict):
        return {name: part for name, part in value.items() if part is not None}
    return value
