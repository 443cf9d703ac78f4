"""OPTIMIZE, REORG, VACUUM and CHECKPOINT of Delta tables: how files change, and that rows never do."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi.errors import ConflictError, NotSupportedError, ProgrammingError
from lakedbapi.formats.delta.vector_files import VectorFiles
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage
from tests.formats.delta.committed import commit, info, of_kind, rows, values, versions
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import DV, Table, remove, with_vector

Sql = Callable[..., Any]
DAY = 86_400
NOW = "ALTER TABLE t SET ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "t"


@pytest.fixture
def sql(tmp_path: Path, connect: Connect) -> Sql:
    connection = connect(tmp_path, autocommit=True)

    def run(text: str, *parameters: object) -> Any:
        cursor = connection.execute(text, list(parameters) or None)
        return cursor.fetchall() if cursor.description else cursor.rowcount

    return run


@pytest.fixture
def t(sql: Sql) -> Sql:
    """Three files of 100 rows, of which the first two lost 10 and one."""
    sql("CREATE TABLE t (i BIGINT, s VARCHAR)")
    for start in (0, 100, 200):
        sql(f"INSERT INTO t SELECT i, 'row ' || i FROM range({start}, {start + 100}) r(i)")
    sql("DELETE FROM t WHERE i < 10 OR i = 150")
    return sql


def files(sql: Sql) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = sql("SELECT record_count, deleted_count FROM files('t') ORDER BY 1, 2")
    return found


def stored(table: Path) -> set[str]:
    """Files outside the log, relative to the table."""
    found = (path for path in table.rglob("*") if path.is_file())
    return {str(path.relative_to(table)) for path in found if "_delta_log" not in path.parts}


def age(table: Path, days: float = 30) -> None:
    """Make all files old."""
    for path in table.rglob("*"):
        os.utime(path, (time.time() - days * DAY,) * 2)


# OPTIMIZE


def test_optimize_makes_one_file_in_a_commit_that_changes_no_row(t: Sql, table: Path) -> None:
    before = t("SELECT * FROM t ORDER BY i")
    assert t("OPTIMIZE t")[0][:4] == ("main", "t", 1, 3)
    assert files(t) == [(289, 0)]
    assert t("SELECT * FROM t ORDER BY i") == before
    actions = commit(table)
    (add,) = of_kind(actions, "add")
    removes = of_kind(actions, "remove")
    assert not any(action["dataChange"] for action in (add, *removes))
    assert sum("deletionVector" in action for action in removes) == 2
    assert json.loads(add["stats"])["numRecords"] == 289
    told = info(table)
    assert (told["operation"], told["isolationLevel"]) == ("OPTIMIZE", "SnapshotIsolation")
    expected = {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": "false"}
    assert told["operationParameters"] == expected
    size = str(add["size"])
    sizes = dict.fromkeys(("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize"), size)
    assert told["operationMetrics"] == {
        "numAddedFiles": "1",
        "numAddedBytes": size,
        "numRemovedFiles": "3",
        "numRemovedBytes": str(sum(action["size"] for action in removes)),
        "numDeletionVectorsRemoved": "2",
        **sizes,
    }
    last = versions(table)
    assert t("OPTIMIZE t")[0][2:4] == (0, 0)
    assert versions(table) == last


def test_optimize_leaves_full_files_with_few_deleted_rows(t: Sql) -> None:
    t("ALTER TABLE t SET ('delta.targetFileSize' = '100b')")
    assert t("OPTIMIZE t")[0][2:4] == (1, 1)
    assert files(t) == [(90, 0), (100, 0), (100, 1)]


def test_optimize_puts_as_many_files_together_as_make_a_full_one(sql: Sql, table: Path) -> None:
    sql("CREATE TABLE t (i BIGINT)")
    for start in range(0, 500, 100):
        sql(f"INSERT INTO t SELECT i FROM range({start}, {start + 100}) r(i)")
    sizes = [size for (size,) in sql("SELECT file_size_bytes FROM files('t')")]
    sql(f"ALTER TABLE t SET ('delta.targetFileSize' = '{2 * min(sizes) - 100}')")
    assert sql("OPTIMIZE t")[0][2:4] == (2, 4)
    assert files(sql) == [(100, 0), (200, 0), (200, 0)]
    assert sql("SELECT count(*), count(DISTINCT i) FROM t") == [(500, 500)]


def test_optimize_stays_within_partitions(sql: Sql, table: Path) -> None:
    sql("CREATE TABLE t (i BIGINT, p VARCHAR, d DATE) PARTITIONED BY (p, d)")
    for start in (0, 10):
        sql(
            "INSERT INTO t SELECT i, CASE i % 3 WHEN 0 THEN 'a=b c' WHEN 1 THEN 'é' END, DATE '2020-01-01' "
            f"FROM range({start}, {start + 10}) r(i)"
        )
    before = sql("SELECT * FROM t ORDER BY i")
    assert sql("OPTIMIZE t WHERE p = 'é'")[0][2:4] == (1, 2)
    assert info(table)["operationParameters"]["predicate"] == json.dumps(["p = 'é'"])
    assert sql("OPTIMIZE t")[0][2:4] == (2, 4)
    adds = of_kind(commit(table), "add")
    assert [add["partitionValues"] for add in adds] == [{"p": p, "d": "2020-01-01"} for p in ("a=b c", None)]
    assert sql("SELECT * FROM t ORDER BY i") == before
    assert sql("DESCRIBE HISTORY t LIMIT 1")[0][7] == "OPTIMIZE"


@pytest.mark.parametrize(
    ("files", "told_of"), [(1, (0, 0, 0, 0, 0)), (2, (0, 0, 1, 1, 1)), (3, (0, 0, 1, 2, 2)), (4, (0, 1, 2, 3, 3))]
)
def test_optimize_tells_how_the_sizes_of_its_files_are_spread(
    sql: Sql, table: Path, files: int, told_of: tuple[int, ...]
) -> None:
    sql("CREATE TABLE t (s VARCHAR, p INTEGER) PARTITIONED BY (p)")
    for _ in range(2):
        sql(f"INSERT INTO t SELECT md5(i::VARCHAR || p), p FROM range({files}) u(p), range(20 << p) r(i)")
    sql("OPTIMIZE t")
    told = info(table)["operationMetrics"]
    sizes = sorted({add["size"] for add in of_kind(commit(table), "add")})
    names = ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize")
    assert len(sizes) == files
    assert [int(told[name]) for name in names] == [sizes[number] for number in told_of]


def test_optimize_of_mapped_columns_and_of_deletes_that_leave_nothing(sql: Sql, table: Path) -> None:
    sql("CREATE TABLE t (i BIGINT, p INTEGER) PARTITIONED BY (p)")
    sql("ALTER TABLE t SET ('delta.columnMapping.mode' = 'name')")
    sql("ALTER TABLE t RENAME COLUMN p TO q")
    sql("ALTER TABLE t ADD COLUMN n STRUCT(a INTEGER, b VARCHAR)")
    for start in (0, 10):
        sql(f"INSERT INTO t SELECT i, i % 2, {{a: i, b: 'x'}} FROM range({start}, {start + 10}) r(i)")
    before = sql("SELECT * FROM t ORDER BY i")
    assert sql("OPTIMIZE t")[0][2:4] == (2, 4)
    assert sql("SELECT * FROM t ORDER BY i") == before
    assert sql("SELECT count(*) FROM t WHERE q = 1 AND n.a > 4") == [(8,)]


def test_append_only_tables_can_be_optimized(sql: Sql) -> None:
    sql("CREATE TABLE t (i BIGINT)")
    sql("ALTER TABLE t SET ('delta.appendOnly' = 'true')")
    for i in range(3):
        sql("INSERT INTO t VALUES (?)", i)
    assert sql("OPTIMIZE t")[0][2:4] == (1, 3)


def test_optimize_shows_no_change_in_the_feed(t: Sql) -> None:
    t("ALTER TABLE t SET ('delta.enableChangeDataFeed' = 'true')")
    t("OPTIMIZE t")
    t("DELETE FROM t WHERE i = 20")
    assert t("SELECT i, change_type FROM table_changes('t', 5, 7)") == [(20, "delete")]


def test_zorder_puts_rows_together_that_are_alike(sql: Sql, table: Path) -> None:
    sql("CREATE TABLE t (a BIGINT, b BIGINT, s VARCHAR)")
    sql("INSERT INTO t SELECT i % 800, i // 800, 'x' FROM range(640000) r(i)")
    sql("ALTER TABLE t SET ('delta.targetFileSize' = '1kb')")  # A file for each row group.
    before = sql("SELECT * FROM t ORDER BY ALL")
    (_, _, added, removed, *_) = sql("OPTIMIZE t ZORDER BY (B, a)")[0]
    assert (removed, added > 3) == (1, True)
    assert info(table)["operationParameters"]["zOrderBy"] == '["b", "a"]'
    assert sql("SELECT * FROM t ORDER BY ALL") == before
    spread = [json.loads(add["stats"]) for add in of_kind(commit(table), "add")]
    ranges = [[found["maxValues"][c] - found["minValues"][c] for c in "ab"] for found in spread]
    assert sum(map(sum, ranges)) < len(ranges) * 1300  # Of 1600, in no order.


def test_zorder_takes_turns_with_the_bits_of_its_columns(sql: Sql) -> None:
    sql("CREATE TABLE t (a BIGINT, b BIGINT)")
    sql("INSERT INTO t SELECT i % 4, i // 4 FROM range(16) r(i)")
    before = sql("SELECT a, b FROM t")
    sql("OPTIMIZE t ZORDER BY (b, a)")
    assert sql("SELECT a, b FROM t") == sorted(
        before, key=lambda row: (row[1] >> 1, row[0] >> 1, row[1] & 1, row[0] & 1)
    )


def test_zorder_takes_many_columns_of_many_values(sql: Sql) -> None:
    """The bits of all of them are those of one number."""
    sql("CREATE TABLE t (a BIGINT, b BIGINT, c BIGINT, d BIGINT)")
    sql("INSERT INTO t SELECT i, -i, i, 5 FROM range(40000) r(i)")
    sql("OPTIMIZE t ZORDER BY (a, b, c, d)")
    assert sql("SELECT count(*), sum(a), sum(b), sum(c - a) FROM t") == [(40000, 799980000, -799980000, 0)]


def test_clustered_tables_are_optimized_in_the_order_of_their_columns(tmp_path: Path, sql: Sql) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering", "domainMetadata"]}
    made = Table(tmp_path / "t").create(protocol=protocol)
    domain = {"domain": "delta.clustering", "configuration": json.dumps({"clusteringColumns": [["i"]]})}
    made.commit({"domainMetadata": {**domain, "removed": False}}, *(made.file(f"{n}", [9 - n, n]) for n in range(5)))
    assert sql("OPTIMIZE t")[0][2:4] == (1, 5)
    assert [i for (i,) in sql("SELECT i FROM t")] == sorted([*range(5), *range(5, 10)])
    assert info(tmp_path / "t")["operationParameters"]["clusterBy"] == '["i"]'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("OPTIMIZE t ZORDER BY (nosuch)", "has no column nosuch"),
        ("OPTIMIZE t ZORDER BY (p)", "p partitions the table already"),
        ("OPTIMIZE t ZORDER BY (n)", "n, which has parts"),
        ("REORG TABLE t", "expected APPLY"),
        ("REORG TABLE t WHERE x = 1 APPLY (PURGE)", "REORG TABLE t: table t has no column x"),
    ],
)
def test_what_is_refused(sql: Sql, text: str, message: str) -> None:
    sql("CREATE TABLE t (i BIGINT, p INTEGER, n STRUCT(a INTEGER)) PARTITIONED BY (p)")
    with pytest.raises(ProgrammingError, match=message):
        sql(text)


def test_rows_keep_their_ids_and_versions_where_they_are_tracked(tmp_path: Path, sql: Sql) -> None:
    features = ["appendOnly", "deletionVectors", "domainMetadata", "invariants", "rowTracking"]
    names = {"materializedRowIdColumnName": "_id", "materializedRowCommitVersionColumnName": "_version"}
    Table(tmp_path / "t").create(
        protocol={**DV, "writerFeatures": features},
        **{f"delta_rowTracking_{name}": value for name, value in names.items()},
        delta_enableRowTracking="true",
        delta_enableDeletionVectors="true",
    )

    def kept() -> dict[int, tuple[int, int]]:
        """Id and version by row, of the file that the newest commit added."""
        (add,) = of_kind(commit(tmp_path / "t"), "add")
        assert info(tmp_path / "t")["tags"] == {"delta.rowTracking.preserved": "true"}
        rows = pq.read_table(tmp_path / "t" / add["path"]).to_pylist()
        assert add["baseRowId"] > max(row["_id"] for row in rows)
        return {row["i"]: (row["_id"], row["_version"]) for row in rows}

    for start in (0, 10):
        sql(f"INSERT INTO t SELECT * FROM range({start}, {start + 10})")
    sql("DELETE FROM t WHERE i IN (3, 14)")
    sql("OPTIMIZE t")
    before = {i: (i, 1 + i // 10) for i in range(20) if i not in (3, 14)}
    assert kept() == before
    sql("INSERT INTO t VALUES (100)")
    (add,) = of_kind(commit(tmp_path / "t"), "add")
    sql("OPTIMIZE t")
    assert kept() == before | {100: (add["baseRowId"], 5)}
    assert sql("SELECT * FROM t ORDER BY i") == [(i,) for i in [*before, 100]]


# REORG


def test_reorg_rewrites_every_file_with_a_deletion_vector(t: Sql, table: Path) -> None:
    assert (*t("REORG TABLE t APPLY (PURGE)")[0][2:4], *files(t)) == (1, 2, (100, 0), (189, 0))
    told = info(table)
    assert told["operation"] == "REORG"
    assert told["operationParameters"] == {"predicate": "[]", "applyPurge": "true"}
    assert told["operationMetrics"]["numDeletionVectorsRemoved"] == "2"
    assert t("REORG TABLE t APPLY (PURGE)")[0][2:4] == (0, 0)


def test_reorg_takes_files_by_their_statistics(t: Sql) -> None:
    t("REORG TABLE t WHERE i > 120 APPLY (PURGE)")
    assert files(t) == [(99, 0), (100, 0), (100, 10)]


# Races


def test_a_delete_that_meets_moved_rows_is_done_again(t: Sql, tmp_path: Path, connect: Connect) -> None:
    late = connect(tmp_path)
    late.execute("DELETE FROM t WHERE i = 50")
    t("OPTIMIZE t")
    with pytest.raises(ConflictError, match="ConcurrentDeleteDelete"):
        late.commit()
    late.execute("DELETE FROM t WHERE i = 50")
    late.commit()
    assert t("SELECT count(*), count(DISTINCT i) FROM t") == [(288, 288)]


def test_an_insert_goes_on_beside_an_optimize(t: Sql, tmp_path: Path, connect: Connect) -> None:
    late = connect(tmp_path)
    late.execute("INSERT INTO t VALUES (1000, 'new')")
    t("OPTIMIZE t")
    late.commit()
    assert t("SELECT count(*), max(i) FROM t") == [(290, 1000)]


def test_an_optimize_that_meets_deletes_is_done_again(
    t: Sql, tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakedbapi.formats.delta.maintenance import DeltaMaintenance

    original, other = DeltaMaintenance.compact, connect(tmp_path, autocommit=True)
    left = [*range(20, 23)]

    def compact(self: Any, *args: Any) -> Any:
        if left:
            other.execute("DELETE FROM t WHERE i = ?", [left.pop()])
        return original(self, *args)

    monkeypatch.setattr(DeltaMaintenance, "compact", compact)
    written = stored(tmp_path / "t")
    assert t("OPTIMIZE t")[0][2:4] == (1, 3)
    assert t("SELECT count(*), count(*) FILTER (i BETWEEN 20 AND 22) FROM t") == [(286, 0)]
    parquet = {path for path in stored(tmp_path / "t") - written if path.endswith(".parquet")}
    assert len(parquet) == 1  # What the other tries wrote is gone.


def test_an_optimize_goes_on_beside_an_insert(
    t: Sql, tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without being done again: on a table that many write to it would never end."""
    from lakedbapi.formats.delta.maintenance import DeltaMaintenance

    original, other = DeltaMaintenance.compact, connect(tmp_path, autocommit=True)
    tries = []

    def compact(self: Any, *args: Any) -> Any:
        tries.append(1)
        other.execute("INSERT INTO t VALUES (1000, 'new')")
        return original(self, *args)

    monkeypatch.setattr(DeltaMaintenance, "compact", compact)
    assert t("OPTIMIZE t")[0][2:4] == (1, 3)
    assert len(tries) == 1
    assert t("SELECT count(*), max(i) FROM t") == [(290, 1000)]


