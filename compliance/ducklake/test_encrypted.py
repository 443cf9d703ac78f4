"""Encrypted lakes: DuckDB reads what we encrypt, and we read what it does, at every snapshot. Other tests here run on
encrypted lakes as well, see `shared`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from compliance.ducklake.lakes import (
    Ours,
    Program,
    Shared,
    Theirs,
    assert_same_rows,
    changes,
    is_encrypted,
    script,
    writes_encrypted,
)
from compliance.peers.lakes import Place, on_sqlite
from compliance.peers.peer import Peer


@pytest.fixture
def shared(tmp_path: Path, peer: Peer) -> Iterator[Shared]:
    """An encrypted lake that we made, and that keeps no rows in its catalog."""
    place = on_sqlite(tmp_path)
    lakedbapi.connect(f"{place.url}&encrypted=true").close()
    writes_encrypted(peer)
    theirs = Theirs(peer, place)
    theirs.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
    ours = Ours(place)
    yield Shared(place, ours, theirs, False)
    ours.close()
    assert all(is_encrypted(path) or path.suffix == ".puffin" for path in place.data_files)


@pytest.fixture(params=["ours-writes", "duckdb-writes"])
def writer(request: pytest.FixtureRequest, shared: Shared) -> Program:
    return shared.ours if request.param == "ours-writes" else shared.theirs


def in_catalog(place: Place, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(Path(place.data_path).parent / "catalog.sqlite")) as catalog:
        return catalog.execute(query).fetchall()


def test_rows_are_the_same_at_every_snapshot(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE t (i INT, s VARCHAR, l INT[]);
        INSERT INTO t SELECT range, 'v' || range, [range] FROM range(100);
        DELETE FROM t WHERE i % 10 = 3;
        DELETE FROM t WHERE i % 10 = 4;
        UPDATE t SET s = 'new' WHERE i < 3;
        ALTER TABLE t RENAME COLUMN s TO r;
        ALTER TABLE t ADD COLUMN n INT DEFAULT 7;
        INSERT INTO t SELECT range, 'w', NULL, 8 FROM range(100, 120);
        MERGE INTO t USING (SELECT 5 AS k UNION ALL SELECT 500) AS v ON t.i = v.k
            WHEN MATCHED THEN UPDATE SET r = 'merged' WHEN NOT MATCHED THEN INSERT (i, r) VALUES (v.k, 'merged');
        CREATE TABLE u AS SELECT * FROM t WHERE i < 50;
        CALL ducklake_merge_adjacent_files('lake');
        CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)
        """,
    )
    assert_same_rows(shared, "t", "u")
    assert shared.ours.value("SELECT count(*) FROM t WHERE n = 7") == 81
    assert len(shared.place.data_files) > 10


def test_columns_with_fields_are_found_by_their_ids(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE t (s STRUCT(a INT, b STRUCT(c VARCHAR, d INT[])), m MAP(VARCHAR, STRUCT(x INT)));
        INSERT INTO t VALUES ({'a': 1, 'b': {'c': 'x', 'd': [1, 2]}}, MAP {'k': {'x': 5}});
        ALTER TABLE t RENAME COLUMN s.a TO z;
        ALTER TABLE t ADD COLUMN s.a VARCHAR;
        INSERT INTO t SELECT {'z': range, 'b': {'c': 'y', 'd': NULL}, 'a': 'new'}, NULL FROM range(20)
        """,
    )
    assert_same_rows(shared, "t")


def test_files_of_many_pages_and_deletes_of_many_rows(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE t (i INT, few VARCHAR, many VARCHAR);
        INSERT INTO t SELECT range, 'v' || range % 7, md5(range::VARCHAR) FROM range(500000);
        DELETE FROM t WHERE i % 3 = 0;
        DELETE FROM t WHERE i % 5 = 0
        """,
    )
    assert writer.value("SELECT count(*) FROM t") == 266667
    totals = "SELECT count(*), sum(i)::BIGINT, max(few), bit_xor(hash(many)) FROM t"
    for version in (2, 3, 4):
        query = f"{totals} AT (VERSION => {version})"
        assert shared.ours.rows(query)[0][:3] == shared.theirs.rows(query)[0][:3]
    assert shared.ours.value("SELECT count(*) FROM t WHERE many = md5(i::VARCHAR)") == 266667
    assert shared.theirs.value("SELECT count(*) FROM t WHERE many = md5(i::VARCHAR)") == 266667


