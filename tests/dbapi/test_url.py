"""What connect() takes, and what becomes of it."""

from __future__ import annotations

import sqlite3
from datetime import date, datetime, timezone
from pathlib import Path

import duckdb
import numpy as np
import pytest

from lakedbapi import AsOf, InterfaceError, ProgrammingError
from lakedbapi.url import masked, parse, parse_attach


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_directory_is_a_ducklake_with_its_catalog_and_data_inside(tmp_path: Path) -> None:
    options = parse("shop")
    assert (options.format, options.location) == ("ducklake", f"sqlite:{tmp_path}/shop/catalog.sqlite")
    assert options.format_options == {"data_path": f"{tmp_path}/shop/data/"}
    assert (options.alias, options.schema) == ("lake", "main")


def test_an_existing_catalog_decides_where_its_data_is(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/catalog.sqlite").write_bytes(b"SQLite format 3")
    assert "data_path" not in parse("shop").format_options
    (tmp_path / "shop/catalog.sqlite").write_bytes(b"")  # It decides nothing yet.
    assert parse("shop").format_options["data_path"] == f"{tmp_path}/shop/data/"


def test_what_lies_at_a_path_tells_its_format(tmp_path: Path) -> None:
    sqlite3.connect("a.db").execute("create table t (x)").connection.close()
    duckdb.connect("b.db").close()
    (tmp_path / "table/_delta_log").mkdir(parents=True)
    (tmp_path / "other/.hoodie").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("some text that is no catalog")
    assert parse("a.db").location == f"sqlite:{tmp_path}/a.db"
    assert parse("b.db").location == f"duckdb:{tmp_path}/b.db"
    assert parse("table").format == "delta"
    assert parse("other").format == "hudi"
    with pytest.raises(InterfaceError, match=r"notes\.txt is no lake"):
        parse("notes.txt")


@pytest.mark.parametrize(
    ("url", "format", "location"),
    [
        ("ducklake:///shop/catalog.sqlite", "ducklake", "sqlite:{cwd}/shop/catalog.sqlite"),
        ("ducklake+sqlite:////abs/c.db", "ducklake", "sqlite:/abs/c.db"),
        ("ducklake+duckdb:///file.x", "ducklake", "duckdb:{cwd}/file.x"),
        ("ducklake:///file.ducklake", "ducklake", "duckdb:{cwd}/file.ducklake"),
        ("ducklake:///shop", "ducklake", "sqlite:{cwd}/shop/catalog.sqlite"),
        ("ducklake+postgresql://me:p%40w@host:1/db", "ducklake", "postgresql://me:p%40w@host:1/db"),
        ("ducklake+postgresql://host/db?sslmode=require", "ducklake", "postgresql://host/db?sslmode=require"),
        ("ducklake+mysql://me:pw@host/db", "ducklake", "mysql://me:pw@host/db"),
        ("delta:///warehouse", "delta", "{cwd}/warehouse"),
        ("delta:////warehouse", "delta", "/warehouse"),
        ("delta://///warehouse", "delta", "/warehouse"),
        ("ducklake+sqlite://///abs/c.db", "ducklake", "sqlite:/abs/c.db"),
        ("delta+s3://bucket/prefix", "delta", "s3://bucket/prefix"),
        ("iceberg+rest://host:8181/?warehouse=wh", "iceberg", "rest://host:8181/"),
        ("iceberg+sqlite:///cat.db", "iceberg", "sqlite:///cat.db"),
        ("hudi:///path", "hudi", "{cwd}/path"),
        ("lake:///shop", "ducklake", "sqlite:{cwd}/shop/catalog.sqlite"),
        ("lake+lakedbapi:///shop?format=delta", "delta", "{cwd}/shop"),
        ("ducklake:sqlite:meta.sqlite", "ducklake", "sqlite:{cwd}/meta.sqlite"),
        ("ducklake:file.ducklake", "ducklake", "duckdb:{cwd}/file.ducklake"),
        ("ducklake:postgres:dbname=d host=h user=u password='a b'", "ducklake", "postgresql://u:a%20b@h/d"),
        ("ducklake:postgres:dbname=d host=/tmp", "ducklake", "postgresql:///d?host=%2Ftmp"),
        ("ducklake:mysql:host=h db=d user=u passwd=p port=3307", "ducklake", "mysql://u:p@h:3307/d"),
        ("delta:/x/y", "delta", "/x/y"),
        ("delta:s3://bucket/prefix", "delta", "s3://bucket/prefix"),
        ("delta:///a#b", "delta", "{cwd}/a#b"),
        ("iceberg:sqlite:///cat.db", "iceberg", "sqlite:///cat.db"),
        ("ducklake:sqlite:////abs/c.db", "ducklake", "sqlite:/abs/c.db"),
        (
            "ducklake:postgresql://me:pw@host/db?sslmode=require",
            "ducklake",
            "postgresql://me:pw@host/db?sslmode=require",
        ),
        ("ducklake:postgres:postgresql://h/db?sslmode=require", "ducklake", "postgresql://h/db?sslmode=require"),
    ],
)
def test_urls_and_attach_texts(url: str, format: str, location: str, tmp_path: Path) -> None:
    options = parse(url)
    assert (options.format, options.location) == (format, location.format(cwd=tmp_path))


def test_lake_url_has_no_default_catalog() -> None:
    assert parse("lake://").format is None


def test_query_options(tmp_path: Path) -> None:
    options = parse(
        "ducklake:///shop?data_path=files&read_only=true&schema=s&autocommit=1&storage_options.endpoint_url=u"
    )
    assert options.format_options == {"data_path": f"{tmp_path}/files/", "storage_options.endpoint_url": "u"}
    assert (options.read_only, options.autocommit, options.schema) == (True, True, "s")


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("ducklake:sqlite:c.db", "sqlite:{cwd}/c.db"),
        ("ducklake:duckdb:c.db", "duckdb:{cwd}/c.db"),
        ("ducklake:c.ducklake", "duckdb:{cwd}/c.ducklake"),
        ("ducklake:postgres:postgresql://host/db", "postgresql://host/db"),
        ("ducklake:mysql://host/db", "mysql://host/db"),
        ("shop", "sqlite:{cwd}/shop/catalog.sqlite"),
        ("lake:shop", "sqlite:{cwd}/shop/catalog.sqlite"),
    ],
)
def test_the_query_of_a_url_counts_behind_other_spellings_too(text: str, location: str, tmp_path: Path) -> None:
    options = parse(f"{text}?data_path=files&schema=s")
    assert (options.location, options.schema) == (location.format(cwd=tmp_path), "s")
    assert options.format_options == {"data_path": f"{tmp_path}/files/"}


