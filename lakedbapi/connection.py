"""PEP 249 connection."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, NoReturn

import pyarrow as pa

from lakedbapi import errors
from lakedbapi.arrow_input import arrow_data
from lakedbapi.cursor import Cursor, Parameters
from lakedbapi.errors import InterfaceError
from lakedbapi.model.catalog import AsOf
from lakedbapi.model.progress import Report
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.session import Session
from lakedbapi.terminal import ProgressLine
from lakedbapi.transaction import CatalogView
from lakedbapi.url import ConnectOptions, point


class Connection:
    """A session with the catalogs attached to it. Threads may share it; a cursor belongs to one thread at a time.

    A transaction begins with the first statement and sees one snapshot until `commit()` or `rollback()`; with
    `autocommit` every statement is its own. As a context manager the connection commits (on an exception rolls
    back) and closes.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, options: ConnectOptions) -> None:
        self._session = Session(options)
        if options.progress:
            self._session.progress = ProgressLine()
        self._options = options
        self._cursors: weakref.WeakSet[Cursor] = weakref.WeakSet()
        self.closed = False
        self.messages: list[tuple[type[Exception], Exception]] = []
        """(class, exception) of the errors of the last commit, rollback and the like."""

    @property
    def session(self) -> Session:
        """The session behind this connection; InterfaceError when it is closed."""
        if self.closed:
            raise InterfaceError("the connection is closed")
        return self._session

    @property
    def autocommit(self) -> bool:
        """Whether each statement commits by itself. It cannot be changed inside a transaction."""
        return self._session.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self.session.autocommit = value

    @property
    def in_transaction(self) -> bool:
        """Whether there is something to commit, or BEGIN was called."""
        return not self.closed and self._session.in_transaction

    @property
    def read_only(self) -> bool:
        """Whether this connection refuses to change anything."""
        return self._session.read_only

    @property
    def progress(self) -> Report | None:
        """Called with a `Progress` between the steps of long work, from whatever thread does it; None = nobody is.

        An exception ends the statement as cancelling does.
        """
        return self._session.progress

    @progress.setter
    def progress(self, report: Report | None) -> None:
        self.session.progress = report

    @property
    def snapshot_id(self) -> int | None:
        """The last snapshot that this connection committed."""
        return self._session.last_snapshot

    def cursor(self) -> Cursor:
        """A new cursor in this connection's transaction."""
        if self.closed:
            raise InterfaceError("the connection is closed")
        cursor = Cursor(self)
        self._cursors.add(cursor)
        return cursor

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """`execute` on a new cursor."""
        return self.cursor().execute(operation, parameters)

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """`executemany` on a new cursor."""
        return self.cursor().executemany(operation, seq_of_parameters)

    def executescript(self, script: str) -> Cursor:
        """`executescript` on a new cursor."""
        return self.cursor().executescript(script)

    def begin(self) -> None:
        """Open a transaction, also in autocommit; it lasts until `commit()` or `rollback()`."""
        with self._noting_errors():
            self.session.begin()

    def commit(self) -> None:
        """Make the transaction's changes the next snapshot; without changes this does nothing.

        ConflictError when another transaction changed the same rows first: the transaction is over, run it again.
        """
        with self._noting_errors():
            self.session.commit()

    def rollback(self) -> None:
        """Drop the transaction's changes; without any this does nothing."""
        with self._noting_errors():
            self.session.rollback()

    def savepoint(self, name: str) -> None:
        """Mark a point in the transaction to `rollback_to`."""
        with self._noting_errors():
            self.session.savepoint(name)

    def release(self, name: str) -> None:
        """Forget a savepoint, keeping the changes made since."""
        with self._noting_errors():
            self.session.release(name)

    def rollback_to(self, name: str) -> None:
        """Drop the changes made since the savepoint, which stays."""
        with self._noting_errors():
            self.session.rollback_to(name)

    def register(self, name: str, data: Any) -> None:
        """Let SQL on this connection name Arrow data, a pandas or polars frame as a table (a stream: once)."""
        self.session.register(name, arrow_data(data))

    def unregister(self, name: str) -> None:
        """Forget a registered name."""
        self.session.unregister(name)

    def attach(self, location: str, alias: str | None = None, **options: Any) -> str:
        """Attach another catalog, as ATTACH does; returns its alias."""
        return self.session.attach(location, alias, options)

    def detach(self, alias: str) -> None:
        """Take an attached catalog away."""
        self.session.detach(alias)

    def interrupt(self) -> None:
        """Stop what is running, from any thread; the statement raises OperationalError. The connection stays usable."""
        self.session.interrupt()

    adbc_cancel = interrupt

    @property
    def current_catalog(self) -> str:
        """The catalog that unqualified names are looked up in."""
        return self.session.search_path[0]

    @property
    def current_schema(self) -> str:
        """The schema that unqualified names are looked up in."""
        return self.session.search_path[1]

    adbc_current_catalog = current_catalog
    adbc_current_db_schema = current_schema

    @property
    def catalogs(self) -> tuple[str, ...]:
        """The names of the attached catalogs."""
        return tuple(self.session.catalogs)

    def catalog_view(
        self, catalog: str | None = None, *, as_of: AsOf | int | str | datetime | None = None
    ) -> CatalogView:
        """Schemas, tables and views of a catalog (default: the current one), as the open transaction sees them.

        With `as_of`: as they were at that point. ProgrammingError when no such catalog is attached.
        """
        at = None if as_of is None else point(as_of, refs=True)
        return self.session.catalog_view(self.current_catalog if catalog is None else catalog, at)

    def adbc_get_info(self) -> dict[str, str]:
        """Names and versions, by ADBC's keys."""
        from lakedbapi import __version__

        return {
            "driver_name": "lakedbapi",
            "driver_version": __version__,
            "vendor_name": "lakedbapi",
            "vendor_version": __version__,
        }

    def adbc_get_table_schema(
        self, table_name: str, *, catalog_filter: str | None = None, db_schema_filter: str | None = None
    ) -> pa.Schema:
        """The Arrow schema of a table's rows."""
        parts = [part for part in (catalog_filter, db_schema_filter, table_name) if part is not None]
        if catalog_filter is not None and db_schema_filter is None:
            parts.insert(1, self.current_schema)
        with self.execute(f"SELECT * FROM {'.'.join(map(quote_identifier, parts))} LIMIT 0") as cursor:
            return cursor.fetch_arrow_table().schema

    def close(self) -> None:
        """Roll back, close the cursors and release everything. Closing twice is fine."""
        if self.closed:
            return
        for cursor in list(self._cursors):
            cursor.close()
        self.closed = True
        self._session.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.closed:
            return
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle or copy a Connection: let each process, or each part of a program, connect")

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<{type(self).__module__}.{type(self).__name__} {state} {self._options.shown}>"

    @contextmanager
    def _noting_errors(self) -> Iterator[None]:
        self.messages.clear()
        try:
            yield
        except errors.Error as error:
            self.messages.append((type(error), error))
            raise
