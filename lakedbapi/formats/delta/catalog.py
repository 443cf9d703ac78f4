"""`DeltaCatalog`: a directory of Delta tables."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Capabilities, Catalog, ChangeScan, CommitResult, Snapshot
from lakedbapi.formats.delta.contents import TableContents
from lakedbapi.formats.delta.feed import table_changes
from lakedbapi.formats.delta.history import read_history
from lakedbapi.formats.delta.info import table_info
from lakedbapi.formats.delta.log import LOG
from lakedbapi.formats.delta.snapshot import DeltaSnapshot
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.formats.delta.vector_cache import VectorCache
from lakedbapi.formats.tree import Tree
from lakedbapi.model.catalog import AsOf, SchemaInfo, SnapshotInfo, TableInfo
from lakedbapi.model.changes import Changes
from lakedbapi.storage.filesystem import Storage

CAPABILITIES = Capabilities(
    table_versions=True,
    schemas=True,
    change_feed=True,
    partition_transforms=frozenset({"identity"}),
)
_KEPT = 16
"""Contents of tables that are kept at hand."""


class DeltaCatalog(Catalog):
    format = "delta"
    capabilities = CAPABILITIES

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._tables: dict[str, DeltaTable] = {}
        self._contents: OrderedDict[tuple[int, int, str], TableContents] = OrderedDict()
        self._vectors = VectorCache()
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<DeltaCatalog {self.storage.root}>"

    def latest(self) -> DeltaSnapshot:
        return DeltaSnapshot(self, Tree(self.storage, LOG))

    def as_of(self, point: AsOf) -> DeltaSnapshot:
        if point.ref is not None:
            raise NotSupportedError(
                f"Delta tables have no branches or tags such as {point.ref!r}; use a version or a timestamp"
            )
        return DeltaSnapshot(self, Tree(self.storage, LOG), point)

    def table(self, root: str) -> DeltaTable:
        """The table in the directory `root`, ending in `/`."""
        with self._lock:
            return self._tables.setdefault(root, DeltaTable(self.storage, root))

    def info(self, state: TableState, schema_id: int, name: str) -> TableInfo:
        return table_info(state, schema_id, name)

    def contents(self, state: TableState, table: TableInfo) -> TableContents:
        """What the table consists of at `state`, with what was loaded of it before."""
        with self._lock:
            key = table.id, state.version, table.name
            found = self._contents.get(key)
            if found is None or found.state is not state:
                found = self._contents[key] = TableContents(self.storage, state, table, self._vectors)
                while len(self._contents) > _KEPT:
                    self._contents.popitem(last=False)
            return found

    def history(self, table: TableInfo | None = None) -> Sequence[SnapshotInfo]:
        if table is None or table.path is None:
            raise ProgrammingError(
                "a directory of Delta tables has no versions of its own, each table has: ask history('table')"
            )
        return read_history(self.table(table.path))

    def option(self, name: str, table: TableInfo | None = None) -> str | None:
        return None if table is None else table.properties.get(name)

    def set_option(
        self, name: str, value: str | None, schema: SchemaInfo | None = None, table: TableInfo | None = None
    ) -> None:
        raise _read_only()

    def number_fields(self, snapshot: Snapshot, table: TableInfo) -> TableInfo:
        raise _read_only()

    def next_identity(self, snapshot: Snapshot, table: TableInfo, column: str) -> int:
        raise _read_only()

    def keeps_rows(self, table: TableInfo, count: int) -> bool:
        return False

    def data_directory(self, table: TableInfo, schema: SchemaInfo) -> str:
        return table.path or f"{schema.path or self.storage.root}{table.name}/"

    def commit(self, base: Snapshot, changes: Changes) -> CommitResult:
        raise _read_only()

    def table_changes(self, table: TableInfo, start: int | datetime, end: int | datetime) -> Sequence[ChangeScan]:
        assert isinstance(start, int)
        assert isinstance(end, int)
        assert table.path is not None
        log = self.table(table.path)
        return table_changes(log, log.at_version(end), table, self._vectors, start, end)

    def data_roots(self) -> Sequence[str]:
        return [self.storage.root]


def _read_only() -> NotSupportedError:
    return NotSupportedError("Delta tables can be read here, not changed")
