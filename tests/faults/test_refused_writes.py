"""Storage that is full or refuses writes: the statement fails, nothing is visible, no file stays, and work goes on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import lakedbapi
from compliance.peers.lakes import Place, on_sqlite
from compliance.races.processes import orphans, snapshot_ids
from lakedbapi.dml import new_rows
from lakedbapi.storage.filesystem import Storage
from tests.faults.conftest import Connect

TOO_MUCH = "INSERT INTO t SELECT i, hash(i)::VARCHAR FROM range(500000) r(i)"
CHANGES = {
    "insert": TOO_MUCH,
    "update": "UPDATE t SET s = hash(id)::VARCHAR || hash(id + 1)::VARCHAR",
    "delete": "DELETE FROM t WHERE id % 3 = 0",
    "merge": "MERGE INTO t USING (SELECT * FROM t) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = 'x'",
    "create": f"CREATE TABLE u AS {TOO_MUCH.partition('t ')[2]}",
}


def mounted(path: Path, *options: str) -> Iterator[Path]:
    """A mount at `path`; skips where the tests may not mount."""
    path.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    yield from mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=2m", "tmpfs")


def filled(connection: lakedbapi.Connection) -> None:
    """The table `t(id INTEGER, s VARCHAR)` with 40,000 rows in a file of some 300 KB."""
    connection.execute("CREATE TABLE t (id INTEGER, s VARCHAR)")
    connection.execute("INSERT INTO t SELECT i, 'x' || i FROM range(40000) r(i)")
    connection.commit()


def check_unharmed(connection: lakedbapi.Connection, place: Place, snapshots: list[int]) -> None:
    """What `filled` made is there and nothing else, and the connection can write."""
    assert snapshot_ids(place) == snapshots
    assert not orphans(place)
    assert connection.execute("SELECT count(*), count(DISTINCT s) FROM t").fetchone() == (40_000, 40_000)


def fill(disk: Path) -> Path:
    """Fill the disk with a file."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(disk).free))
    return ballast


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_full_disk_for_the_data(tmp_path: Path, small_disk: Path, change: str, autocommit: bool) -> None:
    place = Place(
        "sqlite", f"ducklake:///{tmp_path}/catalog.sqlite?data_path={small_disk}/data/", "", f"{small_disk}/data/"
    )
    with lakedbapi.connect(place.url, data_inlining_row_limit=0) as connection:
        filled(connection)
        connection.autocommit = autocommit
        snapshots = snapshot_ids(place)
        ballast = fill(small_disk)
        with pytest.raises(lakedbapi.OperationalError, match=str(small_disk)):
            change_and_commit(connection, change)
        connection.rollback()
        check_unharmed(connection, place, snapshots)
        ballast.unlink()
        assert connection.execute("DELETE FROM t WHERE id = 1").rowcount == 1
        connection.commit()


def test_a_full_disk_for_the_catalog(tmp_path: Path, small_disk: Path) -> None:
    data = tmp_path / "data"
    place = Place("sqlite", f"ducklake:///{small_disk}/catalog.sqlite?data_path={data}/", "", f"{data}/")
    with lakedbapi.connect(place.url, data_inlining_row_limit=0) as connection:
        filled(connection)
        snapshots = snapshot_ids(place)
        ballast = fill(small_disk)
        with pytest.raises(lakedbapi.OperationalError, match=r"catalog\.sqlite"):
            change_and_commit(connection, TOO_MUCH)
        check_unharmed(connection, place, snapshots)
        ballast.unlink()
        connection.execute(TOO_MUCH)
        connection.commit()


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_data_that_has_become_read_only(tmp_path: Path, change: str, autocommit: bool) -> None:
    place = on_sqlite(tmp_path)
    with lakedbapi.connect(place.url, data_inlining_row_limit=0) as connection:
        filled(connection)
        connection.autocommit = autocommit
        snapshots = snapshot_ids(place)
        for data in mounted(Path(place.data_path), "--bind", place.data_path):
            subprocess.run(["mount", "-o", "remount,ro,bind", str(data)], check=True)
            with pytest.raises(lakedbapi.OperationalError, match="data"):
                change_and_commit(connection, change)
            connection.rollback()
            check_unharmed(connection, place, snapshots)
        assert connection.execute("DELETE FROM t WHERE id = 1").rowcount == 1
        connection.commit()


def test_a_file_where_the_table_belongs(tmp_path: Path) -> None:
    place = on_sqlite(tmp_path)
    with lakedbapi.connect(place.url, data_inlining_row_limit=0) as connection:
        filled(connection)
        connection.execute("CREATE TABLE blocked (i INTEGER)")
        connection.commit()
        directory = Path(place.data_path) / "main" / "blocked"
        directory.write_text("")
        with pytest.raises(lakedbapi.OperationalError, match="blocked"):
            change_and_commit(connection, "INSERT INTO blocked VALUES (1)")
        directory.unlink()
        assert connection.execute("INSERT INTO blocked VALUES (1)").rowcount == 1
        connection.commit()
        assert not orphans(place)


def change_and_commit(connection: lakedbapi.Connection, change: str) -> None:
    connection.execute(change)
    connection.commit()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_files_that_cannot_be_removed_do_not_hide_how_a_transaction_ended(
    connect_sqlite: Connect, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    def refused(storage: Storage, paths: Iterable[str]) -> None:
        for path in paths:
            raise lakedbapi.OperationalError(f"{path}: removing it failed: Permission denied")

    connection = connect_sqlite(data_inlining_row_limit=0)
    filled(connection)
    monkeypatch.setattr(new_rows, "MEMORY_LIMIT", 0)  # So that rows go to a file at once.
    connection.execute(TOO_MUCH)
    connection.execute("DELETE FROM t WHERE NOT starts_with(s, 'x')")
    connection.execute("INSERT INTO t VALUES (-1, 'kept')")
    monkeypatch.setattr(Storage, "delete", refused)
    getattr(connection, end)()
    monkeypatch.undo()
    expected = 40_001 if end == "commit" else 40_000
    assert connect_sqlite().execute("SELECT count(*) FROM t").fetchone() == (expected,)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (expected,)
