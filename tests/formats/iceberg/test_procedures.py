"""CALL of maintenance, in Spark's words: expiry, orphans, manifests and delete files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from lakedbapi.errors import NotSupportedError, OperationalError, ProgrammingError
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.storage.filesystem import Storage
from tests.formats.iceberg.building import Table
from tests.formats.iceberg.columns import ID, KEY
from tests.formats.iceberg.test_write_foreign import Place
from tests.formats.iceberg.test_write_lineage import lineage
from tests.formats.iceberg.writing import rows, values


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.close()


def filled(place: Place, commits: int = 4, **properties: str) -> lakedbapi.Connection:
    lake = place.connect()
    place.create(lake, **properties)
    for number in range(commits):
        lake.execute(f"INSERT INTO t VALUES ({number}, 's{number}')")
    return lake


def ids(place: Place) -> list[int]:
    return [snapshot.snapshot_id for snapshot in place.snapshots()]


def backdate(place: Place, lake: lakedbapi.Connection, name: str = "t") -> None:
    """Rewrites history: each snapshot but the last is a day older than the next one."""
    table = place.table(name)
    metadata = table.metadata
    count = len(metadata.snapshots)
    now = metadata.snapshots[-1].timestamp_ms
    aged = [
        s.model_copy(update={"timestamp_ms": now - (count - 1 - number) * 86_400_000})
        for number, s in enumerate(metadata.snapshots)
    ]
    changed = metadata.model_copy(update={"snapshots": aged})
    Path(table.metadata_location.removeprefix("file://")).write_text(changed.model_dump_json())


def is_there(path: str) -> bool:
    return Path(path.removeprefix("file://")).exists()


# Expiry


def test_expiring_by_age(place: Place) -> None:
    lake = filled(place)
    first, second, third, last = ids(place)
    lists = [snapshot.manifest_list for snapshot in place.snapshots()]
    backdate(place, lake)
    planned = "CALL expire_snapshots(table => 't', older_than => now() - INTERVAL 36 HOURS, dry_run => true)"
    with place.connect() as other:
        assert [row[0] for row in other.execute(planned).fetchall()] == [first, second]
        assert ids(place) == [first, second, third, last]
        done = other.execute("CALL lake.system.expire_snapshots('main.t', now() - INTERVAL 36 HOURS)")
        assert [row[0] for row in done.fetchall()] == [first, second]
        assert ids(place) == [third, last]
        assert [is_there(path) for path in lists] == [False, False, True, True]
        assert values(other, "SELECT a FROM t") == [0, 1, 2, 3]
        assert len(rows(other, f"SELECT * FROM t FOR VERSION AS OF {third}")) == 3
        assert place.table().scan().to_arrow().num_rows == 4


def test_what_branches_tags_and_properties_keep(place: Place) -> None:
    lake = filled(place, 6)
    every = ids(place)
    lake.execute(f"ALTER TABLE t CREATE TAG kept AS OF VERSION {every[0]}")
    lake.execute(f"ALTER TABLE t CREATE TAG over AS OF VERSION {every[1]} RETAIN 1 DAYS")
    lake.execute(f"ALTER TABLE t CREATE BRANCH few AS OF VERSION {every[2]} WITH SNAPSHOT RETENTION 2 SNAPSHOTS")
    lake.execute(f"ALTER TABLE t CREATE BRANCH old AS OF VERSION {every[3]} WITH SNAPSHOT RETENTION 1 SNAPSHOTS 1 DAYS")
    backdate(place, lake)
    with place.connect() as other:
        gone = other.execute("CALL expire_snapshots(table => 't', older_than => now())").fetchall()
    # `over` lived for its day, but its snapshot is one of the two that `few` keeps.
    assert [row[0] for row in gone] == [every[4]]
    assert set(place.table().metadata.refs) == {"main", "kept", "few", "old"}
    lake.execute("ALTER TABLE t SET ('history.expire.min-snapshots-to-keep' = '3')")
    lake.execute("INSERT INTO t VALUES (9, 'z')")
    lake.execute("INSERT INTO t VALUES (10, 'z')")
    lake.execute("ALTER TABLE t DROP BRANCH few")
    lake.execute("ALTER TABLE t DROP BRANCH old")
    lake.execute("ALTER TABLE t DROP TAG kept")
    newest = ids(place)[-3:]
    lake.execute("CALL expire_snapshots(table => 't', older_than => now())")
    assert ids(place) == newest
    lake.execute("CALL expire_snapshots(table => 't', older_than => now(), retain_last => 2)")
    assert ids(place) == newest[1:]


def test_expiring_chosen_snapshots(place: Place) -> None:
    lake = filled(place)
    lake.execute("INSERT INTO t VALUES (9, 'x')")
    first, second, third, other, last = ids(place)
    lake.execute(f"ALTER TABLE t CREATE TAG v AS OF VERSION {first}")
    lake.execute(f"CALL ducklake_expire_snapshots('lake', 't', versions => [{second}, {third}])")
    lake.execute(f"CALL expire_snapshots(table => 't', snapshot_ids => [{other}])")
    assert ids(place) == [first, last]
    for wrong, message in ((first, "is what v names"), (last, "is what main names"), (17, "no snapshot 17")):
        with pytest.raises(ProgrammingError, match=message):
            lake.execute(f"CALL expire_snapshots(table => 't', versions => [{wrong}])")
    assert ids(place) == [first, last]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("table => 't', versions => [1], retain_last => 2", "leave older_than and retain_last out"),
        ("table => 't', versions => [1], snapshot_ids => [2]", "versions and snapshot_ids are the same: give one"),
        ("table => 't', retain_last => 0", "the newest snapshot always stays"),
        ("table => 'x'", "x does not exist"),
        ("table => 't', age => 3", "no argument 'age'"),
        ("older_than => now()", "needs the catalog's name as its first argument, or table => 't'"),
        ("'lake', retain_last => 2", "give table => 't'"),
    ],
)
def test_wrong_arguments(place: Place, arguments: str, message: str) -> None:
    lake = filled(place, 1)
    with pytest.raises(ProgrammingError, match=message):
        lake.execute(f"CALL expire_snapshots({arguments})")
    assert len(ids(place)) == 1


def test_commits_of_others_meanwhile(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What expires is told anew from their state."""
    lake = filled(place, 3)
    writer = place.connect()
    commit = CatalogSource.commit
    raced: list[int] = []

    def late(*arguments: Any, **more: Any) -> Any:
        if not raced:
            raced.append(1)
            writer.execute("INSERT INTO t VALUES (3, 's')")
        return commit(*arguments, **more)

    monkeypatch.setattr(CatalogSource, "commit", late)
    before = ids(place)
    gone = values(lake, "CALL expire_snapshots(table => 't', older_than => now())")
    assert gone == sorted(before)
    assert len(ids(place)) == 1
    assert values(lake, "SELECT a FROM t") == [0, 1, 2, 3]


