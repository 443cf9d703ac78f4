"""All that a lake still has of a table, in the catalog and in storage, whoever can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import select, true
from sqlalchemy.engine import Connection

from lakedbapi.formats.ducklake.cleanup import is_own_name
from lakedbapi.formats.ducklake.inlined import inlined_tables, read_rows
from lakedbapi.formats.ducklake.objects import load_schema
from lakedbapi.formats.ducklake.paths import resolve
from lakedbapi.formats.ducklake.row_history import files_between
from lakedbapi.formats.ducklake.snapshot import DuckLakeSnapshot
from lakedbapi.formats.ducklake.stored_files import entered_paths, listed, normalized, table_directories
from lakedbapi.formats.erasure import END, ORPHAN, OTHER, SCHEDULED, StoredTable, UnreachableFile
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.scan import RowGroup
from lakedbapi.model.types import Field, Schema

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog

_EVER = 2**62
"""Later than any snapshot."""
_NO_ROWS = re.compile(r"(-delete\.parquet|\.puffin)(\.[0-9a-f]+\.tmp)?$")
"""Delete files, and such that are being written: they have positions and no values."""
_DATA = re.compile(r"\.parquet\b", re.IGNORECASE)
"""Data files, and such that are being written or were put aside."""


def stored_tables(catalog: DuckLakeCatalog, base: DuckLakeSnapshot, table: TableInfo) -> list[StoredTable]:
    """See `Erasure.stored`."""
    with base.reading() as connection:
        tables = [(table, None), *_dropped(connection, catalog, table)]
        found = [_stored(connection, catalog, *each) for each in tables]
    return [
        StoredTable(
            info,
            tuple(base.file_groups(info, files)) if files.num_rows else (),
            tuple(group for group, _ in rows),
            tuple(ends for _, ends in rows),
            info.id == table.id,
        )
        for info, files, rows in found
    ]


def _stored(
    connection: Connection, catalog: DuckLakeCatalog, table: TableInfo, dropped: int | None
) -> tuple[TableInfo, pa.Table, list[tuple[RowGroup, pa.Array]]]:
    """The table with all columns, its data files, and its inlined rows with the snapshots that they ended at.

    `dropped`: the snapshot that dropped the table, and with it what has no end of its own.
    """
    table = _with_dropped_columns(connection, catalog, table)
    end = pa.scalar(dropped, pa.int64())
    files = files_between(connection, catalog, table, 0, _EVER)
    files = files.set_column(files.schema.get_field_index(END), END, pc.coalesce(files.column(END), end))
    sources = inlined_tables(connection, catalog.backend, table.id, catalog.inlined_tables)
    rows = [read_rows(connection, catalog.backend, source, table, true()) for source in sources]
    return table, files, [(group, pc.coalesce(ends, end)) for group, ends in rows if group.rows.num_rows]


def _dropped(connection: Connection, catalog: DuckLakeCatalog, table: TableInfo) -> Iterator[tuple[TableInfo, int]]:
    """Dropped tables with the name of `table`, as they were last, and the snapshot that dropped each."""
    rows = catalog.backend.tables.table.c
    live = set(connection.execute(select(rows.table_id).where(rows.end_snapshot.is_(None))).scalars())
    columns = rows.table_id, rows.table_name, rows.end_snapshot
    ended = connection.execute(
        select(*columns).where(rows.schema_id == table.schema_id).order_by(rows.end_snapshot)
    ).all()
    last = {id: (name, end) for id, name, end in ended if id not in live}
    if not last:
        return
    directories = table_directories(connection, catalog.backend.tables, catalog.data_path)
    for id, (name, end) in last.items():
        if name.casefold() == table.name.casefold():
            schema = load_schema(connection, catalog.backend.tables, id, end - 1)
            yield TableInfo(id, table.schema_id, name, schema, directories[id]), end


def _with_dropped_columns(connection: Connection, catalog: DuckLakeCatalog, table: TableInfo) -> TableInfo:
    """`table` with its dropped columns as well, the latest of each name; without defaults: only values count."""
    column = catalog.backend.tables.column.c
    own = {field.id for field in table.schema.fields}
    names = {name.casefold() for name in table.schema.names}
    rows = connection.execute(
        select(column.column_id, column.end_snapshot)
        .where(column.table_id == table.id, column.parent_column.is_(None), column.end_snapshot.is_not(None))
        .order_by(column.end_snapshot)
    )
    last = {id: end for id, end in rows if id not in own}
    added: list[Field] = []
    for id, end in sorted(last.items(), key=lambda item: -item[1]):
        before = load_schema(connection, catalog.backend.tables, table.id, end - 1)
        field = next((field for field in before.fields if field.id == id), None)
        if field is not None and field.name.casefold() not in names:
            names.add(field.name.casefold())
            added.append(replace(field, initial_default=None))
    return replace(table, schema=Schema((*table.schema.fields, *added))) if added else table


def unreachable_files(catalog: DuckLakeCatalog, base: DuckLakeSnapshot, table: TableInfo) -> list[UnreachableFile]:
    """See `Erasure.unreachable`."""
    assert table.path is not None
    # Listed before the catalog is read: what is committed in between is known then.
    listing = listed(catalog.storage, catalog.data_path, [table.path])
    found = dict(zip(listing.column("path").to_pylist(), listing.column("mtime").to_pylist(), strict=True))
    with base.reading() as connection:
        directories = table_directories(connection, catalog.backend.tables, catalog.data_path)
        entered = set(map(normalized, entered_paths(connection, catalog.backend.tables, directories).to_pylist()))
        scheduled = _scheduled(connection, catalog)
    folders = _Folders({normalized(path) for path in directories.values()}, normalized(table.path))
    files = []
    for path in sorted({**scheduled, **found}):
        is_scheduled = normalized(path) in scheduled
        owner = folders.owner(normalized(path))
        if owner in (folders.own, None) and normalized(path) not in entered and not _NO_ROWS.search(path):
            kind = SCHEDULED if is_scheduled else ORPHAN if owner is not None or _DATA.search(path) else OTHER
            file = UnreachableFile(path, kind, is_own_name(path), owner == folders.own, found.get(path))
            if path in found or catalog.storage.exists(path):
                files.append(file)
    return files


def _scheduled(connection: Connection, catalog: DuckLakeCatalog) -> dict[str, None]:
    rows = catalog.backend.tables.files_scheduled_for_deletion.c
    stored = connection.execute(select(rows.path, rows.path_is_relative))
    return {normalized(resolve(catalog.data_path, path, is_relative)): None for path, is_relative in stored if path}


@dataclass(frozen=True)
class _Folders:
    """The folders of all tables, and that of one of them; all normalized."""

    all: set[str]
    own: str

    def owner(self, path: str) -> str | None:
        """The innermost table folder that a file lies in."""
        while "/" in path:
            path = path[: path.rindex("/")]
            if path in self.all or path + "/" in self.all:
                return path if path in self.all else path + "/"
        return None
