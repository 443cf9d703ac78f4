"""`DeltaCatalog`: a directory of Delta tables."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Capabilities, Catalog, ChangeScan, CommitResult, Snapshot
from lakedbapi.formats.delta import identity, row_tracking
from lakedbapi.formats.delta.committer import Committer
from lakedbapi.formats.delta.contents import TableContents
from lakedbapi.formats.delta.definition import (
    FEED,
    VECTORS,
    check_altered,
    check_directory,
    check_new,
    codec,
    given_properties,
    numbered,
)
from lakedbapi.formats.delta.feed import table_changes
from lakedbapi.formats.delta.history import read_history
from lakedbapi.formats.delta.info import table_info
from lakedbapi.formats.delta.log import LOG
from lakedbapi.formats.delta.maintenance import DeltaMaintenance
from lakedbapi.formats.delta.paths import ESCAPED
from lakedbapi.formats.delta.properties import MAX_ID
from lakedbapi.formats.delta.restored import restored_schema
from lakedbapi.formats.delta.schema import physical_names
from lakedbapi.formats.delta.snapshot import DeltaSnapshot
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.formats.delta.vector_cache import VectorCache
from lakedbapi.formats.delta.writer_features import check_writable, inert_properties, is_true, mapping_mode
from lakedbapi.formats.properties import whole_number
from lakedbapi.formats.tree import Tree
from lakedbapi.model.catalog import AsOf, SchemaInfo, SnapshotInfo, TableInfo
from lakedbapi.model.changes import Changes
from lakedbapi.model.layout import FileLayout
from lakedbapi.model.scan import ROW_ID_FIELD, ROW_SNAPSHOT_FIELD
from lakedbapi.model.types import walk
from lakedbapi.storage.filesystem import Storage

CAPABILITIES = Capabilities(
    table_versions=True,
    schemas=True,
    change_feed=True,
    ddl=True,
    inserts=True,
    row_changes=True,
    delete_vectors=True,
    identity_columns=True,
    identity_options=True,
    nulls_violate_checks=True,
    generated_columns=True,
    widening_to_decimals=True,
    spark_expressions=True,
    maintenance=True,
    partition_transforms=frozenset({"identity"}),
    empty_partition_values=False,
)
_PROPERTIES = {"target_file_size": "delta.targetFileSize"}
"""What options are called among a table's properties."""
_DEFAULTS = {"delete_older_than": "2 days"}
_KEPT = 16
"""Contents of tables that are kept at hand."""


