"""Branches and tags by statement: as Spark spells them, kept by expiry, read by others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy import create_engine, text

import lakedbapi
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.iceberg.sources import CatalogSource
from tests.formats.iceberg.writing import Lake, values

DAY = 86_400_000


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Lake]:
    place = Lake(tmp_path)
    yield place
    place.close()


@pytest.fixture
def lake(place: Lake) -> lakedbapi.Connection:
    """A table of two snapshots, of one row and of two."""
    connection = place.connect()
    place.create(connection)
    connection.execute("INSERT INTO t VALUES (1, 'x')")
    connection.execute("INSERT INTO t VALUES (2, 'y')")
    return connection


def refs(place: Lake) -> dict[str, Any]:
    return {name: ref for name, ref in place.table().metadata.refs.items() if name != "main"}


def ids(place: Lake) -> list[int]:
    return [snapshot.snapshot_id for snapshot in place.snapshots()]


def test_a_tag_is_read_after_what_followed(place: Lake, lake: lakedbapi.Connection) -> None:
    first, second = ids(place)
    lake.execute("ALTER TABLE t CREATE TAG now")
    lake.execute(f"ALTER TABLE main.t CREATE TAG before AS OF VERSION {first} RETAIN 7 DAYS")
    lake.execute("DELETE FROM t")
    assert values(lake, "SELECT a FROM t FOR VERSION AS OF 'now'") == [1, 2]
    assert values(lake, "SELECT a FROM t FOR VERSION AS OF 'before'") == [1]
    assert place.table().scan(snapshot_id=second).to_arrow().num_rows == 2
    found = refs(place)
    assert {(name, ref.snapshot_id, ref.snapshot_ref_type.value) for name, ref in found.items()} == {
        ("now", second, "tag"),
        ("before", first, "tag"),
    }
    assert (found["now"].max_ref_age_ms, found["before"].max_ref_age_ms) == (None, 7 * DAY)
    assert len(lake.execute("SELECT * FROM refs('t')").fetchall()) == 3


def test_the_version_may_be_a_parameter(place: Lake, lake: lakedbapi.Connection) -> None:
    first = ids(place)[0]
    lake.execute("ALTER TABLE t CREATE TAG v AS OF VERSION ?", [first])
    assert refs(place)["v"].snapshot_id == first
    with pytest.raises(ProgrammingError, match="no version"):
        lake.execute("ALTER TABLE t CREATE TAG w AS OF VERSION ?", ["soon"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", (None, None, None)),
        ("RETAIN 2 HOURS", (7_200_000, None, None)),
        ("WITH SNAPSHOT RETENTION 3 SNAPSHOTS", (None, 3, None)),
        ("WITH SNAPSHOT RETENTION 5 DAYS", (None, None, 5 * DAY)),
        ("RETAIN 30 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 90 MINUTES", (30 * DAY, 2, 90 * 60_000)),
    ],
)
def test_retention_of_branches(
    place: Lake, lake: lakedbapi.Connection, words: str, expected: tuple[int | None, ...]
) -> None:
    lake.execute(f"ALTER TABLE t CREATE BRANCH audit {words}")
    found = refs(place)["audit"]
    assert (found.max_ref_age_ms, found.min_snapshots_to_keep, found.max_snapshot_age_ms) == expected


def test_commits_leave_the_retention_of_main_alone(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute("ALTER TABLE t REPLACE BRANCH main WITH SNAPSHOT RETENTION 4 SNAPSHOTS 2 DAYS")
    lake.execute("DELETE FROM t WHERE a = 1")
    main = place.table().metadata.refs["main"]
    assert (main.snapshot_id, main.min_snapshots_to_keep, main.max_snapshot_age_ms) == (ids(place)[-1], 4, 2 * DAY)


def test_what_is_there_already(place: Lake, lake: lakedbapi.Connection) -> None:
    first, second = ids(place)
    lake.execute("ALTER TABLE t CREATE BRANCH b")
    with pytest.raises(ProgrammingError, match="exists already"):
        lake.execute("ALTER TABLE t CREATE BRANCH b")
    with pytest.raises(ProgrammingError, match="is a branch, not a tag"):
        lake.execute("ALTER TABLE t CREATE OR REPLACE TAG b")
    lake.execute(f"ALTER TABLE t CREATE BRANCH IF NOT EXISTS b AS OF VERSION {first}")
    assert refs(place)["b"].snapshot_id == second
    lake.execute(f"ALTER TABLE t REPLACE BRANCH b AS OF VERSION {first} RETAIN 1 DAY")
    assert (refs(place)["b"].snapshot_id, refs(place)["b"].max_ref_age_ms) == (first, DAY)
    lake.execute("ALTER TABLE t CREATE OR REPLACE TAG v")
    lake.execute(f"ALTER TABLE t CREATE OR REPLACE TAG v AS OF VERSION {first}")
    assert refs(place)["v"].snapshot_id == first
    lake.execute("ALTER TABLE t DROP TAG v")
    lake.execute("ALTER TABLE t DROP TAG IF EXISTS v")
    lake.execute("ALTER TABLE t DROP BRANCH b")
    assert refs(place) == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DROP TAG v", "no tag 'v'; it has: main"),
        ("REPLACE TAG v", "does not exist"),
        ("DROP BRANCH main", "the table itself"),
        ("CREATE TAG v AS OF VERSION 17", "no snapshot 17"),
        ("CREATE TAG v RETAIN 0 DAYS", "above 0"),
        ("CREATE TAG v RETAIN 2147483648 DAYS", "below 2147483648"),
        ("CREATE TAG v RETAIN 3 WEEKS", "DAYS, HOURS or MINUTES"),
        ("CREATE TAG v WITH SNAPSHOT RETENTION 2 SNAPSHOTS", "should end here"),
        ("CREATE OR REPLACE BRANCH main RETAIN 3 DAYS", "never expires"),
        ("CREATE OR REPLACE", "expected BRANCH or TAG"),
        ("CREATE BRANCH", "the name of a branch"),
    ],
)
def test_what_cannot_be(place: Lake, lake: lakedbapi.Connection, change: str, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        lake.execute(f"ALTER TABLE t {change}")
    assert refs(place) == {}


def test_columns_may_be_called_so(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute("ALTER TABLE t ADD COLUMN branch VARCHAR")
    lake.execute("ALTER TABLE t ADD COLUMN tag VARCHAR")
    lake.execute("ALTER TABLE t DROP branch, DROP tag CASCADE")
    assert len(lake.execute("SELECT * FROM t").description or ()) == 2


def test_a_table_without_a_snapshot(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE e (i INTEGER)")
    with pytest.raises(ProgrammingError, match="insert rows first"):
        lake.execute("ALTER TABLE e CREATE BRANCH b")


def test_fast_forward(place: Lake, lake: lakedbapi.Connection) -> None:
    """Of `main` to what another program wrote to a branch."""
    _, second = ids(place)
    lake.execute("ALTER TABLE t CREATE BRANCH audit")
    table = place.table()
    table.append(table.scan().to_arrow().slice(0, 1), branch="audit")
    third = ids(place)[-1]
    assert values(lake, "SELECT a FROM t") == [1, 2]
    assert len(values(lake, "SELECT a FROM t FOR VERSION AS OF 'audit'")) == 3
    done = lake.execute("CALL fast_forward('t', 'main', 'audit')")
    assert [column[0] for column in done.description or ()] == ["branch_updated", "previous_ref", "updated_ref"]
    assert done.fetchall() == [("main", second, third)]
    assert len(values(lake, "SELECT a FROM t")) == 3
    assert lake.execute("CALL system.fast_forward(table => 'main.t', branch => 'main', to => 'audit')").fetchall() == [
        ("main", third, third)
    ]
    lake.execute(f"ALTER TABLE t REPLACE BRANCH audit AS OF VERSION {second} RETAIN 9 DAYS")
    lake.execute("DELETE FROM t WHERE a = 2")
    lake.execute("CALL fast_forward('t', 'audit', 'main')")
    assert (refs(place)["audit"].snapshot_id, refs(place)["audit"].max_ref_age_ms) == (ids(place)[-1], 9 * DAY)
    assert lake.execute("CALL fast_forward('t', 'new', 'main')").fetchall() == [("new", None, ids(place)[-1])]


def test_fast_forward_loses_no_snapshots(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute("ALTER TABLE t CREATE BRANCH audit")
    lake.execute("INSERT INTO t VALUES (3, 'z')")
    with pytest.raises(ProgrammingError, match="cannot be fast-forwarded"):
        lake.execute("CALL fast_forward('t', 'main', 'audit')")
    with pytest.raises(ProgrammingError, match="no branch or tag 'nothing'"):
        lake.execute("CALL fast_forward('t', 'main', 'nothing')")
    assert values(lake, "SELECT a FROM t") == [1, 2, 3]


def test_beside_others(place: Lake, lake: lakedbapi.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that comes first is looked at, not written over."""
    first, second = ids(place)
    commit, tried = CatalogSource.commit, []

    def late(source: CatalogSource, *arguments: Any, **options: Any) -> Any:
        if not tried:
            tried.append(arguments)
            place.table().manage_snapshots().create_tag(first, "v").commit()
            raise CommitFailedException("somebody was faster")
        return commit(source, *arguments, **options)

    monkeypatch.setattr(CatalogSource, "commit", late)
    with pytest.raises(ProgrammingError, match="exists already"):
        lake.execute(f"ALTER TABLE t CREATE TAG v AS OF VERSION {second}")
    assert refs(place)["v"].snapshot_id == first


