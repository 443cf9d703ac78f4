"""What PostgreSQL, MySQL and Spark call otherwise means the same on every kind of table."""

from __future__ import annotations

import pytest

import lakedbapi
from tests.formats.lake import Lake


def test_lists_are_asked_for_as_elsewhere(lake: Lake) -> None:
    lake.create("CREATE TABLE t (id INTEGER)")
    lake.create("CREATE TABLE t_2 (id INTEGER)")
    assert lake("SHOW TABLES IN main") == lake("SHOW TABLES FROM lake.main") == [("t",), ("t_2",)]
    assert lake("SHOW TABLES LIKE 't__'") == lake("SHOW TABLES IN main 'T*2'") == [("t_2",)]
    assert lake("SHOW COLUMNS FROM t") == lake("SHOW FIELDS IN main.t") == lake("DESCRIBE t")
    assert lake("SHOW NAMESPACES LIKE 'mai%'") == lake("SHOW SCHEMAS LIKE 'main'") == [("lake", "main", True)]
    assert lake("SHOW CATALOGS") == lake("SHOW DATABASES LIKE 'l%'") == [("lake",)]
    assert dict(lake("SHOW TBLPROPERTIES t")).items() >= lake.kind.properties.items()


def test_the_format_of_a_new_table_is_that_of_its_catalog(lake: Lake) -> None:
    lake(f"CREATE TABLE t (id INTEGER) USING {lake.kind.format.upper()} {lake.kind.options()}")
    assert lake("SELECT * FROM t") == []
    message = f"USING parquet: tables in lake are of format {lake.kind.format}"
    with pytest.raises(lakedbapi.NotSupportedError, match=message):
        lake("CREATE TABLE u (id INTEGER) USING parquet")


def test_types_are_spelled_as_in_spark(lake: Lake) -> None:
    lake.create(
        "CREATE TABLE t (id BIGINT, a ARRAY<STRING>, m MAP<STRING, ARRAY<INT>>, "
        "s STRUCT<x: INT, y: MAP<STRING, INT>>, n TIMESTAMP_NTZ, z TIMESTAMP_LTZ)"
    )
    types = [row[1] for row in lake("DESCRIBE t")]
    assert types == [
        "BIGINT",
        "VARCHAR[]",
        "MAP(VARCHAR, INTEGER[])",
        'STRUCT("x" INTEGER, "y" MAP(VARCHAR, INTEGER))',
        "TIMESTAMP",
        "TIMESTAMP WITH TIME ZONE",
    ]
    lake("ALTER TABLE t ADD COLUMNS (b ARRAY<INT>, c MAP<STRING, INT> COMMENT 'x')")
    assert lake("INSERT INTO t (id, b, c) VALUES (1, [2], MAP {'k': 3})") == 1
    assert lake("SELECT b, c['k'] FROM t") == [([2], 3)]


def test_several_columns_are_dropped_at_once(lake: Lake) -> None:
    lake.create("CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER)", **lake.kind.evolution)
    lake("ALTER TABLE t DROP COLUMNS (a, c)")
    assert [row[0] for row in lake("DESCRIBE t")] == ["b"]


def test_a_serial_column_counts_where_columns_can(lake: Lake) -> None:
    sql = f"CREATE TABLE t (id BIGSERIAL PRIMARY KEY, v VARCHAR) {lake.kind.options()}"
    if lake.kind.format == "iceberg":
        with pytest.raises(lakedbapi.NotSupportedError, match="has no identity columns"):
            lake(sql)
        return
    lake(sql)
    assert lake("INSERT INTO t (v) VALUES ('a'), ('b') RETURNING id") == [(1,), (2,)]
    assert lake("INSERT INTO t VALUES (7, 'c')") == 1


def test_a_table_that_mysql_shows_is_made(lake: Lake) -> None:
    lake.create(
        "CREATE TABLE `t` (`id` int(11) NOT NULL, `flag` tinyint(1) DEFAULT NULL, `n` mediumint(8), `v` longtext, "
        "`at` datetime(6), PRIMARY KEY (`id`), UNIQUE KEY `uk` (`n`)) COMMENT='things'"
    )
    assert lake("INSERT INTO t VALUES (1, 1, 8388607, 'x', '2026-01-01 00:00:00.123456')") == 1
    narrow = "TINYINT" if lake.kind.format != "iceberg" else "INTEGER"
    assert [row[1] for row in lake("DESCRIBE t")] == ["INTEGER", narrow, "INTEGER", "VARCHAR", "TIMESTAMP"]


def test_keys_that_nothing_enforces_may_say_so(lake: Lake) -> None:
    lake.create("CREATE TABLE u (id INTEGER, PRIMARY KEY (id) NOT ENFORCED)")
    lake.create("CREATE TABLE t (id INTEGER REFERENCES u (id) DEFERRABLE INITIALLY DEFERRED)")
    assert lake("INSERT INTO t VALUES (1), (1)") == 2


def test_merge_may_leave_out_into(lake: Lake) -> None:
    lake.create("CREATE TABLE t (id INTEGER)")
    assert lake("MERGE t USING (SELECT 1 AS k) s ON id = k WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (k)") == 1


def test_partitions_are_named_as_in_bigquery(lake: Lake) -> None:
    for number, key in enumerate(("DATE(ts)", "TIMESTAMP_TRUNC(ts, MONTH)", "date_trunc('month', ts)")):
        if lake.kind.format == "delta":
            with pytest.raises(lakedbapi.NotSupportedError, match=r"partition"):
                lake(f"CREATE TABLE t{number} (ts TIMESTAMP) PARTITION BY {key}")
            continue
        lake.create(f"CREATE TABLE t{number} (ts TIMESTAMP) PARTITION BY {key}")
        assert f"{'month' if number else 'day'}(ts)" in lake(f"SHOW CREATE TABLE t{number}")[0][0].replace('"', "")
    with pytest.raises(lakedbapi.ProgrammingError, match="put the type of day into the list of columns"):
        lake("CREATE TABLE u (id INTEGER) PARTITIONED BY (day VARCHAR)")
