"""The change feed: which rows were inserted and deleted between two snapshots.

A row's own snapshot is the one embedded in its file, else the one that added the file. It is deleted by the first
snapshot that lists it as deleted, or that ended its file. What compaction did to it is neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.formats.base import ChangeScan
from lakedbapi.formats.ducklake.partial import INFO, row_snapshots
from lakedbapi.formats.ducklake.rewritten import FileRows, unchanged_rows
from lakedbapi.formats.ducklake.row_history import RowHistory, load_row_history
from lakedbapi.formats.ducklake.snapshot import DuckLakeSnapshot
from lakedbapi.formats.erasure import END
from lakedbapi.model.catalog import AsOf, TableInfo
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import FileGroup, RowGroup, Scan

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog

Positions = npt.NDArray[np.int64]


def table_changes(
    catalog: DuckLakeCatalog, table: TableInfo, start: int | datetime, end: int | datetime
) -> Sequence[ChangeScan]:
    """See `Catalog.table_changes`. A time means the first snapshot since `start`, the last one until `end`."""
    snapshot = catalog.as_of(AsOf(timestamp=end) if isinstance(end, datetime) else AsOf(version=end))
    if isinstance(start, datetime):
        first = min((info.id for info in catalog.history() if info.time >= start), default=snapshot.id + 1)
    else:
        first = start
    if first > snapshot.id:
        return ()
    catalog.as_of(AsOf(version=first))  # Expiry may have taken what an expired snapshot deleted.
    history = load_row_history(catalog, table, first, snapshot.id)
    return _Feed(catalog, snapshot, table, first, history).changes()


class _Feed:
    """Files are numbered by their row in the history's file list."""

    def __init__(
        self, catalog: DuckLakeCatalog, snapshot: DuckLakeSnapshot, table: TableInfo, first: int, history: RowHistory
    ) -> None:
        self._catalog = catalog
        self._snapshot = snapshot
        self._table = table
        self._first = first
        self._last = snapshot.id
        self._history = history
        files = history.files
        self._ids = files.column("file_id").to_numpy()
        self._begins = files.column("snapshot_id").to_numpy()
        self._ends = pc.fill_null(files.column(END), -1).to_numpy()
        self._counts = files.column("record_count").to_numpy()
        self._is_partial = files.column("partial_max").is_valid().to_numpy()

    def changes(self) -> list[ChangeScan]:
        deleted = self._deleted_by_snapshot
        inserted = {number: self._not_inserted(number) for number in self._inserting}
        new_rows = self._inserted_rows()
        for snapshot, files in deleted.items():
            new_rows = self._leave_out_copies(snapshot, files, inserted, new_rows)
        scans = [ChangeScan("insert", None, self._scan(inserted, new_rows))]
        rows = self._ended_rows()
        for snapshot in sorted(deleted.keys() | rows.keys()):
            kept = {
                number: DeleteVector.of(positions).complement(int(self._counts[number]))
                for number, positions in deleted.get(snapshot, {}).items()
                if len(positions)
            }
            scans.append(ChangeScan("delete", snapshot, self._scan(kept, rows.get(snapshot, []))))
        return [change for change in scans if change.scan.files or change.scan.rows]

    # Files

    @cached_property
    def _inserting(self) -> list[int]:
        """Files that have rows of their own whose snapshot may lie in the range."""
        compacted = np.isin(self._begins, np.fromiter(self._history.compactions, np.int64))
        inside = (self._begins >= self._first) & ~compacted
        until = pc.fill_null(self._history.files.column("partial_max"), -1).to_numpy()
        numbers: list[int] = np.flatnonzero(inside | (until >= self._first)).tolist()
        return numbers

    def _not_inserted(self, number: int) -> DeleteVector:
        """Rows of a file that the feed has no insertion of: those that their own transaction deleted again."""
        if self._is_partial[number]:
            born = self._row_snapshots(number)
            gone = np.isin(born, np.fromiter(self._history.compactions, np.int64))
            return DeleteVector.of(np.flatnonzero(gone)) | self._stillborn(number)
        return self._stillborn(number)

    def _stillborn(self, number: int) -> DeleteVector:
        deletions = self._history.deletions.get(int(self._ids[number]))
        if deletions is None:
            return DeleteVector()
        born = self._row_snapshots(number)[deletions.positions]
        return DeleteVector.of(deletions.positions[deletions.snapshots == born])

    def _row_snapshots(self, number: int) -> Positions:
        """The snapshot that added each row of a file."""
        begin, count = int(self._begins[number]), int(self._counts[number])
        if self._is_partial[number]:
            names = ("path", INFO, "encryption_key")
            embedded = row_snapshots(
                self._catalog.storage, *(self._history.files.column(name)[number].as_py() for name in names)
            )
            if embedded is not None:
                snapshots: Positions = pc.fill_null(embedded, begin).to_numpy()
                return snapshots
        return np.full(count, begin, np.int64)

    @cached_property
    def _deleted_by_snapshot(self) -> dict[int, dict[int, Positions]]:
        """Snapshot -> file -> the positions that it deleted."""
        found: dict[int, dict[int, Positions]] = defaultdict(dict)
        ended = (self._ends >= self._first) & (self._ends <= self._last)
        ended &= ~np.isin(self._ends, np.fromiter(self._history.compactions, np.int64))
        listed = np.isin(self._ids, np.fromiter(self._history.deletions, np.int64))
        for number in np.flatnonzero(ended | listed).tolist():
            deletions = self._history.deletions.get(int(self._ids[number]))
            alive = np.ones(int(self._counts[number]), np.bool_)
            if deletions is not None:
                born = self._row_snapshots(number)[deletions.positions]
                alive[deletions.positions] = False
                inside = (deletions.snapshots >= self._first) & (deletions.snapshots > born)
                for snapshot in np.unique(deletions.snapshots[inside]).tolist():
                    found[snapshot][number] = deletions.positions[inside & (deletions.snapshots == snapshot)]
            if ended[number]:
                end = int(self._ends[number])
                rest = np.flatnonzero(alive)
                found[end][number] = np.union1d(rest, found[end].get(number, rest[:0]))
        return found

    def _leave_out_copies(
        self,
        snapshot: int,
        deleted: dict[int, Positions],
        inserted: dict[int, DeleteVector],
        rows: list[RowGroup],
    ) -> list[RowGroup]:
        """Take rows that copy-on-write moved from an ended file to a new place out of both sides.

        They may lie in a file of their own, in a merged one, or in the catalog. Returns `rows` without them.
        """
        old = [number for number in deleted if self._ends[number] == snapshot]
        if not old:
            return rows
        new = {number: self._inserted_at(snapshot, number, inserted[number]) for number in inserted}
        new = {number: positions for number, positions in new.items() if len(positions)}
        current = [_filtered(group, pc.equal(group.snapshots, snapshot)) for group in rows]
        if not new and not any(group.rows.num_rows for group in current):
            return rows
        gone, come = unchanged_rows(
            self._catalog.storage,
            self._table.schema,
            [self._file_rows(number, deleted[number]) for number in old],
            [*(self._file_rows(number, positions) for number, positions in new.items()), *current],
        )
        for number, positions in zip(old, gone, strict=True):
            deleted[number] = np.setdiff1d(deleted[number], positions, assume_unique=True)
        for number, positions in zip(new, come, strict=False):
            inserted[number] = inserted[number] | DeleteVector.of(positions)
        others = [_filtered(group, pc.not_equal(group.snapshots, snapshot)) for group in rows]
        rest = [
            _filtered(group, pa.array(~DeleteVector.of(positions).mask(group.rows.num_rows)))
            for group, positions in zip(current, come[len(new) :], strict=True)
        ]
        return [group for group in (*others, *rest) if group.rows.num_rows]

    def _inserted_at(self, snapshot: int, number: int, left_out: DeleteVector) -> Positions:
        """The rows of a file that the snapshot inserted. A merged file has those of several."""
        count = int(self._counts[number])
        if self._is_partial[number]:
            rows = np.flatnonzero(self._row_snapshots(number) == snapshot)
            return np.setdiff1d(rows, left_out.to_numpy(), assume_unique=True)
        if self._begins[number] != snapshot:
            return np.empty(0, np.int64)
        return left_out.complement(count).to_numpy()

    def _file_rows(self, number: int, positions: Positions) -> FileRows:
        path, row_id_start, key = (
            self._history.files.column(name)[number].as_py() for name in ("path", "row_id_start", "encryption_key")
        )
        return FileRows(path, row_id_start, positions, key)

    def _scan(self, files: Mapping[int, DeleteVector], rows: Sequence[RowGroup]) -> Scan:
        """`files`: the rows to leave out of each file."""
        numbers = sorted(files)
        chosen = self._history.files.take(pa.array(numbers, pa.int64()))
        groups = self._snapshot.file_groups(self._table, chosen) if numbers else ()
        return Scan(self._table.schema, tuple(_without(groups, [files[number] for number in numbers])), tuple(rows))

    # Rows in the catalog

    def _inserted_rows(self) -> list[RowGroup]:
        found = []
        for group, ends in self._history.inlined_rows:
            begins = group.snapshots
            stillborn = pc.fill_null(pc.equal(begins, ends), False)
            found.append(_filtered(group, pc.and_(pc.greater_equal(begins, self._first), pc.invert(stillborn))))
        return [group for group in found if group.rows.num_rows]

    def _ended_rows(self) -> dict[int, list[RowGroup]]:
        """By the snapshot that ended them."""
        found: dict[int, list[RowGroup]] = defaultdict(list)
        for group, ends in self._history.inlined_rows:
            inside = pc.and_(
                pc.and_(pc.greater_equal(ends, self._first), pc.less_equal(ends, self._last)),
                pc.not_equal(ends, group.snapshots),
            )
            for snapshot in pc.unique(ends.filter(pc.fill_null(inside, False))).to_pylist():
                found[snapshot].append(_filtered(group, pc.and_(inside, pc.equal(ends, snapshot))))
        return found


def _without(groups: Sequence[FileGroup], left_out: Sequence[DeleteVector]) -> Iterator[FileGroup]:
    start = 0
    for group in groups:
        vectors = left_out[start : start + group.files.num_rows]
        yield replace(group, deletes={number: vector for number, vector in enumerate(vectors) if vector})
        start += group.files.num_rows


def _filtered(group: RowGroup, mask: pa.Array) -> RowGroup:
    assert group.row_ids is not None
    assert group.snapshots is not None
    return replace(
        group,
        rows=group.rows.filter(mask),
        row_ids=group.row_ids.filter(mask),
        snapshots=group.snapshots.filter(mask),
    )
