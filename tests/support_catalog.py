"""Lakes for tests: a snapshot of files in memory, with real statistics, and contexts to run planning code in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.context import Context
from lakedbapi.engine.duckdb import DuckDBEngine
from lakedbapi.formats.base import Snapshot
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.catalog import SchemaInfo, TableInfo, ViewInfo
from lakedbapi.model.changes import RowChanges
from lakedbapi.model.scan import DATA_FILES, ColumnBounds, FileGroup, PartitionColumn, RowGroup
from lakedbapi.model.types import Field
from lakedbapi.transaction import Contents, Transaction


@dataclass
class MemorySnapshot(Snapshot):
    """One table, whose data files are `parts`; statistics are computed from them.

    `unknown` are (file number, column name) pairs without statistics. `partitions` maps (field id, transform) to the
    value of each file; a missing file number was written under another partitioning.
    """

    table: TableInfo
    parts: Sequence[pa.Table]
    unknown: frozenset[tuple[int, str]] = frozenset()
    partitions: Mapping[tuple[int, str], Mapping[int, object]] = field(default_factory=dict)
    id: int = 1
    time: datetime = datetime(2026, 1, 1, tzinfo=timezone.utc)

    def schemas(self) -> Mapping[int, SchemaInfo]:
        return {0: SchemaInfo(0, "main")}

    def tables(self) -> Mapping[int, TableInfo]:
        return {self.table.id: self.table}

    def views(self) -> Mapping[int, ViewInfo]:
        return {}

    def files(self, table: TableInfo) -> pa.Table:
        count = len(self.parts)
        columns = {
            "file_id": range(count),
            "path": [f"file{number}" for number in range(count)],
            "record_count": [part.num_rows for part in self.parts],
            "file_size_bytes": [0] * count,
            "row_id_start": [0] * count,
            "snapshot_id": [1] * count,
            "partition_id": [None] * count,
            "deleted_count": [0] * count,
        }
        return pa.table({name: pa.array(values, DATA_FILES.field(name).type) for name, values in columns.items()})

    def bounds(self, table: TableInfo, files: pa.Table, field_id: int) -> ColumnBounds | None:
        column = next(f for f in table.schema.fields if f.id == field_id)
        rows = [self._statistics(number, column) for number in files.column("file_id").to_pylist()]
        type = arrow_type(column.type)
        types = (type, type, pa.int64(), pa.int64(), pa.bool_())
        return ColumnBounds(*(pa.array(values, t) for values, t in zip(zip(*rows, strict=True), types, strict=True)))

    def _statistics(self, number: int, column: Field) -> tuple[object, ...]:
        """lower, upper, null count, value count, has NaN"""
        if (number, column.name) in self.unknown:
            return (None,) * 5
        values = self.parts[number].column(column.name).combine_chunks()
        known = values.drop_null()
        is_float = pa.types.is_floating(values.type)
        numbers = known.filter(pc.invert(pc.is_nan(known))) if is_float else known
        bounds = pc.min_max(numbers) if len(numbers) else {"min": None, "max": None}
        has_nan = len(numbers) < len(known) if is_float else None
        return (bounds["min"], bounds["max"], values.null_count, len(known), has_nan)

    def partition_values(self, table: TableInfo, files: pa.Table) -> Mapping[tuple[int, str], PartitionColumn]:
        numbers = files.column("file_id").to_pylist()
        columns = {}
        for (field_id, transform), values in self.partitions.items():
            column = next(f for f in table.schema.fields if f.id == field_id)
            type = arrow_type(column.type) if transform == "identity" else pa.int64()
            columns[field_id, transform] = PartitionColumn(
                pa.array([values.get(number) for number in numbers], type),
                pa.array([number in values for number in numbers]),
            )
        return columns

    def file_groups(self, table: TableInfo, files: pa.Table) -> Sequence[FileGroup]:
        return [FileGroup(files)]

    def row_groups(self, table: TableInfo) -> Sequence[RowGroup]:
        return ()

    def delete_files(self, table: TableInfo) -> pa.Table:
        return pa.table({})

    @property
    def contents(self) -> Contents:
        return Contents(self.table, self, RowChanges())


def context(engine: DuckDBEngine, **parameters: object) -> Context:
    """A context without catalogs, for code that only computes."""
    return Context(engine, Transaction({}), ("memory", "main"), parameters)
