"""Expressions of Spark: those that mean the same in the engine have Spark's values, the others are refused."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from lakedbapi.model.sql_types import quote_identifier, sql_type
from lakedbapi.model.types import Decimal, Field, Scalar, Schema, Struct
from lakedbapi.sql.spark import from_engine, to_engine

COLUMNS: dict[str, tuple[Any, str]] = {
    "i": (Scalar("int32"), "7"),
    "b": (Scalar("boolean"), "true"),
    "s": (Scalar("varchar"), "'a''b\\c'"),
    "d": (Scalar("date"), "DATE '2024-02-29'"),
    "ts": (Scalar("timestamptz"), "TIMESTAMPTZ '2024-02-29 23:59:58.5+00'"),
    "n": (Scalar("timestamp"), "TIMESTAMP '2024-02-29 23:59:58.5'"),
    "f": (Scalar("float32"), "0.1"),
    "x": (Scalar("float64"), "-2.5"),
    "m": (Decimal(10, 2), "-2.50"),
    "a b": (Scalar("int64"), "3"),
    "end": (Scalar("int64"), "4"),
    "st": (Struct((Field("Y", Scalar("int32"), 20),)), "{'Y': 5}"),
    "z": (Scalar("int32"), "NULL"),
    "e": (Scalar("varchar"), "NULL"),
    "v": (Scalar("variant"), "NULL"),
}
SCHEMA = Schema(tuple(Field(name, type, n) for n, (name, (type, _)) in enumerate(COLUMNS.items(), 1)))


def value(sql: str) -> Any:
    """Of DuckDB's SQL over one row."""
    items = ", ".join(
        f"CAST({text} AS {sql_type(type)}) AS {quote_identifier(name)}"
        for name, (type, text) in COLUMNS.items()
        if name != "v"
    )
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute(f"SELECT CAST(({sql}) AS VARCHAR) FROM (SELECT {items})").fetchall()[0][0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Spark 3.5, session time zone UTC.
        ("i + 1 * 2", "9"),
        ("-i", "-7"),
        ("i / 2", "3.5"),
        ("(i - 10) % 2", "-1"),
        ("2L + i", "9"),
        ("CAST(x AS INT)", "-2"),
        ("CAST(m AS BIGINT)", "-2"),
        ("CAST(b AS INT)", "1"),
        ("CAST(i AS DECIMAL(5, 1))", "7.0"),
        ("CAST(ts AS DATE)", "2024-02-29"),
        ("CAST(i AS STRING)", "7"),
        ("f > 0.1", "true"),  # As DOUBLE, 0.1 as FLOAT is more.
        ("ceil(x)", "-2"),
        ("floor(x)", "-3"),
        ("abs(m)", "2.50"),
        ("`a b` > 2 AND `end` = 4", "true"),
        ("ST.y", "5"),
        ("s = 'a\\'b\\\\c'", "true"),
        ('s = "a\'b\\\\c"', "true"),
        ("s LIKE 'a%'", "true"),
        ("s || 'x'", "a'b\\cx"),
        ("concat('a', e)", None),
        ("concat('a', 'b', 'c')", "abc"),
        ("length(s)", "5"),
        ("substring(s, 2, 3)", "'b\\"),
        ("substr('hello', 3)", "llo"),
        ("trim('  x ')", "x"),
        ("year(d) * 100 + month(ts)", "202402"),
        ("dayofmonth(n)", "29"),
        ("quarter(d)", "1"),
        ("dayofyear(d)", "60"),
        ("hour(ts) + minute(n) + second(ts)", "140"),
        ("date_format(ts, 'yyyyMMdd-HH:mm:ss')", "20240229-23:59:58"),
        ("date_format(d, 'yyyy-MM')", "2024-02"),
        ("date_trunc('MONTH', ts)", "2024-02-01 00:00:00+00"),
        ("date_trunc('hour', ts)", "2024-02-29 23:00:00+00"),
        ("trunc(d, 'YEAR')", "2024-01-01"),
        ("trunc(ts, 'MM')", "2024-02-01"),
        ("to_date(ts)", "2024-02-29"),
        ("d + 1", "2024-03-01"),
        ("d >= '2024-02-29'", "true"),
        ("ts < TIMESTAMP '2024-03-01 00:00:00'", "true"),
        ("d BETWEEN DATE '2024-01-01' AND DATE'2024-12-31'", "true"),
        ("z IS NULL AND e IS NULL AND i IS NOT NULL", "true"),
        ("isnull(z) OR isnotnull(z)", "true"),
        ("z > 1", None),
        ("NOT (z > 1)", None),
        ("z <=> NULL", "true"),
        ("i IN (1, 7)", "true"),
        ("i NOT IN (1, 2)", "true"),
        ("coalesce(z, i)", "7"),
        ("nvl(e, 'none')", "none"),
        ("nullif(i, 7)", None),
        ("if(b, 'yes', 'no')", "yes"),
        ("CASE WHEN i > 100 THEN 1 WHEN b THEN 2 ELSE 3 END", "2"),
        ("b IS TRUE", "true"),
        ("i != 3", "true"),
    ],
)
def test_values_are_those_of_spark(text: str, expected: str | None) -> None:
    sql = to_engine(text, SCHEMA)
    assert sql is not None
    assert value(sql) == expected


