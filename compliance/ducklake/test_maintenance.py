"""Maintenance of one lake by two programs: whoever does it, both see the same rows, row ids and changes as before."""

from __future__ import annotations

import random

import pytest

from compliance.ducklake.lakes import Program, Shared, changes, texts
from tests.maintenance.histories import statements

FLUSH = "CALL ducklake_flush_inlined_data('lake')"
REWRITE = "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)"
MERGE = "CALL ducklake_merge_adjacent_files('lake')"
CLEANUP = "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)"
ORPHANS = "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)"
CALLS = (FLUSH, REWRITE, MERGE, CLEANUP, ORPHANS)


def at_every_snapshot(program: Program, last: int) -> dict[int, list[tuple[str | None, ...]]]:
    kept = program.rows(f"SELECT snapshot_id FROM ducklake_snapshots('lake') WHERE snapshot_id BETWEEN 1 AND {last}")
    return {id: texts(program, f"(SELECT rowid, * FROM t AT (VERSION => {id}))") for (id,) in kept}


@pytest.mark.parametrize("seed", range(6))
def test_duckdb_sees_the_same_after_our_maintenance(shared: Shared, seed: int) -> None:
    for statement in statements(seed, 15):
        shared.ours.execute(statement)
    last = shared.last()
    before = at_every_snapshot(shared.ours, last)
    for call in random.Random(seed).sample(CALLS, len(CALLS)):
        shared.ours.execute(call)
        assert at_every_snapshot(shared.theirs, last) == before, call


@pytest.mark.parametrize("seed", range(6))
def test_we_see_the_same_after_duckdbs_maintenance_of_ours(shared: Shared, seed: int) -> None:
    choice = random.Random(seed)
    for statement in statements(seed, 15):
        shared.ours.execute(statement)
    last = shared.last()
    before = at_every_snapshot(shared.ours, last), changes(shared.ours, "t", 1, last)
    for call in choice.sample((FLUSH, REWRITE, MERGE), 2):
        shared.ours.execute(call)
    for call in choice.sample((REWRITE, MERGE, CLEANUP, ORPHANS), 4):
        shared.theirs.execute(call)
        assert at_every_snapshot(shared.ours, last) == before[0], call
        now = changes(shared.ours, "t", 1, last)
        assert now == before[1], (call, sorted(set(now) ^ set(before[1]), key=str), len(now), len(before[1]))
