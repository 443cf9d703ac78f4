"""Catalogs and storage behind a network: REST, PostgreSQL, S3."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
import requests
from moto.server import ThreadedMotoServer
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

import lakedbapi
from compliance.iceberg.rest_catalog import PASSWORD, USER, RestCatalog, serving
from compliance.peers.lakes import POSTGRESQL
from lakedbapi.formats.iceberg.sources import CatalogSource

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "name", StringType(), required=False))


def fill(catalog: Catalog) -> None:
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.t", SCHEMA)
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]}))


def rows(connection: lakedbapi.Connection, sql: str) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return sorted(cursor.fetchall())


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[RestCatalog, int]]:
    catalog = load_catalog("behind", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    rest = RestCatalog(catalog)
    with serving(rest) as port:
        yield rest, port
    catalog.close()


def test_a_rest_catalog_with_a_login(served: tuple[RestCatalog, int]) -> None:
    rest, port = served
    fill(rest.catalog)
    connection = lakedbapi.connect(f"iceberg+rest://127.0.0.1:{port}", user=USER, password=PASSWORD, schema="ns")
    assert rows(connection, "SELECT * FROM t") == [(1, "a"), (2, "b")]
    assert rows(connection, "SELECT id FROM ns.t WHERE name = 'b'") == [(2,)]
    connection.close()


def test_a_login_that_is_wrong_shows_no_secret(served: tuple[RestCatalog, int]) -> None:
    _, port = served
    with pytest.raises(lakedbapi.OperationalError) as caught:
        lakedbapi.connect(f"iceberg+rest://{USER}:hunter2@127.0.0.1:{port}").cursor().execute("SELECT 1 FROM ns.t")
    assert "hunter2" not in str(caught.value)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(lakedbapi.OperationalError, match="opening the Iceberg catalog rest"):
        lakedbapi.connect("iceberg+rest://127.0.0.1:1").cursor().execute("SELECT 1 FROM ns.t")


def test_only_the_tables_that_are_named_are_loaded(served: tuple[RestCatalog, int]) -> None:
    rest, port = served
    fill(rest.catalog)
    for number in range(5):
        rest.catalog.create_table(f"ns.other{number}", SCHEMA)
    connection = lakedbapi.connect(f"iceberg+rest://{USER}:{PASSWORD}@127.0.0.1:{port}")
    rows(connection, "SELECT 1 FROM ns.t")
    rest.requests.clear()
    connection.commit()
    rows(connection, "SELECT id FROM ns.t")
    assert sorted(rest.requests) == [
        "GET /v1/namespaces",
        "GET /v1/namespaces",  # The children of `ns`, of which there are none.
        "GET /v1/namespaces/ns/tables",
        "GET /v1/namespaces/ns/tables/t",
        "GET /v1/namespaces/ns/views",
    ]
    connection.close()


@pytest.fixture
def aws() -> Iterator[dict[str, str]]:
    """pyiceberg's properties for services of AWS that run here, with a bucket `lake`."""
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    login = {"access-key-id": "key", "secret-access-key": "secret", "region": "us-east-1"}
    properties = {f"{service}.{name}": value for service in ("s3", "glue") for name, value in login.items()}
    properties |= {f"{service}.endpoint": f"http://{host}:{port}" for service in ("s3", "glue")}
    client = boto3.client(
        "s3", endpoint_url=properties["s3.endpoint"], aws_access_key_id="key", aws_secret_access_key="secret"
    )
    client.create_bucket(Bucket="lake")
    yield properties
    requests.post(f"http://{host}:{port}/moto-api/reset", timeout=60).raise_for_status()  # Its state is the process's.
    running.stop()


def on_s3(tmp_path: Path, properties: dict[str, str]) -> Catalog:
    """A catalog in SQLite with a table in the bucket."""
    io = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO", **properties}
    uri = f"sqlite:///{tmp_path}/c.db"
    catalog = load_catalog("behind", type="sql", uri=uri, warehouse="s3://lake/warehouse", **io)
    fill(catalog)
    return catalog


def test_s3_with_the_credentials_that_the_catalog_hands_out(tmp_path: Path, aws: dict[str, str]) -> None:
    catalog = on_s3(tmp_path, aws)
    with serving(RestCatalog(catalog, aws)) as port:
        connection = lakedbapi.connect(f"iceberg+rest://{USER}:{PASSWORD}@127.0.0.1:{port}")
        assert rows(connection, "SELECT * FROM ns.t") == [(1, "a"), (2, "b")]
        connection.close()
    catalog.close()


