"""Many processes, foreign writers and broken connections: no commit is lost, doubled or half done."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Connection

from compliance.peers.lakes import Place, on_postgresql
from compliance.peers.peer import Peer
from lakedbapi.engine.duckdb import DuckDBEngine
from lakedbapi.errors import CommitUnknownError
from tests.formats.ducklake.cutting_proxy import CuttingProxy
from tests.formats.ducklake.writing import Lake, arrow, column, open_catalog, row_changes

PROJECT = Path(__file__).parents[3]

_WRITER = """
import sys
from pathlib import Path
from compliance.peers.lakes import Place
from lakedbapi.engine.duckdb import DuckDBEngine
from tests.formats.ducklake.writing import Lake, open_catalog

backend, url, data_path, own = sys.argv[1:]
place = Place(backend, url, "", data_path)
lake = Lake(open_catalog(place), DuckDBEngine([data_path], [], ["lake"]))
for n in range(5):
    lake.insert_inlined("shared", (n,))
    lake.insert("shared" if n % 2 else own, (n,))
"""


def test_processes_that_insert_into_the_same_and_into_other_tables(lake: Lake, duckdb: Peer, place: Place) -> None:
    for name in ("shared", "a", "b", "c"):
        lake.create(name, column("i", "int32"))
    arguments = [sys.executable, "-c", _WRITER, place.backend, place.url, place.data_path]
    writers = [subprocess.Popen([*arguments, own], cwd=PROJECT, stderr=subprocess.PIPE) for own in ("a", "b", "c")]
    for writer in writers:
        _, errors = writer.communicate(timeout=100)
        assert writer.returncode == 0, errors.decode()
    lake.pin()
    assert [lake.count(name) for name in ("shared", "a", "b", "c")] == [15 + 6, 3, 3, 3]
    ids = [row[0] for row in lake.rows_of("snapshot")]
    assert ids == list(range(len(ids)))
    assert duckdb.rows("SELECT count(*), count(DISTINCT rowid) FROM shared") == [(21, 21)]
    known = {row[5] for row in lake.rows_of("data_file")}
    assert {file.name for file in place.data_files} == known


def test_duckdb_writes_between_our_commits(lake: Lake, duckdb: Peer) -> None:
    lake.create("t", column("i", "int32"))
    for n in range(5):
        table = lake.table("t")
        staged = row_changes(table, files=lake.written(table, arrow(table, [(n,)])))
        duckdb.execute(f"INSERT INTO t VALUES ({100 + n})")
        lake.commit(staged)
    assert duckdb.rows("SELECT count(*), count(DISTINCT rowid), max(i) FROM t WHERE true") == [(10, 10, 104)]


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[tuple[Lake, CuttingProxy, Place]]:
    """A lake on PostgreSQL behind a proxy, with a table t of 20 rows in one data file."""
    with on_postgresql(tmp_path) as place:
        url = urlsplit(place.url)
        assert url.hostname
        with CuttingProxy(url.hostname, url.port or 5432) as proxy:
            address = url.netloc.rpartition("@")[0] + f"@127.0.0.1:{proxy.port}"
            through = replace(place, url=urlunsplit(url._replace(netloc=address)) + "&sslmode=disable")
            engine = DuckDBEngine([place.data_path], [], ["lake"])
            lake = Lake(open_catalog(through, data_inlining_row_limit="0"), engine)
            lake.create("t", column("i", "int32"))
            lake.insert("t", *((i,) for i in range(20)))
            yield lake, proxy, place
            lake.catalog.close()
            engine.close()


@pytest.mark.parametrize("deliver", [False, True])
def test_a_connection_that_breaks_at_commit(cut: tuple[Lake, CuttingProxy, Place], deliver: bool) -> None:
    lake, proxy, place = cut
    proxy.deliver, proxy.armed = deliver, True
    result = lake.delete("t", {0: [1]})
    assert not proxy.armed
    assert (result.snapshot, result.attempts) == (3, 1 if deliver else 2)
    assert lake.count() == 19
    assert len(place.data_files) == 2


def await_count(lake: Lake, expected: int) -> None:
    """The server got the COMMIT and answers nobody: it may take a moment to do it."""
    deadline = time.monotonic() + 30
    lake.pin()
    while lake.count() != expected and time.monotonic() < deadline:
        time.sleep(0.05)
        lake.pin()
    assert lake.count() == expected


def test_an_unknown_commit_keeps_its_files(cut: tuple[Lake, CuttingProxy, Place]) -> None:
    lake, proxy, place = cut
    proxy.deliver, proxy.stays_reachable, proxy.armed = True, False, True
    with pytest.raises(CommitUnknownError, match="files of this commit were kept"):
        lake.delete("t", {0: [1]})
    proxy.restore()
    await_count(lake, 19)
    assert len(place.data_files) == 2


def test_a_commit_waits_for_a_locked_catalog(lake: Lake, place: Place, engine: DuckDBEngine) -> None:
    lake.create("t", column("i", "int32"))
    other = Lake(open_catalog(place, data_inlining_row_limit="0"), engine)
    with lake.catalog.backend.write():
        thread = threading.Thread(target=other.insert, args=("t", (1,)))
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
    thread.join(20)
    lake.pin()
    assert lake.count() == 1


def test_an_interrupted_commit_keeps_its_files(lake: Lake, place: Place) -> None:
    lake.create("t", column("i", "int32"))
    lake.insert("t", *((i,) for i in range(20)))
    engine = lake.catalog.backend.engine

    def interrupt(connection: Connection) -> None:
        if connection.in_transaction() and connection.info.pop("armed", False):
            raise KeyboardInterrupt

    def arm(connection: Connection, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.startswith("INSERT INTO ducklake_snapshot_changes"):
            connection.info["armed"] = True

    event.listen(engine, "commit", interrupt)
    event.listen(engine, "before_cursor_execute", arm)
    try:
        with pytest.raises(CommitUnknownError, match="interrupted"):
            lake.delete("t", {0: [1]})
    finally:
        event.remove(engine, "commit", interrupt)
        event.remove(engine, "before_cursor_execute", arm)
    assert len(place.data_files) == 2
    lake.pin()
    lake.delete("t", {0: [1]})
    assert lake.count() == 19
