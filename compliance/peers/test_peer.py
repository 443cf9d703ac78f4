"""The peer itself works: what the other tests here compare with."""

from __future__ import annotations

import pyarrow as pa
import pytest

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer, PeerError


def test_peer_is_the_pinned_version(peer: Peer) -> None:
    assert peer.value("SELECT version()") == "v1.5.5"


def test_peer_writes_and_reads_a_lake(peer: Peer, place: Place) -> None:
    peer.attach(place.location, place.data_path)
    peer.execute("CREATE TABLE t(i int, s varchar)")
    peer.execute("INSERT INTO t SELECT i, 'v' || i FROM range(50) r(i)")
    peer.execute("DELETE FROM t WHERE i >= 2")
    assert peer.rows("SELECT * FROM t ORDER BY i") == [(0, "v0"), (1, "v1")]
    assert peer.value("SELECT count(*) FROM t AT (VERSION => 2)") == 50
    assert place.data_files


def test_peer_takes_arrow_tables(peer: Peer) -> None:
    result = peer.execute("SELECT sum(i)::bigint AS s FROM numbers", numbers=pa.table({"i": [1, 2, 3]}))
    assert result.to_pydict() == {"s": [6]}


def test_peer_reports_errors_and_goes_on(peer: Peer) -> None:
    with pytest.raises(PeerError, match="Catalog Error"):
        peer.execute("SELECT * FROM missing")
    assert peer.value("SELECT 1") == 1
