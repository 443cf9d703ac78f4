"""New rows of a statement: completed, verified, and held in memory or, when they are many, written to data files at
once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.dml import generated
from lakedbapi.dml.arrow_rows import typed
from lakedbapi.dml.constraints import verify
from lakedbapi.dml.identity import Identities
from lakedbapi.dml.staged import appended, combined
from lakedbapi.dml.target import Target
from lakedbapi.dml.writing import write_rows, write_staged
from lakedbapi.errors import Error
from lakedbapi.model.arrow import arrow_schema
from lakedbapi.model.changes import RowChanges, StagedFile, StagedRows, WrittenFile
from lakedbapi.model.progress import Progress

MEMORY_LIMIT = 128 * 2**20
"""Bytes of Arrow data that a statement's new rows may take before they are written to data files."""
CHUNK_ROWS = 122_880
"""Rows that are completed and verified together while a stream is written."""


class NewRows:
    """Collects the new rows of one statement on `target`."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._identities = Identities(target)
        self._held: list[StagedRows] = []
        self._bytes = 0
        self._files: list[WrittenFile] = []

    @property
    def identities(self) -> dict[str, int]:
        """Raised high-water marks of identity columns."""
        return self._identities.raised

    def complete(self, rows: pa.Table) -> pa.Table:
        """`rows` (the table's columns in order, under any names) as the table holds them: identity values assigned,
        verified."""
        completed = self.proposed(rows)
        verify(self._target, completed)
        return completed

    def proposed(self, rows: pa.Table) -> pa.Table:
        """Like `complete`, but not verified: the rows may yet be dropped or become something else."""
        given = self._with_null_keys(typed(rows, self._target.table.schema))
        return self._with_null_keys(generated.completed(self._target, self._identities.fill(given)))

    def _with_null_keys(self, rows: pa.Table) -> pa.Table:
        """`rows` with NULL for the empty texts of partition columns, where the format has no such values."""
        partitioning = self._target.table.partitioning
        if partitioning is None or self._target.capabilities.empty_partition_values:
            return rows
        keys = {key.field_id for key in partitioning.fields}
        for i, field in enumerate(self._target.fields):
            column = rows.column(i)
            if field.id in keys and pa.types.is_string(column.type):
                rows = rows.set_column(i, rows.schema.field(i), pc.if_else(pc.equal(column, ""), None, column))
        return rows

    def add(
        self, rows: pa.Table, row_ids: pa.ChunkedArray | None = None, versions: pa.ChunkedArray | None = None
    ) -> None:
        """Take rows of the table. `row_ids` (int64): the row that each is the new version of, NULL = an entirely new
        row; `versions` as in `StagedRows`."""
        if row_ids is None or row_ids.null_count == len(row_ids):
            self._hold(StagedRows(rows))
        elif row_ids.null_count == 0:
            self._hold(StagedRows(rows, row_ids, versions))
        else:
            known = pc.is_valid(row_ids)
            of_known = None if versions is None else versions.filter(known)
            self._hold(StagedRows(rows.filter(known), row_ids.filter(known), of_known))
            self._hold(StagedRows(rows.filter(pc.invert(known))))

    def add_stream(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Complete and take entirely new rows; many are streamed to data files. Returns their number."""
        source = self._completed(batches)
        first: list[pa.Table] = []
        size = 0
        for rows in source:
            first.append(rows)
            size += rows.nbytes
            if size > MEMORY_LIMIT:
                return self._stream(chain(first, source))
        if not first:
            return 0
        held = StagedRows(pa.concat_tables(first))
        self._hold(held)
        return int(held.rows.num_rows)

    def onto(self, changes: RowChanges) -> RowChanges:
        """`changes` with the collected rows added."""
        rows = changes.rows
        for part in self._by_kind():
            rows = appended(rows, part)
        return replace(changes, rows=rows, files=(*changes.files, *map(StagedFile, self._files)))

    def _completed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """In pieces of at least `CHUNK_ROWS` but for the last."""
        waiting: list[pa.RecordBatch] = []
        rows = done = 0
        for batch in batches:
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= CHUNK_ROWS:
                yield self.complete(pa.Table.from_batches(waiting))
                done += rows
                self._report(done, None)
                waiting, rows = [], 0
        if rows:
            yield self.complete(pa.Table.from_batches(waiting))
        if done:
            self._report(done + rows, done + rows)

    def _report(self, done: int, total: int | None) -> None:
        self._target.context.report(Progress(f"insert into {self._target.table.name}", done, total, "rows"))

    def _hold(self, part: StagedRows) -> None:
        if not part.rows.num_rows:
            return
        self._held.append(part)
        self._bytes += part.rows.nbytes
        target = self._target
        # Files that embed no row ids would forget of which rows these are versions.
        if self._bytes > MEMORY_LIMIT and not target.catalog.stores_changes(target.table):
            for held in self._by_kind():
                self._files += write_staged(
                    target.context.engine, target.context.transaction, target.view, target.table, held
                )
            self._held, self._bytes = [], 0

    def _by_kind(self) -> list[StagedRows]:
        """What is held, as at most two parts: entirely new rows, and versions of old ones."""
        kinds = [[part for part in self._held if (part.row_ids is None) is fresh] for fresh in (True, False)]
        return [combined(parts) for parts in kinds if parts]

    def _stream(self, rows: Iterator[pa.Table]) -> int:
        target = self._target
        batches = _Batches(rows)
        reader = pa.RecordBatchReader.from_batches(arrow_schema(target.table.schema), batches)
        context = target.context
        try:
            written = write_rows(context.engine, context.transaction, target.view, target.table, reader, row_ids=False)
        except Error as error:
            raise batches.failure or error from None
        self._files += written
        return sum(file.record_count for file in written)


class _Batches:
    """The batches of tables. Remembers why they ended early, since an engine passes on the error's text at most."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self.failure: Exception | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for table in self._tables:
                yield from table.to_batches()
        except Exception as error:
            self.failure = error
            raise
