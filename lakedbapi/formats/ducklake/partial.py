"""Files with rows of several snapshots: which snapshot each row is of.

Merging writes such files. The snapshots are embedded in the file; in catalogs before 0.4 they can be counted in the
catalog instead. There `partial_file_info` is `partial_max:7` (embedded, the greatest is 7), or `3:10|4:25` for 10 rows
of snapshot 3 and the 15 after them of snapshot 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakedbapi.deletes.parquet import SNAPSHOT_COLUMN
from lakedbapi.errors import DamagedFileError
from lakedbapi.model.scan import ROW_SNAPSHOT_FIELD
from lakedbapi.storage.filesystem import Storage
from lakedbapi.storage.parquet import read_field

INFO = "partial_file_info"
_EMBEDDED = "partial_max:"


def counted_snapshots(info: str | None) -> Sequence[tuple[int, int]]:
    """(snapshot, rows of the file up to it), ascending; empty where the snapshots are embedded."""
    if info is None or info.startswith(_EMBEDDED):
        return ()
    try:
        return [(int(snapshot), int(count)) for snapshot, count in (part.split(":") for part in info.split("|"))]
    except ValueError:
        raise DamagedFileError(
            f"{INFO} {info!r} in the catalog does not say which snapshots the rows of a file are of"
        ) from None


def with_partial_max(files: pa.Table) -> pa.Table:
    """`files` (columns `partial_max` and `INFO` among them) with the `partial_max` that the texts tell."""
    infos = files.column(INFO)
    if infos.null_count == len(infos):
        return files
    known = zip(files.column("partial_max").to_pylist(), infos.to_pylist(), strict=True)
    filled = [given if info is None else _partial_max(info) for given, info in known]
    return files.set_column(files.schema.get_field_index("partial_max"), "partial_max", pa.array(filled, pa.int64()))


def _partial_max(info: str) -> int:
    counted = counted_snapshots(info)
    return counted[-1][0] if counted else int(info[len(_EMBEDDED) :])


def row_snapshots(storage: Storage, path: str, info: str | None, key: str | None = None) -> pa.ChunkedArray | None:
    """The snapshot of each row of a file, NULL = the file's own; None when all are the file's own.

    `key` is that of an encrypted file.
    """
    counted = counted_snapshots(info)
    if not counted:
        return read_field(storage, path, ROW_SNAPSHOT_FIELD, SNAPSHOT_COLUMN, key)
    snapshots, counts = np.array(counted, np.int64).T
    return pa.chunked_array([np.repeat(snapshots, np.diff(counts, prepend=0))])
