"""Columns that other writers tell apart, though `str.casefold` does not: Spark has `straße` beside `STRASSE`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakedbapi
from lakedbapi.formats.delta.paths import full_paths
from tests.formats.delta.committed import rows
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import Table


@pytest.fixture
def lake(tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    table = Table(tmp_path / "t")
    table.create(
        [("id", "integer"), ("straße", "integer"), ("STRASSE", "integer")],
        protocol={"minReaderVersion": 1, "minWriterVersion": 2},
    )
    return connect(tmp_path, autocommit=True)


def test_each_statement_finds_the_column_that_it_names(lake: lakedbapi.Connection) -> None:
    lake.execute('INSERT INTO t (id, "straße", strasse) VALUES (1, 10, 100), (2, 20, 200)')
    lake.execute('INSERT INTO t (strasse, id, "straße") VALUES (300, 3, 30)')
    assert rows(lake, "SELECT * FROM t ORDER BY id") == [(1, 10, 100), (2, 20, 200), (3, 30, 300)]
    assert rows(lake, 'SELECT id FROM t WHERE "straße" = 30') == rows(lake, "SELECT id FROM t WHERE strasse = 300")
    assert lake.execute('UPDATE t SET "straße" = 11 WHERE STRASSE = 100').rowcount == 1
    assert lake.execute('UPDATE t SET Strasse = "straße" + 1 WHERE "straße" = 20').rowcount == 1
    assert lake.executemany('UPDATE t SET strasse = ? WHERE "straße" = ?', [(5, 30), (6, 31)]).rowcount == 1
    assert lake.execute('DELETE FROM t WHERE "straße" < 12').rowcount == 1
    merge = 'MERGE INTO t USING (SELECT 20 AS k) s ON t."straße" = s.k WHEN MATCHED THEN UPDATE SET "straße" = STRASSE'
    assert lake.execute(merge).rowcount == 1
    assert rows(lake, "SELECT * FROM t ORDER BY id") == [(2, 21, 21), (3, 30, 5)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a%20b.parquet", "/root/t/a b.parquet"),
        ("/other/a.parquet", "/other/a.parquet"),
        ("file:/other/a%25.parquet", "/other/a%.parquet"),
        ("file:///other/a.parquet", "/other/a.parquet"),
        ("file:///other/../a.parquet", "/other/../a.parquet"),
        ("s3://other/a%20b.parquet", "s3://other/a b.parquet"),
        ("x-y.z+1://other/a.parquet", "x-y.z+1://other/a.parquet"),
        ("p=1:2/a.parquet", "/root/t/p=1:2/a.parquet"),
    ],
)
def test_paths_are_below_the_table_or_whole(path: str, expected: str) -> None:
    """Those of shallow clones are whole."""
    assert full_paths("/root/t/", pa.array([path])).to_pylist() == [expected]
    both = full_paths("/root/t/", pa.array([path, "b.parquet"])).to_pylist()
    assert both == [expected, "/root/t/b.parquet"]
