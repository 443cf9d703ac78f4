"""Where Hudi tables lie: a directory tree, a table's own directory, an object store; and how SQL and SQLAlchemy see
them."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import sqlalchemy as sa

import lakedbapi
from lakedbapi.formats.tree import Tree
from lakedbapi.storage.filesystem import Storage
from tests.formats.hudi import golden as g
from tests.formats.hudi.conftest import Connect


@pytest.fixture
def warehouse(golden_tables: Callable[[str], Path], tmp_path: Path) -> Path:
    """`trips` and `sales.numbers`."""
    shutil.copytree(golden_tables(g.TRIPS_DELETED), tmp_path / "lake" / "trips")
    shutil.copytree(golden_tables(g.MOR), tmp_path / "lake" / "sales" / "numbers")
    return tmp_path / "lake"


def test_a_tree_of_tables(warehouse: Path, connect: Connect) -> None:
    connection = connect(warehouse)
    assert connection.execute("SHOW SCHEMAS").fetchall() == [("lake", "main", True), ("lake", "sales", False)]
    assert connection.execute("SHOW TABLES").fetchall() == [("trips",)]
    assert connection.execute("SHOW TABLES FROM sales").fetchall() == [("numbers",)]
    counts = connection.execute("SELECT (SELECT count(*) FROM TRIPS), (SELECT count(*) FROM lake.sales.numbers)")
    assert counts.fetchone() == (5, 4)


def test_a_table_directory_is_a_lake_of_one_table(warehouse: Path, connect: Connect) -> None:
    connection = connect(warehouse / "sales" / "numbers")
    assert connection.execute("SHOW ALL TABLES").fetchall()[0][:3] == ("lake", "main", "numbers")
    assert connection.execute("SELECT count(*) FROM numbers").fetchone() == (4,)


def test_a_path_is_known_as_a_hudi_table(warehouse: Path) -> None:
    with lakedbapi.connect(warehouse / "trips") as connection:
        assert connection.execute("SELECT count(*) FROM trips").fetchone() == (5,)


def test_attached_with_options(warehouse: Path) -> None:
    with lakedbapi.connect("lake://", allow_attach=True) as connection:
        connection.execute(f"ATTACH 'hudi:{warehouse}' AS old (READ_OPTIMIZED true, META_COLUMNS true)")
        query = "SELECT count(*), count(_hoodie_commit_time) FROM old.main.trips"
        assert connection.execute(query).fetchone() == (8, 8)


def test_information_schema(warehouse: Path, connect: Connect) -> None:
    connection = connect(warehouse)
    tables = "SELECT table_schema, table_name, is_insertable_into FROM information_schema.tables ORDER BY 2"
    assert connection.execute(tables).fetchall() == [("sales", "numbers", "NO"), ("main", "trips", "NO")]
    columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'trips'"
    assert connection.execute(columns).fetchall()[:2] == [("ts", "BIGINT"), ("uuid", "VARCHAR")]


def test_types(warehouse: Path, connect: Connect) -> None:
    rows = connect(warehouse).execute("DESCRIBE sales.numbers").fetchall()
    assert [row[1] for row in rows] == [
        *("INTEGER", "VARCHAR", "BOOLEAN", "INTEGER", "INTEGER", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"),
        *("DECIMAL(10,5)", "DATE", "TIMESTAMP WITH TIME ZONE", "BLOB"),
        'STRUCT("arr_struct_f1" VARCHAR, "arr_struct_f2" INTEGER)[]',
        'MAP(VARCHAR, STRUCT("map_field_value_struct_f1" DOUBLE, "map_field_value_struct_f2" BOOLEAN))',
        (
            'STRUCT("field1" VARCHAR, "field2" INTEGER, '
            '"child_struct" STRUCT("child_field1" DOUBLE, "child_field2" BOOLEAN))'
        ),
    ]


def test_reflection(warehouse: Path) -> None:
    engine = sa.create_engine(f"hudi:///{warehouse}")
    inspector = sa.inspect(engine)
    assert inspector.get_schema_names() == ["main", "sales"]
    assert inspector.get_table_names() == ["trips"]
    assert inspector.get_pk_constraint("trips")["constrained_columns"] == ["uuid", "city"]
    trips = sa.Table("trips", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        riders = connection.scalars(sa.select(trips.c.rider).where(trips.c.city == "chennai").order_by(trips.c.rider))
        assert riders.all() == ["rider-I", "rider-J"]
    engine.dispose()


def test_what_is_no_table_is_none(tmp_path: Path) -> None:
    for directory in ("a/.hoodie", "_b/.hoodie", ".c/.hoodie", "s/d/.hoodie", "s/p=1/.hoodie", "s/e"):
        (tmp_path / directory).mkdir(parents=True)
    tree = Tree(Storage.of(str(tmp_path)), ".hoodie")
    assert not tree.is_table
    assert list(tree.schemas) == ["main", "s"]
    assert list(tree.tables("main")) == ["a"]
    assert list(tree.tables("s")) == ["d"]


@pytest.fixture
def s3_endpoint() -> Iterator[str]:
    pytest.importorskip("moto.server")
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_tables_in_s3(warehouse: Path, s3_endpoint: str) -> None:
    options: dict[str, Any] = {"key": "x", "secret": "y", "endpoint_url": s3_endpoint}
    bucket = f"hudi-{uuid.uuid4().hex}"
    filesystem = fsspec.filesystem("s3", **options)
    filesystem.mkdir(bucket)
    filesystem.put(f"{warehouse}/", f"{bucket}/lake/", recursive=True)
    options["client_kwargs"] = {"region_name": "us-east-1"}
    with lakedbapi.connect(f"hudi+s3://{bucket}/lake", storage_options=options) as connection:
        assert connection.execute("SELECT count(*) FROM trips").fetchone() == (5,)
        assert connection.execute("SELECT count(*) FROM trips VERSION AS OF 20250618054711154").fetchone() == (8,)
        assert connection.execute("SELECT id FROM sales.numbers WHERE isActive ORDER BY id").fetchall() == [(3,), (4,)]


def test_memory_is_refused(golden_tables: object) -> None:
    place = f"memory://hudi-{uuid.uuid4().hex}"
    filesystem = fsspec.filesystem("memory")
    properties = b"hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=6\n"
    filesystem.pipe_file(f"{place}/t/.hoodie/hoodie.properties", properties)
    with (
        lakedbapi.connect(f"hudi+{place}") as connection,
        pytest.raises(lakedbapi.NotSupportedError, match="cannot read the memory of this process"),
    ):
        connection.execute("SELECT * FROM t")
