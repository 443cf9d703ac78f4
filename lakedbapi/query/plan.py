"""From a SELECT to an engine query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.engine.base import Query, Relation, RelationName
from lakedbapi.query.exhaustive import aggregated, cuts_unsorted
from lakedbapi.query.filters import filters, preserved_tables, table_name
from lakedbapi.query.hidden import reveal
from lakedbapi.query.names import resolve_relation
from lakedbapi.query.relations import columns_of, hidden_names, present, relations
from lakedbapi.sql.expressions import render
from lakedbapi.sql.guard import is_file_name
from lakedbapi.sql.nulls import without_compared_nulls
from lakedbapi.sql.statements import Name, Select


def plan(context: Context, select: Select) -> Query:
    """The engine query of a SELECT: its text, everything that it names, the parameters."""
    text, tree = _without_compared_nulls(context, select)
    hidden = reveal(
        text,
        tree,
        select.identifiers,
        lambda name: columns_of(context, select.specials, name),
        hidden_names(context),
    )
    found = relations(
        context,
        present(select.identifiers, select.specials, [select.tree]),
        select.specials,
        predicates=filters(select.tree),
        hidden=hidden.columns,
        aggregated=aggregated(select.tree),
        in_order=cuts_unsorted(select.tree),
    )
    _require_known(context, select, found)
    return Query(hidden.text, found, context.parameters, context.search_path)


def _without_compared_nulls(context: Context, select: Select) -> tuple[str, exp.Expression | None]:
    """The text and its tree; parameters are known now, and may be NULL."""
    if select.tree is None:
        return select.text, None
    tree = without_compared_nulls(select.tree, context.parameters)
    return (select.text if tree is select.tree else render(tree)), tree


def _require_known(context: Context, select: Select, found: Mapping[RelationName, Relation]) -> None:
    """ProgrammingError, with names that are near, for a table that is none of ours or the engine's, and no file."""
    if select.tree is None:
        return
    known = {name.name.casefold() for name in found}
    known |= {cte.alias.casefold() for cte in select.tree.find_all(exp.CTE)}
    places = {part.casefold() for name in found for part in (name.catalog, name.schema)} | _PLACES_OF_THE_ENGINE
    for table in select.tree.find_all(exp.Table):
        name, place = table_name(table), table.db.casefold()
        if context.allow_external and not place and is_file_name(name):
            continue
        misplaced = place != "" and place not in places
        if isinstance(table.this, exp.Identifier) and (
            misplaced or (name not in known and not name.startswith(_OF_THE_ENGINE))
        ):
            resolve_relation(context, Name(tuple(part.name for part in table.parts)))


_OF_THE_ENGINE = ("duckdb_", "pg_", "pragma_", "sqlite_")
"""What the names of the engine's system tables begin with."""

_PLACES_OF_THE_ENGINE = frozenset({"information_schema", "pg_catalog", "system", "temp", "memory", "main"})


def nullability(context: Context, select: Select) -> tuple[bool | None, ...]:
    """For each result column whether it can be NULL, None = not known; empty when nothing is known."""
    tree = select.tree
    if not isinstance(tree, exp.Select) or tree.args.get("joins") or tree.args.get("with_") or tree.args.get("group"):
        return ()
    tables = list(preserved_tables(tree))
    if len(tables) != 1 or select.specials:
        return ()
    nullable = _nullable_columns(context, select, table_name(tables[0]))
    shown: list[bool | None] = []
    for item in tree.expressions:
        if isinstance(item, exp.Star):
            if any(item.args.values()):
                return ()
            shown += nullable.values()
        else:
            column = item.unalias()
            shown.append(nullable.get(column.name.casefold()) if isinstance(column, exp.Column) else None)
    return tuple(shown) if nullable else ()


def _nullable_columns(context: Context, select: Select, name: str) -> dict[str, bool]:
    """By casefolded column of the one table called `name`; empty when there are several, or none."""
    alias, schema = context.search_path
    if alias not in context.transaction.catalogs:
        return {}
    table = context.transaction.view(alias, context.as_of).table(schema, name)
    is_qualified = any(node.args.get("db") for node in _tables(select))
    if table is None or is_qualified:
        return {}
    return {column.name.casefold(): column.nullable for column in table.schema.fields}


def _tables(select: Select) -> Sequence[exp.Table]:
    return [] if select.tree is None else list(select.tree.find_all(exp.Table))
