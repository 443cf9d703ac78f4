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
        read = _READERS.get(file["delete_format"] or "parquet")
        if read is None:
            raise NotSupportedError(
                f"delete file {path}: delete files of format {file['delete_format']!r} cannot be read"
            )
        vector, last = read(self._storage, path, file["delete_snapshot_id"], snapshot)
        if last <= snapshot:
            self._keep(path, last, vector)
        return vector

    def _keep(self, path: str, last: int, vector: DeleteVector) -> None:
        with self._lock:
            self._complete[path] = last, vector
            while len(self._complete) > _KEPT_VECTORS:
                self._complete.popitem(last=False)

    def later_rows(self, file: Mapping[str, Any], snapshot: int) -> DeleteVector:
        """Positions of the rows in a data file that were added after `snapshot`: merged files hold rows of many."""
        snapshots = read_field(self._storage, file["path"], ROW_SNAPSHOT_FIELD, parquet.SNAPSHOT_COLUMN)
        if snapshots is None:
            return DeleteVector()
        later = pc.fill_null(pc.greater(snapshots, snapshot), False).to_numpy()
        return DeleteVector.of(np.flatnonzero(later))


def _read_parquet(storage: Storage, path: str, begin: int, snapshot: int) -> tuple[DeleteVector, int]:
    """The positions deleted at `snapshot`, and the last snapshot that deleted some; `begin` is the file's own."""
    positions, snapshots = parquet.read(storage, path)
    if snapshots is None:
        return DeleteVector.of(positions), begin
    last = int(snapshots.max(initial=begin))
    return DeleteVector.of(positions if last <= snapshot else positions[snapshots <= snapshot]), last


def _read_puffin(storage: Storage, path: str, begin: int, snapshot: int) -> tuple[DeleteVector, int]:
    """As `_read_parquet`."""
    blobs = puffin_blobs(storage.read_bytes(path), path, begin)
    seen = [number for number in blobs if number <= snapshot]
    return decode_vectors(blobs[max(seen)], path) if seen else DeleteVector(), max(blobs, default=begin)


_READERS: Mapping[str, Callable[[Storage, str, int, int], tuple[DeleteVector, int]]] = {
    "parquet": _read_parquet,
    "puffin": _read_puffin,
}
