from __future__ import annotations

from pathlib import Path

import pytest

import lakedbapi
from lakedbapi.errors import ProgrammingError
from tests.dml.conftest import Lake
from tests.engines import IS_DUCKDB_2


def test_names_are_found_in_any_case(numbers: Lake) -> None:
    assert numbers("SELECT count(*) FROM LAKE.Main.T WHERE I < 10") == [(10,)]


def test_a_two_part_name_is_a_schema_of_the_current_catalog_first(numbers: Lake) -> None:
    numbers("CREATE SCHEMA lake")
    numbers("CREATE TABLE lake.lake.t (other INTEGER)")
    numbers("INSERT INTO lake.t VALUES (7)")
    assert numbers("SELECT other FROM lake.lake.t") == [(7,)]


def test_a_two_part_name_may_be_a_catalog_and_a_table_of_its_current_schema(numbers: Lake) -> None:
    assert numbers("SELECT count(*) FROM lake.t") == [(190,)]
    numbers("CREATE SCHEMA s")
    numbers("USE s")
    numbers("CREATE TABLE t (i INTEGER)")
    assert numbers("SELECT count(*) FROM lake.t") == [(0,)]
    assert numbers("DELETE FROM lake.t") == 0


def test_a_two_part_name_may_be_another_catalog_and_a_table_of_main(numbers: Lake, tmp_path: Path) -> None:
    numbers.connection.session.attach(str(tmp_path / "other"), "other")
    numbers("CREATE TABLE other.u (i INTEGER)")
    assert numbers("SELECT count(*) FROM other.u") == [(0,)]
    assert numbers("SELECT count(*) FROM other.main.u, t") == [(0,)]


UNKNOWN_TO_DUCKDB_1 = "" if IS_DUCKDB_2 else '|Catalog "nowhere" does not exist'
SOURCES = [
    "INSERT INTO orders SELECT * FROM {}",
    "INSERT INTO orders VALUES ((SELECT max(i) FROM {}))",
    "WITH q AS (SELECT * FROM {}) INSERT INTO orders SELECT * FROM q",
    "UPDATE orders SET i = 1 FROM {} AS o WHERE o.i = orders.i",
    "UPDATE orders SET i = (SELECT max(i) FROM {})",
    "DELETE FROM orders USING {} AS o WHERE o.i = orders.i",
    "DELETE FROM orders WHERE i IN (SELECT i FROM {})",
    "MERGE INTO orders USING {} AS o ON o.i = orders.i WHEN MATCHED THEN DELETE",
    "SELECT * FROM {}",
]
"""Statements that read a relation beside the one that they change."""


@pytest.mark.parametrize("statement", SOURCES)
def test_an_unknown_schema_is_named_wherever_a_statement_reads(lake: Lake, statement: str) -> None:
    lake("CREATE TABLE orders (i INTEGER)")
    lake("CREATE SCHEMA sales")
    lake("CREATE TABLE sales.shops (i INTEGER)")
    for name, message in (
        ("sale.shops", r"^table or view sale.shops does not exist: there is no schema or catalog sale \("),
        ("sales.shop", r"^table or view sales.shop does not exist; did you mean shops\?$"),
        ("lake.sale.shops", r"^table or view (lake.)?sale.shops does not exist: there is no schema "),
        ("nowhere.sales.shops", r"^catalog 'nowhere' is not attached \(attached: lake" + UNKNOWN_TO_DUCKDB_1),
    ):
        with pytest.raises(ProgrammingError, match=message):
            lake(statement.format(name))


def test_use_changes_where_plain_names_are_found(numbers: Lake) -> None:
    numbers("CREATE SCHEMA s")
    numbers("USE s")
    with pytest.raises(ProgrammingError, match="t does not exist"):
        numbers("SELECT * FROM t")
    assert numbers("SELECT count(*) FROM main.t") == [(190,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM orders_",
        "DELETE FROM ordres",
        "DROP TABLE orderss",
        "INSERT INTO orders SELECT * FROM orders_",
        "UPDATE orders SET i = 1 FROM orders_ AS o WHERE o.i = orders.i",
        "DELETE FROM orders USING orders_ AS o WHERE o.i = orders.i",
        "DELETE FROM orders WHERE i IN (SELECT i FROM orders_)",
        "MERGE INTO orders USING orders_ AS o ON o.i = orders.i WHEN MATCHED THEN DELETE",
    ],
)
def test_an_unknown_table_is_named_with_what_is_near(lake: Lake, statement: str) -> None:
    lake("CREATE TABLE orders (i INTEGER)")
    with pytest.raises(ProgrammingError, match=r"does not exist; did you mean orders\?"):
        lake(statement)