# VACUUM


def test_vacuum_removes_what_no_version_within_the_retention_needs(t: Sql, table: Path) -> None:
    t("OPTIMIZE t")
    live = {Path(path).name for (path,) in t("SELECT path FROM files('t')")}
    t("DELETE FROM t WHERE i % 7 = 1")
    assert t("VACUUM") == t("VACUUM t") == t("VACUUM t RETAIN 168 HOURS") == []
    t(NOW)
    before = stored(table)
    going = {Path(path).relative_to(table).as_posix() for (path,) in t("VACUUM t RETAIN 0 HOURS DRY RUN")}
    assert stored(table) == before
    assert {Path(path).relative_to(table).as_posix() for (path,) in t("VACUUM t")} == going
    assert before - stored(table) == going
    kept = stored(table)
    assert {path for path in kept if path.endswith(".parquet")} == live
    assert sum(path.endswith(".bin") for path in kept) == 1
    assert t("SELECT count(*) FROM t") == [(289 - 41,)]
    with pytest.raises(lakedbapi.OperationalError, match="VACUUM does that to old versions"):
        t("RESTORE TABLE t TO VERSION AS OF 3")


def test_all_ways_to_remove_files_keep_to_the_retention(t: Sql, table: Path) -> None:
    t("OPTIMIZE t")
    (table / "orphan.parquet").write_bytes(b"x")
    before = stored(table)
    for procedure in ("cleanup_old_files", "delete_orphaned_files"):
        assert t(f"CALL ducklake_{procedure}('lake', cleanup_all => true)") == []
        assert t(f"CALL ducklake_{procedure}('lake', older_than => now() + INTERVAL 1 DAY)") == []
    assert stored(table) == before


