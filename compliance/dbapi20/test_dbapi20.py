"""The DB-API 2.0 compliance suite (`dbapi-compliance` on PyPI) run against lakedbapi.

Three tests are overridden: two only raise NotImplementedError in the suite, for drivers to replace them; the third
demands that closing twice fails, while pools and context managers close twice.
"""

from __future__ import annotations

import shutil
import tempfile

import dbapi20

import lakedbapi


class TestLakeDBAPI(dbapi20.DatabaseAPI20Test):
    driver = lakedbapi
    lower_func = None

    def setUp(self) -> None:
        self.directory = tempfile.mkdtemp()
        self.connect_args = (self.directory,)

    def tearDown(self) -> None:
        shutil.rmtree(self.directory)

    def test_nextset(self) -> None:
        cursor = self._connect().cursor()
        assert not hasattr(cursor, "nextset"), "statements return one result, so there is no next one"

    def test_setoutputsize(self) -> None:
        cursor = self._connect().cursor()
        cursor.setoutputsize(1000)
        cursor.setoutputsize(1000, 0)
        self.executeDDL1(cursor)
        cursor.execute("insert into dbapi20test_booze values ('Victoria Bitter')")
        cursor.execute("select name from dbapi20test_booze")
        assert cursor.fetchone() == ("Victoria Bitter",)

    def test_non_idempotent_close(self) -> None:
        connection = self._connect()
        connection.close()
        connection.close()
