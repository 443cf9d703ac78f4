"""Processes that change a Delta table while others maintain it, or are killed while they do."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from compliance.peers.lakes import Place
from compliance.races.processes import LONG, Acknowledged, Running, lake, run, value

COUNT = 60 if LONG else 10
KILLS = 60 if LONG else 10
TABLE = "CREATE TABLE t (id INTEGER, worker INTEGER, counter INTEGER)"
ROWS = "INSERT INTO t SELECT i, NULL, 0 FROM range(400) r(i)"
NOW = "ALTER TABLE t SET ('delta.deletedFileRetentionDuration' = 'interval 1 minute')"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("delta", f"delta:///{tmp_path}/lake", "", f"{tmp_path}/lake/")


def operations(place: Place) -> list[str]:
    log = sorted(Path(place.data_path, "t", "_delta_log").glob("[0-9]*.json"))
    assert [int(path.stem) for path in log] == list(range(len(log)))
    return [json.loads(path.read_text().splitlines()[0])["commitInfo"]["operation"] for path in log]


@pytest.mark.timeout(600)
def test_changes_and_maintenance_go_together(place: Place) -> None:
    """Rows that were deleted do not come back, updates are not lost, and nothing is there twice."""
    lake(place, TABLE, ROWS, NOW)
    keeper = Running("maintain", place, 9, 1_000_000)
    done = run("mixed", place, 3, COUNT)
    time.sleep(0.5)
    assert keeper.process.is_alive(), keeper.failure
    keeper.kill()
    rows = 400 + done.rows["insert"] - done.rows["delete"]
    assert value(place, "SELECT count(*) FROM t") == value(place, "SELECT count(DISTINCT id) FROM t") == rows
    assert value(place, "SELECT sum(counter) FROM t") == done.rows["update"]
    assert {"OPTIMIZE", "REORG"} <= set(operations(place))


@pytest.mark.timeout(600)
def test_a_killed_maintenance_harms_nothing(place: Place) -> None:
    lake(place, TABLE, ROWS, NOW)
    moments = random.Random(2)
    done = Acknowledged()
    for kill in range(KILLS):
        changes = Running("mixed", place, kill, 3)
        keeper = Running("maintain", place, kill, 1_000_000)
        keeper.await_statements(1)
        time.sleep(moments.uniform(0, 0.3))
        keeper.kill()
        assert not keeper.failure
        changes.process.join()
        assert changes.process.exitcode == 0, changes.failure
        done.add(changes.acknowledged)
        rows = 400 + done.rows["insert"] - done.rows["delete"]
        assert value(place, "SELECT count(*) FROM t") == value(place, "SELECT count(DISTINCT id) FROM t") == rows
        assert value(place, "SELECT sum(counter) FROM t") == done.rows["update"]
    made = Counter(operations(place))
    assert made["WRITE"] + made["UPDATE"] + made["DELETE"] == 1 + done.changing
    lake(place, "OPTIMIZE t", "VACUUM t", "CHECKPOINT t")
    assert value(place, "SELECT count(*) FROM t") == rows
