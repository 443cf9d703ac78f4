"""DDL and reflection are each other's inverse, and reflection has SQLAlchemy's exact shapes."""

from __future__ import annotations

import uuid
import warnings
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    UniqueConstraint,
    exc,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy import types as sqltypes
from sqlalchemy.engine import Engine
from sqlalchemy.schema import CreateTable

import sqlalchemy_lake as lake
from sqlalchemy_lake.ddl import IndexIgnoredWarning

OLD = sqlalchemy.__version__.startswith("1.4")


def create(engine: Engine, *columns: object, **options: object) -> Table:
    table = Table("t", MetaData(), *columns, **options)
    table.create(engine)
    return table


def test_integer_keys_need_no_database_objects(engine: Engine) -> None:
    ddl = str(CreateTable(Table("n", MetaData(), Column("id", Integer, primary_key=True))).compile(engine))
    assert not any(word in ddl.upper() for word in ("SERIAL", "IDENTITY", "NEXTVAL"))
    assert "id INTEGER AUTOINCREMENT NOT NULL" in ddl


def test_identity_columns(engine: Engine) -> None:
    table = create(engine, Column("a", Integer, Identity()), Column("b", Integer))
    with engine.begin() as connection:
        connection.execute(insert(table), [{"b": 1}, {"b": 2}])
        assert connection.execute(select(table)).fetchall() == [(1, 1), (2, 2)]


TYPES = [
    (sqltypes.Boolean(), True, sqltypes.BOOLEAN),
    (lake.TINYINT(), -5, lake.TINYINT),
    (sqltypes.SmallInteger(), 5, sqltypes.SMALLINT),
    (sqltypes.BigInteger(), 2**60, sqltypes.BIGINT),
    (lake.HUGEINT(), 2**100, lake.HUGEINT),
    (lake.UTINYINT(), 200, lake.UTINYINT),
    (lake.USMALLINT(), 60000, lake.USMALLINT),
    (lake.UINTEGER(), 2**31, lake.UINTEGER),
    (lake.UBIGINT(), 2**63, lake.UBIGINT),
    (sqltypes.Float(), 1.5, sqltypes.Float),
    (sqltypes.REAL(), 0.5, sqltypes.REAL),
    (Numeric(9, 2), Decimal("12.30"), sqltypes.NUMERIC),
    (sqltypes.String(), "naïve 😀", sqltypes.VARCHAR),
    (sqltypes.Enum("red", "green", name="colour"), "red", sqltypes.VARCHAR),
    (sqltypes.LargeBinary(), b"\x00\xff", sqltypes.BLOB),
    (sqltypes.Date(), datetime(2026, 3, 1).date(), sqltypes.DATE),
    (sqltypes.Time(), datetime(2026, 3, 1, 12, 30, 1, 5).time(), sqltypes.TIME),
    (DateTime(), datetime(2026, 3, 1, 12, 30, 1, 5), sqltypes.TIMESTAMP),
    (DateTime(timezone=True), datetime(2026, 3, 1, 12, tzinfo=timezone.utc), sqltypes.TIMESTAMP),
    (lake.TIMESTAMP_S(), datetime(2026, 3, 1, 12, 30, 1), lake.TIMESTAMP_S),
    (lake.TIMESTAMP_MS(), datetime(2026, 3, 1, 12, 30, 1, 5000), lake.TIMESTAMP_MS),
    (lake.TIMESTAMP_NS(), datetime(2026, 3, 1, 12, 30, 1, 5), lake.TIMESTAMP_NS),
    (sqltypes.Interval(), timedelta(days=3, seconds=7), lake.INTERVAL),
    (lake.UUID(), uuid.UUID(int=7), lake.UUID),
    (sqltypes.JSON(), {"a": [1, None, "x"]}, sqltypes.JSON),
    (lake.LIST(Integer), [1, None, 3], lake.LIST),
    (lake.LIST(lake.LIST(String)), [["a"], []], lake.LIST),
    (lake.STRUCT({"odd name": Integer}, b=String), {"odd name": 1, "b": "x"}, lake.STRUCT),
    (lake.MAP(String, Integer), {"a": 1}, lake.MAP),
    (lake.LIST(lake.STRUCT(a=Integer, b=lake.MAP(String, Integer))), [{"a": 1, "b": {"k": 2}}], lake.LIST),
]