def test_vacuum_of_all_tables_keeps_to_the_longest_retention(sql: Sql, table: Path) -> None:
    made = Table(table).create(delta_deletedFileRetentionDuration="interval 30 days")
    made.commit(first := made.file("a.parquet", [1]))
    made.commit(remove(first, deletionTimestamp=int((time.time() - 10 * DAY) * 1000)))
    (table / "orphan.parquet").write_bytes(b"x")
    age(table, 20)
    assert sql("VACUUM") == []
    assert sql("SELECT * FROM t FOR VERSION AS OF 1") == [(1,)]
    sql("ALTER TABLE t SET ('delta.deletedFileRetentionDuration' = 'interval 9 days')")
    assert sorted(sql("VACUUM")) == [(str(table / name),) for name in ("a.parquet", "orphan.parquet")]


def test_vacuum_tells_the_log_what_it_removes_as_spark_does(t: Sql, table: Path) -> None:
    t("OPTIMIZE t")
    t("VACUUM t")
    version = versions(table)[-1]
    assert info(table, version)["operation"] == "OPTIMIZE"  # Nothing went: nothing to tell.
    t(NOW)
    sizes = {path: (table / path).stat().st_size for path in stored(table)}
    assert t("VACUUM t DRY RUN")
    assert versions(table)[-1] == version + 1
    gone = t("VACUUM t")
    start, end = (info(table, version + n) for n in (2, 3))
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationParameters"] == {"retentionCheckEnabled": "true", "defaultRetentionMillis": "0"}
    removed = sum(sizes[Path(path).relative_to(table).as_posix()] for (path,) in gone)
    assert start["operationMetrics"] == {"numFilesToDelete": str(len(gone)), "sizeOfDataToDelete": str(removed)}
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": str(len(gone)), "numVacuumedDirectories": "1"}
    assert {start["isolationLevel"], end["isolationLevel"]} == {"SnapshotIsolation"}
    assert [list(line) for line in commit(table, version + 2)] == [["commitInfo"]]
    assert t("SELECT count(*) FROM t") == [(289,)]


