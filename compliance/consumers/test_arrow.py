"""polars, pyarrow and DuckDB take results as Arrow."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

import lakedbapi
from compliance.consumers.conftest import tool

pl = tool("polars")
duckdb = tool("duckdb")
pa = tool("pyarrow")
dbapi = tool("adbc_driver_lake.dbapi")

ORDERS = "SELECT id, price, placed, tags FROM orders ORDER BY id"


def test_polars_reads_through_an_engine(engine: sa.engine.Engine) -> None:
    found = pl.read_database(ORDERS, engine)
    assert found["price"].dtype == pl.Decimal(9, 2)
    assert found["placed"].dtype == pl.Datetime("us", "UTC")
    assert found["id"].to_list() == [1, 2, 3]


def test_polars_reads_arrow_from_a_connection(shop: Path) -> None:
    with dbapi.connect(shop) as connection:
        found = pl.read_database(ORDERS, connection)
        assert found.schema["tags"] == pl.List(pl.String)
        batches = pl.read_database("SELECT range FROM range(300000)", connection, iter_batches=True, batch_size=100_000)
        assert sum(batch.height for batch in batches) == 300_000


def test_polars_reads_and_writes_by_url(url: str) -> None:
    frame = pl.DataFrame({"id": range(1000), "name": [f"n{n}" for n in range(1000)]})
    assert frame.write_database("polars", url, engine="adbc") == 1000
    assert frame.write_database("polars", url, engine="adbc", if_table_exists="append") == 1000
    assert frame.write_database("polars_new", url, engine="adbc", if_table_exists="append") == 1000
    assert pl.read_database_uri("SELECT count(*) AS n FROM polars", url, engine="adbc")["n"].item() == 2000
    with pytest.raises(lakedbapi.ProgrammingError, match="exists already"):
        frame.write_database("polars", url, engine="adbc")


def test_polars_writes_through_an_engine(engine: sa.engine.Engine) -> None:
    frame = pl.DataFrame({"id": range(1000)})
    assert frame.write_database("written", engine) == 1000
    assert frame.write_database("written", engine, if_table_exists="append") == 1000
    assert pl.read_database("SELECT count(*) AS n FROM written", engine)["n"].item() == 2000


def test_a_cursor_is_an_arrow_stream(shop: Path) -> None:
    with lakedbapi.connect(shop) as connection:
        assert pa.table(connection.execute(ORDERS)).num_rows == 3
        assert pl.DataFrame(connection.execute(ORDERS)).height == 3
        cursor = connection.execute(ORDERS)  # noqa: F841 - DuckDB finds it by its name
        assert duckdb.sql("SELECT count(*), sum(id) FROM cursor").fetchall() == [(3, 6)]
