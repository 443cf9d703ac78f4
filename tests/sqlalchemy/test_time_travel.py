"""Reading the past: per table, statement, connection, engine, session and URL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
import sqlalchemy
from sqlalchemy import Column, ForeignKey, Integer, MetaData, String, Table, exc, inspect, select, text
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session, aliased, declarative_base, relationship

from sqlalchemy_lake import LakeSession, as_of

TOKENS = pytest.mark.skipif(
    sqlalchemy.__version__.startswith("1.4"), reason="SQLAlchemy 1.4 has no identity tokens for statements"
)
Base = declarative_base()


class User(Base):
    __tablename__ = "users"
    id = Column(Integer, primary_key=True)
    name = Column(String)
    boss_id = Column(ForeignKey("users.id"))
    boss = relationship("User", remote_side=[id])
    pets = relationship("Pet", order_by="Pet.id", back_populates="owner")


class Pet(Base):
    __tablename__ = "pets"
    id = Column(Integer, primary_key=True)
    name = Column(String)
    owner_id = Column(ForeignKey("users.id"))
    owner = relationship(User, back_populates="pets")


@pytest.fixture
def then(engine: Engine, snapshots: Callable[[], int]) -> int:
    """The version at which ada (with the cat tom) had another name than now, and was bob's boss."""
    Base.metadata.create_all(engine)
    with Session(engine, future=True) as session:
        ada = User(name="ada", pets=[Pet(name="tom")])
        session.add_all([ada, User(name="bob", boss=ada)])
        session.commit()
        version = snapshots()
        ada.name, ada.pets[0].name = "Ada", "Tom"
        session.commit()
    return version


def test_one_table_of_a_query_at_a_version(engine: Engine, then: int) -> None:
    past = as_of(User, version=then)
    query = select(User.name, past.c.name).join(past, past.c.id == User.id).order_by(User.id)
    with engine.connect() as connection:
        assert connection.execute(query).fetchall() == [("Ada", "ada"), ("bob", "bob")]


def test_a_table_at_a_version_under_other_names(engine: Engine, then: int) -> None:
    past = as_of(User, version=then, name="past")
    again, entity = past.alias("again"), aliased(User, past.alias("third"))
    fourth = aliased(past)
    query = select(User.name, past.c.name, again.c.name, fourth.c.name).where(
        past.c.id == User.id, again.c.id == User.id, fourth.c.id == User.id, User.id == 1
    )
    with Session(engine, future=True) as session:
        assert session.execute(query).fetchall() == [("Ada", "ada", "ada", "ada")]
        assert session.execute(select(entity).where(entity.id == 1)).scalar_one().name == "ada"


def test_one_table_of_a_query_at_a_timestamp(engine: Engine, then: int) -> None:
    with engine.connect() as connection:
        time = connection.execute(
            text("SELECT snapshot_time FROM snapshots() WHERE snapshot_id = :id"), {"id": then}
        ).scalar()
        for timestamp in (time, str(time)):
            past = as_of(User.__table__, timestamp=timestamp)
            assert connection.execute(select(past.c.name).where(past.c.id == 1)).scalar() == "ada"


def test_a_mapped_class_at_a_version(engine: Engine, then: int) -> None:
    past = aliased(User, as_of(User, version=then))
    with Session(engine, future=True) as session:
        assert session.execute(select(User.name, past.name).join(past, past.id == User.id)).first() == ("Ada", "ada")
        found = session.execute(select(past).where(past.id == 1)).scalars().one()
        assert (type(found), found.name) == (User, "ada")


@TOKENS
def test_an_object_of_a_past_alias_is_not_the_present_one(engine: Engine, then: int) -> None:
    past = aliased(User, as_of(User, version=then))
    with Session(engine, future=True) as session:
        now = session.get(User, 1)
        old = session.execute(select(past).where(past.id == 1)).scalars().one()
        assert (now.name, old.name, old.pets[0].name) == ("Ada", "ada", "tom")
        with pytest.raises(exc.InvalidRequestError, match="several points in time"):
            session.execute(select(User, past).join(past, past.id == User.id))


def test_as_of_is_shared_by_the_statement_cache(engine: Engine, then: int) -> None:
    def names(version: int) -> list[str]:
        past = as_of(User, version=version)
        with engine.connect() as connection:
            return list(connection.execute(select(past.c.name).order_by(past.c.id)).scalars())

    assert [names(version)[0] for version in (then, then + 1, then)] == ["ada", "Ada", "ada"]


def test_as_of_as_literals(engine: Engine, then: int) -> None:
    query = select(as_of(User, version=then, name="past").c.name)
    compiled = query.compile(engine, compile_kwargs={"literal_binds": True})
    assert f"users FOR VERSION AS OF {then} AS past" in str(compiled)


def test_as_of_takes_one_point_and_one_table(then: int) -> None:
    with pytest.raises(exc.ArgumentError, match="a version or a timestamp"):
        as_of(User)
    with pytest.raises(exc.ArgumentError, match="a table or a class mapped to one table"):
        as_of(select(User).subquery(), version=then)


def test_the_option_counts_for_each_execution_of_a_cached_statement(engine: Engine, then: int) -> None:
    query = select(User.name).where(User.id == 1)
    with engine.connect() as connection:
        for version, name in ((then, "ada"), (None, "Ada"), (then + 1, "Ada"), ({"version": then}, "ada")):
            option = {"lake_as_of": version}
            assert connection.execute(query.execution_options(**option)).scalar() == name
            assert (
                connection.execute(text("SELECT name FROM users WHERE id = 1").execution_options(**option)).scalar()
                == name
            )


