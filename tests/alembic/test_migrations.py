"""Alembic's migrations of a real lake, from the command line's own entry points."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("alembic", minversion="1.13")

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.pool import NullPool

import lakedbapi
import sqlalchemy_lake as lake

ENV = """
from alembic import context
from sqlalchemy import create_engine
url = context.config.get_main_option("sqlalchemy.url")
if context.is_offline_mode():
    context.configure(url=url, literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()
else:
    with create_engine(url).connect() as connection:
        context.configure(connection=connection)
        with context.begin_transaction():
            context.run_migrations()
"""

FIRST = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0001", None

def upgrade():
    op.create_table(
        "customer",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(50), comment="as on the invoice"),
        sa.Column("points", sa.Integer(), nullable=False, server_default="0"),
        comment="who buys",
    )
    types = {"id": sa.Integer, "name": sa.String, "points": sa.Integer}
    customer = sa.table("customer", *(sa.column(name, type_) for name, type_ in types.items()))
    op.bulk_insert(customer, [{"id": n, "name": f"c{n}", "points": n} for n in (1, 2, 3)])

def downgrade():
    op.drop_table("customer")
"""

SECOND = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0002", "0001"

def upgrade():
    op.alter_column("customer", "points", type_=sa.BigInteger())
    op.alter_column("customer", "name", new_column_name="full_name", comment=None)
    op.add_column("customer", sa.Column("city", sa.String(), comment="of residence"))
    op.execute("UPDATE customer SET city = 'Kiel' WHERE id = 2")
    op.create_table_comment("customer", "who bought")
    op.rename_table("customer", "client")

def downgrade():
    op.rename_table("client", "customer")
    op.create_table_comment("customer", "who buys")
    op.drop_column("customer", "city")
    op.alter_column("customer", "full_name", new_column_name="name", comment="as on the invoice")
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"lake:///{tmp_path / 'shop'}"


@pytest.fixture
def engine(url: str) -> Iterator[sa.engine.Engine]:
    engine = sa.create_engine(url, poolclass=NullPool)
    yield engine
    engine.dispose()


@pytest.fixture
def config(tmp_path: Path, url: str) -> Config:
    scripts = tmp_path / "migrations"
    (scripts / "versions").mkdir(parents=True)
    (scripts / "env.py").write_text(ENV)
    (scripts / "versions" / "0001_first.py").write_text(FIRST)
    (scripts / "versions" / "0002_second.py").write_text(SECOND)
    config = Config(output_buffer=(tmp_path / "script.sql").open("w"))
    config.set_main_option("script_location", str(scripts))
    config.set_main_option("sqlalchemy.url", url)
    config.set_main_option("path_separator", "os")
    return config


def columns(engine: sa.engine.Engine, table: str) -> dict[str, tuple[str, str | None]]:
    return {c["name"]: (str(c["type"]), c["comment"]) for c in sa.inspect(engine).get_columns(table)}


def snapshots(path: Path) -> int:
    with lakedbapi.connect(str(path)) as connection:
        count: int = connection.execute("SELECT count(*) FROM lake.snapshots()").fetchone()[0]
        return count


def test_upgrade_then_downgrade_restores_the_schema(config: Config, engine: sa.engine.Engine) -> None:
    command.upgrade(config, "0001")
    before = columns(engine, "customer"), sa.inspect(engine).get_table_comment("customer")
    assert before[0] == {
        "id": ("INTEGER", None),
        "name": ("VARCHAR", "as on the invoice"),
        "points": ("INTEGER", None),
    }
    command.upgrade(config, "head")
    assert columns(engine, "client") == {
        "id": ("INTEGER", None),
        "full_name": ("VARCHAR", None),
        "points": ("BIGINT", None),
        "city": ("VARCHAR", "of residence"),
    }
    assert sa.inspect(engine).get_table_comment("client") == {"text": "who bought"}
    command.downgrade(config, "0001")
    after = columns(engine, "customer"), sa.inspect(engine).get_table_comment("customer")
    assert after[0].pop("points") == ("BIGINT", None)  # a type is widened for good
    assert before[0].pop("points") == ("INTEGER", None)
    assert after == before
    command.downgrade(config, "base")
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]


def test_data_outlive_renames_drops_and_wider_types(config: Config, engine: sa.engine.Engine) -> None:
    command.upgrade(config, "head")
    with engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT id, full_name, points, city FROM client ORDER BY id")).fetchall()
    assert [tuple(row) for row in rows] == [(1, "c1", 1, None), (2, "c2", 2, "Kiel"), (3, "c3", 3, None)]
    command.downgrade(config, "0001")
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT name FROM customer WHERE id = 2")).scalar() == "c2"


def test_all_migrations_of_an_upgrade_are_one_snapshot(config: Config, tmp_path: Path) -> None:
    with lakedbapi.connect(str(tmp_path / "shop")):
        pass
    before = snapshots(tmp_path / "shop")
    command.upgrade(config, "head")
    assert snapshots(tmp_path / "shop") == before + 1


