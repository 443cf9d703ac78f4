from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lakedbapi
from lakedbapi.errors import InternalError, NotSupportedError, ProgrammingError
from tests.dml.conftest import Lake


def test_a_common_table_shadows_a_table(numbers: Lake) -> None:
    assert numbers("WITH t AS (SELECT 1 AS one) SELECT * FROM t") == [(1,)]


def test_a_statement_sees_what_its_transaction_has_staged(numbers: Lake) -> None:
    numbers("INSERT INTO t VALUES (1000, 'new')")
    numbers("DELETE FROM t WHERE i < 100")
    assert numbers("SELECT count(*), max(i) FROM t") == [(101, 1000)]
    numbers.rollback()
    assert numbers("SELECT count(*), max(i) FROM t") == [(190, 199)]


def test_registered_arrow_data_joins_with_tables(numbers: Lake) -> None:
    numbers.connection.session.register("wanted", pa.table({"k": [3, 150]}))
    assert numbers("SELECT s FROM t JOIN wanted ON i = k ORDER BY i") == [("x3",), ("x150",)]


def test_a_registered_name_that_a_table_has_is_refused(numbers: Lake) -> None:
    numbers.connection.session.register("T", pa.table({"k": [3]}))
    with pytest.raises(ProgrammingError, match="both a registered Arrow object and a table"):
        numbers("SELECT * FROM t")


@pytest.mark.parametrize(
    "reference",
    [
        "t AT (VERSION => 3)",
        "t FOR VERSION AS OF 3",
        "t VERSION AS OF '3'",
        "lake.main.t AT (VERSION => 1 + 2)",
    ],
)
def test_a_version_can_be_read(numbers: Lake, reference: str) -> None:
    assert numbers(f"SELECT count(*) FROM {reference}") == [(200,)]


def test_a_version_can_be_a_parameter(numbers: Lake) -> None:
    assert numbers("SELECT count(*) FROM t FOR VERSION AS OF ?", 2) == [(100,)]


def test_two_versions_can_be_compared_in_one_query(numbers: Lake) -> None:
    gone = "SELECT i FROM t AT (VERSION => 3) EXCEPT SELECT i FROM t ORDER BY i"
    assert numbers(gone) == [(i,) for i in range(50, 60)]


def test_a_timestamp_can_be_read(numbers: Lake) -> None:
    [(time,)] = numbers("SELECT snapshot_time FROM snapshots() WHERE snapshot_id = 2")
    assert numbers("SELECT count(*) FROM t FOR TIMESTAMP AS OF ?", time) == [(100,)]
    naive_utc = time.replace(tzinfo=None)
    assert numbers("SELECT count(*) FROM t FOR TIMESTAMP AS OF ?", naive_utc) == [(100,)]
    assert numbers(f"SELECT count(*) FROM t FOR TIMESTAMP AS OF '{time.isoformat(' ')}'") == [(100,)]


