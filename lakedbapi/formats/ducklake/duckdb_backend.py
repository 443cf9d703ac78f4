"""A DuckDB file as the catalog database."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

import duckdb
from sqlalchemy import text
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import NullPool
from sqlalchemy.util import LRUCache

from lakedbapi import errors
from lakedbapi.formats.database_files import is_there
from lakedbapi.formats.ducklake.backend import DEFAULT_BUSY_TIMEOUT, Backend, Failure, pooled_engine
from lakedbapi.formats.ducklake.duckdb_dialect import Connection as DuckDBConnection
from lakedbapi.formats.ducklake.duckdb_dialect import DuckDBDialect

_CONFIG: dict[str, Any] = {"storage_compatibility_version": "v1.0.0"}
"""New files can be opened by every DuckDB since 1.0, as by those that write DuckLakes."""

_DIALECT = DuckDBDialect(dbapi=DuckDBDialect.import_dbapi(), paramstyle="qmark")
_compiled: LRUCache[Any, Any] = LRUCache(500)
"""Statements that one catalog compiled serve the others, too, as with SQLite."""


class DuckDBBackend(Backend):
    """A catalog in a DuckDB file. One process at a time can have it open."""

    kind = "duckdb"
    _table_query = text(
        "SELECT 1 FROM duckdb_tables() WHERE table_name = :name AND schema_name = coalesce(:schema, 'main') "
        "AND database_name = current_database()"
    )
    _locks: ClassVar[dict[str, threading.Lock]] = {}
    _databases: ClassVar[dict[tuple[int, str], duckdb.DuckDBPyConnection]] = {}
    _users: ClassVar[dict[tuple[int, str], WeakSet[DuckDBBackend]]] = {}
    """Those that asked for the engine of a database and have not released it."""
    _opening: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self, path: Path, schema: str | None = None, *, busy_timeout: int = DEFAULT_BUSY_TIMEOUT, create: bool = False
    ) -> None:
        super().__init__(str(path), schema, busy_timeout)
        self.path = path
        self._create = create
        self._mutex = self._locks.setdefault(str(path), threading.Lock())

    @property
    def engine(self) -> Engine:
        with self._opening:
            self._users.setdefault(self._key, WeakSet()).add(self)
        return pooled_engine(("duckdb", str(self.path)), self._new_engine)

    def _new_engine(self) -> Engine:
        options = {"compiled_cache": _compiled}
        return Engine(NullPool(self._connect), _DIALECT, URL.create("duckdb"), execution_options=options)

    @property
    def _key(self) -> tuple[int, str]:
        return os.getpid(), str(self.path)

    def _connect(self) -> Any:
        with self._opening:
            database = self._databases.get(self._key)
            if database is None:
                database = self._databases[self._key] = self._open()
            return DuckDBConnection(database.cursor())

    def _open(self) -> duckdb.DuckDBPyConnection:
        if not self._create and not is_there(self.path):
            raise errors.OperationalError(f"catalog {self.name}: no such file")
        try:
            database = duckdb.connect(str(self.path), config=_CONFIG)
        except duckdb.IOException as error:
            raise errors.OperationalError(
                f"catalog {self.name}: cannot be opened ({error}); "
                "a DuckDB file is open in one process at a time, so close it there"
            ) from error
        database.execute("SET TimeZone = 'UTC'")
        return database

    def release(self) -> None:
        """Close the file when nobody else in this process uses it, so that another process can open it."""
        with self._opening:
            users = self._users.get(self._key, WeakSet[DuckDBBackend]())
            users.discard(self)
            database = None if users else self._databases.pop(self._key, None)
            if database is not None:
                database.close()

    @contextmanager
    def _write_connection(self) -> Iterator[Connection]:
        if not self._mutex.acquire(timeout=self.busy_timeout / 1000):
            raise self._locked("a thread of this process holds the lock")
        try:
            with self.engine.connect() as connection:
                yield connection
        finally:
            self._mutex.release()

    def _lock(self, connection: Connection) -> None:
        """The mutex of `_write_connection` is the lock."""

    def _lock_for_creation(self, connection: Connection) -> None:
        self.make_schema(connection)

    def wipe(self, names: Sequence[str]) -> tuple[bool, str]:
        """DuckDB reuses the blocks of deleted rows, but neither overwrites nor returns them."""
        try:
            with closing(self._connect()) as connection:
                connection.cursor().execute("CHECKPOINT")
        except duckdb.Error as error:
            raise errors.OperationalError(f"catalog {self.name}: {error}") from error
        return False, (
            "checkpointed, but free blocks of the file may hold old values: close the lake, ATTACH a new file in "
            "DuckDB, COPY FROM DATABASE into it, and put it in the place of the old one"
        )

    def classify(self, error: BaseException) -> Failure:
        cause = getattr(error, "orig", error)
        return (
            Failure.CONFLICT
            if isinstance(cause, (duckdb.TransactionException, duckdb.ConstraintException))
            else Failure.OTHER
        )

    def dispose(self) -> None:
        super().dispose()
        database = self._databases.pop((os.getpid(), str(self.path)), None)
        if database is not None:
            database.close()
