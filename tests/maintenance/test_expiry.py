"""Expiry and cleanup: what a kept snapshot needs stays, the rest goes, and a dry run touches nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

import lakedbapi
from compliance.peers.lakes import on_postgresql, on_sqlite
from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog
from tests.dml.conftest import Lake
from tests.maintenance.histories import statements

EXPIRE_ALL = "CALL ducklake_expire_snapshots('lake', older_than => now())"
CLEANUP = "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)"
ORPHANS = "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)"
DAYS = 24 * 60 * 60


@dataclass(frozen=True)
class Kept:
    """A lake, the database of its catalog, and the folder of its data."""

    lake: Lake
    url: str
    data: Path

    def __call__(self, sql: str) -> Any:
        return self.lake(sql)

    def catalog(self, sql: str) -> list[tuple[Any, ...]]:
        catalog = self.lake.connection.session.catalogs["lake"]
        assert isinstance(catalog, DuckLakeCatalog)
        with catalog.backend.write() as connection:
            result = connection.execute(text(sql))
            return [tuple(row) for row in result] if result.returns_rows else []

    def files(self) -> set[str]:
        return {str(path.relative_to(self.data)) for path in self.data.rglob("*") if path.is_file()}

    def everything(self) -> tuple[set[str], dict[str, list[tuple[Any, ...]]]]:
        """All files, and all rows of the catalog."""
        return self.files(), {table: sorted(self.catalog(f"SELECT * FROM {table}"), key=repr) for table in TABLES}


TABLES = (
    *("ducklake_snapshot", "ducklake_snapshot_changes", "ducklake_table", "ducklake_column", "ducklake_schema"),
    *("ducklake_data_file", "ducklake_delete_file", "ducklake_file_column_stats", "ducklake_table_stats"),
    *("ducklake_table_column_stats", "ducklake_files_scheduled_for_deletion", "ducklake_inlined_data_tables"),
)


@pytest.fixture(params=["sqlite", "postgresql", "duckdb"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    if request.param == "postgresql":
        with on_postgresql(tmp_path) as place:
            yield from _connected(place.url, tmp_path / "data")
    elif request.param == "duckdb":
        yield from _connected(f"ducklake+duckdb:///{tmp_path}/l.ducklake?data_path={tmp_path}/data/", tmp_path / "data")
    else:
        yield from _connected(on_sqlite(tmp_path).url, tmp_path / "data")


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Kept]:
    yield from _connected(on_sqlite(tmp_path).url, tmp_path / "data")


def _connected(url: str, data: Path) -> Iterator[Kept]:
    with lakedbapi.connect(url, autocommit=True) as connection:
        yield Kept(Lake(connection), url, data)


@pytest.mark.parametrize("seed", range(3))
def test_just_what_a_kept_snapshot_sees_stays(kept: Kept, seed: int) -> None:
    """Told by a second way: for each row of the catalog, whether one of the kept snapshots lies in its range."""
    choice = random.Random(seed)
    kept("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '2')")
    for statement in statements(seed, 10):
        kept(statement)
    kept("CREATE TABLE gone AS SELECT 1 AS i FROM range(20)")
    kept("DROP TABLE gone")
    ids = [id for (id,) in kept("SELECT snapshot_id FROM snapshots()")]
    going = choice.sample(ids[:-1], len(ids) // 2)
    staying = set(ids) - set(going)
    versioned = ("data_file", "table", "column", "schema")
    spans = {name: kept.catalog(f"SELECT * FROM ducklake_{name}") for name in versioned}
    deletes = kept.catalog("SELECT data_file_id, path FROM ducklake_delete_file")
    kept(f"CALL ducklake_expire_snapshots('lake', versions => {going})")
    for name in ("data_file", "table", "schema"):
        columns = _columns(kept, f"ducklake_{name}")
        begin, end = columns.index("begin_snapshot"), columns.index("end_snapshot")
        expected = [row for row in spans[name] if any(_sees(id, row[begin], row[end]) for id in staying)]
        assert sorted(kept.catalog(f"SELECT * FROM ducklake_{name}"), key=repr) == sorted(expected, key=repr)
    files = {id for (id,) in kept.catalog("SELECT data_file_id FROM ducklake_data_file")}
    assert set(kept.catalog("SELECT data_file_id, path FROM ducklake_delete_file")) == {
        (id, path) for id, path in deletes if id in files
    }
    stats = {id for (id,) in kept.catalog("SELECT data_file_id FROM ducklake_file_column_stats")}
    assert stats <= files
    kept(CLEANUP)
    named = [
        path for table in ("data_file", "delete_file") for (path,) in kept.catalog(f"SELECT path FROM ducklake_{table}")
    ]
    assert sorted(os.path.basename(path) for path in kept.files()) == sorted(map(os.path.basename, named))


def _columns(kept: Kept, table: str) -> list[str]:
    catalog = kept.lake.connection.session.catalogs["lake"]
    assert isinstance(catalog, DuckLakeCatalog)
    with catalog.backend.read() as connection:
        return list(catalog.backend.column_names(connection, table))


def _sees(snapshot: int, begin: int, end: int | None) -> bool:
    return begin <= snapshot and (end is None or snapshot < end)


def test_a_delete_file_stays_as_long_as_its_data_file(kept: Kept) -> None:
    kept("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
    kept("CREATE TABLE t (k INTEGER)")
    kept("INSERT INTO t SELECT i FROM range(20) r(i)")
    kept("DELETE FROM t WHERE k = 1")
    kept("DELETE FROM t WHERE k = 2")
    kept("TRUNCATE t")
    kept("CALL ducklake_expire_snapshots('lake', versions => [0, 1, 2, 3])")
    kept(CLEANUP)
    kept(ORPHANS)
    assert kept("SELECT count(*) FROM t AT (VERSION => 4)") == [(18,)]
    assert len(kept.files()) == 2
    kept(EXPIRE_ALL)
    kept(CLEANUP)
    assert kept.files() == set()


def test_a_delete_file_goes_with_its_data_file_whenever_it_ended_itself(sqlite: Kept) -> None:
    """Old lakes end one at the next delete, which the change feed needs it for; DuckDB ends none with its data file."""
    sqlite("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
    sqlite("CREATE TABLE t (k INTEGER)")
    sqlite("INSERT INTO t SELECT i FROM range(20) r(i)")
    sqlite("DELETE FROM t WHERE k = 1")
    columns = ", ".join(_columns(sqlite, "ducklake_delete_file"))
    sqlite.catalog(f"CREATE TABLE before AS SELECT {columns} FROM ducklake_delete_file")
    sqlite("DELETE FROM t WHERE k = 2")
    sqlite.catalog("UPDATE ducklake_delete_file SET begin_snapshot = 4")
    sqlite.catalog("UPDATE before SET end_snapshot = 4")
    sqlite.catalog(f"INSERT INTO ducklake_delete_file SELECT {columns} FROM before")
    sqlite.catalog("DELETE FROM ducklake_files_scheduled_for_deletion")
    sqlite("CALL ducklake_expire_snapshots('lake', versions => [3])")
    assert sqlite(CLEANUP) == []
    assert len(sqlite.files()) == 3
    sqlite("TRUNCATE t")
    sqlite.catalog("UPDATE ducklake_delete_file SET end_snapshot = NULL")
    sqlite(EXPIRE_ALL)
    assert len(sqlite(CLEANUP)) == 3
    assert sqlite.files() == set()


def test_renamed_dropped_and_recreated_tables(kept: Kept) -> None:
    kept("CREATE TABLE a (i INTEGER)")
    kept("INSERT INTO a SELECT * FROM range(20)")
    kept("ALTER TABLE a RENAME TO b")
    kept("INSERT INTO b VALUES (99)")
    kept("CREATE TABLE k AS SELECT 1 AS i FROM range(20)")
    kept("DROP TABLE k")
    kept("CREATE TABLE k AS SELECT 2 AS i FROM range(30)")
    kept(EXPIRE_ALL)
    assert len(kept.files()) == 3
    kept(CLEANUP)
    kept(ORPHANS)
    assert len(kept.files()) == 2
    assert kept("SELECT count(*) FROM b") == [(21,)]
    assert kept("SELECT DISTINCT i FROM k") == [(2,)]
    assert len(kept.catalog("SELECT * FROM ducklake_table")) == 2


def test_inlined_rows_of_a_dropped_table_go_with_the_snapshots_that_saw_them(kept: Kept) -> None:
    kept("CREATE TABLE t (k INTEGER)")
    kept("INSERT INTO t VALUES (1)")
    kept("INSERT INTO t VALUES (2)")
    kept("DROP TABLE t")
    kept("CALL ducklake_expire_snapshots('lake', versions => [3])")
    assert kept("SELECT * FROM t AT (VERSION => 2)") == [(1,)]
    assert kept.catalog("SELECT k FROM ducklake_inlined_data_1_1") == [(1,)]


def test_inlined_rows_of_a_renamed_table_stay_where_a_snapshot_has_its_old_name(sqlite: Kept) -> None:
    sqlite("CREATE TABLE t (k INTEGER)")
    sqlite("INSERT INTO t VALUES (1)")
    sqlite("ALTER TABLE t RENAME TO u")
    sqlite("INSERT INTO u VALUES (2)")
    sqlite("INSERT INTO u VALUES (3)")
    sqlite("CALL ducklake_expire_snapshots('lake', versions => [0, 1, 3, 4])")
    assert sqlite("SELECT k FROM u ORDER BY k") == [(1,), (2,), (3,)]
    assert sqlite("SELECT k FROM t AT (VERSION => 2)") == [(1,)]


def test_the_columns_that_inlined_rows_were_stored_with_stay(sqlite: Kept) -> None:
    sqlite("CREATE TABLE t (a INTEGER, b INTEGER)")
    sqlite("INSERT INTO t VALUES (1, 2)")
    sqlite("ALTER TABLE t RENAME a TO c")
    sqlite("ALTER TABLE t DROP COLUMN b")
    sqlite(EXPIRE_ALL)
    with lakedbapi.connect(sqlite.url) as connection:
        assert Lake(connection)("SELECT * FROM t") == [(1,)]


def test_what_is_gone_of_a_table_is_told_by_the_table(sqlite: Kept) -> None:
    """Other programs may end no files with it; deletes in the catalog end with their file."""
    sqlite("CREATE TABLE t (k INTEGER)")
    sqlite("INSERT INTO t SELECT i FROM range(20) r(i)")
    sqlite("CREATE TABLE u AS SELECT i FROM range(20) r(i)")
    sqlite("DELETE FROM u WHERE i = 1")
    sqlite("INSERT INTO u SELECT i FROM range(20) r(i)")
    sqlite("DELETE FROM u WHERE i = 2")
    sqlite("DROP TABLE t")
    sqlite.catalog("UPDATE ducklake_data_file SET end_snapshot = NULL WHERE table_id = 1")
    sqlite("CALL ducklake_rewrite_data_files('lake', 'u', delete_threshold => 0.1)")
    sqlite(EXPIRE_ALL)
    files = [id for (id,) in sqlite.catalog("SELECT data_file_id FROM ducklake_data_file WHERE table_id = 2")]
    assert sqlite.catalog("SELECT * FROM ducklake_data_file WHERE table_id = 1") == []
    assert {id for (id,) in sqlite.catalog("SELECT file_id FROM ducklake_inlined_delete_2")} <= set(files)
    assert len(sqlite(CLEANUP)) == 2
    assert sqlite("SELECT count(*) FROM u") == [(37,)]


def test_no_values_are_left_where_the_inlined_tables_could_not_be_dropped(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept("CREATE TABLE t (k INTEGER)")
    kept("INSERT INTO t VALUES (1), (2)")
    kept("DELETE FROM t WHERE k = 1")
    kept("DROP TABLE t")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lakedbapi.formats.ducklake.expiry.DropTable", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kept(EXPIRE_ALL)
    assert kept.catalog("SELECT * FROM ducklake_table") == []
    assert kept.catalog("SELECT * FROM ducklake_inlined_data_1_1") == []


def test_a_file_that_is_entered_twice_goes_with_its_last_entry(sqlite: Kept) -> None:
    sqlite("CREATE TABLE t (k INTEGER)")
    sqlite("INSERT INTO t SELECT i FROM range(20) r(i)")
    sqlite("CREATE TABLE u (k INTEGER)")
    columns = _columns(sqlite, "ducklake_data_file")
    (path,) = sqlite.files()
    values = {"data_file_id": "100", "table_id": "2", "path": f"'{sqlite.data}/./{path}'", "path_is_relative": "0"}
    selected = ", ".join(values.get(name, name) for name in columns)
    sqlite.catalog(f"INSERT INTO ducklake_data_file SELECT {selected} FROM ducklake_data_file")
    sqlite.lake.connection.session.catalogs["lake"].latest()
    sqlite("DROP TABLE t")
    sqlite(EXPIRE_ALL)
    # Other programs remove what is scheduled without looking.
    assert sqlite.catalog("SELECT * FROM ducklake_files_scheduled_for_deletion") == []
    assert sqlite(CLEANUP) == []
    assert sqlite.files() == {path}
    sqlite("DROP TABLE u")
    sqlite(EXPIRE_ALL)
    assert [os.path.normpath(found) for (found,) in sqlite(CLEANUP)] == [f"{sqlite.data}/{path}"]
    assert sqlite.files() == set()


@pytest.fixture
def due(sqlite: Kept) -> Kept:
    """Six files wait for a cleanup, one is live."""
    sqlite("CREATE TABLE t (k INTEGER)")
    for start in range(6):
        sqlite(f"INSERT INTO t SELECT {start} FROM range(20) r(i)")
    sqlite("CALL ducklake_merge_adjacent_files('lake')")
    assert len(sqlite.files()) == 7
    return sqlite


def test_delete_files_that_a_flush_replaces_go(sqlite: Kept) -> None:
    sqlite("CREATE TABLE t (k INTEGER)")
    sqlite("INSERT INTO t SELECT i FROM range(100) r(i)")
    sqlite("DELETE FROM t WHERE k < 50")
    before = {path for path in sqlite.files() if "-delete." in path}
    assert before, "so many deletes do not lie in the catalog"
    sqlite("DELETE FROM t WHERE k = 50")
    sqlite("CALL lake.flush_inlined_data()")
    assert {path.removeprefix(f"{sqlite.data}/") for (path,) in sqlite(CLEANUP)} == before
    assert sqlite(ORPHANS) == []
    assert sqlite("SELECT count(*) FROM t") == [(49,)]


def test_files_that_are_missing_count_as_removed(due: Kept) -> None:
    scheduled = [path for (path,) in due.catalog("SELECT path FROM ducklake_files_scheduled_for_deletion")]
    (due.data / scheduled[0]).unlink()
    assert len(due(CLEANUP)) == 6
    assert due.catalog("SELECT * FROM ducklake_files_scheduled_for_deletion") == []
    assert len(due.files()) == 1
    assert due("SELECT count(*) FROM t") == [(120,)]


KILLED = """
import os, signal, sys
import lakedbapi
from lakedbapi.formats.ducklake import cleanup
from lakedbapi.storage.filesystem import Storage

