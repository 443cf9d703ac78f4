"""Checkpoints, the end of old log files, times of commits, and the stores that a log can lie on."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.delta.intervals import milliseconds
from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.storage.filesystem import Storage
from tests.formats.delta.committed import commit, info, of_kind, rows, values, versions
from tests.formats.delta.conftest import Connect

DAY = 86_400


@pytest.fixture
def lake(tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    return connect(tmp_path, autocommit=True)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "t"


def log(table: Path, pattern: str) -> list[Path]:
    return sorted((table / "_delta_log").glob(pattern))


def age(paths: list[Path], days: int) -> None:
    for path in paths:
        os.utime(path, (time.time() - days * DAY,) * 2)


def test_a_checkpoint_stands_for_the_log_before_it(lake: lakedbapi.Connection, table: Path) -> None:
    """With deletion vectors, tombstones and partitions."""
    lake.execute("CREATE TABLE t (i BIGINT, p VARCHAR) PARTITIONED BY (p)")
    for number in range(9):
        lake.execute("INSERT INTO t SELECT i, ? FROM range(100) r(i)", [None if number == 5 else f"p{number % 2}"])
    lake.execute("DELETE FROM t WHERE i = 7")
    (checkpoint,) = log(table, "*.checkpoint.parquet")
    assert checkpoint.name == f"{10:020}.checkpoint.parquet"
    stored = pq.read_table(checkpoint)
    assert b"ARROW:schema" not in (pq.read_metadata(checkpoint).metadata or {})
    hint = json.loads((table / "_delta_log" / "_last_checkpoint").read_text())
    assert (hint["version"], hint["size"], hint["numOfAddFiles"]) == (10, stored.num_rows, 9)
    assert hint["sizeInBytes"] == checkpoint.stat().st_size
    expected = rows(lake, "SELECT p, count(*), sum(i) FROM t GROUP BY p ORDER BY p")
    for path in log(table, "*.json"):
        path.unlink()
    with lakedbapi.connect(f"delta:///{table.parent}", autocommit=True) as fresh:
        assert rows(fresh, "SELECT p, count(*), sum(i) FROM t GROUP BY p ORDER BY p") == expected
        fresh.execute("DELETE FROM t WHERE i = 8")
        assert values(fresh, "SELECT count(*) FROM t") == [9 * 98]
    (remove, *_) = of_kind(commit(table), "remove")
    assert remove["deletionVector"]["cardinality"] == 1


def test_a_checkpoint_has_all_that_the_log_has(lake: lakedbapi.Connection, table: Path) -> None:
    """Tombstones with their vectors, progress of applications, configuration of domains."""
    lake.execute("CREATE TABLE t (i BIGINT) WITH ('delta.enableRowTracking' = 'true')")
    lake.execute("INSERT INTO t SELECT i FROM range(100) r(i)")
    for number in (5, 50):
        lake.execute("DELETE FROM t WHERE i = ?", [number])
    said = [
        {"txn": {"appId": "stream", "version": 7, "lastUpdated": 5}},
        {"txn": {"appId": "other", "version": 1}},
        {"domainMetadata": {"domain": "app", "configuration": "{}", "removed": False}},
    ]
    version = versions(table)[-1] + 1
    (table / "_delta_log" / f"{version:020}.json").write_text("".join(json.dumps(action) + "\n" for action in said))
    root = f"{table}/"
    before = DeltaTable(Storage.of(root), root).latest()
    assert [row["deletion_vector"] is None for row in before.tombstones.to_pylist()] == [True, False]
    lake.execute("CHECKPOINT")
    for path in log(table, "*.json"):
        path.unlink()
    after = DeltaTable(Storage.of(root), root).latest()
    assert (after.protocol, after.metadata) == (before.protocol, before.metadata)
    assert (after.txns, after.domains) == (before.txns, before.domains)
    assert len(after.txns) == len(after.domains) == 2
    untold = ["version", "data_change"]
    for name in ("files", "tombstones"):
        one, two = (getattr(state, name) for state in (before, after))
        kept = [column for column in one.column_names if column not in untold]
        assert two.select(kept).to_pylist() == one.select(kept).to_pylist()


def test_checkpoints_are_written_when_it_is_their_turn(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT) WITH ('delta.checkpointInterval' = '3')")
    for number in range(7):
        lake.execute("INSERT INTO t VALUES (?)", [number])
    assert [int(path.name[:20]) for path in log(table, "*.checkpoint.parquet")] == [3, 6]


def test_a_checkpoint_leaves_out_expired_tombstones(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute(
        "CREATE TABLE t (i BIGINT) WITH ('delta.checkpointInterval' = '4', "
        "'delta.deletedFileRetentionDuration' = 'interval 0 seconds', 'delta.checkpoint.writeStatsAsJson' = 'false')"
    )
    lake.execute("INSERT INTO t VALUES (1)")
    lake.execute("TRUNCATE t")
    lake.execute("INSERT INTO t VALUES (2)")
    lake.execute("INSERT INTO t VALUES (3)")
    (checkpoint,) = log(table, "*.checkpoint.parquet")
    stored = pq.read_table(checkpoint)
    assert stored["remove"].null_count == stored.num_rows
    adds = [add for add in stored["add"].to_pylist() if add is not None]
    assert [add["stats"] for add in adds] == [None, None]
    assert all(add["dataChange"] is False for add in adds)


def test_a_tombstone_without_a_time_is_expired(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT 1 AS i")
    lake.execute("TRUNCATE t")
    lake.execute("INSERT INTO t VALUES (2)")
    path = log(table, f"{1:020}.json")[0]
    actions = commit(table, 1)
    del of_kind(actions, "remove")[0]["deletionTimestamp"]
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    with lakedbapi.connect(f"delta:///{table.parent}", autocommit=True) as fresh:
        fresh.execute("CHECKPOINT")
    (checkpoint,) = log(table, "*.checkpoint.parquet")
    stored = pq.read_table(checkpoint)
    assert stored["remove"].null_count == stored.num_rows


def test_old_log_files_end_at_a_checkpoint(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT) WITH ('delta.checkpointInterval' = '5')")
    for number in range(9):
        lake.execute("INSERT INTO t VALUES (?)", [number])
    others = [f"{2:020}.{4:020}.compacted.json", f"{3:020}.crc", f"{5:020}.crc", "_autostats", "mine.json"]
    for name in others:
        (table / "_delta_log" / name).write_text("")
    age(log(table, "*"), 40)
    lake.execute("INSERT INTO t VALUES (9)")
    assert versions(table) == [5, 6, 7, 8, 9, 10]
    assert [name for name in others if (table / "_delta_log" / name).exists()] == others[2:]
    with lakedbapi.connect(f"delta:///{table.parent}") as fresh:
        assert values(fresh, "SELECT count(*) FROM t") == [10]
        assert values(fresh, "SELECT count(*) FROM t VERSION AS OF 5") == [5]
        with pytest.raises(ProgrammingError, match="5 to 10"):
            fresh.execute("SELECT * FROM t VERSION AS OF 4")


@pytest.mark.parametrize(
    ("hint", "first"), [('{"version":2,"size":4}', 2), ("no JSON", 4), ('{"version":"x"}', 4), ("[2]", 4), (None, 4)]
)
def test_the_checkpoint_that_readers_are_led_to_stays(
    lake: lakedbapi.Connection, table: Path, hint: str | None, first: int
) -> None:
    """They take its absence for damage, also where a writer died before it told of a newer one."""
    lake.execute("CREATE TABLE t (i BIGINT) WITH ('delta.checkpointInterval' = '2')")
    for number in range(4):
        lake.execute("INSERT INTO t VALUES (?)", [number])
    last = table / "_delta_log" / "_last_checkpoint"
    last.unlink()
    if hint is not None:
        last.write_text(hint)
    age(log(table, "*"), 40)
    lake.execute("CHECKPOINT t")
    assert [int(path.name[:20]) for path in log(table, "*.checkpoint.parquet")] == list(range(first, 5, 2))
    assert versions(table)[0] == first


def test_log_files_of_this_day_stay(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute(
        "CREATE TABLE t (i BIGINT) WITH "
        "('delta.checkpointInterval' = '2', 'delta.logRetentionDuration' = 'interval 0 seconds')"
    )
    for number in range(6):
        lake.execute("INSERT INTO t VALUES (?)", [number])
    assert versions(table) == list(range(7))


def test_files_of_checkpoints_go_with_these(
    lake: lakedbapi.Connection, table: Path, golden: Callable[[str], Path]
) -> None:
    shutil.copytree(golden("g-v2-checkpoint-json"), table)
    sidecars = table / "_delta_log" / "_sidecars"
    named = sorted(sidecars.glob("*.parquet"))
    for name in ("old", "young"):
        shutil.copy(named[0], sidecars / f"{name}.parquet")
    count = values(lake, "SELECT count(*) FROM t")
    age([*log(table, "*"), *named, sidecars / "old.parquet"], 40)
    lake.execute("CHECKPOINT t")
    assert sorted(sidecars.iterdir()) == sorted([*named, sidecars / "young.parquet"])
    lake.execute("INSERT INTO t SELECT * FROM t LIMIT 1")
    lake.execute("CHECKPOINT t")
    assert sorted(sidecars.iterdir()) == sorted([*named, sidecars / "young.parquet"])
    age([*log(table, "*"), *sidecars.iterdir()], 40)
    lake.execute("CHECKPOINT t")
    assert not list(sidecars.iterdir())
    with lakedbapi.connect(f"delta:///{table.parent}") as fresh:
        assert values(fresh, "SELECT count(*) FROM t") == [count[0] + 1]


@pytest.mark.parametrize("prefix", ["file://{}/", "file:{}/", "{}/", "s3a://elsewhere/before/t/_delta_log/_sidecars/"])
def test_files_of_checkpoints_that_are_named_by_their_whole_path_stay(
    lake: lakedbapi.Connection, table: Path, golden: Callable[[str], Path], prefix: str
) -> None:
    """They lie in the log whatever the path says, which is another one where the table was copied from."""
    shutil.copytree(golden("g-v2-checkpoint-json"), table)
    sidecars = table / "_delta_log" / "_sidecars"
    (checkpoint,) = log(table, "*.checkpoint.*.json")
    text = checkpoint.read_text()
    assert text.count('"sidecar":{"path":"') > 0
    checkpoint.write_text(text.replace('"sidecar":{"path":"', '"sidecar":{"path":"' + prefix.format(sidecars)))
    named = sorted(sidecars.glob("*.parquet"))
    count = values(lake, "SELECT count(*) FROM t")
    age([*log(table, "*"), *named], 40)
    lake.execute("CHECKPOINT t")
    assert sorted(sidecars.glob("*.parquet")) == named
    for path in log(table, "*1.json"):
        path.unlink()
    with lakedbapi.connect(f"delta:///{table.parent}") as fresh:
        assert values(fresh, "SELECT count(*) FROM t") == count


def test_a_table_that_protects_its_checkpoints_keeps_its_log(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT) WITH ('delta.feature.checkpointProtection' = 'supported')")
    lake.execute("CHECKPOINT t")
    lake.execute("INSERT INTO t VALUES (1)")
    lake.execute("CHECKPOINT t")
    age(log(table, "*"), 40)
    lake.execute("CHECKPOINT t")
    assert versions(table) == [0, 1]


@pytest.mark.parametrize(
    "property", ["'delta.enableExpiredLogCleanup' = 'false'", "'delta.logRetentionDuration' = 'interval 60 days'"]
)
def test_log_files_are_kept_where_that_is_asked(lake: lakedbapi.Connection, table: Path, property: str) -> None:
    lake.execute(f"CREATE TABLE t (i BIGINT) WITH ('delta.checkpointInterval' = '2', {property})")
    for number in range(3):
        lake.execute("INSERT INTO t VALUES (?)", [number])
    age(log(table, "*"), 40)
    lake.execute("INSERT INTO t VALUES (9)")
    assert versions(table) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", 7 * DAY * 1000),
        ("interval 30 days", 30 * DAY * 1000),
        ("INTERVAL 1 day 12 hours", 129_600_000),
        ("5 minutes", 300_000),
    ],
)
def test_intervals(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["", "interval", "1 month", "interval 3", "interval days", "1 day and more"])
def test_what_is_no_interval(text: str) -> None:
    with pytest.raises(ProgrammingError, match="interval"):
        milliseconds(text)


def test_commits_have_their_own_times_where_the_table_asks(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT) WITH ('delta.enableInCommitTimestamps' = 'true')")
    for number in range(3):
        lake.execute("INSERT INTO t VALUES (?)", [number])
    times = [info(table, version)["inCommitTimestamp"] for version in versions(table)]
    assert times == sorted(set(times))
    assert list(commit(table)[0]) == ["commitInfo"]
    age(log(table, "*.json"), 400)
    with lakedbapi.connect(f"delta:///{table.parent}", autocommit=True) as fresh:
        fresh.execute("INSERT INTO t VALUES (9)")
        assert values(fresh, "SELECT count(*) FROM t") == [4]


def test_times_of_commits_ascend_though_a_clock_goes_back(
    lake: lakedbapi.Connection, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.execute("CREATE TABLE t (i BIGINT) WITH ('delta.enableInCommitTimestamps' = 'true')")
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 3600 * 10**9)
    for number in range(2):
        lake.execute("INSERT INTO t VALUES (?)", [number])
    first, *later = (info(table, version)["inCommitTimestamp"] for version in versions(table))
    assert later == [first + 1, first + 2]


def test_times_of_commits_ascend_from_that_of_a_checkpoint(
    lake: lakedbapi.Connection, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a writer whose clock goes ahead."""
    ahead = time.time_ns() + 3600 * 10**9
    with monkeypatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: ahead)
        lake.execute(
            "CREATE TABLE t (i BIGINT) WITH "
            "('delta.enableInCommitTimestamps' = 'true', 'delta.checkpointInterval' = '2')"
        )
        for number in range(2):
            lake.execute("INSERT INTO t VALUES (?)", [number])
    assert log(table, f"{2:020}.checkpoint.parquet")
    with lakedbapi.connect(f"delta:///{table.parent}", autocommit=True) as fresh:
        fresh.execute("INSERT INTO t VALUES (9)")
    first, *later = (info(table, version)["inCommitTimestamp"] for version in versions(table))
    assert later == [first + 1, first + 2, first + 3]