@pytest.mark.parametrize("format", ["delta", "hudi", "iceberg"])
@pytest.mark.parametrize("place", ["/x", "s3://bucket/x"])
def test_attach_texts_of_other_formats_take_a_query(format: str, place: str) -> None:
    options = parse(f"{format}:{place}?schema=s&storage_options.endpoint_url=u")
    assert (options.location, options.schema) == (place, "s")
    assert options.format_options == {"storage_options.endpoint_url": "u"}


def test_what_is_called_like_a_query_is_a_path_where_it_exists(tmp_path: Path) -> None:
    (tmp_path / "shop?schema=s").mkdir()
    assert parse("shop?schema=s").location == f"sqlite:{tmp_path}/shop?schema=s/catalog.sqlite"
    assert parse("delta:shop?schema=s").location == f"{tmp_path}/shop?schema=s"
    assert parse("what?").location == f"sqlite:{tmp_path}/what?/catalog.sqlite"


def test_arguments_win_over_the_query() -> None:
    assert parse("ducklake:///shop?schema=a&read_only=1", schema="b", read_only=False).schema == "b"


@pytest.mark.parametrize(
    ("value", "point"),
    [
        (3, AsOf(version=3)),
        ("3", AsOf(version=3)),
        ("2026-03-01 12:00:00", AsOf(timestamp=datetime(2026, 3, 1, 12, tzinfo=timezone.utc))),
        ("2026-03-01T12:00:00Z", AsOf(timestamp=datetime(2026, 3, 1, 12, tzinfo=timezone.utc))),
        (np.int64(3), AsOf(version=3)),
        (date(2026, 3, 1), AsOf(timestamp=datetime(2026, 3, 1, tzinfo=timezone.utc))),
        (datetime(2026, 3, 1), AsOf(timestamp=datetime(2026, 3, 1, tzinfo=timezone.utc))),
    ],
)
def test_as_of_makes_a_read_only_connection_at_that_point(value: object, point: AsOf) -> None:
    options = parse("shop", as_of=value)
    assert (options.as_of, options.read_only) == (point, True)


