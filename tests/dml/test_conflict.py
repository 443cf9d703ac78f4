from __future__ import annotations

import pytest

import lakedbapi


def test_do_nothing_inserts_what_is_new(t):
    assert t("INSERT INTO t VALUES (1, 'x'), (7, 'y') ON CONFLICT (id) DO NOTHING") == 1
    assert t.rows() == [(1, "a"), (2, "b"), (3, None), (7, "y")]


def test_do_nothing_keeps_the_first_of_equal_keys(t):
    assert t("INSERT INTO t VALUES (7, 'x'), (7, 'y') ON CONFLICT (id) DO NOTHING RETURNING v") == [("x",)]


def test_do_update_sees_both_rows(t):
    got = t("INSERT INTO t VALUES (1, 'x'), (7, 'y') ON CONFLICT (id) DO UPDATE SET v = t.v || excluded.v RETURNING *")
    assert got == [(1, "ax"), (7, "y")]


def test_an_unqualified_column_is_the_target_s(t):
    t("INSERT INTO t VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET v = v || excluded.v")
    assert (1, "ax") in t.rows()


def test_do_update_where_leaves_other_rows_alone(t):
    count = t("INSERT INTO t VALUES (1, 'x'), (2, 'x') ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE t.v = 'b'")
    assert count == 1
    assert t.rows() == [(1, "a"), (2, "x"), (3, None)]


def test_equal_keys_in_one_do_update_are_an_error(t):
    with pytest.raises(lakedbapi.ProgrammingError, match="updated twice"):
        t("INSERT INTO t VALUES (7, 'x'), (7, 'y') ON CONFLICT (id) DO UPDATE SET v = excluded.v")


def test_null_keys_conflict_with_nothing(t):
    t("INSERT INTO t VALUES (NULL, 'x')")
    assert t("INSERT INTO t VALUES (NULL, 'y'), (NULL, 'z') ON CONFLICT (id) DO NOTHING") == 2


def test_without_columns_the_primary_key_decides(lake):
    lake("CREATE TABLE k (a INTEGER, b INTEGER, v VARCHAR, PRIMARY KEY (a, b))")
    lake("INSERT INTO k VALUES (1, 1, 'x')")
    assert lake("INSERT OR IGNORE INTO k VALUES (1, 1, 'y'), (1, 2, 'z')") == 1
    assert lake("INSERT OR REPLACE INTO k VALUES (1, 1, 'n'), (1, 1, 'm')") == 1
    assert lake.rows("k") == [(1, 1, "m"), (1, 2, "z")]


@pytest.mark.parametrize(
    "source", ["(a, v) VALUES (1, 'n')", "BY NAME SELECT 'n' AS v, 1 AS a", "(v, a) SELECT 'n', 1"]
)
def test_or_replace_keeps_the_columns_that_are_not_given(lake, source):
    lake("CREATE TABLE k (a INTEGER PRIMARY KEY, v VARCHAR, d INTEGER DEFAULT 5)")
    lake("INSERT INTO k VALUES (1, 'x', 9)")
    assert lake(f"INSERT OR REPLACE INTO k {source}") == 1
    assert lake(f"INSERT OR REPLACE INTO k {source.replace('1', '2')}") == 1
    assert lake.rows("k") == [(1, "n", 9), (2, "n", 5)]


def test_a_table_without_keys_needs_the_columns(t):
    with pytest.raises(lakedbapi.ProgrammingError, match="name the columns"):
        t("INSERT INTO t VALUES (1, 'x') ON CONFLICT DO NOTHING")


def test_the_source_may_be_a_query(t):
    assert t("INSERT INTO t SELECT id + 1, v FROM t ON CONFLICT (id) DO UPDATE SET v = excluded.v") == 3
    assert t.rows() == [(1, "a"), (2, "a"), (3, "b"), (4, None)]


def test_default_values_count_as_given(lake):
    lake("CREATE TABLE d (id INTEGER DEFAULT 1, v VARCHAR)")
    lake("INSERT INTO d VALUES (1, 'a')")
    assert lake("INSERT INTO d (v) VALUES ('b') ON CONFLICT (id) DO UPDATE SET v = excluded.v") == 1
    assert lake.rows("d") == [(1, "b")]
