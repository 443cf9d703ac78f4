"""Which snapshots and files of a table nobody needs any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.snapshots import Snapshot

from lakedbapi.errors import ConflictError, NotSupportedError
from lakedbapi.formats.iceberg.commit import ATTEMPTS
from lakedbapi.formats.iceberg.failures import reported
from lakedbapi.formats.iceberg.manifests import DELETED, read_list, read_manifests
from lakedbapi.formats.iceberg.places import Places
from lakedbapi.formats.iceberg.requests import updates
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.travel import lineage, time_of

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.sources import CatalogSource


def vacuum(
    source: CatalogSource,
    identifier: tuple[str, ...],
    load: Callable[[], TableVersion | None],
    cutoff: datetime,
    unknown: datetime,
    *,
    dry_run: bool,
) -> Sequence[str]:
    """See `Maintenance.vacuum`; `load` gives the newest state of the table, which is looked at anew when others were
    faster. The snapshots go first: files that are left over are found the next time."""
    for _ in range(ATTEMPTS):
        version = load()
        if version is None:
            return []
        expired = _expired(version, cutoff)
        needless = _needless(version, expired, unknown)
        if dry_run:
            return needless
        if expired and not _forget(source, identifier, version, expired):
            continue
        version.storage.delete(needless)
        return needless
    raise ConflictError(f"table {'.'.join(identifier)}: other transactions were faster {ATTEMPTS} times; retry")


def _needless(version: TableVersion, expired: set[int], unknown: datetime) -> list[str]:
    metadata = version.metadata
    if metadata.properties.get("gc.enabled", "true").casefold() == "false":
        raise NotSupportedError(
            f"table {version.name} says that its files may be those of others (gc.enabled = false): nothing is removed"
        )
    kept = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in expired]
    live = _reachable(version, kept, alive=True)
    old = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id in expired]
    return sorted({*(_reachable(version, old, alive=False) - live), *_orphans(version, live, unknown)})


def _forget(source: CatalogSource, identifier: tuple[str, ...], version: TableVersion, expired: set[int]) -> bool:
    """Whether the snapshots are gone; they are not when another one was made since `version`."""
    requirements = (
        updates.AssertTableUUID(uuid=version.metadata.table_uuid),
        updates.AssertRefSnapshotId(ref="main", snapshot_id=version.snapshot_id),
    )
    with reported(f"table {version.name}: expiring snapshots"):
        try:
            source.commit(
                identifier, requirements, (updates.RemoveSnapshotsUpdate(snapshot_ids=sorted(expired)),), is_new=False
            )
        except CommitFailedException:
            return False
    return True


def _expired(version: TableVersion, cutoff: datetime) -> set[int]:
    """Those that were followed by others before `cutoff`, but for what a branch or tag names."""
    metadata = version.metadata
    kept = {ref.snapshot_id for ref in metadata.refs.values()}
    for head in list(kept):
        line = lineage(metadata, head)
        kept |= {before.snapshot_id for after, before in pairwise(line) if time_of(after) >= cutoff}
    return {s.snapshot_id for s in metadata.snapshots if s.snapshot_id not in kept and time_of(s) < cutoff}


def _reachable(version: TableVersion, snapshots: Iterable[Snapshot], *, alive: bool) -> set[str]:
    """Full paths of what the snapshots consist of, and of what was removed by them unless it must be `alive`."""
    lists = {version.paths.full(snapshot.manifest_list) for snapshot in snapshots}
    manifests: set[str] = set()
    for path in lists:
        found = read_list(path, partial(version.storage.read_bytes, path))
        manifests |= {version.paths.full(file.path) for file in found}
    read = read_manifests(sorted(manifests), version.storage.read_many)
    entries = [manifest.entries for manifest in read]
    if alive:
        entries = [table.filter(pc.not_equal(table.column("status"), DELETED)) for table in entries]
    names = [table.column("raw_path") for table in entries]
    chunks = [chunk for column in names for chunk in column.chunks]
    files = pc.unique(pa.chunked_array(chunks, pa.string())) if chunks else pa.array([], pa.string())
    return {*lists, *manifests, *version.paths.full_all(files).to_pylist()}


def _orphans(version: TableVersion, live: set[str], unknown: datetime) -> set[str]:
    """Files below the table that no kept snapshot has and that were last changed before `unknown`."""
    metadata, places = version.metadata, Places.of(version.metadata)
    named = {entry.metadata_file for entry in metadata.metadata_log}
    named |= {file.statistics_path for file in metadata.statistics}
    named |= {file.statistics_path for file in metadata.partition_statistics}
    known = {*live, *(version.paths.full(name) for name in named)}
    found: set[str] = set()
    for directory in {places.data, places.metadata}:
        listed = version.storage.list(version.paths.full(directory) + "/")
        old = pc.fill_null(pc.less(listed.column("mtime"), pa.scalar(unknown)), False)
        found |= set(listed.filter(old).column("path").to_pylist())
    return {path for path in found - known if not path.endswith((".metadata.json", ".json"))}
