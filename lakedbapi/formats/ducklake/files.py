"""The data files of a table at one snapshot, with their deletes, statistics and partition values, as columns."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Table, and_, bindparam, false, func, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select

from lakedbapi.errors import DataError
from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.ducklake.columnar import fetch_table
from lakedbapi.formats.ducklake.inlined import InlinedDeletes, read_inlined_deletes
from lakedbapi.formats.ducklake.metadata import Tables
from lakedbapi.formats.ducklake.objects import visible
from lakedbapi.formats.ducklake.paths import resolve_all
from lakedbapi.formats.ducklake.types import parse_type
from lakedbapi.formats.ducklake.values import parse_text
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.scan import DATA_FILES, ColumnBounds, PartitionColumn
from lakedbapi.model.types import Field, Scalar, Type

LAKE_FILES = pa.schema(
    [
        *DATA_FILES,
        pa.field("footer_size", pa.int64()),
        pa.field("encryption_key", pa.string()),
        pa.field("mapping_id", pa.int64()),
        pa.field("partial_max", pa.int64()),
        pa.field("delete_file_id", pa.int64()),
        pa.field("delete_path", pa.string()),
        pa.field("delete_format", pa.string()),
        pa.field("delete_count", pa.int64()),
        pa.field("delete_file_size_bytes", pa.int64()),
        pa.field("delete_footer_size", pa.int64()),
        pa.field("delete_snapshot_id", pa.int64()),
        pa.field("delete_partial_max", pa.int64()),
        pa.field("delete_encryption_key", pa.string()),
    ]
)
"""The columns of a DuckLake file list: `DATA_FILES`, the rest of the file's catalog row, and its live delete file."""

