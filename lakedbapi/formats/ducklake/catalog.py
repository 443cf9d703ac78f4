"""`DuckLakeCatalog`: an open DuckLake."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from sqlalchemy import delete, func, insert, select, true
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select

from lakedbapi.errors import NotSupportedError, OperationalError, ProgrammingError
from lakedbapi.formats.base import Capabilities, Catalog, ChangeScan, CommitResult, Snapshot
from lakedbapi.formats.ducklake import tags
from lakedbapi.formats.ducklake.allowed import check_buckets, check_columns, check_parameters
from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.ducklake.columns import Numbering, flatten
from lakedbapi.formats.ducklake.commit import Committer
from lakedbapi.formats.ducklake.delete_files import DeleteFormat
from lakedbapi.formats.ducklake.delete_reader import DeleteReader
from lakedbapi.formats.ducklake.feed import table_changes
from lakedbapi.formats.ducklake.file_rows import FileRows
from lakedbapi.formats.ducklake.files import foreign_directories
from lakedbapi.formats.ducklake.history import TableChanges, read_history
from lakedbapi.formats.ducklake.ids import uuid7
from lakedbapi.formats.ducklake.inlined import InlinedTable, can_inline
from lakedbapi.formats.ducklake.maintenance import DuckLakeMaintenance
from lakedbapi.formats.ducklake.metadata import Tables
from lakedbapi.formats.ducklake.migrate import migrate
from lakedbapi.formats.ducklake.objects import Objects, load_objects
from lakedbapi.formats.ducklake.options import Options, checked
from lakedbapi.formats.ducklake.paths import folder
from lakedbapi.formats.ducklake.snapshot import DuckLakeSnapshot
from lakedbapi.formats.ducklake.versions import DEFAULT, check_version, has_1_1
from lakedbapi.model.catalog import AsOf, MacroInfo, OptionInfo, SchemaInfo, SnapshotInfo, TableInfo
from lakedbapi.model.changes import Changes
from lakedbapi.model.layout import OWN_LAYOUT, FileLayout
from lakedbapi.model.types import UNASSIGNED
from lakedbapi.storage.filesystem import Storage

CAPABILITIES = Capabilities(
    multi_table_commit=True,
    schemas=True,
    views=True,
    macros=True,
    ddl=True,
    row_changes=True,
    inserts=True,
    delete_vectors=True,
    row_ids=True,
    identity_columns=True,
    change_feed=True,
    name_mapping=True,
    maintenance=True,
    nested_initial_defaults=False,
    partition_transforms=frozenset({"identity", "year", "month", "day", "hour", "bucket"}),
)
_OF_1_1 = replace(
    CAPABILITIES,
    nested_schemas=True,
    partition_transforms=CAPABILITIES.partition_transforms
    | {f"epoch_{part}" for part in ("year", "month", "day", "hour")},
)
_ENCRYPTED_LAYOUT = replace(OWN_LAYOUT, encrypted=True)
_LARGEST_ID = (1 << 63) - 1
_KEPT = 16
"""Snapshots, and schemas of snapshots, that are kept at hand."""


class DuckLakeCatalog(Catalog):
    """`data_path` is the full path of the lake's files, ending in `/`; `session` has options that are not stored."""

    format = "ducklake"

    def __init__(self, backend: Backend, storage: Storage, data_path: str, session: Mapping[str, str]) -> None:
        self.backend = backend
        self.storage = storage
        self.data_path = data_path
        self.delete_reader = DeleteReader(storage)
        self.inlined_tables: dict[str, InlinedTable] = {}
        self.file_rows: dict[int, FileRows] = {}
        """By table id, at the newest snapshot that was asked for: the next one starts from them."""
        self.outlined: dict[int, int] = {}
        """By table id, the snapshot at which its outline was read in place of the rows."""
        self.statistics: dict[tuple[int, int], pa.Table] = {}
        """Rows of `ColumnStatistics` by table id and field id; later snapshots only add to them."""
        self.partition_values: dict[int, pa.Table] = {}
        """By table id; later snapshots only add to them."""
        self._session = session
        self._lock = threading.RLock()
        self._latest: DuckLakeSnapshot | None = None
        self._past: OrderedDict[int, DuckLakeSnapshot] = OrderedDict()
        self._past_at = -1
        """The newest snapshot when those of `_past` were read: a later one may have moved their rows."""
        self._objects: OrderedDict[int, Objects] = OrderedDict()
        self._numbered: dict[int, int] = {}
        self._uuids: dict[int, str] = {}

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        tables = self.backend.tables
        if not has_1_1(tables.version):
            return CAPABILITIES
        return _OF_1_1 if tables.nests_schemas else replace(_OF_1_1, nested_schemas=False)

    def __repr__(self) -> str:
        return f"<DuckLakeCatalog {self.backend.name}>"

    def latest(self) -> DuckLakeSnapshot:
        try:
            found = self._read_newest()
        except OperationalError as error:
            if not error.retryable:
                raise
            found = self._read_newest()  # A pooled connection had broken; all of them are new now.
        if found is None:
            raise OperationalError(f"catalog {self.backend.name}: it has no snapshot, so it is incomplete")
        with self._lock:
            known = self._latest
            if known is None or known.id > found.id or (known.id == found.id and known.time != found.time):
                self._forget()  # The first look, or another lake lies in the catalog's place.
            elif known.id == found.id and known.options == found.options:
                return known
            self._latest = found
        return found

    def _read_newest(self) -> DuckLakeSnapshot | None:
        with self.backend.glance() as connection:
            return self._read_snapshot(connection, _newest(self.backend.tables))

    def as_of(self, point: AsOf) -> DuckLakeSnapshot:
        if point.ref is not None:
            raise NotSupportedError(
                f"ducklake has no branches or tags such as {point.ref!r}; use a version or a timestamp"
            )
        snapshot = self.backend.tables.snapshot.c
        with self.backend.read() as connection:
            id = point.version if point.timestamp is None else self._id_at(connection, point.timestamp)
            query = _snapshots(self.backend.tables).where(snapshot.snapshot_id == id)
            found = None if id is None or abs(id) > _LARGEST_ID else self._read_snapshot(connection, query)
            if found is None:
                where = f"version {id}" if point.timestamp is None else f"timestamp {point.timestamp}"
                raise ProgrammingError(f"No snapshot found at {where}: {self._kept(connection, id)}")
            newest = connection.execute(select(func.max(snapshot.snapshot_id))).scalar()
        return self._remember(found, newest)

    def _kept(self, connection: Connection, wanted: int | None) -> str:
        snapshot = self.backend.tables.snapshot.c
        first, last = connection.execute(select(func.min(snapshot.snapshot_id), func.max(snapshot.snapshot_id))).one()
        times = connection.execute(select(snapshot.snapshot_time).where(snapshot.snapshot_id == first)).scalar()
        expired = "it has expired; " if wanted is not None and first < wanted < last else ""
        return f"{expired}the catalog keeps versions {first} to {last}, the first of {times}"

    def _id_at(self, connection: Connection, instant: datetime) -> int | None:
        """The newest snapshot that is not later than `instant`; of several at one time the greatest id."""
        snapshot = self.backend.tables.snapshot.c
        rows = select(snapshot.snapshot_id, snapshot.snapshot_time)
        if self.backend.kind == "sqlite":
            # Times are text there, whose order is not that of the instants.
            candidates = [(time, id) for id, time in connection.execute(rows) if time <= instant]
            return max(candidates)[1] if candidates else None
        newest = rows.where(snapshot.snapshot_time <= instant)
        row = connection.execute(
            newest.order_by(snapshot.snapshot_time.desc(), snapshot.snapshot_id.desc()).limit(1)
        ).first()
        return None if row is None else int(row[0])

    def _read_snapshot(self, connection: Connection, query: Select[Any]) -> DuckLakeSnapshot | None:
        """The snapshot that `query`, some of `_snapshots`, finds."""
        rows = connection.execute(query).all()
        if not rows:
            return None
        options = Options.of(row[4:] for row in rows)
        version = check_version(options.catalog.get("version"), self.backend.name)
        if version != self.backend.tables.version:  # Somebody migrated it.
            self.backend.adopt(connection, version)
            self.forget()
        id, time, schema_version, next_file_id = rows[0][:4]
        return DuckLakeSnapshot(self, id, time, schema_version, next_file_id, options)

    def _remember(self, found: DuckLakeSnapshot, newest: int | None) -> DuckLakeSnapshot:
        """`found`, or the same snapshot with what it has already loaded."""
        with self._lock:
            if self._past_at != newest:
                self._past.clear()
            self._past_at = -1 if newest is None else newest
            for known in (self._latest if found.id == newest else None, self._past.get(found.id)):
                if known is not None and (known.id, known.time, known.options) == (found.id, found.time, found.options):
                    return known
            self._past[found.id] = found
            _shorten(self._past)
        return found

    def forget(self) -> None:
        """Read everything anew: catalog rows that were read before are gone."""
        with self._lock:
            self._latest = None
            self._forget()

    def _forget(self) -> None:
        self._past.clear()
        self._objects.clear()
        for cache in (self.inlined_tables, self.file_rows, self.outlined, self.statistics, self.partition_values):
            cache.clear()

    def objects(self, snapshot: DuckLakeSnapshot) -> Objects:
        """Schemas, tables and views at `snapshot`: the same for all snapshots with its schema version."""
        with self._lock:
            objects = self._objects.get(snapshot.schema_version)
        if objects is None:
            with snapshot.reading() as connection:
                objects = load_objects(connection, self.backend.tables, snapshot.id, self.data_path)
            with self._lock:
                self._objects[snapshot.schema_version] = objects
                _shorten(self._objects)
        return objects

    def history(self, table: TableInfo | None = None) -> Sequence[SnapshotInfo]:
        with self.backend.read() as connection:
            infos = read_history(connection, self.backend.tables)
        if table is None:
            return infos
        of_table = TableChanges.read(self.backend, table)
        return [info for info in infos if of_table.are_in(info)]

    def option(self, name: str, table: TableInfo | None = None) -> str | None:
        snapshot = self._latest or self.latest()
        schema_id, table_id = (None, None) if table is None else (table.schema_id, table.id)
        return snapshot.options.lookup(name, schema_id, table_id, self._session)

    def options(self) -> Sequence[OptionInfo]:
        snapshot = self.latest()
        return snapshot.options.listed(snapshot.schemas(), snapshot.tables())

    def set_option(
        self, name: str, value: str | None, schema: SchemaInfo | None = None, table: TableInfo | None = None
    ) -> None:
        name = name.casefold()
        value = checked(name, value)
        metadata = self.backend.tables.metadata
        scope, scope_id = ("table", table.id) if table else ("schema", schema.id) if schema else (None, None)
        with self.backend.write() as connection:
            connection.execute(
                delete(metadata).where(
                    metadata.c.key == name,
                    metadata.c.scope.is_(None) if scope is None else metadata.c.scope == scope,
                    metadata.c.scope_id.is_(None) if scope_id is None else metadata.c.scope_id == scope_id,
                )
            )
            if value is not None:
                connection.execute(insert(metadata).values(key=name, value=value, scope=scope, scope_id=scope_id))
        self.latest()

    def number_fields(self, snapshot: Snapshot, table: TableInfo) -> TableInfo:
        used = self._numbered.get(table.id, 0)
        if table.id >= 0:
            column = self.backend.tables.column
            with self.backend.read() as connection:
                used = max(
                    used,
                    connection.execute(
                        select(func.max(column.c.column_id)).where(column.c.table_id == table.id)
                    ).scalar()
                    or 0,
                )
        known = frozenset(nested.field.id for nested in flatten(table.schema.fields)) - {UNASSIGNED}
        numbered = Numbering(known, used).schema(table.schema)
        # A field that this transaction added and dropped again may be in its files: its id must not come back.
        self._numbered[table.id] = max([used, *(nested.field.id for nested in flatten(numbered.fields))])
        return replace(table, schema=numbered, uuid=table.uuid or uuid7())

    def next_identity(self, snapshot: Snapshot, table: TableInfo, column: str) -> int:
        field = table.schema.get(column)
        if field is None:
            raise ProgrammingError(f"table {table.name!r} has no column {column!r}")
        metadata, stats = self.backend.tables.metadata.c, self.backend.tables.table_column_stats.c
        with self.backend.read() as connection:
            assigned = connection.execute(
                select(metadata.value).where(
                    metadata.key == tags.identity_option(column),
                    metadata.scope == "table",
                    metadata.scope_id == table.id,
                )
            ).scalar()
            greatest = connection.execute(
                select(stats.max_value).where(stats.table_id == table.id, stats.column_id == field.id)
            ).scalar()
        return max(0, int(assigned or 0), int(greatest or 0)) + 1

    def keeps_rows(self, table: TableInfo, count: int) -> bool:
        text = self.option("data_inlining_row_limit", table) or "0"
        if not text.isdecimal():
            raise ProgrammingError(f"the option data_inlining_row_limit is {text!r}: set it to a number of rows")
        limit = int(text)
        return 0 < count <= limit and can_inline(table.schema, self.backend)

    def delete_format(self, table: TableInfo) -> DeleteFormat:
        """How deletes in `table` are written. Readers of format 1.0 take no containers."""
        if self.is_encrypted:
            return DeleteFormat.ENCRYPTED
        if self.option("write_deletion_vectors", table) != "true":
            return DeleteFormat.PARQUET
        return DeleteFormat.VECTORS if has_1_1(self.backend.tables.version) else DeleteFormat.BARE_VECTORS

    @property
    def is_encrypted(self) -> bool:
        return self.option("encrypted") == "true"

    def file_layout(self, table: TableInfo) -> FileLayout:
        return _ENCRYPTED_LAYOUT if self.is_encrypted else OWN_LAYOUT

    def data_directory(self, table: TableInfo, schema: SchemaInfo) -> str:
        if table.path is not None:
            return table.path
        return self.schema_directory(schema) + folder(table.name, table.uuid or self._uuid(table.id))

    def schema_directory(self, schema: SchemaInfo) -> str:
        """Where the folders of a schema's tables are, ending in `/`; known before the schema is committed, too."""
        own_name = "" if schema.parts else schema.name  # Two schemas may have one name in different ones.
        return schema.path or self.data_path + folder(own_name, self._uuid(schema.id))

    def _uuid(self, id: int) -> str:
        """For a schema or table that has none yet: always the same one."""
        return self._uuids.setdefault(id, uuid7())

    def commit(self, base: Snapshot, changes: Changes) -> CommitResult:
        return Committer(self, base, changes).commit()

    def table_changes(self, table: TableInfo, start: int | datetime, end: int | datetime) -> Sequence[ChangeScan]:
        return table_changes(self, table, start, end)

    def data_roots(self) -> Sequence[str]:
        with self.backend.read() as connection:
            return [self.data_path, *sorted(foreign_directories(connection, self.backend.tables, self.data_path))]

    def check_table(self, snapshot: Snapshot, old: TableInfo | None, table: TableInfo) -> None:
        check_columns(self.backend.tables.version, old, table)
        check_buckets(old, table)

    def check_macro(self, macro: MacroInfo) -> None:
        check_parameters(self.backend.tables.version, macro)

    def check_writable(self) -> None:
        self.backend.check_writable()

    def migrate(self, version: str | None = None) -> None:
        migrate(self, version or DEFAULT)

    @property
    def catalog_type(self) -> str:
        return "postgres" if self.backend.kind == "postgresql" else self.backend.kind

    @property
    def maintenance(self) -> DuckLakeMaintenance:
        return DuckLakeMaintenance(self)

    def release(self) -> None:
        self.backend.release()

    def close(self) -> None:
        self.backend.dispose()


def _shorten(cache: OrderedDict[int, Any]) -> None:
    while len(cache) > _KEPT:
        cache.popitem(last=False)


def _snapshots(tables: Tables) -> Select[Any]:
    """Snapshots, each with all that the catalog has of options: one round trip for both."""
    snapshot, metadata = tables.snapshot.c, tables.metadata.c
    return select(
        snapshot.snapshot_id,
        snapshot.snapshot_time,
        snapshot.schema_version,
        snapshot.next_file_id,
        metadata.key,
        metadata.value,
        metadata.scope,
        metadata.scope_id,
    ).select_from(tables.snapshot.join(tables.metadata, true()))


@functools.lru_cache(maxsize=64)
def _newest(tables: Tables) -> Select[Any]:
    newest = select(func.max(tables.snapshot.c.snapshot_id)).scalar_subquery()
    return _snapshots(tables).where(tables.snapshot.c.snapshot_id == newest)
