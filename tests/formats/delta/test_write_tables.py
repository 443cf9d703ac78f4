"""Definitions: what CREATE and ALTER leave in the log, and that a change of one thing leaves all others alone."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi.dml import new_rows
from lakedbapi.errors import IntegrityError, NotSupportedError, OperationalError, ProgrammingError
from lakedbapi.formats.delta.actions import Protocol
from lakedbapi.formats.delta.writer_features import with_features
from tests.formats.delta.committed import commit, info, of_kind, rows, values, versions
from tests.formats.delta.conftest import Connect


@pytest.fixture
def lake(tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    return connect(tmp_path, autocommit=True)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "t"


def metadata(table: Path) -> dict[str, Any]:
    (found,) = of_kind((action for v in reversed(versions(table)) for action in commit(table, v)), "metaData")[:1]
    return found


def fields(table: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(metadata(table)["schemaString"])["fields"]
    return found


def protocol(table: Path) -> dict[str, Any]:
    return of_kind((action for v in versions(table) for action in commit(table, v)), "protocol")[-1]


def foreign(table: Path, protocol: Mapping[str, Any], fields: list[dict[str, Any]], **configuration: str) -> None:
    """A table as another writer made it."""
    meta = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": 1234567890123,
        "unknown": {"kept": True},
    }
    (table / "_delta_log").mkdir(parents=True)
    lines = [json.dumps({"protocol": protocol}), json.dumps({"metaData": meta})]
    (table / "_delta_log" / f"{0:020}.json").write_text("\n".join(lines) + "\n")


def field(name: str, type: str = "integer", **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "nullable": True, "metadata": metadata}


def test_a_new_table_has_what_it_needs(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i INTEGER NOT NULL, t TIMESTAMP, p VARCHAR DEFAULT 'x') PARTITIONED BY (p)")
    assert protocol(table) == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors", "timestampNtz"],
        "writerFeatures": ["allowColumnDefaults", "appendOnly", "deletionVectors", "invariants", "timestampNtz"],
    }
    assert metadata(table)["partitionColumns"] == ["p"]
    assert metadata(table)["configuration"] == {"delta.enableDeletionVectors": "true"}
    assert [(f["name"], f["type"], f["nullable"]) for f in fields(table)] == [
        ("i", "integer", False),
        ("t", "timestamp_ntz", True),
        ("p", "string", True),
    ]
    lake.execute("CREATE TABLE plain (i INTEGER) WITH ('delta.enableDeletionVectors' = 'false')")
    assert protocol(table.parent / "plain") == {"minReaderVersion": 1, "minWriterVersion": 2}


OLD = {"minReaderVersion": 1, "minWriterVersion": 3}


def test_vectors_are_switched_on_with_all_that_the_old_version_had(lake: lakedbapi.Connection, table: Path) -> None:
    foreign(table, OLD, [field("i", comment="kept", **{"custom.key": [1]})], **{"delta.constraints.c": "i > 0"})
    lake.execute("INSERT INTO t VALUES (1), (2)")
    lake.execute("DELETE FROM t WHERE i = 1")
    assert not any("deletionVector" in add for add in of_kind(commit(table), "add"))
    before = metadata(table)
    lake.execute("ALTER TABLE t SET ('delta.enableDeletionVectors' = 'true')")
    assert protocol(table) == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["appendOnly", "checkConstraints", "deletionVectors", "invariants"],
    }
    after = metadata(table)
    assert after.pop("configuration") == {**before.pop("configuration"), "delta.enableDeletionVectors": "true"}
    assert after == before
    lake.execute("INSERT INTO t VALUES (3), (4)")
    lake.execute("DELETE FROM t WHERE i = 3")
    (add,) = of_kind(commit(table), "add")
    assert "deletionVector" in add


def test_vectors_are_switched_on_where_columns_are_mapped_by_an_old_version(
    lake: lakedbapi.Connection, table: Path
) -> None:
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-i"}
    on = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    foreign(table, {"minReaderVersion": 2, "minWriterVersion": 5}, [field("i", **mapped)], **on)
    lake.execute("INSERT INTO t VALUES (1), (2)")
    lake.execute("ALTER TABLE t SET ('delta.enableDeletionVectors' = 'true')")
    raised = protocol(table)
    assert (raised["minReaderVersion"], raised["minWriterVersion"]) == (3, 7)
    assert raised["readerFeatures"] == ["columnMapping", "deletionVectors"]
    assert {"columnMapping", "generatedColumns", "changeDataFeed"} <= set(raised["writerFeatures"])
    assert values(lake, "SELECT i FROM t ORDER BY i") == [1, 2]


def test_partition_columns_are_mapped(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT, p VARCHAR) PARTITIONED BY (p) WITH ('delta.columnMapping.mode' = 'name')")
    lake.execute("INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    name = fields(table)[1]["metadata"]["delta.columnMapping.physicalName"]
    assert metadata(table)["partitionColumns"] == ["p"]
    found = [add["partitionValues"] for add in of_kind(commit(table), "add")]
    assert sorted(found, key=str) == sorted([{name: "a"}, {name: None}], key=str)
    assert values(lake, "SELECT i FROM t WHERE p IS NULL") == [2]


def test_a_property_without_its_feature_means_nothing(lake: lakedbapi.Connection, table: Path) -> None:
    on = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    foreign(table, {"minReaderVersion": 1, "minWriterVersion": 2}, [field("i")], **on)
    lake.execute("INSERT INTO t SELECT i FROM range(10) r(i)")
    lake.execute("DELETE FROM t WHERE i = 1")
    assert [add.get("deletionVector") for add in of_kind(commit(table), "add")] == [None]
    lake.execute("UPDATE t SET i = 20 WHERE i = 2")
    assert not of_kind(commit(table), "cdc")
    assert not of_kind(commit(table), "protocol")
    assert values(lake, "SELECT sum(i) FROM t") == [62]


def test_a_table_is_append_only_if_its_protocol_knows_that(lake: lakedbapi.Connection, table: Path) -> None:
    on = {"delta.appendOnly": "true"}
    for name, features in (("t", []), ("u", ["appendOnly"])):
        made = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
        foreign(table.parent / name, made, [field("i")], **on)
        lake.execute(f"INSERT INTO {name} VALUES (1), (2)")
    assert lake.execute("DELETE FROM t WHERE i = 1").rowcount == 1
    with pytest.raises(NotSupportedError, match="append-only"):
        lake.execute("DELETE FROM u WHERE i = 1")


@pytest.mark.parametrize(
    "asked",
    [
        "'delta.enableIcebergCompatV1' = 'true'",
        "'delta.enableIcebergCompatV2' = 'true'",
        "'delta.enableIcebergCompatV3' = 'true'",
        "'delta.enableVariantShredding' = 'true'",
        "'delta.universalFormat.enabledFormats' = 'iceberg'",
        "'delta.feature.catalogManaged' = 'supported'",
    ],
)
def test_properties_that_ask_for_what_is_not_written(lake: lakedbapi.Connection, table: Path, asked: str) -> None:
    name = asked.split("'")[1]
    with pytest.raises(NotSupportedError, match=name):
        lake.execute(f"CREATE TABLE t (i INTEGER) WITH ({asked})")
    lake.execute("CREATE TABLE t (i INTEGER)")
    with pytest.raises(NotSupportedError, match=name):
        lake.execute(f"ALTER TABLE t SET ({asked})")
    lake.execute("ALTER TABLE t SET ('delta.enableIcebergCompatV2' = 'false')")
    lake.execute("INSERT INTO t VALUES (1)")


def test_an_altered_column_keeps_what_is_not_known_here(lake: lakedbapi.Connection, table: Path) -> None:
    foreign(table, OLD, [field("i", **{"custom.key": [1], "comment": "old"}), field("s", "string", other="x")])
    lake.execute("COMMENT ON COLUMN t.i IS 'new'")
    assert fields(table)[0]["metadata"] == {"custom.key": [1], "comment": "new"}
    lake.execute("ALTER TABLE t ADD COLUMN n DOUBLE")
    assert fields(table)[0]["metadata"] == {"custom.key": [1], "comment": "new"}
    assert fields(table)[1]["metadata"] == {"other": "x"}
    assert metadata(table)["unknown"] == {"kept": True}
    assert metadata(table)["createdTime"] == 1234567890123
    assert info(table)["operation"] == "ADD COLUMNS"


def test_mapped_columns_are_renamed_and_dropped(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (a INTEGER, r STRUCT(x INTEGER, y VARCHAR), z INTEGER)")
    lake.execute("INSERT INTO t VALUES (1, {'x': 2, 'y': 'b'}, 3)")
    for sql in ("ALTER TABLE t RENAME COLUMN a TO b", "ALTER TABLE t DROP COLUMN z"):
        with pytest.raises(NotSupportedError, match="columnMapping"):
            lake.execute(sql)
    lake.execute("ALTER TABLE t SET ('delta.columnMapping.mode' = 'name')")
    assert [f["metadata"]["delta.columnMapping.physicalName"] for f in fields(table)] == ["a", "r", "z"]
    for sql in ("RENAME COLUMN a TO b", "RENAME COLUMN r.x TO w", "DROP COLUMN z", "ADD COLUMN z VARCHAR"):
        lake.execute(f"ALTER TABLE t {sql}")
    assert rows(lake, "SELECT b, r.w, r.y, z FROM t") == [(1, 2, "b", None)]
    lake.execute("INSERT INTO t VALUES (4, {'w': 5, 'y': 'c'}, 'new')")
    (add,) = of_kind(commit(table), "add")
    names = pq.read_schema(table / add["path"]).names
    new = fields(table)[-1]["metadata"]
    assert names == ["a", "r", new["delta.columnMapping.physicalName"]]
    assert new["delta.columnMapping.physicalName"].startswith("col-")
    assert new["delta.columnMapping.id"] == int(metadata(table)["configuration"]["delta.columnMapping.maxColumnId"])
    assert json.loads(add["stats"])["minValues"]["r"] == {"x": 5, "y": "c"}
    with lakedbapi.connect(f"delta:///{table.parent}", autocommit=True) as fresh:
        fresh.execute("UPDATE t SET r = {'w': 9, 'y': 'z'} WHERE z IS NULL")
        assert rows(fresh, "SELECT b, r.w, z FROM t ORDER BY b") == [(1, 9, None), (4, 5, "new")]
    with pytest.raises(NotSupportedError, match=r"only from none to name; CREATE TABLE … WITH"):
        lake.execute("ALTER TABLE t SET ('delta.columnMapping.mode' = 'none')")
    lake.execute("CREATE TABLE plain WITH ('delta.columnMapping.mode' = 'none') AS SELECT * FROM t")
    assert rows(lake, "SELECT b, z FROM plain WHERE b = 4") == [(4, "new")]


def test_a_widened_column_tells_what_it_was(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i INTEGER, l INTEGER[])")
    lake.execute("INSERT INTO t VALUES (1, [1])")
    with pytest.raises(NotSupportedError, match="enableTypeWidening"):
        lake.execute("ALTER TABLE t ALTER COLUMN i TYPE BIGINT")
    lake.execute("ALTER TABLE t SET ('delta.enableTypeWidening' = 'true')")
    lake.execute("ALTER TABLE t ALTER COLUMN i TYPE BIGINT")
    lake.execute("ALTER TABLE t ALTER COLUMN l TYPE BIGINT[]")
    lake.execute("INSERT INTO t VALUES (5000000000, [5000000000])")
    assert values(lake, "SELECT i FROM t ORDER BY i") == [1, 5000000000]
    change = {"fromType": "integer", "toType": "long"}
    assert fields(table)[0]["metadata"]["delta.typeChanges"] == [change]
    assert fields(table)[1]["metadata"]["delta.typeChanges"] == [{**change, "fieldPath": "element"}]
    assert "typeWidening" in protocol(table)["readerFeatures"]


def test_identity_values_are_kept_in_the_schema(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY, s VARCHAR)")
    lake.execute("INSERT INTO t (s) VALUES ('a'), ('b')")
    lake.execute("INSERT INTO t VALUES (10, 'c')")
    lake.execute("INSERT INTO t (s) VALUES ('d')")
    assert values(lake, "SELECT id FROM t ORDER BY id") == [1, 2, 10, 11]
    assert fields(table)[0]["metadata"]["delta.identity.highWaterMark"] == 11
    assert "identityColumns" in protocol(table)["writerFeatures"]


GENERATED = {"minReaderVersion": 1, "minWriterVersion": 4}


def test_generated_columns_are_computed_and_checked(lake: lakedbapi.Connection, table: Path) -> None:
    foreign(table, GENERATED, [field("i"), field("g", **{"delta.generationExpression": "i * 2"})])
    lake.execute("INSERT INTO t (i) VALUES (1)")
    lake.execute("INSERT INTO t VALUES (2, 4)")
    with pytest.raises(IntegrityError, match="generated as i"):
        lake.execute("INSERT INTO t VALUES (2, 5)")
    lake.execute("UPDATE t SET i = 10 WHERE i = 1")
    with pytest.raises(IntegrityError, match="generated as i"):
        lake.execute("UPDATE t SET g = 0")
    lake.execute(
        "MERGE INTO t USING (VALUES (2), (3)) u(i) ON t.i = u.i "
        "WHEN MATCHED THEN UPDATE SET i = 20 WHEN NOT MATCHED THEN INSERT (i) VALUES (u.i)"
    )
    assert rows(lake, "SELECT i, g FROM t ORDER BY i") == [(3, 6), (10, 20), (20, 40)]
    lake.execute("ALTER TABLE t ADD COLUMN x INTEGER")
    assert fields(table)[1]["metadata"] == {"delta.generationExpression": "i * 2"}


def test_expressions_that_only_their_writer_knows_are_refused(lake: lakedbapi.Connection, table: Path) -> None:
    foreign(table, GENERATED, [field("i"), field("g", **{"delta.generationExpression": "spark_thing(i)"})])
    with pytest.raises(NotSupportedError, match="cannot be computed"):
        lake.execute("INSERT INTO t (i) VALUES (1)")


@pytest.mark.parametrize(
    ("type", "instead"),
    [
        ("UUID", "VARCHAR"),
        ("HUGEINT", "DECIMAL"),
        ("UTINYINT", "SMALLINT"),
        ("TIME", "VARCHAR"),
        ("INTERVAL", "VARCHAR"),
    ],
)
def test_types_that_delta_does_not_have_are_refused(lake: lakedbapi.Connection, type: str, instead: str) -> None:
    with pytest.raises(NotSupportedError, match=instead):
        lake.execute(f"CREATE TABLE t (r STRUCT(x {type}))")


def test_keys_are_kept_as_information(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER UNIQUE)")
    lake.execute("ALTER TABLE t ADD COLUMN c INTEGER")
    with lakedbapi.connect(f"delta:///{table.parent}", autocommit=True) as fresh:
        fresh.execute("INSERT INTO t VALUES (1, 2, 3)")
        fresh.execute("INSERT INTO t VALUES (1, 5, 6) ON CONFLICT (a) DO UPDATE SET b = excluded.b")
        assert rows(fresh, "SELECT * FROM t") == [(1, 5, 3)]
        kinds = values(fresh, "SELECT constraint_type FROM information_schema.table_constraints ORDER BY 1")
    assert {"PRIMARY KEY", "UNIQUE"} <= set(kinds)


def test_a_replaced_table_keeps_the_features_of_its_earlier_versions(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i INTEGER) WITH ('delta.columnMapping.mode' = 'name')")
    lake.execute("INSERT INTO t VALUES (1)")
    lake.execute("CREATE OR REPLACE TABLE t (j TIMESTAMP)")
    lake.execute("INSERT INTO t VALUES (now())")
    last = protocol(table)
    assert {"columnMapping", "deletionVectors", "timestampNtz"} <= {*last["readerFeatures"]} & {*last["writerFeatures"]}
    assert values(lake, "SELECT i FROM t VERSION AS OF 1") == [1]


@pytest.mark.parametrize(
    ("column", "feature"),
    [("i INTEGER DEFAULT 7", "allowColumnDefaults"), ("i INTEGER CHECK (i > 0)", "checkConstraints")],
)
def test_what_columns_ask_of_writers_is_a_feature(
    lake: lakedbapi.Connection, table: Path, column: str, feature: str
) -> None:
    lake.execute(f"CREATE TABLE t ({column})")
    assert feature in protocol(table)["writerFeatures"]


@pytest.mark.parametrize("type", ["STRUCT(x TIMESTAMP)", "TIMESTAMP[]", "MAP(VARCHAR, TIMESTAMP)"])
def test_times_inside_of_values_need_their_feature(lake: lakedbapi.Connection, table: Path, type: str) -> None:
    lake.execute(f"CREATE TABLE t (v {type})")
    found = protocol(table)
    assert "timestampNtz" in {*found["readerFeatures"]} & {*found["writerFeatures"]}


def test_features_of_old_versions_are_named_when_the_protocol_is_raised(
    lake: lakedbapi.Connection, table: Path
) -> None:
    old = {"minReaderVersion": 2, "minWriterVersion": 5}
    foreign(table, old, [field("i")])
    lake.execute("ALTER TABLE t SET ('delta.enableDeletionVectors' = 'true')")
    found = protocol(table)
    assert found["readerFeatures"] == ["columnMapping", "deletionVectors"]
    assert {"columnMapping", "deletionVectors", "generatedColumns", "invariants"} <= {*found["writerFeatures"]}


def test_a_replaced_table_stays_the_same_table(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT i FROM range(3) r(i)")
    id = metadata(table)["id"]
    lake.execute("CREATE OR REPLACE TABLE t AS SELECT 'x' AS s")
    assert metadata(table)["id"] == id
    assert versions(table) == [0, 1]
    assert info(table)["operation"] == "CREATE OR REPLACE TABLE AS SELECT"
    assert info(table)["isBlindAppend"] is False
    assert rows(lake, "SELECT * FROM t") == [("x",)]
    assert rows(lake, "SELECT * FROM t VERSION AS OF 0 ORDER BY ALL") == [(0,), (1,), (2,)]


def test_a_dropped_table_is_gone_with_its_files(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT 1 AS i")
    lake.execute("DROP TABLE t")
    assert not table.exists()
    with pytest.raises(ProgrammingError):
        lake.execute("SELECT * FROM t")
    lake.execute("CREATE TABLE t AS SELECT 2 AS i")
    assert values(lake, "SELECT i FROM t") == [2]


@pytest.mark.parametrize("name", ["_delta_log", "..", ".", ".hidden", "_hidden", "a/b", "a=b"])
def test_a_name_whose_directory_would_not_be_found_is_refused(lake: lakedbapi.Connection, name: str) -> None:
    lake.execute("CREATE TABLE t (i INTEGER)")
    for statement in (f'CREATE TABLE "{name}" (i INTEGER)', f'CREATE SCHEMA "{name}"'):
        with pytest.raises(NotSupportedError, match="choose a name"):
            lake.execute(statement)
    assert values(lake, "SELECT count(*) FROM t") == [0]


def test_a_table_is_no_place_for_others(lake: lakedbapi.Connection, table: Path, connect: Connect) -> None:
    lake.execute("CREATE TABLE t AS SELECT 1 AS i")
    alone = connect(table, autocommit=True)
    for statement in ("CREATE TABLE u (i INTEGER)", "CREATE SCHEMA s", "CREATE OR REPLACE TABLE t (j INTEGER)"):
        with pytest.raises(NotSupportedError, match="directory that the table is in"):
            alone.execute(statement)
    assert values(alone, "SELECT i FROM t") == [1]
    alone.execute("DROP TABLE t")
    assert rows(lake, "SHOW TABLES") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.appendOnly", "maybe"),
        ("delta.checkpointInterval", "x"),
        ("delta.checkpointInterval", "0"),
        ("delta.dataSkippingNumIndexedCols", "1.5"),
        ("delta.logRetentionDuration", "a month"),
        ("delta.isolationLevel", "serial"),
        ("delta.columnMapping.mode", "names"),
        ("delta.parquet.compression.codec", "zip"),
        ("delta.columnMapping.maxColumnId", "1"),
        ("delta.inCommitTimestampEnablementVersion", "1"),
        ("DELTA.APPENDONLY", "true"),
    ],
)
def test_properties_that_no_writer_understands_are_refused(lake: lakedbapi.Connection, name: str, value: str) -> None:
    with pytest.raises(ProgrammingError, match=name):
        lake.execute(f"CREATE TABLE t (i INTEGER) WITH ('{name}' = '{value}')")
    lake.execute("CREATE TABLE t (i INTEGER)")
    with pytest.raises(ProgrammingError, match=name):
        lake.execute(f"ALTER TABLE t SET ('{name}' = '{value}')")
    assert lake.execute("INSERT INTO t VALUES (1)").rowcount == 1


def test_a_property_that_another_writer_left_is_told_and_can_be_mended(lake: lakedbapi.Connection, table: Path) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    foreign(
        table,
        protocol,
        [{"name": "i", "type": "integer", "nullable": True, "metadata": {}}],
        **{"delta.dataSkippingNumIndexedCols": "x"},
    )
    with pytest.raises(ProgrammingError, match=r"dataSkippingNumIndexedCols.*ALTER TABLE"):
        lake.execute("INSERT INTO t VALUES (1)")
    lake.execute("ALTER TABLE t SET ('delta.dataSkippingNumIndexedCols' = '3')")
    assert lake.execute("INSERT INTO t VALUES (1)").rowcount == 1


def test_properties_for_the_protocol_are_not_stored(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute(
        "CREATE TABLE t (i INTEGER) WITH ('delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5', "
        "'delta.columnMapping.mode' = 'name')"
    )
    lake.execute("ALTER TABLE t SET ('delta.feature.changeDataFeed' = 'supported')")
    assert "changeDataFeed" in protocol(table)["writerFeatures"]
    assert not [name for name in metadata(table)["configuration"] if "feature" in name or "Version" in name]


@pytest.mark.parametrize("word", ["supported", "enabled", "Supported"])
def test_features_are_switched_on_by_name(lake: lakedbapi.Connection, table: Path, word: str) -> None:
    lake.execute(f"CREATE TABLE t (i INTEGER) WITH ('delta.feature.changeDataFeed' = '{word}')")
    assert "changeDataFeed" in protocol(table)["writerFeatures"]


@pytest.mark.parametrize("policy", ["v2", "V2"])
def test_a_policy_for_checkpoints_is_a_feature(lake: lakedbapi.Connection, table: Path, policy: str) -> None:
    """Without it, other writers make checkpoints that readers of old do not know."""
    lake.execute("CREATE TABLE t (i INTEGER) WITH ('delta.checkpointPolicy' = 'classic')")
    assert "v2Checkpoint" not in protocol(table)["writerFeatures"]
    lake.execute(f"ALTER TABLE t SET ('delta.checkpointPolicy' = '{policy}')")
    assert "v2Checkpoint" in protocol(table)["writerFeatures"]
    assert "v2Checkpoint" in protocol(table)["readerFeatures"]
    for number in range(10):
        lake.execute("INSERT INTO t VALUES (?)", [number])
    with lakedbapi.connect(f"delta:///{table.parent}") as fresh:
        assert values(fresh, "SELECT count(*) FROM t") == [10]


def test_features_for_readers_are_all_named_for_writers() -> None:
    """Those of the old reader version 2 as well, which some writer features leave out."""
    raised = with_features(Protocol(2, 7, None, ("appendOnly",)), {"deletionVectors"})
    assert raised.reader_features == ("columnMapping", "deletionVectors")
    assert raised.writer_features == ("appendOnly", "columnMapping", "deletionVectors")


def test_a_table_for_writers_to_come_is_not_written(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i INTEGER)")
    (table / "_delta_log" / f"{1:020}.json").write_text(
        json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 8}}) + "\n"
    )
    assert values(lake, "SELECT count(*) FROM t") == [0]
    with pytest.raises(NotSupportedError, match="a writer of version 8; versions up to 7"):
        lake.execute("INSERT INTO t VALUES (1)")


def test_properties_that_go_are_told(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i INTEGER) WITH ('owner' = 'me', 'other' = 'stays')")
    lake.execute("ALTER TABLE t UNSET ('owner')")
    told = info(table)
    assert told["operation"] == "UNSET TBLPROPERTIES"
    assert told["operationParameters"] == {"properties": '["owner"]', "ifExists": "true"}


def test_an_append_only_table_is_not_replaced(lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE t WITH ('delta.appendOnly' = 'true') AS SELECT 1 AS i")
    with pytest.raises(NotSupportedError, match="append-only"):
        lake.execute("CREATE OR REPLACE TABLE t (j INTEGER)")
    assert values(lake, "SELECT i FROM t") == [1]


def test_a_directory_with_other_files_is_not_taken(lake: lakedbapi.Connection, table: Path) -> None:
    table.mkdir()
    (table / "notes.txt").write_text("mine")
    with pytest.raises((NotSupportedError, ProgrammingError)):
        lake.execute("CREATE TABLE t (i INTEGER)")
    assert (table / "notes.txt").read_text() == "mine"


def test_a_table_below_another_one_keeps_it_from_being_dropped(lake: lakedbapi.Connection, table: Path) -> None:
    lake.execute("CREATE TABLE t (i INTEGER)")
    foreign(table / "inner", OLD, [field("i")])
    with pytest.raises(NotSupportedError, match="lies below"):
        lake.execute("DROP TABLE t")
    assert values(lake, "SELECT count(*) FROM t") == [0]


def test_schemas_are_directories(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    lake.execute("CREATE SCHEMA s")
    lake.execute("CREATE TABLE s.t AS SELECT 1 AS i")
    assert (tmp_path / "s" / "t" / "_delta_log").is_dir()
    lake.execute("DROP TABLE s.t")
    lake.execute("DROP SCHEMA s")
    assert not (tmp_path / "s").exists()


def test_a_schema_and_a_table_are_not_one_directory(lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE t (i INTEGER)")
    lake.execute("CREATE SCHEMA s")
    with pytest.raises(NotSupportedError, match="the directory of table 't'"):
        lake.execute("CREATE SCHEMA t")
    with pytest.raises(NotSupportedError, match="the directory of schema 's'"):
        lake.execute("CREATE TABLE s (i INTEGER)")
    lake.execute("CREATE TABLE s.s (i INTEGER)")
    lake.execute("CREATE TABLE main.main (i INTEGER)")
    assert lake.execute("SHOW TABLES").fetchall() == [("main",), ("t",)]
    assert lake.execute("SELECT count(*) FROM s.s, main.main").fetchone() == (0,)


@pytest.mark.parametrize("rows_of_it", ["(i INTEGER)", "PARTITIONED BY (p) AS SELECT i, i % 2 AS p FROM range(9) r(i)"])
def test_a_table_that_could_not_be_made_leaves_its_name_free(
    lake: lakedbapi.Connection, table: Path, monkeypatch: pytest.MonkeyPatch, rows_of_it: str
) -> None:
    def full(path: str, *arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", full)
        with pytest.raises(OperationalError, match="No space left"):
            lake.execute(f"CREATE TABLE t {rows_of_it}")
    assert not table.exists()
    assert rows(lake, "SHOW TABLES") == []
    lake.execute(f"CREATE TABLE t {rows_of_it}")
    lake.execute("SELECT * FROM t")


@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (p)"])
@pytest.mark.parametrize("limit", [new_rows.MEMORY_LIMIT, 1])
def test_a_failed_create_as_select_leaves_its_name_free(
    lake: lakedbapi.Connection, table: Path, monkeypatch: pytest.MonkeyPatch, limit: int, partitioned: str
) -> None:
    monkeypatch.setattr(new_rows, "MEMORY_LIMIT", limit)
    with pytest.raises(lakedbapi.Error):
        lake.execute(
            f"CREATE TABLE t {partitioned} AS SELECT i, i % 2 AS p, CASE WHEN i > 2900000 THEN error('x') END AS e "
            "FROM range(3000000) r(i)"
        )
    assert not table.exists()
    lake.execute("CREATE TABLE t AS SELECT 1 AS i")
    assert values(lake, "SELECT i FROM t") == [1]


@pytest.mark.parametrize("slip", ["delta.enableChangeDataFed", "enableChangeDataFeed"])
def test_a_slip_in_the_name_of_a_property_is_told(lake: lakedbapi.Connection, slip: str) -> None:
    lake.execute("CREATE TABLE t (i BIGINT)")
    for statement in (f"ALTER TABLE t SET ('{slip}' = 'true')", f"CREATE TABLE u (i BIGINT) WITH ('{slip}' = 'true')"):
        with pytest.raises(ProgrammingError, match=r"did you mean 'delta\.enableChangeDataFeed'"):
            lake.execute(statement)
    lake.execute("ALTER TABLE t SET ('owner' = 'me', 'delta.autoOptimize.autoCompact' = 'true')")


def test_show_create_table_leaves_out_what_writers_keep(lake: lakedbapi.Connection) -> None:
    lake.execute(
        "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), b BIGINT, "
        "g BIGINT GENERATED ALWAYS AS (b + 1)) SORTED BY (b) WITH ('delta.enableRowTracking' = 'true', "
        "'delta.columnMapping.mode' = 'name', 'delta.enableInCommitTimestamps' = 'true', 'my.own' = 'x')"
    )
    ((text,),) = rows(lake, "SHOW CREATE TABLE t")
    assert "maxColumnId" not in text
    assert "materialized" not in text
    lake.execute("DROP TABLE t")
    lake.execute(text)
    assert rows(lake, "SHOW CREATE TABLE t") == [(text,)]