def test_a_table_is_found_under_its_name_at_that_version(numbers: Lake) -> None:
    numbers("ALTER TABLE t RENAME TO t2")
    numbers("ALTER TABLE t2 RENAME COLUMN s TO text")
    numbers.commit()
    assert numbers("SELECT s FROM t AT (VERSION => 2) WHERE i = 7") == [("x7",)]
    with pytest.raises(ProgrammingError, match="t2 does not exist at the point in time"):
        numbers("SELECT * FROM t2 AT (VERSION => 2)")


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("VERSION AS OF 99", "No snapshot found at version 99"),
        ("VERSION AS OF 'main'", "'main' is no version"),
        ("VERSION AS OF 1.5", "no version"),
        ("TIMESTAMP AS OF '1999-01-01'", "No snapshot found at timestamp"),
        ("TIMESTAMP AS OF 'soon'", "'soon' is no timestamp"),
    ],
)
def test_a_point_that_does_not_exist_is_an_error(numbers: Lake, clause: str, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        numbers(f"SELECT * FROM t FOR {clause}")


def test_a_view_reads_its_tables(numbers: Lake) -> None:
    numbers("CREATE VIEW v AS SELECT i, s FROM t WHERE i > 197")
    numbers("CREATE VIEW w (number) AS SELECT i FROM v")
    assert sorted(numbers("SELECT number FROM w")) == [(198,), (199,)]


def test_a_view_of_another_schema_finds_its_own_tables(numbers: Lake) -> None:
    numbers("CREATE SCHEMA s")
    numbers("USE s")
    numbers("CREATE TABLE t (other INTEGER)")
    numbers("CREATE VIEW main.here AS SELECT * FROM t")
    numbers("CREATE VIEW main.there AS SELECT * FROM main.t")
    numbers("USE main")
    assert numbers("SELECT * FROM here") == []
    assert numbers("SELECT count(*) FROM there") == [(190,)]


def test_a_view_at_a_version_reads_everything_at_that_version(numbers: Lake) -> None:
    numbers("CREATE VIEW plain AS SELECT * FROM t")
    numbers("CREATE VIEW qualified AS SELECT * FROM main.plain UNION ALL SELECT * FROM lake.main.t")
    numbers.commit()
    numbers("DELETE FROM t")
    numbers.commit()
    assert numbers("SELECT count(*) FROM qualified AT (VERSION => 5)") == [(380,)]
    both = "SELECT (SELECT count(*) FROM plain), (SELECT count(*) FROM plain AT (VERSION => 5))"
    assert numbers(both) == [(0, 190)]


def test_a_view_can_travel(numbers: Lake) -> None:
    numbers("CREATE VIEW before AS SELECT * FROM t AT (VERSION => 3)")
    assert numbers("SELECT count(*) FROM before") == [(200,)]


def test_hidden_columns_can_be_named_but_are_not_in_a_star(numbers: Lake) -> None:
    assert numbers("SELECT *, rowid, snapshot_id FROM t WHERE i = 150") == [(150, "x150", 150, 3)]
    assert numbers("SELECT * FROM t WHERE rowid = 3") == [(3, "x3")]
    assert numbers("SELECT a.* FROM t a JOIN t b ON a.rowid = b.rowid WHERE a.i = 4") == [(4, "x4")]


@pytest.mark.parametrize(
    ("items", "names", "row"),
    [
        ("rowid, COLUMNS(*)", ["rowid", "i", "s"], (3, 3, "x3")),
        ("rowid, COLUMNS(t.*)", ["rowid", "i", "s"], (3, 3, "x3")),
        ("rowid, COLUMNS('.')", ["rowid", "i", "s"], (3, 3, "x3")),
        ("rowid, COLUMNS('.') AS 'c_\\0'", ["rowid", "c_i", "c_s"], (3, 3, "x3")),
        ("rowid, COLUMNS(lambda c: c <> 's')", ["rowid", "i"], (3, 3)),
        ("rowid, COLUMNS([c for c in (*) if c <> 's'])", ["rowid", "i"], (3, 3)),
        ("rowid, COLUMNS(['s'])", ["rowid", "s"], (3, "x3")),
        ("*, rowid AS n, concat(*COLUMNS(*)) AS c", ["i", "s", "n", "c"], (3, "x3", 3, "3x3")),
        ("*, rowid AS n, concat(*COLUMNS(* EXCLUDE (s)), '!') AS c", ["i", "s", "n", "c"], (3, "x3", 3, "3!")),
        ("rowid, * LIKE 'i%'", ["rowid", "i"], (3, 3)),
        ("rowid, t", ["rowid", "t"], (3, {"i": 3, "s": "x3"})),
        ("rowid, t AS t", ["rowid", "t"], (3, {"i": 3, "s": "x3"})),
        ("rowid, to_json(t)", ["rowid", "to_json(t)"], (3, '{"i":3,"s":"x3"}')),
        ("rowid, (SELECT to_json(t)) AS j", ["rowid", "j"], (3, '{"i":3,"s":"x3"}')),
        ("rowid, count(*) OVER (), unnest(t)", ["rowid", None, "i", "s"], (3, 1, 3, "x3")),
    ],
)
def test_hidden_columns_are_in_no_spelling_of_all_columns(
    numbers: Lake, items: str, names: list[str | None], row: tuple[object, ...]
) -> None:
    assert numbers(f"SELECT {items} FROM t WHERE i = 3") == [row]
    shown = [column[0] for column in numbers.cursor.description]
    assert [name and real for name, real in zip(names, shown, strict=True)] == names


def test_a_whole_row_beside_a_hidden_column_can_be_a_condition(numbers: Lake) -> None:
    assert numbers("SELECT rowid FROM t WHERE t = {'i': 3, 's': 'x3'}") == [(3,)]
    assert numbers("SELECT a.rowid FROM t a JOIN t b ON a = b AND a.rowid = 4") == [(4,)]
    assert numbers("SELECT rowid, max(t) FROM t WHERE i < 2 GROUP BY ALL ORDER BY rowid DESC") == [
        (1, {"i": 1, "s": "x1"}),
        (0, {"i": 0, "s": "x0"}),
    ]
    assert numbers("SELECT rowid, s.t FROM t, (SELECT 5 AS t) s WHERE i = 1 AND s.t = 5") == [(1, 5)]
    assert numbers("SELECT rowid, t FROM t x, (SELECT 5 AS t) s WHERE i = 1") == [(1, 5)]


def test_a_column_of_another_table_called_like_a_hidden_one_is_shown(numbers: Lake) -> None:
    numbers("CREATE TABLE u AS SELECT 3 AS i, 'own' AS rowid")
    assert numbers("SELECT t.rowid, * FROM t JOIN u USING (i)") == [(3, 3, "x3", "own")]
    assert numbers("SELECT t.rowid, COLUMNS(*) FROM t JOIN u USING (i)") == [(3, 3, "x3", "own")]


def test_positions_are_physical(numbers: Lake) -> None:
    assert numbers("SELECT file_row_number FROM t WHERE i IN (60, 160) ORDER BY i") == [(60,), (60,)]


def test_rows_in_no_file_have_no_file_name(numbers: Lake) -> None:
    numbers("INSERT INTO t VALUES (1000, 'new')")
    assert numbers("SELECT filename FROM t WHERE i = 1000") == [(None,)]
    assert numbers("SELECT count(DISTINCT filename) FROM t") == [(2,)]


def test_a_column_called_like_a_hidden_one_is_the_tables_own(lake: Lake) -> None:
    lake("CREATE TABLE t (rowid VARCHAR)")
    lake("INSERT INTO t VALUES ('mine')")
    assert lake("SELECT rowid FROM t") == [("mine",)]
    assert lake("SELECT * FROM t") == [("mine",)]


def test_a_subquery_that_names_a_hidden_column_shows_it(numbers: Lake) -> None:
    assert numbers("SELECT * FROM (SELECT rowid, i FROM t) WHERE i = 5") == [(5, 5)]


def test_hidden_columns_and_natural_joins_are_refused(numbers: Lake) -> None:
    with pytest.raises(NotSupportedError, match="NATURAL JOIN"):
        numbers("SELECT *, rowid FROM t NATURAL JOIN (SELECT 1 AS i) u")


def test_nullability_of_results_follows_the_table(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER)")
    lake("SELECT a, b, a + b FROM t")
    assert [column[6] for column in lake.cursor.description] == [False, True, None]


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("c.y IN (NULL, 6)", 11),
        ("c.y IN (6, NULL::INT, 7)", 22),
        ("c.y IN (NULL)", 0),
        ("c.y NOT IN (NULL, 6)", 0),
        ("(c.y IN (NULL, 6)) IS NULL", 88),
        ("i > 50 AND (t.c.y IN (NULL, 6) OR i = 60)", 6),
    ],
)
def test_a_field_of_a_struct_can_be_looked_up_in_a_list_with_null(lake: Lake, condition: str, count: int) -> None:
    lake("CREATE TABLE t AS SELECT i, {'y': i % 9} AS c FROM range(99) r(i)")
    lake.commit()
    assert lake(f"SELECT count(*) FROM t WHERE {condition}") == [(count,)]
    assert lake(f"UPDATE t SET i = 0 WHERE {condition}") == count
    lake.rollback()
    assert lake(f"DELETE FROM t WHERE {condition}") == count


