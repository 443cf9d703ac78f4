"""Opening catalogs: on every backend, new, existing, damaged, of another version, by several at once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select

import lakedbapi
from compliance.peers.lakes import POSTGRESQL, Place, on_postgresql
from compliance.peers.peer import Peer
from lakedbapi import errors, formats, url
from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog
from lakedbapi.formats.ducklake.metadata import format_timestamp
from tests.formats.ducklake.reading import open_lake

MYSQL = os.environ.get("LAKE_MYSQL", "mysql://root@127.0.0.1:3306")


@dataclass(frozen=True)
class Empty:
    """Where no catalog is yet."""

    location: str
    data_path: str

    def open(self, *, create: bool = True, read_only: bool = False, **options: str) -> DuckLakeCatalog:
        catalog = formats.get("ducklake").open(
            self.location, {"data_path": self.data_path, **options}, read_only=read_only, create=create
        )
        assert isinstance(catalog, DuckLakeCatalog)
        return catalog


@pytest.fixture(params=["sqlite", "postgresql", "mysql", "duckdb"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Empty]:
    data = f"{tmp_path}/data/"
    if request.param == "sqlite":
        yield Empty(f"sqlite:{tmp_path}/new/catalog.sqlite", data)
    elif request.param == "duckdb":
        yield Empty(f"duckdb:{tmp_path}/new/{uuid.uuid4().hex}.ducklake", data)
    elif request.param == "postgresql":
        with on_postgresql(tmp_path) as place:
            yield Empty(url.parse(place.url).location, data)
    else:
        pymysql = pytest.importorskip("pymysql")
        name = f"lake_{uuid.uuid4().hex[:12]}"
        login = url.urlsplit(MYSQL)
        server = pymysql.connect(
            host=login.hostname, port=login.port or 3306, user=login.username, password=login.password or ""
        )
        with server, server.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
            try:
                yield Empty(f"{MYSQL}/{name}", data)
            finally:
                cursor.execute(f"DROP DATABASE {name}")


def test_a_new_catalog_has_one_snapshot_and_the_schema_main(empty: Empty) -> None:
    catalog = empty.open()
    snapshot = catalog.latest()
    assert snapshot.id == 0
    assert [schema.name for schema in snapshot.schemas().values()] == ["main"]
    assert snapshot.tables() == {}
    (line,) = catalog.history()
    assert line.changes == {"schemas_created": ("main",)}
    assert catalog.data_path == empty.data_path
    catalog.close()
    assert empty.open(create=False).latest().time == snapshot.time


def test_options_are_kept_on_every_backend(empty: Empty) -> None:
    catalog = empty.open()
    catalog.set_option("target_file_size", "5000000")
    assert empty.open().option("target_file_size") == "5000000"


def test_a_lost_race_for_a_snapshot_is_a_conflict(empty: Empty) -> None:
    backend = empty.open().backend
    with pytest.raises(errors.ConflictError), backend.write() as connection:
        connection.execute(insert(backend.tables.snapshot).values(snapshot_id=0))
    with backend.read() as connection:
        assert connection.execute(select(backend.tables.snapshot.c.snapshot_id)).scalars().all() == [0]


def test_writers_wait_for_each_other(empty: Empty) -> None:
    backend = empty.open().backend
    snapshot = backend.tables.snapshot

    def add(_: int) -> None:
        with backend.write() as connection:
            newest = max(connection.execute(select(snapshot.c.snapshot_id)).scalars())
            connection.execute(insert(snapshot).values(snapshot_id=newest + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(20)))
    with backend.read() as connection:
        assert sorted(connection.execute(select(snapshot.c.snapshot_id)).scalars()) == list(range(21))


def test_a_block_that_fails_writes_nothing(empty: Empty) -> None:
    backend = empty.open().backend

    def fail() -> None:
        with backend.write() as connection:
            connection.execute(insert(backend.tables.snapshot).values(snapshot_id=7))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with backend.read() as connection:
        assert connection.execute(select(backend.tables.snapshot.c.snapshot_id)).scalars().all() == [0]


def test_many_can_create_one_catalog_at_once(empty: Empty) -> None:
    with ThreadPoolExecutor(4) as pool:
        catalogs = list(pool.map(lambda _: empty.open(), range(4)))
    assert {catalog.latest().time for catalog in catalogs} == {catalogs[0].latest().time}
    assert len(catalogs[0].history()) == 1


def test_processes_can_create_one_catalog_at_once(tmp_path: Path) -> None:
    program = (
        "from lakedbapi import formats; print(formats.get('ducklake').open("
        f"'sqlite:{tmp_path}/catalog.sqlite', {{}}, read_only=False, create=True).latest().time)"
    )
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(3)]
    outputs = {process.communicate(timeout=60)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(outputs) == 1


def test_where_nothing_is_nothing_is_made_unless_asked(empty: Empty, tmp_path: Path) -> None:
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(errors.ProgrammingError, match="no DuckLake catalog"):
            empty.open(**options)
    with pytest.raises(errors.ProgrammingError, match="no DuckLake catalog"):
        empty.open(create_if_not_exists="false")
    assert not (tmp_path / "new").exists()


def test_duckdb_reads_and_writes_a_catalog_made_here(place: Place, peer: Peer) -> None:
    catalog = open_lake(place, create=True)
    peer.attach(place.location, place.data_path)
    peer.execute("CREATE TABLE t(i int)")
    peer.execute("INSERT INTO t VALUES (1)")
    assert peer.value("SELECT sum(i) FROM t") == 1
    assert [line.id for line in catalog.history()] == [0, 1, 2]


def test_a_catalog_made_by_duckdb_has_the_same_tables(tmp_path: Path, peer: Peer) -> None:
    def tables(file: Path) -> list[tuple[object, ...]]:
        with sqlite3.connect(file) as connection:
            return connection.execute(
                "SELECT t.name, c.cid, c.name, c.type, c.pk FROM sqlite_master t, pragma_table_info(t.name) c "
                "WHERE t.type = 'table' ORDER BY 1, 2"
            ).fetchall()

    peer.attach(f"ducklake:sqlite:{tmp_path}/theirs.sqlite", f"{tmp_path}/data/")
    Empty(f"sqlite:{tmp_path}/ours.sqlite", f"{tmp_path}/data/").open()
    assert tables(tmp_path / "ours.sqlite") == tables(tmp_path / "theirs.sqlite")


def test_another_data_path_is_refused_unless_overridden(tmp_path: Path) -> None:
    place = Empty(f"sqlite:{tmp_path}/c.sqlite", f"{tmp_path}/data")
    assert place.open().data_path == f"{tmp_path}/data/"
    assert place.open(data_path=f"{tmp_path}/data/").data_path == f"{tmp_path}/data/"
    with pytest.raises(errors.ProgrammingError, match="override_data_path"):
        place.open(data_path=f"{tmp_path}/moved/")
    assert place.open(data_path=f"{tmp_path}/moved", override_data_path="true").data_path == f"{tmp_path}/moved/"
    assert place.open().data_path == f"{tmp_path}/data/"


def test_a_file_catalog_has_its_data_beside_it_by_default(tmp_path: Path) -> None:
    catalog = formats.get("ducklake").open(f"sqlite:{tmp_path}/c.sqlite", {}, read_only=False, create=True)
    assert catalog.data_roots() == [f"{tmp_path}/c.sqlite.files/"]


@pytest.mark.parametrize(
    ("version", "message"), [("0.2", "AUTOMATIC_MIGRATION"), ("9.9", "9.9 is not known, 1.0 and 1.1 are supported")]
)
def test_other_format_versions_are_refused(tmp_path: Path, version: str, message: str) -> None:
    place = Empty(f"sqlite:{tmp_path}/c.sqlite", f"{tmp_path}/data/")
    catalog = place.open()
    with sqlite3.connect(tmp_path / "c.sqlite") as connection:
        connection.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'version'", [version])
    with pytest.raises(errors.NotSupportedError, match=message):
        place.open()
    with pytest.raises(errors.NotSupportedError, match=message):
        catalog.latest()


@pytest.mark.parametrize("damage", [b"this is no database at all" * 100, None])
def test_a_damaged_file_is_named(tmp_path: Path, damage: bytes | None) -> None:
    place = Empty(f"sqlite:{tmp_path}/c.sqlite", f"{tmp_path}/data/")
    place.open().close()
    file = tmp_path / "c.sqlite"
    file.write_bytes(file.read_bytes()[:5000] if damage is None else damage)
    with pytest.raises(errors.OperationalError, match=r"c\.sqlite"):
        place.open().latest().tables()


def test_an_emptied_catalog_is_no_new_lake(tmp_path: Path) -> None:
    """What a full disk may leave: a new lake would look as if all tables were gone."""
    catalog, data = tmp_path / "catalog", tmp_path / "data"
    url = f"ducklake:///{catalog}?data_path={data}/"
    catalog.touch()
    lakedbapi.connect(url).close()  # Nothing is lost: a new lake.
    with lakedbapi.connect(url, data_inlining_row_limit=0) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS i")
    catalog.write_bytes(b"")
    for read_only in (False, True):
        with pytest.raises(errors.OperationalError, match=r"catalog .* is an empty file, but there are data files"):
            lakedbapi.connect(url, read_only=read_only)
    assert catalog.stat().st_size == 0


def test_the_emptied_catalog_of_a_directory_is_no_new_lake(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog.sqlite"
    catalog.touch()
    with lakedbapi.connect(tmp_path, data_inlining_row_limit=0) as connection:  # Nothing is lost: a new lake.
        connection.execute("CREATE TABLE t AS SELECT 1 AS i")
    assert list((tmp_path / "data").rglob("*.parquet"))
    catalog.write_bytes(b"")
    with pytest.raises(
        errors.OperationalError, match=r"catalog .* is an empty file, but there are data files in .*/data/"
    ):
        lakedbapi.connect(tmp_path)


@pytest.mark.parametrize("name", ["shop", "ducklake:///shop.sqlite", "ducklake+duckdb:///shop.ducklake"])
def test_a_lost_catalog_is_no_new_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A new one would take the files of the lost one for orphans, and remove them."""
    monkeypatch.chdir(tmp_path)
    with lakedbapi.connect(name, data_inlining_row_limit=0) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS i")
    (catalog,) = (path for path in tmp_path.rglob("*") if path.suffix in (".sqlite", ".ducklake"))
    copy = catalog.rename(catalog.with_suffix(".copy"))
    kept = sorted(tmp_path.rglob("*"))
    with pytest.raises(errors.OperationalError, match=r"is not there, but there are data files in .* Restore it from"):
        lakedbapi.connect(name)
    with pytest.raises(errors.ProgrammingError, match="no such file"):
        lakedbapi.connect(name, read_only=True)
    assert sorted(tmp_path.rglob("*")) == kept
    with lakedbapi.connect(name, data_path=f"{tmp_path}/new/", allow_external=True) as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
        (file,) = tmp_path.rglob("ducklake-*.parquet")
        connection.execute(f"CALL ducklake_add_data_files('lake', 't', '{file}')")
        assert connection.execute("SELECT i FROM t").fetchall() == [(1,)]
    copy.rename(catalog)
    with lakedbapi.connect(name) as connection:
        assert connection.execute("SELECT i FROM t").fetchall() == [(1,)]


