"""Properties of tables of other writers count as those take them: by the letter."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.formats.delta.committed import Action, commit, info, of_kind, values
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import Table

FEATURES = ("deletionVectors", "columnMapping")
WRITERS = (*FEATURES, "appendOnly", "changeDataFeed", "domainMetadata", "inCommitTimestamp", "rowTracking")
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": list(FEATURES),
    "writerFeatures": list(WRITERS),
}
SWITCHES = {
    "delta.appendOnly": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableRowTracking": "true",
    "delta.isolationLevel": "WriteSerializable",
    "delta.randomizeFilePrefixes": "true",
    "delta.dataSkippingNumIndexedCols": "0",
    "delta.parquet.compression.codec": "gzip",
}


def without_names(action: Action) -> Action:
    """What of an action is the same in each table."""
    own = ("path", "size", "modificationTime", "deletionTimestamp", "timestamp", "txnId", "operationMetrics")
    return {name: value for name, value in action.items() if name not in own}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_property_that_is_spelled_otherwise_says_nothing(tmp_path: Path, connect: Connect, name: str) -> None:
    found = []
    for schema, properties in (("plain", {}), ("odd", {f"delta.{name[6:].swapcase()}": SWITCHES[name]})):
        table = Table(tmp_path / schema / "t").create(protocol=PROTOCOL, **properties)
        table.commit(table.file("a.parquet", range(100)))
        lake = connect(tmp_path / schema, autocommit=True)
        lake.execute("UPDATE t SET i = -1 WHERE i = 1")
        lake.execute("INSERT INTO t VALUES (1000)")
        assert sorted(values(lake, "SELECT i FROM t"))[:3] == [-1, 0, 2]
        actions = [*commit(table.path, 2), *commit(table.path, 3)]
        files = [pq.ParquetFile(table.path / add["path"]) for add in of_kind(actions, "add")]
        told = [(kind, without_names(action)) for each in actions for kind, action in each.items()]
        shapes = [(file.schema.names, file.metadata.row_group(0).column(0).compression) for file in files]
        found.append((told, shapes))
    assert found[0] == found[1]


@pytest.mark.parametrize("writer", [2, 7])
def test_ids_of_rows_are_not_told_of_where_the_feature_is_missing(
    tmp_path: Path, connect: Connect, writer: int
) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": writer}
    protocol |= {"writerFeatures": ["appendOnly"]} if writer == 7 else {}
    table = Table(tmp_path / "t").create(protocol=protocol, delta_enableRowTracking="true")
    table.commit(table.file("a.parquet", range(3)))
    assert connect(tmp_path, autocommit=True).execute("DELETE FROM t WHERE i = 1").rowcount == 1
    assert "tags" not in info(table.path)
    assert not of_kind(commit(table.path), "domainMetadata")
    assert all("baseRowId" not in add for add in of_kind(commit(table.path), "add"))


@pytest.mark.parametrize("writer", [2, 7])
def test_times_of_commits_are_those_of_files_where_the_feature_is_missing(
    tmp_path: Path, connect: Connect, writer: int
) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": writer}
    protocol |= {"writerFeatures": ["appendOnly"]} if writer == 7 else {}
    table = Table(tmp_path / "t").create(protocol=protocol, delta_enableInCommitTimestamps="true")
    table.commit(table.file("a.parquet", range(3)))
    lake = connect(tmp_path, autocommit=True)
    assert values(lake, "SELECT count(*) FROM t TIMESTAMP AS OF '2030-01-01'") == [3]
    lake.execute("INSERT INTO t VALUES (9)")
    assert "inCommitTimestamp" not in info(table.path)
    # With any other feature that is written comes this one.
    lake.execute("ALTER TABLE t SET ('delta.enableChangeDataFeed' = 'true')")
    (raised,) = of_kind(commit(table.path), "protocol")
    assert "inCommitTimestamp" in raised["writerFeatures"]
    (metadata,) = of_kind(commit(table.path), "metaData")
    assert metadata["configuration"]["delta.inCommitTimestampEnablementVersion"] == "3"
    time = str(info(table.path)["inCommitTimestamp"])
    assert metadata["configuration"]["delta.inCommitTimestampEnablementTimestamp"] == time
    lake.execute("INSERT INTO t VALUES (10)")
    assert values(lake, "SELECT snapshot_id FROM history('t') ORDER BY ALL") == [0, 1, 2, 3, 4]
    assert values(connect(tmp_path), "SELECT count(*) FROM t VERSION AS OF 1") == [3]


@pytest.mark.parametrize(
    ("properties", "length"),
    [
        ("", 0),
        ("'delta.randomPrefixLength' = '5'", 0),
        ("'delta.randomizeFilePrefixes' = 'true'", 2),
        ("'delta.randomizeFilePrefixes' = 'true', 'delta.randomPrefixLength' = '5'", 5),
    ],
)
def test_files_of_vectors_lie_in_directories_with_random_names_where_that_is_asked(
    tmp_path: Path, connect: Connect, properties: str, length: int
) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute("CREATE TABLE t (i BIGINT)" + f" WITH ({properties})" * bool(properties))
    lake.execute("INSERT INTO t SELECT i FROM range(1000) r(i)")
    lake.execute("DELETE FROM t WHERE i * i % 7 = 2")
    (add,) = of_kind(commit(tmp_path / "t"), "add")
    assert len(add["deletionVector"]["pathOrInlineDv"]) == length + 20
    (file,) = (tmp_path / "t").rglob("deletion_vector_*.bin")
    assert str(file.parent.relative_to(tmp_path / "t")) == (add["deletionVector"]["pathOrInlineDv"][:length] or ".")
    assert values(connect(tmp_path), "SELECT count(*) FROM t WHERE i * i % 7 = 2") == [0]
