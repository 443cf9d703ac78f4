"""Many processes on one lake in autocommit mode: no error, no lost and no doubled row, no orphan."""

from __future__ import annotations

import pytest

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from compliance.races.processes import LONG, catalog_rows, lake, missing, orphans, run, snapshot_ids, value

PROCESSES = 8
COUNT = 200 if LONG else 25

TABLE = "CREATE TABLE t (id INTEGER, worker INTEGER, counter INTEGER)"
ROWS = "INSERT INTO t SELECT i, NULL, 0 FROM range(400) r(i)"

inlining = pytest.mark.parametrize("inlined", [True, False], ids=["inlined", "files"])


@pytest.mark.timeout(900)
@inlining
def test_inserts_updates_and_deletes_of_one_table_add_up(place: Place, peer: Peer, inlined: bool) -> None:
    lake(place, TABLE, ROWS, inlined=inlined)
    first = snapshot_ids(place)[-1]
    done = run("mixed", place, PROCESSES, COUNT)
    rows = 400 + done.rows["insert"] - done.rows["delete"]
    assert value(place, "SELECT count(*) FROM t") == value(place, "SELECT count(DISTINCT id) FROM t") == rows
    assert value(place, "SELECT sum(counter) FROM t") == done.rows["update"]
    assert sum(done.statements.values()) == PROCESSES * COUNT
    assert snapshot_ids(place) == list(range(first + done.changing + 1))
    assert not orphans(place)
    assert not missing(place)
    peer.attach(place.location)
    assert peer.rows("SELECT count(*), sum(counter), count(DISTINCT rowid) FROM t") == [
        (rows, done.rows["update"], rows)
    ]


@pytest.mark.timeout(900)
@inlining
def test_inserts_into_one_table_all_succeed(place: Place, peer: Peer, inlined: bool) -> None:
    lake(place, TABLE, inlined=inlined)
    first = snapshot_ids(place)[-1]
    done = run("insert", place, PROCESSES, COUNT)
    assert done.rows["insert"] == value(place, "SELECT count(DISTINCT id) FROM t") == PROCESSES * COUNT
    assert snapshot_ids(place) == list(range(first + PROCESSES * COUNT + 1))
    assert not orphans(place)
    peer.attach(place.location)
    assert peer.value("SELECT count(DISTINCT rowid) FROM t") == PROCESSES * COUNT


@pytest.mark.timeout(900)
@inlining
def test_inserts_into_different_tables_all_succeed(place: Place, inlined: bool) -> None:
    lake(place, inlined=inlined)
    done = run("insert_apart", place, PROCESSES, COUNT)
    assert done.rows["insert"] == PROCESSES * COUNT
    for number in range(PROCESSES):
        assert value(place, f"SELECT count(DISTINCT id) FROM t{number}") == COUNT
    ids = [id for (id,) in catalog_rows(place, "SELECT table_id FROM ducklake_table")]
    assert len(set(ids)) == PROCESSES
    assert snapshot_ids(place) == list(range(len(snapshot_ids(place))))
    assert not orphans(place)
