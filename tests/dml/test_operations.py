"""What a statement tells the format of itself, for its history and for the check of conflicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakedbapi
from lakedbapi.model.changes import MergeClause, Operation


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[lakedbapi.Connection]:
    with lakedbapi.connect(str(tmp_path / "lake"), autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE t (i INTEGER, s VARCHAR)")
        cursor.execute("CREATE TABLE u (i INTEGER, s VARCHAR)")
        cursor.execute("CREATE VIEW v AS SELECT * FROM t")
        cursor.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        cursor.execute("INSERT INTO u VALUES (1, 'x'), (4, 'y')")
        yield connection


def done(connection: lakedbapi.Connection, sql: str) -> Operation:
    connection.autocommit = False
    connection.cursor().execute(sql)
    _, changes = connection._session._open_transaction().staged or ("", None)
    assert changes is not None
    (operation,) = changes.operations
    connection.rollback()
    return operation


def test_a_statement_tells_its_condition_and_counts(connection: lakedbapi.Connection) -> None:
    deleted = done(connection, "DELETE FROM t WHERE i > 1")
    assert (deleted.kind, deleted.predicate, deleted.deleted) == ("delete", "i > 1", 2)
    updated = done(connection, "UPDATE t SET s = 'z' WHERE i = 1")
    assert (updated.kind, updated.predicate, updated.updated) == ("update", "i = 1", 1)
    inserted = done(connection, "INSERT INTO t VALUES (9, 'q')")
    assert (inserted.kind, inserted.predicate, inserted.inserted) == ("insert", None, 1)
    assert done(connection, "TRUNCATE t").kind == "truncate"


def test_merge_counts_by_clause(connection: lakedbapi.Connection) -> None:
    merged = done(
        connection,
        "MERGE INTO t USING u ON t.i = u.i WHEN MATCHED AND u.s = 'no' THEN DELETE WHEN MATCHED THEN UPDATE SET s = u.s"
        " WHEN NOT MATCHED THEN INSERT *  WHEN NOT MATCHED BY SOURCE AND t.i = 3 THEN DELETE",
    )
    assert (merged.kind, merged.inserted, merged.updated, merged.deleted) == ("merge", 1, 1, 1)
    assert [(c.when, c.action, c.rows) for c in merged.clauses] == [
        ("matched", "delete", 0),
        ("matched", "update", 1),
        ("not matched", "insert", 1),
        ("not matched by source", "delete", 1),
    ]
    assert isinstance(merged.clauses[0], MergeClause)
    assert merged.clauses[0].condition == "u.s = 'no'"


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("INSERT INTO t VALUES (5, 'e')", False),
        ("INSERT INTO t SELECT * FROM u", False),
        ("INSERT INTO t SELECT * FROM t", True),
        ("INSERT INTO t SELECT * FROM v", True),
        ("INSERT INTO t WITH w AS (SELECT * FROM t) SELECT * FROM w", True),
        ("DELETE FROM t WHERE i = 1", False),
        ("DELETE FROM t WHERE i IN (SELECT i FROM u)", False),
        ("DELETE FROM t WHERE i = (SELECT max(i) FROM t)", True),
        ("UPDATE t SET i = i + 1", False),
        ("UPDATE t SET i = (SELECT max(i) FROM t)", True),
        ("MERGE INTO t USING u ON t.i = u.i WHEN MATCHED THEN UPDATE SET s = u.s", False),
        ("MERGE INTO t USING t AS o ON t.i = o.i WHEN MATCHED THEN UPDATE SET s = o.s", True),
    ],
)
def test_a_statement_that_reads_its_own_table_says_so(connection: lakedbapi.Connection, sql: str, reads: bool) -> None:
    assert done(connection, sql).reads_table is reads
