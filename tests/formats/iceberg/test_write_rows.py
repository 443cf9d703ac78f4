"""Row-level changes: what the metadata says of them, and that other readers see the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

import lakedbapi
from lakedbapi.deletes import puffin
from tests.formats.iceberg.writing import Lake, avro_metadata, read_parquet, rows, values

POSITIONS = 1


def ten(place: Lake, lake: lakedbapi.Connection, **properties: str) -> None:
    place.create(lake, **properties)
    lake.execute("INSERT INTO t SELECT i, 's' || i FROM range(10) r(i)")


def test_a_row_goes_and_comes_as_others_read_it(place: Lake, lake: lakedbapi.Connection) -> None:
    ten(place, lake)
    lake.execute("DELETE FROM t WHERE a = 5")
    lake.execute("UPDATE t SET s = 'new' WHERE a = 6")
    lake.execute(
        "MERGE INTO t USING (VALUES (1, 'm'), (100, 'n')) v(a, s) ON t.a = v.a "
        "WHEN MATCHED THEN UPDATE SET s = v.s WHEN NOT MATCHED THEN INSERT (a, s) VALUES (v.a, v.s)"
    )
    expected = sorted([(a, f"s{a}") for a in (0, 2, 3, 4, 7, 8, 9)] + [(1, "m"), (6, "new"), (100, "n")], key=str)
    assert rows(lake) == expected
    seen = place.table().scan().to_arrow().to_pylist()
    assert sorted(((row["a"], row["s"]) for row in seen), key=str) == expected


def test_a_delete_replaces_the_one_before(place: Lake, lake: lakedbapi.Connection) -> None:
    ten(place, lake)
    lake.execute("DELETE FROM t WHERE a = 5")
    (first,) = place.files(POSITIONS)
    lake.execute("DELETE FROM t WHERE a = 9")
    (second,) = place.files(POSITIONS)
    assert (first["record_count"], second["record_count"]) == (1, 2)
    gone = [e["data_file"]["file_path"] for e in place.entries(deleted=True) if e["status"] == 2]
    assert gone == [first["file_path"]]
    summary = place.summary()
    assert summary["operation"] == "delete"
    assert (summary["added-position-deletes"], summary["removed-position-deletes"]) == ("2", "1")
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("1", "2")
    assert summary["total-records"] == "10"
    assert values(lake, "SELECT a FROM t") == [0, 1, 2, 3, 4, 6, 7, 8]


def test_deletes_of_one_transaction_and_of_others_are_one_file(place: Lake, lake: lakedbapi.Connection) -> None:
    ten(place, lake)
    lake.execute("DELETE FROM t WHERE a = 0")
    one = place.connect(autocommit=False)
    one.execute("DELETE FROM t WHERE a = 1")
    one.execute("DELETE FROM t WHERE a = 2")
    one.commit()
    (file,) = place.files(POSITIONS)
    assert file["record_count"] == 3
    assert [e["status"] for e in place.entries(deleted=True) if e["data_file"]["content"] == POSITIONS] in (
        [1, 2],
        [2, 1],
    )
    assert values(lake, "SELECT a FROM t") == list(range(3, 10))
    assert sorted(place.table().scan().to_arrow().column("a").to_pylist()) == list(range(3, 10))


def test_delete_entries_name_their_data_file(place: Lake, lake: lakedbapi.Connection) -> None:
    ten(place, lake)
    lake.execute("DELETE FROM t WHERE a IN (2, 7)")
    (data,) = place.files(0)
    (entry,) = [e for e in place.entries() if e["data_file"]["content"] == POSITIONS]
    file, manifest = entry["data_file"], entry["manifest"]
    assert manifest["content"] == 1
    assert avro_metadata(manifest["manifest_path"])["content"] == "deletes"
    assert file["referenced_data_file"] == data["file_path"]
    assert file["lower_bounds"][2147483546] == file["upper_bounds"][2147483546] == data["file_path"].encode()
    assert file["sort_order_id"] is None
    stored = Path(file["file_path"].removeprefix("file://"))
    assert stored.stat().st_size == file["file_size_in_bytes"]
    if place.version == 2:
        found = read_parquet(file["file_path"])
        assert found.column("pos").to_pylist() == [2, 7]
        assert set(found.column("file_path").to_pylist()) == {data["file_path"]}
        ids = [found.schema.field(i).metadata[b"PARQUET:field_id"] for i in (0, 1)]
        assert ids == [b"2147483546", b"2147483545"]
        assert not found.schema.field("pos").nullable
    else:
        (blob,) = puffin.blobs(stored.read_bytes(), "it", puffin.DELETION_VECTOR)
        start, size = file["content_offset"], file["content_size_in_bytes"]
        assert stored.read_bytes()[start : start + size] == blob.content
        assert blob.properties == {"referenced-data-file": data["file_path"], "cardinality": "2"}
        assert list(blob.fields) == [2147483645]


def test_a_file_without_rows_goes_with_its_deletes(place: Lake, lake: lakedbapi.Connection) -> None:
    ten(place, lake)
    lake.execute("INSERT INTO t VALUES (100, 'x')")
    lake.execute("DELETE FROM t WHERE a = 3")
    lake.execute("DELETE FROM t WHERE a < 50")
    assert len(place.files(0)) == 1
    assert place.files(POSITIONS) == []
    summary = place.summary()
    assert summary["operation"] == "delete"
    assert (summary["total-data-files"], summary["total-delete-files"]) == ("1", "0")
    assert (summary["total-position-deletes"], summary["total-records"]) == ("0", "1")


def test_rewriting_a_file_takes_its_deletes_away(place: Lake, lake: lakedbapi.Connection) -> None:
    ten(place, lake)
    lake.execute("DELETE FROM t WHERE a = 3")
    lake.execute("ALTER TABLE t SET ('write.update.mode' = 'copy-on-write')")
    lake.execute("UPDATE t SET s = 'new' WHERE a = 4")
    assert place.files(POSITIONS) == []
    summary = place.summary()
    assert summary["operation"] == "overwrite"
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("0", "0")
    assert len(rows(lake)) == 9
    assert rows(lake, "SELECT s FROM t WHERE a = 4") == [("new",)]


def test_one_statement_is_one_snapshot(place: Lake, lake: lakedbapi.Connection) -> None:
    """Also where it rewrites a file: no snapshot is without the rows that an UPDATE changes."""
    ten(place, lake)
    before = len(place.snapshots())
    lake.execute("UPDATE t SET s = 'new' WHERE a < 5")
    lake.execute("DELETE FROM t WHERE a = 1000")
    assert len(place.snapshots()) == before + 1
    for snapshot in place.snapshots():
        assert place.table().scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows == 10


def test_a_transaction_is_one_snapshot(place: Lake) -> None:
    lake = place.connect(autocommit=False)
    place.create(lake)
    lake.execute("INSERT INTO t SELECT i, 's' || i FROM range(5) r(i)")
    lake.commit()
    before = len(place.snapshots())
    lake.execute("INSERT INTO t VALUES (10, 'x'), (11, 'y')")
    lake.execute("DELETE FROM t WHERE a IN (1, 10)")
    lake.execute("DELETE FROM t WHERE a = 2")
    lake.commit()
    assert len(place.snapshots()) == before + 1
    assert values(lake, "SELECT a FROM t") == [0, 3, 4, 11]
    assert sorted(place.table().scan().to_arrow().column("a").to_pylist()) == [0, 3, 4, 11]


def test_sequence_numbers_of_files_that_stay_are_kept(place: Lake, lake: lakedbapi.Connection) -> None:
    ten(place, lake)
    for i in (100, 200):
        lake.execute(f"INSERT INTO t VALUES ({i}, 'x')")
    lake.execute("DELETE FROM t WHERE a < 50")
    found = {(e["sequence_number"], e["file_sequence_number"]) for e in place.entries() if e["status"] == 0}
    assert found <= {(2, 2), (3, 3)}
    lasts = [row["min_sequence_number"] for row in place.manifests() if row["added_files_count"]]
    assert lasts == [2, 3] or lasts == [3, 2]


def test_a_null_condition_keeps_the_row(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake)
    lake.execute("INSERT INTO t VALUES (NULL, 'n'), (1, 'a'), (2, 'b')")
    lake.execute("DELETE FROM t WHERE a > 1")
    assert values(lake, "SELECT s FROM t") == ["a", "n"]
    lake.execute("DELETE FROM t WHERE a NOT IN (5, NULL)")
    assert values(lake, "SELECT s FROM t") == ["a", "n"]


def test_positions_are_physical(place: Lake, lake: lakedbapi.Connection) -> None:
    """In a file of many row groups, and again among the survivors."""
    place.create(lake)
    lake.execute("INSERT INTO t SELECT i, 's' FROM range(300000) r(i)")
    lake.execute("DELETE FROM t WHERE a = 150000 OR a % 100000 = 7")
    lake.execute("DELETE FROM t WHERE a IN (250000, 8)")
    gone = {150_000, 7, 100_007, 200_007, 250_000, 8}
    assert values(lake, "SELECT count(*) FROM t") == [300_000 - len(gone)]
    left = set(place.table().scan().to_arrow().column("a").to_pylist())
    assert set(range(300_000)) - left == gone


def test_truncate(place: Lake, lake: lakedbapi.Connection) -> None:
    ten(place, lake)
    lake.execute("DELETE FROM t WHERE a = 3")
    lake.execute("TRUNCATE t")
    assert rows(lake) == []
    assert place.entries() == []
    lake.execute("INSERT INTO t VALUES (1, 'again')")
    assert rows(lake) == [(1, "again")]


def test_deletes_carry_the_partition_of_their_data_file(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake)
    lake.execute("ALTER TABLE t SET PARTITIONED BY (s)")
    lake.execute("INSERT INTO t SELECT i, 's' || (i % 2) FROM range(10) r(i)")
    lake.execute("ALTER TABLE t SET PARTITIONED BY (bucket(4, a))")
    lake.execute("INSERT INTO t SELECT i, 's' || (i % 2) FROM range(10, 20) r(i)")
    lake.execute("DELETE FROM t WHERE a IN (0, 11)")
    data = {f["file_path"]: f["partition"] for f in place.files(0)}
    specs = {e["data_file"]["file_path"]: e["manifest"]["partition_spec_id"] for e in place.entries()}
    deletes = [e for e in place.entries() if e["data_file"]["content"] == POSITIONS]
    assert {e["manifest"]["partition_spec_id"] for e in deletes} == {1, 2}
    for entry in deletes:
        file = entry["data_file"]
        assert file["partition"] == data[file["referenced_data_file"]]
        assert entry["manifest"]["partition_spec_id"] == specs[file["referenced_data_file"]]
    assert len(rows(lake)) == 18
    assert place.table().scan().to_arrow().num_rows == 18


def test_changes_of_tables_that_pyiceberg_wrote(tmp_path: Path) -> None:
    place = Lake(tmp_path)
    lake = place.connect()
    place.create(lake)
    table = place.table()
    arrow = pa.table({"a": pa.array(range(10), pa.int64()), "s": pa.array([f"s{i}" for i in range(10)])})
    table.append(arrow)
    lake.execute("DELETE FROM t WHERE a = 3")
    table = place.table()
    table.delete("a = 4")
    lake.execute("UPDATE t SET s = 'new' WHERE a = 5")
    place.table().append(arrow.slice(0, 1))
    lake.execute("DELETE FROM t WHERE a = 0")
    expected = [1, 2, 5, 6, 7, 8, 9]
    assert values(lake, "SELECT a FROM t") == expected
    assert sorted(place.table().scan().to_arrow().column("a").to_pylist()) == expected
    place.close()


def test_tables_of_version_1_are_upgraded_first(tmp_path: Path) -> None:
    place = Lake(tmp_path)
    lake = place.connect()
    lake.execute("CREATE SCHEMA old")
    schema = Schema(NestedField(1, "a", LongType(), required=False))
    table = place.catalog.create_table("old.t", schema, properties={"format-version": "1"})
    table.append(pa.table({"a": pa.array(range(5), pa.int64())}))
    for sql in ("INSERT INTO old.t VALUES (7)", "DELETE FROM old.t WHERE a = 1", "TRUNCATE old.t"):
        with pytest.raises(lakedbapi.NotSupportedError, match="format-version"):
            lake.execute(sql)
    lake.execute("ALTER TABLE old.t SET ('format-version' = '2')")
    lake.execute("INSERT INTO old.t VALUES (7)")
    lake.execute("DELETE FROM old.t WHERE a = 1")
    assert values(lake, "SELECT a FROM old.t") == [0, 2, 3, 4, 7]
    seen = place.catalog.load_table("old.t").scan().to_arrow().column("a").to_pylist()
    assert sorted(seen) == [0, 2, 3, 4, 7]
    place.close()


@pytest.mark.parametrize("damage", ["emptied", "cut", "changed"])
@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("manifest list", "INSERT INTO t VALUES (1, 'a')"),
        ("manifest list", "DELETE FROM t WHERE a = 4"),
        ("manifest list", "OPTIMIZE t"),
        ("manifest", "OPTIMIZE t"),
    ],
)
def test_damaged_metadata_are_named_by_what_writes_them_anew(
    place: Lake, lake: lakedbapi.Connection, kind: str, sql: str, damage: str
) -> None:
    """They were read before, and so are known, but have more in them than is kept."""
    ten(place, lake)
    lake.execute("INSERT INTO t SELECT i, 's' FROM range(10, 20) r(i)")
    assert len(rows(lake)) == 20
    name = place.snapshots()[-1].manifest_list if kind == "manifest list" else place.manifests()[0]["manifest_path"]
    path = Path(name.removeprefix("file://"))
    whole = path.read_bytes()
    bad = {"emptied": b"", "cut": whole[: len(whole) // 2], "changed": whole[:300] + b"\xff" * 40 + whole[340:]}[damage]
    path.write_bytes(bad)
    with pytest.raises(lakedbapi.DataError, match=f"{path.name}.* Restore it from a copy"):
        lake.execute(sql)
    path.write_bytes(whole)
    assert len(rows(lake)) == 20
    lake.execute(sql)


def test_a_manifest_list_with_other_manifests_is_named(place: Lake, lake: lakedbapi.Connection) -> None:
    ten(place, lake)
    older = Path(place.snapshots()[-1].manifest_list.removeprefix("file://"))
    lake.execute("INSERT INTO t VALUES (10, 's')")
    newer = Path(place.snapshots()[-1].manifest_list.removeprefix("file://"))
    assert len(rows(lake)) == 11
    newer.write_bytes(older.read_bytes())
    with pytest.raises(lakedbapi.DataError, match=f"{newer.name}.* has been replaced since it was read"):
        lake.execute("INSERT INTO t VALUES (11, 's')")
