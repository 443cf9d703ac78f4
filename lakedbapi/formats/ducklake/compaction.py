"""Compaction: rows move to other files, and no snapshot sees other rows than before.

A merged file takes the place of its sources in all snapshots: each row has its snapshot embedded, and the sources leave
the catalog. A rewritten file is seen from its own snapshot on; earlier ones keep the files that it replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import delete, func, select, update
from sqlalchemy.engine import Connection

from lakedbapi.errors import ConflictError
from lakedbapi.formats.base import CommitResult
from lakedbapi.formats.ducklake import changes_made, conflicts
from lakedbapi.formats.ducklake.attempt import Attempt
from lakedbapi.formats.ducklake.columns import flatten, type_name
from lakedbapi.formats.ducklake.commit import SnapshotCommit
from lakedbapi.formats.ducklake.file_entries import add_data_file, schedule
from lakedbapi.formats.ducklake.files import load_partition_values
from lakedbapi.formats.ducklake.id_lists import among
from lakedbapi.formats.ducklake.snapshot import DuckLakeSnapshot
from lakedbapi.formats.maintenance import MERGE, Compacted, CompactionGroup
from lakedbapi.model.catalog import AsOf, TableInfo
from lakedbapi.model.changes import Changes
from lakedbapi.model.types import Schema

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog


def compaction_groups(
    catalog: DuckLakeCatalog, base: DuckLakeSnapshot, table: TableInfo, files: pa.Table, kind: str
) -> Sequence[CompactionGroup]:
    """See `Maintenance.groups`. Files that merge have equal columns, since old snapshots go on reading these."""
    if not files.num_rows:
        return ()
    if kind == MERGE:
        files = files.filter(pc.invert(pc.is_in(files.column("file_id"), _with_deletes(catalog, table))))
    tables = _tables_at(catalog, base, table, files.column("snapshot_id").to_pylist()) if kind == MERGE else {}
    distinct = {id(at): at for at in (table, *tables.values())}
    signatures = {key: _signature(at.schema) for key, at in distinct.items()}
    values = _partition_values(catalog, table, files)
    rows: dict[tuple[Any, ...], list[int]] = {}
    written: dict[tuple[Any, ...], TableInfo] = {}
    columns = (files.column(name).to_pylist() for name in ("file_id", "partition_id", "snapshot_id"))
    for number, (file_id, partition_id, snapshot) in enumerate(zip(*columns, strict=True)):
        target = tables.get(snapshot, table)
        key = partition_id, values.get(file_id, ()), signatures[id(target)]
        rows.setdefault(key, []).append(number)
        written[key] = target
    return [
        CompactionGroup(written[key], files.take(pa.array(numbers)), partition_id=key[0], partition_values=key[1])
        for key, numbers in rows.items()
    ]


def _with_deletes(catalog: DuckLakeCatalog, table: TableInfo) -> pa.Array:
    """Ids of the data files that have, or had, deletes: these belong to positions in the file itself."""
    deletes = catalog.backend.tables.delete_file.c
    with catalog.backend.read() as connection:
        ids = set(connection.execute(select(deletes.data_file_id).where(deletes.table_id == table.id)).scalars())
        inlined = catalog.backend.tables.inlined_delete(table.id)
        if catalog.backend.has_table(connection, inlined.name):
            ids |= set(connection.execute(select(inlined.c.file_id).distinct()).scalars())
    return pa.array(sorted(ids), pa.int64())


def _tables_at(
    catalog: DuckLakeCatalog, base: DuckLakeSnapshot, table: TableInfo, begins: Sequence[int]
) -> Mapping[int, TableInfo]:
    """The table as it was at each of the snapshots, at the next kept one where that is expired; sorted as today if the
    columns are today's."""
    snapshot = catalog.backend.tables.snapshot.c
    with catalog.backend.read() as connection:
        kept = connection.execute(
            select(snapshot.snapshot_id, snapshot.schema_version).order_by(snapshot.snapshot_id)
        ).all()
    ids = [id for id, _ in kept]
    found: dict[int, TableInfo] = {}
    by_version = {base.schema_version: table}
    for begin in set(begins):
        id, version = kept[bisect_left(ids, begin)]
        if version not in by_version:
            then = catalog.as_of(AsOf(version=id)).tables().get(table.id, table)
            by_version[version] = replace(
                then, sorting=table.sorting if same_columns(then.schema, table.schema) else ()
            )
        found[begin] = by_version[version]
    return found


