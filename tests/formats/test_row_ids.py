"""`rowid` of the tables that the subqueries of a change read, on every kind of table that has row ids."""

from __future__ import annotations

import pytest

from tests.formats.lake import Lake
from tests.formats.test_returning import with_row_ids

SECOND = [(1, "a"), (3, "c"), (4, "d")]
"""What is left of the rows when the second has gone."""


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t WHERE rowid IN (SELECT rowid FROM t WHERE id = 2)",
        "DELETE FROM t WHERE rowid IN (SELECT t.rowid FROM t WHERE id = 2)",
        "DELETE FROM t AS a WHERE a.rowid = (SELECT b.rowid FROM t AS b WHERE b.id = 2)",
        "DELETE FROM t WHERE (SELECT count(*) FROM t AS b WHERE b.rowid < t.rowid) = 1",
        "DELETE FROM t WHERE EXISTS (SELECT * FROM (SELECT *, rowid AS r FROM t) b WHERE r = t.rowid AND b.id = 2)",
        "DELETE FROM t WHERE (id, v) IN (SELECT * FROM t b WHERE b.rowid = (SELECT max(rowid) FROM t WHERE id <= 2))",
        "DELETE FROM t USING (SELECT rowid AS r FROM t WHERE id = 2) s WHERE t.rowid = r",
        "DELETE FROM t USING (SELECT *, rowid FROM t) s WHERE t.rowid = s.rowid AND s.id = 2",
        "WITH s AS (SELECT *, rowid AS r FROM t) DELETE FROM t WHERE rowid IN (SELECT r FROM s WHERE id = 2)",
        "MERGE INTO t USING (SELECT rowid AS r FROM t WHERE id = 2) s ON t.rowid = r WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING (SELECT 2 AS k) s ON id = k AND t.rowid IN (SELECT rowid FROM t) WHEN MATCHED THEN DELETE",
    ],
)
def test_a_subquery_of_a_change_names_row_ids(lake: Lake, statement: str) -> None:
    with_row_ids(lake)
    assert lake(statement) == 1
    assert lake.rows() == SECOND
    lake.commit()
    assert lake.rows() == SECOND


@pytest.mark.parametrize("qualifier", ["", "t."])
def test_an_update_changes_the_rows_whose_ids_a_subquery_chose(lake: Lake, qualifier: str) -> None:
    with_row_ids(lake)
    ids = dict(lake("SELECT id, rowid FROM t"))
    chosen = f"SELECT {qualifier}rowid FROM t WHERE id = 2"
    assert lake(f"UPDATE t SET v = 'x' WHERE rowid IN ({chosen}) RETURNING rowid, *") == [(ids[2], 2, "x")]
    assert lake("UPDATE t SET v = (SELECT max(b.rowid) FROM t AS b WHERE b.id <= t.id) WHERE id = 3") == 1
    assert lake.rows() == [(1, "a"), (2, "x"), (3, str(ids[3])), (4, "d")]


def test_an_insert_takes_row_ids_and_no_hidden_columns_by_a_star(lake: Lake) -> None:
    with_row_ids(lake)
    ids = dict(lake("SELECT id, rowid FROM t"))
    assert lake("INSERT INTO t SELECT id + 10, rowid FROM t WHERE id = 2") == 1
    assert lake("INSERT INTO t SELECT * FROM t WHERE rowid = ?", ids[4]) == 1
    assert lake("WITH s AS (SELECT * FROM t WHERE rowid = ?) INSERT INTO t SELECT * FROM s", ids[4]) == 1
    assert lake("INSERT INTO t VALUES ((SELECT id FROM t WHERE rowid = ?), 'e')", ids[1]) == 1
    assert lake.rows() == [(1, "a"), (1, "e"), (12, str(ids[2])), (2, "b"), (3, "c"), *[(4, "d")] * 3]


def test_explain_tells_of_a_change_that_chooses_by_row_ids(lake: Lake) -> None:
    with_row_ids(lake)
    for statement in ("DELETE FROM t", "UPDATE t SET v = 'x'"):
        lines = lake(f"EXPLAIN {statement} WHERE rowid IN (SELECT rowid FROM t WHERE id = 2)")
        assert any("1 matched" in line for (line,) in lines)
    assert len(lake.rows()) == 4
