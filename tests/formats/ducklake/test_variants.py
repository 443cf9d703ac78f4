"""Variants that other programs keep in a catalog as bytes: what DuckDB encodes is read as it reads it itself."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import pytest

import lakedbapi
from lakedbapi.errors import DataError
from lakedbapi.formats.ducklake.values import typed_array
from lakedbapi.formats.ducklake.variants import variant_json
from lakedbapi.model.types import Field, List, Scalar, Struct
from tests.engines import needs_duckdb_2

VALUES = [
    *(
        "42::TINYINT",
        "-7::SMALLINT",
        "100000::INTEGER",
        "5000000000::BIGINT",
        "1.5::FLOAT",
        "0.1::FLOAT",
        "0.1::DOUBLE",
    ),
    *(
        "'-0.0'::DOUBLE",
        "'nan'::DOUBLE",
        "'-inf'::DOUBLE",
        "1.50::DECIMAL(4, 2)",
        "-0.05::DECIMAL(4, 2)",
        "7::DECIMAL(3)",
    ),
    *("-123456789012.345::DECIMAL(18, 3)", "1234567890123456789.25::DECIMAL(38, 10)", "true", "false"),
    *("DATE '2020-01-01'", "DATE 'infinity'", "DATE '-infinity'", "DATE '0044-03-15 (BC)'", "DATE '12020-01-01'"),
    *("TIME '01:02:03.5'", "TIME '24:00:00'", "TIMESTAMP '1969-12-31 23:59:59.5'", "TIMESTAMP 'infinity'"),
    *("TIMESTAMPTZ '2020-01-01 01:02:03+05:30'", "TIMESTAMP_NS '2020-01-01 00:00:00.123456789'"),
    *("UUID 'f79c3e09-677c-4bbd-a479-3f349cb785e7'", r"'\xAA\x00b\x27\x5C'::BLOB", "''", "'it''s \"é\" \\ x'"),
    *("repeat('long', 100)", "[1, NULL, 3]", "[]", "{'a': 1, 'b': {'c': [DATE '2020-01-01']}, 'ü': NULL}"),
    *("range(300)", "{'x': range(70000), 'n': 'a'}", "MAP {'k': 1}"),
]


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    try:
        connection.execute("SELECT variant_to_parquet_variant(1::VARIANT)")
    except duckdb.Error:
        pytest.skip("this DuckDB encodes no variants")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def encoded(engine: duckdb.DuckDBPyConnection, value: str) -> bytes:
    (parts,) = engine.execute(f"SELECT variant_to_parquet_variant(({value})::VARIANT)").fetchone() or ({},)
    return bytes(parts["metadata"] + parts["value"])


@pytest.mark.parametrize("value", VALUES)
def test_every_kind_of_value(engine: duckdb.DuckDBPyConnection, value: str) -> None:
    (expected,) = engine.execute(f"SELECT CAST(CAST(({value})::VARIANT AS JSON) AS VARCHAR)").fetchone() or ("",)
    assert variant_json(encoded(engine, value)) == expected


def test_damage_is_told(engine: duckdb.DuckDBPyConnection) -> None:
    data = encoded(engine, "{'a': ['text'], 'c': 1.5, 'b': DATE '2020-01-01'}")
    for length in range(len(data)):
        with pytest.raises(ValueError, match="variant"):
            variant_json(data[:length])
    with pytest.raises(ValueError, match="version 2"):
        variant_json(b"\x02" + data[1:])


def test_variants_in_nested_values(engine: duckdb.DuckDBPyConnection) -> None:
    """They are the text of blobs in the text of the whole."""
    one, two = (encoded(engine, value) for value in ("{'a': 'it''s, }'}", "DATE '2020-01-01'"))
    whole, parts = "{'v': $1::BLOB, 'n': NULL, 'l': [$2::BLOB, NULL]}", "[$1::BLOB, $2::BLOB]"
    found = engine.execute(f"SELECT CAST({whole} AS VARCHAR), CAST({parts} AS VARCHAR)", [one, two]).fetchone()
    text, listed = found or ("", "")
    variant = Scalar("variant")
    elements = List(Field("element", variant, id=4))
    struct = Struct((Field("v", variant, id=1), Field("n", variant, id=2), Field("l", elements, id=3)))
    values = ['{"a":"it\'s, }"}', '"2020-01-01"']
    expected = {"v": values[0], "n": None, "l": [values[1], None]}
    assert typed_array([text, None], struct).to_pylist() == [expected, None]
    assert typed_array([listed], elements).to_pylist() == [values]


@needs_duckdb_2("has no Arrow form of VARIANT")
def test_rows_of_a_catalog(engine: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    with lakedbapi.connect(tmp_path, autocommit=True, alias="lake") as connection:
        connection.execute("CREATE TABLE t (k INTEGER, v BLOB)")
        rows = [(1, encoded(engine, "{'a': 1}")), (2, None), (3, encoded(engine, "'text'"))]
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    with sqlite3.connect(tmp_path / "catalog.sqlite") as catalog:
        catalog.execute("UPDATE ducklake_column SET column_type = 'variant' WHERE column_name = 'v'")
    with lakedbapi.connect(tmp_path, autocommit=True, alias="lake") as connection:
        for _ in range(2):
            found = connection.execute("SELECT k, CAST(v AS VARCHAR), v.a FROM t WHERE k <> 3").fetchall()
            assert sorted(found) == [(1, "{'a': 1}", "1"), (2, None, None)]
            assert connection.execute("SELECT CAST(v AS VARCHAR) FROM t WHERE k = 3").fetchall() == [("text",)]
            connection.execute("CALL ducklake_flush_inlined_data('lake')")
        assert connection.execute("SELECT count(*) FROM files('t')").fetchone() == (1,)
        connection.execute("CREATE TABLE d (k INTEGER, v BLOB)")
        connection.execute("INSERT INTO d VALUES (1, '\\x01\\x00'::BLOB)")
    with sqlite3.connect(tmp_path / "catalog.sqlite") as catalog:
        catalog.execute("UPDATE ducklake_column SET column_type = 'variant' WHERE column_name = 'v'")
    with lakedbapi.connect(tmp_path, autocommit=True) as connection, pytest.raises(DataError, match="variant"):
        connection.execute("SELECT * FROM d").fetchall()
