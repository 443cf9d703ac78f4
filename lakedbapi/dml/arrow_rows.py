"""Engine results as rows of a table in the form of `model.arrow`."""

from __future__ import annotations

import pyarrow as pa

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