def test_s3_with_options_of_the_connection(tmp_path: Path, aws: dict[str, str]) -> None:
    catalog = on_s3(tmp_path, aws)
    options = {"endpoint_url": aws["s3.endpoint"], "key": "key", "secret": "secret"}
    url = f"iceberg+sqlite:///{tmp_path}/c.db?warehouse=s3://lake/warehouse&catalog=behind"
    connection = lakedbapi.connect(url, storage_options=options)
    assert rows(connection, "SELECT count(*) FROM ns.t") == [(2,)]
    connection.close()
    (metadata,) = {catalog.load_table("ns.t").metadata_location}
    location = metadata.removeprefix("s3://")
    connection = lakedbapi.connect(f"iceberg+s3://{location}", storage_options=options)
    assert rows(connection, "SELECT count(*) FROM t") == [(2,)]
    connection.close()
    catalog.close()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"account_name": "a", "account_key": "k"}, {"adls.account-name": "a", "adls.account-key": "k"}),
        ({"connection_string": "c"}, {"adls.connection-string": "c"}),
        ({"project": "p", "endpoint_url": "u"}, {"gcs.project-id": "p", "gcs.service.host": "u"}),
        ({"adls.account-name": "a"}, {"adls.account-name": "a"}),
    ],
)
def test_options_of_filesystems_reach_pyiceberg(
    tmp_path: Path, given: dict[str, str], expected: dict[str, str]
) -> None:
    url = f"iceberg+sqlite:///{tmp_path}/c.db?warehouse={tmp_path}/w"
    with lakedbapi.connect(url, storage_options=given) as connection:
        source = connection.session.catalogs["lake"].source
        assert expected.items() <= source.client.properties.items()


def test_glue(aws: dict[str, str]) -> None:
    io = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO", **aws}
    catalog = load_catalog("default", type="glue", warehouse="s3://lake/warehouse", **io)
    fill(catalog)
    connection = lakedbapi.connect("iceberg+glue://?warehouse=s3://lake/warehouse", storage_options=aws)
    assert rows(connection, "SELECT * FROM ns.t") == [(1, "a"), (2, "b")]
    connection.close()


@pytest.mark.parametrize("version", [2, 3])
def test_writing_through_glue(aws: dict[str, str], version: int) -> None:
    def connect(autocommit: bool) -> lakedbapi.Connection:
        url = "iceberg+glue://?warehouse=s3://lake/warehouse"
        return lakedbapi.connect(url, storage_options=aws, autocommit=autocommit)

    with connect(True) as lake, connect(False) as first, connect(False) as second:
        lake.execute(f"CREATE TABLE t WITH ('format-version' = '{version}') AS SELECT i FROM range(50) r(i)")
        lake.execute("ALTER TABLE t ADD COLUMN z INTEGER")
        lake.execute("INSERT INTO t VALUES (100, 1)")
        assert lake.execute("UPDATE t SET z = 7 WHERE i = 2").rowcount == 1
        for one in (first, second):
            one.execute("SELECT count(*) FROM t").fetchall()
        first.execute("DELETE FROM t WHERE i BETWEEN 40 AND 49")
        second.execute("DELETE FROM t WHERE i < 2")
        first.commit()
        second.commit()
        assert rows(lake, "SELECT i FROM t WHERE z IS NOT NULL") == [(2,), (100,)]
        assert rows(lake, "SELECT count(*), sum(i) FROM t") == [(39, 879)]
        lake.execute("OPTIMIZE t")
        lake.execute("ALTER TABLE t RENAME TO u")
        catalog = load_catalog("default", type="glue", **aws)
        assert catalog.load_table("main.u").metadata.format_version == version
        lake.execute("DROP TABLE u")
        assert not catalog.table_exists("main.u")