def test_a_migration_that_fails_changes_nothing(config: Config, engine: sa.engine.Engine, tmp_path: Path) -> None:
    broken = SECOND.replace("op.rename_table", "op.drop_column('customer', 'no_such_column'); op.rename_table", 1)
    (tmp_path / "migrations" / "versions" / "0002_second.py").write_text(broken)
    command.upgrade(config, "0001")
    before = snapshots(tmp_path / "shop")
    with pytest.raises(sa.exc.ProgrammingError, match="no_such_column"):
        command.upgrade(config, "head")
    assert snapshots(tmp_path / "shop") == before
    assert list(columns(engine, "customer")) == ["id", "name", "points"]


def test_the_sql_script_of_a_migration_runs(config: Config, tmp_path: Path, engine: sa.engine.Engine) -> None:
    command.upgrade(config, "head", sql=True)
    config.output_buffer.flush()
    with lakedbapi.connect(str(tmp_path / "shop"), autocommit=True) as connection:
        for statement in (tmp_path / "script.sql").read_text().split(";"):
            if statement.strip():
                connection.execute(statement)
    assert list(columns(engine, "client")) == ["id", "full_name", "points", "city"]


def every_kind_of_column() -> sa.MetaData:
    metadata = sa.MetaData()
    sa.Table(
        "things",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("small", sa.SmallInteger, nullable=False, server_default="7"),
        sa.Column("tiny", lake.TINYINT),
        sa.Column("huge", lake.HUGEINT),
        sa.Column("name", sa.String(50), server_default="it's", comment="of a thing"),
        sa.Column("long", sa.Text),
        sa.Column("plain", sa.Numeric),
        sa.Column("price", sa.Numeric(9, 2), server_default=sa.text("1.50")),
        sa.Column("ratio", sa.Float),
        sa.Column("small_ratio", sa.REAL),
        sa.Column("on_", sa.Boolean, server_default=sa.true()),
        sa.Column("day", sa.Date),
        sa.Column("at", sa.Time),
        sa.Column("moment", sa.DateTime, server_default=sa.func.now()),
        sa.Column("instant", sa.DateTime(timezone=True)),
        sa.Column("span", sa.Interval),
        sa.Column("blob", sa.LargeBinary),
        sa.Column("document", sa.JSON),
        sa.Column("color", sa.Enum("red", "green", name="color")),
        sa.Column("key", lake.UUID()),
        sa.Column("list", lake.LIST(sa.Integer)),
        sa.Column("array", sa.ARRAY(sa.String)),
        sa.Column("record", lake.STRUCT(a=sa.Integer, b=sa.Numeric(5, 1))),
        sa.Column("map", lake.MAP(sa.String, sa.BigInteger)),
        sa.UniqueConstraint("name", "day", name="one_name_a_day"),
        sa.CheckConstraint("small > 0", name="small_is_positive"),
        comment="all of them",
    )
    sa.Table(
        "parts",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("thing_id", sa.ForeignKey("things.id", name="of_thing"), nullable=False),
        schema="store",
    )
    sa.Table("numbered", metadata, sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True))
    return metadata


def differences(engine: sa.engine.Engine, metadata: sa.MetaData) -> list[Any]:
    with engine.connect() as connection:
        options = {"compare_server_default": True, "include_schemas": True}
        found: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        return found


def make(engine: sa.engine.Engine, metadata: sa.MetaData) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE SCHEMA IF NOT EXISTS store"))
        metadata.create_all(connection)


def test_autogenerate_finds_nothing_in_an_unchanged_schema(engine: sa.engine.Engine) -> None:
    metadata = every_kind_of_column()
    make(engine, metadata)
    assert differences(engine, metadata) == []


def test_autogenerate_finds_nothing_for_the_indexes_of_a_model(engine: sa.engine.Engine) -> None:
    table = sa.Table("indexed", sa.MetaData(), sa.Column("id", sa.Integer))
    make(engine, table.metadata)
    sa.Index("by_id", table.c.id)
    assert differences(engine, table.metadata) == []


def test_autogenerate_finds_each_change(engine: sa.engine.Engine) -> None:
    make(engine, every_kind_of_column())
    metadata = every_kind_of_column()
    things = metadata.tables["things"]
    things.c.small.type = sa.Integer()
    things.c.name.server_default = sa.DefaultClause("its")
    things.c.price.comment = "in euro"
    things.c.record.type = lake.STRUCT(a=sa.Integer, b=sa.Numeric(5, 1), c=sa.Date)
    things.comment = None
    things.append_column(sa.Column("more", sa.Integer))
    kinds = {change[0] if isinstance(change, tuple) else change[0][0] for change in differences(engine, metadata)}
    assert kinds == {"modify_type", "modify_default", "modify_comment", "remove_table_comment", "add_column"}


def test_a_generated_migration_brings_the_lake_up_to_the_model(engine: sa.engine.Engine) -> None:
    make(engine, sa.MetaData())
    metadata = every_kind_of_column()
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"include_schemas": True})
        migration = produce_migrations(context, metadata)
        imports: set[str] = set()
        code = render_python_code(migration.upgrade_ops, imports=imports, migration_context=context)
        with Operations.context(context) as op:
            source = "\n".join([*imports, "import sqlalchemy as sa", f"if True:\n    {code}"])
            exec(source, {"op": op, "sqlalchemy_lake": lake})
    assert differences(engine, metadata) == []
