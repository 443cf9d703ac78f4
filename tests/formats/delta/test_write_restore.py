"""RESTORE of Delta tables: a new version with the rows and columns of an earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from tests.formats.delta.committed import info, rows
from tests.formats.delta.conftest import Connect

PROPERTIES = {
    "plain": "'delta.enableDeletionVectors' = 'false'",
    "vectors": "'delta.enableDeletionVectors' = 'true'",
    "mapped": "'delta.columnMapping.mode' = 'name'",
    "feed": "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'false'",
}


def state(lake: lakedbapi.Connection, version: int | None = None) -> tuple[list[str], list[Any]]:
    """Column names and rows."""
    cursor = lake.execute("SELECT * FROM t" + ("" if version is None else f" FOR VERSION AS OF {version}"))
    assert cursor.description is not None
    return [column[0] for column in cursor.description], sorted(cursor.fetchall(), key=repr)


@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=PROPERTIES)
def test_every_version_can_be_restored(tmp_path: Path, connect: Connect, properties: str) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t (k INTEGER, v VARCHAR) WITH ({properties})")
    lake.execute("INSERT INTO t SELECT i, 'v' || i FROM range(100) r(i)")
    lake.execute("DELETE FROM t WHERE k < 50 AND k % 2 = 0")
    lake.execute("UPDATE t SET v = 'u' WHERE k = 77")
    lake.execute("INSERT INTO t VALUES (1000, 'x')")
    if "columnMapping" in properties:
        lake.execute("ALTER TABLE t ADD COLUMN n INTEGER")
        lake.execute("UPDATE t SET n = k WHERE k > 90")
        lake.execute("ALTER TABLE t RENAME COLUMN v TO w")
        lake.execute("ALTER TABLE t DROP COLUMN n")
    lake.execute("DELETE FROM t WHERE k > 60")
    ((last,),) = rows(lake, "SELECT max(snapshot_id) FROM history('t')")
    expected = {version: state(lake, version) for version in range(last + 1)}
    for version in (last, 1, last, *range(last, -1, -1)):
        before = len(state(lake)[1])
        cursor = lake.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
        assert state(lake) == expected[version]
        assert before + cursor.rows_inserted - cursor.rows_deleted == len(expected[version][1])
    assert {version: state(lake, version) for version in expected} == expected
    assert info(tmp_path / "t")["operation"] == "RESTORE"
    assert info(tmp_path / "t")["operationParameters"] == {"version": "0"}


def test_the_feed_of_a_restore_leads_from_one_version_to_the_other(tmp_path: Path, connect: Connect) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t (k INTEGER) WITH ({PROPERTIES['feed']})")
    lake.execute("INSERT INTO t SELECT i FROM range(5) r(i)")
    lake.execute("DELETE FROM t WHERE k = 3")
    lake.execute("RESTORE TABLE t TO VERSION AS OF 1")
    kinds = rows(lake, "SELECT change_type, k FROM table_changes('t', 3, 3)")
    gone, come = ([k for kind, k in kinds if kind == name] for name in ("delete", "insert"))
    assert sorted(come) == [0, 1, 2, 3, 4]
    assert sorted(gone) == [0, 1, 2, 4]


def test_a_version_that_is_not_there_is_told(tmp_path: Path, connect: Connect) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute("CREATE TABLE t AS SELECT 1 AS i")
    with pytest.raises(lakedbapi.ProgrammingError, match=r"no version 99 .*versions 0 to 0 can be read"):
        lake.execute("RESTORE TABLE t TO VERSION AS OF 99")
    with pytest.raises(lakedbapi.ProgrammingError, match="no version at 1990"):
        lake.execute("RESTORE TABLE t TO TIMESTAMP AS OF '1990-01-01'")
