"""Which words of DuckDB's SQL cannot be names."""

from __future__ import annotations

from lakedbapi.model.sql_types import RESERVED


def words(text: str) -> frozenset[str]:
    """The set of the words of `text`."""
    return frozenset(text.split())


FUNCTION_OR_TYPE = words(
    """
    anti asof at authorization binary collation concurrently cross freeze full generated glob ilike inner is isnull
    join left like natural notnull outer overlaps positional right semi similar tablesample verbose
    """
)
"""Not an identifier of a relation or alias unless quoted: these continue the clause."""

NOT_AN_ALIAS = RESERVED | FUNCTION_OR_TYPE

OPERATOR_OR_NAME = words("escape by between set values filter rows range groups sample of recursive call first next")
"""Words that an operand can follow and that can be names as well."""

BEFORE_OPERAND = (
    RESERVED - words("asc desc end false null true default array")
    | words("like ilike glob similar is")
    | OPERATOR_OR_NAME
)
"""Words that an operand can follow, never an operator: `:x` after one of them is a parameter."""

QUERY_STARTS = words("select from with values table pivot unpivot pivot_wider pivot_longer describe summarize show")
