"""The snapshots of a table."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lakedbapi.formats.iceberg.summary import AUTHOR, EXTRA_INFO, MESSAGE
from lakedbapi.formats.iceberg.travel import time_of
from lakedbapi.model.catalog import SnapshotInfo


def history(metadata: TableMetadata) -> Sequence[SnapshotInfo]:
    """All kept snapshots, of any branch, oldest first."""
    ordered = sorted(metadata.snapshots, key=lambda s: (s.sequence_number or 0, s.timestamp_ms))
    return [_info(snapshot) for snapshot in ordered]


def _info(snapshot: Snapshot) -> SnapshotInfo:
    summary = snapshot.summary
    metrics = {} if summary is None else dict(summary.additional_properties)
    return SnapshotInfo(
        snapshot.snapshot_id,
        time_of(snapshot),
        schema_version=snapshot.schema_id,
        author=metrics.get(AUTHOR),
        message=metrics.get(MESSAGE),
        extra_info=metrics.get(EXTRA_INFO),
        operation=None if summary is None else summary.operation.value,
        metrics=metrics,
    )