def test_vacuum_tells_how_many_directories_it_went_through(sql: Sql, table: Path) -> None:
    sql("CREATE TABLE t (i BIGINT, p INTEGER) PARTITIONED BY (p)")
    sql("INSERT INTO t SELECT i, i % 3 FROM range(9) r(i)")
    sql("INSERT INTO t SELECT i, i % 3 FROM range(9) r(i)")
    sql("OPTIMIZE t")
    sql(NOW)
    sql("VACUUM t")
    assert info(table)["operationMetrics"] == {"numDeletedFiles": "6", "numVacuumedDirectories": "3"}


def test_vacuum_tells_of_a_retention_of_its_own(t: Sql, table: Path) -> None:
    t(NOW)
    t("OPTIMIZE t")
    age(table, 3)
    assert t("VACUUM t RETAIN 24 HOURS") == []  # They were removed from the table just now.
    (table / "old.parquet").write_bytes(b"x")
    age(table, 30)
    assert len(t("VACUUM t RETAIN 24 HOURS")) > 0
    start = info(table, versions(table)[-2])
    assert start["operationParameters"]["specifiedRetentionMillis"] == str(DAY * 1000)


def test_a_vacuum_that_fails_says_so(t: Sql, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise lakedbapi.OperationalError("the disk is gone")

    t("OPTIMIZE t")
    t(NOW)
    monkeypatch.setattr("lakedbapi.formats.delta.vacuum.delete", fails)
    with pytest.raises(lakedbapi.OperationalError, match="the disk is gone"):
        t("VACUUM t")
    assert info(table, versions(table)[-1])["operationParameters"] == {"status": "FAILED"}


def test_vacuum_needs_a_property_to_retain_less_than_the_table_tells(t: Sql) -> None:
    for text in ("VACUUM t RETAIN 1 HOURS", "VACUUM RETAIN 167 HOURS DRY RUN"):
        with pytest.raises(ProgrammingError, match=r"less than the 168 hours .* SET \('delta.deletedFileRetention"):
            t(text)


def test_retentions_of_any_length_are_understood(t: Sql, table: Path) -> None:
    long = "interval 99999999999999 days"
    t(f"ALTER TABLE t SET ('delta.logRetentionDuration' = '{long}', 'delta.deletedFileRetentionDuration' = '{long}')")
    before = stored(table)
    t("CHECKPOINT t")
    assert t("VACUUM t") == t("VACUUM") == []
    assert stored(table) >= before
    t("ALTER TABLE t UNSET ('delta.deletedFileRetentionDuration')")
    assert t("VACUUM t RETAIN 1e12 HOURS") == []


def test_vacuum_keeps_the_vectors_of_live_files_whatever_their_age(t: Sql, table: Path) -> None:
    t("DELETE FROM t WHERE i % 7 = 1")
    age(table)
    before = t("SELECT * FROM t ORDER BY i")
    t("VACUUM t")
    assert any(path.endswith(".bin") for path in stored(table))
    assert t("SELECT * FROM t ORDER BY i") == before
    t("CHECKPOINT t")
    t("VACUUM t")
    assert t("SELECT * FROM t ORDER BY i") == before


def test_vacuum_leaves_what_may_be_of_a_commit_under_way_and_what_is_not_the_tables(t: Sql, table: Path) -> None:
    t(NOW)
    t("CHECKPOINT t")
    kept = ["young.parquet", "_other/x.parquet", ".hidden", "metadata/v1.json", "below/_delta_log/0.json", "below/x"]
    going = ["old.parquet", "p=1/old.parquet", "_q=1/old.parquet", "_change_data/old.parquet", "deletion_vector_x.bin"]
    for name in (*kept, *going):
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).write_bytes(b"x")
        if name != "young.parquet":
            os.utime(table / name, (time.time() - 3 * DAY,) * 2)
    assert {Path(path).relative_to(table).as_posix() for (path,) in t("VACUUM t RETAIN 0 HOURS")} >= set(going)
    assert all((table / name).exists() for name in kept)
    assert not any((table / name).exists() for name in going)
    assert not (table / "p=1").exists()


