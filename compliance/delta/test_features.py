"""Other readers see the same rows in tables with features of writers, also where only a checkpoint tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakedbapi
from compliance.delta.readers import ALL, Readers, rows

TABLES = {
    "identity": "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY -3), i BIGINT, "
    "s VARCHAR)",
    "generated": "CREATE TABLE t (i BIGINT, s VARCHAR, g VARCHAR GENERATED ALWAYS AS (substring(s, 1, 2))) "
    "PARTITIONED BY (g)",
    "checked": """CREATE TABLE t (i BIGINT, s VARCHAR, CHECK ("i" >= 0 AND s <> 'it''s'))""",
    "clustered": "CREATE TABLE t (i BIGINT, s VARCHAR) CLUSTER BY (s, i)",
    "tracked": "CREATE TABLE t (i BIGINT, s VARCHAR) WITH ('delta.enableRowTracking' = 'true')",
    "rewritten": "CREATE TABLE t (i BIGINT, s VARCHAR) WITH ('delta.enableRowTracking' = 'true', "
    "'delta.enableDeletionVectors' = 'false')",
    "structs": "CREATE TABLE t (i BIGINT, s VARCHAR) WITH ('delta.checkpoint.writeStatsAsStruct' = 'true', "
    "'delta.checkpoint.writeStatsAsJson' = 'false')",
    "both": "CREATE TABLE t (i BIGINT, s VARCHAR) PARTITIONED BY (s) "
    "WITH ('delta.checkpoint.writeStatsAsStruct' = 'true')",
}
STEPS = (
    "INSERT INTO t (i, s) SELECT r.i, chr(97 + r.i::INTEGER % 5) || 'xyz' FROM range(40) r(i)",
    "UPDATE t SET s = 'new' WHERE i % 7 = 1",
    "DELETE FROM t WHERE i % 10 = 3",
    "ALTER TABLE t SET ('delta.enableRowTracking' = 'true')",
    """MERGE INTO t USING (VALUES (5, 'merged'), (100, 'fresh')) u(i, s) ON t.i = u.i
    WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT (i, s) VALUES (u.i, u.s)""",
    "OPTIMIZE t",
    "INSERT INTO t (i, s) VALUES (200, 'last')",
)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_all_readers_see_the_same(name: str, tmp_path: Path, readers: Readers) -> None:
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        connection.execute(TABLES[name])
        for sql in STEPS:
            connection.execute(sql)
            expected = rows(connection.execute("SELECT * FROM t").fetch_arrow_table())
            found = readers.read(tmp_path / "t")
            for reader in ALL:
                assert found[reader] == expected, (reader, sql)
        connection.execute("CHECKPOINT t")
    for path in (tmp_path / "t" / "_delta_log").glob("[0-9]*.json"):
        path.unlink()
    found = readers.read(tmp_path / "t")
    for reader in ALL:
        assert found[reader] == expected, reader


def test_deltalake_finds_rows_by_structs(tmp_path: Path, readers: Readers) -> None:
    """Its scan goes by the typed statistics that were written here."""
    with lakedbapi.connect(f"delta:///{tmp_path}", autocommit=True) as connection:
        connection.execute(TABLES["structs"])
        connection.execute(STEPS[0])
        connection.execute("CHECKPOINT t")
    count = f"deltalake.QueryBuilder().register('t', Table('{tmp_path / 't'}')).execute('select i from t where i = 39')"
    assert readers.run(f"result = pa.table({count}).num_rows") == 1
