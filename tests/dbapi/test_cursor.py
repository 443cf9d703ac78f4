"""Cursors: what execute leaves behind, and how rows are fetched."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import lakedbapi
from lakedbapi import Cursor, InterfaceError, OperationalError, ProgrammingError
from tests.effort import interrupted


def test_execute_returns_the_cursor(cursor: Cursor) -> None:
    assert cursor.execute("SELECT 1") is cursor


def test_description_has_names_types_precision_scale_and_null_ok(items: Cursor) -> None:
    items.execute("SELECT id, name, price, price * 2 AS twice FROM items")
    assert items.description is not None
    assert [column[0] for column in items.description] == ["id", "name", "price", "twice"]
    assert [column[1] for column in items.description[:3]] == ["INTEGER", "VARCHAR", "DECIMAL(9,2)"]
    assert [column[4:6] for column in items.description[:3]] == [(None, None), (None, None), (9, 2)]
    assert [column[6] for column in items.description[:2]] == [False, True]
    assert items.description[2][1] == lakedbapi.NUMBER
    assert isinstance(items.description[2][1], str)


def test_description_keeps_duplicate_names(cursor: Cursor) -> None:
    cursor.execute("SELECT 1 AS a, 2 AS a")
    assert [column[0] for column in cursor.description or ()] == ["a", "a"]
    assert cursor.fetchall() == [(1, 2)]


def test_description_survives_fetching_and_a_new_arraysize(items: Cursor) -> None:
    items.execute("SELECT id FROM items")
    items.arraysize = 10
    items.fetchall()
    assert items.description is not None
    assert items.description[0][0] == "id"


def test_reading_description_consumes_nothing(items: Cursor) -> None:
    items.execute("SELECT id FROM items ORDER BY id")
    assert items.description
    assert items.fetch_arrow_table().column(0).to_pylist() == [1, 2, 3]


MERGE = (
    "MERGE INTO items USING (VALUES (1, 'a'), (9, 'b')) s(id, name) ON items.id = s.id "
    "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
)

STATEMENTS = [
    ("CREATE TABLE other (x INTEGER)", -1),
    ("INSERT INTO items VALUES (4, 'fig', 1), (5, 'nut', 2)", 2),
    ("INSERT INTO items SELECT id + 10, name, price FROM items", 3),
    ("INSERT INTO items SELECT * FROM items WHERE FALSE", 0),
    ("UPDATE items SET price = 1 WHERE id = 1", 1),
    ("UPDATE items SET price = price WHERE id = 1", 1),
    ("UPDATE items SET price = 1 WHERE id = 99", 0),
    ("UPDATE items SET price = 1", 3),
    ("DELETE FROM items WHERE id < 3", 2),
    ("DELETE FROM items WHERE name > ''", 2),
    ("DELETE FROM items WHERE id = 99", 0),
    ("DELETE FROM items", 3),
    (MERGE, 2),
]


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize(("statement", "count"), STATEMENTS)
def test_changes_have_an_exact_rowcount_and_no_description(
    items: Cursor, statement: str, count: int, autocommit: bool
) -> None:
    items.connection.autocommit = autocommit
    items.execute(statement)
    assert (items.rowcount, type(items.rowcount), items.description) == (count, int, None)
    with pytest.raises(ProgrammingError, match="no rows to fetch"):
        items.fetchone()


def test_merge_counts_inserted_updated_and_deleted_rows(items: Cursor) -> None:
    items.execute(
        "MERGE INTO items USING (VALUES (1, 'a'), (2, NULL), (9, 'b')) s(id, name) ON items.id = s.id "
        "WHEN MATCHED AND s.name IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    )
    assert (items.rowcount, items.rows_inserted, items.rows_updated, items.rows_deleted) == (3, 1, 1, 1)


def test_rowcount_of_a_query_is_known_after_its_last_row(items: Cursor) -> None:
    items.execute("SELECT * FROM items")
    assert items.rowcount == -1
    items.fetchall()
    assert items.rowcount == 3


def test_rowcount_is_minus_one_before_any_execute_and_stays_after_close(items: Cursor) -> None:
    assert items.connection.cursor().rowcount == -1
    items.execute("DELETE FROM items WHERE id = 1")
    items.close()
    assert items.rowcount == 1


def test_returning_gives_rows_and_their_count(items: Cursor) -> None:
    items.execute("DELETE FROM items WHERE id < 3 RETURNING id, name")
    assert items.rowcount == 2
    assert [column[0] for column in items.description or ()] == ["id", "name"]
    assert sorted(items.fetchall()) == [(1, "apple"), (2, "pear")]


def test_executemany_sums_the_counts(items: Cursor) -> None:
    items.executemany("UPDATE items SET price = ? WHERE id >= ?", [(1, 2), (2, 3), (3, 99)])
    assert items.rowcount == 3
    items.executemany("DELETE FROM items WHERE id = ?", [(1,), (2,), (1,)])
    assert items.rowcount == 2
    items.executemany("INSERT INTO items (id) VALUES (:id)", ({"id": i} for i in range(100)))
    assert items.rowcount == 100


def test_executemany_without_parameters_does_nothing(items: Cursor) -> None:
    items.executemany("INSERT INTO items (id) VALUES (?)", [])
    assert (items.rowcount, items.description) == (0, None)


@pytest.mark.parametrize("given", [None, 5, "ab", {}, {"id": 1}, pd.DataFrame({"id": [1]}), pa.table({"id": [1]})])
def test_executemany_refuses_what_is_no_sequence_of_parameter_sets(items: Cursor, given: Any) -> None:
    with pytest.raises(ProgrammingError, match=r"takes a sequence of parameter sets.*adbc_ingest"):
        items.executemany("INSERT INTO items (id) VALUES (?)", given)


def test_executemany_refuses_a_query(items: Cursor) -> None:
    with pytest.raises(ProgrammingError, match="executemany"):
        items.executemany("SELECT * FROM items WHERE id = ?", [(1,)])


def test_many_inserted_rows_make_one_snapshot_and_one_file(items: Cursor) -> None:
    before = items.connection.snapshot_id
    assert before is not None
    items.executemany("INSERT INTO items VALUES (?, ?, ?)", [(i, f"item {i}", i / 4) for i in range(5000)])
    items.connection.commit()
    assert items.connection.snapshot_id == before + 1
    files = items.execute("SELECT * FROM files('items')").fetch_arrow_table()
    assert files.num_rows == 1


def test_executescript_runs_all_statements_and_keeps_the_last_result(cursor: Cursor) -> None:
    cursor.executescript("CREATE TABLE t (x VARCHAR); INSERT INTO t VALUES ('a;b'); -- done; really\nSELECT x FROM t;")
    assert cursor.fetchall() == [("a;b",)]


@pytest.mark.parametrize("parameters", [None, (), [], {}])
def test_percent_signs_and_placeholders_in_texts_are_left_alone(cursor: Cursor, parameters: Any) -> None:
    statement = """SELECT 5 % 3, 'a%s ? :x $1', "c?d" FROM (SELECT 7 AS "c?d") -- what? :y"""
    assert cursor.execute(statement, parameters).fetchone() == (2, "a%s ? :x $1", 7)


def test_parameters_stand_beside_texts_that_look_like_some(cursor: Cursor) -> None:
    assert cursor.execute("SELECT 'a%s ? :x', ? % 5 /* ? */", (13,)).fetchone() == ("a%s ? :x", 3)
    assert cursor.execute("SELECT :a, ':a', :a::VARCHAR", {"a": 1}).fetchone() == (1, ":a", "1")
    assert cursor.execute("SELECT $2, $1", (1, 2)).fetchone() == (2, 1)


@pytest.mark.parametrize("value", ["x", b"x", 5])
def test_a_single_value_is_no_parameter_list(cursor: Cursor, value: Any) -> None:
    with pytest.raises(ProgrammingError, match=r"write \(value,\)"):
        cursor.execute("SELECT ?", value)


def test_several_statements_in_one_execute_are_refused(cursor: Cursor) -> None:
    with pytest.raises(ProgrammingError, match="executescript"):
        cursor.execute("SELECT 1; SELECT 2")
    assert cursor.execute("SELECT 1;").fetchall() == [(1,)]


def test_wrong_number_of_parameters_is_refused(cursor: Cursor) -> None:
    with pytest.raises(ProgrammingError):
        cursor.execute("SELECT ?, ?", (1,))


def test_fetchmany_uses_arraysize_and_ends_in_empty_lists(items: Cursor) -> None:
    items.execute("SELECT id FROM items ORDER BY id")
    assert items.fetchmany() == [(1,)]
    items.arraysize = 10
    assert items.fetchmany() == [(2,), (3,)]
    assert items.fetchmany() == items.fetchmany(5) == items.fetchall() == []
    assert items.fetchone() is None


@pytest.mark.parametrize("size", [2**31, 2**63, 2**70])
def test_more_rows_than_any_result_has_can_be_asked_for(items: Cursor, size: int) -> None:
    sql = "SELECT id FROM items ORDER BY id"
    assert items.execute(sql).fetchmany(size) == [(1,), (2,), (3,)]
    assert items.execute(sql).fetchmany_arrow(size).num_rows == 3
    assert items.execute(sql).fetch_record_batch(size).read_all().num_rows == 3
    items.arraysize = size
    assert items.execute(sql).fetchmany() == [(1,), (2,), (3,)]


def test_rows_are_tuples_and_a_cursor_iterates_over_them(items: Cursor) -> None:
    items.execute("SELECT id FROM items ORDER BY id")
    assert list(items) == [(1,), (2,), (3,)]


def test_rownumber_is_the_index_of_the_next_row(items: Cursor) -> None:
    assert items.rownumber is None
    items.execute("SELECT id FROM items")
    assert items.rownumber == 0
    items.fetchmany(2)
    assert items.rownumber == 2


def test_fetching_across_many_batches_loses_no_row(cursor: Cursor) -> None:
    cursor.execute("SELECT i FROM range(300000) r(i)")
    rows = [
        cursor.fetchone(),
        *cursor.fetchmany(5000),
        cursor.fetchone(),
        *cursor.fetchmany(150_000),
        *cursor.fetchall(),
    ]
    assert rows == [(i,) for i in range(300_000)]


def test_a_result_survives_statements_on_other_cursors(connection: lakedbapi.Connection) -> None:
    result = connection.execute("SELECT * FROM range(5)")
    assert connection.execute("SELECT 1").fetchall() == [(1,)]
    connection.execute("CREATE TABLE t (x INTEGER)")
    connection.commit()
    assert len(result.fetchall()) == 5


def test_a_result_survives_changes_to_its_table(items: Cursor) -> None:
    result = items.connection.execute("SELECT id FROM items ORDER BY id")
    assert result.fetchone() == (1,)
    items.execute("DELETE FROM items")
    items.connection.commit()
    assert result.fetchall() == [(2,), (3,)]


def test_execute_forgets_the_last_result(items: Cursor) -> None:
    items.execute("SELECT id FROM items")
    with pytest.raises(ProgrammingError):
        items.execute("SELECT nonsense FROM items")
    assert (items.description, items.rowcount) == (None, -1)
    with pytest.raises(ProgrammingError, match="no rows to fetch"):
        items.fetchone()


def test_errors_carry_the_statement_and_are_kept_in_messages(items: Cursor) -> None:
    with pytest.raises(ProgrammingError) as failed:
        items.execute("SELECT nonsense FROM items")
    assert failed.value.statement == "SELECT nonsense FROM items"
    assert items.messages == [(type(failed.value), failed.value)]
    items.execute("SELECT 1")
    assert items.messages == []


def test_an_error_while_rows_stream_is_an_error_of_this_package(cursor: Cursor) -> None:
    statement = "SELECT CASE WHEN i = 500000 THEN 'x' ELSE '1' END::INTEGER FROM range(1000000) r(i)"
    with pytest.raises(lakedbapi.DataError) as failed:
        cursor.execute(statement).fetchall()
    assert failed.value.statement == statement


def test_use_after_close_is_refused(items: Cursor) -> None:
    items.execute("SELECT 1")
    items.close()
    items.close()
    for use in (items.fetchone, items.fetchall, items.fetch_arrow_table, lambda: items.execute("SELECT 1")):
        with pytest.raises(InterfaceError, match="cursor is closed"):
            use()


def test_a_cursor_is_a_context_manager(connection: lakedbapi.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    with pytest.raises(InterfaceError):
        cursor.fetchone()


def test_setinputsizes_and_setoutputsize_do_nothing(cursor: Cursor) -> None:
    cursor.setinputsizes((25,))
    cursor.setoutputsize(1000)
    cursor.setoutputsize(1000, 0)
    assert cursor.execute("SELECT 1").fetchone() == (1,)


def test_optional_methods_that_cannot_work_are_absent(cursor: Cursor) -> None:
    assert not hasattr(cursor, "callproc")
    assert not hasattr(cursor, "nextset")


def test_as_of_reads_the_past_and_only_there(items: Cursor) -> None:
    before = items.connection.snapshot_id
    items.execute("DELETE FROM items")
    items.connection.commit()
    items.as_of = before
    assert len(items.execute("SELECT * FROM items").fetchall()) == 3
    with pytest.raises(ProgrammingError, match="past"):
        items.execute("DELETE FROM items")
    items.as_of = None
    assert items.execute("SELECT * FROM items").fetchall() == []


def test_snapshot_id_is_what_the_statement_committed(items: Cursor) -> None:
    items.execute("DELETE FROM items WHERE id = 1")
    assert items.snapshot_id is None
    items.connection.commit()
    committed = items.connection.snapshot_id
    items.connection.autocommit = True
    items.execute("DELETE FROM items WHERE id = 2")
    assert items.snapshot_id == items.connection.snapshot_id
    assert committed is not None
    assert items.snapshot_id == committed + 1


def test_lastrowid_is_the_identity_value_of_one_inserted_row(cursor: Cursor) -> None:
    cursor.execute("CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY, x VARCHAR)")
    cursor.execute("INSERT INTO t (x) VALUES ('a')")
    first = cursor.lastrowid
    cursor.execute("INSERT INTO t (x) VALUES ('b')")
    assert first is not None
    assert cursor.lastrowid == first + 1
    cursor.execute("SELECT 1")
    assert cursor.lastrowid is None


def test_cancelled_statement_raises_operational_error(cursor: Cursor) -> None:
    with pytest.raises(OperationalError), interrupted(cursor.cancel):
        cursor.execute(
            "SELECT count(*) FROM range(3000000) a, range(3000000) b WHERE a.range + b.range = -1"
        ).fetchall()
    assert cursor.execute("SELECT 1").fetchone() == (1,)
