from __future__ import annotations

import duckdb
import pytest

from lakedbapi import NotSupportedError, ProgrammingError
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import SCALARS, Decimal, Field, List, Map, Scalar, Struct
from lakedbapi.sql import type_of


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("BOOL", "boolean"),
        ("TINYINT", "int8"),
        ("int1", "int8"),
        ("INT2", "int16"),
        ("integer", "int32"),
        ("INT4", "int32"),
        ("INT8", "int64"),
        ("LONG", "int64"),
        ("HUGEINT", "int128"),
        ("UINT8", "uint8"),
        ("UBIGINT", "uint64"),
        ("REAL", "float32"),
        ("FLOAT", "float32"),
        ("DOUBLE", "float64"),
        ("DOUBLE PRECISION", "float64"),
        ("STRING", "varchar"),
        ("TEXT", "varchar"),
        ("VARCHAR(20)", "varchar"),
        ("CHAR(1)", "varchar"),
        ("CHARACTER VARYING(10)", "varchar"),
        ("DATETIME", "timestamp"),
        ("TIMESTAMP WITHOUT TIME ZONE", "timestamp"),
        ("TIMESTAMP(3)", "timestamp_ms"),
        ("TIMESTAMP(9)", "timestamp_ns"),
        ("TIMESTAMP WITH TIME ZONE", "timestamptz"),
        ("timestamptz", "timestamptz"),
        ("TIME WITH TIME ZONE", "timetz"),
        ("TIMESTAMP_S", "timestamp_s"),
        ("BYTEA", "blob"),
        ("VARBINARY(3)", "blob"),
        ("GUID", "uuid"),
        ("JSON", "json"),
        ('"INTEGER"', "int32"),
        ("INT(11)", "int32"),
        ("TINYINT(1)", "int8"),
        ("BIGINT(20) UNSIGNED ZEROFILL", "uint64"),
        ("SMALLINT UNSIGNED", "uint16"),
        ("MEDIUMINT", "int32"),
        ("DATETIME(6)", "timestamp"),
        ("DATETIME(3)", "timestamp_ms"),
        ("TIMESTAMP_NTZ(9)", "timestamp_ns"),
        ("TIMESTAMPTZ(6)", "timestamptz"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "timestamptz"),
        ("FLOAT(24)", "float32"),
        ("FLOAT(53)", "float64"),
        ("BINARY_DOUBLE", "float64"),
        ("FLOAT64", "float64"),
        ("LONGTEXT", "varchar"),
        ("NVARCHAR(MAX)", "varchar"),
        ("VARCHAR2(10 CHAR)", "varchar"),
        ("CLOB", "varchar"),
        ("LONGBLOB", "blob"),
        ("RAW(16)", "blob"),
        ("UNIQUEIDENTIFIER", "uuid"),
    ],
)
def test_names_of_scalars(text: str, name: str) -> None:
    assert type_of(text) == Scalar(name)


def test_aliases_mean_what_they_mean_to_the_engine() -> None:
    engine = duckdb.connect()
    names = "bool int1 int2 int4 int8 int16 int32 int64 int128 long short signed integral oid real float4 float8"
    for name in names.split():
        (spelled,) = engine.execute(f"SELECT typeof(NULL::{name})").fetchone()
        assert sql_type(type_of(name)) == spelled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DECIMAL", Decimal(18, 3)),
        ("NUMERIC(9)", Decimal(9, 0)),
        ("dec(38, 10)", Decimal(38, 10)),
        ("NUMBER(10)", Decimal(10, 0)),
        ("NUMBER(*,0)", Decimal(38, 0)),
    ],
)
def test_decimals(text: str, expected: Decimal) -> None:
    assert type_of(text) == expected


def test_nested_types() -> None:
    integer, varchar = Scalar("int32"), Scalar("varchar")
    assert type_of("INT[][]") == List(Field("element", List(Field("element", integer))))
    assert type_of("INT ARRAY") == type_of("INT[]")
    assert type_of('STRUCT(a INT, "B b" VARCHAR[], end_ STRUCT(c MAP(VARCHAR, INT)))') == Struct(
        (
            Field("a", integer),
            Field("B b", List(Field("element", varchar))),
            Field("end_", Struct((Field("c", Map(Field("key", varchar), Field("value", integer))),))),
        )
    )
    assert type_of("ROW(a INT)[]") == List(Field("element", Struct((Field("a", integer),))))


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_spelling_and_reading_are_inverse(name: str) -> None:
    for type in (Scalar(name), List(Field("element", Struct((Field('a"b', Scalar(name)), Field("d", Decimal(9, 2))))))):
        assert type_of(sql_type(type)) == type


@pytest.mark.parametrize(
    "text", ["ENUM('a')", "UNION(a INT, b VARCHAR)", "BIT", "INT[3]", "INT ARRAY[3]", "BIGNUM", "STRUCT(a BIT)"]
)
def test_types_that_no_lake_table_holds(text: str) -> None:
    with pytest.raises(NotSupportedError, match="lake table"):
        type_of(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INTT", r"there is no type INTT \(line 1, column 1\)"),
        ("STRUCT(a JSONB)", r"there is no type JSONB: use JSON"),
        ("NUMBER", r"there is no type NUMBER: use DECIMAL\(38, 0\)"),
        ("YEAR", "use SMALLINT"),
        ("SET('a')", r"use VARCHAR\[\]"),
        ("ARRAY", r"INTEGER\[\]"),
        ("DATETIME2", "use TIMESTAMP"),
        ("DOUBLE(10, 2)", r"DECIMAL\(10, 2\)"),
        ("FLOAT(54)", "from 1 to 53"),
        ("DECIMAL(39, 0)", r"needs 1 <= precision <= 38"),
        ("DECIMAL(5, 6)", r"scale <= precision"),
        ("STRUCT(a)", r"expected a type"),
        ("STRUCT(a INT, A INT)", r"two fields A"),
        ("MAP(INT)", r"a key type and a value type"),
        ("INT NULL", r"should end here"),
        ("VARCHAR[", r"never closed"),
        ("TIMESTAMP(10)", r"at most 9"),
    ],
)
def test_errors_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        type_of(text)


def test_types_of_other_systems_that_cannot_be_stored_name_one_that_can() -> None:
    for text, instead in (("BIT", "BOOLEAN for one bit"), ("ENUM('a')", "use VARCHAR"), ("UNION(a INT)", "a struct")):
        with pytest.raises(NotSupportedError, match=instead):
            type_of(text)


def test_collation_is_refused_with_the_way_out() -> None:
    with pytest.raises(NotSupportedError, match="put COLLATE into the query"):
        type_of("VARCHAR COLLATE NOCASE")


def test_quoting_survives_the_engine() -> None:
    name, text = "a\"b'c", 'it\'s "x"'
    row = duckdb.execute(f"SELECT {quote_literal(text)} AS {quote_identifier(name)}")
    assert (row.description[0][0], row.fetchone()) == (name, (text,))
