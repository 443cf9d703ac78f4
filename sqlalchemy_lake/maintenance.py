"""OPTIMIZE, VACUUM, RESTORE and CHECKPOINT as SQLAlchemy statements: `connection.execute(Optimize(table))`.

All but RESTORE commit by themselves; `AUTOCOMMIT` connections, and others without changes of their own, run them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import exc, schema
from sqlalchemy.sql import coercions, roles
from sqlalchemy.sql.expression import TableClause

from sqlalchemy_lake.merge import table_of

# SQLAlchemy 1.4 has it under its old name.
_Element: Any = getattr(schema, "ExecutableDDLElement", None) or schema.DDLElement


class Optimize(_Element):
    """Rewrite files that have lost rows and merge small ones; `where` limits it to files that may have such rows.

    The result is one row: schema and table name, files and bytes added and removed, deleted rows removed.
    """

    __visit_name__ = "lake_optimize"

    def __init__(self, table: Any, where: Any | None = None) -> None:
        self.element = _plain_table(table)
        self.where = None if where is None else coercions.expect(roles.WhereHavingRole, where)


class Vacuum(_Element):
    """Remove files that only versions older than the retention need, of one table or of the whole lake.

    The result are the paths of the files; with `dry_run` none is removed.
    """

    __visit_name__ = "lake_vacuum"

    def __init__(self, table: Any | None = None, *, retain_hours: float | None = None, dry_run: bool = False) -> None:
        self.element = None if table is None else _plain_table(table)
        self.retain_hours = retain_hours
        self.dry_run = dry_run


class Restore(_Element):
    """Give a table the columns and rows that it had at a version or time; part of the transaction."""

    __visit_name__ = "lake_restore"

    def __init__(self, table: Any, *, version: int | None = None, timestamp: datetime | str | None = None) -> None:
        if (version is None) == (timestamp is None):
            raise exc.ArgumentError("Restore() takes either version or timestamp")
        self.element = _plain_table(table)
        self.version = version
        self.timestamp = timestamp


class Checkpoint(_Element):
    """All maintenance of a catalog (default: the current one), by its options."""

    __visit_name__ = "lake_checkpoint"

    def __init__(self, catalog: str | None = None) -> None:
        self.element = None
        self.catalog = catalog


def _plain_table(of: Any) -> TableClause:
    table = table_of(of)
    if not isinstance(table, TableClause):
        raise exc.ArgumentError(f"maintenance takes a table or a class mapped to one table, not {of!r}")
    return table
