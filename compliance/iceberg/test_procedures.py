"""After each maintenance call every reader sees the rows that were there before, in `main` and where a tag points."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog

import lakedbapi
from compliance.delta.readers import Readers, rows
from compliance.peers.needed import needed_peers

SERVER = Path(__file__).with_name("server.py")
CALLS = (
    "rewrite_position_delete_files(table => 't')",
    "rewrite_manifests(table => 't')",
    "expire_snapshots(table => 't', older_than => now())",
    "remove_orphan_files(table => 't', cleanup_all => true)",
    "rewrite_data_files(table => 't')",
    "expire_snapshots(table => 't', older_than => now(), retain_last => 1)",
    "remove_orphan_files(table => 't', cleanup_all => true)",
)


@pytest.fixture(scope="module")
def others() -> Iterator[Readers]:
    """pyiceberg, polars and DuckDB with its extension."""
    running = Readers(needed_peers("pyiceberg, polars and DuckDB"), SERVER)
    yield running
    running.close()


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    (tmp_path / "warehouse").mkdir()
    found = load_catalog(
        "default", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse"
    )
    yield found
    found.close()


@pytest.mark.parametrize("version", [2, 3])
def test_calls_change_no_row(tmp_path: Path, catalog: Catalog, others: Readers, version: int) -> None:
    url = f"iceberg+sqlite:///{tmp_path}/catalog.db?warehouse=file://{tmp_path}/warehouse"
    properties = {
        "format-version": str(version),
        "write.metadata.previous-versions-max": "2",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    shown = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    with lakedbapi.connect(url, autocommit=True) as lake:
        lake.execute(f"CREATE TABLE t (i BIGINT, p VARCHAR) PARTITIONED BY (p) WITH ({shown})")
        for start in range(0, 400, 100):
            lake.execute(f"INSERT INTO t SELECT i, 'p' || (i % 2) FROM range({start}, {start} + 100) r(i)")
            lake.execute(f"DELETE FROM t WHERE i BETWEEN {start} + 5 AND {start} + 9")
            if start == 100:
                lake.execute("ALTER TABLE t CREATE TAG half")
                half = rows(lake.cursor().execute("SELECT * FROM t").fetch_arrow_table())
            lake.execute(f"DELETE FROM t WHERE i = {start} + 50")
        expected = rows(lake.cursor().execute("SELECT * FROM t").fetch_arrow_table())
        assert (len(half), len(expected)) == (189, 376)
        for call in CALLS:
            lake.execute(f"CALL {call}")
            table = catalog.load_table("main.t")
            found = others.read(Path(table.metadata_location.removeprefix("file://")))
            assert found == dict.fromkeys(("pyiceberg", "polars", "duckdb"), expected), call
            tagged = table.scan(snapshot_id=table.metadata.refs["half"].snapshot_id).to_arrow()
            assert rows(tagged) == half, call
        assert len(table.metadata.snapshots) == 2
        assert len(list(Path(table.location().removeprefix("file://")).glob("metadata/*.metadata.json"))) == 3
