"""That pruning happens at all, where statistics allow it."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from lakedbapi.engine.duckdb import DuckDBEngine
from lakedbapi.model.arrow import arrow_schema
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.types import Decimal, Field, Scalar, Schema
from lakedbapi.query.prune import Pruning, prune
from lakedbapi.sql.expressions import parse_query
from tests.support_catalog import MemorySnapshot, context

SCHEMA = Schema(
    (
        Field("i", Scalar("int32"), 1),
        Field("s", Scalar("varchar"), 2),
        Field("d", Scalar("date"), 3),
        Field("f", Scalar("float64"), 4),
        Field("n", Decimal(9, 2), 5),
        Field("flag", Scalar("boolean"), 6),
    )
)
TABLE = TableInfo(1, 0, "t", SCHEMA)


def rows(**columns: list[Any]) -> pa.Table:
    count = len(next(iter(columns.values())))
    return pa.table({name: columns.get(name, [None] * count) for name in SCHEMA.names}, schema=arrow_schema(SCHEMA))


LOW_HIGH = MemorySnapshot(
    TABLE,
    [
        rows(i=[0, 9], s=["apple", "axe"], d=[datetime.date(2024, 1, 1), datetime.date(2024, 6, 1)], f=[0.0, 1.0]),
        rows(
            i=[10, None], s=["bee", "bird"], d=[datetime.date(2025, 1, 1)] * 2, f=[2.0, float("nan")], flag=[True, True]
        ),
        rows(i=[None, None]),
    ],
)


def pruning(engine: DuckDBEngine, condition: str, snapshot: MemorySnapshot = LOW_HIGH, **parameters: object) -> Pruning:
    tree = parse_query(f"SELECT * FROM t WHERE {condition}")
    assert tree is not None
    return prune(context(engine, **parameters), snapshot.contents, tree.args["where"].this, "t")


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("i = 3", [0]),
        ("3 = t.i", [0]),
        ("i > 9", [1]),
        ("i BETWEEN 5 AND 10", [0, 1]),
        ("i IN (11, 12, 9)", [0]),
        ("i = 4 + 5", [0]),
        ("i = 9.0", [0]),
        ("i IS NULL", [1, 2]),
        ("i IS NOT NULL", [0, 1]),
        ("i = NULL", []),
        ("i IS NOT DISTINCT FROM NULL", [1, 2]),
        ("s LIKE 'b%'", [1]),
        ("starts_with(s, 'a')", [0]),
        ("s NOT LIKE 'a%'", [1]),
        ("d >= DATE '2024-07-01'", [1]),
        ("d >= '2024-07-01'", [1]),
        ("f > 1.5", [1]),
        ("f < 1", [0]),
        ("flag", [1]),
        ("NOT flag", []),
        ("s LIKE '%b'", [0, 1]),
        ("i = 3 AND s = 'bee'", []),
        ("i = 3 OR s = 'bee'", [0, 1]),
        ("NOT (i > 9 OR i IS NULL)", [0]),
    ],
)
def test_files_without_matching_rows_are_not_read(engine: DuckDBEngine, condition: str, kept: list[int]) -> None:
    assert pruning(engine, condition).keep.nonzero()[0].tolist() == kept


@pytest.mark.parametrize(
    "condition",
    [
        "i + 0 = 3",
        "i = j",
        "u.i = 3",
        "i = (SELECT 3)",
        "random() < 2",
        "d = current_date",
        "i = 1.5",
        "s LIKE 'b%' ESCAPE '!'",
        "s COLLATE NOCASE = 'A'",
    ],
)
def test_what_cannot_be_decided_keeps_every_file(engine: DuckDBEngine, condition: str) -> None:
    assert pruning(engine, condition).keep.all()


@pytest.mark.parametrize(
    ("condition", "whole"),
    [
        ("i < 10", [0]),
        ("i >= 0", [0]),
        ("i IS NULL", [2]),
        ("i IS NOT DISTINCT FROM NULL OR i >= 0", [0, 2]),
        ("f >= 0", [0, 1]),
        ("f <= 2", [0]),
        ("s LIKE 'a%'", [0]),
        ("flag", [1]),
        ("true", [0, 1, 2]),
    ],
)
def test_files_of_which_every_row_matches_are_known(engine: DuckDBEngine, condition: str, whole: list[int]) -> None:
    assert pruning(engine, condition).all_match.nonzero()[0].tolist() == whole


def test_parameters_prune_like_literals(engine: DuckDBEngine) -> None:
    assert pruning(engine, "i = $1", **{"1": 3}).keep.tolist() == [True, False, False]
    assert pruning(engine, "d = $day", day=datetime.date(2025, 1, 1)).keep.tolist() == [False, True, False]
    assert pruning(engine, "d = $day", day="2025-01-01").keep.tolist() == [False, True, False]
    assert not pruning(engine, "i = $1", **{"1": None}).keep.any()


def test_partition_values_prune_without_statistics(engine: DuckDBEngine) -> None:
    unknown = frozenset((number, name) for number in range(3) for name in SCHEMA.names)
    partitions: dict[tuple[int, str], dict[int, object]] = {
        (2, "identity"): {0: "eu", 1: None},
        (3, "year"): {0: 2024, 1: 2025},
        (3, "month"): {0: 2, 1: 1},
        (1, "bucket(8)"): {0: 0, 1: 1},
    }
    snapshot = MemorySnapshot(TABLE, LOW_HIGH.parts, unknown, partitions)
    assert pruning(engine, "s = 'us'", snapshot).keep.tolist() == [False, False, True]
    assert pruning(engine, "s = 'eu'", snapshot).all_match.tolist() == [True, False, False]
    assert pruning(engine, "s IS NULL", snapshot).all_match.tolist() == [False, True, False]
    assert pruning(engine, "d > DATE '2024-02-29'", snapshot).keep.tolist() == [False, True, True]
    assert pruning(engine, "d >= DATE '2024-02-01'", snapshot).keep.tolist() == [True, True, True]
    assert pruning(engine, "d = DATE '2025-02-01'", snapshot).keep.tolist() == [False, False, True]
    assert sum(pruning(engine, "i = 34", snapshot).keep.tolist()) <= 2
