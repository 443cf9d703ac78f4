"""Types and values of the model: how they are drawn, written in SQL, compared, and shown by a driver.

Values are plain Python; a struct is a dict by field *id*, so that fields can come, go and change names.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from hypothesis import strategies as st

Value: TypeAlias = Any


@dataclass(frozen=True)
class Plain:
    sql: str


@dataclass(frozen=True)
class ListOf:
    element: Type


@dataclass(frozen=True)
class StructOf:
    fields: tuple[Column, ...]


Type: TypeAlias = "Plain | ListOf | StructOf"


@dataclass(frozen=True)
class Column:
    """A column of a table, or a field of a struct. `initial` is its value in rows that are older than it."""

    id: int
    name: str
    type: Type
    nullable: bool = True
    default: Value = None
    initial: Value = None


SMALLINT, INTEGER, BIGINT = Plain("SMALLINT"), Plain("INTEGER"), Plain("BIGINT")
FLOAT, DOUBLE, BOOLEAN, VARCHAR = Plain("FLOAT"), Plain("DOUBLE"), Plain("BOOLEAN"), Plain("VARCHAR")
DECIMAL, WIDE_DECIMAL = Plain("DECIMAL(9,2)"), Plain("DECIMAL(18,2)")
DATE, TIMESTAMP = Plain("DATE"), Plain("TIMESTAMP")

SCALARS = (SMALLINT, INTEGER, BIGINT, VARCHAR, FLOAT, DOUBLE, DECIMAL, DATE, TIMESTAMP, BOOLEAN)
INTEGERS = (SMALLINT, INTEGER, BIGINT)
FLOATS = (FLOAT, DOUBLE)
WIDER: dict[Type, tuple[Plain, ...]] = {
    SMALLINT: (INTEGER, BIGINT, DOUBLE),
    INTEGER: (BIGINT, DOUBLE),
    FLOAT: (DOUBLE,),
    DECIMAL: (WIDE_DECIMAL,),
    DATE: (TIMESTAMP,),
}

_SMALL = [-3, -1, 0, 1, 2, 3, 4, 5, 6, 7, 100]
_TEXTS = ["", "a", "A", "ab", "b", "ä", "it's", 'say "hi"', "🙂", "🙂🙂", "%", "NULL", "\\", "a/b=c", "\n", "x" * 300]
_DATES = [dt.date(1969, 12, 31), dt.date(2020, 2, 29), dt.date(2020, 3, 1), dt.date(1, 1, 1), dt.date(9999, 12, 30)]
_TIMES = [dt.time(), dt.time(12, 34, 56, 789012), dt.time(23, 59, 59, 999999)]
_FLOATS = [math.nan, math.inf, -math.inf, 0.0, 0.5, -1.5, 3.0, 65536.25]
_DOMAINS: dict[Plain, list[Value]] = {
    SMALLINT: [*_SMALL, -(2**15), 2**15 - 1],
    INTEGER: [*_SMALL, -(2**31), 2**31 - 1],
    BIGINT: [*_SMALL, -(2**63), 2**53 + 1, 2**63 - 1],
    VARCHAR: _TEXTS,
    FLOAT: _FLOATS,
    DOUBLE: [*_FLOATS, 0.1, -1e300, 5e-324],
    DECIMAL: [Decimal(text) for text in ("0.00", "0.01", "-0.10", "1.50", "-9999999.99", "9999999.99")],
    WIDE_DECIMAL: [Decimal(text) for text in ("0.00", "-1.25", "9999999.99", "-9999999999999999.99")],
    DATE: _DATES,
    TIMESTAMP: [dt.datetime.combine(day, time) for day in _DATES for time in _TIMES],
    BOOLEAN: [True, False],
}


def values(type: Type) -> st.SearchStrategy[Value]:
    """Values of the type; every sixth or so is NULL."""
    if isinstance(type, Plain):
        known: st.SearchStrategy[Value] = st.sampled_from(_DOMAINS[type])
    elif isinstance(type, ListOf):
        known = st.lists(values(type.element), max_size=3)
    else:
        known = st.fixed_dictionaries({field.id: values(field.type) for field in type.fields})
    return st.integers(0, 5).flatmap(lambda number: st.none() if number == 5 else known)


def not_null(type: Type) -> st.SearchStrategy[Value]:
    return values(type).filter(lambda value: value is not None)


def type_sql(type: Type) -> str:
    if isinstance(type, Plain):
        return type.sql
    if isinstance(type, ListOf):
        return f"{type_sql(type.element)}[]"
    return f"STRUCT({', '.join(f'{quoted(field.name)} {type_sql(field.type)}' for field in type.fields)})"


def literal(value: Value, type: Type) -> str:
    if value is None:
        return "NULL"
    if isinstance(type, ListOf):
        items = ", ".join(literal(item, type.element) for item in value)
        return f"CAST([{items}] AS {type_sql(type)})"
    if isinstance(type, StructOf):
        items = ", ".join(f"{text(f.name)}: {literal(value.get(f.id, f.initial), f.type)}" for f in type.fields)
        return f"CAST({{{items}}} AS {type_sql(type)})"
    if type == BOOLEAN:
        return "true" if value else "false"
    if type == VARCHAR:
        return text(value)
    return f"CAST({text(str(value))} AS {type.sql})" if type not in INTEGERS or value < 0 else str(value)


def shown(value: Value, type: Type) -> Value:
    """As a driver gives it: the value in a column of this type, which may be wider than the one it was written as."""
    if value is None:
        return None
    if isinstance(type, ListOf):
        return [shown(item, type.element) for item in value]
    if isinstance(type, StructOf):
        return {field.name: shown(value.get(field.id, field.initial), field.type) for field in type.fields}
    if type in FLOATS:
        return float(value)
    if type == TIMESTAMP and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def canonical(value: Value) -> Value:
    """A hashable value that is equal to that of another value only if both are of one type and the same."""
    if isinstance(value, (list, tuple)):
        return ("list", *map(canonical, value))
    if isinstance(value, dict):
        return ("struct", *((name, canonical(item)) for name, item in value.items()))
    return (type(value).__name__, repr(value))


def order_key(value: Value) -> Value:
    """By which two values of one type compare in SQL; NaN is equal to itself and above all."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