@pytest.mark.parametrize(
    "text",
    [
        "CAST(s AS INT)",  # '12.7' is 12 in Spark, 13 in DuckDB.
        "CAST(x AS STRING)",
        "CAST(s AS DATE)",
        "CAST('2024' AS DATE)",
        "s = 5",
        "d > '2024'",
        "i / z",
        "m / 3",
        "i % 0",
        "upper(s)",  # ß
        "s RLIKE '^a'",
        "s LIKE 'a\\\\_b'",
        "date_format(ts, 'MMM')",
        "date_format(ts, 'MMMM')",
        "date_format(ts, 'D')",
        "date_trunc('decade', ts)",
        "trunc(d, 'hour')",
        "round(x)",
        "substring(s, -1)",
        "concat(s, i)",
        "year(s)",
        "year(d, d)",
        "spark_thing(i)",
        "read_text('/etc/passwd')",
        "missing > 1",
        "t.i > 1",
        "v = v",
        "i > ",
        "i > 1; SELECT 2",
        "EXISTS (SELECT 1)",
        "i IN (SELECT 1)",
        "i & 1",
        "CASE i WHEN 1 THEN 2 END",
        "CASE WHEN b THEN 1 ELSE 'x' END",
    ],
)
def test_what_may_mean_something_else_is_not_translated(text: str) -> None:
    assert to_engine(text, SCHEMA) is None


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("i > 0", "i > 0"),
        ("I  >  0", "I  >  0"),
        ('"end" > 0', "`end` > 0"),
        ("s IN ('a', 'b')", "s IN ('a', 'b')"),
        ("s = 'it''s'", "s = 'it\\'s'"),
        ("s = 'a\\b'", "s = 'a\\\\b'"),
        ("i::BIGINT > 1", "CAST(i AS BIGINT) > 1"),
        ("year(d) > 2000", "year(d) > 2000"),
        ("s || 'x' <> 'y'", "s || 'x' <> 'y'"),
        ("n > TIMESTAMP '2024-01-01 00:00:00'", "n > CAST('2024-01-01 00:00:00' AS TIMESTAMP_NTZ)"),
        ("regexp_matches(s, 'a')", None),
        ("i // 2 = 1", None),
        ("upper(s) = s", None),
        ("[i] = [1]", None),
    ],
)
def test_expressions_of_the_engine_are_kept_as_spark_reads_them(text: str, spark: str | None) -> None:
    assert from_engine(text, SCHEMA) == spark
    assert spark is None or value(text) == value(to_engine(spark, SCHEMA) or "")
