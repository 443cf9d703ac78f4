"""Results as Arrow, pandas and polars; Arrow data as input."""

from __future__ import annotations

import sys
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset

import lakedbapi
from lakedbapi import Cursor, InterfaceError, NotSupportedError, ProgrammingError

IDS = "SELECT id FROM items ORDER BY id"


def ids(table: Any) -> list[int]:
    return list(table.column("id").to_pylist())


@pytest.mark.parametrize("method", ["fetch_arrow_table", "to_arrow_table", "fetchallarrow", "fetchall_arrow"])
def test_whole_result_as_a_table(items: Cursor, method: str) -> None:
    assert ids(getattr(items.execute(IDS), method)()) == [1, 2, 3]


@pytest.mark.parametrize("method", ["fetch_record_batch", "to_arrow_reader", "fetch_arrow"])
def test_result_as_a_stream(items: Cursor, method: str) -> None:
    reader = getattr(items.execute(IDS), method)()
    assert isinstance(reader, pa.RecordBatchReader)
    assert ids(reader.read_all()) == [1, 2, 3]


def test_batches_have_at_most_the_rows_asked_for(cursor: Cursor) -> None:
    reader = cursor.execute("SELECT * FROM range(10)").fetch_record_batch(4)
    assert [batch.num_rows for batch in reader] == [4, 4, 2]


def test_fetchmany_arrow_until_empty(cursor: Cursor) -> None:
    cursor.execute("SELECT * FROM range(5)")
    assert [cursor.fetchmany_arrow(2).num_rows for _ in range(4)] == [2, 2, 1, 0]


def test_rows_and_arrow_share_one_position(cursor: Cursor) -> None:
    cursor.execute("SELECT i FROM range(10) r(i)")
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany_arrow(2).column(0).to_pylist() == [1, 2]
    assert cursor.fetchmany(2) == [(3,), (4,)]
    assert cursor.fetch_arrow_table().column(0).to_pylist() == [5, 6, 7, 8, 9]
    assert cursor.fetchall() == []
    assert (cursor.rowcount, cursor.rownumber) == (10, 10)
    assert cursor.fetch_arrow_table().schema.names == ["i"]


def test_arrow_keeps_types_and_duplicate_names(cursor: Cursor) -> None:
    cursor.execute("SELECT 1.50::DECIMAL(9,2) AS a, TIMESTAMPTZ 'epoch' AS a")
    assert cursor.fetch_arrow_table().schema.types == [pa.decimal128(9, 2), pa.timestamp("us", "UTC")]


def test_a_stream_is_not_read_ahead(cursor: Cursor) -> None:
    reader = cursor.execute("SELECT i FROM range(100000000) r(i)").fetch_record_batch()
    assert reader.read_next_batch().num_rows < 10_000_000


def test_consumers_of_the_c_stream(items: Cursor) -> None:
    assert ids(pa.table(items.execute(IDS))) == [1, 2, 3]
    assert ids(pa.RecordBatchReader.from_stream(items.execute(IDS)).read_all()) == [1, 2, 3]
    assert pl.DataFrame(items.execute(IDS))["id"].to_list() == [1, 2, 3]


def test_duckdb_reads_a_cursor_by_its_variable_name(items: Cursor) -> None:
    result = items.execute(IDS)  # noqa: F841 - named in the SQL
    assert duckdb.sql("SELECT sum(id) FROM result").fetchall() == [(6,)]


def test_asking_for_a_stream_twice_runs_nothing_twice(items: Cursor) -> None:
    items.execute("DELETE FROM items WHERE id < 3 RETURNING id")
    first, second = items.fetch_arrow(), items.fetch_arrow()
    assert sorted(ids(first.read_all())) == [1, 2]
    assert second.read_all().num_rows == 0


def test_a_stream_whose_cursor_went_on_fails_and_does_not_end_early(items: Cursor) -> None:
    reader = items.execute(IDS).fetch_record_batch()
    items.execute("SELECT 1")
    with pytest.raises(InterfaceError, match="closed before its last row"):
        reader.read_all()


