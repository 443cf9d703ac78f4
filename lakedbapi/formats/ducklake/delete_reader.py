"""Deleted positions of data files, read from delete files."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc

from lakedbapi.deletes import parquet
from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.ducklake.delete_files import decode_vectors, puffin_blobs
from lakedbapi.formats.ducklake.partial import INFO, row_snapshots
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage

_KEPT_VECTORS = 100_000


class DeleteReader:
    """Keeps the vectors of delete files, which never change. `storage` is what the files lie on."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._complete: OrderedDict[tuple[str, int], tuple[int, DeleteVector]] = OrderedDict()
        """(path, data file id) -> the last snapshot that deleted something, and all positions."""
        self._lock = threading.Lock()

    def deleted(self, file: Mapping[str, Any], data_file_id: int, snapshot: int) -> DeleteVector:
        """The positions in a data file that the delete file of `file` (a row of `LAKE_FILES`) lists at `snapshot`."""
        path: str = file["delete_path"]
        key = path, data_file_id
        known = self._complete.get(key)
        if known is not None and known[0] <= snapshot:
            return known[1]
        read = _READERS.get(file["delete_format"] or "parquet")
        if read is None:
            raise NotSupportedError(
                f"delete file {path}: delete files of format {file['delete_format']!r} cannot be read"
            )
        vector, last = read(self._storage, file, data_file_id, snapshot)
        if last <= snapshot:
            self._keep(key, last, vector)
        return vector

    def _keep(self, key: tuple[str, int], last: int, vector: DeleteVector) -> None:
        with self._lock:
            self._complete[key] = last, vector
            while len(self._complete) > _KEPT_VECTORS:
                self._complete.popitem(last=False)

    def later_rows(self, file: Mapping[str, Any], snapshot: int) -> DeleteVector:
        """Positions of the rows in a data file that were added after `snapshot`: merged files hold rows of many."""
        snapshots = row_snapshots(self._storage, file["path"], file[INFO], file["encryption_key"])
        if snapshots is None:
            return DeleteVector()
        later = pc.fill_null(pc.greater(snapshots, snapshot), False).to_numpy()
        return DeleteVector.of(np.flatnonzero(later))


def _read_parquet(
    storage: Storage, file: Mapping[str, Any], data_file_id: int, snapshot: int
) -> tuple[DeleteVector, int]:
    """The positions deleted at `snapshot`, and the last snapshot that deleted some."""
    begin: int = file["delete_snapshot_id"]
    positions, snapshots = parquet.read(storage, file["delete_path"], data_file_id, file["delete_encryption_key"])
    if snapshots is None:
        return DeleteVector.of(positions), begin
    last = int(snapshots.max(initial=begin))
    return DeleteVector.of(positions if last <= snapshot else positions[snapshots <= snapshot]), last


def _read_puffin(
    storage: Storage, file: Mapping[str, Any], data_file_id: int, snapshot: int
) -> tuple[DeleteVector, int]:
    """As `_read_parquet`."""
    path, begin = file["delete_path"], file["delete_snapshot_id"]
    blobs = puffin_blobs(storage.read_bytes(path), path, begin)
    seen = [number for number in blobs if number <= snapshot]
    return decode_vectors(blobs[max(seen)], path) if seen else DeleteVector(), max(blobs, default=begin)


_READERS: Mapping[str, Callable[[Storage, Mapping[str, Any], int, int], tuple[DeleteVector, int]]] = {
    "parquet": _read_parquet,
    "puffin": _read_puffin,
}
