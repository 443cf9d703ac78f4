"""Row tracking: every new file gets ids for its rows (protocol, "Row Tracking")."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence

from lakedbapi.formats.delta.actions import DomainMetadata, Protocol
from lakedbapi.formats.delta.features import writer_features
from lakedbapi.formats.delta.file_actions import Action
from lakedbapi.formats.delta.writer_features import is_on, is_true, mapping_mode
from lakedbapi.model.scan import ROW_ID_FIELD, ROW_SNAPSHOT_FIELD

DOMAIN = "delta.rowTracking"
ENABLED = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
PRESERVED = "delta.rowTracking.preserved"
COLUMNS = {
    ROW_ID_FIELD: "delta.rowTracking.materializedRowIdColumnName",
    ROW_SNAPSHOT_FIELD: "delta.rowTracking.materializedRowCommitVersionColumnName",
}
_PREFIXES = {ROW_ID_FIELD: "_row-id-col-", ROW_SNAPSHOT_FIELD: "_row-commit-version-col-"}


def is_tracked(protocol: Protocol, configuration: Mapping[str, str]) -> bool:
    """Whether new files need ids."""
    return "rowTracking" in writer_features(protocol) and not is_true(configuration, SUSPENDED)


def is_enabled(protocol: Protocol, configuration: Mapping[str, str]) -> bool:
    """Whether all files have ids."""
    return is_on(protocol, configuration, ENABLED)


def keeps_ids(configuration: Mapping[str, str]) -> bool:
    """Whether readers expect the id of a row to stay when it is copied."""
    return is_true(configuration, ENABLED) and not is_true(configuration, SUSPENDED)


def columns(configuration: Mapping[str, str]) -> Mapping[int, str]:
    """The columns in files that keep ids and commit versions of copied rows, by the id that they are embedded under;
    none where nobody expects them, or where files are read by field id, which these columns do not have."""
    found = {id: configuration[name] for id, name in COLUMNS.items() if name in configuration}
    usable = keeps_ids(configuration) and mapping_mode(configuration) != "id"
    return found if usable and len(found) == len(COLUMNS) else {}


def with_columns(configuration: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table, with names for these columns if it keeps ids."""
    found = dict(configuration)
    if keeps_ids(configuration):
        for id, name in COLUMNS.items():
            found.setdefault(name, f"{_PREFIXES[id]}{uuid.uuid4()}")
    return found


def assign(
    domains: Mapping[str, DomainMetadata], version: int, adds: Sequence[tuple[Action, int]]
) -> DomainMetadata | None:
    """Give the new files in `adds` (action, physical rows) their ids; the new high-water mark, if it moved."""
    known = domains.get(DOMAIN)
    mark = -1 if known is None else int(json.loads(known.configuration).get("rowIdHighWaterMark", -1))
    start = mark
    for action, rows in adds:
        action["baseRowId"] = mark + 1
        action["defaultRowCommitVersion"] = version
        mark += rows
    if mark == start:
        return None
    return DomainMetadata(DOMAIN, json.dumps({"rowIdHighWaterMark": mark}, separators=(",", ":")))
