"""The data files of a table at one snapshot, with their deletes, statistics and partition values, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import false, null, select
from sqlalchemy.engine import Connection

from lakedbapi.formats.ducklake.attempt import Attempt
from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.ducklake.columnar import fetch_table
from lakedbapi.formats.ducklake.file_rows import DATA, DELETES, FileRows, read_chosen_rows, read_file_rows
from lakedbapi.formats.ducklake.inlined import InlinedDeletes, read_inlined_deletes
from lakedbapi.formats.ducklake.metadata import Tables
from lakedbapi.formats.ducklake.stats import is_float
from lakedbapi.formats.ducklake.types import LIST, MAP, STRUCT, parse_type
from lakedbapi.formats.ducklake.values import parse_text
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.bucket import hashed_as
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.name_mapping import MappedName, NameMapping
from lakedbapi.model.scan import DATA_FILES, ColumnBounds, PartitionColumn
from lakedbapi.model.types import Decimal, Field, Scalar, Type

LAKE_FILES = pa.schema(
    [
        *DATA_FILES,
        *(field for field in DATA if field.name not in DATA_FILES.names),
        *(field for field in DELETES if field.name != "data_file_id"),
    ]
)
"""The columns of a DuckLake file list: `DATA_FILES`, the rest of the file's catalog row, and its live delete file."""


@dataclass(frozen=True)
class TableFiles:
    """`files` has the columns `LAKE_FILES`.

    `more_deletes`: further delete files (the columns of `LAKE_FILES` that tell of one) by `file_id`. DuckDB leaves such
    when it moves inlined deletes to files after the data file was replaced: all of them count.
    """

    files: pa.Table
    inlined_deletes: InlinedDeletes
    more_deletes: Mapping[int, Sequence[Mapping[str, Any]]]


def load_files(
    connection: Connection, backend: Backend, table: TableInfo, snapshot: int, known: FileRows | None
) -> tuple[TableFiles, FileRows]:
    """What the catalog says about the files of `table` at `snapshot`; `deleted_count` is 0 yet.

    Also the rows that it was made of, to be given as `known` the next time.
    """
    assert table.path is not None
    rows = read_file_rows(connection, backend.tables, table.id, table.path, snapshot, known)
    return _with_deletes(connection, backend, table, snapshot, rows), rows


def load_chosen_files(
    connection: Connection, backend: Backend, table: TableInfo, snapshot: int, ids: Sequence[int]
) -> TableFiles:
    """As `load_files`, only the files with these `ids`."""
    assert table.path is not None
    rows = read_chosen_rows(connection, backend.tables, table.id, table.path, snapshot, ids)
    return _with_deletes(connection, backend, table, snapshot, rows)


def _with_deletes(
    connection: Connection, backend: Backend, table: TableInfo, snapshot: int, rows: FileRows
) -> TableFiles:
    files, more_deletes = _join(rows)
    if files.num_rows:
        deletes = read_inlined_deletes(connection, backend, table.id, snapshot)
    else:
        deletes = InlinedDeletes(np.empty(0, np.int64), np.empty(0, np.int64))
    return TableFiles(files, deletes, more_deletes)


def _join(rows: FileRows) -> tuple[pa.Table, Mapping[int, Sequence[Mapping[str, Any]]]]:
    """A file list (columns `LAKE_FILES`), and the delete files beyond the first of a data file."""
    data, deletes = rows.data, rows.deletes
    ids = deletes.column("data_file_id").to_numpy()
    again = np.flatnonzero(ids[1:] == ids[:-1]) + 1
    more: dict[int, list[Mapping[str, Any]]] = {}
    if len(again):
        for row in deletes.take(pa.array(again)).to_pylist():
            more.setdefault(row["data_file_id"], []).append(row)
        deletes = deletes.take(pa.array(np.setdiff1d(np.arange(len(ids)), again)))
    deletes = deletes.take(pc.index_in(_one(data, "file_id"), value_set=deletes.column("data_file_id")))
    columns = {
        **{name: data.column(name) for name in data.schema.names},
        **{name: deletes.column(name) for name in deletes.schema.names},
        "deleted_count": pa.array(np.zeros(data.num_rows, np.int64)),
    }
    return pa.Table.from_arrays([columns[field.name] for field in LAKE_FILES], schema=LAKE_FILES), more


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


