"""Which types a column can be changed to: those that hold every value of the old one."""

from __future__ import annotations

from dataclasses import replace

from lakedbapi.ddl.paths import with_children
from lakedbapi.errors import NotSupportedError
from lakedbapi.model.sql_types import sql_type
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Struct, Type, children

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


def widened(field: Field, new: Type, *, to_decimals: bool) -> Field:
    """The field with the type `new`, fields in it keeping their ids. NotSupportedError when that is not wider.

    `to_decimals`: whether integers may become decimals, and decimals get a larger scale.
    """
    old = field.type
    if _same_kind(old, new):
        fields = children(field.type)
        others = children(new)
        if [f.name.casefold() for f in fields] != [f.name.casefold() for f in others]:
            raise NotSupportedError(
                f"the fields of {field.name!r} cannot be changed by a new type: "
                "use ALTER TABLE … ADD, DROP or RENAME COLUMN with the path of the field"
            )
        inner = (widened(f, o.type, to_decimals=to_decimals) for f, o in zip(fields, others, strict=True))
        return with_children(field, tuple(inner))
    if not (_is_wider(old, new) or (to_decimals and isinstance(new, Decimal) and _fits(old, new))):
        raise NotSupportedError(
            f"{field.name!r} cannot be changed from {sql_type(old)} to {sql_type(new)}: data files keep their type, "
            "and not all of its values fit. Add a column, UPDATE it, DROP the old one and RENAME the new one"
        )
    return replace(field, type=new)


def _same_kind(old: Type, new: Type) -> bool:
    return isinstance(old, (Struct, List, Map)) and type(old) is type(new)


def _is_wider(old: Type, new: Type) -> bool:
    if old == new:
        return True
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        return new.scale == old.scale and new.precision >= old.precision
    if isinstance(old, Scalar) and isinstance(new, Scalar):
        return new.name in _WIDER.get(old.name, "").split()
    return False


def _fits(old: Type, new: Decimal) -> bool:
    if isinstance(old, Decimal):
        return 0 <= new.scale - old.scale <= new.precision - old.precision
    digits = _DIGITS.get(old.name) if isinstance(old, Scalar) else None
    return digits is not None and new.precision - new.scale >= digits
