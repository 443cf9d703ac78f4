"""Arrow data that views refer to: registered on the cursor of one statement, under names that nothing else has."""

from __future__ import annotations

import itertools

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.engine.duckdb import driver
from lakedbapi.model.sql_types import quote_literal

_numbers = itertools.count(1)
_LITERAL_PATHS = 200
"""Up to here paths stand in the SQL text: parsing them costs 10 us each, against 1 ms once for a variable."""


class Resources:
    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def register(self, rows: pa.Table | pa.RecordBatchReader) -> str:
        """The name to select `rows` from."""
        name = f"_lake_{next(_numbers)}"
        self._cursor.register(name, rows)
        return name

    def paths(self, paths: pa.Array | pa.ChunkedArray) -> str:
        """SQL for a list of file paths, each taken literally."""
        escaped = pc.replace_substring_regex(paths, r"([*?\[])", r"[\1]")
        if len(paths) <= _LITERAL_PATHS:
            return f"[{', '.join(quote_literal(path) for path in escaped.to_pylist())}]"
        name = self.register(pa.table({"path": escaped}))
        driver.run(self._cursor, f"SET VARIABLE {name} = (SELECT list(path) FROM {name})")
        return f"getvariable('{name}')"