def test_vacuum_keeps_change_files_of_versions_within_the_retention(sql: Sql, table: Path) -> None:
    sql("CREATE TABLE t (i BIGINT)")
    sql("ALTER TABLE t SET ('delta.enableChangeDataFeed' = 'true')")
    sql("INSERT INTO t SELECT * FROM range(100)")
    sql("UPDATE t SET i = i + 1000 WHERE i < 5")
    for path in (table / "_change_data").rglob("*.parquet"):
        os.utime(path, (time.time() - 30 * DAY,) * 2)
    for version in range(3):
        os.utime(table / "_delta_log" / f"{version:020}.json", (time.time() - 20 * DAY,) * 2)
    assert sql("VACUUM t") == []
    assert len(sql("FROM table_changes('t', 3, 3)")) == 10
    for path in (table / "_delta_log").glob("*.json"):
        os.utime(path, (time.time() - 20 * DAY,) * 2)
    assert [Path(path).parent.name for (path,) in sql("VACUUM t")] == ["_change_data"]


def test_vacuum_reads_paths_as_other_writers_spell_them(tmp_path: Path, sql: Sql) -> None:
    made = Table(tmp_path / "t").create(protocol=DV)
    plain, escaped, gone = (made.file(f"{name} x.parquet", [n]) for n, name in enumerate("abc"))
    plain["add"]["path"] = "a x.parquet"
    made.commit(plain, escaped, gone)
    made.commit(remove(gone))
    age(tmp_path / "t", 20)
    assert [Path(path).name for (path,) in sql("VACUUM t")] == ["c x.parquet"]
    assert sql("SELECT i FROM t ORDER BY i") == [(0,), (1,)]


