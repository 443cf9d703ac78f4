"""Query results of the catalog as Arrow columns, without a Python object per row beyond the driver's own."""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import exc, func, literal_column, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Executable, Select
from sqlalchemy.sql.expression import ColumnElement

_BATCH = 2_000
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
    connection: Connection,
    statement: Select[Any],
    schema: pa.Schema,
    parameters: Mapping[str, Any] | None = None,
    *,
    by: str | None = None,
) -> pa.Table:
    """The result in the types of `schema`, which has the result's columns in order; sorted by the int64 column `by`."""
    found = _fetch(connection, statement, schema, parameters or {})
    if by is None or (np.diff(found.column(by).to_numpy()) >= 0).all():
        return found
    return found.sort_by(by).combine_chunks()


def _fetch(
    connection: Connection, statement: Select[Any], schema: pa.Schema, parameters: Mapping[str, Any]
) -> pa.Table:
    cursor = connection.execute(statement, parameters).cursor
    assert cursor is not None
    rows = cursor.fetchmany(_BATCH)
    if len(rows) == _BATCH and connection.dialect.name == "sqlite":
        joined = _fetch_joined(connection, statement, schema, parameters, rows)
        cursor.close()
        if joined is not None:
            return joined
        # SQLAlchemy 1.4 rolls back after an error, which ends the results that are open.
        cursor = connection.execute(statement, parameters).cursor
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


def _fetch_joined(
    connection: Connection,
    statement: Select[Any],
    schema: pa.Schema,
    parameters: Mapping[str, Any],
    first: Sequence[Sequence[Any]],
) -> pa.Table | None:
    """The result from SQLite, which joins each column to one text: many rows come faster so than one by one.

    None where that does not do: for texts that get longer than SQLite's limit or have the marks in them, for values
    that are not of their column's type, and where a column that is NULL in all of the `first` rows is not in others.
    """
    columns = list(statement.subquery().c)
    is_null = [all(value is None for value in values) for values in zip(*first, strict=True)]
    is_checked = [null or pa.types.is_string(field.type) for null, field in zip(is_null, schema, strict=True)]
    counts = [func.count(column) for column in compress(columns, is_checked)]
    joined = [
        func.group_concat(func.coalesce(column, _NULL), _BETWEEN)
        for column, null in zip(columns, is_null, strict=True)
        if not null
    ]
    try:
        count, *found = connection.execute(select(func.count(), *counts, *joined), parameters).one()
        texts = iter(found[len(counts) :])
        arrays = [
            pa.nulls(count, field.type) if null else _split(next(texts), field.type)
            for field, null in zip(schema, is_null, strict=True)
        ]
    except (exc.DataError, pa.ArrowInvalid):
        return None
    valid = [len(array) - array.null_count for array in compress(arrays, is_checked)]
    if valid != found[: len(counts)] or any(len(array) != count for array in arrays):
        return None
    return pa.Table.from_arrays(arrays, schema=schema)


_BETWEEN: ColumnElement[str] = literal_column("'\x1f'")
_NULL: ColumnElement[str] = literal_column("'\x1e'")


def _split(joined: str, type: pa.DataType) -> pa.Array:
    """The values in a text of `_fetch_joined`; ArrowInvalid where they are not of `type`."""
    texts = pc.split_pattern(pa.scalar(joined), "\x1f").values
    if "\x1e" in joined:
        texts = pc.if_else(pc.equal(texts, "\x1e"), None, texts)
    return texts if pa.types.is_string(type) else texts.cast(pa.int64()).cast(type)


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
