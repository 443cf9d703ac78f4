"""Cleanup at its edges: the very moment of a cutoff, ages that nobody knows, and notes of files of any kind."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog
from lakedbapi.storage.filesystem import Storage
from tests.dml.conftest import Lake
from tests.maintenance.test_expiry import CLEANUP, ORPHANS, Kept, due, kept, sqlite

__all__ = ["due", "kept", "sqlite"]

MOMENT = datetime(2026, 1, 1, 0, 0, 0, 1, timezone.utc)
MICROSECOND = timedelta(microseconds=1)


def before(moment: datetime) -> str:
    return f"older_than => TIMESTAMPTZ '{moment.isoformat(' ')}'"


def catalog(kept: Kept) -> DuckLakeCatalog:
    found = kept.lake.connection.session.catalogs["lake"]
    assert isinstance(found, DuckLakeCatalog)
    return found


# The moment of a cutoff


def test_what_is_as_old_as_the_cutoff_stays(due: Kept) -> None:
    due.catalog(f"UPDATE ducklake_files_scheduled_for_deletion SET schedule_start = '{MOMENT}'")
    assert due(f"CALL ducklake_cleanup_old_files('lake', {before(MOMENT)})") == []
    assert len(due(f"CALL ducklake_cleanup_old_files('lake', {before(MOMENT + MICROSECOND)})")) == 6


def test_a_snapshot_as_old_as_the_cutoff_stays(kept: Kept) -> None:
    kept("CREATE TABLE t (k INTEGER)")
    kept("INSERT INTO t VALUES (1)")
    kept.catalog(f"UPDATE ducklake_snapshot SET snapshot_time = '{MOMENT}' WHERE snapshot_id < 2")
    call = "CALL ducklake_expire_snapshots('lake', {})"
    assert kept(call.format(before(MOMENT))) == []
    assert [row[0] for row in kept(call.format(before(MOMENT + MICROSECOND)))] == [0, 1]


def test_vacuum_keeps_what_was_current_at_the_very_cutoff(sqlite: Kept) -> None:
    """A snapshot is current until the moment of the next one."""
    for table in "tu":
        sqlite(f"CREATE TABLE {table} (k INTEGER)")
    for id in range(3):
        sqlite.catalog(
            f"UPDATE ducklake_snapshot SET snapshot_time = '{MOMENT + id * MICROSECOND}' WHERE snapshot_id = {id}"
        )
    maintenance = catalog(sqlite).maintenance
    maintenance.vacuum(None, MOMENT + MICROSECOND, MOMENT)
    assert sqlite("SELECT snapshot_id FROM snapshots()") == [(0,), (1,), (2,)]
    maintenance.vacuum(None, MOMENT + 2 * MICROSECOND, MOMENT)
    assert sqlite("SELECT snapshot_id FROM snapshots()") == [(1,), (2,)]


def test_an_orphan_as_old_as_the_cutoff_stays(due: Kept) -> None:
    path = due.data / "main" / "t" / "ducklake-orphan.parquet"
    path.write_bytes(b"")
    changed = MOMENT.replace(microsecond=500_000)
    os.utime(path, (changed.timestamp(),) * 2)
    assert due(f"CALL ducklake_delete_orphaned_files('lake', {before(changed)})") == []
    assert due(f"CALL ducklake_delete_orphaned_files('lake', {before(changed + MICROSECOND)})") == [(str(path),)]


def test_an_orphan_of_unknown_age_goes_only_with_all(due: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    path = due.data / "main" / "t" / "ducklake-orphan.parquet"
    path.write_bytes(b"")
    original = Storage.list

    def ageless(self: Storage, prefix: str | None = None) -> pa.Table:
        found = original(self, prefix)
        return found.set_column(2, found.schema.field(2), pa.nulls(found.num_rows, found.schema.field(2).type))

    monkeypatch.setattr(Storage, "list", ageless)
    assert due("CALL ducklake_delete_orphaned_files('lake', older_than => now() + INTERVAL 1 DAY)") == []
    assert due(ORPHANS) == [(str(path),)]


# Notes of files


def schedule(kept: Kept, path: Path | str, time: datetime | None = MOMENT, *, relative: bool = False) -> None:
    start = "NULL" if time is None else f"'{time}'"
    kept.catalog(
        "INSERT INTO ducklake_files_scheduled_for_deletion (data_file_id, path, path_is_relative, schedule_start) "
        f"VALUES (99, '{path}', {int(relative)}, {start})"
    )


def test_a_scheduled_file_elsewhere_goes(due: Kept, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.parquet"
    path.write_bytes(b"x")
    schedule(due, path)
    assert due(f"CALL ducklake_cleanup_old_files('lake', {before(MOMENT + MICROSECOND)})") == [(str(path),)]
    assert not path.exists()
    assert len(due.files()) == 7


def test_a_file_that_waits_since_an_unknown_time_goes_only_with_all(due: Kept, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.parquet"
    path.write_bytes(b"x")
    schedule(due, path, None)
    assert (str(path),) not in due("CALL ducklake_cleanup_old_files('lake', older_than => now() + INTERVAL 1 DAY)")
    assert due(CLEANUP) == [(str(path),)]


@pytest.mark.parametrize("path", ["", "main/t/"])
def test_a_folder_is_never_removed(due: Kept, path: str) -> None:
    """Nor is it in the way of what is to be removed."""
    schedule(due, path, relative=True)
    assert len(due(CLEANUP)) == 6
    assert due("SELECT count(*) FROM t") == [(120,)]


# One table's files


@pytest.fixture
def two(sqlite: Kept) -> Kept:
    """Tables t and u, of both of which a file waits for a cleanup, and an orphan lies in each folder."""
    sqlite("CALL lake.set_option('data_inlining_row_limit', 0)")
    for table in "tu":
        sqlite(f"CREATE TABLE {table} (k INTEGER)")
        for start in range(2):
            sqlite(f"INSERT INTO {table} SELECT {start} FROM range(20) r(i)")
        sqlite(f"CALL ducklake_merge_adjacent_files('lake', '{table}')")
        orphan = sqlite.data / "main" / table / "ducklake-orphan.parquet"
        orphan.write_bytes(b"")
        os.utime(orphan, (MOMENT.timestamp(),) * 2)
    return sqlite


def of(table: str, found: list[tuple[Any, ...]]) -> bool:
    return all(f"/main/{table}/" in path for (path,) in found)


def test_vacuum_of_one_table_removes_nothing_of_others(two: Kept) -> None:
    would_go = two("VACUUM t RETAIN 0 HOURS DRY RUN")
    assert of("t", would_go)
    assert sorted(two("VACUUM t RETAIN 0 HOURS")) == sorted(would_go)
    assert len(would_go) == 3
    assert len([path for path in two.files() if path.startswith("main/u/")]) == 4


@pytest.mark.parametrize("call", ["delete_orphaned_files(table => 't', {})", "remove_orphan_files(table => 't', {})"])
def test_orphans_of_one_table(two: Kept, call: str) -> None:
    found = two(f"CALL lake.{call.format(before(MOMENT + MICROSECOND))}")
    assert of("t", found)
    assert len(found) == 1


def test_a_dry_vacuum_of_one_table_tells_what_goes_though_it_has_files_elsewhere(tmp_path: Path) -> None:
    added = tmp_path / "added.parquet"
    pq.write_table(pa.table({"k": pa.array([1, 2], pa.int32())}), added)
    with lakedbapi.connect(tmp_path / "lake", autocommit=True, allow_external=True) as connection:
        lake = Lake(connection)
        lake("CREATE TABLE t (k INTEGER)")
        lake("INSERT INTO t SELECT i FROM range(20) r(i)")
        lake(f"CALL add_data_files('lake', 't', '{added}')")
        lake("TRUNCATE t")
        lake("INSERT INTO t VALUES (1)")
        would_go = lake("VACUUM t RETAIN 0 HOURS DRY RUN")
        assert lake("VACUUM t RETAIN 0 HOURS") == would_go
        assert added.exists()
        assert lake("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)") == [(str(added),)]


# A table whose folder lies outside of the data path


@pytest.fixture
def elsewhere(sqlite: Kept, tmp_path: Path) -> Path:
    """The folder of a table t with rows in a file, and an old orphan and a foreign file beside it."""
    sqlite("CALL lake.set_option('data_inlining_row_limit', 0)")
    sqlite("CREATE TABLE t (k INTEGER)")
    folder = tmp_path / "elsewhere" / "t"
    sqlite.catalog(f"UPDATE ducklake_table SET path = '{folder}/', path_is_relative = 0")
    catalog(sqlite).forget()
    sqlite("INSERT INTO t SELECT i FROM range(20) r(i)")
    assert len(list(folder.glob("*.parquet"))) == 1
    for name in ("ducklake-orphan.parquet", "export.parquet"):
        pq.write_table(pa.table({"k": [3]}), folder / name)
        os.utime(folder / name, (MOMENT.timestamp(),) * 2)
    return folder


@pytest.mark.parametrize(
    "call",
    [
        "CALL ducklake_delete_orphaned_files('lake')",
        "CALL lake.delete_orphaned_files(table => 't')",
        "VACUUM",
        "VACUUM t",
    ],
)
def test_orphans_outside_of_the_data_path(sqlite: Kept, elsewhere: Path, call: str) -> None:
    fresh = elsewhere / "ducklake-fresh.parquet"
    fresh.write_bytes(b"")
    assert sqlite(call) == [(f"{elsewhere}/ducklake-orphan.parquet",)]
    assert len(list(elsewhere.glob("*.parquet"))) == 3
    assert sqlite("SELECT count(*) FROM t") == [(20,)]


def test_a_purge_finds_orphans_outside_of_the_data_path(sqlite: Kept, elsewhere: Path) -> None:
    (elsewhere / "export.parquet").unlink()
    young = elsewhere / "ducklake-young.parquet"
    pq.write_table(pa.table({"k": [3]}), young)
    os.utime(young, ((datetime.now() - timedelta(hours=1)).timestamp(),) * 2)
    with pytest.raises(
        lakedbapi.OperationalError, match=r"ducklake-young.parquet \(orphan file, 1 rows\).*cleanup_all"
    ):
        sqlite("PURGE FROM t WHERE k = 3")
    assert not (elsewhere / "ducklake-orphan.parquet").exists()
    assert sqlite("SELECT count(*) FROM t") == [(19,)]
    assert sqlite(ORPHANS) == [(str(young),)]
    sqlite("PURGE FROM t WHERE k = 3")
    assert not young.exists()
