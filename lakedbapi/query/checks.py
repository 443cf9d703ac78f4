"""CHECK constraints as conditions of a query."""

from __future__ import annotations

from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import Constraint


def violation(catalog: Catalog, check: Constraint) -> str:
    """SQL that is TRUE for rows that violate `check`: where it is FALSE, and as the format says where it is NULL."""
    return f"({check.expression}\n) {'IS NOT TRUE' if catalog.capabilities.nulls_violate_checks else 'IS FALSE'}"