cleanup._BATCH = 2
remove, left = Storage._remove, [3]

def removing(self, path):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    remove(self, path)

Storage._remove = removing
with lakedbapi.connect(sys.argv[1], autocommit=True) as connection:
    connection.execute(sys.argv[2])
"""


def test_a_cleanup_that_was_killed_is_repeated(due: Kept) -> None:
    process = subprocess.run([sys.executable, "-c", KILLED, due.url, CLEANUP], timeout=60, check=False)
    assert process.returncode == -signal.SIGKILL
    assert len(due.files()) == 4
    assert len(due.catalog("SELECT * FROM ducklake_files_scheduled_for_deletion")) == 4
    assert due("SELECT count(*) FROM t") == [(120,)]
    assert len(due(CLEANUP)) == 4
    assert len(due.files()) == 1
    assert due.catalog("SELECT * FROM ducklake_files_scheduled_for_deletion") == []


def test_young_scheduled_files_stay(due: Kept) -> None:
    assert due("CALL ducklake_cleanup_old_files('lake')") == []
    assert due("CALL ducklake_cleanup_old_files('lake', older_than => now() - INTERVAL 1 HOUR)") == []
    assert len(due.files()) == 7
    assert len(due("CALL ducklake_cleanup_old_files('lake', older_than => now() + INTERVAL 1 HOUR)")) == 6


def test_only_old_files_that_a_lake_wrote_are_orphans(due: Kept) -> None:
    table = pa.table({"k": [1]})
    for name in ("export.parquet", "main/t/part-0.parquet", "main/t/ducklake-notes.txt"):
        (due.data / name).write_bytes(b"x")
    for name in ("main/t/ducklake-new.parquet", "main/t/ducklake-old.parquet", "ducklake-old-delete.parquet"):
        pq.write_table(table, due.data / name)
        if "old" in name:
            os.utime(due.data / name, (time.time() - 3 * DAYS,) * 2)
    removed = {path.removeprefix(f"{due.data}/") for (path,) in due("CALL ducklake_delete_orphaned_files('lake')")}
    assert removed == {"main/t/ducklake-old.parquet", "ducklake-old-delete.parquet"}
    assert {path.removeprefix(f"{due.data}/") for (path,) in due(ORPHANS)} == {"main/t/ducklake-new.parquet"}
    assert len(due.files()) == 7 + 3


@pytest.mark.parametrize(
    "call",
    [
        "ducklake_expire_snapshots('lake', dry_run => true, older_than => now())",
        "ducklake_expire_snapshots('lake', dry_run => true, versions => [2, 3])",
        "ducklake_cleanup_old_files('lake', dry_run => true, cleanup_all => true)",
        "ducklake_delete_orphaned_files('lake', dry_run => true, cleanup_all => true)",
    ],
)
def test_a_dry_run_tells_all_and_changes_nothing(kept: Kept, call: str) -> None:
    kept("CREATE TABLE t (k INTEGER)")
    kept("INSERT INTO t SELECT i FROM range(20) r(i)")
    kept("INSERT INTO t SELECT i FROM range(20) r(i)")
    kept("INSERT INTO t VALUES (1)")
    kept("DELETE FROM t WHERE k < 15")
    kept("CALL ducklake_merge_adjacent_files('lake')")
    kept("CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)")
    kept("CALL ducklake_expire_snapshots('lake', versions => [1])")
    pq.write_table(pa.table({"k": [1]}), kept.data / "ducklake-orphan.parquet")
    before = kept.everything()
    told = kept(f"CALL {call}")
    assert kept.everything() == before
    done = kept(f"CALL {call.replace('dry_run => true, ', '')}")
    assert [row[0] for row in done] == [row[0] for row in told]
    assert kept.everything() != before or not told


def test_nothing_is_left_of_dropped_objects(kept: Kept) -> None:
    """But the snapshots' own rows, and schema `main`."""
    kept("CREATE TABLE kept_table (i INTEGER)")
    added = kept.data / "added.parquet"
    kept.data.mkdir(exist_ok=True)
    pq.write_table(pa.table({"k": [1, 2]}), added)
    before = _objects(kept)
    kept("CREATE SCHEMA s")
    kept("CREATE TABLE s.t (k INTEGER, g VARCHAR)")
    kept("COMMENT ON TABLE s.t IS 'c'")
    kept("COMMENT ON COLUMN s.t.k IS 'c'")
    kept("INSERT INTO s.t VALUES (1, 'inlined')")
    kept("ALTER TABLE s.t SET PARTITIONED BY (g)")
    kept("ALTER TABLE s.t SET SORTED BY (k DESC)")
    kept("INSERT INTO s.t SELECT i, 'g' || i % 2 FROM range(100) r(i)")
    kept("DELETE FROM s.t WHERE k = 3")
    kept("DELETE FROM s.t WHERE k BETWEEN 20 AND 50")
    kept("CALL ducklake_set_option('lake', 'parquet_compression', 'zstd', schema => 's', table_name => 't')")
    kept("CALL ducklake_set_option('lake', 'parquet_compression', 'gzip', schema => 's')")
    kept("CREATE TABLE f (k BIGINT)")
    kept(f"CALL ducklake_add_data_files('lake', 'f', '{added}')")
    kept("CREATE VIEW v AS SELECT * FROM s.t")
    kept("CREATE MACRO m(a, b := 2) AS a + b")
    assert [name for name, rows in _objects(kept).items() if not rows] == ["file_variant_stats"]
    assert _inlined(kept) >= {"ducklake_inlined_data_3_3", "ducklake_inlined_delete_3"}
    for statement in ("DROP MACRO m", "DROP VIEW v", "DROP TABLE s.t", "DROP TABLE f", "DROP SCHEMA s"):
        kept(statement)
    kept(EXPIRE_ALL)
    assert _objects(kept) == before
    assert {name for name in _inlined(kept) if not name.startswith("ducklake_inlined_data_1_")} == set()
    kept(CLEANUP)
    assert kept.files() == set()


