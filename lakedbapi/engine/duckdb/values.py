"""Conversion between what Arrow holds (`model/arrow.py`) and SQL types."""

from __future__ import annotations

from lakedbapi.model.sql_types import sql_type
from lakedbapi.model.types import Scalar, Type


def from_arrow(expression: str, type: Type) -> str:
    """SQL for a value of `type` from its Arrow form."""
    if type == Scalar("variant"):
        return f"CAST(CAST({expression} AS JSON) AS VARIANT)"
    return f"CAST({expression} AS {sql_type(type)})"
