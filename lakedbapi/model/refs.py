"""Branches and tags: names for snapshots of a table."""

from __future__ import annotations

from dataclasses import dataclass

BRANCH, TAG = "branch", "tag"


@dataclass(frozen=True)
class RefRetention:
    """How long expiry keeps a branch or tag, in milliseconds after its snapshot, and the snapshots that a branch is
    made of: at least so many, and all that are no older than so many milliseconds. None = what the table says."""

    max_age_ms: int | None = None
    min_snapshots: int | None = None
    max_snapshot_age_ms: int | None = None


@dataclass(frozen=True)
class NewRef:
    """A name to be given. `snapshot` None: the table's newest one; of a name that is there already, its own.

    `create`: there may be no such name yet; `replace`: there may be one. With `if_not_exists` a name that is there is
    left alone.
    """

    kind: str
    name: str
    snapshot: int | None = None
    create: bool = True
    replace: bool = False
    if_not_exists: bool = False
    retention: RefRetention = RefRetention()
