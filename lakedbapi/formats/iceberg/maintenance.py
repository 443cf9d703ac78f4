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
from lakedbapi.formats.iceberg.expiry import check_may_remove, chosen, expire, needless
from lakedbapi.formats.iceberg.expiry import older_than as expiry_before
from lakedbapi.formats.iceberg.history import history
from lakedbapi.formats.iceberg.snapshot import IcebergSnapshot
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.tidying import tidy
from lakedbapi.formats.iceberg.vacuum import orphans, vacuum
from lakedbapi.formats.maintenance import (
    Compacted,
    CompactionGroup,
    Expired,
    Flushed,
    Maintenance,
    Rewritten,
    StoredRows,
)
from lakedbapi.formats.properties import whole_number
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Operation
from lakedbapi.model.instants import EVER, ago

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
        return compact(self._catalog, _own(base), table, compacted, operation)

    def stored_rows(self, base: Snapshot, table: TableInfo) -> Sequence[StoredRows]:
        return ()

    def has_stored_deletes(self, base: Snapshot, table: TableInfo) -> bool:
        return False

    def flush(self, base: Snapshot, table: TableInfo, flushed: Sequence[Flushed]) -> CommitResult:
        raise NotSupportedError("Iceberg tables keep no rows outside of files: there is nothing to flush")

    def expire(
        self, versions: Sequence[int] | None = None, older_than: datetime | None = None, *, dry_run: bool = False
    ) -> Expired:
        raise NotSupportedError(
            "snapshots of Iceberg tables expire table by table: CALL expire_snapshots(table => 't', …), or VACUUM t"
        )

    def expire_table(
        self,
        base: Snapshot,
        table: TableInfo,
        versions: Sequence[int] | None,
        older_than: datetime | None,
        retain_last: int | None,
        *,
        dry_run: bool = False,
    ) -> Expired:
        version = self._version(table)
        check_may_remove(version)
        if versions is None:
            cutoff = older_than or ago(_age(table))
            expiry = expiry_before(version, cutoff, retain_last=retain_last)
        else:
            expiry = chosen(version, versions)
        paths = sorted(needless(version, expiry.snapshots))
        if not dry_run:
            identifier = (*self._catalog.named(table.schema_id), table.name)
            if not expire(self._source, identifier, version, expiry):
                paths = []
            version.storage.delete(paths)
        return Expired([info for info in history(version.metadata) if info.id in expiry.snapshots], paths)

    def rewrite_manifests(self, base: Snapshot, table: TableInfo) -> Rewritten:
        done = tidy(self._catalog, table, _own(base).version_of(table), manifests=True)
        return Rewritten(done.replaced_manifests, done.created_manifests)

    def rewrite_delete_files(self, base: Snapshot, table: TableInfo) -> Rewritten:
        done = tidy(self._catalog, table, _own(base).version_of(table), deletes=True)
        return Rewritten(done.removed_delete_files, done.added_delete_files)

    def cleanup(self, older_than: datetime | None, *, dry_run: bool = False) -> Sequence[str]:
        raise NotSupportedError("files of Iceberg tables are removed with the snapshots that need them: VACUUM t")

    def remove_orphans(
        self, older_than: datetime | None, *, table: TableInfo | None = None, dry_run: bool = False
    ) -> Sequence[str]:
        unknown = datetime.now(timezone.utc) if older_than is None else older_than
        removed: list[str] = []
        for each in self._catalog.latest().tables().values() if table is None else [table]:
            version = self._version(each)
            check_may_remove(version)
            found = sorted(orphans(self._source, version, unknown))
            removed += found
            if not dry_run:
                version.storage.delete(found)
        return removed

    def _version(self, table: TableInfo) -> TableVersion:
        version = self._catalog.load_whole(self._catalog.named(table.schema_id), table.name)
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
                partial(self._catalog.load_whole, namespace, each.name),
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
        return f"{5 * _DAY if table is None else _age(table)} milliseconds"


def _age(table: TableInfo) -> int:
    """Milliseconds after which snapshots expire."""
    return min(whole_number(table.properties, _AGE, 5 * _DAY), EVER)


def _own(base: Snapshot) -> IcebergSnapshot:
    assert isinstance(base, IcebergSnapshot)
    return base
