"""What the catalog knows about the rows of a table over a range of snapshots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlalchemy import and_, or_, select
from sqlalchemy.engine import Connection

from lakedbapi.formats.ducklake import changes_made
from lakedbapi.formats.ducklake.columnar import fetch_table
from lakedbapi.formats.ducklake.delete_files import Deletions, read_deletes
from lakedbapi.formats.ducklake.file_rows import DATA, data_columns
from lakedbapi.formats.ducklake.files import LAKE_FILES
from lakedbapi.formats.ducklake.inlined import inlined_tables, read_rows
from lakedbapi.formats.ducklake.partial import with_partial_max
from lakedbapi.formats.ducklake.paths import resolve, resolve_all
from lakedbapi.formats.erasure import END
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.scan import RowGroup

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog

_STORED = pa.schema([*DATA, pa.field(END, pa.int64()), pa.field("path_is_relative", pa.bool_())])


@dataclass(frozen=True)
class RowHistory:
    """`files`: every data file that some snapshot of the range saw or ended: columns `LAKE_FILES` (without deletes) and
    `END`. `deletions`: until the end of the range, by data file id. `inlined_rows`: those that began or ended in the
    range, with the snapshot each ended at. `compactions`: snapshots of the range that only moved rows.
    """

    files: pa.Table
    deletions: Mapping[int, Deletions]
    inlined_rows: Sequence[tuple[RowGroup, pa.Array]]
    compactions: frozenset[int]


def load_row_history(catalog: DuckLakeCatalog, table: TableInfo, first: int, last: int) -> RowHistory:
    """For the snapshots `first` to `last`, both included; rows in the columns of `table`."""
    with catalog.backend.read() as connection:
        files = files_between(connection, catalog, table, first, last)
        delete_files = _delete_files(connection, catalog, table, last)
        deletions = dict(_inlined_deletes(connection, catalog, table, last))
        rows = _inlined_rows(connection, catalog, table, first, last)
        compactions = _compactions(connection, catalog, table, first, last)
    known = set(files.column("file_id").to_pylist())
    for file_id, path, format, begin, key in delete_files:
        if file_id in known:
            found = read_deletes(catalog.storage, path, format, begin, file_id, key)
            deletions[file_id] = deletions[file_id] | found if file_id in deletions else found
    return RowHistory(files, {id: deletions[id].until(last) for id in known & deletions.keys()}, rows, compactions)


def files_between(
    connection: Connection, catalog: DuckLakeCatalog, table: TableInfo, first: int, last: int
) -> pa.Table:
    """The data files that some snapshot of the range saw or ended; see `RowHistory.files`."""
    source = catalog.backend.tables.data_file
    data = source.c
    statement = (
        select(*data_columns(source), data.end_snapshot, data.path_is_relative)
        .where(data.table_id == table.id, data.begin_snapshot <= last)
        .where(or_(data.end_snapshot.is_(None), data.end_snapshot >= first))
    )
    stored = with_partial_max(fetch_table(connection, statement, _STORED, by="file_id"))
    assert table.path is not None
    path = resolve_all(table.path, stored.column("path"), stored.column("path_is_relative"))
    count = stored.num_rows
    no_deletes = {
        field.name: pa.repeat(pa.scalar(0), count) if field.name == "deleted_count" else pa.nulls(count, field.type)
        for field in LAKE_FILES
        if field.name.startswith("delete")
    }
    found = {**{name: stored.column(name) for name in stored.schema.names}, **no_deletes, "path": path}
    schema = LAKE_FILES.append(_STORED.field(END))
    return pa.Table.from_arrays([found[field.name] for field in schema], schema=schema)


def _delete_files(
    connection: Connection, catalog: DuckLakeCatalog, table: TableInfo, last: int
) -> list[tuple[int, str, str, int, str | None]]:
    """(data file id, path, format, begin snapshot, encryption key), live or ended."""
    deletes = catalog.backend.tables.delete_file.c
    columns = deletes.data_file_id, deletes.path, deletes.path_is_relative, deletes.format, deletes.begin_snapshot
    rows = select(*columns, deletes.encryption_key).where(deletes.table_id == table.id, deletes.begin_snapshot <= last)
    directory = table.path or ""
    return [
        (file_id, resolve(directory, path, is_relative), format or "parquet", begin, key)
        for file_id, path, is_relative, format, begin, key in connection.execute(rows)
    ]


def _inlined_deletes(
    connection: Connection, catalog: DuckLakeCatalog, table: TableInfo, last: int
) -> Mapping[int, Deletions]:
    deletes = catalog.backend.tables.inlined_delete(table.id)
    if not catalog.backend.has_table(connection, deletes.name):
        return {}
    positions: dict[int, list[int]] = defaultdict(list)
    snapshots: dict[int, list[int]] = defaultdict(list)
    rows = select(deletes.c.file_id, deletes.c.row_id, deletes.c.begin_snapshot).where(deletes.c.begin_snapshot <= last)
    for file_id, position, snapshot in connection.execute(rows.order_by(deletes.c.file_id, deletes.c.row_id)):
        positions[file_id].append(position)
        snapshots[file_id].append(snapshot)
    return {id: Deletions.of(found, snapshots[id]) for id, found in positions.items()}


def _inlined_rows(
    connection: Connection, catalog: DuckLakeCatalog, table: TableInfo, first: int, last: int
) -> list[tuple[RowGroup, pa.Array]]:
    found = []
    for source in inlined_tables(connection, catalog.backend, table.id, catalog.inlined_tables):
        begin, end = source.table.c[source.begin], source.table.c[source.end]
        touched = or_(begin.between(first, last), and_(begin <= last, end.between(first, last)))
        found.append(read_rows(connection, catalog.backend, source, table, touched))
    return found


def _compactions(
    connection: Connection, catalog: DuckLakeCatalog, table: TableInfo, first: int, last: int
) -> frozenset[int]:
    made = catalog.backend.tables.snapshot_changes.c
    rows = connection.execute(select(made.snapshot_id, made.changes_made).where(made.snapshot_id.between(first, last)))
    return frozenset(id for id, text in rows if changes_made.compacts(text, table.id))
