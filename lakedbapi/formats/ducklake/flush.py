"""Flush: inlined rows and inlined deletes move to files, with the snapshots that they began and ended at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import delete, select
from sqlalchemy.engine import Connection

from lakedbapi.errors import DataError, InternalError
from lakedbapi.formats.ducklake import changes_made
from lakedbapi.formats.ducklake.attempt import Attempt
from lakedbapi.formats.ducklake.compaction import TableMaintenanceCommit, same_columns
from lakedbapi.formats.ducklake.delete_files import Deletions, WrittenDeletes
from lakedbapi.formats.ducklake.file_entries import add_data_file, add_delete_file, schedule
from lakedbapi.formats.ducklake.id_lists import among
from lakedbapi.formats.ducklake.inlined import InlinedTable, inlined_tables, read_rows
from lakedbapi.formats.ducklake.live_deletes import DeletePlace, LiveDeletes
from lakedbapi.formats.ducklake.snapshot import DuckLakeSnapshot
from lakedbapi.formats.maintenance import Flushed, StoredRows
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.scan import ROW_ID_FIELD, ROW_SNAPSHOT_FIELD
from lakedbapi.model.types import Schema
from lakedbapi.storage.parquet import read_fields

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog

Numbers = npt.NDArray[np.int64]
_LIVE = -1
"""Stands for the end of a row that is live."""


def stored_rows(catalog: DuckLakeCatalog, base: DuckLakeSnapshot, table: TableInfo) -> Sequence[StoredRows]:
    """The inlined rows of `table` by inlined table, with the columns of its time, which old snapshots go on reading."""
    found = []
    with base.reading() as connection:
        for source in inlined_tables(connection, catalog.backend, table.id, catalog.inlined_tables):
            written = _with_columns(table, source.schema)
            which = source.table.c[source.begin] <= base.id
            group, ends = read_rows(connection, catalog.backend, source, written, which)
            assert isinstance(group.row_ids, pa.Array)
            assert isinstance(group.snapshots, pa.Array)
            if group.rows.num_rows:
                found.append(StoredRows(group.key, written, group.rows, group.row_ids, group.snapshots, ends))
    return found


def _with_columns(table: TableInfo, schema: Schema) -> TableInfo:
    """Partitioned and sorted only where the columns are today's."""
    if same_columns(schema, table.schema):
        return replace(table, schema=schema)
    return replace(table, schema=schema, partitioning=None, sorting=())


def inlined_deletes(
    connection: Connection, catalog: DuckLakeCatalog, table: TableInfo, last: int
) -> Mapping[int, Deletions]:
    """Those of live data files, up to the snapshot `last`, by data file id."""
    source, files = catalog.backend.tables.inlined_delete(table.id), catalog.backend.tables.data_file
    if not catalog.backend.has_table(connection, source.name):
        return {}
    positions: dict[int, list[int]] = defaultdict(list)
    snapshots: dict[int, list[int]] = defaultdict(list)
    rows = (
        select(source.c.file_id, source.c.row_id, source.c.begin_snapshot)
        .join_from(source, files, files.c.data_file_id == source.c.file_id)
        .where(source.c.begin_snapshot <= last, files.c.end_snapshot.is_(None))
        .order_by(source.c.file_id, source.c.row_id, source.c.begin_snapshot)
    )
    for file_id, position, snapshot in connection.execute(rows):
        if not positions[file_id] or positions[file_id][-1] != position:
            positions[file_id].append(position)
            snapshots[file_id].append(snapshot)
    return {id: Deletions.of(found, snapshots[id]) for id, found in positions.items()}


@dataclass(frozen=True)
class _NewDeletes:
    """A written delete file, and what it takes over: `old` is the id of the delete file before it."""

    old: int | None
    deletions: Deletions
    written: WrittenDeletes