@pytest.mark.parametrize("value", [True, 2.0, [3]])
def test_as_of_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(InterfaceError, match="as_of must be a version, a timestamp or a text of one, not a"):
        parse("shop", as_of=value)


def test_as_of_may_be_a_branch_where_the_format_has_them() -> None:
    assert parse("iceberg+rest://host/?as_of=audit").as_of == AsOf(ref="audit")
    with pytest.raises(InterfaceError, match="neither a version nor a timestamp"):
        parse("shop", as_of="audit")


def test_unknown_options_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InterfaceError, match=r"unknown option 'datapath'.*data_path"):
        parse("shop", datapath="x")


@pytest.mark.parametrize(
    "name", ["password", "token", "storage_options.secret", "storage_options.aws_secret_access_key"]
)
def test_secrets_in_a_query_are_refused_with_the_way_out(name: str) -> None:
    with pytest.raises(InterfaceError, match=r"password slot.*storage_options=") as refused:
        parse(f"ducklake:///shop?{name}=hunter2")
    assert "hunter2" not in str(refused.value)


def test_credentials_can_be_arguments() -> None:
    options = parse("ducklake+postgresql://host/db", user="me", password="p w")
    assert options.location == "postgresql://me:p%20w@host/db"
    assert parse("ducklake:postgres:dbname=d host=h", user="me", password="x").location == "postgresql://me:x@h/d"


def test_no_secret_is_shown() -> None:
    options = parse("ducklake+postgresql://me:hunter2@host/db", storage_options={"secret": "hunter3", "key": "k"})
    assert "hunter" not in repr(options) + options.shown
    assert options.format_options["storage_options.secret"] == "hunter3"
    assert "hunter" not in masked("ducklake:postgres:dbname=d password='hunter 2' host=h")


