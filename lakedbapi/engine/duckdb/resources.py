"""Data that views refer to: Arrow tables and variables on the cursor of one statement, under unique names."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa
from fsspec import AbstractFileSystem

from lakedbapi.engine.duckdb import confine, driver
from lakedbapi.engine.duckdb.literal_paths import literal_paths
from lakedbapi.model.sql_types import quote_literal
from lakedbapi.storage.encryption import key_bytes

PREFIX = "_lake_"
"""What all names begin with that stand for data of one statement."""
_numbers = itertools.count(1)
_LITERAL_PATHS = 200
"""Up to here paths stand in the SQL text: parsing them costs 10 us each, against 1 ms once for a variable."""
_VARIABLES = 64
"""Up to here each mask gets a variable of its own, which costs half of what a list for several does."""
_LIST_BYTES = 1 << 20
"""Size of a list that variables hold: each use of an element copies the whole list while the statement is planned."""


class Resources:
    """`confined` are the directories to keep paths in, None where DuckDB does; `threads` those that a query gets;
    `filesystems` serve the URLs among the paths; `any_order`: the statement asks for no rows in their order;
    `explained`: it asks for its plan."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        confined: Sequence[str] | None = None,
        threads: int = 1,
        filesystems: Sequence[AbstractFileSystem] = (),
        *,
        any_order: bool = False,
        explained: bool = False,
    ) -> None:
        self.cursor = cursor
        self.any_order = any_order
        self.explained = explained
        self.threads = threads
        self.filesystems = filesystems
        self._confined = confined

    def register(self, rows: pa.Table | pa.RecordBatchReader) -> str:
        """The name to select `rows` from."""
        name = f"{PREFIX}{next(_numbers)}"
        self.cursor.register(name, rows)
        return name

    def forget_order(self) -> None:
        """Let the statement take rows in any order, which it asks for."""
        assert self.any_order
        driver.forget_order(self.cursor)

    def paths(self, paths: pa.Array | pa.ChunkedArray) -> str:
        """SQL for a list of file paths, each taken literally."""
        if self._confined is not None:
            confine.check(paths.to_pylist(), self._confined)
        escaped = literal_paths(paths)
        if len(paths) <= _LITERAL_PATHS:
            return f"[{', '.join(quote_literal(path) for path in escaped.to_pylist())}]"
        name = self.register(pa.table({"path": escaped}))
        driver.run(self.cursor, f"SET VARIABLE {name} = (SELECT list(path) FROM {name})")
        return f"getvariable('{name}')"

    def encryption(self, key: str, path: str) -> str:
        """The option of `read_parquet` for the base64 key of the file `path`. It stands in no text, which gets into
        messages."""
        name = f"{PREFIX}{next(_numbers)}"
        driver.run(self.cursor, f"SET VARIABLE {name} = $key", {"key": key_bytes(key, path)})
        return f"encryption_config = {{footer_key_value: getvariable('{name}')}}"

    def bits(self, masks: Sequence[bytes]) -> Sequence[str]:
        """SQL for each of `masks` as a constant of the type BIT."""
        if len(masks) > _VARIABLES:
            return self.constants(pa.array(masks, pa.binary()), "BIT")
        # Read from a table, since DuckDB takes 8 ns for each byte of a parameter.
        source = self.register(pa.table({"n": np.arange(len(masks)), "mask": pa.array(masks, pa.binary())}))
        for n in range(len(masks)):
            mask = f"SELECT CAST(mask AS BIT) FROM {source} WHERE n = {n}"
            driver.run(self.cursor, f"SET VARIABLE {source}_{n} = ({mask})")
        return [f"getvariable('{source}_{n}')" for n in range(len(masks))]

    def constants(self, values: pa.Array, type: str) -> Sequence[str]:
        """SQL for each of `values` as a constant of the SQL type `type`."""
        per_list = max(1, _LIST_BYTES // max(1, values.nbytes // max(1, len(values))))
        table = pa.table({"n": np.arange(len(values)), "v": values})
        source = self.register(table)
        result: list[str] = []
        for start in range(0, len(values), per_list):
            end = min(start + per_list, len(values))
            name = f"{source}_{start}"
            some = f"SELECT list(CAST(v AS {type}) ORDER BY n) FROM {source} WHERE n >= {start} AND n < {end}"
            driver.run(self.cursor, f"SET VARIABLE {name} = ({some})")
            result += [f"getvariable('{name}')[{i + 1}]" for i in range(end - start)]
        return result
