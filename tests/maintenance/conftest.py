from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakedbapi
from tests.dml.conftest import Lake
from tests.places import tmp_path

__all__ = ["connect", "data", "lake", "t", "tmp_path"]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[[], Lake]]:
    """Connects to one and the same new lake; each statement commits by itself."""
    opened: list[lakedbapi.Connection] = []

    def connect() -> Lake:
        opened.append(lakedbapi.connect(tmp_path / "lake", autocommit=True))
        return Lake(opened[-1])

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def lake(connect: Callable[[], Lake]) -> Lake:
    return connect()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder of the lake's files."""
    return tmp_path / "lake" / "data"


@pytest.fixture
def t(lake: Lake) -> Lake:
    """With `t(k, g)` in three files of 100 rows, by `g` of 0, 1 and 2: 50 rows of the first and one of the second are
    deleted."""
    lake("CALL lake.set_option('data_inlining_row_limit', 0)")
    lake("CREATE TABLE t (k INTEGER, g INTEGER)")
    for g in range(3):
        lake(f"INSERT INTO t SELECT i, {g} FROM range({g * 100}, {g * 100 + 100}) r(i)")
    lake("DELETE FROM t WHERE k < 50 OR k = 150")
    return lake
