"""Expressions without columns: told apart from others, and computed by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.engine.base import Query
from lakedbapi.errors import DataError
from lakedbapi.sql.expressions import render
from lakedbapi.sql.nulls import parameter_name

_CHANGING: tuple[type, ...] = (
    exp.Rand,
    exp.Randn,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentDatetime,
)
_CHANGING_NAMES = frozenset(
    {
        *("now", "today", "random", "setseed", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "nextval", "currval"),
        *("get_current_time", "get_current_timestamp", "transaction_timestamp", "current_localtime"),
        *("current_localtimestamp", "localtime", "localtimestamp", "currenttimestampltz", "txid_current"),
    }
)
_VOLATILE: tuple[type, ...] = (*_CHANGING, exp.CurrentUser, exp.AggFunc, exp.UDTF, exp.Window)
_PURE = frozenset(
    [
        "make_date",
        "make_time",
        "make_timestamp",
        "make_timestamptz",
        "to_timestamp",
        "epoch",
        "epoch_ms",
        "epoch_us",
        "strptime",
        "try_strptime",
        "lower",
        "upper",
        "concat",
        "trim",
        "ltrim",
        "rtrim",
        "substring",
        "substr",
        "replace",
        "abs",
        "round",
        "floor",
        "ceil",
        "sign",
        "to_years",
        "to_months",
        "to_days",
        "to_hours",
        "to_minutes",
        "to_seconds",
        "to_milliseconds",
        "to_microseconds",
    ]
)
"""Functions without a sqlglot type of their own whose value depends on the arguments only."""


def is_constant(expression: exp.Expression) -> bool:
    """Whether it has neither a column nor a subquery, and gives the same value each time.

    `now()` counts as changing: a plan and the query that it is for would see different values.
    """
    return not any(_varies(node) for node in expression.walk())


def volatile_function(expression: exp.Expression) -> str | None:
    """SQL of the first function in it whose value changes from one query to the next; None if there is none."""
    for node in expression.walk():
        name = str(node.this) if isinstance(node, exp.Anonymous) else type(node).__name__
        if isinstance(node, _CHANGING) or name.casefold() in _CHANGING_NAMES:
            return str(node.sql(dialect="duckdb"))
    return None


def evaluate(context: Context, expressions: Sequence[exp.Expression]) -> list[Any]:
    """The Python values of expressions without columns, with the statement's parameters; one engine query at most."""
    values = [_plain(context, expression) for expression in expressions]
    rest = [number for number, value in enumerate(values) if value is _UNKNOWN]
    if rest:
        items = ", ".join(f"({render(expressions[n])}\n) AS v{n}" for n in rest)
        result = context.engine.fetch(Query(f"SELECT {items}", parameters=context.parameters))
        try:
            row = result.to_pylist()[0]
        except (OverflowError, ValueError) as error:
            raise DataError("an argument is a date or time outside of the years 1 to 9999: give another") from error
        for n in rest:
            values[n] = row[f"v{n}"]
    return values


_UNKNOWN = object()


def _plain(context: Context, expression: exp.Expression) -> Any:
    """The value of a literal or parameter, `_UNKNOWN` for anything that needs the engine."""
    if isinstance(expression, exp.Literal):
        if expression.is_string:
            return expression.this
        return int(expression.this) if expression.this.isdigit() else _UNKNOWN
    name = parameter_name(expression)
    return context.parameters.get(name, _UNKNOWN) if name is not None else _UNKNOWN


def constant(context: Context, expression: exp.Expression) -> Any:
    """The Python value of one expression without columns."""
    return evaluate(context, [expression])[0]


def _varies(node: Any) -> bool:
    if isinstance(node, (exp.Column, exp.Star, exp.Query, exp.Subquery, exp.Lambda, *_VOLATILE)):
        return True
    if isinstance(node, exp.Var):
        return str(node.this).startswith("(")  # text that only the engine can parse, as opposed to a unit of time
    if isinstance(node, exp.Anonymous):
        return str(node.this).casefold() not in _PURE
    return type(node).__name__ in ("Uuid", "CurrentTimestampLTZ", "Localtime", "Localtimestamp", "GenerateSeries")
