"""Which files snapshots consist of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.snapshots import Snapshot

from lakedbapi.formats.iceberg.manifests import DELETED, ManifestFile, read_list, read_manifests
from lakedbapi.formats.iceberg.places import Places
from lakedbapi.formats.iceberg.table import TableVersion

_OTHER_TABLE = re.compile(r"(.+/)metadata/[^/]+\.metadata\.json(\.gz)?")


@dataclass(frozen=True)
class Reachable:
    """Full paths. `metadata` are manifests and their lists, `files` data files and delete files."""

    metadata: frozenset[str]
    files: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.metadata | self.files


def manifests_of(version: TableVersion, snapshots: Iterable[Snapshot]) -> dict[str, ManifestFile]:
    """The manifests of all these snapshots, by full path."""
    found: dict[str, ManifestFile] = {}
    for path in sorted({version.paths.full(snapshot.manifest_list) for snapshot in snapshots}):
        for file in read_list(path, partial(version.storage.read_bytes, path)):
            found.setdefault(version.paths.full(file.path), file)
    return found


def reachable(version: TableVersion, snapshots: Iterable[Snapshot]) -> Reachable:
    """What the snapshots consist of."""
    snapshots = list(snapshots)
    lists = {version.paths.full(snapshot.manifest_list) for snapshot in snapshots}
    manifests = manifests_of(version, snapshots)
    read = read_manifests(sorted(manifests), version.storage.read_many)
    alive = [manifest.entries.filter(pc.not_equal(manifest.entries.column("status"), DELETED)) for manifest in read]
    names = [table.column("raw_path") for table in alive]
    chunks = [chunk for column in names for chunk in column.chunks]
    files = pc.unique(pa.chunked_array(chunks, pa.string())) if chunks else pa.array([], pa.string())
    full = version.paths.full_all(files).to_pylist()
    return Reachable(frozenset({*lists, *manifests}), frozenset(full))


def named_in_metadata(version: TableVersion) -> set[str]:
    """Older metadata files and statistics, which the metadata names itself."""
    metadata = version.metadata
    named = {entry.metadata_file for entry in metadata.metadata_log}
    named |= {file.statistics_path for file in metadata.statistics}
    named |= {file.statistics_path for file in metadata.partition_statistics}
    return {version.paths.full(name) for name in named}


def stored_files(version: TableVersion) -> pa.Table:
    """All files in the directories of the table, as `Storage.list` has them, but for those of tables below it."""
    places = Places.of(version.metadata)
    roots = {version.paths.full(directory) + "/" for directory in (places.location, places.data, places.metadata)}
    outer = [root for root in sorted(roots) if not any(root != other and root.startswith(other) for other in roots)]
    return pa.concat_tables([_without_nested(version.storage.list(root), root) for root in outer])


def _without_nested(listed: pa.Table, root: str) -> pa.Table:
    below = pc.utf8_slice_codeunits(listed["path"], len(root))
    nested = {found[1] for path in below.to_pylist() if (found := _OTHER_TABLE.fullmatch(path))}
    for folder in sorted(nested):
        listed = listed.filter(pc.invert(pc.starts_with(listed["path"], root + folder)))
    return listed
