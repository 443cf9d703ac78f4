"""The type names of `ducklake_column.column_type`."""

from __future__ import annotations

import re

from lakedbapi.errors import NotSupportedError
from lakedbapi.model.types import SCALARS, Decimal, Scalar

STRUCT = "struct"
LIST = "list"
MAP = "map"

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
