"""Values: SQL to Python, and Python to SQL and back."""

from __future__ import annotations

import datetime as dt
import enum
import math
import os
import subprocess
import sys
import uuid
from array import array
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import lakedbapi
from lakedbapi import Cursor, DataError
from tests.engines import needs_duckdb_2

UTC = dt.timezone.utc
ID = uuid.UUID("6f8fb1f3-9d4d-4d5c-8c2d-0a1b2c3d4e5f")


def value_of(cursor: Cursor, expression: str) -> Any:
    row = cursor.execute(f"SELECT {expression}").fetchone()
    assert row is not None
    return row[0]


SQL_VALUES = [
    ("TRUE", True),
    ("255::UTINYINT", 255),
    ("(-128)::TINYINT", -128),
    ("18446744073709551615::UBIGINT", 2**64 - 1),
    ("170141183460469231731687303715884105727::HUGEINT", 2**127 - 1),
    ("(-170141183460469231731687303715884105727)::HUGEINT", -(2**127) + 1),
    ("(-1)::HUGEINT", -1),
    ("340282366920938463463374607431768211455::UHUGEINT", 2**128 - 1),
    ("1.5::FLOAT", 1.5),
    ("0.1::DOUBLE", 0.1),
    ("'inf'::DOUBLE", math.inf),
    ("1.50::DECIMAL(9,2)", Decimal("1.50")),
    ("(-0.001)::DECIMAL(38,20)", Decimal("-0.00100000000000000000")),
    ("'naïve ☃'", "naïve ☃"),
    ("''", ""),
    ("'\\xAA\\x00'::BLOB", b"\xaa\x00"),
    (f"'{ID}'::UUID", ID),
    ("'101'::BIT", "101"),
    ("'{\"a\": 1}'::JSON", '{"a": 1}'),
    ("DATE '2026-02-28'", dt.date(2026, 2, 28)),
    ("DATE '0001-01-01'", dt.date.min),
    ("TIME '01:02:03.000004'", dt.time(1, 2, 3, 4)),
    ("'01:02:03.5+02:30'::TIMETZ", dt.time(1, 2, 3, 500000, dt.timezone(dt.timedelta(hours=2, minutes=30)))),
    ("'01:02:03-05'::TIMETZ", dt.time(1, 2, 3, 0, dt.timezone(dt.timedelta(hours=-5)))),
    ("TIMESTAMP '1969-12-31 23:59:59.999999'", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("TIMESTAMP_S '2026-01-01 00:00:01'", dt.datetime(2026, 1, 1, 0, 0, 1)),
    ("TIMESTAMP_MS '2026-01-01 00:00:00.001'", dt.datetime(2026, 1, 1, 0, 0, 0, 1000)),
    ("TIMESTAMP_NS '2026-01-01 00:00:00.123456789'", dt.datetime(2026, 1, 1, 0, 0, 0, 123456)),
    ("TIMESTAMPTZ '2026-01-01 00:00:00+02'", dt.datetime(2025, 12, 31, 22, tzinfo=UTC)),
    ("INTERVAL '1 day 2 hours 3 microseconds'", dt.timedelta(days=1, hours=2, microseconds=3)),
    ("INTERVAL '1 year -3 days'", dt.timedelta(days=357)),
    ("[1, NULL, 3]", [1, None, 3]),
    ("[]::INTEGER[]", []),
    ("[[1.50], NULL]::DECIMAL(4,2)[][]", [[Decimal("1.50")], None]),
    ("[1, 2]::INTEGER[2]", [1, 2]),
    ("{'a': 1, 'b c': ['x']}", {"a": 1, "b c": ["x"]}),
    (
        f"{{'ids': ['{ID}'::UUID], 't': {{'z': TIMESTAMPTZ 'epoch'}}}}",
        {"ids": [ID], "t": {"z": dt.datetime(1970, 1, 1, tzinfo=UTC)}},
    ),
    ("row(1, 'x')", (1, "x")),
    ("MAP {'k': 1, 'l': NULL}", {"k": 1, "l": None}),
    ("MAP {[1]: 2}", [([1], 2)]),
    ("'b'::ENUM('a', 'b')", "b"),
    ("NULL", None),
]


@pytest.mark.parametrize(("expression", "expected"), SQL_VALUES, ids=[expression for expression, _ in SQL_VALUES])
def test_sql_value_becomes_python_value(cursor: Cursor, expression: str, expected: Any) -> None:
    value = value_of(cursor, expression)
    assert (value, type(value)) == (expected, type(expected))


BETWEEN_NULLS = [
    pytest.param(expression, marks=needs_duckdb_2("has no CASE over arrays") if "INTEGER[2]" in expression else ())
    for expression, _ in SQL_VALUES
    if "NULL" not in expression
]


@pytest.mark.parametrize("expression", BETWEEN_NULLS)
def test_nulls_between_values_stay_where_they_are(cursor: Cursor, expression: str) -> None:
    value = value_of(cursor, expression)
    rows = cursor.execute(f"SELECT CASE WHEN i % 3 = 0 THEN NULL ELSE {expression} END FROM range(7) r(i)").fetchall()
    assert rows == [(None if i % 3 == 0 else value,) for i in range(7)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("DATE 'infinity'", dt.date.max),
        ("DATE '-infinity'", dt.date.min),
        ("TIMESTAMP 'infinity'", dt.datetime.max),
        ("TIMESTAMP_S '-infinity'", dt.datetime.min),
        ("TIMESTAMP_NS 'infinity'", dt.datetime.max),
        ("TIMESTAMPTZ 'infinity'", dt.datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_infinity_becomes_the_largest_or_smallest_value(cursor: Cursor, expression: str, expected: Any) -> None:
    assert value_of(cursor, expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "DATE '10000-01-01'",
        "DATE '0044-03-15 (BC)'",
        "TIMESTAMP '290000-01-01'",
        "TIME '24:00:00'",
        "'24:00:00+01'::TIMETZ",
    ],
)
def test_a_value_that_python_cannot_hold_is_an_error_with_a_way_out(cursor: Cursor, expression: str) -> None:
    with pytest.raises(DataError, match=r"cast the column to VARCHAR.*fetch_arrow_table"):
        value_of(cursor, expression)
    assert isinstance(value_of(cursor, f"({expression})::VARCHAR"), str)


class Colour(enum.Enum):
    RED = "red"


PYTHON_VALUES = [
    ("BOOLEAN", True),
    ("INTEGER", -7),
    ("BIGINT", 2**62),
    ("HUGEINT", 2**100),
    ("DOUBLE", 0.1),
    ("DOUBLE", -math.inf),
    ("DECIMAL(9,2)", Decimal("12345.60")),
    ("DECIMAL(38,10)", Decimal("-1234567890123456789012345678.0123456789")),
    ("VARCHAR", "it's ☃"),
    ("VARCHAR", "100% ? :x $1"),
    ("BLOB", b"\x00\xff"),
    ("UUID", ID),
    ("DATE", dt.date(2024, 2, 29)),
    ("TIME", dt.time(23, 59, 59, 999999)),
    ("TIMESTAMP", dt.datetime(2026, 1, 2, 3, 4, 5, 678901)),
    ("TIMESTAMPTZ", dt.datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)),
    ("INTERVAL", dt.timedelta(days=2, seconds=3, microseconds=4)),
    ("INTEGER[]", [1, None, 3]),
    ("VARCHAR[]", ["a", "b"]),
    ("DECIMAL(9,2)[]", [Decimal("1.25")]),
    ("STRUCT(a INTEGER, b VARCHAR)", {"a": 1, "b": "x"}),
    ("MAP(VARCHAR, INTEGER)", {"k": 1}),
    ("INTEGER", None),
]


@pytest.mark.parametrize(("sql_type", "value"), PYTHON_VALUES, ids=[f"{kind} {value}" for kind, value in PYTHON_VALUES])
def test_parameter_comes_back_as_it_was(connection: lakedbapi.Connection, sql_type: str, value: Any) -> None:
    cursor = connection.execute(f"CREATE TABLE t (i INTEGER, v {sql_type})")
    cursor.execute("INSERT INTO t VALUES (?, ?)", (0, value))
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, value), (2, None)])
    cursor.execute("UPDATE t SET v = ? WHERE i = ?", (value, 2))
    uncommitted = cursor.execute("SELECT v FROM t ORDER BY i").fetchall()
    connection.commit()
    committed = cursor.execute("SELECT v FROM t ORDER BY i").fetchall()
    assert uncommitted == committed == [(value,)] * 3
    assert {type(row[0]) for row in committed} == {type(value)}


