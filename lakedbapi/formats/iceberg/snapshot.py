"""`IcebergSnapshot`: the tables of a catalog, each pinned when it is first asked for."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.view.metadata import ViewMetadata

from lakedbapi.errors import Error
from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.iceberg.inspect import METADATA_TABLES
from lakedbapi.formats.iceberg.sources import Namespace
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.travel import named_ref
from lakedbapi.formats.iceberg.views import view_info
from lakedbapi.formats.tree import MAIN
from lakedbapi.model.catalog import AsOf, SchemaInfo, TableInfo, ViewInfo
from lakedbapi.model.refs import BRANCH
from lakedbapi.model.scan import ColumnBounds, FileGroup, PartitionColumn, RowGroup

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.catalog import IcebergCatalog


class IcebergSnapshot(Snapshot):
    """`point` None: each table's newest snapshot."""

    id = 0

    def __init__(self, catalog: IcebergCatalog, point: AsOf | None) -> None:
        self.time = datetime.now(timezone.utc) if point is None or point.timestamp is None else point.timestamp
        self._catalog = catalog
        self._point = point
        self._versions: dict[int, TableVersion] = {}
        self._infos: dict[tuple[int, str], TableInfo | None] = {}
        self._namespaces: set[Namespace] = set()
        """Those that were seen, of which a statement asks several times."""
        self._names: dict[int, Mapping[str, str]] = {}
        self._view_names: dict[int, Mapping[str, str]] = {}
        self._views: dict[tuple[int, str], ViewInfo | None] = {}
        self._found_views: dict[int, tuple[ViewInfo, ViewMetadata]] = {}
        self._lock = threading.RLock()

    def schemas(self) -> Mapping[int, SchemaInfo]:
        return self._schemas

    @cached_property
    def _schemas(self) -> Mapping[int, SchemaInfo]:
        names = list(self._catalog.source.namespaces())
        self._catalog.names.keep_namespaces(names)
        if self._catalog.capabilities.ddl and (MAIN,) not in names:
            # It comes to be with its first table.
            names.append((MAIN,))
            self._names[self._catalog.number((MAIN,))] = {}
            self._view_names[self._catalog.number((MAIN,))] = {}
        return {self._catalog.number(name): SchemaInfo(self._catalog.number(name), ".".join(name)) for name in names}

    def find_schema(self, name: str) -> SchemaInfo | None:
        namespace = self._catalog.names.namespace(name)
        if "_schemas" in self.__dict__ or namespace is None:
            return super().find_schema(name)
        if namespace not in self._namespaces:
            if not self._catalog.source.has_namespace(namespace):
                return super().find_schema(name)
            self._namespaces.add(namespace)
        return SchemaInfo(self._catalog.number(namespace), ".".join(namespace))

    def tables(self) -> Mapping[int, TableInfo]:
        """Those that can be read at this point: what is wrong with another one shows when it is asked for."""
        found: dict[int, TableInfo] = {}
        for schema in self.schemas().values():
            for name in self._names_in(schema).values():
                try:
                    table = self.find_table(schema, name)
                except Error:
                    continue
                if table is not None:
                    found[table.id] = table
        return found

    def table_of(self, id: int) -> TableInfo | None:
        known = next((info for info in self._infos.values() if info is not None and info.id == id), None)
        if known is not None or id < 0:
            return known
        *namespace, name, _ = self._catalog.named(id)
        schema = self.find_schema(".".join(namespace))
        found = None if schema is None else self.find_table(schema, name)
        return found if found is not None and found.id == id else self.tables().get(id)

    def find_table(self, schema: SchemaInfo, name: str) -> TableInfo | None:
        known = None if schema.id in self._names else self._catalog.names.table(schema.id, name)
        found = None if known is None else self._load(schema, known)
        if found is not None:
            return found
        real = self._names_in(schema).get(name.casefold())
        if real is not None:
            return self._load(schema, real)
        named = named_ref(name)
        return None if named is None else self._find_ref(schema, *named)

    def _find_ref(self, schema: SchemaInfo, table: str, kind: str, ref: str) -> TableInfo | None:
        """What is `table.branch_b` or `table.tag_b` to a statement."""
        found = self.find_table(schema, table)
        if found is None or (kind, ref) == (BRANCH, MAIN_BRANCH):
            return found
        return self._load(schema, f"{found.name}.{kind}_{ref}")

    def _load(self, schema: SchemaInfo, real: str) -> TableInfo | None:
        key = schema.id, real
        with self._lock:
            if key not in self._infos:
                version = self._catalog.load(self._namespace(schema), real, self._point)
                if version is None:
                    self._infos[key] = None
                else:
                    id = self._catalog.number((*self._namespace(schema), real, str(version.metadata.table_uuid)))
                    self._versions[id] = version
                    self._infos[key] = version.info(id, schema.id, real)
            return self._infos[key]

    def table_names(self, schema: SchemaInfo) -> Sequence[str]:
        return sorted(self._names_in(schema).values())

    def views(self) -> Mapping[int, ViewInfo]:
        found: dict[int, ViewInfo] = {}
        for schema in self.schemas().values():
            for name in self._view_names_in(schema):
                view = self.find_view(schema, name)
                if view is not None:
                    found[view.id] = view
        return found

    def find_view(self, schema: SchemaInfo, name: str) -> ViewInfo | None:
        real = self._view_names_in(schema).get(name.casefold())
        if real is None:
            return None
        key = schema.id, real
        with self._lock:
            if key not in self._views:
                self._views[key] = self._load_view(schema, real)
            return self._views[key]

    def _load_view(self, schema: SchemaInfo, real: str) -> ViewInfo | None:
        namespace = self._namespace(schema)
        metadata = self._catalog.source.load_view(namespace, real)
        if metadata is None:
            return None
        id = self._catalog.number((*namespace, real, metadata.view_uuid))
        info = view_info(id, schema, real, metadata)
        self._found_views[id] = info, metadata
        return info

    def view_of(self, id: int) -> tuple[ViewInfo, ViewMetadata]:
        """A view that was found."""
        return self._found_views[id]

    def _view_names_in(self, schema: SchemaInfo) -> Mapping[str, str]:
        with self._lock:
            if schema.id not in self._view_names:
                names = self._catalog.source.views(self._namespace(schema))
                self._view_names[schema.id] = {name.casefold(): name for name in names}
            return self._view_names[schema.id]

    def version(self, table: TableInfo) -> int:
        return self.version_of(table).snapshot_id

    def version_of(self, table: TableInfo) -> TableVersion:
        """What was loaded as `table`."""
        return self._versions[table.id]

    def pin(self, table: TableInfo, version: TableVersion) -> None:
        """Take `version` for the table."""
        with self._lock:
            self._versions[table.id] = version

    def files(self, table: TableInfo) -> pa.Table:
        version = self.version_of(table)
        self._catalog.reach(version.directories)
        return version.files

    def bounds(self, table: TableInfo, files: pa.Table, field_id: int) -> ColumnBounds | None:
        return self.version_of(table).bounds(table, files, field_id)

    def partition_values(self, table: TableInfo, files: pa.Table) -> Mapping[tuple[int, str], PartitionColumn]:
        return self.version_of(table).partition_values(table, files)

    def file_groups(self, table: TableInfo, files: pa.Table) -> Sequence[FileGroup]:
        return self.version_of(table).file_groups(table, files) if files.num_rows else ()

    def with_row_versions(self, table: TableInfo, group: FileGroup) -> FileGroup | None:
        return self.version_of(table).with_sequence_numbers(group)

    def row_groups(self, table: TableInfo) -> Sequence[RowGroup]:
        return ()

    def metadata_table(self, table: TableInfo, name: str) -> pa.Table:
        return METADATA_TABLES[name](self.version_of(table))

    def delete_files(self, table: TableInfo) -> pa.Table:
        return self.version_of(table).delete_files()

    def _namespace(self, schema: SchemaInfo) -> Namespace:
        return self._catalog.named(schema.id)

    def _names_in(self, schema: SchemaInfo) -> Mapping[str, str]:
        """The tables' names by their casefolded ones. Of two that differ in case only the first counts."""
        with self._lock:
            if schema.id not in self._names:
                names = sorted(self._catalog.source.tables(self._namespace(schema)), reverse=True)
                self._names[schema.id] = {name.casefold(): name for name in names}
                self._catalog.names.keep_tables(schema.id, self._names[schema.id])
            return self._names[schema.id]
