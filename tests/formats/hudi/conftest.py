"""Hudi tables that Spark wrote, and connections to them."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from tests.formats.hudi.golden import GOLDEN

Connect = Callable[..., lakedbapi.Connection]


@pytest.fixture(scope="session")
def golden_tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of an unpacked table, not to be changed."""
    for missing, reason in (
        (not GOLDEN.is_dir(), "the golden tables are not next to the project"),
        (not _has_hudi(), "the package hudi is not installed: pip install 'lakedbapi[hudi]'"),
    ):
        if missing:
            if os.environ.get("LAKE_CI"):
                pytest.fail(reason)
            pytest.skip(reason)
    root = tmp_path_factory.mktemp("golden")

    def unpack(name: str) -> Path:
        target = root / name
        if not target.exists():
            with zipfile.ZipFile(GOLDEN / f"{name}.zip") as archive:
                archive.extractall(target)
            shutil.rmtree(target / "__MACOSX", ignore_errors=True)
        (table,) = target.iterdir()
        return table

    return unpack


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


def _has_hudi() -> bool:
    try:
        import hudi  # noqa: F401
    except ImportError:
        return False
    return True
