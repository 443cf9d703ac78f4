"""Files laid out in other ways: many row groups, deletion vectors, files from elsewhere, sorted and compressed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compliance.ducklake.lakes import Ours, Program, Shared, Theirs, assert_same_rows, changes, script, texts
from compliance.peers.lakes import Place, on_sqlite
from compliance.peers.peer import Peer


def test_positions_are_physical_across_row_groups(shared: Shared, writer: Program) -> None:
    shared.theirs.execute("CALL ducklake_set_option('lake', 'parquet_row_group_size', '2048')")
    script(
        writer,
        """
        CREATE TABLE t(i int, s varchar);
        INSERT INTO t SELECT i, 's' || i FROM range(20000) r(i)
        """,
    )
    for number, deleter in enumerate(shared.both):
        assert deleter.execute(f"DELETE FROM t WHERE i % 3001 = {number}") == 7
        assert (
            deleter.execute(f"DELETE FROM t WHERE i BETWEEN {5000 * number + 4200} AND {5000 * number + 4300}") == 101
        )
    for reader in shared.both:
        assert reader.rows("SELECT count(*), sum(i)::bigint FROM t") == shared.ours.rows(
            "SELECT count(*), sum(i)::bigint FROM t"
        )
        assert reader.rows("SELECT i FROM t WHERE i IN (2999, 3000, 3001, 3002, 3003)") == [(2999,), (3000,), (3003,)]
        assert reader.rows("SELECT s FROM t WHERE i = 17000") == [("s17000",)]
        assert reader.rows("SELECT rowid FROM t WHERE i = 17000") == [(17000,)]
    assert_same_rows(shared, "t")


def test_deletion_vectors(shared: Shared) -> None:
    shared.theirs.execute("CALL ducklake_set_option('lake', 'write_deletion_vectors', 'true')")
    script(
        shared.theirs,
        """
        CREATE TABLE t(i int);
        INSERT INTO t SELECT * FROM range(1000);
        DELETE FROM t WHERE i % 10 = 3
        """,
    )
    assert any(path.suffix == ".puffin" for path in shared.place.data_files)
    assert_same_rows(shared, "t")
    for number, deleter in enumerate([shared.ours, shared.theirs, shared.ours]):
        assert deleter.execute(f"DELETE FROM t WHERE i % 10 = {4 + number}") == 100
        for reader in shared.both:
            assert reader.value("SELECT count(*) FROM t") == 800 - 100 * number
            assert reader.value("SELECT count(*) FROM t WHERE i % 10 = 3") == 0
    assert shared.ours.value("SELECT count(*) FROM t AT (VERSION => 2)") == 1000


@pytest.mark.parametrize("embedded", [True, False])
def test_a_delete_file_that_took_the_place_of_another_one_is_gone_on_from(
    tmp_path: Path, peer: Peer, embedded: bool
) -> None:
    """Old lakes keep the one before, which ended, for the snapshots that saw it."""
    place = on_sqlite(tmp_path)
    theirs = Theirs(peer, place)
    peer.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
    script(theirs, "CREATE TABLE t(i int);\nINSERT INTO t SELECT * FROM range(20);\nDELETE FROM t WHERE i = 1")
    with sqlite3.connect(tmp_path / "catalog.sqlite") as catalog:
        first = catalog.execute("SELECT * FROM ducklake_delete_file").fetchall()
    theirs.execute("DELETE FROM t WHERE i = 2")
    with sqlite3.connect(tmp_path / "catalog.sqlite") as catalog:
        ((name,),) = catalog.execute("SELECT path FROM ducklake_delete_file").fetchall()
        (path,) = (path for path in place.data_files if path.name == name)
        rows = pq.read_table(path)
        pq.write_table(rows if embedded else rows.drop_columns("_ducklake_internal_snapshot_id"), path)
        catalog.execute(
            "UPDATE ducklake_delete_file SET begin_snapshot = 4, partial_max = NULL, footer_size = NULL, "
            f"file_size_bytes = {path.stat().st_size}"
        )
        catalog.execute(f"INSERT INTO ducklake_delete_file VALUES ({', '.join('?' * len(first[0]))})", first[0])
        catalog.execute("UPDATE ducklake_delete_file SET end_snapshot = 4 WHERE begin_snapshot = 3")
        catalog.execute("DELETE FROM ducklake_files_scheduled_for_deletion")
    ours = Ours(place)
    shared = Shared(place, ours, theirs, False)
    assert_same_rows(shared, "t")
    ours.execute("DELETE FROM t WHERE i = 5")
    assert_same_rows(shared, "t")
    deleted = [("3", "1", "delete", "1"), ("4", "2", "delete", "2"), ("5", "5", "delete", "5")]
    assert changes(ours, "t", 3, 5) == deleted
    ours.close()


def test_two_delete_files_of_one_data_file_add_up(shared: Shared) -> None:
    """A flush leaves a second one where inlined deletes belong to a file that was replaced since."""
    script(
        shared.theirs,
        """
        CREATE TABLE t(i int);
        INSERT INTO t SELECT * FROM range(40);
        DELETE FROM t WHERE i = 1;
        DELETE FROM t WHERE i >= 20;
        DELETE FROM t;
        CALL ducklake_flush_inlined_data('lake')
        """,
    )
    counts = [shared.ours.value(f"SELECT count(*) FROM t AT (VERSION => {version})") for version in range(2, 6)]
    assert counts == [40, 39, 19, 0]
    assert shared.ours.rows("SELECT i FROM t AT (VERSION => 4) ORDER BY i") == [(0,), *((i,) for i in range(2, 20))]


def test_files_that_were_added_from_elsewhere(shared: Shared, tmp_path: Path) -> None:
    """Their columns are found by name, since they have no field ids; what they lack is the column's default."""
    if shared.encrypted:
        pytest.skip("an encrypted lake takes no plain file, of either program")
    outside = tmp_path / "outside.parquet"
    shared.theirs.execute(f"COPY (SELECT 'n' || i AS name, i AS id FROM range(100) r(i)) TO '{outside}'")
    script(
        shared.theirs,
        f"""
        CREATE TABLE t(id bigint, name varchar, extra int DEFAULT 5);
        INSERT INTO t SELECT i, 'own', 1 FROM range(1000, 1020) r(i);
        CALL ducklake_add_data_files('lake', 't', '{outside}', allow_missing => true);
        ALTER TABLE t RENAME name TO label
        """,
    )
    assert_same_rows(shared, "t")
    for number, deleter in enumerate(shared.both):
        assert deleter.execute(f"DELETE FROM t WHERE id % 10 = {number}") == 12
        assert deleter.execute(f"UPDATE t SET label = 'new' WHERE id = {50 + number + 5}") == 1
    assert_same_rows(shared, "t")
    assert outside.exists()


