"""Rows keep their ids and commit versions wherever they are copied to (protocol, "Row Tracking")."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi.errors import NotSupportedError, ProgrammingError
from tests.formats.delta.committed import commit, info, of_kind, rows, values, versions
from tests.formats.delta.conftest import Connect
from tests.thorough import quick

TRACKED = "'delta.enableRowTracking' = 'true'"


@pytest.fixture
def lake(tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    return connect(tmp_path, autocommit=True)


def tracked(lake: lakedbapi.Connection, table: Path) -> dict[int, tuple[int, int]]:
    """Id and commit version of each row by its column `i`, as the protocol has a reader find them."""
    adds: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for version in versions(table):
        for metadata in of_kind(commit(table, version), "metaData"):
            names = metadata["configuration"]
        for add in of_kind(commit(table, version), "add"):
            adds[str(table / unquote(add["path"]))] = add
    id_name, version_name = (
        names[f"delta.rowTracking.materialized{name}ColumnName"] for name in ("RowId", "RowCommitVersion")
    )
    files: dict[str, list[dict[str, Any]]] = {}
    found = {}
    for i, path, position in rows(lake, f"SELECT i, filename, file_row_number FROM {table.name}"):
        path = path.removeprefix("file://")
        row = files.setdefault(path, pq.ParquetFile(path).read().to_pylist())[position]
        id, changed = row.get(id_name), row.get(version_name)
        add = adds[path]
        found[i] = (
            add["baseRowId"] + position if id is None else id,
            add["defaultRowCommitVersion"] if changed is None else changed,
        )
    return found


@pytest.mark.parametrize("options", ["", ", 'delta.enableDeletionVectors' = 'false'"])
def test_rows_keep_their_ids_when_they_are_updated(lake: lakedbapi.Connection, tmp_path: Path, options: str) -> None:
    lake.execute(f"CREATE TABLE t (i BIGINT, s VARCHAR) WITH ({TRACKED}{options})")
    (metadata,) = of_kind(commit(tmp_path / "t"), "metaData")
    assert metadata["configuration"]["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")
    assert {"rowTracking", "domainMetadata"} <= set(of_kind(commit(tmp_path / "t"), "protocol")[0]["writerFeatures"])
    lake.execute("INSERT INTO t SELECT r.i, 'old' FROM range(6) r(i)")
    lake.execute("UPDATE t SET s = 'new' WHERE i IN (1, 4)")
    assert info(tmp_path / "t")["tags"] == {"delta.rowTracking.preserved": "true"}
    expected = {i: (i, 2 if i in (1, 4) else 1) for i in range(6)}
    assert tracked(lake, tmp_path / "t") == expected
    assert dict(rows(lake, "SELECT i, rowid FROM t")) == {i: i for i in range(6)}
    lake.execute(
        "MERGE INTO t USING (VALUES (4, 'merged'), (9, 'fresh')) u(i, s) ON t.i = u.i "
        "WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT *"
    )
    found = tracked(lake, tmp_path / "t")
    fresh = found.pop(9)
    assert found == expected | {4: (4, 3)}
    assert fresh[0] > 5
    lake.execute("DELETE FROM t WHERE i = 0")
    lake.execute("OPTIMIZE t")
    expected = {i: place for i, place in (expected | {4: (4, 3), 9: fresh}).items() if i}
    assert tracked(lake, tmp_path / "t") == expected
    lake.execute("RESTORE TABLE t TO VERSION AS OF 2")
    restored = tracked(lake, tmp_path / "t")
    assert {i: id for i, (id, _) in restored.items()} == {i: i for i in range(6)}
    assert all("_row-" not in name for name in (column[0] for column in lake.execute("SELECT * FROM t").description))


@pytest.mark.parametrize("options", ["", ", 'delta.enableDeletionVectors' = 'false'"])
def test_actions_of_a_file_all_have_its_ids(lake: lakedbapi.Connection, tmp_path: Path, options: str) -> None:
    lake.execute(f"CREATE TABLE t (i BIGINT) WITH ({TRACKED}{options})")
    for start in (0, 100):
        lake.execute(f"INSERT INTO t SELECT i FROM range({start}, {start + 100}) r(i)")
    for sql in ("DELETE FROM t WHERE i = 5", "DELETE FROM t WHERE i = 6", "DELETE FROM t WHERE i < 100", "OPTIMIZE t"):
        lake.execute(sql)
    known: dict[str, tuple[int, int]] = {}
    removed = 0
    for version in versions(tmp_path / "t"):
        for action in of_kind(commit(tmp_path / "t", version), "remove"):
            assert (action["baseRowId"], action["defaultRowCommitVersion"]) == known[action["path"]]
            removed += 1
        for action in of_kind(commit(tmp_path / "t", version), "add"):
            ids = action["baseRowId"], action["defaultRowCommitVersion"]
            assert known.setdefault(action["path"], ids) == ids
    assert removed >= 3


def test_ids_last_in_one_transaction(tmp_path: Path, connect: Connect, lake: lakedbapi.Connection) -> None:
    lake.execute(f"CREATE TABLE t (i BIGINT, n INTEGER) WITH ({TRACKED})")
    lake.execute("INSERT INTO t SELECT r.i, 0 FROM range(4) r(i)")
    other = connect(tmp_path)
    other.execute("INSERT INTO t VALUES (10, 0)")
    other.execute("UPDATE t SET n = n + 1 WHERE i IN (1, 10)")
    other.execute("UPDATE t SET n = n + 1 WHERE i IN (1, 2)")
    other.execute("DELETE FROM t WHERE i = 3")
    lake.execute("INSERT INTO t VALUES (20, 0)")
    other.commit()
    found = tracked(lake, tmp_path / "t")
    assert {i: found[i] for i in (0, 1, 2)} == {0: (0, 1), 1: (1, 3), 2: (2, 3)}
    assert len({id for id, _ in found.values()}) == len(found) == 5
    assert rows(lake, "SELECT i, n FROM t ORDER BY i") == [(0, 0), (1, 2), (2, 1), (10, 1), (20, 0)]


def test_columns_are_mapped_as_well(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    lake.execute(f"CREATE TABLE t (i BIGINT, s VARCHAR) WITH ({TRACKED}, 'delta.columnMapping.mode' = 'name')")
    lake.execute("INSERT INTO t SELECT r.i, 'x' FROM range(3) r(i)")
    lake.execute("UPDATE t SET s = 'y' WHERE i = 1")
    assert dict(rows(lake, "SELECT i, rowid FROM t")) == {0: 0, 1: 1, 2: 2}
    lake.execute("ALTER TABLE t RENAME COLUMN s TO u")
    lake.execute("UPDATE t SET u = 'z'")
    assert dict(rows(lake, "SELECT i, rowid FROM t")) == {0: 0, 1: 1, 2: 2}


def test_tracking_is_switched_on_later(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    """All files get ids, in the commit that promises them."""
    lake.execute("CREATE TABLE t (i BIGINT, s VARCHAR)")
    lake.execute("INSERT INTO t SELECT r.i, 'x' FROM range(5) r(i)")
    lake.execute("INSERT INTO t SELECT r.i, 'x' FROM range(5, 1000) r(i)")
    lake.execute("DELETE FROM t WHERE i IN (3, 4, 500)")
    lake.execute("DELETE FROM t WHERE i = 7")
    with pytest.raises(NotSupportedError, match="no row ids"):
        lake.execute("SELECT rowid FROM t")
    before = {add["path"]: add for version in (3, 4) for add in of_kind(commit(tmp_path / "t", version), "add")}
    lake.execute(f"ALTER TABLE t SET ({TRACKED})")
    actions = commit(tmp_path / "t")
    (mark,) = of_kind(actions, "domainMetadata")
    assert mark == {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":999}', "removed": False}
    assert not of_kind(actions, "remove")
    adds = of_kind(actions, "add")
    assert {add["defaultRowCommitVersion"] for add in adds} == {5}
    assert sorted(add["baseRowId"] for add in adds) in ([0, 5], [0, 995])
    for add in adds:
        known = before[add["path"]]
        assert {**add, "dataChange": True} == {
            **known,
            **{name: add[name] for name in ("baseRowId", "defaultRowCommitVersion")},
        }
    found = tracked(lake, tmp_path / "t")
    assert len(found) == len({id for id, _ in found.values()}) == 996
    lake.execute("UPDATE t SET s = 'y' WHERE i IN (1, 900)")
    lake.execute("OPTIMIZE t")
    changed = {1: (found[1][0], 6), 900: (found[900][0], 6)}
    assert tracked(lake, tmp_path / "t") == found | changed
    lake.execute("RESTORE TABLE t TO VERSION AS OF 3")
    restored = tracked(lake, tmp_path / "t")
    assert len(restored) == len({id for id, _ in restored.values()}) == 997
    assert lake.execute("SELECT count(*) FROM t").fetchone() == (997,)


def test_tracking_begins_with_other_changes(lake: lakedbapi.Connection, tmp_path: Path, connect: Connect) -> None:
    lake.execute("CREATE TABLE t (i BIGINT)")
    lake.execute("INSERT INTO t SELECT r.i FROM range(100) r(i)")
    lake.execute("INSERT INTO t SELECT r.i FROM range(100, 200) r(i)")
    other = connect(tmp_path)
    other.execute(f"ALTER TABLE t SET ({TRACKED})")
    other.execute("DELETE FROM t WHERE i IN (7, 8)")
    other.execute("INSERT INTO t VALUES (1000)")
    lake.execute("DELETE FROM t WHERE i IN (150, 9)")
    other.commit()
    found = tracked(lake, tmp_path / "t")
    assert len(found) == len({id for id, _ in found.values()}) == 197
    assert {changed for _, changed in found.values()} == {4}
    assert sorted(id for (id,) in rows(lake, "SELECT rowid FROM t")) == sorted(id for id, _ in found.values())


def test_tracking_is_switched_off_and_on(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT)")
    lake.execute(f"CREATE OR REPLACE TABLE t WITH ({TRACKED}) AS SELECT r.i FROM range(3) r(i)")
    (add,) = of_kind(commit(tmp_path / "t"), "add")
    assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (0, 1)
    lake.execute("ALTER TABLE t SET ('delta.enableRowTracking' = 'false')")
    lake.execute("UPDATE t SET i = i + 10")
    assert "tags" not in info(tmp_path / "t")
    assert values(lake, "SELECT i FROM t ORDER BY i") == [10, 11, 12]
    lake.execute("ALTER TABLE t SET ('delta.rowTrackingSuspended' = 'true')")
    lake.execute("INSERT INTO t VALUES (13)")
    assert "baseRowId" not in of_kind(commit(tmp_path / "t"), "add")[0]
    with pytest.raises(ProgrammingError, match="at once"):
        lake.execute(f"ALTER TABLE t SET ({TRACKED})")
    lake.execute(f"ALTER TABLE t SET ({TRACKED}, 'delta.rowTrackingSuspended' = 'false')")
    assert len(of_kind(commit(tmp_path / "t"), "add")) == 1
    found = tracked(lake, tmp_path / "t")
    assert {i: id for i, (id, _) in found.items()} == {10: 3, 11: 4, 12: 5, 13: 6}


@pytest.mark.parametrize("seed", quick(3, range(60)))
def test_ids_are_those_of_a_model(lake: lakedbapi.Connection, tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    vectors = chosen.choice(["true", "false"])
    lake.execute(
        f"CREATE TABLE t (i BIGINT, n INTEGER) WITH ({TRACKED}, 'delta.enableDeletionVectors' = '{vectors}',"
        " 'delta.checkpointInterval' = '4')"
    )
    model: dict[int, tuple[int | None, int]] = {}
    """By `i`: the id, None until it was seen, and the version of the last change."""
    serial = 0
    for _ in range(9):
        version = versions(tmp_path / "t")[-1] + 1
        picked = [i for i in model if chosen.random() < 0.3]
        listed = ", ".join(map(str, picked)) or "-1"
        step = chosen.choice(["insert", "insert", "update", "update", "delete", "merge", "optimize"])
        if step == "insert":
            count = chosen.randint(1, 20)
            lake.execute(f"INSERT INTO t SELECT {serial} + r.i, 0 FROM range({count}) r(i)")
            model |= {serial + k: (None, version) for k in range(count)}
            serial += count
        elif step == "update":
            lake.execute(f"UPDATE t SET n = n + 1 WHERE i IN ({listed})")
            model |= {i: (model[i][0], version) for i in picked}
        elif step == "delete":
            lake.execute(f"DELETE FROM t WHERE i IN ({listed})")
            model = {i: known for i, known in model.items() if i not in picked}
        elif step == "merge":
            lake.execute(
                f"MERGE INTO t USING (SELECT unnest([{listed}, {serial}]) AS i) u ON t.i = u.i WHEN MATCHED THEN "
                "UPDATE SET n = 7 WHEN NOT MATCHED AND u.i >= 0 THEN INSERT VALUES (u.i, 1)"
            )
            model |= {i: (model[i][0], version) for i in picked} | {serial: (None, version)}
            serial += 1
        else:
            lake.execute("OPTIMIZE t")
        found = tracked(lake, tmp_path / "t")
        assert {i: changed for i, (_, changed) in found.items()} == {i: known for i, (_, known) in model.items()}
        assert all(id in (None, found[i][0]) for i, (id, _) in model.items())
        model = dict(found)
        assert len({id for id, _ in found.values()}) == len(found)
        assert dict(rows(lake, "SELECT i, rowid FROM t")) == {i: id for i, (id, _) in found.items()}
