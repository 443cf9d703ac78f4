"""Deleted positions of data files, read from delete files. Decoded files are kept: they never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.ducklake.delete_files import SNAPSHOT_COLUMN, Deletions, read_deletes
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import ROW_SNAPSHOT_FIELD
from lakedbapi.storage.filesystem import Storage
from lakedbapi.storage.parquet import read_field

_CACHED_POSITIONS = 20_000_000
"""Positions that are kept decoded (16 bytes each), of all delete files together."""


class DeleteReader:
    """`storage` is what the files lie on."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._cache: OrderedDict[str, Deletions] = OrderedDict()
        self._cached = 0
        self._lock = threading.Lock()

    def deleted(self, file: Mapping[str, Any], snapshot: int) -> DeleteVector:
        """The positions that the delete file of `file` (a row of `LAKE_FILES`) lists at `snapshot`."""
        deletions = self._deletions(file)
        return DeleteVector.of(deletions.positions[deletions.snapshots <= snapshot])

    def later_rows(self, file: Mapping[str, Any], snapshot: int) -> DeleteVector:
        """Positions of the rows in a data file that were added after `snapshot`: merged files hold rows of many."""
        snapshots = read_field(self._storage, file["path"], ROW_SNAPSHOT_FIELD, SNAPSHOT_COLUMN)
        if snapshots is None:
            return DeleteVector()
        later = pc.fill_null(pc.greater(snapshots, snapshot), False).to_numpy()
        return DeleteVector.of(np.flatnonzero(later))

    def _deletions(self, file: Mapping[str, Any]) -> Deletions:
        path: str = file["delete_path"]
        with self._lock:
            deletions = self._cache.get(path)
            if deletions is not None:
                self._cache.move_to_end(path)
                return deletions
        deletions = self._read(file)
        with self._lock:
            self._cached += len(deletions) if self._cache.setdefault(path, deletions) is deletions else 0
            while self._cached > _CACHED_POSITIONS and len(self._cache) > 1:
                self._cached -= len(self._cache.popitem(last=False)[1])
        return deletions

    def _read(self, file: Mapping[str, Any]) -> Deletions:
        path = file["delete_path"]
        if file["delete_encryption_key"] is not None:
            raise NotSupportedError(
                f"delete file {path} is encrypted; tables with deletes in encrypted lakes cannot be read"
            )
        if file["delete_format"] not in (None, "parquet"):
            raise NotSupportedError(
                f"delete file {path}: delete files of format {file['delete_format']!r} cannot be read"
            )
        return read_deletes(self._storage, path, file["delete_snapshot_id"])
