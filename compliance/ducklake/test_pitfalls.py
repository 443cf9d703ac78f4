"""The faults that a second implementation of DuckLake most likely has: each written by one program, read by both."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from compliance.ducklake.lakes import Ours, Program, Shared, Theirs, changes, script, texts
from compliance.peers.lakes import on_sqlite
from compliance.peers.peer import Peer, PeerError
from lakedbapi import ConflictError, Error


def test_inlined_rows_and_deletes_are_merged_on_every_read_path(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE t(i int, s varchar);
        INSERT INTO t SELECT i, 'v'||i FROM range(50) r(i);
        INSERT INTO t VALUES (100, 'a');
        DELETE FROM t WHERE i IN (3, 100);
        UPDATE t SET s = 'u' WHERE i = 5;
        ALTER TABLE t ADD COLUMN n int DEFAULT 7;
        INSERT INTO t VALUES (101, 'b', 1);
        """,
    )
    for reader in shared.both:
        assert reader.rows("SELECT count(*), sum(n)::int, max(i) FROM t") == [(50, 344, 101)]
        assert reader.value("SELECT count(*) FROM t AT (VERSION => 3)") == 51
        assert reader.rows("SELECT s, n FROM t WHERE i = 5") == [("u", 7)]
        assert reader.value("SELECT count(*) FROM t WHERE n = 7") == 49


def test_table_statistics_stay_wide_enough(shared: Shared) -> None:
    script(shared.theirs, "CREATE TABLE s(i int);\nINSERT INTO s SELECT * FROM range(50)")
    script(shared.ours, "INSERT INTO s SELECT * FROM range(50, 100);\nUPDATE s SET i = -1 WHERE i = 0")
    for reader in shared.both:
        assert reader.value("SELECT count(*) FROM s WHERE i > 50") == 49
        assert reader.rows("SELECT min(i), max(i) FROM s WHERE true") == [(-1, 99)]
        assert reader.rows("SELECT min(i), max(i) FROM s") == [(-1, 99)]


def test_table_statistics_know_nulls_and_nan(shared: Shared) -> None:
    script(shared.theirs, "CREATE TABLE s(f double);\nINSERT INTO s SELECT i / 2 FROM range(50) r(i)")
    script(shared.ours, "INSERT INTO s VALUES ('nan'), (NULL);\nINSERT INTO s SELECT 1000 FROM range(20)")
    for reader in shared.both:
        assert reader.value("SELECT count(*) FROM s WHERE f IS NULL") == 1
        assert reader.value("SELECT count(*) FROM s WHERE f > 1e308") == 1
        assert reader.value("SELECT count(*) FROM s WHERE f > 900") == 21


def test_table_statistics_of_a_column_added_later(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE s(i int);
        INSERT INTO s SELECT * FROM range(50);
        ALTER TABLE s ADD COLUMN n int DEFAULT 5;
        INSERT INTO s SELECT i, 100 + i FROM range(50, 100) r(i)
        """,
    )
    for reader in shared.both:
        assert reader.value("SELECT count(*) FROM s WHERE n = 5") == 50
        assert reader.rows("SELECT min(n), max(n) FROM s") == [(5, 199)]


def test_long_strings_that_cut_statistics_cannot_bound(shared: Shared) -> None:
    script(
        shared.ours,
        """
        CREATE TABLE s(c varchar);
        INSERT INTO s SELECT repeat('é', 600) || i FROM range(20) r(i);
        INSERT INTO s SELECT repeat('z', 600) || i FROM range(20) r(i)
        """,
    )
    for reader in shared.both:
        assert reader.value("SELECT count(*) FROM s WHERE c > 'zz~'") == 20
        assert reader.value("SELECT count(*) FROM s WHERE c < 'zz~'") == 20
        assert reader.value("SELECT max(c) FROM s") == "é" * 600 + "9"


def test_later_deletes_on_a_file_keep_the_earlier_ones_and_history(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE d(i int);
        INSERT INTO d SELECT * FROM range(20);
        DELETE FROM d WHERE i = 1;
        DELETE FROM d WHERE i = 2;
        DELETE FROM d WHERE i = 3
        """,
    )
    for reader in shared.both:
        counts = [reader.value(f"SELECT count(*) FROM d AT (VERSION => {version})") for version in (2, 3, 4, 5)]
        assert counts == [20, 19, 18, 17]
        assert reader.value("SELECT count(*) FROM d") == 17
        feed = changes(reader, "d", 3, 5)
        assert [(row[0], row[2], row[3]) for row in feed] == [
            ("3", "delete", "1"),
            ("4", "delete", "2"),
            ("5", "delete", "3"),
        ]


