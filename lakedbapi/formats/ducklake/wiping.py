"""What the catalog itself tells of rows that are gone: bounds of columns, and bytes that its database has not freed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, true
from sqlalchemy.engine import Connection

from lakedbapi.errors import OperationalError
from lakedbapi.formats.ducklake.inlined import inlined_tables, read_rows
from lakedbapi.formats.ducklake.snapshot import DuckLakeSnapshot
from lakedbapi.formats.ducklake.stats import leaves, row_stats, widen
from lakedbapi.formats.ducklake.stored_tables import stored_tables
from lakedbapi.formats.erasure import Wiped
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import FileStats

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog


def wipe(catalog: DuckLakeCatalog, base: DuckLakeSnapshot, table: TableInfo) -> Sequence[Wiped]:
    """See `Erasure.wipe`."""
    tables = [stored.table for stored in stored_tables(catalog, base, table)]
    with catalog.backend.write() as connection:
        # Only today's columns: bounds of a dropped one may be those of a row that is gone.
        for info in (table, *tables[1:]):
            _renew_bounds(connection, catalog, info)
    catalog.forget()
    bounds = Wiped(f"{table.name}: bounds of columns", "statistics", True, "computed anew from what is left")
    try:
        done, result = catalog.backend.wipe(_tables_with_values(catalog, [info.id for info in tables]))
    except OperationalError as error:
        done, result = False, f"free pages may hold old values, purge again: {error}"
    return bounds, Wiped(catalog.backend.name, "catalog database", done, result)


def _renew_bounds(connection: Connection, catalog: DuckLakeCatalog, table: TableInfo) -> None:
    """Table-level statistics from those of all files and rows that some snapshot sees: they are not versioned."""
    stats = catalog.backend.tables.table_column_stats
    added = list(_file_stats(connection, catalog, table).values())
    for source in inlined_tables(connection, catalog.backend, table.id, catalog.inlined_tables):
        group, _ = read_rows(connection, catalog.backend, source, table, true())
        if group.rows.num_rows:
            added.append(row_stats(group.rows, table.schema))
    connection.execute(delete(stats).where(stats.c.table_id == table.id))
    rows = [
        {
            "table_id": table.id,
            "column_id": id,
            "contains_null": known.contains_null,
            "contains_nan": known.contains_nan,
            "min_value": known.min_value,
            "max_value": known.max_value,
        }
        for id, known in widen(None, added, table.schema).items()
        if known is not None
    ]
    if rows:
        connection.execute(insert(stats), rows)


def _file_stats(
    connection: Connection, catalog: DuckLakeCatalog, table: TableInfo
) -> Mapping[int, Mapping[int, FileStats]]:
    """By data file id and field id, of every data file of the table, live or ended."""
    data, stats = catalog.backend.tables.data_file.c, catalog.backend.tables.file_column_stats.c
    ids = connection.execute(select(data.data_file_id).where(data.table_id == table.id)).scalars()
    found: dict[int, dict[int, FileStats]] = {id: {} for id in ids}
    known = {leaf.id for leaf in leaves(table.schema.fields)}
    columns = stats.min_value, stats.max_value, stats.null_count, stats.value_count, stats.contains_nan
    rows = select(stats.data_file_id, stats.column_id, *columns).where(stats.table_id == table.id)
    for file_id, field_id, low, high, nulls, values, has_nan in connection.execute(rows):
        if file_id in found and field_id in known:
            found[file_id][field_id] = FileStats(low, high, nulls, values, has_nan, None)
    return found


def _tables_with_values(catalog: DuckLakeCatalog, table_ids: Sequence[int]) -> Sequence[str]:
    """Names of the catalog's tables that tell something of the values of rows."""
    tables = catalog.backend.tables
    kinds = (
        tables.data_file,
        tables.delete_file,
        tables.file_column_stats,
        tables.file_variant_stats,
        tables.file_partition_value,
        tables.table_column_stats,
        tables.files_scheduled_for_deletion,
    )
    with catalog.backend.read() as connection:
        inlined = [
            source.table.name
            for id in table_ids
            for source in inlined_tables(connection, catalog.backend, id, catalog.inlined_tables)
        ]
        deletes = [tables.inlined_delete(id).name for id in table_ids]
        deletes = [name for name in deletes if catalog.backend.has_table(connection, name)]
    return [*(table.name for table in kinds), *inlined, *deletes]
