"""Random statements on a Delta table: after each, every reader sees what a plain DuckDB table has."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import lakedbapi
from compliance.delta.readers import ALL, Readers, rows

COLUMNS = (
    "i BIGINT, s VARCHAR, n DECIMAL(12,3), f DOUBLE, b BOOLEAN, d DATE, t TIMESTAMP WITH TIME ZONE, "
    "r STRUCT(x INTEGER, y VARCHAR), l INTEGER[], p VARCHAR"
)
PARTS = ("'a'", "'b c'", "'x=y/z%'", "'é'", "NULL")
STEPS = 10


def some_rows(chance: random.Random) -> str:
    """SELECT of a few rows."""
    count, start, part = chance.choice([1, 3, 50]), chance.randrange(300), chance.choice(PARTS)
    return (
        f"SELECT i, if(i % 7 = 0, NULL, 's' || i), (i * 1.001)::DECIMAL(12,3), if(i % 5 = 0, 'nan'::DOUBLE, i / 3), "
        f"i % 2 = 0, DATE '2020-02-28' + (i % 3)::INTEGER, TIMESTAMPTZ '2021-03-28 00:59:59.999999+00' + "
        f"to_microseconds(i), if(i % 11 = 0, NULL, {{'x': (i % 4)::INTEGER, 'y': 'é' || i}}), "
        f"if(i % 13 = 0, NULL, [i % 3, NULL]::INTEGER[]), if(i % 4 = 0, {part}, {chance.choice(PARTS)}) "
        f"FROM range({start}, {start + count}) q(i)"
    )


def condition(chance: random.Random) -> str:
    low = chance.randrange(300)
    return chance.choice(
        [
            f"i = {low}",
            f"i BETWEEN {low} AND {low + 30}",
            f"p = {chance.choice(PARTS[:4])}",
            "p IS NULL",
            f"NOT (s = 's{low}')",
            f"r.x = {chance.randrange(4)} AND i % 3 = 0",
            "f > 40",
            "i = 1 OR NULL",
        ]
    )


def step(chance: random.Random) -> str:
    kind = chance.choice(["insert", "insert", "delete", "delete", "update", "update", "merge"])
    if kind == "insert":
        return f"INSERT INTO t {some_rows(chance)}"
    if kind == "delete":
        return f"DELETE FROM t WHERE {condition(chance)}"
    if kind == "update":
        change = chance.choice(["s = s || '!'", f"p = {chance.choice(PARTS)}", "i = i + 1, f = NULL", "r = NULL"])
        return f"UPDATE t SET {change} WHERE {condition(chance)}"
    return (
        f"MERGE INTO t USING (SELECT * FROM ({some_rows(chance)}) AS q(i, s, n, f, b, d, t, r, l, p) "
        "WHERE i NOT IN (SELECT i FROM t GROUP BY i HAVING count(*) > 1)) AS u ON t.i = u.i "
        "WHEN MATCHED AND u.i % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = u.s, p = u.p "
        "WHEN NOT MATCHED THEN INSERT VALUES (u.i, u.s, u.n, u.f, u.b, u.d, u.t, u.r, u.l, u.p)"
    )


@pytest.fixture(params=[0, 1], ids=["whole", "partitioned"])
def partitioning(request: pytest.FixtureRequest) -> str:
    return " PARTITIONED BY (p)" if request.param else ""


@pytest.fixture(params=["true", "false"], ids=["vectors", "rewriting"])
def vectors(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["none", "name", "id"])
def mapping(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def twin() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE t ({COLUMNS})")
        yield connection


def test_every_reader_sees_every_change(
    tmp_path: Path, readers: Readers, twin: duckdb.DuckDBPyConnection, partitioning: str, vectors: str, mapping: str
) -> None:
    chance = random.Random(f"{partitioning}{vectors}{mapping}")
    able = set(ALL)
    if mapping != "none":
        able.discard("polars")  # It refuses tables that map columns.
        if partitioning:
            able.discard("duckdb")  # It reads NULL in partition columns of such tables, whoever wrote them.
    properties = f"'delta.enableDeletionVectors' = '{vectors}', 'delta.columnMapping.mode' = '{mapping}'"
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE TABLE t ({COLUMNS}){partitioning} WITH ({properties})")
        _same(tmp_path, readers, able, twin, connection, "CREATE")
        for _ in range(STEPS):
            sql = step(chance)
            expected = twin.execute(sql).fetchone()
            cursor.execute(sql)
            assert (cursor.rowcount,) == expected, sql
            _same(tmp_path, readers, able, twin, connection, sql)


def _same(
    path: Path,
    readers: Readers,
    able: set[str],
    twin: duckdb.DuckDBPyConnection,
    connection: lakedbapi.Connection,
    sql: str,
) -> None:
    expected = rows(twin.sql("FROM t").to_arrow_table())
    assert rows(connection.cursor().execute("SELECT * FROM t").fetch_arrow_table()) == expected, sql
    found = readers.read(path / "t")
    for name in sorted(able):
        assert found[name] == expected, (name, sql)
