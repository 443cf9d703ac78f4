"""Connections: transactions, closing, threads."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

import lakedbapi
from lakedbapi import ConflictError, Cursor, InterfaceError, OperationalError, ProgrammingError
from tests.dbapi.conftest import Connect
from tests.effort import cpu_seconds, interrupted


def count(connection: lakedbapi.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM items").fetchone()
    assert row is not None
    return int(row[0])


def test_commit_publishes_and_rollback_drops(items: Cursor, connect: Connect) -> None:
    items.execute("DELETE FROM items WHERE id = 1")
    assert (count(items.connection), count(connect())) == (2, 3)
    items.connection.commit()
    assert count(connect()) == 2
    items.execute("DELETE FROM items")
    items.connection.rollback()
    assert count(items.connection) == count(connect()) == 2


def test_a_transaction_sees_one_snapshot(items: Cursor, connect: Connect) -> None:
    reader = connect()
    assert count(reader) == 3
    items.execute("DELETE FROM items")
    items.connection.commit()
    assert count(reader) == 3
    reader.rollback()
    assert count(reader) == 0


def test_commit_and_rollback_without_a_transaction_do_nothing(connection: lakedbapi.Connection) -> None:
    connection.rollback()
    connection.rollback()
    connection.commit()
    connection.commit()
    connection.execute("SELECT 1").fetchall()
    connection.commit()
    assert connection.snapshot_id is None


def test_close_is_idempotent_and_rolls_back(items: Cursor, connect: Connect) -> None:
    items.execute("DELETE FROM items")
    items.connection.close()
    items.connection.close()
    assert items.connection.closed
    assert count(connect()) == 3


def test_use_after_close_is_refused(items: Cursor) -> None:
    connection = items.connection
    pending = connection.execute("SELECT * FROM items")
    connection.close()
    for use in (
        connection.cursor,
        connection.commit,
        connection.rollback,
        connection.begin,
        pending.fetchall,
        lambda: connection.execute("SELECT 1"),
        lambda: items.execute("SELECT 1"),
    ):
        with pytest.raises(InterfaceError, match="closed"):
            use()


def test_leaving_the_block_commits_and_closes(items: Cursor, connect: Connect) -> None:
    with connect() as connection:
        connection.execute("DELETE FROM items WHERE id = 1")
    assert connection.closed
    assert count(items.connection) == 2


def test_leaving_the_block_by_an_exception_rolls_back_and_closes(items: Cursor, connect: Connect) -> None:
    def fail() -> None:
        with connection:
            connection.execute("DELETE FROM items")
            raise ZeroDivisionError

    connection = connect()
    with pytest.raises(ZeroDivisionError):
        fail()
    assert connection.closed
    assert count(connect()) == 3


def test_autocommit_commits_each_statement(items: Cursor, connect: Connect) -> None:
    connection = connect(autocommit=True)
    assert connection.autocommit
    connection.execute("DELETE FROM items WHERE id = 1")
    assert not connection.in_transaction
    assert count(connect()) == 2


def test_autocommit_cannot_change_inside_a_transaction(items: Cursor) -> None:
    items.execute("DELETE FROM items")
    with pytest.raises(ProgrammingError, match="commit or roll back first"):
        items.connection.autocommit = True
    items.connection.rollback()
    items.connection.autocommit = True
    assert items.connection.autocommit


def test_begin_opens_a_transaction_in_autocommit(items: Cursor, connect: Connect) -> None:
    connection = connect(autocommit=True)
    connection.begin()
    assert connection.in_transaction
    connection.execute("DELETE FROM items")
    assert count(connect()) == 3
    connection.rollback()
    assert not connection.in_transaction
    assert count(connection) == 3


def test_in_transaction_tells_whether_there_is_something_to_commit(items: Cursor) -> None:
    connection = items.connection
    assert not connection.in_transaction
    items.execute("DELETE FROM items WHERE id = 1")
    assert connection.in_transaction
    connection.commit()
    assert not connection.in_transaction


def test_savepoints(items: Cursor) -> None:
    connection = items.connection
    items.execute("DELETE FROM items WHERE id = 1")
    connection.savepoint("a")
    items.execute("DELETE FROM items WHERE id = 2")
    connection.rollback_to("a")
    assert count(connection) == 2
    items.execute("DELETE FROM items WHERE id = 3")
    connection.release("a")
    assert count(connection) == 1
    with pytest.raises(ProgrammingError, match="does not exist"):
        connection.rollback_to("a")


def test_a_failed_statement_leaves_the_transaction_usable(items: Cursor, connect: Connect) -> None:
    items.execute("DELETE FROM items WHERE id = 1")
    for bad in ("SELECT nonsense", "SELEC 1", "INSERT INTO items VALUES (NULL, 'x', 1)", "SELECT 'x'::INTEGER"):
        with pytest.raises(lakedbapi.DatabaseError):
            items.execute(bad).fetchall()
    assert items.execute("SELECT 1").fetchone() == (1,)
    items.execute("INSERT INTO items VALUES (4, 'fig', 1)")
    items.connection.commit()
    assert count(connect()) == 3


def test_a_lost_conflict_is_retryable_on_the_same_connection(items: Cursor, connect: Connect) -> None:
    other = connect()
    other.execute("UPDATE items SET name = 'theirs' WHERE id = 1")
    items.execute("UPDATE items SET name = 'ours' WHERE id = 1")
    other.commit()
    with pytest.raises(ConflictError, match="table items: another transaction changed") as lost:
        items.connection.commit()
    assert lost.value.retryable
    assert items.connection.messages == [(ConflictError, lost.value)]
    items.connection.rollback()
    items.execute("UPDATE items SET name = 'ours' WHERE id = 1")
    items.connection.commit()
    assert items.execute("SELECT name FROM items WHERE id = 1").fetchone() == ("ours",)


def test_register_lets_sql_name_arrow_data(connection: lakedbapi.Connection) -> None:
    import pyarrow as pa

    connection.register("extra", pa.table({"x": [1, 2, 3]}))
    assert connection.execute("SELECT sum(x) FROM extra").fetchone() == (6,)
    connection.unregister("extra")
    with pytest.raises(ProgrammingError):
        connection.execute("SELECT * FROM extra")


def test_read_only_connection_refuses_changes(items: Cursor, connect: Connect) -> None:
    connection = connect(read_only=True)
    assert connection.read_only
    assert count(connection) == 3
    with pytest.raises(ProgrammingError, match="read-only"):
        connection.execute("DELETE FROM items")


def test_as_of_connects_to_the_past(items: Cursor, connect: Connect) -> None:
    before = items.connection.snapshot_id
    items.execute("DELETE FROM items")
    items.connection.commit()
    past = connect(as_of=before)
    assert count(past) == 3
    with pytest.raises(ProgrammingError, match="past snapshot"):
        past.execute("INSERT INTO items (id) VALUES (1)")


def test_repr_shows_no_secret(connection: lakedbapi.Connection) -> None:
    assert repr(connection).startswith("<lakedbapi.connection.Connection open ducklake sqlite:")
    assert repr(connection.cursor()).startswith(
        "<lakedbapi.cursor.Cursor idle of <lakedbapi.connection.Connection open"
    )


def test_failing_to_connect_shows_no_secret() -> None:
    with pytest.raises(lakedbapi.Error) as failed:
        lakedbapi.connect("ducklake+postgresql://nobody:hunter2@127.0.0.1:1/none").execute("SELECT * FROM t")
    assert "hunter2" not in str(failed.value) + repr(failed.value)


def test_adbc_names(items: Cursor) -> None:
    connection = items.connection
    assert (connection.adbc_current_catalog, connection.adbc_current_db_schema) == ("lake", "main")
    assert connection.adbc_get_table_schema("items").names == ["id", "name", "price"]
    assert connection.adbc_get_table_schema("items", catalog_filter="lake", db_schema_filter="main").names[0] == "id"
    assert connection.adbc_get_info()["driver_name"] == "lakedbapi"


def test_connecting_many_times_is_cheap(items: Cursor, connect: Connect) -> None:
    engine = cpu_seconds(lambda: duckdb.connect(":memory:").close(), 5)
    assert cpu_seconds(lambda: connect().close(), 100) < 4 * engine


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files where Linux lists them")
def test_connecting_many_times_leaves_nothing_open(items: Cursor, connect: Connect) -> None:
    connect().close()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        connect().close()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_threads_share_a_connection(items: Cursor) -> None:
    def work(number: int) -> list[int]:
        connection = items.connection
        return [connection.execute("SELECT count(*) + ? FROM items", (i,)).fetchall()[0][0] for i in range(20)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [[3 + i for i in range(20)]] * 8


def test_threads_with_connections_of_their_own(items: Cursor, connect: Connect) -> None:
    def work(number: int) -> int:
        with connect() as connection:
            return sum(count(connection) for _ in range(10))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [30] * 8


def test_interrupt_stops_a_running_query_and_leaves_the_connection_usable(items: Cursor) -> None:
    connection = items.connection
    items.execute("DELETE FROM items WHERE id = 1")
    with pytest.raises(OperationalError), interrupted(connection.interrupt):
        connection.execute(
            "SELECT count(*) FROM range(3000000) a, range(3000000) b WHERE a.range + b.range = -1"
        ).fetchall()
    assert count(connection) == 2


def test_attach_joins_two_lakes(items: Cursor, tmp_path: Path) -> None:
    with lakedbapi.connect(tmp_path / "second") as second:
        second.execute("CREATE TABLE stock AS SELECT 1 AS id, 7 AS amount")
    assert items.connection.attach(str(tmp_path / "second"), "store") == "store"
    rows = items.execute("SELECT name, amount FROM items JOIN store.stock USING (id)").fetchall()
    assert rows == [("apple", 7)]
    items.connection.detach("store")
    with pytest.raises(ProgrammingError):
        items.execute("SELECT * FROM store.stock")


def test_a_connection_without_a_catalog_gets_one_by_attach(items: Cursor, tmp_path: Path) -> None:
    with lakedbapi.connect() as connection:
        assert connection.attach(str(tmp_path / "shop")) == "shop"
        assert connection.adbc_current_catalog == "shop"
        assert count(connection) == 3


def test_a_connection_without_a_catalog_computes(items: Cursor, tmp_path: Path) -> None:
    with lakedbapi.connect("lake://") as connection:
        assert connection.catalogs == ()
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.attach(str(tmp_path / "shop"))
        assert count(connection) == 3
        connection.detach("shop")
        assert connection.execute("SELECT 2").fetchone() == (2,)
        with pytest.raises(ProgrammingError, match="no catalog"):
            connection.catalog_view()


def test_the_catalog_is_told_as_the_transaction_sees_it(items: Cursor) -> None:
    connection = items.connection
    assert (connection.current_catalog, connection.current_schema, connection.catalogs) == ("lake", "main", ("lake",))
    items.execute("ALTER TABLE items ADD COLUMN extra INTEGER")
    now = connection.catalog_view().table("main", "ITEMS")
    then = connection.catalog_view("lake", as_of=connection.catalog_view().snapshot.id).table("main", "items")
    assert now is not None
    assert then is not None
    assert now.schema.names == (*then.schema.names, "extra")


def test_attach_in_sql_needs_to_be_allowed(items: Cursor, tmp_path: Path) -> None:
    statement = f"ATTACH '{tmp_path / 'shop'}' AS mine (TYPE ducklake, READ_ONLY)"
    with lakedbapi.connect() as connection, pytest.raises(ProgrammingError, match="allow_attach=True"):
        connection.execute(statement)
    with lakedbapi.connect(allow_attach=True) as connection:
        connection.execute(statement)
        assert count(connection) == 3


def test_attached_catalogs_have_points_in_time_of_their_own(items: Cursor, tmp_path: Path) -> None:
    items.execute("INSERT INTO items (id) VALUES (4)")
    items.connection.commit()
    with lakedbapi.connect(tmp_path / "other", allow_attach=True) as connection:
        for alias, options in (
            ("old", "SNAPSHOT_VERSION 1"),
            ("now", "READ_ONLY"),
            ("late", "SNAPSHOT_TIME '2100-01-01'"),
        ):
            connection.execute(f"ATTACH '{tmp_path / 'shop'}' AS {alias} ({options})")
        rows = connection.execute(
            "SELECT (SELECT count(*) FROM old.items), (SELECT count(*) FROM now.items), 7"
        ).fetchall()
        assert rows == [(3, 4, 7)]
        assert connection.execute("SELECT count(*) FROM late.items").fetchone() == (4,)
        for alias, option in (("old", "SNAPSHOT_VERSION"), ("now", "READ_ONLY")):
            with pytest.raises(ProgrammingError, match=f"attached for reading.*{option}"):
                connection.execute(f"INSERT INTO {alias}.items (id) VALUES (5)")
            with pytest.raises(ProgrammingError, match="attached for reading"):
                connection.execute(f"CALL ducklake_merge_adjacent_files('{alias}')")
            with pytest.raises(ProgrammingError, match="attached for reading"):
                connection.execute(f"CALL {alias}.set_option('target_file_size', '1MB')")
        connection.execute("CREATE TABLE mine AS SELECT * FROM old.items")
        with pytest.raises(ProgrammingError, match="No snapshot found"):
            connection.execute(f"ATTACH '{tmp_path / 'shop'}' AS wrong (SNAPSHOT_VERSION 99)")


def test_a_schema_that_is_missing_is_named(items: Cursor, tmp_path: Path) -> None:
    with lakedbapi.connect(tmp_path / "shop", schema="nope") as connection:
        for statement in ("SELECT * FROM items", "DELETE FROM items", "CREATE TABLE t (i INTEGER)"):
            with pytest.raises(ProgrammingError, match=r"schema lake\.nope"):
                connection.execute(statement)
        connection.execute("CREATE SCHEMA nope")
        connection.execute("CREATE TABLE t (i INTEGER)")


def test_processes_write_one_lake_at_the_same_time(items: Cursor, tmp_path: Path) -> None:
    program = (
        "import lakedbapi\n"
        "for i in range(5):\n"
        "    with lakedbapi.connect('shop') as connection:\n"
        "        connection.execute('INSERT INTO items (id) VALUES (?)', (i,))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(lakedbapi.__file__).parents[1])}
    command = [sys.executable, "-c", program]
    writers = [subprocess.Popen(command, cwd=tmp_path, env=environment) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert count(items.connection) == 18


def test_options_alone_make_no_snapshot(items: Cursor, connect: Connect) -> None:
    before = items.connection.snapshot_id
    connect(autocommit=True).execute("INSERT INTO items (id) VALUES (9)")
    items.execute("ALTER TABLE items SET ('lake.write_mode' = 'copy-on-write')")
    items.connection.commit()
    assert items.connection.snapshot_id == before


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_connections_and_cursors_cannot_be_duplicated(cursor: Cursor, duplicate: Callable[[object], object]) -> None:
    for what in (cursor.connection, cursor):
        with pytest.raises(TypeError, match=f"cannot pickle or copy a {type(what).__name__}: "):
            duplicate(what)
    assert cursor.execute("SELECT 1").fetchall() == [(1,)]
