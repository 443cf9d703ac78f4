"""Row tracking: every new file gets ids for its rows (protocol, "Row Tracking")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lakedbapi.formats.delta.actions import DomainMetadata
from lakedbapi.formats.delta.features import writer_features
from lakedbapi.formats.delta.file_actions import Action
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.writer_features import is_true
from lakedbapi.model.scan import ROW_ID_FIELD, ROW_SNAPSHOT_FIELD

DOMAIN = "delta.rowTracking"
PRESERVED = "delta.rowTracking.preserved"


def is_tracked(state: TableState | None) -> bool:
    """Whether new files need ids."""
    if state is None or "rowTracking" not in writer_features(state.protocol):
        return False
    return not is_true(state.metadata.configuration, "delta.rowTrackingSuspended")


def keeps_ids(state: TableState | None) -> bool:
    """Whether readers expect the id of a row to stay when it is copied."""
    return is_tracked(state) and state is not None and is_true(state.metadata.configuration, "delta.enableRowTracking")


def columns(state: TableState) -> Mapping[int, str]:
    """The columns in files that keep ids and commit versions of copied rows, by the id that they are embedded under;
    none where nobody expects them, or where files are read by field id, which these columns do not have."""
    configuration = state.metadata.configuration
    names = {
        ROW_ID_FIELD: configuration.get("delta.rowTracking.materializedRowIdColumnName"),
        ROW_SNAPSHOT_FIELD: configuration.get("delta.rowTracking.materializedRowCommitVersionColumnName"),
    }
    found = {id: name for id, name in names.items() if name is not None}
    usable = keeps_ids(state) and configuration.get("delta.columnMapping.mode", "none").casefold() != "id"
    return found if usable and len(found) == len(names) and not state.files["base_row_id"].null_count else {}


def assign(state: TableState, version: int, adds: Sequence[tuple[Action, int]]) -> DomainMetadata | None:
    """Give the new files among `adds` (action, physical rows) their ids; the new high-water mark, if it moved."""
    known = state.domains.get(DOMAIN)
    mark = -1 if known is None else int(json.loads(known.configuration).get("rowIdHighWaterMark", -1))
    start = mark
    for action, rows in adds:
        action["baseRowId"] = mark + 1
        action["defaultRowCommitVersion"] = version
        mark += rows
    if mark == start:
        return None
    return DomainMetadata(DOMAIN, json.dumps({"rowIdHighWaterMark": mark}, separators=(",", ":")))
