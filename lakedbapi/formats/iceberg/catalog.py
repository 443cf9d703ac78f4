"""`IcebergCatalog`: an open Iceberg catalog, or tables without one."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pyiceberg.table.refs import MAIN_BRANCH

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Capabilities, Catalog, ChangeScan, CommitResult, Snapshot
from lakedbapi.formats.iceberg import client_fixes
from lakedbapi.formats.iceberg.committer import Committer
from lakedbapi.formats.iceberg.definition import (
    DEFAULT_VERSION,
    ENCRYPTION_KEY,
    LOCATION,
    OTHER_CODECS,
    WRITE_OPTIONS,
    check_altered,
    check_new,
    format_version,
    numbered,
    view_schema,
)
from lakedbapi.formats.iceberg.feed import table_changes
from lakedbapi.formats.iceberg.history import history
from lakedbapi.formats.iceberg.maintenance import IcebergMaintenance
from lakedbapi.formats.iceberg.names import Names
from lakedbapi.formats.iceberg.paths import Paths
from lakedbapi.formats.iceberg.places import Places
from lakedbapi.formats.iceberg.refs import IcebergRefs
from lakedbapi.formats.iceberg.snapshot import IcebergSnapshot
from lakedbapi.formats.iceberg.sources import CatalogSource, Namespace, Source
from lakedbapi.formats.iceberg.specs import TRANSFORMS, engine_partitioning
from lakedbapi.formats.iceberg.table import TableVersion, check_whole
from lakedbapi.formats.iceberg.travel import check_ref, named_ref, point_in
from lakedbapi.formats.iceberg.view_requests import has_views
from lakedbapi.formats.maintenance import Maintenance
from lakedbapi.formats.refs import Refs
from lakedbapi.model.catalog import AsOf, PartitionSpec, SchemaInfo, SnapshotInfo, TableInfo, ViewInfo
from lakedbapi.model.changes import Changes
from lakedbapi.model.layout import FileLayout
from lakedbapi.model.refs import BRANCH
from lakedbapi.model.table_options import CODEC
from lakedbapi.storage.filesystem import Storage

READING = Capabilities(
    sets_not_null=False,
    table_versions=True,
    ordered_versions=False,
    metadata_tables=frozenset({"manifests", "partitions", "refs"}),
    schemas=True,
    travel_by_ref=True,
    change_feed=True,
    way_out="open the table through its catalog, such as iceberg+rest or iceberg+sqlite, in which it can be changed",
)
WRITING = replace(
    READING,
    ddl=True,
    inserts=True,
    row_changes=True,
    delete_vectors=True,
    row_ids=True,
    constant_defaults=True,
    column_order=True,
    maintenance=True,
    partition_transforms=TRANSFORMS,
    way_out=Capabilities.way_out,
    way_out_of_views="use a REST catalog whose server keeps views, or a catalog of another format, such as ducklake",
)
_DEFAULTS = {
    CODEC: "zstd",
    "delete_older_than": "3 days",
    "hive_file_pattern": "false",  # Only the metadata tells the partition of a file.
}
_KEPT = 256
"""Tables whose files are kept at hand."""


class IcebergCatalog(Catalog):
    format = "iceberg"
    capabilities = READING

    def __init__(self, source: Source, *, non_atomic: bool = False) -> None:
        """`non_atomic`: a transaction may change several tables, which are committed one after the other."""
        self.source = source
        if isinstance(source, CatalogSource):
            client_fixes.allow_version_3()
            views = has_views(source.client)
            self.capabilities = replace(WRITING, table_by_table=non_atomic, views=views, typed_views=views)
        self.names = Names()
        self._lock = threading.RLock()
        self._numbers: dict[tuple[str, ...], int] = {}
        self._named: list[tuple[str, ...]] = []
        self._versions: OrderedDict[tuple[str, int, int, str | None], TableVersion] = OrderedDict()
        self._locations: set[str] = set()
        self._new_locations: dict[str, str] = {}
        """Places of tables that were not there when their rows were written, by uuid."""

    def __repr__(self) -> str:
        return f"<IcebergCatalog {self.source.name}>"

    @property
    def storage(self) -> Storage:  # type: ignore[override]
        return self.source.storage

    def latest(self) -> IcebergSnapshot:
        return IcebergSnapshot(self, None)

    def as_of(self, point: AsOf) -> IcebergSnapshot:
        return IcebergSnapshot(self, point)

    def snapshot_of(self, version: TableVersion, table: TableInfo) -> IcebergSnapshot:
        """A snapshot in which `table` is this version of it."""
        snapshot = IcebergSnapshot(self, None)
        snapshot.pin(table, version)
        return snapshot

    def number(self, name: tuple[str, ...]) -> int:
        """The id of a namespace (its parts) or of a table (parts and uuid): names have none of their own."""
        with self._lock:
            if name not in self._numbers:
                self._numbers[name] = len(self._named)
                self._named.append(name)
            return self._numbers[name]

    def named(self, id: int) -> Namespace:
        return self._named[id]

    def namespace(self, schema: SchemaInfo) -> Namespace:
        """The parts of the name of a schema, which may be a new one."""
        return self.named(schema.id) if schema.id >= 0 else tuple(schema.name.split("."))

    def load(self, namespace: Namespace, table: str, at: AsOf | None) -> TableVersion | None:
        """The table now, or at a point of its history; None when there is none of that name. The name may be one of a
        branch or tag, `t.branch_b`."""
        name = ".".join((*namespace, table))
        branch: str | None = MAIN_BRANCH
        loaded = self.source.load(namespace, table)
        named = named_ref(table) if loaded is None else None
        if named is not None:
            table, kind, ref = named
            loaded = self.source.load(namespace, table)
            if loaded is None or at is not None:
                return None
            check_ref(loaded.metadata, name, kind, ref)
            at, branch = AsOf(ref=ref), ref if kind == BRANCH else None
        if loaded is None:
            return None
        if ENCRYPTION_KEY in loaded.metadata.properties:
            raise NotSupportedError(
                f"table {name} is encrypted ({ENCRYPTION_KEY}), which is neither read nor written here: use Spark"
            )
        point = point_in(loaded.metadata, name, at)
        version = TableVersion(name, loaded.metadata, point, loaded.paths, loaded.storage, branch)
        key = loaded.metadata_location, version.snapshot_id, version.point.schema.schema_id, branch
        with self._lock:
            known = self._versions.setdefault(key, version)
            self._versions.move_to_end(key)
            while len(self._versions) > _KEPT:
                self._versions.popitem(last=False)
        return known

    def load_whole(self, namespace: Namespace, table: str) -> TableVersion | None:
        """The table now; NotSupportedError for one of its branches or tags."""
        version = self.load(namespace, table, None)
        if version is not None:
            check_whole(version, "maintenance")
        return version

    def history(self, table: TableInfo | None = None) -> Sequence[SnapshotInfo]:
        if table is None:
            raise ProgrammingError("Iceberg tables have snapshots of their own: name the table, as in history('t')")
        return history(self._version_of(table, None).metadata)

    def option(self, name: str, table: TableInfo | None = None) -> str | None:
        if table is None:
            return _DEFAULTS.get(name)
        found = table.properties.get(WRITE_OPTIONS.get(name, name), _DEFAULTS.get(name))
        return OTHER_CODECS.get(found, found) if name == CODEC and found is not None else found

    def set_option(
        self, name: str, value: str | None, schema: SchemaInfo | None = None, table: TableInfo | None = None
    ) -> None:
        raise NotSupportedError("options of Iceberg tables are properties: use ALTER TABLE … SET ('name' = 'value')")

    def settable_properties(self, table: TableInfo) -> Mapping[str, str]:
        return {name: value for name, value in table.properties.items() if name != LOCATION}

    def write_mode(self, table: TableInfo, kind: str) -> str | None:
        return table.properties.get(f"write.{kind}.mode")

    def number_fields(self, snapshot: Snapshot, table: TableInfo) -> TableInfo:
        assert isinstance(snapshot, IcebergSnapshot)
        before = snapshot.table_of(table.id) if table.id >= 0 else self._replaced(snapshot, table)
        highest = 0 if before is None else snapshot.version_of(before).metadata.last_column_id
        return replace(table, schema=numbered(table.schema, highest), uuid=table.uuid or str(uuid.uuid4()))

    def _replaced(self, snapshot: IcebergSnapshot, table: TableInfo) -> TableInfo | None:
        """The table whose place a new one takes."""
        schema = snapshot.schemas().get(table.schema_id)
        return None if schema is None else snapshot.find_table(schema, table.name)

    def check_table(self, snapshot: Snapshot, old: TableInfo | None, table: TableInfo) -> None:
        assert isinstance(snapshot, IcebergSnapshot)
        if table.id >= 0:
            check_whole(snapshot.version_of(table), "ALTER TABLE")
        committed = snapshot.table_of(table.id) if table.id >= 0 else None
        if committed is None or old is None:
            check_new(table)
        else:
            check_altered(snapshot.version_of(committed).metadata, old, table)

    def check_view(self, view: ViewInfo) -> None:
        view_schema(view)

    def check_writable(self) -> None:
        if not self.capabilities.ddl:
            raise NotSupportedError(
                f"{self.source.name}: Iceberg tables without a catalog can only be read, since two writers would "
                "overwrite each other: register the table in a catalog, such as REST or SQLite, and open it there"
            )

    def check_rows_writable(self, snapshot: Snapshot, table: TableInfo) -> None:
        assert isinstance(snapshot, IcebergSnapshot)
        if table.id >= 0 and snapshot.version_of(table).branch is None:
            raise NotSupportedError(
                f"{table.name} is a tag, whose rows never change: ALTER TABLE … CREATE BRANCH b AS OF VERSION … makes "
                "a branch of its snapshot"
            )
        committed = snapshot.table_of(table.id) if table.id >= 0 else None
        if committed is not None and committed.name != table.name:
            raise NotSupportedError(
                f"a transaction cannot change the rows of the Iceberg table {committed.name} and rename it to "
                f"{table.name}, as the catalog does one after the other: commit before the second of the two"
            )
        if format_version(table.properties) < DEFAULT_VERSION:
            raise NotSupportedError(
                f"table {table.name} has format version 1, in which rows cannot be changed here: ALTER TABLE "
                f"{table.name} SET ('format-version' = '2') first"
            )

    def next_identity(self, snapshot: Snapshot, table: TableInfo, column: str) -> int:
        raise NotSupportedError("Iceberg tables have no identity columns")

    def has_row_ids(self, table: TableInfo) -> bool:
        """Since version 3 (spec, Row Lineage)."""
        return format_version(table.properties) >= 3

    def file_partitioning(self, table: TableInfo) -> PartitionSpec | None:
        return engine_partitioning(table.partitioning)

    def file_layout(self, table: TableInfo) -> FileLayout:
        return FileLayout(
            prefix="data-",
            row_id_column="_row_id" if self.has_row_ids(table) else None,
            row_snapshot_column="_last_updated_sequence_number",
        )

    def keeps_rows(self, table: TableInfo, count: int) -> bool:
        return False

    def data_directory(self, table: TableInfo, schema: SchemaInfo) -> str:
        location = table.path or self.location(self.namespace(schema), table)
        directory = Paths().full(Places.at(location, table.properties).data) + "/"
        self.reach([directory])
        return directory

    def location(self, namespace: Namespace, table: TableInfo) -> str:
        """The place of a table that is new, as its metadata will have it, without a slash at the end."""
        assert table.uuid is not None
        with self._lock:
            found = self._new_locations.get(table.uuid) or table.properties.get(LOCATION)
        if found is None:
            assert isinstance(self.source, CatalogSource)
            found = self.source.new_location(namespace, table.name)
        with self._lock:
            return self._new_locations.setdefault(table.uuid, found.rstrip("/"))

    def commit(self, base: Snapshot, changes: Changes) -> CommitResult:
        self.check_writable()
        assert isinstance(base, IcebergSnapshot)
        assert isinstance(self.source, CatalogSource)
        return Committer(self, self.source, base, changes).commit()

    @property
    def maintenance(self) -> Maintenance:
        return IcebergMaintenance(self) if self.capabilities.maintenance else super().maintenance

    @property
    def refs(self) -> Refs:
        self.check_writable()
        return IcebergRefs(self)

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

    def reach(self, directories: Iterable[str]) -> None:
        """Files lie in these directories."""
        with self._lock:
            self._locations.update(directories)

    def close(self) -> None:
        self.source.close()
