"""Rows to Parquet data files, by DuckDB's COPY."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakedbapi.engine.base import Query, WriteOptions
from lakedbapi.engine.duckdb import output
from lakedbapi.engine.duckdb.parameters import bind
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.engine.duckdb.statistics import leaf_ids, written_file
from lakedbapi.engine.duckdb.values import from_arrow
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.scan import ROW_ID_FIELD
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Field, List, Map, Schema, Struct, Type

if TYPE_CHECKING:
    from lakedbapi.engine.duckdb.engine import Execution

ROW_ID_COLUMN = "_ducklake_internal_row_id"


def write(
    execution: Execution, source: Query | pa.Table, schema: Schema, options: WriteOptions, *, row_ids: bool
) -> tuple[WrittenFile, ...]:
    """See `Engine.write`. Every file of the call has the call's own token in its name, so that a failure can remove them."""
    if isinstance(source, pa.Table) and source.num_rows == 0:
        return ()
    execution.prepare()
    token = output.file_token(options.file_prefix)
    rows, parameters = _rows(execution, source, schema, row_ids)
    if options.sort_by:
        rows = f"SELECT * FROM ({rows}) ORDER BY {', '.join(options.sort_by)}"
    target = output.prepare_directory(options.directory)
    sql = f"COPY ({rows}) TO {quote_literal(f'{target}{token}.parquet')} ({', '.join(_copy_options(schema, options, row_ids))})"
    try:
        records = execution.rows(sql, parameters)
    except BaseException:
        output.remove_all(target, token, execution.filesystems)
        raise
    leaves = leaf_ids(schema)
    return tuple(written_file(record, leaves, options, row_ids) for record in records if record["count"])


def _rows(
    execution: Execution, source: Query | pa.Table, schema: Schema, row_ids: bool
) -> tuple[str, dict[str, object]]:
    """SELECT of the columns as they are to be stored, and its parameters."""
    width = len(schema.fields) + row_ids
    names = [f"_lake_c{i}" for i in range(width)]
    if isinstance(source, Query):
        inner, parameters = f"({source.sql.rstrip().rstrip(';')}\n)", bind(source.sql, source.parameters)
        columns = [f"CAST({name} AS {sql_type(f.type)})" for name, f in zip(names, schema.fields, strict=False)]
    else:
        inner, parameters = Resources(execution.cursor).register(source), {}
        columns = [from_arrow(name, f.type) for name, f in zip(names, schema.fields, strict=False)]
    targets = [quote_identifier(f.name) for f in schema.fields]
    if row_ids:
        columns.append(f"CAST({names[-1]} AS BIGINT)")
        targets.append(ROW_ID_COLUMN)
    selected = ", ".join(f"{column} AS {target}" for column, target in zip(columns, targets, strict=True))
    return f"SELECT {selected} FROM {inner} AS _lake_rows({', '.join(names)})", parameters


def _copy_options(schema: Schema, options: WriteOptions, row_ids: bool) -> list[str]:
    ids = [f"{quote_identifier(f.name)}: {_field_ids(f)}" for f in schema.fields]
    if row_ids:
        ids.append(f"{ROW_ID_COLUMN}: {ROW_ID_FIELD}")
    result = ["FORMAT parquet", "RETURN_STATS", "WRITE_EMPTY_FILE false", f"FIELD_IDS {{{', '.join(ids)}}}"]
    result.append(f"COMPRESSION {quote_literal(options.compression)}")
    if options.compression_level is not None:
        result.append(f"COMPRESSION_LEVEL {options.compression_level}")
    if options.row_group_size is not None:
        result.append(f"ROW_GROUP_SIZE {options.row_group_size}")
    if options.row_group_size_bytes is not None:
        result.append(f"ROW_GROUP_SIZE_BYTES {options.row_group_size_bytes}")
    if options.parquet_version is not None:
        result.append(f"PARQUET_VERSION {quote_literal(options.parquet_version)}")
    return result


def _field_ids(field: Field) -> str:
    """`5`, or `{__duckdb_field_id: 5, "x": 6}` for a nested type."""
    children = _children(field.type)
    if not children:
        return str(field.id)
    inner = ", ".join(f"{quote_identifier(name)}: {_field_ids(child)}" for name, child in children)
    return f"{{__duckdb_field_id: {field.id}, {inner}}}"


def _children(type: Type) -> list[tuple[str, Field]]:
    if isinstance(type, Struct):
        return [(f.name, f) for f in type.fields]
    if isinstance(type, List):
        return [("element", type.element)]
    if isinstance(type, Map):
        return [("key", type.key), ("value", type.value)]
    return []
