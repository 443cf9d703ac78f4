"""Bucket numbers are those that every other writer computes."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

from lakedbapi.model.bucket import buckets, murmur3


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
    assert buckets(pa.array([None, 34]), 8).to_pylist() == [None, 2017239379 % 8]
