"""Fields of structs that are compared with NULL, which the engine cannot do while it reads files."""

from __future__ import annotations

import duckdb
import pytest

from tests.formats.lake import Lake

COMPARED_WITH_NULL = [
    ("s.x IS DISTINCT FROM NULL", []),
    ("s.x IS NOT DISTINCT FROM NULL", []),
    ("NULL IS NOT DISTINCT FROM s.x", []),
    ("s.x IS NOT DISTINCT FROM ?", [None]),
    ("s.x IS NOT DISTINCT FROM ?", [1]),
    ("s.x IS DISTINCT FROM ?::INT", [None]),
    ("s.x IS DISTINCT FROM nullif(?, 1)", [1]),
    ("s.x IS NOT DISTINCT FROM nullif(1, 1)", []),
    ("s.n.y IS NOT DISTINCT FROM NULL::BIGINT", []),
    ("s['x'] IS DISTINCT FROM (NULL)", []),
    ("struct_extract(s, 'x') IN (1, nullif(1, 1))", []),
    ("CAST(s.x AS INTEGER) IS NOT DISTINCT FROM NULL", []),
    ("s.x + 0 IS DISTINCT FROM NULL", []),
    ("NOT (s.x IS DISTINCT FROM NULL)", []),
    ("(s.x IS DISTINCT FROM NULL) IS TRUE", []),
    ("s.x IN (1, NULL)", []),
    ("s.x NOT IN (1, NULL)", []),
    ("s.x IN (NULL) OR id = 2", []),
    ("s.x IN (1, -NULL)", []),
    ("s.x IN (2, TRY_CAST('x' AS INTEGER))", []),
    ("s.x IN (?, ?)", [None, 2]),
    ("(s.x IN (?, 1)) IS NULL", [None]),
    ("(s.x, id) IS NOT DISTINCT FROM (NULL, 3)", []),
    ("(s.x, id) IS DISTINCT FROM (?, 3)", [None]),
    ("(s.x, id) IN ((NULL, 3), (1, 1))", []),
    ("s.n IS NOT DISTINCT FROM NULL", []),
    ("id IN (SELECT id FROM t WHERE s.x IS NOT DISTINCT FROM ?)", [None]),
]


@pytest.fixture
def fields(lake: Lake) -> Lake:
    lake.create("CREATE TABLE t (id INTEGER, s STRUCT(x INTEGER, n STRUCT(y INTEGER)))")
    lake("INSERT INTO t VALUES (1, {'x': 1, 'n': {'y': 1}}), (2, {'x': 2, 'n': {'y': NULL}})")
    lake("INSERT INTO t VALUES (3, {'x': NULL, 'n': {'y': 3}}), (4, NULL)")
    lake.commit()
    return lake


def test_a_field_of_a_struct_is_compared_with_null(fields: Lake) -> None:
    for condition, values in COMPARED_WITH_NULL:
        # What a query shows is compared by the engine, not by its reader of files.
        expected = sorted((id,) for id, holds in fields(f"SELECT id, {condition} FROM t", *values) if holds)
        assert sorted(fields(f"SELECT id FROM t WHERE {condition}", *values)) == expected, condition
        assert fields(f"DELETE FROM t WHERE {condition}", *values) == len(expected), condition
        fields.connection.rollback()


@pytest.mark.parametrize(("condition", "values"), COMPARED_WITH_NULL[3:5])
def test_every_statement_compares_a_field_of_a_struct_with_null(
    fields: Lake, condition: str, values: list[object]
) -> None:
    (count,) = fields(f"SELECT count(*) FROM (SELECT {condition} AS holds FROM t) WHERE holds", *values)[0]
    for change in (
        f"UPDATE t SET id = id WHERE {condition}",
        f"MERGE INTO t USING (VALUES (1)) u(k) ON {condition} WHEN MATCHED THEN DELETE",
        f"MERGE INTO t USING (SELECT id AS k FROM t) u ON t.id = k WHEN MATCHED AND {condition} THEN UPDATE SET id = 0",
        f"INSERT INTO t SELECT * FROM t WHERE {condition}",
        f"CREATE TABLE u AS SELECT * FROM t WHERE {condition}",
    ):
        assert fields(change, *values) == count, change
        fields.connection.rollback()


def test_a_field_of_a_struct_behind_a_subquery_is_compared_with_null(fields: Lake) -> None:
    source = "(SELECT id, s.x AS x FROM t)"
    assert fields(f"SELECT id FROM {source} WHERE x IN (1, NULL)") == [(1,)]
    assert fields(f"SELECT id FROM {source} WHERE x IN (?, 2)", None) == [(2,)]
    assert sorted(fields(f"SELECT id FROM {source} WHERE x IS NOT DISTINCT FROM ?", None)) == [(3,), (4,)]
    assert fields(f"SELECT count(*) FROM (SELECT x IN (1, NULL) FROM {source}) AS u(b) WHERE b") == [(1,)]
    query = "WITH w AS (SELECT s.x AS x FROM t) SELECT x FROM w WHERE x IS DISTINCT FROM NULL AND x > 1"
    assert fields(query) == [(2,)]


def test_parameter_sets_compare_a_field_of_a_struct_with_null(fields: Lake) -> None:
    assert fields.many("DELETE FROM t WHERE id = ? AND s.x IS NOT DISTINCT FROM ?", [(1, 1), (2, 1), (3, None)]) == 2
    assert fields.many("UPDATE t SET id = 9 WHERE s.x IS NOT DISTINCT FROM ?", [(1,), (None,)]) == 1
    assert sorted(fields("SELECT id FROM t")) == [(2,), (9,)]


@pytest.mark.parametrize(
    "sql", ["SELECT s.x IN (1, NULL) FROM t", "SELECT s.x IS DISTINCT FROM NULL, s.x IN (2, nullif(1, 1)) FROM t"]
)
def test_columns_keep_the_names_of_what_they_compare_with_null(fields: Lake, sql: str) -> None:
    fields(sql)
    engine = duckdb.sql(sql.replace("FROM t", "FROM (SELECT {'x': 1} AS s)"))
    assert [column[0] for column in fields.cursor.description] == engine.columns