def test_a_new_lake_may_have_files_of_others_where_its_data_go(tmp_path: Path) -> None:
    (tmp_path / "shop" / "data").mkdir(parents=True)
    (tmp_path / "shop" / "data" / "export.parquet").write_bytes(b"")
    with lakedbapi.connect(tmp_path / "shop") as connection:
        assert connection.execute("SELECT count(*) FROM information_schema.tables").fetchone() == (0,)


def test_a_server_needs_a_data_path(tmp_path: Path) -> None:
    with on_postgresql(tmp_path) as place, pytest.raises(errors.ProgrammingError, match="data_path"):
        formats.get("ducklake").open(url.parse(place.url).location, {}, read_only=False, create=True)


def test_a_catalog_can_lie_in_a_database_schema_of_its_own(tmp_path: Path) -> None:
    with on_postgresql(tmp_path) as place:
        location = url.parse(place.url).location
        for name in ("first", "second"):
            Empty(location, f"{tmp_path}/{name}/").open(metadata_schema=name)
        assert Empty(location, f"{tmp_path}/second/").open(metadata_schema="second", create=False).latest().id == 0


def test_an_unreachable_server_is_an_error_without_the_password() -> None:
    location = "postgresql://someone:hunter2@127.0.0.1:1/nowhere"
    with pytest.raises(errors.OperationalError) as caught:
        Empty(location, "/tmp/data/").open()
    assert "127.0.0.1:1" in str(caught.value)
    assert "hunter2" not in f"{caught.value!r} {caught.value} {caught.value.__cause__}"


