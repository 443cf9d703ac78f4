"""ORM sessions: keys, flushes, optimistic locking, cascades, bulk operations."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy import Column, ForeignKey, Integer, String, delete, exc, func, insert, select, text, update
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session, declarative_base, relationship
from sqlalchemy.orm.exc import StaleDataError

from sqlalchemy_lake import UUID

Base = declarative_base()


class User(Base):
    __tablename__ = "users"
    id = Column(Integer, primary_key=True)
    name = Column(String)
    version = Column(Integer, nullable=False)
    addresses = relationship(
        "Address", back_populates="user", cascade="all, delete-orphan", order_by="Address.email", passive_deletes=False
    )
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy's protocol


class Address(Base):
    __tablename__ = "addresses"
    id = Column(String, primary_key=True, default=lambda: str(uuid.uuid4()))
    email = Column(String, nullable=False)
    user_id = Column(ForeignKey("users.id"))
    user = relationship(User, back_populates="addresses")


class Item(Base):
    __tablename__ = "items"
    id = Column(Integer, primary_key=True)
    amount = Column(Integer)


class Ticket(Base):
    __tablename__ = "tickets"
    id = Column(UUID(), primary_key=True, default=uuid.uuid4)


@pytest.fixture(params=["lake:///{}/shop", "delta:///{}/warehouse?non_atomic=true"], ids=["ducklake", "delta"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    engine = sqlalchemy.create_engine(request.param.format(tmp_path), future=True)
    yield engine
    engine.dispose()


@pytest.fixture
def versions(engine: Engine) -> Callable[[], int]:
    """How many versions the table `items` has."""

    def count() -> int:
        with engine.connect() as connection:
            return int(connection.execute(text("SELECT count(*) FROM history('items')")).scalar())

    return count


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    Base.metadata.create_all(engine, [Base.metadata.tables[name] for name in ("users", "addresses", "items")])
    with Session(engine, future=True) as session:
        yield session


def test_new_objects_get_integer_keys_and_keep_their_own(session: Session) -> None:
    users = [User(name="ada", addresses=[Address(email="a@x")]), User(name="bob")]
    session.add_all(users)
    session.commit()
    assert [user.id for user in users] == [1, 2]
    assert uuid.UUID(users[0].addresses[0].id).version == 4
    session.add(User(id=10, name="given"))
    session.commit()
    session.add(User(name="after"))
    session.commit()
    assert session.execute(select(func.max(User.id))).scalar() == 11


def test_uuid_keys(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine()
    Ticket.__table__.create(engine)
    with Session(engine, future=True) as session:
        tickets = [Ticket(), Ticket()]
        session.add_all(tickets)
        session.commit()
        assert {ticket.id for ticket in tickets} == set(session.execute(select(Ticket.id)).scalars())
        assert isinstance(session.execute(select(Ticket.id)).scalars().first(), uuid.UUID)


def test_keys_are_the_objects_own_whatever_their_number(session: Session) -> None:
    items = [Item(amount=number * 7 % 1000) for number in range(2500)]
    session.add_all(items)
    session.flush()
    stored = dict(session.execute(text("SELECT id, amount FROM items")).fetchall())
    assert {item.id: item.amount for item in items} == stored


def test_a_thousand_new_objects_are_one_statement_one_snapshot_and_one_file(
    engine: Engine, session: Session, versions: Callable[[], int]
) -> None:
    sent = _statements(engine)
    before = versions()
    sent.clear()
    session.add_all([Item(amount=number) for number in range(1000)])
    session.commit()
    assert [statement.split()[0] for statement in sent] == ["INSERT"]
    assert versions() == before + 1
    assert session.execute(text("SELECT count(*) FROM files('items')")).scalar() == 1


def test_a_thousand_changed_objects_are_one_statement_and_one_snapshot(
    engine: Engine, session: Session, versions: Callable[[], int]
) -> None:
    session.add_all([Item(amount=number) for number in range(1000)])
    session.commit()
    items = session.execute(select(Item)).scalars().all()
    before, sent = versions(), _statements(engine)
    for item in items:
        item.amount += 1
    session.commit()
    assert [statement.split()[0] for statement in sent] == ["UPDATE"]
    assert versions() == before + 1
    assert session.execute(select(func.sum(Item.amount))).scalar() == sum(range(1000)) + 1000


def test_a_thousand_deleted_objects_are_one_statement_and_one_snapshot(
    engine: Engine, session: Session, versions: Callable[[], int]
) -> None:
    session.add_all([Item(amount=number) for number in range(1000)])
    session.commit()
    items = session.execute(select(Item).where(Item.amount >= 10)).scalars().all()
    before, sent = versions(), _statements(engine)
    for item in items:
        session.delete(item)
    session.commit()
    assert [statement.split()[0] for statement in sent] == ["DELETE"]
    assert versions() == before + 1
    assert session.execute(select(func.count()).select_from(Item)).scalar() == 10


def test_an_update_of_a_row_that_is_gone_is_stale(session: Session) -> None:
    items = [Item(amount=1), Item(amount=2)]
    session.add_all(items)
    session.commit()
    assert [item.amount for item in items] == [1, 2]
    session.execute(text("DELETE FROM items WHERE amount = 1"))
    for item in items:
        item.amount = 5
    with pytest.raises(StaleDataError):
        session.flush()


def test_version_counters_lock_optimistically(engine: Engine, session: Session) -> None:
    user = User(name="ada")
    session.add(user)
    session.commit()
    assert user.version == 1
    with Session(engine, future=True) as other:
        other.get(User, user.id).name = "other"
        other.commit()
    user.name = "mine"
    with pytest.raises((StaleDataError, exc.OperationalError)):
        session.commit()
    session.rollback()
    assert (user.name, user.version) == ("other", 2)
    user.name = "mine"
    session.commit()
    assert user.version == 3


def test_cascades_reach_the_children(session: Session) -> None:
    user = User(name="ada", addresses=[Address(email="a"), Address(email="b"), Address(email="c")])
    session.add(user)
    session.commit()
    del user.addresses[0]
    session.commit()
    assert session.execute(select(Address.email).order_by(Address.email)).scalars().all() == ["b", "c"]
    session.delete(user)
    session.commit()
    assert session.execute(select(func.count()).select_from(Address)).scalar() == 0


def test_bulk_operations(session: Session) -> None:
    session.bulk_insert_mappings(Item, [{"id": number, "amount": 0} for number in range(1, 101)])
    session.bulk_update_mappings(Item, [{"id": number, "amount": number} for number in range(1, 51)])
    session.bulk_save_objects([Item(id=200, amount=7)])
    session.commit()
    assert session.execute(select(func.sum(Item.amount), func.count())).one() == (1275 + 7, 101)


def test_statements_on_classes(session: Session) -> None:
    session.execute(insert(Item), [{"amount": number} for number in range(10)])
    assert session.execute(update(Item).where(Item.amount > 4).values(amount=Item.amount + 100)).rowcount == 5
    held = session.execute(select(Item).where(Item.amount == 105)).scalars().one()
    session.execute(
        update(Item).where(Item.amount == 105).values(amount=1).execution_options(synchronize_session="fetch")
    )
    assert held.amount == 1
    assert session.execute(delete(Item).where(Item.amount > 100)).rowcount == 4


@pytest.mark.skipif(sqlalchemy.__version__.startswith("1.4"), reason="SQLAlchemy 1.4 has no RETURNING of objects")
def test_a_bulk_insert_returns_objects_in_the_order_of_its_rows(session: Session) -> None:
    rows = [{"amount": number * 7 % 1000} for number in range(1500)]
    returning = insert(Item).returning(Item, sort_by_parameter_order=True)
    assert [item.amount for item in session.scalars(returning, rows)] == [row["amount"] for row in rows]


def test_a_failed_flush_leaves_a_session_that_can_roll_back_and_go_on(session: Session) -> None:
    session.add(Address(email=None))
    with pytest.raises(exc.IntegrityError):
        session.commit()
    session.rollback()
    session.add(Item(amount=1))
    session.commit()
    assert session.execute(select(func.count()).select_from(Item)).scalar() == 1


def test_savepoints_of_a_session(session: Session) -> None:
    session.add(Item(amount=1))
    with session.begin_nested() as savepoint:
        session.add(Item(amount=2))
        session.flush()
        savepoint.rollback()
    session.commit()
    assert session.execute(select(Item.amount)).scalars().all() == [1]


def _statements(engine: Engine) -> list[str]:
    """The DML that the engine sends from now on."""
    sent: list[str] = []

    @sqlalchemy.event.listens_for(engine, "before_cursor_execute")
    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if not statement.lstrip().upper().startswith("SELECT"):
            sent.append(statement)

    return sent
