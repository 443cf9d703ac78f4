"""Files of sorted tables: rows are in the table's order, however they came to lie there."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from tests.dml.conftest import Lake


@pytest.fixture
def t(lake: Lake) -> Lake:
    lake("CALL lake.set_option('data_inlining_row_limit', 0)")
    lake("CREATE TABLE t (k INTEGER, g VARCHAR)")
    return lake


def insert(lake: Lake, *starts: int) -> None:
    for start in starts:
        lake(f"INSERT INTO t SELECT 7 * i % 20 + {start}, 'g' || i % 3 FROM range(20) r(i)")


def stored(lake: Lake) -> list[list[int]]:
    """The keys of each live file in the order in which they lie there."""
    paths = lake("SELECT path FROM files('t') ORDER BY snapshot_id")
    return [pq.read_table(path).column("k").to_pylist() for (path,) in paths]


def is_sorted(keys: list[int]) -> bool:
    return keys == sorted(keys, reverse=True)


def test_inserts_and_updates(t: Lake) -> None:
    t("ALTER TABLE t SET SORTED BY (k DESC)")
    insert(t, 0, 100)
    t("UPDATE t SET g = 'u' WHERE k % 2 = 0")
    assert all(map(is_sorted, stored(t)))


@pytest.mark.parametrize("scope", ["", ", table_name => 't'", ", schema => 'main'"])
def test_inserts_are_left_as_they_are_where_an_option_says_so(t: Lake, scope: str) -> None:
    """Compaction sorts them then."""
    t("ALTER TABLE t SET SORTED BY (k DESC)")
    t(f"CALL lake.set_option('sort_on_insert', false{scope})")
    insert(t, 0, 100)
    assert stored(t) == [[7 * i % 20 + start for i in range(20)] for start in (0, 100)]
    t("CALL lake.merge_adjacent_files('t')")
    (keys,) = stored(t)
    assert len(keys) == 40
    assert is_sorted(keys)


def test_merging_files_that_are_older_than_the_order(t: Lake) -> None:
    insert(t, 0, 100, 50)
    before = t("SELECT rowid, k, g FROM t ORDER BY 1"), t("SELECT rowid, k FROM t AT (VERSION => 3) ORDER BY 1")
    t("ALTER TABLE t SET SORTED BY (k DESC)")
    t("CALL lake.merge_adjacent_files('t')")
    (keys,) = stored(t)
    assert is_sorted(keys)
    assert before == (
        t("SELECT rowid, k, g FROM t ORDER BY 1"),
        t("SELECT rowid, k FROM t AT (VERSION => 3) ORDER BY 1"),
    )


def test_rewriting_files(t: Lake) -> None:
    insert(t, 0)
    t("DELETE FROM t WHERE k % 3 = 0")
    t("ALTER TABLE t SET SORTED BY (k DESC)")
    t("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)")
    (keys,) = stored(t)
    assert is_sorted(keys)
    assert len(keys) == 13


def test_flushing_rows_of_the_catalog(t: Lake) -> None:
    t("CALL lake.set_option('data_inlining_row_limit', 100)")
    t("ALTER TABLE t SET SORTED BY (k DESC)")
    insert(t, 0, 100)
    t("UPDATE t SET k = 55 WHERE k = 5")
    t("CALL ducklake_flush_inlined_data('lake')")
    assert len(stored(t)) == 1
    assert all(map(is_sorted, stored(t)))


def test_rows_that_were_in_the_catalog_before_the_order_was_set(t: Lake) -> None:
    t("CALL lake.set_option('data_inlining_row_limit', 100)")
    insert(t, 0)
    t("ALTER TABLE t SET SORTED BY (k DESC)")
    insert(t, 100)
    t("CALL ducklake_flush_inlined_data('lake')")
    assert all(map(is_sorted, stored(t)))
