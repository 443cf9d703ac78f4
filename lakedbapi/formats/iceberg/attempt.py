"""One try to commit a plan: a snapshot, and the updates of the metadata that add it, on top of the newest one."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation
from pyiceberg.typedef import Record
from pyiceberg.types import StructType

from lakedbapi.errors import DataError, InternalError
from lakedbapi.formats.iceberg import delete_files, delete_rewriting, manifest_files
from lakedbapi.formats.iceberg.client_fixes import next_row_id
from lakedbapi.formats.iceberg.conflicts import conflict, located
from lakedbapi.formats.iceberg.definition import (
    Definition,
    changed_definition,
    new_definition,
    with_unpartitioned,
)
from lakedbapi.formats.iceberg.delete_files import Deleted
from lakedbapi.formats.iceberg.file_metrics import metrics
from lakedbapi.formats.iceberg.files import inherit
from lakedbapi.formats.iceberg.manifest_files import Row
from lakedbapi.formats.iceberg.manifest_merging import Listed, Merging
from lakedbapi.formats.iceberg.manifests import (
    ADDED,
    DATA,
    DATA_FILE,
    DELETED,
    DELETES,
    EQUALITY_DELETES,
    EXISTING,
    ManifestFile,
    read_manifests,
)
from lakedbapi.formats.iceberg.paths import Paths
from lakedbapi.formats.iceberg.places import Places
from lakedbapi.formats.iceberg.plan import Plan
from lakedbapi.formats.iceberg.requests import moved_ref, snapshots, updates
from lakedbapi.formats.iceberg.specs import partition_tuple, partition_type
from lakedbapi.formats.iceberg.summary import Counters
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.model.changes import StagedFile
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage

Numbers = npt.NDArray[np.int64]
Place = tuple[str, "int | None"]
"""A file's name in the metadata, and where in it a deletion vector lies."""


