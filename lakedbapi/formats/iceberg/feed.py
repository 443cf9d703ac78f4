"""The rows that were inserted and deleted between snapshots, told from the files that came and went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.base import ChangeScan
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.travel import Point, lineage, time_of
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import EqualityDeletes, FileGroup, Scan

Numbers = npt.NDArray[np.int64]


def table_changes(end: TableVersion, table: TableInfo, start: int | datetime) -> Sequence[ChangeScan]:
    """Changes of the snapshots from `start` to `end`, both inclusive, in the columns of `table`.

    A file that was rewritten is a deletion of all its rows and an insertion of those of the new file.
    """
    return [change for before, after in _steps(end, start) for change in _Step(before, after, table).changes()]


def _steps(end: TableVersion, start: int | datetime) -> Iterator[tuple[TableVersion, TableVersion]]:
    """Each snapshot of the range, oldest first, after the one that it was made of."""
    line = lineage(end.metadata, end.snapshot_id)
    if isinstance(start, int):
        ids = [snapshot.snapshot_id for snapshot in line]
        if start not in ids:
            raise ProgrammingError(f"snapshot {start} of table {end.name} is none that {end.snapshot_id} was made of")
        chosen = line[: ids.index(start) + 1]
    else:
        chosen = [snapshot for snapshot in line if time_of(snapshot) >= start]
    for snapshot in reversed(chosen):
        parent = next((s for s in line if s.snapshot_id == snapshot.parent_snapshot_id), None)
        if parent is None and snapshot.parent_snapshot_id is not None:
            raise ProgrammingError(
                f"the changes of snapshot {snapshot.snapshot_id} of table {end.name} are not known: the one before it "
                "has been expired; start with a later one"
            )
        if snapshot.summary is not None and snapshot.summary.operation == Operation.REPLACE:
            continue  # The same rows in other files.
        yield _at(end, parent), _at(end, snapshot)


def _at(version: TableVersion, snapshot: IcebergSnapshot | None) -> TableVersion:
    return replace(version, point=Point(snapshot, version.point.schema))


class _Step:
    """One snapshot after the one before."""

    def __init__(self, before: TableVersion, after: TableVersion, table: TableInfo) -> None:
        self._before = before
        self._after = after
        self._table = table

    def changes(self) -> Iterator[ChangeScan]:
        old, new = (version.live.data.column("raw_path") for version in (self._before, self._after))
        added = self._after.files.filter(pc.invert(pc.is_in(new, old)))
        removed = self._before.files.filter(pc.invert(pc.is_in(old, new)))
        yield from self._change("insert", self._groups(self._after, added))
        yield from self._change("delete", self._groups(self._before, removed))
        place = pc.index_in(old.combine_chunks(), new.combine_chunks())
        kept_before = np.flatnonzero(place.is_valid().to_numpy(zero_copy_only=False)).astype(np.int64)
        kept_after = place.drop_null().to_numpy().astype(np.int64)
        deleted, restored = self._moved(kept_before, kept_after)
        yield from self._change("delete", self._only(self._before, deleted))
        yield from self._change("insert", self._only(self._after, restored))
        for groups in self._hit(self._before, self._after, kept_before, kept_after):
            yield from self._change("delete", groups)
        for groups in self._hit(self._after, self._before, kept_after, kept_before):
            yield from self._change("insert", groups)

    def _change(self, kind: str, groups: Sequence[FileGroup]) -> Iterator[ChangeScan]:
        if groups:
            yield ChangeScan(kind, self._after.snapshot_id, Scan(self._table.schema, tuple(groups)))

    def _groups(self, version: TableVersion, files: pa.Table) -> Sequence[FileGroup]:
        return version.file_groups(self._table, files) if files.num_rows else ()

    def _moved(self, before: Numbers, after: Numbers) -> tuple[dict[int, DeleteVector], dict[int, DeleteVector]]:
        """Positions that are deleted since, by file number before, and that are not any more, by number after."""
        old, new = self._before.positions(before), self._after.positions(after)
        number_before = dict(zip(after.tolist(), before.tolist(), strict=True))
        number_after = {old: new for new, old in number_before.items()}
        nothing = DeleteVector()
        deleted = {number_before[n]: vector - old.get(number_before[n], nothing) for n, vector in new.items()}
        restored = {number_after[n]: vector - new.get(number_after[n], nothing) for n, vector in old.items()}
        return deleted, restored

    def _only(self, version: TableVersion, positions: dict[int, DeleteVector]) -> Sequence[FileGroup]:
        """The rows at these positions of files that are live in `version`."""
        wanted = {number: vector for number, vector in positions.items() if vector}
        files = version.files.take(pa.array(sorted(wanted), pa.int64()))
        groups = []
        for group in self._groups(version, files):
            numbers = group.files.column("file_id").to_pylist()
            counts = group.files.column("record_count").to_pylist()
            others = {
                row: wanted[number].complement(count)
                for row, (number, count) in enumerate(zip(numbers, counts, strict=True))
            }
            groups.append(replace(group, deletes=others))
        return groups

    def _hit(
        self, version: TableVersion, other: TableVersion, files: Numbers, same: Numbers
    ) -> Iterator[Sequence[FileGroup]]:
        """The rows of `files` that only equality deletes hit which `other` has and `version` has not. `same` are the
        numbers of these files in `other`."""
        order = np.argsort(files)
        files, same = files[order], same[order]
        earlier: list[EqualityDeletes] = []
        for deletes in _only_in(other, version, same):
            reached = deletes.reached()
            if reached.any():
                found = self._groups(version, version.files.take(pa.array(files[reached])))
                positions = other.positions(same[reached])
                yield [self._chosen(group, deletes, earlier, files, same, positions) for group in found]
            earlier.append(deletes)

    def _chosen(
        self,
        group: FileGroup,
        deletes: EqualityDeletes,
        earlier: Sequence[EqualityDeletes],
        files: Numbers,
        same: Numbers,
        positions: Mapping[int, DeleteVector],
    ) -> FileGroup:
        """The rows that `deletes` hit and none of those did that came `earlier`, without those at `positions`."""
        rows = np.searchsorted(files, group.files.column("file_id").to_numpy())
        vectors = dict(group.deletes)
        for row, number in enumerate(same[rows].tolist()):
            if number in positions:
                vectors[row] = vectors.get(row, DeleteVector()) | positions[number]
        by_value = tuple(_of_files(each, rows) for each in (*earlier, replace(deletes, is_choice=True)))
        return replace(group, deletes=vectors, equality_deletes=(*group.equality_deletes, *by_value))


def _only_in(version: TableVersion, other: TableVersion, files: Numbers) -> Iterator[EqualityDeletes]:
    """The equality deletes of `version` that are not in `other`: those of some partition and those of all apart."""
    known = other.live.deletes.column("path").combine_chunks()
    for found in version.equality_deletes(files):
        new = found.files.filter(pc.invert(pc.is_in(found.files.column("path"), known)))
        for is_global in (False, True):
            chosen = new.filter(pc.equal(new.column("scope").is_null(), is_global))
            if chosen.num_rows:
                yield replace(found, files=chosen)


def _of_files(deletes: EqualityDeletes, rows: Numbers) -> EqualityDeletes:
    """Next to these of the data files."""
    scopes, numbers = (values.take(pa.array(rows)) for values in (deletes.scopes, deletes.sequence_numbers))
    return replace(deletes, scopes=scopes, sequence_numbers=numbers)
