"""OPTIMIZE, RESTORE and VACUUM of Iceberg tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from lakedbapi.errors import ConflictError, NotSupportedError, ProgrammingError
from lakedbapi.formats.iceberg.sources import CatalogSource
from tests.formats.iceberg.test_write_lineage import lineage
from tests.formats.iceberg.writing import Lake, rows, values


def worn(place: Lake, lake: lakedbapi.Connection) -> list[tuple[object, ...]]:
    """A partitioned table of many files, some with deletes."""
    place.create(lake)
    lake.execute("ALTER TABLE t SET PARTITIONED BY (truncate(1, s))")
    for i in range(3):
        lake.execute(f"INSERT INTO t SELECT {10 * i} + i, if(i % 2 = 0, 'x', 'y') || i FROM range(10) r(i)")
    lake.execute("DELETE FROM t WHERE a IN (3, 14)")
    lake.execute("UPDATE t SET s = 'x!' WHERE a = 20")
    return rows(lake)


def test_compaction(place: Lake, lake: lakedbapi.Connection) -> None:
    before = worn(place, lake)
    known = lineage(place) if place.version == 3 else {}
    read_at = place.snapshots()[-1].sequence_number
    lake.execute("OPTIMIZE t")
    assert rows(lake) == before
    assert place.summary()["operation"] == "replace"
    assert place.files(1) == []
    assert sorted(file["partition"][0] for file in place.files(0)) == ["x", "y"]
    assert {e["sequence_number"] for e in place.entries() if e["status"] == 1} == {read_at}
    seen = place.table().scan().to_arrow().to_pylist()
    assert sorted(((row["a"], row["s"]) for row in seen), key=str) == before
    if place.version == 3:
        assert lineage(place) == known
    count = len(place.snapshots())
    lake.execute("OPTIMIZE t")
    assert len(place.snapshots()) == count


def test_an_append_beside_a_compaction(place: Lake, lake: lakedbapi.Connection) -> None:
    """And a DELETE that others' compaction hit fails, since its rows are elsewhere."""
    before = worn(place, lake)
    first, second = place.connect(autocommit=False), place.connect(autocommit=False)
    first.execute("INSERT INTO t VALUES (100, 'z')")
    second.execute("DELETE FROM t WHERE a = 1")
    lake.execute("OPTIMIZE t")
    first.commit()
    with pytest.raises(ConflictError):
        second.commit()
    assert len(rows(lake)) == len(before) + 1


def test_restoring(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake)
    lake.execute("INSERT INTO t SELECT i, 's' FROM range(5) r(i)")
    before, id = rows(lake), place.snapshots()[-1].snapshot_id
    lake.execute("DELETE FROM t WHERE a = 1")
    lake.execute("UPDATE t SET s = 'new' WHERE a = 2")
    lake.execute(f"RESTORE TABLE t TO VERSION AS OF {id}")
    assert rows(lake) == before
    assert place.table().scan().to_arrow().num_rows == 5


def test_vacuum(place: Lake, lake: lakedbapi.Connection) -> None:
    before = worn(place, lake)
    ids = [snapshot.snapshot_id for snapshot in place.snapshots()]
    table = place.table()
    table.manage_snapshots().create_tag(ids[1], "kept").commit()
    lake.execute("OPTIMIZE t")
    there = {path for path in place.root.rglob("*") if path.suffix in (".parquet", ".avro", ".puffin")}
    planned = [row[0] for row in lake.execute("VACUUM t RETAIN 0 HOURS DRY RUN").fetchall()]
    assert {path for path in place.root.rglob("*") if path in there} == there
    removed = [row[0] for row in lake.execute("VACUUM t RETAIN 0 HOURS").fetchall()]
    assert sorted(planned) == sorted(removed)
    assert removed
    assert not any(Path(path).exists() for path in removed)
    assert [s.snapshot_id for s in place.snapshots()] == [ids[1], place.snapshots()[-1].snapshot_id]
    assert rows(lake) == before
    assert len(rows(lake, f"SELECT * FROM t AT (VERSION => {ids[1]})")) == 20
    with pytest.raises(ProgrammingError):
        lake.execute(f"SELECT * FROM t AT (VERSION => {ids[0]})").fetchall()
    lake.execute("ALTER TABLE t SET ('gc.enabled' = 'false')")
    with pytest.raises(NotSupportedError, match=r"gc\.enabled"):
        lake.execute("VACUUM t")


