"""Schemas, tables, views and columns: statements become staged changes of the open transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakedbapi.context import Context
from lakedbapi.ddl.alter import alter
from lakedbapi.ddl.comments import comment
from lakedbapi.ddl.macros import create_macro, drop_macro
from lakedbapi.ddl.schemas import create_schema, drop_schema
from lakedbapi.ddl.tables import create_table, create_table_for, drop_table
from lakedbapi.ddl.views import create_view, drop_view
from lakedbapi.sql import statements as st

__all__ = ["create_table", "create_table_for", "execute"]

Definition = (
    st.CreateSchema
    | st.DropSchema
    | st.CreateTable
    | st.DropTable
    | st.CreateView
    | st.CreateMacro
    | st.DropMacro
    | st.AlterTable
    | st.CommentOn
)


def execute(context: Context, statement: Definition) -> None:
    """Stage what a statement says. One that changes nothing stages nothing."""
    _HANDLERS[type(statement)](context, statement)


def _drop(context: Context, statement: st.DropTable) -> None:
    if statement.view:
        drop_view(context, statement)
    else:
        drop_table(context, statement)


_HANDLERS: Mapping[type, Callable[[Context, Any], object]] = {
    st.CreateSchema: create_schema,
    st.DropSchema: drop_schema,
    st.CreateTable: create_table,
    st.DropTable: _drop,
    st.CreateView: create_view,
    st.CreateMacro: create_macro,
    st.DropMacro: drop_macro,
    st.AlterTable: alter,
    st.CommentOn: comment,
}
