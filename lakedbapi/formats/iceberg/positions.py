"""Deleted positions of data files, from position delete files and deletion vectors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.deletes import parquet, roaring
from lakedbapi.errors import DataError, NotSupportedError
from lakedbapi.formats.iceberg.delete_index import DeleteIndex, path_bounds
from lakedbapi.formats.iceberg.files import LiveFiles
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage

Numbers = npt.NDArray[np.int64]


def deleted_positions(
    files: LiveFiles, index: DeleteIndex, storage: Storage, numbers: Numbers
) -> Mapping[int, DeleteVector]:
    """The deleted positions of the data files `numbers`, by number; files without any have no entry."""
    found = _vectors(files.deletes, index.vectors, numbers[index.vectors[numbers] >= 0], storage)
    wanted = numbers[index.may_have_positions[numbers]]
    if not len(wanted):
        return found
    paths = files.data.column("raw_path").take(pa.array(wanted)).to_pylist()
    data, rows = index.positions
    chosen = np.isin(data, wanted)
    path_of = dict(zip(wanted.tolist(), paths, strict=True))
    for number, row in zip(data[chosen].tolist(), rows[chosen].tolist(), strict=True):
        _add(found, number, _by_path(files.deletes, row, storage).get(path_of[number]))
    by_path = dict(zip(paths, wanted.tolist(), strict=True))
    for row in _near(files.deletes, index, wanted, paths):
        for path, positions in _by_path(files.deletes, row, storage).items():
            number = by_path.get(path)
            if number is not None and index.positions_apply(np.array([number]), row)[0]:
                _add(found, number, positions)
    return found


def _near(deletes: pa.Table, index: DeleteIndex, wanted: Numbers, paths: list[str]) -> list[int]:
    """Those delete files about several data files whose bounds have one of the wanted ones inside, and that apply."""
    rows = index.shared_positions
    lower, upper = path_bounds(deletes.take(pa.array(rows)))
    ordered = np.sort(np.array([path.encode() for path in paths], dtype=object))
    first = np.array(
        [0 if low is None else np.searchsorted(ordered, low, "left") for low in lower.to_pylist()], np.int64
    )
    after = np.array(
        [len(ordered) if high is None else np.searchsorted(ordered, high, "right") for high in upper.to_pylist()],
        np.int64,
    )
    inside = rows[first < after]
    return [row for row in inside.tolist() if index.positions_apply(wanted, row).any()]


def _add(found: dict[int, DeleteVector], number: int, positions: DeleteVector | None) -> None:
    if positions:
        found[number] = found[number] | positions if number in found else positions


def _by_path(deletes: pa.Table, row: int, storage: Storage) -> Mapping[str, DeleteVector]:
    path, format = deletes.column("path")[row].as_py(), deletes.column("file_format")[row].as_py()
    if format != "parquet":
        raise NotSupportedError(f"delete file {path}: delete files of format {format!r} cannot be read here")
    return parquet.read_by_path(storage, path)


def _vectors(deletes: pa.Table, vectors: Numbers, numbers: Numbers, storage: Storage) -> dict[int, DeleteVector]:
    """Deletion vectors by their places in Puffin files (spec, Deletion Vectors): other blobs there may be stale."""
    if not len(numbers):
        return {}
    chosen = deletes.take(pa.array(vectors[numbers]))
    paths, offsets, sizes, counts = (
        chosen.column(name).to_pylist() for name in ("path", "content_offset", "content_size", "record_count")
    )
    if None in offsets or None in sizes:
        raise DataError(f"The metadata is corrupt: it does not say where the deletion vectors in {paths[0]} lie.")
    ranges = [(path, offset, offset + size) for path, offset, size in zip(paths, offsets, sizes, strict=True)]
    blobs = storage.read_ranges(ranges)
    decoded = map(_decoded, blobs, paths, offsets, counts)
    return dict(zip(numbers.tolist(), decoded, strict=True))


def _decoded(blob: bytes, path: str, offset: int, count: int) -> DeleteVector:
    vector = roaring.decode(blob, f"{path} at {offset}")
    if len(vector) != count:
        raise DataError(
            f"The deletion vector in {path} at {offset} has {len(vector)} rows, the metadata says {count}: one of them "
            "is corrupt. Restore the file from a copy."
        )
    return vector
