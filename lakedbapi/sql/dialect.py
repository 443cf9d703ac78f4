"""`LakeDialect`: sqlglot's DuckDB dialect where it keeps the meaning of DuckDB's SQL."""

from __future__ import annotations

from sqlglot.dialects.duckdb import DuckDB


class LakeDialect(DuckDB):
    pass
