"""CREATE SCHEMA and DROP SCHEMA."""

from __future__ import annotations

from collections.abc import Sequence

from lakedbapi.context import Context
from lakedbapi.ddl.staging import (
    require,
    stage_dropped_macro,
    stage_dropped_schema,
    stage_dropped_table,
    stage_dropped_view,
    stage_schema,
)
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.model.catalog import SchemaInfo, nested_name, provisional_id
from lakedbapi.query.names import DEFAULT_SCHEMA, find_schema, resolve_schema, schema_called, schema_place
from lakedbapi.sql.statements import CreateSchema, DropSchema
from lakedbapi.transaction import CatalogView


def create_schema(context: Context, statement: CreateSchema) -> None:
    alias, view, names = schema_place(context, statement.name)
    require(view.catalog, f"CREATE SCHEMA {statement.name}", view.catalog.capabilities.schemas)
    if len(names) > 1:
        _check_nests(view, names)
    plain = [schema.name for schema in view.schemas.values() if not schema.parts]
    name = names[0] if len(names) == 1 else nested_name(names, plain)
    if schema_called(view, names) is None and view.schema(name) is None:
        stage_schema(context, alias, SchemaInfo(provisional_id(), name, parts=names if len(names) > 1 else ()))
    elif not statement.if_not_exists:
        raise ProgrammingError(f"schema {statement.name} exists already; write IF NOT EXISTS, or choose another name")


def _check_nests(view: CatalogView, names: Sequence[str]) -> None:
    """A schema can be made with these names."""
    if not view.catalog.capabilities.nested_schemas:
        raise NotSupportedError(
            f"catalog {view.alias!r} has no schemas inside of others, as DuckLake 1.1 has; "
            f'write "{".".join(names)}" for one of that name'
        )
    if schema_called(view, names[:-1]) is None:
        raise ProgrammingError(
            f"schema {'.'.join(names[:-1])} does not exist in catalog {view.alias!r}: create it before {names[-1]}"
        )


def drop_schema(context: Context, statement: DropSchema) -> None:
    if statement.if_exists and find_schema(context, statement.name) is None:
        return
    alias, view, schema = resolve_schema(context, statement.name)
    require(view.catalog, f"DROP SCHEMA {statement.name}", view.catalog.capabilities.schemas)
    if schema.name.casefold() == DEFAULT_SCHEMA:
        raise ProgrammingError(f"schema {statement.name} cannot be dropped: every catalog has it")
    depth = len(schema.names)
    inner = [
        other for other in view.schemas.values() if schema.is_called(other.parts[:depth]) and other.id != schema.id
    ]
    ids = {schema.id, *(other.id for other in inner)}
    tables = [table for table in view.tables.values() if table.schema_id in ids]
    views = [info for info in view.views.values() if info.schema_id in ids]
    if (tables or views or inner) and not statement.cascade:
        names = [table.name for table in tables] + [info.name for info in views] + [other.name for other in inner]
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        raise ProgrammingError(f"schema {statement.name} is not empty: it has {shown}; drop them, or write CASCADE")
    for macro in [macro for macro in view.macros.values() if macro.schema_id in ids]:
        stage_dropped_macro(context, alias, macro)
    for table in tables:
        stage_dropped_table(context, alias, table)
    for info in views:
        stage_dropped_view(context, alias, info)
    for dropped in (*sorted(inner, key=lambda other: -len(other.parts)), schema):
        stage_dropped_schema(context, alias, dropped)
