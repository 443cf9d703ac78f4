"""Maintenance of a DuckLake."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from lakedbapi.formats.base import CommitResult, Snapshot
from lakedbapi.formats.ducklake.cleanup import cleanup, remove_orphans
from lakedbapi.formats.ducklake.compaction import Compaction, compaction_groups
from lakedbapi.formats.ducklake.erasure import DuckLakeErasure
from lakedbapi.formats.ducklake.expiry import expire
from lakedbapi.formats.ducklake.flush import Flush, inlined_deletes, stored_rows
from lakedbapi.formats.ducklake.snapshot import DuckLakeSnapshot
from lakedbapi.formats.ducklake.vacuum import vacuum
from lakedbapi.formats.maintenance import Compacted, CompactionGroup, Expired, Flushed, Maintenance, StoredRows
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Operation

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog


class DuckLakeMaintenance(Maintenance):
    merges_in_history = True

    def __init__(self, catalog: DuckLakeCatalog) -> None:
        self._catalog = catalog

    def groups(self, base: Snapshot, table: TableInfo, files: pa.Table, kind: str) -> Sequence[CompactionGroup]:
        return compaction_groups(self._catalog, _own(base), table, files, kind)

    def compact(
        self, base: Snapshot, table: TableInfo, kind: str, compacted: Sequence[Compacted], operation: Operation
    ) -> CommitResult:
        return Compaction(self._catalog, _own(base), table, kind, compacted).commit()

    def stored_rows(self, base: Snapshot, table: TableInfo) -> Sequence[StoredRows]:
        return stored_rows(self._catalog, _own(base), table)

    def has_stored_deletes(self, base: Snapshot, table: TableInfo) -> bool:
        with self._catalog.backend.read() as connection:
            return bool(inlined_deletes(connection, self._catalog, table, base.id))

    def flush(self, base: Snapshot, table: TableInfo, flushed: Sequence[Flushed]) -> CommitResult:
        return Flush(self._catalog, _own(base), table, flushed).commit()

    def expire(
        self, versions: Sequence[int] | None = None, older_than: datetime | None = None, *, dry_run: bool = False
    ) -> Expired:
        return expire(self._catalog, versions, older_than, dry_run=dry_run)

    def cleanup(self, older_than: datetime | None, *, dry_run: bool = False) -> Sequence[str]:
        return cleanup(self._catalog, older_than, dry_run=dry_run)

    def remove_orphans(
        self, older_than: datetime | None, *, table: TableInfo | None = None, dry_run: bool = False
    ) -> Sequence[str]:
        return remove_orphans(
            self._catalog, older_than, below="" if table is None else table.path or "", dry_run=dry_run
        )

    def vacuum(
        self, table: TableInfo | None, cutoff: datetime, unknown: datetime, *, dry_run: bool = False
    ) -> Sequence[str]:
        return vacuum(self._catalog, table, cutoff, unknown, dry_run=dry_run)

    def retention(self, table: TableInfo | None) -> str:
        return self._catalog.option("expire_older_than") or super().retention(table)

    @property
    def erasure(self) -> DuckLakeErasure:
        return DuckLakeErasure(self._catalog)


def _own(base: Snapshot) -> DuckLakeSnapshot:
    assert isinstance(base, DuckLakeSnapshot)
    return base
