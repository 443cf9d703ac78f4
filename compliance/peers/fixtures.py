"""pytest fixtures: `peer` (DuckDB with ducklake) and `place` (an empty place for a lake, on each catalog backend)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compliance.peers.lakes import Place, on_postgresql, on_sqlite
from compliance.peers.needed import needed_peers
from compliance.peers.peer import Peer


class _Pool:
    """One peer process for a whole run; started again when a test killed or crashed it."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._peer: Peer | None = None

    def fresh(self) -> Peer:
        if self._peer is not None and self._peer.alive:
            self._peer.reset()
        else:
            self._peer = Peer(self._python)
        return self._peer

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()


@pytest.fixture(scope="session")
def peer_pool() -> Iterator[_Pool]:
    pool = _Pool(needed_peers("DuckDB with ducklake"))
    yield pool
    pool.close()


@pytest.fixture
def peer(peer_pool: _Pool) -> Peer:
    """DuckDB with its ducklake extension, nothing attached."""
    return peer_pool.fresh()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield on_sqlite(tmp_path)
    else:
        with on_postgresql(tmp_path) as place:
            yield place


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return on_sqlite(tmp_path)
