"""SHOW and DESCRIBE."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from lakedbapi.context import Context
from lakedbapi.engine.base import Result, TableResult
from lakedbapi.model.catalog import SchemaInfo, TableInfo
from lakedbapi.model.sql_types import sql_type
from lakedbapi.query.definition import definition, generation
from lakedbapi.query.names import (
    ResolvedSchema,
    ResolvedTable,
    catalog_alias,
    find_schema,
    resolve_catalog,
    resolve_relation,
    resolve_schema,
    resolve_table,
)
from lakedbapi.query.plan import plan
from lakedbapi.query.relations import view_columns, without_rows
from lakedbapi.sql.statements import Describe, Name, Show
from lakedbapi.transaction import CatalogView

_TEXT = pa.string()


def show(context: Context, statement: Show) -> Result:
    """SHOW TABLES, ALL TABLES, VIEWS, SCHEMAS, DATABASES, with DuckDB's columns; CREATE TABLE; TBLPROPERTIES."""
    if statement.what == "create":
        assert statement.of is not None
        return _texts("sql", [definition(resolve_relation(context, statement.of))])
    if statement.what == "properties":
        assert statement.of is not None
        return _properties(resolve_table(context, statement.of))
    matches = _pattern(statement.like)
    if statement.what == "databases":
        return _texts("database_name", filter(matches, context.transaction.catalogs))
    if statement.what == "schemas":
        return _schemas(context, statement.of, matches)
    places = _places(context, statement)
    if statement.what == "all tables":
        return _all_tables(context, places)
    names = [view.name for place in places for view in place.view.views.values() if view.schema_id == place.schema.id]
    if statement.what == "tables":
        names += [name for place in places for name in place.view.table_names(place.schema)]
    return _texts("name", filter(matches, names))


def _pattern(like: str | None) -> Callable[[str], bool]:
    """Whether a name is like a pattern, in which % and Spark's * mean any characters, _ any one."""
    if like is None:
        return lambda name: True
    parts = {"%": ".*", "*": ".*", "_": "."}
    pattern = re.compile("".join(parts.get(char) or re.escape(char) for char in like), re.IGNORECASE | re.DOTALL)
    return lambda name: pattern.fullmatch(name) is not None


def _properties(found: ResolvedTable) -> Result:
    pairs = sorted(found.view.catalog.settable_properties(found.table).items())
    columns = {"key": [key for key, _ in pairs], "value": [value for _, value in pairs]}
    return TableResult(pa.table(columns, pa.schema([(name, _TEXT) for name in columns])), ["VARCHAR"] * 2)


def describe(context: Context, statement: Describe) -> Result:
    """DESCRIBE of a table or query: column_name, column_type, null, key, default, extra. Or SUMMARIZE."""
    planned = plan(context, statement.query)
    if statement.verb == "summarize":
        return context.engine.query(replace(planned, sql=f"SELECT * FROM (SUMMARIZE {planned.sql}\n)"))
    specials = {special.name for special in statement.query.specials}
    if (
        statement.name is not None
        and statement.name.last not in specials
        and not _is_registered(context, statement.name)
    ):
        found = resolve_relation(context, statement.name)
        if isinstance(found, ResolvedTable):
            return _describe_table(found.table)
    text = f"SELECT * FROM (DESCRIBE {planned.sql}\n)"
    return context.engine.query(replace(planned, sql=text, relations=without_rows(planned.relations)))


def _is_registered(context: Context, name: Name) -> bool:
    return len(name.parts) == 1 and name.last.casefold() in {other.casefold() for other in context.registered}


def _describe_table(table: TableInfo) -> Result:
    fields = table.schema.fields
    columns = {
        "column_name": [field.name for field in fields],
        "column_type": [sql_type(field.type) for field in fields],
        "null": ["YES" if field.nullable else "NO" for field in fields],
        "key": [_key(table, field.name) for field in fields],
        "default": [field.default for field in fields],
        "extra": [generation(field) for field in fields],
    }
    return TableResult(pa.table(columns, pa.schema([(name, _TEXT) for name in columns])), ["VARCHAR"] * len(columns))


