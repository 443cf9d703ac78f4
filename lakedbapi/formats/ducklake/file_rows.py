"""The catalog rows of a table's data files and delete files, brought up to date instead of read anew."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import String, Table, bindparam, case, cast, false, func, null, select, true
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select
from sqlalchemy.sql.expression import BindParameter, ColumnElement

from lakedbapi.formats.ducklake.columnar import fetch_table
from lakedbapi.formats.ducklake.metadata import Tables
from lakedbapi.formats.ducklake.objects import visible
from lakedbapi.formats.ducklake.partial import INFO, with_partial_max
from lakedbapi.model.scan import DATA_FILES

_RENAMED = {"file_id": "data_file_id", "snapshot_id": "begin_snapshot"}
"""Columns of the file list that the catalog calls otherwise."""
_OF_DELETES = {
    "delete_path": "path",
    "delete_format": "format",
    "delete_file_size_bytes": "file_size_bytes",
    "delete_footer_size": "footer_size",
    "delete_snapshot_id": "begin_snapshot",
    "delete_partial_max": "partial_max",
    "delete_encryption_key": "encryption_key",
}

DATA = pa.schema(
    [
        *(field for field in DATA_FILES if field.name != "deleted_count"),
        pa.field("footer_size", pa.int64()),
        pa.field("encryption_key", pa.string()),
        pa.field("mapping_id", pa.int64()),
        pa.field("partial_max", pa.int64()),
        pa.field(INFO, pa.string()),
    ]
)
"""Of a live data file; `path` is the full path."""

OUTLINE = pa.schema([DATA.field(name) for name in ("file_id", "snapshot_id", "partition_id")])
"""What tells which rows of statistics and partition values hold for a data file."""

DELETES = pa.schema(
    [
        pa.field("data_file_id", pa.int64()),
        pa.field("delete_file_id", pa.int64()),
        pa.field("delete_path", pa.string()),
        pa.field("delete_format", pa.string()),
        pa.field("delete_count", pa.int64()),
        pa.field("delete_file_size_bytes", pa.int64()),
        pa.field("delete_footer_size", pa.int64()),
        pa.field("delete_snapshot_id", pa.int64()),
        pa.field("delete_partial_max", pa.int64()),
        pa.field("delete_encryption_key", pa.string()),
    ]
)
"""Of a live delete file."""

_KEYS = pa.schema([pa.field("id", pa.int64())])


@dataclass(frozen=True)
class FileRows:
    """`data` (columns `DATA`, by file id) and `deletes` (columns `DELETES`, by data file id) at one snapshot."""

    snapshot: int
    data: pa.Table
    deletes: pa.Table


class _Extent(NamedTuple):
    """The number of live rows, the greatest id of one, and how many began after the snapshot of those that are known.

    Of the latter not all need to have greater ids than the known ones: compaction adds rows to old snapshots.
    """

    rows: int
    last: int | None
    began: int


def read_file_rows(
    connection: Connection, tables: Tables, table_id: int, directory: str, snapshot: int, known: FileRows | None
) -> FileRows:
    """The rows at `snapshot`; `known` are those at an earlier one, if there are any. `directory` is the table's."""
    place = {"table_id": table_id, "directory": directory, "snapshot": snapshot}
    if known is not None and known.snapshot < snapshot:
        extents = connection.execute(_extents(tables), {**place, "since": known.snapshot}).one()
        now = _Extent(*extents[:3])
        data = _update(connection, _data(tables), tables.data_file, DATA, place, known.snapshot, known.data, now)
        now = _Extent(*extents[3:])
        deletes = _update(
            connection, _deletes(tables), tables.delete_file, DELETES, place, known.snapshot, known.deletes, now
        )
        if data is not None and deletes is not None:
            return FileRows(snapshot, data, deletes)
    everything = {**place, "above": -1}
    return FileRows(
        snapshot,
        with_partial_max(fetch_table(connection, _data(tables), DATA, everything, by="file_id")),
        fetch_table(connection, _deletes(tables), DELETES, everything, by="data_file_id"),
    )


def read_chosen_rows(
    connection: Connection, tables: Tables, table_id: int, directory: str, snapshot: int, ids: Sequence[int]
) -> FileRows:
    """As `read_file_rows`, of the data files with these `ids`."""
    place = {"table_id": table_id, "directory": directory, "snapshot": snapshot, "above": -1, "ids": ids}
    chosen: BindParameter[Any] = bindparam("ids", expanding=True)
    data = _data(tables).where(tables.data_file.c.data_file_id.in_(chosen))
    deletes = _deletes(tables).where(tables.delete_file.c.data_file_id.in_(chosen))
    return FileRows(
        snapshot,
        with_partial_max(fetch_table(connection, data, DATA, place, by="file_id")),
        fetch_table(connection, deletes, DELETES, place, by="data_file_id"),
    )


