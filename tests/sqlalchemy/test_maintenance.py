"""OPTIMIZE, VACUUM, RESTORE and CHECKPOINT: as constructs and as text()."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, exc, select, text
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session, declarative_base

from sqlalchemy_lake import Checkpoint, LakeDialect, Optimize, Restore, Vacuum

metadata = MetaData()
orders = Table("orders", metadata, Column("id", Integer, primary_key=True, autoincrement=False), Column("who", String))
odd = Table("or der", MetaData(), Column("Sel,ect", Integer), schema="s")
Base = declarative_base(metadata=metadata)


class Item(Base):  # type: ignore[misc, valid-type]
    __tablename__ = "items"
    id = Column(Integer, primary_key=True, autoincrement=False)


@pytest.fixture
def filled(engine: Engine, snapshots: Callable[[], int]) -> int:
    """With 100 orders in two files, half of them deleted since the version that it returns."""
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(text("CALL set_option('lake', 'data_inlining_row_limit', 0)"))
        connection.execute(orders.insert(), [{"id": i, "who": f"c{i}"} for i in range(50)])
    with engine.begin() as connection:
        connection.execute(orders.insert(), [{"id": i, "who": f"c{i}"} for i in range(50, 100)])
    version = snapshots()
    with engine.begin() as connection:
        connection.execute(orders.delete().where(orders.c.id % 2 == 0))
    return version


def compiled(statement: object) -> str:
    return str(statement.compile(dialect=LakeDialect()))  # type: ignore[attr-defined]


def test_their_text() -> None:
    assert compiled(Optimize(orders)) == "OPTIMIZE TABLE orders"
    where = (orders.c.id > 3) & (orders.c.who == "it's")
    assert compiled(Optimize(orders, where)) == "OPTIMIZE TABLE orders WHERE id > 3 AND who = 'it''s'"
    assert compiled(Optimize(odd, odd.c["Sel,ect"] < 5)) == 'OPTIMIZE TABLE s."or der" WHERE "Sel,ect" < 5'
    assert compiled(Vacuum()) == "VACUUM"
    assert compiled(Vacuum(Item, retain_hours=0.5, dry_run=True)) == "VACUUM TABLE items RETAIN (0.5) HOURS DRY RUN"
    assert compiled(Restore(orders, version=3)) == "RESTORE TABLE orders TO VERSION AS OF 3"
    at = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
    expected = "RESTORE TABLE orders TO TIMESTAMP AS OF '2026-01-31 12:00:00+00:00'"
    assert compiled(Restore(orders, timestamp=at)) == expected
    assert compiled(Restore(orders, timestamp="2026-01-31")).endswith("AS OF '2026-01-31'")
    assert compiled(Checkpoint()) == "CHECKPOINT"
    assert compiled(Checkpoint("other lake")) == 'CHECKPOINT "other lake"'


def test_wrong_arguments() -> None:
    for arguments in ({}, {"version": 1, "timestamp": "2026-01-31"}):
        with pytest.raises(exc.ArgumentError, match="either version or timestamp"):
            Restore(orders, **arguments)
    with pytest.raises(exc.CompileError, match="no number"):
        compiled(Restore(orders, version="1; DROP TABLE orders"))  # type: ignore[arg-type]
    with pytest.raises(exc.ArgumentError):
        Optimize("orders")


def test_optimize_and_vacuum_give_rows(engine: Engine, filled: int) -> None:
    with engine.connect() as connection:
        done = connection.execute(Optimize(orders, orders.c.id < 50)).one()
        assert (done.schema_name, done.table_name, done.files_removed, done.deletes_removed) == (
            "main",
            "orders",
            1,
            25,
        )
        assert connection.execute(Vacuum(orders)).all() == []
        going = connection.execute(Vacuum(retain_hours=0, dry_run=True)).scalars().all()
        assert going
        assert set(connection.execute(Vacuum(retain_hours=0)).scalars()) == set(going)
        assert connection.execute(Checkpoint()).all() == []
        assert connection.execute(select(orders.c.id).order_by(orders.c.id)).scalars().all() == list(range(1, 100, 2))


def test_a_restore_belongs_to_the_transaction(engine: Engine, filled: int) -> None:
    count = text("SELECT count(*) FROM orders")
    with engine.connect() as connection:
        connection.execute(Restore(orders, version=filled))
        assert connection.execute(count).scalar() == 100
        connection.rollback()
        assert connection.execute(count).scalar() == 50
    with Session(engine, future=True) as session:
        session.execute(Restore(orders, version=filled))
        session.add(Item(id=1))
        session.commit()
        assert session.execute(count).scalar() == 100
        assert session.get(Item, 1) is not None


def test_text_does_the_same(engine: Engine, filled: int) -> None:
    with engine.begin() as connection:
        restored = connection.execute(text("RESTORE TABLE orders TO VERSION AS OF :version"), {"version": filled})
        assert restored.rowcount == 50
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        assert connection.execute(text("DESCRIBE HISTORY orders LIMIT 1")).one().changes
        assert connection.execute(text("OPTIMIZE orders WHERE id < :id"), {"id": 10}).one().table_name == "orders"
        assert connection.execute(text("VACUUM orders RETAIN :hours HOURS DRY RUN"), {"hours": 1000}).all() == []
        connection.execute(text("CHECKPOINT"))
        expired = text("SELECT count(*) FROM ducklake_expire_snapshots('lake', older_than => now())")
        assert connection.execute(expired).scalar_one() > 0
        assert connection.execute(text("SELECT count(*) FROM orders")).scalar() == 100