def test_times_in_commits_are_switched_on_later(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT)")
    lake.execute("INSERT INTO t VALUES (1)")
    lake.execute("ALTER TABLE t SET ('delta.enableInCommitTimestamps' = 'true')")
    (changed,) = of_kind(commit(table, 2), "metaData")
    assert changed["configuration"]["delta.inCommitTimestampEnablementVersion"] == "2"
    time = str(info(table, 2)["inCommitTimestamp"])
    assert changed["configuration"]["delta.inCommitTimestampEnablementTimestamp"] == time
    lake.execute("INSERT INTO t VALUES (2)")
    assert len(rows(lake, "SELECT * FROM history('t')")) == 4
    assert values(lake, "SELECT count(*) FROM t TIMESTAMP AS OF now()") == [2]
    lake.execute("CREATE OR REPLACE TABLE t WITH ('delta.enableInCommitTimestamps' = 'true') AS SELECT 9 AS j")
    (replaced,) = of_kind(commit(table), "metaData")
    assert replaced["configuration"]["delta.inCommitTimestampEnablementVersion"] == "2"
    lake.execute("ALTER TABLE t SET ('delta.enableInCommitTimestamps' = 'false')")
    (without,) = of_kind(commit(table), "metaData")
    assert not [name for name in without["configuration"] if "Enablement" in name]
    assert len(rows(lake, "SELECT * FROM history('t')")) == 6


