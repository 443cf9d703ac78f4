"""Python and Arrow values as DuckDB parameters."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from lakedbapi.engine.duckdb import driver
from lakedbapi.errors import DataError, ProgrammingError

_HUGEINT = 1 << 127
_UHUGEINT = 1 << 128


def bind(sql: str, values: Mapping[str, object]) -> dict[str, object]:
    """The values that `sql` refers to, in types that DuckDB takes.

    ProgrammingError when one is missing, DataError when DuckDB has no type for one.
    """
    if not values and "$" not in sql:
        return {}
    statements = duckdb.extract_statements(sql)
    names = sorted(set().union(*(statement.named_parameters for statement in statements)), key=_parameter_order)
    given = {name.lower(): value for name, value in values.items()}
    missing = [name for name in names if name.lower() not in given]
    if missing:
        raise ProgrammingError(
            f"No value was given for {', '.join('$' + name for name in missing)}: the statement uses {len(names)}"
            f" parameters, {len(values)} were passed. Pass a value for each."
        )
    return {name: _wide(to_duckdb(given[name.lower()], f"${name}")) for name in names}


def _wide(value: object) -> object:
    """DuckDB 1 turns integers of more than 64 bits into doubles, unless they come as text with a type."""
    if driver.MAJOR >= 2 or not isinstance(value, int) or -(1 << 63) <= value < (1 << 64):
        return value
    typed: Any = duckdb.Value  # version 1 takes the type's name
    return typed(str(value), "HUGEINT" if value < _HUGEINT else "UHUGEINT")


def _parameter_order(name: str) -> tuple[bool, int, str]:
    return (not name.isdecimal(), int(name) if name.isdecimal() else 0, name)


def to_duckdb(value: object, where: str) -> object:
    """`where` names the parameter in errors."""
    if isinstance(value, datetime.datetime) and value != value:  # pandas' NaT
        return None
    if value is None or isinstance(
        value, (bool, float, str, bytes, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)
    ):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return to_duckdb(value.value, where)
    if isinstance(value, int):
        return _integer(value, where)
    if isinstance(value, decimal.Decimal):
        return _decimal(value, where)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return _list([to_duckdb(item, where) for item in value], where)
    if isinstance(value, dict):
        return {key: to_duckdb(item, where) for key, item in value.items()}
    if isinstance(value, np.generic):
        return _numpy(value, where)
    if isinstance(value, pa.Scalar):
        return to_duckdb(value.as_py(), where)
    if isinstance(value, pa.ChunkedArray):
        return to_duckdb(value.to_pylist(), where)
    if type(value).__name__ == "NAType":  # pandas' NA, without importing it
        return None
    if hasattr(value, "isna"):
        return _pandas(value, where)
    if hasattr(value, "tolist"):  # arrays of NumPy, pandas, Arrow and Python
        return to_duckdb(value.tolist(), where)
    raise DataError(
        f"Parameter {where}: a value of type {type(value).__module__}.{type(value).__qualname__} has no SQL type."
        " Pass a number, text, bytes, date, time, datetime, timedelta, UUID, list, dict or None."
    )


def _list(items: list[object], where: str) -> list[object]:
    """DataError for NaN among texts, which would become one: pandas and NumPy mean a missing value by it."""
    if any(isinstance(item, float) and item != item for item in items) and any(isinstance(item, str) for item in items):
        raise DataError(f"Parameter {where}: NaN among texts is no text. Pass None for NULL.")
    return items


def _pandas(value: Any, where: str) -> list[object]:
    """A series, index or array. Types of pandas' own have NaN or NA for a missing value; NaN of NumPy's is a number."""
    items = [to_duckdb(item, where) for item in value.tolist()]
    if isinstance(value.dtype, np.dtype):
        return _list(items, where)
    return [None if is_missing else item for item, is_missing in zip(items, value.isna(), strict=True)]


def _integer(value: int, where: str) -> object:
    if -_HUGEINT <= value < _UHUGEINT:
        return value
    raise DataError(f"Parameter {where}: the integer {value} has more than 128 bits. Pass it as text, or as a float.")


def _decimal(value: decimal.Decimal, where: str) -> object:
    if not value.is_finite():
        return float(value)
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    assert isinstance(exponent, int)
    if max(len(digits) + max(exponent, 0), -exponent) > 38:
        raise DataError(
            f"Parameter {where}: the decimal {value} has more than 38 digits. Round it, or pass it as a float or text."
        )
    return value if exponent <= 0 else decimal.Decimal(int(value))  # DuckDB 1 reads 1E+3 as 1


def _numpy(value: np.generic, where: str) -> object:
    if isinstance(value, (np.datetime64, np.timedelta64)):
        # Python's types end at microseconds; a finer value would come out as a bare integer.
        plain = value.item()
        return value.astype(f"{value.dtype.kind}8[us]").item() if isinstance(plain, int) else plain
    return to_duckdb(value.item(), where)
