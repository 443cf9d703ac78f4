"""Which snapshot and schema of a table a point in time means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from lakedbapi.errors import ProgrammingError
from lakedbapi.model.catalog import AsOf

_NAMED = re.compile(r"(.+)\.(branch|tag)_(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Point:
    """`snapshot` is None for a table that has none yet: it is empty."""

    snapshot: Snapshot | None
    schema: Schema


def point_in(metadata: TableMetadata, name: str, at: AsOf | None) -> Point:
    """The newest point, or that of `at`; ProgrammingError when the table has no such one.

    A snapshot or tag has the schema of its time, a branch the table's.
    """
    if at is None:
        current = metadata.current_snapshot_id
        return Point(None if current in (None, -1) else snapshot_of(metadata, name, current), metadata.schema())
    if at.ref is not None:
        return _of_ref(metadata, name, at.ref)
    id = at.version if at.timestamp is None else _id_at(metadata, name, at.timestamp)
    assert id is not None
    return _with_its_schema(metadata, snapshot_of(metadata, name, id))


def snapshot_of(metadata: TableMetadata, name: str, id: int | None) -> Snapshot:
    found = next((snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id == id), None)
    if found is None:
        raise ProgrammingError(f"table {name} has no snapshot {id}: it keeps {_kept(metadata)}")
    return found


def _of_ref(metadata: TableMetadata, name: str, ref: str) -> Point:
    found = metadata.refs.get(ref)
    if found is None and ref == "main":
        return point_in(metadata, name, None)
    if found is None:
        known = ", ".join(sorted({"main", *metadata.refs}))
        raise ProgrammingError(f"table {name} has no branch or tag {ref!r}; it has: {known}")
    snapshot = snapshot_of(metadata, name, found.snapshot_id)
    if found.snapshot_ref_type == SnapshotRefType.BRANCH:
        return Point(snapshot, metadata.schema())
    return _with_its_schema(metadata, snapshot)


def _with_its_schema(metadata: TableMetadata, snapshot: Snapshot) -> Point:
    schema = next((s for s in metadata.schemas if s.schema_id == snapshot.schema_id), metadata.schema())
    return Point(snapshot, schema)


def _id_at(metadata: TableMetadata, name: str, instant: datetime) -> int:
    """The snapshot that was current at `instant`: what was rolled back was current once, and is no more after it."""
    micros = _micros(instant)
    log = [(entry.timestamp_ms, entry.snapshot_id) for entry in metadata.snapshot_log] or [
        (snapshot.timestamp_ms, snapshot.snapshot_id)
        for snapshot in lineage(metadata, metadata.current_snapshot_id)[::-1]
    ]
    before = [id for milliseconds, id in log if milliseconds * 1000 <= micros]
    if not before:
        raise ProgrammingError(f"table {name} has no snapshot at {instant}: it keeps {_kept(metadata)}")
    return before[-1]


def check_ref(metadata: TableMetadata, name: str, kind: str, ref: str) -> None:
    """ProgrammingError where the table has none of that kind and name."""
    found = metadata.refs.get(ref)
    if found is None or found.snapshot_ref_type != kind:
        known = ", ".join(sorted(f"{each.snapshot_ref_type}_{other}" for other, each in metadata.refs.items()))
        raise ProgrammingError(f"{name} does not exist: the table has {known or 'no branches and tags'}")


def named_ref(name: str) -> tuple[str, str, str] | None:
    """Table, `branch` or `tag`, and its name, of what Spark calls `table.branch_name`; None for any other name."""
    found = _NAMED.fullmatch(name)
    return None if found is None else (found[1], found[2].casefold(), found[3])


def lineage(metadata: TableMetadata, id: int | None) -> list[Snapshot]:
    """The snapshot and those that it was made of, newest first, as far as they are kept."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    found: list[Snapshot] = []
    while id is not None and id in by_id:
        found.append(by_id.pop(id))
        id = found[-1].parent_snapshot_id
    return found


def time_of(snapshot: Snapshot) -> datetime:
    return datetime.fromtimestamp(snapshot.timestamp_ms / 1000, timezone.utc)


def _micros(instant: datetime) -> int:
    since = instant - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _kept(metadata: TableMetadata) -> str:
    snapshots = sorted(metadata.snapshots, key=lambda snapshot: snapshot.timestamp_ms)
    if not snapshots:
        return "none"
    shown = ", ".join(f"{s.snapshot_id} of {time_of(s)}" for s in snapshots[-3:])
    return f"{len(snapshots)} snapshots, the last of them {shown}, the first of {time_of(snapshots[0])}"
