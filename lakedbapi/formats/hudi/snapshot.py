"""`HudiSnapshot`: the tables of a directory, each at one of its commits."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import Error
from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.hudi.partitions import partition_columns
from lakedbapi.formats.hudi.properties import Properties
from lakedbapi.formats.hudi.schema import meta_fields
from lakedbapi.formats.hudi.slices import FILES, LOG_FILES, Slices
from lakedbapi.formats.hudi.table import HudiTable
from lakedbapi.formats.hudi.timeline import Instant, version_of
from lakedbapi.formats.ids import number_of
from lakedbapi.formats.tree import Tree
from lakedbapi.model.catalog import (
    AsOf,
    Constraint,
    PartitionField,
    PartitionSpec,
    SchemaInfo,
    TableInfo,
    ViewInfo,
)
from lakedbapi.model.scan import NAME, ColumnBounds, FileGroup, PartitionColumn, RowGroup
from lakedbapi.model.types import Schema

if TYPE_CHECKING:
    from lakedbapi.formats.hudi.catalog import HudiCatalog


class Pinned(NamedTuple):
    """A table as this snapshot sees it. `at` is None for a table without commits."""

    table: HudiTable
    at: Instant | None
    info: TableInfo


class HudiSnapshot(Snapshot):
    """Each table is pinned, at its newest commit or at `point`, when it is first asked for."""

    id = 0

    def __init__(self, catalog: HudiCatalog, tree: Tree, point: AsOf | None = None) -> None:
        self.time = datetime.now(timezone.utc) if point is None or point.timestamp is None else point.timestamp
        self._catalog = catalog
        self._tree = tree
        self._point = point
        self._pinned: dict[int, Pinned] = {}
        self._merged: dict[tuple[int, int], RowGroup] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<HudiSnapshot of {self._catalog.storage.root}>"

    def schemas(self) -> Mapping[int, SchemaInfo]:
        return self._schemas

    @cached_property
    def _schemas(self) -> Mapping[int, SchemaInfo]:
        infos = [SchemaInfo(number_of(path, name), name, path) for name, path in self._tree.schemas.items()]
        return {info.id: info for info in infos}

    def tables(self) -> Mapping[int, TableInfo]:
        """Those that can be read at this point; the others tell why when they are asked for by name."""
        found: dict[int, TableInfo] = {}
        for schema in self._schemas.values():
            for name, root in self._tree.tables(schema.name).items():
                try:
                    info = self._pin(schema, name, root).info
                except Error:
                    continue
                found[info.id] = info
        return found

    def views(self) -> Mapping[int, ViewInfo]:
        return {}

    def table_of(self, id: int) -> TableInfo | None:
        pinned = self._pinned.get(id)
        return self.tables().get(id) if pinned is None else pinned.info

    def find_table(self, schema: SchemaInfo, name: str) -> TableInfo | None:
        folded = name.casefold()
        tables = self._tree.tables(schema.name)
        found = next(((own, root) for own, root in tables.items() if own.casefold() == folded), None)
        return None if found is None else self._pin(schema, *found).info

    def version(self, table: TableInfo) -> int:
        at = self._pinned[table.id].at
        return 0 if at is None else version_of(at.begun)

    def pinned(self, table: TableInfo) -> Pinned:
        """How the snapshot sees a table that it gave."""
        return self._pinned[table.id]

    def files(self, table: TableInfo) -> pa.Table:
        slices = self._slices(table)
        return FILES.empty_table() if slices is None else slices.files

    def bounds(self, table: TableInfo, files: pa.Table, field_id: int) -> ColumnBounds | None:
        return None

    def partition_values(self, table: TableInfo, files: pa.Table) -> Mapping[tuple[int, str], PartitionColumn]:
        return partition_columns(self._pinned[table.id].table.properties, table.schema, files.column("partition"))

    def file_groups(self, table: TableInfo, files: pa.Table) -> Sequence[FileGroup]:
        plain = files.filter(pc.invert(files.column("is_merged")))
        return [FileGroup(plain, match=NAME, embedded=frozenset())] if plain.num_rows else []

    def merged_rows(self, table: TableInfo, files: pa.Table) -> Sequence[RowGroup]:
        slices = self._slices(table)
        wanted = files.filter(files.column("is_merged")).column("file_id").to_pylist()
        if slices is None:
            return []
        columns = Schema((*table.schema.fields, *table.hidden))
        new = [number for number in wanted if (table.id, number) not in self._merged]
        with ThreadPoolExecutor() as pool:
            for number, rows in zip(new, pool.map(lambda number: slices.read(number, columns), new), strict=True):
                path = slices.files.column("path")[number].as_py()
                self._merged[table.id, number] = RowGroup(f"slice:{number}", rows, path=path)
        return [self._merged[table.id, number] for number in wanted]

    def row_groups(self, table: TableInfo) -> Sequence[RowGroup]:
        return ()

    def delete_files(self, table: TableInfo) -> pa.Table:
        slices = self._slices(table)
        return LOG_FILES.empty_table() if slices is None else slices.log_files()

    def _slices(self, table: TableInfo) -> Slices | None:
        pinned = self._pinned[table.id]
        if pinned.at is None:
            return None
        return pinned.table.slices(pinned.at, read_optimized=self._catalog.read_optimized)

    def _pin(self, schema: SchemaInfo, name: str, root: str) -> Pinned:
        id = number_of(root)
        with self._lock:
            found = self._pinned.get(id)
            if found is None:
                table = self._catalog.table(root)
                at = table.at(self._point)
                info = _info(id, schema, name, table.properties, table.schema(at))
                if self._catalog.meta_columns:
                    info = replace(info, schema=Schema((*info.hidden, *info.schema.fields)), hidden=())
                found = self._pinned[id] = Pinned(table, at, info)
            return found


def _info(id: int, schema: SchemaInfo, name: str, properties: Properties, columns: Schema) -> TableInfo:
    fields = [columns.get(column) for column in properties.partition_columns]
    partitioning = None
    if properties.has_plain_partitions and None not in fields:
        keys = tuple(PartitionField(field.id, "identity", field.name) for field in fields if field is not None)
        partitioning = PartitionSpec(0, keys)
    return TableInfo(
        id,
        schema.id,
        name,
        columns,
        path=properties.root,
        partitioning=partitioning,
        constraints=_keys(properties, columns),
        properties=properties.values,
        hidden=meta_fields(columns) if properties.has_meta_columns else (),
    )


def _keys(properties: Properties, columns: Schema) -> tuple[Constraint, ...]:
    """The record key, which is unique within a partition."""
    names = dict.fromkeys((*properties.record_key, *properties.partition_columns))
    if not properties.record_key or any(columns.get(name) is None for name in names):
        return ()
    return (Constraint("primary key", None, tuple(names)),)
