"""Maintenance of Iceberg tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lakedbapi.errors import ConflictError, NotSupportedError
from lakedbapi.formats.base import CommitResult, Snapshot
from lakedbapi.formats.erasure import Erasure
from lakedbapi.formats.iceberg.compaction import compact, compaction_groups
from lakedbapi.formats.iceberg.erasure import IcebergErasure
from lakedbapi.formats.iceberg.expiry import check_may_remove
from lakedbapi.formats.iceberg.snapshot import IcebergSnapshot
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.vacuum import orphans, vacuum
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
        unknown = datetime.now(timezone.utc) if older_than is None else older_than
        removed: list[str] = []
        for table in self._catalog.latest().tables().values():
            if table.path is not None and table.path.startswith(below):
                version = self._version(table)
                check_may_remove(version)
                found = sorted(orphans(version, unknown))
                removed += found
                if not dry_run:
                    version.storage.delete(found)
        return removed

    def _version(self, table: TableInfo) -> TableVersion:
        version = self._catalog.load(self._catalog.named(table.schema_id), table.name, None)
        if version is None:
            raise ConflictError(f"table {table.name} was dropped by another transaction")
        return version

    @property
    def _source(self) -> CatalogSource:
        assert isinstance(self._catalog.source, CatalogSource)
        return self._catalog.source

    def vacuum(
        self, table: TableInfo | None, cutoff: datetime, unknown: datetime, *, dry_run: bool = False
    ) -> Sequence[str]:
        removed: list[str] = []
        for each in self._catalog.latest().tables().values() if table is None else [table]:
            namespace = self._catalog.named(each.schema_id)
            removed += vacuum(
                self._source,
                (*namespace, each.name),
                partial(self._catalog.load, namespace, each.name, None),
                cutoff,
                min(unknown, ago(_ORPHAN_AGE)),
                dry_run=dry_run,
            )
        return removed

    @property
    def erasure(self) -> Erasure:
        return IcebergErasure(self._catalog)

    def retention(self, table: TableInfo | None) -> str:
        """`history.expire.max-snapshot-age-ms`, in Java's default 5 days."""
        age = str(5 * _DAY) if table is None else table.properties.get(_AGE, str(5 * _DAY))
        return f"{int(age)} milliseconds"
