"""Generated columns: computed for new rows that bring no value, checked for those that do."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.dml.arrow_rows import typed
from lakedbapi.dml.target import Target
from lakedbapi.engine.base import RelationName, ScanRelation
from lakedbapi.errors import IntegrityError
from lakedbapi.model.scan import RowGroup, Scan
from lakedbapi.model.sql_types import quote_identifier, sql_type
from lakedbapi.model.types import Schema
from lakedbapi.query.stored import runnable


def completed(target: Target, rows: pa.Table) -> pa.Table:
    """`rows` (all columns of the table) with the values of generated columns.

    IntegrityError when a row brings another value than the column's expression has for it.
    """
    fields = [(i, field) for i, field in enumerate(target.fields) if field.generated is not None]
    if not fields or not rows.num_rows:
        return rows
    computed = _computed(target, rows)
    for number, (i, field) in enumerate(fields):
        given, own = rows.column(i), computed.column(2 * number)
        wrong = pc.sum(pc.and_(pc.is_valid(given), computed.column(2 * number + 1))).as_py() or 0
        if wrong:
            raise IntegrityError(
                f"column {target.table.name}.{field.name} is generated as {field.generated}, and {wrong} of "
                f"{rows.num_rows} new rows have another value; leave it out"
            )
        rows = rows.set_column(i, rows.schema.field(i), own)
    return rows


def _computed(target: Target, rows: pa.Table) -> pa.Table:
    """For each generated column its values, and whether the given value differs."""
    fields = [field for field in target.fields if field.generated is not None]
    items = []
    for field in fields:
        what = f"generated column {target.table.name}.{field.name}"
        expression = runnable(target.catalog, target.table.schema, field.generated or "", what)
        value = f"CAST(({expression}\n) AS {sql_type(field.type)})"
        items += [value, f"{quote_identifier(field.name)} IS DISTINCT FROM {value}"]
    name = RelationName.local("_lake_generated")
    sql = f"SELECT {', '.join(items)} FROM {name.sql} AS {quote_identifier(target.table.name)}"
    relation = ScanRelation(Scan(target.table.schema, rows=(RowGroup("generated", rows),)))
    found = target.fetch(target.query(sql, {name: relation}))
    values = typed(found.select(range(0, 2 * len(fields), 2)), Schema(tuple(fields)))
    columns = [column for pair in zip(values.columns, found.columns[1::2], strict=True) for column in pair]
    return pa.Table.from_arrays(columns, [f"c{i}" for i in range(len(columns))])
