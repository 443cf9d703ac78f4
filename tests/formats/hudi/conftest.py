"""Hudi tables that Spark wrote, and connections to them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from tests.formats.hudi import golden as g

Connect = Callable[..., lakedbapi.Connection]


@pytest.fixture(scope="session")
def golden_tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of an unpacked table, not to be changed."""
    root = tmp_path_factory.mktemp("golden")
    g.unpack(g.EMPTY, root / g.EMPTY)  # skips where nothing can be unpacked
    return lambda name: g.unpack(name, root / name)


@pytest.fixture
def golden(golden_tables: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """The directory `t` of an own copy of a table."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(golden_tables(name), tmp_path / "lake" / "t"))

    return copy


@pytest.fixture
def connect() -> Iterator[Connect]:
    opened: list[lakedbapi.Connection] = []

    def connect(directory: Path, **options: Any) -> lakedbapi.Connection:
        opened.append(lakedbapi.connect(f"hudi:///{directory}", **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