class Flush(TableMaintenanceCommit):
    def __init__(
        self, catalog: DuckLakeCatalog, base: DuckLakeSnapshot, table: TableInfo, flushed: Sequence[Flushed]
    ) -> None:
        super().__init__(catalog, base, table)
        self._flushed = flushed
        self._dead: dict[str, WrittenDeletes] = {}
        """The delete file of each new data file that has dead rows, by its path."""
        self._deletes: dict[int, _NewDeletes] = {}
        """By id of the data file whose deletes were inlined."""

    def _write_ahead(self) -> None:
        place = DeletePlace(self._directory, self._catalog.delete_format(self._table))
        for part in self._flushed:
            for file, deletions in _dead_rows(self._catalog, part):
                self._dead[file.path] = self._delete_files.take_over(place, file.path, None, deletions)
        with self._backend.read() as connection:
            inlined = inlined_deletes(connection, self._catalog, self._table, self._base.id)
            live = self._live_deletes(connection, sorted(inlined))
        files = self._base.files(self._table)
        paths = dict(zip(files.column("file_id").to_pylist(), files.column("path").to_pylist(), strict=True))
        for file_id, deletions in inlined.items():
            if file_id in paths:
                old = live.files.get(file_id)
                written = self._delete_files.take_over(place, paths[file_id], old, deletions)
                self._deletes[file_id] = _NewDeletes(old.id if old else None, deletions, written)

    def _live_deletes(self, connection: Connection, file_ids: Sequence[int]) -> LiveDeletes:
        return LiveDeletes.read(connection, self._backend, self._table.id, self._directory, file_ids)

    def _write_content(self, attempt: Attempt) -> None:
        self._check_table_is_live(attempt)
        sources = {
            source.table.name: source
            for source in inlined_tables(
                attempt.connection, self._backend, self._table.id, self._catalog.inlined_tables
            )
        }
        for part in self._flushed:
            self._move_rows(attempt, sources.get(part.stored.key), part)
        if self._deletes:
            self._move_deletes(attempt)
        if self._flushed or self._deletes:
            attempt.made.add(changes_made.FLUSHED, self._table.id)
        written = [file for part in self._flushed for file in part.written]
        self._grow(attempt, size=sum(file.file_size_bytes for file in written))

    def _move_rows(self, attempt: Attempt, source: InlinedTable | None, part: Flushed) -> None:
        stored = part.stored
        if source is None or _fingerprint(attempt.connection, source, self._base.id) != _expected(stored):
            raise self._interfered()
        attempt.connection.execute(delete(source.table).where(source.table.c[source.begin] <= self._base.id))
        for file in part.written:
            begins = _embedded(self._catalog, file, ROW_SNAPSHOT_FIELD)
            file_id = add_data_file(
                attempt,
                self._table.id,
                self._directory,
                file,
                begin_snapshot=int(begins.min()),
                partial_max=int(begins.max()),
            )
            dead = self._dead.get(file.path)
            if dead is not None:
                add_delete_file(attempt, self._table.id, self._directory, file_id, dead)
                attempt.made.add(changes_made.DELETED, self._table.id)

    def _move_deletes(self, attempt: Attempt) -> None:
        deletes, inlined = attempt.tables.delete_file, attempt.tables.inlined_delete(self._table.id)
        found = inlined_deletes(attempt.connection, self._catalog, self._table, self._base.id)
        live = self._live_deletes(attempt.connection, sorted(self._deletes))
        for file_id, new in self._deletes.items():
            old = live.files.get(file_id)
            same = file_id in found and np.array_equal(found[file_id].positions, new.deletions.positions)
            if not same or (old.id if old else None) != new.old:
                raise self._interfered()
            if old is not None:
                attempt.connection.execute(delete(deletes).where(deletes.c.delete_file_id == old.id))
                schedule(attempt, self._catalog.data_path, old.id, old.path)
            add_delete_file(attempt, self._table.id, self._directory, file_id, new.written)
        for chosen in among(inlined.c.file_id, list(self._deletes)):
            attempt.connection.execute(delete(inlined).where(chosen, inlined.c.begin_snapshot <= self._base.id))
        attempt.made.add(changes_made.DELETED, self._table.id)


def _fingerprint(connection: Connection, source: InlinedTable, last: int) -> list[tuple[int, int, int]]:
    """(row id, begin, end) of all rows that began until `last`, sorted."""
    columns = [source.table.c[name] for name in (source.row_id, source.begin, source.end)]
    rows = connection.execute(select(*columns).where(columns[1] <= last))
    return sorted((row_id, begin, _LIVE if end is None else end) for row_id, begin, end in rows)


def _expected(stored: StoredRows) -> list[tuple[int, int, int]]:
    ends = stored.ends.fill_null(_LIVE).to_pylist()
    return sorted(zip(stored.row_ids.to_pylist(), stored.begins.to_pylist(), ends, strict=True))


def _dead_rows(catalog: DuckLakeCatalog, part: Flushed) -> Iterator[tuple[WrittenFile, Deletions]]:
    """The written files that have rows which ended, and these rows' positions with the snapshots that they ended at."""
    stored = part.stored
    if stored.ends.null_count == len(stored.ends):
        return
    seen = ~stored.invisible
    keys = _sorted_keys(stored.row_ids.to_numpy()[seen], stored.begins.to_numpy()[seen])
    ends = stored.ends.fill_null(_LIVE).to_numpy()[seen][keys.order]
    again = keys.pairs[1:] == keys.pairs[:-1]
    if np.any(again & (ends[1:] != ends[:-1])):
        raise DataError(
            f"table {stored.table.name}: two rows in the catalog have one row id and began in one snapshot, so their "
            "ends cannot be told apart; have DuckDB flush this table"
        )
    for file in part.written:
        row_ids, begins = (_embedded(catalog, file, field) for field in (ROW_ID_FIELD, ROW_SNAPSHOT_FIELD))
        ended = ends[keys.find(row_ids, begins)]
        positions = np.flatnonzero(ended != _LIVE)
        if len(positions):
            yield file, Deletions(positions, ended[positions])


@dataclass(frozen=True)
class _Keys:
    """(row id, begin) pairs in order; `order` are their places before sorting."""

    pairs: npt.NDArray[np.void]
    order: npt.NDArray[np.int64]

    def find(self, row_ids: Numbers, begins: Numbers) -> Numbers:
        wanted = _pairs(row_ids, begins)
        places = np.minimum(np.searchsorted(self.pairs, wanted), len(self.pairs) - 1)
        if not np.array_equal(self.pairs[places], wanted):
            raise InternalError("a flushed data file has rows that were not in the catalog")
        return places


def _sorted_keys(row_ids: Numbers, begins: Numbers) -> _Keys:
    pairs = _pairs(row_ids, begins)
    order = np.argsort(pairs, kind="stable")
    return _Keys(pairs[order], order)


def _pairs(row_ids: Numbers, begins: Numbers) -> npt.NDArray[np.void]:
    pairs = np.empty(len(row_ids), dtype=[("row_id", np.int64), ("begin", np.int64)])
    pairs["row_id"], pairs["begin"] = row_ids, begins
    return pairs


def _embedded(catalog: DuckLakeCatalog, file: WrittenFile, field_id: int) -> Numbers:
    numbers: Numbers = pc.cast(
        read_fields(catalog.storage, file.path, [field_id], file.encryption_key)[field_id], pa.int64()
    ).to_numpy()
    return numbers
