"""RESTORE: rows, their ids and the definition of a table as they were, and all that came since stays readable."""

from __future__ import annotations

import random
from typing import Any

import pytest

import lakedbapi
from tests.dml.conftest import Lake
from tests.maintenance.histories import changes, live, newest, statements


def at(lake: Lake, version: int | None = None) -> list[Any]:
    """Columns and rows, with their ids."""
    point = "" if version is None else f" FOR VERSION AS OF {version}"
    found = lake(f"SELECT rowid, * FROM t{point}")
    assert lake.cursor.description is not None
    return [[column[:2] for column in lake.cursor.description], sorted(found, key=repr)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("maintained", [False, True], ids=["plain", "maintained"])
def test_restore_brings_rows_ids_and_columns_back(lake: Lake, seed: int, maintained: bool) -> None:
    choice = random.Random(seed)
    if choice.random() < 0.5:
        lake("CALL lake.set_option('data_inlining_row_limit', 0)")
    for statement in statements(seed, 10):
        lake(statement)
    if maintained:
        lake("CHECKPOINT")
        lake("OPTIMIZE t")
    lake("CREATE TABLE u AS SELECT 1 AS i")
    last = newest(lake)
    feed = changes(lake, 1, last)
    for version in choice.sample(range(1, last + 1), 2):
        before, expected = at(lake), at(lake, version)
        count = lake(f"RESTORE TABLE t TO VERSION AS OF {version}")
        inserted, deleted = lake.cursor.rows_inserted, lake.cursor.rows_deleted
        assert at(lake) == expected
        assert at(lake, version) == expected
        assert count == inserted + deleted
        assert len(before[1]) + inserted - deleted == len(expected[1])
        lake("INSERT INTO t (k, g) VALUES (-1, 'new'), (-2, 'new')")
        assert len(at(lake)[1]) == len(expected[1]) + 2
        assert lake("SELECT count(DISTINCT rowid) = count(*) FROM t") == [(True,)]
    assert changes(lake, 1, last) == feed
    assert lake("SELECT * FROM u") == [(1,)]


def test_restore_to_a_time(t: Lake) -> None:
    expected = at(t, newest(t))
    ((now,),) = t("SELECT max(snapshot_time) FROM snapshots()")
    t("DELETE FROM t")
    t("RESTORE t TO TIMESTAMP AS OF ?", now)
    assert at(t) == expected


def test_restore_to_what_is_makes_no_snapshot(t: Lake) -> None:
    last = newest(t)
    assert t(f"RESTORE TABLE t TO VERSION AS OF {last}") == 0
    assert newest(t) == last


def test_restore_reads_back_many_rows_as_files(lake: Lake) -> None:
    lake("CREATE TABLE t AS SELECT i AS k FROM range(300_000) r(i)")
    version = newest(lake)
    lake("UPDATE t SET k = k + 1 WHERE k % 2 = 0")
    assert lake(f"RESTORE TABLE t TO VERSION AS OF {version}") == 300_000
    assert lake("SELECT count(*), sum(k), sum(rowid), count(DISTINCT rowid) FROM t") == [
        (300_000, *(sum(range(300_000)),) * 2, 300_000)
    ]


def test_restore_leaves_files_alone_that_did_not_change(t: Lake) -> None:
    version, before = newest(t), live(t)
    t("INSERT INTO t SELECT i, 5 FROM range(1000, 1100) r(i)")
    t(f"RESTORE TABLE t TO VERSION AS OF {version}")
    assert live(t) == before


def test_restore_in_a_transaction_can_be_undone(t: Lake) -> None:
    now, version = at(t), newest(t)
    t("BEGIN")
    t("DELETE FROM t WHERE k < 120")
    t("ALTER TABLE t ADD COLUMN extra INTEGER DEFAULT 3")
    t("INSERT INTO t VALUES (5000, 1, 1)")
    t("SAVEPOINT s")
    changed = at(t)
    t(f"RESTORE TABLE t TO VERSION AS OF {version - 1}")
    assert at(t) == at(t, version - 1)
    t("ROLLBACK TO s")
    assert at(t) == changed
    t(f"RESTORE TABLE t TO VERSION AS OF {version}")
    assert at(t) == now
    t("INSERT INTO t VALUES (6000, 1)")
    t("COMMIT")
    assert t("SELECT count(*) FROM t") == [(len(now[1]) + 1,)]
    t("BEGIN")
    t("RESTORE TABLE t TO VERSION AS OF 2")
    t("ROLLBACK")
    assert t("SELECT count(*) FROM t") == [(len(now[1]) + 1,)]


def test_restore_narrows_a_widened_column(lake: Lake) -> None:
    lake("CREATE TABLE t (k SMALLINT)")
    lake("INSERT INTO t SELECT i FROM range(50) r(i)")
    version = newest(lake)
    lake("ALTER TABLE t ALTER COLUMN k TYPE BIGINT")
    lake("INSERT INTO t VALUES (5000000000)")
    lake(f"RESTORE TABLE t TO VERSION AS OF {version}")
    assert lake("SELECT typeof(k), count(*), max(k) FROM t GROUP BY 1") == [("SMALLINT", 50, 49)]
    lake("INSERT INTO t VALUES (77)")
    assert lake("SELECT max(k) FROM t") == [(77,)]


def test_restore_brings_keys_partitioning_and_sorting_back(lake: Lake) -> None:
    lake("CREATE TABLE t (k INTEGER PRIMARY KEY, g VARCHAR) PARTITIONED BY (g) SORTED BY (k DESC)")
    lake("INSERT INTO t SELECT i, 'g' || i % 2 FROM range(50) r(i)")
    version = newest(lake)
    structure = lake.connection.catalog_view().table("main", "t")
    lake("ALTER TABLE t RESET PARTITIONED BY")
    lake("ALTER TABLE t RESET SORTED BY")
    lake("ALTER TABLE t DROP COLUMN g")
    lake("UPDATE t SET k = k + 100")
    lake("COMMENT ON TABLE t IS 'stays'")
    lake(f"RESTORE TABLE t TO VERSION AS OF {version}")
    now = lake.connection.catalog_view().table("main", "t")
    assert structure is not None
    assert now is not None
    assert structure.partitioning is not None
    assert now.partitioning is not None
    assert now.partitioning.fields == structure.partitioning.fields
    assert (now.sorting, now.constraints, now.schema) == (structure.sorting, structure.constraints, structure.schema)
    assert now.comment == "stays"
    assert lake("SELECT count(*), min(k) FROM t WHERE g = 'g1'") == [(25, 1)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("RESTORE TABLE t TO VERSION AS OF 999", "No snapshot found at version 999"),
        ("RESTORE TABLE t TO VERSION AS OF 0", "does not have this table"),
        ("RESTORE TABLE t TO TIMESTAMP AS OF '1999-01-01'", "No snapshot found"),
        ("RESTORE TABLE nosuch TO VERSION AS OF 1", "table nosuch does not exist"),
        ("RESTORE TABLE v TO VERSION AS OF 5", "v is a view"),
        ("RESTORE TABLE t TO VERSION AS OF getenv('HOME')", "getenv is not allowed"),
        ("OPTIMIZE t WHERE k > getenv('HOME')::INTEGER", "getenv is not allowed"),
        ("RESTORE TABLE t TO 3", "expected VERSION AS OF or TIMESTAMP AS OF"),
    ],
)
def test_restore_refuses(t: Lake, sql: str, message: str) -> None:
    t("CREATE VIEW v AS SELECT 1 AS i")
    with pytest.raises(lakedbapi.ProgrammingError, match=message):
        t(sql)


def test_restore_of_a_dropped_table_tells_the_way(t: Lake) -> None:
    version = newest(t)
    t("DROP TABLE t")
    with pytest.raises(lakedbapi.ProgrammingError, match="the table was dropped since"):
        t(f"RESTORE TABLE t TO VERSION AS OF {version}")
    t(f"CREATE TABLE t AS SELECT * FROM t FOR VERSION AS OF {version}")
    assert t("SELECT count(*) FROM t") == [(249,)]


def test_restore_of_a_table_made_anew_says_so(t: Lake) -> None:
    version = newest(t)
    t("CREATE OR REPLACE TABLE t (other INTEGER)")
    with pytest.raises(lakedbapi.ProgrammingError, match="perhaps another of its name"):
        t(f"RESTORE TABLE t TO VERSION AS OF {version}")
