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
