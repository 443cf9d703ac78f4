"""Expressions in the definition of a table: defaults, checks, sort keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.engine.base import Query, RelationName, ScanRelation
from lakedbapi.errors import Error, NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Catalog
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.scan import Scan
from lakedbapi.model.sql_types import constant_expression, quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Field, children
from lakedbapi.query.constants import is_constant
from lakedbapi.query.stored import runnable_default
from lakedbapi.sql.expressions import parse_expression, render


def check_default(context: Context, catalog: Catalog, field: Field) -> None:
    """ProgrammingError unless the default is an expression without columns that can be cast to the column's type."""
    if field.default is None:
        return
    value = runnable_default(catalog, field.default, f"the default of column {field.name!r}")
    tree = parse_expression(value)
    if tree is not None and tree.find(exp.Column, exp.Query) is not None:
        raise ProgrammingError(f"the default of column {field.name!r} cannot depend on columns or queries")
    try:
        context.engine.fetch(Query(f"SELECT CAST(({value}\n) AS {sql_type(field.type)})"))
    except Error as error:
        raise type(error)(f"the default of column {field.name!r} has no value of its type: {error}") from error


def lasting_default(context: Context, field: Field) -> str | None:
    """The default as text, for rows of files that never had the column; None where it has no one value."""
    tree = None if field.default is None else parse_expression(field.default)
    return initial_default(context, field) if tree is not None and is_constant(tree) else None


def initial_default(context: Context, field: Field) -> str | None:
    """The default as text, for the rows that are there before the column.

    NotSupportedError when it is another value at another time, or in each row.
    """
    if field.default is None:
        return None
    tree = parse_expression(field.default)
    if tree is None or not is_constant(tree):
        raise NotSupportedError(
            f"column {field.name!r} cannot be added with the default {field.default}, which has no one value for the "
            "rows that exist: add it without default, UPDATE it, then ALTER COLUMN … SET DEFAULT"
        )
    text = f"SELECT CAST(CAST(({field.default}\n) AS {sql_type(field.type)}) AS VARCHAR)"
    value: str | None = context.engine.fetch(Query(text)).column(0)[0].as_py()
    return value


def has_initial_default(catalog: Catalog, field: Field) -> bool:
    """Whether all programs would give the field's default to rows that are older than it."""
    return catalog.capabilities.nested_initial_defaults or not children(field.type)


def kept_as_value(context: Context, catalog: Catalog, field: Field) -> Field:
    """The field with its default as the constant that it is, where the format keeps it so and it has one value."""
    text = lasting_default(context, field) if catalog.capabilities.constant_defaults else None
    return field if text is None else replace(field, default=constant_expression(text, field.type))


def initial_value(context: Context, field: Field) -> pa.Scalar:
    """The value, in Arrow, of rows that are older than the column."""
    type = arrow_type(field.type)
    if field.initial_default is None:
        return pa.scalar(None, type)
    value = f"CAST({quote_literal(field.initial_default)} AS {sql_type(field.type)})"
    shown = f"CAST({value} AS VARCHAR)" if pa.types.is_string(type) else value
    return context.engine.fetch(Query(f"SELECT {shown}")).column(0).cast(type)[0]


def check_expressions(context: Context, table: TableInfo, what: str, expressions: Iterable[str]) -> None:
    """ProgrammingError unless all are expressions over the table's columns. `what` is their purpose."""
    items = [f"({expression}\n)" for expression in expressions]
    if not items:
        return
    name = RelationName.local("_lake_defined")
    text = f"SELECT {', '.join(items)} FROM {name.sql} AS {quote_identifier(table.name)}"
    try:
        context.engine.fetch(Query(text, {name: ScanRelation(Scan(table.schema))}))
    except Error as error:
        raise ProgrammingError(f"{what} of table {table.name!r}: {error}") from error


def columns_in(expression: str) -> frozenset[str]:
    """The casefolded names of the columns that an expression names; of one that only the engine understands, none."""
    tree = parse_expression(expression)
    return frozenset() if tree is None else frozenset(node.parts[0].name.casefold() for node in _columns(tree))


def with_renamed_columns(expression: str, names: Mapping[str, str]) -> str:
    """The expression with columns renamed (casefolded old name -> new name)."""
    tree = parse_expression(expression)
    if tree is None or not any(node.name.casefold() in names for node in _columns(tree)):
        return expression
    for node in _columns(tree):
        if node.name.casefold() in names:
            node.set("this", exp.to_identifier(names[node.name.casefold()], quoted=True))
    return render(tree)


def _columns(tree: exp.Expression) -> list[exp.Column]:
    return list(tree.find_all(exp.Column))
