"""Branches that are written to, and tags, by the names that Spark gives them: `t.branch_b`, `t.tag_x`."""

from __future__ import annotations

import pytest

import lakedbapi
from lakedbapi.errors import ConflictError, NotSupportedError, ProgrammingError
from tests.formats.iceberg.writing import Lake, rows, values


@pytest.fixture
def lake(place: Lake) -> lakedbapi.Connection:
    """Ten rows, with a branch and a tag of them."""
    lake = place.connect()
    place.create(lake)
    lake.execute("INSERT INTO t SELECT i, 's' || i FROM range(10) r(i)")
    lake.execute("ALTER TABLE t CREATE BRANCH b")
    lake.execute("ALTER TABLE t CREATE TAG x")
    return lake


def branch(lake: lakedbapi.Connection, name: str = "t.branch_b") -> list[object]:
    return values(lake, f"SELECT a FROM {name} ORDER BY a")


def test_every_statement_changes_the_branch_alone(place: Lake, lake: lakedbapi.Connection) -> None:
    main = rows(lake)
    assert lake.execute("INSERT INTO t.branch_b VALUES (10, 'ten'), (11, 'eleven')").rowcount == 2
    assert lake.execute("DELETE FROM t.branch_b WHERE a < 2").rowcount == 2
    assert lake.execute("UPDATE t.branch_b SET s = 'new' WHERE branch_b.a = 2").rowcount == 1
    merged = lake.execute(
        "MERGE INTO t.branch_b USING (VALUES (3, 'three'), (12, 'twelve')) u(a, s) ON branch_b.a = u.a "
        "WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT VALUES (u.a, u.s)"
    )
    assert merged.rowcount == 2
    assert lake.execute("DELETE FROM main.t.branch_b AS z WHERE z.a = 9 RETURNING a").fetchall() == [(9,)]
    expected = [2, 3, 4, 5, 6, 7, 8, 10, 11, 12]
    for each in (lake, place.connect()):
        assert branch(each) == expected
        assert branch(each, "main.t.branch_b") == expected
        assert branch(each, "lake.main.t.branch_b") == expected
        assert values(each, "SELECT s FROM t.branch_b WHERE a IN (2, 3) ORDER BY a") == ["new", "three"]
        assert rows(each) == rows(each, "SELECT * FROM t.tag_x") == rows(each, "SELECT * FROM t.branch_main") == main
    seen = place.table()
    assert seen.scan().to_arrow().num_rows == 10
    assert seen.scan().use_ref("b").to_arrow().num_rows == len(expected)
    assert len(seen.metadata.snapshot_log) == 1
    assert seen.metadata.current_snapshot_id == seen.metadata.refs["x"].snapshot_id
    assert lake.execute("TRUNCATE TABLE t.branch_b").rowcount == 10
    assert branch(lake) == []
    assert rows(lake) == main


