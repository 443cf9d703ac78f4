"""Importing this first skips a test module where pyiceberg is not installed."""

from __future__ import annotations

import importlib.util
import os

import pytest
import sqlalchemy

REASON = "needs pyiceberg, whose SQL catalog needs SQLAlchemy 2: pip install 'lakedbapi[iceberg]'"

if importlib.util.find_spec("pyiceberg") is None:
    if os.environ.get("LAKE_CI") and not sqlalchemy.__version__.startswith("1."):
        raise AssertionError(REASON)
    pytest.skip(REASON, allow_module_level=True)
