"""One spelling for rows, whoever read them. Imported on both sides: needs pyarrow alone."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa


def text(value: Any) -> Any:
    """One spelling for a value, whatever its Arrow type."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.timezone.utc).isoformat() if value.tzinfo else value.isoformat()
    if isinstance(value, (dt.date, decimal.Decimal)):
        return str(value)
    if isinstance(value, dict):
        return [text(item) for item in value.values()]
    return [text(item) for item in value]


def rows_of(table: pa.Table) -> list[list[Any]]:
    columns = [[text(value) for value in column.to_pylist()] for column in table.columns]
    return sorted([list(row) for row in zip(*columns, strict=True)], key=json.dumps)
