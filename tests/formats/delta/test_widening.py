"""Types are widened as far as the protocol lets them be, and no further (protocol, "Type Widening")."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakedbapi
from lakedbapi.errors import NotSupportedError
from tests.formats.delta.committed import rows, values
from tests.formats.delta.conftest import Connect

VALUES = {
    "TINYINT": ("-128", "127"),
    "SMALLINT": ("-32768", "32767"),
    "INTEGER": ("-2147483648", "2147483647"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807"),
    "FLOAT": ("-1.5", "2.5"),
    "DOUBLE": ("-1.1", "2.2"),
    "DECIMAL(5,2)": ("-999.99", "12.34"),
    "DECIMAL(9,2)": ("-1234567.89", "12.34"),
    "DECIMAL(9,4)": ("-12345.6789", "12.3456"),
    "DECIMAL(10,0)": ("-9999999999", "12"),
    "DECIMAL(12,2)": ("-9999999999.99", "12.34"),
    "DECIMAL(20,0)": ("-99999999999999999999", "12"),
    "DECIMAL(38,4)": ("-123456789012345678901234567890.1234", "12.3456"),
    "DATE": ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    "TIMESTAMP": ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
    "TIMESTAMPTZ": ("TIMESTAMPTZ '2020-01-01 00:00:00+00'", "TIMESTAMPTZ '2020-01-02 00:00:00+00'"),
    "VARCHAR": ("'a'", "'b'"),
    "BOOLEAN": ("false", "true"),
}
WIDER = {
    "TINYINT": "SMALLINT INTEGER BIGINT DOUBLE DECIMAL(10,0) DECIMAL(12,2) DECIMAL(20,0) DECIMAL(38,4)",
    "SMALLINT": "INTEGER BIGINT DOUBLE DECIMAL(10,0) DECIMAL(12,2) DECIMAL(20,0) DECIMAL(38,4)",
    "INTEGER": "BIGINT DOUBLE DECIMAL(10,0) DECIMAL(12,2) DECIMAL(20,0) DECIMAL(38,4)",
    "BIGINT": "DECIMAL(20,0) DECIMAL(38,4)",
    "FLOAT": "DOUBLE",
    "DECIMAL(5,2)": "DECIMAL(9,2) DECIMAL(9,4) DECIMAL(12,2) DECIMAL(38,4)",
    "DECIMAL(9,2)": "DECIMAL(12,2) DECIMAL(38,4)",
    "DECIMAL(9,4)": "DECIMAL(38,4)",
    "DECIMAL(10,0)": "DECIMAL(12,2) DECIMAL(20,0) DECIMAL(38,4)",
    "DECIMAL(12,2)": "DECIMAL(38,4)",
    "DECIMAL(20,0)": "DECIMAL(38,4)",
    "DATE": "TIMESTAMP",
}
PAIRS = [(old, new) for old, wider in WIDER.items() for new in wider.split()]


@pytest.fixture
def lake(tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    return connect(tmp_path, autocommit=True)


def make(lake: lakedbapi.Connection, type: str) -> None:
    """A table with two files, whose `x` is the least and the greatest value, and partitioned by such a column."""
    lake.execute(
        f"CREATE TABLE t (k INTEGER, x {type}, p {type}) PARTITIONED BY (p) WITH ('delta.enableTypeWidening' = 'true')"
    )
    for number, value in enumerate(VALUES[type]):
        lake.execute(f"INSERT INTO t SELECT i, {value}, {value} FROM range({number}, {number + 5}) r(i)")


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_column_is_widened(lake: lakedbapi.Connection, old: str, new: str) -> None:
    make(lake, old)
    expected = rows(lake, f"SELECT k, CAST(x AS {new}), CAST(p AS {new}) FROM t ORDER BY ALL")
    for column in "xp":
        lake.execute(f"ALTER TABLE t ALTER COLUMN {column} TYPE {new}")
    assert rows(lake, "SELECT * FROM t ORDER BY ALL") == expected
    least, greatest = (f"CAST({value} AS {new})" for value in VALUES[old])
    for column in "xp":
        assert values(lake, f"SELECT count(*) FROM t WHERE {column} = {least}") == [5]
        assert values(lake, f"SELECT count(*) FROM t WHERE {column} > {least} AND {column} <= {greatest}") == [5]
    lake.execute(f"INSERT INTO t VALUES (100, {VALUES[new][0]}, {greatest})")
    assert lake.execute(f"UPDATE t SET k = k + 1 WHERE p = {least} AND k % 2 = 0").rowcount == 3
    assert lake.execute(f"DELETE FROM t WHERE p = {greatest} AND x = {greatest}").rowcount == 5
    lake.execute("OPTIMIZE t")
    assert values(lake, "SELECT k FROM t ORDER BY k") == [1, 1, 3, 3, 5, 100]
    assert values(lake, f"SELECT count(*) FROM t WHERE x = {least}")[0] >= 5


@pytest.mark.parametrize("old", sorted(VALUES))
def test_no_column_is_changed_otherwise(lake: lakedbapi.Connection, old: str) -> None:
    lake.execute(f"CREATE TABLE t (x {old}) WITH ('delta.enableTypeWidening' = 'true')")
    for new in sorted({*VALUES} - {old, *WIDER.get(old, "").split()}):
        with pytest.raises(NotSupportedError, match="cannot be changed"):
            lake.execute(f"ALTER TABLE t ALTER COLUMN x TYPE {new}")
