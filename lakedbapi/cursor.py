"""PEP 249 cursor, with Arrow fetches beside the row fetches."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from lakedbapi.arrow_input import arrow_data
from lakedbapi.errors import Error, InterfaceError, NotSupportedError, ProgrammingError
from lakedbapi.model.catalog import AsOf
from lakedbapi.outcome import Outcome
from lakedbapi.rows import Row
from lakedbapi.sql import split
from lakedbapi.stream import RowStream
from lakedbapi.typecodes import decimal_size
from lakedbapi.url import point

if TYPE_CHECKING:
    from datetime import datetime

    import pandas
    import polars

    from lakedbapi.connection import Connection

Parameters = Sequence[Any] | Mapping[str, Any]
ColumnDescription = tuple[str, str, None, None, "int | None", "int | None", "bool | None"]


class Cursor:
    """Runs statements and holds the result of the last one.

    A result is read once: row fetches and Arrow fetches go on from one shared position.
    """

    arraysize: int = 1
    """How many rows `fetchmany()` gives by default."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.messages: list[tuple[type[Exception], Exception]] = []
        """(class, exception) of the errors since the last execute."""
        self._as_of: AsOf | None = None
        self._closed = False
        self._stream: RowStream | None = None
        self._outcome = Outcome()
        self._description: list[ColumnDescription] | None = None

    @property
    def as_of(self) -> AsOf | None:
        """Where the next statements read every table that has no time travel of its own; None = now."""
        return self._as_of

    @as_of.setter
    def as_of(self, value: AsOf | int | str | datetime | None) -> None:
        self._as_of = None if value is None else point(value, refs=True)

    @property
    def description(self) -> list[ColumnDescription] | None:
        """(name, type code, None, None, precision, scale, null_ok) for each result column; None without a result set.

        A type code is the SQL type's spelling, `DECIMAL(9,2)`, and equals the type object of its kind.
        """
        return self._description

    @property
    def rowcount(self) -> int:
        """Rows inserted, updated (matched) and deleted; -1 for DDL and for a query until its last row is read."""
        if self._outcome.rowcount < 0 and self._stream is not None and self._stream.exhausted:
            return self._stream.position
        return self._outcome.rowcount

    @property
    def rows_inserted(self) -> int:
        """Rows that the last statement inserted."""
        return self._outcome.inserted

    @property
    def rows_updated(self) -> int:
        """Rows that the last statement matched for update."""
        return self._outcome.updated

    @property
    def rows_deleted(self) -> int:
        """Rows that the last statement deleted."""
        return self._outcome.deleted

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that the last statement committed; None inside a transaction and when nothing changed."""
        return self._outcome.snapshot

    @property
    def lastrowid(self) -> int | None:
        """The identity value of the row that the last INSERT made, where there was exactly one."""
        return self._outcome.lastrowid

    @property
    def rownumber(self) -> int | None:
        """0-based index of the next row in the result; None without a result set."""
        return None if self._stream is None else self._stream.position

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Run one statement; `?` and `$1` take a sequence of parameters, `:name` and `$name` a mapping."""
        with self._running(operation):
            self._take(self.connection.session.execute(operation, parameters, as_of=self._as_of), operation)
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """Run one INSERT, UPDATE, DELETE or MERGE for every parameter set, as a whole; `rowcount` is the sum."""
        with self._running(operation):
            sets = _parameter_sets(seq_of_parameters)
            if sets:
                self._take(self.connection.session.execute_many(operation, sets, as_of=self._as_of), operation)
            else:
                self._outcome = Outcome(rowcount=0)
        return self

    def executescript(self, script: str) -> Cursor:
        """Run the statements of `script`, which `;` separates, up to the first error; the last one's result stays."""
        for statement in split(script):
            self.execute(statement)
        return self

    def fetchone(self) -> Row | None:
        """The next row; None at the end."""
        return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next `size` (else `arraysize`) rows, fewer at the end."""
        return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        """The remaining rows."""
        return self._rows().fetchall()

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def fetch_arrow_table(self) -> pa.Table:
        """The remaining rows."""
        return self._rows().arrow()

    to_arrow_table = fetchall_arrow = fetchallarrow = fetch_arrow_table

    def fetchmany_arrow(self, size: int) -> pa.Table:
        """The next `size` rows, fewer at the end."""
        return self._rows().arrow(size)

    def fetch_record_batch(self, rows: int | None = None) -> pa.RecordBatchReader:
        """The remaining rows, streamed, in batches of at most `rows`."""
        return self._rows().reader(rows)

    to_arrow_reader = fetch_record_batch

    def fetch_arrow(self) -> pa.RecordBatchReader:
        """The remaining rows as an object with the Arrow C stream protocol."""
        return self._rows().reader()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The remaining rows for pyarrow, polars, pandas, DuckDB. Rows are read when the consumer takes them."""
        return self._rows().reader().__arrow_c_stream__(requested_schema)

    def fetch_df(self) -> pandas.DataFrame:
        """The remaining rows as a pandas frame. NotSupportedError without pandas."""
        _require("pandas")
        frame: pandas.DataFrame = self.fetch_arrow_table().to_pandas()
        return frame

    df = fetch_df

    def fetch_polars(self) -> polars.DataFrame:
        """The remaining rows as a polars frame. NotSupportedError without polars."""
        _require("polars")
        import polars

        return polars.DataFrame(self.fetch_arrow_table())

    pl = fetch_polars

    def adbc_ingest(
        self,
        table_name: str,
        data: Any,
        mode: str = "create",
        *,
        catalog_name: str | None = None,
        db_schema_name: str | None = None,
        temporary: bool = False,
    ) -> int:
        """Write Arrow data, a pandas or polars frame or anything that streams Arrow to a table; returns the row count.

        `mode`: `create` (it must not exist), `append` (it must), `replace`, `create_append`.
        """
        if temporary:
            raise NotSupportedError(
                "a lake has no temporary tables; connection.register() names Arrow data for one connection"
            )
        with self._running(None):
            session = self.connection.session
            count = session.ingest(table_name, arrow_data(data), mode, catalog=catalog_name, schema=db_schema_name)
            self._outcome = Outcome(rowcount=count, inserted=count)
        return count

    def cancel(self) -> None:
        """Stop what the connection is running, from any thread; the statement raises OperationalError."""
        self.connection.interrupt()

    adbc_cancel = cancel

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def close(self) -> None:
        """Stop reading. Closing twice is fine."""
        if not self._closed:
            self._closed = True
            self._drop_result()

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle or copy a Cursor: fetch its rows, or take another one with connection.cursor()")

    def __repr__(self) -> str:
        state = "closed" if self._closed else "with a result" if self._stream is not None else "idle"
        return f"<{type(self).__module__}.{type(self).__name__} {state} of {self.connection!r}>"

    @contextmanager
    def _running(self, statement: str | None) -> Iterator[None]:
        """Forget the last result, run the block, note its error."""
        self._check_open()
        self._drop_result()
        self._outcome, self._description = Outcome(), None
        self.messages.clear()
        try:
            yield
        except Error as error:
            if error.statement is None:
                error.statement = statement
            self.messages.append((type(error), error))
            raise

    def _take(self, outcome: Outcome, statement: str) -> None:
        self._outcome = outcome
        if outcome.result is None:
            return
        self._stream = RowStream(outcome.result, statement)
        columns = outcome.result.columns
        # What is known speaks of the items of the SELECT, of which COLUMNS(*) and unnest() make several columns.
        nullable = outcome.nullable if len(outcome.nullable) == len(columns) else (None,) * len(columns)
        self._description = [
            (column.name, column.type, None, None, *decimal_size(column.type), null_ok)
            for column, null_ok in zip(columns, nullable, strict=True)
        ]

    def _rows(self) -> RowStream:
        self._check_open()
        if self._stream is None:
            raise ProgrammingError(
                "there are no rows to fetch: no statement was executed, or the last one returns no rows"
            )
        return self._stream

    def _drop_result(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _check_open(self) -> None:
        if self._closed or self.connection.closed:
            raise InterfaceError("the cursor is closed" if self._closed else "the cursor's connection is closed")


def _parameter_sets(given: Any) -> list[Parameters]:
    if isinstance(given, (str, bytes, Mapping)) or hasattr(given, "columns") or not isinstance(given, Iterable):
        raise ProgrammingError(
            f"executemany takes a sequence of parameter sets, [(1, 'a'), (2, 'b')], not a {type(given).__name__}; "
            "adbc_ingest takes Arrow tables and data frames"
        )
    return list(given)


def _require(package: str) -> None:
    """NotSupportedError, before a row is taken, where an optional package is missing."""
    if importlib.util.find_spec(package) is None:
        raise NotSupportedError(
            f"a {package} frame needs {package}, which is not installed: pip install 'lakedbapi[{package}]'"
        )
