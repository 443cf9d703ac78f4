"""What DuckDB leaves in lakes that a reader would not expect."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from compliance.ducklake.lakes import Shared, assert_same_rows, script

pytestmark = pytest.mark.parametrize("shared", ["sqlite-files"], indirect=True)

MAINTENANCE = (
    "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
    "CALL ducklake_merge_adjacent_files('lake')",
)


def entries(shared: Shared, sql: str) -> list[tuple[object, ...]]:
    path = Path(shared.place.location.removeprefix("ducklake:sqlite:"))
    with closing(sqlite3.connect(path)) as catalog, catalog:
        return catalog.execute(sql).fetchall()


def test_rows_with_one_row_id_are_told_apart(shared: Shared) -> None:
    """DuckDB stores the provisional id of a row that its own transaction updated: the next one has the same."""
    shared.theirs.execute("CREATE TABLE t (i INTEGER, s VARCHAR)")
    for start in (0, 100):
        script(
            shared.theirs,
            f"""
            BEGIN;
            INSERT INTO t SELECT i, 'a' FROM range({start}, {start + 20}) r(i);
            UPDATE t SET s = 'u' WHERE i = {start + 1};
            COMMIT
            """,
        )
    ids = "SELECT rowid FROM t WHERE s = 'u'"
    assert shared.ours.rows(ids) == shared.theirs.rows(ids) == [(10**18 + 1,)] * 2
    assert shared.ours.execute("UPDATE t SET s = 'w' WHERE i = 1") == 1
    assert shared.ours.execute("DELETE FROM t WHERE i = 101") == 1
    expected = [("delete", 101), ("update_postimage", 1), ("update_preimage", 1)]
    feed = f"SELECT change_type, i FROM table_changes('t', 4, {shared.last()}) ORDER BY ALL"
    assert shared.ours.rows(feed) == expected
    for statement in (None, *MAINTENANCE):
        if statement is not None:
            shared.ours.execute(statement)
        assert_same_rows(shared, "t")
        assert shared.ours.rows("SELECT count(*), sum(i) FROM t") == [(39, sum(range(20)) + sum(range(100, 120)) - 101)]
    script(
        shared.ours,
        """
        BEGIN;
        INSERT INTO t SELECT 900, 'x' FROM range(20);
        UPDATE t SET s = 'y' WHERE i = 900;
        COMMIT
        """,
    )
    assert shared.theirs.value("SELECT count(DISTINCT rowid) FROM t WHERE rowid < 1000 AND s = 'y'") == 20


def test_statistics_of_parts_of_values_do_not_outlive_new_rows(shared: Shared) -> None:
    """DuckDB skips files and tables by boxes around geometries, and by bounds of fields in variants."""
    values = {
        "GEOMETRY": ("'POINT (1 2)'::GEOMETRY", "'POINT (100 200)'::GEOMETRY"),
        "VARIANT": ("{'a': 1}::VARIANT", "{'a': 100}::VARIANT"),
    }
    for type, (first, second) in values.items():
        shared.theirs.execute(f"CREATE OR REPLACE TABLE t (i INTEGER, v {type})")
        shared.theirs.execute(f"INSERT INTO t SELECT i, {first} FROM range(20) r(i)")
        known = "SELECT extra_stats FROM ducklake_table_column_stats WHERE column_id = 2 AND extra_stats IS NOT NULL"
        of_table = f"{known} AND table_id = (SELECT max(table_id) FROM ducklake_table)"
        assert len(entries(shared, of_table)) == 1, type
        shared.ours.execute(f"INSERT INTO t SELECT i, {second} FROM range(20, 40) r(i)")
        assert entries(shared, of_table) == [], type
        assert entries(
            shared,
            "SELECT extra_stats FROM ducklake_file_column_stats WHERE data_file_id = "
            "(SELECT max(data_file_id) FROM ducklake_data_file) AND column_id = 2",
        ) == [(None,)]
        for statement in (None, *MAINTENANCE):
            if statement is not None:
                shared.ours.execute(statement)
            found = "SELECT v::VARCHAR, count(*) FROM t GROUP BY 1 ORDER BY 1"
            assert [count for _, count in shared.theirs.rows(found)] == [20, 20], (type, statement)
            assert entries(shared, of_table) == [], (type, statement)
    assert shared.theirs.value("SELECT count(*) FROM t WHERE v.a = 100") == 20
    assert shared.theirs.value("SELECT count(*) FROM t WHERE v.a = 1") == 20
