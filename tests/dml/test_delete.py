from __future__ import annotations

import pytest

import lakedbapi
from lakedbapi.dml.target import HIDDEN
from lakedbapi.engine.duckdb import DuckDBEngine


def test_only_rows_where_the_condition_is_true_go(t):
    assert t("DELETE FROM t WHERE v <> 'a'") == 1
    assert t.rows() == [(1, "a"), (3, None)]


def test_a_condition_that_is_null_deletes_nothing(t):
    assert t("DELETE FROM t WHERE NULL") == 0
    assert t.staged().empty


def test_without_a_condition_all_rows_go(t):
    assert t("DELETE FROM t") == 3
    assert t.rows() == []


def test_truncate_counts_the_rows(files):
    files("DELETE FROM t WHERE id < 10")
    assert files("TRUNCATE t") == 190
    files.commit()
    assert files.rows() == []


def test_a_row_that_using_matches_several_times_counts_once(t):
    assert t("DELETE FROM t USING (VALUES (1), (1), (9)) s(i) WHERE t.id = s.i") == 1
    assert t.rows() == [(2, "b"), (3, None)]


def test_the_target_may_be_read_in_a_subquery(t):
    assert t("DELETE FROM t WHERE id >= (SELECT avg(id) FROM t)") == 2
    assert t.rows() == [(1, "a")]


def test_the_target_may_stand_beside_itself(t):
    assert t("DELETE FROM t USING t AS other WHERE t.id = other.id + 1") == 2
    assert t.rows() == [(1, "a")]


def test_common_tables_can_be_named_in_using(t):
    assert t("WITH q AS (SELECT 2 AS i) DELETE FROM t USING q WHERE id = i") == 1


def test_a_common_table_with_the_name_of_the_target_is_not_the_target(t):
    assert t("WITH t AS (SELECT 1 AS id) DELETE FROM t WHERE id IN (SELECT id FROM t)") == 1
    assert t.rows("main.t") == [(2, "b"), (3, None)]


@pytest.mark.parametrize("name", ["t", "main.t", "lake.main.t"])
def test_columns_may_be_qualified_as_the_table_is(t, name):
    assert t(f"DELETE FROM {name} WHERE {name}.id = 1") == 1


def test_an_alias_hides_the_name(t):
    assert t("DELETE FROM t AS x WHERE x.id = 1") == 1
    with pytest.raises(lakedbapi.ProgrammingError):
        t("DELETE FROM t AS x WHERE t.id = 2")


def test_a_file_whose_rows_all_match_by_statistics_is_dropped_unread(files, monkeypatch):
    from lakedbapi.engine.duckdb import files as engine_files

    read: list[int] = []
    files_sql = engine_files.files_sql
    monkeypatch.setattr(
        "lakedbapi.engine.duckdb.scan.files_sql", lambda *a: read.append(a[1].files.num_rows) or files_sql(*a)
    )
    assert files("DELETE FROM t WHERE id < 100") == 100
    assert read == []
    assert len(files.staged().removed) == 1


def test_rows_deleted_before_are_not_counted_again_when_a_file_is_dropped(files):
    files("DELETE FROM t WHERE id % 10 = 0")
    files.commit()
    files("DELETE FROM t WHERE id = 1")
    assert files("DELETE FROM t WHERE id < 100") == 89


def test_matches_that_were_deleted_before_are_left_out(files):
    files("DELETE FROM t WHERE id % 3 = 0")
    files.commit()
    assert files("DELETE FROM t WHERE id % 2 = 0") == 66
    files.commit()
    assert files("DELETE FROM t WHERE id % 2 = 0 OR id % 3 = 0") == 0
    assert files.staged().empty
    assert [row[0] for row in files("SELECT id FROM t ORDER BY id")] == [i for i in range(200) if i % 2 and i % 3]


