"""Tables of each format that is written are made, changed row by row and maintained in an object store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

import lakedbapi
from compliance.stores.servers import Store


@pytest.fixture(params=["ducklake", "delta", "iceberg"])
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lake(format: str, store: Store, tmp_path: Path) -> Iterator[lakedbapi.Connection]:
    scheme, _, bucket = store.url.partition("://")
    urls = {
        "ducklake": f"ducklake:///{tmp_path}/c.sqlite?data_path={store.url}/{tmp_path.name}/",
        "delta": f"delta+{scheme}://{bucket}/{tmp_path.name}",
        "iceberg": f"iceberg+sqlite:///{tmp_path}/c.db?warehouse={store.url}/{tmp_path.name}",
    }
    with lakedbapi.connect(urls[format], autocommit=True, storage_options=store.options) as connection:
        yield connection


def test_row_level_changes(lake: lakedbapi.Connection, store: Store) -> None:
    lake.execute("CREATE TABLE t (id BIGINT, s VARCHAR) PARTITIONED BY (s)")
    assert lake.execute("INSERT INTO t SELECT i, 'a b=%' || i % 3 FROM range(1000) r(i)").rowcount == 1000
    assert lake.execute("DELETE FROM t WHERE id % 7 = 0").rowcount == 143
    before = lake.snapshot_id
    assert lake.execute("UPDATE t SET id = -id WHERE id < 100").rowcount == 85
    merge = "MERGE INTO t USING (SELECT -1 AS id UNION ALL SELECT 5000) s ON t.id = s.id"
    merge += " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'new')"
    assert lake.execute(merge).rowcount == 2
    kept = [i for i in range(1000) if i % 7]
    expected = sorted([*(i if i >= 100 else -i for i in kept if i != 1), 5000])
    assert [id for (id,) in lake.execute("SELECT id FROM t ORDER BY id").fetchall()] == expected
    old = lake.execute(f"SELECT id FROM t AT (VERSION => {before}) ORDER BY id").fetchall()
    assert [id for (id,) in old] == kept
    assert lake.execute("DELETE FROM t WHERE s = 'a b=%1'").rowcount == sum(abs(i) % 3 == 1 for i in expected[:-1])
    left = [i for i in expected if abs(i) % 3 != 1 or i == 5000]
    lake.execute("OPTIMIZE t")
    assert [id for (id,) in lake.execute("SELECT id FROM t ORDER BY id").fetchall()] == left
    lake.execute("DROP TABLE t")


def test_what_writers_left_is_removed(lake: lakedbapi.Connection, format: str, store: Store, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT i FROM range(1000) r(i)")
    if format == "delta":  # Its tables tell how young files are that nobody may remove.
        lake.execute("ALTER TABLE t SET ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')")
    (path,) = lake.execute("SELECT path FROM files('t')").fetchone() or ()
    orphan = re.sub("[0-9a-f]{12}([^/]*)$", r"000000000000\1", path)
    assert orphan != path
    fsspec.filesystem(orphan.partition("://")[0], **store.options).pipe_file(orphan, b"PAR1")
    removed = lake.execute("CALL remove_orphan_files(table => 't', older_than => now() + INTERVAL 1 DAY)").fetchall()
    assert [row[0] for row in removed] == [orphan]
    assert orphan not in store.find(tmp_path.name)
    assert lake.execute("SELECT count(*) FROM t").fetchone() == (1000,)
