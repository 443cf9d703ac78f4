"""Every version of a table, by number and by time, and what its log tells of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import lakedbapi
from lakedbapi.errors import DataError, NotSupportedError, ProgrammingError
from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.storage.filesystem import Storage
from tests.formats.delta.committed import info as info_of
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import Table

VERSIONS = {
    "g-basic-with-inserts-deletes-checkpoint": "0:10/45 1:20/190 2:30/435 3:40/780 4:50/1225 5:45/1190 6:40/1105 "
    "7:35/970 8:30/785 9:25/550 10:35/1095 11:45/1740 12:55/2485 13:41/1470",
    "g-basic-with-inserts-overwrite-restore": "0:100/4950 1:200/19900 2:500/374750 3:200/19900",
    "g-basic-with-inserts-updates": "0:100/4950 1:100/4950",
    "g-log-replay-dv-key-cases": "0:50/1225 1:49/1225 2:48/1218 3:47/1204",
    "k-basic-dv-no-checkpoint": "0:10/45 1:8/44",
    "s-table-with-dv-large": "0:2000/1999000 1:1995/1996020 2:1997/1997020 3:1991/1992300 4:1993/1994767",
    "s-table-with-dv-small": "0:10/45 1:8/36",
    "r-table-with-dv-small": "0:10/45 1:8/36",
    "g-only-checkpoint-files": "0:10/45 1:5/35 2:25/225",
    "g-multi-part-checkpoint": "0:1/0 1:31/435",
    "g-time-travel-schema-changes-b": "0:10/45 1:20/190",
    "r-simple_table": "0:5/10 1:20/190 2:5/35 3:5/235 4:3/21",
    "r-delta-0.8.0": "0:5/10 1:4/7",
    "r-checkpoint-v2-table": "0:0 1:10/55 2:11/66 3:21/231 4:22/253 5:22/253 6:32/528 7:33/561 8:43/946 9:44/990",
    "r-cdc_ict_table": "0:0 1:4/7971 2:2/3981 3:2/3981",
}
"""Rows and the sum of the first integer column, by version."""
COLUMNS = {"r-cdc_ict_table": "birthyear"}
CHECKED = ["r-checkpoint-v2-table", "r-cdc_ict_table"]
"""Tables with a checksum of each version."""


@pytest.mark.parametrize("name", sorted(VERSIONS))
def test_each_version_has_its_rows(name: str, golden: Callable[[str], Path], goldens: lakedbapi.Connection) -> None:
    schema = golden(name).parent.name
    table = goldens.catalog_view().table(schema, "table")
    assert table is not None
    column = COLUMNS.get(name) or table.schema.fields[0].name
    found = []
    for version in [int(entry.split(":")[0]) for entry in VERSIONS[name].split()]:
        query = f'SELECT count(*), sum("{column}")::BIGINT FROM "{schema}"."table" VERSION AS OF {version}'
        count, total = goldens.execute(query).fetchone() or (None, None)
        found.append(f"{version}:{count}" + ("" if total is None else f"/{total}"))
    assert " ".join(found) == VERSIONS[name]


@pytest.mark.parametrize("name", CHECKED)
def test_checksums_of_the_writer_agree(name: str, golden: Callable[[str], Path]) -> None:
    root = f"{golden(name)}/"
    log = DeltaTable(Storage.of(root), root)
    checksums = sorted((golden(name) / "_delta_log").glob("0*.crc"))
    assert checksums
    for path in checksums:
        expected = json.loads(path.read_text())
        state = log.at_version(int(path.name.partition(".")[0]))
        sizes = state.files["size"].to_pylist()
        vectors = [vector for vector in state.files["deletion_vector"].to_pylist() if vector is not None]
        assert (len(sizes), sum(sizes)) == (expected["numFiles"], expected["tableSizeBytes"])
        assert expected.get("numDeletionVectorsOpt") in (None, len(vectors))
        assert expected.get("numDeletedRecordsOpt") in (None, sum(vector["cardinality"] for vector in vectors))
        assert state.protocol.min_writer == expected["protocol"]["minWriterVersion"]
        assert state.metadata.id == expected["metadata"]["id"]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Versions 0 to 3 have as many rows, one second apart; version 0 is of 2023-11-14 22:13:20 UTC."""
    table = Table(tmp_path / "t").create()
    for version in (1, 2, 3):
        table.commit(table.file(f"{version}.parquet", [version]))
    return table


