"""RETURNING on every kind of table: the ids of rows that have one, and no other column that rows get later."""

from __future__ import annotations

import pytest

import lakedbapi
from tests.formats.lake import Lake


@pytest.mark.parametrize("column", ["t.snapshot_id", "snapshot_id + 1", "filename", "file_row_number"])
def test_returning_refuses_what_rows_get_later(lake: Lake, column: str) -> None:
    lake.create("CREATE TABLE t (id INTEGER)")
    lake("INSERT INTO t VALUES (1)")
    lake.commit()
    for change in (
        "INSERT INTO t VALUES (2)",
        "UPDATE t SET id = 3",
        "DELETE FROM t",
        "MERGE INTO t USING (SELECT 1 AS k) s ON id = k WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(lakedbapi.NotSupportedError, match="RETURNING cannot show"):
            lake(f"{change} RETURNING id, {column}")
    assert lake("SELECT id FROM t") == [(1,)]


def with_row_ids(lake: Lake) -> None:
    """A table with the rows 1 to 4, in two files; skips the test where rows have no ids."""
    tracked = {"delta.enableRowTracking": "true"} if lake.kind.format == "delta" else {}
    lake.create("CREATE TABLE t (id INTEGER, v VARCHAR)", **tracked)
    if lake.kind.name == "iceberg-v2":
        with pytest.raises(lakedbapi.NotSupportedError, match="no row ids that stay"):
            lake("UPDATE t SET v = 'x' RETURNING rowid")
        pytest.skip("tables of this kind have no row ids")
    for rows in ("(1, 'a'), (2, 'b')", "(3, 'c'), (4, 'd')"):
        lake(f"INSERT INTO t VALUES {rows}")
        lake.commit()


def test_returning_gives_the_ids_of_rows_that_have_one(lake: Lake) -> None:
    with_row_ids(lake)
    ids = dict(lake("SELECT id, rowid FROM t"))
    assert len(set(ids.values()) - {None}) == 4
    assert lake("UPDATE t SET v = 'x' WHERE id > 2 RETURNING id, rowid + 0 AS r") == [(3, ids[3]), (4, ids[4])]
    assert lake("UPDATE t AS a SET v = 'y' WHERE rowid = ? RETURNING a.rowid, *", ids[3]) == [(ids[3], 3, "y")]
    assert [column[0] for column in lake.cursor.description or ()] == ["rowid", "id", "v"]
    assert lake("UPDATE t SET v = s.v FROM (SELECT 1 AS k, 'z' AS v) s WHERE id = k RETURNING t.rowid, s.*") == [
        (ids[1], 1, "z")
    ]
    merge = "MERGE INTO t USING (VALUES (2), (9)) s(k) ON id = k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT "
    assert lake.returned(f"{merge} VALUES (k, 'new') RETURNING merge_action, id, rowid") == (
        [("DELETE", 2, ids[2]), ("INSERT", 9, None)],
        2,
    )
    lake.commit()
    assert dict(lake("SELECT id, rowid FROM t WHERE id <> 9")) == {id: ids[id] for id in (1, 3, 4)}
    assert lake("DELETE FROM t USING (SELECT 4 AS k) s WHERE id = k RETURNING k, ROWID") == [(4, ids[4])]
    assert lake.returned("DELETE FROM t WHERE id IN (1, 3) RETURNING coalesce(rowid, -1), t") == (
        sorted([(ids[1], {"id": 1, "v": "z"}), (ids[3], {"id": 3, "v": "y"})], key=repr),
        2,
    )


def test_returning_gives_no_id_of_a_row_that_is_not_committed(lake: Lake) -> None:
    with_row_ids(lake)
    with pytest.raises(lakedbapi.NotSupportedError, match="RETURNING cannot show rowid: rows get it when"):
        lake("INSERT INTO t VALUES (5, 'e') RETURNING rowid")
    lake("INSERT INTO t VALUES (5, 'e')")
    assert lake("UPDATE t SET v = 'f' WHERE id = 5 RETURNING rowid, v") == [(None, "f")]
    assert lake("DELETE FROM t WHERE id = 5 RETURNING v, rowid") == [("f", None)]


def test_returning_shows_columns_that_are_called_as_hidden_ones(lake: Lake) -> None:
    lake.create("CREATE TABLE t (filename VARCHAR, id INTEGER)")
    assert lake("INSERT INTO t VALUES ('f', 1) RETURNING filename, t.filename") == [("f", "f")]
    source = "(SELECT 1 AS k, 7 AS rowid) s"
    assert lake(f"DELETE FROM t USING {source} WHERE id = k RETURNING rowid, s.rowid, filename") == [(7, 7, "f")]


def test_returning_names_the_columns_of_the_target_before_those_of_sources(lake: Lake) -> None:
    lake.create("CREATE TABLE t (id INTEGER, v VARCHAR)")
    merge = (
        "WITH s AS (SELECT 1 AS id, 'a' AS v, 5 AS w) MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT"
    )
    returned = "RETURNING id, v, s.id + w, merge_action"
    assert lake(f"{merge} (id, v) VALUES (7, s.v) {returned}") == [(7, "a", 6, "INSERT")]
    source = "(SELECT 7 AS id, 'b' AS v) s WHERE t.id = s.id"
    columns = "RETURNING id, V, s.v, upper(v) AS u, list_transform(['x'], lambda v: v) AS l, *"
    assert lake(f"UPDATE t SET v = 'c' FROM {source} {columns}") == [(7, "c", "b", "C", ["x"], 7, "c")]
    assert [column[0] for column in lake.cursor.description or ()] == ["id", "v", "v", "u", "l", "id", "v"]
    assert lake(f"DELETE FROM t USING {source} {columns}") == [(7, "c", "b", "C", ["x"], 7, "c")]