class Attempt:
    """`head` is the newest snapshot, None where there is no table yet. `location` is that of a new table."""

    def __init__(self, plan: Plan, head: TableVersion | None, storage: Storage, location: str) -> None:
        self._plan = plan
        self._head = head
        self._storage = storage
        self._paths = Paths() if head is None else head.paths
        self._definition = self._define(location)
        self._places = Places.of(self._definition.metadata)
        self._counters = Counters()
        self._added: dict[tuple[int, int], list[Row]] = {}
        """`data_file`s of new entries by content of the manifest and spec id."""
        self._gone: dict[int, set[Place]] = {DATA: set(), DELETES: set()}
        self._changed: set[int] = set()
        """The places in the list of the head of the manifests that name these."""
        self.snapshot_id = secrets.randbits(62) + 1
        self.has_snapshot = False
        self.replaced_manifests = self.created_manifests = 0
        self.written: dict[str, bytes] = {}
        """The files that this attempt alone needs, by full path. They are written together, before the commit."""

    @property
    def removed_delete_files(self) -> int:
        return len({name for name, _ in self._gone[DELETES]})

    @property
    def added_delete_files(self) -> int:
        """A Puffin file has the vectors of many data files."""
        added = (file for (content, _), files in self._added.items() if content == DELETES for file in files)
        return len({file["file_path"] for file in added})

    @property
    def version(self) -> int:
        return int(self._definition.metadata.format_version)

    def changes(self) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        """The requirements and the updates of the commit; None when it would change nothing. Writes files."""
        self._add_files()
        self._change_files()
        changed = list(self._definition.updates)
        if self._added or any(self._gone.values()) or self._rewrites_manifests():
            self.has_snapshot = True
            snapshot = self._snapshot()
            self._storage.write_all_exclusive(self.written)
            changed.append(updates.AddSnapshotUpdate(snapshot=snapshot))
            before = None if self._head is None else self._head.metadata.refs.get(self._branch)
            changed.append(moved_ref(self._branch, before, snapshot.snapshot_id))
        return (self._requirements(), tuple(changed)) if changed else None

    @property
    def _branch(self) -> str:
        branch = MAIN_BRANCH if self._head is None else self._head.branch
        assert branch is not None
        return branch

    def _rewrites_manifests(self) -> bool:
        if not self._plan.rewrites_manifests or self._head is None:
            return False
        return any(anew for _, anew in self._merging.groups(self._live_manifests(self._head)))

    def _define(self, location: str) -> Definition:
        plan, head = self._plan, self._head
        assert plan.new is not None
        if head is None:
            return new_definition(plan.new, location)
        if plan.new is plan.old:
            return Definition(head.metadata)
        assert plan.old is not None
        return changed_definition(head.metadata, plan.old, plan.new)

    def _requirements(self) -> tuple[Any, ...]:
        head = self._head
        if head is None:
            return (updates.AssertCreate(),)
        metadata = head.metadata
        return (
            updates.AssertTableUUID(uuid=metadata.table_uuid),
            updates.AssertRefSnapshotId(
                ref=self._branch, snapshot_id=None if head.snapshot_id < 0 else head.snapshot_id
            ),
            updates.AssertCurrentSchemaId(current_schema_id=metadata.current_schema_id),
            updates.AssertDefaultSpecId(default_spec_id=metadata.default_spec_id),
            updates.AssertDefaultSortOrderId(default_sort_order_id=metadata.default_sort_order_id),
            updates.AssertLastAssignedFieldId(last_assigned_field_id=metadata.last_column_id),
            updates.AssertLastAssignedPartitionId(last_assigned_partition_id=metadata.last_partition_id),
        )

    # Files that come

    def _add_files(self) -> None:
        deleted = []
        for staged in self._plan.rows.files:
            placed = self._plan.placed.get(staged.file.path)
            spec_id = self._spec_id(staged) if placed is None else placed.spec_id
            entry = self._data_file(staged, spec_id)
            self._add(DATA, spec_id, entry)
            if staged.deletes:
                deleted.append(Deleted(entry["file_path"], spec_id, entry["partition"], staged.deletes))
        self._add_deletes(deleted)

    def _spec_id(self, staged: StagedFile) -> int:
        """The table may have been partitioned anew since the file was written."""
        metadata, id = self._definition.metadata, staged.file.partition_id
        if id is None:
            self._definition, found = with_unpartitioned(self._definition)
            return found
        return metadata.default_spec_id if id < 0 else id

    def _data_file(self, staged: StagedFile, spec_id: int) -> Row:
        metadata, file = self._definition.metadata, staged.file
        return {
            "content": DATA_FILE,
            "file_path": self._places.named(file.path),
            "file_format": "PARQUET",
            "partition": self._partition(staged, spec_id),
            "record_count": file.record_count,
            "file_size_in_bytes": file.file_size_bytes,
            "sort_order_id": metadata.default_sort_order_id,
            "content_size_in_bytes": None,
            **metrics(file, metadata.schema(), metadata.properties),
        }

    def _partition(self, staged: StagedFile, spec_id: int) -> Record:
        placed = self._plan.placed.get(staged.file.path)
        if placed is not None:
            return Record(*placed.values)
        spec = self._definition.metadata.specs()[spec_id]
        return partition_tuple(staged.file.partition_values, spec, self._partition_types[spec_id])

    @cached_property
    def _partition_types(self) -> Mapping[int, StructType]:
        metadata = self._definition.metadata
        return {spec.spec_id: partition_type(spec, metadata) for spec in metadata.partition_specs}

    def _add(self, content: int, spec_id: int, file: Row) -> None:
        self._added.setdefault((content, spec_id), []).append(file)
        self._counters.add(file, spec_id)

    def _add_deletes(self, deleted: Sequence[Deleted]) -> None:
        written = delete_files.write(self.version, deleted, self._places, self._write)
        for file, entry in zip(deleted, written, strict=True):
            self._add(DELETES, file.spec_id, entry)

    # Files that go, and those that lose rows

    def _change_files(self) -> None:
        plan, head = self._plan, self._head
        if head is None or plan.base is None:
            return
        if plan.is_replaced:
            self._remove(head, np.arange(head.live.data.num_rows))
            return
        removed = np.array(sorted(plan.rows.removed), np.int64)
        places = located(plan, head, removed)
        self._check_same_rows(removed, places, {})
        partly = np.array(sorted(plan.rows.deleted), np.int64)
        emptied = self._delete_rows(head, partly, located(plan, head, partly))
        self._remove(head, np.concatenate([places, emptied]))
        if plan.is_compaction:
            self._forget_dangling(head, places)
        if plan.rewrites_deletes:
            self._rewrite_deletes(head)

    def _delete_rows(self, head: TableVersion, ids: Numbers, places: Numbers) -> Numbers:
        """Deletes what `plan.rows.deleted` says of the files with these ids, which are at these `places` of the head.

        Returns the places of those that have no row left, since others deleted the rest.
        """
        if not len(ids):
            return places
        before = head.positions(places)
        mine = {place: self._plan.rows.deleted[id] for id, place in zip(ids.tolist(), places.tolist(), strict=True)}
        self._check_same_rows(ids, places, mine)
        counts = head.live.data.column("record_count").to_numpy()
        merged = {place: before.get(place, DeleteVector()) | vector for place, vector in mine.items()}
        for place, vector in merged.items():
            if vector.bitmap.max() >= counts[place]:
                path = head.live.data.column("path")[place].as_py()
                raise InternalError(f"{path}: row {vector.bitmap.max()} of {counts[place]} deleted")
        left = [place for place, vector in merged.items() if len(vector) < counts[place]]
        self._forget_deletes(head, np.array(left, np.int64))
        self._add_deletes([self._deleted(head, place, merged[place]) for place in left])
        return np.array([place for place in merged if place not in set(left)], np.int64)

    def _deleted(self, head: TableVersion, place: int, vector: DeleteVector) -> Deleted:
        data = head.live.data
        partition = head.live.partitions[data.column("scope")[place].as_py()]
        return Deleted(data.column("raw_path")[place].as_py(), partition.spec_id, Record(*partition.values), vector)

    def _check_same_rows(self, ids: Numbers, places: Numbers, mine: Mapping[int, DeleteVector]) -> None:
        """ConflictError when others have deleted rows of files that are taken away as they were (no entry in `mine`),
        or the very rows that this one deletes."""
        plan, head = self._plan, self._head
        base = plan.base
        assert head is not None
        assert base is not None
        if head.snapshot_id == base.snapshot_id:
            return
        then, now = base.positions(ids), head.positions(places)
        for id, place in zip(ids.tolist(), places.tolist(), strict=True):
            newly = now.get(place, DeleteVector()) - then.get(id, DeleteVector())
            if newly and (place not in mine or newly & mine[place]):
                path = head.live.data.column("path")[place].as_py()
                raise conflict(plan, f"deleted or updated rows of {path} that this one changes as well")

    def _remove(self, head: TableVersion, places: Numbers) -> None:
        """Take data files away, and with them the deletes that are about them alone."""
        if not len(places):
            return
        data = head.live.data.select(["raw_path", "manifest"]).take(pa.array(places))
        self._gone[DATA] |= {(path, None) for path in data.column("raw_path").to_pylist()}
        self._changed |= set(data.column("manifest").to_pylist())
        self._forget_deletes(head, places)

    def _forget_deletes(self, head: TableVersion, places: Numbers) -> None:
        """Take away the vectors of data files, and the position delete files that are about one of them alone."""
        vectors = head.deletes.vectors[places]
        data, rows = head.deletes.about_one
        self._forget(head, np.concatenate([vectors[vectors >= 0], rows[np.isin(data, places)]]).astype(np.int64))

    def _forget(self, head: TableVersion, gone: Numbers) -> None:
        """Take away delete files by their number."""
        deletes = head.live.deletes.select(["raw_path", "content_offset", "manifest"]).take(pa.array(gone))
        names, offsets = deletes.column("raw_path").to_pylist(), deletes.column("content_offset").to_pylist()
        self._gone[DELETES] |= set(zip(names, offsets, strict=True))
        self._changed |= set(deletes.column("manifest").to_pylist())

    def _forget_dangling(self, head: TableVersion, gone: Numbers) -> None:
        """Take away delete files that are older than all data that is left (spec, Scan Planning)."""
        numbers = np.delete(head.live.data.column("sequence_number").to_numpy(), gone)
        least = min(
            [*numbers.tolist(), *([] if self._sequence_number is None else [self._sequence_number])],
            default=np.iinfo(np.int64).max,
        )
        deletes = head.live.deletes
        number, content = (deletes.column(name).to_numpy() for name in ("sequence_number", "content"))
        is_vector = pc.equal(deletes.column("file_format"), "puffin").to_numpy()
        dangling = ~is_vector & ((number < least) | ((content == EQUALITY_DELETES) & (number <= least)))
        deletes = deletes.select(["raw_path", "manifest"]).filter(pa.array(dangling))
        self._gone[DELETES] |= {(name, None) for name in deletes.column("raw_path").to_pylist()}
        self._changed |= set(deletes.column("manifest").to_pylist())

    def _rewrite_deletes(self, head: TableVersion) -> None:
        """Write one delete file, or vector, for each data file that position delete files are about; take away these,
        and all delete files that reach no data file."""
        worn = delete_rewriting.worn(head, as_vectors=self.version >= 3)
        self._add_deletes([self._deleted(head, place, found) for place, found in head.positions(worn).items() if found])
        self._forget(head, delete_rewriting.needless(head, worn))

    # The snapshot

    @property
    def _sequence_number(self) -> int | None:
        """Of new data files, where it is not that of the snapshot: rows that only move stay as old as they were."""
        base = self._plan.base
        if not self._plan.is_compaction or base is None or base.point.snapshot is None:
            return None
        return base.point.snapshot.sequence_number

    def _snapshot(self) -> Any:
        metadata, head = self._definition.metadata, self._head
        parent = None if head is None else head.point.snapshot
        number = int(getattr(metadata, "last_sequence_number", 0)) + 1
        rows = [manifest_files.numbered(row, number) for row in self._new_manifests()]
        rows += self._kept_manifests(head, number)
        first_row_id = next_row_id(metadata) if self.version >= 3 else None
        end = None if first_row_id is None else _assign_row_ids(rows, first_row_id)
        path = self._places.new_metadata(f"snap-{self.snapshot_id}-1-{uuid.uuid4()}.avro")
        about = {
            "snapshot-id": str(self.snapshot_id),
            "parent-snapshot-id": "null" if parent is None else str(parent.snapshot_id),
            "sequence-number": str(number),
        }
        self._write(path, manifest_files.encode_list(self.version, rows, about))
        return snapshots.Snapshot(
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=None if parent is None else parent.snapshot_id,
            sequence_number=number,
            timestamp_ms=max(time.time_ns() // 1_000_000, metadata.last_updated_ms),
            manifest_list=path,
            summary=self._counters.summary(
                None if parent is None else parent.summary, parent is None, self._operation, self._plan
            ),
            schema_id=metadata.current_schema_id,
            first_row_id=first_row_id,
            added_rows=None if first_row_id is None or end is None else end - first_row_id,
        )

    @property
    def _operation(self) -> Operation:
        return Operation.REPLACE if self._plan.is_compaction else self._counters.operation

    def _new_manifests(self) -> Iterable[Row]:
        for (content, spec_id), files in self._added.items():
            entries = [
                {
                    "status": ADDED,
                    "snapshot_id": self.snapshot_id,
                    "sequence_number": self._sequence_number if content == DATA else None,
                    "data_file": file,
                }
                for file in files
            ]
            yield self._manifest(content, spec_id, self._partition_types[spec_id], entries)

    def _manifest(self, content: int, spec_id: int, partition: StructType, entries: Sequence[Row]) -> Row:
        metadata = self._definition.metadata
        spec = metadata.specs()[spec_id]
        data = manifest_files.encode_manifest(self.version, metadata.schema(), spec, partition, content, entries)
        path = self._places.new_metadata(f"{uuid.uuid4()}-m0.avro")
        self._write(path, data)
        return manifest_files.list_row(path, len(data), spec_id, content, partition, entries, self.snapshot_id)

    def _kept_manifests(self, head: TableVersion | None, number: int) -> list[Row]:
        """The manifests of the newest snapshot that still have live files, those without the files that go."""
        if head is None or head.point.snapshot is None:
            return []
        found = 0
        kept: list[Row] = []
        for group, anew in self._merging.groups(self._live_manifests(head)):
            rows, gone = self._merged(group) if anew else self._as_it_is(*group[0])
            kept += [manifest_files.numbered(row, number) if row["sequence_number"] is None else row for row in rows]
            found += gone
        if found != sum(map(len, self._gone.values())):
            raise InternalError(f"table {self._plan.name}: not all of the files that go are in the manifests")
        return kept

    @cached_property
    def _merging(self) -> Merging:
        return Merging.of(self._definition.metadata.properties, everything=self._plan.rewrites_manifests)

    @cached_property
    def _changed_paths(self) -> frozenset[str]:
        """The manifests that name files that go."""
        manifests = () if self._head is None else self._head.manifests
        return frozenset(manifests[place].path for place in self._changed)

    def _live_manifests(self, head: TableVersion) -> list[Listed]:
        snapshot = head.point.snapshot
        if snapshot is None:
            return []
        path = self._paths.full(snapshot.manifest_list)
        rows = manifest_files.read_list(path, self._storage.read_bytes(path))
        if len(rows) != len(head.manifests):
            raise DataError(f"The manifest list {path!r} has been replaced since it was read. Restore it from a copy.")
        return [(row, file) for row, file in zip(rows, head.manifests, strict=True) if file.has_live_files]

    def _as_it_is(self, row: Row, file: ManifestFile) -> tuple[list[Row], int]:
        """A manifest, written anew only if it has files that go, and the number of these."""
        if file.path in self._changed_paths:
            entries, gone, partition = self._entries(file)
            return [self._manifest(row["content"], file.spec_id, partition, entries)] if entries else [], gone
        if row["added_rows_count"] is None or row["existing_rows_count"] is None:
            row = {**row, **self._counted(file)}
        return [row], 0

    def _merged(self, group: Sequence[Listed]) -> tuple[list[Row], int]:
        """Fewer manifests with the entries of all of these, and the number of files that go."""
        entries: list[Row] = []
        gone = 0
        for _, file in group:
            some, going, _ = self._entries(file)
            entries += some
            gone += going
        (content, spec_id), size = (group[0][1].content, group[0][1].spec_id), sum(file.length for _, file in group)
        parts = self._merging.parts(entries, size)
        rows = [self._manifest(content, spec_id, self._partition_types[spec_id], part) for part in parts]
        self.replaced_manifests += len(group)
        self.created_manifests += len(rows)
        return rows, gone

    def _counted(self, file: ManifestFile) -> Row:
        """Counts that lists of version 1 need not have."""
        (manifest,) = read_manifests([self._paths.full(file.path)], self._storage.read_many)
        status, records = (manifest.entries.column(name).to_numpy() for name in ("status", "record_count"))
        counts: Row = {}
        for number, name in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
            counts[f"{name}_files_count"] = int((status == number).sum())
            counts[f"{name}_rows_count"] = int(records[status == number].sum())
        return counts

    def _entries(self, file: ManifestFile) -> tuple[list[Row], int, StructType]:
        """The live entries of a manifest for a new one, in which the files that go are marked so; their number; and the
        type of the partitions."""
        path = self._paths.full(file.path)
        columns, gone = self._going(file)
        stored = manifest_files.read_manifest(path, self._storage.read_bytes(path))
        resolved = columns.select(["snapshot_id", "sequence_number", "file_sequence_number", "first_row_id"])
        entries = []
        for entry, numbers, goes in zip(stored.entries, resolved.to_pylist(), gone.tolist(), strict=True):
            if entry["status"] == DELETED:
                continue
            first_row_id = numbers.pop("first_row_id")
            data_file = {**entry["data_file"], "first_row_id": first_row_id if file.content == DATA else None}
            entry = {**entry, **numbers, "data_file": data_file, "status": DELETED if goes else EXISTING}
            if goes:
                entry["snapshot_id"] = self.snapshot_id
                self._counters.remove(data_file, file.spec_id)
            if not (goes and self._plan.rewrites_manifests):
                entries.append(entry)
        return entries, int(gone.sum()), stored.partition

    def _going(self, file: ManifestFile) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
        """The entries of a manifest as columns, and which of their files go."""
        columns = inherit(list(read_manifests([self._paths.full(file.path)], self._storage.read_many)), [file])
        return columns, self._is_gone(columns)

    def _is_gone(self, columns: pa.Table) -> npt.NDArray[np.bool_]:
        alive = pc.not_equal(columns.column("status"), DELETED).to_numpy()
        names = {name for places in self._gone.values() for name, _ in places}
        maybe = pc.is_in(columns.column("raw_path"), pa.array(sorted(names), pa.string())).to_numpy()
        found: npt.NDArray[np.bool_] = alive & maybe
        for number in np.flatnonzero(found).tolist():
            entry = {name: columns.column(name)[number].as_py() for name in ("content", "raw_path", "content_offset")}
            kind = DATA if entry["content"] == DATA_FILE else DELETES
            found[number] = (entry["raw_path"], entry["content_offset"]) in self._gone[kind]
        return found

    def _write(self, name: str, data: bytes) -> str:
        path = self._paths.full(name)
        self.written[path] = data
        return path


def _assign_row_ids(rows: list[Row], start: int) -> int:
    """Give every manifest of data that has none its first row id (spec, First Row ID Assignment); the next free id."""
    for row in rows:
        if row["content"] == DATA and row.get("first_row_id") is None:
            row["first_row_id"] = start
            start += row["added_rows_count"] + row["existing_rows_count"]
    return start
