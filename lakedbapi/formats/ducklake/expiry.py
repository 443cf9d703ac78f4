"""Expiry: snapshots are forgotten, and with them whatever no kept snapshot sees.

What stays is decided over the union of all kept snapshots: a versioned row goes when none of them lies between its
begin and its end. A delete file goes with its data file, never before it. Files are scheduled for a later cleanup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, and_, delete, exists, func, insert, not_, or_, select, true
from sqlalchemy.engine import Connection
from sqlalchemy.schema import DropTable
from sqlalchemy.sql import ColumnElement

from lakedbapi.formats.ducklake.history import read_history
from lakedbapi.formats.ducklake.id_lists import among, chunks
from lakedbapi.formats.ducklake.inlined import InlinedTable, inlined_tables
from lakedbapi.formats.ducklake.objects import visible
from lakedbapi.formats.ducklake.paths import relative_to
from lakedbapi.formats.ducklake.stored_files import entered_files, entered_paths, normalized, table_directories
from lakedbapi.formats.maintenance import Expired
from lakedbapi.model.catalog import SnapshotInfo

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog


def expire(
    catalog: DuckLakeCatalog, versions: Sequence[int] | None, older_than: datetime | None, *, dry_run: bool
) -> Expired:
    """See `Maintenance.expire`. A dry run does the same and rolls it back."""
    expired = Expired((), ())
    needless: list[Table] = []
    try:
        with catalog.backend.write() as connection:
            going = _going(read_history(connection, catalog.backend.tables), versions, older_than)
            if going:
                expiry = _Expiry(catalog, connection)
                expired = Expired(going, expiry.run([info.id for info in going]))
                needless = expiry.needless
            if dry_run or not going:
                raise _RollBack
    except _RollBack:
        return expired
    # Not before the commit: some databases end the transaction with a DROP.
    if needless:
        with catalog.backend.write() as connection:
            for table in needless:
                connection.execute(DropTable(table, if_exists=True))
    catalog.forget()
    return expired


class _RollBack(Exception):
    """Nothing is to be kept of the transaction."""


def _going(
    history: Sequence[SnapshotInfo], versions: Sequence[int] | None, older_than: datetime | None
) -> list[SnapshotInfo]:
    wanted = set(versions or ())
    return [info for info in history[:-1] if info.id in wanted or (older_than is not None and info.time < older_than)]


class _Expiry:
    """Deletes catalog rows inside one transaction."""

    def __init__(self, catalog: DuckLakeCatalog, connection: Connection) -> None:
        self._catalog = catalog
        self._backend = catalog.backend
        self._tables = catalog.backend.tables
        self._connection = connection
        self.needless: list[Table] = []
        """Inlined tables that nothing refers to any more."""

    def run(self, snapshots: Sequence[int]) -> Sequence[str]:
        """Returns the full paths of the files that were scheduled for removal."""
        tables = self._tables
        directories = table_directories(self._connection, tables, self._catalog.data_path)
        for table in (tables.snapshot, tables.snapshot_changes):
            for chosen in among(table.c.snapshot_id, snapshots):
                self._delete(table, chosen)
        gone = self._forget_tables()
        files = self._forget_files(directories, gone)
        self._forget_inlined(gone)
        self._forget_columns()
        self._forget_objects()
        for chunk in chunks(sorted(gone)):
            self._forget_facts_about(chunk)
        return self._schedule(files, directories)

    def _forget_tables(self) -> set[int]:
        """Ids of the tables of which no row is left: a renamed table has several."""
        table = self._tables.table
        before = self._ids(table.c.table_id)
        self._delete(table, self._unseen(table))
        return before - self._ids(table.c.table_id)

    def _forget_files(self, directories: Any, gone: set[int]) -> list[tuple[int, str]]:
        """(id, full path) of the data files and delete files that went."""
        data, deletes = self._tables.data_file, self._tables.delete_file
        found: list[tuple[int, str]] = []
        conditions = [self._unseen(data), *among(data.c.table_id, list(gone))]
        for condition in conditions:
            found += self._entered(data, directories, condition)
            self._delete(data, condition)
        ownerless = not_(exists().where(data.c.data_file_id == deletes.c.data_file_id))
        found += self._entered(deletes, directories, ownerless)
        self._delete(deletes, ownerless)
        if found:
            owned = (
                self._tables.file_column_stats,
                self._tables.file_variant_stats,
                self._tables.file_partition_value,
            )
            for table in owned:
                self._delete(table, not_(exists().where(data.c.data_file_id == table.c.data_file_id)))
        return found

    def _entered(self, source: Table, directories: Any, condition: ColumnElement[bool]) -> list[tuple[int, str]]:
        rows = entered_files(self._connection, source, directories, condition)
        return list(zip(rows.column("id").to_pylist(), rows.column("path").to_pylist(), strict=True))

    def _forget_inlined(self, gone: set[int]) -> None:
        """Inlined rows that no kept snapshot sees, deletes of files that went, and tables without use."""
        data = self._tables.data_file
        for table_id in sorted(gone | self._ids(self._tables.table.c.table_id)):
            deletes = self._tables.inlined_delete(table_id)
            if self._backend.has_table(self._connection, deletes.name):
                if table_id in gone:
                    self.needless.append(deletes)
                else:
                    self._delete(deletes, not_(exists().where(data.c.data_file_id == deletes.c.file_id)))
        for table_id, sources in self._inlined():
            dropped = self._dropped_at(table_id)
            for source in sources:
                # Those of older columns stay, also when empty: a DuckDB at work remembers which ones there are.
                if table_id in gone:
                    registered = self._tables.inlined_data_tables
                    self._delete(registered, registered.c.table_name == source.table.name)
                    # No values may be left in it if nobody gets to drop it.
                    self._delete(source.table, true())
                    self.needless.append(source.table)
                else:
                    begin, end = source.table.c[source.begin], source.table.c[source.end]
                    self._delete(source.table, self._unseen(source.table, begin, func.coalesce(end, dropped)))

    def _dropped_at(self, table_id: int) -> int | None:
        """The snapshot that dropped the table; None if it is live. Its inlined rows do not end there."""
        table = self._tables.table.c
        ends = self._connection.execute(select(table.end_snapshot).where(table.table_id == table_id)).scalars().all()
        return None if None in ends else max(ends, default=None)

    def _inlined(self) -> Iterator[tuple[int, Sequence[InlinedTable]]]:
        for table_id in sorted(self._ids(self._tables.inlined_data_tables.c.table_id)):
            yield (
                table_id,
                inlined_tables(self._connection, self._backend, table_id, self._catalog.inlined_tables),
            )

    def _forget_columns(self) -> None:
        """But those that inlined rows were stored with: their table's columns mean nothing without them."""
        column = self._tables.column
        unseen = self._unseen(column)
        needed = [
            and_(column.c.table_id == table_id, visible(column, source.defined_at))
            for table_id, sources in self._inlined()
            for source in sources
        ]
        needed = [condition for condition in needed if self._count(column, unseen, condition)]
        self._delete(column, and_(unseen, not_(or_(*needed))) if needed else unseen)

    def _forget_objects(self) -> None:
        tables, data = self._tables, self._tables.data_file
        versioned = [tables.schema, tables.view, tables.macro, tables.tag, tables.column_tag, tables.sort_info]
        if tables.view_column_tag is not None:
            versioned.append(tables.view_column_tag)
        for table in versioned:
            self._delete(table, self._unseen(table))
        partitioning = tables.partition_info
        is_used = exists().where(data.c.partition_id == partitioning.c.partition_id)
        self._delete(partitioning, and_(self._unseen(partitioning), not_(is_used)))
        for part, whole, key in (
            (tables.partition_column, partitioning, "partition_id"),
            (tables.sort_expression, tables.sort_info, "sort_id"),
            (tables.macro_impl, tables.macro, "macro_id"),
            (tables.macro_parameters, tables.macro, "macro_id"),
        ):
            self._delete(part, not_(exists().where(whole.c[key] == part.c[key])))
        metadata = tables.metadata
        is_there = exists().where(tables.schema.c.schema_id == metadata.c.scope_id)
        self._delete(metadata, and_(metadata.c.scope == "schema", not_(is_there)))

    def _forget_facts_about(self, table_ids: Sequence[int]) -> None:
        """What is not versioned, of tables that are gone for good."""
        tables = self._tables
        mapping, names, metadata = tables.column_mapping, tables.name_mapping, tables.metadata
        mappings = select(mapping.c.mapping_id).where(mapping.c.table_id.in_(table_ids))
        self._delete(names, names.c.mapping_id.in_(mappings))
        for table in (tables.table_stats, tables.table_column_stats, tables.schema_versions, mapping):
            self._delete(table, table.c.table_id.in_(table_ids))
        self._delete(metadata, and_(metadata.c.scope == "table", metadata.c.scope_id.in_(table_ids)))

    def _schedule(self, files: Sequence[tuple[int, str]], directories: Any) -> Sequence[str]:
        """Have files removed that no entry names any more: one file can be entered twice."""
        if not files:
            return ()
        kept = set(map(normalized, entered_paths(self._connection, self._tables, directories).to_pylist()))
        needless = [(id, path) for id, path in files if normalized(path) not in kept]
        rows = []
        for id, path in needless:
            stored, is_relative = relative_to(self._catalog.data_path, path)
            rows.append(
                {
                    "data_file_id": id,
                    "path": stored,
                    "path_is_relative": is_relative,
                    "schedule_start": datetime.now(timezone.utc),
                }
            )
        if rows:
            self._connection.execute(insert(self._tables.files_scheduled_for_deletion), rows)
        return [path for _, path in needless]

    # Queries

    def _unseen(self, table: Table, begin: Any = None, end: Any = None) -> ColumnElement[bool]:
        """Whether no kept snapshot sees a versioned row."""
        begin = table.c.begin_snapshot if begin is None else begin
        end = table.c.end_snapshot if end is None else end
        kept = self._tables.snapshot.c.snapshot_id
        return and_(end.is_not(None), not_(exists().where(kept >= begin, kept < end)))

    def _delete(self, table: Table, condition: ColumnElement[bool]) -> None:
        self._connection.execute(delete(table).where(condition))

    def _ids(self, column: Any) -> set[int]:
        return set(self._connection.execute(select(column).distinct()).scalars())

    def _count(self, table: Table, *which: ColumnElement[bool]) -> int:
        return self._connection.execute(select(func.count()).select_from(table).where(*which)).scalar() or 0
