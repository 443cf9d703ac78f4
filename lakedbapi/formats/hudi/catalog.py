"""`HudiCatalog`: a directory of Hudi tables."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Capabilities, Catalog, ChangeScan, CommitResult, Snapshot
from lakedbapi.formats.hudi.commits import Commit
from lakedbapi.formats.hudi.schema import META_COLUMNS
from lakedbapi.formats.hudi.snapshot import HudiSnapshot
from lakedbapi.formats.hudi.table import HudiTable
from lakedbapi.formats.hudi.timeline import version_of
from lakedbapi.formats.tree import Tree
from lakedbapi.model.catalog import AsOf, SchemaInfo, SnapshotInfo, TableInfo
from lakedbapi.model.changes import Changes
from lakedbapi.storage.filesystem import Storage

MARKER = ".hoodie"
WAY_OUT = (
    "write it with Spark or Flink, or copy it with CREATE TABLE … AS SELECT into a catalog of format ducklake, delta "
    "or iceberg and change it there"
)
CAPABILITIES = Capabilities(table_versions=True, hidden_columns=frozenset(META_COLUMNS), way_out=WAY_OUT)


class HudiCatalog(Catalog):
    """`options` are those of the filesystem, for hudi-rs. `read_optimized`: leave log files out. `meta_columns`: show
    the columns that Hudi adds."""

    format = "hudi"
    capabilities = CAPABILITIES

    def __init__(
        self, storage: Storage, options: Mapping[str, Any], *, read_optimized: bool = False, meta_columns: bool = False
    ) -> None:
        self.storage = storage
        self.read_optimized = read_optimized
        self.meta_columns = meta_columns
        self._options = options
        self._tables: dict[str, HudiTable] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<HudiCatalog {self.storage.root}>"

    def latest(self) -> HudiSnapshot:
        return HudiSnapshot(self, Tree(self.storage, MARKER))

    def as_of(self, point: AsOf) -> HudiSnapshot:
        if point.ref is not None:
            raise NotSupportedError(f"Hudi tables have no branches or tags such as {point.ref!r}; give an instant")
        return HudiSnapshot(self, Tree(self.storage, MARKER), point)

    def table(self, root: str) -> HudiTable:
        """The table in the directory `root` (ending in `/`) as it is now."""
        found = HudiTable.open(self.storage, self._options, root, self._tables.get(root))
        with self._lock:
            self._tables[root] = found
        return found

    def history(self, table: TableInfo | None = None) -> Sequence[SnapshotInfo]:
        if table is None:
            raise ProgrammingError("Hudi tables have versions of their own, their directory has none: history('table')")
        assert table.path is not None
        found = self.table(table.path)
        return [_snapshot_info(found, commit, table.name) for commit in found.commits()]

    def option(self, name: str, table: TableInfo | None = None) -> str | None:
        return None if table is None else table.properties.get(name)

    def set_option(
        self, name: str, value: str | None, schema: SchemaInfo | None = None, table: TableInfo | None = None
    ) -> None:
        raise _read_only(f"set_option({name!r})")

    def number_fields(self, snapshot: Snapshot, table: TableInfo) -> TableInfo:
        raise _read_only(f"changing {table.name}")

    def next_identity(self, snapshot: Snapshot, table: TableInfo, column: str) -> int:
        raise _read_only(f"INSERT INTO {table.name}")

    def keeps_rows(self, table: TableInfo, count: int) -> bool:
        return False

    def data_directory(self, table: TableInfo, schema: SchemaInfo) -> str:
        raise _read_only(f"writing {table.name}")

    def commit(self, base: Snapshot, changes: Changes) -> CommitResult:
        raise _read_only("COMMIT")

    def table_changes(self, table: TableInfo, start: int | datetime, end: int | datetime) -> Sequence[ChangeScan]:
        raise NotSupportedError(f"{table.name}: Hudi tables have no exact change feed here; compare two versions")

    def data_roots(self) -> Sequence[str]:
        return [self.storage.root]


def _snapshot_info(table: HudiTable, commit: Commit, name: str) -> SnapshotInfo:
    operation = commit.operation or commit.instant.action
    return SnapshotInfo(
        version_of(commit.instant.begun),
        table.time(commit.instant),
        changes={operation.lower(): (name,)},
        operation=operation,
        metrics={metric: str(value) for metric, value in commit.sums.items()},
    )


def _read_only(statement: str) -> NotSupportedError:
    return NotSupportedError(f"{statement}: tables of format 'hudi' can only be read here; {WAY_OUT}")
