"""Removal of the log's oldest files, from which no kept version is read (protocol, "Metadata Cleanup")."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from lakedbapi.formats.delta.checkpoint_writer import LAST
from lakedbapi.formats.delta.checkpoints import SIDECARS, sidecars_of
from lakedbapi.formats.delta.features import writer_features
from lakedbapi.formats.delta.intervals import milliseconds
from lakedbapi.formats.delta.log import LOG, all_checkpoints, commit_times
from lakedbapi.formats.delta.state import TableState
from lakedbapi.model.instants import ago
from lakedbapi.storage.filesystem import Storage

if TYPE_CHECKING:
    from lakedbapi.formats.delta.table import DeltaTable

_MONTH = "interval 30 days"
_NEVER = 1 << 62
_DAY = 86_400_000
"""Milliseconds."""
VERSIONED = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\..*|\d{20}\.compacted\.json)")
"""A file that is about the version in its name."""


def clean_log(storage: Storage, table: DeltaTable, state: TableState) -> None:
    """Remove what is older than `delta.logRetentionDuration`, to the day, but the newest checkpoint of that time and
    its commit."""
    configuration = state.metadata.configuration
    if configuration.get("delta.enableExpiredLogCleanup", "true").casefold() == "false":
        return
    if "checkpointProtection" in writer_features(state.protocol):
        return
    retention = milliseconds(configuration.get("delta.logRetentionDuration", _MONTH))
    cutoff = ago(retention).replace(hour=0, minute=0, second=0, microsecond=0)
    listing = table.listing()
    times = commit_times(listing.commits)
    old = [version for version in listing.checkpoints if version in times and times[version] <= cutoff]
    if not old:
        return
    kept = min(max(old), _hinted(storage, table.root))
    doomed = []
    for entry in storage.entries(table.root + LOG):
        match = VERSIONED.fullmatch(entry.name)
        if match is not None and not entry.is_directory and int(match[1]) < kept:
            doomed.append(entry.path)
    # Oldest first: what is left after an interruption reads as before.
    storage.delete(sorted(doomed))
    _remove_sidecars(storage, table.root)


def _hinted(storage: Storage, root: str) -> int:
    """The version of the checkpoint that readers are led to, who take its absence for damage; a number that no version
    has if they are led to none."""
    path = f"{root}{LOG}{LAST}"
    if not storage.exists(path):
        return _NEVER
    try:
        hint = json.loads(storage.read_bytes(path))
    except ValueError:
        return _NEVER
    version = hint.get("version") if isinstance(hint, dict) else None
    return version if isinstance(version, int) else _NEVER


def _remove_sidecars(storage: Storage, root: str) -> None:
    """Those that no checkpoint names; not the youngest, whose checkpoint may be under way."""
    found = [entry for entry in storage.entries(f"{root}{LOG}{SIDECARS}") if not entry.is_directory]
    youngest = ago(_DAY)
    old = {entry.path for entry in found if entry.mtime is not None and entry.mtime < youngest}
    if old:
        for checkpoint in all_checkpoints(storage, root):
            old.difference_update(sidecars_of(storage, root, checkpoint))
        storage.delete(sorted(old))
