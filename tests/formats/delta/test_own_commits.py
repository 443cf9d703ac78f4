"""After a commit its table is known without a look at the log, and known as the log has it."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from lakedbapi.formats.delta import table as table_module
from lakedbapi.formats.delta.catalog import DeltaCatalog
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.table import DeltaTable
from tests.formats.delta.conftest import Connect

STATEMENTS = [
    "INSERT INTO t SELECT i, i % 3 FROM range(100) r(i)",
    "UPDATE t SET n = n + 1 WHERE i < 10",
    "UPDATE t SET n = n + 1 WHERE i BETWEEN 5 AND 20",
    "DELETE FROM t WHERE i % 7 = 0",
    "MERGE INTO t USING (SELECT 1000 AS i) s ON t.i = s.i WHEN NOT MATCHED THEN INSERT VALUES (s.i, 1)",
    "RESTORE TABLE t TO VERSION AS OF 2",
    "ALTER TABLE t ADD COLUMN x VARCHAR",
    "ALTER TABLE t SET ('delta.appendOnly' = 'false')",
    "DELETE FROM t WHERE i < 50",
    "INSERT INTO t (i, n) VALUES (1, 2)",
    "INSERT INTO t (i, n) VALUES (3, 4)",
    "OPTIMIZE t",
    "ALTER TABLE t SET ('delta.enableInCommitTimestamps' = 'true')",
    "INSERT INTO t (i, n) VALUES (5, 6)",
    "TRUNCATE TABLE t",
    "ALTER TABLE t SET ('delta.enableInCommitTimestamps' = 'false')",
    "INSERT INTO t (i, n) VALUES (7, 8)",
]


@pytest.fixture
def connection(connect: Connect, tmp_path: Path) -> lakedbapi.Connection:
    connection = connect(tmp_path, autocommit=True)
    connection.execute("CREATE TABLE t (i BIGINT, n BIGINT)")
    return connection


def _table(connection: lakedbapi.Connection, tmp_path: Path) -> DeltaTable:
    catalog = connection.catalog_view().catalog
    assert isinstance(catalog, DeltaCatalog)
    return catalog.table(f"{tmp_path}/t/")


def _files(state: TableState) -> list[list[dict[str, Any]]]:
    """Live files and tombstones, with their full paths."""
    files = state.files.append_column("full", state.paths)
    gone = state.tombstones.append_column("full", state.tombstone_paths)
    return [sorted(rows.to_pylist(), key=str) for rows in (files, gone)]


def test_the_state_after_a_commit_is_that_of_the_log(connection: lakedbapi.Connection, tmp_path: Path) -> None:
    known = _table(connection, tmp_path)
    replayed = []
    for statement in STATEMENTS:
        connection.execute(statement)
        fresh = DeltaTable(known.storage, known.root)
        first = fresh.at_version(0)
        for version in range(1, fresh.latest().version + 1):
            first = first.after(fresh.actions([version])[version], version, first.timestamp)
        state, read = known.latest(), fresh.latest()
        assert (state.version, state.timestamp) == fresh.times(fresh.listing(), read)[-1], statement
        assert replace(state, timestamp=read.timestamp) == read, statement
        assert _files(state) == _files(first), statement
        replayed.append(known.latest().version)
    assert replayed == list(range(1, len(STATEMENTS) + 1))


def test_times_are_those_of_files_again_once_they_are_not_in_commits(
    connection: lakedbapi.Connection, tmp_path: Path
) -> None:
    """Where an older file is younger than the later commits say."""
    connection.execute("ALTER TABLE t SET ('delta.enableInCommitTimestamps' = 'true')")
    connection.execute("INSERT INTO t VALUES (1, 1)")
    hour = time.time() + 3600
    os.utime(tmp_path / "t" / "_delta_log" / f"{1:020}.json", (hour, hour))
    connection.execute("ALTER TABLE t SET ('delta.enableInCommitTimestamps' = 'false')")
    known = _table(connection, tmp_path)
    fresh = DeltaTable(known.storage, known.root)
    assert known.latest().timestamp == fresh.latest().timestamp
    assert known.latest().timestamp.timestamp() > hour - 1


def test_a_commit_is_known_without_a_look_at_the_log(
    connection: lakedbapi.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute("INSERT INTO t VALUES (1, 1)")
    with monkeypatch.context() as patched:
        patched.delattr(table_module, "list_log")
        for number in range(2, 6):
            connection.execute("INSERT INTO t VALUES (?, 1)", [number])
        connection.execute("UPDATE t SET n = 2 WHERE i = 3")
        connection.execute("DELETE FROM t WHERE i = 4")
        assert connection.execute("SELECT i, n FROM t ORDER BY i").fetchall() == [(1, 1), (2, 1), (3, 2), (5, 1)]


def test_commits_of_others_are_seen_after_an_own_one(
    connection: lakedbapi.Connection, connect: Connect, tmp_path: Path
) -> None:
    other = connect(tmp_path, autocommit=True)
    for number in range(5):
        connection.execute("INSERT INTO t VALUES (?, 1)", [number])
        other.execute("UPDATE t SET n = n + 1")
        assert connection.execute("SELECT max(n) FROM t").fetchone() == (number + 2,)


def test_a_table_made_anew_right_after_a_commit_is_seen(
    connection: lakedbapi.Connection, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path.with_name(f"{tmp_path.name}-other")
    other = connect(elsewhere, autocommit=True)
    other.execute("CREATE TABLE t (i BIGINT, n BIGINT)")
    connection.execute("INSERT INTO t VALUES (1, 1)")
    other.execute("INSERT INTO t VALUES (7, 7)")
    other.execute("INSERT INTO t VALUES (8, 8)")
    follow = DeltaTable.follow

    def made_anew(self: DeltaTable, head: TableState, version: int, content: bytes) -> None:
        shutil.rmtree(tmp_path / "t")
        shutil.copytree(elsewhere / "t", tmp_path / "t")
        follow(self, head, version, content)

    monkeypatch.setattr(DeltaTable, "follow", made_anew)
    connection.execute("INSERT INTO t VALUES (2, 2)")
    assert connection.execute("SELECT i FROM t ORDER BY i").fetchall() == [(7,), (8,)]


def test_a_commit_stands_when_it_cannot_be_read_again(
    connection: lakedbapi.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise lakedbapi.OperationalError("the store is away")

    monkeypatch.setattr(DeltaTable, "follow", failing)
    connection.execute("INSERT INTO t VALUES (2, 2)")
    assert connection.execute("SELECT i FROM t").fetchall() == [(2,)]
