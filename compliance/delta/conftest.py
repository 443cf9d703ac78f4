"""`readers`: the other programs that read and write Delta tables."""

from __future__ import annotations

import os
from collections.abc import Iterator

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
