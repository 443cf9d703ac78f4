"""CREATE SCHEMA and DROP SCHEMA."""

from __future__ import annotations

from lakedbapi.context import Context
from lakedbapi.ddl.staging import (
    require,
    stage_dropped_macro,
    stage_dropped_schema,
    stage_dropped_table,
    stage_dropped_view,
    stage_schema,
)
from lakedbapi.errors import ProgrammingError
from lakedbapi.model.catalog import SchemaInfo, provisional_id
from lakedbapi.query.names import DEFAULT_SCHEMA, find_schema, resolve_schema, schema_place
from lakedbapi.sql.statements import CreateSchema, DropSchema


def create_schema(context: Context, statement: CreateSchema) -> None:
    alias, view, name = schema_place(context, statement.name)
    require(view.catalog, f"CREATE SCHEMA {statement.name}", view.catalog.capabilities.schemas)
    if view.schema(name) is None:
        stage_schema(context, alias, SchemaInfo(provisional_id(), name))
    elif not statement.if_not_exists:
        raise ProgrammingError(f"schema {statement.name} exists already; write IF NOT EXISTS, or choose another name")


def drop_schema(context: Context, statement: DropSchema) -> None:
    if statement.if_exists and find_schema(context, statement.name) is None:
        return
    alias, view, schema = resolve_schema(context, statement.name)
    require(view.catalog, f"DROP SCHEMA {statement.name}", view.catalog.capabilities.schemas)
    if schema.name.casefold() == DEFAULT_SCHEMA:
        raise ProgrammingError(f"schema {statement.name} cannot be dropped: every catalog has it")
    tables = [table for table in view.tables.values() if table.schema_id == schema.id]
    views = [info for info in view.views.values() if info.schema_id == schema.id]
    if (tables or views) and not statement.cascade:
        names = [table.name for table in tables] + [info.name for info in views]
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        raise ProgrammingError(f"schema {statement.name} is not empty: it has {shown}; drop them, or write CASCADE")
    for macro in [macro for macro in view.macros.values() if macro.schema_id == schema.id]:
        stage_dropped_macro(context, alias, macro)
    for table in tables:
        stage_dropped_table(context, alias, table)
    for info in views:
        stage_dropped_view(context, alias, info)
    stage_dropped_schema(context, alias, schema)
