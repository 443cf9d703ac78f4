"""The databases that can hold a DuckLake catalog: connections, transactions, write locks and their errors."""

from __future__ import annotations

import enum
import math
import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import duckdb
import sqlalchemy
from sqlalchemy import MetaData, Table, event, exc, literal_column, select, text
from sqlalchemy.engine import URL, Connection, CursorResult, Engine, make_url
from sqlalchemy.pool import NullPool, QueuePool
from sqlalchemy.schema import CreateSchema
from sqlalchemy.sql.expression import TextClause

from lakedbapi import errors
from lakedbapi.formats.ducklake.duckdb_dialect import Connection as DuckDBConnection
from lakedbapi.formats.ducklake.duckdb_dialect import DuckDBDialect
from lakedbapi.formats.ducklake.metadata import Tables, tables

DEFAULT_BUSY_TIMEOUT = 30_000
"""Milliseconds that a statement waits for another process' lock."""


class Failure(enum.Enum):
    """What a database error means for the transaction that met it."""

    CONFLICT = "conflict"
    """Another writer was first: the same work may succeed on the newest snapshot."""
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
        self.tables: Tables = tables(schema)
        self.busy_timeout = busy_timeout

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
        commit, else OperationalError. Any exception inside the block rolls back.
        """
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

    @abstractmethod
    def classify(self, error: BaseException) -> Failure:
        """By exception class and error code, never by message text, which servers translate."""

    def translate(self, error: exc.SQLAlchemyError) -> errors.Error:
        """The PEP 249 error for a database error."""
        cause = getattr(error, "orig", None) or error
        reason = " ".join(str(cause).split()) or type(cause).__name__
        if self.classify(error) is Failure.CONFLICT:
            return errors.ConflictError(
                f"catalog {self.name}: another transaction was first ({reason}); roll back and retry"
            )
        translated = errors.OperationalError(f"catalog {self.name}: {reason}")
        # Outside of a commit nothing happened: a new connection can do the same work again.
        translated.retryable = self.classify(error) is Failure.LOST
        return translated

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
            return self._new_engine(poolclass=NullPool)
        key = ("sqlite", str(self.path), self.busy_timeout, identity)
        return _engine(key, lambda: self._new_engine(poolclass=QueuePool, pool_size=8, max_overflow=-1))

    def _new_engine(self, **pool: Any) -> Engine:
        engine = sqlalchemy.create_engine("sqlite://", creator=self._connect, **pool)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _connect(self) -> sqlite3.Connection:
        mode = "rwc" if self._create else "rw" if os.access(self.path, os.W_OK) or not self.path.exists() else "ro"
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

    def classify(self, error: BaseException) -> Failure:
        cause = getattr(error, "orig", error)
        if isinstance(cause, sqlite3.IntegrityError):
            return Failure.CONFLICT
        if isinstance(cause, sqlite3.OperationalError):
            code = getattr(cause, "sqlite_errorcode", _SQLITE_BUSY)
            return Failure.CONFLICT if code & 0xFF in (_SQLITE_BUSY, _SQLITE_LOCKED) else Failure.OTHER
        return Failure.OTHER


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


class ServerBackend(Backend):
    """A catalog on a database server. SQLAlchemy `url` carries the driver and the credentials."""

    conflicts: frozenset[Any]
    """Error codes (SQLSTATE or number) of lost races and lock timeouts."""

    def __init__(self, url: URL, schema: str | None, *, busy_timeout: int = DEFAULT_BUSY_TIMEOUT) -> None:
        super().__init__(url.render_as_string(hide_password=True), schema, busy_timeout)
        self._url = url

    @property
    def engine(self) -> Engine:
        return _engine((self.kind, self._url.render_as_string(hide_password=False)), self._new_engine)

    def _new_engine(self) -> Engine:
        engine = sqlalchemy.create_engine(self._url, pool_size=8, max_overflow=-1)
        event.listen(engine, "checkin", _note_checkin)
        event.listen(engine, "checkout", _verify_idle)
        return engine

    @abstractmethod
    def _code(self, cause: BaseException) -> Any: ...

    def classify(self, error: BaseException) -> Failure:
        if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
            return Failure.LOST
        cause = getattr(error, "orig", error)
        if cause is not None and self._code(cause) in self.conflicts:
            return Failure.CONFLICT
        return Failure.OTHER

    @contextmanager
    def _read_connection(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="REPEATABLE READ")

    @contextmanager
    def _glance_connection(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def _write_connection(self) -> Iterator[Connection]:
        # Statements after the lock must see what the lock's former holder committed.
        with self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="READ COMMITTED")


_IDLE_SECONDS = 10.0
"""A connection that was not used for longer may have been closed by the server or by something between."""


def _note_checkin(connection: Any, record: Any) -> None:
    record.info["idle since"] = time.monotonic()


def _verify_idle(connection: Any, record: Any, proxy: Any) -> None:
    if connection is None or time.monotonic() - record.info.get("idle since", math.inf) < _IDLE_SECONDS:
        return
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute("SELECT 1")
        connection.rollback()
    except Exception as error:
        raise exc.DisconnectionError from error  # The pool opens another one.


class PostgreSQLBackend(ServerBackend):
    """A catalog in a PostgreSQL database schema."""

    kind = "postgresql"
    _table_query = text(
        "SELECT 1 FROM pg_tables WHERE tablename = :name AND schemaname = coalesce(:schema, current_schema())"
    )
    conflicts = frozenset({"23505", "40001", "40P01", "55P03", "42P07"})

    def _lock(self, connection: Connection) -> None:
        connection.execute(text(f"SET LOCAL lock_timeout = {int(self.busy_timeout)}"))
        name = connection.dialect.identifier_preparer.format_table(self.tables.snapshot)
        connection.execute(text(f"LOCK TABLE {name} IN SHARE ROW EXCLUSIVE MODE"))

    def _lock_for_creation(self, connection: Connection) -> None:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('ducklake'))"))
        if self.tables.schema_name is not None:
            connection.execute(CreateSchema(self.tables.schema_name, if_not_exists=True))

    def _code(self, cause: BaseException) -> Any:
        return getattr(cause, "sqlstate", None)


class MySQLBackend(ServerBackend):
    """A catalog in a MySQL or MariaDB database."""

    kind = "mysql"
    _table_query = text(
        "SELECT 1 FROM information_schema.tables "
        "WHERE table_name = :name AND table_schema = coalesce(:schema, database())"
    )
    transactional_ddl = False
    conflicts = frozenset({1062, 1205, 1213, 1020, 3572, 1050})

    def _lock(self, connection: Connection) -> None:
        connection.execute(text(f"SET SESSION innodb_lock_wait_timeout = {max(1, self.busy_timeout // 1000)}"))
        # One fixed row: waiters on "the last snapshot" would wake up with a row that is no longer the last.
        metadata = self.tables.metadata
        connection.execute(select(metadata.c.value).where(metadata.c.key == "version").with_for_update())

    def _lock_for_creation(self, connection: Connection) -> None:
        """CREATE TABLE would release it: the rows of the first snapshot collide instead."""

    def _code(self, cause: BaseException) -> Any:
        return cause.args[0] if cause.args else None


class DuckDBBackend(Backend):
    """A catalog in a DuckDB file. One process at a time can have it open."""

    kind = "duckdb"
    _table_query = text(
        "SELECT 1 FROM duckdb_tables() WHERE table_name = :name AND schema_name = coalesce(:schema, 'main') "
        "AND database_name = current_database()"
    )
    _locks: ClassVar[dict[str, threading.Lock]] = {}
    _databases: ClassVar[dict[tuple[int, str], duckdb.DuckDBPyConnection]] = {}

    def __init__(
        self, path: Path, schema: str | None = None, *, busy_timeout: int = DEFAULT_BUSY_TIMEOUT, create: bool = False
    ) -> None:
        super().__init__(str(path), schema, busy_timeout)
        self.path = path
        self._create = create
        self._mutex = self._locks.setdefault(str(path), threading.Lock())

    @property
    def engine(self) -> Engine:
        return _engine(("duckdb", str(self.path)), self._new_engine)

    def _new_engine(self) -> Engine:
        return Engine(
            NullPool(self._connect),
            DuckDBDialect(dbapi=DuckDBDialect.import_dbapi(), paramstyle="qmark"),
            URL.create("duckdb"),
        )

    def _connect(self) -> Any:
        key = (os.getpid(), str(self.path))
        database = self._databases.get(key)
        if database is None:
            if not self._create and not self.path.exists():
                raise errors.OperationalError(f"catalog {self.name}: no such file")
            try:
                database = duckdb.connect(str(self.path))
            except duckdb.IOException as error:
                raise errors.OperationalError(
                    f"catalog {self.name}: cannot be opened ({error}); "
                    "a DuckDB file is open in one process at a time, so close it there"
                ) from error
            database.execute("SET TimeZone = 'UTC'")
            self._databases[key] = database
        return DuckDBConnection(database.cursor())

    @contextmanager
    def _write_connection(self) -> Iterator[Connection]:
        if not self._mutex.acquire(timeout=self.busy_timeout / 1000):
            raise errors.ConflictError(f"catalog {self.name}: another thread holds the write lock; retry later")
        try:
            with self.engine.connect() as connection:
                yield connection
        finally:
            self._mutex.release()

    def _lock(self, connection: Connection) -> None:
        """The mutex of `_write_connection` is the lock."""

    def _lock_for_creation(self, connection: Connection) -> None:
        if self.tables.schema_name is not None:
            connection.execute(CreateSchema(self.tables.schema_name, if_not_exists=True))

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


_engines: dict[tuple[Any, ...], Engine] = {}
_engines_lock = threading.Lock()


def _engine(key: tuple[Any, ...], new: Callable[[], Engine]) -> Engine:
    """The engine for `key` of this process: a forked child must not use its parent's connections."""
    key = (os.getpid(), *key)
    engine = _engines.get(key)
    if engine is None:
        with _engines_lock:
            engine = _engines.get(key)
            if engine is None:
                engine = _engines[key] = new()
    return engine


def backend_for(location: str, options: Mapping[str, str], *, create: bool = False) -> Backend:
    """The backend of a location: `sqlite:/abs/file`, `duckdb:/abs/file`, `postgresql://…` or `mysql://…`.

    Uses the options `metadata_schema` and `busy_timeout` (milliseconds). ProgrammingError for another kind of location.
    """
    kind, _, rest = location.partition(":")
    schema = options.get("metadata_schema") or None
    busy_timeout = int(options.get("busy_timeout") or DEFAULT_BUSY_TIMEOUT)
    if kind == "sqlite":
        return SQLiteBackend(Path(rest), busy_timeout=busy_timeout, create=create)
    if kind == "duckdb":
        return DuckDBBackend(Path(rest), schema, busy_timeout=busy_timeout, create=create)
    if kind == "postgresql":
        return PostgreSQLBackend(
            make_url(location).set(drivername="postgresql+psycopg"), schema, busy_timeout=busy_timeout
        )
    if kind == "mysql":
        return MySQLBackend(make_url(location).set(drivername="mysql+pymysql"), schema, busy_timeout=busy_timeout)
    raise errors.ProgrammingError(
        f"catalog {kind}: no such kind of DuckLake catalog; use sqlite, postgresql, mysql or duckdb"
    )
