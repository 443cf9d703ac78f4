"""Other readers and writers of Delta tables, serving one client over stdin and stdout.

Runs in the peers' environment and imports nothing of this project. A request is one line of JSON, `{"read": path}`,
answered by `{reader: [row, …] | {"error": text}}` with the values as text, or `{"run": Python text}`, answered by
`{"result": …}` or `{"error": text}`. In the text `deltalake`, `pa`, `Table` (a `DeltaTable` by path) and
`duckdb_with_delta` (a connection) are there.
"""

from __future__ import annotations

import datetime as dt
import decimal
import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
from spelling import rows_of


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


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if "read" in request:
        found: dict[str, Any] = {}
        for name, read in READERS.items():
            try:
                found[name] = rows_of(read(request["read"]))
            except BaseException as error:
                found[name] = {"error": f"{type(error).__name__}: {error}"}
        return found
    names = {"deltalake": deltalake, "pa": pa, "dt": dt, "decimal": decimal, "Table": deltalake.DeltaTable}
    names["duckdb_with_delta"] = _CONNECTED
    try:
        exec(request["run"], names)
        return {"result": names.get("result")}
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)), default=str), flush=True)


if __name__ == "__main__":
    main()
