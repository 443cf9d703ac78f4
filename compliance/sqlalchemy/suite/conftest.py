"""Runs SQLAlchemy's own dialect suite on a DuckLake with a SQLite catalog, on a RAM disk where there is one."""

from __future__ import annotations

import os
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

NOT_FOR_A_LAKE = {
    "test_string_length_reflection": "no lake format keeps the length of a text column",
    "test_varchar_reflection": "no lake format keeps the length of a text column",
    "test_has_index": "a lake has no indexes",
    "test_get_indexes": "a lake has no indexes",
    "test_dialect_user_setting_is_restored": "a lake has one isolation level besides AUTOCOMMIT, the test needs two",
    "test_fk_repeated_source_cols_reported_by_inspector": "in 2.0 it wants the key 'comment' from every dialect",
    "test_long_convention_name[ix": "a lake has no indexes",
    "test_ss_cursor_status[for_update_string]": "a lake has no row locks, so its SQL has no FOR UPDATE",
}
"""Why a test that no requirement closes is skipped, by the start of its name."""

RAM_DISK = Path("/dev/shm")
LAKE = "LAKE_SQLALCHEMY_SUITE"
"""Environment variable that holds the directory of this run's lakes."""


def pytest_configure(config):
    if not config.option.dburi:
        if not hasattr(config, "workerinput"):  # the workers of pytest-xdist inherit the environment
            os.environ[LAKE] = tempfile.mkdtemp(prefix="lake-suite-", dir=RAM_DISK if RAM_DISK.is_dir() else None)
        config.option.dburi = [f"lake:///{os.environ[LAKE]}/suite"]
    pytestplugin.pytest_configure(config)


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput") and LAKE in os.environ:
        shutil.rmtree(os.environ.pop(LAKE))


def pytest_collection_modifyitems(session, config, items):
    pytestplugin.pytest_collection_modifyitems(session, config, items)
    for item in items:
        for name, reason in NOT_FOR_A_LAKE.items():
            if item.name.startswith(name):
                item.add_marker(pytest.mark.skip(reason=reason))
