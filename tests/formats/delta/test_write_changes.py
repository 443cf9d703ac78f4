"""The change feed that a table stores tells each change once, and adds up to the difference of its versions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from lakedbapi.dml import new_rows
from lakedbapi.errors import NotSupportedError
from tests.formats.delta.committed import commit, info, of_kind, rows
from tests.formats.delta.conftest import Connect

FEED = "'delta.enableChangeDataFeed' = 'true'"
VECTORS = ["true", "false"]


@pytest.fixture(params=VECTORS, ids=["vectors", "rewriting"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    """A table of ten rows in two partitions."""
    connection = connect(tmp_path, autocommit=True)
    connection.execute(
        "CREATE TABLE t (i BIGINT, s VARCHAR, p VARCHAR) PARTITIONED BY (p) "
        f"WITH ({FEED}, 'delta.enableDeletionVectors' = '{request.param}')"
    )
    connection.execute("INSERT INTO t SELECT i, 's' || i, if(i < 5, 'a', 'b') FROM range(10) r(i)")
    return connection


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "t"


def changes(lake: lakedbapi.Connection, version: int) -> list[tuple[Any, ...]]:
    return rows(lake, f"SELECT change_type, i, s FROM table_changes('t', {version}, {version}) ORDER BY ALL")


def test_an_update_tells_both_sides(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("UPDATE t SET s = 'new' WHERE i IN (1, 7)")
    assert changes(lake, 2) == [
        ("update_postimage", 1, "new"),
        ("update_postimage", 7, "new"),
        ("update_preimage", 1, "s1"),
        ("update_preimage", 7, "s7"),
    ]
    cdc = of_kind(commit(table), "cdc")
    assert {action["partitionValues"]["p"] for action in cdc} == {"a", "b"}
    assert all(action["path"].startswith("_change_data/p=") and action["dataChange"] is False for action in cdc)
    assert info(table)["operationMetrics"]["numAddedChangeFiles"] == str(len(cdc))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_have_other_names_in_change_files(lake: lakedbapi.Connection, mode: str) -> None:
    lake.execute(f"CREATE TABLE m (i BIGINT, r STRUCT(x INTEGER)) WITH ({FEED}, 'delta.columnMapping.mode' = '{mode}')")
    lake.execute("INSERT INTO m SELECT i, {'x': i} FROM range(100) r(i)")
    lake.execute("UPDATE m SET r = {'x': 7} WHERE i = 3")
    lake.execute("ALTER TABLE m RENAME COLUMN i TO j")
    told = rows(lake, "SELECT change_type, j, r.x FROM table_changes('m', 2, 3) ORDER BY ALL")
    assert told == [("update_postimage", 3, 7), ("update_preimage", 3, 3)]


def test_an_update_that_changes_nothing_is_told(lake: lakedbapi.Connection) -> None:
    lake.execute("UPDATE t SET s = s WHERE i = 1")
    assert changes(lake, 2) == [("update_postimage", 1, "s1"), ("update_preimage", 1, "s1")]


def test_a_delete_tells_what_went(lake: lakedbapi.Connection) -> None:
    lake.execute("DELETE FROM t WHERE i IN (1, 7)")
    assert changes(lake, 2) == [("delete", 1, "s1"), ("delete", 7, "s7")]


def test_what_can_be_derived_is_not_stored(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("INSERT INTO t VALUES (50, 'x', 'a')")
    lake.execute("DELETE FROM t WHERE p = 'b'")
    lake.execute("TRUNCATE t")
    assert not (table / "_change_data").exists()
    assert [len(changes(lake, version)) for version in (2, 3, 4)] == [1, 5, 6]


def test_a_merge_tells_all_that_it_did(lake: lakedbapi.Connection) -> None:
    lake.execute(
        "MERGE INTO t USING (VALUES (1, 'm'), (2, 'm'), (60, 'n')) u(i, s) ON t.i = u.i "
        "WHEN MATCHED AND u.i = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET s = u.s "
        "WHEN NOT MATCHED THEN INSERT VALUES (u.i, u.s, 'c')"
    )
    assert changes(lake, 2) == [
        ("delete", 2, "s2"),
        ("insert", 60, "n"),
        ("update_postimage", 1, "m"),
        ("update_preimage", 1, "s1"),
    ]


def test_a_transaction_tells_its_net_change(lake: lakedbapi.Connection) -> None:
    lake.autocommit = False
    lake.execute("INSERT INTO t VALUES (70, 'x', 'a'), (71, 'y', 'a')")
    lake.execute("UPDATE t SET s = 'once' WHERE i IN (1, 70)")
    lake.execute("UPDATE t SET s = 'twice', p = 'b' WHERE i = 1")
    lake.execute("DELETE FROM t WHERE i IN (2, 71)")
    lake.execute("UPDATE t SET s = 'gone' WHERE i = 3")
    lake.execute("DELETE FROM t WHERE i = 3")
    lake.execute("UPDATE t SET s = 'late' WHERE i = 4")
    lake.commit()
    assert changes(lake, 2) == [
        ("delete", 2, "s2"),
        ("delete", 3, "s3"),
        ("insert", 70, "once"),
        ("update_postimage", 1, "twice"),
        ("update_postimage", 4, "late"),
        ("update_preimage", 1, "s1"),
        ("update_preimage", 4, "s4"),
    ]


def test_a_transaction_of_many_rows_tells_all(lake: lakedbapi.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_rows, "MEMORY_LIMIT", 0)
    lake.autocommit = False
    lake.execute("INSERT INTO t SELECT i, 'x', 'a' FROM range(70, 72) r(i)")
    lake.execute("UPDATE t SET s = 'new' WHERE i IN (1, 71)")
    lake.commit()
    assert changes(lake, 2) == [
        ("insert", 70, "x"),
        ("insert", 71, "new"),
        ("update_postimage", 1, "new"),
        ("update_preimage", 1, "s1"),
    ]


def test_the_feed_adds_up(lake: lakedbapi.Connection) -> None:
    statements = [
        "UPDATE t SET s = s || '!' WHERE i % 2 = 0",
        "DELETE FROM t WHERE i IN (0, 3)",
        "INSERT INTO t SELECT i + 100, s, p FROM t",
        "UPDATE t SET p = if(p = 'a', 'b', 'a') WHERE i > 5",
        "DELETE FROM t WHERE p = 'a'",
        (
            "MERGE INTO t USING (SELECT i FROM range(100, 115) r(i)) u ON t.i = u.i "
            "WHEN MATCHED AND t.i > 107 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'q' "
            "WHEN NOT MATCHED THEN INSERT VALUES (u.i, 'z', 'c')"
        ),
    ]
    for version, sql in enumerate(statements, start=2):
        before = Counter(rows(lake, "SELECT i, s, p FROM t"))
        lake.execute(sql)
        after = Counter(rows(lake, "SELECT i, s, p FROM t"))
        told = rows(lake, f"SELECT change_type, i, s, p FROM table_changes('t', {version}, {version})")
        gone = Counter(row[1:] for row in told if row[0] in ("delete", "update_preimage"))
        came = Counter(row[1:] for row in told if row[0] in ("insert", "update_postimage"))
        assert (before - gone) + came == after, sql
        assert gone <= before


@pytest.mark.parametrize("name", ["_change_type", "_Commit_Version", "_commit_timestamp"])
def test_columns_of_the_feed_are_its_own(lake: lakedbapi.Connection, name: str) -> None:
    for sql in (f"CREATE TABLE u ({name} INTEGER) WITH ({FEED})", f"ALTER TABLE t ADD COLUMN {name} INTEGER"):
        with pytest.raises(NotSupportedError, match=f"column '{name}', which the change feed"):
            lake.execute(sql)
    lake.execute(f"CREATE TABLE u ({name} INTEGER)")
    with pytest.raises(NotSupportedError, match="another name"):
        lake.execute(f"ALTER TABLE u SET ({FEED})")
