"""Rows to Parquet data files, by DuckDB's COPY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa

from lakedbapi.engine.base import Query, WriteOptions, WriteSource
from lakedbapi.engine.duckdb import driver, output
from lakedbapi.engine.duckdb.encrypting import EncryptingFileSystem, encrypting_path
from lakedbapi.engine.duckdb.exact import as_stored, stored, without_bounds
from lakedbapi.engine.duckdb.parameters import bind
from lakedbapi.engine.duckdb.partitioning import Key, as_text, only_identity, partition_keys, with_buckets
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.engine.duckdb.statistics import leaf_ids, written_file
from lakedbapi.engine.duckdb.values import from_arrow
from lakedbapi.errors import OperationalError
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.layout import FileLayout
from lakedbapi.model.scan import ROW_ID_FIELD, ROW_SNAPSHOT_FIELD
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Field, List, Map, Schema, Struct, Type

if TYPE_CHECKING:
    from lakedbapi.engine.duckdb.engine import Execution

Embedded = Mapping[str, int]
"""Field ids of the BIGINT columns that a file has behind its table's, by name."""


def embedded_columns(layout: FileLayout, row_ids: bool, row_snapshots: bool) -> Embedded:
    columns: dict[str, int] = {}
    if row_ids:
        assert layout.row_id_column is not None
        columns[layout.row_id_column] = ROW_ID_FIELD
    return {**columns, layout.row_snapshot_column: ROW_SNAPSHOT_FIELD} if row_snapshots else columns


def write(
    execution: Execution,
    source: WriteSource,
    schema: Schema,
    options: WriteOptions,
    embedded: Embedded,
) -> tuple[WrittenFile, ...]:
    """See `Engine.write`. The files of a call have its token in their names, so that a failure can remove them."""
    try:
        return _write(execution, source, schema, options, embedded)
    except OperationalError as error:
        if not options.hive_layout or "File name too long" not in str(error):
            raise
        if not _can_repeat(source):
            raise OperationalError(
                f"a value by which rows for {options.directory} are partitioned is too long for the name of a folder, "
                "and rows that are streamed come once: insert such rows by statements of their own"
            ) from error
    # Readers need no folders.
    return _write(execution, source, schema, replace(options, hive_layout=False), embedded)


def _can_repeat(source: WriteSource) -> bool:
    read = source.relations.values() if isinstance(source, Query) else [source]
    return not any(isinstance(rows, pa.RecordBatchReader) for rows in read)


def _write(
    execution: Execution,
    source: WriteSource,
    schema: Schema,
    options: WriteOptions,
    embedded: Embedded,
) -> tuple[WrittenFile, ...]:
    if isinstance(source, pa.Table) and source.num_rows == 0:
        return ()
    if isinstance(source, Query):
        execution.prepare()
    keys = partition_keys(options.partitioning, schema, options.layout)
    rows, parameters = _typed(execution, source, schema, embedded)
    in_order = not isinstance(source, Query) and not embedded
    if any(key.buckets is not None for key in keys):
        with execution.sibling() as copier:
            reader = with_buckets(execution.start(rows, parameters), keys, schema)
            table = Resources(copier.cursor).register(reader)
            numbered = f"SELECT {', '.join(_as_before(reader.schema.names, schema))} FROM {table}"
            return _copy(copier, numbered, {}, keys, schema, options, embedded)
    return _copy(execution, rows, parameters, keys, schema, options, embedded, in_order=in_order)


def _as_before(names: Sequence[str], schema: Schema) -> list[str]:
    """SQL for the columns of `schema`, and others behind them, after a way through Arrow, which has fewer types."""
    columns = [quote_identifier(name) for name in names]
    types = [field.type for field in schema.fields]
    typed = [f"{from_arrow(column, type)} AS {column}" for column, type in zip(columns, types, strict=False)]
    return [*typed, *columns[len(types) :]]


def _copy(
    execution: Execution,
    rows: str,
    parameters: Mapping[str, object],
    keys: Sequence[Key],
    schema: Schema,
    options: WriteOptions,
    embedded: Embedded,
    *,
    in_order: bool = False,
) -> tuple[WrittenFile, ...]:
    token = output.file_token(options.layout.prefix)
    directory = output.prepare_directory(options.directory)
    in_path = _only_in_path(keys, options)
    fields = [field for field in schema.fields if field not in in_path]
    columns = _columns(schema, keys, in_path, options, embedded)
    several = _many_files(keys, options)
    key_names = [key.name for key in keys]
    rows = as_stored(rows, columns, options.sort_by, key_names, several=several, in_order=in_order)
    settings = [*_format(fields, options, embedded), *_layout(keys, options, token, in_path)]
    execution.confine(directory)
    single = f"{directory}{token}{options.layout.suffix}.parquet"
    target = directory.rstrip("/") if several else single
    encrypting = execution.encrypted_output() if options.layout.encrypted else None
    try:
        to = quote_literal(target if encrypting is None else encrypting_path(target))
        records = execution.rows(f"COPY ({rows}) TO {to} ({', '.join(settings)})", parameters)
        if encrypting is not None:
            records = [_encrypted(record, encrypting) for record in records]
        output.sync([str(record["filename"]) for record in records])
    except BaseException:
        output.remove_all(directory, token, execution.filesystems)
        raise
    output.remove([str(record["filename"]) for record in records if not record["count"]], execution.filesystems)
    leaves = leaf_ids(fields, options.layout)
    has_row_ids = ROW_ID_FIELD in embedded.values()
    return tuple(
        without_bounds(written_file(record, leaves, keys, options, has_row_ids), schema)
        for record in records
        if record["count"]
    )