OBJECTS = (
    *("schema", "table", "column", "view", "macro", "macro_impl", "macro_parameters", "tag", "column_tag"),
    *("data_file", "delete_file", "file_column_stats", "file_variant_stats", "file_partition_value"),
    *("table_stats", "table_column_stats", "partition_info", "partition_column", "sort_info", "sort_expression"),
    *("column_mapping", "name_mapping", "schema_versions", "inlined_data_tables", "metadata"),
)


def _objects(kept: Kept) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(kept.catalog(f"SELECT * FROM ducklake_{name}"), key=repr) for name in OBJECTS}


def _inlined(kept: Kept) -> set[str]:
    """The inlined tables that there are in the database."""
    catalog = kept.lake.connection.session.catalogs["lake"]
    assert isinstance(catalog, DuckLakeCatalog)
    with catalog.backend.read() as connection:
        names = [f"ducklake_inlined_data_{table}_{version}" for table in range(8) for version in range(30)]
        names += [f"ducklake_inlined_delete_{table}" for table in range(8)]
        return {name for name in names if catalog.backend.has_table(connection, name)}


def test_a_merged_file_stays_for_every_snapshot_that_sees_some_of_its_rows(kept: Kept) -> None:
    kept("CREATE TABLE t (k INTEGER)")
    for start in (0, 20, 40):
        kept(f"INSERT INTO t SELECT i FROM range({start}, {start + 20}) r(i)")
    kept("CALL ducklake_merge_adjacent_files('lake')")
    kept("DROP TABLE t")
    kept("CALL ducklake_expire_snapshots('lake', versions => [0, 1, 2, 4, 5])")
    kept(CLEANUP)
    kept(ORPHANS)
    assert kept("SELECT count(*), max(k) FROM t AT (VERSION => 3)") == [(40, 39)]
    kept(EXPIRE_ALL)
    kept(CLEANUP)
    assert kept.files() == set()


