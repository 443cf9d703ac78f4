"""What a DELETE keeps of each row that it finds is small."""

from __future__ import annotations

import multiprocessing
import resource
from pathlib import Path

import pytest

import lakedbapi

ROWS = 3_000_000
BYTES_A_ROW = 60


def grown(place: Path, condition: str) -> tuple[int, int]:
    """(deleted rows, bytes by which the process grew at most)"""
    with lakedbapi.connect(place, autocommit=True) as connection:
        connection.execute("DELETE FROM t WHERE id = 5")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        count = connection.execute(f"DELETE FROM t WHERE {condition}").rowcount
        return count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


@pytest.mark.parametrize("condition", ["id % 5 <> 0", "id > 500000"])
def test_positions_are_forgotten_as_they_come(tmp_path: Path, condition: str) -> None:
    with lakedbapi.connect(tmp_path, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT range AS id FROM range({ROWS})")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        count, size = pool.apply(grown, (tmp_path, condition))
    assert count > ROWS / 2
    assert size < BYTES_A_ROW * count
