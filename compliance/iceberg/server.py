"""Other readers and writers of Iceberg tables, serving one client over stdin and stdout (see `serving` of `delta`).

Runs in the peers' environment and imports nothing of this project but its neighbours; tables are read at the path of a
metadata file. In a text to run `pa`, `load_catalog` and `duckdb_with_iceberg` (a connection) are there.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable

sys.path.insert(0, str(Path(__file__).parents[1] / "delta"))
from serving import serve


def by_pyiceberg(path: str) -> pa.Table:
    return StaticTable.from_metadata(path).scan().to_arrow()


def by_polars(path: str) -> pa.Table:
    return pl.scan_iceberg(path, reader_override="native").collect().to_arrow()


def duckdb_with_iceberg() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"allow_unsigned_extensions": True})
    for name in ("icu", "avro", "iceberg"):
        spec = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert spec is not None
        assert spec.origin is not None
        file = next(Path(spec.origin).parent.glob(f"extensions/*/{name}.duckdb_extension"))
        connection.execute(f"LOAD '{file}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def by_duckdb(path: str) -> pa.Table:
    connection = duckdb_with_iceberg()
    found = connection.execute(f"SELECT * FROM iceberg_scan('{path}')")
    return found.to_arrow_table() if hasattr(found, "to_arrow_table") else found.fetch_arrow_table()


READERS = {"pyiceberg": by_pyiceberg, "polars": by_polars, "duckdb": by_duckdb}


if __name__ == "__main__":
    serve(READERS, {"pa": pa, "load_catalog": load_catalog, "duckdb_with_iceberg": cache(duckdb_with_iceberg)})