def test_deletes_by_both_programs_on_one_file_add_up(shared: Shared) -> None:
    script(shared.theirs, "CREATE TABLE d(i int);\nINSERT INTO d SELECT * FROM range(30)")
    for i, program in enumerate([shared.ours, shared.theirs, shared.ours, shared.theirs]):
        assert program.execute(f"DELETE FROM d WHERE i = {i}") == 1
        for reader in shared.both:
            assert reader.value("SELECT count(*) FROM d") == 29 - i
            assert reader.value("SELECT min(i) FROM d WHERE i >= 0") == i + 1
    for reader in shared.both:
        assert [reader.value(f"SELECT count(*) FROM d AT (VERSION => {v})") for v in range(2, 7)] == [
            30,
            29,
            28,
            27,
            26,
        ]


def test_statements_of_a_transaction_see_and_change_its_own_rows(shared: Shared, writer: Program) -> None:
    script(writer, "CREATE TABLE d(i int);\nINSERT INTO d SELECT * FROM range(20)")
    script(
        writer,
        """
        BEGIN;
        INSERT INTO d VALUES (201), (202);
        UPDATE d SET i = 203 WHERE i = 201;
        DELETE FROM d WHERE i = 202;
        UPDATE d SET i = 204 WHERE i = 203;
        COMMIT
        """,
    )
    for reader in shared.both:
        assert reader.rows("SELECT i FROM d WHERE i > 200") == [(204,)]
        assert reader.value("SELECT count(*) FROM d") == 21
        if writer is shared.ours:
            assert [row[2:] for row in changes(reader, "d", 3, 3)] == [("insert", "204")]


@pytest.mark.parametrize(
    "maintenance",
    [
        "CALL ducklake_rewrite_data_files('lake', 'd', delete_threshold => 0)",
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_flush_inlined_data('lake')",
    ],
)
@pytest.mark.parametrize("expire", [False, True], ids=["", "expired"])
def test_a_file_replaced_meanwhile_brings_no_deleted_row_back(shared: Shared, maintenance: str, expire: bool) -> None:
    script(
        shared.theirs,
        """
        CREATE TABLE d(i int);
        INSERT INTO d SELECT * FROM range(20);
        INSERT INTO d SELECT * FROM range(20, 40);
        DELETE FROM d WHERE i IN (2, 22);
        INSERT INTO d VALUES (100)
        """,
    )
    shared.ours.execute("BEGIN")
    assert shared.ours.value("SELECT count(*) FROM d") == 39
    shared.theirs.execute(maintenance)
    if expire:
        old = list(range(shared.last()))
        shared.theirs.execute(f"CALL ducklake_expire_snapshots('lake', versions => {old})")
    try:
        assert shared.ours.execute("DELETE FROM d WHERE i = 5") == 1
        shared.ours.execute("COMMIT")
        gone = 1
    except ConflictError:
        shared.ours.connection.rollback()
        gone = 0
    for reader in shared.both:
        assert reader.value("SELECT count(*) FROM d WHERE i = 5") == 1 - gone
        assert reader.value("SELECT count(*) FROM d") == 39 - gone


