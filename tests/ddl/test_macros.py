"""CREATE MACRO and DROP MACRO, and macros in queries."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lakedbapi import NotSupportedError, ProgrammingError
from tests.dml.conftest import Lake, connect, lake

__all__ = ["connect", "lake"]


def test_scalar_macros_have_overloads_and_defaults(lake: Lake) -> None:
    lake("CREATE MACRO f(a, b := 1 + 1) AS a + b, (a, b, c) AS a * b * c")
    lake("CREATE MACRO g(t VARCHAR, n INTEGER := 2) AS repeat(t, n)")
    for _ in range(2):
        assert lake("SELECT f(1), f(1, 5), f(1, b := 7), f(2, 3, 4), lake.main.f(3)") == [(3, 6, 8, 24, 5)]
        assert lake("SELECT G('ab'), g('x', 3)") == [("abab", "xxx")]
        lake.commit()


COMPARISONS = [
    ("(x) AS x.a IS NOT DISTINCT FROM NULL", ["(s)"]),
    ("(x) AS x.a IN (1, NULL)", ["(s)"]),
    ("(x) AS x.a NOT IN (1, nullif(1, 1))", ["(s)"]),
    ("(x, y) AS x.a IS NOT DISTINCT FROM y", ["(s, NULL)", "(s, 1)", "(s, s.a)", "(s, nullif(1, 1))"]),
    ("(x, y) AS x IS DISTINCT FROM y", ["(s.a, NULL)", "(NULL, s.a)", "(s.a, 1)", "(2, s.a)", "(s, NULL)", "(id, 2)"]),
    ("(x, y) AS x.a IN (y, 2)", ["(s, NULL)", "(s, 1)", "(s, id)"]),
    ("(x, y) AS x.a IS NOT DISTINCT FROM y + 1", ["(s, NULL)", "(s, 0)"]),
]


def test_macros_compare_fields_of_structs_with_null(lake: Lake) -> None:
    lake("CALL set_option('lake', 'data_inlining_row_limit', '0')")
    lake("CREATE TABLE t (id INTEGER, s STRUCT(a INTEGER))")
    lake("INSERT INTO t VALUES (1, {'a': 1}), (2, {'a': NULL}), (3, NULL), (4, {'a': 2})")
    lake.commit()
    for body, calls in COMPARISONS:
        lake(f"CREATE OR REPLACE MACRO f{body}")
        for call in calls:
            # What a query shows is compared by the engine, not by its reader of files.
            expected = [(id,) for id, holds in lake(f"SELECT id, f{call} FROM t ORDER BY id") if holds]
            assert lake(f"SELECT id FROM t WHERE f{call} ORDER BY id") == expected, (body, call)
        assert lake(f"DELETE FROM t WHERE f{calls[0]}") >= 0
        lake.connection.rollback()


def test_table_macros_compare_fields_of_structs_with_null(lake: Lake) -> None:
    lake("CALL set_option('lake', 'data_inlining_row_limit', '0')")
    lake("CREATE TABLE t (id INTEGER, s STRUCT(a INTEGER))")
    lake("INSERT INTO t VALUES (1, {'a': 1}), (2, {'a': NULL}), (3, NULL)")
    lake.commit()
    lake("CREATE MACRO with_a(y) AS TABLE SELECT id FROM t WHERE s.a IS NOT DISTINCT FROM y ORDER BY id")
    lake("CREATE MACRO without_a() AS TABLE SELECT id FROM t WHERE s.a IS NOT DISTINCT FROM NULL ORDER BY id")
    assert lake("FROM with_a(NULL)") == lake("FROM with_a(?)", None) == lake("FROM without_a()") == [(2,), (3,)]
    assert lake("FROM with_a(1)") == [(1,)]


def test_a_default_null_which_duckdb_cannot_read_is_refused_and_still_read(
    lake: Lake, connect: Callable[[], Lake], tmp_path: Path
) -> None:
    with pytest.raises(NotSupportedError, match=r"DuckDB could not open the lake any more; give the macro an overload"):
        lake("CREATE MACRO f(x, y := NULL) AS x IS NOT DISTINCT FROM y")
    lake("CREATE MACRO f(x, y := 7) AS coalesce(x, y, 1)")
    lake.commit()
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog, catalog:
        catalog.execute("UPDATE ducklake_macro_parameters SET default_value = 'NULL' WHERE parameter_name = 'y'")
    assert connect()("SELECT f(NULL)") == [(1,)]


def test_macros_stand_wherever_expressions_do(lake: Lake) -> None:
    lake("CREATE MACRO double(x) AS x * 2")
    lake("CREATE TABLE t (i INTEGER)")
    lake("INSERT INTO t SELECT double(range) FROM range(5)")
    lake("UPDATE t SET i = double(i) WHERE i = double(1)")
    assert lake("DELETE FROM t WHERE double(i) = 12") == 1
    lake("CREATE VIEW v AS SELECT double(i) AS d FROM t")
    assert lake("SELECT d FROM v ORDER BY d") == [(0,), (8,), (8,), (16,)]


def test_table_macros_read_tables(lake: Lake) -> None:
    lake("CREATE TABLE t AS SELECT range AS i FROM range(100)")
    lake("CREATE MACRO below(n) AS TABLE SELECT i FROM t WHERE i < n")
    lake("CREATE MACRO greatest_i() AS (SELECT max(i) FROM t)")
    lake.commit()
    assert lake("SELECT count(*) FROM below(7)") == [(7,)]
    assert lake("SELECT count(*), greatest_i() FROM t WHERE i < 3") == [(3, 99)]
    lake("DELETE FROM t WHERE i > 50")
    assert lake("SELECT greatest_i(), (SELECT count(*) FROM lake.main.below(60))") == [(50, 51)]


def test_a_scalar_and_a_table_macro_and_a_table_may_have_one_name(lake: Lake) -> None:
    lake("CREATE TABLE m AS SELECT 1 AS i")
    lake("CREATE MACRO m() AS 2")
    lake("CREATE MACRO m() AS TABLE SELECT 3 AS i")
    lake.commit()
    assert lake("SELECT m(), (SELECT i FROM m()), i FROM m") == [(2, 3, 1)]
    lake("DROP MACRO m")
    assert lake("SELECT (SELECT i FROM m()), i FROM m") == [(3, 1)]
    with pytest.raises(ProgrammingError, match="there is a table macro"):
        lake("DROP MACRO m")
    lake("DROP MACRO TABLE m")
    lake("DROP MACRO TABLE IF EXISTS m")
    lake.commit()
    with pytest.raises(ProgrammingError, match="m"):
        lake("SELECT m()")


def test_definitions_follow_transactions(lake: Lake, connect: Callable[[], Lake]) -> None:
    lake("CREATE MACRO f() AS 1")
    lake.commit()
    lake("CREATE OR REPLACE MACRO f() AS 2")
    other = connect()
    assert (lake("SELECT f()"), other("SELECT f()")) == ([(2,)], [(1,)])
    lake.rollback()
    assert lake("SELECT f()") == [(1,)]
    lake("CREATE MACRO IF NOT EXISTS f() AS 3")
    with pytest.raises(ProgrammingError, match="exists already"):
        lake("CREATE MACRO f() AS 3")
    assert lake("SELECT f()") == [(1,)]
    lake("CREATE OR REPLACE MACRO f() AS 4")
    other("CREATE OR REPLACE MACRO f() AS 5")
    lake.commit()
    with pytest.raises(Exception, match="macro f was altered by another transaction"):
        other.commit()


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("f(a) AS a +", "macro f"),
        ("f() AS TABLE 1", "macro f"),
        ("f() AS TABLE DELETE FROM t", "is no query"),
        ("f() AS 1, () AS TABLE SELECT 1", "all scalar, or all AS TABLE"),
        ("f(a := random()) AS a", "is no constant"),
        ("f() AS (SELECT max(i) FROM lake.main.t)", "without their catalog"),
        ("f() AS TABLE SELECT * FROM snapshots('lake')", "cannot stand in a macro"),
        ("f() AS TABLE FROM t VERSION AS OF 1", "cannot stand in a macro"),
        ("f(a) AS a + ?", "cannot hold parameters"),
        ("f() AS read_text('/etc/passwd')", "is not allowed"),
    ],
)
def test_what_a_macro_cannot_be(lake: Lake, definition: str, message: str) -> None:
    lake("CREATE TABLE t AS SELECT 1 AS i")
    with pytest.raises((ProgrammingError, NotSupportedError), match=message):
        lake.cursor.execute(f"CREATE MACRO {definition}")


def test_macros_of_other_programs_are_guarded(lake: Lake, connect: Callable[[], Lake], tmp_path: Path) -> None:
    lake("CREATE MACRO f() AS 'harmless'")
    lake.commit()
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog:
        catalog.execute("UPDATE ducklake_macro_impl SET sql = '(SELECT content FROM read_text(''/etc/hostname''))'")
        catalog.commit()
    fresh = connect()
    with pytest.raises(ProgrammingError, match="macro 'f' is not run: the function read_text is not allowed"):
        fresh("SELECT f()")
    assert fresh("SELECT 1") == [(1,)]


def test_views_and_macros_of_other_dialects_are_listed_and_not_run(
    lake: Lake, connect: Callable[[], Lake], tmp_path: Path
) -> None:
    lake("CREATE VIEW v AS SELECT 1 AS one")
    lake("CREATE MACRO m(a) AS a + 1")
    lake("CREATE MACRO tm(a) AS TABLE SELECT a AS x")
    lake.commit()
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog, catalog:
        catalog.execute("UPDATE ducklake_view SET dialect = 'spark', sql = 'SELECT `x` FROM t LATERAL VIEW f(x)'")
        catalog.execute("UPDATE ducklake_macro_impl SET dialect = 'spark'")
    lake("CREATE TABLE t AS SELECT 5 AS i")  # The next snapshot that has other objects is read anew.
    lake.commit()
    other = connect()
    assert other("SELECT table_type FROM information_schema.tables WHERE table_name = 'v'") == [("VIEW",)]
    for query in ("SELECT * FROM v", "SELECT m(1)", "SELECT * FROM tm(1)"):
        with pytest.raises(NotSupportedError, match="dialect 'spark'"):
            other(query)
    assert other("SELECT i FROM t") == [(5,)]
    for statement in ("DROP VIEW v", "DROP MACRO m", "DROP MACRO TABLE tm"):
        other(statement)
    other.commit()
    assert other("SELECT table_name FROM information_schema.tables WHERE table_catalog = 'lake'") == [("t",)]
