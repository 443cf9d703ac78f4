"""Row ids and sequence numbers of rows in tables of version 3 (spec, Row Lineage)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakedbapi
from tests.formats.iceberg.writing import Lake, read_parquet


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Lake]:
    place = Lake(tmp_path, 3)
    yield place
    place.close()


def lineage(place: Lake) -> dict[int, tuple[int, int]]:
    """Row id and last updated sequence number by the key of each live row, as the specification derives them."""
    keep = {row[0] for row in place.connections[0].execute("SELECT a FROM t").fetchall()}
    versions = dict(place.connections[0].execute("SELECT rowid, s FROM t").fetchall())
    found: dict[int, tuple[int, int]] = {}
    next_of = {row["manifest_path"]: row["first_row_id"] for row in place.manifests()}
    for entry in place.entries():
        file = entry["data_file"]
        if file["content"] != 0:
            continue
        number = entry["sequence_number"] or entry["manifest"]["sequence_number"]
        path = entry["manifest"]["manifest_path"]
        first = file["first_row_id"]
        if first is None:
            first = next_of[path]
            next_of[path] += file["record_count"]
        stored = read_parquet(file["file_path"]).to_pylist()
        for position, row in enumerate(stored):
            id, updated = row.get("_row_id"), row.get("_last_updated_sequence_number")
            id, updated = first + position if id is None else id, number if updated is None else updated
            if row["a"] in keep and versions.get(id) == row["s"]:
                found[row["a"]] = id, updated
    return found


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_updates_keep_ids_and_tell_when(place: Lake, mode: str) -> None:
    lake = place.connect()
    place.create(lake, write_update_mode=mode, write_delete_mode=mode)
    for kind in ("update", "delete"):
        lake.execute(f"ALTER TABLE t SET ('write.{kind}.mode' = '{mode}')")
    lake.execute("INSERT INTO t SELECT i, 's' || i FROM range(6) r(i)")
    before = lineage(place)
    assert before == {i: (i, 1) for i in range(6)}
    lake.execute("UPDATE t SET s = 'new' WHERE a = 2")
    assert lineage(place) == {**before, 2: (2, 2)}
    lake.execute("DELETE FROM t WHERE a = 3")
    expected = {i: (i, 1) for i in (0, 1, 4, 5)} | {2: (2, 2)}
    assert lineage(place) == expected
    lake.execute("UPDATE t SET s = 'again' WHERE a = 0")
    assert lineage(place) == {**expected, 0: (0, 4)}


def test_no_id_is_given_twice(place: Lake) -> None:
    lake = place.connect()
    place.create(lake)
    for i in range(3):
        lake.execute(f"INSERT INTO t SELECT i, 's' || i FROM range({10 * i}, {10 * i + 3}) r(i)")
        lake.execute(f"UPDATE t SET s = s || '!' WHERE a = {10 * i}")
    ids = [row[0] for row in lake.execute("SELECT rowid FROM t").fetchall()]
    assert len(set(ids)) == 9
    snapshots = place.snapshots()
    for before, after in itertools.pairwise(snapshots):
        assert before.first_row_id is not None
        assert before.added_rows is not None
        assert after.first_row_id == before.first_row_id + before.added_rows
    last = snapshots[-1]
    metadata = place.table().metadata
    assert metadata.next_row_id == (last.first_row_id or 0) + (last.added_rows or 0)  # type: ignore[union-attr]


def test_an_upgraded_table_gives_ids_to_old_rows(place: Lake) -> None:
    """And its position delete files go as their data files get vectors."""
    place.version = 2
    lake = place.connect()
    place.create(lake)
    lake.execute("INSERT INTO t SELECT i, 's' || i FROM range(5) r(i)")
    lake.execute("DELETE FROM t WHERE a = 4")
    lake.execute("ALTER TABLE t SET ('format-version' = '3')")
    lake.execute("DELETE FROM t WHERE a = 3")
    assert [file["file_format"] for file in place.files(1)] == ["PUFFIN"]
    assert [file["record_count"] for file in place.files(1)] == [2]
    assert sorted(lake.execute("SELECT rowid, a FROM t").fetchall()) == [(0, 0), (1, 1), (2, 2)]
    lake.execute("UPDATE t SET s = 'new' WHERE a = 1")
    assert sorted(lake.execute("SELECT rowid, a FROM t").fetchall()) == [(0, 0), (1, 1), (2, 2)]
    assert sorted(place.table().scan().to_arrow().column("a").to_pylist()) == [0, 1, 2]


def test_compaction_keeps_ids_and_numbers(place: Lake) -> None:
    lake = place.connect()
    place.create(lake)
    for first in (0, 5):
        lake.execute(f"INSERT INTO t SELECT i, 's' || i FROM range({first}, {first + 5}) r(i)")
    lake.execute("UPDATE t SET s = 'new' WHERE a IN (1, 7)")
    lake.execute("DELETE FROM t WHERE a = 3")
    before = lineage(place)
    assert {before[0], before[1], before[5], before[7]} == {(0, 1), (1, 3), (5, 2), (7, 3)}
    lake.execute("OPTIMIZE t")
    assert (len(place.files(0)), len(place.files(1))) == (1, 0)
    assert lineage(place) == before


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_merges_keep_ids_and_give_new_ones(place: Lake, mode: str) -> None:
    lake = place.connect()
    place.create(lake)
    lake.execute(f"ALTER TABLE t SET ('write.merge.mode' = '{mode}')")
    lake.execute("INSERT INTO t SELECT i, 's' || i FROM range(6) r(i)")
    lake.execute(
        "MERGE INTO t USING (VALUES (1), (2), (9)) u(a) ON t.a = u.a WHEN MATCHED AND t.a = 1 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET s = 'new' WHEN NOT MATCHED THEN INSERT VALUES (u.a, 'added')"
    )
    found = lineage(place)
    added, number = found.pop(9)
    assert added >= 6
    assert number == 2
    assert found == {0: (0, 1), 2: (2, 2), 3: (3, 1), 4: (4, 1), 5: (5, 1)}


def test_ids_on_a_branch_are_those_of_the_table(place: Lake) -> None:
    """Both take new ids from one counter."""
    lake = place.connect()
    place.create(lake)
    lake.execute("INSERT INTO t SELECT i, 's' || i FROM range(3) r(i)")
    lake.execute("ALTER TABLE t CREATE BRANCH b")
    lake.execute("INSERT INTO t.branch_b VALUES (10, 'branch')")
    lake.execute("INSERT INTO t VALUES (20, 'main')")
    lake.execute("UPDATE t.branch_b SET s = 'new' WHERE a = 1")
    ids = dict(lake.execute("SELECT a, rowid FROM t.branch_b").fetchall())
    assert {a: id for a, id in ids.items() if a < 3} == {0: 0, 1: 1, 2: 2}
    assert ids[10] != lake.execute("SELECT rowid FROM t WHERE a = 20").fetchall()[0][0]
    lake.execute("OPTIMIZE t.branch_b")
    assert dict(lake.execute("SELECT a, rowid FROM t.branch_b").fetchall()) == ids


def test_files_beside_a_rewritten_one_keep_their_ids(place: Lake) -> None:
    """They stand in one manifest, which is written anew."""
    lake = place.connect()
    place.create(lake)
    lake.execute("ALTER TABLE t SET PARTITIONED BY (s)")
    lake.execute("ALTER TABLE t SET ('lake.write_mode' = 'copy-on-write')")
    lake.execute("INSERT INTO t SELECT i, 's' || i % 3 FROM range(9) r(i)")
    before = dict(lake.execute("SELECT a, rowid FROM t").fetchall())
    assert sorted(before.values()) == list(range(9))
    lake.execute("UPDATE t SET a = 40 WHERE a = 4")
    before[40] = before.pop(4)
    assert dict(lake.execute("SELECT a, rowid FROM t").fetchall()) == before
    assert {entry["sequence_number"] for entry in place.entries() if entry["status"] == 0} == {1}
    with place.connect() as other:
        assert dict(other.execute("SELECT a, rowid FROM t").fetchall()) == before


def test_a_version_cannot_go_back(place: Lake) -> None:
    lake = place.connect()
    place.create(lake)
    with pytest.raises(lakedbapi.ProgrammingError, match="go back"):
        lake.execute("ALTER TABLE t SET ('format-version' = '2')")
    with pytest.raises(lakedbapi.ProgrammingError, match="format-version"):
        lake.execute("ALTER TABLE t SET ('format-version' = '4')")