def test_vacuum_keeps_vectors_that_the_log_has_by_their_whole_path(tmp_path: Path, sql: Sql) -> None:
    made = Table(tmp_path / "t").create(protocol=DV)
    add = made.file("a.parquet", range(10_000))
    rows = DeleteVector.of(range(0, 10_000, 3))
    files = VectorFiles(Storage.of(str(made.path)), f"{made.path}/")
    ((descriptor),) = files.write([rows])
    whole = {**descriptor, "storageType": "p", "pathOrInlineDv": Path(files.written[0]).as_uri()}
    made.commit(with_vector(add, whole))
    age(made.path, 20)
    assert sql("VACUUM t") == []
    assert sql("SELECT count(*) FROM t") == [(10_000 - len(rows),)]


def test_vacuum_keeps_a_file_that_is_called_as_the_log_has_it(tmp_path: Path, sql: Sql) -> None:
    """Writers that escape nothing may have left both."""
    made = Table(tmp_path / "t").create()
    add, other = made.file("p=a b/x.parquet", [1]), made.file("p=a%20b/x.parquet", [1])
    assert (add["add"]["path"], other["add"]["path"]) == ("p%3Da%20b/x.parquet", "p%3Da%2520b/x.parquet")
    add["add"]["path"] = "p=a%20b/x.parquet"
    made.commit(add)
    age(made.path, 20)
    assert sql("VACUUM t") == []
    assert stored(made.path) == {"p=a b/x.parquet", "p=a%20b/x.parquet"}