@pytest.mark.parametrize(("type_", "value", "reflected"), TYPES, ids=lambda value: str(value)[:30])
def test_types_round_trip_with_their_values(
    engine: Engine, type_: sqltypes.TypeEngine, value: object, reflected: type
) -> None:
    table = create(engine, Column("x", type_))
    with engine.begin() as connection:
        connection.execute(insert(table), [{"x": value}, {"x": None}])
    again = Table("t", MetaData(), autoload_with=engine)
    assert isinstance(again.c.x.type, reflected)
    assert getattr(again.c.x.type, "timezone", False) == getattr(type_, "timezone", False)
    render = engine.dialect.type_compiler.process
    assert render(again.c.x.type) == render(type_)
    with engine.connect() as connection:
        for each in (table, again):
            assert [row[0] for row in connection.execute(select(each)) if row[0] is not None] == [value]


def test_nested_types_show_their_parts() -> None:
    assert repr(lake.LIST(lake.STRUCT(a=Integer()))) == "LIST(STRUCT({'a': Integer()}))"
    assert repr(lake.MAP(String(), Integer())) == "MAP(String(), Integer())"
    assert repr(lake.LIST(lake.LIST(String()))) == "LIST(LIST(String()))"


def test_parts_of_nested_values_are_expressions(engine: Engine) -> None:
    table = create(
        engine,
        Column("s", lake.STRUCT({"it's": Integer}, b=lake.LIST(String))),
        Column("l", lake.LIST(Integer)),
        Column("m", lake.MAP(String, Integer)),
    )
    with engine.begin() as connection:
        connection.execute(insert(table), {"s": {"it's": 1, "b": ["x", "y"]}, "l": [7, 8, 9], "m": {"k": 5}})
        parts = select(table.c.s["it's"] + 1, table.c.s["b"][2], table.c.l[1], table.c.l[2:3], table.c.m["k"])
        assert connection.execute(parts.where(table.c.m["k"] > 4)).fetchall() == [(2, "y", 7, [8, 9], 5)]
    with pytest.raises(KeyError, match="the struct has no field 'c'"):
        table.c.s["c"]


def test_everything_about_a_table_round_trips(engine: Engine) -> None:
    metadata = MetaData()
    Table("parent", metadata, Column("id", Integer, primary_key=True))
    Table(
        "child",
        metadata,
        Column("id", Integer, primary_key=True, comment="the key"),
        Column("parent_id", ForeignKey("parent.id", name="child_parent")),
        Column("code", String, nullable=False, server_default="none"),
        Column("at", DateTime),
        UniqueConstraint("code", name="child_code"),
        CheckConstraint("id > 0", name="child_positive"),
        comment="the children",
        lake_partitioned_by=['year("at")', "bucket(4, code)"],
        lake_sorted_by=["code DESC", "id"],
        lake_properties={"lake.write_mode": "copy-on-write"},
    )
    metadata.create_all(engine)
    look = inspect(engine)
    assert look.get_pk_constraint("child")["constrained_columns"] == ["id"]
    assert look.get_foreign_keys("child") == [
        {
            "name": "child_parent",
            "constrained_columns": ["parent_id"],
            "referred_schema": None,
            "referred_table": "parent",
            "referred_columns": ["id"],
            "options": {},
        }
    ]
    assert look.get_unique_constraints("child") == [{"name": "child_code", "column_names": ["code"]}]
    assert look.get_check_constraints("child") == [{"name": "child_positive", "sqltext": "id > 0"}]
    assert look.get_indexes("child") == []
    assert look.get_table_comment("child") == {"text": "the children"}
    columns = {column["name"]: column for column in look.get_columns("child")}
    assert (columns["id"]["comment"], columns["id"]["autoincrement"]) == ("the key", True)
    assert (columns["code"]["nullable"], columns["code"]["default"]) == (False, "'none'")
    assert look.get_table_options("child") == {
        "lake_partitioned_by": ['year("at")', "bucket(4, code)"],
        "lake_sorted_by": ["code DESC NULLS LAST", "id ASC NULLS LAST"],
        "lake_properties": {"lake.write_mode": "copy-on-write"},
    }
    reflected, copied = MetaData(), MetaData()
    reflected.reflect(engine)
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA copy"))
        for table in reflected.tables.values():
            table.to_metadata(copied, schema="copy")
        copied.create_all(connection)
    assert inspect(engine).get_foreign_keys("child", "copy")[0]["referred_schema"] == "copy"
    assert inspect(engine).get_table_options("child", "copy") == look.get_table_options("child")


