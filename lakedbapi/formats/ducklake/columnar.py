"""Query results of the catalog as Arrow columns, without a Python object per row beyond the driver's own."""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Executable

_BATCH = 5_000
"""Rows that are Python objects at a time."""


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
    cursor = (connection.execute(statement, parameters) if parameters else connection.execute(statement)).cursor
    assert cursor is not None
    rows = cursor.fetchmany(_BATCH)
    batches = []
    with _PAUSE if len(rows) == _BATCH else nullcontext():
        while rows:
            columns = zip(*rows, strict=True)
            arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
            batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
            rows = cursor.fetchmany(_BATCH)
    cursor.close()
    return pa.Table.from_batches(batches, schema).combine_chunks()


class _Pause:
    """No garbage collection while many rows are fetched, by however many threads.

    Every few thousand tuples the collector would go through all objects of the process, which takes longer than the
    fetching; tuples of texts and numbers are freed without it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._was_enabled:
                gc.enable()


_PAUSE = _Pause()


def _array(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(type):  # 0 and 1 in SQLite and MySQL.
        return pa.array([None if value is None else bool(value) for value in values], type)
    return pa.array(values, type)
