"""Typed statistics and partition values in checkpoints (protocol, "Checkpoint Schema")."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi.formats.delta.struct_stats import parsed_stats
from lakedbapi.model.types import Decimal as DecimalType
from lakedbapi.model.types import Field, List, Scalar, Struct
from tests.formats.delta.committed import commit, of_kind, rows
from tests.formats.delta.conftest import Connect

STRUCTS = "'delta.checkpoint.writeStatsAsStruct' = 'true'"
ONLY = f"{STRUCTS}, 'delta.checkpoint.writeStatsAsJson' = 'false'"


@pytest.fixture
def lake(tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    return connect(tmp_path, autocommit=True)


def adds(table: Path) -> list[dict[str, Any]]:
    """Of the newest checkpoint."""
    path = sorted((table / "_delta_log").glob("*.checkpoint.parquet"))[-1]
    return [action for action in pq.read_table(path)["add"].to_pylist() if action is not None]


COLUMNS = (
    "i SMALLINT, x DOUBLE, m DECIMAL(38, 2), s VARCHAR, b BOOLEAN, d DATE, ts TIMESTAMP WITH TIME ZONE, n TIMESTAMP, "
    "l INTEGER[], r STRUCT(y INTEGER, z STRUCT(w VARCHAR)), p DATE, q VARCHAR"
)


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_statistics_are_written_as_structs(lake: lakedbapi.Connection, tmp_path: Path, mapping: str) -> None:
    lake.execute(
        f"CREATE TABLE t ({COLUMNS}) PARTITIONED BY (p, q) WITH ({ONLY}, 'delta.columnMapping.mode' = '{mapping}')"
    )
    lake.execute(
        "INSERT INTO t VALUES (1, 1.5, 123456789012345678901234567890123456.78, 'a', true, DATE '2024-02-29', "
        "TIMESTAMPTZ '2024-02-29 12:00:00.1239+00', TIMESTAMP '1850-01-01 00:00:00', [1], {'y': 3, 'z': {'w': 'w'}}, "
        "DATE '2024-01-01', NULL)"
    )
    lake.execute("INSERT INTO t (p) VALUES (DATE '2024-01-01')")
    lake.execute("OPTIMIZE t")
    lake.execute("CHECKPOINT t")
    (add,) = adds(tmp_path / "t")
    assert add["stats"] is None
    found = add["stats_parsed"]
    (logged,) = (json.loads(action["stats"]) for action in of_kind(commit(tmp_path / "t"), "add"))
    assert list(found["nullCount"].values())[:2] == list(logged["nullCount"].values())[:2] == [1, 1]
    assert (found["numRecords"], found["tightBounds"]) == (2, True)
    lower = found["minValues"]
    assert list(lower)[:3] == list(logged["minValues"])[:3]
    i, x, m, s, d, ts, n, r = lower.values()
    assert (i, x, m, s) == (1, 1.5, Decimal("123456789012345678901234567890123456.78"), "a")
    assert (d, n) == (datetime.date(2024, 2, 29), datetime.datetime(1850, 1, 1))
    assert ts == datetime.datetime(2024, 2, 29, 12, 0, 0, 123000, datetime.timezone.utc)
    y, z = r.values()
    assert (y, list(z.values())) == (3, ["w"])
    assert list(add["partitionValues_parsed"].values()) == [datetime.date(2024, 1, 1), None]
    if mapping == "none":
        assert list(add["partitionValues_parsed"]) == ["p", "q"]


def test_what_was_written_as_structs_prunes_files(lake: lakedbapi.Connection, tmp_path: Path, connect: Connect) -> None:
    lake.execute(f"CREATE TABLE t (i BIGINT, ts TIMESTAMP, m DECIMAL(12, 3), s VARCHAR) WITH ({ONLY})")
    for n in range(4):
        lake.execute(
            f"INSERT INTO t SELECT {n}, TIMESTAMP '2024-01-01 00:00:00.000999' + INTERVAL {n} DAY, {n}.125, 's{n}'"
        )
    lake.execute("DELETE FROM t WHERE i = 3")
    lake.execute("CHECKPOINT t")
    for path in (tmp_path / "t" / "_delta_log").glob("*.json"):
        if int(path.stem) < 5:
            path.unlink()
    fresh = connect(tmp_path, autocommit=True)
    for condition in (
        "i = 2",
        "ts = TIMESTAMP '2024-01-03 00:00:00.000999'",
        "m = 2.125",
        "s = 's2'",
    ):
        plan = str(rows(fresh, f"EXPLAIN SELECT * FROM t WHERE {condition}"))
        assert "1 of 3 data files read" in plan, condition
        assert rows(fresh, f"SELECT i FROM t WHERE {condition}") == [(2,)]
    assert rows(fresh, "SELECT count(*) FROM t") == [(3,)]


def test_tables_without_anything_to_tell_have_checkpoints(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    lake.execute(f"CREATE TABLE t (l INTEGER[], p INTEGER) PARTITIONED BY (p) WITH ({STRUCTS})")
    lake.execute("CHECKPOINT t")
    lake.execute("INSERT INTO t VALUES ([1], 2)")
    lake.execute("CHECKPOINT t")
    (add,) = adds(tmp_path / "t")
    assert add["stats"] is not None
    assert add["stats_parsed"] == {"numRecords": 1, "nullCount": {"l": None}, "tightBounds": True}
    lake.execute("ALTER TABLE t SET ('delta.checkpoint.writeStatsAsStruct' = 'false')")
    lake.execute("CHECKPOINT t")
    (add,) = adds(tmp_path / "t")
    assert "stats_parsed" not in add


FIELDS = [
    Field("i", Scalar("int16"), 1),
    Field("x", Scalar("float64"), 2),
    Field("d", Scalar("date"), 3),
    Field("m", DecimalType(5, 2), 4),
    Field(
        "r", Struct((Field("s", Scalar("varchar"), 6), Field("l", List(Field("element", Scalar("int32"), 8)), 7))), 5
    ),
]


@pytest.mark.parametrize(
    ("text", "lower"),
    [
        ('{"numRecords": 1, "minValues": {"i": 70000, "x": 1}}', {"i": None, "x": 1.0}),
        ('{"numRecords": 1, "minValues": {"x": "NaN", "i": 1}}', {"x": None, "i": 1}),
        ('{"numRecords": 1, "minValues": {"d": "soon", "r": {"s": "a"}}}', {"d": None, "r": {"s": "a"}}),
        ('{"numRecords": 1, "minValues": {"m": 12345678.5, "i": 1}}', {"m": None, "i": 1}),
        ('{"numRecords": 1, "minValues": {"r": 5, "i": 1}}', {"r": {"s": None}, "i": 1}),
        ('{"numRecords": 1, "minValues": [], "nullCount": {"i": true}}', {"i": None}),
    ],
)
def test_what_is_no_value_is_left_out(text: str, lower: dict[str, Any]) -> None:
    good = '{"numRecords": 2, "minValues": {"i": 3, "d": "2024-01-01", "m": 1.5}, "nullCount": {"r": {"l": 1}}}'
    bad, fine, missing, broken = parsed_stats(pa.chunked_array([[text, good, None, "no JSON"]]), FIELDS, {}).to_pylist()
    assert bad["numRecords"] == 1
    assert {name: bad["minValues"][name] for name in lower} == lower
    assert fine["minValues"]["d"] == datetime.date(2024, 1, 1)
    assert (fine["minValues"]["m"], fine["nullCount"]["r"]["l"]) == (Decimal("1.50"), 1)
    assert missing is None
    assert broken["numRecords"] is None
