"""Each kind of row change leaves the catalog rows that DuckDB itself would write, and DuckDB reads them right."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from lakedbapi.engine.base import WriteOptions
from lakedbapi.model.changes import Changes, RowChanges, StagedFile, StagedRows
from lakedbapi.model.delete_vector import DeleteVector
from tests.formats.ducklake.writing import Lake, arrow, column, open_catalog, row_changes

TWENTY = [(i, f"g{i}") for i in range(20)]


def test_create_table(lake: Lake) -> None:
    table = lake.create("t", column("i", "int32"), column("g", "varchar"))
    assert table.id == 1
    assert lake.rows_of("snapshot")[-1][2:] == (1, 2, 0)
    assert lake.last_changes() == 'created_table:"main"."t"'
    (row,) = lake.rows_of("table")
    assert (row[0], *row[2:]) == (1, 1, None, 0, "t", "t/", True)
    assert lake.rows_of("column") == [
        (1, 1, None, 1, 1, "i", "int32", None, "NULL", True, None, "literal", "duckdb"),
        (2, 1, None, 1, 2, "g", "varchar", None, "NULL", True, None, "literal", "duckdb"),
    ]
    assert lake.rows_of("schema_versions") == [(1, 1, 1)]
    assert lake.rows_of("table_stats") == []


def test_insert(lake: Lake) -> None:
    lake.create("t", column("i", "int32"), column("g", "varchar"))
    lake.insert("t", *TWENTY)
    assert lake.rows_of("snapshot")[-1][2:] == (1, 2, 1)
    assert lake.last_changes() == "inserted_into_table:1"
    (file,) = lake.rows_of("data_file")
    assert file[:5] == (0, 1, 2, None, None)
    assert file[6:9] == (True, "parquet", 20)
    assert file[11:] == (0, None, None, None, None)
    assert [(row[2], *row[4:9]) for row in lake.rows_of("file_column_stats")] == [
        (1, 20, 0, "0", "19", None),
        (2, 20, 0, "g0", "g9", None),
    ]
    assert lake.rows_of("table_stats") == [(1, 20, 20, file[9])]
    assert lake.rows_of("table_column_stats") == [
        (1, 1, False, None, "0", "19", None),
        (1, 2, False, None, "g0", "g9", None),
    ]


def test_three_deletes_leave_one_delete_file_that_knows_when(lake: Lake, duckdb: Peer) -> None:
    lake.create("t", column("i", "int32"), column("g", "varchar"))
    lake.insert("t", *TWENTY)
    lake.delete("t", {0: [3, 4]})
    (first,) = lake.rows_of("delete_file")
    assert first[:5] == (1, 1, 3, None, 0)
    assert first[6:9] == (True, "parquet", 2)
    assert first[12] is None
    lake.delete("t", {0: [5]})
    lake.delete("t", {0: [6]})
    (last,) = lake.rows_of("delete_file")
    assert last[:5] == (3, 1, 3, None, 0)
    assert (last[8], last[12]) == (3 + 1, 5)
    scheduled = lake.rows_of("files_scheduled_for_deletion")
    assert scheduled[0][:3] == (1, f"main/t/{first[5]}", True)
    assert lake.last_changes() == "deleted_from_table:1"
    counts = [duckdb.value(f"SELECT count(*) FROM t AT (VERSION => {version})") for version in (2, 3, 4, 5)]
    assert counts == [20, 18, 17, 16]
    assert duckdb.rows("SELECT snapshot_id, i FROM ducklake_table_changes('lake', 'main', 't', 3, 5) ORDER BY ALL") == [
        (3, 3),
        (3, 4),
        (4, 5),
        (5, 6),
    ]
    duckdb.execute("DELETE FROM t WHERE i = 7")
    duckdb.execute("INSERT INTO t VALUES (100, 'x')")
    lake.pin()
    lake.insert("t", (101, "y"))
    assert duckdb.rows("SELECT count(*), count(DISTINCT rowid), max(i) FROM t") == [(17, 17, 101)]


def test_update_keeps_row_ids_in_a_new_file(lake: Lake, duckdb: Peer) -> None:
    table = lake.create("t", column("i", "int32"), column("g", "varchar"))
    lake.insert("t", *TWENTY)
    lake.commit(lake.update("t", {0: [7, 8]}, [(70, "a", 7), (80, "b", 8)]))
    assert lake.last_changes() == f"inserted_into_table:{table.id},deleted_from_table:{table.id}"
    file = lake.rows_of("data_file")[-1]
    assert (file[8], file[11]) == (2, None)
    assert lake.rows_of("table_stats")[0][1:3] == (22, 20)
    assert duckdb.rows("SELECT rowid, i FROM t WHERE i >= 70 ORDER BY i") == [(7, 70), (8, 80)]
    assert duckdb.rows("SELECT min(i), max(i), count(*) FROM t WHERE true") == [(0, 80, 20)]
    changes = "SELECT change_type, rowid, i FROM ducklake_table_changes('lake', 'main', 't', 3, 3) ORDER BY ALL"
    assert duckdb.rows(changes) == [
        ("update_postimage", 7, 70),
        ("update_postimage", 8, 80),
        ("update_preimage", 7, 7),
        ("update_preimage", 8, 8),
    ]
    duckdb.execute("INSERT INTO t SELECT 100 + range, '' FROM range(20)")
    assert duckdb.value("SELECT count(*) - count(DISTINCT rowid) FROM t") == 0
    ids = "SELECT rowid, i FROM t ORDER BY ALL"
    before = duckdb.rows(ids)
    duckdb.execute("CALL ducklake_merge_adjacent_files('lake')")
    assert duckdb.rows(ids) == before
    duckdb.execute("UPDATE t SET i = i + 1000 WHERE i IN (70, 100)")
    duckdb.execute("CALL ducklake_flush_inlined_data('lake')")
    duckdb.execute("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)")
    moved = [(id, i + 1000 if i in (70, 100) else i) for id, i in before]
    assert duckdb.rows(ids) == moved
    lake.pin()
    lake.insert("t", (-1, ""))
    assert duckdb.rows("SELECT rowid FROM t WHERE i = -1") == [(40,)]


def test_rows_deleted_by_the_transaction_that_inserted_them(lake: Lake, duckdb: Peer) -> None:
    table = lake.create("t", column("i", "int32"))
    (staged,) = lake.written(table, arrow(table, [(1,), (2,), (3,)]))
    lake.commit(row_changes(table, files=(replace(staged, deletes=DeleteVector.of([1])),)))
    (deletes,) = lake.rows_of("delete_file")
    assert (deletes[0], deletes[2], deletes[4], deletes[8]) == (1, 2, 0, 1)
    assert duckdb.rows("SELECT i FROM t ORDER BY i") == [(1,), (3,)]
    assert duckdb.value("SELECT count(*) FROM t") == 2


def test_whole_files_go_with_their_delete_files(lake: Lake, duckdb: Peer) -> None:
    table = lake.create("t", column("i", "int32"))
    lake.insert("t", (1,), (2,), (3,))
    lake.insert("t", (4,))
    lake.delete("t", {0: [0]})
    lake.commit(row_changes(table, removed=frozenset({0})))
    assert lake.last_changes() == "deleted_from_table:1"
    assert [row[3] for row in lake.rows_of("data_file")] == [5, None]
    assert [row[3] for row in lake.rows_of("delete_file")] == [5]
    assert duckdb.rows("SELECT i FROM t") == [(4,)]
    assert duckdb.value("SELECT count(*) FROM t AT (VERSION => 4)") == 3
    assert duckdb.rows("SELECT change_type, i FROM ducklake_table_changes('lake','main','t',4,5) ORDER BY ALL") == [
        ("delete", 1),
        ("delete", 2),
        ("delete", 3),
    ]


def test_files_elsewhere_are_stored_by_their_full_path(lake: Lake, duckdb: Peer) -> None:
    table = lake.create("t", column("i", "int32"))
    (staged,) = lake.engine.write(
        arrow(table, [(1,)]), table.schema, WriteOptions(f"{lake.catalog.data_path}elsewhere/")
    )
    lake.commit(row_changes(table, files=(StagedFile(staged),)))
    assert lake.rows_of("data_file")[0][5:7] == (staged.path, False)
    assert duckdb.rows("SELECT i FROM t") == [(1,)]


def test_inlined_rows(inlining: Lake, place: Place, peer: Peer) -> None:
    lake = inlining
    table = lake.create("t", column("i", "int32"), column("s", "varchar"))
    assert lake.rows_of("inlined_data_tables") == [(1, "ducklake_inlined_data_1_1", 1)]
    lake.insert_inlined("t", (1, "a"), (2, None))
    assert lake.rows_of("snapshot")[-1][2:] == (1, 2, 1)
    assert lake.last_changes() == "inlined_insert:1"
    assert lake.rows_of("table_stats") == [(1, 2, 2, 0)]
    assert lake.rows_of("table_column_stats") == [
        (1, 1, False, None, "1", "2", None),
        (1, 2, True, None, "a", "a", None),
    ]
    (group,) = lake.base.row_groups(table)
    new = StagedRows(arrow(table, [(20, "b")]), pa.array([1]))
    lake.commit(row_changes(table, deleted_rows={group.key: DeleteVector.of([1])}, rows=(new,)))
    assert lake.last_changes() == "inlined_insert:1,inlined_delete:1"
    assert lake.rows_of("table_stats") == [(1, 3, 2, 0)]
    peer.attach(place.location)
    assert peer.rows("SELECT rowid, i, s FROM t ORDER BY i") == [(0, 1, "a"), (1, 20, "b")]
    assert peer.value("SELECT count(*) FROM t AT (VERSION => 2)") == 2
    assert peer.rows("SELECT change_type, i FROM ducklake_table_changes('lake','main','t',3,3) ORDER BY ALL") == [
        ("update_postimage", 20),
        ("update_preimage", 2),
    ]
    peer.execute("INSERT INTO t VALUES (30, 'c')")
    peer.execute("DELETE FROM t WHERE i = 1")
    lake.pin()
    lake.insert_inlined("t", (31, "d"))
    assert peer.rows("SELECT rowid, i FROM t ORDER BY i") == [(1, 20), (2, 30), (3, 31)]
    assert peer.rows("SELECT max(i), count(*) FROM t WHERE i > 30") == [(31, 1)]


def test_few_deletes_of_a_file_go_to_the_catalog(inlining: Lake, place: Place, peer: Peer) -> None:
    lake = inlining
    lake.create("t", column("i", "int32"), column("g", "varchar"))
    lake.insert("t", *TWENTY)
    lake.delete("t", {0: [3, 4]})
    assert lake.last_changes() == "inlined_delete:1"
    assert lake.rows_of("delete_file") == []
    lake.delete("t", {0: list(range(5, 17))})
    assert lake.last_changes() == "deleted_from_table:1"
    assert lake.rows_of("delete_file")[0][8] == 12
    peer.attach(place.location)
    assert peer.rows("SELECT count(*), sum(i) FROM t") == [(6, 0 + 1 + 2 + 17 + 18 + 19)]
    assert peer.value("SELECT count(*) FROM t AT (VERSION => 3)") == 18
    peer.execute("CALL ducklake_flush_inlined_data('lake')")
    lake.pin()
    lake.delete("t", {0: [17]})
    assert peer.value("SELECT count(*) FROM t") == 5
    assert [peer.value(f"SELECT count(*) FROM t AT (VERSION => {v})") for v in (2, 3, 4, 5)] == [20, 18, 6, 6]


def test_an_inlined_table_is_made_when_the_first_rows_need_it(lake: Lake, place: Place, peer: Peer) -> None:
    lake.create("t", column("i", "int32"))
    other = Lake(open_catalog(place), lake.engine)
    assert other.rows_of("inlined_data_tables") == []
    other.insert_inlined("t", (1,))
    assert other.rows_of("inlined_data_tables") == [(1, "ducklake_inlined_data_1_2", 2)]
    assert other.rows_of("snapshot")[-1][2] == 2
    other.insert_inlined("t", (2,))
    assert len(other.rows_of("inlined_data_tables")) == 1
    peer.attach(place.location)
    assert peer.rows("SELECT i FROM t ORDER BY i") == [(1,), (2,)]


def test_the_table_bounds_widen_across_files_and_rows_of_both_programs(
    inlining: Lake, place: Place, peer: Peer
) -> None:
    lake = inlining
    peer.attach(place.location)
    peer.execute("CREATE TABLE s(i INTEGER)")
    peer.execute("INSERT INTO s SELECT * FROM range(50)")
    lake.pin()
    lake.insert("s", *((i,) for i in range(50, 100)))
    lake.insert_inlined("s", (-1,), (None,))
    assert peer.value("SELECT count(*) FROM s WHERE i > 50") == 49
    assert peer.rows("SELECT min(i), max(i) FROM s WHERE true") == [(-1, 99)]
    assert peer.value("SELECT count(*) FROM s WHERE i IS NULL") == 1
    peer.execute("INSERT INTO s SELECT 200")
    assert peer.value("SELECT max(i) FROM s") == 200


def test_no_table_bounds_where_a_file_has_none(lake: Lake, duckdb: Peer) -> None:
    lake.create("s", column("c", "varchar"))
    lake.insert("s", ("a",))
    lake.insert("s", ("é" * 600,))
    lake.insert("s", ("zzzzz",))
    assert duckdb.rows("SELECT count(*) FROM s WHERE c > 'zz~'") == [(1,)]
    duckdb.execute("INSERT INTO s VALUES ('b')")
    assert duckdb.rows("SELECT count(*) FROM s WHERE c > 'zz~'") == [(1,)]


def test_nothing_staged_makes_no_snapshot(lake: Lake) -> None:
    before = lake.base.id
    assert lake.commit(Changes()).snapshot == before
    assert lake.commit(Changes(rows={1: RowChanges()})).snapshot == before
    assert len(lake.rows_of("snapshot")) == 1


def test_deletes_go_on_from_a_deletion_vector_of_duckdb(lake: Lake, duckdb: Peer) -> None:
    lake.create("t", column("i", "int32"), column("g", "varchar"))
    lake.insert("t", *TWENTY)
    duckdb.execute("CALL ducklake_set_option('lake', 'write_deletion_vectors', true)")
    duckdb.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', 0)")
    duckdb.execute("DELETE FROM t WHERE i = 1")
    assert lake.rows_of("delete_file")[0][7] == "puffin"
    lake.pin()
    lake.delete("t", {0: [2]})
    assert [row[7] for row in lake.rows_of("delete_file")] == ["parquet"]
    counts = [duckdb.value(f"SELECT count(*) FROM t AT (VERSION => {version})") for version in (2, 3, 4)]
    assert counts == [20, 19, 18]
    assert duckdb.rows("SELECT snapshot_id, i FROM ducklake_table_deletions('lake', 'main', 't', 3, 4)") == [
        (3, 1),
        (4, 2),
    ]
