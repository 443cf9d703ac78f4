"""Every file that a catalog knows, with full paths: what a lake owns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Table, select
from sqlalchemy.engine import Connection

from lakedbapi.formats.ducklake.columnar import fetch_table
from lakedbapi.formats.ducklake.metadata import Tables
from lakedbapi.formats.ducklake.paths import resolve
from lakedbapi.storage.filesystem import Storage

_FILES = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("table_id", pa.int64()),
        pa.field("path", pa.string()),
        pa.field("path_is_relative", pa.bool_()),
    ]
)


def table_directories(connection: Connection, tables: Tables, data_path: str) -> Mapping[int, str]:
    """The directory of every table that some kept snapshot sees, by table id. Renaming does not move it."""
    schema, table = tables.schema.c, tables.table.c
    schemas = {
        id: resolve(data_path, path, is_relative)
        for id, path, is_relative in connection.execute(select(schema.schema_id, schema.path, schema.path_is_relative))
    }
    rows = connection.execute(select(table.table_id, table.schema_id, table.path, table.path_is_relative))
    return {id: resolve(schemas.get(schema_id, data_path), path, rel) for id, schema_id, path, rel in rows}


def entered_files(connection: Connection, source: Table, directories: Mapping[int, str], *which: object) -> pa.Table:
    """Rows of `data_file` or `delete_file` as columns id, table_id and (full) path."""
    (id,) = source.primary_key
    columns = source.c.table_id, source.c.path, source.c.path_is_relative
    rows = fetch_table(connection, select(id, *columns).where(*which), _FILES)  # type: ignore[arg-type]
    known = pa.array(list(directories), pa.int64())
    bases = pa.array(list(directories.values()), pa.string()).take(pc.index_in(rows.column("table_id"), known))
    relative = pc.binary_join_element_wise(pc.fill_null(bases, ""), rows.column("path"), "")
    paths = pc.if_else(pc.fill_null(rows.column("path_is_relative"), True), relative, rows.column("path"))
    return pa.table({"id": rows.column("id"), "table_id": rows.column("table_id"), "path": paths})


def entered_paths(connection: Connection, tables: Tables, directories: Mapping[int, str]) -> pa.ChunkedArray:
    """Full paths of all data files and delete files, live or ended."""
    found = [
        entered_files(connection, source, directories).column("path")
        for source in (tables.data_file, tables.delete_file)
    ]
    return pa.chunked_array([chunk for column in found for chunk in column.chunks], pa.string())


def normalized(path: str) -> str:
    """Equal for two spellings of one local path; URLs are taken literally."""
    return path if "://" in path else os.path.normpath(path).replace(os.sep, "/")


def listed(storage: Storage, data_path: str, directories: Iterable[str]) -> pa.Table:
    """All files below the data path, and in those of `directories` that lie elsewhere; columns as of `Storage.list`."""
    roots = [data_path]
    for directory in sorted(directories):
        if not directory.startswith(tuple(roots)):
            roots.append(directory)
    return pa.concat_tables(map(storage.list, roots))
