"""Counts, descriptions and results of statements."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, bindparam, delete, func, insert, select, text, update
from sqlalchemy.engine import Connection, Engine

import lakedbapi

METADATA = MetaData()
ITEMS = Table("items", METADATA, Column("id", Integer, primary_key=True), Column("name", String))

MERGE = """
MERGE INTO items USING (SELECT 1 AS id UNION ALL SELECT 9) AS s ON items.id = s.id
WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)
"""


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.execute(insert(ITEMS), [{"id": number, "name": f"n{number}"} for number in range(1, 6)])
    with engine.connect() as connection:
        yield connection


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("UPDATE items SET name = 'x' WHERE id = 1", 1),
        ("UPDATE items SET name = name WHERE id <= 3", 3),
        ("DELETE FROM items WHERE id = 99", 0),
        ("DELETE FROM items", 5),
        ("INSERT INTO items SELECT id + 10, name FROM items", 5),
        (MERGE, 2),
        ("TRUNCATE items", 5),
    ],
)
def test_dml_in_text_counts_its_rows_and_returns_none(connection: Connection, statement: str, count: int) -> None:
    result = connection.execute(text(statement))
    assert (result.rowcount, result.returns_rows) == (count, False)


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        (update(ITEMS).where(ITEMS.c.id == 1).values(name="x"), 1),
        (update(ITEMS).where(ITEMS.c.id == 99).values(name="x"), 0),
        (delete(ITEMS).where(ITEMS.c.id > 2), 3),
    ],
)
def test_dml_constructs_count_their_rows(connection: Connection, statement: object, count: int) -> None:
    result = connection.execute(statement)
    assert (result.rowcount, result.returns_rows) == (count, False)


def test_executemany_counts_the_rows_of_all_parameter_sets(connection: Connection) -> None:
    changed = update(ITEMS).where(ITEMS.c.id == bindparam("key")).values(name="y")
    assert connection.execute(changed, [{"key": 1}, {"key": 2}, {"key": 77}]).rowcount == 2


def test_many_rows_make_one_snapshot_and_one_file(engine: Engine, snapshots: Callable[[], int]) -> None:
    METADATA.create_all(engine)
    before, start = snapshots(), time.process_time()
    with engine.begin() as connection:
        cursor = connection.connection.cursor()
        cursor.executemany("INSERT INTO items VALUES (?, ?)", [(number, "x") for number in range(5000)])
        assert cursor.rowcount == 5000
    assert time.process_time() - start < 2
    assert snapshots() == before + 1
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM files('items')")).scalar() == 1


def test_percent_signs_and_marks_stand_in_text_as_they_are(connection: Connection) -> None:
    query = """SELECT 5 % 3, 'a%s ? \\:x', "c?d" FROM (SELECT 1 AS "c?d") -- what? \\:y"""
    assert connection.execute(text(query)).fetchall() == [(2, "a%s ? :x", 1)]
    assert connection.exec_driver_sql("SELECT 'a%s', 7 % 2").fetchall() == [("a%s", 1)]
    assert connection.execute(select(ITEMS.c.id % 3).where(ITEMS.c.name.like("n%4"))).fetchall() == [(1,)]


def test_an_open_result_survives_other_statements(connection: Connection) -> None:
    result = connection.execute(text("SELECT * FROM range(5)"))
    assert connection.execute(text("SELECT 1")).fetchall() == [(1,)]
    assert len(result.fetchall()) == 5


def test_streamed_results_come_in_batches(connection: Connection) -> None:
    result = connection.execution_options(stream_results=True).execute(text("SELECT * FROM range(100000)"))
    batches = [len(batch) for batch in result.partitions(30_000)]
    assert batches == [30_000, 30_000, 30_000, 10_000]


def test_a_cursor_describes_its_result_in_text_codes(engine: Engine) -> None:
    cursor = engine.raw_connection().cursor()
    cursor.arraysize = 10
    cursor.execute("SELECT 1.5::DECIMAL(9, 2) AS d, 'x' AS s")
    cursor.fetchall()
    assert cursor.description[0][:2] == ("d", lakedbapi.NUMBER)
    assert isinstance(cursor.description[0][1], str)
    assert cursor.description[1][1] == lakedbapi.STRING


def test_returning_gives_the_rows_of_each_kind_of_dml(connection: Connection) -> None:
    rows = connection.execute(insert(ITEMS).values(name="new").returning(ITEMS.c.id, ITEMS.c.name)).fetchall()
    assert rows == [(6, "new")]
    changed = update(ITEMS).where(ITEMS.c.id == 6).values(name=func.upper(ITEMS.c.name)).returning(ITEMS.c.name)
    assert connection.execute(changed).fetchall() == [("NEW",)]
    assert connection.execute(delete(ITEMS).where(ITEMS.c.id == 6).returning(ITEMS.c.id)).fetchall() == [(6,)]


def test_update_from_and_delete_using_other_tables(connection: Connection) -> None:
    other = ITEMS.alias("other")
    joined = update(ITEMS).values(name=other.c.name).where(ITEMS.c.id == other.c.id + 1)
    assert connection.execute(joined).rowcount == 4
    using = delete(ITEMS).where(ITEMS.c.id == other.c.id + 3)
    assert connection.execute(using).rowcount == 2