def _encrypted(record: Mapping[str, object], encrypting: EncryptingFileSystem) -> dict[str, object]:
    """What COPY tells about a file, as it is now that it is encrypted."""
    path, file = encrypting.take(str(record["filename"]))
    found = {"filename": path, "file_size_bytes": file.size, "footer_size_bytes": file.footer_size}
    return {**record, **found, "encryption_key": file.key}


def _only_in_path(keys: Sequence[Key], options: WriteOptions) -> list[Field]:
    """The columns that files leave out, since their directory tells the value."""
    keep = options.layout.partition_columns or options.partitioning is None or not only_identity(options.partitioning)
    return [] if keep else [key.column for key in keys]


def _columns(
    schema: Schema, keys: Sequence[Key], in_path: Sequence[Field], options: WriteOptions, embedded: Embedded
) -> dict[str, str]:
    """What files hold, and what they are partitioned by: SQL by name."""
    columns = {}
    for field in schema.fields:
        column = quote_identifier(field.name)
        value = as_text(column, field.type) if field in in_path else stored(column, field, options.layout)
        columns[options.layout.name(field)] = value
    columns |= {name: quote_identifier(name) for name in embedded}
    if options.partitioning is not None and not only_identity(options.partitioning):
        hashed = (f"_lake_b{number}" for number in count())
        columns |= {key.name: next(hashed) if key.sql is None else key.sql for key in keys}
    return columns


def _typed(
    execution: Execution, source: WriteSource, schema: Schema, embedded: Embedded
) -> tuple[str, dict[str, object]]:
    """SELECT of the columns as they are to be stored, and its parameters."""
    names = [f"_lake_c{i}" for i in range(len(schema.fields) + len(embedded))]
    if isinstance(source, Query):
        inner = f"({execution.over_relations(source.sql.rstrip().rstrip(';'))}\n)"
        parameters = bind(source.sql, source.parameters)
        columns = [f"CAST({name} AS {sql_type(f.type)})" for name, f in zip(names, schema.fields, strict=False)]
    else:
        inner, parameters = Resources(execution.cursor).register(source), {}
        columns = [from_arrow(name, f.type) for name, f in zip(names, schema.fields, strict=False)]
    columns += [f"CAST({name} AS BIGINT)" for name in names[len(schema.fields) :]]
    targets = [*(quote_identifier(f.name) for f in schema.fields), *map(quote_identifier, embedded)]
    selected = ", ".join(f"{column} AS {target}" for column, target in zip(columns, targets, strict=True))
    return f"SELECT {selected} FROM {inner} AS _lake_rows({', '.join(names)})", parameters


def _many_files(keys: Sequence[Key], options: WriteOptions) -> bool:
    return bool(keys) or options.target_file_size is not None


def _layout(keys: Sequence[Key], options: WriteOptions, token: str, in_path: Sequence[Field]) -> list[str]:
    if not _many_files(keys, options):
        return ["WRITE_EMPTY_FILE false"]
    # The directory has files of other writers; names are unique, so nothing is overwritten.
    pattern = f"{token}-{{uuidv7}}{options.layout.suffix}"
    layout = ["OVERWRITE_OR_IGNORE", f"FILENAME_PATTERN {quote_literal(pattern)}"]
    if keys:
        assert options.partitioning is not None
        layout.append(f"PARTITION_BY ({', '.join(quote_identifier(key.name) for key in keys)})")
        kept = only_identity(options.partitioning) and not in_path
        layout.append(f"WRITE_PARTITION_COLUMNS {str(kept).lower()}")
        layout.append(f"HIVE_FILE_PATTERN {str(options.hive_layout).lower()}")
    if options.target_file_size is not None and (not keys or driver.MAJOR >= 2):
        layout.append(f"FILE_SIZE_BYTES {options.target_file_size}")
    return layout


def _format(fields: Sequence[Field], options: WriteOptions, embedded: Embedded) -> list[str]:
    result = ["FORMAT parquet", "RETURN_STATS"]
    if options.layout.field_ids:
        ids = [f"{quote_identifier(options.layout.name(f))}: {_field_ids(f, options.layout)}" for f in fields]
        ids += [f"{quote_identifier(name)}: {field_id}" for name, field_id in embedded.items()]
        result.append(f"FIELD_IDS {{{', '.join(ids)}}}")
    result.append(f"COMPRESSION {quote_literal(options.compression)}")
    if options.compression_level is not None:
        result.append(f"COMPRESSION_LEVEL {options.compression_level}")
    if options.row_group_size is not None:
        result.append(f"ROW_GROUP_SIZE {options.row_group_size}")
    if options.row_group_size_bytes is not None and driver.MAJOR >= 2:
        # DuckDB 1 can do this only where the order of rows does not matter.
        result.append(f"ROW_GROUP_SIZE_BYTES {options.row_group_size_bytes}")
    if options.parquet_version is not None:
        result.append(f"PARQUET_VERSION {quote_literal(options.parquet_version)}")
    return result


def _field_ids(field: Field, layout: FileLayout) -> str:
    """`5`, or `{__duckdb_field_id: 5, "x": 6}` for a nested type."""
    children = _children(field.type, layout)
    if not children:
        return str(field.id)
    inner = ", ".join(f"{quote_identifier(name)}: {_field_ids(child, layout)}" for name, child in children)
    return f"{{__duckdb_field_id: {field.id}, {inner}}}"


def _children(type: Type, layout: FileLayout) -> list[tuple[str, Field]]:
    if isinstance(type, Struct):
        return [(layout.name(f), f) for f in type.fields]
    if isinstance(type, List):
        return [("element", type.element)]
    if isinstance(type, Map):
        return [("key", type.key), ("value", type.value)]
    return []
