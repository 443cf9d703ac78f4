"""Whole rows (`t` as a value) and `COLUMNS(…)` in a change mean the columns of the table, not what finds its rows."""

from __future__ import annotations

import pytest

import lakedbapi
from tests.dml.conftest import Lake

WHOLE = ["t", "struct_pack(*COLUMNS(t.*))"]


@pytest.fixture
def lake(lake: Lake) -> Lake:
    for table in ("t", "u"):
        lake(f"CREATE TABLE {table} (id INTEGER, n VARCHAR)")
        lake(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    lake.commit()
    return lake


@pytest.mark.parametrize("row", WHOLE)
def test_update(lake: Lake, row: str) -> None:
    assert lake(f"UPDATE t SET n = to_json({row})") == 2
    assert lake.rows() == [(1, '{"id":1,"n":"a"}'), (2, '{"id":2,"n":"b"}')]


def test_update_by_a_hidden_column(lake: Lake) -> None:
    assert lake("UPDATE t SET n = concat(*COLUMNS(*), to_json(t)) WHERE rowid = 1") == 1
    assert lake.rows() == [(1, "a"), (2, '2b{"id":2,"n":"b"}')]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("to_json(t)", '{"id":1,"n":"a"}'),
        ("to_json(u)", '{"id":1,"n":"a"}'),
        ("concat(*COLUMNS(t.*))", "1a"),
        ("concat(*COLUMNS(*))", "1a1a"),
        ("concat(*COLUMNS('^n$'))", "aa"),
        ("concat(*COLUMNS(lambda c: c <> 'n'))", "11"),
    ],
)
def test_beside_another_relation(lake: Lake, value: str, expected: str) -> None:
    assert lake(f"UPDATE t SET n = {value} FROM u WHERE t.id = u.id AND u.id = 1") == 1
    assert lake.rows() == [(1, expected), (2, "b")]
    lake.rollback()
    assert lake(f"MERGE INTO t USING u ON t.id = u.id AND u.id = 1 WHEN MATCHED THEN UPDATE SET n = {value}") == 1
    assert lake.rows() == [(1, expected), (2, "b")]


def test_in_clauses_without_a_partner(lake: Lake) -> None:
    by_source = "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = to_json(t)"
    inserted = "WHEN NOT MATCHED THEN INSERT VALUES (s.id, to_json(s))"
    assert lake(f"MERGE INTO t USING (SELECT 3 AS id) s ON t.id = s.id {by_source} {inserted}") == 3
    assert lake.rows() == [(1, '{"id":1,"n":"a"}'), (2, '{"id":2,"n":"b"}'), (3, '{"id":3}')]


def test_on_conflict(lake: Lake) -> None:
    update = "ON CONFLICT (id) DO UPDATE SET n = to_json(t) || to_json(excluded)"
    assert lake(f"INSERT INTO t VALUES (2, 'c') {update}") == 1
    assert lake.rows() == [(1, "a"), (2, '{"id":2,"n":"b"}{"id":2,"n":"c"}')]


@pytest.mark.parametrize(
    "condition",
    [
        'to_json(t) = \'{"id":1,"n":"a"}\'',
        "hash(t) = (SELECT hash(x) FROM t x WHERE id = 1)",
        "EXISTS (SELECT 1 FROM u WHERE u.id = 1 AND t = u)",
        "t IN (SELECT u FROM u WHERE id = 1)",
        "COLUMNS(*)::VARCHAR IN ('1', 'a')",
        "t = {'id': 1, 'n': 'a'}",
    ],
)
def test_delete(lake: Lake, condition: str) -> None:
    assert lake(f"DELETE FROM t WHERE {condition}") == 1
    assert lake.rows() == [(2, "b")]


def test_purge(lake: Lake) -> None:
    lake('PURGE FROM t WHERE to_json(t) = \'{"id":1,"n":"a"}\'')
    assert lake.rows() == [(2, "b")]


def test_a_column_of_the_name_goes_before_the_row(lake: Lake) -> None:
    lake("CREATE TABLE own AS SELECT 1 AS id, 'x' AS own")
    assert lake("UPDATE own SET id = 2 WHERE own = 'x'") == 1
    assert lake("UPDATE t SET n = t FROM (SELECT 1 AS id, 'y' AS t) s WHERE t.id = s.id") == 1
    assert lake.rows() == [(1, "y"), (2, "b")]


def test_many(lake: Lake) -> None:
    assert lake.many("UPDATE t SET n = concat(*COLUMNS(*)) WHERE id = ?", [(1,), (2,)]) == 2
    assert lake.rows() == [(1, "1a"), (2, "2b")]
    assert lake.many("DELETE FROM t WHERE id = ? AND COLUMNS(*) IS NOT NULL", [(1,), (None,)]) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t WHERE #2 = 'a'",
        "DELETE FROM t USING (VALUES (1)) AS s(i) WHERE #1 = s.i",
        "UPDATE t SET id = #3",
        "UPDATE t SET n = 'c' WHERE #2 = 'a'",
        "MERGE INTO t USING (VALUES (1)) AS s(i) ON #1 = s.i WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING (VALUES (1)) AS s(i) ON id = i WHEN MATCHED THEN UPDATE SET id = #1",
    ],
)
def test_a_column_of_the_target_has_no_number(lake: Lake, statement: str) -> None:
    with pytest.raises(lakedbapi.ProgrammingError, match=r"#\d numbers the columns of a query: name the column"):
        lake(statement)


def test_a_subquery_numbers_its_columns(lake: Lake) -> None:
    assert lake("DELETE FROM t WHERE id IN (SELECT #1 FROM (VALUES (1)) AS s(i))") == 1
