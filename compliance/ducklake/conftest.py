from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compliance.ducklake.lakes import Ours, Program, Shared, Theirs, is_encrypted, writes_encrypted
from compliance.peers.lakes import Place, on_postgresql, on_sqlite
from compliance.peers.peer import Peer


@pytest.fixture(params=["sqlite-inlined", "sqlite-files", "sqlite-encrypted", "postgresql-inlined"])
def shared(request: pytest.FixtureRequest, tmp_path: Path, peer: Peer) -> Iterator[Shared]:
    """An empty lake for both; small changes go inlined into the catalog, or all to files, which may be encrypted."""
    backend, _, storage = request.param.partition("-")
    if backend == "sqlite":
        yield from _opened(on_sqlite(tmp_path), peer, storage)
    else:
        with on_postgresql(tmp_path) as place:
            yield from _opened(place, peer, storage)


def _opened(place: Place, peer: Peer, storage: str) -> Iterator[Shared]:
    encrypted = storage == "encrypted"
    theirs = Theirs(peer, place, encrypted=encrypted)
    if encrypted:
        writes_encrypted(peer)
    if storage != "inlined":
        peer.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
    ours = Ours(place)
    yield Shared(place, ours, theirs, storage == "inlined", encrypted)
    ours.close()
    peer.reset()
    if encrypted:
        # DuckDB leaves its Puffin files plain; we write none.
        assert all(is_encrypted(path) for path in place.data_files if path.suffix != ".puffin")


@pytest.fixture(params=["ours-writes", "duckdb-writes"])
def writer(request: pytest.FixtureRequest, shared: Shared) -> Program:
    """Each of the two in turn; `shared.both` read."""
    return shared.ours if request.param == "ours-writes" else shared.theirs
