from __future__ import annotations

import pytest

from lakedbapi.errors import ProgrammingError
from tests.dml.conftest import Lake


@pytest.fixture
def feed(lake: Lake) -> Lake:
    """Snapshots: 1 creates, 2 inserts ids 1 to 3, 3 updates 1, 4 deletes 2 and inserts 4."""
    lake("CREATE TABLE t (id INTEGER, v VARCHAR)")
    lake.commit()
    lake("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    lake.commit()
    lake("UPDATE t SET v = 'A' WHERE id = 1")
    lake.commit()
    lake("DELETE FROM t WHERE id = 2")
    lake("INSERT INTO t VALUES (4, 'd')")
    lake.commit()
    return lake


def changes(lake: Lake, start: object, end: object) -> list[tuple[object, ...]]:
    return lake("SELECT * FROM table_changes('t', ?, ?) ORDER BY snapshot_id, rowid, change_type", start, end)


def test_inserts_updates_and_deletes_are_told_apart(feed: Lake) -> None:
    assert changes(feed, 3, 4) == [
        (3, 0, "update_postimage", 1, "A"),
        (3, 0, "update_preimage", 1, "a"),
        (4, 1, "delete", 2, "b"),
        (4, 3, "insert", 4, "d"),
    ]


def test_both_bounds_belong_to_the_range(feed: Lake) -> None:
    assert [change[0] for change in changes(feed, 2, 2)] == [2, 2, 2]
    assert changes(feed, 4, 3) == []


def test_bounds_can_be_times(feed: Lake) -> None:
    [(time,)] = feed("SELECT snapshot_time FROM snapshots() WHERE snapshot_id = 3")
    assert changes(feed, time, time) == changes(feed, 3, 3)
    assert changes(feed, "1999-01-01", "2999-01-01") == changes(feed, 0, 4)
    assert changes(feed, "2999-01-01", "2999-01-01") == []


def test_an_end_that_does_not_exist_is_an_error(feed: Lake) -> None:
    with pytest.raises(ProgrammingError, match="No snapshot found at version 99"):
        changes(feed, 1, 99)


def test_insertions_and_deletions_have_the_tables_columns(feed: Lake) -> None:
    assert feed("SELECT * FROM table_insertions('t', 3, 4) ORDER BY id") == [(1, "A"), (4, "d")]
    assert feed("SELECT * FROM lake.table_deletions('t', 3, 4) ORDER BY id") == [(1, "a"), (2, "b")]


def test_insertions_have_hidden_columns(feed: Lake) -> None:
    named = "SELECT snapshot_id, rowid, * FROM ducklake_table_insertions('lake', 'main', 't', 3, 4) ORDER BY id"
    assert feed(named) == [(3, 0, 1, "A"), (4, 3, 4, "d")]


def test_the_columns_are_those_of_the_end(feed: Lake) -> None:
    feed("ALTER TABLE t RENAME COLUMN v TO value")
    feed("ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7")
    feed.commit()
    rows = feed("SELECT id, value, more FROM table_changes('t', 2, 5) WHERE change_type = 'delete'")
    assert rows == [(2, "b", 7)]
    assert changes(feed, 2, 2)[0] == (2, 0, "insert", 1, "a")


def test_nothing_changed_gives_no_rows_but_columns(feed: Lake) -> None:
    feed("SELECT * FROM table_changes('t', 1, 1)")
    assert [column[0] for column in feed.cursor.description] == ["snapshot_id", "rowid", "change_type", "id", "v"]


def test_copied_rows_with_younger_columns_and_types_are_no_changes(lake: Lake) -> None:
    lake("CALL lake.set_option('data_inlining_row_limit', '0')")
    lake("CREATE TABLE t (id INTEGER, v VARCHAR)")
    lake("INSERT INTO t SELECT i, 'v' FROM range(5) r(i)")
    lake.commit()
    lake("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7")
    lake("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    lake("CALL lake.set_option('lake.write_mode', 'copy-on-write')")
    lake.commit()
    lake("DELETE FROM t WHERE id = 1")
    lake.commit()
    [(last,)] = lake("SELECT max(snapshot_id) FROM snapshots()")
    assert lake("SELECT count(*) FROM files('t') WHERE deleted_count = 0") == [(1,)]
    assert changes(lake, last, last) == [(last, 1, "delete", 1, "v", 7)]
