"""The values that identity columns were given: table options, which no snapshot versions.

Beside the highest value stands the snapshot that assigned it, so that a transaction sees that another one was first.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import delete, select
from sqlalchemy.engine import Connection

from lakedbapi.formats.ducklake import tags
from lakedbapi.formats.ducklake.attempt import Attempt
from lakedbapi.formats.ducklake.metadata import Tables


def snapshot_option(column: str) -> str:
    """Name of the table option that holds the snapshot of the last assignment."""
    return f"{tags.identity_option(column)}.snapshot"


def assigned_since(connection: Connection, tables: Tables, table_id: int, column: str, snapshot: int) -> bool:
    rows = tables.metadata.c
    last = select(rows.value).where(
        rows.key == snapshot_option(column), rows.scope == "table", rows.scope_id == table_id
    )
    value = connection.execute(last).scalar()
    return value is not None and int(value) > snapshot


def write_marks(attempt: Attempt, marks: Mapping[tuple[int, str], int]) -> None:
    """Note the highest value of each (table id, column) that this commit assigned."""
    rows = attempt.tables.metadata
    for (id, column), value in marks.items():
        table_id = attempt.table_id(id)
        for key, number in ((tags.identity_option(column), value), (snapshot_option(column), attempt.snapshot_id)):
            attempt.connection.execute(
                delete(rows).where(rows.c.key == key, rows.c.scope == "table", rows.c.scope_id == table_id)
            )
            attempt.add(rows, key=key, value=str(number), scope="table", scope_id=table_id)