def test_a_view_cannot_be_changed_like_a_table(numbers: Lake) -> None:
    numbers("CREATE VIEW v AS SELECT * FROM t")
    with pytest.raises(ProgrammingError, match="v is a view"):
        numbers("DELETE FROM v")


def test_an_unknown_catalog_is_named_with_the_attached_ones(numbers: Lake) -> None:
    with pytest.raises(ProgrammingError, match=r"'nosuch' is not attached \(attached: lake\)"):
        numbers("DELETE FROM nosuch.main.t")


@pytest.mark.parametrize("sql", ["SELECT * FROM t", "DELETE FROM t", "CREATE TABLE t (i INTEGER)"])
def test_without_a_catalog_that_is_said(sql: str) -> None:
    with lakedbapi.connect("lake://") as connection:
        with pytest.raises(ProgrammingError, match=r"no catalog is attached .*connection\.attach"):
            connection.execute(sql)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_the_name_of_the_directory_is_not_that_of_the_catalog(tmp_path: Path) -> None:
    with lakedbapi.connect(tmp_path / "shop") as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
        with pytest.raises(ProgrammingError, match=r"no schema or catalog shop \(catalogs: lake\)"):
            connection.execute("SELECT * FROM shop.t")


@pytest.mark.parametrize("name", ["wh.t", "wh.main.t"])
def test_a_lake_function_asks_the_catalog_of_its_table(tmp_path: Path, name: str) -> None:
    with lakedbapi.connect(tmp_path / "shop", autocommit=True) as connection:
        connection.attach(f"delta:{tmp_path}/warehouse", "wh")
        connection.execute("CREATE TABLE t (i INTEGER)")
        connection.execute("CREATE TABLE wh.t AS SELECT 1 AS j")
        operations = connection.execute(f"SELECT operation FROM history('{name}')").fetchall()
        assert operations == [("CREATE TABLE AS SELECT",)]
        assert len(connection.execute("SELECT * FROM history('lake.t')").fetchall()) == 1


@pytest.mark.parametrize("name", ['"a.b"', 'main."a.b"', '"lake".main."a.b"', '"say ""hi"""', 'q"t'])
def test_a_lake_function_finds_tables_with_dots_and_quotes(tmp_path: Path, name: str) -> None:
    called = name if name.startswith('"') or "." in name else '"q""t"'
    with lakedbapi.connect(tmp_path / "shop", autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {called} (i INTEGER)")
        connection.execute(f"INSERT INTO {called} VALUES (1)")
        assert len(connection.execute("SELECT * FROM history(?)", [name]).fetchall()) == 2
        assert connection.execute("SELECT * FROM table_changes(?, 2, 2)", [name]).fetchone() is not None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM 'rows.csv'",
        "SELECT count(*) FROM './*.CSV' AS r",
        'WITH r AS (SELECT * FROM "rows.csv") SELECT count(*) FROM r JOIN t ON r.a = t.a',
    ],
)
def test_files_are_named_like_tables_by_those_who_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("a\n1\n2\n")
    (tmp_path / "more.CSV").write_text("a\n1\n2\n")
    with lakedbapi.connect("lake", allow_external=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM 'rows.csv'")
        assert connection.execute(query).fetchone() == (2,)
        with pytest.raises(lakedbapi.Error, match=r"nosuch\.csv"):
            connection.execute("SELECT * FROM 'nosuch.csv'")
        with pytest.raises(ProgrammingError, match="table or view nosuch does not exist"):
            connection.execute("SELECT * FROM nosuch")
    with lakedbapi.connect("lake") as connection, pytest.raises(ProgrammingError, match="allow_external=True"):
        connection.execute(query)
