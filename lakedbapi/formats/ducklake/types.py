"""The type names of `ducklake_column.column_type`."""

from __future__ import annotations

import re

from lakedbapi.errors import NotSupportedError
from lakedbapi.model.types import SCALARS, Decimal, List, Map, Scalar, Struct, Type

STRUCT = "struct"
LIST = "list"
MAP = "map"
NESTED = frozenset({STRUCT, LIST, MAP})

_ALIASES = {"timestamp_us": "timestamp", "bool": "boolean"}
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def parse_type(name: str) -> Scalar | Decimal:
    """The type of a column that has no children; NotSupportedError for a name that format 1.0 does not have."""
    spelled = name.strip().lower()
    spelled = _ALIASES.get(spelled, spelled)
    if spelled in SCALARS:
        return Scalar(spelled)
    decimal = _DECIMAL.fullmatch(spelled)
    if decimal is None:
        raise NotSupportedError(f"DuckLake column type {name!r} is not known; only the types of format 1.0 can be read")
    return Decimal(int(decimal[1]), int(decimal[2]))


def type_name(type: Type) -> str:
    """`int32`, `decimal(9,2)`, `struct`: what stands in the row of a column, whose children have rows of their own."""
    if isinstance(type, Scalar):
        return type.name
    if isinstance(type, Decimal):
        return f"decimal({type.precision},{type.scale})"
    if isinstance(type, Struct):
        return STRUCT
    if isinstance(type, List):
        return LIST
    assert isinstance(type, Map)
    return MAP
