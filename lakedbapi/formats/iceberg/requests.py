"""pyiceberg's models of updates, requirements and snapshots, which take names of fields that mypy does not see."""

from __future__ import annotations

from typing import Any

import pyiceberg.table.snapshots
import pyiceberg.table.update
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType

from lakedbapi.model.refs import BRANCH, RefRetention

updates: Any = pyiceberg.table.update
snapshots: Any = pyiceberg.table.snapshots


class AssertNoOtherRefs(updates.ValidatableTableRequirement):  # type: ignore[misc]
    """Nobody has made a branch or tag since, whose snapshot would go. Servers know of no such requirement."""

    type: str = "assert-no-other-refs"
    names: list[str]

    def validate(self, base_metadata: TableMetadata | None) -> None:
        new = set() if base_metadata is None else base_metadata.refs.keys() - set(self.names)
        if new:
            raise CommitFailedException(f"another transaction made {', '.join(sorted(new))}")


def set_ref(name: str, kind: str, snapshot: int, retention: RefRetention) -> Any:
    """The update that lets the branch or tag name this snapshot."""
    return updates.SetSnapshotRefUpdate(
        ref_name=name,
        type=SnapshotRefType(kind),
        snapshot_id=snapshot,
        max_ref_age_ms=retention.max_age_ms,
        max_snapshot_age_ms=retention.max_snapshot_age_ms,
        min_snapshots_to_keep=retention.min_snapshots,
    )


def moved_ref(branch: str, before: SnapshotRef | None, snapshot: int) -> Any:
    """The update that gives a branch another snapshot and leaves its retention as it was."""
    if before is None:
        return set_ref(branch, BRANCH, snapshot, RefRetention())
    kept = RefRetention(before.max_ref_age_ms, before.min_snapshots_to_keep, before.max_snapshot_age_ms)
    return set_ref(branch, BRANCH, snapshot, kept)