def rows(connect: Connect, table: Table, at: str) -> int:
    [(count,)] = connect(table.path).execute(f"SELECT count(*) FROM t TIMESTAMP AS OF '{at}'").fetchall()
    return int(count)


def test_a_time_means_the_version_before_it(connect: Connect, table: Table) -> None:
    assert rows(connect, table, "2023-11-14 22:13:22") == 2
    assert rows(connect, table, "2023-11-14 22:13:22.999") == 2
    assert rows(connect, table, "2023-11-14 23:13:23+01") == 3
    assert rows(connect, table, "2999-01-01") == 3


def test_a_time_before_the_first_version_is_an_error(connect: Connect, table: Table) -> None:
    with pytest.raises(ProgrammingError, match=r"no version at 2023-11-14 22:13:19.*the first version that can be"):
        rows(connect, table, "2023-11-14 22:13:19")


def test_times_of_files_are_made_ascending(connect: Connect, table: Table) -> None:
    for version, millis in enumerate((0, 100_000, 50_000, 200_000)):
        os.utime(table.log / f"{version:020}.json", (millis / 1000, millis / 1000))
    assert [rows(connect, table, f"1970-01-01 00:01:40.00{ms}") for ms in (0, 1)] == [1, 2]
    lines = connect(table.path).execute("SELECT snapshot_id, snapshot_time FROM history('t')").fetchall()
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert [(time - epoch) / timedelta(milliseconds=1) for _, time in lines] == [0, 100_000, 100_001, 200_000]


TIMES_IN_COMMITS = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}}


def test_times_in_commits_count_from_where_they_are_switched_on(connect: Connect, table: Table) -> None:
    first = json.loads((table.log / f"{0:020}.json").read_text().splitlines()[1])["metaData"]
    configuration = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "4",
        "delta.inCommitTimestampEnablementTimestamp": "4000000000000",
    }
    info = {"commitInfo": {"inCommitTimestamp": 4_000_000_000_000}}
    table.commit(info, TIMES_IN_COMMITS, {"metaData": {**first, "configuration": configuration}})
    table.commit({"commitInfo": {"inCommitTimestamp": 4_000_000_005_000}}, table.file("5.parquet", [5]))
    assert [
        rows(connect, table, at) for at in ("2023-11-14 22:13:22", "2096-10-02 07:06:44", "2096-10-02 07:06:45")
    ] == [
        2,
        3,
        4,
    ]
    table.commit()
    with pytest.raises(DataError, match=r"version 6 of Delta table .* has no inCommitTimestamp"):
        rows(connect, table, "2023-11-14 22:13:22")


def test_times_in_commits_count_where_files_are_younger(connect: Connect, table: Table) -> None:
    """As after the table was copied."""
    first = json.loads((table.log / f"{0:020}.json").read_text().splitlines()[1])["metaData"]
    configuration = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "4",
        "delta.inCommitTimestampEnablementTimestamp": "1000000000000",
    }
    switched = {"metaData": {**first, "configuration": configuration}}
    table.commit({"commitInfo": {"inCommitTimestamp": 1_000_000_000_000}}, TIMES_IN_COMMITS, switched)
    table.commit({"commitInfo": {"inCommitTimestamp": 1_000_000_005_000}}, table.file("5.parquet", [5]))
    times = ("2001-09-09 01:46:40", "2001-09-09 01:46:44.999", "2001-09-09 01:46:45", "2023-11-14 22:13:21")
    assert [rows(connect, table, at) for at in times] == [3, 3, 4, 4]
    with pytest.raises(ProgrammingError, match="no version at 2001-09-09 01:46:39"):
        rows(connect, table, "2001-09-09 01:46:39")


