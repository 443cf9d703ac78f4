"""Migration: a catalog becomes one of a newer format version, in one transaction where the database can do that.

What is missing is added and nothing is done twice, so that a migration that was cut off can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import MetaData, Table, and_, delete, exists, func, insert, not_, or_, select, text, update
from sqlalchemy.engine import Connection
from sqlalchemy.schema import CreateColumn, CreateTable

from lakedbapi.errors import ConflictError, NotSupportedError, ProgrammingError
from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.ducklake.delete_files import DeleteFormat, Deletions, write_deletes
from lakedbapi.formats.ducklake.ids import uuid7
from lakedbapi.formats.ducklake.metadata import Tables, tables
from lakedbapi.formats.ducklake.partial import INFO, counted_snapshots
from lakedbapi.formats.ducklake.paths import relative_to, resolve
from lakedbapi.formats.ducklake.stored_files import table_directories
from lakedbapi.formats.ducklake.versions import CREATED, READ, check_creatable

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog


def migrate(catalog: DuckLakeCatalog, version: str) -> None:
    """Make the catalog one of `version`, unless it is one already.

    No snapshot is made, and every kept snapshot stays what it is. There is no way back: NotSupportedError.
    """
    check_creatable(version)
    backend = catalog.backend
    before = backend.tables.version
    if before == version:
        return
    if before in CREATED and CREATED.index(before) > CREATED.index(version):
        raise NotSupportedError(
            f"catalog {backend.name}: it has format version {before}, and there is no way back to {version}"
        )
    with backend.migration() as connection:
        _Migration(catalog, connection, version).run(before)
    with backend.read() as connection:
        backend.adopt(connection, version)
    catalog.forget()


class _Migration:
    def __init__(self, catalog: DuckLakeCatalog, connection: Connection, version: str) -> None:
        self._catalog = catalog
        self._backend: Backend = catalog.backend
        self._connection = connection
        self._new: Tables = tables(catalog.backend.tables.schema_name, version)

    def run(self, before: str) -> None:
        metadata = self._new.metadata
        stored = and_(metadata.c.key == "version", metadata.c.scope.is_(None))
        if self._connection.execute(select(metadata.c.value).where(stored)).scalar() != before:
            raise ConflictError(f"catalog {self._backend.name}: somebody else migrated it just now; connect again")
        inlined = self._inlined_tables()
        self._check_inlined_columns(inlined)
        for table in self._new.collection.sorted_tables:
            self._complete(table)
        if before in READ:
            self._fill()
        self._note_inlined_versions()
        for name in inlined:
            self._rename_system_columns(name)
        self._connection.execute(update(metadata).where(stored).values(value=self._new.version))

    # Tables and columns

    def _complete(self, table: Table) -> None:
        """Make the table, or the columns that it lacks."""
        if not self._backend.has_table(self._connection, table.name):
            self._connection.execute(CreateTable(table))
            return
        present = self._backend.column_names(self._connection, table.name)
        for column in table.c:
            if column.name not in present:
                definition = CreateColumn(column).compile(dialect=self._connection.dialect)
                self._alter(table, f"ADD COLUMN {definition}")

    def _alter(self, table: Table, change: str) -> None:
        self._connection.execute(text(f"ALTER TABLE {self._name(table)} {change}"))

    def _name(self, table: Table) -> str:
        return self._connection.dialect.identifier_preparer.format_table(table)

    # What 0.4 brought

    def _fill(self) -> None:
        column, versions = self._new.column, self._new.schema_versions
        literal = update(column).where(column.c.default_value_type.is_(None)).values(default_value_type="literal")
        self._connection.execute(literal)
        self._spread_schema_versions()
        self._connection.execute(delete(versions).where(versions.c.table_id.is_(None)))
        if INFO in self._backend.column_names(self._connection, self._new.data_file.name):
            self._fill_partial_max()
            self._alter(self._new.data_file, f"DROP COLUMN {INFO}")

    def _spread_schema_versions(self) -> None:
        """Versions that counted for the whole catalog become versions of each table that was there."""
        versions, table = self._new.schema_versions, self._new.table
        there = and_(
            table.c.begin_snapshot <= versions.c.begin_snapshot,
            or_(table.c.end_snapshot.is_(None), table.c.end_snapshot > versions.c.begin_snapshot),
        )
        found = self._connection.execute(
            select(versions.c.begin_snapshot, versions.c.schema_version, table.c.table_id)
            .join_from(versions, table, there)
            .where(versions.c.table_id.is_(None))
            .distinct()
        )
        self._insert(versions, [dict(zip(versions.c.keys(), row, strict=True)) for row in found])

    def _fill_partial_max(self) -> None:
        file = self._new.data_file
        info = text(INFO)
        directories = table_directories(self._connection, self._new, self._catalog.data_path)
        rows = self._connection.execute(
            select(file.c.data_file_id, file.c.table_id, info).where(text(f"{INFO} IS NOT NULL"))
        ).all()
        for id, table_id, told in rows:
            counted = counted_snapshots(told)
            if counted:
                self._split(id, directories[table_id], counted)
            else:
                greatest = int(told.partition(":")[2])
                self._connection.execute(update(file).where(file.c.data_file_id == id).values(partial_max=greatest))
        # Dropping the column may commit all this before it is gone: then nothing may be split a second time.
        self._connection.execute(text(f"UPDATE {self._name(file)} SET {INFO} = NULL"))

    def _split(self, id: int, directory: str, counted: Sequence[tuple[int, int]]) -> None:
        """A file whose rows were counted by snapshot: the last snapshot keeps it, earlier ones get copies of it.

        In a copy the later rows are deleted.
        """
        file = self._new.data_file
        row = dict(self._connection.execute(select(file).where(file.c.data_file_id == id)).mappings().one())
        storage, path = self._catalog.storage, resolve(directory, row["path"], row["path_is_relative"])
        last, total = counted[-1]
        data = storage.read_bytes(path)
        for (snapshot, count), (following, _) in pairwise(counted):
            copy = f"{path[: path.rindex('/') + 1]}ducklake-{uuid7()}.parquet"
            storage.write_exclusive(copy, data)
            stored, is_relative = relative_to(directory, copy)
            copied = {**row, "data_file_id": self._next_file_id(), "path": stored, "path_is_relative": is_relative}
            copied.update(begin_snapshot=snapshot, end_snapshot=following)
            self._insert(file, [copied])
            self._copy_facts(id, copied["data_file_id"])
            later = np.arange(count, total)
            deletions = Deletions(later, np.full(len(later), snapshot, np.int64))
            written = write_deletes(storage, directory, copy, deletions, DeleteFormat.PARQUET)
            delete_path, is_relative = relative_to(directory, written.path)
            entry = {
                "delete_file_id": self._next_file_id(),
                "table_id": row["table_id"],
                "begin_snapshot": snapshot,
                "end_snapshot": following,
                "data_file_id": copied["data_file_id"],
                "path": delete_path,
                "path_is_relative": is_relative,
                "format": written.format,
                "delete_count": written.delete_count,
                "file_size_bytes": written.file_size_bytes,
                "footer_size": written.footer_size,
            }
            self._insert(self._new.delete_file, [entry])
        self._connection.execute(update(file).where(file.c.data_file_id == id).values(begin_snapshot=last))

    def _copy_facts(self, old: int, new: int) -> None:
        for table in (self._new.file_column_stats, self._new.file_partition_value):
            rows = self._connection.execute(select(table).where(table.c.data_file_id == old)).mappings().all()
            self._insert(table, [{**row, "data_file_id": new} for row in rows])

    def _next_file_id(self) -> int:
        """Of the newest snapshot's counter."""
        snapshot = self._new.snapshot
        newest = self._connection.execute(select(func.max(snapshot.c.snapshot_id))).scalar()
        which = snapshot.c.snapshot_id == newest
        id: int = self._connection.execute(select(snapshot.c.next_file_id).where(which)).scalar_one()
        self._connection.execute(update(snapshot).where(which).values(next_file_id=id + 1))
        return id

    # Inlined tables

    def _inlined_tables(self) -> Sequence[str]:
        registered = self._new.inlined_data_tables
        names = self._connection.execute(select(registered.c.table_name).distinct()).scalars()
        return [name for name in names if self._backend.has_table(self._connection, name)]

    def _check_inlined_columns(self, names: Sequence[str]) -> None:
        """Nothing may stand in the way of the new names of the system columns."""
        wanted = self._new.inlined_system_columns
        for name in names:
            taken = set(self._backend.column_names(self._connection, name)[3:]) & set(wanted)
            if taken:
                raise ProgrammingError(
                    f"catalog {self._backend.name}: rows in {name} have a column {taken.pop()!r}, whose name format "
                    f"{self._new.version} keeps for itself; rename the column and flush the table first"
                )

    def _rename_system_columns(self, name: str) -> None:
        table = Table(name, MetaData(schema=self._new.schema_name))
        quote = self._connection.dialect.identifier_preparer.quote
        present = self._backend.column_names(self._connection, name)[:3]
        for old, new in zip(present, self._new.inlined_system_columns, strict=True):
            if old != new:
                self._alter(table, f"RENAME COLUMN {quote(old)} TO {quote(new)}")

    def _note_inlined_versions(self) -> None:
        """Older writers made inlined tables for schema versions that they noted nowhere.

        Where all snapshots of one are gone, the table's last noted version before it is the best that is known.
        """
        registered, versions, snapshot = (
            self._new.inlined_data_tables,
            self._new.schema_versions,
            self._new.snapshot,
        )
        noted = exists().where(
            versions.c.table_id == registered.c.table_id, versions.c.schema_version == registered.c.schema_version
        )
        found = self._connection.execute(
            select(func.min(snapshot.c.snapshot_id), registered.c.schema_version, registered.c.table_id)
            .join_from(registered, snapshot, snapshot.c.schema_version == registered.c.schema_version)
            .where(not_(noted))
            .group_by(registered.c.schema_version, registered.c.table_id)
        )
        self._insert(versions, [dict(zip(versions.c.keys(), row, strict=True)) for row in found])

    def _insert(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            self._connection.execute(insert(table), rows)
