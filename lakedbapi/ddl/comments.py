"""COMMENT ON."""

from __future__ import annotations

from dataclasses import replace

from lakedbapi.context import Context
from lakedbapi.ddl.paths import edit, get
from lakedbapi.ddl.staging import require, require_views, stage_schema, stage_table, stage_view
from lakedbapi.errors import NotSupportedError
from lakedbapi.query.names import ResolvedView, resolve_relation, resolve_schema, resolve_table, resolve_view
from lakedbapi.sql.statements import CommentOn


def comment(context: Context, statement: CommentOn) -> None:
    """COMMENT ON SCHEMA, TABLE, VIEW or COLUMN; the text None removes it. The same text again changes nothing."""
    if statement.kind == "schema":
        _comment_schema(context, statement)
    elif statement.kind == "view":
        _comment_view(context, statement)
    else:
        _comment_table(context, statement)


def _comment_schema(context: Context, statement: CommentOn) -> None:
    alias, view, schema = resolve_schema(context, statement.name)
    require(view.catalog, f"COMMENT ON SCHEMA {statement.name}", view.catalog.capabilities.ddl)
    if schema.comment != statement.text:
        stage_schema(context, alias, replace(schema, comment=statement.text))


def _comment_view(context: Context, statement: CommentOn) -> None:
    alias, view, _, info = resolve_view(context, statement.name)
    require_views(view.catalog, f"COMMENT ON VIEW {statement.name}")
    if info.comment != statement.text:
        stage_view(context, alias, replace(info, comment=statement.text))


def _comment_table(context: Context, statement: CommentOn) -> None:
    if statement.kind == "column" and isinstance(resolve_relation(context, statement.name), ResolvedView):
        raise NotSupportedError(
            f"{statement.name} is a view, whose columns cannot have comments; COMMENT ON VIEW instead"
        )
    alias, view, _, table = resolve_table(context, statement.name)
    require(view.catalog, f"COMMENT ON {statement.kind.upper()} {statement.name}", view.catalog.capabilities.ddl)
    if statement.kind == "table":
        changed = replace(table, comment=statement.text)
    else:
        field = get(table, statement.column)
        commented = replace(field, comment=statement.text)
        parent = statement.column[:-1]
        changed = edit(table, parent, lambda fields: tuple(commented if f.id == field.id else f for f in fields))
    if changed != table:
        stage_table(context, alias, changed)