_ROWS = pa.schema(
    [
        *(field for field in LAKE_FILES if field.name not in ("path", "delete_path", "deleted_count")),
        pa.field("path", pa.string()),
        pa.field("path_is_relative", pa.bool_()),
        pa.field("delete_path", pa.string()),
        pa.field("delete_path_is_relative", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class TableFiles:
    """`files` (columns `LAKE_FILES`) without the deletes counted; `newest` tells whether no later snapshot existed."""

    files: pa.Table
    inlined_deletes: InlinedDeletes
    newest: bool


def load_files(connection: Connection, backend: Backend, table: TableInfo, snapshot: int) -> TableFiles:
    """What the catalog says about the files of `table` at `snapshot`; `deleted_count` is 0 yet."""
    parameters = {"table_id": table.id, "snapshot": snapshot}
    rows = fetch_table(connection, _live_files(backend.tables), _ROWS, parameters)
    _check_unique(rows)
    assert table.path is not None
    columns = {
        **{name: rows.column(name) for name in rows.schema.names},
        "path": resolve_all(table.path, rows.column("path"), rows.column("path_is_relative")),
        "delete_path": resolve_all(table.path, rows.column("delete_path"), rows.column("delete_path_is_relative")),
        "deleted_count": pa.array(np.zeros(rows.num_rows, np.int64)),
    }
    files = pa.Table.from_arrays([columns[field.name] for field in LAKE_FILES], schema=LAKE_FILES)
    if files.num_rows:
        deletes = read_inlined_deletes(connection, backend, table.id, snapshot)
    else:
        deletes = InlinedDeletes(np.empty(0, np.int64), np.empty(0, np.int64))
    newest = connection.execute(select(func.max(backend.tables.snapshot.c.snapshot_id))).scalar()
    return TableFiles(files, deletes, newest == snapshot)


@functools.lru_cache(maxsize=64)
def _live_files(tables: Tables) -> Select[Any]:
    """The rows (columns `_ROWS`) of the table `:table_id` at `:snapshot`."""
    data, delete = tables.data_file.alias("d"), tables.delete_file.alias("x")
    snapshot = bindparam("snapshot")
    return (
        select(
            data.c.data_file_id,
            data.c.record_count,
            data.c.file_size_bytes,
            data.c.row_id_start,
            data.c.begin_snapshot,
            data.c.partition_id,
            data.c.footer_size,
            data.c.encryption_key,
            data.c.mapping_id,
            data.c.partial_max,
            delete.c.delete_file_id,
            delete.c.format,
            delete.c.delete_count,
            delete.c.file_size_bytes,
            delete.c.footer_size,
            delete.c.begin_snapshot,
            delete.c.partial_max,
            delete.c.encryption_key,
            data.c.path,
            data.c.path_is_relative,
            delete.c.path,
            delete.c.path_is_relative,
        )
        .select_from(
            data.outerjoin(
                delete,
                and_(
                    delete.c.data_file_id == data.c.data_file_id,
                    delete.c.table_id == data.c.table_id,
                    visible(delete, snapshot),
                ),
            )
        )
        .where(data.c.table_id == bindparam("table_id"), visible(data, snapshot))
        .order_by(data.c.data_file_id)
    )


def _check_unique(rows: pa.Table) -> None:
    ids = rows.column("file_id").to_numpy()
    twice = np.flatnonzero(ids[1:] == ids[:-1])
    if len(twice):
        path = rows.column("path")[int(twice[0])].as_py()
        raise DataError(
            f"data file {path}: the catalog has two live delete files for it, so its live rows are not known"
        )


_UNBOUNDED = frozenset({"blob", "timetz", "interval", "int128", "uint128", "json", "variant", "geometry"})
"""Types whose bounds in the catalog are missing, ordered wrongly, or spelled in more than one way."""

_STATS = pa.schema(
    [
        pa.field("file_id", pa.int64()),
        pa.field("null_count", pa.int64()),
        pa.field("value_count", pa.int64()),
        pa.field("has_nan", pa.bool_()),
        pa.field("lower", pa.string()),
        pa.field("upper", pa.string()),
    ]
)


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics rows of one column (columns `_STATS`), of all files of the table that ever had some."""

    rows: pa.Table
    typed_since: int
    """The snapshot that gave the column its present type: bounds of older files may be of another type."""


def load_column_statistics(connection: Connection, tables: Tables, table_id: int, field: Field) -> ColumnStatistics:
    """Of a column without children."""
    stats, column = tables.file_column_stats, tables.column
    rows = fetch_table(
        connection,
        select(
            stats.c.data_file_id,
            stats.c.null_count,
            stats.c.value_count,
            stats.c.contains_nan,
            stats.c.min_value,
            stats.c.max_value,
        ).where(stats.c.table_id == table_id, stats.c.column_id == field.id),
        _STATS,
    )
    history = connection.execute(
        select(column.c.begin_snapshot, column.c.column_type)
        .where(column.c.table_id == table_id, column.c.column_id == field.id)
        .order_by(column.c.begin_snapshot.desc())
    ).all()
    since = None
    for begin, type in history:
        if parse_type(type) != field.type:
            break
        since = begin
    return ColumnStatistics(rows, np.iinfo(np.int64).max if since is None else since)


def column_bounds(statistics: ColumnStatistics, field: Field, files: pa.Table) -> ColumnBounds:
    """The statistics of `field` for each of `files`."""
    rows = statistics.rows
    index = pc.index_in(files.column("file_id").combine_chunks(), value_set=rows.column("file_id"))
    since = pa.scalar(statistics.typed_since, pa.int64())
    usable = pc.greater_equal(files.column("snapshot_id").combine_chunks(), since)
    index = pc.if_else(usable, index, pa.scalar(None, index.type))
    found = rows.take(index)
    floating = isinstance(field.type, Scalar) and field.type.name.startswith("float")
    has_nan = _one(found, "has_nan") if floating else pa.array(np.zeros(len(index), np.bool_))
    return ColumnBounds(
        lower=_bound(found, "lower", field.type),
        upper=_bound(found, "upper", field.type),
        null_count=_one(found, "null_count"),
        value_count=_one(found, "value_count"),
        has_nan=has_nan,
    )


def _one(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()


def _bound(found: pa.Table, name: str, type: Type) -> pa.Array:
    if isinstance(type, Scalar) and type.name in _UNBOUNDED:
        return pa.nulls(found.num_rows, arrow_type(type))
    return parse_text(_one(found, name), type)


_PARTITION_VALUES = pa.schema(
    [
        pa.field("file_id", pa.int64()),
        pa.field("key", pa.int64()),
        pa.field("value", pa.string()),
    ]
)


def load_partition_values(connection: Connection, tables: Tables, table_id: int) -> pa.Table:
    """Partition values (columns `_PARTITION_VALUES`) of all files that the table ever had."""
    value = tables.file_partition_value
    return fetch_table(
        connection,
        select(value.c.data_file_id, value.c.partition_key_index, value.c.partition_value).where(
            value.c.table_id == table_id
        ),
        _PARTITION_VALUES,
    )


def partition_columns(values: pa.Table, table: TableInfo, files: pa.Table) -> Mapping[tuple[int, str], PartitionColumn]:
    """Values of the partition keys of `table` for each of `files`, as far as they are safe to reason about."""
    spec = table.partitioning
    if spec is None:
        return {}
    current = pc.fill_null(pc.equal(files.column("partition_id").combine_chunks(), spec.id), False)
    columns: dict[tuple[int, str], PartitionColumn] = {}
    for number, key in enumerate(spec.fields):
        field = next((field for field in table.schema.fields if field.id == key.field_id), None)
        if field is not None and _is_safe(field.type, key.transform):
            type = field.type if key.transform == "identity" else Scalar("int64")
            columns[key.field_id, key.transform] = _partition_column(values, number, type, files, current)
    return columns


def _is_safe(type: Type, transform: str) -> bool:
    if not isinstance(type, Scalar):
        return True
    if type.name.startswith("timestamptz") and transform in ("year", "month", "day", "hour"):
        return False  # Computed in the time zone of the writer's session.
    return type.name not in _UNBOUNDED


def _partition_column(values: pa.Table, number: int, type: Type, files: pa.Table, current: pa.Array) -> PartitionColumn:
    rows = values.filter(pc.equal(values.column("key"), number))
    index = pc.index_in(files.column("file_id").combine_chunks(), value_set=rows.column("file_id"))
    texts = _one(rows.take(index), "value")
    typed = parse_text(texts, type)
    readable = pc.or_(texts.is_null(), typed.is_valid())
    return PartitionColumn(values=typed, known=pc.and_(pc.and_(current, index.is_valid()), readable))


def load_name_mapping(connection: Connection, tables: Tables, mapping_id: int) -> Sequence[tuple[int, str, bool]]:
    """(field id, name in the files, is partition) of the fields of files that have no field ids."""
    mapping: Table = tables.name_mapping
    rows = connection.execute(
        select(mapping.c.target_field_id, mapping.c.source_name, mapping.c.is_partition).where(
            mapping.c.mapping_id == mapping_id
        )
    )
    return [(field_id, name, bool(is_partition)) for field_id, name, is_partition in rows]


def foreign_directories(connection: Connection, tables: Tables, data_path: str) -> set[str]:
    """Directories outside of `data_path` that some file, schema or table lies in, ending in `/`."""
    paths: list[str] = []
    for table in (tables.schema, tables.table, tables.data_file, tables.delete_file):
        paths += connection.execute(select(table.c.path).where(table.c.path_is_relative == false())).scalars()
    return {path[: path.rindex("/") + 1] for path in paths if not path.startswith(data_path) and "/" in path}
