"""Transactions, isolation levels, pools and threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy
from sqlalchemy import exc, text
from sqlalchemy.engine import Engine
from sqlalchemy.pool import NullPool

from tests.effort import interrupted

OLD = sqlalchemy.__version__.startswith("1.4")


@pytest.fixture(autouse=True)
def table(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE t AS SELECT range AS a FROM range(10)"))


def count(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM t")).scalar())


def test_commit_and_rollback_of_nothing_are_free(engine: Engine) -> None:
    raw = engine.raw_connection()
    raw.rollback()
    raw.rollback()
    raw.commit()
    raw.close()
    raw.close()


def test_an_error_leaves_the_transaction_usable(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO t VALUES (10)"))
        with pytest.raises(exc.ProgrammingError, match="nowhere"):
            connection.execute(text("SELECT * FROM nowhere"))
        assert connection.execute(text("SELECT count(*) FROM t")).scalar() == 11
        connection.execute(text("INSERT INTO t VALUES (11)"))
    assert count(engine) == 12


def test_ddl_is_part_of_the_transaction(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE u (a INTEGER)"))
        connection.execute(text("INSERT INTO u VALUES (1)"))
        connection.rollback()
        with pytest.raises(exc.ProgrammingError):
            connection.execute(text("SELECT * FROM u"))


def test_a_conflict_is_an_operational_error_after_which_the_work_can_be_repeated(engine: Engine) -> None:
    with engine.connect() as first, engine.connect() as second:
        first.execute(text("UPDATE t SET a = 100 WHERE a = 1"))
        second.execute(text("UPDATE t SET a = 200 WHERE a = 1"))
        first.commit()
        with pytest.raises(exc.OperationalError) as caught:
            second.commit()
        assert caught.value.orig.retryable
        second.rollback()
        second.execute(text("UPDATE t SET a = 200 WHERE a = 100"))
        second.commit()
        assert not second.invalidated
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM t WHERE a = 200")).scalar() == 1


def test_savepoints_nest(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM t WHERE a = 1"))
        with connection.begin_nested() as outer:
            connection.execute(text("DELETE FROM t WHERE a = 2"))
            with connection.begin_nested() as inner:
                connection.execute(text("DELETE FROM t"))
                inner.rollback()
            assert connection.execute(text("SELECT count(*) FROM t")).scalar() == 8
            outer.rollback()
    assert count(engine) == 9


def test_autocommit_commits_each_statement(engine: Engine) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        assert connection.get_isolation_level() == "AUTOCOMMIT"
        connection.execute(text("DELETE FROM t WHERE a < 5"))
        connection.rollback()
    assert count(engine) == 5
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "SNAPSHOT"


def test_an_unknown_isolation_level_is_refused(engine: Engine) -> None:
    with engine.connect() as connection, pytest.raises(exc.ArgumentError, match="SNAPSHOT, AUTOCOMMIT"):
        connection.execution_options(isolation_level="SERIALIZABLE")


@pytest.mark.skipif(OLD, reason="SQLAlchemy 1.4 has no such option")
def test_the_rollback_of_autocommit_connections_can_be_skipped(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine(isolation_level="AUTOCOMMIT", skip_autocommit_rollback=True)
    with engine.connect() as connection:
        connection.execute(text("DELETE FROM t"))
    assert count(engine) == 0


@pytest.mark.skipif(not OLD, reason="only SQLAlchemy 1.4 commits by itself")
def test_engines_without_future_commit_merge_by_themselves(engine: Engine) -> None:
    legacy = sqlalchemy.create_engine(engine.url)
    merge = "MERGE INTO t USING (SELECT 3 AS a) AS s ON t.a = s.a WHEN MATCHED THEN DELETE"
    with legacy.connect() as connection:
        connection.execute(text(merge))
    assert count(engine) == 9


def test_threads_share_an_engine(engine: Engine) -> None:
    def read(number: int) -> list[int]:
        counts = []
        for _ in range(50):
            with engine.connect() as connection:
                counts.append(connection.execute(text("SELECT count(*) FROM t WHERE a >= :a"), {"a": number}).scalar())
        return counts

    with ThreadPoolExecutor(8) as pool:
        for number, counts in enumerate(pool.map(read, range(8))):
            assert counts == [10 - number] * 50


def test_a_connection_closes_with_open_results(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine(poolclass=NullPool)
    for _ in range(20):
        connection = engine.connect()
        connection.execution_options(stream_results=True).execute(text("SELECT * FROM range(1000000)")).fetchone()
        connection.close()


def test_a_running_statement_can_be_cancelled_and_the_connection_goes_on(engine: Engine) -> None:
    with engine.connect() as connection:
        driver = getattr(connection.connection, "dbapi_connection", connection.connection)
        with pytest.raises(exc.OperationalError), interrupted(driver.interrupt):
            connection.execute(text("SELECT sum(a.range * b.range) FROM range(3000000) a, range(3000000) b")).scalar()
        connection.rollback()
        assert connection.execute(text("SELECT count(*) FROM t")).scalar() == 10


def test_two_processes_read_one_lake(engine: Engine) -> None:
    import subprocess
    import sys

    program = (
        "import lakedbapi, sys\n"
        "with lakedbapi.connect(sys.argv[1]) as c: print(c.execute('SELECT count(*) FROM t').fetchone()[0])"
    )
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM t")).scalar() == 10
        found = subprocess.run(
            [sys.executable, "-c", program, engine.url.database], capture_output=True, text=True, check=True
        )
    assert found.stdout.strip() == "10"
