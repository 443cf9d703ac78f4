"""One folder for the tests of a process, one test after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty folder that has the same name in each test; afterwards its contents are in pytest's own folder.

    Instances of the engine are kept for the folders that they can reach, and a new one takes longer than most of what
    is tested with it. That nothing else is kept of a folder whose contents were replaced is tested on the way.
    """
    folder = tmp_path_factory.getbasetemp() / "place"
    folder.mkdir()
    yield folder
    folder.rename(tmp_path / "place")