@pytest.mark.parametrize(
    ("condition", "values", "count"),
    [
        ("c.y IN (?, 6)", [None], 11),
        ("c.y IN (?, ?, ?)", [7, None, 6], 22),
        ("t.c.y IN (?)", [None], 0),
        ("c.y NOT IN (?, 6)", [None], 0),
        ("i > 50 AND ((c.y + 0) IN (?::INT, 6) OR i = ?)", [None, 60], 6),
        ("c.y IN (:a, :b)", {"a": None, "b": 6}, 11),
        ("c.y IN (nullif(?, 7), 6)", [7], 11),
        ("c.y IN (nullif(?, 7), 6, ? + 1)", [8, 4], 33),
        ("c.y NOT IN (nullif(?, 7), 6)", [7], 0),
        ("c.y IN (coalesce(?, ?))", [None, None], 0),
        ("i IN (SELECT i FROM t WHERE c.y IN (?, 6))", [None], 11),
    ],
)
def test_a_parameter_in_such_a_list_can_be_null(lake: Lake, condition: str, values: Any, count: int) -> None:
    lake("CREATE TABLE t AS SELECT i, {'y': i % 9} AS c FROM range(99) r(i)")
    lake.commit()
    cursor = lake.connection.cursor()
    cursor.execute(f"SELECT count(*) FROM t WHERE {condition}", values)
    assert cursor.fetchall() == [(count,)]
    for change in ("UPDATE t SET i = 0", "DELETE FROM t"):
        cursor.execute(f"{change} WHERE {condition}", values)
        assert cursor.rowcount == count
        lake.rollback()


