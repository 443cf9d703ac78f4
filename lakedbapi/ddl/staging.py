"""Staging of schemas, tables and views in the open transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from lakedbapi.context import Context
from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import MacroInfo, SchemaInfo, TableInfo, ViewInfo
from lakedbapi.model.changes import RowChanges

T = TypeVar("T", SchemaInfo, TableInfo, ViewInfo, MacroInfo)


def require(catalog: Catalog, statement: str, capable: bool, way_out: str | None = None) -> None:
    """NotSupportedError when the format cannot do what `statement` (such as `CREATE VIEW v`) says."""
    if not capable:
        raise NotSupportedError(
            f"{statement}: format {catalog.format!r} cannot do this; {way_out or catalog.capabilities.way_out}"
        )


def require_views(catalog: Catalog, statement: str) -> None:
    """NotSupportedError where there are no views to be made or changed."""
    require(catalog, statement, catalog.capabilities.views, catalog.capabilities.way_out_of_views)


def stage_schema(context: Context, alias: str, schema: SchemaInfo) -> None:
    view = context.transaction.view(alias)
    view.catalog.check_schema(view.snapshot, schema)
    changes = context.transaction.changes(alias)
    context.transaction.stage(alias, replace(changes, schemas={**changes.schemas, schema.id: schema}))


def stage_table(context: Context, alias: str, table: TableInfo, rows: RowChanges | None = None) -> None:
    """Stage a new or altered table, and its row changes if these change with it."""
    view = context.transaction.view(alias)
    view.catalog.check_table(view.snapshot, view.table_of(table.id), table)
    if not context.transaction.changes(alias).rows.get(table.id, RowChanges()).empty:
        view.catalog.check_rows_writable(view.snapshot, table)
    _stage_table(context, alias, table, rows)


def stage_restored_table(context: Context, alias: str, table: TableInfo) -> None:
    """Stage a table with the structure that it had at an earlier version."""
    view = context.transaction.view(alias)
    old = view.table_of(table.id)
    assert old is not None
    view.catalog.check_restored(view.snapshot, old, table)
    _stage_table(context, alias, table, None)


def _stage_table(context: Context, alias: str, table: TableInfo, rows: RowChanges | None) -> None:
    changes = context.transaction.changes(alias)
    staged = replace(changes, tables={**changes.tables, table.id: table})
    if rows is not None:
        staged = replace(staged, rows={**changes.rows, table.id: rows})
    context.transaction.stage(alias, staged)


def stage_view(context: Context, alias: str, view: ViewInfo) -> None:
    changes = context.transaction.changes(alias)
    context.transaction.stage(alias, replace(changes, views={**changes.views, view.id: view}))


def stage_macro(context: Context, alias: str, macro: MacroInfo) -> None:
    context.transaction.view(alias).catalog.check_macro(macro)
    changes = context.transaction.changes(alias)
    context.transaction.stage(alias, replace(changes, macros={**changes.macros, macro.id: macro}))


def stage_dropped_macro(context: Context, alias: str, macro: MacroInfo) -> None:
    changes = context.transaction.changes(alias)
    context.transaction.stage(alias, replace(changes, macros=_without(changes.macros, macro.id)))


def stage_dropped_schema(context: Context, alias: str, schema: SchemaInfo) -> None:
    changes = context.transaction.changes(alias)
    context.transaction.stage(alias, replace(changes, schemas=_without(changes.schemas, schema.id)))


def stage_dropped_table(context: Context, alias: str, table: TableInfo) -> None:
    """Drop a table together with what this transaction did to its rows."""
    changes = context.transaction.changes(alias)
    context.transaction.stage(
        alias,
        replace(
            changes,
            tables=_without(changes.tables, table.id),
            rows={id: rows for id, rows in changes.rows.items() if id != table.id},
            identities={key: value for key, value in changes.identities.items() if key[0] != table.id},
            read=changes.read - {table.id},
            operations=tuple(done for done in changes.operations if done.table_id != table.id),
        ),
    )


def stage_dropped_view(context: Context, alias: str, view: ViewInfo) -> None:
    changes = context.transaction.changes(alias)
    context.transaction.stage(alias, replace(changes, views=_without(changes.views, view.id)))


def _without(staged: Mapping[int, T | None], id: int) -> dict[int, T | None]:
    """An object that only this transaction has leaves no trace; any other is staged as dropped."""
    others = {key: value for key, value in staged.items() if key != id}
    return others if id < 0 else {**others, id: None}
