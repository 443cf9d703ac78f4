"""PostgreSQL and MySQL as the catalog database."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from typing import Any

import sqlalchemy
from sqlalchemy import MetaData, Table, event, exc, select, text
from sqlalchemy.engine import URL, Connection, Engine

from lakedbapi import errors
from lakedbapi.formats.ducklake.backend import DEFAULT_BUSY_TIMEOUT, Backend, Failure, pooled_engine


class ServerBackend(Backend):
    """A catalog on a database server. SQLAlchemy `url` carries the driver and the credentials."""

    conflicts: frozenset[Any]
    """Error codes (SQLSTATE or number) of lost races."""
    lock_timeout: Any
    """The error code of a lock that was not to be had in time."""

    def __init__(self, url: URL, schema: str | None, *, busy_timeout: int = DEFAULT_BUSY_TIMEOUT) -> None:
        super().__init__(str(url.render_as_string(hide_password=True)), schema, busy_timeout)
        self._url = url

    @property
    def engine(self) -> Engine:
        return pooled_engine((self.kind, self._url.render_as_string(hide_password=False)), self._new_engine)

    def _new_engine(self) -> Engine:
        try:
            engine = sqlalchemy.create_engine(self._url, pool_size=8, max_overflow=-1)
        except ImportError as error:
            raise errors.NotSupportedError(
                f"catalog {self.name}: its database driver is not installed ({error}); "
                f"pip install 'lakedbapi[{self.kind}]'"
            ) from error
        event.listen(engine, "checkin", _note_checkin)
        event.listen(engine, "checkout", _verify_idle)
        return engine

    _rebuild: tuple[str, str]
    """What a database rebuilds a table with, and then what of its own it cannot wipe."""

    def wipe(self, names: Sequence[str]) -> tuple[bool, str]:
        command, elsewhere = self._rebuild
        with self._translated(), self._glance_connection() as connection:
            self._limit_waiting(connection)
            for name in names:
                table = connection.dialect.identifier_preparer.format_table(
                    Table(name, MetaData(schema=self.tables.schema_name))
                )
                connection.execute(text(f"{command} {table}"))
        return True, f"{len(names)} tables rebuilt ({command}); {elsewhere}"

    @abstractmethod
    def _limit_waiting(self, connection: Connection) -> None:
        """Let statements of the session that wait for a lock fail after the busy timeout."""

    @abstractmethod
    def _code(self, cause: BaseException) -> Any: ...

    def classify(self, error: BaseException) -> Failure:
        if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
            return Failure.LOST
        cause = getattr(error, "orig", error)
        code = None if cause is None else self._code(cause)
        if code is not None and code == self.lock_timeout:
            return Failure.LOCKED
        return Failure.CONFLICT if code in self.conflicts else Failure.OTHER

    @contextmanager
    def _read_connection(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield self._at_level(connection, "REPEATABLE READ")

    @contextmanager
    def _glance_connection(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield self._at_level(connection, "AUTOCOMMIT")

    @contextmanager
    def _write_connection(self) -> Iterator[Connection]:
        # Statements after the lock must see what the lock's former holder committed.
        with self.engine.connect() as connection:
            yield self._at_level(connection, "READ COMMITTED")

    def _at_level(self, connection: Connection, level: str) -> Connection:
        """With an isolation level. MySQL's drivers ask the server for it, which may have ended idle connections: then
        all are given up for new ones."""
        dbapi: Any = self.engine.dialect.dbapi
        try:
            return connection.execution_options(isolation_level=level)
        except dbapi.Error as error:
            connection.invalidate(error)
            self.engine.dispose()
        try:
            return connection.execution_options(isolation_level=level)
        except dbapi.Error as error:
            connection.invalidate(error)
            raise exc.DBAPIError(f"isolation level {level}", None, error, connection_invalidated=True) from error


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
    conflicts = frozenset({"23505", "40001", "40P01", "42P07"})
    lock_timeout = "55P03"
    _rebuild = "VACUUM FULL", "the server's write-ahead log and its backups keep what they have"

    def _limit_waiting(self, connection: Connection) -> None:
        connection.execute(text(f"SET lock_timeout = {int(self.busy_timeout)}"))

    def _lock(self, connection: Connection) -> None:
        connection.execute(text(f"SET LOCAL lock_timeout = {int(self.busy_timeout)}"))
        name = connection.dialect.identifier_preparer.format_table(self.tables.snapshot)
        connection.execute(text(f"LOCK TABLE {name} IN SHARE ROW EXCLUSIVE MODE"))

    def _lock_for_creation(self, connection: Connection) -> None:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('ducklake'))"))
        self.make_schema(connection)

    def _code(self, cause: BaseException) -> Any:
        return getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)


class MySQLBackend(ServerBackend):
    """A catalog in a MySQL or MariaDB database."""

    kind = "mysql"
    _table_query = text(
        "SELECT 1 FROM information_schema.tables "
        "WHERE table_name = :name AND table_schema = coalesce(:schema, database())"
    )
    transactional_ddl = False
    conflicts = frozenset({1062, 1213, 1020, 3572, 1050})
    lock_timeout = 1205
    _rebuild = "OPTIMIZE TABLE", "the server's binary log and its backups keep what they have"

    def _limit_waiting(self, connection: Connection) -> None:
        seconds = max(1, self.busy_timeout // 1000)
        connection.execute(text(f"SET SESSION innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}"))

    def _lock(self, connection: Connection) -> None:
        connection.execute(text(f"SET SESSION innodb_lock_wait_timeout = {max(1, self.busy_timeout // 1000)}"))
        # One fixed row: waiters on "the last snapshot" would wake up with a row that is no longer the last.
        metadata = self.tables.metadata
        connection.execute(select(metadata.c.value).where(metadata.c.key == "version").with_for_update())

    def _lock_for_creation(self, connection: Connection) -> None:
        """CREATE TABLE would release it: the rows of the first snapshot collide instead."""

    def _code(self, cause: BaseException) -> Any:
        return cause.args[0] if cause.args else None


def postgresql_driver() -> str:
    """SQLAlchemy's name of a driver that is there; 1.4 does not know psycopg 3."""
    known = ("psycopg2",) if sqlalchemy.__version__.startswith("1.") else ("psycopg", "psycopg2")
    return f"postgresql+{next((driver for driver in known if find_spec(driver)), known[0])}"
