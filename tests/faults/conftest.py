"""Lakes to break: two connections on one, its files, and what is registered of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import lakedbapi
from compliance.peers.lakes import Place
from tests.places import tmp_path

__all__ = ["Connect", "connect", "connect_sqlite", "tmp_path"]

Connect = Callable[..., lakedbapi.Connection]


@pytest.fixture
def connect(place: Place) -> Iterator[Connect]:
    """Connects to one and the same new lake, on SQLite and on PostgreSQL; the connections are closed after the test."""
    yield from _connecting(place)


@pytest.fixture
def connect_sqlite(sqlite_place: Place) -> Iterator[Connect]:
    """As `connect`, for what has nothing to do with the kind of catalog."""
    yield from _connecting(sqlite_place)


def _connecting(place: Place) -> Iterator[Connect]:
    opened: list[lakedbapi.Connection] = []

    def connect(**options: object) -> lakedbapi.Connection:
        opened.append(lakedbapi.connect(place.url, **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
