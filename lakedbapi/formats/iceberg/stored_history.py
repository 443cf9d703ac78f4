"""`StoredHistory`: all that storage still has of a table, for whatever snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot

from lakedbapi.formats.erasure import END, StoredTable
from lakedbapi.formats.iceberg.files import FILES, LiveFiles, all_files
from lakedbapi.formats.iceberg.manifests import DELETED, EQUALITY_DELETES, ManifestFile, read_manifests
from lakedbapi.formats.iceberg.places import Places
from lakedbapi.formats.iceberg.reachable import Reachable, manifests_of, named_in_metadata, reachable, stored_files
from lakedbapi.formats.iceberg.schemas import model_field
from lakedbapi.formats.iceberg.sources import load_file
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.instants import ago
from lakedbapi.model.scan import DATA_FILES, FileGroup
from lakedbapi.model.types import Schema
from lakedbapi.storage.exclusive import TEMPORARY

_Chooser = Callable[[pa.ChunkedArray, pa.ChunkedArray], pa.Array]
_METADATA = re.compile(rf"\.(avro|json|puffin|stats)$|{TEMPORARY}")
_IN_FLIGHT = 3 * 86_400_000
"""Milliseconds in which a metadata file that nothing names may become part of a commit."""


@dataclass(frozen=True)
class _Files(TableVersion):
    """A table that consists of these files."""

    given: LiveFiles = field(kw_only=True)

    @cached_property
    def live(self) -> LiveFiles:
        return self.given


@dataclass(frozen=True)
class StoredHistory:
    """`location` is the full path of the newest metadata."""

    version: TableVersion
    location: str

    # What is there

    @cached_property
    def listed(self) -> pa.Table:
        return stored_files(self.version)

    @cached_property
    def present(self) -> frozenset[str]:
        return frozenset(self.listed["path"].to_pylist())

    @cached_property
    def older_metadata(self) -> Sequence[str]:
        """Older metadata files."""
        named = {self.version.paths.full(entry.metadata_file) for entry in self.version.metadata.metadata_log}
        return sorted((named & self.present) - {self.location})

    @cached_property
    def _older(self) -> Sequence[TableMetadata]:
        return [load_file(self.version.storage, path).metadata for path in self.older_metadata]

    @cached_property
    def forgotten(self) -> Sequence[Snapshot]:
        """Snapshots of older metadata that the newest does not know any more."""
        known = {snapshot.snapshot_id for snapshot in self.version.metadata.snapshots}
        found = {snapshot.snapshot_id: snapshot for metadata in self._older for snapshot in metadata.snapshots}
        return [snapshot for id, snapshot in found.items() if id not in known]

    @cached_property
    def _forgotten_manifests(self) -> Mapping[str, ManifestFile]:
        """Those of which a list tells that is still there."""
        full = self.version.paths.full
        return manifests_of(self.version, [s for s in self.forgotten if full(s.manifest_list) in self.present])

    @cached_property
    def files(self) -> LiveFiles:
        """All files, of snapshots that are forgotten, too, whose manifests are there."""
        manifests = {path: file for path, file in self._forgotten_manifests.items() if path in self.present}
        manifests |= manifests_of(self.version, self.version.metadata.snapshots)
        found = all_files(list(manifests.values()), self.version.paths, self.version.storage.read_many)
        data, deletes = (files.filter(self._is_there(files.column("path"))) for files in (found.data, found.deletes))
        return LiveFiles(data, deletes, found.partitions)

    def _is_there(self, paths: pa.ChunkedArray) -> pa.Array:
        """Files may lie elsewhere than in the directories of the table."""
        return pa.array([path in self.present or self._is_elsewhere(path) for path in paths.to_pylist()], pa.bool_())

    def _is_elsewhere(self, path: str) -> bool:
        return not path.startswith(self._root) and self.version.storage.exists(path)

    @cached_property
    def directories(self) -> frozenset[str]:
        """Where the files lie, each ending in `/`."""
        paths = [*self.files.data.column("path").to_pylist(), *self.files.deletes.column("path").to_pylist()]
        return frozenset(
            {self._root, *(path[: path.rindex("/") + 1] for path in paths if not path.startswith(self._root))}
        )

    @cached_property
    def _root(self) -> str:
        return self.version.paths.full(self.version.metadata.location).rstrip("/") + "/"

    @cached_property
    def kept(self) -> Reachable:
        """What the snapshots of the newest metadata need."""
        return reachable(self.version, self.version.metadata.snapshots)

    def unknown_metadata(self) -> Sequence[tuple[str, bool]]:
        """Metadata files that nothing names, and whether no commit can be under way that will."""
        place = self.version.paths.full(Places.of(self.version.metadata).metadata) + "/"
        known = {*self.kept.all, *named_in_metadata(self.version), self.location}
        old = pc.fill_null(pc.less(self.listed["mtime"], pa.scalar(ago(_IN_FLIGHT))), False).to_pylist()
        paths = self.listed["path"].to_pylist()
        return [
            (path, is_old)
            for path, is_old in zip(paths, old, strict=True)
            if path.startswith(place) and _METADATA.search(path) and path not in known
        ]

    # Rows

    def data(self, table: TableInfo) -> StoredTable:
        given = LiveFiles(self.files.data, FILES.empty_table(), self.files.partitions)
        parts = {each.name: getattr(self.version, each.name) for each in fields(TableVersion)}
        version = _Files(**parts, given=given)
        known = replace(table, schema=self._with_dropped(table.schema))
        files = version.files.append_column(END, pa.nulls(version.files.num_rows, pa.int64()))
        groups = version.file_groups(known, files) if files.num_rows else ()
        return StoredTable(known, tuple(groups), (), (), is_live=True)

    def _with_dropped(self, schema: Schema) -> Schema:
        """With columns that were dropped, unless another one has their name now."""
        found = list(schema.fields)
        for older in sorted(self.version.metadata.schemas, key=lambda each: each.schema_id, reverse=True):
            for column in map(model_field, older.fields):
                if all(column.id != each.id and column.name.casefold() != each.name.casefold() for each in found):
                    found.append(column)
        return Schema(tuple(found))

    def equality_deletes(self, table: TableInfo) -> Sequence[StoredTable]:
        """By the columns of their keys."""
        files = self.files.deletes.filter(pc.equal(self.files.deletes.column("content"), EQUALITY_DELETES))
        keys = [tuple(sorted(ids)) for ids in files.column("equality_ids").to_pylist()]
        return [
            self._keyed(table, ids, files.filter(pa.array([each == ids for each in keys]))) for ids in sorted(set(keys))
        ]

    def _keyed(self, table: TableInfo, ids: Sequence[int], files: pa.Table) -> StoredTable:
        known = replace(table, schema=Schema(tuple(self.version.key(id) for id in ids)), partitioning=None)
        count = files.num_rows
        columns = {
            "file_id": pa.array(np.arange(count, dtype=np.int64)),
            "path": files.column("path"),
            "record_count": files.column("record_count"),
            "file_size_bytes": files.column("file_size_bytes"),
            "row_id_start": pa.nulls(count, pa.int64()),
            "snapshot_id": files.column("snapshot_id"),
            "partition_id": pa.nulls(count, pa.int64()),
            "deleted_count": pa.array(np.zeros(count, np.int64)),
        }
        listed = pa.table(columns, schema=DATA_FILES).append_column(END, pa.nulls(count, pa.int64()))
        group = FileGroup(listed, embedded=frozenset(), names_without_ids=self.version.names(known.schema))
        return StoredTable(known, (group,), (), (), is_live=False, kind="equality delete file", is_partial=True)

    # Snapshots

    def having(self, paths: Collection[str]) -> frozenset[int]:
        """The snapshots whose manifests name some of the files at `paths`."""
        return self._with(lambda files, _: pc.is_in(files, value_set=pa.array(sorted(paths), pa.string())))

    def telling(self, paths: Collection[str]) -> frozenset[int]:
        """The same, and those that tell of files which they removed and that are not there any more."""

        def tells(files: pa.ChunkedArray, removed: pa.ChunkedArray) -> pa.Array:
            return pc.and_(removed, pc.invert(self._is_there(files)))

        return self.having(paths) | self._with(tells)

    def _with(self, chosen: _Chooser) -> frozenset[int]:
        """The snapshots with an entry that is `chosen` by paths and by whether the snapshot of it removed the file."""
        found: set[str] = set()
        by_snapshot = {s.snapshot_id: manifests_of(self.version, [s]).keys() for s in self.version.metadata.snapshots}
        manifests = sorted({path for paths in by_snapshot.values() for path in paths})
        read = read_manifests(manifests, self.version.storage.read_many)
        for path, manifest in zip(manifests, read, strict=True):
            files = self.version.paths.full_all(manifest.entries.column("raw_path"))
            if pc.any(chosen(files, pc.equal(manifest.entries.column("status"), DELETED))).as_py():
                found.add(path)
        return frozenset(id for id, paths in by_snapshot.items() if not found.isdisjoint(paths))

    def named(self, snapshots: Collection[int]) -> frozenset[str]:
        """The branches and tags that name some of these snapshots, without `main`."""
        refs = self.version.metadata.refs
        return frozenset(name for name, ref in refs.items() if name != MAIN_BRANCH and ref.snapshot_id in snapshots)

    def remove_forgotten(self) -> None:
        """Remove what only forgotten snapshots need, and all older metadata: in an order that lets it be repeated."""
        version, storage = self.version, self.version.storage
        needed = {*self.kept.all, *named_in_metadata(version)}
        manifests = set(self._forgotten_manifests)
        read = read_manifests(sorted(manifests & self.present), storage.read_many)
        chunks = [chunk for each in read for chunk in each.entries.column("raw_path").chunks]
        files = set(version.paths.full_all(pa.chunked_array(chunks, pa.string())).to_pylist())
        lists = {version.paths.full(snapshot.manifest_list) for snapshot in self.forgotten}
        told = [each for older in self._older for each in (*older.statistics, *older.partition_statistics)]
        statistics = {version.paths.full(each.statistics_path) for each in told}
        for paths in (files, manifests, lists | statistics):
            going = sorted((paths & self.present) - needed)
            storage.delete(going)
            storage.remove_value_folders(going)
        storage.delete(self.older_metadata)
