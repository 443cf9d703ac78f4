"""Erasure of rows from a DuckLake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.ducklake.cleanup import remove
from lakedbapi.formats.ducklake.snapshot import DuckLakeSnapshot
from lakedbapi.formats.ducklake.stored_tables import stored_tables, unreachable_files
from lakedbapi.formats.ducklake.wiping import wipe
from lakedbapi.formats.erasure import Ended, Erasure, StoredTable, UnreachableFile, Wiped
from lakedbapi.model.catalog import TableInfo

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog


class DuckLakeErasure(Erasure):
    way_out = "once none is, CALL ducklake_delete_orphaned_files(…, cleanup_all => true) removes orphan files of lakes"

    def __init__(self, catalog: DuckLakeCatalog) -> None:
        self._catalog = catalog

    def stored(self, base: Snapshot, table: TableInfo) -> Sequence[StoredTable]:
        return stored_tables(self._catalog, _own(base), table)

    def unreachable(self, base: Snapshot, table: TableInfo) -> Sequence[UnreachableFile]:
        return unreachable_files(self._catalog, _own(base), table)

    def forget(
        self,
        base: Snapshot,
        table: TableInfo,
        paths: pa.Array,
        begins: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
    ) -> Sequence[Ended]:
        """Snapshots that never saw such a row stay."""
        kept = [info.id for info in self._catalog.history()]
        return Ended.snapshots(self._catalog.maintenance.expire(_seeing(kept, begins, ends)).snapshots)

    def remove(self, table: TableInfo, paths: Sequence[str]) -> None:
        remove(self._catalog, paths)

    def wipe(self, base: Snapshot, table: TableInfo) -> Sequence[Wiped]:
        return wipe(self._catalog, _own(base), table)


def _seeing(kept: Sequence[int], begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> list[int]:
    """The snapshots (ascending) that lie in one of the ranges; ends are exclusive."""
    edges = np.zeros(len(kept) + 1, np.int64)
    np.add.at(edges, np.searchsorted(kept, begins), 1)
    np.add.at(edges, np.searchsorted(kept, ends), -1)
    seeing: list[int] = np.asarray(kept)[np.cumsum(edges)[:-1] > 0].tolist()
    return seeing


def _own(base: Snapshot) -> DuckLakeSnapshot:
    assert isinstance(base, DuckLakeSnapshot)
    return base
