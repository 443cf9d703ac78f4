"""A small shop in a lake, for each tool. Run by the environment of requirements.txt (`make consumers`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import lakedbapi

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, city VARCHAR DEFAULT 'Kiel');
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), price DECIMAL(9, 2),
    placed TIMESTAMPTZ, tags VARCHAR[], box STRUCT(w INTEGER, h INTEGER));
COMMENT ON TABLE customer IS 'who buys';
COMMENT ON COLUMN orders.price IS 'in euro';
CREATE VIEW spent AS
    SELECT name, sum(price) AS total FROM customer JOIN orders ON customer.id = customer_id GROUP BY name;
INSERT INTO customer (id, name) VALUES (1, 'Ada'), (2, 'Bob');
INSERT INTO orders VALUES
    (1, 1, 9.99, '2026-01-01 12:00:00+00', ['a', 'b'], {'w': 1, 'h': 2}),
    (2, 1, 0.01, '2026-01-02 12:00:00+00', [], NULL),
    (3, 2, 5, NULL, NULL, NULL);
"""


def tool(name: str) -> Any:
    """The module `name`; where it is not installed, the tests are skipped, but fail in CI."""
    try:
        return import_module(name)
    except ImportError as error:
        if os.environ.get("LAKE_CI"):
            raise
        pytest.skip(f"{error}: run 'make consumers'", allow_module_level=True)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The directory of a lake with two customers, three orders and a view; version 1 has all of it."""
    path = tmp_path / "shop"
    with lakedbapi.connect(path) as connection:
        connection.executescript(SHOP)
    return path


@pytest.fixture
def url(shop: Path) -> str:
    return f"lake:///{shop}"


@pytest.fixture
def engine(url: str) -> Iterator[sa.engine.Engine]:
    engine = sa.create_engine(url)
    yield engine
    engine.dispose()


@pytest.fixture
def snapshots(shop: Path) -> Any:
    """Called, it gives the number of snapshots of the lake."""

    def count() -> int:
        with lakedbapi.connect(shop) as connection:
            found: int = connection.execute("SELECT count(*) FROM lake.snapshots()").fetchone()[0]
            return found

    return count
