"""`DeltaSnapshot`: the tables of a directory, each at one version."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from lakedbapi.errors import Error
from lakedbapi.formats import ids
from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.delta.contents import TableContents
from lakedbapi.formats.delta.info import check_table
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.tree import MAIN, Tree
from lakedbapi.model.catalog import AsOf, SchemaInfo, TableInfo, ViewInfo
from lakedbapi.model.scan import ColumnBounds, FileGroup, PartitionColumn, RowGroup

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog


class DeltaSnapshot(Snapshot):
    """Delta has no versions of a directory: each table is pinned, at its newest version or at `point`, when it is
    first asked for."""

    def __init__(self, catalog: DeltaCatalog, tree: Tree, point: AsOf | None = None) -> None:
        self.id = 0
        self.time = point.timestamp if point is not None and point.timestamp else datetime.now(timezone.utc)
        self._catalog = catalog
        self._tree = tree
        self._point = point
        self._pinned: dict[str, TableState] = {}
        self._contents: dict[int, TableContents] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<DeltaSnapshot of {self._catalog.storage.root}>"

    @property
    def is_one_table(self) -> bool:
        """Whether the directory is a table itself, and no place for others."""
        return self._tree.is_table

    def owner(self, name: str) -> str | None:
        """Whether the directory `name` right below the root is that of a `table` or of a `schema`."""
        if name != MAIN and name in self._tree.schemas:
            return "schema"
        is_table = self._tree.tables(MAIN).get(name) == f"{self._catalog.storage.root}{name}/"
        return "table" if is_table else None

    def schemas(self) -> Mapping[int, SchemaInfo]:
        return self._schemas

    @cached_property
    def _schemas(self) -> Mapping[int, SchemaInfo]:
        infos = [SchemaInfo(ids.number_of(path), name, path) for name, path in self._tree.schemas.items()]
        return {info.id: info for info in infos}

    def tables(self) -> Mapping[int, TableInfo]:
        """Those that can be read at this point; the others tell why when they are asked for by name."""
        found: dict[int, TableInfo] = {}
        for schema in self._schemas.values():
            for name in self.table_names(schema):
                try:
                    table = self.find_table(schema, name)
                except Error:
                    continue
                assert table is not None
                found[table.id] = table
        return found

    def table_names(self, schema: SchemaInfo) -> Sequence[str]:
        return sorted(self._tree.tables(schema.name))

    def table_of(self, id: int) -> TableInfo | None:
        contents = self._contents.get(id)
        if contents is not None:
            return contents.table
        place = self._catalog.place(id)
        schema = None if place is None else self._schemas.get(place[0])
        if place is not None and schema is not None:
            found = self.find_table(schema, place[1])
            if found is not None and found.id == id:
                return found
        return self.tables().get(id)

    def find_table(self, schema: SchemaInfo, name: str) -> TableInfo | None:
        folded = name.casefold()
        found = next((item for item in self._tree.tables(schema.name).items() if item[0].casefold() == folded), None)
        if found is None:
            return None
        own_name, root = found
        state = self._state(root)
        info = self._catalog.info(state, schema.id, own_name)
        with self._lock:
            self._contents.setdefault(info.id, self._catalog.contents(state, info))
        return info

    def pin(self, table: TableInfo, contents: TableContents) -> None:
        """Say what `table` consists of here."""
        with self._lock:
            self._contents[table.id] = contents

    def version(self, table: TableInfo) -> int:
        return self.state(table).version

    def state(self, table: TableInfo) -> TableState:
        """The state of a table that this snapshot gave."""
        return self._of(table).state

    def _state(self, root: str) -> TableState:
        with self._lock:
            state = self._pinned.get(root)
            if state is None:
                log = self._catalog.table(root)
                point = self._point
                if point is None:
                    state = log.latest()
                elif point.version is not None:
                    state = log.at_version(point.version)
                else:
                    assert point.timestamp is not None
                    state = log.at_time(point.timestamp)
                check_table(state)
                self._pinned[root] = state
            return state

    def _of(self, table: TableInfo) -> TableContents:
        return self._contents[table.id]

    def views(self) -> Mapping[int, ViewInfo]:
        return {}

    def files(self, table: TableInfo) -> pa.Table:
        return self._of(table).files

    def bounds(self, table: TableInfo, files: pa.Table, field_id: int) -> ColumnBounds | None:
        return self._of(table).bounds(files, field_id)

    def partition_values(self, table: TableInfo, files: pa.Table) -> Mapping[tuple[int, str], PartitionColumn]:
        return self._of(table).partition_values(files)

    def file_groups(self, table: TableInfo, files: pa.Table) -> Sequence[FileGroup]:
        return self._of(table).file_groups(files)

    def with_row_versions(self, table: TableInfo, group: FileGroup) -> FileGroup | None:
        return self._of(table).with_row_versions(group)

    def row_groups(self, table: TableInfo) -> Sequence[RowGroup]:
        return ()

    def delete_files(self, table: TableInfo) -> pa.Table:
        return self._of(table).delete_files
