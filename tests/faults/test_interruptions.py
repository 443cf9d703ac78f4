"""Statements that are cancelled from another thread or by Ctrl-C: they end soon, leave nothing, and work goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

import lakedbapi
from compliance.peers.lakes import Place
from compliance.races.processes import orphans, snapshot_ids
from lakedbapi.engine.duckdb import DuckDBEngine, driver
from lakedbapi.engine.duckdb.engine import Execution
from tests.effort import interrupted

SLOW = "SELECT a.i + b.i FROM range(10000000) a(i), range(10000000) b(i)"
STATEMENTS = {
    "select": f"SELECT sum(hash(x)) FROM ({SLOW}) q(x)",
    "insert-select": f"INSERT INTO t {SLOW}",
    "delete": f"DELETE FROM t WHERE id IN ({SLOW})",
    "update": f"UPDATE t SET id = (SELECT sum(hash(x + t.id)) FROM ({SLOW}) q(x)) % 7",
    "create-as": f"CREATE TABLE u AS {SLOW}",
}
statements = pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)


@pytest.fixture
def connection(sqlite_place: Place) -> Iterator[lakedbapi.Connection]:
    """On a lake with the table `t(id BIGINT)` of 1,000 rows in one file."""
    with lakedbapi.connect(sqlite_place.url, data_inlining_row_limit=0) as connection:
        connection.execute("CREATE TABLE t (id BIGINT)")
        connection.execute("INSERT INTO t SELECT i FROM range(1000) r(i)")
        connection.commit()
        yield connection


def run(connection: lakedbapi.Connection, statement: str) -> None:
    cursor = connection.execute(statement)
    if cursor.description is not None:
        cursor.fetchall()


def check_unharmed(connection: lakedbapi.Connection, place: Place, snapshots: list[int]) -> None:
    assert connection.execute("SELECT count(*), sum(id) FROM t").fetchone() == (1000, 499_500)
    connection.commit()
    assert snapshot_ids(place) == snapshots
    assert not orphans(place)
    assert connection.execute("DELETE FROM t WHERE id = 1").rowcount == 1
    connection.commit()


@statements
@pytest.mark.parametrize("autocommit", [False, True])
def test_a_cancelled_statement(
    connection: lakedbapi.Connection, sqlite_place: Place, statement: str, autocommit: bool
) -> None:
    connection.autocommit = autocommit
    snapshots = snapshot_ids(sqlite_place)
    with pytest.raises(lakedbapi.OperationalError, match="cancelled"), interrupted(connection.interrupt):
        run(connection, statement)
    check_unharmed(connection, sqlite_place, snapshots)


@pytest.fixture
def handled() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, though programs that a shell began in the background ignore it, and SIGUSR1
    SystemExit."""

    def ended(number: int, frame: object) -> None:
        raise SystemExit

    before = signal.signal(signal.SIGINT, signal.default_int_handler), signal.signal(signal.SIGUSR1, ended)
    yield
    for number, handler in zip((signal.SIGINT, signal.SIGUSR1), before, strict=True):
        signal.signal(number, handler)


@statements
@pytest.mark.usefixtures("handled")
def test_other_signals_that_raise(connection: lakedbapi.Connection, sqlite_place: Place, statement: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    snapshots = snapshot_ids(sqlite_place)
    with pytest.raises(SystemExit), interrupted(lambda: os.kill(os.getpid(), signal.SIGUSR1), once=True):
        run(connection, statement)
    check_unharmed(connection, sqlite_place, snapshots)


@statements
@pytest.mark.usefixtures("handled")
def test_ctrl_c(connection: lakedbapi.Connection, sqlite_place: Place, statement: str) -> None:
    snapshots = snapshot_ids(sqlite_place)
    with pytest.raises(KeyboardInterrupt), interrupted(lambda: os.kill(os.getpid(), signal.SIGINT), once=True):
        run(connection, statement)
    check_unharmed(connection, sqlite_place, snapshots)


SEVERAL_QUERIES = {
    "create-as": "CREATE TABLE u AS SELECT * FROM t",
    "insert": "INSERT INTO t SELECT i FROM range(500) r(i)",
    "update": "UPDATE t SET id = id + 1",
    "merge": "MERGE INTO t USING (SELECT 1 AS k) s ON id = k WHEN MATCHED THEN UPDATE SET id = 2000",
}


@pytest.mark.parametrize("statement", SEVERAL_QUERIES.values(), ids=SEVERAL_QUERIES)
def test_a_statement_is_cancelled_between_its_queries(
    connection: lakedbapi.Connection, sqlite_place: Place, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.autocommit = True
    opened: list[Execution] = []
    open_execution = DuckDBEngine._open

    def _open(engine: DuckDBEngine, *arguments: Any) -> Execution:
        opened.append(open_execution(engine, *arguments))
        if len(opened) == 1:
            opened[-1].close = close  # type: ignore[method-assign]
        return opened[-1]

    def close() -> None:
        """The first query of the statement is over: nothing runs."""
        Execution.close(opened[0])
        connection.interrupt()

    monkeypatch.setattr(DuckDBEngine, "_open", _open)
    snapshots = snapshot_ids(sqlite_place)
    with pytest.raises(lakedbapi.OperationalError, match="cancelled"):
        run(connection, statement)
    assert len(opened) > 1  # There was something to cancel.
    monkeypatch.undo()
    connection.autocommit = False
    check_unharmed(connection, sqlite_place, snapshots)


def test_an_interrupt_just_before_the_engine_begins_is_not_lost(
    connection: lakedbapi.Connection, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots, begin = snapshot_ids(sqlite_place), driver.stream

    def stream(cursor: Any, sql: str, parameters: Any) -> Any:
        connection.interrupt()
        return begin(cursor, sql, parameters)

    monkeypatch.setattr(driver, "stream", stream)
    with pytest.raises(lakedbapi.OperationalError, match="cancelled"):
        run(connection, STATEMENTS["select"])
    monkeypatch.undo()
    check_unharmed(connection, sqlite_place, snapshots)


def test_an_interrupt_while_nothing_runs_does_nothing(connection: lakedbapi.Connection, sqlite_place: Place) -> None:
    connection.execute("DELETE FROM t WHERE id < 10")
    connection.interrupt()
    connection.commit()
    connection.interrupt()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (990,)


def test_a_cancelled_statement_leaves_those_before_it(connection: lakedbapi.Connection) -> None:
    connection.execute("DELETE FROM t WHERE id < 10")
    with pytest.raises(lakedbapi.OperationalError, match="cancelled"), interrupted(connection.interrupt):
        run(connection, STATEMENTS["delete"])
    connection.commit()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (990,)