def test_other_python_types_are_taken_as_what_they_stand_for(cursor: Cursor) -> None:
    plus_two = dt.timezone(dt.timedelta(hours=2))
    cursor.execute("CREATE TABLE t (b BLOB, c BLOB, z TIMESTAMPTZ, e VARCHAR)")
    moment = dt.datetime(2026, 1, 1, 2, tzinfo=plus_two)
    cursor.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (bytearray(b"x"), memoryview(b"y"), moment, Colour.RED))
    assert cursor.execute("SELECT * FROM t").fetchone() == (b"x", b"y", moment, "red")


def test_the_machines_time_zone_plays_no_part(tmp_path: Path) -> None:
    program = (
        "import lakedbapi; print(lakedbapi.connect('shop').execute(\"SELECT TIMESTAMPTZ '2026-07-01 12:00:00', "
        "TIMESTAMPTZ '2026-07-01 00:00:00+00'::DATE::VARCHAR\").fetchall())"
    )
    environment = {**os.environ, "TZ": "America/New_York", "PYTHONPATH": str(Path(lakedbapi.__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, check=True
    )
    assert eval(run.stdout, {"datetime": dt}) == [(dt.datetime(2026, 7, 1, 12, tzinfo=UTC), "2026-07-01")]


ONE_AND_THREE = [
    {1, 3},
    frozenset([1, 3]),
    range(1, 4, 2),
    np.array([1, 3]),
    pd.Series([1, 3], index=[7, 8]),
    array("i", [1, 3]),
    pa.array([1, 3]),
    pa.chunked_array([[1], [3]]),
]


@pytest.mark.parametrize("values", ONE_AND_THREE, ids=lambda values: type(values).__name__)
def test_what_holds_several_values_is_a_list(items: Cursor, values: Any) -> None:
    assert items.execute("SELECT id FROM items WHERE id IN ? ORDER BY id", [values]).fetchall() == [(1,), (3,)]
    assert items.execute("DELETE FROM items WHERE id IN ?", [values]).rowcount == 2


def test_pandas_na_is_null(items: Cursor) -> None:
    assert items.execute("SELECT ? IS NULL", [pd.NA]).fetchone() == (True,)
    names, prices = pd.Series(["x", pd.NA], dtype=object), pd.array([None, 1], "Int64")
    frame = pd.DataFrame({"id": [7, 8], "name": names, "price": prices})
    items.executemany("INSERT INTO items VALUES (?, ?, ?)", frame.itertuples(index=False))
    rows = items.execute("SELECT * FROM items WHERE id > 6 ORDER BY id").fetchall()
    assert rows == [(7, "x", None), (8, None, Decimal("1.00"))]


@pytest.mark.parametrize("version", [np.int64(1), np.int32(1), "1"])
def test_versions_may_be_numpys(items: Cursor, version: Any) -> None:
    items.connection.commit()
    before = items.execute("SELECT count(*) FROM items AT (VERSION => 1)").fetchall()
    assert items.execute("SELECT count(*) FROM items AT (VERSION => ?)", [version]).fetchall() == before


def test_points_in_time_may_be_numpys(items: Cursor) -> None:
    items.connection.commit()
    now = dt.datetime.now(UTC).replace(tzinfo=None) + dt.timedelta(seconds=1)
    for point in (np.datetime64(now), np.datetime64(now, "ns"), pd.Timestamp(now)):
        assert items.execute("SELECT count(*) FROM items AT (TIMESTAMP => ?)", [point]).fetchone() == (3,)