def test_a_condition_may_fail_for_rows_that_were_deleted_before(files):
    sql = "DELETE FROM t WHERE CAST(replace(v, 'v', '') AS INTEGER) = 2 * id"
    files("UPDATE t SET v = 'none' WHERE id = 17")
    files.commit()
    with pytest.raises(lakedbapi.DataError):
        files(sql)
    files("DELETE FROM t WHERE id = 17")
    assert files(sql) == 1
    files.commit()
    assert files(sql) == 0


def test_a_file_that_loses_its_last_row_is_removed(files):
    files("DELETE FROM t WHERE id BETWEEN 0 AND 49")
    files("DELETE FROM t WHERE id BETWEEN 50 AND 99 AND v IS NOT NULL")
    staged = files.staged()
    assert (len(staged.removed), staged.deleted) == (1, {})


def test_rows_of_the_same_transaction_can_go(t):
    t("INSERT INTO t VALUES (4, 'd'), (5, 'e')")
    assert t("DELETE FROM t WHERE id > 3 AND v = 'd'") == 1
    t.commit()
    assert t.rows() == [(1, "a"), (2, "b"), (3, None), (5, "e")]


def test_rollback_brings_rows_back(files):
    files("DELETE FROM t WHERE id = 7")
    files.rollback()
    assert len(files.rows()) == 200


def test_returning_gives_the_old_rows_and_those_beside_them(t):
    got = t("DELETE FROM t USING (VALUES (1, 'x')) s(i, y) WHERE id = i RETURNING *, s.y, id + 1 AS n")
    assert got == [(1, "a", "x", 2)]
    assert [d[0] for d in t.cursor.description] == ["id", "v", "y", "n"]


def test_returning_of_nothing_still_has_columns(t):
    assert t("DELETE FROM t WHERE id = 9 RETURNING id") == []
    assert t.cursor.rowcount == 0


@pytest.fixture
def scanned(monkeypatch):
    """The columns of the target that each query is given."""
    found = []
    query = DuckDBEngine.query

    def watched(engine, asked):
        found.extend(asked.relations[HIDDEN].scan.schema.names for _ in [0] if HIDDEN in asked.relations)
        return query(engine, asked)

    monkeypatch.setattr(DuckDBEngine, "query", watched)
    return found


ALL = ("id", "v", "s", 'a"b', "z")


@pytest.mark.parametrize(
    ("condition", "count", "columns"),
    [
        ("id = 1", 1, ("id",)),
        ("w.ID = 1 AND v = 'x'", 1, ("id", "v")),
        ('"a""b" = 3', 1, ('a"b',)),
        ("s IS NOT NULL", 2, ("s",)),
        ("s.x = 2", 1, ALL),
        ("s = {'x': 2}", 1, ("s",)),
        ("COLUMNS(*) IS NOT NULL", 2, ALL),
        ("COLUMNS('i.') = 1", 1, ALL),
        ("w IS NOT NULL", 2, ALL),
        ("id IN (SELECT i FROM range(2) r(i))", 1, ALL),
        ("id IN (SELECT id FROM w)", 2, ("id",)),
        ("is_one(id)", 1, ALL),
    ],
)
def test_a_condition_gets_the_columns_that_it_can_read(lake, scanned, condition, count, columns):
    lake('CREATE TABLE w (id INTEGER, v VARCHAR, s STRUCT(x INTEGER), "a""b" INTEGER, z INTEGER)')
    lake("CREATE MACRO is_one(n) AS n = 1")
    lake("INSERT INTO w SELECT i, 'x', {'x': i + 1}, i + 2, i FROM range(1, 3) r(i)")
    assert lake(f"DELETE FROM w WHERE {condition}") == count
    assert scanned == [columns]


def test_a_condition_with_an_unknown_column_tells_what_there_is(t):
    with pytest.raises(lakedbapi.ProgrammingError, match='"v"'):
        t("DELETE FROM t WHERE vv = 'a' AND id = 1")