def same_columns(one: Schema, other: Schema) -> bool:
    """Whether ids, names and types are equal."""
    first, second = ([(field.id, field.name, field.type) for field in schema.fields] for schema in (one, other))
    return first == second


def _signature(schema: Schema) -> tuple[Any, ...]:
    return tuple((nested.field.id, nested.parent, type_name(nested.field.type)) for nested in flatten(schema.fields))


def _partition_values(
    catalog: DuckLakeCatalog, table: TableInfo, files: pa.Table
) -> Mapping[int, tuple[str | None, ...]]:
    if files.column("partition_id").null_count == files.num_rows:
        return {}
    with catalog.backend.read() as connection:
        rows = load_partition_values(connection, catalog.backend.tables, table.id, None)
    rows = rows.filter(pc.is_in(rows.column("file_id"), files.column("file_id").combine_chunks()))
    found: dict[int, tuple[str | None, ...]] = {}
    for row in rows.sort_by([("file_id", "ascending"), ("key", "ascending")]).to_pylist():
        found[row["file_id"]] = (*found.get(row["file_id"], ()), row["value"])
    return found


class TableMaintenanceCommit(SnapshotCommit):
    """A commit of maintenance on one table."""

    def __init__(self, catalog: DuckLakeCatalog, base: DuckLakeSnapshot, table: TableInfo) -> None:
        super().__init__(catalog, base, Changes())
        self._table = table

    def commit(self) -> CommitResult:
        return self._commit()

    @property
    def _directory(self) -> str:
        assert self._table.path is not None
        return self._table.path

    def _write_ahead(self) -> None:
        """Nothing to do."""

    def _check_table_is_live(self, attempt: Attempt) -> None:
        """Columns may have changed: files keep their meaning then."""
        conflicts.check(attempt, self._base, self._changes)
        table = attempt.tables.table.c
        live = select(table.table_id).where(table.table_id == self._table.id, table.end_snapshot.is_(None))
        if attempt.connection.execute(live).first() is None:
            raise ConflictError(f"table {self._table.name} was dropped while it was maintained; there is nothing to do")

    def _grow(self, attempt: Attempt, *, records: int = 0, size: int) -> None:
        """Add to the table's statistics; its next row id stays."""
        stats = attempt.tables.table_stats
        attempt.connection.execute(
            update(stats)
            .where(stats.c.table_id == self._table.id)
            .values(
                record_count=stats.c.record_count + records,
                file_size_bytes=func.coalesce(stats.c.file_size_bytes, 0) + size,
            )
        )

    def _interfered(self) -> ConflictError:
        return ConflictError(
            f"table {self._table.name}: another transaction changed the same files or rows during the maintenance; "
            "run it again"
        )


