"""Two explicit transactions that change the same lake: which both succeed, and which the second one is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakedbapi
from compliance.peers.lakes import Place, on_postgresql, on_sqlite
from compliance.races.processes import orphans
from tests.faults.conftest import Connect

Pair = tuple[lakedbapi.Connection, lakedbapi.Connection]


@pytest.fixture(params=["sqlite-inlined", "postgresql-files"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite-inlined":
        yield on_sqlite(tmp_path)
    else:
        with on_postgresql(tmp_path) as place:
            yield place


@pytest.fixture
def pair(place: Place, connect: Connect) -> Pair:
    """Two connections to a lake with the table `t(id INTEGER, n INTEGER)` of ids 0 to 99, in the catalog or a file."""
    first, second = connect(), connect()
    limit = "1000" if place.backend == "sqlite" else "0"
    first.execute(f"CALL ducklake_set_option('lake', 'data_inlining_row_limit', '{limit}')")
    first.execute("CREATE TABLE t (id INTEGER, n INTEGER)")
    first.execute("INSERT INTO t SELECT i, 0 FROM range(100) r(i)")
    first.commit()
    return first, second


BOTH_SUCCEED = {
    "inserts": ("INSERT INTO t VALUES (100, 1)", "INSERT INTO t VALUES (101, 1)", 102),
    "deletes of different rows of one file": ("DELETE FROM t WHERE id < 5", "DELETE FROM t WHERE id > 89", 85),
    "an update and a delete of different rows": ("UPDATE t SET n = 1 WHERE id < 5", "DELETE FROM t WHERE id > 89", 90),
    "updates of different rows": ("UPDATE t SET n = 1 WHERE id < 5", "UPDATE t SET n = 1 WHERE id > 89", 100),
    "an insert and a delete": ("INSERT INTO t VALUES (100, 1)", "DELETE FROM t WHERE id < 5", 96),
    "an insert and a delete of all": ("INSERT INTO t VALUES (100, 1)", "DELETE FROM t", 1),
    "an insert and a truncate": ("INSERT INTO t VALUES (100, 1)", "TRUNCATE t", 1),
    "a new table and an insert": ("CREATE TABLE u (i INTEGER)", "INSERT INTO t VALUES (100, 1)", 101),
    "new tables": ("CREATE TABLE u (i INTEGER)", "CREATE TABLE v (i INTEGER)", 100),
    "a comment and an insert": ("COMMENT ON TABLE t IS 'x'", "INSERT INTO t VALUES (100, 1)", 101),
}


@pytest.mark.parametrize(("first", "second", "rows"), BOTH_SUCCEED.values(), ids=BOTH_SUCCEED)
def test_both_succeed(pair: Pair, place: Place, first: str, second: str, rows: int) -> None:
    one, other = pair
    one.execute(first)
    other.execute(second)
    one.commit()
    other.commit()
    for connection in pair:
        connection.rollback()
        assert connection.execute("SELECT count(*), count(DISTINCT id) FROM t").fetchone() == (rows, rows)
    assert not orphans(place)


SECOND_IS_REFUSED = {
    "deletes of the same row": ("DELETE FROM t WHERE id = 7", "DELETE FROM t WHERE id = 7"),
    "deletes of overlapping rows": ("DELETE FROM t WHERE id < 50", "DELETE FROM t WHERE id > 40"),
    "a delete and an update of the same row": ("DELETE FROM t WHERE id = 7", "UPDATE t SET n = 1 WHERE id = 7"),
    "an update and a delete of the same row": ("UPDATE t SET n = 1 WHERE id = 7", "DELETE FROM t WHERE id = 7"),
    "updates of the same row": ("UPDATE t SET n = 1 WHERE id = 7", "UPDATE t SET n = 2 WHERE id = 7"),
    "deletes of all": ("DELETE FROM t", "DELETE FROM t"),
    "a delete of one row and of all": ("DELETE FROM t WHERE id = 7", "TRUNCATE t"),
    "a delete of all and an update": ("TRUNCATE t", "UPDATE t SET n = 1 WHERE id = 7"),
    "a merge and an update": (
        "MERGE INTO t USING (SELECT 7 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1",
        "UPDATE t SET n = 2 WHERE id < 10",
    ),
    "a new column and an insert": ("ALTER TABLE t ADD COLUMN x INTEGER", "INSERT INTO t VALUES (100, 1)"),
    "a dropped column and an update": ("ALTER TABLE t DROP COLUMN n", "UPDATE t SET n = 2 WHERE id < 10"),
    "a drop and an insert": ("DROP TABLE t", "INSERT INTO t VALUES (100, 1)"),
    "a drop and a delete": ("DROP TABLE t", "DELETE FROM t WHERE id < 10"),
    "drops": ("DROP TABLE t", "DROP TABLE t"),
    "a drop and a new column": ("DROP TABLE t", "ALTER TABLE t ADD COLUMN x INTEGER"),
    "tables of one name": ("CREATE TABLE u (i INTEGER)", "CREATE TABLE U (j INTEGER)"),
    "schemas of one name": ("CREATE SCHEMA s", "CREATE SCHEMA S"),
    "new columns": ("ALTER TABLE t ADD COLUMN x INTEGER", "ALTER TABLE t ADD COLUMN y INTEGER"),
    "an insert and a new constraint": ("INSERT INTO t VALUES (NULL, 1)", "ALTER TABLE t ALTER COLUMN id SET NOT NULL"),
    "renames": ("ALTER TABLE t RENAME TO u", "ALTER TABLE t RENAME TO v"),
}


@pytest.mark.parametrize(("first", "second"), SECOND_IS_REFUSED.values(), ids=SECOND_IS_REFUSED)
def test_the_second_is_refused_and_may_try_again(pair: Pair, place: Place, first: str, second: str) -> None:
    one, other = pair
    one.execute(first)
    other.execute(second)
    one.commit()
    with pytest.raises(lakedbapi.OperationalError) as caught:
        other.commit()
    assert caught.value.retryable
    assert not other.in_transaction
    other.execute("CREATE TABLE still_usable AS SELECT 1 AS i")
    other.commit()
    assert not orphans(place)


def test_a_dropped_and_recreated_table_is_another_one(pair: Pair) -> None:
    one, other = pair
    other.execute("INSERT INTO t VALUES (100, 1)")
    one.execute("DROP TABLE t")
    one.execute("CREATE TABLE t (id INTEGER, n INTEGER)")
    one.commit()
    with pytest.raises(lakedbapi.OperationalError, match="dropped by another transaction"):
        other.commit()
    assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_table_recreated_in_one_transaction_is_refused_when_another_wrote_to_it(pair: Pair) -> None:
    one, other = pair
    other.execute("DROP TABLE t")
    other.execute("CREATE TABLE t (id INTEGER)")
    one.execute("ALTER TABLE t ADD COLUMN x INTEGER")
    one.commit()
    other.commit()
    assert other.execute("SELECT * FROM t").description is not None
    assert [column[0] for column in one.execute("SELECT * FROM t").description or ()] == ["id"]


@pytest.mark.parametrize("autocommit", [False, True])
def test_the_same_row_is_counted_by_one_of_two(pair: Pair, autocommit: bool) -> None:
    one, other = pair
    assert other.execute("SELECT count(*) FROM t").fetchone() == (100,)
    other.rollback()
    if autocommit:
        one.autocommit = other.autocommit = True
    counts = [connection.execute("DELETE FROM t WHERE id = 7").rowcount for connection in pair]
    if autocommit:
        assert counts == [1, 0]
        return
    one.commit()
    with pytest.raises(lakedbapi.OperationalError):
        other.commit()
    assert other.execute("DELETE FROM t WHERE id = 7").rowcount == 0


def test_a_reader_sees_one_snapshot_until_its_transaction_ends(pair: Pair) -> None:
    reader, writer = pair
    assert reader.execute("SELECT count(*) FROM t").fetchone() == (100,)
    writer.execute("DELETE FROM t WHERE id < 50")
    writer.commit()
    writer.execute("DROP TABLE t")
    writer.commit()
    assert reader.execute("SELECT count(*), sum(id) FROM t").fetchone() == (100, 4950)
    reader.rollback()
    with pytest.raises(lakedbapi.ProgrammingError):
        reader.execute("SELECT count(*) FROM t")
