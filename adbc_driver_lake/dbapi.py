"""`connect()`, whose connections Arrow-native tools recognise by their class and the name of its module."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import adbc_driver_manager.dbapi
import pyarrow as pa

import lakedbapi
from lakedbapi import *  # noqa: F403 - the names of a DB-API module
from lakedbapi.transaction import CatalogView
from lakedbapi.url import parse

_TABLES = pa.list_(pa.struct([("table_name", pa.string()), ("table_type", pa.string())]))
_SCHEMAS = pa.list_(pa.struct([("db_schema_name", pa.string()), ("db_schema_tables", _TABLES)]))
_OBJECTS = pa.schema([("catalog_name", pa.string()), ("catalog_db_schemas", _SCHEMAS)])


class Connection(lakedbapi.Connection, adbc_driver_manager.dbapi.Connection):  # type: ignore[misc,no-redef]
    """A `lakedbapi.Connection`: tools only ask whether it is one of the driver manager's too."""

    _closed = True  # what the driver manager would have to close

    def adbc_get_objects(
        self,
        *,
        depth: str = "all",
        catalog_filter: str | None = None,
        db_schema_filter: str | None = None,
        table_name_filter: str | None = None,
        table_types_filter: Sequence[str] | None = None,
        column_name_filter: str | None = None,
    ) -> pa.RecordBatchReader:
        """Catalogs with their schemas with their tables and views; columns are for `adbc_get_table_schema`.

        Filters are patterns of SQL's LIKE.
        """
        rows = []
        for catalog in filter(_like(catalog_filter), self.catalogs):
            view = self.catalog_view(catalog)
            schemas = [
                {
                    "db_schema_name": schema.name,
                    "db_schema_tables": [
                        {"table_name": name, "table_type": kind}
                        for name, kind in _tables(view, schema.id)
                        if _like(table_name_filter)(name) and kind in (table_types_filter or (kind,))
                    ],
                }
                for schema in view.schemas.values()
                if _like(db_schema_filter)(schema.name)
            ]
            rows.append({"catalog_name": catalog, "catalog_db_schemas": schemas})
        return pa.Table.from_pylist(rows, _OBJECTS).to_reader()

    def adbc_get_table_schema(
        self, table_name: str, *, catalog_filter: str | None = None, db_schema_filter: str | None = None
    ) -> pa.Schema:
        """The Arrow schema of a table's rows; for a missing one the driver manager's error, as tools expect."""
        try:
            return super().adbc_get_table_schema(
                table_name, catalog_filter=catalog_filter, db_schema_filter=db_schema_filter
            )
        except lakedbapi.ProgrammingError as error:
            status = adbc_driver_manager.AdbcStatusCode.NOT_FOUND
            raise adbc_driver_manager.ProgrammingError(str(error), status_code=status) from error


def connect(  # type: ignore[no-redef]
    uri: str | os.PathLike[str] = "lake://", **options: Any
) -> Connection:
    """As `lakedbapi.connect()`."""
    return Connection(parse(uri, **options))


def _tables(view: CatalogView, schema_id: int) -> Iterator[tuple[str, str]]:
    """(name, ADBC's kind) of what a schema holds."""
    for kind, entries in (("table", view.tables), ("view", view.views)):
        yield from ((entry.name, kind) for entry in entries.values() if entry.schema_id == schema_id)


def _like(pattern: str | None) -> Any:
    """Whether a name matches a LIKE pattern, in any case; None matches all."""
    if pattern is None:
        return lambda name: True
    glob = pattern.casefold().replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")
    glob = glob.replace("%", "*").replace("_", "?")
    return lambda name: fnmatchcase(name.casefold(), glob)
