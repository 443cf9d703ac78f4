from __future__ import annotations

from collections.abc import Iterator

import pytest

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from lakedbapi.engine.duckdb import DuckDBEngine
from tests.formats.ducklake.writing import Lake, open_catalog


@pytest.fixture
def engine(place: Place) -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine([place.data_path], [], ["lake"])
    yield engine
    engine.close()


@pytest.fixture
def lake(place: Place, engine: DuckDBEngine) -> Iterator[Lake]:
    """An empty lake that keeps no rows in its catalog."""
    catalog = open_catalog(place, data_inlining_row_limit="0")
    yield Lake(catalog, engine)
    catalog.close()


@pytest.fixture
def inlining(place: Place, engine: DuckDBEngine) -> Iterator[Lake]:
    """An empty lake that keeps up to ten rows of a change in its catalog."""
    catalog = open_catalog(place)
    yield Lake(catalog, engine)
    catalog.close()


@pytest.fixture
def duckdb(lake: Lake, place: Place, peer: Peer) -> Peer:
    """DuckDB on the lake `lake`, with its own default of ten inlined rows."""
    peer.attach(place.location)
    return peer
