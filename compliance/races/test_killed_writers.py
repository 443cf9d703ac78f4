"""Writers that are killed at random moments: the next one finds a consistent lake with all that was acknowledged."""

from __future__ import annotations

import random

import pytest

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from compliance.races.processes import LONG, killed, lake, missing, snapshot_ids, value

COMMITS = 1000 if LONG else 100
ROWS = 30 * 2 * COMMITS + 1000


@pytest.mark.timeout(1800 if LONG else 600)
@pytest.mark.parametrize("inlined", [True, False], ids=["inlined", "files"])
def test_what_was_acknowledged_is_there_whole_after_kills(place: Place, peer: Peer, inlined: bool) -> None:
    lake(
        place,
        "CREATE TABLE plus (id INTEGER)",
        "CREATE TABLE minus (id INTEGER)",
        f"INSERT INTO minus SELECT i FROM range({ROWS}) r(i)",
        inlined=inlined,
    )
    first = snapshot_ids(place)[-1]
    for commits, kills in killed("transfer", place, COMMITS, random.Random(int(inlined)), most=12, pause=0.05):
        made = snapshot_ids(place)
        assert made == list(range(len(made)))
        assert commits <= made[-1] - first <= commits + kills
        moved = 30 * (made[-1] - first)
        assert value(place, "SELECT count(DISTINCT id) FROM plus") == moved
        assert value(place, "SELECT count(DISTINCT id) FROM minus") == ROWS - moved
        assert not missing(place)
    peer.attach(place.location)
    assert peer.value("SELECT (SELECT count(*) FROM plus) + (SELECT count(*) FROM minus)") == ROWS
