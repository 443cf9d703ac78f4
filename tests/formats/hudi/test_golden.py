"""Every golden table has the rows that Spark and hudi-rs see in it, at each of its commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.formats.hudi import golden as g
from tests.formats.hudi.conftest import Connect

COUNTS: dict[str, tuple[int, ...]] = {
    g.TRIPS: (8, 8, 7, 7, 6, 6, 6),
    g.TRIPS_DELETED: (8, 5),
    g.EMPTY: (),
    g.COW: (3, 4),
    g.OVERWRITTEN: (3, 4, 1),
    g.TRANSACTIONS: (8, 8, 7, 7, 6, 6, 8, 6, 8, 10, 10, 12),
    g.TIME_BASED: (4, 6, 6, 5, 6),
    g.MOR_TRANSACTIONS: (8, 8, 7, 7, 6, 6, 8, 6, 8, 10, 10, 10, 12),
    g.MOR: (3, 4),
    g.ROLLED_BACK: (3, 3),
}
"""Rows after each commit of the timeline, as begun."""
READ_OPTIMIZED = {
    g.TRIPS: 6,
    g.TRIPS_DELETED: 8,
    g.EMPTY: 0,
    g.COW: 4,
    g.OVERWRITTEN: 1,
    g.TRANSACTIONS: 12,
    g.TIME_BASED: 7,
    g.MOR_TRANSACTIONS: 12,
    g.MOR: 4,
    g.ROLLED_BACK: 3,
}
LIVE_TRANSACTIONS = [f"TXN-{number:03}" for number in (1, 3, 7, 8, *range(11, 19))]

tables = pytest.mark.parametrize("name", COUNTS)


@tables
def test_rows_are_those_of_hudi_at_each_commit(
    name: str, golden_tables: Callable[[str], Path], connect: Connect
) -> None:
    directory = golden_tables(name)
    connection = connect(directory)
    versions = [row[0] for row in connection.execute(f"SELECT snapshot_id FROM history('{directory.name}')").fetchall()]
    assert len(versions) == len(COUNTS[name])
    for version, count in zip(versions, COUNTS[name], strict=True):
        rows = connection.execute(f"SELECT * FROM {directory.name} FOR VERSION AS OF {version}").fetch_arrow_table()
        assert rows.num_rows == count
        assert _sorted(rows) == _sorted(_by_hudi(directory, str(version), rows.column_names))


@tables
def test_the_newest_version_is_read_without_being_named(
    name: str, golden_tables: Callable[[str], Path], connect: Connect
) -> None:
    directory = golden_tables(name)
    rows = connect(directory).execute(f"SELECT * FROM {directory.name}").fetch_arrow_table()
    assert rows.num_rows == (COUNTS[name] or (0,))[-1]
    assert _sorted(rows) == _sorted(_by_hudi(directory, None, rows.column_names))


@tables
def test_rows_are_counted_without_any_column(name: str, golden_tables: Callable[[str], Path], connect: Connect) -> None:
    directory = golden_tables(name)
    counted = connect(directory).execute(f"SELECT count(*) FROM {directory.name}").fetchone()
    assert counted == ((COUNTS[name] or (0,))[-1],)


@tables
def test_read_optimized_leaves_log_files_out(name: str, golden_tables: Callable[[str], Path], connect: Connect) -> None:
    directory = golden_tables(name)
    counted = connect(directory, read_optimized=True).execute(f"SELECT count(*) FROM {directory.name}").fetchone()
    assert counted == (READ_OPTIMIZED[name],)


@tables
def test_columns_are_those_of_hudi(name: str, golden_tables: Callable[[str], Path], connect: Connect) -> None:
    import hudi

    directory = golden_tables(name)
    described = connect(directory).execute(f"DESCRIBE {directory.name}").fetchall()
    assert [row[0] for row in described] == hudi.HudiTable(str(directory)).get_schema().names


@tables
def test_record_counts_of_files_are_exact(name: str, golden_tables: Callable[[str], Path], connect: Connect) -> None:
    """hudi-rs only estimates them, at several hundreds here."""
    directory = golden_tables(name)
    connection = connect(directory, read_optimized=True)
    counted = connection.execute(f"SELECT sum(record_count) FROM files('{directory.name}')").fetchone()
    assert counted == (READ_OPTIMIZED[name] or None,)


@pytest.mark.parametrize("name", [g.TRANSACTIONS, g.MOR_TRANSACTIONS])
def test_transactions(name: str, golden_tables: Callable[[str], Path], connect: Connect) -> None:
    directory = golden_tables(name)
    rows = connect(directory).execute(f"SELECT txn_id, txn_type FROM {directory.name} ORDER BY 1").fetchall()
    assert [id for id, _ in rows] == LIVE_TRANSACTIONS
    assert rows[0] == ("TXN-001", "reversal")


def test_trips_after_updates_and_a_delete(golden_tables: Callable[[str], Path], connect: Connect) -> None:
    rows = connect(golden_tables(g.TRIPS)).execute("SELECT rider, fare FROM v8_trips_8i3u1d ORDER BY 1").fetchall()
    fares = {"A": 0.0, "C": 27.7, "D": 33.9, "E": 93.5, "G": 0.0, "I": 41.06}
    assert rows == [(f"rider-{rider}", fare) for rider, fare in fares.items()]


def test_trips_after_deletes_in_a_log_file(golden_tables: Callable[[str], Path], connect: Connect) -> None:
    directory = golden_tables(g.TRIPS_DELETED)
    rows = connect(directory).execute("SELECT rider FROM v6_trips_8i3d ORDER BY 1").fetchall()
    assert rows == [(f"rider-{rider}",) for rider in "EFGIJ"]


def _by_hudi(directory: Path, version: str | None, columns: list[str]) -> pa.Table:
    """What hudi-rs reads by itself."""
    import hudi

    options = hudi.HudiReadOptions()
    table = hudi.HudiTable(str(directory))
    batches = table.read(options if version is None else options.with_as_of_timestamp(version))
    if not batches:
        return table.get_schema().empty_table().select(columns)
    return pa.concat_tables([pa.Table.from_batches([batch]).select(columns) for batch in batches])


def _sorted(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)
