"""Columns of many catalog rows, which SQLite joins to texts: the same as row by row, whatever the values are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import create_engine, literal_column, select, table, text
from sqlalchemy.sql.expression import ColumnElement

from lakedbapi.formats.ducklake import columnar
from lakedbapi.formats.ducklake.columnar import fetch_table

COUNT = 5_000
SCHEMA = pa.schema([("id", pa.int64()), ("flag", pa.bool_()), ("note", pa.string())])


def fetched(notes: Sequence[Any], flags: Sequence[Any] = (0, 1, None)) -> tuple[pa.Table, list[tuple[Any, ...]]]:
    """What `fetch_table` gives for many rows with these values in turn, and the rows themselves."""
    rows = [(COUNT - i, flags[i % len(flags)], notes[i % len(notes)]) for i in range(COUNT)]
    with create_engine("sqlite://").connect() as connection:
        connection.execute(text("CREATE TABLE t (id BIGINT, flag BIGINT, note VARCHAR)"))
        connection.connection.cursor().executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        columns: list[ColumnElement[Any]] = [literal_column(name) for name in SCHEMA.names]
        statement = select(*columns).select_from(table("t"))
        found = fetch_table(connection, statement.where(text("id > :above")), SCHEMA, {"above": 10}, by="id")
    return found, sorted(row for row in rows if row[0] > 10)


@pytest.mark.parametrize(
    "notes",
    [
        ("a", "", None),
        ("ä,ö", "a\nb\t'\"", "\U0001f986"),
        ("a\x1fb", "c"),
        ("\x1e", None, "c"),
        ("a\x1eb", None),
        (None,),
        ("a\0b", None),
    ],
)
def test_texts_come_as_they_are(notes: Sequence[str | None]) -> None:
    found, rows = fetched(notes)
    assert found.schema == SCHEMA
    assert found.column("note").to_pylist() == [note for _, _, note in rows]
    assert found.column("id").to_pylist() == [id for id, _, _ in rows]
    assert found.column("flag").to_pylist() == [None if flag is None else bool(flag) for _, flag, _ in rows]


def test_a_column_that_is_null_in_the_first_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnar, "_BATCH", 10)
    found, rows = fetched([*[None] * 10, "late"], [*[None] * 10, 1])
    assert found.column("note").to_pylist() == [note for _, _, note in rows]
    assert found.column("flag").to_pylist() == [None if flag is None else bool(flag) for _, flag, _ in rows]


def test_numbers_that_sqlite_holds_as_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = fetched(("a",), (1.0, 0))
    assert found.column("flag").to_pylist()[:2] in ([True, False], [False, True])


def test_texts_too_long_to_be_joined_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    sqlite3 = pytest.importorskip("sqlite3")
    if not hasattr(sqlite3, "SQLITE_LIMIT_LENGTH"):
        pytest.skip("this Python cannot set the limit")
    with create_engine("sqlite://").connect() as connection:
        driver: Any = connection.connection.dbapi_connection
        driver.execute("CREATE TABLE t (id BIGINT, flag BIGINT, note VARCHAR)")
        driver.executemany("INSERT INTO t VALUES (?, 1, 'text')", [(i,) for i in range(COUNT)])
        driver.commit()
        driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
        columns: list[ColumnElement[Any]] = [literal_column(name) for name in SCHEMA.names]
        found = fetch_table(connection, select(*columns).select_from(table("t")), SCHEMA)
    assert found.num_rows == COUNT
    assert found.column("note").to_pylist() == ["text"] * COUNT
