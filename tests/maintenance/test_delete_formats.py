"""However deletes are written, every snapshot and the change feed say the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import lakedbapi
from tests.dml.conftest import Lake
from tests.maintenance.histories import changes, newest, rows, statements
from tests.maintenance.test_nothing_changes import CALLS
from tests.thorough import quick

SWITCH = "CALL ducklake_set_option('lake', 'write_deletion_vectors', '{}')"


def new_lake(path: Path, seed: int) -> Lake:
    """In the two format versions in turn, since their vectors of several snapshots differ."""
    lake = Lake(lakedbapi.connect(path, autocommit=True, ducklake_version=("1.1", "1.0")[seed % 2]))
    lake("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '2')")
    return lake


def formats(lake: Lake) -> set[str]:
    return {format for (format,) in lake("SELECT DISTINCT format FROM delete_files('t')")}


@pytest.mark.parametrize("seed", quick(1, range(3)))
def test_switching_between_formats_changes_nothing_that_anybody_sees(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)
    plain, switching = new_lake(tmp_path / "plain", 1), new_lake(tmp_path / "switching", seed)
    is_open, seen = False, set()
    for statement in statements(seed, 20):
        if not is_open:
            switching(SWITCH.format(choice.choice(["true", "true", "false"])))
        plain(statement)
        switching(statement)
        is_open = statement == "BEGIN" or (is_open and statement != "COMMIT")
        if not is_open:
            seen |= formats(switching)
            if choice.random() < 0.15:
                call = choice.choice(CALLS)
                plain(call)
                switching(call)
    last = newest(plain)
    assert newest(switching) == last
    assert rows(switching, last) == rows(plain, last)
    assert changes(switching, 1, last) == changes(plain, 1, last)
    assert "puffin" in seen


@pytest.mark.parametrize("seed", quick(1, range(2)))
def test_maintenance_keeps_what_deletion_vectors_say(tmp_path: Path, seed: int) -> None:
    lake = new_lake(tmp_path / "lake", seed)
    lake(SWITCH.format("true"))
    for statement in statements(seed, 20):
        lake(statement)
    last = newest(lake)
    before = rows(lake, last), changes(lake, 1, last)
    for call in random.Random(seed).sample(CALLS, len(CALLS)):
        lake(SWITCH.format(random.Random(call).choice(["true", "false"])))
        lake(call)
        assert (rows(lake, last), changes(lake, 1, last)) == before, call
    lake(f"CALL ducklake_expire_snapshots('lake', versions => {list(range(1, last // 2))})")
    for call in CALLS:
        lake(call)
        after = rows(lake, last)
        assert after == {id: before[0][id] for id in after}, call
