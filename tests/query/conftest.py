from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakedbapi.engine.duckdb import DuckDBEngine
from tests.dml.conftest import Lake, connect, lake
from tests.places import tmp_path

__all__ = ["connect", "engine", "lake", "numbers", "tmp_path"]


@pytest.fixture(scope="session")
def engine() -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine([], [], [])
    yield engine
    engine.close()


@pytest.fixture
def numbers(lake: Lake) -> Lake:
    """With `t(i INTEGER, s VARCHAR)`: snapshot 2 added the file of 0 to 99, 3 that of 100 to 199, 4 deleted 50 to 59.

    Nothing is kept in the catalog.
    """
    lake("CALL lake.set_option('data_inlining_row_limit', '0')")
    lake("CREATE TABLE t (i INTEGER, s VARCHAR)")
    lake.commit()
    for start in (0, 100):
        lake(f"INSERT INTO t SELECT i, 'x' || i FROM range({start}, {start + 100}) r(i)")
        lake.commit()
    lake("DELETE FROM t WHERE i BETWEEN 50 AND 59")
    lake.commit()
    return lake
