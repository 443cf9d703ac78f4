"""Query results of the catalog as Arrow columns, without a Python object per row beyond the driver's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Executable


def fetch_columns(
    connection: Connection, statement: Executable, parameters: Mapping[str, Any] | None = None
) -> tuple[list[str], list[Sequence[Any]]]:
    """Names and values of the result's columns, as the driver gives them."""
    cursor = (connection.execute(statement, parameters) if parameters else connection.execute(statement)).cursor
    assert cursor is not None
    names = [column[0] for column in cursor.description]
    rows = cursor.fetchall()
    cursor.close()
    return names, list(zip(*rows, strict=True)) if rows else [() for _ in names]


def fetch_table(
    connection: Connection, statement: Executable, schema: pa.Schema, parameters: Mapping[str, Any] | None = None
) -> pa.Table:
    """The result in the types of `schema`, which has the result's columns in order."""
    _, columns = fetch_columns(connection, statement, parameters)
    return pa.Table.from_arrays(
        [_array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )


def _array(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(type):  # 0 and 1 in SQLite and MySQL.
        return pa.array([None if value is None else bool(value) for value in values], type)
    return pa.array(values, type)
