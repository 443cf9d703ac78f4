"""Maintenance of one lake by two programs: whoever does it, both see the same rows, row ids and changes as before."""

from __future__ import annotations

import random

import pytest

from compliance.ducklake.lakes import Program, Shared, at_snapshots, changes, texts
from compliance.races.processes import LONG
from tests.maintenance.histories import TABLES, statements

SEEDS = range(6 if LONG else len(TABLES))
"""Of random histories; a seed decides on how the table is made, too."""
FLUSH = "CALL ducklake_flush_inlined_data('lake')"
REWRITE = "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)"
MERGE = "CALL ducklake_merge_adjacent_files('lake')"
CLEANUP = "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)"
ORPHANS = "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)"
CALLS = (FLUSH, REWRITE, MERGE, CLEANUP, ORPHANS)


def at_every_snapshot(program: Program, last: int) -> dict[int, list[str]]:
    """The rows with their ids by snapshot, of those that are kept."""
    kept = program.rows(f"SELECT snapshot_id FROM ducklake_snapshots('lake') WHERE snapshot_id BETWEEN 1 AND {last}")
    return at_snapshots(program, "t", [id for (id,) in kept], "rowid AS id, *")


@pytest.mark.parametrize("seed", SEEDS)
def test_duckdb_sees_the_same_after_our_maintenance(shared: Shared, seed: int) -> None:
    for statement in statements(seed, 15):
        shared.ours.execute(statement)
    last = shared.last()
    before = at_every_snapshot(shared.ours, last)
    for call in random.Random(seed).sample(CALLS, len(CALLS)):
        shared.ours.execute(call)
        assert at_every_snapshot(shared.theirs, last) == before, call


@pytest.mark.parametrize("seed", SEEDS)
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


EXPIRE = "CALL ducklake_expire_snapshots('lake', versions => {versions})"
PURGE_OTHERS = "PURGE FROM t WHERE k = 987654321"


@pytest.mark.parametrize("seed", SEEDS)
def test_both_maintain_a_lake_while_it_grows(shared: Shared, seed: int) -> None:
    """Every snapshot that is kept shows both of them the same as before each call, and the change feed stays."""
    choice = random.Random(seed)
    is_open = False
    for statement in statements(seed + 100, 18):
        shared.ours.execute(statement)
        is_open = statement == "BEGIN" or (is_open and statement != "COMMIT")
        if not is_open and choice.random() < 0.35:
            _maintained(shared, choice)
    shared.ours.execute(FLUSH)
    _maintained(shared, choice)


def _maintained(shared: Shared, choice: random.Random) -> None:
    last = shared.last()
    kept = [id for (id,) in shared.ours.rows("SELECT snapshot_id FROM snapshots()")]
    call = choice.choice((FLUSH, REWRITE, MERGE, CLEANUP, ORPHANS, EXPIRE, PURGE_OTHERS))
    versions = choice.sample(kept[1:-1], min(2, len(kept[1:-1])))
    # DuckDB's own flush is not among its calls here: after a rewrite it tells parts of the history twice.
    program = shared.ours if call in (FLUSH, PURGE_OTHERS) else choice.choice(shared.both)
    before = at_every_snapshot(shared.ours, last)
    first = min(before)
    feed = changes(shared.ours, "t", first, last)
    program.execute(call.format(versions=versions))
    after = at_every_snapshot(shared.ours, last)
    assert after == {id: before[id] for id in after}, (program.name, call)
    assert at_every_snapshot(shared.theirs, last) == after, (program.name, call)
    if call != EXPIRE:
        assert after.keys() == before.keys()
        assert changes(shared.ours, "t", first, last) == feed, (program.name, call)


@pytest.mark.parametrize("seed", SEEDS)
def test_duckdb_finds_no_purged_row_and_all_others(shared: Shared, seed: int) -> None:
    for statement in statements(seed, 15):
        shared.ours.execute(statement)
    condition = "k BETWEEN 31 AND 36"
    last = shared.last()
    before = at_every_snapshot(shared.ours, last)
    matching = {id for id in before if _count(shared.ours, f"t AT (VERSION => {id}) WHERE {condition}")}
    newest = texts(shared.ours, f"(SELECT rowid, * FROM t WHERE NOT coalesce({condition}, false))")
    shared.ours.execute(f"PURGE FROM t WHERE {condition}")
    for program in shared.both:
        after = at_every_snapshot(program, last)
        assert after.keys().isdisjoint(matching)
        assert after == {id: before[id] for id in after}
        assert texts(program, "(SELECT rowid, * FROM t)") == newest
    shared.ours.execute(FLUSH)  # DuckDB cannot rewrite files beside inlined rows that are older than a column.
    for call in (REWRITE, MERGE, CLEANUP, ORPHANS):
        shared.theirs.execute(call)
        assert texts(shared.ours, "(SELECT rowid, * FROM t)") == newest
    assert {result for _, _, rows, result in shared.ours.rows(f"PURGE FROM t WHERE {condition}") if rows == 0} == {
        "clean"
    }
    shared.theirs.execute("INSERT INTO t (k, g, v) SELECT 5000 + i, 'g', 'new' FROM range(20) r(i)")
    assert _count(shared.theirs, "t WHERE k > 4000") == _count(shared.ours, "t WHERE k > 4000") == 20
    ids = shared.ours.rows("SELECT count(*), count(DISTINCT rowid) FROM t")
    assert ids[0][0] == ids[0][1] == len(newest) + 20


def _count(program: Program, relation: str) -> int:
    return int(program.value(f"SELECT count(*) FROM {relation}"))
