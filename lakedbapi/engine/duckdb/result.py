"""A running query."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pyarrow as pa

from lakedbapi.engine.base import Result, ResultColumn
from lakedbapi.engine.duckdb.driver import Stream
from lakedbapi.errors import InterfaceError

Mapped = Callable[[], AbstractContextManager[None]]


class DuckDBResult(Result):
    """`mapped` raises this package's errors in place of DuckDB's while rows are read.

    `finish` is called once: at the last row, at an error, or when the result is closed or forgotten.
    """

    def __init__(self, stream: Stream, types: tuple[str, ...], finish: Callable[[], None], mapped: Mapped) -> None:
        self.columns = tuple(ResultColumn(name, type) for name, type in zip(stream.names, types, strict=True))
        self.schema = pa.schema(
            [field.with_name(name) for field, name in zip(stream.reader.schema, stream.names, strict=True)]
        )
        self._stream: Stream | None = stream
        self._mapped = mapped
        self._finish = weakref.finalize(self, finish)

    def reader(self) -> pa.RecordBatchReader:
        if self._stream is None:
            raise _closed()
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            while True:
                if self._stream is None:
                    raise _closed()
                try:
                    with self._mapped():
                        batch = self._stream.read()
                except StopIteration:
                    return
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
        finally:
            self.close()

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.reader.close()
            self._finish()


def _closed() -> InterfaceError:
    return InterfaceError("The result is closed. Run the statement again.")


_OPAQUE = re.compile(r'("(?:[^"]|"")*")|\b(TIME WITH TIME ZONE|UHUGEINT|BIT|BIGNUM|VARIANT|TIMETZ)\b')


def text_type(type: str) -> str:
    """The type with VARCHAR, or JSON, in place of what Arrow has no lossless type for."""
    return _OPAQUE.sub(lambda m: m.group(1) or ("JSON" if m.group(2) == "VARIANT" else "VARCHAR"), type)
