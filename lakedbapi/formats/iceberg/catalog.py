"""`IcebergCatalog`: an open Iceberg catalog, or tables without one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NoReturn

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Capabilities, Catalog, ChangeScan, CommitResult, Snapshot
from lakedbapi.formats.iceberg.feed import table_changes
from lakedbapi.formats.iceberg.history import history
from lakedbapi.formats.iceberg.snapshot import IcebergSnapshot
from lakedbapi.formats.iceberg.sources import Namespace, Source
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.travel import point_in
from lakedbapi.model.catalog import AsOf, SchemaInfo, SnapshotInfo, TableInfo
from lakedbapi.model.changes import Changes
from lakedbapi.storage.filesystem import Storage

CAPABILITIES = Capabilities(
    table_versions=True,
    ordered_versions=False,
    metadata_tables=frozenset({"manifests", "partitions", "refs"}),
    schemas=True,
    views=True,
    travel_by_ref=True,
    change_feed=True,
)
_KEPT = 256
"""Tables whose files are kept at hand."""


class IcebergCatalog(Catalog):
    format = "iceberg"
    capabilities = CAPABILITIES

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lock = threading.RLock()
        self._numbers: dict[tuple[str, ...], int] = {}
        self._named: list[tuple[str, ...]] = []
        self._versions: OrderedDict[tuple[str, int, int], TableVersion] = OrderedDict()
        self._locations: set[str] = set()
        self._with_row_ids: set[int] = set()

    def __repr__(self) -> str:
        return f"<IcebergCatalog {self.source.name}>"

    @property
    def storage(self) -> Storage:  # type: ignore[override]
        return self.source.storage

    def latest(self) -> IcebergSnapshot:
        return IcebergSnapshot(self, None)

    def as_of(self, point: AsOf) -> IcebergSnapshot:
        return IcebergSnapshot(self, point)

    def number(self, name: tuple[str, ...]) -> int:
        """The id of a namespace (its parts) or of a table (parts and uuid): names have none of their own."""
        with self._lock:
            if name not in self._numbers:
                self._numbers[name] = len(self._named)
                self._named.append(name)
            return self._numbers[name]

    def named(self, id: int) -> Namespace:
        return self._named[id]

    def load(self, namespace: Namespace, table: str, at: AsOf | None) -> TableVersion | None:
        """The table now, or at a point of its history; None when there is none of that name."""
        loaded = self.source.load(namespace, table)
        if loaded is None:
            return None
        name = ".".join((*namespace, table))
        version = TableVersion(name, loaded.metadata, point_in(loaded.metadata, name, at), loaded.paths, loaded.storage)
        key = loaded.metadata_location, version.snapshot_id, version.point.schema.schema_id
        with self._lock:
            known = self._versions.setdefault(key, version)
            self._versions.move_to_end(key)
            while len(self._versions) > _KEPT:
                self._versions.popitem(last=False)
        return known

    def history(self, table: TableInfo | None = None) -> Sequence[SnapshotInfo]:
        if table is None:
            raise ProgrammingError("Iceberg tables have snapshots of their own: name the table, as in history('t')")
        return history(self._version_of(table, None).metadata)

    def option(self, name: str, table: TableInfo | None = None) -> str | None:
        return None if table is None else table.properties.get(name)

    def set_option(
        self, name: str, value: str | None, schema: SchemaInfo | None = None, table: TableInfo | None = None
    ) -> None:
        self._read_only()

    def number_fields(self, snapshot: Snapshot, table: TableInfo) -> TableInfo:
        self._read_only()

    def next_identity(self, snapshot: Snapshot, table: TableInfo, column: str) -> int:
        raise NotSupportedError("Iceberg tables have no identity columns")

    def has_row_ids(self, table: TableInfo) -> bool:
        """Since version 3 (spec, Row Lineage)."""
        return table.id in self._with_row_ids

    def keeps_rows(self, table: TableInfo, count: int) -> bool:
        return False

    def data_directory(self, table: TableInfo, schema: SchemaInfo) -> str:
        self._read_only()

    def commit(self, base: Snapshot, changes: Changes) -> CommitResult:
        self._read_only()

    def _read_only(self) -> NoReturn:
        raise NotSupportedError("Iceberg tables can only be read here")

    def table_changes(self, table: TableInfo, start: int | datetime, end: int | datetime) -> Sequence[ChangeScan]:
        """`end` is a snapshot id; `start` one of its ancestors, or a time."""
        assert isinstance(end, int)
        if end < 0:
            return ()
        version = self._version_of(table, AsOf(version=end))
        return table_changes(version, table, start)

    def _version_of(self, table: TableInfo, at: AsOf | None) -> TableVersion:
        *namespace, name, _ = self._named[table.id]
        version = self.load(tuple(namespace), name, at)
        if version is None:
            raise ProgrammingError(f"table {table.name} does not exist any more")
        return version

    def data_roots(self) -> Sequence[str]:
        """Where files lie shows in part only when a table is looked at."""
        with self._lock:
            return sorted({*self.source.roots(), *self._locations})

    def note(self, id: int, version: TableVersion) -> None:
        """A table was loaded under this id."""
        with self._lock:
            if version.metadata.format_version >= 3:
                self._with_row_ids.add(id)

    def reach(self, directories: Iterable[str]) -> None:
        """Files lie in these directories."""
        with self._lock:
            self._locations.update(directories)

    def close(self) -> None:
        self.source.close()
