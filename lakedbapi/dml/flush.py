"""The last step before a commit: rows that were held in memory become data files."""

from __future__ import annotations

from dataclasses import replace

from lakedbapi.dml.staged import combined
from lakedbapi.dml.writing import write_staged
from lakedbapi.engine.base import Engine
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Changes, RowChanges, StagedFile, StagedRows
from lakedbapi.transaction import CatalogView, Transaction


def flush(engine: Engine, transaction: Transaction, alias: str) -> Changes:
    """The staged changes of the catalog, in which only such rows are left that the catalog itself will hold."""
    view = transaction.view(alias)
    rows = {}
    for table_id, changes in view.changes.rows.items():
        table = view.table_of(table_id)
        if table is not None:
            rows[table_id] = _flushed(engine, transaction, view, table, changes)
    return replace(view.changes, rows=rows)


def _flushed(
    engine: Engine, transaction: Transaction, view: CatalogView, table: TableInfo, changes: RowChanges
) -> RowChanges:
    """Entirely new rows and versions of old ones go to different files where only the latter have row ids to embed."""
    staged = _by_kind(view, table, changes)
    if not staged or view.catalog.keeps_rows(table, sum(part.rows.num_rows for part in staged)):
        return replace(changes, rows=tuple(staged))
    written = [file for part in staged for file in write_staged(engine, transaction, view, table, part)]
    return replace(changes, rows=(), files=(*changes.files, *map(StagedFile, written)))


def _by_kind(view: CatalogView, table: TableInfo, changes: RowChanges) -> list[StagedRows]:
    if view.catalog.file_layout(table).row_id_column is None:
        return [combined([StagedRows(part.rows) for part in changes.rows])] if changes.rows else []
    kinds = [[part for part in changes.rows if (part.row_ids is None) is fresh] for fresh in (True, False)]
    return [combined(parts) for parts in kinds if parts]
