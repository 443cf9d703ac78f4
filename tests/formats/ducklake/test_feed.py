"""The change feed reports each insertion and deletion once, whatever files and catalog rows they lie in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from lakedbapi.engine.base import ROW_ID, ROW_SNAPSHOT, Query, RelationName, ScanRelation, WriteOptions
from lakedbapi.model.changes import StagedFile, StagedRows
from lakedbapi.model.delete_vector import DeleteVector
from tests.formats.ducklake.writing import Lake, arrow, column, row_changes

Change = tuple[int, str, int, Any]
"""Snapshot, kind, row id, value of the first column."""


def feed(lake: Lake, first: int, last: int, name: str = "t") -> list[Change]:
    lake.pin()
    found: list[Change] = []
    for change in lake.catalog.table_changes(lake.table(name), first, last):
        relation = ScanRelation(change.scan, {ROW_ID: "row_id", ROW_SNAPSHOT: "own"})
        query = Query("FROM lake.main.changes", {RelationName("lake", "main", "changes"): relation})
        rows = lake.engine.fetch(query)
        assert change.snapshot is None or first <= change.snapshot <= last
        for row in rows.to_pylist():
            snapshot = row["own"] if change.snapshot is None else change.snapshot
            if first <= snapshot <= last:
                found.append((snapshot, change.kind, row["row_id"], next(iter(row.values()))))
    return sorted(found)


def peers_feed(peer: Peer, first: int, last: int, name: str = "t") -> list[Change]:
    kinds = {"update_preimage": "delete", "update_postimage": "insert"}
    changes = peer.rows(f"FROM ducklake_table_changes('lake', 'main', '{name}', {first}, {last})")
    return sorted((row[0], kinds.get(row[2], row[2]), row[1], row[3]) for row in changes)


@pytest.fixture
def filled(lake: Lake) -> Lake:
    """With table t: i = 0..5 in data file 0, added by snapshot 2."""
    lake.create("t", column("i", "int32"))
    lake.insert("t", *((i,) for i in range(6)))
    return lake


def test_inserts_deletes_and_updates_of_files(filled: Lake, duckdb: Peer) -> None:
    filled.delete("t", {0: [1]})
    filled.delete("t", {0: [2]})
    filled.commit(filled.update("t", {0: [3]}, [(30, 3)]))
    filled.commit(row_changes(filled.table("t"), removed=frozenset({0})))
    expected = [
        *((2, "insert", i, i) for i in range(6)),
        (3, "delete", 1, 1),
        (4, "delete", 2, 2),
        (5, "delete", 3, 3),
        (5, "insert", 3, 30),
        *((6, "delete", i, i) for i in (0, 4, 5)),
    ]
    assert feed(filled, 1, 6) == expected
    assert feed(filled, 4, 5) == expected[7:10]
    assert feed(filled, 2, 5) == expected[:10], "the file ends later"
    assert peers_feed(duckdb, 1, 6) == expected
    assert feed(filled, 7, 6) == []


def test_rows_in_the_catalog(inlining: Lake, place: Place, peer: Peer) -> None:
    lake = inlining
    table = lake.create("t", column("i", "int32"))
    lake.insert_inlined("t", (1,), (2,))
    (group,) = lake.base.row_groups(table)
    new = StagedRows(arrow(table, [(20,)]), pa.array([1]))
    lake.commit(row_changes(table, deleted_rows={group.key: DeleteVector.of([1])}, rows=(new,)))
    (group,) = lake.base.row_groups(table)
    lake.commit(row_changes(table, deleted_rows={group.key: DeleteVector.of([0])}))
    expected = [
        (2, "insert", 0, 1),
        (2, "insert", 1, 2),
        (3, "delete", 1, 2),
        (3, "insert", 1, 20),
        (4, "delete", 0, 1),
    ]
    assert feed(lake, 0, 4) == expected
    peer.attach(place.location)
    assert peers_feed(peer, 0, 4) == expected
    peer.execute("CALL ducklake_flush_inlined_data('lake')")
    assert feed(lake, 0, 5) == expected


def test_inlined_deletes_of_files(inlining: Lake, place: Place, peer: Peer) -> None:
    lake = inlining
    lake.create("t", column("i", "int32"))
    lake.insert("t", *((i,) for i in range(20)))
    lake.delete("t", {0: [3]})
    lake.delete("t", {0: [4]})
    expected = [(3, "delete", 3, 3), (4, "delete", 4, 4)]
    assert feed(lake, 3, 4) == expected
    peer.attach(place.location)
    peer.execute("CALL ducklake_flush_inlined_data('lake')")
    lake.pin()
    assert feed(lake, 3, 5) == expected
    lake.delete("t", {0: list(range(5, 19))})
    assert feed(lake, 3, 5) == expected


def test_deletes_in_the_catalog_and_in_a_file_of_one_data_file_add_up(inlining: Lake) -> None:
    inlining.create("t", column("i", "int32"))
    inlining.insert("t", *((i,) for i in range(20)))
    inlining.delete("t", {0: [3]})
    inlining.delete("t", {0: list(range(5, 17))})
    assert feed(inlining, 3, 4) == [(3, "delete", 3, 3), *((4, "delete", i, i) for i in range(5, 17))]


def test_rows_that_their_own_transaction_deleted_are_not_reported(lake: Lake) -> None:
    table = lake.create("t", column("i", "int32"))
    (staged,) = lake.written(table, arrow(table, [(1,), (2,), (3,)]))
    lake.commit(row_changes(table, files=(replace(staged, deletes=DeleteVector.of([1])),)))
    assert feed(lake, 1, 2) == [(2, "insert", 0, 1), (2, "insert", 2, 3)]


def test_rows_that_copy_on_write_moved_are_not_reported(filled: Lake) -> None:
    table = filled.table("t")
    rows = arrow(table, [(0,), (1,), (2,), (3,), (50,)]).append_column("_lake_row_id", pa.array([0, 1, 2, 3, 5]))
    gone = frozenset({0})
    filled.commit(row_changes(table, files=filled.written(table, rows, row_ids=True), removed=gone, rewritten=gone))
    assert feed(filled, 3, 3) == [(3, "delete", 4, 4), (3, "delete", 5, 5), (3, "insert", 5, 50)]


def test_copied_rows_are_told_by_nulls_and_nan_too(lake: Lake) -> None:
    table = lake.create("t", column("f", "float64"), column("s", "varchar"))
    lake.insert("t", (float("nan"), None), (1.5, "a"), (2.5, "b"))
    rows = arrow(table, [(float("nan"), None), (1.5, None)]).append_column("_lake_row_id", pa.array([0, 1]))
    gone = frozenset({0})
    lake.commit(row_changes(table, files=lake.written(table, rows, row_ids=True), removed=gone, rewritten=gone))
    assert feed(lake, 3, 3) == [(3, "delete", 1, 1.5), (3, "delete", 2, 2.5), (3, "insert", 1, 1.5)]


def test_rows_without_an_id_of_their_own_have_that_of_their_place(lake: Lake) -> None:
    """Other writers leave the id out where a file has new versions of rows beside new rows; great ids stay exact."""
    table = lake.create("t", column("i", "int32"))
    great = 10**18
    first = arrow(table, [(0,), (1,), (2,)]).append_column("_lake_row_id", pa.array([None, great, great + 1]))
    lake.commit(row_changes(table, files=lake.written(table, first, row_ids=True)))
    start_ids_at(lake, 0, 70)
    rows = arrow(table, [(0,), (2,), (9,)]).append_column("_lake_row_id", pa.array([70, great + 1, None]))
    gone = frozenset({0})
    lake.commit(row_changes(table, files=lake.written(table, rows, row_ids=True), removed=gone, rewritten=gone))
    start_ids_at(lake, 1, 80)
    assert feed(lake, 2, 2) == [(2, "insert", 70, 0), (2, "insert", great, 1), (2, "insert", great + 1, 2)]
    assert feed(lake, 3, 3) == [(3, "delete", great, 1), (3, "insert", 82, 9)]


def test_rows_of_a_merged_file_without_a_snapshot_of_their_own_have_that_of_the_file(lake: Lake) -> None:
    """Row 0 was deleted by the transaction that added it, row 2 later."""
    table = lake.create("t", column("i", "int32"))
    rows = arrow(table, [(0,), (1,), (2,)]).append_column("_lake_row_id", pa.array([0, 1, 2]))
    rows = rows.append_column("_lake_row_snapshot", pa.array([None, 4, None], pa.int64()))
    options = WriteOptions(lake.catalog.data_directory(table, lake.base.schemas()[table.schema_id]))
    (file,) = lake.engine.write(rows, table.schema, options, row_ids=True, row_snapshots=True)
    lake.commit(row_changes(table, files=(StagedFile(file, deletes=DeleteVector.of([0])),)))
    files = lake.catalog.backend.tables.data_file
    with lake.catalog.backend.write() as connection:
        connection.execute(files.update().values(partial_max=4))
    for name in "uv":
        lake.create(name, column("i", "int32"))
    lake.pin()
    lake.delete("t", {0: [2]})
    assert feed(lake, 1, 5) == [(2, "insert", 2, 2), (4, "insert", 1, 1), (5, "delete", 2, 2)]


def start_ids_at(lake: Lake, file_id: int, start: int) -> None:
    files = lake.catalog.backend.tables.data_file
    with lake.catalog.backend.write() as connection:
        connection.execute(files.update().where(files.c.data_file_id == file_id).values(row_id_start=start))
    lake.catalog.forget()


@pytest.mark.parametrize(
    "compaction",
    [
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
    ],
)
def test_compaction_changes_nothing(filled: Lake, duckdb: Peer, compaction: str) -> None:
    filled.insert("t", (6,), (7,))
    filled.commit(filled.update("t", {0: [3]}, [(30, 3)]))
    before = feed(filled, 0, 4)
    assert len(before) == 6 + 2 + 2
    duckdb.execute(compaction)
    assert feed(filled, 0, 5) == before
    assert [feed(filled, n, n) for n in range(6)] == [[change for change in before if change[0] == n] for n in range(6)]
    duckdb.execute("SET ducklake_default_data_inlining_row_limit = 0")
    duckdb.execute("DELETE FROM t WHERE i IN (0, 30)")
    assert feed(filled, 0, 6) == [*before, (6, "delete", 0, 0), (6, "delete", 3, 30)]


def test_columns_are_those_of_the_end(filled: Lake, duckdb: Peer) -> None:
    duckdb.execute("ALTER TABLE t RENAME i TO j")
    duckdb.execute("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7")
    filled.pin()
    (change,) = filled.catalog.table_changes(filled.table("t"), 0, 4)
    assert change.scan.schema.names == ("j", "n")
    assert feed(filled, 0, 4)[0] == (2, "insert", 0, 0)


def test_the_range_can_be_given_in_time(filled: Lake) -> None:
    filled.insert("t", (6,))
    times = [info.time for info in filled.catalog.history()]
    table = filled.table("t")
    (change,) = filled.catalog.table_changes(table, times[3], times[3])
    assert change.scan.file_count == 1
    assert list(filled.catalog.table_changes(table, times[3], times[2])) == []