@pytest.mark.parametrize("told", [{"deletionTimestamp": 1}, {"deletionTimestamp": None}], ids=["old", "none"])
def test_vacuum_keeps_what_a_commit_of_lately_removed(tmp_path: Path, sql: Sql, told: dict[str, int | None]) -> None:
    """Whatever its writer's clock said; and what was removed lately, whatever the commit's file says."""
    made = Table(tmp_path / "t").create()
    adds = [made.file(f"{name}.parquet", [1]) for name in "abc"]
    made.commit(*adds)
    made.commit(remove(adds[0], deletionTimestamp=int(time.time() * 1000)))
    age(made.path, 20)
    made.commit(remove(adds[1], **told))
    os.utime(made.log / f"{made.version:020}.json")
    assert sql("VACUUM t") == []
    assert stored(made.path) == {"a.parquet", "b.parquet", "c.parquet"}
    age(made.path, 20)
    assert [Path(path).name for (path,) in sql("VACUUM t")] == ["b.parquet"]


def test_vacuum_of_a_table_that_cannot_be_written_is_refused(tmp_path: Path, sql: Sql) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["future"]}
    Table(tmp_path / "t").create(protocol=protocol)
    for text in ("VACUUM t", "OPTIMIZE t ZORDER BY (i)"):
        made = Table(tmp_path / "t", 0)
        made.commit(made.file("x.parquet", [1]))
        with pytest.raises(NotSupportedError, match="future"):
            sql(text)


