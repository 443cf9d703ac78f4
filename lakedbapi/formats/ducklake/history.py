"""The snapshots that a catalog keeps, and what each of them changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.engine import Connection

from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.ducklake.changes_made import parse
from lakedbapi.formats.ducklake.metadata import Tables
from lakedbapi.model.catalog import SnapshotInfo, TableInfo

_KINDS = {
    "created_schema": "schemas_created",
    "created_table": "tables_created",
    "created_view": "views_created",
    "created_scalar_macro": "scalar_macros_created",
    "created_table_macro": "table_macros_created",
    "dropped_schema": "schemas_dropped",
    "dropped_table": "tables_dropped",
    "dropped_view": "views_dropped",
    "dropped_scalar_macro": "scalar_macros_dropped",
    "dropped_table_macro": "table_macros_dropped",
    "inserted_into_table": "tables_inserted_into",
    "deleted_from_table": "tables_deleted_from",
    "altered_table": "tables_altered",
    "altered_view": "views_altered",
    "inline_flush": "flushed_inlined",
}
"""Word of `changes_made` -> the key that DuckDB's `ducklake_snapshots` gives it. Other words are their own key."""
_QUOTED_NAME = re.compile(r'"((?:[^"]|"")*)"')
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_history(connection: Connection, tables: Tables) -> Sequence[SnapshotInfo]:
    """All kept snapshots, oldest first."""
    snapshot, made = tables.snapshot.c, tables.snapshot_changes.c
    rows = connection.execute(
        select(
            snapshot.snapshot_id,
            snapshot.snapshot_time,
            snapshot.schema_version,
            made.changes_made,
            made.author,
            made.commit_message,
            made.commit_extra_info,
        )
        .select_from(tables.snapshot.outerjoin(tables.snapshot_changes, snapshot.snapshot_id == made.snapshot_id))
        .order_by(snapshot.snapshot_id)
    )
    return [
        SnapshotInfo(id, time, schema_version, changes_by_kind(text), author, message, extra_info)
        for id, time, schema_version, text, author, message, extra_info in rows
    ]


@dataclass(frozen=True)
class TableChanges:
    """Tells which snapshots changed a table: these name it by its id, except for one that gave it a name (`named`)."""

    table_id: int
    named: frozenset[int]

    @classmethod
    def read(cls, backend: Backend, table: TableInfo) -> TableChanges:
        rows = backend.tables.table.c
        with backend.read() as connection:
            begins = connection.execute(select(rows.begin_snapshot).where(rows.table_id == table.id)).scalars()
            return cls(table.id, frozenset(begins))

    def are_in(self, info: SnapshotInfo) -> bool:
        return info.id in self.named or any(str(self.table_id) in names for names in info.changes.values())

    def are_all_of(self, info: SnapshotInfo) -> bool:
        """Whether the snapshot changed nothing else."""
        others = {kind: [name for name in names if name != str(self.table_id)] for kind, names in info.changes.items()}
        created = others.pop(_KINDS["created_table"], [])
        return self.are_in(info) and len(created) == (info.id in self.named) and not any(others.values())


def changes_by_kind(text: str | None) -> Mapping[str, tuple[str, ...]]:
    """What a snapshot touched: ids, or names such as `main.t`, quoted where they need it."""
    return {_KINDS.get(word, word): tuple(_spell(entry) for entry in entries) for word, entries in parse(text).items()}


def _spell(entry: str) -> str:
    return _QUOTED_NAME.sub(lambda name: name[1] if _PLAIN_NAME.fullmatch(name[1]) else name[0], entry)
