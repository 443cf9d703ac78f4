"""Maintenance of Delta tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import CommitResult, Snapshot
from lakedbapi.formats.delta import vacuum
from lakedbapi.formats.delta.checkpoint_writer import retention_of, write_checkpoint
from lakedbapi.formats.delta.clustering import clustered_by, of_another
from lakedbapi.formats.delta.compaction import compact, compaction_groups
from lakedbapi.formats.delta.erasure import DeltaErasure
from lakedbapi.formats.delta.log_cleanup import clean_log
from lakedbapi.formats.delta.snapshot import DeltaSnapshot
from lakedbapi.formats.delta.vacuum import Needless
from lakedbapi.formats.erasure import Erasure
from lakedbapi.formats.maintenance import Compacted, CompactionGroup, Expired, Flushed, Maintenance, StoredRows
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Operation
from lakedbapi.model.instants import EARLIEST, ago
from lakedbapi.model.sql_types import spelled

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog

_MINUTE = timedelta(minutes=1)


class DeltaMaintenance(Maintenance):
    def __init__(self, catalog: DeltaCatalog) -> None:
        self._catalog = catalog

    def groups(self, base: Snapshot, table: TableInfo, files: pa.Table, kind: str) -> Sequence[CompactionGroup]:
        return compaction_groups(self._catalog, _own(base).state(table), table, files)

    def compact(
        self, base: Snapshot, table: TableInfo, kind: str, compacted: Sequence[Compacted], operation: Operation
    ) -> CommitResult:
        return compact(self._catalog, _own(base), table, compacted, operation)

    def clustering(self, base: Snapshot, table: TableInfo) -> Sequence[str]:
        return [path[0].name for path in clustered_by(table) if len(path) == 1]

    def clustered_elsewhere(self, base: Snapshot, table: TableInfo, files: pa.Table) -> npt.NDArray[np.bool_]:
        return of_another(_own(base).state(table).files["clustering_provider"].take(files["file_id"]))

    def checkpoint(self, base: Snapshot, table: TableInfo) -> None:
        state = _own(base).state(table)
        write_checkpoint(self._catalog.storage, state)
        clean_log(self._catalog.storage, self._catalog.table(state.root), state)

    def stored_rows(self, base: Snapshot, table: TableInfo) -> Sequence[StoredRows]:
        return ()

    def has_stored_deletes(self, base: Snapshot, table: TableInfo) -> bool:
        return False

    def flush(self, base: Snapshot, table: TableInfo, flushed: Sequence[Flushed]) -> CommitResult:
        raise NotSupportedError("Delta tables keep no rows outside of files: there is nothing to flush")

    def expire(
        self, versions: Sequence[int] | None = None, older_than: datetime | None = None, *, dry_run: bool = False
    ) -> Expired:
        raise NotSupportedError(
            "versions of Delta tables cannot be expired by number: VACUUM removes the files of old ones, and "
            "delta.logRetentionDuration says how long the log tells of them"
        )

    def cleanup(self, older_than: datetime | None, *, dry_run: bool = False) -> Sequence[str]:
        """Files that a commit removed before `older_than`."""
        return self._clean(self._tables, older_than or _now(), EARLIEST, dry_run)

    def remove_orphans(
        self, older_than: datetime | None, *, table: TableInfo | None = None, dry_run: bool = False
    ) -> Sequence[str]:
        return self._clean(self._tables if table is None else [table], EARLIEST, older_than or _now(), dry_run)

    @property
    def _tables(self) -> Collection[TableInfo]:
        return self._catalog.latest().tables().values()

    def _clean(
        self, tables: Collection[TableInfo], cutoff: datetime, unknown: datetime, dry_run: bool
    ) -> Sequence[str]:
        """What the tables' retention protects stays."""
        removed: list[str] = []
        for table in tables:
            earliest = self._cutoff(table)
            found = vacuum.needless(self._catalog, table, min(cutoff, earliest), min(unknown, earliest))
            removed += self._removed(table, found, None, dry_run)
        return removed

    def vacuum(
        self, table: TableInfo | None, cutoff: datetime, unknown: datetime, *, dry_run: bool = False
    ) -> Sequence[str]:
        removed: list[str] = []
        for each in self._catalog.latest().tables().values() if table is None else [table]:
            earliest = cutoff if table is not None else min(cutoff, self._cutoff(each))
            found = vacuum.needless(self._catalog, each, earliest, min(earliest, unknown))
            removed += self._removed(each, found, _specified(earliest, each), dry_run)
        return removed

    def _removed(self, table: TableInfo, found: Needless, kept: timedelta | None, dry_run: bool) -> Sequence[str]:
        if not dry_run:
            vacuum.remove(self._catalog, table, found, kept)
        return found.paths

    def retention(self, table: TableInfo | None) -> str:
        return super().retention(table) if table is None else f"{retention_of(table.properties)} milliseconds"

    def check_cutoff(self, table: TableInfo | None, cutoff: datetime) -> None:
        """Readers of older versions, and writers of other programs, rely on the retention that a table tells."""
        for each in self._catalog.latest().tables().values() if table is None else [table]:
            if cutoff > self._cutoff(each):
                hours = retention_of(each.properties) / 3_600_000
                raise ProgrammingError(
                    f"VACUUM of Delta table {each.name} cannot retain less than the {hours:g} hours that its readers "
                    f"and writers rely on: if nobody needs them, ALTER TABLE {spelled(each.name)} SET "
                    "('delta.deletedFileRetentionDuration' = 'interval … hours') first"
                )

    @property
    def erasure(self) -> Erasure:
        return DeltaErasure(self._catalog)

    def _cutoff(self, table: TableInfo) -> datetime:
        return ago(retention_of(table.properties))


def _specified(cutoff: datetime, table: TableInfo) -> timedelta | None:
    """The retention of a VACUUM that has its cutoff from another than the table's."""
    kept, own = _now() - cutoff, timedelta(milliseconds=retention_of(table.properties))
    return None if abs(kept - own) < _MINUTE else round(kept / _MINUTE) * _MINUTE


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _own(base: Snapshot) -> DeltaSnapshot:
    assert isinstance(base, DeltaSnapshot)
    return base