def test_expiry_by_number_tells_the_way(t: Sql) -> None:
    with pytest.raises(NotSupportedError, match="VACUUM removes the files of old ones"):
        t("CALL ducklake_expire_snapshots('lake', versions => [1])")


def test_procedures_work_on_delta_tables(t: Sql) -> None:
    assert t("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.1)") == [("main", "t", 1, 1)]
    assert t("CALL ducklake_merge_adjacent_files('lake', 't')") == [("main", "t", 2, 1)]
    assert t("CALL ducklake_flush_inlined_data('lake')") == []
    t(NOW)
    assert len(t("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")) == 3
    assert t("CALL ducklake_delete_orphaned_files('lake')") == []
    assert t("SELECT count(*) FROM t") == [(289,)]


# CHECKPOINT


def test_checkpoint_writes_one_of_the_newest_version(t: Sql, table: Path) -> None:
    t("CREATE TABLE u AS SELECT 1 AS i")
    for text in ("CHECKPOINT t", "CHECKPOINT TABLE main.t", "CHECKPOINT t"):
        assert t(text) == []
    assert [path.name for path in (table / "_delta_log").glob("*.parquet")] == [f"{4:020}.checkpoint.parquet"]
    assert json.loads((table / "_delta_log" / "_last_checkpoint").read_text())["version"] == 4
    t("CHECKPOINT")
    assert (table.parent / "u" / "_delta_log" / f"{0:020}.checkpoint.parquet").exists()
    for path in (table / "_delta_log").glob("*.json"):
        path.unlink()
    with lakedbapi.connect(f"delta:///{table.parent}") as connection:
        assert values(connection, "SELECT count(*) FROM t") == [289]
        assert rows(connection, "SELECT * FROM u") == [(1,)]