@pytest.mark.skipif(duckdb.__version__ < "2", reason="DuckDB 1 has no fault that is known here")
def test_a_connection_goes_on_after_a_fault_of_the_engine(lake: Lake) -> None:
    lake("CREATE TABLE t AS SELECT {'y': i % 9} AS c FROM range(99) r(i)")
    lake.commit()
    lake("CREATE TABLE u AS SELECT 6 AS y")
    with pytest.raises(InternalError, match="a fault of DuckDB") as caught:
        lake("SELECT count(*) FROM t WHERE c.y IN (nullif(?, 7), 6) AND 3! = 6", 7)  # for the engine alone to parse
    assert "Stack Trace" not in str(caught.value)
    assert lake("SELECT count(*) FROM t, u WHERE c.y = u.y") == [(11,)]


@pytest.mark.parametrize("view", ["a", "m", "v", "z1", "z2", "z3"])
def test_a_condition_on_a_table_is_none_on_the_view_that_reads_it_too(numbers: Lake, view: str) -> None:
    numbers(f"CREATE VIEW {view} AS SELECT count(*) AS n FROM t")
    assert numbers(f"SELECT n, i, rowid FROM t, {view} WHERE t.i = 5") == [(190, 5, 5)]
    assert numbers(f"SELECT n, i FROM {view} JOIN t ON true WHERE i = 105") == [(190, 105)]


@pytest.mark.parametrize("view", ["a", "v", "z"])
def test_a_view_shows_no_hidden_columns_that_the_query_around_it_names(numbers: Lake, view: str) -> None:
    numbers(f"CREATE VIEW {view}0 AS SELECT * FROM lake.main.t WHERE i < 2")
    numbers(f"CREATE VIEW {view} AS SELECT * FROM {view}0")
    rows = numbers(f"SELECT {view}.*, t.rowid FROM t JOIN {view} USING (i) ORDER BY i")
    assert rows == [(0, "x0", 0), (1, "x1", 1)]


def test_tables_may_be_called_like_files(lake: Lake) -> None:
    lake('CREATE TABLE "a/b.parquet" (i INTEGER)')
    lake('INSERT INTO "a/b.parquet" VALUES (1), (2)')
    lake('UPDATE "a/b.parquet" SET i = 3 WHERE i = 2')
    lake('CREATE VIEW v AS SELECT * FROM "a/b.parquet"')
    lake.commit()
    assert lake('SELECT i FROM "a/b.parquet" x ORDER BY i') == lake("SELECT i FROM v ORDER BY i") == [(1,), (3,)]
    assert lake('SELECT * FROM lake.main."a/b.parquet" ORDER BY i') == [(1,), (3,)]
    with pytest.raises(ProgrammingError, match="is a file"):
        lake('SELECT * FROM "a/c.parquet"')
    lake('DROP TABLE "a/b.parquet"')
    with pytest.raises(ProgrammingError, match="is a file"):
        lake("SELECT * FROM v")


def test_stored_text_of_other_programs_is_guarded(lake: Lake, tmp_path: Path) -> None:
    lake("CREATE TABLE t (a INTEGER, b VARCHAR DEFAULT 'x')")
    lake("CREATE VIEW v AS SELECT 1 AS b")
    lake.commit()
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog:
        catalog.execute("UPDATE ducklake_view SET sql = 'SELECT content FROM read_text(''/etc/hostname'')'")
        catalog.execute(
            "UPDATE ducklake_column SET default_value = 'getenv(''HOME'')', default_value_type = 'expression'"
            " WHERE column_name = 'b'"
        )
        catalog.commit()
    with lakedbapi.connect(tmp_path / "lake") as fresh:
        again = Lake(fresh)
        fresh.session.catalogs["lake"].forget()
        with pytest.raises(ProgrammingError, match="view 'v' is not run: the function read_text is not allowed"):
            again("SELECT * FROM v")
        with pytest.raises(ProgrammingError, match="the default of column 'b' is not run: the function getenv"):
            again("INSERT INTO t (a) VALUES (1)")
        assert again("INSERT INTO t VALUES (1, 'y')") == 1