def test_duckdb_loses_no_update_of_ours(shared: Shared) -> None:
    if shared.place.backend == "sqlite":
        pytest.skip("an open transaction of DuckDB locks a SQLite catalog")
    script(shared.theirs, "CREATE TABLE d(i int, n int);\nINSERT INTO d SELECT i, 0 FROM range(20) r(i)")
    script(shared.theirs, "BEGIN;\nUPDATE d SET n = n + 1 WHERE i = 5")
    assert shared.ours.execute("UPDATE d SET n = n + 10 WHERE i = 5") == 1
    with pytest.raises(PeerError):
        shared.theirs.execute("COMMIT")
    for reader in shared.both:
        assert reader.value("SELECT n FROM d WHERE i = 5") == 10


def test_a_lost_update_of_ours_is_a_conflict(shared: Shared) -> None:
    script(shared.theirs, "CREATE TABLE d(i int, n int);\nINSERT INTO d SELECT i, 0 FROM range(20) r(i)")
    script(shared.ours, "BEGIN;\nUPDATE d SET n = n + 1 WHERE i = 5")
    assert shared.theirs.execute("UPDATE d SET n = n + 10 WHERE i = 5") == 1
    with pytest.raises(ConflictError):
        shared.ours.execute("COMMIT")
    for reader in shared.both:
        assert reader.value("SELECT n FROM d WHERE i = 5") == 10


def test_a_rebased_commit_deletes_at_its_own_snapshot(shared: Shared) -> None:
    script(
        shared.theirs,
        """
        CREATE TABLE d(i int);
        CREATE TABLE other(i int);
        INSERT INTO d SELECT * FROM range(20);
        DELETE FROM d WHERE i = 1
        """,
    )
    before = shared.last()
    script(shared.ours, "BEGIN;\nDELETE FROM d WHERE i = 6")
    shared.theirs.execute("INSERT INTO other VALUES (1)")
    shared.ours.execute("COMMIT")
    assert shared.last() == before + 2
    for reader in shared.both:
        assert reader.value(f"SELECT count(*) FROM d AT (VERSION => {before + 1}) WHERE i = 6") == 1
        assert reader.value(f"SELECT count(*) FROM d AT (VERSION => {before + 2}) WHERE i = 6") == 0
        assert reader.value(f"SELECT count(*) FROM d AT (VERSION => {before - 1})") == 20
        assert reader.value("SELECT count(*) FROM d") == 18


def test_columns_are_found_by_field_id_through_renames_and_readded_names(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE c(x varchar, y varchar, st struct(a int, b int));
        INSERT INTO c VALUES ('in-x', 'in-y', {'a': 1, 'b': 2});
        ALTER TABLE c RENAME x TO tmp;
        ALTER TABLE c RENAME y TO x;
        ALTER TABLE c RENAME tmp TO y;
        ALTER TABLE c DROP COLUMN x;
        ALTER TABLE c ADD COLUMN x varchar;
        ALTER TABLE c DROP COLUMN st.a;
        ALTER TABLE c ADD COLUMN st.a varchar
        """,
    )
    for reader in shared.both:
        assert reader.rows("SELECT y, x, st.b, st.a FROM c") == [("in-x", None, 2, None)]
        assert reader.rows("SELECT x, y, st.a FROM c AT (VERSION => 2)") == [("in-x", "in-y", 1)]


def test_maintenance_keeps_what_is_still_needed(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE a(i int);
        INSERT INTO a SELECT * FROM range(20);
        ALTER TABLE a RENAME TO b;
        INSERT INTO b VALUES (99);
        CREATE TABLE k AS SELECT 1 i;
        DROP TABLE k;
        CREATE TABLE k AS SELECT 2 i;
        DELETE FROM b WHERE i = 4
        """,
    )
    for call in (
        "ducklake_expire_snapshots('lake', older_than => now())",
        "ducklake_cleanup_old_files('lake', cleanup_all => true)",
        "ducklake_delete_orphaned_files('lake', cleanup_all => true)",
    ):
        shared.theirs.execute(f"CALL {call}")
    for reader in shared.both:
        assert reader.value("SELECT count(*) FROM b") == 20
        assert reader.rows("SELECT i FROM k") == [(2,)]
        assert reader.value("SELECT count(i) FROM b WHERE i = 99") == 1


