"""Partition values mean the same to both programs, whatever the column's type is and was."""

from __future__ import annotations

import pytest

from compliance.ducklake.lakes import Program, Shared

VALUES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), ("34", "-1")),
    "UTINYINT": ("34", "255"),
    "USMALLINT": ("34", "65535"),
    "UINTEGER": ("34", "4000000000"),
    "UBIGINT": ("34", "18446744073709551615"),
    "UHUGEINT": ("34", "4000000000"),
    "BOOLEAN": ("true", "false"),
    "FLOAT": ("1.5", "-0.0"),
    "DOUBLE": ("1.5", "-0.0"),
    "DECIMAL(4,2)": ("14.20", "-0.01"),
    "DECIMAL(18,2)": ("14.20", "-0.01"),
    "DECIMAL(38,2)": ("14.20", "-0.01"),
    "DATE": ("'2017-11-16'", "'1969-12-31'"),
    "TIME": ("'01:02:03'", "'00:00:00.5'"),
    "TIMESTAMP": ("'2017-11-16 22:31:08.5'", "'1969-12-31 23:59:59'"),
    "TIMESTAMP_S": ("'2017-11-16 22:31:08'", "'1969-12-31 23:59:59'"),
    "TIMESTAMP_MS": ("'2017-11-16 22:31:08.5'", "'1969-12-31 23:59:59.5'"),
    "TIMESTAMP_NS": ("'2017-11-16 22:31:08.123456789'", "'1969-12-31 23:59:59.5'"),
    "TIMESTAMPTZ": ("'2017-11-16 22:31:08+00'", "'1969-12-31 23:59:59+00'"),
    "VARCHAR": ("'iceberg'", "''"),
    "JSON": ("'{}'", "'[1]'"),
    "BLOB": ("'iceberg'::BLOB", "''::BLOB"),
    "UUID": ("'f79c3e09-677c-4bbd-a479-3f349cb785e7'", "'00000000-0000-0000-0000-000000000000'"),
}
"""Two values of each type that can be in buckets."""

CHANGES = (
    ("bucket(1000, v)", "INTEGER", "DOUBLE", "34"),
    ("bucket(1000, v)", "DATE", "TIMESTAMP", "'2017-11-16'"),
    ("bucket(1000, v)", "UINTEGER", "BIGINT", "34"),
    ("bucket(1000, v)", "UTINYINT", "UINTEGER", "34"),
    ("bucket(1000, v)", "TIMESTAMP", "TIMESTAMP_NS", "'2017-11-16 22:31:08'"),
    ("bucket(1000, v)", "DECIMAL(10,2)", "DECIMAL(30,2)", "14.20"),
    ("bucket(1000, v)", "INTEGER", "BIGINT", "34"),
    ("v", "FLOAT", "DOUBLE", "CAST(0.1 AS FLOAT)"),
    ("v", "INTEGER", "BIGINT", "34"),
    ("v", "DATE", "TIMESTAMP", "'2017-11-16'"),
    ("year(v), month(v)", "DATE", "TIMESTAMP", "'2017-11-16'"),
)
"""Key, type, wider type, value."""

pytestmark = pytest.mark.parametrize("shared", ["sqlite-files"], indirect=True)


def counts(program: Program, condition: str) -> int:
    return int(program.value(f"SELECT count(*) FROM t WHERE {condition}"))


def test_each_finds_what_the_other_put_into_buckets(shared: Shared) -> None:
    for type, values in VALUES.items():
        shared.theirs.execute(f"CREATE OR REPLACE TABLE t (v {type})")
        shared.theirs.execute("ALTER TABLE t SET PARTITIONED BY (bucket(1000, v))")
        for program in shared.both:
            program.execute(f"INSERT INTO t SELECT unnest([{values[0]}, {values[1]}, NULL]::{type}[]) FROM range(20)")
        files = shared.ours.value("SELECT count(DISTINCT partition_id) FROM files('t')")
        assert files == 1, type
        for program in shared.both:
            for value in values:
                assert counts(program, f"v = {value}") == 40, (program.name, type, value)
            assert counts(program, "v IS NULL") == 40, (program.name, type)


@pytest.mark.parametrize("compacted", [False, True], ids=["written", "rewritten"])
def test_values_of_a_column_that_was_widened_are_found(shared: Shared, compacted: bool) -> None:
    for keys, type, wider, value in CHANGES:
        shared.theirs.execute(f"CREATE OR REPLACE TABLE t (v {type})")
        shared.theirs.execute(f"ALTER TABLE t SET PARTITIONED BY ({keys})")
        shared.theirs.execute(f"INSERT INTO t SELECT {value} FROM range(20)")
        shared.theirs.execute(f"ALTER TABLE t ALTER v TYPE {wider}")
        if compacted:
            shared.ours.execute("DELETE FROM t WHERE rowid < 5")
            shared.ours.execute("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)")
        shared.theirs.execute(f"INSERT INTO t SELECT {value} FROM range(20)")
        assert counts(shared.ours, f"v = {value}") == (35 if compacted else 40), (keys, type)
