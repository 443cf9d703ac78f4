"""Row-level changes: what the log says of them, and that no reader of it sees a wrong row."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi.errors import (
    ConflictError,
    DataError,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)
from lakedbapi.formats.delta import housekeeping
from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.formats.delta.written_stats import stats_text
from lakedbapi.model.changes import FileStats, WrittenFile
from lakedbapi.model.types import Field, Scalar, Schema
from tests.formats.delta.committed import commit, info, of_kind, rows, values, versions
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import DV, Table

REWRITING = "WITH ('delta.enableDeletionVectors' = 'false')"


@pytest.fixture
def lake(tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    return connect(tmp_path, autocommit=True)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "t"


def inner(name: str, type: object, *, nullable: bool = True) -> dict[str, object]:
    return {"name": name, "type": type, "nullable": nullable, "metadata": {}}


def ten(lake: lakedbapi.Connection, options: str = "") -> None:
    lake.execute(f"CREATE TABLE t (a BIGINT, s VARCHAR) {options}")
    lake.execute("INSERT INTO t SELECT i, 's' || i FROM range(10) r(i)")


def test_a_delete_replaces_the_vector_of_the_one_before(lake: lakedbapi.Connection, table: Path) -> None:
    ten(lake)
    lake.execute("DELETE FROM t WHERE a = 5")
    (first,) = of_kind(commit(table), "add")
    lake.execute("DELETE FROM t WHERE a = 9")
    (remove,), (add,) = of_kind(commit(table), "remove"), of_kind(commit(table), "add")
    assert remove["deletionVector"] == first["deletionVector"]
    assert remove["path"] == add["path"] == first["path"]
    assert add["deletionVector"]["cardinality"] == 2
    stats = json.loads(add["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (10, False)
    assert add["modificationTime"] == first["modificationTime"]
    assert values(lake, "SELECT count(*) FROM t") == [8]


def test_positions_are_physical(lake: lakedbapi.Connection, table: Path) -> None:
    """In a file of many row groups, and again among the survivors."""
    lake.execute("CREATE TABLE t (i BIGINT)")
    lake.execute("INSERT INTO t SELECT i FROM range(100000) r(i)")
    (add,) = of_kind(commit(table), "add")
    path = table / add["path"]
    written = pq.read_table(path)
    pq.write_table(written, path, row_group_size=1000)
    text = (table / "_delta_log" / f"{1:020}.json").read_text()
    text = text.replace(f'"size":{add["size"]}', f'"size":{path.stat().st_size}')
    (table / "_delta_log" / f"{1:020}.json").write_text(text)
    with lakedbapi.connect(f"delta:///{table.parent}", autocommit=True) as fresh:
        fresh.execute("DELETE FROM t WHERE i IN (999, 1000, 65535, 65536, 99999)")
        fresh.execute("DELETE FROM t WHERE i IN (998, 1001, 99998)")
        gone = "SELECT i FROM range(100000) r(i) WHERE i NOT IN (SELECT i FROM t) ORDER BY i"
        assert values(fresh, gone) == [998, 999, 1000, 1001, 65535, 65536, 99998, 99999]


def test_only_true_conditions_delete(lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE t (x INTEGER)")
    lake.execute("INSERT INTO t VALUES (1), (2), (NULL)")
    lake.execute("DELETE FROM t WHERE NOT (x = 1)")
    assert values(lake, "SELECT x FROM t ORDER BY x") == [1, None]
    lake.execute("DELETE FROM t WHERE NULL")
    lake.execute("DELETE FROM t WHERE FALSE")
    assert values(lake, "SELECT x FROM t ORDER BY x") == [1, None]


def test_rewriting_leaves_out_what_a_vector_had_deleted(lake: lakedbapi.Connection, table: Path) -> None:
    ten(lake)
    lake.execute("DELETE FROM t WHERE a = 3")
    lake.execute("ALTER TABLE t SET ('delta.enableDeletionVectors' = 'false')")
    lake.execute("UPDATE t SET s = 'new' WHERE a = 7")
    (remove,), (add,) = of_kind(commit(table), "remove"), of_kind(commit(table), "add")
    assert "deletionVector" in remove
    assert "deletionVector" not in add
    assert json.loads(add["stats"])["numRecords"] == 9
    assert values(lake, "SELECT a FROM t ORDER BY a") == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    found = info(table)["operationMetrics"]
    assert (found["numUpdatedRows"], found["numCopiedRows"], found["numDeletionVectorsRemoved"]) == ("1", "8", "1")


@pytest.mark.parametrize("options", ["", REWRITING])
def test_files_without_rows_left_are_removed(lake: lakedbapi.Connection, table: Path, options: str) -> None:
    ten(lake, options)
    lake.execute("INSERT INTO t VALUES (100, 'x')")
    lake.execute("DELETE FROM t WHERE a < 10")
    assert of_kind(commit(table), "add") == []
    assert len(of_kind(commit(table), "remove")) == 1
    assert info(table)["operationMetrics"]["numRemovedFiles"] == "1"
    assert values(lake, "SELECT a FROM t") == [100]


PARTITION_VALUES = ("a b", "x=y", "p%q", "a/b", "é", "#", "?", "+", "..", "x", "'", '"', "%20", None)


@pytest.mark.parametrize("options", ["", REWRITING])
def test_paths_are_encoded_once(lake: lakedbapi.Connection, table: Path, options: str) -> None:
    lake.execute(f"CREATE TABLE t (i INTEGER, p VARCHAR) PARTITIONED BY (p) {options}")
    for number, value in enumerate(PARTITION_VALUES):
        lake.execute("INSERT INTO t VALUES (?, ?), (?, ?)", [number, value, number + 100, value])
    for number, value in enumerate(PARTITION_VALUES):
        lake.execute("UPDATE t SET i = i + 1000 WHERE i = ?", [number])
        for add in of_kind(commit(table), "add"):
            assert (table / unquote(add["path"])).exists()
            assert add["partitionValues"] == {"p": value}
        lake.execute("DELETE FROM t WHERE i = ?", [number + 100])
    with lakedbapi.connect(f"delta:///{table.parent}") as fresh:
        found = rows(fresh, "SELECT i, p FROM t ORDER BY i")
    assert found == [(number + 1000, value) for number, value in enumerate(PARTITION_VALUES)]


def test_a_file_whose_vector_some_readers_overlook_is_rewritten(lake: lakedbapi.Connection, table: Path) -> None:
    """Polars 2 takes no notice of the vectors of files with escapes in their path."""
    lake.execute("CREATE TABLE t (i INTEGER, p VARCHAR) PARTITIONED BY (p)")
    lake.execute("INSERT INTO t SELECT i, if(i < 100, 'plain', 'with space') FROM range(200) r(i)")
    lake.execute("DELETE FROM t WHERE i IN (1, 101)")
    by_partition = {add["partitionValues"]["p"]: add for add in of_kind(commit(table), "add")}
    assert "deletionVector" in by_partition["plain"]
    assert "deletionVector" not in by_partition["with space"]
    plan = "\n".join(values(lake, "EXPLAIN DELETE FROM t WHERE i = 102"))
    assert "some readers overlook" in plan
    lake.execute("ALTER TABLE t SET ('lake.write_mode' = 'merge-on-read')")
    lake.execute("DELETE FROM t WHERE i = 102")
    assert all("deletionVector" in add for add in of_kind(commit(table), "add"))


def test_an_empty_partition_value_is_null(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i INTEGER, p VARCHAR) PARTITIONED BY (p)")
    lake.execute("INSERT INTO t VALUES (1, ''), (2, NULL)")
    (add,) = of_kind(commit(table), "add")
    assert add["partitionValues"] == {"p": None}
    lake.execute("DELETE FROM t WHERE p IS NULL")
    assert values(lake, "SELECT count(*) FROM t") == [0]


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("TIMESTAMP", "infinity"),
        ("TIMESTAMP", "10000-01-01 00:00:00"),
        ("TIMESTAMPTZ", "-infinity"),
        ("DATE", "infinity"),
        ("DATE", "0044-03-15 (BC)"),
    ],
)
def test_a_partition_value_that_the_log_cannot_tell_is_refused(
    lake: lakedbapi.Connection, type: str, value: str
) -> None:
    lake.execute(f"CREATE TABLE d (i INTEGER, p {type}) PARTITIONED BY (p)")
    lake.execute(f"INSERT INTO d VALUES (1, '2020-01-01'::{type})")
    for statement in (f"INSERT INTO d VALUES (2, '{value}'::{type})", f"UPDATE d SET p = '{value}'::{type}"):
        with pytest.raises(DataError, match="column 'p' of 'd'"):
            lake.execute(statement)
    assert rows(lake, f"SELECT i, p = '2020-01-01'::{type} FROM d") == [(1, True)]


def test_partition_values_have_all_digits_of_a_decimal(lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE d (i INTEGER, p DECIMAL(38, 10)) PARTITIONED BY (p)")
    digits = "9999999999999999999999999999.9999999999"
    lake.execute(f"INSERT INTO d VALUES (1, {digits}), (2, -{digits})")
    assert values(lake, f"SELECT i FROM d WHERE p = {digits}") == [1]
    assert str(values(lake, "SELECT min(p) FROM d")[0]) == f"-{digits}"


def test_statistics_are_true_bounds(lake: lakedbapi.Connection, table: Path) -> None:
    long = "z" * 40 + "\U0010ffff"
    lake.execute("CREATE TABLE t (s VARCHAR, t TIMESTAMP, f DOUBLE, n DECIMAL(18, 3), r STRUCT(x INTEGER))")
    lake.execute(
        "INSERT INTO t VALUES (?, '2020-01-01 00:00:00.678999', 'nan', 123456789012345.678, {'x': 1})",
        [long],
    )
    lake.execute("INSERT INTO t VALUES ('a', NULL, 1.5, -0.001, NULL)")
    (first,), (second,) = of_kind(commit(table, 1), "add"), of_kind(commit(table, 2), "add")
    lake.execute("INSERT INTO t (f) VALUES ('-infinity'), (0), ('infinity')")
    assert "Infinity" not in of_kind(commit(table), "add")[0]["stats"]
    assert values(lake, "SELECT count(*) FROM t WHERE f IN ('infinity', '-infinity')") == [2]
    lake.execute("DELETE FROM t WHERE f IN ('infinity', '-infinity', 0)")
    stats = json.loads(first["stats"])
    assert stats["minValues"]["s"] == "z" * 32
    assert stats["maxValues"]["s"] == "z" * 32 + "\x7f"
    assert stats["minValues"]["t"] == stats["maxValues"]["t"] == "2020-01-01T00:00:00.678"
    assert "f" not in stats["minValues"]
    assert '"n":123456789012345.678' in first["stats"]
    assert stats["minValues"]["r"] == {"x": 1}
    assert json.loads(second["stats"])["maxValues"]["f"] == 1.5
    assert json.loads(second["stats"])["nullCount"]["t"] == 1
    for condition in (f"s = '{long}'", "t = '2020-01-01 00:00:00.678999'", "f = 'nan'::DOUBLE", "f > 1000"):
        assert values(lake, f"SELECT count(*) FROM t WHERE {condition}") == [1], condition
        assert lake.execute(f"UPDATE t SET s = s WHERE {condition}").rowcount == 1


@pytest.mark.parametrize("day", ["10000-01-01", "0044-03-15 (BC)", "infinity"])
def test_times_beyond_the_calendar_of_the_log_have_no_bounds(lake: lakedbapi.Connection, table: Path, day: str) -> None:
    """Their texts would be other days, or none, for other readers."""
    lake.execute("CREATE TABLE t (i INTEGER, d DATE, t TIMESTAMP, z TIMESTAMPTZ)")
    lake.execute(f"INSERT INTO t SELECT 1, '{day}'::DATE, '{day}'::DATE::TIMESTAMP, '{day}'::DATE::TIMESTAMPTZ")
    stats = json.loads(of_kind(commit(table), "add")[0]["stats"])
    assert (stats["minValues"], stats["maxValues"]) == ({"i": 1}, {"i": 1})
    assert values(lake, f"SELECT i FROM t WHERE d = '{day}'::DATE AND t = '{day}'::DATE") == [1]


def test_bounds_of_times_have_milliseconds(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (z TIMESTAMPTZ, t TIMESTAMP)")
    lake.execute("INSERT INTO t VALUES ('2020-01-01 00:00:00+00', '2020-01-01 00:00:00')")
    lake.execute("INSERT INTO t VALUES ('2020-01-01 00:00:00.5+00', '2020-01-01 00:00:00.5')")
    for version, second in ((1, "00:00:00.000"), (2, "00:00:00.500")):
        (add,) = of_kind(commit(table, version), "add")
        bounds = {"z": f"2020-01-01T{second}Z", "t": f"2020-01-01T{second}"}
        assert json.loads(add["stats"])["minValues"] == json.loads(add["stats"])["maxValues"] == bounds


def test_an_infinity_leaves_a_column_without_bounds(lake: lakedbapi.Connection, table: Path) -> None:
    """JSON has no number for it."""
    lake.execute("CREATE TABLE t (f DOUBLE, g FLOAT, h DOUBLE)")
    lake.execute("INSERT INTO t VALUES (1.5, '-inf', 1.5), ('inf', 1.5, 2.5)")
    (add,) = of_kind(commit(table), "add")
    stats = json.loads(add["stats"])
    assert (stats["minValues"], stats["maxValues"]) == ({"h": 1.5}, {"h": 2.5})


def test_a_column_that_may_have_a_nan_has_no_bounds() -> None:
    """As of a file that an engine wrote which does not tell."""
    field = Field("f", Scalar("float64"), 1)
    for has_nan, bounds in ((None, {}), (True, {}), (False, {"f": 1.5})):
        stats = FileStats("1.5", "1.5", 0, 1, has_nan, None)
        file = WrittenFile("f.parquet", 1, 100, None, {1: stats})
        found = json.loads(stats_text(file, Schema((field,)), frozenset(), {}))
        assert (found["minValues"], found["maxValues"], found["nullCount"]) == (bounds, bounds, {"f": 0})


def test_a_nan_leaves_a_column_without_bounds(lake: lakedbapi.Connection, table: Path) -> None:
    """Spark takes it for the greatest value."""
    lake.execute("CREATE TABLE t (f DOUBLE, g FLOAT, h DOUBLE)")
    lake.execute("INSERT INTO t VALUES (1.5, 1.5, 1.5), ('nan', 'nan', 2.5)")
    (add,) = of_kind(commit(table), "add")
    stats = json.loads(add["stats"])
    assert (stats["minValues"], stats["maxValues"]) == ({"h": 1.5}, {"h": 2.5})


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("z" * 32 + "\u00e9", "z" * 32 + "\U0010ffff"),
        ("z" * 32 + "\U0010ffff\u00e9", "z" * 32 + "\U0010ffff" * 2),
        ("z" * 32 + "\U0010ffff" * 2, "z" * 32 + "\U0010ffff" * 2),
        ("z" * 32 + "\U0010ffff" * 33, None),
        ("z" * 32 + "\x7f" + "a", "z" * 32 + "\U0010ffff"),
    ],
)
def test_a_long_text_has_an_upper_bound_above_it(
    lake: lakedbapi.Connection, table: Path, text: str, bound: str | None
) -> None:
    lake.execute("CREATE TABLE t (s VARCHAR)")
    lake.execute("INSERT INTO t VALUES (?)", [text])
    (add,) = of_kind(commit(table), "add")
    assert json.loads(add["stats"])["maxValues"].get("s") == bound
    assert bound is None or bound >= text


def test_only_the_first_columns_have_statistics(lake: lakedbapi.Connection, table: Path) -> None:
    columns = ", ".join(f"c{i} INTEGER" for i in range(40))
    lake.execute(f"CREATE TABLE t ({columns})")
    lake.execute("ALTER TABLE t SET ('delta.checkpoint.writeStatsAsJson' = 'true')")
    lake.execute(f"INSERT INTO t VALUES ({', '.join('1' for _ in range(40))})")
    (add,) = of_kind(commit(table), "add")
    assert sorted(json.loads(add["stats"])["minValues"]) == sorted(f"c{i}" for i in range(32))
    lake.execute("ALTER TABLE t SET ('delta.dataSkippingStatsColumns' = 'c39,c2')")
    lake.execute(f"INSERT INTO t VALUES ({', '.join('1' for _ in range(40))})")
    (add,) = of_kind(commit(table), "add")
    assert sorted(json.loads(add["stats"])["minValues"]) == ["c2", "c39"]


def test_columns_with_statistics_are_chosen_and_counted_as_leaves(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (r STRUCT(x INTEGER, y STRUCT(z INTEGER)), a INTEGER, b INTEGER)")
    for name, value, expected in (
        ("NumIndexedCols", "0", {}),
        ("NumIndexedCols", "2", {"r": {"x": 1, "y": {"z": 2}}}),
        ("NumIndexedCols", "3", {"r": {"x": 1, "y": {"z": 2}}, "a": 3}),
        ("NumIndexedCols", "-1", {"r": {"x": 1, "y": {"z": 2}}, "a": 3, "b": 4}),
        ("StatsColumns", "R.y, `b`", {"r": {"y": {"z": 2}}, "b": 4}),
        ("StatsColumns", "r.x", {"r": {"x": 1}}),
    ):
        lake.execute(f"ALTER TABLE t SET ('delta.dataSkipping{name}' = '{value}')")
        lake.execute("INSERT INTO t VALUES ({'x': 1, 'y': {'z': 2}}, 3, 4)")
        (add,) = of_kind(commit(table), "add")
        assert json.loads(add["stats"])["minValues"] == expected, (name, value)


def test_a_change_of_nothing_is_no_version(lake: lakedbapi.Connection, table: Path) -> None:
    ten(lake)
    for sql in ("UPDATE t SET s = 'x' WHERE a = 77", "DELETE FROM t WHERE a > 77", "DELETE FROM t WHERE FALSE"):
        assert lake.execute(sql).rowcount == 0
    assert versions(table) == [0, 1]


def test_counts_need_no_reading(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i INTEGER, p INTEGER) PARTITIONED BY (p)")
    lake.execute("INSERT INTO t SELECT i, i % 3 FROM range(30) r(i)")
    lake.execute("DELETE FROM t WHERE i = 0")
    for path in table.rglob("*.parquet"):
        path.unlink()
    assert lake.execute("DELETE FROM t WHERE p = 0").rowcount == 9
    assert info(table)["operationMetrics"]["numDeletedRows"] == "9"
    assert lake.execute("TRUNCATE t").rowcount == 20
    assert info(table)["operation"] == "TRUNCATE"


def test_metrics_are_those_of_spark(lake: lakedbapi.Connection, table: Path) -> None:
    ten(lake)
    assert info(table)["operation"] == "WRITE"
    assert info(table)["isBlindAppend"] is True
    assert info(table)["operationMetrics"]["numOutputRows"] == "10"
    lake.execute("DELETE FROM t WHERE a = 1")
    found = info(table)
    assert (found["operation"], found["operationParameters"]) == ("DELETE", {"predicate": '["a = 1"]'})
    assert (found["readVersion"], found["isBlindAppend"], found["isolationLevel"]) == (1, False, "Serializable")
    lake.execute("DELETE FROM t WHERE a = 2")
    found = info(table)["operationMetrics"]
    names = ("Added", "Removed", "Updated")
    assert [found[f"numDeletionVectors{name}"] for name in names] == ["1", "1", "1"]
    lake.execute(
        "MERGE INTO t USING (SELECT i AS a FROM range(5, 15) r(i)) AS u ON t.a = u.a "
        "WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED THEN INSERT VALUES (u.a, 'n') "
        "WHEN NOT MATCHED BY SOURCE AND a = 0 THEN DELETE"
    )
    found = info(table)["operationMetrics"]
    assert info(table)["operation"] == "MERGE"
    # With four fifths of its rows gone the file is rewritten.
    assert [found[f"numTargetRows{n}"] for n in ("Inserted", "Updated", "Deleted", "Copied")] == ["5", "5", "1", "2"]
    assert found["numTargetRowsNotMatchedBySourceDeleted"] == "1"
    (clause,) = json.loads(info(table)["operationParameters"]["notMatchedBySourcePredicates"])
    assert clause["actionType"] == "delete"


def test_an_insert_only_merge_leaves_files_alone(lake: lakedbapi.Connection, table: Path) -> None:
    ten(lake)
    lake.execute(
        "MERGE INTO t USING (VALUES (5), (50)) u(a) ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a) VALUES (u.a)"
    )
    assert of_kind(commit(table), "remove") == []
    assert len(of_kind(commit(table), "add")) == 1
    assert info(table)["isBlindAppend"] is False  # It looked for the rows.


def test_a_row_that_is_matched_twice_is_an_error(lake: lakedbapi.Connection, table: Path) -> None:
    ten(lake)
    with pytest.raises(ProgrammingError, match="matched by several"):
        lake.execute("MERGE INTO t USING (VALUES (1), (1)) u(a) ON t.a = u.a WHEN MATCHED THEN UPDATE SET s = 'x'")
    assert versions(table) == [0, 1]


def test_a_merge_into_an_empty_table(lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE t (a INTEGER)")
    lake.execute(
        "MERGE INTO t USING (VALUES (1)) u(a) ON t.a IS NULL WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    assert values(lake, "SELECT a FROM t") == [1]


def test_a_merge_that_reads_its_target_sees_the_old_rows(lake: lakedbapi.Connection) -> None:
    ten(lake)
    lake.execute("MERGE INTO t USING (SELECT a + 1 AS a, s FROM t) u ON t.a = u.a WHEN MATCHED THEN UPDATE SET s = u.s")
    assert rows(lake, "SELECT a, s FROM t WHERE a IN (0, 1, 9) ORDER BY a") == [(0, "s0"), (1, "s0"), (9, "s8")]


def test_an_update_moves_rows_between_partitions(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i INTEGER, p VARCHAR) PARTITIONED BY (p)")
    lake.execute("INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b')")
    lake.execute("UPDATE t SET p = 'c' WHERE i <> 2")
    assert {add["partitionValues"]["p"] for add in of_kind(commit(table), "add")} == {"a", "c"}
    assert rows(lake, "SELECT i, p FROM t ORDER BY i") == [(1, "c"), (2, "a"), (3, "c")]


def test_one_transaction_is_one_version(tmp_path: Path, connect: Connect, table: Path) -> None:
    lake = connect(tmp_path, autocommit=True)
    ten(lake)
    lake.autocommit = False
    lake.execute("INSERT INTO t VALUES (100, 'x'), (101, 'y')")
    lake.execute("DELETE FROM t WHERE a = 100")
    lake.execute("DELETE FROM t WHERE a = 1")
    lake.execute("SAVEPOINT s")
    lake.execute("DELETE FROM t")
    lake.execute("ROLLBACK TO s")
    lake.execute("UPDATE t SET s = 'q' WHERE a IN (2, 101)")
    lake.commit()
    assert versions(table) == [0, 1, 2]
    (remove,) = of_kind(commit(table), "remove")
    assert "deletionVector" not in remove
    assert len(of_kind(commit(table), "add")) == 2
    with lakedbapi.connect(f"delta:///{tmp_path}") as fresh:
        assert values(fresh, "SELECT a FROM t WHERE s = 'q' ORDER BY a") == [2, 101]
        assert values(fresh, "SELECT count(*) FROM t") == [10]


@pytest.mark.parametrize("options", ["", REWRITING])
def test_rows_of_files_of_the_same_transaction_can_be_deleted(
    tmp_path: Path, connect: Connect, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakedbapi.dml.new_rows.MEMORY_LIMIT", 1)
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t (i BIGINT) {options}")
    lake.autocommit = False
    lake.execute("INSERT INTO t SELECT i FROM range(1000) r(i)")
    lake.execute("DELETE FROM t WHERE i % 2 = 0")
    assert values(lake, "SELECT count(*) FROM t") == [500]
    lake.commit()
    with lakedbapi.connect(f"delta:///{tmp_path}") as fresh:
        assert values(fresh, "SELECT sum(i) FROM t") == [250000]
    has_vectors = any("deletionVector" in add for add in of_kind(commit(tmp_path / "t"), "add"))
    assert has_vectors is (options == "")
    told = info(tmp_path / "t")["operationMetrics"]
    assert (told["numOutputRows"], told["numDeletionVectorsAdded"]) == ("500", str(int(has_vectors)))


def test_not_null_is_checked_on_every_path(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER)")
    lake.execute("INSERT INTO t VALUES (1, 1)")
    for sql in (
        "INSERT INTO t (b) VALUES (1)",
        "UPDATE t SET a = NULL",
        "MERGE INTO t USING (SELECT NULL::INTEGER AS a) u ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a) VALUES (u.a)",
    ):
        with pytest.raises(IntegrityError, match="NOT NULL"):
            lake.execute(sql)
    lake.execute("MERGE INTO t USING (SELECT 2 AS a) u ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a) VALUES (u.a)")
    assert versions(table) == [0, 1, 2]


def test_not_null_is_checked_inside_of_values(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    pair = {"type": "struct", "fields": [inner("x", "integer", nullable=False), inner("y", "integer")]}
    schema = [
        inner("k", "integer"),
        inner("s", pair),
        inner("l", {"type": "array", "elementType": pair, "containsNull": False}),
        inner("m", {"type": "map", "keyType": "string", "valueType": pair, "valueContainsNull": False}),
    ]
    table = Table(tmp_path / "n").create()
    (metadata,) = of_kind(commit(table.path), "metaData")
    table.commit({"metaData": {**metadata, "schemaString": json.dumps({"type": "struct", "fields": schema})}})
    good = "{'x': 1, 'y': NULL}"
    lake.execute(f"INSERT INTO n VALUES (1, {good}, [{good}], MAP {{'a': {good}}})")
    lake.execute("INSERT INTO n VALUES (2, NULL, NULL, NULL), (3, NULL, [], MAP {})")
    for bad, path in [
        ("{'x': NULL, 'y': 1}, NULL, NULL", "n.s.x"),
        ("NULL, [NULL], NULL", "n.l.element"),
        ("NULL, [{'x': 1, 'y': 1}, {'x': NULL, 'y': 1}], NULL", "n.l.element.x"),
        ("NULL, NULL, MAP {'a': NULL}", "n.m.value"),
        ("NULL, NULL, MAP {'a': {'x': NULL, 'y': 1}}", "n.m.value.x"),
    ]:
        with pytest.raises(IntegrityError, match=f"NULL in {path},"):
            lake.execute(f"INSERT INTO n VALUES (4, {bad})")
    with pytest.raises(IntegrityError, match=r"n\.s\.x"):
        lake.execute("UPDATE n SET s = {'x': NULL, 'y': 1} WHERE k = 1")
    assert values(lake, "SELECT k FROM n ORDER BY k") == [1, 2, 3]


def test_a_check_must_be_true(lake: lakedbapi.Connection) -> None:
    """NULL is not enough, as in Spark."""
    lake.execute("CREATE TABLE t (a INTEGER, CONSTRAINT positive CHECK (a > 0))")
    for value in ("0", "NULL"):
        with pytest.raises(IntegrityError, match="positive"):
            lake.execute(f"INSERT INTO t VALUES ({value})")
    lake.execute("CREATE TABLE u (a INTEGER)")
    lake.execute("INSERT INTO u VALUES (NULL)")
    with pytest.raises(IntegrityError, match="violated by 1 rows"):
        lake.execute("ALTER TABLE u ADD CONSTRAINT positive CHECK (a > 0)")


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t (a, b) VALUES (2, {0})",
        "INSERT INTO t (a, b) VALUES (2, {0}) RETURNING a",
        "INSERT INTO t (a, b) SELECT i, if(i = 2, {0}, i) FROM range(5) r(i)",
        "INSERT INTO t (a, b) SELECT i, if(i = 2, {0}, i % 5) FROM range(20) r(i)",
        "UPDATE t SET b = {0} WHERE a = 1",
        "UPDATE t SET b = u.b FROM (SELECT 1 AS a, {0} AS b) u WHERE t.a = u.a",
        "MERGE INTO t USING (SELECT 1 AS a) u ON t.a = u.a WHEN MATCHED THEN UPDATE SET b = {0}",
        "MERGE INTO t USING (SELECT 2 AS a) u ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (u.a, {0})",
        "MERGE INTO t USING (SELECT 2 AS a) u ON t.a = u.a WHEN NOT MATCHED BY SOURCE THEN UPDATE SET b = {0}",
    ],
)
@pytest.mark.parametrize(
    ("rule", "bad", "message"),
    [("NOT NULL", "NULL", "NOT NULL"), ("CHECK (b < 10)", "11", "violated"), ("CHECK (b < 10)", "NULL", "violated")],
)
def test_new_rows_are_verified_on_every_path(
    lake: lakedbapi.Connection, rule: str, bad: str, message: str, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakedbapi.dml.new_rows.CHUNK_ROWS", 10)
    lake.execute(f"CREATE TABLE t (a INTEGER, b INTEGER {rule})")
    lake.execute("INSERT INTO t VALUES (1, 1)")
    with pytest.raises(IntegrityError, match=message):
        lake.execute(sql.format(f"{bad}::INTEGER"))
    assert rows(lake, "SELECT * FROM t") == [(1, 1)]
    lake.execute(sql.format("7::INTEGER"))


def test_a_generated_column_takes_no_value_where_it_is_null(lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE t (a INTEGER, b INTEGER GENERATED ALWAYS AS (a * 2))")
    with pytest.raises(IntegrityError, match="another value"):
        lake.execute("INSERT INTO t VALUES (NULL, 5)")


def test_an_append_only_table_takes_no_deletes(lake: lakedbapi.Connection) -> None:
    ten(lake, "WITH ('delta.appendOnly' = 'true')")
    for sql in ("DELETE FROM t WHERE a = 1", "TRUNCATE t", "UPDATE t SET a = 1", "DELETE FROM t WHERE a < 100"):
        with pytest.raises(NotSupportedError, match="append-only"):
            lake.execute(sql)
    assert values(lake, "SELECT count(*) FROM t") == [10]


def test_a_file_that_loses_rows_keeps_all_that_is_known_of_it(lake: lakedbapi.Connection, table: Path) -> None:
    written = Table(table).create([("a", "long"), ("p", "string")], ["p"], DV, delta_enableDeletionVectors="true")
    known = {
        "partitionValues": {"p": "x"},
        "modificationTime": 12_345,
        "tags": {"INSERTION_TIME": "7", "k": None},
        "baseRowId": 5,
        "defaultRowCommitVersion": 3,
        "clusteringProvider": "liquid",
        "stats": '{"numRecords":100,"minValues":{"a":0},"maxValues":{"a":99},"nullCount":{"a":0}}',
    }
    first = written.file("p=x/a.parquet", pa.table({"a": range(100)}), **known)
    written.commit(first)
    lake.execute("DELETE FROM t WHERE a = 7")
    (add,), (removed,) = of_kind(commit(table), "add"), of_kind(commit(table), "remove")
    vector = add.pop("deletionVector")
    assert json.loads(add.pop("stats")) == {**json.loads(known["stats"]), "tightBounds": False}
    assert add == {name: value for name, value in first["add"].items() if name != "stats"}
    lake.execute("DELETE FROM t WHERE a = 8")
    again = of_kind(commit(table), "remove")[0]
    told = ("path", "partitionValues", "size", "baseRowId", "defaultRowCommitVersion")
    expected = {**{name: first["add"][name] for name in told}, "extendedFileMetadata": True, "dataChange": True}
    for found, other in ((removed, {}), (again, {"deletionVector": vector})):
        assert found.pop("deletionTimestamp") > 12_345
        assert found == {**expected, **other}


def test_a_table_of_a_newer_writer_is_not_written(lake: lakedbapi.Connection, table: Path) -> None:
    written = Table(table).create([("a", "long")], protocol={"minReaderVersion": 1, "minWriterVersion": 8})
    written.commit(written.file("a.parquet", pa.table({"a": [1]})))
    assert values(lake, "SELECT a FROM t") == [1]
    for sql in ("INSERT INTO t VALUES (2)", "DELETE FROM t", "ALTER TABLE t SET ('x' = 'y')", "DROP TABLE t"):
        with pytest.raises(NotSupportedError, match="writer of version 8"):
            lake.execute(sql)
    assert versions(table) == [0, 1]


def test_a_table_with_an_unknown_feature_is_not_written(lake: lakedbapi.Connection, table: Path) -> None:
    ten(lake)
    (protocol,) = of_kind(commit(table, 0), "protocol")
    protocol["writerFeatures"].append("icebergCompatV2")
    (table / "_delta_log" / f"{2:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    assert values(lake, "SELECT count(*) FROM t") == [10]
    for sql in ("INSERT INTO t VALUES (1, 'a')", "DELETE FROM t", "ALTER TABLE t ADD COLUMN x INTEGER", "DROP TABLE t"):
        with pytest.raises(NotSupportedError, match="icebergCompatV2"):
            lake.execute(sql)
    for sql in ("UPDATE t SET a = 1", "MERGE INTO t USING t AS o ON t.a = o.a WHEN MATCHED THEN DELETE"):
        for path in table.glob("*.parquet"):
            path.unlink()
        with pytest.raises(NotSupportedError, match="icebergCompatV2"):  # before it reads anything
            lake.execute(sql)


def test_two_tables_in_one_transaction(tmp_path: Path, connect: Connect) -> None:
    lake = connect(tmp_path, autocommit=True)
    for name in ("a", "b"):
        lake.execute(f"CREATE TABLE {name} (i INTEGER)")
    lake.autocommit = False
    lake.execute("INSERT INTO a VALUES (1)")
    with pytest.raises(NotSupportedError, match="non_atomic"):
        lake.execute("INSERT INTO b VALUES (1)")
    lake.rollback()
    one_by_one = connect(f"delta:///{tmp_path}?non_atomic=true", autocommit=False)
    one_by_one.execute("INSERT INTO a VALUES (1)")
    one_by_one.execute("INSERT INTO b VALUES (2)")
    one_by_one.commit()
    assert rows(one_by_one, "SELECT * FROM a, b") == [(1, 2)]
    other = connect(tmp_path, autocommit=True)
    one_by_one.execute("INSERT INTO a VALUES (3)")
    one_by_one.execute("UPDATE b SET i = 4 WHERE i = 2")
    other.execute("UPDATE b SET i = 5 WHERE i = 2")
    with pytest.raises(ConflictError, match=r"not undone: a \(version 2\)$") as caught:
        one_by_one.commit()
    assert not caught.value.retryable  # What was done would be done twice.
    one_by_one.rollback()
    assert rows(one_by_one, "SELECT a.i, b.i FROM a, b ORDER BY 1") == [(1, 5), (3, 5)]


def test_what_is_committed_keeps_its_files_when_the_rest_fails(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute("CREATE TABLE t (i INTEGER) WITH ('delta.checkpointInterval' = '1')")
    lake.execute("CREATE SCHEMA s")
    lake.execute("BEGIN")
    lake.execute("INSERT INTO t VALUES (1)")
    lake.execute("DROP SCHEMA s")
    (tmp_path / "s" / "file").touch()
    with pytest.raises(OperationalError, match=r"not empty.*not undone: t \(version 1\)"):
        lake.execute("COMMIT")
    assert rows(lake, "SELECT * FROM t") == [(1,)]

    def fail(*arguments: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(housekeeping, "write_checkpoint", fail)
    monkeypatch.setattr(DeltaTable, "follow", fail)
    lake.execute("INSERT INTO t VALUES (2)")
    assert rows(lake, "SELECT * FROM t ORDER BY i") == [(1,), (2,)]
