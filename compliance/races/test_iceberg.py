"""Processes that write one Iceberg table at the same time, or are killed while they do."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog

from compliance.peers.lakes import Place
from compliance.races.processes import LONG, killed, lake, run, value

PROCESSES = 3
COUNT = 60 if LONG else 8
COMMITS = 150 if LONG else 16
ROWS = "INSERT INTO t SELECT i, NULL, 0 FROM range(400) r(i)"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "warehouse").mkdir()
    url = f"iceberg+sqlite:///{tmp_path}/catalog.db?warehouse=file://{tmp_path}/warehouse"
    return Place("iceberg", url, "", f"{tmp_path}/warehouse/")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    warehouse = f"file://{tmp_path}/warehouse"
    found = load_catalog("default", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=warehouse)
    yield found
    found.close()


def create(version: int) -> str:
    """Under snapshot isolation an UPDATE and DELETE of old rows goes together with new rows."""
    levels = ", ".join(f"'write.{kind}.isolation-level' = 'snapshot'" for kind in ("delete", "update"))
    return (
        f"CREATE TABLE t (id INTEGER, worker INTEGER, counter INTEGER) WITH ('format-version' = '{version}', {levels})"
    )


def snapshots(catalog: Catalog) -> list[int]:
    """Sequence numbers, which are those of one line of ancestors."""
    metadata = catalog.load_table("main.t").metadata
    for before, after in itertools.pairwise(metadata.snapshots):
        assert after.parent_snapshot_id == before.snapshot_id
    return [snapshot.sequence_number or 0 for snapshot in metadata.snapshots]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [2, 3])
def test_inserts_updates_and_deletes_add_up(place: Place, catalog: Catalog, version: int) -> None:
    lake(place, create(version), ROWS)
    done = run("mixed", place, PROCESSES, COUNT)
    rows = 400 + done.rows["insert"] - done.rows["delete"]
    assert value(place, "SELECT count(*) FROM t") == value(place, "SELECT count(DISTINCT id) FROM t") == rows
    assert value(place, "SELECT sum(counter) FROM t") == done.rows["update"]
    assert snapshots(catalog) == list(range(1, 2 + done.changing))
    assert catalog.load_table("main.t").scan().to_arrow().num_rows == rows


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [2, 3])
def test_what_was_acknowledged_is_there_whole_after_kills(place: Place, catalog: Catalog, version: int) -> None:
    lake(place, create(version), ROWS)
    for commits, kills in killed("swap", place, COMMITS, random.Random(version), most=6, pause=0.1):
        made = snapshots(catalog)
        assert made == list(range(1, 1 + len(made)))
        assert commits <= made[-1] - 1 <= commits + kills
        assert value(place, "SELECT count(*) FROM t") == value(place, "SELECT count(DISTINCT id) FROM t") == 400
    assert catalog.load_table("main.t").scan().to_arrow().num_rows == 400
