"""The few places where the supported DuckDB versions differ."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from lakedbapi.engine.duckdb import interruptible

MAJOR = int(duckdb.__version__.split(".")[0])
BATCH_ROWS = 122_880
"""Rows of a result batch at most: DuckDB's own row group size."""

FORGETS_ORDER = MAJOR >= 2
"""Whether one cursor can take rows in any order while others keep it: DuckDB 1 has one setting for all."""
SETTINGS = () if MAJOR >= 2 else ("SET disabled_optimizers = 'join_filter_pushdown'",)
"""DuckDB 1 skips a file by the bounds of a join's keys though it may have a NaN, which its statistics leave out."""
ALLOWED_CONFIGS = ("preserve_insertion_order",) if FORGETS_ORDER else ()
"""What `forget_order` sets, to be allowed before the configuration is locked."""


@dataclass(frozen=True)
class Stream:
    names: tuple[str, ...]
    types: tuple[str, ...]
    reader: pa.RecordBatchReader
    cursor: duckdb.DuckDBPyConnection

    def read(self) -> pa.RecordBatch:
        """The next batch; StopIteration at the end."""
        return interruptible.call(self.cursor, self.reader.read_next_batch)


def run(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object] | None = None) -> None:
    """Run a statement without rows to its end."""
    _execute(cursor, sql, parameters or {})


def forget_order(cursor: duckdb.DuckDBPyConnection) -> None:
    """Let the statements of a cursor take rows in any order, where `FORGETS_ORDER`.

    DuckDB runs the branches of a UNION ALL one after another as long as it keeps the order of their rows, for a sum of
    floating-point numbers, too.
    """
    run(cursor, "SET SESSION preserve_insertion_order = false")


def stream(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object]) -> Stream:
    """Start one statement on a cursor that runs nothing else; its rows are produced as they are read.

    DuckDB 2 only streams relations: a DB-API result is computed in whole first. DuckDB 1 does the opposite when there
    are parameters.
    """
    return interruptible.call(cursor, lambda: _stream(cursor, sql, parameters))


def _stream(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object]) -> Stream:
    if MAJOR >= 2:
        relation = cursor.sql(sql, params=dict(parameters)) if parameters else cursor.sql(sql)
        names, types = tuple(relation.columns), tuple(_type_text(t) for t in relation.types)
        return Stream(names, types, relation.to_arrow_reader(BATCH_ROWS), cursor)
    _execute(cursor, sql, parameters)
    description = cursor.description or []
    names, types = tuple(d[0] for d in description), tuple(_type_text(d[1]) for d in description)
    version_1: Any = cursor
    return Stream(names, types, version_1.fetch_record_batch(BATCH_ROWS), cursor)


def rows(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object]) -> list[dict[str, object]]:
    """Run a statement that returns a few rows."""
    interruptible.call(cursor, lambda: _execute(cursor, sql, parameters))
    names = [d[0] for d in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _execute(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object]) -> None:
    if parameters:
        cursor.execute(sql, dict(parameters))
    else:
        cursor.execute(sql)


def _type_text(type: object) -> str:
    """DuckDB 2 gives an untyped NULL a type of its own; before, and in a table made of it, it is an INTEGER."""
    text = str(type)
    return "INTEGER" if text == '"NULL"' else text


warnings.filterwarnings("ignore", message="Arrow output on a DB-API result", category=UserWarning)