def test_partitions_show_no_values_in_the_names_of_folders(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE p (k VARCHAR, x INT);
        ALTER TABLE p SET PARTITIONED BY (k, bucket(4, x));
        INSERT INTO p SELECT 'secret' || range % 3, range FROM range(100)
        """,
    )
    assert_same_rows(shared, "p")
    assert len(shared.place.data_files) == 12
    assert not [path for path in shared.place.data_files if "secret" in str(path)]


def test_each_file_has_a_key_of_its_own(shared: Shared) -> None:
    script(
        shared.ours,
        """
        CREATE TABLE t (i INT);
        INSERT INTO t SELECT range FROM range(100);
        INSERT INTO t SELECT range FROM range(100);
        DELETE FROM t WHERE i = 1
        """,
    )
    files = in_catalog(shared.place, "SELECT encryption_key FROM ducklake_data_file")
    files += in_catalog(shared.place, "SELECT encryption_key FROM ducklake_delete_file")
    assert len(set(files)) == 4
    assert {len(key) for (key,) in files} == {24}


def test_sizes_in_the_catalog_are_those_of_the_files(shared: Shared) -> None:
    script(
        shared.ours,
        """
        CREATE TABLE t (i INT);
        INSERT INTO t SELECT range FROM range(100);
        DELETE FROM t WHERE i = 1
        """,
    )
    entries = in_catalog(shared.place, "SELECT path, file_size_bytes, footer_size FROM ducklake_data_file")
    entries += in_catalog(shared.place, "SELECT path, file_size_bytes, footer_size FROM ducklake_delete_file")
    contents = {path.name: path.read_bytes() for path in shared.place.data_files}
    assert {path: (len(data), int.from_bytes(data[-8:-4], "little")) for path, data in contents.items()} == {
        path: (size, footer) for path, size, footer in entries
    }


def test_vectors_of_duckdb_are_read_and_taken_over(shared: Shared) -> None:
    """DuckDB does not encrypt them. They hold positions, no values; but ours are encrypted all the same."""
    script(
        shared.theirs,
        """
        CREATE TABLE t (i INT);
        CALL ducklake_set_option('lake', 'write_deletion_vectors', 'true');
        INSERT INTO t SELECT range FROM range(100);
        DELETE FROM t WHERE i = 1
        """,
    )
    (vector,) = [path for path in shared.place.data_files if path.suffix == ".puffin"]
    assert shared.ours.execute("DELETE FROM t WHERE i = 2") == 1
    assert_same_rows(shared, "t")
    vector.unlink()
    assert len([path for path in shared.place.data_files if "-delete" in path.name]) == 1


def test_the_change_feed_is_the_same(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE t (i INT, s VARCHAR);
        INSERT INTO t SELECT range, 'v' FROM range(50);
        UPDATE t SET s = 'w' WHERE i < 3;
        DELETE FROM t WHERE i > 45
        """,
    )
    assert changes(shared.ours, "t", 1, 4) == changes(shared.theirs, "t", 1, 4)


def test_keys_stand_in_no_message(shared: Shared) -> None:
    shared.theirs.execute("CREATE TABLE t AS SELECT range AS i FROM range(10)")
    ((key, path),) = in_catalog(shared.place, "SELECT encryption_key, path FROM ducklake_data_file")
    for statement in ("EXPLAIN SELECT * FROM t", "EXPLAIN ANALYZE SELECT * FROM t WHERE i > 3"):
        assert key not in str(shared.ours.rows(statement))
    file = next(file for file in shared.place.data_files if file.name == path)
    file.write_bytes(file.read_bytes()[:-20] + b"x" * 12 + file.read_bytes()[-8:])
    with pytest.raises(lakedbapi.Error) as caught:
        shared.ours.rows("SELECT * FROM t")
    assert key not in str(caught.value)


def test_files_of_other_programs_do_not_get_into_the_lake(shared: Shared) -> None:
    shared.theirs.execute("CREATE TABLE t AS SELECT range AS i FROM range(10)")
    with pytest.raises(lakedbapi.NotSupportedError, match="not encrypted"):
        shared.ours.execute(f"CALL ducklake_add_data_files('lake', 't', '{shared.place.data_files[0]}')")
