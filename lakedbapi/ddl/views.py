"""CREATE VIEW and DROP VIEW."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.ddl.arrow_types import column
from lakedbapi.ddl.staging import require_views, stage_dropped_view, stage_view
from lakedbapi.engine.base import Query
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.model.catalog import CATALOG_PLACEHOLDER, ViewInfo, provisional_id
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Schema
from lakedbapi.query.names import DEFAULT_SCHEMA, NewName, find_relation, find_schema, resolve_new, resolve_view
from lakedbapi.query.relations import relations, without_rows
from lakedbapi.sql.expressions import render
from lakedbapi.sql.references import names_ref
from lakedbapi.sql.statements import CreateView, DropTable, Name, Named, Special


def create_view(context: Context, statement: CreateView) -> None:
    place = resolve_new(context, statement.name)
    catalog = place.view.catalog
    require_views(catalog, f"CREATE VIEW {statement.name}")
    if place.table is not None:
        raise ProgrammingError(f"{statement.name} is a table; drop it, or choose another name for the view")
    if place.info is not None and statement.if_not_exists:
        return
    if place.info is not None and not statement.or_replace:
        raise ProgrammingError(f"view {statement.name} exists already; write IF NOT EXISTS or OR REPLACE")
    if place.info is not None:
        stage_dropped_view(context, place.alias, place.info)
    view = ViewInfo(
        provisional_id(),
        place.schema.id,
        place.name,
        _stored_text(context, place, statement),
        column_aliases=statement.column_aliases,
    )
    stage_view(context, place.alias, view)
    shown = _bind(context, place)
    if catalog.capabilities.typed_views:
        view = replace(view, schema=Schema(tuple(map(column, shown))))
        catalog.check_view(view)
        stage_view(context, place.alias, view)


def drop_view(context: Context, statement: DropTable) -> None:
    if statement.if_exists and find_relation(context, statement.name) is None:
        return
    alias, view, _, info = resolve_view(context, statement.name)
    require_views(view.catalog, f"DROP VIEW {statement.name}")
    stage_dropped_view(context, alias, info)


def _bind(context: Context, place: NewName) -> pa.Schema:
    """The columns of the staged view. The engine binds it, so that unknown tables and columns, and a view that reads
    itself, are found now."""
    parts = (place.alias, place.schema.name, place.name)
    identifiers = frozenset(part.casefold() for part in parts)
    inner = replace(context, search_path=parts[:2], registered={})
    found = without_rows(relations(inner, identifiers, ()))
    path = ".".join(map(quote_identifier, parts))
    return context.engine.fetch(Query(f"SELECT * FROM {path} LIMIT 0", found, {}, parts[:2])).schema


def _stored_text(context: Context, place: NewName, statement: CreateView) -> str:
    """The query as written, if it means the same wherever the view is read from.

    Otherwise its tables are qualified: with the placeholder for the own catalog, and with the current schema.
    """
    home = (place.alias, place.schema.name)
    query = statement.query
    is_home = tuple(part.casefold() for part in context.search_path) == tuple(part.casefold() for part in home)
    nested = {special.name: name for special in query.specials if (name := _nested(special))}
    schemas = {schema.name.casefold() for schema in place.view.schemas.values() if schema.parts}
    if is_home and not (nested or query.identifiers & {place.alias.casefold(), *schemas}):
        return statement.sql
    if query.tree is None or len(nested) < len(query.specials):
        if is_home:
            return statement.sql
        raise NotSupportedError(
            f"view {statement.name} cannot be created from schema {'.'.join(context.search_path)}, because its query "
            f"would mean something else in {'.'.join(home)}; USE {'.'.join(home)} first"
        )
    tree = query.tree.copy()
    common = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier):
            _qualify(context, place, table, nested.get(table.name), common)
    return render(tree)


def _nested(special: Special) -> Name | None:
    """The name of a relation in a schema inside of another, that is no branch or tag."""
    relation = special.relation
    return relation.of if isinstance(relation, Named) and not names_ref(relation.of.last) else None


def _qualify(context: Context, place: NewName, table: exp.Table, named: Name | None, common: set[str]) -> None:
    """`named`: the name as it was written, where another stands for it in `table`."""
    if named is not None:
        resolved = find_relation(context, named)
        if resolved is not None:
            _rename(place, table, resolved.alias, resolved.schema.names, named.last)
        return
    parts = [part.name for part in table.parts]
    if len(parts) == 1 and parts[0].casefold() in common:
        return
    schema: tuple[str, ...]
    if len(parts) == 1:
        alias, schema = context.search_path[0], context.search_path[1:]
    elif len(parts) == 2:
        found = find_schema(context, Name((parts[0],)))
        if found is None:
            if parts[0].casefold() != place.alias.casefold():
                return
            alias = place.alias
            schema = (context.search_path[1] if context.search_path[0] == alias else DEFAULT_SCHEMA,)
        else:
            alias, schema = found.alias, found.schema.names
    else:
        alias, schema = parts[0], (parts[1],)
    nested = find_schema(context, Name((alias, *schema))) if len(schema) == 1 else None
    _rename(place, table, alias, schema if nested is None else nested.schema.names, parts[-1])


def _rename(place: NewName, table: exp.Table, alias: str, schema: Sequence[str], name: str) -> None:
    is_own = alias.casefold() == place.alias.casefold()
    catalog = (
        exp.Identifier(this=CATALOG_PLACEHOLDER, quoted=False) if is_own else exp.to_identifier(alias, quoted=True)
    )
    first, *others = (exp.to_identifier(part, quoted=True) for part in schema)
    last = exp.to_identifier(name, quoted=True)
    table.set("catalog", catalog)
    table.set("db", first)
    table.set("this", exp.Dot.build([*others, last]) if others else last)
