"""PURGE of Delta tables: no byte of the erased rows is in the directory then, not in its log either."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

import lakedbapi
from lakedbapi.errors import ConflictError, NotSupportedError, OperationalError, ProgrammingError
from lakedbapi.formats.delta import erasure, log_erasure
from lakedbapi.formats.delta.erasure import DeltaErasure
from lakedbapi.storage.filesystem import Storage
from tests.formats.delta.conftest import Connect
from tests.thorough import quick

SECRET = "joe@example.org"
PURGE = f"PURGE FROM t WHERE mail = '{SECRET}'"
DAY = 86_400
Sql = Callable[..., Any]


@pytest.fixture
def new(tmp_path: Path, connect: Connect) -> Callable[[], Sql]:
    def opened() -> Sql:
        connection = connect(tmp_path, autocommit=True)

        def run(text: str, *parameters: object) -> Any:
            cursor = connection.execute(text, list(parameters) or None)
            return cursor.fetchall() if cursor.description else cursor.rowcount

        return run

    return opened


@pytest.fixture
def sql(new: Callable[[], Sql]) -> Sql:
    return new()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "t"


def fill(sql: Sql, properties: str = "'delta.enableDeletionVectors' = 'true'", partitioning: str = "") -> None:
    """Rows of Joe that are live, deleted, updated, and the greatest of their column; others beside each."""
    sql(
        f"CREATE TABLE t (id BIGINT, mail VARCHAR, v INTEGER){partitioning} "
        f"WITH ({properties}, 'delta.parquet.compression.codec' = 'uncompressed')"
    )
    sql("INSERT INTO t SELECT i, 'a' || i, 0 FROM range(100, 130) r(i)")
    sql(f"INSERT INTO t SELECT i, if(i = 3, '{SECRET}', 'b' || i), 0 FROM range(30) r(i)")
    sql(f"INSERT INTO t VALUES (31, '{SECRET}', 0), (32, 'c', 0)")
    sql(f"UPDATE t SET mail = '{SECRET}' WHERE id = 4")
    sql(f"UPDATE t SET v = 1 WHERE mail = '{SECRET}' AND id = 31")
    sql(f"DELETE FROM t WHERE mail = '{SECRET}' AND id = 3")


@pytest.fixture
def t(sql: Sql) -> Sql:
    fill(sql)
    return sql


def remains(folder: Path, text: str = SECRET) -> list[str]:
    """Files and folders that have `text` in their bytes or names."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if text in path.name or (path.is_file() and text.encode() in path.read_bytes())
    ]


EXPECTED = sorted([*range(100, 130), *(i for i in range(30) if i not in (3, 4)), 32])


def ids(sql: Sql) -> list[int]:
    return [id for (id,) in sql("SELECT id FROM t ORDER BY id")]


def versions(sql: Sql) -> list[int]:
    return sorted(line[0] for line in sql("DESCRIBE HISTORY t"))


@pytest.mark.parametrize(
    ("vectors", "feed", "partitioning"),
    [
        ("true", "false", ""),
        ("false", "true", ""),
        ("true", "true", " PARTITIONED BY (v)"),
        ("false", "true", " PARTITIONED BY (mail)"),
    ],
)
def test_no_byte_of_the_rows_is_left(
    sql: Sql, new: Callable[[], Sql], tmp_path: Path, vectors: str, feed: str, partitioning: str
) -> None:
    fill(sql, f"'delta.enableDeletionVectors' = '{vectors}', 'delta.enableChangeDataFeed' = '{feed}'", partitioning)
    assert remains(tmp_path)
    assert any("_delta_log" in path for path in remains(tmp_path))
    report = sql(PURGE)
    assert remains(tmp_path) == []
    assert remains(tmp_path, "joe") == []
    assert {rows for _, _, rows, result in report if result == "clean"} <= {0}
    removed = [path for path, kind, _, result in report if kind == "data file" and result.startswith("removed")]
    assert removed
    assert not any(os.path.exists(path) for path in removed)
    assert ids(sql) == EXPECTED
    assert ids(new()) == EXPECTED
    sql("INSERT INTO t VALUES (500, 'new', 1)")
    assert ids(new()) == [*EXPECTED, 500]
    assert remains(tmp_path) == []


