"""A directory of tables: which ones it has, and that a statement looks into no other than its own."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from sqlalchemy import create_engine, inspect, text

import lakedbapi
from lakedbapi.errors import NotSupportedError, OperationalError, ProgrammingError
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import Table


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Tables `a` and `b`, and `a` in the schema `sales`, one row each; and what is none."""
    root = tmp_path / "warehouse"
    for number, path in enumerate(("a", "b", "sales/a")):
        table = Table(root / path).create()
        table.commit(table.file("f.parquet", [number]))
    for directory in ("sales/no_table", "_hidden/t", ".hidden/t", "p=1/t", "empty"):
        (root / directory).mkdir(parents=True)
    (root / "a file").write_text("")
    return root


def test_rows_have_no_ids_that_stay(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create()
    table.commit(table.file("a.parquet", [1, 2]))
    connection = connect(table.path)
    for sql in ("SELECT rowid FROM t", "SELECT i FROM t ORDER BY t.rowid", "DELETE FROM t WHERE rowid = 0"):
        with pytest.raises(NotSupportedError, match="has no row ids that stay"):
            connection.execute(sql)


def test_tables_are_named_by_their_directories(connect: Connect, warehouse: Path) -> None:
    connection = connect(warehouse)
    assert connection.execute("SHOW TABLES").fetchall() == [("a",), ("b",)]
    assert connection.execute("SHOW TABLES FROM sales").fetchall() == [("a",)]
    assert [row[1] for row in connection.execute("SHOW SCHEMAS").fetchall()] == ["empty", "main", "sales"]
    query = "SELECT (SELECT i FROM a), (SELECT i FROM main.B), (SELECT i FROM Sales.a), (SELECT i FROM lake.sales.a)"
    assert connection.execute(query).fetchall() == [(0, 1, 2, 2)]
    listed = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
    assert connection.execute(listed).fetchall() == [("main", "a"), ("main", "b"), ("sales", "a")]


def test_a_table_that_is_being_made_is_no_schema(connect: Connect, warehouse: Path) -> None:
    """Its files come before its log: they may take an hour, or their writer may have died."""
    for path in ("half/part-0.parquet", "parts/k=1/part-0.parquet", "sales/no_table/part-0.parquet", "old/README.md"):
        (warehouse / path).parent.mkdir(parents=True, exist_ok=True)
        (warehouse / path).touch()
    table = Table(warehouse / "mixed" / "t").create()
    table.commit(table.file("f.parquet", [1]))
    (warehouse / "mixed" / "raw.parquet").touch()
    connection = connect(warehouse)
    schemas = [row[1] for row in connection.execute("SHOW SCHEMAS").fetchall()]
    assert schemas == ["empty", "main", "mixed", "old", "sales"]
    for sql in ("CREATE SCHEMA half", "CREATE TABLE half (i INTEGER)"):
        connection.execute(sql)
        with pytest.raises(NotSupportedError, match=r"half/: a new .* cannot be made in a directory with"):
            connection.commit()
        connection.rollback()


def test_a_table_can_be_connected_to_alone(connect: Connect, warehouse: Path) -> None:
    connection = connect(warehouse / "sales" / "a")
    assert connection.execute("SHOW TABLES").fetchall() == [("a",)]
    assert connection.execute("SELECT i FROM a").fetchall() == [(2,)]
    with lakedbapi.connect(warehouse / "b") as sniffed:
        assert sniffed.execute("SELECT i FROM b").fetchall() == [(1,)]


def test_a_table_that_is_not_named_is_not_looked_into(connect: Connect, warehouse: Path) -> None:
    (warehouse / "b" / "_delta_log" / f"{1:020}.json").write_text("damaged")
    Table(warehouse / "c").create(protocol={"minReaderVersion": 9, "minWriterVersion": 9})
    connection = connect(warehouse)
    assert connection.execute("SELECT i FROM a").fetchall() == [(0,)]
    assert connection.execute("SHOW TABLES").fetchall() == [("a",), ("b",), ("c",)]
    listed = connection.execute("SELECT table_name FROM information_schema.columns WHERE table_schema = 'main'")
    assert listed.fetchall() == [("a",)]
    with pytest.raises(NotSupportedError, match="needs a reader of version 9"):
        connection.execute("SELECT * FROM c")
    with pytest.raises(ProgrammingError, match=r"table or view d does not exist"):
        connection.execute("SELECT * FROM d")


def test_tables_that_come_later_are_seen_by_the_next_transaction(connect: Connect, warehouse: Path) -> None:
    connection = connect(warehouse)
    assert len(connection.execute("SHOW TABLES").fetchall()) == 2
    Table(warehouse / "c").create()
    connection.rollback()
    assert len(connection.execute("SHOW TABLES").fetchall()) == 3


def test_a_version_counts_for_each_table(connect: Connect, warehouse: Path) -> None:
    b = Table(warehouse / "b", version=1)
    b.commit(b.file("g.parquet", [5]))
    connection = connect(warehouse)
    query = "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b VERSION AS OF 1), (SELECT count(*) FROM b)"
    assert connection.execute(query).fetchall() == [(1, 1, 2)]
    past = connect(warehouse, as_of=2)
    assert past.execute("SELECT count(*) FROM b").fetchall() == [(2,)]
    with pytest.raises(ProgrammingError, match="has no version 2"):
        past.execute("SELECT * FROM a")


def test_a_directory_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProgrammingError, match="nosuch/: no such directory"):
        lakedbapi.connect(f"delta:///{tmp_path}/nosuch", read_only=True)