def test_rows_of_tracked_tables_get_ids(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT) WITH ('delta.feature.rowTracking' = 'supported')")
    lake.execute("INSERT INTO t SELECT i FROM range(10) r(i)")
    lake.execute("INSERT INTO t SELECT i FROM range(5) r(i)")
    (add,) = of_kind(commit(table), "add")
    (domain,) = of_kind(commit(table), "domainMetadata")
    assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (10, 2)
    assert json.loads(domain["configuration"]) == {"rowIdHighWaterMark": 14}
    lake.execute("DELETE FROM t WHERE i = 7")
    (again,), (remove,) = of_kind(commit(table), "add"), of_kind(commit(table), "remove")
    assert (again["baseRowId"], again["defaultRowCommitVersion"]) == (0, 1)
    assert remove["baseRowId"] == 0


def test_a_table_on_a_remote_store(remote: dict[str, object]) -> None:
    connections = [lakedbapi.connect(**remote, autocommit=False) for _ in range(2)]  # type: ignore[arg-type]
    first, second = connections
    first.execute("CREATE SCHEMA s")
    first.commit()
    first.execute("CREATE TABLE s.t (i BIGINT, p VARCHAR) PARTITIONED BY (p)")
    first.execute("INSERT INTO s.t SELECT i, 'ab' FROM range(100) r(i)")
    first.commit()
    second.execute("DELETE FROM s.t WHERE i = 1")
    first.execute("DELETE FROM s.t WHERE i * i % 7 = 2")
    first.commit()
    second.commit()
    for number in range(10):
        first.execute("INSERT INTO s.t VALUES (?, 'c')", [1000 + number])
        first.commit()
    second.rollback()
    gone = sum(1 for i in range(100) if i * i % 7 == 2 or i == 1)
    assert values(second, "SELECT count(*) FROM s.t") == [110 - gone]
    second.execute("DROP TABLE s.t")
    second.commit()
    first.rollback()
    assert values(first, "SHOW TABLES FROM s") == []
    for connection in connections:
        connection.close()
