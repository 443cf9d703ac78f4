"""One try to commit: the state that its parts share while they write the catalog rows of a new snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Table, insert, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement

from lakedbapi.errors import ConflictError
from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.ducklake.changes_made import ChangesMade
from lakedbapi.formats.ducklake.ids import Counters
from lakedbapi.formats.ducklake.metadata import ADDED_IN_1_1, Tables


@dataclass(frozen=True)
class SnapshotRow:
    """A row of `ducklake_snapshot`."""

    id: int
    time: datetime
    schema_version: int
    next_catalog_id: int
    next_file_id: int


def newest_snapshot(connection: Connection, tables: Tables) -> SnapshotRow:
    """ConflictError if the catalog has been migrated to another format version than `tables` have."""
    snapshot, metadata = tables.snapshot.c, tables.metadata.c
    version = select(metadata.value).where(metadata.key == "version", metadata.scope.is_(None)).scalar_subquery()
    found, *row = connection.execute(
        select(
            version,
            snapshot.snapshot_id,
            snapshot.snapshot_time,
            snapshot.schema_version,
            snapshot.next_catalog_id,
            snapshot.next_file_id,
        )
        .order_by(snapshot.snapshot_id.desc())
        .limit(1)
    ).one()
    if found != tables.version:
        raise ConflictError(
            f"the catalog was migrated from format version {tables.version} to {found} since this transaction began; "
            "roll back and retry"
        )
    return SnapshotRow(*row)


def known_values(table: Table, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """`values` without those of columns that the catalog's format version does not have."""
    unknown = ADDED_IN_1_1.intersection(values).difference(table.c.keys())
    return {name: value for name, value in values.items() if name not in unknown} if unknown else values


@dataclass
class Attempt:
    """The new snapshot while its rows are written, inside the write lock.

    Every row that `add` takes is written at `flush`, table by table; updates happen at once.
    """

    backend: Backend
    connection: Connection
    previous: SnapshotRow
    time: datetime
    encrypted: bool
    """Whether all files must be encrypted."""
    ids: Counters = field(init=False)
    made: ChangesMade = field(init=False, default_factory=ChangesMade)
    schema_changed: bool = field(init=False, default=False)
    table_ids: dict[int, int] = field(init=False, default_factory=dict)
    """Provisional table id -> final table id."""
    schema_ids: dict[int, int] = field(init=False, default_factory=dict)
    partition_ids: dict[int, int] = field(init=False, default_factory=dict)
    """Provisional partitioning id -> final one."""
    used_files: set[str] = field(init=False, default_factory=set)
    """Paths of the delete files that the new snapshot refers to."""
    _rows: dict[Table, list[Mapping[str, Any]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.ids = Counters(self.previous.next_catalog_id, self.previous.next_file_id)

    @property
    def tables(self) -> Tables:
        return self.backend.tables

    @property
    def snapshot_id(self) -> int:
        return self.previous.id + 1

    @property
    def schema_version(self) -> int:
        return self.previous.schema_version + int(self.schema_changed)

    @property
    def makes_snapshot(self) -> bool:
        """Whether anything changed that snapshots version."""
        return bool(self.made) or self.schema_changed

    @property
    def result(self) -> int:
        """The id of the newest snapshot after the commit."""
        return self.snapshot_id if self.makes_snapshot else self.previous.id

    def add(self, table: Table, **values: Any) -> None:
        """Write a row; columns that are not named are NULL. All rows of one table name the same columns.

        Values of columns that the catalog's format version does not have are left out.
        """
        self._rows.setdefault(table, []).append(known_values(table, values))

    def pending(self, table: Table, **where: object) -> list[Mapping[str, Any]]:
        """The rows that `flush` will write into `table` and that have these values."""
        return [row for row in self._rows.get(table, ()) if all(row[key] == value for key, value in where.items())]

    def flush(self) -> None:
        for table, rows in self._rows.items():
            self.connection.execute(insert(table), rows)
        self._rows.clear()

    def end(self, table: Table, *which: ColumnElement[bool]) -> int:
        """End the live rows of a versioned table at this snapshot; returns their number."""
        statement = update(table).where(table.c.end_snapshot.is_(None), *which)
        return self.connection.execute(statement.values(end_snapshot=self.snapshot_id)).rowcount

    def is_committed(self, connection: Connection) -> bool:
        """Whether the catalog has this snapshot, and not another writer's with the same id."""
        snapshot, changes = self.tables.snapshot.c, self.tables.snapshot_changes.c
        row = connection.execute(
            select(snapshot.snapshot_time, snapshot.next_catalog_id, snapshot.next_file_id, changes.changes_made).where(
                snapshot.snapshot_id == self.snapshot_id, changes.snapshot_id == snapshot.snapshot_id
            )
        ).first()
        ours = (self.time, self.ids.next_catalog_id, self.ids.next_file_id, str(self.made))
        return row is not None and tuple(row) == ours

    def table_id(self, id: int) -> int:
        return self.table_ids.get(id, id)

    def schema_id(self, id: int) -> int:
        return self.schema_ids.get(id, id)
