"""Apache Superset's engine specification of the lake.

Superset finds it through the entry point group `superset.db_engine_specs`.
"""

from __future__ import annotations

import re
from contextlib import closing
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakValueDictionary

from flask_babel import gettext as __
from sqlalchemy import types
from sqlglot.dialects.dialect import Dialects
from superset.constants import TimeGrain
from superset.db_engine_specs.base import BaseEngineSpec, DatabaseCategory
from superset.db_engine_specs.exceptions import (
    SupersetDBAPIConnectionError,
    SupersetDBAPIDatabaseError,
    SupersetDBAPIDataError,
    SupersetDBAPIError,
    SupersetDBAPIOperationalError,
    SupersetDBAPIProgrammingError,
)
from superset.errors import SupersetErrorType
from superset.sql.parse import SQLGLOT_DIALECTS
from superset.utils.core import GenericDataType

import lakedbapi
from lakedbapi.url import DEFAULT_ALIAS, FORMATS
from sqlalchemy_lake.reflection import driver_connection

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy.engine import URL
    from sqlalchemy.engine.reflection import Inspector
    from superset.models.core import Database
    from superset.models.sql_lab import Query
    from superset.sql.parse import Table

ENGINE = "lake"

# Superset prints each statement anew: without a dialect of its own it would not know DuckDB's syntax.
for _name in (ENGINE, *FORMATS):
    SQLGLOT_DIALECTS.setdefault(_name, Dialects.DUCKDB)

_RUNNING: WeakValueDictionary[str, lakedbapi.Cursor] = WeakValueDictionary()
"""The cursors of this process by the id that cancels what they run."""

_EXCEPTIONS: dict[type[Exception], type[Exception]] = {
    lakedbapi.DataError: SupersetDBAPIDataError,
    lakedbapi.InterfaceError: SupersetDBAPIConnectionError,
    lakedbapi.OperationalError: SupersetDBAPIOperationalError,
    lakedbapi.ConflictError: SupersetDBAPIOperationalError,
    lakedbapi.CommitUnknownError: SupersetDBAPIOperationalError,
    lakedbapi.ProgrammingError: SupersetDBAPIProgrammingError,
    lakedbapi.NotSupportedError: SupersetDBAPIProgrammingError,
    lakedbapi.IntegrityError: SupersetDBAPIDatabaseError,
    lakedbapi.InternalError: SupersetDBAPIDatabaseError,
    lakedbapi.DatabaseError: SupersetDBAPIDatabaseError,
    lakedbapi.Error: SupersetDBAPIError,
}


def _bucket(width: str) -> str:
    return f"time_bucket(INTERVAL '{width}', {{col}})"


