"""Lakes that DuckDB encrypted: we read them, at every snapshot, and refuse to write what would not be encrypted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import lakedbapi
from compliance.ducklake.lakes import Ours, Shared, Theirs, assert_same_rows
from compliance.peers.lakes import on_sqlite
from compliance.peers.peer import Peer


@pytest.fixture
def shared(tmp_path: Path, peer: Peer) -> Shared:
    """An encrypted lake. Only for such tests DuckDB may write without its httpfs extension, whose random numbers are
    good."""
    peer.execute("SET force_mbedtls_unsafe = true")
    place = on_sqlite(tmp_path)
    theirs = Theirs(peer, place, encrypted=True)
    theirs.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
    return Shared(place, Ours(place), theirs, False)


def test_encrypted_lakes_are_read_at_every_snapshot(shared: Shared) -> None:
    for statement in (
        "CREATE TABLE t (i INT, s VARCHAR, l INT[])",
        "INSERT INTO t SELECT range, 'v' || range, [range] FROM range(100)",
        "DELETE FROM t WHERE i % 10 = 3",
        "DELETE FROM t WHERE i % 10 = 4",
        "UPDATE t SET s = 'new' WHERE i < 3",
        "ALTER TABLE t RENAME COLUMN s TO r",
        "ALTER TABLE t ADD COLUMN n INT DEFAULT 7",
        "INSERT INTO t SELECT range, 'w', NULL, 8 FROM range(100, 120)",
        "CALL ducklake_merge_adjacent_files('lake')",
    ):
        shared.theirs.execute(statement)
    assert all(path.read_bytes()[:4] == b"PARE" for path in shared.place.data_files)
    assert_same_rows(shared, "t")
    assert shared.ours.value("SELECT count(*) FROM t WHERE n = 7") == 80


def test_keys_stand_in_no_message(shared: Shared) -> None:
    shared.theirs.execute("CREATE TABLE t AS SELECT range AS i FROM range(10)")
    with closing(sqlite3.connect(Path(shared.place.data_path).parent / "catalog.sqlite")) as catalog:
        ((key, path),) = catalog.execute("SELECT encryption_key, path FROM ducklake_data_file").fetchall()
    for statement in ("EXPLAIN SELECT * FROM t", "EXPLAIN ANALYZE SELECT * FROM t WHERE i > 3"):
        assert key not in str(shared.ours.rows(statement))
    file = next(file for file in shared.place.data_files if file.name == path)
    file.write_bytes(file.read_bytes()[:-20] + b"x" * 12 + file.read_bytes()[-8:])
    with pytest.raises(lakedbapi.Error) as caught:
        shared.ours.rows("SELECT * FROM t")
    assert key not in str(caught.value)


def test_nothing_is_written_in_clear(shared: Shared) -> None:
    shared.theirs.execute("CREATE TABLE t AS SELECT range AS i FROM range(10)")
    before = shared.place.data_files
    for statement in (
        "INSERT INTO t SELECT range FROM range(20)",
        "DELETE FROM t WHERE i = 1",
        "CREATE TABLE u AS SELECT 1 AS i",
        f"CALL ducklake_add_data_files('lake', 't', '{before[0]}')",
    ):
        with pytest.raises(lakedbapi.Error):
            shared.ours.execute(statement)
    assert shared.place.data_files == before


def test_columns_with_fields_are_refused(shared: Shared) -> None:
    shared.theirs.execute("CREATE TABLE t AS SELECT {'a': 1} AS s")
    with pytest.raises(lakedbapi.NotSupportedError, match="encrypted files"):
        shared.ours.rows("SELECT * FROM t")