def test_questions_about_what_is_not_there(engine: Engine) -> None:
    create(engine, Column("a", Integer))
    look = inspect(engine)
    assert look.get_pk_constraint("t") == {"constrained_columns": [], "name": None}
    assert look.get_foreign_keys("t") == look.get_indexes("t") == look.get_unique_constraints("t") == []
    assert look.get_table_comment("t") == {"text": None}
    for question in ("get_columns", "get_pk_constraint", "get_indexes", "get_table_comment", "get_view_definition"):
        with pytest.raises(exc.NoSuchTableError):
            getattr(look, question)("nowhere")
    assert look.get_schema_names() == ["main"]
    assert not look.has_table("nowhere")


def test_names_are_found_in_any_case_and_keep_theirs(engine: Engine) -> None:
    Table('Odd "Name".x', MetaData(), Column("Größe %", Integer), Column("select", Integer)).create(engine)
    look = inspect(engine)
    assert look.get_table_names() == ['Odd "Name".x']
    assert look.has_table('odd "name".X')
    table = Table('Odd "Name".x', MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        connection.execute(insert(table), {"Größe %": 1, "select": 2})
        assert connection.execute(select(table.c["select"], table.c["Größe %"])).fetchall() == [(2, 1)]


def test_views_are_reflected_with_their_columns(engine: Engine) -> None:
    create(engine, Column("a", Integer), Column("d", Numeric(9, 2)))
    with engine.begin() as connection:
        connection.execute(text("CREATE VIEW v AS SELECT a + 1 AS b, d FROM t"))
    look = inspect(engine)
    assert (look.get_view_names(), look.get_table_names(), look.has_table("v")) == (["v"], ["t"], True)
    assert "SELECT a + 1 AS b" in look.get_view_definition("v")
    types = {column["name"]: str(column["type"]) for column in look.get_columns("v")}
    assert types == {"b": "INTEGER", "d": "NUMERIC(9, 2)"}


def test_a_type_that_sqlalchemy_has_no_name_for_is_null_type_with_a_warning(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE VIEW v AS SELECT '101'::BIT AS b"))
    with pytest.warns(exc.SAWarning, match="did not recognize type 'BIT'"):
        columns = inspect(engine).get_columns("v")
    assert isinstance(columns[0]["type"], sqltypes.NullType)


def test_other_catalogs_have_dotted_schemas(engine: Engine, tmp_path: object) -> None:
    with engine.connect() as connection:
        driver = getattr(connection.connection, "dbapi_connection", connection.connection)
        driver.attach(f"{tmp_path}/other", "other")
        connection.execute(text("CREATE TABLE other.main.far AS SELECT 1 AS a"))
        connection.commit()
        look = inspect(connection)
        assert look.get_table_names("other.main") == ["far"]
        table = Table("far", MetaData(), schema="other.main", autoload_with=connection)
        assert connection.execute(select(table)).fetchall() == [(1,)]


def test_one_inspection_reads_the_catalog_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    create(engine, Column("a", Integer))
    with engine.connect() as connection:
        driver = getattr(connection.connection, "dbapi_connection", connection.connection)
        latest = type(driver.session.catalogs["lake"]).latest
        reads = []
        monkeypatch.setattr(
            type(driver.session.catalogs["lake"]), "latest", lambda self: reads.append(self) or latest(self)
        )
        MetaData().reflect(connection)
        assert len(reads) == 1


def test_snapshots_and_data_files_of_a_table(engine: Engine) -> None:
    table = create(engine, Column("a", Integer))
    create_other = Table("other", MetaData(), Column("a", Integer))
    create_other.create(engine)
    with engine.begin() as connection:
        connection.execute(insert(table), [{"a": number} for number in range(1000)])
    look = inspect(engine)
    assert len(look.get_snapshots("t")) == 2
    assert [file["record_count"] for file in look.get_data_files("t")] == [1000]
    assert look.get_data_files("t", "main") == look.get_data_files("t")
    with pytest.raises(exc.NoSuchTableError):
        look.get_snapshots("nowhere")


def test_indexes_are_left_out_with_a_warning(engine: Engine) -> None:
    table = Table("t", MetaData(), Column("a", Integer, index=True))
    with pytest.warns(IndexIgnoredWarning, match="ix_t_a"):
        table.create(engine)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Index("ix_t_a", table.c.a).drop(engine)
    assert inspect(engine).has_table("t")


@pytest.mark.skipif(OLD or sqlalchemy.__version__ < "2.1", reason="new in SQLAlchemy 2.1")
def test_tables_and_views_from_selects(engine: Engine) -> None:
    from sqlalchemy import CreateTableAs, CreateView

    table = create(engine, Column("a", Integer))
    with engine.begin() as connection:
        connection.execute(insert(table), [{"a": 1}, {"a": 2}])
        copy = CreateTableAs(select(table), "copy")
        connection.execute(copy)
        connection.execute(CreateView(select((table.c.a * 2).label("b")), "doubled", or_replace=True))
        assert connection.execute(select(copy.table)).fetchall() == [(1,), (2,)]
        assert connection.execute(text("SELECT b FROM doubled ORDER BY b")).fetchall() == [(2,), (4,)]


def test_closed_requirements_all_say_why() -> None:
    """Those of the suite that are closed for a lake, but for what Python and SQLAlchemy themselves have or lack."""
    from sqlalchemy.testing import exclusions
    from sqlalchemy.testing.requirements import SuiteRequirements

    from sqlalchemy_lake.requirements import CLOSED, NEEDS, OPEN, PARTS, Requirements

    closed_by_default = {
        name
        for name in dir(SuiteRequirements)
        if isinstance(getattr(SuiteRequirements, name), property)
        and getattr(SuiteRequirements, name).fget.__code__.co_names == ("exclusions", "closed")
    }
    environment = {"async_dialect", "sqlalchemy2_stubs", "skip_mysql_on_windows"}
    of_formats = {name for names in (*NEEDS.values(), *PARTS.values()) for name in names}
    assert closed_by_default - set(CLOSED) - set(OPEN) - of_formats <= environment
    assert all(isinstance(getattr(Requirements(), name), exclusions.compound) for name in (*OPEN, *CLOSED, *of_formats))


def test_a_struct_survives_being_copied() -> None:
    copied = lake.STRUCT(a=Integer, b=lake.STRUCT(c=String)).copy()
    assert str(copied.compile(dialect=lake.LakeDialect())) == "STRUCT(a INTEGER, b STRUCT(c VARCHAR))"


def test_a_delta_table_reflects_what_was_declared(tmp_path: Path) -> None:
    engine = sqlalchemy.create_engine(f"delta:///{tmp_path}?non_atomic=true", future=True)
    metadata = MetaData()
    Table(
        "users",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("name", String, nullable=False, unique=True, server_default="x", comment="as given"),
        Column("amount", Numeric(9, 2), CheckConstraint("amount > 0", name="positive")),
        comment="people",
    )
    Table(
        "addresses",
        metadata,
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("user_id", ForeignKey("users.id")),
        Column("day", sqltypes.Date),
        lake_partitioned_by=["day"],
        lake_properties={"delta.enableChangeDataFeed": "true"},
    )
    metadata.create_all(engine)
    inspector = inspect(engine)
    assert sorted(inspector.get_table_names()) == ["addresses", "users"]
    columns = {column["name"]: column for column in inspector.get_columns("users")}
    assert [str(column["type"]) for column in columns.values()] == ["INTEGER", "VARCHAR", "NUMERIC(9, 2)"]
    assert [name for name, column in columns.items() if not column["nullable"]] == ["id", "name"]
    assert (columns["id"]["autoincrement"], columns["name"]["default"]) == (True, "'x'")
    assert columns["name"]["comment"] == "as given"
    assert inspector.get_pk_constraint("users")["constrained_columns"] == ["id"]
    assert [unique["column_names"] for unique in inspector.get_unique_constraints("users")] == [["name"]]
    (foreign,) = inspector.get_foreign_keys("addresses")
    assert (foreign["referred_table"], foreign["constrained_columns"]) == ("users", ["user_id"])
    assert inspector.get_check_constraints("users") == [{"name": "positive", "sqltext": "amount > 0"}]
    assert inspector.get_table_comment("users") == {"text": "people"}
    again = Table("addresses", MetaData(), autoload_with=engine)
    assert again.dialect_options["lake"]["partitioned_by"] == ["day"]
    assert again.dialect_options["lake"]["properties"]["delta.enableChangeDataFeed"] == "true"
    engine.dispose()
