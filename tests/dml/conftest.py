"""A lake of its own for each test, and its tables as Python rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from lakedbapi.model.changes import RowChanges
from tests.places import tmp_path

__all__ = ["Lake", "connect", "files", "lake", "t", "tmp_path"]

Rows = list[tuple[Any, ...]]


class Lake:
    """Called with a statement it gives the rows, or the row count when there are none."""

    def __init__(self, connection: lakedbapi.Connection) -> None:
        self.connection = connection
        self.cursor = connection.cursor()

    def __call__(self, sql: str, *parameters: object) -> Any:
        self.cursor.execute(sql, parameters or None)
        return self.cursor.fetchall() if self.cursor.description else self.cursor.rowcount

    def many(self, sql: str, parameters: list[tuple[object, ...]]) -> int:
        self.cursor.executemany(sql, parameters)
        return self.cursor.rowcount

    def rows(self, table: str = "t") -> Rows:
        return sorted(self(f"SELECT * FROM {table}"), key=repr)

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def staged(self, table: str = "t") -> RowChanges:
        """What the open transaction has staged for the table."""
        transaction = self.connection.session.context().transaction
        info = transaction.view("lake").table("main", table)
        assert info is not None
        return transaction.changes("lake").rows.get(info.id, RowChanges())


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[[], Lake]]:
    """Connects to one and the same new lake."""
    opened: list[lakedbapi.Connection] = []

    def connect() -> Lake:
        opened.append(lakedbapi.connect(tmp_path / "lake"))
        return Lake(opened[-1])

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def lake(connect: Callable[[], Lake]) -> Lake:
    return connect()


@pytest.fixture
def t(lake: Lake) -> Lake:
    """With the committed table `t(id INTEGER, v VARCHAR)` of three rows, the last of which is (3, NULL)."""
    lake("CREATE TABLE t (id INTEGER, v VARCHAR)")
    lake("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    lake.commit()
    return lake


@pytest.fixture
def files(lake: Lake) -> Lake:
    """With the committed table `t(id INTEGER, v VARCHAR)` of two data files: ids 0 to 99, and 100 to 199."""
    lake("CREATE TABLE t (id INTEGER, v VARCHAR)")
    for start in (0, 100):
        lake(f"INSERT INTO t SELECT range, 'v' || range FROM range({start}, {start + 100})")
        lake.commit()
    return lake
