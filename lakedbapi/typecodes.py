"""PEP 249 type objects and constructors.

The type code of a result column is the SQL spelling of its type (`DECIMAL(9,2)`), a plain string that compares equal to
the type object of its kind: `cursor.description[0][1] == lakedbapi.NUMBER`.
"""

from __future__ import annotations

import time
from datetime import date, datetime
from datetime import time as time_of_day


class TypeObject:
    """Equals every type code whose SQL type belongs to it."""

    __slots__ = ("name", "types")

    def __init__(self, name: str, *types: str) -> None:
        self.name = name
        self.types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self.name == other.name
        if isinstance(other, str):
            return not other.endswith("]") and other.partition("(")[0].strip().upper() in self.types
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


STRING = TypeObject("STRING", "VARCHAR", "CHAR", "BPCHAR", "TEXT", "STRING", "JSON", "ENUM", "UUID", "BIT")
BINARY = TypeObject("BINARY", "BLOB", "BYTEA", "BINARY", "VARBINARY", "GEOMETRY")
NUMBER = TypeObject(
    "NUMBER",
    *(
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "INT",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
    ),
    *("FLOAT", "REAL", "DOUBLE", "DECIMAL", "NUMERIC", "BIGNUM"),
)
DATETIME = TypeObject(
    "DATETIME",
    *("DATE", "TIME", "TIME_NS", "TIMETZ", "TIME WITH TIME ZONE", "INTERVAL"),
    *(
        "TIMESTAMP",
        "TIMESTAMP_S",
        "TIMESTAMP_MS",
        "TIMESTAMP_NS",
        "DATETIME",
        "TIMESTAMPTZ",
        "TIMESTAMP WITH TIME ZONE",
    ),
    *("TIMESTAMPTZ_NS", "TIMESTAMP_NS WITH TIME ZONE"),
)
ROWID = TypeObject("ROWID", "ROWID")

Date = date
Time = time_of_day
Timestamp = datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:  # noqa: N802 - the name is PEP 249's
    """The local date at `ticks` seconds since the epoch."""
    return date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> time_of_day:  # noqa: N802
    """The local time of day at `ticks` seconds since the epoch."""
    return time_of_day(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802
    """The local date and time at `ticks` seconds since the epoch."""
    return datetime(*time.localtime(ticks)[:6])


def decimal_size(code: str) -> tuple[int | None, int | None]:
    """(precision, scale) of a `DECIMAL(p,s)` type code; (None, None) of any other."""
    name, _, arguments = code.partition("(")
    if name.strip().upper() not in ("DECIMAL", "NUMERIC") or code.endswith("]"):
        return None, None
    precision, _, scale = arguments.rstrip(")").partition(",")
    return (int(precision), int(scale or 0)) if precision else (None, None)


def type_name(code: str) -> str:
    """`DECIMAL` of `DECIMAL(9,2)`; an empty text for lists and arrays."""
    return "" if code.endswith("]") else code.partition("(")[0].strip().upper()


def element_types(code: str) -> list[str]:
    """The types inside a nested one: of a list or array its element, of a MAP key and value, of a STRUCT its fields."""
    if code.endswith("]"):
        return [code[: code.rindex("[")]]
    arguments = split_arguments(code)
    if type_name(code) == "STRUCT" and not has_unnamed_fields(code):
        return [_split_name(argument)[1] for argument in arguments]
    return arguments if type_name(code) in ("MAP", "TUPLE", "STRUCT") else []


def has_unnamed_fields(code: str) -> bool:
    """Whether a STRUCT is a plain row, `TUPLE(INTEGER, VARCHAR)` or `STRUCT(INTEGER, VARCHAR)`."""
    if type_name(code) == "STRUCT":
        return not any(_split_name(argument)[1] for argument in split_arguments(code))
    return type_name(code) == "TUPLE"


def split_arguments(code: str) -> list[str]:
    """The comma-separated arguments in the outermost parentheses; quotes and inner parentheses hold commas back."""
    inside = code.partition("(")[2][:-1]
    arguments, depth, start, quote = [], 0, 0, ""
    for i, char in enumerate(inside):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "," and not depth:
            arguments.append(inside[start:i].strip())
            start = i + 1
    return [*arguments, inside[start:].strip()] if inside.strip() else []


def _split_name(field: str) -> tuple[str, str]:
    """(name, type) of a struct field `name TYPE` or `"any name" TYPE`; a lone type has no second part."""
    if field.startswith('"'):
        end = field.index('"', 1)
        while field.startswith('""', end):
            end = field.index('"', end + 2)
        return field[: end + 1], field[end + 1 :].strip()
    name, _, rest = field.partition(" ")
    # `DECIMAL(9, 2)` and `TIME WITH TIME ZONE` are types without a name.
    return ("", "") if "(" in name or rest.upper().startswith("WITH TIME ZONE") else (name, rest.strip())