@pytest.mark.parametrize(
    "maintenance",
    [
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_rewrite_data_files('lake', 'm', delete_threshold => 0)",
    ],
)
def test_maintenance_changes_neither_history_nor_row_ids(shared: Shared, writer: Program, maintenance: str) -> None:
    script(
        writer,
        """
        CREATE TABLE m(i int);
        INSERT INTO m SELECT * FROM range(20);
        INSERT INTO m SELECT * FROM range(20, 40);
        UPDATE m SET i = 1000 WHERE i = 25
        """,
    )
    versions = range(2, shared.last() + 1)

    def history() -> list[list[tuple[int, int]]]:
        reads = [f"SELECT rowid, i FROM m AT (VERSION => {version}) ORDER BY ALL" for version in versions]
        return [shared.ours.rows(sql) for sql in [*reads, "SELECT rowid, i FROM m ORDER BY ALL"]]

    before, feed = history(), changes(shared.ours, "m", 1, versions[-1])
    shared.theirs.execute(maintenance)
    assert history() == before
    assert changes(shared.ours, "m", 1, versions[-1]) == feed
    assert shared.theirs.rows("SELECT rowid, i FROM m ORDER BY ALL") == before[-1]


def test_flushing_inlined_data_keeps_rows_and_row_ids(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE m(i int);
        INSERT INTO m VALUES (1), (2), (3);
        INSERT INTO m SELECT * FROM range(20, 40);
        UPDATE m SET i = 1000 WHERE i IN (2, 25);
        DELETE FROM m WHERE i IN (3, 30)
        """,
    )
    before = shared.ours.rows("SELECT rowid, i FROM m ORDER BY ALL")
    history = [shared.ours.rows(f"SELECT i FROM m AT (VERSION => {version}) ORDER BY ALL") for version in range(2, 6)]
    shared.theirs.execute("CALL ducklake_flush_inlined_data('lake')")
    for reader in shared.both:
        assert reader.rows("SELECT rowid, i FROM m ORDER BY ALL") == before
        assert [reader.rows(f"SELECT i FROM m AT (VERSION => {v}) ORDER BY ALL") for v in range(2, 6)] == history


def test_row_ids_are_unique_and_survive_updates(shared: Shared) -> None:
    script(
        shared.ours,
        """
        CREATE TABLE r(i int);
        INSERT INTO r SELECT * FROM range(20);
        UPDATE r SET i = -1 WHERE i = 3
        """,
    )
    shared.theirs.execute("INSERT INTO r SELECT * FROM range(20)")
    shared.ours.execute("INSERT INTO r VALUES (7)")
    shared.theirs.execute("INSERT INTO r VALUES (8)")
    for reader in shared.both:
        assert reader.value("SELECT count(*) - count(DISTINCT rowid) FROM r") == 0
        assert reader.rows("SELECT rowid FROM r WHERE i = -1") == [(3,)]


def test_values_are_encoded_as_the_other_reads_them(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE v(b boolean, f double, d decimal(10,2), ts timestamptz, s varchar DEFAULT 'it''s',
            bl blob, u uuid, l varchar[], st struct(q varchar));
        INSERT INTO v VALUES (true, 'nan', -3.5, '2020-01-01 00:00:00+05:30', DEFAULT, '\\xAA\\x00'::blob,
            'f79c3e09-677c-4bbd-a479-3f349cb785e7', ['a,b', 'NULL', NULL, ''], {'q': 'x''y'})
        """,
    )
    for reader in shared.both:
        assert reader.rows("SELECT b, isnan(f), d::varchar, epoch(ts)::bigint, s, hex(bl), u::varchar FROM v") == [
            (True, True, "-3.50", 1577817000, "it's", "AA00", "f79c3e09-677c-4bbd-a479-3f349cb785e7")
        ]
        assert reader.rows("SELECT l FROM v") == [(["a,b", "NULL", None, ""],)]
        if not (shared.inlined and reader is writer is shared.theirs):  # it loses the quote of its own inlined structs
            assert reader.value("SELECT st.q FROM v") == "x'y"
        for predicate in ("f > 1e308", "d < -3", "b", "bl = '\\xAA\\x00'::blob", "s = 'it''s'", "l[2] = 'NULL'"):
            assert reader.value(f"SELECT count(*) FROM v WHERE {predicate}") == 1, predicate


