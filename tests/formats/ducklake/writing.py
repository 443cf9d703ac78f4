"""Staged changes by hand: what the commit tests hand to a catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from compliance.peers.lakes import Place
from lakedbapi.engine.base import WriteOptions
from lakedbapi.engine.duckdb import DuckDBEngine
from lakedbapi.formats.base import CommitResult, Snapshot
from lakedbapi.formats.ducklake import DuckLakeFormat
from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog
from lakedbapi.model.arrow import arrow_schema
from lakedbapi.model.catalog import SchemaInfo, TableInfo, provisional_id
from lakedbapi.model.changes import Changes, RowChanges, StagedFile, StagedRows
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.types import Field, Scalar, Schema, Type
from lakedbapi.transaction import Contents
from lakedbapi.url import parse


def open_catalog(place: Place, **options: str) -> DuckLakeCatalog:
    """A catalog object of its own, made if there is none; `options` as in DuckLakeFormat.open."""
    target = parse(place.url, **options)
    return DuckLakeFormat().open(target.location, target.format_options, read_only=False, create=True)


def column(name: str, type: str | Type, **attributes: Any) -> Field:
    return Field(name, Scalar(type) if isinstance(type, str) else type, **attributes)


@dataclass
class Lake:
    """A catalog, and short ways to commit to it. `base` stays at the snapshot of `pin`."""

    catalog: DuckLakeCatalog
    engine: DuckDBEngine
    base: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        self.pin()

    def pin(self) -> Snapshot:
        self.base = self.catalog.latest()
        return self.base

    def table(self, name: str) -> TableInfo:
        return next(table for table in self.base.tables().values() if table.name == name)

    def commit(self, changes: Changes) -> CommitResult:
        """On the pinned snapshot, which becomes the new one."""
        result = self.catalog.commit(self.base, changes)
        self.pin()
        return result

    def create(self, name: str, *columns: Field, **attributes: Any) -> TableInfo:
        self.commit(Changes(tables=tables(self.new_table(name, *columns, **attributes))))
        return self.table(name)

    def new_table(self, name: str, *columns: Field, **attributes: Any) -> TableInfo:
        table = TableInfo(provisional_id(), 0, name, Schema(columns), **attributes)
        return self.catalog.number_fields(self.base, table)

    def written(self, table: TableInfo, rows: pa.Table, *, row_ids: bool = False) -> tuple[StagedFile, ...]:
        """A data file with `rows`; with `row_ids` their last column has them."""
        directory = self.catalog.data_directory(table, self.base.schemas()[table.schema_id])
        options = WriteOptions(directory)
        return tuple(StagedFile(file) for file in self.engine.write(rows, table.schema, options, row_ids=row_ids))

    def engine_files(
        self, table: TableInfo, schema: SchemaInfo, rows: Iterable[tuple[Any, ...]]
    ) -> tuple[StagedFile, ...]:
        """A data file of a table in a schema that is not committed yet."""
        options = WriteOptions(self.catalog.data_directory(table, schema))
        return tuple(StagedFile(file) for file in self.engine.write(arrow(table, rows), table.schema, options))

    def insert(self, name: str, *rows: tuple[Any, ...]) -> CommitResult:
        """In a data file."""
        table = self.table(name)
        return self.commit(row_changes(table, files=self.written(table, arrow(table, rows))))

    def insert_inlined(self, name: str, *rows: tuple[Any, ...]) -> CommitResult:
        table = self.table(name)
        return self.commit(row_changes(table, rows=(StagedRows(arrow(table, rows)),)))

    def delete(self, name: str, positions: Mapping[int, Iterable[int]]) -> CommitResult:
        return self.commit(self.deletion(name, positions))

    def deletion(self, name: str, positions: Mapping[int, Iterable[int]]) -> Changes:
        """Of positions by data file id."""
        deleted = {id: DeleteVector.of(list(gone)) for id, gone in positions.items()}
        return row_changes(self.table(name), deleted=deleted)

    def update(self, name: str, positions: Mapping[int, Iterable[int]], rows: Iterable[tuple[Any, ...]]) -> Changes:
        """Delete positions by data file id, and write `rows`, each with its row id as the last value, to a file."""
        table = self.table(name)
        *columns, ids = zip(*rows, strict=True)
        new = arrow(table, zip(*columns, strict=True)).append_column("_lake_row_id", pa.array(ids, pa.int64()))
        deleted = {id: DeleteVector.of(list(gone)) for id, gone in positions.items()}
        return row_changes(table, deleted=deleted, files=self.written(table, new, row_ids=True))

    def alter(self, table: str, **attributes: Any) -> CommitResult:
        return self.commit(Changes(tables=tables(replace(self.table(table), **attributes))))

    def count(self, name: str = "t") -> int:
        """Live rows of a table, as the pinned snapshot has them."""
        return Contents(self.table(name), self.base, RowChanges()).count()

    def rows_of(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a catalog table, as tuples."""
        with self.catalog.backend.read() as connection:
            source = getattr(self.catalog.backend.tables, table)
            return [tuple(row) for row in connection.execute(source.select().order_by(*source.primary_key.columns))]

    def last_changes(self) -> str:
        return str(self.rows_of("snapshot_changes")[-1][1])


def tables(*changed: TableInfo) -> dict[int, TableInfo | None]:
    return {table.id: table for table in changed}


def row_changes(table: TableInfo, **attributes: Any) -> Changes:
    return Changes(rows={table.id: RowChanges(**attributes)})


def arrow(table: TableInfo, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    schema = arrow_schema(table.schema)
    columns = list(zip(*rows, strict=True))
    return pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )
