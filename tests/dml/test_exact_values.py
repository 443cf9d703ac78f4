"""Values that Parquet's own types do not hold come back from data files as they were."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from tests.dml.conftest import Lake

TYPES: dict[str, list[Any]] = {
    "HUGEINT": [2**53 + 1, -(2**100) - 1, 10**38, 2**127 - 1, -(2**127), 0],
    "UHUGEINT": [2**128 - 1, 2**53 + 1, 0],
    "INTERVAL": [
        datetime.timedelta(microseconds=1),
        datetime.timedelta(days=-40, microseconds=5),
        datetime.timedelta(days=4000),
    ],
    "TIME WITH TIME ZONE": [
        datetime.time(10, 0, 0, 123456, datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
        datetime.time(23, 59, tzinfo=datetime.timezone.utc),
    ],
}


@pytest.mark.parametrize("inlined", [0, 1000])
@pytest.mark.parametrize("sql_type", TYPES)
def test_values_come_back_exactly(lake: Lake, sql_type: str, inlined: int) -> None:
    values = TYPES[sql_type]
    lake(f"CALL lake.set_option('data_inlining_row_limit', '{inlined}')")
    lake(
        f"CREATE TABLE t (id INTEGER, v {sql_type}, l {sql_type}[], s STRUCT(a {sql_type}), m MAP(INTEGER, {sql_type}))"
    )
    for i, value in enumerate(values):
        lake("INSERT INTO t VALUES (?, ?, [?], {'a': ?}, MAP {1: ?})", i, value, value, value, value)
    lake("INSERT INTO t (id) VALUES (-1)")
    lake.commit()
    for i, value in enumerate(values):
        assert lake("SELECT v, l, s, m FROM t WHERE id = ?", i) == [(value, [value], {"a": value}, {1: value})]
        assert lake(f"SELECT id FROM t WHERE v = CAST(? AS {sql_type})", value) == [(i,)]
    assert lake("UPDATE t SET id = id + 100") == len(values) + 1
    lake.commit()
    assert lake("SELECT list(v ORDER BY id) FILTER (v IS NOT NULL) FROM t") == [(values,)]


@pytest.mark.parametrize("commit", [False, True])
def test_their_order_is_that_of_the_values(lake: Lake, commit: bool) -> None:
    lake("CALL lake.set_option('parquet_row_group_size', '2048')")
    lake("CREATE TABLE t (h HUGEINT, i INTERVAL)")
    for first, last in ((10, 20), (0, 30_000)):
        lake(f"INSERT INTO t SELECT r, to_days(r::INTEGER) FROM range({first}, {last}) x(r)")
    if commit:
        lake.commit()
    assert lake("SELECT count(*), min(h), max(h) FROM t WHERE h > 9 AND h < 100") == [(100, 10, 99)]
    assert lake("SELECT count(*) FROM t WHERE h BETWEEN 9 AND 20") == [(22,)]
    assert lake("SELECT count(*) FROM t WHERE i > INTERVAL 9 DAYS AND i < INTERVAL 100 DAYS") == [(100,)]
    assert lake("SELECT h FROM t ORDER BY h DESC LIMIT 1") == [(29_999,)]
    assert lake("DELETE FROM t WHERE h > 9 AND h < 20") == 20


def test_files_are_sorted_by_the_values(lake: Lake) -> None:
    lake("CREATE TABLE t (p INTEGER, h HUGEINT) PARTITIONED BY (p) SORTED BY (h DESC)")
    lake("INSERT INTO t SELECT r % 2, r FROM range(200) x(r)")
    lake.commit()
    assert lake("SELECT h FROM t WHERE p = 0 LIMIT 2") == [(198,), (196,)]


def test_files_are_partitioned_by_the_values(lake: Lake) -> None:
    lake("CREATE TABLE t (p HUGEINT) PARTITIONED BY (p)")
    lake("INSERT INTO t SELECT r % 12 - 3 FROM range(240) x(r)")
    lake.commit()
    assert lake("SELECT count(*), min(p) FROM t WHERE p > 1 AND p < 10") == [(140, 2)]
    assert lake("DELETE FROM t WHERE p = -3") == 20
    assert lake("SELECT record_count FROM files('t')") == [(20,)] * 11