def test_a_connection_can_be_at_a_point(connect: Connect, table: Table) -> None:
    connection = connect(table.path, as_of=2)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)
    assert connect(table.path, as_of="2023-11-14 22:13:21").execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_there_are_no_branches_or_tags(connect: Connect, table: Table) -> None:
    with pytest.raises(ProgrammingError, match="'main' is no version"):
        connect(table.path).execute("SELECT * FROM t VERSION AS OF 'main'")
    with pytest.raises(NotSupportedError, match="no branches or tags such as 'main'"):
        connect(table.path).catalog_view(as_of="main")


def test_the_history_is_the_writers(connect: Connect, table: Table) -> None:
    info = {
        "timestamp": 1,
        "operation": "OPTIMIZE",
        "operationParameters": {"predicate": "[]", "auto": True, "zOrderBy": ["a"], "nothing": None},
        "operationMetrics": {"numRemovedFiles": "2"},
        "userName": "jane",
        "userMetadata": "every night",
        "engineInfo": "a writer",
    }
    table.commit({"commitInfo": info})
    columns = (
        "snapshot_id, operation, operation_parameters, operation_metrics, author, commit_message, commit_extra_info"
    )
    lines = connect(table.path).execute(f"SELECT {columns} FROM history('t')").fetchall()
    parameters = {"predicate": "[]", "auto": "true", "zOrderBy": '["a"]'}
    assert lines[0] == (0, None, {}, {}, None, None, None)
    assert lines[4] == (4, "OPTIMIZE", parameters, {"numRemovedFiles": "2"}, "jane", "every night", "a writer")


def test_a_transaction_has_an_author_and_a_message(connect: Connect, tmp_path: Path) -> None:
    connection = connect(tmp_path)
    connection.execute("CREATE TABLE t AS SELECT 1 AS i")
    connection.commit()
    connection.execute("CALL set_commit_message('jane', 'every night')")
    connection.execute("DELETE FROM t")
    connection.commit()
    connection.execute("INSERT INTO t VALUES (2)")
    connection.commit()
    told = [info_of(tmp_path / "t", version) for version in range(3)]
    assert [info.get("userName") for info in told] == [None, "jane", None]
    assert [info.get("userMetadata") for info in told] == [None, "every night", None]
    lines = connection.execute("SELECT author, commit_message FROM history('t') ORDER BY snapshot_id").fetchall()
    assert lines == [(None, None), ("jane", "every night"), (None, None)]


def test_describe_history_shows_the_newest_version_first(connect: Connect, table: Table) -> None:
    connection = connect(table.path.parent)
    assert [line[0] for line in connection.execute("DESCRIBE HISTORY t").fetchall()] == [3, 2, 1, 0]
    assert len(connection.execute("DESC HISTORY lake.main.t").fetchall()) == 4
    with pytest.raises(ProgrammingError, match="there is no schema"):
        connection.execute("DESCRIBE HISTORY nosuch.t")


def test_a_directory_of_tables_has_no_history(connect: Connect, table: Table) -> None:
    with pytest.raises(ProgrammingError, match=r"each table has: ask history\('table'\)"):
        connect(table.path.parent).execute("SELECT * FROM snapshots()")


def test_times_of_files_count_before_the_version_that_commits_have_times_from(connect: Connect, table: Table) -> None:
    """As the properties say it, which another program may have copied from another table."""
    first = json.loads((table.log / f"{0:020}.json").read_text().splitlines()[1])["metaData"]
    configuration = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "5",
        "delta.inCommitTimestampEnablementTimestamp": "4000000000000",
    }
    table.commit(TIMES_IN_COMMITS, {"metaData": {**first, "configuration": configuration}})
    assert rows(connect, table, "2050-01-01 00:00:00") == 3
    assert connect(table.path).execute("SELECT max(snapshot_id) FROM history('t')").fetchall() == [(4,)]


def test_the_first_time_is_told_where_all_commits_have_times(connect: Connect, tmp_path: Path) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute("CREATE TABLE t (i INTEGER) WITH ('delta.enableInCommitTimestamps' = 'true')")
    with pytest.raises(ProgrammingError, match=r"has no version at 2001.*: the first version that can be read, 0, is"):
        lake.execute("SELECT * FROM t TIMESTAMP AS OF '2001-01-01'")
