"""Threads and forked children that use the same lake, on one connection and on their own."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import lakedbapi
from compliance.peers.lakes import Place
from compliance.races.processes import snapshot_ids
from tests.faults.conftest import Connect

THREADS = 8
STATEMENTS = 18


@pytest.mark.timeout(300)
@pytest.mark.parametrize("shared", [True, False], ids=["one-connection", "own-connections"])
def test_statements_of_many_threads_add_up(connect_sqlite: Connect, sqlite_place: Place, shared: bool) -> None:
    first = connect_sqlite(autocommit=True)
    first.execute("CREATE TABLE t (id INTEGER, n INTEGER)")
    first.execute("INSERT INTO t SELECT i, 0 FROM range(100) r(i)")
    before = snapshot_ids(sqlite_place)[-1]

    def work(number: int) -> tuple[int, int]:
        connection = first if shared else connect_sqlite(autocommit=True)
        cursor = connection.cursor()
        inserted = updated = 0
        for n in range(STATEMENTS):
            if n % 3 == 0:
                inserted += cursor.execute("INSERT INTO t VALUES (?, 0)", (1000 * (number + 1) + n,)).rowcount
            elif n % 3 == 1:
                updated += cursor.execute("UPDATE t SET n = n + 1 WHERE id = ?", (n,)).rowcount
            else:
                rows = cursor.execute("SELECT id FROM t ORDER BY id LIMIT 100").fetchall()
                assert rows == [(i,) for i in range(100)]
        return inserted, updated

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(work, range(THREADS)))
    inserted, updated = map(sum, zip(*results, strict=True))
    found = first.execute("SELECT count(*), count(DISTINCT id), sum(n) FROM t").fetchone()
    assert found == (100 + inserted, 100 + inserted, updated)
    assert snapshot_ids(sqlite_place) == list(range(before + inserted + updated + 1))


def child(url: str, number: int) -> None:
    with lakedbapi.connect(url, autocommit=True) as connection:
        for n in range(5):
            connection.execute("INSERT INTO t VALUES (?)", (10 * number + n,))
        assert len(connection.execute("SELECT id FROM t").fetchall()) >= 5


@pytest.mark.timeout(300)
def test_children_forked_after_use_do_not_share_connections(connect: Connect, place: Place) -> None:
    parent = connect(autocommit=True)
    parent.execute("CREATE TABLE t (id INTEGER)")
    parent.execute("SELECT * FROM t").fetchall()
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=child, args=(place.url, number), daemon=True) for number in range(3)]
    for process in children:
        process.start()
    for n in range(5):
        parent.execute("INSERT INTO t VALUES (?)", (1000 + n,))
    for process in children:
        process.join()
        assert process.exitcode == 0
    assert parent.execute("SELECT count(*), count(DISTINCT id) FROM t").fetchone() == (20, 20)


def _in_child(work: Callable[[], None]) -> int | None:
    """The exit code of a forked process that runs `work`; None = it hangs."""
    process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    process.start()
    process.join(30)
    if process.is_alive():
        process.kill()
    return process.exitcode


def test_a_forked_child_leaves_the_transaction_of_its_parent_alone(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakedbapi.dml.new_rows.MEMORY_LIMIT", 100)
    parent = connect()
    parent.execute("CREATE TABLE t (id INTEGER)")
    parent.execute("INSERT INTO t SELECT range FROM range(1000)")

    def child() -> None:
        for use in (parent.commit, lambda: parent.execute("SELECT 1"), lambda: parent.execute("DELETE FROM t")):
            with pytest.raises(lakedbapi.InterfaceError, match="forked from: connect anew"):
                use()
        parent.rollback()
        parent.close()

    assert _in_child(child) == 0
    parent.commit()
    assert parent.execute("SELECT count(*), max(id) FROM t").fetchone() == (1000, 999)


def test_a_forked_child_does_not_collect_the_engines_of_its_parent(connect: Connect) -> None:
    connections = [connect() for _ in range(2)]
    for connection in connections:
        connection.execute("SELECT sum(range) FROM range(1000000)").fetchall()

    def child() -> None:
        for connection in connections:
            connection.session._engine = None
        gc.collect()

    assert _in_child(child) == 0
