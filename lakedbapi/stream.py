"""`RowStream`: the rows of a running query, read once, as tuples or as Arrow, from one shared position."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pyarrow as pa

from lakedbapi.engine.base import Result
from lakedbapi.errors import Error, InterfaceError
from lakedbapi.rows import Row, converters, to_rows

CHUNK = 2048
"""Rows that are turned into tuples at once when a program reads few at a time."""


class RowStream:
    """Safe to use from several threads. `position` counts the rows handed out; `exhausted`: there are no more."""

    def __init__(self, result: Result, statement: str) -> None:
        self._result = result
        self._statement = statement
        self._reader: pa.RecordBatchReader = result.reader()
        self.schema: pa.Schema = self._reader.schema
        self._converters = converters([column.type for column in result.columns], self.schema)
        self._lock = threading.RLock()
        self._failure: Error | None = None
        self._batch: pa.RecordBatch | None = None
        self._offset = 0
        """Rows of `_batch` that are handed out."""
        self._tuples: list[Row] = []
        """Rows of `_batch` as tuples, from `_tuples_start` on."""
        self._tuples_start = 0
        self.position = 0
        self.exhausted = False

    def fetchone(self) -> Row | None:
        with self._lock:
            if not self._fill():
                return None
            if not self._offset - self._tuples_start < len(self._tuples):
                self._convert(CHUNK)
            row = self._tuples[self._offset - self._tuples_start]
            self._advance(1)
            return row

    def fetchmany(self, size: int) -> list[Row]:
        size = min(size, sys.maxsize)
        with self._lock:
            rows: list[Row] = []
            while len(rows) < size and self._fill():
                start = self._offset - self._tuples_start
                if start >= len(self._tuples):
                    self._convert(max(size - len(rows), CHUNK))
                    start = 0
                part = self._tuples[start : start + size - len(rows)]
                self._advance(len(part))
                rows += part
            return rows

    def fetchall(self) -> list[Row]:
        with self._lock:
            rows: list[Row] = []
            while (batch := self._rest_of_batch()) is not None:
                rows += to_rows(batch, self._converters)
            return rows

    def arrow(self, rows: int | None = None) -> pa.Table:
        """The remaining rows, at most `rows` of them."""
        rows = None if rows is None else min(rows, sys.maxsize)
        with self._lock:
            batches, count = [], 0
            while rows is None or count < rows:
                batch = self._rest_of_batch(None if rows is None else rows - count)
                if batch is None:
                    break
                batches.append(batch)
                count += batch.num_rows
            return pa.Table.from_batches(batches, self.schema)

    def reader(self, rows: int | None = None) -> pa.RecordBatchReader:
        """The remaining rows, in batches of at most `rows`. Readers share the position; making one reads nothing."""
        rows = None if rows is None else min(rows, sys.maxsize)
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(rows))

    def _batches(self, rows: int | None) -> Iterator[pa.RecordBatch]:
        while (batch := self._rest_of_batch(rows)) is not None:
            yield batch

    def close(self) -> None:
        """Stop the query and release what it holds."""
        with self._lock:
            if not self.exhausted and self._failure is None:
                self._failure = InterfaceError(
                    "the result was closed before its last row was read: run the statement again"
                )
            self._batch, self._tuples = None, []
            self._result.close()

    def _fill(self) -> bool:
        """Make `_batch` have a row that is not handed out yet; False at the end. A failed query fails each time."""
        while not self.exhausted and (self._batch is None or self._offset == self._batch.num_rows):
            if self._failure is not None:
                raise self._failure
            try:
                self._batch = self._reader.read_next_batch()
            except StopIteration:
                self.exhausted = True
                self.close()
            except Error as error:
                error.statement = error.statement or self._statement
                self._failure = error
                self.close()
            self._offset, self._tuples, self._tuples_start = 0, [], 0
        return not self.exhausted

    def _rest_of_batch(self, rows: int | None = None) -> pa.RecordBatch | None:
        with self._lock:
            if not self._fill() or self._batch is None:
                return None
            batch = self._batch.slice(self._offset, rows)
            self._advance(batch.num_rows)
            return batch

    def _convert(self, rows: int) -> None:
        assert self._batch is not None
        self._tuples = to_rows(self._batch.slice(self._offset, rows), self._converters)
        self._tuples_start = self._offset

    def _advance(self, rows: int) -> None:
        self._offset += rows
        self.position += rows
