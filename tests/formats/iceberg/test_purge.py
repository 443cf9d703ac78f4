"""PURGE of Iceberg tables: no byte of the erased rows is in the table's directory then, not in its metadata either."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table.statistics import StatisticsFile

import lakedbapi
from lakedbapi.errors import NotSupportedError, OperationalError, ProgrammingError
from lakedbapi.formats.iceberg import avro, erasure
from lakedbapi.formats.iceberg.erasure import IcebergErasure
from lakedbapi.formats.iceberg.stored_history import StoredHistory
from lakedbapi.storage.filesystem import Storage
from tests.formats.iceberg.building import Table
from tests.formats.iceberg.columns import ID, KEY
from tests.formats.iceberg.test_write_foreign import Place
from tests.formats.iceberg.writing import rows, values

SECRET = "joe@example.org"
PURGE = f"PURGE FROM t WHERE mail = '{SECRET}'"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.close()


def fill(place: Place, partitioning: str = "", **properties: str) -> lakedbapi.Connection:
    """Rows of Joe that are live, deleted, updated, and the greatest of their column; others beside each."""
    sql = place.connect()
    place.create(
        sql,
        "t",
        "id BIGINT, mail VARCHAR, v INTEGER",
        **{"write.parquet.compression-codec": "uncompressed"},
        **properties,
    )
    if partitioning:
        sql.execute(f"ALTER TABLE t SET PARTITIONED BY ({partitioning})")
    sql.execute("INSERT INTO t SELECT i, 'a' || i, 0 FROM range(100, 130) r(i)")
    sql.execute(f"INSERT INTO t SELECT i, if(i = 3, '{SECRET}', 'b' || i), 0 FROM range(30) r(i)")
    sql.execute(f"INSERT INTO t VALUES (31, '{SECRET}', 0), (32, 'c', 0)")
    sql.execute(f"UPDATE t SET mail = '{SECRET}' WHERE id = 4")
    sql.execute(f"UPDATE t SET v = 1 WHERE mail = '{SECRET}' AND id = 31")
    sql.execute(f"DELETE FROM t WHERE mail = '{SECRET}' AND id = 3")
    return sql


def remains(place: Place, text: str = SECRET[:16]) -> list[str]:
    """Files and folders of the warehouse that have `text` in their bytes or names: bounds have its first characters."""
    return [
        str(path.relative_to(place.root))
        for path in (place.root / "warehouse").rglob("*")
        if text in path.name or (path.is_file() and text.encode() in content(path))
    ]


def content(path: Path) -> bytes:
    if path.suffix != ".avro":
        return path.read_bytes()
    return repr(avro_rows(path)).encode()


def avro_rows(path: Path) -> list[Any]:
    return list(avro.read(path.read_bytes(), lambda stored: stored)[1])


EXPECTED = sorted([*range(100, 130), *(i for i in range(30) if i not in (3, 4)), 32])


def ids(sql: lakedbapi.Connection) -> list[int]:
    return values(sql, "SELECT id FROM t")


@pytest.mark.parametrize(("version", "partitioning"), [(2, ""), (3, "v"), (2, "truncate(3, mail)"), (3, "mail")])
def test_no_byte_of_the_rows_is_left(place: Place, version: int, partitioning: str) -> None:
    place.version = version
    sql = fill(place, partitioning)
    assert any(path.endswith(".avro") for path in remains(place))
    assert any(path.endswith(".parquet") for path in remains(place))
    before = rows(sql, f"SELECT rowid, * FROM t WHERE mail <> '{SECRET}'") if place.version == 3 else []
    report = sql.execute(PURGE).fetchall()
    assert remains(place) == []
    assert remains(place, "joe") == []
    assert {matching for _, _, matching, result in report if result == "clean"} <= {0}
    removed = [path for path, kind, _, result in report if kind == "data file" and result.startswith("removed")]
    assert removed
    assert not any(Path(path).exists() for path in removed)
    assert ids(sql) == EXPECTED
    assert ids(place.connect()) == EXPECTED
    assert sorted(place.table().scan().to_arrow().column("id").to_pylist()) == EXPECTED
    if place.version == 3:
        assert rows(sql, "SELECT rowid, * FROM t") == before
    sql.execute("INSERT INTO t VALUES (500, 'new', 1)")
    assert ids(place.connect()) == [*EXPECTED, 500]
    assert remains(place) == []


def snapshot_ids(place: Place) -> list[int]:
    return [snapshot.snapshot_id for snapshot in place.snapshots()]


def test_snapshots_that_never_saw_such_rows_stay_and_others_say_that_they_are_gone(place: Place) -> None:
    sql = fill(place)
    first, second, *_ = snapshot_ids(place)
    sql.execute(f"ALTER TABLE t CREATE TAG clean AS OF VERSION {first}")
    sql.execute(f"ALTER TABLE t CREATE TAG seen AS OF VERSION {second}")
    sql.execute("ALTER TABLE t CREATE BRANCH next")
    report = sql.execute(PURGE).fetchall()
    assert {(name, result) for name, kind, _, result in report if kind in ("tag", "branch")} == {
        ("tag seen", "expired"),
        ("branch next", "expired"),
    }
    assert len(rows(sql, "SELECT * FROM t FOR VERSION AS OF 'clean'")) == 30
    assert set(place.table().metadata.refs) == {"main", "clean"}
    with pytest.raises(ProgrammingError, match="no snapshot"):
        sql.execute(f"SELECT * FROM t AT (VERSION => {second})")
    assert remains(place) == []


def test_the_next_purge_finds_nothing_and_changes_nothing(place: Place) -> None:
    sql = fill(place)
    sql.execute(PURGE)
    before = sorted((place.root / "warehouse").rglob("*"))
    report = sql.execute(PURGE).fetchall()
    assert {matching for _, _, matching, _ in report} == {0, None}
    assert sorted((place.root / "warehouse").rglob("*")) == before


def test_a_table_that_never_had_such_rows_keeps_its_versions(place: Place) -> None:
    sql = fill(place)
    before = sorted((place.root / "warehouse").rglob("*"))
    sql.execute("PURGE FROM t WHERE mail = 'nobody'")
    assert sorted((place.root / "warehouse").rglob("*")) == before


def test_bounds_of_files_that_went_long_ago(place: Place) -> None:
    sql = fill(place)
    sql.execute(f"DELETE FROM t WHERE mail = '{SECRET}'")
    sql.execute("REORG TABLE t APPLY (PURGE)")
    sql.execute("VACUUM t RETAIN 0 HOURS")
    assert any(path.endswith(".avro") for path in remains(place))
    sql.execute(PURGE)
    assert remains(place) == []
    assert ids(sql) == EXPECTED


def test_a_tag_whose_manifests_have_bounds_of_files_that_are_gone_is_told(place: Place) -> None:
    """It may be of other rows: who asks for the erasure decides."""
    sql = fill(place)
    sql.execute(f"DELETE FROM t WHERE mail = '{SECRET}'")
    sql.execute("REORG TABLE t APPLY (PURGE)")
    sql.execute("ALTER TABLE t CREATE TAG now")
    sql.execute("VACUUM t RETAIN 0 HOURS")
    (line,) = [line for line in sql.execute(PURGE).fetchall() if line[1] == "branch or tag"]
    assert line[0] == "now"
    assert "drop it, and purge again" in line[3]
    assert len(rows(sql, "SELECT * FROM t FOR VERSION AS OF 'now'")) == len(EXPECTED)
    sql.execute("ALTER TABLE t DROP TAG now")
    sql.execute(PURGE)
    assert remains(place) == []


def test_a_branch_with_snapshots_of_its_own(place: Place) -> None:
    sql = fill(place)
    sql.execute("ALTER TABLE t CREATE BRANCH audit")
    table = place.table()
    table.append(table.scan().to_arrow().slice(0, 1), branch="audit")
    with pytest.raises(OperationalError, match=r"branch 'audit' has files with such rows.*drop it"):
        sql.execute(PURGE)
    sql.execute("ALTER TABLE t DROP BRANCH audit")
    sql.execute(PURGE)
    assert remains(place) == []


def test_statistics_of_snapshots_that_end_go(place: Place) -> None:
    sql = fill(place)
    table = place.table()
    path = Path(str(table.metadata.location).removeprefix("file://")) / "metadata" / "x.stats"
    path.write_text(SECRET)
    file = StatisticsFile.model_validate(
        {
            "snapshot-id": table.metadata.current_snapshot_id,
            "statistics-path": f"file://{path}",
            "file-size-in-bytes": len(SECRET),
            "file-footer-size-in-bytes": 0,
            "blob-metadata": [],
        }
    )
    table.update_statistics().set_statistics(file).commit()
    sql.execute(PURGE)
    assert place.table().metadata.statistics == []
    assert remains(place) == []


def test_dropped_and_renamed_columns(place: Place) -> None:
    sql = fill(place)
    sql.execute("ALTER TABLE t RENAME COLUMN mail TO address")
    sql.execute("ALTER TABLE t DROP COLUMN address")
    sql.execute(f"PURGE FROM t WHERE address = '{SECRET}'")
    assert remains(place) == []
    assert ids(sql) == EXPECTED


# Equality deletes of other writers: their files have the keys


def adopted(place: Place, *, version: int = 2) -> tuple[Table, lakedbapi.Connection]:
    place.version = version
    made = Table(place.root / "warehouse", ID, KEY, version=version)
    made.commit(made.data({"id": [1, 2, 3], "k": ["a", SECRET, "c"]}), made.data({"id": [4], "k": ["d"]}))
    made.commit(made.equality({"k": [SECRET, "x"]}, [2]))
    made.commit(made.data({"id": [5], "k": ["e"]}))
    return made, place.adopt(made)


@pytest.mark.parametrize(
    ("version", "where"), [(2, f"k = '{SECRET}'"), (3, f"k = '{SECRET}' AND id = 2"), (2, "id = 2")]
)
def test_keys_of_equality_deletes(place: Place, version: int, where: str) -> None:
    """Where they lack columns of the condition, any of their rows may be one that matches."""
    _, sql = adopted(place, version=version)
    assert remains(place, "joe")
    report = sql.execute(f"PURGE FROM t WHERE {where}").fetchall()
    assert [line[1] for line in report if line[3].startswith("removed")].count("equality delete file") == 1
    assert remains(place, "joe") == []
    assert values(sql, "SELECT id FROM t") == [1, 3, 4, 5]
    assert place.files(2) == []


def test_equality_deletes_of_others_stay(place: Place) -> None:
    _, sql = adopted(place)
    sql.execute("PURGE FROM t WHERE k = 'e'")
    assert values(sql, "SELECT id FROM t") == [1, 3, 4]
    assert len(place.files(2)) == 1


def test_an_equality_delete_that_reaches_nothing_goes(place: Place) -> None:
    """Compaction by others left it behind."""
    _, sql = adopted(place)
    sql.execute("OPTIMIZE t")
    sql.execute("VACUUM t RETAIN 0 HOURS")
    sql.execute(f"PURGE FROM t WHERE k = '{SECRET}'")
    assert remains(place, "joe") == []


# Files that no snapshot knows


def orphan(place: Place, name: str, age: float) -> Path:
    """A copy of a file with rows of Joe."""
    source = next(p for p in (place.root / "warehouse").rglob("*.parquet") if SECRET.encode() in p.read_bytes())
    path = source.parent / name
    shutil.copy(source, path)
    os.utime(path, (time.time() - age,) * 2)
    return path


OWN = "00000-0-6fd1f0b2-9e3a-4f0c-8b43-111111111111.parquet"


def test_orphans(place: Place) -> None:
    """An old one goes, a young one and a strange one are errors."""
    sql = fill(place)
    old = orphan(place, OWN, 9 * 86_400)
    young = orphan(place, OWN.replace("1", "2"), 60 * 60)
    strange = orphan(place, "export.parquet", 9 * 86_400)
    with pytest.raises(OperationalError, match=r"(?=.*export.parquet \(orphan file, 1 rows)(?=.*2222222)"):
        sql.execute(PURGE)
    assert not old.exists()
    strange.unlink()
    sql.execute("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    assert not young.exists()
    sql.execute(PURGE)
    assert remains(place) == []


def test_metadata_that_nothing_names(place: Place) -> None:
    """Of a writer that died, or lost against others: told, and removed when it is old."""
    sql = fill(place)
    folder = Path(str(place.table().metadata.location).removeprefix("file://")) / "metadata"
    unfinished = ".old-m0.avro.0123456789ab.tmp"
    for name, age in (("old-m0.avro", 9 * 86_400), (unfinished, 9 * 86_400), ("young.metadata.json", 60)):
        (folder / name).write_text(SECRET)
        os.utime(folder / name, (time.time() - age,) * 2)
    report = {line[0]: line[3] for line in sql.execute(PURGE).fetchall() if line[1] == "metadata file"}
    assert report == {
        str(folder / "old-m0.avro"): "removed",
        str(folder / unfinished): "removed",
        str(folder / "young.metadata.json"): "unknown: remove it by hand once no writer runs",
    }
    assert [Path(path).name for path in remains(place)] == ["young.metadata.json"]


def test_tables_below_stay(place: Place) -> None:
    sql = fill(place)
    location = str(place.table().metadata.location)
    sql.execute(f"CREATE TABLE below (mail VARCHAR) WITH ('location' = '{location}/below')")
    sql.execute(f"INSERT INTO below VALUES ('{SECRET}')")
    sql.execute(PURGE)
    assert rows(sql, "SELECT * FROM below") == [(SECRET,)]


# What cannot be purged


def test_refused(place: Place) -> None:
    sql = fill(place)
    sql.execute("ALTER TABLE t SET ('gc.enabled' = 'false')")
    with pytest.raises(NotSupportedError, match=r"gc\.enabled"):
        sql.execute(PURGE)
    made = Table(place.root / "warehouse" / "old", ID, version=1)
    made.commit(made.data({"id": [1]}))
    place.catalog.register_table("main.u", made.metadata())
    with pytest.raises(NotSupportedError, match="format version 1"):
        sql.execute("PURGE FROM u WHERE id = 1")


# Interruptions and others at work


@pytest.mark.parametrize("step", ["tidy", "expire", 0, 1])
def test_an_interrupted_purge_is_repeated(place: Place, monkeypatch: pytest.MonkeyPatch, step: str | int) -> None:
    """`step`: what is interrupted; a number: the removal of files after so many others behind the expiry."""
    sql = fill(place)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    places: dict[str, tuple[Any, str]] = {
        "tidy": (erasure, "tidy"),
        "expire": (erasure, "expire"),
    }
    delete, remove, calls = Storage.delete, StoredHistory.remove_forgotten, []

    def some(storage: Storage, paths: Any) -> None:
        if len(calls) == step:
            raise KeyboardInterrupt
        calls.append(paths)
        delete(storage, paths)

    def removing(history: StoredHistory) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Storage, "delete", some)
            remove(history)

    with monkeypatch.context() as patch:
        if isinstance(step, int):
            patch.setattr(StoredHistory, "remove_forgotten", removing)
        else:
            patch.setattr(*places[step], interrupted)
        with pytest.raises(KeyboardInterrupt):
            sql.execute(PURGE)
    assert remains(place)
    assert ids(place.connect()) == EXPECTED
    sql.execute(PURGE)
    assert remains(place) == []
    assert ids(sql) == EXPECTED


def test_rows_that_others_commit_meanwhile_go_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    sql, other = fill(place), place.connect()
    forget, done = IcebergErasure.forget, []

    def late(each: IcebergErasure, *arguments: Any) -> Any:
        if not done:
            done.append(True)
            other.execute(f"INSERT INTO t VALUES (700, '{SECRET}', 0), (701, 'x', 0)")
        return forget(each, *arguments)

    monkeypatch.setattr(IcebergErasure, "forget", late)
    sql.execute(PURGE)
    assert remains(place) == []
    assert ids(sql) == [*EXPECTED, 701]


def test_who_began_before_gets_a_conflict_or_goes_behind(place: Place) -> None:
    sql = fill(place)
    slow = place.connect(autocommit=False)
    assert slow.execute("SELECT count(*) FROM t").fetchone() == (61,)
    slow.execute("INSERT INTO t VALUES (600, 'y', 0)")
    sql.execute(PURGE)
    slow.commit()
    assert ids(sql) == [*EXPECTED, 600]
    assert remains(place) == []