@pytest.mark.parametrize(
    "option", ["'parquet_compression', 'zstd'", "'parquet_version', '2'", "'hive_file_pattern', false"]
)
def test_options_of_the_lake_are_honoured(shared: Shared, writer: Program, option: str) -> None:
    shared.theirs.execute(f"CALL ducklake_set_option('lake', {option})")
    script(
        writer,
        """
        CREATE TABLE t(i int, p int);
        ALTER TABLE t SET PARTITIONED BY (p);
        INSERT INTO t SELECT i, i % 3 FROM range(100) r(i);
        UPDATE t SET p = 7 WHERE i = 5
        """,
    )
    assert_same_rows(shared, "t")
    if "hive" in option:
        assert not any("p=" in str(path) for path in shared.place.data_files)
    if "zstd" in option and not shared.encrypted:  # DuckDB shows metadata of plain files only.
        codec = "SELECT DISTINCT compression FROM parquet_metadata('{}')"
        written = [path for path in shared.place.data_files if "delete" not in path.name]
        assert {shared.theirs.value(codec.format(path)) for path in written} == {"ZSTD"}


def test_sorted_tables(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE t(i int, s varchar);
        ALTER TABLE t SET SORTED BY (s DESC, i ASC);
        INSERT INTO t SELECT i, 's' || (i % 7) FROM range(100) r(i);
        DELETE FROM t WHERE i = 50
        """,
    )
    assert_same_rows(shared, "t")
    assert shared.ours.rows("SELECT s, i FROM t LIMIT 1") == [("s6", 6)]


def test_a_lake_made_by_us_serves_duckdb(shared: Shared) -> None:
    """The other tests share a lake that DuckDB made; here DuckDB alters what we made, and the other way round."""
    script(
        shared.ours,
        """
        CREATE SCHEMA made;
        CREATE TABLE made.t(i int NOT NULL DEFAULT 3, st struct(a int, b varchar[]));
        INSERT INTO made.t VALUES (1, {'a': 1, 'b': ['x']});
        COMMENT ON TABLE made.t IS 'ours'
        """,
    )
    script(
        shared.theirs,
        """
        ALTER TABLE made.t ADD COLUMN st.c double;
        ALTER TABLE made.t ALTER i TYPE bigint;
        INSERT INTO made.t VALUES (DEFAULT, {'a': 2, 'b': [], 'c': 2.5});
        ALTER TABLE made.t RENAME TO renamed
        """,
    )
    script(shared.ours, "ALTER TABLE made.renamed DROP COLUMN st.a;\nUPDATE made.renamed SET i = i + 1")
    for reader in shared.both:
        assert reader.rows("SELECT i, st.b, st.c FROM made.renamed ORDER BY i") == [(2, ["x"], None), (4, [], 2.5)]
    script(shared.theirs, "DROP TABLE made.renamed;\nDROP SCHEMA made")
    assert shared.ours.rows("SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'made'") == []


def test_a_table_without_rows(shared: Shared, writer: Program) -> None:
    writer.execute("CREATE TABLE t(i int)")
    for program in shared.both:
        assert program.rows("SELECT * FROM t") == []
        assert program.execute("DELETE FROM t") == 0
        assert program.execute("UPDATE t SET i = 1") == 0
    assert texts(shared.ours, "t") == texts(shared.theirs, "t") == []


def test_a_whole_new_lake_by_us(place: Place, peer: Peer) -> None:
    ours = Ours(place)
    script(ours, "CREATE TABLE t(i int);\nINSERT INTO t SELECT * FROM range(100);\nDELETE FROM t WHERE i = 7")
    theirs = Theirs(peer, place)
    assert theirs.value("SELECT count(*) FROM t") == 99
    assert theirs.execute("DELETE FROM t WHERE i = 8") == 1
    assert theirs.value("SELECT count(*) FROM t AT (VERSION => 2)") == 100
    assert ours.value("SELECT count(*) FROM t") == 98
    ours.close()


def test_deletion_vectors_of_ours_keep_their_history(shared: Shared) -> None:
    """DuckDB 1.5.5 forgets the vector that it replaces; here every snapshot and the change feed stay right for both."""
    shared.theirs.execute("CALL ducklake_set_option('lake', 'write_deletion_vectors', 'true')")
    script(
        shared.ours,
        """
        CREATE TABLE t(i int);
        INSERT INTO t SELECT * FROM range(1000);
        DELETE FROM t WHERE i % 10 = 3;
        INSERT INTO t SELECT * FROM range(1000, 2000);
        DELETE FROM t WHERE i % 10 = 4;
        DELETE FROM t WHERE i % 10 = 5
        """,
    )
    suffixes = {path.suffix for path in shared.place.data_files if "delete" in path.name}
    assert suffixes == ({".parquet"} if shared.encrypted else {".puffin", ".parquet"})
    for reader in shared.both:
        counts = [reader.value(f"SELECT count(*) FROM t AT (VERSION => {version})") for version in range(2, 7)]
        assert counts == [1000, 900, 1900, 1700, 1500]
    last = shared.last()
    assert changes(shared.ours, "t", 1, last) == changes(shared.theirs, "t", 1, last)
    shared.theirs.execute("CALL ducklake_set_option('lake', 'write_deletion_vectors', 'false')")
    for number, deleter in enumerate(shared.both):
        assert deleter.execute(f"DELETE FROM t WHERE i % 10 = {6 + number}") == 200
        assert_same_rows(shared, "t")
    last = shared.last()
    assert changes(shared.ours, "t", 1, last) == changes(shared.theirs, "t", 1, last)
