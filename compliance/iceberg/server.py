"""Other readers of Iceberg tables, serving one client over stdin and stdout.

Runs in the peers' environment and imports nothing of this project. A request is one line of JSON, `{"read": path}` of
a metadata file, answered by `{reader: [row, …] | {"error": text}}` with the values as text.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from pyiceberg.table import StaticTable

sys.path.insert(0, str(Path(__file__).parents[1] / "delta"))
from spelling import rows_of


def by_pyiceberg(path: str) -> pa.Table:
    return StaticTable.from_metadata(path).scan().to_arrow()


def by_polars(path: str) -> pa.Table:
    return pl.scan_iceberg(path, reader_override="native").collect().to_arrow()


def by_duckdb(path: str) -> pa.Table:
    connection = duckdb.connect(config={"allow_unsigned_extensions": True})
    for name in ("icu", "avro", "iceberg"):
        spec = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert spec is not None
        assert spec.origin is not None
        file = next(Path(spec.origin).parent.glob(f"extensions/*/{name}.duckdb_extension"))
        connection.execute(f"LOAD '{file}'")
    connection.execute("SET TimeZone = 'UTC'")
    found = connection.execute(f"SELECT * FROM iceberg_scan('{path}')")
    return found.to_arrow_table() if hasattr(found, "to_arrow_table") else found.fetch_arrow_table()


READERS = {"pyiceberg": by_pyiceberg, "polars": by_polars, "duckdb": by_duckdb}


def main() -> None:
    for line in sys.stdin:
        path = json.loads(line)["read"]
        found: dict[str, Any] = {}
        for name, read in READERS.items():
            try:
                found[name] = rows_of(read(path))
            except BaseException as error:
                found[name] = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found, default=str), flush=True)


if __name__ == "__main__":
    main()
