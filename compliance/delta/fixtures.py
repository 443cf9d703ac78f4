"""`readers`: the other programs that read and write Delta tables."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from compliance.delta.readers import Readers
from compliance.peers.needed import needed_peers


@pytest.fixture(scope="session")
def readers() -> Iterator[Readers]:
    running = Readers(needed_peers("deltalake, polars and DuckDB"))
    yield running
    running.close()


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that deltalake wrote in a process of its own: the directory that `deltalake_writer.py` filled."""
    python = needed_peers("deltalake")
    directory = tmp_path_factory.mktemp("deltalake")
    writer = Path(__file__).with_name("deltalake_writer.py")
    subprocess.run([str(python), str(writer), str(directory)], check=True, timeout=100)
    return directory
