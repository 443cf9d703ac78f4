from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.dialects import registry
from sqlalchemy.engine import Engine

from tests.places import tmp_path

__all__ = ["engine", "entry_point", "make_engine", "snapshots", "tmp_path"]

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
ENTRY_POINTS = re.findall(r'^"?([\w.]+)"? = "sqlalchemy_lake\.dialect:LakeDialect"$', PYPROJECT.read_text(), re.M)

# The tests run from a checkout that need not be installed.
for name in ENTRY_POINTS:
    registry.register(name, "sqlalchemy_lake.dialect", "LakeDialect")


@pytest.fixture
def make_engine(tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """Engines on one lake; `query` goes into the URL."""
    engines = []

    def make(query: str = "", **options: Any) -> Engine:
        engines.append(create_engine(f"lake:///{tmp_path}/shop{query}", future=True, **options))
        return engines[-1]

    yield make
    for engine in engines:
        engine.dispose()


@pytest.fixture
def engine(make_engine: Callable[..., Engine]) -> Engine:
    return make_engine()


@pytest.fixture
def snapshots(engine: Engine) -> Callable[[], int]:
    """The newest snapshot's id."""

    def newest() -> int:
        with engine.connect() as connection:
            return int(connection.execute(text("SELECT max(snapshot_id) FROM snapshots()")).scalar())

    return newest


@pytest.fixture(params=ENTRY_POINTS)
def entry_point(request: pytest.FixtureRequest) -> str:
    """The name of each registered dialect, such as `ducklake.sqlite`."""
    return str(request.param)