def test_a_commit_while_snapshots_expire(
    place: Lake, lake: lakedbapi.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are chosen anew."""
    place.create(lake)
    for i in range(2):
        lake.execute(f"INSERT INTO t VALUES ({i}, 'x')")
    other, commit = place.connect(), CatalogSource.commit

    def commit_behind_another(*arguments: Any, **named: Any) -> Any:
        monkeypatch.undo()
        other.execute("INSERT INTO t VALUES (2, 'y')")
        return commit(*arguments, **named)

    monkeypatch.setattr(CatalogSource, "commit", commit_behind_another)
    lake.execute("VACUUM t RETAIN 0 HOURS")
    assert len(place.snapshots()) == 2
    assert values(lake, "SELECT a FROM t") == [0, 1, 2]


def test_young_files_that_no_snapshot_has_stay(place: Lake, lake: lakedbapi.Connection) -> None:
    """They may belong to a transaction under way."""
    place.create(lake)
    lake.execute("INSERT INTO t VALUES (1, 'x')")
    folder = Path(place.files(0)[0]["file_path"].removeprefix("file://")).parent
    young, old = folder / "young.parquet", folder / "old.parquet"
    for path in (young, old):
        path.write_bytes(b"PAR1")
    os.utime(old, (1_700_000_000, 1_700_000_000))
    removed = [row[0] for row in lake.execute("VACUUM t RETAIN 0 HOURS").fetchall()]
    assert removed == [str(old)]
    assert young.exists()
    assert values(lake, "SELECT a FROM t") == [1]


def age(place: Lake) -> None:
    """Every file is older than any that could belong to a transaction under way."""
    for path in place.root.rglob("*"):
        if path.is_file():
            os.utime(path, (1_700_000_000, 1_700_000_000))


@pytest.mark.parametrize("shared", ["elsewhere", "data of the other", "location"])
def test_tables_that_share_a_directory_keep_each_others_files(
    place: Lake, lake: lakedbapi.Connection, shared: str
) -> None:
    folder = f"file://{place.root}/warehouse/shared"
    given = {"elsewhere": {"write.data.path": folder, "write.metadata.path": folder}, "location": {"location": folder}}
    for name in "tu":
        properties = given.get(shared, {})
        if shared == "data of the other" and name == "u":
            properties = {"write.data.path": f"{place.table().metadata.location}/data"}
        place.create(lake, name, **properties)
        lake.execute(f"INSERT INTO {name} VALUES (1, '{name}'), (2, '{name}')")
        lake.execute(f"DELETE FROM {name} WHERE a = 2")
    age(place)
    for statement in (
        "VACUUM {t} RETAIN 0 HOURS",
        "CALL remove_orphan_files(table => '{t}', cleanup_all => true)",
        "PURGE FROM {t} WHERE a = 99",
    ):
        for name in "tu":
            lake.execute(statement.format(t=name))
            assert [rows(lake, f"SELECT * FROM {each}") for each in "tu"] == [[(1, "t")], [(1, "u")]]


def test_a_tag_on_a_snapshot_that_is_about_to_expire(
    place: Lake, lake: lakedbapi.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot stays: it is chosen anew what goes."""
    place.create(lake)
    for i in range(3):
        lake.execute(f"INSERT INTO t VALUES ({i}, 'x')")
    first = place.snapshots()[0].snapshot_id
    other, commit = place.connect(), CatalogSource.commit

    def commit_behind_a_tag(*arguments: Any, **named: Any) -> Any:
        monkeypatch.undo()
        other.execute(f"ALTER TABLE t CREATE TAG audited AS OF VERSION {first}")
        return commit(*arguments, **named)

    monkeypatch.setattr(CatalogSource, "commit", commit_behind_a_tag)
    lake.execute("VACUUM t RETAIN 0 HOURS")
    assert rows(lake, "SELECT * FROM t FOR VERSION AS OF 'audited'") == [(0, "x")]
    assert len(place.snapshots()) == 2


def test_vacuum_tells_of_no_file_that_went_before(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake)
    for i in range(4):
        lake.execute(f"INSERT INTO t VALUES ({i}, 'x')")
    lake.execute("PURGE FROM t WHERE a = 1")
    lake.execute("DELETE FROM t WHERE a = 2")
    for _ in range(2):
        lake.execute("OPTIMIZE t")
        planned = [row[0] for row in lake.execute("VACUUM t RETAIN 0 HOURS DRY RUN").fetchall()]
        assert [path for path in planned if not Path(path).exists()] == []
        assert [row[0] for row in lake.execute("VACUUM t RETAIN 0 HOURS").fetchall()] == planned
        lake.execute("DELETE FROM t WHERE a = 3")
    assert values(lake, "SELECT a FROM t") == [0]