def test_a_timestamp_as_option(engine: Engine, then: int) -> None:
    with engine.connect() as connection:
        times = connection.execute(text("SELECT snapshot_id, snapshot_time FROM snapshots()")).fetchall()
        time = dict(map(tuple, times))[then]
        query = text("SELECT name FROM users WHERE id = 1")
        assert connection.execute(query.execution_options(lake_as_of=time)).scalar() == "ada"
        future = datetime.now(timezone.utc) + timedelta(days=1)
        assert connection.execute(query.execution_options(lake_as_of={"timestamp": future})).scalar() == "Ada"


def test_a_connection_and_an_engine_at_a_version(engine: Engine, then: int) -> None:
    query = select(User.name).where(User.id == 1)
    with engine.connect().execution_options(lake_as_of=then) as connection:
        assert connection.execute(query).scalar() == "ada"
        assert connection.exec_driver_sql("SELECT name FROM users WHERE id = 1").scalar() == "ada"
    with Session(engine.execution_options(lake_as_of=then), future=True) as session:
        user = session.get(User, 1)
        assert (user.name, user.pets[0].name) == ("ada", "tom")
    with engine.connect() as connection:
        assert connection.execute(query).scalar() == "Ada"


def test_changes_under_the_option_are_refused(engine: Engine, then: int) -> None:
    with engine.connect().execution_options(lake_as_of=then) as connection:
        for statement in ("UPDATE users SET name = 'x'", "DELETE FROM users", "CREATE TABLE x (a INTEGER)"):
            with pytest.raises(exc.ProgrammingError, match="reads the past"):
                connection.execute(text(statement))
    with Session(engine.execution_options(lake_as_of=then), future=True) as session:
        session.add(User(name="new"))
        with pytest.raises(exc.ProgrammingError, match="reads the past"):
            session.flush()


def test_a_whole_session_at_a_version(engine: Engine, then: int) -> None:
    with LakeSession(engine, as_of=then, future=True) as session:
        user = session.get(User, 1)
        assert (user.name, user.pets[0].name, user.pets[0].owner is user) == ("ada", "tom", True)
        assert session.execute(text("SELECT name FROM users WHERE id = 1")).scalar() == "ada"
        session.expire(user)
        assert user.name == "ada"
        user.name = "other"
        with pytest.raises(exc.InvalidRequestError, match="cannot change anything"):
            session.flush()


def test_a_plain_session_takes_the_option_from_its_info(engine: Engine, then: int) -> None:
    with Session(engine, info={"lake_as_of": then}, future=True) as session:
        assert session.execute(select(User.name).where(User.id == 1)).scalar() == "ada"
        option = {"lake_as_of": None}
        assert session.execute(select(User.name).where(User.id == 1), execution_options=option).scalar() == "Ada"


@TOKENS
def test_two_versions_of_a_row_are_two_objects_in_a_session(engine: Engine, then: int) -> None:
    query = select(User).where(User.id == 1)
    with Session(engine) as session:
        old = session.execute(query, execution_options={"lake_as_of": then}).scalars().one()
        now = session.execute(query).scalars().one()
        assert old is not now
        assert (old.name, now.name) == ("ada", "Ada")
        assert (old.pets[0].name, now.pets[0].name) == ("tom", "Tom")
        session.expire_all()
        assert (old.name, now.name) == ("ada", "Ada")
        old.name = "changed"
        with pytest.raises(exc.InvalidRequestError, match=f"read as of version {then}"):
            session.flush()


@TOKENS
def test_many_to_one_loads_from_the_past_find_the_past(engine: Engine, then: int) -> None:
    with LakeSession(engine) as session:
        now = session.get(User, 1)
        bob = session.execute(select(User).where(User.id == 2), execution_options={"lake_as_of": then}).scalars().one()
        assert bob.boss is not now
        assert (bob.boss.name, now.name) == ("ada", "Ada")


@TOKENS
def test_get_at_a_version(engine: Engine, then: int) -> None:
    with LakeSession(engine) as session:
        now = session.get(User, 1)
        old = session.get(User, 1, execution_options={"lake_as_of": then})
        assert (old.name, now.name) == ("ada", "Ada")
        assert session.get(User, 1, execution_options={"lake_as_of": {"version": then}}) is old


def test_a_url_at_a_version_is_read_only(make_engine: Callable[..., Engine], then: int) -> None:
    with make_engine(f"?as_of={then}").connect() as connection:
        assert connection.execute(select(User.name).where(User.id == 1)).scalar() == "ada"
        with pytest.raises(exc.ProgrammingError):
            connection.execute(text("DELETE FROM users"))


def test_reflection_at_a_version(engine: Engine, then: int, snapshots: Callable[[], int]) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE users ADD COLUMN age INTEGER"))
        connection.execute(text("DROP TABLE pets"))
    with engine.connect() as connection:
        past = connection.execution_options(lake_as_of=then)
        assert inspect(past).get_table_names() == ["pets", "users"]
        assert "age" not in Table("users", MetaData(), autoload_with=past).c
    assert inspect(engine).get_table_names() == ["users"]
    assert "age" in Table("users", MetaData(), autoload_with=engine).c
