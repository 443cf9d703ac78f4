"""The peers' environment, which tests in CI must have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compliance.peers.peer import peers_python


def needed_peers(what: str) -> Path:
    """The interpreter that has the peers `what`; without it the test is skipped, or fails in CI."""
    python = peers_python()
    if python is None:
        reason = f"{what}: not installed; run 'make peers' or set LAKE_PEERS_PYTHON"
        if os.environ.get("LAKE_CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return python
