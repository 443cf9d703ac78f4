"""`DuckLakeSnapshot`: a DuckLake catalog at one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import select
from sqlalchemy.engine import Connection

from lakedbapi.errors import ConflictError
from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.ducklake.file_rows import has_many_files, read_outline
from lakedbapi.formats.ducklake.files import (
    LAKE_FILES,
    ColumnStatistics,
    TableFiles,
    column_bounds,
    load_chosen_files,
    load_column_statistics,
    load_files,
    load_key_types,
    load_name_mapping,
    load_partition_values,
    partition_columns,
)
from lakedbapi.formats.ducklake.inlined import inlined_tables, read_row_group
from lakedbapi.formats.ducklake.objects import Objects
from lakedbapi.formats.ducklake.options import Options
from lakedbapi.model.catalog import MacroInfo, SchemaInfo, TableInfo, ViewInfo
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import ColumnBounds, FileGroup, PartitionColumn, RowGroup
from lakedbapi.model.types import Decimal, Scalar, Schema, Type

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog

V = TypeVar("V")

_MANY_FILES = 10_000
"""From so many on it is worth it to read of each file first what tells it apart."""
_FEW_FILES = 500
"""Files that one statement names by their ids."""


class DuckLakeSnapshot(Snapshot):
    """Loads each table's parts when they are first asked for, each in one short catalog transaction, and keeps them.

    Loads at different times fit together: what a snapshot sees never changes, except that compaction replaces files by
    others with the same rows. A flush moves rows from the catalog to files, so these two are loaded together.
    """

    def __init__(
        self,
        catalog: DuckLakeCatalog,
        id: int,
        time: datetime,
        schema_version: int,
        next_file_id: int,
        options: Options,
    ) -> None:
        self.id = id
        self.time = time
        self.schema_version = schema_version
        self.next_file_id = next_file_id
        self.options = options
        self._catalog = catalog
        self._files: dict[int, TableFiles] = {}
        self._outlines: dict[int, pa.Table | None] = {}
        self._vectors: dict[int, DeleteVector] = {}
        self._row_groups: dict[tuple[int, Schema], Sequence[RowGroup]] = {}
        self._statistics: dict[tuple[int, int], ColumnStatistics] = {}
        self._partition_values: dict[int, tuple[pa.Table, Mapping[int, frozenset[Type]]]] = {}

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A short read of the catalog; ConflictError if the snapshot has been expired: rows of it may be gone."""
        backend = self._catalog.backend
        snapshot = backend.tables.snapshot.c
        with backend.read() as connection:
            if connection.execute(select(snapshot.snapshot_id).where(snapshot.snapshot_id == self.id)).first() is None:
                raise ConflictError(
                    f"catalog {backend.name}: snapshot {self.id} was expired while it was read; start a new transaction"
                )
            yield connection

    def __repr__(self) -> str:
        return f"<DuckLakeSnapshot {self.id} of {self._catalog.backend.name}>"

    @cached_property
    def _objects(self) -> Objects:
        return self._catalog.objects(self)

    def schemas(self) -> Mapping[int, SchemaInfo]:
        return self._objects.schemas

    def views(self) -> Mapping[int, ViewInfo]:
        return self._objects.views

    def macros(self) -> Mapping[int, MacroInfo]:
        return self._objects.macros

    def tables(self) -> Mapping[int, TableInfo]:
        return self._tables

    @cached_property
    def _tables(self) -> Mapping[int, TableInfo]:
        with_options = {
            id: replace(table, properties=dict(self.options.tables[id]))
            for id, table in self._objects.tables.items()
            if id in self.options.tables
        }
        return {**self._objects.tables, **with_options}

    def files(self, table: TableInfo) -> pa.Table:
        return self._table_files(table).files

    def files_where(self, table: TableInfo, choose: Callable[[pa.Table], npt.NDArray[np.bool_]]) -> pa.Table:
        outline = self._outline(table)
        if outline is not None:
            ids = outline.column("file_id").filter(pa.array(choose(outline))).to_pylist()
            if len(ids) <= _FEW_FILES:
                found = self._chosen_files(table, ids)
                if found.num_rows == len(ids):  # Unless compaction has replaced some.
                    return found
        return super().files_where(table, choose)

    def _outline(self, table: TableInfo) -> pa.Table | None:
        """The files (columns `OUTLINE`) of a table of many; None where it has few or a list of them is known."""
        if table.id in self._files or table.id in self._catalog.file_rows:
            return None
        if table.id not in self._outlines:
            self._outlines[table.id] = self._load_outline(table)
        return self._outlines[table.id]

    def _load_outline(self, table: TableInfo) -> pa.Table | None:
        backend = self._catalog.backend
        if self._catalog.outlined.get(table.id, self.id) != self.id:
            return None
        with backend.glance() as connection:
            if not has_many_files(connection, backend.tables, table.id, self.id, _MANY_FILES):
                return None
        with self.reading() as connection:
            outline = read_outline(connection, backend.tables, table.id, self.id)
            self._keep_row_groups(table, self._read_row_groups(connection, table))
        self._catalog.outlined[table.id] = self.id
        return outline

    def _chosen_files(self, table: TableInfo, ids: Sequence[int]) -> pa.Table:
        if not ids:
            return LAKE_FILES.empty_table()
        with self.reading() as connection:
            loaded = load_chosen_files(connection, self._catalog.backend, table, self.id, ids)
        files = self._with_deleted_counts(loaded).files
        for row in _rows(files, np.flatnonzero(files.column("deleted_count").to_numpy())):
            self._vector(loaded, row)
        return files

    def bounds(self, table: TableInfo, files: pa.Table, field_id: int) -> ColumnBounds | None:
        field = next((field for field in table.schema.fields if field.id == field_id), None)
        if field is None or not isinstance(field.type, (Scalar, Decimal)):
            return None
        key = table.id, field_id
        if key not in self._statistics:
            with self.reading() as connection:
                known = self._catalog.statistics.get(key)
                found = load_column_statistics(connection, self._catalog.backend.tables, table.id, field, known)
            self._statistics[key] = found
            self._catalog.statistics[key] = found.rows
        statistics = self._statistics[key]
        return column_bounds(statistics, field, files) if statistics.rows.num_rows else None

    def partition_values(self, table: TableInfo, files: pa.Table) -> Mapping[tuple[int, str], PartitionColumn]:
        if table.partitioning is None:
            return {}
        if table.id not in self._partition_values:
            with self.reading() as connection:
                known = self._catalog.partition_values.get(table.id)
                values = load_partition_values(connection, self._catalog.backend.tables, table.id, known)
                types = load_key_types(connection, self._catalog.backend.tables, table)
            self._partition_values[table.id] = values, types
            self._catalog.partition_values[table.id] = values
        return partition_columns(*self._partition_values[table.id], table, files)

    def file_groups(self, table: TableInfo, files: pa.Table) -> Sequence[FileGroup]:
        deleted = np.flatnonzero(files.column("deleted_count").to_numpy())
        vectors = {
            int(number): self._known_vector(table, row)
            for number, row in zip(deleted, _rows(files, deleted), strict=True)
        }
        keys = {
            int(number): files.column("encryption_key")[int(number)].as_py()
            for number in np.flatnonzero(files.column("encryption_key").is_valid().to_numpy())
        }
        mapping = pc.fill_null(files.column("mapping_id"), -1).to_numpy()
        return [
            self._group(
                table,
                files.slice(start, end - start),
                int(mapping[start]),
                _within(vectors, start, end),
                _within(keys, start, end),
            )
            for start, end in _runs(mapping)
        ]

    def _group(
        self,
        table: TableInfo,
        files: pa.Table,
        mapping_id: int,
        vectors: Mapping[int, DeleteVector],
        keys: Mapping[int, str],
    ) -> FileGroup:
        if mapping_id < 0:
            return FileGroup(files, vectors, encryption_keys=keys)
        with self.reading() as connection:
            mapping = load_name_mapping(connection, self._catalog.backend.tables, mapping_id)
        return mapping.group(files, vectors, keys)

    def row_groups(self, table: TableInfo) -> Sequence[RowGroup]:
        key = table.id, table.schema
        if key not in self._row_groups:
            self._table_files(table)
        if key not in self._row_groups:
            with self.reading() as connection:
                self._keep_row_groups(table, self._read_row_groups(connection, table))
        return self._row_groups[key]

    def _keep_row_groups(self, table: TableInfo, groups: Sequence[RowGroup]) -> None:
        """ConflictError if there are others than with an earlier list of files, or in other columns."""
        known = next((known for (id, _), known in self._row_groups.items() if id == table.id), groups)
        if _row_count(groups) != _row_count(known):
            raise ConflictError(
                f"table {table.name}: its rows in the catalog were moved to files while snapshot {self.id} was "
                "read; start a new transaction"
            )
        self._row_groups[table.id, table.schema] = groups

    def _read_row_groups(self, connection: Connection, table: TableInfo) -> Sequence[RowGroup]:
        backend = self._catalog.backend
        inlined = inlined_tables(connection, backend, table.id, self._catalog.inlined_tables, filled=True)
        groups = [read_row_group(connection, backend, source, table, self.id) for source in inlined]
        return [group for group in groups if group is not None]

    def delete_files(self, table: TableInfo) -> pa.Table:
        files = self.files(table)
        files = files.filter(files.column("delete_path").is_valid())
        names = ("path", "delete_path", "delete_format", "delete_count", "delete_file_size_bytes", "delete_snapshot_id")
        return files.select(list(names)).rename_columns(
            ["data_file", "path", "format", "delete_count", "file_size_bytes", "snapshot_id"]
        )

    def _table_files(self, table: TableInfo) -> TableFiles:
        found = self._files.get(table.id)
        if found is None:
            backend = self._catalog.backend
            with self.reading() as connection:
                known = self._catalog.file_rows.get(table.id)
                loaded, rows = load_files(connection, backend, table, self.id, known)
                self._keep_row_groups(table, self._read_row_groups(connection, table))
            if known is None or known.snapshot < self.id:
                self._catalog.file_rows[table.id] = rows
            found = self._files[table.id] = self._with_deleted_counts(loaded)
        return found

    def _with_deleted_counts(self, loaded: TableFiles) -> TableFiles:
        """Counts from the catalog where they are exact; the other files' deletes are read and counted."""
        files = loaded.files
        inlined = loaded.inlined_deletes.counts(files.column("file_id").to_numpy())
        counts = pc.fill_null(files.column("delete_count"), 0).to_numpy() + inlined
        has_deletes = files.column("delete_path").is_valid().to_numpy()
        later_rows = _above(files, "partial_max", self.id)
        # Delete files that replaced those of this snapshot list later deletes, too; older ones cannot.
        later_deletes = _above(files, "delete_file_id", self.next_file_id - 1)
        several = np.isin(files.column("file_id").to_numpy(), list(loaded.more_deletes))
        inexact = np.flatnonzero(later_rows | later_deletes | several | (has_deletes & (inlined > 0)))
        if len(inexact):
            counts[inexact] = [len(self._vector(loaded, row)) for row in _rows(files, inexact)]
        column = LAKE_FILES.get_field_index("deleted_count")
        return replace(loaded, files=files.set_column(column, LAKE_FILES.field(column), pa.array(counts, pa.int64())))

    def _known_vector(self, table: TableInfo, file: Mapping[str, object]) -> DeleteVector:
        """As `_vector`, of a file of `table`, whose chosen files have theirs already."""
        id = file["file_id"]
        assert isinstance(id, int)
        vector = self._vectors.get(id)
        return self._vector(self._table_files(table), file) if vector is None else vector

    def _vector(self, loaded: TableFiles, file: Mapping[str, object]) -> DeleteVector:
        """The rows of a data file (a row of `LAKE_FILES`) that this snapshot does not see."""
        id = file["file_id"]
        assert isinstance(id, int)
        vector = self._vectors.get(id)
        if vector is None:
            vector = DeleteVector.of(loaded.inlined_deletes.positions(id))
            if file["delete_path"] is not None:
                vector |= self._catalog.delete_reader.deleted(file, id, self.id)
            for more in loaded.more_deletes.get(id, ()):
                vector |= self._catalog.delete_reader.deleted(more, id, self.id)
            partial_max = file["partial_max"]
            if isinstance(partial_max, int) and partial_max > self.id:
                vector |= self._catalog.delete_reader.later_rows(file, self.id)
            self._vectors[id] = vector
        return vector


def _row_count(groups: Sequence[RowGroup]) -> int:
    return sum(group.rows.num_rows for group in groups)


def _rows(files: pa.Table, numbers: npt.NDArray[np.int64]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = files.take(pa.array(numbers)).to_pylist()
    return rows


def _above(files: pa.Table, name: str, low: int) -> npt.NDArray[np.bool_]:
    """Where a column is greater than `low`; NULL is not."""
    result: npt.NDArray[np.bool_] = pc.fill_null(pc.greater(files.column(name), low), False).to_numpy()
    return result


def _runs(keys: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """(start, end) of each run of equal keys."""
    if not len(keys):
        return []
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]).tolist()
    return list(zip(starts, [*starts[1:], len(keys)], strict=True))


def _within(by_number: Mapping[int, V], start: int, end: int) -> dict[int, V]:
    return {number - start: value for number, value in by_number.items() if start <= number < end}