def test_a_default_that_reads_null_is_a_text(shared: Shared) -> None:
    script(shared.ours, "CREATE TABLE v(i int, n varchar DEFAULT 'NULL', m varchar DEFAULT NULL)")
    for writer in shared.both:
        writer.execute("INSERT INTO v(i) VALUES (1)")
    for reader in shared.both:
        assert reader.rows("SELECT * FROM v") == [(1, "NULL", None)] * 2


def test_partitions_of_nulls_empty_and_special_texts(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE p(k varchar, ts timestamp, x int);
        INSERT INTO p VALUES ('old', '2020-05-05', 0);
        ALTER TABLE p SET PARTITIONED BY (k, month(ts), bucket(4, x));
        INSERT INTO p VALUES (NULL, '2020-01-31', 1), ('', '2021-01-01', 2), ('a b/c=%é', '2020-12-31', 3),
            ('old', '2020-05-06', NULL)
        """,
    )
    for reader in shared.both:
        for predicate, expected in {
            "k IS NULL": 1,
            "k = ''": 1,
            "k = 'old'": 2,
            "k = 'a b/c=%é'": 1,
            "k IS NOT NULL": 4,
            "ts >= '2020-12-01' AND x = 3": 1,
            "month(ts) = 5": 2,
            "x IS NULL": 1,
        }.items():
            assert reader.value(f"SELECT count(*) FROM p WHERE {predicate}") == expected, predicate
    assert shared.ours.execute("DELETE FROM p WHERE k = 'old' AND x = 0") == 1
    assert shared.theirs.execute("DELETE FROM p WHERE k = 'old' AND x IS NULL") == 1
    for reader in shared.both:
        assert reader.value("SELECT count(*) FROM p") == 3


def test_names_and_views_are_bound_to_the_catalog_not_to_its_alias(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE SCHEMA "we ird";
        CREATE TABLE "we ird"."T""x"("Sel,ect" int);
        INSERT INTO "we ird"."t""X" VALUES (5);
        CREATE VIEW vv(a) AS SELECT "Sel,ect" FROM lake."we ird"."T""x";
        CREATE VIEW literal AS SELECT 'lake.x' AS text, count(*) AS n FROM lake."we ird"."T""x"
        """,
    )
    for reader in shared.both:
        assert reader.rows("SELECT a FROM vv") == [(5,)]
        assert reader.rows("SELECT text, n FROM literal") == [("lake.x", 1)]
        assert reader.rows('SELECT "sel,ECT" FROM "WE IRD"."t""X"') == [(5,)]
    words = [
        row[0]
        for row in catalog_rows(shared, "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id")
    ]
    assert 'created_table:"we ird"."T""x"' in words
    elsewhere = Ours(shared.place, alias="elsewhere")
    assert elsewhere.rows("SELECT a FROM vv") == [(5,)]
    assert elsewhere.rows("SELECT text FROM literal") == [("lake.x",)]
    elsewhere.close()
    shared.theirs.peer.reset()
    shared.theirs.peer.attach(shared.place.location, alias="elsewhere")
    assert shared.theirs.rows("SELECT a FROM vv") == [(5,)]
    assert shared.theirs.rows("SELECT text FROM literal") == [("lake.x",)]


