"""Other readers see the same rows after OPTIMIZE, REORG, VACUUM and CHECKPOINT, and go on to write."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import lakedbapi
from compliance.delta.readers import ALL, Readers, rows
from compliance.delta.test_random_steps import COLUMNS, some_rows, step

WORK = (
    "OPTIMIZE t",
    "OPTIMIZE t WHERE p IS NULL",
    "OPTIMIZE t ZORDER BY (i, s)",
    "REORG TABLE t APPLY (PURGE)",
    "VACUUM t RETAIN 0 HOURS",
    "CHECKPOINT t",
)


@pytest.mark.parametrize("partitioning", ["", " PARTITIONED BY (p)"], ids=["whole", "partitioned"])
@pytest.mark.parametrize("vectors", ["true", "false"], ids=["vectors", "rewriting"])
def test_all_readers_see_the_same_after_each_step(
    tmp_path: Path, readers: Readers, partitioning: str, vectors: str
) -> None:
    chance = random.Random(f"maintained{partitioning}{vectors}")
    properties = (
        f"'delta.enableDeletionVectors' = '{vectors}', 'delta.deletedFileRetentionDuration' = 'interval 0 seconds'"
    )
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        connection.execute(f"CREATE TABLE t ({COLUMNS}){partitioning} WITH ({properties})")
        for sql in chance.sample(WORK * 2, 2 * len(WORK)):
            for _ in range(3):
                connection.execute(f"INSERT INTO t {some_rows(chance)}")
                connection.execute(step(chance))
            before = rows(connection.execute("SELECT * FROM t").fetch_arrow_table())
            connection.execute(sql)
            assert rows(connection.execute("SELECT * FROM t").fetch_arrow_table()) == before, sql
            found = readers.read(tmp_path / "t")
            for name in ALL:
                assert found[name] == before, (name, sql)


def test_deltalake_goes_on_after_each_step(tmp_path: Path, readers: Readers) -> None:
    path = tmp_path / "t"
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        connection.execute("CREATE TABLE t (i BIGINT, s VARCHAR)")
        connection.execute("ALTER TABLE t SET ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')")
        for start in range(0, 100, 20):
            connection.execute(f"INSERT INTO t SELECT i, 'x' FROM range({start}, {start + 20}) r(i)")
        expected = set(range(100))
        for number, sql in enumerate(("OPTIMIZE t", "VACUUM t", "CHECKPOINT t", "REORG TABLE t APPLY (PURGE)")):
            connection.execute("DELETE FROM t WHERE i = ?", [number])
            connection.execute(sql)
            readers.run(f"Table('{path}').delete('i = {50 + number}')")
            new = f"pa.table({{'i': pa.array([{200 + number}], pa.int64()), 's': ['new']}})"
            readers.run(f"deltalake.write_deltalake('{path}', {new}, mode='append')")
            expected = (expected | {200 + number}) - {number, 50 + number}
            found = [i for (i,) in connection.execute("SELECT i FROM t ORDER BY i").fetchall()]
            assert found == sorted(expected), sql
        readers.run(f"Table('{path}').optimize.compact()")
        readers.run(f"Table('{path}').vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)")
        assert connection.execute("SELECT count(*), sum(i) FROM t").fetchone() == (len(expected), sum(expected))


def test_a_table_of_theirs_is_maintained(written: Path, tmp_path: Path, readers: Readers) -> None:
    """Its log has checkpoints, and partition values that are spelled in other ways."""
    for name in ("appends", "partitions", "evolution", "row_changes", "types"):
        shutil.copytree(written / "tables" / name, tmp_path / name)
        path = tmp_path / name
        with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
            before = rows(connection.execute(f"SELECT * FROM {name}").fetch_arrow_table())
            for sql in ("OPTIMIZE {0}", "VACUUM {0}", "CHECKPOINT {0}", "REORG TABLE {0} APPLY (PURGE)"):
                connection.execute(sql.format(name))
            assert rows(connection.execute(f"SELECT * FROM {name}").fetch_arrow_table()) == before
        found = readers.read(path)
        assert found["deltalake"] == before, name
