"""PURGE: no file, no row of the catalog and no byte of either has the erased rows then, and all else is as before."""

from __future__ import annotations

import importlib
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi import NotSupportedError, OperationalError, ProgrammingError
from lakedbapi.formats.ducklake.catalog import CAPABILITIES, DuckLakeCatalog
from lakedbapi.storage.filesystem import Storage
from tests.dml.conftest import Lake
from tests.maintenance.histories import newest, rows
from tests.maintenance.test_nothing_changes import grow

SECRET = "joe@example.org"
DAYS = 24 * 60 * 60


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of Joe in a file, inlined, updated and deleted; other rows beside each of them."""
    folder = tmp_path_factory.mktemp("filled") / "lake"
    with lakedbapi.connect(folder, autocommit=True) as connection:
        lake = Lake(connection)
        lake("CALL set_option('lake', 'parquet_compression', 'uncompressed')")
        lake("CREATE TABLE other (i INTEGER)")
        lake("CREATE TABLE t (id INTEGER, mail VARCHAR)")
        lake("INSERT INTO t SELECT i, 'mail' || i FROM range(100, 130) r(i)")
        lake(f"INSERT INTO t SELECT i, if(i = 3, '{SECRET}', 'mail' || i) FROM range(30) r(i)")
        lake(f"INSERT INTO t VALUES (31, '{SECRET}'), (32, 'mail32')")
        lake("UPDATE t SET mail = 'changed' WHERE id = 31")
        lake(f"UPDATE t SET mail = '{SECRET}' WHERE id = 4")
        lake("DELETE FROM t WHERE id = 3")
    return folder


@pytest.fixture
def people(filled: Path, tmp_path: Path, connect: Callable[[], Lake]) -> Lake:
    """A copy of `filled`."""
    shutil.copytree(filled, tmp_path / "lake")
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog, catalog:
        place = f"{tmp_path}/lake/data/"
        catalog.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", (place,))
    return connect()


@pytest.fixture
def small(lake: Lake) -> Lake:
    lake("CREATE TABLE other (i INTEGER)")
    lake("CREATE TABLE t (id INTEGER, mail VARCHAR)")
    lake("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return lake


def remains(folder: Path, text: str = SECRET) -> list[str]:
    """Files and folders that have `text` in their bytes or names."""
    found = []
    for path in folder.rglob("*"):
        if text in path.name or (path.is_file() and text.encode() in path.read_bytes()):
            found.append(str(path.relative_to(folder)))
    return found


def kinds(report: list[tuple[Any, ...]]) -> dict[str, set[str]]:
    """The results by kind of object."""
    found: dict[str, set[str]] = {}
    for _, kind, _, result in report:
        found.setdefault(kind, set()).add(result)
    return found


def test_no_byte_of_the_rows_is_left(people: Lake, tmp_path: Path) -> None:
    assert remains(tmp_path)
    report = people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path) == []
    assert {n for _, kind, n, result in report if result == "clean"} == {0}
    assert people("SELECT count(*), count(DISTINCT id) FROM t") == [(30 + 28 + 2, 60)]
    assert sum(n for _, kind, n, _ in report if kind == "inlined table") == 2
    assert sum(n for _, kind, n, _ in report if kind == "data file") == 1
    removed = {object for object, kind, _, result in report if kind == "data file" and result.startswith("removed")}
    assert removed
    assert not any(os.path.exists(path) for path in removed)
    assert kinds(report)["catalog database"] == {"rewritten without free pages (VACUUM)"}


def test_snapshots_that_never_saw_the_rows_stay(people: Lake) -> None:
    before = {id: people(f"SELECT rowid, * FROM t AT (VERSION => {id}) ORDER BY 1") for id in (2, 3)}
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    kept = [id for (id,) in people("SELECT snapshot_id FROM snapshots()")]
    assert kept[:4] == [0, 1, 2, 3]
    assert len(kept) == 5
    assert len(before[3]) == 30
    assert {id: people(f"SELECT rowid, * FROM t AT (VERSION => {id}) ORDER BY 1") for id in (2, 3)} == before


@pytest.mark.parametrize(("limit", "delete"), [(100, "DELETE FROM t WHERE id < 20"), (0, "TRUNCATE t")])
def test_a_snapshot_that_deleted_the_rows_stays(lake: Lake, limit: int, delete: str) -> None:
    """It does not see them any more, where they lie in the catalog or in a file that it ended."""
    lake(f"CALL set_option('lake', 'data_inlining_row_limit', {limit})")
    lake("CREATE TABLE t (id INTEGER, mail VARCHAR)")
    lake(f"INSERT INTO t SELECT i, '{SECRET}' FROM range(20) r(i)")
    lake(delete)
    lake("INSERT INTO t VALUES (30, 'other')")
    lake(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert lake("SELECT snapshot_id FROM snapshots()") == [(0,), (1,), (3,), (4,)]


def test_other_rows_keep_their_ids(people: Lake) -> None:
    before = set(people(f"SELECT rowid, * FROM t WHERE mail <> '{SECRET}'"))
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert set(people("SELECT rowid, * FROM t")) == before


def test_an_expired_snapshot_is_told_from_one_that_never_was(people: Lake) -> None:
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    with pytest.raises(ProgrammingError, match=r"No snapshot found at version 6: it has expired; the catalog keeps"):
        people("SELECT * FROM t AT (VERSION => 6)")
    with pytest.raises(ProgrammingError, match=r"version 99: the catalog keeps"):
        people("SELECT * FROM t AT (VERSION => 99)")


def test_the_next_purge_finds_nothing(people: Lake) -> None:
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    before = people("SELECT snapshot_id FROM snapshots()")
    report = people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert {n for _, _, n, _ in report} == {0, None}
    assert people("SELECT snapshot_id FROM snapshots()") == before


def test_parameters_and_an_alias(people: Lake, tmp_path: Path) -> None:
    people("PURGE FROM t AS p WHERE p.mail = ? OR list_contains(?, p.id)", SECRET, [7, 8])
    assert remains(tmp_path) == []
    assert people("SELECT count(*) FROM t WHERE id IN (7, 8)") == [(0,)]


@pytest.mark.parametrize(
    "call",
    [
        "CALL purge('t', where => 'mail = ''joe@example.org''')",
        "CALL lake.purge('t', where => 'mail = ''joe@example.org''')",
        "CALL purge('lake.main.t', 'mail = ''joe@example.org''')",
        "CALL purge('t', schema => 'main', where => 't.mail = ''joe@example.org''')",
        "PURGE FROM lake.main.t WHERE lake.main.t.mail = 'joe@example.org'",
    ],
)
def test_spellings(people: Lake, tmp_path: Path, call: str) -> None:
    people(call)
    assert remains(tmp_path) == []


@pytest.mark.parametrize(
    "statement",
    [
        f"PURGE FROM t WHERE mail = '{SECRET}' DRY RUN",
        f"CALL purge('t', where => 'mail = ''{SECRET}''', dry_run => true)",
        f"CALL purge('t', where => 'mail = ''{SECRET}'' DRY RUN')",
    ],
)
def test_a_dry_run_tells_where_rows_are_and_leaves_them(people: Lake, tmp_path: Path, statement: str) -> None:
    def state() -> list[Any]:
        return [remains(tmp_path), people("SELECT * FROM snapshots()"), people("SELECT * FROM files('t')")]

    before = state()
    report = people(statement)
    found = [(kind, count) for _, kind, count, result in report if result == "rows match"]
    assert sorted(found) == [("data file", 1), ("inlined table", 2)]
    assert [count > 0 for _, _, count, _ in report] == [True] * len(found) + [False] * (len(report) - len(found))
    assert state() == before
    assert before[0] != []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("PURGE FROM t", "needs a condition"),
        ("PURGE FROM t WHERE DRY RUN", "expected"),
        ("PURGE FROM t WHERE id = 1 DRY RUN now", "should end here"),
        ("CALL purge('t', where => 'id = 1', dry_run => 'yes')", "dry_run => true"),
        ("PURGE FROM t WHERE id IN (SELECT i FROM other)", "without subqueries"),
        ("PURGE FROM t WHERE id < random()", "whose value changes"),
        ("PURGE FROM t WHERE now() > TIMESTAMP '2020-01-01'", "whose value changes"),
        ("PURGE FROM t WHERE nothing = 1", "nothing"),
        ("PURGE FROM nothing WHERE id = 1", "nothing"),
        ("PURGE FROM t AT (VERSION => 2) WHERE id = 1", "only a table as it is now"),
        ("CALL purge('t')", "needs a table and a condition"),
        ("CALL purge('t', where => 'id = ?')", "cannot have parameters"),
        ("CALL purge('t', where => 'id = 1; DROP TABLE t')", "more than one statement"),
        ("CALL purge('t', where => 'mail = getenv(''HOME'')')", "not allowed"),
        ("CALL purge('t', what => 'id = 1')", "takes a table's name"),
    ],
)
def test_refusals(small: Lake, statement: str, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        small(statement)
    assert small("SELECT count(*) FROM t") == [(2,)]


def test_inside_a_transaction_with_changes(small: Lake) -> None:
    small("BEGIN")
    small("INSERT INTO other VALUES (1)")
    with pytest.raises(ProgrammingError, match="commit or roll back first"):
        small("PURGE FROM t WHERE id = 1")


@pytest.mark.parametrize("option", [{"read_only": True}, {"as_of": 3}])
def test_connections_that_only_read(small: Lake, tmp_path: Path, option: dict[str, Any]) -> None:
    with (
        lakedbapi.connect(tmp_path / "lake", **option) as connection,
        pytest.raises(ProgrammingError, match="only reads"),
    ):
        connection.execute("PURGE FROM t WHERE id = 1")


# What the columns were called


def test_rows_of_the_catalog_from_before_and_after_a_change_of_columns(lake: Lake) -> None:
    lake("CREATE TABLE rows (k INTEGER, v VARCHAR)")
    lake("INSERT INTO rows VALUES (1, 'secret'), (2, 'other')")
    lake("ALTER TABLE rows ADD COLUMN n INTEGER")
    lake("INSERT INTO rows VALUES (3, 'secret', 3)")
    lake("DELETE FROM rows WHERE k = 1")
    lake("PURGE FROM rows WHERE v = 'secret'")
    assert lake("SELECT k FROM rows") == [(2,)]
    found = lake("PURGE FROM rows WHERE v = 'secret' DRY RUN")
    assert [row[2] for row in found if row[1] == "inlined table"] == [0]


def test_a_renamed_column_means_the_same_values(people: Lake, tmp_path: Path) -> None:
    people("ALTER TABLE t RENAME COLUMN mail TO address")
    people("ALTER TABLE t RENAME TO u")
    people("ALTER TABLE u ADD COLUMN mail VARCHAR DEFAULT 'none'")
    people(f"PURGE FROM u WHERE address = '{SECRET}'")
    assert remains(tmp_path) == []
    assert people("SELECT count(*) FROM u WHERE mail = 'none'") == [(60,)]


def test_a_dropped_column_still_tells(people: Lake, tmp_path: Path) -> None:
    people("ALTER TABLE t DROP COLUMN mail")
    people("INSERT INTO t VALUES (500)")
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path) == []
    assert sorted(people("SELECT id FROM t WHERE id < 6 OR id > 400")) == [(0,), (1,), (2,), (5,), (500,)]


def test_rows_older_than_a_column_have_its_default(people: Lake) -> None:
    people("ALTER TABLE t ADD COLUMN level INTEGER DEFAULT 7")
    people("INSERT INTO t SELECT i, 'm', 8 FROM range(300, 330) r(i)")
    people("PURGE FROM t WHERE level = 7")
    assert people("SELECT min(id), count(*) FROM t") == [(300, 30)]


def test_rows_older_than_a_column_are_nothing_else(people: Lake) -> None:
    people("ALTER TABLE t ADD COLUMN level INTEGER")
    people("PURGE FROM t WHERE level = 7")
    assert people("SELECT count(*) FROM t") == [(61,)]


def test_a_widened_column(lake: Lake) -> None:
    lake("CREATE TABLE t (id TINYINT, mail VARCHAR)")
    lake("INSERT INTO t SELECT i, 'x' FROM range(40) r(i)")
    lake("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    lake("INSERT INTO t SELECT 5000000000 + i, 'x' FROM range(40) r(i)")
    lake("PURGE FROM t WHERE id % 10 = 7")
    assert lake("SELECT count(*) FROM t") == [(72,)]


@pytest.mark.parametrize("name", ["t", "T"])
def test_a_dropped_table_of_the_same_name(people: Lake, tmp_path: Path, name: str) -> None:
    people("DROP TABLE t")
    people(f"CREATE TABLE {name} (mail VARCHAR, id INTEGER)")
    people("INSERT INTO t SELECT 'new' || i, i FROM range(30) r(i)")
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path) == []
    assert people("SELECT count(*) FROM t") == [(30,)]


def test_bounds_of_a_dropped_table_that_some_snapshot_still_has(small: Lake, tmp_path: Path) -> None:
    small(f"INSERT INTO t VALUES (3, '{SECRET}')")
    small("DROP TABLE t")
    small("CREATE TABLE t (id INTEGER, mail VARCHAR)")
    small(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert small("SELECT count(*) FROM t AT (VERSION => 3)") == [(2,)]
    assert remains(tmp_path) == []


def test_a_dropped_table_without_the_columns(people: Lake) -> None:
    people("DROP TABLE t")
    people("CREATE TABLE t (key INTEGER)")
    people("INSERT INTO t SELECT i FROM range(30) r(i)")
    people("PURGE FROM t WHERE key = 3")
    assert people("SELECT count(*) FROM t") == [(29,)]
    assert people("SELECT count(*) FROM t AT (VERSION => 5)") == [(62,)]


def test_partition_values_in_folders(lake: Lake, tmp_path: Path) -> None:
    lake("CREATE TABLE t (id INTEGER, mail VARCHAR) PARTITIONED BY (mail)")
    lake(f"INSERT INTO t SELECT i, if(i % 2 = 0, '{SECRET}', 'other') FROM range(40) r(i)")
    assert any(SECRET in path for path in remains(tmp_path, SECRET) or [""]) or remains(tmp_path, "joe")
    lake(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path, "joe") == []
    assert lake("SELECT count(*) FROM t") == [(20,)]


# Files that no snapshot reads


def test_a_scheduled_file_elsewhere(tmp_path: Path) -> None:
    """It lies in no folder that is listed."""
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "mail": [SECRET, "b"]}), tmp_path / "in" / "a.parquet")
    with lakedbapi.connect(tmp_path / "lake", autocommit=True, allow_external=True) as connection:
        lake = Lake(connection)
        lake("CREATE TABLE t (id BIGINT, mail VARCHAR)")
        lake(f"CALL add_data_files('lake', 't', '{tmp_path}/in/a.parquet')")
        lake("DROP TABLE t")
        lake("CREATE TABLE t (id BIGINT, mail VARCHAR)")
        lake("CALL ducklake_expire_snapshots('lake', older_than => now())")
        report = lake(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert ("scheduled file", 1) in {(kind, n) for _, kind, n, _ in report}
    assert remains(tmp_path) == []


def test_files_that_were_merged_or_flushed(people: Lake, tmp_path: Path) -> None:
    people("CALL ducklake_flush_inlined_data('lake')")
    people("INSERT INTO t SELECT i, 'x' FROM range(400, 430) r(i)")
    people("INSERT INTO t SELECT i, 'joe@example.org' FROM range(500, 530) r(i)")
    people("CALL ducklake_merge_adjacent_files('lake')")
    report = people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path) == []
    assert "scheduled file" in kinds(report)
    assert people("SELECT count(*) FROM t") == [(30 + 28 + 2 + 30,)]


def orphan(data: Path, name: str, age: float) -> Path:
    """A copy of a file with rows of Joe that nobody knows."""
    source = next(path for path in data.rglob("*.parquet") if SECRET.encode() in path.read_bytes())
    path = data / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, path)
    os.utime(path, (time.time() - age,) * 2)
    return path


@pytest.mark.parametrize("folder", ["main/t", "main/never_committed"])
def test_an_old_orphan_goes(people: Lake, data: Path, tmp_path: Path, folder: str) -> None:
    path = orphan(data, f"{folder}/ducklake-1.parquet", 3 * DAYS)
    report = people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path) == []
    assert (str(path), "orphan file", 1, "removed") in report


@pytest.mark.parametrize("folder", ["main/t", "main/never_committed"])
def test_a_young_orphan_is_an_error_with_a_way_out(people: Lake, data: Path, tmp_path: Path, folder: str) -> None:
    path = orphan(data, f"{folder}/ducklake-1.parquet", 3600)
    with pytest.raises(OperationalError, match=r"ducklake-1.parquet \(orphan file, 1 rows\).*delete_orphaned_files"):
        people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path) == [str(path.relative_to(tmp_path))]
    people("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path) == []


def test_files_of_others_stay_and_are_named(people: Lake, data: Path) -> None:
    path = orphan(data, "main/t/export.parquet", 30 * DAYS)
    table = pa.table({"mail": [SECRET]})
    pq.write_table(table, data / "copy.parquet")
    with pytest.raises(OperationalError, match=r"copy.parquet \(orphan file, 1 rows\).*export.parquet"):
        people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert path.exists()


def test_files_of_others_without_such_rows_do_not_matter(people: Lake, data: Path) -> None:
    pq.write_table(pa.table({"mail": ["x"], "more": [1]}), data / "copy.parquet")
    pq.write_table(pa.table({"nothing": [SECRET]}), data / "different.parquet")
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")


def test_a_file_that_cannot_be_searched_is_an_error(people: Lake, data: Path) -> None:
    (data / "main" / "t" / "ducklake-half.parquet").write_bytes(b"PAR1 " + SECRET.encode())
    os.utime(data / "main" / "t" / "ducklake-half.parquet", (time.time() - 3600,) * 2)
    with pytest.raises(OperationalError, match=r"ducklake-half.parquet \(orphan file, not searched\)"):
        people(f"PURGE FROM t WHERE mail = '{SECRET}'")


def test_files_that_are_no_data_files_are_told_of_and_stay(people: Lake, data: Path) -> None:
    """In no table's folder nobody says what they are; a data file is one by its name even half written."""
    export = data / "exports" / "people.csv"
    export.parent.mkdir()
    export.write_text(SECRET)
    os.utime(export, (time.time() - 3 * DAYS,) * 2)
    report = people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    ((kind, matching, result),) = [line[1:] for line in report if line[0] == str(export)]
    assert (kind, matching, result[:12]) == ("other file", None, "not searched")
    assert export.read_text() == SECRET
    (data / "main" / "t" / "ducklake-1-delete.parquet.0f3a.tmp").write_text("positions alone")
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    (data / "main" / "gone").mkdir(parents=True)
    (data / "main" / "gone" / "ducklake-1.parquet.0f3a.tmp").write_text(SECRET)
    with pytest.raises(OperationalError, match=r"0f3a.tmp \(orphan file, not searched\)"):
        people(f"PURGE FROM t WHERE mail = '{SECRET}'")


