"""Tables that deltalake makes and changes are changed on by us, and the other way round: both see the same rows."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

import lakedbapi
from compliance.delta.readers import ALL, Readers, RefusedError, rows

CREATE = """
schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("d", pa.date32()), ("p", pa.string())])
data = pa.table({{
    "i": list(range({start}, {end})),
    "s": ["x%d" % i for i in range({start}, {end})],
    "d": [dt.date(2020, 1, 1)] * {count},
    "p": [["a b", "x=y", None][i % 3] for i in range({start}, {end})],
}}, schema=schema)
deltalake.write_deltalake("{path}", data, mode="append", partition_by={partition})
"""


MERGE = """
MERGE INTO t USING (SELECT {} AS i) u ON t.i = u.i WHEN MATCHED THEN DELETE
WHEN NOT MATCHED THEN INSERT VALUES (u.i, 'm', NULL, 'x=y')
"""


def theirs(chance: random.Random, path: Path, partition: str) -> tuple[str, str]:
    """A change by deltalake, and the same in SQL."""
    start, low = chance.randrange(500), chance.randrange(500)
    kind = chance.choice(["append", "delete", "update", "optimize"])
    if kind == "append":
        code = CREATE.format(path=path, start=start, end=start + 20, count=20, partition=partition)
        sql = (
            f"INSERT INTO t SELECT i, 'x' || i, DATE '2020-01-01', ['a b', 'x=y', NULL][i % 3 + 1] "
            f"FROM range({start}, {start + 20}) r(i)"
        )
        return code, sql
    if kind == "delete":
        return f"Table('{path}').delete('i % 10 = {low % 10}')", f"DELETE FROM t WHERE i % 10 = {low % 10}"
    if kind == "update":
        code = f"Table('{path}').update(predicate='i > {low}', updates={{'s': \"'theirs'\"}})"
        return code, f"UPDATE t SET s = 'theirs' WHERE i > {low}"
    return f"Table('{path}').optimize.compact()", "SELECT 1"


def ours(chance: random.Random) -> str:
    low = chance.randrange(500)
    return chance.choice(
        [
            f"DELETE FROM t WHERE i BETWEEN {low} AND {low + 20}",
            f"UPDATE t SET s = 'ours', p = 'a b' WHERE i % 17 = {low % 17}",
            f"INSERT INTO t SELECT i, 'o' || i, NULL, 'é' FROM range({low}, {low + 5}) r(i)",
            f"DELETE FROM t WHERE p IS NULL AND i < {low}",
            MERGE.format(low),
        ]
    )


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "rewriting"])
@pytest.mark.parametrize("partition", ["None", "['p']"], ids=["whole", "partitioned"])
def test_changes_by_turns(tmp_path: Path, readers: Readers, partition: str, vectors: bool) -> None:
    chance = random.Random(f"{partition}{vectors}")
    path = tmp_path / "t"
    readers.run(CREATE.format(path=path, start=0, end=300, count=300, partition=partition))
    with duckdb.connect() as twin, lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        twin.execute("CREATE TABLE t (i BIGINT, s VARCHAR, d DATE, p VARCHAR)")
        twin.execute(
            "INSERT INTO t SELECT i, 'x' || i, DATE '2020-01-01', ['a b', 'x=y', NULL][i % 3 + 1] FROM range(300) r(i)"
        )
        if vectors:
            connection.execute("ALTER TABLE t SET ('delta.enableDeletionVectors' = 'true')")
        for _ in range(12):
            sql = ours(chance)
            connection.execute(sql)
            twin.execute(sql).fetchall()
            _same(path, readers, twin, connection, sql)
            code, sql = theirs(chance, path, partition)
            readers.run(code)
            twin.execute(sql).fetchall()
            _same(path, readers, twin, connection, code)


def _same(
    path: Path, readers: Readers, twin: duckdb.DuckDBPyConnection, connection: lakedbapi.Connection, done: str
) -> None:
    expected = rows(twin.sql("FROM t").to_arrow_table())
    found = rows(connection.execute("SELECT i, s, d, p FROM t").fetch_arrow_table())
    assert found == expected, done
    read = readers.read(path)
    for name in ALL:
        assert read[name] == expected, (name, done)


def test_a_check_of_theirs_holds_for_us(tmp_path: Path, readers: Readers) -> None:
    path = tmp_path / "t"
    readers.run(CREATE.format(path=path, start=1, end=20, count=19, partition="None"))
    readers.run(f"Table('{path}').alter.add_constraint({{'positive': 'i > 0'}})")
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        connection.execute("INSERT INTO t (i) VALUES (5)")
        with pytest.raises(lakedbapi.IntegrityError, match="positive"):
            connection.execute("UPDATE t SET i = -1 WHERE i = 5")
        connection.execute("ALTER TABLE t ADD CONSTRAINT small CHECK (i < 1000)")
    with pytest.raises(RefusedError, match="validation check"):
        readers.run(CREATE.format(path=path, start=2000, end=2001, count=1, partition="None"))


def test_a_stale_writer_of_theirs_meets_a_conflict(tmp_path: Path, readers: Readers) -> None:
    """Rows that we deleted do not come back when deltalake rewrites their file."""
    path = tmp_path / "t"
    readers.run(CREATE.format(path=path, start=0, end=100, count=100, partition="None"))
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        connection.execute("ALTER TABLE t SET ('delta.enableDeletionVectors' = 'true')")
        connection.execute("DELETE FROM t WHERE i = 5")
        try:
            readers.run(f"t = Table('{path}', version=0)\nt.delete('i = 6')")
        except RefusedError:
            return
        count = connection.execute("SELECT count(*), count(DISTINCT i) FROM t").fetchone()
        assert count == (98, 98)
