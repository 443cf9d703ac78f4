from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compliance.ducklake.lakes import Ours, Program, Shared, Theirs
from compliance.peers.lakes import Place, on_postgresql, on_sqlite
from compliance.peers.peer import Peer


@pytest.fixture(params=["sqlite-inlined", "sqlite-files", "postgresql-inlined"])
def shared(request: pytest.FixtureRequest, tmp_path: Path, peer: Peer) -> Iterator[Shared]:
    """An empty lake for both; small changes go inlined into the catalog, or all to files."""
    backend, _, storage = request.param.partition("-")
    if backend == "sqlite":
        yield from _opened(on_sqlite(tmp_path), peer, storage == "inlined")
    else:
        with on_postgresql(tmp_path) as place:
            yield from _opened(place, peer, storage == "inlined")


def _opened(place: Place, peer: Peer, inlined: bool) -> Iterator[Shared]:
    theirs = Theirs(peer, place)
    if not inlined:
        peer.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
    ours = Ours(place)
    yield Shared(place, ours, theirs, inlined)
    ours.close()
    peer.reset()


@pytest.fixture(params=["ours-writes", "duckdb-writes"])
def writer(request: pytest.FixtureRequest, shared: Shared) -> Program:
    """Each of the two in turn; `shared.both` read."""
    return shared.ours if request.param == "ours-writes" else shared.theirs