@pytest.mark.parametrize("method", ["fetch_df", "df"])
def test_pandas(items: Cursor, method: str) -> None:
    frame = getattr(items.execute("SELECT id, name FROM items ORDER BY id"), method)()
    assert isinstance(frame, pd.DataFrame)
    assert frame["name"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize("method", ["fetch_polars", "pl"])
def test_polars(items: Cursor, method: str) -> None:
    frame = getattr(items.execute("SELECT id, price FROM items ORDER BY id"), method)()
    assert frame.schema == {"id": pl.Int32, "price": pl.Decimal(9, 2)}


@pytest.mark.parametrize(("method", "package"), [("fetch_df", "pandas"), ("fetch_polars", "polars")])
def test_a_missing_package_is_named_and_no_row_lost(
    items: Cursor, monkeypatch: pytest.MonkeyPatch, method: str, package: str
) -> None:
    items.execute("SELECT * FROM items")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotSupportedError, match=rf"pip install 'lakedbapi\[{package}\]'"):
        getattr(items, method)()
    assert len(items.fetchall()) == 3


def test_polars_read_database_takes_types_from_the_description(items: Cursor) -> None:
    frame = pl.read_database("SELECT id, price FROM items ORDER BY id", items.connection)
    assert frame["id"].to_list() == [1, 2, 3]
    assert frame.schema["price"] == pl.Decimal(9, 2)


def test_arrow_fetch_without_a_result_is_refused(items: Cursor) -> None:
    items.execute("DELETE FROM items WHERE id = 1")
    with pytest.raises(ProgrammingError, match="no rows to fetch"):
        items.fetch_arrow_table()


DATA = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})

SOURCES = {
    "table": lambda: DATA,
    "batch": lambda: DATA.to_batches()[0],
    "reader": lambda: DATA.to_reader(),
    "pandas": lambda: DATA.to_pandas(),
    "polars": lambda: pl.DataFrame(DATA),
    "relation": lambda: duckdb.from_arrow(DATA),
    "dataset": lambda: dataset.dataset(DATA),
    "scanner": lambda: dataset.dataset(DATA).scanner(batch_size=2),
    "struct array": lambda: DATA.to_struct_array(),
}


@pytest.mark.parametrize("source", SOURCES)
def test_ingest_takes_whatever_holds_arrow_data(cursor: Cursor, source: str) -> None:
    assert cursor.adbc_ingest("t", SOURCES[source]()) == 3
    assert cursor.rowcount == 3
    assert cursor.execute("SELECT * FROM t ORDER BY id").fetchall() == [(1, "a"), (2, None), (3, "c")]


def test_ingest_from_another_cursor_of_the_same_connection(items: Cursor) -> None:
    source = items.connection.execute("SELECT id, price FROM items")
    assert items.adbc_ingest("prices", source) == 3
    assert items.execute("SELECT sum(id) FROM prices").fetchone() == (6,)


def test_ingest_refuses_what_holds_none(cursor: Cursor) -> None:
    with pytest.raises(InterfaceError, match="list holds no Arrow data"):
        cursor.adbc_ingest("t", [1, 2, 3])


def test_a_column_whose_name_has_a_null_character_is_refused(cursor: Cursor) -> None:
    with pytest.raises(ProgrammingError, match=r"column 'a\\x00b' contains a NUL character"):
        cursor.adbc_ingest("t", pa.table({"a\0b": [1]}))


def test_ingest_modes(cursor: Cursor) -> None:
    with pytest.raises(ProgrammingError):
        cursor.adbc_ingest("t", DATA, "append")
    cursor.adbc_ingest("t", DATA, "create")
    with pytest.raises(ProgrammingError):
        cursor.adbc_ingest("t", DATA, "create")
    cursor.adbc_ingest("t", DATA, "append")
    cursor.adbc_ingest("t", DATA, "create_append")
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (9,)
    cursor.adbc_ingest("t", DATA, "replace")
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (3,)
    with pytest.raises(ProgrammingError, match="create_append"):
        cursor.adbc_ingest("t", DATA, "upsert")


def test_ingest_is_one_snapshot_and_part_of_the_transaction(connection: lakedbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.adbc_ingest("t", DATA)
    connection.commit()
    created = connection.snapshot_id
    assert created is not None
    cursor.adbc_ingest("t", DATA, "append")
    connection.rollback()
    cursor.adbc_ingest("t", DATA, "replace")
    connection.commit()
    assert connection.snapshot_id == created + 1
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_ingest_into_a_schema_and_never_temporary(cursor: Cursor) -> None:
    cursor.execute("CREATE SCHEMA s")
    cursor.adbc_ingest("t", DATA, catalog_name="lake", db_schema_name="s")
    assert cursor.execute("SELECT count(*) FROM lake.s.t").fetchone() == (3,)
    with pytest.raises(NotSupportedError, match="register"):
        cursor.adbc_ingest("t", DATA, temporary=True)