def test_older_versions_tell_that_they_are_gone(t: Sql) -> None:
    t(PURGE)
    (first,) = versions(t)
    for statement in ("SELECT * FROM t AT (VERSION => 3)", "RESTORE TABLE t TO VERSION AS OF 3"):
        with pytest.raises(ProgrammingError, match="has no version 3 any more, since its log was cleaned up or purged"):
            t(statement)
    with pytest.raises(ProgrammingError, match="no version at"):
        t("SELECT * FROM t AT (TIMESTAMP => TIMESTAMP '2001-01-01')")
    assert t(f"SELECT count(*) FROM t AT (VERSION => {first})") == [(len(EXPECTED),)]


def test_the_next_purge_finds_nothing(t: Sql, table: Path) -> None:
    t(PURGE)
    before = sorted(path.name for path in (table / "_delta_log").iterdir())
    report = t(PURGE)
    assert {rows for _, _, rows, _ in report} == {0, None}
    assert sorted(path.name for path in (table / "_delta_log").iterdir()) == before


def test_bounds_of_files_that_went_long_ago(t: Sql, tmp_path: Path) -> None:
    t(f"DELETE FROM t WHERE mail = '{SECRET}'")
    t("REORG TABLE t APPLY (PURGE)")
    t("ALTER TABLE t SET ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')")
    t("VACUUM t RETAIN 0 HOURS")
    t("CHECKPOINT t")
    assert remains(tmp_path)
    t(PURGE)
    assert remains(tmp_path) == []
    assert ids(t) == EXPECTED


def test_checkpoints_have_no_bounds_of_them(t: Sql, tmp_path: Path) -> None:
    t("CHECKPOINT t")
    for i in range(12):
        t("INSERT INTO t VALUES (?, 'm', 0)", 1000 + i)
    assert sum("checkpoint" in path for path in remains(tmp_path)) == 2
    t(PURGE)
    assert remains(tmp_path) == []


def test_a_table_that_never_had_such_rows_keeps_its_versions(t: Sql) -> None:
    before = versions(t)
    t("PURGE FROM t WHERE mail = 'nobody'")
    assert versions(t) == before


def test_renamed_columns(t: Sql, tmp_path: Path) -> None:
    t("ALTER TABLE t SET ('delta.columnMapping.mode' = 'name')")
    t("ALTER TABLE t RENAME COLUMN mail TO address")
    t(f"INSERT INTO t VALUES (200, '{SECRET}', 3), (201, 'x', 3)")
    t(f"PURGE FROM t WHERE address = '{SECRET}'")
    assert remains(tmp_path) == []
    assert ids(t) == sorted([*EXPECTED, 201])


def test_times_in_commits(sql: Sql, tmp_path: Path) -> None:
    fill(sql, "'delta.enableInCommitTimestamps' = 'true'")
    sql(PURGE)
    assert remains(tmp_path) == []
    sql("INSERT INTO t VALUES (500, 'new', 1)")
    assert ids(sql) == [*EXPECTED, 500]


def test_another_partitioning_before(sql: Sql, tmp_path: Path) -> None:
    fill(sql, partitioning=" PARTITIONED BY (mail)")
    sql("CREATE OR REPLACE TABLE t (id BIGINT, mail VARCHAR) WITH ('delta.parquet.compression.codec' = 'uncompressed')")
    sql(f"INSERT INTO t VALUES (1, '{SECRET}'), (2, 'x')")
    sql(PURGE)
    assert remains(tmp_path) == []
    assert ids(sql) == [2]


# Files that the log does not know


def orphan(table: Path, name: str, age: float, partition: str = "") -> Path:
    """A copy of a file with rows of Joe."""
    source = next(path for path in table.rglob("*.parquet") if SECRET.encode() in path.read_bytes())
    path = table / partition / name
    path.parent.mkdir(exist_ok=True)
    shutil.copy(source, path)
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_an_old_orphan_goes(t: Sql, table: Path, tmp_path: Path) -> None:
    path = orphan(table, "part-00000-x.parquet", 3 * DAY)
    report = t(PURGE)
    assert remains(tmp_path) == []
    assert (str(path), "orphan file", "removed") in [(line[0], line[1], line[3]) for line in report]


