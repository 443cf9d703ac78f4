"""The rows that were inserted and deleted between two snapshots."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakedbapi.context import Context
from lakedbapi.engine.base import ROW_ID, ROW_SNAPSHOT, Relation, ScanRelation, View
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import CHANGE_TYPE, Catalog, ChangeScan
from lakedbapi.model.catalog import AsOf, TableInfo
from lakedbapi.model.scan import Scan
from lakedbapi.model.sql_types import quote_identifier, quote_literal
from lakedbapi.query.names import resolve_table
from lakedbapi.query.travel import instant
from lakedbapi.sql.statements import Name

CHANGES, INSERTIONS, DELETIONS = "table_changes", "table_insertions", "table_deletions"

_ROW_ID, _SNAPSHOT, _KIND = "_lake_row_id", "_lake_snapshot_id", "_lake_kind"
_WANTED = {
    CHANGES: ("insert", "delete", "update_preimage", "update_postimage"),
    INSERTIONS: ("insert", "update_postimage"),
    DELETIONS: ("delete", "update_preimage"),
}
_EXTRA = {ROW_ID: _ROW_ID, ROW_SNAPSHOT: _SNAPSHOT}


def change_feed(
    context: Context,
    kind: str,
    catalog: Catalog,
    name: Name,
    bounds: tuple[Any, Any],
    special: str,
    shown: frozenset[str],
) -> dict[str, Relation]:
    """The relation `special`, and those that it reads, by local name.

    `kind` is one of CHANGES (columns `snapshot_id`, `rowid`, `change_type`, then those of the table at the end),
    INSERTIONS and DELETIONS (the table's columns, and of `snapshot_id` and `rowid` those in `shown`). `bounds` are
    snapshot ids or times, both inclusive.
    """
    if not catalog.capabilities.change_feed:
        raise NotSupportedError(f"{kind}: format {catalog.format!r} keeps no change feed; compare two versions instead")
    _, view, _, table = resolve_table(replace(context, as_of=_end(context, kind, bounds[1])), name)
    first, last = _first(context, catalog, kind, table, bounds[0]), view.snapshot.version(table)
    wanted = _WANTED[kind]
    changes = () if _is_after(catalog, first, last) else catalog.table_changes(table, first, last)
    parts = [change for change in changes if change.kind is None or change.kind in wanted]
    if not parts:
        parts = [ChangeScan(wanted[0], last, Scan(table.schema))]
    columns = [quote_identifier(column) for column in table.schema.names]
    locals_ = {f"{special}:{number}": change for number, change in enumerate(parts)}
    rows = _union(locals_, columns, first, last)
    relations: dict[str, Relation] = {local: ScanRelation(change.scan, _EXTRA) for local, change in locals_.items()}
    text = _with_types(rows, columns) if kind == CHANGES else _plain(rows, columns, shown, wanted)
    return {**relations, special: View(text)}


def _union(parts: Mapping[str, ChangeScan], columns: Sequence[str], first: int | datetime.datetime, last: int) -> str:
    """All changed rows with their snapshot, row id and kind."""
    selects = []
    for local, change in parts.items():
        snapshot = _SNAPSHOT if change.snapshot is None else f"{change.snapshot}::BIGINT"
        inside = f" WHERE {_SNAPSHOT} BETWEEN {first} AND {last}" if change.snapshot is None else ""
        told = quote_identifier(CHANGE_TYPE) if change.kind is None else quote_literal(change.kind)
        shown = f"{_ROW_ID}, {told} AS {_KIND}, {', '.join(columns)}"
        selects.append(f"SELECT {snapshot} AS {_SNAPSHOT}, {shown} FROM {quote_identifier(local)}{inside}")
    return "\nUNION ALL ".join(selects)


def _with_types(rows: str, columns: Sequence[str]) -> str:
    """Rows with their change type: a row id deleted and inserted in one snapshot is an update."""
    both = f"{_ROW_ID} IS NOT NULL AND count(DISTINCT {_KIND}) OVER (PARTITION BY {_SNAPSHOT}, {_ROW_ID}) = 2"
    update = f"CASE {_KIND} WHEN 'insert' THEN 'update_postimage' ELSE 'update_preimage' END"
    kind = f"CASE WHEN {both} THEN {update} ELSE {_KIND} END AS change_type"
    shown = f"{_SNAPSHOT} AS snapshot_id, {_ROW_ID} AS rowid, {kind}, {', '.join(columns)}"
    return f"SELECT {shown} FROM (\n{rows}\n)"


def _plain(rows: str, columns: Sequence[str], shown: frozenset[str], wanted: Sequence[str]) -> str:
    hidden = {"snapshot_id": f", {_SNAPSHOT} AS snapshot_id", "rowid": f", {_ROW_ID} AS rowid"}
    extra = "".join(text for name, text in hidden.items() if name in shown)
    kinds = ", ".join(map(quote_literal, wanted))
    return f"SELECT {', '.join(columns)}{extra} FROM (\n{rows}\n) WHERE {_KIND} IN ({kinds})"


def _is_after(catalog: Catalog, first: int | datetime.datetime, last: int) -> bool:
    return isinstance(first, int) and catalog.capabilities.ordered_versions and first > last


def _first(context: Context, catalog: Catalog, kind: str, table: TableInfo, value: Any) -> int | datetime.datetime:
    """The first snapshot of the range; its time where that alone tells which one is later."""
    bound = _bound(context, kind, value)
    if isinstance(bound, int) or not catalog.capabilities.ordered_versions:
        return bound
    history = catalog.history(table if catalog.capabilities.table_versions else None)
    return min((info.id for info in history if info.time >= bound), default=history[-1].id + 1)


def _end(context: Context, kind: str, value: Any) -> AsOf:
    """The last snapshot of the range."""
    bound = _bound(context, kind, value)
    return AsOf(version=bound) if isinstance(bound, int) else AsOf(timestamp=bound)


def _bound(context: Context, kind: str, value: Any) -> int | datetime.datetime:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    at = instant(context, value)
    if at is None:
        raise ProgrammingError(f"{kind}: {value!r} is neither a snapshot id nor a timestamp")
    return at
