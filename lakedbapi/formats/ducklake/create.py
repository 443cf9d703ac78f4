"""A new, empty catalog."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Sequence
from datetime import datetime, timezone

from sqlalchemy import insert, select
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.schema import CreateTable

from lakedbapi.errors import ConflictError
from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.ducklake.metadata import Tables
from lakedbapi.formats.program import own_name


def is_initialised(connection: Connection, backend: Backend) -> bool:
    """Whether the database holds a complete catalog."""
    metadata = backend.tables.metadata
    if not backend.has_table(connection, metadata.name):
        return False
    return connection.execute(select(metadata.c.value).where(metadata.c.key == "version")).first() is not None


def create_catalog(backend: Backend, data_path: str, version: str, *, encrypted: bool) -> None:
    """Make an empty catalog of a format version, with its files in `data_path`, unless another process is first."""
    try:
        with backend.creation() as connection:
            backend.adopt(connection, version)
            if not is_initialised(connection, backend):
                for statement in _definitions(backend.tables, connection.dialect, backend.transactional_ddl):
                    connection.exec_driver_sql(statement)
                _insert_first_rows(connection, backend, data_path, encrypted)
    except ConflictError:
        with backend.read() as connection:
            if not is_initialised(connection, backend):
                raise


@functools.lru_cache(maxsize=16)
def _definitions(tables: Tables, dialect: Dialect, transactional: bool) -> Sequence[str]:
    """CREATE TABLE of each table, which takes longer to compile than to run."""
    definitions = (CreateTable(table, if_not_exists=not transactional) for table in tables.collection.sorted_tables)
    return [str(definition.compile(dialect=dialect)) for definition in definitions]


def _insert_first_rows(connection: Connection, backend: Backend, data_path: str, encrypted: bool) -> None:
    tables = backend.tables
    connection.execute(
        insert(tables.snapshot).values(
            snapshot_id=0,
            snapshot_time=datetime.now(timezone.utc),
            schema_version=0,
            next_catalog_id=1,
            next_file_id=0,
        )
    )
    connection.execute(insert(tables.snapshot_changes).values(snapshot_id=0, changes_made='created_schema:"main"'))
    connection.execute(
        insert(tables.schema).values(
            schema_id=0,
            schema_uuid=str(uuid.uuid4()),
            begin_snapshot=0,
            schema_name="main",
            path="main/",
            path_is_relative=True,
        )
    )
    facts = {
        "version": tables.version,
        "created_by": own_name(" "),
        "data_path": data_path,
        "encrypted": str(encrypted).lower(),
    }
    connection.execute(insert(tables.metadata), [{"key": key, "value": value} for key, value in facts.items()])
