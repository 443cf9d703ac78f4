"""A bucket in each of the stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compliance.stores.servers import STORES, Store


@pytest.fixture(scope="session", params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    with STORES[request.param]() as running:
        yield running
