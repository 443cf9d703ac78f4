"""A catalog that cannot be reached or is locked for a while: the truth or "unknown", and the connection works again."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

import lakedbapi
from compliance.peers.lakes import MYSQL, POSTGRESQL, Place, on_mysql, on_postgresql
from compliance.races.processes import missing, orphans, snapshot_ids
from tests.formats.ducklake.cutting_proxy import CuttingProxy

Cut = tuple[lakedbapi.Connection, CuttingProxy, Place]


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[Cut]:
    """A connection through a proxy to a lake with the table `t(i INTEGER)` of 20 rows in one file, and its place."""
    with on_postgresql(tmp_path) as place:
        url = urlsplit(place.url)
        assert url.hostname
        with CuttingProxy(url.hostname, url.port or 5432) as proxy:
            address = url.netloc.rpartition("@")[0] + f"@127.0.0.1:{proxy.port}"
            through = urlunsplit(url._replace(netloc=address)) + "&sslmode=disable&data_inlining_row_limit=0"
            with lakedbapi.connect(through) as connection:
                connection.execute("CREATE TABLE t (i INTEGER)")
                connection.execute("INSERT INTO t SELECT i FROM range(20) r(i)")
                connection.commit()
                yield connection, proxy, place


STATEMENTS = {
    "insert": ("INSERT INTO t SELECT i FROM range(20, 30) r(i)", 30),
    "delete": ("DELETE FROM t WHERE i < 5", 15),
    "update": ("UPDATE t SET i = i + 100 WHERE i < 5", 20),
    "create": ("CREATE TABLE u (i INTEGER)", 20),
}


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("deliver", [False, True], ids=["before-commit", "after-commit"])
@pytest.mark.parametrize(("statement", "rows"), STATEMENTS.values(), ids=STATEMENTS)
def test_a_commit_over_a_breaking_connection_takes_effect_once(
    cut: Cut, statement: str, rows: int, deliver: bool, autocommit: bool
) -> None:
    connection, proxy, place = cut
    connection.autocommit = autocommit
    before = snapshot_ids(place)[-1]
    proxy.deliver, proxy.armed = deliver, True
    connection.execute(statement)
    connection.commit()
    assert not proxy.armed
    assert snapshot_ids(place)[-1] == before + 1
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (rows,)
    assert not orphans(place)
    assert not missing(place)


def settled_count(connection: lakedbapi.Connection, expected: int) -> int:
    """The number of rows, once the server has done a COMMIT that it got and could answer nobody."""
    deadline = time.monotonic() + 30
    while True:
        row = connection.execute("SELECT count(*) FROM t").fetchone()
        connection.rollback()
        assert row is not None
        if row[0] == expected or time.monotonic() > deadline:
            return int(row[0])
        time.sleep(0.05)


@pytest.mark.parametrize("deliver", [False, True], ids=["before-commit", "after-commit"])
def test_where_nobody_can_be_asked_the_outcome_is_unknown(cut: Cut, deliver: bool) -> None:
    connection, proxy, place = cut
    proxy.deliver, proxy.stays_reachable, proxy.armed = deliver, False, True
    connection.execute("DELETE FROM t WHERE i < 5")
    with pytest.raises(lakedbapi.OperationalError, match="unknown") as caught:
        connection.commit()
    assert type(caught.value).__name__ == "CommitUnknownError"
    assert not caught.value.retryable
    with pytest.raises(lakedbapi.OperationalError):
        connection.execute("SELECT count(*) FROM t")
    proxy.restore()
    assert settled_count(connection, 15 if deliver else 20) == (15 if deliver else 20)
    assert not missing(place)


def test_a_catalog_that_goes_away_before_the_commit_is_a_clean_failure(cut: Cut) -> None:
    connection, proxy, place = cut
    connection.execute("INSERT INTO t SELECT i FROM range(20, 30) r(i)")
    proxy.cut_all()
    with pytest.raises(lakedbapi.OperationalError) as caught:
        connection.commit()
    assert type(caught.value) is lakedbapi.OperationalError
    proxy.restore()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (20,)
    assert not orphans(place)


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize(
    "statement", ["SELECT count(*) FROM t", "INSERT INTO t VALUES (1)", "DELETE FROM t WHERE i = 1"]
)
def test_a_server_that_ended_idle_connections_is_not_noticed(cut: Cut, statement: str, autocommit: bool) -> None:
    connection, _, place = cut
    connection.autocommit = autocommit
    with psycopg.connect(POSTGRESQL, autocommit=True) as server:
        name = urlsplit(place.url).path[1:]
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
            (name,),
        )
    connection.execute(statement)
    connection.commit()


@pytest.mark.parametrize(
    "statement", ["SELECT count(*) FROM t", "INSERT INTO t VALUES (1)", "DELETE FROM t WHERE i = 1"]
)
def test_a_mysql_server_that_ended_idle_connections_is_not_noticed(
    tmp_path: Path, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    pymysql = pytest.importorskip("pymysql")
    with on_mysql(tmp_path) as place, lakedbapi.connect(place.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
        for _ in range(3):
            with pymysql.connect(**MYSQL) as server, server.cursor() as cursor:
                name = urlsplit(place.url).path[1:]
                cursor.execute("SELECT id FROM information_schema.processlist WHERE db = %s", (name,))
                for (id,) in cursor.fetchall():
                    cursor.execute(f"KILL {id}")
            connection.execute(statement)
    assert caplog.messages == []


LOCKER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
"""


def locked(place: Place) -> subprocess.Popen[str]:
    """Another process that holds the lock of a SQLite catalog from now on, until its input ends."""
    path = urlsplit(place.url).path
    process = subprocess.Popen(
        [sys.executable, "-c", LOCKER, path[1:] if path.startswith("//") else path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


@pytest.fixture
def sqlite_lake(sqlite_place: Place) -> Place:
    with lakedbapi.connect(sqlite_place.url, autocommit=True, data_inlining_row_limit=0) as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
        connection.execute("INSERT INTO t SELECT i FROM range(20) r(i)")
    return sqlite_place


def insert_and_commit(connection: lakedbapi.Connection) -> None:
    connection.execute("INSERT INTO t SELECT i FROM range(20, 30) r(i)")
    connection.commit()


def test_a_locked_catalog_is_waited_for(sqlite_lake: Place) -> None:
    with lakedbapi.connect(sqlite_lake.url, autocommit=True) as connection:
        locker = locked(sqlite_lake)
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (20,)
        assert locker.poll() is None
        threading.Timer(1, locker.communicate).start()
        assert connection.execute("DELETE FROM t WHERE i = 1").rowcount == 1
        assert locker.wait() == 0


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_catalog_that_is_locked_for_too_long_is_an_error(sqlite_lake: Place, autocommit: bool) -> None:
    with lakedbapi.connect(sqlite_lake.url, autocommit=autocommit, busy_timeout=500) as connection:
        locker = locked(sqlite_lake)
        try:
            with pytest.raises(lakedbapi.OperationalError, match=r"catalog\.sqlite.*locked") as caught:
                insert_and_commit(connection)
            assert caught.value.retryable
            assert locker.poll() is None
        finally:
            locker.kill()
            locker.communicate()
        assert not orphans(sqlite_lake)
        assert connection.execute("INSERT INTO t VALUES (100)").rowcount == 1
        connection.commit()
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (21,)
