"""A small SQLAlchemy dialect over an embedded DuckDB file: just what catalog statements need, registered nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
from sqlalchemy.engine import default


class Cursor:
    """Reads each result to its end at once: an unfinished result would block the connection's next statement."""

    arraysize = 1
    rowcount = -1
    lastrowid = None

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._rows: list[tuple[Any, ...]] = []
        self._next = 0
        self.description: Sequence[Any] | None = None

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(statement, list(parameters))
        self._keep_result()

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, [list(row) for row in parameters])
        self.description, self._rows, self._next = None, [], 0

    def _keep_result(self) -> None:
        description: Sequence[Any] | None = self._connection.description
        self._rows, self._next = self._connection.fetchall(), 0
        self.rowcount = -1
        # DuckDB answers INSERT, UPDATE and DELETE with one row that holds their count.
        if description and [column[0] for column in description] == ["Count"]:
            self.rowcount = self._rows[0][0] if self._rows else 0
            description, self._rows = None, []
        self.description = description or None

    def fetchone(self) -> tuple[Any, ...] | None:
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        start = self._next
        self._next = min(start + (size or self.arraysize), len(self._rows))
        return self._rows[start : self._next]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(len(self._rows) or 1)

    def close(self) -> None:
        self._rows = []


class Connection:
    """A PEP 249 connection whose cursors share its transaction, which DuckDB's own do not."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._open = False

    def cursor(self) -> Cursor:
        return Cursor(self._connection)

    def begin(self) -> None:
        self._connection.execute("BEGIN TRANSACTION")
        self._open = True

    def commit(self) -> None:
        if self._open:
            self._open = False
            self._connection.execute("COMMIT")

    def rollback(self) -> None:
        if self._open:
            self._open = False
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


class DuckDBDialect(default.DefaultDialect):
    """Core statements for DuckDB."""

    name = "duckdb"
    driver = "duckdb"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = False
    supports_multivalues_insert = True
    default_paramstyle = "qmark"
    insert_returning = False

    @classmethod
    def import_dbapi(cls) -> Any:
        return duckdb

    def initialize(self, connection: Any) -> None:
        self.default_schema_name = "main"

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.begin()
