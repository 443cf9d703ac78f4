from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[4] / "shared" / "golden" / "iceberg"


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Unpacks a table that another program wrote, and gives the folder of its `metadata`."""
    folder = tmp_path_factory.mktemp("golden")

    def unpack(name: str) -> Path:
        archive = GOLDEN / f"{name}.tar.gz"
        if not archive.exists():
            assert not os.environ.get("LAKE_CI"), f"{archive} is missing"
            pytest.skip(f"needs the golden table {archive}")
        place = folder / name
        if not place.exists():
            with tarfile.open(archive) as tar:
                tar.extractall(place, filter="data")
        (metadata,) = place.glob("**/metadata")
        return metadata

    return unpack
