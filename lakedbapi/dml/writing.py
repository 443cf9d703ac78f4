"""How the data files of a table are written, from the options of its catalog."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lakedbapi.engine.base import Engine, Query, WriteOptions
from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import SchemaInfo, SortField, TableInfo
from lakedbapi.model.changes import StagedRows, WrittenFile
from lakedbapi.model.table_options import CODEC, CODEC_LEVEL, PARQUET_VERSION, check_option, parquet_version
from lakedbapi.sql import guard
from lakedbapi.transaction import CatalogView, Transaction

ROW_ID_COLUMN = "_lake_row_id"
ROW_VERSION_COLUMN = "_lake_row_version"

_LARGEST = (1 << 63) - 1
_SIZE_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def write_rows(
    engine: Engine,
    transaction: Transaction,
    view: CatalogView,
    table: TableInfo,
    rows: Query | pa.Table | pa.RecordBatchReader,
    *,
    row_ids: bool,
    row_versions: bool = False,
) -> tuple[WrittenFile, ...]:
    """Write rows (the table's columns, with `row_ids` followed by `ROW_ID_COLUMN`, with `row_versions` by
    `ROW_VERSION_COLUMN`), known to the transaction from then on."""
    options = write_options(view.catalog, view.schemas[table.schema_id], table)
    if (option(view.catalog, table, "sort_on_insert") or "true").casefold() == "false":
        options = replace(options, sort_by=())
    try:
        written = engine.write(rows, table.schema, options, row_ids=row_ids, row_snapshots=row_versions)
    except BaseException:
        view.catalog.give_up(options.directory)
        raise
    transaction.written.update(file.path for file in written)
    return written


def write_staged(
    engine: Engine, transaction: Transaction, view: CatalogView, table: TableInfo, staged: StagedRows
) -> tuple[WrittenFile, ...]:
    """Write rows that were held in memory."""
    if staged.row_ids is None or view.catalog.file_layout(table).row_id_column is None:
        return write_rows(engine, transaction, view, table, staged.rows, row_ids=False)
    rows = staged.rows.append_column(pa.field(ROW_ID_COLUMN, pa.int64()), staged.row_ids)
    if staged.row_versions is None:
        return write_rows(engine, transaction, view, table, rows, row_ids=True)
    rows = rows.append_column(pa.field(ROW_VERSION_COLUMN, pa.int64()), staged.row_versions)
    return write_rows(engine, transaction, view, table, rows, row_ids=True, row_versions=True)


def option(catalog: Catalog, table: TableInfo, name: str) -> str | None:
    """An option of the table as the transaction sees it, else of its schema or catalog."""
    own = table.properties.get(name)
    return catalog.option(name, table) if own is None else own


def write_options(catalog: Catalog, schema: SchemaInfo, table: TableInfo) -> WriteOptions:
    """The options are `parquet_compression`, `parquet_version`, `target_file_size` and so on, of the table or its
    catalog."""

    def value(name: str) -> str | None:
        return option(catalog, table, name)

    def size(name: str) -> int | None:
        return _size(name, value(name))

    defaults = WriteOptions(directory="")
    for name in (CODEC, PARQUET_VERSION):
        check_option(name, value(name))  # Another program may have set it.
    return WriteOptions(
        directory=catalog.data_directory(table, schema),
        layout=catalog.file_layout(table),
        compression=value(CODEC) or defaults.compression,
        compression_level=size(CODEC_LEVEL),
        row_group_size=size("parquet_row_group_size"),
        row_group_size_bytes=size("parquet_row_group_size_bytes"),
        parquet_version=parquet_version(value(PARQUET_VERSION) or "1"),
        target_file_size=size("target_file_size"),
        hive_layout=(value("hive_file_pattern") or "true").casefold() != "false",
        sort_by=tuple(_ordering(term) for term in table.sorting),
        partitioning=catalog.file_partitioning(table),
    )


def _ordering(term: SortField) -> str:
    guard.check_stored(term.expression, "the sort order of a table")
    return f"{term.expression} {'DESC' if term.descending else 'ASC'} NULLS {'FIRST' if term.nulls_first else 'LAST'}"


def _size(name: str, text: str | None) -> int | None:
    """`512MB`, `64 KiB`, `1000` as a number; None for none. ProgrammingError for what other programs set it to and is
    no size."""
    if text is None:
        return None
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text.strip()[len(number) :].strip().casefold()
    try:
        size = (int(number) if number.isdecimal() else int(float(number))) * _SIZE_UNITS[unit]
    except (ValueError, OverflowError, KeyError):
        size = _LARGEST + 1
    if abs(size) > _LARGEST:
        raise ProgrammingError(f"the option {name} is {text!r}, which is no size such as '512MB': set it to one")
    return size
