"""Which types hold every value of another one."""

from __future__ import annotations

from lakedbapi.model.types import Decimal, Scalar, Type

_WIDER: dict[str, str] = {
    "int8": "int16 int32 int64 float64",
    "int16": "int32 int64 float64",
    "int32": "int64 float64",
    "uint8": "uint16 uint32 uint64 int16 int32 int64 float64",
    "uint16": "uint32 uint64 int32 int64 float64",
    "uint32": "uint64 int64 float64",
    "float32": "float64",
    "date": "timestamp",
    "timestamp": "timestamp_ns",
}
_DIGITS = {"int8": 10, "int16": 10, "int32": 10, "int64": 20}
"""How many digits before the point a decimal needs to take the place of an integer."""


def is_wider(old: Type, new: Type, *, to_decimals: bool) -> bool:
    """Of types without fields, each of which is as wide as itself.

    `to_decimals`: whether integers may become decimals, and decimals get a larger scale.
    """
    if old == new:
        return True
    if isinstance(new, Decimal):
        return (to_decimals and _fits(old, new)) or _has_more_digits(old, new)
    if isinstance(old, Scalar) and isinstance(new, Scalar):
        return new.name in _WIDER.get(old.name, "").split()
    return False


def _has_more_digits(old: Type, new: Decimal) -> bool:
    return isinstance(old, Decimal) and new.scale == old.scale and new.precision >= old.precision


def _fits(old: Type, new: Decimal) -> bool:
    if isinstance(old, Decimal):
        return 0 <= new.scale - old.scale <= new.precision - old.precision
    digits = _DIGITS.get(old.name) if isinstance(old, Scalar) else None
    return digits is not None and new.precision - new.scale >= digits
