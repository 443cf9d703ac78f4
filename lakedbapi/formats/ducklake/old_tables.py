"""Catalogs of format 0.3 and 0.4 seen as if they were of format 1.0, for reading.

What their tables lack is NULL or what a migration would fill in; tables that they lack are empty.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy import Column, MetaData, Table, null, or_, select
from sqlalchemy.sql import ColumnElement

from lakedbapi.formats.ducklake.metadata import Tables
from lakedbapi.formats.ducklake.partial import INFO


class OldTables(Tables):
    """`columns` are those that the catalog's tables have, by table name."""

    def __init__(self, schema: str | None, version: str, columns: Mapping[str, Collection[str]]) -> None:
        super().__init__(schema, version)
        for attribute, table in list(vars(self).items()):
            if isinstance(table, Table):
                present = columns.get(table.name, ())
                # A migration that was cut off has added columns, and may not have filled them.
                may_lack = INFO in present or table.name == _VERSIONS
                if may_lack or not {column.name for column in table.c} <= set(present):
                    setattr(self, attribute, self._completed(table, present))

    def _completed(self, table: Table, present: Collection[str]) -> Table:
        real = self._real(table, present)
        if not present:
            empty = (sa.cast(null(), column.type).label(column.name) for column in table.c)
            return cast(Table, select(*empty).where(sa.false()).subquery(table.name))
        columns = [_column(table, real, column) for column in table.c]
        if INFO in present:
            columns.append(real.c[INFO])
        source: Any = real
        if table.name == _VERSIONS:
            # Versions counted for the whole catalog: each is one of every table.
            ids = select(self.table.c.table_id).distinct().subquery()
            of_table = real.c.table_id if "table_id" in present else null()
            columns = [*columns[:-1], ids.c.table_id]
            source = real.join(ids, or_(of_table.is_(None), of_table == ids.c.table_id))
        return cast(Table, select(*columns).select_from(source).subquery(table.name))

    def _real(self, table: Table, present: Collection[str]) -> Table:
        columns = [Column(column.name, column.type, primary_key=column.primary_key) for column in table.c]
        known = [column for column in columns if column.name in present]
        if INFO in present:
            known.append(Column(INFO, sa.String()))
        return Table(table.name, MetaData(schema=self.schema_name), *known)


def _column(table: Table, real: Table, column: Column[Any]) -> ColumnElement[Any]:
    if column.name in real.c:
        return real.c[column.name]
    value = sa.literal(_FILLED.get((table.name, column.name)))
    return sa.cast(value, column.type).label(column.name)


_VERSIONS = "ducklake_schema_versions"
_FILLED: Mapping[tuple[str, str], str] = {("ducklake_column", "default_value_type"): "literal"}
