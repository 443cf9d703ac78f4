from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakedbapi.engine.duckdb import DuckDBEngine


@pytest.fixture(scope="session")
def engine() -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine([], [], [])
    yield engine
    engine.close()