# Orphans


def test_orphan_files(place: Place) -> None:
    """Of the one table; metadata files, which a catalog may point to, are none."""
    lake = filled(place, 1)
    place.create(lake, "t2")
    lake.execute("INSERT INTO t2 VALUES (1, 's')")
    folder = Path(place.files(0)[0]["file_path"].removeprefix("file://")).parent
    other = Path(place.files(0, "t2")[0]["file_path"].removeprefix("file://")).parent / "old.parquet"
    old, young = folder / "old.parquet", folder / "young.parquet"
    kept = [
        folder.parent / "metadata" / name for name in ("v1.metadata.json.gz", "v2.metadata.json", "version-hint.text")
    ]
    for path in (old, young, other, *kept):
        path.write_bytes(b"PAR1")
        if path != young:
            os.utime(path, (1_700_000_000, 1_700_000_000))
    call = "CALL remove_orphan_files(table => 't'"
    assert [row[0] for row in lake.execute(f"{call}, dry_run => true)").fetchall()] == [str(old)]
    assert old.exists()
    assert [row[0] for row in lake.execute(f"{call})").fetchall()] == [str(old)]
    assert [row[0] for row in lake.execute(f"{call}, cleanup_all => true)").fetchall()] == [str(young)]
    assert other.exists()
    assert all(path.exists() for path in kept)
    assert values(lake, "SELECT a FROM t") == [0]


def test_tables_that_share_files_lose_none(place: Place) -> None:
    lake = filled(place, 2)
    lake.execute("ALTER TABLE t SET ('gc.enabled' = 'false')")
    for call in ("expire_snapshots(table => 't', older_than => now())", "remove_orphan_files(table => 't')"):
        with pytest.raises(NotSupportedError, match="may be those of others"):
            lake.execute(f"CALL {call}")
    assert len(ids(place)) == 2