def test_a_partitioning_stays_as_long_as_a_file_is_of_it(sqlite: Kept) -> None:
    sqlite("CREATE TABLE t (k INTEGER, g VARCHAR)")
    sqlite("ALTER TABLE t SET PARTITIONED BY (g)")
    sqlite("INSERT INTO t SELECT i, 'g' || i % 2 FROM range(40) r(i)")
    sqlite("ALTER TABLE t SET PARTITIONED BY (bucket(3, k))")
    sqlite("ALTER TABLE t RESET PARTITIONED BY")
    sqlite(EXPIRE_ALL)
    used = sqlite.catalog("SELECT DISTINCT partition_id FROM ducklake_data_file")
    known = sqlite.catalog("SELECT partition_id FROM ducklake_partition_info ORDER BY 1")
    assert len(known) == 2, "that of the files and that of today"
    assert known[:1] == used
    assert sqlite("SELECT count(*) FROM t WHERE g = 'g1'") == [(20,)]


@pytest.mark.parametrize("folder", ["main/t", "main/./t"])
def test_a_scheduled_file_that_an_entry_names_again_is_not_removed(due: Kept, folder: str) -> None:
    ((live,),) = due.catalog("SELECT path FROM ducklake_data_file")
    due.catalog(
        "INSERT INTO ducklake_files_scheduled_for_deletion (data_file_id, path, path_is_relative, schedule_start) "
        f"VALUES (99, '{folder}/{live}', 1, '2020-01-01 00:00:00+00')"
    )
    assert not any(path.endswith(live) for (path,) in due(CLEANUP))
    assert due.catalog("SELECT * FROM ducklake_files_scheduled_for_deletion") == []
    assert due.files() == {f"main/t/{live}"}
    assert due("SELECT count(*) FROM t") == [(120,)]