def test_a_duckdb_file_that_another_process_holds_is_named(tmp_path: Path) -> None:
    place = Empty(f"duckdb:{tmp_path}/taken.ducklake", f"{tmp_path}/data/")
    place.open().close()
    program = f"import duckdb; con = duckdb.connect('{tmp_path}/taken.ducklake'); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(errors.OperationalError, match=r"taken\.ducklake.*one process at a time"):
            place.open().latest()
        other.kill()


def test_a_duckdb_file_is_free_again_when_the_last_connection_is_closed(tmp_path: Path) -> None:
    def connect() -> lakedbapi.Connection:
        return lakedbapi.connect(f"ducklake+duckdb:///{tmp_path}/c.ducklake", autocommit=True)

    def others_can_open_it() -> bool:
        program = f"import duckdb; duckdb.connect('{tmp_path}/c.ducklake')"
        return subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0

    first, second = connect(), connect()
    first.cursor().execute("CREATE TABLE t (a INTEGER)")
    first.close()
    second.cursor().execute("INSERT INTO t VALUES (1)")
    assert not others_can_open_it()
    second.close()
    assert others_can_open_it()
    with connect() as third:
        assert third.cursor().execute("SELECT * FROM t").fetchall() == [(1,)]


def test_a_catalog_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    place = Empty(f"sqlite:{tmp_path}/c.sqlite", f"{tmp_path}/data/")
    catalog = place.open()
    before = catalog.latest()
    (tmp_path / "c.sqlite").unlink()
    place.open()
    assert catalog.latest().time > before.time


