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
def golden(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of a table by its name in `expected.json`."""
    if not GOLDEN.is_dir():
        reason = "the golden tables are not next to the project"
        assert os.environ.get("LAKE_CI") != "1", reason
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("golden")

    def unpacked(name: str) -> Path:
        directory = root / name
        if not directory.exists():
            with tarfile.open(GOLDEN / "delta" / f"{name}.tar.gz") as archive:
                archive.extractall(directory)
        return directory / "table"

    return unpacked


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
