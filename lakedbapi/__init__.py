"""SQL with transactions over lakehouse tables: a PEP 249 (DB-API 2.0) driver."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lakedbapi.connection import Connection
from lakedbapi.cursor import Cursor
from lakedbapi.errors import (
    CommitUnknownError,
    ConflictError,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from lakedbapi.model.catalog import AsOf
from lakedbapi.model.progress import Progress
from lakedbapi.typecodes import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from lakedbapi.url import parse

try:
    __version__ = version("lakedbapi")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0.0.0"

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"


def connect(database: str | os.PathLike[str] = "lake://", **options: Any) -> Connection:
    """Connect to a lake: a directory (made when missing), a URL such as `ducklake+postgresql://user:pw@host/db?data_path=…`,
    or DuckDB's ATTACH text.

    Options: `as_of`, `read_only`, `autocommit`, `schema`, `alias` (the catalog's name in SQL), `user`, `password`,
    `storage_options`, `allow_attach`, `allow_external`, `progress` (a line in the terminal), and
    those of the format, such as `data_path`.
    """
    return Connection(parse(database, **options))


__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "AsOf",
    "Binary",
    "CommitUnknownError",
    "ConflictError",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Progress",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
