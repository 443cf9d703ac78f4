"""RESTORE of Delta tables: a new version with the rows and columns of an earlier one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakedbapi
from tests.formats.delta.committed import commit, info, of_kind, rows
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import Table, remove, schema_string, with_vector

PROPERTIES = {
    "plain": "'delta.enableDeletionVectors' = 'false'",
    "vectors": "'delta.enableDeletionVectors' = 'true'",
    "mapped": "'delta.columnMapping.mode' = 'name'",
    "feed": "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'false'",
}


def state(lake: lakedbapi.Connection, version: int | None = None) -> tuple[list[str], list[Any]]:
    """Column names and rows."""
    cursor = lake.execute("SELECT * FROM t" + ("" if version is None else f" FOR VERSION AS OF {version}"))
    assert cursor.description is not None
    return [column[0] for column in cursor.description], sorted(cursor.fetchall(), key=repr)


@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=PROPERTIES)
def test_every_version_can_be_restored(tmp_path: Path, connect: Connect, properties: str) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t (k INTEGER, v VARCHAR) WITH ({properties})")
    lake.execute("INSERT INTO t SELECT i, 'v' || i FROM range(100) r(i)")
    lake.execute("DELETE FROM t WHERE k < 50 AND k % 2 = 0")
    lake.execute("UPDATE t SET v = 'u' WHERE k = 77")
    lake.execute("INSERT INTO t VALUES (1000, 'x')")
    if "columnMapping" in properties:
        lake.execute("ALTER TABLE t ADD COLUMN n INTEGER")
        lake.execute("UPDATE t SET n = k WHERE k > 90")
        lake.execute("ALTER TABLE t RENAME COLUMN v TO w")
        lake.execute("ALTER TABLE t DROP COLUMN n")
    lake.execute("DELETE FROM t WHERE k > 60")
    ((last,),) = rows(lake, "SELECT max(snapshot_id) FROM history('t')")
    expected = {version: state(lake, version) for version in range(last + 1)}
    for version in (last, 1, last, *range(last, -1, -1)):
        before = len(state(lake)[1])
        cursor = lake.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
        assert state(lake) == expected[version]
        assert before + cursor.rows_inserted - cursor.rows_deleted == len(expected[version][1])
    assert {version: state(lake, version) for version in expected} == expected
    assert info(tmp_path / "t")["operation"] == "RESTORE"
    assert info(tmp_path / "t")["operationParameters"] == {"version": "0", "timestamp": None}
    metrics = info(tmp_path / "t")["operationMetrics"]
    assert (metrics["numOfFilesAfterRestore"], metrics["tableSizeAfterRestore"]) == ("0", "0")
    lake.execute(f"RESTORE TABLE t TO VERSION AS OF {last}")
    metrics = info(tmp_path / "t")["operationMetrics"]
    files = rows(lake, "SELECT count(*), sum(file_size_bytes) FROM files('t')")
    assert files == [(int(metrics["numOfFilesAfterRestore"]), int(metrics["tableSizeAfterRestore"]))]


def test_files_that_get_another_vector_count_as_restored_and_removed(tmp_path: Path, connect: Connect) -> None:
    lake, table = connect(tmp_path, autocommit=True), Table(tmp_path / "t", version=1)
    lake.execute("CREATE TABLE t AS SELECT i FROM range(100) r(i)")
    lake.execute("DELETE FROM t WHERE i = 1")
    (deleted,) = (action for action in commit(tmp_path / "t") if "add" in action)
    # Another writer gives the row back where it lies.
    table.commit(remove(deleted), with_vector(deleted, None))
    lake.execute("INSERT INTO t SELECT i FROM range(1000, 1050) r(i)")
    lake.execute("RESTORE TABLE t TO VERSION AS OF 1")
    assert len(state(lake)[1]) == 99
    actions = commit(tmp_path / "t")
    adds, removes = of_kind(actions, "add"), of_kind(actions, "remove")
    assert [add["path"] for add in adds] == [deleted["add"]["path"]]
    metrics = info(tmp_path / "t")["operationMetrics"]
    counts = [metrics[name] for name in ("numRestoredFiles", "numRemovedFiles", "numOfFilesAfterRestore")]
    assert counts == ["1", "2", "1"]
    sizes = [sum(action["size"] for action in found) for found in (adds, removes)]
    assert [int(metrics[name]) for name in ("restoredFilesSize", "removedFilesSize")] == sizes
    assert int(metrics["tableSizeAfterRestore"]) == sizes[0]


def test_the_feed_of_a_restore_leads_from_one_version_to_the_other(tmp_path: Path, connect: Connect) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t (k INTEGER) WITH ({PROPERTIES['feed']})")
    lake.execute("INSERT INTO t SELECT i FROM range(5) r(i)")
    lake.execute("DELETE FROM t WHERE k = 3")
    lake.execute("RESTORE TABLE t TO VERSION AS OF 1")
    kinds = rows(lake, "SELECT change_type, k FROM table_changes('t', 3, 3)")
    gone, come = ([k for kind, k in kinds if kind == name] for name in ("delete", "insert"))
    assert sorted(come) == [0, 1, 2, 3, 4]
    assert sorted(gone) == [0, 1, 2, 4]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_the_feed_of_a_restore_tells_of_rows_that_keep_their_ids(
    tmp_path: Path, connect: Connect, vectors: str
) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute(
        "CREATE TABLE t (k INTEGER, v INTEGER) WITH ('delta.enableChangeDataFeed' = 'true', "
        f"'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = '{vectors}')"
    )
    lake.execute("INSERT INTO t SELECT i, 0 FROM range(5) r(i)")
    lake.execute("DELETE FROM t WHERE k >= 3")
    lake.execute("UPDATE t SET v = 1 WHERE k = 0")
    lake.execute("INSERT INTO t VALUES (9, 0)")
    lake.execute("RESTORE TABLE t TO VERSION AS OF 1")
    changes = set(rows(lake, "SELECT change_type, k, v FROM table_changes('t', 5, 5)"))
    net = {(kind, k, v) for kind, k, v in changes if (k, v) not in {(1, 0), (2, 0)}}
    olds = {(k, v) for kind, k, v in net if kind in ("delete", "update_preimage")}
    news = {(k, v) for kind, k, v in net if kind in ("insert", "update_postimage")}
    assert (olds, news) == ({(0, 1), (9, 0)}, {(0, 0), (3, 0), (4, 0)})


def test_a_version_that_is_not_there_is_told(tmp_path: Path, connect: Connect) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute("CREATE TABLE t AS SELECT 1 AS i")
    with pytest.raises(lakedbapi.ProgrammingError, match=r"no version 99 .*versions 0 to 0 can be read"):
        lake.execute("RESTORE TABLE t TO VERSION AS OF 99")
    with pytest.raises(lakedbapi.ProgrammingError, match="no version at 1990"):
        lake.execute("RESTORE TABLE t TO TIMESTAMP AS OF '1990-01-01'")


def test_columns_that_came_since_go_without_mapping(tmp_path: Path, connect: Connect) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute("CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, v VARCHAR)")
    lake.execute("INSERT INTO t (v) VALUES ('a'), ('b'), ('c')")
    lake.execute("ALTER TABLE t ADD COLUMN n INTEGER")
    lake.execute("INSERT INTO t (v, n) VALUES ('d', 4)")
    lake.execute("UPDATE t SET n = 1 WHERE v = 'a'")
    expected = {version: state(lake, version) for version in range(5)}
    for version in (1, 4, 2, 0, 3, 1):
        lake.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
        assert state(lake) == expected[version]
    lake.execute("INSERT INTO t (v) VALUES ('e')")
    assert (5, "e") in state(lake)[1]
    lake.execute("ALTER TABLE t ADD COLUMN n INTEGER")
    assert {row[2] for row in state(lake)[1]} == {None}


MAPPED = "'delta.columnMapping.mode' = 'name'"


def schema(table: Path) -> list[dict[str, Any]]:
    (metadata,) = of_kind(commit(table), "metaData")
    return list(json.loads(metadata["schemaString"])["fields"])


def test_a_version_before_columns_were_mapped(tmp_path: Path, connect: Connect) -> None:
    """Where they had no numbers, or others: they are found by their names in files."""
    lake = connect(tmp_path, autocommit=True)
    lake.execute("CREATE TABLE t (s STRUCT(x INTEGER), l STRUCT(i INTEGER)[], b VARCHAR, p VARCHAR) PARTITIONED BY (p)")
    lake.execute("INSERT INTO t VALUES ({'x': 1}, [{'i': 1}], 'b1', 'p1')")
    lake.execute("ALTER TABLE t ADD COLUMN s.y VARCHAR")
    lake.execute("INSERT INTO t VALUES ({'x': 2, 'y': 'y'}, [{'i': 2}], 'b2', 'p2')")
    lake.execute(f"ALTER TABLE t SET ({MAPPED})")
    lake.execute("INSERT INTO t VALUES ({'x': 3, 'y': 'yy'}, NULL, 'b3', 'p3')")
    lake.execute("ALTER TABLE t RENAME COLUMN b TO c")
    lake.execute("UPDATE t SET c = 'u' WHERE s.x = 1")
    expected = {version: state(lake, version) for version in range(8)}
    for version in (3, 1, 7, 0, 6, 2, 5, 4):
        lake.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
        for metadata in of_kind(commit(tmp_path / "t"), "metaData"):
            assert metadata["partitionColumns"] == ["p"]
        with lakedbapi.connect(f"delta:///{tmp_path}") as fresh:
            assert state(fresh) == expected[version]
        assert {version: state(lake, version) for version in expected} == expected
    lake.execute("RESTORE TABLE t TO VERSION AS OF 7")
    lake.execute("ALTER TABLE t DROP COLUMN c")
    with pytest.raises(lakedbapi.NotSupportedError, match=r"'b' cannot be restored.*FOR VERSION AS OF"):
        lake.execute("RESTORE TABLE t TO VERSION AS OF 3")
    lake.execute("RESTORE TABLE t TO VERSION AS OF 7")
    assert state(lake) == expected[7]


@pytest.mark.parametrize("before", ["", MAPPED])
@pytest.mark.parametrize("after", ["", MAPPED])
def test_a_version_before_the_table_was_replaced(tmp_path: Path, connect: Connect, before: str, after: str) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute("CREATE TABLE t (a VARCHAR, b INTEGER, c DATE)" + f" WITH ({before})" * bool(before))
    lake.execute("INSERT INTO t VALUES ('a', 1, '2020-01-01')")
    lake.execute("CREATE OR REPLACE TABLE t (c VARCHAR, a INTEGER)" + f" WITH ({after})" * bool(after))
    lake.execute("INSERT INTO t VALUES ('c', 2)")
    expected = {version: state(lake, version) for version in range(4)}
    replaced = of_kind(commit(tmp_path / "t", 2), "metaData")[0]
    ids = [field["metadata"].get("delta.columnMapping.id") for field in json.loads(replaced["schemaString"])["fields"]]
    assert ids == ([None, None] if not after else [4, 5] if before else [1, 2])
    if after and not before:
        with pytest.raises(lakedbapi.NotSupportedError, match="'a' cannot be restored"):
            lake.execute("RESTORE TABLE t TO VERSION AS OF 1")
        return
    for version in (1, 3, 0, 2, 1):
        lake.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
        with lakedbapi.connect(f"delta:///{tmp_path}") as fresh:
            assert state(fresh) == expected[version]
    told = {"delta.columnMapping.id", "delta.columnMapping.physicalName"} if after else set()
    assert [field["metadata"].keys() for field in schema(tmp_path / "t")] == [told] * 3
    lake.execute("INSERT INTO t VALUES ('z', 9, '2021-01-01')")
    assert len(state(lake)[1]) == 2


def test_a_column_whose_number_another_one_has_is_not_restored(tmp_path: Path, connect: Connect) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t WITH ({MAPPED}) AS SELECT 'a' AS a")
    lake.execute("CREATE OR REPLACE TABLE t AS SELECT 'b' AS b")
    lake.execute(f"ALTER TABLE t SET ({MAPPED})")
    with pytest.raises(lakedbapi.NotSupportedError, match="'a' cannot be restored"):
        lake.execute("RESTORE TABLE t TO VERSION AS OF 0")
    assert state(lake) == (["b"], [("b",)])


@pytest.mark.parametrize("properties", ["", f", {MAPPED}"], ids=["", "mapped"])
def test_the_type_of_a_column_returns_with_its_changes(tmp_path: Path, connect: Connect, properties: str) -> None:
    """No reader knows one that makes a type narrower."""
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t (i INTEGER) WITH ('delta.enableTypeWidening' = 'true'{properties})")
    lake.execute("INSERT INTO t VALUES (1)")
    lake.execute("ALTER TABLE t ALTER COLUMN i TYPE BIGINT")
    lake.execute("INSERT INTO t VALUES (5000000000)")
    lake.execute("ALTER TABLE t RESET ('delta.enableTypeWidening')")
    for version, changes in ((1, None), (3, [{"fromType": "integer", "toType": "long"}]), (1, None)):
        lake.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
        (field,) = schema(tmp_path / "t")
        assert field["metadata"].get("delta.typeChanges") == changes
        assert state(lake) == state(lake, version)


def test_values_of_a_renamed_identity_column_are_not_given_again(tmp_path: Path, connect: Connect) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, v VARCHAR) WITH ({MAPPED})")
    lake.execute("INSERT INTO t (v) VALUES ('a')")
    lake.execute("ALTER TABLE t RENAME COLUMN id TO key")
    lake.execute("INSERT INTO t (v) VALUES ('b'), ('c')")
    lake.execute("RESTORE TABLE t TO VERSION AS OF 1")
    lake.execute("INSERT INTO t (v) VALUES ('d')")
    assert state(lake) == (["id", "v"], [(1, "a"), (4, "d")])


def test_a_schema_that_was_replaced_returns_with_all_that_its_fields_had(tmp_path: Path, connect: Connect) -> None:
    """Spark's overwriteSchema, in a table that maps no columns: fields have nothing but their places and names."""
    table = Table(tmp_path / "t").create([("i", "long"), ("s", "string"), ("p", "string")], ["p"])
    first = table.log / f"{0:020}.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    fields = {"s": {"comment": "the s", "x": {"y": [1]}}}
    lines[1]["metaData"]["schemaString"] = schema_string([("i", "long"), ("s", "string"), ("p", "string")], **fields)
    first.write_text("".join(json.dumps(line) + "\n" for line in lines))
    old = table.file("a.parquet", pa.table({"i": [1, 2], "s": ["x", "y"]}), partitionValues={"p": "k"})
    table.commit(old)
    replaced = dict(lines[1]["metaData"])
    replaced["schemaString"] = schema_string([("z", "double"), ("i", "string")], z={"comment": "the z", "other": 1})
    replaced["partitionColumns"] = []
    table.commit({"metaData": replaced}, remove(old), table.file("b.parquet", pa.table({"z": [0.5], "i": ["text"]})))
    lake = connect(tmp_path, autocommit=True)
    assert state(lake) == (["z", "i"], [(0.5, "text")])
    lake.execute("RESTORE TABLE t TO VERSION AS OF 1")
    assert state(lake) == (["i", "s", "p"], [(1, "x", "k"), (2, "y", "k")])
    (metadata,) = of_kind(commit(tmp_path / "t"), "metaData")
    assert json.loads(metadata["schemaString"]) == json.loads(lines[1]["metaData"]["schemaString"])
    assert metadata["partitionColumns"] == ["p"]
    lake.execute("RESTORE TABLE t TO VERSION AS OF 2")
    assert state(lake) == (["z", "i"], [(0.5, "text")])
