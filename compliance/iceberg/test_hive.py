"""Iceberg tables in a real Hive Metastore are made, changed row by row, altered and dropped, beside pyiceberg."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog

import lakedbapi
from compliance.iceberg.metastore import jars, serving
from lakedbapi import ProgrammingError

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("hive")]
"""Each connection asks the metastore for a lock a statement; it takes half a minute to start."""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    found = jars()
    if found is None:
        reason = "Hive Metastore: not installed; run 'make hive', which needs Java 17, or set LAKE_HIVE_JARS"
        if os.environ.get("LAKE_CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with serving(found, tmp_path_factory.mktemp("hive")) as port:
        yield port


@pytest.fixture
def lake(port: int) -> Iterator[lakedbapi.Connection]:
    with connected(port) as connection:
        connection.execute("CREATE SCHEMA shop")
        yield connection
        connection.execute("DROP SCHEMA shop CASCADE")


def connected(port: int, **options: Any) -> lakedbapi.Connection:
    return lakedbapi.connect(f"iceberg+hive://127.0.0.1:{port}", schema="shop", autocommit=True, **options)


def pyiceberg(port: int) -> Catalog:
    return load_catalog("hive", type="hive", uri=f"thrift://127.0.0.1:{port}")


def rows(connection: lakedbapi.Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def test_row_level_changes(port: int, lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE t (id BIGINT, s VARCHAR) PARTITIONED BY (bucket(4, id))")
    assert lake.execute("INSERT INTO t SELECT i, 's' || i FROM range(100) r(i)").rowcount == 100
    assert lake.execute("DELETE FROM t WHERE id % 3 = 0").rowcount == 34
    assert lake.execute("UPDATE t SET s = 'x' WHERE id < 10").rowcount == 6
    expected = [(i, "x" if i < 10 else f"s{i}") for i in range(100) if i % 3]
    assert rows(lake, "SELECT * FROM t ORDER BY id") == expected
    read = pyiceberg(port).load_table("shop.t").scan().to_arrow().sort_by("id")
    assert list(zip(*read.to_pydict().values(), strict=True)) == expected


def test_tables_are_altered_renamed_and_dropped(port: int, lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE t (id BIGINT)")
    lake.execute("ALTER TABLE t ADD COLUMN s VARCHAR")
    lake.execute("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(ProgrammingError, match="exists already"):
        lake.execute("CREATE TABLE t (id BIGINT)")
    lake.execute("ALTER TABLE t RENAME TO u")
    assert rows(lake, "SHOW TABLES") == [("u",)]
    assert rows(lake, "SELECT * FROM u") == [(1, "a")]
    assert pyiceberg(port).list_tables("shop") == [("shop", "u")]
    lake.execute("DROP TABLE u")
    assert pyiceberg(port).list_tables("shop") == []


def test_two_writers(port: int, lake: lakedbapi.Connection) -> None:
    """Deletes of different rows of one file both land; of the same row, one conflicts."""
    lake.execute("CREATE TABLE t (id BIGINT) WITH ('format-version' = '3')")
    lake.execute("INSERT INTO t SELECT * FROM range(10)")
    with connected(port) as other:
        lake.execute("BEGIN")
        other.execute("BEGIN")
        assert lake.execute("DELETE FROM t WHERE id = 1").rowcount == 1
        assert other.execute("DELETE FROM t WHERE id = 2").rowcount == 1
        lake.execute("COMMIT")
        other.execute("COMMIT")
        assert rows(lake, "SELECT count(*), sum(id) FROM t") == [(8, 42)]
        lake.execute("BEGIN")
        other.execute("BEGIN")
        assert lake.execute("UPDATE t SET id = 30 WHERE id = 3").rowcount == 1
        assert other.execute("UPDATE t SET id = 31 WHERE id = 3").rowcount == 1
        lake.execute("COMMIT")
        with pytest.raises(lakedbapi.OperationalError) as caught:
            other.execute("COMMIT")
        assert caught.value.retryable
    assert rows(lake, "SELECT count(*), max(id) FROM t") == [(8, 30)]


def test_what_pyiceberg_changes_is_seen(port: int, lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE t (id BIGINT)")
    lake.execute("INSERT INTO t VALUES (1), (2), (3)")
    pyiceberg(port).load_table("shop.t").delete("id = 2")
    assert rows(lake, "SELECT id FROM t ORDER BY id") == [(1,), (3,)]
    assert lake.execute("DELETE FROM t WHERE id >= 2").rowcount == 1