# Manifests


def numbers(place: Place) -> set[tuple[Any, ...]]:
    """Of each live file, with what entries inherit from their manifests."""
    return {
        (
            e["data_file"]["file_path"],
            e["snapshot_id"] or e["manifest"]["added_snapshot_id"],
            *(e[name] or e["manifest"]["sequence_number"] for name in ("sequence_number", "file_sequence_number")),
        )
        for e in place.entries()
    }


@pytest.mark.parametrize("version", [2, 3])
def test_rewriting_manifests(place: Place, version: int) -> None:
    """Entries keep their numbers and row ids, and files that are gone are told of no more."""
    place.version = version
    lake = filled(place)
    lake.execute("ALTER TABLE t SET PARTITIONED BY (s)")
    lake.execute("INSERT INTO t VALUES (4, 'a'), (5, 'b')")
    lake.execute("INSERT INTO t VALUES (6, 'a')")
    lake.execute("DELETE FROM t WHERE a = 1")
    before = numbers(place)
    known = lineage(place) if version == 3 else {}
    data = rows(lake)
    assert lake.execute("CALL rewrite_manifests(table => 't')").fetchall() == [(5, 2)]
    assert len(place.manifests()) == 2
    assert all(entry["status"] == 0 for entry in place.entries(deleted=True))
    assert numbers(place) == before
    assert rows(lake) == data
    assert place.summary()["operation"] == "replace"
    assert place.summary()["total-data-files"] == str(len(place.files(0)))
    assert place.table().scan().to_arrow().num_rows == len(data)
    if version == 3:
        assert lineage(place) == known
    count = len(ids(place))
    assert lake.execute("CALL lake.system.rewrite_manifests('t')").fetchall() == [(0, 0)]
    assert len(ids(place)) == count


# Delete files


@pytest.mark.parametrize("version", [2, 3])
def test_rewriting_position_deletes(place: Place, version: int) -> None:
    """Files about several data files become one for each, or vectors; those that reach nothing go."""
    made = Table(place.root, ID, KEY)
    first, second = made.data({"id": [1, 2, 3], "k": [*"abc"]}), made.data({"id": [4, 5, 6], "k": [*"def"]})
    third = made.data({"id": [7, 8], "k": [*"gh"]})
    made.commit(first, second, third)
    made.commit(made.positions({first: [0], second: [1]}))
    made.commit(made.positions({first: [1]}), made.positions({third: [0]}))
    made.commit(made.equality({"k": ["x"]}, [2]))
    made.commit(removed=[third], operation="delete")
    lake = place.adopt(made)
    if version == 3:
        lake.execute("ALTER TABLE t SET ('format-version' = '3')")
    before = rows(lake)
    removed, added = lake.execute("CALL rewrite_position_delete_files(table => 't')").fetchone() or ()
    assert (removed, added) == (3, 1 if version == 3 else 2)
    assert {file["referenced_data_file"] for file in place.files(1)} == {first.path, second.path}
    assert len(place.files(2)) == 1
    assert rows(lake) == before == [(3, "c"), (4, "d"), (6, "f")]
    assert rows(lake, "SELECT count(*) FROM t") == [(3,)]
    assert lake.execute("CALL rewrite_position_delete_files(table => 't')").fetchall() == [(0, 0)]


def test_rewriting_data_files_of_one_table(place: Place) -> None:
    lake = filled(place, 1)
    lake.execute("INSERT INTO t SELECT i, 'x' FROM range(10, 20) r(i)")
    lake.execute("DELETE FROM t WHERE a BETWEEN 10 AND 12")
    with pytest.raises(ProgrammingError, match="leave delete_threshold out"):
        lake.execute("CALL rewrite_data_files(table => 'main.t', delete_threshold => 0.1)")
    done = lake.execute("CALL rewrite_data_files(table => 'main.t')").fetchone()
    assert done is not None
    assert done[:4] == ("main", "t", 1, 2)
    assert place.files(1) == []
    lake.execute("INSERT INTO t VALUES (30, 'y')")
    assert lake.execute("CALL lake.system.rewrite_data_files('main.t')").fetchall()[0][2:4] == (1, 2)


def sizes(place: Place) -> list[int]:
    return sorted(file["record_count"] for file in place.files(0))