def test_changes_since_an_expired_snapshot_are_refused(lake: Lake) -> None:
    """What it deleted is gone: a consumer that goes on from there would keep rows for ever."""
    lake("CREATE TABLE t AS SELECT * FROM range(20) r(i)")
    lake("DELETE FROM t")
    lake("INSERT INTO t SELECT * FROM range(100, 120)")
    changes = "SELECT change_type, count(*) FROM table_changes('t', {}, 3) GROUP BY 1"
    assert sorted(lake(changes.format(2))) == [("delete", 20), ("insert", 20)]
    lake("CALL ducklake_expire_snapshots('lake', versions => [1, 2])")
    for kind in ("changes", "insertions", "deletions"):
        for start in (1, 2):
            with pytest.raises(lakedbapi.ProgrammingError, match=f"No snapshot found at version {start}: it has exp"):
                lake(f"FROM table_{kind}('t', {start}, 3)")
    assert lake(changes.format(3)) == [("insert", 20)]
    assert lake(changes.format(4)) == []


def test_what_expires_is_told_in_one_way(sqlite: Kept) -> None:
    for start in range(3):
        sqlite(f"CREATE TABLE t{start} (k INTEGER)")
    history = sqlite("SELECT snapshot_id FROM snapshots()")
    with pytest.raises(lakedbapi.ProgrammingError, match="cannot specify both"):
        sqlite("CALL ducklake_expire_snapshots('lake', versions => [1], older_than => now())")
    with pytest.raises(lakedbapi.DataError, match="years 1 to 9999"):
        sqlite("CALL ducklake_expire_snapshots('lake', older_than => TIMESTAMP 'infinity')")
    assert sqlite("CALL ducklake_expire_snapshots('lake')") == []
    assert sqlite("CALL ducklake_expire_snapshots('lake', versions => [3, 99])") == []
    assert sqlite("SELECT snapshot_id FROM snapshots()") == history
    sqlite("CALL lake.set_option('expire_older_than', '0 seconds')")
    assert [row[0] for row in sqlite("CALL ducklake_expire_snapshots('lake')")] == [0, 1, 2]
    assert sqlite("SELECT snapshot_id FROM snapshots()") == [(3,)]