def test_in_a_transaction(place: Lake, lake: lakedbapi.Connection) -> None:
    """They are commits of their own."""
    with place.connect(autocommit=False) as other:
        other.execute("ALTER TABLE t CREATE TAG v")
        other.rollback()
        assert "v" in refs(place)
        other.execute("INSERT INTO t VALUES (3, 'z')")
        with pytest.raises(ProgrammingError, match="CREATE TAG commits by itself"):
            other.execute("ALTER TABLE t CREATE TAG w")
        other.rollback()
    with place.connect(read_only=True) as other, pytest.raises(ProgrammingError, match="only reads"):
        other.execute("ALTER TABLE t CREATE TAG w")


def test_through_sqlalchemy(place: Lake, lake: lakedbapi.Connection) -> None:
    engine = create_engine(f"iceberg+sqlite:///{place.root}/catalog.db?warehouse=file://{place.root}/warehouse")
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE t CREATE TAG v AS OF VERSION :id"), {"id": ids(place)[0]})
        moved = connection.execute(text("CALL fast_forward('t', 'audit', 'main')")).one()
        assert moved.updated_ref == ids(place)[-1]
    engine.dispose()
    assert sorted(refs(place)) == ["audit", "v"]


def test_formats_without_them(tmp_path: Path) -> None:
    for name in ("shop", f"delta:///{tmp_path}/delta"):
        with lakedbapi.connect(name if ":" in name else str(tmp_path / name), autocommit=True) as other:
            other.execute("CREATE TABLE t (i INTEGER)")
            for change in ("CREATE BRANCH b", "DROP TAG v"):
                with pytest.raises(NotSupportedError, match=r"no branches and tags.*DESCRIBE HISTORY"):
                    other.execute(f"ALTER TABLE t {change}")
            with pytest.raises(NotSupportedError, match="no branches and tags"):
                other.execute("CALL fast_forward('t', 'main', 'b')")


