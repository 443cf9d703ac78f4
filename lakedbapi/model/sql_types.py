"""SQL spelling, in DuckDB's dialect, of types, identifiers and string literals."""

from __future__ import annotations

import re

from lakedbapi.model.types import Decimal, List, Map, Scalar, Struct, Type

SCALAR_SPELLINGS = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "int128": "HUGEINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "uint128": "UHUGEINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "time_ns": "TIME_NS",
    "timetz": "TIME WITH TIME ZONE",
    "timestamp": "TIMESTAMP",
    "timestamp_s": "TIMESTAMP_S",
    "timestamp_ms": "TIMESTAMP_MS",
    "timestamp_ns": "TIMESTAMP_NS",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "timestamptz_ns": "TIMESTAMPTZ_NS",
    "interval": "INTERVAL",
    "varchar": "VARCHAR",
    "json": "JSON",
    "blob": "BLOB",
    "uuid": "UUID",
    "variant": "VARIANT",
    "geometry": "GEOMETRY",
}


RESERVED = frozenset(
    """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
    default deferrable desc describe distinct do else end except false fetch for foreign from group having in
    initially intersect into lambda lateral leading limit not null offset on only or order pivot pivot_longer
    pivot_wider placing primary qualify references returning select show some summarize symmetric table then to
    trailing true union unique unpivot using variadic when where window with
    """.split()
)
"""Never an identifier unless quoted."""


def sql_type(type: Type) -> str:
    """`DECIMAL(9,2)`, `STRUCT("a" INTEGER)`, `VARCHAR[]`, `MAP(VARCHAR, INTEGER)`."""
    if isinstance(type, Scalar):
        return SCALAR_SPELLINGS[type.name]
    if isinstance(type, Decimal):
        return f"DECIMAL({type.precision},{type.scale})"
    if isinstance(type, List):
        return f"{sql_type(type.element.type)}[]"
    if isinstance(type, Map):
        return f"MAP({sql_type(type.key.type)}, {sql_type(type.value.type)})"
    assert isinstance(type, Struct)
    return f"STRUCT({', '.join(f'{quote_identifier(f.name)} {sql_type(f.type)}' for f in type.fields)})"


def quote_identifier(name: str) -> str:
    """Double-quoted, so that any name can stand in SQL."""
    return '"' + name.replace('"', '""') + '"'


def spelled(name: str) -> str:
    """A name as a person would write it into SQL: quoted where it has to be."""
    return name if _PLAIN_NAME.fullmatch(name) and name.casefold() not in RESERVED else quote_identifier(name)


def quote_literal(text: str) -> str:
    """Single-quoted string literal."""
    return "'" + text.replace("'", "''") + "'"


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONSTANT = re.compile(r"CAST\('((?:[^']|'')*)' AS .+\)", re.DOTALL)


def constant_expression(text: str, type: Type) -> str:
    """A constant that is given as text, as an expression that has its type."""
    return f"CAST({quote_literal(text)} AS {sql_type(type)})"


def constant_text(expression: str) -> str | None:
    """The text in a `constant_expression`; None for any other expression."""
    found = _CONSTANT.fullmatch(expression)
    return None if found is None else found[1].replace("''", "'")
