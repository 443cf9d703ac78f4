"""CALL of a function that returns rows."""

from __future__ import annotations

from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.sql.statements import Call, Function, Select, Special

_RESULT = "lake_call_result"


def call_as_select(call: Call) -> Select:
    """`SELECT * FROM name(arguments)`."""
    special = Special(_RESULT, Function(call.name, call.arguments, call.named))
    return Select(f"SELECT * FROM {quote_identifier(_RESULT)}", frozenset({_RESULT}), (special,))