class Compaction(TableMaintenanceCommit):
    """Replaces files by others that hold their live rows."""

    def __init__(
        self,
        catalog: DuckLakeCatalog,
        base: DuckLakeSnapshot,
        table: TableInfo,
        kind: str,
        compacted: Sequence[Compacted],
    ) -> None:
        super().__init__(catalog, base, table)
        self._kind = kind
        self._compacted = compacted
        self._replaced = sorted(
            file_id for part in compacted for file_id in part.group.files.column("file_id").to_pylist()
        )

    def _write_content(self, attempt: Attempt) -> None:
        self._check_table_is_live(attempt)
        self._check_unchanged(attempt)
        if self._kind == MERGE:
            self._merge(attempt)
        else:
            self._rewrite(attempt)

    def _check_unchanged(self, attempt: Attempt) -> None:
        """The replaced files are live, and nobody deleted rows of them since the base."""
        files, deletes = attempt.tables.data_file.c, attempt.tables.delete_file.c
        live = select(func.count()).where(files.end_snapshot.is_(None))
        counts = (
            attempt.connection.execute(live.where(chosen)).scalar_one()
            for chosen in among(files.data_file_id, self._replaced)
        )
        if sum(counts) != len(self._replaced):
            raise self._interfered()
        newer = select(deletes.delete_file_id).limit(1)
        if self._kind != MERGE:
            # A delete file that is older than the base has only deletes that the base sees.
            newer = newer.where(deletes.delete_file_id >= self._base_file_id)
        for chosen in among(deletes.data_file_id, self._replaced):
            if attempt.connection.execute(newer.where(chosen)).first() is not None:
                raise self._interfered()
        inlined = attempt.tables.inlined_delete(self._table.id)
        if attempt.backend.has_table(attempt.connection, inlined.name):
            since = -1 if self._kind == MERGE else self._base.id
            ids = select(inlined.c.file_id).where(inlined.c.begin_snapshot > since).distinct()
            if not set(attempt.connection.execute(ids).scalars()).isdisjoint(self._replaced):
                raise self._interfered()

    @property
    def _base_file_id(self) -> int:
        assert isinstance(self._base, DuckLakeSnapshot)
        return self._base.next_file_id

    def _rewrite(self, attempt: Attempt) -> None:
        files, deletes = attempt.tables.data_file, attempt.tables.delete_file
        for table in (files, deletes):
            for chosen in among(table.c.data_file_id, self._replaced):
                attempt.end(table, chosen)
        for part in self._compacted:
            for file in part.written:
                add_data_file(attempt, self._table.id, self._directory, file)
        written = [file for part in self._compacted for file in part.written]
        records = sum(file.record_count for file in written) - self._sum("record_count")
        self._grow(attempt, records=records, size=self._size_change())
        attempt.made.add(changes_made.REWRITTEN, self._table.id)

    def _merge(self, attempt: Attempt) -> None:
        for part in self._compacted:
            files = part.group.files
            begins = files.column("snapshot_id").to_numpy()
            lasts = np.maximum(pc.fill_null(files.column("partial_max"), -1).to_numpy(), begins)
            for file in part.written:
                add_data_file(
                    attempt,
                    self._table.id,
                    self._directory,
                    file,
                    row_id_start=None if file.has_row_ids else files.column("row_id_start")[0].as_py(),
                    begin_snapshot=int(begins.min()),
                    partial_max=int(lasts.max()),
                )
            for file_id, path in zip(
                files.column("file_id").to_pylist(), files.column("path").to_pylist(), strict=True
            ):
                schedule(attempt, self._catalog.data_path, file_id, path)
        remove_data_files(attempt.connection, attempt, self._replaced)
        self._grow(attempt, size=self._size_change())
        attempt.made.add(changes_made.MERGED, self._table.id)

    def _size_change(self) -> int:
        written = sum(file.file_size_bytes for part in self._compacted for file in part.written)
        return written - self._sum("file_size_bytes")

    def _sum(self, column: str) -> int:
        return sum(int(pc.sum(part.group.files.column(column), min_count=0).as_py()) for part in self._compacted)


def remove_data_files(connection: Connection, attempt: Attempt, file_ids: Sequence[int]) -> None:
    """Delete the catalog rows of data files, with their statistics and partition values."""
    tables = attempt.tables
    owned = (tables.data_file, tables.file_column_stats, tables.file_variant_stats, tables.file_partition_value)
    for table in owned:
        for chosen in among(table.c.data_file_id, file_ids):
            connection.execute(delete(table).where(chosen))
