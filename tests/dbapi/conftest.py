"""A lake of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakedbapi
from tests.places import tmp_path

__all__ = ["Connect", "connect", "connection", "cursor", "items", "tmp_path"]

Connect = Callable[..., lakedbapi.Connection]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    """Connects to one and the same new lake; the connections are closed after the test."""
    opened: list[lakedbapi.Connection] = []

    def connect(**options: object) -> lakedbapi.Connection:
        opened.append(lakedbapi.connect(tmp_path / "shop", **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(connect: Connect) -> lakedbapi.Connection:
    return connect()


@pytest.fixture
def cursor(connection: lakedbapi.Connection) -> lakedbapi.Cursor:
    return connection.cursor()


@pytest.fixture
def items(cursor: lakedbapi.Cursor) -> lakedbapi.Cursor:
    """On a lake with the committed table `items(id INTEGER, name VARCHAR, price DECIMAL(9,2))` of three rows."""
    cursor.execute("CREATE TABLE items (id INTEGER NOT NULL, name VARCHAR, price DECIMAL(9,2))")
    cursor.execute("INSERT INTO items VALUES (1, 'apple', 0.50), (2, 'pear', 0.75), (3, NULL, 12.00)")
    cursor.connection.commit()
    return cursor
