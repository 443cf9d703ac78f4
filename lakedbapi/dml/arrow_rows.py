"""Engine results as rows of a table in the form of `model.arrow`."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakedbapi.engine.base import Result
from lakedbapi.model.arrow import arrow_schema
from lakedbapi.model.types import Schema


def typed(rows: pa.Table, schema: Schema) -> pa.Table:
    """`rows`, whose columns are those of `schema` in order under any names, with its names and Arrow types."""
    target = arrow_schema(schema)
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(rows.columns, target, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=target)


def pieces(result: Result) -> Iterator[pa.Table]:
    """The rows of a running query as they come: at least one piece, which may be empty."""
    try:
        reader = result.reader()
        batch = None
        for batch in reader:
            yield pa.Table.from_batches([batch])
        if batch is None:
            yield reader.schema.empty_table()
    finally:
        result.close()
