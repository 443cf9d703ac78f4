"""Which database a catalog's location means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.engine import make_url

from lakedbapi import errors
from lakedbapi.formats.ducklake.backend import DEFAULT_BUSY_TIMEOUT, Backend
from lakedbapi.formats.ducklake.duckdb_backend import DuckDBBackend
from lakedbapi.formats.ducklake.server_backend import MySQLBackend, PostgreSQLBackend, postgresql_driver
from lakedbapi.formats.ducklake.sqlite_backend import SQLiteBackend


def backend_for(location: str, options: Mapping[str, str], *, create: bool = False) -> Backend:
    """The backend of a location: `sqlite:/abs/file`, `duckdb:/abs/file`, `postgresql://…` or `mysql://…`.

    Uses the options `metadata_schema` and `busy_timeout` (milliseconds). ProgrammingError for another kind of location.
    """
    kind, _, rest = location.partition(":")
    schema = options.get("metadata_schema") or None
    timeout = options.get("busy_timeout") or str(DEFAULT_BUSY_TIMEOUT)
    if not timeout.isdigit():
        raise errors.ProgrammingError(f"busy_timeout={timeout!r} is no number of milliseconds")
    busy_timeout = int(timeout)
    if kind == "sqlite":
        return SQLiteBackend(Path(rest), busy_timeout=busy_timeout, create=create)
    if kind == "duckdb":
        return DuckDBBackend(Path(rest), schema, busy_timeout=busy_timeout, create=create)
    if kind == "postgresql":
        return PostgreSQLBackend(
            make_url(location).set(drivername=postgresql_driver()), schema, busy_timeout=busy_timeout
        )
    if kind == "mysql":
        return MySQLBackend(make_url(location).set(drivername="mysql+pymysql"), schema, busy_timeout=busy_timeout)
    raise errors.ProgrammingError(
        f"catalog {kind}: no such kind of DuckLake catalog; use sqlite, postgresql, mysql or duckdb"
    )
