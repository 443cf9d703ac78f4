"""What only newer engines can do: the newest DuckDB that there is for Python 3.10 is one of version 1."""

from __future__ import annotations

import duckdb
import pytest

IS_DUCKDB_2 = duckdb.__version__ >= "2"


def needs_duckdb_2(reason: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not IS_DUCKDB_2, reason=f"DuckDB 1 {reason}")
