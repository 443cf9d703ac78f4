"""The snapshots of a catalog or table as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakedbapi.context import Context
from lakedbapi.engine.base import Result, TableResult
from lakedbapi.errors import ProgrammingError
from lakedbapi.model.catalog import SnapshotInfo
from lakedbapi.query.constants import constant
from lakedbapi.query.names import resolve_table
from lakedbapi.sql.statements import DescribeHistory

_TEXT = pa.string()
_SCHEMA = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("snapshot_time", pa.timestamp("us", tz="UTC")),
        ("schema_version", pa.int64()),
        ("changes", pa.map_(_TEXT, pa.list_(_TEXT))),
        ("author", _TEXT),
        ("commit_message", _TEXT),
        ("commit_extra_info", _TEXT),
    ]
)
SNAPSHOT_TYPES = (
    *("BIGINT", "TIMESTAMP WITH TIME ZONE", "BIGINT", "MAP(VARCHAR, VARCHAR[])"),
    *("VARCHAR", "VARCHAR", "VARCHAR"),
)
"""SQL types of the columns of `snapshot_rows`."""


_HISTORY_TYPES = (*SNAPSHOT_TYPES, "VARCHAR", "MAP(VARCHAR, VARCHAR)", "MAP(VARCHAR, VARCHAR)")


def snapshot_rows(infos: Sequence[SnapshotInfo]) -> pa.Table:
    return pa.Table.from_pylist([_row(info) for info in infos], _SCHEMA)


def history_rows(infos: Sequence[SnapshotInfo]) -> pa.Table:
    """As `snapshot_rows`, and the operation behind each where the format keeps it."""
    texts = pa.map_(_TEXT, _TEXT)
    return (
        snapshot_rows(infos)
        .append_column("operation", pa.array([info.operation for info in infos], _TEXT))
        .append_column("operation_parameters", pa.array([list(info.parameters.items()) for info in infos], texts))
        .append_column("operation_metrics", pa.array([list(info.metrics.items()) for info in infos], texts))
    )


def describe_history(context: Context, statement: DescribeHistory) -> Result:
    """The snapshots that changed a table, the newest first."""
    _, view, _, table = resolve_table(context, statement.name)
    limit: Any = None if statement.limit is None else constant(context, statement.limit)
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise ProgrammingError(f"DESCRIBE HISTORY {statement.name} LIMIT {limit!r}: give a whole number, 0 or more")
    infos = view.catalog.history(table) if table.id >= 0 else ()
    return TableResult(history_rows(infos[::-1][:limit]), _HISTORY_TYPES)


def _row(info: SnapshotInfo) -> dict[str, Any]:
    return {
        "snapshot_id": info.id,
        "snapshot_time": info.time,
        "schema_version": info.schema_version,
        "changes": [(kind, list(names)) for kind, names in info.changes.items()],
        "author": info.author,
        "commit_message": info.message,
        "commit_extra_info": info.extra_info,
    }
