"""Maintenance of Iceberg tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.base import CommitResult, Snapshot
from lakedbapi.formats.iceberg.compaction import compact, compaction_groups
from lakedbapi.formats.iceberg.snapshot import IcebergSnapshot
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.formats.iceberg.vacuum import vacuum
from lakedbapi.formats.maintenance import Compacted, CompactionGroup, Expired, Flushed, Maintenance, StoredRows
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Operation
from lakedbapi.model.instants import ago

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.catalog import IcebergCatalog

_AGE = "history.expire.max-snapshot-age-ms"
_DAY = 86_400_000
_ORPHAN_AGE = 3 * _DAY
"""Milliseconds in which a file that no snapshot has may belong to a transaction under way."""


class IcebergMaintenance(Maintenance):
    def __init__(self, catalog: IcebergCatalog) -> None:
        self._catalog = catalog

    def groups(self, base: Snapshot, table: TableInfo, files: pa.Table, kind: str) -> Sequence[CompactionGroup]:
        return compaction_groups(self._catalog, table, files) if files.num_rows else ()

    def compact(
        self, base: Snapshot, table: TableInfo, kind: str, compacted: Sequence[Compacted], operation: Operation
    ) -> CommitResult:
        assert isinstance(base, IcebergSnapshot)
        return compact(self._catalog, base, table, compacted, operation)

    def stored_rows(self, base: Snapshot, table: TableInfo) -> Sequence[StoredRows]:
        return ()

    def has_stored_deletes(self, base: Snapshot, table: TableInfo) -> bool:
        return False

    def flush(self, base: Snapshot, table: TableInfo, flushed: Sequence[Flushed]) -> CommitResult:
        raise NotSupportedError("Iceberg tables keep no rows outside of files: there is nothing to flush")

    def expire(
        self, versions: Sequence[int] | None = None, older_than: datetime | None = None, *, dry_run: bool = False
    ) -> Expired:
        raise NotSupportedError("snapshots of Iceberg tables are expired table by table: VACUUM t RETAIN … HOURS")

    def cleanup(self, older_than: datetime | None, *, below: str = "", dry_run: bool = False) -> Sequence[str]:
        raise NotSupportedError("files of Iceberg tables are removed with the snapshots that need them: VACUUM t")

    def remove_orphans(self, older_than: datetime | None, *, below: str = "", dry_run: bool = False) -> Sequence[str]:
        raise NotSupportedError("files that no snapshot of an Iceberg table has are removed by VACUUM t")

    def vacuum(
        self, table: TableInfo | None, cutoff: datetime, unknown: datetime, *, dry_run: bool = False
    ) -> Sequence[str]:
        snapshot = self._catalog.latest()
        removed: list[str] = []
        for each in snapshot.tables().values() if table is None else [table]:
            namespace = self._catalog.named(each.schema_id)
            assert isinstance(self._catalog.source, CatalogSource)
            removed += vacuum(
                self._catalog.source,
                (*namespace, each.name),
                partial(self._catalog.load, namespace, each.name, None),
                cutoff,
                min(unknown, ago(_ORPHAN_AGE)),
                dry_run=dry_run,
            )
        return removed

    def retention(self, table: TableInfo | None) -> str:
        """`history.expire.max-snapshot-age-ms`, in Java's default 5 days."""
        age = str(5 * _DAY) if table is None else table.properties.get(_AGE, str(5 * _DAY))
        return f"{int(age)} milliseconds"
