"""Which snapshots, branches and tags expire, and what goes with them.

The rules are those of the Java library: each branch has its own retention, and what no branch is made of goes by the
table's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType

from lakedbapi.errors import ConflictError, NotSupportedError, OperationalError, ProgrammingError
from lakedbapi.formats.iceberg.failures import reported
from lakedbapi.formats.iceberg.reachable import reachable
from lakedbapi.formats.iceberg.requests import AssertNoOtherRefs, updates
from lakedbapi.formats.iceberg.sources import CatalogSource, load_file
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.travel import lineage, time_of
from lakedbapi.formats.properties import whole_number
from lakedbapi.model.instants import ago

_LEAST = "history.expire.min-snapshots-to-keep"


@dataclass(frozen=True)
class Expiry:
    """Snapshots by id, and the names of branches and tags, that go together."""

    snapshots: frozenset[int]
    refs: frozenset[str] = frozenset()


def check_may_remove(version: TableVersion) -> None:
    """NotSupportedError when the table says that its files may be needed by others."""
    if version.metadata.properties.get("gc.enabled", "true").casefold() == "false":
        raise NotSupportedError(
            f"table {version.name} says that its files may be those of others (gc.enabled = false): nothing is removed"
        )


def older_than(
    version: TableVersion, cutoff: datetime, *, retain_last: int | None = None, superseded: bool = False
) -> Expiry:
    """What is from before `cutoff`, but for what a branch or tag keeps; of each branch the newest `retain_last` stay.

    `superseded`: a snapshot is as old as the one that followed it, so that what was current at `cutoff` stays.
    """
    metadata = version.metadata
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    gone = {name for name, ref in metadata.refs.items() if name != MAIN_BRANCH and _is_over(ref, by_id)}
    least = retain_last if retain_last is not None else whole_number(metadata.properties, _LEAST, 1)
    kept: set[int] = set()
    named: set[int] = set()
    for ref in [ref for name, ref in metadata.refs.items() if name not in gone]:
        if ref.snapshot_ref_type == SnapshotRefType.TAG:
            kept.add(ref.snapshot_id)
            continue
        line = lineage(metadata, ref.snapshot_id)
        named |= {snapshot.snapshot_id for snapshot in line}
        since = cutoff if ref.max_snapshot_age_ms is None else ago(ref.max_snapshot_age_ms)
        count = max(ref.min_snapshots_to_keep or least, 1)
        for number, snapshot in enumerate(line):
            until = line[number - 1] if superseded and number else snapshot
            if number >= count and time_of(until) < since:
                break
            kept.add(snapshot.snapshot_id)
    kept |= {id for id, snapshot in by_id.items() if id not in named and time_of(snapshot) >= cutoff}
    return Expiry(frozenset(by_id.keys() - kept), frozenset(gone))


def _is_over(ref: SnapshotRef, by_id: dict[int, Any]) -> bool:
    """Whether a branch or tag has lived as long as it says, or names nothing."""
    snapshot = by_id.get(ref.snapshot_id)
    if snapshot is None:
        return True
    return ref.max_ref_age_ms is not None and time_of(snapshot) < ago(ref.max_ref_age_ms)


def chosen(version: TableVersion, ids: Sequence[int]) -> Expiry:
    """Snapshots by id; ProgrammingError for one that is not there, or that a branch or tag names."""
    metadata = version.metadata
    known = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    for id in ids:
        if id not in known:
            raise ProgrammingError(f"table {version.name} has no snapshot {id}")
        names = sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id == id)
        if names:
            raise ProgrammingError(
                f"table {version.name}: snapshot {id} is what {', '.join(names)} names, so it cannot expire"
            )
    return Expiry(frozenset(ids))


def expire(source: CatalogSource, identifier: tuple[str, ...], version: TableVersion, expiry: Expiry) -> bool:
    """Commit it; whether files that only these snapshots needed may go, since no commit came in between that may need
    them. ConflictError when one did that is in the way.

    OperationalError when a server took a branch or tag away that another one made in the same instant: no requirement
    keeps it from that.
    """
    if not expiry.snapshots and not expiry.refs:
        return True
    metadata = version.metadata
    named = [updates.AssertTableUUID(uuid=metadata.table_uuid)]
    named += [updates.AssertRefSnapshotId(ref=name, snapshot_id=ref.snapshot_id) for name, ref in metadata.refs.items()]
    if source.checks_here:
        named.append(AssertNoOtherRefs(names=sorted(metadata.refs)))
    changes: list[Any] = [updates.RemoveSnapshotRefUpdate(ref_name=name) for name in sorted(expiry.refs)]
    statistics = {file.snapshot_id for file in metadata.partition_statistics} & expiry.snapshots
    changes += [updates.RemovePartitionStatisticsUpdate(snapshot_id=id) for id in sorted(statistics)]
    if expiry.snapshots:
        changes.append(updates.RemoveSnapshotsUpdate(snapshot_ids=sorted(expiry.snapshots)))
    with reported(f"table {version.name}: expiring snapshots"):
        try:
            after = source.commit(identifier, tuple(named), tuple(changes), before=version)
        except CommitFailedException as error:
            raise ConflictError(f"table {version.name}: others committed while snapshots expired: {error}") from error
    return _followed(version, expiry, after)


def _followed(version: TableVersion, expiry: Expiry, after: TableMetadata) -> bool:
    """Whether the commit was made on what was looked at, as the log of older metadata says, which a server may keep."""
    known = {entry.metadata_file for entry in version.metadata.metadata_log}
    new = [entry.metadata_file for entry in after.metadata_log if entry.metadata_file not in known]
    if len(new) < 2:  # The one that was looked at.
        return True
    path = version.paths.full(new[-1])
    before = load_file(version.storage, path).metadata
    lost = before.refs.keys() - after.refs.keys() - expiry.refs
    if lost:
        raise OperationalError(
            f"table {version.name}: {', '.join(sorted(lost))} was made while snapshots expired, and the catalog took "
            f"it away with its snapshot. No file was removed, and {path} still tells of it: register it as a table of "
            "another name, and copy from there what is needed"
        )
    return False


def needless(version: TableVersion, ids: Collection[int]) -> set[str]:
    """Full paths of what only the snapshots with these ids need, with their statistics."""
    metadata = version.metadata
    going = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id in ids]
    staying = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in ids]
    statistics = [*metadata.statistics, *metadata.partition_statistics]
    paths = {version.paths.full(file.statistics_path) for file in statistics if file.snapshot_id in ids}
    return {*reachable(version, going).all, *paths} - reachable(version, staying).all
