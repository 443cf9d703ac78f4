"""A catalog of each kind of tables, for statements that mean the same in all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.formats.kinds import KINDS, Kind
from tests.formats.lake import Lake
from tests.places import tmp_path
from tests.thorough import quick

__all__ = ["kind", "lake", "other", "people", "tmp_path"]


@pytest.fixture(params=quick(3, KINDS), ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def lake(kind: Kind, tmp_path: Path) -> Iterator[Lake]:
    (tmp_path / "place").mkdir()
    lake = Lake(kind, tmp_path / "place")
    if kind.setup:
        lake(kind.setup)
        lake.commit()
    yield lake
    lake.connection.close()


@pytest.fixture
def other(lake: Lake) -> Iterator[Lake]:
    """A second connection to the same place."""
    other = Lake(lake.kind, lake.directory)
    yield other
    other.connection.close()


@pytest.fixture
def people(lake: Lake) -> Lake:
    """`t` with five people, in two files, and `news` about some."""
    lake.create("CREATE TABLE t (id INTEGER NOT NULL, name VARCHAR, amount DECIMAL(9, 2))")
    lake("INSERT INTO t VALUES (1, 'Ada', 1.50), (2, 'Bob', NULL), (3, NULL, 3)")
    lake.commit()
    lake("INSERT INTO t VALUES (4, 'Dan', 4), (5, 'Eve', 5)")
    lake.commit()
    lake.create("CREATE TABLE news (id INTEGER, amount DECIMAL(9, 2))")
    lake("INSERT INTO news VALUES (1, 10), (3, 30), (3, 30), (7, 70), (NULL, 0)")
    lake.commit()
    return lake
