"""MERGE, INSERT … ON CONFLICT, and pandas on top of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy
from sqlalchemy import Column, Integer, MetaData, String, Table, exc, insert, literal, select, text, union_all
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.orm import declarative_base

import sqlalchemy_lake
from sqlalchemy_lake import lake_upsert, merge

pandas = pytest.importorskip("pandas")
Base = declarative_base()


class Stock(Base):
    __tablename__ = "stock"
    id = Column(Integer, primary_key=True, autoincrement=False)
    name = Column(String)
    amount = Column(Integer)


STOCK = Stock.__table__
NEWS = union_all(
    select(literal(1).label("id"), literal("one").label("name"), literal(10).label("amount")),
    select(literal(4), literal("four"), literal(40)),
).subquery("news")


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        rows = [{"id": number, "name": f"n{number}", "amount": number} for number in (1, 2, 3)]
        connection.execute(insert(STOCK), rows)
    with engine.connect() as connection:
        yield connection


def stock(connection: Connection) -> list[tuple[int, str, int]]:
    return [tuple(row) for row in connection.execute(select(STOCK).order_by(STOCK.c.id))]


def test_merge_updates_inserts_and_counts(connection: Connection) -> None:
    statement = (
        merge(Stock)
        .using(NEWS, Stock.id == NEWS.c.id)
        .when_matched_update({Stock.amount: Stock.amount + NEWS.c.amount, "name": NEWS.c.name})
        .when_not_matched_insert({"id": NEWS.c.id, "name": NEWS.c.name, "amount": 0})
    )
    result = connection.execute(statement)
    assert (result.rowcount, result.returns_rows) == (2, False)
    assert stock(connection) == [(1, "one", 11), (2, "n2", 2), (3, "n3", 3), (4, "four", 0)]


def test_merge_deletes_and_first_match_wins(connection: Connection) -> None:
    statement = (
        merge(STOCK)
        .using(NEWS, STOCK.c.id == NEWS.c.id)
        .when_matched_delete(STOCK.c.amount > 100)
        .when_matched_nothing(NEWS.c.name == "one")
        .when_matched_delete()
        .when_not_matched_by_source_update({"amount": -1}, STOCK.c.id == 2)
        .when_not_matched_by_source_delete()
    )
    assert connection.execute(statement).rowcount == 2
    assert stock(connection) == [(1, "n1", 1), (2, "n2", -1)]


def test_merge_returns_rows(connection: Connection) -> None:
    statement = merge(STOCK).using(NEWS, STOCK.c.id == NEWS.c.id).when_matched_update({"amount": 99})
    assert connection.execute(statement.returning(STOCK.c.id, STOCK.c.amount)).fetchall() == [(1, 99)]


def test_merge_from_a_table(connection: Connection) -> None:
    other = STOCK.alias("other")
    statement = merge(STOCK).using(other, STOCK.c.id == other.c.id + 1).when_matched_update({"name": other.c.name})
    assert connection.execute(statement).rowcount == 2
    assert [name for _, name, _ in stock(connection)] == ["n1", "n1", "n2"]


def test_merges_of_other_values_share_the_cached_text(connection: Connection) -> None:
    for amount in (5, 6):
        statement = merge(STOCK).using(NEWS, STOCK.c.id == NEWS.c.id).when_matched_update({"amount": amount})
        connection.execute(statement)
        assert stock(connection)[0] == (1, "n1", amount)


def test_an_unfinished_merge_is_refused(connection: Connection) -> None:
    with pytest.raises(exc.CompileError, match="needs using"):
        connection.execute(merge(STOCK))


def test_on_conflict_do_update(connection: Connection) -> None:
    statement = sqlalchemy_lake.insert(STOCK).values(
        [{"id": 1, "name": "x", "amount": 1}, {"id": 9, "name": "y", "amount": 9}]
    )
    statement = statement.on_conflict_do_update(
        index_elements=[STOCK.c.id], set_={"name": statement.excluded.name, "amount": STOCK.c.amount + 100}
    )
    assert connection.execute(statement).rowcount == 2
    assert stock(connection) == [(1, "x", 101), (2, "n2", 2), (3, "n3", 3), (9, "y", 9)]


def test_on_conflict_do_update_where(connection: Connection) -> None:
    statement = sqlalchemy_lake.insert(STOCK).values(id=1, name="x", amount=1)
    statement = statement.on_conflict_do_update(index_elements=["id"], set_={"name": "new"}, where=STOCK.c.amount > 5)
    assert connection.execute(statement).rowcount == 0
    assert stock(connection)[0] == (1, "n1", 1)


def test_on_conflict_do_nothing_with_many_rows(connection: Connection) -> None:
    rows = [{"id": number, "name": "new", "amount": 0} for number in range(3, 6)]
    statement = sqlalchemy_lake.insert(Stock).on_conflict_do_nothing()
    assert connection.execute(statement, rows).rowcount == 2
    assert [name for _, name, _ in stock(connection)] == ["n1", "n2", "n3", "new", "new"]


def test_on_conflict_refuses_unknown_columns(connection: Connection) -> None:
    statement = sqlalchemy_lake.insert(STOCK).values(id=1)
    with pytest.raises(exc.CompileError, match="'colour'"):
        connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_={"colour": "red"}))


PANDAS_KNOWS_THIS_SQLALCHEMY = tuple(map(int, pandas.__version__.split(".")[:2])) < (2, 2) or not (
    sqlalchemy.__version__.startswith("1.4")
)


@pytest.mark.skipif(not PANDAS_KNOWS_THIS_SQLALCHEMY, reason="pandas from 2.2 needs SQLAlchemy 2")
class TestPandas:
    def test_to_sql_counts_its_rows_and_makes_one_file(self, engine: Engine) -> None:
        frame = pandas.DataFrame({"a": range(3000)})
        assert frame.to_sql("b", engine, index=False) == 3000
        with engine.connect() as connection:
            assert connection.execute(text("SELECT count(*) FROM files('b')")).scalar() == 1
        assert pandas.read_sql_table("b", engine)["a"].tolist() == list(range(3000))

    def test_to_sql_upserts(self, engine: Engine, connection: Connection) -> None:
        frame = pandas.DataFrame({"id": [2, 7], "name": ["two", "seven"], "amount": [22, 77]})
        method = lake_upsert(["id"])
        assert frame.to_sql("stock", engine, index=False, if_exists="append", method=method) == 2
        assert stock(connection) == [(1, "n1", 1), (2, "two", 22), (3, "n3", 3), (7, "seven", 77)]

    def test_to_sql_replaces(self, engine: Engine) -> None:
        frame = pandas.DataFrame({"a": [1.5, None], "when": pandas.to_datetime(["2026-01-01", None])})
        for _ in range(2):
            frame.to_sql("c", engine, index=False, if_exists="replace")
        pandas.testing.assert_frame_equal(pandas.read_sql("SELECT * FROM c", engine), frame, check_dtype=False)


def test_tables_of_a_schema_take_part(engine: Engine) -> None:
    metadata = MetaData(schema="side")
    table = Table("stock", metadata, Column("id", Integer, primary_key=True, autoincrement=False), Column("n", Integer))
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA side"))
        metadata.create_all(connection)
        connection.execute(insert(table), [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
        news = select(literal(1).label("id")).subquery()
        statement = merge(table).using(news, table.c.id == news.c.id).when_matched_update({"n": table.c.n + 10})
        assert connection.execute(statement).rowcount == 1
        upsert = sqlalchemy_lake.insert(table).values(id=2, n=5)
        upsert = upsert.on_conflict_do_update(index_elements=["id"], set_={"n": upsert.excluded.n + table.c.n})
        assert connection.execute(upsert).rowcount == 1
        assert connection.execute(table.delete().where(table.c.n == 11).returning(table.c.id)).fetchall() == [(1,)]
        assert connection.execute(select(table)).fetchall() == [(2, 7)]
