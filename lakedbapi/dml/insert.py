"""INSERT: VALUES, a query or Arrow data become new rows of the target."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakedbapi.context import Context, Counted
from lakedbapi.dml.conflict import upsert
from lakedbapi.dml.hidden import revealed_source
from lakedbapi.dml.new_rows import NewRows
from lakedbapi.dml.returning import Returning, evaluate
from lakedbapi.dml.row_source import RowSource, of_arrow, of_query, of_statement
from lakedbapi.dml.target import INSERT, Target
from lakedbapi.engine.base import Query
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Operation
from lakedbapi.sql.statements import Insert


def insert(context: Context, statement: Insert) -> Counted:
    """The rows keep the order of the source, unless files are sorted or partitioned. Columns that are not given get
    their default, or NULL."""
    target = Target.of(context, statement.target, statement.alias)
    target.require("INSERT INTO", target.capabilities.inserts)
    target, statement = revealed_source(target, statement)
    return insert_rows(target, statement, of_statement(target, statement))


def insert_rows(target: Target, statement: Insert, source: RowSource) -> Counted:
    """`statement` with the rows of `source`."""
    new_rows = NewRows(target)
    if statement.on_conflict is not None:
        reads = _reads(target, statement, source)
        proposed = new_rows.proposed(_fetch(target, source))
        return upsert(target, statement, proposed, source.alone, new_rows, reads_table=reads)
    if not statement.returning:
        count = _add(target, new_rows, source, reads_table=_reads(target, statement, source))
        return Counted(count, inserted=count, lastrowid=_lastrowid(new_rows, count))
    rows = new_rows.complete(_fetch(target, source))
    new_rows.add(rows)
    returned, types = evaluate(target, Returning.of(statement), rows)
    _stage(target, new_rows, rows.num_rows, reads_table=_reads(target, statement, source))
    count = rows.num_rows
    return Counted(count, returned, types, inserted=count, lastrowid=_lastrowid(new_rows, count))


def append(context: Context, alias: str, table: TableInfo, source: Query | pa.Table | pa.RecordBatchReader) -> int:
    """Append rows to a table, streaming; returns their number.

    A query gives all columns in order; Arrow data is matched by column name, and columns that it lacks get their
    default.
    """
    target = Target.of_table(context, alias, table)
    target.require("INSERT INTO", target.capabilities.inserts)
    rows = of_query(target, source) if isinstance(source, Query) else of_arrow(target, source)
    return _add(target, NewRows(target), rows, reads_table=False)


def _add(target: Target, new_rows: NewRows, source: RowSource, *, reads_table: bool) -> int:
    if source.small:
        rows = new_rows.complete(_fetch(target, source))
        new_rows.add(rows)
        count = int(rows.num_rows)
    else:
        with source.running():
            count = new_rows.add_stream(_stream(target, source))
    _stage(target, new_rows, count, reads_table=reads_table)
    return count


def _stage(target: Target, new_rows: NewRows, count: int, *, reads_table: bool) -> None:
    if count:
        operation = Operation(INSERT, target.table.id, inserted=count, reads_table=reads_table)
        target.stage(new_rows.onto(target.contents.rows), new_rows.identities, operation=operation)


def _reads(target: Target, statement: Insert, source: RowSource) -> bool:
    rows = () if statement.source is None else (statement.source.tree,)
    ctes = () if statement.ctes is None else (statement.ctes,)
    return target.is_read_by(source.query.relations, (*rows, *ctes))


def _lastrowid(new_rows: NewRows, count: int) -> int | None:
    marks = list(new_rows.identities.values())
    return marks[0] if count == 1 and len(marks) == 1 else None


def _fetch(target: Target, source: RowSource) -> pa.Table:
    with source.running():
        rows = target.fetch(source.query)
    source.check(rows.num_columns)
    return rows


def _stream(target: Target, source: RowSource) -> Iterator[pa.RecordBatch]:
    result = target.open(source.query)
    try:
        source.check(len(result.columns))
        yield from result.reader()
    finally:
        result.close()
