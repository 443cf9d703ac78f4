"""Statistics leave out files only where they prove that no row is wanted."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.formats.delta.committed import commit, of_kind
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import DV, Table, with_vector

TYPES: dict[str, pa.DataType] = {
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal(10,2)": pa.decimal128(10, 2),
    **{f"decimal(38,{scale})": pa.decimal128(38, scale) for scale in (0, 2, 18)},
    "boolean": pa.bool_(),
}


def stats(low: Any, high: Any, *, count: int = 1, nulls: int | None = 0, **more: Any) -> str:
    found = {"numRecords": count, "minValues": {"v": low}, "maxValues": {"v": high}, "nullCount": {"v": nulls}, **more}
    return json.dumps({name: value for name, value in found.items() if value is not None})


def read(
    connect: Connect, directory: Path, type: str, values: Sequence[Any], statistics: str | None, where: str
) -> Any:
    """How many files, and which rows, a query on one file reads."""
    table = Table(directory / "t").create([("v", type)])
    rows = pa.table({"v": pa.array(values, TYPES[type])})
    table.commit(table.file("a.parquet", rows, stats=statistics))
    connection = connect(table.path)
    query = f"SELECT count(*) FROM t WHERE {where}"
    [(count,)] = connection.execute(query).fetchall()
    explained = str(connection.execute(f"EXPLAIN {query}").fetchone())
    return int(explained.split(": ")[1].split(" of ")[0]), count


@pytest.mark.parametrize(
    ("type", "low", "high", "where"),
    [
        ("long", 1, 5, "v = 6"),
        ("double", 1.0, 5.5, "v < 1"),
        ("string", "b", "d", "v >= 'e'"),
        ("date", "2020-01-01", "2020-01-31", "v = DATE '2020-02-01'"),
        ("timestamp", "2020-01-01T00:00:00.000Z", "2020-01-31T00:00:00.000Z", "v > '2020-02-01'"),
        ("timestamp", "2020-01-01T00:00:00.000+02:00", "2020-01-31T00:00:00.000+02:00", "v > '2020-01-31 00:00:00+00'"),
        ("timestamp_ntz", "2020-01-01T00:00:00.000", "2020-01-31T00:00:00.000", "v > '2020-02-01'"),
        ("decimal(10,2)", 1.50, 2.25, "v = 2.26"),
        ("boolean", True, True, "NOT v"),
    ],
)
def test_bounds_of_each_type_prune(
    connect: Connect, tmp_path: Path, type: str, low: Any, high: Any, where: str
) -> None:
    assert read(connect, tmp_path, type, [None], stats(low, high), where) == (0, 0)


def test_times_are_cut_to_milliseconds_in_both_bounds(connect: Connect, tmp_path: Path) -> None:
    at = datetime.datetime(2021, 5, 6, 7, 8, 9, 678_999)
    bounds = stats("2021-05-06T07:08:09.678Z", "2021-05-06T07:08:09.678Z")
    where = "v = TIMESTAMPTZ '2021-05-06 07:08:09.678999+00'"
    assert read(connect, tmp_path / "in", "timestamp", [at], bounds, where) == (1, 1)
    assert read(connect, tmp_path / "out", "timestamp", [at], bounds, where.replace("678999", "679")) == (0, 0)


def test_times_are_cut_in_the_bounds_of_many_files(connect: Connect, tmp_path: Path) -> None:
    at = datetime.datetime(2021, 5, 6, 7, 8, 9, 678_999)
    bounds = stats("2021-05-06T07:08:09.678Z", "2021-05-06T07:08:09.678Z")
    table = Table(tmp_path / "t").create([("v", "timestamp")])
    rows = pa.table({"v": pa.array([at], TYPES["timestamp"])})
    table.commit(*(table.file(f"{number}.parquet", rows, stats=bounds) for number in range(70)))
    query = "SELECT count(*) FROM t WHERE v = TIMESTAMPTZ '2021-05-06 07:08:09.678999+00'"
    assert connect(table.path).execute(query).fetchall() == [(70,)]


def test_strings_are_bounded_by_bytes(connect: Connect, tmp_path: Path) -> None:
    long = "z" * 40 + "\U0010ffff"
    bounds = stats("z" * 32, "z" * 32 + "\x7f")
    assert read(connect, tmp_path / "1", "string", [long], bounds, f"v = '{long}'") == (1, 1)
    assert read(connect, tmp_path / "2", "string", ["é"], stats("é", "é"), "v > 'z'") == (1, 1)


@pytest.mark.parametrize(
    ("type", "value", "statistics"),
    [
        ("long", 7, None),
        ("long", 7, "{}"),
        ("long", 7, '{"numRecords":1}'),
        ("long", 7, "this is no JSON"),
        ("long", 7, '["neither"]'),
        ("long", 7, stats("5", "5")),
        ("long", 7, stats(1 << 70, 1 << 70)),
        ("long", 7, stats(None, None, nulls=None)),
        ("long", 7, stats(7, 7, nulls=1 << 40)),
        ("string", "x\U0001f600", stats("x\ud83d", "x\ud83d")),
        ("double", 7.5, stats("NaN", "NaN")),
        ("double", float("nan"), stats(1.5, 1.5)),
        ("date", datetime.date(2020, 1, 1), stats("10000-01-01", "10000-01-01")),
        ("timestamp", datetime.datetime(2020, 1, 1), stats("noon", "noon")),
    ],
)
def test_what_cannot_be_trusted_keeps_the_file(
    connect: Connect, tmp_path: Path, type: str, value: Any, statistics: str | None
) -> None:
    where = "v > 6" if type in ("long", "double") else "v > '2019-01-01'"
    assert read(connect, tmp_path, type, [value], statistics, where) == (1, 1)


@pytest.mark.parametrize(
    ("type", "value", "bound", "where"),
    [
        ("decimal(38,18)", "1.500000000000000001", 1.5, "v > 1.5"),
        ("decimal(38,18)", "1.499999999999999999", 1.5, "v < 1.5"),
        ("decimal(38,18)", "-1.500000000000000001", -1.5, "v < -1.5"),
        ("decimal(38,2)", "10000000000000000.01", 1e16, "v > 10000000000000000"),
        ("decimal(38,0)", "10000000000000001", 10**16, "v = 10000000000000001"),
        ("decimal(38,18)", "12345678901234567.123456789012345678", 1.2345678901234568e16, "v < 12345678901234568"),
        ("decimal(38,0)", "9" * 38, 1e38, f"v = {'9' * 38}"),
    ],
)
def test_decimals_that_went_through_floating_point_are_found(
    connect: Connect, tmp_path: Path, type: str, value: str, bound: float, where: str
) -> None:
    assert read(connect, tmp_path / "in", type, [Decimal(value)], stats(bound, bound), where) == (1, 1)
    if bound < 1e38:
        assert read(connect, tmp_path / "out", type, [Decimal(value)], stats(bound, bound), "v = 3") == (0, 0)


def test_rows_near_such_a_bound_are_not_deleted(connect: Connect, tmp_path: Path) -> None:
    """A file is not removed for a condition that holds for its bounds only."""
    table = Table(tmp_path / "t").create([("v", "decimal(38,18)")])
    rows = pa.table({"v": pa.array([Decimal("1.500000000000000001")], TYPES["decimal(38,18)"])})
    table.commit(table.file("a.parquet", rows, stats=stats(1.5, 1.5)))
    connection = connect(tmp_path, autocommit=True)
    assert connection.execute("DELETE FROM t WHERE v <= 1.5").rowcount == 0
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_texts_that_were_cut_inside_of_a_character_stay_so(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create([("v", "string")], protocol=DV, delta_enableDeletionVectors="true")
    cut = stats("x\ud83d", "x\ud83d", count=100)
    table.commit(table.file("a.parquet", pa.table({"v": ["x\U0001f600"] * 99 + ["x"]}), stats=cut))
    connection = connect(tmp_path, autocommit=True)
    assert connection.execute("DELETE FROM t WHERE v = 'x'").rowcount == 1
    (add,) = of_kind(commit(table.path), "add")
    assert add["stats"] == cut[:-1].replace(": ", ":").replace(", ", ",") + ',"tightBounds":false}'


def test_null_counts_prune(connect: Connect, tmp_path: Path) -> None:
    none, all_ = stats(1, 1, count=2, nulls=0), stats(None, None, count=2, nulls=2)
    assert read(connect, tmp_path / "1", "long", [1, 1], none, "v IS NULL") == (0, 0)
    assert read(connect, tmp_path / "2", "long", [None, None], all_, "v IS NOT NULL") == (0, 0)
    assert read(connect, tmp_path / "3", "long", [None, None], all_, "v IS NULL") == (1, 2)


def test_one_odd_file_does_not_spoil_the_others(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create()
    for number, text in enumerate([stats(0, 0), "no JSON", stats(2, 2).replace('"v"', '"i"'), stats("a", "b")]):
        table.commit(table.file(f"{number}.parquet", [number], stats=text.replace('"v"', '"i"')))
    connection = connect(table.path)
    assert connection.execute("SELECT i FROM t WHERE i >= 1 ORDER BY i").fetchall() == [(1,), (2,), (3,)]
    assert "3 of 4" in str(connection.execute("EXPLAIN SELECT i FROM t WHERE i >= 1").fetchone())


def test_bounds_of_a_file_with_deleted_rows_may_be_wide(connect: Connect, tmp_path: Path) -> None:
    """The greatest value is gone, and answers must not come from statistics."""
    table = Table(tmp_path / "t").create(protocol=DV)
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    wide = json.dumps(
        {"numRecords": 30, "minValues": {"i": 0}, "maxValues": {"i": 29}, "nullCount": {"i": 0}, "tightBounds": False}
    )
    add = table.file("a.parquet", range(30), stats=wide)
    table.commit(with_vector(add, {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": 44, "cardinality": 6}))
    connection = connect(table.path)
    assert connection.execute("SELECT max(i), count(*), count(i) FROM t").fetchall() == [(28, 24, 24)]
    assert connection.execute("SELECT count(*) FROM t WHERE i = 29").fetchall() == [(0,)]


def test_nan_is_found_though_statistics_leave_it_out(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create([("f", "double")])
    for name, values in {"a": [1.0, 50.0, float("nan")], "b": [1.0, 5.0, 3.0]}.items():
        bounds = {"minValues": {"f": min(values)}, "maxValues": {"f": max(values[:2])}, "nullCount": {"f": 0}}
        text = json.dumps({"numRecords": 3, **bounds})
        table.commit(table.file(f"{name}.parquet", pa.table({"f": values}), stats=text))
    connection = connect(table.path)
    for condition in ("f > 100", "NOT f <= 50", "isnan(f)", "f = 'nan'", "f BETWEEN 51 AND 'nan'::DOUBLE"):
        assert connection.execute(f"SELECT count(*) FROM t WHERE {condition}").fetchall() == [(1,)], condition
    assert connection.execute("SELECT isnan(max(f)), min(f) FROM t").fetchall() == [(True, 1.0)]
    assert connection.execute("DELETE FROM t WHERE f <= 50").rowcount == 5
    assert connection.execute("SELECT isnan(f) FROM t").fetchall() == [(True,)]


def test_rows_are_counted_in_the_files_where_statistics_do_not_tell(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create([("numRecords", "long")])
    odd = '{"minValues":{"numRecords":7},"numRecords":2,"maxValues":{"numRecords":7}}'
    rows = pa.table({"numRecords": [7, 7]})
    table.commit(table.file("a.parquet", rows, stats=odd), table.file("b.parquet", rows, stats=None))
    connection = connect(table.path)
    assert connection.execute("SELECT record_count FROM files('t')").fetchall() == [(2,), (2,)]