def test_a_catalog_in_postgresql(tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    name = f"iceberg_{uuid.uuid4().hex[:12]}"
    try:
        admin = psycopg.connect(POSTGRESQL, autocommit=True, dbname="postgres")
    except psycopg.OperationalError as error:
        if os.environ.get("LAKE_CI"):
            raise
        pytest.skip(f"needs PostgreSQL: {error}")
    admin.execute(f"CREATE DATABASE {name}")
    url = POSTGRESQL.rpartition("/")[0] if POSTGRESQL.count("/") > 2 else POSTGRESQL
    try:
        driver_url = f"{url}/{name}".replace("postgresql://", "postgresql+psycopg://")
        catalog = load_catalog("default", type="sql", uri=driver_url, warehouse=f"file://{tmp_path}/w")
        fill(catalog)
        connection = lakedbapi.connect(f"iceberg+{url}/{name}?warehouse=file://{tmp_path}/w")
        assert rows(connection, "SELECT * FROM ns.t") == [(1, "a"), (2, "b")]
        connection.close()
        catalog.close()
    finally:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        admin.close()


@pytest.mark.parametrize("version", [2, 3])
def test_writing_through_a_rest_catalog(served: tuple[RestCatalog, int], tmp_path: Path, version: int) -> None:
    rest, port = served
    url = f"iceberg+rest://127.0.0.1:{port}?warehouse=file://{tmp_path}/w"
    with lakedbapi.connect(url, user=USER, password=PASSWORD, autocommit=True) as lake:
        lake.execute(f"CREATE TABLE t WITH ('format-version' = '{version}') AS SELECT i FROM range(5) r(i)")
        lake.execute("DELETE FROM t WHERE i = 1")
        lake.execute("ALTER TABLE t ADD COLUMN z INTEGER")
        lake.execute("UPDATE t SET z = 7 WHERE i = 2")
        expected = [(0, None), (2, 7), (3, None), (4, None)]
        assert sorted(lake.execute("SELECT * FROM t").fetchall()) == expected
        metadata = rest.catalog.load_table("main.t").metadata
        assert metadata.format_version == version
        assert len(metadata.snapshots) == 3
        lake.execute("DROP TABLE t")
        assert not rest.catalog.table_exists("main.t")


def interrupted(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Something happens between the look at a table and the next commit."""
    commit = CatalogSource.commit

    def late(source: CatalogSource, *arguments: Any, **more: Any) -> Any:
        monkeypatch.setattr(CatalogSource, "commit", commit)
        meanwhile()
        return commit(source, *arguments, **more)

    monkeypatch.setattr(CatalogSource, "commit", late)


Expiring = tuple[lakedbapi.Connection, lakedbapi.Connection, int]


@pytest.fixture
def expiring(served: tuple[RestCatalog, int], tmp_path: Path) -> Iterator[Expiring]:
    """Two connections to a catalog with an empty table `t`, and its snapshot that has a row."""
    _, port = served
    url = f"iceberg+rest://{USER}:{PASSWORD}@127.0.0.1:{port}?warehouse=file://{tmp_path}/w"
    with lakedbapi.connect(url, autocommit=True) as lake, lakedbapi.connect(url, autocommit=True) as other:
        lake.execute("CREATE TABLE t (a BIGINT)")
        lake.execute("INSERT INTO t VALUES (1)")
        (old,) = lake.execute("SELECT snapshot_id FROM history('t')").fetchall()[0]
        lake.execute("DELETE FROM t")
        yield lake, other, old


@pytest.mark.parametrize(
    "statement", ["VACUUM t RETAIN 0 HOURS", "CALL expire_snapshots(table => 't', older_than => now())"]
)
def test_a_tag_that_is_made_while_its_snapshot_expires_is_told(
    expiring: Expiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """A server takes it away with the snapshot; the files stay."""
    lake, other, old = expiring
    lake.execute("INSERT INTO t VALUES (2)")
    files = set(tmp_path.rglob("*.parquet"))
    tag = f"ALTER TABLE t CREATE TAG kept AS OF VERSION {old}"
    interrupted(monkeypatch, lambda: other.execute(tag))
    with pytest.raises(
        lakedbapi.OperationalError, match=r"kept was made while snapshots expired.*metadata\.json still"
    ):
        lake.execute(statement)
    assert files == set(tmp_path.rglob("*.parquet"))


def test_files_that_a_commit_in_between_may_need_stay(expiring: Expiring, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, other, old = expiring

    def branched() -> None:
        other.execute(f"ALTER TABLE t CREATE BRANCH b AS OF VERSION {old}")
        other.execute("INSERT INTO t.branch_b VALUES (3)")

    interrupted(monkeypatch, branched)
    lake.execute("VACUUM t RETAIN 0 HOURS")
    assert rows(lake, "SELECT a FROM t.branch_b") == [(1,), (3,)]
