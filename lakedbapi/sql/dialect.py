"""`LakeDialect`: sqlglot's DuckDB dialect, changed where its trees would not keep the meaning of DuckDB's SQL."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot.dialects.duckdb import DuckDB

_MANGLED = frozenset(("LIST_SORT", "ARRAY_SORT", "LIST_REVERSE_SORT", "ARRAY_REVERSE_SORT", "LOG2", "TRY"))
"""Functions that some version of sqlglot prints as another one or with arguments missing."""


class LakeDialect(DuckDB):
    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: build for name, build in DuckDB.Parser.FUNCTIONS.items() if name not in _MANGLED
        }
