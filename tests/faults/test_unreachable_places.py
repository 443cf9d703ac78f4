"""Lakes where nothing can be: one clear error for each way to name them."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakedbapi
from tests.formats.needs import need_pyiceberg

URLS = (
    "{}",
    "{}/shop",
    "ducklake:{}",
    "ducklake:sqlite:{}.sqlite",
    "ducklake:///{}.sqlite",
    "ducklake+duckdb:///{}.ducklake",
    "iceberg+sqlite:///{}.db?warehouse=warehouse",
    "delta:///{}",
    "hudi:///{}",
    "iceberg:///{}",
)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("url", URLS)
def test_where_the_system_does_not_let_us_look(tmp_path: Path, url: str, read_only: bool) -> None:
    if "iceberg" in url:
        need_pyiceberg()
    name = "x" * 300  # which no filesystem takes: root, too, is told that it cannot look
    with pytest.raises((lakedbapi.OperationalError, lakedbapi.ProgrammingError), match=name):
        lakedbapi.connect(url.format(tmp_path / name), read_only=read_only).execute("SHOW TABLES")


@pytest.mark.parametrize("url", URLS)
def test_attached_where_the_system_does_not_let_us_look(tmp_path: Path, url: str) -> None:
    if "iceberg" in url:
        need_pyiceberg()
    name = "x" * 300
    with lakedbapi.connect(tmp_path / "shop", allow_attach=True) as connection:

        def read() -> None:
            connection.attach(url.format(tmp_path / name), "a")
            connection.execute("SELECT * FROM a.t")

        with pytest.raises((lakedbapi.OperationalError, lakedbapi.ProgrammingError), match=name):
            read()
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("name", ["a\0b", "a\udc80b"])
@pytest.mark.parametrize("url", [url for url in URLS if not url.startswith("iceberg+")])
def test_what_is_no_name_of_a_file(tmp_path: Path, url: str, name: str) -> None:
    with pytest.raises(lakedbapi.InterfaceError, match="is no path: names of files and directories are UTF-8"):
        lakedbapi.connect(url.format(f"{tmp_path}/{name}"))


@pytest.mark.parametrize("name", ["a\0b", "a\udc80b"])
@pytest.mark.parametrize(
    ("url", "option"),
    [
        ("iceberg+sqlite:///{}/catalog.db", "warehouse"),
        ("iceberg+sqlite:///{}/catalog.db", "catalog"),
        ("iceberg+rest://127.0.0.1:1", "warehouse"),
        ("{}/shop", "data_path"),
        ("{}/shop", "metadata_schema"),
        ("{}/shop", "alias"),
        ("delta:///{}/tables", "schema"),
        ("ducklake+mysql://127.0.0.1/nosuch", "ssl_ca"),
        ("ducklake+postgresql://127.0.0.1/nosuch", "host"),
        ("ducklake+postgresql://127.0.0.1/nosuch", "password"),
        ("hudi+s3://bucket", "storage_options.key"),
    ],
)
@pytest.mark.parametrize("place", ["{}", "file:///{}", "memory://{}"])
def test_an_option_that_can_name_nothing(tmp_path: Path, url: str, option: str, name: str, place: str) -> None:
    with pytest.raises(lakedbapi.InterfaceError, match=f"{option} has a character that no name can have") as caught:
        lakedbapi.connect(url.format(tmp_path), **{option: place.format(name)})
    assert name not in str(caught.value)  # it may be a secret
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["a\0b", "a\udc80b", "a%00b"])
@pytest.mark.parametrize(
    "url",
    [
        "delta+file://{}/{}",
        "hudi+memory://{}/{}",
        "iceberg+file://{}/{}",
        "iceberg+sqlite:///{}/{}.db",
        "iceberg+sqlite:///{}/c.db?warehouse={}",
        "ducklake+postgresql://127.0.0.1{}/{}?data_path=data",
        "ducklake+mysql://127.0.0.1{}/{}?data_path=data",
    ],
)
def test_a_url_that_can_name_nothing(tmp_path: Path, url: str, text: str) -> None:
    with pytest.raises(lakedbapi.InterfaceError, match="has a character that no name can have"):
        lakedbapi.connect(url.format(tmp_path, text))


def test_a_percent_sign_in_a_path_is_one(tmp_path: Path) -> None:
    with lakedbapi.connect(tmp_path / "a%00b", data_path=tmp_path / "c%00d") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    assert {path.name for path in tmp_path.iterdir()} >= {"a%00b"}


@pytest.mark.parametrize("name", ["location", "write.data.path", "write.metadata.path"])
def test_a_property_that_names_no_place(tmp_path: Path, name: str) -> None:
    need_pyiceberg()
    with lakedbapi.connect(f"iceberg+sqlite:///{tmp_path}/catalog.db?warehouse={tmp_path}/w", autocommit=True) as lake:
        properties = f"('{name}' = '{tmp_path}/a\0b')"
        with pytest.raises(lakedbapi.ProgrammingError, match=f"{name} of Iceberg table 't' has a NUL"):
            lake.execute(f"CREATE TABLE t (a INTEGER) WITH {properties}")
        if name != "location":
            lake.execute("CREATE TABLE t (a INTEGER)")
            with pytest.raises(lakedbapi.ProgrammingError, match=f"{name} of Iceberg table 't' has a NUL"):
                lake.execute(f"ALTER TABLE t SET {properties}")
            lake.execute("INSERT INTO t VALUES (1)")


@pytest.mark.parametrize("format", ["delta", "hudi", "iceberg"])
@pytest.mark.parametrize("below", ["", "/table"])
def test_a_file_where_a_directory_of_tables_should_be(tmp_path: Path, format: str, below: str) -> None:
    if format == "iceberg":
        need_pyiceberg()
    (tmp_path / "file").write_text("no table")
    with pytest.raises(lakedbapi.Error, match="file"):
        lakedbapi.connect(f"{format}:///{tmp_path}/file{below}", read_only=bool(below))
    with pytest.raises(lakedbapi.Error, match="file"):
        lakedbapi.connect(f"{format}:///{tmp_path}/file").execute("SHOW TABLES").fetchall()
