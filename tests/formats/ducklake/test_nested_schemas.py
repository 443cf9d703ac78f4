"""Schemas inside of schemas (format 1.1): made, named and dropped by their full names, and noted as DuckLake
notes them.

No DuckDB that knows them can be had here: what the catalog holds is compared with what the specification says.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from lakedbapi.errors import ConflictError, NotSupportedError, ProgrammingError


class Lake:
    def __init__(self, folder: Path, **options: str) -> None:
        self.folder = folder
        self.connection = lakedbapi.connect(folder, autocommit=True, alias="lake", **options)

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def catalog(self, sql: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.folder / "catalog.sqlite") as catalog:
            return catalog.execute(sql).fetchall()

    def changes(self) -> list[str]:
        return [
            text for (text,) in self.catalog("SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id")
        ]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """The schema `europe` in `sales`, `north` in that, and one that is just called "sales.asia"."""
    lake = Lake(tmp_path, ducklake_version="1.1")
    for name in ("sales", "sales.europe", "lake.sales.europe.north", '"sales.asia"'):
        lake(f"CREATE SCHEMA {name}")
    yield lake
    lake.connection.close()


ORDERS = "lake.sales.europe.orders"


def test_the_catalog_has_parents_paths_and_quoted_names(lake: Lake) -> None:
    lake(f"CREATE TABLE {ORDERS} (id INTEGER)")
    lake(f"ALTER TABLE {ORDERS} RENAME TO o")
    lake("CREATE VIEW lake.sales.europe.v AS SELECT 1 AS one")
    lake('USE "sales.europe"')
    lake("CREATE MACRO m(x) AS x + 1")
    schemas = lake.catalog("SELECT schema_id, schema_name, parent_schema_id, path FROM ducklake_schema ORDER BY 1")
    assert [row[:3] for row in schemas] == [
        (0, "main", None),
        (1, "sales", None),
        (2, "europe", 1),
        (3, "north", 2),
        (4, "sales.asia", None),
    ]
    assert schemas[1][3] == "sales/"
    assert len({path for *_, path in schemas}) == 5, "schemas in others have a folder of their own"
    assert all(len(path) == 37 and path.endswith("/") for *_, path in schemas[2:])
    assert lake.changes()[1:] == [
        'created_schema:"sales"',
        'created_schema:"sales"."europe"',
        'created_schema:"sales"."europe"."north"',
        'created_schema:"sales.asia"',
        'created_table:"sales"."europe"."orders"',
        'created_table:"sales"."europe"."o"',
        'created_view:"sales"."europe"."v"',
        'created_scalar_macro:"sales"."europe"."m"',
    ]


@pytest.mark.parametrize("orders", [ORDERS, "sales.europe.orders"])
def test_tables_are_used_by_their_full_names_with_and_without_the_catalogs(lake: Lake, orders: str) -> None:
    lake(f"CREATE TABLE {orders} (id INTEGER, v VARCHAR)")
    lake(f"INSERT INTO {orders} VALUES (1, 'a')")
    lake.connection.executemany(f"INSERT INTO {orders} SELECT max(id) + 1, ? FROM {orders}", [("b",)])
    version = len(lake.changes()) - 1
    lake(f"UPDATE {orders} SET v = 'y' WHERE id = 1")
    lake(f"UPDATE {orders} SET v = 'z' FROM {orders} AS s WHERE s.id = orders.id AND s.v = 'y'")
    lake(f"""
        MERGE INTO {orders} USING (VALUES (1, 'm'), (9, 'n')) s(id, v) ON orders.id = s.id
        WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)
    """)
    lake(f"DELETE FROM {orders} WHERE id = (SELECT max(id) - 7 FROM {orders})")
    lake(f"COMMENT ON TABLE {orders} IS 'kept'")
    lake(f"ALTER TABLE {orders} ADD COLUMN n INTEGER")
    rows = [(1, "m", None), (9, "n", None)]
    assert lake(f"SELECT * FROM {orders}") == rows
    assert lake('SELECT * FROM "sales.europe".orders') == rows
    assert lake(f"SELECT orders.id, {orders}.v FROM {orders} WHERE orders.id > 1") == [(9, "n")]
    assert lake(f"SELECT a.id FROM {orders} a JOIN {orders} AS b USING (id) ORDER BY 1") == [(1,), (9,)]
    assert lake(f"WITH q AS (FROM {orders}) SELECT count(*) FROM q WHERE EXISTS (FROM {orders})") == [(2,)]
    assert lake(f"SELECT * FROM {orders} FOR VERSION AS OF {version}") == [(1, "a"), (2, "b")]
    assert len(lake(f"SELECT * FROM table_changes('{orders}', {version}, {version})")) == 1
    assert lake(f"SELECT * FROM files('{orders}')") == []
    assert [name for name, *_ in lake(f"DESCRIBE {orders}")] == ["id", "v", "n"]
    assert [name for name, *_ in lake(f"DESCRIBE SELECT id FROM {orders}")] == ["id"]
    assert len(lake(f"SUMMARIZE {orders}")) == 3
    assert lake(f"EXPLAIN SELECT * FROM {orders}")
    assert lake("SHOW TABLES FROM sales.europe") == [("orders",)]
    deep = orders.replace("orders", "north.deep")
    lake(f"CREATE TABLE {deep} AS SELECT id - 4 AS i FROM {orders} WHERE id = 9")
    assert lake(f"SELECT i FROM {deep}") == [(5,)]
    lake('CREATE TABLE "sales.asia".orders AS SELECT 7 AS other')
    assert lake('SELECT * FROM lake."sales.asia".orders') == [(7,)]
    for missing in ("lake.sales.asia.orders", "lake.sales.europe.nothing", "sales.europe.nothing"):
        with pytest.raises(ProgrammingError, match="does not exist"):
            lake(f"SELECT * FROM {missing}")


def test_views_name_tables_by_their_full_names_whatever_the_lake_is_called(lake: Lake) -> None:
    lake(f"CREATE TABLE {ORDERS} AS SELECT 1 AS id")
    queries = (
        f"SELECT orders.id FROM {ORDERS}",
        "SELECT id FROM sales.europe.orders",
        'SELECT id FROM "sales.europe".orders',
    )
    for number, query in enumerate(queries):
        lake(f"CREATE VIEW v{number} AS {query}")
    lake(f"CREATE VIEW lake.sales.europe.inside AS SELECT id FROM {ORDERS}")
    texts = [text for (text,) in lake.catalog("SELECT sql FROM ducklake_view")]
    assert len(texts) == 4
    assert all('{DUCKLAKE_CATALOG}."sales"."europe"."orders"' in text for text in texts), texts
    with lakedbapi.connect(lake.folder, alias="other") as other:
        for view in ("v0", "v1", "v2", "other.sales.europe.inside", "sales.europe.inside"):
            assert other.execute(f"SELECT * FROM {view}").fetchall() == [(1,)], view


def test_options_and_maintenance_take_the_dotted_name(lake: Lake) -> None:
    lake(f"CREATE TABLE {ORDERS} AS SELECT 1 AS id")
    lake("CALL lake.set_option('parquet_compression', 'zstd', schema => 'sales.europe')")
    assert lake.catalog("SELECT scope_id FROM ducklake_metadata WHERE key = 'parquet_compression'") == [(2,)]
    assert lake("CALL ducklake_flush_inlined_data('lake', schema_name => 'sales.europe')") == [
        ("sales.europe", "orders", 1)
    ]


def test_a_schema_goes_with_all_that_is_in_it(lake: Lake) -> None:
    lake("CREATE TABLE lake.sales.europe.north.deep AS SELECT 5 AS i")
    for name in ("sales", "lake.sales.europe", "sales.europe.north"):
        with pytest.raises(ProgrammingError, match="is not empty"):
            lake(f"DROP SCHEMA {name}")
    lake("DROP SCHEMA sales CASCADE")
    live = "SELECT schema_name FROM ducklake_schema WHERE end_snapshot IS NULL ORDER BY 1"
    assert lake.catalog(live) == [("main",), ("sales.asia",)]
    assert lake.changes()[-1] == "dropped_schema:3,dropped_schema:2,dropped_schema:1,dropped_table:5"
    lake("CALL ducklake_expire_snapshots('lake', older_than => now())")
    assert lake.catalog("SELECT count(*) FROM ducklake_schema") == [(2,)]


def test_what_cannot_be_made(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(ProgrammingError, match="exists already"):
        lake("CREATE SCHEMA sales.Europe")
    lake("CREATE SCHEMA IF NOT EXISTS lake.sales.europe")
    with pytest.raises(ProgrammingError, match=r"sales\.africa does not exist.*create it before south"):
        lake("CREATE SCHEMA lake.sales.africa.south")
    plain = Lake(tmp_path / "plain")
    plain("CREATE SCHEMA a")
    with pytest.raises(NotSupportedError, match=r'DuckLake 1\.1 has; write "a\.b"'):
        plain("CREATE SCHEMA a.b")
    plain("CALL ducklake_migrate('lake', '1.1')")
    plain("CREATE SCHEMA a.b")
    plain.connection.close()


@pytest.mark.parametrize(
    ("mine", "theirs", "conflicts"),
    [
        ("CREATE SCHEMA sales.africa", "CREATE SCHEMA sales.Africa", True),
        ("CREATE SCHEMA sales.africa", "CREATE SCHEMA africa", False),
        ("CREATE SCHEMA sales.africa", "CREATE SCHEMA sales.europe.africa", False),
        ("CREATE SCHEMA sales.africa", "DROP SCHEMA sales CASCADE", True),
        ("DROP SCHEMA sales CASCADE", "CREATE SCHEMA sales.africa", True),
        ("DROP SCHEMA sales.europe.north", "CREATE TABLE lake.sales.europe.north.t (i INTEGER)", True),
    ],
)
def test_two_transactions(lake: Lake, tmp_path: Path, mine: str, theirs: str, conflicts: bool) -> None:
    other = Lake(tmp_path)
    lake("BEGIN")
    lake(mine)
    other(theirs)
    if conflicts:
        with pytest.raises(ConflictError):
            lake("COMMIT")
    else:
        lake("COMMIT")
    other.connection.close()


def test_a_schema_and_its_inside_are_made_in_one_transaction(lake: Lake) -> None:
    for statement in (
        "BEGIN",
        "CREATE SCHEMA a",
        "CREATE SCHEMA lake.a.b",
        "CREATE SCHEMA lake.a.b.c",
        "CREATE TABLE lake.a.b.c.t AS SELECT 3 AS n",
        "COMMIT",
    ):
        lake(statement)
    assert lake("SELECT n FROM lake.a.b.c.t") == [(3,)]
    assert lake.changes()[-1].startswith(
        'created_schema:"a",created_schema:"a"."b",created_schema:"a"."b"."c",created_table:"a"."b"."c"."t"'
    )


def test_a_schema_whose_parent_is_gone_is_taken_for_no_other(lake: Lake) -> None:
    lake(f"CREATE TABLE {ORDERS} AS SELECT 1 AS lost")
    lake("CREATE SCHEMA europe")
    lake("CREATE TABLE europe.orders AS SELECT 2 AS own")
    with sqlite3.connect(lake.folder / "catalog.sqlite") as catalog:
        catalog.execute("UPDATE ducklake_schema SET end_snapshot = 5 WHERE schema_name = 'sales'")
    lake.connection.close()
    again = Lake(lake.folder)
    again("CREATE SCHEMA sales")
    again("CREATE SCHEMA sales.europe")
    again("CREATE TABLE sales.europe.orders AS SELECT 3 AS new")
    for name, value in (("europe", 2), ("sales.europe", 3), ('"#1.europe"', 1)):
        assert again(f"SELECT * FROM {name}.orders") == [(value,)], name
    again('DROP SCHEMA "#1.europe" CASCADE')
    with pytest.raises(ProgrammingError, match="does not exist"):
        again('SELECT * FROM "#1.europe".orders')
    assert again("SELECT * FROM europe.orders") == [(2,)]
    again.connection.close()
