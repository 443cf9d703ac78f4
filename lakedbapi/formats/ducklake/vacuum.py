"""Vacuum: expiry of what is out of date, and the removal of the files that nobody can ask for any more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from lakedbapi.formats.ducklake.cleanup import cleanup, remove_orphans
from lakedbapi.formats.ducklake.expiry import expire
from lakedbapi.formats.ducklake.history import TableChanges
from lakedbapi.formats.ducklake.stored_files import normalized
from lakedbapi.model.catalog import SnapshotInfo, TableInfo

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog


def vacuum(
    catalog: DuckLakeCatalog, table: TableInfo | None, cutoff: datetime, unknown: datetime, *, dry_run: bool
) -> Sequence[str]:
    """See `Maintenance.vacuum`.

    A file that only expired snapshots needed was needless before the cutoff already, so it goes at once.
    """
    going = _superseded(catalog.history(), cutoff)
    if table is not None:
        of_table = TableChanges.read(catalog.backend, table)
        going = [info for info in going if of_table.are_all_of(info)]
    below = "" if table is None else table.path or ""
    needless = expire(catalog, [info.id for info in going], None, dry_run=dry_run).paths if going else ()
    if dry_run:
        removed = [path for path in needless if path.startswith(below)]
    else:
        removed = list(cleanup(catalog, None, below=below, only={normalized(path) for path in needless}))
    removed += cleanup(catalog, cutoff, below=below, dry_run=dry_run)
    return [*removed, *remove_orphans(catalog, unknown, below=below, dry_run=dry_run)]


def _superseded(history: Sequence[SnapshotInfo], cutoff: datetime) -> list[SnapshotInfo]:
    return [info for info, following in pairwise(history) if following.time < cutoff]
