"""Tables that other programs wrote, unpacked when a test asks for one."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakedbapi
from tests.formats.delta.golden import GOLDEN

Connect = Callable[..., lakedbapi.Connection]


@pytest.fixture(scope="session")
def golden_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tables of other writers are unpacked: each as the table `table` in a schema of its name."""
    if not GOLDEN.is_dir():
        reason = "the golden tables are not next to the project"
        assert os.environ.get("LAKE_CI") != "1", reason
        pytest.skip(reason)
    return tmp_path_factory.mktemp("golden")


@pytest.fixture(scope="session")
def golden(golden_root: Path) -> Callable[[str], Path]:
    """The directory of a table by its name in `expected.json`."""

    def unpacked(name: str) -> Path:
        directory = golden_root / name
        if not directory.exists():
            with tarfile.open(GOLDEN / "delta" / f"{name}.tar.gz") as archive:
                archive.extractall(directory)
        return directory / "table"

    return unpacked


@pytest.fixture(scope="module")
def goldens(golden_root: Path) -> Iterator[lakedbapi.Connection]:
    """A connection to all of them: those that were unpacked before a statement are there."""
    with lakedbapi.connect(f"delta:///{golden_root}", read_only=True, autocommit=True) as connection:
        yield connection


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect to a directory of Delta tables; closed after the test."""
    opened: list[lakedbapi.Connection] = []

    def connected(path: Path | str, **options: object) -> lakedbapi.Connection:
        location = str(path) if "://" in str(path) else f"delta:///{path}"
        opened.append(lakedbapi.connect(location, **options))
        return opened[-1]

    yield connected
    for connection in opened:
        connection.close()
