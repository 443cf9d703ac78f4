"""The embedded engine: DuckDB."""

from __future__ import annotations

from lakedbapi.engine.duckdb.engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