def test_a_young_orphan_is_an_error_with_a_way_out(t: Sql, table: Path, tmp_path: Path) -> None:
    path = orphan(table, "part-00000-x.parquet", DAY)
    with pytest.raises(OperationalError, match=r"part-00000-x.parquet \(orphan file, 1 rows\).*delete_orphaned_files"):
        t(PURGE)
    assert remains(tmp_path) == [str(path.relative_to(tmp_path))]
    t("ALTER TABLE t SET ('delta.deletedFileRetentionDuration' = 'interval 0 hours')")
    t("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    t(PURGE)
    assert remains(tmp_path) == []


def test_files_of_others_and_hidden_ones_are_searched(t: Sql, table: Path) -> None:
    (table / "_temporary").mkdir()
    orphan(table, "export.parquet", 9 * DAY)
    orphan(table, "half.parquet", 9 * DAY, "_temporary")
    (table / "sound.txt").write_text("nothing")
    with pytest.raises(OperationalError, match=r"(?=.*export.parquet \(orphan)(?=.*half.parquet)(?=.*sound.txt)"):
        t(PURGE)


def test_orphans_of_partitions(sql: Sql, table: Path, tmp_path: Path) -> None:
    fill(sql, partitioning=" PARTITIONED BY (mail)")
    folder = next(path for path in table.iterdir() if "joe" in path.name)
    shutil.copy(next(folder.glob("*.parquet")), folder / "part-00000-x.parquet")
    os.utime(folder / "part-00000-x.parquet", (time.time() - 9 * DAY,) * 2)
    shutil.copy2(folder / "part-00000-x.parquet", table / "part-00000-y.parquet")
    os.utime(table / "part-00000-y.parquet", (time.time() - DAY,) * 2)
    with pytest.raises(OperationalError, match=r"part-00000-y.parquet.*not searched"):
        sql(PURGE)
    (table / "part-00000-y.parquet").unlink()
    sql(PURGE)
    assert remains(tmp_path, "joe") == []


def test_files_of_tables_below_stay(t: Sql, table: Path, connect: Connect) -> None:
    shutil.copytree(table, table / "below")
    before = sorted(table.glob("below/**/*"))
    t(PURGE)
    assert sorted(table.glob("below/**/*")) == before


def test_a_shared_file_of_another_table_stays(sql: Sql, tmp_path: Path) -> None:
    """As shallow clones have them."""
    sql("CREATE TABLE t (id BIGINT, mail VARCHAR)")
    sql("CREATE TABLE u (id BIGINT, mail VARCHAR)")
    sql(f"INSERT INTO u VALUES (1, '{SECRET}'), (2, 'x')")
    sql("INSERT INTO t VALUES (3, 'y')")
    commit = tmp_path / "t/_delta_log/00000000000000000001.json"
    lines = (tmp_path / "u/_delta_log/00000000000000000001.json").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = f"file://{tmp_path}/u/{action['add']['path']}"
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    with pytest.raises(OperationalError, match="another table has this file, too"):
        sql(PURGE)
    assert sql("SELECT * FROM t") == [(2, "x")]
    assert sql("SELECT count(*) FROM u") == [(2,)]
    sql(PURGE.replace(" t ", " u "))
    sql(PURGE)


def test_a_file_of_the_log_that_is_not_known_is_reported(t: Sql, table: Path) -> None:
    log = table / "_delta_log"
    (log / "_sidecars").mkdir()
    for name in (
        "_commit_1.json.tmp",
        "_sidecars/x.parquet",
        "_sidecars/.x.parquet.crc",
        ".00000000000000000001.json.crc",
    ):
        (log / name).write_text("{}")
    (log / ".mark").touch()
    told = "unknown: remove it by hand once no writer runs"
    assert [line for line in t(PURGE) if line[1] == "log file"] == [
        (str(log / name), "log file", None, told) for name in ("_commit_1.json.tmp", "_sidecars/x.parquet")
    ]


def test_checkpoints_with_sidecars(golden: Callable[[str], Path], connect: Connect, tmp_path: Path) -> None:
    shutil.copytree(golden("g-v2-checkpoint-json"), tmp_path / "t")
    connection = connect(tmp_path, autocommit=True)
    sidecars = tmp_path / "t" / "_delta_log" / "_sidecars"
    assert list(sidecars.glob("*.parquet"))
    left = connection.execute("SELECT * FROM t WHERE id <> 3 ORDER BY id").fetchall()
    connection.execute("PURGE FROM t WHERE id = 3")
    assert not list(sidecars.glob("*.parquet"))
    assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == left


# Interruptions and others at work


@pytest.mark.parametrize("step", ["rewrite", "forget", "cut", "checkpoint", "overwrite", "before"])
def test_an_interrupted_purge_is_repeated(
    t: Sql, new: Callable[[], Sql], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    places: dict[str, tuple[Any, str]] = {
        "rewrite": (importlib.import_module("lakedbapi.maintenance.purge"), "rewrite"),
        "forget": (DeltaErasure, "forget"),
        "cut": (erasure, "cut_log"),
        "checkpoint": (log_erasure, "write_checkpoint"),
        "before": (log_erasure, "_remove_before"),
        "overwrite": (Storage, "overwrite"),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*places[step], interrupted)
        with pytest.raises(KeyboardInterrupt):
            t(PURGE)
    assert ids(new()) == EXPECTED
    t(PURGE)
    assert remains(tmp_path) == []
    assert ids(t) == EXPECTED


def test_rows_that_come_meanwhile_go_too(
    t: Sql, new: Callable[[], Sql], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new()
    inserts = [f"INSERT INTO t VALUES (600 + {i}, '{mail}', 0)" for i, mail in enumerate([SECRET, "x", SECRET])]
    original = Storage.put_if_absent

    def put(self: Storage, path: str, data: bytes) -> None:
        if inserts:
            other(inserts.pop())
        original(self, path, data)

    monkeypatch.setattr(Storage, "put_if_absent", put)
    t(PURGE)
    assert not inserts
    assert remains(tmp_path) == []
    assert ids(t) == [*EXPECTED, 601]


@pytest.mark.parametrize("statement", ["UPDATE t SET v = 5 WHERE id = 100", "INSERT INTO t VALUES (900, 'x', 0)"])
def test_a_transaction_that_began_before_conflicts(t: Sql, connect: Connect, tmp_path: Path, statement: str) -> None:
    old = connect(tmp_path)
    old.execute(statement)
    t(PURGE)
    with pytest.raises(ConflictError, match="roll back and retry"):
        old.commit()
    old.rollback()
    old.execute(statement)
    old.commit()
    assert remains(tmp_path) == []


def test_versions_before_stay_taken(t: Sql, table: Path) -> None:
    """A writer that is behind must not commit where nobody looks."""
    t(PURGE)
    names = {path.name for path in (table / "_delta_log").glob("*.json")}
    last = max(int(name[:20]) for name in names)
    assert names == {f"{version:020}.json" for version in range(1, last + 1)}


def test_protected_checkpoints_are_refused(t: Sql, table: Path) -> None:
    path = max((table / "_delta_log").glob("*.json"))
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "checkpointProtection", "appendOnly", "invariants"],
    }
    path.write_text(path.read_text() + json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(NotSupportedError, match="checkpointProtection"):
        t(PURGE)


@pytest.mark.parametrize("remote", quick(1, ["memory", "s3"]), indirect=True)
@pytest.mark.parametrize("partitioning", ["", " PARTITIONED BY (mail)"], ids=["whole", "partitioned"])
def test_rows_are_erased_on_a_remote_store(remote: dict[str, Any], partitioning: str) -> None:
    def run(text: str) -> Any:
        with lakedbapi.connect(**remote, autocommit=True) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else cursor.rowcount

    url = str(remote["database"]).removeprefix("delta+")
    storage, root = fsspec.url_to_fs(url, **remote.get("storage_options", {}))
    fill(run, partitioning=partitioning)
    run("CHECKPOINT t")
    before = run(f"SELECT * FROM t WHERE mail <> '{SECRET}' ORDER BY id")

    def found() -> list[str]:
        storage.invalidate_cache()
        return [path for path in storage.find(root) if SECRET in path or SECRET.encode() in storage.cat_file(path)]

    assert found()
    run(PURGE)
    assert found() == []
    assert run("SELECT * FROM t ORDER BY id") == before
    run(f"INSERT INTO t VALUES (1000, '{SECRET}', 5)")
    assert run("SELECT count(*) FROM t") == [(len(before) + 1,)]
