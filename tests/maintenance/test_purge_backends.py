"""PURGE where the catalog is on PostgreSQL, MySQL or in a DuckDB file."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakedbapi
from compliance.peers.lakes import on_mysql, on_postgresql
from tests.dml.conftest import Lake

SECRET = "joe@example.org"


def purged(url: str, data: Path) -> str:
    """Purge rows that are in files, inlined, updated and deleted; what was done to the catalog database."""
    with lakedbapi.connect(url, autocommit=True) as connection:
        lake = Lake(connection)
        lake("CREATE TABLE t (id INTEGER, mail VARCHAR)")
        lake(f"INSERT INTO t SELECT i, if(i = 3, '{SECRET}', 'mail' || i) FROM range(30) r(i)")
        lake(f"INSERT INTO t VALUES (31, '{SECRET}'), (32, 'mail32')")
        lake("UPDATE t SET mail = 'changed' WHERE id = 31")
        lake("DELETE FROM t WHERE id = 3")
        report = lake("PURGE FROM t WHERE mail = ?", SECRET)
        assert {n for _, _, n, result in report if result == "clean"} == {0}
        assert lake("SELECT count(*), count(DISTINCT rowid) FROM t") == [(31, 31)]
        assert lake("SELECT max_value FROM (SELECT max(mail) AS max_value FROM t)") == [("mail9",)]
        assert {n for _, _, n, _ in lake("PURGE FROM t WHERE mail = ?", SECRET)} == {0, None}
        (result,) = (result for _, kind, _, result in report if kind == "catalog database")
    assert len(list(data.rglob("*.parquet"))) == 1
    return str(result)


def test_on_postgresql(tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    with on_postgresql(tmp_path) as place:
        assert "VACUUM FULL" in purged(place.url, tmp_path / "data")
        address = place.url.removeprefix("ducklake+").split("?")[0]
        with psycopg.connect(address, autocommit=True) as server:
            tables = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            for (table,) in tables:
                for row in server.execute(f'SELECT t::text FROM "{table}" t').fetchall():
                    assert SECRET not in row[0]
                    assert SECRET.encode().hex() not in row[0]
            # A table that was never rebuilt lies in the file it was made with, dead rows and all.
            never = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relfilenode = oid"
            old = {name for (name,) in server.execute(never).fetchall()}
            kinds = "data_file", "delete_file", "file_column_stats", "table_column_stats"
            assert not old & {f"ducklake_{kind}" for kind in kinds}
            assert not {name for name in old if name.startswith("ducklake_inlined_data_") and name[-1].isdigit()}


def test_in_a_duckdb_file(tmp_path: Path) -> None:
    url = f"ducklake+duckdb:///{tmp_path}/lake.ducklake?data_path={tmp_path}/data/"
    assert "COPY FROM DATABASE" in purged(url, tmp_path / "data")


def test_on_mysql(tmp_path: Path) -> None:
    with on_mysql(tmp_path) as place:
        assert "OPTIMIZE TABLE" in purged(place.url, tmp_path / "data")
