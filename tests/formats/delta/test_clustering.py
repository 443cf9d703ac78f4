"""Clustered tables: the columns that rows are laid out by (protocol, "Clustered Table")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi.errors import NotSupportedError, ProgrammingError
from tests.formats.delta.committed import commit, info, of_kind, rows, values
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import Table


@pytest.fixture
def lake(tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    return connect(tmp_path, autocommit=True)


def domain(path: Path, version: int | None = None) -> Any:
    """The clustering that a commit gives the table; None when it leaves it."""
    found = of_kind(commit(path, version), "domainMetadata")
    assert all(not action["removed"] for action in found)
    texts = [action["configuration"] for action in found if action["domain"] == "delta.clustering"]
    return json.loads(texts[0])["clusteringColumns"] if texts else None


def test_a_table_is_clustered_from_the_beginning(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    lake.execute('CREATE TABLE t (i BIGINT, "the s" VARCHAR, n STRUCT(x INTEGER)) CLUSTER BY ("the s", n.x)')
    table = tmp_path / "t"
    assert domain(table) == [["the s"], ["n", "x"]]
    assert info(table)["operationParameters"]["clusterBy"] == '["the s", "n.x"]'
    (protocol,) = of_kind(commit(table), "protocol")
    assert {"clustering", "domainMetadata"} <= set(protocol["writerFeatures"])
    assert "clustering" not in protocol["readerFeatures"]
    lake.execute("INSERT INTO t SELECT i, chr(122 - i::INTEGER % 26), {'x': i} FROM range(52) r(i)")
    (add,) = of_kind(commit(table), "add")
    written = [row["the s"] for row in pq.read_table(table / add["path"]).to_pylist()]
    assert written == sorted(written)
    assert domain(table) is None


def test_columns_are_changed_and_taken_away(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT, s VARCHAR)")
    table = tmp_path / "t"
    lake.execute("ALTER TABLE t CLUSTER BY (s, i)")
    assert domain(table) == [["s"], ["i"]]
    assert info(table)["operation"] == "CLUSTER BY"
    expected = {"oldClusteringColumns": "", "newClusteringColumns": "s,i"}
    assert info(table)["operationParameters"] == expected
    lake.execute("ALTER TABLE t SET SORTED BY (i)")
    assert domain(table) == [["i"]]
    lake.execute("COMMENT ON TABLE t IS 'x'")
    assert domain(table) is None
    lake.execute("ALTER TABLE t CLUSTER BY NONE")
    assert domain(table) == []
    lake.execute("ALTER TABLE t CLUSTER BY (s)")
    lake.execute("RESTORE TABLE t TO VERSION AS OF 1")
    assert domain(table) == [["s"], ["i"]]
    lake.execute("CREATE OR REPLACE TABLE t (i BIGINT)")
    assert domain(table) == []


def test_columns_stay_when_they_are_renamed(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT, s VARCHAR) CLUSTER BY (s) WITH ('delta.columnMapping.mode' = 'name')")
    physical = domain(tmp_path / "t")
    lake.execute("ALTER TABLE t RENAME COLUMN s TO text")
    assert domain(tmp_path / "t") is None
    with pytest.raises(ProgrammingError, match="sorted by it"):
        lake.execute("ALTER TABLE t DROP COLUMN text")
    lake.execute("ALTER TABLE t CLUSTER BY (text, i)")
    assert domain(tmp_path / "t")[:1] == physical
    for text in ("b", "a"):
        lake.execute(f"INSERT INTO t VALUES (1, '{text}')")
    lake.execute("OPTIMIZE t")
    assert values(lake, "SELECT text FROM t") == ["a", "b"]


def test_optimize_says_how_files_are_laid_out(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t (i BIGINT, s VARCHAR) CLUSTER BY (i)")
    for n in range(3):
        lake.execute(f"INSERT INTO t SELECT 10 * r.i + {n}, 'x' FROM range(4) r(i)")
    (add,) = of_kind(commit(tmp_path / "t"), "add")
    assert "clusteringProvider" not in add
    lake.execute("OPTIMIZE t")
    parameters = info(tmp_path / "t")["operationParameters"]
    assert (parameters["clusterBy"], parameters["zOrderBy"]) == ('["i"]', "[]")
    (add,) = of_kind(commit(tmp_path / "t"), "add")
    assert (add["clusteringProvider"], add["dataChange"]) == ("lakedbapi", False)
    found = values(lake, "SELECT i FROM t")
    assert found == sorted(found)
    assert len(found) == 12
    lake.execute("DELETE FROM t WHERE i = 0")
    (add,) = of_kind(commit(tmp_path / "t"), "add")
    assert add["clusteringProvider"] == "lakedbapi"
    lake.execute("OPTIMIZE t ZORDER BY (s)")
    (add,) = of_kind(commit(tmp_path / "t"), "add")
    assert "clusteringProvider" not in add
    assert info(tmp_path / "t")["operationParameters"]["zOrderBy"] == '["s"]'


def test_the_order_that_optimize_is_told_comes_before_that_of_the_table(lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE t (i BIGINT, s BIGINT) CLUSTER BY (i)")
    lake.execute("INSERT INTO t SELECT i, 10 - i FROM range(10) r(i)")
    lake.execute("OPTIMIZE t ZORDER BY (s)")
    assert values(lake, "SELECT s FROM t") == list(range(1, 11))


def test_optimize_leaves_files_of_other_implementations_alone(connect: Connect, tmp_path: Path) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute("CREATE TABLE t (i BIGINT) CLUSTER BY (i)")
    for start in (0, 10, 20, 30):
        lake.execute(f"INSERT INTO t SELECT * FROM range({start}, {start + 10})")
    log = tmp_path / "t" / "_delta_log"
    for version, provider in ((1, "liquid"), (2, "lakedbapi")):
        path = log / f"{version:020}.json"
        path.write_text(path.read_text().replace('"dataChange"', f'"clusteringProvider":"{provider}","dataChange"'))
    lake = connect(tmp_path, autocommit=True)
    lake.execute("DELETE FROM t WHERE i = 5")
    lake.execute("OPTIMIZE t")
    found = of_kind(commit(tmp_path / "t"), "remove")
    assert len(found) == 3
    theirs = of_kind(commit(tmp_path / "t", 1), "add")[0]["path"]
    assert theirs not in [action["path"] for action in found]
    assert values(lake, "SELECT count(*) FROM t") == [39]
    lake.execute("OPTIMIZE t ZORDER BY (i)")
    assert theirs in [action["path"] for action in of_kind(commit(tmp_path / "t"), "remove")]


def test_clustering_columns_have_statistics_in_any_case(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    for option in ("'delta.dataSkippingNumIndexedCols' = '1'", "'delta.dataSkippingStatsColumns' = 'a'"):
        lake.execute(f"CREATE OR REPLACE TABLE t (a INTEGER, b INTEGER, c INTEGER) CLUSTER BY (c) WITH ({option})")
        lake.execute("INSERT INTO t VALUES (1, 2, 3)")
        (add,) = of_kind(commit(tmp_path / "t"), "add")
        assert json.loads(add["stats"])["minValues"] == {"a": 1, "c": 3}


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("CREATE TABLE u (a INTEGER, p INTEGER) PARTITIONED BY (p) CLUSTER BY (a)", "partitioned"),
        ("CREATE TABLE u (a INTEGER) SORTED BY (a DESC)", "no direction"),
        ("CREATE TABLE u (a INTEGER) SORTED BY (a + 1)", "CLUSTER BY columns"),
        ("CREATE TABLE u (a BOOLEAN) CLUSTER BY (a)", "no order"),
        ("CREATE TABLE u (a INTEGER[]) CLUSTER BY (a)", "no order"),
        ("ALTER TABLE p CLUSTER BY (a)", "partitioned"),
    ],
)
def test_what_a_table_cannot_be_clustered_by(lake: lakedbapi.Connection, sql: str, error: str) -> None:
    lake.execute("CREATE TABLE p (a INTEGER, k INTEGER) PARTITIONED BY (k)")
    with pytest.raises(NotSupportedError, match=error):
        lake.execute(sql)
    with pytest.raises(ProgrammingError, match="nosuch"):
        lake.execute("CREATE TABLE u (a INTEGER) CLUSTER BY (nosuch)")


def test_a_clustering_that_is_not_known_harms_nobody(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering", "domainMetadata"]}
    made = Table(tmp_path / "t").create([("i", "long"), ("b", "boolean")], ["b"], protocol)
    text = json.dumps({"clusteringColumns": [["gone"], ["b"]], "more": 1})
    made.commit({"domainMetadata": {"domain": "delta.clustering", "configuration": text, "removed": False}})
    lake.execute("INSERT INTO t VALUES (1, true), (2, false)")
    lake.execute("UPDATE t SET i = i + 1")
    lake.execute("OPTIMIZE t")
    assert rows(lake, "SELECT i FROM t ORDER BY i") == [(2,), (3,)]
    assert domain(tmp_path / "t") is None
