"""Whether the rows of a table satisfy a constraint that it is to have."""

from __future__ import annotations

from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.engine.base import Query, RelationName, ScanRelation
from lakedbapi.errors import IntegrityError
from lakedbapi.model.catalog import Constraint, TableInfo
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.query.checks import violation
from lakedbapi.query.prune import prune
from lakedbapi.sql.expressions import parse_expression


def require_no_nulls(context: Context, alias: str, table: TableInfo, column: str) -> None:
    """IntegrityError when a row has NULL in the column."""
    condition = exp.Is(this=exp.column(column, quoted=True), expression=exp.Null())
    count = _count(context, alias, table, condition, f"{quote_identifier(column)} IS NULL")
    if count:
        raise IntegrityError(
            f"column {table.name}.{column} cannot be NOT NULL: {count} rows have NULL in it; UPDATE them first"
        )


def require_true(context: Context, alias: str, table: TableInfo, check: Constraint) -> None:
    """IntegrityError when a row violates a CHECK."""
    tree = parse_expression(check.expression or "")
    condition = None if tree is None else exp.Not(this=exp.Paren(this=tree))
    catalog = context.transaction.view(alias).catalog
    if catalog.capabilities.nulls_violate_checks:
        condition = None
    count = _count(context, alias, table, condition, violation(catalog, table, check))
    if count:
        raise IntegrityError(
            f"CHECK ({check.expression}) is violated by {count} rows of {table.name}; UPDATE or DELETE them first"
        )


def _count(context: Context, alias: str, table: TableInfo, condition: exp.Expression | None, text: str) -> int:
    """The number of rows for which `text` is TRUE, where `condition` is the same for pruning."""
    contents = context.transaction.view(alias).contents(table)
    keep = prune(context, contents, condition, table.name).keep
    name = RelationName.local("_lake_checked")
    query = f"SELECT count(*) FROM {name.sql} AS {quote_identifier(table.name)} WHERE {text}"
    found = context.engine.fetch(Query(query, {name: ScanRelation(contents.scan(keep)[0])}))
    return int(found.column(0)[0].as_py())
