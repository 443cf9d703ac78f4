"""CALL of a function that returns rows, and of which catalog a CALL is."""

from __future__ import annotations

from lakedbapi.context import Context
from lakedbapi.errors import ProgrammingError
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.query.names import catalog_alias
from lakedbapi.sql.references import PREFIX
from lakedbapi.sql.statements import Call, Function, Select, Special

_RESULT = "lake_call_result"


def called_catalog(context: Context, call: Call, positional: list[object]) -> str:
    """The catalog that the first argument names, which is taken out of `positional`. Where the procedure is called
    without `ducklake_` and the argument names none, it is the current one."""
    first = positional[0] if positional else None
    is_short = not call.name.last.casefold().startswith(PREFIX)
    if is_short and not (isinstance(first, str) and catalog_alias(context, first)):
        return context.search_path[0]
    if not isinstance(first, str):
        raise ProgrammingError(f"{call.name} needs the catalog's name as its first argument")
    return str(positional.pop(0))


def call_as_select(call: Call) -> Select:
    """`SELECT * FROM name(arguments)`."""
    special = Special(_RESULT, Function(call.name, call.arguments, call.named))
    return Select(f"SELECT * FROM {quote_identifier(_RESULT)}", frozenset({_RESULT}), (special,))
