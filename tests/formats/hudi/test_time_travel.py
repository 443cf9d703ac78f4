"""Versions are instants of the timeline; a timestamp means the newest commit that was begun by then."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import lakedbapi
from lakedbapi.formats.hudi.timeline import Instant, Timeline, instant_at, time_of
from tests.formats.hudi import golden as g
from tests.formats.hudi.conftest import Connect

FARE_OF_A = "SELECT fare FROM t {} WHERE rider = 'rider-A'"


@pytest.fixture
def trips(golden: Callable[[str], Path], connect: Connect) -> lakedbapi.Connection:
    return connect(golden(g.TRIPS))


@pytest.mark.parametrize(
    ("clause", "fare"),
    [
        ("VERSION AS OF 20251220210108078", 19.1),
        ("FOR VERSION AS OF '20251220210108078'", 19.1),
        ("AT (VERSION => 20251220210123755)", 0.0),
        ("VERSION AS OF 20251220210123754", 19.1),
        ("TIMESTAMP AS OF '2025-12-20 21:01:08.078'", 19.1),
        ("TIMESTAMP AS OF '2025-12-20 21:01:23.754999'", 19.1),
        ("AT (TIMESTAMP => TIMESTAMPTZ '2025-12-20 22:01:23.755+01:00')", 0.0),
        ("FOR SYSTEM_TIME AS OF '2999-01-01'", 0.0),
        ("", 0.0),
    ],
)
def test_points_in_time(trips: lakedbapi.Connection, clause: str, fare: float) -> None:
    assert trips.execute(FARE_OF_A.format(clause)).fetchall() == [(fare,)]


@pytest.mark.parametrize(
    "clause",
    ["VERSION AS OF 20251220210108077", "TIMESTAMP AS OF '2025-12-20 21:01:08'", "VERSION AS OF 20200101000000"],
)
def test_before_the_first_commit_is_an_error(trips: lakedbapi.Connection, clause: str) -> None:
    """hudi-rs gives no rows."""
    with pytest.raises(
        lakedbapi.ProgrammingError, match=r"no commit at or before .*: its first one is 20251220210108078"
    ):
        trips.execute(f"SELECT * FROM t {clause}")


@pytest.mark.parametrize("version", [0, 7, 20251, 20251399000000000, 202512202101080781])
def test_a_number_that_is_no_instant_is_an_error(trips: lakedbapi.Connection, version: int) -> None:
    with pytest.raises(lakedbapi.ProgrammingError, match=f"{version} is no version of a Hudi table: give an instant"):
        trips.execute(f"SELECT * FROM t VERSION AS OF {version}")


def test_names_are_no_versions(trips: lakedbapi.Connection) -> None:
    with pytest.raises(lakedbapi.ProgrammingError, match="'main' is no version"):
        trips.execute("SELECT * FROM t VERSION AS OF 'main'")


def test_a_table_without_commits_has_no_past(golden: Callable[[str], Path], connect: Connect) -> None:
    connection = connect(golden(g.EMPTY))
    assert connection.execute("SELECT * FROM t").fetchall() == []
    assert connection.execute("SELECT * FROM history('t')").fetchall() == []
    with pytest.raises(lakedbapi.ProgrammingError, match=r"no commit at or before .*: it has none"):
        connection.execute("SELECT * FROM t TIMESTAMP AS OF now()")


def test_two_versions_in_one_query(trips: lakedbapi.Connection) -> None:
    changed = trips.execute(
        "SELECT now_.rider, now_.fare - then_.fare < 0 FROM t AS now_ "
        "JOIN t VERSION AS OF 20251220210108078 AS then_ USING (uuid) WHERE now_.fare <> then_.fare ORDER BY 1"
    ).fetchall()
    assert changed == [("rider-A", True), ("rider-G", True)]


def test_a_whole_connection_in_the_past(golden: Callable[[str], Path], connect: Connect) -> None:
    past = connect(golden(g.TRIPS), as_of=20251220210125441)
    assert past.execute("SELECT count(*) FROM t").fetchone() == (7,)


def test_history_tells_what_each_commit_did(trips: lakedbapi.Connection) -> None:
    rows = trips.execute("SELECT snapshot_id, snapshot_time, map_keys(changes)[1] FROM history('t')").fetchall()
    begun = datetime.datetime(2025, 12, 20, 21, 1, 8, 78000, tzinfo=datetime.timezone.utc)
    assert rows[0] == (20251220210108078, begun, "upsert")
    assert [operation for _, _, operation in rows[4:]] == ["delete_prepped", "compact", "upsert_prepped"]


def test_a_directory_has_no_history(trips: lakedbapi.Connection) -> None:
    with pytest.raises(lakedbapi.ProgrammingError, match=r"Hudi tables have versions of their own.*history\('table'\)"):
        trips.execute("SELECT * FROM snapshots()")


def test_a_transaction_keeps_the_version_that_it_first_read(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.COW)
    commit = table / ".hoodie" / "20240418173551906.commit"
    later = commit.rename(table / "later")
    connection = connect(table)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,)
    later.rename(commit)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,)
    connection.commit()
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (4,)


def test_a_commit_that_is_not_completed_is_not_read(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.COW)
    (table / ".hoodie" / "20240418173551906.commit").unlink()
    assert connect(table).execute("SELECT count(*) FROM t").fetchone() == (3,)


@pytest.mark.parametrize("later", [False, True], ids=["newest", "with a later one"])
def test_a_log_file_of_a_commit_that_is_not_completed_is_not_read(
    later: bool, golden: Callable[[str], Path], connect: Connect
) -> None:
    table = golden(g.MOR)
    (table / ".hoodie" / "20250117083136333.deltacommit").unlink()
    if later:
        commit = json.loads((table / ".hoodie" / "20250117083125837.deltacommit").read_text())
        commit["partitionToWriteStats"] = {}
        (table / ".hoodie" / "20250117083200000.deltacommit").write_text(json.dumps(commit))
    rows = connect(table).execute("SELECT id, isActive FROM t ORDER BY id").fetchall()
    assert rows == [(1, True), (2, False), (3, True)]


def test_commits_that_are_archived_count(golden: Callable[[str], Path], connect: Connect) -> None:
    """The timeline forgets old commits; their files stay, and tell themselves how many rows they have."""
    table = golden(g.MOR)
    commit = json.loads((table / ".hoodie" / "20250117083136333.deltacommit").read_text())
    commit["partitionToWriteStats"] = {}
    (table / ".hoodie" / "20250117083200000.deltacommit").write_text(json.dumps(commit))
    for path in table.glob(".hoodie/2025011708312*"):
        path.unlink()
    for path in table.glob(".hoodie/20250117083136333*"):
        path.unlink()
    connection = connect(table)
    rows = connection.execute("SELECT id, isActive FROM t ORDER BY id").fetchall()
    assert rows == [(1, False), (2, False), (3, True), (4, True)]
    counts = connection.execute("SELECT record_count FROM files('t') WHERE deleted_count = 0").fetchall()
    assert counts == [(1,)]
    with pytest.raises(lakedbapi.ProgrammingError, match="its first one is 20250117083200000"):
        connection.execute("SELECT * FROM t VERSION AS OF 20250117083136333")


def test_columns_are_those_of_the_version(golden: Callable[[str], Path], connect: Connect) -> None:
    """The second commit adds a column and widens another one; files of the first have neither."""
    table = golden(g.OVERWRITTEN)
    path = table / ".hoodie" / "20240707001302376.commit"
    commit = json.loads(path.read_text())
    schema = json.loads(commit["extraMetadata"]["schema"])
    schema["fields"] = [
        {**column, "type": ["null", "long"]} if column["name"] == "intField" else column for column in schema["fields"]
    ]
    schema["fields"].insert(1, {"name": "extra", "type": ["null", "string"], "default": None})
    commit["extraMetadata"]["schema"] = json.dumps(schema)
    path.write_text(json.dumps(commit))
    connection = connect(table)
    before, after = (
        connection.execute(f"SELECT * FROM t VERSION AS OF {version} ORDER BY id").fetch_arrow_table()
        for version in (20240707001301554, 20240707001302376)
    )
    assert before.column_names == [name for name in after.column_names if name != "extra"]
    assert after.column("extra").to_pylist() == [None] * 4
    assert (str(before.schema.field("intField").type), str(after.schema.field("intField").type)) == ("int32", "int64")
    assert before.column("intField").to_pylist() == after.column("intField").to_pylist()[:3]


def test_instants_without_milliseconds_end_their_second() -> None:
    timeline = Timeline.of(["20240101000000.commit", "20240101000000500.commit", "20240101000001.deltacommit.inflight"])
    assert [instant.begun for instant in timeline.commits] == ["20240101000000500", "20240101000000"]
    assert timeline.at("20240101000000998") == Instant("20240101000000500", "20240101000000500", "commit")


def test_both_layouts_of_the_timeline() -> None:
    names = ["20240101000000000_20240101000005000.replacecommit", "20240101000001000.commit", "hoodie.properties"]
    assert Timeline.of([*names, "20240101000002000.clean", "20240101000003000_20240101000004000.rollback"]).commits == [
        Instant("20240101000000000", "20240101000005000", "replacecommit"),
        Instant("20240101000001000", "20240101000001000", "commit"),
    ]


@pytest.mark.parametrize("is_local", [False, True])
def test_times_and_instants_match(is_local: bool) -> None:
    time = time_of("20240229123456789", is_local=is_local)
    assert instant_at(time + datetime.timedelta(microseconds=999), is_local=is_local) == "20240229123456789"