def test_times_in_any_spelling_of_sqlite_are_read(tmp_path: Path) -> None:
    place = Empty(f"sqlite:{tmp_path}/c.sqlite", f"{tmp_path}/data/")
    catalog = place.open()
    for spelling in ("2026-11-29 22:08:46.5+00", "2026-11-30 03:38:46.500000+05:30", "2026-11-29T22:08:46.5Z"):
        with sqlite3.connect(tmp_path / "c.sqlite") as connection:
            connection.execute("UPDATE ducklake_snapshot SET snapshot_time = ?", [spelling])
        assert format_timestamp(catalog.latest().time) == "2026-11-29 22:08:46.5+00"


def test_a_broken_connection_is_replaced(tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    with on_postgresql(tmp_path) as place:
        catalog = Empty(url.parse(place.url).location, f"{tmp_path}/data/").open()
        before = catalog.latest()
        with psycopg.connect(POSTGRESQL, autocommit=True) as server:
            name = url.urlsplit(catalog.backend.name).path[1:]
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        assert catalog.latest() is before


def test_an_expired_snapshot_is_not_read_any_more(empty: Empty) -> None:
    catalog = empty.open()
    pinned = catalog.latest()
    backend = catalog.backend
    with backend.write() as connection:
        connection.execute(insert(backend.tables.snapshot).values(snapshot_id=1, schema_version=0))
        connection.execute(delete(backend.tables.snapshot).where(backend.tables.snapshot.c.snapshot_id == 0))
    with pytest.raises(errors.ConflictError, match="snapshot 0 was expired"):
        pinned.tables()
