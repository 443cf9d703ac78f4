"""SQLite as the catalog database."""

from __future__ import annotations

import functools
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy
from sqlalchemy import event, text
from sqlalchemy.engine import Connection, Dialect, Engine, make_url
from sqlalchemy.pool import NullPool, Pool, QueuePool
from sqlalchemy.util import LRUCache

from lakedbapi import errors
from lakedbapi.formats.database_files import is_there
from lakedbapi.formats.ducklake.backend import DEFAULT_BUSY_TIMEOUT, Backend, Failure, pooled_engine


class SQLiteBackend(Backend):
    """A catalog in a SQLite file. The journal mode stays as the file has it."""

    kind = "sqlite"
    _table_query = text("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name AND :schema IS NULL")

    def __init__(self, path: Path, *, busy_timeout: int = DEFAULT_BUSY_TIMEOUT, create: bool = False) -> None:
        super().__init__(str(path), None, busy_timeout)
        self.path = path
        self._create = create

    @property
    def engine(self) -> Engine:
        # A pooled connection to a file that was replaced meanwhile would go on reading the old one.
        identity = _identity(self.path)
        if identity is None:
            return self._new_engine(NullPool)
        key = ("sqlite", str(self.path), self.busy_timeout, identity)
        return pooled_engine(key, lambda: self._new_engine(QueuePool, pool_size=8, max_overflow=-1))

    def _new_engine(self, pool: type[Pool], **options: Any) -> Engine:
        dialect = _dialect()
        creator: Any = self._connect
        connections = pool(creator, dialect=dialect, **options)
        engine = Engine(connections, dialect, make_url("sqlite://"), execution_options={"compiled_cache": _compiled})
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _connect(self) -> sqlite3.Connection:
        mode = "rwc" if self._create else "rw" if os.access(self.path, os.W_OK) or not is_there(self.path) else "ro"
        return sqlite3.connect(
            f"file:{quote(str(self.path))}?mode={mode}",
            uri=True,
            timeout=self.busy_timeout / 1000,
            isolation_level=None,  # pysqlite would otherwise begin transactions by its own rules.
            check_same_thread=False,
            cached_statements=256,
        )

    @contextmanager
    def _write_connection(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield connection.execution_options(lake_begin="BEGIN IMMEDIATE")

    def _lock(self, connection: Connection) -> None:
        """BEGIN IMMEDIATE took it."""

    def _lock_for_creation(self, connection: Connection) -> None:
        """BEGIN IMMEDIATE took it."""

    def wipe(self, names: Sequence[str]) -> tuple[bool, str]:
        """Free pages and the write-ahead log keep the bytes of deleted rows: VACUUM leaves out the former."""
        with closing(self._connect()) as connection:
            try:
                connection.execute("VACUUM")
                busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.Error as error:
                raise errors.OperationalError(f"catalog {self.name}: {error}") from error
        if busy:
            return False, "VACUUM done, but its log is in use: run PRAGMA wal_checkpoint(TRUNCATE) when nobody reads"
        return True, "rewritten without free pages (VACUUM)"

    def classify(self, error: BaseException) -> Failure:
        cause = getattr(error, "orig", error)
        if isinstance(cause, sqlite3.IntegrityError):
            return Failure.CONFLICT
        if isinstance(cause, sqlite3.OperationalError):
            code = getattr(cause, "sqlite_errorcode", _SQLITE_BUSY)
            return Failure.LOCKED if code & 0xFF in (_SQLITE_BUSY, _SQLITE_LOCKED) else Failure.OTHER
        return Failure.OTHER


_compiled: LRUCache[Any, Any] = LRUCache(500)
"""Statements that one catalog compiled serve the others, too: it takes longer than to run them."""


@functools.cache
def _dialect() -> Dialect:
    """The one of all catalogs, without which they could not share what was compiled."""
    engine = sqlalchemy.create_engine("sqlite://")
    engine.connect().close()
    return engine.dialect


# The sqlite3 module names these, and gives errors their codes, from Python 3.11 on.
_SQLITE_BUSY = 5
_SQLITE_LOCKED = 6


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("lake_begin", "BEGIN"))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
