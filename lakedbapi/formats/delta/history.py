"""The history of a table, from the commitInfo of its commits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.model.catalog import SnapshotInfo


def read_history(table: DeltaTable) -> Sequence[SnapshotInfo]:
    """One line a version whose commit is in the log, oldest first; what a commit does not tell is None."""
    listing = table.listing()
    times = table.times(listing, table.latest())
    infos = table.infos([version for version, _ in times])
    return [_line(version, time, infos[version]) for version, time in times]


def _line(version: int, time: datetime, info: Mapping[str, Any]) -> SnapshotInfo:
    return SnapshotInfo(
        id=version,
        time=time,
        author=_text(info.get("userName") or info.get("userId")),
        message=_text(info.get("userMetadata")),
        extra_info=_text(info.get("extraInfo") or info.get("engineInfo")),
        operation=_text(info.get("operation")),
        parameters=_texts(info.get("operationParameters")),
        metrics=_texts(info.get("operationMetrics")),
    )


def _texts(values: Any) -> Mapping[str, str]:
    """Writers put any JSON value where text belongs."""
    if not isinstance(values, Mapping):
        return {}
    return {name: _text(value) or "" for name, value in values.items() if value is not None}


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