def test_rewriting_data_files_of_a_condition(place: Place) -> None:
    lake = filled(place, 1)
    lake.execute("ALTER TABLE t SET PARTITIONED BY (truncate(10, a))")
    for a in (100, 101, 200, 201):
        lake.execute(f"INSERT INTO t VALUES ({a}, 'x')")
    before = rows(lake)
    lake.execute("CALL rewrite_data_files(table => 'main.t')")
    for a in (102, 202):
        lake.execute(f"INSERT INTO t VALUES ({a}, 'x')")
    assert sizes(place)[-4:] == [1, 1, 2, 2]
    assert rows(lake, "CALL rewrite_data_files(table => 't', where => 'a >= 200')")[0][2:4] == (1, 2)
    assert sizes(place)[-3:] == [1, 2, 3]
    assert len(rows(lake)) == len(before) + 2
    for where, message in (
        ("b = 1", "no column b"),
        ("a IN (SELECT 1)", "compares no columns"),
        ("a =", "is 'a ='"),
    ):
        with pytest.raises(ProgrammingError, match=message):
            lake.execute(f"CALL rewrite_data_files(table => 't', where => '{where}')")


def test_options_of_rewriting_data_files(place: Place) -> None:
    place.version = 3  # Whose metadata tell how many rows of a file are deleted.
    lake = filled(place, 1)
    call = "CALL rewrite_data_files(table => 't', options => MAP {{{}}})"
    lake.execute("CALL rewrite_data_files(table => 't')")
    lake.execute("INSERT INTO t SELECT i, 'x' FROM range(10, 200) r(i)")
    before = rows(lake)
    assert rows(lake, call.format("'min-input-files': '3'"))[0][2:4] == (0, 0)
    assert rows(lake, call.format("'min-input-files': '2'"))[0][2:4] == (1, 2)
    assert rows(lake, call.format("'rewrite-all': 'false'"))[0][2:4] == (0, 0)
    assert rows(lake, call.format("'rewrite-all': 'true', 'min-input-files': '5'"))[0][2:4] == (1, 1)
    lake.execute("DELETE FROM t WHERE a = 19")
    assert rows(lake, call.format("'delete-file-threshold': '2'"))[0][2:4] == (0, 0)
    assert rows(lake, call.format("'delete-file-threshold': '1'"))[0][2:4] == (1, 1)
    assert rows(lake) == [row for row in before if row[0] != 19]
    assert place.files(1) == []


def test_the_size_of_rewritten_data_files(place: Place) -> None:
    lake = filled(place, 1)
    lake.execute("INSERT INTO t SELECT i, md5(i::VARCHAR) FROM range(300000) r(i)")
    before = rows(lake, "SELECT count(*), sum(a), min(s) FROM t")
    options = "MAP {'rewrite-all': 'true', 'target-file-size-bytes': '2000000'}"
    lake.execute(f"CALL rewrite_data_files(table => 't', options => {options})")
    files = [file["file_size_in_bytes"] for file in place.files(0)]
    assert len(files) > 2
    assert max(files) < 6_000_000
    assert rows(lake, "SELECT count(*), sum(a), min(s) FROM t") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "table => 't', options => MAP {'max-file-group-size-bytes': '1'}",
            "no option 'max-file-.*'; it has: target-f",
        ),
        ("table => 't', options => MAP {'min-input-files': 'x'}", "min-input-files is 'x', which is no whole number"),
        ("table => 't', options => MAP {'min-input-files': '0'}", "min-input-files is 0; give 1 or more"),
        ("table => 't', options => MAP {'rewrite-all': 'perhaps'}", "rewrite-all is 'perhaps'"),
        ("table => 't', options => 'rewrite-all'", "write MAP"),
        ("table => 't', strategy => 'sort'", "no argument 'strategy'; it has: .*where, options"),
        ("'lake', 't', where => 'a = 1'", "where is about one table"),
    ],
)
def test_options_that_rewriting_does_not_have(place: Place, arguments: str, message: str) -> None:
    lake = filled(place, 1)
    with pytest.raises(ProgrammingError, match=message):
        lake.execute(f"CALL rewrite_data_files({arguments})")


def test_a_lake_that_merges_in_steps_takes_no_options(tmp_path: Path) -> None:
    with lakedbapi.connect(tmp_path / "lake", autocommit=True) as lake:
        lake.execute("CREATE TABLE t AS SELECT 1 AS a")
        with pytest.raises(NotSupportedError, match="optimized without options"):
            lake.execute("CALL rewrite_data_files(table => 't', options => MAP {'rewrite-all': 'true'})")