def test_nested_storage_options_become_dotted_names() -> None:
    options = parse("shop", storage_options={"client_kwargs": {"endpoint_url": "u", "verify": False}})
    nested = "storage_options.client_kwargs"
    assert {f"{nested}.endpoint_url": "u", f"{nested}.verify": "false"}.items() <= options.format_options.items()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ducklake://shop/catalog.sqlite", "three slashes"),
        ("ducklake+s3://bucket/x", "data_path"),
        ("foo://bucket/x", "unknown URL scheme"),
        ("s3://bucket/x", r"delta\+s3://…, .*data_path=s3://"),
        ("postgresql://host/db", r"ducklake\+postgresql://"),
        ("ducklake:///", "needs the catalog's file"),
        ("", "needs a directory"),
        ("ducklake:", r"needs a directory or a file: ducklake:path"),
        ("ducklake:sqlite:", r"needs a directory or a file: ducklake:sqlite:path"),
        ("delta:", r"needs a directory or a file"),
        ("ducklake:sqlite:///x?data_path=y", r"ducklake\+sqlite:///x\?data_path=y for x in .* four slashes for /x$"),
        ("ducklake:duckdb:duckdb:///x", r"write ducklake\+duckdb:///x for x"),
        ("ducklake:sqlite://x", "three slashes"),
        ("ducklake+sqlite:x", r"ducklake\+sqlite:///relative/path or ducklake\+sqlite:////absolute/path"),
        ("delta+s3:/bucket/x", r"delta\+s3://host/…"),
        ("iceberg:sqlite:c.db", r"iceberg\+sqlite:///relative"),
        ("iceberg:rest:http://host", r"iceberg\+rest://host/…"),
        ("sqlite:x", r"ducklake\+sqlite://"),
        ("postgres:dbname=x", r"ducklake\+postgres://"),
        ("postgresql+psycopg2://host/db", r"ducklake\+postgresql://"),
        ("file:///x", "a local path stands alone"),
        ("https://host/x", r"iceberg\+https://"),
        ("lake+delta:///x", r"lake\+delta:// is delta://"),
        ("ducklake:postgres:dbname=x host=h?data_path=d", r"ducklake\+postgresql://host/database\?option=value"),
        ("ducklake+postgresql://host:x/db", "'x' in the place of a port"),
        ("ducklake:///shop?read_only=maybe", "neither true nor false"),
    ],
)
def test_misuse_says_what_to_write(url: str, message: str) -> None:
    with pytest.raises(InterfaceError, match=message):
        parse(url)


@pytest.mark.parametrize("character", ["/", "?", "#"])
def test_a_password_that_cuts_its_url_short_is_refused_without_showing_it(character: str) -> None:
    with pytest.raises(InterfaceError, match=r"%2F, %3F or %23") as refused:
        parse(f"ducklake+postgresql://me:hunt{character}er2@host/db")
    assert "hunt" not in str(refused.value)


@pytest.mark.parametrize(
    ("marker", "format"),
    [("_delta_log/0.json", "delta"), (".hoodie/hoodie.properties", "hudi"), ("metadata/0.metadata.json", "iceberg")],
)
def test_a_directory_of_tables_is_no_place_for_a_new_lake(tmp_path: Path, marker: str, format: str) -> None:
    file = tmp_path / "sales" / "orders" / marker
    file.parent.mkdir(parents=True)
    file.touch()
    for directory in (tmp_path, tmp_path / "sales", tmp_path / "sales" / "orders"):
        assert parse(str(directory)).format == format
    (tmp_path / "catalog.sqlite").touch()
    assert parse(str(tmp_path)).format == "ducklake"


@pytest.mark.parametrize("url", [":memory:", "lake:///:memory:", "ducklake:///:memory:"])
def test_a_lake_in_memory_is_refused_rather_than_made_in_a_directory_of_that_name(url: str) -> None:
    with pytest.raises(InterfaceError, match="TemporaryDirectory"):
        parse(url)


def test_attach_names_the_catalog_after_its_file() -> None:
    assert parse_attach("ducklake:sqlite:a/meta-1.sqlite", None, {}).alias == "meta_1"
    assert parse_attach("ducklake:postgres:dbname=shop", None, {}).alias == "shop"
    assert parse_attach("shop", "x", {"type": "ducklake", "read_only": ""}).read_only


def test_attach_takes_a_point_in_time() -> None:
    attached = parse_attach("shop", None, {"snapshot_version": "1"})
    assert (attached.as_of, attached.read_only) == (AsOf(version=1), True)
    noon = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    assert parse_attach("shop", None, {"snapshot_time": "2026-03-01 12:00:00"}).as_of == AsOf(timestamp=noon)


def test_attach_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ProgrammingError, match="one of SNAPSHOT_VERSION, SNAPSHOT_TIME"):
        parse_attach("shop", None, {"snapshot_version": "1", "snapshot_time": "2026-01-01"})
    with pytest.raises(ProgrammingError, match="say what to attach"):
        parse_attach("lake://", None, {})