def test_files_of_another_table_do_not_matter(people: Lake, data: Path) -> None:
    people("CREATE TABLE u (id INTEGER, mail VARCHAR)")
    path = orphan(data, "main/u/ducklake-1.parquet", 3600)
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert path.exists()


def test_a_file_of_two_tables(people: Lake, tmp_path: Path) -> None:
    """It goes when both were purged."""
    people("CREATE TABLE u (id INTEGER, mail VARCHAR)")
    people.connection.close()
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog, catalog:
        columns = [row[1] for row in catalog.execute("PRAGMA table_info(ducklake_data_file)")]
        (table_id, snapshot) = catalog.execute(
            "SELECT table_id, begin_snapshot FROM ducklake_table WHERE table_name = 'u'"
        ).fetchone()
        values = {
            "data_file_id": "data_file_id + 1000",
            "table_id": str(table_id),
            "begin_snapshot": str(snapshot),
            "path": f"'{tmp_path}/lake/data/main/t/' || path",
            "path_is_relative": "0",
        }
        selected = ", ".join(values.get(name, name) for name in columns)
        catalog.execute(f"INSERT INTO ducklake_data_file SELECT {selected} FROM ducklake_data_file WHERE table_id = 2")
        catalog.execute(f"INSERT INTO ducklake_table_stats VALUES ({table_id}, 100, 100, 1000)")
    with lakedbapi.connect(tmp_path / "lake", autocommit=True) as connection:
        reopened = Lake(connection)
        with pytest.raises(OperationalError, match="another table has this file, too; purge that table as well"):
            reopened(f"PURGE FROM t WHERE mail = '{SECRET}'")
        assert reopened(f"SELECT count(*) FROM u WHERE mail = '{SECRET}'") == [(1,)]
        reopened(f"PURGE FROM u WHERE mail = '{SECRET}'")
        reopened(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path) == []


