"""`golden`: a copy of a table that another program wrote."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.formats.delta.golden import GOLDEN


@pytest.fixture
def golden() -> Callable[[str, Path], Path]:
    if not GOLDEN.is_dir():
        reason = "the golden tables are not next to the project"
        assert os.environ.get("LAKE_CI") != "1", reason
        pytest.skip(reason)

    def unpacked(name: str, directory: Path) -> Path:
        with tarfile.open(GOLDEN / "delta" / f"{name}.tar.gz") as archive:
            archive.extractall(directory)
        return directory / "table"

    return unpacked
