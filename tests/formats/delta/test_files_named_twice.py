"""Tables in which a faulty writer left one file twice, with different deleted rows: all entries are read, and no change
makes more of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lakedbapi
from lakedbapi.errors import DataError
from tests.formats.delta.conftest import Connect

ROWS = [(1,), (1,), (2,), (2,), (3,), (4,)]


@pytest.fixture
def t(tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    """Version 2 has the rows 1 to 4, version 4 those of `ROWS`: it adds again a file that version 3 deleted 3 from."""
    writer = connect(tmp_path, autocommit=True)
    writer.execute("CREATE TABLE t (i INTEGER)")
    writer.execute("INSERT INTO t VALUES (1), (2), (3)")
    writer.execute("INSERT INTO t VALUES (4)")
    writer.execute("DELETE FROM t WHERE i = 3")
    log = tmp_path / "t" / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{1:020}.json").read_text().splitlines()]
    (add,) = [action for action in actions if "add" in action]
    (log / f"{4:020}.json").write_text(json.dumps(add) + "\n")
    connection = connect(tmp_path, autocommit=True)
    assert connection.execute("SELECT i FROM t ORDER BY i").fetchall() == ROWS
    return connection


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t WHERE i = 1",
        "DELETE FROM t WHERE i = 3",
        "UPDATE t SET i = 9 WHERE i = 2",
        "UPDATE t SET i = 9 WHERE i = 3",
        "MERGE INTO t USING (SELECT 3 AS k) ON i = k WHEN MATCHED THEN DELETE",
        "RESTORE TABLE t TO VERSION AS OF 2",
        "PURGE FROM t WHERE i = 1",
    ],
)
def test_a_change_of_some_rows_is_refused_with_the_ways_out(t: lakedbapi.Connection, statement: str) -> None:
    with pytest.raises(DataError, match=r"names the file .*\.parquet twice.* CREATE OR REPLACE TABLE t AS SELECT"):
        t.execute(statement)
    assert t.execute("SELECT i FROM t ORDER BY i").fetchall() == ROWS


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("INSERT INTO t VALUES (5)", [*ROWS, (5,)]),
        ("DELETE FROM t", []),
        ("DELETE FROM t WHERE i < 4", [(4,)]),
        ("TRUNCATE t", []),
        ("UPDATE t SET i = i + 1", [(2,), (2,), (3,), (3,), (4,), (5,)]),
        ("OPTIMIZE t", ROWS),
        ("CREATE OR REPLACE TABLE t AS SELECT * FROM t FOR VERSION AS OF 2", [(1,), (2,), (3,), (4,)]),
        ("CREATE OR REPLACE TABLE t AS SELECT DISTINCT * FROM t", [(1,), (2,), (3,), (4,)]),
    ],
)
def test_what_gives_up_or_keeps_both_entries_works(
    t: lakedbapi.Connection, statement: str, left: list[tuple[int]], tmp_path: Path, connect: Connect
) -> None:
    t.execute(statement)
    for connection in (t, connect(tmp_path)):
        assert connection.execute("SELECT i FROM t ORDER BY i").fetchall() == left
    if not statement.startswith("INSERT"):
        t.execute("INSERT INTO t VALUES (7), (8)")
        t.execute("DELETE FROM t WHERE i = 7")
        assert t.execute("SELECT i FROM t ORDER BY i").fetchall() == [*left, (8,)]
