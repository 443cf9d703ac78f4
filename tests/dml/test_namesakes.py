"""Statements that read another table with the name of the one they change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakedbapi import ProgrammingError
from tests.dml.conftest import Lake


@pytest.fixture
def lake(connect: Callable[[], Lake]) -> Lake:
    lake = connect()
    for schema, rows in (("a", "(1, 'a'), (2, 'b')"), ("b", "(2, 'bb'), (3, 'c')")):
        lake(f"CREATE SCHEMA {schema}")
        lake(f"CREATE TABLE {schema}.t (id INTEGER, n VARCHAR)")
        lake(f"INSERT INTO {schema}.t VALUES {rows}")
    return lake


@pytest.mark.parametrize(
    "condition",
    [
        "EXISTS (SELECT 1 FROM b.t WHERE a.t.id = b.t.id)",
        "EXISTS (SELECT 1 FROM b.t WHERE lake.a.t.id = t.id)",
        "t.id IN (SELECT id FROM b.t)",
        "a.t.id IN (SELECT t.id FROM b.t) AND a.t.id IN (SELECT max(a.t.id) FROM a.t)",
        "EXISTS (SELECT 1 FROM b.t AS other WHERE t.id = other.id AND EXISTS (SELECT 1 FROM b.t WHERE a.t.id = t.id))",
    ],
)
def test_delete_beside_a_subquery(lake: Lake, condition: str) -> None:
    assert lake(f"DELETE FROM a.t WHERE {condition}") == 1
    assert lake.rows("a.t") == [(1, "a")]
    assert len(lake.rows("b.t")) == 2


def test_delete_using(lake: Lake) -> None:
    assert lake("DELETE FROM a.t USING b.t WHERE a.t.id = b.t.id") == 1
    assert lake.rows("a.t") == [(1, "a")]


def test_update_with_a_subquery(lake: Lake) -> None:
    statement = "UPDATE a.t SET n = (SELECT b.t.n FROM b.t WHERE a.t.id = b.t.id) RETURNING a.t.id, n"
    assert sorted(lake(statement)) == [(1, None), (2, "bb")]


def test_update_from(lake: Lake) -> None:
    assert lake("UPDATE a.t SET n = b.t.n FROM b.t WHERE a.t.id = b.t.id") == 1
    assert lake.rows("a.t") == [(1, "a"), (2, "bb")]


def test_merge(lake: Lake) -> None:
    merge = "MERGE INTO a.t USING b.t ON a.t.id = b.t.id"
    merge += " WHEN MATCHED THEN UPDATE SET n = b.t.n WHEN NOT MATCHED THEN INSERT VALUES (b.t.id, b.t.n)"
    assert lake(merge) == 2
    assert lake.rows("a.t") == [(1, "a"), (2, "bb"), (3, "c")]


def test_a_name_that_can_mean_both_is_refused(lake: Lake) -> None:
    with pytest.raises(ProgrammingError, match=r"t\.id can mean several tables"):
        lake("DELETE FROM a.t USING b.t WHERE t.id = 1")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET n = 5 FROM (SELECT 9 AS a) s WHERE id = 1 RETURNING t.id, s.a, t.s.a",
        "DELETE FROM t USING (SELECT 9 AS a) s WHERE id = 1 RETURNING t.id, s.a, t.s.a",
        "MERGE INTO t USING (SELECT 9 AS a) s ON id = 1 WHEN MATCHED THEN UPDATE SET n = 5 RETURNING t.id, s.a, t.s.a",
    ],
)
def test_a_column_that_is_called_as_the_source_is(lake: Lake, statement: str) -> None:
    lake("CREATE TABLE t (id INTEGER, s STRUCT(a INTEGER), n INTEGER)")
    lake("INSERT INTO t VALUES (1, {'a': 7}, 0), (2, {'a': 8}, 0)")
    assert lake(statement) == [(1, 9, 7)]


def test_a_source_that_is_the_target_with_a_column_of_its_alias(lake: Lake) -> None:
    lake("CREATE TABLE t (id INTEGER, s INTEGER)")
    lake("INSERT INTO t VALUES (1, 10), (2, 20)")
    statement = (
        "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = s.s + 1 RETURNING t.id, t.s, s.s"
    )
    assert sorted(lake(statement)) == [(1, 11, 10), (2, 21, 20)]


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("DELETE FROM a.t WHERE id IN (SELECT id FROM {name})", [(2, "b")]),
        ("WITH {name} AS (SELECT 2 AS id) DELETE FROM a.t WHERE id IN (SELECT id FROM {name})", [(1, "a")]),
        ("DELETE FROM a.t USING {name} AS x WHERE a.t.id = x.id", [(2, "b")]),
        ("DELETE FROM a.t USING {name} AS x WHERE a.t.id = x.id RETURNING *", [(2, "b")]),
        ("UPDATE a.t SET n = x.n FROM {name} AS x WHERE a.t.id = x.id", [(1, "x"), (2, "b")]),
        ("UPDATE a.t SET n = x.n FROM {name} AS x WHERE a.t.id = x.id RETURNING *", [(1, "x"), (2, "b")]),
        ("MERGE INTO a.t USING {name} AS x ON a.t.id = x.id WHEN MATCHED THEN DELETE", [(2, "b")]),
    ],
)
@pytest.mark.parametrize("name", ["_lake_target", "_lake_sources", "_lake_returned", "_lake_touched"])
def test_tables_that_are_called_as_what_a_statement_is_made_of(
    lake: Lake, name: str, statement: str, left: list[tuple[object, ...]]
) -> None:
    lake(f"CREATE TABLE {name} AS SELECT 1 AS id, 'x' AS n")
    lake(statement.format(name=name))
    assert lake.rows("a.t") == left
