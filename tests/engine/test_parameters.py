"""Python and Arrow values of every kind can be parameters."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import uuid

import numpy as np
import pyarrow as pa
import pytest

from lakedbapi import errors
from lakedbapi.engine.base import Query
from lakedbapi.engine.duckdb import DuckDBEngine

from .conftest import rows


class Colour(enum.Enum):
    RED = "red"


class Text(str, enum.Enum):
    A = "a"


ID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
UTC = dt.timezone.utc


def run(engine: DuckDBEngine, sql: str, **parameters: object) -> tuple[object, ...]:
    return rows(engine.fetch(Query(sql, parameters=parameters)))[0]


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (True, "BOOLEAN", "true"),
        (5, "INTEGER", "5"),
        (2**40, "BIGINT", "1099511627776"),
        (2**64 - 1, None, "18446744073709551615"),
        (-(2**127), None, "-170141183460469231731687303715884105728"),
        (2**128 - 1, None, "340282366920938463463374607431768211455"),
        (1.5, "DOUBLE", "1.5"),
        (math.inf, "DOUBLE", "inf"),
        (decimal.Decimal("1.50"), "DECIMAL(3,2)", "1.50"),
        ("it's 🦆", "VARCHAR", "it's 🦆"),
        (b"\x00\xff", "BLOB", r"\x00\xFF"),
        (bytearray(b"a"), "BLOB", "a"),
        (memoryview(b"a"), "BLOB", "a"),
        (dt.date(2020, 1, 2), "DATE", "2020-01-02"),
        (dt.time(10, 0, 0, 5), "TIME", "10:00:00.000005"),
        (dt.time(10, tzinfo=dt.timezone(dt.timedelta(hours=2))), "TIME WITH TIME ZONE", "10:00:00+02"),
        (dt.datetime(2020, 1, 2, 3), "TIMESTAMP", "2020-01-02 03:00:00"),
        (dt.datetime(2020, 1, 2, 3, tzinfo=UTC), "TIMESTAMP WITH TIME ZONE", "2020-01-02 03:00:00+00"),
        (dt.timedelta(days=1, seconds=2), "INTERVAL", "1 day 00:00:02"),
        (ID, "UUID", str(ID)),
        ([1, 2], None, "[1, 2]"),
        ((1, 2), None, "[1, 2]"),
        ({"a": 1}, None, "{'a': 1}"),
        (Colour.RED, "VARCHAR", "red"),
        (Text.A, "VARCHAR", "a"),
        (np.int16(3), None, "3"),
        (np.float32(1.5), None, "1.5"),
        (np.bool_(True), "BOOLEAN", "true"),
        (np.str_("x"), "VARCHAR", "x"),
        (np.datetime64("2020-01-02"), "DATE", "2020-01-02"),
        (np.datetime64("2020-01-02T03:04:05.000006"), "TIMESTAMP", "2020-01-02 03:04:05.000006"),
        (np.datetime64("2020-01-02T03:04:05.000006789"), "TIMESTAMP", "2020-01-02 03:04:05.000006"),
        (np.timedelta64(5, "s"), "INTERVAL", "00:00:05"),
        (np.array([1, 2]), None, "[1, 2]"),
        (pa.scalar(7), None, "7"),
        (pa.scalar("x"), "VARCHAR", "x"),
    ],
)
def test_values_arrive_with_their_types(engine: DuckDBEngine, value: object, type: str | None, text: str) -> None:
    found_type, found = run(engine, "select typeof($1), $1::varchar", **{"1": value})
    assert found == text
    assert type is None or found_type == type


@pytest.mark.parametrize("value", [None, np.datetime64("NaT"), pa.scalar(None, pa.int64())])
def test_nulls(engine: DuckDBEngine, value: object) -> None:
    assert run(engine, "select $1::int", **{"1": value}) == (None,)


@pytest.mark.parametrize("value", [math.nan, decimal.Decimal("NaN"), np.float64("nan")])
def test_not_a_number(engine: DuckDBEngine, value: object) -> None:
    assert run(engine, "select isnan($1::double)", **{"1": value}) == (True,)


def test_text_may_have_nul_characters(engine: DuckDBEngine) -> None:
    assert run(engine, "select $1 as a, length($1)", **{"1": "a\0b"}) == ("a\0b", 3)


def test_unused_parameters_are_ignored(engine: DuckDBEngine) -> None:
    assert run(engine, "select $a", a=1, b=object()) == (1,)


def test_a_parameter_may_be_used_twice(engine: DuckDBEngine) -> None:
    assert run(engine, "select $a + $a", a=2) == (4,)


def test_missing_parameters_are_named(engine: DuckDBEngine) -> None:
    with pytest.raises(errors.ProgrammingError, match=r"\$2, \$10"):
        run(engine, "select $1, $10, $2", **{"1": 1})


@pytest.mark.parametrize("value", [2**128, -(2**127) - 1, decimal.Decimal(10) ** 40, decimal.Decimal("1e-40")])
def test_numbers_that_no_type_holds_are_refused(engine: DuckDBEngine, value: object) -> None:
    with pytest.raises(errors.DataError, match=r"\$1"):
        run(engine, "select $1", **{"1": value})


def test_objects_without_an_sql_type_are_refused(engine: DuckDBEngine) -> None:
    with pytest.raises(errors.DataError, match=r"\$1.*object"):
        run(engine, "select $1", **{"1": object()})