def test_a_branch_becomes_the_table(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute("DELETE FROM t.branch_b WHERE a < 5")
    lake.execute("CALL fast_forward('t', 'main', 'b')")
    assert values(lake, "SELECT a FROM t ORDER BY a") == [5, 6, 7, 8, 9]


def test_a_branch_is_optimized_alone(place: Lake, lake: lakedbapi.Connection) -> None:
    main, files = rows(lake), rows(lake, "SELECT * FROM files('t')")
    lake.execute("INSERT INTO t.branch_b VALUES (10, 'ten')")
    lake.execute("DELETE FROM t.branch_b WHERE a < 2")
    ids = "SELECT a, rowid FROM t.branch_b ORDER BY a" if place.version == 3 else "SELECT a FROM t.branch_b"
    before = rows(lake, ids)
    assert lake.execute("OPTIMIZE t.branch_b").fetchall()[0][2:4] == (1, 2)
    assert rows(lake, ids) == before
    assert values(lake, "SELECT count(*) FROM files('t.branch_b')") == [1]
    assert (rows(lake), rows(lake, "SELECT * FROM files('t')")) == (main, files)
    assert place.table().scan().use_ref("b").to_arrow().num_rows == len(before)


def test_a_branch_beside_its_table_in_one_query(lake: lakedbapi.Connection) -> None:
    lake.execute("DELETE FROM t.branch_b WHERE a % 2 = 0")
    query = "SELECT t.a FROM t LEFT JOIN t.branch_b ON t.a = branch_b.a WHERE branch_b.a IS NULL ORDER BY 1"
    assert values(lake, query) == [0, 2, 4, 6, 8]
    assert values(lake, "SELECT count(t.branch_b.a) FROM t.branch_b") == [5]
    assert values(lake, "SELECT count(*) FROM t.branch_b AS y WHERE y.a > 5") == [2]
    assert lake.execute("INSERT INTO t SELECT a + 100, s FROM t.branch_b WHERE a = 1").rowcount == 1
    assert lake.execute("DELETE FROM t.branch_b WHERE a IN (SELECT a FROM t.branch_b WHERE a < 4)").rowcount == 2


def test_a_transaction_on_a_branch(place: Lake, lake: lakedbapi.Connection) -> None:
    inside = place.connect(autocommit=False)
    inside.execute("DELETE FROM t.branch_b WHERE a = 1")
    inside.execute("INSERT INTO t.branch_b VALUES (77, 'x')")
    assert branch(inside) == [0, 2, 3, 4, 5, 6, 7, 8, 9, 77]
    assert branch(lake) == list(range(10))
    inside.rollback()
    assert branch(inside) == list(range(10))
    inside.execute("DELETE FROM t.branch_b WHERE a = 1")
    lake.execute("DELETE FROM t WHERE a = 1")  # Of main, which is another one.
    lake.execute("INSERT INTO t VALUES (1, 'again')")
    inside.commit()
    assert branch(lake) == [0, 2, 3, 4, 5, 6, 7, 8, 9]
    assert values(lake, "SELECT s FROM t WHERE a = 1") == ["again"]
    snapshots = {s.snapshot_id: s for s in place.snapshots()}
    head = snapshots[place.table().metadata.refs["b"].snapshot_id]
    assert head.parent_snapshot_id == place.table().metadata.refs["x"].snapshot_id
    assert len({s.sequence_number for s in snapshots.values()}) == len(snapshots)


def test_conflicts_on_a_branch(place: Lake, lake: lakedbapi.Connection) -> None:
    first, second, third = (place.connect(autocommit=False) for _ in range(3))
    first.execute("DELETE FROM t.branch_b WHERE a = 1")
    second.execute("DELETE FROM t.branch_b WHERE a = 1")
    third.execute("DELETE FROM t.branch_b WHERE a = 2")
    first.commit()
    with pytest.raises(ConflictError, match="deleted or updated rows"):
        second.commit()
    third.commit()
    assert branch(lake) == [0, 3, 4, 5, 6, 7, 8, 9]
    first.execute("DELETE FROM t.branch_b WHERE a = (SELECT min(a) FROM t.branch_b)")
    lake.execute("INSERT INTO t.branch_b VALUES (-1, 'x')")
    with pytest.raises(ConflictError, match="which this one read"):
        first.commit()
    first.rollback()
    first.execute("DELETE FROM t.branch_b WHERE a = 3")
    lake.execute("ALTER TABLE t DROP BRANCH b")
    with pytest.raises(ConflictError, match="dropped the branch"):
        first.commit()
    assert rows(lake) == [(i, f"s{i}") for i in range(10)]


def test_expiry_keeps_what_the_branch_is_made_of(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute("DELETE FROM t.branch_b WHERE a = 1")
    lake.execute("UPDATE t.branch_b SET s = 'x' WHERE a = 2")
    lake.execute("DELETE FROM t WHERE a > 5")
    lake.execute("ALTER TABLE t DROP TAG x")
    lake.execute("VACUUM t RETAIN 0 HOURS")
    assert len(place.snapshots()) == 2
    assert branch(lake) == [0, 2, 3, 4, 5, 6, 7, 8, 9]
    assert values(lake, "SELECT a FROM t ORDER BY a") == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("INSERT INTO t.tag_x VALUES (1, 'x')", NotSupportedError, "is a tag"),
        ("DELETE FROM t.tag_x", NotSupportedError, "is a tag"),
        ("DELETE FROM t.branch_x", ProgrammingError, "the table has branch_b, branch_main, tag_x"),
        ("SELECT * FROM t.tag_b", ProgrammingError, "the table has branch_b, branch_main, tag_x"),
        ("SELECT * FROM nothing.branch_b", ProgrammingError, "does not exist"),
        ("SELECT * FROM t.branch_b FOR VERSION AS OF 'x'", ProgrammingError, "does not exist"),
        ("ALTER TABLE t.branch_b ADD COLUMN c INTEGER", NotSupportedError, "ALTER TABLE is for its table"),
        ("DROP TABLE t.branch_b", NotSupportedError, "DROP BRANCH"),
        ("VACUUM t.branch_b", NotSupportedError, "is for its table"),
        ("PURGE FROM t.branch_b WHERE a = 1", NotSupportedError, "is for its table"),
        ("ALTER TABLE t.branch_b CREATE TAG y", NotSupportedError, "is for its table"),
    ],
)
def test_what_cannot_be(lake: lakedbapi.Connection, statement: str, error: type[Exception], message: str) -> None:
    before = rows(lake), branch(lake)
    with pytest.raises(error, match=message):
        lake.execute(statement).fetchall()
    assert (rows(lake), branch(lake)) == before


def test_tables_may_be_called_so(lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE SCHEMA s")
    lake.execute("CREATE TABLE s.branch_office AS SELECT 1::BIGINT AS a")
    lake.execute("CREATE TABLE tag_x AS SELECT 2::BIGINT AS a")
    assert values(lake, "SELECT s.branch_office.a FROM s.branch_office WHERE s.branch_office.a = 1") == [1]
    assert values(lake, "SELECT a FROM tag_x") == values(lake, "SELECT tag_x.a FROM main.tag_x") == [2]
    assert lake.execute("UPDATE s.branch_office SET a = 5 WHERE s.branch_office.a = 1").rowcount == 1
    assert lake.execute("INSERT INTO s.branch_office (a) VALUES (6)").rowcount == 1
    assert lake.execute("DELETE FROM lake.s.branch_office WHERE a = 6").rowcount == 1
    assert values(lake, "SELECT * FROM s.branch_office") == [5]
    assert [row[0] for row in lake.execute("DESCRIBE s.branch_office").fetchall()] == ["a"]
    assert [row[0] for row in lake.execute("DESCRIBE t.branch_b").fetchall()] == ["a", "s"]
