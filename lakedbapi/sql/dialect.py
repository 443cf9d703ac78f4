"""`LakeDialect`: sqlglot's DuckDB dialect, changed where its trees would not keep the meaning of DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from lakedbapi.sql.keywords import words

_TYPED = words(
    """
    percentile_cont percentile_disc first_value last_value nth_value lag lead first last any_value
    starts_with coalesce greatest least count sum min max avg columns
    """
)
"""Functions that sqlglot must know for their syntax, or that planning looks for, and that it prints as they were."""

_WITH_SYNTAX = words("cast try_cast extract substring trim position overlay")
"""Functions whose arguments are separated by keywords."""

_struct_sql = DuckDB.Generator.TRANSFORMS[exp.Struct]


def _only(names: frozenset[str], functions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: build for name, build in functions.items() if name.casefold() in names}


class LakeDialect(DuckDB):
    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]
        # Typed functions print as others of the same purpose, with other column names, casts and treatment of NULL.
        FUNCTIONS: ClassVar[dict[str, Any]] = _only(_TYPED, DuckDB.Parser.FUNCTIONS)
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _only(_WITH_SYNTAX, DuckDB.Parser.FUNCTION_PARSERS)
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse for name, parse in DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS.items() if name != "IF"
        }

    class Generator(DuckDB.Generator):  # type: ignore[misc, valid-type]
        MULTI_ARG_DISTINCT = True
        IGNORE_RESPECT_NULLS_WINDOW_FUNCTIONS = (
            *DuckDB.Generator.IGNORE_RESPECT_NULLS_WINDOW_FUNCTIONS,
            exp.First,
            exp.Last,
        )
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **DuckDB.Generator.TRANSFORMS,
            exp.Struct: lambda self, struct: _struct_sql(self, struct) if struct.expressions else "{}",
        }
        TYPE_MAPPING: ClassVar[dict[Any, str]] = {
            **DuckDB.Generator.TYPE_MAPPING,
            exp.DataType.Type.VARCHAR: "VARCHAR",
            exp.DataType.Type.TEXT: "VARCHAR",
        }
