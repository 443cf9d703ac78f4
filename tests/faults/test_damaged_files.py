"""Data, delete and catalog files that are missing or damaged: an error that names the file, and all else works."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import lakedbapi
from compliance.peers.lakes import Place, on_sqlite

WRITING = {"autocommit": True, "data_inlining_row_limit": 0}
COPIED = {**WRITING, "override_data_path": True}


@pytest.fixture
def copy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Copies a lake to where no lake was before: this process knows the files it has seen without reading them."""
    return lambda written: Path(shutil.copytree(written, tmp_path_factory.mktemp("copy") / "lake"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables `t` and `other` with 1,000 rows in one file each; `t` with a delete file for 100 of them."""
    folder = tmp_path_factory.mktemp("written")
    with lakedbapi.connect(on_sqlite(folder).url, **WRITING) as connection:
        for table in ("t", "other"):
            connection.execute(f"CREATE TABLE {table} (id INTEGER, s VARCHAR)")
            connection.execute(f"INSERT INTO {table} SELECT i, 'x' || i FROM range(1000) r(i)")
        connection.execute("CALL ducklake_set_option('lake', 'lake.write_mode', 'merge-on-read')")
        connection.execute("DELETE FROM t WHERE id < 100")
    return folder


@pytest.fixture
def lake(written: Path, copy: Callable[[Path], Path]) -> Iterator[tuple[lakedbapi.Connection, Place]]:
    """A copy of `written`."""
    place = on_sqlite(copy(written))
    with lakedbapi.connect(place.url, **COPIED) as connection:
        yield connection, place


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def garbled(file: Path) -> None:
    file.write_bytes(b"\x5a" * file.stat().st_size)


def garbled_pages(file: Path) -> None:
    content = file.read_bytes()
    footer = footer_start(content)
    file.write_bytes(content[:4] + b"\xff" * (footer - 4) + content[footer:])


def garbled_footer(file: Path) -> None:
    content = file.read_bytes()
    footer = footer_start(content)
    file.write_bytes(content[:footer] + b"\xff" * (len(content) - 8 - footer) + content[-8:])


def footer_start(content: bytes) -> int:
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def emptied(file: Path) -> None:
    file.write_bytes(b"")


DAMAGE = {
    "missing": Path.unlink,
    "truncated": truncated,
    "garbage": garbled,
    "pages": garbled_pages,
    "footer": garbled_footer,
    "empty": emptied,
}
STATEMENTS = {
    "select": "SELECT sum(id), max(s) FROM t",
    "delete": "DELETE FROM t WHERE s = 'x500'",
    "update": "UPDATE t SET s = 'y' WHERE s = 'x500'",
    "insert-select": "INSERT INTO other SELECT * FROM t",
    "merge": "MERGE INTO t USING other ON t.id = other.id WHEN MATCHED THEN UPDATE SET s = 'y'",
}
COMPACTION = {"compaction": "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.05)"}


@pytest.mark.parametrize("statement", [*STATEMENTS.values(), *COMPACTION.values()], ids=[*STATEMENTS, *COMPACTION])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("kind", ["data", "delete"])
def test_a_damaged_file_is_named(
    lake: tuple[lakedbapi.Connection, Place], kind: str, damage: Callable[[Path], None], statement: str
) -> None:
    connection, place = lake
    folder = Path(place.data_path) / "main" / "t"
    file = next(file for file in folder.iterdir() if ("-delete" in file.name) == (kind == "delete"))
    files = len(place.data_files) - (damage is Path.unlink)
    damage(file)
    with pytest.raises((lakedbapi.DataError, lakedbapi.OperationalError), match=file.name) as caught:
        run(connection, statement)
    expected = lakedbapi.OperationalError if damage is Path.unlink else lakedbapi.DataError
    assert isinstance(caught.value, expected), caught.value
    assert "value for column" not in str(caught.value)
    assert len(place.data_files) == files
    assert connection.execute("SELECT count(*) FROM other WHERE s <> ''").fetchone() == (1000,)
    assert connection.execute("DELETE FROM other WHERE id < 10").rowcount == 10
    connection.execute("DROP TABLE t")


KEYS = {
    "wrong": "'MDAwMDAwMDAwMDAwMDAwMA=='",
    "no base64": "'%'",
    "short": "'AAAA'",
    "none": "NULL",
}


@pytest.fixture(scope="module", params=["id INTEGER, s VARCHAR", "id INTEGER, s VARCHAR, n STRUCT(a INTEGER)"])
def encrypted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An encrypted lake with the tables `t`, in two files, and `other`; the name of the second file."""
    folder = tmp_path_factory.mktemp("encrypted")
    place = on_sqlite(folder)
    with lakedbapi.connect(f"{place.url}&encrypted=true", **WRITING) as connection:
        for table in ("t", "other"):
            connection.execute(f"CREATE TABLE {table} ({request.param})")
        connection.execute("INSERT INTO t (id, s) SELECT i, 'x' || i FROM range(1000) r(i)")
        (intact,) = place.data_files
        connection.execute("INSERT INTO t (id, s) SELECT i, 'x' || i FROM range(1000) r(i)")
        connection.execute("INSERT INTO other (id, s) SELECT i, 'x' || i FROM range(1000) r(i)")
    (file,) = {path for path in place.data_files if path.parent.name == "t"} - {intact}
    return folder, file.name


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
@pytest.mark.parametrize("damage", [*KEYS, "pages"])
def test_an_encrypted_file_that_is_damaged_or_has_another_key_is_named(
    encrypted: tuple[Path, str], copy: Callable[[Path], Path], damage: str, statement: str
) -> None:
    written, name = encrypted
    folder = copy(written)
    place = on_sqlite(folder)
    if damage == "pages":
        garbled_pages(folder / "data" / "main" / "t" / name)
    else:
        with closing(sqlite3.connect(folder / "catalog.sqlite")) as catalog, catalog:
            catalog.execute(f"UPDATE ducklake_data_file SET encryption_key = {KEYS[damage]} WHERE data_file_id = 1")
    with lakedbapi.connect(place.url, **COPIED) as connection:
        with pytest.raises(lakedbapi.DataError, match=name) as caught:
            run(connection, statement)
        assert "value for column" not in str(caught.value)
        assert connection.execute("SELECT count(*) FROM other WHERE s <> ''").fetchone() == (1000,)


def run(connection: lakedbapi.Connection, statement: str) -> None:
    cursor = connection.execute(statement)
    if cursor.description is not None:
        cursor.fetchall()


CATALOGS = {
    "truncated": lambda content: content[: len(content) // 2],
    "cut inside a page": lambda content: content[:1000],
    "garbled": lambda content: content[:100] + b"\xff" * (len(content) - 100),
    "no SQLite": lambda content: b"this is a text file, not a database " * 100,
}


@pytest.mark.parametrize("damage", CATALOGS.values(), ids=CATALOGS)
def test_a_damaged_catalog_is_named(sqlite_place: Place, damage: Callable[[bytes], bytes]) -> None:
    file = Path(sqlite_place.data_path).parent / "catalog.sqlite"
    with lakedbapi.connect(sqlite_place.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT i FROM range(1000) r(i)")
    content = damage(file.read_bytes())
    file.unlink()
    file.write_bytes(content)
    with pytest.raises(lakedbapi.Error, match=r"catalog\.sqlite") as caught:
        read_all(sqlite_place)
    assert isinstance(caught.value, (lakedbapi.DatabaseError, lakedbapi.InterfaceError))
    assert file.read_bytes() == content


def read_all(place: Place) -> None:
    with lakedbapi.connect(place.url) as connection:
        connection.execute("SELECT count(*), sum(i) FROM t").fetchall()


def test_a_catalog_that_is_damaged_while_it_is_open_is_named(sqlite_place: Place) -> None:
    file = Path(sqlite_place.data_path).parent / "catalog.sqlite"
    with lakedbapi.connect(sqlite_place.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT i FROM range(1000) r(i)")
        content = file.read_bytes()
        file.write_bytes(b"\xff" * len(content))
        with pytest.raises(lakedbapi.OperationalError, match=r"catalog\.sqlite"):
            connection.execute("INSERT INTO t VALUES (1)")
        file.write_bytes(content)
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)


def test_a_catalog_of_an_unknown_version_is_refused_by_name(sqlite_place: Place) -> None:
    file = Path(sqlite_place.data_path).parent / "catalog.sqlite"
    lakedbapi.connect(sqlite_place.url).close()
    with sqlite3.connect(file) as catalog:
        catalog.execute("UPDATE ducklake_metadata SET value = '9.7' WHERE key = 'version'")
    with pytest.raises(lakedbapi.NotSupportedError, match=r"catalog\.sqlite.*9\.7.*1\.0"):
        lakedbapi.connect(sqlite_place.url)


def test_a_catalog_whose_tables_do_not_fit_together_is_named(sqlite_place: Place) -> None:
    file = Path(sqlite_place.data_path).parent / "catalog.sqlite"
    with lakedbapi.connect(sqlite_place.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
        connection.execute("INSERT INTO t VALUES (1)")
    with sqlite3.connect(file) as catalog:
        catalog.execute("UPDATE ducklake_column SET column_name = 'other'")
    with lakedbapi.connect(sqlite_place.url, autocommit=True) as connection:
        for statement in ("SELECT * FROM t", "DELETE FROM t", "CALL ducklake_flush_inlined_data('lake')"):
            with pytest.raises(lakedbapi.DataError, match=r"ducklake_inlined_data_.* has no column 'other'"):
                run(connection, statement)
