"""SQLAlchemy's dialect suite. A class that is taken over here says why."""

import pytest
from sqlalchemy import testing
from sqlalchemy.testing import suite
from sqlalchemy.testing.suite import *  # noqa: F403

from sqlalchemy_lake.dialect import LakeExecutionContext


class HasTableTest(suite.HasTableTest):
    """It makes its views whether the database has views or not."""

    @classmethod
    def define_views(cls, metadata):
        if testing.requires.views.enabled:
            super().define_views(metadata)


class ServerSideCursorsTest(suite.ServerSideCursorsTest):
    """SQLAlchemy knows the server side cursors of its own drivers only."""

    @pytest.fixture(autouse=True)
    def made(self, monkeypatch):
        self.made = []
        make = LakeExecutionContext.create_server_side_cursor

        def noted(context):
            self.made.append(make(context))
            return self.made[-1]

        monkeypatch.setattr(LakeExecutionContext, "create_server_side_cursor", noted)

    def _is_server_side(self, cursor):
        return any(cursor is one for one in self.made)


if hasattr(suite.WindowFunctionTest, "test_window_range"):

    class WindowFunctionTest(suite.WindowFunctionTest):
        """Its queries have no ORDER BY, but compare the order of their rows."""

        def test_window_range(self, connection):
            super().test_window_range(_Sorting(connection))

        def test_window_range_numeric(self, connection):
            super().test_window_range_numeric(_Sorting(connection))


class _Sorting:
    """A connection whose rows come in order."""

    def __init__(self, connection):
        self._connection = connection

    def execute(self, statement):
        self._rows = sorted(self._connection.execute(statement).all())
        return self

    def all(self):
        return self._rows
