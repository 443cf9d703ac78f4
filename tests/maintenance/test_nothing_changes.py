"""Maintenance changes how rows are stored, and nothing that anybody can see."""

from __future__ import annotations

import random

import pyarrow.parquet as pq
import pytest

from tests.dml.conftest import Lake
from tests.maintenance.histories import changes, newest, rows, statements
from tests.thorough import quick

CALLS = (
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)",
    "PURGE FROM t WHERE k = 987654321",
)


@pytest.mark.parametrize("seed", quick(1, range(6)))
def test_rows_ids_and_changes_stay_at_every_snapshot(lake: Lake, seed: int) -> None:
    for statement in statements(seed, 15):
        lake(statement)
    last = newest(lake)
    before = rows(lake, last), changes(lake, 1, last)
    for call in random.Random(seed).sample(CALLS, len(CALLS)) + list(CALLS[:3]):
        lake(call)
        assert (rows(lake, last), changes(lake, 1, last)) == before, call


MERGE = "CALL ducklake_merge_adjacent_files('lake')"


@pytest.mark.parametrize(
    "between",
    [
        (),  # The row ids of the files adjoin.
        (MERGE,),
        ("INSERT INTO u SELECT i FROM range(30) r(i)", "DELETE FROM t WHERE k BETWEEN 45 AND 49"),
        ("DELETE FROM t WHERE k BETWEEN 25 AND 49", "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)"),
        ("UPDATE t SET v = 'new' WHERE k BETWEEN 20 AND 59",),
        (MERGE, "UPDATE t SET v = 'new' WHERE k = 30", "CALL ducklake_flush_inlined_data('lake')", MERGE),
        ("INSERT INTO t VALUES (990, 'g0', 'inlined'), (991, 'g1', 'inlined')", "UPDATE t SET v = 'new' WHERE k = 990"),
        (
            "INSERT INTO t VALUES (990, 'g0', 'inlined')",
            "UPDATE t SET v = 'new' WHERE k = 990",
            "CALL ducklake_flush_inlined_data('lake')",
        ),
    ],
    ids=["adjoining", "merged twice", "deleted", "rewritten", "updated", "merged before", "inlined", "flushed"],
)
def test_rows_keep_their_ids_and_snapshots_in_merged_files(lake: Lake, between: tuple[str, ...]) -> None:
    lake("CREATE TABLE t (k INTEGER, g VARCHAR, v VARCHAR)")
    lake("CREATE TABLE u (k INTEGER)")
    for start in range(0, 100, 25):
        lake(f"INSERT INTO t SELECT i, 'g', 'x' || i FROM range({start}, {start + 25}) r(i)")
    for statement in between:
        lake(statement)
    for start in range(100, 175, 25):
        lake(f"INSERT INTO t SELECT i, 'g', 'x' || i FROM range({start}, {start + 25}) r(i)")
    last = newest(lake)
    files = len(lake("SELECT path FROM files('t')"))
    before = rows(lake, last), changes(lake, 1, last)
    for call in (MERGE, "CALL ducklake_flush_inlined_data('lake')", MERGE):
        lake(call)
        assert (rows(lake, last), changes(lake, 1, last)) == before, call
    assert len(lake("SELECT path FROM files('t')")) < files


@pytest.mark.parametrize(
    ("between", "embedded"),
    [
        ((), False),
        ((MERGE,), False),
        (("UPDATE t SET v = 'new' WHERE k = 3",), True),
        (("CREATE TABLE u AS SELECT 1 AS k", "INSERT INTO u SELECT k FROM t"), False),
        (("ALTER TABLE t SET SORTED BY (k DESC)",), True),
    ],
    ids=["appended", "merged before", "updated", "beside another table", "sorted"],
)
def test_row_ids_that_adjoin_are_left_out_of_merged_files(lake: Lake, between: tuple[str, ...], embedded: bool) -> None:
    lake("CALL lake.set_option('data_inlining_row_limit', 0)")
    lake("CREATE TABLE t (k INTEGER, v VARCHAR)")
    for start in range(0, 60, 20):
        lake(f"INSERT INTO t SELECT i, 'x' || i FROM range({start}, {start + 20}) r(i)")
    for statement in between:
        lake(statement)
    lake("INSERT INTO t SELECT i, 'x' || i FROM range(60, 80) r(i)")
    last = newest(lake)
    before = rows(lake, last), changes(lake, 1, last)
    lake(MERGE)
    files = [pq.read_schema(path).names for (path,) in lake("SELECT path FROM files('t')")]
    merged = [names for names in files if "_ducklake_internal_snapshot_id" in names]
    assert ["_ducklake_internal_row_id" in names for names in merged] == [embedded]
    assert (rows(lake, last), changes(lake, 1, last)) == before


@pytest.mark.parametrize("seed", quick(1, range(4)))
def test_a_part_of_the_history_has_its_part_of_the_changes(lake: Lake, seed: int) -> None:
    """Whether its rows lie in files that were merged, rewritten or flushed since, or will end later."""
    choice = random.Random(seed)
    grow(lake, seed)
    last = newest(lake)
    everything = [row[:4] for row in changes(lake, 0, last)]
    for first in choice.sample(range(2, last), 4):
        end = min(first + choice.randint(0, 3), last)
        part = [row[:4] for row in changes(lake, first, end)]
        assert part == [row for row in everything if first <= row[0] <= end], (first, end)


@pytest.mark.parametrize("seed", quick(1, range(6)))
def test_kept_snapshots_stay_when_any_others_expire(lake: Lake, seed: int) -> None:
    choice = random.Random(seed)
    grow(lake, seed)
    last = newest(lake)
    before = rows(lake, last)
    for _ in range(3):
        kept = [id for (id,) in lake("SELECT snapshot_id FROM snapshots()")][:-1]
        going = choice.sample(kept, len(kept) // 3)
        lake(f"CALL ducklake_expire_snapshots('lake', versions => {going})")
        for call in choice.sample(CALLS, 3):
            lake(call)
            after = rows(lake, last)
            assert after == {id: before[id] for id in after}, call
            assert after.keys().isdisjoint(going)


@pytest.mark.parametrize("seed", quick(1, range(4)))
def test_changes_since_the_first_kept_snapshot_stay(lake: Lake, seed: int) -> None:
    choice = random.Random(seed)
    grow(lake, seed)
    last = newest(lake)
    first = choice.randint(2, last - 3)
    before = changes(lake, first, last)
    lake(f"CALL ducklake_expire_snapshots('lake', versions => {list(range(first))})")
    for call in choice.sample(CALLS, len(CALLS)):
        lake(call)
        assert changes(lake, first, last) == before, call


def grow(lake: Lake, seed: int) -> None:
    """A history with some maintenance in it."""
    choice = random.Random(seed)
    is_open = False
    for statement in statements(seed, 14):
        lake(statement)
        is_open = statement == "BEGIN" or (is_open and statement != "COMMIT")
        if not is_open and choice.random() < 0.2:
            lake(choice.choice(CALLS))
