"""Identity and computed columns as a format can do them: declared, counted or computed, reflected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy import (
    Column,
    Computed,
    Identity,
    Integer,
    MetaData,
    String,
    Table,
    exc,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session, declarative_base
from sqlalchemy.schema import CreateTable


@pytest.fixture
def delta(tmp_path: Path) -> Iterator[Engine]:
    engine = sqlalchemy.create_engine(f"delta:///{tmp_path}", future=True)
    yield engine
    engine.dispose()


def numbered(**options: object) -> Table:
    return Table("t", MetaData(), Column("a", Integer, Identity(**options)), Column("b", Integer))


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"always": True}, [1, 2]),
        ({"start": 100, "increment": 10}, [100, 110]),
        ({"start": -1, "increment": -5, "always": True}, [-1, -6]),
        ({"start": 0}, [0, 1]),
    ],
)
def test_identity_columns_count_as_declared(delta: Engine, options: dict[str, int], values: list[int]) -> None:
    table = numbered(**options)
    table.create(delta)
    with delta.begin() as connection:
        connection.execute(insert(table), [{"b": 1}, {"b": 2}])
        assert connection.execute(select(table.c.a).order_by(table.c.b)).scalars().all() == values
    expected = {"always": False, "start": 1, "increment": 1, **options}
    (column, _) = inspect(delta).get_columns("t")
    assert (column["identity"], column["autoincrement"], column["default"]) == (expected, True, None)
    again = Table("t", MetaData(), autoload_with=delta)
    assert str(CreateTable(again).compile(delta)).startswith(str(CreateTable(table).compile(delta)).rstrip())


def test_a_column_that_is_always_counted_takes_no_value(delta: Engine) -> None:
    table = numbered(always=True)
    table.create(delta)
    with delta.connect() as connection, pytest.raises(exc.DBAPIError, match="ALWAYS"):
        connection.execute(insert(table), {"a": 5, "b": 1})


def test_computed_columns_are_computed_and_reflected(delta: Engine) -> None:
    table = Table(
        "t",
        MetaData(),
        Column("a", Integer),
        Column("b", Integer, Computed("a + 1")),
        Column("end", String),
        Column("c", String, Computed("coalesce(\"end\", '!')", persisted=True)),
    )
    table.create(delta)
    with delta.begin() as connection:
        connection.execute(insert(table), [{"a": 1, "end": "x"}, {"a": 5, "end": None}])
        connection.execute(update(table).where(table.c.a == 1).values(a=2))
        assert sorted(connection.execute(select(table.c.b, table.c.c)).fetchall()) == [(3, "x"), (6, "!")]
    again = Table("t", MetaData(), autoload_with=delta)
    assert [column.computed is not None for column in again.columns] == [False, True, False, True]
    assert inspect(delta).get_columns("t")[1]["computed"] == {"sqltext": "a + 1", "persisted": True}
    again.drop(delta)
    again.create(delta)
    with delta.begin() as connection:
        connection.execute(insert(again), {"a": 1, "end": "z"})
        assert connection.execute(select(again.c.b, again.c.c)).fetchall() == [(2, "z")]


def test_the_orm_reads_what_was_counted_and_computed(delta: Engine) -> None:
    base = declarative_base()

    class Item(base):
        __tablename__ = "items"
        id = Column(Integer, Identity(start=7, always=True), primary_key=True)
        price = Column(Integer)
        doubled = Column(Integer, Computed("price * 2"))

    base.metadata.create_all(delta)
    with Session(delta, future=True) as session:
        item = Item(price=21)
        session.add(item)
        session.commit()
        assert (item.id, item.doubled) == (7, 42)
        item.price = 1
        session.commit()
        assert item.doubled == 2


@pytest.mark.parametrize("options", [{"minvalue": 5}, {"maxvalue": 5}, {"cycle": True}, {"cache": 10}])
def test_options_that_no_lake_has_are_refused(delta: Engine, options: dict[str, int]) -> None:
    with pytest.raises(exc.CompileError, match="only start and increment"):
        numbered(**options).create(delta)


def test_computed_values_are_always_kept(delta: Engine) -> None:
    table = Table("t", MetaData(), Column("a", Integer), Column("b", Integer, Computed("a", persisted=False)))
    with pytest.raises(exc.CompileError, match="keeps computed values"):
        table.create(delta)


@pytest.mark.parametrize("options", [{"start": 5}, {"always": True}, {"increment": 2}])
def test_other_formats_say_that_they_only_count_from_one(engine: Engine, options: dict[str, int]) -> None:
    with pytest.raises(exc.NotSupportedError, match="count 1, 2, 3"):
        numbered(**options).create(engine)


def test_other_formats_say_that_views_compute(engine: Engine) -> None:
    table = Table("t", MetaData(), Column("a", Integer), Column("b", Integer, Computed("a + 1")))
    with pytest.raises(exc.NotSupportedError, match="in a view"):
        table.create(engine)
