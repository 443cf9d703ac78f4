"""The last step before a commit: rows that were held in memory become data files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakedbapi.dml.change_files import write_change_files
from lakedbapi.dml.staged import combined
from lakedbapi.dml.strategy import Policy
from lakedbapi.dml.writing import write_rows, write_staged
from lakedbapi.engine.base import Engine, Query, RelationName, ScanRelation
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Changes, RowChanges, StagedFile, StagedRows
from lakedbapi.model.scan import Scan
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.table_options import MERGE_ON_READ
from lakedbapi.transaction import CatalogView, Contents, Transaction


def flush(engine: Engine, transaction: Transaction, alias: str) -> Changes:
    """The staged changes of the catalog, in which only such rows are left that the catalog itself will hold."""
    view = transaction.view(alias)
    rows = {}
    for table_id, changes in view.changes.rows.items():
        table = view.table_of(table_id)
        if table is not None:
            told = write_change_files(engine, transaction, view, table, changes)
            rows[table_id] = replace(_flushed(engine, transaction, view, table, changes), change_files=told)
    return replace(view.changes, rows=rows)


def _flushed(
    engine: Engine, transaction: Transaction, view: CatalogView, table: TableInfo, changes: RowChanges
) -> RowChanges:
    """Entirely new rows and versions of old ones go to different files where only the latter have row ids to embed."""
    changes = _without_vectors(engine, transaction, view, table, changes)
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


def _without_vectors(
    engine: Engine, transaction: Transaction, view: CatalogView, table: TableInfo, changes: RowChanges
) -> RowChanges:
    """Written files of which later statements deleted rows, as files of the rows that are left, where they cannot have
    a delete vector."""
    deleted = [staged for staged in changes.files if staged.deletes]
    if not deleted:
        return changes
    overlooked = view.catalog.loses_delete_vectors(table, pa.array([staged.file.path for staged in deleted]))
    keeps = view.catalog.has_delete_vectors(table)
    forced = Policy.of_table(view.catalog, table).mode == MERGE_ON_READ
    partial = tuple(
        staged for staged, lost in zip(deleted, overlooked.tolist(), strict=True) if not keeps or (lost and not forced)
    )
    if not partial:
        return changes
    contents = Contents(table, view.snapshot, RowChanges(files=partial))
    scan, _ = contents.scan(np.zeros(contents.files.num_rows, np.bool_))
    name = RelationName.local("_lake_staged")
    columns = ", ".join(quote_identifier(field.name) for field in table.schema.fields)
    query = Query(
        f"SELECT {columns} FROM {name.sql}",
        {name: ScanRelation(Scan(table.schema, scan.files))},
    )
    written = write_rows(engine, transaction, view, table, query, row_ids=False)
    kept = tuple(staged for staged in changes.files if staged not in partial)
    return replace(changes, files=(*kept, *map(StagedFile, written)))