def _key(table: TableInfo, column: str) -> str | None:
    """`PRI` or `UNI` for a column of a primary key or a unique constraint."""
    kinds = {c.kind for c in table.constraints if column.casefold() in {name.casefold() for name in c.columns}}
    return "PRI" if "primary key" in kinds else "UNI" if "unique" in kinds else None


def _schemas(context: Context, of: Name | None, matches: Callable[[str], bool]) -> Result:
    """Of one catalog or of all."""
    aliases = list(context.transaction.catalogs) if of is None else [resolve_catalog(context, ".".join(of.parts))]
    views = [context.transaction.view(alias, context.as_of) for alias in aliases]
    rows = sorted(
        (view.alias, schema.name) for view in views for schema in view.schemas.values() if matches(schema.name)
    )
    current = tuple(part.casefold() for part in context.search_path)
    table = pa.table(
        {
            "database_name": pa.array([alias for alias, _ in rows], _TEXT),
            "schema_name": pa.array([name for _, name in rows], _TEXT),
            "current": pa.array([(alias.casefold(), name.casefold()) == current for alias, name in rows], pa.bool_()),
        }
    )
    return TableResult(table, ["VARCHAR", "VARCHAR", "BOOLEAN"])


def _places(context: Context, statement: Show) -> list[ResolvedSchema]:
    """The schemas whose tables are asked for."""
    if statement.of is not None:
        found = find_schema(context, statement.of)
        if found is not None:
            return [found]
        if len(statement.of.parts) == 1 and catalog_alias(context, statement.of.last) is not None:
            return _all_schemas(context.transaction.view(resolve_catalog(context, statement.of.last), context.as_of))
        return [resolve_schema(context, statement.of)]
    if statement.what == "all tables":
        views = [context.transaction.view(alias, context.as_of) for alias in context.transaction.catalogs]
        return [place for view in views for place in _all_schemas(view)]
    if context.search_path[0] not in context.transaction.catalogs:
        return []
    return [resolve_schema(context, Name(context.search_path))]


def _all_schemas(view: CatalogView) -> list[ResolvedSchema]:
    return [ResolvedSchema(view.alias, view, schema) for schema in view.schemas.values()]


def _all_tables(context: Context, places: Sequence[ResolvedSchema]) -> Result:
    rows = []
    for alias, view, schema in places:
        for name, columns in _relations(context, view, schema):
            names, types = [name for name, _ in columns], [type for _, type in columns]
            rows.append((alias, schema.name, name, names, types, False))
    rows.sort(key=lambda row: row[:3])
    table = pa.Table.from_pylist(
        [dict(zip(_ALL_TABLES.names, row, strict=True)) for row in rows],
        _ALL_TABLES,
    )
    return TableResult(table, ["VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR[]", "VARCHAR[]", "BOOLEAN"])


_ALL_TABLES = pa.schema(
    [
        ("database", _TEXT),
        ("schema", _TEXT),
        ("name", _TEXT),
        ("column_names", pa.list_(_TEXT)),
        ("column_types", pa.list_(_TEXT)),
        ("temporary", pa.bool_()),
    ]
)


def _relations(context: Context, view: CatalogView, schema: SchemaInfo) -> list[tuple[str, list[tuple[str, str]]]]:
    """(name, columns with their SQL types) of the tables and views of a schema."""
    tables = [table for table in view.tables.values() if table.schema_id == schema.id]
    views = [info for info in view.views.values() if info.schema_id == schema.id]
    return [
        *((table.name, [(field.name, sql_type(field.type)) for field in table.schema.fields]) for table in tables),
        *((info.name, view_columns(context, view, schema, info)) for info in views),
    ]


def _texts(column: str, values: Iterable[str]) -> Result:
    table = pa.table({column: pa.array(sorted(values), _TEXT)})
    return TableResult(table, ["VARCHAR"])
