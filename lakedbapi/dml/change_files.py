"""The change feed of formats that store it: what happened to rows, as files beside the data files.

Written where readers could not derive it from the files that a commit adds and removes: when rows got new versions, or
were copied. Then the files tell of all changes of the transaction, each row's net change once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from lakedbapi.dml.writing import write_options
from lakedbapi.engine.base import ROW_ID, Engine, Query, Relation, RelationName, ScanRelation
from lakedbapi.formats.base import CHANGE_TYPE
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import RowChanges, WrittenFile
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import FileGroup, Scan
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Field, Scalar, Schema
from lakedbapi.transaction import CatalogView, Contents, Transaction

_FIELD = Field(CHANGE_TYPE, Scalar("varchar"), 2147480000)
_TOUCHED, _COPIED, _NEW = (RelationName.local(f"_lake_{name}") for name in ("touched", "copied", "new"))
_ID = "_lake_row_id"


def write_change_files(
    engine: Engine, transaction: Transaction, view: CatalogView, table: TableInfo, changes: RowChanges
) -> tuple[WrittenFile, ...]:
    """The files for `changes`, whose rows are still in memory where they are versions of rows with ids."""
    if not view.catalog.stores_changes(table):
        return ()
    if all(staged.row_ids is None for staged in changes.rows):
        return ()
    options = write_options(view.catalog, view.schemas[table.schema_id], table)
    options = replace(
        options,
        directory=f"{options.directory}_change_data/",
        layout=replace(options.layout, prefix="cdc-"),
        sort_by=(),
    )
    schema = Schema((*table.schema.fields, _FIELD))
    query = Query(_sql(table), _relations(view, table, changes))
    written = engine.write(query, schema, options)
    transaction.written.update(file.path for file in written)
    return written


def _sql(table: TableInfo) -> str:
    """All columns, and what happened: a row of the snapshot that went, one that came, or both sides of an update.

    A row that comes may have an id: that of a row of an earlier version.
    """
    names = [quote_identifier(field.name) for field in table.schema.fields]

    def side(relation: str, kind: str) -> str:
        return f"SELECT {', '.join(f'{relation}.{name}' for name in names)}, '{kind}' FROM"

    old = f"(SELECT *, true AS _lake_touched FROM {_TOUCHED.sql} UNION ALL SELECT *, false FROM {_COPIED.sql}) AS o"
    new = f"{_NEW.sql} AS n"
    on = f"o.{_ID} = n.{_ID}"
    differ = " OR ".join(f"o.{name} IS DISTINCT FROM n.{name}" for name in names)
    updated = f"{old} JOIN {new} ON {on} WHERE o._lake_touched OR {differ}"
    return (
        f"{side('o', 'update_preimage')} {updated} UNION ALL {side('n', 'update_postimage')} {updated} "
        f"UNION ALL {side('o', 'delete')} {old} ANTI JOIN {new} ON {on} "
        f"UNION ALL {side('n', 'insert')} {new} ANTI JOIN {old} ON {on}"
    )


def _relations(view: CatalogView, table: TableInfo, changes: RowChanges) -> dict[RelationName, Relation]:
    extra = {ROW_ID: _ID}
    committed = Contents(table, view.snapshot, RowChanges())
    nothing = np.zeros(committed.files.num_rows, np.bool_)
    staged, _ = Contents(table, view.snapshot, RowChanges(changes.rows, changes.files)).scan(nothing)
    whole = dict.fromkeys(changes.removed - changes.rewritten.keys())
    touched = _narrowed(committed, {**whole, **changes.deleted, **changes.rewritten}, hit=True)
    copied = _narrowed(committed, changes.rewritten, hit=False)
    new = Scan(staged.schema, staged.files, staged.rows[len(committed.row_groups) :])
    return {name: ScanRelation(scan, extra) for name, scan in ((_TOUCHED, touched), (_COPIED, copied), (_NEW, new))}


def _narrowed(contents: Contents, rows: Mapping[int, DeleteVector | None], *, hit: bool) -> Scan:
    """The live rows of the committed files with these ids that are among the positions, or are not (None = all)."""
    ids = np.fromiter(rows, np.int64, len(rows))
    scan, _ = contents.scan(np.isin(contents.files.column("file_id").to_numpy(), ids))
    return Scan(scan.schema, tuple(_group(group, rows, hit) for group in scan.files))


def _group(group: FileGroup, rows: Mapping[int, DeleteVector | None], hit: bool) -> FileGroup:
    deletes = dict(group.deletes)
    columns = (group.files.column(name).to_pylist() for name in ("file_id", "record_count"))
    for number, (id, count) in enumerate(zip(*columns, strict=True)):
        vector = rows[id]
        if vector is not None:
            hidden = vector.complement(count) if hit else vector
            deletes[number] = deletes[number] | hidden if number in deletes else hidden
    return replace(group, deletes=deletes)
