"""Files are pruned by their partition values alone: through each transform, and after the partitioning was changed."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import lakedbapi
from lakedbapi.formats.ducklake.catalog import CAPABILITIES
from tests.dml.conftest import Lake, Rows

CREATE = "CREATE TABLE t (k INTEGER, s VARCHAR, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ)"
ROWS = """
    SELECT i::INTEGER, CASE WHEN i % 7 <> 0 THEN 's' || (i % 4) END, DATE '2023-11-01' + (i // 2)::INTEGER,
        TIMESTAMP '2023-12-30 20:30:00' + i * INTERVAL 5 HOUR,
        TIMESTAMPTZ '2023-12-30 20:30:00+00' + i * INTERVAL 5 HOUR
    FROM range({}, {}) r(i)
"""
Open = Callable[[], Lake]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    connections: list[lakedbapi.Connection] = []

    def open() -> Lake:
        connections.append(lakedbapi.connect(tmp_path / "lake", autocommit=True))
        return Lake(connections[-1])

    yield open
    for connection in connections:
        connection.close()


@pytest.fixture
def lake(opened: Open) -> Lake:
    """With the empty table `t`; nothing is kept in the catalog."""
    lake = opened()
    lake("CALL lake.set_option('data_inlining_row_limit', '0')")
    lake(CREATE)
    return lake


def forget_statistics(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog, catalog:
        assert catalog.execute("DELETE FROM ducklake_file_column_stats").rowcount > 0


def files_read(lake: Lake, condition: str) -> tuple[int, int]:
    """How many data files a scan reads, and how many the table has."""
    [first] = lake(f"EXPLAIN SELECT * FROM t WHERE {condition}")[0]
    found = re.match(r"lake\.main\.t: (\d+) of (\d+) data files read", first)
    assert found is not None, first
    return int(found[1]), int(found[2])


def unpruned(condition: str, *ranges: tuple[int, int]) -> Rows:
    """What the engine finds in a table of its own."""
    with duckdb.connect() as engine:
        engine.execute(CREATE)
        for start, end in ranges:
            engine.execute("INSERT INTO t " + ROWS.format(start, end))
        return engine.execute(f"SELECT k, s, d, ts, epoch_us(tz) FROM t WHERE {condition} ORDER BY k").fetchall()


def rows(lake: Lake, condition: str) -> Rows:
    found: Rows = lake(f"SELECT k, s, d, ts, epoch_us(tz) FROM t WHERE {condition} ORDER BY k")
    return found


TRANSFORMS: dict[str, list[tuple[str, int, int]]] = {
    "s": [
        ("s = 's1'", 1, 5),
        ("'s1' = s", 1, 5),
        ("s IN ('s1', 's3', 'none')", 2, 5),
        ("s <> 's1'", 3, 5),
        ("s IS NULL", 1, 5),
        ("s IS NOT NULL", 4, 5),
        ("s IS NOT DISTINCT FROM 's2'", 1, 5),
        ("s IS NOT DISTINCT FROM NULL", 1, 5),
        ("s > 's1'", 2, 5),
        ("s LIKE 's1%'", 1, 5),
        ("s = 's1' OR k = 3", 5, 5),
        ("s = 'none'", 0, 5),
        ("lower(s) = 's1'", 5, 5),
    ],
    "bucket(8, k)": [
        ("k = 17", 1, 8),
        ("k = 17.0", 1, 8),
        ("k = 17 OR k = 17", 1, 8),
        ("k > 17", 8, 8),
        ("k <> 17", 8, 8),
        ("k + 0 = 17", 8, 8),
    ],
    "bucket(4, s)": [("s = 's1'", 2, 4), ("s LIKE 's1%'", 4, 4)],  # One file of NULLs.
    "bucket(4, d)": [("d = DATE '2023-12-24'", 1, 4), ("d = '2023-12-24'", 1, 4)],
    "bucket(4, ts)": [("ts = TIMESTAMP '2023-12-31 01:30:00'", 1, 4)],
    "year(d)": [
        ("d = DATE '2024-01-15'", 1, 2),
        ("d >= DATE '2024-01-01'", 1, 2),
        ("d > DATE '2023-12-31'", 1, 2),
        ("d < DATE '2024-01-01'", 1, 2),
        ("d <= DATE '2023-12-31'", 1, 2),
        ("d BETWEEN DATE '2024-02-01' AND DATE '2025-01-01'", 1, 2),
        ("d = DATE '2025-01-01'", 0, 2),
    ],
    "month(d)": [("d = DATE '2024-01-15'", 1, 4), ("d = DATE '2024-06-15'", 0, 4), ("d > DATE '2024-01-15'", 4, 4)],
    "year(d), month(d)": [
        ("d = DATE '2024-01-15'", 1, 4),
        ("d >= DATE '2024-01-01'", 2, 4),
        ("d = DATE '2023-01-15'", 0, 4),
    ],
    "day(ts)": [("ts = TIMESTAMP '2024-01-03 03:30:00'", 1, 31)],
    "hour(ts)": [("ts = TIMESTAMP '2024-01-03 03:30:00'", 1, 24), ("ts > TIMESTAMP '2024-01-03 03:30:00'", 24, 24)],
    "year(ts), day(ts), hour(ts)": [("ts = TIMESTAMP '2023-12-31 01:30:00'", 1, 200)],
    "year(tz)": [("tz >= TIMESTAMPTZ '2024-01-01 00:00:00+00'", 2, 2)],
    "s, bucket(2, k)": [("s = 's1' AND k = 17", 1, 10), ("s = 's1'", 2, 10)],
}
COUNT = 200


def test_every_transform_is_tried() -> None:
    tried = " ".join(TRANSFORMS)
    assert {name for name in CAPABILITIES.partition_transforms if name != "identity" and name not in tried} == set()


@pytest.mark.parametrize("partitioning", TRANSFORMS)
def test_partition_values_alone_prune(lake: Lake, opened: Open, tmp_path: Path, partitioning: str) -> None:
    lake(f"ALTER TABLE t SET PARTITIONED BY ({partitioning})")
    lake("INSERT INTO t " + ROWS.format(0, COUNT))
    forget_statistics(tmp_path)
    lake.connection.close()
    lake = opened()
    found = {condition: files_read(lake, condition) for condition, _, _ in TRANSFORMS[partitioning]}
    assert found == {condition: (read, total) for condition, read, total in TRANSFORMS[partitioning]}
    for condition in found:
        assert rows(lake, condition) == unpruned(condition, (0, COUNT)), condition


LATER = [
    ("ALTER TABLE t SET PARTITIONED BY (bucket(8, k))", "k = 217", (1, 8)),
    ("ALTER TABLE t SET PARTITIONED BY (bucket(3, k))", "k = 217", (1, 3)),
    ("ALTER TABLE t SET PARTITIONED BY (day(ts), s)", "s = 's1' AND k = 217", None),
    ("ALTER TABLE t RESET PARTITIONED BY", "k = 217", (1, 1)),
]


@pytest.mark.parametrize(("later", "condition", "of_later"), LATER)
def test_files_of_an_older_partitioning_are_read(
    lake: Lake, opened: Open, tmp_path: Path, later: str, condition: str, of_later: tuple[int, int] | None
) -> None:
    """Their values are of other keys, or of another number of buckets: they do not tell about the present ones."""
    lake("ALTER TABLE t SET PARTITIONED BY (bucket(4, k))")
    lake("INSERT INTO t " + ROWS.format(0, COUNT))
    old = files_read(lake, "true")[1]
    lake(later)
    lake("INSERT INTO t " + ROWS.format(COUNT, COUNT + 50))
    forget_statistics(tmp_path)
    lake.connection.close()
    lake = opened()
    read, total = files_read(lake, condition)
    if of_later is not None:
        assert (read, total) == (old + of_later[0], old + of_later[1])
    assert old <= read <= total
    for looked_for in (condition, "k = 17", "s = 's1'", "k IN (3, 203)"):
        assert rows(lake, looked_for) == unpruned(looked_for, (0, COUNT), (COUNT, COUNT + 50)), looked_for
    assert lake("SELECT count(*) FROM t FOR VERSION AS OF 3 WHERE k = 17") == [(1,)]


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t RENAME k TO key",
        "ALTER TABLE t ALTER k TYPE BIGINT",
        "CALL ducklake_merge_adjacent_files('lake')",
        "DELETE FROM t WHERE k % 3 = 0",
        "UPDATE t SET k = k + 1000 WHERE k % 3 = 0",
    ],
)
def test_partition_values_hold_after_changes(lake: Lake, opened: Open, tmp_path: Path, change: str) -> None:
    lake("ALTER TABLE t SET PARTITIONED BY (bucket(4, k), s)")
    for start in (0, COUNT):
        lake("INSERT INTO t " + ROWS.format(start, start + COUNT))
    lake(change)
    key = "key" if "RENAME" in change else "k"
    everything = lake(f"SELECT {key}, s FROM t")
    forget_statistics(tmp_path)
    lake.connection.close()
    lake = opened()
    for value in (17, 18, 217, 1018, 9999):
        expected = sorted((k, s) for k, s in everything if k == value)
        assert lake(f"SELECT {key}, s FROM t WHERE {key} = {value}") == expected
        read, total = files_read(lake, f"{key} = {value} AND s = 's1'")
        assert 0 < read < total / 4, (change, value)
    assert sorted(lake(f"SELECT {key}, s FROM t WHERE s IS NULL")) == sorted(
        row for row in everything if row[1] is None
    )


def test_a_column_of_an_old_name_is_not_the_old_column(lake: Lake, opened: Open, tmp_path: Path) -> None:
    lake("ALTER TABLE t SET PARTITIONED BY (k)")
    lake("INSERT INTO t " + ROWS.format(0, 10))
    lake("ALTER TABLE t RESET PARTITIONED BY")
    lake("ALTER TABLE t DROP COLUMN k")
    lake("ALTER TABLE t ADD COLUMN k INTEGER DEFAULT 5")
    lake("ALTER TABLE t SET PARTITIONED BY (k)")
    lake("INSERT INTO t (k) VALUES (5), (6)")
    forget_statistics(tmp_path)
    lake.connection.close()
    lake = opened()
    assert lake("SELECT count(*) FROM t WHERE k = 5") == [(11,)]
    assert lake("SELECT count(*) FROM t WHERE k = 6") == [(1,)]
    assert files_read(lake, "k = 6") == (11, 12)


def test_statistics_and_partition_values_prune_together(lake: Lake) -> None:
    """As unpruned, whatever is asked for."""
    lake("ALTER TABLE t SET PARTITIONED BY (year(d), bucket(4, k))")
    lake("INSERT INTO t " + ROWS.format(0, COUNT))
    for partitioning in TRANSFORMS:
        for condition, _, _ in TRANSFORMS[partitioning]:
            assert rows(lake, condition) == unpruned(condition, (0, COUNT)), condition
    assert files_read(lake, "k = 17") == (1, 8)
