"""Runs SQLAlchemy's own dialect suite on a lake of the format that `LAKE_SUITE_FORMAT` names, on a RAM disk where there
is one."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
import sqlalchemy.orm
from sqlalchemy import CheckConstraint, Column, event
from sqlalchemy.dialects import registry

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin import pytestplugin  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402,F403

for backend in ("lake", "lake.lakedbapi", "delta", "delta.lakedbapi", "iceberg.sqlite"):
    registry.register(backend, "sqlalchemy_lake.dialect", "LakeDialect")

FORMAT = os.environ.get("LAKE_SUITE_FORMAT", "ducklake")
URLS = {
    "ducklake": "lake:///{folder}/suite",
    "delta": "delta:///{folder}/suite?non_atomic=true",
    "iceberg": "iceberg+sqlite:///{folder}/suite?warehouse=file://{folder}/warehouse&non_atomic=true",
}

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
"""Why a test that no requirement closes is skipped, by the start of its name or its class's."""
_NO_VIEWS = {
    "test_get_view_names": "views that nobody made",
    "test_without_metadata[use_schema1]": "it makes a view",
}
_COUNTING = (
    *("test_autoincrement_col", "test_get_multi_columns", "test_insert_from_select_autoinc", "test_empty_insert"),
    *("test_autoclose_on_insert_implicit_returning", "test_no_results_for_non_returning_insert"),
    *("test_roundtrip_fetchall", "test_roundtrip_fetchmany"),
)
"""Tests that insert rows without keys, or ask for columns that make them."""
NOT_FOR = {
    "ducklake": NOT_FOR_A_LAKE,
    "delta": {
        **NOT_FOR_A_LAKE,
        **_NO_VIEWS,
        "test_underscore_names": "the directory of a Delta table does not begin with an underscore",
        "UuidTest": "its table has a UUID, which Delta tables cannot hold",
    },
    "iceberg": {
        **NOT_FOR_A_LAKE,
        **_NO_VIEWS,
        **dict.fromkeys(_COUNTING, "the format has no identity columns"),
    },
}

RAM_DISK = Path("/dev/shm")
LAKE = "LAKE_SQLALCHEMY_SUITE"
"""Environment variable that holds the directory of this run's lakes."""


def pytest_configure(config):
    if not config.option.dburi:
        if not hasattr(config, "workerinput"):  # the workers of pytest-xdist inherit the environment
            os.environ[LAKE] = tempfile.mkdtemp(prefix="lake-suite-", dir=RAM_DISK if RAM_DISK.is_dir() else None)
        config.option.dburi = [URLS[FORMAT].format(folder=os.environ[LAKE])]
    pytestplugin.pytest_configure(config)


# The suite clears all mappers after its own; pyiceberg's SQL catalog has some, too.
sqlalchemy.orm.clear_mappers = lambda: None

if FORMAT == "iceberg":

    @event.listens_for(Column, "after_parent_attach")
    def _without_identity(column, table):
        """Keys are given in INSERT: the format has no identity columns."""
        column.autoincrement = False

    @event.listens_for(CheckConstraint, "after_parent_attach")
    def _without_checks(check, table):
        """Tables of tests that are not about them have some, too."""
        table.constraints.discard(check)


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput") and LAKE in os.environ:
        shutil.rmtree(os.environ.pop(LAKE))


def pytest_collection_modifyitems(session, config, items):
    pytestplugin.pytest_collection_modifyitems(session, config, items)
    for item in items:
        for name, reason in NOT_FOR[FORMAT].items():
            if item.name.startswith(name) or item.cls.__name__.startswith(name):
                item.add_marker(pytest.mark.skip(reason=reason))
