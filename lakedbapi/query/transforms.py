"""Partition transforms of single values."""

from __future__ import annotations

import datetime
import struct

import pyarrow as pa

from lakedbapi.model.types import Scalar, Type

_DATED = frozenset({"date", "timestamp"})
_HASHED_AS_INTEGER = frozenset("boolean int8 int16 int32 int64 uint8 uint16 uint32 date timestamp timestamptz".split())


def transform_constant(transform: str, type: Type, value: pa.Scalar | None) -> int | None:
    """`value` of a column of `type` under `year`, `month`, `day`, `hour`, `bucket(N)`; None where it cannot be told."""
    if value is None or not value.is_valid or not isinstance(type, Scalar):
        return None
    if transform in ("year", "month", "day", "hour"):
        return _calendar_part(transform, type, value)
    if transform.startswith("bucket(") and transform[7:-1].isdigit():
        data = _bytes(type, value)
        return None if data is None else (murmur3(data) & 0x7FFFFFFF) % int(transform[7:-1])
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


def _bytes(type: Scalar, value: pa.Scalar) -> bytes | None:
    """What is hashed: integers as 8 bytes, text as UTF-8."""
    if type.name in _HASHED_AS_INTEGER:
        number = value.as_py() if pa.types.is_boolean(value.type) else value.cast(_integer_type(value.type)).as_py()
        return struct.pack("<q", int(number))
    return value.as_py().encode() if type.name == "varchar" else None


def _integer_type(type: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_date32(type) else pa.int64()


def murmur3(data: bytes) -> int:
    """MurmurHash3 x86, 32 bits, seed 0, unsigned."""
    hashed = 0
    whole = len(data) - len(data) % 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        hashed = (_rotate(hashed ^ _mix(word), 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    if len(data) > whole:
        hashed ^= _mix(int.from_bytes(data[whole:], "little"))
    hashed ^= len(data)
    hashed = ((hashed ^ hashed >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    hashed = ((hashed ^ hashed >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    return hashed ^ hashed >> 16


def _mix(word: int) -> int:
    return (_rotate((word * 0xCC9E2D51) & 0xFFFFFFFF, 15) * 0x1B873593) & 0xFFFFFFFF


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & 0xFFFFFFFF
