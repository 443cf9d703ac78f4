"""Bucket numbers are those that every other writer computes."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

from lakedbapi.model.bucket import buckets, hashed_as, murmur3
from lakedbapi.model.types import Decimal, Scalar


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([34]), 2017239379),
        (pa.array([34], pa.int8()), 2017239379),
        (pa.array(["iceberg"]), 1210000089),
        (pa.array([dt.date(2017, 11, 16)]), -653330422),
        (pa.array([dt.datetime(2017, 11, 16, 22, 31, 8)]), -2047944441),
        (pa.array([dt.datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("us", "UTC")), -2047944441),
        (pa.array([True]), 1392991556),
        (pa.array(["f79c3e09-677c-4bbd-a479-3f349cb785e7"]), 980414783),
        (pa.array([decimal.Decimal("14.20")]), -622427183),
    ],
)
def test_bucket_hashes_are_those_of_the_specification(values: pa.Array, expected: int) -> None:
    assert murmur3(values).view(np.int32).tolist() == [expected]


def test_bucket_hashes_of_texts_do_not_depend_on_their_neighbours() -> None:
    texts = ["", "a", "ab", "abc", "abcd", "abcdefghi", "é🦆", "x" * 100]
    together = murmur3(pa.array(["skipped", *texts]).slice(1)).tolist()
    assert together == [int(murmur3(pa.array([text]))[0]) for text in texts]


def test_floats_hash_alike_when_they_are_equal() -> None:
    assert murmur3(pa.array([0.0])).tolist() == murmur3(pa.array([-0.0])).tolist()
    assert murmur3(pa.array([1.5], pa.float32())).tolist() == murmur3(pa.array([1.5])).tolist()


def test_the_bucket_of_null_is_null() -> None:
    assert buckets(pa.array([None, 34]), 8, Scalar("int64")).to_pylist() == [None, 2017239379 % 8]


@pytest.mark.parametrize(
    ("type", "values", "expected"),
    [
        ("uint8", pa.array([34], pa.uint8()), 25257),
        ("uint32", pa.array([4_000_000_000], pa.uint32()), 85989),
        ("uint64", pa.array([2**64 - 1], pa.uint64()), 1963),
        ("int128", pa.array([decimal.Decimal(34)], pa.decimal128(38)), 25257),
        ("uint128", pa.array(["34"]), 25257),
        ("time", pa.array([dt.time(1, 2, 3)]), 5120),
        ("timestamp_s", pa.array([dt.datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("s")), 21379),
        ("timestamp_s", pa.array([dt.datetime(2017, 11, 16, 22, 31, 8)]), 21379),
        ("timestamp_ms", pa.array([dt.datetime(2017, 11, 16, 22, 31, 8, 500_000)], pa.timestamp("ms")), 53603),
        ("timestamp_ns", pa.array([1510871468123456789], pa.timestamp("ns")), 51286),
    ],
)
def test_buckets_of_ducklake_depend_on_the_type(type: str, values: pa.Array, expected: int) -> None:
    assert buckets(values, 100_000, Scalar(type)).to_pylist() == [expected]
    assert buckets(pa.nulls(1, values.type), 100_000, Scalar(type)).to_pylist() == [None]


def test_decimals_of_many_digits_are_hashed_as_text() -> None:
    values = pa.array([decimal.Decimal("14.20"), decimal.Decimal("0.00")], pa.decimal128(38, 2))
    assert buckets(values, 100_000, Decimal(38, 2)).to_pylist()[0] == 58302
    texts = buckets(pa.array(["14.20", "0.00"]), 100_000, Scalar("varchar"))
    assert buckets(values, 100_000, Decimal(38, 2)) == texts
    small = pa.array([decimal.Decimal("0.0000000001")], pa.decimal128(38, 10))
    assert buckets(small, 100_000, Decimal(38, 10)) == buckets(pa.array(["0.0000000001"]), 100_000, Scalar("varchar"))


def test_types_that_hash_equal_values_alike() -> None:
    assert hashed_as(Scalar("int8")) == hashed_as(Scalar("int64"))
    assert hashed_as(Scalar("uint8")) == hashed_as(Scalar("uint64"))
    assert hashed_as(Decimal(4, 2)) == hashed_as(Decimal(18, 2))
    names = ("int32", "uint32", "float32", "date", "timestamp", "timestamp_s", "timestamp_ms")
    kinds = [Scalar(name) for name in names]
    assert len({hashed_as(kind) for kind in (*kinds, Decimal(18, 1), Decimal(18, 2))}) == len(kinds) + 2
    assert hashed_as(Decimal(18, 2)) != hashed_as(Decimal(19, 2))
