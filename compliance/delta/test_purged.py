"""Other programs after a PURGE: the same rows, errors for what was before, conflicts for writers that are behind."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakedbapi
from compliance.delta.readers import ALL, Readers, RefusedError, rows

SECRET = "joe@example.org"


def fill(connection: lakedbapi.Connection, partitioning: str = "", vectors: str = "true") -> None:
    connection.execute(
        f"CREATE TABLE t (id BIGINT, mail VARCHAR){partitioning} WITH ('delta.enableDeletionVectors' = '{vectors}', "
        "'delta.enableChangeDataFeed' = 'true', 'delta.parquet.compression.codec' = 'uncompressed')"
    )
    connection.execute(f"INSERT INTO t SELECT i, if(i % 10 = 3, '{SECRET}', 'm' || i % 3) FROM range(30) r(i)")
    connection.execute("DELETE FROM t WHERE id IN (3, 4)")
    connection.execute("INSERT INTO t VALUES (100, 'zz')")


@pytest.mark.parametrize("partitioning", ["", " PARTITIONED BY (mail)"], ids=["whole", "partitioned"])
def test_all_readers_see_what_is_left(tmp_path: Path, readers: Readers, partitioning: str) -> None:
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        fill(connection, partitioning)
        connection.execute(f"PURGE FROM t WHERE mail = '{SECRET}'")
        for id in (200, 201):
            expected = rows(connection.execute("SELECT * FROM t").fetch_arrow_table())
            found = readers.read(tmp_path / "t")
            for name in ALL:
                assert found[name] == expected, name
            connection.execute("INSERT INTO t VALUES (?, 'new')", [id])
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_deltalake_goes_on(tmp_path: Path, readers: Readers) -> None:
    path = tmp_path / "t"
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        fill(connection, vectors="false")
        connection.execute(f"PURGE FROM t WHERE mail = '{SECRET}'")
        readers.run(f"Table('{path}').delete('id = 0')")
        readers.run(
            f"deltalake.write_deltalake('{path}', pa.table({{'id': pa.array([7000]), 'mail': ['x']}}), mode='append')"
        )
        for code in ("create_checkpoint()", "cleanup_metadata()", "optimize.compact()", "history()"):
            readers.run(f"Table('{path}').{code}")
        left = {*range(30), 100, 7000} - {0, 3, 4, 13, 23}
        assert {id for (id,) in connection.execute("SELECT id FROM t").fetchall()} == left
        found = readers.read(path)
        assert all(len(found[name]) == len(left) for name in ALL)


@pytest.mark.parametrize(
    "code",
    [
        "Table('{path}', version=2)",
        "Table('{path}', version=1).to_pyarrow_table()",
        "Table('{path}').restore(2)",
        "Table('{path}').load_cdf(starting_version=1).read_all()",
        "duckdb_with_delta().execute(\"SELECT * FROM delta_scan('{path}', version => 2)\").fetchall()",
    ],
)
def test_what_was_before_is_an_error(tmp_path: Path, readers: Readers, code: str) -> None:
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        fill(connection, vectors="false")
        connection.execute(f"PURGE FROM t WHERE mail = '{SECRET}'")
    with pytest.raises(RefusedError):
        readers.run(code.format(path=tmp_path / "t"))


@pytest.mark.parametrize("change", ["delete('id = 100')", "update(updates={'mail': \"'u'\"}, predicate='id = 100')"])
def test_a_writer_that_is_behind_gets_a_conflict(tmp_path: Path, readers: Readers, change: str) -> None:
    path = tmp_path / "t"
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        fill(connection, vectors="false")
        readers.run(f"import builtins; builtins.behind = Table('{path}')")
        connection.execute(f"PURGE FROM t WHERE mail = '{SECRET}'")
        expected = connection.execute("SELECT * FROM t ORDER BY id").fetchall()
        with pytest.raises(RefusedError, match=r"(?i)metadata changed|conflict"):
            readers.run(f"import builtins; builtins.behind.{change}")
        assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == expected
        readers.run(f"Table('{path}').{change}")
        assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() != expected
