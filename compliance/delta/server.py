"""Other readers and writers of Delta tables, serving one client over stdin and stdout (see `serving`).

Runs in the peers' environment and imports nothing of this project but its neighbours. In a text to run `deltalake`,
`pa`, `Table` (a `DeltaTable` by path) and `duckdb_with_delta` (a connection) are there.
"""

from __future__ import annotations

import datetime as dt
import decimal
import importlib.util
from functools import cache
from pathlib import Path

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
from serving import serve


def by_deltalake(path: str) -> pa.Table:
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    return pa.table(builder.execute("SELECT * FROM t").read_all())


def by_polars(path: str) -> pa.Table:
    return pl.scan_delta(path).collect().to_arrow()


def duckdb_with_delta() -> duckdb.DuckDBPyConnection:
    spec = importlib.util.find_spec("duckdb_extension_delta")
    assert spec is not None
    assert spec.origin is not None
    extension = next(Path(spec.origin).parent.glob("extensions/*/delta.duckdb_extension"))
    connection = duckdb.connect(config={"allow_unsigned_extensions": True})
    for name in ("icu", "delta"):
        found = importlib.util.find_spec(f"duckdb_extension_{name}")
        if found is not None and found.origin is not None:
            file = next(Path(found.origin).parent.glob(f"extensions/*/{name}.duckdb_extension"))
            connection.execute(f"LOAD '{file}'")
    assert extension
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def by_duckdb(path: str) -> pa.Table:
    connection = duckdb_with_delta()
    found = connection.execute(f"SELECT * FROM delta_scan('{path}')")
    return found.to_arrow_table() if hasattr(found, "to_arrow_table") else found.fetch_arrow_table()


_CONNECTED = cache(duckdb_with_delta)
READERS = {"deltalake": by_deltalake, "polars": by_polars, "duckdb": by_duckdb}

NAMES = {"deltalake": deltalake, "pa": pa, "dt": dt, "decimal": decimal, "Table": deltalake.DeltaTable}


if __name__ == "__main__":
    serve(READERS, {**NAMES, "duckdb_with_delta": _CONNECTED})