# What the catalog remembers


def test_bounds_are_those_of_what_is_left(lake: Lake, tmp_path: Path) -> None:
    lake("CREATE TABLE t (id INTEGER, mail VARCHAR)")
    lake("INSERT INTO t SELECT i, 'm' || (10 + i) FROM range(30) r(i)")
    lake("INSERT INTO t SELECT 1000 + i, 'zz' FROM range(30) r(i)")
    lake("INSERT INTO t VALUES (5000, 'zzz')")
    lake("PURGE FROM t WHERE id >= 1000")
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog:
        bounds = "SELECT column_id, min_value, max_value FROM ducklake_table_column_stats ORDER BY 1"
        assert catalog.execute(bounds).fetchall() == [(1, "0", "29"), (2, "m10", "m39")]
        known = "SELECT data_file_id FROM ducklake_data_file"
        stats = f"SELECT count(*) FROM ducklake_file_column_stats WHERE data_file_id NOT IN ({known})"
        assert catalog.execute(stats).fetchall() == [(0,)]
    lake("INSERT INTO t VALUES (70, 'a')")
    assert lake("SELECT count(*) FROM t WHERE id > 29") == [(1,)]


def test_a_catalog_in_write_ahead_mode(people: Lake, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog:
        catalog.execute("PRAGMA journal_mode = wal")
    people(f"INSERT INTO t VALUES (60, '{SECRET}')")
    assert any("wal" in path for path in remains(tmp_path))
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path) == []