# Older metadata


def test_older_metadata_files_go_behind_commits(place: Place) -> None:
    lake = filled(place, 1)
    folder = Path(str(place.table().metadata.location).removeprefix("file://")) / "metadata"
    properties = "'write.metadata.previous-versions-max' = '2', 'write.metadata.delete-after-commit.enabled' = 'true'"
    lake.execute(f"ALTER TABLE t SET ({properties})")
    for number in range(1, 6):
        lake.execute(f"INSERT INTO t VALUES ({number}, 's')")
    assert len(list(folder.glob("*.metadata.json"))) == 3
    assert values(lake, "SELECT a FROM t") == [*range(6)]
    lake.execute("ALTER TABLE t SET ('write.metadata.delete-after-commit.enabled' = 'false')")
    lake.execute("INSERT INTO t VALUES (6, 's')")
    assert len(list(folder.glob("*.metadata.json"))) == 5


def test_every_kind_of_commit_removes_older_metadata(place: Place) -> None:
    lake = filled(place, 3)
    folder = Path(str(place.table().metadata.location).removeprefix("file://")) / "metadata"
    properties = "'write.metadata.previous-versions-max' = '1', 'write.metadata.delete-after-commit.enabled' = 'true'"
    statements = (
        f"ALTER TABLE t SET ({properties})",
        "ALTER TABLE t ADD COLUMN b INTEGER",
        "ALTER TABLE t CREATE BRANCH few",
        "CALL rewrite_manifests(table => 't')",
        "CALL expire_snapshots(table => 't', older_than => now())",
        "DELETE FROM t WHERE a = 0",
    )
    for statement in statements:
        lake.execute(statement)
        assert len(list(folder.glob("*.metadata.json"))) == 2, statement
    assert values(lake, "SELECT a FROM t") == [1, 2]


def test_a_commit_stands_when_older_metadata_cannot_be_removed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(place, 1)
    properties = "'write.metadata.previous-versions-max' = '1', 'write.metadata.delete-after-commit.enabled' = 'true'"
    lake.execute(f"ALTER TABLE t SET ({properties})")

    def fail(*_: Any) -> None:
        raise OperationalError("no")

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "_remove", fail)
        lake.execute("INSERT INTO t VALUES (1, 's')")
        lake.execute("ALTER TABLE t CREATE TAG v")
    assert values(lake, "SELECT a FROM t FOR VERSION AS OF 'v'") == [0, 1]


# Other formats


@pytest.mark.parametrize("url", ["{0}/shop", "delta:{0}/shop"])
def test_the_same_calls_on_other_formats(tmp_path: Path, url: str) -> None:
    with lakedbapi.connect(url.format(tmp_path), autocommit=True) as other:
        for name in ("t", "t2"):
            other.execute(f"CREATE TABLE {name} (i INTEGER)")
            for start in (0, 100_000):
                other.execute(f"INSERT INTO {name} SELECT i FROM range({start}, {start} + 100_000) r(i)")
        calls: dict[str, Any] = {
            "rewrite_manifests(table => 't')": "no manifests",
            "rewrite_position_delete_files(table => 't')": "OPTIMIZE t",
            "expire_snapshots(table => 't', older_than => now())": "no snapshots of their own",
        }
        for call, message in calls.items():
            with pytest.raises(NotSupportedError, match=message):
                other.execute(f"CALL {call}")
        orphans = []
        for name in ("t", "t2"):
            file = Path(values(other, f"SELECT path FROM files('{name}')")[0])
            orphans.append(file.with_name("ducklake-01a22c66-a21a-7d32-9da9-dca82a1291ab.parquet"))
            orphans[-1].write_bytes(b"PAR1")
            os.utime(orphans[-1], (1_700_000_000, 1_700_000_000))
        assert other.execute("CALL remove_orphan_files(table => 't')").fetchall() == [(str(orphans[0]),)]
        assert [path.exists() for path in orphans] == [False, True]
        assert rows(other, "CALL rewrite_data_files(table => 't')")[0][:4] == ("main", "t", 1, 2)
        assert rows(other, "SELECT count(*), sum(i) FROM t") == [(200_000, sum(range(200_000)))]
