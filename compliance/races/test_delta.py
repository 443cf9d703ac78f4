"""Processes that write one Delta table at the same time, or are killed while they do."""

from __future__ import annotations

import json
import random
from pathlib import Path
from urllib.parse import unquote

import pytest

from compliance.delta.readers import ALL, Readers
from compliance.peers.lakes import Place
from compliance.races.processes import LONG, killed, lake, run, value

PROCESSES = 6
COUNT = 100 if LONG else 12
COMMITS = 300 if LONG else 40
TABLE = "CREATE TABLE t (id INTEGER, worker INTEGER, counter INTEGER)"
ROWS = "INSERT INTO t SELECT i, NULL, 0 FROM range(400) r(i)"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("delta", f"delta:///{tmp_path}/lake", "", f"{tmp_path}/lake/")


def versions(place: Place) -> list[int]:
    return sorted(int(path.stem) for path in Path(place.data_path, "t", "_delta_log").glob("[0-9]*.json"))


def actions(place: Place) -> list[dict[str, dict[str, object]]]:
    log = sorted(Path(place.data_path, "t", "_delta_log").glob("[0-9]*.json"))
    return [json.loads(line) for path in log for line in path.read_text().splitlines()]


def added(place: Place) -> set[Path]:
    return {Path(place.data_path, "t", unquote(str(a["add"]["path"]))) for a in actions(place) if "add" in a}


def data_files(place: Place) -> set[Path]:
    return set(Path(place.data_path, "t").rglob("*.parquet")) - set(Path(place.data_path, "t", "_delta_log").iterdir())


def same_for_all(place: Place, readers: Readers, count: int) -> None:
    found = readers.read(Path(place.data_path, "t"))
    assert {name: len(found[name]) for name in ALL} == dict.fromkeys(ALL, count)


@pytest.mark.timeout(900)
def test_inserts_updates_and_deletes_add_up(place: Place, readers: Readers) -> None:
    lake(place, TABLE, ROWS)
    done = run("mixed", place, PROCESSES, COUNT)
    rows = 400 + done.rows["insert"] - done.rows["delete"]
    assert value(place, "SELECT count(*) FROM t") == value(place, "SELECT count(DISTINCT id) FROM t") == rows
    assert value(place, "SELECT sum(counter) FROM t") == done.rows["update"]
    assert versions(place) == list(range(2 + done.changing))
    assert data_files(place) == added(place)
    transactions = [str(a["commitInfo"]["txnId"]) for a in actions(place) if "commitInfo" in a]
    assert len(set(transactions)) == len(transactions)
    same_for_all(place, readers, rows)


@pytest.mark.timeout(900)
def test_appends_all_succeed(place: Place, readers: Readers) -> None:
    lake(place, TABLE)
    done = run("insert", place, PROCESSES, 2 * COUNT)
    assert done.rows["insert"] == value(place, "SELECT count(DISTINCT id) FROM t") == PROCESSES * 2 * COUNT
    assert versions(place) == list(range(1 + PROCESSES * 2 * COUNT))
    assert data_files(place) == added(place)
    same_for_all(place, readers, PROCESSES * 2 * COUNT)


@pytest.mark.timeout(900)
def test_what_was_acknowledged_is_there_whole_after_kills(place: Place, readers: Readers) -> None:
    lake(place, TABLE, ROWS)
    for commits, kills in killed("swap", place, COMMITS, random.Random(1), most=6, pause=0.1):
        made = versions(place)
        assert made == list(range(len(made)))
        assert commits <= made[-1] - 1 <= commits + kills
        assert value(place, "SELECT count(*) FROM t") == value(place, "SELECT count(DISTINCT id) FROM t") == 400
        assert added(place) <= data_files(place)
    same_for_all(place, readers, 400)