def test_a_catalog_that_is_in_use_is_reported(people: Lake, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog:
        catalog.execute("PRAGMA journal_mode = wal")
    people.connection.close()
    with (
        closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite", isolation_level=None)) as reader,
        lakedbapi.connect(tmp_path / "lake", autocommit=True, busy_timeout=100) as connection,
    ):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM ducklake_snapshot").fetchall()
        report = Lake(connection)(f"PURGE FROM t WHERE mail = '{SECRET}'")
        (result,) = kinds(report)["catalog database"]
        assert "wal_checkpoint" in result or "purge again" in result


# Interruptions and others at work


@pytest.mark.parametrize("fails_at", ["delete", "expire", "remove", "wipe"])
def test_an_interrupted_purge_is_repeated(
    people: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    step = {
        "delete": "lakedbapi.maintenance.purge.rewrite",
        "expire": "lakedbapi.formats.ducklake.maintenance.expire",
        "remove": "lakedbapi.formats.ducklake.erasure.remove",
        "wipe": "lakedbapi.formats.ducklake.erasure.wipe",
    }[fails_at]

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    module, _, name = step.rpartition(".")
    with monkeypatch.context() as patch:
        patch.setattr(importlib.import_module(module), name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert remains(tmp_path) == []
    assert people("SELECT count(*) FROM t") == [(60,)]


def test_rows_that_come_meanwhile_go_too(
    people: Lake, connect: Callable[[], Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = connect()
    inserts = [
        f"INSERT INTO t VALUES (70, '{SECRET}')",
        f"INSERT INTO t SELECT 80 + i, '{SECRET}' FROM range(30) r(i)",
        "INSERT INTO t VALUES (71, 'fine')",
    ]
    original = Storage.delete

    def delete(self: Storage, paths: Any) -> None:
        if inserts:
            other(inserts.pop())
        original(self, paths)

    monkeypatch.setattr(Storage, "delete", delete)
    people(f"PURGE FROM t WHERE mail = '{SECRET}'")
    assert not inserts
    assert remains(tmp_path) == []
    assert people("SELECT count(*) FROM t") == [(61,)]


def test_a_format_without_maintenance(small: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckLakeCatalog, "capabilities", replace(CAPABILITIES, maintenance=False))
    with pytest.raises(NotSupportedError, match="no maintenance here"):
        small("PURGE FROM t WHERE id = 1")


@pytest.mark.parametrize("seed", range(4))
def test_after_any_history(lake: Lake, data: Path, seed: int) -> None:
    """Told by a second way: the values of `k` in all Parquet files, read without any catalog."""
    grow(lake, seed)
    last = newest(lake)
    before = rows(lake, last)
    assert any(30 <= k <= 34 for found in before.values() for _, k, *_ in found)
    expected = sorted(lake("SELECT rowid, * FROM t WHERE (k BETWEEN 30 AND 34) IS NOT TRUE"), key=repr)
    lake("PURGE FROM t WHERE k BETWEEN 30 AND 34")
    assert sorted(lake("SELECT rowid, * FROM t"), key=repr) == expected
    after = rows(lake, last)
    assert after == {id: before[id] for id in after}
    assert not any(30 <= k <= 34 for found in after.values() for _, k, *_ in found)
    seen = {id for id, found in before.items() if any(30 <= k <= 34 for _, k, *_ in found)}
    assert after.keys().isdisjoint(seen)
    for path in data.rglob("*.parquet"):
        if not path.name.endswith("-delete.parquet"):
            values = pq.read_table(path, columns=["k"]).column("k").to_pylist()
            assert not any(30 <= k <= 34 for k in values), path
