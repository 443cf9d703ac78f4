"""`readers`: the other programs that read and write Delta tables."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from compliance.delta.readers import Readers
from compliance.peers.peer import peers_python


@pytest.fixture(scope="session")
def readers() -> Iterator[Readers]:
    python = peers_python()
    if python is None:
        reason = "deltalake, polars and DuckDB are not installed: run 'make peers' or set LAKE_PEERS_PYTHON"
        if os.environ.get("LAKE_CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    running = Readers(python)
    yield running
    running.close()


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that deltalake wrote in a process of its own: the directory that `deltalake_writer.py` filled."""
    python = peers_python()
    if python is None:
        reason = "deltalake is not installed: run 'make peers' or set LAKE_PEERS_PYTHON"
        assert not os.environ.get("LAKE_CI"), reason
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("deltalake")
    writer = Path(__file__).with_name("deltalake_writer.py")
    subprocess.run([str(python), str(writer), str(directory)], check=True, timeout=100)
    return directory
