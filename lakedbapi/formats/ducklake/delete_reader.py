"""Deleted positions of data files, read from delete files."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc

from lakedbapi.deletes import parquet
from lakedbapi.errors import NotSupportedError
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import ROW_SNAPSHOT_FIELD
from lakedbapi.storage.filesystem import Storage
from lakedbapi.storage.parquet import read_field

_KEPT_VECTORS = 100_000


class DeleteReader:
    """Keeps the vectors of delete files, which never change. `storage` is what the files lie on."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._complete: OrderedDict[str, tuple[int, DeleteVector]] = OrderedDict()
        """Path -> the last snapshot that deleted something in it, and all its positions."""
        self._lock = threading.Lock()

    def deleted(self, file: Mapping[str, Any], snapshot: int) -> DeleteVector:
        """The positions that the delete file of `file` (a row of `LAKE_FILES`) lists at `snapshot`."""
        path: str = file["delete_path"]
        known = self._complete.get(path)
        if known is not None and known[0] <= snapshot:
            return known[1]
        if file["delete_encryption_key"] is not None:
            raise NotSupportedError(
                f"delete file {path} is encrypted; tables with deletes in encrypted lakes cannot be read"
            )
        if file["delete_format"] not in (None, "parquet"):
            raise NotSupportedError(
                f"delete file {path}: delete files of format {file['delete_format']!r} cannot be read"
            )
        return self._read(path, snapshot, file["delete_snapshot_id"])

    def _read(self, path: str, snapshot: int, begin: int) -> DeleteVector:
        positions, snapshots = parquet.read(self._storage, path)
        last = begin if snapshots is None else int(snapshots.max(initial=begin))
        if snapshots is not None and last > snapshot:
            return DeleteVector.of(positions[snapshots <= snapshot])
        vector = DeleteVector.of(positions)
        with self._lock:
            self._complete[path] = last, vector
            while len(self._complete) > _KEPT_VECTORS:
                self._complete.popitem(last=False)
        return vector

    def later_rows(self, file: Mapping[str, Any], snapshot: int) -> DeleteVector:
        """Positions of the rows in a data file that were added after `snapshot`: merged files hold rows of many."""
        snapshots = read_field(self._storage, file["path"], ROW_SNAPSHOT_FIELD, parquet.SNAPSHOT_COLUMN)
        if snapshots is None:
            return DeleteVector()
        later = pc.fill_null(pc.greater(snapshots, snapshot), False).to_numpy()
        return DeleteVector.of(np.flatnonzero(later))
