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
