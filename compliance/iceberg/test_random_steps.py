"""Random statements on an Iceberg table: after each, every reader sees what a plain DuckDB table has."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from pyiceberg.catalog import Catalog, load_catalog

import lakedbapi
from compliance.delta.readers import Readers, rows
from compliance.delta.test_random_steps import COLUMNS, some_rows, step
from compliance.peers.needed import needed_peers

SERVER = Path(__file__).with_name("server.py")
STEPS = 12
ALL = ("pyiceberg", "polars", "duckdb")
PARTITIONING = ["", "p", "bucket(3, i)", "month(t)", "truncate(2, s)", "day(d), p"]


@pytest.fixture(scope="module")
def others() -> Iterator[Readers]:
    """pyiceberg, polars and DuckDB with its extension."""
    running = Readers(needed_peers("pyiceberg, polars and DuckDB"), SERVER)
    yield running
    running.close()


@pytest.fixture
def twin() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE t ({COLUMNS})")
        yield connection


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    (tmp_path / "warehouse").mkdir()
    found = load_catalog(
        "default", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse"
    )
    yield found
    found.close()


def url(root: Path) -> str:
    return f"iceberg+sqlite:///{root}/catalog.db?warehouse=file://{root}/warehouse"


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write", "auto"])
@pytest.mark.parametrize("version", [2, 3])
def test_every_reader_sees_every_change(
    tmp_path: Path, catalog: Catalog, others: Readers, twin: duckdb.DuckDBPyConnection, version: int, mode: str
) -> None:
    chance = random.Random(f"{version}{mode}")
    properties = f"'format-version' = '{version}', 'lake.write_mode' = '{mode}'"
    with lakedbapi.connect(url(tmp_path), autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE TABLE t ({COLUMNS}) WITH ({properties})")
        for number in range(STEPS):
            if number % 4 == 0:
                keys = chance.choice(PARTITIONING)
                cursor.execute(
                    f"ALTER TABLE t SET PARTITIONED BY ({keys})" if keys else "ALTER TABLE t RESET PARTITIONED BY"
                )
            sql = step(chance)
            expected = twin.execute(sql).fetchone()
            cursor.execute(sql)
            assert (cursor.rowcount,) == expected, sql
            _same(catalog, others, twin, connection, sql)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_both_writers_take_turns(
    tmp_path: Path, catalog: Catalog, others: Readers, twin: duckdb.DuckDBPyConnection, mode: str
) -> None:
    """Statements of this project and appends and deletes of pyiceberg, on one table of version 2."""
    chance = random.Random(mode)
    with lakedbapi.connect(url(tmp_path), autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE TABLE t ({COLUMNS}) WITH ('lake.write_mode' = '{mode}')")
        for number in range(STEPS):
            if number % 2:
                sql = step(chance)
                twin.execute(sql)
                cursor.execute(sql)
            elif number % 4:
                low = chance.randrange(300)
                sql = f"DELETE FROM t WHERE i >= {low} AND i <= {low + 40}"
                twin.execute(sql)
                catalog.load_table("main.t").delete(f"i >= {low} and i <= {low + 40}")
            else:
                sql = some_rows(chance)
                new = twin.sql(sql).to_arrow_table().rename_columns(twin.sql("FROM t").columns)
                twin.execute("INSERT INTO t SELECT * FROM new")
                table = catalog.load_table("main.t")
                table.append(new.cast(table.schema().as_arrow()))
            _same(catalog, others, twin, connection, sql)


def _same(
    catalog: Catalog,
    others: Readers,
    twin: duckdb.DuckDBPyConnection,
    connection: lakedbapi.Connection,
    sql: str,
) -> None:
    expected = rows(twin.sql("FROM t").to_arrow_table())
    assert rows(connection.cursor().execute("SELECT * FROM t").fetch_arrow_table()) == expected, sql
    found = others.read(Path(catalog.load_table("main.t").metadata_location.removeprefix("file://")))
    for name in ALL:
        assert found[name] == expected, (name, sql)