def catalog_rows(shared: Shared, sql: str) -> list[tuple[str, ...]]:
    """Rows of the catalog's own tables."""
    if shared.place.backend == "sqlite":
        with sqlite3.connect(shared.place.location.removeprefix("ducklake:sqlite:")) as catalog:
            return catalog.execute(sql).fetchall()
    import psycopg

    with psycopg.connect(shared.place.location.removeprefix("ducklake:postgres:")) as server:
        return server.execute(sql).fetchall()  # type: ignore[call-overload, no-any-return]


def test_times_and_versions_outside_of_the_history(shared: Shared, writer: Program) -> None:
    script(writer, "CREATE TABLE t(i int);\nINSERT INTO t SELECT * FROM range(20)")
    for reader in shared.both:
        with pytest.raises((Error, PeerError), match=re.compile("snapshot", re.IGNORECASE)):
            reader.rows("SELECT * FROM t AT (VERSION => 999)")
        with pytest.raises((Error, PeerError), match=re.compile("snapshot", re.IGNORECASE)):
            reader.rows("SELECT * FROM t AT (TIMESTAMP => '1999-01-01')")
        assert reader.value("SELECT count(*) FROM t AT (TIMESTAMP => '2999-01-01')") == 20


def test_a_timestamp_means_the_instant_whatever_its_offset(shared: Shared, writer: Program) -> None:
    script(writer, "CREATE TABLE t(i int);\nINSERT INTO t SELECT * FROM range(20)")
    written = shared.last()
    writer.execute("DELETE FROM t WHERE i = 3")
    moment = f"(SELECT snapshot_time FROM ducklake_snapshots('lake') WHERE snapshot_id = {written})"
    utc = shared.theirs.value(f"SELECT strftime({moment} AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S.%f')")
    india = shared.theirs.value(f"SELECT strftime({moment} AT TIME ZONE 'Asia/Kolkata', '%Y-%m-%d %H:%M:%S.%f')")
    for reader in shared.both:
        for text in (utc, f"{utc}+00", f"{india}+05:30"):
            assert reader.value(f"SELECT count(*) FROM t AT (TIMESTAMP => '{text}')") == 20, text


def test_statements_that_change_nothing_make_no_snapshot(shared: Shared, writer: Program) -> None:
    script(writer, "CREATE TABLE t(i int);\nINSERT INTO t SELECT * FROM range(20)")
    before = shared.last()
    script(
        writer,
        """
        DELETE FROM t WHERE false;
        INSERT INTO t SELECT * FROM t WHERE false;
        UPDATE t SET i = 1 WHERE i = 12345;
        BEGIN;
        COMMIT
        """,
    )
    assert shared.last() == before


def test_a_renamed_table_is_found_by_the_name_it_had_then(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE old_name(i int);
        INSERT INTO old_name SELECT * FROM range(20);
        ALTER TABLE old_name RENAME TO new_name
        """,
    )
    for reader in shared.both:
        assert reader.value("SELECT count(*) FROM old_name AT (VERSION => 2)") == 20
        assert reader.value("SELECT count(*) FROM new_name") == 20
        with pytest.raises((Error, PeerError)):
            reader.rows("SELECT * FROM old_name")


def test_the_newest_of_snapshots_with_equal_times_is_read(tmp_path: Path, peer: Peer) -> None:
    place = on_sqlite(tmp_path)
    script(Theirs(peer, place), "CREATE TABLE t(i int);\nINSERT INTO t VALUES (1);\nINSERT INTO t VALUES (2)")
    peer.reset()
    with sqlite3.connect(tmp_path / "catalog.sqlite") as catalog:
        catalog.execute("UPDATE ducklake_snapshot SET snapshot_time = '2020-01-01 00:00:00+00' WHERE snapshot_id > 0")
        catalog.execute("UPDATE ducklake_snapshot SET snapshot_time = '2019-01-01 00:00:00+00' WHERE snapshot_id = 0")
    ours = Ours(place)
    assert texts(ours, "t AT (TIMESTAMP => '2020-01-01')") == [("1",), ("2",)]
    ours.close()
