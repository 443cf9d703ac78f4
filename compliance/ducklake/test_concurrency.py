"""Many writing processes on one lake, and a writer that is killed before its commit; DuckDB checks what is left."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compliance.ducklake.lakes import ALIAS, Ours, Theirs
from compliance.peers.lakes import Place
from compliance.peers.peer import PROJECT, Peer

WRITERS = 4
INSERTS = 10

INSERTING = """
import sys, lakedbapi
url, table, number, rows = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
connection = lakedbapi.connect(url, autocommit=True)
for i in range(rows):
    connection.execute(f"INSERT INTO {table} SELECT {number}, {i} FROM range({1 if i % 2 else 15})")
"""

UPDATING = """
import sys, lakedbapi
url, table, number, rows = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
connection = lakedbapi.connect(url, autocommit=True)
for i in range(rows):
    assert connection.execute(f"UPDATE {table} SET n = n + 1 WHERE w = 0").rowcount == 1
"""

LARGE_INSERT = """
import sys, lakedbapi
connection = lakedbapi.connect(sys.argv[1])
connection.execute("INSERT INTO t SELECT i FROM range(200000) r(i)")
print("staged", flush=True)
connection.commit()
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def assert_succeeded(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors


@pytest.mark.parametrize("tables", ["one", "many"])
def test_parallel_inserts_all_arrive(place: Place, peer: Peer, tables: str) -> None:
    ours = Ours(place)
    names = [f"t{number if tables == 'many' else 0}" for number in range(WRITERS)]
    for name in dict.fromkeys(names):
        ours.execute(f"CREATE TABLE {name}(w int, i int)")
    created = ours.value("SELECT max(snapshot_id) FROM snapshots()")
    writers = [start(INSERTING, place.url, name, str(number), str(INSERTS)) for number, name in enumerate(names)]
    assert_succeeded(writers)
    theirs = Theirs(peer, place)
    rows = INSERTS // 2 * 16
    for reader in (ours, theirs):
        for number, name in enumerate(names):
            assert reader.value(f"SELECT count(*) FROM {name} WHERE w = {number}") == rows
            assert reader.value(f"SELECT count(*) - count(DISTINCT rowid) FROM {name}") == 0
    ids = [row[0] for row in theirs.rows(f"SELECT snapshot_id FROM ducklake_snapshots('{ALIAS}') ORDER BY 1")]
    assert ids == list(range(created + WRITERS * INSERTS + 1))
    registered = {row[0] for name in set(names) for row in ours.rows(f"SELECT path FROM files('{name}')")}
    assert {str(path) for path in place.data_files} == registered
    ours.close()


def test_parallel_updates_of_one_row_all_count(place: Place, peer: Peer) -> None:
    ours = Ours(place)
    ours.execute("CREATE TABLE counter(w int, n int)")
    ours.execute("INSERT INTO counter VALUES (0, 0)")
    assert_succeeded([start(UPDATING, place.url, "counter", "0", "8") for _ in range(3)])
    theirs = Theirs(peer, place)
    for reader in (ours, theirs):
        assert reader.rows("SELECT * FROM counter") == [(0, 24)]
    ours.close()


def test_a_writer_killed_before_its_commit_leaves_only_an_orphan(sqlite_place: Place, peer: Peer) -> None:
    ours = Ours(sqlite_place)
    ours.execute("CREATE TABLE t(i int)")
    ours.execute("INSERT INTO t SELECT i FROM range(20) r(i)")
    ours.close()
    before = set(sqlite_place.data_files)
    catalog = sqlite3.connect(sqlite_place.location.removeprefix("ducklake:sqlite:"), isolation_level=None)
    catalog.execute("BEGIN IMMEDIATE")
    writer = start(LARGE_INSERT, sqlite_place.url)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "staged\n"
    time.sleep(0.5)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    catalog.execute("ROLLBACK")
    catalog.close()
    orphans = set(sqlite_place.data_files) - before
    assert orphans
    theirs, ours = Theirs(peer, sqlite_place), Ours(sqlite_place)
    for reader in (ours, theirs):
        assert reader.value("SELECT count(*) FROM t") == 20
    theirs.execute(f"CALL ducklake_delete_orphaned_files('{ALIAS}')")
    assert orphans <= set(sqlite_place.data_files), "files younger than the grace age are kept"
    theirs.execute(f"CALL ducklake_delete_orphaned_files('{ALIAS}', cleanup_all => true)")
    assert set(sqlite_place.data_files) == before
    assert ours.execute("INSERT INTO t SELECT i FROM range(20, 40) r(i)") == 20
    for reader in (ours, theirs):
        assert reader.value("SELECT count(*) FROM t") == 40
    ours.close()


def test_a_rolled_back_transaction_leaves_no_file(sqlite_place: Place, tmp_path: Path) -> None:
    ours = Ours(sqlite_place)
    ours.execute("CREATE TABLE t(i int)")
    ours.execute("BEGIN")
    ours.execute("INSERT INTO t SELECT i FROM range(200000) r(i)")
    ours.execute("DELETE FROM t WHERE i % 2 = 0")
    ours.execute("ROLLBACK")
    assert sqlite_place.data_files == []
    ours.close()
