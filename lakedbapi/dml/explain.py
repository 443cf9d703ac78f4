"""EXPLAIN."""

from __future__ import annotations

from lakedbapi.context import Context


def explain(context: Context, statement: object) -> list[str]:
    raise NotImplementedError
