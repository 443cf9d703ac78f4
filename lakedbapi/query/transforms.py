"""Partition transforms of single values."""

from __future__ import annotations

import datetime

import pyarrow as pa

from lakedbapi.model.bucket import buckets
from lakedbapi.model.types import Scalar, Type

_DATED = frozenset({"date", "timestamp"})
_HASHED = frozenset(
    [
        "boolean",
        "int8",
        "int16",
        "int32",
        "int64",
        "float32",
        "float64",
        "date",
        "timestamp",
        "timestamptz",
        "varchar",
    ]
)
"""Types for which all writers agree on the hash."""


def transform_constant(transform: str, type: Type, value: pa.Scalar | None) -> int | None:
    """`value` of a column of `type` under `year`, `month`, `day`, `hour`, `bucket(N)`; None where it cannot be told."""
    if value is None or not value.is_valid or not isinstance(type, Scalar):
        return None
    if transform in ("year", "month", "day", "hour"):
        return _calendar_part(transform, type, value)
    if transform.startswith("bucket(") and transform[7:-1].isdigit():
        if type.name not in _HASHED:
            return None
        bucket: int = buckets(pa.array([value]), int(transform[7:-1]), type)[0].as_py()
        return bucket
    return None


def _calendar_part(transform: str, type: Scalar, value: pa.Scalar) -> int | None:
    if type.name not in _DATED:
        return None
    try:
        date = value.as_py()
    except (OverflowError, ValueError):
        return None
    if transform == "hour" and not isinstance(date, datetime.datetime):
        return 0
    part: int = getattr(date, transform)
    return part