class DeltaCatalog(Catalog):
    format = "delta"
    capabilities = CAPABILITIES

    def __init__(self, storage: Storage, *, non_atomic: bool = False) -> None:
        """`non_atomic`: a transaction may change several tables, which are committed one after the other."""
        self.storage = storage
        self.capabilities = replace(CAPABILITIES, table_by_table=non_atomic)
        self._physical: dict[int, dict[int, str]] = {}
        """Names in files, by table id and field id, of tables that map columns."""
        self._newest: dict[int, int] = {}
        """The newest version that was seen, by table id: its names count where others use an id for another column."""
        self._tables: dict[str, DeltaTable] = {}
        self._places: dict[int, tuple[int, str]] = {}
        self._inert: dict[int, frozenset[str]] = {}
        """Properties that mean nothing, by table id."""
        self._contents: OrderedDict[tuple[int, int, str], TableContents] = OrderedDict()
        self.vectors = VectorCache()
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

    def forget(self, root: str) -> None:
        """The table in `root` is gone."""
        with self._lock:
            self._tables.pop(root, None)

    def info(self, state: TableState, schema_id: int, name: str) -> TableInfo:
        table = table_info(state, schema_id, name)
        with self._lock:
            self._places[table.id] = schema_id, name
            self._inert[table.id] = inert_properties(state.protocol, table.properties)
            if mapping_mode(table.properties) != "none":
                known, names = self._physical.get(table.id, {}), physical_names(state.metadata.schema_string)
                is_newest = state.version >= self._newest.get(table.id, 0)
                self._physical[table.id] = {**known, **names} if is_newest else {**names, **known}
            self._newest[table.id] = max(state.version, self._newest.get(table.id, 0))
        return table

    def place(self, id: int) -> tuple[int, str] | None:
        """Schema id and name that the table had when it was last seen."""
        with self._lock:
            return self._places.get(id)

    def physical_names(self, table: TableInfo) -> Mapping[int, str]:
        """Field id -> name in files and in the log, of the fields that have one of their own."""
        if mapping_mode(table.properties) == "none":
            return {}
        with self._lock:
            known = self._physical.setdefault(table.id, {})
            for field in walk(table.schema.fields):
                if field.id not in known and field.id > 0:
                    known[field.id] = f"col-{uuid.uuid4()}"
            return dict(known)

    def contents(self, state: TableState, table: TableInfo) -> TableContents:
        """What the table consists of at `state`, with what was loaded of it before."""
        with self._lock:
            key = table.id, state.version, table.name
            found = self._contents.get(key)
            if found is None or found.state is not state:
                found = self._contents[key] = TableContents(self.storage, state, table, self.vectors)
                while len(self._contents) > _KEPT:
                    self._contents.popitem(last=False)
            return found

    def snapshot_of(self, state: TableState, table: TableInfo) -> DeltaSnapshot:
        """A snapshot with just `table`, at `state`."""
        snapshot = self.latest()
        snapshot.pin(table, self.contents(state, table))
        return snapshot

    def history(self, table: TableInfo | None = None) -> Sequence[SnapshotInfo]:
        if table is None or table.path is None:
            raise ProgrammingError(
                "a directory of Delta tables has no versions of its own, each table has: ask history('table')"
            )
        return read_history(self.table(table.path))

    def option(self, name: str, table: TableInfo | None = None) -> str | None:
        if table is None:
            return _DEFAULTS.get(name)
        if name == "parquet_compression":
            return codec(table.properties)
        return table.properties.get(_PROPERTIES.get(name, name), _DEFAULTS.get(name))

    def set_option(
        self, name: str, value: str | None, schema: SchemaInfo | None = None, table: TableInfo | None = None
    ) -> None:
        raise NotSupportedError("options of Delta tables are properties: use ALTER TABLE … SET ('name' = 'value')")

    def settable_properties(self, table: TableInfo) -> Mapping[str, str]:
        return given_properties(table.properties)

    def number_fields(self, snapshot: Snapshot, table: TableInfo) -> TableInfo:
        highest = whole_number(self._before(snapshot, table).properties, MAX_ID, 0)
        return replace(table, schema=numbered(table.schema, highest), uuid=table.uuid or str(uuid.uuid4()))

    def _before(self, snapshot: Snapshot, table: TableInfo) -> TableInfo:
        """The table that a new one takes the place of, whose columns keep their numbers; otherwise the same."""
        schema = snapshot.schemas().get(table.schema_id)
        found = None if table.id >= 0 or schema is None else snapshot.find_table(schema, table.name)
        return found or table

    def check_schema(self, snapshot: Snapshot, schema: SchemaInfo) -> None:
        self._check_directory(snapshot, "schema", schema.name, is_at_root=True)

    def _check_directory(self, snapshot: Snapshot, kind: str, name: str, *, is_at_root: bool) -> None:
        assert isinstance(snapshot, DeltaSnapshot)
        if snapshot.is_one_table:
            raise NotSupportedError(
                f"{kind} {name!r} cannot be made in {self.storage.root}, which is a Delta table itself: connect to the "
                "directory that the table is in"
            )
        check_directory(kind, name)
        owner = snapshot.owner(name) if is_at_root else None
        if owner not in (None, kind):
            raise NotSupportedError(
                f"{kind} {name!r} cannot be made: its directory is the directory of {owner} {name!r}; choose another"
                " name"
            )

    def check_table(self, snapshot: Snapshot, old: TableInfo | None, table: TableInfo) -> None:
        assert isinstance(snapshot, DeltaSnapshot)
        committed = snapshot.table_of(table.id) if table.id >= 0 else None
        if committed is None or old is None:
            schema = snapshot.schemas().get(table.schema_id)
            is_at_root = schema is not None and schema.path == self.storage.root
            self._check_directory(snapshot, "table", table.name, is_at_root=is_at_root)
            check_new(table)
            return
        check_altered(snapshot.state(committed), old, table)
        if mapping_mode(old.properties) == "none" and mapping_mode(table.properties) != "none":
            with self._lock:
                self._physical[table.id] = {field.id: field.name for field in walk(table.schema.fields)}

    def as_restored(self, past: Snapshot, earlier: TableInfo, snapshot: Snapshot, current: TableInfo) -> TableInfo:
        assert isinstance(past, DeltaSnapshot)
        assert isinstance(snapshot, DeltaSnapshot)
        state = past.state(earlier)
        schema_string = restored_schema(state.metadata, snapshot.state(current).metadata)
        metadata = replace(state.metadata, schema_string=schema_string)
        found = table_info(replace(state, metadata=metadata), earlier.schema_id, earlier.name)
        return replace(earlier, schema=found.schema, partitioning=found.partitioning)

    def check_restored(self, snapshot: Snapshot, old: TableInfo, table: TableInfo) -> None:
        """What a table has been it can be again."""

    def check_rows_writable(self, snapshot: Snapshot, table: TableInfo) -> None:
        assert isinstance(snapshot, DeltaSnapshot)
        committed = snapshot.table_of(table.id) if table.id >= 0 else None
        if committed is not None:
            check_writable(snapshot.state(committed).protocol, table.name)

    def has_delete_vectors(self, table: TableInfo) -> bool:
        if table.id < 0:
            return is_true({VECTORS: "true", **table.properties}, VECTORS)
        return self._is_on(table, VECTORS)

    def _is_on(self, table: TableInfo, name: str) -> bool:
        with self._lock:
            inert = self._inert.get(table.id, frozenset())
        return is_true(table.properties, name) and name not in inert

    def loses_delete_vectors(self, table: TableInfo, paths: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Polars 2 does, where a path below the table's directory has characters that URIs escape."""
        below = pc.utf8_slice_codeunits(paths, len(table.path or ""))
        escaped: npt.NDArray[np.bool_] = pc.match_substring_regex(below, ESCAPED).to_numpy(zero_copy_only=False)
        return escaped

    def has_row_ids(self, table: TableInfo) -> bool:
        return bool(row_tracking.columns(table.properties))

    def stores_changes(self, table: TableInfo) -> bool:
        return self._is_on(table, FEED)

    def file_layout(self, table: TableInfo) -> FileLayout:
        names = self.physical_names(table)
        tracked = row_tracking.columns(table.properties)
        layout = FileLayout(
            prefix="part-00000-",
            suffix=f"-c000.{codec(table.properties)}",
            field_ids=bool(names),
            names=names,
            partition_columns=False,
            row_id_column=tracked.get(ROW_ID_FIELD),
        )
        return replace(layout, row_snapshot_column=tracked[ROW_SNAPSHOT_FIELD]) if tracked else layout

    def next_identity(self, snapshot: Snapshot, table: TableInfo, column: str) -> int:
        assert isinstance(snapshot, DeltaSnapshot)
        return identity.next_value(None if table.id < 0 else snapshot.state(table), table, column)

    def keeps_rows(self, table: TableInfo, count: int) -> bool:
        return False

    def data_directory(self, table: TableInfo, schema: SchemaInfo) -> str:
        return table.path or f"{schema.path or self.storage.root}{table.name}/"

    def commit(self, base: Snapshot, changes: Changes) -> CommitResult:
        assert isinstance(base, DeltaSnapshot)
        return Committer(self, base, changes).commit()

    def discard(self, paths: Sequence[str]) -> None:
        """With the directories of tables that were not made: one without files would be taken for a schema."""
        super().discard(paths)
        self.storage.remove_value_folders(paths)
        for path in paths:
            folder = path.rpartition("/")[0]
            while "=" in folder.rpartition("/")[2]:
                folder = folder.rpartition("/")[0]
            self.storage.remove_empty(folder)

    def give_up(self, directory: str) -> None:
        if not self.storage.is_directory(directory + LOG):
            self.storage.remove_empty_tree(directory)

    def table_changes(self, table: TableInfo, start: int | datetime, end: int | datetime) -> Sequence[ChangeScan]:
        assert isinstance(start, int)
        assert isinstance(end, int)
        assert table.path is not None
        log = self.table(table.path)
        return table_changes(log, log.at_version(end), table, self.vectors, start, end)

    def data_roots(self) -> Sequence[str]:
        return [self.storage.root]

    @property
    def maintenance(self) -> DeltaMaintenance:
        return DeltaMaintenance(self)