def test_a_directory_without_commits_is_no_table(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    with pytest.raises(ProgrammingError, match=r"t/ is no Delta table: it has no _delta_log with commits"):
        connect(tmp_path).execute("SELECT * FROM t")


def test_a_missing_data_file_is_named(connect: Connect, warehouse: Path) -> None:
    (warehouse / "a" / "f.parquet").unlink()
    with pytest.raises(OperationalError, match=r"f\.parquet"):
        connect(warehouse).execute("SELECT * FROM a").fetchall()


def test_files_outside_of_the_directory_are_not_read(connect: Connect, warehouse: Path, tmp_path: Path) -> None:
    other = Table(tmp_path / "other").create()
    add = other.file("f.parquet", [9])
    add["add"]["path"] = f"file://{other.path}/f.parquet"
    a = Table(warehouse / "a", version=1)
    a.commit(add)
    query = "SELECT i FROM a ORDER BY i"
    with pytest.raises(lakedbapi.Error, match=r"other/f\.parquet"):
        connect(warehouse).execute(query).fetchall()
    assert connect(warehouse, allow_external=True).execute(query).fetchall() == [(0,), (9,)]


def test_sqlalchemy_reflects_and_reads(warehouse: Path) -> None:
    engine = create_engine(f"delta:///{warehouse}")
    inspector = inspect(engine)
    assert inspector.get_table_names() == ["a", "b"]
    assert inspector.get_table_names("sales") == ["a"]
    assert [(column["name"], str(column["type"])) for column in inspector.get_columns("a")] == [("i", "BIGINT")]
    with engine.connect() as connection:
        assert connection.execute(text("SELECT i FROM sales.a")).scalar() == 2
        assert connection.execute(text("SELECT count(*) FROM a FOR VERSION AS OF 0")).scalar() == 0
    engine.dispose()


def test_delta_joins_with_other_catalogs(warehouse: Path, tmp_path: Path) -> None:
    with lakedbapi.connect(tmp_path / "lake", allow_attach=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1::BIGINT AS i")
        connection.attach(f"delta:{warehouse}", "d")
        assert connection.execute("SELECT count(*) FROM t JOIN d.main.b USING (i)").fetchall() == [(1,)]


def upload(warehouse: Path, filesystem: fsspec.AbstractFileSystem, target: str) -> None:
    for path in warehouse.rglob("*"):
        if path.is_file():
            filesystem.pipe_file(f"{target}/{path.relative_to(warehouse)}", path.read_bytes())


def check_remote(connection: lakedbapi.Connection, filesystem: fsspec.AbstractFileSystem, target: str) -> None:
    connection.autocommit = True
    assert connection.execute("SHOW TABLES").fetchall() == [("a",), ("b",)]
    assert connection.execute("SELECT (SELECT i FROM a), (SELECT i FROM sales.a)").fetchall() == [(0, 2)]
    log = f"{target}/a/_delta_log"
    filesystem.pipe_file(f"{log}/{2:020}.json", b'{"remove":{"path":"f.parquet","dataChange":true}}\n')
    assert connection.execute("SELECT count(*) FROM a").fetchall() == [(0,)]
    assert connection.execute("SELECT count(*) FROM a VERSION AS OF 1").fetchall() == [(1,)]


def test_tables_can_lie_in_memory(connect: Connect, warehouse: Path) -> None:
    root = f"memory://{uuid.uuid4().hex}"
    filesystem = fsspec.filesystem("memory")
    upload(warehouse, filesystem, root)
    check_remote(connect(f"delta+{root}"), filesystem, root)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The endpoint of an S3 server with the bucket `lake`."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    endpoint = f"http://127.0.0.1:{server._server.server_port}"
    boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1"
    ).create_bucket(Bucket="lake")
    yield endpoint
    server.stop()


def test_tables_can_lie_in_s3(connect: Connect, warehouse: Path, s3: str) -> None:
    options = {"key": "a", "secret": "b", "endpoint_url": s3, "client_kwargs": {"region_name": "us-east-1"}}
    filesystem = fsspec.filesystem("s3", **options)
    upload(warehouse, filesystem, "lake/warehouse")
    connection = connect("delta+s3://lake/warehouse", storage_options=options)
    check_remote(connection, filesystem, "lake/warehouse")
    assert os.path.basename(connection.execute("SELECT path FROM files('b')").fetchall()[0][0]) == "f.parquet"


def test_a_table_in_a_schema_that_cannot_be_read_tells_why(connect: Connect, warehouse: Path) -> None:
    Table(warehouse / "other" / "c").create(protocol={"minReaderVersion": 9, "minWriterVersion": 9})
    with pytest.raises(NotSupportedError, match="needs a reader of version 9"):
        connect(warehouse).execute("SELECT * FROM other.c")