def has_many_files(connection: Connection, tables: Tables, table_id: int, snapshot: int, many: int) -> bool:
    """Whether the table has at least `many` live data files."""
    file = tables.data_file
    first = select(file.c.data_file_id).where(*_live(file)).limit(many).subquery()
    count = connection.execute(
        select(func.count()).select_from(first), {"table_id": table_id, "snapshot": snapshot}
    ).scalar()
    return count == many


def read_outline(connection: Connection, tables: Tables, table_id: int, snapshot: int) -> pa.Table:
    """The live data files (columns `OUTLINE`, by file id)."""
    file = tables.data_file
    columns = [file.c[_RENAMED.get(name, name)] for name in OUTLINE.names]
    place = {"table_id": table_id, "snapshot": snapshot}
    return fetch_table(connection, select(*columns).where(*_live(file)), OUTLINE, place, by="file_id")


def _update(
    connection: Connection,
    query: Select[Any],
    source: Table,
    schema: pa.Schema,
    place: dict[str, Any],
    since: int,
    known: pa.Table,
    now: _Extent,
) -> pa.Table | None:
    """`known` without the rows that ended or were replaced since then, and with new ones, whose ids are higher.

    None if that is not all that happened: compaction and expiry remove rows, or have added known ones after new ones.
    """
    key = "delete_file_id" if schema is DELETES else "file_id"
    last = pc.max(known.column(key)).as_py()
    if _Extent(known.num_rows, last, 0) == now:
        return known
    above = -1 if last is None else last
    added = fetch_table(connection, query, schema, {**place, "above": above}, by=schema.names[0])
    began = added.column("delete_snapshot_id" if schema is DELETES else "snapshot_id").to_numpy()
    if np.count_nonzero(began > since) != now.began:
        return None
    if schema is DATA:
        added = with_partial_max(added)
    ended = fetch_table(connection, _ended(source), _KEYS, {**place, "since": since})
    gone = pc.is_in(known.column(key), value_set=ended.column("id"))
    if schema is DELETES:
        gone = pc.or_(gone, pc.is_in(known.column("data_file_id"), value_set=added.column("data_file_id")))
    if pc.any(gone).as_py():
        known = known.filter(pc.invert(gone))
    if added.num_rows:
        known = pa.concat_tables([known, added])
        if schema is DELETES:
            known = known.sort_by("data_file_id")
    return known.combine_chunks() if known.num_rows == now.rows else None


def _full_path(table: Table) -> ColumnElement[str]:
    relative = bindparam("directory", type_=table.c.path.type) + table.c.path
    return case((table.c.path_is_relative == false(), table.c.path), else_=relative)


def _live(table: Table) -> tuple[ColumnElement[bool], ...]:
    return table.c.table_id == bindparam("table_id"), visible(table, _snapshot())


def _snapshot() -> Any:
    return bindparam("snapshot")


def data_columns(file: Table) -> Sequence[ColumnElement[Any]]:
    """The columns of `DATA` in `ducklake_data_file`; `path` is as the catalog has it."""
    names = [_RENAMED.get(name, name) for name in DATA.names]
    return [file.c[name] if name in file.c else cast(null(), String) for name in names]


@functools.lru_cache(maxsize=64)
def _data(tables: Tables) -> Select[Any]:
    file = tables.data_file
    columns = [_full_path(file) if column is file.c.path else column for column in data_columns(file)]
    return select(*columns).where(*_live(file), file.c.data_file_id > bindparam("above"))


@functools.lru_cache(maxsize=64)
def _deletes(tables: Tables) -> Select[Any]:
    file = tables.delete_file
    columns = [file.c[_OF_DELETES.get(name, name)] for name in DELETES.names]
    columns = [_full_path(file) if column is file.c.path else column for column in columns]
    return select(*columns).where(*_live(file), file.c.delete_file_id > bindparam("above"))


@functools.lru_cache(maxsize=128)
def _ended(table: Table) -> Select[Any]:
    """Ids of the files that ended after the snapshot `:since` and not after `:snapshot`."""
    (id,) = table.primary_key
    return select(id).where(
        table.c.table_id == bindparam("table_id"),
        table.c.end_snapshot > bindparam("since"),
        table.c.end_snapshot <= bindparam("snapshot"),
    )


@functools.lru_cache(maxsize=64)
def _extents(tables: Tables) -> Select[Any]:
    """The `_Extent` of live data files and that of live delete files, in one row; known are those at `:since`."""
    data, deletes = (
        select(
            func.count().label("rows"),
            func.max(id).label("last"),
            func.count(case((table.c.begin_snapshot > bindparam("since"), 1))).label("began"),
        )
        .where(*_live(table))
        .subquery()
        for table in (tables.data_file, tables.delete_file)
        for id in table.primary_key
    )
    return select(*data.c, *deletes.c).select_from(data.join(deletes, true()))
