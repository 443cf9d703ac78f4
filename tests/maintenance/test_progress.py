"""Long work tells how far it is, and whoever ends it in the middle leaves the lake as it was."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakedbapi
from compliance.peers.lakes import Place
from compliance.races.processes import missing, orphans, snapshot_ids
from lakedbapi import Progress
from lakedbapi.terminal import ProgressLine
from tests.dml.conftest import Lake

GROUPS = 12


@pytest.fixture
def lake(sqlite_place: Place) -> Iterator[Lake]:
    """With `t(k, g)`, partitioned by `g` in 12 parts of two files each, half of their rows deleted, and rows in the
    catalog."""
    with lakedbapi.connect(sqlite_place.url, autocommit=True) as connection:
        lake = Lake(connection)
        lake("CREATE TABLE t (k INTEGER, g INTEGER) PARTITIONED BY (g)")
        for start in (0, 6000):
            lake(f"INSERT INTO t SELECT i, i % {GROUPS} FROM range({start}, {start + 6000}) r(i)")
        lake("DELETE FROM t WHERE k % 24 < 12 AND k < 6000")
        lake("INSERT INTO t VALUES (-1, 0)")
        yield lake


def told(lake: Lake, sql: str) -> list[Progress]:
    found: list[Progress] = []
    lake.connection.progress = found.append
    lake(sql)
    lake.connection.progress = None
    return found


def test_maintenance_tells_how_far_it_is(lake: Lake) -> None:
    rewriting = told(lake, "OPTIMIZE t WHERE g < 3")
    assert rewriting[:4] == [Progress("rewrite main.t", done, 3, "files") for done in range(4)]
    assert rewriting[4:] == [Progress("merge main.t", done, 6, "files") for done in (0, 2, 4, 6)]
    flushing = told(lake, "CALL lake.flush_inlined_data()")
    assert flushing == [Progress("flush main.t", done, 1, "rows") for done in range(2)]
    checking = told(lake, "CHECKPOINT")
    assert {progress.task for progress in checking} >= {"merge main.t"}
    assert all(0 <= progress.done <= (progress.total or 0) for progress in checking)


def test_long_inserts_tell_how_far_they_are(lake: Lake) -> None:
    inserting = told(lake, "INSERT INTO t SELECT i, 0 FROM range(400_000) r(i)")
    done = [progress.done for progress in inserting]
    assert done == sorted(done)
    assert (inserting[0].total, inserting[-1].done, inserting[-1].total) == (None, 400_000, 400_000)
    assert told(lake, "INSERT INTO t VALUES (1, 1)") == []


STEPS = ("OPTIMIZE t", "CHECKPOINT", "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)")


def unharmed(lake: Lake, place: Place, before: list[tuple[int, int]], snapshots: list[int]) -> None:
    assert lake("SELECT count(*), sum(k) FROM t") == before
    assert snapshot_ids(place)[: len(snapshots)] == snapshots
    assert not orphans(place)
    assert not missing(place)


@pytest.mark.parametrize("sql", STEPS)
@pytest.mark.parametrize("how", ["interrupt", "ctrl-c", "error"])
def test_work_that_is_ended_in_the_middle_leaves_nothing(lake: Lake, sqlite_place: Place, sql: str, how: str) -> None:
    lake("CALL lake.set_option('rewrite_delete_threshold', 0.1)")
    before, snapshots = lake("SELECT count(*), sum(k) FROM t"), snapshot_ids(sqlite_place)
    files = len(sqlite_place.data_files)
    seen: list[int] = []

    def end(progress: Progress) -> None:
        if progress.unit == "files" and progress.done >= 4:
            seen.append(len(sqlite_place.data_files))
            if how == "interrupt":
                threading.Thread(target=lake.connection.interrupt).start()
            elif how == "ctrl-c":
                os.kill(os.getpid(), signal.SIGINT)
            else:
                raise RuntimeError("enough")

    lake.connection.progress = end
    expected = {"interrupt": lakedbapi.OperationalError, "ctrl-c": KeyboardInterrupt, "error": RuntimeError}[how]
    with pytest.raises(expected):
        lake(sql)
    lake.connection.progress = None
    assert seen[0] > files  # Files were written, and are gone.
    unharmed(lake, sqlite_place, before, snapshots)
    if sql != "CHECKPOINT":  # Whose first steps have committed.
        assert snapshot_ids(sqlite_place) == snapshots
        assert len(sqlite_place.data_files) == files
    lake(sql)
    unharmed(lake, sqlite_place, before, snapshots)


def test_a_restore_that_is_cancelled_leaves_nothing(lake: Lake, sqlite_place: Place) -> None:
    lake("CREATE TABLE big AS SELECT i, hash(i) AS h FROM range(3_000_000) r(i)")
    version = snapshot_ids(sqlite_place)[-1]
    lake("DELETE FROM big")
    lake("VACUUM")
    snapshots, files = snapshot_ids(sqlite_place), len(sqlite_place.data_files)

    def cancel_once_a_file_is_begun() -> None:
        while len(sqlite_place.data_files) == files:
            time.sleep(0.001)
        lake.connection.interrupt()

    threading.Thread(target=cancel_once_a_file_is_begun, daemon=True).start()
    with pytest.raises(lakedbapi.OperationalError, match="cancelled"):
        lake(f"RESTORE TABLE big TO VERSION AS OF {version}")
    assert snapshot_ids(sqlite_place) == snapshots
    assert len(sqlite_place.data_files) == files
    assert lake(f"RESTORE TABLE big TO VERSION AS OF {version}") == 3_000_000


# In a terminal


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_in_a_terminal() -> None:
    terminal = _Terminal()
    line = ProgressLine(terminal)
    line(Progress("merge main.t", 1, 3, "files"))
    assert terminal.getvalue() == "\r\x1b[Kmerge main.t " + "█" * 10 + "░" * 20 + " 1 of 3 files"
    line(Progress("merge main.t", 3, 3, "files"))
    assert terminal.getvalue().endswith("\r\x1b[K")
    line(Progress("insert into t", 1000, None, "rows"))
    assert terminal.getvalue().endswith("insert into t: 1,000 rows")


PROGRAM = """
import sys, lakedbapi
with lakedbapi.connect(sys.argv[1], autocommit=True, progress=sys.argv[2] == "asked") as connection:
    connection.execute("CREATE TABLE t AS SELECT i FROM range(1_000_000) r(i)")
"""


@pytest.mark.parametrize(("asked", "terminal"), [("asked", True), ("asked", False), ("not", True)])
def test_only_a_terminal_that_asked_shows_progress(tmp_path: Path, asked: str, terminal: bool) -> None:
    reader, writer = pty.openpty() if terminal else os.pipe()
    try:
        program = [sys.executable, "-c", PROGRAM, str(tmp_path / "lake"), asked]
        subprocess.run(program, stderr=writer, check=True, cwd=Path(__file__).parents[2])
    finally:
        os.close(writer)
    shown = _rest(lambda: os.read(reader, 65536))
    os.close(reader)
    assert ("insert into t" in shown) == (asked == "asked" and terminal)
    assert terminal or shown == ""


def _rest(read: Callable[[], bytes]) -> str:
    found = b""
    while True:
        try:
            chunk = read()
        except OSError:  # How a terminal ends on Linux.
            break
        if not chunk:
            break
        found += chunk
    return found.decode()
