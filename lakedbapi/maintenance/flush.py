"""Flush: rows and deletes that lie in the catalog move to files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakedbapi.dml.writing import write_options
from lakedbapi.formats.maintenance import Flushed, StoredRows
from lakedbapi.maintenance.scope import Subject, removing
from lakedbapi.model.changes import WrittenFile


@dataclass(frozen=True)
class FlushDone:
    """`rows` counts every version of a row, the deleted ones too."""

    schema: str
    table: str
    rows: int


def flush(subject: Subject) -> FlushDone | None:
    """None if nothing of the table lies in the catalog."""
    stored = subject.maintenance.stored_rows(subject.base, subject.table)
    if not stored and not subject.maintenance.has_stored_deletes(subject.base, subject.table):
        return None
    count = sum(part.rows.num_rows for part in stored)
    report = subject.steps(f"flush {subject.schema.name}.{subject.table.name}", count, "rows")
    paths: list[str] = []
    flushed = []
    with removing(subject, paths):
        for part in stored:
            written = _write(subject, part)
            paths += [file.path for file in written]
            flushed.append(Flushed(part, written))
            report(part.rows.num_rows)
        subject.note(subject.maintenance.flush(subject.base, subject.table, flushed))
    return FlushDone(subject.schema.name, subject.table.name, count)


def _write(subject: Subject, part: StoredRows) -> tuple[WrittenFile, ...]:
    rows = part.rows.append_column("_lake_row_id", part.row_ids).append_column("_lake_row_snapshot", part.begins)
    invisible = part.invisible
    if np.any(invisible):
        rows = rows.filter(pa.array(~invisible))
    options = write_options(subject.view.catalog, subject.schema, part.table)
    return subject.context.engine.write(rows, part.table.schema, options, row_ids=True, row_snapshots=True)