class LakeEngineSpec(BaseEngineSpec):  # type: ignore[misc]
    """Every URL of lakedbapi, whatever the format."""

    engine = ENGINE
    engine_name = "Lake (DuckLake)"
    engine_aliases = set(FORMATS)  # noqa: RUF012 - Superset's protocol, as below
    default_driver = "lakedbapi"
    sqlalchemy_uri_placeholder = "ducklake+postgresql://user:password@host/database"

    supports_catalog = True
    supports_cross_catalog_queries = True
    supports_dynamic_schema = True
    supports_file_upload = True
    supports_multivalues_insert = True
    allows_hidden_orderby_agg = True
    disable_ssh_tunneling = True

    metadata = {  # noqa: RUF012
        "description": "Tables in lakehouse formats, with row-level UPDATE, DELETE and MERGE, and time travel in SQL.",
        "categories": [DatabaseCategory.ANALYTICAL_DATABASES, DatabaseCategory.OPEN_SOURCE],
        "pypi_packages": ["lakedbapi"],
        "connection_string": sqlalchemy_uri_placeholder,
        "connection_examples": [
            {"description": "A lake in a directory", "connection_string": "lake:////path/to/lake"},
            {"description": "DuckLake on PostgreSQL", "connection_string": sqlalchemy_uri_placeholder},
            {"description": "A lake as it was at a version", "connection_string": "lake:////path/to/lake?as_of=12"},
        ],
    }

    _time_grain_expressions = {  # noqa: RUF012
        None: "{col}",
        TimeGrain.SECOND: "date_trunc('second', {col})",
        TimeGrain.FIVE_SECONDS: _bucket("5 seconds"),
        TimeGrain.THIRTY_SECONDS: _bucket("30 seconds"),
        TimeGrain.MINUTE: "date_trunc('minute', {col})",
        TimeGrain.FIVE_MINUTES: _bucket("5 minutes"),
        TimeGrain.TEN_MINUTES: _bucket("10 minutes"),
        TimeGrain.FIFTEEN_MINUTES: _bucket("15 minutes"),
        TimeGrain.THIRTY_MINUTES: _bucket("30 minutes"),
        TimeGrain.HOUR: "date_trunc('hour', {col})",
        TimeGrain.SIX_HOURS: _bucket("6 hours"),
        TimeGrain.DAY: "date_trunc('day', {col})",
        TimeGrain.WEEK: "date_trunc('week', {col})",
        TimeGrain.WEEK_STARTING_SUNDAY: (
            "date_trunc('week', {col} + INTERVAL '1 day') - INTERVAL '1 day'"  # DuckDB's weeks start on Monday
        ),
        TimeGrain.WEEK_STARTING_MONDAY: "date_trunc('week', {col})",
        TimeGrain.WEEK_ENDING_SATURDAY: "date_trunc('week', {col} + INTERVAL '1 day') + INTERVAL '5 days'",
        TimeGrain.WEEK_ENDING_SUNDAY: "date_trunc('week', {col}) + INTERVAL '6 days'",
        TimeGrain.MONTH: "date_trunc('month', {col})",
        TimeGrain.QUARTER: "date_trunc('quarter', {col})",
        TimeGrain.YEAR: "date_trunc('year', {col})",
    }

    column_type_mappings = (
        (re.compile(r".*\[\d*\]$"), types.String(), GenericDataType.STRING),
        (re.compile(r"^(struct|map|json|variant|geometry|uuid|blob)", re.I), types.String(), GenericDataType.STRING),
        (re.compile(r"^(u?hugeint|ubigint)", re.I), types.Numeric(38, 0), GenericDataType.NUMERIC),
        (re.compile(r"^uinteger", re.I), types.BigInteger(), GenericDataType.NUMERIC),
        (re.compile(r"^(usmallint|utinyint|tinyint)", re.I), types.Integer(), GenericDataType.NUMERIC),
    )

    custom_errors: dict[Any, Any] = {  # noqa: RUF012
        re.compile(r'Referenced column "(?P<column_name>[^"]+)" not found'): (
            __('The lake has no column "%(column_name)s" here.'),
            SupersetErrorType.COLUMN_DOES_NOT_EXIST_ERROR,
            {},
        ),
        re.compile(r"table or view (?P<table_name>.+) does not exist"): (
            __('The lake has no table or view "%(table_name)s".'),
            SupersetErrorType.TABLE_DOES_NOT_EXIST_ERROR,
            {},
        ),
        re.compile(r'schema "(?P<schema_name>[^"]+)" does not exist'): (
            __('The lake has no schema "%(schema_name)s".'),
            SupersetErrorType.SCHEMA_DOES_NOT_EXIST_ERROR,
            {},
        ),
        re.compile(r"syntax error", re.I): (None, SupersetErrorType.SYNTAX_ERROR, {}),
    }

    @classmethod
    def get_dbapi_exception_mapping(cls) -> dict[type[Exception], type[Exception]]:
        """Superset looks an exception up by its class alone, hence all of them."""
        return _EXCEPTIONS

    @classmethod
    def adjust_engine_params(
        cls, uri: URL, connect_args: dict[str, Any], catalog: str | None = None, schema: str | None = None
    ) -> tuple[URL, dict[str, Any]]:
        """The schema that is chosen in SQL Lab is what unqualified names mean. There is one catalog to a URL."""
        if schema:
            uri = uri.update_query_dict({"schema": schema})
        return uri, connect_args

    @classmethod
    def get_schema_from_engine_params(cls, sqlalchemy_uri: URL, connect_args: dict[str, Any]) -> str | None:
        schema = sqlalchemy_uri.query.get("schema")
        return schema if isinstance(schema, str) else None

    @classmethod
    def get_default_catalog(cls, database: Database) -> str:
        alias = database.url_object.query.get("alias")
        return alias if isinstance(alias, str) else DEFAULT_ALIAS

    @classmethod
    def get_catalog_names(cls, database: Database, inspector: Inspector) -> set[str]:
        with inspector.engine.connect() as connection:
            return set(driver_connection(connection).catalogs)

    @classmethod
    def get_function_names(cls, database: Database) -> list[str]:
        query = (
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name ~ '^[a-z][a-z0-9_]*$' ORDER BY 1"
        )
        with database.get_raw_connection() as connection, closing(connection.cursor()) as cursor:
            cursor.execute(query)
            return [name for (name,) in cursor.fetchall()]

    @classmethod
    def get_extra_table_metadata(cls, database: Database, table: Table) -> dict[str, Any]:
        """For the table panel: the last snapshots that changed the table, and its partitioning."""
        with database.get_inspector(catalog=table.catalog, schema=table.schema) as inspector:
            if table.table in inspector.get_view_names(table.schema):
                return {}
            snapshots = inspector.get_snapshots(table.table, table.schema)
            options = inspector.get_table_options(table.table, table.schema)
        return _described(snapshots, options.get("lake_partitioned_by"))

    @classmethod
    def convert_dttm(cls, target_type: str, dttm: datetime, db_extra: dict[str, Any] | None = None) -> str | None:
        type_ = cls.get_sqla_column_type(target_type)
        if isinstance(type_, types.Date):
            return f"DATE '{date(dttm.year, dttm.month, dttm.day).isoformat()}'"
        if isinstance(type_, types.TIMESTAMP) and ("TZ" in target_type.upper() or "TIME ZONE" in target_type.upper()):
            return f"TIMESTAMPTZ '{dttm.isoformat(sep=' ', timespec='microseconds')}{'' if dttm.tzinfo else '+00:00'}'"
        if isinstance(type_, (types.TIMESTAMP, types.DateTime)):
            return f"TIMESTAMP '{dttm.isoformat(sep=' ', timespec='microseconds')}'"
        return None

    @classmethod
    def epoch_to_dttm(cls) -> str:
        return "epoch_ms(CAST({col} AS BIGINT) * 1000)"

    @classmethod
    def epoch_ms_to_dttm(cls) -> str:
        return "epoch_ms(CAST({col} AS BIGINT))"

    @classmethod
    def df_to_sql(cls, database: Database, table: Table, df: pd.DataFrame, to_sql_kwargs: dict[str, Any]) -> None:
        """An upload becomes one batch of rows, with that one snapshot, not a statement with all values in its text."""
        to_sql_kwargs = {**to_sql_kwargs, "name": table.table, "chunksize": None}
        if table.schema:
            to_sql_kwargs["schema"] = table.schema
        with cls.get_engine(database, catalog=table.catalog, schema=table.schema) as engine:
            df.to_sql(con=engine, **to_sql_kwargs)

    @classmethod
    def fetch_data(cls, cursor: Any, limit: int | None = None) -> list[tuple[Any, ...]]:
        """Superset asks for the rows of DDL and DML too."""
        if cursor.description is None:
            return []
        rows: list[tuple[Any, ...]] = super().fetch_data(cursor, limit)
        return rows

    @classmethod
    def get_cancel_query_id(cls, cursor: Any, query: Query) -> str:
        identifier = uuid4().hex
        _RUNNING[identifier] = cursor
        return identifier

    @classmethod
    def cancel_query(cls, cursor: Any, query: Query, cancel_query_id: str) -> bool:
        """False where another process runs the query: there is no server to ask."""
        running = _RUNNING.get(cancel_query_id)
        if running is None:
            return False
        running.cancel()
        return True


def _described(snapshots: list[dict[str, Any]], partitioning: list[str] | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"snapshots": len(snapshots)}
    if snapshots:
        last = snapshots[-1]
        metadata |= {name: str(last[name]) for name in ("snapshot_id", "snapshot_time") if last.get(name) is not None}
    described: dict[str, Any] = {"metadata": metadata}
    if partitioning:
        described["partitions"] = {"cols": partitioning}
    return described
