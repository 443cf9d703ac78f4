"""CHECK constraints as conditions of a query."""

from __future__ import annotations

from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import Constraint, TableInfo
from lakedbapi.query.stored import runnable

ENFORCED = ("check", "invariant", "void")
"""Kinds of constraints that every new row must satisfy."""


def violation(catalog: Catalog, table: TableInfo, check: Constraint) -> str:
    """SQL that is TRUE for rows that violate `check`: where it is FALSE, and as the format says where it is NULL."""
    what = f"CHECK constraint {check.name!r} of {table.name}" if check.name else f"a CHECK constraint of {table.name}"
    condition = runnable(catalog, table.schema, check.expression or "", what)
    return f"({condition}\n) {'IS NOT TRUE' if catalog.capabilities.nulls_violate_checks else 'IS FALSE'}"
