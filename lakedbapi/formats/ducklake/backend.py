"""The contract of the databases that can hold a DuckLake catalog: transactions, write locks and their errors."""

from __future__ import annotations

import enum
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import MetaData, Table, exc, literal_column, select, text
from sqlalchemy.engine import Connection, CursorResult, Engine
from sqlalchemy.sql.expression import TextClause

from lakedbapi import errors
from lakedbapi.formats.ducklake import versions
from lakedbapi.formats.ducklake.metadata import Tables, tables
from lakedbapi.formats.ducklake.old_tables import OldTables

DEFAULT_BUSY_TIMEOUT = 30_000
"""Milliseconds that a statement waits for another process' lock."""


class Failure(enum.Enum):
    """What a database error means for the transaction that met it."""

    CONFLICT = "conflict"
    """Another writer was first: the same work may succeed on the newest snapshot."""
    LOCKED = "locked"
    """Another process kept its lock for longer than the busy timeout."""
    LOST = "connection lost"
    """The connection broke; during a commit, its outcome is unknown."""
    OTHER = "other"


class Backend(ABC):
    """A database that holds a catalog. `name` is how messages call it, without secrets."""

    kind: str
    _table_query: TextClause
    """Has a row if there is a table `:name` in the database schema `:schema`, where NULL is the default one."""
    transactional_ddl = True
    """Whether CREATE TABLE is part of the transaction; where not, it commits what came before."""

    def __init__(self, name: str, schema: str | None, busy_timeout: int) -> None:
        self.name = name
        self.tables: Tables = tables(schema, versions.DEFAULT)
        self.busy_timeout = busy_timeout

    def adopt(self, connection: Connection, version: str) -> None:
        """Take the catalog's tables for those of `version`, a format version that can be read."""
        schema = self.tables.schema_name
        if version in versions.CREATED:
            self.tables = tables(schema, version)
            return
        wanted = tables(schema, versions.DEFAULT if version in versions.READ else version)
        found = {name: self._columns(connection, name) for name in map(_name, wanted.collection.sorted_tables)}
        if version in versions.READ:
            self.tables = OldTables(schema, version, found)
        else:
            columns = [(table.name, column.name) for table in wanted.collection.sorted_tables for column in table.c]
            lacking = frozenset((table, column) for table, column in columns if column not in found[table])
            self.tables = tables(schema, version, lacking)

    def _columns(self, connection: Connection, table: str) -> Sequence[str]:
        return self.column_names(connection, table) if self.has_table(connection, table) else ()

    def check_writable(self) -> None:
        """NotSupportedError when the catalog's format version is only read."""
        versions.check_writable(self.tables.version, self.name)

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """The connection pool of this process."""

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A short transaction that sees one state of the catalog. Database errors come out as OperationalError."""
        with self._translated(), self._read_connection() as connection, connection.begin():
            yield connection

    @contextmanager
    def glance(self) -> Iterator[Connection]:
        """As `read`, for a single statement: saves the round trips of a transaction."""
        with self._translated(), self._glance_connection() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that holds the catalog's write lock from its start; commits at the end of the block.

        Raises ConflictError when another writer was first, CommitUnknownError when the connection broke during the
        commit, else OperationalError, also when the lock cannot be had in time. Any exception inside the block rolls
        back.
        """
        self.check_writable()
        with self.migration() as connection:
            yield connection

    @contextmanager
    def migration(self) -> Iterator[Connection]:
        """As `write`, whatever the format version."""
        with self._translated(), self._write_connection() as connection:
            transaction = connection.begin()
            try:
                self._lock(connection)
                yield connection
            except BaseException:
                transaction.rollback()
                raise
            try:
                transaction.commit()
            except exc.DBAPIError as error:
                if self.classify(error) is Failure.LOST:
                    raise errors.CommitUnknownError(
                        f"catalog {self.name}: the connection broke during the commit, so it is unknown whether it "
                        "took effect; look at the catalog's newest snapshots before you repeat the work"
                    ) from error
                transaction.rollback()
                raise
            except BaseException:
                connection.invalidate()  # Interrupted: the connection may be in the middle of anything.
                raise

    @contextmanager
    def creation(self) -> Iterator[Connection]:
        """As `write`, for making the catalog's tables: the lock does not need them."""
        with self._translated(), self._write_connection() as connection, connection.begin():
            self._lock_for_creation(connection)
            yield connection

    def has_table(self, connection: Connection, name: str) -> bool:
        """Whether the catalog's database schema has a table `name`."""
        wanted = {"name": name, "schema": self.tables.schema_name}
        return connection.execute(self._table_query, wanted).first() is not None

    def column_names(self, connection: Connection, name: str) -> Sequence[str]:
        """The columns of the table `name` in their order."""
        table = Table(name, MetaData(schema=self.tables.schema_name))
        result: CursorResult[Any] = connection.execute(select(literal_column("*")).select_from(table).limit(0))
        assert result.cursor is not None
        return [column[0] for column in result.cursor.description]

    def make_schema(self, connection: Connection) -> None:
        """Make the database schema that the catalog is to lie in, if one was named."""
        if self.tables.schema_name is not None:
            name = connection.dialect.identifier_preparer.quote(self.tables.schema_name)
            connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {name}"))

    @abstractmethod
    def classify(self, error: BaseException) -> Failure:
        """By exception class and error code, never by message text, which servers translate."""

    def translate(self, error: exc.SQLAlchemyError) -> errors.Error:
        """The PEP 249 error for a database error."""
        cause = getattr(error, "orig", None) or error
        reason = " ".join(str(cause).split()) or type(cause).__name__
        failure = self.classify(error)
        if failure is Failure.CONFLICT:
            return errors.ConflictError(
                f"catalog {self.name}: another transaction was first ({reason}); roll back and retry"
            )
        if failure is Failure.LOCKED:
            return self._locked(reason)
        translated = errors.OperationalError(f"catalog {self.name}: {reason}")
        # Outside of a commit nothing happened: a new connection can do the same work again.
        translated.retryable = failure is Failure.LOST
        return translated

    def _locked(self, reason: str) -> errors.OperationalError:
        error = errors.OperationalError(
            f"catalog {self.name}: it was locked by another transaction for more than {self.busy_timeout / 1000:g} s "
            f"({reason}); retry when that one has ended, or connect with a longer busy_timeout (milliseconds)"
        )
        error.retryable = True
        return error

    @abstractmethod
    def wipe(self, names: Sequence[str]) -> tuple[bool, str]:
        """Free the bytes of rows that were deleted from the tables `names`, outside of any transaction.

        Returns whether none are left in the database's own files, and what was done or is left to do, as text. Raises
        OperationalError when it cannot be done now.
        """

    def release(self) -> None:
        """A session that used the catalog has ended: give back what only one process can have."""

    def dispose(self) -> None:
        """Close the pooled connections; the next use opens new ones."""
        self.engine.dispose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @abstractmethod
    def _lock(self, connection: Connection) -> None:
        """Take the write lock, as the first statement of a transaction."""

    @abstractmethod
    def _lock_for_creation(self, connection: Connection) -> None:
        """Keep others from making the same tables, in a new transaction; make the schema for them."""

    @contextmanager
    def _read_connection(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def _glance_connection(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def _write_connection(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except exc.SQLAlchemyError as error:
            raise self.translate(error) from error


def _name(table: Table) -> str:
    return str(table.name)


_engines: dict[tuple[Any, ...], Engine] = {}
_engines_lock = threading.Lock()


def pooled_engine(key: tuple[Any, ...], new: Callable[[], Engine]) -> Engine:
    """The engine for `key` of this process: a forked child must not use its parent's connections."""
    key = (os.getpid(), *key)
    engine = _engines.get(key)
    if engine is None:
        with _engines_lock:
            engine = _engines.get(key)
            if engine is None:
                engine = _engines[key] = new()
    return engine
