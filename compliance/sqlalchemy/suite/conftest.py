"""Runs SQLAlchemy's own dialect suite on a DuckLake with a SQLite catalog, on a RAM disk where there is one."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from sqlalchemy.dialects import registry

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin import pytestplugin  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402,F403

for backend in ("lake", "lake.lakedbapi"):
    registry.register(backend, "sqlalchemy_lake.dialect", "LakeDialect")

RAM_DISK = Path("/dev/shm")


def pytest_configure(config):
    if not config.option.dburi and not hasattr(config, "workerinput"):
        config.lake = tempfile.mkdtemp(prefix="lake-suite-", dir=RAM_DISK if RAM_DISK.is_dir() else None)
        config.option.dburi = [f"lake:///{config.lake}/suite"]
    pytestplugin.pytest_configure(config)


def pytest_unconfigure(config):
    if hasattr(config, "lake"):
        shutil.rmtree(config.lake)
