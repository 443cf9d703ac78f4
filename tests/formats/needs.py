"""What tests need beside the project itself."""

from __future__ import annotations

import importlib.util
import os

import pytest
import sqlalchemy


def need_pyiceberg(*, whole_module: bool = False) -> None:
    """Skip without pyiceberg, but fail in CI, except beside SQLAlchemy 1.4, which its SQL catalog cannot use."""
    if importlib.util.find_spec("pyiceberg") is not None:
        return
    reason = "needs pyiceberg, whose SQL catalog needs SQLAlchemy 2: pip install 'lakedbapi[iceberg]'"
    if os.environ.get("LAKE_CI") and not sqlalchemy.__version__.startswith("1."):
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=whole_module)
