from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakedbapi
from tests.dml.conftest import Lake
from tests.places import tmp_path

__all__ = ["connect", "data", "lake", "tmp_path"]


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
