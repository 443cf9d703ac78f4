"""Erasure of rows from a DuckLake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.ducklake.cleanup import remove
from lakedbapi.formats.ducklake.snapshot import DuckLakeSnapshot
from lakedbapi.formats.ducklake.stored_tables import stored_tables, unreachable_files
from lakedbapi.formats.ducklake.wiping import wipe
from lakedbapi.formats.erasure import Erasure, StoredTable, UnreachableFile, Wiped
from lakedbapi.model.catalog import TableInfo

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog


class DuckLakeErasure(Erasure):
    def __init__(self, catalog: DuckLakeCatalog) -> None:
        self._catalog = catalog

    def stored(self, base: Snapshot, table: TableInfo) -> Sequence[StoredTable]:
        return stored_tables(self._catalog, _own(base), table)

    def unreachable(self, base: Snapshot, table: TableInfo) -> Sequence[UnreachableFile]:
        return unreachable_files(self._catalog, _own(base), table)

    def remove(self, paths: Sequence[str]) -> None:
        remove(self._catalog, paths)

    def wipe(self, base: Snapshot, table: TableInfo) -> Sequence[Wiped]:
        return wipe(self._catalog, _own(base), table)


def _own(base: Snapshot) -> DuckLakeSnapshot:
    assert isinstance(base, DuckLakeSnapshot)
    return base
