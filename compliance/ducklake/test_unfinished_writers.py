"""What a writer that does not get to its commit leaves behind."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from compliance.ducklake.lakes import ALIAS, Ours, Theirs
from compliance.peers.lakes import Place
from compliance.peers.peer import PROJECT, Peer

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