def load_column_statistics(
    connection: Connection, tables: Tables, table_id: int, field: Field, known: pa.Table | None
) -> ColumnStatistics:
    """Of a column without children. `known` are the `rows` of an earlier time: only those of newer files are read."""
    stats, column = tables.file_column_stats, tables.column
    rows = fetch_table(
        connection,
        select(
            stats.c.data_file_id,
            stats.c.null_count,
            stats.c.value_count,
            stats.c.contains_nan if is_float(field.type) else null(),
            stats.c.min_value,
            stats.c.max_value,
        ).where(stats.c.table_id == table_id, stats.c.column_id == field.id, stats.c.data_file_id > _last_id(known)),
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
    return ColumnStatistics(_grown(known, rows), np.iinfo(np.int64).max if since is None else since)


def _last_id(known: pa.Table | None) -> int:
    """The greatest file id among rows that are known; files that came later have greater ones."""
    return -1 if known is None or not known.num_rows else int(pc.max(known.column("file_id")).as_py())


def _grown(known: pa.Table | None, new: pa.Table) -> pa.Table:
    return new if known is None else pa.concat_tables([known, new]).combine_chunks()


def column_bounds(statistics: ColumnStatistics, field: Field, files: pa.Table) -> ColumnBounds:
    """The statistics of `field` for each of `files`."""
    rows = statistics.rows
    index = pc.index_in(files.column("file_id").combine_chunks(), value_set=rows.column("file_id"))
    since = pa.scalar(statistics.typed_since, pa.int64())
    usable = pc.greater_equal(files.column("snapshot_id").combine_chunks(), since)
    index = pc.if_else(usable, index, pa.scalar(None, index.type))
    found = rows.take(index)
    has_nan = _one(found, "has_nan") if is_float(field.type) else pa.array(np.zeros(len(index), np.bool_))
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
    texts = _one(found, name)
    digits = _FRACTION_DIGITS.get(type.name) if isinstance(type, Scalar) else None
    if digits is not None:
        finer = pc.match_substring_regex(texts, rf"\.\d{{{digits + 1}}}")
        texts = pc.if_else(finer, pa.scalar(None, pa.string()), texts)
    return parse_text(texts, type)


_FRACTION_DIGITS = {"timestamp_s": 0, "timestamp_ms": 3, "timestamp": 6}
"""Texts with more are of a file of another program, whose finer values are rounded when they are read."""

_PARTITION_VALUES = pa.schema(
    [
        pa.field("file_id", pa.int64()),
        pa.field("key", pa.int64()),
        pa.field("value", pa.string()),
    ]
)


def load_partition_values(connection: Connection, tables: Tables, table_id: int, known: pa.Table | None) -> pa.Table:
    """Partition values (columns `_PARTITION_VALUES`) of all files that the table ever had.

    `known` is what this gave at an earlier time: only values of newer files are read.
    """
    value = tables.file_partition_value
    rows = fetch_table(
        connection,
        select(value.c.data_file_id, value.c.partition_key_index, value.c.partition_value).where(
            value.c.table_id == table_id, value.c.data_file_id > _last_id(known)
        ),
        _PARTITION_VALUES,
    )
    return _grown(known, rows)


def load_key_types(connection: Connection, tables: Tables, table: TableInfo) -> Mapping[int, frozenset[Type]]:
    """All types that each column had which the table is partitioned by."""
    column, spec = tables.column.c, table.partitioning
    ids = [] if spec is None else [key.field_id for key in spec.fields]
    rows = connection.execute(
        select(column.column_id, column.column_type)
        .where(column.table_id == table.id, column.column_id.in_(ids), column.parent_column.is_(None))
        .distinct()
    )
    found: dict[int, frozenset[Type]] = {}
    for id, type in rows:
        if type.strip().lower() not in (STRUCT, LIST, MAP):
            found[id] = found.get(id, frozenset()) | {parse_type(type)}
    return found


def partition_columns(
    values: pa.Table, types: Mapping[int, frozenset[Type]], table: TableInfo, files: pa.Table
) -> Mapping[tuple[int, str], PartitionColumn]:
    """Values of the partition keys of `table` for each of `files`, as far as they are safe to reason about.

    `types` are all that their columns had. Compaction keeps the values of files: which type they are of is not known.
    """
    spec = table.partitioning
    if spec is None:
        return {}
    current = pc.fill_null(pc.equal(files.column("partition_id").combine_chunks(), spec.id), False)
    columns: dict[tuple[int, str], PartitionColumn] = {}
    for number, key in enumerate(spec.fields):
        field = next((field for field in table.schema.fields if field.id == key.field_id), None)
        meanings = {_meaning(type, key.transform) for type in types.get(key.field_id, ())}
        if field is not None and _is_safe(field.type, key.transform) and len(meanings) == 1:
            type = field.type if key.transform == "identity" else Scalar("int64")
            columns[key.field_id, key.transform] = _partition_column(values, number, type, files, current)
    return columns


def _is_safe(type: Type, transform: str) -> bool:
    if not isinstance(type, Scalar):
        return True
    if type.name.startswith("timestamptz") and transform in ("year", "month", "day", "hour"):
        return False  # Computed in the time zone of the writer's session.
    return type.name not in _UNBOUNDED


def _meaning(type: Type, transform: str) -> str:
    """Equal values of types that differ in it may have different partition values."""
    if transform == "identity":
        return "float32" if type == Scalar("float32") else ""
    return hashed_as(type) if transform.startswith("bucket(") and isinstance(type, (Scalar, Decimal)) else ""


def _partition_column(values: pa.Table, number: int, type: Type, files: pa.Table, current: pa.Array) -> PartitionColumn:
    rows = values.filter(pc.equal(values.column("key"), number))
    index = pc.index_in(files.column("file_id").combine_chunks(), value_set=rows.column("file_id"))
    texts = _one(rows.take(index), "value")
    typed = parse_text(texts, type)
    readable = pc.or_(texts.is_null(), typed.is_valid())
    return PartitionColumn(values=typed, known=pc.and_(pc.and_(current, index.is_valid()), readable))


def load_name_mapping(connection: Connection, tables: Tables, mapping_id: int) -> NameMapping:
    """How the columns of files that have no field ids are found."""
    mapping = tables.name_mapping.c
    rows = connection.execute(
        select(
            mapping.column_id, mapping.source_name, mapping.target_field_id, mapping.parent_column, mapping.is_partition
        )
        .where(mapping.mapping_id == mapping_id)
        .order_by(mapping.column_id)
    ).all()
    index = {column_id: number for number, (column_id, *_) in enumerate(rows)}
    return NameMapping(
        tuple(
            MappedName(name, field_id, None if parent is None else index[parent], bool(is_partition))
            for _, name, field_id, parent, is_partition in rows
        )
    )


def save_name_mapping(attempt: Attempt, table_id: int, mapping: NameMapping) -> int:
    """The id of a mapping of the table; one that it has already is used again."""
    tables, connection = attempt.tables, attempt.connection
    known = select(tables.column_mapping.c.mapping_id).where(tables.column_mapping.c.table_id == table_id)
    ids = [row["mapping_id"] for row in attempt.pending(tables.column_mapping, table_id=table_id)]
    for id in connection.execute(known).scalars():
        if load_name_mapping(connection, tables, id) == mapping:
            return int(id)
    for id in ids:
        pending = attempt.pending(tables.name_mapping, mapping_id=id)
        if NameMapping(tuple(_entry(row) for row in pending)) == mapping:
            return int(id)
    mapping_id = attempt.ids.file_id()
    attempt.add(tables.column_mapping, mapping_id=mapping_id, table_id=table_id, type="map_by_name")
    for number, entry in enumerate(mapping.entries):
        attempt.add(
            tables.name_mapping,
            mapping_id=mapping_id,
            column_id=number,
            source_name=entry.name,
            target_field_id=entry.field_id,
            parent_column=entry.parent,
            is_partition=entry.is_folder,
        )
    return mapping_id


def _entry(row: Mapping[str, Any]) -> MappedName:
    return MappedName(row["source_name"], row["target_field_id"], row["parent_column"], row["is_partition"])


def foreign_directories(connection: Connection, tables: Tables, data_path: str) -> set[str]:
    """Directories outside of `data_path` that some file, schema or table lies in, ending in `/`."""
    paths: list[str] = []
    for table in (tables.schema, tables.table, tables.data_file, tables.delete_file):
        paths += connection.execute(select(table.c.path).where(table.c.path_is_relative == false())).scalars()
    return {path[: path.rindex("/") + 1] for path in paths if not path.startswith(data_path) and "/" in path}
