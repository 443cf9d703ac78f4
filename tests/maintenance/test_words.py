"""CHECKPOINT, OPTIMIZE, VACUUM, DESCRIBE HISTORY, and procedures in SELECT."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import lakedbapi
from tests.dml.conftest import Lake
from tests.maintenance.histories import changes, live, newest, rows

DAY = 86_400


def parquet(data: Path) -> set[str]:
    return {path.name for path in data.rglob("*.parquet")}


def versions(lake: Lake) -> list[int]:
    return [id for (id,) in lake("SELECT snapshot_id FROM snapshots() ORDER BY 1")]


# OPTIMIZE


def test_optimize_rewrites_worn_files_and_merges_small_ones(t: Lake) -> None:
    before = rows(t, newest(t))
    ((schema, table, added, removed, bytes_added, bytes_removed, deletes),) = t("OPTIMIZE t")
    # The first file is rewritten and merged with the third; the second has lost too few rows.
    assert (schema, table, added, removed, deletes) == ("main", "t", 2, 3, 50)
    assert bytes_added > 0 < bytes_removed
    assert t("SELECT record_count, deleted_count FROM files('t') ORDER BY 1") == [(100, 1), (150, 0)]
    assert rows(t, max(before)) == before
    assert t("SELECT count(*), sum(k) FROM t") == [(249, sum(range(50, 300)) - 150)]


def test_optimize_merges_small_files_in_all_versions(lake: Lake) -> None:
    lake("CALL lake.set_option('data_inlining_row_limit', 0)")
    lake("CREATE TABLE t (k INTEGER)")
    for start in (0, 10, 20):
        lake(f"INSERT INTO t SELECT i FROM range({start}, {start + 10}) r(i)")
    before = rows(lake, newest(lake))
    assert lake("OPTIMIZE TABLE main.t")[0][:4] == ("main", "t", 1, 3)
    assert rows(lake, max(before)) == before
    assert lake("OPTIMIZE t")[0][2:] == (0, 0, 0, 0, 0)


def test_optimize_where_touches_only_files_that_may_match(t: Lake) -> None:
    assert t("OPTIMIZE t WHERE g = 2")[0][2:4] == (0, 0)
    assert t("OPTIMIZE t WHERE g = ? AND k > 0", 0)[0][2:4] == (1, 1)


def test_zorder_writes_all_files_anew_with_rows_together_that_are_alike(t: Lake) -> None:
    before, last = rows(t, newest(t)), newest(t)
    feed = changes(t, 1, last)
    assert t("OPTIMIZE t ZORDER BY (K, g)")[0][2:4] == (1, 3)
    assert rows(t, last) == before
    assert t("SELECT sum(rowid), list(k) = list_sort(list(k)) FROM t") == [
        (t(f"SELECT sum(rowid) FROM t AT (VERSION => {last})")[0][0], True)
    ]
    assert changes(t, 1, last) == feed
    assert t(f"SELECT count(*) FROM table_changes('t', {last + 1}, {newest(t)})") == [(0,)]


def test_reorg_rewrites_all_files_with_deleted_rows(t: Lake) -> None:
    before = t("SELECT rowid, * FROM t ORDER BY k")
    assert t("REORG TABLE t WHERE k > 60 AND g = 1 APPLY (PURGE)")[0][2:4] == (1, 1)
    t("REORG TABLE t APPLY (PURGE)")
    assert t("SELECT count(*) FROM files('t') WHERE deleted_count > 0") == [(0,)]
    assert t("SELECT rowid, * FROM t ORDER BY k") == before


def test_optimize_by_partition(lake: Lake) -> None:
    lake("CALL lake.set_option('data_inlining_row_limit', 0)")
    lake("CREATE TABLE t (k INTEGER, g VARCHAR) PARTITIONED BY (g)")
    for start in (0, 10):
        lake(f"INSERT INTO t SELECT i, 'g' || (i % 2) FROM range({start}, {start + 10}) r(i)")
    assert lake("OPTIMIZE t WHERE g = 'g1'")[0][2:4] == (1, 2)
    assert lake("OPTIMIZE t")[0][2:4] == (1, 2)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("OPTIMIZE t WHERE nosuch = 1", "has no column nosuch"),
        ("OPTIMIZE t WHERE k IN (SELECT 1)", "compares columns of the table with constants"),
        ("OPTIMIZE nosuch", "table nosuch does not exist"),
    ],
)
def test_optimize_refuses(t: Lake, sql: str, message: str) -> None:
    with pytest.raises(lakedbapi.ProgrammingError, match=message):
        t(sql)


# CHECKPOINT


def test_checkpoint_does_all_maintenance_by_options(t: Lake, data: Path) -> None:
    t("CALL lake.set_option('data_inlining_row_limit', 10)")
    t("INSERT INTO t VALUES (1000, 9)")
    t("DELETE FROM t WHERE k BETWEEN 100 AND 198")
    t("CALL lake.set_option('expire_older_than', '0 seconds')")
    t("CALL lake.set_option('delete_older_than', '0 seconds')")
    orphan = data / "main" / "t" / "ducklake-orphan.parquet"
    orphan.write_bytes(b"")
    os.utime(orphan, (time.time() - DAY,) * 2)
    seen = t.rows()
    assert t("CHECKPOINT lake") == []
    assert t.cursor.description is not None
    assert t.cursor.description[0][:2] == ("Success", "BOOLEAN")
    # A flush comes first, a rewrite after the expiry: its snapshot is kept beside the newest before.
    assert t.rows() == seen
    assert t("SELECT count(*) FROM files('t') WHERE deleted_count > 0.95 * record_count") == [(0,)]
    assert len(versions(t)) <= 3
    assert not orphan.exists()
    t("CHECKPOINT")
    t("CHECKPOINT")
    assert t.rows() == seen
    assert live(t) <= parquet(data)


def test_checkpoint_leaves_tables_without_auto_compact(t: Lake) -> None:
    t("CALL lake.set_option('auto_compact', false, table_name => 't')")
    t("CALL lake.set_option('rewrite_delete_threshold', 0.1)")
    before = live(t)
    t("CHECKPOINT")
    assert live(t) == before
    t("CALL lake.set_option('auto_compact', true, table_name => 't')")
    t("CHECKPOINT")
    assert live(t) != before


# VACUUM


def test_vacuum_removes_what_only_versions_before_the_retention_need(t: Lake, data: Path) -> None:
    t("OPTIMIZE t")
    seen, needed = t.rows(), live(t)
    would_go = {Path(path).name for (path,) in t("VACUUM RETAIN 0 HOURS DRY RUN")}
    assert would_go == parquet(data) - needed != set()
    assert would_go <= parquet(data)
    assert {Path(path).name for (path,) in t("VACUUM RETAIN 0 HOURS")} == would_go
    assert parquet(data) == needed
    assert t.rows() == seen
    assert len(versions(t)) == 1
    assert t("VACUUM RETAIN 0 HOURS") == []


def test_vacuum_keeps_everything_within_the_retention(t: Lake, data: Path) -> None:
    before, files = rows(t, newest(t)), parquet(data)
    assert t("VACUUM") == []
    assert t("VACUUM t RETAIN ? HOURS", 1) == []
    assert rows(t, max(before)) == before
    assert parquet(data) == files


def test_vacuum_keeps_the_version_that_was_current_at_the_cutoff(t: Lake, data: Path) -> None:
    last = newest(t)
    with closing(sqlite3.connect(data.parent / "catalog.sqlite")) as catalog, catalog:
        catalog.execute("UPDATE ducklake_snapshot SET snapshot_time = '2026-01-01 00:00:00+00'")
    t("INSERT INTO t VALUES (1000, 0)")
    t("VACUUM RETAIN 1 HOURS")
    assert versions(t) == [last, last + 1]


def test_vacuum_of_one_table_keeps_all_versions_of_the_others(t: Lake, data: Path) -> None:
    t("CREATE TABLE u (k INTEGER)")
    t("INSERT INTO u SELECT * FROM range(20)")
    t("UPDATE t SET g = 7")
    t("UPDATE t SET g = 8")
    t("DELETE FROM u WHERE k < 5")
    t("BEGIN")
    t("DELETE FROM u WHERE k < 7")
    t("DELETE FROM t WHERE k < 70")
    t("COMMIT")
    t("DELETE FROM t")
    u = {v: t(f"SELECT * FROM u AT (VERSION => {v}) ORDER BY 1") for v in versions(t)[6:]}
    changed_u = {id for (id,) in t("SELECT snapshot_id FROM history('u')")}
    removed = {Path(path).name for (path,) in t("VACUUM t RETAIN 0 HOURS")}
    assert removed
    assert all("/t/" in path for path in map(str, data.rglob("*")) if Path(path).name in removed)
    kept = versions(t)
    assert {v: u[v] for v in u if v in kept} == {
        v: t(f"SELECT * FROM u AT (VERSION => {v}) ORDER BY 1") for v in u if v in kept
    }
    assert len(changed_u) == 4
    assert changed_u <= set(kept)
    for v in kept:
        t(f"SELECT count(*), sum(k) FROM t AT (VERSION => {v})") if v > 0 else None


def test_vacuum_leaves_files_that_may_be_of_a_transaction_under_way(t: Lake, data: Path) -> None:
    fresh, old = (data / "main" / "t" / f"ducklake-{name}.parquet" for name in ("fresh", "old"))
    for path in (fresh, old):
        path.write_bytes(b"")
    os.utime(old, (time.time() - 3 * DAY,) * 2)
    t("VACUUM t RETAIN 0 HOURS")
    assert fresh.exists()
    assert not old.exists()


def test_vacuum_uses_the_lakes_retention(t: Lake) -> None:
    t("CALL lake.set_option('expire_older_than', '0 seconds')")
    t("VACUUM")
    assert len(versions(t)) == 1


@pytest.mark.parametrize("hours", ["-1", "NULL", "'x'", "'nan'"])
def test_vacuum_refuses_other_retentions(t: Lake, hours: str) -> None:
    with pytest.raises(lakedbapi.ProgrammingError, match="number of hours"):
        t(f"VACUUM RETAIN ({hours}) HOURS")


def test_a_retention_of_any_length_keeps_everything(t: Lake) -> None:
    before = versions(t)
    assert t("VACUUM t RETAIN 1000000000 HOURS") == t("VACUUM RETAIN 1e300 HOURS") == []
    t("CALL lake.set_option('expire_older_than', '1000000 years')")
    t("CALL lake.set_option('delete_older_than', '1000000 years')")
    assert t("VACUUM") == []
    t("CHECKPOINT")
    assert set(versions(t)) >= set(before)


# DESCRIBE HISTORY


def test_history_is_of_the_table_alone_the_newest_first(t: Lake) -> None:
    t("CREATE TABLE u AS SELECT 1 AS i")
    t('ALTER TABLE t RENAME TO "we ird"')
    history = t('DESCRIBE HISTORY "we ird"')
    assert t.cursor.description is not None
    assert [column[0] for column in t.cursor.description] == [
        *("snapshot_id", "snapshot_time", "schema_version", "changes", "author", "commit_message", "commit_extra_info"),
        *("operation", "operation_parameters", "operation_metrics"),
    ]
    ids = [row[0] for row in history]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 6
    assert t('DESC HISTORY main."we ird" LIMIT 2') == history[:2]
    assert t("DESCRIBE HISTORY TABLE u LIMIT ?", 9)[0][3] == {
        "tables_created": ["main.u"],
        "tables_inserted_into": ["2"],
    }
    assert sorted(ids) == [id for (id,) in t("SELECT snapshot_id FROM history('we ird') ORDER BY 1")]


def test_a_table_can_be_called_history(lake: Lake) -> None:
    lake("CREATE TABLE history (i INTEGER)")
    assert lake("DESCRIBE history")[0][:2] == ("i", "INTEGER")


# Where they may run


WRITING = (
    "CHECKPOINT",
    "OPTIMIZE t",
    "VACUUM",
    "VACUUM t RETAIN 0 HOURS DRY RUN",
    "RESTORE TABLE t TO VERSION AS OF 2",
    "CALL lake.set_option('auto_compact', true)",
    "SELECT * FROM ducklake_expire_snapshots('lake')",
)


@pytest.mark.parametrize("sql", WRITING)
def test_read_only_connections_refuse(t: Lake, tmp_path: Path, sql: str) -> None:
    for options in ({"read_only": True}, {"as_of": 3}):
        with lakedbapi.connect(tmp_path / "lake", autocommit=True, **options) as connection:
            assert connection.execute("DESCRIBE HISTORY t LIMIT 1").fetchall()
            with pytest.raises(lakedbapi.ProgrammingError, match=r"only reads|read-only|past snapshot"):
                connection.execute(sql)


@pytest.mark.parametrize("sql", ["CHECKPOINT", "OPTIMIZE t", "VACUUM", "SELECT * FROM lake.merge_adjacent_files()"])
def test_maintenance_is_refused_in_a_transaction_with_changes(t: Lake, sql: str) -> None:
    t("BEGIN")
    t("DELETE FROM t WHERE k = 60")
    with pytest.raises(lakedbapi.ProgrammingError, match="commits by itself"):
        t(sql)
    t("COMMIT")
    assert t("SELECT count(*) FROM t") == [(248,)]


# Procedures in SELECT


def test_a_select_can_call_a_procedure(t: Lake) -> None:
    assert t(
        "SELECT table_name, files_processed FROM ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.4)"
    ) == [("t", 1)]
    assert t("FROM lake.merge_adjacent_files()") == [("main", "t", 2, 1)]
    expired = t(
        "SELECT max(snapshot_id) FROM ducklake_expire_snapshots('lake', versions => [2, 3]) e WHERE snapshot_id > ?", 2
    )
    assert expired == [(3,)]
    assert {2, 3}.isdisjoint(versions(t))
    assert t("SELECT * FROM lake.set_option('parquet_compression', 'zstd')") == []
    assert t("SELECT count(*) > 0 FROM ducklake_cleanup_old_files('lake', cleanup_all => true)") == [(True,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM ducklake_expire_snapshots('lake', older_than => now()), t",
        "SELECT (SELECT count(*) FROM ducklake_expire_snapshots('lake', older_than => now()))",
        "SELECT * FROM (SELECT * FROM ducklake_expire_snapshots('lake', older_than => now()))",
        "WITH e AS (FROM ducklake_expire_snapshots('lake', older_than => now())) SELECT * FROM e",
        "FROM ducklake_expire_snapshots('lake', older_than => now()) UNION ALL FROM ducklake_expire_snapshots('lake')",
        "SELECT * FROM ducklake_expire_snapshots('lake', older_than => now()), unnest([1, 2])",
        "CREATE TABLE e AS FROM ducklake_expire_snapshots('lake', older_than => now())",
        "INSERT INTO t SELECT snapshot_id, 1 FROM ducklake_expire_snapshots('lake', older_than => now())",
        "DELETE FROM t WHERE k IN (SELECT snapshot_id FROM ducklake_expire_snapshots('lake', older_than => now()))",
        "EXPLAIN SELECT * FROM ducklake_expire_snapshots('lake', older_than => now())",
        "DESCRIBE SELECT * FROM ducklake_expire_snapshots('lake', older_than => now())",
    ],
)
def test_a_bigger_query_cannot(t: Lake, sql: str) -> None:
    before = versions(t)
    with pytest.raises(lakedbapi.ProgrammingError, match="changes the lake"):
        t(sql)
    assert versions(t) == before


# Options


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("rewrite_data_files('t', delete_threshold => 'x')", "delete_threshold is 'x'"),
        ("merge_adjacent_files(max_compacted_files => 'x')", "max_compacted_files is 'x'"),
        ("expire_snapshots(versions => 'x')", "versions is 'x'"),
        ("expire_snapshots(versions => 3)", "versions is 3"),
        ("cleanup_old_files(cleanup_all => true, dry_run => 'please')", "dry_run is 'please'"),
        ("delete_orphaned_files(cleanup_all => 'x')", "cleanup_all is 'x'"),
        ("rewrite_data_files('t', delete_threshold => 2)", "delete_threshold is 2"),
        ("rewrite_data_files('t', delete_threshold => -0.1)", "delete_threshold is -0.1"),
        ("rewrite_data_files('t', delete_threshold => 'nan')", "delete_threshold is nan"),
        ("merge_adjacent_files('t', max_compacted_files => 0)", "max_compacted_files is 0"),
        ("merge_adjacent_files('t', max_file_size => 0)", "max_file_size is 0"),
        ("merge_adjacent_files('t', min_file_size => -1)", "min_file_size is -1"),
        ("merge_adjacent_files('t', min_file_size => 10, max_file_size => 10)", "no file is of at least 10"),
    ],
)
def test_arguments_of_other_types_and_out_of_range_are_refused(t: Lake, data: Path, call: str, message: str) -> None:
    before = parquet(data)
    with pytest.raises(lakedbapi.ProgrammingError, match=message):
        t(f"CALL lake.{call}")
    assert parquet(data) == before


def test_short_names_mean_the_current_catalog(t: Lake) -> None:
    t("CALL set_option('target_file_size', '10MB', table_name => 't')")
    t("CALL set_option('lake', 'parquet_version', 2)")
    listed = "SELECT value, scope FROM lake.options() WHERE option_name IN ('target_file_size', 'parquet_version')"
    assert sorted(t(listed)) == [("10000000", "TABLE"), ("V2", "GLOBAL")]
    t("BEGIN")
    t("CALL set_commit_message('me', 'why')")
    t("INSERT INTO t VALUES (77, 7)")
    t("COMMIT")
    assert t("SELECT author, commit_message FROM snapshots() ORDER BY snapshot_id DESC LIMIT 1") == [("me", "why")]
    with pytest.raises(lakedbapi.ProgrammingError, match="needs the catalog's name"):
        t("CALL ducklake_set_option()")


def test_options_are_listed_with_their_scope(t: Lake) -> None:
    t("CREATE SCHEMA s")
    t("CREATE TABLE s.u (i INTEGER)")
    t("CALL lake.set_option('target_file_size', '10MB')")
    t("CALL ducklake_set_option('lake', 'target_file_size', '5 MiB', schema => 's')")
    t("CALL lake.set_option('target_file_size', 1000, table_name => 'u', schema => 's')")
    t("CALL lake.set_option('auto_compact', 'off', table_name => 't')")
    listed = t(
        "SELECT option_name, value, scope, scope_entry FROM lake.options() "
        "WHERE scope_entry IS NOT NULL OR option_name LIKE 'target%'"
    )
    assert listed == [
        ("auto_compact", "false", "TABLE", "main.t"),
        ("target_file_size", "10000000", "GLOBAL", None),
        ("target_file_size", "5242880", "SCHEMA", "s"),
        ("target_file_size", "1000", "TABLE", "s.u"),
    ]
    t("CALL lake.set_option('target_file_size', NULL, schema => 's')")
    assert t("SELECT scope FROM ducklake_options('lake') WHERE option_name = 'target_file_size'") == [
        ("GLOBAL",),
        ("TABLE",),
    ]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("target_file_size", "big"), ("parquet_compression", "zip"), ("parquet_version", "3"),
        ("auto_compact", "maybe"),
        ("rewrite_delete_threshold", "2"), ("expire_older_than", "soon"), ("data_inlining_row_limit", "-1"),
        ("parquet_row_group_size", "0"), ("nonsense", "1"), ("version", "2"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused_before_they_are_stored(lake: Lake, option: str, value: str) -> None:
    with pytest.raises(lakedbapi.ProgrammingError, match=option):
        lake("CALL lake.set_option(?, ?)", option, value)
    assert lake(f"SELECT value FROM lake.options() WHERE option_name = '{option}' AND option_name <> 'version'") == []


@pytest.mark.parametrize("option", ["target_file_size", "parquet_row_group_size", "data_inlining_row_limit"])
def test_wrong_options_of_other_programs_are_named(connect: Callable[[], Lake], data: Path, option: str) -> None:
    connect()("CREATE TABLE t (k INTEGER)")
    with closing(sqlite3.connect(data.parent / "catalog.sqlite")) as catalog, catalog:
        catalog.execute("DELETE FROM ducklake_metadata WHERE key = ?", [option])
        catalog.execute("INSERT INTO ducklake_metadata (key, value) VALUES (?, 'many')", [option])
    with pytest.raises(lakedbapi.ProgrammingError, match=f"{option} is 'many'"):
        connect()("INSERT INTO t SELECT i FROM range(50) r(i)")


def test_two_connections(connect: Callable[[], Lake]) -> None:
    """A writer at work while the other restores: its rows are not lost, nor is the restore."""
    first, second = connect(), connect()
    first("CREATE TABLE t AS SELECT i AS k FROM range(100) r(i)")
    version = newest(first)
    first("DELETE FROM t WHERE k < 50")
    second.connection.begin()
    second("INSERT INTO t VALUES (1000)")
    first(f"RESTORE TABLE t TO VERSION AS OF {version}")
    second.commit()
    assert first("SELECT count(*), max(k) FROM t") == [(101, 1000)]