def test_vacuum_keeps_what_branches_and_tags_keep(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute("INSERT INTO t VALUES (3, 'z')")
    lake.execute("INSERT INTO t VALUES (4, 'z')")
    first, second, third, last = ids(place)
    lake.execute(f"ALTER TABLE t CREATE TAG kept AS OF VERSION {first}")
    lake.execute("ALTER TABLE t REPLACE BRANCH main WITH SNAPSHOT RETENTION 2 SNAPSHOTS")
    lake.execute("VACUUM t RETAIN 0 HOURS")
    assert ids(place) == [first, third, last]
    assert second not in ids(place)
    assert values(lake, "SELECT a FROM t FOR VERSION AS OF 'kept'") == [1]


def test_retention_for_ever(place: Lake, lake: lakedbapi.Connection) -> None:
    """Java's default is the largest number of milliseconds that there is."""
    longest = (1 << 63) - 1
    (first, _) = ids(place)
    with place.table().manage_snapshots() as manage:
        manage.create_tag(first, "kept", max_ref_age_ms=longest)
        manage.create_branch(first, "side", max_ref_age_ms=longest, max_snapshot_age_ms=longest)
    lake.execute("VACUUM t RETAIN 0 HOURS")
    assert set(refs(place)) == {"kept", "side"}
    assert first in ids(place)
